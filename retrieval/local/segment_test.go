package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
)

// said holds words in which others begin or whose consonants they are, and such as are hard to split.
var said = strings.Fields("warehouse wrhs ware wareh customer cstmr cust order ord amount amt größe 地区 销售 id strengths strngths étè custID2 HTTPServers 2024 don't ﬁn 3.14 e.g.")

// draw draws a catalog of tables, columns, metrics and past queries. Each table is drawn from its number alone.
func draw(t *rapid.T, tables []int) *catalog.Snapshot {
	var objects []catalog.Object
	for _, n := range tables {
		r := rand.New(rand.NewPCG(uint64(n), 3))
		word := func() string { return said[r.IntN(len(said))] }
		words := func(most int) string {
			var out []string
			for range r.IntN(most + 1) {
				out = append(out, word())
			}
			return strings.Join(out, []string{" ", "_", "\n", ", ", "\t \v"}[r.IntN(5)])
		}
		ref := catalog.TableRef("db", "", fmt.Sprintf("%s_%d", word(), n))
		objects = append(objects, catalog.Object{Ref: ref, Description: words(6), Tags: []string{words(2), words(2)}, Synonyms: []string{words(2)}, Table: &catalog.Table{}},
			catalog.Object{Ref: catalog.QueryRef(fmt.Sprint("q", n)), Query: &catalog.Query{Question: words(5), Tables: []catalog.Ref{ref}}},
			catalog.Object{Ref: catalog.MetricRef(fmt.Sprint(word(), n)), Description: words(5), Metric: &catalog.Metric{Formula: words(3), Sources: []catalog.Ref{ref}}})
		for i := range r.IntN(9) {
			objects = append(objects, catalog.Object{
				Ref: catalog.ColumnRef("db", "", ref.Table, fmt.Sprint(word(), i)), Description: words(6), Synonyms: []string{words(1), words(2)},
				Column: &catalog.Column{Position: i, Samples: []string{words(3), words(2)}},
			})
		}
	}
	s, err := catalog.Build([]catalog.Database{{Name: "db", Dialect: catalog.SQLite}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drawView hides about a third of what there is, and the rows of half of the rest, or nothing.
func drawView(t *rapid.T, s *catalog.Snapshot) acl.View {
	seed := rapid.Uint64().Draw(t, "view")
	if seed%4 == 0 {
		return acl.Everything(s)
	}
	r := rand.New(rand.NewPCG(seed, 5))
	return view(s, fmt.Sprint(seed), func(*catalog.Object) bool { return r.IntN(3) > 0 }, func(*catalog.Object) bool { return r.IntN(2) > 0 })
}

func numbers(t *rapid.T, label string) []int {
	return rapid.SliceOfNDistinct(rapid.IntRange(0, 60), 1, 25, rapid.ID).Draw(t, label)
}

func terms() []retrieval.Term {
	var out []retrieval.Term
	for _, w := range append(slices.Clone(said), "warehousing", "customization", "ordered") {
		for _, text := range retrieval.Terms(w) {
			out = append(out, retrieval.Term{Text: text, Said: w})
		}
	}
	return out
}

// fields are the texts of an object, by field.
func fields(o *catalog.Object) [3]string {
	var f [3]string
	f[retrieval.FieldName] = strings.Join(o.Synonyms, "\n") + "\n"
	f[retrieval.FieldText] = o.Description + "\n" + strings.Join(o.Tags, "\n") + "\n"
	switch {
	case o.Table != nil:
		f[retrieval.FieldName] += o.Ref.Table
	case o.Column != nil:
		f[retrieval.FieldName] += o.Ref.Column
		f[retrieval.FieldValue] = strings.Join(o.Column.Samples, "\n")
	case o.Metric != nil:
		f[retrieval.FieldName] += o.Ref.Name
		f[retrieval.FieldText] += o.Metric.Formula
	case o.Query != nil:
		f[retrieval.FieldName] += o.Query.Question
	}
	return f
}

// byHand computes the hits of a term from the definition of BM25F, without an index.
func byHand(s *catalog.Snapshot, k catalog.Kind, term string, v acl.View) []retrieval.Hit {
	type doc struct {
		id     uint32
		fields [3][]string
	}
	var docs []doc
	var words, n [3]int
	for i := range s.Objects(k) {
		o := &s.Objects(k)[i]
		if !v.Queryable(o.ID) {
			continue
		}
		d := doc{id: o.ID}
		for f, text := range fields(o) {
			if retrieval.Field(f) == retrieval.FieldValue && !v.Raw(o.ID) {
				continue
			}
			if d.fields[f] = retrieval.Terms(text); len(d.fields[f]) > 0 {
				words[f] += len(d.fields[f])
				n[f]++
			}
		}
		docs = append(docs, d)
	}
	forms := []string{term}
	if strings.Trim(term, "abcdefghijklmnopqrstuvwxyz") == "" {
		for n := 3; n*3 <= len(term)*2; n++ {
			forms = append(forms, term[:n])
		}
		consonants := term[:1] + strings.NewReplacer("a", "", "e", "", "i", "", "o", "", "u", "").Replace(term[1:])
		if len(consonants) >= 3 && consonants != term {
			forms = append(forms, consonants)
		}
	}
	var hits []retrieval.Hit
	for _, d := range docs {
		var best retrieval.Hit
		for i, form := range forms {
			worth := 1.0
			if i > 0 {
				worth = 0.1
			}
			var sum, most float64
			h := retrieval.Hit{ID: d.id}
			for f, list := range d.fields {
				count := 0
				for _, w := range list {
					if w == form {
						count++
					}
				}
				if count == 0 {
					continue
				}
				// The parentheses and their order are those of the index, for results that are equal to the last bit.
				const b = 0.8
				average := float64(words[f]) / float64(n[f])
				tf := float64(count) / (1 - b + b*float64(len(list))/average) * [...]float64{1.5, 0.7, 0.6}[f]
				if sum += tf; tf > most {
					most, h.Where = tf, retrieval.Field(f)
				}
			}
			if h.Weight = worth * sum / (1.2 + sum); h.Weight > best.Weight {
				best = h
			}
		}
		if best.Weight > 0 {
			hits = append(hits, best)
		}
	}
	return hits
}

func TestSegmentsFindWhatTheDefinitionSays(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, numbers(t, "tables"))
		x, err := local.InRuns(s, nil, rapid.IntRange(1, 40).Draw(t, "size"))
		if err != nil {
			t.Fatal(err)
		}
		v := drawView(t, s)
		k := rapid.SampledFrom(catalog.Kinds[:]).Draw(t, "kind")
		terms := terms()
		for i, got := range x.Match(k, terms, v) {
			found += len(got)
			if want := byHand(s, k, terms[i].Text, v); !slices.Equal(got, want) {
				t.Fatalf("%s\ngot  %v\nwant %v", terms[i].Text, got, want)
			}
		}
	})
	if found == 0 {
		t.Error("nothing was found, so this test proves nothing")
	}
}

// A segment splits texts at spaces before it looks for terms.
func TestTheTermsOfATextAreThoseOfWhatStandsBetweenSpaces(t *testing.T) {
	alphabet := []rune("aAbB1.,'_-: \n\t\r\v\f\u0085\u00a0\u00a8\u2009\u2028\u202f\u200d\u0301é地区カターけ한ไยא\u05f4\u3000\u3099ﬁ½①")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom(alphabet), 0, 20, -1).Draw(t, "text")
		whole := retrieval.Terms(text)
		var parts []string
		for word := range strings.FieldsSeq(text) {
			parts = append(parts, retrieval.Terms(word)...)
		}
		slices.Sort(whole)
		slices.Sort(parts)
		if !slices.Equal(whole, parts) {
			t.Fatalf("the whole has %q, the parts %q", whole, parts)
		}
	})
}

func TestAnUpdatedIndexFindsWhatANewOneFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 40).Draw(t, "size")
		e := fake{dim: 13}
		x, err := local.InRuns(draw(t, numbers(t, "first tables")), e, size)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s := draw(t, numbers(t, "tables"))
			if x, err = x.UpdateInRuns(s, size); err != nil {
				t.Fatal(err)
			}
			fresh, err := local.InRuns(s, e, size)
			if err != nil {
				t.Fatal(err)
			}
			v := drawView(t, s)
			for _, k := range catalog.Kinds {
				if got, want := x.Match(k, terms(), v), fresh.Match(k, terms(), v); !reflect.DeepEqual(got, want) {
					t.Fatalf("words in a %s\ngot  %v\nwant %v", k, got, want)
				}
				question := e.vector(said[0])
				if got, want := x.Near(k, question, v), fresh.Near(k, question, v); !slices.Equal(got, want) {
					t.Fatalf("meaning of a %s\ngot  %v\nwant %v", k, got, want)
				}
			}
		}
	})
}

func TestAnUpdateSeesWhateverChanges(t *testing.T) {
	r := catalog.TableRef("db", "", "t")
	base := func() []catalog.Object {
		return []catalog.Object{
			table("t", ""), column("c", ""),
			{Ref: catalog.MetricRef("m"), Metric: &catalog.Metric{Sources: []catalog.Ref{r}}},
			{Ref: catalog.QueryRef("q"), Query: &catalog.Query{Tables: []catalog.Ref{r}}},
		}
	}
	for name, change := range map[string]func(o []catalog.Object) catalog.Kind{
		"description": func(o []catalog.Object) catalog.Kind { o[0].Description = "fresh"; return catalog.KindTable },
		"synonym":     func(o []catalog.Object) catalog.Kind { o[0].Synonyms = []string{"fresh"}; return catalog.KindTable },
		"tag":         func(o []catalog.Object) catalog.Kind { o[1].Tags = []string{"fresh"}; return catalog.KindColumn },
		"sample": func(o []catalog.Object) catalog.Kind {
			o[1].Column.Samples = []string{"fresh"}
			return catalog.KindColumn
		},
		"column name": func(o []catalog.Object) catalog.Kind { o[1].Ref.Column = "fresh"; return catalog.KindColumn },
		"formula":     func(o []catalog.Object) catalog.Kind { o[2].Metric.Formula = "fresh"; return catalog.KindMetric },
		"question":    func(o []catalog.Object) catalog.Kind { o[3].Query.Question = "fresh"; return catalog.KindQuery },
	} {
		x := local.New(build(t, base()...))
		objects := base()
		k := change(objects)
		s := build(t, objects...)
		x, err := x.Update(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		if hits := find(t, x, k, "fresh", acl.Everything(s)); len(hits) != 1 {
			t.Errorf("a new %s: found %v", name, hits)
		}
	}
}

func TestAWordOfOneFieldDoesNotPassForAnothersContent(t *testing.T) {
	// Both say the same words one after the other, in b none of them as a value.
	a, b := column("c", "fresh", "air"), column("c", "air")
	b.Tags = []string{"fresh"}
	x := local.New(build(t, table("t", ""), a))
	s := build(t, table("t", ""), b)
	x, err := x.Update(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	if hits := find(t, x, catalog.KindColumn, "air", acl.Everything(s)); hits["tc"].Where != retrieval.FieldText {
		t.Errorf("found %v", hits)
	}
}

func TestAChangeTouchesOnlyItsSegment(t *testing.T) {
	databases, objects := warehouse(20_000)
	s, err := catalog.Build(databases, objects)
	if err != nil {
		t.Fatal(err)
	}
	x := local.New(s)
	for name, tt := range map[string]struct {
		change func([]catalog.Object) []catalog.Object
		most   int // segments of columns that are built anew
	}{
		"nothing":     {func(o []catalog.Object) []catalog.Object { return o }, 0},
		"a word":      {func(o []catalog.Object) []catalog.Object { o[1].Description = "brand new"; return o }, 1},
		"owner":       {func(o []catalog.Object) []catalog.Object { o[1].Owner = "somebody"; return o }, 0},
		"first table": {func(o []catalog.Object) []catalog.Object { return slices.Concat(o, aTable("aaa")) }, 3},
		"last table":  {func(o []catalog.Object) []catalog.Object { return slices.Concat(o, aTable("zzz")) }, 3},
	} {
		_, objects := warehouse(20_000)
		s, err := catalog.Build(databases, tt.change(objects))
		if err != nil {
			t.Fatal(err)
		}
		y, err := x.Update(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		if own, all := y.Own(catalog.KindColumn, x); own > tt.most || all < 6 || tt.most > 0 && own == 0 {
			t.Errorf("%s: %d of %d segments are new, want at most %d", name, own, all, tt.most)
		}
	}
}

// aTable is a table of the warehouse's first database.
func aTable(name string) []catalog.Object {
	objects := []catalog.Object{{Ref: catalog.TableRef("db000", "", name), Table: &catalog.Table{}}}
	for i := range 150 {
		objects = append(objects, catalog.Object{Ref: catalog.ColumnRef("db000", "", name, fmt.Sprint("c", i)), Column: &catalog.Column{Position: i}})
	}
	return objects
}
