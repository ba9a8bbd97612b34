package postgres

import (
	"errors"
	"fmt"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// Governed resolves a printed statement anew. Every base table must be one that the asker sees whole, with its schema,
// or the one in the very wrapper that the schema demands; all else must be on the lists.
func (t *tree) Governed(s *rewrite.Schema) error {
	q := t.query()
	stripPositions(t.result.ProtoReflect())
	wrappers := map[*pg.Node]bool{}
	r := newResolver(s.Database(), wholeTables(s))
	r.wrapper = func(_ *resolver, n *pg.Node) (*item, error) {
		it, err := recognise(s, n)
		if it != nil {
			wrappers[n] = true
			r.uses = append(r.uses, it.use)
		}
		return it, err
	}
	if _, err := r.query(q, nil, nil); err != nil {
		return explained(err)
	}
	c := checker{sql: t.sql, skip: wrappers}
	if no := c.check(q.ProtoReflect()); no != nil {
		return explained(no)
	}
	b := findBarriers(q, r.rows, wrappers)
	for _, u := range r.uses {
		if b.needs(u.table) && !u.barred {
			return fmt.Errorf("%s needs a barrier", u.ref)
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
		if !u.table.Whole {
			return nil, fmt.Errorf("%s stands outside its wrapper", name)
		}
		return it, nil
	}
}

// recognise returns the item of a derived table that is a wrapper, and nil if it is not.
func recognise(s *rewrite.Schema, n *pg.Node) (*item, error) {
	sub := n.GetRangeSubselect()
	q := sub.GetSubquery().GetSelectStmt()
	if sub.Lateral || sub.Alias == nil || len(q.GetFromClause()) != 1 {
		return nil, nil
	}
	u := &use{node: n, source: q.FromClause[0].GetRangeVar(), sample: q.FromClause[0].GetRangeTableSample()}
	if u.sample != nil {
		u.source = u.sample.Relation.GetRangeVar()
	}
	if u.source.GetSchemaname() == "" || u.source.Catalogname != "" || u.source.Alias != nil {
		return nil, nil
	}
	u.ref = catalog.TableRef(s.Database().Name, u.source.Schemaname, u.source.Relname)
	t, ok, err := s.Table(u.ref)
	if err != nil || !ok || t.Whole || t.Part || t.SQLView != "" {
		return nil, err
	}
	u.table, u.ref = t, t.Ref
	u.barred = q.LimitOffset != nil
	want, err := wrapper(s, u, u.barred)
	if err != nil || !proto.Equal(want, q) {
		return nil, err
	}
	it := &item{use: u}
	visible := map[string]bool{}
	for _, target := range q.TargetList {
		name := target.GetResTarget().GetName()
		if name == "" {
			name, _ = figureName(target.GetResTarget().GetVal())
		}
		visible[name] = true
	}
	for _, c := range t.Columns {
		if visible[c.Name] {
			it.columns = append(it.columns, column{name: c.Name, use: u, ref: c.Ref})
		}
	}
	u.source = &pg.RangeVar{Relname: u.source.Relname, Inh: u.source.Inh, Alias: sub.Alias}
	u.item = it
	return named(it, sub.Alias)
}
