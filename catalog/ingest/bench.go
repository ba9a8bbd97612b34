package ingest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/schemagate/schemagate/catalog"
)

// Bench is a benchmark's schema, from the files SET.schema.jsonl[.gz] in Dir. Sets that share a schema file, as
// sede_test and sede_val do, find it under their common name.
type Bench struct {
	Dir, Set string
	// NamesOnly leaves out all that is not declared structure: descriptions, other names, samples and statistics.
	// Types, keys and seen joins stay.
	NamesOnly bool
	// DropDescriptions is the share of descriptions to leave out, 0 to 1, chosen by Seed and the column's name.
	DropDescriptions float64
	Seed             uint64
}

type benchColumn struct {
	DB           string            `json:"db"`
	Table        string            `json:"table"`
	Column       string            `json:"column"`
	Type         string            `json:"type"`
	NaturalName  string            `json:"natural_name"`
	NaturalTable string            `json:"natural_table"`
	Description  string            `json:"description"`
	Samples      []json.RawMessage `json:"sample_values"`
	Distinct     *int64            `json:"unique_count"`
	NullShare    *float64          `json:"null_fraction"`
	TableRows    *int64            `json:"table_rows"`
	PrimaryKey   bool              `json:"is_pk"`
	ForeignKeys  []string          `json:"fk_to"`
	JoinSeen     map[string]int64  `json:"join_seen"`
}

// Read reads the schema. A column that stands twice in its table under the dialect's rules is read once.
func (b Bench) Read(ctx context.Context, progress func(string)) (Content, error) {
	set, err := b.schema()
	if err != nil {
		return Content{}, err
	}
	dialect, err := benchDialect(set)
	if err != nil {
		return Content{}, err
	}
	if progress != nil {
		progress("reading the schema of " + set)
	}
	r := benchReader{Bench: b, dialect: dialect, schemas: set == "spider2_snow", tables: map[catalog.Ref]*relation{}, columns: map[catalog.Ref]*benchColumn{}}
	err = readLines(b.Dir, set+".schema.jsonl", func(line []byte) error {
		c := new(benchColumn)
		if err := json.Unmarshal(line, c); err != nil {
			return err
		}
		if c.DB == "" || c.Table == "" || c.Column == "" {
			return errors.New("a column needs db, table and column")
		}
		r.add(c)
		return ctx.Err()
	})
	if err != nil {
		return Content{}, err
	}
	joins := r.link()
	var content Content
	seen := map[string]bool{}
	for _, rel := range r.order {
		if name := rel.object.Ref.Database; !seen[name] {
			seen[name] = true
			content.Databases = append(content.Databases, catalog.Database{Name: name, Dialect: dialect})
		}
	}
	content.Objects = append(flatten(r.order), joins...)
	return content, nil
}

// schema finds the set whose schema file serves b.Set.
func (b Bench) schema() (string, error) {
	for set := b.Set; set != ""; {
		if _, err := benchFile(b.Dir, set+".schema.jsonl"); err == nil {
			return set, nil
		}
		i := strings.LastIndexByte(set, '_')
		if i < 0 {
			break
		}
		set = set[:i]
	}
	return "", fmt.Errorf("no %s.schema.jsonl or .gz in %s; check the directory and the name of the set", b.Set, b.Dir)
}

func benchDialect(set string) (catalog.Dialect, error) {
	switch {
	case set == "spider2_snow":
		return catalog.Snowflake, nil
	case strings.HasPrefix(set, "bird"), strings.HasPrefix(set, "spider"):
		return catalog.SQLite, nil
	case set == "sede":
		return catalog.TSQL, nil
	case set == "text2sql_data":
		return catalog.MySQL, nil
	}
	return "", fmt.Errorf("no dialect is known for the set %q", set)
}

type benchReader struct {
	Bench
	dialect catalog.Dialect
	schemas bool // table names carry a schema in front
	order   []*relation
	tables  map[catalog.Ref]*relation    // by RefKey
	columns map[catalog.Ref]*benchColumn // by RefKey
}

func (r *benchReader) add(c *benchColumn) {
	ref := catalog.TableRef(c.DB, "", c.Table)
	if schema, table, ok := strings.Cut(c.Table, "."); ok && r.schemas {
		ref.Schema, ref.Table = schema, table
	}
	rel := r.tables[r.dialect.RefKey(ref)]
	if rel == nil {
		rel = newRelation(ref, "")
		if !r.NamesOnly {
			rel.object.Table.Rows = c.TableRows
			rel.object.Synonyms = otherName(c.NaturalTable, ref.Table)
		}
		r.tables[r.dialect.RefKey(ref)] = rel
		r.order = append(r.order, rel)
	}
	ref = rel.object.Ref
	key := r.dialect.RefKey(catalog.ColumnRef(ref.Database, ref.Schema, ref.Table, c.Column))
	if r.columns[key] != nil {
		return
	}
	r.columns[key] = c
	if c.PrimaryKey {
		rel.object.Table.PrimaryKey = append(rel.object.Table.PrimaryKey, c.Column)
	}
	if r.NamesOnly {
		rel.add(c.Column, "", holdsOther, catalog.Column{Type: c.Type})
		return
	}
	if r.dropped(key) {
		c.Description = ""
	}
	var values []string
	for _, v := range c.Samples {
		if text, ok := benchValue(v); ok {
			values = append(values, text)
		}
	}
	rel.add(c.Column, c.Description, holdsOther, catalog.Column{Type: c.Type, Samples: samples(values), NullShare: c.NullShare, Distinct: c.Distinct})
	rel.columns[len(rel.columns)-1].Synonyms = otherName(c.NaturalName, c.Column)
}

// dropped draws for one column, whatever the order of the file.
func (r *benchReader) dropped(key catalog.Ref) bool {
	if r.DropDescriptions <= 0 {
		return false
	}
	h := fnv.New64a()
	io.WriteString(h, key.String()) // a hash never fails
	return rand.New(rand.NewPCG(r.Seed, h.Sum64())).Float64() < r.DropDescriptions
}

// benchValue is a sample value as text; numbers stay as they are written.
func benchValue(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if string(raw) == "null" {
		return "", false
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, true
	}
	return string(raw), true
}

// otherName is a synonym, unless it says the same words as the name.
func otherName(natural, name string) []string {
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, s)
	}
	if natural == "" || letters(natural) == letters(name) {
		return nil
	}
	return []string{natural}
}

// link writes foreign keys onto their tables and returns the joins that were seen in statements. A reference to a
// column that the schema does not hold is left out.
func (r *benchReader) link() []catalog.Object {
	byName := map[string]catalog.Ref{} // database, table.column
	name := func(database, column string) string { return strings.ToLower(database + "\x00" + column) }
	for _, rel := range r.order {
		for _, o := range rel.columns {
			table := o.Ref.Table
			if o.Ref.Schema != "" {
				table = o.Ref.Schema + "." + table
			}
			byName[name(o.Ref.Database, table+"."+o.Ref.Column)] = o.Ref
		}
	}
	var joins []catalog.Object
	seen := map[string]bool{}
	for _, rel := range r.order {
		for _, o := range rel.columns {
			c := r.columns[r.dialect.RefKey(o.Ref)]
			for _, to := range c.ForeignKeys {
				if t, ok := byName[name(o.Ref.Database, to)]; ok {
					rel.object.Table.ForeignKeys = append(rel.object.Table.ForeignKeys, catalog.ForeignKey{
						Columns: []string{o.Ref.Column}, To: t.TableRef(), ToColumns: []string{t.Column},
					})
				}
			}
			for _, other := range slices.Sorted(maps.Keys(c.JoinSeen)) {
				// Both ends tell of a join; one object stands for it.
				from, to := o.Ref, byName[name(o.Ref.Database, other)]
				if to.IsZero() || to == from {
					continue
				}
				if to.String() < from.String() {
					from, to = to, from
				}
				id := from.String() + "=" + to.String()
				if seen[id] {
					continue
				}
				seen[id] = true
				joins = append(joins, catalog.Object{
					Ref:          catalog.RelationshipRef(id),
					Relationship: &catalog.Relationship{From: []catalog.Ref{from}, To: []catalog.Ref{to}, Type: catalog.ObservedRelationship, Usage: c.JoinSeen[other]},
				})
			}
		}
	}
	return joins
}

// Question is one of a benchmark's questions. A field that the set lacks is empty.
type Question struct {
	ID         string `json:"id"`
	DB         string `json:"db"`
	Question   string `json:"question"`
	QuestionDE string `json:"question_de"`
	// Evidence is what the set's authors added so that the question can be answered: BIRD's hints, SEDE's descriptions.
	Evidence   string `json:"evidence"`
	SQL        string `json:"sql"`
	Difficulty string `json:"difficulty"`
	// GoldTables and GoldColumns are "t" and "t.c", in any letter case; without GoldTables there is nothing to
	// compare with.
	GoldTables  []string `json:"gold_tables"`
	GoldColumns []string `json:"gold_columns"`
	// Date is when the question was asked, zero if unknown.
	Date time.Time `json:"-"`
	// User and Decision are a role and PERMIT or DENY, in the sets that are about access.
	User     string `json:"user"`
	Decision string `json:"decision"`
}

// Questions reads SET.questions.jsonl or SET.questions.jsonl.gz in dir, in the file's order.
func Questions(dir, set string) ([]Question, error) {
	var out []Question
	err := readLines(dir, set+".questions.jsonl", func(line []byte) error {
		var q struct {
			Question
			Date string `json:"date"`
		}
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		if q.Date != "" {
			at, err := time.Parse("2006-01-02 15:04:05", q.Date)
			if err != nil {
				return err
			}
			q.Question.Date = at
		}
		out = append(out, q.Question)
		return nil
	})
	return out, err
}

// benchFile finds name or name.gz.
func benchFile(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		path += ".gz"
		_, err = os.Stat(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s or %s.gz in %s; check the directory and the name of the set", fs.ErrNotExist, name, name, dir)
	}
	return path, err
}

// readLines hands each line of a file to one, and puts file and line number before its error.
func readLines(dir, name string, one func([]byte) error) error {
	path, err := benchFile(dir, name)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(f)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		in = z
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := one(lines.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", path, n+1, err)
	}
	return nil
}
