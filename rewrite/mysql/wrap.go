package mysql

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
	"github.com/pingcap/tidb/pkg/parser/types"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// hashKey is the session variable that holds the key of hash masks.
const hashKey = "schemagate_hash_key"

// Wrap replaces each base table that is not whole by its wrapper, and qualifies the others.
func (t *tree) Wrap(s *rewrite.Schema) error {
	built := map[catalog.Ref]*wrapper{}
	for _, u := range t.uses {
		name := u.at.Source.(*ast.TableName)
		if u.table.Whole {
			name.Schema = ast.NewCIStr(u.table.Ref.Database)
			continue
		}
		w, part := built[u.table.Ref], len(name.PartitionNames) > 0
		if w == nil || part {
			var err error
			if w, err = newWrapper(s, u.table, name.PartitionNames); err != nil {
				return err
			}
			if !part {
				built[u.table.Ref] = w // its query may stand in several places, since it changes no more
			}
		}
		if u.at.AsName.O == "" {
			u.at.AsName = name.Name
		}
		u.at.Source = w.statement(w.protected && (t.fallible || w.fallible) || w.masked && t.outer || t.windows)
	}
	return nil
}

// Governed resolves the printed statement as if it were new: names find only what wrappers and whole tables offer, and
// no other base table is within reach.
func (t *tree) Governed(s *rewrite.Schema) error {
	outside := func(slot *ast.ExprNode) error {
		if v, ok := (*slot).(*ast.VariableExpr); ok {
			return fmt.Errorf("mysql: variable %s stands outside of a wrapper", v.Name)
		}
		return nil
	}
	w := walk{block: allowedBlock, expr: outside, skipWrappers: true}
	if err := w.query(t.query); err != nil {
		return err
	}
	r := &resolver{schema: s, governed: true, seen: map[string]bool{}}
	_, err := r.query(t.query, nil, nil, nil, false)
	return err
}

// wrapperOf returns the base table of a derived table that has the look of a wrapper, else nil.
func wrapperOf(n ast.ResultSetNode) *ast.TableName {
	s, ok := n.(*ast.SelectStmt)
	if !ok || s.From == nil || s.From.TableRefs.Right != nil {
		return nil
	}
	source, ok := s.From.TableRefs.Left.(*ast.TableSource)
	if !ok || source.AsName.O != reserved {
		return nil
	}
	name, _ := source.Source.(*ast.TableName)
	return name
}

// wrapped checks that a derived table that looks like a wrapper is the one that the schema demands. It returns nil
// for any other derived table.
func (r *resolver) wrapped(at *ast.TableSource, n ast.ResultSetNode) (*source, error) {
	name := wrapperOf(n)
	if name == nil {
		return nil, nil
	}
	ref := catalog.TableRef(name.Schema.O, "", name.Name.O)
	t, ok, err := r.schema.Table(ref)
	if err != nil {
		return nil, err
	}
	if !ok || t.Whole || at.Lateral || len(at.ColumnNames) > 0 {
		return nil, fmt.Errorf("mysql: nothing demands a wrapper of %s", ref)
	}
	got, err := text(n)
	if err != nil {
		return nil, err
	}
	out := &source{columns: columns(t), use: &use{at: at, table: t, columns: make([]bool, len(t.Columns))}}
	if r.seen[got] {
		return out, nil
	}
	w, err := newWrapper(r.schema, t, name.PartitionNames)
	if err != nil {
		return nil, err
	}
	for _, barrier := range []bool{false, true} {
		want, err := text(w.statement(barrier))
		if err != nil {
			return nil, err
		}
		if got == want {
			r.seen[got] = true
			return out, nil
		}
	}
	return nil, fmt.Errorf("mysql: the wrapper of %s is not the one that its policy demands", ref)
}

// wrapper is the derived table that stands for a base table.
type wrapper struct {
	query             *ast.SelectStmt
	protected, masked bool
	fallible          bool // a mask can fail on some row
}

// statement returns the wrapper's query. With a barrier the engine does not merge the query into the asker's. That is
// needed where an expression can fail, or it would tell of rows that the filter hides. It is also needed where MariaDB
// gives other rows for a merged query: with window functions beside subqueries in WHERE, and for an expression on the
// side of an outer join that has no row, which it takes for a value in NOT IN.
func (w *wrapper) statement(barrier bool) *ast.SelectStmt {
	w.query.Limit = nil
	if barrier {
		w.query.Limit = &ast.Limit{Count: newLiteral(uint64(math.MaxUint64))}
	}
	return w.query
}

// newWrapper builds SELECT visible columns FROM table AS _gate WHERE filter.
func newWrapper(s *rewrite.Schema, t *rewrite.Table, partitions []ast.CIStr) (*wrapper, error) {
	base := &ast.TableName{Schema: ast.NewCIStr(t.Ref.Database), Name: ast.NewCIStr(t.Ref.Table), PartitionNames: partitions}
	w := &wrapper{protected: t.Protected, query: &ast.SelectStmt{
		SelectStmtOpts: &ast.SelectStmtOpts{SQLCache: true},
		Fields:         &ast.FieldList{},
		From:           &ast.TableRefsClause{TableRefs: &ast.Join{Left: &ast.TableSource{Source: base, AsName: ast.NewCIStr(reserved)}}},
	}}
	b := binder{schema: s, table: t}
	for _, c := range t.Columns {
		f, err := b.field(c)
		if err != nil {
			return nil, err
		}
		w.query.Fields.Fields = append(w.query.Fields.Fields, f)
		w.masked = w.masked || c.Mask != nil
	}
	w.fallible = b.fallible
	if t.Protected {
		filter, err := b.filter(t.Permissive, t.Restrictive)
		if err != nil {
			return nil, err
		}
		w.query.Where = filter
	}
	return w, canonical("", w.query)
}

// binder makes nodes of what the policy says about one table.
type binder struct {
	schema   *rewrite.Schema
	table    *rewrite.Table
	fallible bool
}

func rawColumn(name string) ast.ExprNode {
	return &ast.ColumnNameExpr{Name: &ast.ColumnName{Table: ast.NewCIStr(reserved), Name: ast.NewCIStr(name)}}
}

// field is a column of the wrapper: as it is, or masked.
func (b *binder) field(c rewrite.Column) (*ast.SelectField, error) {
	if c.Mask == nil {
		return &ast.SelectField{Expr: rawColumn(c.Name)}, nil
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
		return newCall("nullif", rawColumn(c.Name), rawColumn(c.Name)), nil
	case acl.MaskHash:
		binary := types.NewFieldType(mysql.TypeVarString)
		binary.SetCharset("binary")
		binary.SetCollate("binary")
		binary.AddFlag(mysql.BinaryFlag)
		// Bytes have no collation that could clash with the column's.
		key := &ast.FuncCastExpr{Expr: &ast.VariableExpr{Name: hashKey}, Tp: binary, FunctionType: ast.CastFunction}
		value := newCall("convert", rawColumn(c.Name), newLiteral("utf8mb4"))
		return newCall("sha2", newCall("concat", key, value), newLiteral(int64(256))), nil
	case acl.MaskPartial:
		return newCall("concat", newCall("left", rawColumn(c.Name), newLiteral(int64(1))), newLiteral("***")), nil
	case acl.MaskConstant:
		return newLiteral(c.Mask.Constant), nil
	case acl.MaskExpression:
		return b.condition(c.Mask.Expression)
	}
	return nil, fmt.Errorf("mysql: mask %q of %s is unknown", c.Mask.Kind, c.Ref)
}

// filter is (one of permissive) AND each of restrictive.
func (b *binder) filter(permissive, restrictive []rewrite.Condition) (ast.ExprNode, error) {
	if len(permissive) == 0 {
		return newLiteral(false), nil
	}
	fallible := b.fallible // a filter that fails tells nothing of the asker's making
	defer func() { b.fallible = fallible }()
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

// condition parses SQL of the policy, puts its values in place and binds its names.
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
	statements, err := parse(sql.String())
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
	if err := fill(s, places, c.Values); err != nil {
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
	root := &source{name: ref.Table, database: ref.Database, raw: ref, alias: reserved}
	r := resolver{schema: b.schema, policy: true}
	_, err = r.expression(slot, &scope{sources: []*source{root}})
	b.fallible = b.fallible || r.fallible
	return *slot, err
}

// fill replaces the placeholder at each place by a literal, or the only element of an IN list by several.
func fill(s *ast.SelectStmt, places []int, values []any) error {
	filled := 0
	w := walk{expr: func(slot *ast.ExprNode) error {
		switch n := (*slot).(type) {
		case *test_driver.ParamMarkerExpr:
			i := slices.Index(places, n.Offset)
			if i < 0 {
				return fmt.Errorf("a placeholder ? has no value")
			}
			filled++
			*slot = value(values[i])
		case *ast.PatternInExpr:
			if l, ok := onlyElement(n).(*list); ok {
				n.List = l.Values
			}
		}
		return nil
	}}
	if err := w.query(s); err != nil {
		return err
	}
	if filled != len(places) {
		return fmt.Errorf("an attribute stands in a string or comment, where it cannot become a value")
	}
	stray := walk{expr: func(slot *ast.ExprNode) error {
		if _, ok := (*slot).(*list); ok {
			return fmt.Errorf("an attribute that is a list must be all that an IN list holds")
		}
		return nil
	}}
	return stray.query(s)
}

func onlyElement(in *ast.PatternInExpr) ast.ExprNode {
	if in.Sel != nil || len(in.List) != 1 {
		return nil
	}
	return in.List[0]
}

// list is several literals in one place, until the IN list around it takes them.
type list struct{ *ast.RowExpr }

func value(v any) ast.ExprNode {
	l := &list{&ast.RowExpr{}}
	switch v := v.(type) {
	case []string:
		for _, x := range v {
			l.Values = append(l.Values, newLiteral(x))
		}
	case []int64:
		for _, x := range v {
			l.Values = append(l.Values, newLiteral(x))
		}
	default:
		return newLiteral(v)
	}
	return l
}
