package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// vectors holds a vector of length 1, or of zeros, for each of a run of objects. A dimension is a byte: a whole number
// from -127 to 127, with zero added. Eight of them make a word, the first lowest.
type vectors struct {
	width  int // words a vector takes, a multiple of blockWords
	words  []uint64
	scales []float32 // by object: what its whole numbers are multiplied by
	sums   []uint32  // by object: of its bytes
	texts  []mark    // by object: what its vector was made of
}

const zero = 128

// blockWords is how many words of a vector are scanned at once where the processor can.
const blockWords = 4

// mark tells texts apart.
type mark [16]byte

func newVectors(dim, n int) vectors {
	width := wordsOf(dim)
	return vectors{width, make([]uint64, n*width), make([]float32, n), make([]uint32, n), make([]mark, n)}
}

// wordsOf returns how many words a vector of so many dimensions takes.
func wordsOf(dim int) int { return (dim + 8*blockWords - 1) / (8 * blockWords) * blockWords }

func (v *vectors) row(i int) []uint64 { return v.words[i*v.width:][:v.width] }

// copy makes vector i the one that other has at j.
func (v *vectors) copy(i int, other *vectors, j int) {
	copy(v.row(i), other.row(j))
	v.scales[i], v.sums[i] = other.scales[j], other.sums[j]
}

var errNoNumber = errors.New("a vector holds what is no finite number")

// put makes vector i the one of whole numbers that points almost where u does.
func (v *vectors) put(i int, u []float32) error {
	longest := float64(largest(u))
	if math.IsNaN(longest) || math.IsInf(longest, 0) {
		return errNoNumber
	}
	row := v.row(i)
	square, total := 0, uint32(0)
	for d := range 8 * v.width {
		whole := 0
		if d < len(u) && longest > 0 {
			whole = rounded(float64(u[d]) / longest * 127)
		}
		square += whole * whole
		stored := uint64(zero + whole)
		row[d/8] |= stored << (d % 8 * 8)
		total += uint32(stored)
	}
	if v.sums[i] = total; square > 0 {
		v.scales[i] = float32(1 / math.Sqrt(float64(square)))
	}
	return nil
}

// rounded is math.Round for small numbers.
func rounded(x float64) int {
	n := int(x)
	switch rest := x - float64(n); {
	case rest >= 0.5:
		n++
	case rest <= -0.5:
		n--
	}
	return n
}

// largest returns the greatest absolute number, NaN if there is one.
func largest(u []float32) (m float32) {
	for _, x := range u {
		m = max(m, float32(math.Abs(float64(x))))
	}
	return m
}

// batch is how many texts an embedder gets at once.
const batch = 1 << 10

// unembedded is a segment without its vectors, and its objects.
type unembedded struct {
	objects []catalog.Object
	*segment
}

// embed gives segments their vectors. Equal texts are embedded once, and not at all if a segment of old knows them.
func embed(ctx context.Context, e retrieval.Embedder, segments []unembedded, old map[digest]*segment) error {
	at := map[mark]int{} // place in texts
	var texts []string
	for _, seg := range segments {
		seg.vectors = newVectors(e.Dim(), len(seg.objects))
		for i := range seg.objects {
			said := meaningOf(&seg.objects[i])
			sum := sha256.Sum256([]byte(said))
			m := mark(sum[:])
			if _, known := at[m]; !known {
				at[m] = len(texts)
				texts = append(texts, said)
			}
			seg.vectors.texts[i] = m
		}
	}
	all := newVectors(e.Dim(), len(texts))
	have := make([]bool, len(texts))
	for _, seg := range old {
		for i, m := range seg.vectors.texts {
			if n, wanted := at[m]; wanted && !have[n] {
				all.copy(n, &seg.vectors, i)
				have[n] = true
			}
		}
	}
	var missing []int
	for n := range texts {
		if !have[n] {
			missing = append(missing, n)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for some := range slices.Chunk(missing, batch) {
		g.Go(func() error {
			said := make([]string, len(some))
			for i, n := range some {
				said[i] = texts[n]
			}
			got, err := e.Embed(ctx, said)
			if err != nil {
				return err
			}
			if len(got) != len(said) {
				return fmt.Errorf("it gave %d vectors for %d texts", len(got), len(said))
			}
			for i, n := range some {
				if len(got[i]) != e.Dim() {
					return fmt.Errorf("it gave a vector of %d dimensions instead of %d", len(got[i]), e.Dim())
				}
				if err := all.put(n, got[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("local: embedding %d texts of the catalog with %s: %w", len(missing), e.Name(), err)
	}
	for _, seg := range segments {
		for i, m := range seg.vectors.texts {
			seg.vectors.copy(i, &all, at[m])
		}
	}
	return nil
}

// meaningOf returns the text that an object's vector is made of.
func meaningOf(o *catalog.Object) string {
	var sb strings.Builder
	describe(o, func(u use, s string) {
		if u&inMeaning != 0 && s != "" {
			if sb.Len() > 0 {
				sb.WriteByte('\n')
			}
			sb.WriteString(s)
		}
	})
	return sb.String()
}

// probe is a question's vector in the forms that scanning needs. Most vectors are far from it, which one of rough
// numbers, from -coarsest to coarsest, tells with few instructions.
type probe struct {
	rough []int8
	step  float64 // what a rough number is multiplied by
	less  int32   // what the zeros in a vector add to its sum
	slack float64 // how far a rough cosine can be off
	fine  []int32
	unit  float64 // what a fine number is multiplied by
	lanes lanes
}

const coarsest = 31

// lanes are the rough numbers in a form that ordinary instructions multiply four at a time: with middle added, four to
// a word and the first highest. Where such a word is multiplied with one of four bytes, the highest sixteen bits of the
// product are the sum of the four products: sums of at most 4*255*63 never reach beyond their sixteen bits.
type lanes struct{ even, odd []uint64 } // the rough numbers at even dimensions, and at odd ones

const middle = 32

func newLanes(rough []int8) lanes {
	l := lanes{make([]uint64, len(rough)/8), make([]uint64, len(rough)/8)}
	for d, x := range rough {
		list := l.even
		if d%2 == 1 {
			list = l.odd
		}
		list[d/8] |= uint64(middle+int(x)) << (48 - d%8/2*16)
	}
	return l
}

// newProbe returns false for a vector of zeros, which is similar to nothing, and for what is none.
func newProbe(question []float32) (*probe, bool) {
	var square float64
	for _, x := range question {
		square += float64(x) * float64(x)
	}
	longest := float64(largest(question)) / math.Sqrt(square)
	if !(square > 0) || math.IsInf(square, 0) {
		return nil, false
	}
	dims := 8 * wordsOf(len(question))
	p := &probe{rough: make([]int8, dims), fine: make([]int32, dims)}
	const finest = 1 << 20
	p.step, p.unit = longest/coarsest, longest/finest
	var off float64
	for d, x := range question {
		x := float64(x) / math.Sqrt(square)
		rough := math.Round(x / p.step)
		off += (x - rough*p.step) * (x - rough*p.step)
		p.rough[d], p.fine[d] = int8(rough), int32(math.Round(x/p.unit))
		p.less += zero * int32(rough)
	}
	p.slack = math.Sqrt(off) + 1e-5 // by Cauchy and Schwarz, since the vectors have length 1; and rounding
	p.lanes = newLanes(p.rough)
	return p, true
}

// Near implements retrieval.Index.
func (x *Index) Near(kind catalog.Kind, question []float32, v acl.View) []retrieval.Near {
	if x.embedder == nil || len(question) != x.embedder.Dim() {
		return nil
	}
	parts, sees := x.asked(kind, v)
	q, ok := newProbe(question)
	if len(parts) == 0 || !ok {
		return nil
	}
	visible := sees.queryable
	if kind == catalog.KindQuery {
		visible = sees.raw // which holds nothing but queryable objects
	}
	best := nearest{floor: retrieval.MinSimilarity}
	for _, p := range parts {
		p.near(q, visible, &best)
	}
	return best.sorted()
}

// scanned is how many vectors are multiplied in one go.
const scanned = 256

// near adds a part's visible objects that are similar enough to be among the best.
func (p part) near(q *probe, visible set, best *nearest) {
	var sums [scanned]int32
	for from := 0; from < len(p.vectors.scales); from += scanned {
		to := min(from+scanned, len(p.vectors.scales))
		p.vectors.multiply(q, from, sums[:to-from])
		for i, sum := range sums[:to-from] {
			i += from
			scale := p.vectors.scales[i]
			if float64(sum-q.less)*float64(scale)*q.step+q.slack < best.floor {
				continue
			}
			if id := p.first + uint32(i); visible.has(id) {
				best.add(retrieval.Near{ID: id, Similarity: q.cosine(p.vectors.row(i), scale)})
			}
		}
	}
}

// multiplyLanes is multiply for any processor.
func (v *vectors) multiplyLanes(q *probe, from int, sums []int32) {
	for i := range sums {
		sums[i] = q.lanes.sum(v.row(from+i)) - middle*int32(v.sums[from+i])
	}
}

// sum returns the sum of the products of a vector's bytes and lanes. Inlined, its loop would keep its variables in
// memory and take twice as long.
//
//go:noinline
func (l *lanes) sum(row []uint64) int32 {
	const low = 0x00ff00ff00ff00ff
	even, odd := l.even[:len(row)], l.odd[:len(row)]
	var sum uint64
	for i, w := range row {
		sum += (w&low)*even[i]>>48 + (w>>8&low)*odd[i]>>48
	}
	return int32(sum)
}

func (q *probe) cosine(row []uint64, scale float32) float64 {
	var sum int64
	for j, w := range row {
		for k, x := range q.fine[8*j:][:8] {
			sum += (int64(w>>(8*k)&0xff) - zero) * int64(x)
		}
	}
	return min(1, float64(sum)*float64(scale)*q.unit)
}

// nearest keeps the best of what is added to it.
type nearest struct {
	list  []retrieval.Near
	floor float64 // nothing below it gets in
}

func (n *nearest) add(x retrieval.Near) {
	if x.Similarity < n.floor {
		return
	}
	if n.list = append(n.list, x); len(n.list) == 4*retrieval.Candidates {
		n.sorted()
		n.floor = n.list[retrieval.Candidates-1].Similarity
	}
}

func (n *nearest) sorted() []retrieval.Near {
	slices.SortFunc(n.list, func(a, b retrieval.Near) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.ID, b.ID))
	})
	n.list = n.list[:min(retrieval.Candidates, len(n.list))]
	return n.list
}
