package generate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/catalog"
)

// question is a question on its way to a statement. Each step takes the words that it accounts for; a word that is
// left at the end is one that the statement would ignore.
type question struct {
	*lexicon
	view  acl.View
	now   time.Time
	words []word
	taken []bool

	metric     *catalog.Object
	named      []bool // by word: whether it names the metric
	sources    []uint32
	router     *router
	dimensions []dimension
	filters    []filter
	period     period
	ranking    *ranking
}

// dimension is what the metric is broken down by: a column, or the time column by a grain.
type dimension struct {
	column uint32
	grain  grain
}

// filter keeps the rows whose column has one of the values.
type filter struct {
	column uint32
	values []literal
}

// literal is a value in a question; sample says that the column is known to hold it.
type literal struct {
	text   string
	sample bool
}

// ranking keeps the first groups.
type ranking struct {
	said   string
	rows   int // 0 until known
	lowest bool
}

// The longest names and values, in words, that are looked for.
const (
	longestName  = 8
	longestValue = 16
)

// mostColumns bounds the columns that one phrase may mean.
const mostColumns = 200

func (q *question) draft() (api.Draft, error) {
	for _, step := range []func() error{
		q.readMetric, q.readRanking, q.readPeriod, q.readDimensions, q.readFilters, q.readRanked, q.readRest,
	} {
		if err := step(); err != nil {
			return api.Draft{}, err
		}
	}
	return q.write()
}

// free reports whether words from i up to j exist and are accounted for by nothing yet.
func (q *question) free(i, j int) bool {
	if i < 0 || j > len(q.words) || i >= j {
		return false
	}
	return !slices.Contains(q.taken[i:j], true)
}

func (q *question) take(i, j int) {
	for ; i < j; i++ {
		q.taken[i] = true
	}
}

// low returns the free word at i, "" if there is none.
func (q *question) low(i int) string {
	if !q.free(i, i+1) {
		return ""
	}
	return q.words[i].low
}

// said returns words as they were asked.
func (q *question) said(i, j int) string {
	var out []string
	for _, w := range q.words[i:j] {
		out = append(out, w.said)
	}
	return strings.Join(out, " ")
}

// terms returns the key under which words stand in the lexicon's names, "" if one of them can be part of no name.
func (q *question) terms(i, j int) string {
	var out []string
	for _, w := range q.words[i:j] {
		if len(w.terms) == 0 {
			return ""
		}
		out = append(out, w.terms...)
	}
	return phrase(out)
}

// name returns the object's name as the asker reads it.
func (q *question) name(id uint32) string {
	r := q.snapshot.Object(id).Ref
	if r.Kind == catalog.KindMetric {
		return r.Name
	}
	return r.String()
}

// list writes the names of objects in order.
func (q *question) list(ids []uint32) string {
	var out []string
	for _, id := range ids {
		out = append(out, q.name(id))
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) > 5 {
		out = append(out[:5], fmt.Sprintf("%d more", len(out)-5))
	}
	return strings.Join(out, ", ")
}

// readMetric finds the metric: the one with the longest name that stands in the question whole.
func (q *question) readMetric() error {
	type find struct {
		from, to, length int
		metrics          []uint32
	}
	var finds []find
	for i := range q.words {
		for j := i + 1; j <= min(len(q.words), i+longestName); j++ {
			key := q.terms(i, j)
			if key == "" {
				break
			}
			visible := slices.DeleteFunc(slices.Clone(q.metrics[key]), func(id uint32) bool { return !q.view.Queryable(id) })
			if len(visible) > 0 {
				finds = append(finds, find{i, j, strings.Count(key, " ") + 1, visible})
			}
		}
	}
	if len(finds) == 0 {
		return q.nearly()
	}
	slices.SortStableFunc(finds, func(a, b find) int { return cmp.Compare(b.length, a.length) })
	var named []uint32
	for _, f := range finds {
		if f.length == finds[0].length {
			named = append(named, f.metrics...)
		}
	}
	// A shorter name beside the longest one is a second metric, one inside of it is not.
	for _, f := range finds {
		if q.free(f.from, f.to) {
			named = append(named, f.metrics...)
			q.take(f.from, f.to)
		}
	}
	slices.Sort(named)
	if named = slices.Compact(named); len(named) > 1 {
		return abstain("the question names several metrics (%s); ask for one of them", q.list(named))
	}
	q.metric = q.snapshot.Object(named[0])
	q.named = slices.Clone(q.taken)
	for _, r := range q.metric.Metric.Sources {
		if id, ok := q.snapshot.ID(r); ok && !slices.Contains(q.sources, id) {
			q.sources = append(q.sources, id)
		}
	}
	q.router = newRouter(q.lexicon, q.view, q.sources)
	return nil
}

// nearly abstains for want of a metric, and names those of which the question says more than half.
func (q *question) nearly() error {
	said := map[string]bool{}
	for _, w := range q.words {
		for _, t := range w.terms {
			said[t] = true
		}
	}
	var near []uint32
	for _, n := range q.names {
		found := 0
		for _, t := range n.terms {
			if said[t] {
				found++
			}
		}
		if 2*found > len(n.terms) && q.view.Queryable(n.id) {
			near = append(near, n.id)
		}
	}
	if len(near) == 0 {
		return abstain("no metric is named")
	}
	return abstain("no metric is named in full; known is %s", q.list(near))
}

var ranks = map[string]bool{ // whether the lowest come first
	"top": false, "highest": false, "largest": false, "biggest": false, "greatest": false, "most": false,
	"bottom": true, "lowest": true, "smallest": true, "least": true, "fewest": true,
}

func (q *question) readRanking() error {
	for i := range q.words {
		lowest, ok := ranks[q.low(i)]
		if !ok || q.low(i-1) == "at" { // at least, at most
			continue
		}
		if q.ranking != nil {
			return abstain("%q and %q both rank; ask for one of them", q.ranking.said, q.words[i].said)
		}
		q.ranking = &ranking{said: q.words[i].said, lowest: lowest}
		q.take(i, i+1)
		q.readRows(i + 1)
		q.readRows(i - 1)
	}
	return nil
}

// readRows reads at i how many groups a ranking keeps, unless that is known. What could be a year is none.
func (q *question) readRows(i int) {
	if n, ok := count(q.low(i)); ok && year(q.low(i)) == 0 && q.ranking.rows == 0 {
		q.ranking.rows = n
		q.take(i, i+1)
	}
}

func (q *question) readPeriod() error {
	c := clock{q.now, q.low}
	found := ""
	for i := 0; i < len(q.words); i++ {
		p, n, inverted := c.span(i)
		if n == 0 {
			continue
		}
		said := q.said(i, i+n)
		before := q.before(i)
		switch {
		case q.insideValue(i, n), n == 1 && number(q.low(i)) >= 0 && slices.Contains([]string{"is", "=", "equals", ":"}, before):
			continue // a value of a column
		case before == "from":
			return abstain("%q can mean in or since; say which", "from "+said)
		case found != "":
			return abstain("the question names several times (%q and %q); ask for one of them", found, said)
		case inverted:
			return abstain("%q ends before it begins", said)
		case q.metric.Metric.Time.IsZero():
			return abstain("the metric %s has no time that %q could apply to", q.metric.Ref.Name, said)
		}
		found, q.period = said, p
		q.take(i, i+n)
		if slices.Contains([]string{"over", "during", "throughout", "within"}, before) {
			for i--; q.words[i].low != before; i-- {
			}
			q.take(i, i+1)
		}
	}
	return nil
}

// insideValue reports whether n words at i belong to a longer value, such as the name of a sale of 2025.
func (q *question) insideValue(i, n int) bool {
	for from := max(0, i+n-longestValue); from <= i; from++ {
		if _, m := q.valueAt(from, nil); m > n && from+m >= i+n {
			return true
		}
	}
	return false
}

// before returns the free word before i, over an article.
func (q *question) before(i int) string {
	if w := q.low(i - 1); w != "the" {
		return w
	}
	return q.low(i - 2)
}

// readRanked finds what a ranking ranks, unless the question has said so: the first phrase that is left. Only there does
// the singular mean one: "highest revenue by region" could also ask for all regions in order.
func (q *question) readRanked() error {
	if q.ranking == nil {
		return nil
	}
	one := false
	for i := 0; i < len(q.words) && len(q.dimensions) == 0; i++ {
		d, n, err := q.dimensionAt(i)
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		q.readRows(i - 1)
		one = !isPlural(q.words[i+n-1].low)
		q.take(i, i+n)
		q.addDimension(d)
	}
	switch {
	case len(q.dimensions) > 1:
		return abstain("%q could rank within each group or all of them; break the metric %s down by one thing", q.ranking.said, q.metric.Ref.Name)
	case len(q.dimensions) == 0:
		return abstain("%q ranks nothing; say what, as in %q", q.ranking.said, "top 5 regions by revenue")
	case q.ranking.rows == 0 && !one:
		return abstain("%q does not say how many", q.ranking.said)
	case q.ranking.rows == 0:
		q.ranking.rows = 1 // the region with the highest revenue
	}
	return nil
}

func isPlural(low string) bool {
	return strings.HasSuffix(low, "s") && !strings.HasSuffix(low, "ss") && !strings.HasSuffix(low, "us") && !strings.HasSuffix(low, "is")
}

// readRest accounts for words that add nothing, and abstains for those that are left.
func (q *question) readRest() error {
	for _, table := range q.tablesMet() {
		q.takeNames(table)
	}
	aggregation := strings.ToLower(q.metric.Metric.Aggregation)
	counted := strings.HasPrefix(aggregation, "count")
	added := counted || aggregation == "sum" || aggregation == ""
	for i := range q.words {
		w := q.low(i)
		switch {
		case !q.free(i, i+1):
		case harmless[w], added && totals[w], counted && counts[w],
			q.metric.Metric.Unit != "" && strings.EqualFold(w, q.metric.Metric.Unit):
			q.take(i, i+1)
		}
	}
	for i := range q.words {
		if !q.free(i, i+1) {
			continue
		}
		j := i + 1
		for j < len(q.words) && q.free(j, j+1) {
			j++
		}
		said := q.said(i, j)
		_, month := months[q.words[i].low]
		if month || quarterWord.MatchString(q.words[i].low) || ordinals[q.words[i].low] > 0 && q.low(i+1) == "quarter" {
			return abstain("%q needs a year", said)
		}
		return abstain("the metric %s is known, but %q is not: it names no dimension, value or time that the metric can be asked by; a value can be given as COLUMN is \"VALUE\"", q.metric.Ref.Name, said)
	}
	return nil
}

// tablesMet returns the tables that the statement is about anyway: the metric's sources, and those on the way to what
// the question names.
func (q *question) tablesMet() []uint32 {
	met := slices.Clone(q.sources)
	add := func(column uint32) {
		for _, j := range q.routeTo(column).joins {
			met = append(met, j.To)
		}
	}
	for _, d := range q.dimensions {
		if d.grain == "" {
			add(d.column)
		}
	}
	for _, f := range q.filters {
		add(f.column)
	}
	return met
}

// takeNames takes the names of a table that adds nothing to what is asked.
func (q *question) takeNames(table uint32) {
	for i := range q.words {
		for j := min(len(q.words), i+longestName); j > i; j-- {
			if q.free(i, j) && slices.Contains(q.tables[q.terms(i, j)], table) {
				q.take(i, j)
				break
			}
		}
	}
}
