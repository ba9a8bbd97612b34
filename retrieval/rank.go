package retrieval

import (
	"cmp"
	"math"
	"slices"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// Ranking is everything that the question speaks of, best first. Scores compare within one list only.
type Ranking struct {
	Databases     []ScoredDatabase
	Tables        []Scored
	Columns       []Scored
	Metrics       []Scored
	Relationships []Scored
	Queries       []Scored
	// Coverage is the share of the question's weight, from 0 to 1, that the best database accounts for.
	Coverage float64
}

// ScoredDatabase is a database with the evidence for it.
type ScoredDatabase struct {
	Name  string
	Score float64
}

// Scored is an object with its score and what speaks for it, strongest first. Own is the part of the score that the
// object has by itself, without its table and database.
type Scored struct {
	ID         uint32
	Score, Own float64
	Evidence   []Evidence
}

// Evidence is a word of the question and where the catalog says it.
type Evidence struct {
	Said  string
	Where Field
	// By is the object that the word was found in: the scored one, or one that speaks for it.
	By uint32
	// Score is what the word contributes.
	Score float64
}

// The weights of the evidence sums. They were chosen on the training sets (see eval's summary).
const (
	ownTableWeight     = 2.0 // a word in a table's own name or description, against one in a column
	metricWeight       = 1.0 // a word in a metric, as evidence for its tables
	relationshipWeight = 0.4 // likewise of a relationship
	queryWeight        = 0.7 // likewise of a past query
	databaseForTable   = 0.5 // share of its database's evidence that a table adds to its own
	tableForColumn     = 0.5
	databaseForColumn  = 0.6
	keyPrior           = 0.5 // what a key is worth by itself: joins need it, and no question names it
	compoundWeight     = 0.2 // two words that the catalog writes as one
)

// Rank scores all that the view lets be queried against the question.
func Rank(question string, x Index, v acl.View) Ranking {
	s := v.Snapshot()
	if s == nil {
		return Ranking{}
	}
	terms, compounds := QuestionTerms(question)
	all := slices.Concat(terms, compounds)
	if len(all) == 0 {
		return Ranking{}
	}
	worth := func(i int) float64 {
		if i >= len(terms) {
			return compoundWeight
		}
		return 1
	}
	found := map[catalog.Kind][][]Hit{}
	for _, k := range catalog.Kinds {
		found[k] = x.Match(k, all, v)
	}

	// Evidence for tables: per term the strongest hit in the table, its columns, or what names it.
	tables := map[uint32][]Evidence{}
	note := func(table uint32, term int, e Evidence) {
		row := tables[table]
		if row == nil {
			row = make([]Evidence, len(all))
			tables[table] = row
		}
		if e.Score > row[term].Score {
			row[term] = e
		}
	}
	for i := range all {
		for _, h := range found[catalog.KindTable][i] {
			note(h.ID, i, Evidence{all[i].Said, h.Where, h.ID, ownTableWeight * h.Weight})
		}
		for _, h := range found[catalog.KindColumn][i] {
			note(s.TableOf(h.ID), i, Evidence{all[i].Said, h.Where, h.ID, h.Weight})
		}
		for _, by := range []struct {
			kind   catalog.Kind
			weight float64
		}{{catalog.KindMetric, metricWeight}, {catalog.KindRelationship, relationshipWeight}, {catalog.KindQuery, queryWeight}} {
			for _, h := range found[by.kind][i] {
				for _, table := range tablesOf(s, s.Object(h.ID)) {
					note(table, i, Evidence{all[i].Said, h.Where, h.ID, by.weight * h.Weight})
				}
			}
		}
	}
	touched := make([]uint32, 0, len(tables))
	for id := range tables {
		touched = append(touched, id)
	}
	slices.Sort(touched)

	visible := count(v, s.OfKind(catalog.KindTable))
	inTables := make([]float64, len(all))
	for _, id := range touched {
		for i, e := range tables[id] {
			if e.Score > 0 {
				inTables[i]++
			}
		}
	}
	databases := map[string][]float64{}
	var rare, total float64
	tableSum := map[uint32]float64{}
	for _, id := range touched {
		db := s.Object(id).Ref.Database
		best := databases[db]
		if best == nil {
			best = make([]float64, len(all))
			databases[db] = best
		}
		for i := range tables[id] {
			e := &tables[id][i]
			e.Score *= worth(i) * idf(visible, inTables[i])
			tableSum[id] += e.Score
			best[i] = math.Max(best[i], e.Score)
		}
	}
	var r Ranking
	databaseSum := map[string]float64{}
	for _, d := range s.Databases() {
		if best, ok := databases[d.Name]; ok {
			for _, b := range best {
				databaseSum[d.Name] += b
			}
			r.Databases = append(r.Databases, ScoredDatabase{d.Name, databaseSum[d.Name]})
		}
	}
	slices.SortStableFunc(r.Databases, func(a, b ScoredDatabase) int { return cmp.Compare(b.Score, a.Score) })
	for i := range terms {
		w := idf(visible, inTables[i])
		total += w
		if len(r.Databases) > 0 && databases[r.Databases[0].Name][i] > 0 {
			rare += w
		}
	}
	if total > 0 {
		r.Coverage = rare / total
	}
	for _, id := range touched {
		r.Tables = append(r.Tables, Scored{id, tableSum[id] + databaseForTable*databaseSum[s.Object(id).Ref.Database], tableSum[id], strongest(tables[id])})
	}

	own := func(k catalog.Kind) []Scored {
		n := count(v, s.OfKind(k))
		rows := map[uint32][]Evidence{}
		for i, hits := range found[k] {
			w := worth(i) * idf(n, float64(len(hits)))
			for _, h := range hits {
				rows[h.ID] = append(rows[h.ID], Evidence{all[i].Said, h.Where, h.ID, w * h.Weight})
			}
		}
		out := make([]Scored, 0, len(rows))
		for id, evidence := range rows {
			sum := 0.0
			for _, e := range evidence {
				sum += e.Score
			}
			out = append(out, Scored{id, sum, sum, strongest(evidence)})
		}
		return out
	}
	r.Columns = own(catalog.KindColumn)
	// A column that no word names can still be meant: it stands with what its table and database bring.
	named := map[uint32]bool{}
	for _, c := range r.Columns {
		named[c.ID] = true
	}
	for _, t := range touched {
		for id := s.ColumnIDs(t).From; id < s.ColumnIDs(t).To; id++ {
			if !named[id] && v.Queryable(id) {
				r.Columns = append(r.Columns, Scored{ID: id})
			}
		}
	}
	for i := range r.Columns {
		c := &r.Columns[i]
		o := s.Object(c.ID)
		c.Score += tableForColumn*tableSum[s.TableOf(c.ID)] + databaseForColumn*databaseSum[o.Ref.Database]
		if o.Column.PrimaryKey || hasVisibleKey(s, v, o) {
			c.Score += keyPrior
		}
	}
	r.Metrics, r.Relationships, r.Queries = own(catalog.KindMetric), own(catalog.KindRelationship), own(catalog.KindQuery)
	for _, list := range [][]Scored{r.Tables, r.Columns, r.Metrics, r.Relationships, r.Queries} {
		slices.SortFunc(list, func(a, b Scored) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	}
	return r
}

// idf is the inverse document frequency of BM25 (Robertson and Zaragoza 2009, eq. 3.3), kept positive.
func idf(n, df float64) float64 { return math.Log(1 + (n-df+0.5)/(df+0.5)) }

// hasVisibleKey reports whether a column points at, as far as the principal knows, another one.
func hasVisibleKey(s *catalog.Snapshot, v acl.View, o *catalog.Object) bool {
	return slices.ContainsFunc(o.Column.ForeignKeys, func(r catalog.Ref) bool {
		id, ok := s.ID(r)
		return ok && v.Queryable(id)
	})
}

func count(v acl.View, r catalog.Range) float64 {
	n := 0
	for id := r.From; id < r.To; id++ {
		if v.Queryable(id) {
			n++
		}
	}
	return float64(n)
}

// tablesOf lists the tables that a metric, relationship or past query speaks for.
func tablesOf(s *catalog.Snapshot, o *catalog.Object) []uint32 {
	var refs []catalog.Ref
	switch {
	case o.Metric != nil:
		refs = o.Metric.Sources
	case o.Query != nil:
		refs = o.Query.Tables
	case o.Relationship != nil:
		refs = []catalog.Ref{o.Relationship.From[0], o.Relationship.To[0]}
	}
	var out []uint32
	for _, r := range refs {
		if id, ok := s.ID(r.TableRef()); ok {
			out = append(out, id)
		}
	}
	return out
}

func strongest(evidence []Evidence) []Evidence {
	out := slices.DeleteFunc(slices.Clone(evidence), func(e Evidence) bool { return e.Score <= 0 })
	slices.SortStableFunc(out, func(a, b Evidence) int { return cmp.Compare(b.Score, a.Score) })
	return out
}
