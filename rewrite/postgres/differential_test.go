package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/postgres"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

// outcome is what the server makes of a statement.
type outcome struct {
	names []string // of the columns
	rows  []string // sorted
	err   error
}

func run(conn *pgx.Conn, sql string) outcome {
	var o outcome
	results := conn.PgConn().Exec(context.Background(), sql)
	for results.NextResult() {
		reader := results.ResultReader()
		var numeric []bool
		for _, f := range reader.FieldDescriptions() {
			o.names = append(o.names, f.Name)
			numeric = append(numeric, f.DataTypeOID == pgtype.NumericOID)
		}
		for reader.NextRow() {
			var values []string
			for i, v := range reader.Values() {
				if v == nil {
					values = append(values, "NULL")
					continue
				}
				if numeric[i] && bytes.ContainsRune(v, '.') {
					// Which of 1 and 1.00, which are equal, a set operation keeps is the plan's choice.
					v = bytes.TrimSuffix(bytes.TrimRight(v, "0"), []byte("."))
				}
				values = append(values, fmt.Sprintf("%q", v))
			}
			o.rows = append(o.rows, strings.Join(values, "|"))
		}
	}
	if err := results.Close(); err != nil {
		return outcome{err: err}
	}
	slices.Sort(o.rows)
	return o
}

// state is the SQLSTATE of an error of the server.
func state(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// timedOut reports whether the server gave up: barriers cost time, and generated joins can be large.
func timedOut(err error) bool { return state(err) == "57014" }

// stage is a world built on a server: whole, pruned, and whole behind the server's own row security.
type stage struct {
	full, pruned, asker *pgx.Conn
	role                string

	world   *world
	seen    map[*worldTable][]worldColumn
	schema  *rewrite.Schema
	dialect *postgres.Dialect
	mention *regexp.Regexp // of a table in a generated statement
}

func newStage(t *testing.T) *stage {
	t.Helper()
	ctx := context.Background()
	dsn := server(t)
	admin, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{role: fmt.Sprintf("schemagate_asker_%d", os.Getpid()), dialect: postgres.New()}
	if _, err := admin.Exec(ctx, "CREATE ROLE "+s.role+" LOGIN PASSWORD 'asker'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the databases are gone
		defer admin.Close(ctx)
		if _, err := admin.Exec(ctx, "DROP ROLE "+s.role); err != nil {
			t.Error(err)
		}
	})
	s.full, s.pruned = freshDatabase(t, "full", "SELECT 1"), freshDatabase(t, "pruned", "SELECT 1")
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword(s.role, "asker"), "/"+s.full.Config().Database
	if s.asker, err = pgx.Connect(ctx, u.String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.asker.Close(ctx) })
	for _, conn := range []*pgx.Conn{s.full, s.pruned, s.asker} {
		if _, err := query(conn, "SET statement_timeout = '100ms'; SET jit = off; SET schemagate.hash_key = 'key'; SET search_path = public; SET client_min_messages = error"); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// build makes a world.
func (s *stage) build(t *testing.T, w *world) {
	t.Helper()
	s.world, s.seen = w, map[*worldTable][]worldColumn{}
	s.must(t, s.full, "SET statement_timeout = 0")
	s.must(t, s.full, w.full(s.role))
	s.must(t, s.full, "SET statement_timeout = '100ms'")
	s.must(t, s.pruned, "SET statement_timeout = 0")
	s.must(t, s.pruned, w.pruned())
	var refs []string
	for _, table := range w.tables {
		refs = append(refs, regexp.QuoteMeta(table.ref()))
		if table.schema == "public" {
			refs = append(refs, regexp.QuoteMeta(q(table.name)))
		}
		if table.hidden {
			continue
		}
		if table.body != "" && !s.view(t, table) {
			continue
		}
		there := run(s.pruned, "SELECT * FROM "+table.ref()+" LIMIT 0")
		if there.err != nil {
			t.Fatal(there.err)
		}
		s.seen[table] = table.seen(there.names)
	}
	s.must(t, s.pruned, "SET statement_timeout = '100ms'")
	slices.SortFunc(refs, func(a, b string) int { return len(b) - len(a) })
	s.mention = regexp.MustCompile(`((?:ONLY )?(?:` + strings.Join(refs, "|") + `))(?: AS)? ("Z\d+"|[xy]\d+)`)
	var err error
	if s.schema, err = rewritetest.NewSchema(s.dialect, w.ddl(), w.policy()); err != nil {
		t.Fatalf("%s\n%v", w.policy(), err)
	}
}

func (s *stage) must(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if err := run(conn, sql).err; err != nil {
		t.Fatalf("%s\n%v", sql, err)
	}
}

// view makes a view in the pruned database: its definition over the pruned tables, and around it its own policy. It is
// absent where that cannot be.
func (s *stage) view(t *testing.T, v *worldTable) bool {
	t.Helper()
	create := func(sql string) bool {
		err := run(s.pruned, sql).err
		if err != nil && !strings.HasPrefix(state(err), "42") {
			t.Fatalf("%s\n%v", sql, err)
		}
		return err == nil
	}
	at := "body." + q(v.name)
	if !create(v.create("body", "")) {
		return false
	}
	there := run(s.pruned, "SELECT * FROM "+at+" LIMIT 0").names
	return len(v.seen(there)) > 0 && create("CREATE VIEW "+v.ref()+" AS "+v.selected(at, there...))
}

// plans runs a statement on the pruned database under every plan that can be had. The planner orders conditions and
// joins by what it knows of a table's rows.
func (s *stage) plans(sql string, visit func(outcome)) {
	barred := s.mention.ReplaceAllString(sql, "(SELECT * FROM $1 OFFSET 0) AS $2")
	for _, shape := range []string{sql, barred} {
		for _, off := range []string{
			"enable_hashjoin", "enable_mergejoin", "enable_nestloop", "enable_hashjoin, enable_mergejoin", "enable_hashjoin, enable_nestloop",
			"enable_mergejoin, enable_nestloop", "enable_material, enable_memoize", "enable_hashagg", "enable_sort",
			"enable_seqscan", "enable_seqscan, enable_bitmapscan", "enable_indexscan, enable_indexonlyscan, enable_bitmapscan",
		} {
			set := "BEGIN;"
			for name := range strings.SplitSeq(off, ", ") {
				set += "SET LOCAL " + name + " = off;"
			}
			for _, order := range []string{"", "SET LOCAL join_collapse_limit = 1; SET LOCAL from_collapse_limit = 1;"} {
				o := run(s.pruned, set+order+shape)
				run(s.pruned, "ROLLBACK")
				if !timedOut(o.err) {
					visit(o)
				}
			}
		}
	}
}

// failsUnderSomePlan reports whether a statement can fail on the rows of the pruned database. Whether an expression
// meets a row that it fails on depends on the plan, and tables with hidden rows are planned differently; but that row
// must not be a hidden one.
func (s *stage) failsUnderSomePlan(sql string) bool {
	fails := false
	s.plans(sql, func(o outcome) { fails = fails || o.err != nil })
	return fails
}

// dependsOnThePlan reports whether the server itself gives a statement different rows under different plans, as it was
// seen to do for a subquery that is correlated with two levels of outer joins.
func (s *stage) dependsOnThePlan(sql string, rows []string) bool {
	differs := false
	s.plans(sql, func(o outcome) { differs = differs || o.err == nil && !slices.Equal(o.rows, rows) })
	return differs
}

// mostRows is the cap of the guard under test; generated joins can be large.
const mostRows = 100000

// tally counts what became of the statements of a differential test.
type tally struct {
	statements, equal, secured, failed int
	unsure                             int // of which the server itself is not sure
	refused                            map[string]int
}

func (c *tally) check(t *testing.T) {
	t.Helper()
	t.Logf("of %d statements %d equal the pruned database's, %d the row security's too, %d fail there or take long, %d depend on the plan, refused though valid: %v",
		c.statements, c.equal, c.secured, c.failed, c.unsure, c.refused)
	if c.unsure*1000 > c.statements {
		t.Errorf("%d of %d statements give the server itself different rows", c.unsure, c.statements)
	}
	wrongly := 0
	for _, n := range c.refused {
		wrongly += n
	}
	if wrongly*100 > c.statements {
		t.Errorf("%d of %d valid statements were refused: %v", wrongly, c.statements, c.refused)
	}
	if c.equal*2 < c.statements {
		t.Errorf("only %d of %d statements were compared; the generator makes too many that fail", c.equal, c.statements)
	}
}

// TestGuardedEqualsPruned compares, for generated statements, databases and policies, the guarded statement on the full
// database with the original one on a database without what is hidden, and with the original one as a role whom the
// server's own privileges and row security show as much. Where the original succeeds the guarded one must give the
// same rows, under the same names: not fail, whatever hidden rows would do to its expressions. Where the original
// names what is not there, the guarded one must fail too. See rewritetest.Statements for how many.
func TestGuardedEqualsPruned(t *testing.T) {
	s := newStage(t)
	statements, seed := rewritetest.Statements(t, 500)
	r := rand.New(rand.NewPCG(seed, 2))
	count := tally{statements: statements, refused: map[string]int{}}
	for done := 0; done < statements; {
		s.build(t, randomWorld(r, false))
		for range min(100, statements-done) {
			done++
			g := generator{r: r, w: s.world, seen: s.seen}
			s.compare(t, g.statement(), &count)
		}
	}
	count.check(t)
	refused := 0
	for _, n := range count.refused {
		refused += n
	}
	if t.Failed() {
		return
	}
	version := run(s.full, "SHOW server_version")
	if version.err != nil {
		t.Fatal(version.err)
	}
	ledger := rewritetest.Tally{
		Engine: "PostgreSQL " + strings.Trim(strings.Join(version.rows, ""), `"`), Seed: seed, Statements: statements, Valid: count.equal + count.unsure + refused, Refused: refused,
		Oracle: "pruned database and row security",
	}
	if err := ledger.Enter(); err != nil {
		t.Error(err)
	}
}

func (s *stage) compare(t *testing.T, sql string, count *tally) {
	t.Helper()
	want := run(s.pruned, sql)
	st, err := rewrite.NewGuard(s.dialect, mostRows).Rewrite(sql, s.schema)
	if err != nil {
		no, ok := errors.AsType[*acl.Refusal](err)
		switch {
		case !ok:
			t.Fatalf("a fault for %s\n%v\npolicy:\n%s\n%s", sql, err, s.world.policy(), s.world.ddl())
		case want.err == nil:
			count.refused[no.Code+": "+no.Public+" ("+no.Detail+")"]++
			if os.Getenv("SCHEMAGATE_SHOW_REFUSED") != "" {
				t.Logf("refused: %s\n%s %s\n%s", sql, no.Public, no.Detail, s.world.ddl())
			}
		default:
			count.failed++
		}
		return
	}
	got := run(s.full, st.Text())
	explain := func() string {
		return fmt.Sprintf("tables:\n%s\npolicy:\n%s\noriginal: %s\nguarded:  %s\ngot:  %v %v %v\nwant: %v %v %v",
			s.world.ddl(), s.world.policy(), sql, st.Text(), got.names, got.rows, got.err, want.names, want.rows, want.err)
	}
	switch {
	case want.err != nil && strings.HasPrefix(state(want.err), "42"):
		if got.err == nil {
			t.Fatalf("succeeds, unlike the original\n%s", explain())
		}
		count.failed++
		return
	case want.err != nil, len(want.rows) > mostRows, timedOut(got.err), got.err != nil && s.failsUnderSomePlan(sql):
		count.failed++
		return
	}
	var lineage []string
	for _, o := range st.Output() {
		lineage = append(lineage, o.Name)
	}
	if got.err == nil && !slices.Equal(got.rows, want.rows) && s.dependsOnThePlan(sql, want.rows) {
		count.unsure++
		return
	}
	if got.err != nil || !slices.Equal(got.rows, want.rows) || !slices.Equal(got.names, want.names) || !slices.Equal(lineage, want.names) {
		t.Fatalf("differs from the original, or its columns %v do\n%s", lineage, explain())
	}
	count.equal++
	secured := run(s.asker, sql)
	if secured.err != nil {
		// The role may not read what is masked or a star spans, and to it hidden columns make bare names ambiguous and
		// count in an alias's list.
		return
	}
	if !slices.Equal(secured.rows, want.rows) && !s.dependsOnThePlan(sql, want.rows) {
		t.Fatalf("differs from the row security's %v\n%s", secured.rows, explain())
	}
	count.secured++
}
