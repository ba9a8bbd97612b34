package templates

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/schemagate/schemagate/catalog"
)

// Lengths of text in a context, in characters.
const (
	maxDescription = 300
	maxSample      = 40
	maxType        = 80
	maxSQL         = 1200
)

// maxSamples is how many sample values of a column are shown.
const maxSamples = 5

// DDL writes a table with some of its columns as a CREATE TABLE statement for a prompt. Keys are written if all of
// their columns are among the columns given and, for a foreign key, shown is true of the columns that it points at. A
// column whose name cannot be quoted is left out, since no statement could name it; the same of the table is an error.
func DDL(d catalog.Dialect, table *catalog.Object, columns []*catalog.Object, shown func(catalog.Ref) bool) (string, error) {
	if table.Table == nil {
		return "", fmt.Errorf("templates: %s is no table", table.Ref)
	}
	name, err := QualifiedName(d, table.Ref)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	var about []string
	if table.Table.SQLView != "" {
		about = append(about, "a SQL view")
	}
	about = append(about, brief(table.Description, maxDescription), alsoCalled(table.Synonyms))
	if table.Table.Rows != nil {
		about = append(about, humanize.Comma(*table.Table.Rows)+" rows")
	}
	comment(&b, about...)
	fmt.Fprintf(&b, "CREATE TABLE %s (\n", name)

	type line struct{ code, note string }
	var lines []line
	quoted := map[string]string{} // by the key of the column's name
	key := func(column string) string { return d.Key(catalog.PartColumn, column) }
	for _, c := range columns {
		if c.Column == nil || c.Ref.TableRef() != table.Ref {
			return "", fmt.Errorf("templates: %s is no column of %s", c.Ref, table.Ref)
		}
		code, err := Quote(d, c.Ref.Column)
		if err != nil {
			continue
		}
		quoted[key(c.Ref.Column)] = code
		notes := []string{brief(c.Description, maxDescription), alsoCalled(c.Synonyms), examples(c.Column.Samples)}
		if t := brief(c.Column.Type, maxType); isPlainType(t) {
			code += " " + t
		} else if t != "" {
			notes = append([]string{"type " + t}, notes...)
		}
		lines = append(lines, line{code, joined(notes)})
	}
	list := func(names []string) (string, bool) {
		out := make([]string, len(names))
		for i, n := range names {
			q, ok := quoted[key(n)]
			if !ok {
				return "", false
			}
			out[i] = q
		}
		return strings.Join(out, ", "), len(out) > 0
	}
	if key, ok := list(table.Table.PrimaryKey); ok {
		lines = append(lines, line{code: "PRIMARY KEY (" + key + ")"})
	}
	for _, fk := range table.Table.ForeignKeys {
		from, ok := list(fk.Columns)
		to, err := QualifiedName(d, fk.To)
		if !ok || err != nil {
			continue
		}
		var ends []string
		for _, c := range fk.ToColumns {
			q, err := Quote(d, c)
			if err != nil || !shown(catalog.ColumnRef(fk.To.Database, fk.To.Schema, fk.To.Table, c)) {
				break
			}
			ends = append(ends, q)
		}
		if len(ends) == len(fk.ToColumns) {
			lines = append(lines, line{code: fmt.Sprintf("FOREIGN KEY (%s) REFERENCES %s (%s)", from, to, strings.Join(ends, ", "))})
		}
	}
	for i, l := range lines {
		b.WriteString("  " + l.code)
		if i < len(lines)-1 {
			b.WriteByte(',')
		}
		if l.note != "" {
			b.WriteString(" -- " + l.note)
		}
		b.WriteByte('\n')
	}
	b.WriteString(");\n")
	return b.String(), nil
}

// Join writes a relationship as a commented JOIN of the table to, which is one of its ends, to the other.
func Join(d catalog.Dialect, o *catalog.Object, to catalog.Ref) (string, error) {
	r := o.Relationship
	if r == nil {
		return "", fmt.Errorf("templates: %s is no relationship", o.Ref)
	}
	near, far, cardinality := r.From, r.To, r.Cardinality
	switch to {
	case r.To[0].TableRef():
	case r.From[0].TableRef():
		near, far = far, near
		switch cardinality {
		case catalog.ManyToOne:
			cardinality = catalog.OneToMany
		case catalog.OneToMany:
			cardinality = catalog.ManyToOne
		}
	default:
		return "", fmt.Errorf("templates: %s does not join %s", o.Ref, to)
	}
	table, err := QualifiedName(d, to)
	if err != nil {
		return "", err
	}
	condition := brief(r.JoinSQL, maxSQL)
	if condition == "" {
		pairs := make([]string, len(near))
		for i := range near {
			a, err := QualifiedName(d, near[i])
			if err != nil {
				return "", err
			}
			b, err := QualifiedName(d, far[i])
			if err != nil {
				return "", err
			}
			pairs[i] = a + " = " + b
		}
		condition = strings.Join(pairs, " AND ")
	}
	var b strings.Builder
	notes := joined([]string{strings.ReplaceAll(brief(string(cardinality), maxType), "_", " "), evidence(r), brief(o.Description, maxDescription)})
	if notes != "" {
		notes = " -- " + notes
	}
	comment(&b, "JOIN "+table+" ON "+condition+notes)
	return b.String(), nil
}

// Metric writes a metric as comment lines: what it means, and how it is computed.
func Metric(d catalog.Dialect, o *catalog.Object) (string, error) {
	m := o.Metric
	if m == nil {
		return "", fmt.Errorf("templates: %s is no metric", o.Ref)
	}
	sources := make([]string, len(m.Sources))
	for i, r := range m.Sources {
		name, err := QualifiedName(d, r)
		if err != nil {
			return "", err
		}
		sources[i] = name
	}
	var b strings.Builder
	unit := brief(m.Unit, maxType)
	if unit != "" {
		unit = "in " + unit
	}
	comment(&b, "Metric "+brief(o.Ref.Name, maxDescription), brief(o.Description, maxDescription), alsoCalled(o.Synonyms), unit)
	formula := "  SELECT " + brief(m.Formula, maxSQL) + " FROM " + strings.Join(sources, ", ")
	if filters := brief(strings.Join(m.Filters, " AND "), maxSQL); filters != "" {
		formula += " WHERE " + filters
	}
	comment(&b, formula)
	return b.String(), nil
}

// Query writes a past query as comment lines: the question, and the statement or what is known of it.
func Query(d catalog.Dialect, o *catalog.Object) (string, error) {
	q := o.Query
	if q == nil {
		return "", fmt.Errorf("templates: %s is no past query", o.Ref)
	}
	var b strings.Builder
	if question := brief(q.Question, maxDescription); question != "" {
		comment(&b, "Asked before: "+question)
	}
	if sql := brief(q.SQL, maxSQL); sql != "" {
		comment(&b, "  "+sql)
		return b.String(), nil
	}
	tables := make([]string, len(q.Tables))
	for i, r := range q.Tables {
		name, err := QualifiedName(d, r)
		if err != nil {
			return "", err
		}
		tables[i] = name
	}
	pattern := brief(q.JoinPattern, maxSQL)
	if pattern != "" {
		pattern = "joined by " + pattern
	}
	comment(&b, "  answered from "+strings.Join(tables, ", "), pattern)
	return b.String(), nil
}

// comment writes one comment line of the parts that say something, which must be clean; none if nothing does.
func comment(b *strings.Builder, parts ...string) {
	if text := joined(parts); text != "" {
		b.WriteString("-- " + text + "\n")
	}
}

// joined strings the parts that say anything together; a sentence's full stop would stand before a semicolon.
func joined(parts []string) string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "" })
	for i := range parts[:max(len(parts)-1, 0)] {
		parts[i] = strings.TrimSuffix(parts[i], ".")
	}
	return strings.Join(parts, "; ")
}

func alsoCalled(synonyms []string) string {
	if text := brief(strings.Join(synonyms, ", "), maxDescription); text != "" {
		return "also called " + text
	}
	return ""
}

func examples(samples []string) string {
	var out []string
	for _, v := range samples {
		if v := brief(v, maxSample); v != "" && len(out) < maxSamples {
			out = append(out, "'"+strings.ReplaceAll(v, "'", "''")+"'")
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "e.g. " + strings.Join(out, ", ")
}

// clean makes text one line: runs of white space and control characters become a space, and invisible characters that
// steer a reader go, save the joiners that scripts and emoji need.
func clean(text string) string {
	if isClean(text) {
		return text
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case breaksLine(r):
			return ' '
		case unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d':
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	return strings.Join(strings.Fields(text), " ")
}

// isClean reports whether text is plain ASCII that clean would leave as it is, as most is.
func isClean(text string) bool {
	before := byte(' ')
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c > '~' || c == ' ' && before == ' ' {
			return false
		}
		before = c
	}
	return text == "" || before != ' '
}

// brief is clean text of at most limit characters; a cut is marked with an ellipsis.
func brief(text string, limit int) string {
	if most := 16 * limit; len(text) > most {
		// What is far longer than it may be need not be cleaned to its end.
		text = wholeRunes(text[:most]) + mark
	}
	text = clean(text)
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	return strings.TrimRight(string(runes[:limit-1]), " ") + mark
}

// isPlainType reports whether the text of a type can stand in a statement: words, numbers, quoted words and balanced
// brackets, with commas only inside those.
func isPlainType(t string) bool {
	var open []rune
	quoted := false
	for i, r := range t {
		switch {
		case quoted:
			quoted = r != '\''
			if r == '\\' {
				return false
			}
		case r == '_' || r == '.' || r == ' ' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
		case i == 0:
			return false
		case '0' <= r && r <= '9':
		case r == '(' || r == '[' || r == '<':
			open = append(open, r)
		case r == ')' || r == ']' || r == '>':
			pairs := map[rune]rune{')': '(', ']': '[', '>': '<'}
			if len(open) == 0 || open[len(open)-1] != pairs[r] {
				return false
			}
			open = open[:len(open)-1]
		case len(open) > 0 && (r == ',' || r == ':'):
		case len(open) > 0 && r == '\'':
			quoted = true
		default:
			return false
		}
	}
	return t != "" && len(open) == 0 && !quoted
}
