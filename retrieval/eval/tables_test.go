package eval

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// study prepares a study of a small set, and counts the runs.
func study(t *testing.T, dir, set string, o Options) (*Study, *[]Options) {
	t.Helper()
	var ran []Options
	o.Bench = dir
	return NewStudy(set, o, func(ctx context.Context, set string, o Options) (Report, error) {
		ran = append(ran, o)
		return Run(ctx, set, o, nil)
	}), &ran
}

func table(t *testing.T, s *Study, name string) Table {
	t.Helper()
	out, err := s.Table(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range out.Rows {
		if len(r.Ours) != len(out.Columns) || len(r.Paper) != len(out.Columns) {
			t.Errorf("table %s, %s: %d of our figures and %d of the paper's in %d columns", name, r.Name, len(r.Ours), len(r.Paper), len(out.Columns))
		}
	}
	return out
}

// cells writes a row as people read it: its name, then ours and the paper's.
func cells(t *testing.T, from Table, row string) string {
	t.Helper()
	_, rows := from.grid()
	for _, r := range rows {
		if r[0] == row {
			return strings.Join(r[1:], " | ")
		}
	}
	t.Fatalf("table %s has no row %q, but %q", from.Name, row, rows)
	return ""
}

func TestTablesPutThePapersFiguresBesideOurs(t *testing.T) {
	s, _ := study(t, zoo(t), "bird_now", Options{})
	for name, rows := range map[string]map[string]string{
		"1": {
			"BM25 over the templates":                      "50.0 (0.0 to 100.0) | 50.0 | 50.0 (0.0 to 100.0) | 0.500 (0.000 to 1.000) | 50.0 (0.0 to 100.0) | 50.0 | 63.4 | 28.7 | 0.438 | –",
			"vectors, no reranker":                         "50.0 (0.0 to 100.0) | 50.0 | 50.0 (0.0 to 100.0) | 0.500 (0.000 to 1.000) | 50.0 (0.0 to 100.0) | 82.8 | 94.3 | 44.4 | 0.624 | –",
			"all of it (the paper's vectors and reranker)": "50.0 (0.0 to 100.0) | 50.0 | 50.0 (0.0 to 100.0) | 0.500 (0.000 to 1.000) | 50.0 (0.0 to 100.0) | 89.1 | 96.4 | 55.5 | 0.761 | 96.9",
			"the same with history":                        "n/a | n/a | n/a | n/a | n/a | – | – | – | – | –",
		},
		"2": {
			"all of it":             "50.0 (0.0 to 100.0) | 50.0 (0.0 to 100.0) | – | – | 89.1 | 55.5 | – | –",
			"without past queries":  "n/a | n/a | n/a | n/a | 84.2 | 52.1 | -4.9 | -3.4",
			"without metrics":       "n/a | n/a | n/a | n/a | 85.0 | 53.8 | -4.1 | -1.7",
			"without relationships": "50.0 (0.0 to 100.0) | 50.0 (0.0 to 100.0) | 0.0 (0.0 to 0.0) | 0.0 (0.0 to 0.0) | 87.4 | 52.3 | -1.7 | -3.2",
			"without sample values": "50.0 (0.0 to 100.0) | 50.0 (0.0 to 100.0) | 0.0 (0.0 to 0.0) | 0.0 (0.0 to 0.0) | – | – | – | –",
		},
		"4": {
			"1 table (2 questions)": "50.0 (0.0 to 100.0) | 50.0 (0.0 to 100.0) | 96.9 | 73.4",
			"2 tables":              "n/a | n/a | 88.5 | 51.3",
			"3 to 4 tables":         "n/a | n/a | 79.7 | 45.0",
			"5 tables or more":      "n/a | n/a | – | –",
		},
		"7": {
			"columns, vectors, no reranker":                         "50.0 | 50.0 | 50.0 | 50.0 | 50.0 | 50.0 | 14.2 | 24.8 | 33.4 | 44.4 | 55.2 | 68.9",
			"columns, all of it (the paper's vectors and reranker)": "50.0 | 50.0 | 50.0 | 50.0 | 50.0 | 50.0 | 21.7 | 34.5 | 43.9 | 55.5 | 64.1 | 76.3",
		},
		"8": {
			"one gold table, without history": "50.0 | 50.0 | 50.0 | 50.0 | 50.0 | 50.0 | 38.5 | 59.2 | 71.0 | 82.4 | 89.7 | 94.3",
			"with history":                    "n/a | n/a | n/a | n/a | n/a | n/a | 74.1 | 87.6 | 92.3 | 94.2 | 95.0 | 96.8",
		},
		"12": {
			"as it ships":     "50.0 (0.0 to 100.0) | 50.0 (0.0 to 100.0) | – | –",
			"0.3 / 0.5 / 0.2": "50.0 (0.0 to 100.0) | 50.0 (0.0 to 100.0) | 89.1 | 55.5",
		},
		"13": {
			"BM25 over the templates, one collection":          "50.0 (0.0 to 100.0) | 50.0 (0.0 to 100.0) | – | –",
			"vectors and reranker, one collection":             "n/a | n/a | 78.3 | 45.0",
			"vectors, no reranker, a collection for each type": "50.0 (0.0 to 100.0) | 50.0 (0.0 to 100.0) | – | –",
		},
		"figure5": {
			"0% dropped":  "50.0 (0.0 to 100.0) | 50.0 (0.0 to 100.0) | 80.7 | 44.9",
			"75% dropped": "n/a | n/a | – | –", // nothing is described
		},
	} {
		got := table(t, s, name)
		for row, want := range rows {
			if got := cells(t, got, row); got != want {
				t.Errorf("table %s, %s:\n%s\nwant\n%s", name, row, got, want)
			}
		}
		if got.Set != "bird_now" || got.Questions != 2 || got.Settings.Columns != 4 || got.Title == "" {
			t.Errorf("table %s: %s, %d questions, %+v", name, got.Set, got.Questions, got.Settings)
		}
	}
	if ten := table(t, s, "10"); cells(t, ten, "1 table (2 questions)") != cells(t, table(t, s, "4"), "1 table (2 questions)") {
		t.Error("tables 4 and 10 differ")
	}
	if _, err := s.Table(context.Background(), "3"); !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), `no table "3"; name one of 1, 2, 4`) {
		t.Errorf("%v", err)
	}
}

func TestWhatASetHoldsIsMeasured(t *testing.T) {
	dir := zoo(t)
	write(t, dir, map[string][]string{"bird_now.schema.jsonl": {
		`{"db":"zoo","table":"animals","column":"name","description":"of residents","natural_table":"beasts"}`,
		`{"db":"zoo","table":"keepers","column":"wage"}`,
	}})
	s, _ := study(t, dir, "bird_now", Options{})
	ablated := table(t, s, "2")
	for row, want := range map[string]string{
		"without descriptions and other names of tables": "100.0 (100.0 to 100.0) | 100.0 (100.0 to 100.0) | 0.0 (0.0 to 0.0) | 0.0 (0.0 to 0.0) | 87.2 | 54.1 | -1.9 | -1.4",
		"without column objects":                         "50.0 (0.0 to 100.0) | 50.0 (0.0 to 100.0) | -50.0 (-100.0 to 0.0) | -50.0 (-100.0 to 0.0) | 88.3 | 52.7 | -0.8 | -2.8",
	} {
		if got := cells(t, ablated, row); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", row, got, want)
		}
	}
	noise := table(t, s, "figure5")
	for _, r := range noise.Rows {
		if r.Missing != "" || r.Ours[0] == nil {
			t.Errorf("%s: %+v", r.Name, r)
		}
	}
	if c := curves(noise); len(c) != 2 || len(c[0].Points) != 4 || c[0].Points[0].Y != chartTop || curves(ablated) != nil {
		t.Errorf("the curves are %+v", c)
	}
}

func TestEachPartOfTheRankingIsLeftOutInOneTable(t *testing.T) {
	s, _ := study(t, town(t), "bird_town", Options{})
	got := table(t, s, "parts")
	// Of four questions only one has gold columns; the first four figures are plain, the others have their intervals.
	for row, want := range map[string]string{
		"all of it": "100.0 | 100.0 | 1.000 | 100.0 | – | – | – | –",
		"without vectors: only words, values and the judge": "50.0 | 0.0 | 0.500 | 50.0 | -50.0 (-100.0 to 0.0) | -100.0 (-100.0 to -100.0) | -0.500 (-1.000 to 0.000) | -50.0 (-100.0 to 0.0)",
		"without the search for values":                     "100.0 | 100.0 | 0.875 | 100.0 | 0.0 (0.0 to 0.0) | 0.0 (0.0 to 0.0) | -0.125 (-0.375 to 0.000) | 0.0 (0.0 to 0.0)",
	} {
		if got := cells(t, got, row); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", row, got, want)
		}
	}
	if len(got.Rows) != 7 || got.heading() != "What each part of the ranking is worth" || strings.Contains(got.about(), "The paper") {
		t.Errorf("%s: %s\n%+v", got.heading(), got.about(), got.Rows)
	}
	for _, r := range got.Rows {
		if r.Missing != "" {
			t.Errorf("%s: %s", r.Name, r.Missing)
		}
	}
}

func TestHistoryIsMeasuredWhereItIsNamed(t *testing.T) {
	s, _ := study(t, zoo(t), "bird_now", Options{History: "bird_past"})
	if got := cells(t, table(t, s, "8"), "with history"); !strings.HasPrefix(got, "100.0 |") {
		t.Errorf("with history: %s", got)
	}
	if got := cells(t, table(t, s, "8"), "without history"); !strings.HasPrefix(got, "50.0 |") {
		t.Errorf("without: %s", got)
	}
	if got := cells(t, table(t, s, "2"), "without past queries"); !strings.HasPrefix(got, "50.0 (0.0 to 100.0) | 50.0 (0.0 to 100.0) | -50.0") {
		t.Errorf("left out: %s", got)
	}
	if got := cells(t, table(t, s, "13"), "BM25 over the templates, one collection"); !strings.HasPrefix(got, "50.0") {
		t.Errorf("a baseline, which knows no past queries: %s", got)
	}
	// The paper's figures with history are those of SEDE.
	dir := zoo(t)
	write(t, dir, map[string][]string{
		"sede.schema.jsonl":         {`{"db":"se","table":"posts","column":"body"}`},
		"sede_test.questions.jsonl": {`{"id":"1","db":"se","question":"entries","gold_tables":["posts"]}`},
		"sede_val.questions.jsonl":  {`{"id":"2","db":"se","question":"all entries","gold_tables":["posts"]}`},
	})
	s, _ = study(t, dir, "sede_test", Options{History: "sede_val"})
	if got := table(t, s, "1"); got.Paper != sede || cells(t, got, "with history") != "100.0 (100.0 to 100.0) | 100.0 | – | 1.000 (1.000 to 1.000) | 100.0 (100.0 to 100.0) | 92.3 | 95.0 | 7.7 | 98.4" {
		t.Errorf("%s: %s", got.Paper, cells(t, got, "with history"))
	}
}

func TestASettingIsMeasuredOnce(t *testing.T) {
	s, ran := study(t, zoo(t), "bird_now", Options{Parallel: 2})
	for _, name := range TableNames {
		table(t, s, name)
	}
	seen := map[Options]int{}
	for _, o := range *ran {
		seen[o]++
	}
	for o, n := range seen {
		// What cannot be measured is found out each time; that costs no questions.
		if n > 1 && o.Ablate == "" && o.Weights == (Weights{}) {
			t.Errorf("%+v was measured %d times", o, n)
		}
	}
	if got := table(t, s, "6"); got.Settings.Parallel != 1 {
		t.Errorf("latencies with %d questions at once", got.Settings.Parallel)
	}
	if got := table(t, s, "1"); got.Settings.Parallel != 2 {
		t.Errorf("the other tables ask %d at once", got.Settings.Parallel)
	}
}

func TestLatenciesAreByPhase(t *testing.T) {
	s, _ := study(t, zoo(t), "bird_now", Options{})
	got := table(t, s, "6")
	all := cells(t, got, "retrieval from question to context")
	if !strings.HasSuffix(all, "| 1280.00") || strings.Contains(all, "n/a") || cells(t, got, "phase link") == "" || cells(t, got, "phase rank") == "" {
		t.Errorf("%s", all)
	}
	if cells(t, got, "writing SQL") != "n/a | n/a | n/a | 1500.00" {
		t.Errorf("%s", cells(t, got, "writing SQL"))
	}
}

func TestATableThatFailsIsNoTable(t *testing.T) {
	s := NewStudy("set", Options{}, func(_ context.Context, _ string, o Options) (Report, error) {
		if o.Index == BM25 {
			return Report{}, errors.New("the disk is gone")
		}
		r := run("T")
		return r, nil
	})
	if _, err := s.Table(context.Background(), "1"); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("%v", err)
	}
	if _, err := s.Table(context.Background(), "4"); err != nil {
		t.Errorf("a table that needs no other run: %v", err)
	}
}

func TestATableReadsAsMarkdownAndAsJSON(t *testing.T) {
	s, _ := study(t, zoo(t), "bird_now", Options{})
	got := table(t, s, "13")
	var text strings.Builder
	if err := got.Markdown(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"### Table 13: Typed collections against one, and against BM25\n\nbird_now: 2 questions over 1 databases, 3 tables, 4 columns;",
		"Plain run: question only; index local, models embedder builtin-", ", ranker trees-", ", one question at a time. The paper's figures: CRUSH4SQL",
		"\n|  | table R@5 | column R@10 | paper: table R@5 | paper: column R@10 |\n| --- | --- | --- | --- | --- |\n| BM25 over the templates, a collection for each type | 50.0 (",
		"\nn/a, vectors and reranker, one collection: " + noUnified + ".\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	data, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Table, Set, Paper string
		Questions         int
		Columns           []struct{ Title string }
		Settings          Settings
		Rows              []struct {
			Row     string
			Missing string `json:"not_measured"`
			Ours    []*struct{ Value, Low, High float64 }
			Papers  []*float64
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Table != "13" || doc.Set != "bird_now" || doc.Questions != 2 || doc.Paper != crush || doc.Columns[1].Title != "column R@10" || doc.Settings != got.Settings {
		t.Errorf("%s", data)
	}
	if r := doc.Rows[0]; r.Ours[0] == nil || r.Ours[0].Value != 50 || r.Ours[0].High != 100 || *r.Papers[0] != 50 || r.Missing != "" {
		t.Errorf("%+v", r)
	}
	if r := doc.Rows[3]; r.Ours[0] != nil || r.Missing != noUnified || *r.Papers[1] != 45 {
		t.Errorf("%+v", r)
	}
}

func TestNothingHasNoSign(t *testing.T) {
	for want, x := range map[string]float64{"0.0": -0.04, "-0.1": -0.06, "0.1": 0.06, "100.0": 100, "-10.0": -10} {
		if got := decimal(x, 1); got != want {
			t.Errorf("%v reads %s, want %s", x, got, want)
		}
	}
	if got := decimal(-0.0001, 3); got != "0.000" {
		t.Errorf("%s", got)
	}
}
