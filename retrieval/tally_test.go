package retrieval

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/catalog"
)

func TestATallyForgetsButNeverConfuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := new(tally)
		size := func(id uint32, form int) int { return int(id)%1000 + 7*form }
		for range rapid.IntRange(1, 60).Draw(t, "asked") {
			// Many come to the same places.
			id := uint32(rapid.IntRange(0, 3).Draw(t, "id")) + uint32(len(x))*uint32(rapid.SampledFrom([]int{0, 1, 2, 1 << 17}).Draw(t, "round"))
			form := rapid.IntRange(0, forms-1).Draw(t, "form")
			got, ok := x.tokens(countedOf(id, form), func() (int, bool) { return size(id, form), true })
			if !ok || got != size(id, form) {
				t.Fatalf("%d in form %d takes %d, %v; want %d", id, form, got, ok, size(id, form))
			}
			if again, _ := x.tokens(countedOf(id, form), func() (int, bool) { t.Fatal("computed again"); return 0, false }); again != got {
				t.Fatalf("%d and then %d", got, again)
			}
		}
	})
	if _, ok := new(tally).tokens(0, func() (int, bool) { return 3, false }); ok {
		t.Error("what cannot be computed has a size")
	}
}

func TestAnIDSetIsTheBitmapThatItWasMadeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "objects")
		ids := roaring.New()
		for _, id := range rapid.SliceOf(rapid.IntRange(0, max(0, n-1))).Draw(t, "ids") {
			if id < n {
				ids.Add(uint32(id))
			}
		}
		s := newIDSet(n, ids)
		for id := range uint32(n + 70) {
			if s.Contains(id) != ids.Contains(id) {
				t.Fatalf("%d is in the set: %v", id, s.Contains(id))
			}
		}
		from := rapid.IntRange(0, n).Draw(t, "from")
		r := catalog.Range{From: uint32(from), To: uint32(rapid.IntRange(from, n).Draw(t, "to"))}
		if got, want := s.count(r), int(ids.CardinalityInRange(uint64(r.From), uint64(r.To))); got != want {
			t.Fatalf("%d ids in %v, want %d", got, r, want)
		}
	})
}
