//go:build unix

package audit_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/schemagate/schemagate/acl/audit"
)

func redactor(t testing.TB) *audit.Redactor {
	t.Helper()
	d, err := audit.OpenRedactor(filepath.Join(t.TempDir(), "redact.key"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// redacted redacts a record, with what was hashed written as {value}.
func redacted(t testing.TB, d *audit.Redactor, r audit.Record, values ...string) audit.Record {
	t.Helper()
	d.Redact(&r)
	for _, s := range []*string{&r.Question, &r.SQL, &r.GuardedSQL, &r.Detail} {
		for _, v := range values {
			*s = strings.ReplaceAll(*s, "'"+d.Hash(v)+"'", "{"+v+"}")
			*s = strings.ReplaceAll(*s, d.Hash(v), "{"+v+"}")
		}
	}
	return r
}

func TestLiteralsOfSQLAreKeptAsKeyedHashes(t *testing.T) {
	d := redactor(t)
	for _, c := range []struct {
		name, in, want string
		values         []string
	}{
		{"strings", `SELECT a FROM p WHERE ssn = '123-45-6789'`, `SELECT a FROM p WHERE ssn = {123-45-6789}`, []string{"123-45-6789"}},
		{"a doubled quote", `WHERE a = 'O''Hara' AND b`, `WHERE a = {O'Hara} AND b`, []string{"O'Hara"}},
		{"numbers but not names", `SELECT t1.a2 FROM t1 WHERE x > 1.5e3 LIMIT 10, 20`, `SELECT t1.a2 FROM t1 WHERE x > {1.5e3} LIMIT {10}, {20}`, []string{"1.5e3", "10", "20"}},
		{"names that the record knows, and other double quotes", `SELECT "Total" FROM "orders" WHERE a = "secret"`, `SELECT "Total" FROM "orders" WHERE a = {secret}`, []string{"secret"}},
		{"backticks are names", "SELECT `a b` FROM t", "SELECT `a b` FROM t", nil},
		{"brackets are names or indexes", "SELECT [a b], x[1] FROM t", "SELECT [a b], x[{1}] FROM t", []string{"1"}},
		{"dollar quotes", `SELECT $x$it's$x$, $1`, `SELECT {it's}, ${1}`, []string{"it's", "1"}},
		{"comments", "SELECT a -- for Bob\nFROM t /* Bob */", "SELECT a {-- for Bob\n}FROM t {/* Bob */}", []string{"-- for Bob\n", "/* Bob */"}},
		{"an empty string says nothing", `a = ''`, `a = ''`, nil},
		{"a prefixed string", `a = E'x' OR b = x'00ff'`, `a = E{x} OR b = x{00ff}`, []string{"x", "00ff"}},
		{"a quote after a backslash ends a string in some dialects", `a = 'C:\' AND b = 'x'`, `a = {'C:\' AND b = 'x'}`, []string{`'C:\' AND b = 'x'`}},
		{"a quote in a comment", `a -- it's` + "\nb = 'x'", `a {-- it's` + "\nb = 'x'}", []string{"-- it's\nb = 'x'"}},
		{"an open quote", `a = 'x`, `a = {'x}`, []string{`'x`}},
		{"an open dollar quote", `a = $$x`, `a = {x}`, []string{`x`}},
		{"an open comment", `a /* x`, `a {/* x}`, []string{`/* x`}},
		{"three quotes", `a = '''x'y'''`, `a = {'''x'y'''}`, []string{`'''x'y'''`}},
		{"a quote within brackets", `[it's] = 'x'`, `{[it's] = 'x'}`, []string{`[it's] = 'x'`}},
		{"a quote within backticks", "`it's` = 'x'", "{`it's` = 'x'}", []string{"`it's` = 'x'"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := redacted(t, d, audit.Record{SQL: c.in, GuardedSQL: c.in, Read: []string{"shop.orders", "shop.orders.total"}}, c.values...)
			if d := cmp.Diff([2]string{c.want, c.want}, [2]string{r.SQL, r.GuardedSQL}); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNumbersAndQuotedPartsOfQuestionsAreKeptAsKeyedHashes(t *testing.T) {
	d := redactor(t)
	for in, want := range map[string]string{
		`how many orders of "Ada Lovelace" in Q3?`: `how many orders of "{Ada Lovelace}" in Q3?`,
		`who has ssn 123-45-6789, and since 2024?`: `who has ssn {123-45-6789}, and since {2024}?`,
		`don't show Bob's ‘secret’ or “that”`:      `don't show Bob's ‘{secret}’ or “{that}”`,
	} {
		values := []string{"Ada Lovelace", "123-45-6789", "2024", "secret", "that"}
		if got := redacted(t, d, audit.Record{Question: in, Detail: in}, values...); got.Question != want || got.Detail != want {
			t.Errorf("%q became %q and %q", in, got.Question, got.Detail)
		}
	}
}

func TestSameValueHasTheSameHashUnderOneKeyAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "redact.key")
	a, err := audit.OpenRedactor(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := audit.OpenRedactor(path)
	if err != nil {
		t.Fatal(err)
	}
	if a.Hash("x") != again.Hash("x") || a.Hash("x") == a.Hash("y") || a.Hash("x") == redactor(t).Hash("x") {
		t.Error("the hashes do not depend on the value and the key alone")
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	write(t, path, []byte("short\n"))
	if _, err := audit.OpenRedactor(path); err == nil {
		t.Error("a short key was taken")
	}
	if _, err := audit.OpenRedactor(filepath.Join(path, "below-a-file")); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestLogWritesNoLiteralThatItsRedactorTakes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	l.Redact = redactor(t).Redact
	want := record(`orders of "Ada Lovelace"`)
	want.SQL, want.Detail = `SELECT a FROM t WHERE name = 'Ada Lovelace'`, `near "Ada Lovelace"`
	want.Output = []audit.Output{{Name: `name = 'Ada Lovelace'`, Transform: "transformation"}}
	if _, err := l.Append(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if s := string(read(t, path)); strings.Contains(s, "Lovelace") || len(regexp.MustCompile(`#[0-9a-f]{24}`).FindAllString(s, -1)) < 4 {
		t.Error(s)
	}
	if want.Output[0].Name != `name = 'Ada Lovelace'` {
		t.Error("the caller's record was changed")
	}
	verified(t, path)
}

func FuzzRedact(f *testing.F) {
	for _, s := range []string{"", "SELECT 'a' --", "/* ' */", "$a$", "`", "[", `"`, "'''", `\`, "#", "1e", "é'", "$a$ $b$"} {
		f.Add(s)
	}
	d := redactor(f)
	f.Fuzz(func(t *testing.T, s string) {
		const secret = "zq9secret"
		r := audit.Record{SQL: s + " '" + secret + "'", Question: s + " “" + secret + "”"}
		d.Redact(&r)
		// After a quotation mark of its own the secret may stand outside of quotes.
		if !strings.ContainsAny(s, "'\"`“„‘«") && !strings.Contains(s, secret) && strings.Contains(r.SQL+r.Question, secret) {
			t.Errorf("%q became %q and %q", s, r.SQL, r.Question)
		}
	})
}
