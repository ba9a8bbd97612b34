// Package migrations brings a store's database to the schema that this release needs. Migrations are numbered SQL
// files in a folder per dialect, applied in order, each in a transaction of its own, forwards only.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/pressly/goose/v3"
)

//go:embed sqlite/*.sql
var files embed.FS

// ErrNewer says that a newer release has migrated the database, which this one must not touch.
var ErrNewer = errors.New("the database was migrated by a newer release; use that release or a later one")

// table records what has been applied, one row a migration. The unique number is what keeps two processes that start
// at once from both applying one: the second insert fails, and its migration is rolled back with it.
const table = `CREATE TABLE IF NOT EXISTS migrations (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	version_id INTEGER NOT NULL UNIQUE,
	is_applied INTEGER NOT NULL,
	tstamp     TIMESTAMP NOT NULL DEFAULT (datetime('now'))
);
INSERT OR IGNORE INTO migrations (version_id, is_applied) VALUES (0, 1);`

// Migration is one numbered step.
type Migration struct {
	Number  int64     `json:"number"`
	Name    string    `json:"name"`
	Applied bool      `json:"applied"`
	At      time.Time `json:"at,omitzero"` // when it was applied; zero while it is pending
}

// Up applies the pending migrations to a SQLite database and returns those that it applied. It may run in several
// processes at once if their connections wait for locks (a busy_timeout). A newer database is ErrNewer.
func Up(ctx context.Context, db *sql.DB) ([]Migration, error) {
	all, err := sqlite()
	if err != nil {
		return nil, err
	}
	return up(ctx, db, all)
}

// Status lists all migrations of a SQLite database in order. A newer database is ErrNewer.
func Status(ctx context.Context, db *sql.DB) ([]Migration, error) {
	all, err := sqlite()
	if err != nil {
		return nil, err
	}
	p, err := provider(ctx, db, all)
	if err != nil {
		return nil, err
	}
	return status(ctx, p)
}

func sqlite() (fs.FS, error) {
	all, err := fs.Sub(files, "sqlite")
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return all, nil
}

func up(ctx context.Context, db *sql.DB, all fs.FS) ([]Migration, error) {
	p, err := provider(ctx, db, all)
	if err != nil {
		return nil, err
	}
	mine := map[int64]bool{}
	for {
		before, err := p.GetDBVersion(ctx)
		if err != nil {
			return nil, fmt.Errorf("migrations: read the version: %w", err)
		}
		results, err := p.Up(ctx)
		if partial := (*goose.PartialError)(nil); errors.As(err, &partial) {
			results = partial.Applied
		}
		for _, r := range results {
			mine[r.Source.Version] = true
		}
		if err == nil {
			break
		}
		// Another process may have applied what we tried to. Then the version has moved, and we go on from there.
		if after, e := p.GetDBVersion(ctx); e != nil || after == before {
			return nil, fmt.Errorf("migrations: apply: %w", err)
		}
	}
	applied, err := status(ctx, p)
	if err != nil {
		return nil, err
	}
	var out []Migration
	for _, m := range applied {
		if mine[m.Number] {
			out = append(out, m)
		}
	}
	return out, nil
}

func provider(ctx context.Context, db *sql.DB, all fs.FS) (*goose.Provider, error) {
	p, err := goose.NewProvider(goose.DialectSQLite3, db, all,
		goose.WithTableName("migrations"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	if _, err := db.ExecContext(ctx, table); err != nil {
		return nil, fmt.Errorf("migrations: create the version table: %w", err)
	}
	current, newest, err := p.GetVersions(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrations: read the version: %w", err)
	}
	if current > newest {
		return nil, fmt.Errorf("migrations: at number %d, this release knows %d: %w", current, newest, ErrNewer)
	}
	return p, nil
}

func status(ctx context.Context, p *goose.Provider) ([]Migration, error) {
	all, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrations: status: %w", err)
	}
	out := make([]Migration, len(all))
	for i, m := range all {
		out[i] = Migration{
			Number: m.Source.Version, Name: path.Base(m.Source.Path),
			Applied: m.State == goose.StateApplied, At: m.AppliedAt,
		}
	}
	return out, nil
}
