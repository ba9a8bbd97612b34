//go:build unix

package audit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/schemagate/schemagate/acl/audit"
)

func TestFullDiskIsUnavailableUntilThereIsRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := process(t, "full", path).Run(); err != nil {
		t.Fatal(err)
	}
	if r := verified(t, path); r.Records != 6 || r.Torn != 0 {
		t.Errorf("%+v", r)
	}
}

// fillDisk meets a limit on file size, which cuts a write short as a full disk does, and has it lifted again.
func fillDisk(path string) error {
	signal.Ignore(unix.SIGXFSZ)
	ctx := context.Background()
	l, err := audit.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	for range 3 {
		if _, err := l.Append(ctx, record("room")); err != nil {
			return err
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	limit := func(bytes uint64) error {
		var r unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &r); err != nil {
			return err
		}
		r.Cur = min(bytes, r.Max)
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &r)
	}
	for _, room := range []int{0, 1, 200} {
		if err := limit(uint64(len(before) + room)); err != nil {
			return err
		}
		for range 2 {
			if _, err := l.Append(ctx, record("no room")); !errors.Is(err, audit.ErrUnavailable) || !errors.Is(err, syscall.EFBIG) {
				return fmt.Errorf("with %d bytes of room: %v", room, err)
			}
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			return fmt.Errorf("with %d bytes of room something was left behind: %v", room, err)
		}
		if err := limit(math.MaxInt64); err != nil {
			return err
		}
		if _, err := l.Append(ctx, record("room again")); err != nil {
			return err
		}
		if before, err = os.ReadFile(path); err != nil {
			return err
		}
	}
	return nil
}
