// Package postgres is the guard's PostgreSQL dialect. It reads and writes SQL with the server's own parser and printer.
//
// Names follow PostgreSQL's rules on a database that holds only what the asker may see. A table without a schema is
// looked for in the database's default schema and nowhere else, and is always printed with its schema, so that the
// text means the same under any search path. Run it with pg_catalog first in the search path, as is the default. SQL
// views are read by the definitions that the catalog holds.
package postgres

import (
	"bytes"
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
type Dialect struct{ fragments *fragments }

// New returns the dialect.
func New() *Dialect { return &Dialect{newFragments()} }

// Name returns catalog.Postgres.
func (*Dialect) Name() catalog.Dialect { return catalog.Postgres }

// Parse reads sql.
func (d *Dialect) Parse(sql string) (rewrite.Tree, error) {
	result, err := parse(sql)
	if err != nil {
		return nil, err
	}
	return &tree{sql: sql, result: result, fragments: d.fragments}, nil
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
	tree, err := parseSQL(sql)
	if err != nil {
		if strings.Contains(err.Error(), "recursion depth") || strings.Contains(err.Error(), "memory exhausted") {
			return nil, tooDeep(err.Error())
		}
		return nil, unparsable(err.Error())
	}
	result := &pg.ParseResult{}
	if err := proto.Unmarshal(tree, result); err != nil {
		return nil, tooDeep(err.Error()) // the one thing that can be wrong with what the parser encoded
	}
	// A message within another takes two bytes, so that most trees are too small to be deep.
	if len(tree)/2 > maxDepth && depthOf(result, maxDepth+1) > maxDepth {
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
	sql       string
	result    *pg.ParseResult
	fragments *fragments
	resolved  *resolver // set by Resolve
	// views are the SQL views that a printed text must hold the definitions of, in order; set by Same.
	views []catalog.Ref
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
	if no := c.check(t.query()); no != nil {
		return no
	}
	return nil
}

// Resolve binds names.
func (t *tree) Resolve(s *rewrite.Schema) (rewrite.Reading, error) {
	r := newResolver(s.Database(), t.fragments, askerTables(s))
	columns, err := r.query(t.query(), nil, nil)
	if err != nil {
		return rewrite.Reading{}, err
	}
	t.resolved = r
	filters, _ := r.filters.base()
	return rewrite.Reading{Tables: r.reads(), Output: output(columns), Filters: filters}, nil
}

// Wrap puts the wrappers in.
func (t *tree) Wrap(s *rewrite.Schema) error {
	if t.resolved == nil {
		return errors.New("wrap before resolve")
	}
	r := t.resolved
	b, err := findBarriers(s, r, t.query(), nil)
	if err != nil {
		return err
	}
	return r.wrap(s, func(_ int, u *use) bool { return b.needs(u.table) })
}

// Limit caps the rows of the result.
func (t *tree) Limit(rows int) error {
	if t.query().LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES {
		// How many rows tie is not to be said beforehand.
		t.result.Stmts[0].Stmt = enclosed(t.query())
	}
	limit(t.query(), rows)
	return nil
}

// Print writes the tree.
func (t *tree) Print() (string, error) {
	text, err := t.text()
	if no, ok := errors.AsType[*acl.Refusal](err); ok {
		return "", no
	} else if err != nil {
		return "", unprintable(err.Error())
	}
	return text, nil
}

// Same compares the trees without their positions.
func (t *tree) Same(printed rewrite.Tree, _ string) error {
	p := printed.(*tree)
	if !bytes.Equal(spell(t.query()), spell(p.query())) {
		return unprintable("the printed text reads back as another tree")
	}
	if p.resolved != nil {
		for _, u := range p.resolved.uses {
			if u.view != nil {
				t.views = append(t.views, u.ref)
			}
		}
	}
	return nil
}

func unprintable(detail string) *acl.Refusal {
	return notSupported("the statement cannot be written back faithfully", "write it in a simpler form", detail)
}
