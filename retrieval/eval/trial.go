package eval

import (
	"context"
	"fmt"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/rank"
)

// Verdict says whether a ranker is better than another.
type Verdict string

// The verdicts. TooFew means that the questions lean one way but too few of them do to tell.
const (
	Better    Verdict = "better"
	NotBetter Verdict = "not-better"
	TooFew    Verdict = "too-few-questions"
)

// leastTrial is the number of questions below which nothing is told.
const leastTrial = 30

// Trial compares a ranker with the one before it, on questions that it did not learn from. Measures are by name; a
// difference is what the new one has over the one before, with the interval of a paired bootstrap.
type Trial struct {
	Questions   int                   `json:"questions"`
	Before      map[string]float64    `json:"before"`
	After       map[string]float64    `json:"after"`
	Differences map[string]Difference `json:"differences"`
	// Merit decides: the mean of a question's measures, in percent.
	Merit   Difference `json:"merit"`
	Verdict Verdict    `json:"verdict"`
}

var merit = Measure{Name: "merit", Title: "all together", Scale: 100, of: func(o *Outcome) (float64, bool) {
	var sum, n float64
	for _, m := range measures {
		if x, ok := m.of(o); ok {
			sum += x
			n++
		}
	}
	return sum / n, true
}}

// Try puts questions to both rankers. The new one is better if its merit is above the other's beyond chance, and no
// single measure is below beyond chance.
func Try(ctx context.Context, questions []rank.Example, v acl.View, before, after *retrieval.Ranker) (Trial, error) {
	t := Trial{Questions: len(questions), Before: map[string]float64{}, After: map[string]float64{}, Differences: map[string]Difference{}, Verdict: TooFew}
	if len(questions) == 0 {
		return t, nil
	}
	first, err := outcomes(ctx, questions, v, before)
	if err != nil {
		return Trial{}, err
	}
	second, err := outcomes(ctx, questions, v, after)
	if err != nil {
		return Trial{}, err
	}
	worse := false
	for _, m := range measures {
		x, y := m.values(first), m.values(second)
		if len(x) == 0 {
			continue
		}
		t.Before[m.Name], t.After[m.Name] = m.round(average(x)), m.round(average(y))
		mean, interval := paired(y, x)
		t.Differences[m.Name] = Difference{m.round(mean), interval.in(m)}
		worse = worse || interval.High < 0
	}
	mean, interval := paired(merit.values(second), merit.values(first))
	t.Merit = Difference{merit.round(mean), interval.in(merit)}
	switch {
	case len(questions) < leastTrial:
	case worse, mean <= 0:
		t.Verdict = NotBetter
	case interval.Low > 0:
		t.Verdict = Better
	}
	return t, nil
}

// outcomes ranks questions and says how it went.
func outcomes(ctx context.Context, questions []rank.Example, v acl.View, r *retrieval.Ranker) ([]Outcome, error) {
	out := make([]Outcome, len(questions))
	for i, q := range questions {
		b, err := r.Board(ctx, q.Question, v)
		if err != nil {
			return nil, fmt.Errorf("eval: question %d: %w", i+1, err)
		}
		ranking, q := b.Ranking(), q.Led(b)
		tables := ids(ranking.Tables)
		o := &out[i]
		o.ID, o.GoldTables, o.GoldColumns = fmt.Sprint(i+1), len(q.Tables), len(q.Columns)
		o.TableRecall = recall(q.Tables, tables)
		o.rank(q.Tables, tables)
		if len(ranking.Databases) > 0 && ranking.Databases[0].Name == q.Database {
			o.Localized = 1
		}
		if len(q.Columns) > 0 {
			o.ColumnRecall = recall(q.Columns, ids(ranking.Columns))
		}
	}
	return out, nil
}

// paired returns the mean of x less y, with its interval.
func paired(x, y []float64) (float64, Interval) {
	d := make([]float64, len(x))
	for i := range x {
		d[i] = x[i] - y[i]
	}
	return average(d), bootstrap(d)
}

func average(values []float64) float64 {
	var sum float64
	for _, x := range values {
		sum += x
	}
	return sum / float64(len(values))
}
