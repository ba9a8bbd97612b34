package postgres

// The functions that a statement may call, by what makes them safe. All are the server's own, compute from their
// arguments alone, and neither read tables, files or settings named by text, nor change, wait for or reveal anything of
// the server. Everything else is refused: above all what runs SQL given as text (query_to_xml, ts_stat, ts_rewrite,
// dblink), reads by name (nextval, pg_read_file, lo_get, to_regclass), tells the clock of the moment (clock_timestamp)
// or settings (current_setting), waits (pg_sleep), and every function that is not the server's.

// aggregates turn rows into one value; they run above the scans that they aggregate.
var aggregates = words(`count sum avg min max string_agg array_agg json_agg jsonb_agg json_object_agg jsonb_object_agg
	bool_and bool_or every bit_and bit_or bit_xor any_value
	stddev stddev_pop stddev_samp variance var_pop var_samp corr covar_pop covar_samp
	regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
	mode percentile_cont percentile_disc range_agg range_intersect_agg`)

// windows look at other rows of the result.
var windows = words(`row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value`)

// scalars compute one value from values, or a set of them.
var scalars = words(`
	lower upper initcap repeat length char_length character_length octet_length bit_length substr substring left right
	btrim ltrim rtrim replace translate reverse concat concat_ws split_part position strpos starts_with lpad rpad
	overlay md5 ascii chr to_hex format quote_ident quote_literal quote_nullable normalize is_normalized encode decode
	sha224 sha256 sha384 sha512 unistr like_escape similar_to_escape
	regexp_replace regexp_match regexp_matches regexp_split_to_array regexp_split_to_table regexp_count regexp_instr
	regexp_like regexp_substr convert_from convert_to string_to_array array_to_string string_to_table

	abs ceil ceiling floor round trunc sign sqrt cbrt exp ln log log10 power pow mod div gcd lcm factorial scale min_scale
	trim_scale degrees radians pi sin cos tan cot asin acos atan atan2 sinh cosh tanh asinh acosh atanh sind cosd tand cotd
	asind acosd atand atan2d
	width_bucket random gen_random_uuid pg_typeof get_bit get_byte bit_count num_nulls num_nonnulls

	now transaction_timestamp date_part extract date_trunc date_bin age make_date make_time make_timestamp
	make_timestamptz make_interval justify_days justify_hours justify_interval isfinite to_char to_date to_timestamp
	to_number timezone overlaps

	array_length cardinality array_position array_positions array_append array_prepend array_cat array_remove
	array_replace array_upper array_lower array_ndims array_dims array_fill trim_array unnest generate_series
	generate_subscripts

	to_json to_jsonb row_to_json array_to_json json_build_object json_build_array jsonb_build_object jsonb_build_array
	json_object jsonb_object json_array_length jsonb_array_length json_typeof jsonb_typeof json_strip_nulls
	jsonb_strip_nulls jsonb_pretty jsonb_set jsonb_insert json_extract_path json_extract_path_text jsonb_extract_path
	jsonb_extract_path_text json_array_elements json_array_elements_text jsonb_array_elements
	jsonb_array_elements_text json_each json_each_text jsonb_each jsonb_each_text json_object_keys jsonb_object_keys
	json_to_record json_to_recordset jsonb_to_record jsonb_to_recordset jsonb_path_exists jsonb_path_match
	jsonb_path_query jsonb_path_query_array jsonb_path_query_first

	to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery ts_rank ts_rank_cd ts_headline setweight
	numnode querytree tsvector_to_array array_to_tsvector strip ts_delete ts_filter

	isempty lower_inc upper_inc lower_inf upper_inf range_merge int4range int8range numrange tsrange tstzrange daterange
	multirange int4multirange int8multirange nummultirange tsmultirange tstzmultirange datemultirange
	host masklen netmask hostmask network broadcast family abbrev set_masklen inet_merge inet_same_family
	point box circle line lseg path polygon area center diameter height width radius npoints

	date int2 int4 int8 float4 float8 numeric text varchar bpchar bool`)

var functions = union(aggregates, windows, scalars)

// rowFunctions take a whole row as their one argument and mean it. Any other name over one row could be another
// spelling of row.column.
var rowFunctions = words(`count row_to_json to_json to_jsonb json_agg jsonb_agg array_agg num_nulls num_nonnulls lag lead
	first_value last_value any_value`)

// setFunctions may return several rows.
var setFunctions = words(`generate_series generate_subscripts unnest regexp_matches regexp_split_to_table string_to_table
	json_array_elements json_array_elements_text jsonb_array_elements jsonb_array_elements_text json_each json_each_text
	jsonb_each jsonb_each_text json_object_keys jsonb_object_keys json_to_recordset jsonb_to_recordset jsonb_path_query`)

// recordColumns names the columns of functions in FROM that return records; all others return one column.
var recordColumns = map[string][]string{
	"json_each": {"key", "value"}, "json_each_text": {"key", "value"},
	"jsonb_each": {"key", "value"}, "jsonb_each_text": {"key", "value"},
}

func union(sets ...map[string]bool) map[string]bool {
	out := map[string]bool{}
	for _, s := range sets {
		for w := range s {
			out[w] = true
		}
	}
	return out
}
