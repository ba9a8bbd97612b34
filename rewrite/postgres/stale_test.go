package postgres_test

import (
	"slices"
	"testing"

	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/postgres"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

// TestColumnsNewerThanTheCatalogChangeNothing guards statements with the catalog of a database to which columns are
// added afterwards, of names that the statements use for something else.
func TestColumnsNewerThanTheCatalogChangeNothing(t *testing.T) {
	const ddl = `CREATE TABLE t (id int PRIMARY KEY, a int);
CREATE TABLE u (id int PRIMARY KEY, b int);
CREATE VIEW starred AS SELECT * FROM t;
CREATE VIEW joined AS SELECT a, b FROM t, u WHERE t.id = u.id;
`
	const rows = `INSERT INTO t VALUES (1, 10), (2, 20), (3, 20); INSERT INTO u VALUES (1, 7), (2, 8), (4, 9);`
	const newer = `ALTER TABLE t ADD COLUMN b int DEFAULT 1, ADD COLUMN n int DEFAULT 2, ADD COLUMN z int DEFAULT 3, ADD COLUMN u int DEFAULT 4;
ALTER TABLE u ADD COLUMN a int DEFAULT 5, ADD COLUMN n int DEFAULT 6, ADD COLUMN z int DEFAULT 8, ADD COLUMN lower int DEFAULT 9;`
	const policy = `version: 1
principals: {asker: {roles: [reader]}}
grants: [{role: reader, allow: ["*"], actions: [view, query]}]
`
	conn := freshDatabase(t, "stale", ddl+rows)
	statements := []string{
		"select * from t",
		"select t.* from t, u",
		"table t",
		"select * from t natural join u",
		"select count(*) from t natural join u",
		"select id from t natural join u natural join (select 1 as n, 1 as id) x",
		"select row_to_json(t) from t",
		"select t from t",
		"select (t).* from t",
		"select t::text from t order by t",
		"select count(distinct t) from t",
		"select a, b from t, u where t.id = u.id",
		"select a, b from t join u on t.id = u.id",
		"select a from t where exists (select 1 from u where b > a)",
		"select id, (select max(b) from u where u.id <= a / 10) from t",
		"select id from t where id in (select a / 10 from u)",
		"select a as n, count(*) from t group by n",
		"select a as n, count(*) from t group by n order by n",
		"select a as z from t order by z",
		"select * from t join u using (id)",
		"select b from t join u using (id)",
		"select j.b from (t join u on t.id = u.id) as j (i, a, k, b)",
		"select j.* from (t cross join u) as j",
		"select x.y from t as x (w, y)",
		"select s.id from (select * from t) s, lateral (select b from u where u.id = s.id) l",
		"with w as (select * from t) select w from w",
		"select n from t, generate_series(1, 2) n",
		"select u from (select 1 as q) u, t",
		"select (select count(*) from t where n > 1) from (select 5 as n) x",
		"select id from t union select n from (select 3 as n) x order by id",
		"select a, grouping(a) from t group by rollup (a)",
		"select t.id, a from t group by t.id",
		"select t.id, a, b from t join u on u.id = t.id group by t.id, u.id",
		"select sum(a) over (partition by n) from t, (select 1 as n) x",
		"select * from starred",
		"select * from joined",
		"select starred from starred",
		"select * from only t tablesample system (100)",
	}
	guarded := make([]string, len(statements))
	before := make([][]string, len(statements))
	for i, sql := range statements {
		schema, err := rewritetest.NewSchema(postgres.New(), ddl, policy)
		if err != nil {
			t.Fatal(err)
		}
		st, err := rewrite.NewGuard(postgres.New(), 100).Rewrite(sql, schema)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		guarded[i] = st.Text()
		if before[i], err = query(conn, st.Text()); err != nil {
			t.Fatalf("%s\n%s: %v", sql, st.Text(), err)
		}
		if original, err := query(conn, sql); err != nil || !equalRows(original, before[i]) {
			t.Errorf("%s\nis guarded as %s\ngot  %v\nwant %v (%v)", sql, st.Text(), before[i], original, err)
		}
	}
	if _, err := query(conn, newer); err != nil {
		t.Fatal(err)
	}
	for i, sql := range statements {
		if after, err := query(conn, guarded[i]); err != nil || !equalRows(before[i], after) {
			t.Errorf("%s\nguarded: %s\nbefore %v\nafter  %v (%v)", sql, guarded[i], before[i], after, err)
		}
	}
}

func equalRows(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// TestTablesSeenWholeStandPlain keeps statements readable where nothing could be mistaken.
func TestTablesSeenWholeStandPlain(t *testing.T) {
	for sql, want := range map[string]string{
		"select a from t where a > 1 order by id":                        "SELECT a FROM public.t WHERE a > 1 ORDER BY id",
		"select t.a, u.b from t join u on u.id = t.id":                   "SELECT t.a, u.b FROM public.t JOIN public.u ON u.id = t.id",
		"select t.a, u.b from t join u using (id)":                       "SELECT t.a, u.b FROM public.t JOIN public.u USING (id)",
		"select a from t where exists (select from u where u.id = t.id)": "SELECT a FROM public.t WHERE EXISTS (SELECT FROM public.u WHERE u.id = t.id)",
		"select a as n from t order by n":                                "SELECT a AS n FROM public.t ORDER BY n",
		"select * from t":                                                "SELECT * FROM (SELECT id, a FROM public.t) t",
	} {
		schema, err := rewritetest.NewSchema(postgres.New(), "CREATE TABLE t (id int PRIMARY KEY, a int); CREATE TABLE u (id int PRIMARY KEY, b int);", `version: 1
principals: {asker: {roles: [reader]}}
grants: [{role: reader, allow: ["*"], actions: [view, query]}]
`)
		if err != nil {
			t.Fatal(err)
		}
		if st, err := rewrite.NewGuard(postgres.New(), 0).Rewrite(sql, schema); err != nil || st.Text() != want {
			t.Errorf("%s\ngot  %s (%v)\nwant %s", sql, st.Text(), err, want)
		}
	}
}
