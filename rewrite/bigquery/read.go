//go:build bigquery

package bigquery

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-googlesql"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// value is what is known of a column or an expression of a resolved statement.
type value struct {
	from []catalog.Ref // the columns of base tables that it is made of
	made rewrite.Transform
	// void holds the reads of filtered tables for which it is NULL where the row is a hidden one, if the wrappers show nothing
	// of those. late holds the reads whose row filters the engine must have asked before it can compute the value. tame says
	// that it is written out and too ordinary for arithmetic on dates to fail; span is the sum of the numbers in it.
	void, late reads
	tame       bool
	span       int64
}

// reads is a set of places where a filtered table is read: the bits of their numbers.
type reads uint64

// maxReads is how many of them a statement may have, a CTE's as often as it is read.
const maxReads = 64

// scan is a place where a base table is read.
type scan struct {
	table *rewrite.Table
	at    int
}

// mention is a table or column that the statement reads, with its place in the text.
type mention struct {
	table  *rewrite.Table
	column *rewrite.Column // nil for the table itself
	at     int
}

// use is a column by which rows are chosen.
type use struct {
	column catalog.Ref
	at     int
}

// around is what surrounds an expression.
type around struct {
	at      int   // the nearest place in the text that is known
	exposed reads // whose rows pass here before anything that keeps hidden ones back for certain
	outer   reads // of those, the ones for a row of which this subquery is evaluated
	filter  bool  // it decides which rows there are
}

// reader reads a resolved statement: what it reads, what its columns are made of, and whether an error of it could tell
// of a hidden row.
//
// No construct of BigQuery is documented to keep an expression from being evaluated on rows that a filter beneath it will
// drop. What is documented is that IF evaluates only the branch that it takes. So where an expression can fail, the
// wrapper of a filtered table passes each column through IF(<row filter>, column, NULL): on a hidden row an expression sees
// NULLs whatever the engine makes of the order. That saves functions that return NULL for NULL, if for each filtered table
// whose rows are joined here one of the arguments comes of it: a row that passed may be joined with one that will not.
// What stands on an aggregate or a window of such rows cannot come too early either. Any other expression that can fail is
// refused, and its SAFE form suggested.
type reader struct {
	names    *names
	columns  map[int32]value
	stored   map[int32]mention // the columns of base tables
	ctes     map[string]cte
	loops    []cte            // recursive CTEs that are being read, from the outside in
	named    map[string][]int // where each name stands in the text, in lower case
	stars    []int
	scans    []scan
	filtered int // reads that were numbered
	mentions []mention
	filters  []use
	barred   bool
	risky    *acl.Refusal
	output   []rewrite.Output
	err      error
}

// cte is a query that others read by name.
type cte struct {
	columns []value
	exposed reads
}

func readStatement(r *resolved, query *node) (*reader, error) {
	rd := &reader{names: r.names, columns: map[int32]value{}, stored: map[int32]mention{}, ctes: map[string]cte{}, named: map[string][]int{}}
	query.walk(func(n *node) bool {
		switch n.kind {
		case "Identifier":
			name := strings.ToLower(n.name)
			rd.named[name] = append(rd.named[name], n.start)
		case "Star", "StarWithModifiers", "DotStar", "DotStarWithModifiers":
			rd.stars = append(rd.stars, n.start)
		}
		return true
	})
	top := must(rd, r.query.Query)
	if rd.err != nil {
		return nil, rd.err
	}
	rd.scan(top, around{})
	nameless := 0
	for _, c := range must(rd, r.query.OutputColumnList) {
		v := rd.columns[rd.id(must(rd, c.Column))]
		name := must(rd, c.Name)
		if strings.HasPrefix(name, "$") { // BigQuery calls a column without a name by its number among those
			name = fmt.Sprintf("f%d_", nameless)
			nameless++
		}
		rd.output = append(rd.output, rewrite.Output{Name: name, From: v.from, Transform: cmp.Or(v.made, rewrite.Transformation)})
	}
	return rd, rd.err
}

// reading puts what was found in the order of the text.
func (r *reader) reading() rewrite.Reading {
	slices.SortStableFunc(r.mentions, func(a, b mention) int { return a.at - b.at })
	slices.SortStableFunc(r.filters, func(a, b use) int { return a.at - b.at })
	out := rewrite.Reading{Output: r.output}
	for _, m := range r.mentions {
		i := slices.IndexFunc(out.Tables, func(o rewrite.Read) bool { return o.Table == m.table.Ref })
		if i < 0 {
			i = len(out.Tables)
			out.Tables = append(out.Tables, rewrite.Read{Table: m.table.Ref, Rules: m.table.Rules})
		}
		if m.column != nil && !slices.Contains(out.Tables[i].Columns, m.column.Ref) {
			out.Tables[i].Columns = append(out.Tables[i].Columns, m.column.Ref)
		}
	}
	for _, u := range r.filters {
		if !slices.Contains(out.Filters, u.column) {
			out.Filters = append(out.Filters, u.column)
		}
	}
	return out
}

// must asks the library, and does nothing once an answer was an error.
func must[T any](r *reader, ask func() (T, error)) T {
	var zero T
	if r.err != nil {
		return zero
	}
	v, err := ask()
	if err != nil {
		r.err = err
		return zero
	}
	return v
}

func (r *reader) id(c *googlesql.ResolvedColumn) int32 {
	if r.err != nil || c == nil {
		return -1
	}
	return must(r, c.ColumnId)
}

func (r *reader) ids(list func() ([]*googlesql.ResolvedColumn, error)) []int32 {
	var out []int32
	for _, c := range must(r, list) {
		out = append(out, r.id(c))
	}
	return out
}

func (r *reader) fail(n googlesql.ResolvedNode) {
	if r.err == nil {
		kind, _ := n.NodeKindString()
		r.err = &acl.Refusal{
			Code:   acl.CodeNotSupported,
			Public: "the statement uses a construct that is not supported",
			Hint:   "write the query without it",
			Detail: "resolved node " + kind,
		}
	}
}

// at returns where a node stands, or where what is around it does.
func (r *reader) at(n googlesql.ResolvedNode, in around) around {
	if l := must(r, n.GetParseLocationRangeOrNULL); l != nil && r.err == nil {
		in.at, _, r.err = places(l.GetString())
	}
	return in
}

// number numbers a read of a filtered table.
func (r *reader) number() reads {
	if r.filtered >= maxReads && r.err == nil {
		r.err = tooLarge(fmt.Sprintf("it reads filtered tables at more than %d places", maxReads))
	}
	r.filtered++
	return 1 << ((r.filtered - 1) % maxReads)
}

// again is a CTE at one of the places where it is read: its rows there are others than those at the next.
func (r *reader) again(c cte) cte {
	moved := map[reads]reads{}
	move := func(set reads) (out reads) {
		for bit := reads(1); bit != 0; bit <<= 1 {
			if set&bit == 0 {
				continue
			}
			if moved[bit] == 0 {
				moved[bit] = r.number()
			}
			out |= moved[bit]
		}
		return out
	}
	out := cte{exposed: move(c.exposed)}
	for _, v := range c.columns {
		v.void, v.late = move(v.void&c.exposed), move(v.late&c.exposed)
		out.columns = append(out.columns, v)
	}
	return out
}

// scan reads a scan. It returns the reads whose rows come out of it though a row filter may still have to drop them, in the
// order in which an engine may choose to work.
func (r *reader) scan(n googlesql.ResolvedScanNode, in around) reads {
	if r.err != nil || n == nil {
		return 0
	}
	in = r.at(n, in)
	in.filter = false
	switch n := n.(type) {
	case *googlesql.ResolvedSingleRowScan:
		return in.exposed
	case *googlesql.ResolvedTableScan:
		return r.table(n, in)
	case *googlesql.ResolvedProjectScan:
		in.exposed = r.scan(must(r, n.InputScan), in)
		for _, c := range must(r, n.ExprList) {
			r.compute(c, in)
		}
		for _, id := range r.ids(n.ColumnList) {
			r.mention(id, in.at)
		}
		return in.exposed
	case *googlesql.ResolvedFilterScan:
		in.exposed = r.scan(must(r, n.InputScan), in)
		in.filter = true
		r.expr(must(r, n.FilterExpr), in)
		return in.exposed
	case *googlesql.ResolvedJoinScan:
		left := r.scan(must(r, n.LeftScan), in)
		right := r.scan(must(r, n.RightScan), in)
		in.exposed = left | right
		in.filter = true
		if e := must(r, n.JoinExpr); e != nil {
			r.expr(e, in)
		}
		return in.exposed
	case *googlesql.ResolvedArrayScan:
		return r.array(n, in)
	case *googlesql.ResolvedAggregateScan:
		return r.aggregate(n, in)
	case *googlesql.ResolvedAnalyticScan:
		in.exposed = r.scan(must(r, n.InputScan), in)
		for _, g := range must(r, n.FunctionGroupList) {
			window := r.below(g, in)
			for _, f := range must(r, g.AnalyticFunctionList) {
				v := r.expr(must(r, f.Expr), in)
				v.from, v.late = merge(v.from, window), in.exposed&^in.outer // a window is of rows that passed
				r.columns[r.id(must(r, f.Column))] = v
			}
		}
		return in.exposed
	case *googlesql.ResolvedOrderByScan:
		in.exposed = r.scan(must(r, n.InputScan), in)
		for _, item := range must(r, n.OrderByItemList) {
			r.below(item, in)
		}
		return in.exposed
	case *googlesql.ResolvedLimitOffsetScan:
		return r.scan(must(r, n.InputScan), in)
	case *googlesql.ResolvedSetOperationScan:
		var all cte
		for i, item := range must(r, n.InputItemList) {
			got := r.item(item, in)
			if i > 0 {
				got = unite(all, got)
			}
			all = got
		}
		r.define(n.ColumnList, all.columns)
		return all.exposed
	case *googlesql.ResolvedWithScan:
		for _, e := range must(r, n.WithEntryList) {
			query := must(r, e.WithSubquery)
			exposed := r.scan(query, in)
			r.ctes[must(r, e.WithQueryName)] = cte{r.values(query), exposed}
		}
		return r.scan(must(r, n.Query), in)
	case *googlesql.ResolvedWithRefScan:
		c, ok := r.ctes[must(r, n.WithQueryName)]
		if !ok && r.err == nil {
			r.fail(n)
		}
		c = r.again(c)
		r.define(n.ColumnList, c.columns)
		return c.exposed | in.exposed
	case *googlesql.ResolvedRecursiveScan:
		all := r.item(must(r, n.NonRecursiveTerm), in)
		for range 2 { // a column may take the value of another one round later
			r.loops = append(r.loops, all)
			got := r.item(must(r, n.RecursiveTerm), in)
			r.loops = r.loops[:len(r.loops)-1]
			all = unite(all, got)
		}
		r.define(n.ColumnList, all.columns)
		return all.exposed
	case *googlesql.ResolvedRecursiveRefScan:
		if len(r.loops) == 0 {
			r.fail(n)
			return 0
		}
		loop := r.again(r.loops[len(r.loops)-1])
		r.define(n.ColumnList, loop.columns)
		return loop.exposed | in.exposed
	}
	r.fail(n)
	return 0
}

// item reads one input of a set operation.
func (r *reader) item(n *googlesql.ResolvedSetOperationItem, in around) cte {
	if r.err != nil || n == nil {
		return cte{}
	}
	out := cte{exposed: r.scan(must(r, n.Scan), in)}
	for _, id := range r.ids(n.OutputColumnList) {
		r.mention(id, in.at)
		out.columns = append(out.columns, r.columns[id])
	}
	return out
}

// unite puts the rows of two inputs together. What holds of a read in one of them holds of it in all, if the others have no
// rows of it.
func unite(a, b cte) cte {
	out := cte{exposed: a.exposed | b.exposed}
	for i, v := range a.columns {
		if i >= len(b.columns) {
			break
		}
		w := b.columns[i]
		out.columns = append(out.columns, value{
			from: merge(v.from, w.from),
			made: further(v.made, w.made),
			void: (v.void | out.exposed&^a.exposed) & (w.void | out.exposed&^b.exposed),
			late: (v.late | out.exposed&^a.exposed) & (w.late | out.exposed&^b.exposed),
		})
	}
	return out
}

func merge(a, b []catalog.Ref) []catalog.Ref {
	out := slices.Clip(a)
	for _, c := range b {
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// further is the more involved of two transforms.
func further(a, b rewrite.Transform) rewrite.Transform {
	rank := func(t rewrite.Transform) int {
		return slices.Index([]rewrite.Transform{"", rewrite.Identity, rewrite.Transformation, rewrite.Aggregation}, t)
	}
	if rank(a) >= rank(b) {
		return a
	}
	return b
}

// values are the columns of a scan.
func (r *reader) values(n googlesql.ResolvedScanNode) []value {
	list, ok := n.(interface {
		ColumnList() ([]*googlesql.ResolvedColumn, error)
	})
	if !ok {
		return nil
	}
	var out []value
	for _, id := range r.ids(list.ColumnList) {
		out = append(out, r.columns[id])
	}
	return out
}

// define says what the columns of a scan are, position by position.
func (r *reader) define(list func() ([]*googlesql.ResolvedColumn, error), columns []value) {
	for i, id := range r.ids(list) {
		if i < len(columns) {
			r.columns[id] = columns[i]
		}
	}
}

func (r *reader) table(n *googlesql.ResolvedTableScan, in around) reads {
	t := must(r, n.Table)
	if r.err != nil {
		return 0
	}
	src, ok := r.names.source[must(r, t.Name)]
	if !ok {
		r.fail(n)
		return 0
	}
	if here := (scan{src.table, in.at}); !slices.Contains(r.scans, here) { // a recursive term is read twice
		r.scans = append(r.scans, here)
	}
	r.mentions = append(r.mentions, mention{table: src.table, at: in.at})
	var own reads
	if src.table.Protected {
		own = r.number()
	}
	at := must(r, n.ColumnIndexList)
	for i, id := range r.ids(n.ColumnList) {
		c := src.columns[at[i]]
		r.columns[id] = value{from: []catalog.Ref{c.Ref}, made: rewrite.Identity, void: own}
		r.stored[id] = mention{table: src.table, column: c}
	}
	return own | in.exposed
}

func (r *reader) array(n *googlesql.ResolvedArrayScan, in around) reads {
	exposed := in.exposed
	if input := must(r, n.InputScan); input != nil {
		exposed = r.scan(input, in)
	}
	in.exposed = exposed
	var of value
	for _, e := range must(r, n.ArrayExprList) {
		v := r.expr(e, in)
		of = value{from: merge(of.from, v.from), void: of.void | v.void, late: of.late | v.late, made: further(of.made, v.made)}
	}
	if len(must(r, n.ArrayExprList)) > 1 {
		r.fail(n)
	}
	of.made = further(of.made, rewrite.Transformation)
	for _, id := range r.ids(n.ElementColumnList) {
		r.columns[id] = of // of a NULL there are no elements, or one that is NULL
	}
	if offset := must(r, n.ArrayOffsetColumn); offset != nil {
		r.columns[r.id(must(r, offset.Column))] = of
	}
	in.filter = true
	if e := must(r, n.JoinExpr); e != nil {
		r.expr(e, in)
	}
	return exposed
}

func (r *reader) aggregate(n *googlesql.ResolvedAggregateScan, in around) reads {
	in.exposed = r.scan(must(r, n.InputScan), in)
	for _, c := range must(r, n.GroupByList) {
		r.compute(c, in) // what is computed of a key can be computed before the rows are grouped
	}
	for _, c := range must(r, n.AggregateList) {
		r.compute(c, in)
		id := r.id(must(r, c.Column))
		v := r.columns[id]
		v.late = in.exposed &^ in.outer // there are no groups before there are rows
		r.columns[id] = v
	}
	for _, g := range must(r, n.GroupingCallList) {
		r.columns[r.id(must(r, g.OutputColumn))] = value{made: rewrite.Aggregation, late: in.exposed &^ in.outer}
	}
	return in.exposed
}

// computed is a column with the expression that makes it.
type computed interface {
	Column() (*googlesql.ResolvedColumn, error)
	Expr() (googlesql.ResolvedExprNode, error)
}

func (r *reader) compute(c computed, in around) {
	v := r.expr(must(r, c.Expr), in)
	r.columns[r.id(must(r, c.Column))] = v
}

// mention notes that a column of a base table is in the list of columns of a step that begins in the text at from, if it is
// named or a star stands there: the lists between two steps hold what nobody asked for.
func (r *reader) mention(id int32, from int) {
	m, ok := r.stored[id]
	if !ok {
		return
	}
	named := r.named[strings.ToLower(m.column.Name)]
	if len(named)+len(r.stars) == 0 {
		return
	}
	m.at = from
	for _, places := range [][]int{named, r.stars} {
		if i := slices.IndexFunc(places, func(at int) bool { return at >= from }); i >= 0 {
			m.at = places[i]
			break
		}
	}
	r.mentions = append(r.mentions, m)
}

// below reads the expressions of a node that makes no value, and returns the columns that they are made of.
func (r *reader) below(n googlesql.ResolvedNode, in around) []catalog.Ref {
	if r.err != nil || n == nil {
		return nil
	}
	var from []catalog.Ref
	for _, c := range must(r, n.GetChildNodes) {
		switch c := c.(type) {
		case googlesql.ResolvedExprNode:
			from = merge(from, r.expr(c, in).from)
		case computed: // read by its owner
		case googlesql.ResolvedScanNode:
			r.fail(c)
		default:
			from = merge(from, r.below(c, in))
		}
	}
	return from
}

func (r *reader) expr(n googlesql.ResolvedExprNode, in around) value {
	if r.err != nil || n == nil {
		return value{}
	}
	in = r.at(n, in)
	switch n := n.(type) {
	case *googlesql.ResolvedLiteral:
		return r.literal(n)
	case *googlesql.ResolvedColumnRef:
		id := r.id(must(r, n.Column))
		if m, ok := r.stored[id]; ok {
			m.at = in.at
			r.mentions = append(r.mentions, m)
		}
		v := r.columns[id]
		if in.filter {
			r.choose(v, in)
		}
		return v
	case *googlesql.ResolvedFunctionCall:
		return r.call(n, n.ResolvedFunctionCallBase, in)
	case *googlesql.ResolvedAggregateFunctionCall:
		v := r.call(n, n.ResolvedFunctionCallBase, in)
		v.from = merge(v.from, r.rest(n, n.ResolvedFunctionCallBase, in))
		return v
	case *googlesql.ResolvedAnalyticFunctionCall:
		v := r.call(n, n.ResolvedFunctionCallBase, in)
		v.from = merge(v.from, r.rest(n, n.ResolvedFunctionCallBase, in))
		return v
	case *googlesql.ResolvedCast:
		return r.cast(n, in)
	case *googlesql.ResolvedMakeStruct:
		out := value{made: rewrite.Transformation}
		for _, f := range must(r, n.FieldList) {
			v := r.expr(f, in)
			out.from, out.made, out.late = merge(out.from, v.from), further(out.made, v.made), out.late|v.late
		}
		return out
	case *googlesql.ResolvedGetStructField:
		v := r.expr(must(r, n.Expr), in)
		v.made = further(v.made, rewrite.Transformation)
		return v
	case *googlesql.ResolvedGetJsonField:
		v := r.expr(must(r, n.Expr), in)
		v.made = further(v.made, rewrite.Transformation)
		return v
	case *googlesql.ResolvedSubqueryExpr:
		return r.subquery(n, in)
	}
	r.fail(n)
	return value{}
}

// rest reads what else a call holds beside its arguments: orderings, a HAVING, a window.
func (r *reader) rest(n googlesql.ResolvedNode, f *googlesql.ResolvedFunctionCallBase, in around) []catalog.Ref {
	var from []catalog.Ref
	children, arguments := must(r, n.GetChildNodes), must(r, f.ArgumentListSize)
	for _, c := range children[min(int(arguments), len(children)):] { // the arguments come first
		if e, ok := c.(googlesql.ResolvedExprNode); ok {
			from = merge(from, r.expr(e, in).from)
		} else {
			from = merge(from, r.below(c, in))
		}
	}
	return from
}

// choose notes that rows are chosen by a value.
func (r *reader) choose(v value, in around) {
	for _, c := range v.from {
		r.filters = append(r.filters, use{c, in.at})
	}
}

// ordinary is the greatest sum of numbers by which a date is moved without a doubt that it stays one, be they years.
const ordinary = 500

// commonYear finds a year from which a date can be moved.
var commonYear = regexp.MustCompile(`^(1[5-9]|2[0-8])\d\d-`)

func (r *reader) literal(n *googlesql.ResolvedLiteral) value {
	v := must(r, n.Value)
	if r.err != nil {
		return value{}
	}
	out := value{made: rewrite.Transformation}
	null := must(r, v.IsNull)
	if null {
		out.void = ^reads(0)
	}
	kind := must(r, v.TypeKind)
	switch {
	case null || r.err != nil:
	case kind == googlesql.TypeKindTypeInt64:
		out.span = must(r, v.Int64Value)
		out.tame = -ordinary <= out.span && out.span <= ordinary
		out.span = max(out.span, -out.span)
	case kind == googlesql.TypeKindTypeEnum:
		out.tame = true
	case kind == googlesql.TypeKindTypeDate || kind == googlesql.TypeKindTypeDatetime || kind == googlesql.TypeKindTypeTimestamp:
		written, err := v.DebugString(false)
		r.err = err
		out.tame = commonYear.MatchString(written)
	}
	return out
}

func (r *reader) call(n googlesql.ResolvedExprNode, f *googlesql.ResolvedFunctionCallBase, in around) value {
	out := value{made: rewrite.Transformation, tame: true}
	var void reads
	arguments := must(r, f.ArgumentList)
	if must(r, f.GenericArgumentListSize) > 0 {
		r.fail(n)
		return out
	}
	for _, a := range arguments {
		v := r.expr(a, in)
		out.from, out.made = merge(out.from, v.from), further(out.made, v.made)
		out.late, void = out.late|v.late, void|v.void
		out.tame, out.span = out.tame && v.tame, out.span+v.span
	}
	out.tame = out.tame && out.span <= ordinary
	function := must(r, f.Function)
	if r.err != nil {
		return out
	}
	name := strings.ToLower(must(r, function.Name))
	risk := riskOf(name, arguments)
	safe := must(r, f.ErrorMode) == googlesql.ResolvedFunctionCallBaseEnums_ErrorModeSafeErrorMode
	switch {
	case risk == late:
		return value{from: out.from, made: rewrite.Aggregation} // whoever knows of what rows says how late
	case safe, risk == contained, risk == absorbing, in.exposed&^out.late == 0, out.tame && tameFunctions[name], r.settled(name, arguments):
	case risk == failing && in.exposed&^(out.late|void) == 0:
		r.barred = true
	default:
		r.risk(name, in)
	}
	if risk == failing || risk == contained {
		out.void = void
	}
	out.tame = out.tame && tameFunctions[name]
	return out
}

// risk refuses an expression that could fail on a hidden row.
func (r *reader) risk(what string, in around) {
	if r.risky == nil {
		said := cmp.Or(signs[what], strings.ToUpper(what))
		r.risky = &acl.Refusal{
			Code:   acl.CodeNotSupported,
			Public: fmt.Sprintf("%s can fail here, which is not supported over rows that are limited to yours", said),
			Hint:   "use a form that yields NULL instead: SAFE_DIVIDE, SAFE_MULTIPLY, SAFE_CAST, SAFE_OFFSET, or the function with SAFE. in front",
			Detail: fmt.Sprintf("%s at byte %d", what, in.at),
		}
	}
}

// many refuses a subquery that fails where it has several rows.
func (r *reader) many(in around) {
	if r.risky == nil {
		r.risky = &acl.Refusal{
			Code:   acl.CodeNotSupported,
			Public: "a subquery that may have several rows is not supported as a value over rows that are limited to yours",
			Hint:   "use an aggregate, like ANY_VALUE, or LIMIT 1",
			Detail: fmt.Sprintf("scalar subquery at byte %d", in.at),
		}
	}
}

func (r *reader) cast(n *googlesql.ResolvedCast, in around) value {
	e := must(r, n.Expr)
	v := r.expr(e, in)
	v.made = further(v.made, rewrite.Transformation)
	if r.err != nil {
		return v
	}
	for _, extra := range []googlesql.ResolvedExprNode{must(r, n.Format), must(r, n.TimeZone)} {
		if extra != nil {
			r.expr(extra, in)
			v.tame = false
		}
	}
	from, to := must(r, e.Type), must(r, n.Type)
	if r.err != nil {
		return v
	}
	switch {
	case must(r, n.ReturnNullOnError), in.exposed&^v.late == 0, widening(must(r, from.Kind), must(r, to.Kind)):
	case in.exposed&^(v.late|v.void) == 0:
		r.barred = true
	default:
		r.risk("CAST", in)
	}
	return v
}

// widening reports whether a cast can represent every value.
func widening(from, to googlesql.TypeKind) bool {
	if from == to {
		return from != googlesql.TypeKindTypeArray && from != googlesql.TypeKindTypeStruct
	}
	switch to {
	case googlesql.TypeKindTypeString:
		return from != googlesql.TypeKindTypeBytes && from != googlesql.TypeKindTypeArray && from != googlesql.TypeKindTypeStruct
	case googlesql.TypeKindTypeDouble:
		return from == googlesql.TypeKindTypeInt64 || from == googlesql.TypeKindTypeNumeric || from == googlesql.TypeKindTypeBignumeric
	case googlesql.TypeKindTypeNumeric:
		return from == googlesql.TypeKindTypeInt64
	case googlesql.TypeKindTypeBignumeric:
		return from == googlesql.TypeKindTypeInt64 || from == googlesql.TypeKindTypeNumeric
	case googlesql.TypeKindTypeInt64:
		return from == googlesql.TypeKindTypeBool || from == googlesql.TypeKindTypeEnum
	case googlesql.TypeKindTypeBytes:
		return from == googlesql.TypeKindTypeString
	case googlesql.TypeKindTypeDatetime, googlesql.TypeKindTypeTimestamp:
		return from == googlesql.TypeKindTypeDate
	}
	return false
}

func (r *reader) subquery(n *googlesql.ResolvedSubqueryExpr, in around) value {
	inner := in
	if must(r, n.ParameterListSize) == 0 { // it does not depend on the row
		inner.exposed = 0
	}
	inner.outer = inner.exposed
	kind := must(r, n.SubqueryType)
	query := must(r, n.Subquery)
	r.scan(query, inner)
	var out value
	if r.err != nil {
		return out
	}
	for _, v := range r.values(query) {
		out.from, out.made = merge(out.from, v.from), further(out.made, v.made)
	}
	switch kind {
	case googlesql.ResolvedSubqueryExprEnums_SubqueryTypeScalar:
		out.made = further(out.made, rewrite.Transformation)
		if in.exposed != 0 && !r.single(query) {
			r.many(in)
		}
		if in.filter {
			r.choose(out, in)
		}
	case googlesql.ResolvedSubqueryExprEnums_SubqueryTypeArray:
		out.made = rewrite.Aggregation
		if in.filter {
			r.choose(out, in)
		}
	case googlesql.ResolvedSubqueryExprEnums_SubqueryTypeExists:
		out = value{made: rewrite.Transformation}
	case googlesql.ResolvedSubqueryExprEnums_SubqueryTypeIn:
		v := r.expr(must(r, n.InExpr), in)
		if in.filter {
			r.choose(out, in)
		}
		out.from, out.made = merge(v.from, out.from), further(further(out.made, v.made), rewrite.Transformation)
	default:
		r.fail(n)
	}
	return out
}

// single reports whether a query has at most one row.
func (r *reader) single(n googlesql.ResolvedScanNode) bool {
	for r.err == nil {
		switch q := n.(type) {
		case *googlesql.ResolvedSingleRowScan:
			return true
		case *googlesql.ResolvedProjectScan:
			n = must(r, q.InputScan)
		case *googlesql.ResolvedFilterScan:
			n = must(r, q.InputScan)
		case *googlesql.ResolvedOrderByScan:
			n = must(r, q.InputScan)
		case *googlesql.ResolvedAggregateScan:
			return must(r, q.GroupByListSize) == 0
		case *googlesql.ResolvedLimitOffsetScan:
			l, ok := must(r, q.Limit).(*googlesql.ResolvedLiteral)
			if !ok {
				return false
			}
			v := must(r, l.Value)
			if r.err != nil {
				return false
			}
			return must(r, v.Int64Value) <= 1
		default:
			return false
		}
	}
	return false
}
