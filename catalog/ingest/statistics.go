package ingest

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/schemagate/schemagate/catalog"
)

// The bounds on what is read of a table's rows.
const (
	sampleRows    = 10_000           // rows looked at
	sampleCells   = 500_000          // rows times columns looked at: a wide table gets fewer rows
	sampleValues  = 10               // values kept of a column
	sampleChars   = 100              // characters kept of a value
	sampleTimeout = 10 * time.Second // for each query

	dictionaryValues = 200     // different values that a column with a dictionary may have
	dictionaryChars  = 64      // characters that each of them may have
	dictionaryRows   = 100_000 // rows looked at for a dictionary
)

// sampleLimit is the number of rows to ask for: one more than is looked at, to learn whether that was all.
func sampleLimit(columns int) int { return min(sampleRows, sampleCells/max(columns, 1)) + 1 }

// measure fills in the statistics of stored relations. A relation that cannot be measured goes without and is
// reported to progress; a database that is gone, in the judgement of lost, ends it.
func measure(ctx context.Context, relations []*relation, progress func(string), one func(context.Context, *relation) error, lost func(context.Context, error) bool) error {
	for _, r := range relations {
		if !r.stored || len(r.columns) == 0 {
			continue
		}
		progress("looking at rows of " + r.object.Ref.String())
		err := one(ctx, r)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case lost(ctx, err):
			return fmt.Errorf("read rows of %s: %w", r.object.Ref, err)
		default:
			progress(fmt.Sprintf("no statistics for %s: %v", r.object.Ref, oneLine(err, "")))
		}
	}
	return nil
}

// sample runs a query that returns each column of r as text of at most sampleChars+1 characters, or as a number where
// the value is bytes and not text, and at most sampleLimit rows. It reports whether that was the whole table.
func sample(ctx context.Context, db *sql.DB, query string, r *relation) (whole bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	counts := make([]tally, len(r.columns))
	values, targets := make([]any, len(r.columns)), make([]any, len(r.columns))
	for i := range targets {
		counts[i].seen = map[string]*occurrence{}
		targets[i] = &values[i]
	}
	n, limit := 0, sampleLimit(len(r.columns))
	for rows.Next() {
		if n++; n == limit {
			break
		}
		if err := rows.Scan(targets...); err != nil {
			return false, err
		}
		for i, v := range values {
			counts[i].observe(v)
		}
	}
	if err := rows.Err(); err != nil {
		return false, err
	}
	whole = n < limit
	if whole {
		rows := int64(n)
		r.object.Table.Rows = &rows
	} else {
		n--
	}
	for i := range counts {
		counts[i].describe(r.columns[i].Column, n, whole)
		if r.holds[i] != holdsText || counts[i].blurred {
			continue
		}
		switch words := dictionary(slices.Collect(maps.Keys(counts[i].seen))); {
		case whole:
			r.columns[i].Column.Dictionary = words
		case words != nil:
			r.few = append(r.few, i)
		}
	}
	return whole, nil
}

// tally counts the values of a column.
type tally struct {
	nulls int
	seen  map[string]*occurrence
	order []*occurrence // as first seen
	// blurred tells that two different values may have counted as one.
	blurred bool
}

type occurrence struct {
	text  string
	count int
}

func (t *tally) observe(v any) {
	var text string
	switch v := v.(type) {
	case nil:
		t.nulls++
		return
	case []byte:
		text = string(v)
	case string:
		text = v
	default:
		t.blurred = true
		return
	}
	if len(text) > sampleChars && utf8.RuneCountInString(text) > sampleChars {
		t.blurred = true
	}
	o := t.seen[text]
	if o == nil {
		o = &occurrence{text: text}
		t.seen[text] = o
		t.order = append(t.order, o)
	}
	o.count++
}

func (t *tally) describe(c *catalog.Column, rows int, whole bool) {
	if rows > 0 {
		share := float64(t.nulls) / float64(rows)
		c.NullShare = &share
	}
	if whole && !t.blurred {
		n := int64(len(t.seen))
		c.Distinct = &n
	}
	slices.SortStableFunc(t.order, func(a, b *occurrence) int { return cmp.Compare(b.count, a.count) })
	texts := make([]string, len(t.order))
	for i, o := range t.order {
		texts[i] = o.text
	}
	c.Samples = samples(texts)
}

// samples keeps the first few different values that say something, fit to be shown.
func samples(values []string) []string {
	var out []string
	for _, v := range values {
		if len(out) == sampleValues {
			break
		}
		if v = presentable(v); v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// dictionary returns different values in order, fit to be shown, or nil if they are too many or too long.
func dictionary(values []string) []string {
	if len(values) > dictionaryValues || slices.ContainsFunc(values, func(v string) bool { return utf8.RuneCountInString(v) > dictionaryChars }) {
		return nil
	}
	var out []string
	for _, v := range values {
		if v = presentable(v); v != "" {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// completeDictionaries looks at more rows than sample did, to give dictionaries to columns that seem to have few values.
// query returns a column's different values, each cut after dictionaryChars+1 characters, among dictionaryRows rows, and
// at most dictionaryValues+1 of them. After a query that fails the rest of the relation goes without.
func completeDictionaries(ctx context.Context, db *sql.DB, r *relation, query func(column string) string, progress func(string)) {
	for _, i := range r.few {
		c := r.columns[i]
		if c.Column.Dictionary != nil || c.Column.Distinct != nil && *c.Column.Distinct > dictionaryValues {
			continue
		}
		values, err := texts(ctx, db, query(c.Ref.Column))
		if err != nil {
			progress(fmt.Sprintf("no dictionary for %s: %v", c.Ref, oneLine(err, "")))
			return
		}
		c.Column.Dictionary = dictionary(values)
	}
}

// texts runs a query of one column and leaves out what is no text.
func texts(ctx context.Context, db *sql.DB, query string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	values, err := collect(ctx, db, func(scan func(...any) error) (v sql.NullString, err error) { return v, scan(&v) }, query)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, v := range values {
		if v.Valid {
			out = append(out, v.String)
		}
	}
	return out, nil
}

// presentable is a value as one line of valid text, cut with an ellipsis.
func presentable(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
	s = strings.TrimSpace(s)
	if runes := []rune(s); len(runes) > sampleChars {
		s = string(runes[:sampleChars]) + "…"
	}
	return s
}

// countUpTo returns the number of rows that a query finds, if that is at most limit; the query must stop there.
func countUpTo(ctx context.Context, db *sql.DB, query string, limit int64) (*int64, error) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	var n int64
	if err := db.QueryRowContext(ctx, query).Scan(&n); err != nil {
		return nil, err
	}
	if n > limit {
		return nil, nil
	}
	return &n, nil
}
