package retrieval_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/lineage"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
)

// sized is a catalog of so many tables of so many columns, the first of which is about heroes.
func sized(tables, columns int) *draft {
	d := new(draft).database("db", catalog.SQLite).table("heroes", "", columnsNamed("power", columns)...)
	for i := range tables - 1 {
		d.table(fmt.Sprintf("t%c%c%c", 'a'+i/676, 'a'+i/26%26, 'a'+i%26), "", columnsNamed("thing", columns)...)
	}
	return d
}

func TestTheSizeOfTheVisibleCatalogChoosesTheStrategy(t *testing.T) {
	for _, tt := range []struct {
		tables, columns int
		want            retrieval.Strategy
		because         string
	}{
		{1, 100, retrieval.Whole, "1 table and 100 columns are few enough to give whole"},
		{3, 33, retrieval.Whole, "3 tables and 99 columns are few enough to give whole"},
		{1, 101, retrieval.Tables, "1 table and 101 columns are few enough to give whole tables"},
		{4, 2, retrieval.Tables, "4 tables and 8 columns are few enough to give whole tables; all of the database db fits the budget"},
		{7, 42, retrieval.Tables, "7 tables and 294 columns are few enough to give whole tables"},
		{6, 51, retrieval.Retrieval, "6 tables and 306 columns are too many to give whole tables"},
		{8, 20, retrieval.Retrieval, "8 tables and 160 columns are too many to give whole tables"},
		{10_000, 1, retrieval.Retrieval, "10,000 tables and 10,000 columns are too many to give whole tables"},
		{10_001, 1, retrieval.Retrieval, "10,001 tables and 10,001 columns call for exploration, which does not exist yet; retrieval ran"},
	} {
		c := sized(tt.tables, tt.columns).link(t, "heroes", 5000)
		if c.Strategy != tt.want || c.Because != tt.because {
			t.Errorf("%s: %s, want %s: %s", c.Strategy, c.Because, tt.want, tt.because)
		}
	}
}

func TestTheStrategiesGiveWhatTheySay(t *testing.T) {
	d := sized(8, 20)
	s := d.build(t)
	l := newSystem(t, s, 5000).linker
	for _, tt := range []struct {
		strategy        retrieval.Strategy
		tables, columns int
	}{
		{retrieval.Whole, 8, 160},
		{retrieval.Tables, 1, 20},
		{retrieval.Retrieval, 1, 20},
	} {
		c, err := l.LinkBy(context.Background(), tt.strategy, "heroes", acl.Everything(s))
		if err != nil || c.Strategy != tt.strategy {
			t.Fatalf("%s ran for %s, %v", c.Strategy, tt.strategy, err)
		}
		if tables, columns := len(names(c, catalog.KindTable)), len(names(c, catalog.KindColumn)); tables != tt.tables || columns != tt.columns {
			t.Errorf("%s gave %d tables and %d columns, want %d and %d", tt.strategy, tables, columns, tt.tables, tt.columns)
		}
	}
	wide := new(draft).database("db", catalog.SQLite).table("heroes", "", columnsNamed("power", 80)...).table("villains", "", columnsNamed("power", 230)...).build(t)
	for strategy, columns := range map[retrieval.Strategy]int{retrieval.Tables: 80, retrieval.Retrieval: 50} {
		c, err := newSystem(t, wide, 5000).linker.LinkBy(context.Background(), strategy, "heroes", acl.Everything(wide))
		if err != nil || len(names(c, catalog.KindColumn)) != columns {
			t.Errorf("%s gave %d columns of 80, want %d; %v", strategy, len(names(c, catalog.KindColumn)), columns, err)
		}
	}
}

func TestAStrategyThatWasAskedForRunsAndSaysSo(t *testing.T) {
	s := sized(3, 2).build(t)
	l := newSystem(t, s, 5000).linker
	for strategy, because := range map[retrieval.Strategy]string{
		retrieval.Retrieval: "it was asked for; 3 tables and 6 columns are few enough to give whole; all of the database db fits the budget",
		retrieval.Tables:    "it was asked for; 3 tables and 6 columns are few enough to give whole; all of the database db fits the budget",
		retrieval.Whole:     "3 tables and 6 columns are few enough to give whole",
	} {
		if c, err := l.LinkBy(context.Background(), strategy, "heroes", acl.Everything(s)); err != nil || c.Strategy != strategy || c.Because != because {
			t.Errorf("%s: %s, %v, want %s", c.Strategy, c.Because, err, because)
		}
	}
}

func TestAStrategyThatDoesNotExistIsAnErrorThatListsThem(t *testing.T) {
	s := sized(3, 2).build(t)
	for _, name := range []string{"exploration", "Whole", "all"} {
		_, err := newSystem(t, s, 5000).linker.LinkBy(context.Background(), retrieval.Strategy(name), "heroes", acl.Everything(s))
		if !errors.Is(err, retrieval.ErrStrategy) || !strings.Contains(err.Error(), `as "`+name+`"; name one of whole, tables, retrieval`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAllOfADatabaseThatFitsIsGiven(t *testing.T) {
	said := "all of the database shop fits the budget"
	d := shop().pad(20)
	c := d.link(t, "city of customers", 5000)
	if !strings.Contains(c.Because, said) || len(names(c, catalog.KindTable)) != 24 || len(names(c, catalog.KindColumn)) != 56 {
		t.Errorf("%s, with %d tables", c.Because, len(names(c, catalog.KindTable)))
	}
	if names(c, catalog.KindTable)[0] != "shop.customers" {
		t.Errorf("%v does not come first", names(c, catalog.KindTable)[0])
	}
	for why, c := range map[string]retrieval.Context{
		"the budget is small":             d.link(t, "city of customers", 800),
		"there are more than 100 columns": shop().pad(50).link(t, "city of customers", 5000),
	} {
		if strings.Contains(c.Because, said) || len(names(c, catalog.KindTable)) > 4 {
			t.Errorf("though %s: %s, with %v", why, c.Because, names(c, catalog.KindTable))
		}
	}
	farm := shop().pad(20).database("farm", catalog.SQLite).table("fields", "", "id*", "crop").link(t, "city of customers", 5000)
	if slices.Contains(names(farm, catalog.KindTable), "farm.fields") {
		t.Error("another database came along")
	}
}

func TestTheBudgetIsThatOfTheCompletePrompt(t *testing.T) {
	s := sized(1, 250).build(t)
	link := func(c retrieval.Config, question string) retrieval.Context {
		l, err := retrieval.NewLinker(&retrieval.Ranker{Index: local.New(s)}, lineage.New(s), counter, c)
		if err != nil {
			t.Fatal(err)
		}
		out, err := l.Link(context.Background(), question, acl.Everything(s))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	long := "heroes " + strings.Repeat("heroes and powers ", 100)
	for _, tt := range []struct {
		config   retrieval.Config
		question string
	}{{retrieval.Config{Budget: 1000}, "heroes"}, {retrieval.Config{Budget: 1000, Prompt: 600}, "heroes"}, {retrieval.Config{Budget: 1000}, long}} {
		c := link(tt.config, tt.question)
		if n := c.Tokens + counter.Tokens(tt.question) + tt.config.Prompt; n > tt.config.Budget || c.Nothing != "" || n < tt.config.Budget*3/4 {
			t.Errorf("%d of %d tokens are used, %d by the context: %s", n, tt.config.Budget, c.Tokens, c.Nothing)
		}
	}
	if c := link(retrieval.Config{Budget: 300}, long); c.Nothing != "no table that fits the question can be written within the budget of tokens" {
		t.Errorf("a question that fills the budget: %q", c.Nothing)
	}
	for _, c := range []retrieval.Config{{Budget: 1000, Prompt: 801}, {Budget: 1000, Prompt: -1}} {
		if c.Validate() == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

func TestARememberedContextIsOfTheStrategyThatWasAskedFor(t *testing.T) {
	s := sized(3, 2).build(t)
	cached := retrieval.NewCachedLinker(newSystem(t, s, 5000).linker)
	for range 2 {
		for _, asked := range []retrieval.Strategy{"", retrieval.Whole, retrieval.Tables, retrieval.Retrieval} {
			want := asked
			if asked == "" {
				want = retrieval.Whole
			}
			if c, err := cached.LinkBy(context.Background(), asked, "heroes", acl.Everything(s)); err != nil || c.Strategy != want {
				t.Errorf("%q gets %s, %v", asked, c.Strategy, err)
			}
		}
	}
}
