package mysql

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
	"github.com/pingcap/tidb/pkg/parser/types"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
)

// hashKey is the session variable that holds the key of hash masks.
const hashKey = "schemagate_hash_key"

// frame is the text of a wrapper, cut where values of the principal's attributes go, and the definition of a SQL view.
// It is the same for every principal of whom the policy demands the same, and never changes.
type frame struct {
	text   []string
	places []place // between the parts of text

	masked, fallible, nested bool // what its masks hold: an expression, one that can fail, a subquery
	asking                   bool // its filter holds a subquery
}

// place is where something goes into a frame: the value of that number, or the definition.
type place struct {
	value int
	list  bool // it is all that an IN list holds
}

// bodyValue is the number of a SQL view's definition among the values.
const bodyValue = -1

// fill writes the frame with its values and, for a SQL view, its definition.
func (f *frame) fill(values []any, body string) (string, error) {
	var b strings.Builder
	b.WriteString(f.text[0])
	for i, p := range f.places {
		if p.value == bodyValue {
			b.WriteString(body)
		} else if err := p.write(&b, values[p.value]); err != nil {
			return "", err
		}
		b.WriteString(f.text[i+1])
	}
	return b.String(), nil
}

// write prints values as literals: a negative one in parentheses, whatever stands beside it.
func (p place) write(b *strings.Builder, v any) error {
	all, list := []any{v}, true
	switch v := v.(type) {
	case []string:
		all = all[:0]
		for _, x := range v {
			all = append(all, x)
		}
	case []int64:
		all = all[:0]
		for _, x := range v {
			all = append(all, x)
		}
	default:
		list = false
	}
	if list && (!p.list || len(all) == 0) {
		return errors.New("an attribute that is a list must be all that an IN list holds, and not be empty")
	}
	for i, x := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		e := newLiteral(x)
		if tight(e) < atom {
			e = &ast.ParenthesesExpr{Expr: e}
		}
		if err := e.Restore(format.NewRestoreCtx(spelling, b)); err != nil {
			return err
		}
	}
	return nil
}

// frames are the frames that were made. They are few, one for each table and set of roles; when there are more, they
// are made anew.
type frames struct {
	mu sync.Mutex
	of map[string]*frame
}

const maxFrames = 4096

// frame returns what the policy demands around a table.
func (d *Dialect) frame(s *rewrite.Schema, t *rewrite.Table, partitions []ast.CIStr) (*frame, error) {
	if len(partitions) > 0 {
		return newFrame(d, s, t, partitions) // the asker's to name
	}
	key := string(keyOf(s, t))
	d.frames.mu.Lock()
	f := d.frames.of[key]
	d.frames.mu.Unlock()
	if f != nil {
		return f, nil
	}
	f, err := newFrame(d, s, t, nil)
	if err != nil {
		return nil, err
	}
	d.frames.mu.Lock()
	defer d.frames.mu.Unlock()
	if d.frames.of == nil || len(d.frames.of) >= maxFrames {
		d.frames.of = map[string]*frame{}
	}
	d.frames.of[key] = f
	return f, nil
}

// keyOf is all that a frame is made from.
func keyOf(s *rewrite.Schema, t *rewrite.Table) []byte {
	key := make([]byte, 0, 512)
	add := func(parts ...string) {
		key = binary.AppendUvarint(key, uint64(len(parts)))
		for _, p := range parts {
			key = binary.AppendUvarint(key, uint64(len(p)))
			key = append(key, p...)
		}
	}
	add(s.Version(), t.Ref.Database, t.Ref.Table)
	if t.Protected {
		add()
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		add(c.Name)
		if c.Mask != nil {
			add(string(c.Mask.Kind), fmt.Sprintf("%T %v", c.Mask.Constant, c.Mask.Constant))
			add(c.Mask.Expression.Text...)
		}
	}
	for _, list := range [][]rewrite.Condition{t.Permissive, t.Restrictive} {
		add()
		for _, c := range list {
			add(c.Text...)
		}
	}
	return key
}

// conditions are the policy's SQL on a table, in the order in which its values are numbered.
func conditions(t *rewrite.Table) []rewrite.Condition {
	var out []rewrite.Condition
	for i := range t.Columns {
		if m := t.Columns[i].Mask; m != nil && m.Kind == acl.MaskExpression {
			out = append(out, m.Expression)
		}
	}
	return append(append(out, t.Permissive...), t.Restrictive...)
}

// values are what goes into the places of the table's frame.
func values(t *rewrite.Table) []any {
	var out []any
	for _, c := range conditions(t) {
		out = append(out, c.Values...)
	}
	return out
}

// cutter prints a frame and notes where it is cut.
type cutter struct {
	strings.Builder
	frame *frame
	begin int
}

// hole is a place in the tree of a frame.
type hole struct {
	*test_driver.ValueExpr
	place
}

// Restore notes the place.
func (n *hole) Restore(ctx *format.RestoreCtx) error { return cut(ctx, n.place) }

// cut ends a part of the frame's text.
func cut(ctx *format.RestoreCtx, p place) error {
	c, ok := ctx.In.(*cutter)
	if !ok {
		return errors.New("mysql: a place of a frame stands in another text")
	}
	c.frame.text = append(c.frame.text, c.String()[c.begin:])
	c.frame.places = append(c.frame.places, p)
	c.begin = c.Len()
	return nil
}

// body is the place of a SQL view's definition.
type body struct{ ast.ResultSetNode }

// Restore notes the place.
func (n *body) Restore(ctx *format.RestoreCtx) error {
	ctx.WritePlain("(")
	if err := cut(ctx, place{value: bodyValue}); err != nil {
		return err
	}
	ctx.WritePlain(")")
	return nil
}

// newFrame builds SELECT visible columns FROM table AS _gate WHERE filter.
func newFrame(d *Dialect, s *rewrite.Schema, t *rewrite.Table, partitions []ast.CIStr) (*frame, error) {
	source := ast.ResultSetNode(&ast.TableName{Schema: ast.NewCIStr(t.Ref.Database), Name: ast.NewCIStr(t.Ref.Table), PartitionNames: partitions})
	if t.SQLView != "" {
		source = &body{}
	}
	b := binder{dialect: d, schema: s, table: t, alias: aliasOf(t)}
	query := &ast.SelectStmt{
		SelectStmtOpts: &ast.SelectStmtOpts{SQLCache: true},
		Fields:         &ast.FieldList{},
		From:           &ast.TableRefsClause{TableRefs: &ast.Join{Left: &ast.TableSource{Source: source, AsName: ast.NewCIStr(b.alias)}}},
	}
	f := &frame{}
	for _, c := range t.Columns {
		field, err := b.field(c)
		if err != nil {
			return nil, err
		}
		query.Fields.Fields = append(query.Fields.Fields, field)
		f.masked = f.masked || c.Mask != nil
	}
	f.fallible, f.nested = b.fallible, b.subqueries
	if t.Protected {
		b.subqueries = false
		filter, err := b.filter(t.Permissive, t.Restrictive)
		if err != nil {
			return nil, err
		}
		query.Where, f.asking = filter, b.subqueries
	}
	c := &canon{}
	w := walk{expr: c.expression, join: join, block: block}
	for _, field := range query.Fields.Fields {
		if err := w.expression(&field.Expr); err != nil {
			return nil, err
		}
	}
	if err := w.optional(&query.Where); err != nil {
		return nil, err
	}
	out := &cutter{frame: f}
	if err := query.Restore(format.NewRestoreCtx(spelling, out)); err != nil {
		return nil, fmt.Errorf("mysql: print the wrapper of %s: %w", t.Ref, err)
	}
	f.text = append(f.text, out.String()[out.begin:])
	return f, nil
}

// aliasOf is what a table is called inside of its wrapper. That of a SQL view tells which it is.
func aliasOf(t *rewrite.Table) string {
	if t.SQLView == "" {
		return reserved
	}
	return reserved + " " + t.Ref.Database + "." + t.Ref.Table
}

// binder makes nodes of what the policy says about one table.
type binder struct {
	dialect *Dialect
	schema  *rewrite.Schema
	table   *rewrite.Table
	alias   string
	values  int // that have been numbered
	features
}

func (b *binder) raw(name string) ast.ExprNode {
	return &ast.ColumnNameExpr{Name: &ast.ColumnName{Table: ast.NewCIStr(b.alias), Name: ast.NewCIStr(name)}}
}

// field is a column of the wrapper: as it is, or masked.
func (b *binder) field(c rewrite.Column) (*ast.SelectField, error) {
	if c.Mask == nil {
		return &ast.SelectField{Expr: b.raw(c.Name)}, nil
	}
	e, err := b.mask(c)
	if err != nil {
		return nil, err
	}
	return &ast.SelectField{Expr: e, AsName: ast.NewCIStr(c.Name)}, nil
}

func newCall(name string, args ...ast.ExprNode) ast.ExprNode {
	return &ast.FuncCallExpr{FnName: ast.NewCIStr(name), Args: args}
}

func (b *binder) mask(c rewrite.Column) (ast.ExprNode, error) {
	switch c.Mask.Kind {
	case acl.MaskNull:
		// It has the column's type, which NULL on its own has not.
		return newCall("nullif", b.raw(c.Name), b.raw(c.Name)), nil
	case acl.MaskHash:
		binary := types.NewFieldType(mysql.TypeVarString)
		binary.SetCharset("binary")
		binary.SetCollate("binary")
		binary.AddFlag(mysql.BinaryFlag)
		// Bytes have no collation that could clash with the column's.
		key := &ast.FuncCastExpr{Expr: &ast.VariableExpr{Name: hashKey}, Tp: binary, FunctionType: ast.CastFunction}
		value := newCall("convert", b.raw(c.Name), newLiteral("utf8mb4"))
		hash := newCall("sha2", newCall("concat", key, value), newLiteral(int64(256)))
		if textual(c.Type) {
			// Nothing of the column but its collation.
			hash = newCall("concat", hash, newCall("left", b.raw(c.Name), newLiteral(int64(0))))
		}
		return hash, nil
	case acl.MaskPartial:
		return newCall("concat", newCall("left", b.raw(c.Name), newLiteral(int64(1))), newLiteral("***")), nil
	case acl.MaskConstant:
		if _, isText := c.Mask.Constant.(string); isText && textual(c.Type) {
			// The first of the two, with the column's collation.
			return newCall("coalesce", newLiteral(c.Mask.Constant), b.raw(c.Name)), nil
		}
		return newLiteral(c.Mask.Constant), nil
	case acl.MaskExpression:
		return b.condition(c.Mask.Expression)
	}
	return nil, fmt.Errorf("mysql: mask %q of %s is unknown", c.Mask.Kind, c.Ref)
}

// textual reports whether a column's type has a collation.
func textual(columnType string) bool {
	name := strings.ToLower(columnType)
	return strings.Contains(name, "char") || strings.Contains(name, "text") || strings.HasPrefix(name, "enum") || strings.HasPrefix(name, "set")
}

// filter is (one of permissive) AND each of restrictive.
func (b *binder) filter(permissive, restrictive []rewrite.Condition) (ast.ExprNode, error) {
	if len(permissive) == 0 {
		return newLiteral(false), nil
	}
	join := func(op opcode.Op, all ast.ExprNode, next ast.ExprNode) ast.ExprNode {
		next = &ast.ParenthesesExpr{Expr: next}
		if all == nil {
			return next
		}
		return &ast.BinaryOperationExpr{Op: op, L: all, R: next}
	}
	var filter ast.ExprNode
	for _, c := range permissive {
		e, err := b.condition(c)
		if err != nil {
			return nil, err
		}
		filter = join(opcode.LogicOr, filter, e)
	}
	if len(restrictive) > 0 {
		filter = &ast.ParenthesesExpr{Expr: filter}
	}
	for _, c := range restrictive {
		e, err := b.condition(c)
		if err != nil {
			return nil, err
		}
		filter = join(opcode.LogicAnd, filter, e)
	}
	return filter, nil
}

// condition parses SQL of the policy, leaves holes for its values and binds its names.
func (b *binder) condition(c rewrite.Condition) (ast.ExprNode, error) {
	e, err := b.parse(c)
	if err != nil {
		return nil, fmt.Errorf("mysql: policy %s: %w", c.Rule, err)
	}
	return e, nil
}

func (b *binder) parse(c rewrite.Condition) (ast.ExprNode, error) {
	const head = "SELECT "
	var sql strings.Builder
	sql.WriteString(head)
	var places []int
	for i, part := range c.Text {
		if i > 0 {
			places = append(places, sql.Len())
			sql.WriteByte('?')
		}
		sql.WriteString(part)
	}
	if err := scan(sql.String()); err != nil {
		return nil, err
	}
	statements, err := b.dialect.parse(sql.String())
	if err != nil {
		return nil, err
	}
	notOne := fmt.Errorf("%q is not one expression", strings.Join(c.Text, "{{...}}"))
	if len(statements) != 1 {
		return nil, notOne
	}
	s, ok := statements[0].(*ast.SelectStmt)
	if !ok || len(s.Fields.Fields) != 1 || s.Fields.Fields[0].WildCard != nil || s.Fields.Fields[0].AsName.O != "" || s.Distinct ||
		s.SelectStmtOpts.ExplicitAll || s.From != nil || s.Where != nil || s.GroupBy != nil || s.Having != nil || s.WindowSpecs != nil ||
		s.OrderBy != nil || s.Limit != nil || s.LockInfo != nil || s.SelectIntoOpt != nil || s.With != nil {
		return nil, notOne
	}
	if err := b.holes(s, places); err != nil {
		return nil, err
	}
	if err := canonical(sql.String(), s); err != nil {
		return nil, err
	}
	if err := (&walk{block: allowedBlock, expr: allowed}).query(s); err != nil {
		return nil, err
	}
	slot := &s.Fields.Fields[0].Expr
	ref := b.table.Ref
	root := &source{name: ref.Table, database: ref.Database, raw: ref, alias: b.alias}
	r := newResolver(b.dialect, b.schema)
	r.database, r.policy, r.sql = ref.Database, true, sql.String()
	_, err = r.expression(slot, &scope{sources: []*source{root}})
	b.fallible, b.subqueries = b.fallible || r.fallible, b.subqueries || r.subqueries
	return *slot, err
}

// holes makes the placeholder at each place a hole.
func (b *binder) holes(s *ast.SelectStmt, places []int) error {
	filled := 0
	w := walk{expr: func(slot *ast.ExprNode) error {
		switch n := (*slot).(type) {
		case *test_driver.ParamMarkerExpr:
			i := slices.Index(places, n.Offset)
			if i < 0 {
				return errors.New("a placeholder ? has no value")
			}
			filled++
			*slot = &hole{&n.ValueExpr, place{value: b.values + i}}
		case *ast.PatternInExpr:
			if n.Sel == nil && len(n.List) == 1 {
				if h, ok := n.List[0].(*hole); ok {
					h.list = true
				}
			}
		}
		return nil
	}}
	if err := w.query(s); err != nil {
		return err
	}
	if filled != len(places) {
		return errors.New("an attribute stands in a string or comment, where it cannot become a value")
	}
	b.values += len(places)
	return nil
}
