package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

func policyCommand() *cobra.Command {
	c := &cobra.Command{Use: "policy", Short: "Check policies, and ask them who may do what, and why"}
	c.AddCommand(policyCheckCommand(), policyWhatCommand(), policyWhoCommand(), policyExplainCommand(), policyDiffCommand(), policyTestCommand(), policyLintCommand(),
		policyPutCommand(), policyHistoryCommand(), policyExportCommand())
	return c
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
			p, err := o.thePolicy(c.Context())
			var wrong usageError
			if errors.As(err, &wrong) && o.policy != "" {
				// Here all faults are wanted, one a line.
				fmt.Fprintln(c.ErrOrStderr(), wrong)
				return said(err)
			}
			if err != nil {
				return err
			}
			findings, checked := []acl.Finding{}, false
			if len(o.sources) > 0 || o.store != "" {
				checked = true
				j, err := o.judge(c.Context(), progress(c.ErrOrStderr()))
				if err != nil {
					return err
				}
				views, err := j.views()
				if err != nil {
					return err
				}
				findings = append(j.policy.Unmatched(j.snapshot), vetted(views)...)
			}
			fine := "well formed; give a --source to check that its rules cover something"
			if checked {
				fine = "every rule is well formed and covers something"
			}
			return o.report(c, p, findings, fine)
		},
	}
	o.policyFlags(c)
	return c
}

func policyLintCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "lint",
		Short: "Find what is likely a mistake in a policy, or a way round it",
		Long: `Find all that policy check finds, and also: allows that cover nothing or that the role's own denies take back, roles that
nobody has, principals who see nothing, masks that break a declared join, conditions and descriptions that name what
their readers may not see, and tables that nobody owns. Exit code 4 means that something was found.`,
		Example: `  schemagate policy lint --policy policy.yaml --source sqlite:shop.db`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			j, err := o.judge(c.Context(), progress(c.ErrOrStderr()))
			if err != nil {
				return err
			}
			views, err := j.views()
			if err != nil {
				return err
			}
			return o.report(c, j.policy, slices.Concat(j.policy.Lint(j.snapshot, views), vetted(views), unread(j.snapshot)), "nothing stands out")
		},
	}
	o.policyFlags(c)
	return c
}

// views returns those of all principals.
func (j judgedPolicy) views() ([]acl.View, error) {
	var out []acl.View
	for _, who := range j.policy.Principals() {
		v, err := j.engine.View(who)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// unread lists the SQL views whose columns inherit no tags.
func unread(s *catalog.Snapshot) []acl.Finding {
	_, views := rewrite.Derivations(s, guards())
	return views
}

// vetted tries the SQL of the policy's rules for each principal.
func vetted(views []acl.View) []acl.Finding {
	var out []acl.Finding
	for _, v := range views {
		for _, f := range rewrite.Vet(v, guards()) {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// report prints findings, and turns them into the exit code.
func (o *options) report(c *cobra.Command, p *acl.Policy, findings []acl.Finding, fine string) error {
	if o.json {
		if err := printJSON(c.OutOrStdout(), map[string]any{"policy": o.policyName(), "version": p.Version(), "findings": append([]acl.Finding{}, findings...)}); err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			fmt.Fprintf(c.OutOrStdout(), "%s: %s: %s\n", o.policyName(), f.Rule, f.Message)
		}
		if len(findings) == 0 {
			fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", o.policyName(), fine)
		}
	}
	if len(findings) > 0 {
		return said(errFound)
	}
	return nil
}

// policyName is what findings call the policy.
func (o *options) policyName() string {
	if o.policy == "" {
		return "the policy in force"
	}
	return o.policy
}
