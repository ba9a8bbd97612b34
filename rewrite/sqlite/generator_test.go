package sqlite_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
	"github.com/schemagate/schemagate/rewrite/sqlite"
)

// world is a database as it is, as the asker may see it, and without the hidden rows, with the policy that makes the
// difference.
type world struct {
	ddl, policy          string
	full, pruned, purged *sql.DB
	guard                *rewrite.Guard
}

func (w *world) schema(t *testing.T) *rewrite.Schema {
	t.Helper()
	s, err := rewritetest.NewSchema(sqlite.New(), w.ddl, w.policy)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) close() {
	w.full.Close()
	w.pruned.Close()
	w.purged.Close()
}

// generator writes worlds, and statements for them that are mostly valid.
type generator struct {
	*rand.Rand
	depth int
	ctes  []string
	used  []string // CTEs that are read
	views []string
}

func (g *generator) pick(from ...string) string { return from[g.IntN(len(from))] }
func (g *generator) chance(percent int) bool    { return g.IntN(100) < percent }

// stored is a generated table. The tables share names of columns, so that joins merge and names are ambiguous.
type stored struct {
	name    string
	columns []string // as in CREATE TABLE
	first   string   // a column that is never hidden
	tenant  string   // the column that filters look at
}

var generated = []stored{
	{"a", []string{"id INTEGER PRIMARY KEY", "k INTEGER", "v REAL", "s TEXT", "j TEXT"}, "id", "k"},
	{"b", []string{"id INTEGER", "k INTEGER", "w NUMERIC", "s TEXT COLLATE NOCASE"}, "id", "k"},
	{"c", []string{"k INTEGER", "x INTEGER", "s TEXT"}, "k", "k"},
	{"d", []string{"id INTEGER", "y TEXT"}, "id", "id"},
	{`"odd ""t"`, []string{`"a b" INTEGER`, `"select" TEXT`, "k INTEGER"}, `"a b"`, "k"},
}

// name is the column's, as it is written.
func name(column string) string {
	if strings.HasPrefix(column, `"`) {
		return column[:strings.LastIndex(column, `"`)+1]
	}
	n, _, _ := strings.Cut(column, " ")
	return n
}

// unqualified is a column without its table, in quotes that SQLite never takes for a text.
func unqualified(column string) string { return strings.ReplaceAll(column, `"`, "`") }

func columnNames(t stored) []string {
	var out []string
	for _, c := range t.columns {
		out = append(out, name(c))
	}
	return out
}

// object is a name in a policy.
func object(parts ...string) string { return strconv.Quote("db." + strings.Join(parts, ".")) }

func (g *generator) world(t *testing.T) *world {
	w := &world{guard: rewrite.NewGuard(sqlite.New(), 0)}
	var rows, grants, filters, masks, purge, pruned strings.Builder
	keep := map[string]string{}
	fmt.Fprint(&grants, "version: 1\nprincipals: {asker: {roles: [reader], attributes: {k: 1, t: o'x, ks: [1, 2]}}}\ngrants:\n  - {role: reader, allow: [\"*\"], actions: [view, query]}\n  - {role: reader, deny: [db.e]}\n")
	w.ddl = "CREATE TABLE e(x INTEGER);\n" // what policies read and nobody sees
	for range 1 + g.IntN(3) {
		fmt.Fprintf(&rows, "INSERT INTO e VALUES (%d);\n", 1+g.IntN(6))
	}
	for _, table := range generated {
		w.ddl += fmt.Sprintf("CREATE TABLE %s(%s);\n", table.name, strings.Join(table.columns, ", "))
		if g.chance(30) {
			w.ddl += fmt.Sprintf("CREATE INDEX i%d ON %s(%s);\n", len(w.ddl), table.name, table.tenant)
		}
		for i := range g.IntN(9) {
			var values []string
			for _, c := range table.columns {
				values = append(values, g.value(i, c))
			}
			fmt.Fprintf(&rows, "INSERT INTO %s VALUES (%s);\n", table.name, strings.Join(values, ", "))
		}
		if table.name == "d" && g.chance(20) {
			fmt.Fprintln(&grants, "  - {role: reader, deny: [db.d]}")
			continue
		}
		where := "1"
		if g.chance(70) {
			sees, using := g.filter(table)
			where = sees
			fmt.Fprintf(&filters, "  - {table: %s, roles: [reader], using: %q}\n", object(table.name), using)
			if g.chance(20) { // one more, of either kind
				sees, using := g.filter(table)
				mode, op := "restrictive", "AND"
				if g.chance(50) {
					mode, op = "permissive", "OR"
				}
				where = fmt.Sprintf("(%s) %s (%s)", where, op, sees)
				fmt.Fprintf(&filters, "  - {table: %s, roles: [reader], using: %q, mode: %s}\n", object(table.name), using, mode)
			}
			fmt.Fprintf(&purge, "DELETE FROM %s WHERE (%s) IS NOT TRUE;\n", table.name, where)
		}
		var columns, values []string
		for _, c := range table.columns {
			n := name(c)
			if n != table.first && g.chance(7) {
				fmt.Fprintf(&grants, "  - {role: reader, deny: [%s]}\n", object(table.name, n))
				continue
			}
			columns = append(columns, c)
			value := n
			// A masked column loses its collation, which the catalog does not hold.
			if n != table.first && !strings.Contains(c, "COLLATE") && g.chance(15) {
				var with string
				value, with = g.mask(n, strings.TrimPrefix(c, n))
				fmt.Fprintf(&masks, "  - {column: %s, roles: [reader], with: %s}\n", object(table.name, n), with)
			}
			values = append(values, value)
		}
		fmt.Fprintf(&pruned, "CREATE TABLE %s(%s);\n", table.name, strings.Join(columns, ", "))
		keep[table.name] = fmt.Sprintf("SELECT %s FROM %s WHERE %s", strings.Join(values, ", "), table.name, where)
	}
	for i := range g.IntN(4) {
		g.view(fmt.Sprintf("v%d", i), w, &grants, &filters, &masks, &pruned)
	}
	w.policy = grants.String()
	if filters.Len() > 0 {
		w.policy += "row_filters:\n" + filters.String()
	}
	if masks.Len() > 0 {
		w.policy += "masks:\n" + masks.String()
	}
	w.full, w.pruned = open(t, w.ddl+rows.String()), open(t, pruned.String())
	w.purged = open(t, w.ddl+rows.String()+purge.String())
	for _, table := range generated {
		if keep[table.name] != "" {
			copyRows(t, w.full, keep[table.name], w.pruned, table.name)
		}
	}
	return w
}

func copyRows(t *testing.T, from *sql.DB, statement string, to *sql.DB, table string) {
	t.Helper()
	found, err := from.Query(statement)
	if err != nil {
		t.Fatalf("%v\n%s", err, statement)
	}
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for found.Next() {
		row, at := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			at[i] = &row[i]
		}
		if err := found.Scan(at...); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Exec("INSERT INTO "+table+" VALUES (?"+strings.Repeat(", ?", len(row)-1)+")", row...); err != nil {
			t.Fatal(err)
		}
	}
}

// filter writes a condition, and the same as a policy has it.
func (g *generator) filter(t stored) (sees, using string) {
	both := [][2]string{
		{t.tenant + " = 1", t.tenant + " = {{ principal.k }}"},
		{t.tenant + " IN (1, 2) OR " + t.first + " > 4", t.tenant + " in ({{ principal.ks }}) or " + t.first + " > 4"},
		{"EXISTS (SELECT 1 FROM e WHERE e.x = " + t.name + "." + t.first + ")", "exists (select 1 from e where e.x = " + t.name + "." + t.first + ")"},
		{t.first + " IS NOT NULL AND " + t.tenant + " < (SELECT max(x) FROM e)", t.first + " is not null and " + t.tenant + " < (select max(x) from e)"},
		{t.first + " IN (SELECT x FROM e UNION SELECT x + 1 FROM e WHERE x > 1)", t.first + " in (select x from e union select x + 1 from e where x > 1)"},
		{"'o''x' <> " + t.first, "{{ principal.t }} <> " + t.first},
		{t.tenant + " IS NULL", t.tenant + " is null"},
	}[g.IntN(7)]
	return both[0], both[1]
}

// mask writes what a column of a type reads as, and the mask that makes it so.
func (g *generator) mask(column, typ string) (value, with string) {
	text := strings.Contains(typ, "TEXT")
	switch g.IntN(5) {
	case 0:
		return "NULL", "null"
	case 4:
		if !text {
			e := g.pick(column+" % 3", "CASE WHEN "+column+" > 2 THEN 1 ELSE -0.5 END", "-"+column)
			return e, "{expression: " + strconv.Quote(e) + "}"
		}
	case 1:
		if text {
			return "substr(" + column + ", 1, 1) || '***'", "partial"
		}
	case 2:
		if !text {
			return "2", "{constant: 2}"
		}
		return "'hidden'", "{constant: hidden}"
	case 3:
		if text {
			e := column + " || '+'"
			return e, "{expression: " + strconv.Quote(e) + "}"
		}
	}
	return "NULL", "null"
}

// view adds a SQL view to a world, now and then with a policy of its own.
func (g *generator) view(v string, w *world, grants, filters, masks, pruned *strings.Builder) {
	columns, body := "", g.core()
	switch g.IntN(4) {
	case 0:
		columns = "(p, q)"
	case 1:
		t := generated[g.IntN(len(generated))]
		body = "SELECT " + g.pick("*", "t.*, 1 AS q", "count(*) AS p, max("+t.first+") AS q", "DISTINCT "+t.first+" AS p, "+t.tenant+" + 1 AS q") + " FROM " + t.name + " AS t"
	case 2:
		body += " UNION ALL " + g.core()
	}
	g.views = append(g.views, v)
	w.ddl += fmt.Sprintf("CREATE VIEW %s%s AS %s;\n", v, columns, body)
	if columns == "" || g.chance(50) {
		fmt.Fprintf(pruned, "CREATE VIEW %s%s AS %s;\n", v, columns, body)
		return
	}
	// The oracle has the policy in a view of a view.
	fmt.Fprintf(pruned, "CREATE VIEW raw_%s%s AS %s;\n", v, columns, body)
	p, q, where := "p", "q", ""
	switch g.IntN(4) {
	case 0:
		fmt.Fprintf(grants, "  - {role: reader, deny: [db.%s.q]}\n", v)
		q = ""
	case 1:
		q = "2 AS q"
		fmt.Fprintf(masks, "  - {column: db.%s.q, roles: [reader], with: {constant: 2}}\n", v)
	case 2:
		q = "NULL AS q"
		fmt.Fprintf(masks, "  - {column: db.%s.q, roles: [reader], with: null}\n", v)
	}
	if g.chance(60) {
		where = " WHERE p > 1 OR q IS NULL"
		fmt.Fprintf(filters, "  - {table: db.%s, roles: [reader], using: \"%s.p > {{ principal.k }} or q is null\"}\n", v, v)
		where = strings.ReplaceAll(where, "q", "raw_"+v+".q")
	}
	if q != "" {
		p += ", "
	}
	fmt.Fprintf(pruned, "CREATE VIEW %s AS SELECT %s%s FROM raw_%s%s;\n", v, p, q, v, where)
}

func (g *generator) value(row int, column string) string {
	typ := strings.TrimPrefix(column, name(column))
	switch {
	case strings.Contains(typ, "KEY"):
		return strconv.Itoa(row + 1)
	case g.chance(15):
		return "NULL"
	case name(column) == "j":
		return g.pick("'[1, 2]'", "'{\"a\": 1}'", "'7'", "'8'", "'{'")
	case strings.Contains(typ, "TEXT"):
		// No two differ in case only: of texts that a collation takes for equal, DISTINCT and GROUP BY return any.
		return g.pick("'p'", "'p'", "'Q'", "'o''x'", "'1'", "''")
	case strings.Contains(typ, "REAL"):
		return g.pick("0.5", "1", "2", "-3.25")
	}
	return g.pick("0", "1", "2", "3", "4", "5", "6", "7", "1", "2", "9223372036854775807", "-9223372036854775808")
}

// statement writes a SELECT. ordered says that its rows come in an order.
func (g *generator) statement() (text string, ordered bool) {
	g.depth, g.ctes = 0, nil
	bodies, reads := map[string]string{}, map[string][]string{}
	for i := range g.IntN(3) {
		name := g.pick("m", "c", "a")
		if i > 0 {
			name = "o"
		}
		g.used = nil
		switch {
		case g.chance(15):
			bodies[name] = fmt.Sprintf("(p, q) AS (SELECT 1, %s UNION ALL SELECT p + 1, q FROM %s WHERE p < %d)", g.pick("1", "(SELECT count(*) FROM b)", "(SELECT max(k) FROM main.a)"), name, 1+g.IntN(4))
		case g.chance(10):
			bodies[name] = fmt.Sprintf("(p, q) AS (SELECT id, k FROM main.b UNION SELECT t.id, t.k FROM main.b AS t JOIN %s AS r ON t.id = r.q)", name)
		default:
			bodies[name] = g.pick("", "(p, q)") + " AS " + g.pick("", "", "MATERIALIZED ", "NOT MATERIALIZED ") + "(" + g.compound() + ")"
		}
		reads[name] = g.used
		g.ctes = append(g.ctes, name)
	}
	g.used = nil
	out := g.compound()
	if g.chance(30) {
		out += " ORDER BY 1, 2"
		ordered = !strings.Contains(out, "SELECT *") && !strings.Contains(out, ".*") // two columns order all rows of two
		if ordered && g.chance(50) {
			out, ordered = fmt.Sprintf("SELECT DISTINCT * FROM (%s LIMIT %d) WHERE 1 = 1", out, 1+g.IntN(4)), false
		}
	}
	with := ""
	for i := 0; i < len(g.used); i++ {
		for _, u := range reads[g.used[i]] {
			if !slices.Contains(g.used, u) {
				g.used = append(g.used, u)
			}
		}
	}
	for _, name := range g.ctes { // SQLite does not look at those that nothing reads, the guard does
		if slices.Contains(g.used, name) {
			with += ", " + name + bodies[name]
		}
	}
	if with != "" {
		out = "WITH " + g.pick("", "RECURSIVE ") + with[2:] + " " + out
	}
	return out, ordered
}

func (g *generator) compound() string {
	out := g.core()
	for range g.IntN(4) / 3 * (1 + g.IntN(2)) {
		out += g.pick(" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT ")
		if g.chance(70) {
			out += g.core()
		} else {
			out += "VALUES (1, 2), (3, 'p')"
		}
	}
	return out
}

// item is a table in a FROM with the columns that it may have.
type item struct {
	text, alias string
	columns     []string
}

func (g *generator) item(alias string) item {
	pq := []string{"p", "q"}
	switch {
	case len(g.ctes) > 0 && g.chance(25):
		name := g.pick(g.ctes...)
		g.used = append(g.used, name)
		return item{name + " AS " + alias, alias, pq}
	case len(g.views) > 0 && g.chance(20):
		return item{g.pick("", "main.") + g.pick(g.views...) + " AS " + alias, alias, pq}
	case g.depth < 2 && g.chance(15):
		return item{"(" + g.compound() + ") AS " + alias, alias, pq}
	case g.chance(3):
		return item{"json_each('[1, 2, \"p\"]') AS " + alias, alias, []string{"key", "value"}}
	}
	table := generated[g.pickTable()]
	it := item{alias: alias, columns: columnNames(table)}
	switch {
	case g.chance(20):
		it.text = "main." + table.name + " AS " + alias
	case g.chance(20) && !strings.Contains(table.name, `"`):
		it.text = strings.ToUpper(table.name) + " " + alias
	case g.chance(20) && !strings.Contains(table.name, `"`):
		it.text = g.pick(`"`+table.name+`"`, "["+table.name+"]", "`"+table.name+"`") + ` "` + alias + `"`
	default:
		it.text = table.name + " AS " + alias
	}
	if g.chance(3) {
		it.text += " NOT INDEXED"
	}
	return it
}

func (g *generator) pickTable() int { return [...]int{0, 0, 0, 1, 1, 1, 2, 2, 3, 4}[g.IntN(10)] }

func (g *generator) from() (string, []item) {
	var items []item
	from := ""
	for i := range 1 + g.IntN(3) {
		it := g.item(fmt.Sprintf("t%d%c", g.depth, 'a'+i))
		if i == 0 {
			from = it.text
			items = append(items, it)
			continue
		}
		last := items[g.IntN(len(items))]
		items = append(items, it)
		switch g.IntN(9) {
		case 0:
			from += ", " + it.text
		case 1:
			from += " NATURAL " + g.pick("", "LEFT ", "FULL ") + "JOIN " + it.text
		case 2:
			shared := "k"
			for _, c := range last.columns {
				if slices.Contains(it.columns, c) {
					shared = c
				}
			}
			from += g.pick(" JOIN ", " LEFT JOIN ", " FULL JOIN ", " RIGHT JOIN ") + it.text + " USING (" + shared + ")"
		case 3:
			from = "(" + from + g.pick(" JOIN ", " LEFT JOIN ") + it.text + " ON " + g.equal(last, it) + ")"
		default:
			from += g.pick(" JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL OUTER JOIN ", " CROSS JOIN ", " INNER JOIN ") + it.text + " ON " + g.equal(last, it)
			if g.chance(10) {
				from += " AND " + g.condition(items)
			}
		}
	}
	return from, items
}

// core writes one SELECT of columns called p and q.
func (g *generator) core() string {
	g.depth++
	defer func() { g.depth-- }()
	from, items := g.from()
	where := ""
	if g.chance(60) {
		where = " WHERE " + g.condition(items)
		if g.chance(30) {
			where += g.pick(" AND ", " OR ") + g.condition(items)
		}
	}
	switch {
	case g.chance(20):
		key := g.column(items)
		having := ""
		if g.chance(30) {
			having = " HAVING " + g.pick("count(*) > 1", "max("+g.column(items)+") > 0", "count(*) FILTER (WHERE "+g.condition(items)+") > 0")
		}
		return fmt.Sprintf("SELECT %s AS p, %s AS q FROM %s%s GROUP BY %s%s", key, g.aggregate(items), from, where, g.pick(key, "1", key+" COLLATE NOCASE"), having)
	case g.chance(5):
		return fmt.Sprintf("SELECT %s AS p, %s AS q FROM %s%s", g.aggregate(items), g.aggregate(items), from, where)
	case g.depth == 1 && g.chance(10):
		return "SELECT " + g.pick("*", "*", items[0].alias+".*", "*, 1 AS one") + " FROM " + from + where
	case g.chance(8):
		return fmt.Sprintf("SELECT %s AS p, %s AS q FROM %s%s WINDOW w AS (PARTITION BY %s ORDER BY %s)", g.column(items),
			g.pick("rank", "dense_rank", "count", "percent_rank")+"() OVER w", from, where, g.column(items), g.column(items))
	case g.chance(8):
		return fmt.Sprintf("SELECT DISTINCT %s AS p, %s AS q FROM %s%s", g.expression(items), g.expression(items), from, where)
	}
	return fmt.Sprintf("SELECT %s AS p, %s AS q FROM %s%s", g.expression(items), g.expression(items), from, where)
}

func (g *generator) aggregate(items []item) string {
	c := g.column(items)
	return g.pick("count(*)", "count("+c+")", "count(DISTINCT "+c+")", "min("+c+" + 0)", "max(hex("+c+"))", "total("+c+")", "sum("+c+")",
		"count(*) FILTER (WHERE "+g.condition(items)+")", "group_concat(hex("+c+"), '-' ORDER BY hex("+c+"))", "avg("+c+") > 1")
}

func (g *generator) equal(x, y item) string {
	for _, c := range x.columns {
		if slices.Contains(y.columns, c) && g.chance(60) {
			return x.alias + "." + c + " = " + y.alias + "." + c
		}
	}
	return x.alias + "." + g.pick(x.columns...) + g.pick(" = ", " < ") + y.alias + "." + g.pick(y.columns...)
}

func (g *generator) column(items []item) string {
	it := items[g.IntN(len(items))]
	c := g.pick(it.columns...)
	switch g.IntN(20) {
	case 0, 1:
		return unqualified(c)
	case 2:
		if !strings.HasPrefix(c, `"`) {
			return it.alias + g.pick(`."`+c+`"`, ".["+c+"]", ".`"+c+"`", "."+strings.ToUpper(c))
		}
	}
	return it.alias + "." + c
}

func (g *generator) expression(items []item) string {
	switch g.IntN(16) {
	case 0:
		return "coalesce(" + g.column(items) + ", 'none')"
	case 1:
		return g.column(items) + " + 1"
	case 2:
		return g.column(items) + " || '.'"
	case 3:
		return "CASE WHEN " + g.condition(items) + " THEN 1 ELSE " + g.column(items) + " END"
	case 4:
		if g.depth < 3 {
			// Not max(k): were k hidden, it would be the outer query's, and an aggregate of that beside plain columns.
			return "(SELECT " + g.pick("max(z.k)", "max(z.s)", "k", "s") + " FROM " + g.pick("b", "c", "main.c") + " AS z WHERE z.k = " + g.column(items) + " ORDER BY 1 LIMIT 1)"
		}
	case 5:
		return "count(*) OVER (PARTITION BY " + g.column(items) + ")"
	case 6:
		return g.pick("max", "min", "count") + "(" + g.column(items) + " + 0) OVER (ORDER BY " + g.column(items) + g.pick("", " DESC", " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES", " GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING") + ")"
	case 7:
		if g.depth < 3 && len(g.views) > 0 {
			return "(SELECT count(*) FROM " + g.pick(g.views...) + " AS z WHERE z.p = " + g.column(items) + ")"
		}
	case 8:
		return "CAST(" + g.column(items) + " AS " + g.pick("TEXT", "INTEGER", "REAL", "BLOB", "NUMERIC") + ")"
	}
	return g.column(items)
}

// condition also writes what fails on some rows.
func (g *generator) condition(items []item) string {
	c := g.column(items)
	switch g.IntN(20) {
	case 0:
		return c + g.pick(" IS NULL", " NOTNULL", " IS NOT 1", " IS NOT DISTINCT FROM "+g.column(items))
	case 1:
		return c + " IN (1, 2, 'p')"
	case 2:
		return c + ` = "p"`
	case 3:
		return "abs(" + c + ") >= 0"
	case 4:
		return "json(" + c + ") IS NOT NULL"
	case 5:
		return c + g.pick(" LIKE '%p%'", " GLOB '*p'", " NOT LIKE 'p\\_' ESCAPE '\\'")
	case 6:
		return c + g.pick(" BETWEEN ", " NOT BETWEEN ") + "0 AND 3"
	case 7, 8:
		if g.depth < 3 {
			inner := g.pickTable()
			columns := columnNames(generated[inner])
			return g.pick("", "NOT ") + "EXISTS (SELECT 1 FROM " + generated[inner].name + " AS e WHERE " + g.pick("e."+g.pick(columns...), unqualified(g.pick(columns...))) + " = " + c + ")"
		}
	case 9:
		if g.depth < 3 {
			return c + g.pick(" IN ", " NOT IN ") + "(SELECT " + g.pick("k", "s", "id") + " FROM " + g.pick("a", "b", "c") + ")"
		}
	case 10:
		if g.depth < 3 {
			return "(SELECT sum(e.k) FROM b AS e WHERE e.id <> " + c + ") > 0"
		}
	case 11:
		if g.depth < 3 {
			return "(" + c + ", " + g.column(items) + ") IN (SELECT " + g.pick("id, k", "k, id", "s, w") + " FROM b)"
		}
	case 12:
		if g.depth < 3 {
			return "(" + c + ", " + g.column(items) + ") IN " + g.pick("d", "main.d")
		}
	case 13:
		return "NOT (" + g.condition(items) + " OR " + c + " > 1)"
	}
	return c + g.pick(" = ", " <> ", " > ", " <= ", " == ", " != ") + g.pick("1", "2", "'p'", "'P'", "'1'", "NULL", "-1", "1.5", g.column(items))
}
