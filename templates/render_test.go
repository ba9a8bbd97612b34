package templates_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/templates"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func readFile(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func newSet(t testing.TB, overrides map[catalog.Kind]string) *templates.Set {
	t.Helper()
	s, err := templates.New(overrides)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func always(d catalog.Dialect) templates.Dialects { return func(string) catalog.Dialect { return d } }

func ptr[T any](v T) *T { return &v }

// awkward names, of which each stands for a kind of trouble.
var awkward = []struct{ what, name string }{
	{"plain", "orders"},
	{"mixed case", "OrderItems"},
	{"a space", "County Name"},
	{"a reserved word", "order"},
	{"double quotes", `5" pipe`},
	{"single quotes", "o'brien"},
	{"backticks", "a`b"},
	{"brackets", "x[y]z"},
	{"a backslash", `a\b`},
	{"a dot", "v1.2"},
	{"SQL", `x"; DROP TABLE t; --`},
	{"a comment's end", "a*/b"},
	{"CJK", "顧客の注文"},
	{"emoji", "sales 📈"},
	{"a line break", "two\nlines"},
	{"control characters", "bell\a\x00nul"},
	{"300 characters", strings.Repeat("long_name_", 30)},
	{"300 CJK characters", strings.Repeat("長", 300)},
}

// objects are one of each kind, with a table and a column called name and hostile text everywhere else.
func objects(name string) (table, column, metric, relationship, query *catalog.Object) {
	t := catalog.TableRef("shop", "sales", name)
	c := catalog.ColumnRef("shop", "sales", name, name)
	other := catalog.ColumnRef("shop", "sales", "customers", "id")
	text := catalog.Object{
		Description: "who bought\r\nwhat -- and */ why /* ; DROP TABLE x;\u2028-- end",
		Synonyms:    []string{"purchases", "sales\norders"}, Tags: []string{"sales", "core"}, Owner: "orders team",
	}
	with := func(r catalog.Ref) *catalog.Object {
		o := text
		o.Ref = r
		return &o
	}
	table = with(t)
	table.Table = &catalog.Table{
		UpdateFrequency: "daily", Rows: ptr(int64(1204311)), PrimaryKey: []string{name},
		ForeignKeys: []catalog.ForeignKey{{Columns: []string{name}, To: other.TableRef(), ToColumns: []string{"id"}}},
	}
	column = with(c)
	column.Column = &catalog.Column{
		Type: "varchar(20)", PrimaryKey: true, ForeignKeys: []catalog.Ref{other},
		Samples: []string{"o'brien", "two\nlines", "", "-- x", "a", "b", "c"}, NullShare: ptr(0.0312), Distinct: ptr(int64(4200)),
	}
	metric = with(catalog.MetricRef("net revenue"))
	metric.Metric = &catalog.Metric{
		Formula: "SUM(amount)\n-- all", Sources: []catalog.Ref{t}, Columns: []catalog.Ref{c}, Dimensions: []catalog.Ref{other}, Time: c,
		Unit: "EUR", Aggregation: "sum", Filters: []string{"status = 'paid'", "region <> 'x'"},
	}
	relationship = with(catalog.RelationshipRef("who bought"))
	relationship.Relationship = &catalog.Relationship{
		From: []catalog.Ref{c}, To: []catalog.Ref{other}, Type: catalog.DocumentedRelationship, Cardinality: catalog.ManyToOne, Validated: true, Usage: 1500,
	}
	query = with(catalog.QueryRef("q1"))
	query.Query = &catalog.Query{
		Question: "How many orders\nlast week?", SQL: "SELECT count(*)\nFROM orders -- all\nWHERE 1", Tables: []catalog.Ref{t, other.TableRef()},
		Columns: []catalog.Ref{c}, JoinPattern: "orders to customers", Aggregations: []string{"count"}, Filters: []catalog.Ref{c},
		Count: 12, LastRun: time.Date(2025, 3, 1, 23, 0, 0, 0, time.UTC),
	}
	return
}

func TestGolden(t *testing.T) {
	set := newSet(t, nil)
	for _, d := range catalog.Dialects {
		t.Run(string(d), func(t *testing.T) {
			var got txtar.Archive
			for _, a := range awkward {
				table, column, metric, relationship, query := objects(a.name)
				var b bytes.Buffer
				show := func(text string, err error) {
					if err != nil {
						text = "error: " + err.Error()
					}
					fmt.Fprintf(&b, "%s\n\n", strings.TrimRight(text, "\n"))
				}
				for _, o := range []*catalog.Object{table, column, metric, relationship, query} {
					text, err := set.Render(o, always(d), 17)
					show(text, err)
				}
				show(templates.DDL(d, table, []*catalog.Object{column}, func(catalog.Ref) bool { return true }))
				show(templates.Join(d, relationship, relationship.Relationship.To[0].TableRef()))
				show(templates.Join(d, relationship, table.Ref))
				show(templates.Metric(d, metric))
				show(templates.Query(d, query))
				got.Files = append(got.Files, txtar.File{Name: a.what, Data: b.Bytes()})
			}
			name := filepath.Join("testdata", string(d)+".txtar")
			if *update {
				if err := os.WriteFile(name, txtar.Format(&got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want := map[string]string{}
			for _, f := range txtar.Parse([]byte(readFile(t, name))).Files {
				want[f.Name] = string(f.Data)
			}
			if len(want) != len(got.Files) {
				t.Errorf("%s holds %d cases, want %d; run the test with -update and review the difference", name, len(want), len(got.Files))
			}
			for _, f := range got.Files {
				if string(f.Data) != want[f.Name] {
					t.Errorf("%s: case %q differs; run the test with -update and review the difference\ngot:\n%s\nwant:\n%s", name, f.Name, f.Data, want[f.Name])
				}
			}
		})
	}
}

func TestAbsentFieldsLeaveNoLabel(t *testing.T) {
	set := newSet(t, nil)
	c := catalog.ColumnRef("", "", "orders", "id")
	for _, tt := range []struct {
		o    catalog.Object
		want string
	}{
		{catalog.Object{Ref: c.TableRef(), Table: &catalog.Table{}}, "Table orders"},
		{catalog.Object{Ref: c, Column: &catalog.Column{}}, "Column orders.id"},
		{catalog.Object{Ref: catalog.MetricRef("revenue"), Metric: &catalog.Metric{}}, "Metric revenue"},
		{catalog.Object{Ref: catalog.RelationshipRef("r"), Relationship: &catalog.Relationship{From: []catalog.Ref{c}, To: []catalog.Ref{c}}},
			"Join orders.id = orders.id"},
		{catalog.Object{Ref: catalog.QueryRef("q1"), Query: &catalog.Query{}}, "Run before: q1"},
	} {
		got, err := set.Render(&tt.o, always(catalog.SQLite), 0)
		if err != nil || got != tt.want {
			t.Errorf("Render(%s) = %q, %v; want %q", tt.o.Ref, got, err, tt.want)
		}
	}
}

func TestZeroIsNotAbsent(t *testing.T) {
	set := newSet(t, nil)
	c := catalog.ColumnRef("shop", "", "orders", "note")
	for _, tt := range []struct {
		share float64
		want  string
	}{{0, "Missing in: 0% of rows"}, {1e-6, "Missing in: under 0.1% of rows"}, {0.5, "Missing in: 50% of rows"}, {0.99999, "Missing in: over 99.9% of rows"}, {1, "Missing in: 100% of rows"}} {
		got, err := set.Render(&catalog.Object{Ref: c, Column: &catalog.Column{NullShare: &tt.share, Distinct: ptr(int64(0))}}, always(catalog.SQLite), 0)
		if err != nil || !strings.Contains(got, tt.want) || !strings.Contains(got, "Different values: 0") {
			t.Errorf("Render = %q, %v; want %q and no different values", got, err, tt.want)
		}
	}
}

func TestOverrides(t *testing.T) {
	builtin := newSet(t, nil)
	set := newSet(t, map[catalog.Kind]string{catalog.KindTable: "T {{.Name}}: {{.Rows}}"})
	table, column, _, _, _ := objects("orders")
	if got, err := set.Render(table, always(catalog.SQLite), 1); err != nil || got != "T sales.orders: 1,204,311" {
		t.Errorf("an overridden template renders %q, %v", got, err)
	}
	a, _ := set.Render(column, always(catalog.SQLite), 1)
	if b, _ := builtin.Render(column, always(catalog.SQLite), 1); a != b {
		t.Errorf("a template that is not overridden changed: %q, %q", a, b)
	}
	if set.Version() == builtin.Version() {
		t.Error("an override does not change the version")
	}
	if again := newSet(t, nil); again.Version() != builtin.Version() {
		t.Error("the version of equal templates differs")
	}
	for name, tt := range map[string]struct {
		kind       catalog.Kind
		text, want string
	}{
		"a template that does not parse":     {catalog.KindTable, "{{.Name", "does not parse"},
		"a field of another kind":            {catalog.KindTable, "{{.Name}} {{.Formula}}", "Formula"},
		"a field that is only used at times": {catalog.KindColumn, "{{.Name}} {{with .Samples}}{{$.Nope}}{{end}}", "Nope"},
		"a template without the name":        {catalog.KindMetric, "a metric", "{{.Name}}"},
		"a name behind the cut":              {catalog.KindMetric, strings.Repeat("word ", 600) + "{{.Name}}", "{{.Name}}"},
		"a template that writes without end": {catalog.KindQuery, "{{.Name}}{{range 1000000}}{{.}}{{end}}", "too much"},
		"a kind that does not exist":         {catalog.Kind(77), "{{.Name}}", "kind 77"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			if _, err := templates.New(map[catalog.Kind]string{tt.kind: tt.text}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one about %s", err, tt.want)
			}
		})
	}
}

// hostile is any text: some of it long, some of it made to break out of where it stands.
func hostile() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{"\n", "\r", "\u2028", "--", "*/", "/*", ";", "'", `"`, "`", "\x00", "\xff", "）", "😀", "顧客", ") ; DROP TABLE t; --"}),
	)
	return rapid.Custom(func(t *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(piece, 0, 4).Draw(t, "pieces"), "")
		return strings.Repeat(s, rapid.SampledFrom([]int{1, 1, 1, 50, 2000}).Draw(t, "times"))
	})
}

// scribbled fills every free text of every kind of object.
func scribbled(t *rapid.T, name string) []*catalog.Object {
	text := func(what string) string { return hostile().Draw(t, what) }
	texts := func(what string) []string { return rapid.SliceOfN(hostile(), 0, 7).Draw(t, what) }
	table, column, metric, relationship, query := objects(name)
	all := []*catalog.Object{table, column, metric, relationship, query}
	for _, o := range all {
		o.Description, o.Synonyms, o.Tags, o.Owner = text("description"), texts("synonyms"), texts("tags"), text("owner")
	}
	table.Table.UpdateFrequency = text("updates")
	column.Column.Samples, column.Column.Type = texts("samples"), text("type")
	metric.Ref.Name = "m" + text("metric")
	metric.Metric.Formula, metric.Metric.Unit, metric.Metric.Aggregation, metric.Metric.Filters = text("formula"), text("unit"), text("aggregation"), texts("filters")
	relationship.Relationship.JoinSQL = text("join")
	query.Query.Question, query.Query.SQL, query.Query.JoinPattern, query.Query.Aggregations = text("question"), text("sql"), text("pattern"), texts("aggregations")
	return all
}

func TestRenderingsStayShortWhateverTheInput(t *testing.T) {
	set, counter := newSet(t, nil), templates.NewCounter()
	rapid.Check(t, func(t *rapid.T) {
		name := "t" + hostile().Draw(t, "name")
		d := rapid.SampledFrom(catalog.Dialects[:]).Draw(t, "dialect")
		for _, o := range scribbled(t, name) {
			text, err := set.Render(o, always(d), 9)
			if err != nil {
				t.Fatal(err)
			}
			if n := counter.Tokens(text); n >= templates.MaxTokens {
				t.Errorf("%s reads as %d tokens", o.Ref.Kind, n)
			}
			if !utf8.ValidString(text) {
				t.Errorf("%s is not UTF-8: %q", o.Ref.Kind, text)
			}
			if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
				t.Errorf("%s holds control characters: %q", o.Ref.Kind, text)
			}
			for i, line := range strings.Split(text, "\n") {
				if label, _, ok := strings.Cut(line, " "); !ok || label == "" {
					t.Errorf("line %d of a %s has no label: %q", i, o.Ref.Kind, line)
				}
			}
		}
	})
}

func TestALongFieldDoesNotCrowdOutOthers(t *testing.T) {
	set := newSet(t, nil)
	table, column, metric, relationship, query := objects("orders")
	long := strings.Repeat("a very long story about commerce ", 1000)
	for o, want := range map[*catalog.Object]string{
		table: "Updated: daily", column: "Missing in: 3.1% of rows", metric: "Kept by: orders team", relationship: "Seen in past queries: 1,500 times", query: "Last run: 2025-03-01",
	} {
		o.Description, o.Synonyms, o.Tags = long, []string{long}, []string{long}
		text, err := set.Render(o, always(catalog.SQLite), 5)
		if err != nil || !strings.Contains(text, want) || !strings.Contains(text, "…") {
			t.Errorf("%s = %q, %v; want %q in it and the cut marked", o.Ref.Kind, text, err, want)
		}
	}
}
