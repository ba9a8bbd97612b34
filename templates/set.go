// Package templates says how a catalog object reads: as text to embed, search and rerank (Set.Render), and as context
// for whoever writes SQL (DDL, Join, Metric, Query). It shows what it is given, so objects must come governed.
//
// Text of the catalog is data. Wherever it is written it is one line without control characters, and in a context for
// SQL it stands behind a comment sign; only names, quoted, and types of a plain shape stand in front of one.
package templates

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/schemagate/schemagate/catalog"
)

//go:embed *.tmpl
var files embed.FS

// MaxTokens is what every rendering stays below, by Counter's count, so that no embedder or reranker cuts it.
const MaxTokens = 512

// maxBytes bounds what a template may write before it is cut.
const maxBytes = 64 << 10

// Dialects tells the dialect of a database by its name.
type Dialects func(database string) catalog.Dialect

// Set is a template for each kind of object. It is safe for concurrent use.
type Set struct {
	templates map[catalog.Kind]*template.Template
	version   string
	counter   *Counter
}

// New returns the built-in templates, with some kinds' replaced by the texts in overrides. Those are tried on a full
// and an empty object first: a template must parse, use only fields that its kind has, and write the object's name.
//
// A template sees strings, empty where the object says nothing:
//
//	table         Name Description Synonyms Tags Owner Database Columns Rows Updates, and the boolean SQLView
//	column        Name Description Synonyms Tags Owner Database Type Samples Nulls Distinct Keys
//	metric        Name Description Synonyms Tags Owner Formula Sources Columns Dimensions Time Unit Aggregation Filters
//	relationship  Name Description Synonyms Tags Owner Condition Cardinality Evidence Usage
//	query         Name Description Synonyms Tags Owner Question Tables Columns Joins Aggregations Filters Count LastRun
func New(overrides map[catalog.Kind]string) (*Set, error) {
	s := &Set{templates: map[catalog.Kind]*template.Template{}, counter: NewCounter()}
	for k := range overrides {
		if k.String() == "invalid" {
			return nil, fmt.Errorf("templates: kind %d has no template to override", uint8(k))
		}
	}
	hash := sha256.New()
	for _, k := range catalog.Kinds {
		text, overridden := overrides[k]
		if !overridden {
			b, err := files.ReadFile(k.String() + ".tmpl")
			if err != nil {
				return nil, fmt.Errorf("templates: %w", err)
			}
			text = string(b)
		}
		t, err := template.New(k.String() + ".tmpl").Parse(text)
		if err != nil {
			return nil, fmt.Errorf("templates: template for a %s does not parse: %w", k, err)
		}
		s.templates[k] = t
		if err := s.probe(k); err != nil {
			return nil, err
		}
		fmt.Fprintf(hash, "%s %d\n%s", k, len(text), text)
	}
	s.version = hex.EncodeToString(hash.Sum(nil))
	return s, nil
}

// Version is the hex SHA-256 of the texts of the templates.
func (s *Set) Version() string { return s.version }

// probe renders a full object and one with nothing but a name.
func (s *Set) probe(k catalog.Kind) error {
	full, bare := probes(k)
	for _, o := range []*catalog.Object{full, bare} {
		text, err := s.Render(o, func(string) catalog.Dialect { return catalog.SQLite }, 3)
		if err != nil {
			return err
		}
		if !strings.Contains(text, "probe_") {
			return fmt.Errorf("templates: template for a %s does not write its name within %d tokens; begin it with {{.Name}}", k, MaxTokens-1)
		}
	}
	return nil
}

func probes(k catalog.Kind) (full, bare *catalog.Object) {
	table := catalog.TableRef("db", "", "probe_table")
	column := catalog.ColumnRef("db", "", "probe_table", "probe_column")
	number, share := int64(7), 0.5
	full = &catalog.Object{Description: "text", Synonyms: []string{"text"}, Tags: []string{"text"}, Owner: "text"}
	bare = &catalog.Object{}
	switch k {
	case catalog.KindTable:
		full.Ref, full.Table = table, &catalog.Table{SQLView: "text", UpdateFrequency: "text", Rows: &number}
		bare.Table = &catalog.Table{}
	case catalog.KindColumn:
		full.Ref, full.Column = column, &catalog.Column{
			Type: "text", PrimaryKey: true, ForeignKeys: []catalog.Ref{column}, Samples: []string{"text"}, NullShare: &share, Distinct: &number,
		}
		bare.Column = &catalog.Column{}
	case catalog.KindMetric:
		full.Ref, full.Metric = catalog.MetricRef("probe_metric"), &catalog.Metric{
			Formula: "text", Sources: []catalog.Ref{table}, Columns: []catalog.Ref{column}, Dimensions: []catalog.Ref{column}, Time: column,
			Unit: "text", Aggregation: "text", Filters: []string{"text"},
		}
		bare.Metric = &catalog.Metric{}
	case catalog.KindRelationship:
		full.Ref, full.Relationship = catalog.RelationshipRef("probe_join"), &catalog.Relationship{
			From: []catalog.Ref{column}, To: []catalog.Ref{column}, Type: catalog.DocumentedRelationship, Cardinality: catalog.ManyToOne,
			JoinSQL: "text", Validated: true, Usage: number,
		}
		bare.Relationship = &catalog.Relationship{From: full.Relationship.From, To: full.Relationship.To}
	case catalog.KindQuery:
		full.Ref, full.Query = catalog.QueryRef("probe_query"), &catalog.Query{
			Question: "probe_question", Tables: []catalog.Ref{table}, Columns: []catalog.Ref{column}, JoinPattern: "text",
			Aggregations: []string{"text"}, Filters: []catalog.Ref{column}, Count: number, LastRun: time.Unix(0, 0),
		}
		bare.Query = &catalog.Query{}
	}
	bare.Ref = full.Ref
	return full, bare
}

// Render writes an object as text of fewer than MaxTokens tokens. columns is the number of a table's columns that
// the reader may see; it means nothing for other kinds. A name that cannot be quoted is shown without what makes it so.
func (s *Set) Render(o *catalog.Object, dialects Dialects, columns int) (string, error) {
	t, ok := s.templates[o.Ref.Kind]
	if !ok {
		return "", fmt.Errorf("templates: %q is no object to render", o.Ref)
	}
	fields, err := s.fields(o, dialects, columns)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := t.Execute(&limited{&b}, fields); err != nil {
		return "", fmt.Errorf("templates: render %s: %w", o.Ref, err)
	}
	return s.counter.Cut(strings.TrimSpace(strings.ToValidUTF8(b.String(), "")), MaxTokens-1), nil
}

type limited struct{ *bytes.Buffer }

var errTooLong = errors.New("the template writes too much; show fewer fields")

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxBytes {
		return 0, errTooLong
	}
	return l.Buffer.Write(p)
}

// common holds the fields of every kind.
type common struct {
	Name, Description, Synonyms, Tags, Owner string
}

type tableFields struct {
	common
	Database, Columns, Rows, Updates string
	SQLView                          bool
}

type columnFields struct {
	common
	Database, Type, Samples, Nulls, Distinct, Keys string
}

type metricFields struct {
	common
	Formula, Sources, Columns, Dimensions, Time, Unit, Aggregation, Filters string
}

type relationshipFields struct {
	common
	Condition, Cardinality, Evidence, Usage string
}

type queryFields struct {
	common
	Question, Tables, Columns, Joins, Aggregations, Filters, Count, LastRun string
}

// fields cuts each field to a share of MaxTokens, so that no long one crowds out the others.
func (s *Set) fields(o *catalog.Object, dialects Dialects, columns int) (any, error) {
	cut := func(text string, limit int) string { return s.counter.Cut(clean(text), limit) }
	list := func(items []string, limit int) string { return cut(strings.Join(items, ", "), limit) }
	refs := func(refs []catalog.Ref, limit int) string {
		names := make([]string, len(refs))
		for i, r := range refs {
			names[i] = readableName(dialects(r.Database), r)
		}
		return list(names, limit)
	}
	all := common{
		Name: cut(o.Ref.Name, 80), Description: cut(o.Description, 140), Synonyms: list(o.Synonyms, 50),
		Tags: list(o.Tags, 40), Owner: cut(o.Owner, 15),
	}
	switch {
	case o.Table != nil:
		all.Name = refs([]catalog.Ref{o.Ref}, 100)
		f := tableFields{common: all, Database: cut(o.Ref.Database, 30), Updates: cut(o.Table.UpdateFrequency, 15), SQLView: o.Table.SQLView != ""}
		if columns > 0 {
			f.Columns = humanize.Comma(int64(columns))
		}
		if o.Table.Rows != nil {
			f.Rows = humanize.Comma(*o.Table.Rows)
		}
		return f, nil
	case o.Column != nil:
		// The bare name of the table sets a column apart sooner than a long path does.
		d := dialects(o.Ref.Database)
		all.Name = cut(readablePart(d, o.Ref.Table), 45) + "." + cut(readablePart(d, o.Ref.Column), 45)
		f := columnFields{common: all, Database: cut(o.Ref.Database, 30), Type: cut(o.Column.Type, 20)}
		var samples []string
		for _, v := range o.Column.Samples {
			if v := cut(v, 16); v != "" && len(samples) < maxSamples {
				samples = append(samples, v)
			}
		}
		f.Samples = list(samples, 80)
		if n := o.Column.NullShare; n != nil {
			f.Nulls = percent(*n)
		}
		if o.Column.Distinct != nil {
			f.Distinct = humanize.Comma(*o.Column.Distinct)
		}
		var keys []string
		if o.Column.PrimaryKey {
			keys = append(keys, "primary key")
		}
		if len(o.Column.ForeignKeys) > 0 {
			keys = append(keys, "points at "+refs(o.Column.ForeignKeys, 50))
		}
		f.Keys = list(keys, 60)
		return f, nil
	case o.Metric != nil:
		m := o.Metric
		f := metricFields{
			common: all, Formula: cut(m.Formula, 80), Sources: refs(m.Sources, 40), Columns: refs(m.Columns, 40), Dimensions: refs(m.Dimensions, 30),
			Unit: cut(m.Unit, 10), Aggregation: cut(m.Aggregation, 10), Filters: cut(strings.Join(m.Filters, " AND "), 40),
		}
		if !m.Time.IsZero() {
			f.Time = refs([]catalog.Ref{m.Time}, 30)
		}
		return f, nil
	case o.Relationship != nil:
		r := o.Relationship
		pairs := make([]string, len(r.From))
		for i := range r.From {
			pairs[i] = refs(r.From[i:i+1], 75) + " = " + refs(r.To[i:i+1], 75)
		}
		all.Name = cut(strings.Join(pairs, " AND "), 160)
		f := relationshipFields{
			common: all, Condition: cut(r.JoinSQL, 70), Cardinality: strings.ReplaceAll(cut(string(r.Cardinality), 10), "_", " "),
			Evidence: evidence(r),
		}
		if r.Usage > 0 {
			f.Usage = humanize.Comma(r.Usage)
		}
		return f, nil
	case o.Query != nil:
		q := o.Query
		f := queryFields{
			common: all, Question: cut(q.Question, 100), Tables: refs(q.Tables, 70), Columns: refs(q.Columns, 80),
			Joins: cut(q.JoinPattern, 60), Aggregations: list(q.Aggregations, 25), Filters: refs(q.Filters, 40),
		}
		if q.Count > 0 {
			f.Count = humanize.Comma(q.Count)
		}
		if !q.LastRun.IsZero() {
			f.LastRun = q.LastRun.UTC().Format(time.DateOnly)
		}
		return f, nil
	}
	return nil, fmt.Errorf("templates: %s carries no fields", o.Ref)
}

// evidence says in words what a relationship rests on.
func evidence(r *catalog.Relationship) string {
	var words string
	switch r.Type {
	case catalog.ForeignKeyRelationship:
		words = "a declared key"
	case catalog.DocumentedRelationship:
		words = "documentation"
	case catalog.ObservedRelationship:
		words = "past queries"
	default:
		return ""
	}
	if r.Validated {
		words += ", validated"
	}
	return words
}

// percent writes a share to a tenth, and never rounds to nothing or all what is neither.
func percent(share float64) string {
	switch p := 100 * share; {
	case p > 0 && p < 0.1:
		return "under 0.1%"
	case p > 99.9 && p < 100:
		return "over 99.9%"
	default:
		return strings.TrimSuffix(strconv.FormatFloat(p, 'f', 1, 64), ".0") + "%"
	}
}

// readableName is QualifiedName for text that nobody runs: a name that SQL cannot hold is shown cleaned.
func readableName(d catalog.Dialect, r catalog.Ref) string {
	name, err := QualifiedName(d, r)
	if err != nil {
		return clean(r.String())
	}
	return name
}

// readablePart is readableName of one part of a name.
func readablePart(d catalog.Dialect, name string) string {
	quoted, err := Quote(d, name)
	if err != nil {
		return clean(catalog.JoinPath([]string{name}))
	}
	return quoted
}
