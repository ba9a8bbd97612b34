// Package mysql is the guard's dialect for MySQL and MariaDB, on the parser of TiDB.
//
// The printed text is what counts: it is canonical, holds no comment, names every base table with its database and
// spells out each grouping on which engines could differ. It is meant for a connection in utf8mb4 and the server's
// default SQL mode, as far as reading text goes (without ANSI_QUOTES, PIPES_AS_CONCAT, HIGH_NOT_PRECEDENCE and
// NO_BACKSLASH_ESCAPES). A backslash is printed twice; under NO_BACKSLASH_ESCAPES such a string would have another
// value, but could not end earlier than it does here.
//
// A SQL view of the catalog is expanded where it is read, with the rights of the asker. JSON_TABLE, which the parser does
// not know, is read here.
//
// Execute what it prints on a connection without a default database: every base table is named with its database, so
// that a name which the engine, against expectation, took for a table would find none.
//
// A column masked by hash reads the key from the session variable @schemagate_hash_key, which whoever executes the
// statement sets; without it the column is NULL.
package mysql

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver" // the parser's own nodes for literals

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// Dialect reads MySQL's and MariaDB's SQL. It is safe for concurrent use.
type Dialect struct {
	parsers sync.Pool // of *parser.Parser
	frames  frames
}

// New returns the dialect.
func New() *Dialect { return &Dialect{} }

// Name returns catalog.MySQL.
func (*Dialect) Name() catalog.Dialect { return catalog.MySQL }

// Parse reads sql. Besides text that is not of the dialect it refuses executable comments, whose content engines and
// versions read differently, and parentheses nested too deep.
func (d *Dialect) Parse(sql string) (rewrite.Tree, error) {
	t, err := d.read(sql)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (d *Dialect) read(sql string) (*tree, error) {
	if err := scan(sql); err != nil {
		return nil, err
	}
	sql, json, err := extractJSONTables(sql)
	if err != nil {
		return nil, err
	}
	statements, err := d.parse(sql)
	if err != nil {
		return nil, &acl.Refusal{
			Code: acl.CodeUnparsable, Public: "the statement is not valid SQL of this database",
			Hint: "check the statement's syntax", Detail: err.Error(),
		}
	}
	return &tree{dialect: d, sql: sql, json: json, statements: statements}, nil
}

// parse uses parsers again: making one takes as long as a short statement. Those that read a long text are let go with
// the memory that it took.
func (d *Dialect) parse(sql string) ([]ast.StmtNode, error) {
	p, ok := d.parsers.Get().(*parser.Parser)
	if !ok {
		p = parser.New()
	}
	statements, err := parseWith(p, sql, parser.CharsetConnection("utf8mb4"), parser.CollationConnection("utf8mb4_general_ci"))
	if err != nil {
		return nil, err
	}
	if len(sql) < 1<<16 {
		d.parsers.Put(p)
	}
	return statements, nil
}

// parseWith parses a text. The parser panics on some that it has no code for, like a number of a hundred digits.
func parseWith(p *parser.Parser, sql string, params ...parser.ParseParam) (statements []ast.StmtNode, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			statements, err = nil, fmt.Errorf("the parser gave up: %v", reason)
		}
	}()
	statements, _, err = p.ParseSQL(sql, params...)
	return slices.Clone(statements), err // the parser overwrites its slice with the next text
}

// tree is a parsed text.
type tree struct {
	dialect    *Dialect
	sql        string
	statements []ast.StmtNode
	json       []*jsonTable
	query      ast.ResultSetNode // the statement, once Single has found it to be one that reads
	uses       []*use            // base tables and SQL views in order of mention, once resolved
	features
}

// Single refuses anything but exactly one SELECT or set operation, and brings that into the form in which its text
// groups the same way for every engine.
func (t *tree) Single() error {
	switch len(t.statements) {
	case 0:
		return &acl.Refusal{Code: acl.CodeUnparsable, Public: "there is no statement", Hint: "write one SELECT statement"}
	case 1:
	default:
		return &acl.Refusal{
			Code: acl.CodeMultipleStatements, Public: fmt.Sprintf("there are %d statements; one at a time is read", len(t.statements)),
			Hint: "send each statement on its own",
		}
	}
	switch s := t.statements[0].(type) {
	case *ast.SelectStmt:
		t.query = s
	case *ast.SetOprStmt:
		t.query = s
	case *ast.ExplainStmt, *ast.ShowStmt, *ast.SetStmt, *ast.UseStmt, *ast.DoStmt:
		return &acl.Refusal{
			Code: acl.CodeNotSupported, Public: "only statements that select rows are supported",
			Hint: "write one SELECT statement", Detail: fmt.Sprintf("%T", s),
		}
	default:
		return notReadOnly("the statement does more than read", fmt.Sprintf("%T", s))
	}
	if err := t.jsonTables(); err != nil {
		return err
	}
	return canonical(t.sql, t.query)
}

// Limit caps the rows of the result.
func (t *tree) Limit(rows int) error {
	limit := func(l *ast.Limit) (*ast.Limit, error) {
		if l == nil {
			return &ast.Limit{Count: newLiteral(uint64(rows))}, nil
		}
		v, ok := l.Count.(*test_driver.ValueExpr)
		if !ok || v.Kind() != test_driver.KindUint64 && v.Kind() != test_driver.KindInt64 {
			return nil, notSupported("a LIMIT that is not a number is not supported", l.Count)
		}
		if v.GetUint64() > uint64(rows) {
			l.Count = newLiteral(uint64(rows))
		}
		return l, nil
	}
	var err error
	switch s := t.query.(type) {
	case *ast.SelectStmt:
		s.Limit, err = limit(s.Limit)
	case *ast.SetOprStmt:
		s.Limit, err = limit(s.Limit)
	}
	return err
}

// Print writes the statement. With its wrappers and the parentheses that it has not needed so far it may be nested too
// deep to be read again.
func (t *tree) Print() (string, error) {
	s, err := text(t.query)
	if err != nil || len(s) < 2*maxNesting {
		return s, err
	}
	return s, scan(s)
}

// Same compares what the two print.
func (t *tree) Same(_ rewrite.Tree, text string) error {
	again, err := t.Print()
	if err != nil {
		return err
	}
	if again != text {
		return errors.New("it prints differently the second time")
	}
	return nil
}

const spelling = format.RestoreStringSingleQuotes | format.RestoreStringEscapeBackslash | format.RestoreStringWithoutDefaultCharset |
	format.RestoreKeyWordUppercase | format.RestoreNameBackQuotes | format.RestoreSpacesAroundBinaryOperation

func text(n ast.Node) (string, error) {
	var b strings.Builder
	b.Grow(1 << 9)
	if err := n.Restore(format.NewRestoreCtx(spelling, &b)); err != nil {
		return "", fmt.Errorf("mysql: print %T: %w", n, err)
	}
	return b.String(), nil
}

// newLiteral makes the node of a string, int64, uint64, float64, bool or nil.
func newLiteral(v any) ast.ExprNode {
	minus := func(abs any) ast.ExprNode {
		return &ast.UnaryOperationExpr{Op: opcode.Minus, V: newLiteral(abs)}
	}
	switch v := v.(type) {
	case int64:
		if v < 0 {
			return minus(-uint64(v)) // also right for the smallest number
		}
	case float64:
		if v < 0 {
			return minus(-v)
		}
	}
	return ast.NewValueExpr(v, "utf8mb4", "utf8mb4_general_ci")
}

func notSupported(public string, n ast.Node) error {
	return &acl.Refusal{
		Code: acl.CodeNotSupported, Public: public, Hint: "write the statement without it",
		Detail: fmt.Sprintf("%T at byte %d", n, n.OriginTextPosition()),
	}
}

func notReadOnly(public, detail string) error {
	return &acl.Refusal{Code: acl.CodeNotReadOnly, Public: public, Hint: "write one SELECT statement that only reads", Detail: detail}
}
