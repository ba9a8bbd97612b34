package templates_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pingcap/tidb/pkg/parser"
	mysqlast "github.com/pingcap/tidb/pkg/parser/ast"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // the parser needs a driver for values
	"github.com/sqlc-dev/meyer/ast"
	sqlite "github.com/sqlc-dev/meyer/parser"
	"github.com/sqlc-dev/meyer/token"
	pgquery "github.com/wasilibs/go-pgquery"
	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/templates"
)

func TestQuote(t *testing.T) {
	for _, tt := range []struct {
		name, in                                           string
		sqlite, mysql, postgres, tsql, bigquery, snowflake string
	}{
		{"a plain name needs no quotes, unless its case is folded",
			"orders", "orders", "orders", "orders", "orders", "orders", `"orders"`},
		{"upper case is folded by PostgreSQL",
			"ORDERS", "ORDERS", "ORDERS", `"ORDERS"`, "ORDERS", "ORDERS", "ORDERS"},
		{"mixed case is folded by PostgreSQL and Snowflake",
			"orderId", "orderId", "orderId", `"orderId"`, "orderId", "orderId", `"orderId"`},
		{"a space", "County Name", `"County Name"`, "`County Name`", `"County Name"`, "[County Name]", "`County Name`", `"County Name"`},
		{"a word that all reserve", "select", `"select"`, "`select`", `"select"`, "[select]", "`select`", `"select"`},
		{"reserved in any case", "Order", `"Order"`, "`Order`", `"Order"`, "[Order]", "`Order`", `"Order"`},
		{"a word that only some reserve", "rank", "rank", "`rank`", "rank", "rank", "rank", `"rank"`},
		{"a digit in front", "2nd", `"2nd"`, "`2nd`", `"2nd"`, "[2nd]", "`2nd`", `"2nd"`},
		{"double quotes", `a"b`, `"a""b"`, "`a\"b`", `"a""b"`, `[a"b]`, "`a\"b`", `"a""b"`},
		{"backticks", "a`b", "\"a`b\"", "`a``b`", "\"a`b\"", "[a`b]", "`a\\`b`", "\"a`b\""},
		{"brackets", "a]b[c", `"a]b[c"`, "`a]b[c`", `"a]b[c"`, "[a]]b[c]", "`a]b[c`", `"a]b[c"`},
		{"backslashes", `a\b`, `"a\b"`, "`a\\b`", `"a\b"`, `[a\b]`, "`a\\\\b`", `"a\b"`},
		{"dots", "a.b", `"a.b"`, "`a.b`", `"a.b"`, "[a.b]", "`a.b`", `"a.b"`},
		{"other scripts", "顧客", `"顧客"`, "`顧客`", `"顧客"`, "[顧客]", "`顧客`", `"顧客"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for d, want := range map[catalog.Dialect]string{
				catalog.SQLite: tt.sqlite, catalog.MySQL: tt.mysql, catalog.Postgres: tt.postgres,
				catalog.TSQL: tt.tsql, catalog.BigQuery: tt.bigquery, catalog.Snowflake: tt.snowflake,
			} {
				got, err := templates.Quote(d, tt.in)
				if err != nil || got != want {
					t.Errorf("%s: Quote(%q) = %s, %v; want %s", d, tt.in, got, err, want)
				}
			}
		})
	}
}

func TestQuoteRefusesWhatNoLineOfSQLCanHold(t *testing.T) {
	for _, name := range []string{"", "a\x00b", "a\nb", "a\rb", "a\tb", "a\u0085b", "a\u2028b", "a\u2029b", "a\x7fb", "a\xffb"} {
		for _, d := range catalog.Dialects {
			if got, err := templates.Quote(d, name); err == nil {
				t.Errorf("%s: Quote(%q) = %s, want an error", d, name, got)
			}
		}
	}
	if got, err := templates.Quote("oracle", "orders"); err == nil {
		t.Errorf("Quote for an unknown dialect = %s, want an error", got)
	}
}

func TestQualifiedName(t *testing.T) {
	three := catalog.ColumnRef("shop", "sales", "orders", "id")
	two := catalog.ColumnRef("shop", "", "orders", "id")
	for _, tt := range []struct {
		d                      catalog.Dialect
		withSchema, withoutOne string
	}{
		{catalog.SQLite, "sales.orders.id", "orders.id"},
		{catalog.MySQL, "sales.orders.id", "shop.orders.id"},
		{catalog.Postgres, "sales.orders.id", "orders.id"},
		{catalog.TSQL, "sales.orders.id", "orders.id"},
		{catalog.BigQuery, "shop.sales.orders.id", "shop.orders.id"},
		{catalog.Snowflake, `"shop"."sales"."orders"."id"`, `"shop"."orders"."id"`},
	} {
		for r, want := range map[catalog.Ref]string{three: tt.withSchema, two: tt.withoutOne} {
			if got, err := templates.QualifiedName(tt.d, r); err != nil || got != want {
				t.Errorf("%s: QualifiedName(%s) = %s, %v; want %s", tt.d, r, got, err, want)
			}
		}
	}
	if got, err := templates.QualifiedName(catalog.SQLite, catalog.MetricRef("m")); err == nil {
		t.Errorf("QualifiedName of a metric = %s, want an error", got)
	}
}

// parsers read an identifier back the way the engine does.
func parsers() map[catalog.Dialect]func(identifier string) (string, error) {
	tidb := parser.New()
	return map[catalog.Dialect]func(string) (string, error){
		catalog.MySQL: func(identifier string) (string, error) {
			stmt, err := tidb.ParseOneStmt("SELECT 1 FROM "+identifier, "", "")
			if err != nil {
				return "", err
			}
			from := stmt.(*mysqlast.SelectStmt).From.TableRefs.Left.(*mysqlast.TableSource)
			return from.Source.(*mysqlast.TableName).Name.O, nil
		},
		catalog.SQLite: func(identifier string) (string, error) {
			stmts, err := sqlite.ParseString("CREATE TABLE " + identifier + " (x)")
			if err != nil {
				return "", err
			}
			return stmts[0].(*ast.CreateTableStmt).Name.Name.Name, nil
		},
		catalog.Postgres: func(identifier string) (string, error) {
			tree, err := pgquery.Parse("SELECT 1 FROM " + identifier)
			if err != nil {
				return "", err
			}
			return tree.Stmts[0].Stmt.GetSelectStmt().FromClause[0].GetRangeVar().Relname, nil
		},
	}
}

func TestQuotedNamesReadBackAsTheSameName(t *testing.T) {
	awkward := rapid.SampledFrom([]rune("aZ_9 `\"'[]().,;-/*\\$#@!%顧é😀\u200d\u202e"))
	names := rapid.OneOf(
		rapid.StringOfN(awkward, 1, 15, 60), // PostgreSQL keeps 63 bytes of a name
		rapid.StringMatching(`[a-zA-Z_][a-zA-Z0-9_]{0,20}`),
		rapid.SampledFrom(slices.Concat(words(t, "mysql"), words(t, "postgres"), words(t, "sqlite"), words(t, "tsql"))),
	)
	read := parsers()
	for d, parse := range read {
		t.Run(string(d), rapid.MakeCheck(func(t *rapid.T) {
			name := names.Draw(t, "name")
			if d == catalog.MySQL && strings.HasSuffix(name, " ") {
				t.Skip("MySQL has no names that end in a space")
			}
			quoted, err := templates.Quote(d, name)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := parse(quoted); err != nil || got != name {
				t.Fatalf("%s reads as %q (%v), want %q", quoted, got, err, name)
			}
		}))
	}
}

// words returns the reserved words of a dialect from the list that Quote uses.
func words(t *testing.T, dialect string) []string {
	t.Helper()
	var out []string
	for _, w := range strings.Fields(readFile(t, "reserved/"+dialect+".txt")) {
		if w == strings.ToLower(w) && !strings.ContainsAny(w, "#:.,") {
			out = append(out, w)
		}
	}
	return out
}

func TestEveryWordThatAParserReservesIsQuoted(t *testing.T) {
	quoted := func(t *testing.T, d catalog.Dialect, word string) {
		t.Helper()
		if got, _ := templates.Quote(d, word); got == word {
			t.Errorf("%s: %s stands without quotes", d, word)
		}
	}
	t.Run("mysql", func(t *testing.T) {
		for _, k := range parser.Keywords {
			if k.Reserved {
				quoted(t, catalog.MySQL, strings.ToLower(k.Word))
			}
		}
	})
	t.Run("sqlite", func(t *testing.T) {
		for _, w := range slices.Concat(words(t, "sqlite"), words(t, "postgres"), words(t, "mysql")) {
			if token.Lookup(w) != token.ID {
				quoted(t, catalog.SQLite, w)
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		for _, w := range slices.Concat(words(t, "postgres"), words(t, "sqlite"), words(t, "mysql"), words(t, "tsql")) {
			for _, sql := range []string{"CREATE TABLE " + w + " (x int)", "CREATE TABLE t (" + w + " int)", "SELECT " + w + " FROM t", "SELECT 1 FROM " + w} {
				if _, err := pgquery.Parse(sql); err != nil {
					quoted(t, catalog.Postgres, w)
				}
			}
		}
	})
}
