package local_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
)

// holding is a catalog of one table t whose columns hold values, written "column: value | value".
func holding(t testing.TB, columns ...string) *catalog.Snapshot {
	t.Helper()
	objects := []catalog.Object{table("t", "")}
	for _, c := range columns {
		name, values, _ := strings.Cut(c, ": ")
		objects = append(objects, column(name, "", strings.Split(values, " | ")...))
	}
	return build(t, objects...)
}

// named lists hits as "column=value" with the words that they were found by.
func named(s *catalog.Snapshot, hits []retrieval.ValueHit) map[string]retrieval.ValueHit {
	out := map[string]retrieval.ValueHit{}
	for _, h := range hits {
		r := s.Object(h.Column).Ref
		out[strings.TrimPrefix(r.Table+".", "t.")+r.Column+"="+h.Value] = h
	}
	return out
}

func TestValuesThatQuestionsName(t *testing.T) {
	s := holding(t, "county: Amador | Contra Costa | Los Angeles | Del Norte", "city: Los Angeles | Ione", "team: Los Angeles Lakers | Utah Jazz",
		"street: 12 Amador County Road | Main Street", "driver: Lewis Hamilton | Räikkönen, Kimi", "band: The Beatles | The Who",
		"drink: Crème brûlée | Coca-Cola | O'Brien's", "day: 2024-01-31 | 2024-02-01", "zip: 94107 | 10001 | 12", "state: IN | CA | TX", "sex: F | M",
		"status: on hold | new | open", "address: 阿马多尔县 | 北京市", "long: It was the best of times it was the worst of times and so on",
		"cut: A long story about…", "that: That", "month: May")
	x, v := local.NewValues(s), acl.Everything(s)
	for _, c := range []struct {
		name, question string
		want           []string // column=value
	}{
		{"one word", "schools in Amador", []string{"county=Amador"}},
		{"a word in small letters", "schools in amador", []string{"county=Amador"}},
		{"several words", "schools in Contra Costa", []string{"county=Contra Costa"}},
		{"a value of two columns", "who lives in Los Angeles?", []string{"county=Los Angeles", "city=Los Angeles"}},
		{"the longest value alone", "points of the Los Angeles Lakers", []string{"team=Los Angeles Lakers"}},
		{"other accents, case and punctuation", "who ordered creme brulee or COCA COLA?", []string{"drink=Crème brûlée", "drink=Coca-Cola"}},
		{"a possessive", "Amador's schools", []string{"county=Amador"}},
		{"an apostrophe within a word", "visits to O'Brien's", []string{"drink=O'Brien's"}},
		{"a part of a value", "what did Hamilton win?", []string{"driver=Lewis Hamilton"}},
		{"another order", "when did Kimi Raikkonen win?", []string{"driver=Räikkönen, Kimi"}},
		{"without the article", "songs by the Beatles", []string{"band=The Beatles"}},
		{"a letter changed", "schools in Amedor", []string{"county=Amador"}},
		{"a letter dropped", "schools in amadr", []string{"county=Amador"}},
		{"a letter added", "when did Hammilton win?", []string{"driver=Lewis Hamilton"}},
		{"neighbours swapped", "who plays for the Utah Jzaz", []string{"team=Utah Jazz"}},
		{"two letters of a long word", "what did Raikonnen win?", []string{"driver=Räikkönen, Kimi"}},
		{"one word of several misspelt", "schools in Contra Csota", []string{"county=Contra Costa"}},
		{"a date", "sales on 2024-01-31", []string{"day=2024-01-31"}},
		{"a number that is just that value", "trips in 94107 of 10000", []string{"zip=94107"}},
		{"a small number", "the 12 best", nil},
		{"a code in capitals", "people from CA or TX", []string{"state=CA", "state=TX"}},
		{"a code that is a word in small letters", "people in ca", nil},
		{"a letter in capitals", "people whose sex is F", []string{"sex=F"}},
		{"a letter in small letters", "people f", nil},
		{"words that every question has", "who is in the office", nil},
		{"the same with a capital within a sentence", "rain in May", []string{"month=May"}},
		{"the same in small letters", "what may rain", nil},
		{"the same in quotation marks", `songs by "The Who"`, []string{"band=The Who"}},
		{"a name that the column has too", "in which county and state", nil},
		{"a script without spaces", "阿马多尔县的学校", []string{"address=阿马多尔县"}},
		{"prose", "It was the best of times it was the worst of times and so on", nil},
		{"an ending that looks like a slip", "what is opened or opener", nil},
		{"the beginning of a value that was cut short", "a long story about", nil},
		{"a plural of a word that every question has", "thats", nil},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			hits := x.Find(c.question, v)
			got := named(s, hits)
			for _, w := range c.want {
				if _, ok := got[w]; !ok {
					t.Errorf("%q finds no %s", c.question, w)
				}
			}
			if len(hits) != len(c.want) {
				t.Errorf("%q finds %v, want %q", c.question, hits, c.want)
			}
			for _, h := range hits {
				if h.Quality <= 0 || h.Quality > 1 || h.Said != c.question[h.From:h.To] || h.Said == "" {
					t.Errorf("a hit reads %+v", h)
				}
			}
		})
	}
}

func TestTheBetterMatchHasTheHigherQuality(t *testing.T) {
	s := holding(t, "a: Amador", "b: Hamilton County", "c: 94107", "d: 2024-01-31", "e: closed", "kind: kind | blue", "f: Zarathustra")
	x := local.NewValues(s)
	quality := func(question, value string) float64 {
		t.Helper()
		h, ok := named(s, x.Find(question, acl.Everything(s)))[value]
		if !ok {
			t.Fatalf("%q does not find %s", question, value)
		}
		return h.Quality
	}
	if q := quality("schools in Amador", "a=Amador"); q != 1 {
		t.Errorf("a name that is equal has %v", q)
	}
	for _, c := range []struct{ better, worse, of string }{
		{"schools in Amador", "schools in Amadro", "a=Amador"},
		{"by Zarathusra", "by Zarathusa", "f=Zarathustra"},
		{"schools in Amador", "schools in amador", "a=Amador"},
		{"schools in Hamilton County", "schools in Hamilton", "b=Hamilton County"},
		{"in '94107'", "in 94107", "c=94107"},
		{"is it 'closed'", "is it closed", "e=closed"},
		{"which 'kind'", "which kind", "kind=kind"},
	} {
		if a, b := quality(c.better, c.of), quality(c.worse, c.of); a <= b {
			t.Errorf("%q has %v, %q has %v", c.better, a, c.worse, b)
		}
	}
	if number, date := quality("in 94107", "c=94107"), quality("on 2024-01-31", "d=2024-01-31"); number >= date || date >= 1 {
		t.Errorf("a number has %v, a date %v", number, date)
	}
	if own, other := quality("which kind", "kind=kind"), quality("which one is blue", "kind=blue"); own >= other {
		t.Errorf("a word that names a column has %v, another %v", own, other)
	}
}

func TestAHugeQuestionIsReadInNoTime(t *testing.T) {
	s := holding(t, "a: Amador")
	for _, part := range []string{"“", " 'a", "Amador ", "x"} {
		start := time.Now()
		local.NewValues(s).Find(strings.Repeat(part, 1<<20/len(part)), acl.Everything(s))
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%q a megabyte long takes %v", part, took)
		}
	}
}

func TestDictionariesAreSearchedLikeSamples(t *testing.T) {
	c := column("county", "", "Alameda", "Alpine")
	c.Column.Dictionary = []string{"Alameda", "Alpine", "Amador"}
	s := build(t, table("t", ""), c)
	for word, value := range map[string]string{"Amador": "Amador", "ALPINE": "Alpine"} {
		hits := local.NewValues(s).Find("schools in "+word, acl.Everything(s))
		if len(hits) != 1 || hits[0].Value != value || hits[0].Said != word {
			t.Errorf("%s finds %v", word, hits)
		}
	}
}

func TestAValueThatVeryManyColumnsHoldIsLeftOut(t *testing.T) {
	var columns []string
	for i := range 300 {
		columns = append(columns, fmt.Sprintf("c%d: Yes", i))
	}
	s := holding(t, append(columns, "d: Lyon")...)
	x := local.NewValues(s)
	if hits := x.Find("is it 'Yes' in Lyon", acl.Everything(s)); len(hits) != 1 || hits[0].Value != "Lyon" {
		t.Errorf("%d hits", len(hits))
	}
	few := view(s, "few", func(o *catalog.Object) bool { return o.Column == nil || o.Column.Position <= 3 }, all)
	if hits := x.Find("is it 'Yes' in Lyon", few); len(hits) != 3 {
		t.Errorf("who sees three of the columns gets %d hits", len(hits))
	}
}

func TestValuesServeOnlyWhoMaySeeAndQueryEveryRow(t *testing.T) {
	s := holding(t, "a: Amador", "b: Amador")
	x := local.NewValues(s)
	isB := func(o *catalog.Object) bool { return o.Ref.Column == "b" }
	for name, c := range map[string]struct {
		query, raw func(*catalog.Object) bool
		want       int
	}{
		"all rows of both": {all, all, 2}, "no rows": {all, none, 0}, "rows of one": {all, isB, 1}, "one column": {isB, all, 1},
	} {
		if hits := x.Find("schools in Amador", view(s, name, c.query, c.raw)); len(hits) != c.want {
			t.Errorf("%s: %v, want %d", name, hits, c.want)
		}
	}
	everything := roaring.New()
	everything.AddRange(0, uint64(s.Len()))
	looks := acl.NewView(acl.Principal{Name: "looks"}, &acl.Compiled{Snapshot: s, Raw: everything, Allowed: map[acl.Action]*roaring.Bitmap{acl.ActionView: everything}})
	if hits := x.Find("schools in Amador", looks); hits != nil {
		t.Errorf("who may query nothing finds %v", hits)
	}
	if hits := x.Find("schools in Amador", acl.View{}); hits != nil {
		t.Errorf("the view that sees nothing finds %v", hits)
	}
	other := holding(t, "a: Amador")
	if hits := x.Find("schools in Amador", acl.Everything(other)); hits != nil {
		t.Errorf("a view of another snapshot finds %v", hits)
	}
}

// TestValuesNobodyMaySeeChangeNothing compares what a view finds with what is found in a catalog that holds nothing else.
func TestValuesNobodyMaySeeChangeNothing(t *testing.T) {
	words := strings.Fields("Amador Amadr Amadora County Costa Contra Norte Hamilton Hammilton the of new state color colour colours F 2024 94107 7 Café Straße 北京")
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 4).Draw(t, "words"), rapid.SampledFrom([]string{" ", "-", ", "}).Draw(t, "between"))
	})
	seen := false
	rapid.Check(t, func(t *rapid.T) {
		objects := []catalog.Object{table("t", "")}
		sees, reads := map[string]bool{}, map[string]bool{}
		for i := range rapid.IntRange(1, 25).Draw(t, "columns") {
			c := column(fmt.Sprintf("%s_%d", strings.ReplaceAll(text.Draw(t, "name"), " ", "_"), i), "", rapid.SliceOfN(text, 0, 4).Draw(t, "samples")...)
			c.Column.Dictionary, c.Column.Position = rapid.SliceOfN(text, 0, 3).Draw(t, "dictionary"), i
			objects = append(objects, c)
			sees[c.Ref.Column] = rapid.IntRange(0, 3).Draw(t, "sees") > 0
			reads[c.Ref.Column] = rapid.IntRange(0, 3).Draw(t, "reads") > 0
		}
		s, err := catalog.Build([]catalog.Database{{Name: "db", Dialect: catalog.SQLite}}, objects)
		if err != nil {
			t.Fatal(err)
		}
		visible := func(o *catalog.Object) bool { return o.Column == nil || sees[o.Ref.Column] }
		v := view(s, "v", visible, func(o *catalog.Object) bool { return reads[o.Ref.Column] })
		alone, err := catalog.Restrict(s, visible, func(o *catalog.Object) {
			if o.Column != nil && !reads[o.Ref.Column] {
				o.Column.Samples, o.Column.Dictionary = nil, nil
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		question := rapid.SampledFrom([]string{"", "which ", "are there '"}).Draw(t, "begin") + text.Draw(t, "question") + rapid.SampledFrom([]string{" in ", "' or "}).Draw(t, "then") + text.Draw(t, "more")
		got := unnumbered(s, local.NewValues(s).Find(question, v))
		want := unnumbered(alone, local.NewValues(alone).Find(question, acl.Everything(alone)))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q finds\n%v\nand where the rest is gone\n%v", question, got, want)
		}
		seen = seen || len(got) > 1 && len(got) < len(local.NewValues(s).Find(question, acl.Everything(s)))
	})
	if !seen {
		t.Error("nothing was ever hidden that a question named, so this test proves nothing")
	}
}

// unnumbered writes hits with names instead of ids, in their order.
func unnumbered(s *catalog.Snapshot, hits []retrieval.ValueHit) []string {
	var out []string
	for _, h := range hits {
		ref := s.Object(h.Column).Ref
		h.Column = 0
		out = append(out, fmt.Sprintf("%s %+v", ref, h))
	}
	return out
}

// TestEveryValueIsFoundThatANaiveReadingFinds takes a question apart in every way.
func TestEveryValueIsFoundThatANaiveReadingFinds(t *testing.T) {
	words := strings.Fields("Amador County Costa Contra Norte Del Hamilton Ione")
	text := rapid.Custom(func(t *rapid.T) []string { return rapid.SliceOfN(rapid.SampledFrom(words), 1, 3).Draw(t, "words") })
	rapid.Check(t, func(t *rapid.T) {
		objects := []catalog.Object{table("t", "")}
		holders := map[string][]string{}
		for i := range rapid.IntRange(1, 8).Draw(t, "columns") {
			c := column(fmt.Sprintf("c%d", i), "")
			c.Column.Position = i
			for range rapid.IntRange(1, 3).Draw(t, "values") {
				value := strings.Join(text.Draw(t, "value"), " ")
				c.Column.Samples = append(c.Column.Samples, value)
				if !slices.Contains(holders[value], c.Ref.Column) {
					holders[value] = append(holders[value], c.Ref.Column)
				}
			}
			objects = append(objects, c)
		}
		s, err := catalog.Build([]catalog.Database{{Name: "db", Dialect: catalog.SQLite}}, objects)
		if err != nil {
			t.Fatal(err)
		}
		asked := text.Draw(t, "question")
		var want []string
		taken := make([]bool, len(asked))
		for n := len(asked); n > 0; n-- {
			for i := 0; i+n <= len(asked); i++ {
				value := strings.Join(asked[i:i+n], " ")
				if holders[value] == nil || slices.Contains(taken[i:i+n], true) {
					continue
				}
				from := len(strings.Join(asked[:i], " ")) + min(i, 1)
				for _, c := range holders[value] {
					want = append(want, fmt.Sprint(c, " ", value, " ", 3+from))
				}
				for j := i; j < i+n; j++ {
					taken[j] = true
				}
			}
		}
		var got []string
		for _, h := range local.NewValues(s).Find("in "+strings.Join(asked, " "), acl.Everything(s)) {
			if h.Quality == 1 {
				got = append(got, fmt.Sprint(s.Object(h.Column).Ref.Column, " ", h.Value, " ", h.From))
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%q finds %q, want %q", asked, got, want)
		}
	})
}

func TestAWordWithOneSlipFindsItsValue(t *testing.T) {
	words := strings.Fields("Amador Sacramento Hamilton Zarathustra Räikkönen Александр Liverpool Wuppertal")
	s := holding(t, "c: "+strings.Join(words, " | "))
	x := local.NewValues(s)
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom(words).Draw(t, "word")
		r := []rune(word)
		i := rapid.IntRange(1, len(r)-2).Draw(t, "at")
		switch rapid.IntRange(0, 3).Draw(t, "slip") {
		case 0:
			r = slices.Delete(r, i, i+1)
		case 1:
			r = slices.Insert(r, i, 'q')
		case 2:
			r[i] = 'q'
		case 3:
			r[i], r[i+1] = r[i+1], r[i]
		}
		hits := x.Find("in "+string(r), acl.Everything(s))
		if len(hits) != 1 || hits[0].Value != word {
			t.Fatalf("%s finds %v, want %s", string(r), hits, word)
		}
	})
}

// benchmarks is the directory of the benchmark data.
func benchmarks(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SCHEMAGATE_BENCH")
	if dir == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("SCHEMAGATE_BENCH is not set; it names the directory of the benchmark data")
		}
		t.Skip("SCHEMAGATE_BENCH is not set; it names the directory of the benchmark data")
	}
	return dir
}

func loaded(t *testing.T, source string) *catalog.Snapshot {
	t.Helper()
	s, err := ingest.Load(t.Context(), []string{source}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// compared finds a column that a statement compares with a text, and the text.
var compared = regexp.MustCompile(`(?i)(\w+)\s*(?:=|!=|<>|LIKE)\s*(?:"([^"]*)"|'([^']*)')`)

// TestQuestionsLeadToTheColumnsThatTheirStatementsCompare takes the questions whose statement compares a column with one
// of its samples, over all databases at once. The bounds are near what was measured when they were set.
func TestQuestionsLeadToTheColumnsThatTheirStatementsCompare(t *testing.T) {
	dir := benchmarks(t)
	s := loaded(t, "bench:"+dir+"/spider_train")
	questions, err := ingest.Questions(dir, "spider_train")
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]*catalog.Object{}
	for i := range s.Objects(catalog.KindColumn) {
		o := &s.Objects(catalog.KindColumn)[i]
		columns[strings.ToLower(o.Ref.Database+"."+o.Ref.Table+"."+o.Ref.Column)] = o
	}
	x := local.NewValues(s)
	asked, found, others := 0, 0, 0
	for _, q := range questions {
		right := map[uint32]bool{}
		for _, m := range compared.FindAllStringSubmatch(q.SQL, -1) {
			for _, g := range q.GoldColumns {
				o := columns[strings.ToLower(q.DB+"."+g)]
				if o != nil && strings.EqualFold(o.Ref.Column, m[1]) && slices.ContainsFunc(o.Column.Samples, func(v string) bool { return strings.EqualFold(v, m[2]+m[3]) }) {
					right[o.ID] = true
				}
			}
		}
		if len(right) == 0 {
			continue
		}
		asked++
		once := false
		for _, h := range x.Find(q.Question, acl.Everything(s)) {
			if !right[h.Column] {
				others++
			} else if !once {
				once = true
				found++
			}
		}
	}
	share, noise := 100*float64(found)/float64(asked), float64(others)/float64(asked)
	t.Logf("%d questions: %.1f%% lead to a column that is compared, with %.2f hits on others", asked, share, noise)
	if asked < 1000 || share < 93 || noise > 5 {
		t.Errorf("%d questions: %.1f%% lead to a column that is compared, with %.2f hits on others; want at least 93%% and at most 5", asked, share, noise)
	}
}

func TestValuesOfRealDatabases(t *testing.T) {
	s := loaded(t, "sqlite:"+filepath.Join(benchmarks(t), "sqlite", "superhero.sqlite"))
	x := local.NewValues(s)
	for question, want := range map[string][]string{
		"How many heroes have blue eyes?":                                    {"colour.colour"},
		"List the heroes published by Dark Horse Comics":                     {"publisher.publisher_name"},
		"Which superheroes of the alignment 'Bad' are there":                 {"alignment.alignment"},
		"How many superheroes have the super power of Super Strength?":       {"superpower.power_name"},
		"what are the powers of heroes who are vampires":                     {"race.race"},
		"heroes that can do telepathy":                                       {"superpower.power_name"},
		"Which heroes have the super power of Intelligance?":                 {"superpower.power_name", "attribute.attribute_name"},
		"Give the durability of the heroes whose publisher is Marvel Comics": {"publisher.publisher_name", "attribute.attribute_name"},
	} {
		var got []string
		for _, h := range x.Find(question, acl.Everything(s)) {
			r := s.Object(h.Column).Ref
			got = append(got, r.Table+"."+r.Column)
		}
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%q finds %q and not %s", question, got, w)
			}
		}
	}
}

// filled draws a catalog of so many columns of ten samples each: numbers, dates, codes, and texts of one to three words
// of which some are common and most are rare.
func filled(columns int) *catalog.Snapshot {
	r := rand.New(rand.NewPCG(1, uint64(columns)))
	syllables := strings.Fields(`ba be bo ca ce co da de di do fa fe ga ge go ha he hi ka ke ko la le li lo ma me mi mo na ne ni no
		pa pe po ra re ri ro sa se si so ta te ti to va ve vi vo wa we za ze zo`)
	rare := func() string {
		w := syllables[r.IntN(len(syllables))] + syllables[r.IntN(len(syllables))] + syllables[r.IntN(len(syllables))]
		return strings.ToUpper(w[:1]) + w[1:]
	}
	common := strings.Fields("Street County University Hotel New North South Red Blue Street Park Club Inc Bank School Road Lake Center")
	word := func() string {
		if r.IntN(3) == 0 {
			return common[r.IntN(len(common))]
		}
		return rare()
	}
	names := strings.Fields("name city status type street county code owner level region date number amount school team label")
	value := [...]func() string{
		func() string { return fmt.Sprint(r.IntN(1e6)) },
		func() string { return fmt.Sprintf("20%02d-%02d-%02d", r.IntN(25), 1+r.IntN(12), 1+r.IntN(28)) },
		func() string { return fmt.Sprintf("%s-%04d", rare()[:2], r.IntN(1e4)) },
		func() string { return []string{"Yes", "No", "Unknown", "Open", "Closed"}[r.IntN(5)] },
		rare, func() string { return word() + " " + word() }, func() string { return rare() + " " + rare() }, func() string { return word() + " " + word() + " " + word() },
	}
	var objects []catalog.Object
	for n := 0; n < columns; n++ {
		ref := catalog.TableRef("db", "", fmt.Sprintf("t%05d", n/20))
		if n%20 == 0 {
			objects = append(objects, catalog.Object{Ref: ref, Table: &catalog.Table{}})
		}
		c := catalog.Object{Ref: catalog.ColumnRef(ref.Database, "", ref.Table, fmt.Sprintf("%s_%d", names[r.IntN(len(names))], n%20)), Column: &catalog.Column{Position: n % 20}}
		draw := value[r.IntN(len(value))]
		for range 10 {
			c.Column.Samples = append(c.Column.Samples, draw())
		}
		objects = append(objects, c)
	}
	s, err := catalog.Build([]catalog.Database{{Name: "db", Dialect: catalog.SQLite}}, objects)
	if err != nil {
		panic(err)
	}
	return s
}

// heap is the memory in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestValuesTakeLittleMemory(t *testing.T) {
	const columns = 10_000
	s := filled(columns)
	before := heap()
	x := local.NewValues(s)
	perValue := float64(heap()-before) / (10 * columns)
	runtime.KeepAlive(x)
	if perValue > 60 { // 60 MB at 100,000 columns
		t.Errorf("%.0f bytes a value", perValue)
	}
}

func BenchmarkValues(b *testing.B) {
	questions := []string{
		"What is the average salary of the people who live in Norefa and work at the University of Tibola since 2019-05-17?",
		"show all schools in bolida county with more than 200 students whose status is open and that are near the red lake",
		"List the names and amounts of the orders that Kimera Zadovo Street and 'Wateri Club' made in Sonora Hotel or Limado",
	}
	for _, columns := range []int{800, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d_columns", columns), func(b *testing.B) {
			s := filled(columns)
			before := heap()
			x := local.NewValues(s)
			size := heap() - before
			v := acl.Everything(s)
			hits, n := 0, 0
			b.ReportAllocs()
			for b.Loop() {
				hits += len(x.Find(questions[n%len(questions)], v))
				n++
			}
			b.ReportMetric(float64(size)/1e6, "MB")
			b.ReportMetric(float64(hits)/float64(n), "hits/op")
		})
	}
}

func BenchmarkNewValues(b *testing.B) {
	s := filled(100_000)
	for b.Loop() {
		local.NewValues(s)
	}
}
