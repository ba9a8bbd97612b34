package local

import (
	"context"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// InRuns is New, or NewWith if there is an embedder, in segments of at least size objects.
func InRuns(s *catalog.Snapshot, e retrieval.Embedder, size int) (*Index, error) {
	return build(context.Background(), none(e), s, size)
}

// UpdateInRuns is Update for an index that InRuns made.
func (x *Index) UpdateInRuns(s *catalog.Snapshot, size int) (*Index, error) {
	return build(context.Background(), x, s, size)
}

// Own returns how many segments of a kind x has, and how many of them it does not share with other.
func (x *Index) Own(k catalog.Kind, other *Index) (own, all int) {
	shared := map[*segment]bool{}
	for _, p := range other.parts[k] {
		shared[p.segment] = true
	}
	for _, p := range x.parts[k] {
		if !shared[p.segment] {
			own++
		}
	}
	return own, len(x.parts[k])
}

// NearByAll is Near without the rough look at first.
func (x *Index) NearByAll(k catalog.Kind, question []float32, v acl.View) []retrieval.Near {
	parts, sees := x.asked(k, v)
	q, _ := newProbe(question)
	best := nearest{floor: retrieval.MinSimilarity}
	for _, p := range parts {
		for i, scale := range p.vectors.scales {
			if id := p.first + uint32(i); sees.queryable.has(id) {
				best.add(retrieval.Near{ID: id, Similarity: q.cosine(p.vectors.row(i), scale)})
			}
		}
	}
	return best.sorted()
}

// Vocabulary returns the words of x, in order.
func (x *Values) Vocabulary() []string {
	var out []string
	for i := range uint32(x.words.len()) {
		out = append(out, x.words.text(i))
	}
	return out
}

// Products returns the sums that tell which vectors are far from a question: as this processor computes them, as any
// does, and one by one.
func Products(question []float32, vectors [][]float32) (here, anywhere, plain []int32) {
	v := newVectors(len(question), len(vectors))
	for i, u := range vectors {
		if err := v.put(i, u); err != nil {
			panic(err)
		}
	}
	q, _ := newProbe(question)
	here, anywhere, plain = make([]int32, len(vectors)), make([]int32, len(vectors)), make([]int32, len(vectors))
	v.multiply(q, 0, here)
	v.multiplyLanes(q, 0, anywhere)
	for i := range plain {
		for d, x := range q.rough {
			plain[i] += int32(x) * int32(v.row(i)[d/8]>>(d%8*8)&0xff)
		}
	}
	return here, anywhere, plain
}
