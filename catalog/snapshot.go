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
	tied      map[string][]Ref    // relationships by their ends
	wholes    map[uint32][]uint32 // by partition, the tables that have it
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
	for i := range objects {
		if objects[i].Ref.Kind.String() == "invalid" {
			errs = append(errs, fmt.Errorf("catalog: object %q is of no kind", objects[i].Ref.Name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
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
	s.wholes = map[uint32][]uint32{}
	for _, o := range s.Objects(KindTable) {
		for _, p := range o.Table.Partitions {
			if part, ok := s.ID(p); ok && part != o.ID {
				s.wholes[part] = append(s.wholes[part], o.ID)
			}
		}
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
	s.tied = map[string][]Ref{}
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
	if r := o.Relationship; r != nil {
		e := s.ends(r.From, r.To)
		s.tied[e] = append(s.tied[e], o.Ref)
	}
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
		if o.Ref.Name == "" || o.Ref != (Ref{Kind: o.Ref.Kind, Name: o.Ref.Name}) {
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
	return checkKinds(o)
}

// checkKinds reports a table where a metric or past query must name a column, or the other way round.
func checkKinds(o *Object) error {
	var tables, columns []Ref
	switch {
	case o.Metric != nil:
		tables = o.Metric.Sources
		columns = slices.Concat(o.Metric.Columns, o.Metric.Dimensions)
		if !o.Metric.Time.IsZero() {
			columns = append(columns, o.Metric.Time)
		}
	case o.Query != nil:
		tables = o.Query.Tables
		columns = slices.Concat(o.Query.Columns, o.Query.Filters)
	}
	for _, r := range tables {
		if r.Kind != KindTable {
			return fmt.Errorf("catalog: %s names %s as a table, which is a %s", o.Ref, r, r.Kind)
		}
	}
	for _, r := range columns {
		if r.Kind != KindColumn {
			return fmt.Errorf("catalog: %s names %s as a column, which is a %s", o.Ref, r, r.Kind)
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
	index := map[Ref]int{}
	known := map[string]bool{}
	for i, o := range objects {
		if o.Ref.Kind == KindTable || o.Ref.Kind == KindColumn {
			index[s.key(o.Ref)] = i
		}
		if o.Relationship != nil {
			known[s.ends(o.Relationship.From, o.Relationship.To)] = true
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
		column := func(r Ref) *Object {
			if at, ok := index[s.key(r)]; ok && objects[at].Column != nil {
				return &objects[at]
			}
			return nil
		}
		for _, name := range t.PrimaryKey {
			if c := column(own(name)); c != nil {
				c.Column.PrimaryKey = true
			}
		}
		t.ForeignKeys = slices.DeleteFunc(t.ForeignKeys, func(fk ForeignKey) bool {
			if len(fk.Columns) == 0 || len(fk.Columns) != len(fk.ToColumns) {
				errs = append(errs, fmt.Errorf("catalog: a foreign key of %s pairs %d columns with %d", ref, len(fk.Columns), len(fk.ToColumns)))
				return true
			}
			var from, to []Ref
			for j := range fk.Columns {
				f, t := column(own(fk.Columns[j])), column(ColumnRef(fk.To.Database, fk.To.Schema, fk.To.Table, fk.ToColumns[j]))
				if f == nil || t == nil {
					return true
				}
				from, to = append(from, f.Ref), append(to, t.Ref)
			}
			for j := range from {
				c := column(from[j]).Column
				if !slices.Contains(c.ForeignKeys, to[j]) {
					c.ForeignKeys = append(c.ForeignKeys, to[j])
				}
			}
			if e := s.ends(from, to); !known[e] {
				known[e] = true
				var primary []string
				if at, ok := index[s.key(to[0].TableRef())]; ok && objects[at].Table != nil {
					primary = objects[at].Table.PrimaryKey
				}
				objects = append(objects, Object{
					Ref: RelationshipRef(keyName(from, to, primary)),
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

// ends is a text that is the same for two relationships exactly if they pair the same columns in the same order.
func (s *Snapshot) ends(from, to []Ref) string {
	var b strings.Builder
	for _, refs := range [][]Ref{from, to} {
		for _, r := range refs {
			fmt.Fprintf(&b, "%q,", s.key(r).String())
		}
		b.WriteByte(';')
	}
	return b.String()
}

// keyName names a declared key after its ends, since names of constraints repeat across databases. It says which
// columns of the far table are meant unless they are the primary key.
func keyName(from, to []Ref, primary []string) string {
	columns := func(refs []Ref) string {
		names := make([]string, len(refs))
		for i, r := range refs {
			names[i] = JoinPath([]string{r.Column})
		}
		return strings.Join(names, ",")
	}
	name := from[0].TableRef().String() + "." + columns(from) + "->" + to[0].TableRef().String()
	if !slices.EqualFunc(to, primary, func(r Ref, c string) bool { return r.Column == c }) {
		name += "." + columns(to)
	}
	return name
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
	tables map[string][]uint32 // by the first word of the lower-cased name
}

func newMentions(s *Snapshot) *mentions {
	m := &mentions{s: s, tables: map[string][]uint32{}}
	for _, o := range s.Objects(KindTable) {
		word := ""
		if all := wordsOf(o.Ref.Table); len(all) > 0 {
			word = all[0]
		}
		m.tables[word] = append(m.tables[word], o.ID)
	}
	return m
}

func (m *mentions) complete(o *Object) {
	switch {
	case o.Metric != nil:
		sql := newSpoken(append([]string{o.Metric.Formula}, o.Metric.Filters...)...)
		o.Metric.Columns = extend(o.Metric.Columns, m.columnsIn(sql, o.Metric.Sources, o.Metric.Columns))
		o.Metric.Mentions = m.beyond(sql, o.Metric.Sources, o.Metric.Mentions)
	case o.Relationship != nil && o.Relationship.JoinSQL != "":
		r := o.Relationship
		sql := newSpoken(r.JoinSQL)
		ends := []Ref{r.From[0].TableRef(), r.To[0].TableRef()}
		r.Mentions = extend(r.Mentions, m.columnsIn(sql, ends, slices.Concat(r.From, r.To, r.Mentions)))
		r.Mentions = m.beyond(sql, ends, r.Mentions)
	case o.Query != nil:
		sql := newSpoken(append([]string{o.Query.SQL, o.Query.JoinPattern}, o.Query.Aggregations...)...)
		o.Query.Tables = extend(o.Query.Tables, m.tablesIn(sql, o.Query.Tables))
		o.Query.Columns = extend(o.Query.Columns, m.columnsIn(sql, o.Query.Tables, o.Query.Columns))
	}
}

// beyond adds the tables, with their columns, that an expression over some tables could mean besides them. It takes
// one of a few words for an expression to read another table.
func (m *mentions) beyond(sql spoken, tables, listed []Ref) []Ref {
	if !slices.ContainsFunc([]string{"select", "from", "join", "table", "in"}, sql.says) {
		return listed
	}
	others := m.tablesIn(sql, tables)
	found := slices.Concat(others, m.columnsIn(sql, others, nil))
	return extend(listed, slices.DeleteFunc(found, func(r Ref) bool { return m.holds(listed, r) }))
}

func (m *mentions) holds(refs []Ref, r Ref) bool {
	return slices.ContainsFunc(refs, func(l Ref) bool { return m.s.key(l) == m.s.key(r) })
}

// tablesIn returns the tables beyond those listed. A name without a qualifier means a table of a listed database, and
// the listed table of that name if there is one, not its namesakes elsewhere.
func (m *mentions) tablesIn(sql spoken, listed []Ref) []Ref {
	var out []Ref
	for word := range sql.words {
		for _, id := range m.tables[word] {
			r := m.s.objects[id].Ref
			if !sql.says(r.Table) || m.holds(listed, r) {
				continue
			}
			near := slices.ContainsFunc(listed, func(l Ref) bool { return l.Database == r.Database })
			namesake := slices.ContainsFunc(listed, func(l Ref) bool { return strings.EqualFold(l.Table, r.Table) })
			if near && !namesake || !near && sql.says(r.Database) || near && r.Schema != "" && sql.says(r.Schema) {
				out = append(out, r)
			}
		}
	}
	return out
}

// columnsIn returns the columns of tables beyond those listed.
func (m *mentions) columnsIn(sql spoken, tables, listed []Ref) []Ref {
	var out []Ref
	for _, t := range tables {
		id, ok := m.s.ID(t)
		if !ok {
			continue
		}
		for _, c := range m.s.Columns(id) {
			if sql.says(c.Ref.Column) && !m.holds(listed, c.Ref) && !m.holds(out, c.Ref) {
				out = append(out, c.Ref)
			}
		}
	}
	return out
}

// extend returns a new list that holds listed, as it is, and more, in order of name.
func extend(listed, more []Ref) []Ref {
	sortRefs(more)
	return slices.Concat(listed, more)
}

// spoken is SQL taken as a set of words.
type spoken struct {
	text  string
	words map[string]bool // holds "", under which names without any word are found
}

func newSpoken(sql ...string) spoken {
	text := strings.ToLower(strings.Join(sql, "\n"))
	s := spoken{text: text, words: map[string]bool{"": true}}
	for _, w := range wordsOf(text) {
		s.words[w] = true
	}
	// Within quotes, a quote is written twice.
	if once := strings.NewReplacer(`""`, `"`, "``", "`", "]]", "]").Replace(text); once != text {
		s.text += "\n" + once
	}
	return s
}

// says reports whether a name stands in the SQL, whatever its letter case. A name with other characters than a word's
// is looked for whole.
func (s spoken) says(name string) bool {
	name = strings.ToLower(name)
	if strings.ContainsFunc(name, func(r rune) bool { return !isWordRune(r) }) {
		return strings.Contains(s.text, name)
	}
	return s.words[name]
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !isWordRune(r) })
}

func isWordRune(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
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

// PartitionOf returns the tables that have a table among their partitions.
func (s *Snapshot) PartitionOf(table uint32) []uint32 { return s.wholes[table] }

// TablesIn returns the ids of a database's tables, which lie side by side, by schema and then by name.
func (s *Snapshot) TablesIn(database string) Range {
	tables := s.Objects(KindTable)
	from, _ := slices.BinarySearchFunc(tables, database, func(o Object, d string) int { return cmp.Compare(o.Ref.Database, d) })
	to := from
	for to < len(tables) && tables[to].Ref.Database == database {
		to++
	}
	return Range{uint32(from), uint32(to)}
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
