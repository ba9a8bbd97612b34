package tsql_test

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/sqlc-dev/teesql/parser"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/tsql"
)

const fuzzDDL = shop + `CREATE VIEW rich AS SELECT id, name FROM client;
CREATE VIEW owed AS SELECT client_id, SUM(amount) AS total FROM invoice GROUP BY client_id;
`

const fuzzPolicy = shopPolicy + `  - {table: db.dbo.client, roles: [reader], using: "id IN (SELECT client_id FROM invoice AS i WHERE i.id = client.id)"}
masks:
  - {column: db.dbo.client.name, roles: [reader], with: hash}
  - {column: db.dbo.invoice.memo, roles: [reader], with: partial}
`

// FuzzGuard holds for every text: it is refused, or it becomes one that the guard's own verification passes, the same
// each time, and that names no hidden column that the text did not name. Nothing panics and no bad text is a fault.
func FuzzGuard(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range a.Files {
			if part.Name == "in.sql" {
				f.Add(strings.TrimSuffix(string(part.Data), "\n"))
			}
		}
	}
	known := wrappers(f)
	_, objects, err := tsql.New().Objects("db", fuzzDDL)
	if err != nil {
		f.Fatal(err)
	}
	view := viewOf(f, fuzzPolicy, objects)
	f.Fuzz(func(t *testing.T, sql string) {
		var texts [2]string
		for i := range texts {
			st, err := rewrite.NewGuard(tsql.New(), 100).Rewrite(sql, schemaOf(t, view))
			var no *acl.Refusal
			if err != nil && !errors.As(err, &no) {
				t.Fatalf("a fault for %q: %v", sql, err)
			}
			texts[i] = st.Text()
			if no != nil {
				texts[i] = no.Code + no.Public
			}
			if name := naked(st.Text(), known); name != "" {
				t.Fatalf("%q reads %s as it is", st.Text(), name)
			}
			if strings.Contains(st.Text(), "ssn") && !strings.Contains(sql, "ssn") {
				t.Fatalf("%q names a hidden column", st.Text())
			}
		}
		if texts[0] != texts[1] {
			t.Fatalf("one text, two answers:\n%s\n%s", texts[0], texts[1])
		}
	})
}

// wrappers returns the texts that tables stand behind under fuzzPolicy.
func wrappers(f *testing.F) []string {
	var out []string
	for _, table := range []string{"region", "client", "invoice"} {
		for _, hint := range []string{"", " WITH (NOLOCK)", " WITH (READUNCOMMITTED)"} {
			for _, what := range []string{"id", "-id"} {
				st, no := guard(f, 0, "SELECT "+what+" AS x FROM "+table+hint, shop, fuzzPolicy)
				if no != nil {
					f.Fatal(no)
				}
				_, w, _ := strings.Cut(st.Text(), "FROM (SELECT ")
				out = append(out, "(SELECT "+strings.TrimSuffix(w, " AS "+table))
			}
		}
	}
	return out
}

var (
	inQuotes = regexp.MustCompile(`'(?:[^']|'')*'|\[(?:[^\]]|\]\])*\]`)
	withName = regexp.MustCompile(`(?:WITH|,) (\S+) (?:\([^()]*\) )?AS \(`)
	read     = regexp.MustCompile(`\b(?:FROM|JOIN|APPLY) ([^ ()]+)(\(?)`)
)

// naked looks, by the text alone, for a name behind a FROM, JOIN or APPLY that is neither of a WITH nor of a function.
func naked(text string, wrappers []string) string {
	for _, w := range wrappers {
		text = strings.ReplaceAll(text, w, "(wrapper)")
	}
	text = inQuotes.ReplaceAllString(text, "quoted")
	names := []string{"quoted"}
	for _, m := range withName.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	for _, m := range read.FindAllStringSubmatch(text, -1) {
		if m[2] == "" && !slices.Contains(names, strings.TrimRight(m[1], ",")) {
			return m[1]
		}
	}
	if strings.Contains(text, "dbo.") {
		return "dbo"
	}
	return ""
}

const fifteenLines = `WITH big AS (
  SELECT client_id, SUM(amount) AS total
  FROM invoice
  WHERE amount > 10
  GROUP BY client_id
)
SELECT TOP (10) r.name AS region,
       COUNT(DISTINCT c.id) AS clients,
       SUM(b.total) AS total,
       MAX(CASE WHEN b.total > 100 THEN 'large' ELSE 'small' END) AS kind
FROM region r
LEFT JOIN client c ON c.region_id = r.id
LEFT JOIN big b ON b.client_id = c.id
WHERE r.name LIKE 'n%' AND EXISTS (SELECT 1 FROM invoice i WHERE i.client_id = c.id)
GROUP BY r.name HAVING COUNT(*) > 1 ORDER BY total DESC`

// median times a function and reports the 50th percentile.
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
	guard := rewrite.NewGuard(tsql.New(), 1000)
	schema := newSchema(b, shop, shopPolicy)
	median(b, func() {
		if _, err := guard.Rewrite(fifteenLines, schema); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkParserAlone(b *testing.B) {
	median(b, func() {
		if _, err := parser.Parse(context.Background(), strings.NewReader(fifteenLines)); err != nil {
			b.Fatal(err)
		}
	})
}

func TestNakedTablesAreSeen(t *testing.T) {
	const wrapper = "(SELECT _gate.id FROM dbo.region AS _gate)"
	for text, want := range map[string]string{
		"SELECT id FROM " + wrapper + " AS region":                                                 "",
		"WITH r AS (SELECT id FROM " + wrapper + " AS x), s (a) AS (SELECT 1) SELECT id FROM r, s": "",
		"SELECT value FROM STRING_SPLIT('FROM x', ' ')":                                            "",
		"SELECT id FROM region":                                                                    "region",
		"SELECT id FROM " + wrapper + " AS r INNER JOIN region ON 1 = 1":                           "region",
		"SELECT id FROM " + wrapper + " AS r, dbo.region":                                          "dbo",
		"SELECT id FROM (SELECT _gate.id FROM dbo.region AS _gate WHERE 1 = 1) AS r":               "dbo.region",
	} {
		if got := naked(text, []string{wrapper}); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
