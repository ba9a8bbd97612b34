package postgres

import (
	"regexp"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/schemagate/schemagate/rewrite"
)

// PostgreSQL merges a wrapper into the query around it and then runs conditions in the order of their estimated cost,
// the asker's before the filter's if they look cheaper. Where the asker's could raise an error on a row, that error
// tells of hidden rows. So a statement in which any expression that the planner may move below a filter is not on the
// list of those that never fail gets its protected tables behind a barrier.

// barriers says which tables of a statement need a barrier.
type barriers struct {
	// failing says that an expression of the asker's could fail on a hidden row.
	failing bool
	// full says that the statement has a FULL JOIN, which PostgreSQL can only do over columns: not over what remains of
	// them when it merges a mask into the condition.
	full bool
}

func (b barriers) needs(t *rewrite.Table) bool {
	return b.failing && t.Protected ||
		b.full && slices.ContainsFunc(t.Columns, func(c rewrite.Column) bool { return c.Mask != nil })
}

// findBarriers examines a resolved statement and the definitions of SQL views that it reads, whose expressions come as
// close to hidden rows as the asker's. Nodes in skip are wrappers.
func findBarriers(s *rewrite.Schema, r *resolver, q *pg.SelectStmt, skip map[*pg.Node]bool) (barriers, error) {
	canFail, err := r.policiesCanFail(s)
	if err != nil {
		return barriers{}, err
	}
	b := barrier{r: r, schema: s, rows: r.rows, skip: skip}
	bodies := r.definitions()
	return barriers{
		failing: canFail || b.query(q, true) || slices.ContainsFunc(bodies, func(q *pg.SelectStmt) bool { return b.query(q, false) }),
		full:    r.full,
	}, nil
}

type barrier struct {
	r      *resolver // nil in the policy's own SQL, of which the types are not known
	schema *rewrite.Schema
	rows   map[*pg.ColumnRef]bool // references to whole rows
	skip   map[*pg.Node]bool
	// inner says that the query examined stands in another, whose hidden rows could set it off: whether it runs at all,
	// and with what of the rows around it, is for the planner to choose.
	inner bool
}

func (b barrier) any(list []*pg.Node, f func(*pg.Node) bool) bool {
	return slices.ContainsFunc(list, f)
}

// query examines one level. The select list of the outermost query runs last, above every filter, unless rows are
// sorted or grouped by it; that of an inner one is merged into conditions around it.
func (b barrier) query(q *pg.SelectStmt, outermost bool) bool {
	b.inner = !outermost
	for _, c := range q.GetWithClause().GetCtes() {
		if b.query(c.GetCommonTableExpr().GetCtequery().GetSelectStmt(), false) {
			return true
		}
	}
	if q.Larg != nil && (b.query(q.Larg, outermost) || b.query(q.Rarg, outermost)) {
		return true
	}
	last := outermost && len(q.GroupClause)+len(q.SortClause)+len(q.DistinctClause) == 0
	for _, n := range q.TargetList {
		val := n.GetResTarget().GetVal()
		if endsInStar(val.GetColumnRef().GetFields()) {
			continue // columns, which are only passed on
		}
		if last && b.subqueries(val) || !last && b.input(val) {
			return true
		}
	}
	for _, row := range q.ValuesLists {
		if b.any(row.GetList().GetItems(), b.input) {
			return true
		}
	}
	return b.any(q.FromClause, b.from) || b.input(q.WhereClause) || b.input(q.HavingClause) ||
		b.any(q.GroupClause, b.input) || b.any(q.SortClause, b.input) || b.any(q.DistinctClause, b.input) ||
		b.any(q.WindowClause, func(n *pg.Node) bool { return b.window(n.GetWindowDef()) }) ||
		!isCount(q.LimitCount) || !isCount(q.LimitOffset)
}

// isCount reports whether a LIMIT or OFFSET is absent or a number that it accepts.
func isCount(n *pg.Node) bool {
	c := n.GetAConst()
	return n == nil || c.GetIsnull() || isIntegerLiteral(n) && c.GetIval().GetIval() >= 0
}

func (b barrier) from(n *pg.Node) bool {
	if b.skip[n] {
		return false
	}
	switch x := n.GetNode().(type) {
	case *pg.Node_RangeVar, *pg.Node_RangeTableSample:
		return false
	case *pg.Node_RangeSubselect:
		return b.query(x.RangeSubselect.GetSubquery().GetSelectStmt(), false)
	case *pg.Node_JoinExpr:
		return b.from(x.JoinExpr.Larg) || b.from(x.JoinExpr.Rarg) || b.input(x.JoinExpr.Quals)
	case *pg.Node_RangeFunction:
		// A series between two numbers runs whatever the rows are.
		for _, f := range x.RangeFunction.Functions {
			pair := f.GetList().GetItems()
			name, _ := builtin(pair[0].GetFuncCall().GetFuncname())
			args := pair[0].GetFuncCall().GetArgs()
			if name != "generate_series" || len(args) != 2 || b.any(args, func(a *pg.Node) bool { return !isIntegerLiteral(a) }) {
				return true
			}
		}
		return false
	}
	return true
}

// subqueries reports whether a query inside an expression can fail; the expression itself is out of reach.
func (b barrier) subqueries(n *pg.Node) bool {
	if n == nil {
		return false
	}
	if link := n.GetSubLink(); link != nil {
		return b.subqueries(link.Testexpr) || b.subquery(link)
	}
	return b.subqueriesIn(n)
}

func (b barrier) subqueriesIn(m proto.Message) bool {
	found := false
	inside(m, func(child proto.Message) bool {
		if n, ok := child.(*pg.Node); ok {
			found = b.subqueries(n)
		} else {
			found = b.subqueriesIn(child)
		}
		return !found
	})
	return found
}

func (b barrier) subquery(link *pg.SubLink) bool {
	q := link.Subselect.GetSelectStmt()
	if link.SubLinkType == pg.SubLinkType_EXPR_SUBLINK && !oneRow(q) {
		return true // more than one row is an error
	}
	return b.query(q, false)
}

// oneRow reports whether a query returns at most one row, whatever its tables hold.
func oneRow(q *pg.SelectStmt) bool {
	if q.GetOp() != pg.SetOperation_SETOP_NONE || len(q.GetValuesLists()) > 1 {
		return false
	}
	if n, ok := q.GetLimitCount().GetAConst().GetVal().(*pg.A_Const_Ival); ok && n.Ival.GetIval() <= 1 {
		return true
	}
	if len(q.GroupClause) > 0 || len(q.TargetList) != 1 {
		return false
	}
	val := q.TargetList[0].GetResTarget().GetVal()
	return isAggregate(val) && !contains(val, func(n *pg.Node) bool {
		name, _ := builtin(n.GetFuncCall().GetFuncname())
		return setFunctions[name]
	})
}

// contains reports whether a node under m is what is looked for.
func contains(m proto.Message, is func(*pg.Node) bool) bool {
	if n, ok := m.(*pg.Node); ok && is(n) {
		return true
	}
	found := false
	inside(m, func(child proto.Message) bool {
		found = contains(child, is)
		return !found
	})
	return found
}

// isAggregate reports whether an expression holds an aggregate of its own level, so that it runs above the rows.
func isAggregate(n *pg.Node) bool {
	if n == nil || n.GetSubLink() != nil {
		return false
	}
	if f := n.GetFuncCall(); f != nil {
		name, _ := builtin(f.Funcname)
		switch {
		case f.Over != nil:
			return false
		case aggregates[name] || f.AggWithinGroup:
			return true
		}
	}
	return aggregateIn(n)
}

func aggregateIn(m proto.Message) bool {
	found := false
	inside(m, func(child proto.Message) bool {
		if n, ok := child.(*pg.Node); ok {
			found = isAggregate(n)
		} else {
			found = aggregateIn(child)
		}
		return !found
	})
	return found
}

func (b barrier) window(w *pg.WindowDef) bool {
	if w == nil {
		return false
	}
	return b.any(w.PartitionClause, b.input) || b.any(w.OrderClause, b.input) || b.input(w.StartOffset) || b.input(w.EndOffset)
}

// input reports whether an expression that may run below a filter can fail on a row.
func (b barrier) input(n *pg.Node) bool {
	switch x := n.GetNode().(type) {
	case nil, *pg.Node_AConst, *pg.Node_SqlvalueFunction:
		return false
	case *pg.Node_ColumnRef:
		// Rows compare column by column, and not every type has a comparison.
		return b.rows[x.ColumnRef] || endsInStar(x.ColumnRef.Fields)
	case *pg.Node_BoolExpr:
		return b.any(x.BoolExpr.Args, b.input) // each condition of an AND moves alone
	}
	if !b.inner {
		if isAggregate(n) {
			return b.subqueries(n)
		}
		b.inner = true // there is none further down either
	}
	switch x := n.GetNode().(type) {
	case *pg.Node_List:
		return b.any(x.List.Items, b.input)
	case *pg.Node_NullTest:
		return b.input(x.NullTest.Arg)
	case *pg.Node_BooleanTest:
		return b.input(x.BooleanTest.Arg)
	case *pg.Node_CaseExpr:
		return b.input(x.CaseExpr.Arg) || b.any(x.CaseExpr.Args, b.input) || b.input(x.CaseExpr.Defresult)
	case *pg.Node_CaseWhen:
		return b.input(x.CaseWhen.Expr) || b.input(x.CaseWhen.Result)
	case *pg.Node_CoalesceExpr:
		return b.any(x.CoalesceExpr.Args, b.input)
	case *pg.Node_MinMaxExpr:
		return b.any(x.MinMaxExpr.Args, b.input)
	case *pg.Node_RowExpr:
		return b.any(x.RowExpr.Args, b.input)
	case *pg.Node_SortBy:
		return b.input(x.SortBy.Node)
	case *pg.Node_GroupingSet:
		return b.any(x.GroupingSet.Content, b.input)
	case *pg.Node_GroupingFunc:
		return false
	case *pg.Node_SubLink:
		return b.input(x.SubLink.Testexpr) || b.subquery(x.SubLink) || !comparesNames(x.SubLink.OperName)
	case *pg.Node_TypeCast:
		return b.cast(x.TypeCast)
	case *pg.Node_AExpr:
		return b.operator(x.AExpr)
	case *pg.Node_FuncCall:
		return b.call(x.FuncCall)
	}
	return true
}

// foldedTypes are those to which the planner converts a number once and for all.
var foldedTypes = words(`int2 int4 int8 numeric float4 float8 text varchar bpchar bool`)

// cast: a literal is converted once, before any row is seen; every value has a text.
func (b barrier) cast(c *pg.TypeCast) bool {
	list := c.TypeName.GetNames()
	if lit := c.Arg.GetAConst(); lit != nil {
		_, text := lit.Val.(*pg.A_Const_Sval)
		return !text && !lit.Isnull && (len(list) == 0 || !foldedTypes[list[len(list)-1].GetString_().GetSval()])
	}
	if len(c.TypeName.GetArrayBounds()) > 0 || len(list) == 0 {
		return true
	}
	switch list[len(list)-1].GetString_().GetSval() {
	case "text", "varchar", "bpchar":
		return b.input(c.Arg)
	}
	return !b.widens(c)
}

// comparesNames reports whether an operator is absent or a comparison, which never fails.
func comparesNames(name []*pg.Node) bool {
	if len(name) == 0 {
		return true
	}
	op, ok := builtin(name)
	return ok && slices.Contains([]string{"=", "<>", "<", ">", "<=", ">="}, op)
}

func (b barrier) operator(e *pg.A_Expr) bool {
	operands := func() bool { return b.input(e.Lexpr) || b.input(e.Rexpr) }
	switch e.Kind {
	case pg.A_Expr_Kind_AEXPR_OP:
		if comparesNames(e.Name) && e.Lexpr != nil {
			return operands()
		}
		op, _ := builtin(e.Name)
		if op == "->" || op == "->>" {
			return operands()
		}
		if _, ok := b.exactOperation(e); ok || b.isConcatenation(e) {
			return false
		}
		return !isStableSum(e, op)
	case pg.A_Expr_Kind_AEXPR_OP_ANY, pg.A_Expr_Kind_AEXPR_OP_ALL:
		if array := e.Rexpr.GetAArrayExpr(); array != nil {
			return !comparesNames(e.Name) || b.input(e.Lexpr) || b.any(array.Elements, b.input)
		}
		return !comparesNames(e.Name) || operands()
	case pg.A_Expr_Kind_AEXPR_DISTINCT, pg.A_Expr_Kind_AEXPR_NOT_DISTINCT, pg.A_Expr_Kind_AEXPR_NULLIF, pg.A_Expr_Kind_AEXPR_IN,
		pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN, pg.A_Expr_Kind_AEXPR_BETWEEN_SYM, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		return operands()
	case pg.A_Expr_Kind_AEXPR_LIKE, pg.A_Expr_Kind_AEXPR_ILIKE:
		// A pattern that ends in its escape character fails, but only once a value gets that far.
		s, ok := e.Rexpr.GetAConst().GetVal().(*pg.A_Const_Sval)
		return !ok || strings.Contains(s.Sval.GetSval(), `\`) || b.input(e.Lexpr)
	}
	return true
}

// isStableSum reports whether an expression adds to or subtracts from a date what cannot overflow it, or computes with
// number literals that the planner folds.
func isStableSum(e *pg.A_Expr, op string) bool {
	if e.Lexpr == nil {
		return false
	}
	if isNumber(e.Lexpr) && isNumber(e.Rexpr) {
		return op == "+" || op == "-" || op == "*" || op == "/"
	}
	return (op == "+" || op == "-") && isDate(e.Lexpr) && isSmallSpan(e.Rexpr)
}

func isNumber(n *pg.Node) bool {
	switch n.GetAConst().GetVal().(type) {
	case *pg.A_Const_Ival, *pg.A_Const_Fval:
		return true
	}
	return false
}

func isIntegerLiteral(n *pg.Node) bool {
	_, ok := n.GetAConst().GetVal().(*pg.A_Const_Ival)
	return ok
}

var (
	ordinaryDate = regexp.MustCompile(`^\d{4}-\d{1,2}-\d{1,2}$`)
	smallSpan    = regexp.MustCompile(`^ ?\d{1,4} ?((minute|hour|day|week|month|year)s?)?$`)
)

// isDate reports whether n is today, now or a date literal of four digits' year.
func isDate(n *pg.Node) bool {
	if n.GetSqlvalueFunction() != nil {
		return true
	}
	if f := n.GetFuncCall(); f != nil {
		name, _ := builtin(f.Funcname)
		return name == "now" && len(f.Args) == 0
	}
	text, kind := castLiteral(n)
	return (kind == "date" || kind == "timestamp") && ordinaryDate.MatchString(text)
}

func isSmallSpan(n *pg.Node) bool {
	if i, ok := n.GetAConst().GetVal().(*pg.A_Const_Ival); ok {
		return i.Ival.GetIval() >= 0 && i.Ival.GetIval() < 100000
	}
	text, kind := castLiteral(n)
	return kind == "interval" && smallSpan.MatchString(text)
}

// castLiteral returns the text and type of a string literal that is cast.
func castLiteral(n *pg.Node) (text, kind string) {
	c := n.GetTypeCast()
	s, ok := c.GetArg().GetAConst().GetVal().(*pg.A_Const_Sval)
	list := c.GetTypeName().GetNames()
	if !ok || len(list) == 0 {
		return "", ""
	}
	return s.Sval.GetSval(), list[len(list)-1].GetString_().GetSval()
}

func (b barrier) call(f *pg.FuncCall) bool {
	name, _ := builtin(f.Funcname)
	if f.Over != nil && b.window(f.Over) || b.any(f.AggOrder, b.input) || b.input(f.AggFilter) {
		return true
	}
	if f.Over != nil && slices.Contains([]string{"row_number", "rank", "dense_rank", "percent_rank", "cume_dist"}, name) {
		return false
	}
	if b.isDatePart(f, name) {
		return false
	}
	switch name {
	case "count", "sum", "avg", "min", "max", "bool_and", "bool_or", "every":
		return b.any(f.Args, b.input)
	case "lower", "upper", "btrim", "ltrim", "rtrim", "length", "char_length", "md5", "now":
		return len(f.Args) > 1 || b.any(f.Args, b.input)
	case "substring", "substr":
		return len(f.Args) != 3 || b.input(f.Args[0]) || b.any(f.Args[1:], func(n *pg.Node) bool { return !isIntegerLiteral(n) }) ||
			f.Args[2].GetAConst().GetIval().GetIval() < 0
	}
	return true
}
