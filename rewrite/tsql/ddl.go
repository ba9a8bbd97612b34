package tsql

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"github.com/schemagate/schemagate/catalog"
)

// Objects reads the tables and SQL views that DDL creates as the catalog of a database of that name; names without a
// schema are in dbo. It ignores every other statement, those that do not parse on their own, and temporary tables.
func (*Dialect) Objects(database, ddl string) (catalog.Database, []catalog.Object, error) {
	c := creations{database: database}
	for _, batch := range batches(ddl) {
		for _, sql := range split(batch) {
			script, err := program(sql)
			if err != nil || len(script.Batches) != 1 || len(script.Batches[0].Statements) != 1 {
				continue
			}
			switch s := script.Batches[0].Statements[0].(type) {
			case *ast.CreateTableStatement:
				c.table(s)
			case *ast.CreateViewStatement:
				c.view(s.SchemaObjectName, s.Columns, s.SelectStatement, sql)
			case *ast.CreateOrAlterViewStatement:
				c.view(s.SchemaObjectName, s.Columns, s.SelectStatement, sql)
			}
		}
	}
	var objects []catalog.Object
	for i := range c.created {
		t := &c.created[i]
		c.complete(t)
		objects = append(objects, catalog.Object{Ref: t.ref, Table: &t.table})
		for j := range t.columns {
			col := &t.columns[j]
			ref := catalog.ColumnRef(database, t.ref.Schema, t.ref.Table, col.name)
			objects = append(objects, catalog.Object{Ref: ref, Column: &col.Column})
		}
	}
	return catalog.Database{Name: database, Dialect: catalog.TSQL}, objects, nil
}

// batches cuts DDL at the lines that hold nothing but GO.
func batches(ddl string) []string {
	var out []string
	var b strings.Builder
	for line := range strings.Lines(ddl) {
		if strings.EqualFold(strings.TrimSpace(line), "go") {
			out = append(out, b.String())
			b.Reset()
			continue
		}
		b.WriteString(line)
	}
	return append(out, b.String())
}

// split cuts a batch at its semicolons, and where a CREATE begins. A batch that is cut into no tokens holds nothing that
// this file looks for.
func split(batch string) []string {
	tokens, err := scan(batch)
	if err != nil {
		return nil
	}
	var out []string
	start, open := 0, 0
	cut := func(end, next int) {
		if open == 0 && strings.TrimSpace(batch[start:end]) != "" {
			out = append(out, batch[start:end])
		}
		start = next
	}
	for i, t := range tokens {
		switch {
		case t.kind == symbol && t.text == "(":
			open++
		case t.kind == symbol && t.text == ")":
			open--
		case open > 0:
		case t.kind == symbol && t.text == ";":
			cut(t.at, t.at+1)
		case t.is("create"), t.is("insert"), t.is("alter") && (i == 0 || !tokens[i-1].is("or")):
			cut(t.at, t.at)
		}
	}
	cut(len(batch), len(batch))
	return out
}

// creations collects what DDL creates.
type creations struct {
	database string
	created  []created
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

func (t *created) has(column string) bool {
	return slices.ContainsFunc(t.columns, func(c createdColumn) bool { return same(c.name, column) })
}

func (c *creations) ref(n *ast.SchemaObjectName) (catalog.Ref, bool) {
	ids := n.Identifiers
	name := ids[len(ids)-1].Value
	if name == "" || strings.HasPrefix(name, "#") || len(ids) > 3 || len(ids) == 3 && !same(ids[0].Value, c.database) {
		return catalog.Ref{}, false
	}
	schema := ""
	if len(ids) > 1 {
		schema = ids[len(ids)-2].Value
	}
	return catalog.TableRef(c.database, schemaName(schema), name), true
}

func (c *creations) find(r catalog.Ref) *created {
	for i := range c.created {
		if o := &c.created[i]; same(o.ref.Schema, r.Schema) && same(o.ref.Table, r.Table) {
			return o
		}
	}
	return nil
}

func (c *creations) add(t created) {
	for i, col := range t.columns {
		if slices.ContainsFunc(t.columns[:i], func(o createdColumn) bool { return same(o.name, col.name) }) {
			return // SQL Server creates no such table
		}
	}
	if c.find(t.ref) == nil && len(t.columns) > 0 {
		c.created = append(c.created, t)
	}
}

func (c *creations) table(s *ast.CreateTableStatement) {
	ref, ok := c.ref(s.SchemaObjectName)
	if !ok || s.Definition == nil {
		return
	}
	t := created{ref: ref}
	constraint := func(columns []string, n any) {
		switch n := n.(type) {
		case *ast.UniqueConstraintDefinition:
			for _, k := range n.Columns {
				if ids := k.Column.MultiPartIdentifier; ids != nil {
					columns = append(columns, ids.Identifiers[0].Value)
				}
			}
			if n.IsPrimaryKey {
				t.table.PrimaryKey = columns
			} else {
				t.table.UniqueKeys = append(t.table.UniqueKeys, columns)
			}
		case *ast.ForeignKeyConstraintDefinition:
			for _, id := range n.Columns {
				columns = append(columns, id.Value)
			}
			to, ok := c.ref(n.ReferenceTableName)
			if !ok {
				return
			}
			fk := catalog.ForeignKey{Columns: columns, To: to}
			for _, id := range n.ReferencedColumns {
				fk.ToColumns = append(fk.ToColumns, id.Value)
			}
			t.table.ForeignKeys = append(t.table.ForeignKeys, fk)
		}
	}
	for _, d := range s.Definition.ColumnDefinitions {
		col := createdColumn{name: d.ColumnIdentifier.Value, Column: catalog.Column{Position: len(t.columns), Type: declared(d.DataType)}}
		for _, k := range d.Constraints {
			if n, ok := k.(*ast.NullableConstraintDefinition); ok {
				col.NotNull = !n.Nullable
				continue
			}
			constraint([]string{col.name}, k)
		}
		t.columns = append(t.columns, col)
	}
	for _, k := range s.Definition.TableConstraints {
		constraint(nil, k)
	}
	for i := range t.columns {
		if slices.ContainsFunc(t.table.PrimaryKey, func(k string) bool { return same(k, t.columns[i].name) }) {
			t.columns[i].NotNull = true
		}
	}
	c.add(t)
}

// declared writes a type as it was declared.
func declared(t ast.DataTypeReference) string {
	var name *ast.SchemaObjectName
	var sizes []ast.ScalarExpression
	switch t := t.(type) {
	case *ast.SqlDataTypeReference:
		name, sizes = t.Name, t.Parameters
	case *ast.XmlDataTypeReference:
		return "xml"
	case *ast.UserDataTypeReference:
		name, sizes = t.Name, t.Parameters
	}
	if name == nil {
		return ""
	}
	var path, args []string
	for _, id := range name.Identifiers {
		path = append(path, id.Value)
	}
	for _, s := range sizes {
		switch s := s.(type) {
		case *ast.IntegerLiteral:
			args = append(args, s.Value)
		case *ast.MaxLiteral:
			args = append(args, "max")
		}
	}
	out := strings.ToLower(strings.Join(path, "."))
	if len(args) > 0 {
		out += "(" + strings.Join(args, ",") + ")"
	}
	return out
}

// view reads a SQL view: its columns have the names that it lists or that its SELECT gives them.
func (c *creations) view(name *ast.SchemaObjectName, columns []*ast.Identifier, s *ast.SelectStatement, sql string) {
	ref, ok := c.ref(name)
	if !ok || s == nil {
		return
	}
	t := created{ref: ref, table: catalog.Table{SQLView: strings.TrimSpace(sql)}}
	p := printer{free: true}
	if p.statement(s); p.err == nil {
		if text, err := write(p.out); err == nil {
			t.table.SQLView = text
		}
	}
	var names []string
	for _, id := range columns {
		names = append(names, id.Value)
	}
	if q, ok := s.QueryExpression.(*ast.QuerySpecification); ok && names == nil {
		for _, e := range q.SelectElements {
			names = append(names, c.viewColumns(e, q)...)
		}
	}
	for _, n := range names {
		t.columns = append(t.columns, createdColumn{name: n, Column: catalog.Column{Position: len(t.columns)}})
	}
	c.add(t)
}

func (c *creations) viewColumns(e ast.SelectElement, q *ast.QuerySpecification) []string {
	switch e := e.(type) {
	case *ast.SelectScalarExpression:
		if e.ColumnName != nil {
			return []string{aliasName(e.ColumnName)}
		}
		if ref, ok := e.Expression.(*ast.ColumnReferenceExpression); ok && ref.MultiPartIdentifier != nil {
			ids := ref.MultiPartIdentifier.Identifiers
			return []string{ids[len(ids)-1].Value}
		}
	case *ast.SelectStarExpression:
		if q.FromClause == nil {
			return nil
		}
		var out []string
		for _, from := range q.FromClause.TableReferences {
			named, ok := from.(*ast.NamedTableReference)
			if !ok {
				continue
			}
			ref, ok := c.ref(named.SchemaObject)
			if t := c.find(ref); ok && t != nil {
				for _, col := range t.columns {
					out = append(out, col.name)
				}
			}
		}
		return out
	}
	return nil
}

// complete drops keys that name columns the table lacks, and points foreign keys without columns at primary keys.
func (c *creations) complete(t *created) {
	foreign := func(name string) bool { return !t.has(name) }
	if slices.ContainsFunc(t.table.PrimaryKey, foreign) {
		t.table.PrimaryKey = nil
	}
	t.table.UniqueKeys = slices.DeleteFunc(t.table.UniqueKeys, func(k []string) bool { return len(k) == 0 || slices.ContainsFunc(k, foreign) })
	t.table.ForeignKeys = slices.DeleteFunc(t.table.ForeignKeys, func(fk catalog.ForeignKey) bool { return slices.ContainsFunc(fk.Columns, foreign) })
	for i := range t.table.ForeignKeys {
		fk := &t.table.ForeignKeys[i]
		if o := c.find(fk.To); o != nil {
			fk.To = o.ref
			if fk.ToColumns == nil {
				fk.ToColumns = o.table.PrimaryKey
			}
		}
	}
	t.table.ForeignKeys = slices.DeleteFunc(t.table.ForeignKeys, func(fk catalog.ForeignKey) bool { return len(fk.Columns) != len(fk.ToColumns) })
}
