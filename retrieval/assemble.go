package retrieval

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/lineage"
	"github.com/schemagate/schemagate/templates"
)

// The shares of the budget in percent (Schema-First Retrieval, section 3.3), in the order in which they are spent:
// what a kind leaves over goes to the next, and columns, of which there are never enough, get the last of it.
const (
	joinShare         = 5
	metricBudgetShare = 10
	queryBudgetShare  = 20
	tableBudgetShare  = 30
	columnBudgetShare = 35
)

// sheet is a context in the making. Whatever cannot be written as SQL of its dialect has no place on it.
type sheet struct {
	*chooser
	view    acl.View
	meter   *meter
	sizes   *tally
	limit   int // of tokens, for the whole
	left    int // of tokens, of the shares that were handed out so far
	tables  []*sheetTable
	joins   []sheetPart[Join]
	metrics []sheetPart[Item]
	queries []sheetPart[Item]
}

// sheetPart is a piece of text with the entry that stands for it.
type sheetPart[T any] struct {
	entry T
	text  string
}

// sheetTable is a table with the columns that it got so far.
type sheetTable struct {
	scored  Scored
	object  catalog.Object
	dialect catalog.Dialect
	columns []sheetColumn
}

type sheetColumn struct {
	object *catalog.Object
	item   Item
}

// assemble writes a selection within the budget.
func (l *Linker) assemble(out Context, c *chooser, v acl.View) Context {
	s := &sheet{chooser: c, view: v, meter: l.meter}
	s.sizes, _ = l.sizes.Get(context.Background(), v.Key(), func(context.Context) (*tally, error) { return new(tally), nil })
	s.limit = max(0, l.config.Budget-l.config.Prompt-s.meter.tokens(out.Question))
	whole := c.strategy != Whole && s.widen()
	c.ground(whole || c.strategy != Retrieval)
	sel := &c.sel
	out.Database = sel.database
	out.Dialect = s.dialect(sel.database)
	s.spend(joinShare)
	for _, j := range sel.joins {
		s.addJoin(j)
	}
	s.spend(metricBudgetShare)
	s.metrics = s.speakers(sel.metrics, templates.Metric)
	s.spend(queryBudgetShare)
	s.queries = s.speakers(sel.queries, templates.Query)
	s.spend(tableBudgetShare)
	s.addTables(sel)
	s.spend(columnBudgetShare)
	if len(s.tables) == 0 {
		for _, t := range sel.tables {
			if s.addTable(t, sel, true); len(s.tables) > 0 {
				break
			}
		}
	}
	s.dropLooseJoins()
	for _, j := range sel.joins {
		s.addJoin(j) // one that was too long for its share alone
	}
	s.dropLooseJoins()
	s.fill(sel)
	s.addTables(sel) // what columns left over
	s.fill(sel)
	slices.SortStableFunc(s.tables, func(a, b *sheetTable) int { return byScore(a.scored, b.scored) })
	text := s.text()
	size := s.meter.tokens(text)
	for size > s.limit && s.dropLast() {
		s.dropLooseJoins()
		text = s.text()
		size = s.meter.tokens(text)
	}
	if len(s.tables) == 0 {
		out.Database, out.Dialect = "", ""
		out.Nothing = "no table that fits the question can be written within the budget of tokens"
		return out
	}
	for _, p := range s.metrics {
		out.Items = append(out.Items, p.entry)
	}
	for _, t := range s.tables {
		it := s.item(t.scored, t.object.Ref)
		if it.Reason == "" {
			it.Reason = "stands in " + t.object.Ref.Database
		}
		for _, m := range s.members[t.scored.ID] {
			it.Members = append(it.Members, s.s.Object(m).Ref)
		}
		out.Items = append(out.Items, it)
		slices.SortStableFunc(t.columns, func(a, b sheetColumn) int { return cmp.Compare(b.item.Score, a.item.Score) })
		for _, c := range t.columns {
			out.Items = append(out.Items, c.item)
		}
	}
	for _, p := range s.queries {
		out.Items = append(out.Items, p.entry)
	}
	for _, p := range s.joins {
		out.Joins = append(out.Joins, p.entry)
	}
	out.Text, out.Tokens = text, size
	if whole {
		out.Because += "; all of the database " + sel.database + " fits the budget"
	}
	return out
}

// widen takes all tables of the database in if they are few enough to be given whole and fit the shares of the budget
// that tables and columns have.
func (s *sheet) widen() bool {
	tables, columns := s.wholeDatabase()
	if columns > wholeColumns {
		return false
	}
	left := (tableBudgetShare + columnBudgetShare) * s.limit / 100
	for _, t := range tables {
		size, _ := s.sizes.tokens(countedOf(t.ID, formWhole), func() (int, bool) { return s.wholeTable(t.ID) })
		if left -= size; left < 0 {
			return false
		}
	}
	s.sel.tables = tables
	return true
}

// wholeTable returns the size of a table with all its columns, and false if it cannot be written.
func (s *sheet) wholeTable(id uint32) (tokens int, ok bool) {
	o, ok := s.tableObject(id)
	if !ok {
		return 0, false
	}
	var in []*catalog.Object
	for r := s.s.ColumnIDs(id); r.From < r.To; r.From++ {
		if c, ok := s.object(r.From); ok {
			in = append(in, &c)
		}
	}
	text, err := templates.DDL(s.dialect(o.Ref.Database), &o, in, s.queryable)
	if err != nil {
		return 0, false
	}
	return s.meter.tokens(text+"\n") + len(in), true
}

// tableObject returns a table as the context shows it, with a word on those that are like it.
func (s *sheet) tableObject(id uint32) (catalog.Object, bool) {
	o, ok := s.object(id)
	if alike := s.say(s.s, id); alike != "" {
		o.Description = strings.TrimSuffix(alike+"; "+o.Description, "; ")
	}
	return o, ok
}

func (s *sheet) spend(share int) { s.left += share * s.limit / 100 }

// afford takes the tokens out of what is left, if that is enough.
func (s *sheet) afford(tokens int) bool {
	if tokens > s.left {
		return false
	}
	s.left -= tokens
	return true
}

func (s *sheet) dialect(database string) catalog.Dialect {
	d, _ := s.s.Database(database)
	return d.Dialect
}

// queryable reports whether a statement may name what r names.
func (s *sheet) queryable(r catalog.Ref) bool {
	id, ok := s.s.ID(r)
	return ok && s.askable.Contains(id)
}

// object returns an object as the context may show it: without anything that no statement may name.
func (s *sheet) object(id uint32) (o catalog.Object, ok bool) {
	if o, ok = s.view.Object(id); !ok || !s.askable.Contains(id) {
		return catalog.Object{}, false
	}
	if o.Table != nil {
		o = s.s.Prune(&o, s.queryable)
	}
	return o, true
}

// item is the entry for an object. Its reason is what was found before, or else the evidence.
func (s *sheet) item(x Scored, ref catalog.Ref) Item {
	if x.Evidence == nil {
		x.Evidence = s.evidence(s.leader(x.ID))
	}
	it := Item{ID: x.ID, Ref: ref, Score: round(x.Score), Parts: Parts{Own: round(x.Own)}, Reason: reason(s.s, s.leader(x.ID), x.Evidence)}
	if ref.Kind == catalog.KindColumn {
		it.Parts.Table = round(s.tableScored(s.leader(s.table(x.ID))).Own)
	}
	for _, d := range s.databases {
		if d.name == ref.Database {
			it.Parts.Database = round(d.score)
			break
		}
	}
	return it
}

// addJoin adds a join, unless it is there, if there is room for it.
func (s *sheet) addJoin(j lineage.Join) {
	o, ok := s.object(j.Relationship)
	if !ok || slices.ContainsFunc(s.joins, func(p sheetPart[Join]) bool { return p.entry.ID == o.ID }) {
		return
	}
	to := s.s.Object(j.To).Ref
	text, err := templates.Join(s.dialect(to.Database), &o, to)
	if err != nil || !s.afford(s.meter.tokens(text)) {
		return
	}
	near, far := o.Relationship.From, o.Relationship.To
	if far[0].TableRef() != to {
		near, far = far, near
	}
	s.joins = append(s.joins, sheetPart[Join]{Join{ID: o.ID, Ref: o.Ref, From: near, To: far, Cardinality: j.Cardinality}, text})
}

// speakers writes metrics or past queries, as many as the tokens allow.
func (s *sheet) speakers(list []Scored, write func(catalog.Dialect, *catalog.Object) (string, error)) []sheetPart[Item] {
	var out []sheetPart[Item]
	for _, x := range list {
		o, ok := s.object(x.ID)
		if !ok {
			continue
		}
		text, err := write(s.dialect(o.Names()[0].Database), &o)
		if err == nil && s.afford(s.meter.tokens(text)) {
			out = append(out, sheetPart[Item]{s.item(x, o.Ref), text})
		}
	}
	return out
}

// addTables adds the tables that there is room for. Those that hold the others together come first: a lesser one is no
// use if it is all there is room for.
func (s *sheet) addTables(sel *selection) {
	for _, core := range [...]bool{true, false} {
		for _, t := range sel.tables {
			if sel.core[t.ID] == core && !slices.ContainsFunc(s.tables, func(in *sheetTable) bool { return in.scored.ID == t.ID }) {
				s.addTable(t, sel, false)
			}
		}
	}
}

// addTable adds a table with the columns that joins and metrics need and its best few, if there is room for all of
// them; in part, it adds as many of them as there is room for.
func (s *sheet) addTable(x Scored, sel *selection, inPart bool) {
	o, ok := s.tableObject(x.ID)
	if !ok {
		return
	}
	t := &sheetTable{scored: x, object: o, dialect: s.dialect(o.Ref.Database)}
	size, ok := s.sizes.tokens(countedOf(x.ID, formAlone), func() (int, bool) {
		text, err := templates.DDL(t.dialect, &o, nil, s.queryable)
		return s.meter.tokens(text + "\n"), err == nil
	})
	if !ok {
		return
	}
	before := s.left
	if !s.afford(size) {
		return
	}
	whole := true
	add := func(c Scored) {
		if !s.addColumn(t, c, sel) {
			whole = false
		}
	}
	inherited := s.inherited(s.leader(x.ID))
	for r := s.s.ColumnIDs(x.ID); r.From < r.To; r.From++ {
		if sel.needed[r.From].why != "" && s.askable.Contains(r.From) {
			add(s.columnOf(r.From, inherited))
		}
	}
	for _, c := range sel.columns[x.ID] {
		if len(t.columns) >= leastColumns {
			break
		}
		add(c)
	}
	if len(t.columns) > 0 && (whole || inPart) {
		s.tables = append(s.tables, t)
	} else {
		s.left = before
	}
}

// addColumn adds a column to its table, unless it is there, and reports false if there is no room for it.
func (s *sheet) addColumn(t *sheetTable, x Scored, sel *selection) bool {
	if slices.ContainsFunc(t.columns, func(c sheetColumn) bool { return c.item.ID == x.ID }) {
		return true
	}
	o, ok := s.object(x.ID)
	if !ok {
		return true
	}
	size, ok := s.sizes.tokens(countedOf(x.ID, formAlone), func() (int, bool) { return s.columnAlone(t, &o) })
	if !ok {
		return true // no statement can name it
	}
	if !s.afford(size) {
		return false
	}
	x.Evidence = s.evidence(s.leader(x.ID))
	it, needed := s.item(x, o.Ref), sel.needed[x.ID]
	if it.Role = needed.role; it.Role == "" {
		it.Role = s.sentence.role(o.Ref.Column, x.Evidence)
	}
	switch {
	case it.Reason == "" && needed.why == "":
		it.Reason = "stands in " + t.object.Ref.String()
	case it.Reason == "":
		it.Reason = needed.why
	case needed.why != "":
		it.Reason += "; " + needed.why
	}
	t.columns = append(t.columns, sheetColumn{&o, it})
	return true
}

// columnAlone returns how many tokens a column adds to its table, and false if it cannot be written. Keys that it makes
// with others are not counted.
func (s *sheet) columnAlone(t *sheetTable, column *catalog.Object) (tokens int, ok bool) {
	if _, err := templates.Quote(t.dialect, column.Ref.Column); err != nil {
		return 0, false
	}
	bare := catalog.Object{Ref: t.object.Ref, Table: &catalog.Table{PrimaryKey: t.object.Table.PrimaryKey, ForeignKeys: t.object.Table.ForeignKeys}}
	without, err := templates.DDL(t.dialect, &bare, nil, s.queryable)
	if err != nil {
		return 0, false
	}
	with, err := templates.DDL(t.dialect, &bare, []*catalog.Object{column}, s.queryable)
	if err != nil {
		return 0, false
	}
	// With others beside it the column takes a comma more.
	return s.meter.tokens(with) - s.meter.tokens(without) + 1, true
}

// fill adds columns, the best over all tables first, for as long as there is room.
func (s *sheet) fill(sel *selection) {
	var rest []Scored
	tables := map[uint32]*sheetTable{}
	for _, t := range s.tables {
		tables[t.scored.ID] = t
		rest = append(rest, sel.columns[t.scored.ID]...)
	}
	slices.SortFunc(rest, byScore)
	for _, c := range rest {
		if !s.addColumn(tables[s.table(c.ID)], c, sel) {
			return
		}
	}
}

// dropLooseJoins drops joins of which one table did not get in.
func (s *sheet) dropLooseJoins() {
	in := map[catalog.Ref]bool{}
	for _, t := range s.tables {
		in[t.object.Ref] = true
	}
	s.joins = slices.DeleteFunc(s.joins, func(p sheetPart[Join]) bool {
		loose := !in[p.entry.From[0].TableRef()] || !in[p.entry.To[0].TableRef()]
		if loose {
			s.left += s.meter.tokens(p.text)
		}
		return loose
	})
}

// dropLast takes off what came last, for the rare case that keys of several columns make a table longer than its
// columns are one by one. It reports false if nothing is left to drop.
func (s *sheet) dropLast() bool {
	if len(s.tables) == 0 {
		return false
	}
	t := s.tables[len(s.tables)-1]
	for _, other := range slices.Backward(s.tables) {
		if len(other.columns) > len(t.columns) {
			t = other
		}
	}
	if t.columns = t.columns[:len(t.columns)-1]; len(t.columns) == 0 {
		s.tables = slices.DeleteFunc(s.tables, func(other *sheetTable) bool { return other == t })
	}
	return true
}

func (s *sheet) text() string {
	var blocks []string
	for _, t := range s.tables {
		columns := make([]*catalog.Object, len(t.columns))
		for i, c := range t.columns {
			columns[i] = c.object
		}
		slices.SortFunc(columns, func(a, b *catalog.Object) int { return cmp.Compare(a.ID, b.ID) })
		if text, err := templates.DDL(t.dialect, &t.object, columns, s.queryable); err == nil {
			blocks = append(blocks, text)
		}
	}
	var joins, metrics, queries strings.Builder
	for _, p := range s.joins {
		joins.WriteString(p.text)
	}
	for _, p := range s.metrics {
		metrics.WriteString(p.text)
	}
	for _, p := range s.queries {
		queries.WriteString(p.text)
	}
	for _, text := range [...]string{joins.String(), metrics.String(), queries.String()} {
		if text != "" {
			blocks = append(blocks, text)
		}
	}
	return strings.Join(blocks, "\n")
}

func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
