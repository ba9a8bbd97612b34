package retrieval

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAShortlistHoldsTheBestOfAllThatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOfN(rapid.IntRange(0, 50), rapid.SampledFrom([]int{0, 50, 1000}).Draw(t, "least"), 1500).Draw(t, "scores")
		var l shortlist
		var all []Scored
		for i, x := range scores {
			all = append(all, Scored{ID: uint32(i), Score: float64(x)})
			l.add(all[i])
		}
		slices.SortFunc(all, byScore)
		if want, got := all[:min(Candidates, len(all))], l.sorted(); len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
