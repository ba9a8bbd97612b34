package mysql

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/schemagate/schemagate/acl"
)

// function says what the guard knows of a function: that it only computes from its arguments, and what a result can
// do in the expression around it.
type function struct {
	// fails says that some arguments raise an error, even if the statement is valid.
	fails bool
	// bits bounds a whole number that is the result; 0 is no bound known.
	bits int
	// same says that the result is as large as its largest argument; an argument of unknown size makes it fail if
	// strict is set.
	same, strict bool
}

var (
	harmless = function{}
	failing  = function{fails: true}
)

// functions is the list of allowed functions. What is not on it is refused.
var functions = merge(
	// Text from text; too long a result is NULL with a warning.
	group(harmless, "bin", "char", "char_func", "concat", "concat_ws", "convert", "elt", "export_set", "field", "find_in_set", "format",
		"from_base64", "hex", "insert", "insert_func", "lcase", "left", "lower", "lpad", "ltrim", "make_set", "mid", "oct", "quote",
		"repeat", "replace", "reverse", "right", "rpad", "rtrim", "soundex", "space", "substr", "substring", "substring_index",
		"to_base64", "translate", "trim", "ucase", "unhex", "upper"),
	// Counts and positions in text.
	group(function{bits: 34}, "ascii", "bit_count", "bit_length", "char_length", "character_length", "instr", "length", "locate",
		"octet_length", "ord", "position", "strcmp"),
	// Dates and times; what is no date is NULL with a warning.
	group(harmless, "adddate", "addtime", "convert_tz", "date", "date_add", "date_format", "date_sub", "dayname", "from_days",
		"from_unixtime", "last_day", "makedate", "maketime", "monthname", "sec_to_time", "str_to_date", "subdate", "subtime", "time",
		"time_format", "timediff", "timestamp", "timestampadd", ast.DateLiteral, ast.TimeLiteral, ast.TimestampLiteral),
	group(function{bits: 40}, "datediff", "day", "dayofmonth", "dayofweek", "dayofyear", "hour", "microsecond", "minute", "month",
		"quarter", "second", "time_to_sec", "to_days", "to_seconds", "unix_timestamp", "week", "weekday",
		"weekofyear", "year", "yearweek"),
	group(function{bits: 60}, "extract", "timestampdiff"),
	// The time at which the statement began; it does not move while the statement runs, so it measures nothing.
	group(harmless, "curdate", "current_date", "current_time", "current_timestamp", "curtime", "localtime", "localtimestamp", "now",
		"utc_date", "utc_time", "utc_timestamp"),
	// Choices between arguments.
	group(function{same: true}, "coalesce", "greatest", "if", "ifnull", "least", "nullif"),
	group(function{bits: 2}, "isnull", "interval"),
	// Numbers that stay in range if their argument is bounded.
	group(function{same: true, strict: true}, "abs", "ceil", "ceiling", "floor", "round", "truncate"),
	group(function{bits: 2}, "sign"),
	// Numbers that can leave their range; MySQL takes a period that is none for an error.
	group(failing, "period_add", "period_diff", "acos", "asin", "atan", "atan2", "cos", "cot", "degrees", "exp", "ln", "log", "log10", "log2", "mod", "pow",
		"power", "radians", "sin", "sqrt", "tan", "conv", "rand"),
	group(harmless, "crc32", "pi"),
	// Digests and ciphers of the arguments only.
	group(harmless, "aes_decrypt", "aes_encrypt", "compress", "md5", "sha", "sha1", "sha2", "uncompress", "uncompressed_length"),
	// What an expression's text is written in.
	group(harmless, "charset", "collation", "weight_string"),
	// MariaDB's names for the same, after Oracle's; what to_char and add_months do not understand is an error.
	group(function{same: true}, "nvl", "nvl2"),
	group(harmless, "chr", "lengthb", "natural_sort_key", "crc32c"),
	group(failing, "add_months", "to_char"),
	// Addresses.
	group(harmless, "inet_aton", "inet_ntoa", "inet6_aton", "inet6_ntoa", "is_ipv4", "is_ipv4_compat", "is_ipv4_mapped", "is_ipv6"),
	// JSON; engines differ in whether bad JSON is an error.
	group(failing, "json_compact", "json_detailed", "json_equals", "json_exists", "json_loose", "json_normalize", "json_pretty", "json_query", "json_value"),
	group(failing, "json_array", "json_array_append", "json_array_insert", "json_contains", "json_contains_path", "json_depth",
		"json_extract", "json_insert", "json_keys", "json_length", "json_merge", "json_merge_patch", "json_merge_preserve",
		"json_object", "json_overlaps", "json_quote", "json_remove", "json_replace", "json_search", "json_set", "json_type",
		"json_unquote", "json_valid"),
	// Shapes; a bad one is an error.
	group(failing, "point", "st_astext", "st_contains", "st_distance", "st_distance_sphere", "st_geomfromtext", "st_intersects", "st_within", "st_x", "st_y"),
	// Patterns; a bad one is an error.
	group(failing, "regexp_instr", "regexp_like", "regexp_replace", "regexp_substr"),
)

// aggregates are allowed with and without a window.
var aggregates = merge(
	group(function{bits: 50}, "count"),
	group(function{same: true}, "max", "min"),
	group(function{same: true}, "avg", "sum"), // see number.summed
	group(harmless, "bit_and", "bit_or", "bit_xor", "group_concat", "json_arrayagg", "stddev_pop", "stddev_samp", "var_pop", "var_samp"),
	group(failing, "json_objectagg"),
)

// windows are functions that need a window.
var windows = merge(
	group(function{bits: 50}, "dense_rank", "ntile", "rank", "row_number"),
	group(harmless, "cume_dist", "percent_rank"),
	group(function{same: true}, "first_value", "lag", "last_value", "lead", "nth_value"),
)

// server tells about the server or its sessions, takes locks, reads files or takes time. These are refused in the
// words of a thing that does not exist.
var server = group(harmless, "benchmark", "connection_id", "current_role", "current_user", "database", "found_rows", "get_lock",
	"is_free_lock", "is_used_lock", "last_insert_id", "lastval", "load_file", "master_pos_wait", "name_const", "nextval",
	"release_all_locks", "release_lock", "row_count", "schema", "session_user", "setval", "sleep", "sysdate", "system_user",
	"user", "uuid", "uuid_short", "version")

func group(f function, names ...string) map[string]function {
	m := make(map[string]function, len(names))
	for _, n := range names {
		m[n] = f
	}
	return m
}

func merge(groups ...map[string]function) map[string]function {
	all := map[string]function{}
	for _, g := range groups {
		for n, f := range g {
			all[n] = f
		}
	}
	return all
}

// Allow refuses what is not on the lists.
func (t *tree) Allow() error {
	w := walk{block: allowedBlock, expr: allowed}
	return w.query(t.query)
}

func allowedBlock(n *ast.SelectStmt) error {
	switch {
	case n.SelectIntoOpt != nil:
		return notReadOnly("SELECT ... INTO does more than read", "SelectIntoOpt")
	case n.LockInfo != nil && n.LockInfo.LockType != ast.SelectLockNone:
		return notReadOnly("locking rows is more than reading", n.LockInfo.LockType.String())
	case n.SelectStmtOpts != nil && (n.CalcFoundRows || n.Priority != mysql.NoPriority):
		return notSupported("SELECT options for the server are not supported", n)
	}
	return nil
}

// charsets are those of literals that print as they were read.
var charsets = map[string]bool{"": true, "utf8": true, "utf8mb3": true, "utf8mb4": true, "binary": true}

func allowed(slot *ast.ExprNode) error {
	switch n := (*slot).(type) {
	case *test_driver.ValueExpr:
		if !charsets[strings.ToLower(n.Type.GetCharset())] || n.Kind() == test_driver.KindBinaryLiteral && n.Type.GetCharset() != "binary" {
			return notSupported("literals of another character set than UTF-8 are not supported", n)
		}
	case *test_driver.ParamMarkerExpr:
		return notSupported("placeholders for values are not supported", n)
	case *ast.VariableExpr:
		at := "@"
		if n.IsSystem {
			at = "@@"
		}
		return acl.NotAvailable(at+n.Name, "variable")
	case *ast.FuncCallExpr:
		if _, ok := functions[n.FnName.L]; ok && n.Schema.O == "" {
			return nil
		}
		if _, ok := server[n.FnName.L]; ok {
			return acl.NotAvailable("the function "+n.FnName.O, "function of the server")
		}
		return unknownFunction(n.FnName.O, n)
	case *ast.FuncCastExpr:
		if n.Tp.IsArray() {
			return notSupported("casts to an array are not supported", n)
		}
	case *ast.AggregateFuncExpr:
		if _, ok := aggregates[strings.ToLower(n.F)]; !ok {
			return unknownFunction(n.F, n)
		}
	case *ast.WindowFuncExpr:
		name := strings.ToLower(n.Name)
		_, window := windows[name]
		_, aggregate := aggregates[name]
		if !window && !aggregate {
			return unknownFunction(n.Name, n)
		}
		if n.FromLast || n.IgnoreNull {
			return notSupported("FROM LAST and IGNORE NULLS are not supported", n)
		}
	}
	return nil
}

func unknownFunction(name string, n ast.Node) error {
	return notSupported(fmt.Sprintf("the function %s is not supported", name), n)
}
