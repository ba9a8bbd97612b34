package tsql_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the engine that stands in

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
	"github.com/schemagate/schemagate/rewrite/tsql"
)

// The tables of the generated statements. What T-SQL shares with SQLite is enough to run them: there, dbo is an attached
// database.
const ledger = `CREATE TABLE dbo.region (id int PRIMARY KEY, name nvarchar(40));
CREATE TABLE dbo.client (id int PRIMARY KEY, tenant int, region_id int, name nvarchar(40), ssn nvarchar(11));
CREATE TABLE dbo.invoice (id int PRIMARY KEY, tenant int, client_id int, amount int, memo nvarchar(40));
`

// world is a policy, said to the guard and to the engine that prunes by it.
type world struct {
	policy  string
	visible map[string][]string // what each table shows: column, or expression AS column
	rows    map[string]string   // which rows; none means all
}

var worlds = []world{
	{
		policy: `row_filters:
  - {table: db.dbo.client, roles: [reader], using: "tenant = 7"}
  - {table: db.dbo.invoice, roles: [reader], using: "tenant = 7"}
`,
		visible: map[string][]string{"region": {"id", "name"}, "client": {"id", "tenant", "region_id", "name", "ssn"}, "invoice": {"id", "tenant", "client_id", "amount", "memo"}},
		rows:    map[string]string{"client": "tenant = 7", "invoice": "tenant = 7"},
	},
	{
		policy: `  - {role: reader, deny: [db.dbo.client.ssn, db.dbo.client.tenant, db.dbo.invoice.memo]}
row_filters:
  - {table: db.dbo.client, roles: [reader], using: "tenant = 7 OR region_id IN (1, 2)"}
  - {table: db.dbo.client, roles: [reader], using: "ssn IS NOT NULL", mode: restrictive}
  - {table: db.dbo.invoice, roles: [reader], using: "client_id IN (SELECT id FROM client WHERE tenant = invoice.tenant)"}
`,
		visible: map[string][]string{"region": {"id", "name"}, "client": {"id", "region_id", "name"}, "invoice": {"id", "tenant", "client_id", "amount"}},
		rows: map[string]string{
			"client":  "(tenant = 7 OR region_id IN (1, 2)) AND ssn IS NOT NULL",
			"invoice": "client_id IN (SELECT c.id FROM dbo.client AS c WHERE c.tenant = invoice.tenant)",
		},
	},
	{
		policy: `row_filters:
  - {table: db.dbo.region, roles: [reader], using: "EXISTS (SELECT 1 FROM client c WHERE c.region_id = region.id AND c.tenant = 7)"}
masks:
  - {column: db.dbo.client.name, roles: [reader], with: null}
  - {column: db.dbo.client.ssn, roles: [reader], with: {constant: "it's"}}
  - {column: db.dbo.invoice.amount, roles: [reader], with: {constant: 5}}
`,
		visible: map[string][]string{
			"region":  {"id", "name"},
			"client":  {"id", "tenant", "region_id", "NULL AS name", "'it''s' AS ssn"},
			"invoice": {"id", "tenant", "client_id", "5 AS amount", "memo"},
		},
		rows: map[string]string{"region": "EXISTS (SELECT 1 FROM dbo.client AS c WHERE c.region_id = region.id AND c.tenant = 7)"},
	},
	{
		policy: `masks:
  - {column: db.dbo.invoice.amount, roles: [reader], with: {expression: "CASE WHEN tenant = 7 THEN amount END"}}
  - {column: db.dbo.region.name, roles: [reader], with: {expression: "(SELECT MAX(c.ssn) FROM client AS c WHERE c.region_id = region.id)"}}
`,
		visible: map[string][]string{
			"region":  {"id", "(SELECT MAX(c.ssn) FROM dbo.client AS c WHERE c.region_id = region.id) AS name"},
			"client":  {"id", "tenant", "region_id", "name", "ssn"},
			"invoice": {"id", "tenant", "client_id", "CASE WHEN tenant = 7 THEN amount END AS amount", "memo"},
		},
	},
}

// TestGuardedEqualsPruned runs generated statements, guarded on the whole database and as they are on one from which
// hidden rows and columns were removed and to which masks were applied. SQLite stands in for SQL Server, so it shows
// what wrapping does to results, not what SQL Server's optimiser does; statements with a guard are left out, since
// SQLite has no TOP.
func TestGuardedEqualsPruned(t *testing.T) {
	n, seed := rewritetest.Statements(t, 300)
	for i, w := range worlds {
		t.Run(fmt.Sprintf("policy %d", i+1), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			whole, pruned := databases(t, w, r)
			policy := "version: 1\nprincipals: {asker: {roles: [reader]}}\ngrants:\n  - {role: reader, allow: [\"*\"], actions: [view, query]}\n" + w.policy
			schema := newSchema(t, ledger, policy)
			g := &generator{Rand: r, world: w}
			refused, guarded, invalid, rows := 0, 0, 0, 0
			for range n {
				statement := g.statement()
				st, err := rewrite.NewGuard(tsql.New(), 0).Rewrite(statement, schema)
				var no *acl.Refusal
				switch {
				case errors.As(err, &no):
					refused++
					t.Logf("refused: %s (%s)\n%s", no.Public, no.Detail, statement)
					continue
				case err != nil:
					t.Fatalf("%v\n%s", err, statement)
				case strings.Contains(st.Text(), "TOP ("):
					guarded++
					continue
				}
				want, err := run(pruned, statement)
				if err != nil {
					invalid++
					t.Logf("SQLite does not run it: %v\n%s", err, statement)
					continue
				}
				got, err := run(whole, strings.ReplaceAll(st.Text(), "N'", "'"))
				if err != nil {
					t.Fatalf("%v\n%s\n%s", err, statement, st.Text())
				}
				rows += len(want)
				if !slices.Equal(got, want) {
					t.Fatalf("%s\n%s\ngot  %v\nwant %v", statement, st.Text(), got, want)
				}
			}
			t.Logf("%d statements: %d refused, %d guarded, %d not run; %d rows compared", n, refused, guarded, invalid, rows)
			if refused*100 > n || invalid*100 > n || guarded*4 > n {
				t.Errorf("too few of %d statements compared: %d refused, %d not run, %d guarded", n, refused, invalid, guarded)
			}
		})
	}
}

// databases makes a database with rows at random, and a pruned one.
func databases(t *testing.T, w world, r *rand.Rand) (whole, pruned *sql.DB) {
	t.Helper()
	open := func() *sql.DB {
		db, err := sql.Open("sqlite", ":memory:")
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		t.Cleanup(func() { db.Close() })
		exec(t, db, "ATTACH ':memory:' AS dbo")
		exec(t, db, ledger)
		return db
	}
	whole, pruned = open(), open()
	value := func(values ...string) string { return values[r.IntN(len(values))] }
	for id := range 9 {
		for _, insert := range []string{
			fmt.Sprintf("INSERT INTO dbo.region VALUES (%d, %s)", id, value("NULL", "'north'", "'south'", "'east'")),
			fmt.Sprintf("INSERT INTO dbo.client VALUES (%d, %s, %s, %s, %s)", id, value("7", "7", "8", "NULL"), value("1", "2", "3", "9", "NULL"), value("'ada'", "'bob'", "NULL"), value("'x'", "NULL", "'y'")),
			fmt.Sprintf("INSERT INTO dbo.invoice VALUES (%d, %s, %s, %s, %s)", id, value("7", "7", "8"), value("1", "2", "5", "7", "NULL"), value("1", "5", "900", "NULL"), value("'ada'", "'m'", "NULL")),
		} {
			exec(t, whole, insert)
			exec(t, pruned, insert)
		}
	}
	for _, table := range []string{"region", "client", "invoice"} {
		where := "1 = 1"
		if rows, ok := w.rows[table]; ok {
			where = rows
		}
		exec(t, pruned, fmt.Sprintf("CREATE TABLE main.%s AS SELECT %s FROM dbo.%s AS %s WHERE %s", table, strings.Join(w.visible[table], ", "), table, table, where))
	}
	exec(t, pruned, "DETACH dbo")
	return whole, pruned
}

func exec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%v\n%s", err, statement)
	}
}

// run returns the rows of a query as sorted lines.
func run(db *sql.DB, query string) ([]string, error) {
	rows, err := db.Query(query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out []string
	for rows.Next() {
		values, into := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		out = append(out, fmt.Sprint(values...))
	}
	slices.Sort(out)
	return out, rows.Err()
}

// generator makes statements that name visible columns only.
type generator struct {
	*rand.Rand
	world world
	names int
	ctes  []item
}

// item is a table in a FROM with its columns: numbers and texts.
type item struct {
	text, alias    string
	numbers, texts []string
}

func (g *generator) one(of ...string) string { return of[g.IntN(len(of))] }

func (g *generator) name(prefix string) string {
	g.names++
	return fmt.Sprintf("%s%d", prefix, g.names)
}

func (g *generator) statement() string {
	g.names, g.ctes = 0, nil
	with := ""
	for range g.IntN(3) {
		if g.IntN(2) == 0 {
			continue
		}
		q, out := g.query(1)
		out.text = g.name("w")
		if with == "" {
			with = "WITH "
			out.text = g.one(out.text, "client", "invoice")
		} else {
			with += ", "
		}
		// In its own body the name would make it a recursive one. (To SQLite a name also hides tables from what is
		// before it, so only the first may be a table's.)
		if strings.Contains(q, "FROM "+out.text+" ") || strings.Contains(q, "JOIN "+out.text+" ") || strings.Contains(q, ", "+out.text+" ") || strings.Contains(q, "("+out.text+" ") {
			out.text = g.name("w")
		}
		with += out.text + " AS (" + q + ")"
		g.ctes = append(g.ctes, out)
	}
	q, _ := g.query(2)
	for range g.IntN(3) / 2 {
		next, _ := g.query(1)
		q += " " + g.one("UNION", "UNION ALL", "EXCEPT", "INTERSECT") + " " + next
	}
	return strings.TrimSpace(with + " " + q)
}

// query makes a SELECT of two columns n and s.
func (g *generator) query(depth int) (string, item) {
	from, items := g.from(depth, 2)
	where := ""
	if g.IntN(3) > 0 {
		where = " WHERE " + g.condition(items, depth)
	}
	out := item{numbers: []string{"n"}, texts: []string{"s"}}
	switch g.IntN(5) {
	case 0:
		s := g.text(items)
		having := ""
		if g.IntN(3) == 0 {
			having = " HAVING COUNT(*) > 1"
		}
		return fmt.Sprintf("SELECT %s(%s) AS n, %s AS s FROM %s%s GROUP BY %s%s", g.one("COUNT", "MIN", "MAX", "SUM"), g.number(items), s, from, where, s, having), out
	case 1:
		return fmt.Sprintf("SELECT COUNT(*) OVER (PARTITION BY %s) AS n, %s AS s FROM %s%s", g.number(items), g.text(items), from, where), out
	case 2:
		return fmt.Sprintf("SELECT DISTINCT %s AS n, COALESCE(%s, 'none') AS s FROM %s%s", g.number(items), g.text(items), from, where), out
	case 3:
		return fmt.Sprintf("SELECT CASE WHEN %s THEN %s ELSE 0 END AS n, UPPER(%s) AS s FROM %s%s", g.condition(items, 0), g.number(items), g.text(items), from, where), out
	}
	return fmt.Sprintf("SELECT %s AS n, %s AS s FROM %s%s", g.number(items), g.text(items), from, where), out
}

// from joins up to most tables to a first.
func (g *generator) from(depth, most int) (string, []item) {
	first := g.table(depth)
	text, items := first.text+" AS "+first.alias, []item{first}
	for range g.IntN(most + 1) {
		next := g.table(depth)
		items = append(items, next)
		right := next.text + " AS " + next.alias
		switch kind := g.one("JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT OUTER JOIN", "FULL JOIN", "CROSS JOIN", "nested"); {
		case most < 2 && kind == "nested":
			text += " JOIN " + right + " ON " + g.number(items[:len(items)-1]) + " = " + g.number([]item{next})
		case kind == "CROSS JOIN":
			text += " CROSS JOIN " + right
		case kind == "nested":
			inner := g.table(depth)
			text += fmt.Sprintf(" LEFT JOIN (%s JOIN %s AS %s ON %s = %s) ON %s = %s", right, inner.text, inner.alias,
				g.number([]item{next}), g.number([]item{inner}), g.number(items[:len(items)-1]), g.number([]item{next}))
			items = append(items, inner)
		default:
			text += fmt.Sprintf(" %s %s ON %s = %s", kind, right, g.number(items[:len(items)-1]), g.number([]item{next}))
			if g.IntN(4) == 0 {
				text += " AND " + g.condition(items, 0)
			}
		}
	}
	return text, items
}

func (g *generator) table(depth int) item {
	if depth > 0 && g.IntN(5) == 0 {
		q, out := g.query(depth - 1)
		out.text, out.alias = "("+q+")", g.name("d")
		return out
	}
	if len(g.ctes) > 0 && g.IntN(3) == 0 {
		c := g.ctes[g.IntN(len(g.ctes))]
		c.alias = g.name("c")
		return c
	}
	t := item{text: g.one("region", "client", "invoice"), alias: g.name("t")}
	for _, c := range g.ctes {
		if c.text == t.text { // which the name means
			c.alias = t.alias
			return c
		}
	}
	for _, c := range g.world.visible[t.text] {
		c = c[strings.LastIndexByte(c, ' ')+1:]
		if c == "name" || c == "ssn" || c == "memo" {
			t.texts = append(t.texts, c)
		} else {
			t.numbers = append(t.numbers, c)
		}
	}
	return t
}

func (g *generator) number(items []item) string {
	t := items[g.IntN(len(items))]
	return t.alias + "." + g.one(t.numbers...)
}

func (g *generator) text(items []item) string {
	for range 20 {
		if t := items[g.IntN(len(items))]; len(t.texts) > 0 {
			return t.alias + "." + g.one(t.texts...)
		}
	}
	return "'none'"
}

func (g *generator) condition(items []item, depth int) string {
	switch k := g.IntN(9); {
	case k == 0:
		return g.number(items) + g.one(" = ", " <> ", " < ", " >= ") + g.one("1", "5", "7", "8")
	case k == 1:
		return g.text(items) + g.one(" IS NULL", " IS NOT NULL", " LIKE '%a%'", " = 'ada'")
	case k == 2:
		return g.number(items) + g.one(" IN (1, 2, 7)", " NOT IN (3, 8)", " BETWEEN 2 AND 7")
	case k == 3:
		return "NOT (" + g.condition(items, depth) + ")"
	case k == 4:
		return "(" + g.condition(items, depth) + g.one(" AND ", " OR ") + g.condition(items, depth) + ")"
	case depth > 0 && k == 5:
		from, inner := g.from(0, 1)
		return fmt.Sprintf("%sEXISTS (SELECT 1 FROM %s WHERE %s = %s)", g.one("", "NOT "), from, g.number(inner), g.number(items))
	case depth > 0 && k == 6:
		from, inner := g.from(0, 1)
		return fmt.Sprintf("%s %sIN (SELECT %s FROM %s WHERE %s)", g.number(items), g.one("", "NOT "), g.number(inner), from, g.condition(slices.Concat(inner, items), 0))
	case depth > 0 && k == 7:
		from, inner := g.from(0, 1)
		return fmt.Sprintf("(SELECT MAX(%s) FROM %s WHERE %s) > 2", g.number(inner), from, g.condition(slices.Concat(inner, items), 0))
	}
	return g.number(items) + " = " + g.number(items)
}
