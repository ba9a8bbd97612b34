package warehouse

import (
	"fmt"
	"math/rand/v2"
)

func supplyTables(c *company) []table {
	prod := func(f func(*product) any) gen { return each(c.products, f) }
	places := []string{"Hamburg", "Lyon", "Rotterdam", "Gdansk", "Denver", "Nagano"}
	carriers := []string{"Postvogel", "Rapidex", "Fjordline", "Transalp", "Ozeania", "Prairie Freight"}
	var sent []int
	for i, o := range c.orders {
		if o.store < 0 && o.status != "cancelled" && o.status != "processing" {
			sent = append(sent, i)
		}
	}
	ship := func(f func(*order) any) gen { return at(func(i int) any { return f(&c.orders[sent[i]]) }) }
	suppliers := 70
	stocked := func(i int) *product { return &c.products[i%len(c.products)] }
	return []table{
		{name: "dim_prod", rows: len(c.products), columns: []column{
			{"prod_id", "INTEGER PRIMARY KEY", serial},
			{"sku", "TEXT NOT NULL UNIQUE", numbered("SKU-%05d")},
			{"prod_nm", "TEXT NOT NULL", at(func(i int) any {
				return fmt.Sprintf("%s %s %d", brands[c.products[i].brand], categories[c.products[i].category], 100+i)
			})},
			{"cat_id", "INTEGER NOT NULL", prod(func(p *product) any { return id(p.category) })},
			{"brand_id", "INTEGER NOT NULL", prod(func(p *product) any { return id(p.brand) })},
			{"amt_list_eur", "INTEGER NOT NULL", prod(func(p *product) any { return p.price })},
			{"amt_std_cost_eur", "INTEGER NOT NULL", prod(func(p *product) any { return p.cost })},
			{"wt_g", "INTEGER", mostly(0.92, number(40, 9000))},
			{"color", "TEXT", mostly(0.85, pick("moss", "slate", "ember", "glacier", "sand", "black"))},
			{"ean", "TEXT", mostly(0.97, digits("40###########"))},
			{"lifecycle", "TEXT NOT NULL", odds("active", 80, "phase-out", 15, "planned", 5)},
			{"dt_intro", "DATE", mostly(0.9, date(0, lastDay))},
		}, keys: []string{"FOREIGN KEY (cat_id) REFERENCES prod_cat (cat_id)", "FOREIGN KEY (brand_id) REFERENCES brands (brand_id)"}},
		{name: "prod_cat", rows: len(categories), columns: []column{
			{"cat_id", "INTEGER PRIMARY KEY", serial},
			{"cat_cd", "TEXT NOT NULL", numbered("K%02d")},
			{"cat_name", "TEXT NOT NULL", nth(categories...)},
			{"cat_grp", "TEXT NOT NULL", nth("apparel", "apparel", "equipment", "equipment", "equipment", "equipment", "equipment", "equipment", "apparel", "apparel", "equipment", "equipment")},
		}},
		{name: "brands", rows: len(brands), columns: []column{
			{"brand_id", "INTEGER PRIMARY KEY", serial},
			{"brand_nm", "TEXT NOT NULL", nth(brands...)},
			{"flg_own", "INTEGER NOT NULL", flag(0.3)},
			{"ctry_cd", "TEXT", mostly(0.8, at(func(i int) any { return countries[i%len(countries)].iso2 }))},
		}},
		{name: "suppliers", rows: suppliers, columns: []column{
			{"supp_id", "INTEGER PRIMARY KEY", serial},
			{"supp_nm", "TEXT NOT NULL", func(r *rand.Rand, i int) any {
				return fmt.Sprintf("%s %s", lastName(r, i), pick("Textil", "Outdoor", "Metall", "Trading")(r, i))
			}},
			{"ctry_cd", "TEXT NOT NULL", at(func(i int) any { return countries[i*7%len(countries)].iso2 })},
			{"cntct_email", "TEXT", mostly(0.9, numbered("sales%02d@supplier.example"))},
			{"pay_terms_d", "INTEGER", mostly(0.95, func(r *rand.Rand, _ int) any { return int64(30 * (1 + r.IntN(3))) })},
			{"audit_score", "INTEGER", mostly(0.6, number(40, 100))},
			{"flg_active", "INTEGER NOT NULL", flag(0.9)},
		}},
		{name: "product_suppliers", rows: 2 * len(c.products), columns: []column{
			{"prod_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i/2 + 1) })},
			{"supp_id", "INTEGER NOT NULL", at(func(i int) any { return int64((i/2*3+i%2*11)%suppliers + 1) })},
			{"lead_days", "INTEGER", mostly(0.9, number(7, 120))},
			{"moq", "INTEGER NOT NULL", number(10, 500)},
			{"prio_rank", "INTEGER NOT NULL", at(func(i int) any { return int64(i%2 + 1) })},
		}, keys: []string{"PRIMARY KEY (prod_id, supp_id)", "FOREIGN KEY (prod_id) REFERENCES dim_prod (prod_id)", "FOREIGN KEY (supp_id) REFERENCES suppliers (supp_id)"}},
		{name: "whs", rows: len(places), columns: []column{
			{"whs_id", "INTEGER PRIMARY KEY", serial},
			{"whs_nm", "TEXT NOT NULL", nth(places...)},
			{"ctry_cd", "TEXT NOT NULL", nth("DE", "FR", "NL", "PL", "US", "JP")},
			{"cap_plt", "INTEGER NOT NULL", number(4000, 30000)},
			{"flg_3pl", "INTEGER NOT NULL", flag(0.4)},
		}},
		{name: "stock_lvl", rows: len(places) * len(c.products), columns: []column{
			{"whs_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i/len(c.products) + 1) })},
			{"prod_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i%len(c.products) + 1) })},
			{"snap_dt", "DATE NOT NULL", constant("2025-12-31")},
			{"qty_on_hand", "INTEGER NOT NULL", number(0, 400)},
			{"qty_resv", "INTEGER NOT NULL", number(0, 20)},
			{"qty_in_transit", "INTEGER", mostly(0.4, number(0, 200))},
			{"amt_unit_cost_eur", "INTEGER NOT NULL", at(func(i int) any { return stocked(i).cost })},
		}, keys: []string{"PRIMARY KEY (whs_id, prod_id)", "FOREIGN KEY (whs_id) REFERENCES whs (whs_id)", "FOREIGN KEY (prod_id) REFERENCES dim_prod (prod_id)"}},
		{name: "po_hdr", rows: 1500, columns: []column{
			{"po_no", "TEXT PRIMARY KEY", numbered("PO-%05d")},
			{"supp_id", "INTEGER NOT NULL", key(suppliers)},
			{"whs_id", "INTEGER NOT NULL", key(len(places))},
			{"dt_po", "DATE NOT NULL", at(func(i int) any { return calendar[i*lastDay/1500] })},
			{"dt_eta", "DATE", mostly(0.9, at(func(i int) any { return day(i*lastDay/1500 + 45) }))},
			{"po_status", "TEXT NOT NULL", odds("closed", 80, "open", 14, "cancelled", 6)},
			{"curr_cd", "TEXT NOT NULL", odds("EUR", 60, "USD", 40)},
		}, keys: []string{"FOREIGN KEY (supp_id) REFERENCES suppliers (supp_id)", "FOREIGN KEY (whs_id) REFERENCES whs (whs_id)"}},
		{name: "po_ln", rows: 6000, columns: []column{
			{"po_no", "TEXT NOT NULL", at(func(i int) any { return fmt.Sprintf("PO-%05d", i/4+1) })},
			{"ln_no", "INTEGER NOT NULL", at(func(i int) any { return int64(i%4 + 1) })},
			{"prod_id", "INTEGER NOT NULL", key(len(c.products))},
			{"qty_ord", "INTEGER NOT NULL", number(10, 600)},
			{"qty_rcvd", "INTEGER", mostly(0.85, number(0, 600))},
			{"amt_unit_cost_cur", "INTEGER NOT NULL", number(300, 14000)},
		}, keys: []string{"PRIMARY KEY (po_no, ln_no)", "FOREIGN KEY (po_no) REFERENCES po_hdr (po_no)", "FOREIGN KEY (prod_id) REFERENCES dim_prod (prod_id)"}},
		{name: "carriers", rows: len(carriers), columns: []column{
			{"carrier_id", "INTEGER PRIMARY KEY", serial},
			{"carrier_nm", "TEXT NOT NULL", nth(carriers...)},
			{"track_url", "TEXT", mostly(0.8, numbered("https://track%d.example/"))},
			{"flg_express", "INTEGER NOT NULL", flag(0.4)},
		}},
		{name: "shipments", rows: len(sent), columns: []column{
			{"shp_id", "INTEGER PRIMARY KEY", serial},
			{"ord_id", "INTEGER NOT NULL UNIQUE", at(func(i int) any { return id(sent[i]) })},
			{"carrier_id", "INTEGER NOT NULL", key(len(carriers))},
			{"whs_id", "INTEGER NOT NULL", key(len(places))},
			{"dest_ctry_cd", "TEXT NOT NULL", ship(func(o *order) any { return countries[o.country].iso2 })},
			{"dt_shp", "DATE NOT NULL", ship(func(o *order) any { return calendar[min(lastDay, o.day+1)] })},
			{"dt_dlv_prom", "DATE NOT NULL", ship(func(o *order) any { return calendar[min(lastDay, o.day+5)] })},
			{"dt_dlv_act", "DATE", func(r *rand.Rand, i int) any {
				o := &c.orders[sent[i]]
				if o.status == "shipped" {
					return nil
				}
				return day(o.day + []int{2, 3, 3, 4, 4, 5, 5, 5, 6, 8}[r.IntN(10)])
			}},
			{"track_no", "TEXT", mostly(0.96, digits("@@#########"))},
			{"amt_frt_eur", "INTEGER", mostly(0.9, number(280, 2400))},
		}, keys: []string{"FOREIGN KEY (carrier_id) REFERENCES carriers (carrier_id)", "FOREIGN KEY (whs_id) REFERENCES whs (whs_id)"}},
	}
}
