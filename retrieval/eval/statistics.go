package eval

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Measure is a figure that carries an interval.
type Measure struct {
	// Name is its key in the JSON, Title its name for people.
	Name, Title string
	// Scale is what one question's full success counts: 100 for percent, 1 for the measures that go from 0 to 1.
	Scale float64
	// of returns one question's share, and false if the question has none.
	of func(*Outcome) (float64, bool)
	// mean is its place among the figures.
	mean func(*Figures) float64
}

var measures = [...]Measure{
	{
		"table_recall_5", "table recall@5", 100,
		func(o *Outcome) (float64, bool) { return o.TableRecall.At(5), true },
		func(f *Figures) float64 { return f.TableRecall["5"] },
	},
	{
		"column_recall_10", "column recall@10", 100,
		func(o *Outcome) (float64, bool) { return o.ColumnRecall.At(10), o.GoldColumns > 0 },
		func(f *Figures) float64 { return f.ColumnRecall["10"] },
	},
	{
		"mrr", "MRR", 1,
		func(o *Outcome) (float64, bool) { return o.ReciprocalRank, true },
		func(f *Figures) float64 { return f.MRR },
	},
	{
		"localization", "localisation", 100,
		func(o *Outcome) (float64, bool) { return o.Localized, true },
		func(f *Figures) float64 { return f.Localization },
	},
}

// Measures lists the figures that carry an interval, most important first.
func Measures() []Measure { return slices.Clone(measures[:]) }

// Text writes a value of the measure with the digits that it deserves.
func (m Measure) Text(x float64) string {
	if m.Scale == 1 {
		return fmt.Sprintf("%.3f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

// Signed is Text for a difference: with its sign, unless it reads as nothing.
func (m Measure) Signed(x float64) string {
	switch nothing := m.Text(0); {
	case m.Text(math.Abs(x)) == nothing:
		return nothing
	case x > 0:
		return "+" + m.Text(x)
	}
	return m.Text(x)
}

// values collects the shares of those questions that have one.
func (m Measure) values(outcomes []Outcome) []float64 {
	var out []float64
	for i := range outcomes {
		if x, ok := m.of(&outcomes[i]); ok {
			out = append(out, x)
		}
	}
	return out
}

func (m Measure) round(x float64) float64 {
	if m.Scale == 1 {
		return round4(x)
	}
	return percent(x)
}

// Interval is a 95% interval, in the unit of its measure.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

func (i Interval) in(m Measure) Interval { return Interval{m.round(i.Low), m.round(i.High)} }

// The bootstrap draws the same samples in every run.
const (
	resamples     = 2000
	bootstrapSeed = 1
)

// bootstrap returns the percentile interval of a mean: the 50th of 2,000 resampled means, in order, and the 1,950th.
// values must not be empty.
func bootstrap(values []float64) Interval {
	random := rand.New(rand.NewPCG(bootstrapSeed, uint64(len(values))))
	means := make([]float64, resamples)
	for i := range means {
		var sum float64
		for range values {
			sum += values[random.IntN(len(values))]
		}
		means[i] = sum / float64(len(values))
	}
	slices.Sort(means)
	return Interval{means[resamples*25/1000-1], means[resamples*975/1000-1]}
}

// Comparison holds two runs over the same questions and what differs between them.
type Comparison struct {
	First  Report `json:"first"`
	Second Report `json:"second"`
	// Differences are by name of the measure.
	Differences map[string]Difference `json:"differences"`
	TablesIn5   McNemar               `json:"all_tables_in_5"` // are all gold tables among the first five
	Localized   McNemar               `json:"localized"`       // is the best database the right one
}

// Difference is the first mean less the second, with the interval of a paired bootstrap.
type Difference struct {
	Difference float64 `json:"difference"`
	Interval
}

// McNemar is the exact test of a yes or no that two runs give on each question: P is the probability of a split at
// least as uneven if neither run were better.
type McNemar struct {
	OnlyFirst  int     `json:"only_first"`  // questions on which only the first run is right
	OnlySecond int     `json:"only_second"` // likewise the second
	P          float64 `json:"p"`
}

// Chance writes P for people.
func (m McNemar) Chance() string {
	if m.P < 0.001 {
		return "p < 0.001"
	}
	return fmt.Sprintf("p = %.3f", m.P)
}

// Compare compares two runs question by question. They must have asked the same questions.
func Compare(first, second Report) (Comparison, error) {
	a, b := first.Outcomes, second.Outcomes
	same := func(x, y Outcome) bool { return x.ID == y.ID && (x.GoldColumns > 0) == (y.GoldColumns > 0) }
	if first.Set != second.Set || !slices.EqualFunc(a, b, same) {
		return Comparison{}, fmt.Errorf("%w: the runs on %s and %s asked different questions; compare runs over the same set and limit", ErrSettings, first.Set, second.Set)
	}
	c := Comparison{First: first, Second: second, Differences: map[string]Difference{}}
	for _, m := range measures {
		x, y := m.values(a), m.values(b)
		if len(x) == 0 {
			continue
		}
		var sum float64
		for i := range x {
			x[i] -= y[i]
			sum += x[i]
		}
		c.Differences[m.Name] = Difference{m.round(sum / float64(len(x))), bootstrap(x).in(m)}
	}
	c.TablesIn5 = mcNemar(a, b, func(o *Outcome) bool { return o.TableRecall.At(5) == 1 })
	c.Localized = mcNemar(a, b, func(o *Outcome) bool { return o.Localized == 1 })
	return c, nil
}

func mcNemar(a, b []Outcome, right func(*Outcome) bool) McNemar {
	var m McNemar
	for i := range a {
		switch x, y := right(&a[i]), right(&b[i]); {
		case x && !y:
			m.OnlyFirst++
		case y && !x:
			m.OnlySecond++
		}
	}
	m.P = twoSided(m.OnlyFirst, m.OnlySecond)
	return m
}

// twoSided is the chance that a fair coin, thrown x+y times, falls at least as unevenly as x to y.
func twoSided(x, y int) float64 {
	n := float64(x + y)
	lgamma := func(x float64) float64 { l, _ := math.Lgamma(x); return l }
	var tail float64
	for i := 0.0; i <= float64(min(x, y)); i++ {
		tail += math.Exp(lgamma(n+1) - lgamma(i+1) - lgamma(n-i+1) - n*math.Ln2)
	}
	return min(1, 2*tail)
}
