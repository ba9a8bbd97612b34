package catalog

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
)

// Changes is what differs between two snapshots, each list in order of name.
type Changes struct {
	Added   []Ref `json:"added"`
	Removed []Ref `json:"removed"`
	Changed []Ref `json:"changed"`
}

// Empty reports whether nothing differs.
func (c Changes) Empty() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// Diff lists what must happen to old to make it new. A name whose letter case changed in a way that its dialect
// ignores counts as changed.
func Diff(old, new *Snapshot) Changes {
	c := Changes{Added: []Ref{}, Removed: []Ref{}, Changed: []Ref{}}
	for i := range new.objects {
		n := &new.objects[i]
		o, ok := old.Lookup(n.Ref)
		switch {
		case !ok:
			c.Added = append(c.Added, n.Ref)
		case !sameContent(o, n):
			c.Changed = append(c.Changed, n.Ref)
		}
	}
	for i := range old.objects {
		if _, ok := new.ID(old.objects[i].Ref); !ok {
			c.Removed = append(c.Removed, old.objects[i].Ref)
		}
	}
	for _, l := range [][]Ref{c.Added, c.Removed, c.Changed} {
		slices.SortStableFunc(l, func(a, b Ref) int { return int(a.Kind) - int(b.Kind) })
	}
	return c
}

func sameContent(a, b *Object) bool {
	x, y := *a, *b
	x.ID, y.ID = 0, 0
	if reflect.DeepEqual(x, y) {
		return true
	}
	// What reads the same is the same, as it is for the version: an empty list and none, one time in two zones' types.
	m, err := json.Marshal(x)
	n, err2 := json.Marshal(y)
	return err == nil && err2 == nil && bytes.Equal(m, n)
}
