package generate_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	pgquery "github.com/wasilibs/go-pgquery"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/mysql"
	"github.com/schemagate/schemagate/rewrite/sqlite"
)

var update = flag.Bool("update", false, "write what the compiler does now into testdata/shop.txt")

// row is a line of the specification: who asks what, and the draft.
type row struct {
	comment, who, question, want string
}

// specification reads testdata/shop.txt: paragraphs of comments, "WHO? QUESTION" and the draft, which is SQL or
// "no: REASON".
func specification(t testing.TB) []row {
	t.Helper()
	text, err := os.ReadFile("testdata/shop.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []row
	for _, paragraph := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		var r row
		for strings.HasPrefix(paragraph, "#") {
			line, rest, _ := strings.Cut(paragraph, "\n")
			r.comment += line + "\n"
			paragraph = rest
		}
		asked, want, _ := strings.Cut(paragraph, "\n")
		var ok bool
		if r.who, r.question, ok = strings.Cut(asked, "? "); !ok && asked != "" {
			t.Fatalf("not WHO? QUESTION: %q", asked)
		}
		r.want = want
		out = append(out, r)
	}
	return out
}

func TestEachQuestionGivesTheSpecifiedDraftOrReason(t *testing.T) {
	db := openShop(t)
	shops := map[string]*catalog.Snapshot{}
	for _, d := range []catalog.Dialect{catalog.SQLite, catalog.MySQL, catalog.Postgres, catalog.TSQL} {
		shops[string(d)] = newShop(t, db, d)
	}
	guards := map[string]*rewrite.Guard{"sqlite": rewrite.NewGuard(sqlite.New(), 0), "mysql": rewrite.NewGuard(mysql.New(), 0)}
	rows := specification(t)
	var now strings.Builder
	for _, r := range rows {
		if r.who == "" {
			now.WriteString(r.comment + "\n")
			continue
		}
		dialect, role, _ := strings.Cut(r.who, "/")
		if role == "" && shops[dialect] == nil {
			dialect, role = "sqlite", r.who
		}
		var v acl.View
		switch role {
		case "":
			v = acl.Everything(shops[dialect])
		case "clerk":
			v = clerk(shops[dialect])
		case "guest":
			v = guest(shops[dialect])
		case "nobody":
		default:
			t.Fatalf("who is %q?", r.who)
		}
		d := draft(t, r.question, v)
		got := d.SQL
		if d.SQL == "" {
			got = "no: " + d.Abstained
		}
		fmt.Fprintf(&now, "%s%s? %s\n%s\n\n", r.comment, r.who, r.question, got)
		if got != r.want && !*update {
			t.Errorf("%s? %s\ngot:\n%s\nwant:\n%s", r.who, r.question, got, r.want)
		}
		if d.SQL == "" {
			continue
		}
		if want := map[bool]string{true: "sales", false: "shop"}[dialect == "mysql"]; d.Database != want {
			t.Errorf("%q runs in %q", r.question, d.Database)
		}
		switch dialect {
		case "sqlite":
			if _, err := db.Exec("EXPLAIN " + d.SQL); err != nil {
				t.Errorf("%q: SQLite says %v", r.question, err)
			}
		case "postgres":
			if _, err := pgquery.Parse(d.SQL); err != nil {
				t.Errorf("%q: PostgreSQL's parser says %v", r.question, err)
			}
		}
		if g := guards[dialect]; g != nil {
			schema, err := rewrite.NewSchema(v, d.Database)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.Rewrite(d.SQL, schema); err != nil {
				t.Errorf("%q: the guard says %v", r.question, err)
			}
		}
	}
	if *update {
		if err := os.WriteFile("testdata/shop.txt", []byte(strings.TrimSpace(now.String())+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
