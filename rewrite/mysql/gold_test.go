package mysql_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pingcap/tidb/pkg/parser"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/mysql"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

// lines decodes a file of the benchmark data, one value a line.
func lines[T any](t *testing.T, name string) []T {
	t.Helper()
	bench := os.Getenv("SCHEMAGATE_BENCH")
	if bench == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("SCHEMAGATE_BENCH is not set; CI needs the benchmark data")
		}
		t.Skip("set SCHEMAGATE_BENCH to the benchmark data's bench folder")
	}
	f, err := os.Open(filepath.Join(bench, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []T
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<22)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

var foreign = regexp.MustCompile(`\b(strftime|iif|julianday)\s*\(`)

// TestGoldStatementsPass guards the statements of BIRD that the parser reads under a policy that allows everything.
// They are SQLite's, so those that call a function of SQLite's own do not count. Names are written in lower case, as
// SQLite would find them.
func TestGoldStatementsPass(t *testing.T) {
	type columnLine struct{ DB, Table, Column, Type string }
	type questionLine struct{ DB, SQL string }
	byDatabase := map[string][]catalog.Object{}
	seen := map[catalog.Ref]bool{}
	for _, c := range lines[columnLine](t, "bird_dev.schema.jsonl") {
		db, table, name := strings.ToLower(c.DB), strings.ToLower(c.Table), strings.ToLower(c.Column)
		if r := catalog.TableRef(db, "", table); !seen[r] {
			seen[r] = true
			byDatabase[db] = append(byDatabase[db], catalog.Object{Ref: r, Table: &catalog.Table{}})
		}
		if r := catalog.ColumnRef(db, "", table, name); !seen[r] {
			seen[r] = true
			byDatabase[db] = append(byDatabase[db], catalog.Object{Ref: r, Column: &catalog.Column{Type: c.Type, Position: len(byDatabase[db])}})
		}
	}
	views := map[string]acl.View{}
	for db, objects := range byDatabase {
		s, err := catalog.Build([]catalog.Database{{Name: db, Dialect: catalog.MySQL}}, objects)
		if err != nil {
			t.Fatal(err)
		}
		p, err := acl.ParsePolicy("policy.yaml", []byte("version: 1\nprincipals: {asker: {roles: [r]}}\ngrants: [{role: r, allow: [\"*\"], actions: [view, query]}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		e, err := casbin.New(p, s)
		if err != nil {
			t.Fatal(err)
		}
		if views[db], err = e.View(rewritetest.Asker); err != nil {
			t.Fatal(err)
		}
	}
	guard := rewrite.NewGuard(mysql.New(), 1000)
	passed, unread, causes := 0, 0, map[string]int{}
	for _, q := range lines[questionLine](t, "bird_dev.questions.jsonl") {
		in := strings.ToLower(q.SQL)
		if _, _, err := parser.New().ParseSQL(in); err != nil || foreign.MatchString(in) {
			unread++
			continue
		}
		schema, err := rewrite.NewSchema(views[strings.ToLower(q.DB)], strings.ToLower(q.DB))
		if err != nil {
			t.Fatal(err)
		}
		_, err = guard.Rewrite(in, schema)
		var no *acl.Refusal
		switch {
		case errors.As(err, &no):
			causes[no.Public]++
			t.Logf("%s: %s\n%s", no.Public, no.Detail, in)
		case err != nil:
			t.Errorf("%v\n%s", err, in)
		default:
			passed++
		}
	}
	refused := 0
	var list []string
	for c, n := range causes {
		refused += n
		list = append(list, c)
	}
	slices.Sort(list)
	for _, c := range list {
		t.Logf("%4d %s", causes[c], c)
	}
	t.Logf("%d passed, %d refused, %d are not MySQL's", passed, refused, unread)
	if refused*100 > passed {
		t.Errorf("more than 1%% were refused")
	}
}
