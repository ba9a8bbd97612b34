// Package postgres is the guard's PostgreSQL dialect. It reads and writes SQL with the server's own parser and printer.
//
// Names follow PostgreSQL's rules on a database that holds only what the asker may see. A table without a schema is
// looked for in the database's default schema and nowhere else, and is always printed with its schema, so that the
// text means the same under any search path. Run it with pg_catalog first in the search path, as is the default.
package postgres

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// Dialect is rewrite.Dialect for PostgreSQL. It is safe for concurrent use.
type Dialect struct{}

// New returns the dialect.
func New() *Dialect { return &Dialect{} }

// Name returns catalog.Postgres.
func (*Dialect) Name() catalog.Dialect { return catalog.Postgres }

// Parse reads sql.
func (*Dialect) Parse(sql string) (rewrite.Tree, error) {
	result, err := parse(sql)
	if err != nil {
		return nil, err
	}
	return &tree{sql: sql, result: result}, nil
}

// parse reads a text that nobody vouches for. The error is an *acl.Refusal.
func parse(sql string) (*pg.ParseResult, error) {
	if !utf8.ValidString(sql) || strings.ContainsRune(sql, 0) {
		return nil, unparsable("the text is not UTF-8 without NUL characters")
	}
	if len(sql) > shortText {
		if err := checkChains(sql); err != nil {
			return nil, err
		}
	}
	result, err := parseSQL(sql)
	if err != nil {
		if strings.Contains(err.Error(), "recursion depth") || strings.Contains(err.Error(), "memory exhausted") {
			return nil, tooDeep(err.Error())
		}
		return nil, unparsable(err.Error())
	}
	if nestsTooDeeply(result) {
		return nil, tooDeep(fmt.Sprintf("the tree nests deeper than %d", maxDepth))
	}
	return result, nil
}

func unparsable(detail string) *acl.Refusal {
	return &acl.Refusal{
		Code: acl.CodeUnparsable, Public: "the statement is not valid PostgreSQL",
		Hint: "check the syntax", Detail: detail,
	}
}

func tooDeep(detail string) *acl.Refusal {
	return &acl.Refusal{
		Code: acl.CodeTooLarge, Public: "the statement nests too deeply",
		Hint: "use fewer levels of parentheses, subqueries, set operations or joins", Detail: detail,
	}
}

func notSupported(public, hint, detail string) *acl.Refusal {
	return &acl.Refusal{Code: acl.CodeNotSupported, Public: public, Hint: hint, Detail: detail}
}

func notReadOnly(public, detail string) *acl.Refusal {
	return &acl.Refusal{Code: acl.CodeNotReadOnly, Public: public, Hint: "write one SELECT that only reads", Detail: detail}
}

func ambiguous(said string) *acl.Refusal {
	return &acl.Refusal{
		Code: acl.CodeAmbiguous, Public: said + " could mean more than one thing here",
		Hint: "qualify the name or give each table an alias of its own",
	}
}

// said writes a name for its asker, folded as the parser folds it.
func said(parts ...string) string { return catalog.JoinPath(parts) }

// tree is rewrite.Tree for PostgreSQL.
type tree struct {
	sql      string
	result   *pg.ParseResult
	resolved *resolver // set by Resolve
	wrapped  bool
}

func (t *tree) query() *pg.SelectStmt {
	if len(t.result.GetStmts()) != 1 {
		return nil
	}
	return t.result.Stmts[0].GetStmt().GetSelectStmt()
}

// Single refuses anything but one SELECT, VALUES or TABLE.
func (t *tree) Single() error {
	switch n := len(t.result.GetStmts()); {
	case n == 0:
		return unparsable("the text holds no statement")
	case n > 1:
		return &acl.Refusal{
			Code: acl.CodeMultipleStatements, Public: "the text holds more than one statement",
			Hint: "send one statement at a time", Detail: fmt.Sprintf("%d statements", n),
		}
	}
	stmt := t.result.Stmts[0].GetStmt()
	switch stmt.GetNode().(type) {
	case *pg.Node_SelectStmt:
		return nil
	case *pg.Node_ExplainStmt, *pg.Node_VariableShowStmt:
		return notSupported("only queries are supported", "write one SELECT", kindOf(stmt))
	}
	return notReadOnly("the statement does more than read", kindOf(stmt))
}

// Allow refuses what is not on the lists of nodes, functions, operators and types.
func (t *tree) Allow() error {
	c := checker{sql: t.sql}
	if no := c.check(t.query().ProtoReflect()); no != nil {
		return no
	}
	return nil
}

// Resolve binds names.
func (t *tree) Resolve(s *rewrite.Schema) (rewrite.Reading, error) {
	r := newResolver(s.Database(), askerTables(s))
	if _, err := r.query(t.query(), nil, nil); err != nil {
		return rewrite.Reading{}, err
	}
	t.resolved = r
	return rewrite.Reading{Tables: r.reads()}, nil
}

// Wrap puts the wrappers in.
func (t *tree) Wrap(s *rewrite.Schema) error {
	if t.resolved == nil {
		return errors.New("wrap before resolve")
	}
	t.wrapped = true
	return t.resolved.wrap(s, findBarriers(t.query(), t.resolved.rows, nil))
}

// Limit caps the rows of the result.
func (t *tree) Limit(rows int) error { return limit(t.query(), rows) }

// Print writes the tree. What does not read back as the tree that was printed is refused.
func (t *tree) Print() (string, error) {
	// Wrappers may have made it deeper.
	if nestsTooDeeply(t.result) {
		return "", tooDeep(fmt.Sprintf("the wrapped tree nests deeper than %d", maxDepth))
	}
	text, err := deparse(t.result)
	if err != nil {
		return "", unprintable(err.Error())
	}
	if !t.wrapped {
		return text, nil
	}
	again, err := parseSQL(text)
	if err != nil {
		return "", unprintable(err.Error())
	}
	stripPositions(again.ProtoReflect())
	stripPositions(t.result.ProtoReflect())
	if !proto.Equal(again, t.result) {
		return "", unprintable("the printed text reads back as another tree")
	}
	return text, nil
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

func unprintable(detail string) *acl.Refusal {
	return notSupported("the statement cannot be written back faithfully", "write it in a simpler form", detail)
}
