package postgres

import (
	"cmp"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// scope is one level of a query: what its FROM list and its WITH clause bring into sight. Names that a level does not
// know are looked for one level further out.
type scope struct {
	outer *scope
	items []*item
	with  []*common
	// active says that what is being resolved inside may see items that are marked lateral.
	active bool
}

// item is something in FROM that names can refer to.
type item struct {
	name    string // that columns are qualified with; empty for a join without an alias
	columns []column
	index   map[string]int // of columns by name, if there are many; those of a name that is borne twice are negative
	use     *use           // set for a base table

	named bool // rows and columns may be reached through the name
	bare  bool // columns may be reached without it

	lateral bool // stands to the left in the same FROM list, visible to LATERAL only
	blocked bool // lateral, but on the side of an outer join that must not be referred to

	// has tells whether a table of which only that is known has a column.
	has func(name string) bool
	// merged names the columns that a join merged with others, so that they can no longer be reached without the name.
	merged []string
	// clash says that another item bears the same name, so that only a schema tells them apart.
	clash bool
	// renamed says that an alias names columns otherwise than the table does.
	renamed bool
}

// column is a column of an item.
type column struct {
	name string
	use  *use         // nil unless it is a table's own
	ref  *catalog.Ref // of a table's own column
	made *source      // what its values are made of; nil in the policy's own SQL
	// unknown stands for the columns of a table of which only single names can be asked.
	unknown bool
}

// use is one mention of a table or SQL view.
type use struct {
	node   *pg.Node // what stands in FROM
	source *pg.RangeVar
	sample *pg.RangeTableSample // around source, or nil
	ref    catalog.Ref
	table  *rewrite.Table // nil in the policy's own SQL
	view   *expansion     // of a SQL view
	name   string         // as it was written
	within string         // the SQL view, as the asker wrote it, whose definition holds the mention; empty in the statement
	item   *item
	seen   []*catalog.Ref // columns read, in order of first mention; those of the table
	// aliases are the names that items bear around the mention, in the statement or in the view.
	aliases map[string]bool
	// exposed says that a name of the statement could mean a column of the table that the catalog does not hold.
	exposed bool
	// barred says that the wrapper found in a printed text holds a barrier.
	barred bool
}

func (u *use) see(c *catalog.Ref) {
	if !slices.Contains(u.seen, c) {
		u.seen = append(u.seen, c)
	}
}

// called is the name for it in a refusal: what the asker wrote.
func (u *use) called() string { return cmp.Or(u.within, u.name) }

// plain reports whether the table may stand in the statement without a wrapper.
func (u *use) plain() bool { return u.table.Whole && u.view == nil && !u.exposed }

// aliased reports whether the asker gave the table a name of their own, which hides its schema-qualified one.
func (u *use) aliased() bool { return u.source.Alias != nil }

// common is a query of a WITH clause.
type common struct {
	name      string
	def       *pg.CommonTableExpr
	scope     *scope // in which the query is resolved
	recursive bool
	columns   []column
	known     bool // columns are
	started   bool
	done      bool
}

// findCommon finds the WITH query of that name that is visible in sc.
func findCommon(sc *scope, name string) *common {
	for ; sc != nil; sc = sc.outer {
		for _, c := range slices.Backward(sc.with) {
			if c.name == name {
				return c
			}
		}
	}
	return nil
}

// rename gives the first columns new names.
func rename(columns []column, to []*pg.Node) ([]column, bool) {
	list, ok := names(to)
	if !ok || len(list) > len(columns) {
		return nil, false
	}
	out := slices.Clone(columns)
	for i, name := range list {
		out[i].name = name
	}
	return out, true
}

// derived forgets whose columns they are: reading them was noted where they were read.
func derived(columns []column) []column {
	out := slices.Clone(columns)
	for i := range out {
		out[i].use, out[i].ref = nil, nil
	}
	return out
}
