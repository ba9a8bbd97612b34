package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl/audit"
)

func auditExportCommand() *cobra.Command {
	var s selection
	var format, out string
	c := &cobra.Command{
		Use:   "export",
		Short: "Export records, oldest first",
		Long: `Write records as they stand in the log (jsonl), as a table (csv), or as events of the Open Cybersecurity Schema
Framework, class Datastore Activity (ocsf). See docs/audit.md for the mapping.`,
		Example: `  schemagate audit export --format ocsf --since 2026-01-01 > events.jsonl
  schemagate audit export --format csv --decision deny --out refusals.csv`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, filter, err := s.resolve()
			if err != nil {
				return err
			}
			if !slices.Contains(audit.Formats(), audit.Format(format)) {
				return usagef("there is no format %q; name one of %s", format, joined(audit.Formats()))
			}
			return writeTo(out, c.OutOrStdout(), func(w io.Writer) error {
				n, err := audit.Export(w, audit.Each(c.Context(), file, filter), audit.Format(format))
				if err == nil && out != "" {
					fmt.Fprintf(c.ErrOrStderr(), "%d records\n", n)
				}
				return found(err)
			})
		},
	}
	s.flags(c)
	c.Flags().StringVar(&format, "format", string(audit.JSONL), "one of "+joined(audit.Formats()))
	c.Flags().StringVar(&out, "out", "", "write to this file")
	return c
}

// writeTo hands write the file at path, readable by its owner alone, or w if there is no path.
func writeTo(path string, w io.Writer, write func(io.Writer) error) error {
	if path == "" {
		b := bufio.NewWriter(w)
		return errors.Join(write(b), b.Flush())
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(f)
	return errors.Join(write(b), b.Flush(), f.Close())
}

func auditReportCommand() *cobra.Command {
	var s selection
	var page, checkpoint, key string
	c := &cobra.Command{
		Use:   "report",
		Short: "Write a page for an auditor: what was decided, and whether the log is intact",
		Long: `Verify the whole log and count the records that the filters select. The page is one file that loads nothing. Exit code
4 means that the log has faults; the page says which.`,
		Example: `  schemagate audit report --html audit.html --since 2026-01-01 --checkpoint /mnt/worm/schemagate.checkpoint`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, filter, err := s.resolve()
			if err != nil {
				return err
			}
			if page == "" {
				return usagef("name the page with --html FILE")
			}
			p := audit.Page{Log: filepath.Base(file), Filter: s.words(), Made: time.Now()}
			var since audit.Checkpoint
			if checkpoint != "" {
				if since, err = readCheckpoint(checkpoint, keyFile(key, file)); err != nil {
					return err
				}
				signed, err := os.ReadFile(checkpoint)
				if err != nil {
					return err
				}
				p.Checkpoint = string(signed)
			}
			if p.Report, err = audit.Verify(c.Context(), file, since); err != nil {
				return err
			}
			if p.Summary, err = audit.Summarize(audit.Each(c.Context(), file, filter)); err != nil {
				return err
			}
			if err := writeTo(page, nil, p.WriteHTML); err != nil {
				return err
			}
			writeReport(c.OutOrStdout(), p.Report)
			if !p.Report.OK {
				return said(errFound)
			}
			return nil
		},
	}
	s.flags(c)
	f := c.Flags()
	f.StringVar(&page, "html", "", "file to write the page to")
	f.StringVar(&checkpoint, "checkpoint", "", "checkpoint kept elsewhere, to verify the log against")
	f.StringVar(&key, "key", "", publicKeyUsage)
	return c
}

// words says which records the flags select.
func (s *selection) words() string {
	var out []string
	for _, part := range []struct{ name, value string }{
		{"principal", s.filter.Principal}, {"tenant", s.filter.Tenant}, {"object", s.filter.Object}, {"outcome", s.outcome}, {"decision", s.decision},
		{"code", s.filter.Code}, {"from", s.since}, {"before", s.until},
	} {
		if part.value != "" {
			out = append(out, part.name+" "+part.value)
		}
	}
	if len(out) == 0 {
		return "All records are counted."
	}
	return "Counted are only records with: " + strings.Join(out, ", ") + "."
}

func auditRetainCommand() *cobra.Command {
	var path, before, older string
	var asJSON bool
	c := &cobra.Command{
		Use:   "retain",
		Short: "Remove the content of old records and keep their proof",
		Long: `Replace records from before a time by what proves them: number, ID, time and hash. The chain, checkpoints and proofs
still hold. That it was done, when, by whom and to how many records is recorded in the log.`,
		Example: `  schemagate audit retain --older 90d
  schemagate audit retain --before 2026-01-01`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, err := stateFile(path, "audit.jsonl")
			if err != nil {
				return err
			}
			limit, err := moment(before)
			if err != nil {
				return err
			}
			if (before == "") == (older == "") {
				return usagef("say from when on records keep their content: --before DATE or --older DAYS, as in --older 90d")
			}
			if older != "" {
				days, err := strconv.ParseUint(strings.TrimSuffix(older, "d"), 10, 16)
				if err != nil || !strings.HasSuffix(older, "d") {
					return usagef("%q is no number of days; write 90d", older)
				}
				limit = time.Now().AddDate(0, 0, -int(days))
			}
			if limit.After(time.Now()) {
				return usagef("%s is not over yet; give a time that has passed", before)
			}
			by := "unknown"
			if u, err := user.Current(); err == nil {
				by = u.Username
			}
			done, err := audit.Retain(c.Context(), file, limit, by)
			if err != nil {
				return found(err)
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), done)
			}
			fmt.Fprintf(c.OutOrStdout(), "%d records lost their content, %d had lost it before\n", done.Removed, done.Before)
			for _, f := range done.Files {
				fmt.Fprintf(c.OutOrStdout(), "  removed %s\n", f)
			}
			return nil
		},
	}
	logFlag(c, &path)
	f := c.Flags()
	f.StringVar(&before, "before", "", "records from before this time, as 2026-01-31 or 2026-01-31T12:00:00Z")
	f.StringVar(&older, "older", "", "records older than so many days, as 90d")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}
