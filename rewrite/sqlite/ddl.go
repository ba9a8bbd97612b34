package sqlite

import (
	"slices"

	"github.com/sqlc-dev/meyer/ast"
	"github.com/sqlc-dev/meyer/lexer"
	"github.com/sqlc-dev/meyer/parser"
	"github.com/sqlc-dev/meyer/token"

	"github.com/schemagate/schemagate/catalog"
)

// Objects reads the tables and SQL views that DDL creates as the catalog of a database of that name. It ignores every
// other statement, those that do not parse on their own, and tables whose columns it cannot tell. A temporary table is
// of a session and no object; it also takes out the table whose name it hides, since that name does not mean the table.
func (*Dialect) Objects(database, ddl string) (catalog.Database, []catalog.Object, error) {
	c := creations{database: database}
	for _, text := range split(ddl) {
		statements, err := parser.ParseString(text)
		if err != nil || len(statements) != 1 || tooDeep(statements[0]) {
			continue
		}
		switch s := statements[0].(type) {
		case *ast.CreateTableStmt:
			if s.Temp || isTemp(s.Name) {
				c.hidden = append(c.hidden, s.Name.Name.Name)
			} else if s.Select == nil {
				c.add(c.table(s))
			}
		case *ast.CreateViewStmt:
			if s.Temp || isTemp(s.Name) {
				c.hidden = append(c.hidden, s.Name.Name.Name)
			} else {
				c.add(c.view(s))
			}
		}
	}
	var objects []catalog.Object
	for _, t := range c.created {
		if slices.ContainsFunc(c.hidden, func(h string) bool { return same(h, t.ref.Table) }) {
			continue
		}
		c.complete(&t)
		objects = append(objects, catalog.Object{Ref: t.ref, Table: &t.table})
		for i := range t.columns {
			col := &t.columns[i]
			ref := catalog.ColumnRef(database, t.ref.Schema, t.ref.Table, col.name)
			objects = append(objects, catalog.Object{Ref: ref, Column: &col.Column})
		}
	}
	return catalog.Database{Name: database, Dialect: catalog.SQLite}, objects, nil
}

// split cuts DDL at its semicolons. The pieces of a trigger's body do not parse as what this file looks for.
func split(ddl string) []string {
	var out []string
	start := 0
	for _, t := range lexer.Lex(ddl) {
		if t.Kind == token.SEMI || t.Kind == token.EOF {
			out = append(out, ddl[start:t.Pos])
			start = t.End
		}
	}
	return out
}

func isTemp(n *ast.QualifiedName) bool { return n.Schema != nil && same(n.Schema.Name, "temp") }

// creations collects what DDL creates.
type creations struct {
	database string
	created  []created
	hidden   []string // names that temporary tables take
}

type created struct {
	ref     catalog.Ref
	table   catalog.Table
	columns []createdColumn
}

type createdColumn struct {
	name string
	catalog.Column
}

func (c *creations) add(t created) {
	exists := slices.ContainsFunc(c.created, func(o created) bool {
		return same(o.ref.Schema, t.ref.Schema) && same(o.ref.Table, t.ref.Table)
	})
	if !exists && len(t.columns) > 0 {
		c.created = append(c.created, t)
	}
}

func (c *creations) ref(n *ast.QualifiedName) catalog.Ref {
	r := catalog.TableRef(c.database, "", n.Name.Name)
	if n.Schema != nil && !same(n.Schema.Name, "main") {
		r.Schema = n.Schema.Name
	}
	return r
}

func (c *creations) table(s *ast.CreateTableStmt) created {
	t := created{ref: c.ref(s.Name)}
	key := func(columns []string, f *ast.ForeignKeyClause) {
		fk := catalog.ForeignKey{Columns: columns, To: catalog.TableRef(c.database, t.ref.Schema, f.Table.Name)}
		for _, col := range f.Columns {
			fk.ToColumns = append(fk.ToColumns, col.Name.Name)
		}
		t.table.ForeignKeys = append(t.table.ForeignKeys, fk)
	}
	for _, d := range s.Columns {
		if slices.ContainsFunc(t.columns, func(o createdColumn) bool { return same(o.name, d.Name.Name) }) {
			return created{} // SQLite creates no such table
		}
		col := createdColumn{name: d.Name.Name, Column: catalog.Column{Position: len(t.columns)}}
		if d.Type != nil {
			col.Type = ast.String(d.Type)
		}
		for _, k := range d.Constraints {
			switch k.Kind {
			case ast.ColumnNotNull:
				col.NotNull = true
			case ast.ColumnPrimaryKey:
				t.table.PrimaryKey = []string{col.name}
			case ast.ColumnUnique:
				t.table.UniqueKeys = append(t.table.UniqueKeys, []string{col.name})
			case ast.ColumnReferences:
				key([]string{col.name}, k.References)
			}
		}
		t.columns = append(t.columns, col)
	}
	for _, k := range s.Constraints {
		var columns []string
		for _, term := range k.Columns {
			if id, ok := bare(term.Expr).(*ast.Ident); ok {
				columns = append(columns, id.Name)
			}
		}
		switch k.Kind {
		case ast.TablePrimaryKey:
			t.table.PrimaryKey = columns
		case ast.TableUnique:
			t.table.UniqueKeys = append(t.table.UniqueKeys, columns)
		case ast.TableForeignKey:
			for _, col := range k.FKColumns {
				columns = append(columns, col.Name.Name)
			}
			key(columns, k.References)
		}
	}
	return t
}

// view reads a SQL view: its columns have the names that it lists or that its SELECT gives them.
func (c *creations) view(s *ast.CreateViewStmt) created {
	t := created{ref: c.ref(s.Name), table: catalog.Table{SQLView: ast.String(s.Select)}}
	var names []string
	for _, col := range s.Columns {
		names = append(names, col.Name.Name)
	}
	if q, ok := s.Select.Cores[0].(*ast.SelectQuery); ok && names == nil {
		for _, col := range q.Columns {
			names = append(names, c.viewColumn(col, q.From, t.ref.Schema)...)
		}
	}
	for _, n := range names {
		if !slices.ContainsFunc(t.columns, func(o createdColumn) bool { return same(o.name, n) }) {
			t.columns = append(t.columns, createdColumn{name: n, Column: catalog.Column{Position: len(t.columns)}})
		}
	}
	return t
}

func (c *creations) viewColumn(col *ast.ResultColumn, from []*ast.TableRef, schema string) []string {
	if col.Alias != nil {
		return []string{col.Alias.Name}
	}
	switch e := bare(col.Expr).(type) {
	case *ast.Ident:
		return []string{e.Name}
	case *ast.QualifiedRef:
		return []string{e.Parts[len(e.Parts)-1].Name}
	case *ast.Star:
		var out []string
		for _, f := range from {
			if f.Name == nil {
				continue
			}
			alias := f.Name.Name
			if f.Alias != nil {
				alias = f.Alias
			}
			if e.Table != nil && !same(e.Table.Name, alias.Name) {
				continue
			}
			for _, t := range c.created {
				if same(t.ref.Table, f.Name.Name.Name) && same(t.ref.Schema, schema) {
					for _, own := range t.columns {
						out = append(out, own.name)
					}
				}
			}
		}
		return out
	}
	return nil
}

// complete drops keys that name columns the table lacks, and points foreign keys without columns at primary keys.
func (c *creations) complete(t *created) {
	foreign := func(name string) bool {
		return !slices.ContainsFunc(t.columns, func(o createdColumn) bool { return same(o.name, name) })
	}
	if slices.ContainsFunc(t.table.PrimaryKey, foreign) {
		t.table.PrimaryKey = nil
	}
	t.table.UniqueKeys = slices.DeleteFunc(t.table.UniqueKeys, func(k []string) bool { return len(k) == 0 || slices.ContainsFunc(k, foreign) })
	for i := range t.table.ForeignKeys {
		fk := &t.table.ForeignKeys[i]
		for _, o := range c.created {
			if fk.ToColumns == nil && same(o.ref.Table, fk.To.Table) && same(o.ref.Schema, fk.To.Schema) {
				fk.ToColumns = o.table.PrimaryKey
			}
		}
	}
	t.table.ForeignKeys = slices.DeleteFunc(t.table.ForeignKeys, func(fk catalog.ForeignKey) bool { return len(fk.Columns) != len(fk.ToColumns) })
}
