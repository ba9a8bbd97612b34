package tsql

import "strings"

// function says what the guard knows of a function that it allows.
type function struct {
	risk  risk
	class class // of its result
	same  bool  // the result is of the class of the first argument
	lax   bool  // the result need not be NULL where an argument is
}

// risk says what can make a function fail on a row.
type risk uint8

const (
	failing   risk = iota // some values do; the zero value
	late                  // over a group or a window, whose rows have passed the filters of their FROM
	contained             // nothing does
	measured              // only lengths and positions that are not written out
	dated                 // only what is not known to be a time
	choosing              // only arguments of different classes
)

// functionGroups lists the functions that a statement may call, by the reason why. Everything else is refused: above all
// what tells of the server, the session or the catalog (object_id, db_name, host_name, suser_sname, session_context,
// has_perms_by_name, and all with two @), reads files or other servers (openrowset, openquery), waits, changes
// something (next value for) or is a function of the database.
var functionGroups = []struct {
	reason string
	function
	names string
}{
	{"they count and rank rows", function{risk: contained, class: numeric, lax: true},
		`count count_big row_number rank dense_rank percent_rank cume_dist grouping grouping_id approx_count_distinct`},
	{"they choose among rows", function{risk: contained, same: true}, `min max lag lead first_value last_value`},
	{"they sum up a group or a window and fail where it cannot be summed up", function{risk: late, class: numeric},
		`sum avg stdev stdevp var varp ntile percentile_cont percentile_disc`},
	{"it joins the texts of a group and fails where they grow too long", function{risk: late, class: textual}, `string_agg`},

	{"they make one text of one", function{risk: contained, class: textual},
		`lower upper ltrim rtrim trim reverse soundex quotename replace`},
	{"they describe a text", function{risk: contained, class: numeric},
		`len datalength ascii unicode difference patindex`},
	{"they tell whether a text reads as something", function{risk: contained, class: numeric, lax: true},
		`isdate isnumeric isjson`},
	{"they take part of a text and fail on a negative length", function{risk: measured, class: textual},
		`substring replicate stuff space char nchar str`},
	{"it finds a text from a position on", function{risk: measured, class: numeric}, `charindex`},
	{"they join texts and read NULL as empty", function{risk: contained, class: textual, lax: true}, `concat concat_ws`},
	{"they are pure, but fail on some values", function{class: textual},
		`format translate string_escape json_value json_query json_modify`},

	{"they choose between their arguments", function{risk: choosing, same: true, lax: true}, `isnull choose greatest least`},

	// The time at which the statement began is the same for all of its rows, so it measures nothing. sysdatetime and its
	// like are not documented to be that.
	{"they tell the time, which everybody knows", function{risk: contained, class: "datetime", lax: true}, `getdate getutcdate`},
	{"they take a time apart", function{risk: dated, class: numeric}, `year month day datepart`},
	{"they name a part of a time", function{risk: dated, class: textual}, `datename`},
	{"they compute with times and fail outside the calendar", function{class: numeric}, `datediff datediff_big`},
	{"it moves a time and fails outside the calendar", function{same: true}, `dateadd`},
	{"they make times and fail outside the calendar", function{},
		`datefromparts datetimefromparts datetime2fromparts smalldatetimefromparts timefromparts eomonth datetrunc
		date_bucket switchoffset todatetimeoffset`},

	{"they are pure, but fail outside their range", function{class: numeric},
		`abs acos asin atan atn2 ceiling cos cot degrees exp floor log log10 power radians round sin sqrt square tan`},
	{"they are pure", function{risk: contained, class: numeric}, `sign pi`},
	{"chance tells nothing of anybody's rows", function{risk: contained, class: numeric, lax: true}, `rand`},
	{"chance tells nothing of anybody's rows", function{risk: contained, lax: true}, `newid`},
	{"digests are one way and of their arguments only", function{class: numeric}, `checksum binary_checksum`},
	{"digests are one way and of their arguments only", function{}, `hashbytes`},
}

// functions is functionGroups by name.
var functions = func() map[string]*function {
	m := map[string]*function{}
	for i := range functionGroups {
		for _, name := range strings.Fields(functionGroups[i].names) {
			m[name] = &functionGroups[i].function
		}
	}
	return m
}()

// aggregates are the functions of a PIVOT.
var aggregates = words(`sum avg min max count count_big stdev stdevp var varp`)

// several are the functions whose result is made of several rows.
var several = words(`count count_big row_number rank dense_rank percent_rank cume_dist grouping grouping_id
	approx_count_distinct min max lag lead first_value last_value sum avg stdev stdevp var varp ntile percentile_cont
	percentile_disc string_agg`)

// tableFunctions are those that read nothing but their arguments, with their columns.
var tableFunctions = map[string][]string{
	"string_split": {"value", "ordinal"}, "generate_series": {"value"},
}

// takesDatePart are the functions whose first argument is a word.
var takesDatePart = words(`datepart datename datediff datediff_big dateadd datetrunc date_bucket`)

// dateParts are those words, with true for the coarse ones: a difference counted in them is always small.
var dateParts = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`year yy yyyy quarter qq q month mm m dayofyear dy y day dd d week wk ww weekday dw w`) {
		m[w] = true
	}
	for _, w := range strings.Fields(`hour hh minute mi n second ss s millisecond ms microsecond mcs nanosecond ns
		tzoffset tz iso_week isowk isoww`) {
		m[w] = false
	}
	return m
}()
