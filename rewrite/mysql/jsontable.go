package mysql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"

	"github.com/schemagate/schemagate/acl"
)

// The parser does not read JSON_TABLE(document, path COLUMNS (...)). It is read here: for the parser, a LATERAL subquery
// of the document stands in its place, which sees the same tables. jsonTables finds these again in the tree.

// jsonTable is a JSON_TABLE in a FROM clause.
type jsonTable struct {
	ast.ResultSetNode
	document ast.ExprNode // once found in the tree
	path     string
	columns  []jsonColumn

	text, standIn string // as written, and what the parser reads
}

// jsonColumn is a column of a JSON_TABLE, or a path with columns of its own.
type jsonColumn struct {
	name   string
	how    string // between the name and the path, or all there is: a type, FOR ORDINALITY
	path   string
	events string // what happens ON EMPTY and ON ERROR
	nested []jsonColumn
}

// jsonMark begins the name of the column that stands for a document.
const jsonMark = reserved + " json "

// Restore prints the table.
func (n *jsonTable) Restore(ctx *format.RestoreCtx) error {
	ctx.WritePlain("JSON_TABLE(")
	if err := n.document.Restore(ctx); err != nil {
		return err
	}
	ctx.WritePlain(", ")
	ctx.WritePlain(n.path)
	ctx.WritePlain(" ")
	restoreJSONColumns(ctx, n.columns)
	ctx.WritePlain(")")
	return nil
}

func restoreJSONColumns(ctx *format.RestoreCtx, columns []jsonColumn) {
	ctx.WritePlain("COLUMNS (")
	for i, c := range columns {
		if i > 0 {
			ctx.WritePlain(", ")
		}
		if c.nested != nil {
			ctx.WritePlain("NESTED PATH ")
			ctx.WritePlain(c.path)
			ctx.WritePlain(" ")
			restoreJSONColumns(ctx, c.nested)
			continue
		}
		ctx.WriteName(c.name)
		ctx.WritePlain(" " + c.how)
		if c.path != "" {
			ctx.WritePlain(" PATH ")
			ctx.WritePlain(c.path)
		}
		ctx.WritePlain(c.events)
	}
	ctx.WritePlain(")")
}

// names are the columns in the order in which * lists them.
func (n *jsonTable) names() []string {
	var out []string
	var add func([]jsonColumn)
	add = func(columns []jsonColumn) {
		for _, c := range columns {
			if c.nested != nil {
				add(c.nested)
			} else {
				out = append(out, c.name)
			}
		}
	}
	add(n.columns)
	return out
}

// extractJSONTables replaces each JSON_TABLE of a text for the parser.
func extractJSONTables(sql string) (string, []*jsonTable, error) {
	if !mentions(sql, "json_table") {
		return sql, nil, nil
	}
	if mentions(sql, jsonMark) {
		return "", nil, refuse("names that begin with "+reserved+" are reserved", "choose another name", jsonMark)
	}
	var out strings.Builder
	var tables []*jsonTable
	begin := 0
	for i := 0; i < len(sql); {
		if end := token(sql, i); end > i {
			i = end
			continue
		}
		end := word(sql, i)
		if end == i {
			i++
			continue
		}
		s := &jsonScanner{sql: sql, at: end}
		if !strings.EqualFold(sql[i:end], "json_table") || s.next() != "(" {
			i = end
			continue
		}
		document, table, err := s.table()
		if err != nil {
			return "", nil, err
		}
		table.text, table.standIn = sql[i:s.at], fmt.Sprintf("LATERAL (SELECT (%s) AS `%s%d`)", document, jsonMark, len(tables))
		out.WriteString(sql[begin:i] + table.standIn)
		tables = append(tables, table)
		begin, i = s.at, s.at
	}
	out.WriteString(sql[begin:])
	return out.String(), tables, nil
}

// word returns the end of the bare word that begins at i.
func word(sql string, i int) int {
	for i < len(sql) && (sql[i] == '_' || sql[i] == '$' || sql[i] >= 0x80 || '0' <= sql[i] && sql[i] <= '9' || 'a' <= sql[i]|0x20 && sql[i]|0x20 <= 'z') {
		i++
	}
	return i
}

// jsonScanner reads the inside of a JSON_TABLE.
type jsonScanner struct {
	sql string
	at  int
}

// next returns the next word, string, quoted name or character behind blanks and comments; "" is the end.
func (s *jsonScanner) next() string {
	for s.at < len(s.sql) {
		from := s.at
		c := s.sql[from]
		end := token(s.sql, from)
		switch {
		case end > from && c != '\'' && c != '"' && c != '`', c <= ' ':
			s.at = max(end, from+1)
			continue
		case end == from:
			end = max(word(s.sql, from), from+1)
		}
		s.at = end
		return s.sql[from:end]
	}
	return ""
}

// is takes the next words if they are these.
func (s *jsonScanner) is(words ...string) bool {
	before := s.at
	for _, w := range words {
		if !strings.EqualFold(s.next(), w) {
			s.at = before
			return false
		}
	}
	return true
}

func (s *jsonScanner) unread() error {
	return &acl.Refusal{
		Code: acl.CodeUnparsable, Public: "the JSON_TABLE is not valid SQL of this database", Hint: "check the statement's syntax",
		Detail: fmt.Sprintf("JSON_TABLE at byte %d", s.at),
	}
}

// table reads document, path COLUMNS (...)) behind the first parenthesis.
func (s *jsonScanner) table() (document string, _ *jsonTable, err error) {
	begin, depth := s.at, 0
	for document == "" {
		before := s.at
		switch t := s.next(); {
		case t == "":
			return "", nil, s.unread()
		case t == "(":
			depth++
		case t == ")":
			if depth--; depth < 0 {
				return "", nil, s.unread()
			}
		case t == "," && depth == 0:
			if document = strings.TrimSpace(withoutComments(s.sql[begin:before])); document == "" {
				return "", nil, s.unread()
			}
		case strings.EqualFold(t, "json_table"):
			return "", nil, refuse("a JSON_TABLE in the document of another is not supported", "read it in a WITH of its own", "nested JSON_TABLE")
		}
	}
	table := &jsonTable{}
	if table.path, err = s.literal(); err != nil {
		return "", nil, err
	}
	if table.columns, err = s.columns(0); err != nil {
		return "", nil, err
	}
	if !s.is(")") {
		return "", nil, s.unread()
	}
	return document, table, nil
}

// literal reads a string and returns it as it is printed.
func (s *jsonScanner) literal() (string, error) {
	t := s.next()
	if len(t) < 2 || t[0] != '\'' && t[0] != '"' || t[len(t)-1] != t[0] || strings.ContainsAny(t, "\\\x00") || strings.Contains(t[1:len(t)-1], t[:1]) {
		return "", s.unread() // quotes and backslashes inside belong to no path that people write
	}
	return "'" + strings.ReplaceAll(t[1:len(t)-1], "'", "''") + "'", nil
}

const maxJSONNesting = 16

// columns reads COLUMNS (...).
func (s *jsonScanner) columns(depth int) ([]jsonColumn, error) {
	if !s.is("columns", "(") || depth > maxJSONNesting {
		return nil, s.unread()
	}
	var out []jsonColumn
	for {
		c, err := s.column(depth)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
		switch s.next() {
		case ",":
		case ")":
			return out, nil
		default:
			return nil, s.unread()
		}
	}
}

func (s *jsonScanner) column(depth int) (c jsonColumn, err error) {
	if s.is("nested") {
		s.is("path")
		if c.path, err = s.literal(); err == nil {
			c.nested, err = s.columns(depth + 1)
		}
		return c, err
	}
	c.name = s.next()
	switch {
	case strings.HasPrefix(c.name, "`") && len(c.name) > 2 && strings.HasSuffix(c.name, "`"):
		c.name = c.name[1 : len(c.name)-1]
	case word(c.name, 0) != len(c.name) || c.name == "":
		return c, s.unread()
	}
	if s.is("for", "ordinality") {
		c.how = "FOR ORDINALITY"
		return c, nil
	}
	if c.how, err = s.columnType(); err != nil {
		return c, err
	}
	if s.is("exists") {
		c.how += " EXISTS"
	}
	if !s.is("path") {
		return c, s.unread()
	}
	if c.path, err = s.literal(); err != nil {
		return c, err
	}
	for _, event := range []string{"empty", "error"} {
		before := s.at
		var what string
		switch {
		case s.is("null"):
			what = "NULL"
		case s.is("error"):
			what = "ERROR"
		case s.is("default"):
			if what, err = s.literal(); err != nil {
				return c, err
			}
			what = "DEFAULT " + what
		default:
			return c, nil
		}
		if s.is("on", event) {
			c.events += " " + what + " ON " + strings.ToUpper(event)
		} else {
			s.at = before
		}
	}
	return c, nil
}

// jsonTypes are the types that a column can have, with how many numbers may stand behind them.
var jsonTypes = map[string]int{
	"int": 1, "integer": 1, "tinyint": 1, "smallint": 1, "mediumint": 1, "bigint": 1, "decimal": 2, "numeric": 2, "float": 0, "double": 0,
	"char": 1, "varchar": 1, "text": 0, "longtext": 0, "json": 0, "date": 0, "time": 1, "datetime": 1, "year": 0,
}

func (s *jsonScanner) columnType() (string, error) {
	name := strings.ToLower(s.next())
	numbers, ok := jsonTypes[name]
	if !ok {
		return "", refuse("the type "+name+" is not supported in JSON_TABLE", "choose a plain type", name)
	}
	out := strings.ToUpper(name)
	if numbers > 0 && s.is("(") {
		var list []string
		for {
			n, err := strconv.ParseUint(s.next(), 10, 16)
			if err != nil || len(list) == numbers {
				return "", s.unread()
			}
			list = append(list, strconv.FormatUint(n, 10))
			if s.is(")") {
				break
			}
			if !s.is(",") {
				return "", s.unread()
			}
		}
		out += "(" + strings.Join(list, ",") + ")"
	}
	if s.is("unsigned") {
		out += " UNSIGNED"
	}
	return out, nil
}

// jsonTables puts each JSON_TABLE where its stand-in is.
func (t *tree) jsonTables() error {
	if len(t.json) == 0 {
		return nil
	}
	found := 0
	w := walk{source: func(n *ast.TableSource) error {
		s, ok := n.Source.(*ast.SelectStmt)
		if !ok || !n.Lateral || len(s.Fields.Fields) != 1 {
			return nil
		}
		f := s.Fields.Fields[0]
		number, ok := strings.CutPrefix(f.AsName.O, jsonMark)
		if !ok {
			return nil
		}
		i, err := strconv.Atoi(number)
		if err != nil || i >= len(t.json) || len(n.ColumnNames) > 0 {
			return notSupported("the JSON_TABLE is not supported", n)
		}
		t.json[i].document = f.Expr
		n.Source, n.Lateral = t.json[i], false
		found++
		return nil
	}}
	if err := w.query(t.query); err != nil {
		return err
	}
	if found != len(t.json) {
		return refuse("a JSON_TABLE must stand in a FROM clause", "move it there", "JSON_TABLE")
	}
	return nil
}

// jsonTable resolves a JSON_TABLE, whose document may name columns of the tables before it.
func (r *resolver) jsonTable(n *jsonTable, block *scope) (*source, error) {
	var m made
	if _, err := r.gather(&m, &n.document, &scope{outer: block.outer, with: block.with, from: block.from, sources: block.from.sources}); err != nil {
		return nil, err
	}
	r.fallible = true // a column may be read with ERROR ON ERROR
	out := &source{}
	for _, name := range n.names() {
		out.columns = append(out.columns, column{name: name, from: m.from, how: max(m.how, transformation)})
	}
	return out, distinct(out, nil, "JSON_TABLE")
}
