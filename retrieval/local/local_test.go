package local_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
)

func table(name, description string) catalog.Object {
	return catalog.Object{Ref: catalog.TableRef("db", "", name), Description: description, Table: &catalog.Table{}}
}

func column(name, description string, samples ...string) catalog.Object {
	return catalog.Object{Ref: catalog.ColumnRef("db", "", "t", name), Description: description, Column: &catalog.Column{Samples: samples}}
}

func build(t testing.TB, objects ...catalog.Object) *catalog.Snapshot {
	t.Helper()
	for i := range objects {
		if objects[i].Column != nil {
			objects[i].Column.Position = i
		}
	}
	s, err := catalog.Build([]catalog.Database{{Name: "db", Dialect: catalog.SQLite}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// columns builds a table t of the columns, and returns its hits for a word by the column's name.
func columns(t testing.TB, columns ...catalog.Object) func(word string) map[string]retrieval.Hit {
	t.Helper()
	s := build(t, append([]catalog.Object{table("t", "")}, columns...)...)
	x := local.New(s)
	return func(word string) map[string]retrieval.Hit {
		return find(t, x, catalog.KindColumn, word, acl.Everything(s))
	}
}

func find(t testing.TB, x *local.Index, k catalog.Kind, word string, v acl.View) map[string]retrieval.Hit {
	t.Helper()
	text := retrieval.Terms(word)[0]
	hits := x.Match(k, []retrieval.Term{{Text: text, Said: word}}, v)[0]
	out := map[string]retrieval.Hit{}
	for i, h := range hits {
		if h.Weight <= 0 || h.Weight > 1 {
			t.Errorf("%s weighs %v", word, h.Weight)
		}
		if i > 0 && hits[i-1].ID >= h.ID {
			t.Errorf("hits of %s are not in id order", word)
		}
		r := v.Snapshot().Object(h.ID).Ref
		out[r.Table+r.Column+r.Name] = h
	}
	return out
}

// view sees what is in query, and reads the values of what is in raw.
func view(s *catalog.Snapshot, name string, query, raw func(*catalog.Object) bool) acl.View {
	q, r := roaring.New(), roaring.New()
	for i := range s.All() {
		o := &s.All()[i]
		if query(o) {
			q.Add(o.ID)
			if raw(o) {
				r.Add(o.ID)
			}
		}
	}
	return acl.NewView(acl.Principal{Name: name}, &acl.Compiled{
		Policy: name, Snapshot: s, Raw: r, Allowed: map[acl.Action]*roaring.Bitmap{acl.ActionView: q, acl.ActionQuery: q},
	})
}

func all(*catalog.Object) bool  { return true }
func none(*catalog.Object) bool { return false }

func TestAWordOfANameWeighsMoreThanOneOfADescriptionOrAValue(t *testing.T) {
	hits := columns(t, column("revenue", "x"), column("a", "revenue"), column("b", "x", "revenue"))("revenue")
	if !(hits["trevenue"].Weight > hits["ta"].Weight && hits["ta"].Weight > hits["tb"].Weight) {
		t.Errorf("name %v, description %v, value %v", hits["trevenue"], hits["ta"], hits["tb"])
	}
	for name, where := range map[string]retrieval.Field{"trevenue": retrieval.FieldName, "ta": retrieval.FieldText, "tb": retrieval.FieldValue} {
		if hits[name].Where != where {
			t.Errorf("%s was found in its %s", name, hits[name].Where)
		}
	}
}

func TestAWordOfALongTextWeighsLess(t *testing.T) {
	hits := columns(t, column("a", "revenue"), column("b", "revenue of all that was sold in all the shops there are"))("revenue")
	if hits["ta"].Weight <= hits["tb"].Weight {
		t.Errorf("short %v, long %v", hits["ta"], hits["tb"])
	}
}

func TestRepetitionHelpsLessAndLess(t *testing.T) {
	hits := columns(t, column("a", "tax x x"), column("b", "tax tax x"), column("c", "tax tax tax"))("tax")
	first, second := hits["tb"].Weight-hits["ta"].Weight, hits["tc"].Weight-hits["tb"].Weight
	if first <= 0 || second <= 0 || second >= first {
		t.Errorf("once %v, twice %v, thrice %v", hits["ta"], hits["tb"], hits["tc"])
	}
}

func TestFieldsAddUpBeforeTheySaturate(t *testing.T) {
	hits := columns(t, column("tax", "x"), column("y", "tax"), column("tax_", "tax"))("tax")
	if both := hits["ttax_"].Weight; both <= hits["ttax"].Weight || both >= hits["ttax"].Weight+hits["ty"].Weight {
		t.Errorf("name %v, description %v, both %v", hits["ttax"], hits["ty"], hits["ttax_"])
	}
}

func TestAWordMeetsWhatLooksLikeItsShortForm(t *testing.T) {
	find := columns(t, column("warehouse", ""), column("wareh", ""), column("wrhs", ""), column("wa", ""), column("house", ""))
	hits := find("warehouse")
	for _, name := range []string{"twareh", "twrhs"} {
		if w := hits[name].Weight; w == 0 || w >= hits["twarehouse"].Weight/2 {
			t.Errorf("%s weighs %v, the word itself %v", name, w, hits["twarehouse"].Weight)
		}
	}
	for _, name := range []string{"twa", "thouse"} {
		if _, ok := hits[name]; ok {
			t.Errorf("%s is no short form of warehouse", name)
		}
	}
	if hits := find("wrhs"); len(hits) != 1 {
		t.Errorf("a short form means itself, not %v", hits)
	}
}

func TestValuesAreFoundOnlyByWhoMaySeeThem(t *testing.T) {
	s := build(t, table("t", ""), column("a", "", "Amador"), column("b", "Amador", "Amador"))
	x := local.New(s)
	if hits := find(t, x, catalog.KindColumn, "Amador", view(s, "sees rows", all, all)); len(hits) != 2 || hits["ta"].Where != retrieval.FieldValue {
		t.Errorf("who sees rows finds %v", hits)
	}
	if hits := find(t, x, catalog.KindColumn, "Amador", view(s, "sees no rows", all, none)); len(hits) != 1 || hits["tb"].Where != retrieval.FieldText {
		t.Errorf("who sees no rows finds %v", hits)
	}
}

func TestHiddenObjectsAreNeitherFoundNorCounted(t *testing.T) {
	visible := func(o *catalog.Object) bool { return o.Ref.Column != "secret_plan" }
	s := build(t, table("t", ""), column("plan", "the plan"), column("secret_plan", "a plan of which one says a lot more than this"))
	without := build(t, table("t", ""), column("plan", "the plan"))
	got := find(t, local.New(s), catalog.KindColumn, "plan", view(s, "p", visible, all))
	want := find(t, local.New(without), catalog.KindColumn, "plan", acl.Everything(without))
	if len(got) != 1 || got["tplan"].Weight != want["tplan"].Weight {
		t.Errorf("got %v, without the hidden column %v", got, want)
	}
	if all := find(t, local.New(s), catalog.KindColumn, "plan", acl.Everything(s)); all["tplan"].Weight == want["tplan"].Weight {
		t.Error("the hidden column would not have mattered, so this test proves nothing")
	}
}

func TestKindsHaveTheirOwnStatistics(t *testing.T) {
	s := build(t, table("sales", "what was sold"), table("t", ""), column("sales", ""))
	hits := find(t, local.New(s), catalog.KindTable, "sales", acl.Everything(s))
	if _, ok := hits["sales"]; !ok || len(hits) != 1 {
		t.Errorf("tables %v", hits)
	}
}

func TestMetricsAndPastQueriesAreFound(t *testing.T) {
	r := catalog.TableRef("db", "", "t")
	s := build(t, table("t", ""), column("x", ""),
		catalog.Object{Ref: catalog.MetricRef("net_revenue"), Synonyms: []string{"turnover"}, Metric: &catalog.Metric{Formula: "SUM(x)", Sources: []catalog.Ref{r}}},
		catalog.Object{Ref: catalog.QueryRef("q1"), Query: &catalog.Query{Question: "turnover by region", Tables: []catalog.Ref{r}}})
	x := local.New(s)
	if hits := find(t, x, catalog.KindMetric, "turnover", acl.Everything(s)); hits["net_revenue"].Where != retrieval.FieldName || len(hits) != 1 {
		t.Errorf("metrics %v", hits)
	}
	if hits := find(t, x, catalog.KindQuery, "turnover", acl.Everything(s)); hits["q1"].Where != retrieval.FieldName || len(hits) != 1 {
		t.Errorf("queries %v", hits)
	}
}

func TestAViewOfAnotherSnapshotFindsNothing(t *testing.T) {
	a, b := build(t, table("t", "tax")), build(t, table("t", "tax"), column("x", ""))
	for _, v := range []acl.View{acl.Everything(b), {}} {
		for _, hits := range local.New(a).Match(catalog.KindTable, []retrieval.Term{{Text: "tax"}}, v) {
			if len(hits) > 0 {
				t.Errorf("found %v", hits)
			}
		}
	}
}

func TestManyViewsAtOnceGetTheirOwnStatistics(t *testing.T) {
	objects := []catalog.Object{table("t", "")}
	for i := range 40 {
		objects = append(objects, column(fmt.Sprintf("plan_%d", i), fmt.Sprint("plan ", make([]bool, i))))
	}
	s := build(t, objects...)
	x := local.New(s)
	var wg sync.WaitGroup
	for i := range 600 { // more than are remembered
		wg.Go(func() {
			few := func(o *catalog.Object) bool { return o.Column == nil || o.Column.Position <= 1+i%30 }
			v := view(s, fmt.Sprint(i%300), few, all)
			fresh := find(t, local.New(s), catalog.KindColumn, "plan", v)
			if got := find(t, x, catalog.KindColumn, "plan", v); got["tplan_0"].Weight != fresh["tplan_0"].Weight {
				t.Errorf("view %d: %v, from a fresh index %v", i, got["tplan_0"], fresh["tplan_0"])
			}
		})
	}
	wg.Wait()
}
