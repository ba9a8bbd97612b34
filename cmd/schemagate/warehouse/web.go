package warehouse

import (
	"fmt"
	"math/rand/v2"
	"sort"
)

func webTables(c *company) []table {
	ses := func(f func(*session) any) gen { return each(c.sessions, f) }
	pages := []string{"home", "search", "category", "product", "basket", "checkout", "thanks", "account", "store finder", "journal"}
	sources := []string{"direct", "organic search", "paid search", "newsletter", "social", "affiliate", "app push"}
	tests := 12
	tables := []table{
		{name: "customer_dim", rows: 4500, columns: []column{
			{"cust_sk", "INTEGER PRIMARY KEY", serial},
			{"cust_id", "INTEGER NOT NULL", serial},
			{"email_sha", "TEXT", mostly(0.9, digits("@#@@##@#@@@#@##@"))},
			{"display_nm", "TEXT", mostly(0.4, at(func(i int) any { return c.customers[i].first + " " + c.customers[i].last[:1] + "." }))},
			{"ctry_cd", "TEXT NOT NULL", at(func(i int) any { return countries[c.customers[i].country].iso2 })},
			{"region", "TEXT NOT NULL", at(func(i int) any { return countries[c.customers[i].country].region })},
			{"dt_first_visit", "DATE", mostly(0.9, date(0, lastDay))},
			{"flg_newsletter", "INTEGER", mostly(0.7, flag(0.5))},
			{"scd_valid_from", "DATE NOT NULL", constant("2023-01-01")},
			{"scd_valid_to", "DATE", constant(nil)},
			{"is_cur", "INTEGER NOT NULL", constant(int64(1))},
		}},
		{name: "utm_src", rows: len(sources), columns: []column{
			{"src_id", "INTEGER PRIMARY KEY", serial},
			{"src_nm", "TEXT NOT NULL", nth(sources...)},
			{"flg_paid", "INTEGER NOT NULL", at(func(i int) any { return int64([]int{0, 0, 1, 0, 1, 1, 0}[i]) })},
			{"amt_cpc_eur", "INTEGER", at(func(i int) any {
				if i == 2 || i == 4 || i == 5 {
					return int64(20 + 7*i)
				}
				return nil
			})},
		}},
		{name: "page_dim", rows: len(pages), columns: []column{
			{"page_id", "INTEGER PRIMARY KEY", serial},
			{"page_typ", "TEXT NOT NULL", nth(pages...)},
			{"url_ptrn", "TEXT NOT NULL", numbered("/p%02d/*")},
			{"funnel_step", "INTEGER", mostly(0.6, number(1, 6))},
		}},
		{name: "sessions", rows: len(c.sessions), columns: []column{
			{"sess_id", "INTEGER PRIMARY KEY", serial},
			{"sess_dt", "DATE NOT NULL", ses(func(s *session) any { return calendar[s.day] })},
			{"cust_id", "INTEGER", ses(func(s *session) any { return id(s.customer) })},
			{"ord_id", "INTEGER", ses(func(s *session) any { return id(s.order) })},
			{"flg_ord", "INTEGER NOT NULL", ses(func(s *session) any {
				if s.order >= 0 {
					return int64(1)
				}
				return int64(0)
			})},
			{"src_id", "INTEGER NOT NULL", key(len(sources))},
			{"device", "TEXT NOT NULL", odds("phone", 58, "desktop", 33, "tablet", 9)},
			{"ctry_cd", "TEXT NOT NULL", ses(func(s *session) any { return countries[s.country].iso2 })},
			{"region", "TEXT NOT NULL", ses(func(s *session) any { return countries[s.country].region })},
			{"dur_s", "INTEGER", mostly(0.97, number(2, 1800))},
			{"pv_cnt", "INTEGER NOT NULL", number(1, 40)},
			{"ip_trunc", "TEXT", mostly(0.9, digits("1##.1##.0.0"))},
		}, keys: []string{"FOREIGN KEY (src_id) REFERENCES utm_src (src_id)"}},
		{name: "ab_tests", rows: tests, columns: []column{
			{"test_id", "INTEGER PRIMARY KEY", serial},
			{"test_nm", "TEXT NOT NULL", numbered("exp_%02d")},
			{"hypo", "TEXT", mostly(0.6, pick("shorter checkout sells more", "larger pictures help", "reviews first"))},
			{"dt_start", "DATE NOT NULL", date(firstOf24, firstOf25)},
			{"dt_end", "DATE", mostly(0.8, date(firstOf25, lastDay))},
			{"winner", "TEXT", mostly(0.5, pick("A", "B"))},
		}},
		{name: "ab_assign", rows: 4000, columns: []column{
			{"test_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i%tests + 1) })},
			{"sess_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i*4 + 1) })},
			{"variant", "TEXT NOT NULL", pick("A", "B")},
			{"flg_excl", "INTEGER", mostly(0.1, flag(0.5))},
		}, keys: []string{"PRIMARY KEY (test_id, sess_id)", "FOREIGN KEY (test_id) REFERENCES ab_tests (test_id)", "FOREIGN KEY (sess_id) REFERENCES sessions (sess_id)"}},
	}
	// A table for each month of 2025, named after its first day, all of one shape.
	for m := 1; m <= 12; m++ {
		prefix := fmt.Sprintf("2025-%02d", m)
		start := func(p string) int {
			return sort.Search(len(c.sessions), func(i int) bool { return calendar[c.sessions[i].day] >= p })
		}
		from, to := start(prefix), start(prefix+"-99")
		visit := func(i int) int { return from + i*(to-from)/1500 }
		tables = append(tables, table{name: fmt.Sprintf("events_2025%02d01", m), rows: 1500, columns: []column{
			{"ev_id", "INTEGER PRIMARY KEY", serial},
			{"ev_ts", "DATETIME NOT NULL", func(r *rand.Rand, i int) any { return clock(r, c.sessions[visit(i)].day) }},
			{"sess_id", "INTEGER NOT NULL", at(func(i int) any { return id(visit(i)) })},
			{"page_id", "INTEGER NOT NULL", key(len(pages))},
			{"ev_nm", "TEXT NOT NULL", odds("view", 70, "click", 18, "add_to_basket", 8, "error", 4)},
			{"prod_id", "INTEGER", mostly(0.35, key(len(c.products)))},
			{"val_num", "INTEGER", mostly(0.2, number(1, 500))},
			{"ref_url", "TEXT", mostly(0.3, pick("https://search.example", "https://mail.example", "https://blog.example"))},
		}, keys: []string{"FOREIGN KEY (sess_id) REFERENCES sessions (sess_id)", "FOREIGN KEY (page_id) REFERENCES page_dim (page_id)"}})
	}
	return tables
}
