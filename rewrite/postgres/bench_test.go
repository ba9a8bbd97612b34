package postgres_test

import (
	"slices"
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

// BenchmarkRewrite measures the guard on a query of fifteen lines over two protected tables; BenchmarkParser the
// parsing and printing that no guard could do without.
func BenchmarkRewrite(b *testing.B) {
	shared := specification(b, "testdata/left_join_filters_null_side.txtar")
	d := postgres.New()
	schema, err := rewritetest.NewSchema(d, shared["schema.sql"], shared["policy.yaml"])
	if err != nil {
		b.Fatal(err)
	}
	g := rewrite.NewGuard(d, 1000)
	measure(b, func() error { _, err := g.Rewrite(fifteenLines, schema); return err })
}

func BenchmarkParser(b *testing.B) {
	measure(b, func() error {
		tree, err := postgres.New().Parse(fifteenLines)
		if err != nil {
			return err
		}
		_, err = tree.Print()
		return err
	})
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
