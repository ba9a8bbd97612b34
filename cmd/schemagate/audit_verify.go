package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl/audit"
)

// foundError is what a check found, told as an error.
type foundError struct{ error }

func (e foundError) Is(target error) bool { return target == errFound }
func (e foundError) Unwrap() error        { return e.error }

// found makes an error that tells of an altered log, or of a proof that does not hold, the finding of a check.
func found(err error) error {
	if errors.Is(err, audit.ErrAltered) || errors.Is(err, audit.ErrProof) {
		return foundError{err}
	}
	return err
}

func auditVerifyCommand() *cobra.Command {
	var path, checkpoint, key string
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify",
		Short: "Verify that no record was altered, removed, inserted or moved",
		Long: `Recompute the hash of every record, their chain and their Merkle tree. Exit code 4 means that a fault was found. The
end of a log can be cut off, and all of it written anew, without a trace in the log itself: against that, keep a checkpoint
elsewhere (audit checkpoint) and verify with --checkpoint.`,
		Example: `  schemagate audit verify
  schemagate audit verify --checkpoint /mnt/worm/schemagate.checkpoint --key schemagate.pub`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, err := stateFile(path, "audit.jsonl")
			if err != nil {
				return err
			}
			var since audit.Checkpoint
			if checkpoint != "" {
				if since, err = readCheckpoint(checkpoint, keyFile(key, file)); err != nil {
					return err
				}
			}
			r, err := audit.Verify(c.Context(), file, since)
			if err != nil {
				return err
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
	logFlag(c, &path)
	f := c.Flags()
	f.StringVar(&checkpoint, "checkpoint", "", "checkpoint kept elsewhere, against which a cut end or a rewritten log is found")
	f.StringVar(&key, "key", "", publicKeyUsage)
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

const publicKeyUsage = "file of the key that signed checkpoints, or of its public key (default $SCHEMAGATE_AUDIT_KEY, or .key beside the log)"

// readCheckpoint reads a checkpoint that must be signed by the key in a file.
func readCheckpoint(path, key string) (audit.Checkpoint, error) {
	v, err := audit.ReadVerifier(key)
	if err != nil {
		return audit.Checkpoint{}, usageError{err}
	}
	c, err := audit.ReadCheckpoint(path, v)
	if err != nil {
		return audit.Checkpoint{}, usageError{err}
	}
	return c, nil
}

func writeReport(w io.Writer, r audit.Report) {
	records := fmt.Sprintf("%d records", r.Records)
	if r.Records == 1 {
		records = "1 record"
	}
	if r.Removed > 0 {
		records += fmt.Sprintf(" (%d without content)", r.Removed)
	}
	if r.OK {
		fmt.Fprintf(w, "%s, chain intact, head %s\n", records, r.Head)
	} else {
		fmt.Fprintf(w, "%s, chain BROKEN\n", records)
	}
	for _, f := range r.Faults {
		if f.Line > 0 {
			fmt.Fprintf(w, "  line %d: %s\n", f.Line, f.What)
		} else {
			fmt.Fprintf(w, "  %s\n", f.What)
		}
	}
	if r.More > 0 {
		fmt.Fprintf(w, "  and %d more\n", r.More)
	}
	if r.Note != "" {
		fmt.Fprintln(w, "  "+r.Note)
	}
}

func auditCheckpointCommand() *cobra.Command {
	var path, key, out string
	var public bool
	c := &cobra.Command{
		Use:   "checkpoint",
		Short: "Sign a checkpoint of the log, to keep elsewhere",
		Long: `Print a signed statement of how many records the log has and of the root of their Merkle tree. Kept where the log's
writers cannot reach, it shows later that the log up to there was neither cut nor rewritten.

The key is made on first use. Whoever has it can sign for another log: keep it away from the log, and give its public key
(--public) to those who check. Exit code 4 means that the log no longer begins with what its last checkpoint stands for.`,
		Example: `  schemagate audit checkpoint --out /mnt/worm/schemagate.checkpoint
  schemagate audit checkpoint --public > schemagate.pub`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, err := stateFile(path, "audit.jsonl")
			if err != nil {
				return err
			}
			if _, err := os.Stat(file); err != nil && !public { // no key for a log that does not exist
				return err
			}
			k, err := audit.OpenKey(keyFile(key, file))
			if err != nil {
				return err
			}
			if public {
				_, err := fmt.Fprintln(c.OutOrStdout(), k.Public)
				return err
			}
			signed, err := audit.Sign(c.Context(), file, k)
			if err != nil {
				return found(err)
			}
			if out != "" {
				if err := os.WriteFile(out, signed, 0o644); err != nil {
					return fmt.Errorf("keep the checkpoint: %w", err)
				}
			}
			_, err = c.OutOrStdout().Write(signed)
			return err
		},
	}
	logFlag(c, &path)
	f := c.Flags()
	f.StringVar(&key, "key", "", "file of the key, made if it is missing (default $SCHEMAGATE_AUDIT_KEY, or .key beside the log)")
	f.StringVar(&out, "out", "", "keep the checkpoint in this file too")
	f.BoolVar(&public, "public", false, "print the public key instead")
	return c
}
