package sqlite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
				c.add(c.view(s, text))
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
func (c *creations) view(s *ast.CreateViewStmt, text string) created {
	t := created{ref: c.ref(s.Name), table: catalog.Table{SQLView: strings.TrimSpace(text)}}
	v := viewNames{creations: c, schema: t.ref.Schema, text: text}
	columns := v.selected(s.Select, nil)
	for i, col := range s.Columns {
		if i < len(columns) {
			columns[i] = &column{name: col.Name.Name}
		}
	}
	for i, col := range distinct(columns) {
		t.columns = append(t.columns, createdColumn{name: col.name, Column: catalog.Column{Position: i}})
	}
	return t
}

// viewNames tells what the columns of a SQL view are called.
type viewNames struct {
	*creations
	schema, text string
}

func (v *viewNames) selected(s *ast.SelectStmt, ctes []*ast.CTE) []*column {
	if s.With != nil {
		ctes = append(slices.Clip(ctes), s.With.CTEs...)
	}
	var out []*column
	add := func(name string) { out = append(out, &column{name: name}) }
	switch q := s.Cores[0].(type) {
	case *ast.ValuesClause:
		for i := range q.Rows[0] {
			add(fmt.Sprintf("column%d", i+1))
		}
	case *ast.SelectQuery:
		for _, col := range q.Columns {
			switch e := bare(col.Expr).(type) {
			case *ast.Star:
				out = append(out, v.starred(e, q.From, ctes)...)
			case *ast.Ident:
				add(cmp.Or(col.Alias, e).Name)
			case *ast.QualifiedRef:
				add(cmp.Or(col.Alias, e.Parts[len(e.Parts)-1]).Name)
			default:
				add(cmp.Or(col.Alias, &ast.Ident{Name: v.text[col.Expr.Pos():col.Expr.End()]}).Name)
			}
		}
	}
	return out
}

// starred lists what a star over a FROM stands for.
func (v *viewNames) starred(star *ast.Star, from []*ast.TableRef, ctes []*ast.CTE) []*column {
	var out []*column
	for _, f := range from {
		alias := f.Alias
		if alias == nil && f.Name != nil {
			alias = f.Name.Name
		}
		if star.Table != nil && f.List == nil && (alias == nil || !same(star.Table.Name, alias.Name)) {
			continue
		}
		for _, col := range v.item(f, star, ctes) {
			shared := func(o *column) bool { return same(o.name, col.name) }
			merged := f.Join != nil && star.Table == nil && slices.ContainsFunc(out, shared) &&
				(f.Join.Type&ast.JoinNatural != 0 || slices.ContainsFunc(f.Using, func(u *ast.Ident) bool { return same(u.Name, col.name) }))
			if !merged {
				out = append(out, &column{name: col.name})
			}
		}
	}
	return out
}

func (v *viewNames) item(f *ast.TableRef, star *ast.Star, ctes []*ast.CTE) (out []*column) {
	switch {
	case f.Select != nil:
		return distinct(v.selected(f.Select, ctes))
	case f.List != nil:
		return v.starred(star, f.List, ctes)
	case f.HasArgs:
		return tableFunction(f).columns
	}
	if f.Name.Schema == nil {
		for i := len(ctes) - 1; i >= 0; i-- {
			cte := ctes[i]
			if !same(cte.Name.Name, f.Name.Name.Name) {
				continue
			}
			if cte.Columns == nil {
				return distinct(v.selected(cte.Select, ctes[:i]))
			}
			for _, n := range cte.Columns {
				out = append(out, &column{name: n.Name})
			}
			return out
		}
	}
	for _, t := range v.created {
		if same(t.ref.Table, f.Name.Name.Name) && same(t.ref.Schema, v.schema) {
			for _, own := range t.columns {
				out = append(out, &column{name: own.name})
			}
		}
	}
	return out
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
