package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
)

// judgedPolicy is a policy on the catalog that it is asked about.
type judgedPolicy struct {
	policy   *acl.Policy
	engine   *casbin.Engine
	snapshot *catalog.Snapshot
}

// judge loads the policy and the catalog.
func (o *options) judge(ctx context.Context, progress func(string)) (judgedPolicy, error) {
	p, err := o.thePolicy(ctx)
	if err != nil {
		return judgedPolicy{}, err
	}
	s, _, err := o.catalog(ctx, progress)
	if err != nil {
		return judgedPolicy{}, err
	}
	e, err := casbin.New(p, s)
	return judgedPolicy{p, e, s}, err
}

// view returns a principal's view. Whoever asks keeps the policy, so an unknown principal is a mistake of theirs.
func (j judgedPolicy) view(principal string) (acl.View, error) {
	v, err := j.engine.View(principal)
	if err != nil {
		return v, usagef("the policy knows no principal %q; it knows %s", principal, some(j.policy.Principals()))
	}
	return v, nil
}

// object finds what a name means.
func (j judgedPolicy) object(name string) (*catalog.Object, error) {
	found, err := j.snapshot.Resolve(name)
	switch {
	case err != nil:
		return nil, usageError{err}
	case len(found) == 0:
		return nil, usagef("the catalog holds no %s; write database.schema.table.column, without the schema where the engine has none, or metric:NAME", name)
	case len(found) > 1:
		return nil, usagef("%s can mean a table and a column", name)
	}
	return found[0], nil
}

// some lists names, not too many.
func some(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (o *options) policyFlags(c *cobra.Command) {
	o.sourceFlags(c)
	c.Flags().StringVar(&o.policy, "policy", "", "policy file (default the policy in force in the catalog store)")
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
}

func policyWhatCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:     "what PRINCIPAL",
		Short:   "List what a principal may see and do",
		Example: `  schemagate policy what alice --policy policy.yaml --source sqlite:shop.db`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			j, err := o.judge(c.Context(), progress(c.ErrOrStderr()))
			if err != nil {
				return err
			}
			v, err := j.view(args[0])
			if err != nil {
				return err
			}
			what := v.What()
			if o.json {
				return printJSON(c.OutOrStdout(), struct {
					Principal string       `json:"principal"`
					Roles     []string     `json:"roles"`
					Objects   []acl.Access `json:"objects"`
				}{args[0], v.Roles(), append([]acl.Access{}, what...)})
			}
			fmt.Fprintf(c.OutOrStdout(), "%s has the roles %s\n", args[0], strings.Join(v.Roles(), ", "))
			if len(what) == 0 {
				fmt.Fprintln(c.OutOrStdout(), "and sees nothing")
			}
			writeWhat(c.OutOrStdout(), v, what)
			return nil
		},
	}
	o.policyFlags(c)
	return c
}

// writeWhat lists tables with how many of their columns are visible and those that are masked, and then the other kinds.
func writeWhat(w io.Writer, v acl.View, what []acl.Access) {
	byTable := map[catalog.Ref][]acl.Access{}
	for _, a := range what {
		if a.Ref.Kind == catalog.KindColumn {
			byTable[a.Ref.TableRef()] = append(byTable[a.Ref.TableRef()], a)
		}
	}
	for _, a := range what {
		switch a.Ref.Kind {
		case catalog.KindColumn:
		case catalog.KindTable:
			id, _ := v.Snapshot().ID(a.Ref)
			fmt.Fprintf(w, "%s; %d of %d columns\n", accessLine(a), len(byTable[a.Ref]), v.Snapshot().ColumnIDs(id).Len())
			for _, c := range byTable[a.Ref] {
				if c.Mask != "" || !slices.Equal(c.Actions, a.Actions) {
					fmt.Fprintf(w, "  %s\n", accessLine(c))
				}
			}
		default:
			fmt.Fprintln(w, accessLine(a))
		}
	}
}

// accessLine says on one line what may be done to an object.
func accessLine(a acl.Access) string {
	words := make([]string, len(a.Actions))
	for i, action := range a.Actions {
		words[i] = string(action)
	}
	return fmt.Sprintf("%s: %s", a.Ref, strings.Join(words, ", ")) + conditions(a)
}

func conditions(a acl.Access) string {
	var b strings.Builder
	if r := a.Rows; r != nil {
		if r.None {
			b.WriteString("; no rows")
		} else {
			b.WriteString("; rows where " + rowsText(*r))
		}
	}
	if a.Mask != "" {
		fmt.Fprintf(&b, "; mask %s", a.Mask)
	}
	return b.String()
}

// rowsText writes the conditions on rows as one.
func rowsText(r acl.Rows) string {
	if r.None {
		return "no row"
	}
	parts := append([]string{strings.Join(r.Any, " or ")}, r.All...)
	if len(r.Any) > 1 && len(r.All) > 0 {
		parts[0] = "(" + parts[0] + ")"
	}
	return strings.Join(parts, " and ")
}

// holder is a principal with access to an object.
type holder struct {
	Principal string `json:"principal"`
	acl.Access
}

func policyWhoCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:     "who REF",
		Short:   "List who may see an object, and what they may do to it",
		Example: `  schemagate policy who shop.customers.email --policy policy.yaml --source sqlite:shop.db`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			j, err := o.judge(c.Context(), progress(c.ErrOrStderr()))
			if err != nil {
				return err
			}
			object, err := j.object(args[0])
			if err != nil {
				return err
			}
			holders := []holder{}
			for _, name := range j.policy.Principals() {
				v, err := j.view(name)
				if err != nil {
					return err
				}
				if a := v.Access(object.ID); len(a.Actions) > 0 {
					holders = append(holders, holder{name, a})
				}
			}
			if o.json {
				return printJSON(c.OutOrStdout(), struct {
					Ref        string   `json:"ref"`
					Principals []holder `json:"principals"`
				}{object.Ref.String(), holders})
			}
			for _, h := range holders {
				_, line, _ := strings.Cut(accessLine(h.Access), ": ")
				fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", h.Principal, line)
			}
			if len(holders) == 0 {
				fmt.Fprintf(c.OutOrStdout(), "nobody may see %s\n", object.Ref)
			}
			return nil
		},
	}
	o.policyFlags(c)
	return c
}

func policyExplainCommand() *cobra.Command {
	var o options
	var action string
	c := &cobra.Command{
		Use:   "explain PRINCIPAL REF",
		Short: "Say why a principal may or may not do something to an object",
		Long: `Say what the policy decides of a principal, an object and an action, with every rule that spoke in the order of the policy
and the one that decided. A deny beats every allow; without an allow the answer is no. For query both view and query
must be allowed, and both are explained.`,
		Example: `  schemagate policy explain alice shop.customers.email --policy policy.yaml --source sqlite:shop.db
  schemagate policy explain alice metric:net_revenue --action view --policy policy.yaml --store catalog.db --json`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			a := acl.Action(action)
			if !slices.Contains(acl.Actions[:], a) {
				return usagef("%q is no action; known are view, query, edit, approve, administer, audit and impersonate", action)
			}
			j, err := o.judge(c.Context(), progress(c.ErrOrStderr()))
			if err != nil {
				return err
			}
			v, err := j.view(args[0])
			if err != nil {
				return err
			}
			object, err := j.object(args[1])
			if err != nil {
				return err
			}
			d := j.policy.Explain(v, a, object.ID, time.Now())
			if o.json {
				return printJSON(c.OutOrStdout(), d)
			}
			writeDecision(c.OutOrStdout(), d)
			return nil
		},
	}
	o.policyFlags(c)
	c.Flags().StringVar(&action, "action", string(acl.ActionQuery), "what is to be done: view, query, edit, approve, administer, audit or impersonate")
	return c
}

func writeDecision(w io.Writer, d acl.Decision) {
	verb := "may"
	if d.Effect != acl.Allow {
		verb = "may not"
	}
	fmt.Fprintf(w, "%s %s %s %s: %s\n", d.Principal, verb, d.Action, d.Ref, d.Because)
	for _, r := range d.Rules {
		mark := " "
		if r.Decides {
			mark = "*"
		}
		fmt.Fprintf(w, "%s %s", mark, r.Says)
		if r.Action != "" {
			fmt.Fprintf(w, " %s", r.Action)
		}
		fmt.Fprintf(w, " on %s", r.Pattern)
		if r.On != "" {
			fmt.Fprintf(w, ", of %s", r.On)
		}
		fmt.Fprintf(w, "  (%s)\n", r.Rule)
	}
	if len(d.Rules) > 0 {
		fmt.Fprintln(w, "* decided or in force")
	}
}
