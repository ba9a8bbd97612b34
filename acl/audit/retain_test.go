//go:build unix

package audit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/schemagate/schemagate/acl/audit"
)

func day(n int) time.Time { return time.Date(2020, 1, n, 0, 0, 0, 0, time.UTC) }

// oldLog writes a log of records q1 to qn of as many days.
func oldLog(t testing.TB, n int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	for i := range n {
		r := record(fmt.Sprint("q", i+1))
		r.Time = day(i + 1)
		if _, err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func retain(t testing.TB, log string, before time.Time) audit.Retained {
	t.Helper()
	r, err := audit.Retain(t.Context(), log, before, "keeper")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRetentionRemovesContentAndKeepsTheProof(t *testing.T) {
	log := oldLog(t, 6)
	k, v := newKey(t)
	s := signed(t, log, k)
	all := ids(t, log)
	before, err := audit.Prove(t.Context(), log, all[1], s, v)
	if err != nil {
		t.Fatal(err)
	}
	write(t, log+".torn-3", []byte(`"q2, in part`))
	if err := os.Chtimes(log+".torn-3", day(2), day(2)); err != nil {
		t.Fatal(err)
	}

	write(t, log+".torn-4", []byte("of today"))

	done := retain(t, log, day(5))
	if done.Removed != 4 || done.Before != 0 || !slices.Equal(done.Files, []string{log + ".torn-3"}) {
		t.Errorf("%+v", done)
	}
	if string(read(t, log+".torn-4")) != "of today" {
		t.Error("what was set aside later is gone")
	}
	files, err := os.ReadDir(filepath.Dir(log))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b := read(t, filepath.Join(filepath.Dir(log), f.Name()))
		for n := 1; n <= 6; n++ {
			if has := bytes.Contains(b, fmt.Appendf(nil, `"q%d`, n)); has && n < 5 {
				t.Errorf("%s still has the content of record %d", f.Name(), n)
			}
		}
	}
	if d := questions(t, log, audit.Filter{Principal: "ana"}); !slices.Equal(d, []string{"q6", "q5"}) {
		t.Errorf("left are %v", d)
	}
	gone, err := audit.Show(t.Context(), log, all[1])
	if err != nil || gone.Removed == "" || gone.Seq != 2 || !gone.Time.Equal(day(2)) || gone.Principal != "" || gone.Nonce != "" {
		t.Errorf("%+v, %v", gone, err)
	}
	said, err := audit.Show(t.Context(), log, done.Record)
	if err != nil || said.Action != "retain" || said.Principal != "keeper" || said.Seq != 7 || said.Retention.Removed != 4 || !said.Retention.Before.Equal(day(5)) {
		t.Errorf("%+v, %v", said, err)
	}

	r, err := audit.Verify(t.Context(), log, opened(t, s, v))
	if err != nil || !r.OK || r.Removed != 4 || r.Records != 7 {
		t.Errorf("against the checkpoint from before: %+v, %v", r, err)
	}
	if err := before.Check(v); err != nil {
		t.Errorf("the proof from before: %v", err)
	}
	later := signed(t, log, k)
	for _, id := range ids(t, log) {
		p, err := audit.Prove(t.Context(), log, id, later, v)
		if err != nil || p.Check(v) != nil {
			t.Errorf("%v, %v", err, p.Check(v))
		}
		if id == all[1] && p.Hash != before.Hash {
			t.Error("the record is proven by another hash than before")
		}
	}
	if _, err := audit.ProveOlder(t.Context(), log, s, later, v); err != nil {
		t.Error(err)
	}

	if again := retain(t, log, day(5)); again.Removed != 0 || again.Before != 4 || again.Record != "" {
		t.Errorf("again: %+v", again)
	}
	if left, _ := filepath.Glob(log + ".retaining"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if more := retain(t, log, day(6)); more.Removed != 1 || more.Before != 4 {
		t.Errorf("more: %+v", more)
	}
	if r := verified(t, log); r.Removed != 5 || r.Records != 8 {
		t.Errorf("%+v", r)
	}
}

func TestWritersGoOnAfterARetention(t *testing.T) {
	log := oldLog(t, 3)
	ahead, behind := open(t, log), open(t, log)
	appendOne(t, ahead, "q4")
	retain(t, log, day(3))
	retain(t, log, day(4)) // and at once another
	for n, l := range []*audit.Log{ahead, behind, open(t, log)} {
		appendOne(t, l, fmt.Sprint("after ", n))
	}
	retain(t, log, time.Now())
	for n, l := range []*audit.Log{behind, ahead} {
		appendOne(t, l, fmt.Sprint("later ", n))
	}
	if r := verified(t, log); r.Records != 12 || r.Removed != 9 {
		t.Errorf("%+v", r)
	}
}

func TestWritersDoNotTakeAnotherLogForARetention(t *testing.T) {
	log := newLog(t, 3)
	l := open(t, log)
	other := rewritten(t, log, 2)
	retain(t, other, time.Now())
	write(t, log, read(t, other))
	if _, err := l.Append(t.Context(), record("more")); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestContentThatNoRetentionRemovedIsAFault(t *testing.T) {
	log := oldLog(t, 6)
	retain(t, log, day(4))
	whole := read(t, log)
	k, v := newKey(t)
	c := opened(t, signed(t, log, k), v)
	l := bytes.SplitAfter(whole, []byte("\n"))

	// What a retention of more would have left in the place of records 5 and 7, and of 2 with another time.
	stub := func(line []byte) []byte {
		i := bytes.Index(line, []byte(`,"face"`))
		if i < 0 {
			i = bytes.Index(line, []byte(`,"action"`))
		}
		prev := line[bytes.Index(line, []byte(`,"prev":"`)):]
		prev = prev[:len(`,"prev":"`)+64+1]
		hash := line[len(line)-3-64 : len(line)-3]
		content := slices.Concat(line[:i], prev, []byte(`,"removed":"`), hash, []byte(`"}`))
		return fmt.Appendf(nil, "%s,\"hash\":\"%x\"}\n", content[:len(content)-1], sha256.Sum256(content))
	}
	reseal := func(line []byte) []byte {
		content := append(slices.Clone(line[:len(line)-3-64-len(`,"hash":"`)]), '}')
		return fmt.Appendf(nil, "%s,\"hash\":\"%x\"}\n", content[:len(content)-1], sha256.Sum256(content))
	}
	hash := bytes.Index(l[1], []byte(`"removed":"`)) + len(`"removed":"`)
	for l[1][hash] == '9' || l[1][hash] == 'a' || l[1][hash] == 'f' { // whose neighbours are no digits
		hash++
	}
	for _, c := range []struct {
		name string
		line int // of the fault
		what string
		with map[int][]byte
	}{
		{"removed before the retention", 7, "are not those that this retention left", map[int][]byte{5: stub(l[4])}},
		{"the retention itself removed", 1, "no retention", map[int][]byte{7: stub(l[6])}},
		{"another time", 7, "are not those that this retention left", map[int][]byte{2: reseal(bytes.Replace(l[1], []byte("2020-01-02"), []byte("2020-01-01"), 1))}},
		{"another content hash", 3, "chained to another", map[int][]byte{2: reseal(slices.Concat(l[1][:hash], []byte{l[1][hash] ^ 1}, l[1][hash+1:]))}},
		{"content that no hash covers", 2, "not a record", map[int][]byte{2: reseal(bytes.Replace(l[1], []byte(`,"prev"`), []byte(`,"question":"forged","prev"`), 1))}},
		{"a removed record gone", 2, "removed or moved", map[int][]byte{2: nil}},
		{"a byte of a removed record", 2, "hash does not match", map[int][]byte{2: bytes.Replace(l[1], []byte("2020-01-02"), []byte("2020-01-01"), 1)}},
	} {
		lines := slices.Clone(l)
		for n, line := range c.with {
			lines[n-1] = line
		}
		path := filepath.Join(t.TempDir(), "log")
		write(t, path, bytes.Join(lines, nil))
		r, err := audit.Verify(t.Context(), path, audit.Checkpoint{})
		if err != nil || r.OK || r.Faults[0].Line != c.line || !strings.Contains(r.Faults[0].What, c.what) {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
	}
	write(t, log, whole)
	if r, err := audit.Verify(t.Context(), log, c); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
	// After the last retention.
	appendOne(t, open(t, log), "q8")
	lines := bytes.SplitAfter(read(t, log), []byte("\n"))
	lines[7] = stub(lines[7])
	write(t, log, bytes.Join(lines, nil))
	if r, err := audit.Verify(t.Context(), log, audit.Checkpoint{}); err != nil || r.OK || r.Faults[0].Line != 8 || !strings.Contains(r.Faults[0].What, "no retention") {
		t.Errorf("removed after the retention: %+v, %v", r, err)
	}
}

func TestDamagedLogKeepsItsContent(t *testing.T) {
	log := oldLog(t, 4)
	damaged := bytes.Replace(read(t, log), []byte("q2"), []byte("qX"), 1)
	write(t, log, damaged)
	if _, err := audit.Retain(t.Context(), log, day(4), "keeper"); !errors.Is(err, audit.ErrAltered) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
	if !bytes.Equal(read(t, log), damaged) {
		t.Error("the evidence was changed")
	}
	if left, _ := filepath.Glob(log + ".retaining"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRetentionOfTheFutureIsRefused(t *testing.T) {
	if _, err := audit.Retain(t.Context(), oldLog(t, 1), time.Now().Add(time.Hour), "keeper"); err == nil {
		t.Error("it was not")
	}
}

// retainForever appends records, and removes the content of all but the newest, over and over.
func retainForever(path string) error {
	ctx := context.Background()
	l, err := audit.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		for range 20 {
			id, err := l.Append(ctx, record(fmt.Sprint("n", n)))
			if err != nil {
				return err
			}
			os.Stdout.WriteString(id + "\n")
		}
		if _, err := audit.Retain(ctx, path, time.Now(), "keeper"); err != nil {
			return err
		}
	}
}

func TestKilledRetentionLosesNothing(t *testing.T) {
	log := oldLog(t, 300)
	var acked []string
	for round := range 8 {
		c := process(t, "retain", log)
		var out bytes.Buffer
		c.Stdout = &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(100+17*round) * time.Millisecond)
		c.Process.Kill()
		c.Wait()
		for id := range strings.FieldsSeq(out.String()) {
			if len(id) == 26 {
				acked = append(acked, id)
			}
		}
		verified(t, log)
		appendOne(t, open(t, log), "the chain goes on")
		verified(t, log)
	}
	if len(acked) == 0 {
		t.Fatal("nothing was acknowledged")
	}
	allThere(t, log, acked)
	r := retain(t, log, day(200))
	t.Logf("%d acknowledged, %d of %d without content", len(acked), r.Before+r.Removed, verified(t, log).Records)
}
