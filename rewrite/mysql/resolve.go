package mysql

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// reserved is how the aliases inside of wrappers begin. An asker's name must not: a column of a policy that the
// database lost would otherwise be looked for in the asker's own tables.
const reserved = "_gate"

// use is one place where a statement reads a base table.
type use struct {
	at      *ast.TableSource
	table   *rewrite.Table
	columns []bool // by index in table.Columns: is it read?
}

// source is one element of a FROM clause.
type source struct {
	name, database string // what qualifies its columns; database is empty if it is no base table
	columns        []column
	use            *use        // if it is a base table of the asker
	raw            catalog.Ref // if it is a base table of the policy: all of its columns count
	open           bool        // of the policy's own SQL: columns are not known, any name may be one
	alias          string      // of the policy's own SQL: what qualifies its columns from now on
}

type column struct {
	name   string
	number number
}

// scope is where names are looked up: one query block and the blocks around it.
type scope struct {
	outer   *scope
	with    *with
	sources []*source
	merged  map[mergedColumn]bool
	// outputs are the columns of the select list, for clauses that may name them. first says that they come before
	// those of the FROM clause.
	outputs []column
	first   bool
}

// mergedColumn is a right-hand column that USING or NATURAL has made one with a left-hand column.
type mergedColumn struct {
	source *source
	column string // lower case
}

// with holds the common table expressions of one WITH clause that have come into view.
type with struct {
	outer *with
	ctes  []*cte
	later []string // names of a recursive clause that come into view later
}

type cte struct {
	name    string
	columns []column
	open    bool
	ready   bool // are the columns known?
}

// resolver binds the names of one statement, or of one expression of the policy.
type resolver struct {
	schema *rewrite.Schema
	uses   []*use
	// fallible says that an expression was seen that can fail on some row.
	fallible bool
	// outer says that there is an outer join, windows that there is a window function.
	outer, windows bool
	// inside and outside count the columns that were bound in their own block and in one around it.
	inside, outside int
	// policy says that the SQL is the policy's: it may read everything, and every name in it gets bound for good.
	policy bool
	// governed says that the tree was parsed from printed text: what is not whole must stand in its wrapper.
	governed bool
	seen     map[string]bool // wrappers that were found to be right
}

// Resolve binds every name.
func (t *tree) Resolve(s *rewrite.Schema) (rewrite.Reading, error) {
	r := &resolver{schema: s}
	if _, err := r.query(t.query, nil, nil, nil, true); err != nil {
		return rewrite.Reading{}, err
	}
	t.uses, t.fallible, t.outer, t.windows = r.uses, r.fallible, r.outer, r.windows
	return rewrite.Reading{Tables: reads(r.uses)}, nil
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

// query resolves a query and returns its columns. pending is the recursive expression that the query defines, if any;
// named says that somebody may see the names of its columns.
func (r *resolver) query(n ast.Node, outer *scope, w *with, pending *cte, named bool) (*source, error) {
	switch n := n.(type) {
	case *ast.SelectStmt:
		return r.selection(n, outer, w, pending, named)
	case *ast.SetOprStmt:
		w, err := r.with(n.With, w)
		if err != nil {
			return nil, err
		}
		out, err := r.query(n.SelectList, outer, w, pending, named)
		if err != nil {
			return nil, err
		}
		return out, r.tail(n.OrderBy, n.Limit, &scope{outer: outer, with: w, outputs: out.columns, sources: openSources(out)})
	case *ast.SetOprSelectList:
		w, err := r.with(n.With, w)
		if err != nil {
			return nil, err
		}
		var out *source
		for i, s := range n.Selects {
			next, err := r.query(s, outer, w, pending, named && i == 0)
			if err != nil {
				return nil, err
			}
			if i == 0 {
				out = next
				continue
			}
			for j := range out.columns {
				other := number{}
				if j < len(next.columns) {
					other = next.columns[j].number
				}
				out.columns[j].number = either(out.columns[j].number, other)
			}
		}
		return out, r.tail(n.OrderBy, n.Limit, &scope{outer: outer, with: w, outputs: out.columns, sources: openSources(out)})
	}
	return nil, notSupported("the statement holds a construct that is not supported", n)
}

func openSources(out *source) []*source {
	if out.open {
		return []*source{{open: true}}
	}
	return nil
}

func (r *resolver) selection(n *ast.SelectStmt, outer *scope, w *with, pending *cte, named bool) (*source, error) {
	w, err := r.with(n.With, w)
	if err != nil {
		return nil, err
	}
	in := &scope{outer: outer, with: w}
	if n.From != nil {
		if in, err = r.relation(n.From.TableRefs, in, nil); err != nil {
			return nil, err
		}
	}
	out := &source{}
	for _, f := range n.Fields.Fields {
		if f.WildCard != nil {
			if err := r.star(f.WildCard, in, out); err != nil {
				return nil, err
			}
			continue
		}
		num, err := r.expression(&f.Expr, in)
		if err != nil {
			return nil, err
		}
		name := r.outputName(f, named)
		out.columns = append(out.columns, column{name: name, number: num})
	}
	if pending != nil && !pending.ready {
		pending.define(out)
	}
	if n.Where != nil {
		if _, err := r.expression(&n.Where, in); err != nil {
			return nil, err
		}
	}
	after := *in
	after.outputs = out.columns
	if out.open {
		after.sources = append(slices.Clone(in.sources), openSources(out)...)
	}
	if n.GroupBy != nil {
		if err := r.items(n.GroupBy.Items, &after); err != nil {
			return nil, err
		}
	}
	if n.Having != nil {
		if _, err := r.expression(&n.Having.Expr, &after); err != nil {
			return nil, err
		}
	}
	for i := range n.WindowSpecs {
		if err := r.window(&n.WindowSpecs[i], in); err != nil {
			return nil, err
		}
	}
	return out, r.tail(n.OrderBy, n.Limit, &after)
}

// tail resolves ORDER BY, in which a name on its own means a column of the select list first.
func (r *resolver) tail(order *ast.OrderByClause, limit *ast.Limit, in *scope) error {
	if order != nil {
		first := *in
		first.first = true
		for _, i := range order.Items {
			s := in
			if _, name := i.Expr.(*ast.ColumnNameExpr); name {
				s = &first
			}
			if _, err := r.expression(&i.Expr, s); err != nil {
				return err
			}
		}
	}
	if limit == nil {
		return nil
	}
	for _, slot := range []*ast.ExprNode{&limit.Count, &limit.Offset} {
		switch (*slot).(type) {
		case nil, *test_driver.ValueExpr:
		default:
			return notSupported("a LIMIT that is not a number is not supported", *slot)
		}
	}
	return nil
}

// outputName is the name of a column of a select list. The engine names an expression by its text, which printing
// changes; where somebody may see the name, it is written down.
func (r *resolver) outputName(f *ast.SelectField, named bool) string {
	name := fieldName(f)
	if f.AsName.O != "" {
		return name
	}
	switch f.Expr.(type) {
	case *ast.ColumnNameExpr, *test_driver.ValueExpr:
		return name
	}
	// Engines cut long names, each in its way, and do not take all characters.
	if !named || r.policy || r.governed || name == "" || len(name) > 64 || strings.ContainsFunc(name, unicode.IsControl) {
		return name
	}
	if printed, err := text(f.Expr); err != nil || printed != name {
		f.AsName = ast.NewCIStr(name)
	}
	return name
}

// with brings the expressions of a WITH clause into view, one after the other. In a recursive clause each sees itself;
// MariaDB also lets it see later ones, MySQL takes such a name for a table, so that is refused.
func (r *resolver) with(n *ast.WithClause, outer *with) (*with, error) {
	if n == nil {
		return outer, nil
	}
	w := &with{outer: outer}
	if n.IsRecursive {
		for _, c := range n.CTEs {
			w.later = append(w.later, c.Name.O)
		}
	}
	for _, c := range n.CTEs {
		if err := r.unreserved(c.Name.O); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(w.ctes, func(o *cte) bool { return strings.EqualFold(o.name, c.Name.O) }) {
			return nil, ambiguous(c.Name.O)
		}
		def := &cte{name: c.Name.O}
		for _, name := range c.ColNameList {
			def.columns = append(def.columns, column{name: name.O})
		}
		var pending *cte
		if n.IsRecursive {
			w.ctes, w.later, pending = append(w.ctes, def), w.later[1:], def
		}
		out, err := r.query(c.Query.Query, nil, w, pending, len(c.ColNameList) == 0)
		if err != nil {
			return nil, err
		}
		if !def.ready {
			def.define(out)
		}
		if n.IsRecursive {
			// A recursive value can outgrow the type that its first row gives it.
			for i := range def.columns {
				def.columns[i].number = number{}
			}
		} else {
			w.ctes = append(w.ctes, def)
		}
	}
	return w, nil
}

// define gives the expression the columns of its query, under its own names if it has any.
func (c *cte) define(out *source) {
	c.ready, c.open = true, out.open
	if len(c.columns) == 0 {
		c.columns = slices.Clone(out.columns)
		return
	}
	for i := range c.columns {
		if i < len(out.columns) {
			c.columns[i].number = out.columns[i].number
		}
	}
}

// find returns the expression that an unqualified table name means, or nil. Engines differ in the case of these names.
func (w *with) find(name string) (*cte, error) {
	for ; w != nil; w = w.outer {
		for _, c := range w.ctes {
			if !strings.EqualFold(c.name, name) {
				continue
			}
			if c.name != name {
				return nil, refuse("a WITH name must be written the same way everywhere", "write "+name+" as in its definition", name)
			}
			if !c.ready {
				return nil, refuse("a recursive WITH must begin with a part that does not name itself", "write the part without recursion first", name)
			}
			return c, nil
		}
		if slices.ContainsFunc(w.later, func(l string) bool { return strings.EqualFold(l, name) }) {
			return nil, refuse("a name of a recursive WITH before its definition is not supported", "define "+name+" first", name)
		}
	}
	return nil, nil
}

func refuse(public, hint, detail string) error {
	return &acl.Refusal{Code: acl.CodeNotSupported, Public: public, Hint: hint, Detail: detail}
}

func ambiguous(name string) error {
	return &acl.Refusal{
		Code: acl.CodeAmbiguous, Public: fmt.Sprintf("the name %s is ambiguous", name),
		Hint: "give each table an alias of its own and write it before the column",
	}
}

func (r *resolver) unreserved(name string) error {
	if !r.policy && !r.governed && len(name) >= len(reserved) && strings.EqualFold(name[:len(reserved)], reserved) {
		return refuse("names that begin with "+reserved+" are reserved", "choose another name", name)
	}
	return nil
}

// relation resolves part of a FROM clause and returns the scope of its tables. left is what stands before it.
func (r *resolver) relation(n ast.ResultSetNode, block *scope, left []*source) (*scope, error) {
	switch n := n.(type) {
	case *ast.Join:
		l, err := r.relation(n.Left, block, left)
		if err != nil || n.Right == nil {
			return l, err
		}
		right, err := r.relation(n.Right, block, slices.Concat(left, l.sources))
		if err != nil {
			return nil, err
		}
		return r.join(n, l, right)
	case *ast.TableSource:
		s, err := r.source(n, block, left)
		if err != nil {
			return nil, err
		}
		return &scope{outer: block.outer, with: block.with, sources: []*source{s}}, nil
	}
	return nil, notSupported("the FROM clause holds a construct that is not supported", n)
}

func (r *resolver) join(n *ast.Join, l, right *scope) (*scope, error) {
	both := &scope{outer: l.outer, with: l.with, sources: slices.Concat(l.sources, right.sources), merged: map[mergedColumn]bool{}}
	r.outer = r.outer || n.Tp != ast.CrossJoin
	for _, s := range right.sources {
		if slices.ContainsFunc(l.sources, func(o *source) bool { return o.name == s.name }) {
			return nil, ambiguous(s.name)
		}
	}
	for _, part := range []*scope{l, right} {
		for m := range part.merged {
			both.merged[m] = true
		}
	}
	names := make([]string, 0, len(n.Using))
	for _, c := range n.Using {
		names = append(names, c.Name.O)
	}
	if n.NaturalJoin {
		seen := map[string]bool{}
		for _, s := range l.sources {
			if s.open || s.raw != (catalog.Ref{}) {
				return nil, fmt.Errorf("mysql: NATURAL JOIN in a policy is not supported")
			}
			for _, c := range s.columns {
				key := strings.ToLower(c.name)
				if !seen[key] && len(right.owners(key)) > 0 {
					seen[key] = true
					names = append(names, c.name)
				}
			}
		}
	}
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
			owners[0].read(key)
			if side == right {
				both.merged[mergedColumn{owners[0], key}] = true
			}
		}
	}
	if n.On != nil {
		if _, err := r.expression(&n.On.Expr, both); err != nil {
			return nil, err
		}
	}
	return both, nil
}

// owners returns the tables of which an unqualified name of that key could be a column.
func (s *scope) owners(key string) []*source {
	var out []*source
	for _, o := range s.sources {
		if !s.merged[mergedColumn{o, key}] && o.has(key) {
			out = append(out, o)
		}
	}
	return out
}

func (s *source) has(key string) bool {
	return s.open || slices.ContainsFunc(s.columns, func(c column) bool { return strings.EqualFold(c.name, key) })
}

// read notes that a column is read and returns what is known of its values.
func (s *source) read(key string) number {
	for i, c := range s.columns {
		if strings.EqualFold(c.name, key) {
			if s.use != nil {
				s.use.columns[i] = true
			}
			return c.number
		}
	}
	return number{}
}

func (r *resolver) source(n *ast.TableSource, block *scope, left []*source) (*source, error) {
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
				around = &scope{outer: block.outer, with: block.with, sources: left}
			}
			var err error
			if s, err = r.query(q, around, block.with, nil, len(n.ColumnNames) == 0); err != nil {
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

// base resolves the name of a base table.
func (r *resolver) base(at *ast.TableSource, n *ast.TableName) (*source, error) {
	database, said := n.Schema.O, n.Name.O
	if database == "" {
		database = r.schema.Database().Name
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
		return nil, acl.NotAvailable(said, r.schema.Absence(ref))
	}
	if t.SQLView != "" {
		return nil, refuse("SQL views are not supported: "+said, "select from the tables themselves", ref.String())
	}
	if r.governed && !t.Whole {
		return nil, fmt.Errorf("mysql: table %s stands outside of its wrapper", ref)
	}
	u := &use{at: at, table: t, columns: make([]bool, len(t.Columns))}
	r.uses = append(r.uses, u)
	return &source{name: n.Name.O, database: database, columns: columns(t), use: u}, nil
}

func columns(t *rewrite.Table) []column {
	out := make([]column, len(t.Columns))
	for i, c := range t.Columns {
		out[i] = column{name: c.Name}
		if c.Mask == nil {
			out[i].number = typed(c.Type)
		}
	}
	return out
}

// star expands a * of a select list: the names go into out, the columns are read.
func (r *resolver) star(n *ast.WildCardField, in *scope, out *source) error {
	found := false
	for _, s := range in.sources {
		if n.Table.O != "" && !s.named(n.Schema.O, n.Table.O) {
			continue
		}
		found = true
		if s.open || s.raw != (catalog.Ref{}) {
			out.open = true
		}
		for i, c := range s.columns {
			if s.use != nil {
				s.use.columns[i] = true
			}
			if n.Table.O == "" && in.merged[mergedColumn{s, strings.ToLower(c.name)}] {
				continue
			}
			out.columns = append(out.columns, c)
		}
		if r.policy && n.Table.O != "" {
			n.Table = ast.NewCIStr(s.alias)
			break
		}
	}
	switch {
	case found:
		n.Schema = ast.CIStr{} // a wrapper has none
		return nil
	case n.Table.O == "":
		return refuse("* needs a FROM clause", "name what to select", "no tables")
	}
	said := n.Table.O + ".*"
	if n.Schema.O != "" {
		said = n.Schema.O + "." + said
	}
	return acl.NotAvailable(said, "no such table in the FROM clause")
}

// named reports whether a qualifier means the source.
func (s *source) named(database, name string) bool {
	return s.name == name && (database == "" || s.database == database)
}

// column binds a column's name.
func (r *resolver) column(n *ast.ColumnName, in *scope) (number, error) {
	for s := in; s != nil; s = s.outer {
		num, src, found, err := r.lookup(n, s)
		if err != nil {
			return number{}, err
		}
		if !found {
			continue
		}
		if s == in {
			r.inside++
		} else {
			r.outside++
		}
		if r.policy {
			if src != nil && src.alias != "" {
				n.Schema, n.Table = ast.CIStr{}, ast.NewCIStr(src.alias)
			}
			return num, nil
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
		return num, nil
	}
	return number{}, r.absent(n.OrigColName(), in)
}

// lookup looks a column up in one block. The source is nil if the name is one of the select list.
func (r *resolver) lookup(n *ast.ColumnName, s *scope) (_ number, _ *source, found bool, err error) {
	if n.Table.O != "" {
		for _, o := range s.sources {
			if o.named(n.Schema.O, n.Table.O) && r.owns(o, n.Name.O) {
				return o.read(n.Name.L), o, true, nil
			}
		}
		return number{}, nil, false, nil
	}
	output := func() bool {
		for _, c := range s.outputs {
			if strings.EqualFold(c.name, n.Name.O) {
				found = true
				return true
			}
		}
		return false
	}
	if s.first && output() {
		return number{}, nil, true, nil
	}
	var owner *source
	for _, o := range s.sources {
		if s.merged[mergedColumn{o, n.Name.L}] || !r.owns(o, n.Name.O) {
			continue
		}
		if owner != nil {
			if owner.open || o.open {
				continue
			}
			// GROUP BY and HAVING may mean a column of the select list where the tables leave it open.
			if output() {
				return number{}, nil, true, nil
			}
			return number{}, nil, false, ambiguous(n.Name.O)
		}
		owner = o
	}
	if owner != nil {
		return owner.read(n.Name.L), owner, true, nil
	}
	return number{}, nil, output(), nil
}

// owns reports whether a source has a column; of a policy's base table all columns count, hidden ones too.
func (r *resolver) owns(s *source, name string) bool {
	if s.raw != (catalog.Ref{}) {
		_, ok := r.schema.Exists(catalog.ColumnRef(s.raw.Database, s.raw.Schema, s.raw.Table, name))
		return ok
	}
	return s.has(name)
}

// absent is the refusal for a column that is not there, whatever the reason. Why is for the audit.
func (r *resolver) absent(said string, in *scope) error {
	if r.policy {
		return fmt.Errorf("mysql: the policy names column %s, which its table does not have", said)
	}
	_, name, qualified := cutLast(said)
	if !qualified {
		name = said
	}
	detail := "absent"
	for s := in; s != nil; s = s.outer {
		for _, o := range s.sources {
			if o.use == nil {
				continue
			}
			t := o.use.table.Ref
			if why := r.schema.Absence(catalog.ColumnRef(t.Database, t.Schema, t.Table, name)); strings.HasPrefix(why, "denied") {
				detail = why
			}
		}
	}
	return acl.NotAvailable(said, detail)
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

func (r *resolver) items(items []*ast.ByItem, in *scope) error {
	for _, i := range items {
		if _, err := r.expression(&i.Expr, in); err != nil {
			return err
		}
	}
	return nil
}

func (r *resolver) window(n *ast.WindowSpec, in *scope) error {
	if n.PartitionBy != nil {
		if err := r.items(n.PartitionBy.Items, in); err != nil {
			return err
		}
	}
	if n.OrderBy != nil {
		return r.items(n.OrderBy.Items, in)
	}
	return nil
}

// expression resolves an expression and bounds its value.
func (r *resolver) expression(slot *ast.ExprNode, in *scope) (number, error) {
	switch n := (*slot).(type) {
	case *ast.ColumnNameExpr:
		return r.column(n.Name, in)
	case *ast.SubqueryExpr:
		out, err := r.query(n.Query, in, in.with, nil, false)
		if err != nil {
			return number{}, err
		}
		if !single(n.Query) || len(out.columns) != 1 {
			return number{}, nil
		}
		return out.columns[0].number, nil
	}
	var numbers []number
	inside, outside := r.inside, r.outside
	err := operands(*slot,
		func(s *ast.ExprNode) error {
			n, err := r.expression(s, in)
			numbers = append(numbers, n)
			if sub, ok := (*s).(*ast.SubqueryExpr); ok && !manyRows(*slot) && !single(sub.Query) {
				r.fallible = true // more than one row for one value
			}
			return err
		},
		func(ast.Node) error { return nil },
		func(w *ast.WindowSpec) error { return r.window(w, in) },
	)
	if err != nil {
		return number{}, err
	}
	if f, ok := (*slot).(*ast.AggregateFuncExpr); ok && r.outside > outside && r.inside == inside {
		// It would be computed in the block around, which makes another query of this one.
		return number{}, notSupported(fmt.Sprintf("%s over columns of an outer query is not supported", f.F), f)
	}
	return r.bound(*slot, numbers), nil
}

// manyRows reports whether the operand of e that is a subquery may have more than one row.
func manyRows(e ast.ExprNode) bool {
	switch e.(type) {
	case *ast.ExistsSubqueryExpr, *ast.PatternInExpr, *ast.CompareSubqueryExpr:
		return true
	}
	return false
}

// single reports whether a query surely has at most one row.
func single(n ast.ResultSetNode) bool {
	s, ok := n.(*ast.SelectStmt)
	if !ok {
		return false
	}
	if s.Limit != nil {
		v, ok := s.Limit.Count.(*test_driver.ValueExpr)
		return ok && v.GetUint64() <= 1
	}
	if s.GroupBy != nil {
		return false
	}
	if s.From == nil {
		return true
	}
	for _, f := range s.Fields.Fields {
		if _, ok := f.Expr.(*ast.AggregateFuncExpr); ok {
			return true
		}
	}
	return false
}

// bound bounds the value of e by those of its operands, and notes whether e can fail.
func (r *resolver) bound(e ast.ExprNode, operands []number) number {
	fails := func() number {
		r.fallible = true
		return number{}
	}
	apply := func(f function, args []number) number {
		switch {
		case f.fails:
			return fails()
		case f.same:
			n := either(args...)
			if f.strict && !n.bounded() {
				return fails()
			}
			return n
		}
		return number{bits: f.bits}
	}
	switch n := e.(type) {
	case *test_driver.ValueExpr:
		return literalNumber(n)
	case *ast.ParenthesesExpr:
		return operands[0]
	case *ast.UnaryOperationExpr:
		switch n.Op {
		case opcode.Minus:
			if !operands[0].bounded() || operands[0].unsigned {
				return fails()
			}
			return operands[0]
		case opcode.Plus:
			return operands[0]
		case opcode.BitNeg:
			return number{}
		}
		return number{bits: 1}
	case *ast.BinaryOperationExpr:
		switch n.Op {
		case opcode.Plus, opcode.Minus, opcode.Mul, opcode.Div, opcode.Mod, opcode.IntDiv:
			out, f := arithmetic(n.Op, operands[0], operands[1])
			if f {
				return fails()
			}
			return out
		case opcode.And, opcode.Or, opcode.Xor, opcode.LeftShift, opcode.RightShift:
			return number{}
		}
		return number{bits: 1}
	case *ast.PatternRegexpExpr:
		return fails()
	case *ast.BetweenExpr, *ast.IsNullExpr, *ast.IsTruthExpr, *ast.PatternInExpr, *ast.PatternLikeOrIlikeExpr, *ast.ExistsSubqueryExpr,
		*ast.CompareSubqueryExpr:
		return number{bits: 1}
	case *ast.CaseExpr:
		var results []number
		if n.Value != nil {
			operands = operands[1:]
		}
		for i := range n.WhenClauses {
			results = append(results, operands[2*i+1])
		}
		if n.ElseClause != nil {
			results = append(results, operands[len(operands)-1])
		}
		return either(results...)
	case *ast.FuncCastExpr:
		return cast(n)
	case *ast.FuncCallExpr:
		f, known := functions[n.FnName.L]
		if !known {
			return fails()
		}
		args := operands
		switch n.FnName.L {
		case "if":
			args = operands[min(1, len(operands)):]
		case "nullif", "round", "truncate":
			args = operands[:min(1, len(operands))]
		}
		return apply(f, args)
	case *ast.AggregateFuncExpr:
		return r.aggregate(strings.ToLower(n.F), operands[:min(1, len(operands))], apply)
	case *ast.WindowFuncExpr:
		r.windows = true
		name := strings.ToLower(n.Name)
		if f, ok := windows[name]; ok {
			args := operands[:min(1, len(operands))]
			if (name == "lag" || name == "lead") && len(operands) > 2 {
				args = append(args, operands[2])
			}
			return apply(f, args)
		}
		return r.aggregate(name, operands[:min(1, len(operands))], apply)
	}
	return number{}
}

func (r *resolver) aggregate(name string, args []number, apply func(function, []number) number) number {
	n := apply(aggregates[name], args)
	if name == "sum" || name == "avg" {
		return n.summed()
	}
	return n
}
