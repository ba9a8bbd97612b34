// Package local is the embedded index: postings and vectors in memory, exact, with statistics of the visible set only.
//
// It is made of segments, each built from a run of neighbouring objects and nothing else. A segment says where its
// objects lie only relative to the first of them, so an index of the next snapshot shares those whose objects did not
// change, though their ids did.
package local

import (
	"context"
	"fmt"
	"hash/maphash"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// Index is an index over one snapshot. It is safe for concurrent use.
type Index struct {
	snapshot *catalog.Snapshot
	embedder retrieval.Embedder             // nil if there are no vectors
	seed     maphash.Seed                   // of the segments' dictionaries
	parts    [len(catalog.Kinds) + 1][]part // by kind, in id order
	scratch  sync.Pool                      // of *scratch
	mu       sync.Mutex
	sights   map[string]*sight // by the view's key
	order    []string          // keys of sights, oldest first
}

// part is a segment and its place in the snapshot.
type part struct {
	first uint32 // id of the first object
	*segment
}

// New indexes the words of a snapshot. Near finds nothing in it.
func New(s *catalog.Snapshot) *Index {
	x, err := build(context.Background(), none(nil), s, segmentSize)
	if err != nil {
		panic(err) // only embedding fails
	}
	return x
}

// NewWith indexes the words of a snapshot and, with the embedder, what its objects mean. It fails if the embedder does.
func NewWith(ctx context.Context, s *catalog.Snapshot, e retrieval.Embedder) (*Index, error) {
	return build(ctx, none(e), s, segmentSize)
}

// Update indexes another snapshot as x was made, with the same embedder if any. What has not changed since is taken
// from x, and texts that x knows are not embedded again. x stays as it is.
func (x *Index) Update(ctx context.Context, s *catalog.Snapshot) (*Index, error) {
	return build(ctx, x, s, segmentSize)
}

// none is an index of nothing, for build to start from.
func none(e retrieval.Embedder) *Index { return &Index{embedder: e, seed: maphash.MakeSeed()} }

// build makes an index as the previous one was made, in segments of at least size objects but for the last of each kind.
func build(ctx context.Context, previous *Index, s *catalog.Snapshot, size int) (*Index, error) {
	x := &Index{snapshot: s, embedder: previous.embedder, seed: previous.seed, sights: map[string]*sight{}}
	x.scratch.New = func() any { return new(scratch) }
	old := map[digest]*segment{}
	for _, parts := range previous.parts {
		for _, p := range parts {
			old[p.digest] = p.segment
		}
	}
	type job struct {
		objects []catalog.Object
		at      *part
	}
	var jobs []job
	for _, k := range catalog.Kinds {
		runs := cut(s, k, size)
		x.parts[k] = make([]part, len(runs))
		for i, objects := range runs {
			x.parts[k][i].first = objects[0].ID
			jobs = append(jobs, job{objects, &x.parts[k][i]})
		}
	}
	fresh := make([]*segment, len(jobs)) // by job; nil where an old one serves
	terms := sync.Pool{New: func() any { return map[string][]string{} }}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, j := range jobs {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			d := digestOf(j.objects)
			if known := old[d]; known != nil {
				j.at.segment = known
				return nil
			}
			known := terms.Get().(map[string][]string)
			fresh[i] = newSegment(j.objects, x.seed, known)
			terms.Put(known)
			fresh[i].digest = d
			j.at.segment = fresh[i]
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("local: indexing: %w", err)
	}
	if x.embedder == nil {
		return x, nil
	}
	for _, parts := range x.parts {
		for _, p := range parts {
			delete(old, p.digest)
		}
	}
	var wanted []unembedded
	for i, seg := range fresh {
		if seg != nil {
			wanted = append(wanted, unembedded{jobs[i].objects, seg})
		}
	}
	if err := embed(ctx, x.embedder, wanted, old); err != nil {
		return nil, err
	}
	return x, nil
}

// sight is what a view means for the index, in a form that is quick to ask.
type sight struct {
	queryable, raw set
	norms          [len(catalog.Kinds) + 1]norms // by kind
}

// set holds object ids, a bit for each that there is.
type set []uint64

func (s set) has(id uint32) bool { return int(id>>6) < len(s) && s[id>>6]>>(id&63)&1 == 1 }

// keptSights bounds how many views the index remembers. Each takes two bits an object, and 24 kB.
const keptSights = 256

// sight returns what a view means for the index; it is computed once a view.
func (x *Index) sight(v acl.View) *sight {
	x.mu.Lock()
	known := x.sights[v.Key()]
	x.mu.Unlock()
	if known != nil {
		return known
	}
	sees := &sight{queryable: make(set, x.snapshot.Len()/64+1), raw: make(set, x.snapshot.Len()/64+1)}
	for it := v.Queryables().Iterator(); it.HasNext(); {
		id := it.Next()
		sees.queryable[id>>6] |= 1 << (id & 63)
		if v.Raw(id) {
			sees.raw[id>>6] |= 1 << (id & 63)
		}
	}
	for _, k := range catalog.Kinds {
		sees.norms[k] = newNorms(averages(x.parts[k], sees))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if known := x.sights[v.Key()]; known != nil {
		return known
	}
	x.sights[v.Key()] = sees
	if x.order = append(x.order, v.Key()); len(x.order) > keptSights {
		delete(x.sights, x.order[0])
		x.order = x.order[1:]
	}
	return sees
}

// averages returns the mean lengths of the fields over the objects that have text in them which the view shows. One
// whose values are withheld counts like one without.
func averages(parts []part, sees *sight) (a [len(fieldWeights)]float64) {
	var sum, n [len(fieldWeights)]int
	for _, p := range parts {
		for i, l := range p.lengths {
			id := p.first + uint32(i)
			if !sees.queryable.has(id) {
				continue
			}
			for f, terms := range l {
				if terms > 0 && (retrieval.Field(f) != retrieval.FieldValue || sees.raw.has(id)) {
					sum[f] += int(terms)
					n[f]++
				}
			}
		}
	}
	for f := range a {
		if n[f] > 0 {
			a[f] = float64(sum[f]) / float64(n[f])
		}
	}
	return a
}

// asked returns a kind's parts and what the view means for them, or nothing for another snapshot's view.
func (x *Index) asked(k catalog.Kind, v acl.View) ([]part, *sight) {
	if k == 0 || int(k) >= len(x.parts) || v.Snapshot() != x.snapshot {
		return nil, nil
	}
	return x.parts[k], x.sight(v)
}
