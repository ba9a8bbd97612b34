package retrieval

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// Ranker ranks the objects of one snapshot. Only the index is needed; what else is there adds evidence. It is safe for
// concurrent use, and must not be copied once used.
type Ranker struct {
	Index    Index
	Embedder Embedder // of the index's vectors; without one, only words count
	Lexicon  *Lexicon
	Values   Values
	History  *History // needs the embedder
	Judge    Judge
	// Weights are those of DefaultWeights if all are zero. They count only with a judge.
	Weights Weights
	// Now is time.Now if it is nil.
	Now    func() time.Time
	kin    kinships
	shapes atomic.Pointer[shape]
}

// Weights are what each term of a score counts: the similarity of meanings, the judge's probability, and how much past
// questions speak for an object (Schema-First Retrieval, Eq. 1).
type Weights struct{ Embedding, Reranker, History float64 }

// DefaultWeights are those of the paper.
var DefaultWeights = Weights{Embedding: 0.3, Reranker: 0.5, History: 0.2}

// fuse is Eq. 1. near and probability are probabilities, so that they compare.
func (w Weights) fuse(near, probability, past float64) float64 {
	return w.Embedding*near + w.Reranker*probability + w.History*past
}

// chance is the probability that a question needs what is so similar to it, all else unknown: the paper's normalised
// similarity. Fitted by logistic regression on questions of the training sets about databases that the embedder did not
// learn from (see eval's summary).
func chance(k catalog.Kind, similarity float64) float64 {
	switch {
	case similarity < MinSimilarity:
		return 0
	case k == catalog.KindColumn:
		return 1 / (1 + math.Exp(8.3-10.6*similarity))
	}
	return 1 / (1 + math.Exp(6.3-8.9*similarity))
}

func (r *Ranker) weights() Weights {
	if r.Weights == (Weights{}) {
		return DefaultWeights
	}
	return r.Weights
}

func (r *Ranker) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// Judge says how likely a question means what stands on its board. It sees nothing that the view hides.
type Judge interface {
	Judge(b *Board) Judgement
}

// Judgement holds probabilities from 0 to 1. What it leaves out was not thought worth judging.
type Judgement struct {
	Databases []float64 // by place in Board.Databases
	Tables    []Judged
	Columns   []Judged
}

// Judged is a table or column as a judge sees it.
type Judged struct {
	ID uint32
	// Probability is that of the question needing it, Given the same of a table if the answer lies in its database.
	Probability, Given float64
	// Score is what it stands by in its list, from 0 to 1.
	Score float64
}

// With returns a ranker of the same evidence with another judge, or none.
func (r *Ranker) With(j Judge) *Ranker {
	return &Ranker{Index: r.Index, Embedder: r.Embedder, Lexicon: r.Lexicon, Values: r.Values, History: r.History, Judge: j, Weights: r.Weights, Now: r.Now}
}

// Rank scores all that the view lets be queried against the question.
func (r *Ranker) Rank(ctx context.Context, question string, v acl.View) (Ranking, error) {
	b, err := r.Board(ctx, question, v)
	if err != nil {
		return Ranking{}, err
	}
	return b.Ranking(), nil
}

// Board gathers the evidence for a question, and has it judged.
func (r *Ranker) Board(ctx context.Context, question string, v acl.View) (*Board, error) {
	s := v.Snapshot()
	if s == nil {
		return &Board{asked: question, families: new(families)}, nil
	}
	b, err := newBoard(ctx, question, r, v)
	if err != nil {
		return nil, err
	}
	if r.Judge != nil && len(b.databases) > 0 {
		b.judge(r.Judge)
	}
	return b, nil
}

// shape returns the shape of a snapshot, which is made anew only when it is another one than before.
func (r *Ranker) shape(s *catalog.Snapshot) *shape {
	sh := r.shapes.Load()
	if sh == nil || sh.s != s {
		sh = newShape(s)
		r.shapes.Store(sh)
	}
	return sh
}
