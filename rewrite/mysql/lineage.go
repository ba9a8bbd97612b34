package mysql

import (
	"slices"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// transforms are rewrite's, in the order of how much they do to a value.
var transforms = [...]rewrite.Transform{rewrite.Identity, rewrite.Transformation, rewrite.Aggregation}

// Indices of transforms.
const (
	identity = iota
	transformation
	aggregation
)

// made collects what values are made of: base columns, by their numbers in resolver.refs, in order of first mention. A
// negative number stands for a column of a recursive expression that is not known yet. The nil made collects nothing.
type made struct {
	from []int32
	seen map[int32]bool // what from holds, once that is long
	how  int
}

// manyColumns is the number of columns from which on looking them up in a map is faster.
const manyColumns = 16

func (m *made) add(from []int32) {
	if m == nil {
		return
	}
	if len(m.from) == 0 && m.seen == nil {
		m.from = from[:len(from):len(from)] // shared until it grows
		return
	}
	for _, id := range from {
		if !m.holds(id) {
			m.from = append(m.from, id)
			if m.seen != nil {
				m.seen[id] = true
			}
		}
	}
}

func (m *made) holds(id int32) bool {
	if len(m.from) < manyColumns {
		return slices.Contains(m.from, id)
	}
	if m.seen == nil {
		m.seen = make(map[int32]bool, 2*manyColumns)
		for _, known := range m.from {
			m.seen[known] = true
		}
	}
	return m.seen[id]
}

// raise says that the value comes out of an expression that does that much.
func (m *made) raise(how int) {
	if m != nil {
		m.how = max(m.how, how)
	}
}

// column adds what a column is made of.
func (m *made) column(c *column) {
	m.add(c.from)
	m.raise(c.how)
}

// number gives the columns of a table their numbers and returns them, one after the other.
func (r *resolver) number(t *rewrite.Table) []int32 {
	first, known := r.first[t.Ref]
	if !known {
		first = len(r.refs)
		r.first[t.Ref] = first
		for _, c := range t.Columns {
			r.refs = append(r.refs, c.Ref)
			r.ids = append(r.ids, int32(len(r.ids)))
		}
	}
	return r.ids[first : first+len(t.Columns)]
}

// recursion makes the columns of a recursive expression, until these are known, columns of their own. A recursive value
// can outgrow the type that its first row gives it.
func (r *resolver) recursion(c *cte) {
	c.unknown = r.unknowns
	for i := range c.columns {
		r.unknowns++
		c.columns[i] = column{name: c.columns[i].name, from: []int32{-r.unknowns}}
	}
}

// known settles what the columns of a recursive expression are made of, now that its query is: whatever its first part
// gives, and whatever a round makes of any of its columns.
func (r *resolver) known(c *cte, out []column) {
	n := min(len(c.columns), len(out))
	index := func(id int32) (int, bool) {
		i := int(-id) - 1 - int(c.unknown)
		return i, id < 0 && i >= 0 && i < n
	}
	for i := range n {
		var m made
		todo, met := []int{i}, make([]bool, n)
		met[i] = true
		for len(todo) > 0 {
			o := out[todo[0]]
			todo = todo[1:]
			m.raise(o.how)
			for _, id := range o.from {
				j, own := index(id)
				if !own {
					m.add([]int32{id})
				} else if !met[j] {
					met[j] = true
					todo = append(todo, j)
				}
			}
		}
		c.columns[i].from, c.columns[i].how = m.from, m.how
	}
	if !slices.ContainsFunc(r.filters.from, func(id int32) bool { return id < 0 }) {
		return
	}
	var filters made
	for _, id := range r.filters.from {
		if j, own := index(id); own {
			filters.add(c.columns[j].from)
		} else {
			filters.add([]int32{id})
		}
	}
	r.filters = filters
}

// reading sums up what was resolved.
func (r *resolver) reading(out *source) rewrite.Reading {
	reading := rewrite.Reading{Tables: reads(r.uses), Filters: r.named(r.filters.from)}
	for _, c := range out.columns {
		reading.Output = append(reading.Output, rewrite.Output{Name: c.name, From: r.named(c.from), Transform: transforms[c.how]})
	}
	return reading
}

func (r *resolver) named(ids []int32) []catalog.Ref {
	if len(ids) == 0 {
		return nil
	}
	refs := make([]catalog.Ref, len(ids))
	for i, id := range ids {
		refs[i] = r.refs[id]
	}
	return refs
}

// reads sums up the uses of each table.
func reads(uses []*use) []rewrite.Read {
	var out []rewrite.Read
	at := map[catalog.Ref]int{}
	read := map[catalog.Ref]bool{}
	for _, u := range uses {
		i, seen := at[u.table.Ref]
		if !seen {
			i = len(out)
			at[u.table.Ref] = i
			out = append(out, rewrite.Read{Table: u.table.Ref, Rules: u.table.Rules})
		}
		for j, c := range u.table.Columns {
			if u.columns[j] && !read[c.Ref] {
				read[c.Ref] = true
				out[i].Columns = append(out[i].Columns, c.Ref)
			}
		}
	}
	return out
}
