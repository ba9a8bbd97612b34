package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Proof shows something about a log to who does not have it. It is one of two kinds: that a record is the one with its
// number among those that a checkpoint stands for, or that those of an older checkpoint are the first of them.
type Proof struct {
	Checkpoint string      `json:"checkpoint"` // as it was signed
	Hashes     []tlog.Hash `json:"hashes"`     // in base64, as RFC 6962 orders them

	Seq  uint64 `json:"seq,omitempty"`  // of the record
	Hash string `json:"hash,omitempty"` // of the record when it was appended, in hex
	// Line is the record as it stands in the log; empty if it was left out, which leaves the proof to be one of its hash.
	Line string `json:"line,omitempty"`

	Older string `json:"older,omitempty"` // checkpoint, as it was signed
}

// ErrProof is wrapped by the errors about a proof that shows nothing.
var ErrProof = errors.New("the proof does not hold")

// Prove proves that the record with an ID is in the log for which a checkpoint stands.
func Prove(ctx context.Context, log, id string, signed []byte, by Verifier) (Proof, error) {
	p, err := prove(ctx, log, id, signed, by)
	if err != nil {
		return Proof{}, fmt.Errorf("prove %q: %w", id, err)
	}
	return p, nil
}

func prove(ctx context.Context, log, id string, signed []byte, by Verifier) (Proof, error) {
	c, err := OpenCheckpoint(signed, by)
	if err != nil {
		return Proof{}, err
	}
	line, r, err := find(ctx, log, id)
	if err != nil {
		return Proof{}, err
	}
	if r.Seq > c.Size {
		return Proof{}, fmt.Errorf("the record has number %d and the checkpoint ends at %d; sign another checkpoint", r.Seq, c.Size)
	}
	t, err := openWhole(ctx, log)
	if err != nil {
		return Proof{}, err
	}
	defer t.Close()
	if err := t.begins(c); err != nil {
		return Proof{}, err
	}
	p := Proof{Checkpoint: string(signed), Seq: r.Seq, Hash: r.link(), Line: string(line)}
	if p.Hashes, err = tlog.ProveRecord(int64(c.Size), int64(r.Seq-1), t); err != nil {
		return Proof{}, err
	}
	return p, p.check(by)
}

// ProveOlder proves that the records of an older checkpoint are the first of those of a newer one.
func ProveOlder(ctx context.Context, log string, older, newer []byte, by Verifier) (Proof, error) {
	p, err := proveOlder(ctx, log, older, newer, by)
	if err != nil {
		return Proof{}, fmt.Errorf("prove that one checkpoint continues another: %w", err)
	}
	return p, nil
}

func proveOlder(ctx context.Context, log string, older, newer []byte, by Verifier) (Proof, error) {
	a, err := OpenCheckpoint(older, by)
	if err != nil {
		return Proof{}, fmt.Errorf("the older one: %w", err)
	}
	b, err := OpenCheckpoint(newer, by)
	if err != nil {
		return Proof{}, fmt.Errorf("the newer one: %w", err)
	}
	if a.Size > b.Size {
		return Proof{}, fmt.Errorf("the older one ends at record %d and the newer one at %d; swap them", a.Size, b.Size)
	}
	t, err := openWhole(ctx, log)
	if err != nil {
		return Proof{}, err
	}
	defer t.Close()
	for _, c := range []Checkpoint{a, b} {
		if err := t.begins(c); err != nil {
			return Proof{}, err
		}
	}
	p := Proof{Checkpoint: string(newer), Older: string(older)}
	if p.Hashes, err = tlog.ProveTree(int64(b.Size), int64(a.Size), t); err != nil {
		return Proof{}, err
	}
	return p, p.check(by)
}

// ParseProof reads a proof.
func ParseProof(b []byte) (Proof, error) {
	var p Proof
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Proof{}, fmt.Errorf("read a proof: %w", err)
	}
	return p, nil
}

// Check checks a proof against nothing but a public key. Its error is an ErrProof if the proof shows nothing.
func (p Proof) Check(by Verifier) error {
	if err := p.check(by); err != nil {
		return fmt.Errorf("%w: %w", ErrProof, err)
	}
	return nil
}

func (p Proof) check(by Verifier) error {
	c, err := OpenCheckpoint([]byte(p.Checkpoint), by)
	if err != nil {
		return err
	}
	if p.Older != "" {
		if p.Seq != 0 || p.Hash != "" || p.Line != "" {
			return errors.New("it claims to be of both kinds")
		}
		older, err := OpenCheckpoint([]byte(p.Older), by)
		if err != nil {
			return fmt.Errorf("the older one: %w", err)
		}
		if older.Size > c.Size {
			return errors.New("the older checkpoint is the longer one")
		}
		return tlog.CheckTree(p.Hashes, int64(c.Size), c.Root, int64(older.Size), older.Root)
	}
	if p.Seq == 0 || p.Seq > c.Size {
		return fmt.Errorf("it is of record %d, and the checkpoint has %d", p.Seq, c.Size)
	}
	if p.Line != "" {
		r, _, err := unseal([]byte(p.Line))
		if err != nil {
			return err
		}
		if r.Seq != p.Seq || r.link() != p.Hash {
			return fmt.Errorf("its line is record %d with another number or hash than it says", r.Seq)
		}
	}
	l, err := leaf(p.Hash)
	if err != nil {
		return err
	}
	return tlog.CheckRecord(p.Hashes, int64(c.Size), c.Root, int64(p.Seq-1), l)
}
