package audit

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Retained is what Retain did.
type Retained struct {
	Removed int      `json:"removed"` // records that lost their content now
	Before  int      `json:"before"`  // records that had lost it before
	Record  string   `json:"record"`  // the ID of the record that says so; empty if nothing was removed
	Files   []string `json:"files"`   // what crashes had cut short and Append had set aside, which was removed
}

// Retain removes the content of the records from before a time and keeps what proves them: their number, ID, time and
// hash, so that the chain, the tree and every checkpoint and proof still hold. That it did, and for whom, it records in
// the log itself. It refuses to touch a log that is damaged.
//
// The log is written anew beside the old one and put in its place, so that a crash leaves one or the other. Appends of
// all processes wait meanwhile.
func Retain(ctx context.Context, log string, before time.Time, by string) (Retained, error) {
	r, err := retain(ctx, log, before, by)
	if err != nil {
		return Retained{}, fmt.Errorf("remove content from %s: %w", log, err)
	}
	return r, nil
}

func retain(ctx context.Context, log string, before time.Time, by string) (Retained, error) {
	if before.After(time.Now()) {
		return Retained{}, fmt.Errorf("%s is not over yet; give a time that has passed", before.Format(time.RFC3339))
	}
	if _, err := os.Stat(log); err != nil {
		return Retained{}, err
	}
	l, err := Open(ctx, log, nil) // which sets aside what a crash cut short
	if err != nil {
		return Retained{}, err
	}
	if err := l.Close(); err != nil {
		return Retained{}, err
	}
	lock := flock.New(log + ".lock")
	if err := acquire(ctx, lock, lock.Lock); err != nil {
		return Retained{}, err
	}
	defer lock.Unlock()
	done, err := rewrite(ctx, log, before.UTC(), by)
	if err == nil {
		done.Files, err = removeAside(log, before)
	}
	return done, err
}

// rewrite puts a log without the content of old records in the place of the one with it. The lock must be held.
func rewrite(ctx context.Context, log string, before time.Time, by string) (done Retained, err error) {
	in, err := os.Open(log)
	if err != nil {
		return Retained{}, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return Retained{}, err
	}
	out, err := os.OpenFile(log+".retaining", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return Retained{}, err
	}
	defer func() {
		if err != nil || done.Removed == 0 {
			err = errors.Join(err, os.Remove(out.Name()))
		}
	}()
	defer out.Close()

	w := bufio.NewWriterSize(out, 1<<20)
	stubs := sha256.New()
	c := newChecker(Checkpoint{}, nil)
	for u, err := range unsealAll(in, 0, info.Size(), unseal) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = c.add(u)
		}
		if err != nil {
			return Retained{}, err
		}
		line := u.text
		if r := u.record; r.Removed == "" && r.Time.Before(before) {
			done.Removed++
			r = Record{Seq: r.Seq, ID: r.ID, Time: r.Time, Prev: r.Prev, Removed: r.Hash}
			if line, err = seal(&r); err != nil {
				return Retained{}, err
			}
		}
		line = append(line, '\n')
		if u.record.Removed != "" || u.record.Time.Before(before) {
			stubs.Write(line)
		}
		w.Write(line) // Flush returns its error
	}
	report, err := c.end()
	if err != nil {
		return Retained{}, err
	}
	if !report.OK {
		return Retained{}, fmt.Errorf("%w: line %d: %s; verify it, and keep it as evidence", ErrAltered, report.Faults[0].Line, report.Faults[0].What)
	}
	done.Before = report.Removed
	if done.Removed == 0 {
		return done, nil
	}
	r := Record{
		Seq: report.Seq + 1, ID: rand.Text(), Nonce: rand.Text(), Time: time.Now().UTC(), Action: "retain", Principal: by, Outcome: Answered, Prev: report.Head,
		Retention: &Retention{Before: before, Removed: done.Before + done.Removed, Stubs: hex.EncodeToString(stubs.Sum(nil))},
	}
	line, err := seal(&r)
	if err != nil {
		return Retained{}, err
	}
	done.Record = r.ID
	w.Write(append(line, '\n'))
	if err := w.Flush(); err != nil {
		return Retained{}, err
	}
	if err := errors.Join(out.Sync(), out.Close(), in.Close()); err != nil {
		return Retained{}, err
	}
	if err := os.Rename(out.Name(), log); err != nil {
		return Retained{}, err
	}
	return done, syncFolder(filepath.Dir(log))
}

// removeAside removes the files from before a time that hold what crashes cut short.
func removeAside(log string, before time.Time) ([]string, error) {
	dir, name := filepath.Split(log)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	removed := []string{}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name+asideMark) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if !info.ModTime().Before(before) {
			continue
		}
		if err := os.Remove(dir + e.Name()); err != nil {
			return nil, err
		}
		removed = append(removed, dir+e.Name())
	}
	return removed, nil
}
