// Package casbin decides with Casbin. A policy is loaded into a Casbin model whose Enforce answers for one object at a
// time; since that costs up to milliseconds and grows with the number of rules, a role set is compiled once into bitmaps
// over a snapshot, and the bitmaps answer at run time. Enforce stays the oracle that the bitmaps are tested against.
package casbin

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"
	defaultrolemanager "github.com/casbin/casbin/v2/rbac/default-role-manager"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// The model denies unless a rule allows, and a deny wins. Subjects are "user:NAME" and "role:NAME", so that nobody
// gains a role by being named like it.
const modelText = `
[request_definition]
r = sub, obj, act

[policy_definition]
p = sub, obj, act, eft

[role_definition]
g = _, _

[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))

[matchers]
m = g(r.sub, p.sub) && r.act == p.act && covers(p.obj, r.obj)
`

// Engine answers for one policy on one snapshot. It is safe for concurrent use.
type Engine struct {
	policy   *acl.Policy
	snapshot *catalog.Snapshot
	enforcer *casbin.Enforcer
	patterns map[string]acl.Pattern
	// grants holds the same rules as the enforcer, by role, with the place each came from.
	grants map[string][]acl.Grant

	mu       sync.Mutex
	compiled map[string]*acl.Compiled // by role set
}

// New loads a policy.
func New(policy *acl.Policy, snapshot *catalog.Snapshot) (*Engine, error) {
	m, err := model.NewModelFromString(modelText)
	if err != nil {
		return nil, fmt.Errorf("casbin: model: %w", err)
	}
	e, err := casbin.NewEnforcer(m)
	if err != nil {
		return nil, fmt.Errorf("casbin: %w", err)
	}
	eng := &Engine{
		policy: policy, snapshot: snapshot, enforcer: e,
		patterns: map[string]acl.Pattern{}, grants: map[string][]acl.Grant{}, compiled: map[string]*acl.Compiled{},
	}
	// Casbin's own role manager gives up silently at ten levels; a chain is never longer than there are roles.
	e.SetRoleManager(defaultrolemanager.NewRoleManager(len(policy.Inherits()) + 2))
	e.AddFunction("covers", eng.covers)
	if err := eng.load(); err != nil {
		return nil, err
	}
	return eng, nil
}

func user(name string) string { return "user:" + name }
func role(name string) string { return "role:" + name }

func (e *Engine) load() error {
	var links, rules [][]string
	for _, name := range e.policy.Principals() {
		who, err := e.policy.Principal(name)
		if err != nil {
			return err
		}
		for _, r := range who.Roles {
			links = append(links, []string{user(name), role(r)})
		}
	}
	for r, parents := range e.policy.Inherits() {
		for _, p := range parents {
			links = append(links, []string{role(r), role(p)})
		}
	}
	for _, g := range e.policy.Grants {
		e.grants[g.Role] = append(e.grants[g.Role], g)
		for _, a := range g.Actions {
			for _, p := range g.Allow {
				e.patterns[p.String()] = p
				rules = append(rules, []string{role(g.Role), p.String(), string(a), "allow"})
			}
			for _, p := range g.Deny {
				e.patterns[p.String()] = p
				rules = append(rules, []string{role(g.Role), p.String(), string(a), "deny"})
			}
		}
	}
	for _, l := range unique(links) {
		if _, err := e.enforcer.AddGroupingPolicy(l); err != nil {
			return fmt.Errorf("casbin: role link %v: %w", l, err)
		}
	}
	if rules = unique(rules); len(rules) > 0 {
		if _, err := e.enforcer.AddPolicies(rules); err != nil {
			return fmt.Errorf("casbin: rules: %w", err)
		}
	}
	return nil
}

func unique(rows [][]string) [][]string {
	seen := map[string]bool{}
	return slices.DeleteFunc(rows, func(r []string) bool {
		k := strings.Join(r, "\x00")
		twice := seen[k]
		seen[k] = true
		return twice
	})
}

// covers is the matcher's function: does a rule's pattern cover an object, given as its kind and name?
func (e *Engine) covers(args ...any) (any, error) {
	pattern, _ := args[0].(string)
	object, _ := args[1].(string)
	p, known := e.patterns[pattern]
	if !known {
		return nil, fmt.Errorf("casbin: pattern %q is not in the policy", pattern)
	}
	var r catalog.Ref
	if err := r.UnmarshalText([]byte(object)); err != nil {
		return nil, err
	}
	return p.Covers(e.dialect(r), r), nil
}

func (e *Engine) dialect(r catalog.Ref) catalog.Dialect {
	d, _ := e.snapshot.Database(r.Database)
	return d.Dialect
}

// Enforce asks Casbin whether the rules allow a principal an action on one object, taken by itself: what follows for
// tables from their columns, and for metrics, relationships and past queries from what they name, is View's business.
func (e *Engine) Enforce(principal string, a acl.Action, r catalog.Ref) (acl.Effect, error) {
	text, err := r.MarshalText()
	if err != nil {
		return acl.Deny, err
	}
	ok, err := e.enforcer.Enforce(user(principal), string(text), string(a))
	if err != nil || !ok {
		return acl.Deny, err
	}
	return acl.Allow, nil
}

// View returns what a principal may see. A principal that the policy does not know is refused.
func (e *Engine) View(principal string) (acl.View, error) {
	who, err := e.policy.Principal(principal)
	if err != nil {
		return acl.View{}, err
	}
	roles, err := e.roles(principal)
	if err != nil {
		return acl.View{}, err
	}
	key := strings.Join(roles, "\x00")
	e.mu.Lock()
	c := e.compiled[key]
	e.mu.Unlock()
	if c == nil {
		c = e.compile(roles)
		e.mu.Lock()
		e.compiled[key] = c
		e.mu.Unlock()
	}
	return acl.NewView(who, c), nil
}

func (e *Engine) roles(principal string) ([]string, error) {
	found, err := e.enforcer.GetImplicitRolesForUser(user(principal))
	if err != nil {
		return nil, fmt.Errorf("casbin: roles of %s: %w", principal, err)
	}
	var roles []string
	for _, r := range found {
		roles = append(roles, strings.TrimPrefix(r, "role:"))
	}
	slices.Sort(roles)
	return slices.Compact(roles), nil
}

func (e *Engine) compile(roles []string) *acl.Compiled {
	s := e.snapshot
	c := &acl.Compiled{
		Roles: roles, Policy: e.policy.Version(), Snapshot: s,
		Allowed: map[acl.Action]*roaring.Bitmap{}, Raw: roaring.New(),
		Filters: map[uint32]acl.RowFilter{}, Masks: map[uint32]acl.Mask{},
	}
	for _, a := range acl.Actions {
		allow, deny := roaring.New(), roaring.New()
		for _, r := range roles {
			for _, g := range e.grants[r] {
				if !slices.Contains(g.Actions, a) {
					continue
				}
				for _, p := range g.Allow {
					e.cover(p, allow)
				}
				for _, p := range g.Deny {
					e.cover(p, deny)
				}
			}
		}
		allow.AndNot(deny)
		c.Allowed[a] = allow
	}
	deny := roaring.New()
	for _, r := range roles {
		for _, g := range e.grants[r] {
			for _, p := range g.Deny {
				if slices.Contains(g.Actions, acl.ActionView) {
					e.cover(p, deny)
				}
			}
		}
	}
	view, query := c.Allowed[acl.ActionView], c.Allowed[acl.ActionQuery]
	query.And(view)
	e.derive(view, deny)
	e.derive(query, deny)
	for _, a := range acl.Actions {
		// Nobody does anything to what they may not know of, save those who look after everything.
		if a != acl.ActionAudit && a != acl.ActionAdminister && a != acl.ActionImpersonate {
			c.Allowed[a].And(view)
		}
		c.Allowed[a].RunOptimize()
	}
	e.protect(c, roles)
	e.raw(c)
	return c
}

// derive makes tables, metrics, relationships and past queries follow from the columns in set: a table is in it if one
// of its columns is, the others if everything they name is and no rule denies them by name.
func (e *Engine) derive(set, deny *roaring.Bitmap) {
	s := e.snapshot
	tables := s.OfKind(catalog.KindTable)
	for id := tables.From; id < tables.To; id++ {
		r := s.ColumnIDs(id)
		set.Remove(id)
		if set.IntersectsWithInterval(uint64(r.From), uint64(r.To)) {
			set.Add(id)
		}
	}
	for _, k := range []catalog.Kind{catalog.KindMetric, catalog.KindRelationship, catalog.KindQuery} {
		for i := range s.Objects(k) {
			o := &s.Objects(k)[i]
			set.Remove(o.ID)
			if !deny.Contains(o.ID) && !slices.ContainsFunc(o.Names(), func(r catalog.Ref) bool {
				id, ok := s.ID(r)
				return !ok || !set.Contains(id)
			}) {
				set.Add(o.ID)
			}
		}
	}
}

// cover adds the objects that a pattern covers.
func (e *Engine) cover(p acl.Pattern, into *roaring.Bitmap) {
	s := e.snapshot
	if p.String() == "*" {
		into.AddRange(0, uint64(s.Len()))
		return
	}
	for i := range s.Objects(catalog.KindTable) {
		t := &s.Objects(catalog.KindTable)[i]
		d := e.dialect(t.Ref)
		columns := s.ColumnIDs(t.ID)
		switch {
		case p.Covers(d, t.Ref):
			into.Add(t.ID)
			into.AddRange(uint64(columns.From), uint64(columns.To))
		case p.Reaches(d, t.Ref):
			for id := columns.From; id < columns.To; id++ {
				if p.Covers(d, s.Object(id).Ref) {
					into.Add(id)
				}
			}
		}
	}
	for _, k := range []catalog.Kind{catalog.KindMetric, catalog.KindRelationship, catalog.KindQuery} {
		for i := range s.Objects(k) {
			if o := &s.Objects(k)[i]; p.Covers("", o.Ref) {
				into.Add(o.ID)
			}
		}
	}
}

// protect collects row filters and masks. A table that any filter names is protected for every role set.
func (e *Engine) protect(c *acl.Compiled, roles []string) {
	has := func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(roles, n) })
	}
	for _, rule := range e.policy.RowFilters {
		covered := roaring.New()
		e.cover(rule.Table, covered)
		tables := e.snapshot.OfKind(catalog.KindTable)
		for _, id := range covered.ToArray() {
			if id >= tables.To {
				break
			}
			f := c.Filters[id]
			switch {
			case !has(rule.Roles):
			case rule.Restrictive:
				f.Restrictive = append(f.Restrictive, rule.Predicate)
			default:
				f.Permissive = append(f.Permissive, rule.Predicate)
			}
			c.Filters[id] = f
		}
	}
	masks := map[uint32][]acl.Mask{}
	columns := e.snapshot.OfKind(catalog.KindColumn)
	for _, rule := range e.policy.Masks {
		if !has(rule.Roles) {
			continue
		}
		covered := roaring.New()
		e.cover(rule.Column, covered)
		for _, id := range covered.ToArray() {
			if id >= columns.From && id < columns.To {
				masks[id] = append(masks[id], rule.Mask)
			}
		}
	}
	for id, list := range masks {
		c.Masks[id] = acl.Strongest(list)
	}
}

// raw fills c.Raw: a table or a past query if no row of the tables concerned is filtered and no column masked, a
// column if its table is unfiltered and it is not masked itself. Metrics and relationships hold nothing from rows.
func (e *Engine) raw(c *acl.Compiled) {
	s := e.snapshot
	whole := map[uint32]bool{} // tables of which every row and every value is seen
	tables := s.OfKind(catalog.KindTable)
	for id := tables.From; id < tables.To; id++ {
		_, filtered := c.Filters[id]
		if filtered {
			continue
		}
		columns, masked := s.ColumnIDs(id), false
		for col := columns.From; col < columns.To; col++ {
			if _, m := c.Masks[col]; m {
				masked = true
			} else {
				c.Raw.Add(col)
			}
		}
		if !masked {
			whole[id] = true
			c.Raw.Add(id)
		}
	}
	for _, k := range []catalog.Kind{catalog.KindMetric, catalog.KindRelationship} {
		r := s.OfKind(k)
		c.Raw.AddRange(uint64(r.From), uint64(r.To))
	}
	for i := range s.Objects(catalog.KindQuery) {
		o := &s.Objects(catalog.KindQuery)[i]
		if !slices.ContainsFunc(o.Names(), func(r catalog.Ref) bool {
			id, ok := s.ID(r.TableRef())
			return !ok || !whole[id]
		}) {
			c.Raw.Add(o.ID)
		}
	}
	c.Raw.And(c.Allowed[acl.ActionView])
	// The text of a past query is all there is to it: one that may not be read is not visible at all.
	queries := s.OfKind(catalog.KindQuery)
	hidden := roaring.New()
	hidden.AddRange(uint64(queries.From), uint64(queries.To))
	hidden.AndNot(c.Raw)
	for _, a := range []acl.Action{acl.ActionView, acl.ActionQuery, acl.ActionEdit, acl.ActionApprove} {
		c.Allowed[a].AndNot(hidden)
	}
	c.Raw.RunOptimize()
}
