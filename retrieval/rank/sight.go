package rank

import (
	"context"
	"math/bits"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// sight is what one view lets be queried, in a form in which counting is quick. It does not change once it is made.
type sight struct {
	words        []uint64 // a bit for each object
	before       []uint32 // by word: how many objects are in those before it
	named, alike []int32  // how many tables and columns bear a name, in all and in its own database; by the numbers of shape
}

var sightLimits = retrieval.Limits{Age: 5 * time.Minute, Entries: 256, Bytes: 64 << 20}

func (g *sight) bytes() int { return 8*len(g.words) + 4*(len(g.before)+len(g.named)+len(g.alike)) }

// sight returns what a view lets be queried; it is computed once a view.
func (sh *shape) sight(v acl.View) *sight {
	g, _ := sh.sights.Get(context.Background(), v.Key(), func(context.Context) (*sight, error) {
		return newSight(sh, v), nil
	})
	return g
}

func newSight(sh *shape, v acl.View) *sight {
	n := sh.s.Len()/64 + 1
	g := &sight{words: make([]uint64, n), before: make([]uint32, n), named: make([]int32, sh.names), alike: make([]int32, sh.namesHere)}
	for it := v.Queryables().Iterator(); it.HasNext(); {
		id := it.Next()
		g.words[id/64] |= 1 << (id % 64)
		if id < sh.columns.To {
			g.named[sh.nameOf[id]]++
			g.alike[sh.nameHereOf[id]]++
		}
	}
	for i, w := range g.words[:n-1] {
		g.before[i+1] = g.before[i] + uint32(bits.OnesCount64(w))
	}
	return g
}

// Contains reports whether an object may be queried.
func (g *sight) Contains(id uint32) bool { return g.words[id/64]>>(id%64)&1 == 1 }

// below counts the objects with smaller ids than one.
func (g *sight) below(id uint32) int {
	return int(g.before[id/64]) + bits.OnesCount64(g.words[id/64]&(1<<(id%64)-1))
}

// size returns how many of a range of objects may be queried.
func size(r catalog.Range, g *sight) int { return g.below(r.To) - g.below(r.From) }
