//go:build bigquery

package bigquery

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-googlesql"
)

// node is a node of the parser's tree, read once: asking the library about a node costs a call into translated code.
type node struct {
	kind       string // in GoogleSQL's words: Select, TablePathExpression
	text       string // the kind with what else the node says of itself, the places in the text apart
	name       string // of an Identifier, unquoted
	start, end int    // bytes of the text
	children   []*node
}

// maxDepth bounds the nesting of a tree, parentheses apart. The canonical spelling indents each level of subqueries, so
// that depth multiplies the size of what is printed.
const maxDepth = 400

// The limits of what the parser's own stack has to hold: brackets that are open at once, and signs, each of which can be
// an operator around the one before.
const (
	maxBrackets = 1000
	maxSigns    = 20_000
)

// deep reports whether a text may nest beyond what the parser is trusted with. Strings and comments count too.
func deep(sql string) bool {
	open, signs := 0, 0
	for i := range len(sql) {
		switch sql[i] {
		case '(', '[', '{':
			open++
		case ')', ']', '}':
			open = max(open-1, 0)
		case '+', '-', '~', '!':
			signs++
		}
		if open > maxBrackets || signs > maxSigns {
			return true
		}
	}
	return false
}

// read reads a tree from the library.
func read(n googlesql.ASTNode, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, nestedTooDeeply()
	}
	text, err := n.SingleNodeDebugString()
	if err != nil {
		return nil, err
	}
	out := &node{text: text, kind: text}
	if i := strings.IndexAny(text, " ("); i >= 0 {
		out.kind = text[:i]
	}
	if out.start, out.end, err = places(n.GetLocationString()); err != nil {
		return nil, err
	}
	if id, ok := n.(*googlesql.ASTIdentifier); ok {
		if out.name, err = id.GetAsString(); err != nil {
			return nil, err
		}
	}
	count, err := n.NumChildren()
	if err != nil {
		return nil, err
	}
	for i := range count {
		c, err := n.Child(i)
		if err != nil {
			return nil, err
		}
		child, err := read(c, depth+1)
		if err != nil {
			return nil, err
		}
		if child.kind != "Location" { // the place of an operator
			out.children = append(out.children, child)
		}
	}
	return out, nil
}

// places reads a range of bytes from how the library writes it: its points, asked for one by one, are never freed.
func places(written string, err error) (start, end int, _ error) {
	if err != nil {
		return 0, 0, err
	}
	from, to, ok := strings.Cut(written, "-")
	if !ok {
		return 0, 0, fmt.Errorf("a place reads %q", written)
	}
	if start, err = strconv.Atoi(from); err != nil {
		return 0, 0, err
	}
	end, err = strconv.Atoi(to)
	return start, end, err
}

// walk visits a tree from the top in the order of the text; visit says whether to go on below a node.
func (n *node) walk(visit func(*node) bool) {
	if !visit(n) {
		return
	}
	for _, c := range n.children {
		c.walk(visit)
	}
}

// child returns the first child of a kind; nil if there is none.
func (n *node) child(kind string) *node {
	for _, c := range n.children {
		if c.kind == kind {
			return c
		}
	}
	return nil
}

// path returns the names of a path expression.
func (n *node) path() []string {
	var out []string
	for _, c := range n.children {
		out = append(out, c.name)
	}
	return out
}

// equal reports whether two trees say the same, places in the text apart.
func equal(a, b *node) bool {
	if a.text != b.text || len(a.children) != len(b.children) {
		return false
	}
	for i := range a.children {
		if !equal(a.children[i], b.children[i]) {
			return false
		}
	}
	return true
}

// edit replaces the bytes from start to end of a text.
type edit struct {
	start, end int
	with       string
}

// apply makes edits that do not overlap, in the order of the text.
func apply(text string, edits []edit) string {
	var out strings.Builder
	at := 0
	for _, e := range edits {
		out.WriteString(text[at:e.start])
		out.WriteString(e.with)
		at = e.end
	}
	out.WriteString(text[at:])
	return out.String()
}

// quote writes a name in back-quotes.
func quote(name string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`", "\n", `\n`, "\r", `\r`).Replace(name) + "`"
}

// quotePath writes the names of a path, each in quotes of its own: no name of a WITH has a dot outside of quotes.
func quotePath(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, quote(n))
	}
	return strings.Join(out, ".")
}
