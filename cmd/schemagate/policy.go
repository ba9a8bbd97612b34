package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/rewrite"
)

func policyCommand() *cobra.Command {
	c := &cobra.Command{Use: "policy", Short: "Check policies"}
	c.AddCommand(policyCheckCommand())
	return c
}

// finding is what a check found.
type finding struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

func policyCheckCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "check",
		Short: "Check a policy file, and with a source that its rules protect something",
		Long: `Check that a policy file is well formed. With a source or a catalog store, check too that each deny, row filter and
mask covers something, since one that covers nothing protects nothing, and that each filter and mask is SQL that the
guard can put in place. Exit code 4 means that something was found.`,
		Example: `  schemagate policy check --policy policy.yaml --source sqlite:shop.db`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.policy == "" {
				return usagef("no policy is given; name one with --policy FILE")
			}
			p, err := readPolicy(o.policy)
			if err != nil {
				// Here all faults are wanted, one a line.
				fmt.Fprintln(c.ErrOrStderr(), errors.Unwrap(err))
				return said(err)
			}
			findings := []finding{}
			checked := false
			if len(o.sources) > 0 || o.store != "" {
				checked = true
				s, _, err := o.catalog(c.Context(), progress(c.ErrOrStderr()))
				if err != nil {
					return err
				}
				for _, u := range p.Unmatched(s) {
					findings = append(findings, finding{u.Rule, u.What})
				}
				e, err := casbin.New(p, s)
				if err != nil {
					return err
				}
				for _, who := range p.Principals() {
					v, err := e.View(who)
					if err != nil {
						return err
					}
					for _, f := range rewrite.Vet(v, guards()) {
						found := finding{f.Rule, f.Message}
						if !slices.Contains(findings, found) {
							findings = append(findings, found)
						}
					}
				}
			}
			if o.json {
				if err := printJSON(c.OutOrStdout(), map[string]any{"policy": o.policy, "version": p.Version(), "findings": findings}); err != nil {
					return err
				}
			} else {
				for _, f := range findings {
					fmt.Fprintf(c.OutOrStdout(), "%s: %s: %s\n", o.policy, f.Rule, f.Message)
				}
				switch {
				case len(findings) > 0:
				case checked:
					fmt.Fprintf(c.OutOrStdout(), "%s: every rule is well formed and covers something\n", o.policy)
				default:
					fmt.Fprintf(c.OutOrStdout(), "%s: well formed; give a --source to check that its rules cover something\n", o.policy)
				}
			}
			if len(findings) > 0 {
				return said(errFound)
			}
			return nil
		},
	}
	o.sourceFlags(c)
	c.Flags().StringVar(&o.policy, "policy", "", "policy file")
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	return c
}
