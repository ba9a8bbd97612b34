package retrieval

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/lineage"
	"github.com/schemagate/schemagate/templates"
)

// Strategy is the way in which a context was chosen.
type Strategy string

// The strategies. Whole takes everything there is, Retrieval ranks and selects.
const (
	Whole     Strategy = "whole"
	Retrieval Strategy = "retrieval"
)

// A catalog of at most this size is given whole (AskTable's first strategy).
const (
	wholeTables  = 3
	wholeColumns = 100
)

// Bounds of a selection: the paper's final numbers of tables and columns, and shares of the best score below which
// an object is noise. tableShare and leastCoverage were chosen on the training sets (see eval's summary).
const (
	maxTables     = 20
	maxColumns    = 50
	leastColumns  = 3 // of each table that was selected
	maxMetrics    = 5
	maxQueries    = 5
	tableShare    = 0.2
	withheldShare = 0.45 // for the audit, which wants what mattered
	metricShare   = 0.5
	queryShare    = 0.5
	tiedTables    = 5 // the best tables, which are tied together by joins
	tiedShare     = 0.6
	mostReasons   = 4    // in the reason of an item
	leastCoverage = 0.14 // below it nothing fits
)

// Config bounds a linker.
type Config struct {
	// Budget is the size of a context in tokens.
	Budget int
}

// DefaultConfig is the paper's budget.
var DefaultConfig = Config{Budget: 5000}

// Validate reports what is wrong with the configuration.
func (c Config) Validate() error {
	if c.Budget < 200 {
		return fmt.Errorf("retrieval: a budget of %d tokens holds no table; give at least 200", c.Budget)
	}
	return nil
}

// Linker links questions to one snapshot. It is safe for concurrent use.
type Linker struct {
	index  Index
	graph  *lineage.Graph
	meter  *meter
	config Config
	shapes atomic.Pointer[shape]
}

// NewLinker makes a linker of the index and join graph of one snapshot.
func NewLinker(x Index, g *lineage.Graph, t *templates.Counter, c Config) (*Linker, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Linker{index: x, graph: g, meter: newMeter(t), config: c}, nil
}

// shape returns the shape of the snapshot that the linker serves.
func (l *Linker) shape(s *catalog.Snapshot) *shape {
	sh := l.shapes.Load()
	if sh == nil || sh.s != s {
		sh = newShape(s)
		l.shapes.Store(sh)
	}
	return sh
}

// Context is what a question needs of the catalog, as one principal may see it.
type Context struct {
	Question string
	Strategy Strategy
	// Because says why that strategy ran.
	Because string
	// Database is where the answer lies; it is empty if nothing fits.
	Database string
	Dialect  catalog.Dialect
	// Items are the objects: metrics, tables with their columns, past queries, each kind best first.
	Items []Item
	Joins []Join
	// Text is the context as whoever writes SQL reads it, and Tokens its size.
	Text   string
	Tokens int
	// Nothing says why the context is empty.
	Nothing string
}

// Item is an object of a context.
type Item struct {
	ID     uint32
	Ref    catalog.Ref
	Score  float64
	Reason string
}

// Join is a step of a join path in a context.
type Join struct {
	ID          uint32 // of the relationship
	Ref         catalog.Ref
	From, To    []catalog.Ref
	Cardinality catalog.Cardinality
}

// IDs returns the ids of the context's objects of a kind, best first.
func (c Context) IDs(k catalog.Kind) []uint32 {
	var out []uint32
	for _, it := range c.Items {
		if it.Ref.Kind == k {
			out = append(out, it.ID)
		}
	}
	return out
}

// Link builds the context of a question from what the view lets be queried.
func (l *Linker) Link(ctx context.Context, question string, v acl.View) (Context, error) {
	if err := ctx.Err(); err != nil {
		return Context{}, err
	}
	out := Context{Question: question, Strategy: Retrieval}
	s := v.Snapshot()
	if s == nil {
		out.Nothing = "nothing here is available to you"
		return out, nil
	}
	b := newBoard(question, l.index, l.shape(s), v)
	tables, columns := b.count(catalog.KindTable), b.count(catalog.KindColumn)
	how := "too many to give whole"
	if tables <= wholeTables && columns <= wholeColumns {
		out.Strategy = Whole
		how = "few enough to give whole"
	}
	out.Because = fmt.Sprintf("%s and %s are %s", plural(tables, "table"), plural(columns, "column"), how)
	switch {
	case tables == 0:
		out.Nothing = "nothing here is available to you"
		return out, nil
	case len(b.databases) == 0:
		out.Nothing = "no word of the question is known to the catalog that you may see"
		return out, nil
	case b.coverage < leastCoverage:
		out.Nothing = "too little of the question is known to the catalog that you may see"
		return out, nil
	}
	return l.assemble(out, l.choose(b, out.Strategy), b, v), nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// selection is what a context is made of, before its size is known. Tables, metrics and queries are best first.
type selection struct {
	database string
	tables   []Scored
	core     map[uint32]bool     // tables without which the others, or the metrics, say little
	columns  map[uint32][]Scored // by table, best first
	needed   map[uint32]string   // columns that joins and metrics need, with the reason
	metrics  []Scored
	queries  []Scored
	joins    []lineage.Join
}

func (l *Linker) choose(b *board, strategy Strategy) selection {
	s := b.s
	sel := selection{database: b.databases[0].name, core: map[uint32]bool{}, columns: map[uint32][]Scored{}, needed: map[uint32]string{}}
	near := b.connected(sel.database)
	inside := func(x Scored) bool {
		return !slices.ContainsFunc(s.Object(x.ID).Names(), func(ref catalog.Ref) bool { return !near[ref.Database] })
	}
	var ranked []Scored
	for _, d := range b.databases {
		if near[d.name] {
			for _, t := range b.ranked[d.from:d.to] {
				ranked = append(ranked, b.tableScored(t))
			}
		}
	}
	slices.SortFunc(ranked, byScore)
	if strategy == Whole {
		for r := s.OfKind(catalog.KindTable); r.From < r.To; r.From++ {
			if b.visible.Contains(r.From) && b.row[r.From] == 0 && near[s.Object(r.From).Ref.Database] {
				ranked = append(ranked, Scored{ID: r.From})
			}
		}
		sel.tables = ranked
	} else {
		sel.tables = worthy(ranked, tableShare, maxTables)
	}
	metrics, queries := b.speakersScored(catalog.KindMetric), b.speakersScored(catalog.KindQuery)
	sel.metrics = worthy(slices.DeleteFunc(metrics, func(x Scored) bool { return !inside(x) }), metricShare, maxMetrics)
	sel.queries = worthy(slices.DeleteFunc(queries, func(x Scored) bool { return !inside(x) }), queryShare, maxQueries)

	chosen := map[uint32]bool{}
	for _, t := range sel.tables {
		chosen[t.ID] = true
	}
	add := func(table uint32, why Evidence) {
		if !chosen[table] {
			chosen[table] = true
			x := b.tableScored(table)
			x.Evidence = []Evidence{why}
			sel.tables = append(sel.tables, x)
		}
		sel.core[table] = true
	}
	var tied []uint32
	for _, t := range sel.tables {
		if len(tied) < tiedTables && t.Own >= tiedShare*sel.tables[0].Own {
			tied = append(tied, t.ID)
		}
	}
	for i, m := range sel.metrics {
		o := s.Object(m.ID)
		for _, ref := range o.Names() {
			id, ok := s.ID(ref)
			if !ok {
				continue
			}
			if ref.Kind == catalog.KindColumn {
				sel.needed[id] = "needed by " + o.Ref.String()
				id = b.table(id)
			}
			add(id, Evidence{By: m.ID})
		}
		if i == 0 {
			for _, t := range b.spokenFor(m.ID) {
				if !slices.Contains(tied, t) {
					tied = append(tied, t)
				}
			}
		}
	}
	x := l.graph.Expand(tied, b.visible.Contains)
	sel.joins = x.Joins
	for _, t := range x.Bridges {
		add(t, Evidence{By: t})
	}
	for _, j := range x.Joins {
		rel := s.Object(j.Relationship).Relationship
		sel.core[j.From], sel.core[j.To] = true, true
		for _, ref := range slices.Concat(rel.From, rel.To) {
			if id, ok := s.ID(ref); ok && sel.needed[id] == "" {
				sel.needed[id] = "joins " + s.Object(j.From).Ref.String() + " and " + s.Object(j.To).Ref.String()
			}
		}
	}
	slices.SortStableFunc(sel.tables, byScore)
	sel.core[sel.tables[0].ID] = true
	b.ground(&sel, strategy)
	return sel
}

// ground chooses columns of the tables: the best over all, and the best few of each.
func (b *board) ground(sel *selection, strategy Strategy) {
	var columns []Scored
	for _, t := range sel.tables {
		inherited := b.inherited(t.ID)
		for r := b.s.ColumnIDs(t.ID); r.From < r.To; r.From++ {
			if b.visible.Contains(r.From) {
				columns = append(columns, b.columnScored(r.From, inherited))
			}
		}
	}
	slices.SortFunc(columns, byScore)
	n := 0
	for _, c := range columns {
		t := b.table(c.ID)
		if n < maxColumns || len(sel.columns[t]) < leastColumns || strategy == Whole {
			sel.columns[t] = append(sel.columns[t], c)
			n++
		}
	}
}

// worthy returns the first of a list that is best first: at most so many, down to a share of what the best has by itself.
func worthy(list []Scored, share float64, most int) []Scored {
	var out []Scored
	for _, x := range list {
		if len(out) < most && x.Own >= share*list[0].Own {
			out = append(out, x)
		}
	}
	return out
}

// connected returns the databases that a statement in one database can reach: itself, and those that relationships
// tie to it, as databases of one MySQL server are.
func (b *board) connected(database string) map[string]bool {
	near := map[string]bool{database: true}
	for grown := true; grown; {
		grown = false
		for _, id := range b.crossing {
			r := b.s.Object(id).Relationship
			from, to := r.From[0].Database, r.To[0].Database
			if near[from] != near[to] && b.visible.Contains(id) {
				near[from], near[to], grown = true, true, true
			}
		}
	}
	return near
}

// reason puts evidence into words.
func reason(s *catalog.Snapshot, id uint32, evidence []Evidence) string {
	var parts []string
	for _, e := range evidence[:min(mostReasons, len(evidence))] {
		by := s.Object(e.By)
		switch {
		case e.Said == "" && by.Metric != nil:
			parts = append(parts, "needed by "+by.Ref.String())
		case e.Said == "":
			parts = append(parts, "lies between other tables")
		case e.By == id:
			parts = append(parts, fmt.Sprintf("%q in its %s", e.Said, e.Where))
		case by.Ref.Kind == catalog.KindColumn:
			parts = append(parts, fmt.Sprintf("%q in the %s of its column %s", e.Said, e.Where, by.Ref.Column))
		default:
			parts = append(parts, fmt.Sprintf("%q in the %s of %s", e.Said, e.Where, by.Ref))
		}
	}
	return strings.Join(parts, "; ")
}

// Withheld lists the hidden objects among the best that the whole catalog has for a question, best first. It is for
// the audit: nothing of it may reach the asker.
func (l *Linker) Withheld(ctx context.Context, question string, v acl.View) ([]catalog.Ref, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := v.Snapshot()
	if s == nil || v.Queryables().GetCardinality() == uint64(s.Len()) {
		return nil, nil
	}
	sh := l.shape(s)
	b := newBoard(question, l.index, sh, sh.all)
	if len(b.terms) == 0 {
		return nil, nil
	}
	var tables shortlist
	for _, t := range b.ranked {
		tables.add(b.tableScored(t))
	}
	var out []catalog.Ref
	for _, list := range [...][]Scored{
		worthy(b.speakersScored(catalog.KindMetric), metricShare, maxMetrics),
		worthy(tables.sorted(), withheldShare, maxTables),
		worthy(b.bestColumns(), withheldShare, maxTables),
		worthy(b.speakersScored(catalog.KindQuery), queryShare, maxQueries),
	} {
		for _, x := range list {
			if x.Own > 0 && !v.Queryable(x.ID) {
				out = append(out, s.Object(x.ID).Ref)
			}
		}
	}
	return out, nil
}
