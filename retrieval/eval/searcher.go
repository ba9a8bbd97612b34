package eval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/lineage"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/embed"
	"github.com/schemagate/schemagate/retrieval/local"
	"github.com/schemagate/schemagate/retrieval/rank"
	"github.com/schemagate/schemagate/templates"
)

// The indexes that can be measured.
const (
	Local   = "local"   // the embedded index and the linker over it
	BM25    = "bm25"    // a baseline: plain BM25 over rendered objects, a collection for each type
	Unified = "unified" // the same with all types in one collection
	Vectors = "vectors" // a baseline: tables and columns by their vectors alone
)

// Indexes lists what Options.Index can name.
var Indexes = [...]string{Local, BM25, Unified, Vectors}

// searcher is what is measured: it finds what a question speaks of among what the view shows. Implementations are safe
// for concurrent use, and answer a question in the goroutine that asks.
type searcher interface {
	search(ctx context.Context, question string, v acl.View) (found, error)
	// models names the models that run, or is none.
	models() string
}

// found is what a question brings. Lists are best first.
type found struct {
	database        string // the best one; empty if nothing fits
	tables, columns []uint32
	context         *grounding          // nil from a searcher that builds no context
	leader          func(uint32) uint32 // of alike tables, and their columns, the one that ranks; nil if each ranks for itself
	took            time.Duration
	phases          map[string]time.Duration // what can be timed by itself, by name
	verdict         *verdict                 // nil where nothing was judged
}

// grounding is what a context holds.
type grounding struct {
	columns []uint32
	tokens  int
}

func newSearcher(ctx context.Context, m *material, o Options) (searcher, error) {
	if o.Index == "" || o.Index == Local {
		return newLinked(ctx, m.snapshot, o)
	}
	switch {
	case o.History != "":
		return nil, fmt.Errorf("%w: %s ranks by tables and columns alone, so past queries would change nothing; leave the history out", ErrSettings, o.Index)
	case o.Ablate == PartColumns:
		return nil, fmt.Errorf("%w: %s finds columns by their own text only, so it cannot go without", ErrSettings, o.Index)
	case slices.Contains(rankingParts[:], o.Ablate):
		return nil, fmt.Errorf("%w: %s is no more than it is, and %s is no part of it that could be left out", ErrSettings, o.Index, o.Ablate)
	case o.Weights != Weights{}:
		return nil, fmt.Errorf("%w: %s has no weights", ErrSettings, o.Index)
	case o.Index == Vectors:
		return newNearest(ctx, m.snapshot)
	}
	return newBaseline(m.snapshot, o.Index == Unified)
}

// linked searches as the product does. All that is known here of the linker is in this type.
type linked struct {
	ranker *retrieval.Ranker
	linker *retrieval.Linker
	judge  *recorder // nil without one
	names  []string  // of the models
}

// The phases that linked times. Together they are all that an asker waits for.
const (
	phaseRank = "rank" // evidence is gathered and judged
	phaseLink = "link" // tables and columns are selected, tied together and written down
)

func newLinked(ctx context.Context, s *catalog.Snapshot, o Options) (*linked, error) {
	switch {
	case o.Ablate == PartJudge && o.Weights != Weights{}:
		return nil, fmt.Errorf("%w: weights count only with a judge, so it cannot be left out here", ErrSettings)
	case o.Ablate == PartValueSearch && !holdsValues(s):
		return nil, fmt.Errorf("%w: the catalog holds no values, so there is nothing that a search for them could find", ErrSettings)
	}
	e, err := embed.New()
	if err != nil {
		return nil, err
	}
	l := new(linked)
	if l.ranker, err = local.NewRanker(ctx, s, e); err != nil {
		return nil, err
	}
	l.ranker.Weights = retrieval.Weights(o.Weights)
	switch o.Ablate {
	case PartColumns:
		l.ranker.Index = withoutColumns{l.ranker.Index}
	case PartVectors:
		l.ranker.Embedder, l.ranker.Lexicon, l.ranker.History = nil, nil, nil
	case PartLexicon:
		l.ranker.Lexicon = nil
	case PartValueSearch:
		l.ranker.Values = nil
	}
	if l.ranker.Embedder != nil {
		l.names = append(l.names, embedderNamed(e))
	}
	if o.Ablate != PartJudge {
		model, err := rank.Shipped()
		if err != nil {
			return nil, err
		}
		l.judge = &recorder{judge: rank.New(model, s)}
		l.ranker.Judge = l.judge
		l.names = append(l.names, "ranker "+model.Name())
	}
	counter := templates.NewCounter()
	counter.Tokens("a") // loads its vocabulary, so that the first question need not wait for it
	l.linker, err = retrieval.NewLinker(l.ranker, lineage.New(s), counter, retrieval.DefaultConfig)
	return l, err
}

// holdsValues reports whether a value search can find anything in a catalog.
func holdsValues(s *catalog.Snapshot) bool {
	return slices.ContainsFunc(s.Objects(catalog.KindColumn), func(o catalog.Object) bool {
		return len(o.Column.Samples)+len(o.Column.Dictionary) > 0
	})
}

func embedderNamed(e retrieval.Embedder) string { return "embedder " + e.Name() }

func (l *linked) models() string { return strings.Join(l.names, ", ") }

func (l *linked) search(ctx context.Context, question string, v acl.View) (found, error) {
	start := time.Now()
	b, err := l.ranker.Board(ctx, question, v)
	if err != nil {
		return found{}, err
	}
	ranked := time.Now()
	c := l.linker.LinkBoard(b)
	linked := time.Now()
	r := b.Ranking()
	f := found{
		tables: ids(r.Tables), columns: ids(r.Columns), context: &grounding{led(c.IDs(catalog.KindColumn), b.Leader), c.Tokens}, leader: b.Leader,
		took: linked.Sub(start), phases: map[string]time.Duration{phaseRank: ranked.Sub(start), phaseLink: linked.Sub(ranked)},
	}
	if len(r.Databases) > 0 {
		f.database = r.Databases[0].Name
	}
	if l.judge != nil {
		f.verdict = l.judge.take(b)
	}
	return f, nil
}

// led puts leaders in the place of what they rank for.
func led(list []uint32, leader func(uint32) uint32) []uint32 {
	var out []uint32
	for _, id := range list {
		if id = leader(id); !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

func ids(list []retrieval.Scored) []uint32 {
	out := make([]uint32, len(list))
	for i, x := range list {
		out[i] = x.ID
	}
	return out
}

// withoutColumns is an index in which no word is found in a column, and no column is like a question.
type withoutColumns struct{ retrieval.Index }

func (x withoutColumns) Match(k catalog.Kind, terms []retrieval.Term, v acl.View) [][]retrieval.Hit {
	if k == catalog.KindColumn {
		return make([][]retrieval.Hit, len(terms))
	}
	return x.Index.Match(k, terms, v)
}

func (x withoutColumns) Near(k catalog.Kind, question []float32, v acl.View) []retrieval.Near {
	if k == catalog.KindColumn {
		return nil
	}
	return x.Index.Near(k, question, v)
}
