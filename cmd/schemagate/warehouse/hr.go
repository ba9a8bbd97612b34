package warehouse

import (
	"math/rand/v2"
)

func hrTables(c *company) []table {
	emp := func(f func(*employee) any) gen { return each(c.employees, f) }
	n := len(c.employees)
	titles := []string{"Sales assistant", "Store manager", "Picker", "Driver", "Engineer", "Analyst", "Accountant", "Recruiter", "Buyer", "Counsel", "Team lead", "Director"}
	shift := func(i int) *employee { return &c.employees[i%n] }
	during := func(r *rand.Rand, e *employee) int { return e.hired + r.IntN(min(e.left, lastDay)-e.hired+1) }
	return []table{
		{name: "departments", rows: len(departments), columns: []column{
			{"dept_id", "INTEGER PRIMARY KEY", serial},
			{"dept_cd", "TEXT NOT NULL UNIQUE", nth("RET", "LOG", "ECO", "FIN", "HRD", "ITC", "MKT", "PUR", "CSV", "LEG")},
			{"dept_name", "TEXT NOT NULL", nth(departments...)},
			{"cc_cd", "TEXT", mostly(0.9, numbered("CC%03d"))},
			{"head_emp_no", "TEXT", mostly(0.9, numbered("E%05d"))},
		}},
		{name: "positions", rows: len(titles), columns: []column{
			{"pos_id", "INTEGER PRIMARY KEY", serial},
			{"pos_title", "TEXT NOT NULL", nth(titles...)},
			{"job_grade", "INTEGER NOT NULL", number(1, 9)},
			{"flg_mgmt", "INTEGER NOT NULL", at(func(i int) any { return int64(i / 10) })},
		}},
		{name: "employees", rows: n, columns: []column{
			{"emp_id", "INTEGER PRIMARY KEY", serial},
			{"emp_no", "TEXT NOT NULL UNIQUE", numbered("E%05d")},
			{"first_nm", "TEXT NOT NULL", firstName},
			{"last_nm", "TEXT NOT NULL", lastName},
			{"work_email", "TEXT", mostly(0.98, numbered("e%05d@fjord-and-fell.example"))},
			{"phone_priv", "TEXT", mostly(0.7, phone)},
			{"birth_dt", "DATE NOT NULL", born},
			{"ssn", "TEXT NOT NULL", nationalID},
			{"iban", "TEXT", mostly(0.99, iban)},
			{"dept_id", "INTEGER NOT NULL", emp(func(e *employee) any { return id(e.department) })},
			{"pos_id", "INTEGER NOT NULL", key(len(titles))},
			{"store_id", "INTEGER", func(r *rand.Rand, i int) any {
				if c.employees[i].department != 0 {
					return nil
				}
				return id(r.IntN(len(c.stores)))
			}},
			{"ctry_cd", "TEXT NOT NULL", emp(func(e *employee) any { return countries[e.country].iso2 })},
			{"dt_hired", "DATE NOT NULL", emp(func(e *employee) any { return calendar[e.hired] })},
			{"dt_left", "DATE", emp(func(e *employee) any { return day(e.left) })},
			{"amt_sal_ann_eur", "INTEGER NOT NULL", emp(func(e *employee) any { return e.salary })},
			{"fte_pct", "INTEGER NOT NULL", func(r *rand.Rand, _ int) any { return int64([]int{100, 100, 100, 80, 50}[r.IntN(5)]) }},
			{"sex", "TEXT", mostly(0.95, odds("f", 49, "m", 49, "x", 2))},
		}, keys: []string{"FOREIGN KEY (dept_id) REFERENCES departments (dept_id)", "FOREIGN KEY (pos_id) REFERENCES positions (pos_id)"}},
		{name: "sal_hist", rows: 3 * n, columns: []column{
			{"emp_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i/3 + 1) })},
			{"sal_yr", "INTEGER NOT NULL", at(func(i int) any { return int64(2023 + i%3) })},
			{"amt_base_eur", "INTEGER NOT NULL", at(func(i int) any { return c.employees[i/3].salary * int64(94+3*(i%3)) / 100 })},
			{"amt_bonus_eur", "INTEGER", mostly(0.3, number(50000, 900000))},
			{"chg_rsn", "TEXT", mostly(0.7, pick("yearly round", "promotion", "market"))},
		}, keys: []string{"PRIMARY KEY (emp_id, sal_yr)", "FOREIGN KEY (emp_id) REFERENCES employees (emp_id)"}},
		{name: "absences", rows: 4000, columns: []column{
			{"abs_id", "INTEGER PRIMARY KEY", serial},
			{"emp_id", "INTEGER NOT NULL", key(n)},
			{"abs_typ", "TEXT NOT NULL", odds("vacation", 62, "sick", 30, "parental", 3, "other", 5)},
			{"dt_from", "DATE NOT NULL", date(0, lastDay)},
			{"days_cnt", "INTEGER NOT NULL", number(1, 15)},
			{"doc_ref", "TEXT", mostly(0.25, digits("D-######"))},
		}, keys: []string{"FOREIGN KEY (emp_id) REFERENCES employees (emp_id)"}},
		{name: "trainings", rows: 20, columns: []column{
			{"trn_id", "INTEGER PRIMARY KEY", serial},
			{"trn_nm", "TEXT NOT NULL", numbered("Course %02d")},
			{"hrs", "INTEGER NOT NULL", number(1, 24)},
			{"flg_mandatory", "INTEGER NOT NULL", flag(0.3)},
			{"provider", "TEXT", mostly(0.8, pick("in-house", "Alpine School", "SafeWork"))},
		}},
		{name: "employee_trainings", rows: 3 * n, columns: []column{
			{"emp_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i/3 + 1) })},
			{"trn_id", "INTEGER NOT NULL", at(func(i int) any { return int64((i/3+i%3*7)%20 + 1) })},
			{"dt_done", "DATE", mostly(0.86, date(0, lastDay))},
			{"score", "INTEGER", mostly(0.5, number(40, 100))},
		}, keys: []string{"PRIMARY KEY (emp_id, trn_id)", "FOREIGN KEY (emp_id) REFERENCES employees (emp_id)", "FOREIGN KEY (trn_id) REFERENCES trainings (trn_id)"}},
		{name: "shifts", rows: 6000, columns: []column{
			{"shift_id", "INTEGER PRIMARY KEY", serial},
			{"emp_id", "INTEGER NOT NULL", at(func(i int) any { return int64(i%n + 1) })},
			{"shift_dt", "DATE NOT NULL", func(r *rand.Rand, i int) any { return calendar[during(r, shift(i))] }},
			{"hrs_plan", "INTEGER NOT NULL", number(4, 9)},
			{"hrs_act", "INTEGER", mostly(0.93, number(4, 10))},
			{"shift_typ", "TEXT NOT NULL", odds("early", 45, "late", 45, "night", 10)},
		}, keys: []string{"FOREIGN KEY (emp_id) REFERENCES employees (emp_id)"}},
	}
}
