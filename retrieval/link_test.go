package retrieval_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/lineage"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
)

func TestASmallCatalogIsGivenWhole(t *testing.T) {
	d := new(draft).database("db", catalog.SQLite).table("heroes", "", "id*", "name").table("powers", "", "id*", "power").table("planets", "", "id*", "radius")
	c := d.link(t, "How many heroes are there?", 5000)
	if c.Strategy != retrieval.Whole || c.Because != "3 tables and 6 columns are few enough to give whole" {
		t.Errorf("%s: %s", c.Strategy, c.Because)
	}
	if got := names(c, catalog.KindTable); got[0] != "db.heroes" || len(got) != 3 || len(names(c, catalog.KindColumn)) != 6 {
		t.Errorf("context of %v", got)
	}
}

func TestWhatMayBeQueriedDecidesTheStrategy(t *testing.T) {
	s := shop().pad(5).build(t)
	v := compile(t, s, `{version: 1, principals: {p: {roles: [r]}}, grants: [{role: r, allow: [shop.orders], actions: [view, query]}, {role: r, allow: ["*"], actions: [view]}]}`)
	c, err := newSystem(t, s, 5000).linker.Link(context.Background(), "orders by status", v)
	if err != nil || c.Strategy != retrieval.Whole || c.Because != "1 table and 4 columns are few enough to give whole" {
		t.Errorf("%s: %s, %v", c.Strategy, c.Because, err)
	}
}

func TestNothingFitsIsSaidInWords(t *testing.T) {
	s := shop().build(t)
	for _, tt := range []struct {
		question string
		view     acl.View
		nothing  string
	}{
		{"customers", acl.View{}, "nothing here is available to you"},
		{"customers", compile(t, s, `{version: 1, principals: {p: {roles: [r]}}, grants: [{role: r, allow: ["*"], actions: [view]}]}`), "nothing here is available to you"},
		{"xylophone", acl.Everything(s), "no word of the question is known to the catalog that you may see"},
		{"", acl.Everything(s), "no word of the question is known to the catalog that you may see"},
		{"status of xylophone concerts by brass quartets under moonlight", acl.Everything(s), "too little of the question is known to the catalog that you may see"},
	} {
		c, err := newSystem(t, s, 5000).linker.Link(context.Background(), tt.question, tt.view)
		if err != nil || c.Nothing != tt.nothing || c.Text != "" || c.Tokens != 0 || c.Items != nil || c.Joins != nil || c.Database != "" {
			t.Errorf("%q: %+v, %v", tt.question, c, err)
		}
	}
}

func TestTablesBetweenAreAddedWithTheKeysThatJoin(t *testing.T) {
	c := shop().pad(5).link(t, "city by colour", 5000)
	got := names(c, catalog.KindTable)
	for _, want := range []string{"shop.customers", "shop.orders", "shop.order_lines", "shop.products"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %v", want, got)
		}
	}
	if r := item(t, c, "shop.orders").Reason; r != "lies between other tables" {
		t.Errorf("shop.orders: %s", r)
	}
	if r := item(t, c, "shop.orders.customer_id").Reason; !strings.Contains(r, "joins shop.customers and shop.orders") && !strings.Contains(r, "joins shop.orders and shop.customers") {
		t.Errorf("shop.orders.customer_id: %s", r)
	}
	if len(c.Joins) != 3 {
		t.Errorf("joins %+v", c.Joins)
	}
	for _, text := range []string{"FOREIGN KEY (customer_id) REFERENCES customers (id)", "JOIN ", "PRIMARY KEY (order_id, product_id)"} {
		if !strings.Contains(c.Text, text) {
			t.Errorf("the context does not say %s:\n%s", text, c.Text)
		}
	}
}

// turnover is a metric over three tables.
func turnover(d *draft) catalog.Object {
	lines, orders := d.column("order_lines.net_amt").TableRef(), d.column("orders.id").TableRef()
	return catalog.Object{Ref: catalog.MetricRef("turnover"), Description: "what was earned", Synonyms: []string{"sales volume"}, Metric: &catalog.Metric{
		Formula: "SUM(order_lines.net_amt)", Sources: []catalog.Ref{lines, orders}, Columns: []catalog.Ref{d.column("order_lines.net_amt")},
		Time: d.column("orders.ordered_on"), Filters: []string{"orders.status = 'paid'"}, Unit: "EUR",
	}}
}

func TestAMetricBringsWhatItIsComputedFrom(t *testing.T) {
	d := shop().pad(5)
	c := d.add(turnover(d)).link(t, "sales volume", 5000)
	if got := names(c, catalog.KindMetric); !slices.Equal(got, []string{"metric:turnover"}) {
		t.Fatalf("metrics %v", got)
	}
	if r := item(t, c, "metric:turnover").Reason; !strings.Contains(r, `"sales" in its name`) {
		t.Errorf("metric: %s", r)
	}
	for _, column := range []string{"shop.order_lines.net_amt", "shop.orders.ordered_on", "shop.orders.status"} {
		if r := item(t, c, column).Reason; !strings.Contains(r, "needed by metric:turnover") {
			t.Errorf("%s: %s", column, r)
		}
	}
	if len(c.Joins) != 1 || !strings.Contains(c.Text, "SUM(order_lines.net_amt)") {
		t.Errorf("joins %v\n%s", c.Joins, c.Text)
	}
}

func TestAQuestionForAFigureTakesMetricsInMoreReadily(t *testing.T) {
	d := shop().pad(5)
	for _, name := range []string{"gross revenue", "gross weight", "headcount", "churn", "stock"} {
		d.add(catalog.Object{Ref: catalog.MetricRef(name), Metric: &catalog.Metric{Formula: "COUNT(*)", Sources: []catalog.Ref{d.column("orders.id").TableRef()}}})
	}
	for question, want := range map[string]int{"How many orders make the gross revenue?": 2, "List the orders with gross revenue": 1} {
		if got := names(d.link(t, question, 5000), catalog.KindMetric); len(got) != want {
			t.Errorf("%q gets %v, want %d", question, got, want)
		}
	}
}

func TestAMetricKeepsItsTablesWhenTheBudgetIsSmall(t *testing.T) {
	d := shop().pad(5)
	for i := range 8 {
		d.table(fmt.Sprintf("sales_volume_%c", 'a'+i), strings.Repeat("the sales volume of a shop, of which more is said here. ", 4), "sales", "volume", "shop")
	}
	c := d.add(turnover(d)).link(t, "the sales volume of a shop", 400)
	for _, want := range []string{"metric:turnover", "shop.order_lines", "shop.orders", "shop.orders.ordered_on"} {
		item(t, c, want)
	}
	if len(c.Joins) != 1 {
		t.Errorf("joins %v", c.Joins)
	}
	d.objects[len(d.objects)-1].Metric = &catalog.Metric{Formula: "COUNT(*)", Sources: []catalog.Ref{d.column("products.id").TableRef()}}
	item(t, d.link(t, "the sales volume of a shop", 250), "shop.products")
}

func TestPastQueriesOfTheDatabaseAreShown(t *testing.T) {
	d := shop().pad(5)
	q := catalog.Object{Ref: catalog.QueryRef("q7"), Query: &catalog.Query{Question: "customers per city", SQL: "SELECT city, COUNT(*) FROM customers GROUP BY city", Tables: []catalog.Ref{d.column("customers.city").TableRef()}}}
	c := d.add(q).link(t, "how many customers in each city", 5000)
	if item(t, c, "query:q7"); !strings.Contains(c.Text, "SELECT city, COUNT(*)") {
		t.Errorf("text\n%s", c.Text)
	}
}

func TestOtherDatabasesStayOutUnlessARelationshipLeadsThere(t *testing.T) {
	two := func(dialect catalog.Dialect) *draft {
		return new(draft).database("crm", dialect).table("clients", "who buys", "id*", "city").pad(3).
			database("billing", dialect).table("invoices", "what clients owe", "id*", "client_id", "amount")
	}
	question := "amount of invoices of clients by city"
	apart := two(catalog.MySQL).link(t, question, 5000)
	for _, it := range apart.Items {
		if it.Ref.Database != apart.Database {
			t.Errorf("%s is not in %s", it.Ref, apart.Database)
		}
	}
	d := two(catalog.MySQL)
	d.add(catalog.Object{Ref: catalog.RelationshipRef("owes"), Relationship: &catalog.Relationship{
		From: []catalog.Ref{d.column("billing.invoices.client_id")}, To: []catalog.Ref{d.column("crm.clients.id")}, Type: catalog.DocumentedRelationship, Cardinality: catalog.ManyToOne}})
	tied := d.link(t, question, 5000)
	item(t, tied, "billing.invoices.client_id")
	item(t, tied, "crm.clients.city")
	if len(tied.Joins) != 1 || !strings.Contains(tied.Text, "billing.invoices.client_id = crm.clients.id") && !strings.Contains(tied.Text, "crm.clients.id = billing.invoices.client_id") {
		t.Errorf("joins %v\n%s", tied.Joins, tied.Text)
	}
	s := d.build(t)
	v := compile(t, s, `{version: 1, principals: {p: {roles: [r]}}, grants: [{role: r, allow: ["*"], actions: [view, query]}, {role: r, deny: ["relationship:owes"]}]}`)
	c, err := newSystem(t, s, 5000).linker.Link(context.Background(), question, v)
	if err != nil || len(c.Joins) > 0 || slices.ContainsFunc(c.Items, func(it retrieval.Item) bool { return it.Ref.Database != c.Database }) {
		t.Errorf("without the relationship: %v\n%s", err, c.Text)
	}
}

func TestWhatSQLCannotNameIsLeftOut(t *testing.T) {
	d := shop().pad(5).table("customers\nevil", "customers", "id").table("customer_notes", "notes on customers", "id", "note\x00", "note")
	c := d.link(t, "notes on customers", 5000)
	item(t, c, "shop.customer_notes.note")
	for _, it := range c.Items {
		if strings.ContainsAny(it.Ref.Table+it.Ref.Column, "\n\x00") {
			t.Errorf("%q is in the context", it.Ref)
		}
	}
}

func TestWithheldNamesWhatIsHiddenAmongTheBest(t *testing.T) {
	s := shop().build(t)
	l := newSystem(t, s, 5000).linker
	v := compile(t, s, `{version: 1, principals: {p: {roles: [r]}}, grants: [{role: r, allow: ["*"], actions: [view, query]}, {role: r, deny: [shop.customers.city, shop.products]}]}`)
	got, err := l.Withheld(context.Background(), "customers by city and product colour", v)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(got)
	for _, want := range []string{"shop.products", "shop.products.colour", "shop.customers.city"} {
		if !slices.ContainsFunc(got, func(r catalog.Ref) bool { return r.String() == want }) {
			t.Errorf("%s is not among %s", want, text)
		}
	}
	for _, r := range got {
		if id, _ := s.ID(r); v.Queryable(id) {
			t.Errorf("%s is not hidden", r)
		}
	}
	for question, v := range map[string]acl.View{"customers": acl.Everything(s), "": v, "xylophone": v} {
		if got, err := l.Withheld(context.Background(), question, v); err != nil || len(got) > 0 {
			t.Errorf("%q: %v, %v", question, got, err)
		}
	}
}

func TestACancelledQuestionEnds(t *testing.T) {
	s := shop().build(t)
	l := newSystem(t, s, 5000).linker
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Link(ctx, "customers", acl.Everything(s)); err != context.Canceled {
		t.Errorf("Link: %v", err)
	}
	if _, err := l.Withheld(ctx, "customers", acl.Everything(s)); err != context.Canceled {
		t.Errorf("Withheld: %v", err)
	}
}

func TestABudgetThatHoldsNothingIsRefused(t *testing.T) {
	s := shop().build(t)
	if _, err := retrieval.NewLinker(&retrieval.Ranker{Index: local.New(s)}, lineage.New(s), counter, retrieval.Config{Budget: 199}); err == nil {
		t.Error("a budget of 199 tokens was taken")
	}
}

// wide draws a catalog with tables of up to a thousand columns, long texts and keys of several columns.
func wide(t *rapid.T) *draft {
	d := new(draft).database("db", rapid.SampledFrom([]catalog.Dialect{catalog.SQLite, catalog.MySQL, catalog.Postgres, catalog.TSQL}).Draw(t, "dialect"))
	text := rapid.SampledFrom([]string{"", "the plan", "plan?! (x)", strings.Repeat("a plan of the revenue, ", 20), strings.Repeat("销售额", 60), "🙂🙂\u00a0plan  \n x "})
	for i := range rapid.IntRange(1, 8).Draw(t, "tables") {
		size := rapid.SampledFrom([]int{1, 4, 30, 1000}).Draw(t, "columns")
		columns := columnsNamed(rapid.SampledFrom([]string{"plan", "revenue_of_the_plan", "größe", "Order By"}).Draw(t, "word"), size)
		for j := range min(size, rapid.IntRange(0, 30).Draw(t, "key")) {
			columns[j] += "*"
		}
		columns[0] += ": " + text.Draw(t, "about")
		d.table(fmt.Sprintf("%s_%d", rapid.SampledFrom([]string{"plan", "t", "a b"}).Draw(t, "name"), i), text.Draw(t, "about"), columns...)
	}
	return d
}

func TestAContextNeverExceedsItsBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := catalog.Build(wide(t).parts())
		if err != nil {
			t.Fatal(err)
		}
		budget := rapid.IntRange(200, 5000).Draw(t, "budget")
		y := newSystem(t, s, budget)
		question := rapid.SampledFrom([]string{"plan", "revenue of the plan", "größe by plan", "order plan 销售额"}).Draw(t, "question")
		c, err := y.linker.Link(context.Background(), question, acl.Everything(s))
		if err != nil {
			t.Fatal(err)
		}
		if c.Tokens != counter.Tokens(c.Text) || c.Tokens > budget {
			t.Fatalf("%d tokens are said, %d of at most %d are there:\n%s", c.Tokens, counter.Tokens(c.Text), budget, c.Text)
		}
		if (c.Nothing == "") == (c.Text == "" || len(c.Items) == 0) {
			t.Fatalf("%d items, %q, and nothing is %q", len(c.Items), c.Text, c.Nothing)
		}
		again, err := newSystem(t, s, budget).linker.Link(context.Background(), question, acl.Everything(s))
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Fatalf("the same question got\n%+v and\n%+v", c, again)
		}
	})
}

func (d *draft) parts() ([]catalog.Database, []catalog.Object) { return d.databases, d.objects }

func TestEveryTableGetsAFewColumnsBeforeOneGetsMany(t *testing.T) {
	d := new(draft).database("db", catalog.SQLite).table("plan", "the plan", columnsNamed("plan_of_the_company_for_this_year_and_the_next", 1000)...)
	for _, name := range []string{"plan_of_sales", "plan_of_staff", "plan_of_stock"} {
		d.table(name, "another plan", columnsNamed("thing", 40)...)
	}
	for _, budget := range []int{500, 1000, 5000} {
		c := d.link(t, "plan", budget)
		count := map[string]int{}
		for _, it := range c.Items {
			if it.Ref.Kind == catalog.KindColumn {
				count[it.Ref.Table]++
			}
		}
		if len(count) != 4 {
			t.Errorf("budget %d: columns of %v", budget, count)
		}
		for table, n := range count {
			if n < 3 {
				t.Errorf("budget %d: %d columns of %s", budget, n, table)
			}
		}
	}
}

func TestWhatAKindLeavesOverGoesToTheNext(t *testing.T) {
	d := new(draft).database("db", catalog.SQLite)
	for i := range 4 {
		d.table(fmt.Sprintf("plan_%c", 'a'+i), strings.Repeat("much is said of this plan here and there ", 7), columnsNamed("plan", 12)...)
	}
	// Four tables of 90 tokens and more do not fit into 30% of the budget; what joins, metrics and queries leave makes room.
	if c := d.link(t, "plan", 900); len(names(c, catalog.KindTable)) != 4 {
		t.Errorf("tables %v in %d tokens", names(c, catalog.KindTable), c.Tokens)
	}
	// Columns take all that is left.
	if c := d.link(t, "plan", 570); c.Tokens < 500 || len(names(c, catalog.KindTable)) < 3 {
		t.Errorf("%d of 570 tokens are used", c.Tokens)
	}
}

func TestATableThatIsTooLongForItsShareStillGivesAContext(t *testing.T) {
	long := strings.Repeat("revenue_of_the_whole_company_", 9)
	d := new(draft).database("db", catalog.SQLite).table("plan_"+long, "the plan", "id*", "amount", "note").pad(5)
	c := d.link(t, "plan", 200)
	if c.Nothing != "" || len(names(c, catalog.KindTable)) == 0 {
		t.Errorf("nothing: %q", c.Nothing)
	}
	part := new(draft).database("db", catalog.SQLite).table("plan", "the plan", "a"+long, "b"+long, "c"+long).pad(5).link(t, "plan", 200)
	if got := names(part, catalog.KindColumn); len(got) != 2 || len(names(part, catalog.KindTable)) != 1 {
		t.Errorf("of three long columns %d stand in %d tokens", len(got), part.Tokens)
	}
	huge := new(draft).database("db", catalog.SQLite).table("plan_"+strings.Repeat(long, 4), "the plan", "id*").pad(5)
	if c := huge.link(t, "plan", 200); c.Nothing == "" || c.Text != "" || c.Items != nil || c.Tokens != 0 {
		t.Errorf("%q with %d items", c.Nothing, len(c.Items))
	}
}

func TestScoresAndReasonsStandBestFirst(t *testing.T) {
	c := shop().pad(5).link(t, "product colour and weight", 5000)
	if got := names(c, catalog.KindTable); got[0] != "shop.products" {
		t.Errorf("tables %v", got)
	}
	last := 0.0
	for _, it := range c.Items {
		if it.Reason == "" {
			t.Errorf("%s stands there without a reason", it.Ref)
		}
		if it.Ref.Kind == catalog.KindTable {
			last = 0
		} else if last > 0 && it.Score > last {
			t.Errorf("%s has %v and comes after %v", it.Ref, it.Score, last)
		} else {
			last = it.Score
		}
	}
	if r := item(t, c, "shop.products.colour").Reason; r != `"colour" in its name` {
		t.Errorf("colour: %s", r)
	}
	if r := item(t, c, "shop.products.title").Reason; r != "stands in shop.products" {
		t.Errorf("title: %s", r)
	}
	ids := c.IDs(catalog.KindTable)
	if len(ids) != len(names(c, catalog.KindTable)) {
		t.Errorf("ids %v", ids)
	}
}

func TestOnlyTheBestOfAKindAreShown(t *testing.T) {
	d := new(draft).database("db", catalog.SQLite).table("archive", "", columnsNamed("thing", 60)...)
	for i := range 30 {
		name := fmt.Sprintf("plan_%c%c", 'a'+i/26, 'a'+i%26)
		d.table(name, "", "id*", "budget")
		r := d.column(name + ".id").TableRef()
		d.add(catalog.Object{Ref: catalog.MetricRef("plan " + name), Metric: &catalog.Metric{Formula: "COUNT(*)", Sources: []catalog.Ref{r}}},
			catalog.Object{Ref: catalog.QueryRef(name), Query: &catalog.Query{Question: "the plan", Tables: []catalog.Ref{r}}})
	}
	c := d.link(t, "plan", 5000)
	if m, q, n := names(c, catalog.KindMetric), names(c, catalog.KindQuery), names(c, catalog.KindTable); len(m) != 5 || len(q) != 5 || len(n) > 25 {
		t.Errorf("%d metrics, %d queries, %d tables", len(m), len(q), len(n))
	}
	other := d.table("zoo", "the plan plan plan", "keeper").link(t, "zoo keeper plan", 5000)
	if got := names(other, catalog.KindTable); got[0] != "db.zoo" {
		t.Errorf("tables %v", got)
	}
}

func TestMetricsAndQueriesOfOtherDatabasesStayOut(t *testing.T) {
	d := shop().pad(5).database("farm", catalog.SQLite).table("fields", "", "id*", "crop")
	r := d.column("farm.fields.id").TableRef()
	d.add(catalog.Object{Ref: catalog.MetricRef("city yield"), Metric: &catalog.Metric{Formula: "COUNT(*)", Sources: []catalog.Ref{r}}},
		catalog.Object{Ref: catalog.QueryRef("q"), Query: &catalog.Query{Question: "yield per city", Tables: []catalog.Ref{r}}})
	c := d.link(t, "customers and orders and products by city", 5000)
	if c.Database != "shop" || len(names(c, catalog.KindMetric))+len(names(c, catalog.KindQuery)) > 0 {
		t.Errorf("%s with %v and %v", c.Database, names(c, catalog.KindMetric), names(c, catalog.KindQuery))
	}
}
