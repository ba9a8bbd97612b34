// Command recipe trains the ranker on one training set, measures it on the other, and the other way round, beside
// retrieval.Rank on the same questions and catalog. With --out it then learns from both and writes the model.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
	"github.com/schemagate/schemagate/retrieval/rank"
	"github.com/schemagate/schemagate/retrieval/rank/boost"
)

// sets are what may be learned from; each is measured by what the other taught.
var sets = [...]string{"bird_train", "spider_train"}

func main() {
	bench := flag.String("bench", os.Getenv("SCHEMAGATE_BENCH"), "folder with the question sets")
	out := flag.String("out", "", "file to write a model to that learned from both sets")
	catalogs := flag.Int("catalogs", 40, "catalogs to learn from, drawn from each set")
	questions := flag.Int("questions", 120, "questions to learn from in each catalog")
	twinned := flag.Float64("twins", 0.1, "share of the catalogs in which every database has a near-twin")
	every := flag.Int("every", 4, "measure on every so manyth question")
	seed := flag.Uint64("seed", 1, "of all that is drawn")
	config := rank.DefaultConfig
	flag.IntVar(&config.Trees, "trees", config.Trees, "trees of each part of the model")
	flag.IntVar(&config.Leaves, "leaves", config.Leaves, "leaves of each tree")
	flag.Parse()
	if err := run(context.Background(), *bench, *out, *catalogs, *questions, *every, *seed, *twinned, config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bench, out string, catalogs, questions, every int, seed uint64, twinned float64, config boost.Config) error {
	start := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%6.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	progress := func(s string) { say("%s", s) }
	lessons := map[string][]rank.Lesson{}
	for _, set := range sets {
		l, err := draw(ctx, bench, set, catalogs, questions, seed, twinned)
		if err != nil {
			return err
		}
		lessons[set] = l
		say("%d catalogs of %s", len(l), set)
	}
	fmt.Println("| measured on | learned from | questions | table R@1 / 5 / 20 | column R@10 | hit@1 | MRR | localisation |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for i, set := range sets {
		from := sets[1-i]
		m, err := rank.Train(ctx, lessons[from], config, seed, progress)
		if err != nil {
			return err
		}
		for _, setting := range [...]string{"", namesOnly, withTwins} {
			if err := measure(ctx, bench, set, from, setting, every, m); err != nil {
				return err
			}
			say("measured on %s", set)
		}
	}
	if out == "" {
		return nil
	}
	m, err := rank.Train(ctx, slices.Concat(lessons[sets[0]], lessons[sets[1]]), config, seed, progress)
	if err != nil {
		return err
	}
	data, err := m.MarshalBinary()
	if err != nil {
		return err
	}
	return os.WriteFile(out, data, 0o644)
}

// draw makes catalogs of 3 to all databases of a set, some without descriptions and samples, each with questions.
func draw(ctx context.Context, bench, set string, catalogs, questions int, seed uint64, twinned float64) ([]rank.Lesson, error) {
	asked, err := ingest.Questions(bench, set)
	if err != nil {
		return nil, err
	}
	byDatabase := map[string][]ingest.Question{}
	for _, q := range asked {
		if len(q.GoldTables) > 0 {
			byDatabase[strings.ToLower(q.DB)] = append(byDatabase[strings.ToLower(q.DB)], q)
		}
	}
	r := rand.New(rand.NewPCG(seed, 2))
	var variants []ingest.Content
	for i, b := range [...]ingest.Bench{{}, {NamesOnly: true}, {DropDescriptions: 0.5}} {
		b.Dir, b.Set, b.Seed = bench, set, seed+uint64(i)
		c, err := b.Read(ctx, nil)
		if err != nil {
			return nil, err
		}
		variants = append(variants, c)
	}
	var out []rank.Lesson
	for range catalogs {
		c := variants[r.IntN(len(variants))]
		all := slices.Clone(c.Databases)
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		n := int(3 * math.Pow(float64(len(all))/3, r.Float64()))
		if r.Float64() < twinned {
			c = twins(c, seed)
		}
		if r.IntN(2) == 0 {
			c = unobserved(c)
		}
		s, err := build(c, all[:n])
		if err != nil {
			return nil, err
		}
		l := rank.Lesson{Index: local.New(s), View: acl.Everything(s)}
		var pool []ingest.Question
		for _, d := range all[:n] {
			pool = append(pool, byDatabase[strings.ToLower(d.Name)]...)
		}
		r.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
		known := names(s)
		for _, q := range pool[:min(questions, len(pool))] {
			if e := example(known, q); len(e.Tables) > 0 {
				l.Examples = append(l.Examples, e)
			}
		}
		out = append(out, l)
	}
	return out, nil
}

// twins adds to each database another that lacks a fifth of its tables and columns, as an older or narrower edition
// would. Questions are never about twins, so that a ranker must see what those lack: a twin's name has the same words,
// and comes first as often as last.
func twins(c ingest.Content, seed uint64) ingest.Content {
	r := rand.New(rand.NewPCG(seed, 3))
	gone := map[catalog.Ref]bool{}
	for _, o := range c.Objects {
		if o.Ref.Kind <= catalog.KindColumn && r.Float64() < 0.2 {
			gone[o.Ref] = true
		}
	}
	names := map[string]string{}
	for _, d := range c.Databases {
		if names[d.Name] = "_" + d.Name; r.IntN(2) == 0 {
			names[d.Name] = d.Name + "_"
		}
	}
	move := func(refs []catalog.Ref) (out []catalog.Ref) {
		for _, ref := range refs {
			ref.Database = names[ref.Database]
			out = append(out, ref)
		}
		return out
	}
	out := ingest.Content{Databases: slices.Clone(c.Databases), Objects: slices.Clone(c.Objects)}
	for _, d := range c.Databases {
		d.Name = names[d.Name]
		out.Databases = append(out.Databases, d)
	}
	for _, o := range c.Objects {
		if slices.ContainsFunc(o.Names(), func(ref catalog.Ref) bool { return gone[ref] || gone[ref.TableRef()] }) {
			continue
		}
		switch {
		case o.Table != nil:
			o.Table = narrowed(&o, gone)
			for i := range o.Table.ForeignKeys {
				o.Table.ForeignKeys[i].To.Database = names[o.Ref.Database]
			}
			o.Ref.Database = names[o.Ref.Database]
		case o.Column != nil:
			column := *o.Column
			column.ForeignKeys = nil
			o.Column = &column
			o.Ref.Database = names[o.Ref.Database]
		case o.Relationship != nil:
			relationship := *o.Relationship
			relationship.From, relationship.To, relationship.Mentions = move(relationship.From), move(relationship.To), nil
			o.Relationship = &relationship
			o.Ref.Name += " of the twin"
		}
		out.Objects = append(out.Objects, o)
	}
	return out
}

// unobserved leaves out the joins that were seen in statements. Those of the questions' own answers are among them, so
// that a model which always has them trusts joins too much.
func unobserved(c ingest.Content) ingest.Content {
	c.Objects = slices.DeleteFunc(slices.Clone(c.Objects), func(o catalog.Object) bool {
		return o.Relationship != nil && o.Relationship.Type == catalog.ObservedRelationship
	})
	return c
}

// narrowed is a table without the keys that need what is gone.
func narrowed(o *catalog.Object, gone map[catalog.Ref]bool) *catalog.Table {
	lacks := func(table catalog.Ref, columns []string) bool {
		return gone[table] || slices.ContainsFunc(columns, func(c string) bool {
			return gone[catalog.ColumnRef(table.Database, table.Schema, table.Table, c)]
		})
	}
	t := &catalog.Table{Rows: o.Table.Rows}
	if !lacks(o.Ref, o.Table.PrimaryKey) {
		t.PrimaryKey = o.Table.PrimaryKey
	}
	for _, k := range o.Table.ForeignKeys {
		if !lacks(o.Ref, k.Columns) && !lacks(k.To, k.ToColumns) {
			t.ForeignKeys = append(t.ForeignKeys, k)
		}
	}
	return t
}

// build makes a snapshot of some databases of what was read, with their twins if it has any.
func build(c ingest.Content, databases []catalog.Database) (*catalog.Snapshot, error) {
	in := map[string]bool{}
	for _, d := range databases {
		in[d.Name], in["_"+d.Name], in[d.Name+"_"] = true, true, true
	}
	databases = slices.DeleteFunc(slices.Clone(c.Databases), func(d catalog.Database) bool { return !in[d.Name] })
	var objects []catalog.Object
	for _, o := range c.Objects {
		if !slices.ContainsFunc(o.Names(), func(r catalog.Ref) bool { return !in[r.Database] }) {
			objects = append(objects, o)
		}
	}
	return catalog.Build(databases, objects)
}

// names finds objects by the names that the question sets give them, without regard to case.
func names(s *catalog.Snapshot) map[string]uint32 {
	out := map[string]uint32{}
	for _, k := range [...]catalog.Kind{catalog.KindTable, catalog.KindColumn} {
		for _, o := range s.Objects(k) {
			out[strings.ToLower(strings.Join(o.Ref.Path(), "\x00"))] = o.ID
		}
	}
	return out
}

// example looks the gold objects of a question up. Names that the catalog lacks are left out.
func example(known map[string]uint32, q ingest.Question) rank.Example {
	e := rank.Example{Question: q.Question, Tables: map[uint32]bool{}, Columns: map[uint32]bool{}, Group: q.DB, Database: q.DB}
	find := func(into map[uint32]bool, given []string) {
		for _, name := range given {
			if id, ok := known[strings.ToLower(q.DB+"\x00"+strings.ReplaceAll(name, ".", "\x00"))]; ok {
				into[id] = true
			}
		}
	}
	find(e.Tables, q.GoldTables)
	find(e.Columns, q.GoldColumns)
	return e
}

// figures are sums over questions.
type figures struct {
	r1, r5, r20, c10, hit, mrr, local float64
	questions, withColumns            int
}

func (f *figures) add(e rank.Example, database string, tables, columns []uint32) {
	f.questions++
	f.r1 += recall(e.Tables, tables, 1)
	f.r5 += recall(e.Tables, tables, 5)
	f.r20 += recall(e.Tables, tables, 20)
	if first := slices.IndexFunc(tables, func(id uint32) bool { return e.Tables[id] }); first >= 0 {
		f.mrr += 1 / float64(first+1)
		if first == 0 {
			f.hit++
		}
	}
	if len(e.Columns) > 0 {
		f.withColumns++
		f.c10 += recall(e.Columns, columns, 10)
	}
	if strings.EqualFold(database, e.Database) {
		f.local++
	}
}

func (f *figures) String() string {
	n := float64(f.questions) / 100
	return fmt.Sprintf("%d | %.1f / %.1f / %.1f | %.1f | %.1f | %.3f | %.1f", f.questions, f.r1/n, f.r5/n, f.r20/n,
		f.c10/float64(f.withColumns)*100, f.hit/n, f.mrr/n/100, f.local/n)
}

func recall(gold map[uint32]bool, ranked []uint32, k int) float64 {
	found := 0
	for _, id := range ranked[:min(k, len(ranked))] {
		if gold[id] {
			found++
		}
	}
	return float64(found) / float64(len(gold))
}

// The settings beside the plain one in which a model is measured.
const (
	namesOnly = ", names only"
	withTwins = ", every database with a twin"
)

// measure compares the model with plain ranking over all databases of a set.
func measure(ctx context.Context, bench, set, from, setting string, every int, m *rank.Model) error {
	asked, err := ingest.Questions(bench, set)
	if err != nil {
		return err
	}
	c, err := ingest.Bench{Dir: bench, Set: set, NamesOnly: setting == namesOnly}.Read(ctx, nil)
	if err != nil {
		return err
	}
	if setting == withTwins {
		c = twins(c, 1)
	}
	s, err := catalog.Build(c.Databases, c.Objects)
	if err != nil {
		return err
	}
	x, v, known := local.New(s), acl.Everything(s), names(s)
	ranker := rank.New(m, x, s)
	var plain, learned figures
	var took time.Duration
	for i := 0; i < len(asked); i += every {
		e := example(known, asked[i])
		if len(e.Tables) == 0 {
			continue
		}
		p := retrieval.Rank(e.Question, x, v)
		database := ""
		if len(p.Databases) > 0 {
			database = p.Databases[0].Name
		}
		plain.add(e, database, scored(p.Tables), scored(p.Columns))
		before := time.Now()
		j := ranker.Judge(e.Question, v)
		took += time.Since(before)
		database = ""
		if len(j.Databases) > 0 {
			database = j.Databases[0].Name
		}
		learned.add(e, database, judged(j.Tables), judged(j.Columns))
	}
	what := set + setting
	fmt.Printf("| %s | nothing (Rank) | %s |\n", what, &plain)
	fmt.Printf("| %s | %s | %s |\n", what, from, &learned)
	fmt.Fprintf(os.Stderr, "         %.1f ms a question\n", float64(took.Microseconds())/float64(learned.questions)/1000)
	return nil
}

func scored(list []retrieval.Scored) []uint32 {
	out := make([]uint32, len(list))
	for i, x := range list {
		out[i] = x.ID
	}
	return out
}

func judged(list []rank.Judged) []uint32 {
	out := make([]uint32, len(list))
	for i, x := range list {
		out[i] = x.ID
	}
	return out
}
