package boost

import (
	"fmt"
	"slices"
)

// Continue learns what a model gets wrong about the rows, and returns one that corrects it; the model itself stays as it
// is. Few rows then move the predictions a little, where a model of them alone would know nothing else.
func Continue(m *Model, r *Rows, c Config, seed uint64) (*Model, error) {
	switch {
	case r.Features != m.features:
		return nil, fmt.Errorf("boost: rows of %d features for a model of %d", r.Features, m.features)
	case len(m.trees)+c.Trees > maxTrees:
		return nil, fmt.Errorf("boost: %d trees are to follow %d, and a model has at most %d; start from one with fewer", c.Trees, len(m.trees), maxTrees)
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	g := newGrower(r, c, seed)
	for i := range g.scores {
		g.scores[i] = m.base
	}
	for i := range m.trees {
		g.apply(&m.trees[i])
	}
	trees := slices.Clone(m.trees)
	for range c.Trees {
		trees = append(trees, g.grow())
	}
	return newModel(m.features, m.base, trees), nil
}
