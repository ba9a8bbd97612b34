// Package rank judges what retrieval.Rank found: a model learned from answered questions gives each of the best
// databases, tables and columns the probability that the question means it. Like retrieval, it sees nothing that the
// view hides.
package rank

import (
	"math"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// Ranker judges questions about one snapshot. It is safe for concurrent use.
type Ranker struct {
	shape *shape
	model *Model
}

// New makes a ranker of a model for a snapshot.
func New(m *Model, s *catalog.Snapshot) *Ranker { return &Ranker{newShape(s), m} }

// Judge implements retrieval.Judge. A board of another snapshot than the ranker's has nothing to judge.
func (r *Ranker) Judge(b *retrieval.Board) retrieval.Judgement {
	if b.View().Snapshot() != r.shape.s {
		return retrieval.Judgement{}
	}
	sc := newScene(b, r.shape)
	defer sc.done()
	databases := r.model.databases(sc)
	tables := r.model.tables(sc, databases)
	list, columns := r.model.columns(sc, databases, tables)
	tables = r.model.tablesAgain(sc, tables, list, columns)
	again := r.model.databasesAgain(sc, databases, tables, list, columns)
	// What was thought of a table or column took its database for as likely as the first round did.
	renewed := func(p float64, table int) float64 {
		if at := sc.databaseRow[sc.databaseIn[table]] - 1; at >= 0 && at < len(again.p) {
			p *= again.p[at] / max(databases.p[at], leastChance)
		}
		return min(p, 1-leastChance)
	}
	out := retrieval.Judgement{Databases: again.p}
	for i, p := range tables.p {
		t := sc.ranked[i]
		p = renewed(p, i)
		out.Tables = append(out.Tables, retrieval.Judged{
			ID: t.ID, Probability: p, Given: tables.given[i], Score: sigmoid(logit(p) + floor*ratio(t.Score, sc.ranked[0].Score)),
		})
	}
	for i, p := range columns {
		p = renewed(p, list[i].table)
		out.Columns = append(out.Columns, retrieval.Judged{ID: list[i].id, Probability: p, Given: p, Score: p})
	}
	return out
}

// floor is what retrieval's own score of a table counts, in log odds: what a model does not know from its lessons must
// not sink what the words say.
const floor = 2

// leastChance is the least probability that is told from none.
const leastChance = 1e-6

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
