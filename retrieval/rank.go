package retrieval

import (
	"cmp"
	"context"
	"math"
	"slices"

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
	meaningWeight      = 0.5 // a word that means about the same, at most
	meaningFloor       = 0.3 // the cosine at which it counts nothing
)

// Rank scores all that the view lets be queried against the question, by sums of evidence alone.
func Rank(question string, x Index, v acl.View) Ranking {
	r, _ := (&Ranker{Index: x}).Rank(context.Background(), question, v)
	return r
}

// Ranking lists what the evidence, or a judge of it, speaks for.
func (b *Board) Ranking() Ranking {
	r := Ranking{Coverage: b.coverage}
	if len(b.terms) == 0 {
		return r
	}
	r.Databases = b.Databases()
	r.Tables = b.Tables()
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
func (b *Board) bestColumns() []Scored {
	var best shortlist
	var standing map[uint32]bool // those that stand above all others
	if b.columnJudged != nil {
		standing = b.standing()
		for id := range standing {
			best.add(b.columnScored(id, b.inherited(b.table(id))))
		}
		if len(standing) >= Candidates {
			return best.sorted()
		}
	}
	// Tables that bring much first, so that most columns of the others are seen to fall short at a glance.
	order := make([]int, len(b.ranked))
	bring := make([]float64, len(b.ranked))
	for row, t := range b.ranked {
		order[row], bring[row] = row, b.inherited(t)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(bring[y], bring[x]) })
	for _, row := range order {
		for r := b.s.ColumnIDs(b.ranked[row]); r.From < r.To; r.From++ {
			most := b.columnOwn[r.From-b.columns.From] + bring[row]
			if b.columnJudged != nil {
				most = b.weigh.fuse(0, b.scale*most, 0)
			}
			if most >= best.least && !standing[r.From] && b.visible.Contains(r.From) {
				best.add(b.columnScored(r.From, bring[row]))
			}
		}
	}
	return best.sorted()
}

// standing returns the columns for which there is more than words: a judgement, a similar meaning, a past question.
func (b *Board) standing() map[uint32]bool {
	out := make(map[uint32]bool, len(b.columnJudged))
	for id := range b.columnJudged {
		out[id] = true
	}
	if b.weigh.Embedding > 0 {
		for id := range b.near[catalog.KindColumn] {
			out[id] = true
		}
	}
	if b.history != nil {
		for id := b.columns.From; id < b.columns.To; id++ {
			if b.history[id] > 0 && b.visible.Contains(id) && b.row[b.table(id)] > 0 {
				out[id] = true
			}
		}
	}
	return out
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
