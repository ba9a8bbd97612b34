package embed

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// wordStart stands before a piece that only starts words.
const wordStart = "▁"

// unknown is the log-probability of a character that no piece has, far below that of any piece.
const unknown = -30

// piece is a part of words that the model has a vector for.
type piece struct {
	id    int32
	score float32 // log-probability
}

type pieces struct {
	starts, inner map[string]piece
	longest       int // bytes
}

func newPieces(n int) pieces {
	return pieces{starts: make(map[string]piece, n), inner: make(map[string]piece, n)}
}

func (p *pieces) add(text string, one piece) {
	into := p.inner
	if after, ok := strings.CutPrefix(text, wordStart); ok {
		text, into = after, p.starts
	}
	into[text] = one
	p.longest = max(p.longest, len(text))
}

// cutter cuts words. It keeps its memory from word to word.
type cutter struct {
	best  []way
	ids   []int32
	known map[string][]int32 // words cut before; nil to remember none
}

// each yields the pieces of a text's words, in order.
func (c *cutter) each(p *pieces, text string, yield func(id int32)) {
	eachWord(norm.NFKC.String(text), func(word string) {
		ids, known := c.known[word]
		if !known {
			ids = c.cut(p, word)
			if c.known != nil {
				c.known[word] = slices.Clone(ids)
			}
		}
		for _, id := range ids {
			yield(id)
		}
	})
}

// way is the likeliest way to have cut a word up to some place.
type way struct {
	score float64
	from  int   // where its last piece starts
	last  int32 // -1 for a character that no piece has
}

// cut finds the pieces of a word that are likeliest together. A character that no piece has is passed over.
func (c *cutter) cut(p *pieces, word string) []int32 {
	c.best = append(c.best[:0], way{})
	for range len(word) {
		c.best = append(c.best, way{score: math.Inf(-1)})
	}
	for from, r := range word {
		so := c.best[from].score
		try := func(end int, score float64, last int32) {
			if w := &c.best[end]; so+score > w.score {
				*w = way{so + score, from, last}
			}
		}
		for end := from; end < len(word) && end-from < p.longest; {
			_, size := utf8.DecodeRuneInString(word[end:])
			end += size
			if from == 0 {
				if s, ok := p.starts[word[:end]]; ok {
					try(end, float64(s.score), s.id)
				}
			}
			if s, ok := p.inner[word[from:end]]; ok {
				try(end, float64(s.score), s.id)
			}
		}
		try(from+utf8.RuneLen(r), unknown, -1)
	}
	c.ids = c.ids[:0]
	for end := len(word); end > 0; end = c.best[end].from {
		if w := c.best[end]; w.last >= 0 {
			c.ids = append(c.ids, w.last)
		}
	}
	for i, j := 0, len(c.ids)-1; i < j; i, j = i+1, j-1 {
		c.ids[i], c.ids[j] = c.ids[j], c.ids[i]
	}
	return c.ids
}

// eachWord yields the words of a text in small letters. It splits at everything that is neither letter nor digit, where
// a capital follows a small letter, before the last of several capitals that a small letter follows (but not in IDs),
// and between letters and digits.
func eachWord(text string, yield func(word string)) {
	start := -1
	var prev rune
	cut := func(end int) {
		if start >= 0 {
			yield(strings.Map(unicode.ToLower, text[start:end]))
		}
		start = -1
	}
	for i, r := range text {
		digit, letter := unicode.IsDigit(r), isLetter(r)
		switch {
		case !digit && !letter:
			cut(i)
		case start >= 0 && digit != unicode.IsDigit(prev):
			cut(i)
		case start >= 0 && unicode.IsUpper(r) && (unicode.IsLower(prev) || unicode.IsUpper(prev) && endsCapitals(text[i+utf8.RuneLen(r):])):
			cut(i)
		}
		if start < 0 && (digit || letter) {
			start = i
		}
		prev = r
	}
	cut(len(text))
}

// isLetter counts numerals that are no digits as letters.
func isLetter(r rune) bool {
	return unicode.IsLetter(r) || unicode.Is(unicode.N, r) && !unicode.IsDigit(r)
}

// endsCapitals reports whether the capital before rest starts a word: a small letter follows, and not just a plural s.
func endsCapitals(rest string) bool {
	r, size := utf8.DecodeRuneInString(rest)
	if !unicode.IsLower(r) {
		return false
	}
	next, _ := utf8.DecodeRuneInString(rest[size:])
	return r != 's' || size < len(rest) && isLetter(next)
}
