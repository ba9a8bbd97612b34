package tsql_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqlc-dev/teesql/parser"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/tsql"
)

const allowAll = `version: 1
principals: {asker: {roles: [reader]}}
grants: [{role: reader, allow: ["*"], actions: [view, query]}]
`

// place is where the site that the statements are from asks its visitor for a value: ##name:type?default##.
var place = regexp.MustCompile(`##[^#\n]+##`)

// filled puts a value in each place, as that site does before it runs a statement.
func filled(sql string) string {
	return place.ReplaceAllStringFunc(sql, func(p string) string {
		p = strings.Trim(p, "#")
		name, value, _ := strings.Cut(p, "?")
		_, kind, _ := strings.Cut(name, ":")
		if value == "" {
			value = "1"
		}
		if strings.EqualFold(kind, "string") {
			value = "'" + value + "'"
		}
		return value
	})
}

// TestRealQuestionsGoThrough guards the statements that people wrote for the questions of a benchmark under a policy
// that allows everything. Texts of several statements are refused by rule and counted apart, as are those that the
// parser does not read, or that no SQL Server with this schema would run.
func TestRealQuestionsGoThrough(t *testing.T) {
	bench := os.Getenv("SCHEMAGATE_BENCH")
	if bench == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("SCHEMAGATE_BENCH is not set; CI needs the benchmark data")
		}
		t.Skip("set SCHEMAGATE_BENCH to the benchmark data's bench folder")
	}
	const database = "db"
	var objects []catalog.Object
	lines(t, filepath.Join(bench, "sede.schema.jsonl"), func(l struct{ Table, Column, Type string }) {
		ref := catalog.TableRef(database, "dbo", l.Table)
		if !slices.ContainsFunc(objects, func(o catalog.Object) bool { return o.Ref == ref }) {
			objects = append(objects, catalog.Object{Ref: ref, Table: &catalog.Table{}})
		}
		objects = append(objects, catalog.Object{
			Ref: catalog.ColumnRef(database, "dbo", l.Table, l.Column), Column: &catalog.Column{Type: l.Type, Position: len(objects)},
		})
	})
	view := viewOf(t, allowAll, objects)
	for _, set := range []string{"sede_val.questions.jsonl", "sede_test.questions.jsonl"} {
		t.Run(set, func(t *testing.T) {
			guard := rewrite.NewGuard(tsql.New(), 0)
			var asked, several, unread, absent, accepted, refused int
			lines(t, filepath.Join(bench, set), func(q struct{ ID, SQL string }) {
				if q.SQL == "" {
					return
				}
				asked++
				sql := filled(q.SQL)
				_, err := guard.Rewrite(sql, schemaOf(t, view))
				var no *acl.Refusal
				if err != nil && !errors.As(err, &no) {
					t.Fatalf("%s: %v\n%s", q.ID, err, sql)
				}
				if no != nil && no.Code == acl.CodeMultipleStatements {
					several++
					return
				}
				if _, err := parser.Parse(context.Background(), strings.NewReader(sql)); err != nil {
					unread++
					return
				}
				if no != nil && (no.Code == acl.CodeNotAvailable || no.Code == acl.CodeAmbiguous) {
					absent++
					t.Logf("names nothing: %s: %s (%s)", q.ID, no.Public, no.Detail)
					return
				}
				accepted++
				if no != nil {
					refused++
					t.Logf("refused: %s: %s: %s (%s)", q.ID, no.Code, no.Public, no.Detail)
				}
			})
			t.Logf("%d statements: %d of several statements, %d not read by the parser, %d with names that the schema lacks; of the other %d, %d refused (%.1f%%)",
				asked, several, unread, absent, accepted, refused, 100*float64(refused)/float64(accepted))
			if float64(refused) > 0.04*float64(accepted) {
				t.Errorf("%d of %d refused; at most 4%% should be", refused, accepted)
			}
		})
	}
}

// lines reads a file of JSON lines.
func lines[T any](t *testing.T, file string, take func(T)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		take(v)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}
