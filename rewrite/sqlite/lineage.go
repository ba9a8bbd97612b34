package sqlite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sqlc-dev/meyer/ast"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// making is how the values of a column come from those of its parts.
type making uint8

const (
	passed   making = iota // as they are
	computed               // from one row
	summed                 // from several rows
)

var transforms = [...]rewrite.Transform{passed: rewrite.Identity, computed: rewrite.Transformation, summed: rewrite.Aggregation}

// trace is where the columns that an expression reads leave a trace: in the column that the expression makes, or among
// those that choose rows.
type trace struct {
	into   *column
	filter bool
}

func (t trace) makes(m making) {
	if t.into != nil {
		t.into.made = max(t.into.made, m)
	}
}

// use is a column that chooses rows, with the place in the text.
type use struct {
	column *column
	at     int
}

// uses notes that the expression being resolved reads a column.
func (r *resolver) uses(c *column, at int) {
	if c == nil {
		return
	}
	if r.trace.into != nil {
		r.trace.into.parts = append(r.trace.into.parts, c)
	}
	if r.trace.filter {
		r.filtered = append(r.filtered, use{c, r.place(at)})
	}
}

// unite adds the columns of a further term of a compound to those of the first.
func unite(first, more []*column) {
	for i, c := range first[:min(len(first), len(more))] {
		if c != nil && more[i] != nil {
			c.parts = append(c.parts, more[i])
		}
	}
}

// maxSteps bounds the work of following columns to base tables, which a statement can make grow with the square of its
// length.
const maxSteps = 4_000_000

// origins follows columns to those of base tables. A recursive CTE's columns are among their own parts: what was seen is
// not followed again.
type origins struct {
	round, steps int
	from         []catalog.Ref
	made         making
}

func (o *origins) next() { o.round, o.from, o.made = o.round+1, nil, passed }

func (o *origins) follow(c *column) {
	if c == nil || c.round == o.round || o.steps > maxSteps {
		return
	}
	c.round = o.round
	o.steps += 1 + len(o.from)
	o.made = max(o.made, c.made)
	if c.stored != nil && c.parts == nil && !slices.Contains(o.from, c.stored.Ref) {
		o.from = append(o.from, c.stored.Ref)
	}
	for _, p := range c.parts {
		o.follow(p)
	}
}

// reading is what a statement with these columns reads.
func (r *resolver) reading(columns []*column) rewrite.Reading {
	var o origins
	out := rewrite.Reading{Tables: r.reads()}
	for _, c := range columns {
		if c == nil { // of a star over what is not listed, which only a policy has
			continue
		}
		o.next()
		o.follow(c)
		out.Output = append(out.Output, rewrite.Output{Name: c.name, From: o.from, Transform: transforms[o.made]})
	}
	slices.SortStableFunc(r.filtered, func(a, b use) int { return cmp.Compare(a.at, b.at) })
	o.next()
	for _, u := range r.filtered {
		o.follow(u.column)
	}
	out.Filters = o.from
	if o.steps > maxSteps {
		r.refuse(tooLarge("its columns are made of too many others"))
	}
	return out
}

// mention is a table, or a column of one, that the statement reads, with its place in the text.
type mention struct {
	table  *rewrite.Table
	column *column
	at     int
}

// place is where something at a byte of the text being read stands for the asker.
func (r *resolver) place(at int) int {
	if len(r.views) > 0 {
		return r.at
	}
	return at
}

// read notes that a column is read. said is what the asker wrote for it.
func (r *resolver) read(c *column, said ast.Node, at int) {
	if c == nil || c.stored == nil || r.policy != nil {
		return
	}
	if unexpressible(c.stored) {
		r.refuse(&acl.Refusal{
			Code:   acl.CodeMaskUnsupported,
			Public: fmt.Sprintf("%s reads %s, which is masked in a way that SQLite has no function for", ast.String(said), c.stored.Ref),
			Hint:   "leave the column out",
			Detail: fmt.Sprintf("mask %s of %s", c.stored.Mask.Kind, c.stored.Ref),
		})
		return
	}
	at = r.place(at)
	if !c.mentioned {
		c.mentioned, c.at = true, at
		r.mentions = append(r.mentions, mention{table: c.table, column: c})
	}
	c.at = min(c.at, at)
}

// reads lists what was read in the order of the text.
func (r *resolver) reads() []rewrite.Read {
	for i := range r.mentions {
		if m := &r.mentions[i]; m.column != nil {
			m.at = m.column.at
		}
	}
	slices.SortStableFunc(r.mentions, func(a, b mention) int { return cmp.Compare(a.at, b.at) })
	var out []rewrite.Read
	index := map[*rewrite.Table]int{}
	for _, m := range r.mentions {
		i, ok := index[m.table]
		if !ok {
			i = len(out)
			index[m.table] = i
			out = append(out, rewrite.Read{Table: m.table.Ref, Rules: m.table.Rules})
		}
		if m.column != nil && !slices.Contains(out[i].Columns, m.column.stored.Ref) {
			out[i].Columns = append(out[i].Columns, m.column.stored.Ref)
		}
	}
	return out
}
