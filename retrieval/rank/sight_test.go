package rank

import (
	"fmt"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// A sight counts by numbers and words of bits; here the same is counted object by object.
func TestASightCountsWhatItsViewShows(t *testing.T) {
	var databases []catalog.Database
	var objects []catalog.Object
	for d := range 3 {
		database := fmt.Sprint("d", d)
		databases = append(databases, catalog.Database{Name: database, Dialect: catalog.SQLite})
		for i := range 12 {
			table := fmt.Sprint([]string{"order", "Order_", "item"}[i%3], i/2)
			objects = append(objects, catalog.Object{Ref: catalog.TableRef(database, "", table), Table: &catalog.Table{}})
			for c, name := range []string{"id", []string{"Name", "name"}[i%2], fmt.Sprint("c", i)} {
				objects = append(objects, catalog.Object{Ref: catalog.ColumnRef(database, "", table, name), Column: &catalog.Column{Position: c}})
			}
		}
	}
	s, err := catalog.Build(databases, objects)
	if err != nil {
		t.Fatal(err)
	}
	seen := roaring.New()
	for id := range uint32(s.Len()) {
		if id%5 != 2 {
			seen.Add(id)
		}
	}
	v := acl.NewView(acl.Principal{}, &acl.Compiled{Snapshot: s, Allowed: map[acl.Action]*roaring.Bitmap{acl.ActionView: seen, acl.ActionQuery: seen}})
	sh := newShape(s)
	sc := &scene{shape: sh, visible: sh.sight(v)}
	for from := range uint32(s.Len()) {
		n := 0
		for to := from; to < uint32(s.Len()); to++ {
			if got := size(catalog.Range{From: from, To: to}, sc.visible); got != n {
				t.Fatalf("%d objects from %d to %d, not %d", got, from, to, n)
			}
			if sc.visible.Contains(to) != seen.Contains(to) {
				t.Fatalf("it contains %d: %v", to, sc.visible.Contains(to))
			}
			if seen.Contains(to) {
				n++
			}
		}
	}
	for _, o := range s.All() {
		if !seen.Contains(o.ID) {
			continue
		}
		all, here := 0, 0
		for _, other := range s.All() {
			if other.ID != o.ID && seen.Contains(other.ID) && other.Ref.Kind == o.Ref.Kind && strings.EqualFold(own(other.Ref), own(o.Ref)) {
				all++
				if other.Ref.Database == o.Ref.Database {
					here++
				}
			}
		}
		if a, h := sc.namesakes(&o); a != all || h != here {
			t.Errorf("%s has %d namesakes, %d in its database, not %d and %d", o.Ref, a, h, all, here)
		}
	}
}

func TestHitsSinceAnID(t *testing.T) {
	for n := range 20 {
		var hits []retrieval.Hit
		for i := range n {
			hits = append(hits, retrieval.Hit{ID: uint32(2 * i)})
		}
		for id := range uint32(2*n + 2) {
			got := since(hits, id)
			if want := max(0, n-int(id+1)/2); len(got) != want || want > 0 && got[0].ID != (id+1)/2*2 {
				t.Errorf("of %d hits, since %d: %v", n, id, got)
			}
		}
	}
}
