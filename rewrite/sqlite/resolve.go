package sqlite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sqlc-dev/meyer/ast"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// scope is the FROM of one SELECT: the place where its names are looked up first.
type scope struct {
	outer   *scope
	sources []*source
	visible []name // what an unqualified name can mean, in the order of a star
	aliases []string
	titles  []string // what columns without a name of their own are called after, which no name may mean
	named   bool     // aliases can be used: all clauses but the list of columns itself
	pending []*ast.Expr
}

// name is a column as an unqualified name finds it: USING and NATURAL make one of several.
type name struct {
	text    string
	columns []*column
}

// source is one item of a FROM.
type source struct {
	name    string // alias or table name; empty for a subquery without one
	schema  string // of a base table
	table   *rewrite.Table
	columns []*column
	quiet   []*column // can be named, but are not in a star
	holds   func(column string) bool
	rowid   bool // a name like rowid means something here
}

type column struct {
	name   string
	table  *rewrite.Table  // nil unless it is a base table's
	stored *rewrite.Column // of table
}

// with is one WITH clause; the inner one hides names of the outer.
type with struct {
	outer *with
	ctes  []*cte
}

type cte struct {
	node    *ast.CTE
	within  *with
	outer   *scope
	state   cteState
	size    int             // of its body, with the bodies that it reads
	direct  []*ast.TableRef // where its own name means the recursive table
	columns []*column
}

type cteState uint8

const (
	cteUntouched cteState = iota
	cteOpen
	cteDone
)

// boundTable is a place where a base table is read.
type boundTable struct {
	ref   *ast.TableRef
	table *rewrite.Table
}

// mention is a table or column that the statement reads, with its place in the text.
type mention struct {
	table  *rewrite.Table
	column catalog.Ref
	at     int
}

// resolver binds the names of one statement by SQLite's rules, on the tables and columns that the principal may query.
// The first refusal ends it; the methods do nothing after that.
type resolver struct {
	schema *rewrite.Schema
	sql    string
	// policy is the table whose policy is read; nil for an asker's statement. A policy's own SQL sees the whole
	// catalog as it is.
	policy *rewrite.Table
	values []any // of the policy's places, by the number of their parameter
	filled []int // how often each was met

	err      error
	size     int // tables and their columns, a CTE's body as often as it is read: what SQLite makes of the statement
	work     int // tables and their columns, each body once
	tables   []boundTable
	mentions []mention
	scopes   []*scope
	inCTE    int
	texts    []*ast.Ident // double-quoted texts inside CTEs
	moved    bool         // some CTE is read in a subquery below its WITH
}

// The limits of what a statement may come to. SQLite has those on joins and columns; it has none on how often the body of
// a CTE multiplies, which takes it memory without bounds before the first row.
const (
	maxJoined  = 64
	maxColumns = 2000
	maxSize    = 200_000
)

func (r *resolver) refuse(no error) {
	if r.err == nil {
		r.err = no
	}
}

// query resolves a SELECT and returns its columns; a nil one stands for columns that are not listed.
func (r *resolver) query(n *ast.SelectStmt, outer *scope, in *with) []*column {
	in, done := r.with(n.With, outer, in)
	columns := r.cores(n, outer, in, func(int, []*column) {})
	done()
	return columns
}

// with enters a WITH clause. done resolves the CTEs that nothing read: they count too.
func (r *resolver) with(n *ast.With, outer *scope, in *with) (inner *with, done func()) {
	if n == nil {
		return in, func() {}
	}
	inner = &with{outer: in}
	for _, c := range n.CTEs {
		if slices.ContainsFunc(inner.ctes, func(o *cte) bool { return same(o.node.Name.Name, c.Name.Name) }) {
			r.refuse(invalid("WITH names " + c.Name.Raw + " twice"))
		}
		inner.ctes = append(inner.ctes, &cte{node: c, within: inner, outer: outer})
	}
	return inner, func() {
		for _, c := range inner.ctes {
			r.define(c)
		}
	}
}

// cores resolves the terms of a compound in order and returns the columns of the first, which after is told once each
// term is resolved.
func (r *resolver) cores(n *ast.SelectStmt, outer *scope, in *with, after func(term int, first []*column)) []*column {
	var first []*column
	var scopes []*scope
	for i, core := range n.Cores {
		if r.err != nil {
			return nil
		}
		var columns []*column
		switch core := core.(type) {
		case *ast.SelectQuery:
			if i < len(n.Cores)-1 && (core.OrderBy != nil || core.Limit != nil) {
				r.refuse(invalid("ORDER BY and LIMIT stand after the last SELECT of a compound"))
				return nil
			}
			var s *scope
			columns, s = r.core(core, outer, in, len(n.Cores) == 1)
			scopes = append(scopes, s)
		case *ast.ValuesClause:
			for _, row := range core.Rows {
				r.exprs(row, &scope{outer: outer}, in, false)
			}
			for j := range core.Rows[0] {
				columns = append(columns, &column{name: fmt.Sprintf("column%d", j+1)})
			}
		}
		if i == 0 {
			first = columns
		}
		after(i, first)
	}
	if last, ok := n.Cores[len(n.Cores)-1].(*ast.SelectQuery); ok && len(n.Cores) > 1 {
		for _, t := range last.OrderBy {
			r.compoundTerm(&t.Expr, scopes, first, in)
		}
	}
	return first
}

// core resolves one SELECT.
func (r *resolver) core(q *ast.SelectQuery, outer *scope, in *with, alone bool) ([]*column, *scope) {
	s := &scope{outer: outer}
	r.scopes = append(r.scopes, s)
	r.from(q.From, s, in)
	var columns []*column
	for _, c := range q.Columns {
		columns = append(columns, r.resultColumn(c, s, in)...)
		if len(columns) > maxColumns {
			r.refuse(tooLarge(fmt.Sprintf("a SELECT has more than %d columns", maxColumns)))
			return nil, s
		}
	}
	s.named = true
	for _, p := range s.pending {
		r.expr(p, s, in, false)
	}
	r.expr(&q.Where, s, in, false)
	r.exprs(q.GroupBy, s, in, false)
	r.expr(&q.Having, s, in, false)
	for _, w := range q.Windows {
		r.window(w, s, in)
	}
	if alone {
		for _, t := range q.OrderBy {
			if id, ok := bare(t.Expr).(*ast.Ident); !ok || !s.hasAlias(id.Name) {
				r.expr(&t.Expr, s, in, false)
			}
		}
	}
	if q.Limit != nil {
		r.expr(&q.Limit.Count, nil, in, false)
		r.expr(&q.Limit.Offset, nil, in, false)
	}
	return distinct(columns), s
}

// resultColumn resolves one entry of a select list. An expression without a name is given the one that SQLite would
// make of its text, where printing changes that text.
func (r *resolver) resultColumn(c *ast.ResultColumn, s *scope, in *with) []*column {
	if star, ok := c.Expr.(*ast.Star); ok {
		return r.star(star, s)
	}
	r.expr(&c.Expr, s, in, false)
	if c.Alias != nil {
		s.aliases = append(s.aliases, c.Alias.Name)
		return []*column{{name: c.Alias.Name}}
	}
	switch n := bare(c.Expr).(type) {
	case *ast.Ident:
		return []*column{{name: n.Name}}
	case *ast.QualifiedRef:
		return []*column{{name: n.Parts[len(n.Parts)-1].Name}}
	}
	if r.policy != nil {
		return []*column{{}}
	}
	title := r.sql[c.Expr.Pos():c.Expr.End()]
	if changed(c.Expr, title) {
		c.Alias, c.HasAs = &ast.Ident{Name: title, Raw: quote(title), Quote: ast.QuoteBack}, true
		s.titles = append(s.titles, title)
	}
	return []*column{{name: title}}
}

// changed reports whether an expression may print otherwise than it was written. Subqueries always may: their tables
// are replaced.
func changed(e ast.Expr, text string) bool {
	sub := false
	ast.Walk(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectStmt:
			sub = true
		case *ast.InExpr:
			sub = sub || n.Table != nil
		case *ast.Ident:
			sub = sub || n.Quote != ast.QuoteNone
		}
		return !sub
	})
	return sub || ast.String(e) != text
}

func (r *resolver) star(n *ast.Star, s *scope) []*column {
	var out []*column
	take := func(c *column) {
		r.read(c, "*", n.Pos())
		out = append(out, &column{name: c.name})
	}
	if n.Table == nil {
		for _, v := range s.visible {
			for _, c := range v.columns[1:] {
				r.read(c, "*", n.Pos())
			}
			take(v.columns[0])
		}
	}
	found := n.Table == nil && len(s.sources) > 0
	for _, src := range s.sources {
		if n.Table != nil && same(src.name, n.Table.Name) {
			found = true
			for _, c := range src.columns {
				take(c)
			}
		}
		if src.holds != nil {
			out = append(out, nil) // columns that are not listed
		}
	}
	switch {
	case found:
	case n.Table == nil:
		r.refuse(invalid("* needs a FROM"))
	default:
		r.refuse(acl.NotAvailable(n.Table.Raw, "no table of that name in the FROM"))
	}
	return out
}

// distinct gives columns of one name different ones, as SQLite does in subqueries.
func distinct(columns []*column) []*column {
	for i, c := range columns {
		for n := 1; c != nil && slices.ContainsFunc(columns[:i], func(o *column) bool { return o != nil && same(o.name, c.name) }); n++ {
			base := c.name
			if at := strings.LastIndexByte(base, ':'); at > 0 && strings.Trim(base[at+1:], "0123456789") == "" {
				base = base[:at]
			}
			c.name = fmt.Sprintf("%s:%d", base, n)
		}
	}
	return columns
}

// compoundTerm resolves an ORDER BY term of a compound: a name of a column of any of its SELECTs, or an expression that
// one of them has.
func (r *resolver) compoundTerm(p *ast.Expr, scopes []*scope, first []*column, in *with) {
	if id, ok := bare(*p).(*ast.Ident); ok {
		if slices.ContainsFunc(first, func(c *column) bool { return c != nil && same(c.name, id.Name) }) ||
			slices.ContainsFunc(scopes, func(s *scope) bool { return s.hasAlias(id.Name) }) {
			return
		}
	}
	var why error
	for _, s := range scopes {
		if r.err != nil {
			return
		}
		if r.expr(p, s, in, false); r.err == nil {
			return
		}
		why, r.err = cmp.Or(why, r.err), nil
	}
	if len(scopes) > 0 {
		r.err = why
	}
}

func (s *scope) hasAlias(name string) bool {
	return slices.ContainsFunc(s.aliases, func(a string) bool { return same(a, name) })
}

// from resolves a list of joined items into a scope.
func (r *resolver) from(list []*ast.TableRef, s *scope, in *with) {
	if len(list) > maxJoined {
		r.refuse(tooLarge(fmt.Sprintf("a FROM joins more than %d tables", maxJoined)))
		return
	}
	for i, ref := range list {
		sources, visible := r.item(ref, s, in)
		if r.err != nil {
			return
		}
		s.sources = append(s.sources, sources...)
		if ref.On != nil {
			s.pending = append(s.pending, &ref.On)
		}
		if i == 0 {
			s.visible = visible
			continue
		}
		var using []string
		said := "USING"
		if ref.Join != nil && ref.Join.Type&ast.JoinNatural != 0 {
			if ref.On != nil || ref.Using != nil {
				r.refuse(invalid("a NATURAL join has no ON or USING"))
				return
			}
			if open(s.sources) {
				r.refuse(notSupported(ref, "a NATURAL join is not supported here", "join with ON"))
				return
			}
			said = "the NATURAL join"
			for _, v := range visible {
				if slices.ContainsFunc(s.visible, func(o name) bool { return same(o.text, v.text) }) {
					using = append(using, v.text)
				}
			}
		}
		for _, u := range ref.Using {
			using = append(using, u.Name)
		}
		s.visible = r.merge(s, visible, using, said, ref.Pos())
	}
}

// merge joins what is left and right of a join, with one column for each name in using.
func (r *resolver) merge(s *scope, right []name, using []string, said string, at int) []name {
	left := slices.Clone(s.visible)
	right = slices.Clone(right)
	for _, u := range using {
		find := func(in []name) int { // SQLite takes the leftmost, whatever else has the name
			return slices.IndexFunc(in, func(v name) bool { return same(v.text, u) })
		}
		l, rt := find(left), find(right)
		if (l < 0 || rt < 0) && !open(s.sources) {
			r.refuse(acl.NotAvailable(u, "not a column of both sides of the join"))
			return nil
		}
		if l < 0 || rt < 0 {
			continue
		}
		merged := name{text: left[l].text, columns: slices.Concat(left[l].columns, right[rt].columns)}
		for _, c := range merged.columns {
			r.read(c, said, at)
		}
		left[l] = merged
		right = slices.Delete(right, rt, rt+1)
	}
	return append(left, right...)
}

// open reports whether a source has columns that are not listed.
func open(sources []*source) bool {
	return slices.ContainsFunc(sources, func(s *source) bool { return s.holds != nil })
}

// item resolves one item of a FROM.
func (r *resolver) item(ref *ast.TableRef, s *scope, in *with) ([]*source, []name) {
	alias := ""
	if ref.Alias != nil {
		alias = ref.Alias.Name
	}
	var src *source
	switch {
	case ref.List != nil:
		inner := &scope{outer: s.outer}
		r.scopes = append(r.scopes, inner)
		r.from(ref.List, inner, in)
		for _, p := range inner.pending {
			if r.err == nil {
				r.expr(p, inner, in, false)
			}
		}
		return inner.sources, inner.visible
	case ref.Select != nil:
		src = &source{name: alias, columns: r.query(ref.Select, s.outer, in)}
		if slices.Contains(src.columns, nil) {
			r.refuse(notSupported(ref, "a star is not supported here", "name the columns"))
			return nil, nil
		}
	case ref.HasArgs:
		src = tableFunction(ref)
		for i := range ref.Args {
			s.pending = append(s.pending, &ref.Args[i])
		}
	default:
		src = r.table(ref, s, in)
	}
	if r.err != nil {
		return nil, nil
	}
	if alias != "" {
		src.name = alias
	}
	r.size += 1 + len(src.columns)
	r.work += 1 + len(src.columns)
	if max(r.size, r.work) > maxSize {
		r.refuse(tooLarge(fmt.Sprintf("its tables, subqueries and CTEs come to more than %d columns", maxSize)))
		return nil, nil
	}
	var visible []name
	for _, c := range src.columns {
		visible = append(visible, name{c.name, []*column{c}})
	}
	return []*source{src}, visible
}

func tableFunction(ref *ast.TableRef) *source {
	src := &source{name: ref.Name.Name.Name, rowid: true}
	shown, quiet, _ := strings.Cut(tableFunctions[lower(src.name)], "|")
	for _, n := range strings.Fields(shown) {
		src.columns = append(src.columns, &column{name: n})
	}
	for _, n := range strings.Fields(quiet) {
		src.quiet = append(src.quiet, &column{name: n})
	}
	return src
}

// table resolves a name in a FROM: a CTE if one is in scope, else a base table.
func (r *resolver) table(ref *ast.TableRef, s *scope, in *with) *source {
	said := ref.Name.Name.Name
	if ref.Name.Schema == nil {
		for w := in; w != nil; w = w.outer {
			for _, c := range w.ctes {
				if same(c.node.Name.Name, said) {
					return r.cteSource(c, ref, s)
				}
			}
		}
	}
	if r.policy != nil {
		return r.policyTable(ref)
	}
	var missing []string
	for _, schema := range r.searched(ref.Name.Schema) {
		at := catalog.TableRef(r.schema.Database().Name, schema, said)
		t, ok, err := r.schema.Table(at)
		if err != nil {
			r.refuse(err)
			return nil
		}
		if !ok {
			missing = append(missing, r.schema.Absence(at))
			continue
		}
		if t.SQLView != "" {
			r.refuse(notSupported(ref, fmt.Sprintf("%s is a SQL view, which is not supported", ast.String(ref.Name)), "query the tables that it is made of"))
			return nil
		}
		r.tables = append(r.tables, boundTable{ref, t})
		r.mentions = append(r.mentions, mention{table: t, at: ref.Name.Pos()})
		src := &source{name: said, schema: schemaName(t.Ref.Schema), table: t, rowid: true}
		for i := range t.Columns {
			src.columns = append(src.columns, &column{name: t.Columns[i].Name, table: t, stored: &t.Columns[i]})
		}
		return src
	}
	r.refuse(acl.NotAvailable(ast.String(ref.Name), strings.Join(missing, "; ")))
	return nil
}

// searched lists the schemas of the catalog in which a table is looked up.
func (r *resolver) searched(said *ast.Ident) []string {
	if said != nil {
		if same(said.Name, "main") {
			return []string{""}
		}
		return []string{said.Name}
	}
	out := []string{""}
	for _, s := range r.schema.Schemas() {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// schemaName is what SQLite calls a schema of the catalog.
func schemaName(schema string) string { return cmp.Or(schema, "main") }

// cteSource reads a CTE, which is resolved when it is first read.
func (r *resolver) cteSource(c *cte, ref *ast.TableRef, s *scope) *source {
	r.moved = r.moved || s.outer != c.outer
	if c.state == cteOpen && !slices.Contains(c.direct, ref) {
		r.refuse(invalid("circular reference: " + ref.Name.Name.Raw))
		return nil
	}
	if c.state == cteUntouched {
		r.define(c)
	}
	r.size += c.size
	src := &source{name: ref.Name.Name.Name}
	for _, col := range c.columns {
		src.columns = append(src.columns, &column{name: col.name})
	}
	return src
}

// define resolves the body of a CTE. SQLite needs no RECURSIVE: in the last terms of a UNION, the CTE's own name in the
// FROM itself is the CTE; everywhere else in the body it is an error.
func (r *resolver) define(c *cte) {
	if c.state != cteUntouched || r.err != nil {
		return
	}
	c.state = cteOpen
	r.inCTE++
	around := r.size
	r.size = 0
	n := c.node.Select
	if n.With != nil && slices.ContainsFunc(n.With.CTEs, func(o *ast.CTE) bool { return same(o.Name.Name, c.node.Name.Name) }) {
		r.refuse(notSupported(c.node, "a WITH inside "+c.node.Name.Raw+" that uses the same name is not supported", "choose another name"))
		return
	}
	recursive := len(n.Cores) // the first recursive term
	if k := len(n.Ops); k > 0 && n.Ops[k-1].Op == "UNION" {
		for i := k; i > 0 && n.Ops[i-1].Op == "UNION" && n.Ops[i-1].All == n.Ops[k-1].All; i-- {
			q, ok := n.Cores[i].(*ast.SelectQuery)
			if !ok {
				break
			}
			found := false
			for _, ref := range q.From {
				if ref.Name != nil && ref.Name.Schema == nil && !ref.HasArgs && same(ref.Name.Name.Name, c.node.Name.Name) {
					c.direct = append(c.direct, ref)
					found = true
				}
			}
			if !found {
				break
			}
			recursive = i
		}
	}
	in, done := r.with(n.With, c.outer, c.within)
	r.cores(n, c.outer, in, func(term int, first []*column) {
		if term == recursive-1 { // the terms before the recursive ones give the columns
			c.columns = r.cteColumns(c, first)
		}
	})
	done()
	c.state, c.size = cteDone, r.size
	r.size = around
	r.inCTE--
}

func (r *resolver) cteColumns(c *cte, first []*column) []*column {
	if r.err != nil {
		return nil
	}
	if slices.Contains(first, nil) {
		r.refuse(notSupported(c.node, "a star is not supported here", "name the columns"))
		return nil
	}
	if c.node.Columns == nil {
		return first
	}
	if len(first) != len(c.node.Columns) {
		r.refuse(invalid(fmt.Sprintf("%s names %d columns and has %d", c.node.Name.Raw, len(c.node.Columns), len(first))))
		return nil
	}
	var out []*column
	for _, n := range c.node.Columns {
		out = append(out, &column{name: n.Name})
	}
	return distinct(out)
}

// read notes that a column is read. said is what the asker wrote for it.
func (r *resolver) read(c *column, said string, at int) {
	if c == nil || c.stored == nil || r.policy != nil {
		return
	}
	if unexpressible(c.stored) {
		r.refuse(&acl.Refusal{
			Code:   acl.CodeMaskUnsupported,
			Public: fmt.Sprintf("%s reads %s, which is masked in a way that SQLite has no function for", said, c.stored.Ref),
			Hint:   "leave the column out",
			Detail: fmt.Sprintf("mask %s of %s", c.stored.Mask.Kind, c.stored.Ref),
		})
		return
	}
	r.mentions = append(r.mentions, mention{table: c.table, column: c.stored.Ref, at: at})
}

// reads lists what was read in the order of the text.
func (r *resolver) reads() []rewrite.Read {
	slices.SortStableFunc(r.mentions, func(a, b mention) int { return cmp.Compare(a.at, b.at) })
	var out []rewrite.Read
	for _, m := range r.mentions {
		i := slices.IndexFunc(out, func(o rewrite.Read) bool { return o.Table == m.table.Ref })
		if i < 0 {
			i = len(out)
			out = append(out, rewrite.Read{Table: m.table.Ref, Rules: m.table.Rules})
		}
		if !m.column.IsZero() && !slices.Contains(out[i].Columns, m.column) {
			out[i].Columns = append(out[i].Columns, m.column)
		}
	}
	return out
}

func ambiguous(said string) *acl.Refusal {
	return &acl.Refusal{
		Code:   acl.CodeAmbiguous,
		Public: said + " could be a column of several tables",
		Hint:   "write the table or its alias in front",
	}
}
