package eval

import (
	"context"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/embed"
	"github.com/schemagate/schemagate/retrieval/local"
)

// nearest finds tables and columns by the likeness of their vectors to the question's, and by nothing else: at most
// Candidates of each, none below MinSimilarity. A table is as good as the best of its own vector and its columns'. It
// builds no context.
type nearest struct {
	snapshot *catalog.Snapshot
	embedder retrieval.Embedder
	index    retrieval.Index
}

func newNearest(ctx context.Context, s *catalog.Snapshot) (*nearest, error) {
	e, err := embed.New()
	if err != nil {
		return nil, err
	}
	x, err := local.NewWith(ctx, s, e)
	if err != nil {
		return nil, err
	}
	return &nearest{s, e, x}, nil
}

func (x *nearest) models() string { return embedderNamed(x.embedder) }

func (x *nearest) search(ctx context.Context, question string, v acl.View) (found, error) {
	start := time.Now()
	vectors, err := x.embedder.Embed(ctx, []string{question})
	if err != nil {
		return found{}, err
	}
	tables, columns := map[uint32]float64{}, map[uint32]float64{}
	for _, n := range x.index.Near(catalog.KindTable, vectors[0], v) {
		tables[n.ID] = n.Similarity
	}
	for _, n := range x.index.Near(catalog.KindColumn, vectors[0], v) {
		columns[n.ID] = n.Similarity
		table := x.snapshot.TableOf(n.ID)
		tables[table] = max(tables[table], n.Similarity)
	}
	f := ranked(x.snapshot, tables, columns)
	f.took = time.Since(start)
	return f, nil
}
