package retrieval

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
// an object is noise. The shares were chosen on the training sets.
const (
	maxTables     = 20
	maxColumns    = 50
	leastColumns  = 3 // of each table that was selected
	maxMetrics    = 5
	maxQueries    = 5
	tableShare    = 0.45
	metricShare   = 0.5
	queryShare    = 0.5
	tiedTables    = 5    // the best tables, which are tied together by joins
	leastCoverage = 0.25 // below it nothing fits
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
	index   Index
	graph   *lineage.Graph
	counter *templates.Counter
	config  Config
}

// NewLinker makes a linker of the index and join graph of one snapshot.
func NewLinker(x Index, g *lineage.Graph, t *templates.Counter, c Config) (*Linker, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Linker{index: x, graph: g, counter: t, config: c}, nil
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
	tables, columns := int(count(v, s.OfKind(catalog.KindTable))), int(count(v, s.OfKind(catalog.KindColumn)))
	if tables <= wholeTables && columns <= wholeColumns {
		out.Strategy = Whole
		out.Because = fmt.Sprintf("%s and %s are few enough to give whole", plural(tables, "table"), plural(columns, "column"))
	} else {
		out.Because = fmt.Sprintf("%s and %s are too many to give whole", plural(tables, "table"), plural(columns, "column"))
	}
	r := Rank(question, l.index, v)
	switch {
	case tables == 0:
		out.Nothing = "nothing here is available to you"
		return out, nil
	case len(r.Tables) == 0:
		out.Nothing = "no word of the question is known to the catalog that you may see"
		return out, nil
	case r.Coverage < leastCoverage:
		out.Nothing = "too little of the question is known to the catalog that you may see"
		return out, nil
	}
	sel := l.choose(r, v, out.Strategy)
	out.Database = sel.database
	db, _ := s.Database(sel.database)
	out.Dialect = db.Dialect
	return l.assemble(out, sel, v)
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
	columns  map[uint32][]Scored // by table, best first
	needed   map[uint32]string   // columns that joins and metrics need, with the reason
	metrics  []Scored
	queries  []Scored
	joins    []lineage.Join
}

func (l *Linker) choose(r Ranking, v acl.View, strategy Strategy) selection {
	s := v.Snapshot()
	sel := selection{database: r.Databases[0].Name, columns: map[uint32][]Scored{}, needed: map[uint32]string{}}
	near := connected(s, v, sel.database)
	inside := func(o *catalog.Object) bool {
		return !slices.ContainsFunc(o.Names(), func(ref catalog.Ref) bool { return !near[ref.Database] })
	}
	keep := func(list []Scored, share float64, most int) []Scored {
		var out []Scored
		for _, x := range list {
			if inside(s.Object(x.ID)) && len(out) < most && (len(out) == 0 || x.Own >= share*out[0].Own) {
				out = append(out, x)
			}
		}
		return out
	}
	if strategy == Whole {
		sel.tables = wholeOf(r.Tables, s, v, near)
	} else {
		sel.tables = keep(r.Tables, tableShare, maxTables)
	}
	best := sel.tables[0].Own
	sel.metrics = keep(r.Metrics, metricShare, maxMetrics)
	sel.queries = keep(r.Queries, queryShare, maxQueries)

	chosen := map[uint32]bool{}
	for _, t := range sel.tables {
		chosen[t.ID] = true
	}
	add := func(id uint32, why Evidence) {
		if !chosen[id] {
			chosen[id] = true
			sel.tables = append(sel.tables, Scored{ID: id, Evidence: []Evidence{why}})
		}
	}
	var tied []uint32
	tie := func(id uint32) {
		if !slices.Contains(tied, id) {
			tied = append(tied, id)
		}
	}
	for _, t := range sel.tables {
		if len(tied) < tiedTables && t.Own >= 0.6*best {
			tie(t.ID)
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
				id = s.TableOf(id)
			}
			add(id, Evidence{By: m.ID})
			if i == 0 && slices.ContainsFunc(o.Metric.Sources, func(src catalog.Ref) bool { t, _ := s.ID(src); return t == id }) {
				tie(id)
			}
		}
	}
	x := l.graph.Expand(tied, v.Queryable)
	sel.joins = x.Joins
	for _, b := range x.Bridges {
		add(b, Evidence{})
	}
	for _, j := range x.Joins {
		rel := s.Object(j.Relationship).Relationship
		for _, ref := range slices.Concat(rel.From, rel.To) {
			if id, ok := s.ID(ref); ok && sel.needed[id] == "" {
				sel.needed[id] = "joins " + s.Object(j.From).Ref.String() + " and " + s.Object(j.To).Ref.String()
			}
		}
	}
	n := 0
	for _, c := range r.Columns {
		t := s.TableOf(c.ID)
		if chosen[t] && (n < maxColumns || len(sel.columns[t]) < leastColumns || strategy == Whole) {
			sel.columns[t] = append(sel.columns[t], c)
			n++
		}
	}
	return sel
}

// wholeOf returns every queryable table that joins could reach, ranked ones first.
func wholeOf(ranked []Scored, s *catalog.Snapshot, v acl.View, near map[string]bool) []Scored {
	var out []Scored
	seen := map[uint32]bool{}
	for _, t := range ranked {
		if near[s.Object(t.ID).Ref.Database] {
			seen[t.ID] = true
			out = append(out, t)
		}
	}
	r := s.OfKind(catalog.KindTable)
	for id := r.From; id < r.To; id++ {
		if !seen[id] && v.Queryable(id) && near[s.Object(id).Ref.Database] {
			out = append(out, Scored{ID: id})
		}
	}
	return out
}

// connected returns the databases that a statement in one database can reach: itself, and those that visible
// relationships tie to it, as databases of one MySQL server are.
func connected(s *catalog.Snapshot, v acl.View, database string) map[string]bool {
	near := map[string]bool{database: true}
	for grown := true; grown; {
		grown = false
		for _, o := range s.Objects(catalog.KindRelationship) {
			a, b := o.Relationship.From[0].Database, o.Relationship.To[0].Database
			if near[a] != near[b] && v.Queryable(o.ID) {
				near[a], near[b], grown = true, true, true
			}
		}
	}
	return near
}

// reason puts evidence into words.
func reason(s *catalog.Snapshot, id uint32, evidence []Evidence) string {
	var parts []string
	for _, e := range evidence {
		if len(parts) == 4 {
			break
		}
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
	r := Rank(question, l.index, acl.Everything(s))
	var out []catalog.Ref
	note := func(list []Scored, share float64, most int) {
		for i, x := range list {
			if i == most || x.Own < share*list[0].Own {
				break
			}
			if !v.Queryable(x.ID) {
				out = append(out, s.Object(x.ID).Ref)
			}
		}
	}
	note(r.Metrics, metricShare, maxMetrics)
	note(r.Tables, tableShare, maxTables)
	note(r.Columns, tableShare, maxTables)
	note(r.Queries, queryShare, maxQueries)
	return out, nil
}
