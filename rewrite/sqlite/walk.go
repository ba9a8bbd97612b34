package sqlite

import (
	"slices"

	"github.com/sqlc-dev/meyer/ast"
)

// walk calls visit for a node and, where that returns true, for what is below it, in the order of the text.
func walk(n ast.Node, visit func(ast.Node) bool) {
	if visit(n) {
		children(n, func(c ast.Node) { walk(c, visit) })
	}
}

// children calls visit for each child of a node. It is ast.Node's Children without making a list.
func children(n ast.Node, visit func(ast.Node)) {
	switch n := n.(type) {
	case *ast.Ident, *ast.Literal, *ast.TypeName, *ast.JoinOperator, *ast.BindParam:
	case *ast.QualifiedRef:
		each(n.Parts, visit)
	case *ast.QualifiedName:
		if n.Schema != nil {
			visit(n.Schema)
		}
		visit(n.Name)
	case *ast.ParenExpr:
		visit(n.X)
	case *ast.UnaryExpr:
		visit(n.X)
	case *ast.BinaryExpr:
		visit(n.X)
		visit(n.Y)
	case *ast.FuncCall:
		visit(n.Name)
		each(n.Args, visit)
		each(n.OrderBy, visit)
		if n.Filter != nil {
			visit(n.Filter)
		}
		if n.Over != nil {
			visit(n.Over)
		}
	case *ast.SelectStmt:
		if n.With != nil {
			visit(n.With)
		}
		each(n.Cores, visit)
	case *ast.SelectQuery:
		each(n.Columns, visit)
		each(n.From, visit)
		if n.Where != nil {
			visit(n.Where)
		}
		each(n.GroupBy, visit)
		if n.Having != nil {
			visit(n.Having)
		}
		each(n.Windows, visit)
		each(n.OrderBy, visit)
		if n.Limit != nil {
			visit(n.Limit)
		}
	case *ast.ResultColumn:
		visit(n.Expr)
		if n.Alias != nil {
			visit(n.Alias)
		}
	case *ast.OrderingTerm:
		visit(n.Expr)
	case *ast.CollateExpr:
		visit(n.X)
		visit(n.Name)
	case *ast.LikeExpr:
		visit(n.Op)
		visit(n.X)
		visit(n.Y)
		if n.Escape != nil {
			visit(n.Escape)
		}
	case *ast.IsExpr:
		visit(n.X)
		visit(n.Y)
	case *ast.NullCheckExpr:
		visit(n.X)
	case *ast.BetweenExpr:
		visit(n.X)
		visit(n.Lo)
		visit(n.Hi)
	case *ast.InExpr:
		visit(n.X)
		if n.Select != nil {
			visit(n.Select)
		}
		if n.Table != nil {
			visit(n.Table)
		}
		each(n.List, visit)
		each(n.Args, visit)
	case *ast.CaseExpr:
		if n.Operand != nil {
			visit(n.Operand)
		}
		each(n.Whens, visit)
		if n.Else != nil {
			visit(n.Else)
		}
	case *ast.CaseWhen:
		visit(n.When)
		visit(n.Then)
	case *ast.CastExpr:
		visit(n.X)
		if n.Type != nil {
			visit(n.Type)
		}
	case *ast.ExistsExpr:
		visit(n.Select)
	case *ast.SubqueryExpr:
		visit(n.Select)
	case *ast.VectorExpr:
		each(n.List, visit)
	case *ast.With:
		each(n.CTEs, visit)
	case *ast.CTE:
		visit(n.Name)
		each(n.Columns, visit)
		visit(n.Select)
	case *ast.ValuesClause:
		for _, row := range n.Rows {
			each(row, visit)
		}
	case *ast.TableRef:
		if n.Join != nil {
			visit(n.Join)
		}
		if n.Name != nil {
			visit(n.Name)
		}
		each(n.Args, visit)
		if n.Select != nil {
			visit(n.Select)
		}
		each(n.List, visit)
		if n.Alias != nil {
			visit(n.Alias)
		}
		if n.IndexedBy != nil {
			visit(n.IndexedBy)
		}
		if n.On != nil {
			visit(n.On)
		}
		each(n.Using, visit)
	default:
		each(n.Children(), visit)
	}
}

func each[N ast.Node](list []N, visit func(ast.Node)) {
	for _, n := range list {
		visit(n)
	}
}

// equal reports whether two trees are the same but for places in a text: then they mean the same, whatever a printer
// made of them.
func equal(a, b ast.Node) bool {
	switch a := a.(type) {
	case *ast.Ident:
		b, ok := b.(*ast.Ident)
		return ok && sameIdent(a, b)
	case *ast.Literal:
		b, ok := b.(*ast.Literal)
		return ok && a.Kind == b.Kind && a.Value == b.Value && a.Raw == b.Raw
	case *ast.QualifiedName:
		b, ok := b.(*ast.QualifiedName)
		return ok && sameName(a, b)
	case *ast.QualifiedRef:
		b, ok := b.(*ast.QualifiedRef)
		return ok && slices.EqualFunc(a.Parts, b.Parts, sameIdent)
	case *ast.Star:
		b, ok := b.(*ast.Star)
		return ok && sameIdent(a.Table, b.Table)
	case *ast.BindParam:
		return false // none is left in a statement
	case *ast.ParenExpr:
		b, ok := b.(*ast.ParenExpr)
		return ok && equal(a.X, b.X)
	case *ast.UnaryExpr:
		b, ok := b.(*ast.UnaryExpr)
		return ok && a.Op == b.Op && equal(a.X, b.X)
	case *ast.BinaryExpr:
		b, ok := b.(*ast.BinaryExpr)
		return ok && a.Op == b.Op && equal(a.X, b.X) && equal(a.Y, b.Y)
	case *ast.CollateExpr:
		b, ok := b.(*ast.CollateExpr)
		return ok && sameIdent(a.Name, b.Name) && equal(a.X, b.X)
	case *ast.LikeExpr:
		b, ok := b.(*ast.LikeExpr)
		return ok && a.Not == b.Not && sameIdent(a.Op, b.Op) && equal(a.X, b.X) && equal(a.Y, b.Y) && sameExpr(a.Escape, b.Escape)
	case *ast.IsExpr:
		b, ok := b.(*ast.IsExpr)
		return ok && a.Not == b.Not && a.Distinct == b.Distinct && equal(a.X, b.X) && equal(a.Y, b.Y)
	case *ast.NullCheckExpr:
		b, ok := b.(*ast.NullCheckExpr)
		return ok && a.Test == b.Test && equal(a.X, b.X)
	case *ast.BetweenExpr:
		b, ok := b.(*ast.BetweenExpr)
		return ok && a.Not == b.Not && equal(a.X, b.X) && equal(a.Lo, b.Lo) && equal(a.Hi, b.Hi)
	case *ast.InExpr:
		b, ok := b.(*ast.InExpr)
		return ok && a.Not == b.Not && a.Parens == b.Parens && a.Table == nil && b.Table == nil && equal(a.X, b.X) &&
			sameExprs(a.List, b.List) && sameSelect(a.Select, b.Select)
	case *ast.CaseExpr:
		b, ok := b.(*ast.CaseExpr)
		return ok && sameExpr(a.Operand, b.Operand) && sameExpr(a.Else, b.Else) && slices.EqualFunc(a.Whens, b.Whens, func(a, b *ast.CaseWhen) bool {
			return equal(a.When, b.When) && equal(a.Then, b.Then)
		})
	case *ast.CastExpr:
		b, ok := b.(*ast.CastExpr)
		return ok && sameType(a.Type, b.Type) && equal(a.X, b.X)
	case *ast.VectorExpr:
		b, ok := b.(*ast.VectorExpr)
		return ok && sameExprs(a.List, b.List)
	case *ast.FuncCall:
		b, ok := b.(*ast.FuncCall)
		return ok && sameIdent(a.Name, b.Name) && a.Distinct == b.Distinct && a.All == b.All && a.Star == b.Star && sameExprs(a.Args, b.Args) &&
			sameOrder(a.OrderBy, b.OrderBy) && sameExpr(a.Filter, b.Filter) && sameWindow(a.Over, b.Over)
	case *ast.ExistsExpr:
		b, ok := b.(*ast.ExistsExpr)
		return ok && sameSelect(a.Select, b.Select)
	case *ast.SubqueryExpr:
		b, ok := b.(*ast.SubqueryExpr)
		return ok && sameSelect(a.Select, b.Select)
	case *ast.SelectQuery:
		b, ok := b.(*ast.SelectQuery)
		return ok && a.Distinct == b.Distinct && slices.EqualFunc(a.Columns, b.Columns, sameResult) && slices.EqualFunc(a.From, b.From, sameRef) &&
			sameExpr(a.Where, b.Where) && sameExprs(a.GroupBy, b.GroupBy) && sameExpr(a.Having, b.Having) &&
			slices.EqualFunc(a.Windows, b.Windows, sameWindow) && sameOrder(a.OrderBy, b.OrderBy) && sameLimit(a.Limit, b.Limit)
	case *ast.ValuesClause:
		b, ok := b.(*ast.ValuesClause)
		return ok && slices.EqualFunc(a.Rows, b.Rows, sameExprs)
	}
	return false
}

func sameIdent(a, b *ast.Ident) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Name == b.Name && a.Quote == b.Quote
}

func sameName(a, b *ast.QualifiedName) bool {
	return a == nil && b == nil || a != nil && b != nil && sameIdent(a.Schema, b.Schema) && sameIdent(a.Name, b.Name)
}

func sameType(a, b *ast.TypeName) bool { // CAST(x AS) has none
	return a == nil && b == nil || a != nil && b != nil && a.Name == b.Name && slices.Equal(a.Args, b.Args)
}

func sameExpr(a, b ast.Expr) bool {
	return a == nil && b == nil || a != nil && b != nil && equal(a, b)
}

func sameExprs(a, b []ast.Expr) bool { return slices.EqualFunc(a, b, sameExpr) }

func sameResult(a, b *ast.ResultColumn) bool {
	return a.HasAs == b.HasAs && sameIdent(a.Alias, b.Alias) && equal(a.Expr, b.Expr)
}

func sameOrder(a, b []*ast.OrderingTerm) bool {
	return slices.EqualFunc(a, b, func(a, b *ast.OrderingTerm) bool {
		return a.Order == b.Order && a.Nulls == b.Nulls && equal(a.Expr, b.Expr)
	})
}

func sameLimit(a, b *ast.Limit) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Comma == b.Comma && equal(a.Count, b.Count) && sameExpr(a.Offset, b.Offset)
}

func sameSelect(a, b *ast.SelectStmt) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameWith(a.With, b.With) && slices.EqualFunc(a.Ops, b.Ops, func(a, b ast.CompoundOp) bool { return a.Op == b.Op && a.All == b.All }) &&
		slices.EqualFunc(a.Cores, b.Cores, func(a, b ast.SelectCore) bool { return equal(a, b) })
}

func sameWith(a, b *ast.With) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Recursive == b.Recursive && slices.EqualFunc(a.CTEs, b.CTEs, func(a, b *ast.CTE) bool {
		return sameIdent(a.Name, b.Name) && slices.EqualFunc(a.Columns, b.Columns, sameIdent) && a.Materialized == b.Materialized && sameSelect(a.Select, b.Select)
	})
}

func sameRef(a, b *ast.TableRef) bool {
	if a.Join == nil || b.Join == nil {
		if a.Join != b.Join {
			return false
		}
	} else if a.Join.Type != b.Join.Type || !slices.Equal(a.Join.Words, b.Join.Words) {
		return false
	}
	return sameName(a.Name, b.Name) && a.HasArgs == b.HasArgs && sameExprs(a.Args, b.Args) && sameSelect(a.Select, b.Select) &&
		slices.EqualFunc(a.List, b.List, sameRef) && sameIdent(a.Alias, b.Alias) && a.HasAs == b.HasAs && sameIdent(a.IndexedBy, b.IndexedBy) &&
		a.NotIndexed == b.NotIndexed && sameExpr(a.On, b.On) && slices.EqualFunc(a.Using, b.Using, sameIdent)
}

func sameWindow(a, b *ast.WindowDef) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameIdent(a.Name, b.Name) && sameIdent(a.Base, b.Base) && a.NameOnly == b.NameOnly && sameExprs(a.Partition, b.Partition) &&
		sameOrder(a.OrderBy, b.OrderBy) && a.Frame == b.Frame && a.Exclude == b.Exclude && sameBound(a.StartBound, b.StartBound) && sameBound(a.EndBound, b.EndBound)
}

func sameBound(a, b *ast.FrameBound) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Type == b.Type && sameExpr(a.Expr, b.Expr)
}
