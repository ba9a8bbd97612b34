package local_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
)

// fake gives each text a vector of its own: some with all dimensions alike, some with one that towers, some zero.
type fake struct{ dim int }

func (f fake) Name() string { return "fake" }
func (f fake) Dim() int     { return f.dim }

func (f fake) vector(text string) []float32 {
	h := fnv.New64a()
	h.Write([]byte(text))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	out := make([]float32, f.dim)
	shape := r.IntN(20)
	if shape == 0 {
		return out
	}
	var square float64
	for i := range out {
		out[i] = float32(r.NormFloat64())
		if i == 0 && shape < 4 {
			out[i] *= 20
		}
		square += float64(out[i]) * float64(out[i])
	}
	for i := range out {
		out[i] /= float32(math.Sqrt(square))
	}
	return out
}

func (f fake) Embed(_ context.Context, texts []string) ([][]float32, error) {
	var out [][]float32
	for _, t := range texts {
		out = append(out, f.vector(t))
	}
	return out, nil
}

// heard notes the texts that it is asked for.
type heard struct {
	fake
	mu    sync.Mutex
	texts []string
}

func (h *heard) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = append(h.texts, texts...)
	return h.fake.Embed(ctx, texts)
}

// answers is an embedder that answers as it is told.
type answers struct {
	fake
	vectors [][]float32
	err     error
}

func (a answers) Embed(context.Context, []string) ([][]float32, error) { return a.vectors, a.err }

func with(t testing.TB, s *catalog.Snapshot, e retrieval.Embedder) *local.Index {
	t.Helper()
	x, err := local.NewWith(context.Background(), s, e)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// many is a snapshot of a table with so many columns.
func many(t testing.TB, n int) *catalog.Snapshot {
	objects := []catalog.Object{table("t", "")}
	for i := range n {
		objects = append(objects, column(fmt.Sprintf("c%d", i), ""))
	}
	return build(t, objects...)
}

func TestNearIsTheCosineOfTheMeanings(t *testing.T) {
	for _, dim := range []int{13, 192} {
		s, e := many(t, 3000), fake{dim}
		x := with(t, s, e)
		for i := range 20 {
			question := e.vector(fmt.Sprintf("t\nc%d", i*2)) // that of a column
			if i%2 == 0 {
				question = e.vector(fmt.Sprint("question ", i))
			}
			zero := !slices.ContainsFunc(question, func(x float32) bool { return x != 0 })
			got := map[uint32]float64{}
			list := x.Near(catalog.KindColumn, question, acl.Everything(s))
			for _, n := range list {
				got[n.ID] = n.Similarity
			}
			floor := retrieval.MinSimilarity
			if len(list) == retrieval.Candidates {
				floor = list[len(list)-1].Similarity
			}
			if zero && len(list) > 0 {
				t.Errorf("%d are near a vector of zeros", len(list))
			}
			const off = 0.015 // what a byte a dimension may lose
			for j := range s.Objects(catalog.KindColumn) {
				o := &s.Objects(catalog.KindColumn)[j]
				var cosine float64
				for d, x := range e.vector("t\n" + o.Ref.Column) {
					cosine += float64(x) * float64(question[d])
				}
				n, near := got[o.ID]
				if near && math.Abs(n-cosine) > off || !near && cosine > floor+off {
					t.Errorf("dimension %d, question %d: %s is %.3f away, near %v at %.3f", dim, i, o.Ref, cosine, near, n)
				}
			}
		}
	}
}

func TestTheRoughLookLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := fake{rapid.SampledFrom([]int{1, 8, 13, 64}).Draw(t, "dimensions")}
		s := draw(t, numbers(t, "tables"))
		x, err := local.InRuns(s, e, rapid.IntRange(1, 40).Draw(t, "size"))
		if err != nil {
			t.Fatal(err)
		}
		question := e.vector(rapid.String().Draw(t, "question"))
		if !slices.ContainsFunc(question, func(x float32) bool { return x != 0 }) {
			return
		}
		v := drawView(t, s)
		for _, k := range []catalog.Kind{catalog.KindTable, catalog.KindColumn, catalog.KindMetric} {
			if got, want := x.Near(k, question, v), x.NearByAll(k, question, v); !slices.Equal(got, want) {
				t.Fatalf("%s\ngot  %v\nwant %v", k, got, want)
			}
		}
	})
}

func TestEveryProcessorMultipliesAlike(t *testing.T) {
	for _, dim := range []int{1, 7, 31, 32, 33, 64, 192, 1000} {
		e := fake{dim}
		var vectors [][]float32
		for i := range 300 {
			vectors = append(vectors, e.vector(fmt.Sprint("object ", i)))
		}
		ends := make([]float32, dim) // the greatest numbers that there are
		for i := range ends {
			ends[i] = 1 - 2*float32(i%2)
		}
		vectors = append(vectors, ends)
		for i := range 20 {
			question := e.vector(fmt.Sprint("question ", i))
			if i == 0 {
				question = ends
			}
			if !slices.ContainsFunc(question, func(x float32) bool { return x != 0 }) {
				continue
			}
			here, anywhere, plain := local.Products(question, vectors)
			if !slices.Equal(here, plain) || !slices.Equal(anywhere, plain) {
				t.Fatalf("%d dimensions, question %d: %v here, %v anywhere, and one by one %v", dim, i, here, anywhere, plain)
			}
		}
	}
}

func TestNearComesBestFirstAndEqualsInOrderOfID(t *testing.T) {
	var objects []catalog.Object
	for i := range 300 {
		objects = append(objects, table(fmt.Sprintf("t%03d", i), ""))
	}
	s := build(t, objects...)
	same := constant{fake{8}}
	list := with(t, s, same).Near(catalog.KindTable, same.vector(""), acl.Everything(s))
	if len(list) != retrieval.Candidates || list[0].Similarity < 0.9999 || list[0].Similarity > 1 {
		t.Fatalf("%d are near, the first %v", len(list), list[0])
	}
	for i, n := range list {
		if n.ID != uint32(i) {
			t.Fatalf("object %d comes at %d", n.ID, i)
		}
	}
	m := fake{13}
	s = many(t, 3000)
	list = with(t, s, m).Near(catalog.KindColumn, m.vector("question"), acl.Everything(s))
	if !slices.IsSortedFunc(list, func(a, b retrieval.Near) int {
		if a.Similarity > b.Similarity || a.Similarity == b.Similarity && a.ID < b.ID {
			return -1
		}
		return 1
	}) || len(list) != retrieval.Candidates {
		t.Errorf("%v", list)
	}
}

func TestNoCosineIsAboveOne(t *testing.T) {
	s := build(t, table("t", ""))
	for dim := range 40 {
		u := slices.Repeat([]float32{float32(1 / math.Sqrt(float64(dim+1)))}, dim+1)
		list := with(t, s, answers{fake: fake{dim + 1}, vectors: [][]float32{u}}).Near(catalog.KindTable, u, acl.Everything(s))
		if len(list) != 1 || list[0].Similarity > 1 || list[0].Similarity < 0.9999 {
			t.Errorf("dimension %d: %v", dim+1, list)
		}
	}
}

// constant gives every text one vector.
type constant struct{ fake }

func (c constant) vector(string) []float32 { return c.fake.vector("always") }

func (c constant) Embed(_ context.Context, texts []string) ([][]float32, error) {
	var out [][]float32
	for range texts {
		out = append(out, c.vector(""))
	}
	return out, nil
}

func TestWhatIsHiddenIsNotNearAndChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := fake{8}
		tables := numbers(t, "tables")
		few := tables[:rapid.IntRange(1, len(tables)).Draw(t, "visible")]
		all, part := draw(t, tables), draw(t, few)
		x, err := local.InRuns(all, e, 7)
		if err != nil {
			t.Fatal(err)
		}
		y, err := local.InRuns(part, e, 7)
		if err != nil {
			t.Fatal(err)
		}
		visible := func(o *catalog.Object) bool { _, ok := part.ID(o.Ref); return ok }
		v := view(all, "p", visible, visible)
		for _, k := range catalog.Kinds {
			got, want := x.Near(k, e.vector("question"), v), y.Near(k, e.vector("question"), acl.Everything(part))
			if len(got) != len(want) {
				t.Fatalf("%d are near, without what is hidden %d", len(got), len(want))
			}
			for i := range got {
				if all.Object(got[i].ID).Ref != part.Object(want[i].ID).Ref || got[i].Similarity != want[i].Similarity {
					t.Fatalf("at %d is %v, without what is hidden %v", i, got[i], want[i])
				}
			}
		}
	})
}

func TestTheTextOfAPastQueryServesOnlyWhoSeesItsRows(t *testing.T) {
	s := build(t, table("t", ""), catalog.Object{Ref: catalog.QueryRef("q"), Query: &catalog.Query{Question: "how much", Tables: []catalog.Ref{catalog.TableRef("db", "", "t")}}})
	e := constant{fake{8}}
	x := with(t, s, e)
	if list := x.Near(catalog.KindQuery, e.vector(""), view(s, "sees rows", all, all)); len(list) != 1 {
		t.Errorf("who sees rows finds %v", list)
	}
	if list := x.Near(catalog.KindQuery, e.vector(""), view(s, "sees no rows", all, none)); len(list) != 0 {
		t.Errorf("who sees no rows finds %v", list)
	}
}

func TestTextsThatAreEmbedded(t *testing.T) {
	tax := catalog.TableRef("db", "", "tax")
	fee := catalog.ColumnRef("db", "", "fee", "tax_id")
	id := catalog.ColumnRef("db", "", "tax", "id")
	s := build(t,
		catalog.Object{Ref: tax, Description: "what is owed", Synonyms: []string{"duty"}, Tags: []string{"tag"}, Table: &catalog.Table{}},
		catalog.Object{Ref: id, Description: "a number", Synonyms: []string{"key"}, Column: &catalog.Column{Samples: []string{"sample"}}},
		catalog.Object{Ref: catalog.TableRef("db", "", "fee"), Table: &catalog.Table{}},
		catalog.Object{Ref: fee, Column: &catalog.Column{}},
		catalog.Object{Ref: catalog.MetricRef("owed"), Description: "all of it", Metric: &catalog.Metric{Formula: "SUM(id)", Sources: []catalog.Ref{tax}}},
		catalog.Object{Ref: catalog.RelationshipRef("r"), Description: "ties", Relationship: &catalog.Relationship{From: []catalog.Ref{fee}, To: []catalog.Ref{id}}},
		catalog.Object{Ref: catalog.QueryRef("q"), Query: &catalog.Query{Question: "how much", SQL: "SELECT 1", Tables: []catalog.Ref{tax}}})
	h := &heard{fake: fake{8}}
	with(t, s, h)
	slices.Sort(h.texts)
	want := []string{"fee\ndb", "fee\ntax\nties", "fee\ntax_id", "how much", "owed\nall of it", "tax\ndb\nduty\nwhat is owed", "tax\nid\nkey\na number"}
	if !slices.Equal(h.texts, want) {
		t.Errorf("got  %q\nwant %q", h.texts, want)
	}
}

func TestEqualTextsAreEmbeddedOnceAndKnownOnesNeverAgain(t *testing.T) {
	h := &heard{fake: fake{8}}
	objects := func() []catalog.Object {
		var out []catalog.Object
		for i := range 500 {
			q := fmt.Sprint("question ", i%250)
			out = append(out, catalog.Object{Ref: catalog.QueryRef(fmt.Sprint(i)), Query: &catalog.Query{Question: q, Tables: []catalog.Ref{catalog.TableRef("db", "", "t")}}})
		}
		return append(out, table("t", ""))
	}
	x := with(t, build(t, objects()...), h)
	if len(h.texts) != 251 {
		t.Errorf("%d texts are embedded, want 251", len(h.texts))
	}
	h.texts = nil
	changed := objects()
	changed[7].Query.Question = "a new question"
	changed[8].Query.Count = 3
	s := build(t, changed...)
	y, err := x.Update(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(h.texts, []string{"a new question"}) {
		t.Errorf("after one question changed, %q are embedded", h.texts)
	}
	if list := y.Near(catalog.KindQuery, h.vector("a new question"), acl.Everything(s)); len(list) == 0 || s.Object(list[0].ID).Ref.Name != "7" {
		t.Errorf("the new question is near %v", list)
	}
}

func TestWhereThereAreNoVectorsNothingIsNear(t *testing.T) {
	s, e := many(t, 3), constant{fake{8}}
	x, question := with(t, s, e), e.vector("")
	other := many(t, 4)
	for name, got := range map[string][]retrieval.Near{
		"an index of words":     local.New(s).Near(catalog.KindColumn, question, acl.Everything(s)),
		"no view":               x.Near(catalog.KindColumn, question, acl.View{}),
		"another snapshot":      x.Near(catalog.KindColumn, question, acl.Everything(other)),
		"no kind":               x.Near(0, question, acl.Everything(s)),
		"no such kind":          x.Near(9, question, acl.Everything(s)),
		"another's vector":      x.Near(catalog.KindColumn, question[:7], acl.Everything(s)),
		"a vector of zeros":     x.Near(catalog.KindColumn, make([]float32, 8), acl.Everything(s)),
		"what is no number":     x.Near(catalog.KindColumn, slices.Repeat([]float32{float32(math.NaN())}, 8), acl.Everything(s)),
		"what is without bound": x.Near(catalog.KindColumn, slices.Repeat([]float32{float32(math.Inf(1))}, 8), acl.Everything(s)),
	} {
		if len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := x.Near(catalog.KindColumn, question, acl.Everything(s)); len(got) != 3 {
		t.Errorf("this test proves nothing: %v", got)
	}
}

func TestAnEmbedderThatFailsMakesNoIndex(t *testing.T) {
	s := build(t, table("t", ""))
	broken := errors.New("broken")
	for want, e := range map[string]answers{
		"broken":                       {err: broken},
		"0 vectors for 1 texts":        {},
		"of 7 dimensions instead of 8": {vectors: [][]float32{make([]float32, 7)}},
		"no finite number":             {vectors: [][]float32{slices.Repeat([]float32{float32(math.NaN())}, 8)}},
	} {
		e.fake = fake{8}
		x, err := local.NewWith(context.Background(), s, e)
		if x != nil || err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "fake") || e.err != nil && !errors.Is(err, e.err) {
			t.Errorf("%s: index %v, error %v", want, x != nil, err)
		}
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := local.NewWith(done, s, fake{8}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context is done: %v", err)
	}
}
