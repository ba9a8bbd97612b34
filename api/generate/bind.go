package generate

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/templates"
)

// binder qualifies the columns in SQL that stewards wrote, so that it means the same once further tables are joined.
type binder struct {
	dialect catalog.Dialect
	// owners holds the tables that a column could belong to, by the column's name in lower case.
	owners map[string][]uint32
	s      *catalog.Snapshot
}

// newBinder makes a binder of SQL over some tables. Columns for which visible is false do not exist.
func newBinder(d catalog.Dialect, s *catalog.Snapshot, tables []uint32, visible func(uint32) bool) *binder {
	b := &binder{d, map[string][]uint32{}, s}
	for _, t := range tables {
		for _, c := range s.Columns(t) {
			if visible(c.ID) {
				name := strings.ToLower(c.Ref.Column)
				b.owners[name] = append(b.owners[name], t)
			}
		}
	}
	return b
}

// bind puts the table in front of every column that stands alone. What stands in a subquery has its own scope and is
// left as it is. It fails for a column that two of the tables have, and for text that it cannot split for sure.
func (b *binder) bind(sql string) (string, error) {
	tokens, err := b.tokens(sql)
	if err != nil {
		return "", err
	}
	solid := func(i, step int) string {
		for i += step; i >= 0 && i < len(tokens); i += step {
			if strings.TrimSpace(tokens[i]) != "" {
				return tokens[i]
			}
		}
		return ""
	}
	var out strings.Builder
	depth, subquery := 0, -1 // subquery is the depth of the outermost one that is open
	for i, token := range tokens {
		switch {
		case token == "(":
			depth++
			if subquery < 0 && (strings.EqualFold(solid(i, 1), "select") || strings.EqualFold(solid(i, 1), "with")) {
				subquery = depth
			}
		case token == ")":
			if depth--; depth < 0 {
				return "", fmt.Errorf("%s has a parenthesis too many", sql)
			}
			if depth < subquery {
				subquery = -1
			}
		}
		name, isName := b.name(token)
		before, after := solid(i, -1), solid(i, 1)
		if isName && subquery < 0 && before != "." && before != "::" && !strings.EqualFold(before, "as") && after != "." && after != "(" {
			owners := b.owners[strings.ToLower(name)]
			if len(owners) > 1 {
				return "", fmt.Errorf("%s is a column of %s and of %s", token, b.s.Object(owners[0]).Ref, b.s.Object(owners[1]).Ref)
			}
			if len(owners) == 1 {
				table, err := templates.Quote(b.dialect, b.s.Object(owners[0]).Ref.Table)
				if err != nil {
					return "", err
				}
				token = table + "." + token
			}
		}
		out.WriteString(token)
	}
	if depth != 0 {
		return "", fmt.Errorf("%s has an open parenthesis", sql)
	}
	return out.String(), nil
}

// name returns the name that a token is, without its quotes.
func (b *binder) name(token string) (string, bool) {
	first, size := utf8.DecodeRuneInString(token)
	if end := b.identifierEnd(first); end != 0 && len(token) > size {
		e := string(end)
		return strings.ReplaceAll(token[size:len(token)-1], e+e, e), true
	}
	return token, first == '_' || unicode.IsLetter(first)
}

// identifierEnd returns the mark that ends an identifier that begins with r; 0 if none begins with it.
func (b *binder) identifierEnd(r rune) rune {
	switch {
	case r == '"' && b.dialect != catalog.MySQL, r == '`' && b.dialect != catalog.Postgres:
		return r
	case r == '[' && b.dialect == catalog.SQLite:
		return ']'
	}
	return 0
}

// tokens splits SQL into names, numbers, texts, marks and the space between them.
func (b *binder) tokens(sql string) ([]string, error) {
	var out []string
	for rest := sql; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		n := size
		end := b.identifierEnd(r)
		switch {
		case strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "/*"), r == '#' && b.dialect == catalog.MySQL, r == ';', r == '$':
			return nil, fmt.Errorf("%s holds %q", sql, r)
		case r == '\'' || r == '"' || end != 0:
			if end == 0 {
				end = r
			}
			if n = quotedLength(rest, end, b.dialect == catalog.MySQL && r != '`'); n == 0 {
				return nil, fmt.Errorf("%s holds a quote that does not end", sql)
			}
		case isWordRune(r):
			n = len(rest) - len(strings.TrimLeftFunc(rest, func(r rune) bool { return isWordRune(r) || r == '$' }))
		case unicode.IsSpace(r):
			n = len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
		case strings.HasPrefix(rest, "::"):
			n = 2
		}
		out = append(out, rest[:n])
		rest = rest[n:]
	}
	// A text with a word right before it is no plain text: E'..', x'..'.
	for i := 1; i < len(out); i++ {
		if out[i][0] == '\'' && isWordRune(lastRune(out[i-1])) {
			return nil, fmt.Errorf("%s holds a text that begins with %s", sql, out[i-1])
		}
	}
	return out, nil
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

// quotedLength returns the length of what stands in quotes at the start of text, quotes included; a doubled mark, and
// one behind a backslash if escapes is set, does not end it. It is 0 if nothing ends it.
func quotedLength(text string, end rune, escapes bool) int {
	_, first := utf8.DecodeRuneInString(text)
	for i := first; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case escapes && r == '\\':
			_, next := utf8.DecodeRuneInString(text[i+size:])
			size += next
		case r == end:
			if i+size >= len(text) || !strings.HasPrefix(text[i+size:], string(end)) {
				return i + size
			}
			size *= 2
		}
		i += size
	}
	return 0
}
