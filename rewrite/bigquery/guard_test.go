//go:build bigquery

package bigquery_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/bigquery"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

const (
	shop = `CREATE TABLE shop.client(id INT64, tenant INT64, name STRING, ssn STRING, tags ARRAY<STRING>, address STRUCT<city STRING, zip STRING>);
CREATE TABLE shop.invoice(id INT64, tenant INT64, client_id INT64, amount FLOAT64);
CREATE TABLE shop.other(id INT64);
CREATE TABLE shop.vault(id INT64);
`
	shopPolicy = `version: 1
principals: {asker: {roles: [reader], attributes: {tenant: 7}}}
grants:
  - {role: reader, allow: ["*"], actions: [view, query]}
  - {role: reader, deny: [db.shop.client.ssn, db.shop.vault]}
row_filters:
  - {table: db.shop.invoice, roles: [reader], using: "tenant = {{ principal.tenant }}"}
`
	allowAll = `version: 1
principals: {asker: {roles: [reader]}}
grants: [{role: reader, allow: ["*"], actions: [view, query]}]
`
)

func newSchema(t testing.TB, ddl, policy string) *rewrite.Schema {
	t.Helper()
	s, err := rewritetest.NewSchema(bigquery.New(), ddl, policy)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// guarded guards a statement that must go through.
func guarded(t *testing.T, statement string, rows int) rewrite.Statement {
	t.Helper()
	st, err := rewrite.NewGuard(bigquery.New(), rows).Rewrite(statement, newSchema(t, shop, shopPolicy))
	if err != nil {
		t.Fatalf("%s: %+v", statement, err)
	}
	return st
}

// refusal guards a statement that must be refused.
func refusal(t *testing.T, statement string, s *rewrite.Schema) *acl.Refusal {
	t.Helper()
	st, err := rewrite.NewGuard(bigquery.New(), 0).Rewrite(statement, s)
	var no *acl.Refusal
	if !errors.As(err, &no) {
		t.Fatalf("%.80s: got %q, %v", statement, st.Text(), err)
	}
	return no
}

func column(table, name string) catalog.Ref { return catalog.ColumnRef("db", "shop", table, name) }

func TestReadsNameTablesColumnsAndRulesInTheOrderOfTheText(t *testing.T) {
	st := guarded(t, `WITH w AS (SELECT amount FROM shop.invoice) SELECT c.name, (SELECT MAX(id) FROM shop.invoice WHERE client_id = c.id) FROM shop.client c, w`, 0)
	want := []rewrite.Read{
		{
			Table:   catalog.TableRef("db", "shop", "invoice"),
			Columns: []catalog.Ref{column("invoice", "amount"), column("invoice", "id"), column("invoice", "client_id")},
			Rules:   []string{"line 7: row filter on db.shop.invoice"},
		},
		{Table: catalog.TableRef("db", "shop", "client"), Columns: []catalog.Ref{column("client", "name"), column("client", "id")}},
	}
	if got := st.Reads(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestAStarReadsTheVisibleColumns(t *testing.T) {
	var got []string
	for _, c := range guarded(t, "SELECT * FROM shop.client", 0).Reads()[0].Columns {
		got = append(got, c.Column)
	}
	if want := []string{"id", "tenant", "name", "tags", "address"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestLineage writes a column as "name < columns how", with = for identity, ~ for a transformation and # for an
// aggregation; what follows the bar are the columns that rows are chosen by.
func TestLineage(t *testing.T) {
	for statement, want := range map[string]string{
		"SELECT id, name AS n FROM shop.client":                                                                                                          "id < client.id =; n < client.name = |",
		"SELECT 1, id + tenant, 2 FROM shop.other, shop.client WHERE FALSE":                                                                              "", // ambiguous
		"SELECT 1, UPPER(name), 2 FROM shop.client":                                                                                                      "f0_ ~; f1_ < client.name ~; f2_ ~ |",
		"SELECT x.n FROM (SELECT name AS n, id FROM shop.client) x WHERE x.id = 1":                                                                       "n < client.name = | client.id",
		"SELECT client_id, SUM(amount) AS s FROM shop.invoice GROUP BY 1 HAVING s > 1":                                                                   "client_id < invoice.client_id =; s < invoice.amount # | invoice.amount",
		"SELECT COUNT(*) AS n FROM shop.invoice":                                                                                                         "n # |",
		"SELECT SUM(amount) OVER (ORDER BY id) AS s FROM shop.invoice":                                                                                   "s < invoice.amount,invoice.id # |",
		"WITH w AS (SELECT id AS x FROM shop.client) SELECT x FROM w UNION ALL SELECT id FROM shop.other":                                                "x < client.id,other.id = |",
		"SELECT c.name FROM shop.client c JOIN shop.invoice i ON i.client_id = c.id":                                                                     "name < client.name = | invoice.client_id,client.id",
		"SELECT name FROM shop.client JOIN shop.other USING (id)":                                                                                        "name < client.name = | client.id,other.id",
		"SELECT address.city, tag FROM shop.client, UNNEST(tags) AS tag":                                                                                 "city < client.address ~; tag < client.tags ~ |",
		"SELECT name FROM shop.client WHERE id IN (SELECT client_id FROM shop.invoice WHERE amount > 1)":                                                 "name < client.name = | client.id,invoice.client_id,invoice.amount",
		"SELECT (SELECT MAX(amount) FROM shop.invoice) AS m, EXISTS (SELECT 1 FROM shop.other) AS e":                                                     "m < invoice.amount #; e ~ |",
		"SELECT IF(id = 1, name, 'x') AS y FROM shop.client ORDER BY tenant":                                                                             "y < client.id,client.name ~ |",
		"WITH RECURSIVE r AS (SELECT id FROM shop.other UNION ALL SELECT SAFE_ADD(r.id, c.id) FROM r JOIN shop.client c ON c.id = r.id) SELECT * FROM r": "id < other.id,client.id ~ | client.id,other.id",
	} {
		st, err := rewrite.NewGuard(bigquery.New(), 0).Rewrite(statement, newSchema(t, shop, shopPolicy))
		if want == "" {
			if err == nil {
				t.Errorf("%s: got %s", statement, st.Text())
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %+v", statement, err)
			continue
		}
		refs := func(list []catalog.Ref) string {
			var out []string
			for _, r := range list {
				out = append(out, r.Table+"."+r.Column)
			}
			return strings.Join(out, ",")
		}
		var columns []string
		for _, o := range st.Output() {
			c := o.Name
			if o.From != nil {
				c += " < " + refs(o.From)
			}
			columns = append(columns, c+" "+map[rewrite.Transform]string{rewrite.Identity: "=", rewrite.Transformation: "~", rewrite.Aggregation: "#"}[o.Transform])
		}
		got := strings.TrimSpace(strings.Join(columns, "; ") + " | " + refs(st.Filters()))
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", statement, got, want)
		}
	}
}

// TestHiddenReadsLikeAbsent compares refusals about a hidden name with those about a name of the same length that
// nobody has, for every place where a name can stand.
func TestHiddenReadsLikeAbsent(t *testing.T) {
	s := newSchema(t, shop, shopPolicy+"  - {table: db.shop.client, roles: [reader], using: 1 = 1}\n")
	for _, statement := range []string{
		"SELECT @col FROM shop.client", "SELECT `@col` FROM shop.client", "SELECT client.@col FROM shop.client",
		"SELECT 1 FROM shop.client WHERE @col = 1", "SELECT 1 FROM shop.client GROUP BY @col", "SELECT 1 FROM shop.client ORDER BY @col",
		"SELECT 1 FROM shop.client JOIN shop.client c USING (@col)", "SELECT 1 FROM shop.client a JOIN shop.client b ON a.@col = b.@col",
		"SELECT SUM(1) OVER (ORDER BY @col) FROM shop.client", "SELECT (SELECT @col) FROM shop.client",
		"SELECT * EXCEPT (@col) FROM shop.client", "SELECT * REPLACE (1 AS @col) FROM shop.client", "SELECT client.@col.x FROM shop.client",
		"SELECT 1 FROM shop.client, UNNEST(@col)", "SELECT 1 FROM shop.client, client.@col", "SELECT c.* FROM (SELECT @col FROM shop.client) c",
		"SELECT id FROM shop.client QUALIFY @col", "SELECT 1 FROM (SELECT * FROM shop.client) WHERE @col", "SELECT id FROM shop.client c WHERE EXISTS (SELECT c.@col)",
		"SELECT 1 FROM shop.@table", "SELECT 1 FROM db.shop.@table", "SELECT 1 FROM `db.shop.@table`", "SELECT (SELECT 1 FROM shop.@table)",
		"WITH x AS (SELECT 1 FROM shop.@table) SELECT 1", "SELECT @table.* FROM shop.client", "SELECT 1 FROM shop.client, shop.@table", "SELECT 1 FROM @table",
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
			t.Errorf("%s:\nhidden %+v\nabsent %+v", statement, *hidden, *absent)
		}
		if hidden.Code != acl.CodeNotAvailable {
			t.Errorf("%s: %s: %s", statement, hidden.Code, hidden.Public)
		}
	}
}

func TestTheNumberOfRowsIsCapped(t *testing.T) {
	for _, c := range []struct{ statement, want string }{
		{"SELECT 1", "SELECT 1 LIMIT 3"},
		{"SELECT 1 LIMIT 2", "SELECT 1 LIMIT 2"},
		{"SELECT 1 LIMIT 4 OFFSET 3", "SELECT 1 LIMIT 3 OFFSET 3"},
		{"SELECT 1 LIMIT 0x10", "SELECT 1 LIMIT 3"},
		{"(SELECT 1 LIMIT 9)", "( SELECT 1 LIMIT 3)"},
		{"(SELECT 1 LIMIT 9) LIMIT 5 -- end", "( SELECT 1 LIMIT 9) LIMIT 3"},
		{"((SELECT 1));", "( SELECT 1 LIMIT 3)"},
		{"SELECT 1 UNION ALL (SELECT 2 LIMIT 9) # end", "SELECT 1 UNION ALL( SELECT 2 LIMIT 9) LIMIT 3"},
		{"WITH w AS (SELECT 1 LIMIT 9) SELECT * FROM w ORDER BY 1", "WITH w AS ( SELECT 1 LIMIT 9 ) SELECT * FROM w ORDER BY 1 LIMIT 3"},
		{"SELECT id FROM shop.other LIMIT 7", "SELECT id FROM ( SELECT id FROM db.shop.other ) AS other LIMIT 3"},
	} {
		st, err := rewrite.NewGuard(bigquery.New(), 3).Rewrite(c.statement, newSchema(t, shop, shopPolicy))
		if got := strings.Join(strings.Fields(st.Text()), " "); err != nil || got != c.want {
			t.Errorf("%s: got %s, want %s (%v)", c.statement, got, c.want, err)
		}
	}
	for _, statement := range []string{"SELECT 1 LIMIT ALL", "SELECT 1 LIMIT @x", "SELECT 1 LIMIT -1"} {
		st, err := rewrite.NewGuard(bigquery.New(), 3).Rewrite(statement, newSchema(t, shop, shopPolicy))
		if no := (*acl.Refusal)(nil); !errors.As(err, &no) {
			t.Errorf("%s: %s, %v", statement, st.Text(), err)
		}
	}
}

// TestFaultyPoliciesAreFaults: a condition that cannot be bound must stop every statement on its table.
func TestFaultyPoliciesAreFaults(t *testing.T) {
	for using, why := range map[string]string{
		"tenant = '{{ principal.tenant }}'":                           "stands 0 times",
		"tenant = 1 /* {{ principal.tenant }} */":                     "stands 0 times",
		"tenant = {{ principal.tenant }} or id = @schemagate_value_1": "stands 2 times",
		"tenant = ?":                                         "parameter @",
		"tenant = @tenant":                                   "parameter @tenant",
		"tenant = {{ principal.tenant }}5":                   "parameter @schemagate_value_15",
		"tenants = 7":                                        "tenants is not available",
		"client.tenant = 7":                                  "client.tenant is not available",
		"id in (select id from nobody)":                      "nobody is not available",
		"id in (select id from elsewhere.shop.client)":       "another project",
		"id in (select x from (select id as x from client))": "derived table",
		"id in (with x as (select 1) select 1)":              "WITH",
		"tenant = session_user()":                            "session_user",
		"tenant = @@project_id":                              "system variables",
		"tenant = {{ principal.tenants }}":                   "IN list",
		"tenant in (1, {{ principal.tenants }})":             "IN list",
		"tenant = 7) or (1 = 1":                              "Syntax error",
		"tenant = 7; select 1":                               "Syntax error",
		"tenant + 7":                                         "INT64, not a BOOL",
		"tenant = 7 --":                                      "",
	} {
		policy := strings.Replace(shopPolicy, "tenant: 7}", "tenant: 7, tenants: [1, 2]}", 1)
		policy = strings.Replace(policy, `"tenant = {{ principal.tenant }}"`, "'"+strings.ReplaceAll(using, "'", "''")+"'", 1)
		st, err := rewrite.NewGuard(bigquery.New(), 0).Rewrite("SELECT id FROM shop.invoice", newSchema(t, shop, policy))
		var no *acl.Refusal
		switch {
		case why == "":
			if err != nil || !strings.Contains(st.Text(), "(tenant = 7)") {
				t.Errorf("%s: %v %s", using, err, st.Text())
			}
		case err == nil || errors.As(err, &no) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "line 7"):
			t.Errorf("%s: got %v %q, want a fault that says %q and the line", using, err, st.Text(), why)
		}
	}
}

// TestGovernedTrustsNothing hands texts to the last check that no guard would have printed.
func TestGovernedTrustsNothing(t *testing.T) {
	const wrapper = "(SELECT id, tenant, client_id, amount FROM db.shop.invoice WHERE (tenant = 7)) AS invoice"
	const barred = "(SELECT IF(shown, id, NULL) AS id, IF(shown, tenant, NULL) AS tenant, IF(shown, client_id, NULL) AS client_id, IF(shown, amount, NULL) AS amount FROM (SELECT id, tenant, client_id, amount, (tenant = 7) AS shown FROM db.shop.invoice) WHERE shown) AS invoice"
	for text, governed := range map[string]bool{
		"SELECT id FROM " + wrapper:                             true,
		"SELECT id FROM " + barred:                              false, // a barrier that nothing asks for
		"SELECT 1 / id FROM " + barred:                          true,
		"SELECT 1 / id FROM " + wrapper:                         false,
		"SELECT 1 / 0 FROM " + barred:                           false,
		"WITH invoice AS (SELECT 1) SELECT * FROM invoice":      true,
		"SELECT 1 FROM invoice":                                 false,
		"SELECT 1 FROM shop.invoice":                            false,
		"SELECT 1 FROM db.shop.invoice":                         false,
		"SELECT 1 FROM `db.shop.invoice`":                       false,
		"SELECT 1 FROM db.shop.other":                           false, // seen whole, and wrapped all the same
		"SELECT 1 FROM (SELECT id FROM db.shop.other) AS other": true,
		"SELECT 1 FROM (SELECT * FROM db.shop.other) AS other":  false,
		"SELECT 1 FROM db.shop.INFORMATION_SCHEMA.TABLES":       false,
		"SELECT 1 FROM (SELECT id, tenant, client_id, amount FROM db.shop.invoice WHERE (tenant = 8)) AS i":                                     false,
		"SELECT 1 FROM (SELECT id FROM db.shop.invoice WHERE (tenant = 7)) AS invoice":                                                          false,
		"SELECT 1 FROM (SELECT id, tenant, client_id, amount FROM db.shop.invoice WHERE (tenant = 7) UNION ALL SELECT 1, 1, 1, 1.0) AS invoice": false,
		"SELECT 1 FROM (SELECT id, tenant, name, ssn, tags, address FROM db.shop.client) AS client":                                             false,
		"SELECT 1 FROM (SELECT id, tenant, name, tags, address FROM db.shop.client) AS client":                                                  true,
		"SELECT (SELECT id FROM db.shop.invoice WHERE (tenant = 7))":                                                                            false,
		"SELECT 1 FROM (SELECT id FROM db.shop.vault) AS vault":                                                                                 false,
		"SELECT SESSION_USER()": false,
		"SELECT (SELECT COUNT(*) FROM (SELECT id FROM db.shop.other) AS o) FROM (SELECT STRUCT(STRUCT([1] AS other) AS shop) AS db)": false,
	} {
		tree, err := bigquery.New().Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Single(); err != nil {
			t.Fatal(err)
		}
		err = tree.Governed(newSchema(t, shop, shopPolicy))
		if (err == nil) != governed {
			t.Errorf("%s: governed %t, want %t (%v)", text, err == nil, governed, err)
		}
	}
}

func TestHugeAndDeepStatementsEndInARefusal(t *testing.T) {
	s := newSchema(t, shop, shopPolicy)
	for name, statement := range map[string]string{
		"parentheses":       "SELECT " + strings.Repeat("(", 100_000),
		"balanced":          "SELECT " + strings.Repeat("(", 60_000) + "1" + strings.Repeat(")", 60_000),
		"subqueries":        strings.Repeat("SELECT (", 10_000) + "1",
		"tables":            "SELECT 1 FROM " + strings.Repeat("(", 100_000),
		"arrays":            "SELECT " + strings.Repeat("[", 900),
		"sum":               "SELECT 1" + strings.Repeat("+1", 60_000),
		"signs":             "SELECT " + strings.Repeat("~", 120_000) + "1",
		"not":               "SELECT " + strings.Repeat("NOT ", 2_000) + "TRUE",
		"case":              "SELECT " + strings.Repeat("CASE WHEN ", 5_000) + "1",
		"levels":            strings.Repeat("SELECT * FROM (", 300) + "SELECT 1" + strings.Repeat(")", 300),
		"more than is read": "SELECT 1 /*" + strings.Repeat("x", 1<<20),
	} {
		if no := refusal(t, statement, s); no.Code != acl.CodeTooLarge && no.Code != acl.CodeUnparsable {
			t.Errorf("%s: %s: %s", name, no.Code, no.Public)
		}
	}
	// What is merely long or deep goes through.
	for _, statement := range []string{
		"SELECT id FROM shop.invoice WHERE id IN (1" + strings.Repeat(", 1", 9_000) + ")",
		"SELECT id FROM shop.other WHERE id = 1" + strings.Repeat(" OR id = 1", 2_000),
		"SELECT " + strings.Repeat("(", 500) + "1" + strings.Repeat(")", 500),
		"SELECT 1 FROM shop.other" + strings.Repeat(" WHERE 1 IN (SELECT 1 FROM shop.other", 30) + strings.Repeat(")", 30),
	} {
		if _, err := rewrite.NewGuard(bigquery.New(), 0).Rewrite(statement, s); err != nil {
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

func TestStatementsAreGuardedAtTheSameTime(t *testing.T) {
	guard := rewrite.NewGuard(bigquery.New(), 10)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			schema, err := rewritetest.NewSchema(bigquery.New(), shop, shopPolicy)
			if err != nil {
				t.Error(err)
				return
			}
			for j := range 5 {
				st, err := guard.Rewrite(fmt.Sprintf("SELECT id + %d%d FROM shop.other", i, j), schema)
				if err != nil || !strings.Contains(st.Text(), fmt.Sprintf("id + %d%d", i, j)) {
					t.Errorf("%s, %v", st.Text(), err)
				}
			}
		}()
	}
	wait.Wait()
}

// TestEverythingThatPrintsKeepsItsMeaning guards one statement for each thing that the syntax tree does not show: the guard
// itself compares the meanings before and after printing.
func TestEverythingThatPrintsKeepsItsMeaning(t *testing.T) {
	schema := newSchema(t, shop, allowAll)
	for _, statement := range []string{
		"SELECT ARRAY_AGG(DISTINCT name IGNORE NULLS ORDER BY name LIMIT 2), ARRAY_AGG(name RESPECT NULLS) FROM shop.client",
		"SELECT STRING_AGG(name, '-' ORDER BY id DESC) FROM shop.client",
		"SELECT FIRST_VALUE(name IGNORE NULLS) OVER (PARTITION BY tenant ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) FROM shop.client",
		"SELECT SUM(id) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND CURRENT ROW), COUNT(*) OVER () FROM shop.client",
		"SELECT DISTINCT name FROM shop.client", "SELECT ALL name FROM shop.client", "SELECT AS VALUE name FROM shop.client",
		"SELECT a.id - (b.id - 1), (a.id - b.id) - 1, -(-a.id), NOT (a.id = 1 AND NOT b.id = 2) FROM shop.other a, shop.other b",
		"SELECT (1 + 2) * 3, 1 + 2 * 3, (SELECT 1) + 1, 'a' || ('b' || 'c'), (id).a FROM (SELECT STRUCT(1 AS a) AS id)",
		"SELECT id IS NULL, (id = 1) IS TRUE, id BETWEEN 1 AND (2), id NOT IN (1, 2), name LIKE 'a' FROM shop.client",
		"SELECT c.address.city, c.tags[SAFE_OFFSET(0)], ARRAY(SELECT x FROM UNNEST(c.tags) x WITH OFFSET o ORDER BY o) FROM shop.client AS c",
		"SELECT EXTRACT(DAYOFWEEK FROM d AT TIME ZONE 'UTC'), TIMESTAMP_TRUNC(d, MONTH), DATE_DIFF(CURRENT_DATE(), DATE(d), WEEK(MONDAY)) FROM (SELECT CURRENT_TIMESTAMP() AS d)",
		"SELECT CAST(id AS STRING FORMAT '999'), SAFE_CAST([1] AS ARRAY<STRING>) IS NULL FROM shop.other",
		"SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3", "(SELECT 1 EXCEPT DISTINCT SELECT 2) INTERSECT DISTINCT SELECT 3",
		"SELECT * FROM shop.other LEFT JOIN (shop.client c JOIN shop.invoice i ON i.client_id = c.id) ON c.id = other.id",
		"SELECT id FROM shop.client ORDER BY name NULLS FIRST, id DESC", "SELECT id FROM shop.client GROUP BY id HAVING COUNT(*) > 1",
		"SELECT \"a\\\"b\", 'it\\'s', r'\\n', '''x'y''', b\"\\x00\", 'é', \"\\u00e9\"",
		"WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a WHERE n < 3), b AS (SELECT * FROM a) SELECT * FROM b",
		"SELECT COUNTIF(id > 1), ANY_VALUE(name HAVING MIN id), APPROX_TOP_COUNT(name, 2) FROM shop.client",
		"SELECT JSON_VALUE(j, '$.a'), j.b[0], INT64(j.c) FROM (SELECT JSON '{}' AS j)",
		"SELECT GENERATE_ARRAY(1, 3), [STRUCT(1 AS a), STRUCT(2)][OFFSET(0)].a",
	} {
		if _, err := rewrite.NewGuard(bigquery.New(), 0).Rewrite(statement, schema); err != nil {
			t.Errorf("%s: %+v", statement, err)
		}
	}
}

func TestObjectsReadsWhatDDLCreates(t *testing.T) {
	db, objects, err := bigquery.New().Objects("db", `
		CREATE SCHEMA shop;
		CREATE TABLE IF NOT EXISTS shop.Client(id INT64 NOT NULL OPTIONS (description = "a; b"), name STRING(20), PRIMARY KEY (id) NOT ENFORCED);
		CREATE OR REPLACE TABLE `+"`db.shop.invoice`"+`(
			id INT64, client_id INT64, price NUMERIC(10, 2) DEFAULT 1, tags ARRAY<STRING>, -- a comment; with a semicolon
			address STRUCT<city STRING NOT NULL, geo STRUCT<lat FLOAT64, lon FLOAT64>>,
			FOREIGN KEY (client_id) REFERENCES shop.Client(id) NOT ENFORCED
		) PARTITION BY DATE(_PARTITIONTIME) CLUSTER BY id;
		CREATE TABLE bare(x DATE);
		CREATE TABLE other.shop.t(x INT64);
		CREATE TABLE shop.Client(again INT64);
		CREATE TABLE broken(;
		CREATE TEMP TABLE shop.gone(x INT64);
		CREATE TABLE shop.copied AS SELECT 1 AS a;
		INSERT INTO shop.Client VALUES (1, 'CREATE TABLE not_this(x INT64);');
		CREATE VIEW shop.v(p, q) AS SELECT 1, 2;
		CREATE VIEW shop.w AS SELECT c.id, name AS n FROM shop.Client c`)
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
		for _, k := range o.Table.ForeignKeys {
			line += fmt.Sprintf(" %v to %s %v", k.Columns, k.To, k.ToColumns)
		}
		if o.Table.SQLView != "" {
			line += " view"
		}
		got = append(got, line)
	}
	want := []string{
		"db.main.bare: x DATE,",
		"db.shop.Client: id INT64 key not null, name STRING(20),",
		"db.shop.invoice: id INT64, client_id INT64, price NUMERIC(10, 2), tags ARRAY<STRING>, address STRUCT<city STRING, geo STRUCT<lat FLOAT64, lon FLOAT64>>, [client_id] to db.shop.Client [id]",
		"db.shop.v: p, q, view",
		"db.shop.w: id, n, view",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// FuzzGuard holds for every text: it is refused or its guarded form passes the guard's own verification, and never is
// there a fault or a panic; the same text gives the same answer.
func FuzzGuard(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range txtar.Parse(b).Files {
			if part.Name == "in.sql" {
				f.Add(string(part.Data))
			}
		}
	}
	guard := rewrite.NewGuard(bigquery.New(), 100)
	f.Fuzz(func(t *testing.T, sql string) {
		var texts [2]string
		for i := range texts {
			schema, err := rewritetest.NewSchema(bigquery.New(), shop, shopPolicy)
			if err != nil {
				t.Fatal(err)
			}
			st, err := guard.Rewrite(sql, schema)
			var no *acl.Refusal
			if err != nil && !errors.As(err, &no) {
				t.Fatalf("a fault: %v", err)
			}
			texts[i] = st.Text()
			if no != nil {
				texts[i] = no.Code + no.Public
			}
		}
		if texts[0] != texts[1] {
			t.Errorf("two answers:\n%s\n%s", texts[0], texts[1])
		}
	})
}

// BenchmarkGuard guards a statement of 15 lines.
func BenchmarkGuard(b *testing.B) {
	schema := newSchema(b, shop, shopPolicy)
	guard := rewrite.NewGuard(bigquery.New(), 100)
	const sql = `WITH big AS (
  SELECT client_id, SUM(amount) AS total
  FROM shop.invoice
  WHERE amount > 10
  GROUP BY client_id
)
SELECT
  c.name,
  b.total,
  RANK() OVER (ORDER BY b.total DESC) AS place
FROM shop.client AS c
JOIN big AS b ON b.client_id = c.id
WHERE c.name IS NOT NULL
ORDER BY place
LIMIT 10`
	for b.Loop() {
		if _, err := guard.Rewrite(sql, schema); err != nil {
			b.Fatal(err)
		}
	}
}
