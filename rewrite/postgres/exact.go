package postgres

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// Sums and products of numbers with fixed digits are what reports are made of. Integers overflow; numbers of a declared
// precision do not, so that arithmetic on them needs no barrier.

// maxDigits bounds the digits of what is computed, far below the server's 131,072.
const maxDigits = 1000

// exact is a number that an expression is known to be.
type exact struct {
	digits  int  // at most
	decimal bool // a numeric, not an integer
}

// exact reports whether an expression is a number that is computed without a chance of failure, whatever rows it meets.
func (b barrier) exact(n *pg.Node) (exact, bool) {
	switch x := n.GetNode().(type) {
	case *pg.Node_AConst:
		return exactLiteral(x.AConst)
	case *pg.Node_ColumnRef:
		return exactType(b.typeOf(x.ColumnRef))
	case *pg.Node_AExpr:
		return b.exactOperation(x.AExpr)
	case *pg.Node_FuncCall:
		f := x.FuncCall
		name, _ := builtin(f.Funcname)
		if len(f.Args) != 1 || name != "sum" && name != "avg" || f.Over != nil || f.AggFilter != nil || len(f.AggOrder) > 0 {
			return exact{}, false
		}
		arg, ok := b.exact(f.Args[0])
		return exact{arg.digits + 20, arg.decimal}, ok && arg.decimal
	}
	return exact{}, false
}

func exactLiteral(c *pg.A_Const) (exact, bool) {
	switch v := c.GetVal().(type) {
	case *pg.A_Const_Ival:
		return exact{10, false}, true
	case *pg.A_Const_Fval:
		whole, part, point := strings.Cut(v.Fval.GetFval(), ".")
		plain := !strings.ContainsFunc(whole+part, func(c rune) bool { return c < '0' || c > '9' })
		return exact{len(whole) + len(part), true}, point && plain && len(whole)+len(part) < 100
	}
	return exact{}, false
}

// exactType reads the name of a type: numeric(p,s), or an integer.
func exactType(name string) (exact, bool) {
	switch name {
	case "smallint", "integer", "bigint":
		return exact{19, false}, true
	}
	mods, ok := strings.CutPrefix(name, "numeric(")
	if !ok {
		return exact{}, false
	}
	precision, _, _ := strings.Cut(strings.TrimSuffix(mods, ")"), ",")
	digits, err := strconv.Atoi(precision)
	return exact{digits, true}, err == nil && digits <= maxDigits/4
}

func (b barrier) exactOperation(e *pg.A_Expr) (exact, bool) {
	op, ok := builtin(e.Name)
	if !ok || e.Kind != pg.A_Expr_Kind_AEXPR_OP || e.Lexpr == nil {
		return exact{}, false
	}
	left, isLeft := b.exact(e.Lexpr)
	right, isRight := b.exact(e.Rexpr)
	if !isLeft || !isRight {
		return exact{}, false
	}
	if !left.decimal && !right.decimal {
		// Integers among themselves are computed as integers: nothing comes out larger only of what a positive number
		// divides.
		return left, (op == "/" || op == "%") && e.Rexpr.GetAConst().GetIval().GetIval() > 0
	}
	out := exact{decimal: true}
	switch op {
	case "+", "-":
		out.digits = max(left.digits, right.digits) + 1
	case "*":
		out.digits = left.digits + right.digits
	case "/":
		if !isNonzero(e.Rexpr) {
			return exact{}, false
		}
		out.digits = left.digits + right.digits + 20
	default:
		return exact{}, false
	}
	return out, out.digits <= maxDigits
}

// isNonzero reports whether n is a number literal other than zero.
func isNonzero(n *pg.Node) bool {
	switch v := n.GetAConst().GetVal().(type) {
	case *pg.A_Const_Ival:
		return v.Ival.GetIval() != 0
	case *pg.A_Const_Fval:
		return strings.ContainsAny(v.Fval.GetFval(), "123456789")
	}
	return false
}

// typeOf returns the type of the table's column that a reference passes on as it is, "" if that is not known.
func (b barrier) typeOf(ref *pg.ColumnRef) string {
	if b.r == nil {
		return ""
	}
	made := b.r.bound[ref]
	if made == nil || made.ref == nil {
		return ""
	}
	return columnType(b.schema, *made.ref)
}

func columnType(s *rewrite.Schema, ref catalog.Ref) string {
	t, ok, err := s.Table(ref.TableRef())
	if err != nil || !ok {
		return ""
	}
	i := slices.IndexFunc(t.Columns, func(c rewrite.Column) bool { return c.Ref == ref })
	if i < 0 || t.Columns[i].Mask != nil {
		return ""
	}
	return t.Columns[i].Type
}

// isText reports whether an expression is text that is computed without a chance of failure.
func (b barrier) isText(n *pg.Node) bool {
	switch x := n.GetNode().(type) {
	case *pg.Node_AConst:
		_, ok := x.AConst.Val.(*pg.A_Const_Sval)
		return ok
	case *pg.Node_ColumnRef:
		t := b.typeOf(x.ColumnRef)
		return t == "text" || strings.HasPrefix(t, "character") && !strings.HasSuffix(t, "[]")
	case *pg.Node_TypeCast:
		list, _ := names(x.TypeCast.TypeName.GetNames())
		return len(list) > 0 && list[len(list)-1] == "text" && !b.cast(x.TypeCast)
	case *pg.Node_FuncCall:
		name, _ := builtin(x.FuncCall.Funcname)
		return (name == "lower" || name == "upper") && !b.call(x.FuncCall)
	case *pg.Node_AExpr:
		return b.isConcatenation(x.AExpr)
	}
	return false
}

// isConcatenation reports whether an expression joins texts. Arrays that are joined may not fit.
func (b barrier) isConcatenation(e *pg.A_Expr) bool {
	op, ok := builtin(e.Name)
	return ok && op == "||" && e.Kind == pg.A_Expr_Kind_AEXPR_OP && e.Lexpr != nil && b.isText(e.Lexpr) && b.isText(e.Rexpr)
}

// widens reports whether a cast turns a column into a type that has all of its values.
func (b barrier) widens(c *pg.TypeCast) bool {
	to, ok := builtin(c.TypeName.GetNames())
	if !ok || len(c.TypeName.Typmods) > 0 || c.Arg.GetColumnRef() == nil {
		return false
	}
	switch from := b.typeOf(c.Arg.GetColumnRef()); from {
	case "smallint", "integer":
		return to == "int4" || to == "int8" || to == "numeric" || to == "float8"
	case "bigint":
		return to == "int8" || to == "numeric" || to == "float8"
	case "date":
		return to == "date"
	default:
		return strings.HasPrefix(from, "timestamp") && to == "date"
	}
}

// dateParts are the parts that every date and timestamp has.
var dateParts = words("year quarter month week day doy dow isodow isoyear decade century")

// isDatePart reports whether a call takes such a part of a date.
func (b barrier) isDatePart(f *pg.FuncCall, name string) bool {
	if name != "extract" && name != "date_part" || len(f.Args) != 2 || f.Args[1].GetColumnRef() == nil {
		return false
	}
	part, ok := f.Args[0].GetAConst().GetVal().(*pg.A_Const_Sval)
	if !ok || !dateParts[part.Sval.GetSval()] {
		return false
	}
	t := b.typeOf(f.Args[1].GetColumnRef())
	return t == "date" || strings.HasPrefix(t, "timestamp")
}
