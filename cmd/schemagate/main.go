// Command schemagate answers questions about a warehouse with governed context and governed SQL.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/catalog/ingest"
)

// Exit codes.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitRefused = 3
	exitFound   = 4 // a check found something
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := exitCode(err)
	if !errors.Is(err, errSaid) {
		line := "schemagate: " + oneLine(err)
		if hint := hint(err); hint != "" {
			line += "; " + hint
		}
		fmt.Fprintln(stderr, line)
	}
	return code
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "schemagate",
		Short: "Governed context and governed SQL for questions about a warehouse",
		Long: `Schemagate searches the catalog of a warehouse, never its rows. It removes what the asker may not see before
anything is ranked, links a question to tables and columns, and parses whatever SQL is written afterwards: it is
rewritten with row filters and masks, or refused. Every decision is recorded.`,
		Example: `  schemagate demo
  schemagate context "how many heroes have blue eyes" --source sqlite:superhero.sqlite --policy policy.yaml --as alice
  schemagate guard --dialect postgres --ddl schema.sql --policy policy.yaml --as alice --json < q.sql`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%v; see %s --help", err, c.CommandPath())
	})
	root.AddCommand(
		demoCommand(), ingestCommand(), contextCommand(), askCommand(), guardCommand(), policyCommand(), auditCommand(),
		trainCommand(), evalCommand(), migrateCommand(),
	)
	for _, c := range root.Commands() {
		if c.HasSubCommands() && c.RunE == nil {
			c.RunE = func(c *cobra.Command, args []string) error {
				if len(args) > 0 {
					return usagef("%s has no command %q; see %s --help", c.CommandPath(), args[0], c.CommandPath())
				}
				return c.Help()
			}
		}
	}
	return root
}

// usageError is an error of whoever typed the command line or wrote a file that it names.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errFound says that a check found something, errSaid that the command has already said all there is to say.
var (
	errFound = errors.New("a check found something")
	errSaid  = errors.New("said")
)

// said marks an error as told, so that only its exit code is left to use.
func said(err error) error { return fmt.Errorf("%w: %w", errSaid, err) }

func exitCode(err error) int {
	var usage usageError
	var refusal *acl.Refusal
	switch {
	case errors.Is(err, errFound):
		return exitFound
	case errors.As(err, &refusal):
		return exitRefused
	case errors.As(err, &usage), errors.Is(err, api.ErrBadRequest), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, ingest.ErrDamaged),
		strings.HasPrefix(err.Error(), "unknown command"), strings.HasPrefix(err.Error(), "accepts "):
		return exitUsage
	}
	return exitFailed
}

// hint says what to do next, for errors that do not say it themselves.
func hint(err error) string {
	var refusal *acl.Refusal
	switch {
	case errors.As(err, &refusal):
		return refusal.Hint
	case strings.HasPrefix(err.Error(), "unknown command"):
		return "see schemagate --help"
	case strings.Contains(err.Error(), "check "):
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return "check the path"
	case errors.Is(err, fs.ErrPermission):
		return "check who may read it"
	}
	return ""
}

// oneLine keeps the first of several joined errors and counts the others.
func oneLine(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	if len(lines) == 1 {
		return strings.TrimPrefix(lines[0], api.ErrBadRequest.Error()+": ")
	}
	return fmt.Sprintf("%s (and %d more)", lines[0], len(lines)-1)
}
