package mysql_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite/mysql"
)

const (
	fullDatabase   = "schemagate_full"
	prunedDatabase = "schemagate_pruned"
)

// world is a random database with a random policy. What the asker sees of it is made by the engine from the policy's
// own SQL, without the guard.
type world struct {
	r      *rand.Rand
	tables []*worldTable // SQL views behind the tables
}

type worldTable struct {
	name    string
	columns []worldColumn
	rows    []string // VALUES lists
	filters []string // permissive; with attributes
	strict  string   // restrictive
	body    string   // of a SQL view
	reads   []*worldTable
	listed  bool // the view has a column list
	absent  bool // not in the pruned database
}

// worldColumn is a column of that kind: i for numbers, s for text, d for dates.
type worldColumn struct {
	name string
	kind byte
	typ  string
	mask *worldMask
	// hidden says that the asker may not see it.
	hidden bool
}

// worldMask is a mask as the policy writes it, and as SQL with the type of what it gives.
type worldMask struct{ with, sql, typ string }

// attributes are the asker's, and how SQL writes them.
var attributes = map[string]string{"tenant": "7", "limit": "-3", "tenants": "7, 8", "names": `'a', 'it''s \\ "x"'`, "area": "'b'"}

const attributeFile = `{tenant: 7, limit: -3, tenants: [7, 8], names: [a, "it's \\ \"x\""], area: b}`

// q quotes a name.
func q(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

func pick[T any](r *rand.Rand, options ...T) T { return options[r.IntN(len(options))] }

func newWorld(r *rand.Rand) *world {
	w := &world{r: r}
	names := []string{"area", "person", "sale", "order", "Mixed Case", "a `b", "x.y", "täble", "it's", "-- c", "t1", "gate"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i := range 3 + r.IntN(2) {
		w.tables = append(w.tables, w.table(names[i]))
	}
	w.tables[r.IntN(len(w.tables))].absent = r.IntN(3) == 0
	for i := range r.IntN(4) {
		w.view(fmt.Sprintf("v%d", i))
	}
	for _, t := range w.tables {
		w.govern(t)
	}
	for _, t := range w.tables {
		t.absent = t.absent || t.body != "" && t.unreadable()
	}
	return w
}

func (w *world) table(name string) *worldTable {
	r := w.r
	t := &worldTable{name: name, columns: []worldColumn{{name: "id", kind: 'i', typ: "INT"}, {name: "tenant", kind: 'i', typ: "INT"}}}
	more := []worldColumn{
		{name: "ref", kind: 'i', typ: "INT"}, {name: "name", kind: 's', typ: "VARCHAR(20)"}, {name: "amount", kind: 'i', typ: pick(r, "DECIMAL(10,2)", "BIGINT", "INT")},
		{name: "memo", kind: 's', typ: "VARCHAR(20)"}, {name: "day", kind: 'd', typ: "DATE"}, {name: "select", kind: 'i', typ: "INT"},
		{name: "a `c", kind: 's', typ: "CHAR(12)"}, {name: "größe", kind: 'i', typ: "TINYINT"}, {name: "at", kind: 'd', typ: "DATE"}, {name: name, kind: 'i', typ: "INT"},
	}
	r.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
	t.columns = append(t.columns, more[:2+r.IntN(4)]...)
	for i := range 3 + r.IntN(6) {
		values := []string{strconv.Itoa(i + 1)}
		for _, c := range t.columns[1:] {
			values = append(values, w.literal(c, true))
		}
		t.rows = append(t.rows, "("+strings.Join(values, ", ")+")")
	}
	return t
}

// literal is a value that a column may hold.
func (w *world) literal(c worldColumn, null bool) string {
	r := w.r
	if null && r.IntN(6) == 0 {
		return "NULL"
	}
	switch {
	case c.name == "tenant":
		return pick(r, "7", "7", "8", "9")
	case c.kind == 's':
		return pick(r, "'a'", "'b'", "'c'", "'north'", `'it''s \\ "x"'`, "''", "'A'", "'%_'", "'12x'")
	case c.kind == 'd':
		return fmt.Sprintf("'2024-0%d-%02d'", 1+r.IntN(2), 1+r.IntN(28))
	}
	return strconv.Itoa(r.IntN(12) - 2)
}

// view adds a SQL view over tables or views.
func (w *world) view(name string) {
	r := w.r
	t := pick(r, w.tables...)
	v := &worldTable{name: name, reads: []*worldTable{t}, listed: r.IntN(2) == 0}
	column := func(of *worldTable, alias string) (string, worldColumn) {
		c := of.columns[r.IntN(len(of.columns))]
		return alias + "." + q(c.name), c
	}
	var list []string
	add := func(sql string, c worldColumn) {
		c.name, c.mask = fmt.Sprintf("k%d", len(list)), nil
		v.columns = append(v.columns, c)
		list = append(list, sql+" AS "+c.name)
	}
	from, tail := " FROM "+q(t.name)+" x", ""
	switch r.IntN(5) {
	case 0:
		sql, c := column(t, "x")
		add(sql, c)
		add("count(*)", worldColumn{kind: 'i', typ: "BIGINT"})
		tail = " GROUP BY " + sql
	case 1:
		o := pick(r, w.tables...)
		v.reads = append(v.reads, o)
		for range 2 {
			sql, c := column(t, "x")
			add(sql, c)
			sql, c = column(o, "y")
			add(sql, c)
		}
		from += pick(r, " JOIN ", " LEFT JOIN ", " RIGHT JOIN ") + q(o.name) + " y ON x." + q(t.columns[0].name) + " = y." + q(o.columns[0].name)
	case 2:
		sql, c := column(t, "x")
		add(sql, c)
		add("rank() OVER (ORDER BY "+sql+")", worldColumn{kind: 'i', typ: "BIGINT"})
	case 3:
		o := pick(r, w.tables...)
		v.reads = append(v.reads, o)
		sql, c := column(t, "x")
		add(sql, c)
		for _, other := range o.columns {
			if other.kind == c.kind {
				tail = pick(r, " UNION ", " UNION ALL ") + "SELECT y." + q(other.name) + " FROM " + q(o.name) + " y"
				break
			}
		}
	default:
		for range 1 + r.IntN(4) {
			add(column(t, "x"))
		}
		tail = " WHERE x." + q(t.columns[0].name) + " > 1 OR x." + q(t.columns[len(t.columns)-1].name) + " IS NULL"
	}
	if v.listed {
		for i := range list {
			list[i] = strings.TrimSuffix(list[i], " AS "+v.columns[i].name)
		}
	}
	v.body = "SELECT " + strings.Join(list, ", ") + from + tail
	w.tables = append(w.tables, v)
}

// unreadable reports whether a view reads what is hidden.
func (t *worldTable) unreadable() bool {
	for i, o := range t.reads {
		alias := string("xy"[i]) + "."
		if o.absent || slices.ContainsFunc(o.columns, func(c worldColumn) bool { return c.hidden && strings.Contains(t.body, alias+q(c.name)) }) {
			return true
		}
	}
	return false
}

// govern gives a table filters, masks and hidden columns.
func (w *world) govern(t *worldTable) {
	r := w.r
	if !t.absent && r.IntN(3) > 0 {
		for range 1 + r.IntN(2) {
			t.filters = append(t.filters, w.filter(t))
		}
		if r.IntN(4) == 0 {
			t.strict = w.filter(t)
		}
	}
	for i := range t.columns {
		c := &t.columns[i]
		switch {
		case i > 0 && r.IntN(10) == 0:
			c.hidden = true
		case r.IntN(6) == 0:
			c.mask = w.mask(t, *c)
		}
	}
}

// filter is a condition on a table in the policy's words.
func (w *world) filter(t *worldTable) string {
	r := w.r
	c := t.columns[r.IntN(len(t.columns))]
	name := q(c.name)
	if t.body == "" && r.IntN(4) == 0 { // a subquery; a view's own filter has none, to keep it simple
		o := w.tables[r.IntN(3)]
		switch r.IntN(3) {
		case 0:
			return q("id") + " in (select " + q("id") + " from " + q(o.name) + " where tenant = {{ principal.tenant }})"
		case 1:
			return "exists (select 1 from " + q(o.name) + " z where z.id = " + q(t.name) + ".id and z.tenant <> 9)"
		}
		return q("id") + " <= (select max(z.id) from " + q(o.name) + " z where z.tenant = 7 or z.tenant is null)"
	}
	switch c.kind {
	case 'i':
		return pick(r, name+" = {{ principal.tenant }}", name+" > {{ principal.limit }}", name+" in ({{ principal.tenants }})", "not ("+name+" = 8)",
			name+" between 1 and {{ principal.tenant }} or "+name+" is null", name+" * 2 > {{ principal.limit }} - -1")
	case 's':
		return pick(r, name+" in ({{ principal.names }})", name+" <> {{ principal.area }}", "left("+name+", 1) = 'a' or "+name+" is null", name+" like '%s%'")
	}
	return pick(r, name+" > '2024-01-10'", "month("+name+") = 1", name+" is not null")
}

func (w *world) mask(t *worldTable, c worldColumn) *worldMask {
	r, name := w.r, q(c.name)
	expression := func(sql, typ string) *worldMask {
		b, _ := json.Marshal(sql)
		return &worldMask{"{expression: " + string(b) + "}", sql, typ}
	}
	options := []*worldMask{{"null", "NULL", c.typ}}
	switch c.kind {
	case 'i':
		options = append(options, &worldMask{"{constant: 5}", "5", "INT"}, expression(name+" div 2", "BIGINT"), expression("case when "+q(t.columns[0].name)+" = 2 then "+name+" end", c.typ),
			expression(name+" + {{ principal.tenant }}", map[bool]string{true: "DECIMAL(20,2)", false: "BIGINT"}[strings.HasPrefix(c.typ, "DECIMAL")]))
		if t.body == "" {
			options = append(options, expression("coalesce((select max(z.id) from "+q(w.tables[0].name)+" z), 0)", "INT"))
		}
	case 's':
		options = append(options, &worldMask{"partial", "concat(left(" + name + ", 1), '***')", "VARCHAR(40)"}, &worldMask{`{constant: "it's"}`, "'it''s'", "VARCHAR(8)"}, expression("upper("+name+")", c.typ),
			&worldMask{"hash", "sha2(concat(cast('k' as binary), convert(" + name + " using utf8mb4)), 256)", "VARCHAR(64)"}, expression("concat("+name+", {{ principal.area }})", "VARCHAR(40)"))
	case 'd':
		options = append(options, expression("makedate(year("+name+"), 1)", "DATE"))
	}
	return pick(r, options...)
}

// ddl creates the full database.
func (w *world) ddl() string {
	var b strings.Builder
	for _, t := range w.tables {
		if t.body != "" {
			names := ""
			if t.listed {
				names = " (" + strings.Join(t.names(), ", ") + ")"
			}
			fmt.Fprintf(&b, "CREATE VIEW %s%s AS %s;\n", q(t.name), names, t.body)
			continue
		}
		var columns []string
		for _, c := range t.columns {
			columns = append(columns, q(c.name)+" "+c.typ)
		}
		fmt.Fprintf(&b, "CREATE TABLE %s (%s);\n", q(t.name), strings.Join(columns, ", "))
	}
	return b.String()
}

func (t *worldTable) names() []string {
	var out []string
	for _, c := range t.columns {
		out = append(out, q(c.name))
	}
	return out
}

func (w *world) fill() string {
	var b strings.Builder
	for _, t := range w.tables {
		if t.body == "" {
			fmt.Fprintf(&b, "INSERT INTO %s VALUES %s;\n", q(t.name), strings.Join(t.rows, ", "))
		}
	}
	return b.String()
}

// bind writes the asker's attributes into SQL of the policy.
func bind(sql string) string {
	for name, value := range attributes {
		sql = strings.ReplaceAll(sql, "{{ principal."+name+" }}", value)
	}
	return sql
}

func (t *worldTable) where() string {
	if len(t.filters) == 0 {
		return "true"
	}
	where := "((" + strings.Join(t.filters, ") or (") + "))"
	if t.strict != "" {
		where += " and (" + t.strict + ")"
	}
	return bind(where)
}

// prune makes the database as the asker may see it.
func (w *world) prune(t *testing.T, full, pruned *sql.Conn) {
	t.Helper()
	for _, o := range w.tables {
		if o.absent {
			continue
		}
		var columns, values []string
		for _, c := range o.columns {
			if c.hidden {
				continue
			}
			value := q(c.name)
			typ := c.typ
			if c.mask != nil {
				value, typ = bind(c.mask.sql), c.mask.typ
			}
			columns, values = append(columns, q(c.name)+" "+typ), append(values, value+" AS "+q(c.name))
		}
		if o.body == "" {
			exec(t, full, fmt.Sprintf("CREATE TABLE %[1]s.%[2]s (%[3]s); INSERT INTO %[1]s.%[2]s SELECT %[4]s FROM %[2]s WHERE %[5]s",
				prunedDatabase, q(o.name), strings.Join(columns, ", "), strings.Join(values, ", "), o.where()))
			continue
		}
		raw := fmt.Sprintf("WITH %s (%s) AS (%s)", q(o.name), strings.Join(o.names(), ", "), o.body)
		exec(t, pruned, fmt.Sprintf("CREATE ALGORITHM=TEMPTABLE VIEW %s AS %s SELECT %s FROM %s WHERE %s", q(o.name), raw, strings.Join(values, ", "), q(o.name), o.where()))
	}
}

// policy is the policy file.
func (w *world) policy() string {
	var grants, filters, masks strings.Builder
	quoted := func(parts ...string) string {
		b, _ := json.Marshal(catalog.ColumnRef(fullDatabase, "", parts[0], strings.Join(parts[1:], "")).String())
		return string(b)
	}
	for _, t := range w.tables {
		b, _ := json.Marshal(catalog.TableRef(fullDatabase, "", t.name).String())
		table := string(b)
		if t.absent && t.body == "" {
			fmt.Fprintf(&grants, "  - {role: reader, deny: [%s]}\n", table)
		}
		for _, f := range t.filters {
			b, _ := json.Marshal(f)
			fmt.Fprintf(&filters, "  - {table: %s, roles: [reader], using: %s}\n", table, b)
		}
		if t.strict != "" {
			b, _ := json.Marshal(t.strict)
			fmt.Fprintf(&filters, "  - {table: %s, roles: [reader], mode: restrictive, using: %s}\n", table, b)
		}
		for _, c := range t.columns {
			if c.hidden {
				fmt.Fprintf(&grants, "  - {role: reader, deny: [%s]}\n", quoted(t.name, c.name))
			} else if c.mask != nil {
				fmt.Fprintf(&masks, "  - {column: %s, roles: [reader], with: %s}\n", quoted(t.name, c.name), c.mask.with)
			}
		}
	}
	file := "version: 1\nprincipals: {asker: {roles: [reader], attributes: " + attributeFile + "}}\ngrants:\n  - {role: reader, allow: [\"*\"], actions: [view, query]}\n" + grants.String()
	if filters.Len() > 0 {
		file += "row_filters:\n" + filters.String()
	}
	if masks.Len() > 0 {
		file += "masks:\n" + masks.String()
	}
	return file
}

// asker is the asker's view of the catalog.
func (w *world) asker(t *testing.T) acl.View {
	t.Helper()
	d, objects, err := mysql.New().Objects(fullDatabase, w.ddl())
	if err != nil {
		t.Fatal(err)
	}
	return viewOf(t, w.policy(), []catalog.Database{d}, objects)
}
