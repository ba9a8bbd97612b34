package mysql_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/mysql"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

func TestSpecifications(t *testing.T) { rewritetest.Golden(t, mysql.New(), "testdata") }

const twoPolicy = `version: 1
principals: {asker: {roles: [reader]}}
grants:
  - {role: reader, allow: ["*"], actions: [view, query]}
  - {role: reader, deny: [crm.person.pin]}
row_filters:
  - {table: shop.sale, roles: [reader], using: "person in (select id from crm.person)"}
`

// TestDatabases shows that a name with a database in front reaches into another database of the catalog, and that the
// printed text names every database.
func TestDatabases(t *testing.T) {
	scripts := []script{
		{"shop", "CREATE TABLE sale (id INT, person INT); CREATE TABLE person (id INT);"},
		{"crm", "CREATE TABLE person (id INT, name VARCHAR(9), pin INT);"},
	}
	for _, c := range []struct{ in, want, code string }{
		{in: "select crm.person.name, p.id from crm.person join person p on p.id = crm.person.id",
			want: "SELECT `person`.`name`,`p`.`id` FROM (SELECT `_gate`.`id`,`_gate`.`name` FROM `crm`.`person` AS `_gate`) AS `person` JOIN `shop`.`person` AS `p` ON `p`.`id` = `person`.`id`"},
		{in: "select id from sale",
			want: "SELECT `id` FROM (SELECT `_gate`.`id`,`_gate`.`person` FROM `shop`.`sale` AS `_gate` WHERE (`_gate`.`person` IN (SELECT `_gate_person`.`id` FROM `crm`.`person` AS `_gate_person`))) AS `sale`"},
		{in: "select pin from crm.person", code: acl.CodeNotAvailable},
		{in: "select name from person", code: acl.CodeNotAvailable},
		{in: "select 1 from nowhere.person", code: acl.CodeNotAvailable},
		{in: "select 1 from person join crm.person on true", code: acl.CodeAmbiguous},
		{in: "select (select shop.person.id from crm.person limit 1) from shop.person", code: acl.CodeAmbiguous},
	} {
		schema, err := schemaOf(twoPolicy, scripts...)
		if err != nil {
			t.Fatal(err)
		}
		st, err := rewrite.NewGuard(mysql.New(), 0).Rewrite(c.in, schema)
		var no *acl.Refusal
		if errors.As(err, &no) {
			if no.Code != c.code {
				t.Errorf("%s: %s (%s)", c.in, no.Code, no.Public)
			}
		} else if err != nil || st.Text() != c.want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", c.in, err, st.Text(), c.want)
		}
	}
}

// TestAPolicyMeansTheDatabaseOfItsTable shows that an unqualified table in a filter is one of the filtered table's
// database, wherever the statement runs.
func TestAPolicyMeansTheDatabaseOfItsTable(t *testing.T) {
	const policy = `version: 1
principals: {asker: {roles: [reader]}}
grants: [{role: reader, allow: ["*"], actions: [view, query]}]
row_filters: [{table: crm.person, roles: [reader], using: "id in (select id from vip)"}]
`
	schema, err := schemaOf(policy, script{"shop", "CREATE TABLE vip (id INT);"}, script{"crm", "CREATE TABLE person (id INT); CREATE TABLE vip (id INT);"})
	if err != nil {
		t.Fatal(err)
	}
	st, err := rewrite.NewGuard(mysql.New(), 0).Rewrite("select id from crm.person", schema)
	const want = "SELECT `id` FROM (SELECT `_gate`.`id` FROM `crm`.`person` AS `_gate` WHERE (`_gate`.`id` IN (SELECT `_gate_vip`.`id` FROM `crm`.`vip` AS `_gate_vip`))) AS `person`"
	if err != nil || st.Text() != want {
		t.Errorf("%v\ngot  %s\nwant %s", err, st.Text(), want)
	}
}

// TestAPartOfAGovernedTableIsNotAvailable shows that rows cannot be read past the filter of the table that they are of.
func TestAPartOfAGovernedTableIsNotAvailable(t *testing.T) {
	d, objects, err := mysql.New().Objects("db", "CREATE TABLE total (id INT); CREATE TABLE january (id INT);")
	if err != nil {
		t.Fatal(err)
	}
	objects[0].Table.Partitions = []catalog.Ref{catalog.TableRef("db", "", "january")}
	const policy = `version: 1
principals: {asker: {roles: [reader]}}
grants: [{role: reader, allow: ["*"], actions: [view, query]}]
row_filters: [{table: db.total, roles: [reader], using: "id = 1"}]
`
	_, err = rewrite.NewGuard(mysql.New(), 0).Rewrite("select id from january", asked(t, policy, "db", []catalog.Database{d}, objects))
	var no *acl.Refusal
	if !errors.As(err, &no) || no.Code != acl.CodeNotAvailable {
		t.Errorf("got %v", err)
	}
}

// TestReads shows what a statement says that it reads: tables in order of mention, the columns that it names or
// expands, the rules in force.
func TestReads(t *testing.T) {
	schema, err := rewritetest.NewSchema(mysql.New(), fuzzDDL, fuzzPolicy)
	if err != nil {
		t.Fatal(err)
	}
	st, err := rewrite.NewGuard(mysql.New(), 0).Rewrite(
		"select i.amount, (select max(r.name) from region r where r.id = c.region_id) from invoice i natural join (select * from client) c where exists (select 1 from invoice x where x.memo = 'a')", schema)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, read := range st.Reads() {
		line := fmt.Sprintf("%s, %d rules:", read.Table, len(read.Rules))
		for _, c := range read.Columns {
			line += " " + c.Column
		}
		got = append(got, line)
	}
	want := []string{"db.invoice, 1 rules: id tenant amount memo", "db.client, 2 rules: id tenant region_id name", "db.region, 0 rules: id name"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestLimit shows how the cap on rows enters a statement.
func TestLimit(t *testing.T) {
	for in, want := range map[string]string{
		"select id from region":                                       "SELECT `id` FROM `db`.`region` LIMIT 10",
		"select id from region limit 3":                               "SELECT `id` FROM `db`.`region` LIMIT 3",
		"select id from region limit 5, 99":                           "SELECT `id` FROM `db`.`region` LIMIT 5,10",
		"select id from region limit 18446744073709551615":            "SELECT `id` FROM `db`.`region` LIMIT 10",
		"select id from region union select id from region":           "SELECT `id` FROM `db`.`region` UNION SELECT `id` FROM `db`.`region` LIMIT 10",
		"select id from region union (select id from region limit 1)": "SELECT `id` FROM `db`.`region` UNION (SELECT `id` FROM `db`.`region` LIMIT 1) LIMIT 10",
		"(select id from region)":                                     "(SELECT `id` FROM `db`.`region` LIMIT 10)",
		"with x as (select 1 as a) (select a from x)":                 "WITH `x` AS (SELECT 1 AS `a`) (SELECT `a` FROM `x` LIMIT 10)",
	} {
		schema, err := rewritetest.NewSchema(mysql.New(), fuzzDDL, fuzzPolicy)
		if err != nil {
			t.Fatal(err)
		}
		st, err := rewrite.NewGuard(mysql.New(), 10).Rewrite(in, schema)
		if err != nil || st.Text() != want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", in, err, st.Text(), want)
		}
	}
}

// TestBadPolicies shows that a policy that cannot be put in force is a fault, never a statement.
func TestBadPolicies(t *testing.T) {
	for _, using := range []string{
		"tenant = 7) or (1 = 1", "tenant = 7; drop table invoice", "nosuch = 1", "id in (select id from nowhere)", "memo = '{{ principal.tenant }}'", "tenant = 7 -- {{ principal.tenant }}",
		"tenant = {{ principal.list }}", "tenant in (1, {{ principal.list }})", "tenant = ?", "tenant = 7 limit 1", "tenant as x", "sleep(1) = 0", "tenant = @x", "*", "tenant /*! or 1 */ = 7", "tenant = 7, 1", "", "frob(tenant)",
		"exists (select * from region for update)",
	} {
		policy := "version: 1\nprincipals: {asker: {roles: [reader], attributes: {tenant: 7, list: [1, 2]}}}\ngrants:\n  - {role: reader, allow: [\"*\"], actions: [view, query]}\nrow_filters:\n  - table: db.invoice\n    roles: [reader]\n    using: " +
			string(mustJSON(using)) + "\n"
		schema, err := rewritetest.NewSchema(mysql.New(), fuzzDDL, policy)
		if err != nil {
			continue // refused even earlier
		}
		st, err := rewrite.NewGuard(mysql.New(), 0).Rewrite("select id from invoice", schema)
		var no *acl.Refusal
		if err == nil || errors.As(err, &no) && err == error(no) {
			t.Errorf("%s: want a fault, got %v\n%s", using, err, st.Text())
		}
	}
}

func mustJSON(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}
