// Package lineage knows how the tables of a catalog are tied: the join graph of a snapshot, and the shortest ways
// through it that consist of nothing but what a principal may see.
package lineage

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/schemagate/schemagate/catalog"
)

// MaxJoins is the greatest length of a path, in joins. A longer chain says little about what its ends have in common.
const MaxJoins = 6

// Graph is the join graph of a snapshot: its tables, tied by its relationships. It is immutable and safe for
// concurrent use.
//
// Each method takes visible, which tells the objects that a principal may see. An object for which it is false does
// not exist: it is neither walked through nor counted, so a result is the one that a snapshot without it would give.
// A relationship exists only together with all that it names. visible must not be nil.
type Graph struct {
	s      *catalog.Snapshot
	tables uint32   // table ids are 0 to tables-1
	edges  [][]edge // by table id; each relationship stands at both of its ends, in id order
}

// edge is a relationship as seen from one of its tables.
type edge struct {
	Join
	names    []uint32 // the tables and columns that the relationship names
	evidence int64    // smaller is stronger
}

// Join is a relationship, walked from one of its tables to the other.
type Join struct {
	Relationship uint32 // object id
	From, To     uint32 // table ids
	// Cardinality counts rows of From for one of To. A relationship that does not say gets it from the keys of its
	// tables; it stays empty if those do not tell.
	Cardinality catalog.Cardinality
	Type        catalog.RelationshipType
	Validated   bool
	Usage       int64 // times seen in past queries, 0 to 2^40
}

// Multiplies reports whether a row of From may meet more than one row of To.
func (j Join) Multiplies() bool {
	return j.Cardinality != catalog.ManyToOne && j.Cardinality != catalog.OneToOne
}

// FanOut reports whether walking the joins in order may repeat rows of the table they start from. A join of unknown
// cardinality may.
func FanOut(joins []Join) bool { return slices.ContainsFunc(joins, Join.Multiplies) }

// New builds the join graph of a snapshot. A relationship of a table with itself ties nothing and is left out.
func New(s *catalog.Snapshot) *Graph {
	n := uint32(s.OfKind(catalog.KindTable).Len())
	g := &Graph{s: s, tables: n, edges: make([][]edge, n)}
	for i := range s.Objects(catalog.KindRelationship) {
		o := &s.Objects(catalog.KindRelationship)[i]
		r := o.Relationship
		from, to := g.table(r.From[0]), g.table(r.To[0])
		if from == to {
			continue
		}
		e := edge{
			Join: Join{
				Relationship: o.ID, From: from, To: to, Cardinality: g.cardinality(r),
				Type: r.Type, Validated: r.Validated, Usage: min(max(r.Usage, 0), 1<<40),
			},
			evidence: evidence(r),
		}
		for _, r := range o.Names() {
			id, _ := s.ID(r)
			e.names = append(e.names, id)
		}
		g.edges[from] = append(g.edges[from], e)
		e.From, e.To, e.Cardinality = to, from, flip(e.Cardinality)
		g.edges[to] = append(g.edges[to], e)
	}
	return g
}

func (g *Graph) table(column catalog.Ref) uint32 {
	id, _ := g.s.ID(column.TableRef())
	return id
}

// evidence ranks what a relationship rests on, first by its type, then by whether somebody validated it.
func evidence(r *catalog.Relationship) int64 {
	rank := int64(2)
	switch r.Type {
	case catalog.ForeignKeyRelationship:
		rank = 0
	case catalog.DocumentedRelationship:
		rank = 1
	}
	if !r.Validated {
		return 2*rank + 1
	}
	return 2 * rank
}

// cardinality is what the relationship says or else what keys say. A key that its columns cover consists of columns
// that the relationship names, so whoever sees the relationship sees the key.
func (g *Graph) cardinality(r *catalog.Relationship) catalog.Cardinality {
	if r.Cardinality != "" {
		return r.Cardinality
	}
	switch from, to := g.unique(r.From), g.unique(r.To); {
	case from && to:
		return catalog.OneToOne
	case to:
		return catalog.ManyToOne
	case from:
		return catalog.OneToMany
	}
	return ""
}

// unique reports whether the columns, all of one table, cover one of its keys.
func (g *Graph) unique(columns []catalog.Ref) bool {
	t, _ := g.s.Lookup(columns[0].TableRef())
	covered := func(key []string) bool {
		return len(key) > 0 && !slices.ContainsFunc(key, func(name string) bool {
			id, _ := g.s.ID(catalog.ColumnRef(t.Ref.Database, t.Ref.Schema, t.Ref.Table, name))
			return !slices.ContainsFunc(columns, func(c catalog.Ref) bool {
				other, _ := g.s.ID(c)
				return other == id
			})
		})
	}
	return covered(t.Table.PrimaryKey) || slices.ContainsFunc(t.Table.UniqueKeys, covered)
}

func flip(c catalog.Cardinality) catalog.Cardinality {
	switch c {
	case catalog.ManyToOne:
		return catalog.OneToMany
	case catalog.OneToMany:
		return catalog.ManyToOne
	}
	return c
}

// Expansion is what ties a set of tables together.
type Expansion struct {
	Tables  []uint32 // the given tables that exist and the bridges, in id order
	Bridges []uint32 // tables that lie between, in id order
	// Joins are in order of their relationships, each once, walked away from the smallest given table that uses it.
	Joins       []Join
	Unreachable [][2]uint32 // pairs of given tables without a path, the smaller first, in order
}

// Expand returns the union of all shortest paths between each two of the tables. A table that does not exist is left
// out. The work grows with the number of tables given times the size of the graph.
func (g *Graph) Expand(tables []uint32, visible func(id uint32) bool) Expansion {
	given := g.existing(tables, visible)
	x := Expansion{}
	between := map[uint32]bool{}
	joins := map[uint32]Join{}
	for i, from := range given {
		rest := given[i+1:]
		w := g.walk([]uint32{from}, rest, len(rest), visible)
		needed := make(map[uint32]bool, len(rest))
		for _, to := range rest {
			if w.distance[to] < 0 {
				x.Unreachable = append(x.Unreachable, [2]uint32{from, to})
				continue
			}
			needed[to] = true
		}
		// Farthest first, every table that is needed needs all tables one step nearer that it joins with.
		for _, t := range slices.Backward(w.order) {
			if !needed[t] || w.distance[t] == 0 {
				continue
			}
			between[t] = true
			for back := range g.steps(t, visible) {
				if w.distance[back.To] != w.distance[t]-1 {
					continue
				}
				needed[back.To] = true
				if _, known := joins[back.Relationship]; !known {
					joins[back.Relationship] = back.reversed()
				}
			}
		}
	}
	for _, t := range given {
		delete(between, t)
	}
	for t := range between {
		x.Bridges = append(x.Bridges, t)
	}
	for _, j := range joins {
		x.Joins = append(x.Joins, j)
	}
	slices.Sort(x.Bridges)
	x.Tables = slices.Concat(given, x.Bridges)
	slices.Sort(x.Tables)
	slices.SortFunc(x.Joins, func(a, b Join) int { return cmp.Compare(a.Relationship, b.Relationship) })
	return x
}

// Path returns the best path between two tables: the one with the fewest joins, then with the strongest evidence
// (keys, documented joins, joins seen in queries), then the most used, then the first by name. It is empty for a
// table and itself, and absent if there is none of at most MaxJoins joins.
func (g *Graph) Path(from, to uint32, visible func(id uint32) bool) ([]Join, bool) {
	if len(g.existing([]uint32{from}, visible)) == 0 || len(g.existing([]uint32{to}, visible)) == 0 {
		return nil, false
	}
	return g.nearest([]uint32{from}, []uint32{to}, visible)
}

// Tree returns joins that connect all the tables with root, each from a table that root or an earlier join has
// brought in. It grows by the best path to the nearest table that is still missing, so it is small, though not always
// the smallest. FanOut of the path to a table tells whether joining it repeats rows of root; of the whole, whether
// anything does.
func (g *Graph) Tree(root uint32, tables []uint32, visible func(id uint32) bool) ([]Join, error) {
	for _, t := range append([]uint32{root}, tables...) {
		if len(g.existing([]uint32{t}, visible)) == 0 {
			return nil, errors.New("lineage: join tree: one of the tables does not exist")
		}
	}
	tree := []uint32{root}
	missing := g.existing(tables, visible)
	var joins []Join
	for {
		missing = slices.DeleteFunc(missing, func(t uint32) bool { return slices.Contains(tree, t) })
		if len(missing) == 0 {
			return joins, nil
		}
		path, ok := g.nearest(tree, missing, visible)
		if !ok {
			return nil, fmt.Errorf("lineage: join tree: no relationships lead from %s to %s within %d joins; document one, or ask about one of them",
				g.s.Object(root).Ref, g.s.Object(missing[0]).Ref, MaxJoins)
		}
		for _, j := range path {
			joins = append(joins, j)
			tree = append(tree, j.To)
		}
	}
}

// existing returns the tables that exist, in id order, each once.
func (g *Graph) existing(tables []uint32, visible func(uint32) bool) []uint32 {
	out := slices.DeleteFunc(slices.Clone(tables), func(t uint32) bool { return t >= g.tables || !visible(t) })
	slices.Sort(out)
	return slices.Compact(out)
}

// steps yields the joins that lead from a table to others, in order of their relationships.
func (g *Graph) steps(table uint32, visible func(uint32) bool) func(yield func(*edge) bool) {
	hidden := func(id uint32) bool { return !visible(id) }
	return func(yield func(*edge) bool) {
		for i := range g.edges[table] {
			e := &g.edges[table][i]
			if hidden(e.Relationship) || hidden(e.To) || slices.ContainsFunc(e.names, hidden) {
				continue
			}
			if !yield(e) {
				return
			}
		}
	}
}

func (e *edge) reversed() Join {
	j := e.Join
	j.From, j.To, j.Cardinality = j.To, j.From, flip(j.Cardinality)
	return j
}

// walk is a breadth-first walk.
type walk struct {
	distance []int8   // by table id, in joins; -1 if not reached
	order    []uint32 // the tables reached, nearest first
}

// walk goes out from the sources, up to the level on which it has met the wanted number of targets (sorted by id), or
// MaxJoins.
func (g *Graph) walk(sources, targets []uint32, wanted int, visible func(uint32) bool) walk {
	w := walk{distance: make([]int8, g.tables), order: slices.Clone(sources)}
	for i := range w.distance {
		w.distance[i] = -1
	}
	for _, t := range sources {
		w.distance[t] = 0
	}
	last := int8(MaxJoins)
	if wanted == 0 {
		last = 0
	}
	for i := 0; i < len(w.order) && w.distance[w.order[i]] < last; i++ {
		t := w.order[i]
		for e := range g.steps(t, visible) {
			if w.distance[e.To] >= 0 {
				continue
			}
			w.distance[e.To] = w.distance[t] + 1
			w.order = append(w.order, e.To)
			if _, hit := slices.BinarySearch(targets, e.To); hit {
				if wanted--; wanted == 0 {
					last = w.distance[e.To]
				}
			}
		}
	}
	return w
}

// nearest returns the best path from any of the sources to the nearest of the targets (sorted by id); it is empty if a
// target is a source.
func (g *Graph) nearest(sources, targets []uint32, visible func(uint32) bool) ([]Join, bool) {
	type arrival struct {
		evidence, usage int64 // sums along the path
		back            *edge // to the table before; nil for a source
	}
	w := g.walk(sources, targets, 1, visible)
	best := make(map[uint32]arrival, len(w.order))
	better := func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.evidence, b.evidence), cmp.Compare(b.usage, a.usage))
	}
	for _, t := range w.order {
		if w.distance[t] == 0 {
			best[t] = arrival{}
			continue
		}
		for back := range g.steps(t, visible) {
			if w.distance[back.To] != w.distance[t]-1 {
				continue
			}
			before := best[back.To]
			a := arrival{before.evidence + back.evidence, before.usage + back.Usage, back}
			// Steps come in order of name, so the first of equals stays.
			if old, ok := best[t]; !ok || better(a, old) < 0 {
				best[t] = a
			}
		}
	}
	goal, found := uint32(0), false
	for _, t := range targets {
		if w.distance[t] < 0 {
			continue
		}
		if !found || cmp.Or(cmp.Compare(w.distance[t], w.distance[goal]), better(best[t], best[goal])) < 0 {
			goal, found = t, true
		}
	}
	if !found {
		return nil, false
	}
	var path []Join
	for a := best[goal]; a.back != nil; a = best[a.back.To] {
		path = append(path, a.back.reversed())
	}
	slices.Reverse(path)
	return path, true
}
