package sqlite

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlc-dev/meyer/ast"
	"github.com/sqlc-dev/meyer/parser"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// subject is a table or a SQL view that a policy governs, at a place where a statement reads it.
type subject struct {
	schema *rewrite.Schema
	table  *rewrite.Table
	names  []string // of the columns that a SQL view's body has for the asker; nil for a base table
	// inner says that names at the place can mean columns of tables around it. The policy's then say whose they are: one
	// that the table has lost since the catalog was read must not be taken from there.
	inner bool
}

// condition reads SQL of the policy on a table: its names are bound to the table's raw columns and to tables of the
// catalog, which are written with their schema so that no name of a statement around them can capture them, and its
// values become literals in the tree. Faults are the policy's, not the asker's.
func (sub subject) condition(c rewrite.Condition) (ast.Expr, error) {
	// Not wrapped: a refusal inside a policy must not pass for one of the asker's statement.
	fault := func(err error) error { return fmt.Errorf("sqlite: policy %s: %v", c.Rule, err) }
	var sql strings.Builder
	for i, text := range c.Text {
		if i > 0 {
			sql.WriteString("?" + strconv.Itoa(i))
		}
		sql.WriteString(text)
	}
	e, err := parser.ParseExpr(sql.String())
	if err != nil {
		return nil, fault(err)
	}
	if tooDeep(e) {
		return nil, fault(nestedTooDeeply())
	}
	r := resolver{schema: sub.schema, policy: sub.table, values: c.Values, filled: make([]int, len(c.Values))}
	own := r.raw(sub.table.Ref, sub.table.Ref.Table)
	switch {
	case sub.names != nil:
		own.rowid = false
		own.holds = func(c string) bool { return slices.ContainsFunc(sub.names, func(n string) bool { return same(n, c) }) }
	case sub.inner:
		r.own = own
	}
	root := &scope{sources: []*source{own}}
	r.expr(&e, root, nil, false)
	if r.err != nil {
		return nil, fault(r.err)
	}
	for i, n := range r.filled {
		if n != 1 {
			return nil, fault(fmt.Errorf("value %d stands %d times in the condition; it may stand in a text or a comment", i+1, n))
		}
	}
	if err := allowed(e); err != nil {
		return nil, fault(err)
	}
	canonical(e)
	return &ast.ParenExpr{X: e}, nil
}

// raw is a table of the catalog as it is, under a name.
func (r *resolver) raw(t catalog.Ref, as string) *source {
	return &source{name: as, schema: schemaName(t.Schema), rowid: true, holds: func(c string) bool {
		_, ok := r.schema.Exists(catalog.ColumnRef(t.Database, t.Schema, t.Table, c))
		return ok
	}}
}

// policyTable resolves a table in a policy's subquery: beside the policy's own table, then in main.
func (r *resolver) policyTable(ref *ast.TableRef) *source {
	said := ref.Name.Name.Name
	schemas := []string{r.policy.Ref.Schema, ""}
	if s := ref.Name.Schema; s != nil {
		schemas = r.searched(s)
	}
	for _, schema := range schemas {
		if t, ok := r.schema.Exists(catalog.TableRef(r.policy.Ref.Database, schema, said)); ok {
			ref.Name = tableName(t)
			return r.raw(t, said)
		}
	}
	r.refuse(acl.NotAvailable(ast.String(ref.Name), "absent"))
	return nil
}

func tableName(t catalog.Ref) *ast.QualifiedName {
	return &ast.QualifiedName{Schema: ident(schemaName(t.Schema)), Name: ident(t.Table)}
}

// fill puts a value in its place.
func (r *resolver) fill(p *ast.Expr, n *ast.BindParam) {
	v, ok := r.value(n)
	if !ok {
		return
	}
	e, err := valueLiteral(v)
	if err != nil {
		r.refuse(err)
		return
	}
	*p = e
}

// places puts a list of values in its place, the one element of an IN list.
func (r *resolver) places(n *ast.InExpr) {
	marker, ok := n.List[0].(*ast.BindParam)
	if !ok || marker.Number < 1 || marker.Number > len(r.values) {
		return
	}
	var list []ast.Expr
	var err error
	add := func(v any) {
		e, bad := valueLiteral(v)
		list, err = append(list, e), cmp.Or(err, bad)
	}
	switch vs := r.values[marker.Number-1].(type) {
	case []string:
		for _, v := range vs {
			add(v)
		}
	case []int64:
		for _, v := range vs {
			add(v)
		}
	default:
		return
	}
	if _, ok := r.value(marker); !ok {
		return
	}
	if err != nil {
		r.refuse(err)
		return
	}
	n.List = list
}

// value returns what belongs in a place, and counts it.
func (r *resolver) value(n *ast.BindParam) (any, bool) {
	if r.policy == nil || n.Number < 1 || n.Number > len(r.values) || n.Raw != "?"+strconv.Itoa(n.Number) {
		r.refuse(notSupported(n, fmt.Sprintf("the parameter %s is not supported", n.Raw), "write the value itself"))
		return nil, false
	}
	r.filled[n.Number-1]++
	return r.values[n.Number-1], true
}

// valueLiteral writes a typed value.
func valueLiteral(v any) (ast.Expr, error) {
	switch v := v.(type) {
	case string:
		if strings.IndexByte(v, 0) >= 0 {
			return nil, fmt.Errorf("a text with a NUL in it cannot be written in SQLite")
		}
		return literal(v, ast.Span{}), nil
	case bool:
		if v {
			return number("1", ast.LitInteger), nil
		}
		return number("0", ast.LitInteger), nil
	case int64:
		return number(strconv.FormatInt(v, 10), ast.LitInteger), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v has no literal in SQLite", v)
		}
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return number(text, ast.LitFloat), nil
	}
	return nil, fmt.Errorf("a value of type %T stands only alone in an IN list", v)
}

// number makes a number; a sign is an operator around it.
func number(text string, kind ast.LiteralKind) ast.Expr {
	digits, negative := strings.CutPrefix(text, "-")
	l := &ast.Literal{Kind: kind, Value: digits, Raw: digits}
	if !negative {
		return l
	}
	return &ast.ParenExpr{X: &ast.UnaryExpr{Op: ast.OpMinus, X: l}}
}

// unexpressible reports whether SQLite cannot mask a column the way the policy says: it has no keyed hash.
func unexpressible(c *rewrite.Column) bool { return c.Mask != nil && c.Mask.Kind == acl.MaskHash }

// masked writes what a column reads as. Where it can be done without changing the value, the result is cast to the
// column's own affinity, so that comparisons convert as they would on a stored column. Left without: constants that do
// not fit the column's type, partial masks of numbers, and expressions on columns of numbers that may make something else.
// Those compare by the type of the value alone, and so do all under a column's own collation.
func (sub subject) masked(c *rewrite.Column) (ast.Expr, error) {
	affinity := affinityOf(c.Type)
	var e ast.Expr
	var err error
	switch m := c.Mask; m.Kind {
	case acl.MaskNull: // columns of a compound, and merged ones, compare by the affinity of the first
		if affinity == "BLOB" {
			return null(), nil
		}
		return cast(null(), affinity), nil
	case acl.MaskPartial:
		e, err = parser.ParseExpr("substr(CAST(" + ident(c.Name).Raw + " AS TEXT), 1, 1) || '***'")
	case acl.MaskConstant:
		if e, err = valueLiteral(m.Constant); err != nil {
			return nil, fmt.Errorf("sqlite: mask of %s: %w", c.Ref, err)
		}
		switch m.Constant.(type) {
		case int64, bool:
			if affinity != "BLOB" {
				return cast(e, affinity), nil
			}
		case float64:
			return castNumber(e, affinity), nil
		}
	case acl.MaskExpression:
		if e, err = sub.condition(m.Expression); err == nil && isNumber(e) {
			return castNumber(e, affinity), nil
		}
	default:
		return nil, fmt.Errorf("sqlite: mask %q of %s is not known", m.Kind, c.Ref)
	}
	if err != nil || affinity != "TEXT" {
		return e, err
	}
	return cast(e, affinity), nil
}

func null() ast.Expr { return &ast.Literal{Kind: ast.LitNull, Value: "NULL", Raw: "NULL"} }

func cast(e ast.Expr, as string) ast.Expr { return &ast.CastExpr{X: e, Type: &ast.TypeName{Name: as}} }

// castNumber gives a number the affinity of a column. INTEGER would take the fraction away, which a stored number keeps;
// NUMERIC converts alike and does not.
func castNumber(e ast.Expr, affinity string) ast.Expr {
	switch affinity {
	case "INTEGER":
		return cast(e, "NUMERIC")
	case "REAL", "NUMERIC", "TEXT":
		return cast(e, affinity)
	}
	return e
}

// isNumber reports whether an expression makes nothing but numbers and NULL.
func isNumber(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Literal:
		return e.Kind == ast.LitInteger || e.Kind == ast.LitFloat || e.Kind == ast.LitNull
	case *ast.ParenExpr:
		return isNumber(e.X)
	case *ast.UnaryExpr:
		return e.Op != ast.OpPlus || isNumber(e.X)
	case *ast.BinaryExpr:
		return e.Op != ast.OpConcat && e.Op != ast.OpPtr && e.Op != ast.OpPtr2
	case *ast.CaseExpr:
		return (e.Else == nil || isNumber(e.Else)) && !slices.ContainsFunc(e.Whens, func(w *ast.CaseWhen) bool { return !isNumber(w.Then) })
	case *ast.FuncCall:
		switch lower(e.Name.Name) {
		case "round", "length", "abs", "instr", "sign", "ceil", "ceiling", "floor", "trunc":
			return true
		case "coalesce", "ifnull", "nullif":
			return !slices.ContainsFunc(e.Args, func(a ast.Expr) bool { return !isNumber(a) })
		}
	}
	return false
}

// affinityOf is SQLite's rule for the affinity of a declared type.
func affinityOf(declared string) string {
	d := strings.ToUpper(declared)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(d, w) })
	}
	switch {
	case has("INT"):
		return "INTEGER"
	case has("CHAR", "CLOB", "TEXT"):
		return "TEXT"
	case d == "" || has("BLOB"):
		return "BLOB"
	case has("REAL", "FLOA", "DOUB"):
		return "REAL"
	}
	return "NUMERIC"
}
