package postgres

import (
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Nodes as the parser would make them, without positions.

func columnNode(parts ...string) *pg.Node {
	var fields []*pg.Node
	for _, p := range parts {
		fields = append(fields, pg.MakeStrNode(p))
	}
	return pg.MakeColumnRefNode(fields, 0)
}

func selectNode(q *pg.SelectStmt) *pg.Node {
	return &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: q}}
}

func constNode(c *pg.A_Const) *pg.Node { return &pg.Node{Node: &pg.Node_AConst{AConst: c}} }

// intNode is an integer literal; what does not fit 32 bits is a number to the parser.
func intNode(n int) *pg.Node {
	if n != int(int32(n)) {
		return floatNode(strconv.Itoa(n))
	}
	return constNode(&pg.A_Const{Val: &pg.A_Const_Ival{Ival: &pg.Integer{Ival: int32(n)}}})
}

func floatNode(text string) *pg.Node {
	return constNode(&pg.A_Const{Val: &pg.A_Const_Fval{Fval: &pg.Float{Fval: text}}})
}

func boolNode(b bool) *pg.Node {
	return constNode(&pg.A_Const{Val: &pg.A_Const_Boolval{Boolval: &pg.Boolean{Boolval: b}}})
}

func nullNode() *pg.Node { return constNode(&pg.A_Const{Isnull: true}) }

// callNode calls one of the server's own functions, whatever else bears its name. NULLIF is no function.
func callNode(name string, args ...*pg.Node) *pg.Node {
	if name == "nullif" {
		return pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_NULLIF, []*pg.Node{pg.MakeStrNode("=")}, args[0], args[1], 0)
	}
	return &pg.Node{Node: &pg.Node_FuncCall{FuncCall: &pg.FuncCall{
		Funcname: []*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode(name)}, Args: args, Funcformat: pg.CoercionForm_COERCE_EXPLICIT_CALL,
	}}}
}

// textNode casts to text.
func textNode(n *pg.Node) *pg.Node {
	return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{
		Arg: n, TypeName: &pg.TypeName{Names: []*pg.Node{pg.MakeStrNode("text")}, Typemod: -1},
	}}}
}
