package retrieval

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/clipperhouse/uax29/v2/words"
	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"
)

// Terms splits text, be it an identifier or a sentence, into the words that the index knows: Unicode words, split
// further at case changes and between letters and digits (custID2 is cust, id, 2), lower-cased, abbreviations written
// out and reduced to their stem. Scripts written without spaces give pairs of neighbouring characters.
func Terms(text string) []string {
	var out []string
	eachWord(text, func(_, term string) { out = append(out, term) })
	return out
}

// Term is a word of a question.
type Term struct {
	// Text is the word as the index knows it, Said as the asker wrote it.
	Text, Said string
}

// mostTerms bounds the work that one question can make.
const mostTerms = 256

// phrase is a text as its words in order.
type phrase []Term

func phraseOf(text string) phrase {
	var out phrase
	eachWord(text, func(said, term string) { out = append(out, Term{term, said}) })
	return out
}

// QuestionTerms splits a question into its distinct terms, without words that every question has, in order of first
// mention, at most so many as anybody asks by. Two neighbouring words also give the term that they make when written
// together (eye colour, eyecolour).
func QuestionTerms(question string) (terms, compounds []Term) { return phraseOf(question).terms() }

func (p phrase) terms() (terms, compounds []Term) {
	stop := func(w string) bool { return stopWords[w] }
	if p.german() {
		stop = func(w string) bool { return stopWords[w] || germanStopWords[w] }
	}
	seen := map[string]bool{}
	for i, w := range p {
		if stop(w.Said) || seen[w.Text] {
			continue
		}
		if len(terms) == mostTerms {
			break
		}
		seen[w.Text] = true
		terms = append(terms, w)
		if i+1 < len(p) && !stop(p[i+1].Said) {
			joined := stem(w.Said + p[i+1].Said)
			if !seen[joined] {
				seen[joined] = true
				compounds = append(compounds, Term{joined, w.Said + " " + p[i+1].Said})
			}
		}
	}
	return terms, compounds
}

func eachWord(text string, yield func(said, term string)) {
	text = norm.NFKC.String(text)
	for it := words.FromString(text); it.Next(); {
		token := it.Value()
		if !strings.ContainsFunc(token, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			continue
		}
		for _, part := range splitIdentifier(token) {
			low := strings.ToLower(part)
			yield(low, stem(strings.ReplaceAll(low, "ß", "ss"))) // upper-case names write it so
		}
	}
	ideographs(text, yield)
}

// splitIdentifier cuts at underscores and other marks, at a lower letter followed by an upper one, before the last of
// several upper letters that a lower one follows, and between letters and digits. Ideographs are left to ideographs.
func splitIdentifier(token string) []string {
	var parts []string
	runes := []rune(token)
	start := -1
	cut := func(end int) {
		if start >= 0 && end > start {
			parts = append(parts, string(runes[start:end]))
		}
		start = -1
	}
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) || isIdeograph(r) {
			cut(i)
			continue
		}
		if start >= 0 {
			prev := runes[i-1]
			switch {
			case unicode.IsDigit(r) != unicode.IsDigit(prev),
				unicode.IsUpper(r) && unicode.IsLower(prev),
				unicode.IsUpper(r) && unicode.IsUpper(prev) && i+1 < len(runes) && unicode.IsLower(runes[i+1]) && !pluralCapital(runes[i+1:]):
				cut(i)
			}
		}
		if start < 0 {
			start = i
		}
	}
	cut(len(runes))
	return parts
}

// pluralCapital reports whether what follows upper letters is just an s, as in IDs.
func pluralCapital(rest []rune) bool {
	return rest[0] == 's' && (len(rest) == 1 || !unicode.IsLetter(rest[1]))
}

// isIdeograph reports whether a character is of a script that is written without spaces, or, as Hangul, with endings
// on its words. The mark that draws a Japanese vowel out is of no script by itself.
func isIdeograph(r rune) bool {
	return r == 'ー' || r > unicode.MaxLatin1 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// ideographs yields the pairs of neighbours in each run of such characters, and a run of one by itself.
func ideographs(text string, yield func(said, term string)) {
	var run []rune
	flush := func() {
		if len(run) == 1 {
			yield(string(run), string(run))
		}
		for i := 0; i+1 < len(run); i++ {
			yield(string(run[i:i+2]), string(run[i:i+2]))
		}
		run = run[:0]
	}
	for _, r := range text {
		if isIdeograph(r) {
			run = append(run, r)
		} else if len(run) > 0 {
			flush()
		}
	}
	flush()
}

// longestWord is the length in bytes of what can be a word of English. Longer ones are keys and the like.
const longestWord = 40

func stem(low string) string {
	if full, ok := abbreviations[low]; ok {
		low = full
	}
	if len(low) < 3 || len(low) > longestWord || strings.ContainsFunc(low, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return low
	}
	return english.Stem(low, false)
}

// abbreviations are written out on both sides, so that a short form meets its long one.
var abbreviations = expand(map[string]string{
	"account": "acct acc", "address": "addr", "amount": "amt", "approved": "apprv", "average": "avg", "balance": "bal",
	"beginning": "beg", "benefit": "ben", "budget": "bdgt", "category": "cat catg ctgry", "channel": "chnl", "code": "cd",
	"comment": "cmt", "company": "cmpny", "contact": "cntct", "count": "cnt", "country": "ctry cntry", "created": "crtd",
	"currency": "ccy curr", "customer": "cust cstmr", "database": "db", "date": "dt dte", "deleted": "dltd",
	"delivery": "dlvry deliv", "department": "dept dpt", "description": "desc descr dscr", "destination": "dest dst",
	"discount": "disc dscnt", "distribution": "distr", "document": "doc", "employee": "emp empl", "error": "err",
	"event": "evt", "exchange": "exch", "expense": "exp", "first": "fst", "forecast": "fcst", "general": "gen",
	"group": "grp", "headcount": "hc", "history": "hist", "hour": "hr hrs", "image": "img", "information": "info",
	"inventory": "inv invt", "invoice": "invc", "item": "itm", "language": "lang", "latitude": "lat", "level": "lvl",
	"line": "ln", "local": "lcl", "location": "loc", "longitude": "lng lon", "management": "mgmt", "manager": "mgr",
	"manufacturer": "mfr mfg", "margin": "mrgn", "maximum": "max", "message": "msg", "minimum": "min", "minute": "mins",
	"month": "mth mon", "number": "num nbr no nr", "order": "ord", "organization": "org", "original": "orig",
	"package": "pkg", "parameter": "param", "password": "pwd passwd", "payment": "pmt pymt", "percent": "pct perc",
	"percentage": "pctg", "period": "prd", "phone": "ph tel telephone", "picture": "pic", "point": "pt pts",
	"position": "pos", "previous": "prev", "price": "prc", "product": "prod prdct", "promotion": "promo",
	"purchase": "purch", "quantity": "qty qnty", "quarter": "qtr", "rating": "rtg", "received": "rcvd", "reference": "ref",
	"region": "rgn reg", "registration": "regn", "relationship": "rel", "request": "req", "response": "resp",
	"return": "rtn ret", "revenue": "rev", "salary": "sal", "sequence": "seq", "service": "svc srv", "session": "sess",
	"shipment": "shpmt", "shipped": "shpd", "source": "src", "standard": "std", "statistic": "stat stats",
	"status": "sts stts", "street": "str", "student": "stud", "subject": "subj", "supplier": "supp suppl splr",
	"target": "tgt", "temperature": "temp tmp", "territory": "terr", "timestamp": "ts tstamp", "title": "ttl",
	"total": "tot", "transaction": "txn trx trans trn tran", "type": "typ", "university": "univ", "updated": "upd updt",
	"user": "usr", "value": "val", "vehicle": "veh", "vendor": "vndr", "volume": "vol", "warehouse": "whse wh", "week": "wk",
	"weight": "wgt wt", "year": "yr",
})

func expand(long map[string]string) map[string]string {
	out := map[string]string{}
	for full, shorts := range long {
		for _, s := range strings.Fields(shorts) {
			out[s] = full
		}
	}
	return out
}

// StopWord reports whether a word, in small letters, is one that questions have whatever they are about.
func StopWord(low string) bool { return stopWords[low] }

// stopWords are words of questions that say nothing about where the answer lies.
var stopWords = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range slices.Concat(
		strings.Fields(`a an the this that these those there here it its itself they them their theirs he she him her his hers we us our you your i me my mine
		who whom whose which what when where why how is are was were be been being am do does did done doing have has had having can could will would
		shall should may might must not no nor and or but if then else than as at by for from in into of off on onto out over to up with within without about
		above after again against all any both each every few more most other others some such only own same so too very just also between during through under until while
		s t d ll m re ve don doesn isn aren wasn weren
		many much please list show tell give find display provide mention identify calculate compute determine get let among
		one ones also along per ever yet still like whether either neither`),
	) {
		out[w] = true
	}
	return out
}()

// german reports whether the words are of a German sentence.
func (p phrase) german() bool {
	marks := 0
	for _, w := range p {
		if germanMarks[w.Said] {
			marks++
		}
	}
	return marks > 1 && marks*germanShare >= len(p)
}

// foreign reports whether a question, whose words are those of said, is in another language than names mostly are. Its
// words are seldom those of the catalog.
func foreign(question string, said phrase) bool {
	return said.german() || strings.ContainsFunc(question, isIdeograph)
}

// germanShare is the share of the words, one in so many, that must be of German alone for a question to be German.
const germanShare = 8

// germanMarks are words that a German sentence can hardly do without and an English one does not have.
var germanMarks = set(`der das und ist sind wie viele welche welcher welches welchen für von mit nicht den dem des ein eine einen einem einer eines
	zeige zeig gib finde nenne liste auf im zum zur oder haben hat gibt es jede jeder jedes jeden alle allen`)

// germanStopWords are to German what stopWords are to English. Some are words of other meaning in English (die, war, hat),
// so they count only in a German question.
var germanStopWords = set(`der die das des dem den ein eine einen einem einer eines und oder aber sowie nicht kein keine keinen keiner ist sind war waren
	wird werden wurde wurden worden sein seine seinen seiner seinem ihr ihre ihren ihrer ihrem sie er es wir uns ich mir mich man sich hat haben hatte hatten
	kann können soll sollen muss müssen darf gibt gib geben zeige zeig zeigen finde finden liste listen nenne nennen bestimme ermittle berechne
	wie viele viel wieviel wieviele welche welcher welches welchen welchem wer wen wem wessen was wann wo woher wohin warum
	in im an am auf aus bei beim mit nach von vom vor zu zum zur über unter um für durch ohne gegen zwischen als ob wenn dann dass damit weil da
	alle allen aller alles jede jeder jedes jeden jedem diese dieser dieses diesen diesem jene jener deren dessen denen dort hier
	auch nur noch schon sehr mehr mindestens sowohl etwa bitte mir sortiert sortiere geordnet jeweils jeweilige jeweiligen dabei einschließlich`)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

// mostSorts bounds what one question can ask for.
const mostSorts = 8

// asking are words that say what sort of thing is asked for. They name no object, so they are no terms.
var asking = set(`when where who whom whose wann wo wer wem wen wessen woher wohin`)

// sorts returns the words of a question that say what sort of thing it asks for: when, where, who, how old.
func (p phrase) sorts() []string {
	var out []string
	how := ""
	for _, w := range p {
		if how != "" && !slices.Contains(out, how+" "+w.Said) {
			out = append(out, how+" "+w.Said)
		}
		how = ""
		switch {
		case w.Said == "how" || w.Said == "wie":
			how = w.Said
		case asking[w.Said] && !slices.Contains(out, w.Said):
			out = append(out, w.Said)
		}
	}
	return out[:min(mostSorts, len(out))]
}

// Bounds of the clauses of a question.
const (
	mostClauses = 4
	leastClause = 2 // terms
)

var (
	clauseEnds  = regexp.MustCompile(`[.,;:?!]+(?:\s|$)|[\n。，；：？！、]`)
	clauseWords = set("and or but while whereas then und oder aber sowie")
)

// clauses splits a question that says several things into what it says one by one (the subqueries of AskTable), at most so
// many. One that says a single thing has none.
func clauses(question string) []string {
	var out []string
	add := func(text string) {
		if terms, _ := QuestionTerms(text); len(terms) >= leastClause && len(out) < mostClauses {
			out = append(out, text)
		}
	}
	for _, part := range clauseEnds.Split(question, -1) {
		words := strings.Fields(part)
		from := 0
		for i, w := range words {
			if clauseWords[strings.ToLower(w)] {
				add(strings.Join(words[from:i], " "))
				from = i + 1
			}
		}
		add(strings.Join(words[from:], " "))
	}
	if len(out) < 2 {
		return nil
	}
	return out
}
