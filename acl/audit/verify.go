package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
)

// Report is what Verify found.
type Report struct {
	Records int    `json:"records"` // whole lines
	Removed int    `json:"removed"` // those of them whose content a retention removed
	Seq     uint64 `json:"seq"`     // of the last record that could be read
	Head    string `json:"head"`    // its hash
	Root    string `json:"root"`    // of the Merkle tree, in base64; empty if there are faults
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

// Verify reads a whole log and checks every record's hash, the chain, that content was removed by retention alone, that the
// log begins with what the checkpoint stands for, if one is given, and that its tree, if it has one beside it, is its
// own. It does not keep writers waiting. The error is for a log that cannot be read; one that is damaged is what the
// Report is about.
func Verify(ctx context.Context, path string, since Checkpoint) (Report, error) {
	report, err := verifyFile(ctx, path, since)
	if err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", path, err)
	}
	return report, nil
}

func verifyFile(ctx context.Context, path string, since Checkpoint) (Report, error) {
	// The tree is opened first: it never holds more than the log, which may grow meanwhile.
	t, damaged := readTree(path)
	if damaged != nil && !errors.Is(damaged, errTree) {
		return Report{}, damaged
	}
	if t != nil {
		defer t.Close()
	}
	f, size, err := openSettled(ctx, path)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	report, err := verify(ctx, f, size, since, t)
	if err == nil && damaged != nil {
		report.OK = false
		report.Faults = append(report.Faults, Fault{What: damaged.Error()})
	}
	return report, err
}

func verify(ctx context.Context, f io.ReaderAt, size int64, since Checkpoint, t *tree) (Report, error) {
	c := newChecker(since, t)
	for u, err := range unsealAll(f, 0, size, unsealLink) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && u.torn && !u.damaged() {
			c.report.Torn = size - u.start
			break
		}
		if err == nil {
			err = c.add(u)
		}
		if err != nil {
			return Report{}, err
		}
	}
	return c.end()
}

// checker checks a log, line by line.
type checker struct {
	report Report
	line   int
	// A record follows the line before it or, if that is damaged, the last one that is not: so a line that was damaged
	// or slipped in is one fault and not two.
	prev, whole place

	edge  edge
	since Checkpoint
	found bool // the place that since names
	tree  *tree
	known io.Reader // what is left of the tree's hashes, nil once they need no more comparing

	stubs    hash.Hash // of the lines without content
	bare     Fault     // the first of those since the last retention
	retained Fault     // what is wrong with the last retention
}

func newChecker(since Checkpoint, t *tree) *checker {
	c := &checker{report: Report{Faults: []Fault{}}, since: since, found: since.Size == 0, tree: t, stubs: sha256.New()}
	if t != nil && t.size > 0 {
		c.known = t.stored()
	}
	return c
}

func (c *checker) fault(line int, seq uint64, format string, args ...any) {
	if len(c.report.Faults) == maxFaults {
		c.report.More++
		return
	}
	c.report.Faults = append(c.report.Faults, Fault{Line: line, Seq: seq, What: fmt.Sprintf(format, args...)})
}

// add checks the next line, which is not one that a crash cut short.
func (c *checker) add(u unsealed) error {
	c.line++
	if u.torn {
		c.fault(c.line, 0, "the newline after this record was overwritten")
		return nil
	}
	c.report.Records++
	r := u.record
	if u.err != nil {
		c.fault(c.line, r.Seq, "%v", u.err)
		c.prev = place{seq: c.prev.seq + 1, bears: r.link(), ought: u.want}
		return nil
	}
	switch {
	case c.prev.precedes(r) || c.whole.precedes(r):
	case r.Seq > c.prev.seq+1:
		c.fault(c.line, r.Seq, "record %d should be here: records were removed or moved", c.prev.seq+1)
	case r.Seq <= c.prev.seq:
		c.fault(c.line, r.Seq, "record %d should be here: this one was inserted or moved", c.prev.seq+1)
	default:
		c.fault(c.line, r.Seq, "this record was chained to another one than stands before it: one of the two was replaced")
	}
	c.prev = place{seq: r.Seq, bears: r.link(), ought: r.link()}
	c.whole = c.prev
	c.report.Seq, c.report.Head = r.Seq, r.link()
	c.retention(u)
	if len(c.report.Faults) > 0 { // the tree would be another one, which says nothing more
		return nil
	}
	return c.grow(r)
}

// retention checks that content is gone only where a retention says so. Each retention vouches for all that were
// without content at its time, so the last one speaks for the ones before it.
func (c *checker) retention(u unsealed) {
	switch r := u.record; {
	case r.Removed != "":
		c.stubs.Write(u.text)
		c.stubs.Write([]byte("\n"))
		c.report.Removed++
		if c.bare.Line == 0 {
			c.bare = Fault{Line: c.line, Seq: r.Seq, What: "its content was removed, and no retention after it is on record"}
		}
	case r.Retention != nil:
		c.bare, c.retained = Fault{}, Fault{}
		if r.Retention.Removed != c.report.Removed || r.Retention.Stubs != hex.EncodeToString(c.stubs.Sum(nil)) {
			c.retained = Fault{Line: c.line, Seq: r.Seq, What: "the records without content before this are not those that this retention left"}
		}
	}
}

// grow adds a record to the tree and compares what that makes.
func (c *checker) grow(r Record) error {
	l, err := leaf(r.link())
	if err != nil {
		return err
	}
	hashes, err := c.edge.add(l)
	if err != nil {
		return err
	}
	if c.known != nil {
		for _, want := range hashes {
			var got [sha256.Size]byte
			if _, err := io.ReadFull(c.known, got[:]); err != nil {
				return err
			}
			if got != want {
				c.fault(c.line, r.Seq, "this is not the record that the log's tree was built from: the log was rewritten from here on, or the tree is damaged")
				c.known = nil
				break
			}
		}
		if c.edge.size == c.tree.size {
			c.known = nil
		}
	}
	if r.Seq == c.since.Size {
		c.found = true
		root, err := c.edge.root()
		if err != nil {
			return err
		}
		if root != c.since.Root {
			c.fault(c.line, r.Seq, "the %d records up to here are not those that the checkpoint stands for: the log was rewritten", c.since.Size)
		}
	}
	return nil
}

// end returns the report of a log that ends here.
func (c *checker) end() (Report, error) {
	for _, f := range []Fault{c.bare, c.retained} {
		if f.Line > 0 {
			c.fault(f.Line, f.Seq, "%s", f.What)
		}
	}
	slices.SortStableFunc(c.report.Faults, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	if !c.found && c.since.Size > c.report.Seq {
		c.fault(c.line+1, c.since.Size, "the log ends at record %d, before the checkpoint at %d: its end was cut off", c.report.Seq, c.since.Size)
	}
	if t := c.tree; t != nil && uint64(t.size) > c.report.Seq {
		c.fault(c.line+1, uint64(t.size), "the log ends at record %d and its tree at %d: its end was cut off", c.report.Seq, t.size)
	}
	c.report.OK = len(c.report.Faults) == 0
	if c.since.Size == 0 {
		c.report.Note = "Without a checkpoint this cannot tell whether records were cut off the end, or whether the whole log was rewritten."
	} else {
		c.report.Note = fmt.Sprintf("This cannot tell whether records after the checkpoint, number %d, were cut off the end or rewritten.", c.since.Size)
	}
	if c.report.OK {
		root, err := c.edge.root()
		if err != nil {
			return Report{}, err
		}
		c.report.Root = root.String()
	}
	return c.report, nil
}

// place is what a line tells of the record after it: the link that its own record bears and, if it is damaged, the hash
// that it ought to bear.
type place struct {
	seq          uint64
	bears, ought string
}

func (p place) precedes(r Record) bool {
	return r.Seq == p.seq+1 && (r.Prev == p.bears || r.Prev == p.ought)
}
