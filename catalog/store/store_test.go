package store_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/store"
	"github.com/schemagate/schemagate/catalog/store/storetest"
	"github.com/schemagate/schemagate/migrations"
)

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() (storetest.Store, error) {
		path := filepath.Join(t.TempDir(), `a #1 100% "store"?.db`)
		return func() (storetest.Store, error) { return store.Open(t.Context(), path) }
	})
}

func open(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// exec changes a closed store behind its back.
func exec(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func closed(t *testing.T, snapshots ...*catalog.Snapshot) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range snapshots {
		if _, err := s.Put(t.Context(), c, nil, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOnlyTheOwnerMayReadANewFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "store.db"))
	if _, err := s.Put(t.Context(), storetest.Catalog(t, 1), nil, "ann"); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s", f.Name(), info.Mode())
		}
		if !strings.HasPrefix(f.Name(), "store.db") {
			t.Errorf("%s was left behind", f.Name())
		}
	}
}

func TestFilesThatAreNoStoreAreRefusedAndLeftAlone(t *testing.T) {
	other := func(statement string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { exec(t, path, statement) }
	}
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		want string
	}{
		"text": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, bytes.Repeat([]byte("not a database\n"), 1000), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "nor any SQLite database"},
		"a short text": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "nor any SQLite database"},
		"another application's database": {other("CREATE TABLE t (a); INSERT INTO t VALUES (1)"), "not a catalog store"},
		"a database with another mark":   {other("PRAGMA application_id = 7"), "not a catalog store"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "other.db")
			c.make(t, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := store.Open(t.Context(), path)
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %q, want one line with %q and the path", err, c.want)
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

func TestPlacesWithoutAFileAreRefused(t *testing.T) {
	dir := t.TempDir()
	for name, path := range map[string]string{
		"no name": "", "a folder": dir, "a missing folder": filepath.Join(dir, "no", "store.db"),
	} {
		if s, err := store.Open(t.Context(), path); err == nil {
			s.Close()
			t.Errorf("%s was opened", name)
		}
	}
}

func TestReadOnlyFolderIsRefused(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere; run as another user")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	_, err := store.Open(t.Context(), filepath.Join(dir, "store.db"))
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("got %v, want a permission error", err)
	}
}

func TestDamageIsFound(t *testing.T) {
	c := storetest.Catalog(t, 1)
	for name, statement := range map[string]string{
		"a part was changed":  `UPDATE parts SET body = replace(body, 'revision 1', 'revision 9')`,
		"a part was taken":    `DELETE FROM snapshot_parts WHERE part_id = (SELECT id FROM parts WHERE body LIKE '%metric:%')`,
		"a database is gone":  `UPDATE snapshots SET databases = '[]'`,
		"a dialect is faulty": `UPDATE snapshots SET databases = '{'`,
	} {
		t.Run(name, func(t *testing.T) {
			path := closed(t, c)
			exec(t, path, statement)
			s := open(t, path)
			if _, err := s.At(t.Context(), c.Version()); err == nil {
				t.Error("At served it")
			}
			if _, _, err := s.Latest(t.Context()); err == nil {
				t.Error("Latest served it")
			}
		})
	}
	t.Run("the file is cut short", func(t *testing.T) {
		path := closed(t, c)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, info.Size()/2); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), path)
		if err == nil {
			defer s.Close()
			_, _, err = s.Latest(t.Context())
		}
		if err == nil {
			t.Error("half a file was served")
		}
	})
}

func TestNewerStoreIsRefusedUnchanged(t *testing.T) {
	path := closed(t, storetest.Catalog(t, 1))
	exec(t, path, `INSERT INTO migrations (version_id, is_applied) VALUES (99999, 1)`)
	if _, err := store.Open(t.Context(), path); !errors.Is(err, migrations.ErrNewer) {
		t.Errorf("Open: %v, want ErrNewer", err)
	}
	if _, err := store.Migrate(t.Context(), path); !errors.Is(err, migrations.ErrNewer) {
		t.Errorf("Migrate: %v, want ErrNewer", err)
	}
	exec(t, path, `DELETE FROM migrations WHERE version_id = 99999`)
	if _, _, err := open(t, path).Latest(t.Context()); err != nil {
		t.Errorf("the refusals damaged it: %v", err)
	}
}

func TestMigrationsAreListedBeforeTheyAreApplied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	pending, err := store.Migrations(t.Context(), path)
	if err != nil || len(pending) == 0 || pending[0].Applied {
		t.Fatalf("before: %+v, %v", pending, err)
	}
	applied, err := store.Migrate(t.Context(), path)
	if err != nil || len(applied) != len(pending) || !applied[0].Applied {
		t.Fatalf("applied: %+v, %v", applied, err)
	}
	after, err := store.Migrations(t.Context(), path)
	if err != nil || !after[0].Applied {
		t.Fatalf("after: %+v, %v", after, err)
	}
	if _, err := open(t, path).Put(t.Context(), storetest.Catalog(t, 1), nil, "ann"); err != nil {
		t.Fatal(err)
	}
}

func TestManyOpenOneNewFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := store.Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if _, err := s.Put(t.Context(), storetest.Catalog(t, i), nil, "ann"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	h, err := open(t, path).History(t.Context())
	if err != nil || len(h) != 8 {
		t.Errorf("%d lines of history, %v; want 8", len(h), err)
	}
}

func TestUnfinishedPutLeavesThePreviousEdition(t *testing.T) {
	one, two := storetest.Catalog(t, 1), storetest.Catalog(t, 2)
	path := closed(t, one)
	// The last step of Put fails, as it would when the disk is full.
	exec(t, path, `CREATE TRIGGER full BEFORE INSERT ON editions BEGIN SELECT RAISE(ABORT, 'disk full'); END`)
	s := open(t, path)
	if _, err := s.Put(t.Context(), two, nil, "ann"); err == nil {
		t.Fatal("Put succeeded")
	}
	got, _, err := s.Latest(t.Context())
	if err != nil || got.Version() != one.Version() {
		t.Errorf("Latest is not the previous edition: %v", err)
	}
	if _, err := s.At(t.Context(), two.Version()); !errors.Is(err, store.ErrUnknownVersion) {
		t.Errorf("the unfinished snapshot is there: %v", err)
	}
}

func TestHistoryAndEditsOnlyGrow(t *testing.T) {
	path := closed(t, storetest.Catalog(t, 1))
	s := open(t, path)
	err := s.Edit(t.Context(), catalog.Edit{Ref: catalog.TableRef("shop", "sales", "orders"), Field: catalog.FieldOwner, Author: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		"DELETE FROM edits", "UPDATE edits SET author = 'x'", "DELETE FROM editions", "UPDATE editions SET by = 'x'",
	} {
		if _, err := db.Exec(statement); err == nil {
			t.Errorf("%s succeeded", statement)
		}
	}
}

func wide(t testing.TB, tables int, revision string) *catalog.Snapshot {
	t.Helper()
	var objects []catalog.Object
	for i := range tables {
		name := fmt.Sprintf("table_%05d", i)
		o := catalog.Object{Ref: catalog.TableRef("w", "s", name), Table: &catalog.Table{PrimaryKey: []string{"c00"}}}
		if i == 0 {
			o.Description = revision
		}
		objects = append(objects, o)
		for j := range 20 {
			objects = append(objects, catalog.Object{
				Ref:         catalog.ColumnRef("w", "s", name, fmt.Sprintf("c%02d", j)),
				Description: "What this column means, in the words of whoever made the table",
				Column:      &catalog.Column{Type: "text", Position: j, Samples: []string{"one", "two", "three"}},
			})
		}
	}
	s, err := catalog.Build([]catalog.Database{{Name: "w", Dialect: catalog.Postgres}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestIngestStoresOnlyWhatChanged(t *testing.T) {
	path := closed(t, wide(t, 50, "one"), wide(t, 50, "two"), wide(t, 50, "one"))
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var parts, snapshots, editions int
	err = db.QueryRow(`SELECT (SELECT count(*) FROM parts), (SELECT count(*) FROM snapshots), (SELECT count(*) FROM editions)`).
		Scan(&parts, &snapshots, &editions)
	if err != nil || parts != 51 || snapshots != 2 || editions != 3 {
		t.Errorf("%d parts, %d snapshots, %d editions, %v; want 51, 2, 3", parts, snapshots, editions, err)
	}
}

func BenchmarkHundredThousandColumns(b *testing.B) {
	c := wide(b, 5000, "one")
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "store.db")
		s, err := store.Open(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		if _, err := s.Put(b.Context(), c, nil, "ann"); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "put-s")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		if s, err = store.Open(b.Context(), path); err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		if _, _, err := s.Latest(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "load-s")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
