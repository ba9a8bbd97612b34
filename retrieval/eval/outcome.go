package eval

import (
	"fmt"
	"math"
	"slices"
)

// Outcome is how one question went. Shares are from 0 to 1.
type Outcome struct {
	ID, Difficulty string
	// GoldTables and GoldColumns count what the catalog holds of the answer. Without gold columns the metrics of
	// columns mean nothing.
	GoldTables, GoldColumns   int
	TableRecall, ColumnRecall Recall
	Hit1                      float64 // 1 if the best table is a gold one
	ReciprocalRank            float64 // of the first gold table
	NDCG10, AP10              float64
	Localized                 float64 // 1 if the best database is the right one
	// HasContext tells whether a context was built; without one, what is said of it means nothing.
	HasContext      bool
	Exact, Strict   float64 // 1 if the context's columns are the gold ones, or hold them
	Columns, Tokens float64 // of the context
	// Missed tells of each gold table beyond the first five.
	Missed []Miss
}

// Recall is |gold among the first K| / |gold| at each of the depths.
type Recall [len(depths)]float64

// At returns the recall at K, which must be one of the depths.
func (r Recall) At(k int) float64 { return r[slices.Index(depths[:], k)] }

func recall(gold map[uint32]bool, ranked []uint32) (r Recall) {
	for i, k := range depths {
		found := 0
		for _, id := range ranked[:min(k, len(ranked))] {
			if gold[id] {
				found++
			}
		}
		r[i] = float64(found) / float64(len(gold))
	}
	return r
}

// rank measures a ranking of tables: the first hit, NDCG@10 with binary gain, average precision at 10.
func (o *Outcome) rank(gold map[uint32]bool, ranked []uint32) {
	first := slices.IndexFunc(ranked, func(id uint32) bool { return gold[id] })
	if first == 0 {
		o.Hit1 = 1
	}
	if first >= 0 {
		o.ReciprocalRank = 1 / float64(first+1)
	}
	var dcg, ideal, precision float64
	found := 0
	for i, id := range ranked[:min(10, len(ranked))] {
		if gold[id] {
			found++
			dcg += 1 / math.Log2(float64(i)+2)
			precision += float64(found) / float64(i+1)
		}
	}
	most := min(10, len(gold))
	for i := range most {
		ideal += 1 / math.Log2(float64(i)+2)
	}
	o.NDCG10 = dcg / ideal
	o.AP10 = precision / float64(most)
}

// ground measures a context's columns as a set.
func (o *Outcome) ground(gold map[uint32]bool, chosen []uint32) {
	found := 0
	for _, id := range chosen {
		if gold[id] {
			found++
		}
	}
	if found == len(gold) {
		o.Strict = 1
		if len(chosen) == len(gold) {
			o.Exact = 1
		}
	}
}

// figures takes the means of the outcomes of one index, of which there must be at least one.
func figures(outcomes []Outcome) Figures {
	f := Figures{TableRecall: map[string]float64{}, ColumnRecall: map[string]float64{}, Intervals: map[string]Interval{}}
	grounded := withColumns(outcomes)
	for i, k := range depths {
		f.TableRecall[fmt.Sprint(k)] = percent(mean(outcomes, func(o *Outcome) float64 { return o.TableRecall[i] }))
		if len(grounded) > 0 {
			f.ColumnRecall[fmt.Sprint(k)] = percent(mean(grounded, func(o *Outcome) float64 { return o.ColumnRecall[i] }))
		}
	}
	f.Hit1 = percent(mean(outcomes, func(o *Outcome) float64 { return o.Hit1 }))
	f.MRR = round4(mean(outcomes, func(o *Outcome) float64 { return o.ReciprocalRank }))
	f.NDCG10 = round4(mean(outcomes, func(o *Outcome) float64 { return o.NDCG10 }))
	f.MAP10 = round4(mean(outcomes, func(o *Outcome) float64 { return o.AP10 }))
	f.Localization = percent(mean(outcomes, func(o *Outcome) float64 { return o.Localized }))
	if outcomes[0].HasContext {
		f.Contexts = &Contexts{
			MeanColumns: round4(mean(outcomes, func(o *Outcome) float64 { return o.Columns })),
			MeanTokens:  round4(mean(outcomes, func(o *Outcome) float64 { return o.Tokens })),
		}
		if len(grounded) > 0 {
			f.ExactMatch = percent(mean(grounded, func(o *Outcome) float64 { return o.Exact }))
			f.StrictRecall = percent(mean(grounded, func(o *Outcome) float64 { return o.Strict }))
		}
	}
	for _, m := range measures {
		if values := m.values(outcomes); len(values) > 0 {
			f.Intervals[m.Name] = bootstrap(values).in(m)
		}
	}
	return f
}

// Group is a part of the questions. Recalls are in percent; ColumnRecall10 is nil if no question has gold columns.
type Group struct {
	Questions      int      `json:"questions"`
	TableRecall5   float64  `json:"table_recall_5"`
	ColumnRecall10 *float64 `json:"column_recall_10,omitempty"`
}

// groups splits outcomes by a name, and leaves out those that have none.
func groups(outcomes []Outcome, by func(*Outcome) string) map[string]Group {
	parts := map[string][]Outcome{}
	for _, o := range outcomes {
		if name := by(&o); name != "" {
			parts[name] = append(parts[name], o)
		}
	}
	out := map[string]Group{}
	for name, part := range parts {
		g := Group{Questions: len(part), TableRecall5: percent(mean(part, func(o *Outcome) float64 { return o.TableRecall.At(5) }))}
		if grounded := withColumns(part); len(grounded) > 0 {
			r := percent(mean(grounded, func(o *Outcome) float64 { return o.ColumnRecall.At(10) }))
			g.ColumnRecall10 = &r
		}
		out[name] = g
	}
	return out
}

func byGoldTables(o *Outcome) string {
	if o.GoldTables >= manyTables {
		return fmt.Sprintf("%d+", manyTables)
	}
	return fmt.Sprint(o.GoldTables)
}

func withColumns(outcomes []Outcome) []Outcome {
	var out []Outcome
	for _, o := range outcomes {
		if o.GoldColumns > 0 {
			out = append(out, o)
		}
	}
	return out
}

func mean(outcomes []Outcome, of func(*Outcome) float64) float64 {
	var sum float64
	for i := range outcomes {
		sum += of(&outcomes[i])
	}
	return sum / float64(len(outcomes))
}

func percent(x float64) float64 { return math.Round(x*1e4) / 100 }

func round4(x float64) float64 { return math.Round(x*1e4) / 1e4 }
