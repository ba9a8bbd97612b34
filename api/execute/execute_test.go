package execute

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/rewrite"
)

// engine is a database to run statements on, with what differs between the engines.
type engine struct {
	dialect catalog.Dialect
	// address is the source's name, once it holds a table t with one row.
	address func(*testing.T) string
	// values is a row of the kinds of values that the engine has, and want how it reads as JSON.
	values, want string
	endless      string // a statement that does not end by itself
	slowRows     string // one that gives a row at once and then never ends
	many         string // one that gives more rows than can be read in the time
	errors       map[string]Class
	writes       []string
}

// numbers counts from 1 in the way that all three engines understand.
func numbers(last string) string {
	return "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " + last + ") SELECT i FROM n"
}

var engines = []engine{
	{
		dialect: catalog.SQLite,
		address: func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "s.sqlite")
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []string{
				`CREATE TABLE t (a INTEGER, b TEXT, day DATE, at TIMESTAMP)`, `INSERT INTO t VALUES (1, 'secret', '2024-01-31', '2024-01-31 10:00:00')`,
				`CREATE TABLE big (i INT)`, `INSERT INTO big ` + numbers("100000"),
			} {
				if _, err := db.Exec(s); err != nil {
					t.Fatal(err)
				}
			}
			db.Close()
			return "sqlite:" + path
		},
		values:   `SELECT NULL, 1, 2.5, 'ü', x'00ff', CAST(x'61ff' AS TEXT), 9e999, -9e999, 9007199254740993, day, at FROM t`,
		want:     `[null,1,2.5,"ü","AP8=","a` + "\uFFFD" + `","Infinity","-Infinity",9007199254740993,"2024-01-31","2024-01-31T10:00:00Z"]`,
		endless:  `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n`,
		slowRows: `SELECT 1 UNION ALL SELECT * FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n)`,
		many:     `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n`,
		errors: map[string]Class{
			`SELECT x FROM t`:                       ClassUnknownName,
			`SELECT 1 FROM no_such`:                 ClassUnknownName,
			`SELECT no_such(1)`:                     ClassUnknownName,
			`SELECT abs(-9223372036854775807 - 1)`:  ClassType,
			`SELECT load_extension('x')`:            ClassPermission,
			`SELECT json('secret') FROM t`:          ClassOther,
			`SELECT length(zeroblob(1000000000))`:   ClassOther,
			`SELECT printf('%.*c', 100000000, 'x')`: ClassOther,
		},
		writes: []string{`INSERT INTO t (a) VALUES (2)`, `DELETE FROM t`, `CREATE TEMP TABLE x (a)`, `ATTACH ':memory:' AS x`, `PRAGMA query_only = 0`},
	},
	{
		dialect: catalog.Postgres,
		address: func(t *testing.T) string {
			address := server(t, "SCHEMAGATE_TEST_POSTGRES", "docker run --rm -p 5432:5432 -e POSTGRES_PASSWORD=pw postgres:15, then SCHEMAGATE_TEST_POSTGRES=postgres://postgres:pw@127.0.0.1:5432/postgres")
			setup(t, "pgx", address, `DROP TABLE IF EXISTS execute_t`, `CREATE TABLE execute_t (a int, b text)`, `INSERT INTO execute_t VALUES (1, 'secret')`)
			return address
		},
		values: `SELECT NULL, true, 1, 2.5::float8, 12.50::numeric, 'NaN'::numeric, 'ü', '\x00ff'::bytea, 'infinity'::float8, 'NaN'::float8, 9007199254740993,
			date '2024-01-31', timestamp '2024-01-31 10:00:00.5', timestamptz '2024-01-31 10:00:00+02', time '10:00', interval '1 day', 'infinity'::timestamp, ARRAY[1,2], '{"a": 1}'::jsonb, 'a1b2c3d4-0000-0000-0000-000000000000'::uuid`,
		want: `[null,true,1,2.5,12.50,"NaN","ü","AP8=","Infinity","NaN",9007199254740993,` +
			`"2024-01-31","2024-01-31T10:00:00.5Z","2024-01-31T08:00:00Z","10:00:00","1 day","infinity","{1,2}","{\"a\": 1}","a1b2c3d4-0000-0000-0000-000000000000"]`,
		endless:  `SELECT pg_sleep(60)`,
		slowRows: `SELECT 1 UNION ALL SELECT length(pg_sleep(60)::text)`,
		many:     `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i % 9 + 1 FROM n) SELECT i FROM n`,
		errors: map[string]Class{
			`SELECT x FROM execute_t`:                       ClassUnknownName,
			`SELECT 1 FROM no_such`:                         ClassUnknownName,
			`SELECT no_such(1)`:                             ClassUnknownName,
			`SELECT a / (a - 1) FROM execute_t`:             ClassDivision,
			`SELECT CAST(b AS int) FROM execute_t`:          ClassType,
			`SELECT a = 'x' FROM execute_t`:                 ClassType,
			`SELECT 1 FROM execute_t WHERE a`:               ClassType,
			`SELECT nextval('execute_s')`:                   ClassUnknownName,
			`SELECT 1; SELECT 2`:                            ClassOther,
			`SELECT current_setting('schemagate.hash_key')`: ClassUnknownName,
		},
		writes: []string{`INSERT INTO execute_t VALUES (2)`, `WITH d AS (DELETE FROM execute_t RETURNING a) SELECT a FROM d`, `CREATE TABLE execute_x (a int)`},
	},
	{
		dialect: catalog.MySQL,
		address: func(t *testing.T) string {
			address := server(t, "SCHEMAGATE_TEST_MYSQL", "docker run --rm -p 3306:3306 -e MARIADB_ROOT_PASSWORD=pw mariadb:10.11, then SCHEMAGATE_TEST_MYSQL=mysql://root:pw@127.0.0.1:3306")
			_, own := driverAddress(address)
			setup(t, "mysql", own, `CREATE DATABASE IF NOT EXISTS execute_db`, `DROP TABLE IF EXISTS execute_db.t`,
				`CREATE TABLE execute_db.t (a int, b varchar(9), d date)`, `SET SESSION sql_mode = ''`, `INSERT INTO execute_db.t VALUES (1, 'secret', '0000-00-00')`)
			return address + "/execute_db"
		},
		values:   `SELECT NULL, true, 1, 2.5e0, CAST(12.50 AS decimal(9,2)), 'ü', x'00ff', 18446744073709551615, date '2024-01-31', timestamp '2024-01-31 10:00:00', time '10:00:00', d FROM t`,
		want:     `[null,1,1,2.5,12.50,"ü","AP8=",18446744073709551615,"2024-01-31","2024-01-31T10:00:00Z","10:00:00","0000-00-00"]`,
		endless:  `SELECT SLEEP(60)`,
		slowRows: `SELECT 1 UNION ALL SELECT SLEEP(60)`,
		many:     `SELECT seq FROM seq_1_to_1000000000`,
		errors: map[string]Class{
			`SELECT x FROM t`:       ClassUnknownName,
			`SELECT 1 FROM no_such`: ClassUnknownName,
			`SELECT no_such(1)`:     ClassUnknownName,
			`SELECT exp(9999)`:      ClassType,
			`SELECT 1; SELECT 2`:    ClassOther,
		},
		writes: []string{`INSERT INTO t (a) VALUES (2)`, `DELETE FROM t`, `CREATE TABLE x (a int)`, `UPDATE t SET a = 3`},
	},
}

func server(t *testing.T, variable, start string) string {
	t.Helper()
	address := os.Getenv(variable)
	if address == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not set; start a server with: %s", variable, start)
		}
		t.Skipf("%s is not set; start a server with: %s", variable, start)
	}
	return strings.TrimSuffix(address, "/")
}

func setup(t *testing.T, driver, address string, statements ...string) {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func live(t *testing.T, spec string) *sql.DB {
	t.Helper()
	src, err := ingest.Open(spec)
	if err != nil {
		t.Fatal(err)
	}
	db, err := src.(ingest.Live).DB(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// onEach runs a test on each engine with a runner of that configuration.
func onEach(t *testing.T, c Config, test func(*testing.T, engine, *Runner)) {
	for _, e := range engines {
		t.Run(string(e.dialect), func(t *testing.T) {
			r, err := New(live(t, e.address(t)), e.dialect, c)
			if err != nil {
				t.Fatal(err)
			}
			test(t, e, r)
		})
	}
}

func TestValuesReadAsJSON(t *testing.T) {
	onEach(t, Config{}, func(t *testing.T, e engine, r *Runner) {
		rows, err := r.run(context.Background(), e.values)
		if err != nil {
			t.Fatalf("%v: %v", err, errors.Unwrap(err))
		}
		got, err := json.Marshal(rows.Rows)
		if err != nil {
			t.Fatal(err)
		}
		if want := "[" + e.want + "]"; string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if rows.Truncated {
			t.Error("the result says that it was cut")
		}
	})
}

func TestNoRowsAreAnEmptyList(t *testing.T) {
	onEach(t, Config{}, func(t *testing.T, e engine, r *Runner) {
		rows, err := r.run(context.Background(), "SELECT 1 AS one, 2 AS two WHERE 1 = 0")
		if err != nil {
			t.Fatal(err)
		}
		got, _ := json.Marshal(rows)
		if want := `{"columns":["one","two"],"rows":[],"truncated":false}`; string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestCapsStopReading(t *testing.T) {
	for _, c := range []struct {
		name string
		Config
		rows int
	}{
		{"rows", Config{MaxRows: 7}, 7},
		{"as many rows as the cap", Config{MaxRows: 3}, 3},
		{"bytes", Config{MaxBytes: 40}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEach(t, c.Config, func(t *testing.T, e engine, r *Runner) {
				text := e.many
				if c.rows == 3 {
					text = numbers("3")
				}
				start := time.Now()
				rows, err := r.run(context.Background(), text)
				if err != nil {
					t.Fatalf("%v: %v", err, errors.Unwrap(err))
				}
				if rows.Truncated != (c.rows != 3) {
					t.Errorf("truncated is %v", rows.Truncated)
				}
				if c.rows >= 0 && len(rows.Rows) != c.rows {
					t.Errorf("%d rows, want %d", len(rows.Rows), c.rows)
				}
				if size, _ := json.Marshal(rows.Rows); c.MaxBytes > 0 && len(size) > c.MaxBytes+2+len(rows.Rows) {
					t.Errorf("%d bytes, want at most about %d", len(size), c.MaxBytes)
				}
				if took := time.Since(start); took > 2*time.Second {
					t.Errorf("took %v: the rest of the result was read", took)
				}
				if rows, err := r.run(context.Background(), "SELECT 1"); err != nil || len(rows.Rows) != 1 {
					t.Errorf("the runner is unusable afterwards: %v", err)
				}
			})
		})
	}
}

func TestTheDeadlineEndsAStatement(t *testing.T) {
	onEach(t, Config{Timeout: 200 * time.Millisecond}, func(t *testing.T, e engine, r *Runner) {
		for _, text := range []string{e.endless, e.slowRows} {
			start := time.Now()
			rows, err := r.run(context.Background(), text)
			expectClass(t, text, err, ClassTimeout)
			if len(rows.Rows) != 0 {
				t.Errorf("%s: rows came with the error", text)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%s: took %v", text, took)
			}
		}
		if _, err := r.run(context.Background(), "SELECT 1"); err != nil {
			t.Errorf("the runner is unusable afterwards: %v", err)
		}
	})
}

// A client that went away must not leave a statement running in the server.
func TestTheServerKnowsTheDeadlineToo(t *testing.T) {
	onEach(t, Config{Timeout: 300 * time.Millisecond}, func(t *testing.T, e engine, r *Runner) {
		if e.dialect == catalog.SQLite {
			return // SQLite runs in the client
		}
		ctx := context.Background()
		conn, err := r.db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := r.prepareSession(ctx, conn); err != nil {
			t.Fatal(err)
		}
		tx, err := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if e.dialect == catalog.Postgres {
			if err := r.prepareTransaction(ctx, tx); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		err = tx.QueryRow(e.endless).Scan(new(any))
		if took := time.Since(start); err == nil && e.dialect == catalog.Postgres || took > 5*time.Second {
			t.Errorf("the server ran the statement for %v and said %v", took, err)
		}
	})
}

func TestACancelledCallIsNoTimeout(t *testing.T) {
	onEach(t, Config{}, func(t *testing.T, e engine, r *Runner) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		start := time.Now()
		_, err := r.run(ctx, e.endless)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestErrorsAreClassesAndNothingMore(t *testing.T) {
	onEach(t, Config{}, func(t *testing.T, e engine, r *Runner) {
		for text, want := range e.errors {
			_, err := r.run(context.Background(), text)
			expectClass(t, text, err, want)
		}
		if _, err := r.run(context.Background(), "SELECT 1"); err != nil {
			t.Errorf("the runner is unusable afterwards: %v", err)
		}
	})
}

func expectClass(t *testing.T, text string, err error, want Class) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("%s: got %v, want an error of class %s", text, err, want)
		return
	}
	if e.Class != want {
		t.Errorf("%s: class %s, want %s; the database said %v", text, e.Class, want, e.Unwrap())
	}
	if e.Unwrap() == nil || strings.Contains(e.Error(), e.Unwrap().Error()) || strings.Contains(e.Error(), "secret") || strings.Contains(e.Error(), "no_such") {
		t.Errorf("%s: %q must keep what the database said inside, and keep it", text, e)
	}
}

func TestNothingIsWritten(t *testing.T) {
	onEach(t, Config{}, func(t *testing.T, e engine, r *Runner) {
		for _, text := range e.writes {
			_, err := r.run(context.Background(), text)
			var failed *Error
			if !errors.As(err, &failed) {
				t.Errorf("%s was run", text)
			}
		}
	})
}

// A source opens its database read-only; the runner trusts that as little as anything else.
func TestTheRunnerItselfOnlyReads(t *testing.T) {
	for _, e := range engines {
		t.Run(string(e.dialect), func(t *testing.T) {
			driver, address := driverAddress(e.address(t))
			db, err := sql.Open(driver, address)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			r, err := New(db, e.dialect, Config{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.run(context.Background(), e.writes[0])
			expectClass(t, e.writes[0], err, ClassPermission)
		})
	}
}

// driverAddress is a source's name as its driver writes it.
func driverAddress(spec string) (driver, address string) {
	scheme, rest, _ := strings.Cut(spec, ":")
	switch scheme {
	case "sqlite":
		return "sqlite", rest
	case "mysql":
		login, place, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "@")
		host, database, _ := strings.Cut(place, "/")
		return "mysql", login + "@tcp(" + host + ")/" + database
	}
	return "pgx", spec
}

func TestTheHashKeyIsThereForTheStatement(t *testing.T) {
	read := map[catalog.Dialect]string{
		catalog.Postgres: "SELECT current_setting('schemagate.hash_key')",
		catalog.MySQL:    "SELECT @schemagate_hash_key",
	}
	onEach(t, Config{HashKey: `k'e"y\`}, func(t *testing.T, e engine, r *Runner) {
		text, ok := read[e.dialect]
		if !ok {
			return // SQLite has no function that hashes with a key
		}
		rows, err := r.run(context.Background(), text)
		if err != nil || rows.Rows[0][0] != `k'e"y\` {
			t.Errorf("got %v, %v", rows.Rows, err)
		}
	})
}

func TestADatabaseThatIsDownIsUnavailable(t *testing.T) {
	for driver, address := range map[string]string{"pgx": "postgres://u:tiger@127.0.0.1:1/db", "mysql": "u:tiger@tcp(127.0.0.1:1)/db"} {
		db, err := sql.Open(driver, address)
		if err != nil {
			t.Fatal(err)
		}
		dialect := catalog.Postgres
		if driver == "mysql" {
			dialect = catalog.MySQL
		}
		r, err := New(db, dialect, Config{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.run(context.Background(), "SELECT 1")
		expectClass(t, address, err, ClassUnavailable)
		db.Close()
	}
}

func TestOnlyAGovernedStatementRuns(t *testing.T) {
	db := live(t, engines[0].address(t))
	r, err := New(db, catalog.SQLite, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Run(context.Background(), rewrite.Statement{}); err == nil || !strings.Contains(err.Error(), "only one that a guard let through") {
		t.Errorf("the zero statement gave %v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	db := live(t, engines[0].address(t))
	for name, c := range map[string]Config{
		"a negative timeout": {Timeout: -1}, "a timeout below a millisecond": {Timeout: 1}, "negative rows": {MaxRows: -1}, "negative bytes": {MaxBytes: -1},
	} {
		if _, err := New(db, catalog.SQLite, c); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := New(db, catalog.Snowflake, Config{}); err == nil {
		t.Error("a dialect without a driver was accepted")
	}
}
