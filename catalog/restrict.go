package catalog

import "slices"

// Restrict builds the catalog that holds only the objects that keep accepts: what is left out is gone without trace,
// with its columns, the keys that point at it and everything that names it; a declared key goes with its relationship.
// edit, if not nil, may change the fields of a private copy of each object that stays. It is what "a catalog out of
// which the invisible objects were removed" means.
func Restrict(s *Snapshot, keep func(*Object) bool, edit func(*Object)) (*Snapshot, error) {
	kept := make([]bool, len(s.objects))
	for i := range s.objects {
		kept[i] = keep(&s.objects[i])
	}
	stays := func(r Ref) bool {
		id, ok := s.ID(r)
		return ok && kept[id]
	}
	// A column follows its table, and what names objects follows them: tables come first, columns next.
	for i := range s.objects {
		o := &s.objects[i]
		kept[i] = kept[i] && !slices.ContainsFunc(o.Names(), func(r Ref) bool { return !stays(r) }) &&
			(o.Column == nil || stays(o.Ref.TableRef()))
	}
	var objects []Object
	databases := map[string]bool{}
	for i := range s.objects {
		if !kept[i] {
			continue
		}
		o := own(s.Prune(&s.objects[i], stays))
		if edit != nil {
			edit(&o)
		}
		if o.Ref.Database != "" {
			databases[o.Ref.Database] = true
		}
		objects = append(objects, o)
	}
	var left []Database
	for _, d := range s.databases {
		if databases[d.Name] {
			left = append(left, d)
		}
	}
	return Build(left, objects)
}

// own gives o fields that are not shared with the object it was copied from; Prune has done so for tables and columns.
func own(o Object) Object {
	switch {
	case o.Metric != nil:
		m := *o.Metric
		o.Metric = &m
	case o.Relationship != nil:
		r := *o.Relationship
		o.Relationship = &r
	case o.Query != nil:
		q := *o.Query
		o.Query = &q
	}
	return o
}

// Prune returns an object of s without the keys and partitions that point at objects for which stays is false, and
// without keys whose relationship does not stay. A SQL view's statement goes always, since it may name anything. Parts
// that do not change are shared with o.
func (s *Snapshot) Prune(o *Object, stays func(Ref) bool) Object {
	out := *o
	gone := func(r Ref) bool { return !stays(r) }
	switch {
	case o.Column != nil:
		c := *o.Column
		c.ForeignKeys = slices.DeleteFunc(s.pointers(o, stays), gone)
		c.DerivedFrom = slices.DeleteFunc(slices.Clone(c.DerivedFrom), gone)
		out.Column = &c
	case o.Table != nil:
		t := *o.Table
		own := func(name string) bool {
			return gone(ColumnRef(o.Ref.Database, o.Ref.Schema, o.Ref.Table, name))
		}
		if slices.ContainsFunc(t.PrimaryKey, own) {
			t.PrimaryKey = nil
		}
		t.UniqueKeys = slices.DeleteFunc(slices.Clone(t.UniqueKeys), func(k []string) bool { return slices.ContainsFunc(k, own) })
		t.ForeignKeys = slices.DeleteFunc(slices.Clone(t.ForeignKeys), func(k ForeignKey) bool { return !s.keyStays(o.Ref, k, stays) })
		t.Partitions = slices.DeleteFunc(slices.Clone(t.Partitions), gone)
		t.SQLView = ""
		out.Table = &t
	}
	return out
}

// pointers lists what a column points at, in the order in which Build would find it: what no key of its table says
// first, then what those of its keys say that stay.
func (s *Snapshot) pointers(column *Object, stays func(Ref) bool) []Ref {
	if len(column.Column.ForeignKeys) == 0 {
		return nil
	}
	table, ok := s.Lookup(column.Ref.TableRef())
	if !ok {
		return nil
	}
	var declared, out []Ref
	for _, k := range table.Table.ForeignKeys {
		from, to := s.keyEnds(table.Ref, k)
		for i := range from {
			if s.key(from[i]) != s.key(column.Ref) {
				continue
			}
			declared = append(declared, to[i])
			if s.keyStays(table.Ref, k, stays) && !slices.Contains(out, to[i]) {
				out = append(out, to[i])
			}
		}
	}
	only := slices.DeleteFunc(slices.Clone(column.Column.ForeignKeys), func(r Ref) bool { return slices.Contains(declared, r) })
	return append(only, out...)
}

func (s *Snapshot) keyStays(table Ref, k ForeignKey, stays func(Ref) bool) bool {
	gone := func(r Ref) bool { return !stays(r) }
	from, to := s.keyEnds(table, k)
	return !slices.ContainsFunc(from, gone) && !slices.ContainsFunc(to, gone) && slices.ContainsFunc(s.tied[s.ends(from, to)], stays)
}

// keyEnds spells both ends of a key of a table as the catalog does.
func (s *Snapshot) keyEnds(table Ref, k ForeignKey) (from, to []Ref) {
	spelled := func(r Ref) Ref {
		if o, ok := s.Lookup(r); ok {
			return o.Ref
		}
		return r
	}
	for i := range k.Columns {
		from = append(from, spelled(ColumnRef(table.Database, table.Schema, table.Table, k.Columns[i])))
		to = append(to, spelled(ColumnRef(k.To.Database, k.To.Schema, k.To.Table, k.ToColumns[i])))
	}
	return from, to
}
