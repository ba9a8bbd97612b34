package retrieval_test

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// words embeds a text as the sum of vectors that are drawn for each of its words.
type words int

func (w words) Name() string { return fmt.Sprintf("words of %d", int(w)) }
func (w words) Dim() int     { return int(w) }

func (w words) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = w.one(text)
	}
	return out, nil
}

func (w words) one(text string) []float32 {
	v := make([]float32, int(w))
	for _, word := range strings.Fields(text) {
		h := fnv.New64a()
		h.Write([]byte(word))
		r := rand.New(rand.NewPCG(1, h.Sum64()))
		for i := range v {
			v[i] += float32(r.NormFloat64())
		}
	}
	if n := norm(v); n > 0 {
		for i := range v {
			v[i] /= float32(n)
		}
	}
	return v
}

func norm(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

func history(t fataler, s *catalog.Snapshot, e retrieval.Embedder) *retrieval.History {
	t.Helper()
	h, err := retrieval.NewHistory(context.Background(), s, e)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

var today = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// remembered is Eq. 2 of the paper taken word by word, over a catalog that holds nothing but what may be used.
func remembered(s *catalog.Snapshot, e words, question string) map[catalog.Ref]float64 {
	byDatabase := map[string][]catalog.Object{}
	for _, o := range s.Objects(catalog.KindQuery) {
		if o.Query.Count >= 2 {
			byDatabase[o.Query.Tables[0].Database] = append(byDatabase[o.Query.Tables[0].Database], o)
		}
	}
	out := map[catalog.Ref]float64{}
	asked := e.one(question)
	for _, list := range byDatabase {
		slices.SortStableFunc(list, func(a, b catalog.Object) int {
			return cmp.Or(cmp.Compare(b.Query.Count, a.Query.Count), b.Query.LastRun.Compare(a.Query.LastRun))
		})
		for _, o := range list[:min(1000, len(list))] {
			var cosine float64
			for i, x := range e.one(o.Query.Question) {
				cosine += float64(x) * float64(asked[i])
			}
			days := max(0, today.Sub(o.Query.LastRun).Hours()/24)
			for _, ref := range o.Names() {
				out[ref] = max(out[ref], cosine*math.Exp(-math.Ln2/30*days))
			}
		}
	}
	return out
}

func TestHistoryIsThePapersAndNothingHiddenIsInIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range w.int(0, 30) {
			w.query()
		}
		s, err := catalog.Build(w.databases, w.objects)
		if err != nil {
			t.Fatal(err)
		}
		v := compile(t, s, w.policy())
		pruned := onlyQueryable(t, v)
		e := words(w.int(16, 35))
		question := w.words(1, 6)
		got := history(t, s, e).Scores(e.one(question), v, today)
		bare := history(t, pruned, e).Scores(e.one(question), acl.Everything(pruned), today)
		want := remembered(pruned, e, question)
		at := func(scores []float32, id uint32) float32 {
			if scores == nil {
				return 0
			}
			return scores[id]
		}
		for id := uint32(0); id < s.OfKind(catalog.KindColumn).To; id++ {
			ref, score := s.Object(id).Ref, at(got, id)
			if diff := float64(score) - want[ref]; math.Abs(diff) > 0.02 {
				t.Errorf("%s has %f, and by the paper %f", ref, score, want[ref])
			}
			same := float32(0)
			if there, ok := pruned.ID(ref); ok {
				same = at(bare, there)
			}
			if score != same {
				t.Errorf("%s has %v, but %v in a catalog without what is hidden", ref, score, same)
			}
		}
	})
}

// asked is a catalog of databases of one table with four columns and so many past queries each, which all ask after the
// first column, save the last of them, which is about the second.
func asked(t testing.TB, databases, queries int, edit func(i int, q *catalog.Query)) *catalog.Snapshot {
	t.Helper()
	d := &draft{}
	var objects []catalog.Object
	for n := range databases {
		db := fmt.Sprintf("db%d", n)
		d.database(db, catalog.SQLite).table("t", "", "a", "b", "c", "d")
		for i := range queries {
			q := &catalog.Query{
				Question: fmt.Sprintf("how many of kind %d", i), Count: 2, LastRun: today,
				Tables: []catalog.Ref{catalog.TableRef(db, "", "t")}, Columns: []catalog.Ref{catalog.ColumnRef(db, "", "t", "a")},
			}
			if i == queries-1 {
				q.Question, q.Columns[0].Column = "the last question", "b"
			}
			if edit != nil {
				edit(i, q)
			}
			objects = append(objects, catalog.Object{Ref: catalog.QueryRef(fmt.Sprintf("%s %06d", db, i)), Query: q})
		}
	}
	s, err := catalog.Build(d.databases, append(d.objects, objects...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOnlyAThousandPastQuestionsOfADatabaseCount(t *testing.T) {
	const last = "the last question"
	for _, c := range []struct {
		name    string
		before  int // databases with a thousand of their own
		queries int
		policy  string
		edit    func(i int, q *catalog.Query)
		counts  bool
	}{
		{name: "the thousandth counts", queries: 1000, counts: true},
		{name: "the one after it does not", queries: 1001},
		{name: "other databases have their own thousand", before: 1, queries: 1000, counts: true},
		{name: "more runs come first", queries: 1001, counts: true, edit: func(i int, q *catalog.Query) {
			if i == 1000 {
				q.Count = 3
			}
		}},
		{name: "of equally many runs the later come first", queries: 1001, counts: true, edit: func(i int, q *catalog.Query) {
			if i < 1000 {
				q.LastRun = today.Add(-time.Hour)
			}
		}},
		{name: "one run is too few", queries: 1, edit: func(_ int, q *catalog.Query) { q.Count = 1 }},
		{name: "hidden ones take nobody's place", queries: 1001, counts: true, policy: `["query:db0 000000"]`},
	} {
		s := asked(t, 1+c.before, c.queries, c.edit)
		v := acl.Everything(s)
		if c.policy != "" {
			v = compile(t, s, `{"version": 1, "principals": {"p": {"roles": ["r"]}}, "grants": [
				{"role": "r", "allow": ["*"], "actions": ["view", "query"]}, {"role": "r", "deny": `+c.policy+`, "actions": ["view"]}]}`)
		}
		e := words(192)
		id, _ := s.ID(catalog.ColumnRef(fmt.Sprintf("db%d", c.before), "", "t", "b"))
		scores := history(t, s, e).Scores(e.one(last), v, today)
		if got := scores != nil && scores[id] > 0.99; got != c.counts {
			t.Errorf("%s: %v, want %v", c.name, got, c.counts)
		}
	}
}

func TestAPastQuestionIsWorthHalfAfterThirtyDays(t *testing.T) {
	for age, want := range map[time.Duration]float64{
		0: 1, 15 * 24 * time.Hour: math.Sqrt2 / 2, 30 * 24 * time.Hour: 0.5, 60 * 24 * time.Hour: 0.25, -time.Hour: 1,
	} {
		s := asked(t, 1, 1, func(_ int, q *catalog.Query) { q.LastRun = today.Add(-age) })
		e := words(192)
		scores := history(t, s, e).Scores(e.one("the last question"), acl.Everything(s), today)
		for _, ref := range []catalog.Ref{catalog.TableRef("db0", "", "t"), catalog.ColumnRef("db0", "", "t", "b")} {
			if id, _ := s.ID(ref); math.Abs(float64(scores[id])-want) > 1e-6 {
				t.Errorf("after %s, %s has %f, want %f", age, ref, scores[id], want)
			}
		}
	}
}

func TestTheTextOfAPastQuestionServesOnlyWhoMaySeeItsRows(t *testing.T) {
	s := asked(t, 1, 1, nil)
	e := words(192)
	h := history(t, s, e)
	for policy, want := range map[string]bool{
		``: true,
		`, "row_filters": [{"table": "db0.t", "roles": ["r"], "using": "a = 1"}]`: false,
		`, "masks": [{"column": "db0.t.d", "roles": ["r"], "with": "hash"}]`:      false,
		`, "row_filters": [{"table": "db0.t", "roles": ["r"], "using": "TRUE"}]`:  true,
	} {
		v := compile(t, s, `{"version": 1, "principals": {"p": {"roles": ["r"]}}, "grants": [
			{"role": "r", "allow": ["*"], "actions": ["view", "query"]}]`+policy+`}`)
		if got := h.Scores(e.one("the last question"), v, today) != nil; got != want {
			t.Errorf("with %q past questions serve: %v, want %v", policy, got, want)
		}
	}
	// Whoever makes views in another way than by policies is not trusted to have thought of it.
	all := roaring.New()
	all.AddRange(0, uint64(s.Len()))
	v := acl.NewView(acl.Principal{}, &acl.Compiled{Snapshot: s, Allowed: map[acl.Action]*roaring.Bitmap{acl.ActionView: all, acl.ActionQuery: all}})
	if h.Scores(e.one("the last question"), v, today) != nil {
		t.Error("the text of a past question served a view that may not see rows")
	}
}

func TestCosinesInStepsAreNear(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, dim := range []int{101, 192, 1024} {
		e := words(dim)
		for range 20 {
			a, b := fmt.Sprintf("x y z %d", r.IntN(1000)), fmt.Sprintf("x w %d", r.IntN(1000))
			s := asked(t, 1, 1, func(_ int, q *catalog.Query) { q.Question = a })
			scores := history(t, s, e).Scores(e.one(b), acl.Everything(s), today)
			want := 0.0
			for i, x := range e.one(a) {
				want += float64(x) * float64(e.one(b)[i])
			}
			got := float32(0)
			if scores != nil {
				got = scores[0]
			}
			if math.Abs(float64(got)-max(0, want)) > 0.01 {
				t.Errorf("in %d dimensions %q and %q have %f, want %f", dim, a, b, got, want)
			}
		}
	}
}

// faulty embeds all but the texts' number, or fails.
type faulty struct {
	words
	err error
}

func (f faulty) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.words.Embed(ctx, texts[1:])
}

func TestHistoryTrustsNoEmbedder(t *testing.T) {
	s := asked(t, 1, 3, nil)
	for _, e := range []faulty{{words: 4}, {words: 4, err: context.DeadlineExceeded}} {
		if _, err := retrieval.NewHistory(context.Background(), s, e); err == nil || !strings.Contains(err.Error(), "words of 4") {
			t.Errorf("got %v", err)
		}
	}
}

// A database has 1,000 past questions that count, and each touches three objects.
func BenchmarkHistory(b *testing.B) {
	for _, databases := range []int{1, 50} {
		s := asked(b, databases, 1000, func(i int, q *catalog.Query) {
			q.Columns = append(q.Columns, catalog.ColumnRef(q.Tables[0].Database, "", "t", string(rune('c'+i%2))))
		})
		e := words(192)
		h, v := history(b, s, e), acl.Everything(s)
		question := e.one("how many are there of kind 17")
		h.Scores(question, v, today)
		b.Run(fmt.Sprintf("%d patterns", 1000*databases), func(b *testing.B) {
			for b.Loop() {
				h.Scores(question, v, today)
			}
		})
	}
}
