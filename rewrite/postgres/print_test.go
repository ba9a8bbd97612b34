package postgres_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/postgres"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

// TestOperandsKeepTheirParentheses prints every operator over every other, and some over those.
func TestOperandsKeepTheirParentheses(t *testing.T) {
	inner := []string{"not a", "a and b", "a or b", "a = b", "a < b", "a + b", "a * b", "- a", "a ^ b", "a || b", "a is null", "a is true", "a is distinct from b", "a between b and c", "a not between b and c", "a in (b, c)", "a not in (b, c)", "a like b", "a not ilike b", "a similar to b", "a::text", "a collate \"C\"", "a at time zone b", "a = any (b)", "a <> all (select 1)", "a in (select 1)", "exists (select 1)", "case when a then b end", "(a, b)", "row(a)", "array[a]", "a[1]", "(select 1)", "f(a)", "a -> b", "@ a", "operator(pg_catalog.-) a", "a operator(pg_catalog.+) b", "a overlaps b", "-1", "1", "'x'", "null", "(a).b", "count(a) over ()", "current_date", "interval '1 day'", "a is not null", "coalesce(a, b)", "a is unknown", "extract(year from a)"}
	outer := []string{"not (%)", "(%) and x", "x and (%)", "(%) or x", "x or (%)", "(%) = x", "x = (%)", "(%) < x", "(%) + x", "x + (%)", "x - (%)", "(%) * x", "x * (%)", "- (%)", "(%) ^ x", "x ^ (%)", "(%) || x", "x || (%)", "(%) is null", "(%) is not null", "(%) is true", "(%) is not false", "(%) is distinct from x", "x is not distinct from (%)", "(%) between x and y", "x between (%) and y", "x between y and (%)", "(%) in (x, y)", "x in ((%), y)", "(%) not in (select 1)", "(%) like x", "x like (%)", "x ilike (%) escape 'a'", "(%) similar to x", "x similar to (%)", "(%)::text", "(%) collate \"C\"", "(%) at time zone x", "x at time zone (%)", "(%) = any (x)", "x = any (%)", "(%) = all (select 1)", "case (%) when x then y end", "case when (%) then (%) else (%) end", "((%), x)", "array[(%)]", "(%)[1]", "x[(%)]", "f((%))", "(%) -> x", "x -> (%)", "@ (%)", "operator(pg_catalog.-) (%)", "(%) operator(pg_catalog.+) x", "x operator(pg_catalog.+) (%)", "cast((%) as int)", "coalesce((%), x)", "sum((%)) over (partition by (%) order by (%))", "extract(year from (%))"}
	d := postgres.New()
	schema, err := rewritetest.NewSchema(d, "create table t (a int, b int, c int, x int, y int);", allowAll)
	if err != nil {
		t.Fatal(err)
	}
	tried, unfaithful := 0, 0
	try := func(expression string) {
		tried++
		sql := "select " + strings.ReplaceAll(expression, "f(", "abs(") + " from t"
		_, err := rewrite.NewGuard(d, 0).Rewrite(sql, schema)
		no, refused := errors.AsType[*acl.Refusal](err)
		switch {
		case err != nil && !refused:
			t.Errorf("a fault for %s: %v", sql, err)
		case refused && strings.Contains(no.Public, "faithful"):
			unfaithful++
			t.Logf("refused: %s (%s)", sql, no.Detail)
		}
	}
	for _, o := range outer {
		for _, i := range inner {
			try(strings.ReplaceAll(o, "%", i))
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		e := inner[r.IntN(len(inner))]
		for range 2 + r.IntN(3) {
			e = strings.ReplaceAll(outer[r.IntN(len(outer))], "%", e)
		}
		try(e)
	}
	if unfaithful*200 > tried {
		t.Errorf("%d of %d expressions are not written back faithfully", unfaithful, tried)
	}
}
