package warehouse

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

func salesTables(c *company) []table {
	ord := func(f func(*order) any) gen { return each(c.orders, f) }
	status := func(l *line) string { return c.orders[l.order].status }
	var returned []line
	for _, l := range c.lines {
		if l.returned > 0 {
			returned = append(returned, l)
		}
	}
	back := func(f func(*line) any) gen { return each(returned, f) }
	type payment struct {
		order  int
		status string
	}
	var payments []payment
	for i, o := range c.orders {
		if i%27 == 0 {
			payments = append(payments, payment{i, "declined"})
		}
		switch o.status {
		case "cancelled":
			payments = append(payments, payment{i, "voided"})
		case "returned":
			payments = append(payments, payment{i, "refunded"})
		default:
			payments = append(payments, payment{i, "captured"})
		}
	}
	paid := func(f func(*payment) any) gen { return each(payments, f) }
	early := c.orders[:slices.IndexFunc(c.orders, func(o order) bool { return o.day >= 90 })]
	recent := c.orders[len(c.orders)-1500:]
	first := len(c.orders) - len(recent)

	return []table{
		{name: "stores", rows: len(c.stores), columns: []column{
			{"store_id", "INTEGER PRIMARY KEY", serial},
			{"store_cd", "TEXT NOT NULL UNIQUE", numbered("S%03d")},
			{"store_nm", "TEXT NOT NULL", at(func(i int) any {
				return fmt.Sprintf("%s %s %d", countries[c.stores[i].country].name, c.stores[i].kind, i+1)
			})},
			{"store_typ", "TEXT NOT NULL", each(c.stores, func(s *store) any { return s.kind })},
			{"ctry_cd", "TEXT NOT NULL", each(c.stores, func(s *store) any { return countries[s.country].iso2 })},
			{"region", "TEXT NOT NULL", each(c.stores, func(s *store) any { return countries[s.country].region })},
			{"sqm_sell", "INTEGER", mostly(0.9, number(120, 2400))},
			{"dt_renov", "DATE", mostly(0.4, date(0, lastDay))},
			{"flg_click_collect", "INTEGER NOT NULL", flag(0.7)},
			{"amt_rent_mth_eur", "INTEGER", mostly(0.8, number(400000, 6000000))},
		}},
		{name: "orders", rows: len(c.orders), columns: []column{
			{"ord_id", "INTEGER PRIMARY KEY", serial},
			{"ord_no", "TEXT NOT NULL UNIQUE", numbered("O-%07d")},
			{"cust_id", "INTEGER NOT NULL", ord(func(o *order) any { return id(o.customer) })},
			{"store_id", "INTEGER", ord(func(o *order) any { return id(o.store) })},
			{"chnl_cd", "TEXT NOT NULL", ord(func(o *order) any { return channels[o.channel].code })},
			{"ship_ctry_cd", "TEXT NOT NULL", ord(func(o *order) any { return countries[o.country].iso2 })},
			{"region", "TEXT NOT NULL", ord(func(o *order) any { return countries[o.country].region })},
			{"dt_ord", "DATE NOT NULL", ord(func(o *order) any { return calendar[o.day] })},
			{"status", "TEXT NOT NULL", ord(func(o *order) any { return o.status })},
			{"curr_cd", "TEXT NOT NULL", ord(func(o *order) any { return countries[o.country].currency })},
			{"amt_net_rev_eur", "INTEGER NOT NULL", ord(func(o *order) any { return o.net })},
			{"amt_net_rev_lcl", "INTEGER NOT NULL", ord(func(o *order) any { return local(o.net, o.country) })},
			{"amt_disc_eur", "INTEGER NOT NULL", ord(func(o *order) any { return o.discount })},
			{"amt_vat_eur", "INTEGER NOT NULL", ord(func(o *order) any { return o.net * int64(countries[o.country].vat) / 100 })},
			{"amt_ship_eur", "INTEGER", ord(func(o *order) any {
				if o.store >= 0 {
					return nil
				}
				if o.net > 10000 {
					return int64(0)
				}
				return int64(495)
			})},
			{"qty_itm", "INTEGER NOT NULL", ord(func(o *order) any { return o.quantity })},
			{"gift_msg", "TEXT", mostly(0.03, pick("Happy birthday!", "See you on the trail", "Enjoy the mountains"))},
		}, keys: []string{"FOREIGN KEY (store_id) REFERENCES stores (store_id)"}},
		{name: "fct_ord_ln", rows: len(c.lines), columns: []column{
			{"ord_ln_id", "INTEGER PRIMARY KEY", serial},
			{"ord_id", "INTEGER NOT NULL", each(c.lines, func(l *line) any { return id(l.order) })},
			{"ln_no", "INTEGER NOT NULL", at(func(i int) any { return int64(i - c.orders[c.lines[i].order].firstLine + 1) })},
			{"prod_id", "INTEGER NOT NULL", each(c.lines, func(l *line) any { return id(l.product) })},
			{"dt_ord", "DATE NOT NULL", each(c.lines, func(l *line) any { return calendar[c.orders[l.order].day] })},
			{"region", "TEXT NOT NULL", each(c.lines, func(l *line) any { return countries[c.orders[l.order].country].region })},
			{"ln_status", "TEXT NOT NULL", each(c.lines, func(l *line) any { return status(l) })},
			{"qty_ord", "INTEGER NOT NULL", each(c.lines, func(l *line) any { return l.quantity })},
			{"qty_ret", "INTEGER NOT NULL", each(c.lines, func(l *line) any { return l.returned })},
			{"amt_net_eur", "INTEGER NOT NULL", each(c.lines, func(l *line) any { return l.net })},
			{"amt_disc_eur", "INTEGER NOT NULL", each(c.lines, func(l *line) any { return l.discount })},
			{"amt_cogs_eur", "INTEGER NOT NULL", each(c.lines, func(l *line) any { return l.cost })},
		}, keys: []string{"UNIQUE (ord_id, ln_no)", "FOREIGN KEY (ord_id) REFERENCES orders (ord_id)"}},
		{name: "promotions", rows: len(c.promotions), columns: []column{
			{"promo_id", "INTEGER PRIMARY KEY", serial},
			{"promo_cd", "TEXT NOT NULL UNIQUE", numbered("P%04d")},
			{"promo_nm", "TEXT NOT NULL", each(c.promotions, func(p *promotion) any { return p.name })},
			{"promo_typ", "TEXT NOT NULL", each(c.promotions, func(p *promotion) any { return p.mechanism })},
			{"pct_disc", "INTEGER NOT NULL", each(c.promotions, func(p *promotion) any { return p.percent })},
			{"dt_from", "DATE NOT NULL", each(c.promotions, func(p *promotion) any { return calendar[p.from] })},
			{"dt_to", "DATE NOT NULL", each(c.promotions, func(p *promotion) any { return day(min(p.to, lastDay)) })},
			{"amt_budget_eur", "INTEGER", mostly(0.7, number(500000, 9000000))},
		}},
		{name: "order_promotions", rows: len(c.promoted), columns: []column{
			{"ord_id", "INTEGER NOT NULL", each(c.promoted, func(p *promotedOrder) any { return id(p.order) })},
			{"promo_id", "INTEGER NOT NULL", each(c.promoted, func(p *promotedOrder) any { return id(p.promotion) })},
			{"dt_ord", "DATE NOT NULL", each(c.promoted, func(p *promotedOrder) any { return calendar[c.orders[p.order].day] })},
			{"ord_status", "TEXT NOT NULL", each(c.promoted, func(p *promotedOrder) any { return c.orders[p.order].status })},
			{"amt_net_alloc_eur", "INTEGER NOT NULL", each(c.promoted, func(p *promotedOrder) any { return p.allocated })},
			{"voucher_cd", "TEXT", mostly(0.3, digits("@@@-####"))},
		}, keys: []string{"PRIMARY KEY (ord_id, promo_id)", "FOREIGN KEY (ord_id) REFERENCES orders (ord_id)", "FOREIGN KEY (promo_id) REFERENCES promotions (promo_id)"}},
		{name: "ret_rsn", rows: 7, columns: []column{
			{"rsn_cd", "TEXT PRIMARY KEY", nth("SIZE", "DEFECT", "LATE", "COLOUR", "MIND", "WRONG", "OTHER")},
			{"rsn_txt", "TEXT NOT NULL", nth("Does not fit", "Faulty", "Came too late", "Colour differs", "Changed mind", "Wrong item", "Something else")},
			{"flg_our_fault", "INTEGER NOT NULL", at(func(i int) any { return int64([]int{0, 1, 1, 0, 0, 1, 0}[i]) })},
		}},
		{name: "returns", rows: len(returned), columns: []column{
			{"ret_id", "INTEGER PRIMARY KEY", serial},
			{"ord_id", "INTEGER NOT NULL", back(func(l *line) any { return id(l.order) })},
			{"prod_id", "INTEGER NOT NULL", back(func(l *line) any { return id(l.product) })},
			{"region", "TEXT NOT NULL", back(func(l *line) any { return countries[c.orders[l.order].country].region })},
			{"dt_ret", "DATE", func(r *rand.Rand, i int) any {
				return calendar[min(lastDay, c.orders[returned[i].order].day+4+r.IntN(30))]
			}},
			{"qty", "INTEGER NOT NULL", back(func(l *line) any { return l.returned })},
			{"amt_refund_eur", "INTEGER NOT NULL", back(func(l *line) any { return l.net * l.returned / l.quantity })},
			{"rsn_cd", "TEXT", mostly(0.85, odds("SIZE", 40, "DEFECT", 14, "LATE", 8, "COLOUR", 10, "MIND", 18, "WRONG", 6, "OTHER", 4))},
			{"cond", "TEXT", mostly(0.9, odds("as new", 70, "used", 20, "broken", 10))},
		}, keys: []string{"FOREIGN KEY (ord_id) REFERENCES orders (ord_id)", "FOREIGN KEY (rsn_cd) REFERENCES ret_rsn (rsn_cd)"}},
		{name: "pay_trx", rows: len(payments), columns: []column{
			{"trx_id", "INTEGER PRIMARY KEY", serial},
			{"ord_id", "INTEGER NOT NULL", paid(func(p *payment) any { return id(p.order) })},
			{"pay_mtd", "TEXT NOT NULL", odds("card", 48, "wallet", 24, "invoice", 16, "gift card", 4, "bank transfer", 8)},
			{"trx_status", "TEXT NOT NULL", paid(func(p *payment) any { return p.status })},
			{"dt_trx", "DATE NOT NULL", paid(func(p *payment) any { return calendar[c.orders[p.order].day] })},
			{"amt_lcl", "INTEGER NOT NULL", paid(func(p *payment) any {
				o := c.orders[p.order]
				return local(o.net*int64(100+countries[o.country].vat)/100, o.country)
			})},
			{"curr_cd", "TEXT NOT NULL", paid(func(p *payment) any { return countries[c.orders[p.order].country].currency })},
			{"card_last4", "TEXT", mostly(0.48, digits("####"))},
		}, keys: []string{"FOREIGN KEY (ord_id) REFERENCES orders (ord_id)"}},
		{name: "price_lists", rows: 14, columns: []column{
			{"pl_id", "INTEGER PRIMARY KEY", serial},
			{"pl_nm", "TEXT NOT NULL", at(func(i int) any { return currencies[i].code + " retail" })},
			{"curr_cd", "TEXT NOT NULL", at(func(i int) any { return currencies[i].code })},
			{"dt_from", "DATE NOT NULL", constant("2025-01-01")},
			{"dt_to", "DATE", constant(nil)},
			{"flg_incl_vat", "INTEGER NOT NULL", flag(0.8)},
		}},
		{name: "price_list_items", rows: 14 * 240, columns: []column{
			{"pl_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i/240 + 1) })},
			{"prod_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i%240 + 1) })},
			{"amt_prc_lcl", "INTEGER NOT NULL", at(func(i int) any { return c.products[i%240].price * currencies[i/240].rate / 10000 })},
			{"amt_prc_was_lcl", "INTEGER", mostly(0.15, at(func(i int) any { return c.products[i%240].price * currencies[i/240].rate / 9000 }))},
			{"upd_ts", "DATETIME NOT NULL", stamp(firstOf25, lastDay)},
		}, keys: []string{"PRIMARY KEY (pl_id, prod_id)", "FOREIGN KEY (pl_id) REFERENCES price_lists (pl_id)"}},
		{name: "orders_2023_bak", rows: len(early), columns: []column{
			{"ord_id", "INTEGER", serial},
			{"ord_no", "TEXT", numbered("O-%07d")},
			{"customer", "INTEGER", each(early, func(o *order) any { return id(o.customer) })},
			{"order_date", "TEXT", each(early, func(o *order) any { return calendar[o.day] })},
			{"state", "TEXT", each(early, func(o *order) any { return o.status })},
			{"amount", "REAL", each(early, func(o *order) any { return float64(o.net) / 100 })},
			{"country", "TEXT", each(early, func(o *order) any { return countries[o.country].iso3 })},
			{"comment", "TEXT", mostly(0.02, pick("migrated", "checked by hand", "dup?"))},
		}},
		{name: "ord_hdr_stg", rows: len(recent), columns: []column{
			{"ord_id", "INTEGER", at(func(i int) any { return int64(first + i + 1) })},
			{"cust_id", "INTEGER", each(recent, func(o *order) any { return id(o.customer) })},
			{"dt_ord", "TEXT", each(recent, func(o *order) any { return calendar[o.day] })},
			{"status_raw", "TEXT", odds("10", 20, "20", 30, "30", 40, "99", 10)},
			{"amt_gross_lcl", "INTEGER", each(recent, func(o *order) any {
				return local(o.net*int64(100+countries[o.country].vat)/100, o.country)
			})},
			{"curr_cd", "TEXT", each(recent, func(o *order) any { return countries[o.country].currency })},
			{"batch_id", "INTEGER", at(func(i int) any { return int64(9000 + i/250) })},
			{"load_ts", "DATETIME", stamp(lastDay, lastDay)},
			{"err_txt", "TEXT", mostly(0.04, pick("unknown SKU", "address incomplete", "duplicate key"))},
		}},
	}
}
