// Package sqlite is the guard's SQLite dialect, on a parser that accepts exactly what SQLite accepts.
//
// Every base table is replaced, where it stands, by a derived table of what the principal may see. Whatever SQLite's
// scope rules then make of a name, they make of it on visible data only; resolving names beforehand is for refusals in
// the asker's own words, for the record of what was read, and for spellings that could change their meaning.
package sqlite

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sqlc-dev/meyer/ast"
	"github.com/sqlc-dev/meyer/parser"
	"github.com/sqlc-dev/meyer/token"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// maxDepth bounds the nesting of a tree. SQLite itself stops at expressions of depth 1,000; the rest is for the
// subqueries and parentheses between them.
const maxDepth = 4000

// Dialect reads SQLite. It holds no state.
type Dialect struct{}

// New makes the dialect.
func New() *Dialect { return &Dialect{} }

// Name returns catalog.SQLite.
func (*Dialect) Name() catalog.Dialect { return catalog.SQLite }

// Parse reads sql. It refuses text that SQLite would read only up to a NUL, or that is not UTF-8.
func (*Dialect) Parse(sql string) (rewrite.Tree, error) {
	if strings.IndexByte(sql, 0) >= 0 || !utf8.ValidString(sql) {
		return nil, invalid("the text is not plain UTF-8")
	}
	statements, err := parser.ParseString(sql)
	if err != nil {
		return nil, unparsable(err)
	}
	for _, s := range statements {
		if len(sql) > maxDepth && tooDeep(s) { // a level takes a character
			return nil, nestedTooDeeply()
		}
	}
	return &tree{sql: sql, statements: statements}, nil
}

// tree is a parsed text on its way through the guard.
type tree struct {
	sql        string
	statements []ast.Stmt
	query      *ast.SelectStmt // the one statement, once Single has seen it
	tables     []*boundTable   // what Resolve found
}

// Single demands exactly one SELECT or VALUES statement.
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
	switch s := t.statements[0].(type) {
	case *ast.SelectStmt:
		t.query = s
		return nil
	case *ast.ExplainStmt:
		return notSupported(s, "EXPLAIN is not supported", "send the statement without EXPLAIN")
	}
	return &acl.Refusal{
		Code:   acl.CodeNotReadOnly,
		Public: "the statement does more than read",
		Hint:   "send a SELECT",
		Detail: fmt.Sprintf("%T", t.statements[0]),
	}
}

// Allow refuses what is not on the lists of allow.go.
func (t *tree) Allow() error { return allowed(t.query) }

// Resolve binds the names of the statement.
func (t *tree) Resolve(s *rewrite.Schema) (rewrite.Reading, error) {
	r := resolver{schema: s, sql: t.sql, top: true}
	columns := r.query(t.query, nil, nil)
	r.checkTexts()
	r.expose()
	if r.err != nil {
		return rewrite.Reading{}, r.err
	}
	t.tables = r.tables
	out := r.reading(columns)
	if r.err != nil {
		return rewrite.Reading{}, r.err
	}
	return out, nil
}

// Limit caps the result. A count that is no plain number, and a VALUES list, which takes no LIMIT, are capped from
// outside; an inner ORDER BY stands, since SQLite runs a subquery that has a LIMIT as it is written.
func (t *tree) Limit(rows int) error {
	capped := &ast.Literal{Kind: ast.LitInteger, Value: strconv.Itoa(rows), Raw: strconv.Itoa(rows)}
	if q, ok := t.query.Cores[len(t.query.Cores)-1].(*ast.SelectQuery); ok {
		if q.Limit == nil {
			q.Limit = &ast.Limit{Count: capped}
			return nil
		}
		if n, ok := integer(q.Limit.Count); ok {
			if n < 0 || n > int64(rows) { // a negative count means no limit
				q.Limit.Count = capped
			}
			return nil
		}
	}
	t.query = &ast.SelectStmt{Cores: []ast.SelectCore{&ast.SelectQuery{
		Columns: []*ast.ResultColumn{{Expr: &ast.Star{}}},
		From:    []*ast.TableRef{{Select: t.query}},
		Limit:   &ast.Limit{Count: capped},
	}}}
	return nil
}

// Print writes the statement.
func (t *tree) Print() (string, error) { return ast.String(t.query), nil }

// Same compares the trees node by node.
func (t *tree) Same(printed rewrite.Tree, _ string) error {
	p, ok := printed.(*tree)
	if !ok || !sameSelect(t.query, p.query) {
		return errors.New("it parses as another tree")
	}
	return nil
}

// integer reads a whole number with or without a sign.
func integer(e ast.Expr) (int64, bool) {
	switch e := e.(type) {
	case *ast.Literal:
		if e.Kind != ast.LitInteger {
			return 0, false
		}
		n, err := strconv.ParseInt(e.Value, 10, 64)
		return n, err == nil
	case *ast.UnaryExpr:
		n, ok := integer(e.X)
		if e.Op == ast.OpMinus {
			n = -n
		}
		return n, ok && (e.Op == ast.OpMinus || e.Op == ast.OpPlus)
	}
	return 0, false
}

// tooDeep reports whether a tree is nested beyond maxDepth: chains of operators nest without the parser having had to.
func tooDeep(n ast.Node) bool { return deeper(n, maxDepth) }

func deeper(n ast.Node, most int) bool {
	if most == 0 {
		return true
	}
	deep := false
	children(n, func(c ast.Node) { deep = deep || deeper(c, most-1) })
	return deep
}

// canonical gives every quoted name the one spelling that SQLite never takes for text: back-quotes.
func canonical(n ast.Node) {
	walk(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Quote != ast.QuoteNone {
			id.Quote, id.Raw = ast.QuoteBack, quote(id.Name)
		}
		return true
	})
}

// ident makes a name, quoted where it needs to be.
func ident(name string) *ast.Ident {
	id := &ast.Ident{Name: name, Raw: name}
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || i > 0 && '0' <= c && c <= '9') {
			id.Quote = ast.QuoteBack
		}
	}
	if name == "" || token.Lookup(name) != token.ID {
		id.Quote = ast.QuoteBack
	}
	if id.Quote != ast.QuoteNone {
		id.Raw = quote(name)
	}
	return id
}

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// same reports whether two names are the same to SQLite, which folds the case of ASCII letters only.
func same(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z' {
			return false
		}
	}
	return true
}

func unparsable(err error) *acl.Refusal {
	var at *parser.Error
	if errors.As(err, &at) && at.Message == "Recursion limit" {
		return nestedTooDeeply()
	}
	return invalid(err.Error())
}

func invalid(why string) *acl.Refusal {
	return &acl.Refusal{
		Code:   acl.CodeUnparsable,
		Public: "the text is not a valid SQLite statement: " + why,
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
		Hint:   "split the statement, or write long chains of OR as IN lists",
	}
}

// notSupported refuses a construct; public speaks of what the asker wrote.
func notSupported(n ast.Node, public, hint string) *acl.Refusal {
	return &acl.Refusal{
		Code: acl.CodeNotSupported, Public: public, Hint: hint,
		Detail: fmt.Sprintf("%s at byte %d", strings.TrimPrefix(fmt.Sprintf("%T", n), "*ast."), n.Pos()),
	}
}
