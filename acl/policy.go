package acl

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/schemagate/schemagate/catalog"
)

// Policy is one policy file, checked: every role it uses is known, every pattern parses, no role inherits itself.
type Policy struct {
	version    string
	principals map[string]Principal
	inherits   map[string][]string

	Grants     []Grant
	RowFilters []RowFilterRule
	Masks      []MaskRule
}

// Grant allows or denies actions to a role on what its patterns cover.
type Grant struct {
	Role    string
	Allow   []Pattern
	Deny    []Pattern
	Actions []Action
	Rule    string
}

// RowFilterRule limits the rows of the tables that Table covers, for principals with one of Roles. Its mere presence
// protects those tables for everyone.
type RowFilterRule struct {
	Table       Pattern
	Roles       []string
	Restrictive bool
	Predicate
}

// MaskRule masks the columns that Column covers, for principals with one of Roles.
type MaskRule struct {
	Column Pattern
	Roles  []string
	Mask
}

// located is a value of the file with the line it stands on.
type located[T any] struct {
	value T
	line  int
}

// UnmarshalYAML decodes the node and notes its line.
func (l *located[T]) UnmarshalYAML(n ast.Node) error {
	l.line = n.GetToken().Position.Line
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		l.line = m.Values[0].Key.GetToken().Position.Line
	}
	return yaml.NodeToValue(n, &l.value, yaml.Strict())
}

type policyFile struct {
	Version    located[int] `yaml:"version"`
	Principals map[string]located[struct {
		Roles      []string       `yaml:"roles"`
		Attributes map[string]any `yaml:"attributes"`
	}] `yaml:"principals"`
	Roles map[string]located[struct {
		Inherits []string `yaml:"inherits"`
	}] `yaml:"roles"`
	Grants []located[struct {
		Role    string   `yaml:"role"`
		Allow   []string `yaml:"allow"`
		Deny    []string `yaml:"deny"`
		Actions []string `yaml:"actions"`
	}] `yaml:"grants"`
	RowFilters []located[struct {
		Table string   `yaml:"table"`
		Roles []string `yaml:"roles"`
		Mode  string   `yaml:"mode"`
		Using string   `yaml:"using"`
	}] `yaml:"row_filters"`
	Masks []located[struct {
		Column string   `yaml:"column"`
		Roles  []string `yaml:"roles"`
		With   *with    `yaml:"with"`
	}] `yaml:"masks"`
}

// with is the value of a mask: a word or a mapping of one key.
type with struct{ Mask }

// UnmarshalYAML decodes null, hash, partial, {constant: V} or {expression: SQL}.
func (w *with) UnmarshalYAML(n ast.Node) error {
	switch n := n.(type) {
	case *ast.NullNode:
		w.Kind = MaskNull
		return nil
	case *ast.StringNode:
		switch k := MaskKind(n.Value); k {
		case MaskNull, MaskHash, MaskPartial:
			w.Kind = k
			return nil
		}
	case *ast.MappingNode:
		var m map[string]any
		if err := yaml.NodeToValue(n, &m); err != nil {
			return err
		}
		if v, ok := m[string(MaskConstant)]; ok && len(m) == 1 {
			c, err := attribute(v)
			if _, list := c.([]string); err != nil || list {
				return fmt.Errorf("a mask's constant must be a string, number or boolean")
			}
			w.Kind, w.Constant = MaskConstant, c
			return nil
		}
		if v, ok := m[string(MaskExpression)].(string); ok && len(m) == 1 && strings.TrimSpace(v) != "" {
			w.Kind, w.Expression = MaskExpression, v
			return nil
		}
	}
	return fmt.Errorf("a mask is null, hash, partial, {constant: VALUE} or {expression: SQL}")
}

// ParsePolicy reads a policy file. Errors name the file and the line; all faults are reported, joined.
func ParsePolicy(name string, data []byte) (*Policy, error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", name, oneLine(err))
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, fmt.Errorf("%s: a policy file holds one document that begins with version: 1; this one holds %d", name, len(file.Docs))
	}
	// A null mask must read as a mask and not as an absent one, which decoding to a pointer would make of it.
	withs := nullMasks(file.Docs[0].Body)
	var f policyFile
	if err := yaml.NodeToValue(file.Docs[0].Body, &f, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s: %s", name, oneLine(err))
	}
	sum := sha256.Sum256(data)
	p := &Policy{version: hex.EncodeToString(sum[:]), principals: map[string]Principal{}, inherits: map[string][]string{}}
	c := checker{file: name}
	if f.Version.value != 1 {
		c.fail(max(f.Version.line, 1), "version must be 1, which is the only format so far")
	}

	known := map[string]bool{}
	for role, r := range f.Roles {
		known[role] = true
		for _, parent := range r.value.Inherits {
			known[parent] = true
		}
		p.inherits[role] = r.value.Inherits
	}
	for _, g := range f.Grants {
		if len(g.value.Allow) > 0 {
			known[g.value.Role] = true
		}
	}
	roles := func(line int, names []string) {
		for _, r := range names {
			if !known[r] {
				c.fail(line, "role %q is not known: no grant allows it anything and roles does not declare it", r)
			}
		}
	}
	for _, role := range sortedKeys(f.Roles) {
		if p.inheritsItself(role) {
			c.fail(f.Roles[role].line, "role %q inherits itself", role)
		}
	}
	for _, name := range sortedKeys(f.Principals) {
		e := f.Principals[name]
		roles(e.line, e.value.Roles)
		attributes := map[string]any{}
		for _, k := range sortedKeys(e.value.Attributes) {
			v, err := attribute(e.value.Attributes[k])
			if err != nil {
				c.fail(e.line, "attribute %q of %q: %v", k, name, err)
			}
			attributes[k] = v
		}
		p.principals[name] = Principal{Name: name, Roles: slices.Clone(e.value.Roles), Attributes: attributes}
	}
	for _, g := range f.Grants {
		out := Grant{Role: g.value.Role, Rule: c.rule(g.line, "grant to "+g.value.Role)}
		if g.value.Role == "" {
			c.fail(g.line, "a grant needs a role")
		} else {
			roles(g.line, []string{g.value.Role})
		}
		if len(g.value.Allow)+len(g.value.Deny) == 0 {
			c.fail(g.line, "a grant needs allow or deny")
		}
		out.Allow, out.Deny = c.patterns(g.line, g.value.Allow), c.patterns(g.line, g.value.Deny)
		for _, a := range g.value.Actions {
			if !slices.Contains(Actions[:], Action(a)) {
				c.fail(g.line, "unknown action %q; known are view, query, edit, approve, administer, audit, impersonate", a)
			}
			out.Actions = append(out.Actions, Action(a))
		}
		if len(g.value.Actions) == 0 {
			if len(g.value.Allow) > 0 && len(g.value.Deny) > 0 {
				c.fail(g.line, "a grant that both allows and denies must say its actions")
			}
			out.Actions = []Action{ActionView, ActionQuery}
			if len(g.value.Allow) == 0 {
				out.Actions = slices.Clone(Actions[:]) // a bare deny denies everything
			}
		}
		p.Grants = append(p.Grants, out)
	}
	for _, r := range f.RowFilters {
		out := RowFilterRule{Roles: r.value.Roles, Predicate: Predicate{Using: strings.TrimSpace(r.value.Using), Rule: c.rule(r.line, "row filter on "+r.value.Table)}}
		out.Table = c.pattern(r.line, r.value.Table)
		roles(r.line, r.value.Roles)
		if len(r.value.Roles) == 0 {
			c.fail(r.line, "a row filter needs roles")
		}
		switch r.value.Mode {
		case "", "permissive":
		case "restrictive":
			out.Restrictive = true
		default:
			c.fail(r.line, "mode is permissive or restrictive, not %q", r.value.Mode)
		}
		if out.Using == "" {
			c.fail(r.line, "a row filter needs using, a condition in SQL")
		} else if _, err := ParseTemplate(out.Using); err != nil {
			c.fail(r.line, "%v", err)
		}
		p.RowFilters = append(p.RowFilters, out)
	}
	for i, m := range f.Masks {
		out := MaskRule{Roles: m.value.Roles}
		if m.value.With != nil {
			out.Mask = m.value.With.Mask
		} else if withs[i] {
			out.Mask.Kind = MaskNull
		} else {
			c.fail(m.line, "a mask needs with: null, hash, partial, {constant: VALUE} or {expression: SQL}")
		}
		out.Rule = c.rule(m.line, "mask on "+m.value.Column)
		out.Column = c.pattern(m.line, m.value.Column)
		roles(m.line, m.value.Roles)
		if len(m.value.Roles) == 0 {
			c.fail(m.line, "a mask needs roles")
		}
		if out.Kind == MaskExpression {
			if _, err := ParseTemplate(out.Expression); err != nil {
				c.fail(m.line, "%v", err)
			}
		}
		p.Masks = append(p.Masks, out)
	}
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	return p, nil
}

type checker struct {
	file string
	errs []error
}

func (c *checker) fail(line int, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s:%d: %s", c.file, line, fmt.Sprintf(format, args...)))
}

func (c *checker) rule(line int, what string) string { return fmt.Sprintf("line %d: %s", line, what) }

func (c *checker) pattern(line int, s string) Pattern {
	p, err := ParsePattern(s)
	if err != nil {
		c.fail(line, "%v", err)
	}
	return p
}

func (c *checker) patterns(line int, texts []string) []Pattern {
	var out []Pattern
	for _, s := range texts {
		out = append(out, c.pattern(line, s))
	}
	return out
}

// nullMasks tells which entries of masks say with: null.
func nullMasks(body ast.Node) map[int]bool {
	out := map[int]bool{}
	root, ok := body.(*ast.MappingNode)
	if !ok {
		return out
	}
	for _, v := range root.Values {
		list, ok := v.Value.(*ast.SequenceNode)
		if !ok || v.Key.String() != "masks" {
			continue
		}
		for i, item := range list.Values {
			if m, ok := item.(*ast.MappingNode); ok {
				for _, kv := range m.Values {
					if _, null := kv.Value.(*ast.NullNode); null && kv.Key.String() == "with" {
						out[i] = true
					}
				}
			}
		}
	}
	return out
}

// attribute checks a value that may become a literal of SQL.
func attribute(v any) (any, error) {
	switch v := v.(type) {
	case string, bool, int64:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v has no literal in SQL", v)
		}
		return v, nil
	case int:
		return int64(v), nil
	case uint64:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("%d is too large", v)
		}
		return int64(v), nil
	case []any:
		var texts []string
		var numbers []int64
		for _, e := range v {
			e, err := attribute(e)
			if err != nil {
				return nil, err
			}
			switch e := e.(type) {
			case string:
				texts = append(texts, e)
			case int64:
				numbers = append(numbers, e)
			default:
				return nil, fmt.Errorf("a list holds strings or whole numbers")
			}
		}
		switch {
		case len(v) == 0:
			return nil, fmt.Errorf("a list must not be empty")
		case len(texts) == len(v):
			return texts, nil
		case len(numbers) == len(v):
			return numbers, nil
		}
		return nil, fmt.Errorf("a list holds either strings or whole numbers, not both")
	}
	return nil, fmt.Errorf("a value must be a string, number, boolean or a list of one of them, not %T", v)
}

var excerpt = regexp.MustCompile(`(?s)^\[(\d+):(\d+)\] (.*?)(\n.*)?$`)

// oneLine reduces the library's error, which shows an excerpt of the file, to line:column: message.
func oneLine(err error) string {
	if m := excerpt.FindStringSubmatch(err.Error()); m != nil {
		return m[1] + ":" + m[2] + ": " + m[3]
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// Version identifies the policy's text.
func (p *Policy) Version() string { return p.version }

// Principal returns who bears that name, or a refusal with code unknown-principal.
func (p *Policy) Principal(name string) (Principal, error) {
	who, ok := p.principals[name]
	if !ok {
		return Principal{}, &Refusal{
			Code:   CodeUnknownPrincipal,
			Public: "you are not known here",
			Hint:   "check the name that you ask as, or ask whoever keeps the policy to add it",
			Detail: fmt.Sprintf("no principal %q in the policy", name),
		}
	}
	return who, nil
}

// Principals returns the names of all principals, sorted.
func (p *Policy) Principals() []string { return sortedKeys(p.principals) }

// Inherits returns the roles that a role inherits directly, by role.
func (p *Policy) Inherits() map[string][]string { return p.inherits }

// Roles returns every role that a principal has, inherited ones included, sorted.
func (p *Policy) Roles(who Principal) []string {
	seen := map[string]bool{}
	var add func(string)
	add = func(r string) {
		if !seen[r] {
			seen[r] = true
			for _, parent := range p.inherits[r] {
				add(parent)
			}
		}
	}
	for _, r := range who.Roles {
		add(r)
	}
	return sortedKeys(seen)
}

func (p *Policy) inheritsItself(role string) bool {
	seen := map[string]bool{}
	var reach func(string) bool
	reach = func(r string) bool {
		for _, parent := range p.inherits[r] {
			if parent == role {
				return true
			}
			if !seen[parent] {
				seen[parent] = true
				if reach(parent) {
					return true
				}
			}
		}
		return false
	}
	return reach(role)
}

// Unmatched is a rule that covers nothing: somebody relies on it, and it protects nothing, after a rename for instance.
type Unmatched struct {
	Rule string
	What string
}

// Unmatched lists the denies, row filters and masks that cover nothing in the snapshot.
func (p *Policy) Unmatched(s *catalog.Snapshot) []Unmatched {
	covers := func(pt Pattern, kinds ...catalog.Kind) bool {
		for _, k := range kinds {
			for i := range s.Objects(k) {
				o := &s.Objects(k)[i]
				d, _ := s.Database(o.Ref.Database)
				if pt.Covers(d.Dialect, o.Ref) {
					return true
				}
			}
		}
		return false
	}
	var out []Unmatched
	for _, g := range p.Grants {
		for _, d := range g.Deny {
			if !covers(d, catalog.Kinds[:]...) {
				out = append(out, Unmatched{g.Rule, fmt.Sprintf("deny %s covers nothing", d)})
			}
		}
	}
	for _, f := range p.RowFilters {
		if !covers(f.Table, catalog.KindTable) {
			out = append(out, Unmatched{f.Rule, "covers no table"})
		}
	}
	for _, m := range p.Masks {
		if !covers(m.Column, catalog.KindColumn) {
			out = append(out, Unmatched{m.Rule, "covers no column"})
		}
	}
	return out
}
