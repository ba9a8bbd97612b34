package rank

import (
	"context"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/retrieval"
)

// Features returns all that a model could learn from in what a view shows of a question, whatever one was trained on:
// that of databases, tables and columns, in retrieval's order, as if all were equally likely.
func Features(question string, r *retrieval.Ranker, v acl.View) (out [][]float32) {
	b, err := r.Board(context.Background(), question, v)
	if err != nil {
		panic(err)
	}
	sc := newScene(b, newShape(v.Snapshot()))
	even := func(n int) judged {
		p := make([]float64, n)
		for i := range p {
			p[i] = 0.5
		}
		return newJudged(p)
	}
	for i := range sc.databases {
		out = append(out, sc.databaseFeatures(i))
	}
	for i := range sc.ranked {
		out = append(out, sc.tableFeatures(i))
	}
	databases, tables := even(len(sc.databases)), even(len(sc.ranked))
	tables.given = tables.p
	list := sc.candidates(databases, tables)
	columns := make([]float64, len(list))
	for i, r := range sc.columnFeatures(list, databases, tables) {
		out = append(out, r)
		columns[i] = float64(i%7) / 7
	}
	for _, rows := range [][]row{sc.tableAgainFeatures(list, columns, tables), sc.databaseAgainFeatures(databases, tables, list, columns)} {
		for _, r := range rows {
			out = append(out, r)
		}
	}
	return out
}
