package retrieval_test

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
)

// judgement is what a judge says by the names of things: "db", "db.table" or "db.table.column". What it lacks was not judged.
type judgement map[string]retrieval.Judged

func (j judgement) Judge(b *retrieval.Board) (out retrieval.Judgement) {
	for _, d := range b.Databases() {
		if _, ok := j[d.Name]; !ok {
			break
		}
		out.Databases = append(out.Databases, j[d.Name].Score)
	}
	s := b.View().Snapshot()
	for _, k := range []catalog.Kind{catalog.KindTable, catalog.KindColumn} {
		for _, o := range s.Objects(k) {
			x, ok := j[o.Ref.String()]
			if x.ID = o.ID; ok && k == catalog.KindTable {
				out.Tables = append(out.Tables, x)
			} else if ok {
				out.Columns = append(out.Columns, x)
			}
		}
	}
	return out
}

// verdict is always the same.
type verdict retrieval.Judgement

func (v verdict) Judge(*retrieval.Board) retrieval.Judgement { return retrieval.Judgement(v) }

// beside is an index beside which some objects are near to whatever is asked, by name.
type beside struct {
	retrieval.Index
	near  map[string]float64
	calls map[catalog.Kind]int
}

func (x *beside) Near(k catalog.Kind, _ []float32, v acl.View) (out []retrieval.Near) {
	x.calls[k]++
	for _, o := range v.Snapshot().Objects(k) {
		if similarity := x.near[o.Ref.String()]; similarity > 0 {
			out = append(out, retrieval.Near{ID: o.ID, Similarity: similarity / float64(x.calls[k])})
		}
	}
	slices.SortFunc(out, func(a, b retrieval.Near) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func list(s *catalog.Snapshot, scored []retrieval.Scored) []string {
	var out []string
	for _, x := range scored {
		out = append(out, s.Object(x.ID).Ref.String())
	}
	return out
}

func mustRank(t testing.TB, r *retrieval.Ranker, question string, v acl.View) retrieval.Ranking {
	t.Helper()
	out, err := r.Rank(t.Context(), question, v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAScoreIsTheWeightedSumOfMeaningJudgementAndHistory(t *testing.T) {
	d := new(draft).database("one", catalog.SQLite).table("a", "", "x").table("b", "", "y").table("d", "", "v").database("two", catalog.SQLite).table("c", "", "z")
	s := d.add(catalog.Object{Ref: catalog.QueryRef("q"), Query: &catalog.Query{
		Question: "plan", Count: 2, LastRun: today.AddDate(0, 0, -30), Tables: []catalog.Ref{catalog.TableRef("one", "", "b")}, Columns: []catalog.Ref{d.column("one.b.y")},
	}}).build(t)
	r := &retrieval.Ranker{
		Index:    &beside{local.New(s), map[string]float64{"one.a": 0.6, "two.c": 0.4, "one.a.x": 0.5}, map[catalog.Kind]int{}},
		Embedder: words(64), History: history(t, s, words(64)), Now: func() time.Time { return today },
		Judge: judgement{
			"one": {Score: 0.9}, "two": {Score: 0.2}, "one.a": {Score: 0.8, Given: 0.95}, "one.b": {Score: 0.5, Given: 0.6}, "one.a.x": {Score: 0.7},
		},
		Weights: retrieval.Weights{Embedding: 0.3, Reranker: 0.5, History: 0.2},
	}
	got := mustRank(t, r, "plan", acl.Everything(s))
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-5 {
			t.Errorf("%s has %f, want %f", what, got, want)
		}
	}
	table, column := func(x float64) float64 { return retrieval.Chance(catalog.KindTable, x) }, func(x float64) float64 { return retrieval.Chance(catalog.KindColumn, x) }
	scored := map[string]retrieval.Scored{}
	for _, x := range slices.Concat(got.Tables, got.Columns) {
		scored[s.Object(x.ID).Ref.String()] = x
	}
	near("table a, judged and near", scored["one.a"].Score, 0.3*table(0.6)+0.5*0.8)
	near("table a in its database", scored["one.a"].Own, 0.3*table(0.6)+0.5*0.95)
	near("table b, judged and asked for 30 days ago", scored["one.b"].Score, 0.5*0.5+0.2*0.5)
	near("table b in its database", scored["one.b"].Own, 0.5*0.6+0.2*0.5)
	near("table c, near only", scored["two.c"].Score, 0.3*table(0.4))
	near("column x, judged and near", scored["one.a.x"].Score, 0.3*column(0.5)+0.5*0.7)
	near("column y, asked for only", scored["one.b.y"].Score, 0.2*0.5)
	near("column z", scored["two.c.z"].Score, 0)
	if len(got.Databases) != 2 || got.Databases[0].Name != "one" {
		t.Fatalf("databases %v", got.Databases)
	}
	near("database one, by the best of its tables", got.Databases[0].Score, 0.3*table(0.6)+0.5*0.9+0.2*0.5)
	near("database two", got.Databases[1].Score, 0.3*table(0.4)+0.5*0.2)

	usual, explicit := r.With(r.Judge), r.With(r.Judge)
	usual.Weights, explicit.Weights = retrieval.Weights{}, retrieval.DefaultWeights
	usual.Index, explicit.Index = local.New(s), local.New(s)
	if a, b := mustRank(t, usual, "plan", acl.Everything(s)), mustRank(t, explicit, "plan", acl.Everything(s)); !reflect.DeepEqual(a, b) {
		t.Errorf("without weights %+v, with the default ones %+v", a, b)
	}
}

func TestTheMoreSimilarTheLikelier(t *testing.T) {
	for _, k := range catalog.Kinds {
		if x := retrieval.Chance(k, retrieval.MinSimilarity-0.001); x != 0 {
			t.Errorf("a %s of no similarity is needed with the probability %f", k, x)
		}
		for x, before := retrieval.MinSimilarity, 0.0; x <= 1; x += 0.01 {
			p := retrieval.Chance(k, x)
			if p <= before || p >= 1 {
				t.Errorf("a %s of the similarity %f is needed with the probability %f, one of less with %f", k, x, p, before)
			}
			before = p
		}
	}
	if a, b := retrieval.Chance(catalog.KindTable, 0.6), retrieval.Chance(catalog.KindColumn, 0.6); a <= b {
		t.Errorf("a table is as likely as a column, of which there are many: %f and %f", a, b)
	}
}

// What is asked of two databases; evidence puts zoo.animals and its name first.
func menagerie() *draft {
	return new(draft).
		database("zoo", catalog.SQLite).table("animals", "", "name", "weight").table("keepers", "", "name").table("cages", "", "size").
		database("school", catalog.SQLite).table("pupils", "", "name", "age").table("animals", "", "name")
}

func TestProbabilitiesOrderWhatIsJudgedAndEvidenceTheRest(t *testing.T) {
	s := menagerie().build(t)
	r := &retrieval.Ranker{Index: local.New(s)}
	const question = "weight of the animals by name of keepers"
	before := mustRank(t, r, question, acl.Everything(s))
	after := mustRank(t, r.With(judgement{
		"zoo": {Score: 0.1}, "school": {Score: 0.3}, "school.pupils": {Score: 0.01}, "zoo.cages": {Score: 0.02}, "school.pupils.age": {Score: 0.001}, "zoo.cages.size": {Score: 0.002},
	}), question, acl.Everything(s))
	if before.Databases[0].Name != "zoo" || after.Databases[0].Name != "school" || len(after.Databases) != 2 {
		t.Errorf("databases %v, judged %v", before.Databases, after.Databases)
	}
	for _, tt := range []struct {
		kind          string
		before, after []retrieval.Scored
		judged        []string
	}{
		{"tables", before.Tables, after.Tables, []string{"zoo.cages", "school.pupils"}},
		{"columns", before.Columns, after.Columns, []string{"zoo.cages.size", "school.pupils.age"}},
	} {
		rest := slices.DeleteFunc(list(s, tt.before), func(n string) bool { return slices.Contains(tt.judged, n) })
		if got, want := list(s, tt.after), slices.Concat(tt.judged, rest); !slices.Equal(got, want) {
			t.Errorf("%s %v, want %v", tt.kind, got, want)
		}
		if len(rest) < 3 {
			t.Errorf("evidence speaks for %v only", rest)
		}
		for _, x := range tt.after[len(tt.judged):] {
			if x.Score < 0 || x.Score > 1e-6 {
				t.Errorf("%s was not judged and has %g", s.Object(x.ID).Ref, x.Score)
			}
		}
	}
}

func TestDatabasesThatWereNotJudgedStandBelowInTheirOrder(t *testing.T) {
	s := menagerie().database("farm", catalog.SQLite).table("animals", "", "x").build(t)
	r := &retrieval.Ranker{Index: local.New(s)}
	const question = "weight and size of animals, by name of keepers"
	before := mustRank(t, r, question, acl.Everything(s)).Databases
	after := mustRank(t, r.With(verdict{Databases: []float64{1e-5}}), question, acl.Everything(s)).Databases
	for i := range before {
		if before[i].Name != after[i].Name || i > 0 && after[i].Score >= after[i-1].Score {
			t.Errorf("databases %v, of which the first was judged: %v", before, after)
		}
	}
	if len(before) != 3 {
		t.Errorf("only %v are ranked", before)
	}
}

func TestColumnsThatWereNotJudgedStandWithTheirDatabase(t *testing.T) {
	s := new(draft).database("aa", catalog.SQLite).table("t", "", "plan").
		database("zz", catalog.SQLite).table("t", "", "plan").table("u", "", "colour", "weight").build(t)
	r := &retrieval.Ranker{Index: local.New(s), Judge: verdict{}}
	columns := list(s, mustRank(t, r, "plan of colour and weight", acl.Everything(s)).Columns)
	if slices.Index(columns, "zz.t.plan") > slices.Index(columns, "aa.t.plan") {
		t.Errorf("columns %v", columns)
	}
}

func TestAmongVeryManyColumnsThoseStandOutThatMoreThanWordsSpeakFor(t *testing.T) {
	d := new(draft).database("db", catalog.SQLite)
	for i := range 9 {
		d.table("plan_"+string(rune('a'+i)), "", columnsNamed("plan", 130)...)
	}
	d.table("zoo", "", "judged", "near", "asked")
	s := d.add(catalog.Object{Ref: catalog.QueryRef("q"), Query: &catalog.Query{
		Question: "which of them", Count: 2, LastRun: today, Tables: []catalog.Ref{catalog.TableRef("db", "", "zoo")}, Columns: []catalog.Ref{d.column("zoo.asked")},
	}}).build(t)
	r := &retrieval.Ranker{
		Index:    &beside{local.New(s), map[string]float64{"db.zoo.near": 0.9}, map[catalog.Kind]int{}},
		Embedder: words(64), History: history(t, s, words(64)), Now: func() time.Time { return today },
		Judge: judgement{"db.zoo.judged": {Score: 1}}, Weights: retrieval.Weights{Embedding: 0.1, Reranker: 0.5, History: 0.4},
	}
	got := mustRank(t, r, "which of them is the plan", acl.Everything(s)).Columns
	if len(got) != retrieval.Candidates || !slices.Equal(list(s, got[:3]), []string{"db.zoo.judged", "db.zoo.asked", "db.zoo.near"}) {
		t.Errorf("%d columns, first %v", len(got), list(s, got[:min(3, len(got))]))
	}
}

func TestAJudgeThatNamesWhatIsNotThereChangesNothing(t *testing.T) {
	metric := catalog.Object{Ref: catalog.MetricRef("crops"), Metric: &catalog.Metric{Formula: "COUNT(*)", Sources: []catalog.Ref{catalog.TableRef("farm", "", "fields")}}}
	s := menagerie().database("farm", catalog.SQLite).table("fields", "", "crop").add(metric).build(t)
	v := compile(t, s, `{"version": 1, "principals": {"p": {"roles": ["r"]}}, "grants": [
		{"role": "r", "allow": ["*"], "actions": ["view", "query"]}, {"role": "r", "deny": ["zoo.keepers", "zoo.animals.weight"], "actions": ["view"]}]}`)
	id := func(ref catalog.Ref) retrieval.Judged {
		out, ok := s.ID(ref)
		if !ok {
			t.Fatalf("there is no %s", ref)
		}
		return retrieval.Judged{ID: out, Probability: 1, Given: 1, Score: 1}
	}
	d := menagerie()
	hidden, gone := id(catalog.TableRef("zoo", "", "keepers")), retrieval.Judged{ID: uint32(s.Len()), Score: 1}
	elsewhere, last := id(catalog.TableRef("farm", "", "fields")), retrieval.Judged{ID: math.MaxUint32, Score: 1}
	column := id(d.column("zoo.animals.name"))
	r := &retrieval.Ranker{Index: local.New(s)}
	for _, question := range []string{"animals in the zoo", "names of animals"} {
		want := mustRank(t, r.With(verdict{}), question, v)
		for name, j := range map[string]verdict{
			"hidden tables":                      {Tables: []retrieval.Judged{hidden}},
			"hidden columns":                     {Columns: []retrieval.Judged{id(d.column("zoo.animals.weight"))}},
			"columns of hidden tables":           {Columns: []retrieval.Judged{id(d.column("zoo.keepers.name"))}},
			"a database that nothing speaks for": {Tables: []retrieval.Judged{elsewhere}, Columns: []retrieval.Judged{id(catalog.ColumnRef("farm", "", "fields", "crop"))}},
			"no object":                          {Tables: []retrieval.Judged{gone, last}, Columns: []retrieval.Judged{gone, last}},
			"metrics":                            {Tables: []retrieval.Judged{id(metric.Ref)}, Columns: []retrieval.Judged{id(metric.Ref)}},
			"objects of the other kind":          {Tables: []retrieval.Judged{column}, Columns: []retrieval.Judged{id(catalog.TableRef("zoo", "", "animals"))}},
		} {
			if got := mustRank(t, r.With(j), question, v); !reflect.DeepEqual(got, want) {
				t.Errorf("a judge of %s ranks\n%+v, want\n%+v", name, got, want)
			}
		}
		if got := mustRank(t, r.With(verdict{Databases: make([]float64, 99)}), question, v); len(got.Databases) != len(want.Databases) {
			t.Errorf("a judge of 99 databases ranks %v", got.Databases)
		}
	}
}

func TestAnIndexAloneRanks(t *testing.T) {
	s := shop().build(t)
	r := &retrieval.Ranker{Index: local.New(s)}
	const question = "when did customers order a product"
	if got, want := mustRank(t, r, question, acl.Everything(s)), retrieval.Rank(question, local.New(s), acl.Everything(s)); !reflect.DeepEqual(got, want) || len(got.Tables) == 0 {
		t.Errorf("%+v and %+v", got, want)
	}
	b, err := r.Board(t.Context(), question, acl.Everything(s))
	if err != nil {
		t.Fatal(err)
	}
	if b.Meant(catalog.KindTable) != nil || b.AskedFor() != nil || b.Values() != nil || b.NameSimilarity("shop") != 0 || b.Similarity(catalog.KindTable, 0) != 0 {
		t.Error("an index alone knows more than words")
	}
}

func TestWithOnlyTheJudgeIsAnother(t *testing.T) {
	s := shop().build(t)
	r, err := local.NewRanker(t.Context(), s, embedder(t))
	if err != nil {
		t.Fatal(err)
	}
	r.Judge, r.Weights, r.Now = verdict{Databases: []float64{1}}, retrieval.Weights{Reranker: 1}, func() time.Time { return today }
	other := r.With(nil)
	if other.Judge != nil || r.Judge == nil {
		t.Errorf("judges %v and %v", r.Judge, other.Judge)
	}
	a, b := reflect.ValueOf(r).Elem(), reflect.ValueOf(other).Elem()
	for i := range a.NumField() {
		switch f := a.Type().Field(i); {
		case !f.IsExported() || f.Name == "Judge":
		case f.Name == "Now":
			if !other.Now().Equal(today) {
				t.Error("it is another day")
			}
		case a.Field(i).IsZero() || !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()):
			t.Errorf("%s is not taken over", f.Name)
		}
	}
}

func TestWhatIsOfAnotherSnapshotHasNoSay(t *testing.T) {
	s, other := clinic().build(t), menagerie().build(t)
	r := reader(t, s, embedder(t))
	want := mustRank(t, r, "doctor", acl.Everything(s))
	if got := mustRank(t, r, "doctor and animals", acl.Everything(other)); len(got.Tables) > 0 {
		t.Errorf("an index of another snapshot ranks %+v", got)
	}
	r.Index = local.New(other)
	if b, err := r.Board(t.Context(), "doctor when", acl.Everything(other)); err != nil || b.Meant(catalog.KindTable) != nil || b.AskedFor() != nil {
		t.Errorf("a lexicon of another snapshot says %v, %v", b.Meant(catalog.KindTable), err)
	}
	r.Index = local.New(s)
	if got := mustRank(t, r, "doctor", acl.Everything(s)); !reflect.DeepEqual(got, want) {
		t.Errorf("afterwards %+v, before %+v", got, want)
	}
}

func TestTheClausesOfAQuestionAreSearchedForTablesNotForColumns(t *testing.T) {
	s := menagerie().build(t)
	x := &beside{local.New(s), map[string]float64{"zoo.cages": 0.9, "zoo.cages.size": 0.9}, map[catalog.Kind]int{}}
	r := &retrieval.Ranker{Index: x, Embedder: words(16)}
	b, err := r.Board(t.Context(), "weight of animals, names of keepers", acl.Everything(s))
	if err != nil {
		t.Fatal(err)
	}
	want := map[catalog.Kind]int{catalog.KindTable: 3, catalog.KindMetric: 3, catalog.KindQuery: 3, catalog.KindColumn: 1, catalog.KindRelationship: 1}
	if !reflect.DeepEqual(x.calls, want) {
		t.Errorf("searched %v times, want %v", x.calls, want)
	}
	cages, _ := s.ID(catalog.TableRef("zoo", "", "cages"))
	if got := b.Similarity(catalog.KindTable, cages); got != 0.9 {
		t.Errorf("of three similarities that fall from 0.9, the table has %f", got)
	}
}

func TestPastQuestionsAboutOneOfManyAlikeSpeakForTheOneThatLeads(t *testing.T) {
	past := catalog.TableRef("shop", "", "events_20240105")
	s := dated().add(catalog.Object{Ref: catalog.QueryRef("q"), Query: &catalog.Query{Question: "xylophone", Count: 2, LastRun: today, Tables: []catalog.Ref{past}}}).build(t)
	r := &retrieval.Ranker{Index: local.New(s), Embedder: words(64), History: history(t, s, words(64)), Now: func() time.Time { return today }, Judge: verdict{}}
	if got := mustRank(t, r, "xylophone", acl.Everything(s)); first(s, got.Tables) != "shop.events_20240131" || got.Tables[0].Score < 0.99*retrieval.DefaultWeights.History {
		t.Errorf("%+v", got.Tables)
	}
}

func TestTheBestTablesOfADatabaseAreThoseOfAllInItsOrder(t *testing.T) {
	s := menagerie().build(t)
	b, err := (&retrieval.Ranker{Index: local.New(s)}).Board(t.Context(), "size and weight of keepers", acl.Everything(s))
	if err != nil {
		t.Fatal(err)
	}
	if best := list(s, b.Tables()); best[0] != "zoo.keepers" {
		t.Fatalf("%v: the best is not the last in order of name", best)
	}
	for place, d := range b.Databases() {
		var want []retrieval.Scored
		for _, x := range b.Tables() {
			if s.Object(x.ID).Ref.Database == d.Name {
				want = append(want, x)
				if b.Database(x.ID) != place {
					t.Errorf("%s is of database %d, want %d", s.Object(x.ID).Ref, b.Database(x.ID), place)
				}
			}
		}
		for most := range 5 {
			if got := b.TablesOf(place, most); len(got) != min(most, len(want)) || !slices.Equal(list(s, got), list(s, want[:len(got)])) {
				t.Errorf("the best %d of %s are %v, want %v", most, d.Name, list(s, got), list(s, want))
			}
		}
	}
}

func TestNothingFitsIsSaidOfWhatNeitherWordsNorMeaningsKnow(t *testing.T) {
	s := clinic().pad(40).build(t)
	for question, fits := range map[string][2]bool{ // by words alone, by all
		"customers of the clinic":                                     {true, true},
		"Which doctor treats most patients":                           {false, true},
		"Wie viele Kunden gibt es":                                    {false, true},
		"Zeige mir alle Kunden aus der Stadt":                         {false, true},
		"boiling point of tungsten":                                   {false, false},
		"Wie ist der Siedepunkt von Wolfram":                          {false, false},
		"prove that quantum gravity commutes with xylophones at noon": {false, false},
	} {
		for i, build := range []func(fataler, *catalog.Snapshot, int) system{newSystem, fullSystem} {
			c, err := build(t, s, 5000).linker.Link(t.Context(), question, acl.Everything(s))
			if err != nil || (c.Nothing == "") != fits[i] {
				t.Errorf("%q with meanings %v: %q, %v", question, i == 1, c.Nothing, err)
			}
			if c.Nothing != "" && !strings.Contains(c.Nothing, "of the question is known") {
				t.Errorf("%q: %s", question, c.Nothing)
			}
		}
	}
}
