//go:build unix

package audit_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/schemagate/schemagate/acl/audit"
)

// TestMain lets a test run this binary again as a process that appends to a log.
func TestMain(m *testing.M) {
	if role := os.Getenv("AUDIT_TEST_ROLE"); role != "" {
		if err := roles[role](os.Getenv("AUDIT_TEST_LOG")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var roles = map[string]func(path string) error{
	"some":    func(path string) error { return appendAndTell(path, 4, 50, 100) },
	"endless": func(path string) error { return appendAndTell(path, 4, 1<<30, 100_000) },
	"full":    fillDisk,
	"retain":  retainForever,
}

func process(t testing.TB, role, path string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), "AUDIT_TEST_ROLE="+role, "AUDIT_TEST_LOG="+path)
	c.Stderr = os.Stderr
	return c
}

// appendAndTell prints the ID of each record once it is acknowledged.
func appendAndTell(path string, writers, each, size int) error {
	l, err := audit.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	r := record("bulk")
	r.SQL = strings.Repeat("x", size)
	var wg sync.WaitGroup
	errs := make(chan error, writers)
	for range writers {
		wg.Go(func() {
			for range each {
				id, err := l.Append(context.Background(), r)
				if err != nil {
					errs <- err
					return
				}
				os.Stdout.WriteString(id + "\n")
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

func record(question string) audit.Record {
	return audit.Record{
		Face: "cli", Action: "ask", Principal: "ana", Roles: []string{"analyst"}, Question: question,
		SQL: "SELECT a FROM t WHERE a < 3", GuardedSQL: "SELECT a FROM (SELECT a FROM t WHERE b = 1) AS t WHERE a < 3",
		Snapshot: "s1", Policy: "p1", Returned: []string{"demo.sales.orders"}, Withheld: []string{"demo.hr.staff.salary"},
		Rules: []string{"grants[2]"}, Outcome: audit.Answered, Latency: 1234567 * time.Nanosecond,
	}
}

func open(t testing.TB, path string) *audit.Log {
	t.Helper()
	l, err := audit.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func appendOne(t testing.TB, l *audit.Log, question string) string {
	t.Helper()
	id, err := l.Append(t.Context(), record(question))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// newLog writes a log of n records with the questions q1 to qn.
func newLog(t testing.TB, n int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	for i := range n {
		appendOne(t, l, fmt.Sprintf("q%d", i+1))
	}
	return path
}

func verified(t testing.TB, path string) audit.Report {
	t.Helper()
	r, err := audit.Verify(context.Background(), path, audit.Checkpoint{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK {
		t.Fatalf("the chain does not hold: %+v", r)
	}
	return r
}

func questions(t testing.TB, path string, f audit.Filter) []string {
	t.Helper()
	var qs []string
	for r, err := range audit.List(context.Background(), path, f) {
		if err != nil {
			t.Fatal(err)
		}
		qs = append(qs, r.Question)
	}
	return qs
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAppendFillsInWhatTheCallerDoesNotKnow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "audit.jsonl")
	l := open(t, path)
	want := record("how many orders?")
	id, err := l.Append(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	second := appendOne(t, l, "and now?")

	got, err := audit.Show(t.Context(), path, id)
	if err != nil {
		t.Fatal(err)
	}
	if got.Seq != 1 || got.ID != id || got.Prev != "" || len(got.Hash) != 64 || len(got.Nonce) < 26 || got.Nonce == id {
		t.Errorf("seq %d, id %q, prev %q, hash %q", got.Seq, got.ID, got.Prev, got.Hash)
	}
	if age := time.Since(got.Time); age < 0 || age > time.Minute || got.Time.Location() != time.UTC {
		t.Errorf("time %v", got.Time)
	}
	want.Latency = 1234 * time.Microsecond
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(audit.Record{}, "Seq", "ID", "Nonce", "Time", "Prev", "Hash")); d != "" {
		t.Error(d)
	}
	next, err := audit.Show(t.Context(), path, second)
	if err != nil {
		t.Fatal(err)
	}
	if next.Seq != 2 || next.Prev != got.Hash || len(id) < 26 || id == second {
		t.Errorf("the second record is %+v", next)
	}

	for p, mode := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): fs.ModeDir | 0o700, filepath.Dir(filepath.Dir(path)): fs.ModeDir | 0o700} {
		if info, err := os.Stat(p); err != nil || info.Mode() != mode {
			t.Errorf("%s has mode %v, %v; want %v", p, info.Mode(), err, mode)
		}
	}
}

func TestTextOfAnyBytesRoundTrips(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	for name, text := range map[string]string{
		"newlines": "a\nb\r\n", "nul": "\x00", "invalid UTF-8": "\xff\xfe ok \xc3", "replacement character": "\ufffd",
		"an escape of one": `\ufffd`, "line separator": "\u2028", "quotes": `","hash":"00"}`, "base64 by chance": "/w==", "html": "<&>",
	} {
		t.Run(name, func(t *testing.T) {
			list := []string{"plain", text}
			want := audit.Record{
				Face: text, Action: text, Principal: text, OnBehalfOf: text, Tenant: text, Roles: list, Question: text, Database: text, SQL: text,
				GuardedSQL: text, Snapshot: text, Policy: text, Read: list, Filters: list,
				Output: []audit.Output{{Name: text, From: list, Transform: text}}, Returned: list, Withheld: list, Rules: list,
				Outcome: audit.Refused, Code: text, Detail: text, Strategy: text, Degraded: list,
			}
			id, err := l.Append(t.Context(), want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := audit.Show(t.Context(), path, id)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got, cmpopts.IgnoreFields(audit.Record{}, "Seq", "ID", "Nonce", "Time", "Prev", "Hash")); d != "" {
				t.Error(d)
			}
			if list[1] != text {
				t.Error("the caller's list was changed")
			}
		})
	}
	verified(t, path)
}

func TestRecordThatSaysNothingOfItsOutcomeIsRefused(t *testing.T) {
	path := newLog(t, 0)
	if _, err := open(t, path).Append(t.Context(), audit.Record{Principal: "ana"}); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestRecordThatIsTooLongIsRefusedAndOthersAreNot(t *testing.T) {
	path := newLog(t, 1)
	l := open(t, path)
	long := record("long")
	long.Detail = strings.Repeat("x", 17<<20)
	if _, err := l.Append(t.Context(), long); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	appendOne(t, l, "short")
	if d := cmp.Diff([]string{"short", "q1"}, questions(t, path, audit.Filter{})); d != "" {
		t.Error(d)
	}
}

func TestManyWritersMakeOneChain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	ids := make(chan string, 16*20)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 20 {
				id, err := l.Append(t.Context(), record(fmt.Sprint(w, " ", i)))
				if err != nil {
					t.Error(err)
					return
				}
				// Acknowledged means readable, at once.
				if _, err := audit.Show(t.Context(), path, id); err != nil {
					t.Error(err)
				}
				ids <- id
			}
		})
	}
	wg.Wait()
	close(ids)
	seen := map[string]bool{}
	for id := range ids {
		seen[id] = true
	}
	if r := verified(t, path); r.Records != 320 || len(seen) != 320 {
		t.Errorf("%d records, %d ids", r.Records, len(seen))
	}
}

func TestTwoProcessesMakeOneChain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path) // and this one is a third that has seen nothing of what they append
	appendOne(t, l, "before")
	a, b := process(t, "some", path), process(t, "some", path)
	var acked [2]bytes.Buffer
	a.Stdout, b.Stdout = &acked[0], &acked[1]
	if err := errors.Join(a.Start(), b.Start()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Wait(), b.Wait()); err != nil {
		t.Fatal(err)
	}
	appendOne(t, l, "after")
	if r := verified(t, path); r.Records != 402 {
		t.Errorf("%d records", r.Records)
	}
	allThere(t, path, append(strings.Fields(acked[0].String()), strings.Fields(acked[1].String())...))
}

func allThere(t *testing.T, path string, acked []string) {
	t.Helper()
	there := map[string]bool{}
	for r, err := range audit.List(t.Context(), path, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		there[r.ID] = true
	}
	for _, id := range acked {
		if !there[id] {
			t.Errorf("record %s was acknowledged and is lost", id)
		}
	}
}

// TestKilledWriterLosesNothingThatWasAcknowledged kills a few times, and fifty times under CI.
func TestKilledWriterLosesNothingThatWasAcknowledged(t *testing.T) {
	rounds := 6
	if os.Getenv("CI") == "true" {
		rounds = 50
	}
	acked, torn := 0, 0
	for first := 0; first < rounds; first += 10 {
		a, b := killed(t, min(10, rounds-first))
		acked, torn = acked+a, torn+b
	}
	t.Logf("killed %d times: %d acknowledged, %d torn records set aside", rounds, acked, torn)
}

// killed kills so many writers of one log, one after the other, while four of their goroutines append.
func killed(t *testing.T, rounds int) (_, torn int) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	k, v := newKey(t)
	var acked []string
	var last audit.Checkpoint
	for round := range rounds {
		c := process(t, "endless", path)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(out)
		for n := 0; in.Scan(); n++ { // to the end, which the kill brings
			if n == 3 {
				time.AfterFunc(time.Duration(7*round)*time.Millisecond, func() { c.Process.Kill() })
			}
			if len(in.Text()) == 26 {
				acked = append(acked, in.Text())
			}
		}
		c.Wait()

		verified(t, path) // as the crash left it
		appendOne(t, open(t, path), "the chain goes on")
		r, err := audit.Verify(t.Context(), path, last)
		if err != nil || !r.OK || r.Torn != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		last = opened(t, signed(t, path, k), v)
	}
	if len(acked) < rounds*3 {
		t.Fatalf("only %d records were acknowledged", len(acked))
	}
	allThere(t, path, acked)
	aside, _ := filepath.Glob(path + ".torn-*")
	return len(acked), len(aside)
}

func TestTornLastLineIsKeptAsideAndTheChainGoesOn(t *testing.T) {
	for _, when := range []string{"at open", "at append"} {
		t.Run(when, func(t *testing.T) {
			path := newLog(t, 3)
			whole := read(t, path)
			last := whole[bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1:]
			l := open(t, path)
			for i, torn := range [][]byte{last[:1], last[:100], last[:len(last)-1], make([]byte, 5000)} {
				before := read(t, path)
				write(t, path, slices.Concat(before, torn))
				if r := verified(t, path); r.Torn != int64(len(torn)) {
					t.Errorf("verify tells of %d torn bytes, want %d", r.Torn, len(torn))
				}
				if when == "at open" {
					l = open(t, path)
				}
				appendOne(t, l, "next")
				if aside := read(t, fmt.Sprintf("%s.torn-%d", path, i+1)); !bytes.Equal(aside, torn) {
					t.Errorf("set aside %q, want %q", aside, torn)
				}
				if !bytes.HasPrefix(read(t, path), before) {
					t.Error("a whole record was changed")
				}
				if r := verified(t, path); r.Records != 4+i || r.Torn != 0 {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

func TestAppendRefusesToBuildOnDamage(t *testing.T) {
	flip := func(b []byte, at int) []byte {
		b = slices.Clone(b)
		b[at] ^= 1
		return b
	}
	for _, c := range []struct {
		name   string
		damage func(b []byte) []byte
		atOpen bool // whether it shows to a process that has not seen the log before
	}{
		{"last record changed", func(b []byte) []byte { return flip(b, len(b)-300) }, true},
		{"last record's newline overwritten", func(b []byte) []byte { return flip(b, len(b)-1) }, true},
		{"a line that is no record", func(b []byte) []byte { return append(slices.Clone(b), "hello\n"...) }, true},
		{"an empty line", func(b []byte) []byte { return append(slices.Clone(b), '\n') }, true},
		{"last record repeated", func(b []byte) []byte {
			return append(slices.Clone(b), b[bytes.LastIndexByte(b[:len(b)-1], '\n')+1:]...)
		}, false},
		{"last record removed", func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] }, false},
		{"emptied", func([]byte) []byte { return nil }, false},
		{"an earlier record removed", func(b []byte) []byte { return b[bytes.IndexByte(b, '\n')+1:] }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := newLog(t, 3)
			l := open(t, path)
			sound := read(t, path)
			damaged := c.damage(sound)
			write(t, path, damaged)
			if _, err := l.Append(t.Context(), record("more")); !errors.Is(err, audit.ErrUnavailable) {
				t.Errorf("append: %v", err)
			}
			if c.atOpen {
				if _, err := audit.Open(t.Context(), path, nil); !errors.Is(err, audit.ErrUnavailable) {
					t.Errorf("open: %v", err)
				}
			}
			if !bytes.Equal(read(t, path), damaged) {
				t.Error("the evidence was changed")
			}
			write(t, path, sound)
			appendOne(t, l, "once it is repaired")
			verified(t, path)
		})
	}
}

func TestRemovedLogIsNotBegunAnew(t *testing.T) {
	path := newLog(t, 2)
	l := open(t, path)
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), record("more")); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if err := os.Rename(path+".moved", path); err != nil {
		t.Fatal(err)
	}
	appendOne(t, l, "put back")
	verified(t, path)
}

func TestClosedLogIsUnavailable(t *testing.T) {
	l := open(t, newLog(t, 1))
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), record("late")); !errors.Is(err, audit.ErrUnavailable) || !errors.Is(err, fs.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestLogThatCannotBeOpenedIsUnavailable(t *testing.T) {
	path := newLog(t, 1)
	for _, bad := range []string{filepath.Dir(path), filepath.Join(path, "below-a-file")} {
		if _, err := audit.Open(t.Context(), bad, nil); !errors.Is(err, audit.ErrUnavailable) {
			t.Errorf("open %s: %v", bad, err)
		}
	}
}

func TestListSelectsNewestFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	day := func(n int) time.Time { return time.Date(2030, 1, n, 0, 0, 0, 0, time.UTC) }
	for i, r := range []audit.Record{
		{Question: "one", Principal: "ana", Outcome: audit.Answered, Returned: []string{"demo.sales.orders.id"}},
		{Question: "two", Principal: "bob", Tenant: "acme", Outcome: audit.Refused, Code: "not-available", Withheld: []string{"demo.sales.orders"}},
		{Question: "three", Principal: "bot", OnBehalfOf: "ana", Outcome: audit.Answered, Returned: []string{"demo.sales.orders_old"}},
	} {
		r.Time = day(i + 1)
		if _, err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		filter audit.Filter
		want   []string
	}{
		"everything":                     {audit.Filter{}, []string{"three", "two", "one"}},
		"the newest":                     {audit.Filter{Limit: 2}, []string{"three", "two"}},
		"who asked or was asked for":     {audit.Filter{Principal: "ana"}, []string{"three", "one"}},
		"an object and what is in it":    {audit.Filter{Object: "demo.sales.orders"}, []string{"two", "one"}},
		"a tenant":                       {audit.Filter{Tenant: "acme"}, []string{"two"}},
		"a code":                         {audit.Filter{Code: "not-available"}, []string{"two"}},
		"an outcome":                     {audit.Filter{Outcome: audit.Refused}, []string{"two"}},
		"from a time on":                 {audit.Filter{Since: day(2)}, []string{"three", "two"}},
		"before a time":                  {audit.Filter{Until: day(2)}, []string{"one"}},
		"all of them at once":            {audit.Filter{Principal: "ana", Since: day(2), Outcome: audit.Answered}, []string{"three"}},
		"a limit counts what is matched": {audit.Filter{Principal: "bob", Limit: 1}, []string{"two"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, questions(t, path, c.filter)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestListTellsOfADamagedLineAndGoesOn(t *testing.T) {
	path := newLog(t, 3)
	write(t, path, bytes.Replace(read(t, path), []byte("q2"), []byte("qX"), 1))
	var got []string
	for r, err := range audit.List(t.Context(), path, audit.Filter{}) {
		if err != nil {
			got = append(got, "damaged")
			continue
		}
		got = append(got, r.Question)
	}
	if d := cmp.Diff([]string{"q3", "damaged", "q1"}, got); d != "" {
		t.Error(d)
	}
}

func TestShowKnowsOnlyWholeRecords(t *testing.T) {
	path := newLog(t, 2)
	if _, err := audit.Show(t.Context(), path, "ana"); !errors.Is(err, audit.ErrNoRecord) {
		t.Errorf("got %v", err)
	}
	id := appendOne(t, open(t, path), "q3")
	write(t, path, bytes.Replace(read(t, path), []byte("q3"), []byte("qX"), 1))
	if _, err := audit.Show(t.Context(), path, id); !errors.Is(err, audit.ErrNoRecord) {
		t.Errorf("got %v", err)
	}
}

func TestMissingLogIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.jsonl")
	if _, err := audit.Verify(t.Context(), path, audit.Checkpoint{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("verify: %v", err)
	}
	if _, err := audit.Show(t.Context(), path, "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("show: %v", err)
	}
	for _, err := range audit.List(t.Context(), path, audit.Filter{}) {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("list: %v", err)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
		t.Errorf("reading made %v", left)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l := open(b, filepath.Join(b.TempDir(), "audit.jsonl"))
			work := make(chan struct{}, b.N)
			for range b.N {
				work <- struct{}{}
			}
			close(work)
			b.ResetTimer()
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for range work {
						if _, err := l.Append(context.Background(), record("how many orders were there last month?")); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
