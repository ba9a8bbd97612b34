//go:build bigquery

package bigquery

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-googlesql"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// marker is the parameter that stands for a value while a condition is parsed.
const marker = "schemagate_value_"

// condition reads SQL of the policy on a table: its names are checked against the table's raw columns and the tables of
// the catalog, which are written by their whole names so that no name of a statement around them can capture them, and its
// values become literals in their places. Its faults are the policy's, not the asker's.
func (b *binder) condition(t *rewrite.Table, c rewrite.Condition) (string, error) {
	// Not wrapped: a refusal inside a policy must not pass for one of the asker's statement.
	fault := func(err error) (string, error) { return "", fmt.Errorf("bigquery: policy %s: %v", c.Rule, err) }
	var sql strings.Builder
	for i, text := range c.Text {
		if i > 0 {
			sql.WriteString("@" + marker + strconv.Itoa(i))
		}
		sql.WriteString(text)
	}
	if deep(sql.String()) {
		return fault(nestedTooDeeply())
	}
	root, err := expression(sql.String())
	if err != nil {
		return fault(err)
	}
	p := policy{binder: b, table: t, values: c.Values, filled: make([]int, len(c.Values))}
	p.read(root, &frame{table: &t.Ref, name: t.Ref.Table})
	if p.err != nil {
		return fault(p.err)
	}
	for i, n := range p.filled {
		if n != 1 {
			return fault(fmt.Errorf("value %d stands %d times in the condition; it may stand in a text or a comment", i+1, n))
		}
	}
	slices.SortFunc(p.edits, func(a, b edit) int { return a.start - b.start })
	bound := apply(sql.String(), p.edits)
	again, err := expression(bound)
	if err != nil {
		return fault(err)
	}
	if err := allowed(again); err != nil {
		return fault(err)
	}
	text, err := canonicalExpression(bound)
	if err != nil {
		return fault(err)
	}
	return text, nil
}

// expression parses an expression.
func expression(sql string) (*node, error) {
	options, err := parser()
	if err != nil {
		return nil, err
	}
	out, err := googlesql.ParseExpression(sql, options)
	if err != nil {
		return nil, errors.New(firstLine(err))
	}
	x, err := out.Expression()
	if err != nil {
		return nil, err
	}
	n, err := read(x, 0)
	runtime.KeepAlive(out)
	return n, err
}

func canonicalExpression(sql string) (string, error) {
	options, err := parser()
	if err != nil {
		return "", err
	}
	out, err := googlesql.ParseExpression(sql, options)
	if err != nil {
		return "", err
	}
	x, err := out.Expression()
	if err != nil {
		return "", err
	}
	text, err := googlesql.Unparse(x)
	runtime.KeepAlive(out)
	return strings.TrimSpace(text), err
}

// policy reads one condition.
type policy struct {
	binder *binder
	table  *rewrite.Table
	values []any
	filled []int
	edits  []edit
	err    error
}

// frame is a table that names in a condition can mean columns of, with those around it. A nil table is one whose columns
// are not known: a derived table, a CTE or an array.
type frame struct {
	outer *frame
	table *catalog.Ref
	name  string
}

func (p *policy) refuse(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// read reads an expression, or any node that holds some.
func (p *policy) read(n *node, f *frame) {
	switch n.kind {
	case "ParameterExpr":
		p.fill(n, false)
		return
	case "InList":
		if len(n.children) == 1 && n.children[0].kind == "ParameterExpr" {
			p.fill(n.children[0], true)
			return
		}
	case "PathExpression":
		p.column(n, f)
		return
	case "FunctionCall":
		name, _ := functionName(n)
		for i, c := range n.children[1:] {
			if strings.HasSuffix(name, "_diff") && i == 2 || (strings.HasSuffix(name, "_trunc") || name == "last_day") && i == 1 {
				continue // a part of a date
			}
			p.read(c, f)
		}
		return
	case "Query":
		p.query(n, f)
		return
	case "SimpleType", "Alias", "ExtractExpression", "IntervalExpr":
		if n.kind == "ExtractExpression" {
			p.read(n.children[1], f)
		}
		if n.kind == "IntervalExpr" {
			p.read(n.children[0], f)
		}
		return
	case "Identifier":
		return
	case "SystemVariableExpr":
		p.refuse("system variables are not supported in a condition")
		return
	case "WithClause":
		p.refuse("WITH is not supported in a condition")
		return
	}
	for _, c := range n.children {
		p.read(c, f)
	}
}

// query reads a subquery: first its tables, then the rest with their columns in sight.
func (p *policy) query(n *node, outer *frame) {
	f := outer
	var from []*node
	n.walk(func(c *node) bool {
		switch {
		case c != n && (c.kind == "ExpressionSubquery" || c.kind == "Query"):
			return false // has a FROM of its own
		case c.kind == "TablePathExpression":
			from = append(from, c)
			return false
		case c.kind == "TableSubquery":
			p.refuse("a derived table is not supported in a condition")
		}
		return p.err == nil
	})
	for _, at := range from {
		f = p.from(at, f)
	}
	for _, c := range n.children {
		p.clause(c, f)
	}
}

func (p *policy) clause(n *node, f *frame) {
	if n.kind == "TablePathExpression" {
		return
	}
	if n.kind == "UsingClause" || n.kind == "Star" {
		return
	}
	if n.kind == "FromClause" || n.kind == "Join" || n.kind == "Select" || n.kind == "SetOperation" || n.kind == "ParenthesizedJoin" {
		for _, c := range n.children {
			p.clause(c, f)
		}
		return
	}
	p.read(n, f)
}

// from enters one FROM item.
func (p *policy) from(at *node, f *frame) *frame {
	path := at.child("PathExpression")
	if path == nil {
		for _, c := range at.children {
			if c.kind == "UnnestExpression" {
				p.read(c, f)
			}
		}
		return p.alias(at, &frame{outer: f})
	}
	names := path.path()
	own := p.table.Ref
	var ref catalog.Ref
	switch len(names) {
	case 1:
		ref = catalog.TableRef(own.Database, own.Schema, names[0])
	case 2:
		ref = catalog.TableRef(own.Database, names[0], names[1])
	case 3:
		ref = catalog.TableRef(names[0], names[1], names[2])
	}
	if ref.Database != own.Database {
		// An alias of the asker's that is called like another project could take the place of its tables.
		p.refuse("%s is of another project than the table", strings.Join(names, "."))
		return f
	}
	found, ok := p.binder.schema.Exists(ref)
	if !ok {
		p.refuse("%s is not available", strings.Join(names, "."))
		return f
	}
	p.edits = append(p.edits, edit{path.start, path.end, quotePath(fullPath(found)) + implicitAlias(at)})
	return p.alias(at, &frame{outer: f, table: &found, name: names[len(names)-1]})
}

func (p *policy) alias(at *node, f *frame) *frame {
	if a := at.child("Alias"); a != nil {
		f.name = a.children[0].name
	}
	return f
}

// column checks that a name means a column of a table in sight: what does not could be captured by a statement around.
func (p *policy) column(n *node, f *frame) {
	path := n.path()
	for at := f; at != nil; at = at.outer {
		if at.table == nil {
			if strings.EqualFold(at.name, path[0]) {
				return
			}
			continue
		}
		has := func(column string) bool {
			t := at.table
			_, ok := p.binder.schema.Exists(catalog.ColumnRef(t.Database, t.Schema, t.Table, column))
			return ok
		}
		if has(path[0]) || strings.EqualFold(at.name, path[0]) && len(path) > 1 && has(path[1]) {
			return
		}
	}
	p.refuse("%s is not available", strings.Join(path, "."))
}

// fill puts a value in its place; alone says that it is the one element of an IN list.
func (p *policy) fill(n *node, alone bool) {
	name := ""
	if len(n.children) == 1 {
		name = n.children[0].name
	}
	digits, ok := strings.CutPrefix(name, marker)
	i, err := strconv.Atoi(digits)
	if !ok || err != nil || i < 1 || i > len(p.values) || digits != strconv.Itoa(i) {
		p.refuse("the parameter %s is not supported", strings.TrimSpace("@"+name))
		return
	}
	p.filled[i-1]++
	var list []any
	switch v := p.values[i-1].(type) {
	case []string:
		for _, s := range v {
			list = append(list, s)
		}
	case []int64:
		for _, s := range v {
			list = append(list, s)
		}
	default:
		text, err := literal(v)
		if err != nil {
			p.refuse("%v", err)
		}
		p.edits = append(p.edits, edit{n.start, n.end, text})
		return
	}
	if !alone {
		p.refuse("a list of values stands only alone in an IN list")
		return
	}
	var texts []string
	for _, v := range list {
		text, err := literal(v)
		if err != nil {
			p.refuse("%v", err)
		}
		texts = append(texts, text)
	}
	if texts == nil {
		p.refuse("value %d is an empty list", i)
	}
	p.edits = append(p.edits, edit{n.start, n.end, strings.Join(texts, ", ")})
}

// literal writes a typed value.
func literal(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return text(v), nil
	case bool:
		return strings.ToUpper(strconv.FormatBool(v)), nil
	case int64:
		if v < 0 {
			return "(" + strconv.FormatInt(v, 10) + ")", nil
		}
		return strconv.FormatInt(v, 10), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return "", fmt.Errorf("%v has no literal in BigQuery", v)
		}
		out := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(out, ".e") {
			out += ".0"
		}
		if v < 0 {
			out = "(" + out + ")"
		}
		return out, nil
	}
	return "", fmt.Errorf("a value of type %T stands only alone in an IN list", v)
}

// text writes a text in single quotes; what could end it, or a line, is escaped.
func text(s string) string {
	var out strings.Builder
	out.WriteByte('\'')
	for _, c := range s {
		switch {
		case c == '\'' || c == '\\':
			out.WriteByte('\\')
			out.WriteRune(c)
		case c < ' ' || c == 0x7f || c == 0x85 || c == 0x2028 || c == 0x2029:
			fmt.Fprintf(&out, `\u%04x`, c)
		default:
			out.WriteRune(c)
		}
	}
	out.WriteByte('\'')
	return out.String()
}

// masked writes what a column reads as, and the type that it then has.
func (b *binder) masked(t *rewrite.Table, c *rewrite.Column) (sql, typ string, err error) {
	name, declared := quote(c.Name), bare(c.Type)
	if c.Mask == nil {
		return name, declared, nil
	}
	switch m := c.Mask; m.Kind {
	case acl.MaskNull:
		return "CAST(NULL AS " + declared + ")", declared, nil
	case acl.MaskPartial:
		return "CONCAT(SUBSTR(" + b.textOf(name, declared) + ", 1, 1), '***')", "STRING", nil
	case acl.MaskHash:
		// There are hashes, but nothing to keep the key of one in that a statement of the asker's could not read as well.
		return "", "STRING", nil
	case acl.MaskConstant:
		value, err := literal(m.Constant)
		if err != nil {
			return "", "", fmt.Errorf("bigquery: mask of %s: %w", c.Ref, err)
		}
		sql := "CAST(" + value + " AS " + declared + ")"
		if _, ok := b.typeOf(t, sql); !ok {
			return "", "", fmt.Errorf("bigquery: mask of %s: %s is no %s", c.Ref, value, declared)
		}
		return sql, declared, nil
	case acl.MaskExpression:
		value, err := b.condition(t, m.Expression)
		if err != nil {
			return "", "", err
		}
		if typ, ok := b.typeOf(t, value); ok {
			return "(" + value + ")", typ, nil
		}
		// It reads what only the policy may, whose type is not known here.
		return "CAST((" + value + ") AS " + declared + ")", declared, nil
	}
	return "", "", fmt.Errorf("bigquery: mask %q of %s is not known", c.Mask.Kind, c.Ref)
}

// textOf writes a column as text.
func (b *binder) textOf(name, declared string) string {
	switch {
	case strings.EqualFold(declared, "STRING"):
		return name
	case strings.EqualFold(declared, "BYTES"):
		return "TO_HEX(" + name + ")"
	case strings.ContainsAny(declared, "<") || strings.EqualFold(declared, "JSON") || strings.EqualFold(declared, "GEOGRAPHY"):
		return "TO_JSON_STRING(" + name + ")"
	}
	return "CAST(" + name + " AS STRING)"
}

var parameters = regexp.MustCompile(`\s*\([^()<>]*\)`)

// bare is a type without the parameters that limit what a column stores, like STRING(20).
func bare(declared string) string {
	if strings.TrimSpace(declared) == "" {
		return "STRING"
	}
	return standard(parameters.ReplaceAllString(declared, ""))
}

// typeOf asks the analyzer for the type of an expression over what is visible of a table as it is stored.
func (b *binder) typeOf(t *rewrite.Table, sql string) (string, bool) {
	n, err := b.engine.names()
	if err != nil {
		return "", false
	}
	var columns []shape
	for i := range t.Columns {
		c := &t.Columns[i]
		typ, err := n.typeOf(bare(c.Type))
		if err != nil {
			return "", false
		}
		columns = append(columns, shape{c, typ})
	}
	if _, err := n.add(fullPath(t.Ref), t, columns); err != nil {
		return "", false
	}
	r, err := n.analyze("SELECT " + sql + " FROM " + quotePath(fullPath(t.Ref)))
	if err != nil {
		return "", false
	}
	defer r.done()
	c, err := r.query.OutputColumnList2(0)
	if err != nil {
		return "", false
	}
	column, err := c.Column()
	if err != nil {
		return "", false
	}
	typ, err := column.Type()
	if err != nil {
		return "", false
	}
	name, err := typ.(interface {
		TypeName(googlesql.ProductMode) (string, error)
	}).TypeName(googlesql.ProductModeProductExternal)
	return name, err == nil
}
