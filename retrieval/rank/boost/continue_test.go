package boost_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/schemagate/schemagate/retrieval/rank/boost"
)

func right(m *boost.Model, rows *boost.Rows) (n int) {
	for i := range rows.Len() {
		if (m.Predict(rows.Values[i*rows.Features:(i+1)*rows.Features]) > 0.5) == rows.Labels[i] {
			n++
		}
	}
	return n
}

// Elsewhere the answer is either of two and not both; here it is also yes wherever x[2] is high. The rows from here alone
// teach less than they do on top of what is known from elsewhere.
func TestContinueCorrectsAModelByFewRows(t *testing.T) {
	elsewhere := func(x []float32) float64 { return certain((x[0] > 0.5) != (x[1] > 0.5)) }
	here := func(x []float32) float64 { return certain(x[2] > 0.7 || (x[0] > 0.5) != (x[1] > 0.5)) }
	general := train(t, draw(6000, 4, 1, elsewhere), small())
	few, unseen := draw(150, 4, 2, here), draw(4000, 4, 3, here)
	before, err := general.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	m, err := boost.Continue(general, few, small(), 7)
	if err != nil {
		t.Fatal(err)
	}
	own := train(t, few, small())
	if a, b, c := right(general, unseen), right(own, unseen), right(m, unseen); c < a+300 || c < b+100 {
		t.Errorf("of 4000 rows %d are right, without what was learned here %d, with nothing else %d", c, a, b)
	}
	if after, err := general.MarshalBinary(); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the model that it goes on from has changed (%v)", err)
	}
	again, err := boost.Continue(general, few, small(), 7)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := m.MarshalBinary()
	if b, _ := again.MarshalBinary(); !bytes.Equal(a, b) {
		t.Error("the same rows give another model")
	}
}

func TestContinueRefusesWhatDoesNotFit(t *testing.T) {
	m := train(t, draw(500, 4, 1, func(x []float32) float64 { return certain(x[0] > 0.5) }), small())
	if _, err := boost.Continue(m, draw(100, 3, 1, func([]float32) float64 { return 0.5 }), small(), 1); err == nil {
		t.Error("rows of other features were taken")
	}
	if _, err := boost.Continue(m, draw(100, 4, 1, func([]float32) float64 { return 1 }), small(), 1); !errors.Is(err, boost.ErrOneLabel) {
		t.Errorf("rows that are all yes: %v", err)
	}
	endless := small()
	endless.Trees = 9_990
	if _, err := boost.Continue(m, draw(100, 4, 1, func([]float32) float64 { return 0.5 }), endless, 1); err == nil {
		t.Error("a model grew beyond what its file can say")
	}
}
