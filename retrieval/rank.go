package retrieval

import (
	"cmp"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// Candidates is the greatest length of each list of a Ranking.
const Candidates = 100

// Ranking is what the question speaks of, best first. Scores compare within one list only.
type Ranking struct {
	Databases     []ScoredDatabase
	Tables        []Scored
	Columns       []Scored
	Metrics       []Scored
	Relationships []Scored
	Queries       []Scored
	// Coverage is how well the best database knows the question's words, on average: from 0 for a word that it does not
	// say to 1 for the name of a table.
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

// The weights of the evidence sums. They were chosen on the training sets (see eval's summary), save those of metrics
// and past queries, which no set has.
const (
	ownTableWeight     = 2.0 // a word in a table's own name or description, against one in a column
	metricWeight       = 1.0 // a word in a metric, as evidence for its tables
	relationshipWeight = 0.8 // likewise of a relationship
	queryWeight        = 0.7 // likewise of a past query
	echoWeight         = 0.1 // at most, what further places in a table that say a word add to the one that says it best
	databaseForTable   = 0.5 // share of its database's evidence that a table adds to its own
	tableForColumn     = 0.6
	databaseForColumn  = 0.8
	compoundWeight     = 0.2 // two words that the catalog writes as one
)

// Rank scores all that the view lets be queried against the question.
func Rank(question string, x Index, v acl.View) Ranking {
	s := v.Snapshot()
	if s == nil {
		return Ranking{}
	}
	return newBoard(question, x, newShape(s), v).ranking()
}

// board holds the evidence of one question. Nothing that the view hides is on it.
type board struct {
	*shape
	visible *roaring.Bitmap // what may be queried
	terms   []Term          // words, then the compounds
	worth   []float64       // by term
	hits    [len(catalog.Kinds) + 1][][]Hit
	weights [len(catalog.Kinds) + 1][]float64 // what a hit of weight 1 contributes to its own object, by kind and term

	ranked    []uint32  // the tables of databases that any evidence speaks for, in id order
	row       []int32   // by table id: 1 + its place in ranked
	marks     []mark    // a row of terms for each of ranked
	tableOwn  []float64 // the sum of each row
	databases []group   // those of ranked, best first
	groupOf   []int32   // by place in ranked: its place in databases
	columnOwn []float64 // by column, counted from the first
	coverage  float64
}

// mark is the evidence that a term gives a table.
type mark struct {
	score float64 // of the strongest
	echo  float64 // of the others, summed
	by    uint32
	where Field
}

// group is the part of ranked that lies in one database.
type group struct {
	name     string
	from, to int
	score    float64
}

func newBoard(question string, x Index, sh *shape, v acl.View) *board {
	words, compounds := QuestionTerms(question)
	b := &board{shape: sh, visible: v.Queryables(), terms: slices.Concat(words, compounds)}
	if len(b.terms) == 0 {
		return b
	}
	b.worth = make([]float64, len(b.terms))
	for i := range b.worth {
		b.worth[i] = 1
		if i >= len(words) {
			b.worth[i] = compoundWeight
		}
	}
	for _, k := range catalog.Kinds {
		b.hits[k] = x.Match(k, b.terms, v)
		n := float64(b.count(k))
		b.weights[k] = make([]float64, len(b.terms))
		for i, hits := range b.hits[k] {
			b.weights[k][i] = b.worth[i] * idf(n, float64(len(hits)))
		}
	}
	b.gather()
	b.score(len(words))
	b.columnOwn = make([]float64, b.columns.Len())
	for i, hits := range b.hits[catalog.KindColumn] {
		w := b.weights[catalog.KindColumn][i]
		for _, h := range hits {
			b.columnOwn[h.ID-b.columns.From] += w * h.Weight
		}
	}
	return b
}

// count returns the number of objects of a kind that may be queried.
func (b *board) count(k catalog.Kind) int {
	r := b.s.OfKind(k)
	return int(b.visible.CardinalityInRange(uint64(r.From), uint64(r.To)))
}

// witnesses calls yield with every hit of every term and each table that it speaks for, in order of kind and id.
func (b *board) witnesses(yield func(term int, table uint32, h Hit, weight float64)) {
	for i := range b.terms {
		for _, h := range b.hits[catalog.KindTable][i] {
			yield(i, h.ID, h, ownTableWeight)
		}
		for _, h := range b.hits[catalog.KindColumn][i] {
			yield(i, b.table(h.ID), h, 1)
		}
		for _, by := range [...]struct {
			kind   catalog.Kind
			weight float64
		}{{catalog.KindMetric, metricWeight}, {catalog.KindRelationship, relationshipWeight}, {catalog.KindQuery, queryWeight}} {
			for _, h := range b.hits[by.kind][i] {
				for _, t := range b.spokenFor(h.ID) {
					yield(i, t, h, by.weight)
				}
			}
		}
	}
}

// gather collects evidence for tables: per term the hits in the table, its columns, or what names it.
func (b *board) gather() {
	b.row = make([]int32, b.s.OfKind(catalog.KindTable).Len())
	b.witnesses(func(_ int, table uint32, _ Hit, _ float64) { b.row[table] = 1 })
	// A table that no word speaks for stands with its database: it may lie between those that are meant.
	for from := 0; from < len(b.row); {
		name, to, spoken := b.s.Object(uint32(from)).Ref.Database, from, false
		for ; to < len(b.row) && b.s.Object(uint32(to)).Ref.Database == name; to++ {
			spoken = spoken || b.row[to] != 0 && b.visible.Contains(uint32(to))
		}
		for t := from; t < to; t++ {
			b.row[t] = 0
			if spoken && b.visible.Contains(uint32(t)) {
				b.ranked = append(b.ranked, uint32(t))
				b.row[t] = int32(len(b.ranked))
			}
		}
		from = to
	}
	b.marks = make([]mark, len(b.ranked)*len(b.terms))
	b.witnesses(func(term int, table uint32, h Hit, weight float64) {
		row := int(b.row[table]) - 1
		if row < 0 {
			return
		}
		m := &b.marks[row*len(b.terms)+term]
		score := weight * h.Weight
		if score > m.score {
			*m, score = mark{score, m.echo, h.ID, h.Where}, m.score
		}
		m.echo += score
	})
}

// marksOf returns what the terms say of a table by its place in ranked.
func (b *board) marksOf(row int) []mark { return b.marks[row*len(b.terms) : (row+1)*len(b.terms)] }

// score weighs the evidence of tables by how rare a term is among tables, and sums it by table and by database.
func (b *board) score(words int) {
	in := make([]float64, len(b.terms))
	for i := range b.marks {
		if b.marks[i].score > 0 {
			in[i%len(b.terms)]++
		}
	}
	tables := float64(b.count(catalog.KindTable))
	weight := make([]float64, len(b.terms))
	for i := range weight {
		weight[i] = idf(tables, in[i])
	}
	b.tableOwn = make([]float64, len(b.ranked))
	for row, t := range b.ranked {
		if name := b.s.Object(t).Ref.Database; len(b.databases) == 0 || b.databases[len(b.databases)-1].name != name {
			b.databases = append(b.databases, group{name: name, from: row})
		}
		b.databases[len(b.databases)-1].to = row + 1
		marks := b.marksOf(row)
		for i := range marks {
			m := &marks[i]
			m.score = b.worth[i] * weight[i] * (m.score + echoWeight*m.echo/(1+m.echo))
			b.tableOwn[row] += m.score
		}
	}
	for g := range b.databases {
		d := &b.databases[g]
		best := make([]float64, len(b.terms)) // of each term
		for row := d.from; row < d.to; row++ {
			for i, m := range b.marksOf(row) {
				best[i] = max(best[i], m.score)
			}
		}
		for _, x := range best {
			d.score += x
		}
	}
	slices.SortStableFunc(b.databases, func(x, y group) int { return cmp.Compare(y.score, x.score) })
	b.groupOf = make([]int32, len(b.ranked))
	for g, d := range b.databases {
		for row := d.from; row < d.to; row++ {
			b.groupOf[row] = int32(g)
		}
	}
	if len(b.databases) == 0 || words == 0 {
		return
	}
	said := make([]float64, words) // how strongly the best database says each word, however rare it is
	for row := b.databases[0].from; row < b.databases[0].to; row++ {
		for i, m := range b.marksOf(row)[:words] {
			said[i] = max(said[i], min(1, m.score/(b.worth[i]*weight[i])))
		}
	}
	for _, x := range said {
		b.coverage += x / float64(words)
	}
}

// tableScored returns a table's score, which is zero if nothing speaks for its database.
func (b *board) tableScored(table uint32) Scored {
	row := int(b.row[table]) - 1
	if row < 0 {
		return Scored{ID: table}
	}
	return Scored{ID: table, Score: b.tableOwn[row] + databaseForTable*b.databases[b.groupOf[row]].score, Own: b.tableOwn[row]}
}

// inherited is what a table and its database bring to the table's columns.
func (b *board) inherited(table uint32) float64 {
	row := int(b.row[table]) - 1
	if row < 0 {
		return 0
	}
	return tableForColumn*b.tableOwn[row] + databaseForColumn*b.databases[b.groupOf[row]].score
}

// columnScored returns a column's score. One that no word names can still be meant: it stands with what its table and
// database bring.
func (b *board) columnScored(column uint32, inherited float64) Scored {
	own := b.columnOwn[column-b.columns.From]
	return Scored{ID: column, Score: own + inherited, Own: own}
}

// speakersScored scores the metrics, relationships or past queries that a word names.
func (b *board) speakersScored(k catalog.Kind) []Scored {
	own := map[uint32]float64{}
	for i, hits := range b.hits[k] {
		for _, h := range hits {
			own[h.ID] += b.weights[k][i] * h.Weight
		}
	}
	var best shortlist
	for id, sum := range own {
		best.add(Scored{ID: id, Score: sum, Own: sum})
	}
	return best.sorted()
}

// evidence returns what speaks for an object, strongest first.
func (b *board) evidence(id uint32) []Evidence {
	var out []Evidence
	o := b.s.Object(id)
	if o.Table != nil {
		if row := int(b.row[id]) - 1; row >= 0 {
			for i, m := range b.marksOf(row) {
				if m.score > 0 {
					out = append(out, Evidence{b.terms[i].Said, m.where, m.by, m.score})
				}
			}
		}
	} else {
		for i, hits := range b.hits[o.Ref.Kind] {
			at, ok := slices.BinarySearchFunc(hits, id, func(h Hit, id uint32) int { return cmp.Compare(h.ID, id) })
			if ok {
				out = append(out, Evidence{b.terms[i].Said, hits[at].Where, id, b.weights[o.Ref.Kind][i] * hits[at].Weight})
			}
		}
	}
	slices.SortStableFunc(out, func(x, y Evidence) int { return cmp.Compare(y.Score, x.Score) })
	return out
}

func (b *board) ranking() Ranking {
	r := Ranking{Coverage: b.coverage}
	if len(b.terms) == 0 {
		return r
	}
	for _, d := range b.databases {
		r.Databases = append(r.Databases, ScoredDatabase{d.name, d.score})
	}
	var tables shortlist
	for _, t := range b.ranked {
		tables.add(b.tableScored(t))
	}
	r.Tables = tables.sorted()
	r.Columns = b.bestColumns()
	r.Metrics, r.Relationships, r.Queries = b.speakersScored(catalog.KindMetric), b.speakersScored(catalog.KindRelationship), b.speakersScored(catalog.KindQuery)
	for _, list := range [...][]Scored{r.Tables, r.Columns, r.Metrics, r.Relationships, r.Queries} {
		for i := range list {
			list[i].Evidence = b.evidence(list[i].ID)
		}
	}
	return r
}

// bestColumns returns the best columns of the ranked tables.
func (b *board) bestColumns() []Scored {
	// Tables that bring much first, so that most columns of the others are seen to fall short at a glance.
	order := make([]int, len(b.ranked))
	bring := make([]float64, len(b.ranked))
	for row, t := range b.ranked {
		order[row], bring[row] = row, b.inherited(t)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(bring[y], bring[x]) })
	var best shortlist
	for _, row := range order {
		for r := b.s.ColumnIDs(b.ranked[row]); r.From < r.To; r.From++ {
			if b.columnOwn[r.From-b.columns.From]+bring[row] >= best.least && b.visible.Contains(r.From) {
				best.add(b.columnScored(r.From, bring[row]))
			}
		}
	}
	return best.sorted()
}

// shortlist keeps the best Candidates of what is added to it.
type shortlist struct {
	list  []Scored
	least float64 // nothing below it can get in
}

func (l *shortlist) add(x Scored) {
	if x.Score < l.least {
		return
	}
	if l.list = append(l.list, x); len(l.list) == 4*Candidates {
		l.sorted()
		l.least = l.list[Candidates-1].Score
	}
}

func (l *shortlist) sorted() []Scored {
	slices.SortFunc(l.list, byScore)
	l.list = l.list[:min(Candidates, len(l.list))]
	return l.list
}

// byScore puts the best first, and of equals the first by name.
func byScore(a, b Scored) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) }

// idf is the inverse document frequency of BM25 (Robertson and Zaragoza 2009, eq. 3.3), kept positive.
func idf(n, df float64) float64 { return math.Log(1 + (n-df+0.5)/(df+0.5)) }
