package ingest_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
)

const (
	startPostgres = "docker run --rm -p 5432:5432 -e POSTGRES_PASSWORD=pw postgres:15, then SCHEMAGATE_TEST_POSTGRES=postgres://postgres:pw@127.0.0.1:5432/postgres"
	startMySQL    = "docker run --rm -p 3306:3306 -e MARIADB_ROOT_PASSWORD=pw mariadb:10.11, then SCHEMAGATE_TEST_MYSQL=mysql://root:pw@127.0.0.1:3306"
)

// server returns the address of a test server, whose login may create databases.
func server(t *testing.T, variable, start string) *url.URL {
	t.Helper()
	address := os.Getenv(variable)
	if address == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not set; start one with: %s", variable, start)
		}
		t.Skipf("%s is not set; start one with: %s", variable, start)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// awkward are names that each engine takes once quoted.
var awkward = []string{"with space", `quo"te`, "it's", "back`tick", "a.b", "客户表", "select", "*", `back\slash`, "?", "%s", "x", "X"}

func TestPostgres(t *testing.T) {
	address := server(t, "SCHEMAGATE_TEST_POSTGRES", startPostgres)
	name := "Shop ingest"
	quoted := `"` + name + `"`
	admin, err := sql.Open("pgx", address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	apply(t, admin, "DROP DATABASE IF EXISTS "+quoted, "CREATE DATABASE "+quoted)
	shop := *address
	shop.Path = "/" + name
	db, err := sql.Open("pgx", shop.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db.Close()
		apply(t, admin, "DROP DATABASE "+quoted+" WITH (FORCE)")
	})
	apply(t, db,
		`CREATE SCHEMA sales`, `CREATE SCHEMA crm`,
		`CREATE TABLE customers (id int PRIMARY KEY)`,
		`CREATE TABLE crm.customers (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "E-Mail" varchar(80) NOT NULL UNIQUE, photo bytea, region text)`,
		`COMMENT ON TABLE crm.customers IS 'people who bought'`, `COMMENT ON COLUMN crm.customers."E-Mail" IS 'login name'`,
		`CREATE UNIQUE INDEX ON crm.customers (region) WHERE region <> ''`, `CREATE UNIQUE INDEX ON crm.customers (lower(region))`,
		`CREATE UNIQUE INDEX ON crm.customers (region) INCLUDE (photo)`,
		`INSERT INTO crm.customers ("E-Mail", photo, region) VALUES ('ada@example.org', '\x00', 'EMEA'), ('bob@example.org', NULL, NULL)`,
		`CREATE TYPE sales.mood AS ENUM ('sad', 'glad')`,
		`CREATE TABLE sales."Orders" ("orderNo" int, line int, customer bigint REFERENCES crm.customers, total numeric(10,2), gone int, mood sales.mood, tags text[], PRIMARY KEY (line, "orderNo"))`,
		`ALTER TABLE sales."Orders" DROP COLUMN gone`,
		`INSERT INTO sales."Orders" VALUES (1, 1, 1, 10.50, 'glad', '{a,b}'), (1, 2, 1, NULL, 'sad', NULL)`,
		`CREATE TABLE sales.orders (id int)`,
		`CREATE TABLE sales.parcels (b int, a int, FOREIGN KEY (b, a) REFERENCES sales."Orders" (line, "orderNo"))`,
		`CREATE VIEW sales.big AS SELECT "orderNo" FROM sales."Orders" WHERE total > 5`,
		`CREATE MATERIALIZED VIEW sales.kept AS SELECT count(*) AS n FROM sales."Orders"`,
		`CREATE TABLE sales.events (at date, id int, PRIMARY KEY (at, id)) PARTITION BY RANGE (at)`,
		`CREATE TABLE sales.events_2024 PARTITION OF sales.events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')`,
		`CREATE TABLE sales.events_2025 PARTITION OF sales.events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01')`,
		`INSERT INTO sales.events VALUES ('2024-05-01', 1), ('2025-05-01', 2)`,
		`CREATE TABLE sales.clicks (at date, id int, FOREIGN KEY (at, id) REFERENCES sales.events)`,
		`CREATE TABLE sales.large AS SELECT i % 3 AS kind, CASE WHEN i % 4 = 0 THEN i END AS some FROM generate_series(1, 120000) AS i`, `ANALYZE sales.large`,
		`CREATE TABLE sales.unanalysed WITH (autovacuum_enabled = off) AS SELECT i FROM generate_series(1, 120000) AS i`,
		`CREATE TABLE sales.wide WITH (autovacuum_enabled = off) AS SELECT 'kind ' || i % 3 AS analysed, 'v' || i % 5000 AS many FROM generate_series(1, 120000) AS i`, `ANALYZE sales.wide`,
		`CREATE TABLE sales.guessed WITH (autovacuum_enabled = off) AS SELECT CASE WHEN i > 100000 THEN 'beyond' WHEN i > 90000 THEN 'rare' ELSE 'usual' END AS some,
			CASE WHEN i > 90000 THEN 'v' || i ELSE 'v' END AS too_many FROM generate_series(1, 120000) AS i`,
		`CREATE EXTENSION IF NOT EXISTS pg_stat_statements`,
	)
	for _, n := range awkward {
		apply(t, db, fmt.Sprintf(`CREATE TABLE %s (%s text)`, pgQuote(n), pgQuote(n)), fmt.Sprintf(`INSERT INTO %s VALUES (%s)`, pgQuote(n), "'v'"))
	}

	s := load(t, shop.String())
	if got, want := s.Databases(), []catalog.Database{{Name: name, Dialect: catalog.Postgres, DefaultSchema: "public"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("databases %v, want %v", got, want)
	}
	var tables []string
	for _, o := range s.Objects(catalog.KindTable) {
		if o.Ref.Schema != "public" {
			tables = append(tables, o.Ref.Schema+"."+o.Ref.Table)
		}
	}
	if want := []string{"crm.customers", "sales.Orders", "sales.big", "sales.clicks", "sales.events", "sales.events_2024", "sales.events_2025",
		"sales.guessed", "sales.kept", "sales.large", "sales.orders", "sales.parcels", "sales.unanalysed", "sales.wide"}; !slices.Equal(tables, want) {
		t.Errorf("tables %q, want %q", tables, want)
	}
	for _, n := range append([]string{"customers"}, awkward...) {
		object(t, s, catalog.TableRef(name, "public", n))
		if n != "customers" {
			if got := object(t, s, catalog.ColumnRef(name, "public", n, n)).Column.Samples; !slices.Equal(got, []string{"v"}) {
				t.Errorf("%q: samples %q", n, got)
			}
		}
	}
	if _, ok := s.Lookup(catalog.TableRef(name, "public", "pg_stat_statements")); ok {
		t.Error("an extension's view is in the catalog")
	}

	customers := object(t, s, catalog.TableRef(name, "crm", "customers"))
	if customers.Description != "people who bought" || number(customers.Table.Rows) != int64(2) {
		t.Errorf("crm.customers reads %q with %v rows", customers.Description, number(customers.Table.Rows))
	}
	if want := [][]string{{"E-Mail"}, {"region"}}; !reflect.DeepEqual(customers.Table.UniqueKeys, want) {
		t.Errorf("unique keys %q, want %q: without partial and expression indexes, and without included columns", customers.Table.UniqueKeys, want)
	}
	mail := object(t, s, catalog.ColumnRef(name, "crm", "customers", "E-Mail"))
	if mail.Description != "login name" || mail.Column.Type != "character varying(80)" || !mail.Column.NotNull || number(mail.Column.Distinct) != int64(2) {
		t.Errorf("E-Mail reads %q %+v", mail.Description, mail.Column)
	}
	dictionaries(t, s, map[catalog.Ref][]string{
		catalog.ColumnRef(name, "crm", "customers", "E-Mail"):   {"ada@example.org", "bob@example.org"},
		catalog.ColumnRef(name, "crm", "customers", "id"):       nil,
		catalog.ColumnRef(name, "crm", "customers", "photo"):    nil,
		catalog.ColumnRef(name, "sales", "Orders", "mood"):      {"glad", "sad"},
		catalog.ColumnRef(name, "sales", "Orders", "tags"):      nil,
		catalog.ColumnRef(name, "sales", "wide", "analysed"):    {"kind 0", "kind 1", "kind 2"},
		catalog.ColumnRef(name, "sales", "wide", "many"):        nil,
		catalog.ColumnRef(name, "sales", "guessed", "some"):     {"rare", "usual"},
		catalog.ColumnRef(name, "sales", "guessed", "too_many"): nil,
	})
	if photo := object(t, s, catalog.ColumnRef(name, "crm", "customers", "photo")).Column; photo.Samples != nil || number(photo.NullShare) != 0.5 {
		t.Errorf("photo has samples %q and a null share of %v", photo.Samples, number(photo.NullShare))
	}
	orders := object(t, s, catalog.TableRef(name, "sales", "Orders"))
	if want := []string{"line", "orderNo"}; !slices.Equal(orders.Table.PrimaryKey, want) {
		t.Errorf("primary key %q, want %q", orders.Table.PrimaryKey, want)
	}
	var columns []string
	for _, c := range s.Columns(orders.ID) {
		columns = append(columns, fmt.Sprint(c.Ref.Column, " ", c.Column.Type, " ", c.Column.Samples))
	}
	if want := []string{"orderNo integer [1]", "line integer [1 2]", "customer bigint [1]", "total numeric(10,2) [10.50]", "mood sales.mood [glad sad]", "tags text[] [{a,b}]"}; !slices.Equal(columns, want) {
		t.Errorf("columns %q, want %q", columns, want)
	}
	for table, want := range map[string]catalog.ForeignKey{
		"Orders":  {Columns: []string{"customer"}, To: catalog.TableRef(name, "crm", "customers"), ToColumns: []string{"id"}},
		"parcels": {Columns: []string{"b", "a"}, To: catalog.TableRef(name, "sales", "Orders"), ToColumns: []string{"line", "orderNo"}},
		"clicks":  {Columns: []string{"at", "id"}, To: catalog.TableRef(name, "sales", "events"), ToColumns: []string{"at", "id"}},
	} {
		if got := object(t, s, catalog.TableRef(name, "sales", table)).Table.ForeignKeys; !reflect.DeepEqual(got, []catalog.ForeignKey{want}) {
			t.Errorf("foreign keys of %s: %v, want %v alone", table, got, want)
		}
	}
	events := object(t, s, catalog.TableRef(name, "sales", "events")).Table
	if want := []catalog.Ref{catalog.TableRef(name, "sales", "events_2024"), catalog.TableRef(name, "sales", "events_2025")}; !slices.Equal(events.Partitions, want) || number(events.Rows) != int64(2) {
		t.Errorf("partitions %v with %v rows, want %v with 2", events.Partitions, number(events.Rows), want)
	}
	view, kept := object(t, s, catalog.TableRef(name, "sales", "big")).Table, object(t, s, catalog.TableRef(name, "sales", "kept")).Table
	// Even how many rows a materialised view keeps may tell of rows that a filter on its base tables hides.
	n := object(t, s, catalog.ColumnRef(name, "sales", "kept", "n")).Column
	if !strings.Contains(view.SQLView, `"orderNo"`) || view.Rows != nil || kept.SQLView == "" || kept.Rows != nil || n.Samples != nil || n.Distinct != nil {
		t.Errorf("the view reads %+v and the materialized one %+v", view, kept)
	}
	large := object(t, s, catalog.TableRef(name, "sales", "large")).Table
	kind, some := object(t, s, catalog.ColumnRef(name, "sales", "large", "kind")).Column, object(t, s, catalog.ColumnRef(name, "sales", "large", "some")).Column
	if number(large.Rows) != int64(120000) || number(kind.Distinct) != int64(3) || len(kind.Samples) != 3 {
		t.Errorf("large: %v rows, %v kinds, samples %q", number(large.Rows), number(kind.Distinct), kind.Samples)
	}
	if some.NullShare == nil || *some.NullShare < 0.7 || *some.NullShare > 0.8 {
		t.Errorf("large.some: a null share of %v, want about 0.75", number(some.NullShare))
	}
	if rows := object(t, s, catalog.TableRef(name, "sales", "unanalysed")).Table.Rows; rows == nil || *rows < 60000 || *rows > 240000 {
		t.Errorf("unanalysed: %v rows, want the planner's guess at 120000", number(rows))
	}

	t.Run("is opened to be read", func(t *testing.T) {
		refusesToWrite(t, shop.String(), `INSERT INTO customers VALUES (1)`, `CREATE TABLE made (a int)`, `DELETE FROM crm.customers`)
	})
	t.Run("a missing database is one line", func(t *testing.T) {
		missing := *address
		missing.Path = "/no such one"
		faultOfOneLine(t, &missing, "does not exist")
	})
	t.Run("a wrong password is one line without it", func(t *testing.T) {
		wrong := *address
		wrong.User = url.UserPassword(address.User.Username(), "open sesame")
		faultOfOneLine(t, &wrong, "authentication failed")
	})
}

func dictionaries(t *testing.T, s *catalog.Snapshot, want map[catalog.Ref][]string) {
	t.Helper()
	for ref, values := range want {
		if got := object(t, s, ref).Column.Dictionary; !slices.Equal(got, values) {
			t.Errorf("the dictionary of %s is %q, want %q", ref, got, values)
		}
	}
}

func pgQuote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func refusesToWrite(t *testing.T, spec string, statements ...string) {
	t.Helper()
	src, err := ingest.Open(spec)
	if err != nil {
		t.Fatal(err)
	}
	db, err := src.(ingest.Live).DB(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err == nil {
			t.Errorf("%s was run", s)
		}
	}
}

func faultOfOneLine(t *testing.T, address *url.URL, want string) {
	t.Helper()
	_, err := ingest.Load(context.Background(), []string{address.String()}, nil)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("got %v, want an error that says %q", err, want)
	}
	password, _ := address.User.Password()
	if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "password="+password) || password == "open sesame" && strings.Contains(err.Error(), password) {
		t.Errorf("the error shows the password or has more than one line: %q", err)
	}
}

func TestMySQL(t *testing.T) {
	address := server(t, "SCHEMAGATE_TEST_MYSQL", startMySQL)
	password, _ := address.User.Password()
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s)/", address.User.Username(), password, address.Host))
	if err != nil {
		t.Fatal(err)
	}
	sales, crm, ops := "Ingest sales", "ingest_crm", "ingest_ops"
	drop := func() {
		for _, d := range []string{sales, crm, ops} {
			apply(t, db, "DROP DATABASE IF EXISTS "+myQuote(d))
		}
	}
	drop()
	t.Cleanup(func() {
		drop()
		db.Close()
	})
	for _, d := range []string{sales, crm, ops} {
		apply(t, db, "CREATE DATABASE "+myQuote(d)+" CHARACTER SET utf8mb4")
	}
	apply(t, db,
		"CREATE TABLE ingest_ops.customers (id int)",
		"CREATE TABLE ingest_crm.customers (id bigint AUTO_INCREMENT PRIMARY KEY, `E-Mail` varchar(80) NOT NULL UNIQUE COMMENT 'login name', photo blob, born date, seen timestamp NULL, ok bit(1)) COMMENT 'people who bought'",
		"INSERT INTO ingest_crm.customers (`E-Mail`, photo, born) VALUES ('ada@example.org', x'00ff', '1815-12-10'), ('bob@example.org', NULL, NULL)",
		"CREATE TABLE `Ingest sales`.Orders (orderNo int, line int, customer bigint, total decimal(10,2), mood enum('sad', 'glad'), doc json, PRIMARY KEY (line, orderNo), FOREIGN KEY (customer) REFERENCES ingest_crm.customers (id))",
		"INSERT INTO `Ingest sales`.Orders VALUES (1, 1, 1, 10.50, 'glad', '{\"a\": 1}'), (1, 2, 1, NULL, 'sad', NULL)",
		"CREATE TABLE `Ingest sales`.parcels (b int, a int, FOREIGN KEY (b, a) REFERENCES Orders (line, orderNo))",
		"CREATE VIEW `Ingest sales`.big AS SELECT orderNo FROM `Ingest sales`.Orders WHERE total > 5",
		"CREATE TABLE `Ingest sales`.large (kind int, some int)",
		"INSERT INTO `Ingest sales`.large WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT a.i % 3, IF(a.i % 4 = 0, a.i, NULL) FROM n a, n b LIMIT 120000",
		"ANALYZE TABLE `Ingest sales`.large",
		"CREATE TABLE `Ingest sales`.guessed (some varchar(20), too_many varchar(20))",
		"INSERT INTO `Ingest sales`.guessed WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999), r AS (SELECT a.i + 1000 * b.i AS i FROM n a, n b WHERE b.i < 120) SELECT CASE WHEN i >= 100000 THEN 'beyond' WHEN i > 90000 THEN IF(i % 2, 'Rare', 'rare') ELSE 'usual' END, IF(i > 90000, CONCAT('v', i), 'v') FROM r ORDER BY i",
	)
	var taken []string
	for _, n := range awkward {
		if !slices.ContainsFunc(taken, func(o string) bool { return strings.EqualFold(o, n) }) { // a server may fold names of tables
			taken = append(taken, n)
			apply(t, db, fmt.Sprintf("CREATE TABLE ingest_ops.%s (%s varchar(9))", myQuote(n), myQuote(n)), fmt.Sprintf("INSERT INTO ingest_ops.%s VALUES ('v')", myQuote(n)))
		}
	}

	s := load(t, address.String())
	for _, d := range []string{sales, crm, ops} {
		if got, ok := s.Database(d); !ok || got.Dialect != catalog.MySQL || got.DefaultSchema != "" {
			t.Errorf("database %q reads %+v, %v", d, got, ok)
		}
	}
	for _, system := range []string{"mysql", "information_schema", "performance_schema", "sys"} {
		if _, ok := s.Database(system); ok {
			t.Errorf("the system's database %s is in the catalog", system)
		}
	}
	for _, n := range taken {
		if got := object(t, s, catalog.ColumnRef(ops, "", n, n)).Column.Samples; !slices.Equal(got, []string{"v"}) {
			t.Errorf("%q: samples %q", n, got)
		}
	}
	object(t, s, catalog.TableRef(ops, "", "customers"))
	customers := object(t, s, catalog.TableRef(crm, "", "customers"))
	if customers.Description != "people who bought" || number(customers.Table.Rows) != int64(2) {
		t.Errorf("customers reads %q with %v rows", customers.Description, number(customers.Table.Rows))
	}
	if want := [][]string{{"E-Mail"}}; !reflect.DeepEqual(customers.Table.UniqueKeys, want) {
		t.Errorf("unique keys %q, want %q", customers.Table.UniqueKeys, want)
	}
	mail := object(t, s, catalog.ColumnRef(crm, "", "customers", "E-Mail"))
	if mail.Description != "login name" || mail.Column.Type != "varchar(80)" || !mail.Column.NotNull || number(mail.Column.Distinct) != int64(2) {
		t.Errorf("E-Mail reads %q %+v", mail.Description, mail.Column)
	}
	dictionaries(t, s, map[catalog.Ref][]string{
		catalog.ColumnRef(crm, "", "customers", "E-Mail"):   {"ada@example.org", "bob@example.org"},
		catalog.ColumnRef(crm, "", "customers", "born"):     nil,
		catalog.ColumnRef(crm, "", "customers", "photo"):    nil,
		catalog.ColumnRef(sales, "", "Orders", "mood"):      {"glad", "sad"},
		catalog.ColumnRef(sales, "", "guessed", "some"):     {"Rare", "rare", "usual"},
		catalog.ColumnRef(sales, "", "guessed", "too_many"): nil,
	})
	if photo := object(t, s, catalog.ColumnRef(crm, "", "customers", "photo")).Column; photo.Samples != nil || number(photo.NullShare) != 0.5 {
		t.Errorf("photo has samples %q and a null share of %v", photo.Samples, number(photo.NullShare))
	}
	orders := object(t, s, catalog.TableRef(sales, "", "Orders"))
	if want := []string{"line", "orderNo"}; !slices.Equal(orders.Table.PrimaryKey, want) {
		t.Errorf("primary key %q, want %q", orders.Table.PrimaryKey, want)
	}
	for ref, want := range map[catalog.Ref][]string{
		catalog.ColumnRef(crm, "", "customers", "born"): {"1815-12-10"},
		catalog.ColumnRef(sales, "", "Orders", "total"): {"10.50"},
		catalog.ColumnRef(sales, "", "Orders", "mood"):  {"glad", "sad"},
		catalog.ColumnRef(sales, "", "Orders", "doc"):   {`{"a": 1}`},
	} {
		if got := object(t, s, ref).Column.Samples; !slices.Equal(got, want) {
			t.Errorf("%s: samples %q, want %q", ref, got, want)
		}
	}
	for table, want := range map[string]catalog.ForeignKey{
		"Orders":  {Columns: []string{"customer"}, To: catalog.TableRef(crm, "", "customers"), ToColumns: []string{"id"}},
		"parcels": {Columns: []string{"b", "a"}, To: catalog.TableRef(sales, "", "Orders"), ToColumns: []string{"line", "orderNo"}},
	} {
		if got := object(t, s, catalog.TableRef(sales, "", table)).Table.ForeignKeys; !reflect.DeepEqual(got, []catalog.ForeignKey{want}) {
			t.Errorf("foreign keys of %s: %v, want %v", table, got, want)
		}
	}
	view := object(t, s, catalog.TableRef(sales, "", "big"))
	if !strings.Contains(view.Table.SQLView, "orderNo") || view.Description != "" || view.Table.Rows != nil {
		t.Errorf("the view reads %q %+v", view.Description, view.Table)
	}
	large, kind := object(t, s, catalog.TableRef(sales, "", "large")).Table, object(t, s, catalog.ColumnRef(sales, "", "large", "kind")).Column
	if large.Rows == nil || *large.Rows < 60000 || *large.Rows > 240000 || kind.Distinct != nil || len(kind.Samples) != 3 {
		t.Errorf("large: %v rows, %v kinds, samples %q; want the engine's estimates", number(large.Rows), number(kind.Distinct), kind.Samples)
	}

	one := *address
	one.Path = "/" + sales
	if got, want := load(t, one.String()).Databases(), []catalog.Database{{Name: sales, Dialect: catalog.MySQL}}; !reflect.DeepEqual(got, want) {
		t.Errorf("with a database in the address %v were read, want %v", got, want)
	}
	t.Run("is opened to be read", func(t *testing.T) {
		refusesToWrite(t, address.String(), "INSERT INTO ingest_ops.customers VALUES (1)", "DELETE FROM ingest_crm.customers", "CREATE TABLE ingest_ops.made (a int)")
	})
	t.Run("a missing database is one line", func(t *testing.T) {
		missing := *address
		missing.Path = "/no such one"
		faultOfOneLine(t, &missing, "no such one")
	})
	t.Run("a wrong password is one line without it", func(t *testing.T) {
		wrong := *address
		wrong.User = url.UserPassword(address.User.Username(), "open sesame")
		faultOfOneLine(t, &wrong, "Access denied")
	})
}

func myQuote(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }
