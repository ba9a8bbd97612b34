package retrieval_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// dated is a catalog with a table of events for each day of January 2024, and others.
func dated() *draft {
	d := shop().pad(40)
	for day := 1; day <= 31; day++ {
		d.table(fmt.Sprintf("events_202401%02d", day), "what visitors did", "id*", "visitor", "clicked_on")
	}
	return d
}

func members(it retrieval.Item) []string {
	var out []string
	for _, r := range it.Members {
		out = append(out, r.Table)
	}
	return out
}

func TestDatedTablesStandInTheContextOnce(t *testing.T) {
	c := dated().link(t, "what did visitors click", 5000)
	shown := item(t, c, "shop.events_20240131")
	if m := members(shown); len(m) != 31 || m[0] != "events_20240101" || m[30] != "events_20240131" {
		t.Errorf("members %v", m)
	}
	if !strings.Contains(c.Text, "one of 31 alike: events_20240101 to events_20240131; what visitors did") {
		t.Errorf("text\n%s", c.Text)
	}
	if n := strings.Count(c.Text, "CREATE TABLE events"); n != 1 {
		t.Errorf("%d tables of events", n)
	}
	if it := item(t, c, "shop.events_20240131.clicked_on"); it.Members != nil || it.Role != retrieval.RoleProjection {
		t.Errorf("column %+v", it)
	}
	small := dated().link(t, "visitor", 250)
	if got := names(small, catalog.KindTable); !slices.Equal(got, []string{"shop.events_20240131"}) {
		t.Errorf("in little room: %v", got)
	}
}

func TestTheMemberThatAQuestionNamesIsShown(t *testing.T) {
	for question, want := range map[string][]string{
		"what did visitors click on 2024-01-05":         {"shop.events_20240105"},
		"what did visitors click on 20240105":           {"shop.events_20240105"},
		"was klickten visitors am 5.1.2024":             {"shop.events_20240105"},
		"clicks of visitors in events_20240105":         {"shop.events_20240105"},
		"clicks of visitors in EVENTS_20240105?":        {"shop.events_20240105"},
		"clicks of visitors 2024-01-05 to 2024-01-07":   {"shop.events_20240105", "shop.events_20240107"},
		"what did visitors click on 2023-01-05":         {"shop.events_20240131"},
		"what did visitors click in 2024":               {"shop.events_20240131"},
		"what did visitors click, my_events_20240105x?": {"shop.events_20240131"},
	} {
		got := slices.DeleteFunc(names(dated().link(t, question, 5000), catalog.KindTable), func(n string) bool { return !strings.Contains(n, "events") })
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q shows %v, want %v", question, got, want)
		}
	}
}

func TestAMemberIsJudgedAsTheOneThatLeadsIt(t *testing.T) {
	d := dated()
	d.objects[len(d.objects)-1].Description = "the colour of the button"
	c := d.link(t, "which colour did visitors like on 2024-01-05", 5000)
	if it := item(t, c, "shop.events_20240105.clicked_on"); it.Parts.Own <= 0 || !strings.Contains(it.Reason, `"colour" in its description`) {
		t.Errorf("%+v", it)
	}
}

func TestWhatMakesTablesAlike(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second string
		columns       [2][]string
		newest        string // empty if they are not alike
	}{
		{"a date", "sales_20231231", "sales_20240101", [2][]string{{"id", "net"}, {"id", "net"}}, "sales_20240101"},
		{"columns in another order", "sales_2023", "sales_2024", [2][]string{{"net", "id"}, {"id", "net"}}, "sales_2024"},
		{"a month", "sales_202312", "sales_202401", [2][]string{{"id"}, {"id"}}, "sales_202401"},
		{"a quarter within the name", "2022_q4_sales", "2023_q1_sales", [2][]string{{"id"}, {"id"}}, "2023_q1_sales"},
		{"a quarter before the year", "sales_q4_2022", "sales_q1_2023", [2][]string{{"id"}, {"id"}}, "sales_q1_2023"},
		{"the day first", "sales_31122023", "sales_01012024", [2][]string{{"id"}, {"id"}}, "sales_01012024"},
		{"a running number", "sales_9", "sales_10", [2][]string{{"id"}, {"id"}}, "sales_10"},
		{"another column", "sales_2023", "sales_2024", [2][]string{{"id", "net"}, {"id", "gross"}}, ""},
		{"a column more", "sales_2023", "sales_2024", [2][]string{{"id", "net"}, {"id"}}, ""},
		{"another name", "sales_2023", "sale_2024", [2][]string{{"id"}, {"id"}}, ""},
		{"no number", "sales", "sales_2024", [2][]string{{"id"}, {"id"}}, ""},
	} {
		d := new(draft).database("db", catalog.SQLite).table(tt.first, "", tt.columns[0]...).table(tt.second, "", tt.columns[1]...)
		c := d.link(t, "sales", 5000)
		if tt.newest == "" {
			if n := len(names(c, catalog.KindTable)); n != 2 {
				t.Errorf("%s: %d tables, want both", tt.name, n)
			}
		} else if got := names(c, catalog.KindTable); !slices.Equal(got, []string{"db." + tt.newest}) {
			t.Errorf("%s: %v, want the newest", tt.name, got)
		}
	}
	typed := new(draft).database("db", catalog.SQLite).table("sales_2023", "", "id").table("sales_2024", "", "id")
	typed.objects[1].Column.Type = "INTEGER"
	if n := len(names(typed.link(t, "sales", 5000), catalog.KindTable)); n != 2 {
		t.Errorf("columns of two types: %d tables, want both", n)
	}
	apart := new(draft).database("a", catalog.MySQL).table("sales_2023", "", "id").database("b", catalog.MySQL).table("sales_2024", "", "id")
	if it := item(t, apart.link(t, "sales", 5000), "a.sales_2023"); it.Members != nil {
		t.Errorf("tables of two databases are alike: %v", it.Members)
	}
}

func TestTablesAreAlikeByWhatThePrincipalMaySee(t *testing.T) {
	d := shop().pad(40)
	for year := 2020; year <= 2025; year++ {
		d.table(fmt.Sprintf("events_%d", year), "", "id*", "visitor", fmt.Sprintf("note_of_%d", year))
	}
	s := d.build(t)
	l := newSystem(t, s, 5000).linker
	ask := func(policy string) retrieval.Context {
		c, err := l.Link(context.Background(), "visitor", compile(t, s, `{version: 1, principals: {p: {roles: [r]}}, grants: [{role: r, allow: ["*"], actions: [view, query]}, `+policy+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	var notes []string
	for year := 2020; year <= 2025; year++ {
		notes = append(notes, fmt.Sprintf("shop.events_%d.note_of_%d", year, year))
	}
	c := ask(`{role: r, deny: [` + strings.Join(notes, ", ") + `]}, {role: r, deny: [shop.events_2025]}`)
	if m := members(item(t, c, "shop.events_2024")); !slices.Equal(m, []string{"events_2020", "events_2021", "events_2022", "events_2023", "events_2024"}) {
		t.Errorf("without the notes and 2025: %v", m)
	}
	if strings.Contains(c.Text, "2025") || !strings.Contains(c.Text, "one of 5 alike: events_2020 to events_2024") {
		t.Errorf("text\n%s", c.Text)
	}
	if it := item(t, ask(`{role: r, deny: [shop.pad_aa]}`), "shop.events_2024"); it.Members != nil {
		t.Errorf("with the notes: %v", it.Members)
	}
}

func TestAMetricOverAMemberShowsThatMember(t *testing.T) {
	d := dated()
	day := d.column("events_20240110.id").TableRef()
	d.add(catalog.Object{Ref: catalog.MetricRef("clicks of the campaign"), Metric: &catalog.Metric{Formula: "COUNT(*)", Sources: []catalog.Ref{day}}})
	c := d.link(t, "clicks of the campaign", 5000)
	item(t, c, "shop.events_20240110")
	if n := strings.Count(c.Text, "CREATE TABLE events"); n != 1 {
		t.Errorf("%d tables of events", n)
	}
}

func TestJoinsLeadThroughOneMemberAlone(t *testing.T) {
	d := new(draft).database("web", catalog.SQLite).table("visitors", "who came", "id*", "country").table("pages", "what is there", "id*", "headline").pad(60)
	for year := 2020; year <= 2025; year++ {
		name := fmt.Sprintf("hits_%d", year)
		d.table(name, "", "visitor_id", "page_id").key(name + ".visitor_id -> visitors.id").key(name + ".page_id -> pages.id")
	}
	c := d.link(t, "headline of pages by country of visitors", 5000)
	item(t, c, "web.hits_2025.visitor_id")
	if n := strings.Count(c.Text, "CREATE TABLE hits"); n != 1 || len(c.Joins) != 2 {
		t.Errorf("%d tables and %d joins\n%s", n, len(c.Joins), c.Text)
	}
}

func TestTablesOfOneNameAreToldApartByWhatThePrincipalMaySee(t *testing.T) {
	var objects []catalog.Object
	for _, schema := range []string{"finance", "staging"} {
		objects = append(objects, catalog.Object{Ref: catalog.TableRef("dw", schema, "orders"), Table: &catalog.Table{}},
			catalog.Object{Ref: catalog.ColumnRef("dw", schema, "orders", "amount"), Column: &catalog.Column{Type: "numeric"}})
	}
	s, err := catalog.Build([]catalog.Database{{Name: "dw", Dialect: catalog.Postgres}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	l := newSystem(t, s, 5000).linker
	for _, schema := range []string{"finance", "staging"} {
		c, err := l.Link(context.Background(), "amount of orders", compile(t, s, `{version: 1, principals: {p: {roles: [r]}}, grants: [{role: r, allow: [dw.`+schema+`], actions: [view, query]}]}`))
		if got := names(c, catalog.KindTable); err != nil || !slices.Equal(got, []string{"dw." + schema + ".orders"}) || !strings.Contains(c.Text, schema+".orders") {
			t.Errorf("who may see %s gets %v, %v", schema, got, err)
		}
	}
	both, err := l.Link(context.Background(), "amount of orders", acl.Everything(s))
	if got := names(both, catalog.KindTable); err != nil || len(got) != 2 || item(t, both, "dw.finance.orders").Members != nil {
		t.Errorf("who may see both gets %v, %v", got, err)
	}
}
