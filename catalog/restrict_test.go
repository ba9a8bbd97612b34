package catalog_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/catalog"
)

// world is a random catalog that can be built with and without some of its objects. Each name stands for one object
// only and is no part of any other text.
type world struct {
	databases []catalog.Database
	tables    []worldTable
	loose     []worldObject // metrics, relationships, queries
}

type worldTable struct {
	ref     catalog.Ref
	columns []string
	primary []string
	unique  []string
	keys    []catalog.ForeignKey
	part    catalog.Ref // a partition, if any
}

type worldObject struct {
	make  func() catalog.Object // anew each time, since Build takes what it is given
	names []catalog.Ref         // all that it names or mentions
}

func drawWorld(t *rapid.T) *world {
	w := &world{databases: []catalog.Database{
		{Name: "lite", Dialect: catalog.SQLite}, {Name: "pg", Dialect: catalog.Postgres, DefaultSchema: "public"}}}
	var columns []catalog.Ref
	for i := range rapid.IntRange(2, 6).Draw(t, "tables") {
		name := fmt.Sprintf("Tab%dq", i)
		r := catalog.TableRef("lite", "", name)
		if rapid.Bool().Draw(t, "pg") {
			r = catalog.TableRef("pg", "public", name)
		}
		table := worldTable{ref: r}
		for j := range rapid.IntRange(1, 4).Draw(t, "columns") {
			c := fmt.Sprintf("col%dx%dq", i, j)
			if rapid.IntRange(0, 4).Draw(t, "odd") == 0 {
				c = fmt.Sprintf(`odd "%d" of %dq`, j, i)
			}
			table.columns = append(table.columns, c)
			columns = append(columns, catalog.ColumnRef(r.Database, r.Schema, r.Table, c))
		}
		some := rapid.SliceOfNDistinct(rapid.SampledFrom(table.columns), 0, 2, rapid.ID)
		table.primary = some.Draw(t, "primary")
		table.unique = some.Draw(t, "unique")
		w.tables = append(w.tables, table)
	}
	anyTable := rapid.IntRange(0, len(w.tables)-1)
	for i := range w.tables {
		for range rapid.IntRange(0, 2).Draw(t, "keys") {
			to := w.tables[anyTable.Draw(t, "to")]
			n := rapid.IntRange(1, min(2, len(to.columns), len(w.tables[i].columns))).Draw(t, "width")
			w.tables[i].keys = append(w.tables[i].keys, catalog.ForeignKey{
				Columns: w.tables[i].columns[:n], To: to.ref, ToColumns: to.columns[len(to.columns)-n:]})
		}
		if rapid.Bool().Draw(t, "partitioned") {
			w.tables[i].part = w.tables[anyTable.Draw(t, "part")].ref
		}
	}
	column := rapid.SampledFrom(columns)
	for i := range rapid.IntRange(0, 4).Draw(t, "loose") {
		c, d := column.Draw(t, "c"), column.Draw(t, "d")
		quote := func(r catalog.Ref) string { return `"` + strings.ReplaceAll(r.Column, `"`, `""`) + `"` }
		o := worldObject{names: []catalog.Ref{c, c.TableRef()}}
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			o.make = func() catalog.Object {
				return catalog.Object{Ref: catalog.MetricRef(fmt.Sprintf("met%dq", i)), Metric: &catalog.Metric{
					Formula: "SUM(" + quote(c) + ")", Sources: []catalog.Ref{c.TableRef()}}}
			}
			if c.Database == d.Database {
				o.names = append(o.names, d, d.TableRef())
				plain := o.make
				o.make = func() catalog.Object {
					m := plain()
					m.Metric.Filters = []string{fmt.Sprintf("1 IN (SELECT %s FROM %s)", quote(d), d.Table)}
					return m
				}
			}
		case 1:
			o.names = append(o.names, d, d.TableRef())
			third := w.tables[anyTable.Draw(t, "third")]
			reaches := third.ref.Database == c.Database
			if reaches {
				o.names = append(o.names, third.ref)
			}
			o.make = func() catalog.Object {
				r := &catalog.Relationship{From: []catalog.Ref{c}, To: []catalog.Ref{d}, Type: catalog.DocumentedRelationship}
				if reaches {
					r.JoinSQL = "EXISTS (SELECT 1 FROM " + third.ref.Table + ")"
				}
				return catalog.Object{Ref: catalog.RelationshipRef(fmt.Sprintf("rel%dq", i)), Relationship: r}
			}
		case 2:
			sql := "SELECT " + quote(c) + " FROM " + c.Table
			if c.Database == d.Database {
				sql += " JOIN " + d.Table + " ON " + quote(d) + " > 0"
				o.names = append(o.names, d, d.TableRef())
			}
			o.make = func() catalog.Object {
				return catalog.Object{Ref: catalog.QueryRef(fmt.Sprintf("que%dq", i)), Query: &catalog.Query{
					Question: "?", SQL: sql, Tables: []catalog.Ref{c.TableRef()}, Filters: []catalog.Ref{c}}}
			}
		}
		w.loose = append(w.loose, o)
	}
	return w
}

// objects makes the world's objects without those in gone, and without all that names one of them. It is written
// down from what a world is, not from how Restrict works.
func (w *world) objects(gone map[catalog.Ref]bool) []catalog.Object {
	var out []catalog.Object
	lost := func(r catalog.Ref) bool { return gone[r] || gone[r.TableRef()] }
	// A declared key that a documented relationship stands for goes with it.
	type tie struct{ from, to string }
	tied := func(from, to []catalog.Ref) tie { return tie{texts(from), texts(to)} }
	stands := map[tie]bool{}
	for _, l := range w.loose {
		o := l.make()
		here := !gone[o.Ref] && !slices.ContainsFunc(l.names, lost)
		if r := o.Relationship; r != nil {
			e := tied(r.From, r.To)
			stands[e] = stands[e] || here
		}
		if here {
			out = append(out, o)
		}
	}
	for _, t := range w.tables {
		if lost(t.ref) {
			continue
		}
		column := func(c string) catalog.Ref { return catalog.ColumnRef(t.ref.Database, t.ref.Schema, t.ref.Table, c) }
		lostName := func(c string) bool { return lost(column(c)) }
		table := &catalog.Table{}
		if !slices.ContainsFunc(t.primary, lostName) {
			table.PrimaryKey = t.primary
		}
		if len(t.unique) > 0 && !slices.ContainsFunc(t.unique, lostName) {
			table.UniqueKeys = [][]string{t.unique}
		}
		for _, k := range t.keys {
			var from, to []catalog.Ref
			for i := range k.Columns {
				from = append(from, column(k.Columns[i]))
				to = append(to, catalog.ColumnRef(k.To.Database, k.To.Schema, k.To.Table, k.ToColumns[i]))
			}
			if here, documented := stands[tied(from, to)]; documented && !here ||
				slices.ContainsFunc(from, lost) || slices.ContainsFunc(to, lost) {
				continue
			}
			table.ForeignKeys = append(table.ForeignKeys, k)
		}
		if !t.part.IsZero() && !lost(t.part) {
			table.Partitions = []catalog.Ref{t.part}
		}
		out = append(out, catalog.Object{Ref: t.ref, Table: table})
		for i, c := range t.columns {
			if !lostName(c) {
				// That it is part of a key is said of the column, and stays when another column of the key goes.
				out = append(out, catalog.Object{Ref: column(c), Column: &catalog.Column{Position: i, PrimaryKey: slices.Contains(t.primary, c)}})
			}
		}
	}
	return out
}

func TestRestrictingEqualsBuildingWithout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		whole, err := catalog.Build(w.databases, w.objects(nil))
		if err != nil {
			t.Fatal(err)
		}
		gone := map[catalog.Ref]bool{}
		for _, o := range whole.All() {
			derived := o.Relationship != nil && o.Relationship.Type == catalog.ForeignKeyRelationship
			if !derived && rapid.IntRange(0, 5).Draw(t, "gone") == 0 {
				gone[o.Ref] = true
			}
		}
		restricted, err := catalog.Restrict(whole, func(o *catalog.Object) bool { return !gone[o.Ref] }, nil)
		if err != nil {
			t.Fatal(err)
		}

		objects := w.objects(gone)
		var databases []catalog.Database
		for _, d := range w.databases {
			if slices.ContainsFunc(objects, func(o catalog.Object) bool { return o.Ref.Database == d.Name }) {
				databases = append(databases, d)
			}
		}
		want, err := catalog.Build(databases, objects)
		if err != nil {
			t.Fatal(err)
		}
		if restricted.Version() != want.Version() {
			for _, o := range want.All() {
				g, _ := restricted.Lookup(o.Ref)
				a, _ := json.Marshal(o)
				b, _ := json.Marshal(g)
				if string(a) != string(b) {
					t.Logf("want %s\ngot  %s", a, b)
				}
			}
			t.Fatalf("without %v: restricted to built %+v", gone, catalog.Diff(restricted, want))
		}

		stays := func(r catalog.Ref) bool { _, ok := restricted.Lookup(r); return ok }
		for _, o := range restricted.All() {
			pruned, err := json.Marshal(whole.Prune(lookup(t, whole, o.Ref), stays))
			if err != nil {
				t.Fatal(err)
			}
			if alone, _ := json.Marshal(o); string(pruned) != string(alone) {
				t.Fatalf("pruned it reads %s, restricted %s", pruned, alone)
			}
		}

		again, err := catalog.Restrict(restricted, func(*catalog.Object) bool { return true }, nil)
		if err != nil || again.Version() != restricted.Version() {
			t.Fatalf("restricting is not idempotent, %v", err)
		}

		data, err := json.Marshal(restricted.All())
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(strings.ReplaceAll(string(data), `\"`, `"`), `""`, `"`)
		for _, o := range whole.All() {
			if _, ok := restricted.Lookup(o.Ref); ok {
				continue
			}
			// The last part of a name stands for one object alone, save a derived relationship's, which others make up.
			path := o.Ref.Path()
			if name := path[len(path)-1]; !strings.Contains(name, "->") && strings.Contains(text, name) {
				t.Fatalf("%s is gone but its name still stands in %s", o.Ref, data)
			}
		}
	})
}

func TestRestrictLeavesTheSnapshotAlone(t *testing.T) {
	s := build(t,
		table("a", []string{"id", "x"}, all(primary("id"), func(t *catalog.Table) { t.SQLView, t.UniqueKeys = "SELECT", [][]string{{"x"}} })),
		table("b", []string{"a", "c"}, all(key("a", "a", "id"), key("c", "a", "x"))),
		[]catalog.Object{metric("m", "SUM(x)", "a"), query("q", "SELECT x FROM a", "a"), relation("r", "b.c", "a.id")})
	before, err := json.Marshal(s.All())
	if err != nil {
		t.Fatal(err)
	}
	edited := 0
	_, err = catalog.Restrict(s, func(o *catalog.Object) bool {
		return o.Ref != ref("a.x") && o.Ref != ref("metric:m") || o.Metric != nil
	},
		func(o *catalog.Object) {
			edited++
			o.Description = "edited"
			switch {
			case o.Table != nil:
				o.Table.UpdateFrequency = "edited"
			case o.Column != nil:
				o.Column.Type = "edited"
			case o.Metric != nil:
				o.Metric.Unit = "edited"
			case o.Relationship != nil:
				o.Relationship.Usage = 99
			case o.Query != nil:
				o.Query.Question = "edited"
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	_, err = catalog.Restrict(s, func(*catalog.Object) bool { return true }, func(o *catalog.Object) {
		switch {
		case o.Metric != nil:
			o.Metric.Unit = "edited"
		case o.Query != nil:
			o.Query.Question = "edited"
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	after, err := json.Marshal(s.All())
	if err != nil || string(after) != string(before) {
		t.Errorf("the snapshot was changed (%v)\nfrom %s\nto   %s", err, before, after)
	}
	if edited == 0 {
		t.Error("nothing was edited")
	}
}

func TestAKeyGoesWithItsRelationship(t *testing.T) {
	s := build(t, table("a", []string{"id", "x"}, primary("id")), table("b", []string{"a", "c"}, all(key("a", "a", "id"), key("a c", "a", "id x"))))
	hidden := catalog.RelationshipRef("shop.b.a->shop.a")
	lookup(t, s, hidden)
	got, err := catalog.Restrict(s, func(o *catalog.Object) bool { return o.Ref != hidden }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := got.Lookup(hidden); ok {
		t.Error("the relationship was derived again")
	}
	keys := lookup(t, got, ref("b")).Table.ForeignKeys
	if len(keys) != 1 || !reflect.DeepEqual(keys[0].Columns, []string{"a", "c"}) {
		t.Errorf("the table's keys are %v, want the composite one", keys)
	}
	none, err := catalog.Restrict(s, func(o *catalog.Object) bool { return o.Relationship == nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if k := lookup(t, none, ref("b.a")).Column.ForeignKeys; len(k) != 0 || none.OfKind(catalog.KindRelationship).Len() != 0 {
		t.Errorf("without relationships the column points at %v", k)
	}
}

func TestASQLViewsStatementIsNeverShown(t *testing.T) {
	s := build(t, table("v", []string{"x"}, func(t *catalog.Table) { t.SQLView = "SELECT secret AS x FROM hidden" }))
	got, err := catalog.Restrict(s, func(*catalog.Object) bool { return true }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := lookup(t, got, ref("v")).Table.SQLView; v != "" {
		t.Errorf("it reads %s", v)
	}
}

func TestColumnsGoWithTheirTable(t *testing.T) {
	s := build(t, table("a", []string{"x"}, nil), table("b", []string{"y"}, nil))
	got, err := catalog.Restrict(s, func(o *catalog.Object) bool { return o.Ref != ref("a") }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := got.Lookup(ref("a.x")); ok || got.Len() != 2 {
		t.Errorf("%d objects are left", got.Len())
	}
	empty, err := catalog.Restrict(s, func(*catalog.Object) bool { return false }, nil)
	if err != nil || empty.Len() != 0 || len(empty.Databases()) != 0 {
		t.Errorf("of nothing, %v is left, %v", empty, err)
	}
}
