package warehouse

import "math/rand/v2"

func supportTables(c *company) []table {
	type ticket struct{ order, day int }
	n := 4500
	tickets := make([]ticket, n)
	for i := range tickets {
		o := i * len(c.orders) / n
		tickets[i] = ticket{o, min(lastDay, c.orders[o].day+1+i%21)}
	}
	tic := func(f func(*ticket) any) gen { return each(tickets, f) }
	resolved := func(t *ticket) bool { return t.day < lastDay-20 || t.order%3 == 0 }
	agents := 45
	return []table{
		{name: "agents", rows: agents, columns: []column{
			{"agent_id", "INTEGER PRIMARY KEY", serial},
			{"nick", "TEXT NOT NULL", firstName},
			{"emp_no", "TEXT", mostly(0.85, digits("E00###"))},
			{"team", "TEXT NOT NULL", odds("phone", 40, "chat", 35, "returns desk", 25)},
			{"site", "TEXT NOT NULL", pick("Leipzig", "Porto", "Denver", "remote")},
			{"lang_skills", "TEXT", mostly(0.9, pick("de,en", "fr,en", "es,pt,en", "ja,en"))},
		}},
		{name: "sla", rows: 4, columns: []column{
			{"prio", "TEXT PRIMARY KEY", nth("urgent", "high", "normal", "low")},
			{"hrs_first_resp", "INTEGER NOT NULL", at(func(i int) any { return int64([]int{1, 4, 12, 48}[i]) })},
			{"hrs_resolve", "INTEGER NOT NULL", at(func(i int) any { return int64([]int{8, 24, 72, 240}[i]) })},
		}},
		{name: "tickets", rows: n, columns: []column{
			{"ticket_id", "INTEGER PRIMARY KEY", serial},
			{"cust_id", "INTEGER NOT NULL", tic(func(t *ticket) any { return id(c.orders[t.order].customer) })},
			{"ord_id", "INTEGER", mostly(0.74, tic(func(t *ticket) any { return id(t.order) }))},
			{"agent_id", "INTEGER", mostly(0.94, key(agents))},
			{"region", "TEXT NOT NULL", tic(func(t *ticket) any { return countries[c.orders[t.order].country].region })},
			{"topic", "TEXT NOT NULL", odds("delivery", 34, "return", 26, "product", 18, "payment", 12, "account", 10)},
			{"prio", "TEXT NOT NULL", odds("urgent", 4, "high", 16, "normal", 62, "low", 18)},
			{"status", "TEXT NOT NULL", func(r *rand.Rand, i int) any {
				if resolved(&tickets[i]) {
					return odds("closed", 92, "solved", 8)(r, i)
				}
				return odds("open", 60, "pending", 40)(r, i)
			}},
			{"dt_opened", "DATE NOT NULL", tic(func(t *ticket) any { return calendar[t.day] })},
			{"dt_closed", "DATE", tic(func(t *ticket) any {
				if !resolved(t) {
					return nil
				}
				return calendar[min(lastDay, t.day+t.order%6)]
			})},
			{"subj", "TEXT NOT NULL", pick("Where is my parcel", "Zip is broken", "Refund please", "Cannot log in", "Wrong size")},
			{"email_from", "TEXT", mostly(0.7, tic(func(t *ticket) any {
				who := c.orders[t.order].customer
				return c.customers[who].email(who)
			}))},
		}, keys: []string{"FOREIGN KEY (agent_id) REFERENCES agents (agent_id)", "FOREIGN KEY (prio) REFERENCES sla (prio)"}},
		{name: "ticket_msgs", rows: 2 * n, columns: []column{
			{"msg_id", "INTEGER PRIMARY KEY", serial},
			{"ticket_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i/2 + 1) })},
			{"dir", "TEXT NOT NULL", nth("in", "out")},
			{"sent_ts", "DATETIME NOT NULL", func(r *rand.Rand, i int) any { return clock(r, tickets[i/2].day) }},
			{"body", "TEXT", mostly(0.96, pick("Hello, I wait for an answer.", "We are looking into it.", "Thank you, solved.", "Please call me back."))},
			{"sentiment", "TEXT", mostly(0.5, odds("good", 30, "neutral", 50, "bad", 20))},
		}, keys: []string{"FOREIGN KEY (ticket_id) REFERENCES tickets (ticket_id)"}},
		{name: "tags", rows: 16, columns: []column{
			{"tag_id", "INTEGER PRIMARY KEY", serial},
			{"tag", "TEXT NOT NULL UNIQUE", numbered("tag-%02d")},
			{"made_by", "TEXT", mostly(0.6, pick("import", "team lead"))},
		}},
		{name: "ticket_tag_map", rows: 5800, columns: []column{
			{"ticket_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i*3/4 + 1) })},
			{"tag_id", "INTEGER NOT NULL", at(func(i int) any { return int64((i*7+i/5)%16 + 1) })},
		}, keys: []string{"PRIMARY KEY (ticket_id, tag_id)", "FOREIGN KEY (ticket_id) REFERENCES tickets (ticket_id)", "FOREIGN KEY (tag_id) REFERENCES tags (tag_id)"}},
		{name: "csat", rows: 2200, columns: []column{
			{"ticket_id", "INTEGER PRIMARY KEY", at(func(i int) any { return int64(2*i + 1) })},
			{"score", "INTEGER NOT NULL", number(1, 5)},
			{"dt_answered", "DATE NOT NULL", at(func(i int) any { return calendar[min(lastDay, tickets[2*i].day+7)] })},
			{"free_txt", "TEXT", mostly(0.2, pick("quick", "friendly", "too slow", "no answer"))},
		}, keys: []string{"FOREIGN KEY (ticket_id) REFERENCES tickets (ticket_id)"}},
	}
}
