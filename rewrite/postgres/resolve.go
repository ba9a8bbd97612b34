package postgres

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// tables says what a base table named in FROM is. The error is an *acl.Refusal for a name that means nothing.
type tables func(u *use, name string) (*item, error)

// resolver binds the names of one statement by PostgreSQL's rules. It notes what it finds and changes nothing.
type resolver struct {
	database catalog.Database
	tables   tables
	// wrapper recognises, in a printed text, the derived table that stands for a base table.
	wrapper func(*resolver, *pg.Node) (*item, error)

	uses    []*use
	refs    []reference
	groups  []grouping
	aliases map[string]bool        // every name that an item bears, in the statement or SQL view that is being resolved
	rows    map[*pg.ColumnRef]bool // references to whole rows
	bound   map[*pg.ColumnRef]*source

	full bool // there is a FULL JOIN
	// unnamed says that the reference being resolved is used in a way that no name of a row's columns shows through.
	unnamed bool

	into    *source            // what the expression that is being resolved makes, if anything
	filters source             // what rows are chosen by
	windows map[string]*source // what the named windows of the query that is being resolved are made of

	fragments  *fragments
	views      []catalog.Ref // SQL views whose definitions are being resolved, outermost first
	within     string        // the outermost of them, as the asker wrote it
	expansions int           // definitions resolved so far
}

// reference is a mention of an item or of one of its columns.
type reference struct {
	node   *pg.ColumnRef
	item   *item
	column *column // nil for a star
	// parts counts the names in front of the last field.
	parts int
}

// grouping is a query with a plain GROUP BY and the base columns that it groups by.
type grouping struct {
	query   *pg.SelectStmt
	items   []*item
	columns []column
}

func newResolver(d catalog.Database, f *fragments, t tables) *resolver {
	return &resolver{database: d, fragments: f, tables: t, aliases: map[string]bool{}, rows: map[*pg.ColumnRef]bool{}, bound: map[*pg.ColumnRef]*source{}}
}

// making resolves an expression whose values make those of s, nil if they make none.
func (r *resolver) making(s *source, n *pg.Node, sc *scope) error {
	saved := r.into
	r.into = s
	err := r.expr(n, sc)
	r.into = saved
	return err
}

// reads lists what was read, a table once, in order of first mention.
func (r *resolver) reads() []rewrite.Read {
	var out []rewrite.Read
	var listed [][]*catalog.Ref
	for _, u := range r.uses {
		i := slices.IndexFunc(out, func(o rewrite.Read) bool { return o.Table == u.ref })
		if i < 0 {
			i = len(out)
			listed = append(listed, nil)
			out = append(out, rewrite.Read{Table: u.ref, Rules: u.table.Rules})
		}
		for _, c := range u.seen {
			if !slices.Contains(listed[i], c) {
				listed[i], out[i].Columns = append(listed[i], c), append(out[i].Columns, *c)
			}
		}
	}
	return out
}

// query resolves a SELECT, VALUES or set operation and returns its columns. self is the WITH query whose body it is.
func (r *resolver) query(s *pg.SelectStmt, outer *scope, self *common) ([]column, error) {
	sc := &scope{outer: outer}
	into, windows := r.into, r.windows
	r.into, r.windows = nil, nil
	defer func() { r.into, r.windows = into, windows }()
	if s.WithClause != nil {
		if err := r.with(sc, s.WithClause); err != nil {
			return nil, err
		}
	}
	var out []column
	var err error
	switch {
	case s.Op != pg.SetOperation_SETOP_NONE:
		out, err = r.setOperation(s, sc, self)
	case len(s.ValuesLists) > 0:
		out, err = r.values(s, sc)
	default:
		out, err = r.selection(s, sc)
	}
	if err != nil {
		return nil, err
	}
	// LIMIT and OFFSET see no column of their own level.
	for _, n := range []*pg.Node{s.LimitOffset, s.LimitCount} {
		if err := r.expr(n, &scope{outer: sc.outer, with: sc.with}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r *resolver) with(sc *scope, clause *pg.WithClause) error {
	var all []*common
	for _, n := range clause.Ctes {
		def := n.GetCommonTableExpr()
		if slices.ContainsFunc(all, func(c *common) bool { return c.name == def.Ctename }) {
			return ambiguous(said(def.Ctename))
		}
		all = append(all, &common{name: def.Ctename, def: def, recursive: clause.Recursive})
	}
	if clause.Recursive {
		sc.with = all // each sees all
	}
	for _, c := range all {
		c.scope = &scope{outer: sc.outer, with: slices.Clone(sc.with)}
		if clause.Recursive {
			continue
		}
		if err := r.common(c); err != nil {
			return err
		}
		sc.with = append(sc.with, c)
	}
	for _, c := range all {
		if err := r.common(c); err != nil {
			return err
		}
	}
	return nil
}

// common resolves the body of a WITH query, once.
func (r *resolver) common(c *common) error {
	if c.started {
		return nil
	}
	c.started = true
	columns, err := r.query(c.def.Ctequery.GetSelectStmt(), c.scope, c)
	if err != nil {
		return err
	}
	if !c.known {
		if err := c.publish(columns); err != nil {
			return err
		}
	}
	if s := c.def.SearchClause; s != nil {
		c.columns = append(c.columns, column{name: s.SearchSeqColumn, made: c.trail(s.SearchColList)})
	}
	if y := c.def.CycleClause; y != nil {
		trail := c.trail(y.CycleColList)
		c.columns = append(c.columns, column{name: y.CycleMarkColumn, made: trail}, column{name: y.CyclePathColumn, made: trail})
	}
	c.done = true
	return nil
}

// trail is what a SEARCH or CYCLE column is made of: the columns that it lists.
func (c *common) trail(list []*pg.Node) *source {
	made := &source{how: transformation}
	listed, _ := names(list)
	for _, col := range c.columns {
		if slices.Contains(listed, col.name) {
			made.add(col.made)
		}
	}
	return made
}

// publish makes the columns known, to the query itself too if it is recursive.
func (c *common) publish(columns []column) error {
	renamed, ok := rename(derived(columns), c.def.Aliascolnames)
	if !ok {
		return tooManyNames(c.name)
	}
	c.columns, c.known = renamed, true
	return nil
}

func tooManyNames(of string) *acl.Refusal {
	return notSupported(fmt.Sprintf("%s is given more column names than it has columns", said(of)), "name at most as many columns as there are", "")
}

func (r *resolver) setOperation(s *pg.SelectStmt, sc *scope, self *common) ([]column, error) {
	left, err := r.query(s.Larg, sc, nil)
	if err != nil {
		return nil, err
	}
	out := derived(left)
	for i := range out {
		out[i].made = &source{from: []*source{left[i].made}}
	}
	// A recursive query has the columns of its first arm; what they are made of is complete after the second.
	if self != nil && self.recursive {
		if err := self.publish(out); err != nil {
			return nil, err
		}
	}
	right, err := r.query(s.Rarg, sc, nil)
	if err != nil {
		return nil, err
	}
	if len(left) != len(right) {
		return nil, notSupported("the arms of a set operation have different numbers of columns", "select the same number of columns in each",
			fmt.Sprintf("%d and %d columns", len(left), len(right)))
	}
	for i := range out {
		out[i].made.add(right[i].made)
	}
	for _, n := range s.SortClause {
		if done, err := r.byOutput(n.GetSortBy().GetNode(), out); err != nil {
			return nil, err
		} else if done {
			continue
		}
		if ref := n.GetSortBy().GetNode().GetColumnRef(); ref != nil {
			if list, ok := names(ref.Fields); ok {
				return nil, acl.NotAvailable(said(list...), "no column of the set operation's result")
			}
		}
		return nil, notSupported("a set operation can only be ordered by its columns", "order by a column's name or number", "")
	}
	return out, nil
}

func (r *resolver) values(s *pg.SelectStmt, sc *scope) ([]column, error) {
	out := make([]column, len(s.ValuesLists[0].GetList().GetItems()))
	for i := range out {
		out[i] = column{name: fmt.Sprintf("column%d", i+1), made: &source{how: transformation}}
	}
	for _, row := range s.ValuesLists {
		items := row.GetList().GetItems()
		if len(items) != len(out) {
			return nil, notSupported("the rows of VALUES have different lengths", "give each row the same number of values", "")
		}
		for i, n := range items {
			if err := r.making(out[i].made, n, sc); err != nil {
				return nil, err
			}
		}
	}
	for _, n := range s.SortClause {
		if done, err := r.byOutput(n.GetSortBy().GetNode(), out); err != nil {
			return nil, err
		} else if !done {
			if err := r.expr(n.GetSortBy().GetNode(), sc); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (r *resolver) selection(s *pg.SelectStmt, sc *scope) ([]column, error) {
	if err := r.from(s.FromClause, sc); err != nil {
		return nil, err
	}
	if len(s.WindowClause) > 0 {
		r.windows = map[string]*source{}
		for _, n := range s.WindowClause {
			r.windows[n.GetWindowDef().GetName()] = &source{how: aggregation}
		}
	}
	out := make([]column, 0, len(s.TargetList))
	for _, n := range s.TargetList {
		t := n.GetResTarget()
		columns, err := r.target(t, sc)
		if err != nil {
			return nil, err
		}
		out = append(out, columns...)
	}
	for _, n := range []*pg.Node{s.WhereClause, s.HavingClause} {
		if err := r.making(&r.filters, n, sc); err != nil {
			return nil, err
		}
	}
	for _, n := range s.SortClause {
		if err := r.sortKey(n.GetSortBy().GetNode(), sc, out); err != nil {
			return nil, err
		}
	}
	if err := r.groupBy(s, sc, out); err != nil {
		return nil, err
	}
	for _, n := range s.DistinctClause {
		if n.GetNode() == nil {
			continue // DISTINCT without ON
		}
		if err := r.sortKey(n, sc, out); err != nil {
			return nil, err
		}
	}
	for _, n := range s.WindowClause {
		w := n.GetWindowDef()
		r.into = r.windows[w.GetName()]
		if err := r.window(w, sc); err != nil {
			return nil, err
		}
		r.into = nil
	}
	return out, nil
}

// target resolves one entry of a select list and returns the columns that it becomes.
func (r *resolver) target(t *pg.ResTarget, sc *scope) ([]column, error) {
	if ref := t.Val.GetColumnRef(); ref != nil && endsInStar(ref.Fields) {
		return r.star(ref, sc)
	}
	if ind := t.Val.GetAIndirection(); ind != nil && endsInStar(ind.Indirection) {
		it, err := r.rowOf(ind, sc)
		if err != nil {
			return nil, err
		}
		if len(ind.Indirection) > 1 {
			return nil, notSupported("a field of a field is not supported", "name the column directly", "")
		}
		return r.all(it), nil
	}
	made := &source{how: transformation}
	if err := r.making(made, t.Val, sc); err != nil {
		return nil, err
	}
	out := column{name: t.Name, made: made}
	if out.name == "" {
		out.name, _ = figureName(t.Val)
	}
	if ref := t.Val.GetColumnRef(); ref != nil {
		if c, ok := r.lastColumn(ref); ok {
			out.use, out.ref, out.made = c.use, c.ref, c.made
		}
	} else if ind := t.Val.GetAIndirection(); ind != nil && ind.Indirection[0].GetString_() != nil && len(ind.Indirection) == 1 {
		made.how = identity // a field of a row
	}
	return []column{out}, nil
}

// lastColumn returns the base column that a reference was just bound to.
func (r *resolver) lastColumn(ref *pg.ColumnRef) (column, bool) {
	if len(r.refs) == 0 {
		return column{}, false
	}
	last := r.refs[len(r.refs)-1]
	if last.node != ref || last.column == nil {
		return column{}, false
	}
	return *last.column, true
}

func endsInStar(fields []*pg.Node) bool {
	return len(fields) > 0 && fields[len(fields)-1].GetAStar() != nil
}

// star expands `*`, `t.*` and `s.t.*`.
func (r *resolver) star(ref *pg.ColumnRef, sc *scope) ([]column, error) {
	if len(ref.Fields) > 1 {
		it, err := r.rowOfStar(ref, sc)
		if err != nil {
			return nil, err
		}
		return r.all(it), nil
	}
	var out []column
	found := false
	for _, it := range sc.items {
		if it.bare {
			found = true
			for _, c := range r.all(it) {
				if !slices.Contains(it.merged, c.name) {
					out = append(out, c)
				}
			}
		}
	}
	if !found {
		return nil, notSupported("* needs a table in FROM", "name a table", "")
	}
	return out, nil
}

func (r *resolver) rowOfStar(ref *pg.ColumnRef, sc *scope) (*item, error) {
	list, ok := names(ref.Fields[:len(ref.Fields)-1])
	if !ok {
		return nil, notSupported("a star inside a name is not supported", "write t.*", "")
	}
	it, err := r.findItem(sc, list)
	if err != nil {
		return nil, err
	}
	if it == nil {
		return nil, acl.NotAvailable(said(list...), "no such table in FROM")
	}
	r.refs = append(r.refs, reference{ref, it, nil, len(list)})
	return it, nil
}

// all notes that every column of an item is read, those too that the catalog does not hold yet.
func (r *resolver) all(it *item) []column {
	expose(it)
	for _, c := range it.columns {
		r.read(c)
	}
	return it.columns
}

// expose notes that a name could mean a column of the item's table that the catalog does not hold.
func expose(it *item) {
	if it.use != nil {
		it.use.exposed = true
	}
}

func (r *resolver) read(c column) {
	if c.use != nil {
		c.use.see(c.ref)
	}
	r.into.add(c.made)
}

// byOutput resolves an ORDER BY key that is a number or the name of an output column.
func (r *resolver) byOutput(n *pg.Node, out []column) (bool, error) {
	if c := n.GetAConst(); c != nil {
		i, ok := c.Val.(*pg.A_Const_Ival)
		if !ok {
			return false, nil
		}
		if p := int(i.Ival.GetIval()); p < 1 || p > len(out) {
			return false, notSupported(fmt.Sprintf("position %d is not in the select list", p), "use a position of the select list", "")
		}
		return true, nil
	}
	name, ok := plainName(n)
	if !ok {
		return false, nil
	}
	var found *column
	for i := range out {
		if out[i].name != name {
			continue
		}
		if found != nil && found.made != out[i].made {
			return false, ambiguous(said(name))
		}
		found = &out[i]
	}
	return found != nil, nil
}

func plainName(n *pg.Node) (string, bool) {
	ref := n.GetColumnRef()
	if ref == nil || len(ref.Fields) != 1 {
		return "", false
	}
	s := ref.Fields[0].GetString_()
	return s.GetSval(), s != nil
}

// sortKey resolves a key of ORDER BY or DISTINCT ON, where a plain name is an output column first.
func (r *resolver) sortKey(n *pg.Node, sc *scope, out []column) error {
	if done, err := r.byOutput(n, out); err != nil || done {
		return err
	}
	return r.expr(n, sc)
}

// groupBy resolves GROUP BY, where a plain name is an input column first, and keeps what the query groups by.
func (r *resolver) groupBy(s *pg.SelectStmt, sc *scope, out []column) error {
	g := grouping{query: s, items: sc.items}
	plain := true
	var key func(n *pg.Node) error
	key = func(n *pg.Node) error {
		switch x := n.GetNode().(type) {
		case *pg.Node_GroupingSet:
			plain = false
			for _, c := range x.GroupingSet.Content {
				if err := key(c); err != nil {
					return err
				}
			}
			return nil
		case *pg.Node_RowExpr:
			for _, c := range x.RowExpr.Args {
				if err := key(c); err != nil {
					return err
				}
			}
			return nil
		case *pg.Node_AConst:
			if _, err := r.byOutput(n, out); err != nil {
				return err
			}
			if i, ok := x.AConst.Val.(*pg.A_Const_Ival); ok {
				g.columns = append(g.columns, out[i.Ival.GetIval()-1])
			}
			return nil
		}
		if name, ok := plainName(n); ok {
			c, _, err := r.lookup(&scope{items: sc.items}, name)
			if err != nil {
				return err
			}
			if c == nil {
				if done, err := r.byOutput(n, out); err != nil || done {
					if i := slices.IndexFunc(out, func(o column) bool { return o.name == name }); i >= 0 {
						g.columns = append(g.columns, out[i])
					}
					return err
				}
			}
		}
		if err := r.expr(n, sc); err != nil {
			return err
		}
		if ref := n.GetColumnRef(); ref != nil {
			if c, ok := r.lastColumn(ref); ok {
				g.columns = append(g.columns, c)
			}
		}
		return nil
	}
	for _, n := range s.GroupClause {
		if err := key(n); err != nil {
			return err
		}
	}
	if plain && len(g.columns) > 0 {
		r.groups = append(r.groups, g)
	}
	return nil
}
