package audit

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/gofrs/flock"
	"golang.org/x/mod/sumdb/tlog"
)

// ErrAltered is wrapped by errors about a log that is not the one that was signed, or that its tree was built from.
var ErrAltered = errors.New("the log was altered")

// leaf returns a record's hash in the Merkle tree.
func leaf(link string) (tlog.Hash, error) {
	b, err := hex.DecodeString(link)
	if err != nil || len(b) != tlog.HashSize || hex.EncodeToString(b) != link {
		return tlog.Hash{}, fmt.Errorf("%q is not a hash", link)
	}
	return tlog.RecordHash(b), nil
}

// edge is the right edge of a growing Merkle tree: the last complete subtree of each height, which is all that it takes
// to grow on and to tell the root.
type edge struct {
	size int64
	at   [64]struct {
		index int64
		hash  tlog.Hash
	}
}

// ReadHashes implements tlog.HashReader.
func (e *edge) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		height, _ := tlog.SplitStoredHashIndex(index)
		if e.at[height].index != index {
			return nil, fmt.Errorf("hash %d is not on the edge of a tree of %d", index, e.size)
		}
		out[i] = e.at[height].hash
	}
	return out, nil
}

// add grows the tree by a leaf and returns the hashes that this completes, in the order in which they are stored.
func (e *edge) add(leaf tlog.Hash) ([]tlog.Hash, error) {
	stored, err := tlog.StoredHashesForRecordHash(e.size, leaf, e)
	if err != nil {
		return nil, err
	}
	first := tlog.StoredHashIndex(0, e.size)
	for height, h := range stored {
		e.at[height].index, e.at[height].hash = first+int64(height), h
	}
	e.size++
	return stored, nil
}

func (e *edge) root() (tlog.Hash, error) { return tlog.TreeHash(e.size, e) }

// tree is the file of a log's Merkle tree: a header of one hash's size, then the hashes in the order of tlog. It holds
// nothing that the log does not; it is there so that proofs need not read the log, and to tell which record of a
// rewritten log is another one.
type tree struct {
	file *os.File
	lock *flock.Flock // nil if it was opened for reading
	size int64        // records
	end  int64        // where the last of them ended in the log when the tree was written
}

// errTree says that a tree's file cannot be one, which says nothing about its log.
var errTree = errors.New("this is not the whole tree of a log; remove it, and it is built again from the log")

const treeMagic = "schemagate tree\n"

// openTree opens the tree beside a log, and creates it if it is missing.
func openTree(ctx context.Context, log string) (*tree, error) {
	path := log + ".tree"
	t := &tree{lock: flock.New(path)}
	if err := acquire(ctx, t.lock, t.lock.Lock); err != nil {
		return nil, err
	}
	err := t.open(path, os.O_RDWR)
	if err != nil {
		return nil, errors.Join(err, t.lock.Unlock())
	}
	return t, nil
}

// readTree opens the tree beside a log, if there is one, to compare it with the log.
func readTree(log string) (*tree, error) {
	t := &tree{}
	if err := t.open(log+".tree", os.O_RDONLY); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	return t, nil
}

func (t *tree) open(path string, flag int) error {
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return err
	}
	t.file = f
	if err := t.readHeader(); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (t *tree) readHeader() error {
	var header [tlog.HashSize]byte
	info, err := t.file.Stat()
	if err != nil || info.Size() == 0 { // new
		return err
	}
	if _, err := t.file.ReadAt(header[:], 0); err != nil {
		return errTree
	}
	if header == [tlog.HashSize]byte{} { // its first hashes are being written, or a crash cut that short
		return nil
	}
	if string(header[:len(treeMagic)]) != treeMagic {
		return errTree
	}
	numbers := header[len(treeMagic):]
	t.size, t.end = int64(binary.BigEndian.Uint64(numbers)), int64(binary.BigEndian.Uint64(numbers[8:]))
	if room := info.Size() / tlog.HashSize; t.size < 0 || t.end < 0 || t.size > room || tlog.StoredHashCount(t.size) >= room {
		return fmt.Errorf("%w: its end is missing", errTree)
	}
	return nil
}

func (t *tree) Close() error {
	err := t.file.Close()
	if t.lock != nil {
		err = errors.Join(err, t.lock.Unlock())
	}
	return err
}

// ReadHashes implements tlog.HashReader.
func (t *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if _, err := t.file.ReadAt(out[i][:], (1+index)*tlog.HashSize); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// edge returns the tree's right edge.
func (t *tree) edge() (*edge, error) {
	e := &edge{size: t.size}
	for height := range e.at {
		n := t.size >> height
		if n == 0 {
			break
		}
		index := tlog.StoredHashIndex(height, n-1)
		h, err := t.ReadHashes([]int64{index})
		if err != nil {
			return nil, err
		}
		e.at[height].index, e.at[height].hash = index, h[0]
	}
	return e, nil
}

// catchUp adds the records of the first size bytes of a log that the tree does not have yet. It checks their chain.
func (t *tree) catchUp(ctx context.Context, log io.ReaderAt, size int64) error {
	h, err := t.resume(ctx, log, size)
	if err != nil {
		return err
	}
	e, err := t.edge()
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(t.file, (1+tlog.StoredHashCount(t.size))*tlog.HashSize), 1<<20)
	for u, err := range unsealAll(log, h.end, size, unsealLink) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if u.torn {
			break
		}
		if err = u.err; err == nil {
			h, err = h.follow(u.record, len(u.text)+1)
		}
		if err != nil {
			return fmt.Errorf("%w: after record %d: %w; verify it", ErrAltered, h.seq, err)
		}
		l, err := leaf(h.hash)
		if err != nil {
			return err
		}
		stored, err := e.add(l)
		if err != nil {
			return err
		}
		for _, s := range stored {
			w.Write(s[:]) // Flush returns its error
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return t.keep(e.size, h.end)
}

// keep makes the hashes that were written part of the tree. The header is written after them, and so that a crash leaves
// either the old one or the new one.
func (t *tree) keep(size, end int64) error {
	if err := t.file.Sync(); err != nil {
		return err
	}
	header := binary.BigEndian.AppendUint64([]byte(treeMagic), uint64(size))
	header = binary.BigEndian.AppendUint64(header, uint64(end))
	if _, err := t.file.WriteAt(header, 0); err != nil {
		return err
	}
	if err := t.file.Sync(); err != nil {
		return err
	}
	t.size, t.end = size, end
	return nil
}

// resume finds the tree's last record in the log, which must be the one that the tree has.
func (t *tree) resume(ctx context.Context, log io.ReaderAt, size int64) (head, error) {
	if t.size == 0 {
		return head{}, nil
	}
	known, err := t.ReadHashes([]int64{tlog.StoredHashIndex(0, t.size-1)})
	if err != nil {
		return head{}, err
	}
	is := func(h head) error {
		if l, err := leaf(h.hash); err != nil || l != known[0] {
			return fmt.Errorf("%w: record %d is not the one that its tree was built from; verify it", ErrAltered, h.seq)
		}
		return nil
	}
	if t.end <= size {
		if h, err := headAt(log, t.end); err == nil && h.seq == uint64(t.size) {
			return h, is(h)
		}
	}
	// Records have lost their content since, and the others have moved.
	var h head
	for u, err := range unsealAll(log, 0, size, unsealLink) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return head{}, err
		}
		if h.seq = u.record.Seq; u.err == nil && h.seq == uint64(t.size) {
			h.end, h.hash = u.start+int64(len(u.text))+1, u.record.link()
			return h, is(h)
		}
	}
	return head{}, fmt.Errorf("%w: it ends before record %d, which its tree has; verify it", ErrAltered, t.size)
}

// stored yields the tree's hashes in order.
func (t *tree) stored() *bufio.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(t.file, tlog.HashSize, tlog.StoredHashCount(t.size)*tlog.HashSize), 64<<10)
}
