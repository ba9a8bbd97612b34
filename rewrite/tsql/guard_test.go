package tsql_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
	"github.com/schemagate/schemagate/rewrite/tsql"
)

func TestSpecifications(t *testing.T) { rewritetest.Golden(t, tsql.New(), "testdata") }

const (
	shop = `CREATE TABLE region (id int PRIMARY KEY, name nvarchar(40));
CREATE TABLE client (id int PRIMARY KEY, tenant int, region_id int, name nvarchar(40), ssn varchar(11), born date);
CREATE TABLE invoice (id int PRIMARY KEY, tenant int, client_id int, amount decimal(10, 2), memo nvarchar(max), paid datetime);
CREATE TABLE vault (id int PRIMARY KEY, val nvarchar(40));
`
	shopPolicy = `version: 1
principals: {asker: {roles: [reader], attributes: {tenant: 7}}}
grants:
  - {role: reader, allow: ["*"], actions: [view, query]}
  - {role: reader, deny: [db.dbo.vault, db.dbo.client.ssn]}
row_filters:
  - {table: db.dbo.invoice, roles: [reader], using: "tenant = {{ principal.tenant }}"}
`
)

func newSchema(t testing.TB, ddl, policy string) *rewrite.Schema {
	t.Helper()
	s, err := rewritetest.NewSchema(tsql.New(), ddl, policy)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func guard(t testing.TB, rows int, sql, ddl, policy string) (rewrite.Statement, *acl.Refusal) {
	t.Helper()
	st, err := rewrite.NewGuard(tsql.New(), rows).Rewrite(sql, newSchema(t, ddl, policy))
	var no *acl.Refusal
	if err != nil && !errors.As(err, &no) {
		t.Fatalf("%.200s: %v", sql, err)
	}
	return st, no
}

func TestReadsNameTablesColumnsAndRulesInTheOrderOfTheText(t *testing.T) {
	st, no := guard(t, 0, `WITH w AS (SELECT amount FROM invoice)
		SELECT c.name, (SELECT MAX(id) FROM dbo.invoice WHERE client_id = c.id) FROM client AS c, w`, shop, shopPolicy)
	if no != nil {
		t.Fatal(no)
	}
	column := func(table, name string) catalog.Ref { return catalog.ColumnRef("db", "dbo", table, name) }
	want := []rewrite.Read{
		{
			Table:   catalog.TableRef("db", "dbo", "invoice"),
			Columns: []catalog.Ref{column("invoice", "amount"), column("invoice", "id"), column("invoice", "client_id")},
			Rules:   []string{"line 7: row filter on db.dbo.invoice"},
		},
		{Table: catalog.TableRef("db", "dbo", "client"), Columns: []catalog.Ref{column("client", "name"), column("client", "id")}},
	}
	if got := st.Reads(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// TestLineageFollowsColumnsToTheirTables gives each result column as name=sources:transform, and behind a bar the
// columns that rows are chosen by.
func TestLineageFollowsColumnsToTheirTables(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT id, n = name FROM region":                                         "id=region.id:identity n=region.name:identity |",
		"SELECT * FROM region AS r WHERE r.name = 'x'":                            "id=region.id:identity name=region.name:identity | region.name",
		"SELECT 1 AS one, GETDATE() AS d":                                         "one=:transformation d=:transformation |",
		"SELECT UPPER(name) + memo AS t FROM client, invoice":                     "t=client.name,invoice.memo:transformation |",
		"SELECT x.total FROM (SELECT SUM(amount) AS total FROM invoice) AS x":     "total=invoice.amount:aggregation |",
		"SELECT x.a FROM (SELECT id FROM region) AS x (a)":                        "a=region.id:identity |",
		"SELECT COUNT(*) AS n FROM client HAVING MAX(born) IS NOT NULL":           "n=:aggregation | client.born",
		"SELECT RANK() OVER (PARTITION BY tenant ORDER BY born) AS r FROM client": "r=client.tenant,client.born:aggregation |",
		"SELECT CASE WHEN born IS NULL THEN name ELSE 'x' END AS c FROM client":   "c=client.born,client.name:transformation |",
		"SELECT CASE WHEN EXISTS (SELECT memo FROM invoice) OR id IN (SELECT client_id FROM invoice WHERE amount > 1) THEN 1 END AS c FROM region": "c=region.id,invoice.client_id:transformation | invoice.amount",
		"SELECT IIF(tenant = 1, amount, 0) AS c FROM invoice":                                                                                               "c=invoice.tenant,invoice.amount:transformation |",
		"SELECT (SELECT name FROM region AS r WHERE r.id = c.region_id) AS n FROM client AS c JOIN invoice ON client_id = c.id":                             "n=region.name:identity | region.id client.region_id invoice.client_id client.id",
		"SELECT id FROM region WHERE EXISTS (SELECT memo FROM invoice WHERE amount = 1)":                                                                    "id=region.id:identity | invoice.amount",
		"WITH t (a, b, c) AS (SELECT id, tenant, 0 FROM client UNION ALL SELECT b, c, region_id FROM t JOIN client ON a = 1 AND b = id) SELECT a, c FROM t": "a=client.id,client.tenant,client.region_id:transformation c=client.region_id:transformation | client.id client.tenant client.region_id",
		"SELECT id FROM region UNION ALL SELECT client_id FROM invoice":                                                                                     "id=region.id,invoice.client_id:identity |",
		"SELECT c.id FROM client c JOIN region r ON r.id = c.region_id":                                                                                     "id=client.id:identity | region.id client.region_id",
		"SELECT id FROM client WHERE region_id IN (SELECT id FROM region)":                                                                                  "id=client.id:identity | client.region_id region.id",
		"SELECT (SELECT MAX(amount) FROM invoice i WHERE i.client_id = c.id) AS m FROM client c":                                                            "m=invoice.amount:aggregation | invoice.client_id client.id",
		"WITH t AS (SELECT id, name FROM client) SELECT name, id FROM t ORDER BY id":                                                                        "name=client.name:identity id=client.id:identity |",
		"WITH n (i) AS (SELECT id FROM region UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n":                                                   "i=region.id:transformation | region.id",
		"SELECT p.[1] FROM (SELECT tenant, region_id, id FROM client) AS s PIVOT (COUNT(id) FOR tenant IN ([1])) AS p":                                      "1=client.id,client.tenant:aggregation |",
		"SELECT u.v, u.n FROM (SELECT id, tenant FROM client) AS s UNPIVOT (v FOR n IN (id, tenant)) AS u":                                                  "v=client.id,client.tenant:transformation n=:transformation |",
		"SELECT s.value FROM client AS c CROSS APPLY STRING_SPLIT(c.name, ' ') AS s":                                                                        "value=client.name:transformation |",
	} {
		st, no := guard(t, 0, sql, shop, shopPolicy)
		if no != nil {
			t.Errorf("%s: %v", sql, no)
			continue
		}
		short := func(refs []catalog.Ref, separator string) string {
			var out []string
			for _, r := range refs {
				out = append(out, r.Table+"."+r.Column)
			}
			return strings.Join(out, separator)
		}
		got := ""
		for _, o := range st.Output() {
			got += fmt.Sprintf("%s=%s:%s ", o.Name, short(o.From, ","), o.Transform)
		}
		got = strings.TrimSpace(got + "| " + short(st.Filters(), " "))
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", sql, got, want)
		}
	}
}

// TestHiddenReadsLikeAbsent compares refusals about a hidden name with those about a name of the same length that
// nobody has, for every place where a name can stand.
func TestHiddenReadsLikeAbsent(t *testing.T) {
	for _, statement := range []string{
		"SELECT @col FROM client", "SELECT [@col] FROM client", `SELECT "@col" FROM client`, "SELECT client.@col FROM client",
		"SELECT dbo.client.@col FROM client", "SELECT db.dbo.client.@col FROM client", "SELECT x = @col FROM client",
		"SELECT 1 AS x FROM client WHERE @col = 1", "SELECT COUNT(*) FROM client GROUP BY @col", "SELECT COUNT(*) FROM client GROUP BY ROLLUP (@col)",
		"SELECT COUNT(*) FROM client HAVING MAX(@col) = 1", "SELECT id FROM client ORDER BY @col", "SELECT id FROM client ORDER BY LEN(@col)",
		"SELECT a.id FROM client a JOIN client b ON a.id = b.@col", "SELECT SUM(1) OVER (PARTITION BY @col) FROM client",
		"SELECT SUM(1) OVER (ORDER BY @col) FROM client", "SELECT (SELECT @col) FROM client", "SELECT (SELECT MAX(@col) FROM client)",
		"SELECT 1 AS x FROM region WHERE id IN (SELECT @col FROM client)", "SELECT 1 AS x FROM region WHERE EXISTS (SELECT 1 FROM client WHERE @col = id)",
		"SELECT id FROM client UNION SELECT id FROM region ORDER BY @col", "SELECT x.@col FROM (SELECT * FROM client) AS x",
		"SELECT id FROM client CROSS APPLY (SELECT client.@col AS y) AS x", "SELECT * FROM client PIVOT (COUNT(id) FOR @col IN ([1])) AS p",
		"SELECT * FROM client PIVOT (COUNT(@col) FOR id IN ([1])) AS p", "SELECT * FROM client UNPIVOT (v FOR n IN (@col)) AS u",
		"SELECT CASE WHEN @col IS NULL THEN 1 END FROM client", "SELECT CAST(@col AS int) FROM client", "SELECT STRING_AGG(name, ',') WITHIN GROUP (ORDER BY @col) FROM client",
		"SELECT 1 AS x FROM @table", "SELECT 1 AS x FROM dbo.@table", "SELECT 1 AS x FROM [@table]", "SELECT 1 AS x FROM db..@table", "SELECT (SELECT 1 FROM @table)",
		"WITH x AS (SELECT 1 AS y FROM @table) SELECT y FROM x", "SELECT @table.* FROM client", "SELECT @table.id FROM client",
		"SELECT 1 AS x FROM region JOIN @table ON 1 = 1", "SELECT 1 AS x FROM region CROSS APPLY (SELECT * FROM @table) AS y",
	} {
		with := func(column, table string) acl.Refusal {
			st, no := guard(t, 0, strings.NewReplacer("@col", column, "@table", table).Replace(statement), shop, shopPolicy)
			if no == nil {
				t.Fatalf("%s: got %s", statement, st.Text())
			}
			r := *no
			r.Public = strings.NewReplacer("ssn", "@", "xyz", "@", "vault", "@", "voult", "@").Replace(r.Public)
			r.Detail = ""
			return r
		}
		if hidden, absent := with("ssn", "vault"), with("xyz", "voult"); hidden != absent || hidden.Code != acl.CodeNotAvailable {
			t.Errorf("%s: hidden %+v, absent %+v", statement, hidden, absent)
		}
	}
}

func TestTheNumberOfRowsIsCapped(t *testing.T) {
	const regions = "(SELECT _gate.id, _gate.name FROM dbo.region AS _gate) AS region"
	for sql, want := range map[string]string{
		"SELECT id FROM region":                                                   "SELECT TOP (3) id FROM " + regions,
		"SELECT DISTINCT id FROM region":                                          "SELECT DISTINCT TOP (3) id FROM " + regions,
		"SELECT TOP 2 id FROM region":                                             "SELECT TOP 2 id FROM " + regions,
		"SELECT TOP (9) id FROM region ORDER BY id":                               "SELECT TOP (3) id FROM " + regions + " ORDER BY id",
		"SELECT id FROM region ORDER BY id OFFSET 2 ROWS":                         "SELECT id FROM " + regions + " ORDER BY id OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY",
		"SELECT id FROM region ORDER BY id OFFSET 2 ROWS FETCH FIRST 9 ROWS ONLY": "SELECT id FROM " + regions + " ORDER BY id OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY",
		"SELECT id FROM region ORDER BY id OFFSET 2 ROWS FETCH NEXT 1 ROW ONLY":   "SELECT id FROM " + regions + " ORDER BY id OFFSET 2 ROWS FETCH NEXT 1 ROWS ONLY",
		"SELECT TOP 50 PERCENT id FROM region ORDER BY id DESC": "SELECT TOP (3) _gate.c1 AS id FROM (SELECT TOP 50 PERCENT id FROM " + regions +
			" ORDER BY id DESC) AS _gate (c1) ORDER BY _gate.c1 DESC",
		"SELECT TOP 1 WITH TIES id, COUNT(*) FROM region GROUP BY id ORDER BY 2": "SELECT TOP (3) _gate.c1 AS id, _gate.c2 FROM (SELECT TOP 1 WITH TIES id, COUNT(*) FROM " + regions +
			" GROUP BY id ORDER BY 2) AS _gate (c1, c2) ORDER BY _gate.c2",
		"SELECT TOP 1 WITH TIES id FROM region ORDER BY LEN(name)": acl.CodeNotSupported, // which no order outside could repeat
		"SELECT id AS x FROM region UNION SELECT id FROM client ORDER BY x": "SELECT TOP (3) _gate.c1 AS x FROM (SELECT id AS x FROM " + regions +
			" UNION SELECT id FROM (SELECT _gate.id, _gate.tenant, _gate.region_id, _gate.name, _gate.born FROM dbo.client AS _gate) AS client) AS _gate (c1) ORDER BY _gate.c1",
		"(SELECT id FROM region)":                            "SELECT TOP (3) id FROM " + regions,
		"WITH r AS (SELECT id FROM region) SELECT id FROM r": "WITH r AS (SELECT id FROM " + regions + ") SELECT TOP (3) id FROM r",
	} {
		st, no := guard(t, 3, sql, shop, shopPolicy)
		got := st.Text()
		if no != nil {
			got = no.Code
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", sql, got, want)
		}
	}
}

// TestWhatCanFailIsGuarded: an expression that fails on no value leaves a filtered table to be merged, one that can
// fail puts it behind its guard, and one that could fail even there is refused.
func TestWhatCanFailIsGuarded(t *testing.T) {
	const plain, guarded, refused = "plain", "guarded", "refused"
	for what, want := range map[string]string{
		"SELECT amount FROM invoice":                                           plain,
		"SELECT amount FROM invoice WHERE tenant = 7 AND memo LIKE '%x%'":      plain,
		"SELECT amount FROM invoice WHERE amount > 5 OR amount IS NULL":        plain,
		"SELECT amount FROM invoice WHERE paid >= '2020-01-01'":                plain,
		"SELECT amount FROM invoice WHERE paid > DATEADD(day, -30, GETDATE())": plain,
		"SELECT YEAR(paid), DATEDIFF(day, paid, GETDATE()) FROM invoice":       plain,
		"SELECT memo + 'x', LEN(memo), LEFT(memo, 3) FROM invoice":             plain,
		"SELECT ISNULL(memo, ''), COALESCE(amount, 0) FROM invoice":            plain,
		"SELECT SUM(amount) / COUNT(*), CAST(AVG(amount) AS int) FROM invoice": plain,
		"SELECT amount / 2, amount & 1, amount % 10 FROM invoice":              plain,
		"SELECT TRY_CAST(memo AS int), CAST(amount AS float) FROM invoice":     plain,
		"SELECT 60 * 60 FROM invoice":                                          plain,
		"SELECT (SELECT MAX(id) FROM region) FROM invoice":                     plain,
		"SELECT TOP 5 amount FROM invoice ORDER BY NEWID()":                    plain,

		"WITH w AS (SELECT SUM(id) AS n FROM region) SELECT tenant, n FROM invoice, w":                             plain,
		"WITH w AS (SELECT SUM(id) AS n FROM region) SELECT 1 AS x FROM invoice WHERE tenant IN (SELECT n FROM w)": guarded,
		"SELECT amount * 2 FROM invoice":                                             guarded,
		"SELECT amount / tenant FROM invoice":                                        guarded,
		"SELECT -amount FROM invoice":                                                guarded,
		"SELECT amount FROM invoice WHERE memo = 5":                                  guarded,
		"SELECT amount FROM invoice WHERE memo IN (SELECT id FROM region)":           guarded,
		"SELECT CAST(memo AS int) FROM invoice":                                      guarded,
		"SELECT CONVERT(date, memo) FROM invoice":                                    guarded,
		"SELECT DATEDIFF(second, paid, GETDATE()) FROM invoice":                      guarded,
		"SELECT DATEADD(day, tenant, paid) FROM invoice":                             guarded,
		"SELECT LEFT(memo, tenant) FROM invoice":                                     guarded,
		"SELECT LOG(amount) FROM invoice":                                            guarded,
		"SELECT SUM(amount * 2) FROM invoice":                                        guarded,
		"SELECT (SELECT name FROM region WHERE region.id = tenant) FROM invoice":     guarded,
		"SELECT (SELECT SUM(amount) FROM invoice i WHERE i.id = r.id) FROM region r": guarded,
		"SELECT CASE WHEN tenant > 1 THEN amount / tenant ELSE 0 END FROM invoice":   guarded,
		"SELECT id FROM invoice UNION ALL SELECT memo FROM invoice":                  guarded,

		"SELECT amount / ISNULL(tenant, 0) FROM invoice WHERE 1 / ISNULL(tenant, 0) = 1": refused,
		"SELECT 1 / COALESCE(tenant, 0) FROM invoice":                                    refused,
		"SELECT 1 / 0 FROM invoice":                                                      refused,
		"SELECT CAST('x' AS int) FROM invoice":                                           refused,
		"SELECT CASE WHEN tenant = 1 THEN 'x' ELSE 0 END FROM invoice":                   refused,
	} {
		st, no := guard(t, 0, what, shop, shopPolicy)
		got := plain
		switch {
		case no != nil && no.Code == acl.CodeNotSupported:
			got = refused
		case no != nil:
			t.Errorf("%s: %v", what, no)
			continue
		case strings.Contains(st.Text(), "TOP (9223372036854775807) CASE WHEN _gate_seen._gate_seen = 1 THEN _gate.id END AS id"):
			got = guarded
		}
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
		// Where no row is hidden nothing needs a guard.
		st, no = guard(t, 0, what, shop, allowAll)
		if no != nil || strings.Contains(st.Text(), "9223372036854775807") {
			t.Errorf("%s without a filter: %v %s", what, no, st.Text())
		}
	}
}

// TestFaultyPoliciesAreFaults: a condition that cannot be bound must stop every statement on its table.
func TestFaultyPoliciesAreFaults(t *testing.T) {
	for using, why := range map[string]string{
		"tenant = '{{ principal.tenant }}'":               "stands 0 times",
		"tenant = 1 /* {{ principal.tenant }} */":         "stands 0 times",
		"tenant = {{ principal.tenant }} OR id = @_gate0": "stands 2 times",
		"tenant = @tenant":                                "@tenant",
		"tenants = 7":                                     "tenants is not available",
		`memo = "seven"`:                                  "not available",
		"client.tenant = 7":                               "not available",
		"id IN (SELECT id FROM nobody)":                   "nobody is not available",
		"id IN (SELECT id FROM other.dbo.client)":         "not available",
		"id = OBJECT_ID('x')":                             "OBJECT_ID",
		"memo = SUSER_SNAME()":                            "SUSER_SNAME",
		"tenant = {{ principal.tenants }}":                "IN list",
		"tenant IN (1, {{ principal.tenants }})":          "IN list",
		"tenant = 7) OR (1 = 1":                           "expected",
		"tenant = 7; SELECT 1":                            "several statements",
		"tenant = 7 GROUP BY id":                          "more than a condition",
		"tenant = 7 UNION SELECT 1":                       "more than a condition",
		"tenant = 7 ORDER BY 1":                           "more than a condition",
		"tenant":                                          "",
		"tenant = 7 --":                                   "",
		"id IN (SELECT c.id FROM client AS c WHERE c.id = invoice.client_id)": "",
	} {
		policy := strings.Replace(shopPolicy, "tenant: 7}", "tenant: 7, tenants: [1, 2]}", 1)
		policy = strings.Replace(policy, `"tenant = {{ principal.tenant }}"`, "'"+strings.ReplaceAll(using, "'", "''")+"'", 1)
		st, err := rewrite.NewGuard(tsql.New(), 0).Rewrite("SELECT id FROM invoice", newSchema(t, shop, policy))
		var no *acl.Refusal
		switch {
		case using == "tenant":
			if err == nil {
				t.Errorf("%s: got %s", using, st.Text())
			}
		case why == "":
			if err != nil {
				t.Errorf("%s: %v", using, err)
			}
		case err == nil || errors.As(err, &no) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "line 7"):
			t.Errorf("%s: got %v %q, want a fault that says %q and the line", using, err, st.Text(), why)
		}
	}
}

// TestValuesOfPoliciesStayValues: whatever an attribute holds, it is one literal.
func TestValuesOfPoliciesStayValues(t *testing.T) {
	for yaml, want := range map[string]string{
		`"x' OR 1 = 1 --"`:    "memo = N'x'' OR 1 = 1 --'",
		`"a\nb"`:              "memo = N'a\nb'",
		`"\\"`:                `memo = N'\'`,
		`"ж'"`:                "memo = N'ж'''",
		"-5":                  "memo = (-5)",
		"9223372036854775807": "memo = 9223372036854775807",
		"true":                "memo = 1",
		"1.5":                 "memo = 1.50000000000000000e00",
		`"a\\\nb"`:            "", // SQL Server would drop the backslash and the line break
		`"a\0b"`:              "",
	} {
		policy := strings.Replace(shopPolicy, "tenant: 7}", "tenant: "+yaml+"}", 1)
		policy = strings.Replace(policy, "tenant = {{", "memo = {{", 1)
		st, err := rewrite.NewGuard(tsql.New(), 0).Rewrite("SELECT id FROM invoice", newSchema(t, shop, policy))
		if want == "" {
			if err == nil {
				t.Errorf("%s: got %s", yaml, st.Text())
			}
			continue
		}
		if err != nil || !strings.Contains(st.Text(), want) {
			t.Errorf("%s: %v %s", yaml, err, st.Text())
		}
	}
}

// TestGovernedTrustsNothing hands texts to the last check that no guard would have printed.
func TestGovernedTrustsNothing(t *testing.T) {
	const (
		wrapper = "(SELECT _gate.id, _gate.tenant, _gate.client_id, _gate.amount, _gate.memo, _gate.paid FROM dbo.invoice AS _gate WHERE (_gate.tenant = 7)) AS invoice"
		regions = "(SELECT _gate.id, _gate.name FROM dbo.region AS _gate) AS region"
	)
	st, no := guard(t, 0, "SELECT -id AS n FROM invoice", shop, shopPolicy)
	if no != nil {
		t.Fatal(no)
	}
	guarded := strings.TrimPrefix(st.Text(), "SELECT -id AS n FROM ")
	for text, governed := range map[string]bool{
		"SELECT id FROM " + wrapper:                                 true,
		"SELECT -id AS n FROM " + guarded:                           true,
		"SELECT id FROM " + guarded:                                 false, // a guard that nothing asks for
		"SELECT -id AS n FROM " + wrapper:                           false,
		"SELECT id FROM " + regions:                                 true,
		"SELECT id FROM region":                                     false,
		"SELECT id FROM dbo.region":                                 false,
		"SELECT 1 AS x FROM invoice":                                false,
		"SELECT 1 AS x FROM dbo.client AS _gate":                    false,
		"SELECT 1 AS x FROM sys.tables":                             false,
		"WITH invoice AS (SELECT 1 AS x) SELECT x FROM invoice":     true,
		"WITH invoice AS (SELECT 1 AS x) SELECT x FROM dbo.invoice": false,
		"SELECT ssn FROM (SELECT _gate.id, _gate.tenant, _gate.region_id, _gate.name, _gate.ssn, _gate.born FROM dbo.client AS _gate) AS client": false,
		"SELECT id FROM (SELECT _gate.id FROM dbo.region AS _gate) AS region":                                                                    false,
		"SELECT id FROM (SELECT _gate.id, _gate.name FROM dbo.region AS _gate WHERE 1 = 1) AS region":                                            false,
		"SELECT id FROM (SELECT TOP (1) _gate.id, _gate.name FROM dbo.region AS _gate) AS region":                                                false,
		"SELECT id FROM (SELECT _gate.id, _gate.name FROM dbo.region AS _gate WITH (NOLOCK)) AS region":                                          true,
		"SELECT id FROM (SELECT _gate.id, _gate.name FROM dbo.region AS _gate) AS region (id, name)":                                             false,
		"SELECT id FROM (SELECT _gate.id, _gate.name FROM hr.region AS _gate) AS region":                                                         false,
		strings.Replace("SELECT id FROM "+wrapper, "tenant = 7", "tenant = 8", 1):                                                                false,
		strings.Replace("SELECT id FROM "+wrapper, "(_gate.tenant = 7)", "(_gate.tenant = 7) OR 1 = 1", 1):                                       false,
		"SELECT (SELECT val FROM dbo.vault) AS x":                                                                                                false,
		"SELECT id FROM " + regions + " WHERE EXISTS (SELECT 1 FROM vault)":                                                                      false,
		"SELECT SESSION_CONTEXT(N'schemagate_hash_key') AS k":                                                                                    false,
	} {
		tree, err := tsql.New().Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := tree.Single(); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		err = tree.Governed(newSchema(t, shop, shopPolicy))
		if (err == nil) != governed {
			t.Errorf("%s: governed %t, want %t (%v)", text, err == nil, governed, err)
		}
	}
}

// TestTheParserLosesNothing: the parser skips what it does not expect, and a text of which it skipped something is
// refused.
func TestTheParserLosesNothing(t *testing.T) {
	for _, sql := range []string{
		"SELECT TOP (5) WITH name FROM region",
		"SELECT id FROM region UNION SELECT id FROM region ORDER BY id OFFSET 1 ROWS",
		"(SELECT id FROM region) ORDER BY id",
		"(SELECT id FROM region) OFFSET 1 ROWS",
		"(SELECT id FROM region) FOR XML PATH('x')",
		"SELECT 1 + 2 COLLATE Latin1_General_BIN AS x",
		"SELECT 'x' COLLATE Latin1_General_BIN AS x",
		"SELECT id FROM region GO",
		"SELECT id FROM region\nGO\n",
		"SELECT id FROM region OPTION (RECOMPILE) nonsense",
		"SELECT id FROM region WHERE id = 1 nonsense",
		"SELECT id FROM region t nonsense",
		"SELECT N 'x' AS x",
		"SELECT id x y FROM region",
	} {
		if st, no := guard(t, 0, sql, shop, shopPolicy); no == nil {
			t.Errorf("%s: got %s", sql, st.Text())
		}
	}
}

func TestHugeAndDeepStatementsEndInARefusal(t *testing.T) {
	var doubling strings.Builder
	doubling.WriteString("WITH c0 AS (SELECT 1 AS x)")
	for i := range 40 {
		fmt.Fprintf(&doubling, ", c%d AS (SELECT a.x FROM c%d AS a, c%d AS b)", i+1, i, i)
	}
	for name, sql := range map[string]string{
		"parentheses":       "SELECT " + strings.Repeat("(", 500_000),
		"balanced":          "SELECT " + strings.Repeat("(", 300_000) + "1" + strings.Repeat(")", 300_000),
		"subqueries":        strings.Repeat("SELECT (", 100_000) + "1",
		"tables":            "SELECT 1 AS x FROM " + strings.Repeat("(", 500_000),
		"signs":             "SELECT " + strings.Repeat("- ", 400_000) + "1",
		"not":               "SELECT 1 AS x WHERE " + strings.Repeat("NOT ", 200_000) + "1 = 1",
		"case":              "SELECT " + strings.Repeat("CASE WHEN 1 = 1 THEN ", 40_000) + "1",
		"begin":             strings.Repeat("BEGIN ", 150_000) + "SELECT 1",
		"joins":             "SELECT 1 AS x FROM region AS r0" + strings.Repeat(" CROSS JOIN region", 1001),
		"names of WITH":     doubling.String() + " SELECT x FROM c40",
		"more than is read": "SELECT 1 /*" + strings.Repeat("x", 1<<20),
	} {
		if st, no := guard(t, 0, sql, shop, shopPolicy); no == nil {
			t.Errorf("%s: got %.100s", name, st.Text())
		}
	}
	joins := "SELECT r0.id FROM region AS r0"
	for i := range 500 {
		joins += fmt.Sprintf(" JOIN region AS r%d ON r%d.id = r%d.id", i+1, i+1, i)
	}
	// What is merely long or deep goes through.
	for name, sql := range map[string]string{
		"a list":       "SELECT id FROM invoice WHERE id IN (1" + strings.Repeat(", 1", 100_000) + ")",
		"a sum":        "SELECT 1" + strings.Repeat("+1", 30_000) + " AS x",
		"alternatives": "SELECT id FROM region WHERE id = 1" + strings.Repeat(" OR id = 1", 20_000),
		"a text":       "SELECT '" + strings.Repeat("''", 500_000) + "' AS x",
		"levels":       "SELECT id FROM invoice" + strings.Repeat(" WHERE 1 IN (SELECT id FROM invoice", 300) + strings.Repeat(")", 300),
		"parts":        "SELECT 1 AS x" + strings.Repeat(" UNION ALL SELECT 1", 5_000),
		"joins":        joins,
	} {
		if _, no := guard(t, 0, sql, shop, shopPolicy); no != nil {
			t.Errorf("%s: %v", name, no)
		}
	}
}

func TestTextThatIsNotPlainIsRefused(t *testing.T) {
	for _, sql := range []string{"SELECT 1\x00; DROP TABLE x", "SELECT '\xff'", "\ufeffSELECT 1 AS x", "SELECT 1 AS x\u200b", "SELECT $1.5", "SELECT {d '2020-01-01'}", "SELECT 1x"} {
		if st, no := guard(t, 0, sql, shop, shopPolicy); no == nil || no.Code != acl.CodeUnparsable {
			t.Errorf("%q: %v %s", sql, no, st.Text())
		}
	}
}

// TestACatalogMayLeaveOutDbo: a table without a schema is one of dbo.
func TestACatalogMayLeaveOutDbo(t *testing.T) {
	objects := []catalog.Object{
		{Ref: catalog.TableRef("db", "", "Post"), Table: &catalog.Table{}},
		{Ref: catalog.ColumnRef("db", "", "Post", "Id"), Column: &catalog.Column{Type: "int"}},
	}
	for _, sql := range []string{"SELECT id FROM post", "SELECT id FROM dbo.post", "SELECT id FROM db.dbo.post", "SELECT id FROM db..post"} {
		st, err := rewrite.NewGuard(tsql.New(), 0).Rewrite(sql, schemaOf(t, viewOf(t, allowAll, objects)))
		if want := "SELECT id FROM (SELECT _gate.Id FROM dbo.Post AS _gate) AS post"; err != nil || st.Text() != want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", sql, err, st.Text(), want)
		}
	}
}

// viewOf is the asker's view of a catalog.
func viewOf(t testing.TB, policy string, objects []catalog.Object) acl.View {
	t.Helper()
	snapshot, err := catalog.Build([]catalog.Database{{Name: "db", Dialect: catalog.TSQL}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	p, err := acl.ParsePolicy("policy.yaml", []byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	e, err := casbin.New(p, snapshot)
	if err != nil {
		t.Fatal(err)
	}
	view, err := e.View(rewritetest.Asker)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func schemaOf(t testing.TB, view acl.View) *rewrite.Schema {
	t.Helper()
	schema, err := rewrite.NewSchema(view, "db")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestASQLViewIsReadThrough: its definition may be kept whole or as its SELECT alone, and what is read are its tables.
func TestASQLViewIsReadThrough(t *testing.T) {
	_, tables, err := tsql.New().Objects("db", shop)
	if err != nil {
		t.Fatal(err)
	}
	for definition, readable := range map[string]bool{
		"SELECT client_id, SUM(amount) FROM invoice WHERE memo IS NULL GROUP BY client_id":                                               true,
		"(SELECT client_id, SUM(amount) FROM invoice WHERE memo IS NULL GROUP BY client_id)":                                             true,
		"CREATE VIEW dbo.total (who, n) AS SELECT client_id, SUM(amount) FROM invoice WHERE memo IS NULL GROUP BY client_id":             true,
		"create or alter view [total] as /* x */ select client_id, sum(amount) as n from invoice where memo is null group by client_id;": true,
		"CREATE VIEW dbo.total AS SELECT client_id, amount FROM invoice WHERE memo IS NULL WITH CHECK OPTION":                            false,
		"WITH w AS (SELECT client_id, amount FROM invoice) SELECT client_id, amount FROM w":                                              false,
		"SELECT client_id FROM invoice":                   false,
		"SELECT 1, 2; DROP TABLE invoice":                 false,
		"SELECT client_id, amount FROM other.dbo.invoice": false,
		"": false,
	} {
		total := catalog.TableRef("db", "dbo", "total")
		schema := schemaOf(t, viewOf(t, shopPolicy, append(slices.Clip(tables),
			catalog.Object{Ref: total, Table: &catalog.Table{SQLView: definition + " "}},
			catalog.Object{Ref: catalog.ColumnRef("db", "dbo", "total", "who"), Column: &catalog.Column{}},
			catalog.Object{Ref: catalog.ColumnRef("db", "dbo", "total", "n"), Column: &catalog.Column{Position: 1}})))
		st, err := rewrite.NewGuard(tsql.New(), 0).Rewrite("SELECT t.n, t.who FROM dbo.total AS t WHERE t.who = 1", schema)
		var no *acl.Refusal
		if !readable {
			if !errors.As(err, &no) {
				t.Errorf("%s: got %s, %v", definition, st.Text(), err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", definition, err)
			continue
		}
		ref := func(column string) catalog.Ref { return catalog.ColumnRef("db", "dbo", "invoice", column) }
		if want := []rewrite.Output{
			{Name: "n", From: []catalog.Ref{ref("amount")}, Transform: rewrite.Aggregation},
			{Name: "who", From: []catalog.Ref{ref("client_id")}, Transform: rewrite.Identity},
		}; !reflect.DeepEqual(st.Output(), want) {
			t.Errorf("%s: columns %v", definition, st.Output())
		}
		if want := []catalog.Ref{ref("memo"), ref("client_id")}; !slices.Equal(st.Filters(), want) {
			t.Errorf("%s: filters %v", definition, st.Filters())
		}
		if reads := st.Reads(); len(reads) != 2 || reads[0].Table != total || len(reads[0].Columns) != 2 || reads[1].Table.Table != "invoice" || len(reads[1].Rules) != 1 {
			t.Errorf("%s: reads %v", definition, reads)
		}
	}
}

func TestObjectsReadsWhatDDLCreates(t *testing.T) {
	db, objects, err := tsql.New().Objects("db", `
		SET ANSI_NULLS ON
		GO
		CREATE TABLE [dbo].[Order] ([id] int IDENTITY(1, 1) NOT NULL PRIMARY KEY CLUSTERED, [of] varchar(20) NOT NULL UNIQUE,
			client int REFERENCES dbo.client (a), note nvarchar(max) NULL DEFAULT (N'; CREATE TABLE not_this (x int)'), total AS (id * 2),
			CONSTRAINT uq UNIQUE (client, note), CONSTRAINT ck CHECK (id > 0)) ON [PRIMARY]
		GO
		CREATE TABLE client (a int, b decimal(10, 2), CONSTRAINT pk PRIMARY KEY (a, b DESC));
		ALTER TABLE client ADD c int;
		CREATE TABLE client (again int);
		INSERT INTO client VALUES (1, 2)
		CREATE TABLE sales.x (c xml, d dbo.money_type, FOREIGN KEY (c) REFERENCES client)
		CREATE TABLE #temporary (x int);
		CREATE TABLE other.dbo.elsewhere (x int);
		CREATE TABLE broken (;
		GO
		CREATE VIEW v (p, q) AS SELECT 1, 2
		GO
		CREATE OR ALTER VIEW sales.w AS SELECT c.*, a + b AS [sum], c.a AS again FROM client AS c`)
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
		for _, k := range o.Table.UniqueKeys {
			line += " unique " + strings.Join(k, "+")
		}
		for _, k := range o.Table.ForeignKeys {
			line += fmt.Sprintf(" %s to %s %s", strings.Join(k.Columns, "+"), k.To, strings.Join(k.ToColumns, "+"))
		}
		got = append(got, line)
	}
	want := []string{
		"db.dbo.Order: id int key not null, of varchar(20) not null, client int, note nvarchar(max), total, unique of unique client+note client to db.dbo.client a",
		"db.dbo.client: a int key not null, b decimal(10,2) key not null,",
		"db.dbo.v: p, q, view",
		"db.sales.w: a, b, sum, again, view",
		"db.sales.x: c xml, d dbo.money_type,",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
