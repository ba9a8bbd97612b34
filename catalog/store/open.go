package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/schemagate/schemagate/migrations"
)

// applicationID marks a SQLite file as a catalog store: "sgc1" in its header.
const applicationID = 0x73676331

// smallest is the size of the smallest SQLite database. SQLite takes a smaller file for an empty one, and overwrites it.
const smallest = 512

var errNotSQLite = errors.New("the file is not a catalog store, nor any SQLite database; name another file")

// patience is how long one process waits for another that writes.
const patience = 30 * time.Second

// Open opens the store in a file, which it creates (readable by its owner only) if there is none, and brings it to this
// release's schema. It refuses a file that is not a catalog store, and with migrations.ErrNewer a store that a newer
// release has migrated; neither is changed.
func Open(ctx context.Context, path string) (*Store, error) {
	db, err := open(ctx, path)
	if err != nil {
		return nil, err
	}
	if _, err := migrations.Up(ctx, db); err != nil {
		return nil, errors.Join(fmt.Errorf("catalog store %s: %w", path, err), db.Close())
	}
	return &Store{db: db}, nil
}

// Migrate does what Open does and returns the migrations that it applied.
func Migrate(ctx context.Context, path string) ([]migrations.Migration, error) {
	return migrate(ctx, path, migrations.Up)
}

// Migrations lists the migrations of the store in a file, and applies none.
func Migrations(ctx context.Context, path string) ([]migrations.Migration, error) {
	return migrate(ctx, path, migrations.Status)
}

func migrate(ctx context.Context, path string,
	do func(context.Context, *sql.DB) ([]migrations.Migration, error)) ([]migrations.Migration, error) {
	db, err := open(ctx, path)
	if err != nil {
		return nil, err
	}
	out, err := do(ctx, db)
	if err != nil {
		err = fmt.Errorf("catalog store %s: %w", path, err)
	}
	return out, errors.Join(err, db.Close())
}

// open returns a database that is known to be ours, or new.
func open(ctx context.Context, path string) (*sql.DB, error) {
	if path == "" {
		return nil, errors.New("catalog store: no file is named")
	}
	if err := create(path); err != nil {
		return nil, fmt.Errorf("catalog store: %w", err)
	}
	dsn, err := dsn(path)
	if err != nil {
		return nil, fmt.Errorf("catalog store: %w", err)
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("catalog store %s: %w", path, err)
	}
	if err := claim(ctx, db); err != nil {
		return nil, errors.Join(fmt.Errorf("catalog store %s: %w", path, err), db.Close())
	}
	return db, nil
}

// create makes an empty file if there is none, since SQLite would give it the rights that the process's mask leaves.
// It makes it under another name and links it: closing a file under its own name would drop every lock that the
// process holds on it through SQLite.
func create(path string) error {
	switch info, err := os.Stat(path); {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file; name one", path)
	case err == nil && info.Size() > 0 && info.Size() < smallest:
		return fmt.Errorf("%s: %w", path, errNotSQLite)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // for its owner only
	if err != nil {
		return fmt.Errorf("%s cannot be created; name a file in a folder that can be written: %w", path, err)
	}
	defer os.Remove(f.Name())
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func dsn(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	abs = filepath.ToSlash(abs)
	if !strings.HasPrefix(abs, "/") { // a drive letter
		abs = "/" + abs
	}
	q := url.Values{
		"_busy_timeout": {fmt.Sprint(patience.Milliseconds())},
		"_foreign_keys": {"on"},
		"_synchronous":  {"FULL"},
		// A transaction that writes takes the lock at once, so that it waits for another writer rather than fails.
		"_txlock": {"immediate"},
		// Without it an error may carry the text of another one.
		"_error_rc": {"true"},
	}
	return (&url.URL{Scheme: "file", Path: abs, RawQuery: q.Encode()}).String(), nil
}

// claim marks a new file as a store, refuses one that is something else, and turns on write-ahead logging.
func claim(ctx context.Context, db *sql.DB) error {
	err := mark(ctx, db)
	if e := (*sqlite.Error)(nil); errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_NOTADB {
		return errNotSQLite
	}
	if err != nil {
		return err
	}
	// Changing the journal needs the file alone, and SQLite does not wait for that as it waits for other locks.
	for deadline := time.Now().Add(patience); ; {
		var mode string
		err := db.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode)
		switch e := (*sqlite.Error)(nil); {
		case err == nil && mode != "wal":
			return fmt.Errorf("write-ahead logging is not possible there (journal mode is %s); name a file on a local disk", mode)
		case err == nil:
			return nil
		case !errors.As(err, &e) || e.Code()&0xff != sqlite3.SQLITE_BUSY || time.Now().After(deadline):
			return fmt.Errorf("turn on write-ahead logging: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func mark(ctx context.Context, db *sql.DB) error {
	ours := false
	look := func(tx *sql.Tx) error {
		var id, things int64
		err := tx.QueryRowContext(ctx, `SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id`).
			Scan(&id, &things)
		ours = id == applicationID
		if err == nil && !ours && (id != 0 || things != 0) {
			err = errors.New("the file is a SQLite database, but not a catalog store; name another file")
		}
		return err
	}
	// Look before taking the lock for writing, so that somebody else's file is not even touched.
	if err := transact(ctx, db, true, look); err != nil || ours {
		return err
	}
	return transact(ctx, db, false, func(tx *sql.Tx) error {
		if err := look(tx); err != nil || ours {
			return err
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id = %d`, applicationID))
		return err
	})
}

func transact(ctx context.Context, db *sql.DB, readOnly bool, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: readOnly})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}
