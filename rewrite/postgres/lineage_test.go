package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/postgres"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

const lineageDDL = `CREATE TABLE a (id int PRIMARY KEY, x int, y int, secret int, tags int[]);
CREATE TABLE b (id int PRIMARY KEY, a_id int, x int, z text);
CREATE VIEW va AS SELECT x AS p, x + y AS q, id FROM a WHERE y > 0;
CREATE VIEW vb (k, n) AS SELECT a_id, count(z) FROM b GROUP BY a_id;
CREATE VIEW vv AS SELECT va.p, vb.n FROM va JOIN vb ON va.id = vb.k;
`

const lineagePolicy = `version: 1
principals: {asker: {roles: [reader]}}
grants:
  - {role: reader, allow: ["*"], actions: [view, query]}
  - {role: reader, deny: [db.public.a.secret]}
row_filters:
  - {table: db.public.b, roles: [reader], using: "x > 5"}
masks:
  - {column: db.public.b.z, roles: [reader], with: partial}
`

// short writes lineage as "name < columns how", with = for identity, ~ for a transformation and # for an aggregation.
func short(st rewrite.Statement) (outputs, filters string) {
	refs := func(list []catalog.Ref) string {
		var out []string
		for _, r := range list {
			out = append(out, strings.TrimPrefix(r.String(), "db.public."))
		}
		return strings.Join(out, ",")
	}
	sign := map[rewrite.Transform]string{rewrite.Identity: "=", rewrite.Transformation: "~", rewrite.Aggregation: "#"}
	var parts []string
	for _, o := range st.Output() {
		parts = append(parts, o.Name+sign[o.Transform]+refs(o.From))
	}
	return strings.Join(parts, " "), refs(st.Filters())
}

func TestLineageOfResultColumns(t *testing.T) {
	for _, c := range []struct{ name, sql, output, filters string }{
		{"a column", "select x from a", "x=a.x", ""},
		{"a renamed column", "select a.x as n from a", "n=a.x", ""},
		{"a constant", "select 1", "?column?~", ""},
		{"a cast is an expression", "select x::text from a", "x~a.x", ""},
		{"an expression of two tables", "select a.x + b.x from a, b", "?column?~a.x,b.x", ""},
		{"a star lists what can be seen", "select * from a", "id=a.id x=a.x y=a.y tags=a.tags", ""},
		{"a qualified star", "select b.*, a.y from a, b", "id=b.id a_id=b.a_id x=b.x z=b.z y=a.y", ""},
		{"a derived table", "select d.n from (select x as n from a) d", "n=a.x", ""},
		{"an expression through a derived table", "select d.n from (select x + y as n from a) d", "n~a.x,a.y", ""},
		{"a WITH query with other names", "with w(p, q) as (select x, y from a) select q, p from w", "q=a.y p=a.x", ""},
		{"WHERE chooses rows", "select x from a where y > 1 and id = 3", "x=a.x", "a.y,a.id"},
		{"ON chooses rows", "select a.x from a join b on b.a_id = a.id", "x=a.x", "b.a_id,a.id"},
		{"HAVING chooses rows", "select x from a group by x having sum(y) > 1", "x=a.x", "a.y"},
		{"GROUP BY and ORDER BY count for nothing", "select count(*) from a group by x order by y", "count#", ""},
		{"an aggregate", "select sum(x) as s from a", "s#a.x", ""},
		{"an expression over an aggregate", "select sum(x) + 1 as s from a", "s#a.x", ""},
		{"an aggregate through a derived table", "select s * 2 as t from (select sum(x) as s from a) d", "t#a.x", ""},
		{"FILTER makes the value", "select count(*) filter (where y > 1) from a", "count#a.y", ""},
		{"a window with its partition and order", "select rank() over (partition by x order by y) as r from a", "r#a.x,a.y", ""},
		{"a named window", "select sum(id) over w as s from a window w as (partition by x)", "s#a.id,a.x", ""},
		{"a window on a named window", "select sum(id) over (w order by y) as s from a window w as (partition by x)", "s#a.id,a.x,a.y", ""},
		{"CASE with its conditions", "select case when y > 1 then x else id end as c from a", "c~a.y,a.x,a.id", ""},
		{"COALESCE", "select coalesce(x, y) from a", "coalesce~a.x,a.y", ""},
		{"a scalar subquery", "select (select max(z) from b where b.a_id = a.id) from a", "max#b.z", "b.a_id,a.id"},
		{"a correlated value", "select (select a.x + b.x from b limit 1) from a", "?column?~a.x,b.x", ""},
		{"EXISTS only chooses", "select x from a where exists (select y from b where b.a_id = a.id)", "x=a.x", "b.a_id,a.id"},
		{"IN reads its query's values", "select x from a where id in (select a_id from b where x > 7)", "x=a.x", "a.id,b.a_id,b.x"},
		{"EXISTS as a value is made of none", "select exists (select 1 from b where x > 1) as e", "e~", "b.x"},
		{"UNION by position", "select x, y from a union select id, x from b", "x=a.x,b.id y=a.y,b.x", ""},
		{"UNION with an aggregate", "select x from a union all select max(x) from b", "x#a.x,b.x", ""},
		{"VALUES by position", "select v.m from a, lateral (values (a.x, 1), (a.y, 2)) v(m, n)", "m~a.x,a.y", ""},
		{"USING takes the left side", "select id from a join b using (id)", "id=a.id", "a.id,b.id"},
		{"USING takes the right side of a right join", "select id from a right join b using (id)", "id=b.id", "a.id,b.id"},
		{"USING takes what is there of a full join", "select id from a full join b using (id)", "id~a.id,b.id", "a.id,b.id"},
		{"a star over USING", "select * from (select id, x from a) p join (select id, z from b) q using (id)", "id=a.id x=a.x z=b.z", "a.id,b.id"},
		{"NATURAL chooses by every shared column", "select y from a natural join b", "y=a.y", "a.id,b.id,a.x,b.x"},
		{"a recursive query", "with recursive r as (select id, x from a union all select r.id, b.x from r join b on b.a_id = r.id) select * from r",
			"id=a.id x=a.x,b.x", "b.a_id,a.id"},
		{"a recursive query that changes places", "with recursive r(p, q, s) as (select x, y, id from a union select q, s, p from r where p > 1) select p, s from r",
			"p=a.x,a.y,a.id s=a.id,a.x,a.y", "a.x,a.y,a.id"},
		{"a recursive query that computes", "with recursive r(n, m) as (select 1, x from a union all select n + m, m from r) select n from r", "n~a.x", ""},
		{"a function in FROM", "select u from a, unnest(a.tags) u", "u~a.tags", ""},
		{"a series", "select n from generate_series(1, 3) n", "n~", ""},
		{"a whole row", "select b from b", "b~b.id,b.a_id,b.x,b.z", ""},
		{"a row as JSON", "select row_to_json(a) from a", "row_to_json~a.id,a.x,a.y,a.tags", ""},
		{"a field of a row", "select (a).x from a", "x=a.x", ""},
		{"LATERAL", "select l.m from a, lateral (select max(b.x) as m from b where b.a_id = a.id) l", "m#b.x", "b.a_id,a.id"},
		{"a grouping set", "select x, grouping(x) from a group by rollup (x)", "x=a.x grouping~a.x", ""},
		{"a SQL view is read through", "select p, q from va where id = 1", "p=a.x q~a.x,a.y", "a.y,a.id"},
		{"a SQL view with names of its own", "select * from vb", "k=b.a_id n#b.z", ""},
		{"a SQL view over SQL views", "select * from vv", "p=a.x n#b.z", "a.y,a.id,b.a_id"},
		{"TABLE", "table va", "p=a.x q~a.x,a.y id=a.id", "a.y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema, err := rewritetest.NewSchema(postgres.New(), lineageDDL, lineagePolicy)
			if err != nil {
				t.Fatal(err)
			}
			st, err := rewrite.NewGuard(postgres.New(), 100).Rewrite(c.sql, schema)
			if err != nil {
				t.Fatalf("%s: %v %+v", c.sql, err, fmt.Sprintf("%+v", err))
			}
			if output, filters := short(st); output != c.output || filters != c.filters {
				t.Errorf("%s\ngot  %q by %q\nwant %q by %q", c.sql, output, filters, c.output, c.filters)
			}
		})
	}
}
