package boost_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/retrieval/rank/boost"
)

// draw makes rows of features between 0 and 1 whose answer is yes with the probability that truth gives.
func draw(n, features int, seed uint64, truth func(row []float32) float64) *boost.Rows {
	r := rand.New(rand.NewPCG(seed, 1))
	rows := &boost.Rows{Features: features}
	for range n {
		row := make([]float32, features)
		for f := range row {
			row[f] = r.Float32()
		}
		rows.Add(row, r.Float64() < truth(row), 1)
	}
	return rows
}

func train(t testing.TB, rows *boost.Rows, c boost.Config) *boost.Model {
	t.Helper()
	m, err := boost.Train(rows, c, 7)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func small() boost.Config {
	c := boost.DefaultConfig
	c.Trees, c.Leaves, c.MinLeaf = 60, 8, 10
	return c
}

func certain(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func TestTrainLearnsFunctions(t *testing.T) {
	for name, truth := range map[string]func([]float32) float64{
		"a threshold":         func(x []float32) float64 { return certain(x[2] > 0.3) },
		"either but not both": func(x []float32) float64 { return certain((x[0] > 0.5) != (x[1] > 0.5)) },
		"a band":              func(x []float32) float64 { return certain(x[3] > 0.4 && x[3] < 0.6) },
		"a comparison":        func(x []float32) float64 { return certain(x[0] > x[4]) },
	} {
		t.Run(name, func(t *testing.T) {
			m := train(t, draw(6000, 6, 1, truth), small())
			unseen, right := draw(2000, 6, 2, truth), 0
			for i := range unseen.Len() {
				if (m.Predict(unseen.Values[i*6:(i+1)*6]) > 0.5) == unseen.Labels[i] {
					right++
				}
			}
			if right < 1900 {
				t.Errorf("%d of 2000 unseen rows are right, want at least 1900", right)
			}
		})
	}
}

func TestPredictionsAreTheFrequenciesOfUnseenRows(t *testing.T) {
	truth := func(x []float32) float64 { return 0.05 + 0.5*float64(x[0])*float64(x[1]) }
	m := train(t, draw(30000, 4, 3, truth), small())
	unseen := draw(30000, 4, 4, truth)
	var said, was, n [5]float64
	for i := range unseen.Len() {
		p := m.Predict(unseen.Values[i*4 : (i+1)*4])
		b := min(4, int(p*10))
		said[b] += p
		was[b] += certain(unseen.Labels[i])
		n[b]++
	}
	last := 0.0
	for b := range n {
		if n[b] < 300 {
			continue
		}
		if s, w := said[b]/n[b], was[b]/n[b]; math.Abs(s-w) > 0.05 || w <= last {
			t.Errorf("rows said to be yes with %.3f are so with %.3f, those below with %.3f", s, w, last)
		}
		last = was[b] / n[b]
	}
}

func TestWeightsCountAsRows(t *testing.T) {
	rows := draw(4000, 1, 5, func([]float32) float64 { return 0.5 })
	for i, yes := range rows.Labels {
		if yes {
			rows.Weights[i] = 3
		}
	}
	if p := train(t, rows, small()).Predict([]float32{0.5}); math.Abs(p-0.75) > 0.1 {
		t.Errorf("yes at three times the weight of no has the probability %.3f, want about 0.75", p)
	}
}

func TestLeavesHoldTheRowsThatTheyMust(t *testing.T) {
	rows := draw(3000, 3, 9, func(x []float32) float64 { return float64(x[0]) * float64(x[1]) })
	c := small()
	c.Trees, c.Leaves, c.MinLeaf, c.RowShare, c.FeatureShare = 1, 50, 200, 1, 1
	m := train(t, rows, c)
	leaves := map[float64]int{}
	for i := range rows.Len() {
		leaves[m.Predict(rows.Values[i*3:(i+1)*3])]++
	}
	if len(leaves) < 5 {
		t.Errorf("%d leaves, want at least 5", len(leaves))
	}
	for p, n := range leaves {
		if n < c.MinLeaf {
			t.Errorf("the leaf of %v holds %d rows, want at least %d", p, n, c.MinLeaf)
		}
	}
}

func TestWhatIsNotANumberStandsBelowAllOthers(t *testing.T) {
	nan := float32(math.NaN())
	rows := &boost.Rows{Features: 1}
	for i := range 400 {
		rows.Add([]float32{nan}, true, 1)
		rows.Add([]float32{float32(i) / 400}, i%20 == 0, 1)
	}
	m := train(t, rows, small())
	if p := m.Predict([]float32{nan}); p < 0.9 {
		t.Errorf("rows without a number are all yes, and said to be so with %.3f", p)
	}
	if p := m.Predict([]float32{0.5}); p > 0.3 {
		t.Errorf("one row in 20 with a number is yes, and said to be so with %.3f", p)
	}
}

func encode(t testing.TB, m *boost.Model) []byte {
	t.Helper()
	data, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func xor(x []float32) float64 { return certain((x[0] > 0.5) != (x[1] > 0.5)) }

func TestTheSameSeedGivesTheSameModel(t *testing.T) {
	rows := draw(3000, 5, 6, xor)
	if !bytes.Equal(encode(t, train(t, rows, small())), encode(t, train(t, rows, small()))) {
		t.Error("two trainings on the same rows differ")
	}
	other, err := boost.Train(rows, small(), 8)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(encode(t, train(t, rows, small())), encode(t, other)) {
		t.Error("another seed gives the same model, so the seed is not used")
	}
}

func TestAModelSurvivesItsFile(t *testing.T) {
	rows := draw(3000, 5, 6, xor)
	m := train(t, rows, small())
	data := encode(t, m)
	var back boost.Model
	if err := back.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		row := rows.Values[i*5 : (i+1)*5]
		if m.Predict(row) != back.Predict(row) {
			t.Fatalf("row %d: the model says %v, read back %v", i, m.Predict(row), back.Predict(row))
		}
	}
	if !bytes.Equal(data, encode(t, &back)) {
		t.Error("the model read back has another encoding")
	}
}

func TestAPredictionIsTheSumOfTheLeavesThatARowEndsIn(t *testing.T) {
	rows := draw(3000, 5, 6, xor)
	for _, trees := range []int{1, 40, 300} {
		c := small()
		c.Trees = trees
		c.MinLeaf = 2
		c.Leaves = 64
		m := train(t, rows, c)
		odd := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0}
		odd = append(odd, m.Thresholds()...) // a value at a threshold stays on its left
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 500 {
			row := slices.Clone(rows.Values[i*5 : (i+1)*5])
			for j := range row {
				if r.IntN(2) == 0 {
					row[j] = odd[r.IntN(len(odd))]
				}
			}
			if got, want := m.Predict(row), m.Walk(row); got != want {
				t.Fatalf("%d trees, %v: predicted %v, the leaves say %v", trees, row, got, want)
			}
		}
	}
}

func TestRowsThatComeTogetherArePredictedAsIfAlone(t *testing.T) {
	m := train(t, draw(3000, 5, 6, xor), small())
	odd := append([]float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0}, m.Thresholds()...)
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		shared := make([]float32, 5) // what rows have in common unless they differ
		for f := range shared {
			shared[f] = odd[r.IntN(len(odd))]
		}
		rows := make([][]float32, r.IntN(9))
		for i := range rows {
			rows[i] = slices.Clone(shared)
			for f := range shared {
				if r.IntN(3) == 0 {
					rows[i][f] = odd[r.IntN(len(odd))]
				}
			}
		}
		p := make([]float64, len(rows))
		m.PredictAll(p, func(i int) []float32 { return rows[i] })
		for i, row := range rows {
			if want := m.Walk(row); p[i] != want {
				t.Fatalf("row %d of %v: predicted %v, the leaves say %v", i, rows, p[i], want)
			}
		}
	}
}

// sealed gives a body its checksum.
func sealed(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(bytes.Clone(body), crc32.ChecksumIEEE(body))
}

func TestADamagedModelIsRefused(t *testing.T) {
	data := encode(t, train(t, draw(3000, 5, 6, xor), small()))
	body := data[:len(data)-4]
	put := func(at int, b ...byte) []byte {
		out := bytes.Clone(body)
		copy(out[at:], b)
		return sealed(out)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":                       {nil, "no model"},
		"another file":                  {[]byte("SQLite format 3\x00"), "no model"},
		"a later version":               {put(4, 2), "version 2"},
		"a flipped bit":                 {append([]byte("SGBT\x01\x07"), data[6:]...), "checksum"},
		"a missing end":                 {sealed(body[:len(body)-3]), "contradict"},
		"more than a model":             {sealed(append(bytes.Clone(body), 0)), "contradict"},
		"a feature beyond the row":      {put(5, 1), "contradict"},
		"a split above itself":          {put(5+8+2+6, 0, 0), "contradict"},
		"a leaf that is not there":      {put(5+8+2+6, 0x00, 0x80), "contradict"},
		"a leaf in two places":          {put(5+8+2+6, body[5+8+2+8:][:2]...), "contradict"},
		"a threshold that is no number": {put(5+8+2+2, 0, 0, 0xc0, 0x7f), "contradict"},
	} {
		t.Run(name, func(t *testing.T) {
			var m boost.Model
			if err := m.UnmarshalBinary(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}

func FuzzAModelThatIsReadPredicts(f *testing.F) {
	c := small()
	c.Trees, c.Leaves = 2, 4
	data := encode(f, train(f, draw(200, 3, 6, xor), c))
	f.Add(data[:len(data)-4])
	f.Fuzz(func(t *testing.T, body []byte) {
		var m boost.Model
		if m.UnmarshalBinary(sealed(body)) != nil {
			return
		}
		if p := m.Predict(make([]float32, m.Features())); p < 0 || p > 1 || p != p {
			t.Errorf("a prediction of %v is no probability", p)
		}
		if again := encode(t, &m); !bytes.Equal(again, sealed(body)) {
			t.Error("what was read is written otherwise")
		}
	})
}

func TestWhatCannotBeLearnedIsAnError(t *testing.T) {
	good := func() *boost.Rows { return draw(100, 2, 1, xor) }
	for name, c := range map[string]struct {
		change func(*boost.Rows, *boost.Config)
		want   string
	}{
		"only no":           {func(r *boost.Rows, _ *boost.Config) { clear(r.Labels) }, "same label"},
		"a missing value":   {func(r *boost.Rows, _ *boost.Config) { r.Values = r.Values[1:] }, "199 values"},
		"a weight of zero":  {func(r *boost.Rows, _ *boost.Config) { r.Weights[3] = 0 }, "row 3"},
		"no features":       {func(r *boost.Rows, _ *boost.Config) { r.Features = 0 }, "0 features"},
		"no trees":          {func(_ *boost.Rows, c *boost.Config) { c.Trees = 0 }, "0 trees"},
		"one leaf":          {func(_ *boost.Rows, c *boost.Config) { c.Leaves = 1 }, "1 leaves"},
		"empty leaves":      {func(_ *boost.Rows, c *boost.Config) { c.MinLeaf = 0 }, "leaves of 0 rows"},
		"too many bins":     {func(_ *boost.Rows, c *boost.Config) { c.Bins = 257 }, "257 bins"},
		"no learning":       {func(_ *boost.Rows, c *boost.Config) { c.LearningRate = 0 }, "learning rate"},
		"no number":         {func(_ *boost.Rows, c *boost.Config) { c.Shrink = math.NaN() }, "shrink"},
		"no row in a tree":  {func(_ *boost.Rows, c *boost.Config) { c.RowShare = 0 }, "shares"},
		"features and more": {func(_ *boost.Rows, c *boost.Config) { c.FeatureShare = 1.5 }, "shares"},
	} {
		t.Run(name, func(t *testing.T) {
			rows, config := good(), small()
			c.change(rows, &config)
			if _, err := boost.Train(rows, config, 1); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}

func BenchmarkTrain(b *testing.B) {
	rows := draw(500_000, 40, 1, func(x []float32) float64 { return 0.1 + 0.5*xor(x) })
	for b.Loop() {
		train(b, rows, boost.DefaultConfig)
	}
}

func BenchmarkPredict(b *testing.B) {
	rows := draw(20_000, 40, 1, func(x []float32) float64 { return 0.1 + 0.5*xor(x) })
	m := train(b, rows, boost.DefaultConfig)
	for i := 0; b.Loop(); i++ {
		at := i % rows.Len() * 40
		m.Predict(rows.Values[at : at+40])
	}
}
