package main

import (
	"fmt"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

func TestQuestionsOfTheSameWordsAreHeldOutTogether(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"Revenue by region", "revenue  by REGION?", true},
		{"revenue by region in 2025", "revenue by region in 2024", true},
		{`orders from "Lyon"`, `orders from "Turin"`, true},
		{"which customers placed orders", "orders placed by which customer", true},
		{"revenue by region", "revenue by segment", false},
		{"revenue by region", "revenue", false},
		{"销售 地区", "销售 城市", false},
	} {
		if got := likeness(c.a) == likeness(c.b); got != c.same {
			t.Errorf("%q and %q are alike: %v (%q, %q)", c.a, c.b, got, likeness(c.a), likeness(c.b))
		}
	}
	held := 0
	for i := range 1000 {
		if heldOut(fmt.Sprintf("question %c%c%c", 'a'+i%10, 'a'+i/10%10, 'a'+i/100)) {
			held++
		}
	}
	if held < 200 || held > 300 {
		t.Errorf("of 1000 questions %d are held out, want about a quarter", held)
	}
}

func TestPastQueriesAreNoEvidenceWhileTraining(t *testing.T) {
	s, err := catalog.Build([]catalog.Database{{Name: "shop", Dialect: catalog.SQLite}}, []catalog.Object{
		{Ref: catalog.TableRef("shop", "", "orders"), Table: &catalog.Table{}},
		{Ref: catalog.ColumnRef("shop", "", "orders", "amount"), Column: &catalog.Column{}},
		{Ref: catalog.QueryRef("q"), Query: &catalog.Query{Question: "takings", Count: 9, Tables: []catalog.Ref{catalog.TableRef("shop", "", "orders")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	all := acl.Everything(s)
	v := withoutQueries(all)
	r, err := newRanker(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		view acl.View
		want int
	}{{all, 1}, {v, 0}, {all, 1}} {
		got, err := r.Rank(t.Context(), "takings", c.view)
		if err != nil || len(got.Queries) != c.want || len(got.Tables) != c.want {
			t.Errorf("%d past queries and %d tables were found, %v; want %d", len(got.Queries), len(got.Tables), err, c.want)
		}
	}
	if !v.Raw(0) || !v.Queryable(1) {
		t.Error("more than past queries has gone")
	}
}
