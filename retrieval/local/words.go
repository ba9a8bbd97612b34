package local

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/schemagate/schemagate/retrieval"
)

// longestWord is the length in bytes of what may be a misspelt word.
const longestWord = 40

// word is a word of a value or question in the form in which they are compared: compatibility forms resolved, letter
// case, accents and a plural s gone.
type word struct {
	text     string
	from, to int // bytes of the original
	letters  int // characters
	digits   bool
	mixed    bool // it has digits
	stop     bool
}

// splitter splits texts into words, one after the other.
type splitter struct{ words []word }

// split replaces the words by those of a text. A word is a run of letters and digits; each character of a script that
// is written without spaces is one.
func (sp *splitter) split(text string) {
	sp.words = sp.words[:0]
	start := -1
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case alone(r):
			sp.add(text, start, i)
			sp.add(text, i, i+size)
			start = -1
		case unicode.IsLetter(r) || unicode.IsDigit(r) || start >= 0 && unicode.IsMark(r):
			if start < 0 {
				start = i
			}
		default:
			possessive := start >= 0 && (r == '\'' || r == '’') && endsInS(text[i+size:])
			sp.add(text, start, i)
			start = -1
			if possessive {
				size++
			}
		}
		i += size
	}
	sp.add(text, start, len(text))
}

// endsInS reports whether an s and nothing more of a word comes first.
func endsInS(text string) bool {
	if text == "" || text[0] != 's' {
		return false
	}
	r, _ := utf8.DecodeRuneInString(text[1:])
	return !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// alone reports whether a character makes a word by itself.
func alone(r rune) bool {
	return r > unicode.MaxLatin1 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

func (sp *splitter) add(text string, from, to int) {
	if from < 0 || from == to {
		return
	}
	w := word{text: fold(text[from:to]), from: from, to: to, digits: true}
	for _, r := range w.text {
		w.letters++
		if unicode.IsDigit(r) {
			w.mixed = true
		} else {
			w.digits = false
		}
	}
	if w.text == "" {
		return
	}
	w.stop = retrieval.StopWord(w.text)
	if one := singular(w.text); !w.mixed && !w.stop && !retrieval.StopWord(one) {
		w.text = one
	}
	sp.words = append(sp.words, w)
}

// fold writes a word in small letters without accents.
func fold(s string) string {
	ascii := true
	for i := 0; i < len(s) && ascii; i++ {
		ascii = s[i] < utf8.RuneSelf
	}
	if ascii {
		return strings.ToLower(s)
	}
	return strings.ReplaceAll(strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(s)), "ß", "ss")
}

// singular drops the s that most plurals of English have.
func singular(s string) string {
	if len(s) < 4 || s[len(s)-1] != 's' || strings.IndexByte("sui", s[len(s)-2]) >= 0 {
		return s
	}
	return s[:len(s)-1]
}

// askedBy reports whether people might name a value of these words.
func (sp *splitter) askedBy() bool {
	n := 0
	for _, w := range sp.words {
		n += w.letters
	}
	if len(sp.words) == 0 || len(sp.words) > longestValue {
		return false
	}
	return n >= fewestDigits || slices.ContainsFunc(sp.words, func(w word) bool { return !w.digits })
}

// wordy reports whether a value is made of words rather than of numbers, as keys and dates are.
func (sp *splitter) wordy() bool {
	n := 0
	for _, w := range sp.words {
		if w.mixed {
			n++
		}
	}
	return n*2 <= len(sp.words) && n < len(sp.words)
}

// vocabulary is a set of words, numbered in order of text.
type vocabulary struct {
	all       string
	starts    []uint32
	backwards []uint32 // in the order that they have when read from their ends; those that may be misspelt only
}

func newVocabulary(sorted []string) vocabulary {
	v := vocabulary{all: strings.Join(sorted, ""), starts: make([]uint32, 1, len(sorted)+1)}
	n := uint32(0)
	for i, w := range sorted {
		n += uint32(len(w))
		v.starts = append(v.starts, n)
		if misspellable(w) {
			v.backwards = append(v.backwards, uint32(i))
		}
	}
	slices.SortFunc(v.backwards, func(a, b uint32) int { return fromEnd(v.text(a), v.text(b)) })
	v.backwards = slices.Clip(v.backwards)
	return v
}

func (v *vocabulary) len() int { return max(0, len(v.starts)-1) }

func (v *vocabulary) text(id uint32) string { return v.all[v.starts[id]:v.starts[id+1]] }

func (v *vocabulary) find(word string) (id uint32, known bool) {
	i := sort.Search(v.len(), func(i int) bool { return v.text(uint32(i)) >= word })
	return uint32(i), i < v.len() && v.text(uint32(i)) == word
}

// fromEnd compares words by their last letters first.
func fromEnd(a, b string) int {
	for i := 1; i <= len(a) && i <= len(b); i++ {
		if c := cmp.Compare(a[len(a)-i], b[len(b)-i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// The letters that a word must have so that one or two of them may be wrong.
const (
	oneWrong  = 5
	twoWrong  = 9
	leastNear = 4 // letters of a word that another may be a misspelling of
)

func misspellable(word string) bool {
	return utf8.RuneCountInString(word) >= leastNear && !strings.ContainsFunc(word, unicode.IsDigit)
}

// near visits the words that a word may be a misspelling of, with the number of letters that were changed, added,
// dropped or swapped. But for a swap in the middle, one half of the word must be right.
func (v *vocabulary) near(word string, visit func(id uint32, distance int)) {
	letters := utf8.RuneCountInString(word)
	if letters < oneWrong || len(word) > longestWord || !misspellable(word) {
		return
	}
	most := 1
	if letters >= twoWrong {
		most = 2
	}
	half := len(word) / 2
	for !utf8.RuneStart(word[half]) {
		half--
	}
	head, tail := word[:half], word[half:]
	// A swap across the middle leaves neither half right.
	x, n := utf8.DecodeLastRuneInString(head)
	y, m := utf8.DecodeRuneInString(tail)
	if id, known := v.find(head[:half-n] + string(y) + string(x) + tail[m:]); known && x != y {
		visit(id, 1)
	}
	for i := sort.Search(v.len(), func(i int) bool { return v.text(uint32(i)) >= head }); i < v.len(); i++ {
		text := v.text(uint32(i))
		if !strings.HasPrefix(text, head) {
			break
		}
		if d := distance(text, word, most); d > 0 && d <= most && misspellable(text) {
			visit(uint32(i), d)
		}
	}
	ends := v.backwards
	for i := sort.Search(len(ends), func(i int) bool { return fromEnd(v.text(ends[i]), tail) >= 0 }); i < len(ends); i++ {
		text := v.text(ends[i])
		if !strings.HasSuffix(text, tail) {
			break
		}
		if strings.HasPrefix(text, head) {
			continue // it was visited
		}
		if d := distance(text, word, most); d > 0 && d <= most {
			visit(ends[i], d)
		}
	}
}

// distance counts the letters that must be changed, added, dropped or swapped with their neighbour to make b of a. What
// is above most is not counted further.
func distance(a, b string, most int) int {
	if n := len(a) - len(b); n > most*utf8.UTFMax || -n > most*utf8.UTFMax {
		return most + 1
	}
	var s, t [longestWord]rune
	x, y := runes(s[:0], a), runes(t[:0], b)
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	if n := len(x) - len(y); n > most || -n > most {
		return most + 1
	}
	var rows [3][longestWord + 1]int // of the table of distances between beginnings: the last two and the present one
	for j := range y {
		rows[0][j+1] = j + 1
	}
	for i := range x {
		row, last, before := &rows[(i+1)%3], &rows[i%3], &rows[(i+2)%3]
		row[0] = i + 1
		least := row[0]
		for j := range y {
			d := last[j]
			if x[i] != y[j] {
				d = 1 + min(d, last[j+1], row[j])
				if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
					d = min(d, before[j-1]+1)
				}
			}
			row[j+1] = d
			least = min(least, d)
		}
		if least > most {
			return least
		}
	}
	return rows[len(x)%3][len(y)]
}

func runes(into []rune, s string) []rune {
	for _, r := range s {
		into = append(into, r)
	}
	return into
}

// stretch is a part of a text, in bytes.
type stretch struct{ from, to int }

// longestQuotation is the length in bytes within which a quotation must end.
const longestQuotation = 200

// quotations returns what stands in quotation marks. An apostrophe within a word is none.
func quotations(text string) []stretch {
	var out []stretch
	runeAt := func(i int) rune {
		if i < 0 || i >= len(text) {
			return ' '
		}
		r, _ := utf8.DecodeRuneInString(text[i:])
		return r
	}
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	before := ' '
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		from := i + size
		closing, single := "", false
		switch r {
		case '"':
			closing = "\""
		case '“', '„':
			closing = "”“"
		case '«':
			closing = "»"
		case '\'', '‘':
			closing, single = "'’", true
		}
		if closing != "" && !(single && inWord(before)) {
			for to := from; to < min(len(text), from+longestQuotation); {
				c, n := utf8.DecodeRuneInString(text[to:])
				if strings.ContainsRune(closing, c) && !(single && inWord(runeAt(to+n))) {
					out = append(out, stretch{from, to})
					r, from = c, to+n
					break
				}
				to += n
			}
		}
		before, i = r, from
	}
	return out
}
