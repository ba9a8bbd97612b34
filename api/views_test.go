package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/audit"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/api/execute"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/sqlite"
)

// directory is a policy that counts how often it is asked, and can fall out of order.
type directory struct {
	api.Policy
	asked  int
	broken error
}

func (d *directory) View(principal string) (acl.View, error) {
	d.asked++
	if d.broken != nil {
		return acl.View{}, d.broken
	}
	return d.Policy.View(principal)
}

func TestAViewIsRememberedForFiveMinutesAndARefusalIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &directory{Policy: edition(t, policy).Policy}
		p := api.CacheViews(d)
		view := func(who string) acl.View {
			v, err := p.View(who)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		first := view("alice")
		time.Sleep(5*time.Minute - 1)
		if again := view("alice"); again.Key() != first.Key() || d.asked != 1 {
			t.Errorf("asked %d times in five minutes", d.asked)
		}
		if eve := view("eve"); eve.Key() == first.Key() || eve.Principal().Name != "eve" {
			t.Error("eve got alice's view")
		}
		time.Sleep(time.Nanosecond)
		if view("alice"); d.asked != 3 {
			t.Errorf("after five minutes asked %d times, want 3", d.asked)
		}
		for range 2 {
			var no *acl.Refusal
			if _, err := p.View("mallory"); !errors.As(err, &no) || no.Code != acl.CodeUnknownPrincipal {
				t.Errorf("a stranger gets %v", err)
			}
		}
		if d.asked != 5 {
			t.Errorf("asked %d times, want 5: a refusal was remembered", d.asked)
		}
	})
}

func TestCachedAnswersAreGovernedAndOnRecordLikeAnyOther(t *testing.T) {
	l := &log{}
	e := edition(t, policy)
	linker, _ := e.Linker.(*retrieval.Linker)
	e.Policy, e.Linker = api.CacheViews(e.Policy), retrieval.NewCachedLinker(linker)
	g := api.NewEngine(e, []*rewrite.Guard{rewrite.NewGuard(sqlite.New(), 0)}, writer{SQL: "SELECT amount FROM orders", Database: "shop"}, l, nil)
	var answers []string
	for range 2 {
		a, err := g.Ask(t.Context(), ask("alice", "amount of orders, pay in salaries"), false)
		if err != nil {
			t.Fatal(err)
		}
		a.Record = ""
		text, _ := json.Marshal(a)
		answers = append(answers, string(text))
	}
	if answers[0] != answers[1] || !strings.Contains(answers[0], "shop.orders.amount") {
		t.Errorf("the second answer differs:\n%s\n%s", answers[0], answers[1])
	}
	first, second := l.records[0], l.records[1]
	first.Latency, second.Latency = 0, 0
	a, _ := json.Marshal(first)
	b, _ := json.Marshal(second)
	if string(a) != string(b) || len(second.Withheld) == 0 || len(second.Returned) == 0 {
		t.Errorf("the records differ:\n%s\n%s", a, b)
	}
	// Another principal asks the same question.
	c, err := g.Context(t.Context(), ask("eve", "amount of orders, pay in salaries"))
	if err != nil || len(c.Objects) != 0 || c.Text != "" {
		t.Errorf("eve got %+v, %v", c, err)
	}
}

// meddler drafts, and meanwhile something happens.
type meddler struct {
	api.Generator
	happens func()
}

func (m meddler) Draft(ctx context.Context, c retrieval.Context, v acl.View) (api.Draft, error) {
	m.happens()
	return m.Generator.Draft(ctx, c, v)
}

func TestNothingLeavesOnceWhatTheAskerMaySeeHasChanged(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy string
		draft  string
		code   string
	}{
		{"the same policy", policy, "SELECT amount FROM orders", ""},
		{"another policy", strings.Replace(policy, "shop.orders", "shop.salaries", 1), "SELECT amount FROM orders", acl.CodeAccessChanged},
		{"another policy, and a refused draft", strings.Replace(policy, "shop.orders", "shop.salaries", 1), "SELECT pay FROM salaries", acl.CodeAccessChanged},
		{"another policy, and no draft", strings.Replace(policy, "shop.orders", "shop.salaries", 1), "", acl.CodeAccessChanged},
		{"a policy that knows the asker no longer", strings.Replace(policy, "alice", "bob", 1), "SELECT amount FROM orders", acl.CodeUnknownPrincipal},
	} {
		l := &log{}
		m := meddler{Generator: writer{SQL: c.draft, Database: "shop"}}
		var e *api.Engine
		m.happens = func() { e.Swap(edition(t, c.policy)) }
		e = api.NewEngine(edition(t, policy), []*rewrite.Guard{rewrite.NewGuard(sqlite.New(), 0)}, &m, l, nil)
		a, err := e.Ask(t.Context(), ask("alice", "amount of orders"), false)
		if err != nil {
			t.Fatal(err)
		}
		r := l.records[0]
		if c.code == "" {
			if a.Refusal != nil || a.GuardedSQL == nil || len(r.Returned) == 0 {
				t.Errorf("%s: got %+v", c.name, a)
			}
			continue
		}
		if a.Refusal == nil || a.Refusal.Code != c.code || r.Outcome != audit.Refused || r.Code != c.code || len(r.Returned) > 0 {
			t.Errorf("%s: got %+v, recorded %+v", c.name, a.Refusal, r)
		}
		a.Question = ""
		if text, _ := json.Marshal(a); strings.Contains(string(text), "orders") || strings.Contains(string(text), "salaries") {
			t.Errorf("%s: the answer still says %s", c.name, text)
		}
	}
}

func TestAPolicyThatCannotBeAskedIsAFault(t *testing.T) {
	l := &log{}
	before := edition(t, policy)
	d := &directory{Policy: before.Policy}
	before.Policy = d
	m := meddler{Generator: writer{SQL: "SELECT pay FROM salaries", Database: "shop"}, happens: func() { d.broken = errors.New("the directory is down") }}
	e := api.NewEngine(before, []*rewrite.Guard{rewrite.NewGuard(sqlite.New(), 0)}, &m, l, nil)
	a, err := e.Ask(t.Context(), ask("alice", "amount of orders"), false)
	var fault *api.Fault
	if !errors.As(err, &fault) || a.SQL != nil || len(a.Objects) > 0 || l.records[0].Outcome != audit.Failed {
		t.Errorf("got %+v, %v; recorded %+v", a, err, l.records[0])
	}
}

// busybody links, and meanwhile something happens.
type busybody struct {
	api.Linker
	happens func()
}

func (b busybody) LinkBy(ctx context.Context, asked retrieval.Strategy, question string, v acl.View) (retrieval.Context, error) {
	b.happens()
	return b.Linker.LinkBy(ctx, asked, question, v)
}

// count counts drafts and runs, for which it has nothing to give.
type count struct{ drafts, runs int }

func (c *count) Draft(context.Context, retrieval.Context, acl.View) (api.Draft, error) {
	c.drafts++
	return api.Draft{SQL: "SELECT amount FROM orders", Database: "shop"}, nil
}

func (c *count) Run(context.Context, rewrite.Statement) (execute.Rows, error) {
	c.runs++
	return execute.Rows{}, nil
}

func TestNeitherModelNorDatabaseIsAskedUnderAViewOfThePast(t *testing.T) {
	other := edition(t, strings.Replace(policy, "shop.orders", "shop.salaries", 1))
	for _, c := range []struct {
		when         string
		drafts, runs int
	}{{"never", 1, 1}, {"while linking", 0, 0}, {"while drafting", 1, 0}} {
		var e *api.Engine
		var n count
		first := edition(t, policy)
		var g api.Generator = &n
		swap := func() { e.Swap(other) }
		switch c.when {
		case "while linking":
			first.Linker = busybody{first.Linker, swap}
		case "while drafting":
			g = meddler{&n, swap}
		}
		e = api.NewEngine(first, []*rewrite.Guard{rewrite.NewGuard(sqlite.New(), 0)}, g, &log{}, map[string]api.Runner{"shop": &n})
		a, err := e.Ask(t.Context(), ask("alice", "amount of orders"), true)
		if err != nil {
			t.Fatal(err)
		}
		if n.drafts != c.drafts || n.runs != c.runs || (a.Rows != nil) != (c.runs == 1) {
			t.Errorf("the policy changed %s: %d drafts and %d runs, want %d and %d", c.when, n.drafts, n.runs, c.drafts, c.runs)
		}
	}
}

// passing is the policy with alice's grant for three minutes of the test's clock, which starts with the year 2000.
const passing = `
version: 1
principals: {alice: {roles: [reader]}}
grants:
  - {role: reader, allow: ["shop.orders"], actions: [view, query], until: "2000-01-01T00:03:00Z"}
`

func TestAViewEndsWithAGrantHoweverLongItWouldBeRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := api.CacheViews(edition(t, passing).Policy)
		sees := func() bool {
			v, err := p.View("alice")
			if err != nil {
				t.Fatal(err)
			}
			return v.MaySomething()
		}
		if !sees() {
			t.Error("alice sees nothing while the grant holds")
		}
		time.Sleep(3*time.Minute - 1)
		if !sees() {
			t.Error("alice sees nothing in the last moment of the grant")
		}
		time.Sleep(time.Nanosecond)
		if sees() {
			t.Error("alice sees something after the grant")
		}
	})
}

func TestAQuestionThatOutlivesAGrantIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		e := edition(t, passing)
		e.Policy = api.CacheViews(e.Policy)
		m := meddler{Generator: writer{SQL: "SELECT amount FROM orders", Database: "shop"}, happens: func() { time.Sleep(4 * time.Minute) }}
		a, err := api.NewEngine(e, []*rewrite.Guard{rewrite.NewGuard(sqlite.New(), 0)}, m, l, nil).Ask(t.Context(), ask("alice", "amount of orders"), false)
		if err != nil || a.Refusal == nil || a.Refusal.Code != acl.CodeAccessChanged || a.GuardedSQL != nil || len(a.Objects) > 0 {
			t.Errorf("got %+v, %v", a, err)
		}
	})
}

func TestAServiceAccountGetsWhatThePersonItActsForMaySee(t *testing.T) {
	const policy = `
version: 1
principals:
  tool: {roles: [everything], acts_for: [reader], tenant: acme}
  alice: {roles: [reader], tenant: acme}
  bob: {roles: [payroll], tenant: acme}
  zoe: {roles: [reader], tenant: other}
grants:
  - {role: everything, allow: ["shop"], actions: [view, query]}
  - {role: reader, allow: ["shop.orders"], actions: [view, query]}
  - {role: payroll, allow: ["shop.salaries"], actions: [view, query]}
`
	l := &log{}
	e := edition(t, policy)
	e.Policy = api.CacheViews(e.Policy)
	engine := api.NewEngine(e, []*rewrite.Guard{rewrite.NewGuard(sqlite.New(), 0)}, writer{}, l, nil)
	code := func(person, sql string) string {
		v, err := engine.Guard(t.Context(), api.Request{Face: "test", Principal: "tool", OnBehalfOf: person}, "shop", sql)
		if err != nil {
			t.Fatal(err)
		}
		return v.Code
	}
	for _, c := range []struct{ person, sql, want string }{
		{"", "SELECT pay FROM salaries", ""},
		{"alice", "SELECT amount FROM orders", ""},
		{"alice", "SELECT pay FROM salaries", acl.CodeNotAvailable},
		{"bob", "SELECT pay FROM salaries", acl.CodeMayNotAct},
		{"zoe", "SELECT amount FROM orders", acl.CodeMayNotAct},
		{"nobody", "SELECT amount FROM orders", acl.CodeMayNotAct},
		{"tool", "SELECT amount FROM orders", acl.CodeMayNotAct},
	} {
		if got := code(c.person, c.sql); got != c.want {
			t.Errorf("for %q, %s: %q, want %q", c.person, c.sql, got, c.want)
		}
		if r := l.records[len(l.records)-1]; r.Principal != "tool" || r.OnBehalfOf != c.person || c.want == "" && r.Tenant != "acme" {
			t.Errorf("for %q recorded %+v", c.person, r)
		}
	}
}
