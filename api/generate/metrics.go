// Package generate writes drafts: untrusted SQL that answers a question from its governed context.
//
// Metrics writes them without a model, for questions that name a metric of the catalog. Whatever it is not sure of it
// leaves to others, with a reason: each word of the question must be accounted for, and no join may repeat the rows
// that a metric adds up.
package generate

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// Metrics compiles questions about metrics. It is safe for concurrent use.
//
// A question names one metric and may name dimensions ("by region and month"), values to filter by ("for the Outlet
// channel", "where region is EMEA"), a time range on the metric's time column ("in Q3 2025", "last 30 days") and a
// ranking ("top 5 regions by revenue"). The last N days, weeks, months, quarters or years are the N complete ones
// before the current. A ranking leaves out groups without a name or a number.
//
// Dimensions must be reached by validated joins that repeat no row of the metric, over a single shortest way; a filter
// may also lie where rows repeat, and then becomes EXISTS. A dimension that a row lacks reads NULL and keeps its row;
// values, ranges and the metric's own sources drop rows that have none.
type Metrics struct {
	now  func() time.Time
	last atomic.Pointer[lexicon]
}

// NewMetrics makes a compiler of questions about metrics. now tells the time that "last month" counts from, in the
// time zone that days are meant in.
func NewMetrics(now func() time.Time) *Metrics { return &Metrics{now: now} }

// Draft writes the statement that answers the context's question, or says why it does not. The draft depends on the
// question, the time and what the view lets be queried, and on nothing else.
func (m *Metrics) Draft(ctx context.Context, c retrieval.Context, v acl.View) (api.Draft, error) {
	if err := ctx.Err(); err != nil {
		return api.Draft{}, fmt.Errorf("draft from metrics: %w", err)
	}
	s := v.Snapshot()
	if s == nil {
		return api.Draft{Abstained: "nothing here is available to you"}, nil
	}
	q := &question{lexicon: m.lexicon(s), view: v, now: m.now(), words: split(c.Question)}
	q.taken = make([]bool, len(q.words))
	draft, err := q.draft()
	var no abstention
	if errors.As(err, &no) {
		return api.Draft{Abstained: string(no)}, nil
	}
	return draft, err
}

// lexicon returns the words of a snapshot, which is nearly always the one asked about last.
func (m *Metrics) lexicon(s *catalog.Snapshot) *lexicon {
	if l := m.last.Load(); l != nil && l.snapshot == s {
		return l
	}
	l := newLexicon(s)
	m.last.Store(l)
	return l
}

// abstention is the reason why no SQL was written, for the asker.
type abstention string

// Error returns the reason.
func (a abstention) Error() string { return string(a) }

func abstain(format string, args ...any) error { return abstention(fmt.Sprintf(format, args...)) }
