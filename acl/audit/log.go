package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// ErrUnavailable is wrapped by every error of Open and Append: the decision is not on record, so nothing may be
// answered.
var ErrUnavailable = errors.New("the audit is unavailable")

// Log appends to a log file. Appends that wait at the same time share one write and one fsync. It is safe for
// concurrent use.
type Log struct {
	// Redact, if it is set before the first Append, takes from each record what must not be kept. It must not change
	// what the record's lists share with the caller's.
	Redact func(*Record)

	path    string
	log     *slog.Logger
	lock    *flock.Flock
	entries chan *entry

	mu      sync.Mutex
	closed  bool
	pending sync.WaitGroup

	head head // the committer's
}

// head is a place in the file at which a record ends.
type head struct {
	end  int64
	seq  uint64
	hash string // the record's link
}

// follow returns the place after a record, and an error if it does not belong at h.
func (h head) follow(r Record, bytes int) (head, error) {
	if r.Seq != h.seq+1 || r.Prev != h.hash {
		return h, fmt.Errorf("record %d does not follow record %d", r.Seq, h.seq)
	}
	return head{end: h.end + int64(bytes), seq: r.Seq, hash: r.link()}, nil
}

type entry struct {
	ctx    context.Context
	record Record
	err    error
	done   chan struct{}
}

// Open opens the log at path, and creates it and its folders, readable only by their owner, if they are missing. It
// checks the last record, not the whole chain. What it sets aside it tells the logger, which may be nil. The context
// is for Open alone.
func Open(ctx context.Context, path string, log *slog.Logger) (*Log, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l := &Log{path: path, log: log, lock: flock.New(path + ".lock"), entries: make(chan *entry)}
	if err := l.start(ctx); err != nil {
		return nil, fmt.Errorf("%w: open %s: %w", ErrUnavailable, path, err)
	}
	go l.run()
	return l, nil
}

func (l *Log) start(ctx context.Context) error {
	if err := makeFolder(filepath.Dir(l.path)); err != nil {
		return err
	}
	if err := acquire(ctx, l.lock, l.lock.Lock); err != nil {
		return err
	}
	defer l.lock.Unlock()
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	// The file may be new, or one whose creator died before its name was on disk.
	if err := syncFolder(filepath.Dir(l.path)); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end, err := lineStart(f, info.Size())
	if err != nil {
		return err
	}
	if end > 0 {
		if l.head, err = headAt(f, end); err != nil {
			return fmt.Errorf("the last whole record: %w; verify the log, keep it as evidence and start another", err)
		}
	}
	return l.catchUp(f, info.Size())
}

// Append puts a record on disk and returns its ID. It sets Seq, ID, Nonce, Prev and Hash, and Time if it is zero. When it
// returns without an error the record is durable; after an error, the context's included, the record may or may not
// be in the log and nothing may be answered. A failed Append leaves the log usable: the next one works as soon as
// the cause is gone.
func (l *Log) Append(ctx context.Context, r Record) (id string, err error) {
	if err := l.append(ctx, &r); err != nil {
		return "", fmt.Errorf("%w: append to %s: %w", ErrUnavailable, l.path, err)
	}
	return r.ID, nil
}

func (l *Log) append(ctx context.Context, r *Record) error {
	if !slices.Contains(outcomes[:], r.Outcome) {
		return fmt.Errorf("%q is not an outcome; use one of %q", r.Outcome, outcomes)
	}
	if l.Redact != nil {
		l.Redact(r)
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return fs.ErrClosed
	}
	l.pending.Add(1)
	l.mu.Unlock()
	defer l.pending.Done()

	r.ID, r.Nonce = rand.Text(), rand.Text()
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	r.Time = r.Time.UTC()
	e := &entry{ctx: ctx, record: *r, done: make(chan struct{})}
	select {
	case l.entries <- e:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close waits for the appends under way and makes later ones fail.
func (l *Log) Close() error {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	l.mu.Unlock()
	l.pending.Wait()
	if !again {
		close(l.entries)
	}
	return nil
}

// run is the committer: the only one that touches the file and the head.
func (l *Log) run() {
	for first := range l.entries {
		for _, e := range l.commit(first) {
			close(e.done)
		}
	}
}

// batchBytes is how much of a batch is gathered before it is written.
const batchBytes = 1 << 20

// commit appends first and whatever else waits once the file is locked, and returns them with their err set.
func (l *Log) commit(first *entry) (batch []*entry) {
	var b []byte
	var failed error
	batch = []*entry{first}
	defer func() {
		for _, e := range batch {
			if e.err == nil {
				e.err = failed
			}
		}
	}()

	// Waiting here for good is harmless: callers leave when their contexts end, and Close waits for callers only.
	if failed = l.lock.Lock(); failed != nil {
		return batch
	}
	defer l.lock.Unlock()
	f, failed := l.open()
	if failed != nil {
		return batch
	}
	defer f.Close()

	h := l.head
	for e, i := first, 0; e != nil; i++ {
		if i > 0 {
			batch = append(batch, e)
		}
		b, h, e.err = extend(b, h, e)
		e = nil
		if len(b) < batchBytes {
			select {
			case e = <-l.entries: // nil once closed
			default:
			}
		}
	}
	if len(b) == 0 {
		return batch
	}
	if failed = write(f, b, l.head.end); failed == nil {
		l.head = h
	}
	return batch
}

// extend adds an entry's line to what is about to be written at the end of h.
func extend(b []byte, h head, e *entry) ([]byte, head, error) {
	if err := e.ctx.Err(); err != nil {
		return b, h, err
	}
	e.record.Seq, e.record.Prev = h.seq+1, h.hash
	line, err := seal(&e.record)
	if err != nil {
		return b, h, err
	}
	b = append(append(b, line...), '\n')
	h, err = h.follow(e.record, len(line)+1)
	return b, h, err
}

// file is what write needs of an *os.File opened for appending.
type file interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
}

// write appends b to a file that ends at end, durably or, as far as the file lets it, not at all. What it cannot take
// back the next commit finds: whole records it chains on to, and the rest it sets aside.
func write(f file, b []byte, end int64) error {
	_, err := f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		return nil
	}
	undo := f.Truncate(end)
	if undo == nil {
		undo = f.Sync()
	}
	return errors.Join(err, undo)
}

// open opens the file for one commit and moves the head to its end. The lock must be held.
func (l *Log) open() (*os.File, error) {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the log was removed while in use; put it back, or restart to begin another: %w", err)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = l.catchUp(f, info.Size())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// catchUp checks that the head is still where it was and that what other processes appended follows it, and sets a
// torn last line aside.
func (l *Log) catchUp(f *os.File, size int64) error {
	damaged := func(err error) error {
		return fmt.Errorf("%w; verify the log, and keep it as evidence", err)
	}
	h, err := l.head.find(f, size)
	if err != nil {
		return damaged(err)
	}
	l.head = h
	for line, err := range lines(f, h.end, size) {
		if err != nil {
			return err
		}
		if line.torn {
			if line.damaged() {
				return damaged(errors.New("the newline of the last record was overwritten"))
			}
			return l.setAside(f, h, size)
		}
		r, err := line.record()
		if err == nil {
			h, err = h.follow(r, len(line.text)+1)
		}
		if err != nil {
			return damaged(fmt.Errorf("after record %d: %w", h.seq, err))
		}
		l.head = h
	}
	return nil
}

// find returns where a head is in a file that may have grown since, or in which a retention has moved it.
func (h head) find(f io.ReaderAt, size int64) (head, error) {
	err := h.check(f, size)
	if err == nil {
		return h, nil
	}
	// A retention ends with a record of itself, so one follows the head; otherwise this is not the file that it was.
	retained := false
	for end, bad := lineStart(f, size); bad == nil && end > 0; {
		var l line
		if l, bad = lineBefore(f, end); bad != nil {
			break
		}
		r, bad := l.record()
		if bad != nil || r.Seq < h.seq {
			break
		}
		if r.Seq == h.seq && r.link() == h.hash && retained {
			return head{end: end, seq: h.seq, hash: h.hash}, nil
		}
		retained = retained || r.Retention != nil
		end = l.start
	}
	return h, err
}

func (h head) check(f io.ReaderAt, size int64) error {
	if size < h.end {
		return fmt.Errorf("the log was cut from %d to %d bytes while in use", h.end, size)
	}
	if h.end == 0 {
		return nil
	}
	if is, err := headAt(f, h.end); err != nil {
		return fmt.Errorf("record %d: %w", h.seq, err)
	} else if is != h {
		return fmt.Errorf("record %d was replaced while in use", h.seq)
	}
	return nil
}

// setAside moves everything after h to a file of its own.
func (l *Log) setAside(f *os.File, h head, size int64) error {
	var aside *os.File
	for n := 1; aside == nil; n++ {
		var err error
		aside, err = os.OpenFile(fmt.Sprint(l.path, asideMark, n), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	_, err := io.Copy(aside, io.NewSectionReader(f, h.end, size-h.end))
	if err == nil {
		err = aside.Sync()
	}
	err = errors.Join(err, aside.Close())
	if err == nil {
		err = syncFolder(filepath.Dir(l.path))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("set a torn record aside: %w", err), os.Remove(aside.Name()))
	}
	if err := f.Truncate(h.end); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	l.log.Warn("audit: a record that a crash cut short was set aside",
		"log", l.path, "after", h.seq, "bytes", size-h.end, "aside", aside.Name())
	return nil
}

// asideMark stands in the names of the files that setAside makes, between that of the log and a number.
const asideMark = ".torn-"

// acquire takes a file lock, or gives up when the context ends.
func acquire(ctx context.Context, lock *flock.Flock, take func() error) error {
	taken := make(chan error, 1)
	go func() { taken <- take() }()
	select {
	case err := <-taken:
		return err
	case <-ctx.Done():
		go func() {
			if <-taken == nil {
				lock.Unlock()
			}
		}()
		return fmt.Errorf("another process holds %s: %w", lock.Path(), context.Cause(ctx))
	}
}

// makeFolder is os.MkdirAll that is still true after a power cut.
func makeFolder(dir string) error {
	switch info, err := os.Stat(dir); {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is not a folder", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(dir)
	if err := makeFolder(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(parent)
}

func syncFolder(dir string) error {
	if runtime.GOOS == "windows" { // it cannot, and need not
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
