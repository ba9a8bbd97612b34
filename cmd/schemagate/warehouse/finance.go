package warehouse

import (
	"fmt"
	"math/rand/v2"
)

func financeTables(c *company) []table {
	type booked struct {
		day    int
		region string
	}
	regions := []string{"EMEA", "AMER", "APAC"}
	gross, orders := map[booked]int64{}, map[booked]int64{}
	spent := make([]int64, len(c.customers))
	for _, o := range c.orders {
		k := booked{o.day, countries[o.country].region}
		gross[k] += o.net * int64(100+countries[o.country].vat) / 100
		orders[k]++
		spent[o.customer] += o.net
	}
	daily := func(i int) booked { return booked{i / 3, regions[i%3]} }
	invoiced := func(i int) *order { return &c.orders[i*4] }
	accounts := []string{"Cash", "Receivables", "Inventory", "Payables", "VAT payable", "Equity", "Product revenue", "Shipping revenue", "Cost of goods sold", "Wages", "Rent", "Marketing", "Depreciation", "Interest", "Other income"}
	return []table{
		{name: "customer_snapshot", rows: len(c.customers) / 2, columns: []column{
			{"snap_dt", "DATE NOT NULL", constant("2025-12-31")},
			{"cust_id", "INTEGER NOT NULL", at(func(i int) any { return int64(2*i + 1) })},
			{"cust_full_nm", "TEXT NOT NULL", at(func(i int) any { return c.customers[2*i].first + " " + c.customers[2*i].last })},
			{"email_addr", "TEXT", mostly(0.9, at(func(i int) any { return c.customers[2*i].email(2 * i) }))},
			{"tax_no", "TEXT", mostly(0.07, digits("@@#########"))},
			{"ctry_cd", "TEXT NOT NULL", at(func(i int) any { return countries[c.customers[2*i].country].iso2 })},
			{"region", "TEXT NOT NULL", at(func(i int) any { return countries[c.customers[2*i].country].region })},
			{"amt_ltv_eur", "INTEGER NOT NULL", at(func(i int) any { return spent[2*i] })},
			{"amt_open_eur", "INTEGER", mostly(0.2, number(500, 90000))},
			{"risk_cls", "TEXT", mostly(0.85, odds("A", 60, "B", 28, "C", 12))},
		}, keys: []string{"PRIMARY KEY (snap_dt, cust_id)"}},
		{name: "gl_accounts", rows: len(accounts), columns: []column{
			{"acct_no", "TEXT PRIMARY KEY", at(func(i int) any { return fmt.Sprint(1000 + 200*i) })},
			{"acct_nm", "TEXT NOT NULL", nth(accounts...)},
			{"acct_cls", "TEXT NOT NULL", nth("asset", "asset", "asset", "liability", "liability", "equity", "income", "income", "expense", "expense", "expense", "expense", "expense", "expense", "income")},
			{"norm_side", "TEXT NOT NULL", nth("D", "D", "D", "C", "C", "C", "C", "C", "D", "D", "D", "D", "D", "D", "C")},
			{"flg_active", "INTEGER NOT NULL", flag(0.95)},
		}},
		{name: "cost_centers", rows: 24, columns: []column{
			{"cc_cd", "TEXT PRIMARY KEY", numbered("CC%03d")},
			{"cc_nm", "TEXT NOT NULL", at(func(i int) any { return departments[i%len(departments)] + " " + regions[i%3] })},
			{"parent_cc_cd", "TEXT", mostly(0.8, constant("CC001"))},
			{"region", "TEXT NOT NULL", nth(regions...)},
			{"resp_emp_id", "INTEGER", mostly(0.9, key(len(c.employees)))},
		}},
		{name: "gl_entries", rows: 9000, columns: []column{
			{"je_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i/2 + 1) })},
			{"je_ln", "INTEGER NOT NULL", at(func(i int) any { return int64(i%2 + 1) })},
			{"dt_post", "DATE NOT NULL", at(func(i int) any { return calendar[i/2*(lastDay+1)/4500] })},
			{"acct_no", "TEXT NOT NULL", func(r *rand.Rand, _ int) any { return fmt.Sprint(1000 + 200*r.IntN(len(accounts))) }},
			{"cc_cd", "TEXT", mostly(0.6, func(r *rand.Rand, _ int) any { return fmt.Sprintf("CC%03d", 1+r.IntN(24)) })},
			{"dc", "TEXT NOT NULL", nth("D", "C")},
			{"amt_eur", "INTEGER NOT NULL", at(func(i int) any { return int64(1000 + i/2*7919%980000) })},
			{"txt", "TEXT", mostly(0.5, pick("accrual", "payroll", "goods receipt", "settlement", "correction"))},
			{"src_sys", "TEXT NOT NULL", odds("POS", 40, "SHOP", 40, "MAN", 20)},
		}, keys: []string{"PRIMARY KEY (je_id, je_ln)", "FOREIGN KEY (acct_no) REFERENCES gl_accounts (acct_no)", "FOREIGN KEY (cc_cd) REFERENCES cost_centers (cc_cd)"}},
		{name: "invoices", rows: len(c.orders) / 4, columns: []column{
			{"inv_no", "TEXT PRIMARY KEY", numbered("INV-%06d")},
			{"ord_id", "INTEGER NOT NULL UNIQUE", at(func(i int) any { return int64(i*4 + 1) })},
			{"region", "TEXT NOT NULL", at(func(i int) any { return countries[invoiced(i).country].region })},
			{"dt_inv", "DATE NOT NULL", at(func(i int) any { return calendar[min(lastDay, invoiced(i).day+2)] })},
			{"dt_due", "DATE", at(func(i int) any { return day(invoiced(i).day + 32) })},
			{"amt_gross_lcl", "INTEGER NOT NULL", at(func(i int) any {
				o := invoiced(i)
				return local(o.net*int64(100+countries[o.country].vat)/100, o.country)
			})},
			{"curr_cd", "TEXT NOT NULL", at(func(i int) any { return countries[invoiced(i).country].currency })},
			{"inv_status", "TEXT NOT NULL", odds("paid", 88, "open", 7, "overdue", 4, "written off", 1)},
			{"dunning_lvl", "INTEGER", mostly(0.1, number(1, 3))},
		}},
		{name: "budgets", rows: 36 * 24, columns: []column{
			{"cc_cd", "TEXT NOT NULL", at(func(i int) any { return fmt.Sprintf("CC%03d", i%24+1) })},
			{"mth", "TEXT NOT NULL", at(func(i int) any { return calendar[i/24*365/12+5][:7] })},
			{"amt_bdgt_eur", "INTEGER NOT NULL", number(1000000, 40000000)},
			{"amt_fcst_eur", "INTEGER", mostly(0.7, number(1000000, 42000000))},
			{"ver", "TEXT NOT NULL", constant("v2")},
		}, keys: []string{"PRIMARY KEY (cc_cd, mth)", "FOREIGN KEY (cc_cd) REFERENCES cost_centers (cc_cd)"}},
		{name: "bank_accts", rows: 18, columns: []column{
			{"ba_id", "INTEGER PRIMARY KEY", serial},
			{"bank_nm", "TEXT NOT NULL", pick("Nordbank", "Alpen Kredit", "Harbour Trust")},
			{"iban", "TEXT NOT NULL", iban},
			{"curr_cd", "TEXT NOT NULL", at(func(i int) any { return currencies[i%len(currencies)].code })},
			{"amt_bal_lcl", "INTEGER NOT NULL", number(1000000, 900000000)},
			{"dt_bal", "DATE NOT NULL", constant("2025-12-31")},
		}},
		{name: "tax_rates", rows: len(countries) * 2, columns: []column{
			{"ctry_cd", "TEXT NOT NULL", at(func(i int) any { return countries[i/2].iso2 })},
			{"rate_cls", "TEXT NOT NULL", nth("standard", "reduced")},
			{"pct", "INTEGER NOT NULL", at(func(i int) any { return int64(countries[i/2].vat / (1 + i%2)) })},
			{"dt_from", "DATE NOT NULL", constant("2023-01-01")},
		}, keys: []string{"PRIMARY KEY (ctry_cd, rate_cls)"}},
		{name: "rev_daily_agg", rows: 3 * len(calendar), columns: []column{
			{"agg_dt", "DATE NOT NULL", at(func(i int) any { return calendar[i/3] })},
			{"region", "TEXT NOT NULL", nth(regions...)},
			{"ord_cnt", "INTEGER NOT NULL", at(func(i int) any { return orders[daily(i)] })},
			{"amt_gross_rev_eur", "INTEGER NOT NULL", at(func(i int) any { return gross[daily(i)] })},
			{"load_id", "INTEGER", at(func(i int) any { return int64(70000 + i/3) })},
		}, keys: []string{"PRIMARY KEY (agg_dt, region)"}},
	}
}
