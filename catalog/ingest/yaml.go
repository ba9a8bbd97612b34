package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/schemagate/schemagate/catalog"
)

// overlay is a YAML file of metrics, relationships, past queries and documentation over what other sources hold.
type overlay struct {
	path string
	file overlayFile
}

// located is a value of the file with the line it stands on.
type located[T any] struct {
	value T
	line  int
}

// UnmarshalYAML decodes the node and notes its line.
func (l *located[T]) UnmarshalYAML(n ast.Node) error {
	l.line = lineOf(n)
	return yaml.NodeToValue(n, &l.value, yaml.Strict())
}

func lineOf(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken().Position.Line
	}
	return n.GetToken().Position.Line
}

type overlayFile struct {
	Version       located[int]                `yaml:"version"`
	Tables        []located[yamlTable]        `yaml:"tables"`
	Metrics       []located[yamlMetric]       `yaml:"metrics"`
	Relationships []located[yamlRelationship] `yaml:"relationships"`
	Queries       []located[yamlQuery]        `yaml:"queries"`
}

type documentation struct {
	Description string   `yaml:"description"`
	Synonyms    []string `yaml:"synonyms"`
	Tags        []string `yaml:"tags"`
	Cleared     []string `yaml:"cleared"`
	Owner       string   `yaml:"owner"`
	Domain      string   `yaml:"domain"`
}

type yamlTable struct {
	Ref             located[string] `yaml:"ref"`
	Says            documentation   `yaml:",inline"`
	UpdateFrequency string          `yaml:"update_frequency"`
	Columns         yamlColumns     `yaml:"columns"`
}

// yamlColumns is a mapping from column names, in the file's order.
type yamlColumns []yamlColumn

type yamlColumn struct {
	name located[string]
	says documentation
}

// UnmarshalYAML decodes the mapping.
func (c *yamlColumns) UnmarshalYAML(n ast.Node) error {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return fmt.Errorf("[%d:1] columns is a mapping from column names", lineOf(n))
	}
	for _, v := range m.Values {
		var one yamlColumn
		one.name.line = v.Key.GetToken().Position.Line
		if err := yaml.NodeToValue(v.Key, &one.name.value); err != nil {
			return err
		}
		if err := yaml.NodeToValue(v.Value, &one.says, yaml.Strict()); err != nil {
			return err
		}
		*c = append(*c, one)
	}
	return nil
}

type yamlMetric struct {
	Name        string            `yaml:"name"`
	Synonyms    []string          `yaml:"synonyms"`
	Definition  string            `yaml:"definition"`
	Formula     string            `yaml:"formula"`
	Sources     []located[string] `yaml:"sources"`
	Columns     []located[string] `yaml:"columns"`
	Dimensions  []located[string] `yaml:"dimensions"`
	Time        located[string]   `yaml:"time"`
	Unit        string            `yaml:"unit"`
	Aggregation string            `yaml:"aggregation"`
	Filters     []string          `yaml:"filters"`
	Tags        []string          `yaml:"tags"`
	Owner       string            `yaml:"owner"`
	Domain      string            `yaml:"domain"`
}

type yamlRelationship struct {
	Name        string            `yaml:"name"`
	From        []located[string] `yaml:"from"`
	To          []located[string] `yaml:"to"`
	Cardinality string            `yaml:"cardinality"`
	Description string            `yaml:"description"`
	JoinSQL     string            `yaml:"join_sql"`
	Validated   bool              `yaml:"validated"`
	Usage       int64             `yaml:"usage"`
	Tags        []string          `yaml:"tags"`
	Owner       string            `yaml:"owner"`
	Domain      string            `yaml:"domain"`
}

type yamlQuery struct {
	ID           string            `yaml:"id"`
	Question     string            `yaml:"question"`
	SQL          string            `yaml:"sql"`
	Tables       []located[string] `yaml:"tables"`
	Columns      []located[string] `yaml:"columns"`
	JoinPattern  string            `yaml:"join_pattern"`
	Aggregations []string          `yaml:"aggregations"`
	Filters      []located[string] `yaml:"filters"`
	Count        int64             `yaml:"count"`
	LastRun      string            `yaml:"last_run"`
	Tags         []string          `yaml:"tags"`
	Owner        string            `yaml:"owner"`
	Domain       string            `yaml:"domain"`
}

func openYAML(path string) (*overlay, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, plainPathError(err))
	}
	o := &overlay{path: path}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, o.parseError(err)
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, fmt.Errorf("%s: the file holds %d documents and needs one, which begins with version: 1", path, len(file.Docs))
	}
	if err := yaml.NodeToValue(file.Docs[0].Body, &o.file, yaml.Strict()); err != nil {
		return nil, o.parseError(err)
	}
	if o.file.Version.value != 1 {
		return nil, fmt.Errorf("%s:%d: version must be 1, which is the only format so far", path, max(o.file.Version.line, 1))
	}
	return o, nil
}

var yamlPosition = regexp.MustCompile(`(?s)^\[(\d+):(\d+)\] (.*?)(\n.*)?$`)

// parseError reduces the library's error, which shows an excerpt of the file, to file:line:column: message.
func (o *overlay) parseError(err error) error {
	if m := yamlPosition.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("%s:%s:%s: %s", o.path, m[1], m[2], m[3])
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%s: %s", o.path, first)
}

// Read reports every name in the file, since a file alone has no tables that it could speak of.
func (o *overlay) Read(context.Context, func(string)) (Content, error) {
	base, err := catalog.Build(nil, nil)
	if err != nil {
		return Content{}, err
	}
	var c Content
	return c, o.lay(base, &c)
}

// lay adds to content what the file says; base is content as a snapshot, in which names are looked up.
func (o *overlay) lay(base *catalog.Snapshot, content *Content) error {
	l := layer{file: o.path, base: base, content: content, at: map[catalog.Ref]int{}}
	for i, object := range content.Objects {
		l.at[object.Ref] = i
	}
	for _, t := range o.file.Tables {
		l.table(t)
	}
	for _, m := range o.file.Metrics {
		l.metric(m)
	}
	for _, r := range o.file.Relationships {
		l.relationship(r)
	}
	for _, q := range o.file.Queries {
		l.query(q)
	}
	return errors.Join(l.errs...)
}

// layer collects what one file adds, and all that is wrong with it.
type layer struct {
	file    string
	base    *catalog.Snapshot
	content *Content
	at      map[catalog.Ref]int // index into content.Objects
	errs    []error
}

func (l *layer) fail(line int, format string, args ...any) {
	l.errs = append(l.errs, fmt.Errorf("%s:%d: %s", l.file, line, fmt.Sprintf(format, args...)))
}

func (l *layer) table(t located[yamlTable]) {
	ref, ok := l.resolve(catalog.KindTable, t.value.Ref, t.line)
	if !ok {
		return
	}
	table := &l.content.Objects[l.at[ref]]
	t.value.Says.over(table)
	if t.value.UpdateFrequency != "" {
		table.Table.UpdateFrequency = t.value.UpdateFrequency
	}
	for _, c := range t.value.Columns {
		column, ok := l.base.Lookup(catalog.ColumnRef(ref.Database, ref.Schema, ref.Table, c.name.value))
		if !ok {
			l.fail(c.name.line, "%s has no column %q", ref, c.name.value)
			continue
		}
		c.says.over(&l.content.Objects[l.at[column.Ref]])
	}
}

// over documents an object: what is said replaces a text and adds to a list.
func (d documentation) over(o *catalog.Object) {
	if d.Description != "" {
		o.Description = d.Description
	}
	if d.Owner != "" {
		o.Owner = d.Owner
	}
	if d.Domain != "" {
		o.Domain = d.Domain
	}
	o.Synonyms = union(o.Synonyms, d.Synonyms)
	o.Tags = union(o.Tags, d.Tags)
	o.Cleared = union(o.Cleared, d.Cleared)
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func (l *layer) metric(m located[yamlMetric]) {
	v := m.value
	l.need(m.line, "metric", v.Name, map[string]bool{"name": v.Name != "", "formula": v.Formula != "", "sources": len(v.Sources) > 0})
	o := catalog.Object{
		Ref: catalog.MetricRef(v.Name), Description: v.Definition, Synonyms: v.Synonyms, Tags: v.Tags, Owner: v.Owner, Domain: v.Domain,
		Metric: &catalog.Metric{
			Formula: v.Formula, Unit: v.Unit, Aggregation: v.Aggregation, Filters: v.Filters,
			Sources:    l.resolveAll(catalog.KindTable, v.Sources),
			Columns:    l.resolveAll(catalog.KindColumn, v.Columns),
			Dimensions: l.resolveAll(catalog.KindColumn, v.Dimensions),
		},
	}
	if v.Time.value != "" {
		o.Metric.Time, _ = l.resolve(catalog.KindColumn, v.Time, v.Time.line)
	}
	l.add(m.line, o)
}

func (l *layer) relationship(r located[yamlRelationship]) {
	v := r.value
	l.need(r.line, "relationship", v.Name, map[string]bool{"name": v.Name != "", "from": len(v.From) > 0, "to": len(v.To) > 0})
	if len(v.From) != len(v.To) {
		l.fail(r.line, "relationship %q pairs %d columns with %d", v.Name, len(v.From), len(v.To))
	}
	switch c := catalog.Cardinality(v.Cardinality); c {
	case "", catalog.ManyToOne, catalog.OneToMany, catalog.OneToOne, catalog.ManyToMany:
	default:
		l.fail(r.line, "cardinality %q is none of many_to_one, one_to_many, one_to_one, many_to_many", c)
	}
	l.add(r.line, catalog.Object{
		Ref: catalog.RelationshipRef(v.Name), Description: v.Description, Tags: v.Tags, Owner: v.Owner, Domain: v.Domain,
		Relationship: &catalog.Relationship{
			From: l.resolveAll(catalog.KindColumn, v.From), To: l.resolveAll(catalog.KindColumn, v.To),
			Type: catalog.DocumentedRelationship, Cardinality: catalog.Cardinality(v.Cardinality),
			JoinSQL: v.JoinSQL, Validated: v.Validated, Usage: v.Usage,
		},
	})
}

func (l *layer) query(q located[yamlQuery]) {
	v := q.value
	l.need(q.line, "query", v.ID, map[string]bool{"id": v.ID != "", "question": v.Question != "", "tables": len(v.Tables) > 0})
	var last time.Time
	if v.LastRun != "" {
		var err error
		if last, err = time.Parse(time.DateOnly, v.LastRun); err != nil {
			if last, err = time.Parse(time.RFC3339, v.LastRun); err != nil {
				l.fail(q.line, "last_run %q is neither a date (2026-01-31) nor a time (2026-01-31T10:00:00Z)", v.LastRun)
			}
		}
	}
	l.add(q.line, catalog.Object{
		Ref: catalog.QueryRef(v.ID), Tags: v.Tags, Owner: v.Owner, Domain: v.Domain,
		Query: &catalog.Query{
			Question: v.Question, SQL: v.SQL, JoinPattern: v.JoinPattern, Aggregations: v.Aggregations, Count: v.Count, LastRun: last,
			Tables:  l.resolveAll(catalog.KindTable, v.Tables),
			Columns: l.resolveAll(catalog.KindColumn, v.Columns),
			Filters: l.resolveAll(catalog.KindColumn, v.Filters),
		},
	})
}

// need reports the keys that are missing.
func (l *layer) need(line int, what, name string, present map[string]bool) {
	var missing []string
	for key, ok := range present {
		if !ok {
			missing = append(missing, key)
		}
	}
	if slices.Sort(missing); len(missing) > 0 {
		l.fail(line, "%s %q lacks %s", what, name, strings.Join(missing, ", "))
	}
}

func (l *layer) add(line int, o catalog.Object) {
	if _, twice := l.at[o.Ref]; twice {
		l.fail(line, "%s stands twice", o.Ref)
		return
	}
	l.at[o.Ref] = len(l.content.Objects)
	l.content.Objects = append(l.content.Objects, o)
}

func (l *layer) resolveAll(k catalog.Kind, names []located[string]) []catalog.Ref {
	var out []catalog.Ref
	for _, n := range names {
		if ref, ok := l.resolve(k, n, n.line); ok {
			out = append(out, ref)
		}
	}
	return out
}

// resolve finds the table or column that a name means: by its whole path, or by the end of its path where that is
// enough to tell it from all others.
func (l *layer) resolve(k catalog.Kind, name located[string], line int) (catalog.Ref, bool) {
	line = max(name.line, line)
	if name.value == "" {
		l.fail(line, "the name of a %s is missing", k)
		return catalog.Ref{}, false
	}
	found, err := l.base.Resolve(name.value)
	if err != nil {
		l.fail(line, "%v", err)
		return catalog.Ref{}, false
	}
	for _, o := range found {
		if o.Ref.Kind == k {
			return o.Ref, true
		}
	}
	path, err := catalog.SplitPath(name.value)
	if err != nil {
		l.fail(line, "%v", err)
		return catalog.Ref{}, false
	}
	var ends []catalog.Ref
	objects := l.base.Objects(k)
	for i := range objects {
		if l.endsWith(objects[i].Ref, path) {
			ends = append(ends, objects[i].Ref)
		}
	}
	switch {
	case len(ends) == 1:
		return ends[0], true
	case len(ends) == 0:
		l.fail(line, "no %s is named %s in the sources that were read", k, name.value)
	default:
		l.fail(line, "%s could be %s or %s; write more of the name", name.value, ends[0], ends[1])
	}
	return catalog.Ref{}, false
}

// endsWith reports whether the last segments of r's path are those of path, under the rules of its dialect.
func (l *layer) endsWith(r catalog.Ref, path []string) bool {
	d, _ := l.base.Database(r.Database)
	parts := []catalog.Part{catalog.PartColumn, catalog.PartTable, catalog.PartSchema, catalog.PartDatabase}
	names := []string{r.Column, r.Table, r.Schema, r.Database}
	if r.Kind == catalog.KindTable {
		parts, names = parts[1:], names[1:]
	}
	if r.Schema == "" {
		at := len(parts) - 2
		parts, names = slices.Delete(parts, at, at+1), slices.Delete(names, at, at+1)
	}
	if len(path) > len(names) {
		return false
	}
	for i := range path {
		if want := path[len(path)-1-i]; d.Dialect.Key(parts[i], want) != d.Dialect.Key(parts[i], names[i]) {
			return false
		}
	}
	return true
}
