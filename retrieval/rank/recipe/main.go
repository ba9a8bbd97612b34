// Command recipe trains the ranker and measures it beside sums of evidence on the same questions and catalog: learned from
// one training set and measured on the other, and learned from the databases that the embedder learned from and measured
// on those that it did not. With --out it then learns from all and writes the model.
//
// A model that learns from vectors must not see questions which the embedder has seen: it would trust them too much.
// So the lessons take two embedders, each made without one half of the databases, and ask only about that half.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"maps"
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
	"github.com/schemagate/schemagate/retrieval/embed"
	"github.com/schemagate/schemagate/retrieval/local"
	"github.com/schemagate/schemagate/retrieval/rank"
	"github.com/schemagate/schemagate/retrieval/rank/boost"
)

// sets are what may be learned from; each is measured by what the other taught.
var sets = [...]string{"bird_train", "spider_train"}

func main() {
	var r recipe
	flag.StringVar(&r.bench, "bench", os.Getenv("SCHEMAGATE_BENCH"), "folder with the question sets")
	flag.StringVar(&r.out, "out", "", "file to write a model to that learned from both sets")
	halves := flag.String("halves", "", "two embedders, a comma between: made without the databases of the first half, and of the second")
	flag.IntVar(&r.catalogs, "catalogs", 120, "catalogs to learn from, drawn from each set")
	flag.IntVar(&r.questions, "questions", 120, "questions to learn from in each catalog")
	flag.Float64Var(&r.twinned, "twins", 0.3, "share of the catalogs in which every database has several editions")
	flag.Float64Var(&r.merged, "merged", 0.3, "share of the catalogs whose databases are schemas of larger ones")
	flag.Float64Var(&r.large, "large", 0.3, "share of the catalogs in which some databases are very large and questions long; they are not merged or twinned otherwise")
	flag.IntVar(&r.every, "every", 2, "measure on every so manyth question")
	flag.Uint64Var(&r.seed, "seed", 1, "of all that is drawn")
	transfer := flag.Bool("transfer", true, "learn from one set and measure on the other")
	heldOut := flag.Bool("held-out", true, "learn from the databases that the embedder learned from and measure on the others")
	r.config = rank.DefaultConfig
	flag.IntVar(&r.config.Trees, "trees", r.config.Trees, "trees of each part of the model")
	flag.IntVar(&r.config.Leaves, "leaves", r.config.Leaves, "leaves of each tree")
	flag.Parse()
	if err := r.run(context.Background(), strings.Split(*halves, ","), *transfer, *heldOut); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type recipe struct {
	bench, out                 string
	catalogs, questions, every int
	twinned, merged, large     float64
	seed                       uint64
	config                     boost.Config
	start                      time.Time
	embedder                   *embed.Model
	halves                     [2]*embed.Model // made without the databases of each half
}

func (r *recipe) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.1fs  %s\n", time.Since(r.start).Seconds(), fmt.Sprintf(format, args...))
}

func (r *recipe) run(ctx context.Context, halves []string, transfer, held bool) error {
	r.start = time.Now()
	var err error
	if r.embedder, err = embed.New(); err != nil {
		return err
	}
	if len(halves) != len(r.halves) {
		return errors.New("recipe: --halves takes two files; retrieval/embed/recipe says how they are made")
	}
	for i, file := range halves {
		if r.halves[i], err = embed.Open(file); err != nil {
			return err
		}
	}
	fmt.Println("| measured on | learned from | questions | table R@1 / 5 / 20 | column R@10 | hit@1 | MRR | localisation |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	if transfer {
		for i, set := range sets {
			from := sets[1-i]
			m, err := r.learn(ctx, func(string) bool { return true }, from)
			if err != nil {
				return err
			}
			if err := r.measureAll(ctx, set, from, m); err != nil {
				return err
			}
		}
	}
	if held {
		m, err := r.learn(ctx, func(db string) bool { return !heldOut(db) }, sets[:]...)
		if err != nil {
			return err
		}
		for _, set := range sets {
			if err := r.measureAll(ctx, set, "other databases of both", m); err != nil {
				return err
			}
		}
	}
	if r.out == "" {
		return nil
	}
	m, err := r.learn(ctx, func(string) bool { return true }, sets[:]...)
	if err != nil {
		return err
	}
	data, err := m.MarshalBinary()
	if err != nil {
		return err
	}
	return os.WriteFile(r.out, data, 0o644)
}

// heldOut reports whether the embedder did not learn from a database.
func heldOut(db string) bool { return checksum(db)%5 == 0 }

// half is the half of the databases that one belongs to.
func half(db string) int { return int(checksum(db) % 2) }

func checksum(db string) uint32 { return crc32.ChecksumIEEE([]byte(strings.ToLower(db))) }

// learn trains a model on the databases of some sets that are allowed.
func (r *recipe) learn(ctx context.Context, allowed func(db string) bool, from ...string) (*rank.Model, error) {
	groups := [][]string{}
	for _, set := range from {
		groups = append(groups, []string{set})
	}
	if len(from) > 1 {
		groups = append(groups, from)
	}
	var lessons []rank.Lesson
	for _, sets := range groups {
		m, err := r.read(ctx, sets...)
		if err != nil {
			return nil, err
		}
		l, err := r.draw(ctx, m, allowed)
		if err != nil {
			return nil, err
		}
		lessons = append(lessons, l...)
	}
	r.say("%d catalogs of %s", len(lessons), strings.Join(from, " and "))
	return rank.Train(ctx, lessons, r.config, r.seed, func(s string) { r.say("%s", s) })
}

func (r *recipe) measureAll(ctx context.Context, set, from string, m *rank.Model) error {
	settings := []string{"", namesOnly, inEditions, inGroups, amongAll, besideLarge}
	switch set {
	case "spider_train":
		settings = append(settings, inGerman)
	case "bird_train":
		settings = append(settings, withHints)
	}
	for _, setting := range settings {
		if err := r.measure(ctx, set, from, setting, m); err != nil {
			return err
		}
	}
	r.say("measured on %s", set)
	return nil
}

// How many of the questions of a lesson are asked otherwise, of those that can be.
const (
	hinted  = 0.3  // along with BIRD's hint
	germans = 0.15 // in German
)

// material is what lessons are drawn from: the questions and databases of one set, or of several.
type material struct {
	variants []ingest.Content             // with all there is, names only, half of the descriptions
	asked    map[string][]ingest.Question // by database in small letters
}

// read reads sets. Where two have a database of one name, it is the first set's.
func (r *recipe) read(ctx context.Context, sets ...string) (material, error) {
	m := material{variants: make([]ingest.Content, 3), asked: map[string][]ingest.Question{}}
	for _, set := range sets {
		asked, err := ingest.Questions(r.bench, set)
		if err != nil {
			return m, err
		}
		own := map[string][]ingest.Question{}
		for _, q := range asked {
			if db := strings.ToLower(q.DB); m.asked[db] == nil {
				own[db] = append(own[db], q)
			}
		}
		for i, b := range [...]ingest.Bench{{}, {NamesOnly: true}, {DropDescriptions: 0.5}} {
			b.Dir, b.Set, b.Seed = r.bench, set, r.seed+uint64(i)
			c, err := b.Read(ctx, nil)
			if err != nil {
				return m, err
			}
			c = only(c, slices.DeleteFunc(slices.Clone(c.Databases), func(d catalog.Database) bool { return own[strings.ToLower(d.Name)] == nil }))
			m.variants[i].Databases = append(m.variants[i].Databases, c.Databases...)
			m.variants[i].Objects = append(m.variants[i].Objects, c.Objects...)
		}
		maps.Copy(m.asked, own)
	}
	return m, nil
}

// draw makes catalogs of 3 to all databases, some without descriptions and samples, each with questions about databases of
// one half that are allowed. Each database, however large, is asked about equally often.
func (r *recipe) draw(ctx context.Context, m material, allowed func(db string) bool) ([]rank.Lesson, error) {
	dice := rand.New(rand.NewPCG(r.seed, 2))
	var out []rank.Lesson
	for range r.catalogs {
		c := m.variants[dice.IntN(len(m.variants))]
		all := slices.Clone(c.Databases)
		dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		asksAbout := dice.IntN(2)
		n := int(3 * math.Pow(float64(len(all))/3, dice.Float64()))
		if dice.IntN(2) == 0 {
			c = unobserved(c)
		}
		c = only(c, all[:n])
		home := homesOf(c)
		long := dice.Float64() < r.large
		switch {
		case long:
			c = large(c, dice, home, learning)
		case dice.Float64() < r.merged:
			c = merge(c, dice, home, func() int { return evenSpread(dice) })
		}
		if !long && dice.Float64() < r.twinned {
			c = editions(c, dice.Uint64(), home)
		}
		s, err := catalog.Build(c.Databases, c.Objects)
		if err != nil {
			return nil, err
		}
		ranker, err := local.NewRanker(ctx, s, r.halves[asksAbout])
		if err != nil {
			return nil, err
		}
		l := rank.Lesson{Ranker: ranker, View: acl.Everything(s)}
		byHome := map[string][]rank.Example{}
		known := names(s)
		for _, d := range all[:n] {
			if half(d.Name) != asksAbout || !allowed(d.Name) {
				continue
			}
			for _, q := range m.asked[strings.ToLower(d.Name)] {
				if q.Evidence != "" && dice.Float64() < hinted {
					q.Question += "\n" + q.Evidence
				}
				if q.QuestionDE != "" && dice.Float64() < germans {
					q.Question = q.QuestionDE
				}
				if long && q.QuestionDE != q.Question {
					q = longer(q, m.asked[strings.ToLower(d.Name)], dice, learning)
				}
				if e := example(known, home, q); len(e.Tables) > 0 {
					byHome[e.Database] = append(byHome[e.Database], e)
				}
			}
		}
		l.Examples = evenly(byHome, r.questions, dice)
		out = append(out, l)
	}
	return out, nil
}

// evenly draws examples of all databases in turn.
func evenly(of map[string][]rank.Example, most int, dice *rand.Rand) []rank.Example {
	names := slices.Sorted(maps.Keys(of))
	for _, name := range names {
		list := of[name]
		dice.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	dice.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var out []rank.Example
	for turn := 0; len(out) < most; turn++ {
		before := len(out)
		for _, name := range names {
			if turn < len(of[name]) && len(out) < most {
				out = append(out, of[name][turn])
			}
		}
		if len(out) == before {
			break
		}
	}
	return out
}

// editions puts two to four editions of each database in its place. Each lacks tables and columns of its own, as older or
// narrower ones would, and all have names of the same words, so that only what they lack tells them apart.
func editions(c ingest.Content, seed uint64, home homes) ingest.Content {
	r := rand.New(rand.NewPCG(seed, 3))
	var out ingest.Content
	into := map[string][]string{} // names of the editions, by database
	add := func(edition int, in map[string]bool) {
		gone := map[catalog.Ref]bool{}
		kept := map[string]float64{} // share, by database
		names := map[string]string{}
		for _, d := range c.Databases {
			if !in[d.Name] {
				continue
			}
			kept[d.Name] = 0.5 + 0.45*r.Float64()
			if names[d.Name] = marks[edition] + "_" + d.Name; r.IntN(2) == 0 {
				names[d.Name] = d.Name + "_" + marks[edition]
			}
			into[d.Name] = append(into[d.Name], names[d.Name])
			d.Name = names[d.Name]
			out.Databases = append(out.Databases, d)
		}
		for _, o := range c.Objects {
			if o.Ref.Kind <= catalog.KindColumn && in[o.Ref.Database] && r.Float64() > math.Sqrt(kept[o.Ref.Database]) {
				gone[o.Ref] = true
			}
		}
		for _, o := range c.Objects {
			if slices.ContainsFunc(o.Names(), func(ref catalog.Ref) bool { return !in[ref.Database] || gone[ref] || gone[ref.TableRef()] }) {
				continue
			}
			if o.Table != nil {
				o.Table = narrowed(&o, gone)
			}
			if o.Relationship != nil {
				o.Ref.Name += " of " + marks[edition]
			}
			out.Objects = append(out.Objects, moved(o, func(ref catalog.Ref) catalog.Ref {
				ref.Database = names[ref.Database]
				return ref
			}))
		}
	}
	many := map[string]int{}
	for _, d := range c.Databases {
		many[d.Name] = 2 + r.IntN(len(marks)-1)
	}
	for edition := range marks {
		in := map[string]bool{}
		for _, d := range c.Databases {
			in[d.Name] = edition < many[d.Name]
		}
		add(edition, in)
	}
	for db, at := range home {
		var places []place
		for _, p := range at {
			if into[p.database] == nil { // it is not of the content
				places = append(places, p)
			}
			for _, name := range into[p.database] {
				places = append(places, place{name, p.schema})
			}
		}
		home[db] = places
	}
	return out
}

// marks are what the names of editions have beside that of the database.
var marks = [...]string{"first", "second", "third", "fourth"}

// place is where a database went: a database, or a schema of one.
type place struct{ database, schema string }

// homes are the places of databases, by name in small letters. Of a database in several places each may lack something.
type homes map[string][]place

// homesOf is where the databases of a content are.
func homesOf(c ingest.Content) homes {
	out := homes{}
	for _, d := range c.Databases {
		out[strings.ToLower(d.Name)] = []place{{d.Name, ""}}
	}
	return out
}

// moved is an object with everything that it names moved elsewhere.
func moved(o catalog.Object, to func(catalog.Ref) catalog.Ref) catalog.Object {
	all := func(refs []catalog.Ref) (out []catalog.Ref) {
		for _, ref := range refs {
			out = append(out, to(ref))
		}
		return out
	}
	switch {
	case o.Table != nil:
		t := *o.Table
		t.ForeignKeys = slices.Clone(t.ForeignKeys)
		for i := range t.ForeignKeys {
			t.ForeignKeys[i].To = to(t.ForeignKeys[i].To)
		}
		o.Table, o.Ref = &t, to(o.Ref)
	case o.Column != nil:
		column := *o.Column
		column.ForeignKeys = nil
		o.Column, o.Ref = &column, to(o.Ref)
	case o.Relationship != nil:
		relationship := *o.Relationship
		relationship.From, relationship.To, relationship.Mentions = all(relationship.From), all(relationship.To), nil
		o.Relationship = &relationship
	}
	return o
}

// most is how many databases are merged into one.
const most = 40

// evenSpread draws how many databases make up one: each order of magnitude as often.
func evenSpread(dice *rand.Rand) int { return int(math.Pow(most, dice.Float64())) }

// merge makes databases schemas of larger ones, each of so many as is drawn: what is learned of databases must not depend
// on their size.
func merge(c ingest.Content, dice *rand.Rand, home homes, many func() int) ingest.Content {
	all := slices.Clone(c.Databases)
	dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	out := ingest.Content{}
	for len(all) > 0 {
		n := min(len(all), many())
		name := all[0].Name + "_group"
		for _, d := range all[:n] {
			home[strings.ToLower(d.Name)] = []place{{name, d.Name}}
		}
		d := all[0]
		d.Name, d.Dialect = name, catalog.Postgres
		out.Databases = append(out.Databases, d)
		all = all[n:]
	}
	for _, o := range c.Objects {
		out.Objects = append(out.Objects, moved(o, func(ref catalog.Ref) catalog.Ref {
			at := home[strings.ToLower(ref.Database)][0]
			ref.Database, ref.Schema = at.database, at.schema
			return ref
		}))
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

// only keeps some databases.
func only(c ingest.Content, databases []catalog.Database) ingest.Content {
	in := map[string]bool{}
	for _, d := range databases {
		in[d.Name] = true
	}
	out := ingest.Content{Databases: slices.Clone(databases)}
	for _, o := range c.Objects {
		if !slices.ContainsFunc(o.Names(), func(r catalog.Ref) bool { return !in[r.Database] }) {
			out.Objects = append(out.Objects, o)
		}
	}
	return out
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

// example looks the gold objects of a question up. It has no tables if no place holds all that is known anywhere of the
// answer, or several do.
func example(known map[string]uint32, home homes, q ingest.Question) rank.Example {
	var out rank.Example
	gold := map[string]bool{} // what is known anywhere
	most, of := 0, 0
	for _, at := range home[strings.ToLower(q.DB)] {
		e := rank.Example{Question: q.Question, Tables: map[uint32]bool{}, Columns: map[uint32]bool{}, Group: q.DB, Database: at.database}
		within := at.database
		if at.schema != "" {
			within += "\x00" + at.schema
		}
		find := func(into map[uint32]bool, given []string) {
			for _, name := range given {
				if id, ok := known[strings.ToLower(within+"\x00"+strings.ReplaceAll(name, ".", "\x00"))]; ok {
					into[id] = true
					gold[strings.ToLower(name)] = true
				}
			}
		}
		find(e.Tables, q.GoldTables)
		find(e.Columns, q.GoldColumns)
		switch n := len(e.Tables) + len(e.Columns); {
		case n > most:
			out, most, of = e, n, 1
		case n == most:
			of++
		}
	}
	if of != 1 || most < len(gold) {
		return rank.Example{}
	}
	return out
}

// figures are sums over questions.
type figures struct {
	r1, r5, r20, c10, hit, mrr, local float64
	questions, withColumns            int
}

func (f *figures) add(e rank.Example, r retrieval.Ranking) {
	tables := ids(r.Tables)
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
		f.c10 += recall(e.Columns, ids(r.Columns), 10)
	}
	if len(r.Databases) > 0 && strings.EqualFold(r.Databases[0].Name, e.Database) {
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
	namesOnly   = ", names only"
	inEditions  = ", in editions"
	inGroups    = ", grouped, in editions"
	withHints   = ", with hints"
	inGerman    = ", in German"
	amongAll    = ", among the databases of both sets"
	besideLarge = ", beside large databases"
)

// measure compares the model with sums of evidence over all databases of a set, by questions about those that the embedder
// did not learn from.
func (r *recipe) measure(ctx context.Context, set, from, setting string, model *rank.Model) error {
	asked, err := ingest.Questions(r.bench, set)
	if err != nil {
		return err
	}
	asked = slices.DeleteFunc(asked, func(q ingest.Question) bool { return !heldOut(q.DB) })
	among := []string{set}
	if setting == amongAll || setting == inGroups || setting == besideLarge {
		among = sets[:]
	}
	m, err := r.read(ctx, among...)
	if err != nil {
		return err
	}
	c := m.variants[0]
	if setting == namesOnly {
		c = m.variants[1]
	}
	home := homesOf(c)
	dice := rand.New(rand.NewPCG(1, 4))
	switch setting {
	case inGroups:
		c = merge(c, dice, home, func() int { return evenSpread(dice) })
	case besideLarge:
		c = large(c, dice, home, measuring)
	}
	if setting == inEditions || setting == inGroups {
		c = editions(c, 1, home)
	}
	s, err := catalog.Build(c.Databases, c.Objects)
	if err != nil {
		return err
	}
	sums, err := local.NewRanker(ctx, s, r.embedder)
	if err != nil {
		return err
	}
	judged := sums.With(rank.New(model, s))
	v, known := acl.Everything(s), names(s)
	var plain, learned figures
	var took time.Duration
	var examples []rank.Example
	byHome := map[string][]rank.Example{}
	for i, q := range asked {
		switch setting {
		case withHints:
			q.Question += "\n" + q.Evidence
		case inGerman:
			q.Question = q.QuestionDE
		case besideLarge:
			q = longer(q, m.asked[strings.ToLower(q.DB)], dice, measuring)
		}
		e := example(known, home, q)
		if len(e.Tables) == 0 || q.Question == "" {
			continue
		}
		if setting == inGroups || setting == besideLarge {
			byHome[e.Database] = append(byHome[e.Database], e)
		} else if i%r.every == 0 {
			examples = append(examples, e)
		}
	}
	if len(byHome) > 0 {
		examples = evenly(byHome, len(asked)/r.every, rand.New(rand.NewPCG(1, 5)))
	}
	for _, e := range examples {
		ranking, err := sums.Rank(ctx, e.Question, v)
		if err != nil {
			return err
		}
		plain.add(e, ranking)
		before := time.Now()
		if ranking, err = judged.Rank(ctx, e.Question, v); err != nil {
			return err
		}
		took += time.Since(before)
		learned.add(e, ranking)
	}
	fmt.Printf("| %s | nothing (sums) | %s |\n", set+setting, &plain)
	fmt.Printf("| %s | %s | %s |\n", set+setting, from, &learned)
	r.say("%.1f ms a question", float64(took.Microseconds())/float64(learned.questions)/1000)
	return nil
}

func ids(list []retrieval.Scored) []uint32 {
	out := make([]uint32, len(list))
	for i, x := range list {
		out[i] = x.ID
	}
	return out
}
