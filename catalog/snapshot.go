package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Database is a database that a catalog describes.
type Database struct {
	Name    string  `json:"name"`
	Dialect Dialect `json:"dialect"`
	// DefaultSchema is the schema of a table whose statement names none; empty where the engine has no schemas.
	DefaultSchema string `json:"default_schema,omitempty"`
}

// Snapshot is an immutable catalog. Its objects carry dense ids from 0: tables first, then columns (those of one table
// side by side, in the table's order), metrics, relationships and past queries, so that a set of objects is a bitmap
// and a table's columns are a range. A Snapshot is safe for concurrent use.
type Snapshot struct {
	databases []Database
	dialect   map[string]Dialect
	objects   []Object
	start     [len(Kinds) + 1]uint32 // start[i] is the first id of Kinds[i]; the last entry is the number of objects
	columns   []Range                // by table id
	byKey     map[Ref]uint32
	version   string
}

// Range is a half-open range of object ids.
type Range struct{ From, To uint32 }

// Len returns the number of ids in the range.
func (r Range) Len() int { return int(r.To - r.From) }

// Build orders the objects, numbers them and checks that they hang together: every column has its table, every name
// stands once under its dialect's rules, and everything that a metric, relationship or past query names exists.
// Relationships are added for declared foreign keys that have none, and what a formula or statement mentions is added
// to the columns that its object names, so that visibility never rests on a list that somebody forgot to extend.
// All faults are reported, joined. Build takes ownership of the objects.
func Build(databases []Database, objects []Object) (*Snapshot, error) {
	s := &Snapshot{databases: slices.Clone(databases), dialect: map[string]Dialect{}}
	slices.SortFunc(s.databases, func(a, b Database) int { return cmp.Compare(a.Name, b.Name) })
	var errs []error
	for _, d := range s.databases {
		if _, twice := s.dialect[d.Name]; twice {
			errs = append(errs, fmt.Errorf("catalog: database %q is described twice", d.Name))
		}
		if _, err := ParseDialect(string(d.Dialect)); err != nil {
			errs = append(errs, fmt.Errorf("catalog: database %q: %w", d.Name, err))
		}
		s.dialect[d.Name] = d.Dialect
	}
	objects, err := declareRelationships(s, objects)
	if err != nil {
		errs = append(errs, err)
	}
	s.objects = objects
	slices.SortStableFunc(s.objects, s.compare)
	s.number()
	for i := range s.objects {
		if err := s.admit(&s.objects[i]); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	mentions := newMentions(s)
	for i := range s.objects {
		mentions.complete(&s.objects[i])
	}
	for i := range s.objects {
		o := &s.objects[i]
		for _, r := range s.references(o) {
			if _, ok := s.ID(r); !ok {
				errs = append(errs, fmt.Errorf("catalog: %s names %s, which the catalog does not hold", o.Ref, r))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s.version, err = s.digest()
	return s, err
}

func (s *Snapshot) compare(a, b Object) int {
	if c := cmp.Compare(a.Ref.Kind, b.Ref.Kind); c != 0 {
		return c
	}
	position := func(o Object) int {
		if o.Column == nil {
			return 0
		}
		return o.Column.Position
	}
	return cmp.Or(
		cmp.Compare(a.Ref.Database, b.Ref.Database), cmp.Compare(a.Ref.Schema, b.Ref.Schema),
		cmp.Compare(a.Ref.Table, b.Ref.Table), cmp.Compare(position(a), position(b)),
		cmp.Compare(a.Ref.Column, b.Ref.Column), cmp.Compare(a.Ref.Name, b.Ref.Name),
	)
}

func (s *Snapshot) number() {
	s.byKey = make(map[Ref]uint32, len(s.objects))
	for i := range s.start {
		s.start[i] = uint32(len(s.objects))
	}
	for i := len(s.objects) - 1; i >= 0; i-- {
		s.objects[i].ID = uint32(i)
		if k := s.objects[i].Ref.Kind; k != 0 && int(k) <= len(Kinds) {
			for j := 0; j < int(k); j++ {
				s.start[j] = min(s.start[j], uint32(i))
			}
		}
	}
	// A kind without objects starts where the next one does.
	for j := len(Kinds) - 1; j >= 0; j-- {
		s.start[j] = min(s.start[j], s.start[j+1])
	}
	tables := s.OfKind(KindTable)
	s.columns = make([]Range, tables.Len())
}

// admit enters one object, in id order, so a column finds its table entered.
func (s *Snapshot) admit(o *Object) error {
	if err := s.checkShape(o); err != nil {
		return err
	}
	key := s.key(o.Ref)
	if other, twice := s.byKey[key]; twice {
		return fmt.Errorf("catalog: %s %s stands twice (also as %s)", o.Ref.Kind, o.Ref, s.objects[other].Ref)
	}
	s.byKey[key] = o.ID
	if o.Ref.Kind != KindColumn {
		return nil
	}
	table, ok := s.ID(o.Ref.TableRef())
	if !ok {
		return fmt.Errorf("catalog: column %s has no table", o.Ref)
	}
	r := &s.columns[table]
	if r.To == 0 {
		*r = Range{o.ID, o.ID}
	}
	if r.To != o.ID {
		return fmt.Errorf("catalog: the columns of %s write its name in different ways", o.Ref.TableRef())
	}
	r.To++
	return nil
}

func (s *Snapshot) checkShape(o *Object) error {
	set := map[Kind]bool{
		KindTable: o.Table != nil, KindColumn: o.Column != nil, KindMetric: o.Metric != nil,
		KindRelationship: o.Relationship != nil, KindQuery: o.Query != nil,
	}
	for k, present := range set {
		if present != (k == o.Ref.Kind) {
			return fmt.Errorf("catalog: %q is a %s but carries the fields of another kind, or none", o.Ref, o.Ref.Kind)
		}
	}
	switch o.Ref.Kind {
	case KindTable, KindColumn:
		if o.Ref.Database == "" || o.Ref.Table == "" || (o.Ref.Kind == KindColumn) != (o.Ref.Column != "") || o.Ref.Name != "" {
			return fmt.Errorf("catalog: %q is no complete name of a %s", o.Ref, o.Ref.Kind)
		}
		if _, ok := s.dialect[o.Ref.Database]; !ok {
			return fmt.Errorf("catalog: %s lies in a database that is not described", o.Ref)
		}
	default:
		if o.Ref.Name == "" || o.Ref.Database != "" || o.Ref.Table != "" {
			return fmt.Errorf("catalog: %q is no complete name of a %s", o.Ref, o.Ref.Kind)
		}
	}
	switch r := o.Relationship; {
	case o.Metric != nil && len(o.Metric.Sources) == 0:
		return fmt.Errorf("catalog: %s has no source table", o.Ref)
	case o.Query != nil && len(o.Query.Tables) == 0:
		return fmt.Errorf("catalog: %s names no table", o.Ref)
	case r != nil && (len(r.From) == 0 || len(r.From) != len(r.To)):
		return fmt.Errorf("catalog: %s pairs %d columns with %d", o.Ref, len(r.From), len(r.To))
	}
	if r := o.Relationship; r != nil {
		for i := range r.From {
			if r.From[i].Kind != KindColumn || r.To[i].Kind != KindColumn ||
				r.From[i].TableRef() != r.From[0].TableRef() || r.To[i].TableRef() != r.To[0].TableRef() {
				return fmt.Errorf("catalog: each end of %s must be columns of one table", o.Ref)
			}
		}
	}
	return nil
}

// references lists what must exist for the object to make sense.
func (s *Snapshot) references(o *Object) []Ref {
	switch {
	case o.Table != nil:
		var refs []Ref
		own := func(c string) Ref { return ColumnRef(o.Ref.Database, o.Ref.Schema, o.Ref.Table, c) }
		for _, c := range o.Table.PrimaryKey {
			refs = append(refs, own(c))
		}
		for _, key := range o.Table.UniqueKeys {
			for _, c := range key {
				refs = append(refs, own(c))
			}
		}
		return refs
	case o.Column != nil:
		return nil
	}
	return o.Names()
}

// declareRelationships turns declared foreign keys into relationship objects and writes primary and foreign keys of
// tables onto their columns. A key that points outside the catalog is dropped: it says nothing that a reader could use.
func declareRelationships(s *Snapshot, objects []Object) ([]Object, error) {
	type pair struct{ from, to string }
	index := map[Ref]int{}
	known := map[pair]bool{}
	ends := func(from, to []Ref) pair {
		join := func(refs []Ref) string {
			var b strings.Builder
			for _, r := range refs {
				b.WriteString(s.key(r).String())
				b.WriteByte(0)
			}
			return b.String()
		}
		return pair{join(from), join(to)}
	}
	for i, o := range objects {
		if o.Ref.Kind == KindTable || o.Ref.Kind == KindColumn {
			index[s.key(o.Ref)] = i
		}
		if o.Relationship != nil {
			known[ends(o.Relationship.From, o.Relationship.To)] = true
		}
	}
	var errs []error
	for i, n := 0, len(objects); i < n; i++ {
		t := objects[i].Table
		if t == nil {
			continue
		}
		ref := objects[i].Ref
		own := func(c string) Ref { return ColumnRef(ref.Database, ref.Schema, ref.Table, c) }
		column := func(r Ref) *Column {
			if at, ok := index[s.key(r)]; ok {
				return objects[at].Column
			}
			return nil
		}
		for _, name := range t.PrimaryKey {
			if c := column(own(name)); c != nil {
				c.PrimaryKey = true
			}
		}
		t.ForeignKeys = slices.DeleteFunc(t.ForeignKeys, func(fk ForeignKey) bool {
			if len(fk.Columns) == 0 || len(fk.Columns) != len(fk.ToColumns) {
				errs = append(errs, fmt.Errorf("catalog: a foreign key of %s pairs %d columns with %d", ref, len(fk.Columns), len(fk.ToColumns)))
				return true
			}
			var from, to []Ref
			for j := range fk.Columns {
				f, t := own(fk.Columns[j]), ColumnRef(fk.To.Database, fk.To.Schema, fk.To.Table, fk.ToColumns[j])
				if column(f) == nil || column(t) == nil {
					return true
				}
				from, to = append(from, f), append(to, t)
			}
			for j := range from {
				c := column(from[j])
				if !slices.Contains(c.ForeignKeys, to[j]) {
					c.ForeignKeys = append(c.ForeignKeys, to[j])
				}
			}
			if e := ends(from, to); !known[e] {
				known[e] = true
				objects = append(objects, Object{
					Ref: RelationshipRef(keyName(from, to)),
					Relationship: &Relationship{
						From: from, To: to, Type: ForeignKeyRelationship, Cardinality: keyCardinality(t, fk.Columns), Validated: true,
					},
				})
			}
			return false
		})
	}
	return objects, errors.Join(errs...)
}

// keyName names a declared key after its ends, since names of constraints repeat across databases.
func keyName(from, to []Ref) string {
	name := from[0].String()
	for _, r := range from[1:] {
		name += "," + r.Column
	}
	return name + "->" + to[0].TableRef().String()
}

// keyCardinality is one_to_one if the key's columns cannot repeat.
func keyCardinality(t *Table, columns []string) Cardinality {
	covers := func(key []string) bool {
		return len(key) > 0 && !slices.ContainsFunc(key, func(c string) bool { return !slices.Contains(columns, c) })
	}
	if covers(t.PrimaryKey) || slices.ContainsFunc(t.UniqueKeys, covers) {
		return OneToOne
	}
	return ManyToOne
}

// mentions finds the tables and columns that a piece of SQL could mean, by the words in it and too many rather than
// too few.
type mentions struct {
	s      *Snapshot
	tables map[string][]uint32 // lower-cased table name
}

func newMentions(s *Snapshot) *mentions {
	m := &mentions{s: s, tables: map[string][]uint32{}}
	for _, o := range s.Objects(KindTable) {
		name := strings.ToLower(o.Ref.Table)
		m.tables[name] = append(m.tables[name], o.ID)
	}
	return m
}

func (m *mentions) complete(o *Object) {
	switch {
	case o.Metric != nil:
		text := strings.Join(append([]string{o.Metric.Formula}, o.Metric.Filters...), "\n")
		o.Metric.Columns = m.columns(text, o.Metric.Sources, o.Metric.Columns)
	case o.Query != nil && o.Query.SQL != "":
		o.Query.Tables = m.addTables(o.Query.SQL, o.Query.Tables)
		o.Query.Columns = m.columns(o.Query.SQL, o.Query.Tables, o.Query.Columns)
	}
}

func (m *mentions) addTables(sql string, listed []Ref) []Ref {
	out := slices.Clone(listed)
	databases := map[string]bool{}
	for _, t := range listed {
		databases[t.Database] = true
	}
	named := map[Ref]bool{}
	for _, r := range listed {
		named[m.s.key(r)] = true
	}
	for word := range words(sql) {
		// A name that a listed table bears means that table, not its namesakes elsewhere.
		if slices.ContainsFunc(listed, func(r Ref) bool { return strings.EqualFold(r.Table, word) }) {
			continue
		}
		for _, id := range m.tables[word] {
			r := m.s.objects[id].Ref
			if databases[r.Database] && !named[m.s.key(r)] {
				named[m.s.key(r)] = true
				out = append(out, r)
			}
		}
	}
	sortRefs(out[len(listed):])
	return out
}

func (m *mentions) columns(text string, tables, listed []Ref) []Ref {
	out := slices.Clone(listed)
	named := map[Ref]bool{}
	for _, r := range listed {
		named[m.s.key(r)] = true
	}
	said := words(text)
	for _, t := range tables {
		id, ok := m.s.ID(t)
		if !ok {
			continue
		}
		for _, c := range m.s.Columns(id) {
			// A name with other characters than a word's is looked for whole.
			name := strings.ToLower(c.Ref.Column)
			if !named[m.s.key(c.Ref)] && (said[name] || !isWord(name) && strings.Contains(strings.ToLower(text), name)) {
				named[m.s.key(c.Ref)] = true
				out = append(out, c.Ref)
			}
		}
	}
	sortRefs(out[len(listed):])
	return out
}

func words(text string) map[string]bool {
	said := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !isWordRune(r) }) {
		said[w] = true
	}
	return said
}

func isWordRune(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !isWordRune(r) })
}

func sortRefs(refs []Ref) {
	slices.SortFunc(refs, func(a, b Ref) int { return cmp.Compare(a.String(), b.String()) })
}

func (s *Snapshot) digest() (string, error) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	if err := enc.Encode(s.databases); err != nil {
		return "", fmt.Errorf("catalog: digest: %w", err)
	}
	for i := range s.objects {
		if err := enc.Encode(&s.objects[i]); err != nil {
			return "", fmt.Errorf("catalog: digest of %s: %w", s.objects[i].Ref, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (s *Snapshot) key(r Ref) Ref { return s.dialect[r.Database].RefKey(r) }

// Version is the hex SHA-256 of the content: equal catalogs have equal versions, whatever order they were built in.
func (s *Snapshot) Version() string { return s.version }

// Databases returns the databases, by name.
func (s *Snapshot) Databases() []Database { return s.databases }

// Database returns a database by its exact name.
func (s *Snapshot) Database(name string) (Database, bool) {
	i, ok := slices.BinarySearchFunc(s.databases, name, func(d Database, n string) int { return cmp.Compare(d.Name, n) })
	if !ok {
		return Database{}, false
	}
	return s.databases[i], true
}

// Len is the number of objects; ids are 0 to Len-1.
func (s *Snapshot) Len() int { return len(s.objects) }

// Object returns the object with that id. It panics if the id is not of this snapshot.
func (s *Snapshot) Object(id uint32) *Object { return &s.objects[id] }

// OfKind returns the ids of a kind.
func (s *Snapshot) OfKind(k Kind) Range {
	if k == 0 || int(k) > len(Kinds) {
		return Range{}
	}
	return Range{s.start[k-1], s.start[k]}
}

// Objects returns the objects of a kind, in id order.
func (s *Snapshot) Objects(k Kind) []Object {
	r := s.OfKind(k)
	return s.objects[r.From:r.To]
}

// All returns all objects, in id order.
func (s *Snapshot) All() []Object { return s.objects }

// ID finds an object by name, under the case rules of its database.
func (s *Snapshot) ID(r Ref) (uint32, bool) {
	id, ok := s.byKey[s.key(r)]
	return id, ok
}

// Lookup is ID followed by Object.
func (s *Snapshot) Lookup(r Ref) (*Object, bool) {
	id, ok := s.ID(r)
	if !ok {
		return nil, false
	}
	return &s.objects[id], true
}

// ColumnIDs returns the ids of a table's columns.
func (s *Snapshot) ColumnIDs(table uint32) Range { return s.columns[table] }

// Columns returns a table's columns in its own order.
func (s *Snapshot) Columns(table uint32) []Object {
	r := s.columns[table]
	return s.objects[r.From:r.To]
}

// TableOf returns the table of a column.
func (s *Snapshot) TableOf(column uint32) uint32 {
	id, _ := s.ID(s.objects[column].Ref.TableRef())
	return id
}

// Resolve finds the objects that a dotted name or a kind:NAME could mean: a path of three segments may be a table in
// a schema or a column of a table without one.
func (s *Snapshot) Resolve(name string) ([]*Object, error) {
	if kind, _, ok := strings.Cut(name, ":"); ok && !strings.Contains(kind, `"`) {
		if _, known := ParseKind(kind); known {
			var r Ref
			if err := r.UnmarshalText([]byte(name)); err != nil {
				return nil, err
			}
			if o, ok := s.Lookup(r); ok {
				return []*Object{o}, nil
			}
			return nil, nil
		}
	}
	path, err := SplitPath(name)
	if err != nil {
		return nil, err
	}
	var found []*Object
	for _, k := range []Kind{KindTable, KindColumn} {
		if r, ok := refFromPath(k, path); ok {
			if o, ok := s.Lookup(r); ok {
				found = append(found, o)
			}
		}
	}
	return found, nil
}
