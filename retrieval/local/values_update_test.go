package local_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval/local"
)

// TestUpdatedValuesAreThoseOfANewIndex changes catalogs in any way, several times in a row.
func TestUpdatedValuesAreThoseOfANewIndex(t *testing.T) {
	words := strings.Fields("Amador Amadr Amadora County Costa Contra Norte Hamilton the of new state color 2024 94107 Café")
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 3).Draw(t, "words"), " ")
	})
	drawn := rapid.Custom(func(t *rapid.T) []catalog.Object {
		ref := catalog.TableRef("db", "", rapid.SampledFrom([]string{"amador", "b", "c", "state", "z"}).Draw(t, "table"))
		objects := []catalog.Object{{Ref: ref, Table: &catalog.Table{}, Synonyms: rapid.SliceOfN(text, 0, 1).Draw(t, "synonyms")}}
		for i := range rapid.IntRange(0, 3).Draw(t, "columns") {
			c := catalog.Object{Ref: catalog.ColumnRef(ref.Database, "", ref.Table, fmt.Sprint(rapid.SampledFrom(words).Draw(t, "name"), i)), Column: &catalog.Column{Position: i}}
			c.Column.Samples, c.Column.Dictionary = rapid.SliceOfN(text, 0, 3).Draw(t, "samples"), rapid.SliceOfN(text, 0, 2).Draw(t, "dictionary")
			objects = append(objects, c)
		}
		return objects
	})
	shared := false
	rapid.Check(t, func(t *rapid.T) {
		tables := map[string][]catalog.Object{}
		var x *local.Values
		var before *catalog.Snapshot
		for range rapid.IntRange(2, 4).Draw(t, "snapshots") {
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				d := drawn.Draw(t, "table")
				if tables[d[0].Ref.Table] != nil && rapid.Bool().Draw(t, "gone") {
					delete(tables, d[0].Ref.Table)
				} else {
					tables[d[0].Ref.Table] = d
				}
			}
			var objects []catalog.Object
			for _, d := range tables {
				objects = append(objects, d...)
			}
			s, err := catalog.Build([]catalog.Database{{Name: "db", Dialect: catalog.SQLite}}, objects)
			if err != nil {
				t.Fatal(err)
			}
			question := "in " + text.Draw(t, "question") + " or '" + text.Draw(t, "more") + "'"
			fresh := local.NewValues(s)
			want := fresh.Find(question, acl.Everything(s))
			if x == nil {
				x, before = fresh, s
				continue
			}
			old := x.Find(question, acl.Everything(before))
			y := x.Update(s)
			if got := y.Find(question, acl.Everything(s)); !reflect.DeepEqual(got, want) {
				t.Fatalf("%q finds\n%v\nand in a new index\n%v", question, got, want)
			}
			if got, want := y.Vocabulary(), fresh.Vocabulary(); !slices.Equal(got, want) {
				t.Fatalf("it knows the words %q, and a new index %q", got, want)
			}
			if again := x.Find(question, acl.Everything(before)); !reflect.DeepEqual(again, old) {
				t.Fatalf("%q found %v before the update and %v after it", question, old, again)
			}
			shared = shared || len(old) > 0 && len(want) > 0
			x, before = y, s
		}
	})
	if !shared {
		t.Error("nothing was ever found before and after a change, so this test proves nothing")
	}
}

// One column of a large catalog has other values. The snapshot's own build is not in the time.
func BenchmarkUpdateValues(b *testing.B) {
	before := filled(100_000)
	x := local.NewValues(before)
	objects := slices.Clone(before.All())
	for i := range objects {
		if c := objects[i].Column; c != nil && i > len(objects)/2 {
			changed := *c
			changed.Samples = []string{"Kimera Zadovo", "never seen before"}
			objects[i].Column = &changed
			break
		}
	}
	s, err := catalog.Build(before.Databases(), objects)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		x.Update(s)
	}
}
