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
		"index=bm25, no-language":            func(o *eval.Options) { o.Index, o.Language = eval.BM25, "" },
		"language=de":                        func(o *eval.Options) { o.Language = "de" },
		"ablate=values,evidence":             func(o *eval.Options) { o.Ablate = "values" },
		"history=other,names-only=false":     func(o *eval.Options) { o.History, o.NamesOnly = "other", false },
	} {
		want := given
		edit(&want)
		if got, err := changeSettings(given, change); err != nil || got != want {
			t.Errorf("%q: %+v, %v", change, got, err)
		}
	}
	for _, change := range []string{"moods", "history", "drop-descriptions=much", "no-moods", "no-history=past", "bench=x", "parallel=2", "log=x", "names-only,,"} {
		var usage usageError
		if _, err := changeSettings(given, change); !errors.As(err, &usage) || !strings.Contains(err.Error(), "--against") {
			t.Errorf("%q: %v", change, err)
		}
	}
}

// benchFiles writes benchmark data.
func benchFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestEvalPrintsComparesAndReports(t *testing.T) {
	dir := benchFiles(t, map[string]string{
		"bird.schema.jsonl": `{"db":"zoo","table":"animals","column":"kg","description":"heaviness"}
{"db":"zoo","table":"keepers","column":"wage"}`,
		"bird_a.questions.jsonl": `{"id":"1","db":"zoo","question":"heaviness","gold_tables":["animals"],"gold_columns":["animals.kg"]}
{"id":"2","db":"zoo","question":"moods","gold_tables":["keepers"]}`,
		"bird_b.questions.jsonl": `{"id":"1","db":"zoo","question":"wage","gold_tables":["keepers"]}`,
	})
	page := filepath.Join(dir, "out.html")
	var out, messages strings.Builder
	if code := run(t.Context(), []string{"eval", "bird_a", "bird_b", "--bench", dir, "--against", "names-only", "--report", page}, nil, &out, &messages); code != 0 {
		t.Fatalf("exit code %d: %s", code, messages.String())
	}
	for _, want := range []string{
		"bird_a: 2 questions over 1 databases, 2 tables, 2 columns (question only)\n  index local, models embedder builtin-",
		"\n  calibration error / Brier score of the judge: databases 0.",
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

	for _, args := range [][]string{{"--history", "bird_a"}, {"--ablate", "metrics"}, {"--index", "cloud"}, {"--against", "moods"}, {"--language", "de"}, {"--language", "fr"}} {
		if code := run(t.Context(), append([]string{"eval", "bird_a", "--bench", dir}, args...), nil, &out, &messages); code != exitUsage {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
}

func TestEvalPrintsNoContextOfAnIndexThatBuildsNone(t *testing.T) {
	dir := benchFiles(t, map[string]string{
		"bird.schema.jsonl":      `{"db":"zoo","table":"animals","column":"kg"}`,
		"bird_a.questions.jsonl": `{"id":"1","db":"zoo","question":"kg","gold_tables":["animals"],"gold_columns":["animals.kg"]}`,
	})
	for index, context := range map[string]bool{eval.Local: true, eval.BM25: false, eval.Unified: false, eval.Vectors: false} {
		var out, messages strings.Builder
		if code := run(t.Context(), []string{"eval", "bird_a", "--bench", dir, "--index", index, "--parallel", "2"}, nil, &out, &messages); code != 0 {
			t.Fatalf("exit code %d: %s", code, messages.String())
		}
		if strings.Contains(out.String(), "strict recall") != context || strings.Contains(out.String(), "Brier") != context || !strings.Contains(out.String(), "on one core, 2 at once") || messages.Len() > 0 {
			t.Errorf("%s prints\n%s\nand says %s", index, out.String(), messages.String())
		}
		out.Reset()
		if code := run(t.Context(), []string{"eval", "bird_a", "--bench", dir, "--index", index, "--json"}, nil, &out, &messages); code != 0 {
			t.Fatalf("exit code %d: %s", code, messages.String())
		}
		if strings.Contains(out.String(), `"strict_recall"`) != context || !strings.Contains(out.String(), `"column_recall"`) {
			t.Errorf("%s prints\n%s", index, out.String())
		}
	}
}

func TestTablesArePrintedAsAskedFor(t *testing.T) {
	dir := benchFiles(t, map[string]string{
		"bird.schema.jsonl":          `{"db":"zoo","table":"animals","column":"kg","description":"heaviness"}`,
		"bird_train.questions.jsonl": `{"id":"1","db":"zoo","question":"heaviness","gold_tables":["animals"],"gold_columns":["animals.kg"]}`,
	})
	invoke := func(args ...string) (out, messages strings.Builder, code int) {
		code = run(t.Context(), append([]string{"eval", "tables", "--bench", dir}, args...), nil, &out, &messages)
		return out, messages, code
	}
	page := filepath.Join(dir, "out.html")
	out, messages, code := invoke("--report", page)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, messages.String())
	}
	for _, want := range []string{"### Table 1: ", "### Table 2: ", "### Table 4: ", "### Table 6: ", "### Table 7: ", "### Table 8: ", "### Table 12: ", "### Table 13: ", "### Figure 5: ", "### What each part of the ranking is worth"} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("%q is not there once", want)
		}
	}
	if n := strings.Count(out.String(), "bird_train: 1 questions"); n != 10 {
		t.Errorf("%d of 10 tables name the training set", n)
	}
	if text, err := os.ReadFile(page); err != nil || strings.Count(string(text), "<section>") != 10 || strings.Count(string(text), "<polyline") != 2 {
		t.Errorf("the page has %d sections; %v", strings.Count(string(text), "<section>"), err)
	}

	out, messages, code = invoke("--table", "13,10", "--json")
	var doc struct {
		Tables []struct {
			Table string
			Rows  []struct{ Row string }
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &doc); code != 0 || err != nil || len(doc.Tables) != 2 || doc.Tables[0].Table != "13" || doc.Tables[1].Rows[0].Row != "1 table" {
		t.Errorf("exit code %d, %v: %s%s", code, err, out.String(), messages.String())
	}

	for _, args := range [][]string{{"--table", "3"}, {"more"}, {"--index", "bm25"}, {"--history", "bird_train"}, {"--why", "x"}} {
		if _, messages, code := invoke(args...); code != exitUsage {
			t.Errorf("%q: exit code %d, %s", args, code, messages.String())
		}
	}
}

func TestRunsOnTestSetsAreNoted(t *testing.T) {
	dir := benchFiles(t, map[string]string{
		"bird.schema.jsonl":          `{"db":"zoo","table":"animals","column":"kg"}`,
		"bird_dev.questions.jsonl":   `{"id":"1","db":"zoo","question":"kg","gold_tables":["animals"],"gold_columns":["animals.kg"]}`,
		"bird_train.questions.jsonl": `{"id":"1","db":"zoo","question":"kg","gold_tables":["animals"],"gold_columns":["animals.kg"]}`,
	})
	log := filepath.Join(dir, "runs.jsonl")
	invoke := func(args ...string) (messages string, code int) {
		var out, said strings.Builder
		code = run(t.Context(), append([]string{"eval", "--bench", dir}, args...), nil, &out, &said)
		return said.String(), code
	}
	lines := func() []string {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	noted := []string{"--log", log, "--why", "a test", "--commit", "abc"}

	if said, code := invoke(append(noted, "bird_train", "bird_dev", "--against", "names-only")...); code != 0 || said != "" {
		t.Fatalf("exit code %d: %s", code, said)
	}
	got := lines()
	if len(got) != 2 {
		t.Fatalf("two runs on a test set, one of them on names only, leave %d lines", len(got))
	}
	for i, settings := range []string{`"names_only":false`, `"names_only":true`} {
		for _, want := range []string{`"commit":"abc"`, `"why":"a test"`, `"set":"bird_dev"`, `"date":"20`, `"table_recall":{`, settings} {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s is not in %s", want, got[i])
			}
		}
	}
	if said, code := invoke(append(noted, "tables", "--set", "bird_dev", "--table", "13")...); code != 0 || len(lines()) != 2+4 {
		t.Errorf("exit code %d, %s; the log has %d lines, not four more", code, said, len(lines()))
	}

	if said, code := invoke("bird_dev"); code != 0 || !strings.Contains(said, "bird_dev is a test set") || len(lines()) != 6 {
		t.Errorf("exit code %d: %s", code, said)
	}
	if said, code := invoke("bird_train"); code != 0 || said != "" {
		t.Errorf("exit code %d: %s", code, said)
	}
	for _, args := range [][]string{{"--log", log}, {"--why", "x"}, {"--commit", "abc"}} {
		if said, code := invoke(append(args, "bird_dev")...); code != exitUsage || len(lines()) != 6 {
			t.Errorf("%q: exit code %d, %s", args, code, said)
		}
	}
	// The program of this test was not built from a commit.
	if said, code := invoke("--log", log, "--why", "x", "bird_dev"); code != exitUsage || !strings.Contains(said, "--commit") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if _, code := invoke("--log", dir, "--why", "x", "--commit", "abc", "bird_dev"); code == 0 {
		t.Error("a run that could not be noted showed its figures")
	}
}
