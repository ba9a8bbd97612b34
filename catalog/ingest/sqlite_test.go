package ingest_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
)

func TestSQLiteTablesColumnsAndKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.v2.sqlite")
	sqliteFile(t, path,
		`CREATE TABLE Customers (Id INTEGER PRIMARY KEY, Email VARCHAR(80) NOT NULL UNIQUE, Region TEXT, ref TEXT)`,
		`CREATE UNIQUE INDEX some_rows ON Customers (Region) WHERE Region IS NOT NULL`,
		`CREATE UNIQUE INDEX an_expression ON Customers (lower(ref))`,
		`CREATE TABLE orders (no INT, line INT, customer REFERENCES customers, total DECIMAL(10, 2), net AS (total / 1.2),
			PRIMARY KEY (line, no), UNIQUE (total, customer))`,
		`CREATE TABLE parcels (a INT, b INT, gone INT REFERENCES nowhere (x), FOREIGN KEY (b, a) REFERENCES orders (LINE, No))`,
		`CREATE VIEW big AS SELECT no, total * 2 AS "double" FROM orders`,
		`CREATE VIEW broken AS SELECT x FROM no_such_table`,
		`CREATE VIRTUAL TABLE search USING fts5(body)`,
		`ANALYZE`,
	)
	var notes []string
	s, err := ingest.Load(context.Background(), []string{"sqlite:" + path}, func(n string) { notes = append(notes, n) })
	if err != nil {
		t.Fatal(err)
	}
	db := "shop.v2"
	if got, want := s.Databases(), []catalog.Database{{Name: db, Dialect: catalog.SQLite}}; !reflect.DeepEqual(got, want) {
		t.Errorf("databases %v, want %v", got, want)
	}
	var tables []string
	for _, o := range s.Objects(catalog.KindTable) {
		tables = append(tables, o.Ref.Table)
	}
	if want := []string{"Customers", "big", "orders", "parcels"}; !slices.Equal(tables, want) {
		t.Errorf("tables %q, want %q: virtual, shadow and system tables and views that do not run stay out", tables, want)
	}
	if !strings.Contains(strings.Join(notes, "\n"), "left out SQL view") {
		t.Errorf("nobody was told of the view that does not run: %q", notes)
	}

	customers := object(t, s, catalog.TableRef(db, "", "Customers")).Table
	if want := []string{"Id"}; !slices.Equal(customers.PrimaryKey, want) {
		t.Errorf("primary key %q, want %q", customers.PrimaryKey, want)
	}
	if want := [][]string{{"Email"}}; !reflect.DeepEqual(customers.UniqueKeys, want) {
		t.Errorf("unique keys %q, want %q: a partial index or one on an expression makes no column unique", customers.UniqueKeys, want)
	}
	orders := object(t, s, catalog.TableRef(db, "", "orders"))
	if want := []string{"line", "no"}; !slices.Equal(orders.Table.PrimaryKey, want) {
		t.Errorf("primary key %q, want %q in the key's order", orders.Table.PrimaryKey, want)
	}
	if want := [][]string{{"total", "customer"}}; !reflect.DeepEqual(orders.Table.UniqueKeys, want) {
		t.Errorf("unique keys %q, want %q", orders.Table.UniqueKeys, want)
	}
	if want := []catalog.ForeignKey{{Columns: []string{"customer"}, To: catalog.TableRef(db, "", "Customers"), ToColumns: []string{"Id"}}}; !reflect.DeepEqual(orders.Table.ForeignKeys, want) {
		t.Errorf("foreign keys %v, want %v: without target columns the other table's key is meant", orders.Table.ForeignKeys, want)
	}
	parcels := object(t, s, catalog.TableRef(db, "", "parcels")).Table
	if want := []catalog.ForeignKey{{Columns: []string{"b", "a"}, To: catalog.TableRef(db, "", "orders"), ToColumns: []string{"line", "no"}}}; !reflect.DeepEqual(parcels.ForeignKeys, want) {
		t.Errorf("foreign keys %v, want %v, spelt as the tables spell them", parcels.ForeignKeys, want)
	}
	var got []string
	for _, c := range s.Columns(orders.ID) {
		got = append(got, fmt.Sprintf("%s %s %d", c.Ref.Column, c.Column.Type, c.Column.Position))
	}
	if want := []string{"no INT 0", "line INT 1", "customer  2", "total DECIMAL(10, 2) 3", "net  4"}; !slices.Equal(got, want) {
		t.Errorf("columns %q, want %q", got, want)
	}
	if c := object(t, s, catalog.ColumnRef(db, "", "Customers", "Email")).Column; !c.NotNull || c.Type != "VARCHAR(80)" {
		t.Errorf("Email reads %+v", c)
	}
	view := object(t, s, catalog.TableRef(db, "", "big"))
	if !strings.HasPrefix(view.Table.SQLView, "CREATE VIEW big") || view.Table.Rows != nil {
		t.Errorf("the view reads %+v", view.Table)
	}
	object(t, s, catalog.ColumnRef(db, "", "big", "double"))
}

func TestSQLiteStatisticsOfASmallTableAreExact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sqlite")
	sqliteFile(t, path, `CREATE TABLE t (word TEXT, n INT, day DATE, raw BLOB, long TEXT, none TEXT)`,
		`INSERT INTO t VALUES ('b', 1, '2024-01-31', x'00ff', '`+strings.Repeat("ü", 150)+`', NULL),
			('a', 2, '2024-01-31', x'01', 'short', NULL), ('a', NULL, '2024-02-01', NULL, 'short', NULL),
			(CAST(x'61ff0a62' AS TEXT), 2, NULL, 'text', '', NULL)`, `CREATE TABLE empty (a)`)
	s := load(t, "sqlite:"+path)
	if rows := object(t, s, catalog.TableRef("s", "", "t")).Table.Rows; number(rows) != int64(4) {
		t.Errorf("%v rows, want 4", number(rows))
	}
	for _, c := range []struct {
		column          string
		nulls, distinct any
		samples         []string
	}{
		{"word", 0.0, int64(3), []string{"a", "b", "a\uFFFD b"}},
		{"n", 0.25, int64(2), []string{"2", "1"}},
		{"day", 0.25, int64(2), []string{"2024-01-31", "2024-02-01"}},
		{"raw", 0.25, nil, []string{"text"}},
		{"long", 0.0, nil, []string{"short", strings.Repeat("ü", 100) + "…"}},
		{"none", 1.0, int64(0), nil},
	} {
		got := object(t, s, catalog.ColumnRef("s", "", "t", c.column)).Column
		if number(got.NullShare) != c.nulls || number(got.Distinct) != c.distinct || !slices.Equal(got.Samples, c.samples) {
			t.Errorf("%s: nulls %v, distinct %v, samples %q; want %v, %v, %q", c.column, number(got.NullShare), number(got.Distinct), got.Samples, c.nulls, c.distinct, c.samples)
		}
	}
	empty := object(t, s, catalog.ColumnRef("s", "", "empty", "a")).Column
	if rows := object(t, s, catalog.TableRef("s", "", "empty")).Table.Rows; number(rows) != int64(0) || empty.NullShare != nil {
		t.Errorf("an empty table has %v rows and a null share of %v", number(rows), number(empty.NullShare))
	}
}

func TestSQLiteSamplesABigTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sqlite")
	sqliteFile(t, path, `CREATE TABLE t (n INT, late TEXT)`, `WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 12000)
		INSERT INTO t SELECT i % 7, iif(i > 11000, 'seen only by a scan', NULL) FROM s`)
	s := load(t, "sqlite:"+path)
	n, late := object(t, s, catalog.ColumnRef("s", "", "t", "n")).Column, object(t, s, catalog.ColumnRef("s", "", "t", "late")).Column
	if rows := object(t, s, catalog.TableRef("s", "", "t")).Table.Rows; number(rows) != int64(12000) {
		t.Errorf("%v rows, want 12000", number(rows))
	}
	if n.Distinct != nil || number(n.NullShare) != 0.0 || len(n.Samples) != 7 {
		t.Errorf("n: distinct %v, nulls %v, samples %q; a part of the rows does not tell how many values there are", number(n.Distinct), number(n.NullShare), n.Samples)
	}
	if len(late.Samples) != 0 || number(late.NullShare) != 1.0 {
		t.Errorf("late: samples %q, nulls %v; rows beyond the bound were read", late.Samples, number(late.NullShare))
	}
}

func TestSQLiteTextOfFewValuesHasADictionary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sqlite")
	sqliteFile(t, path, `CREATE TABLE t (county TEXT, code VARCHAR(5), many TEXT, long TEXT, n INT, part TEXT)`,
		`WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 201)
			INSERT INTO t SELECT 'County ' || printf('%03d', i % 200), iif(i % 2, 'b ', NULL), 'm' || i, 'short', i % 3, 'p' FROM s`,
		`INSERT INTO t VALUES ('County 000', 'a', '', '`+strings.Repeat("ü", 65)+`', 1, x'00')`)
	s := load(t, "sqlite:"+path)
	counties := object(t, s, catalog.ColumnRef("s", "", "t", "county")).Column
	if d := counties.Dictionary; len(d) != 200 || d[0] != "County 000" || d[199] != "County 199" || len(counties.Samples) != 10 {
		t.Errorf("%d counties %q and %d samples, want all 200 in order and 10", len(d), d, len(counties.Samples))
	}
	if d := object(t, s, catalog.ColumnRef("s", "", "t", "code")).Column.Dictionary; !slices.Equal(d, []string{"a", "b"}) {
		t.Errorf("codes %q, want a and b", d)
	}
	for column, why := range map[string]string{"many": "there are 201 values", "long": "one has 65 characters", "n": "numbers are no text", "part": "some are bytes"} {
		if d := object(t, s, catalog.ColumnRef("s", "", "t", column)).Column.Dictionary; d != nil {
			t.Errorf("%s has a dictionary of %d, though %s", column, len(d), why)
		}
	}
}

func TestSQLiteDictionaryOfABigTableLooksFurtherThanSamples(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sqlite")
	sqliteFile(t, path, `CREATE TABLE t (late TEXT, more TEXT, longer TEXT, bytes TEXT)`, `WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 100100)
		INSERT INTO t SELECT CASE WHEN i > 100000 THEN 'beyond the bound' WHEN i > 90000 THEN 'rare' ELSE 'usual' END,
			iif(i > 90000, 'm' || i, 'm'), iif(i > 90000, printf('%.65c', 'x'), 'x'), iif(i > 90000, x'00', 'text') FROM s`)
	s := load(t, "sqlite:"+path)
	for column, want := range map[string][]string{"late": {"rare", "usual"}, "more": nil, "longer": nil, "bytes": {"text"}} {
		c := object(t, s, catalog.ColumnRef("s", "", "t", column)).Column
		if !slices.Equal(c.Dictionary, want) || len(c.Samples) != 1 {
			t.Errorf("%s: dictionary %q and samples %q, want %q and one sample", column, c.Dictionary, c.Samples, want)
		}
	}
}

func TestSQLiteAwkwardNames(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "läden #1 50%?.sqlite")
	names := []string{`with space`, `quo"te`, `it's`, "back`tick", "a.b", "客户表", "select", "*", strings.Repeat("x", 300), "tab\tnew\nline", `back\slash`, "[x]", ":p", "?"}
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	for i, n := range names {
		parent := names[(i+len(names)-1)%len(names)]
		sqliteFile(t, path, fmt.Sprintf(`CREATE TABLE %s (%s TEXT PRIMARY KEY, parent TEXT REFERENCES %s (%s))`, quote(n), quote(n), quote(parent), quote(parent)),
			fmt.Sprintf(`INSERT INTO %s (%s) VALUES ('v%d')`, quote(n), quote(n), i))
	}
	s := load(t, "sqlite:"+path)
	for i, n := range names {
		c := object(t, s, catalog.ColumnRef("läden #1 50%?", "", n, n))
		if want := []string{fmt.Sprintf("v%d", i)}; !slices.Equal(c.Column.Samples, want) || !c.Column.PrimaryKey {
			t.Errorf("%q: samples %q, want %q", n, c.Column.Samples, want)
		}
		if keys := object(t, s, catalog.TableRef("läden #1 50%?", "", n)).Table.ForeignKeys; len(keys) != 1 {
			t.Errorf("%q has foreign keys %v, want one", n, keys)
		}
	}
}

func TestSQLiteDirectoryIsADatabaseOfSchemas(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	sqliteFile(t, filepath.Join(dir, "sales.sqlite"), `CREATE TABLE customers (id INTEGER PRIMARY KEY)`, `CREATE TABLE orders (customer REFERENCES customers)`, `INSERT INTO customers VALUES (1)`)
	sqliteFile(t, filepath.Join(dir, "it's crm.db"), `CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)`, `INSERT INTO customers VALUES (1, 'Ada')`)
	write(t, filepath.Join(dir, "notes.txt"), "not a database")
	s := load(t, "sqlite:"+dir)
	if got := object(t, s, catalog.ColumnRef("demo", "it's crm", "customers", "name")).Column.Samples; !slices.Equal(got, []string{"Ada"}) {
		t.Errorf("samples %q", got)
	}
	if got := object(t, s, catalog.TableRef("demo", "sales", "orders")).Table.ForeignKeys; len(got) != 1 || got[0].To != catalog.TableRef("demo", "sales", "customers") {
		t.Errorf("foreign keys %v; same-named tables must stay apart", got)
	}

	src, err := ingest.Open("sqlite:" + dir)
	if err != nil {
		t.Fatal(err)
	}
	db, err := src.(ingest.Live).DB(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var name string
	if err := db.QueryRow(`SELECT c.name FROM sales.customers s JOIN "it's crm".customers c ON c.id = s.id`).Scan(&name); err != nil || name != "Ada" {
		t.Errorf("a join across schemas gave %q, %v", name, err)
	}
}

func TestSQLiteDirectoryFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		want  string
	}{
		{"more files than SQLite attaches", []string{"a.db", "b.db", "c.db", "d.db", "e.db", "f.db", "g.db", "h.db", "i.db", "j.db", "k.db"}, "attaches at most 10"},
		{"two files of one name", []string{"a.db", "A.sqlite"}, "would be the same schema"},
		{"a reserved name", []string{"Main.db"}, "reserves the name main"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range c.files {
				write(t, filepath.Join(dir, f), "")
			}
			if _, err := ingest.Open("sqlite:" + dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that says %q", err, c.want)
			}
		})
	}
}

func TestSQLiteDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sqlite")
	sqliteFile(t, path, `CREATE TABLE t (a TEXT)`, `INSERT INTO t VALUES (hex(randomblob(9000)))`, `INSERT INTO t SELECT a FROM t`)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{
		"a file that was cut off":   whole[:4096],
		"a page of noise":           append(slices.Clone(whole[:4096]), slices.Repeat([]byte{0x5a}, len(whole)-4096)...),
		"a schema page of noise":    append(slices.Clone(whole[:100]), slices.Repeat([]byte{0x5a}, len(whole)-100)...),
		"a header and nothing else": whole[:20],
	} {
		t.Run(name, func(t *testing.T) {
			write(t, path, string(damaged))
			_, err := ingest.Load(context.Background(), []string{"sqlite:" + path}, nil)
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want an error of one line", err)
			}
		})
	}
}

func TestSQLiteEmptyDatabaseIsAnEmptyCatalog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.sqlite")
	write(t, path, "")
	if s := load(t, "sqlite:"+path); s.Len() != 0 || len(s.Databases()) != 1 {
		t.Errorf("got %d objects in %v", s.Len(), s.Databases())
	}
}

func TestSQLiteIsNeverWritten(t *testing.T) {
	for _, c := range []struct {
		name     string
		journal  string
		keepOpen bool
	}{
		{"a rollback journal", "delete", false},
		{"a write-ahead log that was merged", "wal", false},
		{"a write-ahead log in use", "wal", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "s.sqlite")
			writer, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			writer.SetMaxOpenConns(1)
			apply(t, writer, "PRAGMA journal_mode = "+c.journal, "CREATE TABLE t (a TEXT)", "INSERT INTO t VALUES ('x')")
			if !c.keepOpen {
				writer.Close()
			}
			defer writer.Close()
			index := path + "-shm" // which a writer in this very process changes whenever the file is read
			before := contents(t, dir)
			s := load(t, "sqlite:"+path)
			if got := object(t, s, catalog.ColumnRef("s", "", "t", "a")).Column.Samples; !slices.Equal(got, []string{"x"}) {
				t.Errorf("samples %q, want the row that was written last", got)
			}
			after := contents(t, dir)
			if c.keepOpen {
				before[filepath.Base(index)] = after[filepath.Base(index)]
			}
			if !reflect.DeepEqual(before, after) {
				t.Errorf("files changed from %v to %v", before, after)
			}
		})
	}

	// A writer that died, or a copy taken while it ran, leaves a log that the file does not hold yet.
	left := func(t *testing.T, names ...string) (dir string) {
		home, copied := t.TempDir(), t.TempDir()
		writer, err := sql.Open("sqlite", filepath.Join(home, "s.sqlite"))
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Close()
		writer.SetMaxOpenConns(1)
		apply(t, writer, "PRAGMA journal_mode = wal", "CREATE TABLE t (a TEXT)")
		for _, name := range names {
			data, err := os.ReadFile(filepath.Join(home, name))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(copied, name), string(data))
		}
		return copied
	}
	t.Run("a write-ahead log that was left with its index", func(t *testing.T) {
		dir := left(t, "s.sqlite", "s.sqlite-wal", "s.sqlite-shm")
		before := contents(t, dir)
		object(t, load(t, "sqlite:"+filepath.Join(dir, "s.sqlite")), catalog.ColumnRef("s", "", "t", "a"))
		if after := contents(t, dir); !reflect.DeepEqual(before, after) {
			t.Errorf("files changed from %v to %v", before, after)
		}
	})
	t.Run("a write-ahead log that was left alone", func(t *testing.T) {
		dir := left(t, "s.sqlite", "s.sqlite-wal")
		before := contents(t, dir)
		_, err := ingest.Load(context.Background(), []string{"sqlite:" + filepath.Join(dir, "s.sqlite")}, nil)
		if err == nil || !strings.Contains(err.Error(), "never merged") {
			t.Errorf("got %v, want an error rather than a stale catalog", err)
		}
		if after := contents(t, dir); !reflect.DeepEqual(before, after) {
			t.Errorf("files changed from %v to %v", before, after)
		}
	})
}

// contents is what stands in a directory's files, by name.
func contents(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][32]byte{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = sha256.Sum256(data)
	}
	return out
}

func TestSQLiteRefusesWhateverDoesMoreThanRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.sqlite")
	sqliteFile(t, path, `CREATE TABLE t (a TEXT)`, `CREATE INDEX i ON t (a)`, `INSERT INTO t VALUES ('x')`)
	src, err := ingest.Open("sqlite:" + path)
	if err != nil {
		t.Fatal(err)
	}
	db, err := src.(ingest.Live).DB(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		`DELETE FROM t`, `INSERT INTO t VALUES ('y')`, `UPDATE t SET a = 'y'`, `DROP TABLE t`, `CREATE TABLE u (a)`, `CREATE TEMP TABLE u (a)`,
		`ATTACH '` + filepath.Join(dir, "new.sqlite") + `' AS n`, `VACUUM INTO '` + filepath.Join(dir, "copy.sqlite") + `'`,
		`PRAGMA query_only = 0`, `PRAGMA writable_schema = 1`, `PRAGMA journal_mode = wal`, `PRAGMA user_version = 7`,
		`SELECT load_extension('x')`, `ANALYZE`, `REINDEX`, `VACUUM`,
	} {
		if _, err := db.Exec(statement); err == nil {
			t.Errorf("%s was run", statement)
		}
	}
	var n int
	if err := db.QueryRow(`WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 3) SELECT count(*) FROM r, t WHERE upper(a) = 'X'`).Scan(&n); err != nil || n != 3 {
		t.Errorf("reading gave %d, %v", n, err)
	}
	if after := contents(t, dir); len(after) != 1 {
		t.Errorf("files were made: %v", after)
	}
}

func TestATableThatCannotBeMeasuredDoesNotStopTheOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sqlite")
	sqliteFile(t, path, `CREATE TABLE fine (a TEXT)`, `INSERT INTO fine VALUES ('x')`,
		`CREATE TABLE faulty (a INT)`, `INSERT INTO faulty (a) VALUES (-9223372036854775808)`, `ALTER TABLE faulty ADD COLUMN b AS (abs(a))`)
	var notes []string
	s, err := ingest.Load(context.Background(), []string{"sqlite:" + path}, func(n string) { notes = append(notes, n) })
	if err != nil {
		t.Fatal(err)
	}
	if got := object(t, s, catalog.ColumnRef("s", "", "fine", "a")).Column.Samples; !slices.Equal(got, []string{"x"}) {
		t.Errorf("samples of the other table: %q", got)
	}
	if c := object(t, s, catalog.ColumnRef("s", "", "faulty", "a")).Column; c.NullShare != nil {
		t.Errorf("the faulty table has statistics %+v", c)
	}
	if !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, "no statistics for s.faulty:") }) {
		t.Errorf("nobody was told: %q", notes)
	}
}
