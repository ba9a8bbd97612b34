package eval

import (
	"strings"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// missDepth is how far down a gold table still counts as found.
const missDepth = 5

// manyTables is the number of gold tables from which on a question counts as one of many.
const manyTables = 4

// Cause is a circumstance of a miss that can be told without judgement. Several can hold at once.
type Cause struct {
	// Name is its key in the JSON, Title says it to people.
	Name, Title string
}

// The causes, by their place in causes.
const (
	noSharedWord = iota
	sameDatabaseAbove
	otherDatabases
	noDescription
	manyGoldTables
)

var causes = [...]Cause{
	noSharedWord:      {"no_shared_word", "the question shares no word with the names of the table and its columns (abbreviated, or said otherwise)"},
	sameDatabaseAbove: {"same_database_above", "other tables of the same database stand among the first five"},
	otherDatabases:    {"other_databases", "no table of the right database stands among the first five"},
	noDescription:     {"no_description", "neither the table nor any of its columns is described"},
	manyGoldTables:    {"many_gold_tables", "the answer needs four tables or more"},
}

// Causes lists the causes.
func Causes() []Cause { return append([]Cause(nil), causes[:]...) }

// Miss says which of the causes hold for one gold table that was not found.
type Miss [len(causes)]bool

// Misses counts the gold tables that are not among the first five.
type Misses struct {
	Tables    int            `json:"tables"`
	Questions int            `json:"questions"` // with at least one
	Causes    map[string]int `json:"causes"`    // tables by cause; one table can count several times
}

// missed explains each gold table beyond the first five, in id order.
func (m *material) missed(question, database string, gold map[uint32]bool, ranked []uint32) []Miss {
	top := map[uint32]bool{}
	var right, wrong bool // whether gold and other tables of the right database are among the first
	for _, id := range ranked[:min(missDepth, len(ranked))] {
		top[id] = true
		if strings.EqualFold(m.snapshot.Object(id).Ref.Database, database) {
			right = right || gold[id]
			wrong = wrong || !gold[id]
		}
	}
	var out []Miss
	for r := m.snapshot.OfKind(catalog.KindTable); r.From < r.To; r.From++ {
		if !gold[r.From] || top[r.From] {
			continue
		}
		out = append(out, Miss{
			noSharedWord:      !m.sharesWord(question, r.From),
			sameDatabaseAbove: wrong,
			otherDatabases:    !right && !wrong,
			noDescription:     !m.described(r.From),
			manyGoldTables:    len(gold) >= manyTables,
		})
	}
	return out
}

// sharesWord reports whether a word of the question is in a name of the table or of its columns, inflections aside.
func (m *material) sharesWord(question string, table uint32) bool {
	t := m.snapshot.Object(table)
	names := append([]string{t.Ref.Table}, t.Synonyms...)
	for _, c := range m.snapshot.Columns(table) {
		names = append(append(names, c.Ref.Column), c.Synonyms...)
	}
	said := map[string]bool{}
	for _, term := range retrieval.Terms(strings.Join(names, "\n")) {
		said[term] = true
	}
	words, _ := retrieval.QuestionTerms(question)
	for _, w := range words {
		if said[w.Text] {
			return true
		}
	}
	return false
}

func (m *material) described(table uint32) bool {
	if m.snapshot.Object(table).Description != "" {
		return true
	}
	for _, c := range m.snapshot.Columns(table) {
		if c.Description != "" {
			return true
		}
	}
	return false
}

func misses(outcomes []Outcome) Misses {
	m := Misses{Causes: map[string]int{}}
	for _, c := range causes {
		m.Causes[c.Name] = 0
	}
	for _, o := range outcomes {
		if len(o.Missed) > 0 {
			m.Questions++
		}
		for _, miss := range o.Missed {
			m.Tables++
			for i, holds := range miss {
				if holds {
					m.Causes[causes[i].Name]++
				}
			}
		}
	}
	return m
}
