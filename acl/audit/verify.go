package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Report is what Verify found.
type Report struct {
	Records int    `json:"records"` // whole lines
	Seq     uint64 `json:"seq"`     // of the last record that could be read
	Head    string `json:"head"`    // its hash
	OK      bool   `json:"ok"`
	// Faults are in order of place, the first maxFaults of them; what is wrong at one place may show at the next too.
	Faults []Fault `json:"faults"`
	More   int     `json:"more,omitempty"` // faults beyond those
	// Torn is the number of bytes of a last line that a crash cut short. Nobody was told of that record; it is no
	// fault, and the next append sets it aside.
	Torn int64 `json:"torn,omitempty"`
	// Note says what the check cannot exclude.
	Note string `json:"note"`
}

// Fault is something wrong at a line, counted from 1. Seq is the number that the record there bears, 0 if it cannot
// be read.
type Fault struct {
	Line int    `json:"line"`
	Seq  uint64 `json:"seq,omitempty"`
	What string `json:"what"`
}

// maxFaults bounds a report of a file that is not a log at all.
const maxFaults = 100

// Checkpoint names the last record of a log at some time. Kept where the log's writers cannot reach, it shows that the
// log up to there was neither cut nor rewritten. The zero Checkpoint names nothing.
type Checkpoint struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

// Checkpoint returns the checkpoint that the verified log's end makes. It is worth keeping only if the report is OK.
func (r Report) Checkpoint() Checkpoint { return Checkpoint{Seq: r.Seq, Hash: r.Head} }

// ReadCheckpoint reads a checkpoint's file.
func ReadCheckpoint(path string) (Checkpoint, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint: %w", err)
	}
	var c Checkpoint
	if err := json.Unmarshal(b, &c); err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	if c.Seq == 0 || c.Hash == "" {
		return Checkpoint{}, fmt.Errorf("read checkpoint %s: it names no record; want {\"seq\": NUMBER, \"hash\": HASH}", path)
	}
	return c, nil
}

// WriteFile writes the checkpoint to a file, whole or not at all.
func (c Checkpoint) WriteFile(path string) error {
	b, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write checkpoint %s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write checkpoint: %w", err), os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(path))
}

// Verify reads a whole log and checks every record and the chain, and that the record of the checkpoint, if one is
// given, is in it. It does not keep writers waiting. The error is for a log that cannot be read; one that is damaged
// is what the Report is about.
func Verify(ctx context.Context, path string, since Checkpoint) (Report, error) {
	f, size, err := openSettled(ctx, path)
	if err != nil {
		return Report{}, fmt.Errorf("verify: %w", err)
	}
	defer f.Close()
	report, err := verify(ctx, f, size, since)
	if err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", path, err)
	}
	return report, nil
}

func verify(ctx context.Context, f io.ReaderAt, size int64, since Checkpoint) (Report, error) {
	report := Report{Faults: []Fault{}}
	fault := func(line int, seq uint64, what string) {
		if len(report.Faults) == maxFaults {
			report.More++
			return
		}
		report.Faults = append(report.Faults, Fault{Line: line, Seq: seq, What: what})
	}
	// A record follows the line before it or, if that is damaged, the last one that is not: so a line that was damaged
	// or slipped in is one fault and not two.
	var prev, whole link
	found := since == Checkpoint{}
	n := 0
	for line, err := range lines(f, 0, size) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return Report{}, err
		}
		n++
		if line.torn {
			if line.damaged() {
				fault(n, 0, "the newline after this record was overwritten")
			} else {
				report.Torn = size - line.start
			}
			break
		}
		report.Records++
		r, want, err := line.unseal()
		if err != nil {
			fault(n, r.Seq, err.Error())
			prev = link{seq: prev.seq + 1, bears: r.Hash, ought: want}
			continue
		}
		switch {
		case prev.precedes(r) || whole.precedes(r):
		case r.Seq > prev.seq+1:
			fault(n, r.Seq, fmt.Sprintf("record %d should be here: records were removed or moved", prev.seq+1))
		case r.Seq <= prev.seq:
			fault(n, r.Seq, fmt.Sprintf("record %d should be here: this one was inserted or moved", prev.seq+1))
		default:
			fault(n, r.Seq, "this record was chained to another one than stands before it: one of the two was replaced")
		}
		if r.Seq == since.Seq {
			found = true
			if r.Hash != since.Hash {
				fault(n, r.Seq, "this is not the record that the checkpoint names: the log was rewritten")
			}
		}
		prev = link{seq: r.Seq, bears: r.Hash, ought: r.Hash}
		whole = prev
		report.Seq, report.Head = r.Seq, r.Hash
	}
	switch {
	case found:
	case since.Seq > report.Seq:
		fault(n+1, since.Seq, fmt.Sprintf("the log ends at record %d, before the checkpoint at %d: its end was cut off", report.Seq, since.Seq))
	default:
		fault(n+1, since.Seq, "the record that the checkpoint names is not in the log")
	}
	report.OK = len(report.Faults) == 0
	if (since == Checkpoint{}) {
		report.Note = "Without a checkpoint this cannot tell whether records were cut off the end, or whether the whole log was rewritten."
	} else {
		report.Note = fmt.Sprintf("This cannot tell whether records after the checkpoint, number %d, were cut off the end or rewritten.", since.Seq)
	}
	return report, nil
}

// link is what a line tells of the record after it: the hash that its own record bears and, if it is damaged, the one
// that it ought to bear.
type link struct {
	seq          uint64
	bears, ought string
}

func (l link) precedes(r Record) bool {
	return r.Seq == l.seq+1 && (r.Prev == l.bears || r.Prev == l.ought)
}
