package boost_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/retrieval/rank/boost"
)

// choices draws rows that stand higher or lower with their choice as a whole, so that a row by itself tells little: the
// answer is the highest of its choice.
func choices(n int, seed uint64) *boost.Rows {
	r := rand.New(rand.NewPCG(seed, 2))
	rows := &boost.Rows{Features: 2}
	for range n {
		level, answer := 4*r.Float32(), 0
		list := make([][]float32, 2+r.IntN(6))
		for i := range list {
			list[i] = []float32{level + r.Float32(), r.Float32()}
			if list[i][0] > list[answer][0] {
				answer = i
			}
		}
		rows.Choose(list, answer)
	}
	return rows
}

// chosen counts the choices whose answer the model thinks likeliest.
func chosen(m *boost.Model, rows *boost.Rows) (n int) {
	from := 0
	for _, size := range rows.Choices {
		best := from
		for i := from; i < from+size; i++ {
			if m.Predict(rows.Values[i*2:i*2+2]) > m.Predict(rows.Values[best*2:best*2+2]) {
				best = i
			}
		}
		if rows.Labels[best] {
			n++
		}
		from += size
	}
	return n
}

func TestAModelOfChoicesLearnsWhatIsBetterThanTheOthers(t *testing.T) {
	learned, unseen := choices(4000, 1), choices(1000, 2)
	c := small()
	c.Leaves = 4
	together := train(t, learned, c)
	byThemselves := *learned
	byThemselves.Choices = nil
	apart := train(t, &byThemselves, c)
	if a, b := chosen(together, unseen), chosen(apart, unseen); a < 800 || a < b+300 {
		t.Errorf("%d of 1000 choices are right, and %d by a model that takes each row by itself", a, b)
	}
}

func TestAppendedRowsKeepTheirChoices(t *testing.T) {
	all, rest := choices(1000, 1), choices(1000, 3)
	all.Append(rest)
	if len(all.Choices) != 2000 {
		t.Fatalf("%d choices of 2000", len(all.Choices))
	}
	if got := chosen(train(t, all, small()), rest); got < 650 {
		t.Errorf("%d of 1000 choices are right", got)
	}
}

func TestContinueGoesOnWithChoices(t *testing.T) {
	before := train(t, draw(500, 2, 1, func(x []float32) float64 { return certain(x[1] > 0.5) }), small())
	learned, unseen := choices(2000, 1), choices(1000, 2)
	m, err := boost.Continue(before, learned, small(), 7)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := chosen(before, unseen), chosen(m, unseen); b < 600 || b < a+300 {
		t.Errorf("of 1000 choices %d are right, before it %d", b, a)
	}
}

func TestTrainRefusesChoicesWithoutOneAnswer(t *testing.T) {
	row := []float32{0}
	for _, c := range []struct {
		name    string
		labels  []bool
		choices []int
		want    string
	}{
		{"no answer", []bool{true, false, false, false}, []int{2, 2}, "choice 1 has 0 answers"},
		{"two answers", []bool{true, true, true, false}, []int{2, 2}, "choice 0 has 2 answers"},
		{"no rows", []bool{true, false}, []int{2, 0}, "choice 1 is of 0 rows"},
		{"rows that are not there", []bool{true, false}, []int{3}, "choice 0 is of 3 rows"},
		{"rows in no choice", []bool{true, false, false}, []int{2}, "1 rows are in no choice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := &boost.Rows{Features: 1, Choices: c.choices}
			for _, label := range c.labels {
				rows.Add(row, label, 1)
			}
			if _, err := boost.Train(rows, small(), 1); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}
