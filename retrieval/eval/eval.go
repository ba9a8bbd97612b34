// Package eval measures retrieval on question sets with known answers.
package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
)

// Options say how to measure.
type Options struct {
	Bench            string  // folder with the question sets
	Evidence         bool    // give BIRD's hint along with the question
	Language         string  // German asks the questions in it; an empty one means the set's own
	NamesOnly        bool    // leave descriptions, samples and other names out of the catalog
	DropDescriptions float64 // share of the descriptions to leave out, 0 to 1
	History          string  // set whose questions are the catalog's past queries; empty for none
	Ablate           string  // one of Parts to leave out; empty for none
	Index            string  // one of Indexes; an empty one means Local
	Weights          Weights // of the linker's score; zero means its own
	Limit            int     // number of questions; 0 means all
	// Parallel is how many questions are asked at once; less than 2 means one after the other, as it must be where
	// latencies matter. It changes no other figure.
	Parallel int
}

// German is the language of the questions that Options.Language can ask for.
const German = "de"

// Weights are those of the paper's Eq. 1.
type Weights struct {
	Embedding float64 `json:"embedding"`
	Reranker  float64 `json:"reranker"`
	History   float64 `json:"history"`
}

// ErrSettings is wrapped by the errors of settings that ask for what cannot be measured.
var ErrSettings = errors.New("eval: this cannot be measured")

// Report holds the metrics of one run.
type Report struct {
	Set       string `json:"set"`
	Questions int    `json:"questions"` // measured
	Skipped   int    `json:"skipped"`   // without gold tables, or not said in the language that is asked
	Figures
	// HistoryBefore is measured with those past queries only that are older than the question asked. It is nil
	// without a history, and where questions carry no dates.
	HistoryBefore *Figures         `json:"history_before,omitempty"`
	ByGoldTables  map[string]Group `json:"by_gold_tables"`          // "1", "2", "3" and "4+"
	ByDifficulty  map[string]Group `json:"by_difficulty,omitempty"` // in the set's own words
	Misses        Misses           `json:"misses"`
	// Calibration is of the judge's probabilities, by what they are of; it is nil without a judge.
	Calibration map[string]Reliability `json:"calibration,omitempty"`
	// Latency is of all that an asker waits for. It is one core's work, since a question is answered by one goroutine;
	// Settings.Parallel says how many were asked at once, and only with 1 did a core have nothing else to do.
	Latency Latency `json:"latency_ms"`
	// Phases are latencies of what an index can time by itself.
	Phases   map[string]Latency `json:"phases_ms,omitempty"`
	QPS      float64            `json:"qps"` // of one core: 1 / mean latency
	Settings Settings           `json:"settings"`
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
	Localization float64             `json:"localization"` // the best database is the right one
	*Contexts                        // nil for an index that builds none
	Intervals    map[string]Interval `json:"intervals"` // by name of the measure
}

// Contexts are the figures of what whoever writes SQL is given. Shares are in percent.
type Contexts struct {
	ExactMatch   float64 `json:"exact_match"`   // the context's columns are the gold columns
	StrictRecall float64 `json:"strict_recall"` // the context holds all gold columns
	MeanColumns  float64 `json:"mean_columns"`
	MeanTokens   float64 `json:"mean_tokens"`
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
	Described        int     `json:"described"` // tables and columns with a description
	Sampled          int     `json:"sampled"`   // columns with sample values
	Evidence         bool    `json:"evidence"`
	Language         string  `json:"language"` // "original", or what was asked for
	NamesOnly        bool    `json:"names_only"`
	DropDescriptions float64 `json:"drop_descriptions"`
	History          string  `json:"history"`
	HistoryQuestions int     `json:"history_questions"` // past queries in the catalog
	Ablated          string  `json:"ablated"`           // "none", or what was left out
	Index            string  `json:"index"`
	Weights          Weights `json:"weights,omitzero"`       // where they are not the linker's own
	Models           string  `json:"models"`                 // "none", or those that ran
	LearnedFrom      bool    `json:"learned_from,omitempty"` // the models learned from the set, so figures are too good
	Snapshot         string  `json:"snapshot"`
	Limit            int     `json:"limit,omitempty"`
	Parallel         int     `json:"parallel"` // questions asked at once
}

// What stands in Settings for what a run was without, and for the set's own language.
const (
	none     = "none"
	original = "original"
)

// String lists what differs from a plain run, for people.
func (s Settings) String() string {
	var parts []string
	if s.Index != Local {
		parts = append(parts, "index "+s.Index)
	}
	if s.NamesOnly {
		parts = append(parts, "names only")
	}
	if s.Evidence {
		parts = append(parts, "with hints")
	}
	if s.Language == German {
		parts = append(parts, "in German")
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
	if s.Weights != (Weights{}) {
		parts = append(parts, fmt.Sprintf("weights %.3g, %.3g, %.3g", s.Weights.Embedding, s.Weights.Reranker, s.Weights.History))
	}
	if len(parts) == 0 {
		return "question only"
	}
	return strings.Join(parts, ", ")
}

// Ran names the models that ran, for people, and says so if the set is what they learned from.
func (s Settings) Ran() string {
	if s.LearnedFrom {
		return s.Models + " (learned from this set, so the figures are too good)"
	}
	return s.Models
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
	o.Parallel = max(1, o.Parallel)
	if err := o.validate(); err != nil {
		return Report{}, err
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
	r := Report{Set: set, Settings: settings(m, o)}
	posed, skipped, err := m.pose(set, questions, o)
	if err != nil {
		return Report{}, err
	}
	r.Questions, r.Skipped = len(posed), skipped
	progress("indexing")
	x, err := newSearcher(ctx, m, o)
	if err != nil {
		return Report{}, err
	}
	r.Settings.Models = x.models()
	r.Settings.LearnedFrom = r.Settings.Models != none && slices.Contains(learnedSets[:], set)
	replies, err := m.ask(ctx, x, posed, o.Parallel, progress)
	if err != nil {
		return Report{}, err
	}
	progress("summing up")
	var before []Outcome
	var took []time.Duration
	phases := map[string][]time.Duration{}
	var calibration calibration
	for _, a := range replies {
		calibration.merge(&a.calibration)
		r.Outcomes, took = append(r.Outcomes, a.outcome), append(took, a.took)
		for name, d := range a.phases {
			phases[name] = append(phases[name], d)
		}
		if a.before != nil {
			before = append(before, *a.before)
		}
	}
	r.Figures = figures(r.Outcomes)
	if len(before) > 0 {
		f := figures(before)
		r.HistoryBefore = &f
	}
	r.ByGoldTables = groups(r.Outcomes, byGoldTables)
	r.ByDifficulty = groups(r.Outcomes, func(o *Outcome) string { return o.Difficulty })
	r.Misses = misses(r.Outcomes)
	r.Calibration = calibration.reliabilities()
	r.Latency = latency(took)
	for name, took := range phases {
		if r.Phases == nil {
			r.Phases = map[string]Latency{}
		}
		r.Phases[name] = latency(took)
	}
	r.QPS = perSecond(took)
	return r, nil
}

// validate reports what is wrong with the options by themselves.
func (o Options) validate() error {
	if o.Language != "" && o.Language != German {
		return fmt.Errorf("%w: questions come in their own language or in %q, not in %q", ErrSettings, German, o.Language)
	}
	if o.Ablate != "" && !slices.Contains(Parts[:], o.Ablate) {
		return fmt.Errorf("%w: there is no part %q to leave out; name one of %s", ErrSettings, o.Ablate, strings.Join(Parts[:], ", "))
	}
	if o.Index != "" && !slices.Contains(Indexes[:], o.Index) {
		return fmt.Errorf("%w: there is no index %q; name one of %s", ErrSettings, o.Index, strings.Join(Indexes[:], ", "))
	}
	return nil
}

func settings(m *material, o Options) Settings {
	s := m.snapshot
	out := Settings{
		Databases: len(s.Databases()), Tables: s.OfKind(catalog.KindTable).Len(), Columns: s.OfKind(catalog.KindColumn).Len(),
		Evidence: o.Evidence, Language: original, NamesOnly: o.NamesOnly, DropDescriptions: o.DropDescriptions,
		History: none, HistoryQuestions: s.OfKind(catalog.KindQuery).Len(), Ablated: none,
		Index: Local, Weights: o.Weights, Models: none, Snapshot: s.Version()[:12], Limit: o.Limit, Parallel: o.Parallel,
	}
	for _, o := range s.All() {
		if (o.Table != nil || o.Column != nil) && o.Description != "" {
			out.Described++
		}
		if o.Column != nil && len(o.Column.Samples) > 0 {
			out.Sampled++
		}
	}
	if o.Language != "" {
		out.Language = o.Language
	}
	if o.History != "" {
		out.History = o.History
	}
	if o.Ablate != "" {
		out.Ablated = o.Ablate
	}
	if o.Index != "" {
		out.Index = o.Index
	}
	return out
}

// posed is a question as it is asked, with its known answer.
type posed struct {
	ingest.Question
	text            string
	tables, columns map[uint32]bool
}

// led is the question with an answer of tables that rank for themselves: identical partitions are one object, and whoever finds
// it has found them all.
func (q *posed) led(leader func(uint32) uint32) *posed {
	if leader == nil {
		return q
	}
	out := *q
	out.tables, out.columns = map[uint32]bool{}, map[uint32]bool{}
	for id := range q.tables {
		out.tables[leader(id)] = true
	}
	for id := range q.columns {
		out.columns[leader(id)] = true
	}
	return &out
}

// pose prepares the questions that can be measured, and counts those that cannot.
func (m *material) pose(set string, questions []ingest.Question, o Options) (out []posed, skipped int, err error) {
	said := false // whether any question is said in the language
	for _, q := range questions {
		if o.Limit > 0 && len(out) == o.Limit {
			break
		}
		text := q.Question
		if o.Language == German {
			text = q.QuestionDE
		}
		said = said || text != ""
		if o.Evidence && q.Evidence != "" {
			text += "\n" + q.Evidence
		}
		p := posed{q, text, m.gold(catalog.KindTable, q.DB, q.GoldTables), m.gold(catalog.KindColumn, q.DB, q.GoldColumns)}
		if len(p.tables) == 0 || o.Language == German && q.QuestionDE == "" {
			skipped++
			continue
		}
		out = append(out, p)
	}
	switch {
	case !said && o.Language != "":
		return nil, 0, fmt.Errorf("%w: %s has no questions in %q; name a set that does, as spider_train", ErrSettings, set, o.Language)
	case len(out) == 0:
		return nil, 0, errors.New("eval: no question of " + set + " has gold tables")
	}
	return out, skipped, nil
}

// gold finds what a question names. What the catalog lacks is left out, so that a fault of the data is not a miss of
// the ranking.
func (m *material) gold(k catalog.Kind, database string, given []string) map[uint32]bool {
	out := map[uint32]bool{}
	for _, ref := range m.names.all(k, database, given) {
		if id, ok := m.snapshot.ID(ref); ok {
			out[id] = true
		}
	}
	return out
}

// reply is how one question went.
type reply struct {
	outcome Outcome
	before  *Outcome // with older past queries only; nil without dates
	took    time.Duration
	phases  map[string]time.Duration
	calibration
}

// ask puts the questions, so many at once, and returns the replies in their order.
func (m *material) ask(ctx context.Context, x searcher, questions []posed, parallel int, progress func(string)) ([]reply, error) {
	everything := acl.Everything(m.snapshot)
	dated := m.dated && !slices.ContainsFunc(questions, func(q posed) bool { return q.Date.IsZero() })
	out := make([]reply, len(questions))
	var mu sync.Mutex
	done := 0
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i := range questions {
		q := &questions[i]
		g.Go(func() error {
			f, err := x.search(ctx, q.text, everything)
			if err != nil {
				return fmt.Errorf("eval: question %s: %w", q.ID, err)
			}
			q := q.led(f.leader)
			out[i] = reply{outcome: m.outcome(q, f), took: f.took, phases: f.phases, calibration: m.calibration(q, f.verdict)}
			if dated {
				f, err := x.search(ctx, q.text, m.before(q.Date))
				if err != nil {
					return fmt.Errorf("eval: question %s, with older past queries only: %w", q.ID, err)
				}
				before := m.outcome(q, f)
				out[i].before = &before
			}
			mu.Lock()
			defer mu.Unlock()
			if done++; done%200 == 0 {
				progress(fmt.Sprintf("%d of %d questions", done, len(questions)))
			}
			return nil
		})
	}
	return out, g.Wait()
}

// outcome compares what was found with the known answer.
func (m *material) outcome(q *posed, f found) Outcome {
	out := Outcome{
		ID: q.ID, Difficulty: q.Difficulty, GoldTables: len(q.tables), GoldColumns: len(q.columns),
		TableRecall: recall(q.tables, f.tables), HasContext: f.context != nil,
	}
	out.rank(q.tables, f.tables)
	if strings.EqualFold(f.database, q.DB) {
		out.Localized = 1
	}
	if len(q.columns) > 0 {
		out.ColumnRecall = recall(q.columns, f.columns)
	}
	if c := f.context; c != nil {
		out.Columns, out.Tokens = float64(len(c.columns)), float64(c.tokens)
		if len(q.columns) > 0 {
			out.ground(q.columns, c.columns)
		}
	}
	out.Missed = m.missed(q.text, q.DB, q.tables, f.tables)
	return out
}

// perSecond is how many questions one core answers in a second.
func perSecond(took []time.Duration) float64 {
	sum := time.Nanosecond // a clock may be too coarse to see a question pass
	for _, d := range took {
		sum += d
	}
	return math.Round(10*float64(len(took))/sum.Seconds()) / 10
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
