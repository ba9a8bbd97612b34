package postgres

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
)

// firstPlace numbers the parameters that mark the places of values while a condition is parsed. Nobody writes such a
// number.
const firstPlace = 20001

// condition parses an expression of the policy, fills in its values as literals and binds its names: columns to the
// wrapped table or to tables of the policy's own subqueries, never to anything of the asker's. Errors are faults: the
// asker did nothing wrong.
func (p *policySQL) condition(c rewrite.Condition) (*pg.Node, error) {
	n, err := parseCondition(p.fragments, c)
	if err == nil {
		err = p.bind(n)
	}
	if no, ok := err.(*acl.Refusal); ok {
		if p.use.view != nil && no.Code == acl.CodeNotAvailable {
			// The asker may not read what the view's policy needs of the tables below.
			return nil, acl.NotAvailable(p.use.called(), fmt.Sprintf("policy %s: %s (%s)", c.Rule, no.Public, no.Detail))
		}
		err = fmt.Errorf("%s (%s)", no.Public, no.Detail)
	}
	if err != nil {
		return nil, fmt.Errorf("policy %s: %v", c.Rule, err)
	}
	return n, nil
}

func parseCondition(f *fragments, c rewrite.Condition) (*pg.Node, error) {
	if len(c.Text) != len(c.Values)+1 {
		return nil, fmt.Errorf("%d pieces of text around %d values", len(c.Text), len(c.Values))
	}
	var b strings.Builder
	b.WriteString("SELECT 1 WHERE (")
	for i, text := range c.Text {
		if strings.Contains(text, "$2000") {
			return nil, fmt.Errorf("parameters are not supported")
		}
		b.WriteString(text)
		if i < len(c.Values) {
			fmt.Fprintf(&b, " $%d ", firstPlace+i)
		}
	}
	b.WriteString("\n)")
	result, err := f.statement(b.String())
	if err != nil {
		return nil, err
	}
	bare := &pg.SelectStmt{LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE}
	q := result.GetStmts()[0].GetStmt().GetSelectStmt()
	if len(result.Stmts) != 1 || q == nil || q.WhereClause == nil {
		return nil, fmt.Errorf("it is no expression")
	}
	where := q.WhereClause
	q.WhereClause, q.TargetList = nil, nil
	if !bytes.Equal(spell(q), spell(bare)) {
		return nil, fmt.Errorf("it is more than an expression")
	}
	fill := filler{values: c.Values, filled: make([]bool, len(c.Values))}
	if err := fill.fill(where); err != nil {
		return nil, err
	}
	for i, done := range fill.filled {
		if !done {
			return nil, fmt.Errorf("the place of value %d is inside a string or a comment", i+1)
		}
	}
	return where, nil
}

// filler replaces parameters by literals.
type filler struct {
	values []any
	filled []bool
}

func (f *filler) fill(n *pg.Node) error {
	if in := n.GetAExpr(); in != nil && in.Kind == pg.A_Expr_Kind_AEXPR_IN {
		items := in.Rexpr.GetList().GetItems()
		if len(items) == 1 && items[0].GetParamRef() != nil {
			if err := f.fill(in.Lexpr); err != nil {
				return err
			}
			return f.fillList(n, in, items[0].GetParamRef())
		}
	}
	if param := n.GetParamRef(); param != nil {
		v, err := f.take(param)
		if err != nil {
			return err
		}
		lit, err := literal(v)
		if err != nil {
			return err
		}
		n.Node = lit.Node
		return nil
	}
	return f.fillAll(n)
}

func (f *filler) fillAll(m proto.Message) error {
	var err error
	inside(m, func(child proto.Message) bool {
		if n, ok := child.(*pg.Node); ok {
			err = f.fill(n)
		} else {
			err = f.fillAll(child)
		}
		return err == nil
	})
	return err
}

// fillList fills the one element of an IN list, with several literals if the value is a slice. Nothing is in an empty
// list.
func (f *filler) fillList(n *pg.Node, in *pg.A_Expr, param *pg.ParamRef) error {
	v, err := f.take(param)
	if err != nil {
		return err
	}
	var elements []any
	switch v := v.(type) {
	case []string:
		for _, e := range v {
			elements = append(elements, e)
		}
	case []int64:
		for _, e := range v {
			elements = append(elements, e)
		}
	default:
		elements = []any{v}
	}
	if len(elements) == 0 {
		op, _ := names(in.Name)
		n.Node = boolNode(len(op) == 1 && op[0] == "<>").Node
		return nil
	}
	var items []*pg.Node
	for _, e := range elements {
		lit, err := literal(e)
		if err != nil {
			return err
		}
		items = append(items, lit)
	}
	in.Rexpr.GetList().Items = items
	return nil
}

func (f *filler) take(param *pg.ParamRef) (any, error) {
	i := int(param.Number) - firstPlace
	if i < 0 || i >= len(f.values) || f.filled[i] {
		return nil, fmt.Errorf("parameters are not supported")
	}
	f.filled[i] = true
	return f.values[i], nil
}

// literal makes a literal of an attribute's value.
func literal(v any) (*pg.Node, error) {
	switch v := v.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			return nil, fmt.Errorf("a value holds a NUL character")
		}
		return pg.MakeAConstStrNode(v, 0), nil
	case bool:
		return boolNode(v), nil
	case int64:
		if v > math.MinInt32 && v <= math.MaxInt32 {
			return intNode(int(v)), nil
		}
		return floatNode(strconv.FormatInt(v, 10)), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("a value is no finite number")
		}
		text := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return floatNode(text), nil
	}
	return nil, fmt.Errorf("a value of type %T stands outside an IN list", v)
}

// bind resolves the names of a policy's expression and qualifies them, so that nothing in the asker's statement can
// come between.
func (p *policySQL) bind(n *pg.Node) error {
	r := newResolver(p.schema.Database(), p.fragments, policyTables(p.schema))
	u := &use{source: &pg.RangeVar{Relname: p.use.ref.Table}, ref: p.use.ref}
	it := rawItem(p.schema, u)
	it.name, it.use, it.named, it.bare = u.ref.Table, u, true, true
	if v := p.use.view; v != nil {
		it.has = func(name string) bool { return v.column(name) != nil }
	}
	if err := r.expr(n, &scope{items: []*item{it}}); err != nil {
		return err
	}
	for _, u := range r.uses {
		u.source.Catalogname, u.source.Schemaname = "", u.ref.Schema
	}
	for _, ref := range r.refs {
		switch {
		case ref.parts == 0 && ref.item.name != "":
			ref.node.Fields = append([]*pg.Node{pg.MakeStrNode(ref.item.name)}, ref.node.Fields...)
		case ref.parts == 3:
			ref.node.Fields = ref.node.Fields[1:]
		}
	}
	return nil
}

// constant is the literal of a mask, of the column's type where it can be.
func (p *policySQL) constant(v any, columnType string) (*pg.Node, error) {
	n, err := literal(v)
	if err != nil {
		return nil, err
	}
	name, _ := p.fragments.typeName(columnType)
	kind := ""
	if list := name.GetNames(); len(list) > 0 && len(name.GetArrayBounds()) == 0 {
		kind = list[len(list)-1].GetString_().GetSval()
	}
	ofType := func() *pg.Node {
		return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: n, TypeName: name}}}
	}
	switch v := v.(type) {
	case int64, float64:
		switch kind {
		case "numeric", "float4", "float8":
			return ofType(), nil
		}
		return n, nil
	case string:
		switch kind {
		case "date", "timestamp", "timestamptz":
			if _, err := time.Parse(time.DateOnly, v); err == nil {
				return ofType(), nil
			}
		}
		return textNode(n), nil
	}
	return n, nil
}

// typeName parses the name of a type.
func (f *fragments) typeName(t string) (*pg.TypeName, bool) {
	if t == "" || len(t) > 200 {
		return nil, false
	}
	result, err := f.statement("SELECT NULL::" + t)
	if err != nil || len(result.GetStmts()) != 1 {
		return nil, false
	}
	q := result.Stmts[0].GetStmt().GetSelectStmt()
	if len(q.GetTargetList()) != 1 || q.WhereClause != nil || len(q.FromClause) != 0 {
		return nil, false
	}
	cast := q.TargetList[0].GetResTarget().GetVal().GetTypeCast()
	if cast == nil || !cast.Arg.GetAConst().GetIsnull() {
		return nil, false
	}
	return cast.TypeName, true
}

// castTo casts to a type by its name, nil if the name cannot be read.
func (p *policySQL) castTo(n *pg.Node, t string) *pg.Node {
	name, ok := p.fragments.typeName(t)
	if !ok {
		return nil
	}
	return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: n, TypeName: name}}}
}
