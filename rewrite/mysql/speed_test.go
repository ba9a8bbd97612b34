package mysql_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pingcap/tidb/pkg/parser"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/mysql"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

const fifteenLines = `WITH big AS (
  SELECT client_id, SUM(amount) AS total
  FROM invoice
  WHERE amount > 10
  GROUP BY client_id
)
SELECT r.name AS region,
       COUNT(DISTINCT c.id) AS clients,
       SUM(b.total) AS total,
       MAX(CASE WHEN b.total > 100 THEN 'large' ELSE 'small' END) AS kind
FROM region r
LEFT JOIN client c ON c.region_id = r.id
LEFT JOIN big b ON b.client_id = c.id
WHERE r.name LIKE 'n%' AND EXISTS (SELECT 1 FROM invoice i WHERE i.client_id = c.id)
GROUP BY r.name HAVING COUNT(*) > 1 ORDER BY total DESC LIMIT 10`

// median times b's function and reports the 50th percentile.
func median(b *testing.B, f func()) {
	times := make([]time.Duration, 0, b.N)
	for b.Loop() {
		start := time.Now()
		f()
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-us")
}

func BenchmarkRewrite(b *testing.B) {
	guard := rewrite.NewGuard(mysql.New(), 1000)
	schema, err := rewritetest.NewSchema(mysql.New(), fuzzDDL, fuzzPolicy)
	if err != nil {
		b.Fatal(err)
	}
	median(b, func() {
		if _, err := guard.Rewrite(fifteenLines, schema); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkParserAlone(b *testing.B) {
	median(b, func() { parsed(b, fifteenLines) })
}

func parsed(b *testing.B, sql string) {
	if _, _, err := parser.New().ParseSQL(sql); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkGrowth shows that time grows with the size of what is guarded and not faster, and what share of it is the
// parser's. Engines join at most 61 tables.
func BenchmarkGrowth(b *testing.B) {
	joins := func(n int) string {
		var sql strings.Builder
		sql.WriteString("SELECT t0.id FROM client t0")
		for i := 1; i < n; i++ {
			fmt.Fprintf(&sql, " JOIN client t%d ON t%d.id = t%d.region_id AND t%d.name <> 'x'", i, i, i-1, i)
		}
		return sql.String()
	}
	for _, c := range []struct {
		name  string
		sizes []int
		ddl   func(n int) string
		sql   func(n int) string
	}{
		{"tables in the catalog", []int{100, 1000, 10000}, func(n int) string {
			var ddl strings.Builder
			for i := range n {
				fmt.Fprintf(&ddl, "CREATE TABLE t%d (id INT, name VARCHAR(20));\n", i)
			}
			return fuzzDDL + ddl.String()
		}, func(int) string { return fifteenLines }},
		{"joins", []int{50, 150, 500}, nil, joins},
		{"bytes of values", []int{10_000, 100_000, 1_000_000}, nil, func(n int) string {
			return "SELECT name FROM client WHERE id IN (1" + strings.Repeat(",1234567", n/8) + ")"
		}},
		{"bytes of columns", []int{10_000, 100_000, 1_000_000}, nil, func(n int) string {
			return "SELECT c.name" + strings.Repeat(",c.name", n/7-10) + " FROM client c"
		}},
		{"bytes of unions", []int{10_000, 100_000, 700_000}, nil, func(n int) string {
			const one = "SELECT name FROM client WHERE id = 1"
			return one + strings.Repeat(" UNION ALL "+one, n/len(" UNION ALL "+one))
		}},
		{"depth of parentheses", []int{100, 300, 1000}, nil, func(n int) string {
			return "SELECT name FROM client WHERE " + strings.Repeat("(", n) + "id = 1" + strings.Repeat(" OR id = 2)", n)
		}},
		{"depth of subqueries", []int{100, 300, 900}, nil, func(n int) string {
			return strings.Repeat("SELECT name FROM (", n) + "SELECT name FROM client" + strings.Repeat(") x", n)
		}},
	} {
		for _, n := range c.sizes {
			ddl := fuzzDDL
			if c.ddl != nil {
				ddl = c.ddl(n)
			}
			guard, sql := rewrite.NewGuard(mysql.New(), 1000), c.sql(n)
			schema, err := rewritetest.NewSchema(mysql.New(), ddl, fuzzPolicy)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/%d/guard", c.name, n), func(b *testing.B) {
				median(b, func() {
					if _, err := guard.Rewrite(sql, schema); err != nil {
						b.Fatal(err)
					}
				})
			})
			b.Run(fmt.Sprintf("%s/%d/parser", c.name, n), func(b *testing.B) { median(b, func() { parsed(b, sql) }) })
		}
	}
}

// TestLargeStatementsEnd shows that no text of the permitted size overflows a stack or takes long.
func TestLargeStatementsEnd(t *testing.T) {
	const size = 1 << 20
	fit := func(head, unit, tail string) string {
		return head + strings.Repeat(unit, (size-len(head)-len(tail))/len(unit)) + tail
	}
	half := size/2 - 20
	for name, c := range map[string]struct{ sql, code string }{
		"parentheses":       {"SELECT " + strings.Repeat("(", half) + "1" + strings.Repeat(")", half), acl.CodeTooLarge},
		"open parentheses":  {fit("SELECT ", "(", ""), acl.CodeTooLarge},
		"sums":              {fit("SELECT 1", "+1", ""), acl.CodeTooLarge},
		"negations":         {fit("SELECT ", "NOT ", "1"), acl.CodeTooLarge},
		"signs":             {fit("SELECT ", "- ", "1"), acl.CodeTooLarge},
		"cases":             {strings.Repeat("CASE WHEN 1 THEN ", 1<<15), acl.CodeUnparsable},
		"nested cases":      {"SELECT " + strings.Repeat("CASE WHEN 1 THEN ", 30000) + "1" + strings.Repeat(" END", 30000), acl.CodeTooLarge},
		"alternatives":      {fit("SELECT id FROM region WHERE id=1", " OR id=1", ""), acl.CodeTooLarge},
		"unions":            {fit("SELECT 1", " UNION SELECT 1", ""), ""},
		"joins":             {fit("SELECT 1 FROM region", " NATURAL JOIN region", ""), ""},
		"an IN list":        {fit("SELECT id FROM region WHERE id IN (1", ",1", ")"), ""},
		"a string":          {fit("SELECT '", "''", "'"), ""},
		"a long number":     {"SELECT " + strings.Repeat("1", 100) + ".5", acl.CodeUnparsable},
		"wrapped too deep":  {"SELECT " + strings.Repeat("NOT ", 5000) + "1", acl.CodeTooLarge},
		"deep subqueries":   {strings.Repeat("SELECT name FROM (", 1000) + "SELECT name FROM client" + strings.Repeat(") x", 1000), ""},
		"1000 levels":       {"SELECT " + strings.Repeat("(", 1000) + "1" + strings.Repeat(")", 1000), ""},
		"5000 alternatives": {"SELECT id FROM region WHERE id=1" + strings.Repeat(" OR id=1", 5000), ""},
	} {
		t.Run(name, func(t *testing.T) {
			schema, err := rewritetest.NewSchema(mysql.New(), fuzzDDL, fuzzPolicy)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err = rewrite.NewGuard(mysql.New(), 0).Rewrite(c.sql, schema)
			var no *acl.Refusal
			if err != nil && !errors.As(err, &no) {
				t.Fatal(err)
			}
			if c.code != "" && (no == nil || no.Code != c.code) {
				t.Errorf("got %v, want a refusal with code %s", err, c.code)
			}
			t.Logf("%v, %v", time.Since(start), err)
		})
	}
}
