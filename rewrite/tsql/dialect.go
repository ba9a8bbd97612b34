// Package tsql is the guard's T-SQL dialect, for SQL Server, on a parser that follows Microsoft's own grammar but is
// more forgiving: it skips words that it does not know, and groups operators in its own way. So nothing is believed of a
// tree but that it accounts for every token of the text. A text is cut into tokens by SQL Server's rules here, a tree is
// printed with nothing but words for what is understood, and the two must be the same, token for token. What is run is
// then the asker's own text with comments dropped, names quoted and each base table replaced by a derived table of what
// the principal may see; SQL Server reads the rest as it would have read it.
//
// There was no SQL Server to try this on. Whatever is not fully understood is refused.
package tsql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sqlc-dev/teesql/ast"
	"github.com/sqlc-dev/teesql/parser"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// maxDepth bounds the nesting of a statement. SQL Server's own limits are lower.
const maxDepth = 1000

// Dialect reads T-SQL. It holds no state.
type Dialect struct{}

// New makes the dialect.
func New() *Dialect { return &Dialect{} }

// Name returns catalog.TSQL.
func (*Dialect) Name() catalog.Dialect { return catalog.TSQL }

// Parse reads sql. Text that is more than one query is refused before the parser sees it.
func (*Dialect) Parse(sql string) (rewrite.Tree, error) {
	t, err := parse(sql)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func parse(sql string) (t *tree, err error) {
	if strings.IndexByte(sql, 0) >= 0 || !utf8.ValidString(sql) {
		return nil, invalid("the text is not plain UTF-8", 0)
	}
	tokens, err := query(sql)
	if err != nil {
		return nil, err
	}
	script, err := program(uncommented(sql, tokens))
	if err != nil {
		return nil, invalid(err.Error(), 0)
	}
	t = &tree{tokens: tokens}
	for _, b := range script.Batches {
		t.statements = append(t.statements, b.Statements...)
	}
	return t, nil
}

// program runs the parser, which is not proof against every text.
func program(sql string) (s *ast.Script, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser gave up on it")
		}
	}()
	return parser.Parse(context.Background(), strings.NewReader(sql))
}

// tree is a parsed text on its way through the guard.
type tree struct {
	tokens     []token // of the text
	statements []ast.Statement
	query      *ast.SelectStatement // the one statement, once Single has seen it
	found      findings             // once Resolve is done
	printed    []token              // once Print is done, with the structure
	shape      string
}

// Single demands exactly one SELECT statement.
func (t *tree) Single() error {
	switch {
	case len(t.statements) == 0:
		return invalid("there is no statement in it", 0)
	case len(t.statements) > 1:
		return severalStatements(t.tokens[0])
	}
	q, ok := t.statements[0].(*ast.SelectStatement)
	if !ok || q.QueryExpression == nil {
		return &acl.Refusal{
			Code: acl.CodeNotReadOnly, Public: "the statement does more than read", Hint: "send a SELECT", Detail: at(t.statements[0]),
		}
	}
	t.query = q
	return nil
}

// Allow refuses what the printer has no words for, functions that are not on the list, and a tree that does not account
// for the whole text.
func (t *tree) Allow() error {
	p := printer{out: make([]token, 0, len(t.tokens)+len(t.tokens)/4)}
	p.statement(t.query)
	if p.err != nil {
		return p.err
	}
	if no := covers(t.tokens, p.out); no != nil {
		return no
	}
	return nil
}

// Resolve binds the names of the statement.
func (t *tree) Resolve(s *rewrite.Schema) (rewrite.Reading, error) {
	r := resolver{schema: s}
	out := r.statement(t.query)
	if r.err != nil {
		return rewrite.Reading{}, r.err
	}
	t.found = r.findings
	return rewrite.Reading{Tables: r.reads(), Output: outputs(out), Filters: r.chosenBy()}, nil
}

// Limit caps the result. Where the last word is not a plain count, the query goes into a derived table and its order is
// repeated outside, since SQL Server keeps none.
func (t *tree) Limit(rows int) error {
	for {
		q, ok := t.query.QueryExpression.(*ast.QueryParenthesisExpression)
		if !ok {
			break
		}
		t.query.QueryExpression = q.QueryExpression
	}
	if q, ok := t.query.QueryExpression.(*ast.QuerySpecification); ok {
		switch top, offset := q.TopRowFilter, q.OffsetClause; {
		case top == nil && offset == nil:
			q.TopRowFilter = &ast.TopRowFilter{Expression: parenthesised(rows)}
			return nil
		case offset != nil:
			if offset.FetchExpression == nil {
				offset.FetchExpression = integer(rows)
				return nil
			}
			if n, ok := count(offset.FetchExpression); ok {
				if n > int64(rows) {
					offset.FetchExpression = integer(rows)
				}
				return nil
			}
		case !top.Percent && !top.WithTies:
			if n, ok := count(top.Expression); ok {
				if n > int64(rows) {
					top.Expression = parenthesised(rows)
				}
				return nil
			}
		}
	}
	return t.limitOutside(rows)
}

func (t *tree) limitOutside(rows int) error {
	tooOpen := func(n any) error {
		return notSupported(n, "results have a largest number of rows, which cannot be put on this query", "write TOP with a number, and order by names of the result's columns")
	}
	var order *ast.OrderByClause
	keeps := false // the inner query needs its own order
	switch q := t.query.QueryExpression.(type) {
	case *ast.QuerySpecification:
		order, keeps = q.OrderByClause, true
		if q.OffsetClause != nil {
			return tooOpen(q)
		}
	case *ast.BinaryQueryExpression:
		order = q.OrderByClause
		q.OrderByClause = nil
	default:
		return tooOpen(q)
	}
	outer := &ast.QuerySpecification{UniqueRowFilter: "NotSpecified", TopRowFilter: &ast.TopRowFilter{Expression: parenthesised(rows)}}
	alias := identifier(reserved)
	var columns []*ast.Identifier
	for i, c := range t.found.output {
		id := identifier(fmt.Sprintf("c%d", i+1))
		columns = append(columns, id)
		e := &ast.SelectScalarExpression{Expression: column(reserved, id.Value)}
		if c.name != "" {
			e.ColumnName = &ast.IdentifierOrValueExpression{Value: c.name, Identifier: identifier(c.name)}
		}
		outer.SelectElements = append(outer.SelectElements, e)
	}
	if order != nil {
		outer.OrderByClause = &ast.OrderByClause{}
		for _, o := range order.OrderByElements {
			i := t.found.position(o.Expression)
			if i < 0 {
				return tooOpen(o)
			}
			outer.OrderByClause.OrderByElements = append(outer.OrderByClause.OrderByElements,
				&ast.ExpressionWithSortOrder{SortOrder: o.SortOrder, Expression: column(reserved, columns[i].Value)})
		}
		if !keeps {
			order = nil
		}
	}
	outer.FromClause = &ast.FromClause{TableReferences: []ast.TableReference{&ast.QueryDerivedTable{
		QueryExpression: t.query.QueryExpression, Alias: alias, Columns: columns,
	}}}
	t.query.QueryExpression = outer
	return nil
}

// position returns which column of the result a term of ORDER BY means, or -1.
func (f *findings) position(e ast.ScalarExpression) int {
	switch e := e.(type) {
	case *ast.IntegerLiteral:
		if n, err := strconv.Atoi(e.Value); err == nil && 1 <= n && n <= len(f.output) {
			return n - 1
		}
	case *ast.ColumnReferenceExpression:
		if ids := e.MultiPartIdentifier.Identifiers; len(ids) == 1 && e.Collation == nil {
			return slices.IndexFunc(f.output, func(c *col) bool { return same(c.name, ids[0].Value) })
		}
	}
	return -1
}

// Print writes the statement.
func (t *tree) Print() (string, error) {
	p := printer{free: true, shape: &strings.Builder{}, out: make([]token, 0, len(t.tokens)+len(t.tokens)/4)}
	p.statement(t.query)
	if p.err != nil {
		return "", p.err
	}
	t.printed, t.shape = p.out, p.shape.String()
	return write(p.out)
}

// Same compares what the two print, and how they are built. Here, too, the tree must account for the whole text.
func (t *tree) Same(printed rewrite.Tree, text string) error {
	again, err := t.Print()
	if err != nil {
		return err
	}
	if again != text {
		return errors.New("it prints differently the second time")
	}
	p, ok := printed.(*tree)
	if !ok || t.shape != p.shape {
		return errors.New("it is built differently the second time")
	}
	if no := covers(t.tokens, t.printed); no != nil {
		return no
	}
	return nil
}

// count reads a whole number, in parentheses or not.
func count(e ast.ScalarExpression) (int64, bool) {
	switch e := e.(type) {
	case *ast.IntegerLiteral:
		n, err := strconv.ParseInt(e.Value, 10, 64)
		return n, err == nil
	case *ast.ParenthesisExpression:
		return count(e.Expression)
	}
	return 0, false
}

func integer(n int) *ast.IntegerLiteral {
	return &ast.IntegerLiteral{LiteralType: "Integer", Value: strconv.Itoa(n)}
}

func parenthesised(n int) ast.ScalarExpression {
	return &ast.ParenthesisExpression{Expression: integer(n)}
}

func identifier(name string) *ast.Identifier { return &ast.Identifier{Value: name} }

func column(path ...string) *ast.ColumnReferenceExpression {
	m := &ast.MultiPartIdentifier{Count: len(path)}
	for _, name := range path {
		m.Identifiers = append(m.Identifiers, identifier(name))
	}
	return &ast.ColumnReferenceExpression{ColumnType: "Regular", MultiPartIdentifier: m}
}

// same reports whether two names are the same name to SQL Server under its usual collations, which ignore case. Where
// they are the same only to a server that tells cases apart or folds more, nothing is lost: base tables are bound by us
// and written out.
func same(a, b string) bool {
	if a == b {
		return true
	}
	if len(a) == len(b) {
		equal := true
		for i := 0; i < len(a) && equal; i++ {
			x, y := a[i], b[i]
			if x >= utf8.RuneSelf || y >= utf8.RuneSelf {
				return key(a) == key(b)
			}
			equal = x == y || x|0x20 == y|0x20 && 'a' <= x|0x20 && x|0x20 <= 'z'
		}
		return equal
	}
	return (!ascii(a) || !ascii(b)) && key(a) == key(b)
}

func key(name string) string { return catalog.TSQL.Key(catalog.PartColumn, name) }

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
