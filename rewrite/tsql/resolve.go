package tsql

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// reserved is how the names inside of wrappers begin. An asker's name must not: a column of a policy that the database
// lost would otherwise be looked for in the asker's own tables.
const reserved = "_gate"

// scope is one FROM: the place where its names are looked up first.
type scope struct {
	outer   *scope
	sources []*source
}

// source is one element of a FROM.
type source struct {
	name    string   // alias or table name; empty where it has none
	schema  string   // of a base table without an alias
	also    []string // other names, of the table that a policy is about
	columns []*col
	holds   func(column string) bool // of a table that a policy reads: is it one of its columns?
}

// col is a column of a source or of a result.
type col struct {
	name   string
	table  *rewrite.Table // nil unless it is a base table's
	stored *rewrite.Column
	of     *col // the column of a FROM that it is, as it is
	value
}

// cte is a common table expression in view.
type cte struct {
	name     string
	columns  []*col
	ready    bool // are its columns known?
	recursed bool
	size     int // of its query, with the ones that it reads
}

// use is one place where a statement reads a base table.
type use struct {
	slot      *ast.TableReference
	table     *rewrite.Table
	hint      string // NOLOCK or its like
	recursive bool   // it stands where a WITH reads itself
}

// findings are what is kept of resolving a statement.
type findings struct {
	uses   []*use
	output []*col
	// fallible says that an expression could fail on a row; stuck, if not nil, that one could on a row whose columns are
	// all NULL.
	fallible bool
	stuck    ast.Node
}

// mention is a table or column that the statement reads, with its place in the text.
type mention struct {
	table  *rewrite.Table
	column catalog.Ref
	at     int
}

// resolver binds the names of one statement by SQL Server's rules, on the tables and columns that the principal may
// query. The first refusal ends it; the methods do nothing after that.
type resolver struct {
	schema *rewrite.Schema
	findings
	// policy is the table whose policy is read; nil for an asker's statement. A policy's own SQL sees the whole catalog as
	// it is.
	policy *rewrite.Table
	values []any // of the policy's places
	filled []int // how often each was met
	// governed says that the tree was parsed from printed text: base tables stand in wrappers only.
	governed *governor

	err       error
	ctes      []*cte
	mentions  []mention
	filters   []mention // columns that choose rows
	filtering bool      // in a condition that chooses rows
	// collected, if not nil, takes the columns that a condition inside of an expression reads.
	collected *[]catalog.Ref
	inner     int // above 0 in a query inside of an expression
	size      int
	// views are the SQL views being resolved, from the outside in; viewAt is the place of the outermost, expanded their
	// number, as often as they are read.
	views            []*rewrite.Table
	viewAt, expanded int
	// defining says that a WITH is resolved, summedInWith that one makes something of groups, and readInside that one is
	// read in a query inside of an expression.
	defining, summedInWith, readInside bool
}

// The limits of what a statement may come to: tables in one FROM, and tables and their columns in all, a WITH as often
// as it is read.
const (
	maxJoined = 1000
	maxSize   = 200_000
)

func (r *resolver) refuse(no error) {
	if r.err == nil {
		r.err = no
	}
}

// statement resolves the whole and returns the columns of the result.
func (r *resolver) statement(s *ast.SelectStatement) []*col {
	if w := s.WithCtesAndXmlNamespaces; w != nil {
		for _, c := range w.CommonTableExpressions {
			r.define(c)
			if r.err != nil {
				return nil
			}
		}
	}
	r.output = r.query(s.QueryExpression, nil, nil)
	r.fallible = r.fallible || r.summedInWith && r.readInside
	return r.output
}

// define brings a WITH name into view. It sees the ones before it and itself: SQL Server takes a WITH that names itself
// for a recursive one, whose first part gives the columns.
func (r *resolver) define(c *ast.CommonTableExpression) {
	name := c.ExpressionName.Value
	r.unreserved(name)
	if slices.ContainsFunc(r.ctes, func(o *cte) bool { return same(o.name, name) }) {
		r.refuse(invalid("WITH names "+name+" twice", offset(c)))
	}
	def := &cte{name: name}
	r.ctes = append(r.ctes, def)
	complete := func(out []*col) {
		def.columns = r.named(out, c.Columns, name, offset(c))
		def.ready = true
	}
	around := r.size
	r.size, r.defining = 0, true
	defer func() { def.size, r.size, r.defining = r.size, around, false }()
	before, filters := 0, len(r.filters)
	body := r.query(c.QueryExpression, nil, func(first []*col) {
		complete(first)
		before = len(r.uses)
		for i, c := range def.columns { // what they are made of is known at the end
			c.from = append(slices.Clip(c.from), itself(i))
		}
	})
	if !def.ready {
		complete(body)
		before = len(r.uses)
	}
	if r.err != nil {
		return
	}
	if !def.recursed {
		def.columns = r.named(body, c.Columns, name, offset(c))
		return
	}
	for _, u := range r.uses[before:] {
		u.recursive = true
	}
	r.close(def, body, filters)
}

// itself stands, while a recursive WITH is resolved, for what its column is made of.
func itself(column int) catalog.Ref {
	return catalog.ColumnRef("", "", reserved, strconv.Itoa(column))
}

// close follows the columns of a recursive WITH until nothing is added, also into the filters noted meanwhile.
func (r *resolver) close(def *cte, body []*col, filters int) {
	columns := len(def.columns)
	follow := func(from []catalog.Ref) (out []catalog.Ref, how transformRank) {
		todo, seen := slices.Clone(from), make([]bool, columns)
		for len(todo) > 0 {
			ref := todo[0]
			todo = todo[1:]
			i, err := strconv.Atoi(ref.Column)
			if err != nil || i >= columns || ref != itself(i) {
				out = merge(out, []catalog.Ref{ref})
				continue
			}
			if !seen[i] && i < len(body) {
				seen[i] = true
				how = max(how, rank(body[i].transform))
				todo = append(todo, body[i].from...)
			}
		}
		return out, how
	}
	for i, c := range def.columns {
		var how transformRank
		c.from, how = follow([]catalog.Ref{itself(i)})
		c.transform = how.transform()
	}
	for _, f := range slices.Clone(r.filters[filters:]) {
		from, _ := follow([]catalog.Ref{f.column})
		for _, ref := range from {
			r.filters = append(r.filters, mention{column: ref, at: f.at})
		}
	}
	r.filters = slices.DeleteFunc(r.filters, func(m mention) bool { return m.column.Table == reserved && m.column.Database == "" })
}

// named gives the columns of a query the names that stand behind its alias. Without any, each must have one of its own.
func (r *resolver) named(out []*col, names []*ast.Identifier, said string, at int) []*col {
	if r.err != nil {
		return nil
	}
	if len(names) > 0 && len(names) != len(out) {
		r.refuse(invalid(fmt.Sprintf("%s has %d columns and names %d", said, len(out), len(names)), at))
		return nil
	}
	renamed := make([]*col, 0, len(out))
	for i, c := range out {
		name := c.name
		if len(names) > 0 {
			name = names[i].Value
		}
		switch {
		case name == "":
			r.refuse(invalid(fmt.Sprintf("column %d of %s has no name", i+1, said), at))
		case slices.ContainsFunc(renamed, func(o *col) bool { return same(o.name, name) }):
			r.refuse(invalid(fmt.Sprintf("%s has two columns %s", said, name), at))
		}
		v := c.value
		v.constant, v.tiny, v.summed, v.literal = false, false, false, nil
		renamed = append(renamed, &col{name: name, value: v})
	}
	return renamed
}

func (r *resolver) unreserved(name string) {
	if r.governed == nil && r.policy == nil && len(name) >= len(reserved) && strings.EqualFold(name[:len(reserved)], reserved) {
		r.refuse(&acl.Refusal{Code: acl.CodeNotSupported, Public: "names that begin with " + reserved + " are reserved", Hint: "choose another name", Detail: name})
	}
}

// query resolves a query and returns its columns. after, if not nil, is told the columns of the first part of a UNION
// before the others are resolved.
func (r *resolver) query(q ast.QueryExpression, outer *scope, after func([]*col)) []*col {
	if r.err != nil {
		return nil
	}
	switch q := q.(type) {
	case *ast.QuerySpecification:
		return r.selection(q, outer)
	case *ast.QueryParenthesisExpression:
		return r.query(q.QueryExpression, outer, nil)
	case *ast.BinaryQueryExpression:
		var spine []*ast.BinaryQueryExpression
		first := ast.QueryExpression(q)
		for {
			b, ok := first.(*ast.BinaryQueryExpression)
			if !ok {
				break
			}
			spine = append(spine, b)
			first = b.FirstQueryExpression
		}
		out := r.query(first, outer, nil)
		if after != nil && r.err == nil {
			after(out)
		}
		for i := len(spine) - 1; i >= 0 && r.err == nil; i-- {
			out = r.union(out, r.query(spine[i].SecondQueryExpression, outer, nil), spine[i])
			r.setOrder(spine[i].OrderByClause, out)
		}
		return out
	}
	r.refuse(notSupported(q, "the statement uses a construct that is not supported", "write the query without it"))
	return nil
}

// union joins the columns of two parts of a set operation.
func (r *resolver) union(a, b []*col, n *ast.BinaryQueryExpression) []*col {
	if r.err != nil {
		return nil
	}
	if len(a) != len(b) {
		r.refuse(invalid(fmt.Sprintf("the parts of a %s have %d and %d columns", strings.ToUpper(n.BinaryQueryExpressionType), len(a), len(b)), offset(n)))
		return nil
	}
	out := make([]*col, len(a))
	for i := range a {
		v := r.choice(n, a[i].value, b[i].value)
		v.transform = max(rank(a[i].transform), rank(b[i].transform)).transform()
		out[i] = &col{name: a[i].name, value: v}
	}
	return out
}

// setOrder resolves the ORDER BY of a set operation, which names columns of the result.
func (r *resolver) setOrder(o *ast.OrderByClause, out []*col) {
	if o == nil {
		return
	}
	f := findings{output: out}
	for _, e := range o.OrderByElements {
		if f.position(e.Expression) >= 0 {
			continue
		}
		if c, ok := e.Expression.(*ast.ColumnReferenceExpression); ok {
			r.refuse(acl.NotAvailable(said(c.MultiPartIdentifier.Identifiers), "no column of the set operation"))
			return
		}
		r.refuse(notSupported(e, "this ORDER BY of a UNION is not supported", "order by names of columns of its first part"))
	}
}

// selection resolves one SELECT.
func (r *resolver) selection(q *ast.QuerySpecification, outer *scope) []*col {
	s := &scope{outer: outer}
	if q.FromClause != nil {
		for i := range q.FromClause.TableReferences {
			s.sources = append(s.sources, r.relation(&q.FromClause.TableReferences[i], outer, nil)...)
		}
	}
	r.exposed(s.sources)
	if r.err != nil {
		return nil
	}
	var out []*col
	for _, e := range q.SelectElements {
		out = append(out, r.element(e, s)...)
	}
	if w := q.WhereClause; w != nil {
		r.filter(&w.SearchCondition, s)
	}
	if q.GroupByClause != nil {
		r.groupings(q.GroupByClause.GroupingSpecifications, s)
	}
	if q.HavingClause != nil {
		r.filter(&q.HavingClause.SearchCondition, s)
	}
	if q.OrderByClause != nil {
		for _, e := range q.OrderByClause.OrderByElements {
			r.orderTerm(e, out, s)
		}
	}
	if t := q.TopRowFilter; t != nil && !isCount(t.Expression, t.Percent) {
		r.refuse(notSupported(t, "a TOP that is not a number is not supported", "write the number"))
	}
	if o := q.OffsetClause; o != nil && (!isCount(o.OffsetExpression, false) || o.FetchExpression != nil && !isCount(o.FetchExpression, false)) {
		r.refuse(notSupported(o, "an OFFSET or FETCH that is not a number is not supported", "write the number"))
	}
	if q.ForClause == nil || r.err != nil {
		return out
	}
	if r.inner == 0 {
		r.refuse(notSupported(q.ForClause, "FOR XML is not supported for a whole result", "use it in a subquery, or select the rows"))
		return nil
	}
	// Characters that XML does not know make it fail.
	v := value{class: textual, transform: rewrite.Aggregation, strict: true}
	for _, c := range out {
		v.from = merge(v.from, c.from)
	}
	r.fails(q, v)
	return []*col{{value: v}}
}

func isCount(e ast.ScalarExpression, fraction bool) bool {
	_, ok := count(e)
	if p, is := e.(*ast.ParenthesisExpression); is {
		e = p.Expression
	}
	_, numeric := e.(*ast.NumericLiteral)
	return ok || fraction && numeric
}

// exposed refuses names of tables that stand for two in one FROM.
func (r *resolver) exposed(sources []*source) {
	if len(sources) < 2 {
		return
	}
	seen := make(map[string]bool, len(sources))
	for _, s := range sources {
		k := key(s.name)
		if s.name != "" && seen[k] {
			r.refuse(ambiguous(s.name, "table"))
			return
		}
		seen[k] = true
	}
}

// filter resolves a condition that chooses rows.
func (r *resolver) filter(b *ast.BooleanExpression, s *scope) {
	r.filtering = true
	r.condition(b, s)
	r.filtering = false
}

func (r *resolver) groupings(list []ast.GroupingSpecification, s *scope) {
	for _, g := range list {
		switch g := g.(type) {
		case *ast.ExpressionGroupingSpecification:
			r.expr(&g.Expression, s)
		case *ast.CompositeGroupingSpecification:
			r.groupings(g.Items, s)
		case *ast.RollupGroupingSpecification:
			r.groupings(g.Arguments, s)
		case *ast.CubeGroupingSpecification:
			r.groupings(g.Arguments, s)
		case *ast.GroupingSetsGroupingSpecification:
			r.groupings(g.Arguments, s)
		}
	}
}

// orderTerm resolves a term of ORDER BY: a name on its own is a column of the result first, in an expression it never
// is.
func (r *resolver) orderTerm(e *ast.ExpressionWithSortOrder, out []*col, s *scope) {
	switch n := e.Expression.(type) {
	case *ast.IntegerLiteral:
		if i, err := strconv.Atoi(n.Value); err != nil || i < 1 || i > len(out) {
			r.refuse(invalid("there is no column "+n.Value+" to order by", offset(n)))
		}
		return
	case *ast.ColumnReferenceExpression:
		if ids := n.MultiPartIdentifier.Identifiers; len(ids) == 1 {
			var first *col
			for _, c := range out {
				switch {
				case !same(c.name, ids[0].Value):
				case first == nil:
					first = c
				case c.of == nil || c.of != first.of:
					r.refuse(ambiguous(said(ids), "column"))
					return
				}
			}
			if first != nil {
				return
			}
		}
	}
	r.expr(&e.Expression, s)
}

// element resolves an entry of a select list.
func (r *resolver) element(e ast.SelectElement, s *scope) []*col {
	switch e := e.(type) {
	case *ast.SelectStarExpression:
		return r.star(e, s)
	case *ast.SelectScalarExpression:
		var of *col
		if c, ok := e.Expression.(*ast.ColumnReferenceExpression); ok {
			of = r.reference(c, s)
		}
		v := value{}
		if of != nil {
			v = of.value
		} else {
			v = r.expr(&e.Expression, s)
		}
		out := &col{value: v, of: of}
		if e.ColumnName != nil {
			out.name = aliasName(e.ColumnName)
		} else if c, ok := e.Expression.(*ast.ColumnReferenceExpression); ok && c.Collation == nil {
			out.name = c.MultiPartIdentifier.Identifiers[len(c.MultiPartIdentifier.Identifiers)-1].Value
		}
		return []*col{out}
	}
	r.refuse(notSupported(e, "the statement uses a construct that is not supported", "write the query without it"))
	return nil
}

// star expands to the columns of all sources, or of one.
func (r *resolver) star(n *ast.SelectStarExpression, s *scope) []*col {
	written := "*"
	sources := s.sources
	if n.Qualifier != nil {
		ids := n.Qualifier.Identifiers
		written = said(ids) + ".*"
		src := r.source(s.sources, ids, r.schema.Database().Name)
		if src == nil {
			r.refuse(acl.NotAvailable(written, "no table of that name in the FROM"))
			return nil
		}
		n.Qualifier.Identifiers = ids[len(ids)-1:]
		n.Qualifier.Count = 1
		sources = []*source{src}
	}
	if len(sources) == 0 {
		r.refuse(invalid("* needs a FROM", offset(n)))
	}
	var out []*col
	for _, src := range sources {
		if src.holds != nil { // of a policy: columns that are not listed, which only EXISTS takes
			out = append(out, &col{})
		}
		for _, c := range src.columns {
			r.read(c, r.where(n))
			out = append(out, &col{name: c.name, value: c.value, of: c})
		}
	}
	return out
}

// relation resolves an item of a FROM and returns its sources. left is what an APPLY lets it see.
func (r *resolver) relation(slot *ast.TableReference, outer *scope, left []*source) []*source {
	var spine []ast.TableReference
	for {
		switch j := (*slot).(type) {
		case *ast.QualifiedJoin:
			spine = append(spine, j)
			slot = &j.FirstTableReference
			continue
		case *ast.UnqualifiedJoin:
			spine = append(spine, j)
			slot = &j.FirstTableReference
			continue
		}
		break
	}
	out := r.item(slot, outer, left)
	for i := len(spine) - 1; i >= 0 && r.err == nil; i-- {
		switch j := spine[i].(type) {
		case *ast.QualifiedJoin:
			out = append(out, r.relation(&j.SecondTableReference, outer, left)...)
			r.filter(&j.SearchCondition, &scope{outer: outer, sources: joined(left, out)})
		case *ast.UnqualifiedJoin:
			seen := left
			if j.UnqualifiedJoinType != "CrossJoin" {
				seen = joined(left, out)
			}
			out = append(out, r.relation(&j.SecondTableReference, outer, seen)...)
		}
		if len(out) > maxJoined {
			r.refuse(tooLarge(fmt.Sprintf("a FROM joins more than %d tables", maxJoined)))
		}
	}
	return out
}

func joined(left, right []*source) []*source {
	if len(left) == 0 {
		return right
	}
	return slices.Concat(left, right)
}

// item resolves what is no join.
func (r *resolver) item(slot *ast.TableReference, outer *scope, left []*source) []*source {
	if r.err != nil {
		return nil
	}
	around := outer
	if len(left) > 0 {
		around = &scope{outer: outer, sources: left}
	}
	var src *source
	switch t := (*slot).(type) {
	case *ast.NamedTableReference:
		src = r.table(slot, t)
	case *ast.JoinParenthesisTableReference:
		return r.relation(&t.Join, outer, left)
	case *ast.QueryDerivedTable:
		r.unreserved(t.Alias.Value)
		if r.governed != nil {
			if src = r.governed.wrapper(r, t); src != nil || r.err != nil {
				break
			}
		}
		if len(left) > 0 {
			r.inner++
		}
		src = &source{name: t.Alias.Value, columns: r.named(r.query(t.QueryExpression, around, nil), t.Columns, t.Alias.Value, offset(t))}
		if len(left) > 0 {
			r.inner--
		}
	case *ast.InlineDerivedTable:
		src = r.inline(t, around)
	case *ast.GlobalFunctionTableReference:
		src = r.tableFunction(t, around)
	case *ast.PivotedTableReference:
		src = r.pivot(t, outer, left)
	case *ast.UnpivotedTableReference:
		src = r.unpivot(t, outer, left)
	default:
		r.refuse(notSupported(t, "the FROM clause uses a construct that is not supported", "write the query without it"))
	}
	if r.err != nil || src == nil {
		return nil
	}
	r.unreserved(src.name)
	if r.size += 1 + len(src.columns); r.size > maxSize {
		r.refuse(tooLarge(fmt.Sprintf("its tables and subqueries come to more than %d columns", maxSize)))
	}
	return []*source{src}
}

// inline resolves VALUES.
func (r *resolver) inline(t *ast.InlineDerivedTable, around *scope) *source {
	var out []*col
	for i, row := range t.RowValues {
		for j := range row.ColumnValues {
			v := r.expr(&row.ColumnValues[j], around)
			switch {
			case i == 0:
				out = append(out, &col{value: v})
			case j < len(out):
				out[j].value = r.choice(t, out[j].value, v)
			}
		}
		if len(row.ColumnValues) != len(out) {
			r.refuse(invalid("the rows of VALUES differ in length", offset(t)))
			return nil
		}
	}
	columns := r.named(out, t.Columns, t.Alias.Value, offset(t))
	for _, c := range columns {
		c.strict = true
	}
	return &source{name: t.Alias.Value, columns: columns}
}

func (r *resolver) tableFunction(t *ast.GlobalFunctionTableReference, around *scope) *source {
	name := strings.ToLower(t.Name.Value)
	var args []value
	for i := range t.Parameters {
		args = append(args, r.expr(&t.Parameters[i], around))
	}
	columns := tableFunctions[name]
	if name == "string_split" && len(args) < 3 {
		columns = columns[:1]
	}
	v := value{class: textual, transform: rewrite.Transformation, strict: true}
	for _, a := range args {
		v.from = merge(v.from, a.from)
	}
	if name != "string_split" || len(args) != 2 {
		v.class = ""
		r.fails(t, args...)
	}
	src := &source{}
	if t.Alias != nil {
		src.name = t.Alias.Value
	}
	for _, c := range columns {
		src.columns = append(src.columns, &col{name: c, value: v})
	}
	if len(t.Columns) > 0 {
		src.columns = r.named(src.columns, t.Columns, src.name, offset(t))
	}
	return src
}

// pivoted resolves what a PIVOT or UNPIVOT turns around, which must be one table or subquery.
func (r *resolver) pivoted(slot *ast.TableReference, outer *scope, left []*source) *source {
	switch (*slot).(type) {
	case *ast.NamedTableReference, *ast.QueryDerivedTable:
	default:
		r.refuse(notSupported(*slot, "a PIVOT of joined tables is not supported", "join them in a subquery with an alias"))
		return nil
	}
	in := r.item(slot, outer, left)
	if r.err != nil {
		return nil
	}
	if in[0].holds != nil {
		r.refuse(notSupported(*slot, "a PIVOT in a policy is not supported", "write conditions"))
	}
	return in[0]
}

// pivot groups by every column of its input that it does not name.
func (r *resolver) pivot(t *ast.PivotedTableReference, outer *scope, left []*source) *source {
	in := r.pivoted(&t.TableReference, outer, left)
	if r.err != nil {
		return nil
	}
	s := &scope{sources: []*source{in}}
	total, by := r.reference(t.ValueColumns[0], s), r.reference(t.PivotColumn, s)
	if r.err != nil {
		return nil
	}
	src := &source{name: t.Alias.Value}
	for _, c := range in.columns {
		if c != total && c != by {
			r.read(c, r.where(t))
			src.columns = append(src.columns, &col{name: c.name, value: c.value})
		}
	}
	// The names are read as values of the column's type.
	if by.class != textual && (by.class != numeric || slices.ContainsFunc(t.InColumns, func(id *ast.Identifier) bool { return numeral(id.Value, 0) != len(id.Value) })) {
		r.fails(t, by.value, total.value)
	}
	v := value{from: merge(total.from, by.from), transform: rewrite.Aggregation, strict: true}
	for _, id := range t.InColumns {
		if slices.ContainsFunc(src.columns, func(c *col) bool { return same(c.name, id.Value) }) {
			r.refuse(invalid("the PIVOT makes two columns "+id.Value, offset(t)))
		}
		src.columns = append(src.columns, &col{name: id.Value, value: v})
	}
	return src
}

// unpivot makes rows of columns.
func (r *resolver) unpivot(t *ast.UnpivotedTableReference, outer *scope, left []*source) *source {
	in := r.pivoted(&t.TableReference, outer, left)
	if r.err != nil {
		return nil
	}
	s := &scope{sources: []*source{in}}
	v := value{transform: rewrite.Transformation, strict: true}
	var taken []*col
	for _, c := range t.InColumns {
		found := r.reference(c, s)
		if r.err != nil {
			return nil
		}
		taken = append(taken, found)
		v.from = merge(v.from, found.from)
	}
	src := &source{name: t.Alias.Value} // the columns are of one type, so nothing is converted
	for _, c := range in.columns {
		if !slices.Contains(taken, c) {
			src.columns = append(src.columns, &col{name: c.name, value: c.value})
		}
	}
	for i, id := range []*ast.Identifier{t.ValueColumn, t.PivotColumn} {
		if slices.ContainsFunc(src.columns, func(c *col) bool { return same(c.name, id.Value) }) {
			r.refuse(invalid("the UNPIVOT makes two columns "+id.Value, offset(t)))
		}
		own := v
		if i == 1 {
			own = value{class: textual, transform: rewrite.Transformation, strict: true}
		}
		src.columns = append(src.columns, &col{name: id.Value, value: own})
	}
	return src
}

// table resolves a name in a FROM: a WITH name if one is in view, else a base table.
func (r *resolver) table(slot *ast.TableReference, t *ast.NamedTableReference) *source {
	ids := t.SchemaObject.Identifiers
	base := ids[len(ids)-1]
	alias := ""
	if t.Alias != nil {
		alias = t.Alias.Value
	}
	if len(ids) == 1 {
		for _, c := range r.ctes {
			if same(c.name, base.Value) {
				return r.cteSource(c, t, alias)
			}
		}
	}
	written := said(ids)
	if r.governed != nil {
		r.refuse(fmt.Errorf("tsql: %s stands outside of its wrapper", written))
		return nil
	}
	if r.policy != nil {
		return r.policyTable(t, written, alias)
	}
	at, ok := r.locate(ids)
	if !ok {
		r.refuse(acl.NotAvailable(written, "of another database or server"))
		return nil
	}
	table, ok, err := r.schema.Table(at)
	switch {
	case err != nil:
		r.refuse(err)
		return nil
	case !ok:
		r.refuse(acl.NotAvailable(written, r.schema.Absence(at)))
		return nil
	case len(table.Columns) == 0:
		r.refuse(acl.NotAvailable(written, "the catalog knows none of its columns"))
		return nil
	case table.SQLView != "":
		return r.view(slot, t, table, written, alias)
	case table.Part:
		r.refuse(notSupported(t, written+" is a part of another table that does not show all of its rows", "query that table"))
		return nil
	}
	u := &use{slot: slot, table: table}
	for _, h := range t.TableHints {
		u.hint = dirty[h.(*ast.TableHint).HintKind]
	}
	r.uses = append(r.uses, u)
	r.mayFail(table)
	r.mentions = append(r.mentions, mention{table: table, at: r.where(t)})
	src := &source{name: alias, columns: stored(table)}
	if alias == "" {
		src.name, src.schema = base.Value, schemaName(table.Ref.Schema)
	}
	return src
}

// stored returns the columns of a base table as a principal reads them.
func stored(t *rewrite.Table) []*col {
	out := make([]*col, len(t.Columns))
	for i := range t.Columns {
		c := &t.Columns[i]
		v := value{class: classOf(c.Type), from: []catalog.Ref{c.Ref}, transform: rewrite.Identity, strict: true}
		if c.Mask != nil {
			v.class = maskedClass(c.Mask, v.class)
		}
		out[i] = &col{name: c.Name, table: t, stored: c, value: v}
	}
	return out
}

// maskedClass is the class of a masked column.
func maskedClass(m *rewrite.Mask, raw class) class {
	switch m.Kind {
	case acl.MaskNull:
		return raw
	case acl.MaskHash, acl.MaskPartial:
		return textual
	case acl.MaskConstant:
		if _, ok := m.Constant.(string); ok {
			return textual
		}
		return numeric
	}
	return ""
}

// mayFail notes that a mask of the policy's own making, which could fail, stands in front of a filter.
func (r *resolver) mayFail(t *rewrite.Table) {
	r.fallible = r.fallible || t.Protected && slices.ContainsFunc(t.Columns, func(c rewrite.Column) bool {
		return c.Mask != nil && c.Mask.Kind == acl.MaskExpression
	})
}

// schemaName is the schema that a table of the catalog is in: where the catalog leaves it out, it is dbo.
func schemaName(schema string) string { return cmp.Or(schema, "dbo") }

// locate returns the complete name of a table of the statement's own database. A name without a schema is in dbo, which
// is what the guard takes for the default schema of whoever runs the statement; it is written out.
func (r *resolver) locate(ids []*ast.Identifier) (catalog.Ref, bool) {
	database := r.schema.Database().Name
	schema := ""
	switch len(ids) {
	case 1:
		if n := len(r.views); n > 0 { // a SQL view looks in its own schema first
			home := r.views[n-1].Ref
			if _, ok := r.schema.Exists(catalog.TableRef(database, home.Schema, ids[0].Value)); ok {
				schema = home.Schema
			}
		}
	case 2:
		schema = ids[0].Value
	case 3:
		if !same(ids[0].Value, database) {
			return catalog.Ref{}, false
		}
		schema = ids[1].Value
	default:
		return catalog.Ref{}, false
	}
	name := ids[len(ids)-1].Value
	at := catalog.TableRef(database, schemaName(schema), name)
	if same(at.Schema, "dbo") {
		if _, ok := r.schema.Exists(at); !ok {
			at.Schema = ""
		}
	}
	return at, true
}

func (r *resolver) cteSource(c *cte, t *ast.NamedTableReference, alias string) *source {
	if len(t.TableHints) > 0 {
		r.refuse(notSupported(t, "a hint on a WITH name is not supported", "leave it out"))
	}
	if !c.ready {
		r.refuse(invalid(c.name+" names itself in its first part; a table of that name needs its schema in front", offset(t)))
		return nil
	}
	if c == r.ctes[len(r.ctes)-1] {
		c.recursed = true // or it is read behind its WITH, where nothing asks
	}
	r.size += c.size
	r.readInside = r.readInside || r.inner > 0
	// A server that tells cases apart must not take the name for a table.
	t.SchemaObject.Identifiers[0].Value, t.SchemaObject.BaseIdentifier.Value = c.name, c.name
	src := &source{name: cmp.Or(alias, c.name)}
	for _, o := range c.columns {
		v := o.value
		v.strict = true
		src.columns = append(src.columns, &col{name: o.name, value: v})
	}
	return src
}

// source finds a table of a FROM by what qualifies a column.
func (r *resolver) source(sources []*source, ids []*ast.Identifier, database string) *source {
	for _, s := range sources {
		by := ids[len(ids)-1].Value
		if s.name == "" || !same(s.name, by) && !slices.ContainsFunc(s.also, func(n string) bool { return same(n, by) }) {
			continue
		}
		switch len(ids) {
		case 1:
			return s
		case 2, 3:
			if s.schema == "" || len(ids) == 3 && !same(ids[0].Value, database) {
				continue
			}
			if schema := ids[len(ids)-2].Value; same(cmp.Or(schema, "dbo"), s.schema) {
				return s
			}
		}
	}
	return nil
}

// reference binds the name of a column, from the inside out, and drops the schema in front of its table: wrappers have
// none.
func (r *resolver) reference(n *ast.ColumnReferenceExpression, s *scope) *col {
	if r.err != nil {
		return nil
	}
	if n.ColumnType != "Regular" {
		r.refuse(notSupported(n, "pseudo columns are not supported", "name the column"))
		return nil
	}
	ids := n.MultiPartIdentifier.Identifiers
	name := ids[len(ids)-1].Value
	hidden := false // a table of the same name lies between
	for sc := s; sc != nil; sc = sc.outer {
		sources := sc.sources
		if len(ids) > 1 {
			src := r.source(sc.sources, ids[:len(ids)-1], r.schema.Database().Name)
			if src == nil {
				hidden = hidden || r.source(sc.sources, ids[len(ids)-2:len(ids)-1], "") != nil
				continue
			}
			sources = []*source{src}
		}
		var found *col
		var in *source
		for _, src := range sources {
			for _, c := range src.columns {
				if !same(c.name, name) {
					continue
				}
				if found != nil {
					r.refuse(ambiguous(said(ids), "column"))
					return nil
				}
				found, in = c, src
			}
			if src.holds != nil && src.holds(name) {
				if found != nil {
					r.refuse(ambiguous(said(ids), "column"))
					return nil
				}
				found, in = &col{name: name, value: value{strict: true}}, src
			}
		}
		switch {
		case found != nil:
		case len(ids) > 1: // SQL Server looks no further
			r.refuse(acl.NotAvailable(said(ids), r.absence(&scope{sources: sources}, name)))
			return nil
		default:
			continue
		}
		if len(ids) > 2 {
			if hidden {
				r.refuse(ambiguous(said(ids), "column"))
				return nil
			}
			n.MultiPartIdentifier.Identifiers = ids[len(ids)-2:]
			n.MultiPartIdentifier.Count = 2
		}
		if r.policy != nil { // for good, whatever stands around it later
			n.MultiPartIdentifier.Identifiers = []*ast.Identifier{identifier(in.name), identifier(name)}
			n.MultiPartIdentifier.Count = 2
		}
		r.read(found, r.where(n))
		r.decides(found.from, r.where(n))
		return found
	}
	if len(ids) > 1 {
		r.refuse(acl.NotAvailable(said(ids), "no table of that name in the FROM"))
		return nil
	}
	r.refuse(acl.NotAvailable(said(ids), r.absence(s, name)))
	return nil
}

// decides notes columns that a condition reads.
func (r *resolver) decides(from []catalog.Ref, at int) {
	if r.collected != nil {
		*r.collected = merge(*r.collected, from)
	}
	if r.filtering {
		for _, ref := range from {
			r.filters = append(r.filters, mention{column: ref, at: at})
		}
	}
}

// absence tells the audit what a column that was not found is in the tables around it.
func (r *resolver) absence(s *scope, column string) string {
	var out []string
	seen := map[catalog.Ref]bool{}
	for ; s != nil; s = s.outer {
		for _, src := range s.sources {
			for _, c := range src.columns {
				if c.table == nil || seen[c.table.Ref] {
					continue
				}
				seen[c.table.Ref] = true
				t := c.table.Ref
				out = append(out, r.schema.Absence(catalog.ColumnRef(t.Database, t.Schema, t.Table, column)))
			}
		}
	}
	return strings.Join(out, "; ")
}

// where is the place of a node in the asker's text.
func (r *resolver) where(n node) int {
	if len(r.views) > 0 {
		return r.viewAt
	}
	return offset(n)
}

// read notes that a column is read.
func (r *resolver) read(c *col, at int) {
	if c.stored != nil {
		r.mentions = append(r.mentions, mention{table: c.table, column: c.stored.Ref, at: at})
	}
}

// reads lists what was read in the order of the text.
func (r *resolver) reads() []rewrite.Read {
	slices.SortStableFunc(r.mentions, func(a, b mention) int { return cmp.Compare(a.at, b.at) })
	var out []rewrite.Read
	index := map[catalog.Ref]int{}
	seen := map[catalog.Ref]bool{}
	for _, m := range r.mentions {
		i, ok := index[m.table.Ref]
		if !ok {
			i = len(out)
			index[m.table.Ref] = i
			out = append(out, rewrite.Read{Table: m.table.Ref, Rules: m.table.Rules})
		}
		if !m.column.IsZero() && !seen[m.column] {
			seen[m.column] = true
			out[i].Columns = append(out[i].Columns, m.column)
		}
	}
	return out
}

// chosenBy lists the columns that choose rows in the order of the text.
func (r *resolver) chosenBy() []catalog.Ref {
	slices.SortStableFunc(r.filters, func(a, b mention) int { return cmp.Compare(a.at, b.at) })
	var out []catalog.Ref
	for _, f := range r.filters {
		out = merge(out, []catalog.Ref{f.column})
	}
	return out
}

// outputs lists the columns of a result with where they come from.
func outputs(columns []*col) []rewrite.Output {
	var out []rewrite.Output
	for _, c := range columns {
		t := c.transform
		if t == "" {
			t = rewrite.Identity
			if len(c.from) == 0 {
				t = rewrite.Transformation
			}
		}
		out = append(out, rewrite.Output{Name: c.name, From: c.from, Transform: t})
	}
	return out
}

// said is a name as the asker wrote it.
func said(ids []*ast.Identifier) string {
	var parts []string
	for _, id := range ids {
		switch id.QuoteType {
		case "SquareBracket":
			parts = append(parts, "["+strings.ReplaceAll(id.Value, "]", "]]")+"]")
		case "DoubleQuote":
			parts = append(parts, `"`+strings.ReplaceAll(id.Value, `"`, `""`)+`"`)
		default:
			parts = append(parts, id.Value)
		}
	}
	return strings.Join(parts, ".")
}

func ambiguous(said, kind string) *acl.Refusal {
	no := &acl.Refusal{Code: acl.CodeAmbiguous, Public: said + " could be a column of several tables", Hint: "write the table or its alias in front"}
	if kind == "table" {
		no.Public, no.Hint = said+" names two tables of one FROM", "give each table an alias of its own"
	}
	return no
}
