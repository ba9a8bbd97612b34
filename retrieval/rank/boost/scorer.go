package boost

import (
	"cmp"
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

// add adds the leaves that a row ends in to a sum, in order of their trees.
func (s *scorer) add(sum float32, row []float32) float32 {
	var some [256]uint64
	out := some[:]
	if len(s.first) > len(out) {
		out = make([]uint64, len(s.first))
	}
	for f, tests := range s.tests {
		x := row[f]
		for i := range tests {
			t := &tests[i]
			if !(x > t.threshold) {
				break
			}
			out[t.tree] |= t.out
		}
	}
	for i, first := range s.first {
		sum += s.leaves[int(first)+bits.TrailingZeros64(^out[i])]
	}
	return sum
}
