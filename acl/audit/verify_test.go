package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// sealed returns the lines of n records, newlines included.
func sealed(t testing.TB, n int) (lines [][]byte) {
	t.Helper()
	var h head
	for range n {
		r := Record{
			ID: fmt.Sprintf("id-%d", h.seq+1), Time: time.Unix(1, 0).UTC(), Principal: "ana", Roles: []string{"analyst"},
			Question: fmt.Sprintf("q%d", h.seq+1), SQL: "SELECT 1 < 2", Outcome: Answered, Latency: time.Millisecond,
		}
		e := &entry{ctx: context.Background(), record: r}
		b, next, err := extend(nil, h, e)
		if err != nil {
			t.Fatal(err)
		}
		lines, h = append(lines, b), next
	}
	return lines
}

// forge returns the line of a record whose own hash is right.
func forge(t testing.TB, line []byte, change func(*Record)) []byte {
	t.Helper()
	r, _, err := unseal(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		t.Fatal(err)
	}
	change(&r)
	b, err := seal(&r)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

func check(t testing.TB, since Checkpoint, lines ...[]byte) Report {
	t.Helper()
	b := slices.Concat(lines...)
	r, err := verify(context.Background(), bytes.NewReader(b), int64(len(b)), since, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func checkpointOf(t testing.TB, r Report) Checkpoint {
	t.Helper()
	root, err := tlog.ParseHash(r.Root)
	if err != nil {
		t.Fatal(err)
	}
	return Checkpoint{Origin: "test", Size: r.Seq, Root: root}
}

func TestHashIsThatOfTheLineWithoutItsLastMember(t *testing.T) {
	// The hash is what sha256sum prints for the line up to "latency_ms":1 and a closing brace.
	const want = `{"seq":1,"id":"id-1","time":"1970-01-01T00:00:01Z","principal":"ana","roles":["analyst"],"question":"q1",` +
		`"sql":"SELECT 1 < 2","outcome":"answered","prev":"","latency_ms":1,` +
		`"hash":"8b28ee488b75364821f22aa4b34b85afdc6a754911b532c5172edf225db57533"}` + "\n"
	if got := string(sealed(t, 1)[0]); got != want {
		t.Errorf("the format of the file changed:\ngot  %swant %s", got, want)
	}
}

func TestEveryFlippedByteIsLocated(t *testing.T) {
	lines := sealed(t, 4)
	whole := slices.Concat(lines...)
	if r := check(t, Checkpoint{}, whole); !r.OK || r.Records != 4 || r.Seq != 4 || r.Torn != 0 {
		t.Fatalf("%+v", r)
	}
	at := 0
	for n, line := range lines {
		for range line {
			for _, mask := range []byte{0x01, 0x20, 0x80, whole[at] ^ '\n', whole[at] ^ '"'} {
				if mask == 0 {
					continue
				}
				b := slices.Clone(whole)
				b[at] ^= mask
				r := check(t, Checkpoint{}, b)
				if r.OK || r.Faults[0].Line != n+1 {
					t.Fatalf("byte %d, in line %d, changed from %q to %q: %+v", at, n+1, whole[at], b[at], r)
				}
			}
			at++
		}
	}
}

func TestChangedRecordIsOneFault(t *testing.T) {
	l := sealed(t, 4)
	hash := bytes.Index(l[1], []byte(hashStart)) + len(hashStart)
	for name, changed := range map[string][]byte{
		"its content": bytes.Replace(l[1], []byte("q2"), []byte("qX"), 1),
		"its hash":    slices.Concat(l[1][:hash], []byte("?"), l[1][hash+1:]),
	} {
		r := check(t, Checkpoint{}, l[0], changed, l[2], l[3])
		if len(r.Faults) != 1 || r.Faults[0].Line != 2 || r.Faults[0].Seq != 2 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestBrokenChainIsLocated(t *testing.T) {
	l := sealed(t, 6)
	other := forge(t, l[2], func(r *Record) { r.Question = "harmless" })
	for _, c := range []struct {
		name  string
		lines [][]byte
		line  int
		seq   uint64
		what  string
	}{
		{"a record removed", [][]byte{l[0], l[1], l[3], l[4], l[5]}, 3, 4, "removed"},
		{"the first record removed", l[1:], 1, 2, "removed"},
		{"two records swapped", [][]byte{l[0], l[1], l[3], l[2], l[4], l[5]}, 3, 4, "moved"},
		{"a record moved to the end", [][]byte{l[0], l[2], l[3], l[4], l[5], l[1]}, 2, 3, "moved"},
		{"a record repeated", [][]byte{l[0], l[1], l[1], l[2]}, 3, 2, "inserted"},
		{"a record replaced by one with a hash of its own", [][]byte{l[0], l[1], other, l[3]}, 4, 4, "replaced"},
		{"a record inserted with a hash of its own", [][]byte{l[0], l[1], other, l[2], l[3]}, 4, 3, "inserted"},
		{"a line inserted", [][]byte{l[0], []byte("{}\n"), l[1], l[2]}, 2, 0, "not a record"},
		{"an empty line", [][]byte{l[0], []byte("\n"), l[1]}, 2, 0, "not a record"},
		{"a line without end", [][]byte{l[0], bytes.Repeat([]byte("x"), maxLine+2), []byte("\n"), l[1]}, 2, 0, "longer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := check(t, Checkpoint{}, c.lines...)
			if r.OK || r.Faults[0].Line != c.line || r.Faults[0].Seq != c.seq || !strings.Contains(r.Faults[0].What, c.what) {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestInsertedLineIsOneFault(t *testing.T) {
	l := sealed(t, 3)
	if r := check(t, Checkpoint{}, l[0], []byte("hello\n"), l[1], l[2]); len(r.Faults) != 1 || r.Seq != 3 {
		t.Errorf("%+v", r)
	}
}

func TestCutOffEndShowsOnlyAgainstACheckpoint(t *testing.T) {
	l := sealed(t, 5)
	at4 := checkpointOf(t, check(t, Checkpoint{}, l[:4]...))

	if r := check(t, Checkpoint{}, l[:3]...); !r.OK || !strings.Contains(r.Note, "cut off") {
		t.Errorf("without a checkpoint: %+v", r)
	}
	if r := check(t, at4, l[:3]...); r.OK || r.Faults[0] != (Fault{4, 4, "the log ends at record 3, before the checkpoint at 4: its end was cut off"}) {
		t.Errorf("cut: %+v", r)
	}
	if r := check(t, at4); r.OK || r.Faults[0].Line != 1 {
		t.Errorf("emptied: %+v", r)
	}
	for n := 4; n <= 5; n++ {
		if r := check(t, at4, l[:n]...); !r.OK || !strings.Contains(r.Note, "after the checkpoint, number 4") {
			t.Errorf("whole: %+v", r)
		}
	}
}

func TestRewrittenLogShowsAgainstACheckpoint(t *testing.T) {
	l := sealed(t, 3)
	at2 := checkpointOf(t, check(t, Checkpoint{}, l[:2]...))
	first := forge(t, l[0], func(r *Record) { r.Question = "harmless" })
	rechained := [][]byte{first}
	prev, _, _ := unseal(bytes.TrimSpace(first))
	for _, line := range l[1:] {
		next := forge(t, line, func(r *Record) { r.Prev = prev.Hash })
		rechained = append(rechained, next)
		prev, _, _ = unseal(bytes.TrimSpace(next))
	}
	if r := check(t, Checkpoint{}, rechained...); !r.OK {
		t.Fatalf("the rewritten chain should hold: %+v", r)
	}
	if r := check(t, at2, rechained...); r.OK || r.Faults[0].Line != 2 {
		t.Errorf("%+v", r)
	}
	if r := check(t, at2, l[0], l[2]); r.OK || r.Faults[0].Line != 2 {
		t.Errorf("the checkpoint's record removed: %+v", r)
	}
}

func TestReportOfAFileThatIsNoLogIsBounded(t *testing.T) {
	if r := check(t, Checkpoint{}, bytes.Repeat([]byte("\n"), 1000)); len(r.Faults) != maxFaults || r.More != 1000-maxFaults {
		t.Errorf("%d faults and %d more", len(r.Faults), r.More)
	}
}

// failing is a file whose fsync fails a number of times.
type failing struct {
	*os.File
	syncs int
}

func (f *failing) Sync() error {
	if f.syncs--; f.syncs >= 0 {
		return errors.New("input/output error")
	}
	return f.File.Sync()
}

func TestWriteThatIsNotDurableIsTakenBack(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := write(f, []byte("one\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := write(&failing{f, 1}, []byte("two\n"), 4); err == nil {
		t.Error("a write without fsync was acknowledged")
	}
	if err := write(f, []byte("three\n"), 4); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(f.Name()); string(b) != "one\nthree\n" {
		t.Errorf("the file holds %q", b)
	}
}

func TestCallerMayLeaveWhileAnotherProcessHoldsTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.Context(), path, nil) // another file description: to the lock, another process
	if err != nil {
		t.Fatal(err)
	}
	if err := other.lock.Lock(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.Append(ctx, Record{Outcome: Answered}); !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("append: %v", err)
	}
	if _, err := Open(ctx, path, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("open: %v", err)
	}
	if _, err := Verify(ctx, path, Checkpoint{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("verify: %v", err)
	}
	if err := other.lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), Record{Outcome: Answered}); err != nil {
		t.Error(err)
	}
	if err := errors.Join(l.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	if r, err := Verify(t.Context(), path, Checkpoint{}); err != nil || r.Records != 1 || !r.OK {
		t.Errorf("%+v, %v: the record that its caller gave up on should not be there", r, err)
	}
}

func FuzzCorruptLog(f *testing.F) {
	l := sealed(f, 3)
	whole := slices.Concat(l...)
	f.Add(whole)
	f.Add(whole[:len(whole)-7])
	f.Add(slices.Concat(l[1], l[0], []byte("\n\n"), l[2]))
	f.Add([]byte(`{"base64":["roles"],"roles":["!"],"hash":""}` + "\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := check(t, Checkpoint{}, b)
		if r.OK && int64(r.Seq) != int64(r.Records) {
			t.Errorf("a chain that holds has %d records and ends at %d", r.Records, r.Seq)
		}
		// Both directions read the same lines.
		in := bytes.NewReader(b)
		var forward, backward []string
		for l, err := range lines(in, 0, int64(len(b))) {
			if err != nil {
				t.Fatal(err)
			}
			l.damaged()
			if !l.torn {
				forward = append(forward, string(l.text))
			}
		}
		end, err := lineStart(in, int64(len(b)))
		for err == nil && end > 0 {
			var l line
			if l, err = lineBefore(in, end); err == nil {
				backward = append(backward, string(l.text))
				end = l.start
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(backward)
		if !slices.Equal(forward, backward) {
			t.Errorf("forward %q, backward %q", forward, backward)
		}
	})
}

// BenchmarkVerify verifies a million records, which may take ten seconds.
func BenchmarkVerify(b *testing.B) {
	const records = 1_000_000
	path := filepath.Join(b.TempDir(), "audit.jsonl")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	var h head
	for i := range records {
		line, next, err := extend(nil, h, &entry{ctx: b.Context(), record: Record{
			ID: fmt.Sprintf("%026d", i), Time: time.Now().UTC(), Face: "cli", Action: "ask", Principal: "ana", Roles: []string{"analyst"},
			Question: "how many orders were there last month?", SQL: "SELECT count(*) FROM orders WHERE month = '2030-01'",
			GuardedSQL: "SELECT count(*) FROM (SELECT month FROM orders WHERE region = 'EMEA') AS orders WHERE month = '2030-01'",
			Snapshot:   "s1", Policy: "p1", Read: []string{"demo.sales.orders", "demo.sales.orders.month"}, Returned: []string{"demo.sales.orders"},
			Withheld: []string{"demo.hr.staff.salary"}, Rules: []string{"grants[2]"}, Outcome: Answered, Latency: time.Millisecond,
		}})
		if err != nil {
			b.Fatal(err)
		}
		w.Write(line)
		h = next
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r, err := Verify(b.Context(), path, Checkpoint{}); err != nil || !r.OK || r.Records != records {
			b.Fatal(r, err)
		}
	}
	b.ReportMetric(float64(b.N)*records/b.Elapsed().Seconds(), "records/s")
}
