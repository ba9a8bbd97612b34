package rank_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
	"github.com/schemagate/schemagate/retrieval/rank"
	"github.com/schemagate/schemagate/retrieval/rank/boost"
)

// under is the view of a principal with a role r that may see all but what the rules, in JSON, say.
func under(t *testing.T, s *catalog.Snapshot, rules string) acl.View {
	t.Helper()
	p, err := acl.ParsePolicy("policy.yaml", []byte(`{"version": 1, "principals": {"p": {"roles": ["r"]}}, `+rules+`}`))
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

const everything = `{"role": "r", "allow": ["*"], "actions": ["view", "query"]}`

func TestATrainedModelServesOnlyWhoMaySeeAllThatItLearnedFrom(t *testing.T) {
	s, m := shops(t, trades[:3]...), model(t)
	of := func(v acl.View) *rank.Trained {
		l := lesson(t, s)
		l.View = v
		return rank.NewTrained(m, []rank.Lesson{l})
	}
	one := lesson(t, s)
	one.Examples, one.View = one.Examples[:1], under(t, s, `"grants": [{"role": "r", "allow": ["shop0"], "actions": ["view", "query"]}]`)
	all, some := of(acl.Everything(s)), rank.NewTrained(m, []rank.Lesson{one})
	for _, c := range []struct {
		name, rules string
		all, some   bool
	}{
		{"everything", `"grants": [` + everything + `]`, true, true},
		{"no column of a table", `"grants": [` + everything + `, {"role": "r", "deny": ["shop0.customer.city"], "actions": ["view"]}]`, false, false},
		{"not to be queried", `"grants": [` + everything + `, {"role": "r", "deny": ["shop0.customer.city"], "actions": ["query"]}]`, false, false},
		{"no relationship", `"grants": [` + everything + `, {"role": "r", "deny": ["relationship:shop0_customer"], "actions": ["view"]}]`, false, false},
		{"some rows", `"grants": [` + everything + `], "row_filters": [{"table": "shop0.customer", "roles": ["r"], "using": "id = 1"}]`, false, false},
		{"masked values", `"grants": [` + everything + `], "masks": [{"column": "shop0.customer.city", "roles": ["r"], "with": "null"}]`, false, false},
		{"another database is hidden", `"grants": [` + everything + `, {"role": "r", "deny": ["shop1"], "actions": ["view"]}]`, false, true},
		{"nothing of it", `"grants": [{"role": "r", "allow": ["shop2.customer.city"], "actions": ["view", "query"]}]`, false, false},
	} {
		v := under(t, s, c.rules)
		if got := rank.Deploy(all, m, s).Serves(v); got != c.all {
			t.Errorf("%s: a model of the whole catalog serves: %v", c.name, got)
		}
		if got := rank.Deploy(some, m, s).Serves(v); got != c.some {
			t.Errorf("%s: a model of one database serves: %v", c.name, got)
		}
	}
	if rank.Deploy(all, m, s).Serves(acl.View{}) {
		t.Error("the zero view is served")
	}
	fewer, more := shops(t, trades[:2]...), shops(t, trades[:4]...)
	if d := rank.Deploy(all, m, fewer); d.Serves(acl.Everything(fewer)) || d.Gone() == 0 {
		t.Error("after a database has gone the model still serves")
	}
	if d := rank.Deploy(all, m, more); !d.Serves(acl.Everything(more)) || d.Gone() != 0 {
		t.Error("after a database has come the model serves nobody")
	}
}

// retrained is a model that differs from model.
func retrained(t *testing.T, lessons ...rank.Lesson) *rank.Model {
	t.Helper()
	m, err := rank.Retrain(t.Context(), model(t), lessons, quick(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestWhoIsNotServedGetsTheModelThatShips(t *testing.T) {
	s := shops(t, trades[:3]...)
	l, shipped := lesson(t, s), model(t)
	own := retrained(t, l)
	d := rank.Deploy(rank.NewTrained(own, []rank.Lesson{l}), shipped, s)
	r := &retrieval.Ranker{Index: local.New(s)}
	for rules, m := range map[string]*rank.Model{
		`"grants": [` + everything + `]`: own,
		`"grants": [` + everything + `, {"role": "r", "deny": ["shop2"], "actions": ["view"]}]`: shipped,
	} {
		b, err := r.Board(t.Context(), l.Examples[0].Question, under(t, s, rules))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time from memory
			if got, want := d.Judge(b), rank.New(m, s).Judge(b); !reflect.DeepEqual(got, want) {
				t.Errorf("under %s: got %+v, want %+v", rules, got, want)
			}
		}
		if reflect.DeepEqual(rank.New(own, s).Judge(b), rank.New(shipped, s).Judge(b)) {
			t.Fatal("the two models do not differ")
		}
	}
}

func TestATrainedModelReadsBackAndNamesNothing(t *testing.T) {
	s := shops(t, trades[:2]...)
	l := lesson(t, s)
	first := rank.NewTrained(model(t), []rank.Lesson{l})
	data, err := first.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range s.All() {
		if o.Table != nil && bytes.Contains(data, []byte(o.Ref.Table)) {
			t.Errorf("the file names %s", o.Ref)
		}
	}
	var again rank.Trained
	if err := again.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	if !rank.Deploy(&again, model(t), s).Serves(acl.Everything(s)) || again.Objects() != s.Len() {
		t.Errorf("what was read back learned from %d objects of %d", again.Objects(), s.Len())
	}
	if second, err := again.MarshalBinary(); err != nil || !bytes.Equal(data, second) {
		t.Errorf("it writes other bytes (%v)", err)
	}
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1
		if err := new(rank.Trained).UnmarshalBinary(bad); err == nil {
			t.Fatalf("a file with byte %d changed was read", i)
		}
	}
	for _, n := range []int{0, 4, 20, 30, len(data) / 2, len(data) - 1} {
		if err := new(rank.Trained).UnmarshalBinary(data[:n]); err == nil || !strings.HasPrefix(err.Error(), "rank: ") {
			t.Errorf("the first %d bytes give %v", n, err)
		}
	}
}

func TestRetrainLearnsWhatItsLessonsSay(t *testing.T) {
	s := shops(t, trades[:3]...)
	l := lesson(t, s)
	// Here the answer always needs the key, whatever the words say.
	for i := range l.Examples {
		for table := range l.Examples[i].Tables {
			l.Examples[i].Columns = map[uint32]bool{s.ColumnIDs(table).From: true}
		}
	}
	r := &retrieval.Ranker{Index: local.New(s)}
	likely := func(m *rank.Model) (p float64) {
		for _, e := range l.Examples {
			b, err := r.Board(t.Context(), e.Question, l.View)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range rank.New(m, s).Judge(b).Columns {
				if e.Columns[c.ID] {
					p += c.Probability / float64(len(l.Examples))
				}
			}
		}
		return p
	}
	if before, after := likely(model(t)), likely(retrained(t, l)); after < before+0.2 {
		t.Errorf("the columns that lessons name have the probability %.2f, before it %.2f", after, before)
	}
}

func TestOfOneDatabaseTheStageAboutDatabasesStays(t *testing.T) {
	l := lesson(t, shops(t, trades[0]))
	if _, err := rank.Train(t.Context(), []rank.Lesson{l}, quick(), 1, nil); !errors.Is(err, boost.ErrOneLabel) {
		t.Errorf("a model of one database alone: %v", err)
	}
	m := retrained(t, l)
	s := shops(t, trades[:3]...)
	r := &retrieval.Ranker{Index: local.New(s)}
	for _, e := range lesson(t, s).Examples {
		b, err := r.Board(t.Context(), e.Question, acl.Everything(s))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := rank.New(m, s).Judge(b).Databases, rank.New(model(t), s).Judge(b).Databases; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q: databases have %v, before it %v", e.Question, got, want)
		}
	}
}
