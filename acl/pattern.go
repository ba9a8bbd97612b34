package acl

import (
	"fmt"
	"strings"

	"github.com/schemagate/schemagate/catalog"
)

// Pattern names objects in a policy. A path pattern covers what it names and everything beneath; `*` matches any run
// of characters within one segment, unless the segment is quoted. A bare `*` covers every object. kind:NAME names
// metrics, relationships and past queries, with stars in NAME.
type Pattern struct {
	text     string
	all      bool
	kind     catalog.Kind // set for kind:NAME
	segments []string
	literal  []bool
}

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
				return Pattern{}, fmt.Errorf("pattern %q names nothing after the colon", s)
			}
			p.kind, p.segments, p.literal = k, []string{name}, []bool{false}
			return p, nil
		}
	}
	var err error
	if p.segments, p.literal, err = catalog.SplitPattern(s); err != nil {
		return Pattern{}, fmt.Errorf("pattern: %w", err)
	}
	if len(p.segments) > 4 {
		return Pattern{}, fmt.Errorf("pattern %q has %d segments; the longest name is database.schema.table.column", s, len(p.segments))
	}
	return p, nil
}

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.text }

// Covers reports whether the pattern names the object or something above it, under the case rules of dialect.
func (p Pattern) Covers(d catalog.Dialect, r catalog.Ref) bool {
	if p.all {
		return true
	}
	if p.kind != 0 {
		return r.Kind == p.kind && match(p.segments[0], r.Name)
	}
	if r.Kind != catalog.KindTable && r.Kind != catalog.KindColumn {
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

// Reaches reports whether the pattern could cover a column of the table without covering the table itself.
func (p Pattern) Reaches(d catalog.Dialect, table catalog.Ref) bool {
	if p.all || p.kind != 0 || len(p.segments) < 3 {
		return false
	}
	up := p
	up.segments, up.literal = p.segments[:len(p.segments)-1], p.literal[:len(p.literal)-1]
	return len(up.segments) == len(table.Path()) && up.Covers(d, table)
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
