package warehouse_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/cmd/schemagate/warehouse"
	"github.com/schemagate/schemagate/cmd/schemagate/warehouse/warehousetest"
)

// built is the warehouse of seed 1 with its catalog; the tests only read it.
type built struct {
	dir      string
	db       *sql.DB
	snapshot *catalog.Snapshot
	policy   *acl.Policy
	took     time.Duration
}

var shared *built

func TestMain(m *testing.M) {
	code, err := func() (int, error) {
		root, err := os.MkdirTemp("", "warehouse")
		if err != nil {
			return 1, err
		}
		defer os.RemoveAll(root)
		if shared, err = build(context.Background(), root); err != nil {
			return 1, err
		}
		defer shared.db.Close()
		return m.Run(), nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func build(ctx context.Context, root string) (*built, error) {
	b := &built{dir: filepath.Join(root, "demo")}
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		return nil, err
	}
	start := time.Now()
	if err := warehouse.Build(ctx, b.dir, 1, nil); err != nil {
		return nil, err
	}
	b.took = time.Since(start)
	yaml := filepath.Join(root, "catalog.yaml")
	if err := os.WriteFile(yaml, warehouse.Catalog, 0o644); err != nil {
		return nil, err
	}
	var err error
	if b.snapshot, err = ingest.Load(ctx, []string{"sqlite:" + b.dir, "yaml:" + yaml}, nil); err != nil {
		return nil, err
	}
	if b.policy, err = acl.ParsePolicy("policy.yaml", warehouse.Policy); err != nil {
		return nil, err
	}
	b.db, err = warehousetest.Open(ctx, b.dir)
	return b, err
}

func TestTheWarehouseIsLarge(t *testing.T) {
	schemas, rows := map[string]bool{}, 0
	tables := shared.snapshot.Objects(catalog.KindTable)
	for _, o := range tables {
		schemas[o.Ref.Schema] = true
		var n int
		if err := shared.db.QueryRow("SELECT COUNT(*) FROM " + name(o.Ref)).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			t.Errorf("%s is empty", o.Ref)
		}
		rows += n
	}
	columns := shared.snapshot.OfKind(catalog.KindColumn).Len()
	t.Logf("%d schemas, %d tables, %d columns, %d rows in %v", len(schemas), len(tables), columns, rows, shared.took)
	for _, c := range []struct {
		what      string
		have, min int
	}{
		{"schemas", len(schemas), 6}, {"tables", len(tables), 60}, {"columns", columns, 640}, {"rows", rows, 230_000},
	} {
		if c.have < c.min {
			t.Errorf("%d %s, want at least %d", c.have, c.what, c.min)
		}
	}
	for kind, want := range map[catalog.Kind]int{catalog.KindMetric: 12, catalog.KindQuery: 40} {
		if n := shared.snapshot.OfKind(kind).Len(); n != want {
			t.Errorf("%d objects of kind %s, want %d", n, kind, want)
		}
	}
}

func TestEveryDateLiesInTheThreeYears(t *testing.T) {
	for _, o := range shared.snapshot.Objects(catalog.KindColumn) {
		if kind := o.Column.Type; kind != "DATE" && kind != "DATETIME" || o.Ref.Column == "birth_dt" {
			continue
		}
		q := fmt.Sprintf("SELECT COUNT(*) FROM %[1]s WHERE %[2]s NOT BETWEEN '2023-01-01' AND '2025-12-31 23:59:59'", name(o.Ref.TableRef()), o.Ref.Column)
		if n := count(t, q); n > 0 {
			t.Errorf("%s: %d dates outside 2023 to 2025", o.Ref, n)
		}
	}
}

func TestTheCalendarIsRight(t *testing.T) {
	wrong := count(t, `SELECT COUNT(*) FROM ref.calendar WHERE yr <> CAST(strftime('%Y', cal_dt) AS INTEGER)
		OR mth_no <> CAST(strftime('%m', cal_dt) AS INTEGER) OR yr_mth <> strftime('%Y-%m', cal_dt)
		OR flg_wkend <> (strftime('%w', cal_dt) IN ('0', '6')) OR (dow = 'Sun') <> (strftime('%w', cal_dt) = '0')
		OR qtr <> 'Q' || ((mth_no + 2) / 3)`)
	if wrong > 0 {
		t.Errorf("%d days are wrong", wrong)
	}
}

func TestAmountsAgreeBetweenTables(t *testing.T) {
	for _, q := range []string{
		"SELECT COUNT(*) FROM sales.orders AS o WHERE amt_net_rev_eur <> (SELECT SUM(amt_net_eur) FROM sales.fct_ord_ln AS l WHERE l.ord_id = o.ord_id)",
		"SELECT COUNT(*) FROM sales.orders AS o WHERE amt_net_rev_eur <> (SELECT SUM(amt_net_alloc_eur) FROM sales.order_promotions AS p WHERE p.ord_id = o.ord_id)",
		"SELECT COUNT(*) FROM sales.orders AS o JOIN crm.customers AS c ON c.cust_id = o.cust_id WHERE c.region <> o.region OR c.dt_since > o.dt_ord",
		"SELECT COUNT(*) FROM sales.orders AS o JOIN ref.countries AS c ON c.iso2 = o.ship_ctry_cd WHERE c.sales_region <> o.region OR c.curr_cd <> o.curr_cd",
	} {
		if n := count(t, q); n > 0 {
			t.Errorf("%d rows disagree: %s", n, q)
		}
	}
}

func TestTheMonthlyEventTablesHaveOneShapeAndTheirOwnMonth(t *testing.T) {
	var shape string
	for m := 1; m <= 12; m++ {
		table := fmt.Sprintf("web.events_2025%02d01", m)
		var ddl string
		if err := shared.db.QueryRow("SELECT sql FROM web.sqlite_master WHERE name = ?", strings.TrimPrefix(table, "web.")).Scan(&ddl); err != nil {
			t.Fatal(err)
		}
		_, ddl, _ = strings.Cut(ddl, "(")
		if shape == "" {
			shape = ddl
		}
		if ddl != shape {
			t.Errorf("%s has another shape:\n%s", table, ddl)
		}
		if n := count(t, fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE substr(ev_ts, 1, 7) <> '2025-%02d'", table, m)); n > 0 {
			t.Errorf("%s holds %d events of other months", table, n)
		}
	}
}

func TestDeclaredKeysHold(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(shared.dir, "*.db"))
	for _, f := range files {
		schema := strings.TrimSuffix(filepath.Base(f), ".db")
		if n := count(t, fmt.Sprintf("SELECT COUNT(*) FROM pragma_foreign_key_check(NULL, '%s')", schema)); n > 0 {
			t.Errorf("%s: %d rows point nowhere", schema, n)
		}
	}
}

func TestOneSeedGivesOneWarehouse(t *testing.T) {
	again := func(seed uint64) *sql.DB {
		dir := t.TempDir()
		var mu sync.Mutex
		var said []string
		err := warehouse.Build(t.Context(), dir, seed, func(s string) {
			if !mu.TryLock() {
				t.Error("progress was told two things at a time")
				return
			}
			defer mu.Unlock()
			said = append(said, s)
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(said) != 8 {
			t.Errorf("progress heard %d lines, want one for each of 8 files: %q", len(said), said)
		}
		db, err := warehousetest.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	if contents(t, again(1)) != contents(t, shared.db) {
		t.Error("two builds with seed 1 differ")
	}
	revenue := func(db *sql.DB) (cents int64) {
		if err := db.QueryRow("SELECT SUM(amt_net_rev_eur) FROM sales.orders").Scan(&cents); err != nil {
			t.Fatal(err)
		}
		return cents
	}
	if revenue(again(2)) == revenue(shared.db) {
		t.Error("seeds 1 and 2 give the same orders")
	}
}

func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		if err := warehouse.Build(b.Context(), b.TempDir(), 1, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func TestBuildRefusesToReplaceAFileAndLeavesNothingWhenItFails(t *testing.T) {
	list := func(dir string) (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	t.Run("a file is there", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "hr.db"), []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		err := warehouse.Build(t.Context(), dir, 1, nil)
		if err == nil || !strings.Contains(err.Error(), "hr.db") || !strings.Contains(err.Error(), "empty directory") {
			t.Errorf("error %v does not name the file and what to do", err)
		}
		if got := list(dir); !slices.Equal(got, []string{"hr.db"}) {
			t.Errorf("left %v", got)
		}
	})
	t.Run("it was cancelled", func(t *testing.T) {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		if err := warehouse.Build(ctx, dir, 1, func(string) { cancel() }); err == nil {
			t.Error("no error after a cancellation")
		}
		if got := list(dir); len(got) > 0 {
			t.Errorf("left %v", got)
		}
	})
	t.Run("there is no such directory", func(t *testing.T) {
		if err := warehouse.Build(t.Context(), filepath.Join(t.TempDir(), "none"), 1, nil); err == nil {
			t.Error("no error")
		}
	})
}

func TestEveryPastQueryRunsAndFindsRows(t *testing.T) {
	for _, o := range shared.snapshot.Objects(catalog.KindQuery) {
		if n := count(t, "SELECT COUNT(*) FROM ("+o.Query.SQL+")"); n == 0 {
			t.Errorf("%s finds no row", o.Ref)
		}
	}
}

// A query that mentions more tables than it reads is hidden from people who may see all that it reads.
func TestNoPastQueryMentionsATableThatItDoesNotRead(t *testing.T) {
	for _, o := range shared.snapshot.Objects(catalog.KindQuery) {
		for _, table := range o.Query.Tables {
			if !strings.Contains(o.Query.SQL, name(table)+" AS ") {
				t.Errorf("%s names %s", o.Ref, table)
			}
		}
	}
}

func TestEveryMetricRuns(t *testing.T) {
	for _, o := range shared.snapshot.Objects(catalog.KindMetric) {
		m := o.Metric
		q := "SELECT " + m.Formula + " FROM " + name(m.Sources[0])
		if len(m.Sources) > 1 {
			t.Fatalf("%s has several sources; join them here", o.Ref)
		}
		if len(m.Filters) > 0 {
			q += " WHERE (" + strings.Join(m.Filters, ") AND (") + ")"
		}
		var value sql.NullFloat64
		if err := shared.db.QueryRow(q).Scan(&value); err != nil {
			t.Errorf("%s: %v", o.Ref, err)
		} else if value.Float64 <= 0 {
			t.Errorf("%s is %v", o.Ref, value)
		}
		for _, f := range m.Filters {
			if count(t, fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE NOT coalesce(%s, FALSE)", name(m.Sources[0]), f)) == 0 {
				t.Errorf("%s: filter %s leaves nothing out", o.Ref, f)
			}
		}
		if m.Unit == "percent" && value.Float64 >= 100 {
			t.Errorf("%s is %v percent", o.Ref, value.Float64)
		}
	}
}

// Grouping by a dimension must not multiply what is summed: it is reached through keys that hit at most one row.
func TestDimensionsAreReachedWithoutMultiplyingRows(t *testing.T) {
	next := map[catalog.Ref][]catalog.Ref{}
	for _, o := range shared.snapshot.Objects(catalog.KindRelationship) {
		from, to := o.Relationship.From[0].TableRef(), o.Relationship.To[0].TableRef()
		switch o.Relationship.Cardinality {
		case catalog.OneToOne:
			next[from], next[to] = append(next[from], to), append(next[to], from)
		case catalog.ManyToOne:
			next[from] = append(next[from], to)
		}
	}
	for _, o := range shared.snapshot.Objects(catalog.KindMetric) {
		reached := map[catalog.Ref]bool{o.Metric.Sources[0]: true}
		for queue := []catalog.Ref{o.Metric.Sources[0]}; len(queue) > 0; queue = queue[1:] {
			for _, r := range next[queue[0]] {
				if !reached[r] {
					reached[r] = true
					queue = append(queue, r)
				}
			}
		}
		for _, d := range append(slices.Clone(o.Metric.Dimensions), o.Metric.Time) {
			if !d.IsZero() && !reached[d.TableRef()] {
				t.Errorf("%s cannot reach %s", o.Ref, d)
			}
		}
	}
}

func TestRelationshipsAreWhatTheySay(t *testing.T) {
	for _, o := range shared.snapshot.Objects(catalog.KindRelationship) {
		r := o.Relationship
		if len(r.From) != 1 {
			continue
		}
		from, to := name(r.From[0].TableRef()), name(r.To[0].TableRef())
		f, k := r.From[0].Column, r.To[0].Column
		unique := func(table, column string) {
			if n := count(t, fmt.Sprintf("SELECT COUNT(%[2]s) - COUNT(DISTINCT %[2]s) FROM %[1]s", table, column)); n > 0 {
				t.Errorf("%s is %s, but %s.%s repeats", o.Ref, r.Cardinality, table, column)
			}
		}
		unique(to, k)
		if r.Cardinality == catalog.OneToOne {
			unique(from, f)
		}
		orphans := count(t, fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s IS NOT NULL AND %[2]s NOT IN (SELECT %s FROM %s)", from, f, k, to))
		if r.Validated && orphans > 0 {
			t.Errorf("%s is validated, but %d values of %s.%s point nowhere", o.Ref, orphans, from, f)
		}
		if !r.Validated && orphans == 0 {
			t.Errorf("%s holds everywhere; mark it validated", o.Ref)
		}
	}
}

func TestEveryDenyFilterAndMaskCoversSomething(t *testing.T) {
	for _, rule := range shared.policy.Unmatched(shared.snapshot) {
		t.Error(rule)
	}
}

func TestEveryRowFilterAndMaskRuns(t *testing.T) {
	expand := func(sql string) string {
		sql = strings.ReplaceAll(sql, "{{ principal.region }}", "'EMEA'")
		return strings.ReplaceAll(sql, "{{ principal.country }}", "'DE'")
	}
	for _, f := range shared.policy.RowFilters {
		for _, o := range shared.snapshot.Objects(catalog.KindTable) {
			if !f.Table.Covers(catalog.SQLite, o.Ref) {
				continue
			}
			total := count(t, "SELECT COUNT(*) FROM "+name(o.Ref))
			seen := count(t, "SELECT COUNT(*) FROM "+name(o.Ref)+" WHERE "+expand(f.Using))
			if all := f.Using == "1 = 1"; seen == 0 || all != (seen == total) {
				t.Errorf("%s shows %d of %d rows of %s", f.Rule, seen, total, o.Ref)
			}
		}
	}
	for _, m := range shared.policy.Masks {
		for _, o := range shared.snapshot.Objects(catalog.KindColumn) {
			if m.Kind == acl.MaskExpression && m.Column.Covers(catalog.SQLite, o.Ref) {
				count(t, "SELECT COUNT("+expand(m.Expression)+") FROM "+name(o.Ref.TableRef()))
			}
		}
	}
}

func TestPrincipalsGetDifferentMetrics(t *testing.T) {
	engine, err := casbin.New(shared.policy, shared.snapshot)
	if err != nil {
		t.Fatal(err)
	}
	view := func(name string) acl.View {
		v, err := engine.View(name)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for name, want := range map[string][]string{
		"alice": {"active_customers", "average_order_value", "conversion_rate", "net_revenue", "open_tickets", "promoted_revenue", "return_rate"},
		"bob":   {"active_customers", "average_order_value", "gross_margin", "headcount", "net_revenue", "on_time_delivery_rate", "promoted_revenue", "return_rate", "stock_value"},
		"carol": {"average_salary", "headcount"},
		"dana":  {"on_time_delivery_rate", "stock_value"},
	} {
		v := view(name)
		var got []string
		for _, o := range shared.snapshot.Objects(catalog.KindMetric) {
			if v.Queryable(o.ID) {
				got = append(got, o.Ref.Name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s can query %v, want %v", name, got, want)
		}
	}
	dana := view("dana")
	for _, a := range []acl.Action{acl.ActionAudit, acl.ActionImpersonate} {
		if !dana.MayEverywhere(a) {
			t.Errorf("dana may not %s everywhere", a)
		}
	}
	for _, o := range shared.snapshot.All() {
		// What was asked about protected rows is not for whoever may not see those rows.
		if o.Ref.Kind != catalog.KindQuery && !dana.May(acl.ActionEdit, o.ID) {
			t.Errorf("dana may not see and edit %s", o.Ref)
		}
	}
	for _, o := range shared.snapshot.Objects(catalog.KindColumn) {
		if slices.Contains(o.Tags, "pii") && dana.Queryable(o.ID) {
			t.Errorf("dana can query %s", o.Ref)
		}
	}
}

func TestExpectedAnswersDifferByPrincipal(t *testing.T) {
	answers := map[string]map[string]string{}
	answered := map[string]bool{}
	for _, e := range warehousetest.Expectations() {
		if !slices.Contains(warehouse.Questions[:], e.Question) {
			t.Errorf("%q is no question of the demo", e.Question)
		}
		rows, err := e.Rows(t.Context(), shared.db)
		if err != nil {
			t.Fatal(err)
		}
		if (e.SQL == "") != (len(rows) == 0) {
			t.Errorf("%s gets %d rows for %q", e.Principal, len(rows), e.Question)
		}
		answered[e.Question] = answered[e.Question] || len(rows) > 0
		if answers[e.Question] == nil {
			answers[e.Question] = map[string]string{}
		}
		answers[e.Question][e.Principal] = fmt.Sprint(rows)
	}
	for question, by := range answers {
		t.Logf("%s: %.200v", question, by)
		different := map[string]bool{}
		for a := range maps.Values(by) {
			different[a] = true
		}
		if answered[question] && len(different) < 2 {
			t.Errorf("%q has the same answer for everybody", question)
		}
	}
}

// name writes a table the way statements do.
func name(table catalog.Ref) string { return table.Schema + "." + table.Table }

func count(t *testing.T, query string) (n int) {
	t.Helper()
	if err := shared.db.QueryRow(query).Scan(&n); err != nil {
		t.Errorf("%s: %v", query, err)
	}
	return n
}

// contents hashes every row of every table.
func contents(t *testing.T, db *sql.DB) string {
	t.Helper()
	h := sha256.New()
	for _, o := range shared.snapshot.Objects(catalog.KindTable) {
		var columns []string
		for _, c := range shared.snapshot.Columns(o.ID) {
			columns = append(columns, "quote("+c.Ref.Column+")")
		}
		rows, err := db.Query("SELECT " + strings.Join(columns, " || ',' || ") + " || char(10) FROM " + name(o.Ref))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(h, o.Ref, columns)
		var row sql.RawBytes
		for rows.Next() {
			if err := rows.Scan(&row); err != nil {
				t.Fatal(err)
			}
			h.Write(row)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	return hex.EncodeToString(h.Sum(nil))
}
