package postgres

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
)

// The printer leaves out parentheses that some operands need: `(a = b) IN (c, d)` comes out as another expression, or as
// none. Such an operand is printed by itself and put in parentheses where a name stood in for it. Nothing depends on
// this being complete: what does not read back as the tree that was printed is refused.

// printer writes one tree.
type printer struct {
	mark  string // that no name begins with
	parts []part
	depth int // of the tree, in messages
}

// part is an operand that is printed by itself.
type part struct {
	node    *pg.Node // where it stands
	operand *pg.Node
}

func (t *tree) text() (string, error) {
	p := printer{mark: "operand_"}
	for strings.Contains(strings.ToLower(t.sql), p.mark) {
		p.mark += "_"
	}
	p.cut(t.result, 1)
	defer p.restore()
	if p.depth > maxDepth { // wrappers may have made it deeper
		return "", tooDeep(fmt.Sprintf("the wrapped tree nests deeper than %d", maxDepth))
	}
	text, err := p.print(t.result)
	if err != nil || len(p.parts) == 0 && !checkPrinted {
		return text, err
	}
	if text, err = p.fill(text, t.result.Version); err != nil {
		return "", err
	}
	_, err = parseSQL(text)
	return text, err
}

// fill puts the operands where names stand in for them.
func (p *printer) fill(text string, version int32) (string, error) {
	names := regexp.MustCompile(p.mark + `(\d+)_`)
	written := make([]string, len(p.parts))
	places := 0
	replaced := func(text string) string {
		return names.ReplaceAllStringFunc(text, func(name string) string {
			places++
			i, err := strconv.Atoi(name[len(p.mark) : len(name)-1])
			if err != nil || i >= len(written) {
				return name // which reads back as nothing that was printed
			}
			return "(" + written[i] + ")"
		})
	}
	for i, part := range p.parts { // those inside a part come before it
		target := &pg.Node{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: part.operand}}}
		alone := selectNode(&pg.SelectStmt{
			TargetList: []*pg.Node{target}, LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE,
		})
		operand, err := p.print(&pg.ParseResult{Version: version, Stmts: []*pg.RawStmt{{Stmt: alone}}})
		if err != nil {
			return "", err
		}
		written[i] = replaced(strings.TrimPrefix(operand, "SELECT "))
	}
	text = replaced(text)
	if places != len(p.parts) {
		return "", fmt.Errorf("%d operands have %d places", len(p.parts), places)
	}
	return text, nil
}

func (p *printer) print(tree *pg.ParseResult) (string, error) {
	encoded, err := proto.Marshal(tree)
	if err != nil {
		return "", err
	}
	return deparseTree(encoded)
}

// restore puts the operands back.
func (p *printer) restore() {
	for _, part := range p.parts {
		part.node.Node = part.operand.Node
	}
}

// cut replaces the operands under m that need parentheses by names, innermost first.
func (p *printer) cut(m proto.Message, depth int) {
	p.depth = max(p.depth, depth)
	inside(m, func(child proto.Message) bool {
		p.cut(child, depth+1)
		return true
	})
	each := func(weak func(*pg.Node) bool, operands ...*pg.Node) {
		for _, n := range operands {
			if n != nil && weak(n) {
				n.Node, p.parts = columnNode(fmt.Sprintf("%s%d_", p.mark, len(p.parts))).Node, append(p.parts, part{n, &pg.Node{Node: n.Node}})
			}
		}
	}
	switch x := m.(type) {
	case *pg.A_Expr:
		switch x.Kind {
		case pg.A_Expr_Kind_AEXPR_OP:
			each(isQuantified, x.Lexpr, x.Rexpr)
			if x.Lexpr == nil {
				each(isSuffixed, x.Rexpr)
			}
		case pg.A_Expr_Kind_AEXPR_NULLIF:
		default:
			each(isCondition, x.Lexpr, x.Rexpr)
			if x.Kind >= pg.A_Expr_Kind_AEXPR_BETWEEN {
				each(func(n *pg.Node) bool { return isCondition(n) || isSuffixed(n) }, x.Rexpr.GetList().GetItems()...)
			}
			if name, _ := builtin(x.Rexpr.GetFuncCall().GetFuncname()); name == "like_escape" || name == "similar_to_escape" {
				each(isCondition, x.Rexpr.GetFuncCall().Args...)
			}
		}
	case *pg.SubLink:
		each(isCondition, x.Testexpr)
	case *pg.NullTest:
		each(isCondition, x.Arg)
	case *pg.BooleanTest:
		each(isCondition, x.Arg)
	case *pg.CollateClause:
		each(isOperation, x.Arg)
	case *pg.A_Indirection:
		each(needsParentheses, x.Arg)
	case *pg.FuncCall:
		if name, _ := builtin(x.Funcname); name == "timezone" && x.Funcformat == pg.CoercionForm_COERCE_SQL_SYNTAX {
			each(isOperation, x.Args...)
		}
	}
}

// isQuantified reports whether n compares with a subquery or an array.
func isQuantified(n *pg.Node) bool {
	return n.GetSubLink().GetTestexpr() != nil
}

// isSuffixed reports whether n ends in something that binds more weakly than a sign.
func isSuffixed(n *pg.Node) bool {
	name, _ := builtin(n.GetFuncCall().GetFuncname())
	return n.GetCollateClause() != nil || name == "timezone"
}

// isCondition reports whether n is a condition, which is no operand of another without parentheses.
func isCondition(n *pg.Node) bool {
	switch x := n.GetNode().(type) {
	case *pg.Node_BoolExpr, *pg.Node_NullTest, *pg.Node_BooleanTest:
		return true
	case *pg.Node_SubLink:
		return isQuantified(n)
	case *pg.Node_AExpr:
		if x.AExpr.Kind == pg.A_Expr_Kind_AEXPR_OP {
			return comparesNames(x.AExpr.Name)
		}
		return x.AExpr.Kind != pg.A_Expr_Kind_AEXPR_NULLIF
	}
	return false
}

// isOperation reports whether n is anything of operators.
func isOperation(n *pg.Node) bool {
	return isCondition(n) || isSuffixed(n) || n.GetAExpr().GetKind() == pg.A_Expr_Kind_AEXPR_OP
}

// needsParentheses reports whether n must stand in parentheses to be subscripted.
func needsParentheses(n *pg.Node) bool {
	switch n.GetNode().(type) {
	case *pg.Node_ColumnRef, *pg.Node_ParamRef, *pg.Node_AIndirection:
		return false
	case *pg.Node_SubLink:
		return isQuantified(n) || n.GetSubLink().SubLinkType == pg.SubLinkType_EXISTS_SUBLINK
	case *pg.Node_FuncCall, *pg.Node_RowExpr, *pg.Node_AArrayExpr, *pg.Node_TypeCast:
		return checkPrinted // the module's printer is an older one
	}
	return true
}
