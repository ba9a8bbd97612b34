package retrieval

import (
	"slices"
	"strings"
	"unicode"

	"github.com/clipperhouse/uax29/v2/words"

	"github.com/schemagate/schemagate/catalog"
)

// Role is what a statement uses a column for.
type Role string

// The roles.
const (
	RoleProjection Role = "projection"
	RoleFilter     Role = "filter"
	RoleJoin       Role = "join"
	RoleGroup      Role = "group"
	RoleOrder      Role = "order"
)

// metricRole is what a metric needs a column for: its formula computes with it, it can be grouped by it, or else its
// filters or its time range name it.
func metricRole(m *catalog.Metric, column catalog.Ref) Role {
	switch {
	case contains(m.Formula, column.Column):
		return RoleProjection
	case slices.Contains(m.Dimensions, column):
		return RoleGroup
	}
	return RoleFilter
}

// sentence is a question as words and marks in order, for telling roles by what stands beside a word.
type sentence struct {
	figure bool                         // is asked for, and can be grouped
	words  []string                     // lower case
	terms  []string                     // by word: as the index knows it
	given  []bool                       // by word: a number, a name or what stands in quotes: a value
	at     map[string]int               // by part of a word: its first place
	names  func(column string) []string // the terms of a column's name
}

// newSentence reads a question, whose words are those of said.
func newSentence(question string, in Intent, said phrase, names func(column string) []string) *sentence {
	s := &sentence{figure: in.figure, at: map[string]int{}, names: names}
	terms := make(map[string]string, len(said))
	for _, w := range said {
		terms[w.Said] = w.Text
	}
	quoted, space := false, true
	for it := words.FromString(question); it.Next(); {
		w := it.Value()
		after := space
		if space = strings.TrimSpace(w) == ""; space {
			continue
		}
		if strings.Contains("'\"“”‘’`„", w) {
			quoted = !quoted && after // one at the end of a word, as in students' names, opens nothing
			continue
		}
		first := []rune(w)[0]
		given := quoted || unicode.IsDigit(first) ||
			unicode.IsUpper(first) && len(s.words) > 0 && !strings.Contains(".?!:", s.words[len(s.words)-1]) && !strings.EqualFold(w, "id") && !strings.EqualFold(w, "ids")
		low := strings.ToLower(w)
		for _, part := range splitIdentifier(w) {
			if part = strings.ToLower(part); !s.says(part) {
				s.at[part] = len(s.words)
			}
		}
		term, known := terms[low]
		if !known || strings.Contains(low, "ß") {
			term = stem(low)
		}
		s.words, s.terms, s.given = append(s.words, low), append(s.terms, term), append(s.given, given)
	}
	return s
}

func (s *sentence) says(word string) bool {
	_, ok := s.at[word]
	return ok
}

// Words that tell the role of a column beside whose word they stand.
var (
	superlatives = setOf(`highest lowest most least fewest latest earliest largest smallest biggest greatest longest shortest top best worst
		höchste höchsten niedrigste niedrigsten meisten wenigsten größte größten kleinste kleinsten`)
	sorters  = setOf("ordered sorted order sort ascending descending alphabetical alphabetically rank ranked sortiert geordnet")
	groupers = setOf("per each every jede jeder jedes jeden pro je")
	// linkers lead from a column's word to a value.
	linkers = setOf(`is are was were than over under above below before after since between exceeds exceeding equal equals greater less more fewer higher lower older younger
		not called named containing of in by at from on to or the a an = > < >= <= : ist sind war über unter vor nach zwischen größer kleiner als von im am aus`)
)

func setOf(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

// role tells what a question needs a column for by what stands beside the words that name it. evidence is the column's
// own; without any, the question does not speak of it.
func (s *sentence) role(column string, evidence []Evidence) Role {
	role := Role("")
	for _, e := range evidence {
		switch {
		case e.Where == FieldValue:
			return RoleFilter
		case strings.Contains(e.Said, " "):
			continue // its words stand there too
		}
		at, ok := s.at[e.Said]
		if !ok {
			continue
		}
		r := s.beside(at, s.names(column))
		if e.Where != FieldName && r != RoleFilter {
			continue
		}
		if role == "" || role == RoleProjection {
			role = r
		}
	}
	return role
}

// beside tells the role of a word in its place, given the terms of the column's name, by what stands around all that
// names the column there. What is highest or lowest is what the name is about, its last term.
func (s *sentence) beside(at int, name []string) Role {
	from := at // of the words that name the column
	for n := 1; from >= n && (slices.Contains(name, s.terms[from-n]) || n == 1 && s.words[from-n] == "of"); {
		if s.words[from-n] == "of" {
			n++
			continue
		}
		from, n = from-n, 1
	}
	before := func(n int) string {
		if from < n {
			return ""
		}
		return s.words[from-n]
	}
	groups := func(n int) bool {
		return groupers[before(n)] || before(n) == "by" && !participle(before(n+1))
	}
	last := len(name) > 0 && name[len(name)-1] == s.terms[at]
	switch {
	case last && (superlatives[before(1)] || superlatives[before(2)] && !linkers[before(1)]),
		last && (sorters[before(2)] || sorters[before(3)] || sorters[before(4)]):
		return RoleOrder
	case s.figure && (groups(1) || groups(2) && !linkers[before(1)]):
		return RoleGroup
	case from > 0 && s.given[from-1]:
		return RoleFilter
	}
	for i := at + 1; i < len(s.words); i++ {
		if s.given[i] {
			return RoleFilter
		}
		if !linkers[s.words[i]] {
			break
		}
	}
	return RoleProjection
}

// participle reports whether a word looks like one that says who did something, as written by does.
func participle(w string) bool {
	return strings.HasSuffix(w, "ed") || strings.HasSuffix(w, "en") || sorters[w]
}
