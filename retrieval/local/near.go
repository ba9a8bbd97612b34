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
	width  int // words a vector takes
	words  []uint64
	scales []float32 // by object: what its whole numbers are multiplied by
	sums   []uint32  // by object: of its bytes
	texts  []mark    // by object: what its vector was made of
}

const zero = 128

// mark tells texts apart.
type mark [16]byte

func newVectors(dim, n int) vectors {
	width := (dim + 7) / 8
	return vectors{width, make([]uint64, n*width), make([]float32, n), make([]uint32, n), make([]mark, n)}
}

func (v *vectors) row(i int) []uint64 { return v.words[i*v.width:][:v.width] }

// copy makes vector i the one that other has at j.
func (v *vectors) copy(i int, other *vectors, j int) {
	copy(v.row(i), other.row(j))
	v.scales[i], v.sums[i] = other.scales[j], other.sums[j]
}

var errNoNumber = errors.New("a vector holds what is no finite number")

// put makes vector i the one of whole numbers that points almost where u does.
func (v *vectors) put(i int, u []float32) error {
	longest, sum := float64(largest(u)), float64(0)
	if math.IsNaN(longest) || math.IsInf(longest, 0) {
		return errNoNumber
	}
	row := v.row(i)
	v.sums[i] = 0
	for d := range 8 * v.width {
		whole := 0.0
		if d < len(u) && longest > 0 {
			whole = math.Round(float64(u[d]) / longest * 127)
		}
		sum += whole * whole
		stored := uint64(zero + int(whole))
		row[d/8] |= stored << (d % 8 * 8)
		v.sums[i] += uint32(stored)
	}
	if sum > 0 {
		v.scales[i] = float32(1 / math.Sqrt(sum))
	}
	return nil
}

// largest returns the greatest absolute number, NaN if there is one.
func largest(u []float32) (m float32) {
	for _, x := range u {
		m = max(m, x, -x)
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

// probe is a question's vector in the forms that scanning needs. Most vectors are far from it, which a rough one tells
// with few instructions: numbers from -31 to 31, with middle added, four to a word and the first highest. Where such a
// word is multiplied with one of four bytes, the highest sixteen bits of the product are the sum of the four products:
// sums of at most 4*255*63 never reach beyond their sixteen bits.
type probe struct {
	even, odd []uint64 // the rough numbers at even dimensions, and at odd ones
	step      float64  // what a rough number is multiplied by
	less      int64    // what to take off a sum for the zeros and middles in it, but for the part that sums tells
	slack     float64  // how far a rough cosine can be off
	fine      []int32
	unit      float64 // what a fine number is multiplied by
}

const middle = 32

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
	width := (len(question) + 7) / 8
	p := &probe{even: make([]uint64, width), odd: make([]uint64, width), fine: make([]int32, 8*width)}
	const finest = 1 << 20
	step := longest / 31
	p.step, p.unit = step, longest/finest
	var off float64
	for d := range p.fine {
		x := 0.0
		if d < len(question) {
			x = float64(question[d]) / math.Sqrt(square)
		}
		rough := math.Round(x / step)
		off += (x - rough*step) * (x - rough*step)
		p.fine[d] = int32(math.Round(x / p.unit))
		stored := uint64(middle + int(rough))
		p.less += zero * int64(stored)
		list := p.even
		if d%2 == 1 {
			list = p.odd
		}
		list[d/8] |= stored << (48 - d%8/2*16)
	}
	p.less -= zero * middle * int64(len(p.fine))
	p.slack = math.Sqrt(off) + 1e-5 // by Cauchy and Schwarz, since the vectors have length 1; and rounding
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

// near adds a part's visible objects that are similar enough to be among the best.
func (p part) near(q *probe, visible set, best *nearest) {
	for i, scale := range p.vectors.scales {
		id := p.first + uint32(i)
		if !visible.has(id) {
			continue
		}
		row := p.vectors.row(i)
		if q.roughly(row, p.vectors.sums[i], scale)+q.slack >= best.floor {
			best.add(retrieval.Near{ID: id, Similarity: q.cosine(row, scale)})
		}
	}
}

// roughly returns a cosine to within slack. Inlined, its loop would keep its variables in memory and take twice as long.
//
//go:noinline
func (q *probe) roughly(row []uint64, total uint32, scale float32) float64 {
	const low = 0x00ff00ff00ff00ff
	even, odd := q.even[:len(row)], q.odd[:len(row)]
	var sum uint64
	for i, w := range row {
		sum += (w&low)*even[i]>>48 + (w>>8&low)*odd[i]>>48
	}
	return float64(int64(sum)-middle*int64(total)-q.less) * float64(scale) * q.step
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
