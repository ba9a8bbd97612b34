package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/audit"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/lineage"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/sqlite"
	"github.com/schemagate/schemagate/templates"
)

const policy = `
version: 1
principals: {alice: {roles: [reader]}, eve: {roles: []}}
grants:
  - {role: reader, allow: ["shop.orders"], actions: [view, query]}
`

// log keeps records in memory and can be out of order.
type log struct {
	records []audit.Record
	broken  error
}

func (l *log) Append(_ context.Context, r audit.Record) (string, error) {
	if l.broken != nil {
		return "", l.broken
	}
	l.records = append(l.records, r)
	return fmt.Sprint("record-", len(l.records)), nil
}

// writer drafts what it is told to.
type writer api.Draft

func (w writer) Draft(context.Context, retrieval.Context, acl.View) (api.Draft, error) {
	return api.Draft(w), nil
}

func engine(t *testing.T, draft string, l *log) *api.Engine {
	t.Helper()
	return api.NewEngine(edition(t, policy), []*rewrite.Guard{rewrite.NewGuard(sqlite.New(), 0)}, writer{SQL: draft, Database: "shop"}, l, nil)
}

// edition is a shop with orders and salaries under a policy.
func edition(t *testing.T, policy string) *api.Edition {
	t.Helper()
	table := func(name string, columns ...string) []catalog.Object {
		out := []catalog.Object{{Ref: catalog.TableRef("shop", "", name), Table: &catalog.Table{}}}
		for i, c := range columns {
			out = append(out, catalog.Object{Ref: catalog.ColumnRef("shop", "", name, c), Column: &catalog.Column{Type: "int", Position: i}})
		}
		return out
	}
	s, err := catalog.Build([]catalog.Database{{Name: "shop", Dialect: catalog.SQLite}},
		slices.Concat(table("orders", "id", "amount"), table("salaries", "id", "pay"),
			table("log_2023", "id", "amount"), table("log_2024", "id", "amount"), table("log_2025", "id", "amount")))
	if err != nil {
		t.Fatal(err)
	}
	p, err := acl.ParsePolicy("policy.yaml", []byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	c, err := casbin.New(p, s)
	if err != nil {
		t.Fatal(err)
	}
	linker, err := retrieval.NewLinker(&retrieval.Ranker{Index: local.New(s)}, lineage.New(s), templates.NewCounter(), retrieval.DefaultConfig)
	if err != nil {
		t.Fatal(err)
	}
	return &api.Edition{Policy: c, Linker: linker}
}

func ask(who, question string) api.Request {
	return api.Request{Face: "test", Principal: who, Question: question}
}

func TestAnAnswerIsGovernedAndOnRecord(t *testing.T) {
	l := &log{}
	a, err := engine(t, "SELECT amount FROM orders", l).Ask(context.Background(), ask("alice", "amount of orders"), false)
	if err != nil {
		t.Fatal(err)
	}
	if a.GuardedSQL == nil || a.Record != "record-1" || a.Refusal != nil {
		t.Errorf("got %+v", a)
	}
	r := l.records[0]
	if r.Outcome != audit.Answered || r.Principal != "alice" || r.SQL != "SELECT amount FROM orders" || r.GuardedSQL != *a.GuardedSQL ||
		r.Snapshot == "" || r.Policy == "" || len(r.Returned) == 0 {
		t.Errorf("record %+v", r)
	}
}

func TestARefusedDraftIsNotShownAsGoverned(t *testing.T) {
	l := &log{}
	a, err := engine(t, "SELECT pay FROM salaries", l).Ask(context.Background(), ask("alice", "amount of orders"), false)
	if err != nil {
		t.Fatal(err)
	}
	if a.GuardedSQL != nil || a.Refusal == nil || a.Refusal.Code != acl.CodeNotAvailable {
		t.Errorf("got %+v", a)
	}
	if r := l.records[0]; r.Outcome != audit.Refused || r.Code != acl.CodeNotAvailable || !strings.Contains(r.Detail, "denied") {
		t.Errorf("record %+v", r)
	}
}

func TestWhatIsWithheldIsForTheAuditAlone(t *testing.T) {
	l := &log{}
	a, err := engine(t, "", l).Ask(context.Background(), ask("alice", "pay in salaries against amount of orders"), false)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(l.records[0].Withheld); !strings.Contains(got, "shop.salaries") {
		t.Errorf("the record withholds %s", got)
	}
	a.Question = ""
	if text, _ := json.Marshal(a); strings.Contains(string(text), "salaries") {
		t.Errorf("the answer names a hidden table: %s", text)
	}
}

func TestStrangersAreRefusedAndOnRecord(t *testing.T) {
	l := &log{}
	c, err := engine(t, "", l).Context(context.Background(), ask("mallory", "amount of orders"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Refusal == nil || c.Refusal.Code != acl.CodeUnknownPrincipal || len(c.Objects) != 0 || c.Text != "" {
		t.Errorf("got %+v", c)
	}
	if r := l.records[0]; r.Outcome != audit.Refused || r.Principal != "mallory" {
		t.Errorf("record %+v", r)
	}
}

func TestWhoMaySeeNothingLearnsNothing(t *testing.T) {
	l := &log{}
	e := engine(t, "SELECT 1", l)
	known, err := e.Ask(context.Background(), ask("eve", "amount of orders"), false)
	if err != nil {
		t.Fatal(err)
	}
	absent, err := e.Ask(context.Background(), ask("eve", "boiling point of tungsten"), false)
	if err != nil {
		t.Fatal(err)
	}
	known.Question, absent.Question, known.Record, absent.Record = "", "", "", ""
	a, _ := json.Marshal(known)
	b, _ := json.Marshal(absent)
	if string(a) != string(b) {
		t.Errorf("a denied and an absent thing read differently:\n%s\n%s", a, b)
	}
}

func TestNoAnswerLeavesWithoutItsRecord(t *testing.T) {
	l := &log{broken: errors.New("disk full")}
	e := engine(t, "SELECT amount FROM orders", l)
	a, err := e.Ask(context.Background(), ask("alice", "amount of orders"), false)
	if err == nil || a.SQL != nil || len(a.Objects) != 0 {
		t.Errorf("Ask gave %+v, %v", a, err)
	}
	c, err := e.Context(context.Background(), ask("alice", "amount of orders"))
	if err == nil || c.Text != "" {
		t.Errorf("Context gave %+v, %v", c, err)
	}
	v, err := e.Guard(context.Background(), ask("alice", ""), "shop", "SELECT amount FROM orders")
	if err == nil || v.SQL != "" || v.Decision == acl.Allow {
		t.Errorf("Guard gave %+v, %v", v, err)
	}
}

func TestBadRequestsDecideNothing(t *testing.T) {
	for name, question := range map[string]string{
		"empty": "", "marks only": " ?! ", "too long": strings.Repeat("orders ", 150_000), "not UTF-8": "orders \xff",
	} {
		l := &log{}
		_, err := engine(t, "", l).Context(context.Background(), ask("alice", question))
		if !errors.Is(err, api.ErrBadRequest) || len(l.records) != 0 {
			t.Errorf("%s: %v, %d records", name, err, len(l.records))
		}
	}
}

func TestGuardSpeaksOfWhatTheAskerWrote(t *testing.T) {
	l := &log{}
	e := engine(t, "", l)
	hidden, err := e.Guard(context.Background(), ask("alice", ""), "shop", "SELECT * FROM salaries")
	if err != nil {
		t.Fatal(err)
	}
	absent, err := e.Guard(context.Background(), ask("alice", ""), "shop", "SELECT * FROM seleries")
	if err != nil {
		t.Fatal(err)
	}
	if hidden.Decision != acl.Deny || strings.ReplaceAll(hidden.Message, "salaries", "seleries") != absent.Message || hidden.Hint != absent.Hint {
		t.Errorf("a denied and an absent table read differently:\n%+v\n%+v", hidden, absent)
	}
	if l.records[0].Detail == l.records[1].Detail {
		t.Error("the audit cannot tell a denied table from an absent one")
	}
}

func TestAQuestionIsAnsweredFromTheEditionInPlace(t *testing.T) {
	l := &log{}
	e := engine(t, "", l)
	e.Swap(edition(t, strings.Replace(policy, "shop.orders", "shop.salaries", 1)))
	c, err := e.Context(context.Background(), ask("alice", "amount of orders and pay in salaries"))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.Objects); strings.Contains(got, "orders.") || !strings.Contains(got, "shop.salaries.pay") {
		t.Errorf("after the swap the context holds %s", got)
	}
}

func TestAFaultNamesItsRecordAndNothingHidden(t *testing.T) {
	l := &log{}
	e := engine(t, "", l)
	e.Swap(edition(t, strings.Replace(policy, "shop.orders", "shop.orders.amount", 1)+`
row_filters:
  - {table: shop.orders, roles: [reader], using: "id = = 7"}
`))
	_, err := e.Guard(context.Background(), ask("alice", ""), "shop", "SELECT amount FROM orders")
	var fault *api.Fault
	if !errors.As(err, &fault) || fault.Record != "record-1" || strings.Contains(err.Error(), "id =") || strings.Contains(err.Error(), "orders") {
		t.Errorf("got %v", err)
	}
	if r := l.records[0]; r.Outcome != audit.Failed || !strings.Contains(r.Detail, "row filter on shop.orders") {
		t.Errorf("record %+v", r)
	}
}

func TestAContextSaysHowItWasChosenAndWhatFor(t *testing.T) {
	request := ask("alice", "average amount of orders over 50")
	request.Strategy = retrieval.Tables
	l := &log{}
	c, err := engine(t, "", l).Context(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	if c.Strategy != "tables" || c.Because != "it was asked for; 1 table and 2 columns are few enough to give whole; all of the database shop fits the budget" || c.Intent.Kind != "metric" || l.records[0].Strategy != "tables" {
		t.Errorf("%s: %s, %+v", c.Strategy, c.Because, c.Intent)
	}
	for _, o := range c.Objects {
		if o.Ref == "shop.orders.amount" && (o.Role == "" || o.Parts.Own <= 0 || o.Parts.Table <= 0 || o.Parts.Database <= 0) {
			t.Errorf("%+v", o)
		}
	}
	request.Strategy = "exploration"
	if _, err := engine(t, "", l).Context(context.Background(), request); !errors.Is(err, api.ErrBadRequest) || !strings.Contains(err.Error(), "name one of whole, tables, retrieval") {
		t.Errorf("a strategy that does not exist: %v", err)
	}
}

func TestTablesThatAreAlikeAreListedAndOnRecord(t *testing.T) {
	e := edition(t, strings.Replace(policy, `"shop.orders"`, `"shop.log_2024", "shop.log_2025"`, 1))
	l := &log{}
	c, err := api.NewEngine(e, nil, writer{}, l, nil).Context(context.Background(), ask("alice", "amount in the log"))
	if err != nil || len(c.Objects) == 0 || c.Objects[0].Ref != "shop.log_2025" || fmt.Sprint(c.Objects[0].Members) != "[shop.log_2024 shop.log_2025]" {
		t.Fatalf("%+v, %v", c.Objects, err)
	}
	if got := fmt.Sprint(l.records[0].Returned); !strings.Contains(got, "shop.log_2024 ") || strings.Contains(got, "log_2023") {
		t.Errorf("returned %s", got)
	}
}
