package generate

import (
	"cmp"
	"slices"
)

func (q *question) readDimensions() error {
	for i := range q.words {
		w := q.low(i)
		if g, ok := rhythms[w]; ok && !q.metric.Metric.Time.IsZero() {
			q.take(i, i+1)
			q.addDimension(dimension{grain: g})
			continue
		}
		next := i + 1
		switch w {
		case "for":
			if w := q.low(i + 1); w != "each" && w != "every" {
				continue
			}
			next++
		case "by", "per", "each", "every":
		default:
			continue
		}
		if q.namesMetric(next) && w == "by" && q.ranking != nil {
			q.take(i, next)
			continue
		}
		if err := q.readDimensionList(i, next); err != nil {
			return err
		}
	}
	return nil
}

// namesMetric reports whether the metric is named at i, over words that add nothing.
func (q *question) namesMetric(i int) bool {
	for q.low(i) == "the" || totals[q.low(i)] || q.low(i) == "of" {
		i++
	}
	return i < len(q.words) && q.named[i]
}

// readDimensionList reads "region, channel and month" at i, behind the word at by.
func (q *question) readDimensionList(by, i int) error {
	for first := true; ; first = false {
		from := i
		for slices.Contains([]string{"the", "each", "every", "by", "per", "and", ","}, q.low(i)) && (!first || q.low(i) != "," && q.low(i) != "and") {
			i++
		}
		d, n, err := q.dimensionAt(i)
		if err != nil {
			return err
		}
		if n == 0 {
			if !first {
				return nil // what follows and is no dimension
			}
			what := q.said(by, min(i+1, len(q.words)))
			if !q.free(i, i+1) {
				return abstain("%q is not followed by what the metric %s could be broken down by", q.words[by].said, q.metric.Ref.Name)
			}
			return abstain("the metric %s is known, but %q names no column that joins to it without repeating rows", q.metric.Ref.Name, what)
		}
		if first {
			q.take(by, from)
		}
		q.take(from, i+n)
		q.addDimension(d)
		i += n
		if w := q.low(i); w != "and" && w != "," {
			return nil
		}
	}
}

// dimensionAt reads a grain or the longest name of a column at i.
func (q *question) dimensionAt(i int) (dimension, int, error) {
	senses, n := q.phraseAt(i)
	if g, ok := grains[q.low(i)]; ok && n <= 1 && !q.metric.Metric.Time.IsZero() {
		return dimension{grain: g}, 1, nil
	}
	if n == 0 {
		return dimension{}, 0, nil
	}
	column, err := q.choose(q.said(i, i+n), senses, false)
	return dimension{column: column}, n, err
}

func (q *question) addDimension(d dimension) {
	if !slices.Contains(q.dimensions, d) {
		q.dimensions = append(q.dimensions, d)
	}
}

// phraseAt returns the columns that the longest phrase at i can mean, and its length in words.
func (q *question) phraseAt(i int) ([]sense, int) {
	for j := min(len(q.words), i+longestName); j > i; j-- {
		if q.free(i, j) {
			if senses := q.sensesOf(i, j); len(senses) > 0 {
				return senses, j - i
			}
		}
	}
	return nil, 0
}

// phraseBefore is phraseAt for the phrase that ends at j.
func (q *question) phraseBefore(j int) ([]sense, int) {
	for i := max(0, j-longestName); i < j; i++ {
		if q.free(i, j) {
			if senses := q.sensesOf(i, j); len(senses) > 0 {
				return senses, j - i
			}
		}
	}
	return nil, 0
}

func (q *question) sensesOf(i, j int) []sense {
	if j == i+1 && harmless[q.words[i].low] {
		return nil
	}
	key := q.terms(i, j)
	if key == "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(q.columns[key]), func(s sense) bool {
		return !q.view.Queryable(s.column) || !q.view.Queryable(q.snapshot.TableOf(s.column))
	})
}

// choose settles on one of the columns that a phrase may mean: the metric's own dimensions before columns of its
// sources, before those that a join brings in without repeating rows, and names before parts of names. far admits
// columns whose join repeats rows, after all others.
func (q *question) choose(said string, senses []sense, far bool) (uint32, error) {
	declared := q.declared()
	slices.SortFunc(senses, func(a, b sense) int { return cmp.Or(cmp.Compare(a.fit, b.fit), cmp.Compare(a.column, b.column)) })
	// Later groups cost a search of the join graph for each of their tables, so they are looked at only if needed.
	groups := []func(s sense) bool{
		func(s sense) bool { return declared[s.column] },
		func(s sense) bool { return q.isSource(s.column) && s.fit <= fitInside },
		func(s sense) bool { return s.fit <= fitInside },
		func(sense) bool { return true },
	}
	for _, wanted := range []state{plain, repeating} {
		if wanted == repeating && !far {
			break
		}
		for _, member := range groups {
			var best []sense
			var doubtful uint32
			doubt := absent
			looked := 0
			for _, s := range senses {
				if !member(s) {
					continue
				}
				if len(best) > 0 && s.fit > best[0].fit {
					break
				}
				if looked++; looked > mostColumns {
					return 0, abstain("%q names more than %d columns; say which table you mean", said, mostColumns)
				}
				switch state := q.routeTo(s.column).state; state {
				case wanted:
					best = append(best, s)
				case unclear, unverified:
					doubtful, doubt = s.column, state
				}
			}
			switch {
			case len(best) == 1 && doubt == absent:
				return best[0].column, nil
			case len(best) > 0 && doubt == absent:
				return 0, abstain("%q can mean %s; say which", said, q.list(columnsOf(best)))
			case doubt == unclear:
				return 0, abstain("%q can mean %s, to which several equally short joins lead from the metric %s", said, q.name(doubtful), q.metric.Ref.Name)
			case doubt == unverified:
				return 0, abstain("%q can mean %s, but nobody has validated the joins that lead there from the metric %s", said, q.name(doubtful), q.metric.Ref.Name)
			}
		}
	}
	if far {
		return 0, abstain("the metric %s is known, but %q names no column that joins to it", q.metric.Ref.Name, said)
	}
	return 0, abstain("the metric %s is known, but %q names no column that joins to it without repeating rows", q.metric.Ref.Name, said)
}

func columnsOf(senses []sense) []uint32 {
	var out []uint32
	for _, s := range senses {
		out = append(out, s.column)
	}
	return out
}

// declared returns the dimensions that the metric's definition names.
func (q *question) declared() map[uint32]bool {
	out := map[uint32]bool{}
	for _, r := range q.metric.Metric.Dimensions {
		if id, ok := q.snapshot.ID(r); ok {
			out[id] = true
		}
	}
	return out
}

func (q *question) isSource(column uint32) bool {
	return slices.Contains(q.sources, q.snapshot.TableOf(column))
}

func (q *question) routeTo(column uint32) route { return q.router.to(q.snapshot.TableOf(column)) }
