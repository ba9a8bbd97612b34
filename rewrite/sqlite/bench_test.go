package sqlite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlc-dev/meyer/parser"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
	"github.com/schemagate/schemagate/rewrite/sqlite"
)

// fifteenLines is a statement of the size that analysts write.
const fifteenLines = `WITH monthly AS (
  SELECT c.region_id, strftime('%Y-%m', i.memo) AS month, sum(i.amount) AS total, count(*) AS n
  FROM invoice AS i
  JOIN client AS c ON c.id = i.client_id
  WHERE i.amount > 10 AND c.name NOT LIKE 'test%'
  GROUP BY c.region_id, month
)
SELECT r.name, m.month, m.total,
  m.total - lag(m.total) OVER (PARTITION BY r.id ORDER BY m.month) AS change,
  CASE WHEN m.n > 100 THEN 'many' ELSE 'few' END AS size
FROM region AS r
LEFT JOIN monthly AS m ON m.region_id = r.id
WHERE r.id IN (SELECT region_id FROM client WHERE tenant = 7) AND m.total > (SELECT avg(total) FROM monthly)
ORDER BY r.name, m.month DESC
LIMIT 100`

const (
	benchDDL = `CREATE TABLE region(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE client(id INTEGER PRIMARY KEY, tenant INTEGER, region_id INTEGER, name TEXT, ssn TEXT);
CREATE TABLE invoice(id INTEGER PRIMARY KEY, tenant INTEGER, client_id INTEGER, amount REAL, memo TEXT);
`
	benchPolicy = `version: 1
principals: {asker: {roles: [reader], attributes: {tenant: 7}}}
grants:
  - {role: reader, allow: ["*"], actions: [view, query]}
  - {role: reader, deny: [db.client.ssn]}
row_filters:
  - {table: db.invoice, roles: [reader], using: "tenant = {{ principal.tenant }}"}
  - {table: db.client, roles: [reader], using: "tenant = {{ principal.tenant }} or region_id in (1, 2)"}
masks:
  - {column: db.client.name, roles: [reader], with: partial}
`
)

// BenchmarkGuard guards an analyst's statement under row filters and a mask, beside what the parser alone takes for it.
func BenchmarkGuard(b *testing.B) {
	guard := rewrite.NewGuard(sqlite.New(), 1000)
	v := view(b, benchDDL, benchPolicy)
	measure(b, "guard", func() error {
		s, err := rewrite.NewSchema(v, rewritetest.Database) // of one statement: what it learns of the policy counts
		if err != nil {
			return err
		}
		_, err = guard.Rewrite(fifteenLines, s)
		return err
	})
	measure(b, "parser", func() error {
		_, err := parser.ParseString(fifteenLines)
		return err
	})
}

// BenchmarkGuardGrows guards statements and catalogs of three sizes each, the largest at a limit; times a unit should
// stay.
func BenchmarkGuardGrows(b *testing.B) {
	guard := rewrite.NewGuard(sqlite.New(), 1000)
	for _, g := range []struct {
		name  string
		sizes []int
		make  func(n int) (ddl, statement string)
	}{
		{"tables in the catalog", []int{100, 1000, 10_000}, func(n int) (string, string) {
			var ddl strings.Builder
			for i := range n {
				fmt.Fprintf(&ddl, "CREATE TABLE t%d(id INTEGER, k INTEGER);", i)
			}
			return benchDDL + ddl.String(), fifteenLines
		}},
		{"joins", []int{16, 32, 63}, func(n int) (string, string) {
			var s strings.Builder
			s.WriteString("SELECT i0.id, amount FROM invoice AS i0")
			for i := range n {
				fmt.Fprintf(&s, " LEFT JOIN client AS c%d ON c%d.id = i0.client_id AND c%d.tenant > %d", i, i, i, i)
			}
			return benchDDL, strings.Replace(s.String(), ", amount", ", i0.amount", 1)
		}},
		{"bytes of constants", []int{10_000, 100_000, 1_000_000}, func(n int) (string, string) {
			return benchDDL, "SELECT id FROM invoice WHERE id IN (1" + strings.Repeat(", 12345678", n/10) + ")"
		}},
		{"bytes of names", []int{10_000, 100_000, 1_000_000}, func(n int) (string, string) {
			return benchDDL, "SELECT id FROM invoice WHERE id IN (1" + strings.Repeat(", tenant, amount, memo", n/22) + ")"
		}},
		{"bytes of subqueries", []int{10_000, 100_000, 1_000_000}, func(n int) (string, string) {
			return benchDDL, "SELECT id FROM invoice WHERE id IN (1" + strings.Repeat(", (SELECT max(id) FROM client c WHERE c.id = client_id)", n/55) + ")"
		}},
		{"bytes of CTEs", []int{10_000, 100_000, 1_000_000}, func(n int) (string, string) {
			var s strings.Builder
			s.WriteString("WITH c0 AS (SELECT id, amount FROM invoice)")
			last := 0
			for s.Len() < n-100 {
				fmt.Fprintf(&s, ", c%d AS (SELECT max(id) AS id FROM c0)", last+1)
				last++
			}
			return benchDDL, fmt.Sprintf("%s SELECT id FROM c%d", s.String(), last)
		}},
		{"levels", []int{100, 300, 1000}, func(n int) (string, string) {
			return benchDDL, "SELECT id FROM invoice" + strings.Repeat(" WHERE id IN (SELECT id FROM invoice", n) + strings.Repeat(")", n)
		}},
	} {
		for _, n := range g.sizes {
			ddl, statement := g.make(n)
			s := newSchema(b, ddl, benchPolicy)
			measure(b, fmt.Sprintf("%s/%d/guard", g.name, n), func() error {
				_, err := guard.Rewrite(statement, s)
				return err
			})
			measure(b, fmt.Sprintf("%s/%d/parser", g.name, n), func() error {
				_, err := parser.ParseString(statement)
				return err
			})
		}
	}
}

// view is what the asker may see of what DDL creates.
func view(b *testing.B, ddl, policy string) acl.View {
	b.Helper()
	db, objects, err := sqlite.New().Objects(rewritetest.Database, ddl)
	if err != nil {
		b.Fatal(err)
	}
	snapshot, err := catalog.Build([]catalog.Database{db}, objects)
	if err != nil {
		b.Fatal(err)
	}
	p, err := acl.ParsePolicy("policy.yaml", []byte(policy))
	if err != nil {
		b.Fatal(err)
	}
	e, err := casbin.New(p, snapshot)
	if err != nil {
		b.Fatal(err)
	}
	v, err := e.View(rewritetest.Asker)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// measure reports the median beside the mean.
func measure(b *testing.B, name string, run func() error) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		var took []time.Duration
		for b.Loop() {
			start := time.Now()
			if err := run(); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	})
}
