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
	b  = 0.8
)

var fieldWeights = [...]float64{retrieval.FieldName: 1.5, retrieval.FieldText: 0.7, retrieval.FieldValue: 0.6}

// Index is an inverted index over one snapshot.
type Index struct {
	snapshot    *catalog.Snapshot
	collections [len(catalog.Kinds) + 1]*collection // by kind
	mu          sync.Mutex
	sights      map[string]*sight // by the view's key
	order       []string          // keys of sights, oldest first
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

// sight is what a view means for the index, in a form that is quick to ask.
type sight struct {
	queryable, raw bits
	averages       [len(catalog.Kinds) + 1]averages // by kind
}

// averages are the mean lengths of the fields over the objects that have text in them which the view shows.
type averages [len(fieldWeights)]float64

// bits is a set of object ids.
type bits []uint64

func (b bits) has(id uint32) bool { return int(id>>6) < len(b) && b[id>>6]>>(id&63)&1 == 1 }

// keptSights bounds how many views the index remembers. Each takes two bits an object.
const keptSights = 256

// New indexes a snapshot.
func New(s *catalog.Snapshot) *Index {
	x := &Index{snapshot: s, sights: map[string]*sight{}}
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
	if kind == 0 || int(kind) >= len(x.collections) || v.Snapshot() != x.snapshot {
		return out
	}
	c, sees := x.collections[kind], x.sight(v)
	for i, t := range terms {
		out[i] = c.match(t.Text, 1, kind, sees)
		for _, near := range c.near(t.Text) {
			out[i] = merge(out[i], c.match(near, nearWeight, kind, sees))
		}
	}
	return out
}

// nearWeight is what a word is worth that only resembles the term: a prefix of it or its consonants.
const nearWeight = 0.1

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

func (c *collection) match(term string, worth float64, kind catalog.Kind, sees *sight) []retrieval.Hit {
	list := c.postings[term]
	if len(list) == 0 {
		return nil
	}
	avg := &sees.averages[kind]
	out := make([]retrieval.Hit, 0, len(list))
	for i := 0; i < len(list); {
		id := list[i].id
		if !sees.queryable.has(id) {
			i++
			continue
		}
		var sum, best float64
		var where retrieval.Field
		for ; i < len(list) && list[i].id == id; i++ {
			p := list[i]
			if p.field == retrieval.FieldValue && !sees.raw.has(id) {
				continue
			}
			// There is text in the field, so the average is above zero.
			tf := float64(p.count) / (1 - b + b*float64(c.lengths[id-c.first][p.field])/avg[p.field])
			tf *= fieldWeights[p.field]
			sum += tf
			if tf > best {
				best, where = tf, p.field
			}
		}
		if sum > 0 {
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

// sight returns what a view means for the index; it is computed once a view.
func (x *Index) sight(v acl.View) *sight {
	x.mu.Lock()
	known := x.sights[v.Key()]
	x.mu.Unlock()
	if known != nil {
		return known
	}
	sees := &sight{queryable: make(bits, x.snapshot.Len()/64+1), raw: make(bits, x.snapshot.Len()/64+1)}
	for it := v.Queryables().Iterator(); it.HasNext(); {
		id := it.Next()
		sees.queryable[id>>6] |= 1 << (id & 63)
		if v.Raw(id) {
			sees.raw[id>>6] |= 1 << (id & 63)
		}
	}
	for _, k := range catalog.Kinds {
		sees.averages[k] = x.collections[k].average(sees)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if known := x.sights[v.Key()]; known != nil {
		return known
	}
	x.sights[v.Key()] = sees
	if x.order = append(x.order, v.Key()); len(x.order) > keptSights {
		delete(x.sights, x.order[0])
		x.order = x.order[1:]
	}
	return sees
}

// average counts only objects with text in a field, so that one whose values are withheld counts like one without.
func (c *collection) average(sees *sight) (a averages) {
	var sum, n [len(fieldWeights)]int
	for i, l := range c.lengths {
		id := c.first + uint32(i)
		if !sees.queryable.has(id) {
			continue
		}
		for f, terms := range l {
			if terms > 0 && (retrieval.Field(f) != retrieval.FieldValue || sees.raw.has(id)) {
				sum[f] += int(terms)
				n[f]++
			}
		}
	}
	for f := range a {
		if n[f] > 0 {
			a[f] = float64(sum[f]) / float64(n[f])
		}
	}
	return a
}
