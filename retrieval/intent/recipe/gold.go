package main

import (
	"regexp"
	"strings"

	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/retrieval"
)

// labels are what an answer's SQL says of its question.
type labels struct{ multi, metric, temporal, complex bool }

func (l labels) list() []bool { return []bool{l.multi, l.metric, l.temporal, l.complex} }

var (
	token    = regexp.MustCompile("'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|\\[[^\\]]*\\]|[\\p{L}_][\\p{L}\\p{N}_]*|\\d+(?:\\.\\d+)?|[<>=!]+|\\S")
	timeName = regexp.MustCompile(`(?i)(^|_)(date|year|month|day|time|datetime|timestamp)s?($|_)|(date|year|time)$`)
	timeFunc = regexp.MustCompile(`(?i)\b(strftime|julianday|date|datetime|time|current_timestamp|current_date)\s*\(`)
)

// gold reads labels off an answer: whether it reads several tables, computes what it gives, is about time, and is of
// many parts.
func gold(q ingest.Question) labels {
	st := read(q.SQL)
	parts := 0
	for _, is := range [...]bool{len(q.GoldTables) > 1, len(q.GoldTables) > 2, st.figures, st.clauses[retrieval.RoleGroup], st.clauses[retrieval.RoleOrder], st.selects > 1} {
		if is {
			parts++
		}
	}
	l := labels{multi: len(q.GoldTables) > 1, metric: st.figures, temporal: timeFunc.MatchString(q.SQL), complex: parts > 2}
	for _, c := range q.GoldColumns {
		_, column, _ := strings.Cut(c, ".")
		for role := range st.roles[strings.ToLower(column)] {
			if role != retrieval.RoleJoin && timeName.MatchString(column) {
				l.temporal = true
			}
		}
	}
	return l
}

var aggregates = map[string]bool{"count": true, "sum": true, "avg": true, "min": true, "max": true, "total": true}

// statement is what is asked of an answer: in which clauses each name stands, which clauses there are, how many SELECTs,
// and whether the outermost one computes figures.
type statement struct {
	roles   map[string]map[retrieval.Role]bool
	clauses map[retrieval.Role]bool
	selects int
	figures bool
}

// read goes through a statement word by word.
func read(sql string) statement {
	st := statement{roles: map[string]map[retrieval.Role]bool{}, clauses: map[retrieval.Role]bool{}}
	now := retrieval.RoleProjection
	var stack []retrieval.Role // of the clauses around
	extreme := 0
	words := token.FindAllString(sql, -1)
	for i, w := range words {
		low := strings.ToLower(strings.Trim(w, "\"`[]"))
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch {
		case w == "(":
			stack = append(stack, now)
			continue
		case w == ")" && len(stack) > 0:
			now, stack = stack[len(stack)-1], stack[:len(stack)-1]
			continue
		case strings.HasPrefix(w, "'"):
			continue
		}
		switch low {
		case "select":
			now = retrieval.RoleProjection
			st.selects++
		case "from", "join", "on", "using":
			now = retrieval.RoleJoin
		case "where", "having", "when":
			now = retrieval.RoleFilter
		case "then", "else":
			now = retrieval.RoleProjection
		case "group":
			now = retrieval.RoleGroup
		case "order":
			now = retrieval.RoleOrder
		default:
			if aggregates[low] && next == "(" && len(stack) <= 2 && now == retrieval.RoleProjection && st.selects == 1 {
				st.figures = true
			}
			if (low == "min" || low == "max") && next == "(" && st.selects > 1 {
				extreme = i // the row that has it is meant, as with ORDER BY and LIMIT
			}
			if next == "(" || next == "." {
				continue
			}
			if st.roles[low] == nil {
				st.roles[low] = map[retrieval.Role]bool{}
			}
			st.roles[low][now] = true
			if extreme > 0 && i-extreme <= 5 {
				st.roles[low][retrieval.RoleOrder] = true
			}
		}
		st.clauses[now] = true
	}
	return st
}
