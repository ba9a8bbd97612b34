package catalog

import "slices"

// Derive builds the snapshot in which columns are derived from others as from says, in place of what s says of them. Names
// that s does not hold are left out.
func Derive(s *Snapshot, from map[Ref][]Ref) (*Snapshot, error) {
	objects := slices.Clone(s.objects)
	changed := false
	for column, sources := range from {
		id, ok := s.ID(column)
		if !ok || objects[id].Column == nil {
			continue
		}
		c := *objects[id].Column
		c.DerivedFrom = nil
		for _, r := range sources {
			if o, ok := s.Lookup(r); ok && o.Column != nil && o.ID != id && !slices.Contains(c.DerivedFrom, o.Ref) {
				c.DerivedFrom = append(c.DerivedFrom, o.Ref)
			}
		}
		if !slices.Equal(c.DerivedFrom, objects[id].Column.DerivedFrom) {
			objects[id].Column = &c
			changed = true
		}
	}
	if !changed {
		return s, nil
	}
	out := *s
	out.objects = objects
	var err error
	out.version, err = out.digest()
	return &out, err
}
