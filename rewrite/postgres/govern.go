package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// Governed resolves a printed statement anew. Every base table must be one that the asker sees whole, with its schema,
// where no name could mean more of it than the catalog holds, or the one in the very wrapper that the schema demands;
// SQL views must stand as their definitions in theirs; all else must be on the lists.
func (t *tree) Governed(s *rewrite.Schema) error {
	q := t.query()
	v := verifier{schema: s, fragments: t.fragments, wrappers: map[*pg.Node]bool{}, views: t.views}
	r := newResolver(s.Database(), t.fragments, wholeTables(s))
	r.wrapper = v.wrapper
	if _, err := r.query(q, nil, nil); err != nil {
		return explained(err)
	}
	if len(v.views) > 0 {
		return fmt.Errorf("the SQL view %s stands outside its wrapper", v.views[0])
	}
	c := checker{sql: t.sql, skip: v.wrappers}
	if no := c.check(q); no != nil {
		return explained(no)
	}
	b, err := findBarriers(s, r, q, v.wrappers)
	if err != nil {
		return err
	}
	for _, u := range r.uses {
		switch {
		case b.needs(u.table) && !u.barred:
			return fmt.Errorf("%s needs a barrier", u.ref)
		case u.table.Whole && u.view == nil && u.exposed:
			return fmt.Errorf("%s stands outside a wrapper where a name could mean any column of it", u.ref)
		}
	}
	return nil
}

// explained adds a refusal's detail, which its text leaves out.
func explained(err error) error {
	if no, ok := errors.AsType[*acl.Refusal](err); ok {
		return fmt.Errorf("%s (%s)", no.Public, no.Detail)
	}
	return err
}

// wholeTables knows the tables that may stand in a statement without a wrapper.
func wholeTables(s *rewrite.Schema) tables {
	known := askerTables(s)
	return func(u *use, name string) (*item, error) {
		if u.source.Schemaname == "" || u.source.Catalogname != "" {
			return nil, fmt.Errorf("%s is not named with its schema", name)
		}
		it, err := known(u, name)
		if err != nil {
			return nil, err
		}
		if !u.table.Whole || u.table.SQLView != "" {
			return nil, fmt.Errorf("%s stands outside its wrapper", name)
		}
		return it, nil
	}
}

// verifier finds the wrappers of a printed text.
type verifier struct {
	schema    *rewrite.Schema
	fragments *fragments
	wrappers  map[*pg.Node]bool // found so far
	views     []catalog.Ref     // SQL views to be found yet, in order
}

// wrapper returns the item of a derived table that is a wrapper, and nil if it is not.
func (v *verifier) wrapper(r *resolver, n *pg.Node) (*item, error) {
	sub := n.GetRangeSubselect()
	q := sub.GetSubquery().GetSelectStmt()
	if sub.Lateral || sub.Alias == nil || len(q.GetFromClause()) != 1 {
		return nil, nil
	}
	if it, err := v.table(r, n, sub, q); it != nil || err != nil {
		return it, err
	}
	return v.view(r, n, sub, q)
}

// table recognises the wrapper of a base table.
func (v *verifier) table(r *resolver, n *pg.Node, sub *pg.RangeSubselect, q *pg.SelectStmt) (*item, error) {
	u := &use{node: n, source: q.FromClause[0].GetRangeVar(), sample: q.FromClause[0].GetRangeTableSample(), barred: q.LimitOffset != nil}
	if u.sample != nil {
		u.source = u.sample.Relation.GetRangeVar()
	}
	if u.source.GetSchemaname() == "" || u.source.Catalogname != "" || u.source.Alias != nil {
		return nil, nil
	}
	t, ok, err := v.schema.Table(catalog.TableRef(v.schema.Database().Name, u.source.Schemaname, u.source.Relname))
	if err != nil || !ok || t.Whole || t.Part || t.SQLView != "" {
		return nil, err
	}
	u.table, u.ref = t, t.Ref
	want, err := wrapper(v.schema, v.fragments, u, u.barred)
	if err != nil || !bytes.Equal(spell(want), spell(q)) {
		return nil, err
	}
	r.uses = append(r.uses, u)
	return v.item(u, n, sub, q)
}

// view recognises the wrapper of the next SQL view that must be there. What it finds inside is the definition, with its
// tables governed, if it is what would be made of the definition now with the barriers that were found.
func (v *verifier) view(r *resolver, n *pg.Node, sub *pg.RangeSubselect, q *pg.SelectStmt) (*item, error) {
	from := q.FromClause[0].GetRangeSubselect()
	if len(v.views) == 0 || from == nil || from.Lateral || from.Alias.GetAliasname() != v.views[0].Table || len(from.Alias.Colnames) > 0 {
		return nil, nil
	}
	t, ok, err := v.schema.Table(v.views[0])
	if err != nil || !ok || t.SQLView == "" {
		return nil, err
	}
	before, uses, refs, groups := v.views, len(r.uses), len(r.refs), len(r.groups)
	undo := func() (*item, error) {
		v.views, r.uses, r.refs, r.groups = before, r.uses[:uses], r.refs[:refs], r.groups[:groups]
		return nil, nil
	}
	u := &use{node: n, source: &pg.RangeVar{}, ref: t.Ref, table: t, barred: q.LimitOffset != nil}
	r.uses, v.views = append(r.uses, u), v.views[1:]
	body := from.Subquery.GetSelectStmt()
	columns, err := r.query(body, nil, nil)
	if err != nil {
		return undo()
	}
	u.view = &expansion{body, columns}
	want, err := v.fresh(t, r.uses[uses:])
	if err != nil {
		return nil, err
	}
	if want == nil || !bytes.Equal(spell(want), spell(q)) {
		return undo()
	}
	return v.item(u, n, sub, q)
}

// fresh makes the wrapper of a SQL view anew, with barriers as they were found around it and inside; nil if there are
// other tables inside.
func (v *verifier) fresh(t *rewrite.Table, found []*use) (*pg.SelectStmt, error) {
	r := newResolver(v.schema.Database(), v.fragments, askerTables(v.schema))
	u := &use{node: &pg.Node{}, source: &pg.RangeVar{Relname: t.Ref.Table, Inh: true}, ref: t.Ref, table: t, aliases: map[string]bool{}, item: tableItem(t)}
	r.uses = []*use{u}
	if err := r.view(u); err != nil {
		return nil, err
	}
	if len(r.uses) != len(found) {
		return nil, nil
	}
	if err := r.wrap(v.schema, func(i int, _ *use) bool { return found[i].barred }); err != nil {
		return nil, err
	}
	return u.node.GetRangeSubselect().GetSubquery().GetSelectStmt(), nil
}

// item is what a wrapper that was found brings into sight.
func (v *verifier) item(u *use, n *pg.Node, sub *pg.RangeSubselect, q *pg.SelectStmt) (*item, error) {
	v.wrappers[n] = true
	it := tableItem(u.table)
	shown := map[string]bool{}
	for _, target := range q.TargetList {
		name := target.GetResTarget().GetName()
		if name == "" {
			name, _ = figureName(target.GetResTarget().GetVal())
		}
		shown[name] = true
	}
	it.columns = slices.DeleteFunc(it.columns, func(c column) bool { return !shown[c.name] })
	for i := range it.columns {
		it.columns[i].use = u
	}
	it.use, u.item = u, it
	u.source = &pg.RangeVar{Relname: u.source.Relname, Inh: u.source.Inh, Alias: sub.Alias}
	return named(it, sub.Alias)
}
