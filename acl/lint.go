package acl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/schemagate/schemagate/catalog"
)

// Finding is something about a policy that whoever keeps it should look at.
type Finding struct {
	Rule    string `json:"rule"` // its place, or what the finding is about
	Message string `json:"message"`
}

// Unmatched lists the denies, row filters and masks that cover nothing in the snapshot: somebody relies on them, and they
// protect nothing, after a rename for instance.
func (p *Policy) Unmatched(s *catalog.Snapshot) []Finding {
	coverage := NewCoverage(s)
	covers := func(p Pattern, kinds ...catalog.Kind) bool {
		objects := coverage.Of(p)
		return slices.ContainsFunc(kinds, func(k catalog.Kind) bool {
			r := s.OfKind(k)
			return objects.IntersectsWithInterval(uint64(r.From), uint64(r.To))
		})
	}
	var out []Finding
	for _, g := range p.Grants {
		for _, d := range g.Deny {
			if !covers(d, catalog.Kinds[:]...) {
				out = append(out, Finding{g.Rule, fmt.Sprintf("deny %s covers nothing", d)})
			}
		}
	}
	for _, f := range p.RowFilters {
		if !covers(f.Table, catalog.KindTable) {
			out = append(out, Finding{f.Rule, "covers no table"})
		}
	}
	for _, m := range p.Masks {
		if !covers(m.Column, catalog.KindColumn) {
			out = append(out, Finding{m.Rule, "covers no column"})
		}
	}
	return out
}

// Lint lists what is likely a mistake, or a way round the policy: grants that give nothing, roles that nobody has,
// principals who see nothing, masks that break a declared join, conditions that name what their readers may not see,
// visible text that names hidden things, and tables that nobody owns. views are those of all principals, in any order.
func (p *Policy) Lint(s *catalog.Snapshot, views []View) []Finding {
	l := linter{policy: p, s: s, views: views, coverage: NewCoverage(s)}
	l.grants()
	l.roles()
	l.joins()
	l.conditions()
	l.texts()
	l.owners()
	return append(p.Unmatched(s), l.found...)
}

type linter struct {
	policy   *Policy
	s        *catalog.Snapshot
	views    []View
	coverage *Coverage
	found    []Finding
}

func (l *linter) add(rule, message string, args ...any) {
	f := Finding{rule, fmt.Sprintf(message, args...)}
	if !slices.Contains(l.found, f) {
		l.found = append(l.found, f)
	}
}

// grants finds allows that cover nothing, and those that the role's own denies take back.
func (l *linter) grants() {
	for _, g := range l.policy.Grants {
		for _, allow := range g.Allow {
			covered := l.coverage.Of(allow)
			if covered.IsEmpty() {
				l.add(g.Rule, "allow %s covers nothing", allow)
				continue
			}
			for _, a := range g.Actions {
				left := covered.Clone()
				for _, other := range l.policy.Grants {
					if other.Role == g.Role && slices.Contains(other.Actions, a) {
						left.AndNot(l.coverage.Of(other.Deny...))
					}
				}
				if left.IsEmpty() {
					l.add(g.Rule, "allow %s gives no %s: the role's own denies take back all of it", allow, a)
				}
			}
		}
	}
}

// roles finds those that nobody has, and principals who see nothing.
func (l *linter) roles() {
	held := map[string]bool{}
	for _, v := range l.views {
		for _, r := range v.Roles() {
			held[r] = true
		}
		if v.MaySomething() {
			continue
		}
		l.add("principal "+v.Principal().Name, "sees nothing in this catalog")
	}
	known := map[string]bool{}
	for r := range l.policy.inherits {
		known[r] = true
	}
	for _, g := range l.policy.Grants {
		known[g.Role] = true
	}
	for _, r := range sortedKeys(known) {
		if !held[r] {
			l.add("role "+r, "nobody has it")
		}
	}
}

// joins finds declared joins whose two sides read differently under a mask. Two hashes of equal values are equal.
func (l *linter) joins() {
	for i := range l.s.Objects(catalog.KindRelationship) {
		o := &l.s.Objects(catalog.KindRelationship)[i]
		for _, v := range l.views {
			if !v.Queryable(o.ID) {
				continue
			}
			for j := range o.Relationship.From {
				from, _ := l.s.ID(o.Relationship.From[j])
				to, _ := l.s.ID(o.Relationship.To[j])
				a, masked := v.Mask(from)
				b, other := v.Mask(to)
				if masked == other && (!masked || a.Kind == MaskHash && b.Kind == MaskHash) {
					continue
				}
				l.add(cmp.Or(a.Rule, b.Rule), "breaks the join %s = %s (%s)", o.Relationship.From[j], o.Relationship.To[j], o.Ref)
			}
		}
	}
}

// conditions finds filters and mask expressions whose text, which stands in governed SQL, names columns that are hidden
// from those whom it governs.
func (l *linter) conditions() {
	for _, v := range l.views {
		for _, o := range l.s.Objects(catalog.KindTable) {
			if !v.Queryable(o.ID) {
				continue
			}
			f, _ := v.Filter(o.ID)
			for _, p := range slices.Concat(f.Permissive, f.Restrictive) {
				l.condition(v, o.ID, p.Using, p.Rule)
			}
			r := l.s.ColumnIDs(o.ID)
			for c := r.From; c < r.To; c++ {
				if m, masked := v.Mask(c); masked && m.Kind == MaskExpression && v.Queryable(c) {
					l.condition(v, o.ID, m.Expression, m.Rule)
				}
			}
		}
	}
}

func (l *linter) condition(v View, table uint32, sql, rule string) {
	said := namesIn(sql)
	for _, c := range l.s.Columns(table) {
		if said[strings.ToLower(c.Ref.Column)] && !v.Queryable(c.ID) {
			l.add(rule, "its SQL names %s, which %s may not query, and governed SQL shows it to them", c.Ref, roleNames(v))
		}
	}
}

func roleNames(v View) string {
	if len(v.Roles()) == 1 {
		return "the role " + v.Roles()[0]
	}
	return "the roles " + strings.Join(v.Roles(), ", ")
}

// texts finds descriptions and synonyms of visible objects that name hidden tables and columns. Only names that are no
// everyday word count: those with a digit or an underscore between letters.
func (l *linter) texts() {
	telling := map[string][]uint32{}
	for _, k := range [...]catalog.Kind{catalog.KindTable, catalog.KindColumn} {
		for _, o := range l.s.Objects(k) {
			name := o.Ref.Table
			if o.Column != nil {
				name = o.Ref.Column
			}
			if strings.ContainsAny(strings.Trim(name, "_"), "_0123456789") {
				telling[strings.ToLower(name)] = append(telling[strings.ToLower(name)], o.ID)
			}
		}
	}
	for i := range l.s.All() {
		o := l.s.Object(uint32(i))
		for name := range namesIn(o.Description + " " + strings.Join(o.Synonyms, " ")) {
			hidden := telling[name]
			if len(hidden) == 0 {
				continue
			}
			for _, v := range l.views {
				// A name that means something visible too gives nothing away.
				if v.Visible(o.ID) && !slices.ContainsFunc(hidden, v.Visible) {
					l.add(o.Ref.String(), "its text names %s, which is hidden from %s", l.s.Object(hidden[0]).Ref, roleNames(v))
				}
			}
		}
	}
}

// owners finds the tables that somebody may see and nobody owns, if any table has an owner at all.
func (l *linter) owners() {
	tables := l.s.Objects(catalog.KindTable)
	if !slices.ContainsFunc(tables, func(o catalog.Object) bool { return o.Owner != "" }) {
		return
	}
	var names []string
	visible := 0
	for _, o := range tables {
		if !slices.ContainsFunc(l.views, func(v View) bool { return v.Visible(o.ID) }) {
			continue
		}
		visible++
		if o.Owner == "" {
			names = append(names, o.Ref.String())
		}
	}
	const shown = 3
	if n := len(names); n > shown {
		l.add("owners", "%d of %d visible tables have none, %s among them", n, visible, strings.Join(names[:shown], ", "))
	} else if n > 0 {
		l.add("owners", "nobody owns %s", strings.Join(names, ", "))
	}
}

// namesIn returns the words of a text that can be names, in lower case.
func namesIn(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r != '_' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		out[w] = true
	}
	return out
}
