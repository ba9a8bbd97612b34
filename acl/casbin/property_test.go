package casbin_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
)

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func engine(t fataler, s *catalog.Snapshot, text string) (*casbin.Engine, *acl.Policy) {
	t.Helper()
	p, err := acl.ParsePolicy("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	e, err := casbin.New(p, s)
	if err != nil {
		t.Fatal(err)
	}
	e.Now = func() time.Time { return now }
	return e, p
}

// now is the time that policies are tried at.
var now = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// oracle decides from Casbin's answers about single objects and from patterns, one object at a time.
type oracle struct {
	t         fataler
	s         *catalog.Snapshot
	policy    *acl.Policy
	principal string
	rules     *casbin.Engine
	denies    *casbin.Engine // the same rules, and each role is allowed everything: what it denies, a rule denies
	roles     []string
}

func (o *oracle) enforce(e *casbin.Engine, a acl.Action, r catalog.Ref) bool {
	eff, err := e.Enforce(o.principal, a, r)
	if err != nil {
		o.t.Fatal(err)
	}
	return eff == acl.Allow
}

func (o *oracle) may(a acl.Action, x *catalog.Object) bool {
	switch {
	case a == acl.ActionAudit || a == acl.ActionAdminister || a == acl.ActionImpersonate:
		return o.enforce(o.rules, a, x.Ref)
	case a == acl.ActionEdit || a == acl.ActionApprove:
		return o.enforce(o.rules, a, x.Ref) && o.may(acl.ActionView, x)
	case a == acl.ActionQuery && !o.may(acl.ActionView, x):
		return false
	case x.Column != nil:
		return o.enforce(o.rules, a, x.Ref)
	case x.Table != nil:
		columns := o.s.Columns(x.ID)
		return slices.ContainsFunc(columns, func(c catalog.Object) bool { return o.may(a, &c) })
	}
	if x.Query != nil && !o.raw(x) {
		return false
	}
	for _, n := range x.Names() {
		if named, _ := o.s.Lookup(n); !o.may(a, named) {
			return false
		}
	}
	return o.enforce(o.denies, a, x.Ref)
}

// raw ignores visibility, which the caller checks.
func (o *oracle) raw(x *catalog.Object) bool {
	switch {
	case x.Column != nil:
		table, _ := o.s.Lookup(x.Ref.TableRef())
		_, masked := o.mask(x)
		return o.filter(table) == nil && !masked
	case x.Table != nil:
		for _, c := range o.s.Columns(x.ID) {
			if _, masked := o.mask(&c); masked {
				return false
			}
		}
		return o.filter(x) == nil
	case x.Query != nil:
		for _, n := range x.Names() {
			if table, _ := o.s.Lookup(n.TableRef()); !o.raw(table) {
				return false
			}
		}
	}
	return true
}

func (o *oracle) covers(p acl.Pattern, x *catalog.Object) bool {
	if p.ByAttribute() {
		table, _ := o.s.Lookup(x.Ref.TableRef())
		return says(p.String(), x) || x.Column != nil && says(p.String(), table) && !strings.HasPrefix(p.String(), "kind:")
	}
	return p.Covers(dialects[x.Ref.Database], x.Ref)
}

// says reports whether an object says of itself what a pattern asks for.
func says(pattern string, x *catalog.Object) bool {
	by, want, _ := strings.Cut(pattern, ":")
	have := map[string][]string{"tag": x.Tags, "owner": {x.Owner}, "domain": {x.Domain}, "kind": {x.Ref.Kind.String()}}[by]
	return slices.ContainsFunc(have, func(h string) bool {
		start, starred := strings.CutSuffix(want, "*")
		return h == want || starred && h != "" && strings.HasPrefix(h, start)
	})
}

func (o *oracle) has(roles []string) bool {
	return slices.ContainsFunc(roles, func(r string) bool { return slices.Contains(o.roles, r) })
}

func (o *oracle) filter(table *catalog.Object) *acl.RowFilter {
	var out *acl.RowFilter
	for _, f := range o.policy.RowFilters {
		if !o.covers(f.Table, table) {
			continue
		}
		if out == nil {
			out = &acl.RowFilter{}
		}
		if o.has(f.Roles) && f.Restrictive {
			out.Restrictive = append(out.Restrictive, f.Predicate)
		} else if o.has(f.Roles) {
			out.Permissive = append(out.Permissive, f.Predicate)
		}
	}
	return out
}

func (o *oracle) mask(column *catalog.Object) (acl.Mask, bool) {
	var all []acl.Mask
	for _, m := range o.policy.Masks {
		if o.covers(m.Column, column) && o.has(m.Roles) {
			all = append(all, m.Mask)
		}
	}
	if len(all) == 0 {
		return acl.Mask{}, false
	}
	return acl.Strongest(all), true
}

func TestBitmapsEqualWhatCasbinSaysOfEachObject(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawCatalog(t)
		for range 10 { // so that the default of 100 checks makes 1,000 policies
			text := drawPolicy(t, s)
			e, p := engine(t, s, text)
			wide := "grants:\n"
			for _, r := range []string{"r0", "r1", "r2", "p1", "last"} {
				wide += fmt.Sprintf("  - {role: %s, allow: [\"*\"], actions: [view, query]}\n", r)
			}
			denies, _ := engine(t, s, strings.Replace(text, "grants:\n", wide, 1))
			for _, name := range principals {
				v, err := e.View(name)
				if err != nil {
					t.Fatal(err)
				}
				o := &oracle{t: t, s: s, policy: p, principal: name, rules: e, denies: denies, roles: v.Roles()}
				if who, _ := p.Principal(name); !slices.Equal(v.Roles(), p.Roles(who)) {
					t.Fatalf("Casbin finds the roles %q for %s, the policy %q", v.Roles(), name, p.Roles(who))
				}
				for i := range s.All() {
					x := s.Object(uint32(i))
					for _, a := range acl.Actions {
						if got, want := v.May(a, x.ID), o.may(a, x); got != want {
							t.Fatalf("%s may %s %s: %v, want %v\n%s", name, a, x.Ref, got, want, text)
						}
						checkReasons(t, p.Explain(v, a, x.ID, now), x, v.May(a, x.ID), text)
					}
					if got, want := v.Raw(x.ID), v.Visible(x.ID) && o.raw(x); got != want {
						t.Fatalf("%s sees %s raw: %v, want %v\n%s", name, x.Ref, got, want, text)
					}
					if x.Table != nil {
						got, protected := v.Filter(x.ID)
						if want := o.filter(x); protected != (want != nil) || want != nil && fmt.Sprint(got) != fmt.Sprint(*want) {
							t.Fatalf("%s has the filter %v on %s, want %v\n%s", name, got, x.Ref, want, text)
						}
					}
					if x.Column != nil {
						got, masked := v.Mask(x.ID)
						if want, wanted := o.mask(x); masked != wanted || got != want {
							t.Fatalf("%s has the mask %v on %s, want %v\n%s", name, got, x.Ref, want, text)
						}
					}
				}
			}
		}
	})
}

// checkReasons holds an explanation against what is decided: it says the same, a deny that spoke decides, and where nothing
// is denied somebody allowed it.
func checkReasons(t *rapid.T, d acl.Decision, x *catalog.Object, allowed bool, policy string) {
	deciding := map[acl.Says]int{}
	denied := false
	for _, r := range d.Rules {
		denied = denied || r.Says == acl.SaysDeny
		if r.Decides {
			deciding[r.Says]++
		}
	}
	wrong := (d.Effect == acl.Allow) != allowed || d.Because == ""
	if x.Column != nil {
		wrong = wrong || allowed && (deciding[acl.SaysAllow] == 0 || denied) || denied && deciding[acl.SaysDeny] != 1
	}
	if x.Table != nil {
		wrong = wrong || allowed && deciding[acl.SaysAllow] == 0
	}
	if wrong {
		t.Fatalf("%s may %s %s: %v, explained as %+v\n%s", d.Principal, d.Action, d.Ref, allowed, d, policy)
	}
}

func TestAServiceAccountSeesNoMoreThanEitherOfTheTwo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawCatalog(t)
		e, _ := engine(t, s, drawPolicy(t, s))
		for _, service := range principals {
			for _, person := range principals {
				a, err := e.View(service)
				if err != nil {
					t.Fatal(err)
				}
				b, err := e.View(person)
				if err != nil {
					t.Fatal(err)
				}
				both := acl.OnBehalfOf(a, b)
				if service == person && both.What() == nil && a.What() != nil {
					t.Fatalf("%s acting for themselves sees nothing", service)
				}
				for i := range s.All() {
					x := s.Object(uint32(i))
					if both.Raw(x.ID) && !(a.Raw(x.ID) && b.Raw(x.ID)) {
						t.Fatalf("%s for %s sees %s raw", service, person, x.Ref)
					}
					for _, act := range acl.Actions {
						got, most := both.May(act, x.ID), a.May(act, x.ID) && b.May(act, x.ID)
						if got && !most || x.Column != nil && (act == acl.ActionView || act == acl.ActionQuery) && got != most {
							t.Fatalf("%s for %s may %s %s: %v, the two may %v", service, person, act, x.Ref, got, most)
						}
					}
					if x.Table != nil && both.Visible(x.ID) != slices.ContainsFunc(s.Columns(x.ID), func(c catalog.Object) bool { return both.Visible(c.ID) }) {
						t.Fatalf("%s for %s sees %s: %v, and its columns otherwise", service, person, x.Ref, both.Visible(x.ID))
					}
					_, fa := a.Filter(x.ID)
					_, fb := b.Filter(x.ID)
					if _, f := both.Filter(x.ID); f != (fa || fb) {
						t.Fatalf("%s for %s is filtered on %s: %v", service, person, x.Ref, f)
					}
					_, ma := a.Mask(x.ID)
					_, mb := b.Mask(x.ID)
					if _, m := both.Mask(x.ID); m != (ma || mb) {
						t.Fatalf("%s for %s has a mask on %s: %v", service, person, x.Ref, m)
					}
				}
			}
		}
	})
}

func TestAViewEqualsTheCatalogThatItStandsFor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawCatalog(t)
		for range 5 {
			text := drawPolicy(t, s)
			e, _ := engine(t, s, text)
			for _, name := range principals {
				v, err := e.View(name)
				if err != nil {
					t.Fatal(err)
				}
				restricted, err := v.Restricted()
				if err != nil {
					t.Fatal(err)
				}
				whole := acl.Everything(restricted)
				must := func(x any) string {
					data, err := json.Marshal(x)
					if err != nil {
						t.Fatal(err)
					}
					return string(data)
				}
				shown := must(restricted.Databases())
				for _, o := range restricted.All() {
					shown += must(o)
				}
				visible := 0
				gone := map[string]catalog.Ref{}
				for i := range s.All() {
					x := s.Object(uint32(i))
					o, ok := v.Object(x.ID)
					id, left := restricted.ID(x.Ref)
					if ok != left {
						t.Fatalf("%s sees %s: %v; the catalog holds it: %v\n%s", name, x.Ref, ok, left, text)
					}
					path := x.Ref.Path()
					if !ok {
						if last := path[len(path)-1]; !strings.Contains(last, "->") { // a derived name is made of others
							gone[last] = x.Ref
						}
						continue
					}
					visible++
					alone, ok := whole.Object(id)
					if !ok || must(o) != must(alone) {
						t.Fatalf("%s reads %s as\n%s\nwhich alone reads\n%s\n%s", name, x.Ref, must(o), must(alone), text)
					}
					if x.Column != nil && !v.Raw(x.ID) {
						gone[x.Column.Samples[0]], gone[x.Column.Dictionary[0]] = x.Ref, x.Ref
					}
				}
				if visible != restricted.Len() {
					t.Fatalf("%s sees %d objects of %d", name, visible, restricted.Len())
				}
				for database := range dialects {
					if !slices.ContainsFunc(restricted.All(), func(o catalog.Object) bool { return o.Ref.Database == database }) {
						gone[database] = catalog.Ref{}
					}
				}
				for text, r := range gone {
					if strings.Contains(shown, text) {
						t.Fatalf("%s may not see %q (of %s), which stands in %s", name, text, r, shown)
					}
				}
			}
		}
	})
}
