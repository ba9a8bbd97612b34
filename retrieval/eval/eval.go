// Package eval measures retrieval on question sets with known answers.
package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/lineage"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
	"github.com/schemagate/schemagate/templates"
)

// Options say how to measure.
type Options struct {
	Bench            string  // folder with the question sets
	Evidence         bool    // give BIRD's hint along with the question
	NamesOnly        bool    // leave descriptions, samples and other names out of the catalog
	DropDescriptions float64 // share of the descriptions to leave out, 0 to 1
	History          string  // set whose questions are the catalog's past queries; empty for none
	Ablate           string  // one of Parts to leave out of the catalog; empty for none
	Index            string  // Local, which an empty one means too
	Limit            int     // number of questions; 0 means all
}

// Local is the name of the embedded index.
const Local = "local"

// ErrSettings is wrapped by the errors of settings that ask for what cannot be measured.
var ErrSettings = errors.New("eval: this cannot be measured")

// Report holds the metrics of one run.
type Report struct {
	Set       string `json:"set"`
	Questions int    `json:"questions"` // measured
	Skipped   int    `json:"skipped"`   // without gold tables
	Figures
	// HistoryBefore is measured with those past queries only that are older than the question asked. It is nil
	// without a history, and where questions carry no dates.
	HistoryBefore *Figures         `json:"history_before,omitempty"`
	ByGoldTables  map[string]Group `json:"by_gold_tables"`          // "1", "2", "3" and "4+"
	ByDifficulty  map[string]Group `json:"by_difficulty,omitempty"` // in the set's own words
	Misses        Misses           `json:"misses"`
	Latency       Latency          `json:"latency_ms"` // of ranking and building the context
	QPS           float64          `json:"qps"`
	Settings      Settings         `json:"settings"`
	// Outcomes are the single questions, in the set's order.
	Outcomes []Outcome `json:"-"`
}

// Figures are means over questions. Recalls and shares are in percent; MRR, NDCG10 and MAP10 are for tables, 0 to 1.
// Metrics of columns are over the questions that have gold columns.
type Figures struct {
	TableRecall  map[string]float64  `json:"table_recall"`
	ColumnRecall map[string]float64  `json:"column_recall"`
	Hit1         float64             `json:"hit1"`
	MRR          float64             `json:"mrr"`
	NDCG10       float64             `json:"ndcg10"`
	MAP10        float64             `json:"map10"`
	Localization float64             `json:"localization"`  // the best database is the right one
	ExactMatch   float64             `json:"exact_match"`   // the context's columns are the gold columns
	StrictRecall float64             `json:"strict_recall"` // the context holds all gold columns
	MeanColumns  float64             `json:"mean_columns"`
	MeanTokens   float64             `json:"mean_tokens"`
	Intervals    map[string]Interval `json:"intervals"` // by name of the measure
}

// Latency is in milliseconds.
type Latency struct {
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	Mean float64 `json:"mean"`
}

// Settings say what was in the catalog and what ran.
type Settings struct {
	Databases        int     `json:"databases"`
	Tables           int     `json:"tables"`
	Columns          int     `json:"columns"`
	Evidence         bool    `json:"evidence"`
	NamesOnly        bool    `json:"names_only"`
	DropDescriptions float64 `json:"drop_descriptions"`
	History          string  `json:"history"`
	HistoryQuestions int     `json:"history_questions"` // past queries in the catalog
	Ablated          string  `json:"ablated"`           // "none", or what was left out
	Index            string  `json:"index"`
	Models           string  `json:"models"`
	Snapshot         string  `json:"snapshot"`
}

// none stands in Settings for what a run was without.
const none = "none"

// String lists what differs from a plain run, for people.
func (s Settings) String() string {
	var parts []string
	if s.NamesOnly {
		parts = append(parts, "names only")
	}
	if s.Evidence {
		parts = append(parts, "with hints")
	}
	if s.DropDescriptions > 0 {
		parts = append(parts, fmt.Sprintf("%.3g%% of descriptions dropped", 100*s.DropDescriptions))
	}
	if s.History != none {
		parts = append(parts, fmt.Sprintf("history of %d questions from %s", s.HistoryQuestions, s.History))
	}
	if s.Ablated != none {
		parts = append(parts, "without "+s.Ablated)
	}
	if len(parts) == 0 {
		return "question only"
	}
	return strings.Join(parts, ", ")
}

// depths are the K of Recall@K.
var depths = [...]int{1, 3, 5, 10, 20, 50}

// schemaDropSeed makes the dropped descriptions the same in every run.
const schemaDropSeed = 1

// Run measures one set. progress, which may be nil, is told what is going on.
func Run(ctx context.Context, set string, o Options, progress func(string)) (Report, error) {
	if progress == nil {
		progress = func(string) {}
	}
	if o.Index != "" && o.Index != Local {
		return Report{}, fmt.Errorf("%w: there is no index %q; the only one is %s", ErrSettings, o.Index, Local)
	}
	progress("reading " + set)
	questions, err := ingest.Questions(o.Bench, set)
	if err != nil {
		return Report{}, err
	}
	m, err := newMaterial(ctx, set, questions, o, progress)
	if err != nil {
		return Report{}, err
	}
	progress("indexing")
	a, err := newAsker(m, o.Evidence)
	if err != nil {
		return Report{}, err
	}
	r := Report{Set: set, Settings: settings(m, o)}
	everything := acl.Everything(m.snapshot)
	dated := m.dated && !slices.ContainsFunc(questions, func(q ingest.Question) bool { return q.Date.IsZero() })
	var before []Outcome
	var took []time.Duration
	for _, q := range questions {
		if o.Limit > 0 && len(r.Outcomes) == o.Limit {
			break
		}
		gold := a.gold(q)
		if len(gold.tables) == 0 {
			r.Skipped++
			continue
		}
		out, d, err := a.ask(ctx, q, gold, everything)
		if err != nil {
			return Report{}, err
		}
		r.Outcomes, took = append(r.Outcomes, out), append(took, d)
		if dated {
			out, _, err := a.ask(ctx, q, gold, m.before(q.Date))
			if err != nil {
				return Report{}, err
			}
			before = append(before, out)
		}
		if len(r.Outcomes)%200 == 0 {
			progress(fmt.Sprintf("%d of %d questions", len(r.Outcomes), len(questions)))
		}
	}
	if len(r.Outcomes) == 0 {
		return Report{}, errors.New("eval: no question of " + set + " has gold tables")
	}
	progress("summing up")
	r.Questions = len(r.Outcomes)
	r.Figures = figures(r.Outcomes)
	if dated {
		f := figures(before)
		r.HistoryBefore = &f
	}
	r.ByGoldTables = groups(r.Outcomes, byGoldTables)
	r.ByDifficulty = groups(r.Outcomes, func(o *Outcome) string { return o.Difficulty })
	r.Misses = misses(r.Outcomes)
	r.Latency = latency(took)
	r.QPS = math.Round(1e4/r.Latency.Mean) / 10
	return r, nil
}

func settings(m *material, o Options) Settings {
	s := m.snapshot
	out := Settings{
		Databases: len(s.Databases()), Tables: s.OfKind(catalog.KindTable).Len(), Columns: s.OfKind(catalog.KindColumn).Len(),
		Evidence: o.Evidence, NamesOnly: o.NamesOnly, DropDescriptions: o.DropDescriptions,
		History: none, HistoryQuestions: s.OfKind(catalog.KindQuery).Len(), Ablated: none,
		Index: Local, Models: "none", Snapshot: s.Version()[:12],
	}
	if o.History != "" {
		out.History = o.History
	}
	if o.Ablate != "" {
		out.Ablated = o.Ablate
	}
	return out
}

// asker puts questions to the catalog that is measured.
type asker struct {
	*material
	evidence bool
	index    *local.Index
	linker   *retrieval.Linker
}

func newAsker(m *material, evidence bool) (*asker, error) {
	a := &asker{material: m, evidence: evidence, index: local.New(m.snapshot)}
	var err error
	a.linker, err = retrieval.NewLinker(a.index, lineage.New(m.snapshot), templates.NewCounter(), retrieval.DefaultConfig)
	return a, err
}

// answer is what a question's known answer is made of.
type answer struct {
	tables, columns map[uint32]bool
}

// gold finds what a question names. What the catalog lacks is left out, so that a fault of the data is not a miss of
// the ranking.
func (a *asker) gold(q ingest.Question) answer {
	find := func(k catalog.Kind, given []string) map[uint32]bool {
		out := map[uint32]bool{}
		for _, ref := range a.names.all(k, q.DB, given) {
			if id, ok := a.snapshot.ID(ref); ok {
				out[id] = true
			}
		}
		return out
	}
	return answer{find(catalog.KindTable, q.GoldTables), find(catalog.KindColumn, q.GoldColumns)}
}

// ask measures one question, and how long ranking and building the context took.
func (a *asker) ask(ctx context.Context, q ingest.Question, g answer, v acl.View) (Outcome, time.Duration, error) {
	text := q.Question
	if a.evidence && q.Evidence != "" {
		text += "\n" + q.Evidence
	}
	start := time.Now()
	c, err := a.linker.Link(ctx, text, v)
	took := time.Since(start)
	if err != nil {
		return Outcome{}, 0, fmt.Errorf("eval: question %s: %w", q.ID, err)
	}
	rank := retrieval.Rank(text, a.index, v)
	tables := ids(rank.Tables)
	out := Outcome{
		ID: q.ID, Difficulty: q.Difficulty, GoldTables: len(g.tables), GoldColumns: len(g.columns),
		TableRecall: recall(g.tables, tables), Columns: float64(len(c.IDs(catalog.KindColumn))), Tokens: float64(c.Tokens),
	}
	out.rank(g.tables, tables)
	if len(rank.Databases) > 0 && strings.EqualFold(rank.Databases[0].Name, q.DB) {
		out.Localized = 1
	}
	if len(g.columns) > 0 {
		out.ColumnRecall = recall(g.columns, ids(rank.Columns))
		out.ground(g.columns, c.IDs(catalog.KindColumn))
	}
	out.Missed = a.missed(text, q.DB, g.tables, tables)
	return out, took, nil
}

func ids(list []retrieval.Scored) []uint32 {
	out := make([]uint32, len(list))
	for i, x := range list {
		out[i] = x.ID
	}
	return out
}

func latency(took []time.Duration) Latency {
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return math.Round(float64(d.Microseconds())) / 1000 }
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	at := func(q float64) time.Duration { return took[min(len(took)-1, int(q*float64(len(took))))] }
	return Latency{P50: ms(at(0.5)), P95: ms(at(0.95)), Mean: ms(sum / time.Duration(len(took)))}
}
