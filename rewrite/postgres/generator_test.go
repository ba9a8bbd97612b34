package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// generator writes statements over a world: most are valid on the pruned database, some name what is not there.
type generator struct {
	r     *rand.Rand
	w     *world
	seen  map[*worldTable][]worldColumn // nil for what is not there
	count int
	with  []relation // WITH queries in sight
	fails bool       // writes expressions that may fail
}

// relation is something in FROM with its columns.
type relation struct {
	name    string // as it is written
	columns []worldColumn
	keyed   bool // a table whose primary key can be seen
	quiet   bool // its columns must be qualified
}

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

func (g *generator) pick(of ...string) string { return of[g.r.IntN(len(of))] }

func (g *generator) fresh(prefix string) string {
	g.count++
	return fmt.Sprintf("%s%d", prefix, g.count)
}

// statement writes a statement. sorted says that its rows come in a certain order.
func (g *generator) statement() string {
	with := ""
	for n := g.r.IntN(6) - 3; n > 0; n-- {
		with = g.common(with)
	}
	text, columns := g.query(3, nil, 0)
	for n := g.r.IntN(8) - 5; n > 0; n-- {
		text, columns = g.setOperation(text, columns)
	}
	if g.chance(25) && sortable(columns) {
		text += " ORDER BY " + positions(len(columns)) + g.pick("", " LIMIT 3", " LIMIT 2 OFFSET 1", " OFFSET 1 ROWS FETCH FIRST 4 ROWS ONLY", " LIMIT ALL")
	}
	return with + text
}

func sortable(columns []worldColumn) bool {
	return len(columns) > 0 && !slices.ContainsFunc(columns, func(c worldColumn) bool { return c.kind == other })
}

func positions(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint(i+1))
	}
	return strings.Join(out, ", ")
}

// common adds a WITH query. Its name may be that of a table, which it then hides.
func (g *generator) common(with string) string {
	t := g.w.tables[g.r.IntN(len(g.w.tables))]
	name := g.pick("w", "w2", q(t.name))
	if strings.Contains(with, " "+name+" ") || strings.Contains(with, " "+name+"(") {
		return with
	}
	if with == "" {
		with = "WITH RECURSIVE "
		if g.chance(70) {
			with = "WITH "
		}
	} else {
		with = strings.TrimSuffix(with, " ") + ", "
	}
	if strings.HasPrefix(with, "WITH RECURSIVE") && g.chance(60) {
		// Each step goes up by one, to where no table has rows.
		from, rel := g.table()
		n, _ := g.column([]relation{rel}, number)
		s := g.text(0, []relation{rel})
		step := fmt.Sprintf("SELECT r.n + 1, r.s FROM %s AS r WHERE r.n < 4", name)
		if g.chance(50) {
			next, other := g.table()
			m, _ := g.column([]relation{other}, number)
			step = fmt.Sprintf("SELECT r.n + 1, %s FROM %s AS r JOIN %s ON %s = r.n WHERE r.n < 4", g.text(0, []relation{other}), name, next, m)
		}
		with += fmt.Sprintf(" %s (n, s) AS (SELECT (%s)::int, (%s)::text FROM %s %s %s) ", name, n, s, from, g.pick("UNION", "UNION"), step)
		g.with = append(g.with, relation{name: name, columns: []worldColumn{{"n", number}, {"s", text}}})
		return with
	}
	saved := g.with
	if strings.HasPrefix(with, "WITH RECURSIVE") {
		g.with = nil // its own name would mean itself
	}
	body, columns := g.query(2, nil, 0)
	g.with = saved
	if strings.HasPrefix(with, "WITH RECURSIVE") && strings.Contains(body, strings.Trim(name, `"`)) {
		body, columns = "SELECT 1 AS n, 'm1'::text AS s", []worldColumn{{"n", number}, {"s", text}}
	}
	list := ""
	if len(columns) > 0 && g.chance(30) {
		var names []string
		columns = slices.Clone(columns)
		for i := range columns {
			columns[i].name = g.fresh("c")
			names = append(names, columns[i].name)
		}
		list = "(" + strings.Join(names, ", ") + ")"
	}
	g.with = append(g.with, relation{name: name, columns: columns})
	return with + " " + name + " " + list + " AS " + g.pick("", "", "MATERIALIZED ", "NOT MATERIALIZED ") + "(" + body + ") "
}

// setOperation adds an arm of the same types.
func (g *generator) setOperation(left string, columns []worldColumn) (string, []worldColumn) {
	if !sortable(columns) {
		return left, columns
	}
	from, scope := g.from(1, nil)
	var targets []string
	for _, c := range columns {
		targets = append(targets, g.of(c.kind, 1, scope))
	}
	right := "SELECT " + strings.Join(targets, ", ") + " FROM " + from
	if g.chance(15) {
		right = "VALUES (" + strings.Join(slices.Collect(func(yield func(string) bool) {
			for _, c := range columns {
				if !yield(g.literal(c.kind)) {
					return
				}
			}
		}), ", ") + ")"
	}
	return "(" + left + ") " + g.pick("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL") + " (" + right + ")", columns
}

// query writes a SELECT. Its columns have names; arity 0 leaves their number open.
func (g *generator) query(depth int, outer []relation, arity int) (string, []worldColumn) {
	from, scope := g.from(depth, outer)
	sees := append(slices.Clone(scope), outer...)
	where := ""
	if g.chance(55) {
		where = " WHERE " + g.condition(depth, sees)
	}
	if arity == 0 {
		arity = 1 + g.r.IntN(3)
	}
	switch n := g.r.IntN(100); {
	case n < 22:
		return g.grouped(depth, from, where, scope, arity)
	case n < 30 && depth == 3:
		list, columns := g.star(scope)
		return "SELECT " + list + " FROM " + from + where, columns
	case n < 34:
		return g.distinctOn(depth, from, where, scope, sees)
	}
	var targets []string
	var columns []worldColumn
	window := ""
	for len(targets) < arity {
		name := g.fresh("o")
		if g.chance(6) {
			name = g.pick("Odd Name", "id", "select", "tenant")
			if slices.ContainsFunc(columns, func(c worldColumn) bool { return c.name == name }) {
				name = g.fresh("o")
			}
		}
		kind := number
		var value string
		switch n := g.r.IntN(100); {
		case n < 28:
			kind, value = text, g.text(depth, sees)
		case n < 33:
			kind, value = truth, g.condition(1, sees)
		case n < 38:
			kind, value = day, g.of(day, 1, sees)
		case n < 50:
			key := g.number(1, scope)
			over := g.pick("", "PARTITION BY "+g.of(g.kind(), 0, scope)+" ") + g.pick("", "ORDER BY "+key,
				"ORDER BY "+key+" RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "ORDER BY "+key+" DESC NULLS LAST",
				"ORDER BY "+key+" GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW")
			if window == "" && g.chance(30) {
				window = " WINDOW win AS (" + over + ")"
				over = "win"
			} else {
				over = "(" + over + ")"
			}
			value = g.pick("rank()", "dense_rank()", "count(*)", "max("+g.number(1, scope)+")", "sum("+g.number(1, scope)+")",
				"count(*) FILTER (WHERE "+g.condition(1, scope)+")") + " OVER " + over
		default:
			value = g.number(depth, sees)
		}
		targets, columns = append(targets, value+" AS "+q(name)), append(columns, worldColumn{name, kind})
	}
	distinct := ""
	if g.chance(10) {
		distinct = "DISTINCT "
	}
	return "SELECT " + distinct + strings.Join(targets, ", ") + " FROM " + from + where + window, columns
}

// star writes a list with a star or a whole row in it.
func (g *generator) star(scope []relation) (string, []worldColumn) {
	rel := scope[g.r.IntN(len(scope))]
	switch g.r.IntN(7) {
	case 0, 1:
		return "*", nil
	case 2:
		return rel.name + ".*", nil
	case 3:
		return "(" + rel.name + ").*", nil
	case 4:
		return "row_to_json(" + rel.name + ")::text AS j", []worldColumn{{"j", text}}
	case 5:
		return rel.name + "::text AS j, count(*) OVER () AS n", []worldColumn{{"j", text}, {"n", number}}
	}
	return "to_jsonb(" + rel.name + ".*)::text AS j", []worldColumn{{"j", text}}
}

func (g *generator) distinctOn(depth int, from, where string, scope, sees []relation) (string, []worldColumn) {
	key, second := g.of(g.kind(), depth-1, sees), g.number(depth-1, sees)
	return "SELECT DISTINCT ON (dk) " + key + " AS dk, " + second + " AS ds FROM " + from + where + " ORDER BY dk, ds", []worldColumn{{"dk", other}, {"ds", number}}
}

// grouped writes a SELECT with groups.
func (g *generator) grouped(depth int, from, where string, scope []relation, arity int) (string, []worldColumn) {
	kind := g.kind()
	key := g.of(kind, 0, scope)
	targets, columns := []string{key + " AS k"}, []worldColumn{{"k", kind}}
	groupBy := key
	if rel := scope[g.r.IntN(len(scope))]; rel.keyed && g.chance(40) {
		// What a primary key implies need not be grouped by.
		kind = g.kind()
		rest := g.of(kind, 0, []relation{rel})
		groupBy = rel.name + ".id"
		targets, columns = []string{groupBy + " AS k", rest + " AS k0"}, []worldColumn{{"k", number}, {"k0", kind}}
	} else if g.chance(25) {
		second := g.number(0, scope)
		targets, columns = append(targets, "grouping("+key+") AS g"), append(columns, worldColumn{"g", number})
		groupBy = g.pick("ROLLUP ("+key+", "+second+")", "CUBE ("+key+", "+second+")", "GROUPING SETS (("+key+"), ("+second+"), ())", key+", ROLLUP ("+second+")")
	} else if g.chance(20) {
		groupBy = g.pick("1", "k")
		if scopeHas(scope, "k") {
			groupBy = "1"
		}
	} else if g.chance(10) {
		targets, columns, groupBy = nil, nil, "" // one row, always
	}
	for len(targets) < max(arity, 1) {
		name := g.fresh("a")
		targets = append(targets, g.pick("count(*)", "sum("+g.number(1, scope)+")", "min("+g.number(1, scope)+")", "max("+g.number(1, scope)+")",
			"count(DISTINCT "+g.number(1, scope)+")", "count(*) FILTER (WHERE "+g.condition(1, scope)+")",
			"length(string_agg("+g.text(1, scope)+", ',' ORDER BY "+g.number(1, scope)+"))", "count("+scope[0].name+")",
			"cardinality(array_agg("+g.number(1, scope)+"))")+" AS "+name)
		columns = append(columns, worldColumn{name, number})
	}
	text := "SELECT " + strings.Join(targets, ", ") + " FROM " + from + where
	if groupBy != "" {
		text += " GROUP BY " + groupBy
	}
	if g.chance(30) {
		text += " HAVING " + g.pick("count(*) > 1", "min("+g.number(1, scope)+") < 5", "bool_or("+g.condition(1, scope)+")",
			"(SELECT count(*) > 0 FROM generate_series(1, 2))")
	}
	return text, columns
}

func scopeHas(scope []relation, name string) bool {
	return slices.ContainsFunc(scope, func(r relation) bool {
		return len(r.columns) == 0 || slices.ContainsFunc(r.columns, func(c worldColumn) bool { return c.name == name })
	})
}

func (g *generator) kind() rune { return []rune{number, number, text, text, day, truth}[g.r.IntN(6)] }

// from writes a FROM list and returns what it brings into sight.
func (g *generator) from(depth int, outer []relation) (string, []relation) {
	text, first := g.relation(depth, outer)
	scope := []relation{first}
	for range g.r.IntN(3) {
		if g.chance(15) {
			left := append(slices.Clone(scope), outer...)
			if g.chance(30) {
				rel := relation{name: g.fresh("f"), columns: []worldColumn{{"n", number}}}
				text += " CROSS JOIN " + g.pick("generate_series(1, 3)", "unnest(ARRAY[1, 2, NULL])",
					"LATERAL unnest(ARRAY["+g.number(0, scope)+", 5])") + " AS " + rel.name + "(n)"
				scope = append(scope, rel)
				continue
			}
			lateral, columns := g.query(min(depth-1, 1), left, 0)
			rel := relation{name: g.fresh("l"), columns: columns}
			text += g.pick(", LATERAL (", " CROSS JOIN LATERAL (") + lateral + ") AS " + rel.name
			if g.chance(30) {
				text = strings.TrimSuffix(text, ") AS "+rel.name)
				text = text[:strings.LastIndex(text, "LATERAL (")] + "LATERAL (" + lateral + ") AS " + rel.name
			}
			scope = append(scope, rel)
			continue
		}
		right, rel := g.relation(depth, outer)
		if g.chance(12) {
			text += g.pick(" CROSS JOIN ", " CROSS JOIN ", " CROSS JOIN ") + right
			scope = append(scope, rel)
			continue
		}
		if len(scope) == 1 && g.chance(20) {
			if using := shared(scope[0], rel); len(using) > 0 {
				kind := g.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
				scope[0].quiet, rel.quiet = true, true
				merged := []worldColumn{using[g.r.IntN(len(using))]}
				switch g.r.IntN(3) {
				case 0:
					text += " NATURAL " + kind + " " + right
				case 1:
					text += " " + kind + " " + right + " USING (" + q(merged[0].name) + ")"
				default:
					alias := g.fresh("u")
					text += " " + kind + " " + right + " USING (" + q(merged[0].name) + ") AS " + alias
					scope = append(scope, relation{name: alias, columns: merged, quiet: true})
				}
				scope = append(scope, rel)
				continue
			}
		}
		scope = append(scope, rel)
		on, both := g.equality(scope)
		kind := g.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
		if !both {
			kind = "JOIN" // PostgreSQL has full joins over columns of both sides only
		}
		text += " " + kind + " " + right + " ON " + on
		if !strings.Contains(text, "FULL JOIN") && g.chance(30) {
			text += " AND " + g.condition(1, scope)
		}
		if len(scope) == 2 && g.chance(8) {
			// A join with a name of its own hides what it joins.
			name := g.fresh("j")
			var columns []worldColumn
			for _, c := range append(slices.Clone(scope[0].columns), scope[1].columns...) {
				same := func(o worldColumn) bool { return o.name == c.name }
				if !slices.ContainsFunc(columns, same) {
					columns = append(columns, c)
				} else {
					columns = slices.DeleteFunc(columns, same)
				}
			}
			text, scope = "("+text+") AS "+name, []relation{{name: name, columns: columns}}
		}
	}
	return text, scope
}

// shared lists columns of both sides, each of which has them once.
func shared(a, b relation) []worldColumn {
	var out []worldColumn
	for _, c := range a.columns {
		if slices.Contains(b.columns, c) && c.kind != other {
			out = append(out, c)
		}
	}
	return out
}

// table writes a table or view.
func (g *generator) table() (string, relation) {
	for {
		t := g.w.tables[g.r.IntN(len(g.w.tables))]
		columns := g.seen[t]
		if columns == nil && !g.chance(2) {
			continue // is not there
		}
		if g.chance(1) {
			columns = t.columns // some of which may be hidden
		}
		ref := t.ref()
		captured := slices.ContainsFunc(g.with, func(r relation) bool { return r.name == q(t.name) })
		if t.schema == "public" && !captured && g.chance(50) {
			ref = q(t.name)
		}
		rel := relation{columns: columns, keyed: t.keyed()}
		if t.body == "" && g.chance(10) {
			ref = "ONLY " + ref
		}
		rel.name = g.fresh(g.pick("x", "y", "Z"))
		ref += g.pick(" AS ", " ") + q(rel.name)
		if len(columns) > 0 && g.chance(6) {
			rel.columns = slices.Clone(columns)
			rel.columns[0].name = "first"
			rel.keyed = false
			ref += "(first)"
		}
		rel.name = q(rel.name)
		return ref, rel
	}
}

// relation writes one entry of FROM.
func (g *generator) relation(depth int, outer []relation) (string, relation) {
	switch n := g.r.IntN(100); {
	case n < 12 && len(g.with) > 0:
		w := g.with[g.r.IntN(len(g.with))]
		if len(w.columns) > 0 {
			rel := relation{name: g.fresh("w_"), columns: w.columns}
			return w.name + " AS " + rel.name, rel
		}
	case n < 28 && depth > 1:
		text, columns := g.query(depth-1, outer, 0)
		rel := relation{name: g.fresh("d"), columns: columns}
		if g.chance(15) {
			inner := g.fresh("i")
			return "(WITH " + inner + " AS (" + text + ") SELECT * FROM " + inner + ") AS " + rel.name, rel
		}
		return "(" + text + ") AS " + rel.name, rel
	case n < 33:
		rel := relation{name: g.fresh("v"), columns: []worldColumn{{"x", number}, {"y", text}}}
		return "(VALUES (1, 'm1'), (2, NULL)) AS " + rel.name + "(x, y)", rel
	}
	return g.table()
}

// column picks a column of a kind, or a literal if there is none.
func (g *generator) column(scope []relation, kind rune) (string, bool) {
	for range 12 {
		at := g.r.IntN(len(scope))
		rel := scope[at]
		if len(rel.columns) == 0 {
			continue
		}
		c := rel.columns[g.r.IntN(len(rel.columns))]
		if c.kind != kind {
			continue
		}
		if !rel.quiet && g.chance(25) && g.once(scope, c.name) {
			return q(c.name), true
		}
		return rel.name + "." + q(c.name), true
	}
	return g.literal(kind), false
}

// once reports whether a bare name means one column, wherever it is.
func (g *generator) once(scope []relation, name string) bool {
	n := 0
	for _, rel := range scope {
		if len(rel.columns) == 0 || rel.name == name {
			return false // which may hold it
		}
		for _, c := range rel.columns {
			if c.name == name {
				n++
			}
		}
	}
	return n == 1
}

func (g *generator) literal(kind rune) string {
	switch kind {
	case text:
		return g.pick("'m1'::text", "'it''s'::text", "'7'::text")
	case day:
		return g.pick("date '2011-03-14'", "date '2012-05-15'")
	case truth:
		return g.pick("true", "false")
	}
	return fmt.Sprint(g.r.IntN(8))
}

// of writes a value of a kind.
func (g *generator) of(kind rune, depth int, scope []relation) string {
	switch {
	case kind == text:
		return g.text(depth, scope)
	case kind == number:
		return g.number(depth, scope)
	case kind == truth && depth > 0:
		return g.condition(depth, scope)
	}
	c, _ := g.column(scope, kind)
	if kind == day && g.chance(20) {
		return "(" + c + " + " + fmt.Sprint(g.r.IntN(40)) + ")"
	}
	return c
}

// equality joins the last relation to the others; both is false if one side has no column for it.
func (g *generator) equality(scope []relation) (on string, both bool) {
	a, isA := g.column(scope[:len(scope)-1], number)
	b, isB := g.column(scope[len(scope)-1:], number)
	if !strings.Contains(a, ".") || !strings.Contains(b, ".") {
		isA = isA && g.once(scope, strings.Trim(a, `"`)) // bare names must still be clear with both sides in sight
		if !isA || !g.once(scope, strings.Trim(b, `"`)) && !strings.Contains(b, ".") {
			return "1 = 1", false
		}
	}
	return a + " = " + b, isA && isB
}

func (g *generator) number(depth int, scope []relation) string {
	c, _ := g.column(scope, number)
	switch n := g.r.IntN(100); {
	case n < 52 || depth <= 0:
		return c
	case n < 58:
		return fmt.Sprint(g.r.IntN(12))
	case n < 66:
		return "(" + c + g.pick(" + ", " - ", " * ") + g.number(depth-1, scope) + ")"
	case n < 72:
		return g.pick("coalesce(", "greatest(", "nullif(") + c + ", " + g.number(depth-1, scope) + ")"
	case n < 78:
		return "CASE WHEN " + g.condition(depth-1, scope) + " THEN " + c + " ELSE " + g.number(depth-1, scope) + " END"
	case n < 82:
		return "length(" + g.text(depth-1, scope) + ")"
	case n < 84:
		return "extract(year FROM " + g.of(day, 0, scope) + ")::int"
	case n < 86:
		return fmt.Sprintf("(100 / (%s - %d))", c, 20+g.r.IntN(12))
	case n < 88 && g.fails:
		return g.failing(depth, scope)
	}
	inner, relations := g.from(min(depth-1, 1), scope)
	sees := append(slices.Clone(relations), scope...)
	return "(SELECT " + g.pick("count(*)", "max("+g.number(depth-2, relations)+")", "sum("+g.number(depth-2, relations)+")") +
		" FROM " + inner + " WHERE " + g.condition(depth-1, sees) + ")"
}

func (g *generator) text(depth int, scope []relation) string {
	c, _ := g.column(scope, text)
	switch n := g.r.IntN(100); {
	case n < 68 || depth <= 0:
		return c
	case n < 78:
		return g.pick("upper(", "lower(", "md5(") + c + ")"
	case n < 84:
		return "(" + c + " || 'x')"
	case n < 88:
		return g.number(depth-1, scope) + "::text"
	case n < 92:
		return g.pick("substring(", "substr(") + c + g.pick(", 1, 2)", ", 2, 1)")
	case n < 95:
		rel := scope[g.r.IntN(len(scope))]
		if len(rel.columns) > 0 {
			return rel.name + "::text"
		}
	}
	return "coalesce(" + c + ", '-')"
}

func (g *generator) condition(depth int, scope []relation) string {
	number := func() string { return g.number(depth-1, scope) }
	compare := g.pick(" = ", " < ", " >= ", " <> ")
	switch n := g.r.IntN(100); {
	case n < 32 || depth <= 0:
		return number() + compare + number()
	case n < 40:
		return g.text(depth-1, scope) + compare + g.pick("'m1'", "'m2'", "'it''s'", "'m***'")
	case n < 47:
		return g.text(depth-1, scope) + g.pick(" LIKE 'm%'", " IS NULL", " IS NOT NULL", " IN ('m1', 'M1', NULL)", " ILIKE '%1'", " ~ '^m'", " SIMILAR TO 'm_'")
	case n < 50:
		c, _ := g.column(scope, truth)
		return c + g.pick("", " IS TRUE", " IS NOT FALSE", " IS UNKNOWN")
	case n < 54:
		return g.of(day, 0, scope) + g.pick(" < date '2011-06-01'", " BETWEEN date '2010-01-01' AND date '2011-12-31'", " >= now()", " > date '2012-01-01' - interval '3 month'")
	case n < 61:
		return "(" + g.condition(depth-1, scope) + g.pick(" AND ", " OR ") + g.condition(depth-1, scope) + ")"
	case n < 65:
		return "NOT (" + g.condition(depth-1, scope) + ")"
	case n < 69:
		return number() + g.pick(" BETWEEN ", " NOT BETWEEN ", " BETWEEN SYMMETRIC ") + number() + " AND " + number()
	case n < 73:
		return number() + " IS " + g.pick("", "NOT ") + "DISTINCT FROM " + number()
	case n < 76:
		return "(" + number() + ", " + g.text(depth-1, scope) + ")" + g.pick(" = ", " < ", " <> ") + "(" + number() + ", 'm1')"
	case n < 79:
		return number() + g.pick(" = ANY (ARRAY[1, 2, NULL])", " <> ALL (ARRAY[1, 2])", " IN (1, 2, 3)", " NOT IN (1, NULL)")
	}
	inner, relations := g.from(min(depth-1, 1), scope)
	sees := append(slices.Clone(relations), scope...)
	where := " FROM " + inner + " WHERE " + g.condition(depth-1, sees)
	c, _ := g.column(relations, 'n')
	switch g.r.IntN(6) {
	case 0:
		return g.pick("", "NOT ") + "EXISTS (SELECT 1" + where + ")"
	case 1:
		return number() + g.pick(" IN ", " NOT IN ") + "(SELECT " + c + where + ")"
	case 2:
		return number() + compare + g.pick("ANY", "ALL") + " (SELECT " + c + where + ")"
	case 3:
		return "EXISTS (SELECT *" + where + ")"
	case 4:
		return "(" + number() + ", " + number() + ") IN (SELECT " + c + ", " + g.number(0, relations) + where + ")"
	}
	return number() + compare + "(SELECT " + g.pick("max(", "count(") + c + ")" + where + ")"
}

// failing writes a number that fails on some rows.
func (g *generator) failing(depth int, scope []relation) string {
	n, s := g.number(depth-1, scope), g.text(depth-1, scope)
	d := g.of(day, 0, scope)
	c, _ := g.column(scope, number)
	inner, relations := g.from(0, scope)
	many, _ := g.column(relations, number)
	return g.pick(
		"("+n+" / ("+c+" - "+fmt.Sprint(g.r.IntN(10))+"))",
		"("+n+" % ("+c+"))",
		"("+s+")::int",
		"length(("+s+")::date::text)",
		"("+c+" * 2000000000)",
		"sqrt("+c+" - 5)::int",
		"ln("+c+")::int",
		"log("+c+", 2)::int",
		"exp("+c+" * 1000)::int",
		"power("+c+" - 3, -1)::int",
		"factorial("+c+" - 4)::int",
		"(SELECT "+many+" FROM "+inner+")",
		"length("+s+" || chr("+c+"))",
		"("+d+" + "+c+" * 100000000)::text::int",
		"length(substring("+s+" FROM 1 FOR "+c+" - 4))",
		"("+s+" LIKE "+s+" || '\\')::int",
		"("+s+" ~ ('(' || "+s+"))::int",
		"jsonb_array_length(to_jsonb("+s+"))",
		"(to_jsonb("+s+") ->> 0)::int",
		"(('{\"a\":' || "+s+" || '}')::jsonb ->> 'a')::int",
		"extract(year FROM make_date(2000, "+c+", 1))::int",
		"width_bucket("+c+", 3, 3, 2)",
		"array_length(array_fill(1, ARRAY["+c+" - 4]), 1)",
		"(ARRAY[1,2,3])[("+s+")::int]",
		"to_number("+s+", '9')::int",
		"split_part("+s+", '_', "+c+")::int",
		"ascii(left("+s+", "+c+"))/"+c,
	)
}
