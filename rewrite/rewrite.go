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
	reading Reading
	rows    int
}

// Text returns the SQL in its dialect's canonical spelling; it is empty for the zero Statement.
func (s Statement) Text() string { return s.text }

// Dialect returns the dialect that the text is written in.
func (s Statement) Dialect() catalog.Dialect { return s.dialect }

// Cap returns the most rows that the statement returns, zero if the guard caps none.
func (s Statement) Cap() int { return s.rows }

// Reads returns what the statement reads, in order of first mention.
func (s Statement) Reads() []Read { return s.reading.Tables }

// Output returns the statement's column lineage: its result columns, in order.
func (s Statement) Output() []Output { return s.reading.Output }

// Filters returns the columns by which the statement chooses rows: those that a WHERE, HAVING or join condition of any
// of its parts reads, in order of first mention.
func (s Statement) Filters() []catalog.Ref { return s.reading.Filters }

// Reading is what a statement reads and what becomes of it.
type Reading struct {
	Tables  []Read // in order of first mention
	Output  []Output
	Filters []catalog.Ref
}

// Read is one table that a statement reads.
type Read struct {
	Table   catalog.Ref   `json:"table"`
	Columns []catalog.Ref `json:"columns,omitempty"` // those that the statement names or expands
	// Rules are the places in the policy of the filters and masks in force on the table.
	Rules []string `json:"rules,omitempty"`
}

// Output is a result column with the columns of base tables that its values are made of. Columns that only decide which
// rows there are, or in what order, do not count: see Statement.Filters.
type Output struct {
	Name      string        `json:"name"`
	From      []catalog.Ref `json:"from,omitempty"` // in order of first mention; none for a constant
	Transform Transform     `json:"transform"`
}

// Transform says how a result column is made, in OpenLineage's terms.
type Transform string

// The transforms, each containing those before it: a value passed through derived tables as it is, an expression of the
// same row, a value over several rows (an aggregate or a window).
const (
	Identity       Transform = "identity"
	Transformation Transform = "transformation"
	Aggregation    Transform = "aggregation"
)

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
	Resolve(*Schema) (Reading, error)
	// Wrap replaces each base table by a derived table of its visible columns, masks and row filter. A table that is
	// seen whole may stand as it is where no name of the statement could mean a column that the catalog does not hold.
	Wrap(*Schema) error
	// Limit caps the number of rows of the result.
	Limit(rows int) error
	// Print writes the tree in canonical spelling.
	Print() (string, error)
	// Same is asked of the tree that was parsed from printed text: is it the tree that was printed, places in the text
	// apart? A dialect whose printer is known not to write every tree faithfully may refuse.
	Same(printed Tree, text string) error
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
	reading   Reading
}

// steps are what a statement goes through, in order. The first error ends it.
var steps = []struct {
	name string
	run  func(*Guard, *Schema, *work) error
}{
	{"parse", func(g *Guard, _ *Schema, w *work) (err error) { w.tree, err = g.dialect.Parse(w.sql); return err }},
	{"single-statement", func(_ *Guard, _ *Schema, w *work) error { return w.tree.Single() }},
	{"allow-list", func(_ *Guard, _ *Schema, w *work) error { return w.tree.Allow() }},
	{"resolve", func(_ *Guard, s *Schema, w *work) (err error) { w.reading, err = w.tree.Resolve(s); return err }},
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
				return Statement{}, s.hint(r)
			}
			return Statement{}, fmt.Errorf("rewrite: %s: %w", step.name, err)
		}
	}
	return Statement{text: w.text, dialect: g.dialect.Name(), reading: w.reading, rows: g.rows}, nil
}

// verify trusts nothing that came before: the printed text must parse to one statement of allowed nodes in which every
// table is governed, and must be the tree that was printed.
func verify(g *Guard, s *Schema, w *work) error {
	again, err := g.dialect.Parse(w.text)
	if err != nil {
		return fmt.Errorf("the printed text does not parse: %v", err)
	}
	if err := again.Single(); err != nil {
		return fmt.Errorf("the printed text is not one reading statement: %v", err)
	}
	if err := again.Same(w.tree, w.text); err != nil {
		if no, ok := err.(*acl.Refusal); ok {
			return no
		}
		return fmt.Errorf("the printed text is not the tree that was printed: %v", err)
	}
	if err := again.Governed(s); err != nil {
		return fmt.Errorf("the printed text is not governed: %v", err)
	}
	return nil
}
