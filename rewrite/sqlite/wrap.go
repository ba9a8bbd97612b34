package sqlite

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sqlc-dev/meyer/ast"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// Wrap puts each base table that the principal does not see as it is behind its wrapper, and writes the others with
// their schema, so that no temporary table can take their place.
func (t *tree) Wrap(s *rewrite.Schema) error {
	canonical(t.query)
	barrier := !safe(t.query, func(ast.Node) bool { return false })
	for _, b := range t.tables {
		if b.table.Whole {
			b.ref.Name = tableName(b.table.Ref)
			continue
		}
		q, err := wrapper(s, b.table, barrier, b.ref.NotIndexed)
		if err != nil {
			return err
		}
		if b.ref.Alias == nil {
			b.ref.Alias, b.ref.HasAs = ident(b.ref.Name.Name.Name), true
		}
		// INDEXED BY is dropped: it changes no row, and would tell whether an index of hidden columns exists.
		b.ref.Name, b.ref.Select, b.ref.IndexedBy, b.ref.NotIndexed = nil, q, nil, false
	}
	return nil
}

// wrapper is the derived table that stands for a table: its visible columns, masked, of the rows that pass the filter.
// A barrier keeps SQLite from merging a filtered table into the query around it, which could run an expression of the
// asker's on a hidden row and fail there.
func wrapper(s *rewrite.Schema, t *rewrite.Table, barrier, notIndexed bool) (*ast.SelectStmt, error) {
	q := &ast.SelectQuery{From: []*ast.TableRef{{Name: tableName(t.Ref), NotIndexed: notIndexed}}}
	for i := range t.Columns {
		c := &t.Columns[i]
		switch {
		case c.Mask == nil:
			q.Columns = append(q.Columns, &ast.ResultColumn{Expr: ident(c.Name)})
		case !unexpressible(c):
			e, err := masked(s, t, c)
			if err != nil {
				return nil, err
			}
			q.Columns = append(q.Columns, &ast.ResultColumn{Expr: e, Alias: ident(c.Name), HasAs: true})
		}
	}
	if q.Columns == nil { // rows can still be counted
		q.Columns = []*ast.ResultColumn{{Expr: &ast.Literal{Kind: ast.LitNull, Value: "NULL", Raw: "NULL"}}}
	}
	if t.Protected {
		var err error
		if q.Where, err = filter(s, t); err != nil {
			return nil, err
		}
		if barrier {
			q.Limit = &ast.Limit{
				Count:  &ast.UnaryExpr{Op: ast.OpMinus, X: number("1", ast.LitInteger)},
				Offset: number("0", ast.LitInteger),
			}
		}
	}
	return &ast.SelectStmt{Cores: []ast.SelectCore{q}}, nil
}

// filter is (one of the permissive conditions) AND each restrictive one; without a permissive one it is false.
func filter(s *rewrite.Schema, t *rewrite.Table) (ast.Expr, error) {
	var any ast.Expr
	for _, c := range t.Permissive {
		e, err := condition(s, t, c)
		if err != nil {
			return nil, err
		}
		any = join(any, ast.OpOr, e)
	}
	if any == nil {
		return number("0", ast.LitInteger), nil
	}
	all := any
	if len(t.Permissive) > 1 && len(t.Restrictive) > 0 {
		all = &ast.ParenExpr{X: any}
	}
	for _, c := range t.Restrictive {
		e, err := condition(s, t, c)
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
	g := governor{schema: s, wrappers: map[*ast.SelectStmt]guise{}}
	var err error
	ast.Walk(t.query, func(n ast.Node) bool {
		if err != nil || g.wraps(n) {
			return false
		}
		if no := allow(n); no != nil {
			err = no
		} else if ref, ok := n.(*ast.TableRef); ok && ref.Select != nil {
			err = g.recognise(ref.Select)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	barrier := merged
	if !safe(t.query, g.wraps) {
		barrier = barred
	}
	for q, as := range g.wrappers {
		if as != either && as != barrier {
			return fmt.Errorf("the wrapper at byte %d has a barrier or lacks one, against what the statement demands", q.Pos())
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
	schema   *rewrite.Schema
	wrappers map[*ast.SelectStmt]guise
}

func (g *governor) wraps(n ast.Node) bool {
	q, ok := n.(*ast.SelectStmt)
	if ok {
		_, ok = g.wrappers[q]
	}
	return ok
}

// recognise enters a derived table if it is exactly a wrapper.
func (g *governor) recognise(q *ast.SelectStmt) error {
	core, ok := q.Cores[0].(*ast.SelectQuery)
	if !ok || len(core.From) != 1 || core.From[0].Name == nil {
		return nil
	}
	t, ok, err := g.table(core.From[0].Name)
	if err != nil || !ok || t.Whole || t.SQLView != "" {
		return err
	}
	as := merged
	if core.Limit != nil {
		as = barred
	}
	w, err := wrapper(g.schema, t, as == barred, core.From[0].NotIndexed)
	if err != nil || ast.String(w) != ast.String(q) {
		return err
	}
	if !t.Protected {
		as = either
	}
	g.wrappers[q] = as
	return nil
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

// check walks what is not in a wrapper. ctes are the names in scope: in a body, a CTE's own name is the CTE or an
// error, never a table.
func (g *governor) check(n ast.Node, ctes []string) error {
	switch n := n.(type) {
	case *ast.SelectStmt:
		if g.wraps(n) {
			return nil
		}
		if n.With != nil {
			ctes = slices.Clip(ctes)
			for _, c := range n.With.CTEs {
				ctes = append(ctes, c.Name.Name)
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
			if !slices.ContainsFunc(ctes, func(c string) bool { return same(c, n.Name.Name.Name) }) {
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
	for _, c := range n.Children() {
		if err := g.check(c, ctes); err != nil {
			return err
		}
	}
	return nil
}
