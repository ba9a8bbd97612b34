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

// pending is an expression in a FROM, which is resolved once all of the FROM is.
type pending struct {
	expr  *ast.Expr
	trace trace
}

// source is one item of a FROM.
type source struct {
	name    string // alias or table name; empty for a subquery without one
	schema  string // of a base table
	table   *rewrite.Table
	place   *boundTable // of a base table
	columns []*column
	quiet   []*column // can be named, but are not in a star
	holds   func(column string) bool
	rowid   bool // a name like rowid means something here
	joined  bool // columns of other sources under another name; a star has no such name
}

// settle resolves what waited for the whole FROM.
func (r *resolver) settle(s *scope, in *with) {
	around := r.trace
	for _, p := range s.pending {
		r.trace = p.trace
		r.expr(p.expr, s, in, false)
	}
	r.trace = around
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
			s.pending = append(s.pending, pending{&ref.On, trace{filter: true}})
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
			for _, src := range s.sources { // a new column would be joined on
				if src.place != nil {
					src.place.exposed = true
				}
			}
			for _, v := range visible {
				if slices.ContainsFunc(s.visible, func(o name) bool { return same(o.text, v.text) }) {
					using = append(using, v.text)
				}
			}
		}
		for _, u := range ref.Using {
			using = append(using, u.Name)
		}
		s.visible = r.merge(s, visible, using, &ast.Ident{Raw: said}, ref.Pos())
	}
}

// merge joins what is left and right of a join, with one column for each name in using.
func (r *resolver) merge(s *scope, right []name, using []string, said ast.Node, at int) []name {
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
			r.filtered = append(r.filtered, use{c, r.place(at)})
		}
		for _, src := range s.sources { // a new column could be the leftmost of the name
			if src.place != nil && !src.lists(u) {
				src.place.exposed = true
			}
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
	alone(ref)
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
		r.settle(inner, in)
		if alias == "" {
			return inner.sources, inner.visible
		}
		src = &source{name: alias, joined: true} // one name more for all columns
		for _, o := range inner.sources {
			for _, c := range o.columns {
				src.columns = append(src.columns, &column{name: c.name, table: c.table, stored: c.stored, parts: []*column{c}})
			}
			if o.place != nil {
				o.place.exposed = true
			}
		}
		distinct(src.columns)
		return append(inner.sources, src), inner.visible
	case ref.Select != nil:
		src = &source{name: alias, columns: distinct(r.query(ref.Select, s.outer, in))}
		if slices.Contains(src.columns, nil) {
			r.refuse(notSupported(ref, "a star is not supported here", "name the columns"))
			return nil, nil
		}
	case ref.HasArgs:
		src = tableFunction(ref)
		given := &column{made: computed}
		for _, c := range slices.Concat(src.columns, src.quiet) {
			c.parts = []*column{given}
		}
		for i := range ref.Args {
			s.pending = append(s.pending, pending{&ref.Args[i], trace{into: given}})
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
	visible := make([]name, len(src.columns))
	for i, c := range src.columns {
		visible[i] = name{c.name, src.columns[i : i+1 : i+1]}
	}
	return []*source{src}, visible
}

// alone takes away parentheses around one item. SQLite does too, and forgets the item's alias unless the parentheses
// begin the FROM and have nothing to say of their own.
func alone(ref *ast.TableRef) {
	for len(ref.List) == 1 {
		item := ref.List[0]
		switch {
		case item.List != nil && item.Alias == nil:
			ref.List = item.List
		case ref.Join == nil && ref.Alias == nil && ref.On == nil && ref.Using == nil:
			return
		default:
			ref.Name, ref.Args, ref.HasArgs, ref.Select, ref.List = item.Name, item.Args, item.HasArgs, item.Select, item.List
		}
	}
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
		if c := in.cte(said); c != nil {
			return r.cteSource(c, ref, s)
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
		r.mentions = append(r.mentions, mention{table: t, at: r.place(ref.Name.Pos())})
		if t.SQLView != "" {
			return r.view(ref, t, s)
		}
		src := &source{name: said, schema: schemaName(t.Ref.Schema), table: t, place: &boundTable{ref: ref, table: t, inner: s.outer != nil || r.inCTE > 0, body: r.body}, rowid: true}
		r.tables = append(r.tables, src.place)
		columns := make([]column, len(t.Columns))
		src.columns = make([]*column, len(t.Columns))
		for i := range t.Columns {
			columns[i] = column{name: t.Columns[i].Name, table: t, stored: &t.Columns[i]}
			src.columns[i] = &columns[i]
		}
		return src
	}
	r.refuse(acl.NotAvailable(ast.String(ref.Name), strings.Join(missing, "; ")))
	return nil
}

// searched lists the schemas of the catalog in which a table is looked up.
func (r *resolver) searched(said *ast.Ident) []string {
	if n := len(r.views); n > 0 { // a SQL view reads nothing outside its own schema
		home := r.views[n-1].Ref.Schema
		if said != nil && !same(said.Name, schemaName(home)) {
			return nil
		}
		return []string{home}
	}
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
