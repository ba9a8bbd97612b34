package acl

import (
	"fmt"
	"strings"

	"github.com/schemagate/schemagate/catalog"
)

// Pattern names objects in a policy. A path pattern covers what it names and everything beneath; `*` matches any run
// of characters within one segment, unless the segment is quoted. A bare `*` covers every object. kind:NAME names
// metrics, relationships and past queries, with stars in NAME. tag:NAME, owner:NAME and domain:NAME cover what says so of
// itself, columns of a table that does, and kind:KIND all objects of a kind. The zero Pattern covers nothing.
type Pattern struct {
	text      string
	all       bool
	kind      catalog.Kind // set for metric:NAME and the like
	attribute attribute    // set for tag:NAME and the like
	segments  []string
	literal   []bool
}

// attribute is something that an object says of itself, by which a pattern can cover it.
type attribute string

const (
	byTag    attribute = "tag"
	byOwner  attribute = "owner"
	byDomain attribute = "domain"
	byKind   attribute = "kind"
)

// ParsePattern reads a pattern.
func ParsePattern(s string) (Pattern, error) {
	p := Pattern{text: s}
	if s == "*" {
		p.all = true
		return p, nil
	}
	if kind, name, ok := strings.Cut(s, ":"); ok {
		if k, known := catalog.ParseKind(kind); known {
			if k == catalog.KindTable || k == catalog.KindColumn {
				return Pattern{}, fmt.Errorf("pattern %q: write tables and columns without a kind in front", s)
			}
			if name == "" {
				return Pattern{}, fmt.Errorf("pattern %q names nothing after the colon; write a name or *", s)
			}
			p.kind, p.segments, p.literal = k, []string{name}, []bool{false}
			return p, nil
		}
	}
	if word, name, ok := strings.Cut(s, ":"); ok && !strings.ContainsAny(word, `".`) {
		switch a := attribute(word); a {
		case byKind:
			if _, known := catalog.ParseKind(name); !known {
				return Pattern{}, fmt.Errorf("pattern %q: %q is no kind; write table, column, metric, relationship or query", s, name)
			}
			fallthrough
		case byTag, byOwner, byDomain:
			if name == "" {
				return Pattern{}, fmt.Errorf("pattern %q names nothing after the colon; write a name or *", s)
			}
			p.attribute, p.segments, p.literal = a, []string{name}, []bool{false}
			return p, nil
		}
		return Pattern{}, fmt.Errorf("pattern %q: %q is no kind; write metric:, relationship:, query:, tag:, owner:, domain: or kind:, or put a name with a colon in double quotes", s, word)
	}
	var err error
	if p.segments, p.literal, err = catalog.SplitPattern(s); err != nil {
		return Pattern{}, fmt.Errorf("pattern: %w; write segments joined by dots, each in double quotes where it holds a dot or quote", err)
	}
	if len(p.segments) > 4 {
		return Pattern{}, fmt.Errorf("pattern %q has %d segments; the longest name is database.schema.table.column, and a segment with a dot is put in double quotes", s, len(p.segments))
	}
	return p, nil
}

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.text }

// ByAttribute reports whether the pattern covers objects by what they say of themselves, which only a Coverage knows.
func (p Pattern) ByAttribute() bool { return p.attribute != "" }

// Covers reports whether the pattern names the object or something above it, under the case rules of dialect. A pattern
// by attribute names nothing.
func (p Pattern) Covers(d catalog.Dialect, r catalog.Ref) bool {
	if p.all {
		return true
	}
	if p.kind != 0 {
		return r.Kind == p.kind && match(p.segments[0], r.Name)
	}
	if p.attribute != "" || len(p.segments) == 0 || r.Kind != catalog.KindTable && r.Kind != catalog.KindColumn {
		return false
	}
	// A database covers what it holds whatever segments follow; with a schema the path is one longer.
	parts := [...]catalog.Part{catalog.PartDatabase, catalog.PartSchema, catalog.PartTable, catalog.PartColumn}
	names := [...]string{r.Database, r.Schema, r.Table, r.Column}
	i := 0
	for j, name := range names {
		if i == len(p.segments) {
			return true
		}
		if parts[j] == catalog.PartSchema && name == "" {
			continue
		}
		if parts[j] == catalog.PartColumn && r.Kind == catalog.KindTable {
			return false
		}
		want, have := d.Key(parts[j], p.segments[i]), d.Key(parts[j], name)
		if p.literal[i] && want != have || !p.literal[i] && !match(want, have) {
			return false
		}
		i++
	}
	return i == len(p.segments)
}

// column returns the pattern's last segment if what stands before it names exactly the table, so that the pattern
// covers the columns of that name and not the table.
func (p Pattern) column(d catalog.Dialect, table catalog.Ref) (segment string, literal, ok bool) {
	last := len(p.segments) - 1
	if p.all || p.kind != 0 || p.attribute != "" || last < 2 || last != len(table.Path()) {
		return "", false, false
	}
	up := p
	up.segments, up.literal = p.segments[:last], p.literal[:last]
	return d.Key(catalog.PartColumn, p.segments[last]), p.literal[last], up.Covers(d, table)
}

// match reports whether name fits a segment in which each star stands for any run of characters, also none.
func match(segment, name string) bool {
	head, rest, starred := strings.Cut(segment, "*")
	if !starred {
		return segment == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		piece, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(name, piece)
		}
		i := strings.Index(name, piece)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(piece):], more
	}
}
