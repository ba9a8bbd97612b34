package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/schemagate/schemagate/acl"
)

// systemColumns are those that every table has beside its own. They tell where and when a row was written.
var systemColumns = words(`ctid xmin cmin xmax cmax tableoid`)

// lookup finds a column by its bare name, from the innermost level outwards. It returns nil if there is none.
func (r *resolver) lookup(sc *scope, name string) (*column, *item, error) {
	for ; sc != nil; sc = sc.outer {
		var found *column
		var in *item
		hasTable := false
		for _, it := range sc.items {
			if !it.bare || it.lateral && !sc.active {
				continue
			}
			hasTable = hasTable || it.use != nil
			if slices.Contains(it.merged, name) {
				continue
			}
			c, err := it.column(name)
			if err != nil {
				return nil, nil, err
			}
			if c == nil {
				expose(it)
				continue
			}
			if found != nil {
				return nil, nil, ambiguous(said(name))
			}
			found, in = c, it
		}
		if found != nil {
			if in.blocked {
				return nil, nil, acl.NotAvailable(said(name), "lateral reference across an outer join")
			}
			return found, in, nil
		}
		if hasTable && systemColumns[name] {
			return nil, nil, acl.NotAvailable(said(name), "system column")
		}
	}
	return nil, nil, nil
}

// manyColumns is a number of columns above which it pays to index them.
const manyColumns = 64

// indexed maps names to columns. It is nil if some columns are not known.
func indexed(columns []column) map[string]int {
	index := make(map[string]int, len(columns))
	for i, c := range columns {
		if c.unknown {
			return nil
		}
		if _, ok := index[c.name]; ok {
			i = -1
		}
		index[c.name] = i
	}
	return index
}

// column finds a column of an item by name, nil if there is none.
func (it *item) column(name string) (*column, error) {
	if len(it.columns) > manyColumns && it.index == nil {
		it.index = indexed(it.columns)
	}
	if it.index != nil {
		switch i, ok := it.index[name]; {
		case !ok:
			return nil, nil
		case i < 0:
			return nil, ambiguous(said(name))
		default:
			return &it.columns[i], nil
		}
	}
	var found *column
	unknown := false
	for i := range it.columns {
		c := &it.columns[i]
		unknown = unknown || c.unknown
		if c.unknown || c.name != name {
			continue
		}
		if found != nil {
			return nil, ambiguous(said(name))
		}
		found = c
	}
	switch {
	case found != nil:
		return found, nil
	case it.has != nil:
		if it.has(name) {
			return &column{name: name}, nil
		}
	case unknown:
		return nil, notSupported("a star in a subquery hides which columns it has", "name the columns", "")
	}
	return nil, nil
}

// findItem finds what a qualifier names: an item's name, or a base table's schema and name if it has no alias.
func (r *resolver) findItem(sc *scope, parts []string) (*item, error) {
	if len(parts) == 3 {
		if parts[0] != r.database.Name {
			return nil, nil
		}
		parts = parts[1:]
	}
	for ; sc != nil; sc = sc.outer {
		var found *item
		for _, it := range sc.items {
			if !it.named || it.lateral && !sc.active {
				continue
			}
			switch len(parts) {
			case 1:
				if it.name != parts[0] {
					continue
				}
			case 2:
				if it.use == nil || it.use.aliased() || it.use.ref.Schema != parts[0] || it.use.ref.Table != parts[1] {
					continue
				}
			default:
				return nil, nil
			}
			if found != nil {
				return nil, ambiguous(said(parts...))
			}
			found = it
		}
		if found != nil {
			if found.blocked {
				return nil, acl.NotAvailable(said(parts...), "lateral reference across an outer join")
			}
			return found, nil
		}
	}
	return nil, nil
}

// columnRef binds a reference to a column, or to a whole row if that is what it names.
func (r *resolver) columnRef(ref *pg.ColumnRef, sc *scope) error {
	if endsInStar(ref.Fields) {
		// Outside a select list, t.* is the whole row; only ROW(*) takes a bare star.
		if len(ref.Fields) == 1 {
			_, err := r.star(ref, sc)
			return err
		}
		it, err := r.rowOfStar(ref, sc)
		if err != nil {
			return err
		}
		return r.wholeRow(it)
	}
	list, ok := names(ref.Fields)
	if !ok || len(list) > 4 {
		return notSupported("this column reference is not supported", "write table.column", "")
	}
	last := list[len(list)-1]
	if len(list) == 1 {
		c, it, err := r.lookup(sc, last)
		if err != nil {
			return err
		}
		if c != nil {
			r.read(*c)
			r.bound[ref] = c.made
			r.refs = append(r.refs, reference{ref, it, c, 0})
			return nil
		}
		it, err = r.findItem(sc, list)
		if err != nil {
			return err
		}
		if it == nil {
			return acl.NotAvailable(said(last), "no column or table of this name in sight")
		}
		r.rows[ref] = true
		return r.wholeRow(it)
	}
	it, err := r.findItem(sc, list[:len(list)-1])
	if err != nil {
		return err
	}
	if it == nil {
		return acl.NotAvailable(said(list...), "no table in FROM has this name")
	}
	c, err := it.column(last)
	if err != nil {
		return err
	}
	if c == nil {
		// PostgreSQL would now look for a function of this name over the row.
		return acl.NotAvailable(said(list...), "no such column in "+it.name)
	}
	r.read(*c)
	r.bound[ref] = c.made
	r.refs = append(r.refs, reference{ref, it, c, len(list) - 1})
	return nil
}

// wholeRow notes that a statement uses all of a row as one value.
func (r *resolver) wholeRow(it *item) error {
	if it.renamed && it.use != nil && !r.unnamed {
		// The row of a table keeps the table's names under such an alias, the row of a derived table does not.
		return notSupported("a whole row under an alias that renames columns is not supported", "list the columns", "")
	}
	if it.has != nil {
		return notSupported("a whole row is not supported here", "list the columns", "")
	}
	r.all(it)
	return nil
}

// rowOf binds (t).field and (t).*: a field of a whole row. Other values have no fields that can be vouched for.
func (r *resolver) rowOf(ind *pg.A_Indirection, sc *scope) (*item, error) {
	if name, ok := plainName(ind.Arg); ok {
		c, _, err := r.lookup(sc, name)
		if err != nil {
			return nil, err
		}
		if c == nil {
			it, err := r.findItem(sc, []string{name})
			if err != nil {
				return nil, err
			}
			if it == nil {
				return nil, acl.NotAvailable(said(name), "no column or table of this name in sight")
			}
			if it.has != nil {
				return nil, notSupported("a whole row is not supported here", "name the columns", "")
			}
			return it, nil
		}
	}
	return nil, notSupported("a field of a value is not supported", "select from a table and name its column", kindOf(ind.Arg))
}

// exprs resolves a list.
func (r *resolver) exprs(list []*pg.Node, sc *scope) error {
	for _, n := range list {
		if err := r.expr(n, sc); err != nil {
			return err
		}
	}
	return nil
}

// expr resolves an expression. What it does not know is refused.
func (r *resolver) expr(n *pg.Node, sc *scope) error {
	switch x := n.GetNode().(type) {
	case nil, *pg.Node_AConst, *pg.Node_SqlvalueFunction:
		return nil
	case *pg.Node_ColumnRef:
		return r.columnRef(x.ColumnRef, sc)
	case *pg.Node_AExpr:
		return r.exprs([]*pg.Node{x.AExpr.Lexpr, x.AExpr.Rexpr}, sc)
	case *pg.Node_List:
		return r.exprs(x.List.Items, sc)
	case *pg.Node_BoolExpr:
		return r.exprs(x.BoolExpr.Args, sc)
	case *pg.Node_NullTest:
		return r.value(x.NullTest.Arg, sc)
	case *pg.Node_BooleanTest:
		return r.expr(x.BooleanTest.Arg, sc)
	case *pg.Node_CaseExpr:
		if err := r.expr(x.CaseExpr.Arg, sc); err != nil {
			return err
		}
		return r.exprs(append(slices.Clone(x.CaseExpr.Args), x.CaseExpr.Defresult), sc)
	case *pg.Node_CaseWhen:
		return r.exprs([]*pg.Node{x.CaseWhen.Expr, x.CaseWhen.Result}, sc)
	case *pg.Node_CoalesceExpr:
		return r.exprs(x.CoalesceExpr.Args, sc)
	case *pg.Node_MinMaxExpr:
		return r.exprs(x.MinMaxExpr.Args, sc)
	case *pg.Node_FuncCall:
		return r.call(x.FuncCall, sc)
	case *pg.Node_NamedArgExpr:
		return r.expr(x.NamedArgExpr.Arg, sc)
	case *pg.Node_SubLink:
		if err := r.expr(x.SubLink.Testexpr, sc); err != nil {
			return err
		}
		if x.SubLink.Subselect.GetSelectStmt() == nil {
			return notSupported("this subquery is not supported", "write a SELECT", kindOf(x.SubLink.Subselect))
		}
		values := &source{} // mentioned before what the subquery chooses rows by
		if x.SubLink.SubLinkType != pg.SubLinkType_EXISTS_SUBLINK {
			r.into.add(values)
		}
		columns, err := r.query(x.SubLink.Subselect.GetSelectStmt(), sc, nil)
		for _, c := range columns {
			values.add(c.made)
		}
		return err
	case *pg.Node_TypeCast:
		if name, ok := builtin(x.TypeCast.TypeName.GetNames()); ok && name == "text" && len(x.TypeCast.TypeName.ArrayBounds) == 0 {
			return r.value(x.TypeCast.Arg, sc)
		}
		return r.expr(x.TypeCast.Arg, sc)
	case *pg.Node_CollateClause:
		return r.expr(x.CollateClause.Arg, sc)
	case *pg.Node_AArrayExpr:
		return r.exprs(x.AArrayExpr.Elements, sc)
	case *pg.Node_RowExpr:
		return r.exprs(x.RowExpr.Args, sc)
	case *pg.Node_GroupingFunc:
		return r.exprs(x.GroupingFunc.Args, sc)
	case *pg.Node_SortBy:
		return r.expr(x.SortBy.Node, sc)
	case *pg.Node_AIndirection:
		return r.indirection(x.AIndirection, sc)
	}
	return notSupported("the statement uses an expression that is not supported", "use plain expressions", kindOf(n))
}

// value resolves an expression of which nothing is used but its value.
func (r *resolver) value(n *pg.Node, sc *scope) error {
	r.unnamed = n.GetColumnRef() != nil
	err := r.expr(n, sc)
	r.unnamed = false
	return err
}

// indirection resolves subscripts of any value, and fields of whole rows.
func (r *resolver) indirection(ind *pg.A_Indirection, sc *scope) error {
	for i, n := range ind.Indirection {
		if sub := n.GetAIndices(); sub != nil {
			if err := r.exprs([]*pg.Node{sub.Lidx, sub.Uidx}, sc); err != nil {
				return err
			}
			continue
		}
		field := n.GetString_()
		if field == nil || i > 0 {
			return notSupported("a field of a value is not supported", "select from a table and name its column", kindOf(n))
		}
		it, err := r.rowOf(ind, sc)
		if err != nil {
			return err
		}
		c, err := it.column(field.Sval)
		if err != nil {
			return err
		}
		if c == nil {
			return acl.NotAvailable(said(it.name, field.Sval), "no such column in "+it.name)
		}
		r.read(*c)
	}
	if len(ind.Indirection) > 0 && ind.Indirection[0].GetString_() != nil {
		return nil // the row was bound with its field
	}
	return r.expr(ind.Arg, sc)
}

func (r *resolver) call(f *pg.FuncCall, sc *scope) error {
	if len(f.Args) == 1 {
		name, _ := builtin(f.Funcname)
		whole, err := r.isWholeRow(f.Args[0], sc)
		if err != nil {
			return err
		}
		if whole && !rowFunctions[name] {
			return notSupported("the function "+said(name)+" over a whole row is not supported", "give it a column", describe(f))
		}
	}
	if name, _ := builtin(f.Funcname); r.into != nil && (f.Over != nil || f.AggWithinGroup || aggregates[name]) {
		r.into.how = aggregation
	}
	if name, _ := builtin(f.Funcname); name == "count" && len(f.Args) == 1 {
		if err := r.value(f.Args[0], sc); err != nil {
			return err
		}
	} else if err := r.exprs(f.Args, sc); err != nil {
		return err
	}
	if err := r.exprs(f.AggOrder, sc); err != nil {
		return err
	}
	if err := r.expr(f.AggFilter, sc); err != nil {
		return err
	}
	if w := f.Over; w != nil {
		r.into.add(r.windows[w.Name]) // OVER w
	}
	return r.window(f.Over, sc)
}

// isWholeRow reports whether an expression names a row and not a column.
func (r *resolver) isWholeRow(n *pg.Node, sc *scope) (bool, error) {
	ref := n.GetColumnRef()
	if ref == nil {
		return false, nil
	}
	if endsInStar(ref.Fields) {
		return true, nil
	}
	name, ok := plainName(n)
	if !ok {
		return false, nil
	}
	c, _, err := r.lookup(sc, name)
	return c == nil && err == nil, err
}

func (r *resolver) window(w *pg.WindowDef, sc *scope) error {
	if w == nil {
		return nil
	}
	r.into.add(r.windows[w.Refname])
	if err := r.exprs(w.PartitionClause, sc); err != nil {
		return err
	}
	if err := r.exprs(w.OrderClause, sc); err != nil {
		return err
	}
	return r.exprs([]*pg.Node{w.StartOffset, w.EndOffset}, sc)
}

// figureName returns the name that PostgreSQL gives an output column without one. sure is false for a name that a cast
// or CASE around the expression would replace.
func figureName(n *pg.Node) (name string, sure bool) {
	const none = "?column?"
	switch x := n.GetNode().(type) {
	case *pg.Node_ColumnRef:
		if list, ok := names(x.ColumnRef.Fields); ok && len(list) > 0 {
			return list[len(list)-1], true
		}
	case *pg.Node_AIndirection:
		for _, i := range slices.Backward(x.AIndirection.Indirection) {
			if s := i.GetString_(); s != nil {
				return s.Sval, true
			}
		}
		return figureName(x.AIndirection.Arg)
	case *pg.Node_FuncCall:
		if list, ok := names(x.FuncCall.Funcname); ok && len(list) > 0 {
			return list[len(list)-1], true
		}
	case *pg.Node_AExpr:
		if x.AExpr.Kind == pg.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif", true
		}
	case *pg.Node_TypeCast:
		if name, sure := figureName(x.TypeCast.Arg); sure {
			return name, true
		}
		if list, ok := names(x.TypeCast.TypeName.GetNames()); ok && len(list) > 0 {
			return list[len(list)-1], false
		}
	case *pg.Node_CollateClause:
		return figureName(x.CollateClause.Arg)
	case *pg.Node_CaseExpr:
		if name, sure := figureName(x.CaseExpr.Defresult); sure {
			return name, true
		}
		return "case", false
	case *pg.Node_AArrayExpr:
		return "array", true
	case *pg.Node_RowExpr:
		return "row", true
	case *pg.Node_CoalesceExpr:
		return "coalesce", true
	case *pg.Node_MinMaxExpr:
		if x.MinMaxExpr.Op == pg.MinMaxOp_IS_LEAST {
			return "least", true
		}
		return "greatest", true
	case *pg.Node_GroupingFunc:
		return "grouping", true
	case *pg.Node_SqlvalueFunction:
		return sqlValueName(x.SqlvalueFunction.Op), true
	case *pg.Node_SubLink:
		switch x.SubLink.SubLinkType {
		case pg.SubLinkType_EXISTS_SUBLINK:
			return "exists", true
		case pg.SubLinkType_ARRAY_SUBLINK:
			return "array", true
		case pg.SubLinkType_EXPR_SUBLINK:
			s := x.SubLink.Subselect.GetSelectStmt()
			for s.GetLarg() != nil {
				s = s.Larg
			}
			if len(s.GetTargetList()) > 0 {
				t := s.TargetList[0].GetResTarget()
				if t.GetName() != "" {
					return t.Name, true
				}
				name, _ := figureName(t.GetVal())
				return name, name != none
			}
			if len(s.GetValuesLists()) > 0 {
				return "column1", true
			}
		}
	}
	return none, false
}

func sqlValueName(op pg.SQLValueFunctionOp) string {
	switch op {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		return "current_date"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME_N:
		return "current_time"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N:
		return "current_timestamp"
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIME, pg.SQLValueFunctionOp_SVFOP_LOCALTIME_N:
		return "localtime"
	}
	return "localtimestamp"
}
