package sqlite

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/sqlc-dev/meyer/ast"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// Wrap puts each base table that the principal does not see as it is behind its wrapper, and writes the others with
// their schema, so that no temporary table can take their place.
func (t *tree) Wrap(s *rewrite.Schema) error {
	canonical(t.query)
	w := wrappers{schema: s, made: map[wrapped]*ast.SelectStmt{}}
	return w.wrap(t.tables, !safe(t.query, func(ast.Node) bool { return false }))
}

// wrappers makes what stands for tables, once for each form: nothing changes a tree that has its wrappers.
type wrappers struct {
	schema *rewrite.Schema
	made   map[wrapped]*ast.SelectStmt
}

// wrapped is a form of a table's wrapper.
type wrapped struct {
	table                      *rewrite.Table
	barrier, inner, notIndexed bool
	index                      string
}

func (w *wrappers) wrap(tables []*boundTable, barrier bool) error {
	for _, b := range tables {
		switch {
		case b.names != nil:
			view := subject{schema: w.schema, table: b.table, names: b.names}
			if err := view.govern(b.ref.Select.Cores[0].(*ast.SelectQuery), barrier); err != nil {
				return err
			}
		case b.plain():
			b.ref.Name = tableName(b.table.Ref)
		default:
			q, err := w.wrapper(b.table, b.ref, barrier, b.inner)
			if err != nil {
				return err
			}
			if b.ref.Alias == nil {
				b.ref.Alias, b.ref.HasAs = ident(b.ref.Name.Name.Name), true
			}
			b.ref.Name, b.ref.Select, b.ref.IndexedBy, b.ref.NotIndexed = nil, q, nil, false
		}
	}
	return nil
}

// wrapper is the derived table that stands for a table: its visible columns, masked, of the rows that pass the filter.
// Of an index that the reference demands it is told only where nothing of the table is hidden: it changes no row, and
// would tell whether an index of hidden columns exists.
func (w *wrappers) wrapper(t *rewrite.Table, ref *ast.TableRef, barrier, inner bool) (*ast.SelectStmt, error) {
	form := wrapped{table: t, barrier: barrier, inner: inner, notIndexed: ref.NotIndexed}
	from := &ast.TableRef{Name: tableName(t.Ref), NotIndexed: ref.NotIndexed}
	if t.Whole && ref.IndexedBy != nil {
		from.IndexedBy, form.index = ref.IndexedBy, ref.IndexedBy.Name
	}
	if q := w.made[form]; q != nil {
		return q, nil
	}
	core := &ast.SelectQuery{From: []*ast.TableRef{from}}
	table := subject{schema: w.schema, table: t, inner: inner}
	if err := table.govern(core, barrier); err != nil {
		return nil, err
	}
	q := &ast.SelectStmt{Cores: []ast.SelectCore{core}}
	w.made[form] = q
	return q, nil
}

// govern gives a SELECT from a table, or from the body of a SQL view, the columns, masks and filter of the table or view.
// A barrier keeps SQLite from merging what is filtered into the query around it, which could run an expression of the
// asker's on a hidden row and fail there.
func (sub subject) govern(q *ast.SelectQuery, barrier bool) error {
	q.Columns, q.Where, q.Limit = nil, nil, nil
	for _, c := range sub.shown() {
		switch {
		case c.Mask == nil:
			q.Columns = append(q.Columns, &ast.ResultColumn{Expr: ident(c.Name)})
		case !unexpressible(c):
			e, err := sub.masked(c)
			if err != nil {
				return err
			}
			q.Columns = append(q.Columns, &ast.ResultColumn{Expr: e, Alias: ident(c.Name), HasAs: true})
		}
	}
	if q.Columns == nil { // rows can still be counted
		q.Columns = []*ast.ResultColumn{{Expr: null()}}
	}
	if !sub.table.Protected {
		return nil
	}
	var err error
	if q.Where, err = sub.filter(); err != nil {
		return err
	}
	if barrier {
		q.Limit = &ast.Limit{
			Count:  &ast.UnaryExpr{Op: ast.OpMinus, X: number("1", ast.LitInteger)},
			Offset: number("0", ast.LitInteger),
		}
	}
	return nil
}

// shown lists the visible columns of a table, or those of a SQL view that its body has, in the body's order.
func (sub subject) shown() []*rewrite.Column {
	var out []*rewrite.Column
	columns := sub.table.Columns
	if sub.names == nil {
		for i := range columns {
			out = append(out, &columns[i])
		}
	}
	for _, n := range sub.names {
		for i := range columns {
			if same(columns[i].Name, n) {
				out = append(out, &columns[i])
			}
		}
	}
	return out
}

// filter is (one of the permissive conditions) AND each restrictive one; without a permissive one it is false.
func (sub subject) filter() (ast.Expr, error) {
	var any ast.Expr
	for _, c := range sub.table.Permissive {
		e, err := sub.condition(c)
		if err != nil {
			return nil, err
		}
		any = join(any, ast.OpOr, e)
	}
	if any == nil {
		return number("0", ast.LitInteger), nil
	}
	all := any
	if len(sub.table.Permissive) > 1 && len(sub.table.Restrictive) > 0 {
		all = &ast.ParenExpr{X: any}
	}
	for _, c := range sub.table.Restrictive {
		e, err := sub.condition(c)
		if err != nil {
			return nil, err
		}
		all = join(all, ast.OpAnd, e)
	}
	return all, nil
}

func join(x ast.Expr, op ast.Operator, y ast.Expr) ast.Expr {
	if x == nil {
		return y
	}
	return &ast.BinaryExpr{Op: op, X: x, Y: y}
}

// Governed checks a tree in which tables should stand in their wrappers. It goes by the text alone: what a wrapper must
// be is generated anew, and no table may be reached in any other way.
func (t *tree) Governed(s *rewrite.Schema) error {
	g := governor{wrappers: wrappers{schema: s, made: map[wrapped]*ast.SelectStmt{}}, seen: map[ast.Node]guise{}}
	if err := g.look(t.query); err != nil {
		return err
	}
	barrier := merged
	if !safe(t.query, g.governs) {
		barrier = barred
	}
	for n, as := range g.seen {
		if as != either && as != barrier {
			return fmt.Errorf("the wrapper at byte %d has a barrier or lacks one, against what the statement demands", n.Pos())
		}
	}
	return g.check(t.query, nil)
}

// guise is how a wrapper was recognised: with a barrier, without, or as one of a table that has no row filter and
// never needs one.
type guise uint8

const (
	either guise = iota
	merged
	barred
)

type governor struct {
	wrappers
	seen map[ast.Node]guise // wrappers of tables, and of SQL views what is around the body
}

// governs reports whether a node is the schema's and not the asker's.
func (g *governor) governs(n ast.Node) bool {
	switch n.(type) {
	case *ast.SelectStmt, *ast.SelectQuery:
		_, ok := g.seen[n]
		return ok
	}
	return false
}

// look enters all wrappers, and refuses nodes outside them that are not on the lists of allow.go.
func (g *governor) look(n ast.Node) (err error) {
	walk(n, func(n ast.Node) bool {
		if err != nil || g.governs(n) {
			return false
		}
		if no := allow(n); no != nil {
			err = no
			return false
		}
		ref, ok := n.(*ast.TableRef)
		switch {
		case !ok || ref.Select == nil:
		case ref.Select.With == nil:
			err = g.recognise(ref.Select)
		default:
			err = g.recogniseView(ref.Select)
		}
		return err == nil
	})
	return err
}

// recognise enters a derived table if it is exactly a wrapper.
func (g *governor) recognise(q *ast.SelectStmt) error {
	core, ok := q.Cores[0].(*ast.SelectQuery)
	if !ok || len(core.From) != 1 || core.From[0].Name == nil {
		return nil
	}
	t, ok, err := g.table(core.From[0].Name)
	if err != nil || !ok || t.SQLView != "" {
		return err
	}
	as, inner := guiseOf(core, t), false
	walk(core, func(n ast.Node) bool {
		ref, ok := n.(*ast.QualifiedRef)
		inner = inner || ok && len(ref.Parts) == 3
		return !inner
	})
	w, err := g.wrapper(t, core.From[0], as == barred, inner)
	if err != nil || !sameSelect(w, q) {
		return err
	}
	g.seen[q] = as
	return nil
}

// recogniseView enters what is around the body of a SQL view if the derived table is exactly that view as the schema
// has it. The body is looked at like the asker's own text: its tables must stand in their wrappers.
func (g *governor) recogniseView(q *ast.SelectStmt) error {
	t, ok, err := marked(g.schema, q.With.CTEs[0].Name.Name)
	if err != nil || !ok {
		return err
	}
	for _, barrier := range []bool{false, true} {
		r := resolver{schema: g.schema}
		ref := &ast.TableRef{Name: tableName(t.Ref)}
		r.view(ref, t, &scope{})
		if r.expose(); r.err != nil {
			return r.err
		}
		canonical(ref.Select)
		if err := g.wrap(r.tables, barrier); err != nil {
			return err
		}
		if sameSelect(ref.Select, q) {
			core := q.Cores[0].(*ast.SelectQuery)
			g.seen[core] = guiseOf(core, t)
			return nil
		}
	}
	return fmt.Errorf("the SQL view at byte %d is not what the schema makes of %s", q.Pos(), t.Ref)
}

func guiseOf(q *ast.SelectQuery, t *rewrite.Table) guise {
	switch {
	case !t.Protected && q.Limit == nil:
		return either
	case q.Limit == nil:
		return merged
	}
	return barred
}

func (g *governor) table(n *ast.QualifiedName) (*rewrite.Table, bool, error) {
	if n.Schema == nil {
		return nil, false, nil
	}
	schema := n.Schema.Name
	if same(schema, "main") {
		schema = ""
	}
	return g.schema.Table(catalog.TableRef(g.schema.Database().Name, schema, n.Name.Name))
}

// check walks what is not in a wrapper, within WITH clauses: in a body, a CTE's own name is the CTE or an error, never a
// table. A name that marks a SQL view is one only where the view was recognised.
func (g *governor) check(n ast.Node, in *with) (err error) {
	if g.governs(n) {
		return nil
	}
	switch n := n.(type) {
	case *ast.SelectStmt:
		if n.With != nil {
			in = &with{outer: in, named: make(map[string]*cte, len(n.With.CTEs))}
			for _, c := range n.With.CTEs {
				if _, ok, err := marked(g.schema, c.Name.Name); err != nil || ok && !g.governs(n.Cores[0]) {
					return cmp.Or(err, fmt.Errorf("%s stands outside its wrapper", c.Name.Raw))
				}
				in.named[lower(c.Name.Name)] = &cte{node: c}
			}
		}
	case *ast.InExpr:
		if n.Table != nil {
			return errors.New("IN names a table")
		}
	case *ast.TableRef:
		switch {
		case n.Name == nil || n.HasArgs:
		case n.Name.Schema == nil:
			if in.cte(n.Name.Name.Name) == nil {
				return fmt.Errorf("%s has no schema and is no CTE", n.Name.Name.Raw)
			}
		default:
			t, ok, err := g.table(n.Name)
			if err != nil {
				return err
			}
			if !ok || !t.Whole || t.SQLView != "" {
				return fmt.Errorf("%s stands outside its wrapper", ast.String(n.Name))
			}
		}
	}
	children(n, func(c ast.Node) { err = cmp.Or(err, g.check(c, in)) })
	return err
}
