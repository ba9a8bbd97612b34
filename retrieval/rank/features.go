package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// row collects features.
type row []float32

// emptyRows returns rows for so many features each.
func emptyRows(n, features int) []row {
	all := make([]float32, n*features)
	out := make([]row, n)
	for i := range out {
		out[i] = all[i*features:][:0:features]
	}
	return out
}

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
	p = min(max(p, leastChance), 1-leastChance)
	return math.Log(p / (1 - p))
}

// rivals is how many of the best databases each is held against.
const rivals = 8

// databaseFeatures returns the features of the database at a place in databases.
func (sc *scene) databaseFeatures(at int) row {
	list := sc.databases
	r := make(row, 0, databaseFeatures)
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
	first := len(sc.ranked)
	var among [3]float64
	rows := sc.rowsIn[d]
	for _, i := range rows {
		own := sc.ranked[i].Own
		first = min(first, i)
		sum += own
		if own > best {
			best, runner = own, best
		} else {
			runner = max(runner, own)
		}
		for j, n := range [...]int{3, 10, 30} {
			if i < n {
				among[j] += 1 / float64(min(n, len(sc.ranked)))
			}
		}
	}
	top := 0.0
	for _, t := range sc.ranked {
		top = max(top, t.Own)
	}
	r.add(ratio(best, top), ratio(runner, top), ratio(best, list[at].Score), logOf(first), among[0], among[1], among[2], ratio(sum, list[at].Score))
	// What it says of the words: by place, best anywhere, alone.
	n := len(sc.terms)
	var by [places]float64
	said := sc.memory.take(n)
	for p := range places {
		clear(said)
		for _, i := range rows {
			for j, m := range sc.marksOf(i, p) {
				said[j] = max(said[j], m)
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
	// What it says better than each of the others among the best, and they better than it: twins differ in little.
	gain, loss, balance := 1.0, 0.0, 1.0
	for i := range list[:min(rivals, len(list))] {
		if i == at {
			continue
		}
		other := sc.databaseAt[list[i].Name]
		var more, less float64
		for j, m := range sc.databaseBest[d*n : d*n+sc.words] {
			if x := m - sc.databaseBest[other*n+j]; x > 0 {
				more += sc.worth[j] * x
			} else {
				less -= sc.worth[j] * x
			}
		}
		gain, loss, balance = min(gain, more), max(loss, less), min(balance, more-less)
	}
	r.add(gain, loss, balance)
	// How similar its tables are to the question.
	var near, runnerUp float64
	for _, i := range rows {
		if x := sc.near[i]; x > near {
			near, runnerUp = x, near
		} else {
			runnerUp = max(runnerUp, x)
		}
	}
	nearest, nearer := 0.0, map[int]bool{}
	for i, x := range sc.near {
		if nearest = max(nearest, x); x > near {
			nearer[sc.databaseIn[i]] = true
		}
	}
	r.add(near, runnerUp, ratio(near, nearest), logOf(len(nearer)))
	r.add(sc.valuedIn[d].sum, sc.valuedIn[d].sole)
	cover := sc.cover(rows)
	r.add(cover[:]...)
	// Whether few tables say it, or many say a word each as those of a large database do of any question.
	r.add(ratio(cover[0], share), ratio(cover[2], share), logOf(size(sc.columnsIn(d), sc.visible)))
	// Its name.
	most, nearerNames := 0.0, 0
	for _, x := range sc.nameNear {
		if most = max(most, x); x > sc.nameNear[at] {
			nearerNames++
		}
	}
	r.add(sc.nameNear[at], ratio(sc.nameNear[at], most), logOf(nearerNames))
	named, words := sc.covered(sc.termsOfDatabase[d])
	r.add(named, words, logOf(size(sc.tablesOf[d], sc.visible)), sc.known, logOf(sc.words))
	return r
}

// judged is a probability with what it is of, for the features of what lies below.
type judged struct {
	p     []float64 // by place in the base's list
	rank  []int     // by place
	best  float64
	given []float64 // by place: of tables, if the answer lies in their database
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

// tableFeatures returns the features of the table at a place in ranked, as one of its database: how sure the
// database is stays out of them, so that what is learned of tables does not depend on how many databases there are.
func (sc *scene) tableFeatures(at int) row {
	list := sc.ranked
	t := list[at]
	o := sc.s.Object(t.ID)
	d := sc.databaseIn[at]
	rows := sc.rowsIn[d]
	r := make(row, 0, tableFeatures)
	score := 0.0
	if row := sc.databaseRow[d]; row > 0 {
		score = sc.databases[row-1].Score
	}
	var top, second float64
	above, here := 0, len(rows)
	for _, i := range rows {
		u := &list[i]
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
		for _, i := range rows {
			if list[i].Own > t.Own && sc.said(i)[j] >= 0.8*m {
				elsewhere = true
				break
			}
		}
		if !elsewhere {
			sole += sc.worth[j] * m
		}
	}
	r.add(share, count, wins, sole, strong, first)
	closer, nearest := 0, 0.0
	for _, i := range rows {
		if sc.near[i] > sc.near[at] {
			closer++
		}
		nearest = max(nearest, sc.near[i])
	}
	r.add(sc.near[at], ratio(sc.near[at], nearest), logOf(closer))
	r.add(sc.valued[t.ID].sum, sc.valued[t.ID].sole)
	named, words := sc.covered(sc.termsOf(t.ID))
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
	r.add(logOf(all), logOf(near), logOf(size(sc.s.ColumnIDs(t.ID), sc.visible)), logOf(size(sc.tablesOf[d], sc.visible)), sc.known, logOf(sc.words))
	return r
}

// opened returns the columns to judge of a table, by id.
func (sc *scene) opened(table uint32) []uint32 {
	r := sc.s.ColumnIDs(table)
	named, rest := make([]uint32, 0, r.Len()), make([]uint32, 0, r.Len())
	for ; r.From < r.To; r.From++ {
		if !sc.visible.Contains(r.From) {
			continue
		}
		if at, _ := sc.place(r.From); sc.columnOwn[at] > 0 {
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
	table                      int        // place in ranked
	by                         [4]float64 // by field
	share, count, wins, strong float64
}

// hitOn is a hit of a term in a candidate.
type hitOn struct {
	candidate int32
	where     retrieval.Field
	weight    float64
}

// candidates lists the columns of the tables thought best, with what the question's words say of them.
func (sc *scene) candidates(databases, tables judged) []candidate {
	var out []candidate
	var opened []int                           // places in ranked
	places := make([]int32, len(sc.columnOwn)) // by place of a column: 1 + its place in out
	order := make([]int, len(tables.p))
	for i, r := range tables.rank {
		order[r] = i
	}
	// The likeliest tables, and the likeliest few of each of the best databases: so that those can be told apart by columns.
	in := map[int]int{}
	for _, row := range order {
		d := sc.databaseIn[row]
		if place := sc.databaseRow[d] - 1; len(opened) >= openedTables && (place < 0 || place >= len(databases.rank) || databases.rank[place] >= openedDatabases || in[d] >= openedOfEach) {
			continue
		}
		opened = append(opened, row)
		in[d]++
		columns := sc.opened(sc.ranked[row].ID)
		out = slices.Grow(out, len(columns))
		for _, c := range columns {
			out = append(out, candidate{id: c, table: row})
			at, _ := sc.place(c)
			places[at] = int32(len(out))
		}
	}
	slices.SortFunc(opened, func(x, y int) int { return cmp.Compare(sc.ranked[x].ID, sc.ranked[y].ID) })
	sc.hitsOn = make([][]hitOn, len(sc.columnHits))
	for i, hits := range sc.columnHits {
		var on []hitOn
		for _, row := range opened {
			from, best := len(on), 0.0
			of := sc.s.ColumnIDs(sc.ranked[row].ID)
			for hits = since(hits, of.From); len(hits) > 0 && hits[0].ID < of.To; hits = hits[1:] {
				h := hits[0]
				if place := places[sc.firstOf[row]+int(h.ID-of.From)]; place > 0 {
					on = append(on, hitOn{place - 1, h.Where, h.Weight})
					best = max(best, h.Weight)
				}
			}
			for _, h := range on[from:] {
				c := &out[h.candidate]
				x := sc.worth[i] * h.weight
				c.by[h.where] += x
				c.share += x
				c.strong = max(c.strong, x)
				if i < sc.words && h.weight > 0.05 {
					c.count++
				}
				if h.weight >= best {
					c.wins += sc.worth[i]
				}
			}
		}
		sc.hitsOn[i] = on
	}
	return out
}

// columnFeatures returns the features of candidates.
func (sc *scene) columnFeatures(list []candidate, databases, tables judged) []row {
	var top float64
	topHere := sc.memory.take(len(sc.ranked))
	for _, c := range list {
		top = max(top, c.share)
		topHere[c.table] = max(topHere[c.table], c.share)
	}
	shares := sc.memory.take(len(list))
	for i, c := range list {
		shares[i] = c.share
	}
	ranks := newJudged(shares)
	near := sc.memory.take(len(list))
	nearest, nearestHere := 0.0, sc.memory.take(len(sc.ranked))
	for i, c := range list {
		near[i] = sc.board.Similarity(catalog.KindColumn, c.id)
		nearestHere[c.table] = max(nearestHere[c.table], near[i])
		nearest = max(nearest, near[i])
	}
	nearRank := newJudged(near)
	sorts := sc.memory.take(len(sc.ranked))
	for _, c := range list {
		sorts[c.table] = max(sorts[c.table], sc.sorts[c.id])
	}
	hereSeen := make([]int, len(sc.ranked))
	rankHere := make([]int, len(list))
	order := make([]int, len(list))
	for i, r := range ranks.rank {
		order[r] = i
	}
	for _, i := range order {
		rankHere[i] = hereSeen[list[i].table]
		hereSeen[list[i].table]++
	}
	out := emptyRows(len(list), columnFeatures)
	for i, c := range list {
		o := sc.s.Object(c.id)
		t := &sc.ranked[c.table]
		r := out[i]
		databases.add(&r, sc.databaseRow[sc.databaseIn[c.table]]-1)
		tables.add(&r, c.table)
		r.add(ratio(c.share, top), logOf(ranks.rank[i]), ratio(c.share, topHere[c.table]), logOf(rankHere[i]))
		r.add(c.by[:]...)
		r.add(c.share, ratio(c.count, float64(sc.words)), c.wins, c.strong)
		r.add(near[i], ratio(near[i], nearestHere[c.table]), ratio(near[i], nearest), logOf(nearRank.rank[i]))
		r.add(sc.sorts[c.id], ratio(sc.sorts[c.id], sorts[c.table]))
		r.add(sc.valued[c.id].sum, sc.valued[c.id].sole)
		verbatim := 0.0
		name, tableName := sc.termsOf(c.id), sc.termsOf(t.ID)
		if sc.verbatim(name) {
			verbatim = float64(len(name))
		}
		r.add(verbatim)
		named, words := sc.covered(name)
		// Words of the name that are in the question or the table's name: the id of "race" in the table "races".
		within := 0.0
		for _, w := range name {
			if sc.asked[w] || slices.Contains(tableName, w) {
				within += ratio(1, words)
			}
		}
		tableNamed, _ := sc.covered(tableName)
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
		for _, w := range name {
			switch w {
			case "name", "titl":
				isName = 1
			case "id":
				isID = 1
			}
		}
		all, near := sc.namesakes(o)
		columns := sc.s.ColumnIDs(t.ID)
		visible, before := size(columns, sc.visible), size(catalog.Range{From: columns.From, To: c.id}, sc.visible)
		r.add(isName, isID, logOf(all), logOf(near), logOf(visible), ratio(float64(before), float64(visible)), sc.known, logOf(sc.words))
		out[i] = r
	}
	return out
}

// tableAgainFeatures returns the features of the judged tables once their columns are judged: what a question needs of a
// table shows in the columns that it needs (the second round of MDB-Link).
func (sc *scene) tableAgainFeatures(list []candidate, columns []float64, tables judged) []row {
	n := len(tables.p)
	sums := make([]columnSum, n)
	for i, c := range list {
		sums[c.table].add(columns[i])
	}
	// The table whose column says a term best, and is likely.
	for j, hits := range sc.hitsOn {
		best, in := 0.0, -1
		for _, h := range hits {
			if x := columns[h.candidate] * h.weight; x > best {
				best, in = x, list[h.candidate].table
			}
		}
		if in >= 0 {
			sums[in].wins += sc.worth[j]
		}
	}
	out := emptyRows(n, tableAgainFeatures)
	for i := range out {
		t, own := &sc.ranked[i], sums[i]
		most, given := own, tables.given[i] // of the tables of the database
		var better, fuller, likelier int
		for _, k := range sc.rowsIn[sc.databaseIn[i]] {
			if k == i {
				continue
			}
			other := sums[k]
			most.best, most.expected, given = max(most.best, other.best), max(most.expected, other.expected), max(given, tables.given[k])
			if other.best > own.best {
				better++
			}
			if other.expected > own.expected {
				fuller++
			}
			if tables.given[k] > tables.given[i] {
				likelier++
			}
		}
		r := out[i]
		r.add(logit(tables.given[i]), logOf(likelier), ratio(tables.given[i], given))
		r.add(logit(own.best), logit(own.second), own.expected, own.any, own.wins, float64(own.many))
		r.add(ratio(own.best, most.best), logOf(better), ratio(own.expected, most.expected), logOf(fuller))
		// Whether it ties tables together that are needed themselves.
		var one, two float64
		needed := 0
		for _, j := range sc.joins[t.ID] {
			if j.table == t.ID || !sc.visible.Contains(j.relationship) {
				continue
			}
			if row := sc.tableRow[j.table]; row > 0 && row <= n {
				g := tables.given[row-1]
				if g > one {
					one, two = g, one
				} else {
					two = max(two, g)
				}
				if g > likely {
					needed++
				}
			}
		}
		named, words := sc.covered(sc.termsOf(t.ID))
		r.add(one, two, float64(needed), named, words, logOf(size(sc.s.ColumnIDs(t.ID), sc.visible)), sc.known, logOf(sc.words))
		out[i] = r
	}
	return out
}

// From these probabilities on, a table is counted as needed and a column as one that may well be.
const (
	likely    = 0.5
	wellMayBe = 0.3
)

// columnSum sums the probabilities of a table's columns.
type columnSum struct {
	best, second float64
	expected     float64 // number of columns that are needed
	any          float64 // that any is
	wins         float64 // worth of the words that a column of it says best
	many         int     // columns that may well be needed
}

func (s *columnSum) add(p float64) {
	if p > s.best {
		s.best, s.second = p, s.best
	} else {
		s.second = max(s.second, p)
	}
	s.expected += p
	s.any += (1 - s.any) * p
	if p > wellMayBe {
		s.many++
	}
}

// databaseAgainFeatures returns the features of the judged databases once their tables and columns are judged (the
// second round of MDB-Link): near-twins differ in a few columns, and only what the question needs of those counts.
func (sc *scene) databaseAgainFeatures(databases, tables judged, list []candidate, columns []float64) []row {
	sums := make([]databaseSum, len(databases.p))
	for i := range sums {
		sums[i].said = sc.memory.take(len(sc.terms))
	}
	// The place in databases of that of a judged table, below zero if it was not judged.
	place := func(table int) int {
		row := sc.databaseRow[sc.databaseIn[table]] - 1
		if row >= len(sums) {
			return -1
		}
		return row
	}
	for i, g := range tables.given {
		if at := place(i); at >= 0 {
			sums[at].addTable(g)
		}
	}
	given := sc.memory.take(len(list)) // of the columns, if the answer lies in their database
	for i, c := range list {
		if d := place(c.table); d >= 0 {
			given[i] = min(1, columns[i]/max(leastGiven, databases.p[d]))
			sums[d].column = max(sums[d].column, given[i])
			sums[d].expected += given[i]
		}
	}
	for j, hits := range sc.hitsOn {
		for _, h := range hits {
			if d := place(list[h.candidate].table); d >= 0 {
				sums[d].said[j] = max(sums[d].said[j], h.weight*given[h.candidate])
			}
		}
	}
	var most databaseSum
	for i := range sums {
		s := &sums[i]
		for j, m := range s.said {
			s.share += sc.worth[j] * m
		}
		most.share, most.column, most.expected = max(most.share, s.share), max(most.column, s.column), max(most.expected, s.expected)
		most.given[0] = max(most.given[0], s.given[0])
	}
	out := emptyRows(len(sums), databaseAgainFeatures)
	for i, s := range sums {
		sayMore, needMore, rival := 0, 0, -1
		for k, other := range sums {
			if other.share > s.share {
				sayMore++
			}
			if other.expected > s.expected {
				needMore++
			}
			if k != i && (rival < 0 || databases.p[k] > databases.p[rival]) {
				rival = k
			}
		}
		// What its likely columns say better than those of the likeliest other, and what they say worse.
		var more, less, likelihood float64
		if rival >= 0 {
			likelihood = databases.p[rival]
			for j, m := range s.said {
				more += sc.worth[j] * max(0, m-sums[rival].said[j])
				less += sc.worth[j] * max(0, sums[rival].said[j]-m)
			}
		}
		r := out[i]
		databases.add(&r, i)
		r.add(logit(likelihood))
		r.add(s.given[:]...)
		r.add(ratio(s.given[0], most.given[0]), s.column, s.expected, ratio(s.column, most.column), ratio(s.expected, most.expected), logOf(needMore))
		r.add(s.share, ratio(s.share, most.share), logOf(sayMore), more, less, sc.known, logOf(sc.words))
		out[i] = r
	}
	return out
}

// leastGiven is the least probability of a database that those of its columns are divided by.
const leastGiven = 0.02

// databaseSum sums what is thought of a database's tables and columns, as if the answer lay in it.
type databaseSum struct {
	given    [3]float64 // the likeliest tables
	column   float64    // the likeliest column
	expected float64    // number of columns that are needed
	said     []float64  // by term: how well likely columns say it
	share    float64    // of the question that they say
}

func (s *databaseSum) addTable(given float64) {
	for i := range s.given {
		if given > s.given[i] {
			s.given[i], given = given, s.given[i]
		}
	}
}
