package rewrite

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// Schema is a database as one principal may query it: what a dialect asks of the policy. It is built for one
// statement and is not safe for concurrent use.
type Schema struct {
	view     acl.View
	database catalog.Database
	tables   map[uint32]*Table
	schemas  []string      // made when first asked
	closed   []catalog.Ref // what Absence was asked of that the principal may know of
}

// NewSchema makes the schema of the database that statements run in. A MySQL statement may also name tables of other
// databases of the same dialect in the view.
func NewSchema(v acl.View, database string) (*Schema, error) {
	s := v.Snapshot()
	if s == nil {
		return nil, errors.New("rewrite: the view is of no catalog")
	}
	d, ok := s.Database(database)
	if !ok {
		return nil, fmt.Errorf("rewrite: the catalog holds no database %q", database)
	}
	return &Schema{view: v, database: d, tables: map[uint32]*Table{}}, nil
}

// Dialect returns the dialect of the database.
func (s *Schema) Dialect() catalog.Dialect { return s.database.Dialect }

// Database returns the database that statements run in: the place of unqualified names.
func (s *Schema) Database() catalog.Database { return s.database }

// Schemas returns the schemas of the database that hold anything queryable, sorted; it is what an engine that searches
// several schemas for an unqualified name would search on a database without the hidden ones.
func (s *Schema) Schemas() []string {
	if s.schemas == nil {
		s.schemas = []string{}
		tables := s.view.Snapshot().TablesIn(s.database.Name)
		for id := tables.From; id < tables.To; id++ {
			name := s.view.Snapshot().Object(id).Ref.Schema
			if n := len(s.schemas); (n == 0 || s.schemas[n-1] != name) && s.view.Queryable(id) {
				s.schemas = append(s.schemas, name)
			}
		}
	}
	return s.schemas
}

// Table is a base table as the principal may query it.
type Table struct {
	Ref     catalog.Ref
	Columns []Column // queryable ones, in the table's order
	// Protected says that a row filter covers the table: a row is seen if one of Permissive and all of Restrictive hold,
	// and none is if Permissive is empty.
	Protected               bool
	Permissive, Restrictive []Condition
	// Whole says that the principal sees the table as it is: nothing hidden, filtered or masked.
	Whole bool
	// SQLView is the defining statement of a SQL view, whose rows come from tables that it names, with the rights of the
	// principal; it is empty for a base table.
	SQLView string
	// PrimaryKey is empty unless every column of the key is queryable and unmasked.
	PrimaryKey []string
	// Part says that the rows are also those of a table that has this one among its partitions and that the principal
	// may not see as it is. Reading them here would go around what governs them there.
	Part bool
	// Rules are the places in the policy of the filters and masks.
	Rules []string
}

// Column is a column of a Table.
type Column struct {
	Ref  catalog.Ref
	Name string
	Type string
	// Mask says how values read; nil if they read as they are.
	Mask *Mask
}

// Mask is acl.Mask with its expression bound.
type Mask struct {
	Kind       acl.MaskKind
	Constant   any
	Expression Condition // if Kind is acl.MaskExpression
}

// Condition is SQL of the policy with typed values in its places: Text[0], Values[0], Text[1], ... Text has one
// element more than Values. A value is a string, int64, float64, bool, []string or []int64; a slice stands for the
// elements of an IN list. A dialect makes literals of the values in the parsed tree, never in the text.
type Condition struct {
	Text   []string
	Values []any
	Rule   string
}

// Table returns a queryable table by its complete name. ok is false if the table is hidden or absent; Absence tells
// which, for the audit. The error is an *acl.Refusal with code missing-attribute if a condition needs an attribute
// that the principal lacks.
func (s *Schema) Table(r catalog.Ref) (t *Table, ok bool, err error) {
	snapshot := s.view.Snapshot()
	id, ok := snapshot.ID(r)
	if !ok || !s.reaches(r.Database) || !s.view.Queryable(id) {
		return nil, false, nil
	}
	if t := s.tables[id]; t != nil {
		return t, true, nil
	}
	o := snapshot.Object(id)
	t = &Table{Ref: o.Ref, Whole: true, SQLView: o.Table.SQLView}
	for _, c := range snapshot.Columns(id) {
		if !s.view.Queryable(c.ID) {
			t.Whole = false
			continue
		}
		col := Column{Ref: c.Ref, Name: c.Ref.Column, Type: c.Column.Type}
		if m, masked := s.view.Mask(c.ID); masked {
			t.Whole = false
			t.Rules = append(t.Rules, m.Rule)
			col.Mask = &Mask{Kind: m.Kind, Constant: m.Constant}
			if m.Kind == acl.MaskExpression {
				if col.Mask.Expression, err = s.bind(m.Expression, m.Rule, m.Of); err != nil {
					return nil, false, err
				}
			}
		}
		t.Columns = append(t.Columns, col)
	}
	if f, protected := s.view.Filter(id); protected {
		t.Whole, t.Protected = false, true
		if t.Permissive, err = s.bindAll(f.Permissive, t); err != nil {
			return nil, false, err
		}
		if t.Restrictive, err = s.bindAll(f.Restrictive, t); err != nil {
			return nil, false, err
		}
	}
	key := o.Table.PrimaryKey
	if !slices.ContainsFunc(key, func(name string) bool { return !t.plain(name) }) {
		t.PrimaryKey = key
	}
	t.Part = s.inherits(id)
	s.tables[id] = t
	return t, true, nil
}

// plain reports whether the principal sees the values of a column as they are.
func (t *Table) plain(name string) bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Name == name && c.Mask == nil })
}

// inherits reports whether a table above this one, among whose partitions it is, is protected, or is queryable but
// not as it is.
func (s *Schema) inherits(id uint32) bool {
	above := slices.Clone(s.view.Snapshot().PartitionOf(id))
	seen := map[uint32]bool{id: true}
	for len(above) > 0 {
		p := above[0]
		above = above[1:]
		if seen[p] {
			continue
		}
		seen[p] = true
		if s.governs(p) {
			return true
		}
		above = append(above, s.view.Snapshot().PartitionOf(p)...)
	}
	return false
}

func (s *Schema) governs(table uint32) bool {
	if _, protected := s.view.Filter(table); protected {
		return true
	}
	if !s.view.Queryable(table) {
		return false // a grant on the part alone is the policy's own choice
	}
	return slices.ContainsFunc(s.view.Snapshot().Columns(table), func(c catalog.Object) bool {
		_, masked := s.view.Mask(c.ID)
		return masked || !s.view.Queryable(c.ID)
	})
}

func (s *Schema) bindAll(ps []acl.Predicate, t *Table) ([]Condition, error) {
	var out []Condition
	for _, p := range ps {
		c, err := s.bind(p.Using, p.Rule, p.Of)
		if err != nil {
			return nil, err
		}
		t.Rules = append(t.Rules, p.Rule)
		out = append(out, c)
	}
	return out, nil
}

// bind fills the places of a condition with the attributes of a principal, the view's if none is given.
func (s *Schema) bind(sql, rule string, of *acl.Principal) (Condition, error) {
	t, err := acl.ParseTemplate(sql)
	if err != nil {
		return Condition{}, fmt.Errorf("rewrite: policy %s: %w", rule, err)
	}
	who := s.view.Principal()
	if of != nil {
		who = *of
	}
	c := Condition{Text: t.Text, Rule: rule}
	for _, name := range t.Attributes {
		v, ok := who.Attribute(name)
		if !ok {
			return Condition{}, &acl.Refusal{
				Code:   acl.CodeMissingAttribute,
				Public: "your account lacks an attribute that is needed to decide which rows are yours",
				Hint:   "ask whoever keeps the policy to complete your account",
				Detail: fmt.Sprintf("principal %s has no attribute %q", who.Name, name),
				Rule:   rule,
			}
		}
		c.Values = append(c.Values, v)
	}
	return c, nil
}

// Absence tells why a name means nothing that may be queried: "denied" or "absent". If the principal may know of what it
// names, the refusal will say so.
func (s *Schema) Absence(r catalog.Ref) string {
	if id, ok := s.view.Snapshot().ID(r); ok {
		if s.view.Visible(id) && !s.view.Queryable(id) {
			s.closed = append(s.closed, s.view.Snapshot().Object(id).Ref)
		}
		return "denied: " + r.String()
	}
	return "absent: " + r.String()
}

// hint completes a refusal for want of a right to query what the principal may know of.
func (s *Schema) hint(r *acl.Refusal) *acl.Refusal {
	if r.Code != acl.CodeNotAvailable || len(s.closed) == 0 {
		return r
	}
	var names []string
	for _, ref := range s.closed {
		if name := ref.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	told := *r
	told.Hint = fmt.Sprintf("ask for access to %s, or leave it out of the statement", strings.Join(names, " or "))
	return &told
}

// Exists reports whether the catalog holds an object, hidden or not. It is for names in the policy's own SQL, which may
// read what the principal may not; nothing that it says may reach the asker.
func (s *Schema) Exists(r catalog.Ref) (catalog.Ref, bool) {
	o, ok := s.view.Snapshot().Lookup(r)
	if !ok || !s.reaches(r.Database) {
		return catalog.Ref{}, false
	}
	return o.Ref, true
}

// reaches reports whether a statement in the schema's database can name tables of another one.
func (s *Schema) reaches(database string) bool {
	d, ok := s.view.Snapshot().Database(database)
	return ok && d.Dialect == s.database.Dialect
}

// Version is that of the catalog: what holds for the names of one schema holds for those of every schema of its version.
func (s *Schema) Version() string { return s.view.Snapshot().Version() }

// Columns returns the names of all of a table's columns, hidden ones too, in the table's order. It is for the
// definition of a SQL view, which was written over all of them; nothing that it says may reach the asker.
func (s *Schema) Columns(table catalog.Ref) []string {
	id, ok := s.view.Snapshot().ID(table)
	if !ok {
		return nil
	}
	columns := s.view.Snapshot().Columns(id)
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].Ref.Column
	}
	return names
}
