// Package rewrite is the SQL boundary: untrusted SQL goes in, a governed statement or a refusal comes out. What it lets
// through returns exactly what the original statement would return on a database that holds only what the asker may
// see: without hidden rows, tables and columns, and with masks applied. It does no I/O and reads no clock.
//
// A dialect is a sub-package that owns its parser; the steps and the meaning of a policy are here, once.
package rewrite

import (
	"fmt"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// Statement is SQL that a Guard let through. It has no exported constructor: whatever executes SQL takes a Statement.
type Statement struct {
	text    string
	dialect catalog.Dialect
	reads   []Read
}

// Text returns the SQL in its dialect's canonical spelling; it is empty for the zero Statement.
func (s Statement) Text() string { return s.text }

// Dialect returns the dialect that the text is written in.
func (s Statement) Dialect() catalog.Dialect { return s.dialect }

// Reads returns what the statement reads, in order of first mention.
func (s Statement) Reads() []Read { return s.reads }

// Read is one table that a statement reads.
type Read struct {
	Table   catalog.Ref   `json:"table"`
	Columns []catalog.Ref `json:"columns,omitempty"` // those that the statement names or expands
	// Rules are the places in the policy of the filters and masks in force on the table.
	Rules []string `json:"rules,omitempty"`
}

// Dialect parses one SQL dialect.
type Dialect interface {
	// Name is the dialect's name in a catalog.
	Name() catalog.Dialect
	// Parse reads sql. It reports text that is not of the dialect as an *acl.Refusal with code unparsable.
	Parse(sql string) (Tree, error)
}

// Tree is a parsed text. Its methods are the steps of a Guard, called in the order of their declaration, each at most
// once; a refusal is an *acl.Refusal, any other error is a fault.
type Tree interface {
	// Single refuses anything but exactly one statement that only reads.
	Single() error
	// Allow refuses each node and function that is not on the dialect's list.
	Allow() error
	// Resolve binds table and column names by the dialect's scope rules. A name that is hidden or absent is refused
	// with code not-available, in the same words.
	Resolve(*Schema) ([]Read, error)
	// Wrap replaces each base table by a derived table of its visible columns, masks and row filter.
	Wrap(*Schema) error
	// Limit caps the number of rows of the result.
	Limit(rows int) error
	// Print writes the tree in canonical spelling.
	Print() (string, error)
	// Governed is asked of the tree that was parsed from printed text: does every base table stand in the wrapper that
	// the schema demands?
	Governed(*Schema) error
}

// maxBytes bounds the text of a statement; the parsers are fast, but depth and memory grow with it.
const maxBytes = 1 << 20

// Guard turns untrusted SQL of one dialect into governed statements. It is safe for concurrent use.
type Guard struct {
	dialect Dialect
	rows    int
}

// NewGuard makes a guard that caps results at rows; zero means no cap.
func NewGuard(d Dialect, rows int) *Guard { return &Guard{dialect: d, rows: max(rows, 0)} }

// Dialect returns the dialect that the guard reads.
func (g *Guard) Dialect() catalog.Dialect { return g.dialect.Name() }

// work is a statement on its way through the steps.
type work struct {
	sql, text string
	tree      Tree
	reads     []Read
}

// steps are what a statement goes through, in order. The first error ends it.
var steps = []struct {
	name string
	run  func(*Guard, *Schema, *work) error
}{
	{"parse", func(g *Guard, _ *Schema, w *work) (err error) { w.tree, err = g.dialect.Parse(w.sql); return err }},
	{"single-statement", func(_ *Guard, _ *Schema, w *work) error { return w.tree.Single() }},
	{"allow-list", func(_ *Guard, _ *Schema, w *work) error { return w.tree.Allow() }},
	{"resolve", func(_ *Guard, s *Schema, w *work) (err error) { w.reads, err = w.tree.Resolve(s); return err }},
	{"wrap", func(_ *Guard, s *Schema, w *work) error { return w.tree.Wrap(s) }},
	{"limit", func(g *Guard, _ *Schema, w *work) error {
		if g.rows == 0 {
			return nil
		}
		return w.tree.Limit(g.rows)
	}},
	{"print", func(_ *Guard, _ *Schema, w *work) (err error) { w.text, err = w.tree.Print(); return err }},
	{"verify", verify},
}

// Rewrite governs one statement. The error is an *acl.Refusal if the answer is no, and a fault otherwise; in both cases
// the Statement is zero.
func (g *Guard) Rewrite(sql string, s *Schema) (Statement, error) {
	if len(sql) > maxBytes {
		return Statement{}, &acl.Refusal{
			Code: acl.CodeTooLarge, Public: fmt.Sprintf("the statement has %d bytes; at most %d are read", len(sql), maxBytes),
			Hint: "split the statement or load long lists into a table",
		}
	}
	if s.Dialect() != g.dialect.Name() {
		return Statement{}, fmt.Errorf("rewrite: a guard for %s was given a schema of %s", g.dialect.Name(), s.Dialect())
	}
	w := work{sql: sql}
	for _, step := range steps {
		if err := step.run(g, s, &w); err != nil {
			if r, ok := err.(*acl.Refusal); ok {
				return Statement{}, r
			}
			return Statement{}, fmt.Errorf("rewrite: %s: %w", step.name, err)
		}
	}
	return Statement{text: w.text, dialect: g.dialect.Name(), reads: w.reads}, nil
}

// verify trusts nothing that came before: the printed text must parse to one statement of allowed nodes in which every
// table is governed, and must print to itself.
func verify(g *Guard, s *Schema, w *work) error {
	again, err := g.dialect.Parse(w.text)
	if err != nil {
		return fmt.Errorf("the printed text does not parse: %v", err)
	}
	if err := again.Single(); err != nil {
		return fmt.Errorf("the printed text is not one reading statement: %v", err)
	}
	text, err := again.Print()
	if err != nil {
		return fmt.Errorf("the printed text does not print again: %v", err)
	}
	if text != w.text {
		return fmt.Errorf("the printed text prints differently the second time")
	}
	if err := again.Governed(s); err != nil {
		return fmt.Errorf("the printed text is not governed: %v", err)
	}
	return nil
}
