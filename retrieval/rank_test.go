package retrieval_test

import (
	"math"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
)

func ranking(t testing.TB, d *draft, question string) (retrieval.Ranking, *catalog.Snapshot) {
	t.Helper()
	s := d.build(t)
	return retrieval.Rank(question, local.New(s), acl.Everything(s)), s
}

func first(s *catalog.Snapshot, list []retrieval.Scored) string {
	if len(list) == 0 {
		return ""
	}
	return s.Object(list[0].ID).Ref.String()
}

func TestTheTableThatTheQuestionNamesComesFirst(t *testing.T) {
	for question, want := range map[string]string{
		"How many customers are there?":              "shop.customers",
		"the colour of each product":                 "shop.products",
		"total quantity and net amount":              "shop.order_lines",
		"which day were orders placed":               "shop.orders",
		"cities":                                     "shop.customers",
		"Net amounts for every order line, please!!": "shop.order_lines",
	} {
		if r, s := ranking(t, shop(), question); first(s, r.Tables) != want {
			t.Errorf("%q: %s comes first, not %s", question, first(s, r.Tables), want)
		}
	}
}

func TestAColumnStandsWithItsTable(t *testing.T) {
	d := new(draft).database("db", catalog.SQLite).
		table("schools", "", "id*", "name").table("heroes", "", "id*", "name").table("cars", "", "id*", "name")
	r, s := ranking(t, d, "names of heroes")
	if got := first(s, r.Columns); got != "db.heroes.name" {
		t.Errorf("first column is %s", got)
	}
	var unnamed bool
	for _, c := range r.Columns {
		unnamed = unnamed || s.Object(c.ID).Ref.String() == "db.heroes.id" && c.Own == 0 && c.Score > 0
	}
	if !unnamed {
		t.Error("a column that no word names does not stand with its table")
	}
}

func TestADatabaseIsKnownByAllThatTheQuestionSays(t *testing.T) {
	d := new(draft).
		database("zoo", catalog.SQLite).table("animals", "", "name", "weight").table("keepers", "", "name").
		database("school", catalog.SQLite).table("pupils", "", "name", "class").table("animals", "", "name")
	r, s := ranking(t, d, "which animals does each keeper look after")
	if len(r.Databases) != 2 || r.Databases[0].Name != "zoo" {
		t.Errorf("databases %v", r.Databases)
	}
	for _, x := range r.Tables {
		if r := s.Object(x.ID).Ref.String(); r == "zoo.animals" {
			break
		} else if r == "school.animals" {
			t.Error("the animals of the wrong database come first")
		}
	}
	if r, _ := ranking(t, d, "pupils by class"); len(r.Databases) != 1 || r.Databases[0].Name != "school" {
		t.Errorf("a database that nothing speaks for is ranked: %v", r.Databases)
	}
}

func TestEvidenceSaysWhichWordWasFoundWhere(t *testing.T) {
	r, s := ranking(t, shop(), "Where do customers live, and what are their names?")
	said := map[string]string{}
	for i, e := range r.Tables[0].Evidence {
		said[e.Said] = s.Object(e.By).Ref.String() + " " + e.Where.String()
		if e.Score <= 0 || i > 0 && e.Score > r.Tables[0].Evidence[i-1].Score {
			t.Errorf("evidence %v is not strongest first", r.Tables[0].Evidence)
		}
	}
	for word, want := range map[string]string{
		"customers": "shop.customers name", "live": "shop.customers.city description", "names": "shop.customers.name name",
	} {
		if said[word] != want {
			t.Errorf("%s was found in %q, not in %s", word, said[word], want)
		}
	}
	var sum float64
	for _, e := range r.Tables[0].Evidence {
		sum += e.Score
	}
	if math.Abs(sum-r.Tables[0].Own) > 1e-9 {
		t.Errorf("evidence adds up to %v, the table has %v by itself", sum, r.Tables[0].Own)
	}
}

func TestMetricsRelationshipsAndPastQueriesSpeakForTheirTables(t *testing.T) {
	orders := catalog.TableRef("shop", "", "orders")
	for what, o := range map[string]catalog.Object{
		"metric":       {Ref: catalog.MetricRef("turnover"), Metric: &catalog.Metric{Formula: "COUNT(*)", Sources: []catalog.Ref{orders}}},
		"query":        {Ref: catalog.QueryRef("q"), Query: &catalog.Query{Question: "turnover this year", Tables: []catalog.Ref{orders}}},
		"relationship": {Ref: catalog.RelationshipRef("r"), Description: "turnover", Relationship: &catalog.Relationship{From: []catalog.Ref{shop().column("orders.status")}, To: []catalog.Ref{shop().column("customers.name")}, Type: catalog.DocumentedRelationship}},
	} {
		r, s := ranking(t, shop().add(o), "turnover")
		if len(r.Tables) == 0 || len(r.Tables[0].Evidence) == 0 || s.Object(r.Tables[0].Evidence[0].By).Ref != o.Ref {
			t.Errorf("no evidence of the %s: %+v", what, r.Tables)
		}
		if before, _ := ranking(t, shop(), "turnover"); len(before.Tables) > 0 {
			t.Errorf("without the %s, %v is found", what, before.Tables)
		}
	}
}

func TestCoverageIsHowWellTheCatalogKnowsTheQuestion(t *testing.T) {
	coverage := func(question string) float64 {
		r, _ := ranking(t, shop(), question)
		return r.Coverage
	}
	named, described, half := coverage("customers"), coverage("customer lives"), coverage("customers xylophone")
	if named < 0.8 || named > 1 || described >= named || half >= described || half < 0.4 {
		t.Errorf("a name %v, a name and a description %v, a name and nothing %v", named, described, half)
	}
	if r, _ := ranking(t, shop(), "xylophones of zanzibar"); r.Coverage != 0 || len(r.Tables)+len(r.Columns) > 0 {
		t.Errorf("nothing known: %+v", r)
	}
}

func TestWordsThatTheCatalogWritesAsOneAreFound(t *testing.T) {
	d := new(draft).database("db", catalog.SQLite).table("people", "", "haircut", "eyecolour")
	r, s := ranking(t, d, "what eye colour do they have")
	if got := first(s, r.Columns); got != "db.people.eyecolour" {
		t.Errorf("first column is %q", got)
	}
}

func TestQuestionsWithoutWordsRankNothing(t *testing.T) {
	for _, question := range []string{"", "   ", "???", "the of and", "🙂"} {
		if r, _ := ranking(t, shop(), question); len(r.Tables)+len(r.Columns)+len(r.Databases) > 0 {
			t.Errorf("%q ranks %+v", question, r)
		}
	}
	if r := retrieval.Rank("customers", nil, acl.View{}); len(r.Tables) > 0 {
		t.Errorf("the view of nothing ranks %v", r)
	}
}

func TestListsAreBoundedAndHoldTheBest(t *testing.T) {
	d := new(draft).database("db", catalog.SQLite)
	for i := range 9 {
		d.table("plan_"+string(rune('a'+i)), "", columnsNamed("plan", 130)...)
	}
	d.table("zoo", "the plan of the zoo", "plan_zoo", "keeper")
	r, s := ranking(t, d, "zoo plan keeper")
	if len(r.Columns) != retrieval.Candidates || len(r.Tables) != 10 {
		t.Errorf("%d columns, %d tables", len(r.Columns), len(r.Tables))
	}
	if a, b := first(s, r.Tables), first(s, r.Columns); a != "db.zoo" || !strings.HasPrefix(b, "db.zoo.") {
		t.Errorf("%s and %s come first", a, b)
	}
	for i := 1; i < len(r.Columns); i++ {
		if a, b := r.Columns[i-1], r.Columns[i]; a.Score < b.Score || a.Score == b.Score && a.ID > b.ID {
			t.Fatalf("columns %d and %d are out of order", i-1, i)
		}
	}
}

// columnsNamed returns n names that hold the word.
func columnsNamed(word string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = word + "_" + string(rune('a'+i/676%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26))
	}
	return out
}

func TestATableThatSaysAWordInMorePlacesComesFirst(t *testing.T) {
	d := new(draft).database("db", catalog.SQLite).table("a", "", "plan_x", "y", "z").table("b", "", "plan_x", "plan_y", "plan_z")
	if r, s := ranking(t, d, "plan"); first(s, r.Tables) != "db.b" {
		t.Errorf("%s comes first", first(s, r.Tables))
	}
}

func TestATableThatNothingSpeaksForStandsWithItsDatabase(t *testing.T) {
	d := shop().database("farm", catalog.SQLite).table("fields", "", "crop")
	r, s := ranking(t, d, "birthday")
	if len(r.Tables) != 4 || first(s, r.Tables) != "shop.customers" || r.Tables[3].Own != 0 || r.Tables[3].Score <= 0 || len(r.Tables[3].Evidence) > 0 {
		t.Errorf("%+v", r.Tables)
	}
}
