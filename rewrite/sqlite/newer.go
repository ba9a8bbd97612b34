package sqlite

import (
	"slices"

	"github.com/sqlc-dev/meyer/ast"

	"github.com/schemagate/schemagate/rewrite"
)

// boundTable is a place where a base table or a SQL view is read.
type boundTable struct {
	ref   *ast.TableRef
	table *rewrite.Table
	names []string // of the columns that a SQL view's body has for the asker; nil for a base table
	// A table may have got columns since the catalog was read. One that is seen whole is wrapped nevertheless where such a
	// column could show in a star (starred), or take the place of what a name means or make it ambiguous (exposed). rowid
	// says that its rowid is read, which a wrapper has not.
	starred, exposed, rowid bool
	inner                   bool  // names at the place can mean columns of tables around it
	body                    *body // of the SQL view that it stands in; nil outside of one
}

// body is what the resolver found in the body of a SQL view: a part of its tables.
type body struct{ from, to int }

// plain reports whether a table may stand as it is.
func (b *boundTable) plain() bool {
	return b.table.Whole && b.names == nil && (b.rowid || !b.starred && !b.exposed)
}

// loose is a name without its table that new columns of tables could take from what it means.
type loose struct {
	expr   *ast.Expr // nil if it must stay as it is written
	name   *ast.Ident
	scope  *scope
	means  finding
	result *ast.ResultColumn // that it stands in, if any
	title  string            // of that
}

// starred is a star with its SELECT.
type starred struct {
	query  *ast.SelectQuery
	column *ast.ResultColumn
	scope  *scope
}

// expose marks the tables that new columns could bring into play. Where the rowid of one is read, so that it cannot be
// wrapped, names get their tables in front and stars are written out.
func (r *resolver) expose() {
	for _, l := range r.loose {
		rowid := false
		for p := l.means.passed; p != nil; p = p.more {
			rowid = rowid || p.place.rowid
		}
		if rowid && l.qualify() {
			continue
		}
		for p := l.means.passed; p != nil; p = p.more {
			p.place.exposed = true
		}
	}
	r.shadow()
	for _, b := range r.tables {
		if b.rowid && b.exposed {
			r.refuse(notSupported(b.ref, "a rowid is not supported here", "write the table or its alias in front of each column"))
		}
	}
	for _, st := range r.stars {
		if !slices.ContainsFunc(st.scope.sources, func(src *source) bool { return src.place != nil && src.place.rowid && src.place.starred }) {
			continue
		}
		list, ok := st.scope.spelled(st.column.Expr.(*ast.Star))
		if !ok {
			r.refuse(notSupported(st.column, "a rowid beside a star is not supported here", "name the columns"))
			return
		}
		at := slices.Index(st.query.Columns, st.column)
		st.query.Columns = slices.Replace(st.query.Columns, at, at+1, list...)
	}
}

// shadow marks tables that are called like one of another name with a policy: were they to stand plain, a name with table
// and schema in a wrapper below could be one of their columns.
func (r *resolver) shadow() {
	wrapped := map[string][]int{} // by name, places in the list of tables
	for i, b := range r.tables {
		if b.inner && !b.table.Whole {
			name := lower(b.table.Ref.Table)
			wrapped[name] = append(wrapped[name], i)
		}
	}
	for _, b := range r.tables {
		if !b.table.Whole || b.ref.Alias == nil {
			continue
		}
		below := body{0, len(r.tables)}
		if b.body != nil { // in a SQL view, those of the view
			below = *b.body
		}
		places := wrapped[lower(b.ref.Alias.Name)]
		i, _ := slices.BinarySearch(places, below.from)
		b.exposed = b.exposed || i < len(places) && places[i] < below.to
	}
}

// qualify writes the table in front of a name, if that says the same.
func (l *loose) qualify() bool {
	if l.expr == nil || len(l.means.columns) != 1 {
		return false
	}
	for s := l.scope; s != nil; s = s.outer {
		i := slices.IndexFunc(s.sources, func(src *source) bool { return slices.Contains(src.columns, l.means.columns[0]) })
		if i < 0 {
			continue
		}
		table := s.sources[i].name
		if table == "" || named(s.sources, table) != 1 {
			return false
		}
		for inner := l.scope; inner != s; inner = inner.outer {
			if named(inner.sources, table) > 0 {
				return false
			}
		}
		*l.expr = &ast.QualifiedRef{Span: l.name.Span, Parts: []*ast.Ident{ident(table), l.name}}
		if l.result != nil && l.result.Alias == nil && bare(l.result.Expr) != *l.expr {
			l.result.Alias, l.result.HasAs = &ast.Ident{Name: l.title, Raw: quote(l.title), Quote: ast.QuoteBack}, true
		}
		return true
	}
	return false
}

func named(sources []*source, table string) int {
	n := 0
	for _, src := range sources {
		if same(src.name, table) {
			n++
		}
	}
	return n
}

// spelled lists what a star stands for by the names of columns. ok is false where those would be ambiguous.
func (s *scope) spelled(star *ast.Star) (out []*ast.ResultColumn, ok bool) {
	names := map[*column]string{}
	for i, src := range s.sources {
		if src.name == "" || slices.ContainsFunc(s.sources[:i], func(o *source) bool { return same(o.name, src.name) }) {
			return nil, false
		}
		for _, c := range src.columns {
			names[c] = src.name
		}
	}
	for _, v := range s.visible {
		switch table := names[v.columns[0]]; {
		case len(v.columns) > 1 && star.Table == nil:
			out = append(out, &ast.ResultColumn{Expr: ident(v.text)})
		case len(v.columns) > 1:
			return nil, false
		case star.Table == nil || same(star.Table.Name, table):
			out = append(out, &ast.ResultColumn{Expr: &ast.QualifiedRef{Parts: []*ast.Ident{ident(table), ident(v.text)}}})
		}
	}
	return out, true
}
