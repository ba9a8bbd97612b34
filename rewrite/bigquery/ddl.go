//go:build bigquery

package bigquery

import (
	"slices"
	"strings"

	"github.com/schemagate/schemagate/catalog"
)

// Objects reads the tables and SQL views that DDL creates as the catalog of a project of that name. It ignores every other
// statement, those that do not parse on their own, tables of other projects and those without a list of columns. A table
// without a dataset is put into the dataset main.
func (*Dialect) Objects(database, ddl string) (catalog.Database, []catalog.Object, error) {
	if _, err := newEngine(); err != nil {
		return catalog.Database{}, nil, err
	}
	var objects []catalog.Object
	var tables []catalog.Ref
	for _, sql := range split(ddl) {
		if len(sql) > maxBytes || deep(sql) {
			continue
		}
		parsed, err := statements(sql)
		if err != nil || len(parsed) != 1 {
			continue
		}
		c := creation{database: database, sql: sql}
		if !c.read(parsed[0]) || slices.Contains(tables, c.ref) {
			continue
		}
		tables = append(tables, c.ref)
		objects = append(objects, catalog.Object{Ref: c.ref, Table: &c.table})
		for i := range c.columns {
			ref := catalog.ColumnRef(c.ref.Database, c.ref.Schema, c.ref.Table, c.names[i])
			objects = append(objects, catalog.Object{Ref: ref, Column: &c.columns[i]})
		}
	}
	return catalog.Database{Name: database, Dialect: catalog.BigQuery}, objects, nil
}

// creation is a CREATE statement.
type creation struct {
	database, sql string
	ref           catalog.Ref
	table         catalog.Table
	names         []string
	columns       []catalog.Column
}

func (c *creation) read(n *node) bool {
	path := n.child("PathExpression")
	if path == nil {
		return false
	}
	var ok bool
	if c.ref, ok = c.named(path); !ok {
		return false
	}
	switch {
	case n.kind == "CreateTableStatement" && !strings.Contains(n.text, "is_temp"):
		list := n.child("TableElementList")
		if list == nil {
			return false
		}
		for _, e := range list.children {
			c.element(e)
		}
	case n.kind == "CreateViewStatement" && !strings.Contains(n.text, "is_temp"):
		query := n.child("Query")
		if query == nil {
			return false
		}
		c.table.SQLView = c.sql[query.start:query.end]
		c.view(n, query)
	}
	return len(c.columns) > 0
}

// named reads the name of a table; a dotted name in back-quotes is several.
func (c *creation) named(path *node) (catalog.Ref, bool) {
	names := strings.Split(strings.Join(path.path(), "."), ".")
	switch len(names) {
	case 1:
		return catalog.TableRef(c.database, "main", names[0]), true
	case 2:
		return catalog.TableRef(c.database, names[0], names[1]), true
	case 3:
		return catalog.TableRef(c.database, names[1], names[2]), names[0] == c.database
	}
	return catalog.Ref{}, false
}

func (c *creation) element(n *node) {
	switch n.kind {
	case "ColumnDefinition":
		name, schema := n.children[0].name, n.children[1]
		if slices.ContainsFunc(c.names, func(o string) bool { return strings.EqualFold(o, name) }) {
			return
		}
		col := catalog.Column{Position: len(c.columns), Type: typeText(c.sql, schema)}
		if attributes := schema.child("ColumnAttributeList"); attributes != nil {
			for _, a := range attributes.children {
				switch a.kind {
				case "NotNullColumnAttribute":
					col.NotNull = true
				case "PrimaryKeyColumnAttribute":
					c.table.PrimaryKey = []string{name}
				case "ForeignKeyColumnAttribute":
					c.foreign([]string{name}, a.child("ForeignKeyReference"))
				}
			}
		}
		c.names = append(c.names, name)
		c.columns = append(c.columns, col)
	case "PrimaryKey":
		n.walk(func(k *node) bool {
			if k.kind == "PrimaryKeyElement" {
				c.table.PrimaryKey = append(c.table.PrimaryKey, k.children[0].name)
			}
			return true
		})
	case "ForeignKey":
		if from := n.child("ColumnList"); from != nil {
			c.foreign(from.path(), n.child("ForeignKeyReference"))
		}
	}
}

func (c *creation) foreign(columns []string, reference *node) {
	if reference == nil || reference.child("PathExpression") == nil || reference.child("ColumnList") == nil {
		return
	}
	path := reference.child("PathExpression")
	to, ok := c.named(path)
	if len(path.children) == 1 && !strings.Contains(path.children[0].name, ".") {
		to.Schema = c.ref.Schema
	}
	if target := reference.child("ColumnList").path(); ok && len(target) == len(columns) {
		c.table.ForeignKeys = append(c.table.ForeignKeys, catalog.ForeignKey{Columns: columns, To: to, ToColumns: target})
	}
}

// view names the columns of a view: as it lists them, or as its SELECT does.
func (c *creation) view(n, query *node) {
	var names []string
	if list := n.child("ColumnWithOptionsList"); list != nil {
		for _, col := range list.children {
			names = append(names, col.children[0].name)
		}
	} else if s := query.child("Select"); s != nil && s.child("SelectList") != nil {
		for _, col := range s.child("SelectList").children {
			if a := col.child("Alias"); a != nil {
				names = append(names, a.children[0].name)
			} else if p := col.child("PathExpression"); p != nil {
				names = append(names, p.children[len(p.children)-1].name)
			}
		}
	}
	for _, name := range names {
		c.names = append(c.names, name)
		c.columns = append(c.columns, catalog.Column{Position: len(c.columns)})
	}
}

// typeText writes the type of a column: what constrains it and what it is told in options apart.
func typeText(sql string, schema *node) string {
	switch schema.kind {
	case "ArrayColumnSchema":
		return "ARRAY<" + typeText(sql, schema.children[0]) + ">"
	case "StructColumnSchema":
		var fields []string
		for _, f := range schema.children {
			if f.kind != "StructColumnField" {
				continue
			}
			field := typeText(sql, f.children[len(f.children)-1])
			if len(f.children) > 1 {
				field = f.children[0].name + " " + field
			}
			fields = append(fields, field)
		}
		return "STRUCT<" + strings.Join(fields, ", ") + ">"
	case "RangeColumnSchema":
		return "RANGE<" + typeText(sql, schema.children[0]) + ">"
	}
	out := ""
	for _, c := range schema.children {
		switch c.kind {
		case "PathExpression":
			out = strings.ToUpper(strings.Join(c.path(), "."))
		case "TypeParameterList":
			out += sql[c.start:c.end] + ")"
		}
	}
	return out
}

// split cuts DDL at its semicolons, those in texts, names and comments apart.
func split(ddl string) []string {
	var out []string
	start := 0
	for i := 0; i < len(ddl); {
		rest := ddl[i:]
		switch {
		case ddl[i] == ';':
			out = append(out, ddl[start:i])
			i++
			start = i
		case strings.HasPrefix(rest, "--") || ddl[i] == '#':
			i = after(ddl, i, "\n")
		case strings.HasPrefix(rest, "/*"):
			i = after(ddl, i+2, "*/")
		case strings.HasPrefix(rest, "'''") || strings.HasPrefix(rest, `"""`):
			i = quoted(ddl, i+3, rest[:3])
		case strings.ContainsRune("'\"`", rune(ddl[i])):
			i = quoted(ddl, i+1, rest[:1])
		default:
			i++
		}
	}
	return append(out, ddl[start:])
}

// after returns where a text goes on behind the next mark.
func after(s string, from int, mark string) int {
	if from > len(s) {
		return len(s)
	}
	if i := strings.Index(s[from:], mark); i >= 0 {
		return from + i + len(mark)
	}
	return len(s)
}

// quoted returns where a text goes on behind what is in quotes; a backslash takes the next character with it.
func quoted(s string, from int, mark string) int {
	for i := from; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if strings.HasPrefix(s[i:], mark) {
			return i + len(mark)
		}
	}
	return len(s)
}
