package catalog_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/schemagate/schemagate/catalog"
)

func TestRefTextForms(t *testing.T) {
	for _, c := range []struct {
		ref        catalog.Ref
		text, full string
	}{
		{catalog.TableRef("shop", "", "orders"), `shop.orders`, `table:shop.orders`},
		{catalog.TableRef("shop", "sales", "orders"), `shop.sales.orders`, `table:shop.sales.orders`},
		{catalog.ColumnRef("shop", "", "orders", "id"), `shop.orders.id`, `column:shop.orders.id`},
		{catalog.ColumnRef("shop", "sales", "orders", "id"), `shop.sales.orders.id`, `column:shop.sales.orders.id`},
		{catalog.TableRef("shop", "", "Order Details"), `shop.Order Details`, `table:shop.Order Details`},
		{catalog.ColumnRef("shop", "", "a.b", `say "hi"`), `shop."a.b"."say ""hi"""`, `column:shop."a.b"."say ""hi"""`},
		{catalog.ColumnRef("shop", "", "t", "*"), `shop.t."*"`, `column:shop.t."*"`},
		{catalog.ColumnRef("shop", "", "t", " x "), `shop.t." x "`, `column:shop.t." x "`},
		{catalog.TableRef("metric:x", "", "t"), `"metric:x".t`, `table:"metric:x".t`},
		{catalog.TableRef("店", "", "注文"), `店.注文`, `table:店.注文`},
		{catalog.MetricRef("net: revenue.2"), `metric:net: revenue.2`, `metric:net: revenue.2`},
		{catalog.RelationshipRef("a->b"), `relationship:a->b`, `relationship:a->b`},
		{catalog.QueryRef("17"), `query:17`, `query:17`},
		{catalog.Ref{}, ``, ``},
	} {
		if got := c.ref.String(); got != c.text {
			t.Errorf("%#v reads %s, want %s", c.ref, got, c.text)
		}
		full, err := c.ref.MarshalText()
		if err != nil || string(full) != c.full {
			t.Errorf("%#v encodes as %s, %v; want %s", c.ref, full, err, c.full)
		}
		var back catalog.Ref
		if err := back.UnmarshalText(full); err != nil || back != c.ref {
			t.Errorf("%s decodes as %#v, %v; want %#v", full, back, err, c.ref)
		}
		data, err := json.Marshal(c.ref)
		if err == nil {
			err = json.Unmarshal(data, &back)
		}
		if err != nil || back != c.ref {
			t.Errorf("%s comes back from JSON as %#v, %v", c.full, back, err)
		}
	}
}

func TestRefTextThatNamesNothingIsRefused(t *testing.T) {
	for _, text := range []string{
		"shop.orders", "tabel:shop.orders", "table:shop", "table:a.b.c.d", "column:a.b", "column:a.b.c.d.e", "table:",
		`table:a."b`, `table:a."b"c`, `table:a.b"c`, "table:a..b", "table:.a", "table:a.",
	} {
		r := catalog.MetricRef("untouched")
		if err := r.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%s was read as %#v", text, r)
		}
		if r != catalog.MetricRef("untouched") {
			t.Errorf("%s is refused but changed the ref to %#v", text, r)
		}
	}
}

func TestKindNames(t *testing.T) {
	for _, k := range catalog.Kinds {
		text, err := k.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back catalog.Kind
		if err := back.UnmarshalText(text); err != nil || back != k {
			t.Errorf("%s comes back as %s, %v", k, back, err)
		}
	}
	for _, none := range []catalog.Kind{0, catalog.KindQuery + 1} {
		if _, err := none.MarshalText(); err == nil {
			t.Errorf("kind %d has a name", none)
		}
	}
	for _, name := range []string{"", "invalid", "Table"} {
		if k, ok := catalog.ParseKind(name); ok {
			t.Errorf("%q is %s", name, k)
		}
	}
}

func TestPatternKnowsAQuotedStarFromABareOne(t *testing.T) {
	segments, literal, err := catalog.SplitPattern(`shop.*."*"."a""b"`)
	if err != nil || !slices.Equal(segments, []string{"shop", "*", "*", `a"b`}) || !slices.Equal(literal, []bool{false, false, true, true}) {
		t.Errorf("got %q, %v, %v", segments, literal, err)
	}
}

func TestTableOfARef(t *testing.T) {
	table := catalog.TableRef("d", "s", "t")
	for ref, want := range map[catalog.Ref]catalog.Ref{
		catalog.ColumnRef("d", "s", "t", "c"): table, table: table, catalog.MetricRef("m"): {}, {}: {},
	} {
		if got := ref.TableRef(); got != want {
			t.Errorf("the table of %s is %s, want %s", ref, got, want)
		}
	}
}

func FuzzPathRoundTrip(f *testing.F) {
	f.Add("shop", "orders", "id")
	f.Add(`a.b`, `"`, ``)
	f.Add(" ", "*", `""."`)
	f.Add("\x00", "\n", "metric:x")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		path := []string{a, b, c}
		text := catalog.JoinPath(path)
		got, err := catalog.SplitPath(text)
		if err != nil || !slices.Equal(got, path) {
			t.Errorf("%q is written %s and read %q, %v", path, text, got, err)
		}
		// Whatever can be read is written so that it reads the same.
		if read, err := catalog.SplitPath(a); err == nil {
			again, err := catalog.SplitPath(catalog.JoinPath(read))
			if err != nil || !slices.Equal(again, read) {
				t.Errorf("%q reads %q and then %q, %v", a, read, again, err)
			}
		}
	})
}

func TestDialectDecidesWhichNamesAreTheSame(t *testing.T) {
	type names struct {
		part catalog.Part
		a, b string
	}
	table := names{catalog.PartTable, "Orders", "ORDERS"}
	column := names{catalog.PartColumn, "Id", "ID"}
	umlaut := names{catalog.PartColumn, "Größe", "GRÖßE"}
	for _, c := range []struct {
		dialect catalog.Dialect
		names   names
		same    bool
	}{
		{catalog.SQLite, table, true}, {catalog.SQLite, column, true}, {catalog.SQLite, umlaut, false},
		{catalog.MySQL, table, false}, {catalog.MySQL, column, true}, {catalog.MySQL, umlaut, true},
		{catalog.BigQuery, table, false}, {catalog.BigQuery, column, true},
		{catalog.TSQL, table, true}, {catalog.TSQL, column, true}, {catalog.TSQL, umlaut, true},
		{catalog.Postgres, table, false}, {catalog.Postgres, column, false},
		{catalog.Snowflake, table, false}, {catalog.Snowflake, column, false},
		{"", table, false}, {"", column, false},
	} {
		if same := c.dialect.Key(c.names.part, c.names.a) == c.dialect.Key(c.names.part, c.names.b); same != c.same {
			t.Errorf("%q: %s and %s are the same name: %t, want %t", c.dialect, c.names.a, c.names.b, same, c.same)
		}
	}
	if m := catalog.MetricRef("Revenue"); catalog.SQLite.RefKey(m) != m {
		t.Error("a dialect has no say in the names of metrics")
	}
	for _, d := range catalog.Dialects {
		if got, err := catalog.ParseDialect(string(d)); err != nil || got != d {
			t.Errorf("ParseDialect(%s): %s, %v", d, got, err)
		}
	}
	if _, err := catalog.ParseDialect("oracle"); err == nil {
		t.Error("an unknown dialect is accepted")
	}
}
