// Package api answers one question from start to finish: who asks, what they may see, what of it the question needs,
// what SQL answers it, what the guard makes of that SQL, and the record of it all. Faces decode requests and encode
// answers; nothing is decided in them.
//
// Embedders import this package and the adapters that they want; see cmd/schemagate for one wiring of them.
package api

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/audit"
	"github.com/schemagate/schemagate/api/execute"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/rewrite"
)

// Request is a question or a statement, with who asks. The principal is who the face has identified.
type Request struct {
	Face      string // "cli", "rest", "mcp"
	Principal string
	// OnBehalfOf is the person that a service account asks for; empty if the principal asks for themselves.
	OnBehalfOf string
	Question   string
	// Strategy is how to choose the context; the empty one is chosen by the size of what the principal may see.
	Strategy retrieval.Strategy
}

// maxQuestion is the most bytes that a question may have.
const maxQuestion = 16 << 10

// ErrBadRequest is wrapped by errors about the request itself: nothing was decided and nothing recorded.
var ErrBadRequest = errors.New("bad request")

// Fault is a failure that is nobody's no. Error says nothing but where the reason stands, since the reason may name what
// the asker may not see, such as a column that a row filter reads; Unwrap gives it to code.
type Fault struct {
	Record string // in the audit log
	cause  error
}

// Error names the record that holds the reason.
func (f *Fault) Error() string {
	return fmt.Sprintf("the request failed; whoever keeps the audit log finds the reason under record %s", f.Record)
}

// Unwrap returns the reason, which is not for the asker.
func (f *Fault) Unwrap() error { return f.cause }

func (r Request) validate() error {
	switch {
	case len(r.Question) > maxQuestion:
		return fmt.Errorf("%w: the question has %d bytes and at most %d are read; ask something shorter", ErrBadRequest, len(r.Question), maxQuestion)
	case !utf8.ValidString(r.Question):
		return fmt.Errorf("%w: the question is not valid UTF-8", ErrBadRequest)
	case len(retrieval.Terms(r.Question)) == 0:
		return fmt.Errorf("%w: the question is empty; ask something, as in \"net revenue by region in 2025\"", ErrBadRequest)
	}
	if _, err := retrieval.ParseStrategy(string(r.Strategy)); err != nil {
		return fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	return nil
}

// Edition is one catalog under one policy, with what was built of them. A question finishes on the edition that it
// started with.
type Edition struct {
	Policy Policy
	Linker Linker
}

// Policy tells what a principal may see of the edition's snapshot, and what a service account may when it acts for a
// person. An unknown principal, and a person that it may not act for, are an *acl.Refusal.
type Policy interface {
	View(principal string) (acl.View, error)
	ViewFor(service, person string) (acl.View, error)
}

// Linker chooses what a question needs of the edition's snapshot.
type Linker interface {
	LinkBy(ctx context.Context, asked retrieval.Strategy, question string, v acl.View) (retrieval.Context, error)
	// Withheld lists what would have been relevant but is hidden from the view; it is for the audit alone.
	Withheld(ctx context.Context, question string, v acl.View) ([]catalog.Ref, error)
}

// Generator writes a draft for a question from its governed context; it sees nothing but what the view shows.
type Generator interface {
	Draft(ctx context.Context, c retrieval.Context, v acl.View) (Draft, error)
}

// Draft is untrusted SQL, or the reason why there is none.
type Draft struct {
	SQL string
	// Database is where the statement runs.
	Database string
	// Abstained says why no SQL was written; it is for the asker.
	Abstained string
}

// Auditor makes records durable.
type Auditor interface {
	Append(ctx context.Context, r audit.Record) (id string, err error)
}

// Runner executes governed statements.
type Runner interface {
	Run(ctx context.Context, s rewrite.Statement) (execute.Rows, error)
}

// Engine answers questions. It is safe for concurrent use.
type Engine struct {
	edition   atomic.Pointer[Edition]
	guards    map[catalog.Dialect]*rewrite.Guard
	generator Generator
	auditor   Auditor
	// runners execute, by database; a database without one cannot be run against.
	runners map[string]Runner
}

// NewEngine makes an engine. Every dialect that its databases use needs a guard; runners may be nil.
func NewEngine(e *Edition, guards []*rewrite.Guard, g Generator, a Auditor, runners map[string]Runner) *Engine {
	eng := &Engine{guards: map[catalog.Dialect]*rewrite.Guard{}, generator: g, auditor: a, runners: runners}
	for _, guard := range guards {
		eng.guards[guard.Dialect()] = guard
	}
	eng.edition.Store(e)
	return eng
}

// Swap puts another edition in place; questions that have started finish on theirs, unless the policy is another one.
func (e *Engine) Swap(next *Edition) { e.edition.Store(next) }

// Context returns the governed context of a question.
func (e *Engine) Context(ctx context.Context, req Request) (Context, error) {
	q, err := e.begin(req, "context")
	if err != nil {
		return Context{}, err
	}
	if err := q.end(ctx, q.link(ctx)); err != nil {
		return Context{}, err
	}
	return q.answer.Context, nil
}

// Ask answers a question with a governed statement, and with its rows if run is set.
func (e *Engine) Ask(ctx context.Context, req Request, run bool) (Answer, error) {
	q, err := e.begin(req, "ask")
	if err != nil {
		return Answer{}, err
	}
	err = q.link(ctx)
	if err == nil {
		err = q.draft(ctx)
	}
	if err == nil {
		err = q.guard()
	}
	if err == nil && run {
		err = q.run(ctx)
	}
	if err := q.end(ctx, err); err != nil {
		return Answer{}, err
	}
	return q.answer, nil
}

// Guard governs a statement that somebody else wrote, to run in a database.
func (e *Engine) Guard(ctx context.Context, req Request, database, sql string) (Verdict, error) {
	q := &question{engine: e, edition: e.edition.Load(), request: req, start: time.Now(), record: audit.Record{Action: "guard"}}
	q.answer.Database = database
	q.answer.SQL = &sql
	err := q.identify()
	if err == nil {
		err = q.guard()
	}
	if err := q.end(ctx, err); err != nil {
		return Verdict{}, err
	}
	v := Verdict{Decision: acl.Allow, Record: q.answer.Record}
	if q.answer.GuardedSQL != nil {
		v.SQL, v.Reads = *q.answer.GuardedSQL, reads(q.statement)
		v.Output, v.Filters = outputs(q.statement), texts(q.statement.Filters())
	}
	if r := q.answer.Refusal; r != nil {
		v = Verdict{Decision: acl.Deny, Code: r.Code, Message: r.Message, Hint: r.Hint, Record: q.answer.Record}
	}
	return v, nil
}

// question is one request on its way.
type question struct {
	engine    *Engine
	edition   *Edition
	request   Request
	start     time.Time
	view      acl.View
	context   retrieval.Context
	statement rewrite.Statement
	answer    Answer
	record    audit.Record
}

func (e *Engine) begin(req Request, action string) (*question, error) {
	if err := req.validate(); err != nil {
		return nil, err
	}
	q := &question{engine: e, edition: e.edition.Load(), request: req, start: time.Now(), record: audit.Record{Action: action}}
	q.answer = blank(req)
	return q, nil
}

func (q *question) identify() (err error) {
	q.view, err = q.request.view(q.edition.Policy)
	return err
}

func (r Request) view(p Policy) (acl.View, error) {
	if r.OnBehalfOf != "" {
		return p.ViewFor(r.Principal, r.OnBehalfOf)
	}
	return p.View(r.Principal)
}

// stands refuses a question whose view has been outlived by a policy, or by what is known of the principal. Views last
// for some minutes (see CacheViews) and questions can take longer. Another catalog under the same policy is no reason.
func (q *question) stands() error {
	v, err := q.request.view(q.engine.edition.Load().Policy)
	if err != nil {
		return err
	}
	if v.Policy() == q.view.Policy() && v.Until().Equal(q.view.Until()) && v.Tenant() == q.view.Tenant() && slices.Equal(v.Roles(), q.view.Roles()) && reflect.DeepEqual(v.Principal(), q.view.Principal()) {
		return nil
	}
	return &acl.Refusal{
		Code:   acl.CodeAccessChanged,
		Public: "what you may see has changed since you asked",
		Hint:   "ask again",
		Detail: fmt.Sprintf("the question began under policy %s with roles %q, now it is policy %s with roles %q", q.view.Policy(), q.view.Roles(), v.Policy(), v.Roles()),
	}
}

func (q *question) link(ctx context.Context) (err error) {
	if err := q.identify(); err != nil {
		return err
	}
	if q.context, err = q.edition.Linker.LinkBy(ctx, q.request.Strategy, q.request.Question, q.view); err != nil {
		return err
	}
	withheld, err := q.edition.Linker.Withheld(ctx, q.request.Question, q.view)
	if err != nil {
		return err
	}
	for _, r := range withheld {
		q.record.Withheld = append(q.record.Withheld, r.String())
	}
	q.answer.Context = publish(q.answer.Context, q.context)
	for _, o := range q.answer.Objects {
		q.record.Returned = append(q.record.Returned, o.Ref)
		for _, m := range o.Members {
			if m != o.Ref {
				q.record.Returned = append(q.record.Returned, m)
			}
		}
	}
	return nil
}

func (q *question) draft(ctx context.Context) error {
	if q.context.Nothing != "" {
		q.answer.Reason = q.context.Nothing
		return nil
	}
	if err := q.stands(); err != nil {
		return err
	}
	d, err := q.engine.generator.Draft(ctx, q.context, q.view)
	if err != nil {
		return err
	}
	if d.SQL == "" {
		q.answer.Reason = d.Abstained
		return nil
	}
	q.answer.SQL, q.answer.Database = &d.SQL, d.Database
	return nil
}

// guard governs the draft, if there is one.
func (q *question) guard() error {
	if q.answer.SQL == nil {
		return nil
	}
	q.record.SQL, q.record.Database = *q.answer.SQL, q.answer.Database
	schema, err := rewrite.NewSchema(q.view, q.answer.Database)
	if err != nil {
		return err
	}
	g := q.engine.guards[schema.Dialect()]
	if g == nil {
		return &acl.Refusal{
			Code:   acl.CodeDialectUnsupported,
			Public: fmt.Sprintf("statements of the %s dialect cannot be checked yet, so none is let through", schema.Dialect()),
			Hint:   "ask for the context instead",
		}
	}
	st, err := g.Rewrite(*q.answer.SQL, schema)
	if err != nil {
		return err
	}
	q.statement = st
	text := st.Text()
	q.answer.GuardedSQL, q.record.GuardedSQL = &text, text
	for _, r := range st.Reads() {
		q.record.Rules = append(q.record.Rules, r.Rules...)
		q.record.Read = append(append(q.record.Read, r.Table.String()), texts(r.Columns)...)
	}
	q.record.Filters = texts(st.Filters())
	for _, o := range st.Output() {
		q.record.Output = append(q.record.Output, audit.Output{Name: o.Name, From: texts(o.From), Transform: string(o.Transform)})
	}
	slices.Sort(q.record.Rules)
	q.record.Rules = slices.Compact(q.record.Rules)
	return nil
}

func (q *question) run(ctx context.Context) error {
	if q.answer.GuardedSQL == nil {
		return nil
	}
	r := q.engine.runners[q.answer.Database]
	if r == nil {
		return fmt.Errorf("%w: the database %s is not connected, so nothing can be run in it; name it with --source", ErrBadRequest, q.answer.Database)
	}
	if err := q.stands(); err != nil {
		return err
	}
	rows, err := r.Run(ctx, q.statement)
	if err != nil {
		return err
	}
	q.answer.Rows = &rows
	return nil
}

// withdraw takes back what was decided for the asker.
func (q *question) withdraw() {
	q.answer = blank(q.request)
	q.record.Returned = nil
}

func blank(req Request) Answer {
	return Answer{Context: Context{Question: req.Question, Principal: req.Principal, Objects: []Object{}, Joins: []Join{}}}
}

// end records how the question ended and turns a refusal into an answer. Nothing of the answer leaves if the record is
// not durable.
func (q *question) end(ctx context.Context, err error) error {
	if refusal := new(acl.Refusal); q.view.Key() != "" && (err == nil || errors.As(err, &refusal)) {
		if gone := q.stands(); gone != nil {
			err = gone
			q.withdraw()
		}
	}
	r := &q.record
	r.Face, r.Principal, r.Question = q.request.Face, q.request.Principal, q.request.Question
	r.OnBehalfOf, r.Tenant = q.request.OnBehalfOf, q.view.Tenant()
	r.Roles, r.Strategy = q.view.Roles(), string(q.context.Strategy)
	r.Snapshot, r.Policy = q.view.Edition()
	r.Latency = time.Since(q.start)
	var no *acl.Refusal
	switch {
	case errors.As(err, &no):
		r.Outcome, r.Code, r.Detail = audit.Refused, no.Code, no.Detail
		if no.Rule != "" {
			r.Rules = append(r.Rules, no.Rule)
		}
		q.answer.Refusal = &Refusal{no.Code, no.Public, no.Hint}
		q.answer.GuardedSQL = nil
	case err != nil:
		r.Outcome, r.Detail = audit.Failed, err.Error()
		var failed *execute.Error
		if errors.As(err, &failed) {
			r.Detail = fmt.Sprintf("%v: %v", err, errors.Unwrap(failed))
		}
	case q.answer.Reason != "" || q.context.Nothing != "":
		r.Outcome = audit.Abstained
		r.Detail = q.answer.Reason
	default:
		r.Outcome = audit.Answered
	}
	// The record must be written even if the asker has gone away.
	id, failed := q.engine.auditor.Append(context.WithoutCancel(ctx), *r)
	if failed != nil {
		return fmt.Errorf("api: the answer is withheld because its record could not be written: %w", failed)
	}
	q.answer.Record = id
	var class *execute.Error
	switch {
	case err == nil, no != nil:
		return nil
	case errors.Is(err, ErrBadRequest), errors.As(err, &class), errors.Is(err, context.Canceled):
		return err // these say nothing but what the asker knows
	}
	return &Fault{Record: id, cause: err}
}
