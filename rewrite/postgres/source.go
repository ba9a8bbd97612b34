package postgres

import (
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// source is what the values of a column are made of: a base column, or other sources. Sources of a recursive query
// refer to themselves.
type source struct {
	ref  *catalog.Ref // of a base column
	from []*source
	how  transform
}

// transform is rewrite.Transform in an order: what is made of several sources is made in the greatest of their ways.
type transform int

const (
	identity transform = iota
	transformation
	aggregation
)

func (t transform) public() rewrite.Transform {
	return [...]rewrite.Transform{rewrite.Identity, rewrite.Transformation, rewrite.Aggregation}[t]
}

// add notes that values are also made of another source's. Adding to nil, or nil, does nothing.
func (s *source) add(other *source) {
	if s != nil && other != nil {
		s.from = append(s.from, other)
	}
}

// base returns the base columns that a source is made of, in order of first mention, and how.
func (s *source) base() ([]catalog.Ref, rewrite.Transform) {
	w := sourceWalk{done: map[*source]bool{}, listed: map[catalog.Ref]bool{}}
	w.visit(s)
	return w.refs, w.how.public()
}

type sourceWalk struct {
	done   map[*source]bool
	listed map[catalog.Ref]bool
	refs   []catalog.Ref
	how    transform
}

// visit goes through what is reachable from a source. It keeps its own stack: sources chain as long as queries nest.
func (w *sourceWalk) visit(s *source) {
	stack := []*source{s}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if s == nil || w.done[s] {
			continue
		}
		w.done[s] = true
		w.how = max(w.how, s.how)
		if s.ref != nil && !w.listed[*s.ref] {
			w.listed[*s.ref] = true
			w.refs = append(w.refs, *s.ref)
		}
		for i := len(s.from) - 1; i >= 0; i-- {
			stack = append(stack, s.from[i])
		}
	}
}

// output is the lineage of result columns.
func output(columns []column) []rewrite.Output {
	out := make([]rewrite.Output, len(columns))
	for i, c := range columns {
		out[i].Name = c.name
		if s := c.made; s != nil && s.ref != nil { // as most are
			out[i].From, out[i].Transform = []catalog.Ref{*s.ref}, s.how.public()
			continue
		}
		out[i].From, out[i].Transform = c.made.base()
	}
	return out
}
