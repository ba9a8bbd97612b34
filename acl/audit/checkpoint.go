package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Checkpoint stands for the first Size records of a log: Root is that of their Merkle tree. Kept where the log's writers
// cannot reach, it shows that the log up to there was neither cut nor rewritten. The zero Checkpoint stands for nothing.
type Checkpoint struct {
	Origin string // the name of the key that signs for the log
	Size   uint64
	Root   tlog.Hash
}

// String returns the text that is signed: three lines as in C2SP's tlog-checkpoint.
func (c Checkpoint) String() string { return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root) }

func (c Checkpoint) sign(k Key) ([]byte, error) {
	return note.Sign(&note.Note{Text: c.String()}, k.signer)
}

// OpenCheckpoint reads a signed checkpoint and checks its signature.
func OpenCheckpoint(signed []byte, by Verifier) (Checkpoint, error) {
	n, err := note.Open(signed, note.VerifierList(by))
	if err != nil {
		if wrong := new(note.UnverifiedNoteError); errors.As(err, &wrong) {
			return Checkpoint{}, fmt.Errorf("the checkpoint is not signed by %s", by.Name())
		}
		return Checkpoint{}, fmt.Errorf("this is not a checkpoint that %s signed: %w", by.Name(), err)
	}
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 4 || lines[0] != by.Name() {
		return Checkpoint{}, errors.New("the signed text is not a checkpoint of that key; want its name, a number and a hash")
	}
	c := Checkpoint{Origin: lines[0]}
	if c.Size, err = strconv.ParseUint(lines[1], 10, 63); err == nil {
		c.Root, err = tlog.ParseHash(lines[2])
	}
	if err != nil || c.Size == 0 || c.String() != n.Text {
		return Checkpoint{}, errors.New("the signed text is not a checkpoint; want a name, a number and a hash")
	}
	return c, nil
}

// ReadCheckpoint reads a signed checkpoint from a file and checks its signature.
func ReadCheckpoint(path string, by Verifier) (Checkpoint, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint: %w", err)
	}
	c, err := OpenCheckpoint(b, by)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	return c, nil
}

// CheckpointFile is where Sign keeps the last checkpoint of a log.
func CheckpointFile(log string) string { return log + ".checkpoint" }

// Sign signs a checkpoint of all records that a log has. It reads those that it has not seen before, checks their chain,
// and that the log still begins with what its last checkpoint stands for; if not, the error is an ErrAltered. It reads
// no older ones: that is for Verify to do.
func Sign(ctx context.Context, log string, k Key) (signed []byte, err error) {
	if signed, err = sign(ctx, log, k); err != nil {
		return nil, fmt.Errorf("sign a checkpoint of %s: %w", log, err)
	}
	return signed, nil
}

func sign(ctx context.Context, log string, k Key) (signed []byte, err error) {
	t, err := openWhole(ctx, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if t.size == 0 {
		return nil, errors.New("it has no records yet")
	}
	v, err := note.NewVerifier(k.Public)
	if err != nil {
		return nil, err
	}
	last, err := ReadCheckpoint(CheckpointFile(log), v)
	if err == nil {
		err = t.begins(last)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // this is the first
	case errors.Is(err, ErrAltered):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("the one before: %w; sign with the same key, or move that file away to begin with another", err)
	}
	c := Checkpoint{Origin: k.Name(), Size: uint64(t.size)}
	if c.Root, err = tlog.TreeHash(t.size, t); err != nil {
		return nil, err
	}
	if signed, err = c.sign(k); err != nil {
		return nil, err
	}
	return signed, replace(CheckpointFile(log), signed)
}

// openWhole opens a log's tree and brings it up to date.
func openWhole(ctx context.Context, log string) (*tree, error) {
	if _, err := os.Stat(log); err != nil {
		return nil, err
	}
	t, err := openTree(ctx, log) // first, or another process could bring it further than what is read of the log here
	if err != nil {
		return nil, err
	}
	f, size, err := openSettled(ctx, log)
	if err == nil {
		err = errors.Join(t.catchUp(ctx, f, size), f.Close())
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// begins checks that a tree begins with what a checkpoint stands for.
func (t *tree) begins(c Checkpoint) error {
	if c.Size > uint64(t.size) {
		return fmt.Errorf("%w: it ends at record %d, before the checkpoint at %d; verify it", ErrAltered, t.size, c.Size)
	}
	root, err := tlog.TreeHash(int64(c.Size), t)
	if err != nil {
		return err
	}
	if root != c.Root {
		return fmt.Errorf("%w: its first %d records are not those that the checkpoint stands for; verify it", ErrAltered, c.Size)
	}
	return nil
}
