package mysql_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/mysql"
)

// TestColumnsThatTheCatalogDoesNotHoldStayOutOfSight adds columns to the database after the catalog was read, with
// names that statements use for other things. Guarded statements give what they gave before.
func TestColumnsThatTheCatalogDoesNotHoldStayOutOfSight(t *testing.T) {
	const database = "schemagate_stale"
	conn := newDatabase(t, server(t), database)
	const ddl = viewTables + "CREATE VIEW v AS SELECT r.id, r.name, amount FROM region r JOIN invoice ON invoice.id = r.id + 9;"
	exec(t, conn, ddl+viewRows)
	policies := map[string]string{
		"nothing hidden": "",
		"filtered":       "row_filters: [{table: schemagate_stale.client, roles: [r], using: \"exists (select * from region where region_id = id)\"}]\n",
	}
	guard := rewrite.NewGuard(mysql.New(), 0)
	statements := []string{
		"select * from region",
		"select r.*, c.name from region r join client c on c.region_id = r.id",
		"select * from (select * from region) x",
		"select count(*) from region natural join client",
		"select count(*) from client join region r using (name)",
		"select count(*) from client c join region r on c.region_id = r.id join invoice i using (tenant)",
		"select (select count(*) from region where id = amount) from invoice",
		"select id from region where exists (select 1 from vault where name = val)",
		"select id from client c where exists (select 1 from region where region.id = c.region_id and tenant = 7)",
		"select name as memo, count(*) from region group by memo",
		"select id + 1 as tenant from region having tenant > 2",
		"select id + 1 as tenant from region order by tenant desc, -tenant",
		"select amount, ssn from client, invoice where client_id = client.id",
		"select (select amount from vault where id = 1) from invoice",
		"select id from region r where 7 in (select tenant from client where region_id = r.id)",
		"with x as (select * from region) select * from x union select * from x",
		"select * from v",
		"select id from region where (id, name) in (select * from region)",
		"select max(n) from (select count(*) as n from region group by name) x",
	}
	run := func() []string {
		var out []string
		for _, name := range []string{"nothing hidden", "filtered"} {
			policy := "version: 1\nprincipals: {asker: {roles: [r]}}\ngrants: [{role: r, allow: [\"*\"], actions: [view, query]}]\n" + policies[name]
			for _, in := range statements {
				st, err := guard.Rewrite(in, schemaFor(t, policy, database, ddl, nil))
				if err != nil {
					t.Fatalf("%s: %v", in, err)
				}
				rows, err := query(conn, st.Text())
				if err != nil {
					t.Errorf("%v\n%s\n%s", err, in, st.Text())
				}
				out = append(out, fmt.Sprintf("%s, %s: %s", name, in, strings.Join(sorted(rows), " ")))
			}
		}
		return out
	}
	before := run()
	for _, table := range []string{"region", "client", "invoice", "vault"} {
		for _, column := range []string{"name", "tenant", "amount", "memo", "client_id", "region_id", "ssn", "val", "n", "x", "fresh"} {
			if !strings.Contains(createTable(table), " "+column+" ") {
				exec(t, conn, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s INT DEFAULT 7", table, column))
			}
		}
	}
	after := run()
	for i := range before {
		if !slices.Equal(before[i:i+1], after[i:i+1]) {
			t.Errorf("before %s\nafter  %s", before[i], after[i])
		}
	}
}

// createTable returns the statement that creates a table of viewTables.
func createTable(name string) string {
	for line := range strings.SplitSeq(viewTables, "\n") {
		if strings.HasPrefix(line, "CREATE TABLE "+name+" ") {
			return line
		}
	}
	return ""
}
