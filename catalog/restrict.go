package catalog

import "slices"

// Restrict builds the catalog that holds only the objects that keep accepts: what is left out is gone without trace,
// with its columns, the keys that point at it and everything that names it. edit, if not nil, may change a private
// copy of each object that stays. It is what "a catalog out of which the invisible objects were removed" means.
func Restrict(s *Snapshot, keep func(*Object) bool, edit func(*Object)) (*Snapshot, error) {
	kept := map[Ref]bool{}
	stays := func(r Ref) bool {
		o, ok := s.Lookup(r)
		return ok && kept[o.Ref]
	}
	for i := range s.objects {
		o := &s.objects[i]
		if keep(o) {
			kept[o.Ref] = true
		}
	}
	var objects []Object
	databases := map[string]bool{}
	for i := range s.objects {
		o := s.objects[i]
		if !kept[o.Ref] || slices.ContainsFunc(o.Names(), func(r Ref) bool { return !stays(r) }) {
			continue
		}
		if o.Ref.Kind == KindColumn && !stays(o.Ref.TableRef()) {
			continue
		}
		o = prune(o, stays)
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

// Prune returns o without the keys and partitions that point at objects for which stays is false. Parts that do not
// change are shared with o.
func Prune(o *Object, stays func(Ref) bool) Object { return prune(*o, stays) }

func prune(o Object, stays func(Ref) bool) Object {
	gone := func(r Ref) bool { return !stays(r) }
	switch {
	case o.Column != nil:
		c := *o.Column
		c.ForeignKeys = slices.DeleteFunc(slices.Clone(c.ForeignKeys), gone)
		o.Column = &c
	case o.Table != nil:
		t := *o.Table
		own := func(name string) bool {
			return gone(ColumnRef(o.Ref.Database, o.Ref.Schema, o.Ref.Table, name))
		}
		if slices.ContainsFunc(t.PrimaryKey, own) {
			t.PrimaryKey = nil
		}
		t.UniqueKeys = slices.DeleteFunc(slices.Clone(t.UniqueKeys), func(k []string) bool { return slices.ContainsFunc(k, own) })
		t.ForeignKeys = slices.DeleteFunc(slices.Clone(t.ForeignKeys), func(k ForeignKey) bool {
			return slices.ContainsFunc(k.Columns, own) || slices.ContainsFunc(k.ToColumns, func(c string) bool {
				return gone(ColumnRef(k.To.Database, k.To.Schema, k.To.Table, c))
			})
		})
		t.Partitions = slices.DeleteFunc(slices.Clone(t.Partitions), gone)
		t.SQLView = ""
		o.Table = &t
	}
	return o
}
