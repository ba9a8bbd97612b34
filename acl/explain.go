package acl

import (
	"fmt"
	"slices"
	"time"

	"github.com/schemagate/schemagate/catalog"
)

// Decision is what a policy says of one principal, action and object, with every rule that spoke. It is for whoever keeps the
// policy or audits it: rules name what the principal may not know of.
type Decision struct {
	Principal string `json:"principal"`
	Action    Action `json:"action"`
	Ref       string `json:"ref"`
	Effect    Effect `json:"effect"`
	// Because is one sentence.
	Because string `json:"because"`
	// Rules are those that spoke, in the order of the policy. None decided if the effect is the default, deny.
	Rules []SpokenRule `json:"rules"`
}

// SpokenRule is a rule of a policy in a decision.
type SpokenRule struct {
	Rule   string `json:"rule"` // its place
	Role   string `json:"role,omitempty"`
	Action Action `json:"action,omitempty"` // view or query, where a decision needs both
	Says   Says   `json:"says"`
	// Pattern is what the rule is about, as the policy writes it. On is what it covers, if that is not the object itself
	// but a thing that the object consists of.
	Pattern string `json:"pattern"`
	On      string `json:"on,omitempty"`
	Decides bool   `json:"decides,omitempty"`
}

// Says is what a rule makes of an object.
type Says string

// What rules say: a grant allows or denies, a filter limits the rows of a table, a mask replaces the values of a column.
const (
	SaysAllow  Says = "allow"
	SaysDeny   Says = "deny"
	SaysFilter Says = "filter"
	SaysMask   Says = "mask"
)

// Explain says what the policy decides and why. v must be a view under it, made at that time; the effect is the view's.
func (p *Policy) Explain(v View, a Action, id uint32, at time.Time) Decision {
	o := v.Snapshot().Object(id)
	x := explanation{policy: p, view: v, at: at, coverage: NewCoverage(v.Snapshot())}
	d := Decision{Principal: v.Principal().Name, Action: a, Ref: o.Ref.String(), Rules: []SpokenRule{}}
	if x.may(a, id) {
		d.Effect = Allow
	}
	actions := []Action{a}
	if a != ActionView && a != ActionAudit && a != ActionAdminister && a != ActionImpersonate {
		actions = []Action{ActionView, a} // nobody does anything to what they may not know of
	}
	for _, act := range actions {
		because, rules := x.object(act, o)
		if len(actions) == 1 {
			for i := range rules {
				rules[i].Action = ""
			}
		}
		d.Because, d.Rules = because, append(d.Rules, rules...)
		if !x.may(act, id) {
			break // the first that is not allowed is the reason
		}
	}
	if d.Effect == Allow {
		d.Rules = append(d.Rules, x.protections(o)...)
	}
	return d
}

// explanation retraces how a view came about.
type explanation struct {
	policy   *Policy
	view     View
	at       time.Time
	coverage *Coverage
}

func (x *explanation) may(a Action, id uint32) bool {
	if a == ActionQuery {
		return x.view.Queryable(id)
	}
	return x.view.May(a, id)
}

// object explains one action on one object.
func (x *explanation) object(a Action, o *catalog.Object) (because string, rules []SpokenRule) {
	s := x.view.Snapshot()
	derived := a == ActionView || a == ActionQuery // these follow from what an object consists of
	switch {
	case o.Table != nil && derived:
		columns := s.Columns(o.ID)
		allowed := 0
		for i := range columns {
			_, of := x.grants(a, columns[i].Ref, true)
			rules = merge(rules, of)
			if x.may(a, columns[i].ID) {
				allowed++
			}
		}
		return fmt.Sprintf("%d of its %d columns are allowed to %s, and a table is as soon as one is", allowed, len(columns), a), rules
	case o.Column == nil && o.Table == nil && derived:
		because, rules = x.grants(a, o.Ref, false)
		if slices.ContainsFunc(rules, func(r SpokenRule) bool { return r.Says == SaysDeny }) {
			return because, rules
		}
		rules = nil
		for _, name := range o.Names() {
			id, _ := s.ID(name)
			why, of := x.object(a, s.Object(id))
			for i := range of {
				if of[i].On == "" {
					of[i].On = name.String()
				}
			}
			if !x.may(a, id) {
				return fmt.Sprintf("it names %s: %s", name, why), of
			}
			rules = merge(rules, of)
		}
		if o.Query != nil && !x.view.Raw(o.ID) {
			return "it is the text of a past query over rows or values that a row filter or mask withholds", rules
		}
		return "all that it names is allowed", rules
	}
	return x.grants(a, o.Ref, false)
}

// grants lists the grants that cover one object by itself. The first deny decides, else the first allow.
func (x *explanation) grants(a Action, r catalog.Ref, part bool) (because string, rules []SpokenRule) {
	id, _ := x.view.Snapshot().ID(r)
	for _, g := range x.policy.Grants {
		if !slices.Contains(g.Actions, a) || !slices.Contains(x.view.Roles(), g.Role) ||
			g.Tenant != "" && g.Tenant != x.view.Tenant() || !g.Window.Holds(x.at) {
			continue
		}
		for _, side := range [...]struct {
			says     Says
			patterns []Pattern
		}{{SaysAllow, g.Allow}, {SaysDeny, g.Deny}} {
			for _, p := range side.patterns {
				if x.coverage.Covers(p, id) {
					spoken := SpokenRule{Rule: g.Rule, Role: g.Role, Action: a, Says: side.says, Pattern: p.String()}
					if part && (p.ByAttribute() || len(p.segments) > len(r.TableRef().Path())) {
						spoken.On = r.String()
					}
					rules = append(rules, spoken)
				}
			}
		}
	}
	at := slices.IndexFunc(rules, func(r SpokenRule) bool { return r.Says == SaysDeny })
	switch {
	case at >= 0:
		because = fmt.Sprintf("%s denies %s on %s", rules[at].Rule, a, rules[at].Pattern)
	case len(rules) > 0:
		at = 0
		because = fmt.Sprintf("%s allows %s on %s", rules[0].Rule, a, rules[0].Pattern)
	default:
		return fmt.Sprintf("no grant allows %s", a), nil
	}
	rules[at].Decides = true
	return because, rules
}

// merge adds rules that are not there yet. Of one rule that decided for several columns it keeps that it did.
func merge(rules, more []SpokenRule) []SpokenRule {
	for _, r := range more {
		at := slices.IndexFunc(rules, func(have SpokenRule) bool {
			have.Decides = r.Decides
			return have == r
		})
		if at < 0 {
			rules = append(rules, r)
		} else if r.Decides {
			rules[at].Decides = true
		}
	}
	return rules
}

// protections lists the filters and masks in force on an object and, for a table, on its columns.
func (x *explanation) protections(o *catalog.Object) []SpokenRule {
	s, v := x.view.Snapshot(), x.view
	var rules []SpokenRule
	table := o.ID
	if o.Column != nil {
		table = s.TableOf(o.ID)
	}
	if o.Table == nil && o.Column == nil {
		return nil
	}
	if f, protected := v.Filter(table); protected {
		for _, r := range x.policy.RowFilters {
			if x.coverage.Covers(r.Table, table) {
				mine := slices.Contains(f.Permissive, r.Predicate) || slices.Contains(f.Restrictive, r.Predicate)
				rules = append(rules, SpokenRule{Rule: r.Rule, Says: SaysFilter, Pattern: r.Table.String(), Decides: mine})
			}
		}
	}
	columns := s.Columns(table)
	for i := range columns {
		c := &columns[i]
		m, masked := v.Mask(c.ID)
		if !masked || o.Column != nil && c.ID != o.ID || !v.Visible(c.ID) {
			continue
		}
		for _, r := range x.policy.Masks {
			if !x.coverage.Covers(r.Column, c.ID) || !slices.ContainsFunc(r.Roles, func(role string) bool { return slices.Contains(v.Roles(), role) }) {
				continue
			}
			spoken := SpokenRule{Rule: r.Rule, Says: SaysMask, Pattern: r.Column.String(), Decides: r.Rule == m.Rule}
			if o.Table != nil {
				spoken.On = c.Ref.String()
			}
			rules = append(rules, spoken)
		}
	}
	return rules
}
