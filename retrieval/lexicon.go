package retrieval

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/schemagate/schemagate/catalog"
)

// Lexicon finds the words in the names of a snapshot's tables and columns that mean about what a word of a question
// means. It is safe for concurrent use.
type Lexicon struct {
	embedder Embedder
	snapshot *catalog.Snapshot
	words    []string                           // in small letters
	terms    []string                           // by word: as the index knows it
	vectors  [][]float32                        // by word
	signs    []uint64                           // of the vectors, one after the other
	names    map[string][]float32               // by database: the vector of its name
	in       [len(catalog.Kinds) + 1][][]uint32 // by kind and word: the objects in whose names it is, in id order

	mu         sync.Mutex
	young, old map[string][]kin // by word of a question
}

// kin is a word of the lexicon that means about what another word means.
type kin struct {
	word   int32
	cosine float32
}

// Words of a question are remembered, so many to a generation.
const lexiconMemory = 1 << 12

// leastKinship is the cosine below which words have nothing to do with each other.
const leastKinship = 0.33

// NewLexicon reads the names of a snapshot.
func NewLexicon(ctx context.Context, s *catalog.Snapshot, e Embedder) (*Lexicon, error) {
	l := &Lexicon{embedder: e, snapshot: s, names: map[string][]float32{}, young: map[string][]kin{}}
	at := map[string]int{}
	known := map[string][]int{} // by name: its words
	var texts []string
	for _, k := range [...]catalog.Kind{catalog.KindTable, catalog.KindColumn} {
		for i := range s.Objects(k) {
			o := &s.Objects(k)[i]
			name := o.Ref.Table
			if k == catalog.KindColumn {
				name = o.Ref.Column
			}
			for _, text := range append([]string{name}, o.Synonyms...) {
				words, ok := known[text]
				if !ok {
					eachWord(text, func(said, term string) {
						w, ok := at[said]
						if !ok {
							w = len(texts)
							at[said] = w
							texts = append(texts, inFull(said))
							l.words, l.terms = append(l.words, said), append(l.terms, term)
							for k := range l.in {
								l.in[k] = append(l.in[k], nil)
							}
						}
						words = append(words, w)
					})
					known[text] = words
				}
				for _, w := range words {
					if list := l.in[k][w]; len(list) == 0 || list[len(list)-1] != o.ID {
						l.in[k][w] = append(list, o.ID)
					}
				}
			}
		}
	}
	var err error
	if l.vectors, err = e.Embed(ctx, texts); err != nil {
		return nil, fmt.Errorf("retrieval: embedding the words of the catalog: %w", err)
	}
	texts = texts[:0]
	for _, d := range s.Databases() {
		var words []string
		eachWord(d.Name, func(said, _ string) { words = append(words, inFull(said)) })
		texts = append(texts, strings.Join(words, " "))
	}
	names, err := e.Embed(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("retrieval: embedding the names of databases: %w", err)
	}
	for i, d := range s.Databases() {
		l.names[d.Name] = names[i]
	}
	for _, v := range l.vectors {
		l.signs = append(l.signs, signs(v)...)
	}
	l.signs = slices.Clip(l.signs)
	return l, nil
}

// inFull writes an abbreviation out.
func inFull(word string) string {
	if full, ok := abbreviations[word]; ok {
		return full
	}
	return word
}

func signs(v []float32) []uint64 {
	out := make([]uint64, (len(v)+63)/64)
	for i, x := range v {
		if x > 0 {
			out[i/64] |= 1 << (i % 64)
		}
	}
	return out
}

// kin returns the words that mean about what each of the given words means, nearest first.
func (l *Lexicon) kin(ctx context.Context, said []string) ([][]kin, error) {
	out := make([][]kin, len(said))
	var missing []int
	l.mu.Lock()
	for i, w := range said {
		known, ok := l.young[w]
		if !ok {
			if known, ok = l.old[w]; ok {
				l.young[strings.Clone(w)] = known
			}
		}
		if !ok {
			missing = append(missing, i)
		}
		out[i] = known
	}
	l.mu.Unlock()
	if len(missing) == 0 {
		return out, nil
	}
	texts := make([]string, len(missing))
	for i, j := range missing {
		texts[i] = inFull(said[j])
	}
	vectors, err := l.embedder.Embed(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("retrieval: embedding the words of the question: %w", err)
	}
	for i, j := range missing {
		out[j] = l.nearest(vectors[i])
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.young)+len(missing) > lexiconMemory {
		l.young, l.old = map[string][]kin{}, l.young
	}
	for _, j := range missing {
		l.young[strings.Clone(said[j])] = out[j]
	}
	return out, nil
}

func (l *Lexicon) nearest(v []float32) []kin {
	var out []kin
	own := signs(v)
	// Vectors at an angle differ in the signs of about so large a share of their dimensions as the angle is of a half
	// turn; a few more are let through.
	most := len(v) * 45 / 100
	rest := l.signs
	for w := range l.words {
		differ := 0
		for i, x := range rest[:len(own)] {
			differ += bits.OnesCount64(x ^ own[i])
		}
		rest = rest[len(own):]
		if differ > most {
			continue
		}
		if c := dot(v, l.vectors[w]); float64(c) >= leastKinship {
			out = append(out, kin{int32(w), c})
		}
	}
	// Short forms are as near as what they are short for. Which of them counts must not depend on where they stand in the
	// catalog, for what stands first may be hidden.
	slices.SortFunc(out, func(a, b kin) int {
		return cmp.Or(cmp.Compare(b.cosine, a.cosine), cmp.Compare(l.words[a.word], l.words[b.word]))
	})
	return out
}

func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// mostKin bounds the words of the catalog that can stand for a word of a question.
const mostKin = 4

// match returns, for each term, the objects of a kind in whose names there is a word that means about the same, in id
// order. A hit's weight is the cosine. Objects in whose name the term itself is are left out.
func (l *Lexicon) match(kind catalog.Kind, terms []Term, kin [][]kin, visible idSet) [][]Hit {
	out := make([][]Hit, len(terms))
	for i, t := range terms {
		var lists [mostKin][]uint32 // of objects, nearest word first
		var cosines [mostKin]float64
		n, most := 0, 0
		for _, k := range kin[i] {
			list := l.in[kind][k.word]
			if l.terms[k.word] == t.Text || !slices.ContainsFunc(list, visible.Contains) {
				continue
			}
			lists[n], cosines[n] = list, float64(k.cosine)
			most += len(list)
			if n++; n == mostKin {
				break
			}
		}
		if n == 0 {
			continue
		}
		hits := make([]Hit, 0, most)
		for {
			next, of := uint32(math.MaxUint32), -1
			for j, list := range lists[:n] {
				if len(list) > 0 && (of < 0 || list[0] < next) {
					next, of = list[0], j
				}
			}
			if of < 0 {
				break
			}
			if visible.Contains(next) {
				hits = append(hits, Hit{ID: next, Weight: cosines[of], Where: FieldMeaning})
			}
			for j, list := range lists[:n] {
				if len(list) > 0 && list[0] == next {
					lists[j] = list[1:]
				}
			}
		}
		out[i] = hits
	}
	return out
}
