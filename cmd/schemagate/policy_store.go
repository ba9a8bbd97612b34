package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog/store"
)

// withStore opens the catalog store for one piece of work.
func (o *options) withStore(ctx context.Context, do func(*store.Store) error) error {
	path, err := stateFile(o.store, "catalog.db")
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, path)
	if err != nil {
		return err
	}
	defer s.Close()
	return do(s)
}

// storedPolicy reads the policy in force, or an older version.
func (o *options) storedPolicy(ctx context.Context, version string) (p *acl.Policy, body string, err error) {
	err = o.withStore(ctx, func(s *store.Store) error {
		kept, err := s.Policy(ctx, version)
		if err != nil {
			return err
		}
		p, err = parsePolicy("policy "+kept.Version[:8], []byte(kept.Body))
		body = kept.Body
		return err
	})
	return p, body, err
}

// login is who runs the command, as the machine knows them.
func login() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

func policyPutCommand() *cobra.Command {
	var o options
	var by, why, expect string
	var confirm bool
	c := &cobra.Command{
		Use:   "put FILE",
		Short: "Put a policy in force, as a new version in the catalog store",
		Long: `Check a policy file and put it in force: commands that are given no --policy use the newest one in the catalog store. What
was in force before stays on record, with who put it and why. With --expect the policy is put only over that version,
so that nobody overwrites what they have not seen. If the store holds a catalog, each deny, filter and mask must cover
something in it and each filter and mask must be SQL that the guard can put in place, as for policy check; otherwise
the policy is not put (exit code 4) until it is confirmed with --confirm.`,
		Example: `  schemagate policy put policy.yaml --why "finance may see all regions, ticket 812"
  schemagate policy put policy.yaml --why "..." --expect 067749c9f719...`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if why == "" {
				return usagef("it is not said why; write --why REASON")
			}
			body, err := os.ReadFile(args[0])
			if err != nil {
				return usageError{err}
			}
			p, err := parsePolicy(args[0], body)
			if err != nil {
				return usageError{err}
			}
			o.policy = args[0]
			return o.withStore(c.Context(), func(s *store.Store) error {
				found, err := faultsOn(c.Context(), s, p)
				if err != nil {
					return err
				}
				if len(found) > 0 && !confirm {
					return o.report(c, p, found, "")
				}
				put, err := s.PutPolicy(c.Context(), string(body), by, why, expect)
				if err != nil {
					return err
				}
				if o.json {
					return printJSON(c.OutOrStdout(), put)
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "policy %d is in force: %s\n", put.Number, put.Version)
				return err
			})
		},
	}
	f := c.Flags()
	f.StringVar(&o.store, "store", "", "catalog store (default in the user's state directory)")
	f.StringVar(&by, "by", login(), "who puts it")
	f.StringVar(&why, "why", "", "the reason, for the record")
	f.BoolVar(&confirm, "confirm", false, "put it although a rule covers nothing or cannot be put in place")
	f.StringVar(&expect, "expect", "", "version that must be in force now")
	f.BoolVar(&o.json, "json", false, "print one JSON document")
	return c
}

// faultsOn tries a policy on the newest catalog of the store, if it holds one.
func faultsOn(ctx context.Context, s *store.Store, p *acl.Policy) ([]acl.Finding, error) {
	snapshot, _, err := s.Latest(ctx)
	if errors.Is(err, store.ErrEmpty) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e, err := casbin.New(p, snapshot)
	if err != nil {
		return nil, err
	}
	views, err := judgedPolicy{p, e, snapshot}.views()
	if err != nil {
		return nil, err
	}
	return append(p.Unmatched(snapshot), vetted(views)...), nil
}

func policyHistoryCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:     "history",
		Short:   "List the policies that were in force, newest first",
		Example: `  schemagate policy history --store catalog.db`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.withStore(c.Context(), func(s *store.Store) error {
				all, err := s.Policies(c.Context())
				if err != nil {
					return err
				}
				if o.json {
					return printJSON(c.OutOrStdout(), all)
				}
				for _, p := range all {
					fmt.Fprintf(c.OutOrStdout(), "%d  %s  %s  %s: %s\n", p.Number, p.Version[:12], p.At.Format(time.DateTime), p.By, p.Why)
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&o.store, "store", "", "catalog store (default in the user's state directory)")
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	return c
}

func policyExportCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "export [VERSION]",
		Short: "Print the policy in force, or an older version, as it was put",
		Example: `  schemagate policy export > policy.yaml
  schemagate policy export 067749c9f719... --store catalog.db`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			version := ""
			if len(args) > 0 {
				version = args[0]
			}
			_, body, err := o.storedPolicy(c.Context(), version)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.OutOrStdout(), body)
			return err
		},
	}
	c.Flags().StringVar(&o.store, "store", "", "catalog store (default in the user's state directory)")
	return c
}
