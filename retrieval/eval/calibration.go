package eval

import (
	"slices"
	"strings"
	"sync"

	"github.com/schemagate/schemagate/retrieval"
)

// Reliability compares the probabilities that a judge gave with what was true. Only what was judged counts: what it left
// out has no probability. All figures are from 0 to 1.
type Reliability struct {
	Judged int     `json:"judged"`
	Meant  float64 `json:"meant"` // share of them that the question did mean
	// Error is the expected calibration error: the mean of |probability - share meant| over the bins, each as heavy as
	// what it holds. Most that is judged is hardly likely, so look at the bins as well.
	Error float64 `json:"expected_calibration_error"`
	Brier float64 `json:"brier"` // mean square of probability less truth
	Bins  []Bin   `json:"bins"`
}

// Bin holds the probabilities from From up to To, which only the last bin includes.
type Bin struct {
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Judged int     `json:"judged"`
	// The means of the probabilities and of the truth, which are zero in an empty bin.
	Probability float64 `json:"probability"`
	Meant       float64 `json:"meant"`
}

// What is judged. Tables are judged given that the answer lies in their database, so only those of the right one count.
const (
	judgedDatabases = iota
	judgedTables
	judgedColumns
)

var judgedNames = [...]string{judgedDatabases: "databases", judgedTables: "tables", judgedColumns: "columns"}

// Judged lists the keys of Report.Calibration.
func Judged() []string { return slices.Clone(judgedNames[:]) }

// calibration counts probabilities by what they are of.
type calibration [len(judgedNames)]tally

// tally counts probabilities in bins of equal width.
type tally [10]struct {
	judged, meant int
	sum, square   float64 // of probabilities, of their distances from the truth
}

func (t *tally) add(p float64, meant bool) {
	b := &t[min(int(p*float64(len(t))), len(t)-1)]
	truth := 0.0
	if meant {
		truth = 1
		b.meant++
	}
	b.judged++
	b.sum += p
	b.square += (p - truth) * (p - truth)
}

func (c *calibration) merge(other *calibration) {
	for i := range c {
		for j := range c[i] {
			b, o := &c[i][j], &other[i][j]
			b.judged, b.meant, b.sum, b.square = b.judged+o.judged, b.meant+o.meant, b.sum+o.sum, b.square+o.square
		}
	}
}

// reliabilities is nil if nothing was judged.
func (c *calibration) reliabilities() map[string]Reliability {
	var out map[string]Reliability
	for i, name := range judgedNames {
		if r := c[i].reliability(); r.Judged > 0 {
			if out == nil {
				out = map[string]Reliability{}
			}
			out[name] = r
		}
	}
	return out
}

func (t *tally) reliability() Reliability {
	var r Reliability
	meant, apart, square := 0, 0.0, 0.0
	for i, b := range t {
		bin := Bin{From: float64(i) / float64(len(t)), To: float64(i+1) / float64(len(t)), Judged: b.judged}
		if b.judged > 0 {
			bin.Probability, bin.Meant = round4(b.sum/float64(b.judged)), round4(float64(b.meant)/float64(b.judged))
		}
		r.Bins = append(r.Bins, bin)
		r.Judged += b.judged
		meant += b.meant
		apart += max(b.sum-float64(b.meant), float64(b.meant)-b.sum)
		square += b.square
	}
	if n := float64(r.Judged); n > 0 {
		r.Meant, r.Error, r.Brier = round4(float64(meant)/n), round4(apart/n), round4(square/n)
	}
	return r
}

// verdict is what a judge said of a question.
type verdict struct {
	retrieval.Judgement
	names []string // of the judged databases
}

// recorder is a judge that keeps what it said of each board until that is taken. It is safe for concurrent use.
type recorder struct {
	judge retrieval.Judge
	said  sync.Map // *verdict by *retrieval.Board
}

// Judge implements retrieval.Judge.
func (r *recorder) Judge(b *retrieval.Board) retrieval.Judgement {
	v := &verdict{Judgement: r.judge.Judge(b)}
	for _, d := range b.Databases()[:len(v.Databases)] {
		v.names = append(v.names, d.Name)
	}
	r.said.Store(b, v)
	return v.Judgement
}

// take returns what was said of a board, nil if that was not judged.
func (r *recorder) take(b *retrieval.Board) *verdict {
	v, ok := r.said.LoadAndDelete(b)
	if !ok {
		return nil
	}
	return v.(*verdict)
}

// calibration compares a verdict, if there is one, with the known answer. Without gold columns nothing is known of them.
func (m *material) calibration(q *posed, v *verdict) (c calibration) {
	if v == nil {
		return c
	}
	judged := false // whether the right database was
	for i, p := range v.Databases {
		right := strings.EqualFold(v.names[i], q.DB)
		judged = judged || right
		c[judgedDatabases].add(p, right)
	}
	for _, t := range v.Tables {
		if judged && strings.EqualFold(m.snapshot.Object(t.ID).Ref.Database, q.DB) {
			c[judgedTables].add(t.Given, q.tables[t.ID])
		}
	}
	if len(q.columns) > 0 {
		for _, x := range v.Columns {
			c[judgedColumns].add(x.Probability, q.columns[x.ID])
		}
	}
	return c
}
