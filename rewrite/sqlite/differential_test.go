package sqlite_test

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
	"github.com/schemagate/schemagate/rewrite/sqlite"
)

// TestGuardedOnFullEqualsOriginalOnPruned is the guard's promise on generated statements: what the guarded statement
// returns on the full database is what the original returns on one without what is hidden, a statement that fails there
// is refused or fails, and hidden rows change nothing, not even whether a guarded statement fails.
// See rewritetest.Statements for how many.
func TestGuardedOnFullEqualsOriginalOnPruned(t *testing.T) {
	statements, seed := rewritetest.Statements(t, 3000)
	const each = 100 // statements to a world
	returned, failed, refused := 0, 0, 0
	for w := range uint64(statements / each) {
		g := generator{Rand: rand.New(rand.NewPCG(seed, w))}
		world := g.world(t)
		for range each {
			statement := g.statement()
			want, wantErr := query(world.pruned, statement)
			st, err := world.guard.Rewrite(statement, world.schema(t))
			var no *acl.Refusal
			if err != nil && !errors.As(err, &no) {
				t.Fatalf("%v\n%s\n%s", err, world.policy, statement)
			}
			if no != nil {
				if wantErr == nil {
					refused++
					t.Logf("refused: %s (%s)\n%s", no.Public, no.Detail, statement)
				} else {
					failed++
				}
				continue
			}
			got, gotErr := query(world.full, st.Text())
			without, withoutErr := query(world.purged, st.Text())
			for _, rows := range [][]string{got, want, without} {
				slices.Sort(rows)
			}
			switch {
			case (gotErr == nil) != (withoutErr == nil), gotErr == nil && !slices.Equal(got, without):
				t.Fatalf("world %d: hidden rows show\n%s\n%s\n%s\nguarded\n%s\nwith them (%v)\n%s\nwithout (%v)\n%s", w, world.ddl, world.policy,
					statement, st.Text(), gotErr, strings.Join(got, "\n"), withoutErr, strings.Join(without, "\n"))
			case (gotErr == nil) != (wantErr == nil) && runsOrNot(cmp.Or(gotErr, wantErr)):
				failed++
			case (gotErr == nil) != (wantErr == nil), gotErr == nil && !slices.Equal(got, want):
				t.Fatalf("world %d\n%s\n%s\n%s\nguarded\n%s\ngot (%v)\n%s\nwant (%v)\n%s", w, world.ddl, world.policy, statement, st.Text(),
					gotErr, strings.Join(got, "\n"), wantErr, strings.Join(want, "\n"))
			case gotErr == nil:
				returned++
			default:
				failed++
			}
		}
		world.full.Close()
		world.pruned.Close()
		world.purged.Close()
	}
	t.Logf("%d equal, %d failed or refused on both, %d refused though valid", returned, failed, refused)
	if valid := returned + refused; refused*100 > valid {
		t.Errorf("%d of %d valid statements were refused, more than one in a hundred", refused, valid)
	}
	if returned*3 < statements {
		t.Errorf("only %d of %d statements returned anything to compare", returned, statements)
	}
}

// runsOrNot reports whether an error is of an expression that fails on some visible row and runs or not as the plan has
// it, which wrappers change.
func runsOrNot(err error) bool {
	return strings.Contains(err.Error(), "malformed JSON") || strings.Contains(err.Error(), "integer overflow")
}

// world is a database twice, whole and as the asker may see it, with the policy that makes the difference.
type world struct {
	ddl, policy  string
	full, pruned *sql.DB
	purged       *sql.DB // full without the hidden rows
	guard        *rewrite.Guard
}

func (w *world) schema(t *testing.T) *rewrite.Schema {
	t.Helper()
	s, err := rewritetest.NewSchema(sqlite.New(), w.ddl, w.policy)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type generator struct {
	*rand.Rand
	depth int
	ctes  []string
	used  []string // CTEs that are read
}

func (g *generator) pick(from ...string) string { return from[g.IntN(len(from))] }
func (g *generator) chance(percent int) bool    { return g.IntN(100) < percent }

// The tables share names of columns, so that joins merge and names are ambiguous.
var generated = map[string][]string{
	"a": {"id INTEGER PRIMARY KEY", "k INTEGER", "v REAL", "s TEXT", "j TEXT"},
	"b": {"id INTEGER", "k INTEGER", "w NUMERIC", "s TEXT COLLATE NOCASE"},
	"c": {"k INTEGER", "x INTEGER", "s TEXT"},
	"d": {"id INTEGER", "y TEXT"},
}

var generatedTables = []string{"a", "b", "c", "d"}

func (g *generator) world(t *testing.T) *world {
	w := &world{guard: rewrite.NewGuard(sqlite.New(), 0)}
	var rows, grants, filters, masks, purge strings.Builder
	prunedDDL, keep := "", map[string]string{}
	fmt.Fprint(&grants, "version: 1\nprincipals: {asker: {roles: [reader], attributes: {k: 1, t: o'x, ks: [1, 2]}}}\ngrants:\n  - {role: reader, allow: [\"*\"], actions: [view, query]}\n  - {role: reader, deny: [db.e]}\n")
	w.ddl = "CREATE TABLE e(x INTEGER);\n" // what policies read and nobody sees
	for range 1 + g.IntN(3) {
		fmt.Fprintf(&rows, "INSERT INTO e VALUES (%d);\n", 1+g.IntN(6))
	}
	for _, table := range generatedTables {
		w.ddl += fmt.Sprintf("CREATE TABLE %s(%s);\n", table, strings.Join(generated[table], ", "))
		for i := range g.IntN(9) {
			var values []string
			for _, c := range generated[table] {
				values = append(values, g.value(i, c))
			}
			fmt.Fprintf(&rows, "INSERT INTO %s VALUES (%s);\n", table, strings.Join(values, ", "))
		}
		if table == "d" && g.chance(20) {
			fmt.Fprintln(&grants, "  - {role: reader, deny: [db.d]}")
			continue
		}
		where := "1"
		if g.chance(70) {
			first, second := generated[table][0], "k"
			first, _, _ = strings.Cut(first, " ")
			if table == "d" {
				second = "id"
			}
			one := [][2]string{
				{second + " = 1", second + " = {{ principal.k }}"},
				{second + " IN (1, 2) OR " + first + " > 4", second + " in ({{ principal.ks }}) or " + first + " > 4"},
				{"EXISTS (SELECT 1 FROM e WHERE e.x = " + table + "." + first + ")", "exists (select 1 from e where e.x = " + table + "." + first + ")"},
				{first + " IS NOT NULL AND " + second + " < (SELECT max(x) FROM e)", first + " is not null and " + second + " < (select max(x) from e)"},
			}[g.IntN(4)]
			where = one[0]
			fmt.Fprintf(&filters, "  - {table: db.%s, roles: [reader], using: %q}\n", table, one[1])
			fmt.Fprintf(&purge, "DELETE FROM %s WHERE (%s) IS NOT TRUE;\n", table, where)
		}
		var columns, values []string
		for i, c := range generated[table] {
			name, typ, _ := strings.Cut(c, " ")
			if i > 0 && g.chance(7) {
				fmt.Fprintf(&grants, "  - {role: reader, deny: [db.%s.%s]}\n", table, name)
				continue
			}
			columns = append(columns, c)
			value := name
			switch {
			case i == 0 || !g.chance(15):
			case g.chance(30):
				value = "NULL"
				fmt.Fprintf(&masks, "  - {column: db.%s.%s, roles: [reader], with: null}\n", table, name)
			case strings.HasPrefix(typ, "TEXT") && typ == "TEXT":
				value = "upper(" + name + ")"
				fmt.Fprintf(&masks, "  - {column: db.%s.%s, roles: [reader], with: {expression: %q}}\n", table, name, value)
			case strings.HasPrefix(typ, "INTEGER"):
				value = "2"
				fmt.Fprintf(&masks, "  - {column: db.%s.%s, roles: [reader], with: {constant: 2}}\n", table, name)
			}
			values = append(values, value)
		}
		prunedDDL += fmt.Sprintf("CREATE TABLE %s(%s);\n", table, strings.Join(columns, ", "))
		keep[table] = fmt.Sprintf("SELECT %s FROM %s WHERE %s", strings.Join(values, ", "), table, where)
	}
	w.policy = grants.String()
	if filters.Len() > 0 {
		w.policy += "row_filters:\n" + filters.String()
	}
	if masks.Len() > 0 {
		w.policy += "masks:\n" + masks.String()
	}
	w.full, w.pruned = open(t, w.ddl+rows.String()), open(t, prunedDDL)
	w.purged = open(t, w.ddl+rows.String()+purge.String())
	for _, table := range generatedTables {
		if keep[table] == "" {
			continue
		}
		found, err := w.full.Query(keep[table])
		if err != nil {
			t.Fatalf("%v\n%s", err, keep[table])
		}
		columns, _ := found.Columns()
		for found.Next() {
			row, at := make([]any, len(columns)), make([]any, len(columns))
			for i := range row {
				at[i] = &row[i]
			}
			if err := found.Scan(at...); err != nil {
				t.Fatal(err)
			}
			if _, err := w.pruned.Exec("INSERT INTO "+table+" VALUES (?"+strings.Repeat(", ?", len(row)-1)+")", row...); err != nil {
				t.Fatal(err)
			}
		}
		found.Close()
	}
	return w
}

func (g *generator) value(row int, column string) string {
	name, typ, _ := strings.Cut(column, " ")
	switch {
	case strings.Contains(typ, "KEY"):
		return strconv.Itoa(row + 1)
	case g.chance(15):
		return "NULL"
	case name == "j":
		return g.pick("'[1, 2]'", "'{\"a\": 1}'", "'7'", "'8'", "'{'")
	case strings.HasPrefix(typ, "TEXT"):
		return g.pick("'p'", "'P'", "'q'", "'o''x'", "'1'", "''")
	case typ == "REAL":
		return g.pick("0.5", "1", "2", "-3.25")
	}
	return g.pick("0", "1", "2", "3", "4", "5", "6", "7", "9223372036854775807", "-9223372036854775808")
}

// statement writes a SELECT that is mostly valid on most worlds.
func (g *generator) statement() string {
	g.depth, g.ctes = 0, nil
	bodies, reads := map[string]string{}, map[string][]string{}
	for i := range g.IntN(3) {
		name := g.pick("m", "c", "a")
		if i > 0 {
			name = "o"
		}
		g.used = nil
		bodies[name], reads[name] = g.core(), g.used
		g.ctes = append(g.ctes, name)
	}
	g.used = nil
	out := g.core()
	for range g.IntN(3) / 2 {
		out += g.pick(" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT ") + g.core()
	}
	if g.chance(30) {
		out += " ORDER BY 1, 2"
		if g.chance(50) && !strings.Contains(out, "SELECT *") { // two columns order all rows of two
			out = fmt.Sprintf("SELECT DISTINCT * FROM (%s LIMIT %d) WHERE 1 = 1", out, 1+g.IntN(4))
		}
	}
	with := ""
	for i := 0; i < len(g.used); i++ {
		g.used = append(g.used, reads[g.used[i]]...)
	}
	for _, name := range g.ctes { // SQLite does not look at those that nothing reads, the guard does
		if slices.Contains(g.used, name) {
			with += ", " + name + " AS (" + bodies[name] + ")"
		}
	}
	if with != "" {
		return "WITH " + with[2:] + " " + out
	}
	return out
}

// item is a table in a FROM with the columns that it may have.
type item struct {
	text, alias string
	columns     []string
}

func (g *generator) item(alias string) item {
	if len(g.ctes) > 0 && g.chance(25) {
		name := g.pick(g.ctes...)
		g.used = append(g.used, name)
		return item{name + " AS " + alias, alias, []string{"p", "q"}}
	}
	if g.depth < 2 && g.chance(15) {
		return item{"(" + g.core() + ") AS " + alias, alias, []string{"p", "q"}}
	}
	table := g.pick("a", "a", "b", "b", "c", "c", "d")
	it := item{alias: alias}
	for _, c := range generated[table] {
		name, _, _ := strings.Cut(c, " ")
		it.columns = append(it.columns, name)
	}
	switch g.IntN(6) {
	case 0:
		it.text = "main." + table + " AS " + alias
	case 1:
		it.text = strings.ToUpper(table) + " " + alias
	case 2:
		it.text = `"` + table + `" "` + alias + `"`
	default:
		it.text = table + " AS " + alias
	}
	return it
}

// core writes one SELECT of columns called p and q.
func (g *generator) core() string {
	g.depth++
	defer func() { g.depth-- }()
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
		switch g.IntN(8) {
		case 0:
			from += ", " + it.text
		case 1:
			from += " NATURAL " + g.pick("", "LEFT ") + "JOIN " + it.text
		case 2:
			shared := "k"
			for _, c := range last.columns {
				if slices.Contains(it.columns, c) {
					shared = c
				}
			}
			from += g.pick(" JOIN ", " LEFT JOIN ", " FULL JOIN ") + it.text + " USING (" + shared + ")"
		default:
			from += g.pick(" JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL OUTER JOIN ") + it.text + " ON " + g.equal(last, it)
		}
	}
	where := ""
	if g.chance(60) {
		where = " WHERE " + g.condition(items)
		if g.chance(30) {
			where += g.pick(" AND ", " OR ") + g.condition(items)
		}
	}
	if g.chance(25) {
		key := g.column(items)
		having := ""
		if g.chance(30) {
			having = " HAVING count(*) > 1"
		}
		return fmt.Sprintf("SELECT %s AS p, %s AS q FROM %s%s GROUP BY %s%s", key,
			g.pick("count(*)", "count("+g.column(items)+")", "min("+g.column(items)+")", "total("+g.column(items)+")", "sum("+g.column(items)+")"), from, where, key, having)
	}
	if g.depth == 1 && g.chance(10) {
		return "SELECT * FROM " + from + where
	}
	return fmt.Sprintf("SELECT %s AS p, %s AS q FROM %s%s", g.expression(items), g.expression(items), from, where)
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
	case 0:
		return c
	case 1:
		return it.alias + `."` + c + `"`
	}
	return it.alias + "." + c
}

func (g *generator) expression(items []item) string {
	switch g.IntN(12) {
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
			return "(SELECT max(" + g.pick("k", "s", "z.k", "z.s") + ") FROM " + g.pick("b", "c", "main.c") + " AS z WHERE z.k = " + g.column(items) + ")"
		}
	case 5:
		return "count(*) OVER (PARTITION BY " + g.column(items) + ")"
	}
	return g.column(items)
}

// condition also writes what fails on some rows.
func (g *generator) condition(items []item) string {
	c := g.column(items)
	switch g.IntN(14) {
	case 0:
		return c + " IS NULL"
	case 1:
		return c + " IN (1, 2, 'p')"
	case 2:
		return c + ` = "p"`
	case 3:
		return "abs(" + c + ") >= 0"
	case 4:
		return "json(" + c + ") IS NOT NULL"
	case 5:
		return c + " LIKE '%p%'"
	case 6:
		return c + " BETWEEN 0 AND 3"
	case 7:
		if g.depth < 3 {
			return g.pick("", "NOT ") + "EXISTS (SELECT 1 FROM " + g.pick("a", "b", "c", "d") + " AS e WHERE " + g.pick("e.k", "e.s", "e.id") + " = " + c + ")"
		}
	case 8:
		if g.depth < 3 {
			return c + g.pick(" IN ", " NOT IN ") + "(SELECT " + g.pick("k", "s", "id") + " FROM " + g.pick("a", "b", "c") + ")"
		}
	case 9:
		if g.depth < 3 {
			return "(SELECT sum(e.k) FROM b AS e WHERE e.id <> " + c + ") > 0"
		}
	}
	return c + g.pick(" = ", " <> ", " > ", " <= ") + g.pick("1", "2", "'p'", "'1'", g.column(items))
}
