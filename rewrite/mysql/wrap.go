package mysql

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// barrier makes a derived table one that the engine computes on its own.
const barrier = " LIMIT 18446744073709551615"

// maxPrinted bounds a statement with its SQL views written out: each can double what it is made of.
const maxPrinted = 4 << 20

// Wrap replaces each SQL view and each base table that is not whole by its wrapper, and qualifies the others.
func (t *tree) Wrap(s *rewrite.Schema) error {
	return t.wrap(s, t.uses, map[catalog.Ref]string{})
}

// wrap wraps some of the uses, some of which may be already. built holds the wrappers that were made.
func (t *tree) wrap(s *rewrite.Schema, uses []*use, built map[catalog.Ref]string) error {
	for _, u := range uses {
		name, bare := u.at.Source.(*ast.TableName)
		if !bare {
			continue
		}
		if u.view == nil && u.table.Whole && !u.closed {
			name.Schema = ast.NewCIStr(u.table.Ref.Database)
			continue
		}
		text, known := built[u.table.Ref]
		if part := len(name.PartitionNames) > 0; part || !known {
			body := ""
			if u.view != nil {
				if err := t.wrap(s, u.view.uses, built); err != nil {
					return err
				}
				var err error
				if body, err = u.view.text(); err != nil {
					return err
				}
			}
			w, err := t.dialect.wrapper(s, u.table, name.PartitionNames, body)
			if err != nil {
				return err
			}
			text = w.text
			if t.needsBarrier(w) {
				text += barrier
			}
			if !part {
				built[u.table.Ref] = text
			}
		}
		if u.at.AsName.O == "" {
			u.at.AsName = name.Name
		}
		u.at.Source = &derived{text: text}
	}
	return nil
}

// needsBarrier decides whether the engine must compute a wrapper before anything around it: an expression of the asker
// that fails on a row would otherwise tell of rows that the filter hides. It is also needed where MariaDB gives other
// rows for a merged query: with window functions beside subqueries, with DISTINCT totals, with a mask that holds a
// subquery, with a filter that holds one beside an outer join, of which it loses matches, and for any mask with DISTINCT
// or windows, where it mixes up constants, and on the side of an outer join that has no row, which it takes for a value
// in NOT IN.
func (t *tree) needsBarrier(w *wrapper) bool {
	return w.protected && (t.fallible || w.fallible) || w.nested || w.asking && t.outer || w.masked && (t.outer || t.distinct || t.windows) || t.windows && t.subqueries || t.totals
}

// derived is a derived table whose text is settled.
type derived struct {
	ast.ResultSetNode
	text string
}

// Restore prints the table in its parentheses.
func (n *derived) Restore(ctx *format.RestoreCtx) error {
	ctx.WritePlain("(")
	ctx.WritePlain(n.text)
	ctx.WritePlain(")")
	return nil
}

// wrapper is the text of SELECT visible columns FROM table AS _gate WHERE filter, without a barrier.
type wrapper struct {
	text string
	// protected says that there is a filter, the others what its masks hold, as in a frame.
	protected, masked, fallible, nested, asking bool
}

// wrapper makes what the policy demands around a table, or around a SQL view with that definition.
func (d *Dialect) wrapper(s *rewrite.Schema, t *rewrite.Table, partitions []ast.CIStr, body string) (*wrapper, error) {
	f, err := d.frame(s, t, partitions)
	if err != nil {
		return nil, err
	}
	text, err := f.fill(values(t), body)
	if err != nil {
		return nil, fmt.Errorf("mysql: policy %s: %w", strings.Join(t.Rules, ", "), err)
	}
	if len(text) > maxPrinted {
		return nil, &acl.Refusal{
			Code: acl.CodeTooLarge, Public: "the statement is too large with its SQL views written out", Hint: "select from the tables themselves",
		}
	}
	return &wrapper{text: text, protected: t.Protected, masked: f.masked, fallible: f.fallible, nested: f.nested, asking: f.asking}, nil
}

// Governed resolves the printed statement as if it were new: names find only what wrappers and whole tables offer, and
// no other base table is within reach.
func (t *tree) Governed(s *rewrite.Schema) error {
	outside := func(slot *ast.ExprNode) error {
		if v, ok := (*slot).(*ast.VariableExpr); ok {
			return fmt.Errorf("mysql: variable %s stands outside of a wrapper", v.Name)
		}
		return nil
	}
	w := walk{block: allowedBlock, expr: outside, skipWrappers: true}
	if err := w.query(t.query); err != nil {
		return err
	}
	r := newResolver(t.dialect, s)
	r.governed, r.seen = true, map[string]bool{}
	if _, err := r.query(t.query, nil, nil, nil, false); err != nil {
		return err
	}
	for _, u := range r.uses {
		if u.closed {
			return fmt.Errorf("mysql: table %s stands where a name could mean a column that the catalog does not hold", u.table.Ref)
		}
	}
	return nil
}

// wrapperOf returns the only element of the FROM clause of a derived table that has the look of a wrapper, else nil.
func wrapperOf(n ast.ResultSetNode) *ast.TableSource {
	s, ok := n.(*ast.SelectStmt)
	if !ok || s.From == nil || s.From.TableRefs.Right != nil {
		return nil
	}
	source, ok := s.From.TableRefs.Left.(*ast.TableSource)
	if !ok || !strings.HasPrefix(source.AsName.O, reserved) {
		return nil
	}
	return source
}

// wrapped checks that a derived table that looks like a wrapper is the one that the schema demands. It returns nil
// for any other derived table.
func (r *resolver) wrapped(at *ast.TableSource, n ast.ResultSetNode) (*source, error) {
	inner := wrapperOf(n)
	if inner == nil {
		return nil, nil
	}
	if at.Lateral || len(at.ColumnNames) > 0 {
		return nil, errors.New("mysql: a wrapper stands where none belongs")
	}
	got, err := text(n)
	if err != nil {
		return nil, err
	}
	t, partitions, body, err := r.tableIn(inner)
	if err != nil {
		return nil, err
	}
	out := &source{columns: r.columns(t), use: &use{at: at, table: t, columns: make([]bool, len(t.Columns))}}
	at.Source = &ast.TableName{Schema: ast.NewCIStr(t.Ref.Database), Name: ast.NewCIStr(t.Ref.Table), PartitionNames: partitions}
	if r.seen[got] {
		return out, nil
	}
	w, err := r.dialect.wrapper(r.schema, t, partitions, body)
	if err != nil {
		return nil, err
	}
	if got != w.text && got != w.text+barrier {
		return nil, fmt.Errorf("mysql: %s stands in a wrapper that the schema does not demand", t.Ref)
	}
	r.seen[got] = true
	return out, nil
}

// tableIn returns the table that a wrapper is of, and of a SQL view the text of its definition, having checked that.
func (r *resolver) tableIn(inner *ast.TableSource) (t *rewrite.Table, partitions []ast.CIStr, body string, err error) {
	var refs []catalog.Ref
	name, base := inner.Source.(*ast.TableName)
	if base {
		refs = append(refs, catalog.TableRef(name.Schema.O, "", name.Name.O))
		partitions = name.PartitionNames
	} else {
		refs = viewsOf(inner.AsName.O)
	}
	for _, ref := range refs {
		var ok bool
		if t, ok, err = r.schema.Table(ref); err != nil {
			return nil, nil, "", err
		}
		if !ok || (t.SQLView == "") != base || inner.AsName.O != aliasOf(t) {
			continue
		}
		if !base {
			body, err = r.definition(t, inner)
		}
		return t, partitions, body, err
	}
	return nil, nil, "", fmt.Errorf("mysql: nothing demands a wrapper of %s", inner.AsName.O)
}
