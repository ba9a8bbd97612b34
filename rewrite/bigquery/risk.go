//go:build bigquery

package bigquery

import (
	"regexp"
	"strings"

	"github.com/goccy/go-googlesql"
)

// operators are the risks of what the analyzer calls functions and the asker writes as syntax.
var operators = map[string]risk{
	"$equal": contained, "$not_equal": contained, "$less": contained, "$less_or_equal": contained, "$greater": contained,
	"$greater_or_equal": contained, "$not": contained, "$between": absorbing, "$in": absorbing, "$in_array": absorbing,
	"$and": absorbing, "$or": absorbing, "$is_null": absorbing, "$is_true": absorbing, "$is_false": absorbing,
	"$is_distinct_from": absorbing, "$is_not_distinct_from": absorbing,
	"$case_no_value": absorbing, "$case_with_value": absorbing, "$make_array": absorbing,
	"$safe_array_at_offset": contained, "$safe_array_at_ordinal": contained,
	"$bitwise_and": contained, "$bitwise_or": contained, "$bitwise_xor": contained, "$bitwise_not": contained,
	"$count_star": late,
	"$add":        failing, "$subtract": failing, "$multiply": failing, "$divide": failing, "$unary_minus": failing,
	"$like": failing, "$array_at_offset": failing, "$array_at_ordinal": failing, "$subscript": failing,
	"$bitwise_left_shift": failing, "$bitwise_right_shift": failing, "$interval": failing,
	"$extract": failing, "$extract_date": failing, "$extract_time": failing, "$extract_datetime": failing,
}

// signs are the operators as the asker writes them.
var signs = map[string]string{
	"$add": "+", "$subtract": "-", "$multiply": "*", "$divide": "/", "$unary_minus": "-", "$like": "LIKE",
	"$array_at_offset": "OFFSET", "$array_at_ordinal": "ORDINAL", "$subscript": "[ ]", "$bitwise_left_shift": "<<",
	"$bitwise_right_shift": ">>", "$interval": "INTERVAL", "$extract": "EXTRACT", "$extract_date": "EXTRACT",
	"$extract_time": "EXTRACT", "$extract_datetime": "EXTRACT",
}

// brittle fails on some values, and is not known to return NULL for a NULL.
const brittle risk = absorbing + 1

// mixed are functions that make a value of a NULL, and can fail all the same.
var mixed = words(`format to_json to_json_string json_array json_object json_set json_array_append json_array_insert json_remove json_strip_nulls json_keys range array_concat
	array_to_string generate_array generate_date_array generate_timestamp_array hll_count.extract rand generate_uuid
	current_date current_datetime current_time string bool int64 float64 lax_int64 lax_float64 lax_bool lax_string`)

// tameFunctions do not fail on ordinary numbers of days and the like.
var tameFunctions = words(`current_date current_datetime current_time current_timestamp date_add date_sub datetime_add datetime_sub
	timestamp_add timestamp_sub date_trunc datetime_trunc timestamp_trunc date_diff datetime_diff timestamp_diff last_day
	$interval $extract $extract_date $unary_minus $add $subtract`)

// lenient take texts of any kind where they are called with one argument, and fail on some further ones.
var lenient = words("trim ltrim rtrim $extract $extract_date $extract_time $extract_datetime")

// patterned take a regular expression as their second argument.
var patterned = words("regexp_contains regexp_extract regexp_extract_all regexp_replace")

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// riskOf is the risk of a function by the analyzer's name for it.
func riskOf(name string, arguments []googlesql.ResolvedExprNode) risk {
	if strings.HasPrefix(name, "current_") && len(arguments) == 0 {
		return absorbing
	}
	if functions[name] == late {
		return late
	}
	if mixed[name] && len(arguments) > 0 || strings.HasPrefix(name, "st_") {
		return brittle
	}
	if k, ok := operators[name]; ok {
		return k
	}
	if k, ok := functions[name]; ok {
		return k
	}
	return brittle
}

// settled reports whether a call of a function that can fail cannot, by what its written-out arguments are.
func (r *reader) settled(name string, arguments []googlesql.ResolvedExprNode) bool {
	switch {
	case lenient[name]:
		if strings.HasPrefix(name, "$extract") {
			return len(arguments) <= 2 // without a time zone
		}
		return len(arguments) == 1
	case name == "concat":
		return len(arguments) <= 8 // of stored texts
	case name == "$like" && len(arguments) == 2:
		pattern, ok := r.text(arguments[1])
		return ok && !strings.HasSuffix(pattern, `\`)
	case patterned[name] && len(arguments) == 2:
		pattern, ok := r.text(arguments[1])
		if !ok {
			return false
		}
		_, err := regexp.Compile(pattern)
		return err == nil
	case name == "substr" || name == "left" || name == "right":
		for _, a := range arguments[1:] {
			if v, ok := a.(*googlesql.ResolvedLiteral); !ok || !r.literal(v).tame || r.negative(v) {
				return false
			}
		}
		return true
	}
	return false
}

func (r *reader) text(n googlesql.ResolvedExprNode) (string, bool) {
	l, ok := n.(*googlesql.ResolvedLiteral)
	if !ok {
		return "", false
	}
	v := must(r, l.Value)
	if r.err != nil || must(r, v.TypeKind) != googlesql.TypeKindTypeString || must(r, v.IsNull) {
		return "", false
	}
	return must(r, v.StringValue), true
}

func (r *reader) negative(n *googlesql.ResolvedLiteral) bool {
	v := must(r, n.Value)
	return r.err == nil && must(r, v.TypeKind) == googlesql.TypeKindTypeInt64 && must(r, v.Int64Value) < 0
}
