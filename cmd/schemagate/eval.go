package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/retrieval/eval"
)

func evalCommand() *cobra.Command {
	var o eval.Options
	var asJSON bool
	c := &cobra.Command{
		Use:   "eval SET",
		Short: "Measure retrieval on a set of questions with known answers",
		Long: `Put all databases of a benchmark set into one catalog, ask its questions, and compare what is found with the tables
and columns of the known answers. Recalls are means over questions of found / known, in percent.`,
		Example: `  schemagate eval bird_dev --bench ../shared/bench --json
  schemagate eval spider_dev --bench ../shared/bench --names-only`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("name one set, as in schemagate eval bird_dev")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if o.Bench == "" {
				o.Bench = os.Getenv("SCHEMAGATE_BENCH")
			}
			if o.Bench == "" {
				return usagef("no benchmark data is given; name its folder with --bench DIR or SCHEMAGATE_BENCH")
			}
			r, err := eval.Run(c.Context(), args[0], o, progress(c.ErrOrStderr()))
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), r)
			}
			w := c.OutOrStdout()
			fmt.Fprintf(w, "%s: %d questions over %d databases, %d tables, %d columns\n", r.Set, r.Questions, r.Settings.Databases, r.Settings.Tables, r.Settings.Columns)
			for _, line := range []struct {
				name   string
				recall map[string]float64
			}{{"table recall", r.TableRecall}, {"column recall", r.ColumnRecall}} {
				fmt.Fprintf(w, "  %-14s", line.name)
				for _, k := range []string{"1", "3", "5", "10", "20", "50"} {
					fmt.Fprintf(w, "  @%s %.1f", k, line.recall[k])
				}
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "  localisation %.1f  hit@1 %.1f  MRR %.3f  NDCG@10 %.3f  MAP@10 %.3f\n", r.Localization, r.Hit1, r.MRR, r.NDCG10, r.MAP10)
			fmt.Fprintf(w, "  contexts: exact match %.1f  strict recall %.1f  %.1f columns  %.0f tokens\n", r.ExactMatch, r.StrictRecall, r.MeanColumns, r.MeanTokens)
			fmt.Fprintf(w, "  latency: p50 %.1f ms  p95 %.1f ms  %.0f questions/s\n", r.Latency.P50, r.Latency.P95, r.QPS)
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&o.Bench, "bench", "", "folder with the benchmark data (default $SCHEMAGATE_BENCH)")
	f.BoolVar(&o.Evidence, "evidence", false, "give the set's hint along with the question")
	f.BoolVar(&o.NamesOnly, "names-only", false, "leave descriptions, samples and other names out of the catalog")
	f.Float64Var(&o.DropDescriptions, "drop-descriptions", 0, "share of descriptions to leave out, 0 to 1")
	f.IntVar(&o.Limit, "limit", 0, "measure only the first N questions")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}
