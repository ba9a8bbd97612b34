package rank

import (
	"context"
	"errors"

	"github.com/schemagate/schemagate/retrieval/rank/boost"
)

// RetrainConfig suits the few thousand questions of a deployment: it corrects more than it learns.
var RetrainConfig = boost.Config{
	Trees: 40, Leaves: 6, MinLeaf: 20, Bins: 64, LearningRate: 0.08, Shrink: 30, RowShare: 0.7, FeatureShare: 0.7,
}

// Retrain goes on from a model with a deployment's own lessons. A part about which they say nothing stays as it is, as
// that about databases does where there is only one.
func Retrain(ctx context.Context, from *Model, lessons []Lesson, c boost.Config, seed uint64, progress func(string)) (*Model, error) {
	parts := map[stage]*boost.Model{databaseStage: from.database, tableStage: from.table, columnStage: from.column, tableAgainStage: from.tableAgain, databaseAgainStage: from.databaseAgain}
	return newTrainer(ctx, lessons, progress, seed, func(s stage, r *boost.Rows) (*boost.Model, error) {
		m, err := boost.Continue(parts[s], r, c, seed)
		if errors.Is(err, boost.ErrOneLabel) {
			return parts[s], nil
		}
		return m, err
	}).train()
}
