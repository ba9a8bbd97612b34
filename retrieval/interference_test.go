package retrieval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/lineage"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/embed"
	"github.com/schemagate/schemagate/retrieval/local"
	"github.com/schemagate/schemagate/retrieval/rank"
	"github.com/schemagate/schemagate/templates"
)

// vocabulary is small, so that hidden and visible objects share words, and holds short forms next to long ones.
var vocabulary = strings.Fields(`customer cust cstmr order ord amount amt revenue rev region rgn date dt dte time year number no id name status
	price invoice inv payment employee department territory quantity balance account address city shipped 地区 销售 größe`)

// asides are words that no name holds, but that mean what names say, say what is asked for, or end a clause.
var asides = strings.Fields(`client purchase turnover town staff salary product goods bought money sold delivered how many
	and , Wie viele Kunden Bestellung Umsatz Stadt Mitarbeiter Preis gibt es und nicht die der wann 客户`)

// phrases are what descriptions say between words.
var phrases = []string{"where the customer lives", "the day on which it was sent", "what was bought", "how much is left in the account",
	"who works here", "as a share of all", "in euros before tax", "Stadt, in der die Mitarbeiter arbeiten"}

// world draws catalogs. Every name holds a mark that is found nowhere else, so that it can be searched for.
type world struct {
	t         *rapid.T
	databases []catalog.Database
	objects   []catalog.Object
	tables    []catalog.Ref
	columns   map[catalog.Ref][]catalog.Ref
	marks     int
}

func (w *world) int(least, most int) int { return rapid.IntRange(least, most).Draw(w.t, "n") }
func (w *world) chance(percent int) bool { return w.int(1, 100) <= percent }
func (w *world) word() string            { return rapid.SampledFrom(vocabulary).Draw(w.t, "word") }
func (w *world) words(least, most int) string {
	words := make([]string, w.int(least, most))
	for i := range words {
		words[i] = w.word()
	}
	return strings.Join(words, " ")
}

// mark returns a new word of letters that no vocabulary knows.
func (w *world) mark() string {
	w.marks++
	return "zq" + string(rune('a'+w.marks/676%26)) + string(rune('a'+w.marks/26%26)) + string(rune('a'+w.marks%26)) + "qz"
}

// question draws a question out of the words of names and values, words that mean about the same, and clauses.
func (w *world) question() string {
	words := make([]string, w.int(1, 8))
	for i := range words {
		words[i] = w.word()
		if w.chance(40) {
			words[i] = rapid.SampledFrom(asides).Draw(w.t, "aside")
		}
	}
	text := strings.Join(words, " ")
	if w.chance(30) {
		text += " in " + w.value()
	}
	if w.chance(30) {
		text = rapid.SampledFrom([]string{"when", "where", "who", "how old"}).Draw(w.t, "sort") + " " + text
	}
	return text
}

// value draws what a row may hold. One text of many is written in several columns.
func (w *world) value() string {
	return strings.TrimSpace(rapid.SampledFrom([]string{"Springfield", "Blue", "Köln", "2024"}).Draw(w.t, "value") + " " + w.words(0, 1))
}

func (w *world) name() string {
	return strings.Join([]string{strings.ReplaceAll(w.words(1, 2), " ", "_"), w.mark()}, "_")
}

func (w *world) someColumn(table catalog.Ref) catalog.Ref {
	return rapid.SampledFrom(w.columns[table]).Draw(w.t, "column")
}

func (w *world) someTable() catalog.Ref { return rapid.SampledFrom(w.tables).Draw(w.t, "table") }

func (w *world) describe(o *catalog.Object) {
	if w.chance(50) {
		o.Description = w.words(1, 6)
		if w.chance(40) {
			o.Description += " " + rapid.SampledFrom(phrases).Draw(w.t, "phrase")
		}
	}
	if w.chance(20) {
		o.Synonyms = []string{w.words(1, 2)}
	}
	if w.chance(10) {
		o.Tags = []string{w.word()}
	}
}

func drawWorld(t *rapid.T) *world {
	w := &world{t: t, columns: map[catalog.Ref][]catalog.Ref{}}
	for range w.int(1, 4) {
		dialect := rapid.SampledFrom([]catalog.Dialect{catalog.MySQL, catalog.MySQL, catalog.SQLite, catalog.Postgres, catalog.Snowflake}).Draw(t, "dialect")
		d := catalog.Database{Name: w.name(), Dialect: dialect}
		w.databases = append(w.databases, d)
		schemas := []string{""}
		if dialect == catalog.Postgres || dialect == catalog.Snowflake {
			schemas = []string{w.name(), w.name()}
		}
		for range w.int(1, 5) {
			w.table(catalog.TableRef(d.Name, rapid.SampledFrom(schemas).Draw(t, "schema"), w.name()))
		}
		if w.chance(40) {
			w.copies(catalog.TableRef(d.Name, schemas[0], w.name()))
		}
	}
	w.keys()
	for range w.int(0, 4) {
		w.relationship()
	}
	for range w.int(0, 4) {
		w.metric()
	}
	for range w.int(0, 4) {
		w.query()
	}
	return w
}

func (w *world) table(r catalog.Ref) {
	o := catalog.Object{Ref: r, Table: &catalog.Table{}}
	w.describe(&o)
	if w.chance(50) {
		n := int64(w.int(0, 1e6))
		o.Table.Rows = &n
	}
	w.tables = append(w.tables, r)
	var own []catalog.Object
	for i := range w.int(1, 7) {
		c := catalog.Object{Ref: catalog.ColumnRef(r.Database, r.Schema, r.Table, w.name()), Column: &catalog.Column{Position: i, Type: "integer"}}
		w.describe(&c)
		for range w.int(0, 3) {
			c.Column.Samples = append(c.Column.Samples, w.words(1, 3))
		}
		if w.chance(30) {
			c.Column.Type = rapid.SampledFrom([]string{"text", "date"}).Draw(w.t, "type")
		}
		if w.chance(40) {
			for range w.int(1, 4) {
				c.Column.Dictionary = append(c.Column.Dictionary, w.value())
			}
			slices.Sort(c.Column.Dictionary)
			c.Column.Dictionary = slices.Compact(c.Column.Dictionary)
		}
		if w.chance(30) {
			share, distinct := float64(w.int(0, 10))/10, int64(w.int(1, 1e4))
			c.Column.NullShare, c.Column.Distinct = &share, &distinct
		}
		w.columns[r] = append(w.columns[r], c.Ref)
		own = append(own, c)
	}
	if w.chance(60) {
		for _, c := range w.columns[r][:w.int(1, min(2, len(own)))] {
			o.Table.PrimaryKey = append(o.Table.PrimaryKey, c.Column)
		}
	}
	w.objects = append(append(w.objects, o), own...)
}

// copies adds tables of the same columns whose names differ in a date.
func (w *world) copies(r catalog.Ref) {
	first := len(w.objects)
	r.Table += "_202401"
	name := r.Table
	r.Table = name + "01"
	w.table(r)
	for day := range w.int(1, 3) {
		to := r
		to.Table = fmt.Sprintf("%s%02d", name, day+2)
		w.tables = append(w.tables, to)
		for _, o := range w.objects[first : first+1+len(w.columns[r])] {
			o.Ref.Table = to.Table
			if o.Table != nil {
				t := *o.Table
				o.Table = &t
			} else {
				c := *o.Column
				o.Column = &c
				w.columns[to] = append(w.columns[to], o.Ref)
			}
			w.describe(&o)
			w.objects = append(w.objects, o)
		}
	}
}

// keys declares foreign keys within databases.
func (w *world) keys() {
	for i := range w.objects {
		o := &w.objects[i]
		if o.Table == nil {
			continue
		}
		for range w.int(0, 2) {
			to := w.someTable()
			if to.Database != o.Ref.Database {
				continue
			}
			n := w.int(1, min(2, len(w.columns[to]), len(w.columns[o.Ref])))
			key := catalog.ForeignKey{To: to}
			for j := range n {
				key.Columns = append(key.Columns, w.columns[o.Ref][len(w.columns[o.Ref])-1-j].Column)
				key.ToColumns = append(key.ToColumns, w.columns[to][j].Column)
			}
			o.Table.ForeignKeys = append(o.Table.ForeignKeys, key)
		}
	}
}

// relationship ties two tables of one database, or of two MySQL databases.
func (w *world) relationship() {
	from, to := w.someTable(), w.someTable()
	dialect := map[string]catalog.Dialect{}
	for _, d := range w.databases {
		dialect[d.Name] = d.Dialect
	}
	if from.Database != to.Database && (dialect[from.Database] != catalog.MySQL || dialect[to.Database] != catalog.MySQL) {
		return
	}
	o := catalog.Object{Ref: catalog.RelationshipRef(w.name()), Relationship: &catalog.Relationship{
		From: []catalog.Ref{w.someColumn(from)}, To: []catalog.Ref{w.someColumn(to)},
		Type:        rapid.SampledFrom([]catalog.RelationshipType{catalog.DocumentedRelationship, catalog.ObservedRelationship}).Draw(w.t, "type"),
		Cardinality: rapid.SampledFrom([]catalog.Cardinality{"", catalog.ManyToOne, catalog.OneToMany}).Draw(w.t, "cardinality"),
		Usage:       int64(w.int(0, 9)), Validated: w.chance(50),
	}}
	w.describe(&o)
	w.objects = append(w.objects, o)
}

func (w *world) metric() {
	source := w.someTable()
	of, by := w.someColumn(source), w.someColumn(source)
	m := &catalog.Metric{Formula: "SUM(" + of.Column + ")", Sources: []catalog.Ref{source}, Columns: []catalog.Ref{of}, Unit: w.word()}
	if w.chance(50) {
		m.Time = by
	}
	if w.chance(50) {
		m.Dimensions = []catalog.Ref{by}
	}
	if w.chance(50) {
		m.Filters = []string{w.someColumn(source).Column + " > 0"}
	}
	o := catalog.Object{Ref: catalog.MetricRef(w.name()), Metric: m}
	w.describe(&o)
	w.objects = append(w.objects, o)
}

func (w *world) query() {
	table := w.someTable()
	c := w.someColumn(table)
	q := &catalog.Query{
		Question: w.words(2, 6), SQL: "SELECT " + c.Column + " FROM " + table.Table, Tables: []catalog.Ref{table}, Columns: []catalog.Ref{c},
		Count: int64(w.int(0, 4)), LastRun: today.AddDate(0, 0, -w.int(-1, 90)),
	}
	w.objects = append(w.objects, catalog.Object{Ref: catalog.QueryRef(w.mark()), Query: q})
}

// pattern draws a pattern that covers something.
func (w *world) pattern() string {
	table := w.someTable()
	column := w.someColumn(table)
	var named []string
	for _, o := range w.objects {
		if o.Ref.Kind > catalog.KindColumn {
			named = append(named, o.Ref.String())
		}
	}
	return rapid.SampledFrom(append(named, "*", table.Database, table.String(), table.String(), column.String(), column.String(), column.String())).Draw(w.t, "pattern")
}

func (w *world) patterns(least, most int) []string {
	out := make([]string, w.int(least, most))
	for i := range out {
		out[i] = w.pattern()
	}
	return out
}

// policy draws a policy for principal p, as JSON, which is YAML.
func (w *world) policy() string {
	type object = map[string]any
	grants := []object{{"role": "r", "allow": w.patterns(1, 4), "actions": []string{"view", "query"}}}
	if w.chance(50) {
		grants[0]["allow"] = []string{"*"}
	}
	if w.chance(50) {
		grants = append(grants, object{"role": "r", "allow": w.patterns(1, 3), "actions": []string{"view"}})
	}
	for _, actions := range [][]string{{"view", "query"}, {"query"}} {
		if w.chance(70) {
			grants = append(grants, object{"role": "r", "deny": w.patterns(1, 4), "actions": actions})
		}
	}
	p := object{"version": 1, "principals": object{"p": object{"roles": []string{"r"}}}, "grants": grants}
	var filters, masks []object
	for range w.int(0, 2) {
		filters = append(filters, object{"table": w.someTable().String(), "roles": []string{"r"}, "using": "1 = 1"})
	}
	for range w.int(0, 2) {
		masks = append(masks, object{"column": w.someColumn(w.someTable()).String(), "roles": []string{"r"}, "with": "hash"})
	}
	if filters != nil {
		p["row_filters"] = filters
	}
	if masks != nil {
		p["masks"] = masks
	}
	text, err := json.Marshal(p)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// system is a linker with what it stands on.
type system struct {
	snapshot *catalog.Snapshot
	ranker   *retrieval.Ranker
	linker   *retrieval.Linker
}

var counter = templates.NewCounter()

// newSystem links by words alone.
func newSystem(t fataler, s *catalog.Snapshot, budget int) system {
	t.Helper()
	return systemOf(t, s, &retrieval.Ranker{Index: local.New(s)}, budget)
}

func systemOf(t fataler, s *catalog.Snapshot, r *retrieval.Ranker, budget int) system {
	t.Helper()
	l, err := retrieval.NewLinker(r, lineage.New(s), counter, retrieval.Config{Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	return system{s, r, l}
}

// models are those that the binary carries.
var models = sync.OnceValues(func() (m struct {
	words *embed.Model
	judge *rank.Model
}, err error) {
	if m.words, err = embed.New(); err == nil {
		m.judge, err = rank.Shipped()
	}
	return m, err
})

// fullSystem links by all that there is: words, meanings, values, past questions as of today, and the judge.
func fullSystem(t fataler, s *catalog.Snapshot, budget int) system {
	t.Helper()
	m, err := models()
	if err != nil {
		t.Fatal(err)
	}
	r, err := local.NewRanker(context.Background(), s, m.words)
	if err != nil {
		t.Fatal(err)
	}
	r.Judge, r.Now = rank.New(m.judge, s), func() time.Time { return today }
	return systemOf(t, s, r, budget)
}

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// answer is all that an asker could learn, with refs for ids.
type answer struct {
	Context    retrieval.Context
	Databases  []retrieval.ScoredDatabase
	Candidates []string
	Coverage   float64
}

func (y system) ask(t fataler, question string, v acl.View) answer {
	t.Helper()
	c, err := y.linker.Link(context.Background(), question, v)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Items {
		c.Items[i].ID = 0
	}
	for i := range c.Joins {
		c.Joins[i].ID = 0
	}
	r, err := y.ranker.Rank(context.Background(), question, v)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{Context: c, Databases: r.Databases, Coverage: r.Coverage}
	for _, list := range [][]retrieval.Scored{r.Tables, r.Columns, r.Metrics, r.Relationships, r.Queries} {
		for _, x := range list {
			line := fmt.Sprintf("%s %x %x", y.snapshot.Object(x.ID).Ref, x.Score, x.Own)
			for _, e := range x.Evidence {
				line += fmt.Sprintf(" %q %s %s %x", e.Said, e.Where, y.snapshot.Object(e.By).Ref, e.Score)
			}
			a.Candidates = append(a.Candidates, line)
		}
	}
	return a
}

// onlyQueryable is the catalog in which there is nothing but what the view lets be queried.
func onlyQueryable(t fataler, v acl.View) *catalog.Snapshot {
	t.Helper()
	s, err := catalog.Restrict(v.Snapshot(), func(o *catalog.Object) bool { return v.Queryable(o.ID) }, func(o *catalog.Object) {
		if v.Raw(o.ID) {
			return
		}
		switch {
		case o.Table != nil:
			o.Table.Rows = nil
		case o.Column != nil:
			o.Column.Samples, o.Column.Dictionary, o.Column.NullShare, o.Column.Distinct = nil, nil, nil, nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asIn is the view's right to query, on the catalog that the view stands for.
func asIn(restricted *catalog.Snapshot, v acl.View) acl.View {
	all, query := roaring.New(), roaring.New()
	all.AddRange(0, uint64(restricted.Len()))
	for _, o := range restricted.All() {
		if id, ok := v.Snapshot().ID(o.Ref); ok && v.Queryable(id) {
			query.Add(o.ID)
		}
	}
	return acl.NewView(acl.Principal{}, &acl.Compiled{
		Snapshot: restricted, Raw: all, Allowed: map[acl.Action]*roaring.Bitmap{acl.ActionView: all, acl.ActionQuery: query},
	})
}

// Each case asks several questions under several policies; -rapid.checks=10000 runs ten thousand of them.
func TestWhatAPrincipalMayNotSeeChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		s, err := catalog.Build(w.databases, w.objects)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			policy := w.policy()
			v := compile(t, s, policy)
			restricted, err := v.Restricted()
			if err != nil {
				t.Fatal(err)
			}
			queryable := onlyQueryable(t, v)
			budget := rapid.SampledFrom([]int{200, 500, 5000}).Draw(t, "budget")
			build := fullSystem
			if w.chance(30) {
				build = newSystem
			}
			y, visibleWorld, queryableWorld := build(t, s, budget), build(t, restricted, budget), build(t, queryable, budget)
			for range 2 {
				question := w.question()
				got := y.ask(t, question, v)
				if want := queryableWorld.ask(t, question, acl.Everything(queryable)); !reflect.DeepEqual(got, want) {
					t.Fatalf("%q under\n%s\ngot  %+v\nwant %+v, as without what may not be queried", question, policy, got, want)
				}
				if want := visibleWorld.ask(t, question, asIn(restricted, v)); !reflect.DeepEqual(got, want) {
					t.Fatalf("%q under\n%s\ngot  %+v\nwant %+v, as without what may not be seen", question, policy, got, want)
				}
				namesNothingHidden(t, got, v)
			}
		}
	})
}

// namesNothingHidden searches every byte of an answer for the marks of objects that may not be queried.
func namesNothingHidden(t fataler, a answer, v acl.View) {
	t.Helper()
	text := fmt.Sprintf("%+v", a)
	open := map[string]bool{}
	for _, id := range v.Queryables().ToArray() {
		for _, m := range marksOf(v.Snapshot().Object(id).Ref) {
			open[m] = true
		}
	}
	for _, o := range v.Snapshot().All() {
		for _, m := range marksOf(o.Ref) {
			if !open[m] && strings.Contains(text, m) {
				t.Fatalf("%s is hidden, but %q stands in %s", o.Ref, m, text)
			}
		}
	}
}

func marksOf(r catalog.Ref) []string {
	var out []string
	for _, name := range []string{r.Database, r.Schema, r.Table, r.Column, r.Name} {
		for rest := name; ; {
			i := strings.Index(rest, "zq")
			if i < 0 || len(rest) < i+7 {
				break
			}
			out = append(out, rest[i:i+7])
			rest = rest[i+7:]
		}
	}
	return slices.Compact(out)
}

func compile(t fataler, s *catalog.Snapshot, policy string) acl.View {
	t.Helper()
	p, err := acl.ParsePolicy("policy.yaml", []byte(policy))
	if err != nil {
		t.Fatalf("%v in %s", err, policy)
	}
	e, err := casbin.New(p, s)
	if err != nil {
		t.Fatal(err)
	}
	v, err := e.View("p")
	if err != nil {
		t.Fatal(err)
	}
	return v
}
