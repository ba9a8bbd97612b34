package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// What is judged of each question: the best databases and tables of retrieval.Rank, and the columns of the best tables.
const (
	judgedDatabases = 20
	bestTables      = 70  // tables that are judged, wherever they are
	bestOfEach      = 3   // and so many of each judged database, so that a large one does not crowd out the others
	openedTables    = 10  // tables whose columns are judged
	openedDatabases = 5   // databases of which at least some tables are opened
	openedOfEach    = 2   // these
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
	tableMeant  // by a word that means about the same
	columnMeant // likewise
	wholeName   // in the name of a table or column all of whose words the question says
	spoken      // in a metric, relationship or past query of the table
	places
)

// scene is what one question finds in what one view shows, as the features need it.
type scene struct {
	*shape
	board     *retrieval.Board
	visible   *sight // what may be queried
	databases []retrieval.ScoredDatabase
	ranked    []retrieval.Scored // tables
	terms     []retrieval.Term
	words     int             // the first of terms; the others are compounds
	asked     map[string]bool // terms
	sequence  []string        // the question's words in order

	columnHits, tableHits [][]retrieval.Hit
	worth                 []float64 // by term: how rare it is among tables, 1 over all known words; compounds a fifth of that
	known                 float64   // share of the words that the catalog knows

	databaseRow  []int              // by database of a judged table: 1 + its place in databases
	tableRow     []int              // by table: 1 + its place in ranked
	marks        []float64          // by judged table, place and term
	anywhere     []float64          // by judged table and term: the best mark at the places before wholeName
	databaseBest []float64          // by database and term: the best mark of any of its tables, without spoken
	best         []float64          // by term
	knownIn      []int              // by term: the number of databases that know it
	firstOf      []int              // by judged table: the place of its first column among those of all judged ones
	columnOwn    []float64          // by that place: how much of the question a column says
	nameNear     []float64          // by judged database: similarity of its name to the question
	near         []float64          // by judged table: similarity of its text to the question
	valued       map[uint32]valued  // by table or column
	valuedIn     []valued           // by database
	sorts        map[uint32]float64 // by column: how much its name means what the question asks for
}

// valued tells of the values that a question names in an object.
type valued struct {
	sum  float64 // of the qualities
	sole float64 // the best quality, divided among the objects that hold the value
}

func newScene(b *retrieval.Board, sh *shape) *scene {
	terms, words := b.Terms()
	sc := &scene{
		shape: sh, board: b, visible: sh.sight(b.Ranked()), databases: b.Databases(), ranked: judgedTables(b), terms: terms, words: words,
		asked: map[string]bool{}, sequence: retrieval.Terms(b.Question()),
		databaseRow: make([]int, len(sh.databases)), tableRow: make([]int, len(sh.databaseOf)), sorts: map[uint32]float64{},
	}
	for _, t := range terms {
		sc.asked[t.Text] = true
	}
	for _, d := range sc.databases[:min(judgedDatabases, len(sc.databases))] {
		sc.nameNear = append(sc.nameNear, b.NameSimilarity(d.Name))
	}
	sc.near, sc.firstOf = make([]float64, len(sc.ranked)), make([]int, len(sc.ranked))
	columns := 0
	for i, t := range sc.ranked {
		sc.firstOf[i] = columns
		columns += sh.s.ColumnIDs(t.ID).Len()
		sc.tableRow[t.ID] = i + 1
		sc.databaseRow[sh.databaseOf[t.ID]] = b.Database(t.ID) + 1
		sc.near[i] = b.Similarity(catalog.KindTable, t.ID)
	}
	sc.columnOwn = make([]float64, columns)
	sc.tableHits, sc.columnHits = b.Hits(catalog.KindTable), b.Hits(catalog.KindColumn)
	for _, hits := range b.AskedFor() {
		for _, h := range hits {
			sc.sorts[h.ID] = max(sc.sorts[h.ID], h.Weight)
		}
	}
	sc.weigh()
	sc.mark()
	sc.value(b.Values())
	return sc
}

// place returns the place of a column among those of all judged tables.
func (sc *scene) place(column uint32) (at int, ok bool) {
	table := sc.table(column)
	row := sc.tableRow[table]
	if row == 0 {
		return 0, false
	}
	return sc.firstOf[row-1] + int(column-sc.s.ColumnIDs(table).From), true
}

// weigh finds how rare each term is among the tables that the view shows.
func (sc *scene) weigh() {
	n := len(sc.terms)
	sc.worth, sc.knownIn = make([]float64, n), make([]int, n)
	seen, seenDatabase := make([]int, len(sc.databaseOf)), make([]int, len(sc.shape.databases))
	tables := float64(size(sc.s.OfKind(catalog.KindTable), sc.visible))
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
func (sc *scene) mark() {
	n := len(sc.terms)
	sc.marks, sc.anywhere = make([]float64, len(sc.ranked)*int(places)*n), make([]float64, len(sc.ranked)*n)
	sc.databaseBest, sc.best = make([]float64, len(sc.shape.databases)*n), make([]float64, n)
	note := func(term int, table uint32, p place, weight float64) {
		if row := sc.tableRow[table]; row > 0 {
			m := &sc.marks[((row-1)*int(places)+int(p))*n+term]
			*m = max(*m, weight)
			if p < wholeName {
				m := &sc.anywhere[(row-1)*n+term]
				*m = max(*m, weight)
			}
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
			switch h.Where {
			case retrieval.FieldText:
				p = tableText
			case retrieval.FieldMeaning:
				p = tableMeant
			}
			note(i, h.ID, p, h.Weight)
			sc.noteWhole(i, h.ID, h.ID)
		}
		for _, h := range sc.columnHits[i] {
			p := [...]place{retrieval.FieldName: columnName, retrieval.FieldText: columnText, retrieval.FieldValue: columnValue, retrieval.FieldMeaning: columnMeant}[h.Where]
			note(i, sc.table(h.ID), p, h.Weight)
			if at, ok := sc.place(h.ID); ok {
				sc.columnOwn[at] += sc.worth[i] * h.Weight
				sc.noteWhole(i, sc.table(h.ID), h.ID)
			}
		}
	}
	for _, k := range [...]catalog.Kind{catalog.KindMetric, catalog.KindRelationship, catalog.KindQuery} {
		if sc.s.OfKind(k).Len() == 0 {
			continue
		}
		for i, hits := range sc.board.Hits(k) {
			for _, h := range hits {
				for _, t := range sc.board.SpokenFor(h.ID) {
					note(i, t, spoken, h.Weight)
				}
			}
		}
	}
}

// noteWhole notes a word in the name of an object of a judged table if the question says all words of that name. Names
// of several words count more: they are seldom said by chance.
func (sc *scene) noteWhole(term int, table, id uint32) {
	row, name := sc.tableRow[table], sc.termsOf(id)
	if row == 0 || !slices.Contains(name, sc.terms[term].Text) {
		return
	}
	for _, w := range name {
		if !sc.asked[w] {
			return
		}
	}
	m := &sc.marksOf(row-1, wholeName)[term]
	*m = max(*m, 1-1/(1+float64(len(name))))
}

// said returns how strongly a judged table or its columns say each term.
func (sc *scene) said(row int) []float64 {
	n := len(sc.terms)
	return sc.anywhere[row*n:][:n]
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
func (sc *scene) covered(name []string) (share, words float64) {
	for _, w := range name {
		if sc.asked[w] {
			share++
		}
	}
	if len(name) > 0 {
		share /= float64(len(name))
	}
	return share, float64(len(name))
}

// verbatim reports whether the question says a name, all of its words side by side.
func (sc *scene) verbatim(name []string) bool {
	for i := 0; len(name) > 0 && i+len(name) <= len(sc.sequence); i++ {
		if slices.Equal(sc.sequence[i:i+len(name)], name) {
			return true
		}
	}
	return false
}

// namesakes returns how many other objects that the view shows bear an object's name, in all and in its own database.
func (sc *scene) namesakes(o *catalog.Object) (all, near int) {
	return int(sc.visible.named[sc.nameOf[o.ID]]) - 1, int(sc.visible.alike[sc.nameHereOf[o.ID]]) - 1
}

// value notes which objects hold values that the question names. Hits on one span are alike: the more objects hold the
// value, the less it tells them apart.
func (sc *scene) value(hits []retrieval.ValueHit) {
	sc.valued, sc.valuedIn = map[uint32]valued{}, make([]valued, len(sc.shape.databases))
	for len(hits) > 0 {
		n := 1
		for n < len(hits) && hits[n].From == hits[0].From && hits[n].To == hits[0].To {
			n++
		}
		columns, tables, databases := map[uint32]float64{}, map[uint32]float64{}, map[int]float64{}
		for _, h := range hits[:n] {
			t := sc.table(h.Column)
			d := sc.databaseOf[t]
			columns[h.Column], tables[t], databases[d] = h.Quality, max(tables[t], h.Quality), max(databases[d], h.Quality)
		}
		hits = hits[n:]
		for id, q := range columns {
			sc.valued[id] = sc.valued[id].with(q, len(columns))
		}
		for id, q := range tables {
			sc.valued[id] = sc.valued[id].with(q, len(tables))
		}
		for d, q := range databases {
			sc.valuedIn[d] = sc.valuedIn[d].with(q, len(databases))
		}
	}
}

func (v valued) with(quality float64, holders int) valued {
	return valued{v.sum + quality, max(v.sole, quality/float64(holders))}
}

// judgedTables returns the tables to judge, best first.
func judgedTables(b *retrieval.Board) []retrieval.Scored {
	out := b.Tables()
	out = out[:min(bestTables, len(out))]
	in := map[uint32]bool{}
	for _, t := range out {
		in[t.ID] = true
	}
	for at := range min(judgedDatabases, len(b.Databases())) {
		for _, t := range b.TablesOf(at, bestOfEach) {
			if !in[t.ID] {
				out = append(out, t)
			}
		}
	}
	slices.SortFunc(out, func(x, y retrieval.Scored) int { return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(x.ID, y.ID)) })
	return out
}
