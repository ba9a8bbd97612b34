package mysql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/mysql"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

const lineageDDL = fuzzDDL + `
CREATE VIEW total AS SELECT client_id AS client, sum(amount) AS sum, 1 AS one FROM invoice WHERE tenant > 0 GROUP BY client_id;
CREATE VIEW big (who, much) AS SELECT client, sum FROM total WHERE sum > 5;`

// TestLineage gives each result column as NAME TRANSFORM(COLUMNS), and after a bar the columns by which the statement
// chooses rows.
func TestLineage(t *testing.T) {
	guard := rewrite.NewGuard(mysql.New(), 0)
	for _, c := range []struct{ in, want string }{
		{"select 1", "1 transformation()"},
		{"select id from invoice", "id identity(invoice.id)"},
		{"select (id) as x, i.ID from invoice i", "x identity(invoice.id), ID identity(invoice.id)"},
		{"select * from region", "id identity(region.id), name identity(region.name)"},
		{"select r.*, c.id from client c, region r", "id identity(region.id), name identity(region.name), id identity(client.id)"},
		{"select amount * 2 + id as x from invoice", "x transformation(invoice.amount invoice.id)"},
		{"select amount+amount from invoice", "amount+amount transformation(invoice.amount)"},
		{"select case when tenant = 1 then amount else 0 end as x from invoice", "x transformation(invoice.tenant invoice.amount)"},
		{"select if(tenant, amount, id) as x from invoice", "x transformation(invoice.tenant invoice.amount invoice.id)"},
		{"select count(*), sum(amount), max(memo) from invoice", "count(*) aggregation(), sum(amount) aggregation(invoice.amount), max(memo) aggregation(invoice.memo)"},
		{"select group_concat(memo order by id) as x from invoice", "x aggregation(invoice.memo invoice.id)"},
		{"select rank() over (partition by tenant order by amount) as x from invoice", "x aggregation(invoice.tenant invoice.amount)"},
		{"select sum(id) over w as x, rank() over (w order by id) as y from invoice window w as (partition by tenant)", "x aggregation(invoice.id invoice.tenant), y aggregation(invoice.tenant invoice.id)"},
		{"select sum(id) over v as x from invoice window w as (partition by tenant), v as (w order by memo)", "x aggregation(invoice.id invoice.tenant invoice.memo)"},
		{"select x + 1 as y from (select amount as x from invoice where id = 1) d where x > 2", "y transformation(invoice.amount) | invoice.id invoice.amount"},
		{"select s from (select sum(amount) as s from invoice group by tenant having count(memo) > 1) d", "s aggregation(invoice.amount) | invoice.memo"},
		{"select sum(amount) as s from invoice group by tenant having s > 1", "s aggregation(invoice.amount) | invoice.amount"},
		{"with x (a, b) as (select id, amount + 1 from invoice) select b, a from x", "b transformation(invoice.amount), a identity(invoice.id)"},
		{"select id from client union select client_id + 1 from invoice order by id", "id transformation(client.id invoice.client_id)"},
		{"select * from (select id from region union all select amount from invoice union all select 1) x", "id transformation(region.id invoice.amount)"},
		{"select c.id from client c join invoice i on i.client_id = c.id where i.amount > 1 and c.tenant = 7", "id identity(client.id) | invoice.client_id client.id invoice.amount client.tenant"},
		{"select * from region join client using (name, id)", "id identity(region.id), name identity(region.name), tenant identity(client.tenant), region_id identity(client.region_id) | region.name client.name region.id client.id"},
		{"select id, name from region right join client using (name)", "ambiguous"},
		{"select name, region.name as n from region right join client using (name)", "name identity(client.name), n identity(region.name) | region.name client.name"},
		{"select * from region r natural right join client", "id identity(client.id), name identity(client.name), tenant identity(client.tenant), region_id identity(client.region_id) | region.id client.id region.name client.name"},
		{"select (select max(amount) from invoice i where i.client_id = c.id) as x from client c", "x aggregation(invoice.amount) | invoice.client_id client.id"},
		{"select (select name from region where id = 1) as x", "x identity(region.name) | region.id"},
		{"select exists (select amount from invoice where memo = 'a') as x", "x transformation() | invoice.memo"},
		{"select id in (select client_id from invoice) as x from client", "x transformation(client.id invoice.client_id)"},
		{"select id from client where id in (select client_id from invoice where amount > 1) and exists (select tenant from invoice)", "id identity(client.id) | client.id invoice.amount invoice.client_id"},
		{"with recursive t (n) as (select id from region union all select n + 1 from t where n < 5) select n from t", "n transformation(region.id) | region.id"},
		{"with recursive t (a, b) as (select id, tenant from client union all select b, (select max(amount) from invoice) from t) select a from t", "a aggregation(client.id client.tenant invoice.amount)"},
		{"with recursive t (a, b) as (select 1, id from client union all select b, a from t where b > 1), u as (select a from t) select * from u where a > 0",
			"a transformation(client.id) | client.id"},
		{"select * from total where client = 1", "client identity(invoice.client_id), sum aggregation(invoice.amount), one transformation() | invoice.tenant invoice.client_id"},
		{"select much, who + 1 as w from big b", "much aggregation(invoice.amount), w transformation(invoice.client_id) | invoice.tenant invoice.amount"},
		{"select distinct memo from invoice order by amount limit 3", "memo identity(invoice.memo)"},
	} {
		schema, err := rewritetest.NewSchema(mysql.New(), lineageDDL, fuzzPolicy)
		if err != nil {
			t.Fatal(err)
		}
		st, err := guard.Rewrite(c.in, schema)
		if err != nil {
			if c.want != "ambiguous" {
				t.Errorf("%s: %v", c.in, err)
			}
			continue
		}
		var columns []string
		for _, o := range st.Output() {
			columns = append(columns, fmt.Sprintf("%s %s(%s)", o.Name, o.Transform, short(o.From)))
		}
		got := strings.Join(columns, ", ")
		if filters := short(st.Filters()); filters != "" {
			got += " | " + filters
		}
		if got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.in, got, c.want)
		}
	}
}

func short(refs []catalog.Ref) string {
	var names []string
	for _, r := range refs {
		names = append(names, r.Table+"."+r.Column)
	}
	return strings.Join(names, " ")
}
