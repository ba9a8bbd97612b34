package sqlite

import (
	"fmt"
	"slices"

	"github.com/sqlc-dev/meyer/ast"
)

// with is one WITH clause; the inner one hides names of the outer.
type with struct {
	outer *with
	ctes  []*cte
	named map[string]*cte // by name in lower case
}

// cte finds a name, from the inside out; nil if no WITH has it.
func (w *with) cte(name string) *cte {
	for key := lower(name); w != nil; w = w.outer {
		if c := w.named[key]; c != nil {
			return c
		}
	}
	return nil
}

type cte struct {
	node    *ast.CTE
	within  *with
	outer   *scope
	state   cteState
	size    int             // of its body, with the bodies that it reads
	direct  []*ast.TableRef // where its own name means the recursive table
	columns []*column
}

type cteState uint8

const (
	cteUntouched cteState = iota
	cteOpen
	cteDone
)

// with enters a WITH clause. done resolves the CTEs that nothing read: they count too.
func (r *resolver) with(n *ast.With, outer *scope, in *with) (inner *with, done func()) {
	if n == nil {
		return in, func() {}
	}
	inner = &with{outer: in, named: make(map[string]*cte, len(n.CTEs))}
	for _, c := range n.CTEs {
		key := lower(c.Name.Name)
		if inner.named[key] != nil {
			r.refuse(invalid("WITH names " + c.Name.Raw + " twice"))
		}
		if _, taken, err := marked(r.schema, c.Name.Name); err != nil {
			r.refuse(err)
		} else if taken {
			r.refuse(notSupported(c, "a WITH of the name "+c.Name.Raw+" is not supported", "choose another name"))
		}
		inner.named[key] = &cte{node: c, within: inner, outer: outer}
		inner.ctes = append(inner.ctes, inner.named[key])
	}
	return inner, func() {
		for _, c := range inner.ctes {
			r.define(c)
		}
	}
}

// cteSource reads a CTE, which is resolved when it is first read.
func (r *resolver) cteSource(c *cte, ref *ast.TableRef, s *scope) *source {
	s.outer.encloses(c.outer)
	if c.state == cteOpen && !slices.Contains(c.direct, ref) {
		r.refuse(invalid("circular reference: " + ref.Name.Name.Raw))
		return nil
	}
	if c.state == cteUntouched {
		r.define(c)
	}
	r.size += c.size
	src := &source{name: ref.Name.Name.Name, columns: make([]*column, len(c.columns))}
	columns := make([]column, len(c.columns))
	for i, col := range c.columns {
		columns[i] = column{name: col.name, parts: c.columns[i : i+1 : i+1]}
		src.columns[i] = &columns[i]
	}
	return src
}

// define resolves the body of a CTE. SQLite needs no RECURSIVE: in the last terms of a UNION, the CTE's own name in the
// FROM itself is the CTE; everywhere else in the body it is an error.
func (r *resolver) define(c *cte) {
	if c.state != cteUntouched || r.err != nil {
		return
	}
	c.state = cteOpen
	r.inCTE++
	around := r.size
	r.size = 0
	n := c.node.Select
	if n.With != nil && slices.ContainsFunc(n.With.CTEs, func(o *ast.CTE) bool { return same(o.Name.Name, c.node.Name.Name) }) {
		r.refuse(notSupported(c.node, "a WITH inside "+c.node.Name.Raw+" that uses the same name is not supported", "choose another name"))
		return
	}
	recursive := len(n.Cores) // the first recursive term
	if k := len(n.Ops); k > 0 && n.Ops[k-1].Op == "UNION" {
		for i := k; i > 0 && n.Ops[i-1].Op == "UNION" && n.Ops[i-1].All == n.Ops[k-1].All; i-- {
			q, ok := n.Cores[i].(*ast.SelectQuery)
			if !ok {
				break
			}
			found := false
			for _, ref := range q.From {
				if ref.Name != nil && ref.Name.Schema == nil && !ref.HasArgs && same(ref.Name.Name.Name, c.node.Name.Name) {
					c.direct = append(c.direct, ref)
					found = true
				}
			}
			if !found {
				break
			}
			recursive = i
		}
	}
	in, done := r.with(n.With, c.outer, c.within)
	r.cores(n, c.outer, in, func(term int, first []*column) {
		if term == recursive-1 { // the terms before the recursive ones give the columns
			c.columns = r.cteColumns(c, first)
		}
	})
	done()
	c.state, c.size = cteDone, r.size
	r.size = around
	r.inCTE--
}

func (r *resolver) cteColumns(c *cte, first []*column) []*column {
	if r.err != nil {
		return nil
	}
	if slices.Contains(first, nil) {
		r.refuse(notSupported(c.node, "a star is not supported here", "name the columns"))
		return nil
	}
	if c.node.Columns == nil {
		return distinct(first)
	}
	if len(first) != len(c.node.Columns) {
		r.refuse(invalid(fmt.Sprintf("%s names %d columns and has %d", c.node.Name.Raw, len(c.node.Columns), len(first))))
		return nil
	}
	var out []*column
	for i, n := range c.node.Columns {
		out = append(out, &column{name: n.Name, parts: first[i : i+1 : i+1]})
	}
	return distinct(out)
}
