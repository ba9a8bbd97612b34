package sqlite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/sqlite"
)

const (
	lineageDDL = `CREATE TABLE client(id INTEGER PRIMARY KEY, tenant INTEGER, Name TEXT, ssn TEXT);
CREATE TABLE invoice(id INTEGER PRIMARY KEY, tenant INTEGER, client_id INTEGER, amount REAL);
CREATE TABLE region(k INTEGER, title TEXT);
CREATE VIEW total(client, sum, one) AS SELECT client_id, sum(amount), 1 FROM invoice WHERE tenant > 0 GROUP BY client_id;
CREATE VIEW big AS SELECT t.*, client + 1 FROM total t WHERE sum > 10;
`
	lineagePolicy = `version: 1
principals: {asker: {roles: [reader], attributes: {tenant: 7}}}
grants:
  - {role: reader, allow: ["*"], actions: [view, query]}
  - {role: reader, deny: [db.client.ssn]}
row_filters:
  - {table: db.invoice, roles: [reader], using: "tenant = {{ principal.tenant }}"}
masks:
  - {column: db.client.Name, roles: [reader], with: partial}
`
)

// TestLineageFollowsColumnsToBaseTables gives each result column as NAME TRANSFORM(COLUMNS), and after a bar the columns
// that choose rows. The names are those that SQLite gives the guarded statement.
func TestLineageFollowsColumnsToBaseTables(t *testing.T) {
	db := open(t, lineageDDL)
	for _, c := range []struct{ statement, want string }{
		{"SELECT 1", "1 transformation()"},
		{"SELECT name FROM client", "Name identity(client.Name)"},
		{"SELECT NAME AS n, (id) FROM client", "n identity(client.Name), id identity(client.id)"},
		{"SELECT * FROM client", "id identity(client.id), tenant identity(client.tenant), Name identity(client.Name)"},
		{"SELECT c.*, i.amount FROM client c, invoice i", "id identity(client.id), tenant identity(client.tenant), Name identity(client.Name), amount identity(invoice.amount)"},
		{"SELECT id, id FROM client", "id identity(client.id), id identity(client.id)"},
		{"SELECT amount * 2 + id AS x FROM invoice", "x transformation(invoice.amount invoice.id)"},
		{"SELECT count(*), sum(amount) FROM invoice", "count(*) aggregation(), sum(amount) aggregation(invoice.amount)"},
		{"SELECT max(id, tenant), max(id) FROM invoice", "max(id, tenant) transformation(invoice.id invoice.tenant), max(id) aggregation(invoice.id)"},
		{"SELECT CASE WHEN tenant = 1 THEN amount ELSE 0 END AS x FROM invoice", "x transformation(invoice.tenant invoice.amount)"},
		{"SELECT amount FROM invoice WHERE tenant = 1 AND client_id > id", "amount identity(invoice.amount) | invoice.tenant invoice.client_id invoice.id"},
		{"SELECT amount a FROM invoice WHERE a > 1 ORDER BY tenant", "a identity(invoice.amount) | invoice.amount"},
		{"SELECT client_id, sum(amount) s FROM invoice GROUP BY client_id HAVING count(tenant) > 1", "client_id identity(invoice.client_id), s aggregation(invoice.amount) | invoice.tenant"},
		{"SELECT c.Name FROM client c LEFT JOIN invoice i ON i.client_id = c.id", "Name identity(client.Name) | invoice.client_id client.id"},
		{"SELECT tenant FROM client JOIN invoice USING (tenant)", "tenant identity(client.tenant invoice.tenant) | client.tenant invoice.tenant"},
		{"SELECT amount FROM client NATURAL JOIN invoice", "amount identity(invoice.amount) | client.id invoice.id client.tenant invoice.tenant"},
		{"SELECT x + 1 AS y FROM (SELECT amount AS x FROM invoice WHERE id = 1) WHERE x > 2", "y transformation(invoice.amount) | invoice.id invoice.amount"},
		{"SELECT x FROM (SELECT sum(amount) AS x FROM invoice)", "x aggregation(invoice.amount)"},
		{"SELECT (SELECT name FROM client WHERE id = i.client_id) AS n FROM invoice i", "n identity(client.Name) | client.id invoice.client_id"},
		{"SELECT id FROM client WHERE EXISTS (SELECT amount FROM invoice WHERE client_id = client.id)", "id identity(client.id) | invoice.client_id client.id"},
		{"SELECT id FROM client WHERE id IN (SELECT client_id FROM invoice WHERE amount > 1)", "id identity(client.id) | client.id invoice.client_id invoice.amount"},
		{"SELECT id IN (SELECT client_id FROM invoice) AS x FROM client", "x transformation(client.id invoice.client_id)"},
		{"SELECT id FROM client UNION SELECT client_id + 1 FROM invoice ORDER BY id", "id transformation(client.id invoice.client_id)"},
		{"SELECT 1 AS x UNION ALL VALUES (2) UNION ALL SELECT id FROM client", "x transformation(client.id)"},
		{"VALUES (1, (SELECT max(id) FROM client))", "column1 transformation(), column2 aggregation(client.id)"},
		{"WITH a AS (SELECT id AS x, tenant FROM client), b(y, z) AS (SELECT * FROM a) SELECT z, y FROM b", "z identity(client.tenant), y identity(client.id)"},
		{"WITH RECURSIVE r(a, b) AS (SELECT id, 0 FROM client UNION SELECT b, amount FROM r JOIN invoice ON invoice.id = a) SELECT a FROM r",
			"a transformation(client.id invoice.amount) | invoice.id client.id invoice.amount"},
		{"SELECT row_number() OVER (PARTITION BY client_id ORDER BY amount) AS n FROM invoice", "n aggregation(invoice.client_id invoice.amount)"},
		{"SELECT sum(id) OVER w AS n FROM invoice WINDOW w AS (PARTITION BY tenant ORDER BY amount)", "n aggregation(invoice.id invoice.tenant invoice.amount)"},
		{"SELECT count(*) FILTER (WHERE tenant = 1) AS n FROM invoice", "n aggregation(invoice.tenant)"},
		{"SELECT rowid, title FROM region", "rowid identity(), title identity(region.title)"},
		{"SELECT rowid FROM (SELECT 1 AS rowid)", "rowid transformation()"},
		{"SELECT j.value FROM client c, json_each(c.name) j", "value transformation(client.Name)"},
		{"SELECT * FROM total WHERE client = 1", "client identity(invoice.client_id), sum aggregation(invoice.amount), one transformation() | invoice.tenant invoice.client_id"},
		{`SELECT b.* FROM big b`, "client identity(invoice.client_id), sum aggregation(invoice.amount), one transformation(), client + 1 transformation(invoice.client_id) | invoice.tenant invoice.amount"},
	} {
		st, err := rewrite.NewGuard(sqlite.New(), 0).Rewrite(c.statement, newSchema(t, lineageDDL, lineagePolicy))
		if err != nil {
			t.Errorf("%s: %v", c.statement, err)
			continue
		}
		var columns, names []string
		for _, o := range st.Output() {
			var from []string
			for _, r := range o.From {
				from = append(from, r.Table+"."+r.Column)
			}
			columns = append(columns, fmt.Sprintf("%s %s(%s)", o.Name, o.Transform, strings.Join(from, " ")))
			names = append(names, o.Name)
		}
		got := strings.Join(columns, ", ")
		for i, r := range st.Filters() {
			if i == 0 {
				got += " |"
			}
			got += " " + r.Table + "." + r.Column
		}
		if got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.statement, got, c.want)
		}
		rows, err := db.Query(st.Text())
		if err != nil {
			t.Errorf("%v in %s", err, st.Text())
			continue
		}
		if have, _ := rows.Columns(); !slices.Equal(have, names) {
			t.Errorf("%s: SQLite calls the columns %q, the lineage %q", c.statement, have, names)
		}
		rows.Close()
	}
}
