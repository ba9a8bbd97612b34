package acl

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/schemagate/schemagate/catalog"
)

// Coverage finds the objects of one snapshot that a pattern covers, without trying every object: the segments before
// a pattern's first star lead to the tables that it can concern. It is safe for concurrent use.
type Coverage struct {
	snapshot *catalog.Snapshot
	dialects map[catalog.Dialect]bool
	beneath  map[place][]uint32                              // tables at or beneath a database, a schema or a table
	saying   func() map[attribute]map[string]*roaring.Bitmap // objects by what they say of themselves
}

// place is the beginning of a table's name, folded as its dialect folds it.
type place struct {
	dialect                 catalog.Dialect
	database, schema, table string
}

// NewCoverage indexes the tables of a snapshot.
func NewCoverage(s *catalog.Snapshot) *Coverage {
	c := &Coverage{snapshot: s, dialects: map[catalog.Dialect]bool{}, beneath: map[place][]uint32{}}
	c.saying = sync.OnceValue(c.attributes)
	for _, t := range s.Objects(catalog.KindTable) {
		d := c.dialect(t.Ref)
		r := d.RefKey(t.Ref)
		c.dialects[d] = true
		at := place{dialect: d, database: r.Database}
		c.beneath[at] = append(c.beneath[at], t.ID)
		if at.schema = r.Schema; at.schema != "" {
			c.beneath[at] = append(c.beneath[at], t.ID)
		}
		at.table = r.Table
		c.beneath[at] = append(c.beneath[at], t.ID)
	}
	return c
}

// Of returns the ids that any of the patterns covers.
func (c *Coverage) Of(patterns ...Pattern) *roaring.Bitmap {
	out := roaring.New()
	for _, p := range patterns {
		switch {
		case p.all:
			out.AddRange(0, uint64(c.snapshot.Len()))
		case p.attribute == byKind:
			k, _ := catalog.ParseKind(p.segments[0])
			r := c.snapshot.OfKind(k)
			out.AddRange(uint64(r.From), uint64(r.To))
		case p.attribute != "":
			for value, objects := range c.saying()[p.attribute] {
				if match(p.segments[0], value) {
					out.Or(objects)
				}
			}
		case p.kind != 0:
			c.addNamed(out, p)
		default:
			c.addPath(out, p)
		}
	}
	return out
}

// Covers reports whether a pattern covers an object of the snapshot.
func (c *Coverage) Covers(p Pattern, id uint32) bool {
	o := c.snapshot.Object(id)
	if p.ByAttribute() {
		return c.Of(p).Contains(id)
	}
	return p.Covers(c.dialect(o.Ref), o.Ref)
}

// attributes indexes what objects say of themselves. What a table says holds for its columns, and the tags of a column for
// those that are derived from it.
func (c *Coverage) attributes() map[attribute]map[string]*roaring.Bitmap {
	out := map[attribute]map[string]*roaring.Bitmap{byTag: {}, byOwner: {}, byDomain: {}}
	for i := range c.snapshot.All() {
		o := c.snapshot.Object(uint32(i))
		add := func(a attribute, value string) {
			if value == "" {
				return
			}
			if out[a][value] == nil {
				out[a][value] = roaring.New()
			}
			out[a][value].Add(o.ID)
			if o.Table != nil {
				r := c.snapshot.ColumnIDs(o.ID)
				out[a][value].AddRange(uint64(r.From), uint64(r.To))
			}
		}
		for _, t := range o.Tags {
			add(byTag, t)
		}
		if o.Column != nil && len(o.Column.DerivedFrom) > 0 {
			for t := range c.inherited(o.ID, nil) {
				add(byTag, t)
			}
		}
		add(byOwner, o.Owner)
		add(byDomain, o.Domain)
	}
	return out
}

// inherited returns the tags that a column has from those that it is made of: theirs, those of their tables and those that
// they inherit themselves, without the tags that were cleared on the way.
func (c *Coverage) inherited(column uint32, below []uint32) map[string]bool {
	out := map[string]bool{}
	if slices.Contains(below, column) {
		return out
	}
	o := c.snapshot.Object(column)
	for _, r := range o.Column.DerivedFrom {
		source, ok := c.snapshot.Lookup(r)
		if !ok {
			continue
		}
		for _, t := range slices.Concat(source.Tags, c.snapshot.Object(c.snapshot.TableOf(source.ID)).Tags) {
			out[t] = true
		}
		maps.Copy(out, c.inherited(source.ID, append(below, column)))
	}
	for _, t := range o.Cleared {
		delete(out, t)
	}
	return out
}

func (c *Coverage) addNamed(out *roaring.Bitmap, p Pattern) {
	for i := range c.snapshot.Objects(p.kind) {
		if o := &c.snapshot.Objects(p.kind)[i]; p.Covers("", o.Ref) {
			out.Add(o.ID)
		}
	}
}

func (c *Coverage) addPath(out *roaring.Bitmap, p Pattern) {
	if p.firstStar() == 0 {
		for i := range c.snapshot.Objects(catalog.KindTable) {
			t := &c.snapshot.Objects(catalog.KindTable)[i]
			c.add(out, p, c.dialect(t.Ref), t.ID)
		}
		return
	}
	for d := range c.dialects {
		for _, at := range p.places(d) {
			for _, id := range c.beneath[at] {
				c.add(out, p, d, id)
			}
		}
	}
}

// add adds what the pattern covers of one table.
func (c *Coverage) add(out *roaring.Bitmap, p Pattern, d catalog.Dialect, table uint32) {
	t := c.snapshot.Object(table)
	columns := c.snapshot.ColumnIDs(table)
	if p.Covers(d, t.Ref) {
		out.Add(table)
		out.AddRange(uint64(columns.From), uint64(columns.To))
		return
	}
	segment, literal, ok := p.column(d, t.Ref)
	if !ok {
		return
	}
	for id := columns.From; id < columns.To; id++ {
		name := d.Key(catalog.PartColumn, c.snapshot.Object(id).Ref.Column)
		if name == segment || !literal && match(segment, name) {
			out.Add(id)
		}
	}
}

func (c *Coverage) dialect(r catalog.Ref) catalog.Dialect {
	d, _ := c.snapshot.Database(r.Database)
	return d.Dialect
}

// firstStar returns how many segments stand before the first that may match several names.
func (p Pattern) firstStar() int {
	for i, s := range p.segments {
		if !p.literal[i] && strings.Contains(s, "*") {
			return i
		}
	}
	return len(p.segments)
}

// places returns where the tables lie that the pattern can concern, as far as the segments before its first star
// tell, of which there must be one. The second segment may be a schema, or a table of a database without schemas.
func (p Pattern) places(d catalog.Dialect) []place {
	n := p.firstStar()
	at := place{dialect: d, database: d.Key(catalog.PartDatabase, p.segments[0])}
	if n == 1 {
		return []place{at}
	}
	deep, flat := at, at
	deep.schema = d.Key(catalog.PartSchema, p.segments[1])
	flat.table = d.Key(catalog.PartTable, p.segments[1])
	if n > 2 {
		deep.table = d.Key(catalog.PartTable, p.segments[2])
	}
	if deep.schema == "" {
		return []place{flat}
	}
	return []place{deep, flat}
}
