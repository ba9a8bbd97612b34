package retrieval

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// IntentKind is what a question is after, foremost.
type IntentKind string

// The kinds of intent.
const (
	SingleTable IntentKind = "single_table" // rows of one table
	MultiTable  IntentKind = "multi_table"  // rows of several
	MetricKind  IntentKind = "metric"       // a figure that is computed from rows
	Temporal    IntentKind = "temporal"     // when, or how it went over time
	Exploratory IntentKind = "exploratory"  // what there is
)

// Intent is what a question wants, as far as its words tell.
type Intent struct {
	Kind IntentKind
	// Complex questions take more than one SELECT, or more than two tables.
	Complex bool
	figure  bool // a figure is asked for, whatever else the question is about
}

// Aspects are the yes-or-no questions that an intent is made of.
const (
	aspectMulti = iota
	aspectFigure
	aspectTime
	aspectComplex
	aspects
)

// intentModel holds the words by which questions are told apart, one a line with a tab and the log-odds that it adds to
// each aspect, in hundredths. The recipe beside it makes it.
//
//go:embed intent/words.tsv
var intentModel string

// always is the entry of the model that every question has.
const always = "*"

var intentWords = sync.OnceValue(func() map[string][aspects]int {
	out := map[string][aspects]int{}
	for line := range strings.Lines(intentModel) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		var w [aspects]int
		for i := range w {
			w[i], _ = strconv.Atoi(f[1+i]) // a test reads every line
		}
		out[f[0]] = w
	}
	return out
})

// IntentOf tells what a question wants: by words whose weight was learned from questions with known answers and, for
// what no answer tells and for other languages, by a few phrases.
func IntentOf(question string) Intent {
	words := intentWords()
	sum := words[always]
	Cues(question, func(cue string) {
		for i, w := range words[cue] {
			sum[i] += w
		}
	})
	low := strings.ToLower(question)
	for _, p := range phrases {
		if strings.Contains(low, p.text) {
			sum[p.aspect] += p.weight
		}
	}
	in := Intent{Kind: SingleTable, Complex: sum[aspectComplex] > 0, figure: sum[aspectFigure] > 0}
	switch {
	case slices.ContainsFunc(exploring[:], func(p string) bool { return strings.Contains(low, p) }):
		in.Kind = Exploratory
	case sum[aspectTime] > 0 && sum[aspectTime] >= sum[aspectFigure]:
		in.Kind = Temporal
	case in.figure:
		in.Kind = MetricKind
	case sum[aspectMulti] > 0:
		in.Kind = MultiTable
	}
	return in
}

// exploring are phrases by which somebody asks what there is, which no answer in SQL tells.
var exploring = [...]string{
	"what data", "which data ", "what kind of data", "what information do", "what tables", "which tables", "what columns", "which columns",
	"what is available", "what's available", "what can i ask", "what do we know about", "what do you know about", "overview of", "explore", "get to know",
	"welche daten", "welche tabellen", "welche spalten", "was gibt es", "was wissen wir", "überblick", "erkunde",
	"有哪些数据", "有什么数据", "哪些表", "什么表", "哪些字段", "概览", "概况", "数据总览",
}

// phrases speak for what the questions that were learned from do not hold, business words and other languages, with
// about the weight that learned words have.
var phrases = [...]struct {
	text   string
	aspect int
	weight int
}{
	{"total ", aspectFigure, 200}, {"revenue", aspectFigure, 200}, {"turnover", aspectFigure, 200}, {"profit", aspectFigure, 200}, {"margin", aspectFigure, 200},
	{"growth", aspectFigure, 200}, {"conversion", aspectFigure, 200}, {" rate", aspectFigure, 200}, {" ratio", aspectFigure, 200}, {"share of", aspectFigure, 200}, {"kpi", aspectFigure, 300},
	{"trend", aspectTime, 400}, {"over time", aspectTime, 400}, {"per month", aspectTime, 300}, {"monthly", aspectTime, 300}, {"year over year", aspectTime, 400},
	{"umsatz", aspectFigure, 200}, {"durchschnitt", aspectFigure, 300}, {"mittelwert", aspectFigure, 300}, {"wie viel", aspectFigure, 300}, {"wieviel", aspectFigure, 300},
	{"anzahl", aspectFigure, 300}, {"summe", aspectFigure, 300}, {"gesamt", aspectFigure, 200}, {"insgesamt", aspectFigure, 200},
	{"anteil", aspectFigure, 300}, {"prozent", aspectFigure, 300}, {"quote", aspectFigure, 200},
	{"平均", aspectFigure, 300}, {"总", aspectFigure, 300}, {"多少", aspectFigure, 300}, {"数量", aspectFigure, 300}, {"合计", aspectFigure, 300},
	{"占比", aspectFigure, 300}, {"比例", aspectFigure, 300}, {"几个", aspectFigure, 300}, {"最大值", aspectFigure, 300}, {"最小值", aspectFigure, 300},
	{"wann ", aspectTime, 300}, {"verlauf", aspectTime, 300}, {"entwicklung", aspectTime, 300}, {"entwickelt", aspectTime, 300},
	{"im jahr", aspectTime, 300}, {"pro jahr", aspectTime, 300}, {"monat", aspectTime, 300}, {"datum", aspectTime, 300}, {"seit ", aspectTime, 200},
	{"趋势", aspectTime, 400}, {"每月", aspectTime, 400}, {"每年", aspectTime, 400}, {"每天", aspectTime, 400}, {"何时", aspectTime, 300}, {"什么时候", aspectTime, 300},
	{"同比", aspectTime, 400}, {"环比", aspectTime, 400}, {"上个月", aspectTime, 300}, {"去年", aspectTime, 300}, {"今年", aspectTime, 300}, {"日期", aspectTime, 300},
}

// Cues calls yield with the words of a question, digits made equal, and each pair of neighbours.
func Cues(question string, yield func(cue string)) {
	var b strings.Builder
	b.Grow(len(question) + 8)
	var starts []int
	inside := false
	for _, r := range question {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '\'':
			if !inside {
				if len(starts) > 0 {
					b.WriteByte(' ')
				}
				starts = append(starts, b.Len())
			}
			inside = true
			if unicode.IsDigit(r) {
				r = '0'
			}
			b.WriteRune(unicode.ToLower(r))
		default:
			inside = false
		}
	}
	text := b.String()
	for i, from := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1] - 1
		}
		yield(text[from:end])
		if i > 0 {
			yield(text[starts[i-1]:end])
		}
	}
}
