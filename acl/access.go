package acl

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/schemagate/schemagate/catalog"
)

// Access is what a principal may do to one object. Like a Decision it is for whoever keeps the policy.
type Access struct {
	Ref     catalog.Ref `json:"-"`
	Name    string      `json:"ref"` // of Ref
	Actions []Action    `json:"actions"`
	// Rows are the conditions on the rows of a table; nil if every row is seen.
	Rows *Rows `json:"rows,omitempty"`
	// Mask is the kind of mask on a column, empty if its values read as they are.
	Mask MaskKind `json:"mask,omitempty"`
}

// Rows are the conditions on the rows of a table: one of Any and all of All must hold, with the principal's attributes in
// their places. None says that no row is seen.
type Rows struct {
	Any  []string `json:"any,omitempty"`
	All  []string `json:"all,omitempty"`
	None bool     `json:"none,omitempty"`
}

func (r *Rows) equal(o *Rows) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.None == o.None && slices.Equal(r.Any, o.Any) && slices.Equal(r.All, o.All)
}

// Access returns what the principal may do to an object; no action if they may not even know of it.
func (v View) Access(id uint32) Access {
	o := v.Snapshot().Object(id)
	out := Access{Ref: o.Ref, Name: o.Ref.String()}
	for _, a := range Actions {
		if v.May(a, id) {
			out.Actions = append(out.Actions, a)
		}
	}
	if !v.Visible(id) {
		return out
	}
	if f, protected := v.Filter(id); protected && o.Table != nil {
		out.Rows = &Rows{None: len(f.Permissive) == 0}
		for _, p := range f.Permissive {
			out.Rows.Any = append(out.Rows.Any, v.fill(p))
		}
		for _, p := range f.Restrictive {
			out.Rows.All = append(out.Rows.All, v.fill(p))
		}
	}
	if m, masked := v.Mask(id); masked && o.Column != nil {
		out.Mask = m.Kind
	}
	return out
}

// fill writes a condition with the attributes in their places, for people to read: it is not SQL to run.
func (v View) fill(c Predicate) string {
	t, err := ParseTemplate(c.Using)
	if err != nil {
		return c.Using
	}
	p := v.principal
	if c.Of != nil {
		p = *c.Of
	}
	out := t.Text[0]
	for i, name := range t.Attributes {
		value, ok := p.Attribute(name)
		if text, isText := value.(string); isText {
			value = "'" + text + "'"
		}
		if !ok {
			value = "(the missing attribute " + name + ")"
		}
		out += fmt.Sprint(value) + t.Text[i+1]
	}
	return out
}

// What returns every object that the principal may do something to, in the catalog's order.
func (v View) What() []Access {
	var out []Access
	for i := range v.Snapshot().Len() {
		if a := v.Access(uint32(i)); len(a.Actions) > 0 {
			out = append(out, a)
		}
	}
	return out
}

// Change is how the access of one principal to one object differs between two policies.
type Change struct {
	Principal string   `json:"principal"`
	Ref       string   `json:"ref"`
	Gained    []Action `json:"gained,omitempty"`
	Lost      []Action `json:"lost,omitempty"`
	// Before and After are set if the rows or values that are seen differ, or the rules of them.
	Before *Access `json:"before,omitempty"`
	After  *Access `json:"after,omitempty"`
}

// Changes compares two views of the same principal on the same snapshot. A table whose columns all changed alike stands for
// them.
func Changes(before, after View) []Change {
	var out []Change
	s := before.Snapshot()
	who := cmp.Or(before.Principal().Name, after.Principal().Name)
	folded := roaring.New()
	for i := range s.Len() {
		id := uint32(i)
		if folded.Contains(id) {
			continue
		}
		c, changed := change(who, before, after, id)
		if s.Object(id).Table != nil && changed {
			r := s.ColumnIDs(id)
			alike := true
			for col := r.From; col < r.To && alike; col++ {
				of, ok := change(who, before, after, col)
				alike = ok && of.Before == nil && slices.Equal(of.Gained, c.Gained) && slices.Equal(of.Lost, c.Lost)
			}
			if alike {
				folded.AddRange(uint64(r.From), uint64(r.To))
			}
		}
		if changed {
			out = append(out, c)
		}
	}
	return out
}

func change(who string, before, after View, id uint32) (Change, bool) {
	a, b := before.Access(id), after.Access(id)
	c := Change{Principal: who, Ref: b.Name}
	for _, action := range Actions {
		had, has := slices.Contains(a.Actions, action), slices.Contains(b.Actions, action)
		switch {
		case has && !had:
			c.Gained = append(c.Gained, action)
		case had && !has:
			c.Lost = append(c.Lost, action)
		}
	}
	ma, _ := before.Mask(id)
	mb, _ := after.Mask(id)
	ma.Rule, mb.Rule = "", ""
	if before.Visible(id) && after.Visible(id) && (!a.Rows.equal(b.Rows) || a.Mask != b.Mask || a.Mask != "" && ma != mb) {
		c.Before, c.After = &a, &b
	}
	return c, c.Gained != nil || c.Lost != nil || c.Before != nil
}
