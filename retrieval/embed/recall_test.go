package embed_test

import (
	"cmp"
	"context"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/embed"
	"github.com/schemagate/schemagate/retrieval/local"
)

// The databases whose questions the recipe keeps for measuring, as its data.py chooses them.
func heldOut(db string) bool { return crc32.ChecksumIEEE([]byte(strings.ToLower(db)))%5 == 0 }

// ranked is a set's tables in some order.
type ranked func(question string) []string

// shelf is the tables of the databases that a set asks about. A table goes by "database.table" in small letters.
type shelf struct {
	questions []ingest.Question // of the databases held out
	lexical   ranked
	vector    ranked
}

func open(t *testing.T, dir, set string) shelf {
	t.Helper()
	all, err := ingest.Questions(dir, set)
	if err != nil {
		t.Fatal(err)
	}
	var out shelf
	asked := map[string]bool{}
	for _, q := range all {
		if len(q.GoldTables) == 0 {
			continue
		}
		asked[strings.ToLower(q.DB)] = true
		if heldOut(q.DB) {
			out.questions = append(out.questions, q)
		}
	}
	schema, _, _ := strings.Cut(set, "_train")
	if set == "bird_train" {
		schema = set
	}
	content, err := ingest.Bench{Dir: dir, Set: schema, NamesOnly: true}.Read(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	content.Databases = slices.DeleteFunc(content.Databases, func(d catalog.Database) bool { return !asked[strings.ToLower(d.Name)] })
	content.Objects = slices.DeleteFunc(content.Objects, func(o catalog.Object) bool {
		return o.Ref.Database == "" || !asked[strings.ToLower(o.Ref.Database)]
	})
	s, err := catalog.Build(content.Databases, content.Objects)
	if err != nil {
		t.Fatal(err)
	}
	name := func(r catalog.Ref) string { return strings.ToLower(r.Database + "." + r.Table) }

	index, everything := local.New(s), acl.Everything(s)
	out.lexical = func(question string) []string {
		var names []string
		for _, x := range retrieval.Rank(question, index, everything).Tables {
			names = append(names, name(s.Object(x.ID).Ref))
		}
		return names
	}

	var tables []string
	texts := map[string]string{}
	for i := range content.Objects {
		switch o := &content.Objects[i]; o.Ref.Kind {
		case catalog.KindTable:
			tables = append(tables, name(o.Ref))
			texts[name(o.Ref)] = o.Ref.Table + ":" + texts[name(o.Ref)]
		case catalog.KindColumn:
			texts[name(o.Ref)] += " " + o.Ref.Column + ","
		}
	}
	slices.Sort(tables) // equal tables of several databases come by name
	m, err := embed.New()
	if err != nil {
		t.Fatal(err)
	}
	vectors := map[string][]float32{}
	for table, text := range texts {
		vectors[table] = m.Vector(text)
	}
	out.vector = func(question string) []string {
		type table struct {
			name string
			near float32
		}
		v := m.Vector(question)
		var list []table
		for _, name := range tables {
			list = append(list, table{name, embed.Cosine(v, vectors[name])})
		}
		slices.SortStableFunc(list, func(a, b table) int { return cmp.Compare(b.near, a.near) })
		var names []string
		for _, x := range list[:retrieval.Candidates] {
			names = append(names, x.name)
		}
		return names
	}
	return out
}

// both adds the places of two orders up, the better place counting more (reciprocal rank fusion).
func both(a, b ranked) ranked {
	return func(question string) []string {
		score := map[string]float64{}
		var names []string
		for _, list := range [][]string{a(question), b(question)} {
			for i, name := range list {
				if score[name] == 0 {
					names = append(names, name)
				}
				score[name] += 1 / float64(60+i)
			}
		}
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(score[b], score[a]) })
		return names
	}
}

// most is the number of questions that are measured at most, to take seconds only.
const most = 400

// some takes questions that have the text, from all over the list.
func some(questions []ingest.Question, text func(ingest.Question) string) []ingest.Question {
	var all, out []ingest.Question
	for _, q := range questions {
		if text(q) != "" {
			all = append(all, q)
		}
	}
	step := (len(all) + most - 1) / most
	for i := 0; i < len(all); i += step {
		out = append(out, all[i])
	}
	return out
}

// recall is the mean share of the gold tables among the first 5 and the first 20, in percent.
func recall(questions []ingest.Question, text func(ingest.Question) string, order ranked) (at5, at20 float64) {
	for _, q := range questions {
		list := order(text(q))
		for _, table := range q.GoldTables {
			share := 1 / float64(len(q.GoldTables))
			at := slices.Index(list, strings.ToLower(q.DB+"."+table))
			if at >= 0 && at < 5 {
				at5 += share
			}
			if at >= 0 && at < 20 {
				at20 += share
			}
		}
	}
	n := float64(len(questions))
	return 100 * at5 / n, 100 * at20 / n
}

func TestRecallOnDatabasesThatTrainingNeverSaw(t *testing.T) {
	dir := os.Getenv("SCHEMAGATE_BENCH")
	if dir == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("SCHEMAGATE_BENCH is not set: it names the folder with the question sets")
		}
		t.Skip("set SCHEMAGATE_BENCH to the folder with the question sets")
	}
	b, err := os.ReadFile("recipe/chinese.tsv")
	if err != nil {
		t.Fatal(err)
	}
	chinese := map[string]string{}
	for line := range strings.Lines(string(b)) {
		id, said, _ := strings.Cut(strings.TrimSpace(line), "\t")
		chinese[id] = said
	}
	english := func(q ingest.Question) string { return q.Question }
	spider, bird := open(t, dir, "spider_train"), open(t, dir, "bird_train")
	for _, tt := range []struct {
		name      string
		shelf     shelf
		text      func(ingest.Question) string
		at5, at20 float64 // what the vectors must reach, a little less than they do
	}{
		{"spider_train, English", spider, english, 78, 92},
		{"spider_train, German", spider, func(q ingest.Question) string { return q.QuestionDE }, 51, 73},
		{"spider_train, Chinese", spider, func(q ingest.Question) string { return chinese[q.ID] }, 50, 80},
		{"bird_train", bird, english, 54, 75},
	} {
		questions := some(tt.shelf.questions, tt.text)
		v5, v20 := recall(questions, tt.text, tt.shelf.vector)
		l5, l20 := recall(questions, tt.text, tt.shelf.lexical)
		b5, b20 := recall(questions, tt.text, both(tt.shelf.vector, tt.shelf.lexical))
		t.Logf("%s, %d questions: R@5 and R@20 by vectors %.1f %.1f, by words %.1f %.1f, by both %.1f %.1f", tt.name, len(questions), v5, v20, l5, l20, b5, b20)
		if v5 < tt.at5 || v20 < tt.at20 {
			t.Errorf("%s: R@5 %.1f and R@20 %.1f, want %.1f and %.1f", tt.name, v5, v20, tt.at5, tt.at20)
		}
	}
}
