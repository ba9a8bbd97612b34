package tsql

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// Wrap puts every base table behind its wrapper, also one that the principal sees as it is: so no name can mean a column
// that the catalog does not hold, and no name of a WITH can take its place.
func (t *tree) Wrap(s *rewrite.Schema) error {
	type kind struct {
		table   catalog.Ref
		hint    string
		guarded bool
	}
	made := map[kind]ast.QueryExpression{} // which may stand in several places, since nothing changes it any more
	for _, u := range t.found.uses {
		guarded := u.table.Protected && t.found.fallible
		switch {
		case guarded && t.found.stuck != nil:
			return refuseStuck(t.found.stuck)
		case guarded && u.recursive: // a recursive part takes no TOP
			return notSupported(*u.slot, "a WITH that reads itself, beside a table that does not show all of its rows and an expression that can fail, is not supported",
				"read the table in a WITH of its own before")
		}
		k := kind{u.table.Ref, u.hint, guarded}
		if made[k] == nil {
			sql, err := wrapper(s, u.table, u.hint, guarded)
			if err != nil {
				return err
			}
			if made[k], err = own(sql); err != nil {
				return fmt.Errorf("tsql: wrapper of %s: %w", u.table.Ref, err)
			}
		}
		named := (*u.slot).(*ast.NamedTableReference)
		d := &ast.QueryDerivedTable{Fragment: named.Fragment, QueryExpression: made[k], Alias: named.Alias}
		if d.Alias == nil {
			d.Alias = named.SchemaObject.BaseIdentifier
		}
		*u.slot = d
	}
	return nil
}

// own reads a query of the guard's own making.
func own(sql string) (ast.QueryExpression, error) {
	t, err := parse(sql)
	if err != nil {
		return nil, errors.New(refusalText(err))
	}
	if err := t.Single(); err != nil {
		return nil, errors.New(refusalText(err))
	}
	p := printer{free: true}
	p.statement(t.query)
	if p.err != nil {
		return nil, errors.New(refusalText(p.err))
	}
	if no := covers(t.tokens, p.out); no != nil {
		return nil, errors.New(refusalText(no))
	}
	return t.query.QueryExpression, nil
}

// refusalText keeps a refusal of the guard's own or a policy's SQL from passing for one of the asker's.
func refusalText(err error) string {
	var no *acl.Refusal
	if errors.As(err, &no) && no.Detail != "" {
		return no.Error() + " (" + no.Detail + ")"
	}
	return err.Error()
}

// seen is the name of a guard: whether a row passes the filter.
const seen = reserved + "_seen"

// wrapper writes, in canonical spelling, the derived table that stands for a table: its visible columns, masked, of the
// rows that pass the filter. SQL Server merges it into the query around it and may then run the asker's expressions on
// rows before the filter, whose failing would tell of hidden rows. Where an expression can fail, the wrapper is guarded
// twice:
//
//   - each column reads NULL unless its row passes the filter. Wherever an expression is moved, it is moved with what it
//     reads, so it cannot see a hidden value; on NULL it does not fail, or the statement was refused.
//   - TOP with the largest number keeps conditions and joins above it: a condition below a TOP would change which rows it
//     counts. SQL Server takes it for any other number, unlike TOP 100 PERCENT.
func wrapper(s *rewrite.Schema, t *rewrite.Table, hint string, guarded bool) (string, error) {
	filter := ""
	if t.Protected {
		var err error
		if filter, err = filterOf(s, t); err != nil {
			return "", err
		}
	}
	var columns []string
	for i := range t.Columns {
		c := &t.Columns[i]
		name, err := quote(c.Name)
		if err != nil {
			return "", err
		}
		e, err := masked(s, t, c)
		if err != nil {
			return "", err
		}
		if guarded {
			e = "CASE WHEN " + seen + "." + seen + " = 1 THEN " + e + " END"
		}
		if e == reserved+"."+name {
			columns = append(columns, e)
		} else {
			columns = append(columns, e+" AS "+name)
		}
	}
	table, err := tableName(t.Ref)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("SELECT ")
	if guarded {
		b.WriteString("TOP (9223372036854775807) ")
	}
	b.WriteString(strings.Join(columns, ", ") + " FROM " + table + " AS " + reserved)
	if hint != "" {
		b.WriteString(" WITH (" + hint + ")")
	}
	if guarded {
		b.WriteString(" CROSS APPLY (SELECT CASE WHEN " + filter + " THEN 1 END AS " + seen + ") AS " + seen)
	}
	if filter != "" {
		b.WriteString(" WHERE " + filter)
	}
	return b.String(), nil
}

func quote(name string) (string, error) {
	return write([]token{{kind: quoted, text: name}})
}

func tableName(t catalog.Ref) (string, error) {
	return write([]token{{kind: quoted, text: schemaName(t.Schema)}, {kind: symbol, text: ".", glue: true, tight: true}, {kind: quoted, text: t.Table}})
}

// filterOf is (one of the permissive conditions) AND each restrictive one; without a permissive one it is false.
func filterOf(s *rewrite.Schema, t *rewrite.Table) (string, error) {
	if len(t.Permissive) == 0 {
		return "1 = 0", nil
	}
	list := func(conditions []rewrite.Condition, op string) (string, error) {
		var parts []string
		for _, c := range conditions {
			e, err := condition(s, t, c)
			if err != nil {
				return "", err
			}
			parts = append(parts, "("+e+")")
		}
		return strings.Join(parts, op), nil
	}
	any, err := list(t.Permissive, " OR ")
	if err != nil {
		return "", err
	}
	all, err := list(t.Restrictive, " AND ")
	if err != nil || all == "" {
		return any, err
	}
	return "(" + any + ") AND " + all, nil
}

// masked writes what a column reads as.
func masked(s *rewrite.Schema, t *rewrite.Table, c *rewrite.Column) (string, error) {
	name, err := quote(c.Name)
	if err != nil {
		return "", err
	}
	raw := reserved + "." + name
	if c.Mask == nil {
		return raw, nil
	}
	switch m := c.Mask; m.Kind {
	case acl.MaskNull:
		return "CASE WHEN 1 = 0 THEN " + raw + " END", nil // which has the column's type, whatever the catalog knows of it
	case acl.MaskHash:
		// NULL where no key is set, and where the column is.
		key := "SESSION_CONTEXT(N'schemagate_hash_key')"
		return "CASE WHEN " + key + " IS NOT NULL AND " + raw + " IS NOT NULL THEN LOWER(CONVERT(varchar(64), HASHBYTES('SHA2_256', CONVERT(nvarchar(4000), " +
			key + ") + CONVERT(nvarchar(max), " + raw + ")), 2)) END", nil
	case acl.MaskPartial:
		return "LEFT(CONVERT(nvarchar(max), " + raw + "), 1) + N'***'", nil
	case acl.MaskConstant:
		e, err := valueLiteral(m.Constant)
		if err != nil {
			return "", fmt.Errorf("tsql: mask of %s: %w", c.Ref, err)
		}
		p := printer{}
		p.expr(e)
		if p.err != nil {
			return "", p.err
		}
		return write(p.out)
	case acl.MaskExpression:
		return expression(s, t, m.Expression)
	}
	return "", fmt.Errorf("tsql: mask %q of %s is not known", c.Mask.Kind, c.Ref)
}

// condition reads a condition of the policy on a table: its names are bound to the table's raw columns and to tables of
// the catalog and written out, so that no name of a statement around them can capture them, and its values become
// literals in the tree. Its faults are the policy's, not the asker's.
func condition(s *rewrite.Schema, t *rewrite.Table, c rewrite.Condition) (string, error) {
	return policySQL(s, t, c, "SELECT 1 WHERE ", func(q *ast.QuerySpecification, r *resolver, in *scope, p *printer) error {
		if q.WhereClause == nil || len(q.SelectElements) != 1 {
			return errors.New("it is not a condition")
		}
		r.condition(&q.WhereClause.SearchCondition, in)
		p.condition(q.WhereClause.SearchCondition)
		return nil
	})
}

// expression reads an expression of the policy.
func expression(s *rewrite.Schema, t *rewrite.Table, c rewrite.Condition) (string, error) {
	text, err := policySQL(s, t, c, "SELECT ", func(q *ast.QuerySpecification, r *resolver, in *scope, p *printer) error {
		var e *ast.SelectScalarExpression
		if len(q.SelectElements) == 1 {
			e, _ = q.SelectElements[0].(*ast.SelectScalarExpression)
		}
		if e == nil || e.ColumnName != nil || q.WhereClause != nil {
			return errors.New("it is not an expression")
		}
		r.expr(&e.Expression, in)
		p.expr(e.Expression)
		return nil
	})
	return "(" + text + ")", err
}

// policySQL parses SQL of the policy behind head, puts its values in place, binds its names and prints what take finds.
func policySQL(s *rewrite.Schema, t *rewrite.Table, c rewrite.Condition, head string,
	take func(*ast.QuerySpecification, *resolver, *scope, *printer) error) (string, error) {
	// Not wrapped: a refusal inside a policy must not pass for one of the asker's statement.
	fault := func(err error) (string, error) {
		return "", fmt.Errorf("tsql: policy %s: %s", c.Rule, refusalText(err))
	}
	var sql strings.Builder
	sql.WriteString(head)
	for i, text := range c.Text {
		if i > 0 {
			sql.WriteString(" " + marker(i-1) + " ")
		}
		sql.WriteString(text)
	}
	parsed, err := parse(sql.String())
	if err != nil {
		return fault(err)
	}
	if err := parsed.Single(); err != nil {
		return fault(err)
	}
	all := printer{markers: true}
	all.statement(parsed.query)
	if all.err != nil {
		return fault(all.err)
	}
	if no := covers(parsed.tokens, all.out); no != nil {
		return fault(no)
	}
	q, ok := parsed.query.QueryExpression.(*ast.QuerySpecification)
	if !ok || q.FromClause != nil || q.GroupByClause != nil || q.HavingClause != nil || q.OrderByClause != nil || q.OffsetClause != nil ||
		q.TopRowFilter != nil || q.ForClause != nil || q.UniqueRowFilter != "NotSpecified" ||
		parsed.query.WithCtesAndXmlNamespaces != nil || len(parsed.query.OptimizerHints) > 0 {
		return fault(errors.New("it is more than a condition or an expression"))
	}
	r := &resolver{schema: s, policy: t, values: c.Values, filled: make([]int, len(c.Values)), inner: 1}
	in := &scope{sources: []*source{r.raw(t.Ref, reserved, t.Ref.Table)}}
	p := printer{}
	if err := take(q, r, in, &p); err != nil {
		return fault(err)
	}
	if r.err != nil {
		return fault(r.err)
	}
	if p.err != nil {
		return fault(p.err)
	}
	for i, n := range r.filled {
		if n != 1 {
			return fault(fmt.Errorf("value %d stands %d times in the condition; it may stand in a text or a comment", i+1, n))
		}
	}
	text, err := write(p.out)
	if err != nil {
		return fault(err)
	}
	return text, nil
}

// marker is what stands for a value in the text of a policy.
func marker(i int) string { return fmt.Sprintf("@%s%d", reserved, i) }

// raw is a table of the catalog as it is, under an alias; the policy may also call it by its name.
func (r *resolver) raw(t catalog.Ref, alias string, names ...string) *source {
	return &source{name: alias, schema: schemaName(t.Schema), also: names, holds: func(c string) bool {
		_, ok := r.schema.Exists(catalog.ColumnRef(t.Database, t.Schema, t.Table, c))
		return ok
	}}
}

// policyTable resolves a table in a policy's subquery: beside the policy's own table, then in dbo. It gets its whole
// name.
func (r *resolver) policyTable(t *ast.NamedTableReference, written, alias string) *source {
	ids := t.SchemaObject.Identifiers
	name := ids[len(ids)-1].Value
	database := r.policy.Ref.Database
	var places []catalog.Ref
	switch {
	case len(ids) == 1:
		places = []catalog.Ref{catalog.TableRef(database, r.policy.Ref.Schema, name), catalog.TableRef(database, "dbo", name), catalog.TableRef(database, "", name)}
	default:
		if at, ok := r.locate(ids); ok {
			places = []catalog.Ref{at}
		}
	}
	for _, at := range places {
		found, ok := r.schema.Exists(at)
		if !ok {
			continue
		}
		t.SchemaObject = &ast.SchemaObjectName{
			SchemaIdentifier: identifier(schemaName(found.Schema)), BaseIdentifier: identifier(found.Table), Count: 2,
			Identifiers: []*ast.Identifier{identifier(schemaName(found.Schema)), identifier(found.Table)},
		}
		if alias == "" {
			alias = name
			t.Alias = identifier(name)
		}
		return r.raw(found, alias)
	}
	r.refuse(acl.NotAvailable(written, "absent"))
	return nil
}

// place puts a value in its place.
func (r *resolver) place(slot *ast.ScalarExpression, n *ast.VariableReference) value {
	v, ok := r.attribute(n)
	if !ok {
		return value{}
	}
	e, err := valueLiteral(v)
	if err != nil {
		r.refuse(err)
		return value{}
	}
	*slot = e
	return value{constant: true}
}

// places puts a list of values in its place, the one element of an IN list.
func (r *resolver) places(in *ast.BooleanInExpression) {
	if r.policy == nil || len(in.Values) != 1 {
		return
	}
	n, ok := in.Values[0].(*ast.VariableReference)
	if !ok {
		return
	}
	var elements []any
	for i, v := range r.values {
		if n.Name != marker(i) {
			continue
		}
		switch v := v.(type) {
		case []string:
			for _, x := range v {
				elements = append(elements, x)
			}
		case []int64:
			for _, x := range v {
				elements = append(elements, x)
			}
		default:
			return
		}
		r.filled[i]++
		if len(elements) == 0 {
			elements = []any{nil} // in no list at all
		}
	}
	if elements == nil {
		return
	}
	var list []ast.ScalarExpression
	for _, v := range elements {
		e, err := valueLiteral(v)
		if err != nil {
			r.refuse(err)
			return
		}
		list = append(list, e)
	}
	in.Values = list
}

// attribute returns the value that a marker stands for, and counts it.
func (r *resolver) attribute(n *ast.VariableReference) (any, bool) {
	if r.policy != nil {
		for i, v := range r.values {
			if n.Name == marker(i) {
				r.filled[i]++
				return v, true
			}
		}
	}
	r.refuse(notSupported(n, fmt.Sprintf("the variable %s is not supported", n.Name), "write the value itself"))
	return nil, false
}

// valueLiteral writes a typed value.
func valueLiteral(v any) (ast.ScalarExpression, error) {
	signed := func(text string, unsigned func(string) ast.ScalarExpression) ast.ScalarExpression {
		digits, negative := strings.CutPrefix(text, "-")
		e := unsigned(digits)
		if !negative {
			return e
		}
		return &ast.ParenthesisExpression{Expression: &ast.UnaryExpression{UnaryExpressionType: "Negative", Expression: e}}
	}
	switch v := v.(type) {
	case nil:
		return &ast.NullLiteral{LiteralType: "Null", Value: "NULL"}, nil
	case string:
		// SQL Server drops a backslash before the end of a line, inside of a text too.
		if strings.IndexByte(v, 0) >= 0 || strings.Contains(v, "\\\n") || strings.Contains(v, "\\\r\n") {
			return nil, errors.New("a text with a NUL or with a backslash at the end of a line cannot be written in T-SQL")
		}
		return &ast.StringLiteral{LiteralType: "String", IsNational: true, Value: v}, nil
	case bool:
		if v {
			return integer(1), nil
		}
		return integer(0), nil
	case int64:
		return signed(fmt.Sprint(v), func(s string) ast.ScalarExpression {
			return &ast.NumericLiteral{LiteralType: "Numeric", Value: s}
		}), nil
	case float64:
		text := fmt.Sprintf("%e", v)
		if v != v || strings.Contains(text, "Inf") {
			return nil, fmt.Errorf("%v has no literal in T-SQL", v)
		}
		return signed(strings.Replace(fmt.Sprintf("%.17e", v), "e+", "e", 1), func(s string) ast.ScalarExpression {
			return &ast.RealLiteral{LiteralType: "Real", Value: s}
		}), nil
	}
	return nil, fmt.Errorf("a value of type %T stands only alone in an IN list", v)
}

// governor checks the tables of a tree that was parsed from printed text.
type governor struct {
	known map[string]guise // wrappers by their text, once they were recognised
	// plain and guarded say which wrappers of protected tables were met.
	plain, guarded bool
}

// guise is what a wrapper's text stands for.
type guise struct {
	table   *rewrite.Table
	guarded bool
}

// Governed resolves the printed statement as if it were new: names find only what wrappers offer, and no base table is
// within reach.
func (t *tree) Governed(s *rewrite.Schema) error {
	g := &governor{known: map[string]guise{}}
	r := resolver{schema: s, governed: g}
	r.statement(t.query)
	if r.err != nil {
		return errors.New(refusalText(r.err))
	}
	if r.fallible && g.plain || !r.fallible && g.guarded {
		return errors.New("tsql: a wrapper is guarded or is not, against what the statement demands")
	}
	return nil
}

// wrapper returns the source that a wrapper is, or nil for any other derived table.
func (g *governor) wrapper(r *resolver, d *ast.QueryDerivedTable) *source {
	named := wrapped(d)
	if named == nil {
		return nil
	}
	p := printer{free: true}
	p.query(d.QueryExpression)
	if p.err != nil {
		r.refuse(p.err)
		return nil
	}
	got, err := write(p.out)
	if err != nil {
		r.refuse(err)
		return nil
	}
	as, ok := g.known[got]
	if !ok {
		if as, err = g.recognise(r.schema, named, got); err != nil {
			r.refuse(err)
			return nil
		}
		g.known[got] = as
	}
	if as.table.Protected {
		g.plain = g.plain || !as.guarded
		g.guarded = g.guarded || as.guarded
	}
	r.mayFail(as.table)
	return &source{name: d.Alias.Value, columns: stored(as.table)}
}

// wrapped returns the base table of a derived table that has the look of a wrapper, else nil.
func wrapped(d *ast.QueryDerivedTable) *ast.NamedTableReference {
	q, ok := d.QueryExpression.(*ast.QuerySpecification)
	if !ok || len(d.Columns) > 0 || q.FromClause == nil || len(q.FromClause.TableReferences) != 1 {
		return nil
	}
	t := q.FromClause.TableReferences[0]
	if j, ok := t.(*ast.UnqualifiedJoin); ok {
		t = j.FirstTableReference
	}
	named, ok := t.(*ast.NamedTableReference)
	if !ok || named.Alias == nil || named.Alias.Value != reserved || len(named.SchemaObject.Identifiers) != 2 {
		return nil
	}
	return named
}

// recognise generates the wrappers of a table anew and finds the one that reads as was printed.
func (g *governor) recognise(s *rewrite.Schema, named *ast.NamedTableReference, got string) (guise, error) {
	r := resolver{schema: s}
	at, _ := r.locate(named.SchemaObject.Identifiers)
	t, ok, err := s.Table(at)
	if err != nil {
		return guise{}, err
	}
	if !ok || t.SQLView != "" || t.Part {
		return guise{}, fmt.Errorf("tsql: nothing demands a wrapper of %s", said(named.SchemaObject.Identifiers))
	}
	hint := ""
	if len(named.TableHints) == 1 {
		if h, ok := named.TableHints[0].(*ast.TableHint); ok {
			hint = dirty[h.HintKind]
		}
	}
	for _, guarded := range []bool{false, true} {
		if guarded && !t.Protected {
			break
		}
		want, err := wrapper(s, t, hint, guarded)
		if err != nil {
			return guise{}, err
		}
		if got == want {
			return guise{t, guarded}, nil
		}
	}
	return guise{}, fmt.Errorf("tsql: the wrapper of %s is not the one that its policy demands", said(named.SchemaObject.Identifiers))
}
