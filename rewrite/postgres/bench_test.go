package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/postgres"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

const fifteenLines = `with paid as (
  select i.client_id, sum(i.amount) as total, count(*) as n
  from invoice i
  where i.amount > 10 and i.memo is not null
  group by i.client_id
)
select r.name, c.name as client, p.total,
       rank() over (partition by r.id order by p.total desc) as place,
       case when p.n > 10 then 'many' else 'few' end as volume
from region r
join client c on c.region_id = r.id
left join paid p on p.client_id = c.id
where c.born between date '1980-01-01' and date '1990-12-31'
  and r.name in ('north', 'south')
order by r.name, place`

const benchDDL = `CREATE TABLE region (id int PRIMARY KEY, name varchar(20));
CREATE TABLE client (id int PRIMARY KEY, tenant int, region_id int REFERENCES region, name varchar(20), ssn varchar(11), born date);
CREATE TABLE invoice (id int PRIMARY KEY, tenant int, client_id int REFERENCES client, amount numeric(10,2), memo text);
`

const benchPolicy = `version: 1
principals: {asker: {roles: [reader], attributes: {tenant: 7, regions: [1, 2, 3]}}}
grants:
  - {role: reader, allow: ["*"], actions: [view, query]}
  - {role: reader, deny: [db.public.client.ssn]}
row_filters:
  - {table: db.public.client, roles: [reader], using: "tenant = {{ principal.tenant }} and region_id in ({{ principal.regions }})"}
  - {table: db.public.invoice, roles: [reader], using: "tenant = {{ principal.tenant }}"}
masks:
  - {column: db.public.client.name, roles: [reader], with: partial}
  - {column: db.public.invoice.memo, roles: [reader], with: null}
`

// BenchmarkRewrite measures the guard on a query of fifteen lines over tables with row filters and masks;
// BenchmarkParser the parsing and printing of the same query, which no guard could do without.
func BenchmarkRewrite(b *testing.B) { rewriting(b, benchDDL, benchPolicy, fifteenLines) }

func BenchmarkParser(b *testing.B) { parsing(b, fifteenLines) }

func rewriting(b *testing.B, ddl, policy, sql string) {
	d := postgres.New()
	schema, err := rewritetest.NewSchema(d, ddl, policy)
	if err != nil {
		b.Fatal(err)
	}
	g := rewrite.NewGuard(d, 1000)
	measure(b, func() error { _, err := g.Rewrite(sql, schema); return err })
}

func parsing(b *testing.B, sql string) {
	d := postgres.New()
	measure(b, func() error {
		tree, err := d.Parse(sql)
		if err != nil {
			return err
		}
		_, err = tree.Print()
		return err
	})
}

// BenchmarkGrowth shows that the time grows as the statement or the catalog does, beside the parser's own.
func BenchmarkGrowth(b *testing.B) {
	many := func(n int, write func(i int) string) string {
		var s strings.Builder
		for i := range n {
			s.WriteString(write(i))
		}
		return s.String()
	}
	for _, n := range []int{100, 1000, 10000} {
		ddl := many(n, func(i int) string { return fmt.Sprintf("CREATE TABLE t%d (id int, tenant int, a int, b text);\n", i) })
		b.Run(fmt.Sprintf("tables=%d/guard", n), func(b *testing.B) { rewriting(b, benchDDL+ddl, benchPolicy, fifteenLines) })
	}
	for _, n := range []int{100, 1000, 10000} {
		ddl := "CREATE TABLE wide (c int" + many(n, func(i int) string { return fmt.Sprintf(", c%d int", i) }) + ");\n"
		sql := "select c" + many(n, func(i int) string { return fmt.Sprintf(", c%d", i) }) + " from (select * from wide) w"
		b.Run(fmt.Sprintf("columns=%d/parser", n), func(b *testing.B) { parsing(b, sql) })
		b.Run(fmt.Sprintf("columns=%d/guard", n), func(b *testing.B) { rewriting(b, ddl+benchDDL, benchPolicy, sql) })
	}
	shapes := []struct {
		name  string
		sizes []int
		write func(n int) string
	}{
		{"joins", []int{20, 100, 500}, func(n int) string {
			return "select c0.name from client c0" + many(n, func(i int) string {
				return fmt.Sprintf(" join client c%d on c%d.id = c%d.region_id", i+1, i+1, i)
			})
		}},
		{"using", []int{20, 100, 500}, func(n int) string {
			return "select id from client c0" + many(n, func(i int) string { return fmt.Sprintf(" join client c%d using (id)", i+1) })
		}},
		{"bytes", []int{10_000, 100_000, 1_000_000}, func(n int) string {
			return "select id from client where name in ('x'" + many(n/12, func(i int) string { return fmt.Sprintf(", '%08d'", i) }) + ")"
		}},
		{"expressions", []int{1_000, 10_000, 100_000}, func(n int) string {
			return "select id" + many(n/10, func(i int) string { return ", id + tenant" }) + " from client"
		}},
		{"depth", []int{10, 100, 1000}, func(n int) string {
			return strings.Repeat("select x.id from (", n) + "select id from client" + strings.Repeat(") x", n)
		}},
	}
	for _, s := range shapes {
		for _, n := range s.sizes {
			sql := s.write(n)
			b.Run(fmt.Sprintf("%s=%d/parser", s.name, n), func(b *testing.B) { parsing(b, sql) })
			b.Run(fmt.Sprintf("%s=%d/guard", s.name, n), func(b *testing.B) { rewriting(b, benchDDL, benchPolicy, sql) })
		}
	}
}

// measure reports the median beside the mean.
func measure(b *testing.B, run func() error) {
	b.Helper()
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		if err := run(); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-us")
}

// TestOneDialectServesManyAtOnce shares what a dialect keeps of the policy's texts.
func TestOneDialectServesManyAtOnce(t *testing.T) {
	d := postgres.New()
	g := rewrite.NewGuard(d, 1000)
	var texts [8]string
	var done sync.WaitGroup
	for i := range texts {
		done.Go(func() {
			for range 20 {
				schema, err := rewritetest.NewSchema(d, benchDDL, benchPolicy)
				if err != nil {
					t.Error(err)
					return
				}
				st, err := g.Rewrite(fifteenLines, schema)
				if err != nil {
					t.Error(err)
					return
				}
				texts[i] = st.Text()
			}
		})
	}
	done.Wait()
	for _, text := range texts {
		if text == "" || text != texts[0] {
			t.Errorf("%q and %q are one statement's", text, texts[0])
		}
	}
}
