package local

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// BM25F (Robertson and Zaragoza 2009, eq. 3.15 and 3.19): a term's frequency in each field is divided by the field's
// relative length, weighted, summed and then saturated with k1. The weights were chosen on the training sets.
const (
	k1 = 1.2
	b  = 0.8
)

var fieldWeights = [...]float64{retrieval.FieldName: 1.5, retrieval.FieldText: 0.7, retrieval.FieldValue: 0.6}

// likeness tells a term from a word that only resembles it: a prefix of it or its consonants.
type likeness int

const (
	asIs likeness = iota
	shortened
	likenesses
)

// nearWeights are what words are worth.
var nearWeights = [...]float64{asIs: 1, shortened: 0.1}

// scratch is the memory of one call of Match, for the next.
type scratch struct {
	hashes              []uint64    // of a term and its short forms
	lists               [][]posting // of those, by part
	hits, other, merged []retrieval.Hit
}

// Match implements retrieval.Index.
func (x *Index) Match(kind catalog.Kind, terms []retrieval.Term, v acl.View) [][]retrieval.Hit {
	out := make([][]retrieval.Hit, len(terms))
	parts, sees := x.asked(kind, v)
	if len(parts) == 0 {
		return out
	}
	n := &sees.norms[kind]
	sc := x.scratch.Get().(*scratch)
	defer x.scratch.Put(sc)
	for i, t := range terms {
		words := append([]string{t.Text}, shortForms(t.Text)...)
		sc.hashes = sc.hashes[:0]
		for _, w := range words {
			sc.hashes = append(sc.hashes, maphash.String(x.seed, w))
		}
		sc.lists = sc.lists[:0]
		found := 0
		for _, p := range parts {
			for j, w := range words {
				list := p.postingsOf(w, sc.hashes[j])
				sc.lists = append(sc.lists, list)
				found += len(list)
			}
		}
		if found == 0 {
			continue
		}
		hits, lists := sc.hits[:0], sc.lists
		for _, p := range parts {
			from := len(hits)
			hits = p.match(hits, lists[0], asIs, sees, n)
			for _, list := range lists[1:len(words)] {
				if len(list) == 0 {
					continue
				}
				if sc.other = p.match(sc.other[:0], list, shortened, sees, n); len(sc.other) > 0 {
					sc.merged = merge(sc.merged[:0], hits[from:], sc.other)
					hits = append(hits[:from], sc.merged...)
				}
			}
			lists = lists[len(words):]
		}
		if sc.hits = hits; len(hits) > 0 {
			out[i] = slices.Clone(hits)
		}
	}
	return out
}

// shortForms returns what could be short forms of a term: its beginnings of at least three letters and at most two
// thirds of it, and the term without its vowels.
func shortForms(term string) []string {
	if strings.ContainsFunc(term, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return nil
	}
	var out []string
	for n := 3; n*3 <= len(term)*2; n++ {
		out = append(out, term[:n])
	}
	if sk := skeleton(term); len(sk) >= 3 && sk != term && !slices.Contains(out, sk) {
		out = append(out, sk)
	}
	return out
}

// skeleton drops the vowels after the first letter.
func skeleton(term string) string {
	var sb strings.Builder
	for i := 0; i < len(term); i++ {
		if i == 0 || !strings.ContainsRune("aeiou", rune(term[i])) {
			sb.WriteByte(term[i])
		}
	}
	return sb.String()
}

// norms tell what an occurrence in a field is worth, as one view shows a kind: less in a long text.
type norms struct {
	averages [len(fieldWeights)]float64     // lengths of the fields, over those with text
	once     [len(fieldWeights)][64]float64 // worth by length, for one occurrence in a text of usual length
	// likewise the weight of a hit that is made of no more, by likeness
	alone [likenesses][len(fieldWeights)][64]float64
}

func newNorms(averages [len(fieldWeights)]float64) norms {
	n := norms{averages: averages}
	for f := range n.once {
		for length := range n.once[f] {
			n.once[f][length] = n.compute(1, retrieval.Field(f), uint16(length))
			for l := range n.alone {
				n.alone[l][f][length] = weigh(n.once[f][length], likeness(l))
			}
		}
	}
	return n
}

// weigh returns the weight of a hit from what its occurrences are worth.
func weigh(sum float64, l likeness) float64 { return nearWeights[l] * sum / (k1 + sum) }

func (n *norms) worth(count uint16, f retrieval.Field, length uint16) float64 {
	if count == 1 && int(length) < len(n.once[f]) {
		return n.once[f][length]
	}
	return n.compute(count, f, length)
}

func (n *norms) compute(count uint16, f retrieval.Field, length uint16) float64 {
	return float64(count) / (1 - b + b*float64(length)/n.averages[f]) * fieldWeights[f]
}

// match adds the hits of a word's postings to out.
func (p part) match(out []retrieval.Hit, list []posting, l likeness, sees *sight, n *norms) []retrieval.Hit {
	alone := &n.alone[l]
	for i := 0; i < len(list); {
		o := list[i]
		at := o.at
		id := p.first + at
		if !sees.queryable.has(id) {
			i++
			continue
		}
		if i+1 == len(list) || list[i+1].at != at { // as for most
			i++
			length := p.lengths[at][o.field]
			if o.field == retrieval.FieldValue && !sees.raw.has(id) {
				continue
			}
			var weight float64
			if o.count == 1 && int(length) < len(alone[0]) {
				weight = alone[o.field][length]
			} else {
				weight = weigh(n.compute(o.count, o.field, length), l)
			}
			if weight > 0 {
				out = append(out, retrieval.Hit{ID: id, Weight: weight, Where: o.field})
			}
			continue
		}
		var sum, best float64
		var where retrieval.Field
		for ; i < len(list) && list[i].at == at; i++ {
			o := list[i]
			if o.field == retrieval.FieldValue && !sees.raw.has(id) {
				continue
			}
			tf := n.worth(o.count, o.field, p.lengths[at][o.field])
			sum += tf
			if tf > best {
				best, where = tf, o.field
			}
		}
		if sum > 0 {
			out = append(out, retrieval.Hit{ID: id, Weight: weigh(sum, l), Where: where})
		}
	}
	return out
}

// merge joins two lists in id order and keeps the better hit of each object, the one in a if they are equal.
func merge(out, a, b []retrieval.Hit) []retrieval.Hit {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].ID < b[0].ID:
			out, a = append(out, a[0]), a[1:]
		case b[0].ID < a[0].ID:
			out, b = append(out, b[0]), b[1:]
		default:
			best := a[0]
			if b[0].Weight > best.Weight {
				best = b[0]
			}
			out, a, b = append(out, best), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}
