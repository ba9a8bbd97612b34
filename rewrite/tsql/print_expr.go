package tsql

import (
	"fmt"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"github.com/schemagate/schemagate/acl"
)

func (p *printer) condition(b ast.BooleanExpression) {
	if p.err != nil {
		return
	}
	p.open("is")
	defer p.close()
	not := func(yes bool) {
		if yes {
			p.kw("NOT")
		}
	}
	switch b := b.(type) {
	case *ast.BooleanBinaryExpression:
		var spine []*ast.BooleanBinaryExpression
		first := ast.BooleanExpression(b)
		for {
			x, ok := first.(*ast.BooleanBinaryExpression)
			if !ok {
				break
			}
			spine = append(spine, x)
			first = x.FirstExpression
			p.open("logic")
		}
		p.condition(first)
		for i := len(spine) - 1; i >= 0; i-- {
			p.kw(strings.ToUpper(spine[i].BinaryExpressionType))
			p.condition(spine[i].SecondExpression)
			p.close()
		}
	case *ast.BooleanNotExpression:
		p.kw("NOT")
		p.condition(b.Expression)
	case *ast.BooleanParenthesisExpression:
		p.sym("(")
		p.condition(b.Expression)
		p.sym(")")
	case *ast.BooleanComparisonExpression:
		p.expr(b.FirstExpression)
		p.comparison(b, b.ComparisonType)
		p.expr(b.SecondExpression)
	case *ast.BooleanIsNullExpression:
		p.expr(b.Expression)
		p.kw("IS")
		not(b.IsNot)
		p.kw("NULL")
	case *ast.BooleanTernaryExpression:
		p.expr(b.FirstExpression)
		switch b.TernaryExpressionType {
		case "NotBetween":
			p.kw("NOT")
		case "Between":
		default:
			p.unknown(b)
		}
		p.kw("BETWEEN")
		p.expr(b.SecondExpression)
		p.kw("AND")
		p.expr(b.ThirdExpression)
	case *ast.BooleanLikeExpression:
		if b.OdbcEscape {
			p.unknown(b)
		}
		p.expr(b.FirstExpression)
		not(b.NotDefined)
		p.kw("LIKE")
		p.expr(b.SecondExpression)
		if b.EscapeExpression != nil {
			p.kw("ESCAPE")
			p.expr(b.EscapeExpression)
		}
	case *ast.BooleanInExpression:
		p.expr(b.Expression)
		not(b.NotDefined)
		p.kw("IN")
		p.sym("(")
		if b.Subquery != nil {
			p.query(b.Subquery)
		} else {
			p.some(len(b.Values))
			p.exprs(b.Values)
		}
		p.sym(")")
	case *ast.ExistsPredicate:
		p.kw("EXISTS")
		p.sym("(")
		p.query(b.Subquery)
		p.sym(")")
	case *ast.SubqueryComparisonPredicate:
		p.expr(b.Expression)
		p.comparison(b, b.ComparisonType)
		if b.SubqueryComparisonPredicateType == "All" {
			p.kw("ALL")
		} else {
			p.either("ANY", "SOME")
		}
		p.expr(b.Subquery)
	case *ast.FullTextPredicate:
		p.refuse(notSupported(b, "full-text search is not supported, since its index holds all rows", "use LIKE"))
	default:
		p.unknown(b)
	}
}

var comparisons = map[string]string{
	"Equals": "=", "NotEqualToBrackets": "<>", "NotEqualToExclamation": "!=", "LessThan": "<", "GreaterThan": ">",
	"LessThanOrEqualTo": "<=", "GreaterThanOrEqualTo": ">=", "NotLessThan": "!<", "NotGreaterThan": "!>",
}

func (p *printer) comparison(n any, kind string) {
	s, ok := comparisons[kind]
	if !ok {
		p.unknown(n)
		return
	}
	p.sym(s)
}

func (p *printer) exprs(list []ast.ScalarExpression) {
	for i, e := range list {
		if i > 0 {
			p.sym(",")
		}
		p.expr(e)
	}
}

var operators = map[string]string{
	"Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Modulo": "%",
	"BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "Concat": "||",
}

var signs = map[string]string{"Negative": "-", "Positive": "+", "BitwiseNot": "~"}

// number writes a number the way it was written.
func (p *printer) number(s string) {
	if s == "" || numeral(s, 0) != len(s) {
		p.refuse(fmt.Errorf("tsql: %q is no number", s))
		return
	}
	p.add(token{kind: number, text: s})
}

func (p *printer) expr(e ast.ScalarExpression) {
	if p.err != nil {
		return
	}
	p.open("value")
	defer p.close()
	switch e := e.(type) {
	case *ast.NullLiteral:
		p.kw("NULL")
	case *ast.IntegerLiteral:
		p.number(e.Value)
	case *ast.NumericLiteral:
		p.number(e.Value)
	case *ast.RealLiteral:
		p.number(e.Value)
	case *ast.BinaryLiteral:
		p.number(e.Value)
	case *ast.StringLiteral:
		k := text
		if e.IsNational {
			k = national
		}
		p.add(token{kind: k, text: e.Value})
	case *ast.ColumnReferenceExpression:
		if e.ColumnType != "Regular" || e.MultiPartIdentifier == nil {
			p.refuse(notSupported(e, "pseudo columns are not supported", "name the column"))
			return
		}
		p.path(e.MultiPartIdentifier.Identifiers)
		p.collation(e.Collation)
	case *ast.VariableReference:
		if p.markers {
			p.add(token{kind: variable, text: e.Name})
			return
		}
		p.refuse(notSupported(e, fmt.Sprintf("the variable %s is not supported", e.Name), "write the value itself"))
	case *ast.GlobalVariableExpression:
		p.refuse(acl.NotAvailable(e.Name, "a variable of the server"))
	case *ast.ParenthesisExpression:
		p.sym("(")
		p.expr(e.Expression)
		p.sym(")")
	case *ast.UnaryExpression:
		s, ok := signs[e.UnaryExpressionType]
		if !ok {
			p.unknown(e)
			return
		}
		// Two signs in a row could begin a comment.
		_, twice := e.Expression.(*ast.UnaryExpression)
		p.add(token{kind: symbol, text: s, tight: !twice})
		p.expr(e.Expression)
	case *ast.BinaryExpression:
		var spine []*ast.BinaryExpression
		first := ast.ScalarExpression(e)
		for {
			b, ok := first.(*ast.BinaryExpression)
			if !ok {
				break
			}
			spine = append(spine, b)
			first = b.FirstExpression
			p.open("operation")
		}
		p.expr(first)
		for i := len(spine) - 1; i >= 0; i-- {
			s, ok := operators[spine[i].BinaryExpressionType]
			if !ok || s == "||" {
				p.refuse(notSupported(spine[i], "this operator is not supported", "join texts with + or CONCAT"))
				return
			}
			p.sym(s)
			p.expr(spine[i].SecondExpression)
			p.close()
		}
	case *ast.SimpleCaseExpression:
		p.kw("CASE")
		p.expr(e.InputExpression)
		for _, w := range e.WhenClauses {
			p.kw("WHEN")
			p.expr(w.WhenExpression)
			p.kw("THEN")
			p.expr(w.ThenExpression)
		}
		p.otherwise(e.ElseExpression, e.Collation)
	case *ast.SearchedCaseExpression:
		p.kw("CASE")
		for _, w := range e.WhenClauses {
			p.kw("WHEN")
			p.condition(w.WhenExpression)
			p.kw("THEN")
			p.expr(w.ThenExpression)
		}
		p.otherwise(e.ElseExpression, e.Collation)
	case *ast.IIfCall:
		p.kw("IIF")
		p.call()
		p.condition(e.Predicate)
		p.sym(",")
		p.exprs([]ast.ScalarExpression{e.ThenExpression, e.ElseExpression})
		p.sym(")")
	case *ast.CastCall:
		p.cast("CAST", e.Parameter, e.DataType, e.Collation)
	case *ast.TryCastCall:
		p.cast("TRY_CAST", e.Parameter, e.DataType, e.Collation)
	case *ast.ConvertCall:
		p.convert("CONVERT", e.DataType, e.Parameter, e.Style, e.Collation)
	case *ast.TryConvertCall:
		p.convert("TRY_CONVERT", e.DataType, e.Parameter, e.Style, e.Collation)
	case *ast.NullIfExpression:
		p.apply("NULLIF", []ast.ScalarExpression{e.FirstExpression, e.SecondExpression})
	case *ast.CoalesceExpression:
		p.apply("COALESCE", e.Expressions)
	case *ast.LeftFunctionCall:
		p.apply("LEFT", e.Parameters)
	case *ast.RightFunctionCall:
		p.apply("RIGHT", e.Parameters)
	case *ast.ParameterlessCall:
		if e.ParameterlessCallType != "CurrentTimestamp" || e.Collation != nil {
			p.refuse(acl.NotAvailable("the function "+snake(e.ParameterlessCallType), "it tells of the session"))
			return
		}
		p.kw("CURRENT_TIMESTAMP")
	case *ast.FunctionCall:
		p.function(e)
	case *ast.ScalarSubquery:
		p.sym("(")
		p.query(e.QueryExpression)
		p.sym(")")
		p.collation(e.Collation)
	case *ast.AtTimeZoneCall:
		p.expr(e.DateValue)
		p.kw("AT", "TIME", "ZONE")
		p.expr(e.TimeZone)
	default:
		p.unknown(e)
	}
}

func (p *printer) apply(name string, args []ast.ScalarExpression) {
	p.kw(name)
	p.call()
	p.exprs(args)
	p.sym(")")
}

func (p *printer) otherwise(e ast.ScalarExpression, collation *ast.Identifier) {
	if e != nil {
		p.kw("ELSE")
		p.expr(e)
	}
	p.kw("END")
	p.collation(collation)
}

func (p *printer) collation(c *ast.Identifier) {
	if c == nil {
		return
	}
	// Every collation has a name of several parts, and none is a keyword.
	if strings.Trim(strings.ToLower(c.Value), "abcdefghijklmnopqrstuvwxyz_0123456789") != "" || !strings.Contains(c.Value, "_") ||
		isReserved(c.Value) || c.QuoteType != "NotQuoted" {
		p.refuse(notSupported(c, c.Value+" is no collation", "write one like Latin1_General_CI_AS"))
		return
	}
	p.kw("COLLATE", c.Value)
}

func (p *printer) cast(name string, e ast.ScalarExpression, to ast.DataTypeReference, collation *ast.Identifier) {
	p.kw(name)
	p.call()
	p.expr(e)
	p.kw("AS")
	p.dataType(to)
	p.sym(")")
	p.collation(collation)
}

func (p *printer) convert(name string, to ast.DataTypeReference, e, style ast.ScalarExpression, collation *ast.Identifier) {
	p.kw(name)
	p.call()
	p.dataType(to)
	p.sym(",")
	p.expr(e)
	if style != nil {
		p.sym(",")
		p.expr(style)
	}
	p.sym(")")
	p.collation(collation)
}

// dataTypes are the types of SQL Server's own that an expression may have.
var dataTypes = words(`bigint int integer smallint tinyint bit decimal dec numeric money smallmoney float real
	date datetime datetime2 smalldatetime datetimeoffset time char varchar nchar nvarchar text ntext
	binary varbinary uniqueidentifier`)

func (p *printer) dataType(t ast.DataTypeReference) {
	s, ok := t.(*ast.SqlDataTypeReference)
	if !ok || s.Name == nil || len(s.Name.Identifiers) != 1 || s.Name.Identifiers[0].QuoteType != "NotQuoted" ||
		!dataTypes[strings.ToLower(s.Name.Identifiers[0].Value)] {
		p.refuse(notSupported(t, "this data type is not supported in an expression", "convert to a text, a number or a time"))
		return
	}
	p.kw(strings.ToLower(s.Name.Identifiers[0].Value))
	if len(s.Parameters) == 0 {
		return
	}
	p.call()
	for i, x := range s.Parameters {
		if i > 0 {
			p.sym(",")
		}
		if _, ok := x.(*ast.MaxLiteral); ok {
			p.kw("max")
			continue
		}
		p.expr(x)
	}
	p.sym(")")
}

func (p *printer) function(f *ast.FunctionCall) {
	name := strings.ToLower(f.FunctionName.Value)
	switch {
	case f.CallTarget != nil:
		p.refuse(notSupported(f, fmt.Sprintf("%s is a function of the database or a method, which are not supported", f.FunctionName.Value), "use built-in functions"))
	case f.FunctionName.QuoteType != "NotQuoted":
		p.refuse(notSupported(f, fmt.Sprintf("the function %s is not supported", f.FunctionName.Value), "write its name without quotes"))
	case !p.free && functions[name] == nil:
		p.refuse(notSupported(f, fmt.Sprintf("the function %s is not supported", f.FunctionName.Value), "write the query without it"))
	case len(f.JsonParameters)+len(f.AbsentOrNullOnNull) > 0 || f.WithArrayWrapper || f.WithinGroupClause != nil && f.WithinGroupClause.HasGraphPath:
		p.unknown(f)
	}
	if p.err != nil {
		return
	}
	p.kw(strings.ToUpper(name))
	p.call()
	switch f.UniqueRowFilter {
	case "NotSpecified", "":
	case "Distinct", "All":
		p.kw(strings.ToUpper(f.UniqueRowFilter))
	default:
		p.unknown(f)
	}
	args := f.Parameters
	switch {
	case isStar(f):
		if name != "count" && name != "count_big" {
			p.refuse(notSupported(f, fmt.Sprintf("%s(*) is not supported", f.FunctionName.Value), "name the columns"))
		}
		p.sym("*")
		args = nil
	case takesDatePart[name] && len(args) > 0:
		part, ok := datePart(args[0])
		if !ok {
			p.refuse(notSupported(f, fmt.Sprintf("%s needs a part of a date first", f.FunctionName.Value), "write year, month, day, ..."))
			return
		}
		p.kw(part)
		if args = args[1:]; len(args) > 0 {
			p.sym(",")
		}
	case f.TrimOptions != nil:
		p.unknown(f)
	}
	p.exprs(args)
	p.sym(")")
	if w := f.WithinGroupClause; w != nil {
		p.kw("WITHIN", "GROUP")
		p.sym("(")
		p.order(w.OrderByClause)
		p.sym(")")
	}
	if w := f.IgnoreRespectNulls; len(w) > 0 {
		switch first := strings.ToUpper(w[0].Value); first {
		case "IGNORE", "RESPECT":
			p.kw(first, "NULLS")
		default:
			p.unknown(f)
		}
	}
	if f.OverClause != nil {
		p.over(f.OverClause)
	}
	p.collation(f.Collation)
}

// isStar reports whether a function is called on a star.
func isStar(f *ast.FunctionCall) bool {
	if len(f.Parameters) != 1 {
		return false
	}
	c, ok := f.Parameters[0].(*ast.ColumnReferenceExpression)
	return ok && c.ColumnType == "Wildcard"
}

// datePart returns the part of a date that an argument names. The parser takes it for a column.
func datePart(e ast.ScalarExpression) (string, bool) {
	c, ok := e.(*ast.ColumnReferenceExpression)
	if !ok || c.ColumnType != "Regular" || len(c.MultiPartIdentifier.Identifiers) != 1 || c.Collation != nil {
		return "", false
	}
	id := c.MultiPartIdentifier.Identifiers[0]
	_, ok = dateParts[strings.ToLower(id.Value)]
	return id.Value, ok && id.QuoteType == "NotQuoted"
}

func (p *printer) over(o *ast.OverClause) {
	p.kw("OVER")
	if o.WindowName != nil {
		p.refuse(notSupported(o, "a named window is not supported", "write the window behind OVER"))
		return
	}
	p.sym("(")
	if len(o.Partitions) > 0 {
		p.kw("PARTITION", "BY")
		p.exprs(o.Partitions)
	}
	p.order(o.OrderByClause)
	if f := o.WindowFrameClause; f != nil {
		switch f.WindowFrameType {
		case "Rows", "Range":
			p.kw(strings.ToUpper(f.WindowFrameType))
		default:
			p.unknown(f)
			return
		}
		if f.Bottom != nil {
			p.kw("BETWEEN")
		}
		p.bound(f.Top)
		if f.Bottom != nil {
			p.kw("AND")
			p.bound(f.Bottom)
		}
	}
	p.sym(")")
}

func (p *printer) bound(d *ast.WindowDelimiter) {
	if d == nil {
		p.refuse(invalid("a window frame has no bounds", 0))
		return
	}
	switch d.WindowDelimiterType {
	case "CurrentRow":
		p.kw("CURRENT", "ROW")
	case "UnboundedPreceding":
		p.kw("UNBOUNDED", "PRECEDING")
	case "UnboundedFollowing":
		p.kw("UNBOUNDED", "FOLLOWING")
	case "ValuePreceding", "ValueFollowing":
		p.expr(d.OffsetValue)
		p.kw(strings.ToUpper(strings.TrimPrefix(d.WindowDelimiterType, "Value")))
	default:
		p.unknown(d)
	}
}
