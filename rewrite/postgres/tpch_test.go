package postgres_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/tools/txtar"

	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/postgres"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

type tpch struct {
	conn    *pgx.Conn
	ddl     string
	queries []txtar.File
}

func newTPCH(t *testing.T) tpch {
	t.Helper()
	read := func(name string) string {
		b, err := os.ReadFile("testdata/tpch/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	ddl := read("schema.sql")
	queries := txtar.Parse([]byte(read("queries.txtar"))).Files
	if len(queries) != 22 {
		t.Fatalf("%d queries", len(queries))
	}
	return tpch{freshDatabase(t, "tpch", ddl+read("data.sql")), ddl, queries}
}

func (h tpch) guard(t *testing.T, policy, sql string) string {
	t.Helper()
	d := postgres.New()
	schema, err := rewritetest.NewSchema(d, h.ddl, policy)
	if err != nil {
		t.Fatal(err)
	}
	st, err := rewrite.NewGuard(d, 10000).Rewrite(sql, schema)
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return st.Text()
}

const allowAll = `version: 1
principals: {asker: {roles: [reader], attributes: {tenant: 1}}}
grants: [{role: reader, allow: ["*"], actions: [view, query]}]
`

const tenants = allowAll + `row_filters:
  - {table: db.public.supplier, roles: [reader], using: "tenant = {{ principal.tenant }}"}
  - {table: db.public.customer, roles: [reader], using: "tenant = {{ principal.tenant }}"}
  - {table: db.public.part, roles: [reader], using: "tenant = {{ principal.tenant }}"}
  - {table: db.public.partsupp, roles: [reader], using: "tenant = {{ principal.tenant }}"}
  - {table: db.public.orders, roles: [reader], using: "tenant = {{ principal.tenant }}"}
  - {table: db.public.lineitem, roles: [reader], using: "tenant = {{ principal.tenant }}"}
`

// place is a comment where somebody would write a table's filter by hand.
var place = regexp.MustCompile(`/\* (\w+) \*/`)

func TestTPCHGivesEqualRowsToWhoeverSeesAll(t *testing.T) {
	h := newTPCH(t)
	for _, q := range h.queries {
		original, guarded := run(h.conn, string(q.Data)), run(h.conn, h.guard(t, allowAll, string(q.Data)))
		if original.err != nil || guarded.err != nil || !slices.Equal(original.rows, guarded.rows) || !slices.Equal(original.names, guarded.names) {
			t.Errorf("%s: %v (%v), not %v (%v)", q.Name, guarded.rows, guarded.err, original.rows, original.err)
		}
		if len(original.rows) == 0 {
			t.Errorf("%s finds nothing", q.Name)
		}
	}
}

// TestTPCHGivesTheRowsOfHandWrittenFilters compares the filters of the policy with the same written into the queries.
func TestTPCHGivesTheRowsOfHandWrittenFilters(t *testing.T) {
	h := newTPCH(t)
	found := 0
	for _, q := range h.queries {
		byHand := run(h.conn, place.ReplaceAllString(string(q.Data), "AND $1.tenant = 1"))
		guarded := run(h.conn, h.guard(t, tenants, string(q.Data)))
		if byHand.err != nil || guarded.err != nil || !slices.Equal(byHand.rows, guarded.rows) {
			t.Errorf("%s: %v (%v), not %v (%v)", q.Name, guarded.rows, guarded.err, byHand.rows, byHand.err)
		}
		found += len(byHand.rows)
	}
	if found < 100 {
		t.Errorf("the queries find no more than %d rows", found)
	}
}

// TestTPCHAsViews makes a SQL view of each query, takes its definition as the server writes it, and reads the view.
func TestTPCHAsViews(t *testing.T) {
	h := newTPCH(t)
	for _, q := range h.queries {
		byHand := run(h.conn, place.ReplaceAllString(string(q.Data), "AND $1.tenant = 1"))
		if err := run(h.conn, "CREATE VIEW "+q.Name+" AS "+string(q.Data)).err; err != nil {
			t.Fatal(err)
		}
		var definition string
		if err := h.conn.QueryRow(context.Background(), "SELECT pg_get_viewdef($1::regclass)", q.Name).Scan(&definition); err != nil {
			t.Fatal(err)
		}
		viewed := tpch{h.conn, h.ddl + "CREATE VIEW " + q.Name + " AS " + definition, nil}
		if got := run(h.conn, viewed.guard(t, tenants, "SELECT * FROM "+q.Name)); got.err != nil || !slices.Equal(got.rows, byHand.rows) {
			t.Errorf("%s: %v (%v), not %v", q.Name, got.rows, got.err, byHand.rows)
		}
	}
}

// TestTPCHUsesTheIndexesOfHandWrittenFilters compares the plans. None of the queries needs a barrier: their arithmetic
// is on numbers of declared precision, and cannot fail on a hidden row.
func TestTPCHUsesTheIndexesOfHandWrittenFilters(t *testing.T) {
	h := newTPCH(t)
	if _, err := query(h.conn, "SET enable_seqscan = off; SET jit = off"); err != nil {
		t.Fatal(err)
	}
	index := regexp.MustCompile(`(?:using|Bitmap Index Scan on) (\w+)`)
	indexes := func(sql string) string {
		o := run(h.conn, "EXPLAIN (COSTS off) "+sql)
		if o.err != nil {
			t.Fatal(o.err)
		}
		var used []string
		for _, m := range index.FindAllStringSubmatch(strings.Join(o.rows, "\n"), -1) {
			used = append(used, m[1])
		}
		slices.Sort(used)
		return strings.Join(used, " ")
	}
	for _, q := range h.queries {
		guarded := h.guard(t, tenants, string(q.Data))
		if strings.Contains(guarded, "OFFSET 0") {
			t.Errorf("%s is behind a barrier\n%s", q.Name, guarded)
		}
		byHand := place.ReplaceAllString(string(q.Data), "AND $1.tenant = 1")
		if want, got := indexes(byHand), indexes(guarded); got != want || got == "" {
			t.Errorf("%s uses the indexes\n%s\nnot\n%s\n%s", q.Name, got, want, guarded)
		}
	}
}
