package tsql

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sqlc-dev/teesql/ast"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
)

// The limits on SQL views: of one in another, and of all that a statement comes to.
const (
	maxViewDepth = 16
	maxViews     = 200
)

// view resolves the definition of a SQL view in a scope of its own and writes it in place of the reference, so that its
// tables are read with the asker's rights. What the asker may not know of in it makes the view as absent as that.
func (r *resolver) view(slot *ast.TableReference, t *ast.NamedTableReference, v *rewrite.Table, written, alias string) *source {
	unsupported := func(detail string) *source {
		no := notSupported(t, written+" is a SQL view whose definition is not supported", "query the tables that it is made of")
		no.Detail += fmt.Sprintf(": SQL view %s: %s", v.Ref, detail)
		r.refuse(no)
		return nil
	}
	r.expanded++
	switch {
	case !v.Whole:
		return unsupported("it has a policy of its own")
	case len(t.TableHints) > 0:
		return unsupported("a hint")
	case r.expanded > maxViews:
		r.refuse(tooLarge(fmt.Sprintf("its SQL views come to more than %d", maxViews)))
		return nil
	case len(r.views) >= maxViewDepth || slices.Contains(r.views, v):
		return unsupported("SQL views in SQL views without end")
	}
	q, err := definition(v.SQLView)
	if err != nil {
		return unsupported(refusalText(err))
	}
	r.mentions = append(r.mentions, mention{table: v, at: r.where(t)})
	at := r.where(t)
	ctes, views, viewAt, filtering, collected := r.ctes, r.views, r.viewAt, r.filtering, r.collected
	r.ctes, r.views, r.viewAt, r.filtering, r.collected = nil, append(slices.Clip(views), v), at, false, nil
	body := r.query(q, nil, nil)
	r.ctes, r.views, r.viewAt, r.filtering, r.collected = ctes, views, viewAt, filtering, collected
	if r.err != nil {
		r.err = viewRefusal(r.err, written, v)
		return nil
	}
	if len(body) != len(v.Columns) || starred(q) && slices.ContainsFunc(body, func(c *col) bool {
		return !slices.ContainsFunc(v.Columns, func(o rewrite.Column) bool { return same(o.Name, c.name) })
	}) {
		r.refuse(acl.NotAvailable(written, fmt.Sprintf("SQL view %s: its definition does not have the columns that the catalog knows", v.Ref)))
		return nil
	}
	d := &ast.QueryDerivedTable{Fragment: t.Fragment, QueryExpression: q, Alias: t.Alias}
	src := &source{name: alias}
	if t.Alias == nil {
		d.Alias = t.SchemaObject.BaseIdentifier
		src.name, src.schema = d.Alias.Value, schemaName(v.Ref.Schema)
	}
	for i := range v.Columns {
		stored := &v.Columns[i]
		d.Columns = append(d.Columns, identifier(stored.Name))
		value := body[i].value
		value.constant, value.tiny, value.summed, value.literal = false, false, false, nil
		src.columns = append(src.columns, &col{name: stored.Name, table: v, stored: stored, value: value})
	}
	*slot = d
	return src
}

// definition reads what defines a SQL view: all of CREATE VIEW, or its SELECT alone.
func definition(sql string) (ast.QueryExpression, error) {
	tokens, err := scan(sql)
	if err != nil {
		return nil, err
	}
	if len(tokens) > 0 && tokens[0].is("create") {
		open := 0
		for i, t := range tokens {
			switch {
			case t.kind == symbol && t.text == "(":
				open++
			case t.kind == symbol && t.text == ")":
				open--
			}
			if open == 0 && t.is("as") {
				sql = sql[tokens[i].end:]
				break
			}
		}
	}
	t, err := parse(sql)
	if err != nil {
		return nil, err
	}
	if err := t.Single(); err != nil {
		return nil, err
	}
	if err := t.Allow(); err != nil {
		return nil, err
	}
	q := t.query.QueryExpression
	for {
		inner, ok := q.(*ast.QueryParenthesisExpression)
		if !ok {
			break
		}
		q = inner.QueryExpression
	}
	if t.query.WithCtesAndXmlNamespaces != nil || len(t.query.OptimizerHints) > 0 {
		return nil, errors.New("a WITH or a hint, which no subquery can have")
	}
	return q, nil
}

// starred reports whether the columns of a query depend on those of its tables.
func starred(q ast.QueryExpression) bool {
	switch q := q.(type) {
	case *ast.QuerySpecification:
		return slices.ContainsFunc(q.SelectElements, func(e ast.SelectElement) bool {
			_, star := e.(*ast.SelectStarExpression)
			return star
		})
	case *ast.BinaryQueryExpression:
		return starred(q.FirstQueryExpression) || starred(q.SecondQueryExpression)
	case *ast.QueryParenthesisExpression:
		return starred(q.QueryExpression)
	}
	return false
}

// viewRefusal turns what is wrong with a SQL view's definition into words that speak of the view only.
func viewRefusal(err error, written string, v *rewrite.Table) error {
	var no *acl.Refusal
	if !errors.As(err, &no) {
		return err
	}
	detail := fmt.Sprintf("SQL view %s: %s (%s)", v.Ref, no.Public, no.Detail)
	switch no.Code {
	case acl.CodeNotAvailable, acl.CodeAmbiguous, acl.CodeUnparsable: // it fails on a database without what is hidden
		return acl.NotAvailable(written, detail)
	case acl.CodeNotSupported:
		return &acl.Refusal{
			Code: no.Code, Public: written + " is a SQL view whose definition is not supported", Hint: "query the tables that it is made of", Detail: detail,
		}
	}
	return err
}
