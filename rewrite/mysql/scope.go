package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// use is one place where a statement reads a base table or SQL view.
type use struct {
	at      *ast.TableSource
	table   *rewrite.Table
	view    *view  // if it is one
	columns []bool // by index in table.Columns: is it read?
	// closed says that a name of the statement could mean a column that the catalog does not hold, if the table had one.
	closed bool
}

// source is one element of a FROM clause.
type source struct {
	name, database string // what qualifies its columns; database is empty if it is no base table
	columns        []column
	index          map[string]int // of columns by their lower case names, once asked for, if there are many
	use            *use           // if it is a base table of the asker
	raw            catalog.Ref    // if it is a base table of the policy: all of its columns count
	open           bool           // of the policy's own SQL: columns are not known, any name may be one
	alias          string         // of the policy's own SQL: what qualifies its columns from now on
}

// column is a column that a query can name, with what it is made of.
type column struct {
	name   string
	number number
	from   []int32
	how    int
	window bool // it holds a window function, which HAVING cannot see
}

// scope is where names are looked up: one query block and the blocks around it.
type scope struct {
	outer   *scope
	with    *with
	from    *from // nil without FROM
	sources []*source
	order   []slot // what * lists, if that is not the sources' columns in turn
	windows []window
	// outputs are the columns of the select list, for clauses that may name them. first says that they come before
	// those of the FROM clause.
	outputs []column
	first   bool
	// selected, if not nil, are the only columns of the FROM clause that can be named, outside of aggregates.
	selected map[slot]bool
}

// from is a whole FROM clause.
type from struct {
	sources []*source
	names   map[string]bool
	merged  map[mergedColumn]bool
	turned  bool // the parser may have changed the order of the tables
}

// mergedColumn is a column that USING or NATURAL has made one with a column of the other side, which goes by the name.
type mergedColumn struct {
	source *source
	column string // lower case
}

// slot is a column of a source.
type slot struct {
	source *source
	column int
}

// depth is the number of blocks around this one.
func (s *scope) depth() (n int) {
	for s = s.outer; s != nil; s = s.outer {
		n++
	}
	return n
}

// window is what PARTITION BY and ORDER BY of a named window read.
type window struct {
	name string
	made *made
}

// maxSources bounds the tables of a FROM clause; engines join at most 61.
const maxSources = 512

// relation resolves part of a FROM clause and returns the scope of its tables.
func (r *resolver) relation(n ast.ResultSetNode, block *scope) (*scope, error) {
	switch n := n.(type) {
	case *ast.Join:
		l, err := r.relation(n.Left, block)
		if err != nil || n.Right == nil {
			return l, err
		}
		right, err := r.relation(n.Right, block)
		if err != nil {
			return nil, err
		}
		return r.join(n, l, right)
	case *ast.TableSource:
		s, err := r.source(n, block)
		if err != nil {
			return nil, err
		}
		f := block.from
		if f.names[s.name] {
			return nil, ambiguous(s.name)
		}
		if len(f.sources) == maxSources {
			return nil, &acl.Refusal{
				Code: acl.CodeTooLarge, Public: fmt.Sprintf("a FROM clause has more than %d tables", maxSources), Hint: "split the statement",
			}
		}
		f.names[s.name] = true
		f.sources = append(f.sources, s)
		return &scope{outer: block.outer, with: block.with, from: f, sources: f.sources[len(f.sources)-1:]}, nil
	}
	return nil, notSupported("the FROM clause holds a construct that is not supported", n)
}

// join resolves a join of two parts that stand beside each other in the FROM clause.
func (r *resolver) join(n *ast.Join, l, right *scope) (*scope, error) {
	f := l.from
	if turned(r.sql, n) {
		if n.NaturalJoin || len(n.Using) > 0 {
			return nil, notSupported("a RIGHT JOIN in parentheses behind a join without a condition is not supported", n)
		}
		f.turned = true
	}
	both := &scope{outer: l.outer, with: l.with, from: f, sources: f.sources[len(f.sources)-len(l.sources)-len(right.sources):]}
	r.outer = r.outer || n.Tp != ast.CrossJoin
	names := make([]string, 0, len(n.Using))
	for _, c := range n.Using {
		names = append(names, c.Name.O)
	}
	if n.NaturalJoin {
		if r.policy {
			return nil, fmt.Errorf("mysql: NATURAL JOIN in a policy is not supported")
		}
		both.close()
		seen := map[string]bool{}
		for _, c := range l.listed() {
			key := strings.ToLower(c.name())
			if !seen[key] && len(right.owners(key)) > 0 {
				seen[key] = true
				names = append(names, c.name())
			}
		}
	}
	// The side that keeps its rows gives the values, and comes first in *.
	keeps, loses := l, right
	if n.Tp == ast.RightJoin {
		keeps, loses = right, l
	}
	shared := map[slot]bool{}
	for _, name := range names {
		key := strings.ToLower(name)
		for _, side := range []*scope{l, right} {
			owners := side.owners(key)
			if len(owners) == 0 {
				return nil, r.absent(name, side)
			}
			if len(owners) > 1 {
				return nil, ambiguous(name)
			}
			side.closeBut(owners[0])
			if i, ok := owners[0].find(key); ok {
				r.filters.column(owners[0].read(i))
				if side == keeps {
					shared[slot{owners[0], i}] = true
				}
			}
			if side == loses {
				f.merged[mergedColumn{owners[0], key}] = true
			}
		}
	}
	switch {
	case len(names) > 0 && !r.policy:
		for _, s := range keeps.listed() {
			if shared[s] {
				both.order = append(both.order, s)
			}
		}
		for _, side := range []*scope{keeps, loses} {
			for _, s := range side.listed() {
				if !shared[s] && !f.merged[mergedColumn{s.source, strings.ToLower(s.name())}] {
					both.order = append(both.order, s)
				}
			}
		}
	case l.order != nil || right.order != nil:
		both.order = slices.Concat(l.listed(), right.listed())
	}
	if n.On != nil {
		if _, err := r.condition(&n.On.Expr, both, "ON"); err != nil {
			return nil, err
		}
	}
	return both, nil
}

// listed returns the columns that * lists, in order.
func (s *scope) listed() []slot {
	if s.order != nil {
		return s.order
	}
	var out []slot
	for _, o := range s.sources {
		for i := range o.columns {
			out = append(out, slot{o, i})
		}
	}
	return out
}

func (s slot) name() string { return s.source.columns[s.column].name }

// close notes that a name could mean a column of any of the tables.
func (s *scope) close() { s.closeBut(nil) }

// closeBut does so for all but the one that has the column.
func (s *scope) closeBut(owner *source) {
	for _, o := range s.sources {
		if o != owner {
			o.close()
		}
	}
}

func (s *source) close() {
	if s.use != nil {
		s.use.closed = true
	}
}

// owners returns the tables of which an unqualified name of that key could be a column.
func (s *scope) owners(key string) []*source {
	var out []*source
	for _, o := range s.sources {
		if !s.merged(o, key) && o.has(key) {
			out = append(out, o)
		}
	}
	return out
}

func (s *scope) merged(o *source, key string) bool {
	return s.from != nil && len(s.from.merged) > 0 && s.from.merged[mergedColumn{o, key}]
}

// find returns the index of the column of that name, which is in lower case.
func (s *source) find(key string) (int, bool) {
	if len(s.columns) < manyColumns {
		for i := range s.columns {
			if strings.EqualFold(s.columns[i].name, key) {
				return i, true
			}
		}
		return 0, false
	}
	if s.index == nil {
		s.index = make(map[string]int, len(s.columns))
		for i := range s.columns {
			name := strings.ToLower(s.columns[i].name)
			if _, twice := s.index[name]; !twice {
				s.index[name] = i
			}
		}
	}
	i, ok := s.index[key]
	return i, ok
}

func (s *source) has(key string) bool {
	if s.open {
		return true
	}
	_, ok := s.find(key)
	return ok
}

// read notes that a column is read and returns it.
func (s *source) read(i int) *column {
	if s.use != nil {
		s.use.columns[i] = true
	}
	return &s.columns[i]
}

// named reports whether a qualifier means the source.
func (s *source) named(database, name string) bool {
	return s.name == name && (database == "" || s.database == database)
}

func (r *resolver) source(n *ast.TableSource, block *scope) (*source, error) {
	var s *source
	switch q := n.Source.(type) {
	case *ast.TableName:
		c := (*cte)(nil)
		if q.Schema.O == "" {
			var err error
			if c, err = block.with.find(q.Name.O); err != nil {
				return nil, err
			}
		}
		if c != nil {
			if len(q.IndexHints)+len(q.PartitionNames) > 0 {
				return nil, notSupported("index hints and partitions of a WITH name are not supported", q)
			}
			s = &source{name: q.Name.O, columns: c.columns, open: c.open}
			break
		}
		var err error
		if s, err = r.base(n, q); err != nil {
			return nil, err
		}
	case *jsonTable:
		var err error
		if s, err = r.jsonTable(q, block); err != nil {
			return nil, err
		}
	default:
		if r.governed {
			var err error
			if s, err = r.wrapped(n, q); err != nil {
				return nil, err
			}
		}
		if s == nil {
			var around *scope
			if n.Lateral {
				around = &scope{outer: block.outer, with: block.with, from: block.from, sources: block.from.sources}
			}
			var err error
			if s, err = r.query(q, around, block.with, nil, len(n.ColumnNames) == 0); err != nil {
				return nil, err
			}
			if err := distinct(s, n.ColumnNames, n.AsName.O); err != nil {
				return nil, err
			}
		}
		for i, name := range n.ColumnNames {
			if i < len(s.columns) {
				s.columns[i].name = name.O
			}
		}
	}
	if n.AsName.O != "" {
		s.name = n.AsName.O
	}
	if s.name == "" {
		return nil, refuse("a derived table needs an alias", "write AS and a name behind it", "no alias")
	}
	if err := r.unreserved(s.name); err != nil {
		return nil, err
	}
	if r.policy {
		s.alias = reserved + "_" + s.name
		n.AsName = ast.NewCIStr(s.alias)
	}
	return s, nil
}

// base resolves the name of a base table or SQL view.
func (r *resolver) base(at *ast.TableSource, n *ast.TableName) (*source, error) {
	database, said := n.Schema.O, n.Name.O
	if database == "" {
		database = r.database
	} else {
		said = database + "." + said
	}
	if r.governed && n.Schema.O == "" {
		return nil, fmt.Errorf("mysql: table %s is not qualified", said)
	}
	ref := catalog.TableRef(database, "", n.Name.O)
	if r.policy {
		found, ok := r.schema.Exists(ref)
		if !ok {
			return nil, fmt.Errorf("mysql: the policy names table %s, which the catalog does not hold", ref)
		}
		n.Schema = ast.NewCIStr(found.Database)
		return &source{name: n.Name.O, database: database, raw: found}, nil
	}
	t, ok, err := r.schema.Table(ref)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, acl.NotAvailable(said, r.absence(ref))
	}
	if t.Part {
		return nil, acl.NotAvailable(said, "a part of a governed table: "+ref.String())
	}
	if r.governed && (!t.Whole || t.SQLView != "") {
		return nil, fmt.Errorf("mysql: table %s stands outside of its wrapper", ref)
	}
	if r.governed {
		at.AsName, n.IndexHints = orElse(at.AsName, n.Name), nil // as definition compares it
	}
	u := &use{at: at, table: t, columns: make([]bool, len(t.Columns))}
	r.uses = append(r.uses, u)
	s := &source{name: n.Name.O, database: database, use: u}
	if t.SQLView == "" {
		s.columns = r.columns(t)
		return s, nil
	}
	if len(n.IndexHints)+len(n.PartitionNames) > 0 {
		return nil, notSupported("index hints and partitions of a SQL view are not supported", n)
	}
	if u.view, err = r.expand(t, said); err != nil {
		return nil, err
	}
	s.columns = u.view.visible(t)
	return s, nil
}

// columns returns a table's columns as they read.
func (r *resolver) columns(t *rewrite.Table) []column {
	out := make([]column, len(t.Columns))
	var ids []int32
	if !r.governed {
		ids = r.number(t)
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		out[i].name = c.Name
		if c.Mask == nil {
			out[i].number = typed(c.Type)
		}
		if ids != nil {
			out[i].from = ids[i : i+1 : i+1]
		}
	}
	return out
}

// star expands a * of a select list: the names go into out, the columns are read.
func (r *resolver) star(n *ast.WildCardField, in *scope, out *source) error {
	before := len(out.columns)
	defer func() {
		for i := range out.columns[before:] {
			out.columns[before+i].window = false // it is the value of one
		}
	}()
	if n.Table.O == "" {
		if len(in.sources) == 0 {
			return refuse("* needs a FROM clause", "name what to select", "no tables")
		}
		if in.from.turned {
			return refuse("* over a RIGHT JOIN in parentheses behind a join without a condition is not supported", "name what to select", "turned join")
		}
		for _, s := range in.sources {
			out.open = out.open || s.open || s.raw != (catalog.Ref{})
			if err := r.spans(s); err != nil {
				return err
			}
		}
		for _, s := range in.listed() {
			out.columns = append(out.columns, s.source.columns[s.column])
		}
		return nil
	}
	for _, s := range in.sources {
		if !s.named(n.Schema.O, n.Table.O) {
			continue
		}
		out.open = out.open || s.open || s.raw != (catalog.Ref{})
		if err := r.spans(s); err != nil {
			return err
		}
		out.columns = append(out.columns, s.columns...)
		n.Schema = ast.CIStr{} // a wrapper has none
		if r.policy {
			n.Table = ast.NewCIStr(s.alias)
		}
		return nil
	}
	said := n.Table.O + ".*"
	if n.Schema.O != "" {
		said = n.Schema.O + "." + said
	}
	return acl.NotAvailable(said, "no such table in the FROM clause")
}

// spans notes that a * reads all of a source. In a SQL view it means the columns that there were when the view was
// made, also those that the asker may not see.
func (r *resolver) spans(s *source) error {
	u := s.use
	if u == nil {
		return nil
	}
	u.closed = true
	for i := range u.columns {
		u.columns[i] = true
	}
	if r.views > 0 && len(r.schema.Columns(u.table.Ref)) != len(u.columns) {
		return acl.NotAvailable(s.name+".*", "denied: columns of "+u.table.Ref.String())
	}
	return nil
}

// lookup looks a column up in one block. The source is nil if the name is one of the select list, the column if there
// is none of that name.
func (r *resolver) lookup(n *ast.ColumnName, s *scope) (*column, *source, error) {
	if n.Table.O != "" {
		for _, o := range s.sources {
			if o.named(n.Schema.O, n.Table.O) && r.open(s, o, n.Name) {
				if c := r.owned(o, n.Name); c != nil {
					return c, o, nil
				}
			}
		}
		return nil, nil, nil
	}
	output := func() *column {
		for i := range s.outputs {
			if strings.EqualFold(s.outputs[i].name, n.Name.O) {
				r.outputs++
				if s.outputs[i].window && s.selected != nil {
					return nil
				}
				return &s.outputs[i]
			}
		}
		return nil
	}
	if s.first {
		if c := output(); c != nil {
			return c, nil, nil
		}
	}
	var found *column
	var owner *source
	for _, o := range s.sources {
		if s.merged(o, n.Name.L) || !r.open(s, o, n.Name) {
			continue
		}
		c := r.owned(o, n.Name)
		if c == nil {
			continue
		}
		if owner != nil {
			if owner.open || o.open {
				continue
			}
			// GROUP BY and HAVING may mean a column of the select list where the tables leave it open.
			if c := output(); c != nil {
				s.close()
				return c, nil, nil
			}
			return nil, nil, ambiguous(n.Name.O)
		}
		found, owner = c, o
	}
	if found != nil {
		s.closeBut(owner)
		return found, owner, nil
	}
	s.close() // the name will mean something else
	return output(), nil, nil
}

// open reports whether the clause that is looked at may name a column of a source.
func (r *resolver) open(s *scope, o *source, name ast.CIStr) bool {
	if s.selected == nil || r.aggregates > 0 {
		return true
	}
	i, ok := o.find(name.L)
	return ok && s.selected[slot{o, i}]
}

// owned returns the column of a source, and notes that it is read. Of a policy's base table all columns count, hidden
// ones too.
func (r *resolver) owned(s *source, name ast.CIStr) *column {
	if s.raw != (catalog.Ref{}) {
		if _, ok := r.schema.Exists(catalog.ColumnRef(s.raw.Database, s.raw.Schema, s.raw.Table, name.O)); ok {
			return &column{}
		}
		return nil
	}
	if i, ok := s.find(name.L); ok {
		return s.read(i)
	}
	if s.open {
		return &column{}
	}
	return nil
}

// column binds a column's name.
func (r *resolver) column(n *ast.ColumnName, in *scope) (number, error) {
	for s := in; s != nil; s = s.outer {
		c, src, err := r.lookup(n, s)
		if err != nil {
			return number{}, err
		}
		if c == nil {
			for _, o := range s.sources {
				if o.named(n.Schema.O, n.Table.O) {
					o.close()
				}
			}
			continue
		}
		if r.aggregates > 0 {
			r.depths = append(r.depths, s.depth())
		}
		r.last = c
		r.made.column(c)
		if r.policy {
			if src != nil && src.alias != "" {
				n.Schema, n.Table = ast.CIStr{}, ast.NewCIStr(src.alias)
			}
			return c.number, nil
		}
		if n.Schema.O != "" {
			// A wrapper has no database, so the table's name alone must still mean it.
			for inner := in; inner != s.outer; inner = inner.outer {
				for _, o := range inner.sources {
					if o != src && o.name == n.Table.O {
						return number{}, ambiguous(n.OrigColName())
					}
				}
			}
			n.Schema = ast.CIStr{}
		}
		return c.number, nil
	}
	return number{}, r.absent(n.OrigColName(), in)
}

// absent is the refusal for a column that is not there, whatever the reason. Why is for the audit.
func (r *resolver) absent(said string, in *scope) error {
	if r.policy {
		return fmt.Errorf("mysql: the policy names column %s, which its table does not have", said)
	}
	name := said[strings.LastIndexByte(said, '.')+1:]
	detail := "absent"
	for s := in; s != nil; s = s.outer {
		for _, o := range s.sources {
			if o.use == nil {
				continue
			}
			t := o.use.table.Ref
			if why := r.absence(catalog.ColumnRef(t.Database, t.Schema, t.Table, name)); strings.HasPrefix(why, "denied") {
				detail = why
			}
		}
	}
	return acl.NotAvailable(said, detail)
}

// absence tells why something is not there. What a SQL view names must not become part of a hint.
func (r *resolver) absence(ref catalog.Ref) string {
	if r.views == 0 {
		return r.schema.Absence(ref)
	}
	if _, ok := r.schema.Exists(ref); ok {
		return "denied: " + ref.String()
	}
	return "absent: " + ref.String()
}

func ambiguous(name string) error {
	return &acl.Refusal{
		Code: acl.CodeAmbiguous, Public: fmt.Sprintf("the name %s is ambiguous", name),
		Hint: "give each table an alias of its own and write it before the column",
	}
}
