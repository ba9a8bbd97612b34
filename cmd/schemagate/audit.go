package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl/audit"
)

func auditCommand() *cobra.Command {
	c := &cobra.Command{Use: "audit", Short: "Read and verify the record of decisions"}
	c.AddCommand(auditListCommand(), auditVerifyCommand())
	return c
}

func auditListCommand() *cobra.Command {
	var path, outcome, since, until string
	var filter audit.Filter
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List records, newest first",
		Example: `  schemagate audit list --principal alice --outcome refused
  schemagate audit list --object demo.crm.customers --since 2026-01-01 --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, err := stateFile(path, "audit.jsonl")
			if err != nil {
				return err
			}
			filter.Outcome = audit.Outcome(outcome)
			if filter.Since, err = moment(since); err != nil {
				return err
			}
			if filter.Until, err = moment(until); err != nil {
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
	f := c.Flags()
	f.StringVar(&path, "audit", "", "audit log (default in the user's state directory)")
	f.StringVar(&filter.Principal, "principal", "", "only records of this principal")
	f.StringVar(&filter.Object, "object", "", "only records that returned, withheld or read this object")
	f.StringVar(&outcome, "outcome", "", "only records that ended so: answered, refused, abstained or failed")
	f.StringVar(&since, "since", "", "only records from this time on, as 2026-01-31 or 2026-01-31T12:00:00Z")
	f.StringVar(&until, "until", "", "only records before this time")
	f.IntVar(&filter.Limit, "limit", 50, "at most this many; 0 means all")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
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

func writeRecord(w io.Writer, r audit.Record) {
	what := r.Question
	if what == "" {
		what = r.SQL
	}
	fmt.Fprintf(w, "%s  %s  %-8s %-9s %s\n", r.Time.Format(time.RFC3339), r.ID, r.Action, r.Outcome, r.Principal)
	fmt.Fprintf(w, "    %s\n", strings.Join(strings.Fields(what), " "))
	for _, line := range []struct {
		name   string
		values []string
	}{
		{"code", nonEmpty(r.Code)}, {"detail", nonEmpty(r.Detail)}, {"guarded", nonEmpty(r.GuardedSQL)},
		{"withheld", r.Withheld}, {"rules", r.Rules},
	} {
		if len(line.values) > 0 {
			fmt.Fprintf(w, "    %s: %s\n", line.name, strings.Join(line.values, "; "))
		}
	}
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func auditVerifyCommand() *cobra.Command {
	var path, checkpoint string
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify",
		Short: "Verify that no record was altered, removed, inserted or moved",
		Long: `Recompute the chain of hashes. Exit code 4 means that a fault was found. The end of a log can be cut off without a
trace in the log itself: against that, keep a checkpoint elsewhere (--write-checkpoint) and verify with --checkpoint.`,
		Example: `  schemagate audit verify
  schemagate audit verify --checkpoint /mnt/worm/schemagate.checkpoint`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, err := stateFile(path, "audit.jsonl")
			if err != nil {
				return err
			}
			r, err := verifyAudit(c.Context(), file, checkpoint)
			if err != nil {
				return err
			}
			if keep, _ := c.Flags().GetString("write-checkpoint"); keep != "" && r.OK {
				if err := r.Checkpoint().WriteFile(keep); err != nil {
					return err
				}
			}
			if asJSON {
				err = printJSON(c.OutOrStdout(), r)
			} else {
				writeReport(c.OutOrStdout(), r)
			}
			if err == nil && !r.OK {
				return said(errFound)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&path, "audit", "", "audit log (default in the user's state directory)")
	f.StringVar(&checkpoint, "checkpoint", "", "checkpoint kept elsewhere, against which a cut end is found")
	f.String("write-checkpoint", "", "write a checkpoint of the verified log to this file")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

func verifyAudit(ctx context.Context, file, checkpoint string) (audit.Report, error) {
	var since audit.Checkpoint
	if checkpoint != "" {
		var err error
		if since, err = audit.ReadCheckpoint(checkpoint); err != nil {
			return audit.Report{}, err
		}
	}
	return audit.Verify(ctx, file, since)
}

func writeReport(w io.Writer, r audit.Report) {
	records := fmt.Sprintf("%d records", r.Records)
	if r.Records == 1 {
		records = "1 record"
	}
	if r.OK {
		fmt.Fprintf(w, "%s, chain intact, head %s\n", records, r.Head)
	} else {
		fmt.Fprintf(w, "%s, chain BROKEN\n", records)
	}
	for _, f := range r.Faults {
		fmt.Fprintf(w, "  line %d: %s\n", f.Line, f.What)
	}
	if r.Note != "" {
		fmt.Fprintln(w, "  "+r.Note)
	}
}
