package retrieval

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// Board holds the evidence for one question. Nothing that the view hides is on it.
type Board struct {
	*shape
	*families
	view     acl.View
	visible  idSet // what may be queried, of each family the one that leads
	asked    string
	said     phrase               // the question
	question []float32            // its vector; nil without a lexicon
	names    map[string][]float32 // vectors of the names of databases
	words    int                  // of the question: the first of terms; the others are compounds
	terms    []Term
	worth    []float64                       // by term
	hits     [len(catalog.Kinds) + 1][][]Hit // by kind and term
	meant    [len(catalog.Kinds) + 1][][]Hit // by kind and word: found by meaning, weighed by cosine
	sorts    [][]Hit                         // columns by what the question asks for, see AskedFor
	values   []ValueHit
	near     [len(catalog.Kinds) + 1]map[uint32]float64 // by kind and id: similarity to the question
	history  []float32                                  // by id of a table or column; nil if there is none
	weigh    Weights
	weights  [len(catalog.Kinds) + 1][]float64 // what a hit of weight 1 contributes to its own object, by kind and term

	ranked    []uint32  // the tables of databases that any evidence speaks for, in id order
	row       []int32   // by table id: 1 + its place in ranked
	marks     []mark    // what terms say of ranked, by table and term
	first     []uint32  // by place in ranked: the first of its marks; and their number
	tableOwn  []float64 // by place in ranked: the sum of its marks
	databases []group   // those of ranked, best first
	groupOf   []int32   // by place in ranked: its place in databases
	columnOwn []float64 // by column, counted from the first
	coverage  float64

	// What a judge made of it, if there is one.
	judged       bool
	tableJudged  []Judged
	judgedAt     []int32 // by place in ranked: 1 + its place in tableJudged
	columnJudged map[uint32]Judged
	scale        float64 // brings the evidence for columns below any score that was judged
}

// mark is the evidence that a term gives a table.
type mark struct {
	score float64 // of the strongest
	echo  float64 // of the others, summed
	by    uint32
	term  uint16
	where Field
}

// group is the part of ranked that lies in one database.
type group struct {
	name     string
	from, to int
	score    float64
	brought  float64 // the evidence, once score is a probability
}

func newBoard(ctx context.Context, question string, r *Ranker, v acl.View) (*Board, error) {
	said := phraseOf(question)
	words, compounds := said.terms()
	f, err := r.kin.of(ctx, v)
	if err != nil {
		return nil, err
	}
	b := &Board{
		shape: r.shape(v.Snapshot()), families: f, view: v, visible: f.visible, asked: question, said: said,
		words: len(words), terms: slices.Concat(words, compounds), weigh: r.weights(),
	}
	if len(b.terms) == 0 {
		return b, nil
	}
	b.worth = make([]float64, len(b.terms))
	for i := range b.worth {
		b.worth[i] = 1
		if i >= len(words) {
			b.worth[i] = compoundWeight
		}
	}
	for _, k := range catalog.Kinds {
		b.hits[k] = r.Index.Match(k, b.terms, f.view)
	}
	if err := b.understand(ctx, r); err != nil {
		return nil, err
	}
	if r.Values != nil {
		b.values = r.Values.Find(question, f.view)
	}
	for _, k := range catalog.Kinds {
		n := float64(b.count(k))
		b.weights[k] = make([]float64, len(b.terms))
		for i := range b.terms {
			b.merge(k, i)
			b.weights[k][i] = b.worth[i] * idf(n, float64(len(b.hits[k][i])))
		}
	}
	b.columnOwn = make([]float64, b.columns.Len())
	b.gather()
	b.score(len(words))
	for _, by := range speakerWeights {
		for i, hits := range b.hits[by.kind] {
			w := by.weight * b.weights[by.kind][i]
			for _, h := range hits {
				for _, c := range b.columnsNamed(h.ID) {
					b.columnOwn[b.leader(c)-b.columns.From] += w * h.Weight
				}
			}
		}
	}
	return b, nil
}

// understand finds what the question means beyond its words.
func (b *Board) understand(ctx context.Context, r *Ranker) error {
	if r.Lexicon != nil && r.Lexicon.snapshot == b.s {
		said := make([]string, b.words)
		for i, t := range b.terms[:b.words] {
			said[i] = t.Said
		}
		kin, err := r.Lexicon.kin(ctx, said)
		if err != nil {
			return err
		}
		for _, k := range [...]catalog.Kind{catalog.KindTable, catalog.KindColumn} {
			b.meant[k] = r.Lexicon.match(k, b.terms[:b.words], kin, b.visible)
		}
		sorts := b.said.sorts()
		if kin, err = r.Lexicon.kin(ctx, sorts); err != nil {
			return err
		}
		b.sorts = r.Lexicon.match(catalog.KindColumn, make([]Term, len(sorts)), kin, b.visible)
	}
	if r.Embedder == nil {
		return nil
	}
	vectors, err := r.Embedder.Embed(ctx, append([]string{b.asked}, clauses(b.asked)...))
	if err != nil {
		return fmt.Errorf("retrieval: embedding the question: %w", err)
	}
	for _, k := range catalog.Kinds {
		b.near[k] = map[uint32]float64{}
		asked := vectors
		if k == catalog.KindColumn || k == catalog.KindRelationship {
			asked = vectors[:1] // these are many, and short: words find them
		}
		for _, q := range asked {
			for _, n := range r.Index.Near(k, q, b.families.view) {
				b.near[k][n.ID] = max(b.near[k][n.ID], n.Similarity)
			}
		}
	}
	if r.Lexicon != nil {
		b.question, b.names = vectors[0], r.Lexicon.names
	}
	if r.History != nil {
		b.history = r.History.Scores(vectors[0], b.view, r.now())
		for id, x := range b.history {
			if l := b.leader(uint32(id)); x > 0 && l != uint32(id) {
				b.history[l] = max(b.history[l], x)
			}
		}
	}
	return nil
}

// merge adds to the hits of a term those by meaning, at less weight.
func (b *Board) merge(k catalog.Kind, term int) {
	if b.meant[k] == nil || term >= b.words {
		return
	}
	said, meant := b.hits[k][term], b.meant[k][term]
	if len(meant) == 0 {
		return
	}
	out := make([]Hit, 0, len(said)+len(meant))
	for _, h := range meant {
		for len(said) > 0 && said[0].ID < h.ID {
			out, said = append(out, said[0]), said[1:]
		}
		h.Weight = meaningWeight * (h.Weight - meaningFloor) / (1 - meaningFloor)
		if len(said) > 0 && said[0].ID == h.ID {
			if said[0].Weight >= h.Weight {
				h = said[0]
			}
			said = said[1:]
		}
		if h.Weight > 0 {
			out = append(out, h)
		}
	}
	b.hits[k][term] = append(out, said...)
}

// View returns the view that the board was made for.
func (b *Board) View() acl.View { return b.view }

// Ranked returns the view of what is ranked: of tables that are alike but for a number in their names it shows only the one
// that stands for all.
func (b *Board) Ranked() acl.View { return b.families.view }

// Terms returns the words of the question and, after the first so many, the compounds of them.
func (b *Board) Terms() (terms []Term, words int) { return b.terms, b.words }

// Hits returns what was found of a kind, by term, in id order.
func (b *Board) Hits(k catalog.Kind) [][]Hit { return b.hits[k] }

// Meant returns the tables or columns in whose names a word means about what each word of the question means, weighed by
// cosine, in id order.
func (b *Board) Meant(k catalog.Kind) [][]Hit { return b.meant[k] }

// Question returns the question.
func (b *Board) Question() string { return b.asked }

// Sequence returns all words of the question in order, as Terms would.
func (b *Board) Sequence() []string {
	var out []string
	for _, w := range b.said {
		out = append(out, w.Text)
	}
	return out
}

// AskedFor returns, for each word that says what sort of thing the question asks for (when, where, who, how old), the
// columns in whose names a word means about the same, weighed by cosine, in id order.
func (b *Board) AskedFor() [][]Hit { return b.sorts }

// Values returns the values that the question names.
func (b *Board) Values() []ValueHit { return b.values }

// NameSimilarity returns the cosine of the question and a database's name.
func (b *Board) NameSimilarity(database string) float64 {
	if b.question == nil {
		return 0
	}
	return float64(dot(b.question, b.names[database]))
}

// Similarity returns how much an object's text means what the question means: the cosine, or 0 if it is not among the
// nearest of its kind.
func (b *Board) Similarity(k catalog.Kind, id uint32) float64 { return b.near[k][id] }

// Databases returns the databases that any evidence speaks for, best first.
func (b *Board) Databases() []ScoredDatabase {
	out := make([]ScoredDatabase, len(b.databases))
	for i, d := range b.databases {
		out[i] = ScoredDatabase{d.name, d.score}
	}
	return out
}

// Tables returns the best Candidates tables, best first, without their evidence.
func (b *Board) Tables() []Scored {
	var best shortlist
	for row, t := range b.ranked {
		if !b.judged && b.tableOwn[row]+databaseForTable*b.databases[b.groupOf[row]].score < best.least {
			continue
		}
		best.add(b.tableScored(t))
	}
	return best.sorted()
}

// TablesOf returns the best tables of the database at a place in Databases, best first.
func (b *Board) TablesOf(place, most int) []Scored {
	d := b.databases[place]
	var out []Scored
	for _, t := range b.ranked[d.from:d.to] {
		x := b.tableScored(t)
		if at, _ := slices.BinarySearchFunc(out, x, byScore); at < most {
			out = slices.Insert(out, at, x)
			out = out[:min(most, len(out))]
		}
	}
	return out
}

// Leader returns the table or column that ranks for another one: tables of a database that are alike but for a number in
// their names rank as one. Most stand for themselves.
func (b *Board) Leader(id uint32) uint32 { return b.leader(id) }

// Database returns the place in Databases of that of a table in Tables.
func (b *Board) Database(table uint32) int { return int(b.groupOf[b.row[table]-1]) }

// Table returns the table of a column.
func (b *Board) Table(column uint32) uint32 { return b.table(column) }

// SpokenFor returns the tables that a metric, relationship or past query speaks for.
func (b *Board) SpokenFor(id uint32) []uint32 {
	tables := b.spokenFor(id)
	if len(b.leaders) == 0 {
		return tables
	}
	var out []uint32
	for _, t := range tables {
		if t = b.leader(t); !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// unjudged is the greatest score of what no judge thought worth judging. It keeps its order.
const unjudged = 1e-6

// judge replaces the sums of evidence by what a judge makes of them. What the judge names that is not ranked counts nothing.
func (b *Board) judge(j Judge) {
	given := j.Judge(b)
	most := 0.0 // of what can be said for a column
	for row := range b.ranked {
		most = max(most, b.tableOwn[row]+b.databases[b.groupOf[row]].score)
	}
	for _, x := range b.columnOwn {
		if x > most { // quicker than max, which minds what is no number
			most = x
		}
	}
	b.scale = unjudged / (4 * max(most, 1))
	b.judgedAt = make([]int32, len(b.ranked))
	for _, t := range given.Tables {
		if int(t.ID) < len(b.row) && b.row[t.ID] > 0 {
			b.tableJudged = append(b.tableJudged, t)
			b.judgedAt[b.row[t.ID]-1] = int32(len(b.tableJudged))
		}
	}
	columns := make(map[uint32]Judged, len(given.Columns))
	for _, c := range given.Columns {
		if b.columns.From <= c.ID && c.ID < b.columns.To && b.visible.Contains(c.ID) && b.row[b.table(c.ID)] > 0 {
			columns[c.ID] = c
		}
	}
	near := make([]float64, len(b.databases)) // of its tables, the best
	for id, x := range b.near[catalog.KindTable] {
		if row := b.row[id] - 1; row >= 0 {
			g := b.groupOf[row]
			near[g] = max(near[g], x)
		}
	}
	for i := range b.databases {
		d := &b.databases[i]
		probability := b.scale * d.score
		if d.brought = d.score; i < len(given.Databases) {
			probability = given.Databases[i]
		}
		past := 0.0 // of its tables, the best
		for _, t := range b.ranked[d.from:d.to] {
			past = max(past, b.past(t))
		}
		d.score = b.weigh.fuse(chance(catalog.KindTable, near[i]), probability, past)
	}
	b.judged, b.columnJudged = true, columns
	b.order()
}

// fits reports whether anything fits the question.
func (b *Board) fits() bool {
	if b.near[catalog.KindTable] == nil {
		return b.coverage >= leastSaid
	}
	said, meant := leastCoverage, leastMeant
	if foreign(b.asked, b.said) {
		said, meant = leastForeign, leastForeignMeant
	}
	if b.coverage >= said {
		return true
	}
	for _, near := range b.near {
		for _, similarity := range near {
			if similarity >= meant {
				return true
			}
		}
	}
	return false
}

// past returns how much past questions speak for a table or column.
func (b *Board) past(id uint32) float64 {
	if b.history == nil {
		return 0
	}
	return float64(b.history[id])
}

// order puts the best database first.
func (b *Board) order() {
	order := make([]*group, len(b.databases))
	for i := range order {
		order[i] = &b.databases[i]
	}
	slices.SortFunc(order, func(x, y *group) int {
		return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(y.brought, x.brought), cmp.Compare(x.from, y.from))
	})
	sorted := make([]group, len(order))
	for g, d := range order {
		sorted[g] = *d
		for row := d.from; row < d.to; row++ {
			b.groupOf[row] = int32(g)
		}
	}
	b.databases = sorted
}

// count returns the number of objects of a kind that may be queried.
func (b *Board) count(k catalog.Kind) int {
	return b.visible.count(b.s.OfKind(k))
}

// speakerWeights are what a word in an object counts as evidence for the tables and columns that it names.
var speakerWeights = [...]struct {
	kind   catalog.Kind
	weight float64
}{{catalog.KindMetric, metricWeight}, {catalog.KindRelationship, relationshipWeight}, {catalog.KindQuery, queryWeight}}

// ofOneTable cuts hits in columns into those of the first column's table, which stand side by side, and the rest.
func (b *Board) ofOneTable(hits []Hit) (table uint32, here, rest []Hit) {
	table = b.table(hits[0].ID)
	n, to := 1, b.s.ColumnIDs(table).To
	for n < len(hits) && hits[n].ID < to {
		n++
	}
	return table, hits[:n], hits[n:]
}

// gather collects evidence: for tables, per term the hits in the table, its columns, or what names it; and for columns
// those in them.
func (b *Board) gather() {
	n := b.s.OfKind(catalog.KindTable).Len()
	b.row = make([]int32, n)
	sayers, last := make([]uint32, n), make([]int32, n) // by table: how many terms speak for it, and 1 + the last of them
	for i := range b.terms {
		say := func(table uint32) {
			if last[table] <= int32(i) {
				last[table] = int32(i) + 1
				sayers[table]++
			}
		}
		for _, h := range b.hits[catalog.KindTable][i] {
			say(h.ID)
		}
		for rest := b.hits[catalog.KindColumn][i]; len(rest) > 0; {
			var table uint32
			table, _, rest = b.ofOneTable(rest)
			say(table)
		}
		for _, by := range speakerWeights {
			for _, h := range b.hits[by.kind][i] {
				for _, t := range b.SpokenFor(h.ID) {
					say(t)
				}
			}
		}
	}
	for id := range b.near[catalog.KindTable] {
		b.row[id] = 1
	}
	for id := range b.near[catalog.KindColumn] {
		b.row[b.table(id)] = 1
	}
	for id, x := range b.history[:min(len(b.history), len(b.row))] {
		if x > 0 {
			b.row[id] = 1
		}
	}
	// A table that no word speaks for stands with its database: it may lie between those that are meant.
	b.ranked, b.first, b.databases = make([]uint32, 0, n), make([]uint32, 0, n+1), make([]group, 0, len(b.shape.databases))
	marks := uint32(0)
	for _, r := range b.shape.databases {
		spoken := false
		for t := r.From; t < r.To && !spoken; t++ {
			spoken = (b.row[t] != 0 || sayers[t] > 0) && b.visible.Contains(t)
		}
		from := len(b.ranked)
		for t := r.From; t < r.To; t++ {
			b.row[t] = 0
			if spoken && b.visible.Contains(t) {
				b.ranked = append(b.ranked, t)
				b.row[t] = int32(len(b.ranked))
				b.first = append(b.first, marks)
				marks += sayers[t]
			}
		}
		if spoken {
			b.databases = append(b.databases, group{name: b.s.Object(r.From).Ref.Database, from: from, to: len(b.ranked)})
		}
	}
	b.first = append(b.first, marks)
	b.marks = make([]mark, marks)
	clear(last)
	next := slices.Clone(b.first)
	for i := range b.terms {
		// markOf returns what the term says of a table, nil if that is not ranked.
		markOf := func(table uint32) *mark {
			row := b.row[table] - 1
			if row < 0 {
				return nil
			}
			if last[table] <= int32(i) {
				last[table] = int32(i) + 1
				b.marks[next[row]].term = uint16(i)
				next[row]++
			}
			return &b.marks[next[row]-1]
		}
		for _, h := range b.hits[catalog.KindTable][i] {
			markOf(h.ID).add(h, ownTableWeight)
		}
		worth := b.weights[catalog.KindColumn][i]
		for rest := b.hits[catalog.KindColumn][i]; len(rest) > 0; {
			var table uint32
			var here []Hit
			table, here, rest = b.ofOneTable(rest)
			m := markOf(table)
			for _, h := range here {
				b.columnOwn[h.ID-b.columns.From] += worth * h.Weight
				m.add(h, 1)
			}
		}
		for _, by := range speakerWeights {
			for _, h := range b.hits[by.kind][i] {
				for _, t := range b.SpokenFor(h.ID) {
					markOf(t).add(h, by.weight)
				}
			}
		}
	}
}

// add takes in a hit of the term. No mark takes none.
func (m *mark) add(h Hit, weight float64) {
	if m == nil {
		return
	}
	score := weight * h.Weight
	if score > m.score {
		m.score, m.by, m.where, score = score, h.ID, h.Where, m.score
	}
	m.echo += score
}

// marksOf returns what the terms say of a table by its place in ranked, in order of term.
func (b *Board) marksOf(row int) []mark { return b.marks[b.first[row]:b.first[row+1]] }

// score weighs the evidence of tables by how rare a term is among tables, and sums it by table and by database.
func (b *Board) score(words int) {
	in := make([]float64, len(b.terms))
	for i := range b.marks {
		if b.marks[i].score > 0 {
			in[b.marks[i].term]++
		}
	}
	tables := float64(b.count(catalog.KindTable))
	weight := make([]float64, len(b.terms))
	for i := range weight {
		weight[i] = idf(tables, in[i])
	}
	b.tableOwn = make([]float64, len(b.ranked))
	best := make([]float64, len(b.terms)) // of each term in a database
	for g := range b.databases {
		d := &b.databases[g]
		clear(best)
		for row := d.from; row < d.to; row++ {
			marks := b.marksOf(row)
			for i := range marks {
				m := &marks[i]
				m.score = b.worth[m.term] * weight[m.term] * (m.score + echoWeight*m.echo/(1+m.echo))
				b.tableOwn[row] += m.score
				best[m.term] = max(best[m.term], m.score)
			}
		}
		for _, x := range best {
			d.score += x
		}
	}
	b.groupOf = make([]int32, len(b.ranked))
	b.order()
	if len(b.databases) == 0 || words == 0 {
		return
	}
	said := make([]float64, words) // how strongly the best database says each word, however rare it is
	for row := b.databases[0].from; row < b.databases[0].to; row++ {
		for _, m := range b.marksOf(row) {
			if int(m.term) < words {
				said[m.term] = max(said[m.term], min(1, m.score/(b.worth[m.term]*weight[m.term])))
			}
		}
	}
	for _, x := range said {
		b.coverage += x / float64(words)
	}
}

// tableScored returns a table's score, which is zero if nothing speaks for its database.
func (b *Board) tableScored(table uint32) Scored {
	row := int(b.row[table]) - 1
	if row < 0 {
		return Scored{ID: table}
	}
	if b.judged {
		var j Judged
		if at := b.judgedAt[row]; at > 0 {
			j = b.tableJudged[at-1]
		} else {
			j.Score = b.scale * (b.tableOwn[row] + databaseForTable*b.databases[b.groupOf[row]].brought)
		}
		near, past := chance(catalog.KindTable, b.near[catalog.KindTable][table]), b.past(table)
		return Scored{ID: table, Score: b.weigh.fuse(near, j.Score, past), Own: b.weigh.fuse(near, j.Given, past)}
	}
	return Scored{ID: table, Score: b.tableOwn[row] + databaseForTable*b.databases[b.groupOf[row]].score, Own: b.tableOwn[row]}
}

// inherited is what a table and its database bring to the table's columns.
func (b *Board) inherited(table uint32) float64 {
	row := int(b.row[table]) - 1
	if row < 0 {
		return 0
	}
	d := &b.databases[b.groupOf[row]]
	if b.judged {
		return tableForColumn*b.tableOwn[row] + databaseForColumn*d.brought
	}
	return tableForColumn*b.tableOwn[row] + databaseForColumn*d.score
}

// columnScored returns a column's score. One that no word names can still be meant: it stands with what its table and
// database bring.
func (b *Board) columnScored(column uint32, inherited float64) Scored {
	own := b.columnOwn[column-b.columns.From]
	if b.columnJudged == nil {
		return Scored{ID: column, Score: own + inherited, Own: own}
	}
	score := b.scale * (own + inherited)
	if j, ok := b.columnJudged[column]; ok {
		score = j.Score
	}
	return Scored{ID: column, Score: b.weigh.fuse(chance(catalog.KindColumn, b.near[catalog.KindColumn][column]), score, b.past(column)), Own: own}
}

// speakersScored scores the metrics, relationships or past queries that a word names.
func (b *Board) speakersScored(k catalog.Kind) []Scored {
	own := map[uint32]float64{}
	for i, hits := range b.hits[k] {
		for _, h := range hits {
			own[h.ID] += b.weights[k][i] * h.Weight
		}
	}
	for id, similarity := range b.near[k] {
		own[id] += similarity
	}
	var best shortlist
	for id, sum := range own {
		best.add(Scored{ID: id, Score: sum, Own: sum})
	}
	return best.sorted()
}

// evidence returns what speaks for an object, strongest first.
func (b *Board) evidence(id uint32) []Evidence {
	var out []Evidence
	o := b.s.Object(id)
	if o.Table != nil {
		if row := int(b.row[id]) - 1; row >= 0 {
			for _, m := range b.marksOf(row) {
				if m.score > 0 {
					out = append(out, Evidence{b.terms[m.term].Said, m.where, m.by, m.score})
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
