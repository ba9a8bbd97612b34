package retrieval

import (
	"slices"
	"sync"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// shape is what ranking and linking ask of a snapshot again and again, by id. It says nothing of who may see what.
type shape struct {
	s         *catalog.Snapshot
	columns   catalog.Range
	tableOf   []uint32        // by column, counted from the first
	databases []catalog.Range // the tables of each database
	// speakers holds the tables that a metric, relationship or past query speaks for, counted from the first metric.
	speakers     [][]uint32
	named        [][]uint32 // likewise the columns that they name
	firstSpeaker uint32
	crossing     []uint32 // relationships between two databases
	all          acl.View // sees everything, for the audit
	terms        sync.Map // by name of a column: its terms, a []string, as far as they were needed
}

func newShape(s *catalog.Snapshot) *shape {
	sh := &shape{s: s, columns: s.OfKind(catalog.KindColumn), firstSpeaker: s.OfKind(catalog.KindMetric).From, all: acl.Everything(s)}
	sh.tableOf = make([]uint32, sh.columns.Len())
	tables := s.OfKind(catalog.KindTable)
	for t := tables.From; t < tables.To; t++ {
		if t == tables.From || s.Object(t).Ref.Database != s.Object(t-1).Ref.Database {
			sh.databases = append(sh.databases, catalog.Range{From: t})
		}
		sh.databases[len(sh.databases)-1].To = t + 1
		for r := s.ColumnIDs(t); r.From < r.To; r.From++ {
			sh.tableOf[r.From-sh.columns.From] = t
		}
	}
	sh.speakers = make([][]uint32, s.Len()-int(sh.firstSpeaker))
	sh.named = make([][]uint32, len(sh.speakers))
	for i := range sh.speakers {
		o := s.Object(sh.firstSpeaker + uint32(i))
		sh.speakers[i] = sh.tables(o)
		for _, ref := range o.Names() {
			if id, ok := s.ID(ref); ok && ref.Kind == catalog.KindColumn {
				sh.named[i] = append(sh.named[i], id)
			}
		}
		if r := o.Relationship; r != nil && r.From[0].Database != r.To[0].Database {
			sh.crossing = append(sh.crossing, o.ID)
		}
	}
	return sh
}

// tables lists the tables that a metric, relationship or past query speaks for.
func (sh *shape) tables(o *catalog.Object) []uint32 {
	var refs []catalog.Ref
	switch {
	case o.Metric != nil:
		refs = o.Metric.Sources
	case o.Query != nil:
		refs = o.Query.Tables
	case o.Relationship != nil:
		refs = []catalog.Ref{o.Relationship.From[0], o.Relationship.To[0]}
	}
	out := make([]uint32, 0, len(refs))
	for _, r := range refs {
		if id, ok := sh.s.ID(r.TableRef()); ok && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// nameTerms returns the terms of a column's name.
func (sh *shape) nameTerms(column string) []string {
	if known, ok := sh.terms.Load(column); ok {
		return known.([]string)
	}
	terms := Terms(column)
	sh.terms.Store(column, terms)
	return terms
}

// table returns the table of a column.
func (sh *shape) table(column uint32) uint32 { return sh.tableOf[column-sh.columns.From] }

// spokenFor returns the tables that a metric, relationship or past query speaks for.
func (sh *shape) spokenFor(id uint32) []uint32 { return sh.speakers[id-sh.firstSpeaker] }

// columnsNamed returns the columns that a metric, relationship or past query names.
func (sh *shape) columnsNamed(id uint32) []uint32 { return sh.named[id-sh.firstSpeaker] }
