package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
)

// canonical brings a statement into the one form in which the printer writes it faithfully: the printer adds no
// parentheses of its own, and engines differ in how tightly some operators bind. It is its own fixed point.
func canonical(sql string, query ast.Node) error {
	c := canon{sql: sql}
	w := walk{expr: c.expression, join: join, block: block}
	return w.query(query)
}

func block(n *ast.SelectStmt) error {
	// Optimizer hints are comments that change no row; in MySQL they could change the session's variables.
	n.TableHints = nil
	return nil
}

// join flattens joins of one table, which the parser makes of parentheses and commas.
func join(n *ast.Join) error {
	for n.Right == nil {
		l, ok := n.Left.(*ast.Join)
		if !ok {
			break
		}
		*n = *l
	}
	alone := func(s ast.ResultSetNode) ast.ResultSetNode {
		for {
			j, ok := s.(*ast.Join)
			if !ok || j.Right != nil {
				return s
			}
			s = j.Left
		}
	}
	n.Left = alone(n.Left)
	if n.Right != nil {
		n.Right = alone(n.Right)
	}
	return nil
}

// turned reports whether a join in a text may be one that the parser made of a parenthesised RIGHT JOIN behind a join without a
// condition: a LEFT JOIN of another shape, in which * lists its columns in another order, and which other names could
// merge.
func turned(sql string, n *ast.Join) bool {
	l, ok := n.Left.(*ast.Join)
	return ok && n.ExplicitParens && n.Tp == ast.LeftJoin && !l.ExplicitParens && l.Tp == ast.CrossJoin && l.On == nil && len(l.Using) == 0 &&
		mentions(sql, "right")
}

type canon struct{ sql string }

// How tightly an expression holds together. Where two engines could disagree it is loose, and gets parentheses
// wherever it is an operand.
type tightness int

const (
	loose tightness = iota
	disjunction
	conjunction
	comparison
	_
	sum
	product
	_
	signed
	atom
)

func tight(e ast.ExprNode) tightness {
	switch n := e.(type) {
	case *ast.BinaryOperationExpr:
		switch n.Op {
		case opcode.LogicOr:
			return disjunction
		case opcode.LogicAnd:
			return conjunction
		case opcode.EQ, opcode.NE, opcode.LT, opcode.LE, opcode.GT, opcode.GE, opcode.NullEQ:
			return comparison
		case opcode.Plus, opcode.Minus:
			return sum
		case opcode.Mul, opcode.Div, opcode.Mod, opcode.IntDiv:
			return product
		}
		return loose
	case *ast.BetweenExpr, *ast.IsNullExpr, *ast.IsTruthExpr, *ast.PatternLikeOrIlikeExpr, *ast.PatternRegexpExpr, *ast.PatternInExpr,
		*ast.CompareSubqueryExpr, *ast.ExistsSubqueryExpr:
		return comparison
	case *ast.UnaryOperationExpr:
		if _, number := n.V.(*test_driver.ValueExpr); number && n.Op == opcode.Minus {
			return signed
		}
		return loose
	case *ast.SetCollationExpr:
		return loose
	case *ast.FuncCastExpr:
		if n.FunctionType == ast.CastBinaryOperator {
			return loose
		}
	case *ast.VariableExpr:
		if n.Value != nil {
			return loose
		}
	}
	return atom
}

// enclose puts parentheses around an operand that is looser than its place needs.
func enclose(need tightness, slots ...*ast.ExprNode) {
	for _, s := range slots {
		if *s != nil && tight(*s) < need {
			*s = &ast.ParenthesesExpr{Expr: *s}
		}
	}
}

func (c canon) expression(slot *ast.ExprNode) error {
	switch n := (*slot).(type) {
	case *ast.ParenthesesExpr:
		if tight(n.Expr) == atom {
			*slot = n.Expr
		}
	case *test_driver.ValueExpr:
		*slot = c.literal(n)
	case *ast.BinaryOperationExpr:
		switch t := tight(n); t {
		case disjunction, conjunction, product:
			enclose(t, &n.L)
			enclose(t+1, &n.R)
		case sum:
			enclose(sum, &n.L)
			enclose(product, &n.R)
		case comparison:
			enclose(sum, &n.L, &n.R)
		default:
			enclose(atom, &n.L, &n.R)
		}
	case *ast.BetweenExpr:
		enclose(sum, &n.Expr, &n.Left, &n.Right)
	case *ast.PatternInExpr:
		enclose(sum, &n.Expr)
	case *ast.IsNullExpr:
		enclose(sum, &n.Expr)
	case *ast.IsTruthExpr:
		enclose(sum, &n.Expr)
	case *ast.PatternLikeOrIlikeExpr:
		enclose(atom, &n.Expr, &n.Pattern)
	case *ast.PatternRegexpExpr:
		enclose(atom, &n.Expr, &n.Pattern)
	case *ast.CompareSubqueryExpr:
		enclose(atom, &n.L)
	case *ast.UnaryOperationExpr:
		enclose(atom, &n.V)
	case *ast.SetCollationExpr:
		enclose(atom, &n.Expr)
	case *ast.FuncCastExpr:
		if n.FunctionType == ast.CastBinaryOperator {
			enclose(atom, &n.Expr)
		}
	case *ast.FuncCallExpr:
		call(n)
	}
	return nil
}

// call undoes the parser's own names of functions, and has every name printed without quotes, as engines want it
// of those that are keywords.
func call(n *ast.FuncCallExpr) {
	if n.Schema.O != "" {
		return // refused later
	}
	n.Tp = ast.FuncCallExprTypeKeyword
	switch n.FnName.L {
	case ast.CharFunc:
		// The last argument is the character set, NULL for none.
		if last, ok := n.Args[len(n.Args)-1].(*test_driver.ValueExpr); ok && last.Kind() == test_driver.KindNull {
			n.FnName, n.Args = ast.NewCIStr("char"), n.Args[:len(n.Args)-1]
		}
	case ast.InsertFunc:
		n.FnName = ast.NewCIStr("insert")
	case ast.Position:
		enclose(atom, &n.Args[0])
	}
}

// literal keeps the spelling of hexadecimal literals: MariaDB reads 0x41 as a number where it fits, x'41' never.
func (c canon) literal(n *test_driver.ValueExpr) ast.ExprNode {
	at := n.OriginTextPosition()
	if n.Kind() == test_driver.KindBinaryLiteral && at+1 < len(c.sql) && c.sql[at] == '0' && c.sql[at+1] == 'x' {
		return &hexLiteral{n}
	}
	return n
}

// hexLiteral is a literal written 0x41.
type hexLiteral struct{ *test_driver.ValueExpr }

// Restore prints the literal.
func (n *hexLiteral) Restore(ctx *format.RestoreCtx) error {
	ctx.WritePlainf("0x%x", n.GetBytes())
	return nil
}
