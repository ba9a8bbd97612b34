package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/postgres"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

const differentialDDL = `CREATE TABLE region (id int PRIMARY KEY, name text, boss int);
CREATE TABLE client (id int PRIMARY KEY, tenant int, region_id int, name text, ssn text);
CREATE TABLE invoice (id int PRIMARY KEY, tenant int, client_id int, amount int, memo text);
`

const differentialRows = `INSERT INTO region SELECT i, CASE WHEN i = 3 THEN NULL ELSE 'r' || i % 3 END, CASE WHEN i % 2 = 0 THEN i END FROM generate_series(1, 5) i;
INSERT INTO client SELECT i, CASE WHEN i = 4 THEN NULL ELSE i % 3 END, i % 6, 'c' || i % 4, 's' || i FROM generate_series(1, 12) i;
INSERT INTO invoice SELECT i, i % 3, CASE WHEN i % 7 = 0 THEN NULL ELSE i % 13 END, i * 37 % 11, CASE WHEN i % 5 > 0 THEN 'm' || i % 4 END FROM generate_series(1, 18) i;
`

var differentialTables = map[string][]string{ // columns, of which those that begin with # hold text
	"region":  {"id", "#name", "boss"},
	"client":  {"id", "tenant", "region_id", "#name", "#ssn"},
	"invoice": {"id", "tenant", "client_id", "amount", "#memo"},
}

// pruning is a policy together with the database that it means.
type pruning struct {
	filters map[string]string
	denied  []string          // table.column
	masks   map[string]string // by table.column
}

func randomPruning(r *rand.Rand) pruning {
	p := pruning{filters: map[string]string{}, masks: map[string]string{}}
	filters := map[string][]string{
		"region":  {"boss is not null", "name = 'r1' or name is null", "exists (select 1 from client c where c.region_id = region.id and c.tenant = 1)"},
		"client":  {"tenant = 1", "tenant <> 1 or tenant is null", "region_id in (select id from region where name = 'r1')", "false"},
		"invoice": {"tenant = 1", "amount > 3 or memo is null", "client_id in (select c.id from client c where c.tenant = 2)", "lower(upper(tenant::text)) = '2'"},
	}
	masks := map[string]string{
		"client.name": "'*'", "client.region_id": "case when name = 'c1' then 1 else 2 end", "invoice.amount": "amount % 2",
		"invoice.memo": "null::text", "region.name": "upper(name)", "client.id": "id + 100",
	}
	for _, t := range sortedNames(differentialTables) {
		if r.IntN(3) > 0 {
			p.filters[t] = filters[t][r.IntN(len(filters[t]))]
		}
		for _, c := range differentialTables[t] {
			name := t + "." + strings.TrimPrefix(c, "#")
			switch {
			case r.IntN(8) == 0 && len(p.visible(t)) > 1: // a table keeps a column to be seen by
				p.denied = append(p.denied, name)
			case masks[name] != "" && r.IntN(3) == 0:
				p.masks[name] = masks[name]
			}
		}
	}
	return p
}

func sortedNames[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// visible lists the columns of a table that are not denied.
func (p pruning) visible(table string) []string {
	return slices.DeleteFunc(slices.Clone(differentialTables[table]), func(c string) bool {
		return slices.Contains(p.denied, table+"."+strings.TrimPrefix(c, "#"))
	})
}

func (p pruning) policy() string {
	var b strings.Builder
	b.WriteString("version: 1\nprincipals: {asker: {roles: [reader]}}\ngrants:\n  - {role: reader, allow: [\"*\"], actions: [view, query]}\n")
	for _, d := range p.denied {
		fmt.Fprintf(&b, "  - {role: reader, deny: [db.public.%s]}\n", d)
	}
	if len(p.filters) > 0 {
		b.WriteString("row_filters:\n")
	}
	for _, t := range sortedNames(p.filters) {
		fmt.Fprintf(&b, "  - {table: db.public.%s, roles: [reader], using: %q}\n", t, p.filters[t])
	}
	if len(p.masks) > 0 {
		b.WriteString("masks:\n")
	}
	for _, c := range sortedNames(p.masks) {
		fmt.Fprintf(&b, "  - {column: db.public.%s, roles: [reader], with: {expression: %q}}\n", c, p.masks[c])
	}
	return b.String()
}

// build makes the public schema of a database that holds the raw tables in the schema raw the pruned one.
func (p pruning) build() string {
	var b strings.Builder
	b.WriteString("DROP SCHEMA public CASCADE; CREATE SCHEMA public; SET search_path = raw;\n")
	for _, t := range sortedNames(differentialTables) {
		var columns []string
		for _, c := range p.visible(t) {
			c = strings.TrimPrefix(c, "#")
			if m := p.masks[t+"."+c]; m != "" {
				columns = append(columns, m+" AS "+c)
			} else {
				columns = append(columns, c)
			}
		}
		where := "true"
		if f := p.filters[t]; f != "" {
			where = f
		}
		fmt.Fprintf(&b, "CREATE TABLE public.%s AS SELECT %s FROM raw.%s WHERE %s;\n", t, strings.Join(columns, ", "), t, where)
		if slices.Contains(p.visible(t), "id") && p.masks[t+".id"] == "" {
			fmt.Fprintf(&b, "ALTER TABLE public.%s ADD PRIMARY KEY (id);\n", t)
		}
	}
	b.WriteString("SET search_path = public;")
	return b.String()
}

// TestGuardedEqualsPruned compares, for generated statements and policies, the guarded statement on the full database
// with the original one on a database without what is hidden. Where the original succeeds the guarded one must give
// the same rows: not fail, whatever hidden rows would do to its expressions. See rewritetest.Statements for how many.
func TestGuardedEqualsPruned(t *testing.T) {
	ctx := context.Background()
	full := freshDatabase(t, "full", differentialDDL+differentialRows)
	pruned := freshDatabase(t, "pruned", "CREATE SCHEMA raw; SET search_path = raw;"+differentialDDL+differentialRows)
	for _, conn := range []*pgx.Conn{full, pruned} {
		if _, err := conn.PgConn().Exec(ctx, "SET statement_timeout = '100ms'").ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	d := postgres.New()
	statements, seed := rewritetest.Statements(t, 500)
	r := rand.New(rand.NewPCG(seed, 2))
	compared, refused, failed := 0, map[string]int{}, 0
	for done := 0; done < statements; {
		p := randomPruning(r)
		if _, err := pruned.PgConn().Exec(ctx, p.build()).ReadAll(); err != nil {
			t.Fatalf("%s\n%v", p.build(), err)
		}
		schema, err := rewritetest.NewSchema(d, differentialDDL, p.policy())
		if err != nil {
			t.Fatalf("%s\n%v", p.policy(), err)
		}
		for range min(50, statements-done) {
			done++
			g := generator{r: r, p: p}
			sql := g.statement()
			want, wantErr := query(pruned, sql)
			st, err := rewrite.NewGuard(d, 100000).Rewrite(sql, schema)
			if err != nil {
				no, ok := errors.AsType[*acl.Refusal](err)
				switch {
				case !ok:
					t.Fatalf("a fault for %s\n%v", sql, err)
				case wantErr == nil:
					refused[no.Code+": "+no.Public+" ("+no.Detail+")"]++
				default:
					failed++
				}
				continue
			}
			got, gotErr := query(full, st.Text())
			if wantErr != nil {
				failed++
				continue
			}
			if timedOut(gotErr) {
				failed++
				continue
			}
			if gotErr != nil && failsUnderSomePlan(pruned, sql) {
				failed++
				continue
			}
			slices.Sort(got)
			slices.Sort(want)
			if gotErr != nil || !slices.Equal(got, want) {
				t.Fatalf("policy:\n%s\noriginal: %s\nguarded:  %s\ngot:  %v %v\nwant: %v", p.policy(), sql, st.Text(), got, gotErr, want)
			}
			compared++
		}
	}
	t.Logf("%d equal, %d fail on the pruned database too or take long, refused: %v", compared, failed, refused)
	wrongly := 0
	for _, n := range refused {
		wrongly += n
	}
	if wrongly*100 > statements {
		t.Errorf("%d of %d valid statements were refused: %v", wrongly, statements, refused)
	}
	if compared*2 < statements {
		t.Errorf("only %d of %d statements were compared; the generator makes too many that fail", compared, statements)
	}
}

// failsUnderSomePlan reports whether a statement can fail on the rows of the pruned database. Whether an expression
// meets a row that it fails on depends on the plan, and tables with hidden rows are planned differently; but that row
// must not be a hidden one.
func failsUnderSomePlan(conn *pgx.Conn, sql string) bool {
	for _, shape := range []string{sql, barred.ReplaceAllString(sql, "(SELECT * FROM $1 OFFSET 0) AS $2")} {
		for _, off := range []string{
			"enable_hashjoin", "enable_mergejoin", "enable_nestloop", "enable_hashjoin, enable_mergejoin", "enable_hashjoin, enable_nestloop",
			"enable_mergejoin, enable_nestloop", "enable_material, enable_memoize",
		} {
			set := "BEGIN;"
			for name := range strings.SplitSeq(off, ", ") {
				set += "SET LOCAL " + name + " = off;"
			}
			for _, order := range []string{"", "SET LOCAL join_collapse_limit = 1; SET LOCAL from_collapse_limit = 1;"} {
				_, err := query(conn, set+order+shape)
				query(conn, "ROLLBACK")
				if err != nil && !timedOut(err) {
					return true
				}
			}
		}
	}
	return false
}

// barred finds the tables of a generated statement, to put them behind a barrier as the guard does.
var barred = regexp.MustCompile(`((?:ONLY )?(?:public\.)?(?:region|client|invoice)) AS ([a-z]_?\d+)`)

// timedOut reports whether the server gave up: barriers cost time, and generated joins can be large.
func timedOut(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "57014"
}

// generator writes statements over the tables of the differential test.
type generator struct {
	r     *rand.Rand
	p     pruning
	names int
	with  []relation
}

// relation is something in FROM with its columns.
type relation struct {
	name    string
	columns []string
}

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

func (g *generator) pick(of ...string) string { return of[g.r.IntN(len(of))] }

func (g *generator) fresh(prefix string) string {
	g.names++
	return fmt.Sprintf("%s%d", prefix, g.names)
}

func (g *generator) statement() string {
	with := ""
	if g.chance(25) {
		name := g.pick("w", "client", "invoice")
		text, columns := g.query(2, nil, 0)
		with = "WITH " + name + " AS " + g.pick("", "", "MATERIALIZED ", "NOT MATERIALIZED ") + "(" + text + ") "
		g.with = append(g.with, relation{name, columns})
	}
	text, columns := g.query(3, nil, 0)
	if g.chance(15) {
		arity := len(columns)
		right, other := g.query(2, nil, arity)
		if sameTypes(columns, other) {
			return with + "(" + text + ") " + g.pick("UNION", "UNION ALL", "INTERSECT", "EXCEPT") + " (" + right + ")"
		}
	}
	if g.chance(20) && len(columns) > 0 {
		var order []string
		for i := range columns {
			order = append(order, fmt.Sprint(i+1))
		}
		text += " ORDER BY " + strings.Join(order, ", ") + g.pick("", " LIMIT 3", " LIMIT 2 OFFSET 1")
	}
	return with + text
}

func sameTypes(a, b []string) bool {
	return slices.EqualFunc(a, b, func(x, y string) bool { return strings.HasPrefix(x, "#") == strings.HasPrefix(y, "#") })
}

// query writes a SELECT. Its columns are named; arity 0 leaves their number open.
func (g *generator) query(depth int, outer []relation, arity int) (string, []string) {
	from, scope := g.from(depth, outer)
	sees := append(slices.Clone(scope), outer...)
	where := ""
	if g.chance(60) {
		where = " WHERE " + g.condition(depth, sees)
	}
	if arity == 0 {
		arity = 1 + g.r.IntN(3)
	}
	var targets, columns []string
	grouped := g.chance(25)
	groupBy := ""
	if grouped {
		key, isText := g.column(scope, g.chance(50))
		if g.chance(20) {
			if table, ok := g.keyed(scope); ok {
				// What a primary key implies need not be grouped by.
				rest, restText := g.column([]relation{table}, g.chance(50))
				targets, columns = append(targets, rest+" AS k0"), append(columns, named("k0", restText))
				key, isText = table.name+".id", false
			}
		}
		groupBy = " GROUP BY " + key
		targets, columns = append(targets, key+" AS k"), append(columns, named("k", isText))
		for len(targets) < arity {
			name := g.fresh("a")
			targets = append(targets, g.pick("count(*)", "sum("+g.number(1, scope)+")", "min("+g.number(1, scope)+")",
				"count(DISTINCT "+g.number(1, scope)+")", "count(*) FILTER (WHERE "+g.condition(1, scope)+")")+" AS "+name)
			columns = append(columns, name)
		}
		if g.chance(30) {
			groupBy += " HAVING " + g.pick("count(*) > 1", "min("+g.number(1, scope)+") < 5", g.condition(1, []relation{{columns: nil}}))
		}
	}
	for !grouped && len(targets) < arity {
		name := g.fresh("o")
		switch n := g.r.IntN(100); {
		case n < 30:
			targets, columns = append(targets, g.text(depth, sees)+" AS "+name), append(columns, "#"+name)
		case n < 36:
			targets = append(targets, g.pick("rank()", "count(*)", "max("+g.number(1, scope)+")")+
				" OVER (PARTITION BY "+g.number(1, scope)+" ORDER BY "+g.number(1, scope)+") AS "+name)
			columns = append(columns, name)
		default:
			targets, columns = append(targets, g.number(depth, sees)+" AS "+name), append(columns, name)
		}
	}
	distinct := ""
	if g.chance(10) {
		distinct = "DISTINCT "
	}
	list := strings.Join(targets, ", ")
	if !grouped && depth == 3 && g.chance(10) {
		list, columns = "*", nil
	}
	return "SELECT " + distinct + list + " FROM " + from + where + groupBy, columns
}

func named(name string, isText bool) string {
	if isText {
		return "#" + name
	}
	return name
}

// keyed finds a table in scope whose primary key can be seen.
func (g *generator) keyed(scope []relation) (relation, bool) {
	for _, rel := range scope {
		for _, t := range sortedNames(differentialTables) {
			if strings.HasPrefix(rel.name, t[:1]+"_") && slices.Contains(rel.columns, "id") {
				return rel, true
			}
		}
	}
	return relation{}, false
}

func (g *generator) from(depth int, outer []relation) (string, []relation) {
	text, first := g.relation(depth, outer)
	scope := []relation{first}
	for range g.r.IntN(3) {
		if g.chance(15) {
			left := append(slices.Clone(scope), outer...)
			lateral, columns := g.query(min(depth-1, 1), left, 0)
			rel := relation{g.fresh("l"), columns}
			text += g.pick(", LATERAL (", " CROSS JOIN LATERAL (") + lateral + ") AS " + rel.name
			scope = append(scope, rel)
			continue
		}
		right, rel := g.relation(depth, outer)
		if g.chance(20) {
			text += " CROSS JOIN " + right
			scope = append(scope, rel)
			continue
		}
		scope = append(scope, rel)
		on, full := g.equality(scope)
		kind := g.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
		if !full {
			kind = "JOIN" // PostgreSQL has full joins over columns of both sides only
		}
		text += " " + kind + " " + right + " ON " + on
		if !strings.Contains(text, "FULL JOIN") && g.chance(30) {
			text += " AND " + g.condition(1, scope)
		}
	}
	return text, scope
}

// relation writes one entry of FROM.
func (g *generator) relation(depth int, outer []relation) (string, relation) {
	switch n := g.r.IntN(100); {
	case n < 12 && len(g.with) > 0:
		w := g.with[0]
		rel := relation{g.fresh("w"), w.columns}
		if len(rel.columns) > 0 {
			return w.name + " AS " + rel.name, rel
		}
	case n < 30 && depth > 1:
		text, columns := g.query(depth-1, outer, 0)
		rel := relation{g.fresh("d"), columns}
		return "(" + text + ") AS " + rel.name, rel
	case n < 35:
		rel := relation{g.fresh("v"), []string{"x", "#y"}}
		return "(VALUES (1, 'r1'), (2, NULL)) AS " + rel.name + "(x, y)", rel
	}
	table := g.pick("region", "client", "invoice")
	rel := relation{g.fresh(table[:1] + "_"), g.p.visible(table)}
	if g.chance(2) {
		rel.columns = differentialTables[table] // may name what is hidden
	}
	return g.pick("", "", "public.", "ONLY public.") + table + " AS " + rel.name, rel
}

// column picks a column, of text if there is one and it is asked for. It returns a literal if there is none.
func (g *generator) column(scope []relation, text bool) (string, bool) {
	for range 12 {
		rel := scope[g.r.IntN(len(scope))]
		if len(rel.columns) == 0 {
			continue
		}
		c := rel.columns[g.r.IntN(len(rel.columns))]
		if strings.HasPrefix(c, "#") == text {
			return rel.name + "." + strings.TrimPrefix(c, "#"), text
		}
	}
	if text {
		return "'c1'::text", true
	}
	return "2", false
}

// equality joins the last relation to the others; columns is false if one side has none of the type.
func (g *generator) equality(scope []relation) (on string, columns bool) {
	a, _ := g.column(scope[:len(scope)-1], false)
	b, _ := g.column(scope[len(scope)-1:], false)
	return a + " = " + b, strings.Contains(a, ".") && strings.Contains(b, ".")
}

func (g *generator) number(depth int, scope []relation) string {
	c, _ := g.column(scope, false)
	switch n := g.r.IntN(100); {
	case n < 55 || depth <= 0:
		return c
	case n < 62:
		return fmt.Sprint(g.r.IntN(12))
	case n < 70:
		return "(" + c + g.pick(" + ", " - ", " * ") + g.number(depth-1, scope) + ")"
	case n < 76:
		return "coalesce(" + c + ", " + g.number(depth-1, scope) + ")"
	case n < 82:
		return "CASE WHEN " + g.condition(depth-1, scope) + " THEN " + c + " ELSE " + g.number(depth-1, scope) + " END"
	case n < 86:
		return "length(" + g.text(depth-1, scope) + ")"
	case n < 90:
		return fmt.Sprintf("(100 / (%s - %d))", c, g.r.IntN(12))
	}
	inner, relations := g.from(min(depth-1, 1), scope)
	sees := append(slices.Clone(relations), scope...)
	return "(SELECT " + g.pick("count(*)", "max("+g.number(depth-2, relations)+")", "sum("+g.number(depth-2, relations)+")") +
		" FROM " + inner + " WHERE " + g.condition(depth-1, sees) + ")"
}

func (g *generator) text(depth int, scope []relation) string {
	c, _ := g.column(scope, true)
	switch n := g.r.IntN(100); {
	case n < 70 || depth <= 0:
		return c
	case n < 80:
		return g.pick("upper(", "lower(", "md5(") + c + ")"
	case n < 88:
		return "(" + c + " || 'x')"
	case n < 94:
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
	case n < 35 || depth <= 0:
		return number() + compare + number()
	case n < 43:
		return g.text(depth-1, scope) + compare + g.pick("'c1'", "'m2'", "'r1'", "'*'")
	case n < 50:
		return g.text(depth-1, scope) + g.pick(" LIKE 'm%'", " IS NULL", " IS NOT NULL", " IN ('c1', 'm1', NULL)")
	case n < 58:
		return "(" + g.condition(depth-1, scope) + g.pick(" AND ", " OR ") + g.condition(depth-1, scope) + ")"
	case n < 63:
		return "NOT (" + g.condition(depth-1, scope) + ")"
	case n < 68:
		return number() + " BETWEEN " + number() + " AND " + number()
	case n < 73:
		return number() + " IS " + g.pick("", "NOT ") + "DISTINCT FROM " + number()
	}
	inner, relations := g.from(min(depth-1, 1), scope)
	sees := append(slices.Clone(relations), scope...)
	where := " FROM " + inner + " WHERE " + g.condition(depth-1, sees)
	c, _ := g.column(relations, false)
	switch g.r.IntN(4) {
	case 0:
		return g.pick("", "NOT ") + "EXISTS (SELECT 1" + where + ")"
	case 1:
		return number() + g.pick(" IN ", " NOT IN ") + "(SELECT " + c + where + ")"
	case 2:
		return number() + compare + g.pick("ANY", "ALL") + " (SELECT " + c + where + ")"
	}
	return number() + compare + "(SELECT " + g.pick("max(", "count(") + c + ")" + where + ")"
}
