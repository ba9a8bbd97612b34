package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Filter selects records. Its zero value selects all.
type Filter struct {
	Principal string // who asked, or on whose behalf
	Tenant    string
	Object    string // a ref, returned, withheld or read: itself or something in it
	Outcome   Outcome
	Code      string    // of the refusal
	Since     time.Time // inclusive
	Until     time.Time // exclusive
	Limit     int       // at most so many, the newest; 0 is no limit
}

func (f Filter) matches(r Record) bool {
	within := func(ref string) bool { return ref == f.Object || strings.HasPrefix(ref, f.Object+".") }
	return (f.Principal == "" || f.Principal == r.Principal || f.Principal == r.OnBehalfOf) &&
		(f.Object == "" || slices.ContainsFunc(r.Returned, within) || slices.ContainsFunc(r.Read, within) || slices.ContainsFunc(r.Withheld, within)) &&
		(f.Tenant == "" || f.Tenant == r.Tenant) &&
		(f.Outcome == "" || f.Outcome == r.Outcome) &&
		(f.Code == "" || f.Code == r.Code) &&
		(f.Since.IsZero() || !r.Time.Before(f.Since)) &&
		(f.Until.IsZero() || r.Time.Before(f.Until))
}

// List yields the records of a log that pass the filter, newest first. A damaged line yields an ErrAltered and the records
// before it still come; any other error is the last thing that is yielded.
func List(ctx context.Context, path string, filter Filter) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		left := filter.Limit
		for line, err := range newestFirst(ctx, path) {
			var r Record
			if err == nil {
				if r, err = line.record(); err != nil {
					err = damagedAt(path, line.start, err)
				}
			}
			if err == nil && !filter.matches(r) {
				continue
			}
			if !yield(r, err) {
				return
			}
			if err == nil && left > 0 {
				if left--; left == 0 {
					return
				}
			}
		}
	}
}

// Each yields what List does, oldest first. The filter's Limit does not apply.
func Each(ctx context.Context, path string, filter Filter) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f, size, err := openSettled(ctx, path)
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer f.Close()
		for u, err := range unsealAll(f, 0, size, unseal) {
			if err == nil {
				err = ctx.Err()
			}
			if u.torn {
				return
			}
			if err != nil {
				yield(Record{}, fmt.Errorf("read %s: %w", path, err))
				return
			}
			if u.err != nil {
				err = damagedAt(path, u.start, u.err)
			}
			if (err != nil || filter.matches(u.record)) && !yield(u.record, err) {
				return
			}
		}
	}
}

func damagedAt(path string, start int64, err error) error {
	return fmt.Errorf("%w: %s, at byte %d: %w; verify it", ErrAltered, path, start, err)
}

// ErrNoRecord is wrapped by the errors of Show and Prove if no whole record has the ID.
var ErrNoRecord = errors.New("no such record")

// Show returns the record with an ID.
func Show(ctx context.Context, path, id string) (Record, error) {
	_, r, err := find(ctx, path, id)
	if err != nil {
		return Record{}, fmt.Errorf("show %q: %w", id, err)
	}
	return r, nil
}

// find returns the record with an ID, and its line.
func find(ctx context.Context, path, id string) ([]byte, Record, error) {
	damaged := 0
	for line, err := range newestFirst(ctx, path) {
		if err != nil {
			return nil, Record{}, err
		}
		if !bytes.Contains(line.text, []byte(id)) { // IDs need no escapes
			continue
		}
		r, err := line.record()
		if err != nil {
			damaged++
		} else if r.ID == id {
			return line.text, r, nil
		}
	}
	if damaged > 0 {
		return nil, Record{}, fmt.Errorf("%w, but a damaged line names it; verify the log", ErrNoRecord)
	}
	return nil, Record{}, fmt.Errorf("%w in %s", ErrNoRecord, path)
}

// line is one line of a log, without its newline.
type line struct {
	start int64
	text  []byte
	long  bool // over maxLine; text is empty
	torn  bool // the last, without a newline
}

func (l line) record() (Record, error) {
	r, _, err := l.unseal(unseal)
	return r, err
}

func (l line) unseal(by func([]byte) (Record, string, error)) (r Record, want string, err error) {
	if l.long {
		return r, "", errLongLine
	}
	return by(l.text)
}

// damaged reports whether a torn line cannot come from a write that was cut short: such a write has nothing after a
// whole record but its newline.
func (l line) damaged() bool {
	if !l.torn || len(l.text) == 0 {
		return false
	}
	_, _, err := unseal(l.text[:len(l.text)-1])
	return err == nil
}

// lines yields the lines between two offsets, of which the first is the start of a line.
func lines(f io.ReaderAt, start, end int64) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		b := bufio.NewReaderSize(io.NewSectionReader(f, start, end-start), 64<<10)
		for at := start; ; {
			l := line{start: at}
			for more := true; more; {
				part, err := b.ReadSlice('\n')
				at += int64(len(part))
				more = errors.Is(err, bufio.ErrBufferFull)
				l.torn = err == io.EOF
				if err != nil && !more && !l.torn {
					yield(l, err)
					return
				}
				if l.long = l.long || len(l.text)+len(part) > maxLine+1; l.long {
					l.text = nil
					continue
				}
				l.text = append(l.text, part...)
			}
			if at == l.start { // nothing was left
				return
			}
			if !l.torn && !l.long {
				l.text = l.text[:len(l.text)-1]
			}
			if !yield(l, nil) || l.torn {
				return
			}
		}
	}
}

// unsealed is a line with what is in it.
type unsealed struct {
	line
	record Record
	want   string // the hash that it ought to have
	err    error
}

// unsealAll yields the lines between two offsets as lines does, decoded on all processors by unseal or unsealLink.
func unsealAll(f io.ReaderAt, start, end int64, by func([]byte) (Record, string, error)) iter.Seq2[unsealed, error] {
	type batch struct {
		lines []unsealed
		bytes int
		err   error
		done  chan struct{}
	}
	const enough, bytes = 512, 1 << 20
	return func(yield func(unsealed, error) bool) {
		queue := make(chan *batch, 2*runtime.GOMAXPROCS(0))
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			defer close(queue)
			b := &batch{done: make(chan struct{})}
			send := func() bool {
				go func(b *batch) {
					defer close(b.done)
					for i := range b.lines {
						if u := &b.lines[i]; !u.torn {
							u.record, u.want, u.err = u.unseal(by)
						}
					}
				}(b)
				select {
				case queue <- b:
				case <-stop:
					return false
				}
				b = &batch{done: make(chan struct{}), lines: make([]unsealed, 0, enough)}
				return true
			}
			for l, err := range lines(f, start, end) {
				if err != nil {
					b.err = err
					break
				}
				b.lines = append(b.lines, unsealed{line: l})
				if b.bytes += len(l.text); (len(b.lines) == enough || b.bytes >= bytes) && !send() {
					return
				}
			}
			send()
		}()
		for b := range queue {
			<-b.done
			for _, u := range b.lines {
				if !yield(u, nil) {
					return
				}
			}
			if b.err != nil {
				yield(unsealed{}, b.err)
				return
			}
		}
	}
}

// newestFirst yields the whole lines of a log in reverse.
func newestFirst(ctx context.Context, path string) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		f, size, err := openSettled(ctx, path)
		if err != nil {
			yield(line{}, err)
			return
		}
		defer f.Close()
		end, err := lineStart(f, size)
		for err == nil && end > 0 {
			if err = ctx.Err(); err != nil {
				break
			}
			var l line
			if l, err = lineBefore(f, end); err != nil {
				break
			}
			if !yield(l, nil) {
				return
			}
			end = l.start
		}
		if err != nil {
			yield(line{}, fmt.Errorf("read %s: %w", path, err))
		}
	}
}

// headAt reads the record that ends at end.
func headAt(f io.ReaderAt, end int64) (head, error) {
	l, err := lineBefore(f, end)
	if err != nil {
		return head{}, err
	}
	r, err := l.record()
	return head{end: end, seq: r.Seq, hash: r.link()}, err
}

// lineBefore reads the line whose newline is the byte before end.
func lineBefore(f io.ReaderAt, end int64) (line, error) {
	start, err := lineStart(f, end-1)
	if err != nil {
		return line{}, err
	}
	l := line{start: start, long: end-1-start > maxLine}
	if l.long {
		return l, nil
	}
	b := make([]byte, end-start)
	if _, err := f.ReadAt(b, start); err != nil {
		return line{}, err
	}
	l.text = b[:len(b)-1]
	if b[len(b)-1] != '\n' {
		return line{}, errNotRecord
	}
	return l, nil
}

// lineStart returns the offset after the last newline before end, 0 if there is none.
func lineStart(f io.ReaderAt, end int64) (int64, error) {
	var chunk [4 << 10]byte
	for end > 0 {
		b := chunk[:min(end, int64(len(chunk)))]
		at := end - int64(len(b))
		if _, err := f.ReadAt(b, at); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
		end = at
	}
	return 0, nil
}

// openSettled opens a log for reading and returns how long it was at a moment when nobody was writing.
func openSettled(ctx context.Context, path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	// A log that was copied elsewhere has no lock, and nobody who writes.
	lock := flock.New(path+".lock", flock.SetFlag(os.O_RDONLY))
	if err = acquire(ctx, lock, lock.RLock); err == nil {
		defer lock.Unlock()
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	var info fs.FileInfo
	if err == nil {
		info, err = f.Stat()
	}
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("read %s: %w", path, err)
	}
	return f, info.Size(), nil
}
