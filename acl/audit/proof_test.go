//go:build unix

package audit_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/schemagate/schemagate/acl/audit"
)

func newKey(t testing.TB) (audit.Key, audit.Verifier) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.key")
	k, err := audit.OpenKey(path)
	if err != nil {
		t.Fatal(err)
	}
	v, err := audit.ReadVerifier(path)
	if err != nil {
		t.Fatal(err)
	}
	return k, v
}

func signed(t testing.TB, log string, k audit.Key) []byte {
	t.Helper()
	s, err := audit.Sign(t.Context(), log, k)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func opened(t testing.TB, signed []byte, v audit.Verifier) audit.Checkpoint {
	t.Helper()
	c, err := audit.OpenCheckpoint(signed, v)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ids(t testing.TB, log string) (ids []string) {
	t.Helper()
	for r, err := range audit.List(t.Context(), log, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	slices.Reverse(ids)
	return ids
}

// root computes what RFC 6962 calls the Merkle tree hash, from the lines of a log alone.
func root(lines [][]byte) [32]byte {
	if len(lines) == 1 {
		hashed, _ := hex.DecodeString(string(lines[0][len(lines[0])-66 : len(lines[0])-2]))
		return sha256.Sum256(append([]byte{0}, hashed...))
	}
	half := 1 << (bits.Len(uint(len(lines)-1)) - 1)
	left, right := root(lines[:half]), root(lines[half:])
	return sha256.Sum256(slices.Concat([]byte{1}, left[:], right[:]))
}

func TestCheckpointsRootIsThatOfRFC6962OverTheRecordsHashes(t *testing.T) {
	log := newLog(t, 0)
	l := open(t, log)
	k, v := newKey(t)
	if _, err := audit.Sign(t.Context(), log, k); err == nil {
		t.Error("an empty log was signed")
	}
	for n := 1; n <= 20; n++ {
		appendOne(t, l, fmt.Sprint("q", n))
		c := opened(t, signed(t, log, k), v)
		want := root(bytes.Split(bytes.TrimSpace(read(t, log)), []byte("\n")))
		if c.Size != uint64(n) || c.Root != want || c.Origin != k.Name() {
			t.Fatalf("%d records: %+v, want the root %x", n, c, want)
		}
		if r := verified(t, log); r.Root != c.Root.String() {
			t.Fatalf("%d records: verify computes the root %s, want %s", n, r.Root, c.Root)
		}
	}
}

func TestTreeIsBuiltAgainFromTheLog(t *testing.T) {
	k, v := newKey(t)
	for n := 1; n < 9; n++ {
		log := newLog(t, n)
		want := opened(t, signed(t, log, k), v)
		appendOne(t, open(t, log), "one more")
		later := opened(t, signed(t, log, k), v)
		tree := read(t, log+".tree")
		for name, left := range map[string][]byte{
			"missing": nil, "empty": {}, "begun when a crash came": make([]byte, 99), "with something after it that a crash left": append(slices.Clone(tree), "torn"...),
		} {
			os.Remove(log + ".tree")
			if left != nil {
				write(t, log+".tree", left)
			}
			if got := opened(t, signed(t, log, k), v); got != later || got == want {
				t.Errorf("%d records, tree %s: %+v, want %+v", n, name, got, later)
			}
		}
		for name, damaged := range map[string][]byte{"cut": tree[:len(tree)-1], "not a tree": []byte("hello")} {
			write(t, log+".tree", damaged)
			if _, err := audit.Sign(t.Context(), log, k); err == nil || !strings.Contains(err.Error(), "remove it") {
				t.Errorf("tree %s: %v", name, err)
			}
			if r, err := audit.Verify(t.Context(), log, audit.Checkpoint{}); err != nil || r.OK {
				t.Errorf("tree %s: %+v, %v", name, r, err)
			}
		}
	}
}

func TestRecordIsProvenToWhoHasNothingButTheKey(t *testing.T) {
	k, v := newKey(t)
	_, stranger := newKey(t)
	for n := 1; n < 10; n++ {
		log := newLog(t, n)
		s := signed(t, log, k)
		appendOne(t, open(t, log), "after the checkpoint")
		all := ids(t, log)
		for i, id := range all[:n] {
			p, err := audit.Prove(t.Context(), log, id, s, v)
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			if p, err = audit.ParseProof(b); err != nil {
				t.Fatal(err)
			}
			if err := p.Check(v); err != nil || p.Seq != uint64(i+1) || !strings.Contains(p.Line, fmt.Sprintf(`"q%d"`, i+1)) {
				t.Errorf("record %d of %d: %v, %+v", i+1, n, err, p)
			}
			for name, change := range map[string]func(*audit.Proof){
				"another number":     func(p *audit.Proof) { p.Seq = p.Seq%uint64(n) + 1; p.Line = "" },
				"no number":          func(p *audit.Proof) { p.Seq = 0 },
				"another hash":       func(p *audit.Proof) { p.Hash = strings.Repeat("0", 64); p.Line = "" },
				"a hash in capitals": func(p *audit.Proof) { p.Hash = strings.ToUpper(p.Hash); p.Line = "" },
				"the line of a record with another number": func(p *audit.Proof) {
					p.Line = strings.Split(string(read(t, log)), "\n")[n]
				},
				"no hash":         func(p *audit.Proof) { p.Hash = ""; p.Line = "" },
				"another content": func(p *audit.Proof) { p.Line = strings.Replace(p.Line, "ana", "bob", 1) },
				"a hash too many": func(p *audit.Proof) { p.Hashes = append(p.Hashes, [32]byte{}) },
				"a hash too few":  func(p *audit.Proof) { p.Hashes = append(p.Hashes, [32]byte{})[:max(0, len(p.Hashes)-1)] },
				"another size": func(p *audit.Proof) {
					p.Checkpoint = strings.Replace(p.Checkpoint, fmt.Sprintf("\n%d\n", n), fmt.Sprintf("\n%d\n", n+1), 1)
				},
			} {
				if n == 1 && (name == "another number" || name == "a hash too few") {
					continue // there is none
				}
				bad := p
				bad.Hashes = slices.Clone(p.Hashes)
				change(&bad)
				if err := bad.Check(v); !errors.Is(err, audit.ErrProof) {
					t.Errorf("record %d of %d with %s: %v", i+1, n, name, err)
				}
			}
			if err := p.Check(stranger); !errors.Is(err, audit.ErrProof) {
				t.Errorf("another key: %v", err)
			}
		}
		if _, err := audit.Prove(t.Context(), log, all[n], s, v); err == nil || !strings.Contains(err.Error(), "sign another checkpoint") {
			t.Errorf("a record after the checkpoint: %v", err)
		}
		if _, err := audit.Prove(t.Context(), log, "nobody", s, v); !errors.Is(err, audit.ErrNoRecord) {
			t.Errorf("no record: %v", err)
		}
	}
}

func TestOneCheckpointIsProvenToContinueAnother(t *testing.T) {
	k, v := newKey(t)
	log := newLog(t, 0)
	l := open(t, log)
	var all [][]byte
	for range 9 {
		appendOne(t, l, "q")
		all = append(all, signed(t, log, k))
	}
	fork := signed(t, newLog(t, 3), k)
	for i, older := range all {
		for j, newer := range all {
			p, err := audit.ProveOlder(t.Context(), log, older, newer, v)
			if i > j {
				if err == nil {
					t.Errorf("%d was proven to be older than %d", i+1, j+1)
				}
				continue
			}
			if err != nil || p.Check(v) != nil {
				t.Errorf("%d, %d: %v, %v", i+1, j+1, err, p.Check(v))
			}
			p.Older = string(fork)
			if err := p.Check(v); !errors.Is(err, audit.ErrProof) {
				t.Errorf("another log: %v", err)
			}
		}
	}
	if _, err := audit.ProveOlder(t.Context(), log, fork, all[8], v); !errors.Is(err, audit.ErrAltered) {
		t.Errorf("another log: %v", err)
	}
}

// rewritten returns a log in which one record has another question, and everything after it is chained anew.
func rewritten(t testing.TB, log string, seq int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "rewritten.jsonl")
	prev := ""
	var out []byte
	for i, line := range bytes.Split(bytes.TrimSpace(read(t, log)), []byte("\n")) {
		var m struct {
			Prev string `json:"prev"`
		}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		if i+1 >= seq {
			line = bytes.Replace(line, []byte(`"prev":"`+m.Prev), []byte(`"prev":"`+prev), 1)
		}
		if i+1 == seq {
			line = bytes.Replace(line, fmt.Appendf(nil, `"q%d"`, seq), []byte(`"harmless"`), 1)
		}
		content := append(slices.Clone(line[:len(line)-66-len(`,"hash":"`)]), '}')
		prev = fmt.Sprintf("%x", sha256.Sum256(content))
		out = fmt.Appendf(out, "%s,\"hash\":\"%s\"}\n", content[:len(content)-1], prev)
	}
	write(t, path, out)
	verified(t, path)
	return path
}

func TestRewrittenLogIsNotSignedAndItsFirstChangeIsLocated(t *testing.T) {
	k, v := newKey(t)
	log := newLog(t, 7)
	s := signed(t, log, k)
	whole, tree := read(t, log), read(t, log+".tree")
	for seq := 1; seq <= 7; seq++ {
		write(t, log, read(t, rewritten(t, log, seq)))
		if _, err := audit.Sign(t.Context(), log, k); !errors.Is(err, audit.ErrAltered) {
			t.Errorf("record %d rewritten: signed: %v", seq, err)
		}
		r, err := audit.Verify(t.Context(), log, opened(t, s, v))
		if err != nil || r.OK || r.Faults[0].Line != seq {
			t.Errorf("record %d rewritten, with the tree: %+v, %v", seq, r, err)
		}
		if err := os.Remove(log + ".tree"); err != nil {
			t.Fatal(err)
		}
		r, err = audit.Verify(t.Context(), log, opened(t, s, v))
		if err != nil || r.OK || r.Faults[0].Line != 7 || !strings.Contains(r.Faults[0].What, "rewritten") {
			t.Errorf("record %d rewritten, without the tree: %+v, %v", seq, r, err)
		}
		if _, err := audit.Sign(t.Context(), log, k); !errors.Is(err, audit.ErrAltered) {
			t.Errorf("record %d rewritten and the tree removed: signed: %v", seq, err)
		}
		write(t, log, whole)
		write(t, log+".tree", tree)
	}
}

func TestCutLogIsFoundByCheckpointAndByTree(t *testing.T) {
	k, v := newKey(t)
	log := newLog(t, 6)
	s := signed(t, log, k)
	elsewhere := filepath.Join(t.TempDir(), "copy.jsonl")
	lines := bytes.SplitAfter(read(t, log), []byte("\n"))
	for n := range 6 {
		cut := bytes.Join(lines[:n], nil)
		write(t, elsewhere, cut)
		if r := verified(t, elsewhere); !strings.Contains(r.Note, "cannot tell whether records were cut off the end") {
			t.Errorf("without checkpoint: %q", r.Note)
		}
		r, err := audit.Verify(t.Context(), elsewhere, opened(t, s, v))
		if err != nil || r.OK || r.Faults[0].Seq != 6 || !strings.Contains(r.Faults[0].What, "its end was cut off") {
			t.Errorf("cut to %d: %+v, %v", n, r, err)
		}
		write(t, log, cut)
		if r, err := audit.Verify(t.Context(), log, audit.Checkpoint{}); err != nil || r.OK {
			t.Errorf("cut to %d beside its tree: %+v, %v", n, r, err)
		}
		if _, err := audit.Sign(t.Context(), log, k); !errors.Is(err, audit.ErrAltered) || !strings.Contains(err.Error(), "ends before record 6") {
			t.Errorf("cut to %d: signed: %v", n, err)
		}
		if n == 0 {
			continue
		}
		tree := read(t, log+".tree")
		if err := os.Remove(log + ".tree"); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.Sign(t.Context(), log, k); !errors.Is(err, audit.ErrAltered) || !strings.Contains(err.Error(), "before the checkpoint at 6") {
			t.Errorf("cut to %d without its tree: signed: %v", n, err)
		}
		write(t, log+".tree", tree)
	}
}

func TestCheckpointHoldsOnlyAsItWasSigned(t *testing.T) {
	k, v := newKey(t)
	s := signed(t, newLog(t, 3), k)
	for at := range s {
		for _, mask := range []byte{1, 0x20, 0x80} {
			b := slices.Clone(s)
			b[at] ^= mask
			if c, err := audit.OpenCheckpoint(b, v); err == nil {
				t.Errorf("byte %d changed from %q to %q: %+v", at, s[at], b[at], c)
			}
		}
	}
	for cut := range s {
		if c, err := audit.OpenCheckpoint(s[:cut], v); err == nil {
			t.Errorf("cut to %d bytes: %+v", cut, c)
		}
	}
}

func TestSignedTextThatIsNoCheckpointIsRefused(t *testing.T) {
	private, public, err := note.GenerateKey(rand.Reader, "log")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(public)
	if err != nil {
		t.Fatal(err)
	}
	root := tlog.Hash{1}.String()
	for text, good := range map[string]bool{
		"log\n3\n" + root + "\n":                   true,
		"other\n3\n" + root + "\n":                 false,
		"log\n03\n" + root + "\n":                  false,
		"log\n+3\n" + root + "\n":                  false,
		"log\n-3\n" + root + "\n":                  false,
		"log\n0\n" + root + "\n":                   false,
		"log\nx\n" + root + "\n":                   false,
		"log\n3\n" + root[:40] + "\n":              false,
		"log\n3\n" + root + "\nmore\n":             false,
		"log\n3\n":                                 false,
		"log\n9223372036854775808\n" + root + "\n": false,
	} {
		s, err := note.Sign(&note.Note{Text: text}, signer)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := audit.OpenCheckpoint(s, v); (err == nil) != good {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
}

func TestCheckpointThatAnotherKeySignedStopsTheNext(t *testing.T) {
	k, _ := newKey(t)
	other, v := newKey(t)
	log := newLog(t, 2)
	signed(t, log, k)
	if _, err := audit.Sign(t.Context(), log, other); err == nil || errors.Is(err, audit.ErrAltered) || !strings.Contains(err.Error(), "sign with the same key") {
		t.Errorf("%v", err)
	}
	if err := os.Remove(audit.CheckpointFile(log)); err != nil {
		t.Fatal(err)
	}
	opened(t, signed(t, log, other), v)
}

func TestKeyIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "audit.key")
	k, err := audit.OpenKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if again, err := audit.OpenKey(path); err != nil || again.Public != k.Public {
		t.Errorf("opened again it is another: %v", err)
	}
	public := filepath.Join(t.TempDir(), "public")
	write(t, public, []byte(k.Public+"\n"))
	if v, err := audit.ReadVerifier(public); err != nil || v.Name() != k.Name() {
		t.Errorf("%v", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.OpenKey(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("others may read it: %v", err)
	}
	other, _ := newKey(t)
	private, _, _ := strings.Cut(string(read(t, path)), "\n")
	for name, text := range map[string]string{
		"empty": "", "no key": "hello\n", "public alone": k.Public + "\n", "private alone": private + "\n", "the public one of another": private + "\n" + other.Public + "\n",
	} {
		bad := filepath.Join(t.TempDir(), "bad")
		write(t, bad, []byte(text))
		if _, err := audit.OpenKey(bad); err == nil {
			t.Errorf("%s: it was taken for a key", name)
		}
	}
	if _, err := audit.ReadVerifier(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func FuzzCheckpoint(f *testing.F) {
	k, v := newKey(f)
	log := newLog(f, 3)
	s := signed(f, log, k)
	f.Add(s)
	f.Add([]byte("a\n1\nAAAA\n\n— a AAAA\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := audit.OpenCheckpoint(b, v); err == nil && (c.Size != 3 || !bytes.HasPrefix(b, []byte(c.String()))) {
			t.Errorf("%q was taken for signed", b)
		}
	})
}

func FuzzProof(f *testing.F) {
	k, v := newKey(f)
	log := newLog(f, 5)
	older := signed(f, log, k)
	appendOne(f, open(f, log), "q6")
	s := signed(f, log, k)
	for _, id := range ids(f, log) {
		p, err := audit.Prove(context.Background(), log, id, s, v)
		if err != nil {
			f.Fatal(err)
		}
		b, _ := json.Marshal(p)
		f.Add(b)
	}
	p, err := audit.ProveOlder(context.Background(), log, older, s, v)
	if err != nil {
		f.Fatal(err)
	}
	b, _ := json.Marshal(p)
	f.Add(b)
	lines := strings.Split(string(read(f, log)), "\n")
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := audit.ParseProof(b)
		if err != nil || p.Check(v) != nil {
			return
		}
		switch {
		case p.Older != "":
			if c := opened(t, []byte(p.Older), v); c.Size < 5 || c.Size > 6 {
				t.Errorf("a checkpoint that was never signed is proven: %q", p.Older)
			}
		case p.Line != "" && p.Line != lines[p.Seq-1]:
			t.Errorf("another line is proven: %q", p.Line)
		case !strings.Contains(lines[p.Seq-1], p.Hash):
			t.Errorf("another hash is proven: %q", p.Hash)
		}
	})
}
