package migrations

import (
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"

	_ "modernc.org/sqlite"
)

func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	u := url.URL{Scheme: "file", Path: path, RawQuery: "_pragma=busy_timeout(20000)&_txlock=immediate"}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestPendingBecomesAppliedOnce(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "m.db"))
	before, err := Status(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if len(before) == 0 {
		t.Fatal("no migrations are embedded")
	}
	for i, m := range before {
		if m.Number != int64(i+1) || m.Applied || !m.At.IsZero() || filepath.Ext(m.Name) != ".sql" {
			t.Errorf("before: migration %d is %+v", i, m)
		}
	}
	applied, err := Up(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if len(applied) != len(before) {
		t.Errorf("applied %d of %d migrations", len(applied), len(before))
	}
	after, err := Status(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range after {
		if !m.Applied || m.At.IsZero() || m.Name != before[i].Name {
			t.Errorf("after: migration %d is %+v", i, m)
		}
	}
	again, err := Up(t.Context(), db)
	if err != nil || len(again) != 0 {
		t.Errorf("a second Up applied %v, %v; want nothing", again, err)
	}
}

func TestNewerDatabaseIsRefused(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "m.db"))
	if _, err := Up(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`INSERT INTO migrations (version_id, is_applied) VALUES (99999, 1)`); err != nil {
		t.Fatal(err)
	}
	if _, err := Up(t.Context(), db); !errors.Is(err, ErrNewer) {
		t.Errorf("Up: %v, want ErrNewer", err)
	}
	if _, err := Status(t.Context(), db); !errors.Is(err, ErrNewer) {
		t.Errorf("Status: %v, want ErrNewer", err)
	}
}

// A migration that only writes rows does not fail by itself when it runs twice.
func TestConcurrentStartsApplyEachMigrationOnce(t *testing.T) {
	all := fstest.MapFS{
		"00001_a.sql": {Data: []byte("-- +goose Up\nCREATE TABLE log (n INTEGER);")},
		"00002_b.sql": {Data: []byte("-- +goose Up\nINSERT INTO log VALUES (2);")},
		"00003_c.sql": {Data: []byte("-- +goose Up\nINSERT INTO log VALUES (3);")},
	}
	path := filepath.Join(t.TempDir(), "m.db")
	var wg sync.WaitGroup
	var mu sync.Mutex
	times := map[int64]int{}
	for range 8 {
		db := open(t, path)
		wg.Go(func() {
			applied, err := up(t.Context(), db, all)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, m := range applied {
				times[m.Number]++
			}
		})
	}
	wg.Wait()
	for n := int64(1); n <= 3; n++ {
		if times[n] != 1 {
			t.Errorf("migration %d was reported applied by %d processes", n, times[n])
		}
	}
	var rows int
	if err := open(t, path).QueryRow(`SELECT count(*) FROM log`).Scan(&rows); err != nil || rows != 2 {
		t.Errorf("log holds %d rows, %v; want 2", rows, err)
	}
	// A process that loses the race at any point fails here, within its migration's transaction.
	if _, err := open(t, path).Exec(`INSERT INTO migrations (version_id, is_applied) VALUES (3, 1)`); err == nil {
		t.Error("a migration can be recorded twice")
	}
}

func TestFailedMigrationLeavesNothingBehind(t *testing.T) {
	all := fstest.MapFS{
		"00001_a.sql": {Data: []byte("-- +goose Up\nCREATE TABLE a (n INTEGER);")},
		"00002_b.sql": {Data: []byte("-- +goose Up\nCREATE TABLE b (n INTEGER);\nINSERT INTO nowhere VALUES (1);")},
	}
	db := open(t, filepath.Join(t.TempDir(), "m.db"))
	if _, err := up(t.Context(), db, all); err == nil {
		t.Fatal("a faulty migration passed")
	}
	var tables int
	if err := db.QueryRow(`SELECT count(*) FROM sqlite_master WHERE name IN ('a', 'b')`).Scan(&tables); err != nil || tables != 1 {
		t.Errorf("%d of the tables a and b exist, %v; want a alone", tables, err)
	}
	all["00002_b.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE b (n INTEGER);")}
	applied, err := up(t.Context(), db, all)
	if err != nil || len(applied) != 1 || applied[0].Number != 2 {
		t.Errorf("after the repair Up applied %v, %v; want number 2", applied, err)
	}
}

func TestEmbeddedFilesAreNumberedWithoutGaps(t *testing.T) {
	names, err := fs.Glob(files, "sqlite/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range names {
		var number int
		for _, c := range filepath.Base(n)[:5] {
			number = number*10 + int(c-'0')
		}
		if number != i+1 {
			t.Errorf("%s is not number %d", n, i+1)
		}
	}
}
