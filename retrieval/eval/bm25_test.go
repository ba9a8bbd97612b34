package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

func TestPlainWordsAreRunsOfLettersAndDigitsInLowerCase(t *testing.T) {
	for text, want := range map[string]string{
		"Table cards.First_Name": "table cards first name",
		"Größe, 12.5 m²; don't":  "größe 12 5 m don t",
		"acctNo":                 "acctno", // no abbreviation is spelt out, no compound taken apart
		"नमस्ते दुनिया":          "नमस्ते दुनिया",
		" -- ":                   "",
	} {
		if got := strings.Join(plainWords(text), " "); got != want {
			t.Errorf("%q reads %q, want %q", text, got, want)
		}
	}
}

func TestBM25IsAsByHand(t *testing.T) {
	c := newCollection()
	c.add(7, "red red fox")
	c.add(8, "blue fox in the snow")
	c.add(9, "snow")
	// Three documents of 3, 5 and 1 words, 3 on average.
	score := func(in, count, length float64) float64 {
		return math.Log(1+(3-in+0.5)/(in+0.5)) * count * 2.2 / (count + 1.2*(0.25+0.75*length/3))
	}
	for question, want := range map[string][]scored{
		"red":         {{7, score(1, 2, 3)}},
		"fox":         {{7, score(2, 1, 3)}, {8, score(2, 1, 5)}},
		"snow fox":    {{8, 2 * score(2, 1, 5)}, {9, score(2, 1, 1)}, {7, score(2, 1, 3)}},
		"red red fox": {{7, 2*score(1, 2, 3) + score(2, 1, 3)}, {8, score(2, 1, 5)}},
		"green":       {},
	} {
		got := c.best(plainWords(question), 3)
		slices.SortFunc(want, func(a, b scored) int { return int(math.Copysign(1, b.score-a.score)) })
		if !slices.EqualFunc(got, want, func(a, b scored) bool { return a.id == b.id && math.Abs(a.score-b.score) < 1e-12 }) {
			t.Errorf("%q finds %v, want %v", question, got, want)
		}
	}
	if got := c.best(plainWords("snow fox"), 1); len(got) != 1 || got[0].id != 8 {
		t.Errorf("the best one is %v", got)
	}
}

// pond is a catalog in which "water" stands in two of three tables' names and in one column's of four.
func pond(t *testing.T) *catalog.Snapshot {
	t.Helper()
	var objects []catalog.Object
	for _, name := range []string{"pond.water_level.metre", "pond.water_birds.wing", "pond.boats.owner", "quay.cranes.water_hours"} {
		part := strings.Split(name, ".")
		objects = append(objects,
			catalog.Object{Ref: catalog.TableRef(part[0], "", part[1]), Table: &catalog.Table{}},
			catalog.Object{Ref: catalog.ColumnRef(part[0], "", part[1], part[2]), Column: &catalog.Column{}})
	}
	s, err := catalog.Build([]catalog.Database{{Name: "pond", Dialect: catalog.SQLite}, {Name: "quay", Dialect: catalog.SQLite}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func shortNames(s *catalog.Snapshot, ids []uint32) string {
	var out []string
	for _, id := range ids {
		ref := s.Object(id).Ref
		out = append(out, strings.TrimSuffix(ref.Table+"."+ref.Column, "."))
	}
	return strings.Join(out, " ")
}

func TestABaselineRanksATableByTheBestOfItselfAndItsColumns(t *testing.T) {
	s := pond(t)
	for _, unified := range []bool{false, true} {
		x, err := newBaseline(s, unified)
		if err != nil {
			t.Fatal(err)
		}
		for question, want := range map[string][3]string{
			"owner": {"pond", "boats", "boats.owner"},             // said by a column only
			"boats": {"pond", "boats", "boats.owner"},             // said by both
			"hours": {"quay", "cranes", "cranes.water_hours"},     // in another database
			"moods": {"", "", ""},                                 // said by nothing
			"OWNER": {"pond", "boats", "boats.owner"},             // in any case
			"wing":  {"pond", "water_birds", "water_birds.wing"},  // with its table's other words in front
			"metre": {"pond", "water_level", "water_level.metre"}, // likewise
		} {
			f, err := x.search(context.Background(), question, acl.Everything(s))
			if err != nil {
				t.Fatal(err)
			}
			if f.database != want[0] || shortNames(s, f.tables) != want[1] || shortNames(s, f.columns) != want[2] || f.context != nil {
				t.Errorf("unified %v, %q: %s, tables %s, columns %s", unified, question, f.database, shortNames(s, f.tables), shortNames(s, f.columns))
			}
		}
	}
}

func TestTypesCompeteInOneCollectionOnly(t *testing.T) {
	s := pond(t)
	typed, err := newBaseline(s, false)
	if err != nil {
		t.Fatal(err)
	}
	unified, err := newBaseline(s, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(typed.collections) != len(catalog.Kinds) || len(unified.collections) != 1 || unified.depth != len(catalog.Kinds)*typed.depth {
		t.Errorf("%d and %d collections bring %d and %d documents each", len(typed.collections), len(unified.collections), typed.depth, unified.depth)
	}
	if n := len(unified.collections[0].ids); n != s.Len() {
		t.Errorf("the one collection holds %d of %d objects", n, s.Len())
	}
	typed.depth, unified.depth = 2, 2
	count := func(x *baseline) (tables, columns int) {
		f, err := x.search(context.Background(), "water level of birds", acl.Everything(s))
		if err != nil {
			t.Fatal(err)
		}
		return len(f.tables), len(f.columns)
	}
	if tables, columns := count(typed); tables != 2 || columns != 2 {
		t.Errorf("of two hits a type there are %d tables and %d columns", tables, columns)
	}
	if tables, columns := count(unified); tables > 2 || columns > 1 {
		t.Errorf("of two hits in all there are %d tables and %d columns", tables, columns)
	}
}

// What a baseline counts, it counts over the whole catalog.
func TestABaselineServesNoRestrictedView(t *testing.T) {
	m, err := newMaterial(context.Background(), "bird_now", nil, Options{Bench: zoo(t), History: "bird_past"}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	x, err := newBaseline(m.snapshot, false)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := m.snapshot.ID(catalog.QueryRef("p1"))
	for what, v := range map[string]acl.View{"one with less": m.before(m.asked[id]), "one that sees nothing": {}, "one of another catalog": acl.Everything(pond(t))} {
		if _, err := x.search(context.Background(), "animals", v); err == nil {
			t.Errorf("%s was served", what)
		}
	}
}

func TestABaselineIsMeasuredWithoutAContext(t *testing.T) {
	dir := zoo(t)
	for _, index := range []string{BM25, Unified, Vectors} {
		r := measure(t, "bird_now", Options{Bench: dir, Index: index})
		if r.Settings.Index != index || r.TableRecall["1"] != 50 || r.ColumnRecall["10"] != 50 || r.Contexts != nil || r.Phases != nil {
			t.Errorf("%s: recall %v and %v, contexts %v, phases %v, settings %+v", index, r.TableRecall, r.ColumnRecall, r.Contexts, r.Phases, r.Settings)
		}
		if text := r.Settings.String(); text != "index "+index {
			t.Errorf("the settings read %q", text)
		}
	}
	for want, o := range map[string]Options{
		"past queries would change nothing": {History: "bird_past"},
		"cannot go without":                 {Ablate: PartColumns},
		"and judge is no part of it":        {Ablate: PartJudge},
		"and vectors is no part of it":      {Ablate: PartVectors},
		"and lexicon is no part of it":      {Ablate: PartLexicon},
		"and value-search is no part of it": {Ablate: PartValueSearch},
		"has no weights":                    {Weights: Weights{Reranker: 1}},
	} {
		for _, o.Index = range []string{BM25, Unified, Vectors} {
			o.Bench = dir
			if _, err := Run(context.Background(), "bird_now", o, nil); !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", o.Index, err, want)
			}
		}
	}
}

func TestEqualScoresAreInTheOrderOfNames(t *testing.T) {
	if got := fmt.Sprint(byRank(map[uint32]float64{5: 1, 3: 1, 4: 2})); got != "[4 3 5]" {
		t.Errorf("%s", got)
	}
}
