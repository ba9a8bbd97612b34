package postgres

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// wrap puts each base table that is not seen whole into its wrapper, names the others with their schema, and turns
// references so that they still find what they were bound to. barred says which tables get a barrier.
func (r *resolver) wrap(s *rewrite.Schema, barred func(i int, u *use) bool) error {
	alias := map[*item]string{}
	for _, u := range r.uses {
		if u.item.clash && !u.plain() {
			name := u.ref.Schema + "_" + u.ref.Table
			for u.aliases[name] {
				name += "_"
			}
			u.aliases[name] = true
			alias[u.item] = name
		}
	}
	r.extendGroups(alias)
	for i, u := range r.uses {
		if u.plain() {
			u.source.Catalogname, u.source.Schemaname = "", u.ref.Schema
			continue
		}
		inner, err := wrapper(s, r.fragments, u, barred(i, u))
		if err != nil {
			return err
		}
		outside := &pg.Alias{Aliasname: u.item.name}
		if name := alias[u.item]; name != "" {
			outside.Aliasname = name
		}
		if u.source.Alias != nil {
			outside.Colnames = u.source.Alias.Colnames
		}
		u.node.Node = &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{Subquery: selectNode(inner), Alias: outside}}
	}
	for _, ref := range r.refs {
		u := ref.item.use
		switch {
		case ref.parts == 0 || u == nil:
		case u.plain() && ref.parts == 3:
			ref.node.Fields = ref.node.Fields[1:]
		case !u.plain() && (ref.parts > 1 || alias[ref.item] != ""):
			name := ref.item.name
			if a := alias[ref.item]; a != "" {
				name = a
			}
			ref.node.Fields = []*pg.Node{pg.MakeStrNode(name), ref.node.Fields[ref.parts]}
		}
	}
	return nil
}

// extendGroups makes explicit what a primary key implies. In `SELECT a, b FROM t GROUP BY a` with the key a, PostgreSQL
// knows that b is one value a group because t is a table; of a derived table it does not.
func (r *resolver) extendGroups(alias map[*item]string) {
	for _, g := range r.groups {
		for _, it := range g.items {
			u := it.use
			if u == nil || !it.named || u.plain() || len(u.table.PrimaryKey) == 0 {
				continue
			}
			grouped := func(c catalog.Ref) bool {
				return slices.ContainsFunc(g.columns, func(k column) bool { return k.use == u && *k.ref == c })
			}
			own := func(name string) catalog.Ref {
				return catalog.ColumnRef(u.ref.Database, u.ref.Schema, u.ref.Table, name)
			}
			if slices.ContainsFunc(u.table.PrimaryKey, func(name string) bool { return !grouped(own(name)) }) {
				continue
			}
			qualifier := it.name
			if a := alias[it]; a != "" {
				qualifier = a
			}
			for _, c := range it.columns {
				if slices.Contains(u.seen, c.ref) && !grouped(*c.ref) {
					g.query.GroupClause = append(g.query.GroupClause, columnNode(qualifier, c.name))
				}
			}
		}
	}
}

// wrapper is the derived table that stands for a base table: its visible columns, masked where the policy says so, of
// the rows that the policy lets through.
func wrapper(s *rewrite.Schema, f *fragments, u *use, barrier bool) (*pg.SelectStmt, error) {
	t := u.table
	p := policySQL{schema: s, fragments: f, use: u}
	q := &pg.SelectStmt{LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE}
	for i := range t.Columns {
		c := t.Columns[i]
		if u.view != nil && u.view.column(c.Name) == nil {
			continue
		}
		value, err := p.column(c)
		if err != nil {
			return nil, err
		}
		if value == nil {
			if slices.Contains(u.seen, &t.Columns[i].Ref) {
				return nil, unmaskable(u, c)
			}
			continue
		}
		target := &pg.ResTarget{Val: value}
		if c.Mask != nil {
			target.Name = c.Name
		}
		q.TargetList = append(q.TargetList, &pg.Node{Node: &pg.Node_ResTarget{ResTarget: target}})
	}
	source := &pg.RangeVar{Schemaname: t.Ref.Schema, Relname: t.Ref.Table, Inh: u.source.Inh, Relpersistence: "p"}
	from := &pg.Node{Node: &pg.Node_RangeVar{RangeVar: source}}
	if u.view != nil {
		from = &pg.Node{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{
			Subquery: selectNode(u.view.body), Alias: &pg.Alias{Aliasname: t.Ref.Table},
		}}}
	}
	if u.sample != nil {
		sample := proto.Clone(u.sample).(*pg.RangeTableSample)
		sample.Relation = from
		from = &pg.Node{Node: &pg.Node_RangeTableSample{RangeTableSample: sample}}
	}
	q.FromClause = []*pg.Node{from}
	if t.Protected {
		where, err := p.filter(t)
		if err != nil {
			return nil, err
		}
		q.WhereClause = where
	}
	if barrier || t.Protected && p.risky {
		q.LimitOffset, q.LimitOption = intNode(0), pg.LimitOption_LIMIT_OPTION_COUNT
	}
	return q, nil
}

func unmaskable(u *use, c rewrite.Column) *acl.Refusal {
	no := &acl.Refusal{
		Code: acl.CodeMaskUnsupported, Public: fmt.Sprintf("%s is masked in a way that PostgreSQL cannot do for its type", said(c.Name)),
		Hint: "leave the column out", Detail: fmt.Sprintf("%s of type %q", c.Ref, c.Type),
	}
	if u.within != "" {
		no.Public, no.Hint = u.within+" reads a column that is masked in a way that PostgreSQL cannot do for its type", "query the tables that it reads"
	}
	return no
}

// policySQL makes expressions of one table's policy.
type policySQL struct {
	schema             *rewrite.Schema
	fragments          *fragments
	use                *use
	risky, riskyFilter bool // a mask, a row filter could fail on a row
}

// filter is (one of the permissive conditions) and all restrictive ones.
func (p *policySQL) filter(t *rewrite.Table) (*pg.Node, error) {
	bind := func(cs []rewrite.Condition) (out []*pg.Node, err error) {
		for _, c := range cs {
			n, err := p.condition(c)
			if err != nil {
				return nil, err
			}
			if p.use.view != nil {
				b := barrier{inner: true}
				p.riskyFilter = p.riskyFilter || b.input(n)
			}
			out = append(out, n)
		}
		return out, nil
	}
	permissive, err := bind(t.Permissive)
	if err != nil {
		return nil, err
	}
	restrictive, err := bind(t.Restrictive)
	if err != nil {
		return nil, err
	}
	if len(permissive) == 0 {
		return boolNode(false), nil
	}
	return combine(pg.BoolExprType_AND_EXPR, append([]*pg.Node{combine(pg.BoolExprType_OR_EXPR, permissive)}, restrictive...)), nil
}

// combine joins conditions by AND or OR. Like the parser, it keeps chains of one operator flat.
func combine(op pg.BoolExprType, list []*pg.Node) *pg.Node {
	if len(list) == 1 {
		return list[0]
	}
	var args []*pg.Node
	for _, n := range list {
		if b := n.GetBoolExpr(); b != nil && b.Boolop == op {
			args = append(args, b.Args...)
		} else {
			args = append(args, n)
		}
	}
	return pg.MakeBoolExprNode(op, args, 0)
}

// column is a column as the asker sees it, nil if its mask has no expression for the type.
func (p *policySQL) column(c rewrite.Column) (*pg.Node, error) {
	if c.Mask == nil {
		return columnNode(c.Name), nil
	}
	raw := columnNode(c.Name)
	switch c.Mask.Kind {
	case acl.MaskNull:
		return p.castTo(nullNode(), c.Type), nil
	case acl.MaskHash:
		// The key is a setting that whoever runs the statement makes; without it every value reads as NULL.
		key := callNode("nullif", callNode("current_setting", pg.MakeAConstStrNode("schemagate.hash_key", 0), boolNode(true)), pg.MakeAConstStrNode("", 0))
		keyed := pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("||")}, key, textNode(raw), 0)
		digest := callNode("sha256", callNode("convert_to", keyed, pg.MakeAConstStrNode("UTF8", 0)))
		return callNode("encode", digest, pg.MakeAConstStrNode("hex", 0)), nil
	case acl.MaskPartial:
		first := callNode("left", textNode(raw), intNode(1))
		return pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("||")}, first, pg.MakeAConstStrNode("***", 0), 0), nil
	case acl.MaskConstant:
		return p.constant(c.Mask.Constant, c.Type)
	case acl.MaskExpression:
		n, err := p.condition(c.Mask.Expression)
		if err != nil {
			return nil, err
		}
		b := barrier{inner: true}
		p.risky = p.risky || b.input(n)
		return n, nil
	}
	return nil, fmt.Errorf("mask of kind %q on %s is not known", c.Mask.Kind, c.Ref)
}

// enclosed is a query of all rows of another.
func enclosed(q *pg.SelectStmt) *pg.Node {
	all := pg.MakeColumnRefNode([]*pg.Node{pg.MakeAStarNode()}, 0)
	return selectNode(&pg.SelectStmt{
		TargetList: []*pg.Node{{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: all}}}},
		FromClause: []*pg.Node{{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{
			Subquery: selectNode(q), Alias: &pg.Alias{Aliasname: "capped"},
		}}}},
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE,
	})
}

// limit caps the rows of a query.
func limit(q *pg.SelectStmt, rows int) {
	c := q.LimitCount.GetAConst()
	n, isInt := c.GetVal().(*pg.A_Const_Ival)
	switch {
	case q.LimitCount == nil || c.GetIsnull():
		q.LimitCount = intNode(rows)
	case isInt:
		q.LimitCount = intNode(min(rows, int(n.Ival.GetIval())))
	default:
		q.LimitCount = &pg.Node{Node: &pg.Node_MinMaxExpr{MinMaxExpr: &pg.MinMaxExpr{
			Op: pg.MinMaxOp_IS_LEAST, Args: []*pg.Node{q.LimitCount, intNode(rows)},
		}}}
	}
	q.LimitOption = pg.LimitOption_LIMIT_OPTION_COUNT
}
