package acl

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/schemagate/schemagate/catalog"
)

// Compiled is what a policy means for one set of roles on one snapshot: bitmaps of object ids and what happens to
// rows. It is shared between the principals that have those roles and must not be changed once a View is made of it.
type Compiled struct {
	Roles    []string
	Tenant   string
	Via      string    // the service account that acts for the principal, if one does
	Until    time.Time // when a grant begins or ends next, so that this holds no longer; zero if none does
	Policy   string    // version
	Snapshot *catalog.Snapshot
	// Allowed holds, by action, what grants allow and no grant denies. For tables, metrics, relationships and past
	// queries view and query follow from what they consist of.
	Allowed map[Action]*roaring.Bitmap
	// Raw holds the visible objects whose row-derived content (samples, statistics, text of past queries) the roles
	// may see, because they see every row that it came from, unmasked.
	Raw *roaring.Bitmap
	// Filters holds the row filter of each protected table, Masks the mask of each masked column, by id.
	Filters map[uint32]RowFilter
	Masks   map[uint32]Mask
}

// View is what one principal may see of one snapshot. It is cheap to copy. The zero View sees nothing.
type View struct {
	principal Principal
	c         *Compiled
	key       string
}

// NewView joins a principal with what its roles mean.
func NewView(who Principal, c *Compiled) View {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q %q %q %d", who.Name, c.Policy, c.Roles, c.Snapshot.Version(), c.Tenant, c.Via, c.Until.UnixNano())
	for _, k := range sortedKeys(who.Attributes) {
		fmt.Fprintf(h, " %q=%T:%#v", k, who.Attributes[k], who.Attributes[k])
	}
	return View{principal: who, c: c, key: hex.EncodeToString(h.Sum(nil))}
}

// OnBehalfOf returns what a service account sees when it acts for a person: what both may see, rows that both may see, and
// values that neither sees otherwise. Places in conditions are filled with the attributes of whose rule it is. Both views must be of one
// policy and snapshot.
func OnBehalfOf(service, person View) View {
	c := &Compiled{
		Roles: person.c.Roles, Tenant: person.c.Tenant, Via: service.principal.Name, Until: earlier(service.c.Until, person.c.Until),
		Policy: person.c.Policy, Snapshot: person.c.Snapshot,
		Allowed: map[Action]*roaring.Bitmap{}, Raw: roaring.And(service.c.Raw, person.c.Raw),
		Filters: map[uint32]RowFilter{}, Masks: map[uint32]Mask{},
	}
	for a, allowed := range person.c.Allowed {
		c.Allowed[a] = roaring.And(service.c.Allowed[a], allowed)
	}
	// A table is visible by its columns, and the two may see different ones.
	for _, a := range [...]Action{ActionView, ActionQuery} {
		tables := c.Snapshot.OfKind(catalog.KindTable)
		for id := tables.From; id < tables.To; id++ {
			r := c.Snapshot.ColumnIDs(id)
			if !c.Allowed[a].IntersectsWithInterval(uint64(r.From), uint64(r.To)) {
				c.Allowed[a].Remove(id)
			}
		}
	}
	for a, allowed := range c.Allowed {
		if a != ActionAudit && a != ActionAdminister && a != ActionImpersonate {
			allowed.And(c.Allowed[ActionView])
		}
	}
	c.Raw.And(c.Allowed[ActionView])
	maps.Copy(c.Filters, person.c.Filters)
	for table, f := range service.c.Filters {
		f = f.of(&service.principal)
		if own, both := c.Filters[table]; both {
			f = own.and(f)
		}
		c.Filters[table] = f
	}
	maps.Copy(c.Masks, person.c.Masks)
	for column, m := range service.c.Masks {
		m.Of = &service.principal
		if own, both := c.Masks[column]; both {
			m = own.and(m)
		}
		c.Masks[column] = m
	}
	return NewView(person.principal, c)
}

// and returns a mask that shows no more than either does: the mask itself if they say the same, else nothing, since what
// one of them hides the other may show.
func (m Mask) and(o Mask) Mask {
	plain := m.Kind == MaskNull || m.Kind == MaskHash || m.Kind == MaskPartial
	if m.Kind == o.Kind && (plain || m.Kind == MaskConstant && m.Constant == o.Constant) {
		return m
	}
	return Mask{Kind: MaskNull, Rule: m.Rule + " and " + o.Rule}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// of returns the filter with its places filled from another principal than the view's.
func (f RowFilter) of(who *Principal) RowFilter {
	out := RowFilter{Permissive: slices.Clone(f.Permissive), Restrictive: slices.Clone(f.Restrictive)}
	for _, list := range [][]Predicate{out.Permissive, out.Restrictive} {
		for i := range list {
			list[i].Of = who
		}
	}
	return out
}

// and returns a filter that lets through what both do. Conditions of one filter are all of one principal.
func (f RowFilter) and(g RowFilter) RowFilter {
	if len(g.Permissive) == 0 {
		return RowFilter{Restrictive: slices.Concat(f.Restrictive, g.Restrictive)}
	}
	if len(g.Permissive) == 1 {
		return RowFilter{Permissive: f.Permissive, Restrictive: slices.Concat(f.Restrictive, g.Restrictive, g.Permissive)}
	}
	// A line break ends whatever comment a condition may end in.
	var any, rules []string
	for _, p := range g.Permissive {
		any, rules = append(any, "("+p.Using+"\n)"), append(rules, p.Rule)
	}
	either := Predicate{Using: strings.Join(any, " OR "), Rule: strings.Join(rules, " or "), Of: g.Permissive[0].Of}
	return RowFilter{Permissive: f.Permissive, Restrictive: slices.Concat(f.Restrictive, g.Restrictive, []Predicate{either})}
}

// Everything returns a view of the whole snapshot, for work on behalf of nobody: measuring and auditing. What is
// computed with it must not reach an asker.
func Everything(s *catalog.Snapshot) View {
	all := roaring.New()
	all.AddRange(0, uint64(s.Len()))
	return NewView(Principal{}, &Compiled{
		Snapshot: s, Raw: all, Allowed: map[Action]*roaring.Bitmap{ActionView: all, ActionQuery: all},
	})
}

// Principal returns who the view is for.
func (v View) Principal() Principal { return v.principal }

// Snapshot returns the whole catalog, hidden objects included; it is for code that checks each object against the
// view. It is nil for the zero View.
func (v View) Snapshot() *catalog.Snapshot {
	if v.c == nil {
		return nil
	}
	return v.c.Snapshot
}

// Tenant returns the principal's part of the deployment, empty where there is only one.
func (v View) Tenant() string {
	if v.c == nil {
		return ""
	}
	return v.c.Tenant
}

// Via returns the service account that acts for the principal, empty if they act themselves.
func (v View) Via() string {
	if v.c == nil {
		return ""
	}
	return v.c.Via
}

// Until returns the moment from which the view holds no longer, since a grant begins or ends then; zero if none does.
func (v View) Until() time.Time {
	if v.c == nil {
		return time.Time{}
	}
	return v.c.Until
}

// Policy returns the version of the policy that the view was compiled from.
func (v View) Policy() string {
	if v.c == nil {
		return ""
	}
	return v.c.Policy
}

// May reports whether the principal may do something to an object.
func (v View) May(a Action, id uint32) bool {
	return v.c != nil && v.c.Allowed[a] != nil && v.c.Allowed[a].Contains(id)
}

// MaySomething reports whether there is anything that the principal may do.
func (v View) MaySomething() bool {
	if v.c == nil {
		return false
	}
	for _, allowed := range v.c.Allowed {
		if !allowed.IsEmpty() {
			return true
		}
	}
	return false
}

// MayEverywhere reports whether the principal may do something to every object there is, as auditing and acting for
// others require.
func (v View) MayEverywhere(a Action) bool {
	return v.c != nil && v.c.Allowed[a] != nil && v.c.Snapshot.Len() > 0 &&
		v.c.Allowed[a].GetCardinality() == uint64(v.c.Snapshot.Len())
}

// Visible reports whether the principal may know of an object.
func (v View) Visible(id uint32) bool { return v.May(ActionView, id) }

// Queryable reports whether the principal may know of an object and have statements read it.
func (v View) Queryable(id uint32) bool { return v.Visible(id) && v.May(ActionQuery, id) }

// Queryables returns a copy of the set of queryable objects.
func (v View) Queryables() *roaring.Bitmap {
	if v.c == nil || v.c.Allowed[ActionView] == nil || v.c.Allowed[ActionQuery] == nil {
		return roaring.New()
	}
	return roaring.And(v.c.Allowed[ActionView], v.c.Allowed[ActionQuery])
}

// Without returns a view that shows less: all but some objects. It serves to search what stands for others of its kind,
// and has a key of its own.
func (v View) Without(ids *roaring.Bitmap) (View, error) {
	if v.c == nil || ids.IsEmpty() {
		return v, nil
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s without ", v.key)
	if _, err := ids.WriteTo(h); err != nil {
		return View{}, fmt.Errorf("acl: name a view of less: %w", err)
	}
	less := *v.c
	less.Allowed = map[Action]*roaring.Bitmap{}
	for a, allowed := range v.c.Allowed {
		less.Allowed[a] = roaring.AndNot(allowed, ids)
	}
	if v.c.Raw != nil {
		less.Raw = roaring.AndNot(v.c.Raw, ids)
	}
	return View{principal: v.principal, c: &less, key: hex.EncodeToString(h.Sum(nil))}, nil
}

// Raw reports whether the principal may see what was derived from the object's rows.
func (v View) Raw(id uint32) bool { return v.c != nil && v.c.Raw != nil && v.c.Raw.Contains(id) }

// Filter returns the row filter of a table, and false if the table is not protected.
func (v View) Filter(table uint32) (RowFilter, bool) {
	if v.c == nil {
		return RowFilter{}, true
	}
	f, ok := v.c.Filters[table]
	return f, ok
}

// Mask returns the mask of a column, and false if its values read as they are.
func (v View) Mask(column uint32) (Mask, bool) {
	if v.c == nil {
		return Mask{Kind: MaskNull}, true
	}
	m, ok := v.c.Masks[column]
	return m, ok
}

// Object returns an object as the principal may read it: without keys that point at hidden objects and, unless Raw,
// without what came from rows. ok is false if it is hidden.
func (v View) Object(id uint32) (o catalog.Object, ok bool) {
	if !v.Visible(id) {
		return catalog.Object{}, false
	}
	o = *v.c.Snapshot.Object(id)
	if o.Column != nil || o.Table != nil {
		o = v.c.Snapshot.Prune(&o, func(r catalog.Ref) bool {
			to, known := v.c.Snapshot.ID(r)
			return known && v.Visible(to)
		})
	}
	if !v.Raw(id) {
		o = withoutRows(o)
	}
	return o, true
}

// withoutRows drops what came from rows from an object that is already a private copy.
func withoutRows(o catalog.Object) catalog.Object {
	switch {
	case o.Table != nil:
		o.Table.Rows = nil
	case o.Column != nil:
		o.Column.Samples, o.Column.Dictionary, o.Column.NullShare, o.Column.Distinct = nil, nil, nil, nil
	}
	return o
}

// Restricted builds the catalog that the view stands for: hidden objects are gone, withheld content too. Everything
// that a principal gets from the view must equal what they would get from it under a policy that allows all.
func (v View) Restricted() (*catalog.Snapshot, error) {
	if v.c == nil {
		return catalog.Build(nil, nil)
	}
	return catalog.Restrict(v.c.Snapshot,
		func(o *catalog.Object) bool { return v.Visible(o.ID) },
		func(o *catalog.Object) {
			if !v.Raw(o.ID) {
				*o = withoutRows(*o)
			}
		})
}

// Key identifies everything that the view depends on, for caches: two views with one key are interchangeable. It is
// empty for the zero View.
func (v View) Key() string { return v.key }

// Edition names the versions that the view rests on, for the audit.
func (v View) Edition() (snapshot, policy string) {
	if v.c == nil {
		return "", ""
	}
	return v.c.Snapshot.Version(), v.c.Policy
}

// Roles returns the principal's roles, inherited ones included.
func (v View) Roles() []string {
	if v.c == nil {
		return nil
	}
	return v.c.Roles
}
