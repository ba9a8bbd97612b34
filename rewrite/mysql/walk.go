package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
)

// walk visits a whole statement. It knows each kind of node that a statement may hold, and each place where one can
// stand: the parser's own visitor leaves some out. Anything else is a refusal.
type walk struct {
	block func(*ast.SelectStmt) error // a query block, before its parts
	join  func(*ast.Join) error       // before its parts
	// source is an element of a FROM clause, before its parts.
	source func(*ast.TableSource) error
	expr   func(*ast.ExprNode) error // the place of an expression, after its operands
	// skipWrappers leaves out derived tables that look like wrappers.
	skipWrappers bool
	depth        int
}

func (w *walk) query(n ast.Node) error {
	if w.depth++; w.depth > maxDepth {
		return tooDeep()
	}
	defer func() { w.depth-- }()
	switch n := n.(type) {
	case *ast.SelectStmt:
		return w.selection(n)
	case *ast.SetOprStmt:
		if err := w.with(n.With); err != nil {
			return err
		}
		if err := w.query(n.SelectList); err != nil {
			return err
		}
		return w.tail(n.OrderBy, n.Limit)
	case *ast.SetOprSelectList:
		if err := w.with(n.With); err != nil {
			return err
		}
		for _, s := range n.Selects {
			if err := w.query(s); err != nil {
				return err
			}
		}
		return w.tail(n.OrderBy, n.Limit)
	}
	return notSupported("the statement holds a construct that is not supported", n)
}

func (w *walk) selection(n *ast.SelectStmt) error {
	if w.block != nil {
		if err := w.block(n); err != nil {
			return err
		}
	}
	if n.Kind != ast.SelectStmtKindSelect {
		return notSupported("VALUES and TABLE statements are not supported", n)
	}
	if err := w.with(n.With); err != nil {
		return err
	}
	for _, f := range n.Fields.Fields {
		if f.WildCard == nil {
			if err := w.expression(&f.Expr); err != nil {
				return err
			}
		}
	}
	if n.From != nil {
		if err := w.relation(n.From.TableRefs); err != nil {
			return err
		}
	}
	if err := w.optional(&n.Where); err != nil {
		return err
	}
	if n.GroupBy != nil {
		if err := w.items(n.GroupBy.Items); err != nil {
			return err
		}
	}
	if n.Having != nil {
		if err := w.expression(&n.Having.Expr); err != nil {
			return err
		}
	}
	for i := range n.WindowSpecs {
		if err := w.window(&n.WindowSpecs[i]); err != nil {
			return err
		}
	}
	return w.tail(n.OrderBy, n.Limit)
}

func (w *walk) with(n *ast.WithClause) error {
	if n == nil {
		return nil
	}
	for _, c := range n.CTEs {
		if err := w.query(c.Query.Query); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) tail(order *ast.OrderByClause, limit *ast.Limit) error {
	if order != nil {
		if err := w.items(order.Items); err != nil {
			return err
		}
	}
	if limit == nil {
		return nil
	}
	if err := w.optional(&limit.Count); err != nil {
		return err
	}
	return w.optional(&limit.Offset)
}

func (w *walk) relation(n ast.ResultSetNode) error {
	if w.depth++; w.depth > maxDepth {
		return tooDeep()
	}
	defer func() { w.depth-- }()
	switch n := n.(type) {
	case *ast.Join:
		if w.join != nil {
			if err := w.join(n); err != nil {
				return err
			}
		}
		if err := w.relation(n.Left); err != nil {
			return err
		}
		if n.Right != nil {
			if err := w.relation(n.Right); err != nil {
				return err
			}
		}
		if n.On != nil {
			return w.expression(&n.On.Expr)
		}
		return nil
	case *ast.TableSource:
		if w.source != nil {
			if err := w.source(n); err != nil {
				return err
			}
		}
		switch s := n.Source.(type) {
		case *jsonTable:
			return w.expression(&s.document)
		case *ast.TableName:
			if s.TableSample != nil || s.AsOf != nil {
				return notSupported("TABLESAMPLE and AS OF are not supported", s)
			}
			return nil
		case *ast.SelectStmt, *ast.SetOprStmt:
			if w.skipWrappers && wrapperOf(s) != nil {
				return nil
			}
			return w.query(s)
		}
	}
	return notSupported("the FROM clause holds a construct that is not supported", n)
}

func (w *walk) items(items []*ast.ByItem) error {
	for _, i := range items {
		if err := w.expression(&i.Expr); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) window(n *ast.WindowSpec) error {
	if n.PartitionBy != nil {
		if err := w.items(n.PartitionBy.Items); err != nil {
			return err
		}
	}
	if n.OrderBy != nil {
		if err := w.items(n.OrderBy.Items); err != nil {
			return err
		}
	}
	if n.Frame == nil {
		return nil
	}
	if n.Frame.Type != ast.Rows && n.Frame.Type != ast.Ranges {
		return notSupported("window frames in GROUPS are not supported", n.Frame)
	}
	if err := w.optional(&n.Frame.Extent.Start.Expr); err != nil {
		return err
	}
	return w.optional(&n.Frame.Extent.End.Expr)
}

func (w *walk) optional(slot *ast.ExprNode) error {
	if *slot == nil {
		return nil
	}
	return w.expression(slot)
}

func (w *walk) expression(slot *ast.ExprNode) error {
	if w.depth++; w.depth > maxDepth {
		return tooDeep()
	}
	defer func() { w.depth-- }()
	if err := operands(*slot, w.expression, w.query, w.window); err != nil {
		return err
	}
	if w.expr == nil {
		return nil
	}
	return w.expr(slot)
}

// operands visits the direct parts of an expression: the places of its operands, its subquery, its window.
func operands(e ast.ExprNode, expr func(*ast.ExprNode) error, query func(ast.Node) error, window func(*ast.WindowSpec) error) error {
	all := func(slots ...*ast.ExprNode) error {
		for _, s := range slots {
			if *s != nil {
				if err := expr(s); err != nil {
					return err
				}
			}
		}
		return nil
	}
	each := func(es []ast.ExprNode) error {
		for i := range es {
			if err := expr(&es[i]); err != nil {
				return err
			}
		}
		return nil
	}
	switch n := e.(type) {
	case *test_driver.ValueExpr, *test_driver.ParamMarkerExpr, *hexLiteral, *hole, *ast.ColumnNameExpr, *ast.PositionExpr,
		*ast.TimeUnitExpr, *ast.TrimDirectionExpr:
		return nil
	case *ast.VariableExpr:
		return all(&n.Value)
	case *ast.ParenthesesExpr:
		return expr(&n.Expr)
	case *ast.UnaryOperationExpr:
		return expr(&n.V)
	case *ast.BinaryOperationExpr:
		return all(&n.L, &n.R)
	case *ast.BetweenExpr:
		return all(&n.Expr, &n.Left, &n.Right)
	case *ast.IsNullExpr:
		return expr(&n.Expr)
	case *ast.IsTruthExpr:
		return expr(&n.Expr)
	case *ast.PatternLikeOrIlikeExpr:
		if !n.IsLike {
			return notSupported("ILIKE is not supported", n)
		}
		return all(&n.Expr, &n.Pattern)
	case *ast.PatternRegexpExpr:
		return all(&n.Expr, &n.Pattern)
	case *ast.PatternInExpr:
		if err := expr(&n.Expr); err != nil {
			return err
		}
		if n.Sel != nil {
			return expr(&n.Sel)
		}
		return each(n.List)
	case *ast.RowExpr:
		return each(n.Values)
	case *ast.CaseExpr:
		if err := all(&n.Value); err != nil {
			return err
		}
		for _, c := range n.WhenClauses {
			if err := all(&c.Expr, &c.Result); err != nil {
				return err
			}
		}
		return all(&n.ElseClause)
	case *ast.SubqueryExpr:
		return query(n.Query)
	case *ast.ExistsSubqueryExpr:
		return expr(&n.Sel)
	case *ast.CompareSubqueryExpr:
		return all(&n.L, &n.R)
	case *ast.SetCollationExpr:
		return expr(&n.Expr)
	case *ast.FuncCallExpr:
		return each(n.Args)
	case *ast.FuncCastExpr:
		return expr(&n.Expr)
	case *ast.AggregateFuncExpr:
		if err := each(n.Args); err != nil || n.Order == nil {
			return err
		}
		for _, i := range n.Order.Items {
			if err := expr(&i.Expr); err != nil {
				return err
			}
		}
		return nil
	case *ast.WindowFuncExpr:
		if err := each(n.Args); err != nil {
			return err
		}
		return window(&n.Spec)
	}
	return notSupported("the statement holds an expression that is not supported", e)
}
