package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/mysql"
)

// tpchPolicy shows one tenant's customers, orders and line items. The queries mark where a hand would write its filters.
const tpchPolicy = `version: 1
principals: {asker: {roles: [r], attributes: {tenant: 7}}}
grants: [{role: r, allow: ["*"], actions: [view, query]}]
row_filters:
  - {table: schemagate_tpch.customer, roles: [r], using: "c_tenant = {{ principal.tenant }}"}
  - {table: schemagate_tpch.orders, roles: [r], using: "o_tenant = {{ principal.tenant }}"}
  - {table: schemagate_tpch.lineitem, roles: [r], using: "l_tenant = {{ principal.tenant }}"}
`

const openPolicy = "version: 1\nprincipals: {asker: {roles: [r]}}\ngrants: [{role: r, allow: [\"*\"], actions: [view, query]}]\n"

var mark = regexp.MustCompile(`\{(?:(\w+)\.)?(\w)\}`)

// TestTPCH guards the 22 queries of TPC-H: under a policy that allows everything they return what they return, under
// filters they return what filters written by hand do, by the same indexes.
func TestTPCH(t *testing.T) {
	const database = "schemagate_tpch"
	conn := newDatabase(t, server(t), database)
	ddl := file(t, "schema.sql")
	exec(t, conn, ddl)
	fillTPCH(t, conn)
	guard := rewrite.NewGuard(mysql.New(), 0)
	queries, err := filepath.Glob("testdata/tpch/q*.sql")
	if err != nil || len(queries) != 22 {
		t.Fatalf("%d queries, %v", len(queries), err)
	}
	for _, path := range queries {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			marked := file(t, name)
			plain := mark.ReplaceAllString(marked, "")
			byHand := mark.ReplaceAllStringFunc(marked, func(m string) string {
				parts := mark.FindStringSubmatch(m)
				if parts[1] != "" {
					parts[1] += "."
				}
				return "AND " + parts[1] + parts[2] + "_tenant = 7"
			})
			for _, c := range []struct{ policy, original string }{{openPolicy, plain}, {tpchPolicy, byHand}} {
				st, err := guard.Rewrite(plain, schemaFor(t, c.policy, database, ddl, nil))
				if err != nil {
					t.Fatal(err)
				}
				want, err := query(conn, c.original)
				if err != nil {
					t.Fatal(err)
				}
				got, err := query(conn, st.Text())
				if err != nil {
					t.Fatalf("%v\n%s", err, st.Text())
				}
				if !slices.Equal(got, want) || len(want) == 0 {
					t.Errorf("got  %q\nwant %q\n%s", got, want, st.Text())
				}
				if strings.Contains(st.Text(), "18446744073709551615") {
					t.Errorf("there is a barrier, though no expression can fail\n%s", st.Text())
				}
				if got, want := indexes(t, conn, st.Text()), indexes(t, conn, c.original); !slices.Equal(got, want) {
					t.Errorf("indexes %q\nby hand %q\n%s", got, want, st.Text())
				}
			}
		})
	}
}

func file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/tpch", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// indexes are the indexes that the engine's plan uses, sorted, each as often as it does.
func indexes(t *testing.T, conn *sql.Conn, text string) []string {
	t.Helper()
	rows, err := conn.QueryContext(context.Background(), "EXPLAIN "+text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var id, kind, table, access, possible, key, length, ref, count, extra sql.NullString
		if err := rows.Scan(&id, &kind, &table, &access, &possible, &key, &length, &ref, &count, &extra); err != nil {
			t.Fatal(err)
		}
		if key.Valid {
			out = append(out, key.String)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// fillTPCH makes a small database in which every query finds something.
func fillTPCH(t *testing.T, conn *sql.Conn) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	insert := func(table string, n int, row func(i int) string) {
		var values []string
		for i := range n {
			values = append(values, "("+row(i+1)+")")
		}
		for chunk := range slices.Chunk(values, 1000) {
			exec(t, conn, "INSERT INTO "+table+" VALUES "+strings.Join(chunk, ","))
		}
	}
	day := func(from, days int) string {
		return fmt.Sprintf("DATE '1992-01-01' + INTERVAL %d DAY", from+r.IntN(days))
	}
	money := func(most int) string { return fmt.Sprintf("%d.%02d", r.IntN(most), r.IntN(100)) }
	regions := []string{"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"}
	nations := []string{"KENYA", "BRAZIL", "JAPAN", "FRANCE", "EGYPT", "MOROCCO", "CANADA", "CHINA", "GERMANY", "IRAN"}
	insert("region", 5, func(i int) string { return fmt.Sprintf("%d, '%s', ''", i, regions[i-1]) })
	insert("nation", 10, func(i int) string { return fmt.Sprintf("%d, '%s', %d, ''", i, nations[i-1], (i-1)%5+1) })
	insert("supplier", 40, func(i int) string {
		return fmt.Sprintf("%d, 'Supplier#%d', 'a%d', %d, '%d-1', %s, '%s'", i, i, i, i%10+1, 10+i%10, money(9000), pick(r, "", "", "Customer x Complaints"))
	})
	insert("part", 200, func(i int) string {
		return fmt.Sprintf("%d, '%s', 'M%d', 'Brand#%d', '%s STEEL', %d, '%s', %s, ''", i, pick(r, "forest green", "dark blue", "light green"), i%5, pick(r, 12, 23, 45, 34), pick(r, "PROMO", "ECONOMY", "MEDIUM POLISHED", "SMALL"),
			pick(r, 3, 9, 14, 19, 23, 36, 45, 49), pick(r, "SM CASE", "SM BOX", "MED BAG", "MED BOX"), money(2000))
	})
	insert("partsupp", 800, func(i int) string {
		return fmt.Sprintf("%d, %d, %d, %s, ''", (i-1)/4+1, ((i-1)/4*7+(i-1)%4*11)%40+1, 1+r.IntN(9999), money(1000))
	})
	insert("customer", 300, func(i int) string {
		return fmt.Sprintf("%d, %d, 'Customer#%d', 'b%d', %d, '%d-2', %s, '%s', ''", i, pick(r, 7, 7, 8, 9), i, i, i%10+1, pick(r, 13, 31, 23, 29, 44), money(9000), pick(r, "BUILDING", "MACHINERY", "FURNITURE"))
	})
	insert("orders", 3000, func(i int) string {
		return fmt.Sprintf("%d, %d, %d, '%s', %s, %s, '%s', 'c', 0, '%s'", i, pick(r, 7, 7, 8, 9), 1+r.IntN(200), pick(r, "F", "O", "P"), money(90000), day(0, 2400), pick(r, "1-URGENT", "2-HIGH", "3-MEDIUM"), pick(r, "", "special packages requests"))
	})
	insert("lineitem", 12000, func(i int) string {
		part := 1 + r.IntN(200)
		return fmt.Sprintf("%d, %d, %d, %d, %d, %d, %s, 0.0%d, 0.0%d, '%s', '%s', %s, %s, %s, '%s', '%s', ''", (i-1)/4+1, pick(r, 7, 7, 7, 9), part, ((part-1)*7+r.IntN(4)*11)%40+1, (i-1)%4+1, 1+r.IntN(50), money(50000), r.IntN(10), r.IntN(9),
			pick(r, "R", "A", "N"), pick(r, "O", "F"), day(0, 2400), day(0, 2400), day(0, 2400), pick(r, "DELIVER IN PERSON", "NONE"), pick(r, "MAIL", "SHIP", "AIR", "AIR REG", "RAIL"))
	})
	exec(t, conn, "ANALYZE TABLE region, nation, supplier, part, partsupp, customer, orders, lineitem")
}
