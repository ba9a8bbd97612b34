package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// canary is a word that stands in everything that alice may not see, and nowhere else.
const canary = "kanarie"

const canarySQL = `
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INT REFERENCES customers (id), amount INT, note TEXT, kanarie_flag INT);
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, region TEXT, kanarie_no TEXT);
CREATE TABLE kanarie_vault (id INTEGER PRIMARY KEY, order_id INT REFERENCES orders (id), amount INT);
CREATE VIEW kanarie_sums AS SELECT region, SUM(amount) AS amount FROM orders JOIN customers ON customers.id = customer_id GROUP BY region;
CREATE VIEW order_sums AS SELECT customer_id, SUM(amount) AS total FROM orders GROUP BY customer_id;
INSERT INTO customers VALUES (1, 'ada', 'EMEA', 'kanarie-1'), (2, 'kanarie bv', 'APAC', 'kanarie-2'), (3, 'cyd', 'EMEA', 'kanarie-3');
INSERT INTO orders VALUES (1, 1, 10, 'fine', 1), (2, 2, 20, 'kanarie note', 1), (3, 3, 30, 'late', 0);
INSERT INTO kanarie_vault VALUES (1, 1, 5);
`

const canaryCatalog = `
version: 1
tables:
  - ref: shop.orders
    description: one line a sale
    columns:
      kanarie_flag: {description: kanarie, synonyms: [kanarie word]}
  - {ref: shop.kanarie_vault, description: where the kanarie sings, tags: [kanarie], owner: kanarie}
metrics:
  - {name: kanarie_total, synonyms: [total amount], definition: kanarie sum, formula: SUM(kanarie_vault.amount), sources: [shop.kanarie_vault]}
  - {name: revenue, definition: what was sold, formula: SUM(orders.amount), sources: [shop.orders], dimensions: [shop.customers.region]}
relationships:
  - {name: kanarie_link, from: [shop.orders.id], to: [shop.kanarie_vault.order_id], description: kanarie}
queries:
  - {id: q1, question: how often does the kanarie sing, sql: SELECT COUNT(*) FROM kanarie_vault, tables: [shop.kanarie_vault], count: 5}
  - {id: q2, question: what did kanarie bv buy, sql: "SELECT amount FROM orders JOIN customers ON customers.id = customer_id WHERE name = 'kanarie bv'", tables: [shop.orders, shop.customers], count: 5}
`

const canaryPolicy = `
version: 1
principals:
  alice: {roles: [analyst], attributes: {region: EMEA}}
  tool: {roles: [analyst, all], attributes: {region: EMEA}, acts_for: [analyst]}
grants:
  - {role: analyst, allow: ["shop"], actions: [view, query]}
  - {role: analyst, deny: ["shop.*.kanarie*", "shop.kanarie*"]}
  - {role: all, allow: ["*"], actions: [view, query]}
row_filters:
  - {table: shop.customers, roles: [analyst], using: "region = {{ principal.region }}"}
  - {table: shop.orders, roles: [analyst], using: "customer_id IN (SELECT id FROM customers WHERE region = {{ principal.region }})"}
`

// TestNoSurfaceSaysAWordOfWhatIsHidden asks everything that can name an object, on every way that there is so far, and looks
// for a word that stands in hidden tables, columns, rows, views, metrics, relationships, past questions and their texts.
// The audit log alone may say it.
func TestNoSurfaceSaysAWordOfWhatIsHidden(t *testing.T) {
	dir := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(canarySQL); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	policy, notes := write(t, "policy.yaml", canaryPolicy), write(t, "catalog.yaml", canaryCatalog)
	audit := filepath.Join(dir, "audit.jsonl")
	var logged bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { slog.SetDefault(before) })
	t.Setenv("XDG_STATE_HOME", dir)

	questions := []string{
		"amount of orders by region", "revenue by region", "total amount", "how often does the bird sing", "what did the company buy",
		"vault", "flag of orders", "customers with their number", "orders with a note", "list all tables", "everything about orders and customers", "zzz",
	}
	statements := []string{
		"SELECT * FROM orders", "SELECT * FROM orders NATURAL JOIN customers", "SELECT o.*, c.* FROM orders o JOIN customers c ON c.id = o.customer_id",
		"SELECT * FROM order_sums", "SELECT name FROM customers", "SELECT nothing_like_it FROM orders", "SELECT * FROM nothing_like_it", "SELECT 1/0 FROM orders",
		"SELECT rowid FROM orders", "SELECT sql FROM sqlite_master", "SELECT * FROM pragma_table_info('orders')", "DELETE FROM orders", "SELECT", "SELECT note FROM orders WHERE note LIKE 'k%'",
		"SELECT (SELECT name FROM customers c WHERE c.id = customer_id), count(*) FROM orders GROUP BY 1", "SELECT group_concat(note) FROM orders", "SELECT max(name) FROM customers",
		"SELECT abs(-9223372036854775808 + amount) FROM orders", "SELECT json_group_array(name) FROM customers",
	}
	asked := 0
	look := func(stdin string, args ...string) {
		t.Helper()
		for _, who := range [][]string{{"--as", "alice"}, {"--as", "tool", "--on-behalf-of", "alice"}} {
			for _, form := range [][]string{nil, {"--json"}} {
				line := append(append(append([]string{}, args...), who...), form...)
				line = append(line, "--policy", policy, "--source", "sqlite:"+filepath.Join(dir, "shop.db"), "--source", "yaml:"+notes, "--audit", audit)
				var stdout, stderr bytes.Buffer
				code := run(context.Background(), line, strings.NewReader(stdin), &stdout, &stderr)
				asked++
				for name, text := range map[string]string{"stdout": stdout.String(), "stderr": stderr.String(), "the log": logged.String()} {
					if strings.Contains(strings.ToLower(text), canary) {
						t.Fatalf("%q (%s, exit code %d): %s says\n%s", line, stdin, code, name, text)
					}
				}
			}
		}
	}
	for _, q := range questions {
		look("", "context", q)
		look("", "ask", q)
		look("", "ask", q, "--run")
		for _, strategy := range []string{"whole", "tables", "retrieval"} {
			look("", "context", q, "--strategy", strategy)
		}
	}
	for _, s := range statements {
		look(s, "guard")
		look(s, "guard", "--diff")
	}
	// Somebody who may see it gets it: the word is there to be found.
	var stdout bytes.Buffer
	code := run(context.Background(), []string{"context", "vault", "--as", "tool", "--policy", write(t, "all.yaml", strings.Replace(canaryPolicy, "roles: [analyst, all]", "roles: [all]", 1)),
		"--source", "sqlite:" + filepath.Join(dir, "shop.db"), "--audit", audit}, strings.NewReader(""), &stdout, &bytes.Buffer{})
	if code != 0 || !strings.Contains(stdout.String(), canary) || asked < 300 {
		t.Errorf("exit code %d after %d answers: %s", code, asked, stdout.String())
	}
	if kept := fmt.Sprint(readFile(t, audit)); !strings.Contains(kept, canary) {
		t.Error("the audit log does not say what was withheld")
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
