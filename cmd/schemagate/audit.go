package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl/audit"
)

func auditCommand() *cobra.Command {
	c := &cobra.Command{Use: "audit", Short: "Read, verify, prove and export the record of decisions"}
	c.AddCommand(
		auditListCommand(), auditReplayCommand(), auditShowCommand(), auditVerifyCommand(), auditCheckpointCommand(), auditProveCommand(),
		auditExportCommand(), auditReportCommand(), auditRetainCommand(),
	)
	return c
}

// selection is which records of which log a command is about.
type selection struct {
	log, outcome, decision, since, until string
	filter                               audit.Filter
}

func logFlag(c *cobra.Command, path *string) {
	c.Flags().StringVar(path, "audit", "", "audit log (default in the user's state directory)")
}

func (s *selection) flags(c *cobra.Command) {
	logFlag(c, &s.log)
	f := c.Flags()
	f.StringVar(&s.filter.Principal, "principal", "", "only records of this principal, or on their behalf")
	f.StringVar(&s.filter.Tenant, "tenant", "", "only records of this tenant")
	f.StringVar(&s.filter.Object, "object", "", "only records that returned, withheld or read this object")
	f.StringVar(&s.outcome, "outcome", "", "only records that ended so: answered, refused, abstained or failed")
	f.StringVar(&s.decision, "decision", "", "only records with this decision: allow (answered) or deny (refused)")
	f.StringVar(&s.filter.Code, "code", "", "only refusals with this code")
	f.StringVar(&s.since, "since", "", "only records from this time on, as 2026-01-31 or 2026-01-31T12:00:00Z")
	f.StringVar(&s.until, "until", "", "only records before this time")
}

// resolve returns the log's file and the filter that the flags ask for.
func (s *selection) resolve() (file string, filter audit.Filter, err error) {
	if file, err = stateFile(s.log, "audit.jsonl"); err != nil {
		return "", filter, err
	}
	filter = s.filter
	outcomes := []audit.Outcome{"", audit.Answered, audit.Refused, audit.Abstained, audit.Failed}
	if filter.Outcome = audit.Outcome(s.outcome); !slices.Contains(outcomes, filter.Outcome) {
		return "", filter, usagef("%q is no outcome; name one of %s", s.outcome, joined(outcomes[1:]))
	}
	if s.decision != "" {
		outcome, known := map[string]audit.Outcome{"allow": audit.Answered, "deny": audit.Refused}[s.decision]
		if !known {
			return "", filter, usagef("%q is no decision; name allow or deny", s.decision)
		}
		if filter.Outcome != "" && filter.Outcome != outcome {
			return "", filter, usagef("no record is both %s and %s; leave out --decision or --outcome", s.decision, filter.Outcome)
		}
		filter.Outcome = outcome
	}
	if filter.Since, err = moment(s.since); err != nil {
		return "", filter, err
	}
	filter.Until, err = moment(s.until)
	return file, filter, err
}

func joined[T ~string](values []T) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return strings.Join(out, ", ")
}

func moment(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("%q is no time; write 2026-01-31 or 2026-01-31T12:00:00Z", s)
}

func auditListCommand() *cobra.Command {
	var s selection
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List records, newest first",
		Example: `  schemagate audit list --principal alice --decision deny
  schemagate audit list --object demo.crm.customers --since 2026-01-01 --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, filter, err := s.resolve()
			if err != nil {
				return err
			}
			records := []audit.Record{}
			for r, err := range audit.List(c.Context(), file, filter) {
				if err != nil {
					return err
				}
				records = append(records, r)
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), records)
			}
			for _, r := range records {
				writeRecord(c.OutOrStdout(), r)
			}
			return nil
		},
	}
	s.flags(c)
	c.Flags().IntVar(&s.filter.Limit, "limit", 50, "at most this many; 0 means all")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

func writeRecord(w io.Writer, r audit.Record) {
	if r.Removed != "" {
		fmt.Fprintf(w, "%s  %s  its content was removed by retention\n", r.Time.Format(time.RFC3339), r.ID)
		return
	}
	fmt.Fprintf(w, "%s  %s  %-8s %-9s %s\n", r.Time.Format(time.RFC3339), r.ID, r.Action, r.Outcome, r.Principal)
	what := cmp.Or(r.Question, r.SQL)
	if r.Retention != nil {
		what = retention(r)
	}
	fmt.Fprintf(w, "    %s\n", strings.Join(strings.Fields(what), " "))
	writeFields(w, "    ", []field{
		{"code", nonEmpty(r.Code)}, {"detail", nonEmpty(r.Detail)}, {"guarded", nonEmpty(r.GuardedSQL)},
		{"withheld", r.Withheld}, {"rules", r.Rules},
	})
}

func retention(r audit.Record) string {
	return fmt.Sprintf("%d records are without content, all from before %s", r.Retention.Removed, r.Retention.Before.Format(time.RFC3339))
}

// field is one of a record's, for people.
type field struct {
	name   string
	values []string
}

func writeFields(w io.Writer, indent string, fields []field) {
	for _, f := range fields {
		if len(f.values) > 0 {
			fmt.Fprintf(w, "%s%s: %s\n", indent, f.name, strings.Join(f.values, "; "))
		}
	}
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{strings.TrimSpace(s)}
}

func auditShowCommand() *cobra.Command {
	var path string
	var asJSON bool
	c := &cobra.Command{
		Use:     "show ID",
		Short:   "Show all of one record",
		Example: `  schemagate audit show 4KJ2Q6ZB7NHXW3TYV5MDPRC2LE`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			file, err := stateFile(path, "audit.jsonl")
			if err != nil {
				return err
			}
			r, err := audit.Show(c.Context(), file, args[0])
			if err != nil {
				return noRecord(err)
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), r)
			}
			writeWholeRecord(c.OutOrStdout(), r)
			return nil
		},
	}
	logFlag(c, &path)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

// noRecord makes an ID that does not exist a fault of whoever typed it.
func noRecord(err error) error {
	if errors.Is(err, audit.ErrNoRecord) {
		return usageError{err}
	}
	return err
}

func writeWholeRecord(w io.Writer, r audit.Record) {
	var output []string
	for _, o := range r.Output {
		output = append(output, fmt.Sprintf("%s (%s of %s)", o.Name, o.Transform, strings.Join(o.From, ", ")))
	}
	fields := []field{
		{"record", []string{r.ID}}, {"number", []string{strconv.FormatUint(r.Seq, 10)}}, {"time", []string{r.Time.Format(time.RFC3339Nano)}},
		{"face", nonEmpty(r.Face)}, {"action", nonEmpty(r.Action)}, {"principal", nonEmpty(r.Principal)}, {"on behalf of", nonEmpty(r.OnBehalfOf)},
		{"tenant", nonEmpty(r.Tenant)}, {"roles", r.Roles}, {"outcome", nonEmpty(string(r.Outcome))}, {"code", nonEmpty(r.Code)}, {"detail", nonEmpty(r.Detail)},
		{"question", nonEmpty(r.Question)}, {"sql", nonEmpty(r.SQL)}, {"guarded sql", nonEmpty(r.GuardedSQL)},
		{"read", r.Read}, {"filters", r.Filters}, {"output", output}, {"returned", r.Returned}, {"withheld", r.Withheld}, {"rules", r.Rules},
		{"catalog", nonEmpty(r.Snapshot)}, {"policy", nonEmpty(r.Policy)}, {"strategy", nonEmpty(r.Strategy)}, {"degraded", r.Degraded},
	}
	if r.Latency > 0 {
		fields = append(fields, field{"latency", []string{r.Latency.String()}})
	}
	if r.Removed != "" {
		fields = append(fields, field{"content", []string{"removed by retention; its hash was " + r.Removed}})
	}
	if r.Retention != nil {
		fields = append(fields, field{"retention", []string{retention(r)}})
	}
	writeFields(w, "", append(fields, field{"previous hash", nonEmpty(r.Prev)}, field{"hash", []string{r.Hash}}))
}

// keyFile returns the file of the key that signs, or signed, a log's checkpoints.
func keyFile(given, log string) string {
	return cmp.Or(given, os.Getenv("SCHEMAGATE_AUDIT_KEY"), log+".key")
}
