package rank_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/embed"
	"github.com/schemagate/schemagate/retrieval/local"
	"github.com/schemagate/schemagate/retrieval/rank"
	"github.com/schemagate/schemagate/retrieval/rank/boost"
)

// shops makes databases of three tables each. All have the same columns; what tells the tables apart is their names,
// and what tells the databases apart is the trade in one of their columns. Invoices join the other two.
func shops(t testing.TB, trades ...string) *catalog.Snapshot {
	t.Helper()
	var databases []catalog.Database
	var objects []catalog.Object
	for i, trade := range trades {
		db := fmt.Sprintf("shop%d", i)
		databases = append(databases, catalog.Database{Name: db, Dialect: catalog.SQLite})
		for _, table := range []string{"customer", "invoice", "employee"} {
			o := catalog.Object{Ref: catalog.TableRef(db, "", table), Table: &catalog.Table{}}
			for j, column := range []string{"id", "city", "amount", trade + "_grade"} {
				objects = append(objects, catalog.Object{
					Ref:    catalog.ColumnRef(db, "", table, column),
					Column: &catalog.Column{Type: "TEXT", Position: j, PrimaryKey: j == 0, Samples: [][]string{nil, {"Lyon", "Turin"}, nil, nil}[j]},
				})
			}
			o.Table.PrimaryKey = []string{"id"}
			objects = append(objects, o)
		}
		for _, to := range []string{"customer", "employee"} {
			objects = append(objects, catalog.Object{Ref: catalog.RelationshipRef(db + "_" + to), Relationship: &catalog.Relationship{
				From: []catalog.Ref{catalog.ColumnRef(db, "", "invoice", "id")}, To: []catalog.Ref{catalog.ColumnRef(db, "", to, "id")},
				Type: catalog.DocumentedRelationship,
			}})
		}
	}
	s, err := catalog.Build(databases, objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// system is all that ranks a snapshot, with a model for a judge if one is given.
func system(t testing.TB, s *catalog.Snapshot, m *rank.Model) *retrieval.Ranker {
	t.Helper()
	e, err := embed.New()
	if err != nil {
		t.Fatal(err)
	}
	r, err := local.NewRanker(t.Context(), s, e)
	if err != nil {
		t.Fatal(err)
	}
	if m != nil {
		r.Judge = rank.New(m, s)
	}
	return r
}

// judge is what a ranker with a judge says.
func judge(t testing.TB, r *retrieval.Ranker, question string, v acl.View) retrieval.Ranking {
	t.Helper()
	j, err := r.Rank(t.Context(), question, v)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// lesson asks about every table of every database, always by the words of a column and its table.
func lesson(t testing.TB, s *catalog.Snapshot) rank.Lesson {
	t.Helper()
	l := rank.Lesson{Ranker: system(t, s, nil), View: acl.Everything(s)}
	r := rand.New(rand.NewPCG(1, uint64(s.Len())))
	for range 4 {
		for _, o := range s.Objects(catalog.KindTable) {
			columns := s.ColumnIDs(o.ID)
			trade := s.Object(columns.To - 1)
			column := columns.From + 1 + uint32(r.IntN(2))
			l.Examples = append(l.Examples, rank.Example{
				Question: fmt.Sprintf("What is the %s of each %s by %s?", s.Object(column).Ref.Column, o.Ref.Table, trade.Ref.Column),
				Database: o.Ref.Database, Group: o.Ref.Database + o.Ref.Table,
				Tables:  map[uint32]bool{o.ID: true},
				Columns: map[uint32]bool{column: true, trade.ID: true},
			})
		}
	}
	return l
}

func quick() boost.Config {
	c := boost.DefaultConfig
	c.Trees, c.Leaves, c.MinLeaf = 30, 6, 5
	return c
}

var trades = []string{"baker", "florist", "jeweller", "stationer", "butcher", "cobbler"}

func model(t testing.TB) *rank.Model {
	t.Helper()
	m, err := rank.Train(t.Context(), []rank.Lesson{lesson(t, shops(t, trades...)), lesson(t, shops(t, trades[:3]...))}, quick(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestARankerFindsWhatItWasNotShown(t *testing.T) {
	s := shops(t, "tailor", "grocer", "printer", "glazier")
	l := lesson(t, s)
	ranker := system(t, s, model(t))
	for _, e := range l.Examples {
		j := judge(t, ranker, e.Question, l.View)
		if j.Databases[0].Name != e.Database || !e.Tables[j.Tables[0].ID] {
			t.Errorf("%q: the best table is %s", e.Question, s.Object(j.Tables[0].ID).Ref)
		}
		if !e.Columns[j.Columns[0].ID] || !e.Columns[j.Columns[1].ID] {
			t.Errorf("%q: the best columns are %s and %s", e.Question, s.Object(j.Columns[0].ID).Ref, s.Object(j.Columns[1].ID).Ref)
		}
	}
}

func TestListsAreInOrderAndProbabilitiesOfDatabasesExcludeOneAnother(t *testing.T) {
	s := shops(t, trades...)
	l := lesson(t, s)
	const question = "the amount and city of customers"
	m := model(t)
	b, err := system(t, s, nil).Board(t.Context(), question, l.View)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, p := range rank.New(m, s).Judge(b).Databases {
		if sum += p; !(p >= 0) {
			t.Errorf("%v is no probability", p)
		}
	}
	if sum == 0 || sum > 1+1e-9 {
		t.Errorf("the answer lies in one database, and their probabilities add up to %v", sum)
	}
	j := judge(t, system(t, s, m), question, l.View)
	if len(j.Tables) == 0 || len(j.Columns) == 0 {
		t.Fatal("nothing was judged")
	}
	if !slices.IsSortedFunc(j.Databases, func(a, b retrieval.ScoredDatabase) int { return cmp.Compare(b.Score, a.Score) }) {
		t.Error("a better database comes later")
	}
	for _, list := range [][]retrieval.Scored{j.Tables, j.Columns} {
		if !slices.IsSortedFunc(list, func(a, b retrieval.Scored) int { return cmp.Compare(b.Score, a.Score) }) {
			t.Error("a better one comes later")
		}
		for _, x := range list {
			if !(x.Score >= 0 && x.Score <= 1) {
				t.Errorf("%v is no score", x.Score)
			}
		}
	}
}

// named spells a judgement by names, which two snapshots share, as ids are not.
func named(s *catalog.Snapshot, j retrieval.Ranking) (out []string) {
	for _, d := range j.Databases {
		out = append(out, fmt.Sprintf("%s %v", d.Name, d.Score))
	}
	for _, list := range [][]retrieval.Scored{j.Tables, j.Columns} {
		for _, x := range list {
			out = append(out, fmt.Sprintf("%s %v %v", s.Object(x.ID).Ref, x.Score, x.Own))
		}
	}
	return out
}

// someView hides parts of a snapshot, and the values of some tables.
func someView(t *testing.T, s *catalog.Snapshot, r *rand.Rand) acl.View {
	t.Helper()
	var deny, filters []string
	for _, o := range s.All() {
		chance := map[catalog.Kind]float64{catalog.KindTable: 0.15, catalog.KindColumn: 0.15, catalog.KindRelationship: 0.2}[o.Ref.Kind]
		if r.Float64() < chance {
			deny = append(deny, fmt.Sprintf("%q", o.Ref))
		}
		if o.Table != nil && r.Float64() < 0.2 {
			filters = append(filters, fmt.Sprintf(`{"table": %q, "roles": ["r"], "using": "1 = 1"}`, o.Ref))
		}
	}
	policy := fmt.Sprintf(`{"version": 1, "principals": {"p": {"roles": ["r"]}}, "grants": [
		{"role": "r", "allow": ["*"], "actions": ["view", "query"]},
		{"role": "r", "deny": [%s], "actions": ["view", "query"]}], "row_filters": [%s]}`, strings.Join(deny, ","), strings.Join(filters, ","))
	p, err := acl.ParsePolicy("policy.yaml", []byte(policy))
	if err != nil {
		t.Fatal(err)
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

func TestWhatIsHiddenChangesNothing(t *testing.T) {
	s, m := shops(t, trades...), model(t)
	whole := system(t, s, m)
	r := rand.New(rand.NewPCG(1, 3))
	changed := 0
	for range 60 {
		v := someView(t, s, r)
		restricted, err := v.Restricted()
		if err != nil {
			t.Fatal(err)
		}
		all, bare := acl.Everything(restricted), system(t, restricted, m)
		for _, question := range []string{
			"What is the amount of each customer by baker grade?", "Which employee of a florist has the best invoice in Lyon?", "city and id of shops", "jeweller",
		} {
			got, want := named(s, judge(t, whole, question, v)), named(restricted, judge(t, bare, question, all))
			if !slices.Equal(got, want) {
				t.Fatalf("%q\ngot  %v\nwant %v, as without what is hidden", question, got, want)
			}
			if got, want := rank.Features(question, whole, v), rank.Features(question, bare, all); !reflect.DeepEqual(got, want) {
				t.Fatalf("%q: features differ from those without what is hidden\ngot  %v\nwant %v", question, got, want)
			}
			if !slices.Equal(got, named(s, judge(t, whole, question, acl.Everything(s)))) {
				changed++
			}
		}
	}
	if changed < 200 {
		t.Errorf("only %d of 240 judgements differ from those of one who sees everything, so the views hide too little to prove anything", changed)
	}
}

func TestABoardOfAnotherSnapshotIsNotJudged(t *testing.T) {
	s, other := shops(t, trades...), shops(t, "tailor")
	b, err := system(t, other, nil).Board(t.Context(), "the city of customers", acl.Everything(other))
	if err != nil {
		t.Fatal(err)
	}
	if j := rank.New(model(t), s).Judge(b); !reflect.DeepEqual(j, retrieval.Judgement{}) {
		t.Errorf("judged %v", j)
	}
}

func TestAQuestionWithoutAWordHasNoAnswer(t *testing.T) {
	s := shops(t, trades...)
	r := system(t, s, model(t))
	for _, question := range []string{"", "of the", "!?"} {
		if j := judge(t, r, question, acl.Everything(s)); len(j.Tables)+len(j.Columns)+len(j.Databases) > 0 {
			t.Errorf("%q: judged %v", question, named(s, j))
		}
	}
}

func encode(t testing.TB, m *rank.Model) []byte {
	t.Helper()
	data, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTrainingTwiceGivesTheSameModelAndItsFileKeepsIt(t *testing.T) {
	m := model(t)
	data := encode(t, m)
	if !bytes.Equal(data, encode(t, model(t))) {
		t.Error("two trainings differ")
	}
	var back rank.Model
	if err := back.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	s := shops(t, trades...)
	question := "which customer has the largest amount by baker grade"
	if want, got := judge(t, system(t, s, m), question, acl.Everything(s)), judge(t, system(t, s, &back), question, acl.Everything(s)); !reflect.DeepEqual(want, got) {
		t.Error("the model read back judges otherwise")
	}
}

func TestADamagedModelIsRefused(t *testing.T) {
	data := encode(t, model(t))
	body := data[:len(data)-4]
	sealed := func(b []byte) []byte { return binary.LittleEndian.AppendUint32(bytes.Clone(b), crc32.ChecksumIEEE(b)) }
	first := 9 + int(binary.LittleEndian.Uint32(body[5:]))
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":               {nil, "no model"},
		"a later version":       {sealed(append([]byte("SGRK\x7f"), body[5:]...)), "version 127"},
		"a flipped bit":         {append(append(bytes.Clone(data[:99]), data[99]^1), data[100:]...), "checksum"},
		"a missing part":        {sealed(body[:first]), "part is missing"},
		"a part too long":       {sealed(append(bytes.Clone(body[:5]), 0xff, 0xff, 0xff, 0xff)), "part is missing"},
		"more than a model":     {sealed(append(bytes.Clone(body), 0)), "more than a model"},
		"parts in wrong places": {sealed(append(append(bytes.Clone(body[:5]), body[first:]...), body[5:first]...)), "features"},
	} {
		t.Run(name, func(t *testing.T) {
			var m rank.Model
			if err := m.UnmarshalBinary(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}

func TestTrainingWithoutExamplesIsAnError(t *testing.T) {
	if _, err := rank.Train(t.Context(), nil, quick(), 1, nil); err == nil || !strings.Contains(err.Error(), "same label") {
		t.Errorf("error %v", err)
	}
}

func TestTheModelBesideThisPackageFitsIt(t *testing.T) {
	data, err := os.ReadFile("ranker.model")
	if err != nil {
		t.Fatal(err)
	}
	var m rank.Model
	if err := m.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	s := shops(t, "tailor", "grocer", "printer", "glazier")
	l := lesson(t, s)
	ranker := system(t, s, &m)
	for _, e := range l.Examples {
		if j := judge(t, ranker, e.Question, l.View); j.Databases[0].Name != e.Database || !e.Tables[j.Tables[0].ID] {
			t.Errorf("%q: the best table is %s", e.Question, s.Object(j.Tables[0].ID).Ref)
		}
	}
}
