package rank

import (
	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/retrieval"
)

// Features returns all that a model could learn from in what a view shows of a question, whatever one was trained on:
// that of databases, tables and columns, in retrieval's order, as if all were equally likely.
func Features(question string, x retrieval.Index, v acl.View) (out [][]float32) {
	sc := newScene(question, newShape(v.Snapshot()), x, v)
	even := func(n int) judged {
		p := make([]float64, n)
		for i := range p {
			p[i] = 0.5
		}
		return newJudged(p)
	}
	for i := range sc.base.Databases {
		out = append(out, sc.databaseFeatures(i))
	}
	for i := range sc.base.Tables {
		out = append(out, sc.tableFeatures(i))
	}
	tables := even(len(sc.base.Tables))
	for _, r := range sc.columnFeatures(sc.candidates(tables), even(len(sc.base.Databases)), tables) {
		out = append(out, r)
	}
	return out
}
