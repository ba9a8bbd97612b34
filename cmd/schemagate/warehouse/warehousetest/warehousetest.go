// Package warehousetest says what right answers to the demo's questions are. Nothing in it goes through the product:
// each answer is a statement written by hand, run on the warehouse's files.
package warehousetest

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Expectation is what one principal must get for one question of the demo.
type Expectation struct {
	Principal string
	Question  string
	// SQL gives the right rows, a column for each dimension and then the value. It is empty where the principal must
	// get no rows: the question is refused or left unanswered.
	SQL string
}

// Expectations returns the right answers of alice, bob and carol. Each says in its own words what the policy and the
// metric mean, so that a mistake in either shows.
func Expectations() []Expectation {
	const (
		byRegion    = "net revenue by region in 2025"
		marketplace = "average order value for the Marketplace channel in Q3 2025"
		byEmail     = "net revenue by customer email for the Outlet channel in December 2025"
		salary      = "average salary by department"
		promoted    = "promoted revenue by promotion in 2025"
		nothing     = "how tall is the Eiffel tower"
	)
	return []Expectation{
		{"alice", byRegion, `
			SELECT 'EMEA', TOTAL(amt_net_rev_eur) / 100
			FROM sales.orders WHERE region = 'EMEA' AND status != 'cancelled' AND substr(dt_ord, 1, 4) = '2025'`},
		{"bob", byRegion, `
			SELECT region, TOTAL(amt_net_rev_eur) / 100
			FROM sales.orders WHERE status != 'cancelled' AND substr(dt_ord, 1, 4) = '2025' GROUP BY 1`},
		{"carol", byRegion, ""},

		{"alice", marketplace, `
			SELECT ROUND(TOTAL(amt_net_rev_eur) / 100 / COUNT(*), 2)
			FROM sales.orders WHERE region = 'EMEA' AND chnl_cd = 'MKT' AND status != 'cancelled'
			AND substr(dt_ord, 1, 7) IN ('2025-07', '2025-08', '2025-09')`},
		{"bob", marketplace, `
			SELECT ROUND(TOTAL(amt_net_rev_eur) / 100 / COUNT(*), 2)
			FROM sales.orders WHERE chnl_cd = 'MKT' AND status != 'cancelled'
			AND substr(dt_ord, 1, 7) IN ('2025-07', '2025-08', '2025-09')`},
		{"carol", marketplace, ""},

		// She sees addresses as their first letter and ***, so that addresses which begin alike are one row.
		{"alice", byEmail, `
			SELECT substr(c.email, 1, 1) || '***', TOTAL(o.amt_net_rev_eur) / 100
			FROM crm.customers AS c JOIN sales.orders AS o ON o.cust_id = c.cust_id
			WHERE o.region = 'EMEA' AND o.chnl_cd = 'OUT' AND o.status != 'cancelled' AND substr(o.dt_ord, 1, 7) = '2025-12'
			GROUP BY substr(c.email, 1, 1)`},
		{"bob", byEmail, ""},
		{"carol", byEmail, ""},

		{"alice", salary, ""},
		{"bob", salary, ""},
		{"carol", salary, `
			SELECT (SELECT dept_name FROM hr.departments AS d WHERE d.dept_id = e.dept_id),
			ROUND(TOTAL(amt_sal_ann_eur) / COUNT(*) / 100, 2)
			FROM hr.employees AS e WHERE ctry_cd = 'DE' AND dt_left IS NULL GROUP BY dept_id`},

		{"alice", promoted, `
			SELECT (SELECT promo_nm FROM sales.promotions AS p WHERE p.promo_id = op.promo_id), TOTAL(amt_net_alloc_eur) / 100
			FROM sales.orders AS o JOIN sales.order_promotions AS op ON op.ord_id = o.ord_id
			WHERE o.region = 'EMEA' AND o.status != 'cancelled' AND substr(o.dt_ord, 1, 4) = '2025' GROUP BY op.promo_id`},
		{"bob", promoted, `
			SELECT (SELECT promo_nm FROM sales.promotions AS p WHERE p.promo_id = op.promo_id), TOTAL(amt_net_alloc_eur) / 100
			FROM sales.orders AS o JOIN sales.order_promotions AS op ON op.ord_id = o.ord_id
			WHERE o.status != 'cancelled' AND substr(o.dt_ord, 1, 4) = '2025' GROUP BY op.promo_id`},
		{"carol", promoted, ""},

		{"alice", nothing, ""},
		{"bob", nothing, ""},
		{"carol", nothing, ""},
	}
}

// Open opens the warehouse's files in dir as one database, each file a schema named after it. It reads only.
func Open(ctx context.Context, dir string) (*sql.DB, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("open warehouse: no *.db file in %s", dir)
	}
	db, err := sql.Open("sqlite", "file::memory:")
	if err != nil {
		return nil, fmt.Errorf("open warehouse: %w", err)
	}
	db.SetMaxOpenConns(1) // attached files belong to a connection
	for _, f := range files {
		schema := strings.TrimSuffix(filepath.Base(f), ".db")
		if _, err := db.ExecContext(ctx, `ATTACH ? AS "`+schema+`"`, "file:"+f+"?mode=ro"); err != nil {
			db.Close()
			return nil, fmt.Errorf("open warehouse: attach %s: %w", filepath.Base(f), err)
		}
	}
	return db, nil
}

// Rows runs the expectation's statement and returns its rows, sorted as text, with numbers as float64. It returns no
// rows for an empty statement.
func (e Expectation) Rows(ctx context.Context, db *sql.DB) ([][]any, error) {
	if e.SQL == "" {
		return nil, nil
	}
	rows, err := db.QueryContext(ctx, e.SQL)
	if err != nil {
		return nil, fmt.Errorf("expected answer of %s to %q: %w", e.Principal, e.Question, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out [][]any
	for rows.Next() {
		row := make([]any, len(columns))
		to := make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			return nil, err
		}
		for i, v := range row {
			if n, ok := v.(int64); ok {
				row[i] = float64(n)
			}
		}
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b []any) int { return strings.Compare(fmt.Sprint(a...), fmt.Sprint(b...)) })
	return out, rows.Err()
}
