package rank_test

import (
	"fmt"
	"testing"

	"github.com/schemagate/schemagate/retrieval"
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
		r := system(b, s, m)
		for _, by := range []struct {
			name   string
			ranker *retrieval.Ranker
		}{{"Rank", l.Ranker}, {"Judge", r}} {
			b.Run(fmt.Sprintf("%s/%d", by.name, n), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					judge(b, by.ranker, l.Examples[i%len(l.Examples)].Question, l.View)
				}
			})
		}
	}
}
