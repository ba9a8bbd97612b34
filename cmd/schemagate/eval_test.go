package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/retrieval/eval"
)

func TestSettingsOfAComparisonChangeOnlyWhatTheyName(t *testing.T) {
	given := eval.Options{Bench: "dir", Limit: 7, Evidence: true, NamesOnly: true, History: "past", DropDescriptions: 0.2, Index: eval.Local}
	for change, edit := range map[string]func(*eval.Options){
		"":                                   func(*eval.Options) {},
		"no-names-only":                      func(o *eval.Options) { o.NamesOnly = false },
		"no-history":                         func(o *eval.Options) { o.History = "" },
		"no-drop-descriptions":               func(o *eval.Options) { o.DropDescriptions = 0 },
		"drop-descriptions=0.5, no-evidence": func(o *eval.Options) { o.DropDescriptions, o.Evidence = 0.5, false },
		"ablate=values,evidence":             func(o *eval.Options) { o.Ablate = "values" },
		"history=other,names-only=false":     func(o *eval.Options) { o.History, o.NamesOnly = "other", false },
	} {
		want := given
		edit(&want)
		if got, err := changeSettings(given, change); err != nil || got != want {
			t.Errorf("%q: %+v, %v", change, got, err)
		}
	}
	for _, change := range []string{"moods", "history", "drop-descriptions=much", "no-moods", "no-history=past", "bench=x", "names-only,,"} {
		var usage usageError
		if _, err := changeSettings(given, change); !errors.As(err, &usage) || !strings.Contains(err.Error(), "--against") {
			t.Errorf("%q: %v", change, err)
		}
	}
}

func TestEvalPrintsComparesAndReports(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"bird.schema.jsonl": `{"db":"zoo","table":"animals","column":"kg","description":"heaviness"}
{"db":"zoo","table":"keepers","column":"wage"}`,
		"bird_a.questions.jsonl": `{"id":"1","db":"zoo","question":"heaviness","gold_tables":["animals"],"gold_columns":["animals.kg"]}
{"id":"2","db":"zoo","question":"moods","gold_tables":["keepers"]}`,
		"bird_b.questions.jsonl": `{"id":"1","db":"zoo","question":"wage","gold_tables":["keepers"]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page := filepath.Join(dir, "out.html")
	var out, messages strings.Builder
	if code := run(t.Context(), []string{"eval", "bird_a", "bird_b", "--bench", dir, "--against", "names-only", "--report", page}, nil, &out, &messages); code != 0 {
		t.Fatalf("exit code %d: %s", code, messages.String())
	}
	for _, want := range []string{
		"bird_a: 2 questions over 1 databases, 2 tables, 2 columns (question only)",
		"bird_a: 2 questions over 1 databases, 2 tables, 2 columns (names only)",
		"bird_a: what the first run has over the second (names-only)",
		"table recall@5        +50.0   95% interval 0.0 to +100.0",
		"all tables in 5    only the first run 1, only the second 0 questions; p = 1.000",
		"bird_b: what the first run has over the second (names-only)",
		"1 gold tables of 1 questions are not among the first five",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	text, err := os.ReadFile(page)
	if err != nil || strings.Count(string(text), "<section>") != 6 {
		t.Errorf("the page has %d sections, not 2 comparisons and 4 runs; %v", strings.Count(string(text), "<section>"), err)
	}

	out.Reset()
	if code := run(t.Context(), []string{"eval", "bird_a", "--bench", dir, "--against", "names-only", "--json"}, nil, &out, &messages); code != 0 {
		t.Fatalf("exit code %d: %s", code, messages.String())
	}
	var doc struct {
		First, Second struct{ Questions int }
		Tables        struct {
			First int `json:"only_first"`
		} `json:"all_tables_in_5"`
	}
	if err := json.Unmarshal([]byte(out.String()), &doc); err != nil || doc.First.Questions != 2 || doc.Second.Questions != 2 || doc.Tables.First != 1 {
		t.Errorf("%+v, %v", doc, err)
	}

	for _, args := range [][]string{{"--history", "bird_a"}, {"--ablate", "metrics"}, {"--index", "cloud"}, {"--against", "moods"}} {
		if code := run(t.Context(), append([]string{"eval", "bird_a", "--bench", dir}, args...), nil, &out, &messages); code != exitUsage {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
}
