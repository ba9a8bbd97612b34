package retrieval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/lineage"
	"github.com/schemagate/schemagate/templates"
)

// Bounds of a selection: the paper's final numbers of tables and columns, and shares of the best score below which
// an object is noise. tableShare and leastCoverage were chosen on the training sets (see eval's summary).
const (
	maxTables     = 20
	maxColumns    = 50
	leastColumns  = 3 // of each table that was selected
	maxMetrics    = 5
	maxQueries    = 5
	tableShare    = 0.05
	withheldShare = 0.45 // for the audit, which wants what mattered
	metricShare   = 0.5
	metricFavour  = 1.5 // by which a question for a figure lowers that share
	queryShare    = 0.5
	tiedTables    = 5 // the best tables, which are tied together by joins
	tiedShare     = 0.6
	mostReasons   = 4    // in the reason of an item
	leastCoverage = 0.26 // below it nothing fits, unless something means what the question means:
	leastMeant    = 0.40 // a similarity
	leastSaid     = 0.14 // coverage where no vectors can tell

	leastForeign      = 0.10 // likewise for questions in another language
	leastForeignMeant = 0.33
)

// Config bounds a linker.
type Config struct {
	// Budget is the size in tokens of a complete prompt: context, question, and what stands around them.
	Budget int
	// Prompt is the size of what stands around them.
	Prompt int
}

// DefaultConfig is the paper's budget.
var DefaultConfig = Config{Budget: 5000}

// Validate reports what is wrong with the configuration.
func (c Config) Validate() error {
	if c.Prompt < 0 || c.Budget-c.Prompt < 200 {
		return fmt.Errorf("retrieval: a budget of %d tokens, %d of them for the prompt, holds no table; leave at least 200", c.Budget, c.Prompt)
	}
	return nil
}

// Linker links questions to one snapshot. It is safe for concurrent use.
type Linker struct {
	ranker *Ranker
	graph  *lineage.Graph
	meter  *meter
	sizes  *Cache[*tally] // by view
	config Config
}

// NewLinker makes a linker of the ranker and join graph of one snapshot.
func NewLinker(r *Ranker, g *lineage.Graph, t *templates.Counter, c Config) (*Linker, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Linker{ranker: r, graph: g, meter: newMeter(t), sizes: NewCache(tallyLimits, (*tally).bytes), config: c}, nil
}

// Context is what a question needs of the catalog, as one principal may see it.
type Context struct {
	Question string
	Strategy Strategy
	// Because says why that strategy ran.
	Because string
	Intent  Intent
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
	Parts  Parts
	Reason string
	// Role is what the question needs a column for. It is empty for other kinds, and for a column that stands there
	// because there was room.
	Role Role
	// Members are the tables that a table stands for, itself among them, oldest first. It is empty for one that stands
	// for itself.
	Members []catalog.Ref
}

// Parts say what speaks for an object: by itself, for its table and for its database. How a score is made of them is
// the ranker's, and so are the scales.
type Parts struct {
	Own, Table, Database float64
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

// Link builds the context of a question from what the view lets be queried, by the strategy that its size calls for.
func (l *Linker) Link(ctx context.Context, question string, v acl.View) (Context, error) {
	return l.LinkBy(ctx, "", question, v)
}

// LinkBy builds the context of a question by a strategy; the empty one is chosen by size.
func (l *Linker) LinkBy(ctx context.Context, asked Strategy, question string, v acl.View) (Context, error) {
	if _, err := ParseStrategy(string(asked)); err != nil {
		return Context{}, fmt.Errorf("retrieval: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return Context{}, err
	}
	b, err := l.ranker.Board(ctx, question, v)
	if err != nil {
		return Context{}, err
	}
	return l.link(asked, b), nil
}

// LinkBoard builds the context from a board of the linker's own ranker, by the strategy that its size calls for.
func (l *Linker) LinkBoard(b *Board) Context { return l.link("", b) }

func (l *Linker) link(asked Strategy, b *Board) Context {
	out := Context{Question: b.asked, Intent: IntentOf(b.asked)}
	tables, columns := 0, 0
	if b.shape != nil {
		tables, columns = b.count(catalog.KindTable), b.count(catalog.KindColumn)
	}
	out.Strategy, out.Because = strategyFor(asked, tables, columns)
	switch {
	case tables == 0:
		out.Nothing = "nothing here is available to you"
		return out
	case len(b.databases) == 0:
		out.Nothing = "no word of the question is known to the catalog that you may see"
		return out
	case !b.fits():
		out.Nothing = "too little of the question is known to the catalog that you may see"
		return out
	}
	return l.assemble(out, l.choose(b, out, b.view), b.view)
}

// selection is what a context is made of, before its size is known. Tables, metrics and queries are best first.
type selection struct {
	database string
	tables   []Scored
	core     map[uint32]bool     // tables without which the others, or the metrics, say little
	columns  map[uint32][]Scored // by table, best first
	needed   map[uint32]need     // columns that joins and metrics need
	metrics  []Scored
	queries  []Scored
	joins    []lineage.Join
}

// need is why a column must be there, and in which role.
type need struct {
	why  string
	role Role
}

// chooser makes the selection for one question.
type chooser struct {
	*Board
	strategy Strategy
	intent   Intent
	sentence *sentence
	near     map[string]bool // databases that a statement can reach
	faces    map[uint32]bool // members of families that the question is shown
	sel      selection
}

func (l *Linker) choose(b *Board, out Context, v acl.View) *chooser {
	c := &chooser{Board: b, strategy: out.Strategy, intent: out.Intent, sentence: newSentence(out.Question, out.Intent, b.said, b.nameTerms), faces: map[uint32]bool{}}
	c.sel = selection{database: b.databases[0].name, core: map[uint32]bool{}, columns: map[uint32][]Scored{}, needed: map[uint32]need{}}
	c.near = b.connected(c.sel.database)
	c.chooseSpeakers()
	c.chooseTables(out.Question)
	c.tie(l.graph)
	slices.SortStableFunc(c.sel.tables, byScore)
	c.sel.core[c.sel.tables[0].ID] = true
	return c
}

// chooseSpeakers chooses metrics and past queries that a statement near the database can use. A question for a figure
// is likely to mean a metric.
func (c *chooser) chooseSpeakers() {
	inside := func(list []Scored) []Scored {
		return slices.DeleteFunc(list, func(x Scored) bool {
			return slices.ContainsFunc(c.s.Object(x.ID).Names(), func(ref catalog.Ref) bool { return !c.near[ref.Database] })
		})
	}
	metrics, share := inside(c.speakersScored(catalog.KindMetric)), metricShare
	if c.intent.figure {
		share /= metricFavour
	}
	c.sel.metrics = worthy(metrics, share, maxMetrics)
	c.sel.queries = worthy(inside(c.speakersScored(catalog.KindQuery)), queryShare, maxQueries)
}

// chooseTables chooses tables by their own evidence, or all of them. A family has one place, that of its best member,
// and stands there with the members that the question is shown.
func (c *chooser) chooseTables(question string) {
	needed := map[uint32]bool{}
	for _, m := range c.sel.metrics {
		for _, t := range c.spokenFor(m.ID) {
			needed[t] = true
		}
	}
	best := map[uint32]Scored{} // of families, by leader
	place := func(x Scored) {
		if c.members[x.ID] == nil {
			c.sel.tables = append(c.sel.tables, x)
		} else if before, ok := best[c.leader(x.ID)]; !ok || byScore(x, before) < 0 {
			best[c.leader(x.ID)] = x
		}
	}
	for _, d := range c.databases {
		if c.near[d.name] {
			for _, t := range c.ranked[d.from:d.to] {
				place(c.tableScored(t))
			}
		}
	}
	if c.strategy == Whole {
		for r := c.s.OfKind(catalog.KindTable); r.From < r.To; r.From++ {
			if c.visible.Contains(r.From) && c.row[r.From] == 0 && c.near[c.s.Object(r.From).Ref.Database] {
				place(Scored{ID: r.From})
			}
		}
	}
	for leader, x := range best {
		for _, x.ID = range c.shown(c.s, leader, question, needed) {
			c.faces[x.ID] = true
			c.sel.tables = append(c.sel.tables, x)
		}
	}
	slices.SortFunc(c.sel.tables, byScore)
	if c.strategy != Whole {
		c.sel.tables = worthy(c.sel.tables, tableShare, maxTables)
	}
}

// takesPart reports whether an object may stand in the context: it may be queried and no other member of its family
// stands there for it.
func (c *chooser) takesPart(id uint32) bool {
	return c.askable.Contains(id) && (c.members[id] == nil || c.faces[id])
}

// tie adds what the chosen tables and metrics need of others: the tables and columns that metrics are computed from, and the
// paths of joins between the best tables.
func (c *chooser) tie(g *lineage.Graph) {
	chosen := map[uint32]bool{}
	for _, t := range c.sel.tables {
		chosen[t.ID] = true
	}
	add := func(table uint32, why Evidence) {
		if !chosen[table] {
			chosen[table] = true
			x := c.tableScored(c.leader(table))
			x.ID, x.Evidence = table, []Evidence{why}
			c.sel.tables = append(c.sel.tables, x)
		}
		c.sel.core[table] = true
	}
	var tied []uint32
	for _, t := range c.sel.tables {
		if len(tied) < tiedTables && t.Own >= tiedShare*c.sel.tables[0].Own {
			tied = append(tied, t.ID)
		}
	}
	for i, m := range c.sel.metrics {
		o := c.s.Object(m.ID)
		for _, ref := range o.Names() {
			id, ok := c.s.ID(ref)
			if !ok {
				continue
			}
			if ref.Kind == catalog.KindColumn {
				c.sel.needed[id] = need{"needed by " + o.Ref.String(), metricRole(o.Metric, ref)}
				id = c.table(id)
			}
			add(id, Evidence{By: m.ID})
		}
		if i == 0 {
			for _, t := range c.spokenFor(m.ID) {
				if !slices.Contains(tied, t) {
					tied = append(tied, t)
				}
			}
		}
	}
	x := g.Expand(tied, c.takesPart)
	c.sel.joins = x.Joins
	for _, t := range x.Bridges {
		add(t, Evidence{By: t})
	}
	for _, j := range x.Joins {
		rel := c.s.Object(j.Relationship).Relationship
		c.sel.core[j.From], c.sel.core[j.To] = true, true
		for _, ref := range slices.Concat(rel.From, rel.To) {
			if id, ok := c.s.ID(ref); ok && c.sel.needed[id].why == "" {
				c.sel.needed[id] = need{"joins " + c.s.Object(j.From).Ref.String() + " and " + c.s.Object(j.To).Ref.String(), RoleJoin}
			}
		}
	}
}

// wholeDatabase returns all tables of the database that can take part, the chosen ones included, and how many columns
// they have.
func (c *chooser) wholeDatabase() (tables []Scored, columns int) {
	tables = slices.Clone(c.sel.tables)
	chosen := map[uint32]bool{}
	for _, t := range tables {
		chosen[t.ID] = true
	}
	for r := c.s.TablesIn(c.sel.database); r.From < r.To; r.From++ {
		if !chosen[r.From] && c.takesPart(r.From) {
			t := c.tableScored(c.leader(r.From))
			t.ID = r.From
			tables = append(tables, t)
		}
	}
	for _, t := range tables {
		of := c.s.ColumnIDs(t.ID)
		columns += int(c.askable.CardinalityInRange(uint64(of.From), uint64(of.To)))
	}
	slices.SortFunc(tables, byScore)
	return tables, columns
}

// ground chooses columns of the tables: all of them, or else the best over all, and the best few of each.
func (c *chooser) ground(all bool) {
	most := 0
	for _, t := range c.sel.tables {
		most += c.s.ColumnIDs(t.ID).Len()
	}
	columns := make([]Scored, 0, most)
	for _, t := range c.sel.tables {
		columns = append(columns, c.columnsOf(t.ID)...)
	}
	slices.SortFunc(columns, byScore)
	n := 0
	for _, x := range columns {
		t := c.table(x.ID)
		if n < maxColumns || len(c.sel.columns[t]) < leastColumns || all {
			c.sel.columns[t] = append(c.sel.columns[t], x)
			n++
		}
	}
}

// columnsOf scores the columns of a table. A member of a family scores as the one that leads it.
func (c *chooser) columnsOf(table uint32) []Scored {
	r := c.s.ColumnIDs(table)
	out := make([]Scored, 0, r.Len())
	inherited := c.inherited(c.leader(table))
	for ; r.From < r.To; r.From++ {
		if c.askable.Contains(r.From) {
			out = append(out, c.columnOf(r.From, inherited))
		}
	}
	return out
}

// columnOf scores a column, given what its table and database bring.
func (c *chooser) columnOf(id uint32, inherited float64) Scored {
	x := c.columnScored(c.leader(id), inherited)
	x.ID = id
	return x
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
func (b *Board) connected(database string) map[string]bool {
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
	b, err := l.ranker.Board(ctx, question, l.ranker.shape(s).all)
	if err != nil {
		return nil, err
	}
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
