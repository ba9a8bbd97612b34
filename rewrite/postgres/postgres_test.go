package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/postgres"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

func TestSpecifications(t *testing.T) { rewritetest.Golden(t, postgres.New(), "testdata") }

// server returns the URL of a server on which tests may create databases.
func server(t *testing.T) string {
	t.Helper()
	dsn := os.Getenv("SCHEMAGATE_TEST_POSTGRES")
	if dsn == "" {
		const start = "docker run --rm -e POSTGRES_HOST_AUTH_METHOD=trust -p 127.0.0.1:5432:5432 postgres:15"
		if os.Getenv("CI") == "true" {
			t.Fatal("SCHEMAGATE_TEST_POSTGRES is not set; start a server with: " + start)
		}
		t.Skip("start a server with: " + start + "\nand set SCHEMAGATE_TEST_POSTGRES=postgres://postgres@127.0.0.1:5432/postgres")
	}
	return dsn
}

// freshDatabase creates a database, runs setup in it and returns a connection. It is dropped after the test.
func freshDatabase(t *testing.T, name, setup string) *pgx.Conn {
	t.Helper()
	ctx := context.Background()
	dsn := server(t)
	admin, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	name = fmt.Sprintf("schemagate_%s_%d", name, os.Getpid())
	if _, err := admin.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	conn, err := pgx.Connect(ctx, u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close(ctx)
		admin, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Error(err)
			return
		}
		defer admin.Close(ctx)
		if _, err := admin.Exec(ctx, "DROP DATABASE "+name); err != nil {
			t.Error(err)
		}
	})
	if _, err := conn.PgConn().Exec(ctx, setup).ReadAll(); err != nil {
		t.Fatalf("setup: %v", err)
	}
	return conn
}

// query runs a statement and returns each row as text, with NULL for nulls.
func query(conn *pgx.Conn, sql string) ([]string, error) {
	results, err := conn.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, result := range results {
		for _, row := range result.Rows {
			var values []string
			for _, v := range row {
				if v == nil {
					values = append(values, "NULL")
				} else {
					values = append(values, fmt.Sprintf("%q", v))
				}
			}
			out = append(out, strings.Join(values, "|"))
		}
	}
	return out, nil
}

func TestExecutedCases(t *testing.T) {
	cases := rewritetest.Cases(t, "postgres")
	server(t)
	databases := map[string]*pgx.Conn{}
	for _, c := range cases {
		if databases[c.Setup] == nil {
			databases[c.Setup] = freshDatabase(t, fmt.Sprintf("cases%d", len(databases)), c.Setup)
		}
		t.Run(c.ID, func(t *testing.T) { executeCase(t, databases[c.Setup], c) })
	}
}

func executeCase(t *testing.T, conn *pgx.Conn, c rewritetest.Case) {
	d := postgres.New()
	_, objects, err := d.Objects(rewritetest.Database, c.Setup)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]bool{}
	for _, o := range objects {
		if o.Table != nil && o.Ref.Schema == "public" {
			tables[o.Ref.Table] = true
		}
	}
	policy, err := c.PolicyFile(func(name string) string {
		head, _, dotted := strings.Cut(name, ".")
		if !dotted || tables[head] {
			return rewritetest.Database + ".public." + name
		}
		return rewritetest.Database + "." + name
	})
	if err != nil {
		t.Fatal(err)
	}
	schema, err := rewritetest.NewSchema(d, c.Setup, policy)
	if err != nil {
		t.Fatal(err)
	}
	st, err := rewrite.NewGuard(d, 1000).Rewrite(c.SQL, schema)
	if no, ok := errors.AsType[*acl.Refusal](err); ok {
		if c.Expect == "rows" {
			t.Fatalf("%s\nrefused: %s %s (%s)\nwhy: %s", c.SQL, no.Code, no.Public, no.Detail, c.Why)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.Expect == "deny" {
		t.Fatalf("%s\nlet through: %s\nwhy: %s", c.SQL, st.Text(), c.Why)
	}
	got, err := query(conn, st.Text())
	if err != nil {
		t.Fatalf("%s\n%v", st.Text(), err)
	}
	var want []string
	for _, row := range c.Rows {
		var values []string
		for _, v := range row {
			if v == nil {
				values = append(values, "NULL")
			} else {
				values = append(values, fmt.Sprintf("%q", fmt.Sprint(v)))
			}
		}
		want = append(want, strings.Join(values, "|"))
	}
	if !c.Ordered {
		slices.Sort(got)
		slices.Sort(want)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s\nguarded: %s\ngot:  %v\nwant: %v\nwhy: %s", c.SQL, st.Text(), got, want, c.Why)
	}
}

// oddTypes is a catalog that knows types by names that are none.
type oddTypes struct{ *postgres.Dialect }

func (d oddTypes) Objects(database, ddl string) (catalog.Database, []catalog.Object, error) {
	db, objects, err := d.Dialect.Objects(database, ddl)
	for _, o := range objects {
		if o.Column != nil && o.Ref.Column == "shape" {
			o.Column.Type = "USER-DEFINED (unknown"
		}
	}
	return db, objects, err
}

func TestMaskWithoutATypeRefusesOnlyWhoReadsIt(t *testing.T) {
	d := oddTypes{postgres.New()}
	const policy = `version: 1
principals: {asker: {roles: [reader]}}
grants:
  - {role: reader, allow: ["*"], actions: [view, query]}
masks:
  - {column: db.public.thing.shape, roles: [reader], with: null}
`
	for sql, code := range map[string]string{
		"select id from thing":                                   "",
		"select shape from thing":                                acl.CodeMaskUnsupported,
		"select * from thing":                                    acl.CodeMaskUnsupported,
		"select row_to_json(t) from thing t":                     acl.CodeMaskUnsupported,
		"select 1 from thing natural join (select 1 as shape) x": acl.CodeMaskUnsupported,
	} {
		schema, err := rewritetest.NewSchema(d, "CREATE TABLE thing (id int, shape text);", policy)
		if err != nil {
			t.Fatal(err)
		}
		st, err := rewrite.NewGuard(d, 0).Rewrite(sql, schema)
		if code == "" {
			if err != nil || strings.Contains(st.Text(), "shape") {
				t.Errorf("%s: %s %v", sql, st.Text(), err)
			}
			continue
		}
		if no, ok := errors.AsType[*acl.Refusal](err); !ok || no.Code != code {
			t.Errorf("%s: %s %v", sql, st.Text(), err)
		}
	}
}

func TestReadsAreTablesAndColumnsInOrderOfFirstMention(t *testing.T) {
	part := specification(t, "testdata/left_join_filters_null_side.txtar")
	schema, err := rewritetest.NewSchema(postgres.New(), part["schema.sql"], part["policy.yaml"])
	if err != nil {
		t.Fatal(err)
	}
	st, err := rewrite.NewGuard(postgres.New(), 0).Rewrite("select r.*, c.name from client c natural join (select name from client) x, region r", schema)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, read := range st.Reads() {
		got = append(got, fmt.Sprintf("%s %v rules=%d", read.Table, read.Columns, len(read.Rules)))
	}
	want := []string{
		"db.public.client [db.public.client.name] rules=1",
		"db.public.region [db.public.region.id db.public.region.name] rules=0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
