package main

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/api/execute"
)

func askCommand() *cobra.Command {
	var o options
	var run bool
	c := &cobra.Command{
		Use:   "ask QUESTION",
		Short: "Answer a question with governed SQL, and with --run its rows",
		Long: `Write SQL that answers the question, from the governed context alone, and pass it through the guard. Without a
model, questions that name a metric are answered: by name or synonym, with dimensions, filters and a time range. For
others the answer says why no SQL was written. A question of - is read from standard input.`,
		Example: `  schemagate ask "net revenue by region in 2025" --source sqlite:shop/ --source yaml:metrics.yaml --policy policy.yaml --as alice
  schemagate ask "hero count by eye colour" --source sqlite:superhero.sqlite --source yaml:metrics.yaml --policy p.yaml --as alice --run --json`,
		Args: oneQuestion,
		RunE: func(c *cobra.Command, args []string) error {
			e, request, stop, err := o.question(c, args[0], run)
			if err != nil {
				return err
			}
			defer stop()
			a, err := e.Ask(c.Context(), request, run)
			if err != nil {
				return err
			}
			if o.json {
				if err := printJSON(c.OutOrStdout(), a); err != nil {
					return err
				}
				return refused(a.Refusal)
			}
			writeAnswer(c.OutOrStdout(), a)
			return refused(a.Refusal)
		},
	}
	o.sourceFlags(c)
	o.askerFlags(c)
	o.questionFlags(c)
	c.Flags().BoolVar(&run, "run", false, "run the governed statement, read-only, and print its rows")
	return c
}

func writeAnswer(w io.Writer, a api.Answer) {
	switch {
	case a.SQL == nil && a.Refusal == nil:
		fmt.Fprintf(w, "No SQL was written: %s.\n", strings.TrimSuffix(a.Reason, "."))
	case a.SQL != nil && a.GuardedSQL == nil:
		fmt.Fprintf(w, "%s\n", *a.SQL)
	case a.SQL != nil:
		writeDiff(w, *a.SQL, *a.GuardedSQL)
	}
	if a.Rows != nil {
		fmt.Fprintln(w)
		writeRows(w, *a.Rows, len(a.Rows.Rows))
	}
}

// writeDiff shows what the guard made of a draft, a clause a line.
func writeDiff(w io.Writer, sql, guarded string) {
	if sql == guarded {
		fmt.Fprintln(w, sql)
		return
	}
	fmt.Fprint(w, udiff.Unified("draft", "guarded", clauses(sql), clauses(guarded)))
}

var clause = regexp.MustCompile(` ((?:(?:LEFT|RIGHT|FULL|INNER|CROSS) (?:OUTER )?)?JOIN|FROM|WHERE|GROUP BY|HAVING|ORDER BY|LIMIT|UNION) `)

// maxClause is the longest line of a statement that is shown unbroken.
const maxClause = 120

// clauses breaks a statement into lines for people to compare. It is for display: text inside literals may break too.
func clauses(sql string) string {
	text := clause.ReplaceAllString(strings.Join(strings.Fields(sql), " "), "\n$1 ")
	var b strings.Builder
	for line := range strings.Lines(text + "\n") {
		for len(line) > maxClause {
			cut := strings.LastIndex(line[:maxClause], ", ")
			if cut < 0 {
				break
			}
			b.WriteString(line[:cut+1] + "\n")
			line = "    " + line[cut+2:]
		}
		b.WriteString(line)
	}
	return b.String()
}

func writeRows(w io.Writer, r execute.Rows, most int) {
	shown := r.Rows[:min(most, len(r.Rows))]
	table := [][]string{r.Columns}
	for _, row := range shown {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = cell(v)
		}
		table = append(table, line)
	}
	widths := make([]int, len(r.Columns))
	for _, line := range table {
		for i, text := range line {
			widths[i] = max(widths[i], len([]rune(text)))
		}
	}
	for n, line := range table {
		var b strings.Builder
		for i, text := range line {
			fmt.Fprintf(&b, "  %-*s", widths[i], text)
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
		if n == 0 {
			for i := range widths {
				fmt.Fprintf(w, "  %s", strings.Repeat("-", widths[i]))
			}
			fmt.Fprintln(w)
		}
	}
	switch {
	case len(r.Rows) == 0:
		fmt.Fprintln(w, "  (no rows)")
	case r.Truncated || len(shown) < len(r.Rows):
		fmt.Fprintf(w, "  (the first %d rows)\n", len(shown))
	}
}

func cell(v any) string {
	text := fmt.Sprint(v)
	switch v := v.(type) {
	case nil:
		text = "NULL"
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > 40 {
		text = string(runes[:39]) + "…"
	}
	return text
}
