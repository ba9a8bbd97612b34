package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// What is judged of each question: the best databases and tables of retrieval.Rank, and the columns of the best tables.
const (
	judgedDatabases = 20
	judgedTables    = retrieval.Candidates
	openedTables    = 12  // tables whose columns are judged
	openedColumns   = 150 // of a table at most: those that the question names, then the first
)

// place is where a word of the question was found in a table.
type place int

const (
	tableName place = iota
	tableText
	columnName
	columnText
	columnValue
	wholeName // in the name of a table or column all of whose words the question says
	spoken    // in a metric, relationship or past query of the table
	places
)

// scene is what one question finds in what one view shows, as the features need it.
type scene struct {
	*shape
	view                  acl.View
	visible               *roaring.Bitmap // what may be queried
	base                  retrieval.Ranking
	terms                 []retrieval.Term
	words                 int             // the first of terms; the others are compounds
	asked                 map[string]bool // words
	columnHits, tableHits [][]retrieval.Hit
	worth                 []float64 // by term: how rare it is among tables, 1 over all known words; compounds a fifth of that
	known                 float64   // share of the words that the catalog knows

	databaseRow  []int       // by database: 1 + its place in base.Databases
	tableRow     []int       // by table: 1 + its place in base.Tables
	marks        []float64   // by judged table, place and term
	databaseBest []float64   // by database and term: the best mark of any of its tables, without spoken
	best         []float64   // by term
	knownIn      []int       // by term: the number of databases that know it
	columnOwn    []float64   // by column of a judged table, counted from the first: how much of the question it says
	alikeSeen    map[int]int // by group of one name: how many the view shows
}

func newScene(question string, sh *shape, x retrieval.Index, v acl.View) *scene {
	words, compounds := retrieval.QuestionTerms(question)
	sc := &scene{
		shape: sh, view: v, visible: v.Queryables(), alikeSeen: map[int]int{}, base: retrieval.Rank(question, x, v), terms: slices.Concat(words, compounds), words: len(words),
		asked: map[string]bool{}, databaseRow: make([]int, len(sh.databases)), tableRow: make([]int, len(sh.databaseOf)),
	}
	for _, w := range words {
		sc.asked[w.Text] = true
	}
	for i, d := range sc.base.Databases {
		sc.databaseRow[sh.databaseAt[d.Name]] = i + 1
	}
	for i, t := range sc.base.Tables {
		sc.tableRow[t.ID] = i + 1
	}
	sc.tableHits = x.Match(catalog.KindTable, sc.terms, v)
	sc.columnHits = x.Match(catalog.KindColumn, sc.terms, v)
	sc.weigh()
	sc.mark(x)
	return sc
}

// weigh finds how rare each term is among the tables that the view shows.
func (sc *scene) weigh() {
	n := len(sc.terms)
	sc.worth, sc.knownIn = make([]float64, n), make([]int, n)
	seen, seenDatabase := make([]int, len(sc.databaseOf)), make([]int, len(sc.databases))
	tables := float64(size(sc.s.OfKind(catalog.KindTable), sc.view))
	var sum float64
	for i := range sc.terms {
		df := 0
		count := func(table uint32) {
			if seen[table] <= i {
				seen[table] = i + 1
				df++
			}
			if d := sc.databaseOf[table]; seenDatabase[d] <= i {
				seenDatabase[d] = i + 1
				sc.knownIn[i]++
			}
		}
		for _, h := range sc.tableHits[i] {
			count(h.ID)
		}
		for _, h := range sc.columnHits[i] {
			count(sc.table(h.ID))
		}
		if df == 0 {
			continue
		}
		sc.worth[i] = math.Log(1 + (tables-float64(df)+0.5)/(float64(df)+0.5))
		if i < sc.words {
			sum += sc.worth[i]
			sc.known += 1 / float64(sc.words)
		} else {
			sc.worth[i] /= 5
		}
	}
	for i := range sc.worth {
		if sum > 0 {
			sc.worth[i] /= sum
		}
	}
}

// mark notes the strongest hit of each term by table and place.
func (sc *scene) mark(x retrieval.Index) {
	n := len(sc.terms)
	sc.marks = make([]float64, len(sc.base.Tables)*int(places)*n)
	sc.databaseBest, sc.best = make([]float64, len(sc.databases)*n), make([]float64, n)
	sc.columnOwn = make([]float64, sc.columns.Len())
	whole := map[string]float64{} // by name: what it counts for if the question says all of it
	note := func(term int, table uint32, p place, weight float64) {
		if row := sc.tableRow[table]; row > 0 {
			m := &sc.marks[((row-1)*int(places)+int(p))*n+term]
			*m = max(*m, weight)
		}
		if p != spoken {
			d := &sc.databaseBest[sc.databaseOf[table]*n+term]
			*d = max(*d, weight)
			sc.best[term] = max(sc.best[term], weight)
		}
	}
	for i := range sc.terms {
		for _, h := range sc.tableHits[i] {
			p := tableName
			if h.Where == retrieval.FieldText {
				p = tableText
			}
			note(i, h.ID, p, h.Weight)
			sc.noteWhole(whole, i, h.ID, h.ID)
		}
		for _, h := range sc.columnHits[i] {
			p := [...]place{retrieval.FieldName: columnName, retrieval.FieldText: columnText, retrieval.FieldValue: columnValue}[h.Where]
			note(i, sc.table(h.ID), p, h.Weight)
			if sc.tableRow[sc.table(h.ID)] > 0 {
				sc.columnOwn[h.ID-sc.columns.From] += sc.worth[i] * h.Weight
				sc.noteWhole(whole, i, sc.table(h.ID), h.ID)
			}
		}
	}
	for _, k := range [...]catalog.Kind{catalog.KindMetric, catalog.KindRelationship, catalog.KindQuery} {
		if sc.s.OfKind(k).Len() == 0 {
			continue
		}
		for i, hits := range x.Match(k, sc.terms, sc.view) {
			for _, h := range hits {
				for _, t := range sc.speakers[h.ID] {
					note(i, t, spoken, h.Weight)
				}
			}
		}
	}
}

// noteWhole notes a word in the name of an object of a judged table if the question says all words of that name. Names
// of several words count more: they are seldom said by chance.
func (sc *scene) noteWhole(known map[string]float64, term int, table, id uint32) {
	row, name := sc.tableRow[table], own(sc.s.Object(id).Ref)
	if row == 0 {
		return
	}
	counts, ok := known[name]
	if !ok {
		if share, words := sc.covered(name); share == 1 {
			counts = 1 - 1/(1+words)
		}
		known[name] = counts
	}
	if counts > 0 && slices.Contains(sc.shape.words[name], sc.terms[term].Text) {
		m := &sc.marksOf(row-1, wholeName)[term]
		*m = max(*m, counts)
	}
}

// said returns how strongly a judged table or its columns say each term.
func (sc *scene) said(row int) []float64 {
	out := make([]float64, len(sc.terms))
	for p := range wholeName {
		for j, m := range sc.marksOf(row, p) {
			out[j] = max(out[j], m)
		}
	}
	return out
}

// cover returns how much of the question the best table of a list of judged ones says, the best two and the best three.
func (sc *scene) cover(rows []int) (share [3]float64) {
	best := make([]float64, len(sc.terms))
	said := make([][]float64, len(rows))
	for i, row := range rows {
		said[i] = sc.said(row)
	}
	for k := range share {
		gain, with := 0.0, -1
		for i := range rows {
			x := 0.0
			for j, m := range said[i] {
				x += sc.worth[j] * max(0, m-best[j])
			}
			if x > gain {
				gain, with = x, i
			}
		}
		if k > 0 {
			share[k] = share[k-1]
		}
		if with >= 0 {
			share[k] += gain
			for j, m := range said[with] {
				best[j] = max(best[j], m)
			}
		}
	}
	return share
}

// marksOf returns the marks of a judged table at a place.
func (sc *scene) marksOf(row int, p place) []float64 {
	n := len(sc.terms)
	return sc.marks[(row*int(places)+int(p))*n:][:n]
}

// covered returns the share of a name's words that the question says, weighed by nothing, and their number.
func (sc *scene) covered(name string) (share, words float64) {
	list := sc.shape.words[name]
	for _, w := range list {
		if sc.asked[w] {
			share++
		}
	}
	if len(list) > 0 {
		share /= float64(len(list))
	}
	return share, float64(len(list))
}

// namesakes returns how many other objects that the view shows bear an object's name, in all and in its own database.
func (sc *scene) namesakes(o *catalog.Object) (all, near int) {
	group := sc.alikeOf[o.ID]
	ids := sc.alike[group]
	all, ok := sc.alikeSeen[group]
	if !ok {
		for _, id := range ids {
			if sc.visible.Contains(id) {
				all++
			}
		}
		sc.alikeSeen[group] = all
	}
	// The tables of a database stand side by side, and so do their columns.
	at, _ := slices.BinarySearch(ids, o.ID)
	count := func(id uint32) bool {
		if sc.s.Object(id).Ref.Database != o.Ref.Database {
			return false
		}
		if sc.visible.Contains(id) {
			near++
		}
		return true
	}
	for i := at - 1; i >= 0 && count(ids[i]); i-- {
	}
	for i := at + 1; i < len(ids) && count(ids[i]); i++ {
	}
	return all - 1, near
}

// row collects features.
type row []float32

func (r *row) add(values ...float64) {
	for _, x := range values {
		*r = append(*r, float32(x))
	}
}

// ratio is x / of, and zero of nothing.
func ratio(x, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return x / of
}

// logOf keeps counts comparable across catalogs of different sizes.
func logOf(n int) float64 { return math.Log1p(float64(n)) }

func logit(p float64) float64 {
	p = min(max(p, 1e-6), 1-1e-6)
	return math.Log(p / (1 - p))
}

// databaseFeatures returns the features of the database at a place in base.Databases.
func (sc *scene) databaseFeatures(at int) row {
	list := sc.base.Databases
	var r row
	d := sc.databaseAt[list[at].Name]
	other := 0
	if at == 0 {
		other = 1
	}
	second := 0.0
	if other < len(list) {
		second = list[other].Score
	}
	r.add(ratio(list[at].Score, list[0].Score), ratio(list[at].Score, list[at].Score+second), logOf(at), ratio(float64(at), float64(len(list))))
	// Its tables among the best.
	var best, runner, sum float64
	first := len(sc.base.Tables)
	var among [3]float64
	var rows []int
	for i, t := range sc.base.Tables {
		if sc.databaseOf[t.ID] != d {
			continue
		}
		rows = append(rows, i)
		first = min(first, i)
		sum += t.Own
		if t.Own > best {
			best, runner = t.Own, best
		} else {
			runner = max(runner, t.Own)
		}
		for j, n := range [...]int{3, 10, 30} {
			if i < n {
				among[j] += 1 / float64(min(n, len(sc.base.Tables)))
			}
		}
	}
	top := 0.0
	for _, t := range sc.base.Tables {
		top = max(top, t.Own)
	}
	r.add(ratio(best, top), ratio(runner, top), ratio(best, list[at].Score), logOf(first), among[0], among[1], among[2], ratio(sum, list[at].Score))
	// What it says of the words: by place, best anywhere, alone.
	n := len(sc.terms)
	var by [places]float64
	for p := range places {
		said := make([]float64, n)
		for i, t := range sc.base.Tables {
			if sc.databaseOf[t.ID] == d {
				for j, m := range sc.marksOf(i, p) {
					said[j] = max(said[j], m)
				}
			}
		}
		for j, m := range said {
			by[p] += sc.worth[j] * m
		}
	}
	r.add(by[:]...)
	var share, count, wins, sole, strong, weak float64
	weak = 1
	for j, m := range sc.databaseBest[d*n : (d+1)*n] {
		share += sc.worth[j] * m
		if m > 0 && m >= sc.best[j] {
			wins += sc.worth[j]
		}
		if m > 0 && sc.knownIn[j] == 1 {
			sole += sc.worth[j]
		}
		if j < sc.words {
			if m > 0.05 {
				count += 1 / float64(sc.words)
			}
			strong = max(strong, sc.worth[j]*m)
			if sc.knownIn[j] > 0 {
				weak = min(weak, m)
			}
		}
	}
	r.add(share, count, wins, sole, strong, weak)
	cover := sc.cover(rows)
	r.add(cover[:]...)
	named, words := sc.covered(sc.databases[d])
	r.add(named, words, logOf(size(sc.tablesOf[d], sc.view)), sc.known, logOf(sc.words))
	return r
}

// judged is a probability with what it is of, for the features of what lies below.
type judged struct {
	p    []float64 // by place in the base's list
	rank []int     // by place
	best float64
}

func newJudged(p []float64) judged {
	j := judged{p: p, rank: make([]int, len(p))}
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	for at, i := range order {
		j.rank[i] = at
	}
	if len(p) > 0 {
		j.best = p[order[0]]
	}
	return j
}

// add appends what is thought of an entry, or of one that was not judged.
func (j judged) add(r *row, at int) {
	if at < 0 || at >= len(j.p) {
		r.add(logit(0), 0, logOf(len(j.p)))
		return
	}
	r.add(logit(j.p[at]), ratio(j.p[at], j.best), logOf(j.rank[at]))
}

// tableFeatures returns the features of the table at a place in base.Tables, as one of its database: how sure the
// database is stays out of them, so that what is learned of tables does not depend on how many databases there are.
func (sc *scene) tableFeatures(at int) row {
	list := sc.base.Tables
	t := list[at]
	o := sc.s.Object(t.ID)
	d := sc.databaseOf[t.ID]
	var r row
	score := 0.0
	if row := sc.databaseRow[d]; row > 0 {
		score = sc.base.Databases[row-1].Score
	}
	var top, second float64
	above, here := 0, 0
	for i, u := range list {
		if sc.databaseOf[u.ID] != d {
			continue
		}
		here++
		if u.Own > t.Own || u.Own == t.Own && i < at {
			above++
		}
		if u.Own > top {
			top, second = u.Own, top
		} else {
			second = max(second, u.Own)
		}
	}
	other := top // the best but this one
	if above == 0 {
		other = second
	}
	r.add(ratio(t.Own, top), logOf(above), ratio(float64(above), float64(here)), ratio(t.Own, t.Own+other), ratio(t.Own, score), ratio(top, score))
	n := len(sc.terms)
	var by [places]float64
	said := sc.said(at)
	for p := range places {
		for j, m := range sc.marksOf(at, p) {
			by[p] += sc.worth[j] * m
		}
	}
	r.add(by[:]...)
	var share, count, wins, sole, strong, first float64
	alone := sc.databaseBest[d*n : (d+1)*n]
	for j, m := range said {
		share += sc.worth[j] * m
		if m > 0 && m >= alone[j] {
			wins += sc.worth[j]
			if first == 0 && j < sc.words {
				first = 1 - ratio(float64(j), float64(sc.words))
			}
		}
		if j < sc.words && m > 0.05 {
			count += 1 / float64(sc.words)
		}
		strong = max(strong, sc.worth[j]*m)
	}
	// Words that no better table of the database says about as well.
	for j, m := range said {
		if m == 0 {
			continue
		}
		elsewhere := false
		for i, u := range list {
			if i == at || sc.databaseOf[u.ID] != d || u.Own <= t.Own {
				continue
			}
			for p := range wholeName {
				elsewhere = elsewhere || sc.marksOf(i, p)[j] >= 0.8*m
			}
		}
		if !elsewhere {
			sole += sc.worth[j] * m
		}
	}
	r.add(share, count, wins, sole, strong, first)
	named, words := sc.covered(o.Ref.Table)
	r.add(named, words, named*words)
	// What it joins.
	var joined, joinedOwn float64
	degree := 0
	for _, j := range sc.joins[t.ID] {
		if j.table == t.ID || !sc.visible.Contains(j.relationship) {
			continue
		}
		degree++
		if row := sc.tableRow[j.table]; row > 0 {
			joined = max(joined, list[row-1].Own)
			joinedOwn += list[row-1].Own
		}
	}
	r.add(logOf(degree), ratio(joined, top), ratio(joinedOwn, float64(degree)*top))
	all, near := sc.namesakes(o)
	r.add(logOf(all), logOf(near), logOf(size(sc.s.ColumnIDs(t.ID), sc.view)), logOf(size(sc.tablesOf[d], sc.view)), sc.known, logOf(sc.words))
	return r
}

// opened returns the columns to judge of a table, by id.
func (sc *scene) opened(table uint32) []uint32 {
	var named, rest []uint32
	for r := sc.s.ColumnIDs(table); r.From < r.To; r.From++ {
		if !sc.visible.Contains(r.From) {
			continue
		}
		if sc.columnOwn[r.From-sc.columns.From] > 0 {
			named = append(named, r.From)
		} else {
			rest = append(rest, r.From)
		}
	}
	out := append(named, rest...)
	return out[:min(openedColumns, len(out))]
}

// candidate is a column to judge.
type candidate struct {
	id                         uint32
	table                      int // place in base.Tables
	by                         [3]float64
	share, count, wins, strong float64
}

// candidates lists the columns of the tables thought best, with what the question's words say of them.
func (sc *scene) candidates(tables judged) []candidate {
	var out []candidate
	at := make([]int32, sc.columns.Len()) // by column, counted from the first: 1 + its place in out
	order := make([]int, len(tables.p))
	for i, r := range tables.rank {
		order[r] = i
	}
	for _, row := range order[:min(openedTables, len(order))] {
		for _, c := range sc.opened(sc.base.Tables[row].ID) {
			out = append(out, candidate{id: c, table: row})
			at[c-sc.columns.From] = int32(len(out))
		}
	}
	for i, hits := range sc.columnHits {
		best := map[int]float64{} // by table
		for _, h := range hits {
			if j := at[h.ID-sc.columns.From]; j > 0 {
				best[out[j-1].table] = max(best[out[j-1].table], h.Weight)
			}
		}
		for _, h := range hits {
			j := at[h.ID-sc.columns.From]
			if j == 0 {
				continue
			}
			c := &out[j-1]
			x := sc.worth[i] * h.Weight
			c.by[h.Where] += x
			c.share += x
			c.strong = max(c.strong, x)
			if i < sc.words && h.Weight > 0.05 {
				c.count++
			}
			if h.Weight >= best[c.table] {
				c.wins += sc.worth[i]
			}
		}
	}
	return out
}

// columnFeatures returns the features of candidates.
func (sc *scene) columnFeatures(list []candidate, databases, tables judged) []row {
	var top float64
	topHere := map[int]float64{}
	for _, c := range list {
		top = max(top, c.share)
		topHere[c.table] = max(topHere[c.table], c.share)
	}
	shares := make([]float64, len(list))
	for i, c := range list {
		shares[i] = c.share
	}
	ranks := newJudged(shares)
	hereSeen := map[int]int{}
	rankHere := make([]int, len(list))
	order := make([]int, len(list))
	for i, r := range ranks.rank {
		order[r] = i
	}
	for _, i := range order {
		rankHere[i] = hereSeen[list[i].table]
		hereSeen[list[i].table]++
	}
	out := make([]row, len(list))
	for i, c := range list {
		o := sc.s.Object(c.id)
		t := sc.base.Tables[c.table]
		var r row
		databases.add(&r, sc.databaseRow[sc.databaseOf[t.ID]]-1)
		tables.add(&r, c.table)
		r.add(ratio(c.share, top), logOf(ranks.rank[i]), ratio(c.share, topHere[c.table]), logOf(rankHere[i]))
		r.add(c.by[:]...)
		r.add(c.share, ratio(c.count, float64(sc.words)), c.wins, c.strong)
		named, words := sc.covered(o.Ref.Column)
		// Words of the name that are in the question or the table's name: the id of "race" in the table "races".
		within := 0.0
		tableWords := sc.shape.words[o.Ref.Table]
		for _, w := range sc.shape.words[o.Ref.Column] {
			if sc.asked[w] || slices.Contains(tableWords, w) {
				within += ratio(1, words)
			}
		}
		tableNamed, _ := sc.covered(o.Ref.Table)
		r.add(named, words, named*words, within, tableNamed)
		// Keys, and how good the tables are that they lead to.
		var leads float64
		joins := 0
		for _, j := range sc.joinsOf[c.id] {
			if !sc.visible.Contains(j.relationship) {
				continue
			}
			joins++
			if row := sc.tableRow[j.table]; row > 0 && row <= len(tables.p) {
				leads = max(leads, ratio(tables.p[row-1], tables.best))
			}
		}
		key := 0.0
		if o.Column.PrimaryKey {
			key = 1
		}
		r.add(key, logOf(joins), leads, leads*ratio(tables.p[c.table], tables.best))
		isName, isID := 0.0, 0.0
		for _, w := range sc.shape.words[o.Ref.Column] {
			switch w {
			case "name", "titl":
				isName = 1
			case "id":
				isID = 1
			}
		}
		all, near := sc.namesakes(o)
		columns := sc.s.ColumnIDs(t.ID)
		visible, before := size(columns, sc.view), size(catalog.Range{From: columns.From, To: c.id}, sc.view)
		r.add(isName, isID, logOf(all), logOf(near), logOf(visible), ratio(float64(before), float64(visible)), sc.known, logOf(sc.words))
		out[i] = r
	}
	return out
}
