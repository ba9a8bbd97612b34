package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/retrieval/eval"
)

func evalCommand() *cobra.Command {
	var (
		o      eval.Options
		log    testLog
		asJSON bool
		other  string
		page   string
	)
	c := &cobra.Command{
		Use:   "eval SET...",
		Short: "Measure retrieval on sets of questions with known answers",
		Long: `Put all databases of a benchmark set into one catalog, ask its questions, and compare what is found with the tables
and columns of the known answers. Recalls are means over questions of found / known, in percent; intervals are 95%.

--against measures a second time with settings changed, and says what the difference is and whether it could be chance.
It takes the settings of this command without their dashes, "no-" in front to take one back, and commas in between.

--ablate leaves a part out: of the catalog, metrics, relationships (and keys), queries, columns (as objects that are
searched), table-descriptions or values; of the ranking, judge (sums of evidence rank), vectors (only words rank; the lexicon
and the scores of past questions are made of vectors, so they go too), lexicon (words are not found by their meaning) or
value-search. A part that is not there cannot be left out. schemagate eval tables --table 2,parts measures all of them.

--index measures something else in the linker's place: bm25 over rendered objects, unified (the same with all types in
one collection), or vectors (the embedder alone). These know no past queries and build no context.

"calibration" says how far the judge's probabilities can be believed: the expected calibration error and the Brier
score, with ten bins, over all that was judged; of tables only those of the right database count.

Latencies are those of single questions, each answered on one core. With --parallel more of them run at once, which is
sooner done, but they wait for each other's memory and cores; leave it out where latencies matter.

Figures on bird_train, spider_train and text2sql_data are too good: the models that ship learned from these, and the
output says so. Nothing may be chosen by a test set. --log and --why note each run on one, so that it would show.`,
		Example: `  schemagate eval bird_train --bench ../shared/bench --json
  schemagate eval spider_train --bench ../shared/bench --language de --parallel 2
  schemagate eval bird_train --bench ../shared/bench --against index=bm25
  schemagate eval spider_train --bench ../shared/bench --limit 1000 --against ablate=lexicon
  schemagate eval bird_train spider_train --bench ../shared/bench --report out.html
  schemagate eval sede_test --bench ../shared/bench --history sede_val --log retrieval/eval/runs.jsonl --why "figures of the release"
  schemagate eval tables --bench ../shared/bench --table 2,13`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("name a set, as in schemagate eval bird_train")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := findBench(&o); err != nil {
				return err
			}
			changed, err := changeSettings(o, other)
			if err != nil {
				return err
			}
			if err := log.complete(); err != nil {
				return err
			}
			run := evaluation{o: o, asJSON: asJSON, out: c.OutOrStdout(), run: log.runs(c.ErrOrStderr())}
			if other != "" {
				run.against, run.change = &changed, other
			}
			for _, set := range args {
				if set == accessSet {
					a, err := measureAccess(c.Context(), o.Bench, o.Limit, progress(c.ErrOrStderr()))
					if err != nil {
						return err
					}
					if asJSON {
						err = printJSON(c.OutOrStdout(), a)
					} else {
						printAgreement(c.OutOrStdout(), a)
					}
					if err != nil {
						return err
					}
					continue
				}
				if err := run.set(c.Context(), set); err != nil {
					return asUsage(err)
				}
			}
			return writePage(page, run.results)
		},
	}
	f := c.Flags()
	settingFlags(c, &o)
	runFlags(c, &o)
	log.flags(c)
	f.StringVar(&other, "against", "", "compare with a run with these settings, as in names-only or no-history,drop-descriptions=0.5")
	f.StringVar(&page, "report", "", "write all results to one HTML page")
	f.BoolVar(&asJSON, "json", false, "print one JSON document for each set")
	c.AddCommand(evalTablesCommand())
	return c
}

// findBench completes the folder of the benchmark data.
func findBench(o *eval.Options) error {
	if o.Bench == "" {
		o.Bench = os.Getenv("SCHEMAGATE_BENCH")
	}
	if o.Bench == "" {
		return usagef("no benchmark data is given; name its folder with --bench DIR or SCHEMAGATE_BENCH")
	}
	return nil
}

// asUsage tells what cannot be measured from what went wrong.
func asUsage(err error) error {
	if errors.Is(err, eval.ErrSettings) {
		return usageError{err}
	}
	return err
}

// runFlags adds the flags of how a run is made, whatever it measures.
func runFlags(c *cobra.Command, o *eval.Options) {
	f := c.Flags()
	f.StringVar(&o.Bench, "bench", "", "folder with the benchmark data (default $SCHEMAGATE_BENCH)")
	f.IntVar(&o.Limit, "limit", 0, "measure only the first N questions")
	f.IntVar(&o.Parallel, "parallel", 1, "ask N questions at once")
}

// settingFlags adds the flags of what can be compared, with what o says as their defaults.
func settingFlags(c *cobra.Command, o *eval.Options) {
	questionFlags(c, o)
	f := c.Flags()
	f.Float64Var(&o.DropDescriptions, "drop-descriptions", o.DropDescriptions, "share of descriptions to leave out, 0 to 1")
	f.StringVar(&o.Ablate, "ablate", o.Ablate, "part to leave out: "+strings.Join(eval.Parts[:], ", "))
	f.StringVar(&o.Index, "index", eval.Local, "what is measured: "+strings.Join(eval.Indexes[:], ", "))
}

// questionFlags adds those of them that say what is asked and what is known.
func questionFlags(c *cobra.Command, o *eval.Options) {
	f := c.Flags()
	f.BoolVar(&o.Evidence, "evidence", o.Evidence, "give the set's hint along with the question")
	f.StringVar(&o.Language, "language", o.Language, "ask in another language than the set's own: "+eval.German)
	f.BoolVar(&o.NamesOnly, "names-only", o.NamesOnly, "leave descriptions, samples and other names out of the catalog")
	f.StringVar(&o.History, "history", o.History, "set whose questions are the past queries of the catalog")
}

// changeSettings returns o as a list of settings changes it.
func changeSettings(o eval.Options, change string) (eval.Options, error) {
	if change == "" {
		return o, nil
	}
	var changed, plain cobra.Command
	settingFlags(&changed, &o)
	settingFlags(&plain, new(eval.Options))
	for _, setting := range strings.Split(change, ",") {
		name, value, given := strings.Cut(strings.TrimSpace(setting), "=")
		back, isBack := strings.CutPrefix(name, "no-")
		if isBack && !given {
			name = back
		}
		flag := changed.Flags().Lookup(name)
		if flag == nil {
			return o, usagef("--against: there is no setting %q; name one as in names-only, no-history or drop-descriptions=0.5", setting)
		}
		switch {
		case isBack && !given:
			value = plain.Flags().Lookup(name).DefValue
		case !given && flag.NoOptDefVal != "":
			value = flag.NoOptDefVal
		case !given:
			return o, usagef("--against: %s needs a value, as in %s=VALUE", name, name)
		}
		if err := flag.Value.Set(value); err != nil {
			return o, usagef("--against: %s: %w", setting, err)
		}
	}
	return o, nil
}

// evaluation is one command: runs over several sets, and what they are compared with.
type evaluation struct {
	o       eval.Options
	against *eval.Options // nil without a comparison
	change  string        // what the comparison changes, as the user wrote it
	asJSON  bool
	out     io.Writer
	run     runFunc
	results eval.Results
}

// set measures one set and prints it.
func (e *evaluation) set(ctx context.Context, set string) error {
	first, err := e.run(ctx, set, e.o)
	if err != nil {
		return err
	}
	if e.against == nil {
		e.results.Reports = append(e.results.Reports, first)
		if e.asJSON {
			return printJSON(e.out, first)
		}
		printReport(e.out, first)
		return nil
	}
	second, err := e.run(ctx, set, *e.against)
	if err != nil {
		return err
	}
	c, err := eval.Compare(first, second)
	if err != nil {
		return err
	}
	e.results.Reports = append(e.results.Reports, first, second)
	e.results.Comparisons = append(e.results.Comparisons, c)
	if e.asJSON {
		return printJSON(e.out, c)
	}
	printReport(e.out, first)
	printReport(e.out, second)
	printComparison(e.out, c, e.change)
	return nil
}

// writePage writes results to a page, if one is wanted.
func writePage(path string, results eval.Results) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := results.HTML(f); err != nil {
		f.Close()
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return f.Close()
}

func printReport(w io.Writer, r eval.Report) {
	fmt.Fprintf(w, "%s: %d questions over %d databases, %d tables, %d columns (%s)\n", r.Set, r.Questions, r.Settings.Databases, r.Settings.Tables, r.Settings.Columns, r.Settings)
	fmt.Fprintf(w, "  index %s, models %s\n", r.Settings.Index, r.Settings.Ran())
	printFigures(w, r.Figures)
	if r.Contexts != nil {
		fmt.Fprintf(w, "  contexts: exact match %.1f  strict recall %.1f  %.1f columns  %.0f tokens\n", r.ExactMatch, r.StrictRecall, r.MeanColumns, r.MeanTokens)
	}
	fmt.Fprintf(w, "  latency: p50 %.1f ms  p95 %.1f ms  %.0f questions/s on one core, %d at once\n", r.Latency.P50, r.Latency.P95, r.QPS, r.Settings.Parallel)
	if r.Calibration != nil {
		var parts []string
		for _, name := range eval.Judged() {
			if c, ok := r.Calibration[name]; ok {
				parts = append(parts, fmt.Sprintf("%s %.4f / %.4f of %d", name, c.Error, c.Brier, c.Judged))
			}
		}
		fmt.Fprintf(w, "  calibration error / Brier score of the judge: %s\n", strings.Join(parts, ", "))
	}
	printGroups(w, "by gold tables", r.ByGoldTables)
	printGroups(w, "by difficulty", r.ByDifficulty)
	if r.Misses.Tables > 0 {
		fmt.Fprintf(w, "  %d gold tables of %d questions are not among the first five; of these (several can hold):\n", r.Misses.Tables, r.Misses.Questions)
		for _, c := range eval.Causes() {
			fmt.Fprintf(w, "    %6d  %s\n", r.Misses.Causes[c.Name], c.Title)
		}
	}
	if r.HistoryBefore != nil {
		fmt.Fprintln(w, "  with only those past questions that are older than the one asked:")
		printFigures(w, *r.HistoryBefore)
	}
}

func printFigures(w io.Writer, f eval.Figures) {
	for _, line := range []struct {
		name   string
		recall map[string]float64
	}{{"table recall", f.TableRecall}, {"column recall", f.ColumnRecall}} {
		fmt.Fprintf(w, "  %-14s", line.name)
		for _, k := range []string{"1", "3", "5", "10", "20", "50"} {
			fmt.Fprintf(w, "  @%s %.1f", k, line.recall[k])
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "  localisation %.1f  hit@1 %.1f  MRR %.3f  NDCG@10 %.3f  MAP@10 %.3f\n", f.Localization, f.Hit1, f.MRR, f.NDCG10, f.MAP10)
	var parts []string
	for _, m := range eval.Measures() {
		if i, ok := f.Intervals[m.Name]; ok {
			parts = append(parts, fmt.Sprintf("%s %s to %s", m.Title, m.Text(i.Low), m.Text(i.High)))
		}
	}
	fmt.Fprintf(w, "  intervals: %s\n", strings.Join(parts, ", "))
}

func printGroups(w io.Writer, name string, groups map[string]eval.Group) {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		g := groups[k]
		part := fmt.Sprintf("%s: %d questions, table recall@5 %.1f", k, g.Questions, g.TableRecall5)
		if g.ColumnRecall10 != nil {
			part += fmt.Sprintf(", column recall@10 %.1f", *g.ColumnRecall10)
		}
		parts = append(parts, part)
	}
	if len(parts) > 0 {
		fmt.Fprintf(w, "  %s\n    %s\n", name, strings.Join(parts, "\n    "))
	}
}

func printComparison(w io.Writer, c eval.Comparison, change string) {
	fmt.Fprintf(w, "%s: what the first run has over the second (%s)\n", c.First.Set, change)
	for _, m := range eval.Measures() {
		if d, ok := c.Differences[m.Name]; ok {
			fmt.Fprintf(w, "  %-18s %8s   95%% interval %s to %s\n", m.Title, m.Signed(d.Difference), m.Signed(d.Low), m.Signed(d.High))
		}
	}
	for _, test := range []struct {
		name string
		eval.McNemar
	}{{"all tables in 5", c.TablesIn5}, {"right database", c.Localized}} {
		fmt.Fprintf(w, "  %-18s only the first run %d, only the second %d questions; %s\n", test.name, test.OnlyFirst, test.OnlySecond, test.Chance())
	}
}
