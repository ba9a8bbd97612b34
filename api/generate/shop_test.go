package generate_test

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	_ "modernc.org/sqlite"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/api/generate"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// today is a Wednesday.
var today = time.Date(2025, time.August, 20, 15, 30, 0, 0, time.UTC)

var compiler = generate.NewMetrics(func() time.Time { return today })

// tester is what tests and property tests have in common.
type tester interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
}

func draft(t tester, question string, v acl.View) api.Draft {
	t.Helper()
	d, err := compiler.Draft(t.Context(), retrieval.Context{Question: question}, v)
	if err != nil {
		t.Fatalf("%q: %v", question, err)
	}
	if (d.SQL == "") == (d.Abstained == "") {
		t.Fatalf("%q: a draft is SQL or a reason: %+v", question, d)
	}
	return d
}

// openShop builds the shop's database.
func openShop(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	script, err := os.ReadFile("testdata/shop.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range []string{"sales", "crm", "hr"} {
		if _, err := db.Exec("ATTACH ':memory:' AS " + schema); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(string(script)); err != nil {
		t.Fatal(err)
	}
	return db
}

// newShop describes the shop's database as a catalog of any dialect. On MySQL its schemas are databases.
func newShop(t testing.TB, db *sql.DB, d catalog.Dialect) *catalog.Snapshot {
	t.Helper()
	var objects []catalog.Object
	for _, table := range lines(t, db, `SELECT schema || '.' || name FROM pragma_table_list WHERE schema IN ('sales', 'crm', 'hr') AND name NOT LIKE 'sqlite%'`) {
		schema, name, _ := strings.Cut(table, ".")
		o := catalog.Object{Ref: catalog.TableRef("shop", schema, name), Table: &catalog.Table{}}
		o.Table.PrimaryKey = lines(t, db, "SELECT name FROM pragma_table_info('"+name+"', '"+schema+"') WHERE pk > 0 ORDER BY pk")
		o.Synonyms = synonyms[table]
		objects = append(objects, o)
		for i, column := range lines(t, db, "SELECT name || ' ' || type FROM pragma_table_info('"+name+"', '"+schema+"')") {
			column, typ, _ := strings.Cut(column, " ")
			samples := lines(t, db, `SELECT DISTINCT CAST("`+column+`" AS TEXT) FROM `+table+` WHERE "`+column+`" IS NOT NULL LIMIT 10`)
			distinct := int64(len(samples))
			objects = append(objects, catalog.Object{
				Ref:      catalog.ColumnRef("shop", schema, name, column),
				Synonyms: synonyms[table+"."+column],
				Column:   &catalog.Column{Type: typ, Position: i, Samples: samples, Distinct: &distinct},
			})
		}
	}
	objects = append(objects, relationships()...)
	objects = append(objects, metrics()...)
	databases := []catalog.Database{{Name: "shop", Dialect: d}}
	if d == catalog.MySQL {
		databases = []catalog.Database{{Name: "sales", Dialect: d}, {Name: "crm", Dialect: d}, {Name: "hr", Dialect: d}}
		for i := range objects {
			flatten(&objects[i])
		}
	}
	s, err := catalog.Build(databases, objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// flatten makes schemas databases.
func flatten(o *catalog.Object) {
	move := func(refs ...*catalog.Ref) {
		for _, r := range refs {
			r.Database, r.Schema = r.Schema, ""
		}
	}
	all := func(lists ...[]catalog.Ref) {
		for _, list := range lists {
			for i := range list {
				move(&list[i])
			}
		}
	}
	move(&o.Ref)
	switch {
	case o.Metric != nil:
		move(&o.Metric.Time)
		all(o.Metric.Sources, o.Metric.Dimensions)
	case o.Relationship != nil:
		all(o.Relationship.From, o.Relationship.To)
	}
}

func lines(t testing.TB, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

var synonyms = map[string][]string{
	"sales.orders":            {"purchase"},
	"crm.customers":           {"client"},
	"sales.orders.ordered_on": {"order date"},
	"crm.customers.segment":   {"customer group"},
	"hr.departments":          {"team"},
}

func columns(names ...string) []catalog.Ref {
	var out []catalog.Ref
	for _, n := range names {
		p := strings.Split(n, ".")
		out = append(out, catalog.ColumnRef("shop", p[0], p[1], p[2]))
	}
	return out
}

func tables(names ...string) []catalog.Ref {
	var out []catalog.Ref
	for _, n := range names {
		p := strings.Split(n, ".")
		out = append(out, catalog.TableRef("shop", p[0], p[1]))
	}
	return out
}

func relationships() []catalog.Object {
	var out []catalog.Object
	add := func(name, from, to string, c catalog.Cardinality, validated bool, on string) {
		out = append(out, catalog.Object{Ref: catalog.RelationshipRef(name), Relationship: &catalog.Relationship{
			From: columns(from), To: columns(to), Type: catalog.DocumentedRelationship, Cardinality: c, Validated: validated, JoinSQL: on,
		}})
	}
	add("customer", "sales.orders.customer_id", "crm.customers.id", catalog.ManyToOne, true, "")
	add("store", "sales.orders.store_id", "sales.stores.id", catalog.ManyToOne, true, "")
	add("sky", "sales.orders.weather_id", "sales.weather.id", catalog.ManyToOne, false, "")
	add("ship", "sales.orders.ship_country", "sales.countries.code", catalog.ManyToOne, true, "")
	add("bill", "sales.orders.bill_country", "sales.countries.code", catalog.ManyToOne, true, "")
	add("item", "sales.order_items.order_id", "sales.orders.id", catalog.ManyToOne, true, "")
	add("product", "sales.order_items.product_id", "sales.products.id", catalog.ManyToOne, true, "")
	add("buyer", "sales.order_items.buyer_id", "sales.customers.id", catalog.ManyToOne, true, "")
	add("promoted", "sales.order_promotions.order_id", "sales.orders.id", catalog.ManyToOne, true, "")
	add("promotion", "sales.order_promotions.promotion_id", "sales.promotions.id", catalog.ManyToOne, true, "")
	add("tag", "crm.tags.customer_id", "crm.customers.id", "", true, "customer_id = customers.id")
	add("department", "hr.employees.department_id", "hr.departments.id", catalog.ManyToOne, true, "")
	add("manager", "hr.departments.manager_id", "hr.employees.id", catalog.ManyToOne, true, "")
	return out
}

func metrics() []catalog.Object {
	metric := func(name string, synonyms []string, m catalog.Metric) catalog.Object {
		return catalog.Object{Ref: catalog.MetricRef(name), Synonyms: synonyms, Metric: &m}
	}
	ordered := columns("sales.orders.ordered_on")[0]
	return []catalog.Object{
		metric("net_revenue", []string{"revenue", "turnover", "Umsatz", "takings"}, catalog.Metric{
			Formula: "SUM(orders.amount) / 100.0", Sources: tables("sales.orders"), Filters: []string{"orders.status <> 'cancelled'"},
			Dimensions: columns("sales.orders.region", "sales.stores.store_name", "crm.customers.segment"), Time: ordered,
			Unit: "EUR", Aggregation: "sum",
		}),
		metric("promoted revenue", nil, catalog.Metric{
			Formula: "SUM(orders.amount) / 100.0", Sources: tables("sales.orders"),
			Filters: []string{"orders.id IN (SELECT order_id FROM sales.order_promotions)", "orders.status = 'shipped' OR orders.status = 'open'"},
		}),
		metric("profit", nil, catalog.Metric{
			Formula: "SUM(amount - COALESCE(cost, 0))", Sources: tables("sales.orders"), Time: ordered,
			Filters: []string{"status <> 'cancelled' AND id NOT IN (SELECT order_id FROM sales.test_orders)"},
		}),
		metric("shipped_orders", []string{"number of shipments"}, catalog.Metric{
			Formula: "COUNT(orders.shipped_at)", Sources: tables("sales.orders"), Time: columns("sales.orders.shipped_at")[0], Aggregation: "count",
		}),
		metric("item_sales", []string{"takings"}, catalog.Metric{
			Formula: "SUM(order_items.qty * products.price)", Sources: tables("sales.products", "sales.order_items"), Time: ordered,
		}),
		metric("headcount", []string{"number of employees"}, catalog.Metric{
			Formula: "COUNT(employees.id)", Sources: tables("hr.employees"), Filters: []string{"employees.left_on IS NULL"},
			Time: columns("hr.employees.hired_on")[0], Aggregation: "count",
		}),
		metric("average_salary", nil, catalog.Metric{Formula: "AVG(employees.salary)", Sources: tables("hr.employees"), Aggregation: "avg"}),
		metric("orders_per_head", nil, catalog.Metric{
			Formula: "COUNT(DISTINCT orders.id) * 1.0 / COUNT(DISTINCT employees.id)", Sources: tables("sales.orders", "hr.employees"),
		}),
		metric("client_orders", nil, catalog.Metric{Formula: "COUNT(*)", Sources: tables("sales.customers", "crm.customers")}),
	}
}

// view is a view of everything but the hidden objects and what names them, with row-derived content of raw ones only.
func view(s *catalog.Snapshot, hidden, withheld func(*catalog.Object) bool) acl.View {
	seen, raw := roaring.New(), roaring.New()
	for i := range s.All() {
		o := s.Object(uint32(i))
		if o.Column != nil && !hidden(o) {
			seen.Add(o.ID)
			seen.Add(s.TableOf(o.ID))
		}
	}
	for i := range s.All() {
		o := s.Object(uint32(i))
		if o.Table != nil || o.Column != nil {
			continue
		}
		all := !hidden(o)
		for _, r := range o.Names() {
			id, ok := s.ID(r)
			all = all && ok && seen.Contains(id)
		}
		if all {
			seen.Add(o.ID)
		}
	}
	for i := range s.All() {
		if o := s.Object(uint32(i)); !withheld(o) {
			raw.Add(o.ID)
		}
	}
	return acl.NewView(acl.Principal{Name: "someone"}, &acl.Compiled{
		Snapshot: s, Raw: raw, Allowed: map[acl.Action]*roaring.Bitmap{acl.ActionView: seen, acl.ActionQuery: seen},
	})
}

func nothing(*catalog.Object) bool { return false }

// clerk sees no row-derived content of orders, as somebody with a row filter on them.
func clerk(s *catalog.Snapshot) acl.View {
	return view(s, nothing, func(o *catalog.Object) bool { return o.Ref.Table == "orders" })
}

// guest sees neither customers nor the region of stores.
func guest(s *catalog.Snapshot) acl.View {
	return view(s, func(o *catalog.Object) bool {
		return o.Ref.Schema == "crm" || o.Ref.Table == "stores" && o.Ref.Column == "region"
	}, nothing)
}
