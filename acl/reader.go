package acl

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The YAML parser takes time that grows with the square of some sizes; within these limits it takes seconds at most.
const (
	maxPolicyBytes = 2 << 20
	maxNesting     = 50
)

// reader walks the tree of a policy file and collects what is wrong with it, by line. It takes YAML strictly: what
// should be text must be text, and anchors, aliases, merge keys and tags are faults, since a reader of the file would
// have to resolve them to know what it allows.
type reader struct {
	file   string
	faults []fault
}

type fault struct {
	line int
	text string
}

func (r *reader) fail(line int, format string, args ...any) {
	r.faults = append(r.faults, fault{line, fmt.Sprintf(format, args...)})
}

// err joins the faults, in order of line.
func (r *reader) err() error {
	slices.SortStableFunc(r.faults, func(a, b fault) int { return a.line - b.line })
	var errs []error
	for _, f := range r.faults {
		errs = append(errs, fmt.Errorf("%s:%d: %s", r.file, f.line, f.text))
	}
	return errors.Join(errs...)
}

// document parses the file. It returns nil after a fault.
func (r *reader) document(data []byte) ast.Node {
	if len(data) > maxPolicyBytes {
		r.fail(1, "a policy file may hold %d MiB, and this one is larger; grant to roles and patterns instead of one by one", maxPolicyBytes>>20)
		return nil
	}
	tokens := lexer.Tokenize(string(data))
	if line := tooDeep(tokens); line > 0 {
		r.fail(line, "more than %d brackets or dashes nest here; close what is open", maxNesting)
		return nil
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		r.syntax(err)
		return nil
	}
	if len(file.Docs) > 1 {
		r.fail(lineOf(file.Docs[1]), "a second document begins here; a policy file holds one, so take out the --- line or split the file")
		return nil
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		r.fail(1, "the file is empty; begin it with version: 1")
		return nil
	}
	return file.Docs[0].Body
}

// tooDeep returns the line on which collections nest too deeply, 0 if nowhere.
func tooDeep(tokens token.Tokens) int {
	depth, line, dashes := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth = max(depth-1, 0)
		case token.SequenceEntryType, token.MappingKeyType:
			dashes++
		}
		if depth+dashes > maxNesting {
			return line
		}
	}
	return 0
}

var syntaxError = regexp.MustCompile(`(?s)^\[(\d+):\d+\] ([^\n]*)`)

// syntax notes the parser's error without the excerpt of the file that it shows.
func (r *reader) syntax(err error) {
	line, text := 1, err.Error()
	if m := syntaxError.FindStringSubmatch(text); m != nil {
		fmt.Sscan(m[1], &line)
		text = m[2]
	}
	text, _, _ = strings.Cut(text, "\n")
	r.fail(line, "this is not YAML: %s; correct the line", text)
}

func lineOf(n ast.Node) int {
	switch n := n.(type) {
	case *ast.DocumentNode:
		if n.Body != nil {
			return lineOf(n.Body)
		}
		if n.Start != nil {
			return n.Start.Position.Line
		}
		return 1
	case *ast.MappingNode:
		// The token of a mapping without braces is its first colon.
		if len(n.Values) > 0 && !n.IsFlowStyle {
			return n.Values[0].Key.GetToken().Position.Line
		}
	}
	if t := n.GetToken(); t != nil {
		return t.Position.Line
	}
	return 1
}

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	line  int
	value ast.Node
}

// entries returns the keys of a mapping, none of which the parser lets stand twice; nothing and null have none.
func (r *reader) entries(n ast.Node, what string) []entry {
	var pairs []*ast.MappingValueNode
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		r.fail(lineOf(n), "%s must be a mapping of keys to values, not %s", what, describe(n))
		return nil
	}
	var out []entry
	for _, kv := range pairs {
		out = append(out, entry{key: r.text(kv.Key, "a key of "+what), line: lineOf(kv.Key), value: kv.Value})
	}
	return out
}

// fields returns the values of a mapping whose keys are all known.
func (r *reader) fields(n ast.Node, what string, known ...string) map[string]ast.Node {
	out := map[string]ast.Node{}
	for _, e := range r.entries(n, what) {
		if !slices.Contains(known, e.key) {
			r.fail(e.line, "%s has no key %q; known are %s", what, e.key, strings.Join(known, ", "))
			continue
		}
		out[e.key] = e.value
	}
	return out
}

// list returns the elements of a sequence; nothing and null have none.
func (r *reader) list(n ast.Node, what string) []ast.Node {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.SequenceNode:
		return n.Values
	}
	r.fail(lineOf(n), "%s must be a list, not %s; write [...] around it", what, describe(n))
	return nil
}

// text returns a text, "" if there is none.
func (r *reader) text(n ast.Node, what string) string {
	switch n := n.(type) {
	case nil:
		return ""
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	}
	r.fail(lineOf(n), "%s must be text, not %s; put it in quotes", what, describe(n))
	return ""
}

// word is a text with its line.
type word struct {
	text string
	line int
}

func (r *reader) words(n ast.Node, what string) []word {
	var out []word
	for _, e := range r.list(n, what) {
		out = append(out, word{r.text(e, "each of "+what), lineOf(e)})
	}
	return out
}

// someWords is words for a list that, if it is there, must not be empty: half a rule is more likely a slip than a wish.
func (r *reader) someWords(n ast.Node, what string) []word {
	out := r.words(n, what)
	if _, null := n.(*ast.NullNode); null || n != nil && n.Type() == ast.SequenceType && len(out) == 0 {
		r.fail(lineOf(n), "%s is empty; fill the list or leave the key out", what)
	}
	return out
}

func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.NullNode:
		return "empty"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "a boolean"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "an anchor or alias (write the value out)"
	case *ast.MappingKeyNode:
		return "an explicit key (write the name before the colon)"
	case *ast.TagNode:
		return "a tag (write the value without it)"
	}
	return "this"
}
