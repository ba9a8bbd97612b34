package catalog

import (
	"fmt"
	"strings"
)

// Kind says which of the five kinds of catalog object a Ref names. The zero Kind names nothing.
type Kind uint8

// The five kinds, in the order in which a Snapshot numbers its objects.
const (
	KindTable Kind = iota + 1
	KindColumn
	KindMetric
	KindRelationship
	KindQuery
)

// Kinds lists all kinds in snapshot order.
var Kinds = [...]Kind{KindTable, KindColumn, KindMetric, KindRelationship, KindQuery}

var kindNames = [...]string{"", "table", "column", "metric", "relationship", "query"}

// String returns the lower-case name of the kind, "invalid" for a Kind that is none of the five.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return "invalid"
	}
	return kindNames[k]
}

// ParseKind is the inverse of String.
func ParseKind(s string) (Kind, bool) {
	for i, n := range kindNames {
		if i > 0 && n == s {
			return Kind(i), true
		}
	}
	return 0, false
}

// MarshalText encodes the kind as its name.
func (k Kind) MarshalText() ([]byte, error) {
	if k.String() == "invalid" {
		return nil, fmt.Errorf("catalog: kind %d has no name", uint8(k))
	}
	return []byte(k.String()), nil
}

// UnmarshalText decodes a kind's name.
func (k *Kind) UnmarshalText(b []byte) error {
	got, ok := ParseKind(string(b))
	if !ok {
		return fmt.Errorf("catalog: %q is not a kind of object", b)
	}
	*k = got
	return nil
}

// Ref names one object of a catalog. It is comparable; two Refs that differ only in letter case may name the same
// object, which only the dialect of their database can tell (see Dialect.Key).
//
// Tables and columns use Database, Schema, Table and Column; Schema is empty where the engine has no schemas.
// Metrics, relationships and past queries use Name.
type Ref struct {
	Kind                            Kind
	Database, Schema, Table, Column string
	Name                            string
}

// TableRef names a table.
func TableRef(database, schema, table string) Ref {
	return Ref{Kind: KindTable, Database: database, Schema: schema, Table: table}
}

// ColumnRef names a column.
func ColumnRef(database, schema, table, column string) Ref {
	return Ref{Kind: KindColumn, Database: database, Schema: schema, Table: table, Column: column}
}

// MetricRef names a metric.
func MetricRef(name string) Ref { return Ref{Kind: KindMetric, Name: name} }

// RelationshipRef names a relationship.
func RelationshipRef(name string) Ref { return Ref{Kind: KindRelationship, Name: name} }

// QueryRef names a past query.
func QueryRef(id string) Ref { return Ref{Kind: KindQuery, Name: id} }

// IsZero reports whether r names nothing.
func (r Ref) IsZero() bool { return r == Ref{} }

// TableRef returns the table that a column belongs to, and a table's own Ref; it is zero for other kinds.
func (r Ref) TableRef() Ref {
	if r.Kind != KindTable && r.Kind != KindColumn {
		return Ref{}
	}
	return TableRef(r.Database, r.Schema, r.Table)
}

// Path returns the segments of the name, outermost first, without an empty schema.
func (r Ref) Path() []string {
	switch r.Kind {
	case KindTable, KindColumn:
		p := make([]string, 0, 4)
		p = append(p, r.Database)
		if r.Schema != "" {
			p = append(p, r.Schema)
		}
		p = append(p, r.Table)
		if r.Kind == KindColumn {
			p = append(p, r.Column)
		}
		return p
	case KindMetric, KindRelationship, KindQuery:
		return []string{r.Name}
	}
	return nil
}

// String writes the name as database.schema.table.column, without the schema where there is none, and as kind:NAME
// for the other kinds. A segment that would read ambiguously is double-quoted. A zero Ref is "".
func (r Ref) String() string {
	switch r.Kind {
	case KindTable, KindColumn:
		return JoinPath(r.Path())
	case KindMetric, KindRelationship, KindQuery:
		return r.Kind.String() + ":" + r.Name
	}
	return ""
}

// MarshalText encodes the Ref as String does, with the kind in front of tables and columns ("table:a.b"), since the
// text alone does not tell a table in a schema from a column of a table without one.
func (r Ref) MarshalText() ([]byte, error) {
	switch r.Kind {
	case 0:
		return []byte{}, nil
	case KindTable, KindColumn:
		return []byte(r.Kind.String() + ":" + r.String()), nil
	}
	return []byte(r.String()), nil
}

// UnmarshalText decodes what MarshalText wrote.
func (r *Ref) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*r = Ref{}
		return nil
	}
	kind, rest, ok := strings.Cut(string(b), ":")
	k, known := ParseKind(kind)
	if !ok || !known {
		return fmt.Errorf("catalog: %q names no object; write kind:name, as in table:shop.orders", b)
	}
	if k != KindTable && k != KindColumn {
		*r = Ref{Kind: k, Name: rest}
		return nil
	}
	path, err := SplitPath(rest)
	if err != nil {
		return err
	}
	got, ok := refFromPath(k, path)
	if !ok {
		return fmt.Errorf("catalog: %q has %d segments, which fits no %s", b, len(path), k)
	}
	*r = got
	return nil
}

// refFromPath reads a path as a table (database.table or database.schema.table) or as a column with one more segment.
func refFromPath(k Kind, path []string) (Ref, bool) {
	n := len(path)
	switch {
	case k == KindTable && n == 2:
		return TableRef(path[0], "", path[1]), true
	case k == KindTable && n == 3:
		return TableRef(path[0], path[1], path[2]), true
	case k == KindColumn && n == 3:
		return ColumnRef(path[0], "", path[1], path[2]), true
	case k == KindColumn && n == 4:
		return ColumnRef(path[0], path[1], path[2], path[3]), true
	}
	return Ref{}, false
}

// JoinPath joins segments with dots, and double-quotes each segment that SplitPath would otherwise read differently.
func JoinPath(segments []string) string {
	var b strings.Builder
	for i, s := range segments {
		if i > 0 {
			b.WriteByte('.')
		}
		if needsQuotes(s) {
			b.WriteByte('"')
			b.WriteString(strings.ReplaceAll(s, `"`, `""`))
			b.WriteByte('"')
		} else {
			b.WriteString(s)
		}
	}
	return b.String()
}

func needsQuotes(s string) bool {
	return s == "" || strings.ContainsAny(s, ".*\":\x00\n\r\t") || s[0] == ' ' || s[len(s)-1] == ' '
}

// SplitPath splits a dotted name into its segments. A segment in double quotes is taken literally, with "" for a quote.
func SplitPath(s string) ([]string, error) {
	segments, _, err := SplitPattern(s)
	return segments, err
}

// SplitPattern is SplitPath for patterns: literal[i] reports whether segment i was quoted, so that a star in it is only
// a star.
func SplitPattern(s string) (segments []string, literal []bool, err error) {
	rest := s
	for {
		var seg string
		quoted := strings.HasPrefix(rest, `"`)
		if quoted {
			end := 1
			for {
				i := strings.IndexByte(rest[end:], '"')
				if i < 0 {
					return nil, nil, fmt.Errorf("name %q: a quoted segment does not end", s)
				}
				end += i + 1
				if end < len(rest) && rest[end] == '"' {
					end++
					continue
				}
				break
			}
			seg = strings.ReplaceAll(rest[1:end-1], `""`, `"`)
			rest = rest[end:]
			if rest != "" && rest[0] != '.' {
				return nil, nil, fmt.Errorf("name %q: expected a dot after a quoted segment", s)
			}
		} else {
			i := strings.IndexByte(rest, '.')
			if i < 0 {
				i = len(rest)
			}
			seg, rest = rest[:i], rest[i:]
			if seg == "" {
				return nil, nil, fmt.Errorf("name %q has an empty segment; write \"\" where a name really is empty", s)
			}
			if strings.Contains(seg, `"`) {
				return nil, nil, fmt.Errorf("name %q: quotes must enclose a whole segment", s)
			}
		}
		segments, literal = append(segments, seg), append(literal, quoted)
		if rest == "" {
			return segments, literal, nil
		}
		rest = rest[1:]
	}
}
