package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/postgres"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

// chain creates views v1 to vn, each of which reads the one before times times.
func chain(n, times int) string {
	var b strings.Builder
	b.WriteString("CREATE TABLE v0 (id int);\n")
	for i := range n {
		from := make([]string, times)
		for k := range from {
			from[k] = fmt.Sprintf("v%d x%d", i, k)
		}
		fmt.Fprintf(&b, "CREATE VIEW v%d AS SELECT x0.id FROM %s;\n", i+1, strings.Join(from, ", "))
	}
	return b.String()
}

func TestViewsOnTopOfEachOtherAreBounded(t *testing.T) {
	for _, c := range []struct {
		name, ddl, sql, code string
	}{
		{"as many as are read", chain(32, 1), "SELECT id FROM v32", ""},
		{"one more", chain(33, 1), "SELECT id FROM v33", acl.CodeNotSupported},
		{"two of each", chain(9, 2), "SELECT id FROM v9", acl.CodeNotSupported},
		{"a view of itself", "CREATE VIEW a (id) AS SELECT 1 FROM a;", "SELECT 1 FROM a", acl.CodeNotSupported},
		{"two views of each other", "CREATE VIEW a (id) AS SELECT 1 FROM b; CREATE VIEW b (id) AS SELECT 1 FROM a;", "SELECT 1 FROM b", acl.CodeNotSupported},
		{"a view of nothing", "CREATE VIEW a AS SELECT 1 AS id;", "SELECT id FROM a", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := postgres.New()
			schema, err := rewritetest.NewSchema(d, c.ddl, allowAll)
			if err != nil {
				t.Fatal(err)
			}
			_, err = rewrite.NewGuard(d, 0).Rewrite(c.sql, schema)
			no, _ := errors.AsType[*acl.Refusal](err)
			if no != nil && no.Code == acl.CodeTooLarge {
				t.Skip("deeper than this build's parser goes")
			}
			if c.code == "" && err != nil || c.code != "" && (no == nil || no.Code != c.code) {
				t.Errorf("%v", err)
			}
			if no != nil && !strings.HasSuffix(no.Public, "is a SQL view whose definition is not supported") {
				t.Errorf("the refusal says %q", no.Public)
			}
		})
	}
}

func TestReadsListTheViewAndItsTables(t *testing.T) {
	d := postgres.New()
	schema, err := rewritetest.NewSchema(d, lineageDDL, lineagePolicy)
	if err != nil {
		t.Fatal(err)
	}
	st, err := rewrite.NewGuard(d, 0).Rewrite("SELECT n FROM vv", schema)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, read := range st.Reads() {
		got = append(got, fmt.Sprint(read.Table.Table, " ", len(read.Columns), len(read.Rules)))
	}
	if want := "vv 1 0, va 2 0, a 3 0, vb 2 0, b 2 2"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}
