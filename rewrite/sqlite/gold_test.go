package sqlite_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
	"github.com/schemagate/schemagate/rewrite/sqlite"
)

const allowAll = `version: 1
principals: {asker: {roles: [reader]}}
grants: [{role: reader, allow: ["*"], actions: [view, query]}]
`

// TestRealQuestionsGoThrough guards the statements that people wrote for the questions of two benchmarks under a policy
// that allows everything.
func TestRealQuestionsGoThrough(t *testing.T) {
	bench := os.Getenv("SCHEMAGATE_BENCH")
	if bench == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("SCHEMAGATE_BENCH is not set; CI needs the benchmark data")
		}
		t.Skip("set SCHEMAGATE_BENCH to the benchmark data's bench folder")
	}
	for _, set := range []struct {
		questions, schema string
		refused           int // at most
	}{
		{"bird_dev.questions.jsonl", "bird_dev.schema.jsonl", 15},
		{"spider_dev.questions.jsonl", "spider.schema.jsonl", 10},
	} {
		t.Run(set.questions, func(t *testing.T) {
			objects := map[string][]catalog.Object{}
			lines(t, filepath.Join(bench, set.schema), func(l struct{ DB, Table, Column, Type string }) {
				ref := catalog.TableRef(l.DB, "", l.Table)
				if !slices.ContainsFunc(objects[l.DB], func(o catalog.Object) bool { return o.Ref == ref }) {
					objects[l.DB] = append(objects[l.DB], catalog.Object{Ref: ref, Table: &catalog.Table{}})
				}
				objects[l.DB] = append(objects[l.DB], catalog.Object{
					Ref: catalog.ColumnRef(l.DB, "", l.Table, l.Column), Column: &catalog.Column{Type: l.Type, Position: len(objects[l.DB])},
				})
			})
			views := map[string]acl.View{}
			for name, list := range objects {
				snapshot, err := catalog.Build([]catalog.Database{{Name: name, Dialect: catalog.SQLite}}, list)
				if err != nil {
					t.Fatal(err)
				}
				p, err := acl.ParsePolicy("policy.yaml", []byte(allowAll))
				if err != nil {
					t.Fatal(err)
				}
				e, err := casbin.New(p, snapshot)
				if err != nil {
					t.Fatal(err)
				}
				if views[name], err = e.View(rewritetest.Asker); err != nil {
					t.Fatal(err)
				}
			}
			guard := rewrite.NewGuard(sqlite.New(), 0)
			asked, refused := 0, 0
			lines(t, filepath.Join(bench, set.questions), func(q struct{ ID, DB, SQL string }) {
				schema, err := rewrite.NewSchema(views[q.DB], q.DB)
				if err != nil {
					t.Fatal(err)
				}
				asked++
				_, err = guard.Rewrite(q.SQL, schema)
				var no *acl.Refusal
				switch {
				case errors.As(err, &no):
					refused++
					t.Logf("%s: %s: %s\n%s", q.ID, no.Code, no.Public, q.SQL)
				case err != nil:
					t.Errorf("%s: %v\n%s", q.ID, err, q.SQL)
				}
			})
			t.Logf("%d of %d refused", refused, asked)
			if refused > set.refused {
				t.Errorf("%d of %d refused, at most %d may be", refused, asked, set.refused)
			}
		})
	}
}

func lines[T any](t *testing.T, file string, each func(T)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var l T
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		each(l)
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
}
