package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/mysql"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

// TestGuardedEqualsPruned generates worlds and statements: what is guarded gives on the full database what the
// original gives on the database without what is hidden. See rewritetest.Statements for how many, and Tally for the
// ledger.
func TestGuardedEqualsPruned(t *testing.T) {
	db := server(t)
	count, seed := rewritetest.Statements(t, 2000)
	full, pruned := newDatabase(t, db, fullDatabase), newDatabase(t, db, prunedDatabase)
	exec(t, full, "SET @schemagate_hash_key = 'k', max_statement_time = 0.5")
	exec(t, pruned, "SET max_statement_time = 0.5")
	var version string
	if err := full.QueryRowContext(context.Background(), "SELECT version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	guard := rewrite.NewGuard(mysql.New(), 0)
	tally := rewritetest.Tally{Engine: version, Seed: seed, Statements: count, Oracle: "pruned database"}
	empty, slow := 0, 0
	const perWorld = 100
	for i := 0; i < count; i += perWorld {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		w := newWorld(r)
		exec(t, full, "DROP DATABASE "+fullDatabase+"; CREATE DATABASE "+fullDatabase+" CHARACTER SET utf8mb4 COLLATE utf8mb4_bin; USE "+fullDatabase+";"+w.ddl()+w.fill())
		exec(t, pruned, "DROP DATABASE "+prunedDatabase+"; CREATE DATABASE "+prunedDatabase+" CHARACTER SET utf8mb4 COLLATE utf8mb4_bin; USE "+prunedDatabase)
		w.prune(t, full, pruned)
		asker := w.asker(t)
		for range min(perWorld, count-i) {
			loose := r.IntN(4) == 0
			in := newGenerator(r, w, loose).statement()
			schema, err := rewrite.NewSchema(asker, fullDatabase)
			if err != nil {
				t.Fatal(err)
			}
			want, fails := rows(pruned, in)
			st, err := guard.Rewrite(in, schema)
			var no *acl.Refusal
			switch {
			case err != nil && !errors.As(err, &no):
				t.Fatalf("%v\n%s\n%s", err, in, w.policy())
			case fails != nil && no != nil:
				continue
			case no != nil:
				tally.Valid++
				tally.Refused++
				t.Logf("refused: %s: %s (%s)\n%s", no.Code, no.Public, no.Detail, in)
				continue
			}
			got, err := rows(full, st.Text())
			switch {
			case number(fails) == tooSlow || number(err) == tooSlow:
				slow++
				continue
			case fails != nil && (err != nil || number(fails) == badAggregate):
				continue
			case number(err) == badAggregate:
				tally.Valid++
				tally.Refused++
				continue
			case fails != nil || err != nil:
				tally.Differences++
				t.Errorf("the original: %v, the guarded one: %v\n%s\n%s\n%s\n%s", fails, err, in, st.Text(), w.ddl(), w.policy())
				continue
			}
			tally.Valid++
			if len(want) == 1 {
				empty++
			}
			if !slices.Equal(sorted(got[1:]), sorted(want[1:])) || !namedAs(got[0], st.Output()) {
				tally.Differences++
				t.Errorf("got  %q\nwant %q\n%s\n%s\n%s%s\n%s", got, want, in, st.Text(), w.ddl(), w.fill(), w.policy())
			}
		}
	}
	t.Logf("%+v, %d without rows, %d too slow", tally, empty, slow)
	if tally.Refused*100 > tally.Valid {
		t.Errorf("%d of %d valid statements were refused; at most 1%% may be", tally.Refused, tally.Valid)
	}
	if tally.Valid*10 < count*7 || slow*100 > count {
		t.Errorf("only %d of %d statements were valid, %d too slow", tally.Valid, count, slow)
	}
	if err := tally.Enter(); err != nil {
		t.Error(err)
	}
}

const (
	badAggregate = 1111 // MariaDB fails so on some aggregates of subqueries, with and without wrappers
	tooSlow      = 1969
)

// number is the engine's number of an error.
func number(err error) uint16 {
	var e *driver.MySQLError
	if !errors.As(err, &e) {
		return 0
	}
	return e.Number
}

// rows are the names of a result's columns and its rows.
func rows(conn *sql.Conn, text string) ([]string, error) {
	r, err := conn.QueryContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	names, err := r.Columns()
	if err != nil {
		return nil, err
	}
	out, err := scanned(r, len(names))
	return append([]string{heading(names)}, out...), err
}

func heading(names []string) string { return strings.Join(names, "|") }

// namedAs reports whether a heading has the names that the guard foretells. Where two columns are made of the same
// expression, the engine may give both the name of one.
func namedAs(got string, output []rewrite.Output) bool {
	names := make([]string, len(output))
	for i, o := range output {
		names[i] = o.Name
	}
	parts := strings.Split(got, "|")
	return got == heading(names) || len(parts) == len(names) && len(parts) > 1 && !slices.ContainsFunc(parts, func(p string) bool { return !slices.Contains(names, p) })
}
