package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/audit"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/api/execute"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/cmd/schemagate/warehouse"
)

// demoSeed makes every demo the same.
const demoSeed = 1

// demoReport is the demo as one document.
type demoReport struct {
	Warehouse struct {
		Schemas int   `json:"schemas"`
		Tables  int   `json:"tables"`
		Columns int   `json:"columns"`
		Rows    int64 `json:"rows"`
		Metrics int   `json:"metrics"`
		Queries int   `json:"queries"`
	} `json:"warehouse"`
	Principals []string     `json:"principals"`
	Answers    []demoAnswer `json:"answers"`
	// Statements are SQL that did not come from Schemagate, as a tool might send it, and what the guard says of it.
	Statements []demoStatement `json:"statements"`
	Audit      struct {
		Records  int  `json:"records"`
		Verified bool `json:"verified"`
	} `json:"audit"`
}

// demoAnswer is one question as one principal. Everything in it is what that principal would get.
type demoAnswer struct {
	Question   string        `json:"question"`
	Principal  string        `json:"principal"`
	Context    api.Context   `json:"context"`
	SQL        *string       `json:"sql"`
	GuardedSQL *string       `json:"guarded_sql"`
	Reason     string        `json:"reason,omitempty"`
	Rows       *execute.Rows `json:"rows"`
	Refusal    *api.Refusal  `json:"refusal"`
	Record     string        `json:"record"`
}

// demoStatement is one statement as one principal.
type demoStatement struct {
	Principal string `json:"principal"`
	Input     string `json:"input"`
	api.Verdict
}

// foreign is what a careless tool sends: a table that few may see, a column that fewer may, and a write.
var foreign = []string{
	"SELECT last_nm, amt_sal_ann_eur FROM hr.employees ORDER BY emp_id LIMIT 3",
	"DELETE FROM sales.orders WHERE region = 'EMEA'",
}

func demoCommand() *cobra.Command {
	var asJSON bool
	var keep string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Ask six questions of a bundled warehouse as four principals",
		Long: `Build a warehouse in SQLite files, ask it six questions as each of four principals, and show what each of them gets:
what was retrieved and why, the SQL and what the guard made of it, the rows or the refusal. What was withheld is shown
as the auditor sees it. Needs no network, no service and no model.`,
		Example: `  schemagate demo
  schemagate demo --keep ./demo    # and then: schemagate ask ... --source sqlite:demo --source yaml:demo/catalog.yaml --policy demo/policy.yaml
  schemagate demo --json | jq '.answers[] | {question, principal, rows}'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir := keep
			if dir == "" {
				tmp, err := os.MkdirTemp("", "schemagate-demo-")
				if err != nil {
					return fmt.Errorf("demo: %w", err)
				}
				defer os.RemoveAll(tmp)
				dir = filepath.Join(tmp, "demo")
			} else if filepath.Base(filepath.Clean(keep)) != "demo" {
				return usagef("the folder to keep must be called demo, since it names the database; say --keep %s", filepath.Join(keep, "demo"))
			}
			w := c.OutOrStdout()
			if asJSON {
				w = io.Discard
			}
			r, err := demo(c.Context(), dir, w, progress(c.ErrOrStderr()))
			if err != nil {
				return fmt.Errorf("demo: %w", err)
			}
			if asJSON {
				err = printJSON(c.OutOrStdout(), r)
			} else if keep != "" {
				fmt.Fprintf(w, "The warehouse, its catalog, policy and audit log are kept in %s.\n", dir)
			}
			if err == nil && !r.Audit.Verified {
				err = said(errFound)
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	c.Flags().StringVar(&keep, "keep", "", "keep the warehouse in this folder, which must be called demo and not exist or be empty")
	return c
}

func demo(ctx context.Context, dir string, w io.Writer, progress func(string)) (demoReport, error) {
	start := time.Now()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return demoReport{}, err
	}
	if err := warehouse.Build(ctx, dir, demoSeed, progress); err != nil {
		return demoReport{}, err
	}
	files := map[string][]byte{"catalog.yaml": warehouse.Catalog, "policy.yaml": warehouse.Policy}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return demoReport{}, err
		}
	}
	sources := []string{"sqlite:" + dir, "yaml:" + filepath.Join(dir, "catalog.yaml")}
	s, live, err := ingest.LoadLive(ctx, sources, progress)
	if err != nil {
		return demoReport{}, err
	}
	p, err := acl.ParsePolicy("policy.yaml", warehouse.Policy)
	if err != nil {
		return demoReport{}, err
	}
	e, g, err := edition(ctx, s, p, "")
	if err != nil {
		return demoReport{}, err
	}
	auditFile := filepath.Join(dir, "audit.jsonl")
	log, err := audit.Open(ctx, auditFile, nil)
	if err != nil {
		return demoReport{}, err
	}
	defer log.Close()
	rs, stop, err := runners(ctx, live)
	if err != nil {
		return demoReport{}, err
	}
	defer stop()
	engine := api.NewEngine(e, guards(), g, log, rs)

	r := demoReport{Principals: p.Principals(), Answers: []demoAnswer{}, Statements: []demoStatement{}}
	describeWarehouse(&r, s)
	fmt.Fprintf(w, "A retailer's warehouse: %d schemas, %d tables, %d columns, %d rows, %d metrics, %d past queries (built in %.1f s)\n",
		r.Warehouse.Schemas, r.Warehouse.Tables, r.Warehouse.Columns, r.Warehouse.Rows, r.Warehouse.Metrics, r.Warehouse.Queries, time.Since(start).Seconds())
	for _, name := range r.Principals {
		who, err := p.Principal(name)
		if err != nil {
			return demoReport{}, err
		}
		fmt.Fprintf(w, "  %-6s roles %s%s\n", name, strings.Join(p.Roles(who), ", "), attributes(who))
	}
	for _, question := range warehouse.Questions {
		fmt.Fprintf(w, "\n%s\n%s\n", question, strings.Repeat("=", len(question)))
		for _, name := range r.Principals {
			progress("asking as " + name)
			a, err := engine.Ask(ctx, api.Request{Face: "cli", Principal: name, Question: question}, true)
			if err != nil {
				return demoReport{}, fmt.Errorf("%s, %q: %w", name, question, err)
			}
			r.Answers = append(r.Answers, demoAnswer{
				question, name, a.Context, a.SQL, a.GuardedSQL, a.Reason, a.Rows, a.Refusal, a.Record,
			})
			record, err := audit.Show(ctx, auditFile, a.Record)
			if err != nil {
				return demoReport{}, err
			}
			writeDemoAnswer(w, name, a, record)
		}
	}
	for _, sql := range foreign {
		title := "A tool sends: " + sql
		fmt.Fprintf(w, "\n%s\n%s\n", title, strings.Repeat("=", len(title)))
		for _, name := range r.Principals {
			v, err := engine.Guard(ctx, api.Request{Face: "cli", Principal: name}, s.Databases()[0].Name, sql)
			if err != nil {
				return demoReport{}, fmt.Errorf("%s, %q: %w", name, sql, err)
			}
			r.Statements = append(r.Statements, demoStatement{name, sql, v})
			fmt.Fprintf(w, "\n-- as %s\n", name)
			if v.Decision == acl.Allow {
				writeDiff(w, sql, v.SQL)
			} else {
				writeRefusal(w, api.Refusal{Code: v.Code, Message: v.Message, Hint: v.Hint})
			}
		}
	}
	report, err := audit.Verify(ctx, auditFile, audit.Checkpoint{})
	if err != nil {
		return demoReport{}, err
	}
	r.Audit.Records, r.Audit.Verified = report.Records, report.OK
	fmt.Fprintln(w, "\nAudit log\n=========")
	writeReport(w, report)
	fmt.Fprintf(w, "\n%d answers and %d verdicts in %.1f s.\n", len(r.Answers), len(r.Statements), time.Since(start).Seconds())
	return r, nil
}

func describeWarehouse(r *demoReport, s *catalog.Snapshot) {
	schemas := map[string]bool{}
	for _, t := range s.Objects(catalog.KindTable) {
		schemas[t.Ref.Schema] = true
		if t.Table.Rows != nil {
			r.Warehouse.Rows += *t.Table.Rows
		}
	}
	r.Warehouse.Schemas = len(schemas)
	r.Warehouse.Tables = s.OfKind(catalog.KindTable).Len()
	r.Warehouse.Columns = s.OfKind(catalog.KindColumn).Len()
	r.Warehouse.Metrics = s.OfKind(catalog.KindMetric).Len()
	r.Warehouse.Queries = s.OfKind(catalog.KindQuery).Len()
}

func attributes(who acl.Principal) string {
	if len(who.Attributes) == 0 {
		return ""
	}
	return "; " + strings.Trim(fmt.Sprint(who.Attributes), "map[]")
}

// Bounds of what is shown for one answer.
const (
	demoObjects = 6
	demoRows    = 6
)

func writeDemoAnswer(w io.Writer, name string, a api.Answer, record audit.Record) {
	fmt.Fprintf(w, "\n-- as %s\n", name)
	switch {
	case a.Nothing != "":
		fmt.Fprintf(w, "nothing fits: %s\n", a.Nothing)
	case len(a.Objects) > 0:
		fmt.Fprintf(w, "retrieved %d objects in %d tokens:\n", len(a.Objects), a.Tokens)
		var shown []api.Object
		for _, o := range a.Objects {
			if o.Kind != "column" || len(shown) < demoObjects {
				shown = append(shown, o)
			}
		}
		writeObjects(w, shown, demoObjects)
	}
	if a.Nothing == "" || a.SQL != nil {
		writeAnswer(w, limited(a))
	}
	if a.Refusal != nil {
		writeRefusal(w, *a.Refusal)
	}
	if len(record.Withheld) > 0 {
		shown := record.Withheld[:min(5, len(record.Withheld))]
		fmt.Fprintf(w, "[auditor only] withheld %d: %s\n", len(record.Withheld), strings.Join(shown, ", "))
	}
	if len(record.Rules) > 0 {
		fmt.Fprintf(w, "[auditor only] rules: %s\n", strings.Join(record.Rules, "; "))
	}
}

func writeRefusal(w io.Writer, r api.Refusal) {
	fmt.Fprintf(w, "refused (%s): %s; %s\n", r.Code, r.Message, r.Hint)
}

// limited keeps the rows that are shown.
func limited(a api.Answer) api.Answer {
	if a.Rows != nil && len(a.Rows.Rows) > demoRows {
		rows := *a.Rows
		rows.Rows, rows.Truncated = rows.Rows[:demoRows], true
		a.Rows = &rows
	}
	return a
}
