package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl/audit"
)

func auditProveCommand() *cobra.Command {
	var path, key, checkpoint, older, check string
	var hashOnly, asJSON bool
	c := &cobra.Command{
		Use:   "prove [ID]",
		Short: "Prove that a record is in the log, or that one checkpoint continues another",
		Long: `Print a proof, as JSON, that the record with an ID is among those that a checkpoint stands for; with --older, that the
records of an older checkpoint are the first of those of a newer one. Who has the proof and the public key checks it with
--check, without the log. Exit code 4 means that a proof does not hold, or that the log is not the one that was signed.`,
		Example: `  schemagate audit prove 4KJ2Q6ZB7NHXW3TYV5MDPRC2LE > proof.json
  schemagate audit prove --check proof.json --key schemagate.pub
  schemagate audit prove --older january.checkpoint > continues.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			file, err := stateFile(path, "audit.jsonl")
			if err != nil {
				return err
			}
			if (len(args) > 0) == (older != "") == (check == "") || check != "" && len(args) > 0 {
				return usagef("say what to prove: an ID, --older FILE, or --check FILE")
			}
			v, err := audit.ReadVerifier(keyFile(key, file))
			if err != nil {
				return usageError{err}
			}
			if check != "" {
				return checkProof(c.OutOrStdout(), check, v, asJSON)
			}
			signed, err := os.ReadFile(orLast(checkpoint, file))
			if err != nil {
				return fmt.Errorf("no checkpoint to prove against: %w; sign one with schemagate audit checkpoint", err)
			}
			var p audit.Proof
			if older != "" {
				first, err := os.ReadFile(older)
				if err != nil {
					return err
				}
				p, err = audit.ProveOlder(c.Context(), file, first, signed, v)
				if err != nil {
					return found(err)
				}
			} else if p, err = audit.Prove(c.Context(), file, args[0], signed, v); err != nil {
				return found(noRecord(err))
			}
			if hashOnly {
				p.Line = ""
			}
			return printJSON(c.OutOrStdout(), p)
		},
	}
	logFlag(c, &path)
	f := c.Flags()
	f.StringVar(&key, "key", "", publicKeyUsage)
	f.StringVar(&checkpoint, "checkpoint", "", "checkpoint to prove against (default the last one)")
	f.StringVar(&older, "older", "", "prove that --checkpoint continues this one")
	f.BoolVar(&hashOnly, "hash-only", false, "leave the record's content out of the proof")
	f.StringVar(&check, "check", "", "check the proof in this file")
	f.BoolVar(&asJSON, "json", false, "with --check, print one JSON document")
	return c
}

func orLast(checkpoint, log string) string {
	if checkpoint != "" {
		return checkpoint
	}
	return audit.CheckpointFile(log)
}

// checked is what a proof that holds shows.
type checked struct {
	OK         bool            `json:"ok"`
	Origin     string          `json:"origin"`
	Size       uint64          `json:"size"`
	Older      uint64          `json:"older,omitempty"`
	Seq        uint64          `json:"seq,omitempty"`
	Hash       string          `json:"hash,omitempty"`
	Record     json.RawMessage `json:"record,omitempty"`
	record     audit.Record
	hasContent bool
}

func checkProof(w io.Writer, path string, v audit.Verifier, asJSON bool) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	p, err := audit.ParseProof(b)
	if err != nil {
		return usageError{err}
	}
	if err := p.Check(v); err != nil {
		return found(err)
	}
	c, err := audit.OpenCheckpoint([]byte(p.Checkpoint), v)
	if err != nil {
		return err
	}
	shown := checked{OK: true, Origin: c.Origin, Size: c.Size, Seq: p.Seq, Hash: p.Hash}
	if p.Older != "" {
		older, err := audit.OpenCheckpoint([]byte(p.Older), v)
		if err != nil {
			return err
		}
		shown.Older = older.Size
	}
	if p.Line != "" {
		shown.Record, shown.hasContent = json.RawMessage(p.Line), true
		if err := json.Unmarshal(shown.Record, &shown.record); err != nil {
			return err
		}
	}
	if asJSON {
		return printJSON(w, shown)
	}
	switch {
	case shown.Older > 0:
		fmt.Fprintf(w, "the %d records of the older checkpoint are the first of the %d that %s signed\n", shown.Older, shown.Size, shown.Origin)
	default:
		fmt.Fprintf(w, "record %d with the hash %s is among the %d that %s signed\n", shown.Seq, shown.Hash, shown.Size, shown.Origin)
		if shown.hasContent {
			fmt.Fprintf(w, "  it is %s of %s\n", shown.record.ID, shown.record.Time.Format(time.RFC3339))
			writeRecord(w, shown.record)
		}
	}
	return nil
}
