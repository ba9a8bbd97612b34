package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
)

// manyRows reports whether the operand of e that is a subquery may have more than one row.
func manyRows(e ast.ExprNode) bool {
	switch e.(type) {
	case *ast.ExistsSubqueryExpr, *ast.PatternInExpr, *ast.CompareSubqueryExpr:
		return true
	}
	return false
}

// single reports whether a query surely has at most one row.
func single(n ast.ResultSetNode) bool {
	s, ok := n.(*ast.SelectStmt)
	if !ok {
		return false
	}
	if s.Limit != nil {
		v, ok := s.Limit.Count.(*test_driver.ValueExpr)
		return ok && v.GetUint64() <= 1
	}
	if s.GroupBy != nil {
		return false
	}
	if s.From == nil {
		return true
	}
	return slices.ContainsFunc(s.Fields.Fields, func(f *ast.SelectField) bool { return f.Expr != nil && holds[*ast.AggregateFuncExpr](f.Expr) })
}

// holds reports whether an expression holds one of a kind, subqueries apart.
func holds[kind ast.ExprNode](e ast.ExprNode) bool {
	if _, ok := e.(kind); ok {
		return true
	}
	found := false
	_ = operands(e, // what it refuses has been
		func(s *ast.ExprNode) error { found = found || holds[kind](*s); return nil },
		func(ast.Node) error { return nil },
		func(*ast.WindowSpec) error { return nil },
	)
	return found
}

// bound bounds the value of e by those of its operands, and notes whether e can fail.
func (r *resolver) bound(e ast.ExprNode, operands []number) number {
	fails := func() number {
		r.fallible = true
		return number{}
	}
	apply := func(f function, args []number) number {
		switch {
		case f.fails:
			return fails()
		case f.same:
			n := either(args...)
			if f.strict && !n.bounded() {
				return fails()
			}
			return n
		}
		return number{bits: f.bits}
	}
	switch n := e.(type) {
	case *test_driver.ValueExpr:
		return literalNumber(n)
	case *ast.ParenthesesExpr:
		return operands[0]
	case *ast.UnaryOperationExpr:
		switch n.Op {
		case opcode.Minus:
			if !operands[0].bounded() || operands[0].unsigned {
				return fails()
			}
			return operands[0]
		case opcode.Plus:
			return operands[0]
		case opcode.BitNeg:
			return number{}
		}
		return number{bits: 1}
	case *ast.BinaryOperationExpr:
		switch n.Op {
		case opcode.Plus, opcode.Minus, opcode.Mul, opcode.Div, opcode.Mod, opcode.IntDiv:
			out, f := arithmetic(n.Op, operands[0], operands[1])
			if f {
				return fails()
			}
			return out
		case opcode.And, opcode.Or, opcode.Xor, opcode.LeftShift, opcode.RightShift:
			return number{}
		}
		return number{bits: 1}
	case *ast.PatternRegexpExpr:
		return fails()
	case *ast.BetweenExpr, *ast.IsNullExpr, *ast.IsTruthExpr, *ast.PatternInExpr, *ast.PatternLikeOrIlikeExpr, *ast.ExistsSubqueryExpr,
		*ast.CompareSubqueryExpr:
		return number{bits: 1}
	case *ast.CaseExpr:
		var results []number
		if n.Value != nil {
			operands = operands[1:]
		}
		for i := range n.WhenClauses {
			results = append(results, operands[2*i+1])
		}
		if n.ElseClause != nil {
			results = append(results, operands[len(operands)-1])
		}
		return either(results...)
	case *ast.FuncCastExpr:
		return cast(n)
	case *ast.FuncCallExpr:
		f, known := functions[n.FnName.L]
		if !known {
			return fails()
		}
		args := operands
		switch n.FnName.L {
		case "if":
			args = operands[min(1, len(operands)):]
		case "nullif", "round", "truncate":
			args = operands[:min(1, len(operands))]
		}
		return apply(f, args)
	case *ast.AggregateFuncExpr:
		return r.aggregate(strings.ToLower(n.F), operands[:min(1, len(operands))], apply)
	case *ast.WindowFuncExpr:
		r.windows = true
		name := strings.ToLower(n.Name)
		if f, ok := windows[name]; ok {
			args := operands[:min(1, len(operands))]
			if (name == "lag" || name == "lead") && len(operands) > 2 {
				args = append(args, operands[2])
			}
			return apply(f, args)
		}
		return r.aggregate(name, operands[:min(1, len(operands))], apply)
	}
	return number{}
}

func (r *resolver) aggregate(name string, args []number, apply func(function, []number) number) number {
	n := apply(aggregates[name], args)
	switch name {
	case "sum":
		return n.summed()
	case "avg":
		return n.averaged()
	}
	return n
}
