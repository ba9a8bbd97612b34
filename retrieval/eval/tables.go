package eval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// TableNames are the paper's tables that Study.Table measures again, in the paper's order, and one of our own. The
// paper's table 10 is its table 4 once more, so it goes by either number.
var TableNames = [...]string{"1", "2", "4", "6", "7", "8", "12", "13", "figure5", tableParts}

// tableParts is the table that the paper does not have.
const tableParts = "parts"

// Table is one of the paper's tables, measured again, with the paper's figures beside ours.
type Table struct {
	Name  string `json:"table"`
	Title string `json:"title"`
	// Set, Questions and Settings are those of the plain run; a row says in what it differs.
	Set       string   `json:"set"`
	Questions int      `json:"questions"`
	Settings  Settings `json:"settings"`
	// Paper says what the paper's figures were measured on; it is empty if it has none.
	Paper   string   `json:"paper"`
	Columns []Column `json:"columns"`
	Rows    []Row    `json:"rows"`
	Notes   []string `json:"notes,omitempty"`
}

// Column is what a column of a table holds.
type Column struct {
	Title  string `json:"title"`
	Digits int    `json:"-"` // after the point, for people
}

// Row holds figures by column. Those that were not measured, or that the paper lacks, are nil.
type Row struct {
	Name      string     `json:"row"`
	Questions int        `json:"questions,omitempty"` // where they are not all
	Ours      []*Figure  `json:"ours"`
	Paper     []*float64 `json:"papers"`
	// Missing says why ours is not there.
	Missing string `json:"not_measured,omitempty"`
}

// Figure is a mean, with its 95% interval where there is one.
type Figure struct {
	Value float64 `json:"value"`
	*Interval
}

// Study measures the paper's tables on one set. What several tables need is measured once. Use one goroutine.
type Study struct {
	set     string
	options Options
	run     func(ctx context.Context, set string, o Options) (Report, error)
	reports map[Options]Report
}

// NewStudy prepares a study of a set. The options are those of its plain run; run, which is Run or wraps it, is called
// for each setting.
func NewStudy(set string, o Options, run func(ctx context.Context, set string, o Options) (Report, error)) *Study {
	return &Study{set: set, options: o, run: run, reports: map[Options]Report{}}
}

func (s *Study) report(ctx context.Context, o Options) (Report, error) {
	if r, ok := s.reports[o]; ok {
		return r, nil
	}
	r, err := s.run(ctx, s.set, o)
	if err == nil {
		s.reports[o] = r
	}
	return r, err
}

// Table measures one of TableNames, or "10".
func (s *Study) Table(ctx context.Context, name string) (Table, error) {
	fill, ok := map[string]func(*sheet){
		"1": (*sheet).effects, "2": (*sheet).ablation, "4": (*sheet).complexity, "6": (*sheet).latency, "7": (*sheet).sweep, "8": (*sheet).historySweep,
		"10": (*sheet).complexity, "12": (*sheet).weights, "13": (*sheet).architecture, "figure5": (*sheet).noise, tableParts: (*sheet).parts,
	}[name]
	if !ok {
		return Table{}, fmt.Errorf("%w: there is no table %q; name one of %s", ErrSettings, name, strings.Join(TableNames[:], ", "))
	}
	base, err := s.report(ctx, s.options)
	if err != nil {
		return Table{}, err
	}
	sh := &sheet{ctx: ctx, study: s, base: base, table: Table{
		Name: name, Set: s.set, Questions: base.Questions, Settings: base.Settings, Paper: crush,
	}}
	fill(sh)
	return sh.table, sh.err
}

// What the paper's figures were measured on.
const (
	crush = "CRUSH4SQL, which is bird_dev here, 1,534 questions"
	sede  = "SEDE, which is sede_test here, 857 questions"
)

// sheet is a table that is being filled. After an error it does nothing more.
type sheet struct {
	ctx   context.Context
	study *Study
	base  Report
	table Table
	err   error
}

// measureOf reads a figure off a run; it is nil if the run has none.
type measureOf func(*Report) *Figure

// with returns the options of the plain run, changed.
func (s *sheet) with(change func(*Options)) Options {
	o := s.study.options
	change(&o)
	return o
}

// baseline returns the options of the plain run for another index, which knows no past queries.
func (s *sheet) baseline(index string) Options {
	return s.with(func(o *Options) { o.Index, o.History = index, "" })
}

// row measures one setting. What cannot be measured stays empty, and the row says why.
func (s *sheet) row(name string, o Options, measures []measureOf, paper ...float64) {
	if s.err != nil {
		return
	}
	r, err := s.study.report(s.ctx, o)
	switch {
	case errors.Is(err, ErrSettings):
		s.absent(name, strings.TrimPrefix(err.Error(), ErrSettings.Error()+": "), paper...)
	case err != nil:
		s.err = err
	default:
		s.filled(name, &r, measures, paper...)
	}
}

// part measures those questions of a run that keep lets through.
func (s *sheet) part(name string, r *Report, keep func(*Outcome) bool, measures []measureOf, paper ...float64) {
	if s.err != nil {
		return
	}
	kept := part(r, keep)
	if kept == nil {
		s.absent(name, "the set has no such question", paper...)
		return
	}
	s.filled(name, kept, measures, paper...)
	s.table.Rows[len(s.table.Rows)-1].Questions = kept.Questions
}

// part sums up some questions of a run; it is nil if there are none.
func part(r *Report, keep func(*Outcome) bool) *Report {
	var kept []Outcome
	for i := range r.Outcomes {
		if keep(&r.Outcomes[i]) {
			kept = append(kept, r.Outcomes[i])
		}
	}
	if kept == nil {
		return nil
	}
	return &Report{Set: r.Set, Questions: len(kept), Figures: figures(kept), Outcomes: kept}
}

func (s *sheet) filled(name string, r *Report, measures []measureOf, paper ...float64) {
	row := Row{Name: name, Paper: s.papers(paper)}
	row.Ours = make([]*Figure, len(s.table.Columns))
	for i, m := range measures {
		row.Ours[i] = m(r)
	}
	s.table.Rows = append(s.table.Rows, row)
}

// absent adds a row that only the paper has.
func (s *sheet) absent(name, why string, paper ...float64) {
	if s.err == nil {
		s.table.Rows = append(s.table.Rows, Row{Name: name, Ours: make([]*Figure, len(s.table.Columns)), Paper: s.papers(paper), Missing: why})
	}
}

// papers makes a list as long as the columns. NaN and what is not given stand for what the paper lacks.
func (s *sheet) papers(given []float64) []*float64 {
	out := make([]*float64, len(s.table.Columns))
	for i, x := range given {
		if !math.IsNaN(x) {
			out[i] = &x
		}
	}
	return out
}

func (s *sheet) columns(titles ...string) {
	for _, t := range titles {
		digits := 1
		if strings.HasPrefix(t, "MRR") {
			digits = 3
		}
		s.table.Columns = append(s.table.Columns, Column{t, digits})
	}
}

func (s *sheet) note(text string) { s.table.Notes = append(s.table.Notes, text) }

// measured reads off one of the measures that carry an interval.
func measured(name string) measureOf {
	m := measures[slices.IndexFunc(measures[:], func(m Measure) bool { return m.Name == name })]
	return func(r *Report) *Figure {
		i, ok := r.Intervals[name]
		if !ok {
			return nil
		}
		return &Figure{m.mean(&r.Figures), &i}
	}
}

// recallAt reads off a recall without its interval.
func recallAt(k int, of func(*Report) map[string]float64) measureOf {
	return func(r *Report) *Figure {
		x, ok := of(r)[fmt.Sprint(k)]
		if !ok {
			return nil
		}
		return &Figure{Value: x}
	}
}

func tableRecall(r *Report) map[string]float64  { return r.TableRecall }
func columnRecall(r *Report) map[string]float64 { return r.ColumnRecall }

func singleTable(o *Outcome) bool { return o.GoldTables == 1 }

// ofSingleTables reads a figure off the questions with one gold table.
func ofSingleTables(m measureOf) measureOf {
	return func(r *Report) *Figure {
		if kept := part(r, singleTable); kept != nil {
			return m(kept)
		}
		return nil
	}
}

// The two measures that most tables have.
var (
	tableRecall5   = measured("table_recall_5")
	columnRecall10 = measured("column_recall_10")
	twoRecalls     = []measureOf{tableRecall5, columnRecall10}
)

// What is said of rows that have no counterpart here.
const (
	noHistory    = "no set of past questions over the same databases was named"
	noUnified    = "the ranker judges by what each type brings, so one collection would leave it nothing to judge by"
	inPhases     = "it is part of the phases below"
	noGeneration = "no SQL is written in this evaluation"
)

// history adds a row with past queries, if a set of them was named.
func (s *sheet) history(name string, measures []measureOf, paper ...float64) {
	if s.study.options.History == "" {
		s.absent(name, noHistory, paper...)
		return
	}
	s.row(name, s.study.options, measures, paper...)
}

func (s *sheet) effects() {
	s.table.Title = "Main effects"
	s.columns("table R@5", "table R@20", "column R@10", "MRR", "one gold table: R@5")
	list := []measureOf{tableRecall5, recallAt(20, tableRecall), columnRecall10, measured("mrr"), ofSingleTables(tableRecall5)}
	no := math.NaN()
	plain := s.with(func(o *Options) { o.History = "" })
	if strings.HasPrefix(s.study.set, "sede") {
		s.table.Paper = sede
		s.row("BM25 over the templates", s.baseline(BM25), list)
		s.row("without history", plain, list, 52.1, 83.5, 7.7, no, 71.0)
		s.history("with history", list, 92.3, 95.0, 7.7, no, 98.4)
		return
	}
	s.row("BM25 over the templates", s.baseline(BM25), list, 50.0, 63.4, 28.7, 0.438)
	s.row("vectors, no reranker", s.baseline(Vectors), list, 82.8, 94.3, 44.4, 0.624)
	s.row("all of it (the paper's vectors and reranker)", plain, list, 89.1, 96.4, 55.5, 0.761, 96.9)
	s.history("the same with history", list)
}

// less reads off the difference between a run and the plain one.
func (s *sheet) less(name string) measureOf {
	return func(r *Report) *Figure {
		c, err := Compare(*r, s.base)
		if err != nil {
			s.err = err
			return nil
		}
		d, ok := c.Differences[name]
		if !ok {
			return nil
		}
		return &Figure{d.Difference, &d.Interval}
	}
}

func (s *sheet) ablation() {
	s.table.Title = "What each type of object is worth"
	s.columns("table R@5", "column R@10", "table R@5 less all of it", "column R@10 less all of it")
	s.row("all of it", s.study.options, twoRecalls, 89.1, 55.5)
	list := append(slices.Clone(twoRecalls), s.less("table_recall_5"), s.less("column_recall_10"))
	for _, x := range []struct {
		name, part string
		paper      []float64
	}{
		{"without past queries", PartQueries, []float64{84.2, 52.1, -4.9, -3.4}},
		{"without metrics", PartMetrics, []float64{85.0, 53.8, -4.1, -1.7}},
		{"without relationships", PartRelationships, []float64{87.4, 52.3, -1.7, -3.2}},
		{"without column objects", PartColumns, []float64{88.3, 52.7, -0.8, -2.8}},
		{"without descriptions and other names of tables", PartTableDescriptions, []float64{87.2, 54.1, -1.9, -1.4}},
		{"without sample values", PartValues, nil},
	} {
		s.row(x.name, s.with(func(o *Options) { o.Ablate = x.part }), list, x.paper...)
	}
	s.note("Differences are paired. Nothing was invented for a set that does not hold a type.")
}

func (s *sheet) complexity() {
	s.table.Title = "By number of gold tables"
	s.note("The paper has this twice, as tables 4 and 10.")
	s.columns("table R@5", "column R@10")
	between := func(low, high int) func(*Outcome) bool {
		return func(o *Outcome) bool { return low <= o.GoldTables && o.GoldTables <= high }
	}
	s.part("1 table", &s.base, between(1, 1), twoRecalls, 96.9, 73.4)
	s.part("2 tables", &s.base, between(2, 2), twoRecalls, 88.5, 51.3)
	s.part("3 to 4 tables", &s.base, between(3, 4), twoRecalls, 79.7, 45.0)
	s.part("5 tables or more", &s.base, between(5, math.MaxInt), twoRecalls)
}

func (s *sheet) latency() {
	s.table.Title = "Latency by phase, in ms"
	s.table.Columns = []Column{{"mean", 2}, {"p50", 2}, {"p95", 2}}
	r, err := s.study.report(s.ctx, s.with(func(o *Options) { o.Parallel = 1 }))
	if err != nil {
		s.err = err
		return
	}
	s.table.Settings = r.Settings
	times := func(l Latency) []measureOf {
		var out []measureOf
		for _, x := range [...]float64{l.Mean, l.P50, l.P95} {
			out = append(out, func(*Report) *Figure { return &Figure{Value: x} })
		}
		return out
	}
	s.absent("intent", inPhases, 500)
	s.absent("embedding the question", inPhases, 200)
	s.absent("vector search", inPhases, 5)
	s.absent("reranking", inPhases, 400)
	for _, name := range slices.Sorted(maps.Keys(r.Phases)) {
		s.filled("phase "+name, &r, times(r.Phases[name]))
	}
	s.filled("retrieval from question to context", &r, times(r.Latency), 1280)
	s.absent("writing SQL", noGeneration, 1500)
	s.note(fmt.Sprintf("One question after the other, each in one goroutine, so this is one core's work: %.0f questions a second (the paper: 0.93). "+
		"In the phase rank the question is embedded, evidence gathered and judged; in the phase link intent, selection, joins and the text of the context are made.", r.QPS))
}

func (s *sheet) depths() []Column {
	var out []Column
	for _, k := range depths {
		out = append(out, Column{fmt.Sprintf("@%d", k), 1})
	}
	return out
}

func sweepOf(of func(*Report) map[string]float64) []measureOf {
	var out []measureOf
	for _, k := range depths {
		out = append(out, recallAt(k, of))
	}
	return out
}

func (s *sheet) sweep() {
	s.table.Title = "Recall at all depths"
	s.table.Columns = s.depths()
	for _, x := range []struct {
		what             string
		of               []measureOf
		vectors, chained []float64
	}{
		{"tables", sweepOf(tableRecall), []float64{51.2, 72.4, 82.8, 89.7, 94.3, 97.1}, []float64{62.8, 81.3, 89.1, 93.5, 96.4, 98.2}},
		{"columns", sweepOf(columnRecall), []float64{14.2, 24.8, 33.4, 44.4, 55.2, 68.9}, []float64{21.7, 34.5, 43.9, 55.5, 64.1, 76.3}},
	} {
		s.row(x.what+", BM25 over the templates", s.baseline(BM25), x.of)
		s.row(x.what+", vectors, no reranker", s.baseline(Vectors), x.of, x.vectors...)
		s.row(x.what+", all of it (the paper's vectors and reranker)", s.study.options, x.of, x.chained...)
	}
	s.note("The paper's R@1 fits found / min(K, |gold|), ours found / |gold|; from K = 4 on the two are the same on its set.")
}

func (s *sheet) historySweep() {
	s.table.Title = "Table recall at all depths, with and without past queries"
	s.table.Paper = sede
	s.table.Columns = s.depths()
	plain := s.with(func(o *Options) { o.History = "" })
	all := sweepOf(tableRecall)
	var single []measureOf
	for _, m := range all {
		single = append(single, ofSingleTables(m))
	}
	s.row("without history", plain, all, 22.3, 41.8, 52.1, 71.2, 83.5, 91.4)
	s.history("with history", all, 74.1, 87.6, 92.3, 94.2, 95.0, 96.8)
	s.row("one gold table, without history", plain, single, 38.5, 59.2, 71.0, 82.4, 89.7, 94.3)
	s.history("one gold table, with history", single, 89.2, 95.7, 98.4, 99.1, 99.5, 99.8)
}

func (s *sheet) weights() {
	s.table.Title = "The weights of embedding, reranker and history"
	s.columns("table R@5", "column R@10")
	s.row("as it ships", s.study.options, twoRecalls)
	for _, x := range []struct {
		w      Weights
		recall [2]float64
	}{
		{Weights{1, 0, 0}, [2]float64{82.8, 44.4}},
		{Weights{0, 1, 0}, [2]float64{87.3, 53.8}},
		{Weights{0.5, 0.5, 0}, [2]float64{88.6, 54.9}},
		{Weights{0.3, 0.5, 0.2}, [2]float64{89.1, 55.5}},
		{Weights{0.2, 0.6, 0.2}, [2]float64{88.9, 55.1}},
		{Weights{0.3, 0.3, 0.4}, [2]float64{88.4, 53.2}},
	} {
		name := fmt.Sprintf("%.1f / %.1f / %.1f", x.w.Embedding, x.w.Reranker, x.w.History)
		s.row(name, s.with(func(o *Options) { o.Weights = x.w }), twoRecalls, x.recall[:]...)
	}
	s.note("With 1.0 / 0.0 / 0.0 the ranker's lists are in the order of each object's own likeness to the question. The paper's row is its vectors by themselves, " +
		"and so is \"vectors, no reranker\" of tables 1 and 7, where a table counts as the best of its own vector and its columns'.")
}

func (s *sheet) architecture() {
	s.table.Title = "Typed collections against one, and against BM25"
	s.columns("table R@5", "column R@10")
	s.row("BM25 over the templates, a collection for each type", s.baseline(BM25), twoRecalls, 50.0, 28.7)
	s.row("BM25 over the templates, one collection", s.baseline(Unified), twoRecalls)
	s.row("vectors, no reranker, a collection for each type", s.baseline(Vectors), twoRecalls)
	s.absent("vectors and reranker, one collection", noUnified, 78.3, 45.0)
	s.row("all of it (the paper's vectors and reranker, a collection for each type)", s.study.options, twoRecalls, 80.7, 44.9)
	s.note("The one collection brings as many hits as those of the types together, and tables and columns compete in it for these.")
}

func (s *sheet) noise() {
	s.table.Title = "When descriptions are missing"
	s.columns("table R@5", "column R@10")
	for _, x := range []struct {
		share float64
		paper []float64
	}{{0, []float64{80.7, 44.9}}, {0.25, nil}, {0.5, nil}, {0.75, nil}} {
		name := fmt.Sprintf("%.0f%% dropped", 100*x.share)
		if x.share > 0 && s.base.Settings.Described == 0 {
			s.absent(name, "the catalog holds no descriptions", x.paper...)
			continue
		}
		s.row(name, s.with(func(o *Options) { o.DropDescriptions = x.share }), twoRecalls, x.paper...)
	}
	s.note("The paper drops sample values too, and says of all four that table R@5 stays between 80.6 and 81.1, column R@10 between 44.9 and 46.6.")
}

func (s *sheet) parts() {
	s.table.Title = "What each part of the ranking is worth"
	s.table.Paper = ""
	var plain, list []measureOf
	for _, m := range measures {
		s.columns(m.Title)
		plain = append(plain, func(r *Report) *Figure { return &Figure{Value: m.mean(&r.Figures)} })
	}
	for _, m := range measures {
		s.columns(m.Title + " less all of it")
		list = append(list, s.less(m.Name))
	}
	list = append(slices.Clone(plain), list...)
	s.row("all of it", s.study.options, plain)
	for _, x := range []struct{ name, part string }{
		{"without the judge: sums of evidence rank", PartJudge},
		{"without vectors: only words, values and the judge", PartVectors},
		{"without the lexicon: words are not found by their meaning", PartLexicon},
		{"without the search for values", PartValueSearch},
	} {
		s.row(x.name, s.with(func(o *Options) { o.Ablate = x.part }), list)
	}
	s.row("vectors by themselves instead", s.baseline(Vectors), list)
	s.row("BM25 over the templates instead", s.baseline(BM25), list)
	s.note("Differences are paired. The judge learned with all parts there, so what it loses without one of them is more than that part would add to a judge that never had it. " +
		"The last two know no past queries.")
}

// Markdown writes the table for people.
func (t Table) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n%s\n\n", t.heading(), t.about())
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	head, rows := t.grid()
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, r := range rows {
		line(r)
	}
	for _, text := range t.remarks() {
		fmt.Fprintf(&b, "\n%s\n", text)
	}
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

func (t Table) heading() string {
	switch {
	case t.isFigure():
		return "Figure 5: " + t.Title
	case t.Name == tableParts:
		return t.Title
	}
	return "Table " + t.Name + ": " + t.Title
}

func (t Table) isFigure() bool { return t.Name == "figure5" }

// grid writes all cells as text: ours, then the paper's as far as it has any.
func (t Table) grid() (head []string, rows [][]string) {
	var shown []int
	for i := range t.Columns {
		if slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Paper[i] != nil }) {
			shown = append(shown, i)
		}
	}
	head = []string{""}
	for _, c := range t.Columns {
		head = append(head, c.Title)
	}
	for _, i := range shown {
		head = append(head, "paper: "+t.Columns[i].Title)
	}
	for _, r := range t.Rows {
		cells := []string{r.title()}
		for i, c := range t.Columns {
			cells = append(cells, r.ours(i, c.Digits))
		}
		for _, i := range shown {
			cells = append(cells, r.papers(i, t.Columns[i].Digits))
		}
		rows = append(rows, cells)
	}
	return head, rows
}

// about says what was measured, and on what the paper did.
func (t Table) about() string {
	s := t.Settings
	at := "one question at a time"
	if s.Parallel > 1 {
		at = fmt.Sprintf("%d questions at once", s.Parallel)
	}
	about := fmt.Sprintf("%s: %s questions over %d databases, %s tables, %s columns; %s tables and columns are described, %s columns have sample values. "+
		"Plain run: %s; index %s, models %s, snapshot %s, %s.",
		t.Set, count(t.Questions), s.Databases, count(s.Tables), count(s.Columns), count(s.Described), count(s.Sampled),
		s, s.Index, s.Ran(), s.Snapshot, at)
	if t.Paper != "" {
		about += " The paper's figures: " + t.Paper + "."
	}
	return about
}

func (r Row) title() string {
	if r.Questions > 0 {
		return fmt.Sprintf("%s (%s questions)", r.Name, count(r.Questions))
	}
	return r.Name
}

// ours writes a figure with its interval, if it has one.
func (r Row) ours(column, digits int) string {
	f := r.Ours[column]
	switch {
	case r.Missing != "":
		return "n/a"
	case f == nil:
		return "–"
	case f.Interval == nil:
		return decimal(f.Value, digits)
	}
	return fmt.Sprintf("%s (%s to %s)", decimal(f.Value, digits), decimal(f.Low, digits), decimal(f.High, digits))
}

// decimal writes a number without a sign in front of nothing.
func decimal(x float64, digits int) string {
	text := fmt.Sprintf("%.*f", digits, x)
	if strings.Trim(text, "-0.") == "" {
		return strings.TrimPrefix(text, "-")
	}
	return text
}

func (r Row) papers(column, digits int) string {
	if r.Paper[column] == nil {
		return "–"
	}
	return decimal(*r.Paper[column], digits)
}

// remarks are the notes, and why figures are missing.
func (t Table) remarks() []string {
	var order []string
	rows := map[string][]string{}
	for _, r := range t.Rows {
		if r.Missing == "" {
			continue
		}
		if rows[r.Missing] == nil {
			order = append(order, r.Missing)
		}
		rows[r.Missing] = append(rows[r.Missing], r.Name)
	}
	out := slices.Clone(t.Notes)
	for _, why := range order {
		out = append(out, fmt.Sprintf("n/a, %s: %s.", strings.Join(rows[why], "; "), why))
	}
	return out
}
