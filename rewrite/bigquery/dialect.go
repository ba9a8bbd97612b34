//go:build bigquery

package bigquery

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-googlesql"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// maxBytes bounds a text. The parser's time grows faster than the text where it is nothing but operators.
const maxBytes = 1 << 17

// Dialect reads BigQuery's GoogleSQL. It is safe for concurrent use; statements are parsed one at a time.
type Dialect struct{}

// New makes the dialect. GoogleSQL starts with the first statement, which takes 50 ms.
func New() *Dialect { return &Dialect{} }

// Name returns catalog.BigQuery.
func (*Dialect) Name() catalog.Dialect { return catalog.BigQuery }

// Parse reads sql. A table in one pair of back-quotes, `project.dataset.table`, is read as the three names that it is.
func (*Dialect) Parse(sql string) (rewrite.Tree, error) {
	e, err := newEngine()
	if err != nil {
		return nil, err
	}
	switch {
	case strings.IndexByte(sql, 0) >= 0 || !utf8.ValidString(sql):
		return nil, invalid("the text is not plain UTF-8")
	case len(sql) > maxBytes:
		return nil, tooLarge(fmt.Sprintf("it has %d bytes; at most %d are read", len(sql), maxBytes))
	case deep(sql):
		return nil, nestedTooDeeply()
	}
	t := &tree{engine: e, sql: sql}
	if t.statements, err = statements(sql); err != nil || len(t.statements) != 1 {
		return t, err
	}
	edits := dotted(t.statements[0])
	if edits == nil {
		return t, nil
	}
	t.sql = apply(sql, edits)
	t.statements, err = statements(t.sql)
	return t, err
}

// statements parses a text. Several statements, or a script, are only parsed to be counted and named.
func statements(sql string) ([]*node, error) {
	options, err := parser()
	if err != nil {
		return nil, err
	}
	out, err := googlesql.ParseStatement(sql, options)
	if err == nil {
		statement, err := out.Statement()
		if err != nil {
			return nil, err
		}
		n, err := read(statement, 0)
		runtime.KeepAlive(out)
		return []*node{n}, err
	}
	no := invalid(firstLine(err))
	script, err := googlesql.ParseScript(sql, options, nil)
	if err != nil {
		return nil, no
	}
	root, err := script.Node()
	if err != nil {
		return nil, err
	}
	n, err := read(root, 0)
	runtime.KeepAlive(script)
	if err != nil {
		return nil, err
	}
	list := n.child("StatementList")
	if list == nil {
		return nil, no
	}
	return list.children, nil
}

// dotted finds the tables that are written with dots inside of back-quotes, and writes each name apart. The dots of a
// project that belongs to a domain, `example.com:project`, are its own.
func dotted(root *node) []edit {
	var edits []edit
	root.walk(func(n *node) bool {
		if n.kind == "TablePathExpression" {
			if p := n.child("PathExpression"); p != nil && slices.ContainsFunc(p.path(), func(s string) bool { return strings.Contains(s, ".") }) {
				var names []string
				for _, name := range p.path() {
					domain, rest, ok := strings.Cut(name, ":")
					if !ok {
						domain, rest = "", name
					}
					parts := strings.Split(rest, ".")
					if ok {
						parts[0] = domain + ":" + parts[0]
					}
					names = append(names, parts...)
				}
				if !slices.Equal(names, p.path()) {
					edits = append(edits, edit{p.start, p.end, quotePath(names)})
				}
			}
		}
		return true
	})
	return edits
}

// tree is a parsed text on its way through the guard.
type tree struct {
	engine     *engine
	sql        string
	statements []*node
	query      *node // the one statement, once Single has seen it

	binder  *binder      // which Resolve made
	bound   []boundTable // what Resolve found
	barred  bool         // the wrappers of filtered tables must show NULL for hidden rows
	wrapped []edit       // the statement's own edits: wrappers and the cap
	capped  []edit
	meaning string // the resolved statement without the cap

	printed *tree // the tree that this one was printed from, as Same learned it
}

// boundTable is a place where a base table is read.
type boundTable struct {
	at    *node // its TablePathExpression
	table *rewrite.Table
}

// Single demands exactly one query.
func (t *tree) Single() error {
	switch len(t.statements) {
	case 0:
		return invalid("there is no statement in it")
	case 1:
	default:
		return &acl.Refusal{
			Code:   acl.CodeMultipleStatements,
			Public: fmt.Sprintf("the text holds %d statements; one is run at a time", len(t.statements)),
			Hint:   "send the statements one by one",
		}
	}
	s := t.statements[0]
	switch s.kind {
	case "QueryStatement":
		t.query = s
		return nil
	case "ExplainStatement":
		return notSupported(s, "EXPLAIN is not supported", "send the statement without EXPLAIN")
	case "HintedStatement":
		return notSupported(s, "hints are not supported", "send the statement without hints")
	}
	return &acl.Refusal{
		Code:   acl.CodeNotReadOnly,
		Public: "the statement does more than read",
		Hint:   "send a SELECT",
		Detail: s.kind,
	}
}

// Limit caps the result. A LIMIT that is no plain number cannot be capped.
func (t *tree) Limit(rows int) error {
	q := t.query.children[0]
	limit := q.child("LimitOffset")
	if limit == nil {
		t.capped = []edit{{q.end, q.end, " LIMIT " + strconv.Itoa(rows)}}
		return nil
	}
	count := limit.children[0]
	if count.kind == "Limit" && len(count.children) == 1 {
		count = count.children[0]
	}
	if count.kind != "IntLiteral" {
		return notSupported(count, "a LIMIT that is no plain number is not supported", "write the number itself")
	}
	n, err := strconv.ParseInt(t.sql[count.start:count.end], 0, 64)
	if err != nil || n > int64(rows) {
		t.capped = []edit{{count.start, count.end, strconv.Itoa(rows)}}
	}
	return nil
}

// Print writes the statement in GoogleSQL's own spelling.
func (t *tree) Print() (string, error) {
	before, err := t.governed()
	if err != nil {
		return "", err
	}
	text, err := canonical(before)
	if err != nil {
		return "", err
	}
	if len(text) > maxBytes {
		return "", tooLarge(fmt.Sprintf("its canonical spelling has %d bytes; at most %d are read", len(text), maxBytes))
	}
	return text, nil
}

// governed is the text with the wrappers and the cap in their places.
func (t *tree) governed() (string, error) {
	edits := slices.Concat(t.wrapped, t.capped)
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	for i := range edits {
		if i > 0 && edits[i].start < edits[i-1].end {
			return "", fmt.Errorf("two edits meet at byte %d", edits[i].start)
		}
	}
	return apply(t.sql, edits), nil
}

// canonical prints a statement anew.
func canonical(sql string) (string, error) {
	options, err := parser()
	if err != nil {
		return "", err
	}
	out, err := googlesql.ParseStatement(sql, options)
	if err != nil {
		return "", err
	}
	statement, err := out.Statement()
	if err != nil {
		return "", err
	}
	text, err := googlesql.Unparse(statement)
	runtime.KeepAlive(out)
	return strings.TrimSpace(text), err
}

// Same compares the trees. Governed compares what they mean.
func (t *tree) Same(printed rewrite.Tree, text string) error {
	from, ok := printed.(*tree)
	if !ok {
		return fmt.Errorf("it is a %T", printed)
	}
	t.printed = from
	sql, err := from.governed()
	if err != nil {
		return err
	}
	before, err := statements(sql)
	if err != nil {
		return err
	}
	if len(before) != 1 || !equal(before[0], t.query) {
		return errors.New("it parses to another tree")
	}
	again, err := canonical(text)
	if err != nil {
		return err
	}
	if again != text {
		return errors.New("it prints differently the second time")
	}
	return nil
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func invalid(why string) *acl.Refusal {
	return &acl.Refusal{
		Code:   acl.CodeUnparsable,
		Public: "the text is not a valid BigQuery statement: " + why,
		Hint:   "correct the statement and send it again",
	}
}

func nestedTooDeeply() *acl.Refusal {
	return tooLarge(fmt.Sprintf("it is nested more than %d levels deep", maxDepth))
}

func tooLarge(why string) *acl.Refusal {
	return &acl.Refusal{
		Code:   acl.CodeTooLarge,
		Public: "the statement is too large: " + why,
		Hint:   "split the statement, or load long lists into a table",
	}
}

// notSupported refuses a construct; public speaks of what the asker wrote.
func notSupported(n *node, public, hint string) *acl.Refusal {
	return &acl.Refusal{
		Code: acl.CodeNotSupported, Public: public, Hint: hint,
		Detail: fmt.Sprintf("%s at byte %d", n.kind, n.start),
	}
}
