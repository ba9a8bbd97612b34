package acl

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ParseCSV reads a Casbin policy in CSV. Its lines are
//
//	p, SUBJECT, PATTERN, ACTION[, allow|deny]
//	g, SUBJECT, ROLE
//
// where ACTION is one of ours, read (view and query) or * (all). A name that some g line gives to others is a role, any
// other subject a principal. Casbin takes a line that is too short or whose effect is misspelt and later ignores it or
// fails; here it is an error. All are reported, joined.
func ParseCSV(name string, data []byte) (*Policy, error) {
	sum := sha256.Sum256(data)
	p := &Policy{version: hex.EncodeToString(sum[:]), principals: map[string]Principal{}, inherits: map[string][]string{}}
	r := csv.NewReader(bytes.NewReader(data))
	r.Comment, r.FieldsPerRecord, r.TrimLeadingSpace = '#', -1, true
	c := checker{reader: reader{file: name}, known: map[string]bool{}}
	var links, rules []csvLine
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		l := csvLine{fields: fields}
		l.at, _ = r.FieldPos(0)
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if wrong := l.check(); wrong != "" {
			c.fail(l.at, "%s", wrong)
		} else if fields[0] == "g" {
			links = append(links, l)
			c.known[fields[2]] = true
		} else {
			rules = append(rules, l)
		}
	}
	for role := range c.known {
		p.inherits[role] = nil
	}
	parents := map[string][]word{}
	for _, l := range links {
		subject, role := l.fields[1], l.fields[2]
		if c.known[subject] {
			p.inherits[subject] = append(p.inherits[subject], role)
			parents[subject] = append(parents[subject], word{role, l.at})
			continue
		}
		p.give(subject, role)
	}
	c.cycles(parents)
	for _, l := range rules {
		subject := l.fields[1]
		if !c.known[subject] {
			// What a principal is granted by name becomes a role of their own, which no g line can give to others.
			subject = "user:" + l.fields[1]
			if !slices.Contains(p.principals[l.fields[1]].Roles, subject) {
				p.give(l.fields[1], subject)
			}
			p.inherits[subject] = nil
		}
		pattern, err := ParsePattern(l.fields[2])
		if err != nil {
			c.fail(l.at, "%v", err)
		}
		g := Grant{Role: subject, Actions: actionsOf(l.fields[3]), Rule: rule(l.at, "grant to "+l.fields[1])}
		if l.fields[len(l.fields)-1] == "deny" && len(l.fields) == 5 {
			g.Deny = []Pattern{pattern}
		} else {
			g.Allow = []Pattern{pattern}
		}
		p.Grants = append(p.Grants, g)
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Policy) give(principal, role string) {
	who := p.principals[principal]
	who.Name = principal
	who.Roles = append(who.Roles, role)
	if who.Attributes == nil {
		who.Attributes = map[string]any{}
	}
	p.principals[principal] = who
}

// csvLine is a line of a Casbin policy.
type csvLine struct {
	fields []string
	at     int
}

// check says what is wrong with a line.
func (l csvLine) check() string {
	f := l.fields
	switch {
	case slices.Contains(f, ""):
		return "a field is empty"
	case f[0] == "g" && len(f) == 3:
		return ""
	case f[0] == "g":
		return "a g line is g, SUBJECT, ROLE; domains are written as tenants in a policy file"
	case f[0] != "p":
		return fmt.Sprintf("a line begins with p or g, not with %q", f[0])
	case len(f) != 4 && len(f) != 5:
		return "a p line is p, SUBJECT, PATTERN, ACTION and perhaps allow or deny"
	case len(f) == 5 && f[4] != "allow" && f[4] != "deny":
		return fmt.Sprintf("the effect is %q; write allow or deny", f[4])
	case actionsOf(f[3]) == nil:
		return fmt.Sprintf("action %q is not known; known are read, view, query, edit, approve, administer, audit, impersonate and *", f[3])
	}
	return ""
}

// actionsOf returns the actions that a word of a CSV policy stands for, nil if it is none.
func actionsOf(word string) []Action {
	switch a := Action(word); {
	case word == "*":
		return Actions[:]
	case word == "read":
		return []Action{ActionView, ActionQuery}
	case slices.Contains(Actions[:], a):
		return []Action{a}
	}
	return nil
}
