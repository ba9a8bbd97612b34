package rewritetest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// Case is a statement with the executed truth: what it returns on a database from which hidden rows, tables and
// columns were removed and to which masks were applied.
type Case struct {
	ID      string `json:"id"`
	Dialect string `json:"dialect"`
	Shape   string `json:"shape"`
	Setup   string `json:"setup"` // creates and fills the database
	Policy  struct {
		Rows        map[string]string `json:"rows"`
		DenyTables  []string          `json:"deny_tables"`
		DenyColumns []string          `json:"deny_columns"`
		Masks       map[string]string `json:"masks"`
	} `json:"policy"`
	SQL     string  `json:"sql"`
	Expect  string  `json:"expect"` // rows, deny or rows_or_deny
	Rows    [][]any `json:"expected_rows"`
	Ordered bool    `json:"ordered"`
	Why     string  `json:"why"`
}

// Cases reads the cases of a dialect from the benchmark data. Without the data the test is skipped, in CI it fails.
func Cases(t *testing.T, dialect string) []Case {
	t.Helper()
	bench := os.Getenv("SCHEMAGATE_BENCH")
	if bench == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("SCHEMAGATE_BENCH is not set; CI needs the benchmark data")
		}
		t.Skip("set SCHEMAGATE_BENCH to the benchmark data's bench folder to run the executed cases")
	}
	f, err := os.Open(filepath.Join(bench, "..", "rewrite", "cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []Case
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c Case
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Dialect == dialect {
			out = append(out, c)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatalf("no cases of dialect %s", dialect)
	}
	return out
}

// PolicyFile writes the case's policy as a policy file for Asker. qualify turns a name of the case ("client",
// "client.ssn") into one of the catalog ("db.public.client", "db.public.client.ssn").
func (c Case) PolicyFile(qualify func(string) string) (string, error) {
	role := []string{"reader"}
	grants := []map[string]any{{"role": "reader", "allow": []string{"*"}, "actions": []string{"view", "query"}}}
	var deny []string
	for _, n := range append(c.Policy.DenyTables, c.Policy.DenyColumns...) {
		deny = append(deny, qualify(n))
	}
	if len(deny) > 0 {
		grants = append(grants, map[string]any{"role": "reader", "deny": deny})
	}
	var filters, masks []map[string]any
	for table, using := range c.Policy.Rows {
		filters = append(filters, map[string]any{"table": qualify(table), "roles": role, "using": using})
	}
	for column, expression := range c.Policy.Masks {
		masks = append(masks, map[string]any{"column": qualify(column), "roles": role, "with": map[string]any{"expression": expression}})
	}
	file := map[string]any{
		"version":    1,
		"principals": map[string]any{Asker: map[string]any{"roles": role}},
		"grants":     grants,
	}
	if filters != nil {
		file["row_filters"] = filters
	}
	if masks != nil {
		file["masks"] = masks
	}
	b, err := yaml.Marshal(file)
	if err != nil {
		return "", fmt.Errorf("rewritetest: policy of %s: %w", c.ID, err)
	}
	return strings.TrimSpace(string(b)) + "\n", nil
}
