package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/retrieval"
)

func contextCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "context QUESTION",
		Short: "Print the governed context of a question",
		Long: `Print what a question needs of the catalog, as the principal may see it: tables, columns, metrics, joins and past
queries, each with its score and the reason, and the text to give to whoever writes SQL. A question of - is read from
standard input.`,
		Example: `  schemagate context "how many heroes have blue eyes" --source sqlite:superhero.sqlite --policy policy.yaml --as alice
  schemagate context "net revenue by region" --source sqlite:shop/ --source yaml:metrics.yaml --policy policy.yaml --as alice --json`,
		Args: oneQuestion,
		RunE: func(c *cobra.Command, args []string) error {
			e, request, stop, err := o.question(c, args[0], false)
			if err != nil {
				return err
			}
			defer stop()
			a, err := e.Context(c.Context(), request)
			if err != nil {
				return err
			}
			if o.json {
				if err := printJSON(c.OutOrStdout(), a); err != nil {
					return err
				}
				return refused(a.Refusal)
			}
			if a.Refusal == nil {
				writeContext(c.OutOrStdout(), a)
			}
			return refused(a.Refusal)
		},
	}
	o.sourceFlags(c)
	o.askerFlags(c)
	o.questionFlags(c)
	return c
}

func oneQuestion(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usagef("no question is given; write it in quotes, as in \"net revenue by region in 2025\"")
	case 1:
		return nil
	}
	return usagef("%d questions are given; put the whole question in quotes", len(args))
}

// question wires everything for one question; with run, statements can be executed. close must be called.
func (o *options) question(c *cobra.Command, arg string, run bool) (_ *api.Engine, _ api.Request, close func(), err error) {
	if err := o.requireAsker(); err != nil {
		return nil, api.Request{}, nil, err
	}
	strategy, err := retrieval.ParseStrategy(o.strategy)
	if err != nil {
		return nil, api.Request{}, nil, usageError{fmt.Errorf("--strategy: %w", err)}
	}
	text, err := readQuestion(c, arg)
	if err != nil {
		return nil, api.Request{}, nil, err
	}
	e, close, err := o.engine(c.Context(), progress(c.ErrOrStderr()), run)
	return e, api.Request{Face: "cli", Principal: o.as, OnBehalfOf: o.person, Question: text, Strategy: strategy}, close, err
}

// maxInput is the most bytes that are read from standard input. What is decided of it has tighter limits; this bounds
// memory.
const maxInput = 4 << 20

// readQuestion returns the question, which stands on standard input if it is written as -.
func readQuestion(c *cobra.Command, arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	text, err := io.ReadAll(io.LimitReader(c.InOrStdin(), maxInput))
	if err != nil {
		return "", fmt.Errorf("reading the question: %w", err)
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}

// refused turns a public refusal into an error with its exit code.
func refused(r *api.Refusal) error {
	if r == nil {
		return nil
	}
	return &acl.Refusal{Code: r.Code, Public: r.Message, Hint: r.Hint}
}

func writeContext(w io.Writer, a api.Context) {
	if a.Nothing != "" {
		fmt.Fprintf(w, "Nothing fits: %s.\n", a.Nothing)
		return
	}
	fmt.Fprintf(w, "Database %s, strategy %s (%s), %d tokens\n\n", a.Database, a.Strategy, a.Because, a.Tokens)
	fmt.Fprint(w, a.Text)
	fmt.Fprintln(w, "\nWhy:")
	writeObjects(w, a.Objects, len(a.Objects))
}

func writeObjects(w io.Writer, objects []api.Object, most int) {
	for i, o := range objects {
		if i == most {
			fmt.Fprintf(w, "  … and %d more\n", len(objects)-most)
			return
		}
		indent := ""
		if o.Kind == "column" {
			indent = "  "
		}
		reason := strings.TrimSpace(o.Reason)
		if o.Role != "" {
			reason = o.Role + ": " + reason
		}
		if n := len(o.Members); n > 0 {
			reason += fmt.Sprintf("; one of %d alike: %s to %s", n, o.Members[0], o.Members[n-1])
		}
		fmt.Fprintf(w, "  %-44s %7.2f  %s\n", indent+o.Ref, o.Score, reason)
	}
}
