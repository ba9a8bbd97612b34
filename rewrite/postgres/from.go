package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// from resolves a FROM list into sc.
func (r *resolver) from(list []*pg.Node, sc *scope) error {
	for _, n := range list {
		items, err := r.fromItem(n, sc)
		if err != nil {
			return err
		}
		if err := r.distinct(sc.items, items); err != nil {
			return err
		}
		// To what follows in the list, this is visible by LATERAL only.
		mark(items, true, false)
		sc.items = append(sc.items, items...)
	}
	mark(sc.items, false, false)
	return nil
}

func mark(items []*item, lateral, blocked bool) {
	for _, it := range items {
		it.lateral, it.blocked = lateral, blocked
	}
}

// distinct refuses two items of one name, and marks base tables of one name from different schemas, which may stand
// side by side.
func (r *resolver) distinct(left, right []*item) error {
	for _, b := range right {
		for _, a := range left {
			if a.name == "" || a.name != b.name || !a.named || !b.named {
				continue
			}
			if a.use == nil || b.use == nil || a.use.aliased() || b.use.aliased() || a.use.ref == b.use.ref {
				return ambiguous(said(a.name))
			}
			a.clash, b.clash = true, true
		}
	}
	return nil
}

// fromItem resolves one entry of FROM. It returns the items that it brings into sight, in the order of their columns.
func (r *resolver) fromItem(n *pg.Node, sc *scope) ([]*item, error) {
	one := func(it *item, err error) ([]*item, error) {
		if err != nil {
			return nil, err
		}
		if it.name != "" {
			r.aliases[it.name] = true
		}
		return []*item{it}, nil
	}
	switch x := n.GetNode().(type) {
	case *pg.Node_RangeVar:
		return one(r.table(n, x.RangeVar, nil, sc))
	case *pg.Node_RangeTableSample:
		source := x.RangeTableSample.Relation.GetRangeVar()
		if source == nil {
			return nil, notSupported("only a table can be sampled", "sample a table", "")
		}
		return one(r.table(n, source, x.RangeTableSample, sc))
	case *pg.Node_RangeSubselect:
		if r.wrapper != nil {
			if it, err := r.wrapper(r, n); err != nil || it != nil {
				return one(it, err)
			}
		}
		return one(r.subselect(x.RangeSubselect, sc))
	case *pg.Node_RangeFunction:
		return one(r.function(x.RangeFunction, sc))
	case *pg.Node_JoinExpr:
		return r.join(x.JoinExpr, sc)
	}
	return nil, notSupported("something in FROM is not supported", "select from tables, subqueries and built-in functions", kindOf(n))
}

// table resolves a name in FROM: a WITH query if it has no schema and one is in sight, a base table otherwise.
func (r *resolver) table(n *pg.Node, rv *pg.RangeVar, sample *pg.RangeTableSample, sc *scope) (*item, error) {
	if rv.Schemaname == "" && rv.Catalogname == "" {
		if c := findCommon(sc, rv.Relname); c != nil {
			if sample != nil {
				return nil, notSupported("only a table can be sampled", "sample a table", "")
			}
			if err := r.common(c); err != nil {
				return nil, err
			}
			if !c.known {
				return nil, notSupported(said(rv.Relname)+" refers to itself before its columns are known", "begin a recursive query with an arm that does not refer to it", "")
			}
			return named(&item{name: rv.Relname, columns: c.columns}, rv.Alias)
		}
	}
	name := tableName(rv)
	database := r.database
	schema := rv.Schemaname
	if schema == "" {
		schema = database.DefaultSchema
	}
	if schema == "" {
		schema = defaultSchema
	}
	switch {
	case rv.Catalogname != "" && rv.Catalogname != database.Name:
		return nil, acl.NotAvailable(name, "another database")
	case schema == "pg_catalog" || schema == "information_schema" || schema == "pg_toast":
		return nil, acl.NotAvailable(name, "a table of the server")
	}
	u := &use{node: n, source: rv, sample: sample, name: name, within: r.within, aliases: r.aliases, ref: catalog.TableRef(database.Name, schema, rv.Relname)}
	it, err := r.tables(u, name)
	if err != nil {
		return nil, err
	}
	it.name, it.use, u.item = rv.Relname, u, it
	for i := range it.columns {
		it.columns[i].use = u
	}
	r.uses = append(r.uses, u)
	if u.table != nil && u.table.SQLView != "" {
		if sample != nil {
			return nil, notSupported("only a table can be sampled", "sample a table", "")
		}
		if err := r.view(u); err != nil {
			return nil, err
		}
	}
	return named(it, rv.Alias)
}

// tableName writes a table's name as the asker did.
func tableName(rv *pg.RangeVar) string {
	var parts []string
	for _, p := range []string{rv.Catalogname, rv.Schemaname, rv.Relname} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return said(parts...)
}

// named puts an alias on an item.
func named(it *item, alias *pg.Alias) (*item, error) {
	it.bare = true
	if alias != nil {
		it.name = alias.Aliasname
		if len(alias.Colnames) > 0 {
			if it.has != nil {
				return nil, notSupported("column names in an alias are not supported here", "leave them out", "")
			}
			columns, ok := rename(it.columns, alias.Colnames)
			if !ok {
				return nil, tooManyNames(alias.Aliasname)
			}
			it.columns, it.renamed = columns, true
			expose(it)
		}
	}
	it.named = it.name != ""
	return it, nil
}

func (r *resolver) subselect(s *pg.RangeSubselect, sc *scope) (*item, error) {
	saved := sc.active
	sc.active = s.Lateral
	columns, err := r.query(s.Subquery.GetSelectStmt(), sc, nil)
	sc.active = saved
	if err != nil {
		return nil, err
	}
	return named(&item{columns: derived(columns)}, s.Alias)
}

// function resolves functions in FROM, which see what stands to their left.
func (r *resolver) function(f *pg.RangeFunction, sc *scope) (*item, error) {
	saved := sc.active
	sc.active = true
	defer func() { sc.active = saved }()
	it := &item{}
	record := false
	for _, n := range f.Functions {
		pair := n.GetList().GetItems()
		call := (*pg.FuncCall)(nil)
		if len(pair) > 0 {
			call = pair[0].GetFuncCall()
		}
		if call == nil || len(pair) > 1 && pair[1].GetNode() != nil {
			return nil, notSupported("this kind of function in FROM is not supported", "select from a built-in function by its name", kindOf(n))
		}
		made := &source{how: transformation}
		if err := r.making(made, pair[0], sc); err != nil {
			return nil, err
		}
		name, _ := builtin(call.Funcname)
		columns := []string{name}
		switch {
		case len(f.Coldeflist) > 0:
			columns, record = nil, true
			for _, d := range f.Coldeflist {
				columns = append(columns, d.GetColumnDef().GetColname())
			}
		case recordColumns[name] != nil:
			columns, record = recordColumns[name], true
		case name == "unnest":
			columns = slices.Repeat([]string{name}, max(1, len(call.Args)))
		}
		for _, c := range columns {
			it.columns = append(it.columns, column{name: c, made: made})
		}
	}
	// A single function that returns plain values lends its column the alias.
	if f.Alias != nil && len(it.columns) == 1 && !record {
		it.columns[0].name = f.Alias.Aliasname
	}
	if f.Ordinality {
		it.columns = append(it.columns, column{name: "ordinality", made: &source{how: transformation}})
	}
	if f.Alias == nil && len(f.Functions) > 0 {
		it.name, _ = builtin(f.Functions[0].GetList().GetItems()[0].GetFuncCall().GetFuncname())
	}
	return named(it, f.Alias)
}

func (r *resolver) join(j *pg.JoinExpr, sc *scope) ([]*item, error) {
	left, err := r.fromItem(j.Larg, sc)
	if err != nil {
		return nil, err
	}
	// The right side may refer to the left by LATERAL, unless the join keeps rows of the right without a left one.
	inner := j.Jointype == pg.JoinType_JOIN_INNER || j.Jointype == pg.JoinType_JOIN_LEFT
	mark(left, true, !inner)
	before := sc.items
	sc.items = append(slices.Clip(before), left...)
	right, err := r.fromItem(j.Rarg, sc)
	sc.items = before
	mark(left, false, false)
	if err != nil {
		return nil, err
	}
	if err := r.distinct(left, right); err != nil {
		return nil, err
	}
	merged, err := r.merge(j, left, right)
	if err != nil {
		return nil, err
	}
	r.full = r.full || j.Jointype == pg.JoinType_JOIN_FULL
	both := append(left, right...)
	if j.Quals != nil {
		on := &scope{outer: sc.outer, with: sc.with, items: both}
		if err := r.making(&r.filters, j.Quals, on); err != nil {
			return nil, err
		}
	}
	if a := j.JoinUsingAlias; a != nil {
		r.aliases[a.Aliasname] = true
		both = append(both, &item{name: a.Aliasname, columns: merged, named: true})
	}
	if len(merged) > 0 {
		both = append([]*item{{columns: merged, bare: true}}, both...)
	}
	if j.Alias == nil {
		return both, nil
	}
	whole := &item{}
	for _, it := range both {
		if !it.bare {
			continue
		}
		expose(it) // the join's columns count those of its tables
		for _, c := range it.columns {
			if !slices.Contains(it.merged, c.name) {
				whole.columns = append(whole.columns, c)
			}
		}
	}
	it, err := named(whole, j.Alias)
	if err != nil {
		return nil, err
	}
	r.aliases[it.name] = true
	return []*item{it}, nil
}

// merge returns the columns that USING or NATURAL merges, and hides those that they merge from bare names.
func (r *resolver) merge(j *pg.JoinExpr, left, right []*item) ([]column, error) {
	sides := [2][]*item{left, right}
	var using []string
	if j.IsNatural {
		var err error
		if using, err = shared(left, right); err != nil {
			return nil, err
		}
		for _, it := range slices.Concat(left, right) {
			expose(it)
		}
	} else {
		var ok bool
		if using, ok = names(j.UsingClause); !ok {
			return nil, notSupported("this USING clause is not supported", "list columns", "")
		}
	}
	var merged []column
	for _, name := range using {
		made := &source{}
		if j.Jointype == pg.JoinType_JOIN_FULL {
			made.how = transformation // the one that is there
		}
		for i, side := range sides {
			c, in, err := bareColumn(side, name)
			switch {
			case err != nil:
				return nil, err
			case c == nil:
				return nil, acl.NotAvailable(said(name), "no column to join by on one side")
			}
			r.read(*c)
			r.filters.add(c.made)
			if j.Jointype == pg.JoinType_JOIN_FULL || (j.Jointype == pg.JoinType_JOIN_RIGHT) == (i == 1) {
				made.add(c.made)
			}
			in.merged = append(in.merged, name)
		}
		merged = append(merged, column{name: name, made: made})
	}
	return merged, nil
}

// bareColumn finds the column that a bare name means among items, nil if there is none.
func bareColumn(items []*item, name string) (found *column, in *item, err error) {
	for _, it := range items {
		if !it.bare || slices.Contains(it.merged, name) {
			continue
		}
		c, err := it.column(name)
		switch {
		case err != nil:
			return nil, nil, err
		case c == nil:
			expose(it)
			continue
		case found != nil:
			return nil, nil, ambiguous(said(name))
		}
		found, in = c, it
	}
	return found, in, nil
}

// shared lists the columns by which NATURAL joins, in the order of the left side.
func shared(left, right []*item) ([]string, error) {
	columns := func(side []*item) (list []string, err error) {
		for _, it := range side {
			for _, c := range it.columns {
				if c.unknown && it.bare {
					return nil, notSupported("NATURAL is not supported here", "write the join condition", "")
				}
				if it.bare && !slices.Contains(it.merged, c.name) {
					list = append(list, c.name)
				}
			}
		}
		return list, nil
	}
	l, err := columns(left)
	if err != nil {
		return nil, err
	}
	rightNames, err := columns(right)
	if err != nil {
		return nil, err
	}
	onRight := map[string]bool{}
	for _, name := range rightNames {
		onRight[name] = true
	}
	var using []string
	for _, name := range l {
		if onRight[name] {
			using = append(using, name)
			onRight[name] = false
		}
	}
	return using, nil
}
