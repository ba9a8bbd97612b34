package eval

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/schemagate/schemagate/catalog"
)

// write puts the lines of files into dir.
func write(t *testing.T, dir string, files map[string][]string) {
	t.Helper()
	for name, lines := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// zoo writes a set whose schema serves two sets of questions: those asked, and those of the past. Only the past knows
// that "residents" are animals.
func zoo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string][]string{
		"bird.schema.jsonl": {
			`{"db":"zoo","table":"animals","column":"name","sample_values":["Bo"]}`,
			`{"db":"zoo","table":"animals","column":"keeper","fk_to":["keepers.wage"]}`,
			`{"db":"zoo","table":"keepers","column":"wage"}`,
			`{"db":"zoo","table":"zebras","column":"stripes"}`,
		},
		"bird_now.questions.jsonl": {
			`{"id":"n1","db":"zoo","question":"residents","gold_tables":["animals"],"gold_columns":["animals.name"],"date":"2020-05-05 00:00:00","difficulty":"simple"}`,
			`{"id":"n2","db":"zoo","question":"wage of keepers","sql":"SELECT wage FROM keepers","gold_tables":["keepers"],"gold_columns":["keepers.wage"],"date":"2020-05-05 00:00:00","difficulty":"hard"}`,
		},
		"bird_past.questions.jsonl": {
			`{"id":"p1","db":"zoo","question":"all residents","sql":"SELECT name FROM animals","gold_tables":["Animals","animals","nowhere"],"gold_columns":["ANIMALS.name"],"date":"2020-06-06 00:00:00"}`,
			`{"id":"p2","db":"zoo","question":"pay","sql":"select  wage from keepers","gold_tables":["keepers"],"date":"2020-01-01 00:00:00"}`,
			`{"id":"p3","db":"zoo","question":"Wage of  keepers","gold_tables":["keepers"],"date":"2020-01-01 00:00:00"}`,
			`{"id":"p4","db":"zoo","question":"stripes","date":"2020-01-01 00:00:00"}`,
			`{"id":"p5","db":"elsewhere","question":"stripes","gold_tables":["zebras"],"date":"2020-01-01 00:00:00"}`,
		},
	})
	return dir
}

func measure(t *testing.T, set string, o Options) Report {
	t.Helper()
	r, err := Run(context.Background(), set, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHistoryAnswersWhatTheSchemaCannot(t *testing.T) {
	dir := zoo(t)
	if r := measure(t, "bird_now", Options{Bench: dir}); r.TableRecall["1"] != 50 || r.HistoryBefore != nil || r.Settings.History != "none" {
		t.Errorf("without history: recall@1 %v, before %v, settings %+v", r.TableRecall["1"], r.HistoryBefore, r.Settings)
	}
	r := measure(t, "bird_now", Options{Bench: dir, History: "bird_past"})
	if r.TableRecall["1"] != 100 || r.Settings.History != "bird_past" {
		t.Errorf("with history: recall@1 %v, settings %+v", r.TableRecall["1"], r.Settings)
	}
	if r.HistoryBefore == nil || r.HistoryBefore.TableRecall["1"] != 50 {
		t.Errorf("the past question is younger than the one it answers, but before: %+v", r.HistoryBefore)
	}
	// Of five past questions, two are asked again (in the same words, with the same statement), one has no gold and one
	// is about a database that the set does not have.
	if r.Settings.HistoryQuestions != 1 {
		t.Errorf("%d past queries, want 1", r.Settings.HistoryQuestions)
	}
}

func TestHistoryThatWasThereBeforeCounts(t *testing.T) {
	dir := zoo(t)
	past := filepath.Join(dir, "bird_past.questions.jsonl")
	data, err := os.ReadFile(past)
	if err != nil {
		t.Fatal(err)
	}
	older := strings.Replace(string(data), "2020-06-06", "2020-05-04", 1)
	for what, tt := range map[string]struct {
		text   string
		recall float64 // negative: no figure
	}{
		"the day before":     {older, 100},
		"at the same moment": {strings.Replace(string(data), "2020-06-06", "2020-05-05", 1), 50},
		"without a date":     {strings.Replace(older, `,"date":"2020-05-04 00:00:00"`, "", 1), -1},
	} {
		if err := os.WriteFile(past, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := measure(t, "bird_now", Options{Bench: dir, History: "bird_past"})
		switch {
		case (r.HistoryBefore == nil) != (tt.recall < 0):
			t.Errorf("%s: %+v", what, r.HistoryBefore)
		case r.HistoryBefore != nil && r.HistoryBefore.TableRecall["1"] != tt.recall:
			t.Errorf("%s: recall@1 %v, want %v", what, r.HistoryBefore.TableRecall["1"], tt.recall)
		}
	}
}

func TestEachMomentHasAViewOfItsOwn(t *testing.T) {
	m, err := newMaterial(context.Background(), "bird_now", nil, Options{Bench: zoo(t), History: "bird_past"}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := m.snapshot.ID(catalog.QueryRef("p1"))
	asked := m.asked[id]
	at, after := m.before(asked), m.before(asked.Add(time.Second))
	if at.Queryable(id) || !after.Queryable(id) || at.Key() == after.Key() {
		t.Errorf("seen when asked: %v, a second later: %v; keys %s and %s", at.Queryable(id), after.Queryable(id), at.Key(), after.Key())
	}
	if n := after.Queryables().GetCardinality(); n != uint64(m.snapshot.Len()) {
		t.Errorf("%d of %d objects are seen after all was asked", n, m.snapshot.Len())
	}
}

func TestAPastQuestionWasRunTwiceToday(t *testing.T) {
	m, err := newMaterial(context.Background(), "bird_now", nil, Options{Bench: zoo(t), History: "bird_past"}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	o, ok := m.snapshot.Lookup(catalog.QueryRef("p1"))
	if !ok {
		t.Fatal("there is no past query p1")
	}
	want := &catalog.Query{
		Question: "all residents", SQL: "SELECT name FROM animals", Count: 2, LastRun: o.Query.LastRun,
		Tables: []catalog.Ref{catalog.TableRef("zoo", "", "animals")}, Columns: []catalog.Ref{catalog.ColumnRef("zoo", "", "animals", "name")},
	}
	if !reflect.DeepEqual(o.Query, want) {
		t.Errorf("%+v, want %+v", o.Query, want)
	}
	if age := time.Since(o.Query.LastRun); age < 0 || age > 48*time.Hour {
		t.Errorf("last run %v", o.Query.LastRun)
	}
}

func TestDatabasesOfOneNameAreNotAlwaysTheSame(t *testing.T) {
	list := func(columns ...string) names {
		var out []catalog.Object
		for _, c := range columns {
			part := strings.Split(c, ".")
			out = append(out,
				catalog.Object{Ref: catalog.TableRef(part[0], "", part[1]), Table: &catalog.Table{}},
				catalog.Object{Ref: catalog.ColumnRef(part[0], "", part[1], part[2]), Column: &catalog.Column{}})
		}
		return newNames(out)
	}
	got := list("same.t.c", "less.t.c", "more.t.c", "more.t.d", "mine.t.c").alike(list("SAME.T.C", "less.t.c", "less.u.c", "more.t.c", "theirs.t.c"))
	for database, want := range map[string]bool{"same": true, "less": false, "more": false, "mine": false, "theirs": false} {
		if got[database] != want {
			t.Errorf("%s: %v", database, got[database])
		}
	}
}

func TestAnAblatedPartIsGone(t *testing.T) {
	dir := zoo(t)
	for _, tt := range []struct {
		part                   string
		relationships, queries int
		samples                int
	}{
		{"", 1, 3, 1}, {PartRelationships, 0, 3, 1}, {PartQueries, 1, 0, 1}, {PartValues, 1, 3, 0},
	} {
		m, err := newMaterial(context.Background(), "bird_now", nil, Options{Bench: dir, History: "bird_past", Ablate: tt.part}, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		s, samples := m.snapshot, 0
		for _, c := range s.Objects(catalog.KindColumn) {
			samples += len(c.Column.Samples)
		}
		// With nothing asked, no past question is left out for being asked again: p1, p2 and p3 have gold.
		if got := [...]int{s.OfKind(catalog.KindRelationship).Len(), s.OfKind(catalog.KindQuery).Len(), samples}; got != [...]int{tt.relationships, tt.queries, tt.samples} {
			t.Errorf("without %q: %v relationships, queries and samples", tt.part, got)
		}
	}
}

func TestColumnsThatAreNotSearchedAreStillFoundByTheirTables(t *testing.T) {
	dir := zoo(t)
	write(t, dir, map[string][]string{"bird_parts.questions.jsonl": {
		`{"id":"t","db":"zoo","question":"keepers","gold_tables":["keepers"],"gold_columns":["keepers.wage"]}`,
		`{"id":"c","db":"zoo","question":"wage","gold_tables":["keepers"],"gold_columns":["keepers.wage"]}`,
	}})
	if r := measure(t, "bird_parts", Options{Bench: dir}); r.TableRecall["1"] != 100 || r.ColumnRecall["10"] != 100 {
		t.Errorf("with columns: %v, %v", r.TableRecall, r.ColumnRecall)
	}
	if r := measure(t, "bird_parts", Options{Bench: dir, Ablate: PartColumns}); r.TableRecall["1"] != 50 || r.ColumnRecall["10"] != 50 || r.Settings.Columns != 4 || r.Settings.Ablated != PartColumns {
		t.Errorf("without: %v, %v, %+v", r.TableRecall, r.ColumnRecall, r.Settings)
	}
}

func TestTablesCanGoWithoutTheirDescriptions(t *testing.T) {
	table := catalog.Object{Ref: catalog.TableRef("zoo", "", "t"), Description: "animals", Synonyms: []string{"beasts"}, Table: &catalog.Table{}}
	column := catalog.Object{Ref: catalog.ColumnRef("zoo", "", "t", "c"), Description: "weight", Synonyms: []string{"mass"}, Column: &catalog.Column{}}
	got, found := without([]catalog.Object{table, column}, PartTableDescriptions)
	if !found || len(got) != 2 || got[0].Description != "" || got[0].Synonyms != nil || !reflect.DeepEqual(got[1], column) {
		t.Errorf("%v, %+v", found, got)
	}
	for _, only := range []catalog.Object{{Ref: table.Ref, Synonyms: table.Synonyms, Table: table.Table}, {Ref: table.Ref, Description: "animals", Table: table.Table}} {
		if _, found := without([]catalog.Object{only}, PartTableDescriptions); !found {
			t.Errorf("nothing to leave out of %+v", only)
		}
	}
	if _, found := without([]catalog.Object{{Ref: table.Ref, Table: table.Table}, column}, PartTableDescriptions); found {
		t.Error("found something to leave out of a table without descriptions")
	}
}

func TestWhatCannotBeMeasuredIsSaid(t *testing.T) {
	dir := zoo(t)
	write(t, dir, map[string][]string{
		"spider.schema.jsonl":          {`{"db":"zoo","table":"animals","column":"name"}`},
		"spider_other.questions.jsonl": {`{"id":"s","db":"zoo","question":"animals","gold_tables":["animals"]}`},
		"bird_empty.questions.jsonl":   {`{"id":"e","db":"zoo","question":"animals"}`},
	})
	for want, o := range map[string]Options{
		"its own history":                     {History: "bird_now"},
		"about a database of bird_now":        {History: "spider_other"}, // its zoo has fewer tables
		"no question with gold tables":        {History: "bird_empty"},
		"holds no metrics":                    {Ablate: PartMetrics},
		"holds no queries":                    {Ablate: PartQueries},
		`no part "moods" to leave out`:        {Ablate: "moods"},
		`no index "cloud"; name one of local`: {Index: "cloud"},
		`in their own language or in "de"`:    {Language: "fr"},
		`bird_now has no questions in "de"`:   {Language: German},
		"holds no table-descriptions":         {Ablate: PartTableDescriptions},
		"weights count only with a judge":     {Ablate: PartJudge, Weights: Weights{Embedding: 1}},
		"bm25 has no weights":                 {Index: BM25, Weights: Weights{Embedding: 1}},
	} {
		o.Bench = dir
		if _, err := Run(context.Background(), "bird_now", o, nil); !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Run(context.Background(), "bird_now", Options{Bench: dir, Index: Local}, nil); err != nil {
		t.Error(err)
	}
}

func TestMissesAreExplained(t *testing.T) {
	dir := t.TempDir()
	lines := []string{
		`{"db":"zoo","table":"animals","column":"name","description":"how it is called"}`,
		`{"db":"zoo","table":"keepers","column":"wage"}`,
		`{"db":"zoo","table":"food","column":"price"}`,
		`{"db":"zoo","table":"cages","column":"size"}`,
		`{"db":"zoo","table":"tours","column":"time"}`,
	}
	for _, table := range []string{"a", "b", "c", "d", "e"} {
		lines = append(lines, `{"db":"farm","table":"`+table+`","column":"x"}`)
	}
	write(t, dir, map[string][]string{"bird.schema.jsonl": lines})
	m, err := newMaterial(context.Background(), "bird", nil, Options{Bench: dir}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	id := func(database, table string) uint32 {
		id, ok := m.snapshot.ID(catalog.TableRef(database, "", table))
		if !ok {
			t.Fatalf("there is no table %s.%s", database, table)
		}
		return id
	}
	animals, keepers, food, cages, tours := id("zoo", "animals"), id("zoo", "keepers"), id("zoo", "food"), id("zoo", "cages"), id("zoo", "tours")
	farm := []uint32{id("farm", "a"), id("farm", "b"), id("farm", "c"), id("farm", "d"), id("farm", "e")}
	for _, tt := range []struct {
		what     string
		question string
		gold     map[uint32]bool
		ranked   []uint32
		want     []Miss
	}{
		{"found", "names", gold(animals), []uint32{food, cages, tours, keepers, animals}, nil},
		{"sixth, after another database", "the names of residents", gold(animals), append(farm, animals), []Miss{{otherDatabases: true}}},
		{"after others of its own", "called", gold(animals), []uint32{food}, []Miss{{noSharedWord: true, sameDatabaseAbove: true}}},
		{"not found at all", "wages", gold(keepers), nil, []Miss{{otherDatabases: true, noDescription: true}}},
		{"after the other gold table", "wages", gold(animals, keepers), []uint32{animals}, []Miss{{noDescription: true}}},
		{
			"one of many", "sizes", gold(animals, keepers, food, cages), []uint32{animals, keepers, food},
			[]Miss{{noDescription: true, manyGoldTables: true}},
		},
	} {
		if got := m.missed(tt.question, "ZOO", tt.gold, tt.ranked); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.what, got, tt.want)
		}
	}
	got := misses([]Outcome{{Missed: []Miss{{noSharedWord: true, manyGoldTables: true}, {manyGoldTables: true}}}, {}, {Missed: []Miss{{}}}})
	want := Misses{Tables: 3, Questions: 2, Causes: map[string]int{"no_shared_word": 1, "same_database_above": 0, "other_databases": 0, "no_description": 0, "many_gold_tables": 2}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Programs read this document, so that names may be added but none may go.
func TestTheDocumentKeepsItsNames(t *testing.T) {
	data, err := json.Marshal(measure(t, "bird_now", Options{Bench: zoo(t), History: "bird_past"}))
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"set", "questions", "skipped", "table_recall", "column_recall", "hit1", "mrr", "ndcg10", "map10", "localization", "exact_match",
		"strict_recall", "mean_columns", "mean_tokens", "latency_ms", "qps", "settings",
		"phases_ms", "intervals", "by_gold_tables", "by_difficulty", "misses", "history_before", "calibration",
	} {
		if doc[name] == nil {
			t.Errorf("%s is not in %s", name, data)
		}
		delete(doc, name)
	}
	if len(doc) > 0 {
		t.Errorf("not written down here: %v", doc)
	}
}

func TestThePageShowsEveryRunAndNeedsNothingElse(t *testing.T) {
	dir := zoo(t)
	with, without := measure(t, "bird_now", Options{Bench: dir, History: "bird_past"}), measure(t, "bird_now", Options{Bench: dir})
	c, err := Compare(with, without)
	if err != nil {
		t.Fatal(err)
	}
	with.Set = `<b>"odd"</b>`
	write(t, dir, map[string][]string{"bird_told.schema.jsonl": {`{"db":"zoo","table":"animals","column":"name","description":"of <i>residents</i>"}`},
		"bird_told.questions.jsonl": {`{"id":"1","db":"zoo","question":"residents","gold_tables":["animals"]}`}})
	s, _ := study(t, dir, "bird_told", Options{})
	tables := []Table{table(t, s, "2"), table(t, s, "figure5")}
	var page strings.Builder
	if err := (Results{Reports: []Report{with, without, measure(t, "bird_told", Options{Bench: dir, Index: BM25})}, Comparisons: []Comparison{c}, Tables: tables}).HTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"&lt;b&gt;&#34;odd&#34;&lt;/b&gt;", "history of 1 questions from bird_past", "<svg", "prefers-color-scheme: dark", "By difficulty", "&#43;50.0",
		"older than the one asked", "Exact McNemar test", "p = 1.000", "index bm25", "Table 2: What each type of object is worth",
		"n/a, without past queries: the catalog of bird_told holds no queries", "models embedder builtin-", "Expected calibration error", "tables, given their database",
		"Figure 5: When descriptions are missing", `<polyline class="line tables" points="86.5,`, "75% dropped", "</html>",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, not := range []string{"<b>", "<script", "http://", "https://", "NaN", "ZgotmplZ", "url("} {
		if strings.Contains(page.String(), not) {
			t.Errorf("the page holds %q", not)
		}
	}
}
