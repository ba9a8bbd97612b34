// Package casbin decides with Casbin. A policy is loaded into a Casbin model whose Enforce answers for one object at a
// time; since that costs up to milliseconds and grows with the number of rules, a role set is compiled once into bitmaps
// over a snapshot, and the bitmaps answer at run time. Enforce stays the oracle that the bitmaps are tested against.
package casbin

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"
	defaultrolemanager "github.com/casbin/casbin/v2/rbac/default-role-manager"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// The model denies unless a rule allows, and a deny wins. Tenants are Casbin's domains. Subjects are "user:NAME" and "role:NAME", so that nobody
// gains a role by being named like it.
const modelText = `
[request_definition]
r = sub, ten, obj, act

[policy_definition]
p = sub, ten, obj, act, win, eft

[role_definition]
g = _, _, _

[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))

[matchers]
m = g(r.sub, p.sub, r.ten) && (p.ten == "*" || p.ten == r.ten) && r.act == p.act && during(p.win) && covers(p.obj, r.obj)
`

// Engine answers for one policy on one snapshot. Neither changes under it: a new policy takes a new Engine, so that no
// answer outlives the rules it came from. It is safe for concurrent use.
type Engine struct {
	policy   *acl.Policy
	snapshot *catalog.Snapshot
	enforcer *casbin.Enforcer
	coverage *acl.Coverage
	patterns map[string]acl.Pattern  // by the text that Casbin knows them by
	windows  map[string]acl.Window   // likewise
	bounds   []time.Time             // at which some grant begins or ends, in order
	roles    map[string][]string     // by principal, inherited ones included, as Casbin resolves them
	rules    map[string][]*roleRules // by role
	filters  []protection[acl.RowFilterRule]
	masks    []protection[acl.MaskRule]
	named    [][]uint32 // what each metric, relationship and past query names, in id order

	// Now is the clock that grants for a time are held against; it may be set before the first question.
	Now func() time.Time

	mu sync.Mutex
	// By role set and tenant, for the span between two bounds that epoch counts. There are never more than the policy has principals, since View refuses everybody else.
	compiled map[string]func() *acl.Compiled
	epoch    int
}

// roleRules holds the objects that the rules of one role, tenant and window allow and deny, by action.
type roleRules struct {
	tenant      string // empty for all
	window      acl.Window
	allow, deny map[acl.Action]*roaring.Bitmap
}

// protection is a rule about rows or values with the objects that it concerns.
type protection[R any] struct {
	rule    R
	objects *roaring.Bitmap
}

// New loads a policy.
func New(policy *acl.Policy, snapshot *catalog.Snapshot) (*Engine, error) {
	m, err := model.NewModelFromString(modelText)
	if err != nil {
		return nil, fmt.Errorf("casbin: model: %w", err)
	}
	enforcer, err := casbin.NewEnforcer(m)
	if err != nil {
		return nil, fmt.Errorf("casbin: %w", err)
	}
	e := &Engine{
		policy: policy, snapshot: snapshot, enforcer: enforcer, coverage: acl.NewCoverage(snapshot),
		patterns: map[string]acl.Pattern{}, windows: map[string]acl.Window{}, roles: map[string][]string{}, rules: map[string][]*roleRules{},
		compiled: map[string]func() *acl.Compiled{}, Now: time.Now,
	}
	// Casbin's own role manager gives up silently at ten levels; a chain is never longer than there are roles.
	enforcer.SetRoleManager(defaultrolemanager.NewRoleManager(len(policy.Inherits()) + 2))
	enforcer.AddFunction("covers", e.covers)
	enforcer.AddFunction("during", e.during)
	if err := e.load(); err != nil {
		return nil, err
	}
	return e, e.index()
}

// Casbin joins the fields of a rule with commas to tell rules apart, and drops the second of two that look the same.
func user(name string) string { return "user:" + url.QueryEscape(name) }
func role(name string) string { return "role:" + url.QueryEscape(name) }

// tenant is never the star of rules for all tenants. The tenant of those who have none is the empty one.
func tenant(name string) string { return "tenant:" + url.QueryEscape(name) }

// load hands the policy's rules to Casbin and asks it for the roles of each principal.
func (e *Engine) load() error {
	var links, rules [][]string
	tenants := map[string]bool{}
	for _, name := range e.policy.Principals() {
		who, err := e.policy.Principal(name)
		if err != nil {
			return err
		}
		tenants[who.Tenant] = true
		for _, r := range who.Roles {
			links = append(links, []string{user(name), role(r), tenant(who.Tenant)})
		}
	}
	for r, parents := range e.policy.Inherits() {
		for _, p := range parents {
			for t := range tenants {
				links = append(links, []string{role(r), role(p), tenant(t)})
			}
		}
	}
	rule := func(g acl.Grant, p acl.Pattern, a acl.Action, eft string) {
		text := url.QueryEscape(p.String())
		e.patterns[text] = p
		in := "*"
		if g.Tenant != "" {
			in = tenant(g.Tenant)
		}
		window := g.Window.From.Format(time.RFC3339Nano) + " to " + g.Window.Until.Format(time.RFC3339Nano)
		e.windows[window] = g.Window
		rules = append(rules, []string{role(g.Role), in, text, string(a), window, eft})
	}
	for _, g := range e.policy.Grants {
		for _, a := range g.Actions {
			for _, p := range g.Allow {
				rule(g, p, a, "allow")
			}
			for _, p := range g.Deny {
				rule(g, p, a, "deny")
			}
		}
	}
	if links = unique(links); len(links) > 0 {
		if ok, err := e.enforcer.AddGroupingPolicies(links); err != nil {
			return fmt.Errorf("casbin: links of roles: %w", err)
		} else if !ok {
			return errors.New("casbin: links of roles: Casbin took two different ones for the same")
		}
	}
	if rules = unique(rules); len(rules) > 0 {
		if ok, err := e.enforcer.AddPolicies(rules); err != nil {
			return fmt.Errorf("casbin: rules: %w", err)
		} else if !ok {
			return errors.New("casbin: rules: Casbin took two different ones for the same")
		}
	}
	return e.resolveRoles()
}

func (e *Engine) resolveRoles() error {
	for _, name := range e.policy.Principals() {
		who, err := e.policy.Principal(name)
		if err != nil {
			return err
		}
		found, err := e.enforcer.GetImplicitRolesForUser(user(name), tenant(who.Tenant))
		if err != nil {
			return fmt.Errorf("casbin: roles of %s: %w", name, err)
		}
		roles := []string{}
		for _, r := range found {
			r, err := url.QueryUnescape(strings.TrimPrefix(r, "role:"))
			if err != nil {
				return fmt.Errorf("casbin: roles of %s: %w", name, err)
			}
			roles = append(roles, r)
		}
		slices.Sort(roles)
		e.roles[name] = slices.Compact(roles)
	}
	return nil
}

func unique(rows [][]string) [][]string {
	slices.SortFunc(rows, slices.Compare)
	return slices.CompactFunc(rows, slices.Equal)
}

// index finds what every rule covers.
func (e *Engine) index() error {
	for _, g := range e.policy.Grants {
		at := slices.IndexFunc(e.rules[g.Role], func(r *roleRules) bool { return r.tenant == g.Tenant && r.window == g.Window })
		if at < 0 {
			r := &roleRules{tenant: g.Tenant, window: g.Window, allow: map[acl.Action]*roaring.Bitmap{}, deny: map[acl.Action]*roaring.Bitmap{}}
			for _, a := range acl.Actions {
				r.allow[a], r.deny[a] = roaring.New(), roaring.New()
			}
			at = len(e.rules[g.Role])
			e.rules[g.Role] = append(e.rules[g.Role], r)
			for _, bound := range [...]time.Time{g.Window.From, g.Window.Until} {
				if !bound.IsZero() {
					e.bounds = append(e.bounds, bound)
				}
			}
		}
		r := e.rules[g.Role][at]
		allow, deny := e.coverage.Of(g.Allow...), e.coverage.Of(g.Deny...)
		for _, a := range g.Actions {
			r.allow[a].Or(allow)
			r.deny[a].Or(deny)
		}
	}
	slices.SortFunc(e.bounds, time.Time.Compare)
	for _, rule := range e.policy.RowFilters {
		e.filters = append(e.filters, protection[acl.RowFilterRule]{rule, within(e.coverage.Of(rule.Table), e.snapshot.OfKind(catalog.KindTable))})
	}
	for _, rule := range e.policy.Masks {
		e.masks = append(e.masks, protection[acl.MaskRule]{rule, within(e.coverage.Of(rule.Column), e.snapshot.OfKind(catalog.KindColumn))})
	}
	for _, k := range consisting {
		for i := range e.snapshot.Objects(k) {
			o := &e.snapshot.Objects(k)[i]
			var ids []uint32
			for _, r := range o.Names() {
				id, ok := e.snapshot.ID(r)
				if !ok {
					return fmt.Errorf("casbin: %s names %s, which the catalog does not hold", o.Ref, r)
				}
				ids = append(ids, id)
			}
			e.named = append(e.named, ids)
		}
	}
	return nil
}

// consisting lists the kinds that consist of what they name, in id order.
var consisting = [...]catalog.Kind{catalog.KindMetric, catalog.KindRelationship, catalog.KindQuery}

func within(set *roaring.Bitmap, r catalog.Range) *roaring.Bitmap {
	set.And(interval(r))
	return set
}

func interval(r catalog.Range) *roaring.Bitmap {
	b := roaring.New()
	b.AddRange(uint64(r.From), uint64(r.To))
	return b
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
	if p.ByAttribute() {
		id, ok := e.snapshot.ID(r)
		return ok && e.coverage.Covers(p, id), nil
	}
	d, _ := e.snapshot.Database(r.Database)
	return p.Covers(d.Dialect, r), nil
}

// during is the matcher's function: does a rule's window hold now?
func (e *Engine) during(args ...any) (any, error) {
	text, _ := args[0].(string)
	w, known := e.windows[text]
	if !known {
		return nil, fmt.Errorf("casbin: window %q is not in the policy", text)
	}
	return w.Holds(e.Now()), nil
}

// Enforce asks Casbin whether the rules allow a principal an action on one object, taken by itself: what follows for
// tables from their columns, and for metrics, relationships and past queries from what they name, is View's business.
// A principal that the policy does not know is refused, and leaves no trace in Casbin's memory of past requests.
func (e *Engine) Enforce(principal string, a acl.Action, r catalog.Ref) (acl.Effect, error) {
	who, err := e.policy.Principal(principal)
	if err != nil {
		return acl.Deny, err
	}
	text, err := r.MarshalText()
	if err != nil {
		return acl.Deny, err
	}
	ok, err := e.enforcer.Enforce(user(principal), tenant(who.Tenant), string(text), string(a))
	if err != nil {
		return acl.Deny, fmt.Errorf("casbin: may %s %s %s: %w", principal, a, r, err)
	}
	if !ok {
		return acl.Deny, nil
	}
	return acl.Allow, nil
}

// View returns what a principal may see. A principal that the policy does not know is refused.
func (e *Engine) View(principal string) (acl.View, error) {
	who, err := e.policy.Principal(principal)
	if err != nil {
		return acl.View{}, err
	}
	roles := e.roles[principal]
	key := fmt.Sprintf("%q %q", who.Tenant, roles)
	now := e.Now()
	epoch, _ := slices.BinarySearchFunc(e.bounds, now, func(bound, at time.Time) int {
		if bound.After(at) {
			return 1
		}
		return -1
	})
	e.mu.Lock()
	if e.epoch != epoch {
		e.epoch = epoch
		clear(e.compiled)
	}
	compiled := e.compiled[key]
	if compiled == nil {
		compiled = sync.OnceValue(func() *acl.Compiled { return e.compile(roles, who.Tenant, epoch, now) })
		e.compiled[key] = compiled
	}
	e.mu.Unlock()
	return acl.NewView(who, compiled()), nil
}

// ViewFor returns what a service account sees when it acts for a person: never more than either. It is refused in the same
// words whether the person is unknown or not one that it may act for.
func (e *Engine) ViewFor(service, person string) (acl.View, error) {
	v, err := e.View(service)
	if err != nil {
		return acl.View{}, err
	}
	who, err := e.View(person)
	account := v.Principal()
	may := err == nil && len(who.Principal().ActsFor) == 0 && account.Tenant == who.Principal().Tenant &&
		slices.ContainsFunc(account.ActsFor, func(r string) bool { return r == "*" || slices.Contains(who.Roles(), r) })
	if !may {
		detail := fmt.Sprintf("%s may act for people with one of the roles %q, and %s has %q", service, account.ActsFor, person, who.Roles())
		if err != nil {
			detail = err.Error()
			if no := new(acl.Refusal); errors.As(err, &no) {
				detail = no.Detail
			}
		}
		return acl.View{}, &acl.Refusal{
			Code:   acl.CodeMayNotAct,
			Public: fmt.Sprintf("you may not act for %s", person),
			Hint:   "ask whoever keeps the policy to let your account act for people of their roles",
			Detail: detail,
		}
	}
	return acl.OnBehalfOf(v, who), nil
}

// compile makes what the roles mean in a tenant, from now to the bound after it.
func (e *Engine) compile(roles []string, tenant string, epoch int, now time.Time) *acl.Compiled {
	c := &acl.Compiled{
		Roles: roles, Tenant: tenant, Policy: e.policy.Version(), Snapshot: e.snapshot,
		Allowed: map[acl.Action]*roaring.Bitmap{}, Filters: map[uint32]acl.RowFilter{}, Masks: map[uint32]acl.Mask{},
	}
	if epoch < len(e.bounds) {
		c.Until = e.bounds[epoch]
	}
	denied := map[acl.Action]*roaring.Bitmap{}
	for _, a := range acl.Actions {
		allow, deny := roaring.New(), roaring.New()
		for _, name := range roles {
			for _, r := range e.rules[name] {
				if (r.tenant == "" || r.tenant == tenant) && r.window.Holds(now) {
					allow.Or(r.allow[a])
					deny.Or(r.deny[a])
				}
			}
		}
		allow.AndNot(deny)
		c.Allowed[a], denied[a] = allow, deny
	}
	view, query := c.Allowed[acl.ActionView], c.Allowed[acl.ActionQuery]
	e.derive(view, denied[acl.ActionView])
	query.And(view)
	e.derive(query, denied[acl.ActionQuery])
	e.protect(c)
	c.Raw = e.raw(c)
	// The text of a past query is all there is to it: one that may not be read is not visible at all.
	unread := interval(e.snapshot.OfKind(catalog.KindQuery))
	unread.AndNot(c.Raw)
	view.AndNot(unread)
	c.Raw.And(view)
	for _, a := range acl.Actions {
		// Nobody does anything to what they may not know of, save those who look after everything.
		if a != acl.ActionAudit && a != acl.ActionAdminister && a != acl.ActionImpersonate {
			c.Allowed[a].And(view)
		}
		c.Allowed[a].RunOptimize()
	}
	c.Raw.RunOptimize()
	return c
}

// derive makes tables, metrics, relationships and past queries follow from the columns in set: a table is in it if one
// of its columns is, the others if everything they name is and no rule denies them by name.
func (e *Engine) derive(set, denied *roaring.Bitmap) {
	tables := e.snapshot.OfKind(catalog.KindTable)
	for id := tables.From; id < tables.To; id++ {
		r := e.snapshot.ColumnIDs(id)
		if set.IntersectsWithInterval(uint64(r.From), uint64(r.To)) {
			set.Add(id)
		} else {
			set.Remove(id)
		}
	}
	first := e.snapshot.OfKind(consisting[0]).From
	for i, names := range e.named {
		id := first + uint32(i)
		if denied.Contains(id) || slices.ContainsFunc(names, func(n uint32) bool { return !set.Contains(n) }) {
			set.Remove(id)
		} else {
			set.Add(id)
		}
	}
}

// protect collects row filters and masks. A table that any filter names is protected for every role set.
func (e *Engine) protect(c *acl.Compiled) {
	has := func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(c.Roles, n) })
	}
	for _, p := range e.filters {
		applies := has(p.rule.Roles)
		for ids := p.objects.Iterator(); ids.HasNext(); {
			id := ids.Next()
			f := c.Filters[id]
			switch {
			case !applies:
			case p.rule.Restrictive:
				f.Restrictive = append(f.Restrictive, p.rule.Predicate)
			default:
				f.Permissive = append(f.Permissive, p.rule.Predicate)
			}
			c.Filters[id] = f
		}
	}
	maps.DeleteFunc(c.Filters, func(_ uint32, f acl.RowFilter) bool { return f.Everything() })
	masks := map[uint32][]acl.Mask{}
	for _, p := range e.masks {
		if has(p.rule.Roles) {
			for ids := p.objects.Iterator(); ids.HasNext(); {
				id := ids.Next()
				masks[id] = append(masks[id], p.rule.Mask)
			}
		}
	}
	for id, list := range masks {
		c.Masks[id] = acl.Strongest(list)
	}
}

// raw returns what shows no more rows or values than the roles may see: a table or a past query if no row of the tables
// concerned is filtered and no column masked, a column if its table is unfiltered and it is not masked itself. Metrics
// and relationships hold nothing from rows.
func (e *Engine) raw(c *acl.Compiled) *roaring.Bitmap {
	s := e.snapshot
	raw := roaring.New()
	raw.AddRange(0, uint64(s.Len()))
	for table := range c.Filters {
		columns := s.ColumnIDs(table)
		raw.Remove(table)
		raw.RemoveRange(uint64(columns.From), uint64(columns.To))
	}
	for column := range c.Masks {
		raw.Remove(column)
		raw.Remove(s.TableOf(column))
	}
	queries := s.OfKind(catalog.KindQuery)
	for id := queries.From; id < queries.To; id++ {
		names := e.named[id-s.OfKind(consisting[0]).From]
		if slices.ContainsFunc(names, func(n uint32) bool { return !raw.Contains(e.tableOf(n)) }) {
			raw.Remove(id)
		}
	}
	return raw
}

// tableOf returns the table of a column, and a table itself.
func (e *Engine) tableOf(id uint32) uint32 {
	if id >= e.snapshot.OfKind(catalog.KindColumn).From {
		return e.snapshot.TableOf(id)
	}
	return id
}
