package boost

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// scorer finds the leaves that a row ends in without walking down the trees, where a processor guesses wrong at every
// other split. The leaves of a tree are numbered from left to right. A split that sends the row to the right rules out
// the leaves on its left; what is left of all that is where the row ends (Lucchese et al. 2015, QuickScorer).
type scorer struct {
	tests  [][]test  // by feature, the smallest threshold first
	leaves []float32 // of all trees
	first  []int32   // by tree: the first of its leaves
}

// test is a split. Values above the threshold rule out leaves of the tree, each of which has a bit.
type test struct {
	threshold float32
	tree      int32
	out       uint64
}

func newScorer(features int, trees []tree) scorer {
	s := scorer{tests: make([][]test, features)}
	for i := range trees {
		t, first := &trees[i], len(s.leaves)
		s.first = append(s.first, int32(first))
		var number func(at int16) uint64 // returns the leaves below
		number = func(at int16) uint64 {
			if at < 0 {
				s.leaves = append(s.leaves, t.leaves[-1-at])
				return 1 << (len(s.leaves) - 1 - first)
			}
			split := t.splits[at]
			left := number(split.left)
			s.tests[split.feature] = append(s.tests[split.feature], test{split.threshold, int32(i), left})
			return left | number(split.right)
		}
		if len(t.splits) == 0 {
			number(-1)
		} else {
			number(0)
		}
	}
	for _, tests := range s.tests {
		slices.SortStableFunc(tests, func(a, b test) int { return cmp.Compare(a.threshold, b.threshold) })
	}
	return s
}

// add adds the leaves that each of some rows ends in to a sum, in order of their trees. Rows that come together mostly
// have much in common, so what rules out leaves for all of them is done once.
func (s *scorer) add(sums []float32, row func(i int) []float32) {
	var some [2][256]uint64 // leaves that are ruled out, by tree: for all rows, and for one
	common, out := some[0][:], some[1][:]
	if n := len(s.first); n > len(common) {
		common, out = make([]uint64, n), make([]uint64, n)
	}
	common, out = common[:len(s.first)], out[:len(s.first)]
	type apart struct {
		feature int
		tests   []test
	}
	var few [64]apart
	differ := few[:0] // features by which rows differ
	for f, tests := range s.tests {
		if len(tests) == 0 {
			continue
		}
		least, most := float32(math.Inf(1)), float32(math.Inf(-1))
		for i := range sums {
			x := row(i)[f]
			if x != x { // no number is above any threshold
				x = float32(math.Inf(-1))
			}
			least, most = min(least, x), max(most, x)
		}
		n := 0
		for n < len(tests) && least > tests[n].threshold {
			common[tests[n].tree] |= tests[n].out
			n++
		}
		if n < len(tests) && most > tests[n].threshold {
			differ = append(differ, apart{f, tests[n:]})
		}
	}
	for i := range sums {
		copy(out, common)
		r := row(i)
		for _, d := range differ {
			x := r[d.feature]
			for j := range d.tests {
				t := &d.tests[j]
				if !(x > t.threshold) {
					break
				}
				out[t.tree] |= t.out
			}
		}
		sum := sums[i]
		for j, first := range s.first {
			sum += s.leaves[int(first)+bits.TrailingZeros64(^out[j])]
		}
		sums[i] = sum
	}
}
