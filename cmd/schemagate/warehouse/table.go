package warehouse

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// table is one table with the recipe for its rows.
type table struct {
	name    string
	rows    int
	columns []column
	keys    []string // table constraints
}

// column is a column with its SQL type, constraints included, and what to put into row i, counted from 0.
type column struct {
	name  string
	typ   string
	value gen
}

// maxParameters bounds the parameters of one INSERT: longer statements bind no faster.
const maxParameters = 2000

// write creates a SQLite file. Nobody else reads it before it is whole, so it is built without a journal.
func write(ctx context.Context, path, schema string, seed uint64, tables []table) (err error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(off)&_pragma=synchronous(off)&_pragma=locking_mode(exclusive)")
	if err != nil {
		return err
	}
	defer func() {
		if e := db.Close(); err == nil {
			err = e
		}
	}()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, t := range tables {
		if _, err := tx.ExecContext(ctx, t.create()); err != nil {
			return fmt.Errorf("create %s: %w", t.name, err)
		}
		// A stream of its own for each table: changing one table leaves the others as they were.
		h := fnv.New64a()
		h.Write([]byte(schema + "." + t.name))
		if err := t.fill(ctx, tx, rand.New(rand.NewPCG(seed, h.Sum64()))); err != nil {
			return fmt.Errorf("fill %s: %w", t.name, err)
		}
	}
	return tx.Commit()
}

func (t table) create() string {
	parts := make([]string, 0, len(t.columns)+len(t.keys))
	for _, c := range t.columns {
		parts = append(parts, c.name+" "+c.typ)
	}
	return fmt.Sprintf("CREATE TABLE %s (\n  %s\n)", t.name, strings.Join(append(parts, t.keys...), ",\n  "))
}

func (t table) fill(ctx context.Context, tx *sql.Tx, r *rand.Rand) error {
	batch := max(1, maxParameters/len(t.columns))
	var insert *sql.Stmt
	prepared := 0
	args := make([]any, 0, maxParameters)
	for from := 0; from < t.rows; from += batch {
		n := min(batch, t.rows-from)
		if n != prepared {
			row := "(" + strings.Repeat("?,", len(t.columns)-1) + "?)"
			var err error
			insert, err = tx.PrepareContext(ctx, "INSERT INTO "+t.name+" VALUES "+strings.Repeat(row+",", n-1)+row)
			if err != nil {
				return err
			}
			defer insert.Close()
			prepared = n
		}
		args = args[:0]
		for i := from; i < from+n; i++ {
			for _, c := range t.columns {
				args = append(args, c.value(r, i))
			}
		}
		if _, err := insert.ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}
