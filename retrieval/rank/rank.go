// Package rank judges what retrieval.Rank found: a model learned from answered questions gives each of the best
// databases, tables and columns the probability that the question means it. Like retrieval, it sees nothing that the
// view hides.
package rank

import (
	"cmp"
	"slices"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// Judgement is what a model thinks that a question means, each list best first.
type Judgement struct {
	Databases []Database
	Tables    []Judged
	Columns   []Judged
}

// Database is a database with the probability that the answer lies in it.
type Database struct {
	Name        string
	Probability float64
}

// Judged is a table or column with the probability that the answer needs it. Score is what it stands by in its list:
// the log odds and, of a table, a part of retrieval's score.
type Judged struct {
	ID                 uint32
	Probability, Score float64
}

// Ranker judges questions about one snapshot. It is safe for concurrent use.
type Ranker struct {
	index retrieval.Index
	shape *shape
	model *Model
}

// New makes a ranker of a model and the index of a snapshot.
func New(m *Model, x retrieval.Index, s *catalog.Snapshot) *Ranker {
	return &Ranker{index: x, shape: newShape(s), model: m}
}

// Judge judges what the view lets be queried. A view of another snapshot than the ranker's has nothing to judge.
func (r *Ranker) Judge(question string, v acl.View) Judgement {
	if v.Snapshot() != r.shape.s {
		return Judgement{}
	}
	sc := newScene(question, r.shape, r.index, v)
	databases := r.model.databases(sc)
	tables := r.model.tables(sc, databases)
	var out Judgement
	for i, d := range sc.base.Databases[:len(databases.p)] {
		out.Databases = append(out.Databases, Database{d.Name, databases.p[i]})
	}
	slices.SortStableFunc(out.Databases, func(a, b Database) int { return cmp.Compare(b.Probability, a.Probability) })
	for i, p := range tables.p {
		t := sc.base.Tables[i]
		out.Tables = append(out.Tables, Judged{t.ID, p, logit(p) + floor*ratio(t.Score, sc.base.Tables[0].Score)})
	}
	slices.SortStableFunc(out.Tables, byScore)
	list := sc.candidates(tables)
	for i, features := range sc.columnFeatures(list, databases, tables) {
		p := r.model.column.Predict(features)
		out.Columns = append(out.Columns, Judged{list[i].id, p, logit(p)})
	}
	slices.SortStableFunc(out.Columns, byScore)
	return out
}

// floor is what retrieval's own score of a table counts, in log odds: what a model does not know from its lessons must
// not sink what the words say.
const floor = 4

// byScore puts the best first; equals stay in the order in which retrieval put them.
func byScore(a, b Judged) int { return cmp.Compare(b.Score, a.Score) }
