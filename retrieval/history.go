package retrieval

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// The paper's bounds of what history counts.
const (
	halfLife     = 30 * 24 * time.Hour // of a past question's weight
	leastRuns    = 2
	mostPatterns = 1000 // of a database, the most executed first
)

// History knows what past questions were answered from. It is made for one snapshot and safe for concurrent use.
type History struct {
	snapshot *catalog.Snapshot
	dim      int
	patterns []pattern // by database, of each the most executed first
	codes    []code    // of the patterns' questions
	blocks   []uint64  // the vectors of those, see put
	sights   *Cache[[]byte]
}

// pattern is a past question that was run often enough.
type pattern struct {
	query    uint32
	database string
	count    int64
	last     time.Time
	touched  []uint32 // the tables and columns that it was answered from
}

// NewHistory reads the past queries of a snapshot and embeds their questions.
func NewHistory(ctx context.Context, s *catalog.Snapshot, e Embedder) (*History, error) {
	h := &History{snapshot: s, dim: e.Dim(), sights: NewCache(sightLimits, func(b []byte) int { return len(b) })}
	for _, o := range s.Objects(catalog.KindQuery) {
		if o.Query.Count < leastRuns {
			continue
		}
		p := pattern{query: o.ID, database: o.Query.Tables[0].Database, count: o.Query.Count, last: o.Query.LastRun}
		for _, r := range o.Names() {
			if id, ok := s.ID(r); ok {
				p.touched = append(p.touched, id)
			}
		}
		slices.Sort(p.touched)
		p.touched = slices.Compact(p.touched)
		h.patterns = append(h.patterns, p)
	}
	slices.SortStableFunc(h.patterns, func(a, b pattern) int {
		return cmp.Or(cmp.Compare(a.database, b.database), cmp.Compare(b.count, a.count), b.last.Compare(a.last))
	})
	h.codes = make([]code, len(h.patterns))
	h.blocks = make([]uint64, (len(h.patterns)+blockSize-1)/blockSize*h.dim)
	const batch = 256
	for from := 0; from < len(h.patterns); from += batch {
		some := h.patterns[from:min(from+batch, len(h.patterns))]
		texts := make([]string, len(some))
		for i, p := range some {
			texts[i] = s.Object(p.query).Query.Question
		}
		vectors, err := e.Embed(ctx, texts)
		if err == nil && (len(vectors) != len(texts) || slices.ContainsFunc(vectors, func(v []float32) bool { return len(v) != h.dim })) {
			err = fmt.Errorf("it gave other vectors than %d of length %d; check its configuration", len(texts), h.dim)
		}
		if err != nil {
			return nil, fmt.Errorf("history: embed past questions with %s: %w", e.Name(), err)
		}
		for i, v := range vectors {
			h.put(from+i, v)
		}
	}
	return h, nil
}

// Scores returns, by id, how much past questions speak for each table and column: the cosine of the question and the
// past question that was answered from it, times a weight that halves every 30 days since that was last run; of several
// the best (Eq. 2 of the paper), from 0 to 1. Only past questions count that the view lets be queried with their text, of
// each database the 1,000 of them that were run most often. One without a date is too old to count. The result is nil
// if there is none. question must come from the embedder that the history was made with.
func (h *History) Scores(question []float32, v acl.View, now time.Time) []float32 {
	if len(h.patterns) == 0 || v.Snapshot() != h.snapshot {
		return nil
	}
	asked, steps := codeOf(question)
	var best []float32
	var near [blockSize]float32
	for block, sees := range h.sight(v) {
		if sees == 0 {
			continue
		}
		h.cosines(asked, steps, block, &near)
		for ; sees != 0; sees &= sees - 1 {
			i := bits.TrailingZeros8(sees)
			if near[i] <= 0 {
				continue
			}
			if best == nil {
				best = make([]float32, h.snapshot.OfKind(catalog.KindColumn).To)
			}
			p := &h.patterns[block*blockSize+i]
			score := near[i]
			// The weight costs more than the rest and is at most 1, so it is left for last.
			for weighed, j := false, 0; j < len(p.touched); j++ {
				if score <= best[p.touched[j]] {
					continue
				}
				if !weighed {
					weighed = true
					score *= decay(now.Sub(p.last))
				}
				best[p.touched[j]] = max(best[p.touched[j]], score)
			}
		}
	}
	return best
}

func decay(age time.Duration) float32 {
	return float32(math.Exp2(-max(0, age.Hours()/halfLife.Hours())))
}

// sightLimits bound what a history remembers of views: a bit for each pattern.
var sightLimits = Limits{Age: 5 * time.Minute, Entries: 256, Bytes: 16 << 20}

// sight returns the patterns that count for a view: a byte for each block, a bit for each pattern.
func (h *History) sight(v acl.View) []byte {
	sees, _ := h.sights.Get(context.Background(), v.Key(), func(context.Context) ([]byte, error) {
		out := make([]byte, (len(h.patterns)+blockSize-1)/blockSize)
		seen := 0
		for i, p := range h.patterns {
			if i > 0 && p.database != h.patterns[i-1].database {
				seen = 0
			}
			if seen < mostPatterns && v.Queryable(p.query) && v.Raw(p.query) {
				out[i/blockSize] |= 1 << (i % blockSize)
				seen++
			}
		}
		return out, nil
	})
	return sees
}
