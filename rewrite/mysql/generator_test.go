package mysql_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// generator writes random statements over a world. If it is loose, some of them name what is hidden or absent.
type generator struct {
	r      *rand.Rand
	world  *world
	tables []genTable // that can be named: those that the asker sees, and WITH names
	loose  bool
	inner  bool // no outer joins, but ALL: MariaDB takes ALL over no rows for a condition that NULL does not meet
	depth  int
	names  int
}

type genTable struct {
	name    string
	columns []genColumn
	keyed   bool // its id is unique
}

type genColumn struct {
	name string // as SQL writes it
	kind byte
}

// field is a column in scope.
type field struct {
	sql  string
	kind byte
	name string // without its table
}

func newGenerator(r *rand.Rand, w *world, loose bool) *generator {
	g := &generator{r: r, world: w, loose: loose, inner: r.IntN(4) == 0}
	for _, t := range w.tables {
		if t.absent {
			continue
		}
		v := genTable{name: q(t.name), keyed: t.body == "" && t.columns[0].mask == nil && !t.columns[0].hidden}
		for _, c := range t.columns {
			if !c.hidden {
				v.columns = append(v.columns, genColumn{q(c.name), c.kind})
			}
		}
		g.tables = append(g.tables, v)
	}
	return g
}

func (g *generator) pick(options ...string) string { return options[g.r.IntN(len(options))] }

// one reports true once in n times.
func (g *generator) one(n int) bool { return g.r.IntN(n) == 0 }

func (g *generator) alias() string {
	g.names++
	switch g.r.IntN(14) {
	case 0:
		return fmt.Sprintf("`a `` -- %d`", g.names)
	case 1:
		return fmt.Sprintf("`Ünd.%d`", g.names)
	}
	return fmt.Sprintf("a%d", g.names)
}

func (g *generator) kind() byte { return "iiissd"[g.r.IntN(6)] }

// of is a column of that kind, or a literal.
func (g *generator) of(fields []field, kind byte) string {
	if g.loose && g.one(30) {
		return g.hiddenColumn()
	}
	some := g.fieldsOf(fields, kind)
	if len(some) == 0 || g.one(8) {
		switch kind {
		case 'i':
			return g.pick(strconv.Itoa(g.r.IntN(12)), "1.5", "null", "-1")
		case 's':
			return g.pick("'a'", "'north'", "'c'", `'\\'`, "'it''s'", "''")
		}
		return "DATE '2024-01-0" + strconv.Itoa(1+g.r.IntN(9)) + "'"
	}
	return g.pick(some...)
}

func (g *generator) fieldsOf(fields []field, kind byte) []string {
	var some []string
	for _, f := range fields {
		if f.kind == kind {
			some = append(some, f.sql)
		}
	}
	return some
}

func (g *generator) hiddenColumn() string {
	for _, t := range g.world.tables {
		for _, c := range t.columns {
			if c.hidden && g.one(2) {
				return q(c.name)
			}
		}
	}
	return "nowhere"
}

func (g *generator) value(fields []field, kind byte) string {
	if g.r.IntN(3) > 0 || g.depth > 3 {
		return g.of(fields, kind)
	}
	g.depth++
	defer func() { g.depth-- }()
	a, b := g.value(fields, kind), g.value(fields, kind)
	switch kind {
	case 'i':
		switch g.r.IntN(12) {
		case 0:
			return a + " " + g.pick("+", "-", "*") + " " + b
		case 1:
			return "-" + g.of(fields, 'i')
		case 2:
			return "coalesce(" + a + ", " + b + ")"
		case 3:
			return g.pick("length", "char_length", "ascii") + "(" + g.value(fields, 's') + ")"
		case 4:
			return "case when " + g.condition(fields) + " then " + a + " else " + b + " end"
		case 5:
			return g.scalar(fields, "i")
		case 6:
			return "abs(" + a + ") % 5"
		case 7:
			return "datediff(" + g.value(fields, 'd') + ", DATE '2024-01-01')"
		case 8:
			return "(" + g.condition(fields) + ")"
		case 9:
			return "if(" + g.condition(fields) + ", " + a + ", " + b + ")"
		case 10:
			return g.pick("greatest", "least", "nullif", "ifnull") + "(" + a + ", " + b + ")"
		}
		return "(" + a + ")"
	case 's':
		if g.one(8) {
			return g.scalar(fields, "s")
		}
		return g.pick("concat("+a+", '-', "+b+")", "upper("+a+")", "left("+a+", 2)", "ifnull("+a+", 'none')", "nullif("+a+", "+b+")", "trim("+a+")", "replace("+a+", 'a', 'x')",
			"case "+a+" when 'a' then "+b+" end", "date_format("+g.of(fields, 'd')+", '%Y-%m')", "concat_ws('/', "+a+", "+b+")", "cast("+g.of(fields, 'i')+" as char)")
	}
	return g.pick(a+" + interval 1 day", "date_sub("+a+", interval 2 day)", "coalesce("+a+", "+b+")", "last_day("+a+")")
}

// scalar is a subquery for one value, correlated or not.
func (g *generator) scalar(fields []field, kind string) string {
	t := g.table()
	a := g.alias()
	inner := g.fields(t, a)
	where := ""
	if g.one(2) {
		where = " where " + g.of(inner, 'i') + " = " + g.of(fields, 'i')
	}
	column := g.of(inner, kind[0])
	if g.one(4) {
		return "(select " + column + " from " + t.name + " " + a + where + " order by 1 limit 1)"
	}
	f := g.pick("max", "min")
	if kind == "i" {
		f = g.pick("max", "min", "sum", "count", "count")
	}
	return "(select " + f + "(" + column + ") from " + t.name + " " + a + where + ")"
}

func (g *generator) condition(fields []field) string {
	g.depth++
	defer func() { g.depth-- }()
	kind := g.kind()
	if g.depth > 4 {
		return g.of(fields, kind) + " = " + g.of(fields, kind)
	}
	switch g.r.IntN(15) {
	case 0:
		return g.condition(fields) + " and " + g.condition(fields)
	case 1:
		return g.condition(fields) + " or " + g.condition(fields)
	case 2:
		return "not (" + g.condition(fields) + ")"
	case 3:
		return g.of(fields, kind) + g.pick(" is null", " is not null")
	case 4:
		return g.of(fields, 's') + g.pick(" like ", " not like ") + g.pick("'%a%'", "'_o%'", `'\\_%'`)
	case 5:
		t := g.table()
		return g.of(fields, 'i') + g.pick(" in", " not in") + " (select " + g.of(g.fields(t, t.name), 'i') + " from " + t.name + ")"
	case 6:
		t, a := g.table(), g.alias()
		inner := g.fields(t, a)
		return g.pick("", "not ") + "exists (select " + g.pick("1", "*", "null") + " from " + t.name + " " + a + " where " + g.of(inner, 'i') + " = " + g.of(fields, 'i') + ")"
	case 7:
		return g.value(fields, 'i') + g.pick(" between", " not between") + " 1 and " + g.value(fields, 'i')
	case 8:
		t := g.table()
		quantified := []string{" <= any", " = some"}
		if g.inner {
			quantified = append(quantified, " > all", " <> all")
		}
		return g.of(fields, 'i') + g.pick(quantified...) + " (select " + g.of(g.fields(t, t.name), 'i') + " from " + t.name + ")"
	case 9:
		t := g.table()
		inner := g.fields(t, t.name)
		return "(" + g.of(fields, 'i') + ", " + g.of(fields, 's') + ")" + g.pick(" in", " not in") + " (select " + g.of(inner, 'i') + ", " + g.of(inner, 's') + " from " + t.name + ")"
	case 10:
		return g.of(fields, 'i') + g.pick(" in", " not in") + " (1, 7, " + g.of(fields, 'i') + ")"
	case 11:
		return "(" + g.condition(fields) + ") is " + g.pick("true", "not true", "false", "unknown")
	}
	return g.value(fields, kind) + " " + g.pick("=", "<>", "<", ">=", "<=>") + " " + g.value(fields, kind)
}

func (g *generator) table() genTable {
	if g.loose && g.one(15) {
		for _, t := range g.world.tables {
			if t.absent {
				return genTable{name: q(t.name), columns: []genColumn{{q(t.columns[0].name), t.columns[0].kind}}}
			}
		}
		return genTable{name: "nowhere", columns: []genColumn{{"id", 'i'}}}
	}
	// A WITH name may hide a table of the same name.
	t := g.tables[g.r.IntN(len(g.tables))]
	for _, later := range g.tables {
		if later.name == t.name {
			t = later
		}
	}
	return t
}

func (g *generator) fields(t genTable, alias string) []field {
	out := make([]field, 0, len(t.columns))
	for _, c := range t.columns {
		out = append(out, field{alias + "." + c.name, c.kind, c.name})
	}
	return out
}

// source is one element of FROM. key is a column that is unique in it, if there is one.
func (g *generator) source() (sql string, fields []field, key string) {
	a := g.alias()
	if g.depth < 2 && g.one(8) {
		g.depth++
		defer func() { g.depth-- }()
		block, columns := g.query(false)
		return "(" + block + ") " + a, g.fields(genTable{columns: columns}, a), ""
	}
	t := g.table()
	as := g.pick(" ", " as ") + a
	if g.one(4) {
		a, as = t.name, ""
	}
	if t.keyed {
		key = a + "." + t.columns[0].name
	}
	return t.name + as, g.fields(t, a), key
}

// from writes a FROM clause and returns what makes its rows unique, if that is known.
func (g *generator) from() (string, []field, []string) {
	sql, fields, key := g.source()
	used := []string{sql}
	keys := []string{key}
	for n := max(g.r.IntN(5)-2, 0); n > 0; n-- {
		next, more, key := g.source()
		if slices.Contains(used, next) {
			continue
		}
		used = append(used, next)
		both := slices.Concat(fields, more)
		on := " on " + g.of(fields, 'i') + " = " + g.of(more, 'i')
		if g.one(2) && fields[0].kind == 'i' && more[0].kind == 'i' {
			on = " on " + fields[0].sql + " = " + more[0].sql
		}
		if g.one(3) {
			on = " on " + g.condition(both)
		}
		if common := g.common(fields, more); common != "" && g.one(2) {
			on = " using (" + common + ")"
		}
		kind := g.r.IntN(10)
		if g.inner && (kind == 1 || kind == 2 || kind == 3 || kind == 5 || kind == 7) {
			kind = 9
		}
		switch kind {
		case 0:
			sql = "(" + sql + ") cross join " + next
		case 1, 2:
			sql += " left join " + next + on
		case 3:
			sql += " right join " + next + on
		case 4:
			sql += " straight_join " + next + " on " + g.of(fields, 'i') + " = " + g.of(more, 'i')
		case 5:
			sql = next + " left join (" + sql + ")" + on
		case 6:
			sql = next + ", " + sql
		case 7:
			if g.distinctNames(fields) && g.distinctNames(more) {
				sql = "(" + sql + ") natural " + g.pick("", "left ", "right ") + "join " + next
				break
			}
			sql += " inner join " + next + on
		default:
			sql += " join " + next + on
		}
		if strings.HasPrefix(sql, next+", ") || strings.HasPrefix(sql, next+" left") {
			both = slices.Concat(more, fields)
		}
		fields, keys = both, append(keys, key)
	}
	if slices.Contains(keys, "") {
		keys = nil
	}
	return sql, fields, keys
}

// common is the name of a column that both sides have once.
func (g *generator) common(a, b []field) string {
	count := func(fields []field, name string) (n int) {
		for _, f := range fields {
			if strings.EqualFold(f.name, name) {
				n++
			}
		}
		return n
	}
	for _, f := range a {
		if count(a, f.name) == 1 && count(b, f.name) == 1 {
			return f.name
		}
	}
	return ""
}

func (g *generator) distinctNames(fields []field) bool {
	for i, f := range fields {
		if slices.ContainsFunc(fields[i+1:], func(o field) bool { return strings.EqualFold(o.name, f.name) }) {
			return false
		}
	}
	return true
}

// block writes a query block and the columns that it yields.
func (g *generator) block(top bool) (string, []genColumn) {
	from, fields, keys := g.from()
	tail := ""
	if g.one(3) {
		tail += " where " + g.condition(fields)
	}
	if top && g.one(6) {
		star := "*"
		if g.one(2) && len(fields) > 0 {
			star = strings.TrimSuffix(fields[0].sql, "."+fields[0].name) + ".*"
		}
		return "select " + g.pick("", "distinct ") + star + " from " + from + tail, nil
	}
	var list []string
	var columns []genColumn
	add := func(sql string, kind byte) {
		g.names++
		name := fmt.Sprintf("c%d", g.names) // unlike every column, or GROUP BY would mean that
		list = append(list, sql+" as "+name)
		columns = append(columns, genColumn{name, kind})
	}
	window := ""
	switch {
	case g.one(4):
		kind := g.kind()
		key := g.value(fields, kind)
		add(key, kind)
		for range 1 + g.r.IntN(2) {
			add(g.aggregate(fields), 'i')
		}
		tail += " group by " + columns[0].name
		if g.one(3) {
			other := g.of(fields, 'i')
			if !strings.Contains(other, ".") {
				other = columns[0].name
			} else {
				add(other, 'i')
			}
			tail += ", " + other
		}
		if g.one(5) {
			tail += " with rollup"
		}
		if g.one(2) {
			tail += " having " + columns[1].name + " " + g.pick(">", "<=") + " " + strconv.Itoa(g.r.IntN(3))
		}
	case g.one(8):
		for range 1 + g.r.IntN(3) {
			add(g.aggregate(fields), 'i')
		}
	default:
		for n := 1 + g.r.IntN(3); n > 0; n-- {
			kind := g.kind()
			add(g.value(fields, kind), kind)
		}
		if by := g.fieldsOf(fields, 'i'); g.one(5) && len(by) > 0 { // MariaDB mixes up windows by a constant
			over := "order by " + g.pick(by...) + g.pick("", " desc")
			if partition := g.fieldsOf(fields, 's'); g.one(2) && len(partition) > 0 {
				over = "partition by " + g.pick(partition...) + " " + over
			}
			if g.one(3) {
				window = " window w as (" + over + ")"
				add(g.pick("rank()", "sum("+g.of(fields, 'i')+")", "percent_rank()")+" over w", 'i')
			} else {
				add(g.pick("rank()", "count(*)", "sum("+g.of(fields, 'i')+")", "dense_rank()", "max("+g.of(fields, 'i')+")")+" over ("+over+")", 'i')
			}
			if len(keys) > 0 {
				all := strings.Join(keys, ", ")
				add(g.pick("row_number() over (order by "+all+")", "lag("+g.of(fields, 'i')+", 1) over (order by "+all+")", "count(*) over (order by "+all+" rows between 1 preceding and 1 following)",
					"first_value("+g.of(fields, 'i')+") over (order by "+all+")", "sum("+g.of(fields, 'i')+") over (order by "+all+" rows unbounded preceding)"), 'i')
			}
		}
	}
	return "select " + g.pick("", "", "", "distinct ") + strings.Join(list, ", ") + " from " + from + tail + window, columns
}

func (g *generator) aggregate(fields []field) string {
	return g.pick("count(*)", "count("+g.of(fields, 's')+")", "sum("+g.value(fields, 'i')+")", "max("+g.of(fields, 'i')+")", "min("+g.of(fields, 'd')+")",
		"count(distinct "+g.of(fields, 'i')+")", "avg("+g.of(fields, 'i')+")", "group_concat(distinct "+g.of(fields, 's')+" order by 1)", "bit_or("+g.of(fields, 'i')+")",
		"sum(case when "+g.condition(fields)+" then 1 else 0 end)")
}

// query writes a block or a set operation, which other queries may read.
func (g *generator) query(top bool) (string, []genColumn) {
	sql, columns := g.block(top)
	if columns == nil {
		return sql, nil
	}
	for g.one(7) {
		other, more := g.block(false)
		if len(more) != len(columns) {
			break
		}
		op := g.pick(" union ", " union all ", " except ", " intersect ")
		if g.one(3) {
			other = "(" + other + ")"
		}
		if g.one(4) {
			sql = "(" + sql + ")"
		}
		sql += op + other
		for i := range columns {
			if columns[i].kind != more[i].kind {
				columns[i].kind = 's' // whatever it becomes
			}
		}
	}
	if !top && g.one(5) {
		var order []string
		for _, c := range columns {
			order = append(order, c.name)
		}
		sql += " order by " + strings.Join(order, ", ") + " limit " + strconv.Itoa(1+g.r.IntN(4))
		sql += g.pick("", " offset 1")
	}
	return sql, columns
}

// recursive is a WITH clause that counts, or that walks from row to row.
func (g *generator) recursive(name string) (string, []genColumn) {
	t, a := g.table(), g.alias()
	fields := g.fields(t, a)
	i := g.of(fields, 'i')
	first := "select " + i + ", 0 from " + t.name + " " + a
	if g.one(2) {
		return "with recursive " + name + " (n, d) as (" + first + " union select n + 1, d + 1 from " + name + " where d < 3) ", []genColumn{{"n", 'i'}, {"d", 'i'}}
	}
	o, b := g.table(), g.alias()
	other := g.fields(o, b)
	return "with recursive " + name + " (n, d) as (" + first + " union distinct select " + g.of(other, 'i') + ", r.d + 1 from " + name + " r join " + o.name + " " + b + " on " +
		g.of(other, 'i') + " = r.n where r.d < 3) ", []genColumn{{"n", 'i'}, {"d", 'i'}}
}

func (g *generator) statement() string {
	sql := ""
	if g.one(4) {
		name := g.pick("cte", g.tables[0].name, q(g.world.tables[1].name), q(g.world.tables[len(g.world.tables)-1].name))
		if g.one(3) {
			var columns []genColumn
			sql, columns = g.recursive(name)
			g.tables = append(g.tables, genTable{name: name, columns: columns})
		} else {
			body, columns := g.query(false)
			sql = "with " + name + " as (" + body + ") "
			if g.one(3) {
				var list []string
				renamed := slices.Clone(columns)
				for i := range renamed {
					renamed[i].name = fmt.Sprintf("r%d", i)
					list = append(list, renamed[i].name)
				}
				columns = renamed
				sql = "with " + name + " (" + strings.Join(list, ", ") + ") as (" + body + ") "
			}
			g.tables = append(g.tables, genTable{name: name, columns: columns})
			if g.one(3) {
				body, columns := g.query(false)
				sql += ", second as (" + body + ") "
				g.tables = append(g.tables, genTable{name: "second", columns: columns})
			}
		}
	}
	block, columns := g.query(true)
	sql += block
	if columns == nil {
		return sql
	}
	if g.one(3) {
		var order []string
		for _, c := range columns {
			order = append(order, c.name+g.pick("", " desc"))
		}
		sql += " order by " + strings.Join(order, ", ")
		if g.one(2) {
			sql += g.pick(" limit 3", " limit 1, 2", " limit 2 offset 1")
		}
	}
	return sql
}
