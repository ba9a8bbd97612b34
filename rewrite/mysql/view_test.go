package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/mysql"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

const viewTables = `CREATE TABLE region (id INT PRIMARY KEY, name VARCHAR(20));
CREATE TABLE client (id INT PRIMARY KEY, tenant INT, region_id INT, name VARCHAR(20), ssn VARCHAR(11));
CREATE TABLE invoice (id INT PRIMARY KEY, tenant INT, client_id INT, amount INT, memo VARCHAR(40));
CREATE TABLE vault (id INT PRIMARY KEY, val VARCHAR(20));`

const viewRows = `INSERT INTO region VALUES (1,'north'),(2,'south'),(3,'west');
INSERT INTO client VALUES (1,7,1,'ada','111'),(2,8,1,'ben','222'),(3,7,2,'cyd','333'),(4,8,3,'dov','444');
INSERT INTO invoice VALUES (10,7,1,100,'a'),(11,8,2,900,'b'),(12,7,3,50,'c'),(13,8,1,700,'d'),(14,7,2,25,'e'),(15,null,3,5,'f');
INSERT INTO vault VALUES (1,'topsecret');`

const viewPolicy = `version: 1
principals: {asker: {roles: [reader], attributes: {tenant: 7}}}
grants:
  - {role: reader, allow: ["*"], actions: [view, query]}
  - {role: reader, deny: [%[1]s.vault, %[1]s.client.ssn, %[1]s.late.hidden]}
row_filters:
  - {table: %[1]s.client, roles: [reader], using: "tenant = {{ principal.tenant }}"}
  - {table: %[1]s.invoice, roles: [reader], using: "tenant = {{ principal.tenant }}"}
  - {table: %[1]s.late, roles: [reader], using: "hidden < 100 and kind not in (select name from region)"}
masks:
  - {column: %[1]s.late.kind, roles: [reader], with: {expression: "concat(kind, hidden)"}}
`

// viewDDL are SQL views over tables with filters, hidden columns and hidden tables. late has a filter, a mask and a
// hidden column of its own.
const viewDDL = `CREATE VIEW paid AS SELECT * FROM invoice;
CREATE VIEW sums (client, total) AS SELECT client_id, sum(amount) FROM invoice GROUP BY client_id;
CREATE VIEW names AS SELECT c.name, r.name AS region FROM client c LEFT JOIN region r ON r.id = c.region_id;
CREATE VIEW both_ways AS SELECT id, 'client' AS kind FROM client UNION ALL SELECT id, memo FROM invoice;
CREATE VIEW rich AS SELECT n.name, s.total FROM names n JOIN client c ON c.name = n.name JOIN sums s ON s.client = c.id WHERE s.total > 60;
CREATE VIEW late AS SELECT id, amount AS hidden, memo AS kind, tenant + 0 AS plus FROM invoice WHERE amount <> 1;
CREATE VIEW ranked AS SELECT id, rank() OVER (PARTITION BY client_id ORDER BY amount DESC) AS place, amount FROM invoice;
CREATE VIEW odd AS WITH invoice AS (SELECT id FROM region) SELECT id, (SELECT count(*) FROM client) AS n FROM invoice;
CREATE VIEW merged AS SELECT id, region_id, name, area FROM client NATURAL JOIN (SELECT id AS region_id, name AS area FROM region) r;
CREATE VIEW unnamed AS SELECT count(*), amount + 1 FROM invoice GROUP BY amount;
CREATE VIEW tail AS SELECT id FROM invoice ORDER BY amount DESC LIMIT 2;
CREATE VIEW of_vault AS SELECT * FROM vault;
CREATE VIEW of_ssn AS SELECT id, ssn FROM client;
CREATE VIEW by_ssn AS SELECT id FROM client WHERE ssn <> '111';
CREATE VIEW all_of_client AS SELECT * FROM client;
CREATE VIEW on_vault AS SELECT v.id FROM of_vault v;
CREATE VIEW who AS SELECT id, user() AS me FROM region;
`

func TestViews(t *testing.T) {
	const database, pruned = "schemagate_view", "schemagate_view_pruned"
	db := server(t)
	full := newDatabase(t, db, database)
	exec(t, full, viewTables+viewRows+viewDDL)
	visible := newDatabase(t, db, pruned)
	exec(t, visible, strings.NewReplacer(", ssn VARCHAR(11)", "", "CREATE TABLE vault (id INT PRIMARY KEY, val VARCHAR(20));", "").Replace(viewTables))
	exec(t, full, fmt.Sprintf(`INSERT INTO %[1]s.region SELECT * FROM region; INSERT INTO %[1]s.client SELECT id, tenant, region_id, name FROM client WHERE tenant = 7;
		INSERT INTO %[1]s.invoice SELECT * FROM invoice WHERE tenant = 7`, pruned))
	for s := range strings.SplitSeq(viewDDL, ";\n") {
		if s != "" && !strings.Contains(s, "vault") && !strings.Contains(s, "ssn") {
			exec(t, visible, s)
		}
	}
	exec(t, visible, `DROP VIEW late, all_of_client; CREATE VIEW late AS SELECT id, concat(memo, amount) AS kind, tenant + 0 AS plus FROM invoice WHERE amount <> 1 and amount < 100 and memo not in (select name from region)`)
	policy := fmt.Sprintf(viewPolicy, database)
	guard := rewrite.NewGuard(mysql.New(), 0)
	for _, c := range []struct{ in, code string }{
		{"select * from paid", ""},
		{"select count(*) from paid", ""},
		{"select p.id, paid.id from paid p join paid on p.id = paid.id", ""},
		{"select schemagate_view.paid.id from schemagate_view.paid", ""},
		{"select * from sums order by total", ""},
		{"select total from sums where client = 1", ""},
		{"select * from names n left join sums s on s.total > 1", ""},
		{"select kind, count(*) from both_ways group by kind", ""},
		{"select * from rich", ""},
		{"select r.* from rich r, rich q where r.name = q.name", ""},
		{"select * from late", ""},
		{"select kind from late where plus = 7 order by kind", ""},
		{"select hidden from late", acl.CodeNotAvailable},
		{"select id from late where hidden > 1", acl.CodeNotAvailable},
		{"select * from ranked where place = 1", ""},
		{"select * from odd", ""},
		{"select area, name from merged", ""},
		{"select `count(*)`, `amount + 1` from unnamed", ""},
		{"select * from unnamed where `amount + 1` > 50", ""},
		{"select * from tail", ""},
		{"with invoice as (select 1 as id, 2 as amount), region as (select 9 as id) select p.amount, o.n from paid p join odd o on true, invoice i", ""},
		{"with recursive client as (select 1 as id union all select id + 1 from client where id < 3) select count(*) from names, client", ""},
		{"select id from client where exists (select 1 from paid where paid.client_id = client.id and amount > 60)", ""},
		{"select (select max(total) from sums where client = c.id) from client c", ""},
		{"select id from region where id in (select client from sums) union select id from paid", ""},
		{"select 1 from nowhere", acl.CodeNotAvailable},
		{"select * from of_vault", acl.CodeNotAvailable},
		{"select id from of_ssn", acl.CodeNotAvailable},
		{"select id from by_ssn", acl.CodeNotAvailable},
		{"select id from all_of_client", acl.CodeNotAvailable},
		{"select id from on_vault", acl.CodeNotAvailable},
		{"select id from who", acl.CodeNotSupported},
		{"select client.id from sums", acl.CodeNotAvailable},
		{"select amount from sums", acl.CodeNotAvailable},
		{"select 1 from paid use index (x)", acl.CodeNotSupported},
	} {
		for from, schema := range map[string]*rewrite.Schema{
			"DDL": schemaFor(t, policy, database, viewTables+viewDDL, nil), "the engine": schemaFor(t, policy, database, viewTables+viewDDL, full),
		} {
			t.Run(from+"/"+c.in, func(t *testing.T) {
				st, err := guard.Rewrite(c.in, schema)
				if c.code != "" {
					var no *acl.Refusal
					if !errors.As(err, &no) || no.Code != c.code {
						t.Fatalf("got %v, want %s", err, c.code)
					}
					for _, name := range []string{"vault", "ssn", "client", "user"} {
						if !strings.Contains(c.in, name) && strings.Contains(no.Public+no.Hint, name) {
							t.Errorf("the refusal speaks of %s: %s, %s", name, no.Public, no.Hint)
						}
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				want, err := query(visible, strings.ReplaceAll(c.in, database, pruned))
				if err != nil {
					t.Fatal(err)
				}
				got, err := query(full, st.Text())
				if err != nil {
					t.Fatalf("%v\n%s", err, st.Text())
				}
				if !slices.Equal(sorted(got), sorted(want)) || len(want) == 0 {
					t.Errorf("got  %q\nwant %q\n%s", got, want, st.Text())
				}
			})
		}
	}
}

// schemaFor builds the asker's schema. The definitions of SQL views are those that the engine shows, if it is given.
func schemaFor(t *testing.T, policy, database, ddl string, engine *sql.Conn) *rewrite.Schema {
	t.Helper()
	d, objects, err := mysql.New().Objects(database, ddl)
	if err != nil {
		t.Fatal(err)
	}
	for i := range objects {
		if o := &objects[i]; engine != nil && o.Table != nil && o.Table.SQLView != "" {
			err := engine.QueryRowContext(context.Background(), "SELECT view_definition FROM information_schema.views WHERE table_schema = ? AND table_name = ?", database, o.Ref.Table).Scan(&o.Table.SQLView)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return asked(t, policy, database, []catalog.Database{d}, objects)
}

func asked(t *testing.T, policy, database string, databases []catalog.Database, objects []catalog.Object) *rewrite.Schema {
	t.Helper()
	s, err := rewrite.NewSchema(viewOf(t, policy, databases, objects), database)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// viewOf is the asker's view of a catalog.
func viewOf(t testing.TB, policy string, databases []catalog.Database, objects []catalog.Object) acl.View {
	t.Helper()
	snapshot, err := catalog.Build(databases, objects)
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
	v, err := e.View(rewritetest.Asker)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestSQLViewsThatCannotBeExpanded shows the refusals for views that nothing is wrong with but their definition.
func TestSQLViewsThatCannotBeExpanded(t *testing.T) {
	chain := func(n int, body string) []string {
		views := []string{"SELECT id FROM region"}
		for i := 1; i < n; i++ {
			views = append(views, strings.ReplaceAll(body, "?", fmt.Sprintf("w%d", i-1)))
		}
		return views
	}
	for name, c := range map[string]struct {
		views []string // w0, w1, ... each of one column
		code  string
	}{
		"32 that read each other":     {chain(32, "SELECT id FROM ?"), ""},
		"33 that read each other":     {chain(33, "SELECT id FROM ?"), acl.CodeNotSupported},
		"a circle":                    {[]string{"SELECT id FROM w1", "SELECT id FROM w0"}, acl.CodeNotSupported},
		"itself":                      {[]string{"SELECT id FROM w0"}, acl.CodeNotSupported},
		"growth without end":          {chain(30, "SELECT a.id FROM ? a JOIN ? b ON a.id = b.id"), acl.CodeTooLarge},
		"no definition to be seen":    {[]string{"/* the server does not show this login the definition */"}, acl.CodeNotSupported},
		"not SQL":                     {[]string{"SELEC id"}, acl.CodeNotSupported},
		"more than reading":           {[]string{"DELETE FROM region"}, acl.CodeNotSupported},
		"two statements":              {[]string{"SELECT id FROM region; SELECT 1"}, acl.CodeNotSupported},
		"other columns":               {[]string{"SELECT id, name FROM region"}, acl.CodeNotSupported},
		"a name of the guard's own":   {[]string{"SELECT _gate.id FROM region _gate"}, acl.CodeNotSupported},
		"an ambiguous name":           {[]string{"SELECT id FROM region, client"}, acl.CodeNotSupported},
		"renamed, and ordered by it":  {[]string{"SELECT id AS other FROM region ORDER BY other"}, acl.CodeNotSupported},
		"renamed":                     {[]string{"SELECT id AS other FROM region WHERE id > 1"}, ""},
		"another database's":          {[]string{"SELECT id FROM elsewhere.region"}, acl.CodeNotAvailable},
		"a column that is not there":  {[]string{"SELECT nowhere AS id FROM region"}, acl.CodeNotAvailable},
		"a star over a hidden column": {[]string{"SELECT x.id FROM (SELECT * FROM client) x"}, acl.CodeNotAvailable},
	} {
		t.Run(name, func(t *testing.T) {
			d, objects, err := mysql.New().Objects("db", viewTables)
			if err != nil {
				t.Fatal(err)
			}
			last := ""
			for i, body := range c.views {
				last = fmt.Sprintf("w%d", i)
				objects = append(objects, catalog.Object{Ref: catalog.TableRef("db", "", last), Table: &catalog.Table{SQLView: body}},
					catalog.Object{Ref: catalog.ColumnRef("db", "", last, "id"), Column: &catalog.Column{}})
			}
			const policy = "version: 1\nprincipals: {asker: {roles: [r]}}\ngrants: [{role: r, allow: [\"*\"], actions: [view, query]}, {role: r, deny: [db.client.ssn]}]\n"
			st, err := rewrite.NewGuard(mysql.New(), 0).Rewrite("SELECT id FROM "+last, asked(t, policy, "db", []catalog.Database{d}, objects))
			var no *acl.Refusal
			switch {
			case c.code == "" && err != nil:
				t.Error(err)
			case c.code != "" && (!errors.As(err, &no) || no.Code != c.code):
				t.Errorf("got %v, want %s\n%.200s", err, c.code, st.Text())
			case no != nil && !strings.Contains(no.Public, last) && c.code != acl.CodeTooLarge:
				t.Errorf("the refusal does not speak of the view: %s", no.Public)
			}
		})
	}
}

// TestAGuardIsSafeForConcurrentUse shares one dialect between principals of different attributes.
func TestAGuardIsSafeForConcurrentUse(t *testing.T) {
	guard := rewrite.NewGuard(mysql.New(), 0)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			policy := strings.ReplaceAll(fuzzPolicy, "tenant: 7", fmt.Sprintf("tenant: %d", i))
			for range 50 {
				schema, err := rewritetest.NewSchema(mysql.New(), fuzzDDL, policy)
				if err != nil {
					t.Error(err)
					return
				}
				st, err := guard.Rewrite("select id from client c where exists (select 1 from invoice)", schema)
				if err != nil || !strings.Contains(st.Text(), fmt.Sprintf("`tenant` = %d)", i)) {
					t.Errorf("%d: %v, %s", i, err, st.Text())
				}
			}
		})
	}
	group.Wait()
}
