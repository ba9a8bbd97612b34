package generate

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/lineage"
	"github.com/schemagate/schemagate/retrieval"
)

// lexicon holds the words of a whole snapshot. Whoever looks something up must check each find against the view.
type lexicon struct {
	snapshot *catalog.Snapshot
	graph    *lineage.Graph
	metrics  map[string][]uint32 // by the terms of a name
	names    []metricName
	columns  map[string][]sense // by the terms of a phrase
	tables   map[string][]uint32
	values   map[string][]value // by key
}

// metricName is a name or synonym of a metric as terms.
type metricName struct {
	id    uint32
	terms []string
}

// sense is a column that a phrase may mean.
type sense struct {
	column uint32
	fit    fit
}

// fit says how well a phrase names a column; smaller is better.
type fit uint8

const (
	fitWhole  fit = iota // the column's name or a synonym
	fitInside            // the same behind the name of its table
	fitLabel             // the name without "name"
	fitTable             // the table, whose label the column is
	fitCode              // the name without "code"
)

// value is a sample of a column.
type value struct {
	column uint32
	text   string
}

// The endings that say that a column holds what things are called, or a short form of it.
var (
	labels = endings("name", "nm", "title", "label")
	codes  = endings("code")
)

func endings(words ...string) map[string]bool {
	out := map[string]bool{}
	for _, w := range words {
		for _, t := range retrieval.Terms(w) {
			out[t] = true
		}
	}
	return out
}

func newLexicon(s *catalog.Snapshot) *lexicon {
	l := &lexicon{
		snapshot: s, graph: lineage.New(s),
		metrics: map[string][]uint32{}, columns: map[string][]sense{}, tables: map[string][]uint32{}, values: map[string][]value{},
	}
	for _, o := range s.Objects(catalog.KindMetric) {
		for _, terms := range names(&o, o.Ref.Name) {
			l.names = append(l.names, metricName{o.ID, terms})
			key := phrase(terms)
			if !slices.Contains(l.metrics[key], o.ID) {
				l.metrics[key] = append(l.metrics[key], o.ID)
			}
		}
	}
	for i := range s.Objects(catalog.KindTable) {
		l.addTable(&s.Objects(catalog.KindTable)[i])
	}
	return l
}

// names returns the name and the synonyms of an object as terms.
func names(o *catalog.Object, name string) [][]string {
	var out [][]string
	for _, text := range append([]string{name}, o.Synonyms...) {
		if terms := retrieval.Terms(text); len(terms) > 0 {
			out = append(out, terms)
		}
	}
	return out
}

func (l *lexicon) addTable(t *catalog.Object) {
	called := names(t, t.Ref.Table)
	for _, terms := range called {
		l.tables[phrase(terms)] = append(l.tables[phrase(terms)], t.ID)
	}
	for _, c := range l.snapshot.Columns(t.ID) {
		for i, terms := range names(&c, c.Ref.Column) {
			l.addSense(terms, sense{c.ID, fitWhole})
			for _, table := range called {
				l.addSense(slices.Concat(table, terms), sense{c.ID, fitInside})
			}
			last := len(terms) - 1
			short := sense{c.ID, fitLabel}
			switch {
			case i > 0:
				continue
			case labels[terms[last]]:
			case codes[terms[last]]:
				short.fit = fitCode
			default:
				continue
			}
			l.addSense(terms[:last], short)
			for _, table := range called {
				l.addSense(slices.Concat(table, terms[:last]), short)
				if short.fit == fitLabel && echoes(terms[:last], called) {
					l.addSense(table, sense{c.ID, fitTable})
				}
			}
		}
		for _, text := range c.Column.Samples {
			// A sample that was cut short is no value.
			if key := valueKey(text); key != "" && (utf8.RuneCountInString(text) <= 100 || !strings.HasSuffix(text, "…")) {
				l.values[key] = append(l.values[key], value{c.ID, text})
			}
		}
	}
}

// echoes reports whether terms say nothing but what a table is called: then a label is that of the table.
func echoes(terms []string, called [][]string) bool {
	said := slices.Concat(called...)
	return !slices.ContainsFunc(terms, func(term string) bool { return !slices.Contains(said, term) })
}

// addSense enters a phrase for a column, and keeps the best of several reasons for the same one. The phrases of one
// column are entered one after the other.
func (l *lexicon) addSense(terms []string, s sense) {
	if len(terms) == 0 {
		return
	}
	senses := l.columns[phrase(terms)]
	if last := len(senses) - 1; last >= 0 && senses[last].column == s.column {
		senses[last].fit = min(senses[last].fit, s.fit)
		return
	}
	l.columns[phrase(terms)] = append(senses, s)
}

func phrase(terms []string) string { return strings.Join(terms, " ") }
