package postgres

import (
	"encoding/binary"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
)

// The kinds of nodes that statements are made of, field by field. The parser's trees could be walked by reflection, as
// kinds that are not here are, at several times the cost of parsing.

// content returns the message in a node, nil if there is none.
func content(n *pg.Node) proto.Message {
	switch x := n.GetNode().(type) {
	case nil:
		return nil
	case *pg.Node_SelectStmt:
		return x.SelectStmt
	case *pg.Node_CommonTableExpr:
		return x.CommonTableExpr
	case *pg.Node_ResTarget:
		return x.ResTarget
	case *pg.Node_SortBy:
		return x.SortBy
	case *pg.Node_GroupingSet:
		return x.GroupingSet
	case *pg.Node_WindowDef:
		return x.WindowDef
	case *pg.Node_RangeVar:
		return x.RangeVar
	case *pg.Node_RangeSubselect:
		return x.RangeSubselect
	case *pg.Node_RangeFunction:
		return x.RangeFunction
	case *pg.Node_RangeTableSample:
		return x.RangeTableSample
	case *pg.Node_JoinExpr:
		return x.JoinExpr
	case *pg.Node_Alias:
		return x.Alias
	case *pg.Node_ColumnRef:
		return x.ColumnRef
	case *pg.Node_AStar:
		return x.AStar
	case *pg.Node_AExpr:
		return x.AExpr
	case *pg.Node_BoolExpr:
		return x.BoolExpr
	case *pg.Node_NullTest:
		return x.NullTest
	case *pg.Node_BooleanTest:
		return x.BooleanTest
	case *pg.Node_CaseExpr:
		return x.CaseExpr
	case *pg.Node_CaseWhen:
		return x.CaseWhen
	case *pg.Node_CoalesceExpr:
		return x.CoalesceExpr
	case *pg.Node_MinMaxExpr:
		return x.MinMaxExpr
	case *pg.Node_FuncCall:
		return x.FuncCall
	case *pg.Node_NamedArgExpr:
		return x.NamedArgExpr
	case *pg.Node_SqlvalueFunction:
		return x.SqlvalueFunction
	case *pg.Node_SubLink:
		return x.SubLink
	case *pg.Node_TypeCast:
		return x.TypeCast
	case *pg.Node_TypeName:
		return x.TypeName
	case *pg.Node_CollateClause:
		return x.CollateClause
	case *pg.Node_AArrayExpr:
		return x.AArrayExpr
	case *pg.Node_AIndirection:
		return x.AIndirection
	case *pg.Node_AIndices:
		return x.AIndices
	case *pg.Node_RowExpr:
		return x.RowExpr
	case *pg.Node_GroupingFunc:
		return x.GroupingFunc
	case *pg.Node_List:
		return x.List
	case *pg.Node_String_:
		return x.String_
	case *pg.Node_Integer:
		return x.Integer
	case *pg.Node_Float:
		return x.Float
	case *pg.Node_Boolean:
		return x.Boolean
	case *pg.Node_BitString:
		return x.BitString
	case *pg.Node_AConst:
		return x.AConst
	}
	var c proto.Message
	insideByReflection(n, func(m proto.Message) bool { c = m; return true })
	return c
}

// inside calls visit with each message directly inside m, in the order of the fields, and stops when it returns false.
func inside(m proto.Message, visit func(proto.Message) bool) bool {
	one := func(n *pg.Node) bool { return n == nil || visit(n) }
	all := func(lists ...[]*pg.Node) bool {
		for _, list := range lists {
			for _, n := range list {
				if !visit(n) {
					return false
				}
			}
		}
		return true
	}
	switch x := m.(type) {
	case *pg.Node:
		c := content(x)
		return c == nil || visit(c)
	case *pg.A_Star, *pg.String, *pg.Integer, *pg.Float, *pg.Boolean, *pg.BitString:
		return true
	case *pg.SelectStmt:
		return all(x.DistinctClause) && (x.IntoClause == nil || visit(x.IntoClause)) && all(x.TargetList, x.FromClause) && one(x.WhereClause) && all(x.GroupClause) && one(x.HavingClause) && all(x.WindowClause, x.ValuesLists, x.SortClause) && one(x.LimitOffset) && one(x.LimitCount) && all(x.LockingClause) && (x.WithClause == nil || visit(x.WithClause)) && (x.Larg == nil || visit(x.Larg)) && (x.Rarg == nil || visit(x.Rarg))
	case *pg.WithClause:
		return all(x.Ctes)
	case *pg.CommonTableExpr:
		return all(x.Aliascolnames) && one(x.Ctequery) && (x.SearchClause == nil || visit(x.SearchClause)) && (x.CycleClause == nil || visit(x.CycleClause)) && all(x.Ctecolnames, x.Ctecoltypes, x.Ctecoltypmods, x.Ctecolcollations)
	case *pg.CTESearchClause:
		return all(x.SearchColList)
	case *pg.CTECycleClause:
		return all(x.CycleColList) && one(x.CycleMarkValue) && one(x.CycleMarkDefault)
	case *pg.ResTarget:
		return all(x.Indirection) && one(x.Val)
	case *pg.SortBy:
		return one(x.Node) && all(x.UseOp)
	case *pg.GroupingSet:
		return all(x.Content)
	case *pg.WindowDef:
		return all(x.PartitionClause, x.OrderClause) && one(x.StartOffset) && one(x.EndOffset)
	case *pg.RangeVar:
		return (x.Alias == nil || visit(x.Alias))
	case *pg.RangeSubselect:
		return one(x.Subquery) && (x.Alias == nil || visit(x.Alias))
	case *pg.RangeFunction:
		return all(x.Functions) && (x.Alias == nil || visit(x.Alias)) && all(x.Coldeflist)
	case *pg.RangeTableSample:
		return one(x.Relation) && all(x.Method, x.Args) && one(x.Repeatable)
	case *pg.JoinExpr:
		return one(x.Larg) && one(x.Rarg) && all(x.UsingClause) && (x.JoinUsingAlias == nil || visit(x.JoinUsingAlias)) && one(x.Quals) && (x.Alias == nil || visit(x.Alias))
	case *pg.Alias:
		return all(x.Colnames)
	case *pg.ColumnRef:
		return all(x.Fields)
	case *pg.A_Expr:
		return all(x.Name) && one(x.Lexpr) && one(x.Rexpr)
	case *pg.BoolExpr:
		return one(x.Xpr) && all(x.Args)
	case *pg.NullTest:
		return one(x.Xpr) && one(x.Arg)
	case *pg.BooleanTest:
		return one(x.Xpr) && one(x.Arg)
	case *pg.CaseExpr:
		return one(x.Xpr) && one(x.Arg) && all(x.Args) && one(x.Defresult)
	case *pg.CaseWhen:
		return one(x.Xpr) && one(x.Expr) && one(x.Result)
	case *pg.CoalesceExpr:
		return one(x.Xpr) && all(x.Args)
	case *pg.MinMaxExpr:
		return one(x.Xpr) && all(x.Args)
	case *pg.FuncCall:
		return all(x.Funcname, x.Args, x.AggOrder) && one(x.AggFilter) && (x.Over == nil || visit(x.Over))
	case *pg.NamedArgExpr:
		return one(x.Xpr) && one(x.Arg)
	case *pg.SQLValueFunction:
		return one(x.Xpr)
	case *pg.SubLink:
		return one(x.Xpr) && one(x.Testexpr) && all(x.OperName) && one(x.Subselect)
	case *pg.TypeCast:
		return one(x.Arg) && (x.TypeName == nil || visit(x.TypeName))
	case *pg.TypeName:
		return all(x.Names, x.Typmods, x.ArrayBounds)
	case *pg.CollateClause:
		return one(x.Arg) && all(x.Collname)
	case *pg.A_ArrayExpr:
		return all(x.Elements)
	case *pg.A_Indirection:
		return one(x.Arg) && all(x.Indirection)
	case *pg.A_Indices:
		return one(x.Lidx) && one(x.Uidx)
	case *pg.RowExpr:
		return one(x.Xpr) && all(x.Args, x.Colnames)
	case *pg.GroupingFunc:
		return one(x.Xpr) && all(x.Args, x.Refs)
	case *pg.List:
		return all(x.Items)
	case *pg.A_Const:
		switch v := x.Val.(type) {
		case nil:
			return true
		case *pg.A_Const_Ival:
			return visit(v.Ival)
		case *pg.A_Const_Fval:
			return visit(v.Fval)
		case *pg.A_Const_Boolval:
			return visit(v.Boolval)
		case *pg.A_Const_Sval:
			return visit(v.Sval)
		case *pg.A_Const_Bsval:
			return visit(v.Bsval)
		}
	}
	return insideByReflection(m, visit)
}

// spelling writes a tree without its positions, so that two trees mean the same to PostgreSQL if and only if they are
// spelled alike.
type spelling []byte

func spell(m proto.Message) spelling {
	var b spelling
	b.message(m)
	return b
}

func (b *spelling) number(n int64) { *b = binary.AppendVarint(*b, n) }

func (b *spelling) truth(t bool) {
	if t {
		*b = append(*b, 1)
	} else {
		*b = append(*b, 0)
	}
}

func (b *spelling) text(s string) {
	b.number(int64(len(s)))
	*b = append(*b, s...)
}

func (b *spelling) list(l []*pg.Node) {
	b.number(int64(len(l)))
	for _, n := range l {
		b.node(n)
	}
}

func (b *spelling) node(n *pg.Node) {
	switch c := content(n); {
	case n == nil:
		*b = append(*b, 0)
	case c == nil:
		*b = append(*b, 1)
	default:
		b.message(c)
	}
}

// message writes one that is there. Its first byte tells its kind; 0 and 1 are left for what is not there.
func (b *spelling) message(m proto.Message) {
	switch x := m.(type) {
	case *pg.Node:
		b.node(x)
	case *pg.SelectStmt:
		*b = append(*b, 2)
		b.list(x.DistinctClause)
		if x.IntoClause == nil {
			*b = append(*b, 0)
		} else {
			b.message(x.IntoClause)
		}
		b.list(x.TargetList)
		b.list(x.FromClause)
		b.node(x.WhereClause)
		b.list(x.GroupClause)
		b.truth(x.GroupDistinct)
		b.node(x.HavingClause)
		b.list(x.WindowClause)
		b.list(x.ValuesLists)
		b.list(x.SortClause)
		b.node(x.LimitOffset)
		b.node(x.LimitCount)
		b.number(int64(x.LimitOption))
		b.list(x.LockingClause)
		if x.WithClause == nil {
			*b = append(*b, 0)
		} else {
			b.message(x.WithClause)
		}
		b.number(int64(x.Op))
		b.truth(x.All)
		if x.Larg == nil {
			*b = append(*b, 0)
		} else {
			b.message(x.Larg)
		}
		if x.Rarg == nil {
			*b = append(*b, 0)
		} else {
			b.message(x.Rarg)
		}
	case *pg.WithClause:
		*b = append(*b, 3)
		b.list(x.Ctes)
		b.truth(x.Recursive)
	case *pg.CommonTableExpr:
		*b = append(*b, 4)
		b.text(x.Ctename)
		b.list(x.Aliascolnames)
		b.number(int64(x.Ctematerialized))
		b.node(x.Ctequery)
		if x.SearchClause == nil {
			*b = append(*b, 0)
		} else {
			b.message(x.SearchClause)
		}
		if x.CycleClause == nil {
			*b = append(*b, 0)
		} else {
			b.message(x.CycleClause)
		}
		b.truth(x.Cterecursive)
		b.number(int64(x.Cterefcount))
		b.list(x.Ctecolnames)
		b.list(x.Ctecoltypes)
		b.list(x.Ctecoltypmods)
		b.list(x.Ctecolcollations)
	case *pg.CTESearchClause:
		*b = append(*b, 5)
		b.list(x.SearchColList)
		b.truth(x.SearchBreadthFirst)
		b.text(x.SearchSeqColumn)
	case *pg.CTECycleClause:
		*b = append(*b, 6)
		b.list(x.CycleColList)
		b.text(x.CycleMarkColumn)
		b.node(x.CycleMarkValue)
		b.node(x.CycleMarkDefault)
		b.text(x.CyclePathColumn)
		b.number(int64(x.CycleMarkType))
		b.number(int64(x.CycleMarkTypmod))
		b.number(int64(x.CycleMarkCollation))
		b.number(int64(x.CycleMarkNeop))
	case *pg.ResTarget:
		*b = append(*b, 7)
		b.text(x.Name)
		b.list(x.Indirection)
		b.node(x.Val)
	case *pg.SortBy:
		*b = append(*b, 8)
		b.node(x.Node)
		b.number(int64(x.SortbyDir))
		b.number(int64(x.SortbyNulls))
		b.list(x.UseOp)
	case *pg.GroupingSet:
		*b = append(*b, 9)
		b.number(int64(x.Kind))
		b.list(x.Content)
	case *pg.WindowDef:
		*b = append(*b, 10)
		b.text(x.Name)
		b.text(x.Refname)
		b.list(x.PartitionClause)
		b.list(x.OrderClause)
		b.number(int64(x.FrameOptions))
		b.node(x.StartOffset)
		b.node(x.EndOffset)
	case *pg.RangeVar:
		*b = append(*b, 11)
		b.text(x.Catalogname)
		b.text(x.Schemaname)
		b.text(x.Relname)
		b.truth(x.Inh)
		b.text(x.Relpersistence)
		if x.Alias == nil {
			*b = append(*b, 0)
		} else {
			b.message(x.Alias)
		}
	case *pg.RangeSubselect:
		*b = append(*b, 12)
		b.truth(x.Lateral)
		b.node(x.Subquery)
		if x.Alias == nil {
			*b = append(*b, 0)
		} else {
			b.message(x.Alias)
		}
	case *pg.RangeFunction:
		*b = append(*b, 13)
		b.truth(x.Lateral)
		b.truth(x.Ordinality)
		b.truth(x.IsRowsfrom)
		b.list(x.Functions)
		if x.Alias == nil {
			*b = append(*b, 0)
		} else {
			b.message(x.Alias)
		}
		b.list(x.Coldeflist)
	case *pg.RangeTableSample:
		*b = append(*b, 14)
		b.node(x.Relation)
		b.list(x.Method)
		b.list(x.Args)
		b.node(x.Repeatable)
	case *pg.JoinExpr:
		*b = append(*b, 15)
		b.number(int64(x.Jointype))
		b.truth(x.IsNatural)
		b.node(x.Larg)
		b.node(x.Rarg)
		b.list(x.UsingClause)
		if x.JoinUsingAlias == nil {
			*b = append(*b, 0)
		} else {
			b.message(x.JoinUsingAlias)
		}
		b.node(x.Quals)
		if x.Alias == nil {
			*b = append(*b, 0)
		} else {
			b.message(x.Alias)
		}
		b.number(int64(x.Rtindex))
	case *pg.Alias:
		*b = append(*b, 16)
		b.text(x.Aliasname)
		b.list(x.Colnames)
	case *pg.ColumnRef:
		*b = append(*b, 17)
		b.list(x.Fields)
	case *pg.A_Star:
		*b = append(*b, 18)
	case *pg.A_Expr:
		*b = append(*b, 19)
		b.number(int64(x.Kind))
		b.list(x.Name)
		b.node(x.Lexpr)
		b.node(x.Rexpr)
	case *pg.BoolExpr:
		*b = append(*b, 20)
		b.node(x.Xpr)
		b.number(int64(x.Boolop))
		b.list(x.Args)
	case *pg.NullTest:
		*b = append(*b, 21)
		b.node(x.Xpr)
		b.node(x.Arg)
		b.number(int64(x.Nulltesttype))
		b.truth(x.Argisrow)
	case *pg.BooleanTest:
		*b = append(*b, 22)
		b.node(x.Xpr)
		b.node(x.Arg)
		b.number(int64(x.Booltesttype))
	case *pg.CaseExpr:
		*b = append(*b, 23)
		b.node(x.Xpr)
		b.number(int64(x.Casetype))
		b.number(int64(x.Casecollid))
		b.node(x.Arg)
		b.list(x.Args)
		b.node(x.Defresult)
	case *pg.CaseWhen:
		*b = append(*b, 24)
		b.node(x.Xpr)
		b.node(x.Expr)
		b.node(x.Result)
	case *pg.CoalesceExpr:
		*b = append(*b, 25)
		b.node(x.Xpr)
		b.number(int64(x.Coalescetype))
		b.number(int64(x.Coalescecollid))
		b.list(x.Args)
	case *pg.MinMaxExpr:
		*b = append(*b, 26)
		b.node(x.Xpr)
		b.number(int64(x.Minmaxtype))
		b.number(int64(x.Minmaxcollid))
		b.number(int64(x.Inputcollid))
		b.number(int64(x.Op))
		b.list(x.Args)
	case *pg.FuncCall:
		*b = append(*b, 27)
		b.list(x.Funcname)
		b.list(x.Args)
		b.list(x.AggOrder)
		b.node(x.AggFilter)
		if x.Over == nil {
			*b = append(*b, 0)
		} else {
			b.message(x.Over)
		}
		b.truth(x.AggWithinGroup)
		b.truth(x.AggStar)
		b.truth(x.AggDistinct)
		b.truth(x.FuncVariadic)
		b.number(int64(x.Funcformat))
	case *pg.NamedArgExpr:
		*b = append(*b, 28)
		b.node(x.Xpr)
		b.node(x.Arg)
		b.text(x.Name)
		b.number(int64(x.Argnumber))
	case *pg.SQLValueFunction:
		*b = append(*b, 29)
		b.node(x.Xpr)
		b.number(int64(x.Op))
		b.number(int64(x.Type))
		b.number(int64(x.Typmod))
	case *pg.SubLink:
		*b = append(*b, 30)
		b.node(x.Xpr)
		b.number(int64(x.SubLinkType))
		b.number(int64(x.SubLinkId))
		b.node(x.Testexpr)
		b.list(x.OperName)
		b.node(x.Subselect)
	case *pg.TypeCast:
		*b = append(*b, 31)
		b.node(x.Arg)
		if x.TypeName == nil {
			*b = append(*b, 0)
		} else {
			b.message(x.TypeName)
		}
	case *pg.TypeName:
		*b = append(*b, 32)
		b.list(x.Names)
		b.number(int64(x.TypeOid))
		b.truth(x.Setof)
		b.truth(x.PctType)
		b.list(x.Typmods)
		b.number(int64(x.Typemod))
		b.list(x.ArrayBounds)
	case *pg.CollateClause:
		*b = append(*b, 33)
		b.node(x.Arg)
		b.list(x.Collname)
	case *pg.A_ArrayExpr:
		*b = append(*b, 34)
		b.list(x.Elements)
	case *pg.A_Indirection:
		*b = append(*b, 35)
		b.node(x.Arg)
		b.list(x.Indirection)
	case *pg.A_Indices:
		*b = append(*b, 36)
		b.truth(x.IsSlice)
		b.node(x.Lidx)
		b.node(x.Uidx)
	case *pg.RowExpr:
		*b = append(*b, 37)
		b.node(x.Xpr)
		b.list(x.Args)
		b.number(int64(x.RowTypeid))
		b.number(int64(x.RowFormat))
		b.list(x.Colnames)
	case *pg.GroupingFunc:
		*b = append(*b, 38)
		b.node(x.Xpr)
		b.list(x.Args)
		b.list(x.Refs)
		b.number(int64(x.Agglevelsup))
	case *pg.List:
		*b = append(*b, 39)
		b.list(x.Items)
	case *pg.String:
		*b = append(*b, 40)
		b.text(x.Sval)
	case *pg.Integer:
		*b = append(*b, 41)
		b.number(int64(x.Ival))
	case *pg.Float:
		*b = append(*b, 42)
		b.text(x.Fval)
	case *pg.Boolean:
		*b = append(*b, 43)
		b.truth(x.Boolval)
	case *pg.BitString:
		*b = append(*b, 44)
		b.text(x.Bsval)
	case *pg.A_Const:
		*b = append(*b, 45)
		b.truth(x.Isnull)
		switch v := x.Val.(type) {
		case nil:
			*b = append(*b, 0)
		case *pg.A_Const_Ival:
			b.message(v.Ival)
		case *pg.A_Const_Fval:
			b.message(v.Fval)
		case *pg.A_Const_Boolval:
			b.message(v.Boolval)
		case *pg.A_Const_Sval:
			b.message(v.Sval)
		case *pg.A_Const_Bsval:
			b.message(v.Bsval)
		}
	default:
		*b = append(*b, 46)
		b.text(string(m.ProtoReflect().Descriptor().Name()))
		b.otherwise(m)
	}
}

// otherwise writes a message of a kind that is not listed.
func (b *spelling) otherwise(m proto.Message) {
	m = proto.Clone(m)
	stripPositions(m)
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		encoded = []byte(err.Error()) // of text that is no UTF-8, which no parser makes
	}
	b.text(string(encoded))
}
