package generate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/templates"
)

// statement is a SELECT in the making.
type statement struct {
	*question
	dialect catalog.Dialect
	tree    *tree
	// far holds, by table, the filters on tables whose rows the metric's rows meet several times.
	far   map[uint32][]filter
	order []uint32 // the tables of far in order of the question
}

// write turns what was read into SQL.
func (q *question) write() (api.Draft, error) {
	database := q.snapshot.Object(q.sources[0]).Ref.Database
	d, _ := q.snapshot.Database(database)
	w := &statement{question: q, dialect: d.Dialect, far: map[uint32][]filter{}}
	switch w.dialect {
	case catalog.SQLite, catalog.MySQL, catalog.Postgres:
	default:
		return api.Draft{}, abstain("metrics of databases of the dialect %s are not compiled", w.dialect)
	}
	if err := w.join(); err != nil {
		return api.Draft{}, err
	}
	sql, err := w.sql()
	if err != nil {
		return api.Draft{}, err
	}
	return api.Draft{SQL: sql, Database: database}, nil
}

// join plants the tree of all tables that the statement reads once for each row of the metric.
func (w *statement) join() error {
	var ok bool
	if w.tree, ok = plant(w.router); !ok {
		return abstain("the sources of the metric %s are not tied by validated joins that leave the rows of one of them single", w.metric.Ref.Name)
	}
	reach := func(column uint32, required bool) error {
		if !w.tree.graft(w.routeTo(column).joins, required) {
			return abstain("%s would be joined in two ways", w.snapshot.Object(column).Ref.TableRef())
		}
		return nil
	}
	for _, d := range w.dimensions {
		if d.grain == "" {
			if err := reach(d.column, false); err != nil {
				return err
			}
		}
	}
	for _, f := range w.filters {
		if w.routeTo(f.column).state == plain {
			if err := reach(f.column, true); err != nil {
				return err
			}
			continue
		}
		table := w.snapshot.TableOf(f.column)
		if w.far[table] == nil {
			w.order = append(w.order, table)
		}
		w.far[table] = append(w.far[table], f)
	}
	if w.dated() {
		time, _ := w.snapshot.ID(w.metric.Metric.Time)
		if state := w.routeTo(time).state; state != plain {
			return abstain("the time of the metric %s, %s, does not join to it without repeating rows", w.metric.Ref.Name, w.name(time))
		}
		if err := reach(time, w.period != period{}); err != nil {
			return err
		}
	}
	tables := w.tree.tables()
	if a, b, found := namesakes(w.snapshot, tables); found {
		return abstain("both %s and %s are needed, and their names would be mixed up", a, b)
	}
	home := w.snapshot.Object(tables[0]).Ref.Database
	for _, t := range tables {
		// Databases of one MySQL server can be joined.
		if r := w.snapshot.Object(t).Ref; r.Database != home && w.dialect != catalog.MySQL {
			return abstain("%s lies in another database than the metric %s", r, w.metric.Ref.Name)
		}
	}
	return nil
}

// dated reports whether the statement reads the metric's time.
func (w *statement) dated() bool {
	return w.period != period{} || slices.ContainsFunc(w.dimensions, func(d dimension) bool { return d.grain != "" })
}

func (w *statement) sql() (string, error) {
	names, err := w.outputs()
	if err != nil {
		return "", err
	}
	var selected, groups []string
	for i, d := range w.dimensions {
		expr, err := w.dimension(d)
		if err != nil {
			return "", err
		}
		selected, groups = append(selected, expr+" AS "+names[i]), append(groups, expr)
	}
	binder := newBinder(w.dialect, w.snapshot, w.sources, w.view.Queryable)
	formula, err := binder.bind(w.metric.Metric.Formula)
	if err != nil {
		return "", abstain("the formula of the metric %s cannot be used: %v", w.metric.Ref.Name, err)
	}
	measure := names[len(names)-1]
	selected = append(selected, formula+" AS "+measure)

	var b strings.Builder
	root, err := w.table(w.tree.root)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "SELECT %s\nFROM %s", strings.Join(selected, ", "), root)
	for _, j := range w.tree.joins {
		table, err := w.table(j.To)
		if err != nil {
			return "", err
		}
		on, err := w.on(j.Relationship)
		if err != nil {
			return "", err
		}
		kind := "LEFT JOIN"
		if j.required {
			kind = "JOIN"
		}
		fmt.Fprintf(&b, "\n%s %s ON %s", kind, table, on)
	}
	where, err := w.where(binder, groups)
	if err != nil {
		return "", err
	}
	if len(where) > 0 {
		b.WriteString("\nWHERE " + strings.Join(where, "\n  AND "))
	}
	if len(groups) > 0 {
		b.WriteString("\nGROUP BY " + strings.Join(groups, ", "))
	}
	order := strings.Join(names[:len(groups)], ", ")
	switch {
	case w.ranking != nil:
		direction := "DESC"
		if w.ranking.lowest {
			direction = "ASC"
		}
		fmt.Fprintf(&b, "\nHAVING (%s) IS NOT NULL\nORDER BY %s %s, %s\nLIMIT %d", formula, measure, direction, order, w.ranking.rows)
	case len(groups) > 0:
		b.WriteString("\nORDER BY " + order)
	}
	return b.String(), nil
}

// outputs names the columns of the result: dimensions after their columns, with the table in front where that is
// needed, and the metric last.
func (w *statement) outputs() ([]string, error) {
	var short, long []string
	for _, d := range w.dimensions {
		if d.grain != "" {
			short, long = append(short, string(d.grain)), append(long, string(d.grain))
			continue
		}
		r := w.snapshot.Object(d.column).Ref
		short, long = append(short, r.Column), append(long, r.Table+"_"+r.Column)
	}
	short, long = append(short, w.metric.Ref.Name), append(long, w.metric.Ref.Name)
	repeats := func(names []string, i int) bool {
		return slices.ContainsFunc(slices.Delete(slices.Clone(names), i, i+1), func(n string) bool { return strings.EqualFold(n, names[i]) })
	}
	names := slices.Clone(short)
	for i := range names {
		if repeats(short, i) {
			names[i] = long[i]
		}
	}
	for i := range names {
		if repeats(names, i) {
			return nil, abstain("two columns of the result would both be called %s", names[i])
		}
	}
	for i := range names {
		quoted, err := w.quote(names[i])
		if err != nil {
			return nil, err
		}
		names[i] = quoted
	}
	return names, nil
}

func (w *statement) quote(name string) (string, error) {
	quoted, err := templates.Quote(w.dialect, name)
	if err != nil {
		return "", abstain("a name cannot be written in SQL: %v", err)
	}
	return quoted, nil
}

func (w *statement) table(id uint32) (string, error) {
	name, err := templates.QualifiedName(w.dialect, w.snapshot.Object(id).Ref)
	if err != nil {
		return "", abstain("a name cannot be written in SQL: %v", err)
	}
	return name, nil
}

// column writes a column behind the plain name of its table, which is what formulas call it by.
func (w *statement) column(id uint32) (string, error) {
	r := w.snapshot.Object(id).Ref
	table, err := w.quote(r.Table)
	if err != nil {
		return "", err
	}
	column, err := w.quote(r.Column)
	return table + "." + column, err
}

// on writes the condition of a join.
func (w *statement) on(relationship uint32) (string, error) {
	o := w.snapshot.Object(relationship)
	r := o.Relationship
	if r.JoinSQL != "" {
		from, _ := w.snapshot.ID(r.From[0].TableRef())
		to, _ := w.snapshot.ID(r.To[0].TableRef())
		sql, err := newBinder(w.dialect, w.snapshot, []uint32{from, to}, w.view.Queryable).bind(r.JoinSQL)
		if err != nil {
			return "", abstain("the join %s cannot be used: %v", o.Ref.Name, err)
		}
		return "(" + sql + ")", nil
	}
	var pairs []string
	for i := range r.From {
		var ends [2]string
		for e, ref := range []catalog.Ref{r.From[i], r.To[i]} {
			id, _ := w.snapshot.ID(ref)
			var err error
			if ends[e], err = w.column(id); err != nil {
				return "", err
			}
		}
		pairs = append(pairs, ends[0]+" = "+ends[1])
	}
	return strings.Join(pairs, " AND "), nil
}

// where lists the conditions: the metric's own, the question's, and that what is ranked has a name.
func (w *statement) where(binder *binder, groups []string) ([]string, error) {
	var out []string
	for _, f := range w.metric.Metric.Filters {
		sql, err := binder.bind(f)
		if err != nil {
			return nil, abstain("a filter of the metric %s cannot be used: %v", w.metric.Ref.Name, err)
		}
		out = append(out, "("+sql+")")
	}
	if w.period != (period{}) {
		sql, err := w.during()
		if err != nil {
			return nil, err
		}
		out = append(out, sql)
	}
	for _, f := range w.filters {
		if w.routeTo(f.column).state == plain {
			sql, err := w.filter(f)
			if err != nil {
				return nil, err
			}
			out = append(out, sql)
		}
	}
	for _, table := range w.order {
		sql, err := w.exists(table)
		if err != nil {
			return nil, err
		}
		out = append(out, sql)
	}
	if w.ranking != nil {
		for _, g := range groups {
			out = append(out, g+" IS NOT NULL")
		}
	}
	return out, nil
}

func (w *statement) filter(f filter) (string, error) {
	column, err := w.column(f.column)
	if err != nil {
		return "", err
	}
	var literals []string
	for _, v := range f.values {
		text, ok := w.literal(f.column, v)
		if !ok {
			return "", abstain("%q cannot be a value of %s, which has the type %s", v.text, w.name(f.column), w.snapshot.Object(f.column).Column.Type)
		}
		literals = append(literals, text)
	}
	if len(literals) == 1 {
		return column + " = " + literals[0], nil
	}
	return column + " IN (" + strings.Join(literals, ", ") + ")", nil
}

// exists keeps the rows of the metric that meet at least one row of a table for which the filters on it hold.
func (w *statement) exists(table uint32) (string, error) {
	joins := w.routeTo(w.far[table][0].column).joins
	met := []uint32{joins[0].From}
	var from string
	var conditions []string
	for i, j := range joins {
		met = append(met, j.To)
		name, err := w.table(j.To)
		if err != nil {
			return "", err
		}
		on, err := w.on(j.Relationship)
		if err != nil {
			return "", err
		}
		if i == 0 {
			from, conditions = name, append(conditions, on)
		} else {
			from += " JOIN " + name + " ON " + on
		}
	}
	if a, b, found := namesakes(w.snapshot, met); found {
		return "", abstain("both %s and %s are needed, and their names would be mixed up", a, b)
	}
	for _, f := range w.far[table] {
		sql, err := w.filter(f)
		if err != nil {
			return "", err
		}
		conditions = append(conditions, sql)
	}
	return "EXISTS (SELECT 1 FROM " + from + " WHERE " + strings.Join(conditions, " AND ") + ")", nil
}

// ---- types

// class is what a column's type holds.
type class uint8

const (
	classOther class = iota
	classText
	classNumber
	classDate // days without a time of day
	classMoment
	classBoolean
)

var typeNames = map[class]map[string]bool{
	classText: set("char character varchar nvarchar nchar text tinytext mediumtext longtext clob enum citext bpchar"),
	classNumber: set(`int integer bigint smallint tinyint mediumint int2 int4 int8 serial bigserial numeric decimal dec number real
		double float float4 float8`),
	classDate:    set("date"),
	classMoment:  set("datetime timestamp timestamptz"),
	classBoolean: set("bool boolean"),
}

// classOf reads a declared type by its first word.
func classOf(column *catalog.Object) class {
	declared := strings.ToLower(column.Column.Type)
	first := strings.FieldsFunc(declared, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(first) == 0 || strings.HasSuffix(declared, "[]") {
		return classOther
	}
	for c, names := range typeNames {
		if names[first[0]] {
			return c
		}
	}
	return classOther
}

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// literal writes a value of a column in SQL; ok is false if the column can hold no such value, as far as one can tell.
func (w *statement) literal(column uint32, v literal) (sql string, ok bool) {
	if strings.ContainsFunc(v.text, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }) {
		return "", false
	}
	switch classOf(w.snapshot.Object(column)) {
	case classText:
		return w.text(v.text), true
	case classNumber:
		return v.text, decimal.MatchString(v.text)
	case classDate:
		_, err := time.Parse(time.DateOnly, v.text)
		return w.text(v.text), err == nil
	case classBoolean:
		yes, err := strconv.ParseBool(strings.ToLower(v.text))
		switch {
		case w.dialect == catalog.Postgres:
			return strings.ToUpper(strconv.FormatBool(yes)), err == nil
		case yes:
			return "1", err == nil
		}
		return "0", err == nil
	case classOther:
		// A type that is unknown here, such as an enumeration, takes a text if the column is known to hold it.
		return w.text(v.text), v.sample && !decimal.MatchString(v.text)
	}
	return "", false
}

// text writes a text literal.
func (w *statement) text(s string) string {
	if w.dialect == catalog.MySQL {
		s = strings.ReplaceAll(s, `\`, `\\`)
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// ---- time

var isoStart = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}.*)?$`)

// dateColumn writes the metric's time column, if it surely holds dates that compare with ISO text.
func (w *statement) dateColumn() (string, error) {
	id, _ := w.snapshot.ID(w.metric.Metric.Time)
	o, _ := w.view.Object(id)
	fits := false
	switch c := classOf(&o); {
	case c == classDate, c == classMoment:
		fits = true
	case c == classText:
		// SQLite has no type for dates, and the metric's author says that this is one.
		fits = w.dialect == catalog.SQLite || w.dialect == catalog.MySQL && len(o.Column.Samples) > 0
	}
	// Only SQLite and texts can hold anything else than the type says.
	strange := slices.ContainsFunc(o.Column.Samples, func(s string) bool { return !isoStart.MatchString(s) })
	if !fits || strange && (w.dialect == catalog.SQLite || classOf(&o) == classText) {
		return "", abstain("it is not clear how %s writes dates", w.name(id))
	}
	return w.column(id)
}

// during writes the period as a half-open range, which holds for dates with and without a time of day.
func (w *statement) during() (string, error) {
	column, err := w.dateColumn()
	if err != nil {
		return "", err
	}
	var ends []string
	if !w.period.from.IsZero() {
		ends = append(ends, column+" >= '"+w.period.from.Format(time.DateOnly)+"'")
	}
	if !w.period.to.IsZero() {
		ends = append(ends, column+" < '"+w.period.to.Format(time.DateOnly)+"'")
	}
	return strings.Join(ends, " AND "), nil
}

// dimension writes what is grouped by. Units of the calendar read 2025, 2025-Q3, 2025-03, 2025-W09 (as ISO 8601
// counts weeks) and 2025-03-01, so that their order is that of time.
func (w *statement) dimension(d dimension) (string, error) {
	if d.grain == "" {
		return w.column(d.column)
	}
	c, err := w.dateColumn()
	if err != nil {
		return "", err
	}
	formats := map[catalog.Dialect]map[grain]string{
		catalog.SQLite: {
			byYear: "strftime('%Y', {})", byMonth: "strftime('%Y-%m', {})", byWeek: "strftime('%G-W%V', {})", byDay: "strftime('%Y-%m-%d', {})",
			byQuarter: "CASE (strftime('%m', {}) + 2) / 3 WHEN 1 THEN strftime('%Y-Q1', {}) WHEN 2 THEN strftime('%Y-Q2', {})" +
				" WHEN 3 THEN strftime('%Y-Q3', {}) WHEN 4 THEN strftime('%Y-Q4', {}) END",
		},
		catalog.MySQL: {
			byYear: "DATE_FORMAT({}, '%Y')", byMonth: "DATE_FORMAT({}, '%Y-%m')", byWeek: "DATE_FORMAT({}, '%x-W%v')",
			byDay: "DATE_FORMAT({}, '%Y-%m-%d')", byQuarter: "CONCAT(DATE_FORMAT({}, '%Y'), '-Q', QUARTER({}))",
		},
		catalog.Postgres: {
			byYear: "to_char({}, 'YYYY')", byMonth: "to_char({}, 'YYYY-MM')", byWeek: `to_char({}, 'IYYY-"W"IW')`,
			byDay: "to_char({}, 'YYYY-MM-DD')", byQuarter: `to_char({}, 'YYYY-"Q"Q')`,
		},
	}
	return strings.ReplaceAll(formats[w.dialect][d.grain], "{}", c), nil
}
