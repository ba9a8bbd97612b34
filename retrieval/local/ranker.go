package local

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// NewRanker makes a ranker of a snapshot out of what is embedded: the index with vectors, the lexicon, the values and the
// history. It has no judge yet.
func NewRanker(ctx context.Context, s *catalog.Snapshot, e retrieval.Embedder) (*retrieval.Ranker, error) {
	r := &retrieval.Ranker{Embedder: e}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		x, err := NewWith(ctx, s, e)
		r.Index = x
		return err
	})
	g.Go(func() (err error) {
		r.Lexicon, err = retrieval.NewLexicon(ctx, s, e)
		return err
	})
	g.Go(func() (err error) {
		r.History, err = retrieval.NewHistory(ctx, s, e)
		return err
	})
	g.Go(func() error {
		r.Values = NewValues(s)
		return nil
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return r, nil
}
