// Package local is the embedded index: postings in memory, exact, with statistics of the visible set only.
package local

import (
	"slices"
	"strings"
	"sync"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// BM25F (Robertson and Zaragoza 2009, eq. 3.15 and 3.19): a term's frequency in each field is divided by the field's
// relative length, weighted, summed and then saturated with k1. The weights were chosen on the training sets.
const (
	k1 = 1.2
	b  = 0.6
)

var fieldWeights = [...]float64{retrieval.FieldName: 3, retrieval.FieldText: 0.7, retrieval.FieldValue: 0.6}

// Index is an inverted index over one snapshot.
type Index struct {
	snapshot    *catalog.Snapshot
	collections map[catalog.Kind]*collection
	mu          sync.Mutex
	averages    map[string]averages // by view and kind
	order       []string            // keys of averages, oldest first
}

// collection holds the objects of one kind, so that their statistics do not mix.
type collection struct {
	first uint32 // id of the first object
	// postings are in id order, a posting for each object and field.
	postings map[string][]posting
	lengths  [][len(fieldWeights)]uint16 // terms by object and field
	// skeletons leads from a word without its vowels to the words in the index that are written so.
	skeletons map[string][]string
}

type posting struct {
	id    uint32
	field retrieval.Field
	count uint16
}

// averages are the mean lengths of the fields over the objects that a view shows.
type averages [len(fieldWeights)]float64

const cachedAverages = 1024

// New indexes a snapshot.
func New(s *catalog.Snapshot) *Index {
	x := &Index{snapshot: s, collections: map[catalog.Kind]*collection{}, averages: map[string]averages{}}
	for _, k := range catalog.Kinds {
		r := s.OfKind(k)
		c := &collection{first: r.From, postings: map[string][]posting{}, lengths: make([][len(fieldWeights)]uint16, r.Len()), skeletons: map[string][]string{}}
		for i := range s.Objects(k) {
			o := &s.Objects(k)[i]
			for f, text := range texts(o) {
				c.add(o.ID, retrieval.Field(f), text)
			}
		}
		for term := range c.postings {
			if sk, short := skeleton(term); short {
				c.skeletons[sk] = append(c.skeletons[sk], term)
			}
		}
		for _, terms := range c.skeletons {
			slices.Sort(terms)
		}
		x.collections[k] = c
	}
	return x
}

// texts returns what of an object is searched, by field. Names of other objects are left out of tables, so that a
// table's text says nothing of a hidden column.
func texts(o *catalog.Object) (t [len(fieldWeights)]string) {
	t[retrieval.FieldText] = o.Description + "\n" + strings.Join(o.Tags, "\n")
	synonyms := "\n" + strings.Join(o.Synonyms, "\n")
	switch {
	case o.Table != nil:
		t[retrieval.FieldName] = o.Ref.Table + synonyms
		t[retrieval.FieldText] += "\n" + o.Ref.Schema
	case o.Column != nil:
		t[retrieval.FieldName] = o.Ref.Column + synonyms
		t[retrieval.FieldValue] = strings.Join(o.Column.Samples, "\n")
	case o.Metric != nil:
		t[retrieval.FieldName] = o.Ref.Name + synonyms
		t[retrieval.FieldText] += "\n" + o.Metric.Formula
	case o.Relationship != nil:
		t[retrieval.FieldName] = o.Relationship.From[0].Table + "\n" + o.Relationship.To[0].Table + synonyms
	case o.Query != nil:
		t[retrieval.FieldName] = o.Query.Question + synonyms
	}
	return t
}

func (c *collection) add(id uint32, f retrieval.Field, text string) {
	counts := map[string]uint16{}
	var order []string
	n := uint16(0)
	for _, term := range retrieval.Terms(text) {
		if counts[term] == 0 {
			order = append(order, term)
		}
		if counts[term] < 1<<15 {
			counts[term]++
		}
		if n < 1<<15 {
			n++
		}
	}
	c.lengths[id-c.first][f] = n
	for _, term := range order {
		c.postings[term] = append(c.postings[term], posting{id, f, counts[term]})
	}
}

// Match implements retrieval.Index.
func (x *Index) Match(kind catalog.Kind, terms []retrieval.Term, v acl.View) [][]retrieval.Hit {
	out := make([][]retrieval.Hit, len(terms))
	c := x.collections[kind]
	if c == nil || v.Snapshot() != x.snapshot {
		return out
	}
	avg := x.average(kind, c, v)
	for i, t := range terms {
		out[i] = c.match(t.Text, 1, avg, v)
		for _, near := range c.near(t.Text) {
			out[i] = merge(out[i], c.match(near, nearWeight, avg, v))
		}
	}
	return out
}

// nearWeight is what a word is worth that only resembles the term: a prefix of it or its consonants.
const nearWeight = 0.2

// near returns words of the index that look like short forms of a term: a prefix of at least three letters and at
// most two thirds of it, or the term without its vowels.
func (c *collection) near(term string) []string {
	var out []string
	if strings.ContainsFunc(term, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return nil
	}
	for n := 3; n*3 <= len(term)*2; n++ {
		if _, ok := c.postings[term[:n]]; ok {
			out = append(out, term[:n])
		}
	}
	if sk, _ := skeleton(term); len(sk) >= 3 && sk != term {
		for _, w := range c.skeletons[sk] {
			if !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	return out
}

// skeleton drops the vowels after the first letter, and reports whether there were none to drop.
func skeleton(term string) (string, bool) {
	var sb strings.Builder
	for i := 0; i < len(term); i++ {
		if i == 0 || !strings.ContainsRune("aeiou", rune(term[i])) {
			sb.WriteByte(term[i])
		}
	}
	return sb.String(), sb.Len() == len(term) && len(term) >= 3
}

func (c *collection) match(term string, worth float64, avg averages, v acl.View) []retrieval.Hit {
	var out []retrieval.Hit
	list := c.postings[term]
	for i := 0; i < len(list); {
		id := list[i].id
		var sum, best float64
		var where retrieval.Field
		seen := false
		queryable := v.Queryable(id)
		for ; i < len(list) && list[i].id == id; i++ {
			p := list[i]
			if !queryable || p.field == retrieval.FieldValue && !v.Raw(id) {
				continue
			}
			seen = true
			tf := float64(p.count)
			if a := avg[p.field]; a > 0 {
				tf /= 1 - b + b*float64(c.lengths[id-c.first][p.field])/a
			}
			tf *= fieldWeights[p.field]
			sum += tf
			if tf > best {
				best, where = tf, p.field
			}
		}
		if seen {
			out = append(out, retrieval.Hit{ID: id, Weight: worth * sum / (k1 + sum), Where: where})
		}
	}
	return out
}

// merge joins two lists in id order and keeps the better hit of each object.
func merge(a, b []retrieval.Hit) []retrieval.Hit {
	if len(b) == 0 {
		return a
	}
	out := make([]retrieval.Hit, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].ID < b[0].ID:
			out, a = append(out, a[0]), a[1:]
		case len(a) == 0 || b[0].ID < a[0].ID:
			out, b = append(out, b[0]), b[1:]
		default:
			best := a[0]
			if b[0].Weight > best.Weight {
				best = b[0]
			}
			out, a, b = append(out, best), a[1:], b[1:]
		}
	}
	return out
}

// average returns the mean field lengths over what the view shows; it is computed once a view.
func (x *Index) average(kind catalog.Kind, c *collection, v acl.View) averages {
	key := kind.String() + v.Key()
	x.mu.Lock()
	a, ok := x.averages[key]
	x.mu.Unlock()
	if ok {
		return a
	}
	var sum, n [len(fieldWeights)]int
	for i, l := range c.lengths {
		id := c.first + uint32(i)
		if !v.Queryable(id) {
			continue
		}
		raw := v.Raw(id)
		for f := range l {
			if retrieval.Field(f) == retrieval.FieldValue && !raw {
				continue
			}
			sum[f] += int(l[f])
			n[f]++
		}
	}
	for f := range a {
		if n[f] > 0 {
			a[f] = float64(sum[f]) / float64(n[f])
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, twice := x.averages[key]; !twice {
		x.order = append(x.order, key)
		if len(x.order) > cachedAverages {
			delete(x.averages, x.order[0])
			x.order = x.order[1:]
		}
	}
	x.averages[key] = a
	return a
}
