package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/schemagate/schemagate/catalog"
)

// A world is a random database with a random policy: what the differential tests ask statements of. It can be built
// whole, pruned to what the policy shows, and with the server's own row security.

// The kinds of values that columns hold. Columns of one name hold one kind in every table, so that NATURAL and USING
// have something to join.
const (
	number = 'n'
	text   = 't'
	day    = 'd'
	truth  = 'b'
	other  = 'x' // to be shown, not computed with
)

type worldColumn struct {
	name string
	kind rune
}

type worldTable struct {
	schema, name string
	columns      []worldColumn
	body         string // of a SQL view
	list         bool   // the view names its columns in a list
	rows         []string
	key          bool // id is the primary key

	hidden bool
	denied []string
	masks  map[string]worldMask // by column
	filter string               // in the policy's words
	shown  string               // the same with the attributes' values
}

// worldMask is a mask in the policy's words and as SQL over raw values.
type worldMask struct {
	with, sql string
	isText    bool // whatever the column is
}

type world struct {
	tables []*worldTable // views follow what they read
	masked bool
	apart  bool // filters read no table that they filter, so that removing hidden rows changes nothing that is shown
}

var typeOf = map[rune]string{number: "int", text: "text", day: "date", truth: "boolean"}

// sqlType is the type of a table's column.
func (c worldColumn) sqlType() string {
	if c.name == "amount" {
		return "numeric(6,2)"
	}
	return typeOf[c.kind]
}

// columnNames are by kind; among them names that a careless printer or resolver trips over.
var columnNames = map[rune][]string{
	number: {"a", "amount", "ref", "select", "Big N", "a.b", "x\"y", "total", "left"},
	text:   {"name", "memo", "user", "it's", "--c", "Ünï", "null", "$1"},
	day:    {"born", "date"},
	truth:  {"ok", "true"},
}

var tableNames = []string{"client", "invoice", "region", "order", "Item List", "t.u", "group", "w", "semi;colon"}

// q writes a name, with quotes only where they are needed.
func q(name string) string {
	if !slices.Contains([]string{"select", "user", "null", "left", "true", "order", "group"}, name) &&
		!strings.ContainsFunc(name, func(c rune) bool { return (c < 'a' || c > 'z') && c != '_' && (c < '0' || c > '9') }) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

func (t *worldTable) ref() string { return q(t.schema) + "." + q(t.name) }

// visible lists the columns that are not denied.
func (t *worldTable) visible() []worldColumn {
	return slices.DeleteFunc(slices.Clone(t.columns), func(c worldColumn) bool { return slices.Contains(t.denied, c.name) })
}

// keyed reports whether the primary key can be seen as it is.
func (t *worldTable) keyed() bool {
	return t.key && t.masks["id"].sql == "" && !slices.Contains(t.denied, "id")
}

func (t *worldTable) of(kind rune) []string {
	var out []string
	for _, c := range t.columns {
		if c.kind == kind {
			out = append(out, q(c.name))
		}
	}
	return out
}

func randomWorld(r *rand.Rand, apart bool) *world {
	w := &world{masked: r.IntN(3) > 0, apart: apart}
	names := slices.Clone(tableNames)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i := range 3 + r.IntN(2) {
		t := &worldTable{schema: "public", name: names[i], key: true, masks: map[string]worldMask{}}
		if i == 2 && r.IntN(2) == 0 {
			t.schema, t.name = "alt", names[r.IntN(2)]
		}
		t.columns = []worldColumn{{"id", number}, {"tenant", number}}
		for _, kind := range []rune{number, number, text, text, day, truth} {
			of := columnNames[kind]
			c := worldColumn{of[r.IntN(len(of))], kind}
			if !slices.Contains(t.columns, c) && r.IntN(5) > 0 {
				t.columns = append(t.columns, c)
			}
		}
		for row := range 4 + r.IntN(8) {
			t.rows = append(t.rows, randomRow(r, t, row+1))
		}
		w.tables = append(w.tables, t)
	}
	for i := range 1 + r.IntN(3) {
		w.tables = append(w.tables, w.randomView(r, fmt.Sprintf("v%d", i)))
	}
	for _, t := range w.tables {
		w.govern(r, t)
	}
	return w
}

func randomRow(r *rand.Rand, t *worldTable, id int) string {
	values := []string{strconv.Itoa(id), strconv.Itoa(r.IntN(3))}
	for _, c := range t.columns[2:] {
		v := "NULL"
		if r.IntN(6) > 0 {
			switch c.kind {
			case number:
				v = strconv.Itoa(r.IntN(11))
			case text:
				v = []string{"'m1'", "'m2'", "'M1'", "'x%_'", "'it''s'", "''", "'7'"}[r.IntN(7)]
			case day:
				v = fmt.Sprintf("'20%02d-0%d-1%d'", 10+r.IntN(3), 1+r.IntN(9), r.IntN(10))
			case truth:
				v = []string{"true", "false"}[r.IntN(2)]
			}
		}
		values = append(values, v)
	}
	if r.IntN(9) == 0 {
		values[1] = "NULL"
	}
	return "(" + strings.Join(values, ", ") + ")"
}

// randomView reads tables or views that are there, in one of the ways that views do.
func (w *world) randomView(r *rand.Rand, name string) *worldTable {
	from := w.tables[r.IntN(len(w.tables))]
	v := &worldTable{schema: "public", name: name, masks: map[string]worldMask{}}
	n, s := from.of(number), from.of(text)
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	if len(s) == 0 {
		s = []string{"'m1'::text"}
	}
	if len(n) == 0 {
		n = []string{"2"}
	}
	alias := "s"
	source := from.ref() + " AS " + alias
	if from.schema == "public" && r.IntN(2) == 0 {
		source = q(from.name) + " " + alias // found in the default schema
	}
	switch r.IntN(7) {
	case 0:
		v.body = "SELECT " + pick(n) + " AS k, " + pick(s) + " AS memo FROM " + source + " WHERE " + pick(n) + " > 1"
		v.columns = []worldColumn{{"k", number}, {"memo", text}}
	case 1:
		v.body = "SELECT " + pick(n) + " AS k, count(*) AS total, max(" + pick(s) + ") AS name FROM " + source + " GROUP BY 1"
		v.columns = []worldColumn{{"k", number}, {"total", number}, {"name", text}}
	case 2:
		v.body, v.columns = "SELECT * FROM "+source, slices.Clone(from.columns)
	case 3:
		v.body, v.list = "SELECT "+pick(n)+", "+pick(s)+" FROM "+source, true
		v.columns = []worldColumn{{"Key", number}, {"memo", text}}
	case 4:
		b := w.tables[r.IntN(len(w.tables))]
		m := b.of(number)
		if len(m) == 0 {
			m = []string{"tenant"}
		}
		v.body = "WITH x AS (SELECT * FROM " + b.ref() + ") SELECT s." + pick(n) + " AS k, x." + pick(m) + " AS ref FROM " + source +
			" LEFT JOIN x ON x." + pick(m) + " = s." + pick(n)
		v.columns = []worldColumn{{"k", number}, {"ref", number}}
	case 5:
		v.body = "SELECT " + pick(n) + " AS k, " + pick(s) + " AS memo FROM " + source + " UNION SELECT 3, 'm1'"
		v.columns = []worldColumn{{"k", number}, {"memo", text}}
	default:
		v.body = "SELECT 60 / (" + pick(n) + " + 20) AS k, rank() OVER (ORDER BY " + pick(n) + ") AS total FROM " + source
		v.columns = []worldColumn{{"k", number}, {"total", number}}
	}
	return v
}

// govern gives a table its part of the policy.
func (w *world) govern(r *rand.Rand, t *worldTable) {
	switch n := r.IntN(10); {
	case n == 0 && len(w.tables) > 4:
		t.hidden = true
		return
	case n < 4, w.apart && t == w.tables[0]:
		return // seen whole
	}
	for _, c := range t.columns {
		switch {
		case r.IntN(8) == 0 && len(t.visible()) > 1:
			t.denied = append(t.denied, c.name)
		case w.masked && r.IntN(5) == 0:
			t.masks[c.name] = randomMask(r, t, c)
		}
	}
	if r.IntN(4) == 0 {
		return
	}
	n, s := t.of(number), t.of(text)
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	if len(n) == 0 {
		return
	}
	choice := r.IntN(8)
	if w.apart && r.IntN(2) == 0 {
		choice = 4 + r.IntN(2) // which the planner runs late
	}
	if t.body != "" && (choice == 4 || choice == 5) {
		choice = 3 // a view's policy would read raw tables, which the pruned database does not hold
	}
	switch choice {
	case 0, 1:
		t.filter = pick(n) + " = {{ principal.tenant }}"
		t.shown = strings.TrimSuffix(t.filter, "{{ principal.tenant }}") + "1"
	case 2:
		c := pick(n)
		t.filter, t.shown = c+" not in ({{ principal.many }}) or "+c+" is null", c+" not in (0, 2) or "+c+" is null"
	case 3:
		c := pick(n)
		t.filter = c + " > 1"
	case 4:
		b := w.tables[r.IntN(3)]
		if w.apart {
			b = w.tables[0]
		}
		t.filter = "exists (select 1 from " + b.ref() + " z where z.tenant = 1 and z.id = " + q(t.name) + "." + pick(n) + ")"
	case 5:
		b := w.tables[r.IntN(3)]
		if w.apart {
			b = w.tables[0]
		}
		t.filter = pick(n) + " in (select z.tenant from " + b.ref() + " z where z.id > 3)"
	case 6:
		t.filter = "false"
	default:
		if len(s) == 0 {
			return
		}
		c := pick(s)
		t.filter, t.shown = c+" = {{ principal.note }} or lower("+c+") like 'm%'", c+" = 'it''s' or lower("+c+") like 'm%'"
	}
	if t.shown == "" {
		t.shown = t.filter
	}
}

func randomMask(r *rand.Rand, t *worldTable, c worldColumn) worldMask {
	name := q(c.name)
	switch r.IntN(5) {
	case 0:
		if t.body == "" { // of a view the catalog may not know the type
			return worldMask{"null", "NULL::" + c.sqlType(), false}
		}
	case 1:
		return worldMask{"partial", "left(" + name + "::text, 1) || '***'", true}
	case 2:
		return worldMask{"hash", "encode(sha256(convert_to('key' || " + name + "::text, 'UTF8')), 'hex')", true}
	case 3:
		switch c.kind {
		case number:
			if t.body == "" {
				return worldMask{"{constant: 4}", "4::" + c.sqlType(), false}
			}
		case text:
			return worldMask{"{constant: \"m'1\"}", "'m''1'::text", false}
		case truth:
			return worldMask{"{constant: true}", "true", false}
		}
	}
	sql := map[rune]string{
		number: "coalesce(" + name + ", 0) % 3", text: "upper(" + name + ")", day: name + " + 1", truth: "not " + name,
	}[c.kind]
	if r.IntN(3) == 0 && c.kind == number {
		sql = "case when " + t.of(number)[0] + " > 2 then " + name + " end"
	}
	return worldMask{"{expression: " + strconv.Quote(sql) + "}", sql, false}
}

// seen lists the columns as the asker sees them, of those that are there.
func (t *worldTable) seen(there []string) []worldColumn {
	out := slices.DeleteFunc(t.visible(), func(c worldColumn) bool { return !slices.Contains(there, c.name) })
	for i, c := range out {
		if m := t.masks[c.name]; m.isText {
			out[i].kind = text
		}
	}
	return out
}

func (w *world) policy() string {
	var b strings.Builder
	b.WriteString("version: 1\nprincipals: {asker: {roles: [reader], attributes: {tenant: 1, many: [0, 2], note: \"it's\"}}}\n" +
		"grants:\n  - {role: reader, allow: [\"*\"], actions: [view, query]}\n")
	var filters, masks strings.Builder
	for _, t := range w.tables {
		ref := catalog.TableRef("db", t.schema, t.name)
		if t.hidden {
			fmt.Fprintf(&b, "  - {role: reader, deny: [%q]}\n", ref.String())
		}
		column := func(name string) string { return catalog.ColumnRef("db", t.schema, t.name, name).String() }
		for _, d := range t.denied {
			fmt.Fprintf(&b, "  - {role: reader, deny: [%q]}\n", column(d))
		}
		if t.filter != "" {
			fmt.Fprintf(&filters, "  - {table: %q, roles: [reader], using: %q}\n", ref.String(), t.filter)
		}
		for _, c := range t.columns {
			if m := t.masks[c.name]; m.with != "" {
				fmt.Fprintf(&masks, "  - {column: %q, roles: [reader], with: %s}\n", column(c.name), m.with)
			}
		}
	}
	if filters.Len() > 0 {
		b.WriteString("row_filters:\n" + filters.String())
	}
	if masks.Len() > 0 {
		b.WriteString("masks:\n" + masks.String())
	}
	return b.String()
}

// ddl creates the tables and views.
func (w *world) ddl() string {
	var b strings.Builder
	b.WriteString("CREATE SCHEMA alt;\n")
	for _, t := range w.tables {
		if t.body != "" {
			b.WriteString(t.create(t.schema, "") + ";\n")
			continue
		}
		var columns []string
		for _, c := range t.columns {
			columns = append(columns, q(c.name)+" "+c.sqlType())
		}
		columns[0] += " PRIMARY KEY"
		fmt.Fprintf(&b, "CREATE TABLE %s (%s);\n", t.ref(), strings.Join(columns, ", "))
	}
	return b.String()
}

// create writes the CREATE statement of a view.
func (t *worldTable) create(schema, options string) string {
	list := ""
	if t.list {
		var names []string
		for _, c := range t.columns {
			names = append(names, q(c.name))
		}
		list = " (" + strings.Join(names, ", ") + ")"
	}
	return "CREATE VIEW " + q(schema) + "." + q(t.name) + list + options + " AS " + t.body
}

const emptied = "DROP SCHEMA IF EXISTS public, alt, raw, rawalt, hid, body CASCADE; CREATE SCHEMA public; SET search_path = public;\n"

// full builds the database that statements are guarded for, and in it what the server can do of the policy by itself,
// for a role: privileges on columns and row security. What it cannot do, masks and filters of views, the role may not
// read.
func (w *world) full(role string) string {
	var b strings.Builder
	b.WriteString(emptied + w.ddl() + w.data())
	fmt.Fprintf(&b, "CREATE SCHEMA hid; GRANT USAGE ON SCHEMA public, alt, hid TO %s;\n", role)
	for i, t := range w.tables {
		var columns []string
		for _, c := range t.visible() {
			if t.masks[c.name].sql == "" {
				columns = append(columns, q(c.name))
			}
		}
		if t.hidden || len(columns) == 0 || t.body != "" && t.filter != "" {
			continue
		}
		fmt.Fprintf(&b, "GRANT SELECT (%s) ON %s TO %s;\n", strings.Join(columns, ", "), t.ref(), role)
		if t.body != "" {
			fmt.Fprintf(&b, "ALTER VIEW %s SET (security_invoker = true);\n", t.ref())
		}
		if t.filter == "" {
			continue
		}
		using := t.shown
		if strings.Contains(using, "select") { // which reads tables as they are
			fmt.Fprintf(&b, "CREATE FUNCTION hid.ok%d(%s) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER AS $f$ SELECT EXISTS (SELECT 1 FROM (SELECT ($1).*) AS %s WHERE %s) $f$;\n",
				i, t.ref(), q(t.name), using)
			using = fmt.Sprintf("hid.ok%d(%s)", i, q(t.name))
		}
		fmt.Fprintf(&b, "ALTER TABLE %s ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON %s FOR SELECT TO %s USING (%s);\n", t.ref(), t.ref(), role, using)
	}
	return b.String()
}

func (w *world) data() string {
	var b strings.Builder
	for _, t := range w.tables {
		if len(t.rows) > 0 {
			fmt.Fprintf(&b, "INSERT INTO %s VALUES %s;\n", t.ref(), strings.Join(t.rows, ", "))
		}
	}
	return b.String()
}

// pruned builds the database that the policy means, without its views: tables without what is hidden, masks applied.
func (w *world) pruned() string {
	var b strings.Builder
	b.WriteString(emptied + w.ddl() + w.data())
	// Filters and masks read raw values: those of tables are computed first, while everything is there.
	b.WriteString("CREATE SCHEMA hid;\n")
	for _, t := range w.tables {
		if t.body == "" && !t.hidden {
			fmt.Fprintf(&b, "CREATE TABLE hid.%s AS %s;\n", q(t.schema+"."+t.name), t.selected(t.ref()))
		}
	}
	b.WriteString("ALTER SCHEMA public RENAME TO raw; ALTER SCHEMA alt RENAME TO rawalt; CREATE SCHEMA public; CREATE SCHEMA alt;\n")
	for _, t := range w.tables {
		if t.hidden {
			continue
		}
		if t.body == "" {
			at := "hid." + q(t.schema+"."+t.name)
			fmt.Fprintf(&b, "ALTER TABLE %s RENAME TO %s; ALTER TABLE hid.%s SET SCHEMA %s;\n", at, q(t.name), q(t.name), q(t.schema))
			if t.keyed() {
				fmt.Fprintf(&b, "ALTER TABLE %s ADD PRIMARY KEY (id);\n", t.ref())
			}
		}
	}
	b.WriteString("CREATE SCHEMA body;\n")
	return b.String()
}

// selected is what the policy shows of a table at a place, where all columns are there or those named.
func (t *worldTable) selected(at string, there ...string) string {
	var columns []string
	for _, c := range t.visible() {
		if len(there) > 0 && !slices.Contains(there, c.name) {
			continue
		}
		if m := t.masks[c.name]; m.sql != "" {
			columns = append(columns, m.sql+" AS "+q(c.name))
		} else {
			columns = append(columns, q(c.name))
		}
	}
	where := ""
	if t.filter != "" {
		where = " WHERE " + t.shown
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + at + " AS " + q(t.name) + where
}
