package tsql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqlc-dev/teesql/ast"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// class is what kind of values an expression has, as far as that decides whether comparing or joining them can fail:
// number, textual, a type of times by its name, null, or nothing where it is not known.
type class string

const (
	numeric class = "number"
	textual class = "text"
	null    class = "null"
)

var numbers = words(`bigint int integer smallint tinyint bit decimal dec numeric money smallmoney float real`)
var texts = words(`char varchar nchar nvarchar`)
var moments = words(`date datetime datetime2 smalldatetime datetimeoffset time`)

// classOf reads a declared type.
func classOf(declared string) class {
	name, _, _ := strings.Cut(strings.ToLower(declared), "(")
	name = strings.TrimSpace(name)
	switch {
	case numbers[name]:
		return numeric
	case texts[name]:
		return textual
	case moments[name]:
		return class(name)
	}
	return ""
}

// value is what is known of the values of an expression.
type value struct {
	class     class
	from      []catalog.Ref // the columns of base tables that it is made of
	transform rewrite.Transform
	// strict says that it is NULL, or made of rows that passed their filters, where the columns of a hidden row read NULL.
	strict bool
	// constant says that it is the same for all rows; tiny that it is a whole number written out, of few digits.
	constant, tiny bool
	// summed says that it is made of an aggregate or a window of the same SELECT.
	summed  bool
	literal *ast.StringLiteral
}

// merge adds what is not in a list yet, in order. It never writes to the list that it was given.
func merge(list, more []catalog.Ref) []catalog.Ref {
	list = slices.Clip(list)
	for _, r := range more {
		if !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

type transformRank int

func rank(t rewrite.Transform) transformRank {
	switch t {
	case rewrite.Aggregation:
		return 2
	case rewrite.Transformation:
		return 1
	}
	return 0
}

func (r transformRank) transform() rewrite.Transform {
	return [...]rewrite.Transform{rewrite.Identity, rewrite.Transformation, rewrite.Aggregation}[r]
}

// made is the value of an expression of others.
func made(of ...value) value {
	out := value{constant: true, transform: rewrite.Transformation}
	for _, v := range of {
		out.from = merge(out.from, v.from)
		out.transform = max(rank(out.transform), rank(v.transform)).transform()
		out.strict = out.strict || v.strict
		out.summed = out.summed || v.summed
		out.constant = out.constant && v.constant
	}
	return out
}

// fails notes that an expression of these operands can fail on a row. It does not where one of them is NULL, and one
// that takes an aggregate runs over visible rows only, unless its whole query runs for rows of another.
func (r *resolver) fails(n ast.Node, operands ...value) {
	if slices.ContainsFunc(operands, func(v value) bool { return v.summed }) && r.above() {
		return
	}
	r.fallible = true
	if r.stuck == nil && !slices.ContainsFunc(operands, func(v value) bool { return v.strict }) {
		r.stuck = n
	}
}

// above reports whether what is made of groups here runs over visible rows only. In a WITH it does unless a query inside
// of an expression reads it, which is known at the end.
func (r *resolver) above() bool {
	r.summedInWith = r.summedInWith || r.defining
	return r.inner == 0
}

// choice is the value of an expression that is one of two. It can fail where SQL Server has to convert between them.
func (r *resolver) choice(n ast.Node, a, b value) value {
	out := made(a, b)
	out.strict = a.strict && b.strict
	switch {
	case a.class == null:
		out.class = b.class
	case b.class == null || a.class == b.class && a.class != "":
		out.class = a.class
	case out.summed && r.above():
	default:
		r.fallible = true
		if !out.strict && r.stuck == nil {
			r.stuck = n
		}
	}
	return out
}

// compare notes whether comparing two values can fail.
func (r *resolver) compare(n ast.Node, a, b value) {
	switch {
	case a.class == null || b.class == null:
	case a.class == b.class && a.class != "":
	case alike(a, b), alike(b, a):
	default:
		r.fails(n, a, b)
	}
}

// alike reports whether a time compares with b without fail. A date before 1753 is no datetime.
func alike(a, b value) bool {
	return isMoment(a.class) && readsAsMoment(b) && (a.class != "date" || b.literal != nil || b.class == "date")
}

func isMoment(c class) bool { return moments[string(c)] }

// readsAsMoment reports whether a constant reads as a time of every type without fail: one of the statement, or a text
// that is written out as one.
func readsAsMoment(v value) bool {
	if v.literal == nil {
		return v.constant && isMoment(v.class)
	}
	for _, layout := range []string{"2006-01-02", "20060102", "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, v.literal.Value); err == nil && t.Year() >= 1900 && t.Year() < 2079 {
			return true
		}
	}
	return false
}

// condition resolves the names in a condition.
func (r *resolver) condition(slot *ast.BooleanExpression, s *scope) {
	if r.err != nil {
		return
	}
	switch b := (*slot).(type) {
	case *ast.BooleanBinaryExpression:
		var spine []*ast.BooleanBinaryExpression
		first := slot
		for {
			x, ok := (*first).(*ast.BooleanBinaryExpression)
			if !ok {
				break
			}
			spine = append(spine, x)
			first = &x.FirstExpression
		}
		r.condition(first, s)
		for i := len(spine) - 1; i >= 0; i-- {
			r.condition(&spine[i].SecondExpression, s)
		}
	case *ast.BooleanNotExpression:
		r.condition(&b.Expression, s)
	case *ast.BooleanParenthesisExpression:
		r.condition(&b.Expression, s)
	case *ast.BooleanComparisonExpression:
		x := r.expr(&b.FirstExpression, s)
		r.compare(b, x, r.expr(&b.SecondExpression, s))
	case *ast.BooleanIsNullExpression:
		r.expr(&b.Expression, s)
	case *ast.BooleanTernaryExpression:
		x := r.expr(&b.FirstExpression, s)
		r.compare(b, x, r.expr(&b.SecondExpression, s))
		r.compare(b, x, r.expr(&b.ThirdExpression, s))
	case *ast.BooleanLikeExpression:
		r.expr(&b.FirstExpression, s)
		r.expr(&b.SecondExpression, s)
		if b.EscapeExpression != nil {
			if v := r.expr(&b.EscapeExpression, s); v.literal == nil || len(v.literal.Value) != 1 {
				r.fails(b, v)
			}
		}
	case *ast.BooleanInExpression:
		x := r.expr(&b.Expression, s)
		if b.Subquery != nil {
			r.compare(b, x, r.single(b.Subquery, s))
			return
		}
		r.places(b)
		for i := range b.Values {
			r.compare(b, x, r.expr(&b.Values[i], s))
		}
	case *ast.ExistsPredicate:
		r.nested(b.Subquery, s)
	case *ast.SubqueryComparisonPredicate:
		x := r.expr(&b.Expression, s)
		r.compare(b, x, r.single(b.Subquery.QueryExpression, s))
	default:
		r.refuse(notSupported(b, "the statement uses a construct that is not supported", "write the query without it"))
	}
}

// nested resolves a query inside of an expression.
func (r *resolver) nested(q ast.QueryExpression, s *scope) []*col {
	filtering, collected := r.filtering, r.collected
	r.filtering, r.collected = false, nil // what it selects is for whoever asks
	r.inner++
	defer func() {
		r.inner--
		r.filtering, r.collected = filtering, collected
	}()
	return r.query(q, s, nil)
}

// single resolves a query of one column.
func (r *resolver) single(q ast.QueryExpression, s *scope) value {
	out := r.nested(q, s)
	if r.err != nil {
		return value{}
	}
	if len(out) != 1 {
		r.refuse(invalid("a subquery in an expression has more than one column", offset(q.(node))))
		return value{}
	}
	v := made(out[0].value)
	v.class, v.transform, v.strict, v.constant, v.summed = out[0].class, out[0].transform, true, false, false
	r.decides(v.from, r.where(q.(node)))
	return v
}

func (r *resolver) exprs(list []ast.ScalarExpression, s *scope) []value {
	out := make([]value, len(list))
	for i := range list {
		out[i] = r.expr(&list[i], s)
	}
	return out
}

// expr resolves the names in an expression and says what is known of its values.
func (r *resolver) expr(slot *ast.ScalarExpression, s *scope) value {
	if r.err != nil {
		return value{}
	}
	fixed := func(c class) value {
		return value{class: c, constant: true, transform: rewrite.Transformation, strict: c == null}
	}
	switch e := (*slot).(type) {
	case *ast.NullLiteral:
		return fixed(null)
	case *ast.IntegerLiteral:
		v := fixed(numeric)
		v.tiny = len(e.Value) < 5
		return v
	case *ast.NumericLiteral, *ast.RealLiteral:
		return fixed(numeric)
	case *ast.BinaryLiteral:
		return fixed("")
	case *ast.StringLiteral:
		v := fixed(textual)
		v.literal = e
		return v
	case *ast.VariableReference:
		return r.place(slot, e)
	case *ast.ColumnReferenceExpression:
		c := r.reference(e, s)
		if c == nil {
			return value{}
		}
		return c.value
	case *ast.ParenthesisExpression:
		return r.expr(&e.Expression, s)
	case *ast.UnaryExpression:
		x := r.expr(&e.Expression, s)
		v := made(x)
		v.class, v.tiny = numeric, x.tiny
		if !x.tiny && e.UnaryExpressionType != "Positive" {
			if _, literal := e.Expression.(*ast.NumericLiteral); !literal {
				r.fails(e, x)
			}
		}
		return v
	case *ast.BinaryExpression:
		var spine []*ast.BinaryExpression
		first := slot
		for {
			b, ok := (*first).(*ast.BinaryExpression)
			if !ok {
				break
			}
			spine = append(spine, b)
			first = &b.FirstExpression
		}
		v := r.expr(first, s)
		for i := len(spine) - 1; i >= 0 && r.err == nil; i-- {
			v = r.operation(spine[i], v, r.expr(&spine[i].SecondExpression, s))
		}
		return v
	case *ast.SimpleCaseExpression:
		input := r.expr(&e.InputExpression, s)
		seen, results := []value{input}, []value(nil)
		for _, w := range e.WhenClauses {
			x := r.expr(&w.WhenExpression, s)
			r.compare(e, input, x)
			seen = append(seen, x)
			results = append(results, r.expr(&w.ThenExpression, s))
		}
		return r.cases(e, seen, results, &e.ElseExpression, s)
	case *ast.SearchedCaseExpression:
		var seen, results []value
		for _, w := range e.WhenClauses {
			seen = append(seen, r.deciding(&w.WhenExpression, s))
			results = append(results, r.expr(&w.ThenExpression, s))
		}
		return r.cases(e, seen, results, &e.ElseExpression, s)
	case *ast.IIfCall:
		seen := []value{r.deciding(&e.Predicate, s)}
		results := []value{r.expr(&e.ThenExpression, s)}
		return r.cases(e, seen, results, &e.ElseExpression, s)
	case *ast.CastCall:
		return r.cast(e, r.expr(&e.Parameter, s), e.DataType)
	case *ast.ConvertCall:
		return r.cast(e, r.expr(&e.Parameter, s), e.DataType, r.style(e.Style, s)...)
	case *ast.TryCastCall:
		return tried(r.expr(&e.Parameter, s), e.DataType)
	case *ast.TryConvertCall:
		x := r.expr(&e.Parameter, s)
		r.style(e.Style, s)
		return tried(x, e.DataType)
	case *ast.NullIfExpression:
		x := r.expr(&e.FirstExpression, s)
		y := r.expr(&e.SecondExpression, s)
		r.compare(e, x, y)
		v := made(x, y)
		v.class, v.strict = x.class, x.strict
		return v
	case *ast.CoalesceExpression:
		return r.chosen(e, r.exprs(e.Expressions, s))
	case *ast.LeftFunctionCall:
		return r.measured(e, textual, r.exprs(e.Parameters, s))
	case *ast.RightFunctionCall:
		return r.measured(e, textual, r.exprs(e.Parameters, s))
	case *ast.ParameterlessCall:
		return fixed("datetime")
	case *ast.FunctionCall:
		return r.call(e, s)
	case *ast.ScalarSubquery:
		v := r.single(e.QueryExpression, s)
		if !atMostOne(e.QueryExpression) {
			r.fails(e, v)
		}
		return v
	case *ast.AtTimeZoneCall:
		x, zone := r.expr(&e.DateValue, s), r.expr(&e.TimeZone, s)
		v := made(x, zone)
		v.class = "datetimeoffset"
		r.fails(e, x, zone)
		return v
	}
	r.refuse(notSupported(*slot, "the statement uses an expression that is not supported", "write the query without it"))
	return value{}
}

// atMostOne reports whether a query has no more than one row whatever the rows of its tables.
func atMostOne(q ast.QueryExpression) bool {
	s, ok := q.(*ast.QuerySpecification)
	if !ok {
		return false
	}
	if s.FromClause == nil || s.ForClause != nil {
		return true
	}
	if t := s.TopRowFilter; t != nil && !t.Percent && !t.WithTies {
		if n, ok := count(t.Expression); ok && n <= 1 {
			return true
		}
	}
	if s.GroupByClause != nil || len(s.SelectElements) != 1 {
		return false
	}
	e, ok := s.SelectElements[0].(*ast.SelectScalarExpression)
	if !ok {
		return false
	}
	f, ok := e.Expression.(*ast.FunctionCall)
	return ok && aggregates[strings.ToLower(f.FunctionName.Value)] && f.OverClause == nil
}

// deciding resolves a condition inside of an expression and returns what it reads.
func (r *resolver) deciding(b *ast.BooleanExpression, s *scope) value {
	var read []catalog.Ref
	outer := r.collected
	r.collected = &read
	r.condition(b, s)
	r.collected = outer
	if outer != nil {
		*outer = merge(*outer, read)
	}
	return value{from: read}
}

// cases is the value of a CASE.
func (r *resolver) cases(n ast.Node, seen, results []value, otherwise *ast.ScalarExpression, s *scope) value {
	if *otherwise != nil {
		results = append(results, r.expr(otherwise, s))
	}
	v := r.chosen(n, results)
	all := made(append(seen, v)...)
	v.from, v.constant, v.transform = all.from, false, all.transform
	return v
}

// chosen is the value of an expression that is one of several.
func (r *resolver) chosen(n ast.Node, of []value) value {
	if len(of) == 0 {
		return value{}
	}
	out := of[0]
	for _, v := range of[1:] {
		out = r.choice(n, out, v)
	}
	out.tiny, out.literal, out.constant = false, nil, false
	out.transform = max(rank(out.transform), 1).transform()
	return out
}

// operation is the value of x op y.
func (r *resolver) operation(n *ast.BinaryExpression, x, y value) value {
	v := made(x, y)
	if n.BinaryExpressionType == "Add" && (x.class == textual && (y.class == textual || y.class == null) || x.class == null && y.class == textual) {
		v.class = textual
		return v
	}
	if x.class == numeric && y.class == numeric {
		v.class = numeric
	}
	switch n.BinaryExpressionType {
	case "Add", "Subtract", "Multiply":
		if x.tiny && y.tiny {
			return v
		}
	case "Divide", "Modulo":
		if x.class == numeric && isNonZero(n.SecondExpression) {
			return v
		}
	case "BitwiseAnd", "BitwiseOr", "BitwiseXor":
		if x.class == numeric && y.class == numeric {
			return v
		}
	}
	r.fails(n, x, y)
	return v
}

// isNonZero reports whether e is a number that is written out and is not 0.
func isNonZero(e ast.ScalarExpression) bool {
	said := ""
	switch e := e.(type) {
	case *ast.ParenthesisExpression:
		return isNonZero(e.Expression)
	case *ast.IntegerLiteral:
		said = e.Value
	case *ast.NumericLiteral:
		said = e.Value
	}
	n, err := strconv.ParseFloat(said, 64)
	return err == nil && n != 0
}

func (r *resolver) style(e ast.ScalarExpression, s *scope) []value {
	if e == nil {
		return nil
	}
	if _, ok := e.(*ast.IntegerLiteral); !ok {
		r.refuse(notSupported(e, "a style that is not a number is not supported", "write the number"))
	}
	return []value{{constant: true}}
}

// cast is the value of a conversion.
func (r *resolver) cast(n ast.Node, x value, to ast.DataTypeReference, style ...value) value {
	v := tried(x, to)
	declared := typeName(to)
	switch {
	case x.class == null:
	case v.class == textual && (x.class == textual || isMoment(x.class)):
	case v.class == textual && x.class == numeric && unbounded(to):
	case v.class == numeric && x.class == numeric && (declared == "float" || declared == "real"):
	case v.class == x.class && isMoment(x.class):
	case declared == "date" && (x.class == "datetime" || x.class == "datetime2" || x.class == "smalldatetime"):
	case isMoment(v.class) && len(style) == 0 && readsAsMoment(x):
	case x.tiny && v.class == numeric && declared != "tinyint" && declared != "bit" && len(to.(*ast.SqlDataTypeReference).Parameters) == 0:
	default:
		r.fails(n, x)
	}
	return v
}

// tried is the value of a conversion that gives NULL where it fails.
func tried(x value, to ast.DataTypeReference) value {
	v := made(x)
	v.class = classOf(typeName(to))
	return v
}

func typeName(t ast.DataTypeReference) string {
	if s, ok := t.(*ast.SqlDataTypeReference); ok && s.Name != nil && s.Name.BaseIdentifier != nil {
		return strings.ToLower(s.Name.BaseIdentifier.Value)
	}
	return ""
}

// unbounded reports whether any number fits into a type of texts.
func unbounded(t ast.DataTypeReference) bool {
	s, ok := t.(*ast.SqlDataTypeReference)
	if !ok || len(s.Parameters) != 1 {
		return false
	}
	if _, ok := s.Parameters[0].(*ast.MaxLiteral); ok {
		return true
	}
	n, ok := count(s.Parameters[0])
	return ok && n >= 60
}

// measured is the value of a function that fails on negative lengths.
func (r *resolver) measured(n ast.Node, c class, args []value) value {
	v := made(args...)
	v.class = c
	for i, a := range args {
		if a.class != textual && !a.tiny && i > 0 || i == 0 && a.class == "" {
			r.fails(n, args...)
			break
		}
	}
	return v
}

// call is the value of a function.
func (r *resolver) call(f *ast.FunctionCall, s *scope) value {
	name := strings.ToLower(f.FunctionName.Value)
	fn := functions[name]
	if fn == nil || f.CallTarget != nil {
		r.refuse(notSupported(f, fmt.Sprintf("the function %s is not supported", f.FunctionName.Value), "write the query without it"))
		return value{}
	}
	var args []value
	rest := f.Parameters
	part := ""
	switch {
	case isStar(f):
		rest = nil
	case takesDatePart[name] && len(rest) > 0:
		part, _ = datePart(rest[0])
		rest = rest[1:]
	}
	args = r.exprs(rest, s)
	read := args
	if w := f.WithinGroupClause; w != nil {
		for _, o := range w.OrderByClause.OrderByElements {
			read = append(read, r.expr(&o.Expression, s))
		}
	}
	if o := f.OverClause; o != nil {
		read = append(read, r.exprs(o.Partitions, s)...)
		if o.OrderByClause != nil {
			for _, t := range o.OrderByClause.OrderByElements {
				read = append(read, r.expr(&t.Expression, s))
			}
		}
		if w := o.WindowFrameClause; w != nil {
			for _, d := range []*ast.WindowDelimiter{w.Top, w.Bottom} {
				if d != nil && d.OffsetValue != nil && !isCount(d.OffsetValue, false) {
					r.refuse(notSupported(d, "a frame bound that is not a number is not supported", "write the number"))
				}
			}
		}
	}
	if r.err != nil {
		return value{}
	}
	v := made(read...)
	v.class = fn.class
	switch {
	case name == "dateadd" && len(args) == 2:
		v.class = args[1].class
		if readsAsMoment(args[1]) && args[1].literal != nil {
			v.class = "datetime"
		}
	case fn.same && len(args) > 0:
		v.class = args[0].class
	}
	if several[name] {
		v.transform, v.strict, v.summed, v.constant = rewrite.Aggregation, true, true, false
	} else if fn.lax {
		v.strict = false
	}
	switch fn.risk {
	case contained:
	case late:
		// In a query of its own it runs over rows that passed the filters; in one of an expression it could run for a row
		// that did not.
		if !r.above() {
			r.fails(f, v)
		}
		for _, a := range args {
			if v.class == numeric && a.class != numeric && a.class != null {
				r.fails(f, a)
			}
		}
	case measured:
		return r.measured(f, fn.class, args)
	case dated:
		for _, a := range args {
			if !isMoment(a.class) && !readsAsMoment(a) {
				r.fails(f, a)
			}
		}
	case choosing:
		if name == "choose" && len(args) > 0 {
			args = args[1:]
		}
		chosen := r.chosen(f, args)
		v.class, v.strict = chosen.class, chosen.strict
	default:
		if !inCalendar(name, part, args) {
			r.fails(f, args...)
		}
	}
	return v
}

// inCalendar reports whether a computation with times stays in the calendar and in range whatever the rows are.
func inCalendar(name, part string, args []value) bool {
	coarse := dateParts[strings.ToLower(part)]
	switch name {
	case "datediff", "datediff_big":
		return coarse && len(args) == 2 && timely(args[0]) && timely(args[1])
	case "dateadd":
		// The base is the time of the statement or written out, within some centuries of the ends.
		return coarse && len(args) == 2 && args[0].tiny && args[0].constant && args[1].constant && timely(args[1])
	case "eomonth":
		return len(args) == 1 && args[0].constant && timely(args[0])
	}
	return false
}

func timely(v value) bool {
	return v.class == null || isMoment(v.class) && v.class != "time" || readsAsMoment(v)
}

// refuseStuck is the refusal of a statement whose expression could fail on a hidden row.
func refuseStuck(n ast.Node) *acl.Refusal {
	return notSupported(n, "an expression of the statement could fail on some rows of a table that does not show all of its rows",
		"use TRY_CAST or TRY_CONVERT, and NULLIF for a divisor, in place of ISNULL, COALESCE or CASE around what can fail")
}
