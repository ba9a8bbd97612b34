package local

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// segment is the index of a run of objects of one kind, which go by their place in the run. Nothing in it depends on
// any other object. It does not change once it is built.
type segment struct {
	digest  digest
	lengths [][len(fieldWeights)]uint16 // terms by object and field
	terms   dictionary
	// The postings of term number n are postings[starts[n]:starts[n+1]], in order of object and then field.
	starts   []uint32
	postings []posting
	vectors  vectors
}

// posting says how often a term is in a field of an object.
type posting struct {
	at    uint32
	field retrieval.Field
	count uint16
}

// digest tells contents apart.
type digest [sha256.Size]byte

// segmentSize is the least number of objects in a segment, but for the last of a kind, and about half of what most have.
// It is a compromise: the larger, the fewer segments to search for each word; the smaller, the less to do anew when an
// object changes.
const segmentSize = 1 << 10

// cut divides the objects of a kind into runs. A run ends after the first object past size that a hash of names picks
// out, one of size, or at four times size. So when some objects come or go, most runs end where they did: it takes one
// that is picked within as many objects of the end for the next run to begin elsewhere.
func cut(s *catalog.Snapshot, k catalog.Kind, size int) [][]catalog.Object {
	var runs [][]catalog.Object
	objects := s.Objects(k)
	from := 0
	for i := range objects {
		if n := i + 1 - from; i+1 == len(objects) || n >= 4*size || n >= size && picked(objects[i].Ref, size) {
			runs = append(runs, objects[from:i+1])
			from = i + 1
		}
	}
	return runs
}

// picked takes one of so many names, by their FNV-1a hash.
func picked(r catalog.Ref, of int) bool {
	h := uint64(14695981039346656037)
	for _, s := range [...]string{r.Database, r.Schema, r.Table, r.Column, r.Name} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	return h>>32%uint64(of) == 0
}

// use is a set of what a piece of text serves: the fields in which its words are found, and meaning.
type use uint8

const (
	inName    use = 1 << retrieval.FieldName
	inText    use = 1 << retrieval.FieldText
	inValue   use = 1 << retrieval.FieldValue
	inMeaning use = 1 << len(fieldWeights) // it goes into the object's vector
)

// describe says all of an object that is indexed. Names of columns are left out of tables, so that a table's text says
// nothing of a hidden column; values are no part of any meaning, since one vector serves all views.
func describe(o *catalog.Object, say func(use, string)) {
	switch {
	case o.Table != nil:
		say(inName|inMeaning, o.Ref.Table)
		say(inText|inMeaning, o.Ref.Schema)
		say(inMeaning, o.Ref.Database)
	case o.Column != nil:
		say(inMeaning, o.Ref.Table)
		say(inName|inMeaning, o.Ref.Column)
		for _, v := range o.Column.Samples {
			say(inValue, v)
		}
	case o.Metric != nil:
		say(inName|inMeaning, o.Ref.Name)
		say(inText, o.Metric.Formula)
	case o.Relationship != nil:
		say(inName|inMeaning, o.Relationship.From[0].Table)
		say(inName|inMeaning, o.Relationship.To[0].Table)
	case o.Query != nil:
		say(inName|inMeaning, o.Query.Question)
	}
	for _, synonym := range o.Synonyms {
		say(inName|inMeaning, synonym)
	}
	say(inText|inMeaning, o.Description)
	for _, tag := range o.Tags {
		say(inText, tag)
	}
}

// digestOf hashes all that describe says of a run of objects.
func digestOf(objects []catalog.Object) (d digest) {
	h := sha256.New()
	var buf []byte
	for i := range objects {
		describe(&objects[i], func(u use, s string) {
			buf = append(buf, byte(u))
			buf = binary.AppendUvarint(buf, uint64(len(s)))
			buf = append(buf, s...)
		})
		buf = append(buf, 0) // no use
		if len(buf) >= 1<<12 {
			h.Write(buf)
			buf = buf[:0]
		}
	}
	h.Write(buf)
	h.Sum(d[:0])
	return d
}

// most is the greatest count that is kept of anything, so that it fits.
const most = 1 << 15

// newSegment indexes the words of a run of objects. All segments of an index have one seed. terms are those of what
// stands between two spaces, as far as they are known; it adds what it learns.
func newSegment(objects []catalog.Object, seed maphash.Seed, terms map[string][]string) *segment {
	seg := &segment{lengths: make([][len(fieldWeights)]uint16, len(objects))}
	type found struct {
		term uint32
		posting
	}
	var all []found
	r := reader{numbers: map[string]uint32{}, known: map[string][]uint32{}, terms: terms}
	var counts [len(fieldWeights)][]uint16  // by field and term
	var present [len(fieldWeights)][]uint32 // the terms that a field of the object has
	for i := range objects {
		describe(&objects[i], func(u use, s string) {
			if u == inMeaning {
				return
			}
			for _, n := range r.read(s) {
				for f := range counts {
					if u>>f&1 == 0 {
						continue
					}
					if int(n) >= len(counts[f]) {
						counts[f] = append(counts[f], make([]uint16, len(r.numbers)-len(counts[f]))...)
					}
					if counts[f][n] == 0 {
						present[f] = append(present[f], n)
					}
					counts[f][n] = min(counts[f][n]+1, most)
					seg.lengths[i][f] = min(seg.lengths[i][f]+1, most)
				}
			}
		})
		for f := range present {
			for _, n := range present[f] {
				all = append(all, found{n, posting{uint32(i), retrieval.Field(f), counts[f][n]}})
				counts[f][n] = 0
			}
			present[f] = present[f][:0]
		}
	}
	seg.terms = newDictionary(r.numbers, seed)
	seg.starts = make([]uint32, len(r.numbers)+1)
	for _, p := range all {
		seg.starts[p.term+1]++
	}
	for n := 1; n < len(seg.starts); n++ {
		seg.starts[n] += seg.starts[n-1]
	}
	next := slices.Clone(seg.starts)
	seg.postings = make([]posting, len(all))
	for _, p := range all {
		seg.postings[next[p.term]] = p.posting
		next[p.term]++
	}
	return seg
}

// reader numbers the terms of texts as they come.
type reader struct {
	numbers map[string]uint32   // by term
	known   map[string][]uint32 // by what stands between two spaces: its terms
	terms   map[string][]string // likewise, so that most is split and stemmed once for many segments
	out     []uint32
}

// read returns the numbers of a text's terms, in some order. The next call overwrites them.
func (r *reader) read(text string) []uint32 {
	r.out = r.out[:0]
	for word := range strings.FieldsSeq(text) {
		if list, ok := r.known[word]; ok {
			r.out = append(r.out, list...)
			continue
		}
		from := len(r.out)
		r.number(word)
		r.known[word] = slices.Clone(r.out[from:])
	}
	return r.out
}

func (r *reader) number(text string) {
	terms, ok := r.terms[text]
	if !ok {
		terms = retrieval.Terms(text)
		r.terms[text] = terms
	}
	for _, term := range terms {
		n, known := r.numbers[term]
		if !known {
			n = uint32(len(r.numbers))
			r.numbers[strings.Clone(term)] = n // a part of a text would keep the text in memory
		}
		r.out = append(r.out, n)
	}
}

// postingsOf returns the postings of a word, whose hash must be that of the index.
func (s *segment) postingsOf(word string, hash uint64) []posting {
	n, ok := s.terms.number(word, hash)
	if !ok {
		return nil
	}
	return s.postings[s.starts[n]:s.starts[n+1]]
}

// dictionary numbers the terms of a segment. A map would do, but each question looks some dozen words up in each
// segment and finds few of them; here a word's hash is computed once for all segments, and one look tells most that
// are not there.
type dictionary struct {
	terms []string
	// slots has a power of two of entries: the upper half of a term's hash above its number plus one, in the first free
	// place from where the lower half points; at least half are free, which is 0.
	slots []uint64
}

// newDictionary takes the numbers of terms, which must count from 0.
func newDictionary(numbers map[string]uint32, seed maphash.Seed) dictionary {
	d := dictionary{make([]string, len(numbers)), make([]uint64, 1<<bits.Len(uint(2*len(numbers))))}
	for term, n := range numbers {
		d.terms[n] = term
		hash := maphash.String(seed, term)
		at := d.start(hash)
		for d.slots[at] != 0 {
			at = d.next(at)
		}
		d.slots[at] = hash>>32<<32 | uint64(n+1)
	}
	return d
}

func (d *dictionary) start(hash uint64) int { return int(hash) & (len(d.slots) - 1) }
func (d *dictionary) next(at int) int       { return (at + 1) & (len(d.slots) - 1) }

func (d *dictionary) number(term string, hash uint64) (uint32, bool) {
	for at := d.start(hash); d.slots[at] != 0; at = d.next(at) {
		if n := uint32(d.slots[at]) - 1; d.slots[at]>>32 == hash>>32 && d.terms[n] == term {
			return n, true
		}
	}
	return 0, false
}
