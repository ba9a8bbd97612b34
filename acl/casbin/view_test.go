package casbin_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// shop is a warehouse in three dialects: shop on PostgreSQL with the schemas sales and crm, lite on SQLite, my on MySQL.
func shop(t fataler) *catalog.Snapshot {
	t.Helper()
	var objects []catalog.Object
	number := func(n int64) *int64 { return &n }
	table := func(r catalog.Ref, columns ...string) *catalog.Table {
		share := 0.25
		for i, c := range columns {
			objects = append(objects, catalog.Object{
				Ref:    catalog.ColumnRef(r.Database, r.Schema, r.Table, c),
				Column: &catalog.Column{Position: i, Samples: []string{"sample of " + c}, Dictionary: []string{"a value of " + c}, NullShare: &share, Distinct: number(9)},
			})
		}
		out := &catalog.Table{Rows: number(1000)}
		objects = append(objects, catalog.Object{Ref: r, Table: out})
		return out
	}
	orders, customers := catalog.TableRef("shop", "sales", "orders"), catalog.TableRef("shop", "crm", "customers")
	t1 := table(orders, "id", "buyer", "amount", "region")
	t1.PrimaryKey = []string{"id"}
	t1.ForeignKeys = []catalog.ForeignKey{{Columns: []string{"buyer"}, To: customers, ToColumns: []string{"id"}}}
	table(customers, "id", "email", "ssn")
	table(catalog.TableRef("shop", "sales", "odd.name*"), "x")
	table(catalog.TableRef("shop", "sales", "odd.names"), "y")
	table(catalog.TableRef("lite", "", "Notes"), "Body", "Ärger")
	table(catalog.TableRef("my", "", "Log"), "Msg", "Größe")
	objects = append(objects,
		catalog.Object{Ref: catalog.MetricRef("revenue"), Metric: &catalog.Metric{Formula: "SUM(amount)", Sources: []catalog.Ref{orders}}},
		catalog.Object{Ref: catalog.MetricRef("reach"), Metric: &catalog.Metric{Formula: "COUNT(email)", Sources: []catalog.Ref{customers}}},
		catalog.Object{Ref: catalog.QueryRef("sold"), Query: &catalog.Query{Question: "what did Ann buy", SQL: "SELECT amount FROM orders", Tables: []catalog.Ref{orders}}},
		catalog.Object{Ref: catalog.QueryRef("mailed"), Query: &catalog.Query{Question: "who has an email", SQL: "SELECT email FROM customers", Tables: []catalog.Ref{customers}}},
	)
	s, err := catalog.Build([]catalog.Database{
		{Name: "shop", Dialect: catalog.Postgres}, {Name: "lite", Dialect: catalog.SQLite}, {Name: "my", Dialect: catalog.MySQL},
	}, objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// staff has alice with the role emea, which inherits analyst, and bob with analyst alone.
const staff = `version: 1
principals: {alice: {roles: [emea]}, bob: {roles: [analyst]}}
roles: {emea: {inherits: [analyst]}, analyst: }
`

func view(t *testing.T, s *catalog.Snapshot, policy, principal string) acl.View {
	t.Helper()
	e, _ := engine(t, s, policy)
	v, err := e.View(principal)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// names lists the objects that a question about ids is true of, as database.schema.table(column, ...) or kind:NAME.
func names(s *catalog.Snapshot, has func(uint32) bool) string {
	var out []string
	for _, o := range s.All() {
		switch {
		case o.Column != nil:
		case o.Table != nil:
			var columns []string
			for _, c := range s.Columns(o.ID) {
				if has(c.ID) {
					columns = append(columns, c.Ref.Column)
				}
			}
			if has(o.ID) || len(columns) > 0 {
				out = append(out, o.Ref.String()+"("+strings.Join(columns, ",")+")")
			}
		case has(o.ID):
			out = append(out, o.Ref.String())
		}
	}
	return strings.Join(out, " ")
}

func TestWhatGrantsMakeVisible(t *testing.T) {
	t.Parallel()
	s := shop(t)
	const (
		notes     = "lite.Notes(Body,Ärger)"
		log       = "my.Log(Msg,Größe)"
		customers = "shop.crm.customers(id,email,ssn)"
		odd       = `shop.sales."odd.name*"(x)`
		odds      = `shop.sales."odd.names"(y)`
		orders    = "shop.sales.orders(id,buyer,amount,region)"
		key       = "relationship:shop.sales.orders.buyer->shop.crm.customers.id"
		all       = notes + " " + log + " " + customers + " " + odd + " " + odds + " " + orders + " metric:reach metric:revenue " + key + " query:mailed query:sold"
	)
	for _, c := range []struct{ name, grants, want string }{
		{"nothing is granted", `{role: emea, deny: [nothing]}`, ""},
		{"a bare star is everything", `{role: analyst, allow: ["*"]}`, all},
		{"a deny beats an allow, wherever it stands", `{role: emea, deny: [shop]}, {role: emea, allow: ["*"]}`, notes + " " + log},
		{"an inherited deny beats an own allow", `{role: emea, allow: ["*"]}, {role: analyst, deny: [shop, my]}`, notes},
		{"a wider deny beats a narrower allow", `{role: emea, allow: [shop.crm.customers.id]}, {role: emea, deny: [shop.crm]}`, ""},
		{"a narrower deny takes a column out", `{role: emea, allow: [shop.crm]}, {role: emea, deny: [shop.crm.customers.ssn]}`, "shop.crm.customers(id,email) metric:reach query:mailed"},
		{"a deny of every column takes the table out", `{role: emea, allow: [shop.crm]}, {role: emea, deny: [shop.crm.customers.*]}`, ""},
		{"a column makes its table visible", `{role: emea, allow: [shop.sales.orders.id]}`, "shop.sales.orders(id)"},
		{"a database covers everything beneath", `{role: emea, allow: [lite]}`, notes},
		{"a star stays within its segment", `{role: emea, allow: ["shop.*.orders"]}`, orders + " metric:revenue query:sold"},
		{"two segments reach no table of a schema by its name", `{role: emea, allow: ["shop.orders"]}`, ""},
		{"a star may stand inside a segment", `{role: emea, allow: ["shop.cr*.cust*s.*i*"]}`, "shop.crm.customers(id,email) metric:reach query:mailed"},
		{"stars after the first count", `{role: emea, allow: ["shop.*.customers.id"]}`, "shop.crm.customers(id)"},
		{"a quoted segment takes dots and stars literally", `{role: emea, allow: ['shop.sales."odd.name*"']}`, odd},
		{"SQLite folds ASCII", `{role: emea, allow: [LITE.NOTES.BODY]}`, "lite.Notes(Body)"},
		{"SQLite folds nothing beyond ASCII", `{role: emea, allow: [lite.notes.ärger]}`, ""},
		{"MySQL folds columns", `{role: emea, allow: [my.Log.GRÖSSE, my.Log.GRÖßE, my.Log.mSG]}`, log},
		{"MySQL does not fold tables", `{role: emea, allow: [my.log]}`, ""},
		{"PostgreSQL folds nothing", `{role: emea, allow: [shop.SALES, shop.crm.customers.ID]}`, ""},
		{"a metric cannot be granted without what it names", `{role: emea, allow: ["metric:*", "query:*", "relationship:*"]}`, ""},
		{"a metric is visible when all it names is", `{role: emea, allow: [shop.sales.orders.amount]}`, "shop.sales.orders(amount) metric:revenue query:sold"},
		{"a metric can be denied by name", `{role: emea, allow: [shop.sales]}, {role: emea, deny: ["metric:rev*"]}`, odd + " " + odds + " " + orders + " query:sold"},
		{"a past query can be denied by name", `{role: emea, allow: [shop.crm]}, {role: emea, deny: ["query:*"]}`, customers + " metric:reach"},
		{"a declared key is visible when both ends are", `{role: emea, allow: [shop.sales.orders.buyer, shop.crm.customers.id]}`, "shop.crm.customers(id) shop.sales.orders(buyer) " + key},
		{"query alone shows nothing", `{role: emea, allow: ["*"], actions: [query]}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := view(t, s, staff+"grants: ["+c.grants+"]", "alice")
			if got := names(s, v.Visible); got != c.want {
				t.Errorf("visible\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestQueryNeedsViewAndFollowsTheSameRules(t *testing.T) {
	t.Parallel()
	s := shop(t)
	for _, c := range []struct{ name, grants, want string }{
		{"view alone", `{role: emea, allow: ["*"], actions: [view]}`, ""},
		{"query of what is not viewed", `{role: emea, allow: [lite], actions: [view]}, {role: emea, allow: [my], actions: [query]}`, ""},
		{"query of another column than is viewed", `{role: emea, allow: [lite.Notes.Body], actions: [view]}, {role: emea, allow: ["lite.Notes.Ä*"], actions: [query]}`, ""},
		{"by column", `{role: emea, allow: [shop.sales], actions: [view]}, {role: emea, allow: [shop.sales.orders.amount], actions: [query]}`,
			"shop.sales.orders(amount) metric:revenue query:sold"},
		{"a metric whose query is denied by name", `{role: emea, allow: [shop.sales.orders]}, {role: emea, deny: ["metric:revenue"], actions: [query]}`,
			"shop.sales.orders(id,buyer,amount,region) query:sold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := view(t, s, staff+"grants: ["+c.grants+"]", "alice")
			if got := names(s, v.Queryable); got != c.want {
				t.Errorf("queryable %s, want %s", got, c.want)
			}
			if got := names(s, v.Queryables().Contains); got != c.want {
				t.Errorf("Queryables differs from Queryable: %s", got)
			}
		})
	}
}

func TestOtherActions(t *testing.T) {
	t.Parallel()
	s := shop(t)
	v := view(t, s, staff+`grants:
- {role: emea, allow: [lite], actions: [view]}
- {role: emea, allow: ["*"], actions: [edit, audit]}
- {role: emea, allow: ["*"], deny: [my], actions: [administer]}`, "alice")
	if got := names(s, func(id uint32) bool { return v.May(acl.ActionEdit, id) }); got != "lite.Notes(Body,Ärger)" {
		t.Errorf("what is not visible can be edited: %s", got)
	}
	for a, want := range map[acl.Action]bool{acl.ActionAudit: true, acl.ActionAdminister: false, acl.ActionEdit: false, acl.ActionImpersonate: false} {
		if v.MayEverywhere(a) != want {
			t.Errorf("may %s everywhere: %v", a, !want)
		}
	}
}

func TestRowFilters(t *testing.T) {
	t.Parallel()
	s := shop(t)
	policy := staff + `grants: [{role: analyst, allow: ["*"]}]
row_filters:
- {table: shop.sales.orders, roles: [emea], using: "region = 'E'"}
- {table: shop.sales.orders, roles: [emea], mode: restrictive, using: "amount < 9"}
- {table: "shop.sales.or*", roles: [emea], using: "id = 1"}
- {table: shop.sales, roles: [emea], mode: restrictive, using: "id > 0"}
- {table: my.Log, roles: [emea], mode: restrictive, using: "1 = 1"}`
	using := func(list []acl.Predicate) (out []string) {
		for _, p := range list {
			out = append(out, p.Using)
		}
		return out
	}
	id, _ := s.ID(catalog.TableRef("shop", "sales", "orders"))
	alice := view(t, s, policy, "alice")
	f, protected := alice.Filter(id)
	if want := []string{"region = 'E'", "id = 1"}; !protected || !reflect.DeepEqual(using(f.Permissive), want) {
		t.Errorf("permissive are %q, want %q", using(f.Permissive), want)
	}
	if want := []string{"amount < 9", "id > 0"}; !reflect.DeepEqual(using(f.Restrictive), want) {
		t.Errorf("restrictive are %q, want %q", using(f.Restrictive), want)
	}
	if len(f.Permissive) > 0 && f.Permissive[0].Rule != "line 6: row filter on shop.sales.orders" {
		t.Errorf("the rule reads %q", f.Permissive[0].Rule)
	}
	if f, protected := view(t, s, policy, "bob").Filter(id); !protected || len(f.Permissive)+len(f.Restrictive) > 0 {
		t.Errorf("for a role that no filter names the table must be protected and show no row: %v, %v", f, protected)
	}
	log, _ := s.ID(catalog.TableRef("my", "", "Log"))
	if f, protected := alice.Filter(log); !protected || len(f.Permissive) != 0 {
		t.Errorf("a restrictive filter alone must show no row: %v", f)
	}
	notes, _ := s.ID(catalog.TableRef("lite", "", "Notes"))
	if _, protected := alice.Filter(notes); protected {
		t.Error("a table that no filter names is protected")
	}
}

func TestTheStrongestMaskOfAllRolesApplies(t *testing.T) {
	t.Parallel()
	s := shop(t)
	forms := []string{"null", "hash", "partial", "{constant: x}", `{expression: "upper(email)"}`}
	email, _ := s.ID(catalog.ColumnRef("shop", "crm", "customers", "email"))
	for i, strong := range forms {
		for _, weak := range forms[i+1:] {
			for _, order := range [][2]string{{strong, weak}, {weak, strong}} {
				v := view(t, s, staff+fmt.Sprintf(`grants: [{role: analyst, allow: ["*"]}]
masks:
- {column: shop.crm.customers.email, roles: [emea], with: %s}
- {column: "shop.crm.cust*.e*", roles: [analyst], with: %s}`, order[0], order[1]), "alice")
				if m, masked := v.Mask(email); !masked || !strings.Contains(strong, string(m.Kind)) {
					t.Errorf("of %s and %s, %s applies", order[0], order[1], m.Kind)
				}
			}
		}
	}
	v := view(t, s, staff+`grants: [{role: analyst, allow: ["*"]}]
masks: [{column: shop.crm.customers.email, roles: [emea], with: hash}]`, "bob")
	if _, masked := v.Mask(email); masked {
		t.Error("a mask for another role applies")
	}
}

func TestWhatComesFromRowsIsWithheldFromWhoeverDoesNotSeeThemAll(t *testing.T) {
	t.Parallel()
	s := shop(t)
	for _, c := range []struct{ name, rules, principal, withheld string }{
		{"nothing is filtered or masked", ``, "alice", ""},
		{"a filtered table", `row_filters: [{table: shop.sales.orders, roles: [emea], using: "id > 0"}]`, "alice",
			"shop.sales.orders(id,buyer,amount,region) query:sold"},
		{"a table filtered for another role", `row_filters: [{table: shop.sales.orders, roles: [emea], using: "true"}]`, "bob",
			"shop.sales.orders(id,buyer,amount,region) query:sold"},
		{"a table filtered by what lets every row through", `row_filters: [{table: shop.sales.orders, roles: [emea], using: "1 = 1"}]`, "alice", ""},
		{"such a filter beside another permissive one", `row_filters: [{table: shop.sales.orders, roles: [emea], using: "TRUE"}, {table: shop.sales.orders, roles: [emea], using: "id = 1"}]`, "alice", ""},
		{"such a filter beside a restrictive one", `row_filters: [{table: shop.sales.orders, roles: [emea], using: "TRUE"}, {table: shop.sales.orders, roles: [emea], mode: restrictive, using: "id = 1"}]`, "alice",
			"shop.sales.orders(id,buyer,amount,region) query:sold"},
		{"a masked column", `masks: [{column: shop.crm.customers.ssn, roles: [emea], with: hash}]`, "alice", "shop.crm.customers(ssn) query:mailed"},
		{"a column masked for another role", `masks: [{column: shop.crm.customers.ssn, roles: [emea], with: hash}]`, "bob", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := view(t, s, staff+"grants: [{role: analyst, allow: [\"*\"]}]\n"+c.rules, c.principal)
			if got := names(s, func(id uint32) bool { return !v.Raw(id) }); got != c.withheld {
				t.Errorf("withheld are %s, want %s", got, c.withheld)
			}
			for _, o := range s.All() {
				got, visible := v.Object(o.ID)
				if visible != (o.Query == nil || v.Raw(o.ID)) {
					t.Errorf("%s is visible: %v", o.Ref, visible)
				}
				switch {
				case o.Table != nil && (got.Table.Rows != nil) != v.Raw(o.ID):
					t.Errorf("the rows of %s are %v", o.Ref, got.Table.Rows)
				case o.Column != nil:
					for _, shown := range []bool{got.Column.Samples != nil, got.Column.Dictionary != nil, got.Column.NullShare != nil, got.Column.Distinct != nil} {
						if shown != v.Raw(o.ID) {
							t.Errorf("%s shows %+v", o.Ref, got.Column)
						}
					}
				}
			}
		})
	}
}

func TestAnObjectPointsAtNothingHidden(t *testing.T) {
	t.Parallel()
	s := shop(t)
	key := "relationship:shop.sales.orders.buyer->shop.crm.customers.id"
	for _, c := range []struct{ name, deny, primary, points string }{
		{"all is visible", "nothing", `["id"]`, "shop.crm.customers.id"},
		{"the far end is hidden", "shop.crm.customers.id", `["id"]`, ""},
		{"a column of the primary key is hidden", "shop.sales.orders.id", "null", "shop.crm.customers.id"},
		{"the relationship of the key is denied by name", key, `["id"]`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := view(t, s, staff+fmt.Sprintf("grants: [{role: emea, allow: ['*']}, {role: emea, deny: [%q]}]", c.deny), "alice")
			table, _ := s.ID(catalog.TableRef("shop", "sales", "orders"))
			column, _ := s.ID(catalog.ColumnRef("shop", "sales", "orders", "buyer"))
			o, _ := v.Object(table)
			if got, _ := json.Marshal(o.Table.PrimaryKey); string(got) != c.primary {
				t.Errorf("the primary key reads %s, want %s", got, c.primary)
			}
			b, _ := v.Object(column)
			var points []string
			for _, r := range b.Column.ForeignKeys {
				points = append(points, r.String())
			}
			if strings.Join(points, " ") != c.points || len(o.Table.ForeignKeys) != len(points) {
				t.Errorf("the column points at %q and the table has %v, want %q", points, o.Table.ForeignKeys, c.points)
			}
			restricted, err := v.Restricted()
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := restricted.Lookup(catalog.RelationshipRef(strings.TrimPrefix(key, "relationship:"))); ok != (c.points != "") {
				t.Errorf("the relationship is in the restricted catalog: %v", ok)
			}
		})
	}
}

func TestObjectLeavesTheSnapshotAlone(t *testing.T) {
	t.Parallel()
	s := shop(t)
	before, _ := json.Marshal(s.All())
	v := view(t, s, staff+`grants: [{role: emea, allow: ["*"]}, {role: emea, deny: [shop.crm.customers.id]}]
row_filters: [{table: shop, roles: [emea], using: "true"}]`, "alice")
	for _, o := range s.All() {
		v.Object(o.ID)
	}
	if after, _ := json.Marshal(s.All()); string(after) != string(before) {
		t.Error("reading through a view changed the snapshot")
	}
}

func TestManyGoroutinesShareOneCompilation(t *testing.T) {
	t.Parallel()
	s := shop(t)
	e, _ := engine(t, s, staff+`grants: [{role: analyst, allow: ["*"]}, {role: emea, deny: [shop.crm]}]`)
	want := map[string]string{"alice": names(s, view(t, s, staff+`grants: [{role: analyst, allow: ["*"]}, {role: emea, deny: [shop.crm]}]`, "alice").Visible)}
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for range 20 {
				name := []string{"alice", "bob"}[i%2]
				v, err := e.View(name)
				if err != nil {
					t.Error(err)
					return
				}
				if got := names(s, v.Visible); name == "alice" && got != want["alice"] {
					t.Errorf("alice sees %s", got)
				}
				v.Object(uint32(i) % uint32(s.Len()))
				if _, err := e.Enforce(name, acl.ActionView, s.Object(0).Ref); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestKeysTellViewsApart(t *testing.T) {
	t.Parallel()
	s := shop(t)
	grants := `grants: [{role: analyst, allow: ["*"]}]`
	seen := map[string]string{acl.View{}.Key(): "the zero view"}
	for _, c := range []struct{ what, policy, principal string }{
		{"alice", staff + grants, "alice"}, {"bob", staff + grants, "bob"},
		{"alice under another policy", staff + grants + "\n# changed", "alice"},
		{"alice with the text 1", strings.Replace(staff, "[emea]", `[emea], attributes: {x: "1"}`, 1) + grants, "alice"},
	} {
		key := view(t, s, c.policy, c.principal).Key()
		if other, twice := seen[key]; twice {
			t.Errorf("%s and %s have one key", c.what, other)
		}
		seen[key] = c.what
		if again := view(t, s, c.policy, c.principal).Key(); again != key {
			t.Errorf("%s has two keys", c.what)
		}
	}
}

func TestAPrincipalThatNobodyKnowsIsRefused(t *testing.T) {
	t.Parallel()
	e, _ := engine(t, shop(t), staff+`grants: [{role: analyst, allow: ["*"]}]`)
	for _, name := range []string{"", "eve", "emea", "role:emea", "user:alice", "Alice", "alice "} {
		v, err := e.View(name)
		if r, ok := err.(*acl.Refusal); !ok || r.Code != acl.CodeUnknownPrincipal || r.Public == "" || r.Hint == "" {
			t.Errorf("%q gets %v", name, err)
		}
		if v.Snapshot() != nil || v.Visible(0) {
			t.Errorf("%q sees something", name)
		}
	}
}

func TestUnmatchedRulesAreListed(t *testing.T) {
	t.Parallel()
	s := shop(t)
	_, p := engine(t, s, staff+`grants:
- {role: emea, allow: [gone]}
- {role: emea, deny: [shop.crm.customers.ssn, shop.crm.customers.sssn, "metric:profit", "metric:rev*"]}
row_filters:
- {table: shop.sales.*, roles: [emea], using: "true"}
- {table: shop.sales.order, roles: [emea], using: "true"}
- {table: shop.sales.orders.id, roles: [emea], using: "true"}
masks:
- {column: lite.notes, roles: [emea], with: null}
- {column: my.log.msg, roles: [emea], with: null}
- {column: "metric:revenue", roles: [emea], with: null}`)
	var got []string
	for _, u := range p.Unmatched(s) {
		got = append(got, u.Rule+": "+u.Message)
	}
	want := []string{
		"line 6: grant to emea: deny shop.crm.customers.sssn covers nothing",
		"line 6: grant to emea: deny metric:profit covers nothing",
		"line 9: row filter on shop.sales.order: covers no table",
		"line 10: row filter on shop.sales.orders.id: covers no table",
		"line 13: mask on my.log.msg: covers no column",
		"line 14: mask on metric:revenue: covers no column",
	}
	if !slices.Equal(got, want) {
		t.Errorf("unmatched are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
