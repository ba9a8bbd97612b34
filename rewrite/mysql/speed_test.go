package mysql_test

import (
	"errors"
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
	median(b, func() {
		if _, _, err := parser.New().ParseSQL(fifteenLines); err != nil {
			b.Fatal(err)
		}
	})
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
