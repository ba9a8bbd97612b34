package postgres

import (
	"testing"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

// TestGovernedTrustsNoText holds texts against the schema that nobody printed: each but the first of a pair lacks
// something of what the schema demands.
func TestGovernedTrustsNoText(t *testing.T) {
	const ddl = `CREATE TABLE client (id int PRIMARY KEY, tenant int, name text, ssn text);
CREATE TABLE region (id int PRIMARY KEY, city text);
CREATE VIEW seven AS SELECT id, name FROM client WHERE id > 7;
CREATE VIEW nested AS SELECT name FROM seven;
`
	const policy = `version: 1
principals: {asker: {roles: [reader]}}
grants:
  - {role: reader, allow: ["*"], actions: [view, query]}
  - {role: reader, deny: [db.public.client.ssn]}
row_filters:
  - {table: db.public.client, roles: [reader], using: "tenant = 7"}
  - {table: db.public.seven, roles: [reader], using: "id < 99"}
`
	const (
		client = "(SELECT id, tenant, name FROM public.client WHERE client.tenant = 7)"
		barred = "(SELECT id, tenant, name FROM public.client WHERE client.tenant = 7 OFFSET 0)"
		seven  = "(SELECT id, name FROM (SELECT id, name FROM " + client + " client WHERE id > 7) seven WHERE seven.id < 99)"
	)
	view := func(names ...string) (refs []catalog.Ref) {
		for _, n := range names {
			refs = append(refs, catalog.TableRef("db", "public", n))
		}
		return refs
	}
	for _, c := range []struct {
		name, text string
		views      []catalog.Ref
		governed   bool
	}{
		{"a wrapper", "SELECT * FROM " + client + " c", nil, true},
		{"a table without one", "SELECT name FROM public.client", nil, false},
		{"a wrapper with another filter", "SELECT * FROM (SELECT id, tenant, name FROM public.client WHERE client.tenant = 8) c", nil, false},
		{"a wrapper without a filter", "SELECT * FROM (SELECT id, tenant, name FROM public.client) c", nil, false},
		{"a wrapper that holds always", "SELECT * FROM (SELECT id, tenant, name FROM public.client WHERE client.tenant = 7 OR true) c", nil, false},
		{"a wrapper with a hidden column", "SELECT * FROM (SELECT id, tenant, name, ssn FROM public.client WHERE client.tenant = 7) c", nil, false},
		{"a wrapper with a join in it", "SELECT * FROM (SELECT id, tenant, name FROM public.client, public.region WHERE client.tenant = 7) c", nil, false},
		{"a whole table", "SELECT city FROM public.region", nil, true},
		{"a whole table without its schema", "SELECT city FROM region", nil, false},
		{"a whole table under a star", "SELECT * FROM public.region", nil, false},
		{"a wrapped whole table under a star", "SELECT * FROM (SELECT id, city FROM public.region) region", nil, true},
		{"a whole table in sight of an outer name", "SELECT name FROM " + client + " c WHERE EXISTS (SELECT FROM public.region WHERE name IS NULL)", nil, false},
		{"a whole table beside a qualified outer name", "SELECT name FROM " + client + " c WHERE EXISTS (SELECT FROM public.region WHERE c.name IS NULL)", nil, true},
		{"an expression that may fail behind a barrier", "SELECT id FROM " + barred + " c WHERE 1 / id > 0", nil, true},
		{"an expression that may fail without one", "SELECT id FROM " + client + " c WHERE 1 / id > 0", nil, false},
		{"a SQL view", "SELECT * FROM " + seven + " seven", view("seven"), true},
		{"a SQL view by name", "SELECT * FROM public.seven", nil, false},
		{"a SQL view that is missing", "SELECT * FROM " + client + " c", view("seven"), false},
		{"a SQL view without its own filter", "SELECT * FROM (SELECT id, name FROM (SELECT id, name FROM " + client + " client WHERE id > 7) seven) seven", view("seven"), false},
		{"a SQL view without its condition", "SELECT * FROM (SELECT id, name FROM (SELECT id, name FROM " + client + " client) seven WHERE seven.id < 99) seven", view("seven"), false},
		{"a SQL view over a table without a wrapper", "SELECT * FROM (SELECT id, name FROM (SELECT id, name FROM public.client WHERE id > 7) seven WHERE seven.id < 99) seven", view("seven"), false},
		{"a SQL view once where it must be twice", "SELECT * FROM " + seven + " seven", view("seven", "seven"), false},
		{"a SQL view in another", "SELECT * FROM (SELECT name FROM (SELECT name FROM " + seven + " seven) nested) n", view("nested", "seven"), true},
		{"a SQL view whose inner one lost its filter", "SELECT * FROM (SELECT name FROM (SELECT name FROM (SELECT id, name FROM (SELECT id, name FROM " + client +
			" client WHERE id > 7) seven) seven) nested) n", view("nested", "seven"), false},
		{"a function that is not allowed", "SELECT clock_timestamp() FROM " + client + " c", nil, false},
		{"a function that is not allowed beside a SQL view", "SELECT clock_timestamp() FROM " + seven + " c", view("seven"), false},
		{"a write", "SELECT id INTO x FROM " + client + " c", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := New()
			schema, err := rewritetest.NewSchema(d, ddl, policy)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := d.Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			again := parsed.(*tree)
			again.views = c.views
			if err := again.Governed(schema); (err == nil) != c.governed {
				t.Errorf("%s\nis judged with %v", c.text, err)
			}
		})
	}
}
