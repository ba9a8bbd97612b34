package sqlite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sqlc-dev/meyer/ast"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// expr resolves the names in an expression; s is nil where SQLite lets no column be named.
//
// SQLite reads a double-quoted name that is no column as a text. text says that the expression stands where people
// mean that: compared with, or given to a function beside, something that is no constant. There the name becomes the
// text that it is on the database as the asker sees it; anywhere else it is taken for a mistake, and refused in the same
// words whether the column is hidden or absent.
func (r *resolver) expr(p *ast.Expr, s *scope, in *with, text bool) {
	if r.err != nil {
		return
	}
	switch n := (*p).(type) {
	case nil:
		return
	case *ast.Ident:
		r.name(p, n, s, text)
		return
	case *ast.QualifiedRef:
		r.qualified(n, s)
		return
	case *ast.SubqueryExpr:
		for _, c := range r.query(n.Select, s, in) {
			r.uses(c, n.Pos())
		}
		return
	case *ast.ParenExpr:
		r.expr(&n.X, s, in, text)
		return
	case *ast.CollateExpr:
		r.expr(&n.X, s, in, text)
		return
	}
	r.trace.makes(computed)
	switch n := (*p).(type) {
	case *ast.Literal:
	case *ast.BindParam:
		r.fill(p, n)
	case *ast.UnaryExpr:
		r.expr(&n.X, s, in, false)
	case *ast.BinaryExpr:
		logic := n.Op == ast.OpAnd || n.Op == ast.OpOr
		x, y := !logic && !r.constant(n.Y, s), !logic && !r.constant(n.X, s)
		r.expr(&n.X, s, in, x)
		r.expr(&n.Y, s, in, y)
	case *ast.LikeExpr:
		x, y := !r.constant(n.Y, s), !r.constant(n.X, s)
		r.expr(&n.X, s, in, x)
		r.expr(&n.Y, s, in, y)
		r.expr(&n.Escape, s, in, true)
	case *ast.IsExpr:
		x, y := !r.constant(n.Y, s), !r.constant(n.X, s)
		r.expr(&n.X, s, in, x)
		r.expr(&n.Y, s, in, y)
	case *ast.NullCheckExpr:
		r.expr(&n.X, s, in, false)
	case *ast.BetweenExpr:
		bound := !r.constant(n.X, s)
		r.expr(&n.X, s, in, false)
		r.expr(&n.Lo, s, in, bound)
		r.expr(&n.Hi, s, in, bound)
	case *ast.InExpr:
		r.in(n, s, in)
	case *ast.CaseExpr:
		matched := n.Operand != nil && !r.constant(n.Operand, s)
		r.expr(&n.Operand, s, in, false)
		for _, w := range n.Whens {
			r.expr(&w.When, s, in, matched)
			r.expr(&w.Then, s, in, true)
		}
		r.expr(&n.Else, s, in, true)
	case *ast.CastExpr:
		r.expr(&n.X, s, in, false)
	case *ast.VectorExpr:
		r.exprs(n.List, s, in, text)
	case *ast.FuncCall:
		r.call(n, s, in)
	case *ast.ExistsExpr:
		r.query(n.Select, s, in)
	default:
		r.refuse(notSupported(n, "the statement uses an expression that is not supported", "write the query without it"))
	}
}

func (r *resolver) exprs(list []ast.Expr, s *scope, in *with, text bool) {
	for i := range list {
		r.expr(&list[i], s, in, text)
	}
}

// in resolves x IN ...; a table behind it is a subquery that takes all of its columns, and is written as one.
func (r *resolver) in(n *ast.InExpr, s *scope, in *with) {
	if len(n.List) == 1 {
		r.places(n)
	}
	element := !r.constant(n.X, s)
	r.expr(&n.X, s, in, slices.ContainsFunc(n.List, func(e ast.Expr) bool { return !r.constant(e, s) }))
	r.exprs(n.List, s, in, element)
	if n.Table != nil {
		ref := &ast.TableRef{Span: n.Table.Span, Name: n.Table, Args: n.Args, HasArgs: n.HasArgs}
		star := &ast.Star{Span: n.Table.Span}
		n.Select = &ast.SelectStmt{Span: n.Table.Span, Cores: []ast.SelectCore{&ast.SelectQuery{
			Span: n.Table.Span, Columns: []*ast.ResultColumn{{Span: n.Table.Span, Expr: star}}, From: []*ast.TableRef{ref},
		}}}
		n.Parens, n.Table, n.Args, n.HasArgs = true, nil, nil, false
	}
	if n.Select != nil {
		for _, c := range r.query(n.Select, s, in) {
			r.uses(c, n.Pos())
		}
	}
}

func (r *resolver) call(n *ast.FuncCall, s *scope, in *with) {
	if n.Over != nil || aggregates(n) {
		r.trace.makes(summed)
	}
	varying := 0
	for _, a := range n.Args {
		if !r.constant(a, s) {
			varying++
		}
	}
	for i := range n.Args {
		r.expr(&n.Args[i], s, in, varying > 0)
	}
	for _, t := range n.OrderBy {
		r.expr(&t.Expr, s, in, false)
	}
	r.expr(&n.Filter, s, in, false)
	if n.Over != nil {
		r.window(n.Over, s, in)
	}
}

func (r *resolver) window(w *ast.WindowDef, s *scope, in *with) {
	if w.Base != nil && s != nil {
		for _, c := range s.windows {
			if same(c.name, w.Base.Name) {
				r.uses(c, w.Pos())
			}
		}
	}
	r.exprs(w.Partition, s, in, false)
	for _, t := range w.OrderBy {
		r.expr(&t.Expr, s, in, false)
	}
	for _, b := range []*ast.FrameBound{w.StartBound, w.EndBound} {
		if b != nil {
			r.expr(&b.Expr, s, in, false)
		}
	}
}

// constant reports whether an expression is written out, a double-quoted name that is no column included.
func (r *resolver) constant(e ast.Expr, s *scope) bool {
	switch e := bare(e).(type) {
	case *ast.Literal:
		return true
	case *ast.UnaryExpr:
		return r.constant(e.X, s)
	case *ast.CastExpr:
		return r.constant(e.X, s)
	case *ast.Ident:
		if e.Quote == ast.QuoteDouble {
			f := r.find(s, e.Name)
			return f.columns == nil && f.no == nil && !f.other
		}
	}
	return false
}

// bare strips what SQLite looks through when it asks what an expression is.
func bare(e ast.Expr) ast.Expr {
	for {
		switch n := e.(type) {
		case *ast.ParenExpr:
			e = n.X
		case *ast.CollateExpr:
			e = n.X
		default:
			return e
		}
	}
}

func unparenthesized(e ast.Expr) ast.Expr {
	for {
		n, ok := e.(*ast.ParenExpr)
		if !ok {
			return e
		}
		e = n.X
	}
}

// finding is what a name means: columns, or other for an alias, a rowid or a policy's column, or neither.
type finding struct {
	columns []*column
	other   bool
	owner   *source // of a policy's column
	no      error
	passed  *passing // whose new columns could take the name
}

// passing is a list of tables.
type passing struct {
	place *boundTable
	more  *passing
}

// lists reports whether a source has a column of the name that the catalog knows.
func (src *source) lists(name string) bool {
	has := func(c *column) bool { return same(c.name, name) }
	return slices.ContainsFunc(src.columns, has) || slices.ContainsFunc(src.quiet, has)
}

// find looks an unqualified name up from the inside out. Tables that it passes, or that stand beside the one it finds,
// could have got a column of the name.
func (r *resolver) find(s *scope, said string) finding {
	if s == nil {
		return finding{}
	}
	if s.asked++; s.asked < 100 {
		return r.look(s, said)
	}
	if s.found == nil {
		s.found = map[string]finding{}
	}
	key := lower(said)
	f, ok := s.found[key]
	if !ok {
		f = r.look(s, said)
		if f.no != nil { // in the words of the first who asked
			return f
		}
		s.found[key] = f
	}
	return f
}

// look is find for a name that was not looked up in the scope before.
func (r *resolver) look(s *scope, said string) finding {
	var f finding
	hits := 0
	for _, v := range s.visible {
		if same(v.text, said) {
			hits++
			f.columns = v.columns
		}
	}
	rowids, whole := 0, true
	for _, src := range s.sources {
		for _, c := range src.quiet {
			if same(c.name, said) {
				hits++
				f.columns = []*column{c}
			}
		}
		if src.holds != nil && src.holds(said) {
			hits++
			f.other, f.owner = true, src
		}
		if src.rowid {
			rowids++
			whole = whole && (src.table == nil || src.table.Whole || r.policy != nil)
		}
	}
	for _, src := range s.sources {
		if src.place != nil && src.place.table.Whole && !src.lists(said) && (hits > 0 || !isRowid(said)) {
			f.passed = &passing{src.place, f.passed}
		}
	}
	alias := s.alias(said)
	switch {
	case hits > 1:
		return finding{no: ambiguous(said)}
	case hits == 1:
		return f
	case isRowid(said) && rowids > 1:
		return finding{no: ambiguous(said)}
	case isRowid(said) && rowids == 1 && whole:
		i := slices.IndexFunc(s.sources, func(src *source) bool { return src.rowid })
		return s.sources[i].rowID()
	case isRowid(said) && rowids == 1:
		return finding{no: acl.NotAvailable(said, "a wrapped table has no rowid")}
	case s.named && alias != nil:
		return finding{columns: []*column{alias}, passed: f.passed}
	case s.named && slices.ContainsFunc(s.titles, func(t string) bool { return same(t, said) }):
		return finding{no: notSupported(&ast.Ident{}, fmt.Sprintf("%s is the text of a column", said), "give the column a name with AS")}
	}
	outer := r.find(s.outer, said)
	for p := f.passed; p != nil; p = p.more {
		outer.passed = &passing{p.place, outer.passed}
	}
	return outer
}

func isRowid(name string) bool {
	return same(name, "rowid") || same(name, "oid") || same(name, "_rowid_")
}

// name resolves an unqualified name.
func (r *resolver) name(p *ast.Expr, n *ast.Ident, s *scope, text bool) {
	f := r.find(s, n.Name)
	if f.passed != nil && f.no == nil {
		l := loose{expr: p, name: n, scope: s, means: f, result: r.result}
		if r.result != nil {
			l.title = r.sql[r.result.Expr.Pos():r.result.Expr.End()]
		}
		r.loose = append(r.loose, l)
	}
	switch {
	case f.no != nil:
		r.refuse(f.no)
	case f.other:
		if f.owner != nil {
			r.pin(p, n, s, f.owner)
		}
	case f.columns != nil:
		for _, c := range f.columns {
			r.read(c, n, n.Pos())
			r.uses(c, n.Pos())
		}
	case n.Quote == ast.QuoteNone && (same(n.Name, "true") || same(n.Name, "false")):
	case n.Quote == ast.QuoteDouble && text && r.policy == nil:
		if r.inCTE > 0 {
			r.texts = append(r.texts, quoted{n, r.said})
		}
		*p = literal(n.Name, n.Span)
	default:
		r.refuse(acl.NotAvailable(n.Raw, r.absence(s, n.Name)))
	}
}

// pin writes the table in front of a policy's name that a subquery has from a table around it, so that no column which a
// table of the subquery gets one day takes it. In front of the policy's own table comes the schema where the asker's
// tables are around it, of which none has one.
func (r *resolver) pin(p *ast.Expr, n *ast.Ident, s *scope, owner *source) {
	if slices.Contains(s.sources, owner) && owner != r.own {
		return
	}
	for ; !slices.Contains(s.sources, owner); s = s.outer {
		if named(s.sources, owner.name) > 0 {
			return
		}
	}
	parts := []*ast.Ident{ident(owner.name), n}
	if owner == r.own {
		parts = slices.Insert(parts, 0, ident(owner.schema))
	}
	*p = &ast.QualifiedRef{Span: n.Span, Parts: parts}
}

// literal makes a text.
func literal(text string, at ast.Span) *ast.Literal {
	return &ast.Literal{Span: at, Kind: ast.LitString, Value: text, Raw: "'" + strings.ReplaceAll(text, "'", "''") + "'"}
}

// quoted is a double-quoted text inside a CTE or a SQL view.
type quoted struct {
	name *ast.Ident
	view string // as the asker wrote it, if it is in one
}

// encloses marks the scopes around a place where a CTE or SQL view of an outer scope is read.
func (s *scope) encloses(outer *scope) {
	for ; s != nil && s != outer && !s.around; s = s.outer {
		s.around = true
	}
}

// checkTexts refuses a double-quoted text in a CTE that is also the name of a column around a place where CTEs are read:
// SQLite looks the names in a CTE up there.
func (r *resolver) checkTexts() {
	if len(r.texts) == 0 {
		return
	}
	names := map[string]bool{}
	for _, s := range r.scopes {
		if !s.around {
			continue
		}
		for _, a := range s.aliases {
			names[lower(a.name)] = true
		}
		for _, src := range s.sources {
			for _, c := range src.columns {
				names[lower(c.name)] = true
			}
			for _, c := range src.quiet {
				names[lower(c.name)] = true
			}
		}
	}
	for _, t := range r.texts {
		switch {
		case !names[lower(t.name.Name)]:
		case t.view != "":
			r.refuse(notSupported(t.name, t.view+" is a SQL view whose definition is not supported here", "query it outside of a subquery"))
		default:
			r.refuse(notSupported(t.name, t.name.Raw+" could be a text or a column", "write texts in single quotes"))
		}
	}
}

// qualified resolves table.column and schema.table.column. The schema is dropped, since wrappers have none.
func (r *resolver) qualified(n *ast.QualifiedRef, s *scope) {
	parts := n.Parts
	schema := ""
	if len(parts) == 3 {
		schema, parts = parts[0].Name, parts[1:]
	}
	table, col := parts[0].Name, parts[1].Name
	where := s
	hiding := false // another table of the name lies between the reference and its table
	for ; where != nil; where = where.outer {
		var f finding
		hits, named := 0, 0
		for _, src := range where.sources {
			if !same(src.name, table) {
				continue
			}
			named++
			if src.place != nil && !src.lists(col) && !isRowid(col) {
				src.place.exposed = true
			}
			if schema != "" && !same(src.schema, schema) {
				continue
			}
			if found := src.find(col, r.policy != nil); found.columns != nil || found.other || found.no != nil {
				hits++
				f = found
				f.owner = src
			}
		}
		switch {
		case hits == 0:
			hiding = hiding || named > 0
			continue
		case hits > 1:
			r.refuse(ambiguous(ast.String(n)))
		case f.no != nil:
			r.refuse(acl.NotAvailable(ast.String(n), f.no.Error()))
		case schema != "" && (hiding || named > 1 || r.inCTE > 0 && where != s):
			r.refuse(notSupported(n, fmt.Sprintf("%s is not supported here, since %s alone could be another table", ast.String(n), parts[0].Raw), "give each table an alias"))
		default:
			for _, c := range f.columns {
				r.read(c, n, n.Pos())
				r.uses(c, n.Pos())
			}
			n.Parts = parts
			if r.own != nil && f.owner == r.own {
				n.Parts = slices.Insert(slices.Clone(parts), 0, ident(r.own.schema))
			}
		}
		return
	}
	r.refuse(acl.NotAvailable(ast.String(n), r.absence(s, col)))
}

// find looks a column up in one source.
func (src *source) find(col string, policy bool) finding {
	for _, list := range [][]*column{src.columns, src.quiet} {
		for i, c := range list {
			if same(c.name, col) {
				return finding{columns: list[i : i+1 : i+1]}
			}
		}
	}
	switch {
	case src.holds != nil && src.holds(col):
		return finding{other: true}
	case !isRowid(col) || !src.rowid:
		return finding{}
	case src.table == nil || src.table.Whole || policy:
		return src.rowID()
	}
	return finding{no: acl.NotAvailable(col, "a wrapped table has no rowid")}
}

// rowID finds the rowid of a source, which is an INTEGER PRIMARY KEY where there is one.
func (src *source) rowID() finding {
	if src.place == nil {
		return finding{other: true}
	}
	src.place.rowid = true
	if key := src.table.PrimaryKey; len(key) == 1 {
		i := slices.IndexFunc(src.columns, func(c *column) bool { return same(c.name, key[0]) })
		if i >= 0 && same(src.columns[i].stored.Type, "INTEGER") {
			return finding{columns: src.columns[i : i+1 : i+1]}
		}
	}
	return finding{other: true}
}

// absence tells the audit what a column that was not found is in the tables around it.
func (r *resolver) absence(s *scope, col string) string {
	var out []string
	for ; s != nil; s = s.outer {
		for _, src := range s.sources {
			if src.table != nil {
				t := src.table.Ref
				out = append(out, r.schema.Absence(catalog.ColumnRef(t.Database, t.Schema, t.Table, col)))
			}
		}
	}
	return strings.Join(out, "; ")
}
