package warehouse

import (
	"math/rand/v2"
	"strings"
)

func crmTables(c *company) []table {
	cust := func(f func(*customer) any) gen { return each(c.customers, f) }
	email := at(func(i int) any { return c.customers[i].email(i) })
	segments := []string{"Trail runners", "Families", "Alpinists", "Bargain hunters", "Newcomers", "Lapsed", "Business", "Students"}
	tiers := []string{"Basecamp", "Ridge", "Summit", "Expedition"}
	var members []int
	for i, cu := range c.customers {
		if cu.member {
			members = append(members, i)
		}
	}
	n := len(c.customers)
	return []table{
		{name: "customers", rows: n, columns: []column{
			{"cust_id", "INTEGER PRIMARY KEY", serial},
			{"cust_no", "TEXT NOT NULL UNIQUE", numbered("C%06d")},
			{"first_nm", "TEXT NOT NULL", cust(func(c *customer) any { return c.first })},
			{"last_nm", "TEXT NOT NULL", cust(func(c *customer) any { return c.last })},
			{"email", "TEXT", mostly(0.93, email)},
			{"phone", "TEXT", mostly(0.61, phone)},
			{"birth_dt", "DATE", mostly(0.52, born)},
			{"ssn", "TEXT", mostly(0.11, nationalID)},
			{"iban", "TEXT", mostly(0.17, iban)},
			{"ctry_cd", "TEXT NOT NULL", cust(func(c *customer) any { return countries[c.country].iso2 })},
			{"region", "TEXT NOT NULL", cust(func(c *customer) any { return countries[c.country].region })},
			{"cust_typ", "TEXT NOT NULL", odds("private", 94, "business", 6)},
			{"dt_since", "DATE NOT NULL", cust(func(c *customer) any { return calendar[c.since] })},
			{"lang_cd", "TEXT", mostly(0.88, cust(func(c *customer) any { return strings.ToLower(countries[c.country].iso2) }))},
			{"flg_blocked", "INTEGER NOT NULL", flag(0.01)},
		}},
		{name: "customers_bak_2023", rows: 2400, columns: []column{
			{"id", "INTEGER", serial},
			{"name", "TEXT", cust(func(c *customer) any { return c.first + " " + c.last })},
			{"email", "TEXT", mostly(0.8, email)},
			{"tel", "TEXT", mostly(0.7, phone)},
			{"national_id", "TEXT", mostly(0.2, nationalID)},
			{"birthday", "TEXT", mostly(0.5, born)},
			{"country", "TEXT", cust(func(c *customer) any { return countries[c.country].name })},
			{"created", "TEXT", constant("2023-01-01")},
		}},
		{name: "customer_addr", rows: n, columns: []column{
			{"addr_id", "INTEGER PRIMARY KEY", serial},
			{"cust_id", "INTEGER NOT NULL", serial},
			{"addr_typ", "TEXT NOT NULL", odds("home", 80, "billing", 12, "work", 8)},
			{"street", "TEXT NOT NULL", street},
			{"zip", "TEXT", mostly(0.97, digits("#####"))},
			{"city", "TEXT NOT NULL", func(r *rand.Rand, i int) any {
				cities := strings.Fields(countries[c.customers[i].country].city)
				return cities[r.IntN(len(cities))]
			}},
			{"ctry_cd", "TEXT NOT NULL", cust(func(c *customer) any { return countries[c.country].iso2 })},
			{"flg_verified", "INTEGER", mostly(0.9, flag(0.7))},
		}, keys: []string{"FOREIGN KEY (cust_id) REFERENCES customers (cust_id)"}},
		{name: "customer_segments", rows: len(segments), columns: []column{
			{"seg_id", "INTEGER PRIMARY KEY", serial},
			{"seg_nm", "TEXT NOT NULL", nth(segments...)},
			{"seg_rule", "TEXT", nth("activity = run", "children > 0", "buys climbing", "discount share > 60%", "age < 90 days", "no order in 400 days", "type = business", "age < 26")},
			{"owner_team", "TEXT NOT NULL", pick("crm", "brand", "data science")},
		}},
		{name: "customer_segments_map", rows: n, columns: []column{
			{"cust_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i*2/3 + 1) })},
			{"seg_id", "INTEGER NOT NULL", at(func(i int) any { return int64((i*5+i/3)%8 + 1) })},
			{"score_e4", "INTEGER", mostly(0.9, number(100, 10000))},
			{"dt_assigned", "DATE NOT NULL", date(firstOf25, lastDay)},
		}, keys: []string{"PRIMARY KEY (cust_id, seg_id)", "FOREIGN KEY (cust_id) REFERENCES customers (cust_id)", "FOREIGN KEY (seg_id) REFERENCES customer_segments (seg_id)"}},
		{name: "loyalty_tiers", rows: len(tiers), columns: []column{
			{"tier_cd", "TEXT PRIMARY KEY", nth("T1", "T2", "T3", "T4")},
			{"tier_nm", "TEXT NOT NULL", nth(tiers...)},
			{"pts_min", "INTEGER NOT NULL", at(func(i int) any { return int64([]int{0, 500, 2000, 6000}[i]) })},
			{"pct_bonus", "INTEGER NOT NULL", at(func(i int) any { return int64(i * 5) })},
		}},
		{name: "loyalty_members", rows: len(members), columns: []column{
			{"mbr_no", "TEXT PRIMARY KEY", numbered("M%07d")},
			{"cust_id", "INTEGER NOT NULL UNIQUE", each(members, func(m *int) any { return id(*m) })},
			{"tier_cd", "TEXT NOT NULL", odds("T1", 60, "T2", 25, "T3", 12, "T4", 3)},
			{"pts_bal", "INTEGER NOT NULL", number(0, 9000)},
			{"dt_joined", "DATE NOT NULL", each(members, func(m *int) any { return calendar[c.customers[*m].since] })},
			{"dt_last_act", "DATE", mostly(0.72, date(firstOf24, lastDay))},
			{"flg_optin_sms", "INTEGER", mostly(0.8, flag(0.3))},
		}, keys: []string{"FOREIGN KEY (cust_id) REFERENCES customers (cust_id)", "FOREIGN KEY (tier_cd) REFERENCES loyalty_tiers (tier_cd)"}},
		{name: "loyalty_trx", rows: 9000, columns: []column{
			{"lt_id", "INTEGER PRIMARY KEY", serial},
			{"mbr_no", "TEXT NOT NULL", func(r *rand.Rand, _ int) any { return numbered("M%07d")(r, r.IntN(len(members))) }},
			{"trx_typ", "TEXT NOT NULL", odds("earn", 74, "burn", 20, "expire", 6)},
			{"pts", "INTEGER NOT NULL", number(5, 800)},
			{"trx_dt", "DATE NOT NULL", date(0, lastDay)},
			{"ord_no_txt", "TEXT", mostly(0.6, digits("O-00#####"))},
		}, keys: []string{"FOREIGN KEY (mbr_no) REFERENCES loyalty_members (mbr_no)"}},
		{name: "consents", rows: 7000, columns: []column{
			{"cust_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i/2 + 1) })},
			{"purpose", "TEXT NOT NULL", nth("newsletter", "profiling")},
			{"state", "TEXT NOT NULL", odds("given", 62, "refused", 30, "withdrawn", 8)},
			{"dt_state", "DATE NOT NULL", date(0, lastDay)},
			{"ip_addr", "TEXT", mostly(0.5, digits("10.1##.1##.##"))},
			{"src", "TEXT", mostly(0.8, pick("web", "store", "call"))},
		}, keys: []string{"PRIMARY KEY (cust_id, purpose)", "FOREIGN KEY (cust_id) REFERENCES customers (cust_id)"}},
		{name: "cmpgn", rows: 48, columns: []column{
			{"cmpgn_id", "INTEGER PRIMARY KEY", serial},
			{"cmpgn_nm", "TEXT NOT NULL", numbered("Mailing %02d")},
			{"medium", "TEXT NOT NULL", odds("email", 70, "post", 20, "sms", 10)},
			{"dt_sent", "DATE NOT NULL", date(0, lastDay)},
			{"amt_cost_eur", "INTEGER", mostly(0.8, number(20000, 900000))},
			{"subj", "TEXT", mostly(0.7, pick("New season, new paths", "Your points wait", "Last days"))},
		}},
		{name: "cmpgn_targets", rows: 6000, columns: []column{
			{"cmpgn_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i%48 + 1) })},
			{"cust_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i/48*46 + i%48 + 1) })},
			{"flg_opened", "INTEGER", mostly(0.95, flag(0.34))},
			{"flg_clicked", "INTEGER", mostly(0.95, flag(0.06))},
			{"ts_sent", "DATETIME NOT NULL", stamp(0, lastDay)},
		}, keys: []string{"PRIMARY KEY (cmpgn_id, cust_id)", "FOREIGN KEY (cmpgn_id) REFERENCES cmpgn (cmpgn_id)", "FOREIGN KEY (cust_id) REFERENCES customers (cust_id)"}},
	}
}
