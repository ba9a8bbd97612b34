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
	hitsOn                [][]hitOn // by term: the hits in columns that are judged
	worth                 []float64 // by term: how rare it is among tables, 1 over all known words; compounds a fifth of that
	known                 float64   // share of the words that the catalog knows

	databaseRow  []int              // by database of a judged table: 1 + its place in databases
	tableRow     []int              // by table: 1 + its place in ranked
	databaseIn   []int              // by judged table: its database
	rowsIn       [][]int            // by database: its judged tables
	marks        []float64          // by judged table, place and term
	anywhere     []float64          // by judged table and term: the best mark at the places before wholeName
	databaseBest []float64          // by database and term: the best hit in any of its tables and columns
	best         []float64          // by term
	knownIn      []int              // by term: the number of databases that know it
	firstOf      []int              // by judged table: the place of its first column among those of all judged ones
	columnOwn    []float64          // by that place: how much of the question a column says
	nameNear     []float64          // by judged database: similarity of its name to the question
	near         []float64          // by judged table: similarity of its text to the question
	valued       map[uint32]valued  // by table or column
	valuedIn     []valued           // by database
	sorts        map[uint32]float64 // by column: how much its name means what the question asks for
	memory       *memory
}

// memory is what a scene is made in, for the next one to use again.
type memory struct {
	numbers, free []float64
	wanted        int // of numbers
}

// take returns so many zeros.
func (m *memory) take(n int) []float64 {
	if m.wanted += n; n > len(m.free) {
		return make([]float64, n)
	}
	out := m.free[:n:n]
	m.free = m.free[n:]
	clear(out)
	return out
}

// done gives the memory of a scene to the next one. Nothing that was computed in it may be used any more.
func (sc *scene) done() {
	m := sc.memory
	if m.wanted > len(m.numbers) {
		m.numbers = make([]float64, m.wanted)
	}
	m.free, m.wanted = m.numbers, 0
	sc.shape.memories.Put(m)
}

// valued tells of the values that a question names in an object.
type valued struct {
	sum  float64 // of the qualities
	sole float64 // the best quality, divided among the objects that hold the value
}

func newScene(b *retrieval.Board, sh *shape) *scene {
	terms, words := b.Terms()
	m, again := sh.memories.Get().(*memory)
	if !again {
		m = new(memory)
	}
	sc := &scene{
		memory: m, shape: sh, board: b, visible: sh.sight(b.Ranked()), databases: b.Databases(), ranked: judgedTables(b), terms: terms, words: words,
		asked: map[string]bool{}, sequence: b.Sequence(),
		databaseRow: make([]int, len(sh.databases)), tableRow: make([]int, len(sh.databaseOf)), sorts: map[uint32]float64{},
	}
	for _, t := range terms {
		sc.asked[t.Text] = true
	}
	for _, d := range sc.databases[:min(judgedDatabases, len(sc.databases))] {
		sc.nameNear = append(sc.nameNear, b.NameSimilarity(d.Name))
	}
	sc.near, sc.firstOf, sc.databaseIn = m.take(len(sc.ranked)), make([]int, len(sc.ranked)), make([]int, len(sc.ranked))
	sc.rowsIn = make([][]int, len(sh.databases))
	columns := 0
	for i, t := range sc.ranked {
		d := sh.databaseOf[t.ID]
		sc.databaseIn[i] = d
		sc.rowsIn[d] = append(sc.rowsIn[d], i)
		sc.firstOf[i] = columns
		columns += sh.s.ColumnIDs(t.ID).Len()
		sc.tableRow[t.ID] = i + 1
		sc.databaseRow[d] = b.Database(t.ID) + 1
		sc.near[i] = b.Similarity(catalog.KindTable, t.ID)
	}
	sc.columnOwn = m.take(columns)
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

// weigh finds how rare each term is among the tables that the view shows, and how well each database says it.
func (sc *scene) weigh() {
	n := len(sc.terms)
	sc.worth, sc.knownIn = sc.memory.take(n), make([]int, n)
	sc.databaseBest, sc.best = sc.memory.take(len(sc.shape.databases)*n), sc.memory.take(n)
	seen, seenDatabase := make([]int32, len(sc.databaseOf)), make([]int32, len(sc.shape.databases))
	tables := float64(size(sc.s.OfKind(catalog.KindTable), sc.visible))
	var sum float64
	for i := range sc.terms {
		df := 0
		note := func(table uint32, weight float64) {
			d := sc.databaseOf[table]
			if seen[table] <= int32(i) {
				seen[table] = int32(i) + 1
				df++
				if seenDatabase[d] <= int32(i) {
					seenDatabase[d] = int32(i) + 1
					sc.knownIn[i]++
				}
			}
			m := &sc.databaseBest[d*n+i]
			*m = max(*m, weight)
			sc.best[i] = max(sc.best[i], weight)
		}
		for _, h := range sc.tableHits[i] {
			note(h.ID, h.Weight)
		}
		for hits := sc.columnHits[i]; len(hits) > 0; {
			table, most, of := sc.table(hits[0].ID), 0.0, 0
			for to := sc.s.ColumnIDs(table).To; of < len(hits) && hits[of].ID < to; of++ {
				most = max(most, hits[of].Weight)
			}
			note(table, most)
			hits = hits[of:]
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

// mark notes the strongest hit of each term by judged table and place.
func (sc *scene) mark() {
	n := len(sc.terms)
	sc.marks, sc.anywhere = sc.memory.take(len(sc.ranked)*int(places)*n), sc.memory.take(len(sc.ranked)*n)
	note := func(term, row int, p place, weight float64) {
		m := &sc.marks[(row*int(places)+int(p))*n+term]
		*m = max(*m, weight)
		if p < wholeName {
			m := &sc.anywhere[row*n+term]
			*m = max(*m, weight)
		}
	}
	rows := make([]int, len(sc.ranked)) // by table
	for i := range rows {
		rows[i] = i
	}
	slices.SortFunc(rows, func(x, y int) int { return cmp.Compare(sc.ranked[x].ID, sc.ranked[y].ID) })
	for i := range sc.terms {
		tables, columns := sc.tableHits[i], sc.columnHits[i]
		for _, row := range rows {
			t := sc.ranked[row].ID
			for tables = since(tables, t); len(tables) > 0 && tables[0].ID == t; tables = tables[1:] {
				p := tableName
				switch tables[0].Where {
				case retrieval.FieldText:
					p = tableText
				case retrieval.FieldMeaning:
					p = tableMeant
				}
				note(i, row, p, tables[0].Weight)
				sc.noteWhole(i, row, t)
			}
			of := sc.s.ColumnIDs(t)
			for columns = since(columns, of.From); len(columns) > 0 && columns[0].ID < of.To; columns = columns[1:] {
				h := columns[0]
				p := [...]place{retrieval.FieldName: columnName, retrieval.FieldText: columnText, retrieval.FieldValue: columnValue, retrieval.FieldMeaning: columnMeant}[h.Where]
				note(i, row, p, h.Weight)
				sc.columnOwn[sc.firstOf[row]+int(h.ID-of.From)] += sc.worth[i] * h.Weight
				sc.noteWhole(i, row, h.ID)
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
					if row := sc.tableRow[t]; row > 0 {
						note(i, row-1, spoken, h.Weight)
					}
				}
			}
		}
	}
}

// since returns the part of a list in id order that begins with an id, or after it.
func since(hits []retrieval.Hit, id uint32) []retrieval.Hit {
	if len(hits) == 0 || hits[0].ID >= id {
		return hits
	}
	from, to := 0, 1 // what is sought lies after from and not after to
	for to < len(hits) && hits[to].ID < id {
		from, to = to, 2*to
	}
	to = min(to, len(hits))
	for from+1 < to {
		if mid := (from + to) / 2; hits[mid].ID < id {
			from = mid
		} else {
			to = mid
		}
	}
	return hits[to:]
}

// noteWhole notes a word in the name of an object of a judged table if the question says all words of that name. Names
// of several words count more: they are seldom said by chance.
func (sc *scene) noteWhole(term, row int, id uint32) {
	name := sc.termsOf(id)
	if !slices.Contains(name, sc.terms[term].Text) {
		return
	}
	for _, w := range name {
		if !sc.asked[w] {
			return
		}
	}
	m := &sc.marksOf(row, wholeName)[term]
	*m = max(*m, 1-1/(1+float64(len(name))))
}

// said returns how strongly a judged table or its columns say each term.
func (sc *scene) said(row int) []float64 {
	n := len(sc.terms)
	return sc.anywhere[row*n:][:n]
}

// cover returns how much of the question the best table of a list of judged ones says, the best two and the best three.
func (sc *scene) cover(rows []int) (share [3]float64) {
	best := sc.memory.take(len(sc.terms))
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
