package rank

import (
	"strings"
	"sync"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// shape is what the features ask of a snapshot again and again. It says nothing of who may see what, which its sights
// do: whoever asks it leaves out what the view hides.
type shape struct {
	s               *catalog.Snapshot
	columns         catalog.Range
	tableOf         []uint32 // by column, counted from the first
	databases       []string
	databaseAt      map[string]int
	tablesOf        []catalog.Range   // by database
	databaseOf      []int             // by table
	nameOf          []int32           // by table or column: the number of its name, which all have that bear it but for case
	nameHereOf      []int32           // likewise, but each database has its own numbers
	names           int               // numbers of names
	namesHere       int               // likewise
	joins           [][]join          // by table
	joinsOf         map[uint32][]join // by column
	spelling        []int32           // by table or column: the number of its name as it is written
	spelt           [][]string        // by that number: the words of the name
	termsOfDatabase [][]string        // by database: the words of its name
	sights          *retrieval.Cache[*sight]
	memories        sync.Pool // of *memory
}

// join leads from a table or column to another table.
type join struct{ relationship, table uint32 }

func newShape(s *catalog.Snapshot) *shape {
	sh := &shape{
		s: s, columns: s.OfKind(catalog.KindColumn), databaseAt: map[string]int{},
		joinsOf: map[uint32][]join{}, sights: retrieval.NewCache(sightLimits, (*sight).bytes),
	}
	tables := s.OfKind(catalog.KindTable)
	sh.nameOf, sh.nameHereOf = make([]int32, sh.columns.To), make([]int32, sh.columns.To)
	numbers, here, spellings := map[string]int32{}, map[int32]int32{}, map[string]int32{}
	sh.spelling = make([]int32, sh.columns.To)
	sh.tableOf = make([]uint32, sh.columns.Len())
	sh.databaseOf = make([]int, tables.Len())
	sh.joins = make([][]join, tables.Len())
	for t := tables.From; t < tables.To; t++ {
		o := s.Object(t)
		if n := len(sh.databases); n == 0 || sh.databases[n-1] != o.Ref.Database {
			sh.databaseAt[o.Ref.Database] = n
			sh.databases = append(sh.databases, o.Ref.Database)
			sh.tablesOf = append(sh.tablesOf, catalog.Range{From: t})
			clear(here)
		}
		sh.tablesOf[len(sh.databases)-1].To = t + 1
		sh.databaseOf[t] = len(sh.databases) - 1
		sh.name(o, numbers, here, spellings)
		for r := s.ColumnIDs(t); r.From < r.To; r.From++ {
			sh.tableOf[r.From-sh.columns.From] = t
			sh.name(s.Object(r.From), numbers, here, spellings)
		}
	}
	for _, name := range sh.databases {
		sh.termsOfDatabase = append(sh.termsOfDatabase, retrieval.Terms(name))
	}
	for i := range s.Objects(catalog.KindRelationship) {
		sh.relationship(&s.Objects(catalog.KindRelationship)[i])
	}
	return sh
}

// own is the name that an object has by itself.
func own(r catalog.Ref) string {
	if r.Kind == catalog.KindColumn {
		return r.Column
	}
	return r.Table
}

// name numbers the name of an object. numbers holds those of all names so far, here those of its database by them.
func (sh *shape) name(o *catalog.Object, numbers map[string]int32, here map[int32]int32, spellings map[string]int32) {
	name := own(o.Ref)
	key := o.Ref.Kind.String() + strings.ToLower(name)
	n, ok := numbers[key]
	if !ok {
		n = int32(sh.names)
		numbers[key] = n
		sh.names++
	}
	near, ok := here[n]
	if !ok {
		near = int32(sh.namesHere)
		here[n] = near
		sh.namesHere++
	}
	sh.nameOf[o.ID], sh.nameHereOf[o.ID] = n, near
	at, ok := spellings[name]
	if !ok {
		at = int32(len(sh.spelt))
		spellings[name] = at
		sh.spelt = append(sh.spelt, retrieval.Terms(name))
	}
	sh.spelling[o.ID] = at
}

func (sh *shape) relationship(o *catalog.Object) {
	r := o.Relationship
	from, ok := sh.s.ID(r.From[0].TableRef())
	to, found := sh.s.ID(r.To[0].TableRef())
	if !ok || !found {
		return
	}
	sh.joins[from] = append(sh.joins[from], join{o.ID, to})
	sh.joins[to] = append(sh.joins[to], join{o.ID, from})
	for i := range r.From {
		if c, ok := sh.s.ID(r.From[i]); ok {
			sh.joinsOf[c] = append(sh.joinsOf[c], join{o.ID, to})
		}
		if c, ok := sh.s.ID(r.To[i]); ok {
			sh.joinsOf[c] = append(sh.joinsOf[c], join{o.ID, from})
		}
	}
}

// termsOf returns the words of a table's or column's name.
func (sh *shape) termsOf(id uint32) []string { return sh.spelt[sh.spelling[id]] }

func (sh *shape) table(column uint32) uint32 { return sh.tableOf[column-sh.columns.From] }

// columnsIn returns the columns of a database, which stand side by side as its tables do.
func (sh *shape) columnsIn(database int) catalog.Range {
	t := sh.tablesOf[database]
	return catalog.Range{From: sh.s.ColumnIDs(t.From).From, To: sh.s.ColumnIDs(t.To - 1).To}
}
