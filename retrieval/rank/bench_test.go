package rank_test

import (
	"fmt"
	"testing"

	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/rank"
)

// What judging costs beyond retrieval.Rank, by the number of databases of three tables and twelve columns.
func BenchmarkJudge(b *testing.B) {
	m := model(b)
	for _, n := range []int{10, 100, 1000} {
		var names []string
		for i := range n {
			names = append(names, trades[i%len(trades)]+fmt.Sprint(i))
		}
		s := shops(b, names...)
		l := lesson(b, s)
		r := rank.New(m, l.Index, s)
		b.Run(fmt.Sprintf("Rank/%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				retrieval.Rank(l.Examples[i%len(l.Examples)].Question, l.Index, l.View)
			}
		})
		b.Run(fmt.Sprintf("Judge/%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				r.Judge(l.Examples[i%len(l.Examples)].Question, l.View)
			}
		})
	}
}
