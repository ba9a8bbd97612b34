package local

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

const (
	longestValue = 12  // words of a value; a longer one is prose, which nobody asks by
	fewestDigits = 3   // digits of a number; smaller ones are counts and ranks more often than values
	mostWords    = 256 // words of a question that are looked at
	mostColumns  = 256 // visible columns that hold a value; one that more hold tells nothing apart
	leastQuality = 0.1 // of a hit
)

// manner is how a word of a question is written, and with that how much it takes to see a part of a value in it, or a
// misspelling.
type manner struct {
	worth     float64 // factor of the quality
	mostParts int     // visible values that have the word; if more have it, it names none of them
	leastPart float64 // share of a value's letters that the question must have
}

var (
	likeAName   = manner{1, 16, 0.3} // with a capital or in quotation marks
	likeAnyWord = manner{0.6, 4, 0.5}
)

// Values finds the sample values and dictionaries of one snapshot in questions. Values are compared by their words. It
// keeps no text but each word once: everything else is numbers in flat lists, about 40 bytes a value.
type Values struct {
	snapshot *catalog.Snapshot
	seed     maphash.Seed
	words    vocabulary
	// hashes has the hash of each value's words, in order; a value's place in it is its number. buckets leads from the
	// leading bits of a hash to the first value that has them.
	hashes  []uint64
	buckets []uint32
	shift   int
	holders lists    // by value: columns that hold it
	places  []uint16 // by holder: which of the column's values it is
	spelt   lists    // by value: its words; none where they are mostly digits
	inside  lists    // by word: values that have it
	named   lists    // by word: tables and columns that are named by it
}

var _ retrieval.Values = (*Values)(nil)

// lists are many lists in one.
type lists struct{ starts, items []uint32 }

func (l lists) at(i uint32) []uint32 { return l.items[l.starts[i]:l.starts[i+1]] }

// group makes lists of n keys from pairs that are given twice, in the same order.
func group(n int, pairs func(yield func(key, item uint32))) lists {
	l := lists{starts: make([]uint32, n+1)}
	pairs(func(key, _ uint32) { l.starts[key+1]++ })
	for i := range n {
		l.starts[i+1] += l.starts[i]
	}
	l.items = make([]uint32, l.starts[n])
	next := slices.Clone(l.starts[:n])
	pairs(func(key, item uint32) {
		l.items[next[key]] = item
		next[key]++
	})
	return l
}

// valueAt is one of a column's values: of its samples, then of its dictionary.
func valueAt(c *catalog.Column, i int) string {
	if i < len(c.Samples) {
		return c.Samples[i]
	}
	return c.Dictionary[i-len(c.Samples)]
}

// NewValues indexes the values of a snapshot.
func NewValues(s *catalog.Snapshot) *Values {
	return (&Values{seed: maphash.MakeSeed()}).Update(s)
}

// Update indexes the values of another snapshot. What is known of tables that are as they were is taken from x, which
// stays as it is.
func (x *Values) Update(s *catalog.Snapshot) *Values {
	y := &Values{snapshot: s, seed: x.seed}
	now, fresh := compared(x.snapshot, s)
	v := speller{old: &x.words, ids: map[string]uint32{}}
	y.hold(x, now, y.read(fresh), &v)
	y.name(x, now, fresh, &v)
	return y
}

// compared compares a snapshot with the one before, nil if there was none. now leads from the ids of tables that are as
// they were, with all that values know of them, and of their columns to 1 + their present ids. Order is kept. fresh are
// the other tables.
func compared(before, s *catalog.Snapshot) (now, fresh []uint32) {
	var old catalog.Range
	if before != nil {
		old = before.OfKind(catalog.KindTable)
		now = make([]uint32, before.OfKind(catalog.KindColumn).To)
	}
	for r := s.OfKind(catalog.KindTable); r.From < r.To; r.From++ {
		t := &s.Object(r.From).Ref
		for old.From < old.To && compareTables(&before.Object(old.From).Ref, t) < 0 {
			old.From++
		}
		if old.From == old.To || !sameTable(before, old.From, s, r.From) {
			fresh = append(fresh, r.From)
			continue
		}
		now[old.From] = r.From + 1
		columns := s.ColumnIDs(r.From)
		for c := before.ColumnIDs(old.From); c.From < c.To; c.From++ {
			now[c.From] = columns.From + 1
			columns.From++
		}
	}
	return now, fresh
}

// compareTables orders names as snapshots do.
func compareTables(a, b *catalog.Ref) int {
	return cmp.Or(cmp.Compare(a.Database, b.Database), cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Table, b.Table))
}

// sameTable reports whether a table of one snapshot and one of another have the same names, columns and values.
func sameTable(a *catalog.Snapshot, x uint32, b *catalog.Snapshot, y uint32) bool {
	if o, p := a.Object(x), b.Object(y); o.Ref != p.Ref || !slices.Equal(o.Synonyms, p.Synonyms) {
		return false
	}
	return slices.EqualFunc(a.Columns(x), b.Columns(y), func(o, p catalog.Object) bool {
		return o.Ref.Column == p.Ref.Column && slices.Equal(o.Synonyms, p.Synonyms) &&
			slices.Equal(o.Column.Samples, p.Column.Samples) && slices.Equal(o.Column.Dictionary, p.Column.Dictionary)
	})
}

// occurrence is a value, which goes by the hash of its words, in a column.
type occurrence struct {
	hash   uint64
	column uint32
	place  uint16
}

// read returns the values of some tables, in order of hash and column. A column is said to hold a value once.
func (x *Values) read(tables []uint32) []occurrence {
	var found []occurrence
	var sp splitter
	for _, t := range tables {
		columns := x.snapshot.Columns(t)
		for i := range columns {
			c := columns[i].Column
			for place := range min(len(c.Samples)+len(c.Dictionary), 1<<16) {
				text := valueAt(c, place)
				if strings.HasSuffix(text, "…") { // it was cut short
					continue
				}
				if sp.split(text); sp.askedBy() {
					found = append(found, occurrence{x.hash(sp.words), columns[i].ID, uint16(place)})
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b occurrence) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.column, b.column), cmp.Compare(a.place, b.place))
	})
	return slices.CompactFunc(found, func(a, b occurrence) bool { return a.hash == b.hash && a.column == b.column })
}

// hold fills the lists of values, with the words of a speller, out of those of before that remain and others.
func (x *Values) hold(before *Values, now []uint32, found []occurrence, v *speller) {
	most := len(before.places) + len(found)
	x.holders.items, x.places = make([]uint32, 0, most), make([]uint16, 0, most)
	x.hashes, x.holders.starts = make([]uint64, 0, len(before.hashes)), make([]uint32, 0, len(before.hashes)+1)
	x.spelt.starts, x.spelt.items = make([]uint32, 1, len(before.hashes)+1), make([]uint32, 0, len(before.spelt.items))
	var sp splitter
	for old := 0; old < len(before.hashes) || len(found) > 0; {
		hash, known := uint64(0), old < len(before.hashes)
		if known {
			hash = before.hashes[old]
		}
		if len(found) > 0 && (!known || found[0].hash < hash) {
			hash, known = found[0].hash, false
		}
		first := len(x.places)
		take := func(column uint32, place uint16) {
			x.holders.items, x.places = append(x.holders.items, column), append(x.places, place)
		}
		if known {
			for i := before.holders.starts[old]; i < before.holders.starts[old+1]; i++ {
				column := now[before.holders.items[i]]
				if column == 0 {
					continue
				}
				for ; len(found) > 0 && found[0].hash == hash && found[0].column < column-1; found = found[1:] {
					take(found[0].column, found[0].place)
				}
				take(column-1, before.places[i])
			}
		}
		for ; len(found) > 0 && found[0].hash == hash; found = found[1:] {
			take(found[0].column, found[0].place)
		}
		if len(x.places) > first {
			x.hashes, x.holders.starts = append(x.hashes, hash), append(x.holders.starts, uint32(first))
			if known {
				x.spelt.items = append(x.spelt.items, before.spelt.at(uint32(old))...)
			} else if sp.split(valueAt(x.snapshot.Object(x.holders.items[first]).Column, int(x.places[first]))); sp.wordy() {
				for _, w := range sp.words {
					x.spelt.items = append(x.spelt.items, v.number(w.text))
				}
			}
			x.spelt.starts = append(x.spelt.starts, uint32(len(x.spelt.items)))
		}
		if known {
			old++
		}
	}
	x.holders.starts = append(x.holders.starts, uint32(len(x.places)))
	x.fillBuckets()
}

func (x *Values) hash(words []word) uint64 {
	var h maphash.Hash
	h.SetSeed(x.seed)
	for _, w := range words {
		h.WriteString(w.text)
		h.WriteByte(' ')
	}
	return h.Sum64()
}

func (x *Values) fillBuckets() {
	width := 0
	for 1<<width < len(x.hashes) {
		width++
	}
	x.shift = 64 - width
	x.buckets = make([]uint32, 1<<width+1)
	for _, h := range x.hashes {
		x.buckets[h>>x.shift+1]++
	}
	for i := range 1 << width {
		x.buckets[i+1] += x.buckets[i]
	}
}

// number returns the number of the value whose words have a hash.
func (x *Values) number(hash uint64) (value uint32, ok bool) {
	b := hash >> x.shift
	for i := x.buckets[b]; i < x.buckets[b+1]; i++ {
		if x.hashes[i] == hash {
			return i, true
		}
	}
	return 0, false
}

// speller numbers words: those of an old vocabulary as it does, and others from there on.
type speller struct {
	old   *vocabulary
	ids   map[string]uint32 // of the others
	texts []string          // likewise, by number
}

func (v *speller) number(text string) uint32 {
	if id, known := v.ids[text]; known {
		return id
	}
	if id, known := v.old.find(text); known {
		return id
	}
	id := uint32(v.old.len() + len(v.texts))
	text = strings.Clone(text)
	v.ids[text], v.texts = id, append(v.texts, text)
	return id
}

// settle makes a vocabulary of those words that are used, and returns their numbers in it.
func (v *speller) settle(used []bool) (vocabulary, []uint32) {
	fresh := make([]uint32, len(v.texts))
	for i := range fresh {
		fresh[i] = uint32(v.old.len() + i)
	}
	text := func(id uint32) string { return v.texts[int(id)-v.old.len()] }
	slices.SortFunc(fresh, func(a, b uint32) int { return cmp.Compare(text(a), text(b)) })
	numbers := make([]uint32, len(used))
	var sorted []string
	add := func(id uint32, text string) {
		if used[id] {
			numbers[id] = uint32(len(sorted))
			sorted = append(sorted, text)
		}
	}
	for id := range uint32(v.old.len()) {
		for ; len(fresh) > 0 && text(fresh[0]) < v.old.text(id); fresh = fresh[1:] {
			add(fresh[0], text(fresh[0]))
		}
		add(id, v.old.text(id))
	}
	for _, id := range fresh {
		add(id, text(id))
	}
	return newVocabulary(sorted), numbers
}

// name fills the vocabulary, which holds the words of all names too whatever values there are, and the lists by word.
func (x *Values) name(before *Values, now, fresh []uint32, v *speller) {
	var names [][2]uint32 // word, table or column
	for w := range uint32(before.words.len()) {
		for _, id := range before.named.at(w) {
			if now[id] > 0 {
				names = append(names, [2]uint32{w, now[id] - 1})
			}
		}
	}
	var sp splitter
	read := func(o *catalog.Object) {
		sp.split(spaced(cmp.Or(o.Ref.Column, o.Ref.Table)) + " " + strings.Join(o.Synonyms, " "))
		for j, w := range sp.words {
			if !slices.ContainsFunc(sp.words[:j], func(o word) bool { return o.text == w.text }) {
				names = append(names, [2]uint32{v.number(w.text), o.ID})
			}
		}
	}
	for _, t := range fresh {
		read(x.snapshot.Object(t))
		columns := x.snapshot.Columns(t)
		for i := range columns {
			read(&columns[i])
		}
	}
	used := make([]bool, v.old.len()+len(v.texts))
	for _, id := range x.spelt.items {
		used[id] = true
	}
	for _, n := range names {
		used[n[0]] = true
	}
	var numbers []uint32
	x.words, numbers = v.settle(used)
	for i, id := range x.spelt.items {
		x.spelt.items[i] = numbers[id]
	}
	x.inside = group(x.words.len(), func(yield func(key, item uint32)) {
		for v := range uint32(len(x.hashes)) {
			words := x.spelt.at(v)
			for i, w := range words {
				if !slices.Contains(words[:i], w) {
					yield(w, v)
				}
			}
		}
	})
	x.named = group(x.words.len(), func(yield func(key, item uint32)) {
		for _, n := range names {
			yield(numbers[n[0]], n[1])
		}
	})
}

// spaced puts a space where a small letter is followed by a capital one.
func spaced(name string) string {
	var sb strings.Builder
	var last rune
	for _, r := range name {
		if unicode.IsLower(last) && unicode.IsUpper(r) {
			sb.WriteByte(' ')
		}
		sb.WriteRune(r)
		last = r
	}
	return sb.String()
}

// Find implements retrieval.Values.
func (x *Values) Find(question string, v acl.View) []retrieval.ValueHit {
	if v.Snapshot() != x.snapshot || len(x.hashes) == 0 {
		return nil
	}
	s := &search{Values: x, view: v, question: question}
	s.read()
	s.wholes()
	s.parts()
	slices.SortFunc(s.hits, func(a, b retrieval.ValueHit) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Column, b.Column),
			cmp.Compare(b.Quality, a.Quality), cmp.Compare(a.Value, b.Value))
	})
	s.hits = slices.CompactFunc(s.hits, func(a, b retrieval.ValueHit) bool {
		return a.From == b.From && a.To == b.To && a.Column == b.Column
	})
	slices.SortStableFunc(s.hits, func(a, b retrieval.ValueHit) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(b.Quality, a.Quality))
	})
	return s.hits
}

// search is one question being looked for.
type search struct {
	*Values
	view     acl.View
	question string
	words    []said
	hits     []retrieval.ValueHit
}

// said is a word of the question.
type said struct {
	word
	quote   int     // which quotation it stands in, 0 for none
	capital bool    // it is written with a capital that does not just begin a sentence
	taken   bool    // it is part of a value that was found whole
	means   []sense // words of values that it may be, for finding parts
}

// sense is a word of values that a word of the question may be.
type sense struct {
	word uint32
	same float64 // 1 if it is that word, less if it only resembles it
}

func (w *said) manner() manner {
	if w.capital || w.quote > 0 {
		return likeAName
	}
	return likeAnyWord
}

func (s *search) sees(column uint32) bool { return s.view.Raw(column) && s.view.Queryable(column) }

// read splits the question into words and finds out how they are written.
func (s *search) read() {
	var sp splitter
	sp.split(s.question)
	quotes := quotations(s.question)
	begins := true // a sentence
	for i, w := range sp.words[:min(len(sp.words), mostWords)] {
		if i > 0 && strings.ContainsAny(s.question[sp.words[i-1].to:w.from], ".?!:;\n") {
			begins = true
		}
		a := said{word: w}
		for n, q := range quotes {
			if w.from >= q.from && w.to <= q.to {
				a.quote = n + 1
			}
		}
		first, _ := utf8.DecodeRuneInString(s.question[w.from:])
		a.capital = unicode.IsUpper(first) && (!begins || a.quote > 0)
		s.words = append(s.words, a)
		begins = false
	}
}

// wholes finds values all of whose words stand in the question side by side, the longest first.
func (s *search) wholes() {
	for n := min(len(s.words), longestValue); n > 0; n-- {
		for i := 0; i+n <= len(s.words); i++ {
			span := s.words[i : i+n]
			if span[0].quote != span[n-1].quote || slices.ContainsFunc(span, func(w said) bool { return w.taken }) {
				continue
			}
			s.whole(span)
		}
	}
}

func (s *search) whole(span []said) {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, w := range span {
		h.WriteString(w.text)
		h.WriteByte(' ')
	}
	value, ok := s.number(h.Sum64())
	if !ok {
		return
	}
	quality := s.worth(span)
	if quality < leastQuality {
		return
	}
	if s.add(value, quality, span[0].from, span[len(span)-1].to) {
		for i := range span {
			span[i].taken = true
		}
	}
}

// worth says how likely somebody who writes these words, which are a value, means it.
func (s *search) worth(span []said) float64 {
	w := span[0]
	quoted := w.quote > 0
	digits := !slices.ContainsFunc(span, func(w said) bool { return !w.digits })
	switch {
	case digits && quoted:
		return 0.8
	case digits && len(span) > 1: // a date
		return 0.5
	case digits:
		return 0.3
	case quoted:
		return 1
	case len(span) == 1 && w.stop && w.capital && w.text != "i": // May, or grade A
		return 0.5
	case !slices.ContainsFunc(span, func(w said) bool { return !w.stop }):
		return 0
	case len(span) > 1:
		return 1
	case w.letters == 1 && w.capital: // a code
		return 0.5
	case w.letters == 1:
		return 0
	case w.capital:
		return 1
	case w.letters == 2:
		return 0
	}
	return 0.8 / float64(1+s.names(w.text))
}

// names counts the objects that the view lets be queried and that are named by a word, up to a few.
func (s *search) names(text string) int {
	const few = 9
	id, known := s.Values.words.find(text)
	if !known {
		return 0
	}
	n := 0
	for _, o := range s.named.at(id) {
		if s.view.Queryable(o) {
			if n++; n == few {
				break
			}
		}
	}
	return n
}

// add enters the hits of a value, unless nobody may see a column that holds it, and reports whether somebody may.
func (s *search) add(value uint32, quality float64, from, to int) bool {
	start, n := len(s.hits), 0
	first := s.holders.starts[value]
	for i, column := range s.holders.at(value) {
		if !s.sees(column) {
			continue
		}
		if n++; n > mostColumns {
			s.hits = s.hits[:start]
			break
		}
		text := valueAt(s.snapshot.Object(column).Column, int(s.places[int(first)+i]))
		s.hits = append(s.hits, retrieval.ValueHit{Column: column, Value: text, Said: s.question[from:to], Quality: quality, From: from, To: to})
	}
	return n > 0
}

// parts finds values of which the question has some words, or has them in another order or misspelt.
func (s *search) parts() {
	any := false
	for i := range s.words {
		w := &s.words[i]
		if w.taken || w.stop || w.digits || w.letters < 4 && !(w.capital && w.letters == 3) {
			continue
		}
		if !w.capital && w.quote == 0 && s.names(w.text) > 0 {
			continue
		}
		w.means = s.senses(w)
		any = any || len(w.means) > 0
	}
	if !any {
		return
	}
	tried := map[uint32]bool{}
	var some []portion
	for i, w := range s.words {
		for _, m := range w.means {
			for _, value := range s.inside.at(m.word) {
				if tried[value] {
					continue
				}
				tried[value] = true
				switch p, all := s.portion(value, i); {
				case p.quality < leastQuality:
				case !all:
					some = append(some, p)
				case s.add(value, p.quality, s.words[p.first].from, s.words[p.last].to):
					for j := p.first; j <= p.last; j++ {
						s.words[j].taken = true
					}
				}
			}
		}
	}
	// A word that is a whole value, if misspelt, is not a part of others too.
	for _, p := range some {
		if !slices.ContainsFunc(s.words[p.first:p.last+1], func(w said) bool { return w.taken }) {
			s.add(p.value, p.quality, s.words[p.first].from, s.words[p.last].to)
		}
	}
}

// portion is what the question has of a value: words from first to last, and perhaps others between them.
type portion struct {
	value       uint32
	quality     float64 // 0 if it is too little
	first, last int
}

// senses returns the words that a word of the question may be: itself if it is in a value that the view shows, else
// those that it may be a misspelling of. In a word that does not look like a name, first and last letter must be right,
// or every managed would be a manager.
func (s *search) senses(w *said) []sense {
	m := w.manner()
	if id, known := s.Values.words.find(w.text); known {
		if n := s.values(id, m.mostParts); n > 0 {
			if n > m.mostParts {
				return nil
			}
			return []sense{{id, 1}}
		}
	}
	var out []sense
	s.Values.words.near(w.text, func(id uint32, distance int) {
		text := s.Values.words.text(id)
		if m == likeAnyWord && (text[0] != w.text[0] || text[len(text)-1] != w.text[len(w.text)-1]) {
			return
		}
		if n := s.values(id, m.mostParts); n > 0 && n <= m.mostParts {
			out = append(out, sense{id, 1 - 0.2*float64(distance)})
		}
	})
	return out
}

// values counts the values that have a word and that the view shows, up to one more than most.
func (s *search) values(word uint32, most int) int {
	n := 0
	for _, value := range s.inside.at(word) {
		if slices.ContainsFunc(s.holders.at(value), s.sees) {
			if n++; n > most {
				break
			}
		}
	}
	return n
}

// portion judges how much of a value stands around a word of the question, and reports whether that is all of it.
func (s *search) portion(value uint32, at int) (p portion, whole bool) {
	words := s.spelt.at(value)
	var all, have, worth float64
	p, exact := portion{value: value, first: at, last: at}, true
	for _, id := range words {
		text := s.Values.words.text(id)
		if retrieval.StopWord(text) {
			continue
		}
		letters := float64(utf8.RuneCountInString(text))
		all += letters
		best, where := 0.0, at
		for i := max(0, at-len(words)); i <= min(len(s.words)-1, at+len(words)); i++ {
			for _, m := range s.words[i].means {
				if m.word == id && m.same > best {
					best, where = m.same, i
				}
			}
		}
		if best == 0 {
			continue
		}
		have += letters
		worth += letters * best * s.words[where].manner().worth
		exact = exact && best == 1
		p.first, p.last = min(p.first, where), max(p.last, where)
	}
	if have < s.words[at].manner().leastPart*all {
		return p, false
	}
	p.quality = worth / have
	switch {
	case have < all:
		p.quality *= 0.2 + 0.6*have/all
	case exact:
		p.quality *= 0.9 // another order, or without words like "the"
	}
	return p, have == all
}
