package rewrite_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/mysql"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
	"github.com/schemagate/schemagate/rewrite/sqlite"
)

const (
	ddl    = "CREATE TABLE client (id int primary key, tenant int, name text, ssn text); CREATE TABLE vault (id int, val text);"
	policy = `
version: 1
principals: {asker: {roles: [reader], attributes: {tenant: 7}}}
grants:
  - {role: reader, allow: ["db.client"], actions: [view, query]}
  - {role: reader, deny: ["db.client.ssn"]}
row_filters:
  - {table: db.client, roles: [reader], using: "tenant = {{ principal.tenant }}"}
`
)

func schema(t *testing.T) *rewrite.Schema {
	t.Helper()
	s, err := rewritetest.NewSchema(sqlite.New(), ddl, policy)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func code(err error) string {
	var no *acl.Refusal
	if errors.As(err, &no) {
		return no.Code
	}
	return fmt.Sprint(err)
}

func TestAStatementSaysWhatItReadsAndWhichRulesAreInForce(t *testing.T) {
	st, err := rewrite.NewGuard(sqlite.New(), 0).Rewrite("SELECT name FROM client", schema(t))
	if err != nil {
		t.Fatal(err)
	}
	if capped, err := rewrite.NewGuard(sqlite.New(), 5).Rewrite("SELECT name FROM client", schema(t)); err != nil || capped.Cap() != 5 || st.Cap() != 0 {
		t.Errorf("the caps are %d and %d, %v", capped.Cap(), st.Cap(), err)
	}
	if !strings.Contains(st.Text(), "tenant = 7") || st.Dialect() != catalog.SQLite || len(st.Reads()) != 1 {
		t.Fatalf("got %q of %s, reads %v", st.Text(), st.Dialect(), st.Reads())
	}
	r := st.Reads()[0]
	if r.Table.String() != "db.client" || len(r.Columns) != 1 || r.Columns[0].Column != "name" || len(r.Rules) != 1 || !strings.Contains(r.Rules[0], "row filter") {
		t.Errorf("reads %+v", r)
	}
}

func TestTheRowCapIsInTheStatement(t *testing.T) {
	st, err := rewrite.NewGuard(sqlite.New(), 5).Rewrite("SELECT name FROM client", schema(t))
	if err != nil || !strings.HasSuffix(st.Text(), "LIMIT 5") {
		t.Errorf("got %q, %v", st.Text(), err)
	}
}

func TestWhatIsRefusedLeavesNoStatement(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT ssn FROM client":                      acl.CodeNotAvailable,
		"SELECT * FROM vault":                         acl.CodeNotAvailable,
		"SELECT * FROM nowhere":                       acl.CodeNotAvailable,
		"DELETE FROM client":                          acl.CodeNotReadOnly,
		"SELECT 1; SELECT 2":                          acl.CodeMultipleStatements,
		"SELEC 1":                                     acl.CodeUnparsable,
		"SELECT '" + strings.Repeat("x", 1<<20) + "'": acl.CodeTooLarge,
		"SELECT " + strings.Repeat("(", 50_000) + "1" + strings.Repeat(")", 50_000): acl.CodeTooLarge,
	} {
		st, err := rewrite.NewGuard(sqlite.New(), 0).Rewrite(sql, schema(t))
		if code(err) != want || st.Text() != "" || st.Reads() != nil {
			t.Errorf("%.40s: %v and %q, want %s", sql, err, st.Text(), want)
		}
	}
}

func TestAGuardTakesOnlySchemasOfItsDialect(t *testing.T) {
	if _, err := rewrite.NewGuard(mysql.New(), 0).Rewrite("SELECT 1", schema(t)); err == nil || code(err) == acl.CodeUnparsable {
		t.Errorf("got %v", err)
	}
}

// liar prints something else than its tree.
type liar struct {
	*sqlite.Dialect
	print func(string) string
}

type lyingTree struct {
	rewrite.Tree
	print func(string) string
}

func (l liar) Parse(sql string) (rewrite.Tree, error) {
	t, err := l.Dialect.Parse(sql)
	return lyingTree{t, l.print}, err
}

func (l lyingTree) Print() (string, error) {
	text, err := l.Tree.Print()
	return l.print(text), err
}

func TestThePrintedTextIsTrustedByNobody(t *testing.T) {
	for name, print := range map[string]func(string) string{
		"without the wrapper":      func(string) string { return "SELECT name FROM main.client" },
		"with another filter":      func(s string) string { return strings.Replace(s, "tenant = 7", "tenant = 8", 1) },
		"with a filter that holds": func(s string) string { return strings.Replace(s, "tenant = 7", "tenant = 7 OR 1", 1) },
		"with a hidden column":     func(s string) string { return strings.Replace(s, "id, tenant", "id, ssn, tenant", 1) },
		"of a hidden table":        func(string) string { return "SELECT val FROM main.vault" },
		"of two statements":        func(s string) string { return s + "; SELECT 1" },
		"of a write":               func(string) string { return "DELETE FROM main.client" },
		"not SQL":                  func(string) string { return "SELEC" },
	} {
		st, err := rewrite.NewGuard(liar{sqlite.New(), print}, 0).Rewrite("SELECT name FROM client", schema(t))
		var no *acl.Refusal
		if err == nil || errors.As(err, &no) || st.Text() != "" {
			t.Errorf("a text %s got through: %q, %v", name, st.Text(), err)
		}
	}
}

func TestASchemaOfNothingIsAFault(t *testing.T) {
	if _, err := rewrite.NewSchema(acl.View{}, "db"); err == nil {
		t.Error("a view of no catalog gave a schema")
	}
}

func TestVetFindsRulesThatCannotBePutInForce(t *testing.T) {
	for name, c := range map[string]struct{ rule, want string }{
		"good":              {`row_filters: [{table: db.client, roles: [reader], using: "tenant = 7"}]`, ""},
		"not SQL":           {`row_filters: [{table: db.client, roles: [reader], using: "tenant = = 7"}]`, "row filter on db.client"},
		"unknown column":    {`row_filters: [{table: db.client, roles: [reader], using: "tenent = 7"}]`, "row filter on db.client"},
		"missing attribute": {`row_filters: [{table: db.client, roles: [reader], using: "tenant = {{ principal.tenant }}"}]`, "missing-attribute"},
		"no such mask":      {`masks: [{column: db.client.name, roles: [reader], with: hash}]`, "mask-unsupported"},
		"mask is not SQL":   {`masks: [{column: db.client.name, roles: [reader], with: {expression: "upper("}}]`, "mask on db.client.name"},
	} {
		t.Run(name, func(t *testing.T) {
			db, objects, err := sqlite.New().Objects("db", ddl)
			if err != nil {
				t.Fatal(err)
			}
			s, err := catalog.Build([]catalog.Database{db}, objects)
			if err != nil {
				t.Fatal(err)
			}
			p, err := acl.ParsePolicy("p", []byte("version: 1\nprincipals: {asker: {roles: [reader]}}\ngrants: [{role: reader, allow: [db.client]}]\n"+c.rule+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			e, err := casbin.New(p, s)
			if err != nil {
				t.Fatal(err)
			}
			v, err := e.View("asker")
			if err != nil {
				t.Fatal(err)
			}
			got := rewrite.Vet(v, []*rewrite.Guard{rewrite.NewGuard(sqlite.New(), 0)})
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(fmt.Sprint(got), c.want)) {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}

func TestTheColumnsOfSQLViewsAreDerivedFromThoseOfBaseTables(t *testing.T) {
	db, objects, err := sqlite.New().Objects("db", `
CREATE TABLE person (id INTEGER PRIMARY KEY, ssn TEXT, pay INT);
CREATE VIEW badge AS SELECT id AS no, 'P' || ssn AS code FROM person;
CREATE VIEW report (who, total, constant) AS SELECT code, SUM(pay), 1 FROM badge JOIN person ON no = id GROUP BY code;
CREATE VIEW broken AS SELECT gone FROM person;`)
	if err != nil {
		t.Fatal(err)
	}
	s, err := catalog.Build([]catalog.Database{db}, objects)
	if err != nil {
		t.Fatal(err)
	}
	from, unread := rewrite.Derivations(s, []*rewrite.Guard{rewrite.NewGuard(sqlite.New(), 0)})
	got := map[string]string{}
	for column, sources := range from {
		var names []string
		for _, r := range sources {
			names = append(names, r.Table+"."+r.Column)
		}
		got[column.Table+"."+column.Column] = strings.Join(names, " ")
	}
	want := map[string]string{
		"badge.no": "person.id", "badge.code": "person.ssn",
		"report.who": "person.ssn", "report.total": "person.pay", "report.constant": "",
	}
	if !maps.Equal(got, want) {
		t.Errorf("derived from %v, want %v", got, want)
	}
	if len(unread) != 1 || unread[0].Rule != "db.broken" {
		t.Errorf("unread are %v", unread)
	}
	if derived, err := catalog.Derive(s, from); err != nil || derived.Version() == s.Version() {
		t.Errorf("the catalog has the version of one without lineage, %v", err)
	}
}
