package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/mysql"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

// server connects to the test server without choosing a database.
func server(t *testing.T) *sql.DB {
	t.Helper()
	dsn := os.Getenv("SCHEMAGATE_TEST_MYSQL")
	if dsn == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("SCHEMAGATE_TEST_MYSQL is not set; CI needs a MySQL or MariaDB server")
		}
		t.Skip("start a server with: docker run --rm -e MARIADB_ROOT_PASSWORD=gate -p 127.0.0.1:3306:3306 mariadb:10.11\n" +
			"and set SCHEMAGATE_TEST_MYSQL=mysql://root:gate@127.0.0.1:3306/")
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c := driver.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr, c.MultiStatements = "tcp", u.Host, true
	connector, err := driver.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	return db
}

// newDatabase creates an empty database of that name for the test, and returns a connection that uses it.
func newDatabase(t *testing.T, db *sql.DB, name string) *sql.Conn {
	t.Helper()
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	exec(t, conn, fmt.Sprintf("DROP DATABASE IF EXISTS %s; CREATE DATABASE %s CHARACTER SET utf8mb4; USE %s", name, name, name))
	t.Cleanup(func() { exec(t, conn, "DROP DATABASE "+name) })
	return conn
}

func exec(t *testing.T, conn *sql.Conn, text string) {
	t.Helper()
	if _, err := conn.ExecContext(context.Background(), text); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// query returns the rows of a statement as text; NULL is "\N".
func query(conn *sql.Conn, text string) ([]string, error) {
	rows, err := conn.QueryContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	return scanned(rows, len(names))
}

func scanned(rows *sql.Rows, columns int) ([]string, error) {
	var out []string
	for rows.Next() {
		values := make([]any, columns)
		for i := range values {
			values[i] = new(sql.NullString)
		}
		if err := rows.Scan(values...); err != nil {
			return nil, err
		}
		cells := make([]string, columns)
		for i, v := range values {
			cells[i] = `\N`
			if v := v.(*sql.NullString); v.Valid {
				cells[i] = plain(v.String)
			}
		}
		out = append(out, strings.Join(cells, "|"))
	}
	return out, rows.Err()
}

// plain writes numbers one way, whatever their type.
func plain(s string) string {
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return strconv.FormatFloat(f, 'g', 12, 64)
	}
	return s
}

func sorted(rows []string) []string {
	rows = slices.Clone(rows)
	slices.Sort(rows)
	return rows
}

// script is the DDL of one database.
type script struct{ database, ddl string }

// schemaOf builds the asker's schema of the first database; statements may also name the others.
func schemaOf(policy string, scripts ...script) (*rewrite.Schema, error) {
	var databases []catalog.Database
	var objects []catalog.Object
	for _, s := range scripts {
		d, os, err := mysql.New().Objects(s.database, s.ddl)
		if err != nil {
			return nil, err
		}
		databases, objects = append(databases, d), append(objects, os...)
	}
	snapshot, err := catalog.Build(databases, objects)
	if err != nil {
		return nil, err
	}
	p, err := acl.ParsePolicy("policy.yaml", []byte(policy))
	if err != nil {
		return nil, err
	}
	e, err := casbin.New(p, snapshot)
	if err != nil {
		return nil, err
	}
	v, err := e.View(rewritetest.Asker)
	if err != nil {
		return nil, err
	}
	return rewrite.NewSchema(v, scripts[0].database)
}

// TestCasesOnTheEngine executes what the guard made of each case and compares with what the original gives on a
// database without the hidden rows, tables and columns.
func TestCasesOnTheEngine(t *testing.T) {
	cases := rewritetest.Cases(t, "mysql")
	db := server(t)
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			// Cases name their database shop.
			const database = "schemagate_cases"
			in := strings.ReplaceAll(c.SQL, "shop", database)
			policy, err := c.PolicyFile(func(name string) string { return database + "." + name })
			if err != nil {
				t.Fatal(err)
			}
			schema, err := schemaOf(policy, script{database, c.Setup})
			if err != nil {
				t.Fatal(err)
			}
			st, err := rewrite.NewGuard(mysql.New(), 1000).Rewrite(in, schema)
			var no *acl.Refusal
			switch {
			case errors.As(err, &no):
				if c.Expect == "rows" {
					t.Fatalf("refused: %s: %s (%s)\n%s", no.Code, no.Public, no.Detail, c.SQL)
				}
				return
			case err != nil:
				t.Fatal(err)
			case c.Expect == "deny":
				t.Fatalf("not refused: %s\n%s", c.SQL, st.Text())
			}
			conn := newDatabase(t, db, database)
			exec(t, conn, c.Setup)
			got, err := query(conn, st.Text())
			if err != nil {
				t.Fatalf("%v\n%s", err, st.Text())
			}
			var want []string
			for _, row := range c.Rows {
				cells := make([]string, len(row))
				for i, v := range row {
					cells[i] = `\N`
					if v != nil {
						cells[i] = plain(fmt.Sprint(v))
					}
				}
				want = append(want, strings.Join(cells, "|"))
			}
			if !c.Ordered {
				got, want = sorted(got), sorted(want)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("got %v\nwant %v\n%s\n%s", got, want, c.SQL, st.Text())
			}
		})
	}
}
