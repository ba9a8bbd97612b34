package mysql

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/schemagate/schemagate/catalog"
)

// Objects reads the tables and SQL views that DDL creates in a database of that name: plain statements, the output of
// SHOW CREATE, a dump. It ignores all other statements, also those that do not parse and those of other databases;
// a table that is not read is not available to anybody.
func (d *Dialect) Objects(database, ddl string) (catalog.Database, []catalog.Object, error) {
	r := ddlReader{database: database, tables: map[string]*definition{}}
	for _, s := range splitStatements(ddl) {
		r.read(s)
	}
	var out []catalog.Object
	for _, name := range r.names {
		t := r.tables[name]
		if t == nil || len(t.columns) == 0 {
			continue
		}
		r.complete(t)
		out = append(out, t.table)
		out = append(out, t.columns...)
	}
	return catalog.Database{Name: database, Dialect: catalog.MySQL}, out, nil
}

// definition is one table as far as it has been read.
type definition struct {
	table   catalog.Object
	columns []catalog.Object
}

type ddlReader struct {
	database string
	tables   map[string]*definition
	names    []string // in order of creation
}

func (r *ddlReader) read(sql string) {
	s := one(sql)
	if s == nil {
		// Table options and their collations differ from server to server and say nothing of columns.
		end := closing(sql)
		if end < 0 {
			return
		}
		s = one(sql[:end+1])
		if _, table := s.(*ast.CreateTableStmt); !table {
			return
		}
	}
	switch s := s.(type) {
	case *ast.CreateTableStmt:
		r.createTable(s)
	case *ast.CreateViewStmt:
		r.createView(s)
	case *ast.DropTableStmt:
		for _, t := range s.Tables {
			if _, known := r.tables[t.Name.O]; known && r.ours(t) {
				r.tables[t.Name.O] = nil
			}
		}
	}
}

// one parses one statement; it is nil if the text is none.
func one(sql string) ast.StmtNode {
	statements, err := parseWith(parser.New(), sql)
	if err != nil || len(statements) != 1 {
		return nil
	}
	return statements[0]
}

func (r *ddlReader) ours(t *ast.TableName) bool { return t.Schema.O == "" || t.Schema.O == r.database }

// define enters an empty table; what a name meant before is gone.
func (r *ddlReader) define(name string) *definition {
	if _, known := r.tables[name]; !known {
		r.names = append(r.names, name)
	}
	t := &definition{table: catalog.Object{Ref: catalog.TableRef(r.database, "", name), Table: &catalog.Table{}}}
	r.tables[name] = t
	return t
}

func (r *ddlReader) column(t *definition, name string, c catalog.Column) *catalog.Object {
	c.Position = len(t.columns)
	ref := t.table.Ref
	t.columns = append(t.columns, catalog.Object{Ref: catalog.ColumnRef(ref.Database, "", ref.Table, name), Column: &c})
	return &t.columns[len(t.columns)-1]
}

func (r *ddlReader) createTable(s *ast.CreateTableStmt) {
	if !r.ours(s.Table) || s.TemporaryKeyword != ast.TemporaryNone {
		return
	}
	if s.IfNotExists && r.tables[s.Table.Name.O] != nil {
		return
	}
	t := r.define(s.Table.Name.O)
	if s.ReferTable != nil {
		if like := r.tables[s.ReferTable.Name.O]; like != nil && r.ours(s.ReferTable) {
			for _, c := range like.columns {
				copied := *c.Column
				r.column(t, c.Ref.Column, copied).Description = c.Description
			}
			t.table.Table.PrimaryKey, t.table.Table.UniqueKeys = like.table.Table.PrimaryKey, like.table.Table.UniqueKeys
		}
		return
	}
	for _, o := range s.Options {
		if o.Tp == ast.TableOptionComment {
			t.table.Description = o.StrValue
		}
	}
	table := t.table.Table
	for _, c := range s.Cols {
		name := c.Name.Name.O
		o := r.column(t, name, catalog.Column{Type: c.Tp.InfoSchemaStr()})
		for _, opt := range c.Options {
			switch opt.Tp {
			case ast.ColumnOptionPrimaryKey:
				o.Column.NotNull = true
				table.PrimaryKey = []string{name}
			case ast.ColumnOptionNotNull:
				o.Column.NotNull = true
			case ast.ColumnOptionUniqKey:
				table.UniqueKeys = append(table.UniqueKeys, []string{name})
			case ast.ColumnOptionComment:
				if v, ok := opt.Expr.(*test_driver.ValueExpr); ok {
					o.Description = v.GetString()
				}
			case ast.ColumnOptionReference:
				r.foreignKey(table, []string{name}, opt.Refer)
			}
		}
	}
	for _, c := range s.Constraints {
		names, whole := keyColumns(c.Keys)
		switch c.Tp {
		case ast.ConstraintPrimaryKey:
			table.PrimaryKey = names
		case ast.ConstraintUniq, ast.ConstraintUniqKey, ast.ConstraintUniqIndex:
			if whole {
				table.UniqueKeys = append(table.UniqueKeys, names)
			}
		case ast.ConstraintForeignKey:
			r.foreignKey(table, names, c.Refer)
		}
	}
}

// keyColumns returns the columns of a key. whole is false if it covers an expression or a prefix.
func keyColumns(parts []*ast.IndexPartSpecification) (names []string, whole bool) {
	whole = true
	for _, p := range parts {
		if p.Column == nil || p.Length > 0 {
			whole = false
			continue
		}
		names = append(names, p.Column.Name.O)
	}
	return names, whole
}

func (r *ddlReader) foreignKey(t *catalog.Table, columns []string, to *ast.ReferenceDef) {
	if to == nil {
		return
	}
	database := r.database
	if to.Table.Schema.O != "" {
		database = to.Table.Schema.O
	}
	names, _ := keyColumns(to.IndexPartSpecifications)
	t.ForeignKeys = append(t.ForeignKeys, catalog.ForeignKey{Columns: columns, To: catalog.TableRef(database, "", to.Table.Name.O), ToColumns: names})
}

// complete settles what needs all tables: names of keys in the spelling of their columns, the columns that a key
// points at without saying so.
func (r *ddlReader) complete(t *definition) {
	own := func(names []string) []string {
		out := make([]string, 0, len(names))
		for _, n := range names {
			for _, c := range t.columns {
				if strings.EqualFold(c.Ref.Column, n) {
					out = append(out, c.Ref.Column)
				}
			}
		}
		return out
	}
	table := t.table.Table
	table.PrimaryKey = own(table.PrimaryKey)
	for i := range table.UniqueKeys {
		table.UniqueKeys[i] = own(table.UniqueKeys[i])
	}
	for i := range table.ForeignKeys {
		k := &table.ForeignKeys[i]
		if to := r.tables[k.To.Table]; len(k.ToColumns) == 0 && to != nil && k.To.Database == r.database {
			k.ToColumns = to.table.Table.PrimaryKey
		}
	}
	keys := table.ForeignKeys[:0]
	for _, k := range table.ForeignKeys {
		if len(k.Columns) == len(k.ToColumns) {
			keys = append(keys, k)
		}
	}
	table.ForeignKeys = keys
}

func (r *ddlReader) createView(s *ast.CreateViewStmt) {
	if !r.ours(s.ViewName) {
		return
	}
	columns := make([]catalog.Column, 0, len(s.Cols))
	names := make([]string, 0, len(s.Cols))
	for _, c := range s.Cols {
		names, columns = append(names, c.O), append(columns, catalog.Column{})
	}
	if len(names) == 0 {
		names, columns = r.outputs(s.Select)
	}
	body, err := text(s.Select)
	if err != nil || len(names) == 0 {
		return
	}
	t := r.define(s.ViewName.Name.O)
	t.table.Table.SQLView = body
	for i, n := range names {
		r.column(t, n, columns[i])
	}
}

// outputs lists the columns of a view's query; none if it holds a * over something that is not known.
func (r *ddlReader) outputs(n ast.Node) (names []string, columns []catalog.Column) {
	switch s := n.(type) {
	case *ast.SetOprStmt:
		return r.outputs(s.SelectList)
	case *ast.SetOprSelectList:
		return r.outputs(s.Selects[0])
	case *ast.SelectStmt:
		if s.Kind != ast.SelectStmtKindSelect {
			return nil, nil
		}
		var sources []*ast.TableSource
		if s.From != nil {
			sources = tableSources(s.From.TableRefs)
		}
		for _, f := range s.Fields.Fields {
			if f.WildCard == nil {
				names = append(names, fieldName(f))
				columns = append(columns, catalog.Column{})
				continue
			}
			found := false
			for _, src := range sources {
				name, ok := src.Source.(*ast.TableName)
				if !ok || !r.ours(name) || r.tables[name.Name.O] == nil {
					return nil, nil
				}
				alias := name.Name.O
				if src.AsName.O != "" {
					alias = src.AsName.O
				}
				if f.WildCard.Table.O != "" && f.WildCard.Table.O != alias {
					continue
				}
				found = true
				for _, c := range r.tables[name.Name.O].columns {
					names = append(names, c.Ref.Column)
					columns = append(columns, catalog.Column{Type: c.Column.Type, NotNull: c.Column.NotNull})
				}
			}
			if !found {
				return nil, nil
			}
		}
	}
	return names, columns
}

func tableSources(n ast.ResultSetNode) []*ast.TableSource {
	switch n := n.(type) {
	case *ast.Join:
		out := tableSources(n.Left)
		if n.Right != nil {
			out = append(out, tableSources(n.Right)...)
		}
		return out
	case *ast.TableSource:
		return []*ast.TableSource{n}
	}
	return nil
}

// fieldName is the name that the engine gives an element of a select list.
func fieldName(f *ast.SelectField) string {
	if f.AsName.O != "" {
		return f.AsName.O
	}
	switch e := f.Expr.(type) {
	case *ast.ColumnNameExpr:
		return e.Name.Name.O
	case *test_driver.ValueExpr:
		if e.Kind() == test_driver.KindString {
			return e.GetString()
		}
	}
	return strings.TrimSpace(withoutComments(f.Text()))
}

// closing returns the position of the parenthesis that closes the first one of the text, or -1.
func closing(sql string) int {
	depth := 0
	for i := 0; i < len(sql); i++ {
		if end := token(sql, i); end > i {
			i = end - 1
			continue
		}
		switch sql[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth <= 0 {
				return i
			}
		}
	}
	return -1
}

// splitStatements cuts a script at its semicolons. Executable comments stay: a dump writes SQL views in them.
func splitStatements(sql string) []string {
	var out []string
	start := 0
	for i := 0; i < len(sql); i++ {
		if end := token(sql, i); end > i {
			i = end - 1
			continue
		}
		if sql[i] == ';' {
			out = append(out, sql[start:i])
			start = i + 1
		}
	}
	return append(out, sql[start:])
}
