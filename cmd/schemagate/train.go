package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/eval"
	"github.com/schemagate/schemagate/retrieval/rank"
)

// trained is what a training came to, as JSON.
type trained struct {
	Questions   map[string]int `json:"questions"` // that were read, by where they stood
	Skipped     map[string]int `json:"skipped"`   // of these, by reason
	LearnedFrom int            `json:"learned_from"`
	HeldOut     int            `json:"held_out"`
	Trial       eval.Trial     `json:"trial"`   // before is the model that ships
	Objects     int            `json:"objects"` // that whoever the model serves must be able to see
	Out         string         `json:"out,omitempty"`
	Written     bool           `json:"written"`
}

func trainCommand() *cobra.Command {
	var o options
	var logs []string
	var out string
	var force bool
	c := &cobra.Command{
		Use:   "train",
		Short: "Train the ranker on your own questions, and say whether it got better",
		Long: `Go on training the ranker that ships from questions that were asked here, and compare the two on a part of the
questions that was held out. Questions come from
  the past queries of the catalog, with the tables and columns that answered them;
  an audit log (--audit): what was asked and answered with SQL, and what that SQL reads;
  files (--log) with a question a line, as in
    {"question": "net revenue by region", "database": "shop", "tables": ["orders"], "columns": ["orders.amount", "orders.region"]}
An answer counts as right, so leave out what you would not vouch for. Questions of the same words, whatever their order, numbers and
quoted values, are held out together. Past queries are no evidence while learning and measuring: they would tell the answers.

The model is written to --out only if it is better, or with --force; exit code 4 means that it was not written. What it
learned from must not show through to others, so it serves only principals who may see all of that: everything in the
catalog, or with --policy and --as what one principal may see. All others keep the model that ships. context and ask take it with --ranker.`,
		Example: `  schemagate train --store catalog.db --audit audit.jsonl
  schemagate train --source sqlite:shop/ --log questions.jsonl --out ranker.model
  schemagate train --source sqlite:shop/ --log questions.jsonl --policy policy.yaml --as analyst --out ranker.model --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case (o.policy == "") != (o.as == ""):
				return usagef("--policy and --as go together; give both, or neither to learn from the whole catalog")
			case force && out == "":
				return usagef("--force writes a model that is not better, but not where to; name a file with --out")
			}
			say := progress(c.ErrOrStderr())
			s, _, err := o.catalog(c.Context(), say)
			if err != nil {
				return err
			}
			v, err := o.trainingView(s)
			if err != nil {
				return err
			}
			l, err := readQuestionLog(c.Context(), v, logs, o.audit, say)
			if err != nil {
				return err
			}
			t, err := train(c.Context(), l, v, out, force, say)
			if err != nil {
				return err
			}
			if o.json {
				err = printJSON(c.OutOrStdout(), t)
			} else {
				writeTrained(c.OutOrStdout(), t)
			}
			if err == nil && out != "" && !t.Written {
				err = said(errFound)
			}
			return err
		},
	}
	o.sourceFlags(c)
	f := c.Flags()
	f.StringArrayVar(&logs, "log", nil, "file of answered questions, one JSON object a line; may be repeated")
	f.StringVar(&o.audit, "audit", "", "audit log whose answered questions to learn from")
	f.StringVar(&o.policy, "policy", "", "policy file, with --as")
	f.StringVar(&o.as, "as", "", "learn only from what this principal may see")
	f.StringVar(&out, "out", "", "file to write the model to if it is better")
	f.BoolVar(&force, "force", false, "write the model even if it is not better")
	f.BoolVar(&o.json, "json", false, "print one JSON document")
	return c
}

// trainingView is the part of a catalog that a training may learn from.
func (o *options) trainingView(s *catalog.Snapshot) (acl.View, error) {
	if o.policy == "" {
		return acl.Everything(s), nil
	}
	p, err := readPolicy(o.policy)
	if err != nil {
		return acl.View{}, err
	}
	e, err := casbin.New(p, s)
	if err != nil {
		return acl.View{}, err
	}
	return e.View(o.as)
}

// trainingSeed makes the same questions give the same model.
const trainingSeed = 1

// train learns from most of the questions, tries the model on the others and writes it if it may.
func train(ctx context.Context, l *questionLog, v acl.View, out string, force bool, say func(string)) (trained, error) {
	t := trained{Questions: l.read, Skipped: l.skipped, Out: out}
	lesson := rank.Lesson{View: withoutQueries(v)}
	var held []rank.Example
	for _, e := range l.examples {
		if heldOut(e.Group) {
			held = append(held, e)
		} else {
			lesson.Examples = append(lesson.Examples, e)
		}
	}
	t.LearnedFrom, t.HeldOut = len(lesson.Examples), len(held)
	if t.LearnedFrom == 0 {
		return t, usagef("there is no question to learn from (%d were read); name a file of answered questions with --log or an audit log with --audit", l.total())
	}
	say("indexing")
	s := v.Snapshot()
	var err error
	if lesson.Ranker, err = newRanker(ctx, s, ""); err != nil {
		return t, err
	}
	shipped, err := rank.Shipped()
	if err != nil {
		return t, err
	}
	lessons := []rank.Lesson{lesson}
	m, err := rank.Retrain(ctx, shipped, lessons, rank.RetrainConfig, trainingSeed, say)
	if err != nil {
		return t, err
	}
	say("trying the model on the questions held out")
	judgedBy := func(m *rank.Model) *retrieval.Ranker {
		return lesson.Ranker.With(rank.New(m, s))
	}
	if t.Trial, err = eval.Try(ctx, held, lesson.View, judgedBy(shipped), judgedBy(m)); err != nil {
		return t, err
	}
	own := rank.NewTrained(m, lessons)
	t.Objects = own.Objects()
	if out == "" || t.Trial.Verdict != eval.Better && !force {
		return t, nil
	}
	data, err := own.MarshalBinary()
	if err != nil {
		return t, err
	}
	if err := os.WriteFile(out, data, 0o600); err != nil {
		return t, fmt.Errorf("writing the model: %w", err)
	}
	t.Written = true
	return t, nil
}

func writeTrained(w io.Writer, t trained) {
	counts := func(of map[string]int) string {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if of[name] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", of[name], name))
			}
		}
		return strings.Join(parts, ", ")
	}
	fmt.Fprintf(w, "Read: %s\n", counts(t.Questions))
	if len(t.Skipped) > 0 {
		fmt.Fprintf(w, "Skipped: %s\n", counts(t.Skipped))
	}
	fmt.Fprintf(w, "Learned from %d questions, held out %d:\n", t.LearnedFrom, t.HeldOut)
	fmt.Fprintf(w, "  %-18s %8s %8s %8s   95%% interval\n", "", "shipped", "new", "")
	for _, m := range eval.Measures() {
		if d, ok := t.Trial.Differences[m.Name]; ok {
			fmt.Fprintf(w, "  %-18s %8s %8s %8s   %s to %s\n", m.Title, m.Text(t.Trial.Before[m.Name]), m.Text(t.Trial.After[m.Name]), m.Signed(d.Difference), m.Signed(d.Low), m.Signed(d.High))
		}
	}
	d := t.Trial.Merit
	figures := fmt.Sprintf("%+.1f points all together, 95%% interval %+.1f to %+.1f", d.Difference, d.Low, d.High)
	switch t.Trial.Verdict {
	case eval.Better:
		fmt.Fprintf(w, "Better: the new model ranks the held-out questions better (%s).\n", figures)
	case eval.NotBetter:
		fmt.Fprintf(w, "Not better: keep the model that ships (%s).\n", figures)
	default:
		fmt.Fprintf(w, "Too few questions to tell (%s); train again when there are more.\n", figures)
	}
	switch {
	case t.Written:
		fmt.Fprintf(w, "Written to %s; it serves whoever may see all %d objects that it learned from.\n", t.Out, t.Objects)
	case t.Out != "":
		fmt.Fprintf(w, "%s was not written; --force writes it all the same.\n", t.Out)
	}
}
