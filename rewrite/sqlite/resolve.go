package sqlite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sqlc-dev/meyer/ast"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
)

// scope is the FROM of one SELECT: the place where its names are looked up first.
type scope struct {
	outer   *scope
	sources []*source
	visible []name // what an unqualified name can mean, in the order of a star
	aliases []*column
	windows []*column          // of WINDOW, each made of what partitions and orders it
	titles  []string           // what columns without a name of their own are called after, which no name may mean
	named   bool               // aliases can be used: all clauses but the list of columns itself
	asked   int                // how often a name was looked up
	found   map[string]finding // what the names meant, once there were many
	pending []pending
	around  bool // a CTE or a SQL view is read below
}

// name is a column as an unqualified name finds it: USING and NATURAL make one of several.
type name struct {
	text    string
	columns []*column
}

type column struct {
	name      string
	table     *rewrite.Table  // nil unless it is a base table's or a SQL view's
	stored    *rewrite.Column // of table
	at        int             // first mention, if mentioned
	parts     []*column       // what the values are made of, unless they are a base table's
	mentioned bool
	made      making // how, at this step
	round     int    // of origins, in which it was seen
}

// resolver binds the names of one statement by SQLite's rules, on the tables and columns that the principal may query.
// The first refusal ends it; the methods do nothing after that.
type resolver struct {
	schema *rewrite.Schema
	sql    string
	// policy is the table whose policy is read; nil for an asker's statement. A policy's own SQL sees the whole
	// catalog as it is.
	policy *rewrite.Table
	own    *source // that table, if its columns are to be written with table and schema
	values []any   // of the policy's places, by the number of their parameter
	filled []int   // how often each was met
	// views are the SQL views whose bodies are being resolved, from the outside in. The outermost is read at a place, under a
	// name that the asker wrote.
	views     []*rewrite.Table
	said      string
	at        int
	expanded  int   // SQL views, as often as they are read
	viewBytes int   // of their definitions
	body      *body // of the innermost SQL view

	err      error
	size     int // tables and their columns, a CTE's body as often as it is read: what SQLite makes of the statement
	work     int // tables and their columns, each body once
	tables   []*boundTable
	mentions []mention
	stars    []starred
	loose    []loose
	result   *ast.ResultColumn // whose expression is being resolved
	top      bool              // the next SELECT is the statement's own, whose columns a COLLATE renames
	trace    trace
	filtered []use
	scopes   []*scope
	inCTE    int
	texts    []quoted
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
			r.top = false
			for j := range core.Rows[0] {
				columns = append(columns, &column{name: fmt.Sprintf("column%d", j+1)})
			}
			around := r.trace
			for _, row := range core.Rows {
				for j := range row {
					r.trace = trace{}
					if j < len(columns) { // else SQLite refuses it
						r.trace.into = columns[j]
					}
					r.expr(&row[j], &scope{outer: outer}, in, false)
				}
			}
			r.trace = around
		}
		if i == 0 {
			first = columns
		} else {
			unite(first, columns)
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
	top, around, result := r.top, r.trace, r.result
	defer func() { r.trace, r.result = around, result }()
	r.top, r.trace, r.result = false, trace{}, nil
	r.from(q.From, s, in)
	for _, w := range q.Windows {
		s.windows = append(s.windows, &column{name: w.Name.Name})
	}
	columns := make([]*column, 0, len(q.Columns))
	for _, c := range q.Columns {
		if star, ok := c.Expr.(*ast.Star); ok {
			columns = append(columns, r.star(star, s)...)
			r.stars = append(r.stars, starred{q, c, s})
		} else {
			columns = append(columns, r.resultColumn(c, s, in, top))
		}
		if len(columns) > maxColumns {
			r.refuse(tooLarge(fmt.Sprintf("a SELECT has more than %d columns", maxColumns)))
			return nil, s
		}
	}
	s.named, s.asked, s.found = true, 0, nil
	r.settle(s, in)
	r.trace = trace{filter: true}
	r.expr(&q.Where, s, in, false)
	r.expr(&q.Having, s, in, false)
	r.trace = trace{}
	r.exprs(q.GroupBy, s, in, false)
	for i, w := range q.Windows {
		r.trace.into = s.windows[i]
		r.window(w, s, in)
	}
	r.trace = trace{}
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
	return columns, s
}

// resultColumn resolves one entry of a select list. An expression without a name is given the one that SQLite would
// make of its text, where printing changes that text.
func (r *resolver) resultColumn(c *ast.ResultColumn, s *scope, in *with, top bool) *column {
	made := &column{}
	r.trace, r.result = trace{into: made}, c
	r.expr(&c.Expr, s, in, false)
	r.trace, r.result = trace{}, nil
	if c.Alias != nil {
		made.name = c.Alias.Name
		s.aliases = append(s.aliases, made)
		return made
	}
	e := bare(c.Expr)
	if top {
		e = unparenthesized(c.Expr)
	}
	switch n := e.(type) {
	case *ast.Ident:
		made.name = n.Name
	case *ast.QualifiedRef:
		made.name = n.Parts[len(n.Parts)-1].Name
	default:
		if r.policy != nil {
			break
		}
		made.name = r.sql[c.Expr.Pos():c.Expr.End()]
		if changed(c.Expr, made.name) {
			c.Alias, c.HasAs = &ast.Ident{Name: made.name, Raw: quote(made.name), Quote: ast.QuoteBack}, true
			s.titles = append(s.titles, made.name)
		}
		return made
	}
	if len(made.parts) > 0 { // the name as it is stored, not as it is written
		made.name = made.parts[0].name
	}
	return made
}

// changed reports whether an expression may print otherwise than it was written. Subqueries always may: their tables
// are replaced.
func changed(e ast.Expr, text string) bool {
	sub := false
	walk(e, func(n ast.Node) bool {
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
	take := func(columns []*column) {
		for _, c := range columns {
			r.read(c, n, n.Pos())
		}
		out = append(out, &column{name: columns[0].name, parts: slices.Clip(columns)})
	}
	if n.Table == nil {
		for _, v := range s.visible {
			take(v.columns)
		}
	}
	found := n.Table == nil && len(s.sources) > 0
	for _, src := range s.sources {
		if n.Table != nil && same(src.name, n.Table.Name) && !src.joined {
			found = true
			for i := range src.columns {
				take(src.columns[i : i+1 : i+1])
			}
		}
		if src.place != nil && (n.Table == nil || same(src.name, n.Table.Name)) {
			src.place.starred = true
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

// distinct names columns as SQLite does in subqueries: those of one name differently, and none like a constant.
func distinct(columns []*column) []*column {
	for i, c := range columns {
		if c != nil && (same(c.name, "true") || same(c.name, "false")) {
			c.name = fmt.Sprintf("column%d", i+1)
		}
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
	before := len(r.loose)
	defer func() {
		for i := range r.loose[before:] {
			r.loose[before+i].expr = nil // it must read like the column that it orders by
		}
	}()
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

func (s *scope) hasAlias(name string) bool { return s.alias(name) != nil }

// alias is the column that is called name in the list of columns; nil if there is none.
func (s *scope) alias(name string) *column {
	for _, c := range s.aliases {
		if same(c.name, name) {
			return c
		}
	}
	return nil
}

func ambiguous(said string) *acl.Refusal {
	return &acl.Refusal{
		Code:   acl.CodeAmbiguous,
		Public: said + " could be a column of several tables",
		Hint:   "write the table or its alias in front",
	}
}
