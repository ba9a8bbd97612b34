package mysql_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/mysql"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

const fuzzDDL = `CREATE TABLE region (id INT PRIMARY KEY, name VARCHAR(20));
CREATE TABLE client (id INT PRIMARY KEY, tenant INT, region_id INT, name VARCHAR(20), ssn VARCHAR(11));
CREATE TABLE invoice (id INT PRIMARY KEY, tenant INT, client_id INT, amount INT, memo VARCHAR(40));
CREATE TABLE vault (id INT PRIMARY KEY, val VARCHAR(20));`

const fuzzPolicy = `version: 1
principals: {asker: {roles: [reader], attributes: {tenant: 7}}}
grants:
  - {role: reader, allow: ["*"], actions: [view, query]}
  - {role: reader, deny: [db.vault, db.client.ssn]}
row_filters:
  - {table: db.client, roles: [reader], using: "tenant = {{ principal.tenant }}"}
  - {table: db.invoice, roles: [reader], using: "exists (select 1 from client c where c.id = invoice.client_id)"}
masks:
  - {column: db.client.name, roles: [reader], with: hash}
`

// FuzzGuard holds for every text: it is refused or its guarded form passes the guard's own verification, and never is
// there a fault or a panic; the same text gives the same answer.
func FuzzGuard(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range txtar.Parse(b).Files {
			if part.Name == "in.sql" {
				f.Add(string(part.Data))
			}
		}
	}
	for _, sql := range append(shapes, refused...) {
		f.Add(sql)
	}
	d, objects, err := mysql.New().Objects(rewritetest.Database, lineageDDL)
	if err != nil {
		f.Fatal(err)
	}
	view := viewOf(f, fuzzPolicy, []catalog.Database{d}, objects)
	guard := rewrite.NewGuard(mysql.New(), 100)
	f.Fuzz(func(t *testing.T, sql string) {
		var texts [2]string
		for i := range texts {
			schema, err := rewrite.NewSchema(view, rewritetest.Database)
			if err != nil {
				t.Fatal(err)
			}
			st, err := guard.Rewrite(sql, schema)
			var no *acl.Refusal
			if err != nil && !errors.As(err, &no) {
				t.Fatalf("a fault: %v", err)
			}
			texts[i] = st.Text()
			if no != nil {
				texts[i] = no.Code + no.Public
			}
		}
		if texts[0] != texts[1] {
			t.Fatalf("one text, two answers:\n%s\n%s", texts[0], texts[1])
		}
	})
}
