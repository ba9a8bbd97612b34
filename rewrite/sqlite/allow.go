package sqlite

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sqlc-dev/meyer/ast"

	"github.com/schemagate/schemagate/acl"
)

// risk says what an error of a function can tell where SQLite moves a call in front of a row filter.
type risk uint8

const (
	failing   risk = iota // fails on some values, so a hidden row shows; the zero value, for what is not listed
	late                  // fails, but over rows that passed the filters of its own FROM
	contained             // never fails
)

// functionGroups lists the functions that a statement may call, by the reason why. Everything else is refused, among
// it what tells of the server or the connection (sqlite_version, changes, last_insert_rowid, sqlite_offset), reaches
// files or code (readfile, load_extension, fts3_tokenizer) or was registered by an application.
var functionGroups = []struct {
	reason string
	risk   risk
	names  string
}{
	{"they count and compare", contained, `avg count total row_number rank dense_rank percent_rank cume_dist lag lead
		first_value last_value`},
	{"they sum up a group or a window and fail where it cannot be summed up", late,
		`group_concat string_agg sum median percentile percentile_cont percentile_disc ntile nth_value
		json_group_array json_group_object jsonb_group_array jsonb_group_object`},
	{"they choose among or describe their arguments", contained,
		`coalesce ifnull iif if nullif max min typeof likely unlikely likelihood sign instr unicode char
		length octet_length`},
	{"they return at most as much text as they are given, and NULL where they make no sense", contained,
		`lower upper trim ltrim rtrim substr substring soundex unhex round`},
	{"they compute NULL where the result is undefined", contained,
		`acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi
		pow power radians sin sinh sqrt tan tanh trunc`},
	// 'now' and CURRENT_DATE tell the time, which everybody knows and no hidden row changes; analytics need them.
	{"they compute with dates and yield NULL for what is none", contained,
		`date time datetime julianday unixepoch strftime timediff`},
	{"chance tells nothing of anybody's rows", contained, `random randomblob zeroblob`},
	{"they are pure, but fail on some values", failing, `abs`},
	{"they are pure, but can outgrow what SQLite can hold", failing,
		`concat concat_ws format printf hex quote replace like glob`},
	{"they are pure, but fail on malformed JSON", failing,
		`json json_array json_array_length json_error_position json_extract json_insert json_object json_patch
		json_pretty json_quote json_remove json_replace json_set json_type json_valid
		jsonb jsonb_array jsonb_extract jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set`},
}

// functions is functionGroups by name.
var functions = func() map[string]risk {
	m := map[string]risk{}
	for _, g := range functionGroups {
		for _, name := range strings.Fields(g.names) {
			m[name] = g.risk
		}
	}
	return m
}()

// aggregates reports whether a call without OVER makes its value of several rows.
func aggregates(n *ast.FuncCall) bool {
	switch lower(n.Name.Name) {
	case "avg", "count", "total", "group_concat", "string_agg", "sum", "median", "percentile", "percentile_cont", "percentile_disc",
		"json_group_array", "json_group_object", "jsonb_group_array", "jsonb_group_object":
		return true
	case "min", "max":
		return len(n.Args) == 1
	}
	return false
}

// tableFunctions are the table-valued functions that read nothing but their arguments, with their columns; those after
// the bar are not part of a star.
var tableFunctions = map[string]string{
	"json_each": "key value type atom id parent fullkey path | json root",
	"json_tree": "key value type atom id parent fullkey path | json root",
}

// maxBlob bounds what a statement can have SQLite make up, in bytes.
const maxBlob = 1 << 20

// allowed refuses the first node or function of a tree that is not known to be harmless.
func allowed(root ast.Node) (err error) {
	walk(root, func(n ast.Node) bool {
		if err == nil {
			if r := allow(n); r != nil {
				err = r
			}
		}
		return err == nil
	})
	return err
}

func allow(n ast.Node) *acl.Refusal {
	switch n := n.(type) {
	case *ast.SelectStmt, *ast.SelectQuery, *ast.ValuesClause, *ast.ResultColumn, *ast.With, *ast.CTE, *ast.Limit,
		*ast.OrderingTerm, *ast.WindowDef, *ast.FrameBound, *ast.Ident, *ast.QualifiedName, *ast.QualifiedRef, *ast.Star,
		*ast.Literal, *ast.UnaryExpr, *ast.BinaryExpr, *ast.ParenExpr, *ast.IsExpr, *ast.NullCheckExpr, *ast.BetweenExpr,
		*ast.CaseExpr, *ast.CaseWhen, *ast.CastExpr, *ast.TypeName, *ast.ExistsExpr, *ast.SubqueryExpr, *ast.VectorExpr:
		return nil
	case *ast.InExpr:
		if n.HasArgs {
			return allowTableFunction(n, n.Table)
		}
		return nil
	case *ast.TableRef:
		if n.HasArgs {
			return allowTableFunction(n, n.Name)
		}
		return nil
	case *ast.JoinOperator:
		if !validJoin(n) {
			return invalid("unknown kind of join: " + strings.Join(n.Words, " "))
		}
		return nil
	case *ast.LikeExpr:
		if same(n.Op.Name, "like") || same(n.Op.Name, "glob") {
			return nil
		}
		return notSupported(n, n.Op.Raw+" is not supported", "use LIKE or GLOB")
	case *ast.CollateExpr:
		if same(n.Name.Name, "binary") || same(n.Name.Name, "nocase") || same(n.Name.Name, "rtrim") {
			return nil
		}
		return notSupported(n, fmt.Sprintf("the collation %s is not supported", n.Name.Raw), "use BINARY, NOCASE or RTRIM")
	case *ast.FuncCall:
		return allowFunction(n)
	case *ast.BindParam:
		return notSupported(n, fmt.Sprintf("the parameter %s is not supported", n.Raw), "write the value itself")
	}
	return notSupported(n, "the statement uses a construct that is not supported", "write the query without it")
}

func allowTableFunction(n ast.Node, name *ast.QualifiedName) *acl.Refusal {
	if _, ok := tableFunctions[lower(name.Name.Name)]; ok && name.Schema == nil {
		return nil
	}
	return notSupported(n, fmt.Sprintf("the table function %s is not supported", ast.String(name)), "use a table, json_each or json_tree")
}

func allowFunction(n *ast.FuncCall) *acl.Refusal {
	name := lower(n.Name.Name)
	if _, ok := functions[name]; !ok {
		return notSupported(n, fmt.Sprintf("the function %s is not supported", n.Name.Raw), "write the query without it")
	}
	switch name {
	case "randomblob", "zeroblob":
		if len(n.Args) == 1 {
			if size, ok := integer(n.Args[0]); ok && size <= maxBlob {
				return nil
			}
		}
		return notSupported(n, fmt.Sprintf("%s takes only a plain number up to %d here", n.Name.Raw, maxBlob), "write a smaller size")
	case "format", "printf":
		if len(n.Args) > 0 && plainFormat(n.Args[0]) {
			return nil
		}
		return notSupported(n, fmt.Sprintf("%s takes only a plain format here, without * and long widths", n.Name.Raw), "write the format as a string")
	}
	return nil
}

// plainFormat accepts a format that makes little out of little: a written-out text with widths below a thousand.
func plainFormat(e ast.Expr) bool {
	l, ok := e.(*ast.Literal)
	if !ok || l.Kind != ast.LitString || strings.Contains(l.Value, "*") {
		return false
	}
	digits := 0
	for _, c := range l.Value {
		if '0' <= c && c <= '9' {
			digits++
		} else {
			digits = 0
		}
		if digits > 3 {
			return false
		}
	}
	return true
}

// validJoin checks the words of a join by SQLite's own rule and writes them in upper case.
func validJoin(j *ast.JoinOperator) bool {
	if j.Type&ast.JoinComma != 0 {
		return true
	}
	for i, w := range j.Words {
		j.Words[i] = strings.ToUpper(w)
		switch j.Words[i] {
		case "NATURAL", "LEFT", "RIGHT", "FULL", "OUTER", "INNER", "CROSS", "JOIN":
		default:
			return false
		}
	}
	outer := j.Type & (ast.JoinOuter | ast.JoinLeft | ast.JoinRight)
	return outer != ast.JoinOuter && (outer == 0 || j.Type&ast.JoinInner == 0)
}

// safe reports whether no expression of a statement can fail on a row: then SQLite may evaluate it on rows that a
// filter would hide, and nobody can tell. skip leaves out a subtree.
func safe(q *ast.SelectStmt, skip func(ast.Node) bool) bool {
	nested := false
	walk(q, func(n ast.Node) bool {
		nested = nested || isNesting(n)
		return !nested && !skip(n)
	})
	return safeBelow(q, false, nested, skip)
}

// isNesting reports whether a node is an expression with a SELECT in it.
func isNesting(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.SubqueryExpr, *ast.ExistsExpr:
		return true
	case *ast.InExpr:
		return n.Select != nil
	}
	return false
}

// safeBelow is safe for a node. inner says that it stands in a SELECT of an expression, which SQLite runs for rows of
// the query around it; so may the CTEs be if there is such an expression at all, which nested says.
func safeBelow(n ast.Node, inner, nested bool, skip func(ast.Node) bool) bool {
	if skip(n) {
		return true
	}
	switch n := n.(type) {
	case *ast.FuncCall:
		switch name := lower(n.Name.Name); functions[name] {
		case failing:
			return false
		case late:
			if inner {
				return false
			}
		case contained:
			// A format of a row's own could make a text of any length.
			if name == "strftime" && (len(n.Args) == 0 || !isText(n.Args[0], 100)) {
				return false
			}
		}
	case *ast.BinaryExpr:
		// Concatenation can outgrow what SQLite can hold, and -> fails on malformed JSON.
		if n.Op == ast.OpConcat || n.Op == ast.OpPtr || n.Op == ast.OpPtr2 {
			return false
		}
	case *ast.LikeExpr:
		// A pattern may be too long, an escape must be one character.
		if !isText(n.Y, 1000) || n.Escape != nil && !isText(n.Escape, 1) {
			return false
		}
	case *ast.Limit:
		if !isCount(n.Count) || n.Offset != nil && !isCount(n.Offset) {
			return false
		}
	case *ast.FrameBound:
		if n.Expr != nil && !isCount(n.Expr) {
			return false
		}
	case *ast.TableRef:
		if n.HasArgs {
			return false
		}
	case *ast.CTE:
		inner = inner || nested
	}
	inner = inner || isNesting(n)
	for _, c := range n.Children() {
		if !safeBelow(c, inner, nested, skip) {
			return false
		}
	}
	return true
}

// isText reports whether e is a written-out text of one to most characters.
func isText(e ast.Expr, most int) bool {
	l, ok := e.(*ast.Literal)
	if !ok || l.Kind != ast.LitString {
		return false
	}
	n := utf8.RuneCountInString(l.Value)
	return n <= most && (n > 0 || most > 1)
}

func isCount(e ast.Expr) bool {
	l, ok := e.(*ast.Literal)
	if !ok {
		return false
	}
	_, ok = integer(l)
	return ok
}

// lower folds ASCII letters, as SQLite does for names of functions.
func lower(name string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, name)
}
