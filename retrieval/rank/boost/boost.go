// Package boost learns yes-or-no answers from numbers: gradient-boosted trees over histograms, grown leaf by leaf, with
// logistic loss, so that a prediction is a probability. The same rows, configuration and seed give the same model.
package boost

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Config says how much to learn.
type Config struct {
	Trees        int
	Leaves       int     // of each tree, at most
	MinLeaf      int     // rows in a leaf, at least
	Bins         int     // values that a feature is rounded to, at most 256
	LearningRate float64 // share of a tree's correction that is taken
	Shrink       float64 // L2 penalty on a leaf's correction
	RowShare     float64 // rows that each tree sees, 0 to 1
	FeatureShare float64 // features that each tree sees, 0 to 1
}

// DefaultConfig suits a few hundred thousand rows of a few dozen features.
var DefaultConfig = Config{Trees: 150, Leaves: 20, MinLeaf: 40, Bins: 64, LearningRate: 0.08, Shrink: 5, RowShare: 0.7, FeatureShare: 0.7}

// The greatest sizes that a model's file can say.
const (
	maxTrees    = 10_000
	maxLeaves   = 64 // a word has a bit for each
	maxFeatures = 1_000
)

// Validate reports what is wrong with the configuration.
func (c Config) Validate() error {
	switch {
	case c.Trees < 1 || c.Trees > maxTrees:
		return fmt.Errorf("boost: %d trees; give 1 to %d", c.Trees, maxTrees)
	case c.Leaves < 2 || c.Leaves > maxLeaves:
		return fmt.Errorf("boost: %d leaves; give 2 to %d", c.Leaves, maxLeaves)
	case c.MinLeaf < 1:
		return fmt.Errorf("boost: leaves of %d rows; give at least 1", c.MinLeaf)
	case c.Bins < 2 || c.Bins > 256:
		return fmt.Errorf("boost: %d bins; give 2 to 256", c.Bins)
	case !(c.LearningRate > 0 && c.LearningRate <= 1):
		return fmt.Errorf("boost: a learning rate of %v; give one above 0 and up to 1", c.LearningRate)
	case !(c.Shrink >= 0) || math.IsInf(c.Shrink, 0):
		return fmt.Errorf("boost: a shrink of %v; give 0 or more", c.Shrink)
	case !(c.RowShare > 0 && c.RowShare <= 1), !(c.FeatureShare > 0 && c.FeatureShare <= 1):
		return fmt.Errorf("boost: shares of %v of the rows and %v of the features; give shares above 0 and up to 1", c.RowShare, c.FeatureShare)
	}
	return nil
}

// Rows are what is learned from. A value that is not a number stands below all others.
type Rows struct {
	Features int
	Values   []float32 // row after row
	Labels   []bool
	Weights  []float32 // what each row counts, above 0
	// Choices are the numbers of rows, one choice after the other, of which exactly one is yes (a conditional logit). A
	// model of choices learns which row of a choice is likelier, so only the odds of rows of the same choice compare.
	// Without any, each row is yes or no by itself.
	Choices []int
}

// Add appends a row.
func (r *Rows) Add(values []float32, label bool, weight float32) {
	r.Values, r.Labels, r.Weights = append(r.Values, values...), append(r.Labels, label), append(r.Weights, weight)
}

// Choose appends a choice: rows of which one is the answer.
func (r *Rows) Choose(rows [][]float32, answer int) {
	for i, values := range rows {
		r.Add(values, i == answer, 1)
	}
	r.Choices = append(r.Choices, len(rows))
}

// Append appends what another has.
func (r *Rows) Append(o *Rows) {
	r.Values, r.Labels, r.Weights = append(r.Values, o.Values...), append(r.Labels, o.Labels...), append(r.Weights, o.Weights...)
	r.Choices = append(r.Choices, o.Choices...)
}

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.Labels) }

// ErrOneLabel says that the rows are all yes or all no.
var ErrOneLabel = errors.New("boost: all rows have the same label, so there is nothing to learn; add examples of the other")

func (r *Rows) validate() error {
	switch {
	case r.Features < 1 || r.Features > maxFeatures:
		return fmt.Errorf("boost: rows of %d features; give 1 to %d", r.Features, maxFeatures)
	case len(r.Values) != r.Len()*r.Features || len(r.Weights) != r.Len():
		return fmt.Errorf("boost: %d labels of %d features come with %d values and %d weights", r.Len(), r.Features, len(r.Values), len(r.Weights))
	case !slices.Contains(r.Labels, true) || !slices.Contains(r.Labels, false):
		return ErrOneLabel
	case r.Len() > math.MaxInt32:
		return fmt.Errorf("boost: %d rows are more than can be counted", r.Len())
	}
	for i, w := range r.Weights {
		if !(w > 0) || math.IsInf(float64(w), 0) {
			return fmt.Errorf("boost: row %d has the weight %v; give one above 0", i, w)
		}
	}
	if len(r.Choices) == 0 {
		return nil
	}
	rest := r.Labels
	for i, n := range r.Choices {
		if n < 1 || n > len(rest) {
			return fmt.Errorf("boost: choice %d is of %d rows where %d are left; give it those that it has", i, n, len(rest))
		}
		answers := 0
		for _, yes := range rest[:n] {
			if yes {
				answers++
			}
		}
		if answers != 1 {
			return fmt.Errorf("boost: choice %d has %d answers; give one", i, answers)
		}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("boost: %d rows are in no choice; give all or none a choice", len(rest))
	}
	return nil
}

// Model predicts. It is safe for concurrent use.
type Model struct {
	features int
	base     float32 // log odds before any tree
	trees    []tree
	scorer   scorer // of the trees
}

func newModel(features int, base float32, trees []tree) *Model {
	return &Model{features, base, trees, newScorer(features, trees)}
}

// tree is a list of splits, the root first, each before those below it.
type tree struct {
	splits []split
	leaves []float32
}

// split sends a row with a value above the threshold to the right. A child below zero is leaf number -1-child.
type split struct {
	threshold   float32
	feature     uint16
	left, right int16
}

// Features returns the number of values that Predict wants.
func (m *Model) Features() int { return m.features }

// Predict returns the probability of yes. A row of another length than the model's has none: it panics.
func (m *Model) Predict(row []float32) float64 {
	var p [1]float64
	m.PredictAll(p[:], func(int) []float32 { return row })
	return p[0]
}

// PredictAll is Predict for the rows that go by the places in p, which is quicker than one after the other.
func (m *Model) PredictAll(p []float64, row func(i int) []float32) {
	sums := make([]float32, len(p))
	for i := range sums {
		if n := len(row(i)); n != m.features {
			panic(fmt.Sprintf("boost: a row of %d values for a model of %d features", n, m.features))
		}
		sums[i] = m.base
	}
	m.scorer.add(sums, row)
	for i, x := range sums {
		p[i] = sigmoid(float64(x))
	}
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Train learns a model.
func Train(r *Rows, c Config, seed uint64) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	g := newGrower(r, c, seed)
	var trees []tree
	for range c.Trees {
		trees = append(trees, g.grow())
	}
	return newModel(r.Features, g.base, trees), nil
}

// cell sums the rows of a leaf that have a feature in one bin.
type cell struct {
	gradient, hessian float64
	rows              int
}

// slope is a row's part in a cell.
type slope struct{ gradient, hessian float32 }

// grower grows one tree after the other, each towards what those before it left wrong.
type grower struct {
	rows    *Rows
	config  Config
	random  *rand.Rand
	edges   [][]float32 // by feature: the greatest value of each bin but the last
	bins    []uint8     // row after row
	base    float32
	scores  []float32 // log odds by row
	slopes  []slope   // by row
	order   []int32   // rows that the tree sees, those of a leaf side by side
	scratch []int32
	picked  []int // features that the tree sees
	free    [][]cell
}

func newGrower(r *Rows, c Config, seed uint64) *grower {
	g := &grower{
		rows: r, config: c, random: rand.New(rand.NewPCG(seed, 0)), bins: make([]uint8, len(r.Values)),
		scores: make([]float32, r.Len()), slopes: make([]slope, r.Len()), scratch: make([]int32, r.Len()),
	}
	for f := range r.Features {
		e := g.edgesOf(f)
		g.edges = append(g.edges, e)
		for i := range r.Len() {
			at := i*r.Features + f
			g.bins[at] = bin(e, r.Values[at])
		}
	}
	var yes, all float64
	for i, w := range r.Weights {
		all += float64(w)
		if r.Labels[i] {
			yes += float64(w)
		}
	}
	g.base = float32(math.Log(yes / (all - yes)))
	for i := range g.scores {
		g.scores[i] = g.base
	}
	return g
}

// bin returns the number of edges below a value, which is how Predict compares.
func bin(edges []float32, x float32) uint8 {
	lo, hi := 0, len(edges)
	for lo < hi {
		if mid := (lo + hi) / 2; x > edges[mid] {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return uint8(lo)
}

// edgeSample is the number of rows that the edges of bins are chosen by.
const edgeSample = 50_000

// edgesOf chooses bins that hold about as many rows each, with edges halfway between neighbouring values.
func (g *grower) edgesOf(f int) []float32 {
	var values []float32
	step := max(1, g.rows.Len()/edgeSample)
	for i := 0; i < g.rows.Len(); i += step {
		if x := g.rows.Values[i*g.rows.Features+f]; x == x && !math.IsInf(float64(x), 0) {
			values = append(values, x)
		}
	}
	slices.Sort(values)
	distinct := slices.Compact(slices.Clone(values))
	var out []float32
	between := func(a, b float32) {
		if e := a + (b-a)/2; len(out) == 0 || e > out[len(out)-1] {
			out = append(out, e)
		}
	}
	if len(distinct) <= g.config.Bins {
		for i := 1; i < len(distinct); i++ {
			between(distinct[i-1], distinct[i])
		}
		return out
	}
	for b := 1; b < g.config.Bins; b++ {
		at := b * len(values) / g.config.Bins
		next, _ := slices.BinarySearch(distinct, values[at])
		if next > 0 {
			between(distinct[next-1], distinct[next])
		}
	}
	return out
}

// leaf is a part of the order, and how best to split it.
type leaf struct {
	from, to          int
	cells             []cell
	gradient, hessian float64
	parent            int // split above it, -1 for none
	right             bool
	gain              float64
	feature, bin      int
}

func (g *grower) grow() tree {
	g.prepare()
	root := &leaf{from: 0, to: len(g.order), parent: -1, cells: g.sum(0, len(g.order))}
	for _, row := range g.order {
		root.gradient += float64(g.slopes[row].gradient)
		root.hessian += float64(g.slopes[row].hessian)
	}
	g.seek(root)
	leaves := []*leaf{root}
	var t tree
	for len(leaves) < g.config.Leaves {
		best := 0
		for i, l := range leaves {
			if l.gain > leaves[best].gain {
				best = i
			}
		}
		l := leaves[best]
		if l.gain <= 0 {
			break
		}
		left, right := g.part(l, len(t.splits))
		t.splits = append(t.splits, split{threshold: g.edges[l.feature][l.bin], feature: uint16(l.feature)})
		hang(&t, l, int16(len(t.splits)-1))
		leaves[best] = left
		leaves = append(leaves, right)
	}
	for i, l := range leaves {
		t.leaves = append(t.leaves, float32(-g.config.LearningRate*l.gradient/(l.hessian+g.config.Shrink)))
		hang(&t, l, int16(-1-i))
		g.free = append(g.free, l.cells)
	}
	g.apply(&t)
	return t
}

// hang puts a child in the place of a leaf.
func hang(t *tree, l *leaf, child int16) {
	switch {
	case l.parent < 0:
	case l.right:
		t.splits[l.parent].right = child
	default:
		t.splits[l.parent].left = child
	}
}

// prepare draws what the next tree sees, and computes what is left to explain.
func (g *grower) prepare() {
	g.order = g.order[:0]
	chances := g.chances()
	for i, w := range g.rows.Weights {
		p := chances[i]
		d := p
		if g.rows.Labels[i] {
			d = p - 1
		}
		g.slopes[i] = slope{w * d, w * max(p*(1-p), 1e-6)}
		if g.config.RowShare == 1 || g.random.Float64() < g.config.RowShare {
			g.order = append(g.order, int32(i))
		}
	}
	g.picked = g.random.Perm(g.rows.Features)
	g.picked = g.picked[:int(math.Ceil(g.config.FeatureShare*float64(g.rows.Features)))]
	slices.Sort(g.picked)
}

// chances returns how likely each row is thought to be yes: by itself, or among the rows of its choice.
func (g *grower) chances() []float32 {
	out := make([]float32, len(g.scores))
	if len(g.rows.Choices) == 0 {
		for i, x := range g.scores {
			out[i] = float32(sigmoid(float64(x)))
		}
		return out
	}
	from := 0
	for _, n := range g.rows.Choices {
		scores, sum := g.scores[from:from+n], 0.0
		most := slices.Max(scores)
		for _, x := range scores {
			sum += math.Exp(float64(x - most))
		}
		for i, x := range scores {
			out[from+i] = float32(math.Exp(float64(x-most)) / sum)
		}
		from += n
	}
	return out
}

// sum fills the cells of a part of the order, Bins to a feature.
func (g *grower) sum(from, to int) []cell {
	var cells []cell
	if n := len(g.free); n > 0 {
		cells, g.free = g.free[n-1], g.free[:n-1]
		clear(cells)
	} else {
		cells = make([]cell, g.rows.Features*g.config.Bins)
	}
	for _, row := range g.order[from:to] {
		s := g.slopes[row]
		gradient, hessian := float64(s.gradient), float64(s.hessian)
		bins := g.bins[int(row)*g.rows.Features:][:g.rows.Features]
		for _, f := range g.picked {
			c := &cells[f*g.config.Bins+int(bins[f])]
			c.gradient += gradient
			c.hessian += hessian
			c.rows++
		}
	}
	return cells
}

// seek finds the best split of a leaf. Its gain stays zero if there is none.
func (g *grower) seek(l *leaf) {
	worth := func(gradient, hessian float64) float64 { return gradient * gradient / (hessian + g.config.Shrink) }
	whole, rows := worth(l.gradient, l.hessian), l.to-l.from
	for _, f := range g.picked {
		var left cell
		for b := range g.edges[f] {
			c := l.cells[f*g.config.Bins+b]
			left.gradient += c.gradient
			left.hessian += c.hessian
			left.rows += c.rows
			if left.rows < g.config.MinLeaf || rows-left.rows < g.config.MinLeaf {
				continue
			}
			gain := worth(left.gradient, left.hessian) + worth(l.gradient-left.gradient, l.hessian-left.hessian) - whole
			if gain > l.gain+1e-9 {
				l.gain, l.feature, l.bin = gain, f, b
			}
		}
	}
}

// part splits a leaf's rows. The cells of the smaller side are summed, those of the other are what remains.
func (g *grower) part(l *leaf, at int) (left, right *leaf) {
	right = &leaf{to: l.to, parent: at, right: true}
	mid, aside := l.from, 0
	for _, row := range g.order[l.from:l.to] {
		if int(g.bins[int(row)*g.rows.Features+l.feature]) <= l.bin {
			g.order[mid] = row
			mid++
		} else {
			g.scratch[aside] = row
			aside++
		}
	}
	copy(g.order[mid:l.to], g.scratch[:aside])
	left, right.from = &leaf{from: l.from, to: mid, parent: at}, mid
	for b := 0; b <= l.bin; b++ {
		c := l.cells[l.feature*g.config.Bins+b]
		left.gradient += c.gradient
		left.hessian += c.hessian
	}
	right.gradient, right.hessian = l.gradient-left.gradient, l.hessian-left.hessian
	small, large := left, right
	if mid-l.from > l.to-mid {
		small, large = right, left
	}
	small.cells = g.sum(small.from, small.to)
	large.cells = l.cells
	for i := range large.cells {
		large.cells[i].gradient -= small.cells[i].gradient
		large.cells[i].hessian -= small.cells[i].hessian
		large.cells[i].rows -= small.cells[i].rows
	}
	g.seek(left)
	g.seek(right)
	return left, right
}

// apply adds a tree's corrections to all rows, those that it did not see too.
func (g *grower) apply(t *tree) {
	if len(t.splits) == 0 {
		for i := range g.scores {
			g.scores[i] += t.leaves[0]
		}
		return
	}
	n := g.rows.Features
	for i := range g.scores {
		row := g.rows.Values[i*n : (i+1)*n]
		at := int16(0)
		for at >= 0 {
			s := &t.splits[at]
			if at = s.left; row[s.feature] > s.threshold {
				at = s.right
			}
		}
		g.scores[i] += t.leaves[-1-at]
	}
}
