package eval

import (
	"fmt"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
	"github.com/schemagate/schemagate/retrieval/rank"
)

// favourite judges one table likely and says nothing of others.
type favourite func(b *retrieval.Board) uint32

func (f favourite) Judge(b *retrieval.Board) retrieval.Judgement {
	id := f(b)
	return retrieval.Judgement{Databases: []float64{0.5}, Tables: []retrieval.Judged{{ID: id, Probability: 0.9, Given: 0.9, Score: 0.9}}}
}

// A catalog of many tables that all say the same, of which the question means the last.
func TestATrialTellsBetterFromWorseAndLittleFromEnough(t *testing.T) {
	objects := []catalog.Object{}
	for i := range 20 {
		name := "order_" + string(rune('a'+i))
		objects = append(objects,
			catalog.Object{Ref: catalog.TableRef("shop", "", name), Description: "orders", Table: &catalog.Table{}},
			catalog.Object{Ref: catalog.ColumnRef("shop", "", name, "amount"), Column: &catalog.Column{Type: "int"}})
	}
	s, err := catalog.Build([]catalog.Database{{Name: "shop", Dialect: catalog.SQLite}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	x := local.New(s)
	by := func(id uint32) *retrieval.Ranker {
		return &retrieval.Ranker{Index: x, Judge: favourite(func(*retrieval.Board) uint32 { return id })}
	}
	questions := func(n int) []rank.Example {
		out := make([]rank.Example, n)
		for i := range out {
			out[i] = rank.Example{Question: "amount of orders", Database: "shop", Tables: map[uint32]bool{19: true}}
		}
		return out
	}
	good, bad := by(19), by(0)
	for _, c := range []struct {
		name          string
		questions     int
		before, after *retrieval.Ranker
		want          Verdict
	}{
		{"right instead of wrong", 30, bad, good, Better},
		{"wrong instead of right", 30, good, bad, NotBetter},
		{"no change", 30, good, good, NotBetter},
		{"right, but of few questions", 29, bad, good, TooFew},
		{"no question", 0, bad, good, TooFew},
	} {
		got, err := Try(t.Context(), questions(c.questions), acl.Everything(s), c.before, c.after)
		if err != nil || got.Verdict != c.want || got.Questions != c.questions {
			t.Errorf("%s: %+v, %v; want %s", c.name, got, err, c.want)
		}
		if _, ok := got.Differences["column_recall_10"]; ok {
			t.Errorf("%s: columns are compared that nobody knows", c.name)
		}
		if c.want == Better && (got.Before["table_recall_5"] != 0 || got.After["table_recall_5"] != 100 || got.Differences["mrr"].Difference < 0.9) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	// A third of the questions got better and none worse is beyond chance; one of thirty is not.
	half := func(n int) []rank.Example {
		list := questions(30)
		for i := n; i < len(list); i++ {
			list[i].Tables = map[uint32]bool{5: true}
		}
		return list
	}
	for n, want := range map[int]Verdict{10: Better, 1: TooFew} {
		if got, err := Try(t.Context(), half(n), acl.Everything(s), &retrieval.Ranker{Index: x, Judge: favourite(func(*retrieval.Board) uint32 { return 18 })}, good); err != nil || got.Verdict != want {
			t.Errorf("%d of 30: %+v, %v; want %s", n, got, err, want)
		}
	}
}

// Daily partitions rank as one, so whoever finds any of them has found the one that was meant.
func TestATrialTakesPartitionsForOne(t *testing.T) {
	var objects []catalog.Object
	for day := range 3 {
		name := fmt.Sprintf("orders_2024010%d", day+1)
		objects = append(objects,
			catalog.Object{Ref: catalog.TableRef("shop", "", name), Table: &catalog.Table{}},
			catalog.Object{Ref: catalog.ColumnRef("shop", "", name, "amount"), Column: &catalog.Column{Type: "int"}})
	}
	s, err := catalog.Build([]catalog.Database{{Name: "shop", Dialect: catalog.SQLite}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := s.ID(catalog.TableRef("shop", "", "orders_20240101"))
	amount, _ := s.ID(catalog.ColumnRef("shop", "", "orders_20240101", "amount"))
	r := &retrieval.Ranker{Index: local.New(s)}
	asked := []rank.Example{{Question: "amount of orders", Database: "shop", Tables: map[uint32]bool{first: true}, Columns: map[uint32]bool{amount: true}}}
	got, err := Try(t.Context(), asked, acl.Everything(s), r, r)
	if err != nil || got.After["table_recall_5"] != 100 || got.After["column_recall_10"] != 100 {
		t.Errorf("%+v, %v", got, err)
	}
}
