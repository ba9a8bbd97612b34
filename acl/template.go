package acl

import (
	"fmt"
	"regexp"
	"strings"
)

// Template is SQL with places for attributes of the principal: Text[0], Attributes[0], Text[1], ... Text has one
// element more than Attributes. What fills a place becomes a typed literal in the parsed tree, never text.
type Template struct {
	Text       []string
	Attributes []string
}

var placeholder = regexp.MustCompile(`\{\{\s*principal\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)

// ParseTemplate splits SQL at its {{ principal.NAME }} places.
func ParseTemplate(sql string) (Template, error) {
	var t Template
	end := 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(sql, -1) {
		t.Text = append(t.Text, sql[end:m[0]])
		t.Attributes = append(t.Attributes, sql[m[2]:m[3]])
		end = m[1]
	}
	t.Text = append(t.Text, sql[end:])
	for _, text := range t.Text {
		if strings.Contains(text, "{{") || strings.Contains(text, "}}") {
			return Template{}, fmt.Errorf("in %q: the only thing between {{ and }} is principal.NAME", sql)
		}
	}
	return t, nil
}
