package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/sqlc-dev/meyer/ast"
	"github.com/sqlc-dev/meyer/parser"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
	"github.com/schemagate/schemagate/rewrite/sqlite"
)

const (
	shop = `CREATE TABLE client(id INTEGER PRIMARY KEY, tenant INTEGER, name TEXT, ssn TEXT);
CREATE TABLE invoice(id INTEGER PRIMARY KEY, tenant INTEGER, client_id INTEGER REFERENCES client, amount REAL);
`
	shopPolicy = `version: 1
principals: {asker: {roles: [reader], attributes: {tenant: 7}}}
grants:
  - {role: reader, allow: ["*"], actions: [view, query]}
  - {role: reader, deny: [db.client.ssn]}
row_filters:
  - {table: db.invoice, roles: [reader], using: "tenant = {{ principal.tenant }}"}
`
)

func newSchema(t testing.TB, ddl, policy string) *rewrite.Schema {
	t.Helper()
	s, err := rewritetest.NewSchema(sqlite.New(), ddl, policy)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// refusal guards a statement that must be refused.
func refusal(t *testing.T, statement string, s *rewrite.Schema) *acl.Refusal {
	t.Helper()
	st, err := rewrite.NewGuard(sqlite.New(), 0).Rewrite(statement, s)
	var no *acl.Refusal
	if !errors.As(err, &no) {
		t.Fatalf("%.80s: got %q, %v", statement, st.Text(), err)
	}
	return no
}

func TestReadsNameTablesColumnsAndRulesInTheOrderOfTheText(t *testing.T) {
	st, err := rewrite.NewGuard(sqlite.New(), 0).Rewrite(
		`WITH w AS (SELECT amount FROM invoice) SELECT c.name, (SELECT max(id) FROM invoice WHERE client_id = c.id) FROM client c, w`,
		newSchema(t, shop, shopPolicy))
	if err != nil {
		t.Fatal(err)
	}
	column := func(table, name string) catalog.Ref { return catalog.ColumnRef("db", "", table, name) }
	want := []rewrite.Read{
		{
			Table:   catalog.TableRef("db", "", "invoice"),
			Columns: []catalog.Ref{column("invoice", "amount"), column("invoice", "id"), column("invoice", "client_id")},
			Rules:   []string{"line 7: row filter on db.invoice"},
		},
		{Table: catalog.TableRef("db", "", "client"), Columns: []catalog.Ref{column("client", "name"), column("client", "id")}},
	}
	if got := st.Reads(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestReadsNameSQLViewsAndTheirTables(t *testing.T) {
	ddl := shop + "CREATE VIEW total(client, sum) AS SELECT client_id, sum(amount) FROM invoice GROUP BY client_id;"
	st, err := rewrite.NewGuard(sqlite.New(), 0).Rewrite("SELECT name, sum FROM client JOIN total t ON t.client = id", newSchema(t, ddl, shopPolicy))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range st.Reads() {
		line := r.Table.Table
		for _, c := range r.Columns {
			line += " " + c.Column
		}
		got = append(got, fmt.Sprint(line, len(r.Rules)))
	}
	if want := []string{"client name id0", "total sum client0", "invoice client_id amount1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSQLViewsAreBounded(t *testing.T) {
	var deep, wide strings.Builder
	deep.WriteString(shop + "CREATE VIEW v0 AS SELECT id FROM invoice;")
	wide.WriteString(deep.String())
	for i := range 40 {
		fmt.Fprintf(&deep, "CREATE VIEW v%d AS SELECT id FROM v%d;", i+1, i)
		fmt.Fprintf(&wide, "CREATE VIEW v%d AS SELECT a.id FROM v%d a, v%d b;", i+1, i, i)
	}
	if _, err := rewrite.NewGuard(sqlite.New(), 0).Rewrite("SELECT id FROM v31", newSchema(t, deep.String(), shopPolicy)); err != nil {
		t.Errorf("32 SQL views in one another: %v", err)
	}
	if no := refusal(t, "SELECT id FROM v40", newSchema(t, deep.String(), shopPolicy)); no.Code != acl.CodeNotSupported {
		t.Errorf("41 SQL views in one another: %+v", *no)
	}
	long := shop + "CREATE VIEW v AS SELECT id /* " + strings.Repeat("x", 100_000) + " */ FROM invoice;"
	if no := refusal(t, "SELECT 1 FROM v"+strings.Repeat(", v", 11), newSchema(t, long, shopPolicy)); no.Code != acl.CodeTooLarge {
		t.Errorf("SQL views of 100,000 bytes each: %+v", *no)
	}
	if no := refusal(t, "SELECT id FROM v30", newSchema(t, wide.String(), shopPolicy)); no.Code != acl.CodeTooLarge {
		t.Errorf("SQL views that double: %+v", *no)
	}
}

func TestAStarReadsTheVisibleColumns(t *testing.T) {
	st, err := rewrite.NewGuard(sqlite.New(), 0).Rewrite("SELECT * FROM client", newSchema(t, shop, shopPolicy))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range st.Reads()[0].Columns {
		got = append(got, c.Column)
	}
	if want := []string{"id", "tenant", "name"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestHiddenReadsLikeAbsent compares refusals about a hidden name with those about a name of the same length that
// nobody has, for every place where a name can stand.
func TestHiddenReadsLikeAbsent(t *testing.T) {
	policy := shopPolicy + "  - {table: db.client, roles: [reader], using: 1 = 1}\n"
	policy = strings.Replace(policy, "[db.client.ssn]", "[db.client.ssn, db.vault]", 1)
	s := newSchema(t, shop+"CREATE TABLE vault(id INTEGER);", policy)
	for _, statement := range []string{
		"SELECT @col FROM client", `SELECT "@col" FROM client`, "SELECT [@col] FROM client", "SELECT client.@col FROM client",
		"SELECT main.client.@col FROM client", "SELECT 1 FROM client WHERE @col = 1", "SELECT 1 FROM client GROUP BY @col",
		"SELECT 1 FROM client ORDER BY @col", "SELECT 1 FROM client ORDER BY @col + 1", "SELECT 1 FROM client JOIN client c USING (@col)",
		"SELECT 1 FROM client a JOIN client b ON a.@col = b.@col", "SELECT sum(1) OVER (ORDER BY @col) FROM client",
		"SELECT (SELECT @col) FROM client", "SELECT id FROM client UNION SELECT tenant FROM client ORDER BY @col",
		"SELECT count(*) FILTER (WHERE @col) FROM client", "SELECT 1 FROM (SELECT * FROM client) WHERE @col", "SELECT 1 FROM client HAVING @col",
		"SELECT 1 FROM @table", "SELECT 1 FROM main.@table", `SELECT 1 FROM "@table"`, "SELECT 1 IN @table", "SELECT (SELECT 1 FROM @table)",
		"WITH x AS (SELECT 1 FROM @table) SELECT 1", "SELECT @table.* FROM client", "SELECT @table.id FROM client",
	} {
		with := func(column, table string) *acl.Refusal {
			return refusal(t, strings.NewReplacer("@col", column, "@table", table).Replace(statement), s)
		}
		hidden, absent := with("ssn", "vault"), with("xyz", "voult")
		for _, r := range []*acl.Refusal{hidden, absent} {
			r.Public = strings.NewReplacer("ssn", "@", "xyz", "@", "vault", "@", "voult", "@").Replace(r.Public)
			r.Detail = ""
		}
		if *hidden != *absent {
			t.Errorf("%s: hidden %+v, absent %+v", statement, *hidden, *absent)
		}
	}
}

func TestTheNumberOfRowsIsCapped(t *testing.T) {
	db := open(t, "CREATE TABLE n(i INTEGER); INSERT INTO n VALUES (1), (2), (3), (4), (5);")
	guard := rewrite.NewGuard(sqlite.New(), 3)
	for _, c := range []struct{ statement, want string }{
		{"SELECT i FROM n ORDER BY i", "1 2 3"},
		{"SELECT i FROM n ORDER BY i LIMIT 2", "1 2"},
		{"SELECT i FROM n ORDER BY i LIMIT 4", "1 2 3"},
		{"SELECT i FROM n ORDER BY i LIMIT 4 OFFSET 3", "4 5"},
		{"SELECT i FROM n ORDER BY i LIMIT 1, 9", "2 3 4"},
		{"SELECT i FROM n ORDER BY i LIMIT -1", "1 2 3"},
		{"SELECT i FROM n ORDER BY i DESC LIMIT '4'", "5 4 3"},
		{"SELECT i FROM n ORDER BY i DESC LIMIT (SELECT 2)", "5 4"},
		{"SELECT i FROM n ORDER BY i DESC LIMIT 99999999999999999999999999", "5 4 3"},
		{"SELECT i FROM n UNION ALL SELECT i FROM n ORDER BY i", "1 1 2"},
		{"VALUES (9), (8), (7), (6)", "9 8 7"},
		{"SELECT i FROM n WHERE i > 4 UNION ALL VALUES (8), (7), (6)", "5 8 7"},
	} {
		st, err := guard.Rewrite(c.statement, newSchema(t, "CREATE TABLE n(i INTEGER)", allowAll))
		if err != nil {
			t.Errorf("%s: %v", c.statement, err)
			continue
		}
		got, err := query(db, st.Text())
		if strings.Contains(c.statement, "9999999999") { // SQLite itself refuses such a count
			if err == nil {
				t.Errorf("%s: got %v", c.statement, got)
			}
			continue
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %v, %v, want %s; ran %s", c.statement, got, err, c.want, st.Text())
		}
	}
}

// TestFaultyPoliciesAreFaults: a condition that cannot be bound must stop every statement on its table.
func TestFaultyPoliciesAreFaults(t *testing.T) {
	for using, why := range map[string]string{
		"tenant = '{{ principal.tenant }}'":          "stands 0 times",
		"tenant = 1 /* {{ principal.tenant }} */":    "stands 0 times",
		"tenant = {{ principal.tenant }} or id = ?1": "stands 2 times",
		"tenant = ?":                                            "parameter ?",
		"tenant = :tenant":                                      "parameter :tenant",
		"tenant = {{ principal.tenant }}5":                      "parameter ?15",
		"tenants = 7":                                           "tenants is not available",
		`tenant = "seven"`:                                      "not available",
		"client.tenant = 7":                                     "not available",
		"id in (select id from nobody)":                         "nobody is not available",
		"id in (select x from (select * from client))":          "star",
		"tenant = load_extension('x')":                          "load_extension",
		"tenant in (select 1 from pragma_table_info('client'))": "pragma_table_info",
		"tenant = {{ principal.tenants }}":                      "IN list",
		"tenant in (1, {{ principal.tenants }})":                "IN list",
		"tenant = 7) or (1 = 1":                                 "syntax error",
		"tenant = 7; select 1":                                  "syntax error",
		"tenant = 7 --":                                         "",
	} {
		policy := strings.Replace(shopPolicy, "tenant: 7}", "tenant: 7, tenants: [1, 2]}", 1)
		policy = strings.Replace(policy, `"tenant = {{ principal.tenant }}"`, "'"+strings.ReplaceAll(using, "'", "''")+"'", 1)
		st, err := rewrite.NewGuard(sqlite.New(), 0).Rewrite("SELECT id FROM invoice", newSchema(t, shop, policy))
		var no *acl.Refusal
		switch {
		case why == "":
			if err != nil || !strings.Contains(st.Text(), "WHERE (tenant = 7)") {
				t.Errorf("%s: %v %s", using, err, st.Text())
			}
		case err == nil || errors.As(err, &no) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "line 7"):
			t.Errorf("%s: got %v %q, want a fault that says %q and the line", using, err, st.Text(), why)
		}
	}
}

// TestGovernedTrustsNothing hands texts to the last check that no guard would have printed.
func TestGovernedTrustsNothing(t *testing.T) {
	const wrapper = "(SELECT id, tenant, client_id, amount FROM main.invoice WHERE (tenant = 7)) AS invoice"
	const seen = "WITH `view main.v` (id, amount) AS (SELECT id, amount FROM (SELECT id, tenant, client_id, amount FROM main.invoice WHERE (main.invoice.tenant = 7)) AS invoice) SELECT id FROM `view main.v` AS v WHERE (id > 1)"
	const barred = "(SELECT id, tenant, client_id, amount FROM main.invoice WHERE (tenant = 7) LIMIT - 1 OFFSET 0) AS invoice"
	for text, governed := range map[string]bool{
		"SELECT id FROM " + wrapper:                        true,
		"SELECT id FROM " + barred:                         false, // a barrier that nothing asks for
		"SELECT abs(id) FROM " + barred:                    true,
		"SELECT abs(id) FROM " + wrapper:                   false,
		"WITH invoice AS (SELECT 1) SELECT * FROM invoice": true,
		"SELECT 1 FROM invoice":                            false,
		"SELECT 1 FROM main.invoice":                       false,
		"SELECT 1 FROM main.client":                        false,
		"SELECT 1 FROM main.other":                         true,
		"SELECT 1 FROM other":                              false,
		"SELECT 1 FROM main.sqlite_master":                 false,
		"SELECT 1 IN main.other":                           false,
		"SELECT 1 FROM (SELECT id, tenant, client_id, amount FROM main.invoice WHERE (tenant = 8)) AS invoice": false,
		"SELECT 1 FROM (SELECT id FROM main.invoice WHERE (tenant = 7)) AS invoice":                            false,
		"SELECT 1 FROM (SELECT id, tenant, name, ssn FROM main.client) AS client":                              false,
		"SELECT 1 FROM (SELECT id, tenant, name FROM main.client) AS client":                                   true,
		"SELECT (SELECT id FROM main.invoice WHERE (tenant = 7))":                                              false,
		"SELECT (WITH x AS (SELECT 1) SELECT 1), (SELECT 1 FROM x)":                                            false,
		"SELECT load_extension('x')":                                                                                    false,
		"SELECT 1 FROM (SELECT id FROM main.other) AS other":                                                            true, // of a table that is seen whole too
		"SELECT 1 FROM (SELECT id, rowid FROM main.other) AS other":                                                     true, // as the asker could have written
		"SELECT 1 FROM (" + seen + ") AS v":                                                                             true,
		"SELECT 1 FROM main.v":                                                                                          false,
		"SELECT 1 FROM (" + strings.Replace(seen, "main.invoice.tenant = 7", "1", 1) + ") AS v":                         false,
		"SELECT 1 FROM (" + strings.Replace(seen, " WHERE (id > 1)", "", 1) + ") AS v":                                  false,
		"SELECT 1 FROM (" + strings.Replace(seen, "SELECT id FROM `view", "SELECT id, amount FROM `view", 1) + ") AS v": false,
		"WITH `view main.v`(id) AS (SELECT 1) SELECT 1 FROM `view main.v`":                                              false,
		"SELECT (WITH `view main.v`(id) AS (SELECT 1) SELECT 1)":                                                        false,
		"WITH `view main.w`(id) AS (SELECT 1) SELECT 1 FROM `view main.w`":                                              true, // no view
		"SELECT abs(1) FROM (" + seen + ") AS v":                                                                        false,
		"SELECT abs(1) FROM (" + strings.NewReplacer(" WHERE (main.invoice.tenant = 7)", " WHERE (main.invoice.tenant = 7) LIMIT - 1 OFFSET 0", "(id > 1)", "(id > 1) LIMIT - 1 OFFSET 0").Replace(seen) + ") AS v": true,
		"SELECT 1 FROM (" + strings.TrimSuffix(wrapper[1:], ") AS invoice") + " UNION ALL SELECT 1, 1, 1, 1 FROM main.invoice)":                                                                                     false,
	} {
		tree, err := sqlite.New().Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Single(); err != nil {
			t.Fatal(err)
		}
		policy := strings.Replace(shopPolicy, "[db.client.ssn]", "[db.client.ssn, db.v.amount]", 1) + "  - {table: db.v, roles: [reader], using: id > 1}\n"
		err = tree.Governed(newSchema(t, shop+"CREATE TABLE other(id INTEGER); CREATE VIEW v AS SELECT id, amount FROM invoice;", policy))
		if (err == nil) != governed {
			t.Errorf("%s: governed %t, want %t (%v)", text, err == nil, governed, err)
		}
	}
}

// TestTreesAreComparedNodeByNode compares each statement with itself, written otherwise, and with all others, some of
// which print alike.
func TestTreesAreComparedNodeByNode(t *testing.T) {
	statements := []string{
		"SELECT 1", "SELECT 2", "SELECT '1'", "SELECT 1.0", "SELECT x'01'", "SELECT NULL", "SELECT a", "SELECT `a`", "SELECT b", "SELECT t.a", "SELECT s.t.a",
		"SELECT *", "SELECT t.*", "SELECT a AS b", "SELECT a b", "SELECT DISTINCT a", "SELECT ALL a", "SELECT a, a", "SELECT (a)", "SELECT - a", "SELECT + a",
		"SELECT a + b", "SELECT a - b", "SELECT (a + b) * c", "SELECT a + b * c", "SELECT a COLLATE x", "SELECT a LIKE b", "SELECT a NOT LIKE b", "SELECT a GLOB b",
		"SELECT a LIKE b ESCAPE c", "SELECT a IS b", "SELECT a IS NOT b", "SELECT a IS DISTINCT FROM b", "SELECT a ISNULL", "SELECT a NOTNULL",
		"SELECT a BETWEEN b AND c", "SELECT a NOT BETWEEN b AND c", "SELECT a IN (b)", "SELECT a NOT IN (b)", "SELECT a IN ()", "SELECT a IN (SELECT b)",
		"SELECT CASE a WHEN b THEN c END", "SELECT CASE WHEN b THEN c END", "SELECT CASE WHEN b THEN c ELSE d END", "SELECT CAST(a AS INT)", "SELECT CAST(a AS)", "SELECT CAST(a AS INT(3))",
		"SELECT (a, b)", "SELECT f(a)", "SELECT f(DISTINCT a)", "SELECT f(*)", "SELECT f()", "SELECT f(a ORDER BY b)", "SELECT f(a) FILTER (WHERE b)", "SELECT f(a) OVER ()",
		"SELECT f(a) OVER w", "SELECT f(a) OVER (w)", "SELECT f(a) OVER (PARTITION BY b)", "SELECT f(a) OVER (ORDER BY b)", "SELECT f(a) OVER (ROWS 1 PRECEDING)",
		"SELECT f(a) OVER (ROWS 2 PRECEDING)", "SELECT f(a) OVER (RANGE CURRENT ROW)", "SELECT f(a) OVER (ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING EXCLUDE TIES)",
		"SELECT f(a) OVER (ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)", "SELECT EXISTS (SELECT 1)", "SELECT (SELECT 1)", "SELECT 1 FROM a", "SELECT 1 FROM b", "SELECT 1 FROM s.a",
		"SELECT 1 FROM a AS b", "SELECT 1 FROM a b", "SELECT 1 FROM a, b", "SELECT 1 FROM a JOIN b", "SELECT 1 FROM a LEFT JOIN b", "SELECT 1 FROM a JOIN b ON c",
		"SELECT 1 FROM a JOIN b USING (c)", "SELECT 1 FROM (a)", "SELECT 1 FROM (SELECT 1)", "SELECT 1 FROM a(1)", "SELECT 1 FROM a()", "SELECT 1 FROM a NOT INDEXED",
		"SELECT 1 FROM a INDEXED BY b", "SELECT 1 WHERE a", "SELECT 1 HAVING a", "SELECT 1 GROUP BY a", "SELECT 1 GROUP BY a, b", "SELECT 1 ORDER BY a", "SELECT 1 ORDER BY a DESC",
		"SELECT 1 ORDER BY a NULLS LAST", "SELECT 1 LIMIT 1", "SELECT 1 LIMIT 2", "SELECT 1 LIMIT 1 OFFSET 2", "SELECT 1 LIMIT 2, 1", "SELECT 1 WINDOW w AS ()", "VALUES (1)", "VALUES (1), (2)",
		"SELECT 1 UNION SELECT 1", "SELECT 1 UNION ALL SELECT 1", "SELECT 1 EXCEPT SELECT 1", "WITH a AS (SELECT 1) SELECT 1", "WITH a(b) AS (SELECT 1) SELECT 1",
		"WITH RECURSIVE a AS (SELECT 1) SELECT 1", "WITH a AS MATERIALIZED (SELECT 1) SELECT 1", "WITH a AS (SELECT 1), b AS (SELECT 1) SELECT 1",
	}
	parsed := func(text string) rewrite.Tree {
		tree, err := sqlite.New().Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := tree.Single(); err != nil {
			t.Fatal(err)
		}
		return tree
	}
	for i, a := range statements {
		for j, b := range statements {
			if err := parsed(strings.ReplaceAll(a, " ", " /* */ ")).Same(parsed(b), ""); (err == nil) != (i == j) {
				t.Errorf("%s and %s: %v", a, b, err)
			}
		}
	}
}

func TestHugeAndDeepStatementsEndInARefusal(t *testing.T) {
	s := newSchema(t, shop, shopPolicy)
	for name, statement := range map[string]string{
		"parentheses":       "SELECT " + strings.Repeat("(", 500_000),
		"balanced":          "SELECT " + strings.Repeat("(", 300_000) + "1" + strings.Repeat(")", 300_000),
		"subqueries":        strings.Repeat("SELECT (", 100_000) + "1",
		"tables":            "SELECT 1 FROM " + strings.Repeat("(", 500_000),
		"sum":               "SELECT 1" + strings.Repeat("+1", 500_000),
		"conjunction":       "SELECT 1 WHERE 1" + strings.Repeat(" AND 1", 150_000),
		"not":               "SELECT " + strings.Repeat("NOT ", 200_000) + "1",
		"case":              "SELECT " + strings.Repeat("CASE WHEN ", 90_000) + "1",
		"more than is read": "SELECT 1 /*" + strings.Repeat("x", 1<<20),
	} {
		if no := refusal(t, statement, s); no.Code != acl.CodeTooLarge && no.Code != acl.CodeUnparsable {
			t.Errorf("%s: %s: %s", name, no.Code, no.Public)
		}
	}
	var doubling strings.Builder
	doubling.WriteString("WITH c0 AS (SELECT 1)")
	for i := range 40 {
		fmt.Fprintf(&doubling, ", c%d AS (SELECT 1 FROM c%d, c%d)", i+1, i, i)
	}
	for name, statement := range map[string]string{
		"CTEs that multiply":    doubling.String() + " SELECT 1 FROM c40",
		"columns that multiply": strings.ReplaceAll(doubling.String(), "SELECT 1 FROM", "SELECT * FROM") + " SELECT 1",
		"joins":                 "SELECT 1 FROM invoice" + strings.Repeat(", invoice", 64),
	} {
		st, err := rewrite.NewGuard(sqlite.New(), 0).Rewrite(statement, s)
		if no, ok := err.(*acl.Refusal); !ok || no.Code != acl.CodeTooLarge {
			t.Errorf("%s: %.80s, %v", name, st.Text(), err)
		}
	}
	// What is merely long or deep goes through.
	for _, statement := range []string{
		"SELECT id FROM invoice WHERE id IN (1" + strings.Repeat(", 1", 300_000) + ")",
		"SELECT 1 FROM invoice" + strings.Repeat(" WHERE 1 IN (SELECT 1 FROM invoice", 500) + strings.Repeat(")", 500),
	} {
		if _, err := rewrite.NewGuard(sqlite.New(), 0).Rewrite(statement, s); err != nil {
			t.Errorf("%.80s: %v", statement, err)
		}
	}
}

func TestTextThatIsNotPlainIsRefused(t *testing.T) {
	for _, statement := range []string{"SELECT 1\x00; DROP TABLE x", "SELECT '\xff'"} {
		if no := refusal(t, statement, newSchema(t, shop, shopPolicy)); no.Code != acl.CodeUnparsable {
			t.Errorf("%q: %s", statement, no.Code)
		}
	}
}

func TestObjectsReadsWhatDDLCreates(t *testing.T) {
	db, objects, err := sqlite.New().Objects("db", `
		PRAGMA foreign_keys = ON;
		CREATE TABLE IF NOT EXISTS "Order"(id INTEGER PRIMARY KEY, [of] VARCHAR(20) NOT NULL UNIQUE, client INT REFERENCES client, note, UNIQUE (client, note));
		CREATE TABLE client(a INT, b INT, PRIMARY KEY (a, b), FOREIGN KEY (a, b) REFERENCES x(c, d)) WITHOUT ROWID;
		CREATE TABLE client(again INT);
		CREATE TABLE sales.x(c INT, d INT);
		CREATE TABLE broken(;
		CREATE TRIGGER tr AFTER INSERT ON client BEGIN INSERT INTO client VALUES (1, 2); DELETE FROM client; END;
		INSERT INTO client VALUES (1, 'CREATE TABLE not_this(x);');
		CREATE TABLE copied AS SELECT * FROM client;
		CREATE VIEW v(p, q) AS SELECT 1, 2;
		CREATE VIEW w AS SELECT c.*, a + b AS sum, o.note FROM client AS c, "Order" o;
		CREATE TABLE shadowed(x INT);
		CREATE TEMP TABLE Shadowed(y INT);
		CREATE TABLE main.last(z TEXT)`)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := catalog.Build([]catalog.Database{db}, objects)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range snapshot.Objects(catalog.KindTable) {
		line := o.Ref.String() + ":"
		for _, c := range snapshot.Columns(o.ID) {
			line += " " + c.Ref.Column
			if c.Column.Type != "" {
				line += " " + c.Column.Type
			}
			if c.Column.PrimaryKey {
				line += " key"
			}
			if c.Column.NotNull {
				line += " not null"
			}
			line += ","
		}
		if o.Table.SQLView != "" {
			line += " view"
		}
		got = append(got, line)
	}
	want := []string{
		"db.Order: id INTEGER key, of VARCHAR(20) not null, client INT, note,",
		"db.client: a INT key, b INT key,",
		"db.last: z TEXT,",
		"db.v: p, q, view",
		"db.w: a, b, sum, note, view",
		"db.sales.x: c INT, d INT,",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	order, _ := snapshot.Lookup(catalog.TableRef("db", "", "Order"))
	if keys := order.Table.UniqueKeys; !reflect.DeepEqual(keys, [][]string{{"of"}, {"client", "note"}}) {
		t.Errorf("unique keys %v", keys)
	}
}

// FuzzGuard checks that no text makes the guard panic or fail, that what it prints parses and prints to itself, and
// that the same text gives the same bytes.
func FuzzGuard(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range txtar.Parse(data).Files {
			if part.Name == "in.sql" {
				f.Add(string(bytes.TrimSuffix(part.Data, []byte("\n"))))
			}
		}
	}
	const ddl = `CREATE TABLE region(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE client(id INTEGER PRIMARY KEY, tenant INTEGER, region_id INTEGER, name TEXT, ssn TEXT);
CREATE TABLE invoice(id INTEGER PRIMARY KEY, tenant INTEGER, client_id INTEGER, amount REAL, memo TEXT);
CREATE TABLE vault(id INTEGER PRIMARY KEY, val TEXT);
CREATE VIEW v AS SELECT * FROM invoice;
CREATE VIEW w(p, q) AS SELECT name, (SELECT max(amount) FROM v) FROM client;`
	policy := shopPolicy + "masks:\n  - {column: db.client.name, roles: [reader], with: partial}\n  - {column: db.vault.val, roles: [reader], with: hash}\n"
	guard := rewrite.NewGuard(sqlite.New(), 100)
	f.Fuzz(func(t *testing.T, statement string) {
		st, err := guard.Rewrite(statement, newSchema(t, ddl, policy))
		var no *acl.Refusal
		if errors.As(err, &no) {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", statement, err)
		}
		again, err := guard.Rewrite(statement, newSchema(t, ddl, policy))
		if err != nil || again.Text() != st.Text() {
			t.Fatalf("%q: first %q, then %q, %v", statement, st.Text(), again.Text(), err)
		}
		parsed, err := parser.ParseStatement(st.Text())
		if err != nil || ast.String(parsed) != st.Text() {
			t.Fatalf("%q: %v", st.Text(), err)
		}
		if strings.Contains(st.Text(), "ssn") && !strings.Contains(statement, "ssn") {
			t.Fatalf("%q names a hidden column", st.Text())
		}
	})
}
