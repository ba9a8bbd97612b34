package local_test

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
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/embed"
	"github.com/schemagate/schemagate/retrieval/local"
)

// warehouse draws the objects of a catalog of so many columns, or a few more: names repeat across tables, and
// descriptions are short.
func warehouse(columns int) ([]catalog.Database, []catalog.Object) {
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
		table := catalog.TableRef(db, "", fmt.Sprintf("%s_%d", word(), n))
		objects = append(objects, catalog.Object{Ref: table, Description: word() + " of " + word(), Table: &catalog.Table{}})
		seen := map[string]bool{}
		for range 5 + r.IntN(40) {
			name := word()
			if seen[name] {
				continue
			}
			seen[name] = true
			o := catalog.Object{Ref: catalog.ColumnRef(db, "", table.Table, name), Description: "the " + word() + " of the " + word(), Column: &catalog.Column{Type: "TEXT", Position: len(seen)}}
			if r.IntN(3) == 0 {
				o.Column.Samples = []string{word(), word()}
			}
			objects = append(objects, o)
		}
		n += len(seen)
	}
	return databases, objects
}

// drawn is the snapshot of a warehouse.
func drawn(b testing.TB, columns int) *catalog.Snapshot {
	b.Helper()
	s, err := catalog.Build(warehouse(columns))
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func embedder(b testing.TB) *embed.Model {
	b.Helper()
	m, err := embed.New()
	if err != nil {
		b.Fatal(err)
	}
	return m
}

func indexed(b testing.TB, s *catalog.Snapshot) *local.Index {
	b.Helper()
	x, err := local.NewWith(context.Background(), s, embedder(b))
	if err != nil {
		b.Fatal(err)
	}
	return x
}

var questions = []string{
	"What is the total amount of invoices by customer city and year?",
	"How many employees of the region have a pay rate above the average, and who owns the account?",
	"List the names of players with the highest match score",
	"Which products were shipped late, by route and status?",
}

// sizes runs f on catalogs of three sizes, the small one only with -short. ns/column tells how the time grows.
func sizes(b *testing.B, f func(b *testing.B, columns int)) {
	for _, columns := range []int{800, 10_000, 100_000} {
		if columns > 800 && testing.Short() {
			continue
		}
		b.Run(fmt.Sprint(columns), func(b *testing.B) {
			b.ReportAllocs()
			f(b, columns)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(columns), "ns/column")
		})
	}
}

func BenchmarkNew(b *testing.B) {
	sizes(b, func(b *testing.B, columns int) {
		s := drawn(b, columns)
		for b.Loop() {
			local.New(s)
		}
	})
}

func BenchmarkNewWith(b *testing.B) {
	m := embedder(b)
	sizes(b, func(b *testing.B, columns int) {
		s := drawn(b, columns)
		for b.Loop() {
			if _, err := local.NewWith(context.Background(), s, m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	sizes(b, func(b *testing.B, columns int) {
		s := drawn(b, columns)
		x, v := local.New(s), acl.Everything(s)
		var terms [][]retrieval.Term
		for _, q := range questions {
			words, _ := retrieval.QuestionTerms(q)
			terms = append(terms, words)
			x.Match(catalog.KindColumn, words, v)
		}
		i := 0
		for b.Loop() {
			x.Match(catalog.KindColumn, terms[i%len(terms)], v)
			i++
		}
	})
}

func BenchmarkNear(b *testing.B) {
	m := embedder(b)
	sizes(b, func(b *testing.B, columns int) {
		s := drawn(b, columns)
		x, v := indexed(b, s), acl.Everything(s)
		var vectors [][]float32
		for _, q := range questions {
			vectors = append(vectors, m.Vector(q))
			x.Near(catalog.KindColumn, m.Vector(q), v)
		}
		i := 0
		for b.Loop() {
			x.Near(catalog.KindColumn, vectors[i%len(vectors)], v)
			i++
		}
	})
}

// One table changes: a column goes and one comes. The snapshot's own build is not in the time.
func BenchmarkUpdate(b *testing.B) {
	sizes(b, func(b *testing.B, columns int) {
		x := indexed(b, drawn(b, columns))
		databases, objects := warehouse(columns)
		i := len(objects) / 2
		for objects[i].Column == nil || objects[i+1].Column == nil {
			i++
		}
		objects[i].Ref.Column, objects[i].Description = "brand_new", "what nobody said before"
		objects = slices.Delete(objects, i+1, i+2)
		s, err := catalog.Build(databases, objects)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := x.Update(context.Background(), s); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// All that a question asks of an index of a million columns: words and meaning, in every kind. It takes a quarter of a
// minute and 3 GB, and does not run with -short.
func BenchmarkMillion(b *testing.B) {
	if testing.Short() {
		b.Skip("takes 3 GB; run it without -short")
	}
	const columns = 1_000_000
	s := drawn(b, columns)
	start := time.Now()
	x, m, v := indexed(b, s), embedder(b), acl.Everything(s)
	built := time.Since(start)
	var took []time.Duration
	ask := func(q string) {
		start := time.Now()
		words, compounds := retrieval.QuestionTerms(q)
		vector := m.Vector(q)
		for _, k := range catalog.Kinds {
			x.Match(k, slices.Concat(words, compounds), v)
			x.Near(k, vector, v)
		}
		took = append(took, time.Since(start))
	}
	for _, q := range questions {
		ask(q)
	}
	took = took[:0]
	for b.Loop() {
		ask(questions[len(took)%len(questions)])
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100].Milliseconds()), "p95-ms")
	b.ReportMetric(float64(built.Nanoseconds())/columns, "build-ns/column")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/columns, "ns/column")
}
