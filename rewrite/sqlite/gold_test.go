package sqlite_test

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

// gold is a question of a benchmark with the statement that people wrote for it.
type gold struct{ ID, DB, SQL string }

// benchmark is the folder of the benchmark data.
func benchmark(t *testing.T) string {
	t.Helper()
	bench := os.Getenv("SCHEMAGATE_BENCH")
	if bench == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("SCHEMAGATE_BENCH is not set; CI needs the benchmark data")
		}
		t.Skip("set SCHEMAGATE_BENCH to the benchmark data's bench folder")
	}
	return bench
}

// TestRealQuestionsGoThrough guards the statements of two benchmarks under a policy that allows everything. At most one
// in a hundred is refused; the log says which, and why.
func TestRealQuestionsGoThrough(t *testing.T) {
	bench := benchmark(t)
	for _, set := range []struct{ questions, schema string }{
		{"bird_dev.questions.jsonl", "bird_dev.schema.jsonl"},
		{"bird_train.questions.jsonl.gz", "bird_train.schema.jsonl"},
		{"spider_dev.questions.jsonl", "spider.schema.jsonl"},
		{"spider_train.questions.jsonl.gz", "spider.schema.jsonl"},
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
			asked, refused := 0, map[string]int{}
			lines(t, filepath.Join(bench, set.questions), func(q gold) {
				schema, err := rewrite.NewSchema(views[q.DB], q.DB)
				if err != nil {
					t.Fatal(err)
				}
				asked++
				_, err = guard.Rewrite(q.SQL, schema)
				var no *acl.Refusal
				switch {
				case errors.As(err, &no):
					refused[no.Code]++
					t.Logf("%s: %s: %s (%s)\n%s", q.ID, no.Code, no.Public, no.Detail, q.SQL)
				case err != nil:
					t.Errorf("%s: %v\n%s", q.ID, err, q.SQL)
				}
			})
			total := 0
			for _, n := range refused {
				total += n
			}
			t.Logf("%d of %d refused: %v", total, asked, refused)
			if total*100 > asked {
				t.Errorf("%d of %d refused, more than one in a hundred", total, asked)
			}
		})
	}
}

// TestRealQuestionsReturnTheSame runs the statements that SQLite accepts on the databases that are there, as they are and
// guarded: seen whole, and again with every table behind a filter that hides nothing.
func TestRealQuestionsReturnTheSame(t *testing.T) {
	bench := benchmark(t)
	files := unpacked(t, filepath.Join(bench, "sqlite", "spider_105.tar.gz"))
	questions := map[string][]gold{}
	for _, set := range []string{"spider_dev.questions.jsonl", "spider_train.questions.jsonl.gz"} {
		lines(t, filepath.Join(bench, set), func(q gold) { questions[q.DB] = append(questions[q.DB], q) })
	}
	lines(t, filepath.Join(bench, "bird_dev.questions.jsonl"), func(q gold) {
		if q.DB == "superhero" {
			questions[q.DB] = append(questions[q.DB], q)
		}
	})
	files["superhero"] = filepath.Join(bench, "sqlite", "superhero.sqlite")
	guard := rewrite.NewGuard(sqlite.New(), 0)
	ran, refused := 0, map[string]int{}
	for name, file := range files {
		db, err := sql.Open("sqlite", "file:"+file+"?mode=ro&immutable=1")
		if err != nil {
			t.Fatal(err)
		}
		ddl, err := query(db, "SELECT sql || ';' FROM sqlite_master WHERE sql IS NOT NULL")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		whole := newSchema(t, strings.Join(ddl, "\n"), allowAll)
		tables, err := query(db, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
		if err != nil {
			t.Fatal(err)
		}
		policy := allowAll + "row_filters:\n"
		for _, table := range tables {
			policy += "  - {table: " + strconv.Quote(`db."`+table+`"`) + ", roles: [reader], using: 1 = 1}\n"
		}
		filtered := newSchema(t, strings.Join(ddl, "\n"), policy)
		for i, q := range questions[name] {
			if testing.Short() && i%10 > 0 {
				continue
			}
			ordered := strings.Contains(strings.ToUpper(q.SQL), "ORDER BY")
			want := answerOf(db, q.SQL, false)
			if want.err != nil {
				continue
			}
			ran++
			for _, s := range []*rewrite.Schema{whole, filtered} {
				st, err := guard.Rewrite(q.SQL, s)
				var no *acl.Refusal
				if errors.As(err, &no) {
					refused[no.Code]++
					t.Logf("%s: %s: %s (%s)\n%s", q.ID, no.Code, no.Public, no.Detail, q.SQL)
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v\n%s", q.ID, err, q.SQL)
				}
				// A LIMIT over rows of equal rank, and a column beside an aggregate, are SQLite's choice.
				if got := answerOf(db, st.Text(), false); !got.equal(want) && !(ordered && len(got.rows) == len(want.rows)) {
					t.Errorf("%s: %s\nguarded\n%s\ngot\n%.300s\nwant\n%.300s", q.ID, q.SQL, st.Text(), got, want)
				}
			}
		}
		db.Close()
	}
	t.Logf("%d statements ran on %d databases, refused %v", ran, len(files), refused)
	if ran < 500 {
		t.Errorf("only %d statements ran", ran)
	}
}

// unpacked unpacks databases, by name.
func unpacked(t *testing.T, archive string) map[string]string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out, folder := map[string]string{}, t.TempDir()
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Base(h.Name)
		file := filepath.Join(folder, base)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(base, ".sqlite")] = file
	}
}

func lines[T any](t *testing.T, file string, each func(T)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var text io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if text, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	in := bufio.NewScanner(text)
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
