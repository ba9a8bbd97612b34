package retrieval_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
)

// counting counts how often an embedder is asked, and fails where it has an error.
type counting struct {
	retrieval.Embedder
	calls atomic.Int64
	err   error
}

func (c *counting) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	c.calls.Add(1)
	if c.err != nil {
		return nil, c.err
	}
	return c.Embedder.Embed(ctx, texts)
}

// embedder is the one that the binary carries.
func embedder(t testing.TB) retrieval.Embedder {
	t.Helper()
	m, err := models()
	if err != nil {
		t.Fatal(err)
	}
	return m.words
}

// reader is a ranker of words and a lexicon only.
func reader(t testing.TB, s *catalog.Snapshot, e retrieval.Embedder) *retrieval.Ranker {
	t.Helper()
	l, err := retrieval.NewLexicon(t.Context(), s, e)
	if err != nil {
		t.Fatal(err)
	}
	return &retrieval.Ranker{Index: local.New(s), Lexicon: l}
}

// meant returns the names of the objects of a kind that a word of a question is taken to mean, nearest first.
func meant(t testing.TB, r *retrieval.Ranker, v acl.View, k catalog.Kind, question, word string) []string {
	t.Helper()
	b, err := r.Board(t.Context(), question, v)
	if err != nil {
		t.Fatal(err)
	}
	terms, _ := b.Terms()
	at := slices.IndexFunc(terms, func(x retrieval.Term) bool { return x.Said == word })
	if at < 0 {
		t.Fatalf("%q is no term of %q", word, question)
	}
	return nearest(v.Snapshot(), b.Meant(k)[at])
}

func nearest(s *catalog.Snapshot, hits []retrieval.Hit) []string {
	hits = slices.Clone(hits)
	slices.SortStableFunc(hits, func(a, b retrieval.Hit) int { return int(1e6*b.Weight) - int(1e6*a.Weight) })
	var out []string
	for _, h := range hits {
		name := s.Object(h.ID).Ref.Table
		if c := s.Object(h.ID).Ref.Column; c != "" {
			name += "." + c
		}
		out = append(out, name)
	}
	return out
}

// clinic is a catalog of names that say what people say otherwise.
func clinic() *draft {
	return new(draft).database("clinic", catalog.SQLite).
		table("physician", "", "id*", "birthday", "pay").
		table("customer", "", "id*", "city").
		table("film", "", "title", "residence_tel")
}

func TestAWordThatMeansAboutTheSameFindsTheTableOrColumn(t *testing.T) {
	s := clinic().build(t)
	r := reader(t, s, embedder(t))
	for _, tt := range []struct {
		kind                 catalog.Kind
		question, word, want string
	}{
		{catalog.KindTable, "every doctor", "doctor", "physician"},
		{catalog.KindTable, "Wie viele Kunden gibt es", "kunden", "customer"},
		{catalog.KindTable, "the best movie", "movie", "film"},
		{catalog.KindColumn, "salary", "salary", "physician.pay"},
		{catalog.KindColumn, "Stadt", "stadt", "customer.city"},
		{catalog.KindColumn, "telephones", "telephones", "film.residence_tel"}, // which is read as phone
		{catalog.KindColumn, "addr", "addr", "film.residence_tel"},             // which is asked as address
	} {
		if got := meant(t, r, acl.Everything(s), tt.kind, tt.question, tt.word); len(got) == 0 || got[0] != tt.want {
			t.Errorf("%s means %v, want %s first", tt.word, got, tt.want)
		}
	}
	if got := meant(t, r, acl.Everything(s), catalog.KindTable, "xylophone prices in tungsten", "tungsten"); got != nil {
		t.Errorf("tungsten means %v", got)
	}
}

func TestWhatIsMeantIsRanked(t *testing.T) {
	s := clinic().build(t)
	r, err := reader(t, s, embedder(t)).Rank(t.Context(), "doctor", acl.Everything(s))
	if err != nil || first(s, r.Tables) != "clinic.physician" {
		t.Fatalf("%s comes first, %v", first(s, r.Tables), err)
	}
	e := r.Tables[0].Evidence[0]
	if e.Said != "doctor" || e.Where != retrieval.FieldMeaning || r.Coverage <= 0 {
		t.Errorf("%+v with coverage %f", e, r.Coverage)
	}
	said, _ := ranking(t, clinic(), "physician")
	if x := said.Tables[0].Score; x <= r.Tables[0].Score {
		t.Errorf("what is meant counts %f, what is said %f", r.Tables[0].Score, x)
	}
}

func TestAWordThatANameHoldsIsLeftToTheIndex(t *testing.T) {
	s := clinic().build(t)
	r := reader(t, s, embedder(t))
	for _, question := range []string{"customer", "customers"} {
		if got := meant(t, r, acl.Everything(s), catalog.KindTable, question, question); slices.Contains(got, "customer") {
			t.Errorf("%s means %v", question, got)
		}
	}
}

// angled embeds a word as a vector at an angle to that of "question", whose cosine it gives. What it does
// not know is zero.
type angled map[string]float32

func (a angled) Name() string { return "angled" }
func (a angled) Dim() int     { return 2 }

func (a angled) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, 2)
		if c, ok := a[text]; ok {
			out[i][0], out[i][1] = c, float32(math.Sqrt(1-float64(c*c)))
		}
	}
	return out, nil
}

func TestFewWordsStandForOneAndHiddenOnesTakeNoPlace(t *testing.T) {
	s := new(draft).database("db", catalog.SQLite).
		table("f", "", "x").table("e", "", "x").table("d", "", "x").table("c", "", "x").table("b", "", "x").table("a", "", "x").build(t)
	r := reader(t, s, angled{"question": 0.9999, "a": 0.95, "b": 0.9, "c": 0.8, "d": 0.7, "e": 0.6, "f": 0.2})
	for hide, want := range map[string]string{"db.x": "a b c d", "db.a": "b c d e", "db.c": "a b d e", "db.f": "a b c d", "db.a db.b db.c": "d e"} {
		v := compile(t, s, `{"version": 1, "principals": {"p": {"roles": ["r"]}}, "grants": [
			{"role": "r", "allow": ["*"], "actions": ["view", "query"]},
			{"role": "r", "deny": ["`+strings.ReplaceAll(hide, " ", `", "`)+`"], "actions": ["view"]}]}`)
		if got := strings.Join(meant(t, r, v, catalog.KindTable, "question", "question"), " "); got != want {
			t.Errorf("without %s, %s stand for the word, want %s", hide, got, want)
		}
	}
}

// Short forms of one word are equally near, so what else orders them decides which of them count.
func TestWhichShortFormsCountDoesNotDependOnWhatIsHidden(t *testing.T) {
	const policy = `{"version": 1, "principals": {"p": {"roles": ["r"]}}, "grants": [
		{"role": "r", "allow": ["*"], "actions": ["view", "query"]}, {"role": "r", "deny": ["db.a"], "actions": ["view"]}]}`
	short := []string{"transaction", "txn", "trx", "trans", "trn", "tran"}
	e := embedder(t)
	var before []string
	for _, hidden := range append([]string{"filler"}, short...) {
		s := new(draft).database("db", catalog.SQLite).table("a", "", hidden).table("b", "", short...).build(t)
		got := meant(t, reader(t, s, e), compile(t, s, policy), catalog.KindColumn, "purchase", "purchase")
		if len(got) != 4 || before != nil && !slices.Equal(got, before) {
			t.Errorf("beside a hidden %s, %v stand for purchase, and otherwise %v", hidden, got, before)
		}
		before = got
	}
}

func TestSynonymsOfAnObjectAreInItsName(t *testing.T) {
	d := clinic()
	for i, o := range d.objects {
		if o.Ref.Table == "film" && o.Table != nil {
			d.objects[i].Synonyms = []string{"client"}
		}
	}
	s := d.build(t)
	if got := meant(t, reader(t, s, embedder(t)), acl.Everything(s), catalog.KindTable, "kunden", "kunden"); !slices.Contains(got, "film") {
		t.Errorf("kunden means %v", got)
	}
}

func TestWhatAQuestionAsksForFindsColumns(t *testing.T) {
	s := new(draft).database("db", catalog.SQLite).table("t", "", "date", "age", "place", "person", "salary").build(t)
	r := reader(t, s, embedder(t))
	for question, want := range map[string]string{"when is it": "t.date", "how old are they": "t.age", "where is it": "t.place", "who is it": "t.person"} {
		b, err := r.Board(t.Context(), "salary, "+question, acl.Everything(s))
		if err != nil || len(b.AskedFor()) != 1 {
			t.Fatalf("%q asks for %v, %v", question, b.AskedFor(), err)
		}
		if got := nearest(s, b.AskedFor()[0]); !slices.Contains(got, want) {
			t.Errorf("%q asks for %v, want %s", question, got, want)
		}
	}
}

func TestWhatAQuestionAsksForIsNotHidden(t *testing.T) {
	s := new(draft).database("db", catalog.SQLite).table("t", "", "a", "b", "c", "d", "e", "f").build(t)
	r := reader(t, s, angled{"when": 0.9999, "a": 0.95, "b": 0.9, "c": 0.8, "d": 0.7, "e": 0.6, "f": 0.2})
	v := compile(t, s, `{"version": 1, "principals": {"p": {"roles": ["r"]}}, "grants": [
		{"role": "r", "allow": ["*"], "actions": ["view", "query"]}, {"role": "r", "deny": ["db.t.a"], "actions": ["view"]}]}`)
	b, err := r.Board(t.Context(), "salary when", v)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(nearest(s, b.AskedFor()[0]), " "); got != "t.b t.c t.d t.e" {
		t.Errorf("when asks for %s", got)
	}
}

func TestRememberedWordsGiveTheSameAnswer(t *testing.T) {
	s := clinic().build(t)
	e := &counting{Embedder: embedder(t)}
	r := reader(t, s, e)
	const question = "what salary has the doctor, and in which town"
	ask := func(q string) []string {
		return append(meant(t, r, acl.Everything(s), catalog.KindColumn, q, "salary"), meant(t, r, acl.Everything(s), catalog.KindTable, q, "doctor")...)
	}
	want := ask(question)
	for range 2 {
		before := e.calls.Load()
		if got := ask(question); !slices.Equal(got, want) || e.calls.Load() != before {
			t.Errorf("asked again, it means %v after %d calls; before, %v", got, e.calls.Load()-before, want)
		}
		// Words enough that what was remembered first is forgotten or moved.
		for i := range 40 {
			var b strings.Builder
			for j := range 250 {
				fmt.Fprintf(&b, "w%cx%cy%cz ", 'a'+i%26, 'a'+j%26, 'a'+j/26+13*(i/26))
			}
			if _, err := r.Board(t.Context(), b.String(), acl.Everything(s)); err != nil {
				t.Fatal(err)
			}
			if i < 20 {
				if got := ask(question); !slices.Equal(got, want) {
					t.Fatalf("between other words, it means %v; before, %v", got, want)
				}
			}
		}
		if got := ask(question); !slices.Equal(got, want) {
			t.Errorf("after other words, it means %v; before, %v", got, want)
		}
	}
}

func TestManyMayAskALexiconAtOnce(t *testing.T) {
	s := clinic().build(t)
	r := reader(t, s, embedder(t))
	questions := []string{"doctor", "every doctor and customer", "Kunden", "salary by town", "when was the movie"}
	want := make([]retrieval.Ranking, len(questions))
	fresh := reader(t, s, embedder(t))
	for i, q := range questions {
		want[i], _ = fresh.Rank(t.Context(), q, acl.Everything(s))
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i, q := range questions {
				if got, err := r.Rank(t.Context(), q, acl.Everything(s)); err != nil || !reflect.DeepEqual(got, want[i]) {
					t.Errorf("%q: %+v, %v; want %+v", q, got, err, want[i])
				}
			}
		})
	}
	all.Wait()
}

func TestAnEmbedderThatFailsIsNamedByWhatItWasAsked(t *testing.T) {
	s := clinic().build(t)
	fault := errors.New("the wire is cut")
	e := &counting{Embedder: embedder(t)}
	full, err := local.NewRanker(t.Context(), s, e)
	if err != nil {
		t.Fatal(err)
	}
	read := reader(t, s, e)
	e.err = fault
	for want, try := range map[string]func() error{
		"embedding the words of the catalog":  func() error { _, err := retrieval.NewLexicon(t.Context(), s, e); return err },
		"embedding the words of the question": func() error { _, err := read.Board(t.Context(), "doctor", acl.Everything(s)); return err },
		"embedding the question": func() error {
			_, err := (&retrieval.Ranker{Index: full.Index, Embedder: e}).Rank(t.Context(), "doctor", acl.Everything(s))
			return err
		},
	} {
		if err := try(); !errors.Is(err, fault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	late := &counting{Embedder: lateFault{embedder(t), fault, new(atomic.Int64)}}
	if _, err := retrieval.NewLexicon(t.Context(), s, late); !errors.Is(err, fault) || !strings.Contains(err.Error(), "embedding the names of databases") {
		t.Errorf("%v does not say that names of databases were embedded", err)
	}
}

// lateFault embeds once, then fails.
type lateFault struct {
	retrieval.Embedder
	err   error
	calls *atomic.Int64
}

func (l lateFault) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if l.calls.Add(1) > 1 {
		return nil, l.err
	}
	return l.Embedder.Embed(ctx, texts)
}
