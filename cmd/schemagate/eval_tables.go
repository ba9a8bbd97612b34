package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/retrieval/eval"
)

func evalTablesCommand() *cobra.Command {
	var (
		o      eval.Options
		log    testLog
		set    string
		names  []string
		asJSON bool
		page   string
	)
	c := &cobra.Command{
		Use:   "tables",
		Short: "Measure the tables of the paper again, with its figures beside ours",
		Long: `Measure again what the paper "Schema-First Retrieval" reports, and put its figures beside ours; parts is ours alone:

   1  main effects                             8  table recall at all depths, with and without history
   2  what each type of object is worth       12  the weights of embedding, reranker and history
   4  by number of gold tables (10 as well)   13  typed collections, one collection, BM25
   6  latency by phase                   figure5  when descriptions are missing
   7  recall at all depths                parts  what each part of the ranking is worth

What a set does not hold, or what has no counterpart here, is n/a, and the table says why. Tables are Markdown, or
JSON with --json: {"tables": [{"table", "title", "set", "questions", "settings", "paper", "columns", "rows", "notes"}]}.`,
		Example: `  schemagate eval tables --bench ../shared/bench
  schemagate eval tables --bench ../shared/bench --set spider_train --table 2,13 --parallel 2
  schemagate eval tables --bench ../shared/bench --table figure5 --report out.html
  schemagate eval tables --bench ../shared/bench --set sede_test --history sede_val --table 1,8 --log retrieval/eval/runs.jsonl --why "figures of the release"`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := findBench(&o); err != nil {
				return err
			}
			if err := log.complete(); err != nil {
				return err
			}
			study := eval.NewStudy(set, o, log.runs(c.ErrOrStderr()))
			results := eval.Results{Tables: []eval.Table{}}
			for _, name := range names {
				t, err := study.Table(c.Context(), name)
				if err != nil {
					return asUsage(err)
				}
				results.Tables = append(results.Tables, t)
				if asJSON {
					continue
				}
				if err := t.Markdown(c.OutOrStdout()); err != nil {
					return err
				}
			}
			if asJSON {
				if err := printJSON(c.OutOrStdout(), map[string]any{"tables": results.Tables}); err != nil {
					return err
				}
			}
			return writePage(page, results)
		},
	}
	f := c.Flags()
	f.StringVar(&set, "set", "bird_train", "set that is measured; choose by a training set only")
	f.StringSliceVar(&names, "table", eval.TableNames[:], "tables to measure: "+strings.Join(eval.TableNames[:], ", "))
	questionFlags(c, &o)
	runFlags(c, &o)
	log.flags(c)
	f.StringVar(&page, "report", "", "write the tables to one HTML page")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}
