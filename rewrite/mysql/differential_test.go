package mysql_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/mysql"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

const (
	fullDatabase   = "schemagate_full"
	prunedDatabase = "schemagate_pruned"
)

const diffDDL = `CREATE TABLE area (id INT PRIMARY KEY, name VARCHAR(20), size INT);
CREATE TABLE person (id INT PRIMARY KEY, tenant INT, area_id INT, name VARCHAR(20), pin VARCHAR(8), age INT);
CREATE TABLE sale (id INT PRIMARY KEY, tenant INT, person_id INT, amount DECIMAL(10,2), memo VARCHAR(20), day DATE);
CREATE TABLE secret (id INT PRIMARY KEY, name VARCHAR(20), amount INT);`

// diffTable is a table of the generator with its columns: i for numbers, s for text, d for dates.
type diffTable struct {
	name    string
	columns []diffColumn
}

type diffColumn struct {
	name string
	kind byte
	typ  string // of a table's column
}

var diffTables = []diffTable{
	{"area", []diffColumn{{"id", 'i', "INT"}, {"name", 's', "VARCHAR(20)"}, {"size", 'i', "INT"}}},
	{"person", []diffColumn{{"id", 'i', "INT"}, {"tenant", 'i', "INT"}, {"area_id", 'i', "INT"}, {"name", 's', "VARCHAR(20)"}, {"pin", 's', "VARCHAR(20)"}, {"age", 'i', "INT"}}},
	{"sale", []diffColumn{{"id", 'i', "INT"}, {"tenant", 'i', "INT"}, {"person_id", 'i', "INT"}, {"amount", 'i', "DECIMAL(10,2)"}, {"memo", 's', "VARCHAR(20)"}, {"day", 'd', "DATE"}}},
	{"secret", []diffColumn{{"id", 'i', "INT"}, {"name", 's', "VARCHAR(20)"}, {"amount", 'i', "DECIMAL(10,2)"}}},
}

// diffPolicy is a random policy, kept apart from the guard so that the pruned database can be made without it.
type diffPolicy struct {
	filters map[string]string
	masks   map[string]string
	hidden  map[string]bool // tables and table.column
}

func newDiffPolicy(r *rand.Rand) diffPolicy {
	p := diffPolicy{map[string]string{}, map[string]string{}, map[string]bool{}}
	filters := map[string][]string{
		"area":   {"size > 3", "name <> 'north' or size is null", "id in (select area_id from person where tenant = 7)"},
		"person": {"tenant = 7", "tenant = 7 or age < 30", "area_id in (1, 2)", "exists (select 1 from area a where a.id = person.area_id and a.size > 3)", "null"},
		"sale":   {"tenant = 7", "amount < 500", "tenant = 7 and not (memo = 'c')", "person_id in (select id from person where tenant = 7)"},
	}
	masks := map[string][]string{
		"person.name": {"'***'", "null", "concat(left(name, 1), '*')"}, "person.age": {"0", "null", "age div 10 * 10"},
		"sale.memo": {"'x'", "upper(memo)"}, "sale.amount": {"round(amount)", "case when tenant = 7 then amount end"}, "area.size": {"null", "size % 2"},
	}
	for _, t := range diffTables {
		if fs := filters[t.name]; fs != nil && r.IntN(4) > 0 {
			p.filters[t.name] = fs[r.IntN(len(fs))]
		}
		for _, c := range t.columns {
			name := t.name + "." + c.name
			if ms := masks[name]; ms != nil && r.IntN(4) == 0 {
				p.masks[name] = ms[r.IntN(len(ms))]
			} else if c.name != "id" && r.IntN(10) == 0 {
				p.hidden[name] = true
			}
		}
	}
	p.hidden["secret"] = true
	return p
}

func (p diffPolicy) file() string {
	var b strings.Builder
	b.WriteString("version: 1\nprincipals: {asker: {roles: [reader]}}\ngrants:\n  - {role: reader, allow: [\"*\"], actions: [view, query]}\n")
	for _, t := range diffTables {
		for _, c := range append([]diffColumn{{}}, t.columns...) {
			name := strings.TrimSuffix(t.name+"."+c.name, ".")
			if p.hidden[name] {
				fmt.Fprintf(&b, "  - {role: reader, deny: [%s.%s]}\n", fullDatabase, name)
			}
		}
	}
	section := func(head, format string, rules map[string]string) {
		for _, t := range diffTables {
			for _, c := range append([]diffColumn{{}}, t.columns...) {
				name := strings.TrimSuffix(t.name+"."+c.name, ".")
				if rule, ok := rules[name]; ok {
					b.WriteString(head)
					head = ""
					fmt.Fprintf(&b, format, fullDatabase+"."+name, rule)
				}
			}
		}
	}
	section("row_filters:\n", "  - {table: %s, roles: [reader], using: %q}\n", p.filters)
	section("masks:\n", "  - {column: %s, roles: [reader], with: {expression: %q}}\n", p.masks)
	return b.String()
}

// pruned returns the statements that make the database as the asker may see it, run in the full one.
func (p diffPolicy) pruned() []string {
	out := []string{"DROP DATABASE IF EXISTS " + prunedDatabase, "CREATE DATABASE " + prunedDatabase + " CHARACTER SET utf8mb4"}
	for _, t := range diffTables {
		if p.hidden[t.name] {
			continue
		}
		var columns, values []string
		for _, c := range t.columns {
			name := t.name + "." + c.name
			if p.hidden[name] {
				continue
			}
			columns = append(columns, c.name+" "+c.typ)
			if mask, masked := p.masks[name]; masked {
				values = append(values, mask)
			} else {
				values = append(values, c.name)
			}
		}
		where := "true"
		if f, ok := p.filters[t.name]; ok {
			where = f
		}
		out = append(out, fmt.Sprintf("CREATE TABLE %s.%s (%s)", prunedDatabase, t.name, strings.Join(columns, ", ")),
			fmt.Sprintf("INSERT INTO %s.%s SELECT %s FROM %s WHERE (%s)", prunedDatabase, t.name, strings.Join(values, ", "), t.name, where))
	}
	return out
}

// generator writes random statements, some of which name what is hidden or absent.
type generator struct {
	r     *rand.Rand
	depth int
	names int
	ctes  []diffTable
	loose bool // may name hidden and absent things
	p     diffPolicy
}

func (g *generator) pick(options ...string) string { return options[g.r.IntN(len(options))] }

func (g *generator) alias() string {
	g.names++
	if g.r.IntN(12) == 0 {
		return fmt.Sprintf("`a `` -- %d`", g.names)
	}
	return fmt.Sprintf("a%d", g.names)
}

// field is a column in scope.
type field struct {
	sql  string
	kind byte
}

func (g *generator) of(fields []field, kind byte) string {
	var some []string
	for _, f := range fields {
		if f.kind == kind {
			some = append(some, f.sql)
		}
	}
	if len(some) == 0 || g.r.IntN(8) == 0 {
		switch kind {
		case 'i':
			return strconv.Itoa(g.r.IntN(12))
		case 's':
			return g.pick("'a'", "'north'", "'c'", `'\\'`, "'it''s'")
		}
		return "DATE '2024-01-0" + strconv.Itoa(1+g.r.IntN(9)) + "'"
	}
	return g.pick(some...)
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
		switch g.r.IntN(9) {
		case 0:
			return a + " " + g.pick("+", "-", "*") + " " + b
		case 1:
			return "-" + g.of(fields, 'i')
		case 2:
			return "coalesce(" + a + ", " + b + ")"
		case 3:
			return "length(" + g.value(fields, 's') + ")"
		case 4:
			return "case when " + g.condition(fields) + " then " + a + " else " + b + " end"
		case 5:
			return "(select " + g.pick("count(*)", "max(id)", "min(id)") + " from " + g.table() + ")"
		case 6:
			return "abs(" + a + ") % 5"
		case 7:
			return "datediff(" + g.value(fields, 'd') + ", DATE '2024-01-01')"
		}
		return "(" + a + ")"
	case 's':
		return g.pick("concat("+a+", '-', "+b+")", "upper("+a+")", "left("+a+", 2)", "ifnull("+a+", 'none')", "nullif("+a+", "+b+")")
	}
	return g.pick(a+" + interval 1 day", "date_sub("+a+", interval 2 day)", "coalesce("+a+", "+b+")")
}

func (g *generator) condition(fields []field) string {
	g.depth++
	defer func() { g.depth-- }()
	kind := "is"[g.r.IntN(2)]
	if g.depth > 4 {
		return g.of(fields, kind) + " = " + g.of(fields, kind)
	}
	switch g.r.IntN(12) {
	case 0:
		return g.condition(fields) + " and " + g.condition(fields)
	case 1:
		return g.condition(fields) + " or " + g.condition(fields)
	case 2:
		return "not (" + g.condition(fields) + ")"
	case 3:
		return g.of(fields, kind) + g.pick(" is null", " is not null")
	case 4:
		return g.of(fields, 's') + " like " + g.pick("'%a%'", "'_o%'", `'\\_%'`)
	case 5:
		return g.of(fields, 'i') + g.pick(" in", " not in") + " (select " + g.pick("id", "id + 1") + " from " + g.table() + ")"
	case 6:
		t := diffTables[g.r.IntN(3)]
		inner, a := g.columns(t, g.alias())
		return g.pick("", "not ") + "exists (select 1 from " + t.name + " " + a + " where " + g.of(inner, 'i') + " = " + g.of(fields, 'i') + ")"
	case 7:
		return g.value(fields, 'i') + " between 1 and " + g.value(fields, 'i')
	case 8:
		return g.of(fields, 'i') + g.pick(" > all", " <= any") + " (select id from " + g.table() + ")"
	}
	return g.value(fields, kind) + " " + g.pick("=", "<>", "<", ">=", "<=>") + " " + g.value(fields, kind)
}

func (g *generator) table() string {
	if g.loose && g.r.IntN(15) == 0 {
		return g.pick("secret", "nowhere")
	}
	name := diffTables[g.r.IntN(3)].name
	if slices.ContainsFunc(g.ctes, func(c diffTable) bool { return c.name == name }) {
		return "sale"
	}
	return name
}

func (g *generator) columns(t diffTable, alias string) ([]field, string) {
	var out []field
	for _, c := range t.columns {
		if g.p.hidden[t.name+"."+c.name] && !(g.loose && g.r.IntN(8) == 0) {
			continue
		}
		out = append(out, field{alias + "." + c.name, c.kind})
	}
	return out, alias
}

func (g *generator) source() (string, []field) {
	a := g.alias()
	if len(g.ctes) > 0 && g.r.IntN(3) == 0 {
		t := g.ctes[g.r.IntN(len(g.ctes))]
		fs, _ := g.columns(t, a)
		return t.name + " " + a, fs
	}
	if g.depth < 2 && g.r.IntN(5) == 0 {
		g.depth++
		defer func() { g.depth-- }()
		sql, columns := g.block(false)
		fs, _ := g.columns(diffTable{"", columns}, a)
		return "(" + sql + ") " + a, fs
	}
	t := diffTables[g.r.IntN(3)]
	if g.r.IntN(4) == 0 {
		fs, _ := g.columns(t, t.name)
		return t.name, fs
	}
	fs, _ := g.columns(t, a)
	return t.name + g.pick(" ", " as ") + a, fs
}

func (g *generator) from() (string, []field) {
	sql, fields := g.source()
	used := map[string]bool{sql: true}
	for n := g.r.IntN(3); n > 0; n-- {
		next, more := g.source()
		if used[next] {
			continue
		}
		used[next] = true
		both := append(slices.Clone(fields), more...)
		on := g.of(fields, 'i') + " = " + g.of(more, 'i')
		if g.r.IntN(3) == 0 {
			on = g.condition(both)
		}
		switch g.r.IntN(6) {
		case 0:
			sql = "(" + sql + ") cross join " + next
		case 1:
			sql += " left join " + next + " on " + on
		case 2:
			sql += " right join " + next + " on " + on
		case 3:
			sql = sql + " straight_join " + next + " on " + on
		case 4:
			sql = next + " left join (" + sql + ") on " + on
		default:
			sql += " join " + next + " on " + on
		}
		fields = both
	}
	return sql, fields
}

// block writes a query block and the columns that it yields.
func (g *generator) block(top bool) (string, []diffColumn) {
	from, fields := g.from()
	var list []string
	var columns []diffColumn
	add := func(sql string, kind byte) {
		g.names++
		name := fmt.Sprintf("c%d", g.names) // unlike every column, or GROUP BY would mean that
		list = append(list, sql+" as "+name)
		columns = append(columns, diffColumn{name: name, kind: kind})
	}
	tail := ""
	if g.r.IntN(2) == 0 {
		tail += " where " + g.condition(fields)
	}
	if g.r.IntN(4) == 0 {
		kind := "is"[g.r.IntN(2)]
		key := g.value(fields, kind)
		add(key, kind)
		add(g.pick("count(*)", "count("+g.of(fields, 's')+")", "sum("+g.value(fields, 'i')+")", "max("+g.of(fields, 'i')+")", "min("+g.of(fields, 'i')+")",
			"count(distinct "+g.of(fields, 'i')+")"), 'i')
		tail += " group by " + columns[0].name
		if g.r.IntN(2) == 0 {
			tail += " having " + columns[1].name + " > " + strconv.Itoa(g.r.IntN(3))
		}
	} else {
		for n := 1 + g.r.IntN(3); n > 0; n-- {
			kind := "iisd"[g.r.IntN(4)]
			add(g.value(fields, kind), kind)
		}
		if g.r.IntN(6) == 0 {
			add(g.pick("rank()", "count(*)", "sum("+g.of(fields, 'i')+")", "dense_rank()")+" over ("+g.pick("", "partition by "+g.of(fields, 's')+" ")+"order by "+g.of(fields, 'i')+")", 'i')
		}
	}
	sql := "select " + g.pick("", "", "", "distinct ") + strings.Join(list, ", ") + " from " + from + tail
	if top && g.r.IntN(5) == 0 {
		if g.r.IntN(2) == 0 {
			sql = "select * from " + from + strings.Split(tail, " group by ")[0]
		}
	}
	return sql, columns
}

func (g *generator) statement() string {
	sql := ""
	if g.r.IntN(4) == 0 {
		name := g.pick("cte", "area", "secret", "person")
		body, columns := g.block(false)
		g.ctes = append(g.ctes, diffTable{name, columns})
		sql = "with " + name + " as (" + body + ") "
	}
	block, columns := g.block(true)
	sql += block
	if g.r.IntN(6) == 0 && !strings.Contains(block, "select *") {
		other, more := g.block(false)
		if len(more) == len(columns) {
			sql += g.pick(" union ", " union all ", " except ", " intersect ") + other
		}
	}
	if strings.Contains(block, "select *") {
		return sql
	}
	if g.r.IntN(3) == 0 {
		var order []string
		for _, c := range columns {
			order = append(order, c.name+g.pick("", " desc"))
		}
		sql += " order by " + strings.Join(order, ", ")
		if g.r.IntN(2) == 0 {
			sql += " limit " + strconv.Itoa(1+g.r.IntN(5))
		}
	}
	return sql
}

// TestGuardedEqualsPruned generates statements and policies: what is guarded gives on the full database what the
// original gives on the database without what is hidden. See rewritetest.Statements for how many.
func TestGuardedEqualsPruned(t *testing.T) {
	db := server(t)
	count, seed := rewritetest.Statements(t, 1000)
	full := newDatabase(t, db, fullDatabase)
	exec(t, full, diffDDL+`
		INSERT INTO area VALUES (1,'north',5),(2,'south',2),(3,'west',null),(4,'east',9);
		INSERT INTO person VALUES (1,7,1,'ada','11',20),(2,8,1,'ben','22',35),(3,7,2,'cyd','33',50),(4,8,3,'dov','44',null),(5,null,4,'eve','55',28),(6,7,null,null,'66',31);
		INSERT INTO sale VALUES (1,7,1,100.50,'a','2024-01-01'),(2,8,2,900,'b','2024-01-02'),(3,7,3,50,'c','2024-01-03'),(4,8,1,700,'d',null),(5,7,2,25.25,'e','2024-01-05'),(6,null,3,5,null,'2024-01-06'),(7,7,6,null,'a','2024-01-07');
		INSERT INTO secret VALUES (1,'s1',1),(2,'s2',2);`)
	pruned := newDatabase(t, db, prunedDatabase)
	guard := rewrite.NewGuard(mysql.New(), 0)
	ran, refused, invalid, empty := 0, 0, 0, 0
	const perPolicy = 50
	for i := 0; i < count; i += perPolicy {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		p := newDiffPolicy(r)
		for _, s := range p.pruned() {
			exec(t, full, s)
		}
		exec(t, pruned, "USE "+prunedDatabase)
		for range perPolicy {
			g := &generator{r: r, p: p, loose: r.IntN(4) == 0}
			in := g.statement()
			schema, err := schemaOf(p.file(), script{fullDatabase, diffDDL})
			if err != nil {
				t.Fatalf("%v\n%s", err, p.file())
			}
			want, fails := query(pruned, in)
			st, err := guard.Rewrite(in, schema)
			var no *acl.Refusal
			switch {
			case err != nil && !errors.As(err, &no):
				t.Fatalf("%v\n%s\n%s", err, in, p.file())
			case fails != nil && no != nil:
				invalid++
				continue
			case no != nil:
				refused++
				t.Logf("refused: %s: %s (%s)\n%s", no.Code, no.Public, no.Detail, in)
				continue
			}
			got, err := query(full, st.Text())
			switch {
			case fails != nil && err != nil:
				invalid++
				continue
			case fails != nil:
				t.Errorf("the original fails on the pruned database (%v), the guarded one returns %d rows\n%s\n%s", fails, len(got), in, st.Text())
				continue
			case err != nil:
				t.Errorf("%v\n%s\n%s", err, in, st.Text())
				continue
			}
			ran++
			if len(want) == 0 {
				empty++
			}
			if !slices.Equal(sorted(got), sorted(want)) {
				t.Errorf("got %v\nwant %v\n%s\n%s\n%s", got, want, in, st.Text(), p.file())
			}
		}
	}
	t.Logf("%d equal (%d without rows), %d refused, %d invalid", ran, empty, refused, invalid)
	if refused*100 > ran {
		t.Errorf("%d valid statements were refused, %d ran; at most 1%% may be", refused, ran)
	}
}
