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
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Filter selects records. Its zero value selects all.
type Filter struct {
	Principal string // who asked, or on whose behalf
	Object    string // a ref, returned, withheld or read: itself or something in it
	Outcome   Outcome
	Since     time.Time // inclusive
	Until     time.Time // exclusive
	Limit     int       // at most so many, the newest; 0 is no limit
}

func (f Filter) matches(r Record) bool {
	within := func(ref string) bool { return ref == f.Object || strings.HasPrefix(ref, f.Object+".") }
	return (f.Principal == "" || f.Principal == r.Principal || f.Principal == r.OnBehalfOf) &&
		(f.Object == "" || slices.ContainsFunc(r.Returned, within) || slices.ContainsFunc(r.Read, within) || slices.ContainsFunc(r.Withheld, within)) &&
		(f.Outcome == "" || f.Outcome == r.Outcome) &&
		(f.Since.IsZero() || !r.Time.Before(f.Since)) &&
		(f.Until.IsZero() || r.Time.Before(f.Until))
}

// List yields the records of a log that pass the filter, newest first. A damaged line yields an error and the records
// before it still come; any other error is the last thing that is yielded.
func List(ctx context.Context, path string, filter Filter) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		left := filter.Limit
		for line, err := range newestFirst(ctx, path) {
			var r Record
			if err == nil {
				if r, err = line.record(); err != nil {
					err = fmt.Errorf("list %s: at byte %d: %w; verify the log", path, line.start, err)
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

// ErrNoRecord is wrapped by Show's error if no whole record has the ID.
var ErrNoRecord = errors.New("no such record")

// Show returns the record with an ID.
func Show(ctx context.Context, path, id string) (Record, error) {
	damaged := 0
	for line, err := range newestFirst(ctx, path) {
		if err != nil {
			return Record{}, err
		}
		if !bytes.Contains(line.text, []byte(id)) { // IDs need no escapes
			continue
		}
		r, err := line.record()
		if err != nil {
			damaged++
		} else if r.ID == id {
			return r, nil
		}
	}
	if damaged > 0 {
		return Record{}, fmt.Errorf("show %q: %w, but a damaged line names it; verify the log", id, ErrNoRecord)
	}
	return Record{}, fmt.Errorf("show %q: %w in %s", id, ErrNoRecord, path)
}

// line is one line of a log, without its newline.
type line struct {
	start int64
	text  []byte
	long  bool // over maxLine; text is empty
	torn  bool // the last, without a newline
}

func (l line) record() (Record, error) {
	r, _, err := l.unseal()
	return r, err
}

func (l line) unseal() (r Record, want string, err error) {
	if l.long {
		return r, "", errLongLine
	}
	return unseal(l.text)
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
	return head{end: end, seq: r.Seq, hash: r.Hash}, err
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
