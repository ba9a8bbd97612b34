package catalog_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/catalog"
)

var shop = []catalog.Database{{Name: "shop", Dialect: catalog.SQLite}}

// ref reads a ref in its text form, without "table:" and "column:" for objects of shop.
func ref(text string) catalog.Ref {
	var r catalog.Ref
	if !strings.Contains(strings.SplitN(text, `"`, 2)[0], ":") {
		kind := "table:"
		if path, err := catalog.SplitPath(text); err == nil && len(path) == 2 {
			kind = "column:"
		}
		text = kind + "shop." + text
	}
	if err := r.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return r
}

func refs(texts ...string) []catalog.Ref {
	var out []catalog.Ref
	for _, t := range texts {
		out = append(out, ref(t))
	}
	return out
}

// table is a table of shop and its columns; change, if not nil, completes it.
func table(name string, columns []string, change func(*catalog.Table)) []catalog.Object {
	t := &catalog.Table{}
	if change != nil {
		change(t)
	}
	out := []catalog.Object{{Ref: catalog.TableRef("shop", "", name), Table: t}}
	for i, c := range columns {
		out = append(out, catalog.Object{Ref: catalog.ColumnRef("shop", "", name, c), Column: &catalog.Column{Position: i}})
	}
	return out
}

func key(columns, table, to string) func(*catalog.Table) {
	return func(t *catalog.Table) {
		t.ForeignKeys = append(t.ForeignKeys, catalog.ForeignKey{
			Columns: strings.Fields(columns), To: ref(table), ToColumns: strings.Fields(to)})
	}
}

func primary(columns ...string) func(*catalog.Table) {
	return func(t *catalog.Table) { t.PrimaryKey = columns }
}

func all(changes ...func(*catalog.Table)) func(*catalog.Table) {
	return func(t *catalog.Table) {
		for _, c := range changes {
			c(t)
		}
	}
}

func metric(name, formula string, sources ...string) catalog.Object {
	return catalog.Object{Ref: catalog.MetricRef(name), Metric: &catalog.Metric{Formula: formula, Sources: refs(sources...)}}
}

func query(id, sql string, tables ...string) catalog.Object {
	return catalog.Object{Ref: catalog.QueryRef(id), Query: &catalog.Query{SQL: sql, Tables: refs(tables...)}}
}

func relation(name, from, to string) catalog.Object {
	return catalog.Object{Ref: catalog.RelationshipRef(name), Relationship: &catalog.Relationship{
		From: refs(strings.Fields(from)...), To: refs(strings.Fields(to)...), Type: catalog.DocumentedRelationship}}
}

func build(t testing.TB, objects ...[]catalog.Object) *catalog.Snapshot {
	t.Helper()
	s, err := catalog.Build(shop, slices.Concat(objects...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lookup(t interface{ Fatalf(string, ...any) }, s *catalog.Snapshot, r catalog.Ref) *catalog.Object {
	o, ok := s.Lookup(r)
	if !ok {
		t.Fatalf("%s is not there", r)
	}
	return o
}

func texts(refs []catalog.Ref) string {
	out := make([]string, len(refs))
	for i, r := range refs {
		out[i] = strings.TrimPrefix(r.String(), "shop.")
	}
	return strings.Join(out, " ")
}

func TestBuildNamesEachFault(t *testing.T) {
	orders := table("orders", []string{"id", "customer"}, nil)
	with := func(more ...catalog.Object) []catalog.Object { return append(slices.Clone(orders), more...) }
	change := func(o catalog.Object, f func(*catalog.Object)) catalog.Object { f(&o); return o }
	for _, c := range []struct {
		name    string
		objects []catalog.Object
		want    string
	}{
		{"table twice", with(orders[0]), "table shop.orders stands twice"},
		{"table twice in another case", with(table("ORDERS", nil, nil)...), "stands twice"},
		{"column twice", with(catalog.Object{Ref: ref("orders.ID"), Column: &catalog.Column{Position: 5}}), "stands twice"},
		{"column without table", with(catalog.Object{Ref: ref("nowhere.id"), Column: &catalog.Column{}}), "column shop.nowhere.id has no table"},
		{"unknown database", with(catalog.Object{Ref: ref("table:other.t"), Table: &catalog.Table{}}), "other.t lies in a database that is not described"},
		{"fields of another kind", with(catalog.Object{Ref: ref("t"), Column: &catalog.Column{}}), `"shop.t" is a table but carries the fields of another kind`},
		{"fields of two kinds", with(catalog.Object{Ref: ref("t"), Table: &catalog.Table{}, Column: &catalog.Column{}}), "of another kind"},
		{"no fields", with(catalog.Object{Ref: ref("t")}), "or none"},
		{"no kind", with(catalog.Object{Ref: catalog.Ref{Name: "x"}}), `"x" is of no kind`},
		{"a sixth kind", with(catalog.Object{Ref: catalog.Ref{Kind: 6, Name: "y"}}), `"y" is of no kind`},
		{"table without name", with(catalog.Object{Ref: catalog.TableRef("shop", "", ""), Table: &catalog.Table{}}), "no complete name of a table"},
		{"column without name", with(catalog.Object{Ref: catalog.ColumnRef("shop", "", "orders", ""), Column: &catalog.Column{}}), "no complete name of a column"},
		{"metric without name", with(metric("", "1", "orders")), "no complete name of a metric"},
		{"metric in a schema", with(change(metric("m", "1", "orders"), func(o *catalog.Object) { o.Ref.Schema = "x" })), "no complete name of a metric"},
		{"metric without source", with(metric("m", "1")), "metric:m has no source table"},
		{"metric on an unknown table", with(metric("m", "1", "nowhere")), "metric:m names shop.nowhere, which the catalog does not hold"},
		{"metric by an unknown column", with(change(metric("m", "1", "orders"), func(o *catalog.Object) { o.Metric.Dimensions = refs("orders.region") })),
			"metric:m names shop.orders.region, which"},
		{"metric by an unknown time", with(change(metric("m", "1", "orders"), func(o *catalog.Object) { o.Metric.Time = ref("orders.at") })),
			"metric:m names shop.orders.at, which"},
		{"metric on a column", with(metric("m", "1", "orders.id")), "metric:m names shop.orders.id as a table, which is a column"},
		{"metric by a table", with(change(metric("m", "1", "orders"), func(o *catalog.Object) { o.Metric.Dimensions = refs("orders") })),
			"metric:m names shop.orders as a column, which is a table"},
		{"query without table", with(query("q", "SELECT 1")), "query:q names no table"},
		{"query of an unknown table", with(query("q", "SELECT 1", "nowhere")), "query:q names shop.nowhere"},
		{"query of a metric", with(metric("m", "1", "orders"), query("q", "SELECT 1", "metric:m")), "query:q names metric:m as a table, which is a metric"},
		{"relationship without columns", with(relation("r", "", "")), "relationship:r pairs 0 columns with 0"},
		{"relationship with uneven ends", with(relation("r", "orders.id orders.customer", "orders.id")), "relationship:r pairs 2 columns with 1"},
		{"relationship from two tables", with(append(table("t", []string{"id"}, nil), relation("r", "orders.id t.id", "t.id t.id"))...), "each end of relationship:r must be columns of one table"},
		{"relationship of tables", with(relation("r", "orders", "orders")), "must be columns"},
		{"relationship of an unknown column", with(relation("r", "orders.id", "orders.no")), "relationship:r names shop.orders.no"},
		{"primary key of an unknown column", table("t", []string{"a"}, primary("b")), "shop.t names shop.t.b"},
		{"unique key of an unknown column", table("t", []string{"a"}, func(t *catalog.Table) { t.UniqueKeys = [][]string{{"a"}, {"b"}} }), "shop.t names shop.t.b"},
		{"foreign key with uneven ends", table("t", []string{"a"}, key("a", "t", "a a")), "a foreign key of shop.t pairs 1 columns with 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := catalog.Build(shop, c.objects)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		databases []catalog.Database
		want      string
	}{
		"database twice":  {[]catalog.Database{shop[0], shop[0]}, `database "shop" is described twice`},
		"unknown dialect": {[]catalog.Database{{Name: "x", Dialect: "oracle"}}, `database "x": unknown dialect "oracle"`},
	} {
		if _, err := catalog.Build(c.databases, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	_, err := catalog.Build(shop, with(metric("a", "1"), query("b", "")))
	if err == nil || !strings.Contains(err.Error(), "metric:a") || !strings.Contains(err.Error(), "query:b") {
		t.Errorf("of two faults, got %v", err)
	}
}

func TestIDsAreDenseAndEachKindIsARange(t *testing.T) {
	s := build(t,
		[]catalog.Object{query("q", "", "b"), metric("m", "1", "a")},
		table("b", []string{"z", "y"}, key("z", "a", "x")), table("a", []string{"x"}, nil), table("c", nil, nil))
	want := "a b c a.x b.z b.y metric:m relationship:shop.b.z->shop.a.x query:q"
	var got []catalog.Ref
	for i, o := range s.All() {
		if o.ID != uint32(i) || s.Object(o.ID).Ref != o.Ref {
			t.Errorf("object %d has id %d", i, o.ID)
		}
		if id, ok := s.ID(o.Ref); !ok || id != o.ID {
			t.Errorf("%s is found as %d, %t", o.Ref, id, ok)
		}
		got = append(got, o.Ref)
	}
	if g := strings.ReplaceAll(texts(got), "relationship:b", "relationship:shop.b"); g != want {
		t.Errorf("objects are %s, want %s", g, want)
	}
	next := uint32(0)
	for _, k := range catalog.Kinds {
		r := s.OfKind(k)
		if r.From != next || r.Len() != len(s.Objects(k)) {
			t.Errorf("%s objects are %v, want them from %d", k, r, next)
		}
		for _, o := range s.Objects(k) {
			if o.Ref.Kind != k {
				t.Errorf("%s counts as a %s", o.Ref, k)
			}
		}
		next = r.To
	}
	if int(next) != s.Len() {
		t.Errorf("the kinds end at %d of %d", next, s.Len())
	}
	for _, none := range []catalog.Kind{0, 6} {
		if s.OfKind(none).Len() != 0 {
			t.Errorf("there are objects of kind %d", none)
		}
	}
	for name, columns := range map[string]string{"a": "a.x", "b": "b.z b.y", "c": ""} {
		o := lookup(t, s, ref(name))
		var names []catalog.Ref
		for _, c := range s.Columns(o.ID) {
			names = append(names, c.Ref)
			if s.TableOf(c.ID) != o.ID {
				t.Errorf("%s is a column of %d, want %d", c.Ref, s.TableOf(c.ID), o.ID)
			}
		}
		if texts(names) != columns || s.ColumnIDs(o.ID).Len() != len(names) {
			t.Errorf("columns of %s are %s, want %s in the table's order", name, texts(names), columns)
		}
	}
}

func TestKindsWithoutObjectsAreEmptyRanges(t *testing.T) {
	for _, s := range []*catalog.Snapshot{
		build(t), build(t, table("a", nil, nil)), build(t, table("a", []string{"x"}, nil), []catalog.Object{query("q", "", "a")}),
	} {
		total := 0
		for _, k := range catalog.Kinds {
			r := s.OfKind(k)
			if r.From > r.To || int(r.To) > s.Len() {
				t.Errorf("%s objects are %v of %d", k, r, s.Len())
			}
			total += r.Len()
		}
		if total != s.Len() {
			t.Errorf("kinds hold %d objects of %d", total, s.Len())
		}
	}
}

func TestLookupFollowsTheDialect(t *testing.T) {
	s, err := catalog.Build([]catalog.Database{{Name: "lite", Dialect: catalog.SQLite}, {Name: "pg", Dialect: catalog.Postgres}},
		[]catalog.Object{
			{Ref: catalog.TableRef("lite", "", "T"), Table: &catalog.Table{}},
			{Ref: catalog.TableRef("pg", "s", "T"), Table: &catalog.Table{}},
			{Ref: catalog.TableRef("pg", "s", "t"), Table: &catalog.Table{}},
		})
	if err != nil {
		t.Fatal(err)
	}
	if o := lookup(t, s, catalog.TableRef("lite", "", "t")); o.Ref.Table != "T" {
		t.Errorf("SQLite's t is %s", o.Ref)
	}
	if o := lookup(t, s, catalog.TableRef("pg", "s", "t")); o.Ref.Table != "t" {
		t.Errorf("PostgreSQL's t is %s", o.Ref)
	}
	if _, ok := s.Lookup(catalog.TableRef("pg", "S", "t")); ok {
		t.Error("PostgreSQL found a schema in another case")
	}
	if d, ok := s.Database("pg"); !ok || d.Dialect != catalog.Postgres {
		t.Errorf("database pg is %v", d)
	}
	if _, ok := s.Database("nope"); ok {
		t.Error("an unknown database was found")
	}
}

func TestResolveFindsEveryMeaningOfAName(t *testing.T) {
	s, err := catalog.Build([]catalog.Database{{Name: "d", Dialect: catalog.Postgres}}, []catalog.Object{
		{Ref: catalog.TableRef("d", "a", "b"), Table: &catalog.Table{}},
		{Ref: catalog.TableRef("d", "", "a"), Table: &catalog.Table{}},
		{Ref: catalog.ColumnRef("d", "", "a", "b"), Column: &catalog.Column{}},
		{Ref: catalog.MetricRef("m"), Metric: &catalog.Metric{Sources: []catalog.Ref{catalog.TableRef("d", "", "a")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"d.a.b": "table:d.a.b column:d.a.b", "d.a": "table:d.a", "metric:m": "metric:m", "table:d.a.b": "table:d.a.b",
		"d.b": "", "metric:none": "", `"metric:m".a`: "",
	} {
		found, err := s.Resolve(name)
		var got []string
		for _, o := range found {
			text, _ := o.Ref.MarshalText()
			got = append(got, string(text))
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s means %v, %v; want %s", name, got, err, want)
		}
	}
	if _, err := s.Resolve(`d."a`); err == nil {
		t.Error("a name that does not end is resolved")
	}
}

func TestDeclaredKeysBecomeRelationships(t *testing.T) {
	customers := table("customers", []string{"id", "country", "code"}, primary("id"))
	for _, c := range []struct {
		name        string
		columns     []string
		change      func(*catalog.Table)
		more        []catalog.Object
		want        string // name: from = to cardinality
		columnsKeys string // the keys of column a
	}{
		{name: "a key of one column is many to one", columns: []string{"a"}, change: key("a", "customers", "id"),
			want: "shop.t.a->shop.customers: t.a = customers.id many_to_one", columnsKeys: "customers.id"},
		{name: "a composite key is one relationship", columns: []string{"a", "b"}, change: key("a b", "customers", "country code"),
			want:        "shop.t.a,b->shop.customers.country,code: t.a t.b = customers.country customers.code many_to_one",
			columnsKeys: "customers.country"},
		{name: "a key that is the primary key is one to one", columns: []string{"a"}, change: all(primary("a"), key("a", "customers", "id")),
			want: "shop.t.a->shop.customers: t.a = customers.id one_to_one", columnsKeys: "customers.id"},
		{name: "a key that covers a unique key is one to one", columns: []string{"a", "b"},
			change: all(key("a b", "customers", "country code"), func(t *catalog.Table) { t.UniqueKeys = [][]string{{"b"}} }),
			want:   "shop.t.a,b->shop.customers.country,code: t.a t.b = customers.country customers.code one_to_one", columnsKeys: "customers.country"},
		{name: "a part of a primary key may repeat", columns: []string{"a", "b"}, change: all(primary("a", "b"), key("a", "customers", "id")),
			want: "shop.t.a->shop.customers: t.a = customers.id many_to_one", columnsKeys: "customers.id"},
		{name: "a key declared twice is one relationship", columns: []string{"a"},
			change: all(key("a", "customers", "id"), key("A", "CUSTOMERS", "ID")),
			want:   "shop.t.a->shop.customers: t.a = customers.id many_to_one", columnsKeys: "customers.id"},
		{name: "two keys to columns of one table are two relationships", columns: []string{"a"},
			change:      all(key("a", "customers", "id"), key("a", "customers", "code")),
			want:        "shop.t.a->shop.customers: t.a = customers.id many_to_one; shop.t.a->shop.customers.code: t.a = customers.code many_to_one",
			columnsKeys: "customers.id customers.code"},
		{name: "a key out of the catalog is dropped", columns: []string{"a"}, change: key("a", "elsewhere", "id"), want: ""},
		{name: "a key to an unknown column is dropped whole", columns: []string{"a", "b"}, change: key("a b", "customers", "id none"), want: ""},
		{name: "a documented relationship stands for its key", columns: []string{"a"}, change: key("a", "customers", "id"),
			more: []catalog.Object{relation("buyer", "t.a", "customers.id")}, want: "buyer: t.a = customers.id ", columnsKeys: "customers.id"},
		{name: "a table may point at itself", columns: []string{"a", "b"}, change: all(primary("b"), key("a", "t", "b")),
			want: "shop.t.a->shop.t: t.a = t.b many_to_one", columnsKeys: "t.b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := build(t, customers, table("t", c.columns, c.change), c.more)
			var got []string
			for _, o := range s.Objects(catalog.KindRelationship) {
				r := o.Relationship
				got = append(got, fmt.Sprintf("%s: %s = %s %s", o.Ref.Name, texts(r.From), texts(r.To), r.Cardinality))
				if declared := r.Type == catalog.ForeignKeyRelationship; declared != (len(c.more) == 0) || declared && !r.Validated {
					t.Errorf("%s is of type %s, validated %t", o.Ref, r.Type, r.Validated)
				}
			}
			if g := strings.Join(got, "; "); g != c.want {
				t.Errorf("relationships are %s\nwant %s", g, c.want)
			}
			if keys := texts(lookup(t, s, ref("t.a")).Column.ForeignKeys); keys != c.columnsKeys {
				t.Errorf("t.a points at %q, want %q", keys, c.columnsKeys)
			}
			if c.want == "" && len(lookup(t, s, ref("t")).Table.ForeignKeys) != 0 {
				t.Error("the table still has the key")
			}
		})
	}
	if !lookup(t, build(t, customers), ref("customers.id")).Column.PrimaryKey {
		t.Error("a column of the primary key does not say so")
	}
}

// What an object's SQL names is what its visibility rests on.
func TestNamesInSQLCompleteTheLists(t *testing.T) {
	base := slices.Concat(
		table("orders", []string{"id", "amount", "customer", `unit "net" price`}, nil),
		table("customers", []string{"id", "email"}, nil),
		table("Order Details", []string{"qty"}, nil),
		table("amount", []string{"cents"}, nil),
	)
	joined := func(sql string) catalog.Object {
		r := relation("r", "orders.customer", "customers.id")
		r.Relationship.JoinSQL = sql
		return r
	}
	filtered := func(o catalog.Object, filters ...string) catalog.Object { o.Metric.Filters = filters; return o }
	pattern := query("q", "", "orders")
	pattern.Query.JoinPattern = "orders JOIN customers"
	pattern.Query.Aggregations = []string{"SUM(amount)"}
	for _, c := range []struct {
		name   string
		object catalog.Object
		want   string
	}{
		{"a formula's columns", metric("m", "SUM(Orders.AMOUNT) / COUNT(id)", "orders"), "orders | orders.amount orders.id"},
		{"part of a word is not a name", metric("m", "SUM(amounts)", "orders"), "orders"},
		{"a filter's columns", filtered(metric("m", "COUNT(*)", "orders"), "customer > 1", `"id" IS NOT NULL`), "orders | orders.customer orders.id"},
		{"a quoted name with other characters", metric("m", `SUM("unit ""net"" price")`, "orders"), `orders | orders."unit ""net"" price"`},
		{"columns of each source", metric("m", "COUNT(id)", "orders", "customers"), "orders customers | customers.id orders.id"},
		{"a column that bears a table's name", metric("m", "SUM(amount)", "orders"), "orders | orders.amount"},
		{"a table in a filter's subquery", filtered(metric("m", "COUNT(*)", "orders"), "customer IN (SELECT id FROM customers WHERE email = '')"),
			"orders | orders.customer orders.id customers customers.email customers.id"},
		{"a join condition's further columns", joined("orders.customer = customers.id AND amount > 0 AND email <> ''"),
			"orders.customer = customers.id + customers.email orders.amount orders.id"},
		{"a join condition's subquery", joined("customer = id AND EXISTS (SELECT qty FROM [Order Details])"),
			`orders.customer = customers.id + orders.id Order Details Order Details.qty`},
		{"either end may have a column of that name", joined("orders.customer = customers.id"), "orders.customer = customers.id + orders.id"},
		{"a statement's tables and columns", query("q", "SELECT email FROM orders JOIN Customers ON customer = 1", "orders"),
			"orders customers | customers.email orders.customer"},
		{"a statement's table with a space", query("q", `SELECT qty FROM "order details"`, "orders"), "orders Order Details | Order Details.qty"},
		{"a pattern without a statement", pattern, "orders amount customers | orders.amount"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := build(t, base, []catalog.Object{c.object})
			o := lookup(t, s, c.object.Ref)
			var got string
			switch {
			case o.Metric != nil:
				got = join(" | ", texts(o.Metric.Sources), join(" ", texts(o.Metric.Columns), texts(o.Metric.Mentions)))
			case o.Relationship != nil:
				r := o.Relationship
				got = texts(r.From) + " = " + join(" + ", texts(r.To), texts(r.Mentions))
			case o.Query != nil:
				got = join(" | ", texts(o.Query.Tables), texts(o.Query.Columns))
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			again := build(t, s.All())
			if again.Version() != s.Version() {
				t.Error("completing a complete object changes it")
			}
		})
	}
}

func join(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), by)
}

func TestNamesakesAreMentionedWhenTheirSchemaIs(t *testing.T) {
	databases := []catalog.Database{{Name: "d", Dialect: catalog.Postgres}, {Name: "e", Dialect: catalog.Postgres}}
	var objects []catalog.Object
	for _, r := range []catalog.Ref{catalog.TableRef("d", "sales", "t"), catalog.TableRef("d", "crm", "t"), catalog.TableRef("d", "hr", "t"),
		catalog.TableRef("d", "hr", "u"), catalog.TableRef("e", "x", "t"), catalog.TableRef("e", "x", "w")} {
		objects = append(objects, catalog.Object{Ref: r, Table: &catalog.Table{}})
	}
	for sql, want := range map[string]string{
		"SELECT 1 FROM t":                         "d.sales.t",
		"SELECT 1 FROM sales.t JOIN crm.t ON ...": "d.sales.t d.crm.t",
		"SELECT 1 FROM t, u":                      "d.sales.t d.hr.u",
		"SELECT 1 FROM t, w":                      "d.sales.t",
		"SELECT 1 FROM t, e.x.w":                  "d.sales.t e.x.t e.x.w",
	} {
		q := catalog.Object{Ref: catalog.QueryRef("q"), Query: &catalog.Query{SQL: sql, Tables: []catalog.Ref{catalog.TableRef("d", "sales", "t")}}}
		s, err := catalog.Build(databases, append(slices.Clone(objects), q))
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(lookup(t, s, q.Ref).Query.Tables); got != want {
			t.Errorf("%s names %s, want %s", sql, got, want)
		}
	}
}

func TestVersionIsIndependentOfOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		objects := w.objects(nil)
		one, err := catalog.Build(w.databases, objects)
		if err != nil {
			t.Fatal(err)
		}
		two, err := catalog.Build(rapid.Permutation(w.databases).Draw(t, "databases"), rapid.Permutation(w.objects(nil)).Draw(t, "objects"))
		if err != nil {
			t.Fatal(err)
		}
		if one.Version() != two.Version() || !catalog.Diff(one, two).Empty() {
			t.Errorf("the same catalog in another order differs: %+v", catalog.Diff(one, two))
		}
		again, err := catalog.Build(one.Databases(), slices.Clone(one.All()))
		if err != nil || again.Version() != one.Version() {
			t.Errorf("built from its own objects it differs, %v", err)
		}
	})
}

func TestVersionDependsOnEveryField(t *testing.T) {
	whole := func() (catalog.Database, []catalog.Object) {
		m, r, q := metric("m", "COUNT(id)", "t"), relation("r", "t.id", "u.id"), query("q", "SELECT id FROM t", "t")
		return shop[0], slices.Concat(table("t", []string{"id"}, nil), table("u", []string{"id"}, nil), []catalog.Object{m, r, q})
	}
	seen := map[string]string{}
	version := func(name string, change func(d *catalog.Database, o map[catalog.Ref]*catalog.Object)) {
		d, objects := whole()
		byRef := map[catalog.Ref]*catalog.Object{}
		for i := range objects {
			byRef[objects[i].Ref] = &objects[i]
		}
		change(&d, byRef)
		s, err := catalog.Build([]catalog.Database{d}, objects)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if other, twice := seen[s.Version()]; twice {
			t.Errorf("%s does not tell from %s", name, other)
		}
		seen[s.Version()] = name
	}
	version("nothing", func(*catalog.Database, map[catalog.Ref]*catalog.Object) {})
	version("dialect", func(d *catalog.Database, _ map[catalog.Ref]*catalog.Object) { d.Dialect = catalog.Postgres })
	version("default schema", func(d *catalog.Database, _ map[catalog.Ref]*catalog.Object) { d.DefaultSchema = "s" })
	set := map[string]any{"Ref": catalog.Ref{}, "ID": uint32(0)} // not content, or tested by names
	values := map[reflect.Type]any{
		reflect.TypeFor[string](): "x", reflect.TypeFor[[]string](): []string{"id"}, reflect.TypeFor[[][]string](): [][]string{{"id"}},
		reflect.TypeFor[bool](): true, reflect.TypeFor[int](): 3, reflect.TypeFor[int64](): int64(3),
		reflect.TypeFor[*int64](): new(int64), reflect.TypeFor[*float64](): new(float64), reflect.TypeFor[time.Time](): time.Unix(1, 0),
		reflect.TypeFor[catalog.Ref]():              ref("u.id"),
		reflect.TypeFor[catalog.RelationshipType](): catalog.ObservedRelationship, reflect.TypeFor[catalog.Cardinality](): catalog.OneToOne,
		reflect.TypeFor[[]catalog.ForeignKey](): []catalog.ForeignKey{{Columns: []string{"id"}, To: ref("u"), ToColumns: []string{"id"}}},
	}
	for _, r := range []catalog.Ref{ref("t"), ref("t.id"), ref("metric:m"), ref("relationship:r"), ref("query:q")} {
		fields := func(o *catalog.Object) []reflect.Value {
			v := reflect.ValueOf(o).Elem()
			out := []reflect.Value{v}
			for _, f := range v.Fields() {
				if f.Kind() == reflect.Pointer && !f.IsNil() {
					out = append(out, f.Elem())
				}
			}
			return out
		}
		_, objects := whole()
		for i := range objects {
			if objects[i].Ref != r {
				continue
			}
			for part, v := range fields(&objects[i]) {
				for f := range v.NumField() {
					name := v.Type().Field(f).Name
					if _, skip := set[name]; skip || part == 0 && v.Field(f).Kind() == reflect.Pointer {
						continue
					}
					value, known := values[v.Field(f).Type()]
					if v.Field(f).Type() == reflect.TypeFor[[]catalog.Ref]() {
						value, known = refs("u.id"), true
						switch name {
						case "Sources", "Tables", "Partitions":
							value = refs("u")
						case "To":
							value = refs("t.id")
						}
					}
					if !known {
						t.Fatalf("no other value for %s.%s is known here; add one", r, name)
					}
					version(r.String()+" "+name, func(_ *catalog.Database, o map[catalog.Ref]*catalog.Object) {
						fields(o[r])[part].Field(f).Set(reflect.ValueOf(value))
					})
				}
			}
		}
	}
}
