package mysql

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// reserved is how the aliases inside of wrappers begin. An asker's name must not: a column of a policy that the
// database lost would otherwise be looked for in the asker's own tables.
const reserved = "_gate"

// with holds the common table expressions of one WITH clause that have come into view.
type with struct {
	outer *with
	ctes  []*cte
	later []string // names of a recursive clause that come into view later
}

type cte struct {
	name    string
	columns []column
	open    bool
	ready   bool  // are the columns known?
	unknown int32 // of a recursive expression: what its columns' numbers begin behind, see resolver.recursion
}

// resolver binds the names of one statement, or of one expression of the policy.
type resolver struct {
	dialect  *Dialect
	schema   *rewrite.Schema
	database string // where unqualified tables are
	uses     []*use
	features
	last       *column              // that was bound
	clause     string               // where no aggregate can stand, if the expression at hand stands there
	widths     map[ast.ExprNode]int // how many columns subqueries have, if not one
	outputs    int                  // names that mean a column of a select list
	aggregates int                  // that the expression at hand stands in
	depths     []int                // of the blocks in which columns inside of an aggregate were bound
	json       []*jsonTable         // of the text
	sql        string               // the text, as the parser read it
	// policy says that the SQL is the policy's: it may read everything, and every name in it gets bound for good.
	policy bool
	// governed says that the tree was parsed from printed text: what is not whole must stand in its wrapper.
	governed bool
	seen     map[string]bool // wrappers that were found to be right

	views    int                   // SQL views that the tree stands in
	expanded map[catalog.Ref]*view // nil while it is being expanded

	// Lineage: the columns of base tables and where each table's begin, their numbers, what the expression at hand is
	// made of, what conditions read.
	refs     []catalog.Ref
	first    map[catalog.Ref]int
	ids      []int32
	unknowns int32
	made     *made
	filters  made
}

// features are what a statement holds that bears on barriers.
type features struct {
	fallible   bool // an expression could fail on some row
	outer      bool // an outer join
	windows    bool // a window function
	subqueries bool // a subquery in an expression
	distinct   bool // SELECT DISTINCT
	totals     bool // SELECT DISTINCT with totals by ROLLUP
}

func newResolver(d *Dialect, s *rewrite.Schema) *resolver {
	return &resolver{
		dialect: d, schema: s, database: s.Database().Name, first: map[catalog.Ref]int{}, expanded: map[catalog.Ref]*view{},
	}
}

// Resolve binds every name.
func (t *tree) Resolve(s *rewrite.Schema) (rewrite.Reading, error) {
	r := newResolver(t.dialect, s)
	r.sql, r.json = t.sql, t.json
	out, err := r.query(t.query, nil, nil, nil, true)
	if err != nil {
		return rewrite.Reading{}, err
	}
	t.uses, t.features = r.uses, r.features
	return r.reading(out), nil
}

// query resolves a query and returns its columns. pending is the recursive expression that the query defines, if any;
// named says that somebody may see the names of its columns.
func (r *resolver) query(n ast.Node, outer *scope, w *with, pending *cte, named bool) (*source, error) {
	around, aggregates, clause := r.made, r.aggregates, r.clause
	defer func() { r.made, r.aggregates, r.clause = around, aggregates, clause }()
	r.made, r.clause = nil, ""
	if outer == nil {
		r.aggregates = 0
	}
	switch n := n.(type) {
	case *ast.SelectStmt:
		return r.selection(n, outer, w, pending, named)
	case *ast.SetOprStmt:
		w, err := r.with(n.With, w)
		if err != nil {
			return nil, err
		}
		out, err := r.query(n.SelectList, outer, w, pending, named)
		if err != nil {
			return nil, err
		}
		return out, r.tail(n.OrderBy, n.Limit, &scope{outer: outer, with: w, outputs: out.columns, sources: openSources(out)})
	case *ast.SetOprSelectList:
		w, err := r.with(n.With, w)
		if err != nil {
			return nil, err
		}
		var out *source
		for i, s := range n.Selects {
			next, err := r.query(s, outer, w, pending, named && i == 0)
			if err != nil {
				return nil, err
			}
			if i == 0 {
				out = next
				continue
			}
			if len(next.columns) != len(out.columns) && !out.open && !next.open {
				return nil, refuse("the parts of a set operation have different numbers of columns", "select as many columns in each", fmt.Sprint(len(out.columns), len(next.columns)))
			}
			out.unite(next)
		}
		return out, r.tail(n.OrderBy, n.Limit, &scope{outer: outer, with: w, outputs: out.columns, sources: openSources(out)})
	}
	return nil, notSupported("the statement holds a construct that is not supported", n)
}

// unite makes each column one that may also hold what the other query's column in its place does.
func (s *source) unite(other *source) {
	for i := range s.columns {
		c := &s.columns[i]
		if i >= len(other.columns) {
			c.number = number{}
			continue
		}
		o := &other.columns[i]
		c.number = either(c.number, o.number)
		m := made{from: c.from[:len(c.from):len(c.from)], how: c.how}
		m.column(o)
		c.from, c.how = m.from, m.how
	}
}

func openSources(out *source) []*source {
	if out.open {
		return []*source{{open: true}}
	}
	return nil
}

func (r *resolver) selection(n *ast.SelectStmt, outer *scope, w *with, pending *cte, named bool) (*source, error) {
	w, err := r.with(n.With, w)
	if err != nil {
		return nil, err
	}
	in := &scope{outer: outer, with: w}
	if n.From != nil {
		in.from = &from{names: map[string]bool{}, merged: map[mergedColumn]bool{}}
		if in, err = r.relation(n.From.TableRefs, in); err != nil {
			return nil, err
		}
	}
	r.distinct = r.distinct || n.Distinct
	r.totals = r.totals || n.Distinct && n.GroupBy != nil && n.GroupBy.Rollup
	for i := range n.WindowSpecs {
		spec := &n.WindowSpecs[i]
		r.made = &made{}
		if err := r.window(spec, in); err != nil {
			return nil, err
		}
		in.windows = append(in.windows, window{spec.Name.O, r.made})
	}
	out := &source{columns: make([]column, 0, len(n.Fields.Fields))}
	for _, f := range n.Fields.Fields {
		if f.WildCard != nil {
			if err := r.star(f.WildCard, in, out); err != nil {
				return nil, err
			}
			continue
		}
		var m made
		num, err := r.gather(&m, &f.Expr, in)
		if err != nil {
			return nil, err
		}
		out.columns = append(out.columns, column{name: r.outputName(f, named), number: num, from: m.from, how: m.how, window: r.windows && holds[*ast.WindowFuncExpr](f.Expr)})
	}
	if pending != nil && !pending.ready {
		pending.define(out)
		r.recursion(pending)
	}
	if n.Where != nil {
		if _, err := r.condition(&n.Where, in, "WHERE"); err != nil {
			return nil, err
		}
	}
	after := *in
	after.outputs = out.columns
	if out.open {
		after.sources = append(slices.Clone(in.sources), openSources(out)...)
	}
	if n.GroupBy != nil {
		r.made = nil
		for _, i := range n.GroupBy.Items {
			if err := positioned(i, out); err != nil {
				return nil, err
			}
			r.clause = "GROUP BY"
			_, err := r.expression(&i.Expr, &after)
			r.clause = ""
			if err != nil {
				return nil, err
			}
		}
	}
	if n.Having != nil {
		having := after
		if !r.policy {
			having.selected = r.selected(n, in)
		}
		if _, err := r.gather(&r.filters, &n.Having.Expr, &having); err != nil {
			return nil, err
		}
	}
	return out, r.tail(n.OrderBy, n.Limit, &after)
}

// tail resolves ORDER BY, in which a name on its own means a column of the select list first.
func (r *resolver) tail(order *ast.OrderByClause, limit *ast.Limit, in *scope) error {
	r.made = nil
	if order != nil {
		first := *in
		first.first = true
		for _, i := range order.Items {
			if err := positioned(i, &source{columns: in.outputs, open: len(in.sources) > 0 && in.sources[len(in.sources)-1].open}); err != nil {
				return err
			}
			s := in
			if _, name := i.Expr.(*ast.ColumnNameExpr); name {
				s = &first
			}
			if _, err := r.expression(&i.Expr, s); err != nil {
				return err
			}
		}
	}
	if limit == nil {
		return nil
	}
	for _, slot := range []*ast.ExprNode{&limit.Count, &limit.Offset} {
		switch (*slot).(type) {
		case nil, *test_driver.ValueExpr:
		default:
			return notSupported("a LIMIT that is not a number is not supported", *slot)
		}
	}
	return nil
}

// maxHeading is where the engine cuts the name of an expression.
const maxHeading = 255

// heading is a text as the name of a column: cut, and without the characters that a name cannot have.
func heading(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r > 0xffff:
			return '?'
		case unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r':
			return ' '
		}
		return r
	}, text)
	if len(text) > maxHeading {
		end := maxHeading
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	return strings.TrimSpace(text)
}

// positioned refuses a position that the select list does not have.
func positioned(i *ast.ByItem, out *source) error {
	p, ok := i.Expr.(*ast.PositionExpr)
	if !ok || out.open || p.N >= 1 && p.N <= len(out.columns) {
		return nil
	}
	return acl.NotAvailable(fmt.Sprintf("column %d of the select list", p.N), "no such position")
}

// condition resolves a condition on rows, in which no aggregate can stand.
func (r *resolver) condition(slot *ast.ExprNode, in *scope, clause string) (number, error) {
	r.clause = clause
	defer func() { r.clause = "" }()
	return r.gather(&r.filters, slot, in)
}

// selected are the columns that HAVING can name: those that the select list and GROUP BY name.
func (r *resolver) selected(n *ast.SelectStmt, in *scope) map[slot]bool {
	out := map[slot]bool{}
	add := func(e ast.ExprNode) {
		for p, ok := e.(*ast.ParenthesesExpr); ok; p, ok = e.(*ast.ParenthesesExpr) {
			e = p.Expr
		}
		name, ok := e.(*ast.ColumnNameExpr)
		if !ok {
			return
		}
		for _, s := range in.sources {
			if n := name.Name; n.Table.O == "" || s.named(n.Schema.O, n.Table.O) {
				if i, ok := s.find(n.Name.L); ok {
					out[slot{s, i}] = true
				}
			}
		}
	}
	for _, f := range n.Fields.Fields {
		switch {
		case f.WildCard == nil:
			add(f.Expr)
		case f.WildCard.Table.O == "":
			for _, s := range in.listed() {
				out[s] = true
			}
		default:
			for _, s := range in.sources {
				for i := range s.columns {
					if s.named("", f.WildCard.Table.O) {
						out[slot{s, i}] = true
					}
				}
			}
		}
	}
	if n.GroupBy != nil {
		for _, i := range n.GroupBy.Items {
			add(i.Expr)
		}
	}
	return out
}

// outputName is the name of a column of a select list. The engine names an expression by its text, which printing
// changes; where somebody may see the name, it is written down.
func (r *resolver) outputName(f *ast.SelectField, named bool) string {
	name := fieldName(f)
	if f.AsName.O != "" {
		return name
	}
	for _, j := range r.json {
		name = strings.ReplaceAll(name, j.standIn, j.text)
	}
	seen := named && !r.policy && !r.governed
	switch e := f.Expr.(type) {
	case *ast.ColumnNameExpr:
		if seen && r.last.name != name {
			f.AsName = e.Name.Name // a merged wrapper's column would go by its own spelling
		}
		return name
	case *test_driver.ValueExpr:
		printed, err := text(e)
		switch {
		case err != nil || e.Kind() == test_driver.KindString || !seen:
		case e.Kind() == test_driver.KindNull || strings.EqualFold(printed, name):
			return printed
		default:
			f.AsName = ast.NewCIStr(name)
		}
		return name
	}
	if !seen || name == "" {
		return name
	}
	// Whatever the engine would call it in the printed text could tell what wrappers hold.
	name = heading(name)
	if printed, err := text(f.Expr); err != nil || printed != name {
		f.AsName = ast.NewCIStr(name)
	}
	return name
}

// with brings the expressions of a WITH clause into view, one after the other. In a recursive clause each sees itself;
// MariaDB also lets it see later ones, MySQL takes such a name for a table, so that is refused.
func (r *resolver) with(n *ast.WithClause, outer *with) (*with, error) {
	if n == nil {
		return outer, nil
	}
	w := &with{outer: outer}
	if n.IsRecursive {
		for _, c := range n.CTEs {
			w.later = append(w.later, c.Name.O)
		}
	}
	for _, c := range n.CTEs {
		if err := r.unreserved(c.Name.O); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(w.ctes, func(o *cte) bool { return strings.EqualFold(o.name, c.Name.O) }) {
			return nil, ambiguous(c.Name.O)
		}
		def := &cte{name: c.Name.O}
		for _, name := range c.ColNameList {
			def.columns = append(def.columns, column{name: name.O})
		}
		var pending *cte
		if n.IsRecursive {
			w.ctes, w.later, pending = append(w.ctes, def), w.later[1:], def
		}
		out, err := r.query(c.Query.Query, nil, w, pending, len(c.ColNameList) == 0)
		if err != nil {
			return nil, err
		}
		if err := distinct(out, c.ColNameList, c.Name.O); err != nil {
			return nil, err
		}
		if !def.ready {
			def.define(out)
		}
		if n.IsRecursive {
			r.known(def, out.columns)
		} else {
			w.ctes = append(w.ctes, def)
		}
	}
	return w, nil
}

// define gives the expression the columns of its query, under its own names if it has any.
func (c *cte) define(out *source) {
	c.ready, c.open = true, out.open
	if len(c.columns) == 0 {
		c.columns = slices.Clone(out.columns)
		return
	}
	for i := range min(len(c.columns), len(out.columns)) {
		name := c.columns[i].name
		c.columns[i] = out.columns[i]
		c.columns[i].name = name
	}
}

// find returns the expression that an unqualified table name means, or nil. Engines differ in the case of these names.
func (w *with) find(name string) (*cte, error) {
	for ; w != nil; w = w.outer {
		for _, c := range w.ctes {
			if !strings.EqualFold(c.name, name) {
				continue
			}
			if c.name != name {
				return nil, refuse("a WITH name must be written the same way everywhere", "write "+name+" as in its definition", name)
			}
			if !c.ready {
				return nil, refuse("a recursive WITH must begin with a part that does not name itself", "write the part without recursion first", name)
			}
			return c, nil
		}
		if slices.ContainsFunc(w.later, func(l string) bool { return strings.EqualFold(l, name) }) {
			return nil, refuse("a name of a recursive WITH before its definition is not supported", "define "+name+" first", name)
		}
	}
	return nil, nil
}

func refuse(public, hint, detail string) error {
	return &acl.Refusal{Code: acl.CodeNotSupported, Public: public, Hint: hint, Detail: detail}
}

func (r *resolver) unreserved(name string) error {
	if !r.policy && !r.governed && len(name) >= len(reserved) && strings.EqualFold(name[:len(reserved)], reserved) {
		return refuse("names that begin with "+reserved+" are reserved", "choose another name", name)
	}
	return nil
}

func (r *resolver) items(items []*ast.ByItem, in *scope) error {
	for _, i := range items {
		if _, err := r.expression(&i.Expr, in); err != nil {
			return err
		}
	}
	return nil
}

// window resolves a window, which may build on a named one.
func (r *resolver) window(n *ast.WindowSpec, in *scope) error {
	name := n.Ref.O
	if n.OnlyAlias {
		name = n.Name.O
	}
	for _, w := range in.windows {
		if name != "" && strings.EqualFold(w.name, name) {
			r.made.add(w.made.from)
			r.made.raise(w.made.how)
		}
	}
	if n.PartitionBy != nil {
		if err := r.items(n.PartitionBy.Items, in); err != nil {
			return err
		}
	}
	if n.OrderBy != nil {
		return r.items(n.OrderBy.Items, in)
	}
	return nil
}

// gather resolves an expression of which m is to know what it reads.
func (r *resolver) gather(m *made, slot *ast.ExprNode, in *scope) (number, error) {
	around := r.made
	defer func() { r.made = around }()
	r.made = m
	n, err := r.expression(slot, in)
	if err == nil && r.width(*slot) != 1 {
		err = notSupported("a row of several columns stands where one value belongs", *slot)
	}
	return n, err
}

// expression resolves an expression and bounds its value.
func (r *resolver) expression(slot *ast.ExprNode, in *scope) (number, error) {
	switch n := (*slot).(type) {
	case *ast.ColumnNameExpr:
		return r.column(n.Name, in)
	case *ast.SubqueryExpr:
		r.subqueries = true
		out, err := r.query(n.Query, in, in.with, nil, false)
		if err != nil {
			return number{}, err
		}
		for i := range out.columns {
			r.made.column(&out.columns[i])
		}
		if len(out.columns) != 1 && !out.open {
			if r.widths == nil {
				r.widths = map[ast.ExprNode]int{}
			}
			r.widths[n] = len(out.columns)
		}
		if !single(n.Query) || len(out.columns) != 1 {
			return number{}, nil
		}
		return out.columns[0].number, nil
	}
	around := r.made
	if _, exists := (*slot).(*ast.ExistsSubqueryExpr); exists {
		r.made = nil // whether there are rows does not depend on their values
	}
	var few [4]number
	numbers := few[:0]
	before := len(r.depths)
	aggregate, _ := (*slot).(*ast.AggregateFuncExpr)
	_, windowed := (*slot).(*ast.WindowFuncExpr)
	if (aggregate != nil || windowed) && r.clause != "" {
		return number{}, notSupported("an aggregate or window function cannot stand in "+r.clause, *slot)
	}
	if aggregate != nil {
		r.aggregates++
		r.clause = "an aggregate"
		defer func() { r.clause = "" }()
	}
	err := operands(*slot,
		func(s *ast.ExprNode) error {
			n, err := r.expression(s, in)
			numbers = append(numbers, n)
			if sub, ok := (*s).(*ast.SubqueryExpr); ok && !manyRows(*slot) && !single(sub.Query) {
				r.fallible = true // more than one row for one value
			}
			return err
		},
		func(ast.Node) error { return nil },
		func(w *ast.WindowSpec) error { return r.window(w, in) },
	)
	r.made = around
	if err == nil {
		err = r.fitting(*slot)
	}
	if err != nil {
		return number{}, err
	}
	switch (*slot).(type) {
	case *ast.ParenthesesExpr:
	case *ast.AggregateFuncExpr:
		r.aggregates--
		if own := in.depth(); len(r.depths) > before && !slices.Contains(r.depths[before:], own) &&
			slices.ContainsFunc(r.depths[before:], func(d int) bool { return d < own }) {
			// It would be computed in the block around, which makes another query of this one.
			return number{}, notSupported(fmt.Sprintf("%s over columns of an outer query is not supported", aggregate.F), aggregate)
		}
		r.made.raise(aggregation)
	case *ast.WindowFuncExpr:
		r.made.raise(aggregation)
	default:
		r.made.raise(transformation)
	}
	return r.bound(*slot, numbers), nil
}

// width is how many columns an operand has.
func (r *resolver) width(e ast.ExprNode) int {
	switch n := e.(type) {
	case *ast.ParenthesesExpr:
		return r.width(n.Expr)
	case *ast.RowExpr:
		return len(n.Values)
	case *ast.SubqueryExpr:
		if w, ok := r.widths[n]; ok {
			return w
		}
	}
	return 1
}

// fitting refuses operands whose numbers of columns do not fit.
func (r *resolver) fitting(e ast.ExprNode) error {
	same := func(first ast.ExprNode, others ...ast.ExprNode) error {
		for _, o := range others {
			if r.width(o) != r.width(first) {
				return notSupported("operands have different numbers of columns", o)
			}
		}
		return nil
	}
	switch n := e.(type) {
	case *ast.ExistsSubqueryExpr, *ast.ParenthesesExpr, *ast.RowExpr:
		return nil
	case *ast.BinaryOperationExpr:
		if tight(n) == comparison {
			return same(n.L, n.R)
		}
	case *ast.CompareSubqueryExpr:
		return same(n.L, n.R)
	case *ast.PatternInExpr:
		if n.Sel != nil {
			return same(n.Expr, n.Sel)
		}
		return same(n.Expr, n.List...)
	case *ast.BetweenExpr:
		return same(n.Expr, n.Left, n.Right)
	}
	if len(r.widths) == 0 {
		return nil
	}
	return operands(e, func(s *ast.ExprNode) error {
		if r.width(*s) != 1 {
			return notSupported("a subquery for one value has several columns", *s)
		}
		return nil
	}, func(ast.Node) error { return nil }, func(*ast.WindowSpec) error { return nil })
}

// distinct refuses a table made of a query whose columns do not have names of their own, or not as many as are listed.
func distinct(out *source, listed []ast.CIStr, table string) error {
	if out.open {
		return nil
	}
	if len(listed) > 0 && len(listed) != len(out.columns) {
		return refuse("the column list of "+table+" has another length than its query has columns", "name each column", fmt.Sprint(len(listed), len(out.columns)))
	}
	seen := make(map[string]bool, len(out.columns))
	for i := range out.columns {
		name := out.columns[i].name
		if len(listed) > 0 {
			name = listed[i].O
		}
		if key := strings.ToLower(name); seen[key] {
			return ambiguous(name)
		}
		seen[strings.ToLower(name)] = true
	}
	return nil
}
