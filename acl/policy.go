package acl

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
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

// Grant allows or denies actions to a role on what its patterns cover, for a time, in one tenant or in all.
type Grant struct {
	Role    string
	Tenant  string // empty for all
	Window  Window
	Allow   []Pattern
	Deny    []Pattern
	Actions []Action
	Rule    string
}

// Window is a span of time, open where a bound is zero.
type Window struct {
	From  time.Time
	Until time.Time // the first moment after it
}

// Holds reports whether a moment lies in the window.
func (w Window) Holds(at time.Time) bool {
	return (w.From.IsZero() || !at.Before(w.From)) && (w.Until.IsZero() || at.Before(w.Until))
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

// ParsePolicy reads a policy file. Each fault is named by file, line and what to do about it; all are reported, joined.
func ParsePolicy(name string, data []byte) (*Policy, error) {
	sum := sha256.Sum256(data)
	p := &Policy{version: hex.EncodeToString(sum[:]), principals: map[string]Principal{}, inherits: map[string][]string{}}
	c := &checker{reader: reader{file: name}, known: map[string]bool{}}
	body := c.document(data)
	if body == nil {
		return nil, c.err()
	}
	file := c.fields(body, "a policy", "version", "principals", "roles", "grants", "row_filters", "masks")
	if v, ok := file["version"].(*ast.IntegerNode); !ok || v.Value != uint64(1) {
		line := 1
		if n := file["version"]; n != nil {
			line = lineOf(n)
		}
		c.fail(line, "version must be 1, the only format so far; write version: 1")
	}
	// A role is known if it is declared or if a grant allows it something, wherever in the file that stands.
	roles := c.entries(file["roles"], "roles")
	for _, r := range roles {
		c.known[r.key] = true
	}
	for _, n := range c.list(file["grants"], "grants") {
		p.Grants = append(p.Grants, c.grant(n))
	}
	parents := map[string][]word{}
	for _, r := range roles {
		if r.key == "" {
			c.fail(r.line, "a role needs a name; write one before the colon")
		}
		parents[r.key] = c.words(c.fields(r.value, "a role", "inherits")["inherits"], "inherits")
		p.inherits[r.key] = c.roles(parents[r.key])
	}
	c.cycles(parents)
	for _, e := range c.entries(file["principals"], "principals") {
		p.principals[e.key] = c.principal(e)
	}
	for _, n := range c.list(file["row_filters"], "row_filters") {
		p.RowFilters = append(p.RowFilters, c.rowFilter(n))
	}
	for _, n := range c.list(file["masks"], "masks") {
		p.Masks = append(p.Masks, c.mask(n))
	}
	for _, g := range c.granted {
		c.roles([]word{g})
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	return p, nil
}

// checker reads the parts of a policy.
type checker struct {
	reader
	known   map[string]bool // roles
	granted []word          // the role of each grant, to be looked up once all are known
}

func (c *checker) grant(n ast.Node) Grant {
	f := c.fields(n, "a grant", "role", "allow", "deny", "actions", "tenant", "from", "until")
	line := lineOf(n)
	g := Grant{
		Role:   c.text(f["role"], "role"),
		Tenant: c.text(f["tenant"], "tenant"),
		Window: Window{From: c.moment(f["from"], "from"), Until: c.moment(f["until"], "until")},
		Allow:  c.patterns(f["allow"], "allow"),
		Deny:   c.patterns(f["deny"], "deny"),
	}
	g.Rule = rule(line, "grant to "+g.Role)
	if g.Role == "" {
		c.fail(line, "a grant needs a role; write role: NAME")
	} else {
		c.granted = append(c.granted, word{g.Role, lineOf(f["role"])})
	}
	if f["allow"] == nil && f["deny"] == nil {
		c.fail(line, "a grant needs allow or deny; list the patterns of what it covers")
	}
	if len(g.Allow) > 0 {
		c.known[g.Role] = true
	}
	for _, w := range c.someWords(f["actions"], "actions") {
		if !slices.Contains(Actions[:], Action(w.text)) {
			c.fail(w.line, "action %q is not known; known are view, query, edit, approve, administer, audit, impersonate", w.text)
		}
		g.Actions = append(g.Actions, Action(w.text))
	}
	if w := g.Window; !w.From.IsZero() && !w.Until.IsZero() && !w.From.Before(w.Until) {
		c.fail(lineOf(f["until"]), "a grant's until must lie after its from; correct one of them")
	}
	if f["tenant"] != nil && g.Tenant == "" {
		c.fail(line, "tenant is empty; name one, or leave it out for all")
	}
	switch {
	case f["actions"] != nil:
	case f["allow"] != nil && f["deny"] != nil:
		c.fail(line, "a grant that both allows and denies must say for which actions; add actions: [...]")
	case f["deny"] != nil:
		g.Actions = slices.Clone(Actions[:]) // a bare deny denies everything
	default:
		g.Actions = []Action{ActionView, ActionQuery}
	}
	return g
}

// moment reads a time, zero if there is none. A day means its first moment in UTC.
func (c *checker) moment(n ast.Node, what string) time.Time {
	if n == nil {
		return time.Time{}
	}
	text := c.text(n, what)
	for _, layout := range [...]string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	c.fail(lineOf(n), "%s is no time: %q; write it as 2026-01-31 or 2026-01-31T18:00:00Z", what, text)
	return time.Time{}
}

func (c *checker) principal(e entry) Principal {
	if e.key == "" {
		c.fail(e.line, "a principal needs a name; write one before the colon")
	}
	f := c.fields(e.value, "a principal", "roles", "attributes", "tenant", "acts_for")
	p := Principal{Name: e.key, Roles: c.roles(c.words(f["roles"], "roles")), Attributes: map[string]any{}, Tenant: c.text(f["tenant"], "tenant")}
	for _, w := range c.someWords(f["acts_for"], "acts_for") {
		if w.text != "*" {
			c.roles([]word{w})
		}
		p.ActsFor = append(p.ActsFor, w.text)
	}
	for _, a := range c.entries(f["attributes"], "attributes") {
		v, err := literal(a.value)
		if err != nil {
			c.fail(a.line, "attribute %q of %q: %v", a.key, e.key, err)
		}
		p.Attributes[a.key] = v
	}
	return p
}

func (c *checker) rowFilter(n ast.Node) RowFilterRule {
	f := c.fields(n, "a row filter", "table", "roles", "mode", "using")
	line := lineOf(n)
	out := RowFilterRule{
		Table: c.pattern(f["table"], line, "a row filter needs a table; write table: PATTERN"),
		Roles: c.ruleRoles(f["roles"], line, "a row filter"),
	}
	out.Predicate = Predicate{Using: strings.TrimSpace(c.text(f["using"], "using")), Rule: rule(line, "row filter on "+out.Table.String())}
	if f["mode"] != nil {
		switch mode := c.text(f["mode"], "mode"); mode {
		case "permissive":
		case "restrictive":
			out.Restrictive = true
		default:
			c.fail(lineOf(f["mode"]), "mode %q is not known; write permissive or restrictive", mode)
		}
	}
	if out.Using == "" {
		c.fail(line, "a row filter needs a condition in SQL; write using: CONDITION")
	} else {
		c.template(f["using"], out.Using)
	}
	return out
}

func (c *checker) mask(n ast.Node) MaskRule {
	f := c.fields(n, "a mask", "column", "roles", "with")
	line := lineOf(n)
	out := MaskRule{
		Column: c.pattern(f["column"], line, "a mask needs a column; write column: PATTERN"),
		Roles:  c.ruleRoles(f["roles"], line, "a mask"),
	}
	if f["with"] != nil {
		line = lineOf(f["with"])
	}
	with, err := maskOf(f["with"])
	if err != nil {
		c.fail(line, "%v", err)
	}
	out.Mask = with
	out.Rule = rule(lineOf(n), "mask on "+out.Column.String())
	if with.Kind == MaskExpression {
		c.template(f["with"], with.Expression)
	}
	return out
}

// maskOf reads null, hash, partial, {constant: V} or {expression: SQL}.
func maskOf(n ast.Node) (Mask, error) {
	switch n := n.(type) {
	case *ast.NullNode:
		return Mask{Kind: MaskNull}, nil
	case *ast.StringNode:
		switch k := MaskKind(n.Value); k {
		case MaskNull, MaskHash, MaskPartial:
			return Mask{Kind: k}, nil
		}
	case *ast.MappingNode:
		if len(n.Values) != 1 {
			break
		}
		key, value := n.Values[0].Key.GetToken().Value, n.Values[0].Value
		switch v, err := literal(value); MaskKind(key) {
		case MaskConstant:
			switch v.(type) {
			case string, int64, float64, bool:
				return Mask{Kind: MaskConstant, Constant: v}, nil
			}
			return Mask{}, cmp.Or(err, errors.New("a mask's constant must be a text, number or boolean"))
		case MaskExpression:
			if sql, _ := v.(string); strings.TrimSpace(sql) != "" {
				return Mask{Kind: MaskExpression, Expression: sql}, nil
			}
		}
	}
	return Mask{}, errors.New("a mask says what to show instead; write with: null, hash, partial, {constant: VALUE} or {expression: SQL}")
}

// cycles reports each circle of roles that inherit each other once.
func (c *checker) cycles(parents map[string][]word) {
	const open, done = 1, 2
	state := map[string]int{}
	var path []string
	var visit func(string)
	visit = func(role string) {
		state[role] = open
		path = append(path, role)
		for _, p := range parents[role] {
			switch state[p.text] {
			case open:
				circle := append(slices.Clone(path[slices.Index(path, p.text):]), p.text)
				c.fail(p.line, "role %q inherits itself (%s); take one of these links out", p.text, strings.Join(circle, " from "))
			case done:
			default:
				visit(p.text)
			}
		}
		path = path[:len(path)-1]
		state[role] = done
	}
	for _, role := range sortedKeys(parents) {
		if state[role] == 0 {
			visit(role)
		}
	}
}

// roles returns the names of roles, which must be known.
func (c *checker) roles(words []word) []string {
	var out []string
	for _, w := range words {
		if !c.known[w.text] {
			c.fail(w.line, "role %q is not known; correct its name, declare it under roles or let a grant allow it something", w.text)
		}
		out = append(out, w.text)
	}
	return out
}

func (c *checker) ruleRoles(n ast.Node, line int, what string) []string {
	if n == nil {
		c.fail(line, "%s needs roles; write roles: [NAME, ...]", what)
	}
	return c.roles(c.someWords(n, "roles"))
}

func (c *checker) pattern(n ast.Node, line int, missing string) Pattern {
	if n == nil {
		c.fail(line, "%s", missing)
		return Pattern{}
	}
	p, err := ParsePattern(c.text(n, "a pattern"))
	if err != nil {
		c.fail(lineOf(n), "%v", err)
	}
	return p
}

func (c *checker) patterns(n ast.Node, what string) []Pattern {
	var out []Pattern
	for _, w := range c.someWords(n, what) {
		p, err := ParsePattern(w.text)
		if err != nil {
			c.fail(w.line, "%v", err)
		}
		out = append(out, p)
	}
	return out
}

func (c *checker) template(n ast.Node, sql string) {
	if _, err := ParseTemplate(sql); err != nil {
		c.fail(lineOf(n), "%v", err)
	}
}

func rule(line int, what string) string { return fmt.Sprintf("line %d: %s", line, what) }

// literal reads a value that may become a literal of SQL: a text, number or boolean, or a list of texts or of whole
// numbers.
func literal(n ast.Node) (any, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.BoolNode:
		return n.Value, nil
	case *ast.IntegerNode:
		switch v := n.Value.(type) {
		case int64:
			return v, nil
		case uint64:
			if v <= math.MaxInt64 {
				return int64(v), nil
			}
		}
		return nil, fmt.Errorf("%s does not fit in 64 bits; write it as text, in quotes", n.GetToken().Value)
	case *ast.FloatNode:
		if math.IsInf(n.Value, 0) {
			return nil, fmt.Errorf("%s is too large for a number; write it as text, in quotes", n.GetToken().Value)
		}
		return n.Value, nil
	case *ast.InfinityNode, *ast.NanNode:
		return nil, errors.New("infinity and NaN have no literal in SQL; write a finite number")
	case *ast.SequenceNode:
		var texts []string
		var numbers []int64
		for _, e := range n.Values {
			v, err := literal(e)
			if err != nil {
				return nil, err
			}
			switch v := v.(type) {
			case string:
				texts = append(texts, v)
			case int64:
				numbers = append(numbers, v)
			}
		}
		switch len(n.Values) {
		case 0:
			return nil, errors.New("a list must not be empty; leave the attribute out or list what it holds")
		case len(texts):
			return texts, nil
		case len(numbers):
			return numbers, nil
		}
		return nil, errors.New("a list holds either texts or whole numbers; put the numbers in quotes or take the others out")
	}
	return nil, fmt.Errorf("a value must be a text, number or boolean or a list of texts or whole numbers, not %s; write one of these", describe(n))
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
