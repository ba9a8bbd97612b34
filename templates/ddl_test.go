package templates_test

import (
	"strings"
	"testing"

	"github.com/sqlc-dev/meyer/ast"
	sqlite "github.com/sqlc-dev/meyer/parser"
	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/templates"
)

func everything(catalog.Ref) bool { return true }

func orders() (table *catalog.Object, columns []*catalog.Object) {
	r := catalog.TableRef("shop", "sales", "orders")
	column := func(name, typ string) *catalog.Object {
		return &catalog.Object{Ref: catalog.ColumnRef(r.Database, r.Schema, r.Table, name), Column: &catalog.Column{Type: typ}}
	}
	table = &catalog.Object{Ref: r, Table: &catalog.Table{
		PrimaryKey: []string{"id", "line"},
		ForeignKeys: []catalog.ForeignKey{
			{Columns: []string{"buyer"}, To: catalog.TableRef("shop", "crm", "people"), ToColumns: []string{"id"}},
		},
	}}
	return table, []*catalog.Object{column("id", "INTEGER"), column("line", ""), column("buyer", "numeric(10, 2)")}
}

func TestDDL(t *testing.T) {
	for _, tt := range []struct {
		name  string
		edit  func(table *catalog.Object, columns *[]*catalog.Object)
		shown func(catalog.Ref) bool
		want  string
	}{
		{"columns, types and keys",
			func(*catalog.Object, *[]*catalog.Object) {}, everything,
			"CREATE TABLE sales.orders (\n  id INTEGER,\n  line,\n  buyer numeric(10, 2),\n  PRIMARY KEY (id, line),\n  FOREIGN KEY (buyer) REFERENCES crm.people (id)\n);\n"},
		{"a key with a column that is not shown is left out",
			func(_ *catalog.Object, columns *[]*catalog.Object) { *columns = (*columns)[:1] }, everything,
			"CREATE TABLE sales.orders (\n  id INTEGER\n);\n"},
		{"a foreign key to a column that is not shown is left out",
			func(table *catalog.Object, _ *[]*catalog.Object) { table.Table.PrimaryKey = nil }, func(catalog.Ref) bool { return false },
			"CREATE TABLE sales.orders (\n  id INTEGER,\n  line,\n  buyer numeric(10, 2)\n);\n"},
		{"keys follow the dialect's letter case",
			func(table *catalog.Object, columns *[]*catalog.Object) {
				table.Table.PrimaryKey, *columns = []string{"ID"}, (*columns)[:1]
			}, everything,
			"CREATE TABLE sales.orders (\n  id INTEGER,\n  PRIMARY KEY (id)\n);\n"},
		{"a column that SQL cannot name is left out",
			func(table *catalog.Object, columns *[]*catalog.Object) {
				table.Table.PrimaryKey, table.Table.ForeignKeys = nil, nil
				(*columns)[1].Ref.Column = "a\nb"
			}, everything,
			"CREATE TABLE sales.orders (\n  id INTEGER,\n  buyer numeric(10, 2)\n);\n"},
		{"descriptions, synonyms and samples stand in comments",
			func(table *catalog.Object, columns *[]*catalog.Object) {
				*columns = (*columns)[:1]
				table.Description, table.Synonyms, table.Table.Rows, table.Table.SQLView = "what was\nbought", []string{"sales"}, ptr(int64(12345)), "SELECT 1"
				c := (*columns)[0]
				c.Description, c.Synonyms, c.Column.Samples = "its number -- unique", []string{"no"}, []string{"1", "o'b", "\n"}
			}, everything,
			"-- a SQL view; what was bought; also called sales; 12,345 rows\nCREATE TABLE sales.orders (\n  id INTEGER -- its number -- unique; also called no; e.g. '1', 'o''b'\n);\n"},
		{"a type that is more than a type stands in the comment",
			func(_ *catalog.Object, columns *[]*catalog.Object) {
				*columns = (*columns)[:1]
				(*columns)[0].Column.Type = "int, x int); DROP TABLE t; --"
			}, everything,
			"CREATE TABLE sales.orders (\n  id -- type int, x int); DROP TABLE t; --\n);\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table, columns := orders()
			tt.edit(table, &columns)
			got, err := templates.DDL(catalog.SQLite, table, columns, tt.shown)
			if err != nil || got != tt.want {
				t.Errorf("DDL = %v\n%s\nwant\n%s", err, got, tt.want)
			}
		})
	}
	t.Run("a column of another table is an error", func(t *testing.T) {
		table, columns := orders()
		columns[0].Ref.Table = "other"
		if got, err := templates.DDL(catalog.SQLite, table, columns, everything); err == nil {
			t.Errorf("DDL = %s", got)
		}
	})
}

func TestTypesThatStandInStatements(t *testing.T) {
	for typ, plain := range map[string]bool{
		"INTEGER": true, "character varying(255)": true, "timestamp(3) with time zone": true, "numeric(10,2)": true,
		"ARRAY<STRUCT<a INT64, b STRING>>": true, "text[]": true, "enum('a','b c','d-e')": true, "public.citext": true, "bigint unsigned": true,
		"": false, "int;": false, "int, x int": false, "int)": false, "(int": false, "int -- x": false, "int /* x": false, "enum('a": false,
		`enum('a\')`: false, "int]": false, "a(]": false, "'int'": false, "'a'); DROP TABLE t; --": false, "整数": false, "2int": false, `"x"`: false,
	} {
		table, columns := orders()
		columns[0].Column.Type = typ
		got, err := templates.DDL(catalog.SQLite, table, columns[:1], everything)
		if err != nil {
			t.Fatal(err)
		}
		if in := strings.Contains(got, "  id "+typ+"\n"); in != plain {
			t.Errorf("type %q stands in the statement: %t, want %t\n%s", typ, in, plain, got)
		}
	}
}

func TestJoinIsWrittenTowardsTheTableThatJoins(t *testing.T) {
	_, _, _, o, _ := objects("orders")
	o.Description, o.Relationship.Validated = "", false
	for to, want := range map[string]string{
		"customers": "-- JOIN sales.customers ON sales.orders.orders = sales.customers.id -- many to one; documentation\n",
		"orders":    "-- JOIN sales.orders ON sales.customers.id = sales.orders.orders -- one to many; documentation\n",
	} {
		if got, err := templates.Join(catalog.Postgres, o, catalog.TableRef("shop", "sales", to)); err != nil || got != want {
			t.Errorf("Join = %s, %v; want %s", got, err, want)
		}
	}
	o.Relationship.JoinSQL = "a.x = b.y\nAND b.live"
	if got, _ := templates.Join(catalog.Postgres, o, catalog.TableRef("shop", "sales", "orders")); !strings.HasPrefix(got, "-- JOIN sales.orders ON a.x = b.y AND b.live --") {
		t.Errorf("Join ignores the documented condition: %s", got)
	}
	if got, err := templates.Join(catalog.Postgres, o, catalog.TableRef("shop", "sales", "other")); err == nil {
		t.Errorf("Join of a table that is no end = %s", got)
	}
}

func TestAQueryWithoutItsStatementTellsItsTables(t *testing.T) {
	_, _, _, _, o := objects("orders")
	o.Query.SQL = ""
	want := "-- Asked before: How many orders last week?\n--   answered from sales.orders, sales.customers; joined by orders to customers\n"
	if got, err := templates.Query(catalog.Postgres, o); err != nil || got != want {
		t.Errorf("Query = %s, %v; want %s", got, err, want)
	}
}

// checkContext proves that a context of these objects is comments and one CREATE TABLE, for any reader of lines.
func checkContext(t interface{ Fatalf(string, ...any) }, table, column, metric, relationship, query *catalog.Object) {
	statement, err := templates.DDL(catalog.SQLite, table, []*catalog.Object{column}, everything)
	if err != nil {
		t.Fatalf("DDL: %v", err)
	}
	stmts, err := sqlite.ParseString(statement)
	if err == nil { // some words that look like a type are none
		create, ok := stmts[0].(*ast.CreateTableStmt)
		if !ok || len(stmts) != 1 || len(create.Columns) != 1 {
			t.Fatalf("the context holds more than its table:\n%s", statement)
		}
	}
	context := statement
	for _, write := range []func() (string, error){
		func() (string, error) {
			return templates.Join(catalog.SQLite, relationship, relationship.Relationship.To[0].TableRef())
		},
		func() (string, error) { return templates.Metric(catalog.SQLite, metric) },
		func() (string, error) { return templates.Query(catalog.SQLite, query) },
	} {
		text, err := write()
		if err != nil {
			t.Fatalf("context: %v", err)
		}
		context += text
	}
	if len(context) > 40_000 {
		t.Fatalf("the context has %d bytes", len(context))
	}
	for _, line := range strings.FieldsFunc(context, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }) {
		code, _, _ := strings.Cut(line, "-- ")
		switch code = strings.TrimSpace(code); {
		case code == "", code == "CREATE TABLE sales.orders (", code == ");", code == "PRIMARY KEY (orders)", code == "PRIMARY KEY (orders),",
			code == "FOREIGN KEY (orders) REFERENCES sales.customers (id)":
		case strings.HasPrefix(code, "orders") && !strings.ContainsAny(code, ";#-/*`\"\\"):
		default:
			t.Fatalf("%q stands outside of comments in:\n%s", code, context)
		}
	}
}

func TestNoTextEscapesItsComment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := scribbled(t, "orders")
		checkContext(t, o[0], o[1], o[2], o[3], o[4])
	})
}

func FuzzNoTextEscapesItsComment(f *testing.F) {
	for _, text := range []string{"", "\n); DROP TABLE t; --", "*/", "\r\nSELECT 1", "\u2028x", "a\x00b", "'", "-- --", "int(1", "'); x", "\xe2\x80"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, column, metric, relationship, query := objects("orders")
		for _, o := range []*catalog.Object{table, column, metric, relationship, query} {
			o.Description, o.Synonyms = text, []string{text}
		}
		column.Column.Samples, column.Column.Type = []string{text}, ""
		metric.Ref.Name, metric.Metric.Formula, metric.Metric.Unit, metric.Metric.Filters = "m"+text, text, text, []string{text}
		relationship.Relationship.JoinSQL = text
		query.Query.Question, query.Query.SQL, query.Query.JoinPattern = text, text, text
		checkContext(t, table, column, metric, relationship, query)
		column.Column.Type = text
		query.Query.SQL = ""
		checkContext(t, table, column, metric, relationship, query)
	})
}
