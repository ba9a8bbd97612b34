package mysql

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/schemagate/schemagate/acl"
)

// maxNesting bounds open parentheses, maxDepth the depth of the parsed tree: enough for what people and tools write,
// with the wrappers around it, and little enough for every stack that it goes through.
const (
	maxNesting = 2000
	maxDepth   = 10000
)

func tooDeep() error {
	return &acl.Refusal{Code: acl.CodeTooLarge, Public: "the statement is nested too deep", Hint: "use IN lists or split the statement"}
}

// scan looks at the raw text for what the parser would not report.
func scan(sql string) error {
	if !utf8.ValidString(sql) {
		return &acl.Refusal{Code: acl.CodeUnparsable, Public: "the statement is not valid UTF-8 text", Hint: "send the statement in UTF-8"}
	}
	depth := 0
	for i := 0; i < len(sql); i++ {
		switch sql[i] {
		case '(':
			if depth++; depth > maxNesting {
				return tooDeep()
			}
		case ')':
			depth--
		case '/', '-', '#', '\'', '"', '`':
			if rest := sql[i:]; strings.HasPrefix(rest, "/*!") || strings.HasPrefix(rest, "/*M!") || strings.HasPrefix(rest, "/*T!") {
				return &acl.Refusal{
					Code: acl.CodeNotSupported, Public: "executable comments are not supported",
					Hint: "write the comment's content as plain SQL or leave it out", Detail: fmt.Sprintf("comment at byte %d", i),
				}
			}
			if end := token(sql, i); end > i {
				i = end - 1
			}
		}
	}
	return nil
}

// token returns the end of the string, quoted name or comment that begins at i, and i if none does.
func token(sql string, i int) int {
	to := func(from int, end string) int {
		if at := strings.Index(sql[from:], end); at >= 0 {
			return from + at + len(end)
		}
		return len(sql)
	}
	rest := sql[i:]
	switch c := sql[i]; {
	case c == '\'' || c == '"':
		for i++; i < len(sql) && sql[i] != c; i++ {
			if sql[i] == '\\' {
				i++
			}
		}
		return min(i+1, len(sql))
	case c == '`':
		return to(i+1, "`")
	case c == '#', strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' '):
		return to(i, "\n")
	case strings.HasPrefix(rest, "/*"):
		return to(i+2, "*/")
	}
	return i
}

// mentions reports whether a text holds a word, which is in lower case, in any case.
func mentions(sql, word string) bool {
	for i := 0; i+len(word) <= len(sql); i++ {
		if sql[i]|0x20 == word[0] && strings.EqualFold(sql[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// withoutComments returns the text as engines read it.
func withoutComments(sql string) string {
	var b strings.Builder
	for i := 0; i < len(sql); i++ {
		end := max(token(sql, i), i+1)
		if c := sql[i]; end == i+1 || c == '\'' || c == '"' || c == '`' {
			b.WriteString(sql[i:end])
		}
		i = end - 1
	}
	return b.String()
}
