package generate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/lineage"
)

// route is how a table is reached from the sources of a metric.
type route struct {
	state state
	// joins lead from a source to the table; they are empty for a source.
	joins []lineage.Join
}

// state says what a route is good for.
type state uint8

const (
	absent     state = iota // nothing leads there
	plain                   // one shortest way leads there and repeats no row of the metric
	repeating               // one shortest way leads there and may repeat rows
	unclear                 // several equally short ways lead there
	unverified              // the shortest ways rest on joins that nobody has validated
)

// maxWays bounds the shortest ways that are told apart.
const maxWays = 64

// router finds the routes from the sources of one metric, through what a view lets be queried.
type router struct {
	graph   *lineage.Graph
	view    acl.View
	sources []uint32
	known   map[uint32]route
}

func newRouter(l *lexicon, v acl.View, sources []uint32) *router {
	return &router{graph: l.graph, view: v, sources: sources, known: map[uint32]route{}}
}

// to returns the route to a table.
func (r *router) to(table uint32) route {
	if slices.Contains(r.sources, table) {
		return route{state: plain}
	}
	found, ok := r.known[table]
	if !ok {
		found = judge(r.graph, r.view.Snapshot(), r.sources, table, r.view.Queryable)
		r.known[table] = found
	}
	return found
}

// among returns the route from one source to another through nothing but sources.
func (r *router) among(from, to uint32) route {
	s := r.view.Snapshot()
	tables := s.OfKind(catalog.KindTable)
	return judge(r.graph, s, []uint32{from}, to, func(id uint32) bool {
		return r.view.Queryable(id) && (id >= tables.To || slices.Contains(r.sources, id))
	})
}

// judge looks at all shortest ways from the nearest of some tables to another. Only ways of validated joins count, and
// those that repeat no rows before those that may.
func judge(g *lineage.Graph, s *catalog.Snapshot, from []uint32, to uint32, visible func(uint32) bool) route {
	var found [][]lineage.Join
	for _, f := range from {
		ways := shortest(g, s, f, to, visible)
		switch {
		case len(ways) == 0 || len(found) > 0 && len(ways[0]) > len(found[0]):
		case len(found) > 0 && len(ways[0]) == len(found[0]):
			found = append(found, ways...)
		default:
			found = ways
		}
	}
	if len(found) >= maxWays {
		return route{state: unclear}
	}
	for _, good := range []state{plain, repeating} {
		kind := slices.DeleteFunc(slices.Clone(found), func(w []lineage.Join) bool { return lineage.FanOut(w) != (good == repeating) })
		valid := slices.DeleteFunc(slices.Clone(kind), func(w []lineage.Join) bool {
			return slices.ContainsFunc(w, func(j lineage.Join) bool { return !j.Validated })
		})
		switch {
		case len(valid) == 1:
			return route{good, valid[0]}
		case len(valid) > 1:
			return route{state: unclear}
		case len(kind) > 0:
			return route{state: unverified}
		}
	}
	return route{}
}

// shortest returns the shortest ways between two tables, up to maxWays of them. Joins on the same condition are one.
func shortest(g *lineage.Graph, s *catalog.Snapshot, from, to uint32, visible func(uint32) bool) [][]lineage.Join {
	x := g.Expand([]uint32{from, to}, visible)
	steps := map[uint32][]lineage.Join{}
	for _, j := range x.Joins {
		if from > to { // they lead away from the smaller
			j = reversed(j)
		}
		same := slices.IndexFunc(steps[j.From], func(o lineage.Join) bool { return o.To == j.To && condition(s, o) == condition(s, j) })
		switch {
		case same < 0:
			steps[j.From] = append(steps[j.From], j)
		case j.Validated && !steps[j.From][same].Validated:
			steps[j.From][same] = j
		}
	}
	var ways [][]lineage.Join
	var walk func(at uint32, way []lineage.Join)
	walk = func(at uint32, way []lineage.Join) {
		if len(ways) == maxWays {
			return
		}
		if at == to {
			ways = append(ways, slices.Clone(way))
			return
		}
		for _, j := range steps[at] {
			walk(j.To, append(way, j))
		}
	}
	walk(from, nil)
	return ways
}

func reversed(j lineage.Join) lineage.Join {
	j.From, j.To = j.To, j.From
	switch j.Cardinality {
	case catalog.ManyToOne:
		j.Cardinality = catalog.OneToMany
	case catalog.OneToMany:
		j.Cardinality = catalog.ManyToOne
	}
	return j
}

// condition identifies what a join compares, whichever way round it was written.
func condition(s *catalog.Snapshot, j lineage.Join) string {
	r := s.Object(j.Relationship).Relationship
	var pairs []string
	for i := range r.From {
		a, _ := s.ID(r.From[i])
		b, _ := s.ID(r.To[i])
		pairs = append(pairs, fmt.Sprintf("%d=%d", min(a, b), max(a, b)))
	}
	slices.Sort(pairs)
	return strings.Join(append(slices.Compact(pairs), r.JoinSQL), " ")
}

// tree is the tables of a statement with the joins that brought them in.
type tree struct {
	root  uint32
	joins []branch
}

// branch is a join of a tree.
type branch struct {
	lineage.Join
	// required drops rows of the metric that have no partner, as its own sources and filters do.
	required bool
}

// plant joins the sources of a metric from the first one whose rows no other source repeats.
func plant(r *router) (*tree, bool) {
	for _, root := range r.sources {
		t := &tree{root: root}
		if !slices.ContainsFunc(r.sources, func(source uint32) bool {
			way := r.among(root, source)
			return way.state != plain || !t.graft(way.joins, true)
		}) {
			return t, true
		}
	}
	return nil, false
}

// graft adds joins that lead on from a table of the tree. It fails if they bring in a table in another way than the
// tree does.
func (t *tree) graft(joins []lineage.Join, required bool) bool {
	for _, j := range joins {
		at := slices.IndexFunc(t.joins, func(b branch) bool { return b.To == j.To })
		switch {
		case j.To == t.root, at >= 0 && (t.joins[at].Relationship != j.Relationship || t.joins[at].From != j.From):
			return false
		case at >= 0:
			t.joins[at].required = t.joins[at].required || required
		default:
			t.joins = append(t.joins, branch{j, required})
		}
	}
	return true
}

// tables returns the tables in the order in which they are joined.
func (t *tree) tables() []uint32 {
	out := []uint32{t.root}
	for _, b := range t.joins {
		out = append(out, b.To)
	}
	return out
}

// namesakes returns two tables of the same plain name, if there are such.
func namesakes(s *catalog.Snapshot, tables []uint32) (a, b catalog.Ref, found bool) {
	sorted := slices.Clone(tables)
	key := func(id uint32) string { return strings.ToLower(s.Object(id).Ref.Table) }
	slices.SortFunc(sorted, func(x, y uint32) int { return cmp.Or(strings.Compare(key(x), key(y)), cmp.Compare(x, y)) })
	for i := 1; i < len(sorted); i++ {
		if key(sorted[i-1]) == key(sorted[i]) {
			return s.Object(sorted[i-1]).Ref, s.Object(sorted[i]).Ref, true
		}
	}
	return a, b, false
}
