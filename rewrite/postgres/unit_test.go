package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// TestDeepTextsAreRefusedOrPrinted guards the process: the parser recurses in C, where a stack that overflows cannot
// be caught.
func TestDeepTextsAreRefusedOrPrinted(t *testing.T) {
	around := func(head, core, tail string) func(int) string {
		return func(n int) string { return "select " + strings.Repeat(head, n) + core + strings.Repeat(tail, n) }
	}
	shapes := map[string]func(int) string{
		"parentheses":   around("(", "1", ")"),
		"subqueries":    around("(select ", "1", ")"),
		"functions":     around("abs(", "1", ")"),
		"arrays":        around("array[", "1", "]"),
		"cases":         around("case when ", "true", " then 1 end"),
		"nots":          around("not ", "true", ""),
		"signs":         around("- ", "a", ""),
		"sums":          around("", "1", "+1"),
		"sums of cases": around("", "1", "+case when a and b then 1 end"),
		"casts":         around("", "1", "::int"),
		"subscripts":    around("", "a", "[1]"),
		"collations":    around("", "a", ` collate "C"`),
		"time zones":    around("", "a", " at time zone 'x'"),
		"null tests":    around("(", "a", " is null)"),
		"ands":          around("", "true", " and true"),
		"long lists":    around("", "1", ",1"),
		"long names":    around("", "a", ".a"),
		"unions":        around("", "1", " union select 1"),
		"joins":         around("", "1 from a", " cross join a"),
		"derived tables": func(n int) string {
			return strings.Repeat("select * from (", n) + "select 1" + strings.Repeat(") x", n)
		},
		"with queries": func(n int) string {
			return strings.Repeat("with a as (", n) + "select 1" + strings.Repeat(") select 1", n)
		},
	}
	for name, shape := range shapes {
		for _, n := range []int{10, 90, 700, 2900, 9000, 60000} {
			sql := shape(n)
			if len(sql) > 1<<20 {
				continue
			}
			got, err := New().Parse(sql)
			if err == nil {
				err = readsBack(got)
			}
			no, refused := errors.AsType[*acl.Refusal](err)
			if err != nil && (!refused || no.Code != acl.CodeTooLarge) {
				t.Errorf("%d %s: %v %+v", n, name, err, no)
			}
			if err != nil && n == 10 {
				t.Errorf("10 %s are too many", name)
			}
		}
	}
}

// readsBack prints a tree, parses the text and compares the trees.
func readsBack(printed rewrite.Tree) error {
	text, err := printed.Print()
	if err != nil {
		return err
	}
	again, err := New().Parse(text)
	if err != nil {
		return err
	}
	return again.Same(printed, text)
}

func TestListsFillInConditions(t *testing.T) {
	for _, c := range []struct {
		name, before, after string
		value               any
		want                string
	}{
		{"several numbers", "id in (", ")", []int64{1, -2, 3000000000}, "id IN (1, -2, 3000000000)"},
		{"nothing is in an empty list", "id in (", ")", []int64{}, "false"},
		{"everything is outside an empty list", "name not in (", ")", []string{}, "true"},
		{"one value", "name in (", ")", "a'b", "name IN ('a''b')"},
		{"a large number", "id = ", "", int64(-2147483648), "id = -2147483648"},
		{"a whole float stays a float", "x < ", "", 5.0, "x < 5.0"},
		{"a truth value", "ok = ", "", true, "ok = true"},
		{"a comment at the end", "id = ", " -- and more", int64(1), "id = 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := parseCondition(newFragments(), rewrite.Condition{Text: []string{c.before, c.after}, Values: []any{c.value}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := (&tree{result: fromCondition(n)}).Print()
			if err != nil || got != "SELECT 1 WHERE "+c.want {
				t.Errorf("got %s (%v), want %s", got, err, c.want)
			}
		})
	}
}

func TestConditionsThatAreFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		text []string
		v    []any
	}{
		{"a value in a string", []string{"a = 'x", "'"}, []any{"v"}},
		{"a value in a comment", []string{"a = 1 /* ", " */"}, []any{"v"}},
		{"a list outside IN", []string{"a = ", ""}, []any{[]string{"v"}}},
		{"a list beside other elements", []string{"a in (1, ", ")"}, []any{[]int64{2}}},
		{"a parameter of its own", []string{"a = $1"}, nil},
		{"more than an expression", []string{"a = 1) order by (b"}, nil},
		{"two statements", []string{"a = 1); select (1"}, nil},
		{"nothing", []string{""}, nil},
		{"a NUL character", []string{"a = ", ""}, []any{"\x00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if n, err := parseCondition(newFragments(), rewrite.Condition{Text: c.text, Values: c.v}); err == nil {
				t.Errorf("accepted as %v", n)
			}
		})
	}
}

func TestLimitCapsRows(t *testing.T) {
	for sql, want := range map[string]string{
		"select 1":                           "SELECT 1 LIMIT 10",
		"select 1 limit 3":                   "SELECT 1 LIMIT 3",
		"select 1 limit 30 offset 2":         "SELECT 1 LIMIT 10 OFFSET 2",
		"select 1 limit all":                 "SELECT 1 LIMIT 10",
		"select 1 limit 2 + 3":               "SELECT 1 LIMIT LEAST(2 + 3, 10)",
		"select 1 fetch first row only":      "SELECT 1 LIMIT 1",
		"select 1 union all select 2":        "SELECT 1 UNION ALL SELECT 2 LIMIT 10",
		"(select 1 limit 3) union values(2)": "(SELECT 1 LIMIT 3) UNION VALUES (2) LIMIT 10",
		"values (1)":                         "VALUES (1) LIMIT 10",
		"select 1 as a order by a fetch first 5 rows with ties": "SELECT * FROM (SELECT 1 AS a ORDER BY a FETCH FIRST 5 ROWS WITH TIES) capped LIMIT 10",
	} {
		got, err := New().Parse(sql)
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Limit(10); err != nil {
			t.Fatal(err)
		}
		if text, err := got.Print(); err != nil || text != want {
			t.Errorf("%s became %s (%v), want %s", sql, text, err, want)
		}
	}
}

// fromCondition makes a statement of a condition.
func fromCondition(n *pg.Node) *pg.ParseResult {
	one := &pg.Node{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: intNode(1)}}}
	return &pg.ParseResult{Version: 170007, Stmts: []*pg.RawStmt{{Stmt: selectNode(&pg.SelectStmt{
		TargetList: []*pg.Node{one}, WhereClause: n, LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE,
	})}}}
}

const dump = `--
\restrict abc
SET search_path = '';
CREATE SCHEMA sales;
CREATE TABLE sales.customer (
    id integer NOT NULL,
    "Full Name" character varying(20),
    born timestamp(3) with time zone,
    tags text[],
    price numeric(10,2) DEFAULT 0
);
ALTER TABLE sales.customer OWNER TO someone;
COMMENT ON TABLE sales.customer IS 'who buys';
COMMENT ON COLUMN sales.customer."Full Name" IS 'first and last';
CREATE TABLE public.orders (id bigserial PRIMARY KEY, customer int REFERENCES sales.customer, code text UNIQUE);
COPY public.orders (id, code) FROM stdin;
1	it's (
\.
INSERT INTO public.orders VALUES (1);
this is no SQL;
ALTER TABLE ONLY sales.customer ADD CONSTRAINT customer_pkey PRIMARY KEY (id);
ALTER TABLE sales.customer ADD COLUMN late date;
CREATE TABLE public.orders_2024 () INHERITS (public.orders);
CREATE VIEW public.names AS SELECT c."Full Name" AS name, count(*) FROM sales.customer c GROUP BY 1;
CREATE TEMP TABLE scratch (a int);
`

func TestObjectsOfADump(t *testing.T) {
	db, objects, err := New().Objects("shop", dump)
	if err != nil {
		t.Fatal(err)
	}
	if db.Name != "shop" || db.DefaultSchema != "public" || db.Dialect != catalog.Postgres {
		t.Errorf("database %+v", db)
	}
	var got []string
	for _, o := range objects {
		switch {
		case o.Table != nil:
			got = append(got, fmt.Sprintf("%s %q key=%v unique=%v parts=%v view=%q", o.Ref, o.Description, o.Table.PrimaryKey, o.Table.UniqueKeys, o.Table.Partitions, o.Table.SQLView))
			for _, fk := range o.Table.ForeignKeys {
				got = append(got, fmt.Sprintf("  %v -> %s %v", fk.Columns, fk.To, fk.ToColumns))
			}
		case o.Column != nil:
			got = append(got, fmt.Sprintf("  %d %s %s %q notnull=%t", o.Column.Position, o.Ref.Column, o.Column.Type, o.Description, o.Column.NotNull))
		}
	}
	want := []string{
		`shop.sales.customer "who buys" key=[id] unique=[] parts=[] view=""`,
		`  0 id integer "" notnull=true`,
		`  1 Full Name character varying(20) "first and last" notnull=false`,
		`  2 born timestamp(3) with time zone "" notnull=false`,
		`  3 tags text[] "" notnull=false`,
		`  4 price numeric(10,2) "" notnull=false`,
		`  5 late date "" notnull=false`,
		`shop.public.orders "" key=[id] unique=[[code]] parts=[shop.public.orders_2024] view=""`,
		`  [customer] -> shop.sales.customer [id]`,
		`  0 id bigint "" notnull=true`,
		`  1 customer integer "" notnull=false`,
		`  2 code text "" notnull=false`,
		`shop.public.orders_2024 "" key=[] unique=[] parts=[] view=""`,
		`  0 id bigint "" notnull=true`,
		`  1 customer integer "" notnull=false`,
		`  2 code text "" notnull=false`,
		`shop.public.names "" key=[] unique=[] parts=[] view="SELECT c.\"Full Name\" AS name, count(*) FROM sales.customer c GROUP BY 1"`,
		`  0 name character varying(20) "" notnull=false`,
		`  1 count  "" notnull=false`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := catalog.Build([]catalog.Database{db}, objects); err != nil {
		t.Error(err)
	}
}
