package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/schemagate/schemagate/api"
)

// server returns the URL of a server under test. Without one the test is skipped, in CI it fails.
func server(t *testing.T, variable string) *url.URL {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" && os.Getenv("CI") == "true" {
		t.Fatalf("%s is not set; CI needs the server", variable)
	}
	if text == "" {
		t.Skipf("set %s to a server's URL to run this test; eval \"$(.ci/services start)\" starts one", variable)
	}
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// The live warehouse has three namespaces, tables of the same name in two of them, and names in mixed case.
// q quotes a name, and in stands in front of the name of a namespace.
func liveTables(q, in string) []string {
	name := func(parts ...string) string {
		if len(parts) == 2 {
			parts[0] = in + parts[0]
		}
		return q + strings.Join(parts, q+"."+q) + q
	}
	return []string{
		`CREATE TABLE ` + name("Sales", "Orders") + ` (id int primary key, ` + name("custId") + ` int, ` + name("NetAmount") + ` int, region varchar(10), ` + name("OrderDate") + ` date)`,
		`CREATE TABLE ` + name("Crm", "Customers") + ` (id int primary key, ` + name("Segment") + ` varchar(20), ssn varchar(20))`,
		`CREATE TABLE ` + name("Archive", "Orders") + ` (id int primary key, ` + name("NetAmount") + ` int, region varchar(10))`,
		`INSERT INTO ` + name("Crm", "Customers") + ` VALUES (1, 'Retail', '111'), (2, 'Trade', '222')`,
		`INSERT INTO ` + name("Sales", "Orders") + ` VALUES (1, 1, 100, 'EMEA', '2025-01-05'), (2, 2, 40, 'EMEA', '2025-02-05'), (3, 1, 7, 'AMER', '2025-03-05'), (4, 2, 1000, 'EMEA', '2024-03-05')`,
		`INSERT INTO ` + name("Archive", "Orders") + ` VALUES (1, 5, 'EMEA')`,
	}
}

// liveFiles writes the metric and the policy; in stands in front of the namespaces in refs.
func liveFiles(t *testing.T, in string) (metrics, policy string) {
	metrics = write(t, "metrics.yaml", strings.ReplaceAll(`
version: 1
metrics:
  - name: net revenue
    synonyms: [turnover]
    definition: sum of the net amounts of orders
    formula: SUM(Orders.NetAmount)
    sources: [IN.Sales.Orders]
    dimensions: [IN.Sales.Orders.region, IN.Crm.Customers.Segment]
    time: IN.Sales.Orders.OrderDate
    aggregation: sum
relationships:
  - name: orders_customers
    from: [IN.Sales.Orders.custId]
    to: [IN.Crm.Customers.id]
    cardinality: many_to_one
    validated: true
`, "IN.", in))
	policy = write(t, "policy.yaml", strings.ReplaceAll(`
version: 1
principals:
  alice: {roles: [emea], attributes: {region: EMEA}}
  bob: {roles: [global]}
  carol: {roles: [crm]}
  dave: {roles: [amer], attributes: {region: AMER}}
roles: {emea: {inherits: [analyst]}, global: {inherits: [analyst]}}
grants:
  - {role: analyst, allow: ["IN.Sales", "IN.Crm", "IN.Archive"], actions: [view, query]}
  - {role: analyst, deny: ["IN.Crm.Customers.ssn"]}
  - {role: crm, allow: ["IN.Crm"], actions: [view, query]}
  - {role: amer, allow: ["IN.Sales", "IN.Crm.Customers.id", "IN.Crm.Customers.Segment"], actions: [view, query]}
  - {role: amer, deny: ["IN.Sales.Orders.custId"]}
row_filters:
  - {table: IN.Sales.Orders, roles: [amer], using: "region = {{ principal.region }}"}
  - {table: IN.Sales.Orders, roles: [emea], using: "region = {{ principal.region }}"}
  - {table: IN.Sales.Orders, roles: [global], using: "1 = 1"}
`, "IN.", in))
	return metrics, policy
}

func TestLivePostgres(t *testing.T) {
	u := server(t, "SCHEMAGATE_TEST_POSTGRES")
	admin := openDB(t, "pgx", u.String())
	name := fmt.Sprintf("live_%d", os.Getpid())
	execSQL(t, admin, "CREATE DATABASE "+name)
	t.Cleanup(func() { execSQL(t, admin, "DROP DATABASE "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	db := openDB(t, "pgx", u.String())
	for _, schema := range []string{"Sales", "Crm", "Archive"} {
		execSQL(t, db, `CREATE SCHEMA "`+schema+`"`)
	}
	for _, statement := range liveTables(`"`, "") {
		execSQL(t, db, statement)
	}
	metrics, policy := liveFiles(t, name+".")
	// PostgreSQL folds unquoted names, and the formula is SQL.
	replace(t, metrics, "SUM(Orders.NetAmount)", `SUM("Orders"."NetAmount")`)
	live(t, u.String(), metrics, policy)
}

// databases begins the names of the databases that the test creates, so that it drops nothing of anybody else's.
const databases = "schemagate_live_"

func TestLiveMariaDB(t *testing.T) {
	u := server(t, "SCHEMAGATE_TEST_MYSQL")
	password, _ := u.User.Password()
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr = u.User.Username(), password, "tcp", u.Host
	db := openDB(t, "mysql", c.FormatDSN())
	for _, schema := range []string{"Sales", "Crm", "Archive"} {
		execSQL(t, db, "DROP DATABASE IF EXISTS "+databases+schema)
		execSQL(t, db, "CREATE DATABASE "+databases+schema)
		t.Cleanup(func() { execSQL(t, db, "DROP DATABASE "+databases+schema) })
	}
	for _, statement := range liveTables("`", databases) {
		execSQL(t, db, statement)
	}
	metrics, policy := liveFiles(t, databases)
	live(t, u.String(), metrics, policy)
}

// live asks the same of every server.
func live(t *testing.T, source, metrics, policy string) {
	ask := func(t *testing.T, who, question string) api.Answer {
		t.Helper()
		code, stdout, stderr := command(t, "ask", question, "--source", source, "--source", "yaml:"+metrics, "--policy", policy, "--as", who, "--run", "--json")
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		var a api.Answer
		if err := json.Unmarshal([]byte(stdout), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, c := range []struct {
		who, question string
		want          [][]any
	}{
		{"alice", "net revenue by region in 2025", [][]any{{"EMEA", 140}}},
		{"bob", "net revenue by region in 2025", [][]any{{"EMEA", 140}, {"AMER", 7}}},
		{"alice", "turnover by segment", [][]any{{"Retail", 100}, {"Trade", 1040}}},
		{"bob", "turnover by segment", [][]any{{"Retail", 107}, {"Trade", 1040}}},
	} {
		t.Run(c.who+": "+c.question, func(t *testing.T) {
			a := ask(t, c.who, c.question)
			if a.Rows == nil || !sameRows(a.Rows.Rows, c.want) {
				t.Errorf("got %+v (%s %+v), want %v", a.Rows, a.Reason, a.Refusal, c.want)
			}
			if strings.Contains(fmt.Sprintf("%+v", a), "ssn") {
				t.Error("a hidden column's name got out")
			}
		})
	}
	t.Run("three principals get three contexts, statements and truths", func(t *testing.T) {
		contexts, statements := map[string]bool{}, map[string]bool{}
		for who, want := range map[string][][]any{"alice": {{"EMEA", 140}}, "bob": {{"EMEA", 140}, {"AMER", 7}}, "dave": {{"AMER", 7}}} {
			a := ask(t, who, "net revenue of orders by region and customer segment in 2025")
			b := ask(t, who, "net revenue by region in 2025")
			if b.Rows == nil || !sameRows(b.Rows.Rows, want) {
				t.Errorf("%s got %+v (%s %+v), want %v", who, b.Rows, b.Reason, b.Refusal, want)
				continue
			}
			contexts[a.Text] = true
			statements[*b.GuardedSQL] = true
		}
		if len(contexts) != 3 || len(statements) != 3 {
			t.Errorf("%d contexts and %d statements", len(contexts), len(statements))
		}
	})
	t.Run("carol knows of no orders", func(t *testing.T) {
		a := ask(t, "carol", "net revenue by region in 2025")
		if a.SQL != nil || a.Rows != nil || strings.Contains(fmt.Sprintf("%+v", a.Objects), "Orders") {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("a context names the right one of two tables of the same name", func(t *testing.T) {
		code, stdout, stderr := command(t, "context", "order date of orders by customer segment", "--source", source, "--source", "yaml:"+metrics, "--policy", policy, "--as", "bob", "--json")
		if code != 0 || !strings.Contains(stdout, "Sales.Orders.OrderDate") || !strings.Contains(stdout, "Crm.Customers.Segment") {
			t.Errorf("exit code %d: %s%s", code, stdout, stderr)
		}
	})
}

func openDB(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func execSQL(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func replace(t *testing.T, file, old, new string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), old, new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}
