package tsql

import (
	"fmt"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/templates"
)

// printer writes a tree in canonical spelling. What it has no words for is not on the list of allowed nodes: printing is
// how a tree is checked. The first refusal ends it.
type printer struct {
	out []token
	// shape, if not nil, takes the tree's structure, which a text shows only in part.
	shape *strings.Builder
	// free says that functions off the list may be printed: a text that is printed to be compared.
	free bool
	// markers says that variables may stand for the values of a policy.
	markers bool
	err     error
}

func (p *printer) refuse(no error) {
	if p.err == nil {
		p.err = no
	}
}

// node is implemented by every node of the parser's.
type node interface{ Frag() *ast.Fragment }

func (p *printer) unknown(n any) {
	p.refuse(notSupported(n, "the statement uses a construct that is not supported", "write the query without it"))
}

func (p *printer) open(what string) {
	if p.shape != nil {
		p.shape.WriteString(what)
		p.shape.WriteByte('(')
	}
}

func (p *printer) close() {
	if p.shape != nil {
		p.shape.WriteByte(')')
	}
}

func (p *printer) add(t token) {
	p.out = append(p.out, t)
	if p.shape != nil {
		p.shape.WriteByte('0' + byte(t.kind))
		p.shape.WriteString(t.text)
		p.shape.WriteByte(0) // which no text holds
	}
}

// kw writes keywords.
func (p *printer) kw(words ...string) {
	for _, w := range words {
		p.add(token{kind: word, text: w})
	}
}

// noise writes a keyword that the grammar lets people leave out.
func (p *printer) noise(w string) { p.add(token{kind: word, text: w, optional: true}) }

// either writes a keyword that has a synonym.
func (p *printer) either(w, or string) { p.add(token{kind: word, text: w, or: or}) }

func (p *printer) sym(s string) {
	p.add(token{kind: symbol, text: s, glue: s == "," || s == ")" || s == ".", tight: s == "(" || s == "."})
}

// call writes the parenthesis behind the name of a function.
func (p *printer) call() { p.add(token{kind: symbol, text: "(", glue: true, tight: true}) }

func (p *printer) name(id *ast.Identifier) {
	if id == nil || id.Value == "" || id.IsSqlCmd {
		p.refuse(invalid("a name is empty", 0))
		return
	}
	p.add(token{kind: quoted, text: id.Value})
}

// some refuses an empty list where SQL Server has none.
func (p *printer) some(n int) {
	if n == 0 {
		p.refuse(invalid("a list is empty", 0))
	}
}

func (p *printer) path(ids []*ast.Identifier) {
	for i, id := range ids {
		if i > 0 {
			p.sym(".")
		}
		p.name(id)
	}
}

func (p *printer) names(ids []*ast.Identifier) {
	p.some(len(ids))
	p.sym("(")
	for i, id := range ids {
		if i > 0 {
			p.sym(",")
		}
		p.name(id)
	}
	p.sym(")")
}

func (p *printer) statement(s *ast.SelectStatement) {
	if s.Into != nil || s.On != nil {
		p.refuse(&acl.Refusal{
			Code: acl.CodeNotReadOnly, Public: "SELECT ... INTO does more than read", Hint: "send it without INTO",
			Detail: at(s.Into),
		})
		return
	}
	if w := s.WithCtesAndXmlNamespaces; w != nil {
		if w.XmlNamespaces != nil || w.ChangeTrackingContext != nil || len(w.CommonTableExpressions) == 0 {
			p.unknown(w)
			return
		}
		p.kw("WITH")
		for i, c := range w.CommonTableExpressions {
			if i > 0 {
				p.sym(",")
			}
			p.name(c.ExpressionName)
			if len(c.Columns) > 0 {
				p.names(c.Columns)
			}
			p.kw("AS")
			p.sym("(")
			p.query(c.QueryExpression)
			p.sym(")")
		}
	}
	p.query(s.QueryExpression)
	p.hints(s.OptimizerHints)
}

// hints writes those query hints that a database without hidden rows would obey alike.
func (p *printer) hints(hints []ast.OptimizerHintBase) {
	if len(hints) == 0 {
		return
	}
	p.kw("OPTION")
	p.sym("(")
	for i, h := range hints {
		if i > 0 {
			p.sym(",")
		}
		switch h := h.(type) {
		case *ast.OptimizerHint:
			if h.HintKind == "Recompile" {
				p.kw("RECOMPILE")
				continue
			}
		case *ast.LiteralOptimizerHint:
			if n, ok := h.Value.(*ast.IntegerLiteral); ok && (h.HintKind == "MaxRecursion" || h.HintKind == "MaxDop") {
				p.kw(strings.ToUpper(h.HintKind))
				p.number(n.Value)
				continue
			}
		}
		p.refuse(notSupported(h, "this query hint is not supported", "leave it out; MAXRECURSION, MAXDOP and RECOMPILE are supported"))
		return
	}
	p.sym(")")
}

func (p *printer) query(q ast.QueryExpression) {
	if p.err != nil {
		return
	}
	switch q := q.(type) {
	case *ast.QuerySpecification:
		p.open("select")
		p.selection(q)
		p.close()
	case *ast.QueryParenthesisExpression:
		p.open("query")
		p.sym("(")
		p.query(q.QueryExpression)
		p.sym(")")
		p.close()
	case *ast.BinaryQueryExpression:
		var spine []*ast.BinaryQueryExpression
		first := ast.QueryExpression(q)
		for {
			b, ok := first.(*ast.BinaryQueryExpression)
			if !ok {
				break
			}
			spine = append(spine, b)
			first = b.FirstQueryExpression
			p.open("set")
		}
		p.query(first)
		for i := len(spine) - 1; i >= 0; i-- {
			b := spine[i]
			p.kw(strings.ToUpper(b.BinaryQueryExpressionType))
			if b.All {
				p.kw("ALL")
			}
			p.query(b.SecondQueryExpression)
			p.order(b.OrderByClause)
			p.close()
		}
	default:
		p.unknown(q)
	}
}

func (p *printer) selection(q *ast.QuerySpecification) {
	p.kw("SELECT")
	switch q.UniqueRowFilter {
	case "NotSpecified", "":
	case "Distinct", "All":
		p.kw(strings.ToUpper(q.UniqueRowFilter))
	default:
		p.unknown(q)
	}
	if t := q.TopRowFilter; t != nil {
		p.kw("TOP")
		p.expr(t.Expression)
		if t.Percent {
			p.kw("PERCENT")
		}
		if t.WithTies {
			p.kw("WITH", "TIES")
		}
	}
	p.some(len(q.SelectElements))
	for i, e := range q.SelectElements {
		if i > 0 {
			p.sym(",")
		}
		p.element(e)
	}
	if q.FromClause != nil {
		p.kw("FROM")
		p.some(len(q.FromClause.TableReferences))
		for i, t := range q.FromClause.TableReferences {
			if i > 0 {
				p.sym(",")
			}
			p.table(t)
		}
	}
	if w := q.WhereClause; w != nil {
		if w.Cursor != nil {
			p.unknown(w)
		}
		p.kw("WHERE")
		p.condition(w.SearchCondition)
	}
	p.group(q.GroupByClause)
	if q.HavingClause != nil {
		p.kw("HAVING")
		p.condition(q.HavingClause.SearchCondition)
	}
	if q.WindowClause != nil {
		p.refuse(notSupported(q.WindowClause, "a WINDOW clause is not supported", "write the window behind OVER"))
	}
	p.order(q.OrderByClause)
	if o := q.OffsetClause; o != nil {
		p.kw("OFFSET")
		p.expr(o.OffsetExpression)
		p.either("ROWS", "ROW")
		if o.FetchExpression != nil {
			p.kw("FETCH")
			p.either("NEXT", "FIRST")
			p.expr(o.FetchExpression)
			p.either("ROWS", "ROW")
			p.kw("ONLY")
		}
	}
	if q.ForClause != nil {
		p.forXML(q.ForClause)
	}
}

// forXML writes FOR XML PATH, which makes a text of the rows and of the names of their columns. AUTO would tell of the
// tables that they come from.
func (p *printer) forXML(c ast.ForClause) {
	x, ok := c.(*ast.XmlForClause)
	if !ok || len(x.Options) == 0 || x.Options[0].OptionKind != "Path" {
		p.refuse(notSupported(c, "this FOR clause is not supported", "leave it out, or use FOR XML PATH"))
		return
	}
	p.kw("FOR", "XML")
	for i, o := range x.Options {
		if i > 0 {
			p.sym(",")
		}
		switch o.OptionKind {
		case "Path", "Root":
			p.kw(strings.ToUpper(o.OptionKind))
			if o.Value != nil {
				p.call()
				p.expr(o.Value)
				p.sym(")")
			}
		case "Type":
			p.kw("TYPE")
		default:
			p.refuse(notSupported(o, "this option of FOR XML is not supported", "use PATH, ROOT and TYPE only"))
		}
	}
}

func (p *printer) element(e ast.SelectElement) {
	switch e := e.(type) {
	case *ast.SelectStarExpression:
		p.open("star")
		if e.Qualifier != nil {
			p.path(e.Qualifier.Identifiers)
			p.sym(".")
		}
		p.sym("*")
		p.close()
	case *ast.SelectScalarExpression:
		p.open("element")
		c := e.ColumnName
		before := c != nil && aliasFirst(e)
		if before {
			p.alias(c)
			p.sym("=")
		}
		p.expr(e.Expression)
		if c != nil && !before {
			p.noise("AS")
			p.alias(c)
		}
		p.close()
	case *ast.SelectSetVariable:
		p.refuse(&acl.Refusal{
			Code: acl.CodeNotReadOnly, Public: "a SELECT that sets a variable does more than read", Hint: "select the value instead",
			Detail: at(e),
		})
	default:
		p.unknown(e)
	}
}

// aliasFirst reports whether an element of a select list is written as alias = expression.
func aliasFirst(e *ast.SelectScalarExpression) bool {
	var alias *ast.Fragment
	switch c := e.ColumnName; {
	case c.Identifier != nil:
		alias = &c.Identifier.Fragment
	default:
		alias = c.ValueExpression.(node).Frag()
	}
	x, ok := e.Expression.(node)
	return ok && alias.HasSpan() && x.Frag().HasSpan() && alias.StartOffset < x.Frag().StartOffset
}

func (p *printer) alias(c *ast.IdentifierOrValueExpression) {
	if c.Identifier != nil {
		p.name(c.Identifier)
		return
	}
	if s, ok := c.ValueExpression.(*ast.StringLiteral); ok && s.Value != "" {
		p.expr(s)
		return
	}
	p.unknown(c)
}

// aliasName returns the name that an alias gives.
func aliasName(c *ast.IdentifierOrValueExpression) string {
	if c.Identifier != nil {
		return c.Identifier.Value
	}
	return c.Value
}

func (p *printer) group(g *ast.GroupByClause) {
	if g == nil {
		return
	}
	if g.All || g.GroupByOption != "None" && g.GroupByOption != "Rollup" && g.GroupByOption != "Cube" {
		p.refuse(notSupported(g, "GROUP BY ALL is not supported", "leave ALL out"))
		return
	}
	p.kw("GROUP", "BY")
	p.some(len(g.GroupingSpecifications))
	p.groupings(g.GroupingSpecifications)
	if g.GroupByOption != "None" {
		p.kw("WITH", strings.ToUpper(g.GroupByOption))
	}
}

func (p *printer) groupings(list []ast.GroupingSpecification) {
	for i, g := range list {
		if i > 0 {
			p.sym(",")
		}
		nested := func(kind string, inner []ast.GroupingSpecification) {
			p.open(kind)
			p.sym("(")
			p.groupings(inner)
			p.sym(")")
			p.close()
		}
		switch g := g.(type) {
		case *ast.ExpressionGroupingSpecification:
			if g.DistributedAggregation {
				p.unknown(g)
			}
			p.expr(g.Expression)
		case *ast.CompositeGroupingSpecification:
			nested("composite", g.Items)
		case *ast.GrandTotalGroupingSpecification:
			nested("total", nil)
		case *ast.RollupGroupingSpecification:
			p.kw("ROLLUP")
			nested("rollup", g.Arguments)
		case *ast.CubeGroupingSpecification:
			p.kw("CUBE")
			nested("cube", g.Arguments)
		case *ast.GroupingSetsGroupingSpecification:
			p.kw("GROUPING", "SETS")
			nested("sets", g.Arguments)
		default:
			p.unknown(g)
		}
	}
}

func (p *printer) order(o *ast.OrderByClause) {
	if o == nil {
		return
	}
	p.kw("ORDER", "BY")
	p.some(len(o.OrderByElements))
	for i, e := range o.OrderByElements {
		if i > 0 {
			p.sym(",")
		}
		p.expr(e.Expression)
		switch e.SortOrder {
		case "Ascending":
			p.kw("ASC")
		case "Descending":
			p.kw("DESC")
		}
	}
}

// joins are the kinds of joins with their words; optional ones are in lower case.
var joins = map[string]string{
	"Inner": "inner JOIN", "LeftOuter": "LEFT outer JOIN", "RightOuter": "RIGHT outer JOIN", "FullOuter": "FULL outer JOIN",
	"CrossJoin": "CROSS JOIN", "CrossApply": "CROSS APPLY", "OuterApply": "OUTER APPLY",
}

func (p *printer) join(n any, kind string) {
	said, ok := joins[kind]
	if !ok {
		p.unknown(n)
	}
	for _, w := range strings.Fields(said) {
		if up := strings.ToUpper(w); up != w {
			p.noise(up)
		} else {
			p.kw(w)
		}
	}
}

func (p *printer) table(t ast.TableReference) {
	if p.err != nil {
		return
	}
	// Joins nest to the left without end.
	var spine []ast.TableReference
	for {
		first := firstOf(t)
		if first == nil {
			break
		}
		spine = append(spine, t)
		t = first
		p.open("join")
	}
	p.relation(t)
	for i := len(spine) - 1; i >= 0 && p.err == nil; i-- {
		switch j := spine[i].(type) {
		case *ast.QualifiedJoin:
			if j.JoinHint != "" && j.JoinHint != "None" {
				p.refuse(notSupported(j, "join hints are not supported", "leave the hint out"))
			}
			p.join(j, j.QualifiedJoinType)
			p.table(j.SecondTableReference)
			p.kw("ON")
			p.condition(j.SearchCondition)
		case *ast.UnqualifiedJoin:
			p.join(j, j.UnqualifiedJoinType)
			p.table(j.SecondTableReference)
		}
		p.close()
	}
}

// firstOf returns the left side of a join, or nil.
func firstOf(t ast.TableReference) ast.TableReference {
	switch j := t.(type) {
	case *ast.QualifiedJoin:
		return j.FirstTableReference
	case *ast.UnqualifiedJoin:
		return j.FirstTableReference
	}
	return nil
}

func (p *printer) relation(t ast.TableReference) {
	p.open("table")
	defer p.close()
	switch t := t.(type) {
	case *ast.NamedTableReference:
		p.named(t)
	case *ast.QueryDerivedTable:
		if t.ForPath || t.Alias == nil {
			p.refuse(invalid("a subquery in FROM needs an alias", offset(t)))
			return
		}
		p.sym("(")
		p.query(t.QueryExpression)
		p.sym(")")
		p.as(t.Alias, t.Columns)
	case *ast.InlineDerivedTable:
		if t.ForPath || t.Alias == nil {
			p.refuse(invalid("VALUES in FROM need an alias", offset(t)))
			return
		}
		p.sym("(")
		p.kw("VALUES")
		p.some(len(t.RowValues))
		for i, row := range t.RowValues {
			if i > 0 {
				p.sym(",")
			}
			p.some(len(row.ColumnValues))
			p.sym("(")
			p.exprs(row.ColumnValues)
			p.sym(")")
		}
		p.sym(")")
		p.as(t.Alias, t.Columns)
	case *ast.JoinParenthesisTableReference:
		p.sym("(")
		p.table(t.Join)
		p.sym(")")
	case *ast.GlobalFunctionTableReference:
		if _, ok := tableFunctions[strings.ToLower(t.Name.Value)]; !ok || t.ForPath || t.Name.QuoteType != "NotQuoted" {
			p.refuse(notSupported(t, fmt.Sprintf("the table function %s is not supported", t.Name.Value), "use a table or a subquery"))
			return
		}
		p.kw(strings.ToUpper(t.Name.Value))
		p.call()
		p.exprs(t.Parameters)
		p.sym(")")
		p.as(t.Alias, t.Columns)
	case *ast.PivotedTableReference:
		p.table(t.TableReference)
		p.kw("PIVOT")
		p.sym("(")
		if t.ForPath || t.Alias == nil || len(t.AggregateFunctionIdentifier.Identifiers) != 1 || len(t.ValueColumns) != 1 {
			p.unknown(t)
			return
		}
		f := t.AggregateFunctionIdentifier.Identifiers[0].Value
		if !aggregates[strings.ToLower(f)] {
			p.refuse(notSupported(t, fmt.Sprintf("the function %s is not supported in a PIVOT", f), "use SUM, COUNT, MIN, MAX or AVG"))
		}
		p.kw(strings.ToUpper(f))
		p.call()
		p.expr(t.ValueColumns[0])
		p.sym(")")
		p.kw("FOR")
		p.expr(t.PivotColumn)
		p.kw("IN")
		p.names(t.InColumns)
		p.sym(")")
		p.as(t.Alias, nil)
	case *ast.UnpivotedTableReference:
		p.table(t.TableReference)
		p.kw("UNPIVOT")
		p.sym("(")
		if t.ForPath || t.Alias == nil || t.NullHandling != "None" {
			p.unknown(t)
			return
		}
		p.name(t.ValueColumn)
		p.kw("FOR")
		p.name(t.PivotColumn)
		p.kw("IN")
		p.sym("(")
		p.some(len(t.InColumns))
		for i, c := range t.InColumns {
			if i > 0 {
				p.sym(",")
			}
			p.expr(c)
		}
		p.sym(")")
		p.sym(")")
		p.as(t.Alias, nil)
	case *ast.SchemaObjectFunctionTableReference:
		p.refuse(notSupported(t, "functions of the database and methods of columns are not supported", "use a table or a subquery"))
	default:
		p.unknown(t)
	}
}

func (p *printer) named(t *ast.NamedTableReference) {
	if t.TableSampleClause != nil {
		p.refuse(notSupported(t.TableSampleClause, "TABLESAMPLE is not supported, since it counts pages of all rows", "use TOP with ORDER BY NEWID()"))
	}
	if t.TemporalClause != nil || t.ForPath {
		p.refuse(notSupported(t, "reading the history of a table is not supported", "leave the clause out"))
	}
	said := t.SchemaObject.Identifiers
	for i, id := range said {
		if i > 0 {
			p.sym(".")
		}
		if id.Value == "" && i == 1 && len(said) == 3 {
			continue // db..table
		}
		p.name(id)
	}
	if t.Alias != nil {
		p.as(t.Alias, nil)
	}
	if len(t.TableHints) == 0 {
		return
	}
	p.noise("WITH")
	p.sym("(")
	for i, h := range t.TableHints {
		if i > 0 {
			p.sym(",")
		}
		switch h := h.(type) {
		case *ast.TableHint:
			if w, ok := dirty[h.HintKind]; ok {
				p.kw(w)
				continue
			}
		case *ast.IndexTableHint, *ast.ForceSeekTableHint:
			p.refuse(notSupported(h, "index hints are not supported, since an index can tell of columns", "leave the hint out"))
			return
		}
		p.refuse(notSupported(h, "this table hint is not supported, since it takes locks or tells of them", "leave it out; NOLOCK is supported"))
		return
	}
	p.sym(")")
}

// dirty are the table hints that take no locks and tell of none. They move into the wrapper.
var dirty = map[string]string{"NoLock": "NOLOCK", "ReadUncommitted": "READUNCOMMITTED"}

func (p *printer) as(alias *ast.Identifier, columns []*ast.Identifier) {
	if alias != nil {
		p.noise("AS")
		p.name(alias)
	}
	if len(columns) > 0 {
		p.names(columns)
	}
}

// contextual are the words that are keywords only where the grammar expects them. As names they get brackets.
var contextual = words(`apply at cube first following grouping ignore max maxdop maxrecursion next nulls offset only
	partition path preceding range recompile respect rollup root row rows sets ties time try_cast type unbounded
	window within without xml zone`)

// write makes a text of tokens.
func write(tokens []token) (string, error) {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 && !t.glue && !tokens[i-1].tight {
			b.WriteByte(' ')
		}
		switch t.kind {
		case quoted:
			s, err := templates.Quote(catalog.TSQL, t.text)
			if err == nil && contextual[strings.ToLower(t.text)] && s == t.text {
				s = "[" + s + "]"
			}
			if err != nil {
				return "", &acl.Refusal{Code: acl.CodeNotSupported, Public: "a name in the statement is not supported", Hint: "choose another name", Detail: err.Error()}
			}
			b.WriteString(s)
		case text:
			b.WriteString(literal(t.text))
		case national:
			b.WriteString("N" + literal(t.text))
		default:
			b.WriteString(t.text)
		}
	}
	return b.String(), nil
}

func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
