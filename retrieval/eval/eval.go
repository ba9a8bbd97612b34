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
	Limit            int     // number of questions; 0 means all
}

// Report holds the metrics of one run. Recalls and shares are in percent; MRR, NDCG10 and MAP10 are for tables, 0 to 1.
// Metrics of columns are over the questions that have gold columns.
type Report struct {
	Set          string             `json:"set"`
	Questions    int                `json:"questions"` // measured
	Skipped      int                `json:"skipped"`   // without gold tables
	TableRecall  map[string]float64 `json:"table_recall"`
	ColumnRecall map[string]float64 `json:"column_recall"`
	Hit1         float64            `json:"hit1"`
	MRR          float64            `json:"mrr"`
	NDCG10       float64            `json:"ndcg10"`
	MAP10        float64            `json:"map10"`
	Localization float64            `json:"localization"`  // the best database is the right one
	ExactMatch   float64            `json:"exact_match"`   // the context's columns are the gold columns
	StrictRecall float64            `json:"strict_recall"` // the context holds all gold columns
	MeanColumns  float64            `json:"mean_columns"`
	MeanTokens   float64            `json:"mean_tokens"`
	Latency      Latency            `json:"latency_ms"` // of ranking and building the context
	QPS          float64            `json:"qps"`
	Settings     Settings           `json:"settings"`
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
	Index            string  `json:"index"`
	Models           string  `json:"models"`
	Snapshot         string  `json:"snapshot"`
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
	progress("reading " + set)
	questions, err := ingest.Questions(o.Bench, set)
	if err != nil {
		return Report{}, err
	}
	content, err := ingest.Bench{
		Dir: o.Bench, Set: set, NamesOnly: o.NamesOnly, DropDescriptions: o.DropDescriptions, Seed: schemaDropSeed,
	}.Read(ctx, progress)
	if err != nil {
		return Report{}, err
	}
	s, err := catalog.Build(content.Databases, content.Objects)
	if err != nil {
		return Report{}, err
	}
	progress("indexing")
	index := local.New(s)
	linker, err := retrieval.NewLinker(index, lineage.New(s), templates.NewCounter(), retrieval.DefaultConfig)
	if err != nil {
		return Report{}, err
	}
	view, known := acl.Everything(s), newNames(s)
	r := Report{
		Set: set, TableRecall: map[string]float64{}, ColumnRecall: map[string]float64{},
		Settings: Settings{
			Databases: len(s.Databases()), Tables: s.OfKind(catalog.KindTable).Len(), Columns: s.OfKind(catalog.KindColumn).Len(),
			Evidence: o.Evidence, NamesOnly: o.NamesOnly, DropDescriptions: o.DropDescriptions,
			History: "none", Index: "local", Models: "none", Snapshot: s.Version()[:12],
		},
	}
	var withColumns int
	var took []time.Duration
	for _, q := range questions {
		if o.Limit > 0 && r.Questions == o.Limit {
			break
		}
		if err := ctx.Err(); err != nil {
			return Report{}, err
		}
		tables := known.gold(catalog.KindTable, q.DB, q.GoldTables)
		if len(tables) == 0 {
			r.Skipped++
			continue
		}
		columns := known.gold(catalog.KindColumn, q.DB, q.GoldColumns)
		text := q.Question
		if o.Evidence && q.Evidence != "" {
			text += "\n" + q.Evidence
		}
		before := time.Now()
		c, err := linker.Link(ctx, text, view)
		took = append(took, time.Since(before))
		if err != nil {
			return Report{}, fmt.Errorf("eval: question %s: %w", q.ID, err)
		}
		rank := retrieval.Rank(text, index, view)
		r.Questions++
		r.table(tables, ids(rank.Tables))
		if len(rank.Databases) > 0 && strings.EqualFold(rank.Databases[0].Name, q.DB) {
			r.Localization++
		}
		if len(columns) > 0 {
			withColumns++
			recall(r.ColumnRecall, columns, ids(rank.Columns))
			r.set(columns, c.IDs(catalog.KindColumn))
		}
		r.MeanColumns += float64(len(c.IDs(catalog.KindColumn)))
		r.MeanTokens += float64(c.Tokens)
		if r.Questions%200 == 0 {
			progress(fmt.Sprintf("%d of %d questions", r.Questions, len(questions)))
		}
	}
	if r.Questions == 0 {
		return Report{}, errors.New("eval: no question of " + set + " has gold tables")
	}
	n := float64(r.Questions)
	for k := range r.TableRecall {
		r.TableRecall[k] = percent(r.TableRecall[k] / n)
	}
	for k := range r.ColumnRecall {
		r.ColumnRecall[k] = percent(r.ColumnRecall[k] / float64(withColumns))
	}
	r.Hit1, r.Localization = percent(r.Hit1/n), percent(r.Localization/n)
	if withColumns > 0 {
		r.ExactMatch, r.StrictRecall = percent(r.ExactMatch/float64(withColumns)), percent(r.StrictRecall/float64(withColumns))
	}
	for _, mean := range []*float64{&r.MRR, &r.NDCG10, &r.MAP10, &r.MeanColumns, &r.MeanTokens} {
		*mean = math.Round(*mean/n*1e4) / 1e4
	}
	r.Latency = latency(took)
	r.QPS = math.Round(1e4/r.Latency.Mean) / 10
	return r, nil
}

// names finds objects by the names that the question sets give them, without regard to case.
type names map[string]uint32

func newNames(s *catalog.Snapshot) names {
	n := names{}
	for _, o := range s.All() {
		n[strings.ToLower(o.Ref.Kind.String()+" "+o.Ref.Database+" "+benchName(o.Ref))] = o.ID
	}
	return n
}

// gold finds the named objects of a database. Names that the catalog lacks are left out, so that a fault of the data
// is not a miss of the ranking.
func (n names) gold(k catalog.Kind, database string, given []string) map[uint32]bool {
	out := map[uint32]bool{}
	for _, name := range given {
		if id, ok := n[strings.ToLower(k.String()+" "+database+" "+name)]; ok {
			out[id] = true
		}
	}
	return out
}

// benchName writes a name as the question sets do.
func benchName(r catalog.Ref) string {
	name := r.Table
	if r.Schema != "" {
		name = r.Schema + "." + name
	}
	if r.Kind == catalog.KindColumn {
		name += "." + r.Column
	}
	return name
}

func ids(list []retrieval.Scored) []uint32 {
	out := make([]uint32, len(list))
	for i, x := range list {
		out[i] = x.ID
	}
	return out
}

// recall adds |gold among the first K| / |gold| for each depth.
func recall(into map[string]float64, gold map[uint32]bool, ranked []uint32) {
	for _, k := range depths {
		found := 0
		for _, id := range ranked[:min(k, len(ranked))] {
			if gold[id] {
				found++
			}
		}
		into[fmt.Sprint(k)] += float64(found) / float64(len(gold))
	}
}

// table adds the metrics of a ranking of tables: MRR, NDCG@10 with binary gain, MAP@10.
func (r *Report) table(gold map[uint32]bool, ranked []uint32) {
	recall(r.TableRecall, gold, ranked)
	first := slices.IndexFunc(ranked, func(id uint32) bool { return gold[id] })
	if first == 0 {
		r.Hit1++
	}
	if first >= 0 {
		r.MRR += 1 / float64(first+1)
	}
	var dcg, ideal, precision float64
	found := 0
	for i, id := range ranked[:min(10, len(ranked))] {
		if gold[id] {
			found++
			dcg += 1 / math.Log2(float64(i)+2)
			precision += float64(found) / float64(i+1)
		}
	}
	most := min(10, len(gold))
	for i := range most {
		ideal += 1 / math.Log2(float64(i)+2)
	}
	r.NDCG10 += dcg / ideal
	r.MAP10 += precision / float64(most)
}

// set adds the metrics of a context's columns as a set.
func (r *Report) set(gold map[uint32]bool, chosen []uint32) {
	found := 0
	for _, id := range chosen {
		if gold[id] {
			found++
		}
	}
	if found == len(gold) {
		r.StrictRecall++
		if len(chosen) == len(gold) {
			r.ExactMatch++
		}
	}
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

func percent(x float64) float64 { return math.Round(x*1e4) / 100 }
