package eval

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/templates"
)

// The usual parameters of BM25.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// baseline finds tables and columns by plain BM25 over the text of objects as the templates write it, one document an
// object. A table is as good as the best of its own document and its columns': that reading did better on the training
// sets than its own document alone. It builds no context. Its statistics are of the whole catalog, so it serves only who may see all of it.
type baseline struct {
	snapshot    *catalog.Snapshot
	collections []*collection
	depth       int // documents that each collection brings
}

// newBaseline renders all objects, into one collection for each type or into one for all of them, which then brings as
// many documents as the others together.
func newBaseline(s *catalog.Snapshot, unified bool) (*baseline, error) {
	texts, err := templates.New(nil)
	if err != nil {
		return nil, err
	}
	dialect := func(database string) catalog.Dialect {
		d, _ := s.Database(database)
		return d.Dialect
	}
	x := &baseline{snapshot: s, depth: retrieval.Candidates}
	if unified {
		x.depth *= len(catalog.Kinds)
		x.collections = []*collection{newCollection()}
	}
	for _, k := range catalog.Kinds {
		if !unified {
			x.collections = append(x.collections, newCollection())
		}
		c := x.collections[len(x.collections)-1]
		for r := s.OfKind(k); r.From < r.To; r.From++ {
			columns := 0
			if k == catalog.KindTable {
				columns = s.ColumnIDs(r.From).Len()
			}
			text, err := texts.Render(s.Object(r.From), dialect, columns)
			if err != nil {
				return nil, err
			}
			c.add(r.From, text)
		}
	}
	return x, nil
}

func (x *baseline) models() string { return none }

func (x *baseline) search(_ context.Context, question string, v acl.View) (found, error) {
	if v.Snapshot() != x.snapshot || v.Queryables().GetCardinality() != uint64(x.snapshot.Len()) {
		return found{}, errors.New("a baseline counts what the whole catalog says, and this view does not show all of it")
	}
	start := time.Now()
	words := plainWords(question)
	tables, columns := map[uint32]float64{}, map[uint32]float64{}
	for _, c := range x.collections {
		for _, d := range c.best(words, x.depth) {
			switch x.snapshot.Object(d.id).Ref.Kind {
			case catalog.KindTable:
				tables[d.id] = max(tables[d.id], d.score)
			case catalog.KindColumn:
				table := x.snapshot.TableOf(d.id)
				tables[table] = max(tables[table], d.score)
				columns[d.id] = d.score
			}
		}
	}
	f := ranked(x.snapshot, tables, columns)
	f.took = time.Since(start)
	return f, nil
}

// ranked makes lists of scores. The database that is meant is the best table's.
func ranked(s *catalog.Snapshot, tables, columns map[uint32]float64) found {
	f := found{tables: byRank(tables), columns: byRank(columns)}
	if len(f.tables) > 0 {
		f.database = s.Object(f.tables[0]).Ref.Database
	}
	return f
}

// byRank lists ids with the best score first, and of equals the first by name.
func byRank(scores map[uint32]float64) []uint32 {
	out := make([]uint32, 0, len(scores))
	for id := range scores {
		out = append(out, id)
	}
	slices.SortFunc(out, func(a, b uint32) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
	return out
}

// plainWords splits text into its runs of letters and digits, in lower case.
func plainWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}

// collection holds documents that compete with each other.
type collection struct {
	ids     []uint32 // by document
	lengths []float64
	total   float64              // of lengths
	found   map[string][]posting // by word, in order of documents
}

// posting says how often a document says a word.
type posting struct {
	document int
	count    float64
}

func newCollection() *collection { return &collection{found: map[string][]posting{}} }

func (c *collection) add(id uint32, text string) {
	document := len(c.ids)
	words := plainWords(text)
	c.ids = append(c.ids, id)
	c.lengths = append(c.lengths, float64(len(words)))
	c.total += float64(len(words))
	for _, w := range words {
		list := c.found[w]
		if n := len(list); n > 0 && list[n-1].document == document {
			list[n-1].count++
			continue
		}
		c.found[w] = append(list, posting{document, 1})
	}
}

// scored is a document's object with its score.
type scored struct {
	id    uint32
	score float64
}

// best returns at most n objects whose documents say any of the words, best first.
func (c *collection) best(words []string, n int) []scored {
	scores := map[int]float64{}
	count := float64(len(c.ids))
	for _, w := range words {
		list := c.found[w]
		in := float64(len(list))
		idf := math.Log(1 + (count-in+0.5)/(in+0.5))
		for _, p := range list {
			norm := bm25K1 * (1 - bm25B + bm25B*c.lengths[p.document]*count/c.total)
			scores[p.document] += idf * p.count * (bm25K1 + 1) / (p.count + norm)
		}
	}
	out := make([]scored, 0, len(scores))
	for document, score := range scores {
		out = append(out, scored{c.ids[document], score})
	}
	slices.SortFunc(out, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
	return out[:min(n, len(out))]
}
