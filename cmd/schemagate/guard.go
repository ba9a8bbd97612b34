package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/catalog"
)

func guardCommand() *cobra.Command {
	var o options
	var name, ddl, database, batch string
	var diff bool
	c := &cobra.Command{
		Use:   "guard",
		Short: "Rewrite or refuse SQL statements",
		Long: `Read one statement from standard input, and print what may be sent to the database in its place: row filters and masks
are in force, hidden tables and columns do not exist. Whatever does more than read, or is not understood, is refused with
exit code 3. The schema comes from a file of CREATE statements, from a source or from the catalog store.

With --batch, one case a line is read from a file (- is standard input) and one verdict a line is printed, with the id of
its case. A case is a JSON document with id and sql, and with as, dialect, database, ddl and policy where it has its own.
Its policy is one as in a policy file, or a short one: {"rows": {"client": "tenant = 7"}, "deny_tables": ["vault"],
"deny_columns": ["client.ssn"], "masks": {"client.name": "'***'"}}. The exit code is 0 whatever the verdicts.`,
		Example: `  schemagate guard --dialect postgres --ddl schema.sql --policy policy.yaml --as alice --json < q.sql
  echo "select * from orders" | schemagate guard --source sqlite:shop.db --policy policy.yaml --as alice --diff
  schemagate guard --batch cases.jsonl
  schemagate guard --batch statements.jsonl --dialect sqlite --ddl schema.sql --policy policy.yaml --as alice`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			report := progress(c.ErrOrStderr())
			if batch != "" {
				return o.guardBatch(c, batch, name, ddl, database, report)
			}
			if err := o.requireAsker(); err != nil {
				return err
			}
			p, err := o.thePolicy(c.Context())
			if err != nil {
				return err
			}
			s, err := o.guardSnapshot(c.Context(), name, ddl, &database, report)
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
			log, err := o.openAudit(c.Context())
			if err != nil {
				return err
			}
			defer log.Close()
			g := guarding{database: database, as: o.as, snapshot: s, policy: p}
			engine, _, _, err := g.engine(statementCase{}, log)
			if err != nil {
				return err
			}
			v, err := engine.Guard(c.Context(), api.Request{Face: "cli", Principal: o.as, OnBehalfOf: o.person}, database, string(sql))
			if err != nil {
				return err
			}
			switch {
			case o.json:
				err = printJSON(c.OutOrStdout(), v)
			case v.Decision == acl.Allow && diff:
				writeDiff(c.OutOrStdout(), strings.TrimSpace(string(sql)), v.SQL)
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
	f.StringVar(&name, "dialect", "", "dialect of --ddl: "+strings.Join(dialectNames(), ", "))
	f.StringVar(&ddl, "ddl", "", "file of CREATE statements that describe the database")
	f.StringVar(&database, "database", "", "database that the statement runs in (default db with --ddl, else the only one)")
	f.StringVar(&batch, "batch", "", "file of cases, one JSON document a line")
	f.BoolVar(&diff, "diff", false, "show what changed, a clause a line")
	return c
}

// guardBatch reads what the cases have in common, and guards them.
func (o *options) guardBatch(c *cobra.Command, path, name, ddl, database string, report func(string)) (err error) {
	in := c.InOrStdin()
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("batch: %w", err)
		}
		defer f.Close()
		in = f
	}
	g := guarding{dialect: name, as: o.as, person: o.person}
	if o.policy != "" {
		if g.policy, err = readPolicy(o.policy); err != nil {
			return err
		}
	}
	if ddl != "" || len(o.sources) > 0 || o.store != "" {
		if g.snapshot, err = o.guardSnapshot(c.Context(), name, ddl, &database, report); err != nil {
			return err
		}
	}
	g.database = database
	log, err := o.openAudit(c.Context())
	if err != nil {
		return err
	}
	defer log.Close()
	allowed, denied, err := g.batch(c.Context(), in, c.OutOrStdout(), log, report)
	if err == nil {
		fmt.Fprintf(c.ErrOrStderr(), "%s allowed, %s denied\n", humanize.Comma(int64(allowed)), humanize.Comma(int64(denied)))
	}
	return err
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
		*database = defaultDatabase
	}
	if !slices.Contains(dialectNames(), name) {
		return nil, noDialect(name)
	}
	text, err := os.ReadFile(ddl)
	if err != nil {
		return nil, fmt.Errorf("ddl: %w", err)
	}
	return readDDL(name, *database, ddl, string(text))
}

// readDDL reads the catalog of one database from CREATE statements.
func readDDL(name, database, where, text string) (*catalog.Snapshot, error) {
	for _, d := range dialects() {
		if string(d.Name()) != name {
			continue
		}
		db, objects, err := d.Objects(database, text)
		if err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", where, err)}
		}
		s, err := catalog.Build([]catalog.Database{db}, objects)
		if err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", where, err)}
		}
		return derived(s)
	}
	return nil, noDialect(name)
}

func noDialect(name string) error {
	names := dialectNames()
	last := len(names) - 1
	return usagef("dialect %q has no guard; say --dialect %s or %s", name, strings.Join(names[:last], ", "), names[last])
}
