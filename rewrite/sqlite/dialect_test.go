package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
	"github.com/schemagate/schemagate/rewrite/sqlite"
)

func TestSpecifications(t *testing.T) { rewritetest.Golden(t, sqlite.New(), "testdata") }

// TestExecutedCases runs guarded statements on the full database, where they must return what was recorded for the
// original statement on the database without what is hidden.
func TestExecutedCases(t *testing.T) {
	guard := rewrite.NewGuard(sqlite.New(), 0)
	for _, c := range rewritetest.Cases(t, "sqlite") {
		t.Run(c.ID, func(t *testing.T) {
			policy, err := c.PolicyFile(func(name string) string { return rewritetest.Database + "." + name })
			if err != nil {
				t.Fatal(err)
			}
			schema, err := rewritetest.NewSchema(sqlite.New(), c.Setup, policy)
			if err != nil {
				t.Fatal(err)
			}
			st, err := guard.Rewrite(c.SQL, schema)
			var no *acl.Refusal
			if err != nil && !errors.As(err, &no) {
				t.Fatal(err)
			}
			switch {
			case c.Expect == "deny" && no == nil:
				t.Fatalf("must be refused (%s); got\n%s", c.Why, st.Text())
			case c.Expect == "rows" && no != nil:
				t.Fatalf("must return rows (%s); refused: %s: %s (%s)", c.Why, no.Code, no.Public, no.Detail)
			case no != nil:
				return
			}
			got, err := query(open(t, c.Setup), st.Text())
			if err != nil {
				t.Fatalf("%v in\n%s", err, st.Text())
			}
			var want []string
			for _, row := range c.Rows {
				want = append(want, written(row))
			}
			if !c.Ordered {
				slices.Sort(got)
				slices.Sort(want)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("got\n%s\nwant\n%s\nfrom\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), st.Text())
			}
		})
	}
}

// open makes a database in memory.
func open(t testing.TB, setup string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	if _, err := db.Exec(setup); err != nil {
		t.Fatal(err)
	}
	return db
}

// query returns the rows of a statement, each as one text.
func query(db *sql.DB, statement string) ([]string, error) {
	_, rows, err := read(db, statement)
	return rows, err
}

// read also returns the names of the columns.
func read(db *sql.DB, statement string) (columns, out []string, err error) {
	rows, err := db.Query(statement)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	if columns, err = rows.Columns(); err != nil {
		return nil, nil, err
	}
	row := make([]any, len(columns))
	at := make([]any, len(columns))
	for i := range row {
		at[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(at...); err != nil {
			return nil, nil, err
		}
		out = append(out, written(row))
	}
	return columns, out, rows.Err()
}

// written writes a row so that 1, 1.0 and "1" are equal, as they are in the recorded rows.
func written(row []any) string {
	var out []string
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			out = append(out, "NULL")
		case []byte:
			out = append(out, string(v))
		default:
			out = append(out, fmt.Sprint(v))
		}
	}
	return strings.Join(out, "|")
}

// table is read with the names of the columns in front, and in no order of the rows.
func table(db *sql.DB, statement string) ([]string, error) {
	columns, out, err := read(db, statement)
	if err != nil {
		return nil, err
	}
	slices.Sort(out)
	return append([]string{strings.Join(columns, "|")}, out...), nil
}
