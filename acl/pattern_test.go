package acl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

func TestPatternsCoverWhatTheyNameAndAllBeneath(t *testing.T) {
	t.Parallel()
	order, id := catalog.TableRef("shop", "sales", "orders"), catalog.ColumnRef("shop", "sales", "orders", "id")
	flat, text := catalog.TableRef("lite", "", "notes"), catalog.ColumnRef("lite", "", "notes", "text")
	odd := catalog.TableRef("a.b", "", `c"*`)
	metric, query := catalog.MetricRef("net revenue"), catalog.QueryRef("q:1")
	every := []catalog.Ref{order, id, flat, text, odd, metric, query}
	for pattern, want := range map[string][]catalog.Ref{
		`*`:                          every,
		`shop`:                       {order, id},
		`shop.sales`:                 {order, id},
		`shop.sales.orders`:          {order, id},
		`shop.sales.orders.id`:       {id},
		`shop.*`:                     {order, id},
		`*.*`:                        {order, id, flat, text, odd},
		`*.*.*`:                      {order, id, text},
		`*.*.*.*`:                    {id},
		`*s*`:                        {order, id},
		`*.*es.orders`:               {order, id},
		`s*p.s*s.o*r*s.i*d`:          {id},
		`shop.sales.orders.id*d`:     {},
		`lite.notes`:                 {flat, text},
		`lite.notes.text`:            {text},
		`lite.notes.t**t`:            {text},
		`lite."".notes`:              {},
		`"shop"."sales".orders`:      {order, id},
		`"sh*"`:                      {},
		`"a.b"."c""*"`:               {odd},
		`"a.b"."c*"`:                 {},
		`"a.b".c*`:                   {odd},
		`shop.orders`:                {},
		`metric:net revenue`:         {metric},
		`metric:net*`:                {metric},
		`metric:*`:                   {metric},
		`metric:net`:                 {},
		`query:q:1`:                  {query},
		`relationship:*`:             {},
		`"metric:x"`:                 {},
		`shop.sales.orders.id.extra`: nil, // not a pattern
		``:                           nil,
		`.`:                          nil,
		`shop.`:                      nil,
		`shop..orders`:               nil,
		`"shop`:                      nil,
		`"shop"x`:                    nil,
		`sh"op`:                      nil,
		`metric:`:                    nil,
		`metrics:revenue`:            nil,
		`table:shop.orders`:          nil,
		`column:shop.orders.id`:      nil,
		`tag:`:                       nil,
		`kind:tables`:                nil,
	} {
		p, err := acl.ParsePattern(pattern)
		if (err != nil) != (want == nil) {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		if err == nil && p.String() != pattern {
			t.Errorf("%s reads %s", pattern, p)
		}
		for _, r := range every {
			if got := p.Covers(catalog.Postgres, r); err == nil && got != slices.Contains(want, r) {
				t.Errorf("%s covers %s: %v", pattern, r, got)
			}
		}
	}
}

func TestTheZeroPatternCoversNothing(t *testing.T) {
	t.Parallel()
	for _, r := range []catalog.Ref{{}, catalog.TableRef("a", "", "b"), catalog.MetricRef("m"), catalog.MetricRef("")} {
		if (acl.Pattern{}).Covers(catalog.SQLite, r) {
			t.Errorf("it covers %v", r)
		}
	}
	p, err := acl.ParsePattern("a")
	if err != nil || p.Covers(catalog.SQLite, catalog.Ref{}) {
		t.Errorf("a covers nothing's name, %v", err)
	}
}

func TestLetterCaseFollowsTheDialect(t *testing.T) {
	t.Parallel()
	column := catalog.ColumnRef("db", "", "Tab", "Größe")
	for _, c := range []struct {
		pattern string
		want    []catalog.Dialect
	}{
		{"db.Tab.Größe", catalog.Dialects[:]},
		{"db.tab", []catalog.Dialect{catalog.SQLite, catalog.TSQL}},
		{"DB", []catalog.Dialect{catalog.SQLite, catalog.TSQL}},
		{"db.Tab.GRößE", []catalog.Dialect{catalog.SQLite, catalog.TSQL, catalog.MySQL, catalog.BigQuery}},
		{"db.Tab.GRÖßE", []catalog.Dialect{catalog.TSQL, catalog.MySQL, catalog.BigQuery}},
		{"db.Tab.gR*", []catalog.Dialect{catalog.SQLite, catalog.TSQL, catalog.MySQL, catalog.BigQuery}},
	} {
		p, err := acl.ParsePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range catalog.Dialects {
			if got := p.Covers(d, column); got != slices.Contains(c.want, d) {
				t.Errorf("%s covers %s on %s: %v", c.pattern, column, d, got)
			}
		}
	}
}

func TestCoverageEqualsTryingEveryObject(t *testing.T) {
	t.Parallel()
	segment := rapid.SampledFrom([]string{"a", "A", "b", "ab", "ä", "Ä", "a.b", "*", "a*"})
	rapid.Check(t, func(t *rapid.T) {
		var databases []catalog.Database
		names := rapid.SliceOfNDistinct(segment, 1, 4, rapid.ID).Draw(t, "databases")
		dialect := map[string]catalog.Dialect{}
		for _, n := range names {
			dialect[n] = rapid.SampledFrom(catalog.Dialects[:]).Draw(t, "dialect")
			databases = append(databases, catalog.Database{Name: n, Dialect: dialect[n]})
		}
		objects := []catalog.Object{}
		seen := map[catalog.Ref]bool{}
		for range rapid.IntRange(1, 8).Draw(t, "tables") {
			r := catalog.TableRef(rapid.SampledFrom(names).Draw(t, "database"), rapid.OneOf(rapid.Just(""), segment).Draw(t, "schema"), segment.Draw(t, "table"))
			d := dialect[r.Database]
			if seen[d.RefKey(r)] {
				continue
			}
			seen[d.RefKey(r)] = true
			objects = append(objects, catalog.Object{Ref: r, Table: &catalog.Table{}})
			for _, c := range rapid.SliceOfNDistinct(segment, 0, 3, func(s string) string { return d.Key(catalog.PartColumn, s) }).Draw(t, "columns") {
				objects = append(objects, catalog.Object{Ref: catalog.ColumnRef(r.Database, r.Schema, r.Table, c), Column: &catalog.Column{}})
			}
		}
		objects = append(objects, catalog.Object{Ref: catalog.MetricRef("a"), Metric: &catalog.Metric{Formula: "1", Sources: []catalog.Ref{objects[0].Ref}}})
		s, err := catalog.Build(databases, objects)
		if err != nil {
			t.Fatal(err)
		}
		coverage := acl.NewCoverage(s)
		for range 20 {
			part := rapid.OneOf(segment.Filter(func(s string) bool { return !strings.Contains(s, ".") }),
				rapid.Map(segment, func(s string) string { return `"` + s + `"` }), rapid.Just(`""`), rapid.Just("*"))
			text := strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "pattern"), ".")
			if rapid.IntRange(0, 9).Draw(t, "named") == 0 {
				text = "metric:*"
			}
			p, err := acl.ParsePattern(text)
			if err != nil {
				t.Fatal(err)
			}
			covered := coverage.Of(p)
			for _, o := range s.All() {
				if want := p.Covers(dialect[o.Ref.Database], o.Ref); covered.Contains(o.ID) != want {
					t.Fatalf("%s covers %s: %v, want %v", p, o.Ref, !want, want)
				}
			}
		}
	})
}

// FuzzPattern holds patterns without stars to what the name itself says: equal segments, and all beneath.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{"*", "a.b", `"a.b".c`, `"*".b`, "a.*.c", "metric:x", "metric:*", `""`, "a.b.c.d", "a.b.c.d.e", `"a""b"`, "ä.Ä", "a:b", "**", "a.\x00"} {
		f.Add(p, "a", "", "b", "c")
		f.Add(p, "a", "b", "c", "d")
	}
	f.Fuzz(func(t *testing.T, text, database, schema, table, column string) {
		p, err := acl.ParsePattern(text)
		if err != nil {
			return
		}
		for _, r := range []catalog.Ref{catalog.TableRef(database, schema, table), catalog.ColumnRef(database, schema, table, column), catalog.MetricRef(table)} {
			for _, d := range catalog.Dialects {
				got := p.Covers(d, r)
				named := strings.HasPrefix(text, "metric:") || strings.HasPrefix(text, "relationship:") || strings.HasPrefix(text, "query:")
				if strings.Contains(text, "*") || table == "" {
					continue
				}
				if named {
					if got != (text == r.String() && r.Kind == catalog.KindMetric) {
						t.Fatalf("%q covers %s: %v", text, r, got)
					}
					continue
				}
				segments, err := catalog.SplitPath(text)
				if err != nil {
					t.Fatalf("%q is a pattern but no path: %v", text, err)
				}
				if want := r.Kind != catalog.KindMetric && begins(d, segments, r); got != want {
					t.Fatalf("on %s %q covers %#v: %v, want %v", d, text, r, got, want)
				}
			}
		}
	})
}

// begins reports whether the path of r begins with the segments, compared as the names of the parts that they are.
func begins(d catalog.Dialect, segments []string, r catalog.Ref) bool {
	path := r.Path()
	if len(segments) > len(path) {
		return false
	}
	have := d.RefKey(r).Path()
	parts := []catalog.Part{catalog.PartDatabase, catalog.PartSchema, catalog.PartTable, catalog.PartColumn}
	if r.Schema == "" {
		parts = slices.Delete(parts, 1, 2)
	}
	for i, s := range segments {
		if d.Key(parts[i], s) != have[i] {
			return false
		}
	}
	return true
}

func ExampleParsePattern() {
	p, err := acl.ParsePattern("shop.sales.*")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Covers(catalog.Postgres, catalog.ColumnRef("shop", "sales", "orders", "id")))
	fmt.Println(p.Covers(catalog.Postgres, catalog.ColumnRef("shop", "crm", "customers", "id")))
	// Output:
	// true
	// false
}

func TestPatternsByAttributeCoverWhatSaysSoAndTheColumnsOfSuchTables(t *testing.T) {
	t.Parallel()
	table, plain := catalog.TableRef("shop", "", "people"), catalog.TableRef("shop", "", "goods")
	objects := []catalog.Object{
		{Ref: table, Owner: "hr", Domain: "staff", Table: &catalog.Table{}},
		{Ref: catalog.ColumnRef("shop", "", "people", "id"), Column: &catalog.Column{}},
		{Ref: catalog.ColumnRef("shop", "", "people", "pay"), Tags: []string{"secret", "pii:money"}, Column: &catalog.Column{Position: 1}},
		{Ref: plain, Tags: []string{"secretive"}, Table: &catalog.Table{}},
		{Ref: catalog.ColumnRef("shop", "", "goods", "id"), Column: &catalog.Column{}},
		{Ref: catalog.MetricRef("payroll"), Tags: []string{"secret"}, Metric: &catalog.Metric{Formula: "SUM(pay)", Sources: []catalog.Ref{table}}},
	}
	s, err := catalog.Build([]catalog.Database{{Name: "shop", Dialect: catalog.SQLite}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	coverage := acl.NewCoverage(s)
	for pattern, want := range map[string]string{
		"tag:secret":    "shop.people.pay metric:payroll",
		"tag:secret*":   "shop.goods shop.people.pay shop.goods.id metric:payroll",
		"tag:pii:money": "shop.people.pay",
		"tag:Secret":    "",
		"owner:hr":      "shop.people shop.people.id shop.people.pay",
		"domain:st*":    "shop.people shop.people.id shop.people.pay",
		"domain:*":      "shop.people shop.people.id shop.people.pay",
		"kind:table":    "shop.goods shop.people",
		"kind:metric":   "metric:payroll",
	} {
		p, err := acl.ParsePattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range s.All() {
			if coverage.Covers(p, uint32(i)) {
				got = append(got, s.Object(uint32(i)).Ref.String())
			}
			if r := s.Object(uint32(i)).Ref; p.ByAttribute() && p.Covers(catalog.SQLite, r) {
				t.Errorf("%s names %s", pattern, r)
			}
		}
		slices.Sort(got)
		wanted := strings.Fields(want)
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			t.Errorf("%s covers %q, want %q", pattern, got, wanted)
		}
	}
}

// TestTagsFollowColumnsThatAreDerived: what is made of a tagged column is tagged too, however far away, until somebody
// clears it.
func TestTagsFollowColumnsThatAreDerived(t *testing.T) {
	t.Parallel()
	column := func(table, name string, position int) catalog.Object {
		return catalog.Object{Ref: catalog.ColumnRef("shop", "", table, name), Column: &catalog.Column{Position: position}}
	}
	table := func(name string) catalog.Object {
		return catalog.Object{Ref: catalog.TableRef("shop", "", name), Table: &catalog.Table{}}
	}
	objects := []catalog.Object{
		table("people"), column("people", "id", 0), column("people", "ssn", 1),
		table("staff"), column("staff", "wage", 0),
		table("v1"), column("v1", "code", 0), column("v1", "id", 1),
		table("v2"), column("v2", "both", 0), column("v2", "hashed", 1),
		table("v3"), column("v3", "last", 0), column("v3", "safe", 1),
	}
	objects[2].Tags, objects[3].Tags = []string{"pii"}, []string{"pay"}
	objects[10].Cleared = []string{"pii"}
	objects[13].Cleared, objects[13].Tags = []string{"pii"}, []string{"pii"} // its own tag stands
	s, err := catalog.Build([]catalog.Database{{Name: "shop", Dialect: catalog.SQLite}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	ref := func(path string) catalog.Ref {
		table, name, _ := strings.Cut(path, ".")
		return catalog.ColumnRef("shop", "", table, name)
	}
	s, err = catalog.Derive(s, map[catalog.Ref][]catalog.Ref{
		ref("v1.code"):   {ref("people.ssn")},
		ref("v1.id"):     {ref("people.id"), ref("people.gone")},
		ref("v2.both"):   {ref("v1.code"), ref("staff.wage")},
		ref("v2.hashed"): {ref("v1.code")},
		ref("v3.last"):   {ref("v2.hashed"), ref("v3.safe")},
		ref("v3.safe"):   {ref("v3.last"), ref("v2.both")}, // a circle ends
	})
	if err != nil {
		t.Fatal(err)
	}
	coverage := acl.NewCoverage(s)
	for pattern, want := range map[string]string{
		"tag:pii": "people.ssn v1.code v2.both v3.last v3.safe",
		"tag:pay": "staff.wage v2.both v3.last v3.safe",
	} {
		p, err := acl.ParsePattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range s.Objects(catalog.KindColumn) {
			if coverage.Covers(p, o.ID) {
				got = append(got, o.Ref.Table+"."+o.Ref.Column)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s covers %s, want %s", pattern, strings.Join(got, " "), want)
		}
	}
}
