package postgres

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/schemagate/schemagate/acl"
)

// nodeFields lists the nodes that a statement may consist of, each with the fields that may be set. Positions may
// always be; whatever is not listed is refused, so that a new version of the parser can only make the guard stricter.
var nodeFields = map[string]string{
	// Queries. Not: into_clause, which creates a table; locking_clause, which locks rows.
	"SelectStmt": "distinct_clause target_list from_clause where_clause group_clause group_distinct having_clause window_clause " +
		"values_lists sort_clause limit_offset limit_count limit_option with_clause op all larg rarg",
	"WithClause":       "ctes recursive",
	"CommonTableExpr":  "ctename aliascolnames ctematerialized ctequery search_clause cycle_clause",
	"CTESearchClause":  "search_col_list search_breadth_first search_seq_column",
	"CTECycleClause":   "cycle_col_list cycle_mark_column cycle_mark_value cycle_mark_default cycle_path_column",
	"ResTarget":        "name val",
	"SortBy":           "node sortby_dir sortby_nulls use_op",
	"GroupingSet":      "kind content",
	"WindowDef":        "name refname partition_clause order_clause frame_options start_offset end_offset",
	"RangeVar":         "catalogname schemaname relname inh relpersistence alias",
	"RangeSubselect":   "lateral subquery alias",
	"RangeFunction":    "lateral ordinality is_rowsfrom functions alias coldeflist",
	"RangeTableSample": "relation method args repeatable",
	"JoinExpr":         "jointype is_natural larg rarg using_clause join_using_alias quals alias",
	"Alias":            "aliasname colnames",
	"ColumnDef":        "colname type_name is_local", // the columns of a record that a function returns

	// Expressions. Not: ParamRef, which has no value here; XML and SQL/JSON constructors, which nobody has vetted.
	"ColumnRef":        "fields",
	"A_Star":           "",
	"A_Const":          "ival fval boolval sval bsval isnull",
	"A_Expr":           "kind name lexpr rexpr",
	"BoolExpr":         "boolop args",
	"NullTest":         "arg nulltesttype",
	"BooleanTest":      "arg booltesttype",
	"CaseExpr":         "arg args defresult",
	"CaseWhen":         "expr result",
	"CoalesceExpr":     "args",
	"MinMaxExpr":       "op args",
	"FuncCall":         "funcname args agg_order agg_filter over agg_within_group agg_star agg_distinct func_variadic funcformat",
	"NamedArgExpr":     "arg name argnumber",
	"SQLValueFunction": "op typmod",
	"SubLink":          "sub_link_type testexpr oper_name subselect",
	"TypeCast":         "arg type_name",
	"TypeName":         "names typmods typemod array_bounds",
	"CollateClause":    "arg collname",
	"A_ArrayExpr":      "elements",
	"A_Indirection":    "arg indirection",
	"A_Indices":        "is_slice lidx uidx",
	"RowExpr":          "args row_format",
	"GroupingFunc":     "args",
	"List":             "items",

	// Values inside other nodes.
	"String": "sval", "Integer": "ival", "Float": "fval", "Boolean": "boolval", "BitString": "bsval",
}

var forbiddenFields = forbidden(nodeFields)

// writes lists the nodes and fields that do more than read, which deserve a plainer no than a construct that is only
// unknown.
var writes = map[string]string{
	"InsertStmt": "INSERT", "UpdateStmt": "UPDATE", "DeleteStmt": "DELETE", "MergeStmt": "MERGE",
	"into_clause": "SELECT INTO", "locking_clause": "a lock on rows",
}

// forbidden turns a list of nodes and the fields that may be set into one of those that may not.
func forbidden(allowed map[string]string) map[protoreflect.MessageDescriptor][]protoreflect.FieldDescriptor {
	out := make(map[protoreflect.MessageDescriptor][]protoreflect.FieldDescriptor, len(allowed))
	messages := pg.File_pg_query_proto.Messages()
	for node, fields := range allowed {
		m := messages.ByName(protoreflect.Name(node))
		set := words(fields)
		out[m] = nil
		for i := range m.Fields().Len() {
			if f := m.Fields().Get(i); !set[string(f.Name())] && !isPosition(f) {
				out[m] = append(out[m], f)
			}
		}
	}
	return out
}

// operators are the built-in ones over values. None reads a table, a file or a setting.
var operators = words(`= <> < > <= >= + - * / % ^ |/ ||/ @ & | # ~ << >> || ~~ !~~ ~~* !~~* ~* !~ !~*
	-> ->> #> #>> #- @> <@ ? ?| ?& @? @@ && -|- &< &> !! ^@ <-> ## @-@ ?- ?-| ?|| ~= <<| |>> <^ >^ >>= <<=`)

// types are those that a statement may cast to: built-in values. The reg* types and oid look names up among tables and
// functions, hidden ones too.
var types = words(`bool int2 int4 int8 float4 float8 numeric text varchar bpchar char name date time timetz timestamp timestamptz interval
	uuid json jsonb bytea bit varbit money inet cidr macaddr macaddr8 int4range int8range numrange tsrange tstzrange daterange
	int4multirange int8multirange nummultirange tsmultirange tstzmultirange datemultirange
	tsvector tsquery jsonpath point box circle line lseg path polygon`)

func words(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}

// checker holds a tree against the lists.
type checker struct {
	sql  string
	skip map[*pg.Node]bool // nodes that somebody else vouches for
}

// check returns the first thing under m that is not on a list, in the order of the text's grammar.
func (c *checker) check(m proto.Message) *acl.Refusal {
	switch n := m.(type) {
	case *pg.Node:
		if c.skip[n] {
			return nil
		}
	case *pg.String, *pg.Integer: // half of a tree
		return nil
	default:
		if no := c.checkNode(m); no != nil {
			return no
		}
	}
	var no *acl.Refusal
	inside(m, func(child proto.Message) bool {
		no = c.check(child)
		return no == nil
	})
	return no
}

func (c *checker) checkNode(message proto.Message) *acl.Refusal {
	m := message.ProtoReflect()
	forbidden, ok := forbiddenFields[m.Descriptor()]
	if !ok {
		if what := writes[string(m.Descriptor().Name())]; what != "" {
			return notReadOnly(what+" does more than read", describe(message))
		}
		return c.unknown(message, "")
	}
	for _, f := range forbidden {
		if !m.Has(f) {
			continue
		}
		if what := writes[string(f.Name())]; what != "" {
			return notReadOnly(what+" does more than read", describe(message))
		}
		return c.unknown(message, string(f.Name()))
	}
	return c.checkValue(message)
}

// unknown is the refusal of a construct, with the asker's own word at its place.
func (c *checker) unknown(m proto.Message, field string) *acl.Refusal {
	detail := describe(m)
	if field != "" {
		detail += " with " + field
	}
	public := "the statement uses a construct that is not supported"
	if at, ok := position(m); ok && at < len(c.sql) {
		if w := firstWord(c.sql[at:]); w != "" {
			public = fmt.Sprintf("the construct at %q is not supported", w)
		}
	}
	return notSupported(public, "write it with plain SELECT, joins, subqueries and built-in functions", detail)
}

func firstWord(s string) string {
	end := 0
	for end < len(s) && end < 40 && (s[end] == '_' || s[end] >= '0' && s[end] <= '9' || s[end] >= 'a' && s[end] <= 'z' || s[end] >= 'A' && s[end] <= 'Z') {
		end++
	}
	return s[:end]
}

// checkValue looks at the names that decide what an allowed node does.
func (c *checker) checkValue(m proto.Message) *acl.Refusal {
	switch n := m.(type) {
	case *pg.FuncCall:
		name, ok := builtin(n.Funcname)
		if !ok || !functions[name] {
			called, _ := names(n.Funcname)
			return notSupported(fmt.Sprintf("the function %s is not supported", said(called...)),
				"use another built-in function", describe(m))
		}
	case *pg.A_Expr:
		// BETWEEN and its kin carry a word for a name.
		if n.Kind < pg.A_Expr_Kind_AEXPR_BETWEEN || n.Kind > pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM {
			return c.operator(n.Name, m)
		}
	case *pg.SubLink:
		if len(n.OperName) > 0 {
			return c.operator(n.OperName, m)
		}
	case *pg.SortBy:
		if len(n.UseOp) > 0 {
			return c.operator(n.UseOp, m)
		}
	case *pg.TypeName:
		name, ok := builtin(n.Names)
		if !ok || !types[name] {
			named, _ := names(n.Names)
			return notSupported(fmt.Sprintf("the type %s is not supported", said(named...)), "use a built-in type of values", describe(m))
		}
	case *pg.CollateClause:
		if _, ok := builtin(n.Collname); !ok {
			return c.unknown(m, "collname")
		}
	case *pg.SQLValueFunction:
		if !slices.Contains(dateFunctions, n.Op) {
			return notSupported("functions that tell who or where you are to the server are not supported", "leave the function out",
				fmt.Sprintf("%s at byte %d", n.Op, n.Location))
		}
	case *pg.RangeVar:
		if n.Relpersistence != "p" {
			return c.unknown(m, "relpersistence")
		}
	case *pg.RangeTableSample:
		if method, ok := builtin(n.Method); !ok || method != "system" && method != "bernoulli" {
			return c.unknown(m, "method")
		}
		for _, arg := range append(slices.Clone(n.Args), n.Repeatable) {
			if arg != nil && arg.GetAConst() == nil {
				return c.unknown(m, "args")
			}
		}
	case *pg.CommonTableExpr:
		if n.Ctequery.GetSelectStmt() == nil {
			if what := writes[strings.SplitN(kindOf(n.Ctequery), " ", 2)[0]]; what != "" {
				return notReadOnly(what+" does more than read", kindOf(n.Ctequery))
			}
			return c.unknown(m, "ctequery")
		}
	case *pg.RangeSubselect:
		if n.Subquery.GetSelectStmt() == nil {
			return c.unknown(m, "subquery")
		}
	}
	return nil
}

func (c *checker) operator(name []*pg.Node, m proto.Message) *acl.Refusal {
	if op, ok := builtin(name); ok && operators[op] {
		return nil
	}
	named, _ := names(name)
	return notSupported(fmt.Sprintf("the operator %s is not supported", strings.Join(named, ".")), "use another built-in operator", describe(m))
}

// builtin returns the last part of a name that names something of the server itself: it stands alone, where pg_catalog
// is searched first, or behind pg_catalog.
func builtin(list []*pg.Node) (string, bool) {
	parts, ok := names(list)
	switch {
	case !ok || len(parts) == 0 || len(parts) > 2:
		return "", false
	case len(parts) == 2 && parts[0] != "pg_catalog":
		return "", false
	}
	return parts[len(parts)-1], true
}

// dateFunctions are the parameterless functions that a statement may call without parentheses: the time at which the
// transaction began. The others tell users, roles and schemas.
var dateFunctions = []pg.SQLValueFunctionOp{
	pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE,
	pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME_N,
	pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N,
	pg.SQLValueFunctionOp_SVFOP_LOCALTIME, pg.SQLValueFunctionOp_SVFOP_LOCALTIME_N,
	pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP, pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N,
}
