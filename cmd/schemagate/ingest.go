package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/catalog/store"
)

// ingested is what an ingest did, as JSON.
type ingested struct {
	Store   string          `json:"store"`
	Version string          `json:"version"`
	Counts  map[string]int  `json:"counts"`
	Changes catalog.Changes `json:"changes"`
	Broken  []acl.Finding   `json:"broken"`
	Stored  bool            `json:"stored"`
}

func ingestCommand() *cobra.Command {
	var o options
	var confirm bool
	c := &cobra.Command{
		Use:   "ingest",
		Short: "Read sources into the catalog store",
		Long: `Read the catalog of one or more sources and make it the store's newest edition. Descriptions, tags, owners and
synonyms that stewards wrote are kept apart and lie over it as before.

With a policy, an ingest after which a deny, row filter or mask that used to cover something covers nothing any more is
not stored (exit code 4) until it is confirmed with --confirm: a renamed column must not lose its protection unnoticed.`,
		Example: `  schemagate ingest --source sqlite:shop.db --source yaml:metrics.yaml --store catalog.db
  schemagate ingest --source postgres://reader@localhost/shop --policy policy.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if len(o.sources) == 0 {
				return usagef("no source is given; name one with --source, as in --source sqlite:shop.db")
			}
			var p *acl.Policy
			if o.policy != "" {
				var err error
				if p, err = readPolicy(o.policy); err != nil {
					return err
				}
			}
			file, err := stateFile(o.store, "catalog.db")
			if err != nil {
				return err
			}
			// The sources are read before the store is touched, so that a bad one leaves nothing behind.
			next, _, err := o.catalog(c.Context(), progress(c.ErrOrStderr()))
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				return fmt.Errorf("catalog store: %w", err)
			}
			s, err := store.Open(c.Context(), file)
			if err != nil {
				return err
			}
			defer s.Close()
			out, err := put(c.Context(), s, next, p, o.sources, confirm)
			if err != nil {
				return err
			}
			out.Store = file
			if o.json {
				err = printJSON(c.OutOrStdout(), out)
			} else {
				writeIngested(c, out, o.policy)
			}
			if err == nil && !out.Stored {
				err = said(errFound)
			}
			return err
		},
	}
	o.sourceFlags(c)
	f := c.Flags()
	f.StringVar(&o.policy, "policy", "", "policy file whose protections must survive the ingest")
	f.BoolVar(&confirm, "confirm", false, "store the catalog even if rules of the policy lose what they cover")
	f.BoolVar(&o.json, "json", false, "print one JSON document")
	return c
}

func put(ctx context.Context, s *store.Store, next *catalog.Snapshot, p *acl.Policy, specs []string, confirm bool) (ingested, error) {
	old, _, err := s.Latest(ctx)
	if errors.Is(err, store.ErrEmpty) {
		old, err = catalog.Build(nil, nil)
	}
	if err != nil {
		return ingested{}, err
	}
	out := ingested{Version: next.Version(), Counts: map[string]int{}, Changes: catalog.Diff(old, next), Broken: []acl.Finding{}}
	for _, k := range catalog.Kinds {
		out.Counts[k.String()] = next.OfKind(k).Len()
	}
	if p != nil && old.Len() > 0 {
		before := p.Unmatched(old)
		for _, u := range p.Unmatched(next) {
			if !slices.Contains(before, u) {
				out.Broken = append(out.Broken, u)
			}
		}
	}
	if len(out.Broken) > 0 && !confirm {
		return out, nil
	}
	shown := make([]string, len(specs))
	for i, spec := range specs {
		shown[i] = ingest.Public(spec)
	}
	by := "unknown"
	if u, err := user.Current(); err == nil {
		by = u.Username
	}
	if _, err := s.Put(ctx, next, shown, by); err != nil {
		return ingested{}, err
	}
	out.Stored = true
	return out, nil
}

func writeIngested(c *cobra.Command, out ingested, policy string) {
	w := c.OutOrStdout()
	for _, b := range out.Broken {
		fmt.Fprintf(w, "%s: %s: %s in the new catalog\n", policy, b.Rule, b.Message)
	}
	if !out.Stored {
		fmt.Fprintln(w, "Nothing was stored. Change the policy, or store the catalog all the same with --confirm.")
		return
	}
	fmt.Fprintf(w, "%d tables, %d columns, %d metrics, %d relationships, %d past queries in %s\n",
		out.Counts["table"], out.Counts["column"], out.Counts["metric"], out.Counts["relationship"], out.Counts["query"], out.Store)
	fmt.Fprintf(w, "%d added, %d removed, %d changed\n", len(out.Changes.Added), len(out.Changes.Removed), len(out.Changes.Changed))
}
