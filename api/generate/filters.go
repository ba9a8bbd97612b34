package generate

import (
	"slices"
	"strings"
)

func (q *question) readFilters() error {
	for i := 0; i < len(q.words); i++ {
		if !q.free(i, i+1) {
			continue
		}
		if done, err := q.readStated(i); err != nil || done {
			if err != nil {
				return err
			}
			continue
		}
		if err := q.readValues(i); err != nil {
			return err
		}
	}
	return nil
}

// readStated reads "COLUMN is VALUE" at i, where the value need not be known.
func (q *question) readStated(i int) (bool, error) {
	senses, n := q.phraseAt(i)
	at := i + n
	if n == 0 || !slices.Contains([]string{"is", "are", "=", "equals", "equal", ":"}, q.low(at)) {
		return false, nil
	}
	if at++; q.low(at-1) == "equal" && q.low(at) == "to" {
		at++
	}
	if list, end := q.valuesAt(at, columnsOf(senses)); end > at {
		return true, q.addValues(i, end, senses, list)
	}
	// What is not known is a value only of a column that is named, not of a table.
	senses = slices.DeleteFunc(senses, func(s sense) bool { return s.fit == fitTable })
	if len(senses) == 0 || !q.free(at, at+1) {
		return false, nil
	}
	w, end := q.words[at], at+1
	switch {
	case !w.quoted && (len(w.terms) == 0 || harmless[w.low] || w.low == "not" || w.low == "no"):
		return false, nil
	case !w.quoted && end < len(q.words) && q.free(end, end+1) && !ends[q.low(end)]:
		return true, abstain("it is not clear where the value of %q ends; put it in quotes", q.said(i, i+n))
	}
	column, err := q.choose(q.said(i, i+n), senses, true)
	if err != nil {
		return true, err
	}
	if o, _ := q.view.Object(column); o.Column.Distinct != nil && *o.Column.Distinct <= int64(len(o.Column.Samples)) {
		return true, abstain("%s has no value %q", q.name(column), w.said)
	}
	q.take(i, end)
	return true, q.addFilter(column, []literal{{text: w.said}})
}

// ends are the words before which an unquoted value must have ended.
var ends = set(", and by per for in where from of on at with since before after between during over the last this each every")

// values is one value of a question, as columns hold it.
type values []value

// valuesAt reads known values at i that all stand in one of the columns, or in any visible column if columns is nil:
// "Germany", "EMEA and APAC". It returns for each value where it stands, and the end of the list.
func (q *question) valuesAt(i int, columns []uint32) (list []values, end int) {
	end = i
	for at := i; ; {
		found, n := q.valueAt(at, columns)
		if n == 0 {
			return list, end
		}
		list, end = append(list, found), at+n
		columns = nil
		for _, v := range found {
			columns = append(columns, v.column)
		}
		at = end
		for at < len(q.words) && (q.low(at) == "," || q.low(at) == "and" || q.low(at) == "or") {
			at++
		}
		if at == end {
			return list, end
		}
	}
}

// valueAt reads the longest known value at i. A word of grammar or a bare number is one only where columns are given.
func (q *question) valueAt(i int, columns []uint32) (values, int) {
	for j := min(len(q.words), i+longestValue); j > i; j-- {
		if !q.free(i, j) {
			continue
		}
		var keys []string
		for _, w := range q.words[i:j] {
			keys = append(keys, w.key)
		}
		only := q.words[i]
		if j == i+1 && !only.quoted && columns == nil && (grammatical(only.low) || number(only.low) >= 0) {
			return nil, 0
		}
		found := slices.DeleteFunc(slices.Clone(q.values[strings.Join(keys, " ")]), func(v value) bool {
			return !q.view.Queryable(v.column) || !q.view.Raw(v.column) || columns != nil && !slices.Contains(columns, v.column)
		})
		if len(found) > 0 {
			return found, j - i
		}
	}
	return nil, 0
}

// grammatical words are never values by themselves.
func grammatical(low string) bool {
	_, ranks := ranks[low]
	_, unit := grains[low]
	return low == "" || harmless[low] || ends[low] || totals[low] || counts[low] || ranks || unit || slices.Contains([]string{"not", "no", "or", "to", "than"}, low)
}

// readValues reads known values at i, with the name of their column before or behind them if it stands there.
func (q *question) readValues(i int) error {
	// "channel web": the name first.
	if senses, n := q.phraseAt(i); n > 0 {
		if list, end := q.valuesAt(i+n, columnsOf(senses)); end > i+n {
			return q.addValues(i, end, senses, list)
		}
	}
	list, end := q.valuesAt(i, nil)
	if end == i {
		return nil
	}
	held := held(list)
	if senses, n := q.phraseAt(end); n > 0 { // "the Marketplace channel"
		if len(holding(senses, held)) > 0 {
			return q.addValues(i, end+n, senses, list)
		}
	}
	start := i
	if q.low(start-1) == "the" {
		start--
	}
	if senses, n := q.phraseBefore(start); n > 0 { // "channel the Marketplace"
		if len(holding(senses, held)) > 0 {
			return q.addValues(start-n, end, senses, list)
		}
	}
	column, err := q.prefer(q.said(i, end), q.withRivals(held))
	if err != nil {
		return err
	}
	return q.addValues(i, end, []sense{{column: column}}, list)
}

// held returns the columns that hold every one of the values.
func held(list []values) []uint32 {
	var out []uint32
	for _, v := range list[len(list)-1] {
		if !slices.Contains(out, v.column) {
			out = append(out, v.column)
		}
	}
	return out
}

func holding(senses []sense, columns []uint32) []sense {
	return slices.DeleteFunc(slices.Clone(senses), func(s sense) bool { return !slices.Contains(columns, s.column) })
}

// prefer settles on one of the columns that hold a value whose column the question does not name: one that it is
// broken down by, or else one of the metric's dimensions, or else the only one that joins without repeating rows.
func (q *question) prefer(said string, columns []uint32) (uint32, error) {
	asked := map[uint32]bool{}
	for _, d := range q.dimensions {
		asked[d.column] = d.grain == ""
	}
	for _, preferred := range []map[uint32]bool{asked, q.declared()} {
		var left []uint32
		for _, c := range columns {
			if preferred[c] && q.routeTo(c).state == plain {
				left = append(left, c)
			}
		}
		switch {
		case len(left) == 1:
			return left[0], nil
		case len(left) > 1:
			return 0, abstain("%q can be a value of %s; say which", said, q.list(left))
		}
	}
	if len(columns) > mostColumns {
		return 0, abstain("%q is a value of more than %d columns; say which you mean", said, mostColumns)
	}
	var near, doubtful []uint32
	for _, c := range columns {
		switch q.routeTo(c).state {
		case plain:
			if c = q.twin(c); !slices.Contains(near, c) {
				near = append(near, c)
			}
		case unclear, unverified:
			doubtful = append(doubtful, c)
		}
	}
	switch {
	case len(near) == 1 && len(doubtful) == 0:
		return near[0], nil
	case len(near)+len(doubtful) > 1:
		return 0, abstain("%q can be a value of %s; say which", said, q.list(slices.Concat(near, doubtful)))
	case len(doubtful) == 1:
		return 0, abstain("%q is a value of %s, to which no single validated join leads from the metric %s", said, q.name(doubtful[0]), q.metric.Ref.Name)
	}
	return 0, abstain("%q is a value of %s, which the metric %s meets several times or not at all; say the column's name to filter by it", said, q.list(columns), q.metric.Ref.Name)
}

// withRivals adds to columns that are known to hold a value those of the same name whose values are withheld, if they
// belong to the metric: they may well hold it too, and are the likelier ones.
func (q *question) withRivals(columns []uint32) []uint32 {
	declared := q.declared()
	out := slices.Clone(columns)
	for _, c := range columns {
		o := q.snapshot.Object(c)
		for _, terms := range names(o, o.Ref.Column) {
			for _, s := range q.columns[phrase(terms)] {
				if s.fit == fitWhole && q.view.Queryable(s.column) && q.withheld(s.column) &&
					(declared[s.column] || q.isSource(s.column)) && !slices.Contains(out, s.column) {
					out = append(out, s.column)
				}
			}
		}
	}
	return out
}

// withheld reports whether no value of a column is known, so that it may hold any.
func (q *question) withheld(column uint32) bool {
	o, _ := q.view.Object(column)
	return len(o.Column.Samples) == 0
}

// twin returns the column nearest to the metric that is equal to a column wherever the two meet, because the joins that
// lead there compare them.
func (q *question) twin(column uint32) uint32 {
	joins := q.routeTo(column).joins
	for i := len(joins) - 1; i >= 0; i-- {
		r := q.snapshot.Object(joins[i].Relationship).Relationship
		if r.JoinSQL != "" {
			break
		}
		before := column
		for k := range r.From {
			a, _ := q.snapshot.ID(r.From[k])
			b, _ := q.snapshot.ID(r.To[k])
			switch {
			case a == column && classOf(q.snapshot.Object(a)) == classOf(q.snapshot.Object(b)):
				before = b
			case b == column && classOf(q.snapshot.Object(a)) == classOf(q.snapshot.Object(b)):
				before = a
			default:
				continue
			}
			break
		}
		if before == column {
			break
		}
		column = before
	}
	return column
}

// addValues filters one of the columns by values that it holds, and takes the words from i to end. A column whose
// values are withheld may hold them too; then they are spelled as others spell them.
func (q *question) addValues(i, end int, senses []sense, list []values) error {
	said := q.said(i, end)
	either := slices.ContainsFunc(q.words[i:end], func(w word) bool { return w.low == "or" })
	held := held(list)
	senses = slices.DeleteFunc(slices.Clone(senses), func(s sense) bool {
		return !q.withheld(s.column) && !slices.Contains(held, s.column)
	})
	column, err := q.choose(said, senses, true)
	if err != nil {
		return err
	}
	var texts []literal
	for _, found := range list {
		for _, v := range found {
			l := literal{v.text, v.column == column}
			if (l.sample || !slices.Contains(held, column)) && !slices.Contains(texts, l) {
				texts = append(texts, l)
			}
		}
	}
	if len(list) > 1 && !either && q.routeTo(column).state == repeating {
		return abstain("%q can mean one of the values or all of them; write or between them if one is enough", said)
	}
	q.take(i, end)
	return q.addFilter(column, texts)
}

func (q *question) addFilter(column uint32, texts []literal) error {
	column = q.twin(column)
	if slices.ContainsFunc(q.filters, func(f filter) bool { return f.column == column }) {
		return abstain("%s is filtered twice; name all its values in one place", q.name(column))
	}
	q.filters = append(q.filters, filter{column, texts})
	return nil
}
