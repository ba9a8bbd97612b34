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
	case nil, *ast.Literal:
	case *ast.Ident:
		r.name(p, n, s, text)
	case *ast.QualifiedRef:
		r.qualified(n, s)
	case *ast.BindParam:
		r.place(p, n)
	case *ast.ParenExpr:
		r.expr(&n.X, s, in, text)
	case *ast.CollateExpr:
		r.expr(&n.X, s, in, text)
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
	case *ast.SubqueryExpr:
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
		r.query(n.Select, s, in)
	}
}

func (r *resolver) call(n *ast.FuncCall, s *scope, in *with) {
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

// finding is what a name means: columns, or other for an alias, a rowid or a policy's column, or neither.
type finding struct {
	columns []*column
	other   bool
	no      error
}

// find looks an unqualified name up from the inside out.
func (r *resolver) find(s *scope, said string) finding {
	for ; s != nil; s = s.outer {
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
				f.other = true
			}
			if src.rowid {
				rowids++
				whole = whole && (src.table == nil || src.table.Whole || r.policy != nil)
			}
		}
		switch {
		case hits > 1:
			return finding{no: ambiguous(said)}
		case hits == 1:
			return f
		case isRowid(said) && rowids > 1:
			return finding{no: ambiguous(said)}
		case isRowid(said) && rowids == 1 && whole:
			return finding{other: true}
		case isRowid(said) && rowids == 1:
			return finding{no: acl.NotAvailable(said, "a wrapped table has no rowid")}
		case s.named && s.hasAlias(said):
			return finding{other: true}
		case s.named && slices.ContainsFunc(s.titles, func(t string) bool { return same(t, said) }):
			return finding{no: notSupported(&ast.Ident{}, fmt.Sprintf("%s is the text of a column", said), "give the column a name with AS")}
		}
	}
	return finding{}
}

func isRowid(name string) bool {
	return same(name, "rowid") || same(name, "oid") || same(name, "_rowid_")
}

// name resolves an unqualified name.
func (r *resolver) name(p *ast.Expr, n *ast.Ident, s *scope, text bool) {
	f := r.find(s, n.Name)
	switch {
	case f.no != nil:
		r.refuse(f.no)
	case f.other:
	case f.columns != nil:
		for _, c := range f.columns {
			r.read(c, n.Raw, n.Pos())
		}
	case n.Quote == ast.QuoteNone && (same(n.Name, "true") || same(n.Name, "false")):
	case n.Quote == ast.QuoteDouble && text && r.policy == nil:
		if r.inCTE > 0 {
			r.texts = append(r.texts, n)
		}
		*p = literal(n.Name, n.Span)
	default:
		r.refuse(acl.NotAvailable(n.Raw, r.absence(s, n.Name)))
	}
}

// literal makes a text.
func literal(text string, at ast.Span) *ast.Literal {
	return &ast.Literal{Span: at, Kind: ast.LitString, Value: text, Raw: "'" + strings.ReplaceAll(text, "'", "''") + "'"}
}

// checkTexts refuses a double-quoted text in a CTE that is also the name of some column, if CTEs are read in subqueries:
// SQLite looks the names in a CTE up where the CTE is read.
func (r *resolver) checkTexts() {
	if !r.moved {
		return
	}
	for _, t := range r.texts {
		for _, s := range r.scopes {
			clash := s.hasAlias(t.Name)
			for _, src := range s.sources {
				clash = clash || slices.ContainsFunc(slices.Concat(src.columns, src.quiet), func(c *column) bool { return same(c.name, t.Name) })
			}
			if clash {
				r.refuse(notSupported(t, fmt.Sprintf("%s could be a text or a column", t.Raw), "write texts in single quotes"))
			}
		}
	}
}

// qualified resolves table.column and schema.table.column. The schema is dropped, since wrappers have none.
func (r *resolver) qualified(n *ast.QualifiedRef, s *scope) {
	said := ast.String(n)
	parts := n.Parts
	schema := ""
	if len(parts) == 3 {
		schema, parts = parts[0].Name, parts[1:]
	}
	table, col := parts[0].Name, parts[1].Name
	where := s
	hiding := false // another table of the name lies between the reference and its table
	for ; where != nil; where = where.outer {
		var hits []finding
		named := 0
		for _, src := range where.sources {
			if !same(src.name, table) {
				continue
			}
			named++
			if schema != "" && !same(src.schema, schema) {
				continue
			}
			if f := src.find(col, r.policy != nil); f.columns != nil || f.other || f.no != nil {
				hits = append(hits, f)
			}
		}
		if len(hits) == 0 {
			hiding = hiding || named > 0
			continue
		}
		switch f := hits[0]; {
		case len(hits) > 1:
			r.refuse(ambiguous(said))
		case f.no != nil:
			r.refuse(acl.NotAvailable(said, f.no.Error()))
		case schema != "" && (hiding || named > 1 || r.inCTE > 0 && where != s):
			r.refuse(notSupported(n, fmt.Sprintf("%s is not supported here, since %s alone could be another table", said, parts[0].Raw), "give each table an alias"))
		default:
			for _, c := range f.columns {
				r.read(c, said, n.Pos())
			}
			n.Parts = parts
		}
		return
	}
	r.refuse(acl.NotAvailable(said, r.absence(s, col)))
}

// find looks a column up in one source.
func (src *source) find(col string, policy bool) finding {
	for _, c := range slices.Concat(src.columns, src.quiet) {
		if same(c.name, col) {
			return finding{columns: []*column{c}}
		}
	}
	switch {
	case src.holds != nil && src.holds(col):
		return finding{other: true}
	case !isRowid(col) || !src.rowid:
		return finding{}
	case src.table == nil || src.table.Whole || policy:
		return finding{other: true}
	}
	return finding{no: acl.NotAvailable(col, "a wrapped table has no rowid")}
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
