package generate_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// Each question gives the rows that a statement written by hand from its words gives.
func TestDraftsReturnTheRowsOfHandWrittenSQL(t *testing.T) {
	db := openShop(t)
	v := acl.Everything(newShop(t, db, catalog.SQLite))
	for question, hand := range map[string]string{
		"net revenue":                                           `SELECT 391.0`,
		"net revenue in 2025 by region":                         `VALUES (NULL, 1.0), ('AMER', 65.0), ('EMEA', 225.0)`,
		"net revenue by store":                                  `VALUES (NULL, 65.0), ('North End', 125.0), ('O''Hare', 1.0), ('Pro', 200.0)`,
		"net revenue for gold customers":                        `SELECT 300.0`,
		"net revenue by customer segment":                       `VALUES (NULL, 1.0), ('gold', 300.0), ('silver', 90.0)`,
		"revenue since 2025-08-19 by day":                       `VALUES ('2025-08-19', 15.0), ('2025-08-20', 1.0)`,
		"revenue by quarter":                                    `VALUES ('2024-Q4', 100.0), ('2025-Q1', 250.0), ('2025-Q3', 41.0)`,
		"revenue by week since July 2025":                       `VALUES ('2025-W29', 25.0), ('2025-W34', 16.0)`,
		"revenue by year":                                       `VALUES ('2024', 100.0), ('2025', 291.0)`,
		"top 2 regions by net revenue":                          `VALUES ('EMEA', 325.0), ('AMER', 65.0)`,
		"lowest 1 region by net revenue":                        `VALUES ('AMER', 65.0)`,
		"top 5 stores by revenue in 2025":                       `VALUES ('Pro', 200.0), ('North End', 25.0), ('O''Hare', 1.0)`,
		"revenue where promotion title is \"Summer Sale 2025\"": `SELECT 225.0`,
		"revenue for tag runner or climber":                     `SELECT SUM(amount) / 100.0 FROM sales.orders WHERE status <> 'cancelled' AND customer_id IN (1, 2, 4)`,
		"item sales by product category and order status":       `VALUES ('CAMP', 'shipped', 300), ('CLIMB', 'open', 40), ('CLIMB', 'shipped', 300)`,
		"item sales in 2025":                                    `SELECT 150 + 40 + 100 + 120`,
		"profit by store": `SELECT s.store_name, SUM(o.amount - COALESCE(o.cost, 0)) FROM sales.orders o LEFT JOIN sales.stores s ON s.id = o.store_id
			WHERE o.status <> 'cancelled' AND o.id <> 7 GROUP BY 1 ORDER BY 1`,
		"shipped orders by day this week": `VALUES ('2025-08-20', 2)`,
		"shipped orders on 2025-01-02":    `SELECT 1`,
		"headcount by department":         `VALUES ('Sales', 2)`,
		"average salary in Logistics":     `SELECT 4000.0`,
	} {
		d := draft(t, question, v)
		if d.SQL == "" {
			t.Errorf("%q: %s", question, d.Abstained)
			continue
		}
		if diff := cmp.Diff(rowsOf(t, db, hand), rowsOf(t, db, d.SQL)); diff != "" {
			t.Errorf("%q (-by hand +drafted):\n%s\n%s", question, diff, d.SQL)
		}
	}
}

// A dimension splits a sum and never changes it.
func TestDimensionsNeitherRepeatNorLoseRows(t *testing.T) {
	db := openShop(t)
	v := acl.Everything(newShop(t, db, catalog.SQLite))
	whole := rowsOf(t, db, draft(t, "net revenue", v).SQL)
	for _, d := range []string{"region", "store", "customer segment", "client email", "channel", "group", "city", "customer name", "month", "week", "store region"} {
		parts := draft(t, "net revenue by "+d, v)
		if parts.SQL == "" {
			t.Errorf("by %s: %s", d, parts.Abstained)
			continue
		}
		if diff := cmp.Diff(whole, rowsOf(t, db, "SELECT SUM(net_revenue) FROM ("+parts.SQL+")")); diff != "" {
			t.Errorf("by %s:\n%s", d, diff)
		}
	}
}

func rowsOf(t testing.TB, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for rows.Next() {
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(values...))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
