package generate

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/schemagate/schemagate/retrieval"
)

// word is a piece of a question: a word, number or date, a text in quotes, or a mark that means something.
type word struct {
	said string // as written; of a quoted text, what stands between the quotes
	// low is the word in lower case, words of German grammar in English; it is empty for a quoted text.
	low    string
	key    string   // under which it is found in values
	terms  []string // under which it is found in names; empty for marks and quoted texts
	quoted bool
}

// split cuts a question into words. Marks that only structure a sentence are left out, save the comma and the colon;
// every other mark is a word of its own, so that it has to be accounted for.
func split(question string) []word {
	words := scan(question)
	german := !slices.ContainsFunc(words, func(w word) bool { return english[w.low] })
	for i := range words {
		w := &words[i]
		if !w.quoted {
			if de := grammar[w.low]; german && de != "" {
				w.low = de
			}
			w.terms = retrieval.Terms(w.said)
		}
	}
	return words
}

// scan keeps texts as they were written, and compares them by compatible characters.
func scan(text string) []word {
	text = norm.NFC.String(strings.ToValidUTF8(text, "\uFFFD"))
	var out []word
	before := ' '
	for len(text) > 0 {
		first, size := utf8.DecodeRuneInString(text)
		piece := text[:size]
		r := nextRune(norm.NFKC.String(piece))
		switch {
		case isWordRune(first):
			piece = leadingWord(text)
			out = append(out, bare(piece))
		case closing[first] != "" && !isWordRune(before) && quotedText(text[size:], closing[first]) >= 0:
			end := quotedText(text[size:], closing[first])
			said := text[size : size+end]
			_, last := utf8.DecodeRuneInString(text[size+end:])
			piece = text[:size+end+last]
			out = append(out, word{said: said, key: valueKey(said), quoted: true})
		case strings.ContainsRune("=<>!≠≤≥", first):
			piece = text[:len(text)-len(strings.TrimLeft(text, "=<>!≠≤≥"))]
			if strings.Trim(piece, "!") != "" {
				out = append(out, bare(piece))
			}
		case r == ';':
			out = append(out, bare(","))
		case unicode.IsSpace(r) || strings.ContainsRune(".?()[]{}…¿¡\"'`“”„‘’‚«»", r):
		case r == '-' && isWordRune(before) && size < len(text) && isWordRune(nextRune(text[size:])):
		default:
			out = append(out, bare(piece))
		}
		before, _ = utf8.DecodeLastRuneInString(piece)
		text = text[len(piece):]
	}
	return out
}

func bare(said string) word {
	low := strings.ToLower(norm.NFKC.String(said))
	return word{said: said, low: low, key: low}
}

// closing holds the marks that may end what a quotation mark begins.
var closing = map[rune]string{'"': `"`, '\'': "'", '`': "`", '“': "”", '„': "“”", '‘': "’", '«': "»"}

// quotedText returns the length of the text up to a closing mark that no letter follows, so that an apostrophe closes
// nothing; it is negative if there is none.
func quotedText(text, marks string) int {
	for i, r := range text {
		if strings.ContainsRune(marks, r) && i > 0 && !isWordRune(nextRune(text[i+utf8.RuneLen(r):])) {
			return i
		}
	}
	return -1
}

func nextRune(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	return r
}

func isWordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// leadingWord returns the word that text begins with. A mark between two digits belongs to it, so that a date or a
// decimal is one word whatever it is written with, and so does an apostrophe between two letters.
func leadingWord(text string) string {
	var before rune
	for i, r := range text {
		if !isWordRune(r) {
			next := nextRune(text[i+utf8.RuneLen(r):])
			number := unicode.IsDigit(before) && unicode.IsDigit(next) && strings.ContainsRune(".,:/-", r)
			apostrophe := unicode.IsLetter(before) && unicode.IsLetter(next) && strings.ContainsRune("'’", r)
			if !number && !apostrophe {
				return text[:i]
			}
		}
		before = r
	}
	return text
}

// valueKey is the same for two values that differ in letter case, spaces and marks of structure only.
func valueKey(value string) string {
	var keys []string
	for _, w := range scan(value) {
		keys = append(keys, w.key)
	}
	return strings.Join(keys, " ")
}

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

// harmless words add nothing to what is asked. Unlike the stop words of retrieval they hold nothing that restricts,
// negates or compares.
var harmless = set(`a an the of in for on at with where whose is are was were be been being am did do does has have had and only
	please me us our we i you your my can could would will show list give get find tell display report present provide
	calculate compute determine want need know see what what's which that who how much many value values figure figures
	it its there named called equal equals from : ,`)

// totals are harmless where a number is added up or counted, and counts where it is counted.
var (
	totals = set("total overall sum amount gesamt")
	counts = set("number count")
)

// english are words of English grammar that German has not: a question with one of them is not read as German.
var english = set(`the by for of per and or what which each every from with to last this since between is were are how show
	list give where has had did does`)

// grammar puts the words of German grammar into English.
var grammar = func() map[string]string {
	out := map[string]string{}
	for en, de := range map[string]string{
		"by": "nach", "per": "pro je", "each": "jede jeden jedes jeder", "for": "für", "of": "von vom", "in": "im", "the": "der die das den dem des",
		"and": "und", "or": "oder", "is": "ist", "are": "sind", "was": "war waren", "what": "wie hoch viel", "where": "wo",
		"which": "welche welcher welches welchen", "show": "zeige zeig", "me": "mir", "a": "ein eine einen einem einer",
		"with": "mit", "since": "seit", "between": "zwischen", "to": "bis", "before": "vor", "from": "aus",
		"last": "letzte letzten letzter letztes", "this": "diese diesen dieser dieses diesem", "year": "jahr jahre jahren",
		"quarter": "quartal quartale quartalen", "month": "monat monate monaten", "week": "woche wochen", "day": "tag tage tagen",
		"today": "heute", "yesterday": "gestern", "highest": "höchste höchsten höchster höchstes meisten",
		"lowest": "niedrigste niedrigsten niedrigster niedrigstes wenigsten", "first": "erste ersten erstes",
		"second": "zweite zweiten zweites", "third": "dritte dritten drittes", "fourth": "vierte vierten viertes",
		"january": "januar jänner", "february": "februar", "march": "märz", "may": "mai", "june": "juni", "july": "juli",
		"october": "oktober", "december": "dezember",
	} {
		for _, w := range strings.Fields(de) {
			out[w] = en
		}
	}
	return out
}()
