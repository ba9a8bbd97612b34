package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/retrieval/eval"
)

// runFunc measures one setting of a set.
type runFunc = func(ctx context.Context, set string, o eval.Options) (eval.Report, error)

// testLog notes the runs on test sets.
type testLog struct{ path, why, commit string }

func (l *testLog) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&l.path, "log", "", "file that each run on a test set is appended to, as a line of JSON")
	f.StringVar(&l.why, "why", "", "what the run is for, as the log keeps it")
	f.StringVar(&l.commit, "commit", "", "commit that the log names (default: the one this program was built from)")
}

// complete checks the flags before anything is measured, and finds the commit.
func (l *testLog) complete() error {
	switch {
	case l.path == "" && l.why == "" && l.commit == "":
		return nil
	case l.path == "":
		return usagef("--why and --commit are for a log; name it with --log FILE")
	case l.why == "":
		return usagef("--log wants to know what the run is for; say it with --why TEXT")
	case l.commit == "":
		l.commit = builtFrom()
	}
	if l.commit == "" {
		return usagef("this program does not know the commit it was built from; name it with --commit, or build with go build inside the repository")
	}
	return nil
}

// builtFrom returns the commit of this program, marked if there were changes besides; it is empty if unknown.
func builtFrom() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var commit, mark string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			mark = " with changes"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + mark
}

// runs returns eval.Run, with each run on a test set noted before anyone sees its figures. A run that nobody notes is
// pointed out.
func (l *testLog) runs(messages io.Writer) runFunc {
	tell := progress(messages)
	return func(ctx context.Context, set string, o eval.Options) (eval.Report, error) {
		r, err := eval.Run(ctx, set, o, tell)
		if err != nil || !eval.TestOnly(set) {
			return r, err
		}
		if l.path == "" {
			fmt.Fprintf(messages, "%s is a test set, and nothing may be chosen by it; note the run with --log FILE --why TEXT\n", set)
			return r, nil
		}
		return r, eval.NewEntry(r, time.Now(), l.commit, l.why).Append(l.path)
	}
}
