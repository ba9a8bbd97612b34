package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/catalog"
)

func guardCommand() *cobra.Command {
	var o options
	var name, ddl, database string
	c := &cobra.Command{
		Use:   "guard",
		Short: "Rewrite or refuse a SQL statement read from standard input",
		Long: `Read one statement, and print what may be sent to the database in its place: row filters and masks are in force,
hidden tables and columns do not exist. Whatever does more than read, or is not understood, is refused with exit code 3.
The schema comes from a file of CREATE statements, from a source or from the catalog store.`,
		Example: `  schemagate guard --dialect postgres --ddl schema.sql --policy policy.yaml --as alice --json < q.sql
  echo "select * from orders" | schemagate guard --source sqlite:shop.db --policy policy.yaml --as alice`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.requireAsker(); err != nil {
				return err
			}
			p, err := readPolicy(o.policy)
			if err != nil {
				return err
			}
			s, err := o.guardSnapshot(c.Context(), name, ddl, &database, progress(c.ErrOrStderr()))
			if err != nil {
				return err
			}
			sql, err := io.ReadAll(io.LimitReader(c.InOrStdin(), maxInput))
			if err != nil {
				return fmt.Errorf("reading the statement: %w", err)
			}
			if strings.TrimSpace(string(sql)) == "" {
				return usagef("no statement is given; write it to standard input, as in schemagate guard ... < q.sql")
			}
			policy, err := casbin.New(p, s)
			if err != nil {
				return err
			}
			log, err := o.openAudit(c.Context())
			if err != nil {
				return err
			}
			defer log.Close()
			v, err := api.NewEngine(&api.Edition{Policy: policy}, guards(), nil, log, nil).Guard(c.Context(), api.Request{Face: "cli", Principal: o.as}, database, string(sql))
			if err != nil {
				return err
			}
			switch {
			case o.json:
				err = printJSON(c.OutOrStdout(), v)
			case v.Decision == acl.Allow:
				_, err = fmt.Fprintln(c.OutOrStdout(), v.SQL)
			}
			if err == nil && v.Decision == acl.Deny {
				err = &acl.Refusal{Code: v.Code, Public: v.Message, Hint: v.Hint}
			}
			return err
		},
	}
	o.sourceFlags(c)
	o.askerFlags(c)
	f := c.Flags()
	f.StringVar(&name, "dialect", "", "dialect of --ddl: mysql, postgres or sqlite")
	f.StringVar(&ddl, "ddl", "", "file of CREATE statements that describe the database")
	f.StringVar(&database, "database", "", "database that the statement runs in (default db with --ddl, else the only one)")
	return c
}

// guardSnapshot reads the catalog that the statement is checked against, and settles the database that it runs in.
func (o *options) guardSnapshot(ctx context.Context, name, ddl string, database *string, progress func(string)) (*catalog.Snapshot, error) {
	if ddl == "" {
		s, _, err := o.catalog(ctx, progress)
		if err != nil {
			return nil, err
		}
		if *database == "" {
			if len(s.Databases()) != 1 {
				return nil, usagef("the catalog holds %d databases; name the one that the statement runs in with --database", len(s.Databases()))
			}
			*database = s.Databases()[0].Name
		}
		if _, ok := s.Database(*database); !ok {
			return nil, usagef("the catalog holds no database %q", *database)
		}
		return s, nil
	}
	if len(o.sources) > 0 {
		return nil, usagef("--ddl and --source both describe the database; give one of them")
	}
	if *database == "" {
		*database = "db"
	}
	for _, d := range dialects() {
		if string(d.Name()) != name {
			continue
		}
		text, err := os.ReadFile(ddl)
		if err != nil {
			return nil, fmt.Errorf("ddl: %w", err)
		}
		db, objects, err := d.Objects(*database, string(text))
		if err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", ddl, err)}
		}
		s, err := catalog.Build([]catalog.Database{db}, objects)
		if err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", ddl, err)}
		}
		return s, nil
	}
	return nil, usagef("dialect %q has no guard; say --dialect mysql, postgres or sqlite", name)
}
