package ingest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
)

// warehouse is a small database of two schemas with one table name in both.
func warehouse(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	sqliteFile(t, filepath.Join(dir, "sales.sqlite"), `CREATE TABLE orders (id INTEGER PRIMARY KEY, cust_id INT, order_dt TEXT, amt_net_rev_lcl REAL, status TEXT)`, `CREATE TABLE customers (id INT)`)
	sqliteFile(t, filepath.Join(dir, "crm.sqlite"), `CREATE TABLE customers (id INTEGER PRIMARY KEY, region TEXT)`)
	return "sqlite:" + dir
}

func TestYAMLLaysOverOtherSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "demo.yaml")
	write(t, file, `
version: 1
tables:
  - ref: demo.sales.orders
    description: one row an order
    tags: [core]
    owner: sales-data
    synonyms: [purchases]
    update_frequency: daily
    columns:
      AMT_NET_REV_LCL: {description: net revenue, synonyms: [turnover], tags: [money]}
      status:
        description: where it stands
metrics:
  - name: net_revenue
    synonyms: [revenue, turnover]
    definition: What customers paid, without tax.
    formula: SUM(orders.amt_net_rev_lcl)
    sources: [orders]
    dimensions: [demo.crm.customers.region]
    time: orders.order_dt
    unit: EUR
    aggregation: sum
    filters: ["orders.status <> 'cancelled'"]
    tags: [finance]
    owner: finance-data
relationships:
  - name: orders_customer
    from: [Demo_is_not_it_but_the_end_is.x]
    to: [demo.crm.customers.id]
queries:
  - id: q1
    question: net revenue by region last quarter
    sql: SELECT region, SUM(amt_net_rev_lcl) FROM sales.orders JOIN crm.customers ON customers.id = cust_id GROUP BY region
    tables: [sales.orders, crm.customers]
    join_pattern: orders.cust_id = customers.id
    aggregations: [sum]
    filters: [orders.order_dt]
    count: 42
    last_run: 2026-01-31
`)
	source := warehouse(t)
	_, err := ingest.Load(context.Background(), []string{source, "yaml:" + file}, nil)
	if want := file + ":29: no column is named Demo_is_not_it_but_the_end_is.x"; err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v, want only %q", err, want)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, strings.Replace(string(text), "[Demo_is_not_it_but_the_end_is.x]", `[sales."Orders".cust_id]
    cardinality: many_to_one
    description: who ordered
    join_sql: orders.cust_id = customers.id
    validated: true
    usage: 12`, 1))
	// The order of the sources does not matter: files speak of what databases hold.
	s := load(t, "yaml:"+file, source)

	orders, amount := catalog.TableRef("demo", "sales", "orders"), catalog.ColumnRef("demo", "sales", "orders", "amt_net_rev_lcl")
	table := object(t, s, orders)
	if table.Description != "one row an order" || table.Owner != "sales-data" || !slices.Equal(table.Tags, []string{"core"}) || !slices.Equal(table.Synonyms, []string{"purchases"}) || table.Table.UpdateFrequency != "daily" {
		t.Errorf("orders reads %+v %+v", table, table.Table)
	}
	if c := object(t, s, amount); c.Description != "net revenue" || !slices.Equal(c.Synonyms, []string{"turnover"}) || !slices.Equal(c.Tags, []string{"money"}) {
		t.Errorf("the column reads %+v", c)
	}
	metric := object(t, s, catalog.MetricRef("net_revenue"))
	region, day := catalog.ColumnRef("demo", "crm", "customers", "region"), catalog.ColumnRef("demo", "sales", "orders", "order_dt")
	want := &catalog.Metric{
		Formula: "SUM(orders.amt_net_rev_lcl)", Sources: []catalog.Ref{orders}, Columns: []catalog.Ref{amount, catalog.ColumnRef("demo", "sales", "orders", "status")},
		Dimensions: []catalog.Ref{region}, Time: day, Unit: "EUR", Aggregation: "sum", Filters: []string{"orders.status <> 'cancelled'"},
	}
	if !reflect.DeepEqual(metric.Metric, want) || metric.Description != "What customers paid, without tax." || !slices.Equal(metric.Synonyms, []string{"revenue", "turnover"}) || metric.Owner != "finance-data" || !slices.Equal(metric.Tags, []string{"finance"}) {
		t.Errorf("the metric reads %+v %+v, want %+v", metric, metric.Metric, want)
	}
	relationship := *object(t, s, catalog.RelationshipRef("orders_customer"))
	says := *relationship.Relationship
	says.Mentions = nil // what the catalog itself finds in join_sql
	if want := (&catalog.Relationship{
		From: []catalog.Ref{catalog.ColumnRef("demo", "sales", "orders", "cust_id")}, To: []catalog.Ref{catalog.ColumnRef("demo", "crm", "customers", "id")},
		Type: catalog.DocumentedRelationship, Cardinality: catalog.ManyToOne, JoinSQL: "orders.cust_id = customers.id", Validated: true, Usage: 12,
	}); !reflect.DeepEqual(&says, want) || relationship.Description != "who ordered" {
		t.Errorf("the relationship reads %+v, want %+v", says, want)
	}
	query := object(t, s, catalog.QueryRef("q1")).Query
	if query.Question != "net revenue by region last quarter" || !slices.Contains(query.Tables, orders) || !slices.Equal(query.Filters, []catalog.Ref{day}) ||
		query.Count != 42 || !query.LastRun.Equal(time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)) || query.JoinPattern == "" || !slices.Equal(query.Aggregations, []string{"sum"}) {
		t.Errorf("the query reads %+v", query)
	}
}

func TestYAMLFaultsNameFileAndLine(t *testing.T) {
	source := warehouse(t)
	for _, c := range []struct {
		name, text string
		want       []string // line: message, each in a line of its own
	}{
		{"another version", "version: 2", []string{"1: version must be 1"}},
		{"no version", "metrics: []", []string{"1: version must be 1"}},
		{"nothing at all", "", []string{" the file holds"}},
		{"an unknown key", "version: 1\ntables:\n  - ref: orders\n    colour: red", []string{"4:5: unknown field \"colour\""}},
		{"an unknown key of a column", "version: 1\ntables:\n  - ref: orders\n    columns:\n      id:\n        colour: red", []string{"6:9: unknown field \"colour\""}},
		{"a value of another kind", "version: 1\nqueries:\n  - id: q\n    count: many", []string{"4:12: "}},
		{"an unknown table", "version: 1\ntables:\n  - description: x\n    ref: demo.sales.order", []string{"4: no table is named demo.sales.order"}},
		{"a table without a name", "version: 1\ntables:\n  - description: x", []string{"3: the name of a table is missing"}},
		{"an ambiguous table", "version: 1\ntables:\n  - ref: customers", []string{"3: customers could be demo.crm.customers or demo.sales.customers; write more"}},
		{"an unknown column", "version: 1\ntables:\n  - ref: orders\n    columns:\n      id: {}\n      colour: {}", []string{"6: demo.sales.orders has no column \"colour\""}},
		{"columns as a list", "version: 1\ntables:\n  - ref: orders\n    columns: [id]", []string{"4:1: columns is a mapping"}},
		{"a column where a table belongs", "version: 1\nmetrics:\n  - name: m\n    formula: x\n    sources:\n      - orders.id", []string{"6: no table is named orders.id"}},
		{"a metric of nothing", "version: 1\nmetrics:\n  - name: m", []string{`3: metric "m" lacks formula, sources`}},
		{"a relationship of unequal ends", "version: 1\nrelationships:\n  - name: r\n    from: [orders.id, cust_id]\n    to: [orders.id]\n    cardinality: some", []string{`3: relationship "r" pairs 2 columns with 1`, `3: cardinality "some" is none of`}},
		{"a query of no table", "version: 1\nqueries:\n  - id: q\n    question: why", []string{`3: query "q" lacks tables`}},
		{"a day that is none", "version: 1\nqueries:\n  - id: q\n    question: why\n    tables: [orders]\n    last_run: yesterday", []string{`3: last_run "yesterday" is neither`}},
		{"a name that stands twice", "version: 1\nqueries:\n  - {id: q, question: why, tables: [orders]}\n  - {id: q, question: why, tables: [orders]}", []string{"4: query:q stands twice"}},
		{"a name that does not parse", "version: 1\ntables:\n  - ref: 'demo..orders'", []string{"3: name \"demo..orders\" has an empty segment"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "f.yaml")
			write(t, file, c.text)
			_, err := ingest.Load(context.Background(), []string{source, "yaml:" + file}, nil)
			if err == nil {
				t.Fatal("the file was accepted")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(c.want) {
				t.Fatalf("got %q, want %d faults", lines, len(c.want))
			}
			for i, want := range c.want {
				if !strings.Contains(lines[i], fmt.Sprintf("%s:%s", file, want)) {
					t.Errorf("got %q, want %q", lines[i], want)
				}
			}
		})
	}
}

func TestYAMLAloneNamesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	write(t, file, "version: 1\ntables:\n  - ref: orders")
	src, err := ingest.Open("yaml:" + file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Read(context.Background(), nil); err == nil || !strings.Contains(err.Error(), file+":3: no table is named orders") {
		t.Errorf("got %v", err)
	}
}

func TestYAMLNamesFollowTheDialect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.sqlite")
	sqliteFile(t, path, `CREATE TABLE Orders (Id INT)`)
	file := filepath.Join(t.TempDir(), "f.yaml")
	write(t, file, "version: 1\ntables:\n  - ref: ORDERS\n    columns: {ID: {description: x}}")
	s := load(t, "sqlite:"+path, "yaml:"+file)
	if got := object(t, s, catalog.ColumnRef("shop", "", "Orders", "Id")).Description; got != "x" {
		t.Errorf("SQLite ignores case, yet the column reads %q", got)
	}
	bench := smallBench(t, "spider2_snow", `{"db":"AIR","table":"OPS.Flights","column":"range"}`)
	if _, err := ingest.Load(context.Background(), []string{"bench:" + bench + "/spider2_snow", "yaml:" + file}, nil); err == nil {
		t.Error("Snowflake does not ignore case, yet the name was found")
	}
}
