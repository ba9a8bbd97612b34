package local

import (
	"context"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// NewRanker makes a ranker of a snapshot out of what is embedded: the index with vectors, the lexicon, the values and the
// history. It has no judge yet.
func NewRanker(ctx context.Context, s *catalog.Snapshot, e retrieval.Embedder) (*retrieval.Ranker, error) {
	index, err := NewWith(ctx, s, e)
	if err != nil {
		return nil, err
	}
	lexicon, err := retrieval.NewLexicon(ctx, s, e)
	if err != nil {
		return nil, err
	}
	history, err := retrieval.NewHistory(ctx, s, e)
	if err != nil {
		return nil, err
	}
	return &retrieval.Ranker{Index: index, Embedder: e, Lexicon: lexicon, Values: NewValues(s), History: history}, nil
}
