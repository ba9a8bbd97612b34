package acl

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// FromCSV turns a Casbin policy in CSV into a policy file. Its lines are
//
//	p, SUBJECT, PATTERN, ACTION[, allow|deny]
//	g, SUBJECT, ROLE
//
// where ACTION is one of ours, read (view and query) or * (all). A name that some g line gives to others is a role, any
// other subject a principal. Casbin takes a line that is too short or whose effect is misspelt and later ignores it or
// fails; here it is an error. All are reported, joined.
func FromCSV(name string, data []byte) ([]byte, error) {
	r := csv.NewReader(strings.NewReader(string(data)))
	r.Comment, r.FieldsPerRecord, r.TrimLeadingSpace = '#', -1, true
	type grant struct {
		Role    string   `yaml:"role"`
		Allow   []string `yaml:"allow,omitempty"`
		Deny    []string `yaml:"deny,omitempty"`
		Actions []string `yaml:"actions"`
	}
	type principal struct {
		Roles []string `yaml:"roles"`
	}
	type role struct {
		Inherits []string `yaml:"inherits,omitempty"`
	}
	var file struct {
		Version    int                  `yaml:"version"`
		Principals map[string]principal `yaml:"principals"`
		Roles      map[string]role      `yaml:"roles"`
		Grants     []grant              `yaml:"grants"`
	}
	var links, rules [][]string
	var errs []error
	for {
		line, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		at, _ := r.FieldPos(0)
		for i := range line {
			line[i] = strings.TrimSpace(line[i])
		}
		wrong := ""
		switch {
		case slices.Contains(line, ""):
			wrong = "a field is empty"
		case line[0] == "g" && len(line) == 3:
			links = append(links, line[1:])
		case line[0] == "g":
			wrong = "a g line is g, SUBJECT, ROLE; domains are written as tenants in a policy file"
		case line[0] == "p" && len(line) == 4:
			rules = append(rules, append(line[1:], "allow"))
		case line[0] == "p" && len(line) == 5 && (line[4] == "allow" || line[4] == "deny"):
			rules = append(rules, line[1:])
		case line[0] == "p" && len(line) == 5:
			wrong = fmt.Sprintf("the effect is %q; write allow or deny", line[4])
		case line[0] == "p":
			wrong = "a p line is p, SUBJECT, PATTERN, ACTION and perhaps allow or deny"
		default:
			wrong = fmt.Sprintf("a line begins with p or g, not with %q", line[0])
		}
		if wrong == "" && line[0] == "p" && actionsOf(line[3]) == nil {
			wrong = fmt.Sprintf("action %q is not known; known are read, view, query, edit, approve, administer, audit, impersonate and *", line[3])
		}
		if wrong != "" {
			errs = append(errs, fmt.Errorf("%s:%d: %s", name, at, wrong))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	file.Version, file.Principals, file.Roles = 1, map[string]principal{}, map[string]role{}
	for _, l := range links {
		file.Roles[l[1]] = role{}
	}
	has := func(subject string, r string) {
		p := file.Principals[subject]
		p.Roles = append(p.Roles, r)
		file.Principals[subject] = p
	}
	for _, l := range links {
		if parent, isRole := file.Roles[l[0]]; isRole {
			parent.Inherits = append(parent.Inherits, l[1])
			file.Roles[l[0]] = parent
		} else {
			has(l[0], l[1])
		}
	}
	for _, rule := range rules {
		subject := rule[0]
		if _, isRole := file.Roles[subject]; !isRole {
			// What a principal is granted by name becomes a role of their own, which no g line can give to others.
			subject = "user:" + rule[0]
			if !slices.Contains(file.Principals[rule[0]].Roles, subject) {
				has(rule[0], subject)
			}
		}
		g := grant{Role: subject, Actions: actionsOf(rule[2])}
		if rule[3] == "deny" {
			g.Deny = []string{rule[1]}
		} else {
			g.Allow = []string{rule[1]}
		}
		file.Grants = append(file.Grants, g)
	}
	for _, p := range file.Principals {
		for _, r := range p.Roles {
			if _, known := file.Roles[r]; !known {
				file.Roles[r] = role{}
			}
		}
	}
	return yaml.Marshal(file)
}

// actionsOf returns the actions that a word of a CSV policy stands for, nil if it is none.
func actionsOf(word string) []string {
	var all []string
	for _, a := range Actions {
		all = append(all, string(a))
	}
	switch {
	case word == "*":
		return all
	case word == "read":
		return []string{string(ActionView), string(ActionQuery)}
	case slices.Contains(all, word):
		return []string{word}
	}
	return nil
}
