package retrieval_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// warehouse draws a catalog of about so many columns: names repeat across tables, and descriptions are short.
func warehouse(columns int) *catalog.Snapshot {
	r := rand.New(rand.NewPCG(1, uint64(columns)))
	var words []string
	for _, first := range strings.Fields("order customer invoice product account region employee ship pay stock price claim route school match player visit") {
		for _, second := range strings.Fields("id name date amount status code type count rate total city year note level owner score weight") {
			words = append(words, first+"_"+second)
		}
	}
	word := func() string { return words[r.IntN(len(words))] }
	var databases []catalog.Database
	var objects []catalog.Object
	for n := 0; n < columns; {
		db := fmt.Sprintf("db%03d", n/2000)
		if len(databases) == 0 || databases[len(databases)-1].Name != db {
			databases = append(databases, catalog.Database{Name: db, Dialect: catalog.SQLite})
		}
		t := catalog.Object{Ref: catalog.TableRef(db, "", fmt.Sprintf("%s_%d", word(), n)), Description: word() + " of " + word(), Table: &catalog.Table{}}
		seen := map[string]bool{}
		for range 5 + r.IntN(40) {
			name := word()
			if seen[name] {
				continue
			}
			seen[name] = true
			o := catalog.Object{Ref: catalog.ColumnRef(db, "", t.Ref.Table, name), Description: "the " + word() + " of the " + word(), Column: &catalog.Column{Type: "TEXT", Position: len(seen)}}
			if r.IntN(3) == 0 {
				o.Column.Samples = []string{word(), word()}
			}
			objects = append(objects, o)
			if len(seen) == 1 {
				t.Table.PrimaryKey = []string{name}
			}
		}
		n += len(seen)
		objects = append(objects, t)
	}
	s, err := catalog.Build(databases, objects)
	if err != nil {
		panic(err)
	}
	return s
}

var benchQuestions = []string{
	"What is the total amount of invoices by customer city and year?",
	"How many employees of the region have a pay rate above the average, and who owns the account?",
	"List the names of players with the highest match score",
	"Which products were shipped late, by route and status?",
}

// bench runs f on catalogs of three sizes. ns/column tells how the time grows with the catalog.
func bench(b *testing.B, f func(b *testing.B, y system, v acl.View, question string)) {
	for _, size := range []int{800, 10_000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := warehouse(size)
			y, v := fullSystem(b, s, 5000), acl.Everything(s)
			for _, q := range benchQuestions {
				f(b, y, v, q)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				f(b, y, v, benchQuestions[i%len(benchQuestions)])
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.OfKind(catalog.KindColumn).Len()), "ns/column")
		})
	}
}

func BenchmarkLink(b *testing.B) {
	bench(b, func(b *testing.B, y system, v acl.View, question string) {
		if c, err := y.linker.Link(context.Background(), question, v); err != nil || c.Nothing != "" {
			b.Fatal(err, c.Nothing)
		}
	})
}

func BenchmarkRank(b *testing.B) {
	bench(b, func(b *testing.B, y system, v acl.View, question string) {
		if r, err := y.ranker.Rank(context.Background(), question, v); err != nil || len(r.Tables) == 0 {
			b.Fatal(err, len(r.Tables))
		}
	})
}

// BenchmarkMillion links questions to a catalog of a million columns.
func BenchmarkMillion(b *testing.B) {
	if testing.Short() {
		b.Skip("takes 4 GB; run it without -short")
	}
	s := warehouse(1_000_000)
	y, v := fullSystem(b, s, 5000), acl.Everything(s)
	var took []time.Duration
	ask := func(question string) {
		start := time.Now()
		if c, err := y.linker.Link(context.Background(), question, v); err != nil || c.Nothing != "" {
			b.Fatal(err, c.Nothing)
		}
		took = append(took, time.Since(start))
	}
	for _, q := range benchQuestions {
		ask(q)
	}
	took = took[:0]
	for b.Loop() {
		ask(benchQuestions[len(took)%len(benchQuestions)])
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}
