package tsql

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/schemagate/schemagate/acl"
)

// snake writes the parser's name of a function the way that SQL does: CurrentUser is CURRENT_USER.
func snake(name string) string {
	var b strings.Builder
	for i, c := range name {
		if i > 0 && unicode.IsUpper(c) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(c))
	}
	return b.String()
}

// at says what and where a node is.
func at(n any) string {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", n), "*ast.")
	if f, ok := n.(node); ok && f.Frag().HasSpan() {
		return fmt.Sprintf("%s at line %d, column %d", kind, f.Frag().StartLine, f.Frag().StartColumn)
	}
	return kind
}

func offset(n node) int { return n.Frag().StartOffset }

// notSupported refuses a construct; public speaks of what the asker wrote.
func notSupported(n any, public, hint string) *acl.Refusal {
	return &acl.Refusal{Code: acl.CodeNotSupported, Public: public, Hint: hint, Detail: at(n)}
}

func invalid(why string, offset int) *acl.Refusal {
	return &acl.Refusal{
		Code:   acl.CodeUnparsable,
		Public: "the text is not a valid T-SQL query: " + why,
		Hint:   "correct the statement and send it again",
		Detail: fmt.Sprintf("at offset %d", offset),
	}
}

func tooLarge(why string) *acl.Refusal {
	return &acl.Refusal{
		Code:   acl.CodeTooLarge,
		Public: "the statement is too large: " + why,
		Hint:   "split the statement, or write long chains of OR as IN lists",
	}
}
