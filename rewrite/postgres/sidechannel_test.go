package postgres_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

// message is what a failed statement says, "" if it does not fail.
func message(err error) string {
	if err == nil {
		return ""
	}
	_, text, _ := strings.Cut(err.Error(), "ERROR: ")
	return text
}

// messages lists what a statement says on the pruned database under every plan that can be had: which of the rows that
// an expression fails on is met first, or whether any is, is no matter of SQL.
func (s *stage) messages(sql string) []string {
	var out []string
	s.plans(sql, func(o outcome) {
		if m := message(o.err); !slices.Contains(out, m) {
			out = append(out, m)
		}
	})
	return out
}

// untouched reports whether a guarded statement says the same once the hidden rows are gone: then it is not they that
// it speaks of, but another plan than the pruned database's.
func (s *stage) untouched(guarded, says string) bool {
	remove := "BEGIN;"
	for _, t := range s.world.tables {
		if t.body == "" && t.filter != "" {
			remove += "DELETE FROM " + t.ref() + " AS " + q(t.name) + " WHERE (" + t.shown + ") IS NOT TRUE;"
		}
	}
	if err := run(s.full, remove).err; err != nil {
		panic(err)
	}
	got := message(run(s.full, guarded).err)
	run(s.full, "ROLLBACK")
	return got == says
}

// TestNoErrorTellsOfHiddenRows generates statements with expressions that fail on some rows, hidden ones among them.
// The guarded statement must fail as the original does on the pruned database, with the same words, or not at all.
func TestNoErrorTellsOfHiddenRows(t *testing.T) {
	s := newStage(t)
	// The order in which hashing puts rows out depends on how many the planner expects.
	for _, conn := range []*pgx.Conn{s.full, s.pruned} {
		if _, err := query(conn, "SET enable_hashagg = off; SET enable_hashjoin = off"); err != nil {
			t.Fatal(err)
		}
	}
	statements, seed := rewritetest.Statements(t, 500)
	r := rand.New(rand.NewPCG(seed, 3))
	count := map[string]int{}
	for done := 0; done < statements; {
		s.build(t, randomWorld(r, true))
		for range min(100, statements-done) {
			done++
			g := generator{r: r, w: s.world, seen: s.seen, fails: true}
			sql := g.failingStatement()
			st, err := rewrite.NewGuard(s.dialect, mostRows).Rewrite(sql, s.schema)
			if err != nil {
				if _, ok := errors.AsType[*acl.Refusal](err); !ok {
					t.Fatalf("a fault for %s\n%v", sql, err)
				}
				count["refused"]++
				continue
			}
			want, got := run(s.pruned, sql), run(s.full, st.Text())
			if timedOut(want.err) || timedOut(got.err) || strings.HasPrefix(state(want.err), "42") || len(want.rows) > mostRows {
				count["slow or not valid"]++
				continue
			}
			switch w, g := message(want.err), message(got.err); {
			case w == g && w == "" && !slices.Equal(want.rows, got.rows) && !s.dependsOnThePlan(sql, want.rows):
				t.Fatalf("policy:\n%s\noriginal: %s\nguarded:  %s\ngot:  %v\nwant: %v", s.world.policy(), sql, st.Text(), got.rows, want.rows)
			case w == g && w == "":
				count["both succeed"]++
			case w == g:
				count["both fail alike"]++
			case slices.Contains(s.messages(sql), g):
				count["as under another plan"]++
			case s.untouched(st.Text(), g):
				count["the same without the hidden rows"]++
			default:
				t.Fatalf("tables:\n%s\npolicy:\n%s\noriginal: %s\nguarded:  %s\nsays: %q\nnot:  %q, whatever the plan", s.world.ddl(), s.world.policy(), sql, st.Text(), g, w)
			}
		}
	}
	t.Logf("of %d statements: %v", statements, count)
	if count["both fail alike"]*10 < statements {
		t.Errorf("only %d of %d statements fail; the generator does not try enough", count["both fail alike"], statements)
	}
}

// failingStatement puts an expression that may fail at one of the places where expressions stand.
func (g *generator) failingStatement() string {
	from, scope := g.table()
	if g.chance(40) {
		from, scope1 := g.from(1, nil)
		return g.around(from, scope1)
	}
	return g.around(from, []relation{scope})
}

func (g *generator) around(from string, scope []relation) string {
	f := g.failing(1, scope)
	n := g.number(0, scope)
	switch g.r.IntN(12) {
	case 0:
		return "SELECT " + f + " AS f FROM " + from
	case 1:
		return "SELECT " + n + " AS n FROM " + from + " WHERE " + f + " > 0"
	case 2:
		return "SELECT " + n + " AS n FROM " + from + " ORDER BY " + f + ", 1"
	case 3:
		return "SELECT count(*) AS n FROM " + from + " HAVING min(" + f + ") > 0"
	case 4:
		return "SELECT CASE WHEN " + f + " > 1 THEN 1 ELSE 2 END AS c FROM " + from
	case 5:
		other, rel := g.table()
		on, _ := g.equality(append(slices.Clone(scope), rel))
		return "SELECT " + n + " AS n FROM " + from + g.pick(" LEFT", " RIGHT", "") + " JOIN " + other + " ON " + on + " AND " + f + " > 0"
	case 6:
		return "SELECT sum(" + f + ") AS s FROM " + from
	case 7:
		return "SELECT " + n + " AS n FROM " + from + " WHERE EXISTS (SELECT 1 FROM generate_series(1, 2) z(zz) WHERE zz < " + f + ")"
	case 8:
		return "SELECT d.f FROM (SELECT " + f + " AS f, " + n + " AS n FROM " + from + ") AS d WHERE d.n > 2"
	case 9:
		return "SELECT max(" + f + ") OVER (ORDER BY " + n + ") AS m FROM " + from
	case 10:
		return "SELECT " + n + " AS n FROM " + from + " GROUP BY " + n + ", " + f
	}
	return "WITH w AS (SELECT " + f + " AS f, " + n + " AS n FROM " + from + ") SELECT count(*) AS c FROM w WHERE w.n <> 3 AND w.f < 9"
}
