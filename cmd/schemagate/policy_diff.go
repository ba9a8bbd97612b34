package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
)

func policyDiffCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say who gains and who loses what by another policy",
		Long: `Compare two policy files on one catalog: for each principal of either, what they gain and lose, and whose rows or values
read differently. A principal that one of them does not know sees nothing under it. Where all columns of a table
change alike, the table stands for them.`,
		Example: `  schemagate policy diff policy.yaml proposed.yaml --source sqlite:shop.db`,
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			o.policy = args[0]
			before, err := o.judge(c.Context(), progress(c.ErrOrStderr()))
			if err != nil {
				return err
			}
			after := judgedPolicy{snapshot: before.snapshot}
			if after.policy, err = readPolicy(args[1]); err != nil {
				return err
			}
			if after.engine, err = casbin.New(after.policy, after.snapshot); err != nil {
				return err
			}
			names := slices.Concat(before.policy.Principals(), after.policy.Principals())
			slices.Sort(names)
			changes := []acl.Change{}
			for _, name := range slices.Compact(names) {
				a, err := before.viewOrNone(name)
				if err != nil {
					return err
				}
				b, err := after.viewOrNone(name)
				if err != nil {
					return err
				}
				changes = append(changes, acl.Changes(a, b)...)
			}
			if o.json {
				return printJSON(c.OutOrStdout(), struct {
					Before  string       `json:"before"` // versions
					After   string       `json:"after"`
					Changes []acl.Change `json:"changes"`
				}{before.policy.Version(), after.policy.Version(), changes})
			}
			w := c.OutOrStdout()
			for _, ch := range changes {
				fmt.Fprintf(w, "%s, %s:", ch.Principal, ch.Ref)
				for _, side := range [...]struct {
					word    string
					actions []acl.Action
				}{{" gains ", ch.Gained}, {" loses ", ch.Lost}} {
					for i, a := range side.actions {
						if i == 0 {
							fmt.Fprint(w, side.word, a)
						} else {
							fmt.Fprint(w, ", ", a)
						}
					}
				}
				if ch.Before != nil {
					fmt.Fprintf(w, " reads %s instead of %s", reading(*ch.After), reading(*ch.Before))
				}
				fmt.Fprintln(w)
			}
			if len(changes) == 0 {
				fmt.Fprintln(w, "nobody gains or loses anything")
			}
			return nil
		},
	}
	o.sourceFlags(c)
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	return c
}

// viewOrNone is the view of a principal, who sees nothing if the policy does not know them.
func (j judgedPolicy) viewOrNone(name string) (acl.View, error) {
	v, err := j.engine.View(name)
	var no *acl.Refusal
	if errors.As(err, &no) && no.Code == acl.CodeUnknownPrincipal {
		return acl.NewView(acl.Principal{Name: name}, &acl.Compiled{Policy: j.policy.Version(), Snapshot: j.snapshot}), nil
	}
	return v, err
}

// reading says what an access lets through.
func reading(a acl.Access) string {
	if text := strings.TrimPrefix(conditions(a), "; "); text != "" {
		return "(" + text + ")"
	}
	if a.Rows == nil && a.Ref.Column == "" {
		return "all rows"
	}
	return "its values"
}
