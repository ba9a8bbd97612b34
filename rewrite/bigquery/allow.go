//go:build bigquery

package bigquery

import (
	"fmt"
	"strings"

	"github.com/schemagate/schemagate/acl"
)

// nodeGroups lists the kinds of nodes that a statement may be made of, by the reason why. Everything else is refused.
var nodeGroups = []struct{ reason, kinds string }{
	{"they make a query of tables and queries", `QueryStatement Query Select SelectAs SelectList SelectColumn FromClause
		TablePathExpression TableSubquery Join ParenthesizedJoin OnClause UsingClause WhereClause GroupBy
		GroupByAll GroupingItem Rollup Cube GroupingSet GroupingSetList Having Qualify OrderBy OrderingExpression NullOrder
		LimitOffset Limit SetOperation SetOperationMetadataList SetOperationMetadata SetOperationType
		SetOperationAllOrDistinct WithClause WithClauseEntry AliasedQuery`},
	{"they name and pick", `Identifier PathExpression Alias Star StarModifiers StarWithModifiers StarExceptList StarReplaceItem DotStar
		DotStarWithModifiers DotIdentifier WithOffset UnnestExpression ExpressionWithOptAlias`},
	{"they are values", `IntLiteral FloatLiteral NumericLiteral BigNumericLiteral BooleanLiteral StringLiteral
		StringLiteralComponent BytesLiteral BytesLiteralComponent NullLiteral DateOrTimeLiteral JSONLiteral
		RangeLiteral IntervalExpr ArrayConstructor StructConstructorWithParens StructConstructorWithKeyword StructConstructorArg
		ArrayElement`},
	{"they compute", `AndExpr OrExpr ConcatExpr UnaryExpression BinaryExpression BitwiseShiftExpression BetweenExpression
		InExpression InList LikeExpression AnySomeAllOp QuantifiedComparisonExpression CaseValueExpression CaseNoValueExpression
		CastExpression FormatClause ExtractExpression ExpressionSubquery FunctionCall HavingModifier`},
	{"they compute over the rows around a row", `AnalyticFunctionCall WindowClause WindowDefinition WindowSpecification
		PartitionBy WindowFrame WindowFrameExpr`},
	{"they name types", `SimpleType ArrayType StructType StructField RangeType TypeParameterList`},
}

var nodeKinds = func() map[string]bool {
	m := map[string]bool{}
	for _, g := range nodeGroups {
		for _, k := range strings.Fields(g.kinds) {
			m[k] = true
		}
	}
	return m
}()

// risk says what an error of a function can tell where the engine calls it on a row before it has asked the row filter.
type risk uint8

const (
	failing   risk = iota // fails on some values, and returns NULL for a NULL argument
	late                  // fails, but over rows that passed the filters of its own FROM
	contained             // never fails, and returns NULL for a NULL argument
	absorbing             // never fails, and makes values of NULLs
)

// functionGroups lists the functions that a statement may call, by the reason why. Everything else is refused, among it
// what tells of the session or the job (SESSION_USER, the @@ variables), runs SQL elsewhere (EXTERNAL_QUERY), calls models
// (ML.*, AI.*), needs keys (KEYS.*, AEAD.*), reads objects by name (APPENDS, VECTOR_SEARCH, GAP_FILL) or is somebody's own.
var functionGroups = []struct {
	reason string
	risk   risk
	names  string
}{
	{"they compute over the rows of a group or a window", late, `any_value array_agg array_concat_agg avg bit_and bit_or bit_xor count
		countif logical_and logical_or max min st_union_agg st_extent st_centroid_agg string_agg sum grouping corr covar_pop covar_samp stddev stddev_pop
		stddev_samp var_pop var_samp variance approx_count_distinct approx_quantiles approx_top_count approx_top_sum
		row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value percentile_cont percentile_disc
		hll_count.init hll_count.merge hll_count.merge_partial`},
	{"they choose among or describe their arguments", absorbing, `coalesce if ifnull nullif is_nan is_inf ieee_divide`},
	{"they compare, measure and fold, and return at most as much as they are given", contained, `greatest least lower upper
		length char_length character_length byte_length octet_length starts_with ends_with strpos
		reverse initcap unicode soundex array_length array_reverse
		safe_divide safe_add safe_subtract safe_multiply safe_negate safe_convert_bytes_to_string
		md5 sha1 sha256 sha512 farm_fingerprint to_hex to_base64 to_base32
		net.host net.public_suffix net.reg_domain`},
	{"they are syntax: the places of an array, the first day of a week", contained, `offset ordinal safe_offset safe_ordinal week`},
	// The time is what everybody knows and no hidden row changes; analytics need it.
	{"they tell the time", contained, `current_date current_datetime current_time current_timestamp`},
	{"chance tells nothing of anybody's rows", contained, `rand generate_uuid`},
	{"they are pure, but fail on some numbers", failing, `bit_count cosine_distance euclidean_distance abs sign ceil ceiling floor trunc cbrt atan atan2 sin cos tan tanh asinh
		acos acosh asin atanh cosh sinh exp ln log log10 sqrt pow power div mod
		round range_bucket csc sec cot csch sech coth int64 float64 bool string`},
	{"they are pure, but fail on some texts, or can outgrow what BigQuery can hold", failing, `concat trim ltrim rtrim ascii format left right substr
		substring lpad rpad repeat replace translate split instr normalize normalize_and_casefold
		chr code_points_to_string code_points_to_bytes to_code_points from_hex from_base64 from_base32 edit_distance
		regexp_contains regexp_extract regexp_extract_all regexp_instr regexp_replace regexp_substr
		parse_numeric parse_bignumeric parse_json net.ip_from_string net.ip_to_string
		net.ip_trunc net.ipv4_from_int64 net.ipv4_to_int64 net.ip_net_mask net.safe_ip_from_string`},
	{"they are pure, but fail on dates and times out of range", failing, `date datetime time timestamp date_add date_sub
		date_diff date_trunc date_bucket datetime_add datetime_sub datetime_diff datetime_trunc datetime_bucket time_add time_sub
		time_diff time_trunc timestamp_add timestamp_sub timestamp_diff timestamp_trunc timestamp_bucket timestamp_seconds
		timestamp_millis timestamp_micros unix_seconds unix_millis unix_micros unix_date date_from_unix_date format_date
		format_datetime format_time format_timestamp parse_date parse_datetime parse_time parse_timestamp last_day
		make_interval justify_days justify_hours justify_interval generate_date_array generate_timestamp_array
		range range_contains range_overlaps range_start range_end range_intersect`},
	{"they are pure, but fail on malformed JSON or paths", failing, `json_extract json_extract_scalar json_extract_array
		json_extract_string_array json_query json_query_array json_value json_value_array json_type json_array json_object json_set json_array_append
		json_array_insert json_remove json_strip_nulls json_keys lax_int64 lax_float64 lax_bool lax_string to_json to_json_string`},
	{"they are pure, but fail on some arrays", failing, `array_concat array_to_string generate_array array_first array_last
		array_slice array_includes`},
	{"they are pure, but fail on malformed shapes", failing, `st_geogpoint st_geogfromtext st_geogfromgeojson st_geogfromwkb st_astext
		st_asgeojson st_asbinary st_x st_y st_distance st_dwithin st_within st_contains st_covers st_coveredby st_intersects
		st_intersection st_union st_difference st_area st_length st_perimeter st_centroid st_buffer st_simplify st_makeline
		st_makepolygon st_disjoint st_equals st_touches st_isempty st_dimension st_numpoints st_geohash st_geogpointfromgeohash
		st_closestpoint st_boundary st_startpoint st_endpoint st_snaptogrid st_convexhull st_azimuth st_maxdistance st_npoints
		st_numgeometries st_pointn st_isring st_isclosed st_iscollection st_geometrytype st_bufferwithtolerance st_angle st_boundingbox
		st_interiorrings st_exteriorring st_lineinterpolatepoint st_linelocatepoint st_linesubstring st_hausdorffdistance
		st_intersectsbox`},
	{"they are pure, but fail on foreign sketches", failing, `hll_count.extract`},
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

// Allow refuses what is not on the lists.
func (t *tree) Allow() error { return allowed(t.query) }

// allowed refuses the first node or function of a tree that is not known to be harmless.
func allowed(root *node) error {
	var no *acl.Refusal
	root.walk(func(n *node) bool {
		if no == nil {
			no = allow(n)
		}
		return no == nil
	})
	if no != nil {
		return no
	}
	return nil
}

func allow(n *node) *acl.Refusal {
	switch n.kind {
	case "ParameterExpr":
		return notSupported(n, "query parameters are not supported", "write the value itself")
	case "SystemVariableExpr":
		return notSupported(n, "system variables are not supported", "write the query without them")
	case "TVF":
		return notSupported(n, "table functions are not supported", "read a table, or UNNEST an array")
	case "ForSystemTime":
		return notSupported(n, "FOR SYSTEM_TIME is not supported", "read the table as it is now")
	case "SampleClause":
		return notSupported(n, "TABLESAMPLE is not supported: it would draw on rows that are not yours", "use WHERE RAND() < ...")
	case "PivotClause", "UnpivotClause":
		return notSupported(n, "PIVOT and UNPIVOT are not supported", "write conditional aggregates, or UNION ALL")
	case "FromQuery":
		return notSupported(n, "pipe syntax is not supported", "write the query with SELECT first")
	case "Hint":
		return notSupported(n, "hints are not supported", "write the query without hints")
	case "Join":
		if strings.Contains(n.text, "NATURAL") {
			return notSupported(n, "NATURAL joins are not supported", "join with USING or ON")
		}
	case "FunctionCall":
		return allowFunction(n)
	case "AliasedQuery", "Alias":
		// A name in back-quotes with dots inside is read as several names; an alias is one.
		if strings.Contains(n.children[0].name, ".") {
			return notSupported(n, "an alias with a dot in it is not supported", "choose another alias")
		}
	case "TablePathExpression":
		if p := n.child("PathExpression"); p != nil && strings.Contains(strings.Join(p.path(), "."), "*") {
			return notSupported(n, "wildcard tables are not supported", "name the tables, and put UNION ALL between them")
		}
	}
	if !nodeKinds[n.kind] {
		return notSupported(n, "the statement uses a construct that is not supported", "write the query without it")
	}
	return nil
}

// functionName is the name of a called function in lower case, without the SAFE prefix.
func functionName(call *node) (name string, safe bool) {
	name = strings.ToLower(strings.Join(call.children[0].path(), "."))
	return strings.CutPrefix(name, "safe.")
}

func allowFunction(n *node) *acl.Refusal {
	name, _ := functionName(n)
	if _, ok := functions[name]; ok {
		return nil
	}
	return notSupported(n, fmt.Sprintf("the function %s is not supported", strings.Join(n.children[0].path(), ".")), "write the query without it")
}
