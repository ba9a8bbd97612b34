package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/catalog/ingest"
)

// benchDir returns the benchmark data's folder. Without it the test is skipped, in CI it fails.
func benchDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SCHEMAGATE_BENCH")
	if dir == "" && os.Getenv("CI") == "true" {
		t.Fatal("SCHEMAGATE_BENCH is not set; CI needs the benchmark data")
	}
	if dir == "" {
		t.Skip("set SCHEMAGATE_BENCH to the benchmark data's bench folder to run this test")
	}
	return dir
}

// command runs a command line and returns its exit code and output.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var out, err bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const heroPolicy = `
version: 1
principals: {alice: {roles: [analyst]}}
grants:
  - {role: analyst, allow: ["superhero"], actions: [view, query]}
`

// TestSuperheroContexts asks ten questions of a public database, and looks for the tables that the known answers read.
func TestSuperheroContexts(t *testing.T) {
	bench := benchDir(t)
	policy := write(t, "policy.yaml", heroPolicy)
	questions, err := ingest.Questions(bench, "bird_dev")
	if err != nil {
		t.Fatal(err)
	}
	asked, found, gold := 0, 0, 0
	for _, q := range questions {
		if q.DB != "superhero" || asked == 10 {
			continue
		}
		asked++
		code, stdout, stderr := command(t, "context", q.Question, "--source", "sqlite:"+bench+"/sqlite/superhero.sqlite", "--policy", policy, "--as", "alice", "--json")
		if code != 0 {
			t.Fatalf("%q: exit code %d: %s", q.Question, code, stderr)
		}
		var c api.Context
		if err := json.Unmarshal([]byte(stdout), &c); err != nil {
			t.Fatal(err)
		}
		if c.Tokens == 0 || c.Tokens > 5000 || c.Database != "superhero" {
			t.Errorf("%q: %d tokens of database %q", q.Question, c.Tokens, c.Database)
		}
		for _, table := range q.GoldTables {
			gold++
			for _, o := range c.Objects {
				if o.Kind == "table" && strings.EqualFold(o.Ref, "superhero."+table) {
					found++
				}
			}
		}
	}
	if asked != 10 || float64(found) < 0.9*float64(gold) {
		t.Errorf("%d questions, %d of %d tables found; want 10 and nine of ten", asked, found, gold)
	}
	t.Logf("%d of %d tables found", found, gold)
}

// TestSuperheroMetric answers a metric question on a public database.
func TestSuperheroMetric(t *testing.T) {
	bench := benchDir(t)
	policy := write(t, "policy.yaml", heroPolicy)
	metrics := write(t, "metrics.yaml", `
version: 1
metrics:
  - name: average height
    synonyms: [mean height]
    definition: average height of the heroes in centimetres, those of unknown height left out
    formula: AVG(superhero.height_cm)
    sources: [superhero.superhero]
    dimensions: [superhero.publisher.publisher_name, superhero.gender.gender]
    unit: cm
    aggregation: avg
    filters: ["superhero.height_cm > 0"]
`)
	code, stdout, stderr := command(t, "ask", "average height by gender", "--source", "sqlite:"+bench+"/sqlite/superhero.sqlite",
		"--source", "yaml:"+metrics, "--policy", policy, "--as", "alice", "--run", "--json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var a api.Answer
	if err := json.Unmarshal([]byte(stdout), &a); err != nil {
		t.Fatal(err)
	}
	if a.Rows == nil {
		t.Fatalf("no rows: %s %+v", a.Reason, a.Refusal)
	}
	// SELECT g.gender, AVG(h.height_cm) FROM superhero h JOIN gender g ON g.id = h.gender_id WHERE h.height_cm > 0 GROUP BY 1
	want := [][]any{{"Female", 217.03424657534248}, {"Male", 372.48541114058355}, {"N/A", 940.7142857142857}}
	if !sameRows(a.Rows.Rows, want) {
		t.Errorf("got %v, want %v from %s", a.Rows.Rows, want, *a.GuardedSQL)
	}
}
