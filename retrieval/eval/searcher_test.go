package eval

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// town writes a set in which each question needs a part of the ranking: vectors, to know what a word means; the
// lexicon, to know it in a long question; the search for values, to tell those of the same words apart; and the judge,
// since sums of evidence do not count what that search finds.
func town(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string][]string{
		"bird.schema.jsonl": {
			`{"db":"town","table":"streets","column":"town","sample_values":["New Angeles","Los York"]}`,
			`{"db":"town","table":"lanes","column":"town","sample_values":["New York","Los Angeles"]}`,
			`{"db":"town","table":"cars","column":"price"}`,
			`{"db":"town","table":"poems","column":"verse"}`,
		},
		"bird_town.questions.jsonl": {
			`{"id":"meaning","db":"town","question":"automobiles","gold_tables":["cars"],"gold_columns":["cars.price"]}`,
			`{"id":"long","db":"town","question":"please tell me whatever you know about the automobiles that all of us were talking of during yesterday evening","gold_tables":["cars"]}`,
			`{"id":"value","db":"town","question":"town Los York","gold_tables":["streets"]}`,
			`{"id":"word","db":"town","question":"poems","gold_tables":["poems"]}`,
		},
	})
	return dir
}

func TestAPartOfTheRankingThatIsLeftOutIsMissed(t *testing.T) {
	dir := town(t)
	for part, want := range map[string]struct{ right, models string }{
		"":              {"meaning long value word", "embedder builtin-E, ranker trees-R"},
		PartJudge:       {"meaning long word", "embedder builtin-E"},
		PartVectors:     {"value word", "ranker trees-R"},
		PartLexicon:     {"meaning value word", "embedder builtin-E, ranker trees-R"},
		PartValueSearch: {"meaning long word", "embedder builtin-E, ranker trees-R"},
	} {
		r := measure(t, "bird_town", Options{Bench: dir, Ablate: part})
		var right []string
		for _, o := range r.Outcomes {
			if o.Hit1 == 1 {
				right = append(right, o.ID)
			}
		}
		if got := strings.Join(right, " "); got != want.right {
			t.Errorf("without %q, what is right is %q, want %q", part, got, want.right)
		}
		if got := unnamed(r.Settings.Models); got != want.models {
			t.Errorf("without %q there run %q, want %q", part, r.Settings.Models, want.models)
		}
		if (r.Calibration == nil) != (part == PartJudge) {
			t.Errorf("without %q the calibration is %v", part, r.Calibration)
		}
	}
	for index, want := range map[string]string{Vectors: "embedder builtin-E", BM25: none, Unified: none} {
		if r := measure(t, "bird_town", Options{Bench: dir, Index: index}); unnamed(r.Settings.Models) != want || r.Calibration != nil {
			t.Errorf("%s runs %q and is calibrated %v", index, r.Settings.Models, r.Calibration)
		}
	}
}

// unnamed takes the hashes out of the names of models.
func unnamed(models string) string {
	models = regexp.MustCompile(`builtin-\d+-[0-9a-f]{8}\b`).ReplaceAllString(models, "builtin-E")
	return regexp.MustCompile(`trees-[0-9a-f]{8}\b`).ReplaceAllString(models, "trees-R")
}

func TestWithoutValuesThereIsNoSearchForThemToLeaveOut(t *testing.T) {
	_, err := Run(t.Context(), "bird_town", Options{Bench: town(t), Ablate: PartValueSearch, NamesOnly: true}, nil)
	if !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), "holds no values") {
		t.Errorf("%v", err)
	}
}

func TestFiguresOnWhatAModelLearnedFromSaySo(t *testing.T) {
	dir := town(t)
	write(t, dir, map[string][]string{"bird_train.questions.jsonl": {`{"id":"1","db":"town","question":"poems","gold_tables":["poems"]}`}})
	for _, tt := range []struct {
		set, index string
		learned    bool
	}{{"bird_train", Local, true}, {"bird_train", Vectors, true}, {"bird_train", BM25, false}, {"bird_town", Local, false}} {
		s := measure(t, tt.set, Options{Bench: dir, Index: tt.index}).Settings
		if s.LearnedFrom != tt.learned || strings.Contains(s.Ran(), "learned from this set") != tt.learned || !strings.HasPrefix(s.Ran(), s.Models) {
			t.Errorf("%s, %s: %v, %q", tt.set, tt.index, s.LearnedFrom, s.Ran())
		}
	}
}

// likeness is an index of nothing but given likenesses, and an embedder that does not look at what it is given.
type likeness map[catalog.Kind][]retrieval.Near

func (l likeness) Name() string { return "likeness" }
func (l likeness) Dim() int     { return 1 }
func (l likeness) Embed(_ context.Context, texts []string) ([][]float32, error) {
	if len(texts) != 1 || texts[0] != "the question" {
		return nil, fmt.Errorf("asked to embed %q", texts)
	}
	return [][]float32{{1}}, nil
}

func (l likeness) Match(catalog.Kind, []retrieval.Term, acl.View) [][]retrieval.Hit {
	panic("words do not count")
}

func (l likeness) Near(k catalog.Kind, question []float32, _ acl.View) []retrieval.Near {
	if len(question) != 1 || question[0] != 1 {
		panic("another vector than that of the question")
	}
	return l[k]
}

func TestVectorsByThemselvesRankATableByTheBestOfItselfAndItsColumns(t *testing.T) {
	s := pond(t)
	id := func(ref catalog.Ref) uint32 {
		id, ok := s.ID(ref)
		if !ok {
			t.Fatalf("there is no %s", ref)
		}
		return id
	}
	l := likeness{
		catalog.KindTable: {
			{ID: id(catalog.TableRef("pond", "", "boats")), Similarity: 0.7},
			{ID: id(catalog.TableRef("pond", "", "water_level")), Similarity: 0.4},
		},
		catalog.KindColumn: {
			{ID: id(catalog.ColumnRef("quay", "", "cranes", "water_hours")), Similarity: 0.8},
			{ID: id(catalog.ColumnRef("pond", "", "water_level", "metre")), Similarity: 0.6},
			{ID: id(catalog.ColumnRef("pond", "", "boats", "owner")), Similarity: 0.5},
		},
	}
	f, err := (&nearest{s, l, l}).search(t.Context(), "the question", acl.Everything(s))
	if err != nil {
		t.Fatal(err)
	}
	if f.database != "quay" || shortNames(s, f.tables) != "cranes boats water_level" || shortNames(s, f.columns) != "cranes.water_hours water_level.metre boats.owner" || f.context != nil {
		t.Errorf("%s, tables %s, columns %s", f.database, shortNames(s, f.tables), shortNames(s, f.columns))
	}
	if f, err = (&nearest{s, likeness{}, likeness{}}).search(t.Context(), "the question", acl.Everything(s)); err != nil || f.database != "" || len(f.tables)+len(f.columns) > 0 {
		t.Errorf("where nothing is near: %+v, %v", f, err)
	}
}

// Unlike the other baselines this one is of an index that serves any view.
func TestVectorsByThemselvesFindOnlyWhatTheViewShows(t *testing.T) {
	m, err := newMaterial(t.Context(), "bird_town", nil, Options{Bench: town(t)}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	x, err := newNearest(t.Context(), m.snapshot)
	if err != nil {
		t.Fatal(err)
	}
	all, err := x.search(t.Context(), "automobiles", acl.Everything(m.snapshot))
	if err != nil || all.database != "town" || shortNames(m.snapshot, all.tables[:1]) != "cars" {
		t.Errorf("%+v, %v", all, err)
	}
	if f, err := x.search(t.Context(), "automobiles", acl.View{}); err != nil || len(f.tables)+len(f.columns) > 0 {
		t.Errorf("to who sees nothing: %+v, %v", f, err)
	}
}

func TestThePhasesMakeUpTheWhole(t *testing.T) {
	m, err := newMaterial(t.Context(), "bird_town", nil, Options{Bench: town(t)}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	x, err := newLinked(t.Context(), m.snapshot, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := x.search(t.Context(), "town Los York", acl.Everything(m.snapshot))
	if err != nil || len(f.phases) != 2 || f.phases[phaseRank] <= 0 || f.phases[phaseLink] <= 0 || f.phases[phaseRank]+f.phases[phaseLink] != f.took {
		t.Errorf("%v of %v, %v", f.phases, f.took, err)
	}
	// What is measured is what the product does.
	c, err := x.linker.Link(t.Context(), "town Los York", acl.Everything(m.snapshot))
	if err != nil || c.Tokens != f.context.tokens || fmt.Sprint(c.IDs(catalog.KindColumn)) != fmt.Sprint(f.context.columns) {
		t.Errorf("the linker gives %v columns in %d tokens, measured are %+v; %v", c.IDs(catalog.KindColumn), c.Tokens, *f.context, err)
	}
	r, err := x.ranker.Rank(t.Context(), "town Los York", acl.Everything(m.snapshot))
	if err != nil || fmt.Sprint(ids(r.Tables)) != fmt.Sprint(f.tables) || fmt.Sprint(ids(r.Columns)) != fmt.Sprint(f.columns) {
		t.Errorf("the ranker gives %v and %v, measured are %v and %v; %v", ids(r.Tables), ids(r.Columns), f.tables, f.columns, err)
	}
}
