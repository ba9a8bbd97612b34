package postgres_test

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/postgres"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

// specification reads the parts of a file of testdata.
func specification(t testing.TB, file string) map[string]string {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	part := map[string]string{}
	for _, f := range a.Files {
		part[f.Name] = string(f.Data)
	}
	return part
}

// FuzzGuard holds every text to the same promise: it is refused, or it becomes a text that parses and prints to
// itself, the same each time. Nothing panics and no bad input is a fault.
func FuzzGuard(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range files {
		f.Add(specification(f, file)["in.sql"])
	}
	shared := specification(f, "testdata/left_join_filters_null_side.txtar")
	ddl := shared["schema.sql"] + "CREATE VIEW v AS SELECT * FROM client; CREATE VIEW grouped (a, b) AS SELECT region_id, count(*) FROM v GROUP BY 1;"
	d := postgres.New()
	f.Fuzz(func(t *testing.T, sql string) {
		guard := func() (string, error) {
			schema, err := rewritetest.NewSchema(d, ddl, shared["policy.yaml"])
			if err != nil {
				t.Fatal(err)
			}
			st, err := rewrite.NewGuard(d, 100).Rewrite(sql, schema)
			return st.Text(), err
		}
		text, err := guard()
		if err != nil {
			if _, ok := errors.AsType[*acl.Refusal](err); !ok {
				t.Fatalf("a fault for %q: %v", sql, err)
			}
			return
		}
		tree, err := d.Parse(text)
		if err != nil {
			t.Fatalf("%q does not parse: %v", text, err)
		}
		if again, err := tree.Print(); err != nil || again != text {
			t.Fatalf("%q prints as %q (%v)", text, again, err)
		}
		if again, err := guard(); err != nil || again != text {
			t.Fatalf("%q is guarded as %q and then as %q (%v)", sql, text, again, err)
		}
	})
}
