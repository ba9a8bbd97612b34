package sqlite_test

import (
	"cmp"
	"database/sql"
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqlc-dev/meyer/ast"
	"github.com/sqlc-dev/meyer/parser"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
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
			statement, ordered := g.statement()
			want := answerOf(world.pruned, statement, ordered)
			st, err := world.guard.Rewrite(statement, world.schema(t))
			var no *acl.Refusal
			if err != nil && !errors.As(err, &no) {
				t.Fatalf("%v\n%s\n%s\n%s", err, world.ddl, world.policy, statement)
			}
			if no != nil {
				if want.err == nil {
					refused++
					t.Logf("refused: %s (%s)\n%s", no.Public, no.Detail, statement)
				} else {
					failed++
				}
				continue
			}
			got, without := answerOf(world.full, st.Text(), ordered), answerOf(world.purged, st.Text(), ordered)
			tell := func(what string, other answer) {
				t.Fatalf("world %d: %s\n%s\n%s\n%s\nguarded\n%s\ngot\n%s\nwant\n%s", w, what, world.ddl, world.policy, statement, st.Text(), got, other)
			}
			switch {
			case !got.equal(without):
				tell("hidden rows show", without)
			case (got.err == nil) != (want.err == nil) && runsOrNot(cmp.Or(got.err, want.err)):
				failed++
			case got.err == nil && want.err != nil && fault(want.err):
				failed++
			case !got.equal(want):
				tell("not what the pruned database returns", want)
			case got.err != nil:
				failed++
			case !slices.Equal(got.names, outputNames(st)):
				t.Fatalf("world %d: the columns are called %q, the lineage says %q\n%s", w, got.names, outputNames(st), statement)
			default:
				returned++
			}
		}
		world.close()
	}
	t.Logf("%d equal, %d failed or refused on both, %d refused though valid", returned, failed, refused)
	if valid := returned + refused; refused*100 > valid {
		t.Errorf("%d of %d valid statements were refused, more than one in a hundred", refused, valid)
	}
	if returned*3 < statements {
		t.Errorf("only %d of %d statements returned anything to compare", returned, statements)
	}
	if t.Failed() {
		return
	}
	if err := (rewritetest.Tally{Engine: engineVersion(t), Seed: seed, Statements: statements, Valid: returned + refused, Refused: refused, Oracle: "pruned database"}).Enter(); err != nil {
		t.Error(err)
	}
}

func engineVersion(t *testing.T) string {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var version string
	if err := db.QueryRow("SELECT sqlite_version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return "SQLite " + version
}

// runsOrNot reports whether an error is of an expression that fails on some visible row and runs or not as the plan has
// it, which wrappers change.
func runsOrNot(err error) bool {
	return strings.Contains(err.Error(), "malformed JSON") || strings.Contains(err.Error(), "integer overflow")
}

// fault reports whether an error is SQLite's own fault with some RIGHT JOINs of tables, which it does not have with those
// of derived tables.
func fault(err error) bool {
	return strings.Contains(err.Error(), "misuse of aggregate: count()") || strings.Contains(err.Error(), "ON clause references tables to its right")
}

// TestWhatFailsTellsNothingOfHiddenRows generates expressions that fail on some values for every place of a statement. The
// guarded statement fails if and only if it does without the hidden rows, with the same words; and those are the words of
// the original on the pruned database. Of several expressions SQLite evaluates as many as its plan needs, in its order, so
// that now and then a visible row fails in one of the two only, or another one first.
func TestWhatFailsTellsNothingOfHiddenRows(t *testing.T) {
	statements, seed := rewritetest.Statements(t, 3000)
	const each = 100
	fails, returned, planned := 0, 0, 0
	for w := range uint64(statements / each) {
		g := generator{Rand: rand.New(rand.NewPCG(seed, w<<32))}
		world := g.world(t)
		for range each {
			statement := g.failing()
			st, err := world.guard.Rewrite(statement, world.schema(t))
			var no *acl.Refusal
			if errors.As(err, &no) {
				continue
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, statement)
			}
			got, without, want := answerOf(world.full, st.Text(), false), answerOf(world.purged, st.Text(), false), answerOf(world.pruned, statement, false)
			switch {
			case !got.same(without), got.err == nil && want.err == nil && !got.equal(want):
				t.Fatalf("world %d\n%s\n%s\n%s\nguarded\n%s\ngot\n%s\nwithout hidden rows\n%s\non the pruned database\n%s", w, world.ddl, world.policy, statement, st.Text(), got, without, want)
			case !got.alike(want):
				planned++
				t.Logf("%v, %v\n%s\n%s", got.err, want.err, statement, st.Text())
			case got.err == nil:
				returned++
			default:
				fails++
			}
		}
		world.close()
	}
	t.Logf("%d return, %d fail, %d fail or not as the plan has it", returned, fails, planned)
	if fails*20 < statements {
		t.Errorf("only %d of %d statements fail", fails, statements)
	}
	if planned*100 > statements {
		t.Errorf("%d of %d statements fail or not as the plan has it, more than one in a hundred", planned, statements)
	}
}

// failing writes a statement with one expression that fails on some values.
func (g *generator) failing() string {
	g.depth, g.ctes, g.used = 2, nil, nil
	from, items := g.from()
	c := g.column(items)
	bad := g.pick("abs("+c+")", "json("+c+")", "json_extract("+c+", '$.a')", "json_extract('{}', "+c+")", c+" -> '$.a'", "'p' LIKE 'p' ESCAPE "+c,
		"json_array_length("+c+")", "json_type("+c+")", "json_set("+c+", '$', 1)", "json_patch("+c+", '{}')", "json_quote(CAST("+c+" AS BLOB))",
		"(SELECT sum(z.k) FROM a AS z WHERE z.k <> "+c+")", "(SELECT sum(k) FROM b)", "(SELECT json_group_object(json(s), 1) FROM c)", "(SELECT count(*) FROM json_each("+c+"))",
		"json_remove("+c+", '$.a')", "json_insert('{}', '$.a', "+c+", "+c+", 1)", "abs(9223372036854775807 - "+c+")", "json_error_position("+c+")")
	some := "(SELECT " + g.pick("max(k)", "min(s)", "count(*)", "max(s)", "min(k)") + " FROM " + g.pick("a", "b", "c") + ")"
	switch g.IntN(13) {
	case 8:
		return "SELECT " + c + " AS p FROM " + from + " ORDER BY 1 LIMIT " + g.pick(some, "1 OFFSET "+some)
	case 9:
		return "SELECT " + g.pick("ntile(", "nth_value(1, ", "lead(1, ") + some + ") OVER () AS p FROM " + from
	case 10:
		return "SELECT count(*) OVER (ORDER BY " + c + " ROWS BETWEEN " + some + " PRECEDING AND CURRENT ROW) AS p FROM " + from
	case 11:
		return "SELECT p FROM (SELECT " + bad + " AS p FROM " + from + ") WHERE " + g.pick("p > 0", "1 = 1", "0") + " UNION SELECT 1"
	case 0:
		return "SELECT " + bad + " AS p FROM " + from
	case 1:
		return "SELECT " + c + " AS p FROM " + from + " WHERE " + bad + " IS NOT NULL"
	case 2:
		return "SELECT " + c + " AS p FROM " + from + " WHERE " + g.condition(items) + g.pick(" AND ", " OR ") + bad + " > 0"
	case 3:
		return "SELECT " + c + " AS p FROM " + from + " ORDER BY " + bad
	case 4:
		return "SELECT count(*) AS p FROM " + from + " GROUP BY " + bad
	case 5:
		return "SELECT " + c + " AS p FROM " + from + " GROUP BY " + c + " HAVING max(" + bad + ") > 0"
	case 6:
		return "SELECT CASE WHEN " + g.condition(items) + " THEN " + bad + " ELSE 1 END AS p FROM " + from
	case 7:
		return "SELECT " + g.pick("sum", "max", "group_concat", "json_group_array") + "(" + bad + ") IS NULL AS p FROM " + from
	}
	return "SELECT " + c + " AS p FROM " + from + g.pick(" LEFT", " FULL", "") + " JOIN d AS tz ON " + bad + " IS NOT NULL"
}

// answer is what a database says to a statement.
type answer struct {
	names, rows []string
	err         error
}

// answerOf runs a statement. Rows in no order are sorted; those in one are ordered up to the case of letters, which some
// columns do not compare.
func answerOf(db *sql.DB, statement string, ordered bool) answer {
	var a answer
	a.names, a.rows, a.err = read(db, statement)
	if ordered {
		for i, r := range a.rows {
			a.rows[i] = strings.ToLower(r)
		}
	} else {
		slices.Sort(a.rows)
	}
	return a
}

func (a answer) equal(b answer) bool {
	if a.err != nil || b.err != nil {
		return a.err != nil && b.err != nil
	}
	return slices.Equal(a.names, b.names) && slices.Equal(a.rows, b.rows)
}

// same is equal, with the words of the error.
func (a answer) same(b answer) bool {
	return a.equal(b) && (a.err == nil || a.err.Error() == b.err.Error())
}

// alike is same but for the value that an error names: which row fails first is the plan's.
func (a answer) alike(b answer) bool {
	return a.equal(b) && (a.err == nil || inQuotes.ReplaceAllString(a.err.Error(), "") == inQuotes.ReplaceAllString(b.err.Error(), ""))
}

var inQuotes = regexp.MustCompile(`'.*'`)

func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return strings.Join(append([]string{strings.Join(a.names, "|")}, a.rows...), "\n")
}

func outputNames(st rewrite.Statement) []string {
	var out []string
	for _, o := range st.Output() {
		out = append(out, o.Name)
	}
	return out
}

// TestATamperedStatementIsNotGoverned takes each filter of generated statements away, puts each wrapped table back as it
// is, and adds each hidden column to its wrapper.
func TestATamperedStatementIsNotGoverned(t *testing.T) {
	tampered := 0
	for w := range uint64(5) {
		g := generator{Rand: rand.New(rand.NewPCG(9, w))}
		world := g.world(t)
		for range 25 {
			statement, _ := g.statement()
			st, err := world.guard.Rewrite(statement, world.schema(t))
			if err != nil {
				continue
			}
			for n := 0; ; n++ {
				text, ok := tamper(t, st.Text(), n, world.schema(t))
				if !ok {
					break
				}
				tree, err := sqlite.New().Parse(text)
				if err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				if err := tree.Single(); err != nil {
					t.Fatal(err)
				}
				if tree.Governed(world.schema(t)) == nil {
					t.Fatalf("world %d\n%s\n%s\npasses for governed\n%s\nmade of\n%s", w, world.ddl, world.policy, text, st.Text())
				}
				tampered++
			}
		}
		world.close()
	}
	t.Logf("tampered with %d statements", tampered)
	if tampered < 200 {
		t.Errorf("only %d statements were tampered with", tampered)
	}
}

// tamper changes the n-th thing in a governed text that may not change; ok is false when there are no more.
func tamper(t *testing.T, text string, n int, s *rewrite.Schema) (changed string, ok bool) {
	t.Helper()
	tree, err := parser.ParseStatement(text)
	if err != nil {
		t.Fatal(err)
	}
	change := func(do func()) {
		if n == 0 {
			do()
			ok = true
		}
		n--
	}
	ast.Walk(tree, func(n ast.Node) bool {
		ref, isRef := n.(*ast.TableRef)
		if !isRef || ref.Select == nil || ok {
			return !ok
		}
		q, isQuery := ref.Select.Cores[0].(*ast.SelectQuery)
		if !isQuery || len(q.From) != 1 || q.From[0].Name == nil {
			return true
		}
		name := q.From[0].Name
		view, isView := strings.CutPrefix(name.Name.Name, "view main.")
		if name.Schema == nil && !isView {
			return true
		}
		if !isView {
			view = name.Name.Name
		}
		table, found, err := s.Table(catalog.TableRef(rewritetest.Database, "", view))
		if err != nil || !found {
			t.Fatal(view, err)
		}
		if table.Protected {
			change(func() { q.Where = nil })
			change(func() {
				q.Where = &ast.BinaryExpr{Op: ast.OpOr, X: q.Where, Y: &ast.Literal{Kind: ast.LitInteger, Value: "1", Raw: "1"}}
			})
		}
		if !table.Whole && !isView {
			change(func() { ref.Name, ref.Select = name, nil })
			change(func() {
				q.Columns = append(q.Columns, &ast.ResultColumn{Expr: &ast.Ident{Name: "hidden", Raw: "hidden"}})
			})
		}
		return !ok
	})
	return ast.String(tree), ok
}
