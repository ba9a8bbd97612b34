package warehouse

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

func refTables(*company) []table {
	months := 36
	// The market's rate moves around the plan; a euro is a euro.
	market := func(r *rand.Rand, i int) any {
		if i < months {
			return currencies[0].rate
		}
		return currencies[i/months].rate * int64(9700+r.IntN(600)) / 10000
	}
	statuses := []string{"processing", "shipped", "delivered", "cancelled", "returned"}
	return []table{
		{name: "countries", rows: len(countries), columns: []column{
			{"iso2", "TEXT PRIMARY KEY", each(countries, func(c *country) any { return c.iso2 })},
			{"iso3", "TEXT NOT NULL UNIQUE", each(countries, func(c *country) any { return c.iso3 })},
			{"country_name", "TEXT NOT NULL", each(countries, func(c *country) any { return c.name })},
			{"sales_region", "TEXT NOT NULL", each(countries, func(c *country) any { return c.region })},
			{"curr_cd", "TEXT NOT NULL", each(countries, func(c *country) any { return c.currency })},
			{"vat_std_pct", "INTEGER NOT NULL", each(countries, func(c *country) any { return int64(c.vat) })},
			{"flg_eu", "INTEGER NOT NULL", each(countries, func(c *country) any {
				if strings.Contains("DE FR AT IT ES NL SE PL PT", c.iso2) {
					return int64(1)
				}
				return int64(0)
			})},
		}, keys: []string{"FOREIGN KEY (curr_cd) REFERENCES currencies (curr_cd)"}},
		{name: "currencies", rows: len(currencies), columns: []column{
			{"curr_cd", "TEXT PRIMARY KEY", each(currencies, func(c *currency) any { return c.code })},
			{"curr_nm", "TEXT NOT NULL", each(currencies, func(c *currency) any { return c.name })},
			{"rate_plan_e4", "INTEGER NOT NULL", each(currencies, func(c *currency) any { return c.rate })},
			{"minor_digits", "INTEGER NOT NULL", each(currencies, func(c *currency) any {
				if c.code == "JPY" {
					return int64(0)
				}
				return int64(2)
			})},
		}},
		{name: "fx_rates_m", rows: len(currencies) * months, columns: []column{
			{"curr_cd", "TEXT NOT NULL", at(func(i int) any { return currencies[i/months].code })},
			{"mth", "TEXT NOT NULL", at(func(i int) any { return calendar[i%months*365/12+5][:7] })},
			{"rate_avg_e4", "INTEGER NOT NULL", market},
			{"rate_eom_e4", "INTEGER", mostly(0.97, market)},
			{"src", "TEXT NOT NULL", constant("ECB")},
		}, keys: []string{"PRIMARY KEY (curr_cd, mth)", "FOREIGN KEY (curr_cd) REFERENCES currencies (curr_cd)"}},
		{name: "calendar", rows: len(calendar), columns: []column{
			{"cal_dt", "DATE PRIMARY KEY", at(func(i int) any { return calendar[i] })},
			{"yr", "INTEGER NOT NULL", at(func(i int) any { return int64(year(i)) })},
			{"qtr", "TEXT NOT NULL", at(func(i int) any { return fmt.Sprint("Q", 1+(month(i)-1)/3) })},
			{"mth_no", "INTEGER NOT NULL", at(func(i int) any { return int64(month(i)) })},
			{"yr_mth", "TEXT NOT NULL", at(func(i int) any { return calendar[i][:7] })},
			{"dow", "TEXT NOT NULL", nth("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")},
			{"flg_wkend", "INTEGER NOT NULL", at(func(i int) any {
				if d := i % 7; d == 0 || d == 6 {
					return int64(1)
				}
				return int64(0)
			})},
			{"fisc_yr", "TEXT NOT NULL", at(func(i int) any { return "FY" + calendar[min(lastDay, max(0, i-31))][2:4] })},
			{"holiday_nm", "TEXT", at(func(i int) any {
				switch calendar[i][5:] {
				case "01-01":
					return "New Year"
				case "05-01":
					return "Labour Day"
				case "12-25":
					return "Christmas Day"
				}
				return nil
			})},
		}},
		{name: "channels", rows: len(channels), columns: []column{
			{"chnl_cd", "TEXT PRIMARY KEY", each(channels, func(c *channel) any { return c.code })},
			{"chnl_nm", "TEXT NOT NULL", each(channels, func(c *channel) any { return c.name })},
			{"chnl_kind", "TEXT NOT NULL", each(channels, func(c *channel) any { return c.kind })},
			{"dt_launch", "DATE", constant(nil)},
		}},
		{name: "ord_status_ref", rows: len(statuses), columns: []column{
			{"status", "TEXT PRIMARY KEY", nth(statuses...)},
			{"descr", "TEXT NOT NULL", nth("picked or waiting", "handed to the carrier", "received by the customer", "called off before it left", "all of it came back")},
			{"flg_final", "INTEGER NOT NULL", at(func(i int) any { return int64(min(1, i/2)) })},
		}},
	}
}

func year(d int) int {
	switch {
	case d < firstOf24:
		return 2023
	case d < firstOf25:
		return 2024
	}
	return 2025
}

func month(d int) int { return int(calendar[d][5]-'0')*10 + int(calendar[d][6]-'0') }
