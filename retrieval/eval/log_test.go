package eval

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTestSetsAreKnown(t *testing.T) {
	for set, want := range map[string]bool{
		"bird_dev": true, "spider_dev": true, "spider_syn_dev": true, "spider_dk": true, "sede_test": true, "spider2_snow": true,
		"bird_train": false, "spider_train": false, "text2sql_data": false, "sede_val": false, "spider_ac": false,
	} {
		if TestOnly(set) != want {
			t.Errorf("%s: %v", set, !want)
		}
	}
}

func TestTheLogKeepsWhatRanAndWhatCameOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	r := measure(t, "bird_now", Options{Bench: zoo(t), History: "bird_past", Limit: 2})
	at := time.Date(2026, 3, 4, 23, 59, 0, 0, time.FixedZone("", -3600))
	for _, why := range []string{"first", "second"} {
		if err := NewEntry(r, at, "abc123", why).Append(path); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines of two runs", len(lines))
	}
	for i, why := range []string{"first", "second"} {
		var got Entry
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		// The day is that of Greenwich.
		if got.Date != "2026-03-05" || got.Commit != "abc123" || got.Why != why || got.Set != "bird_now" || got.Questions != 2 {
			t.Errorf("%+v", got)
		}
		if got.Settings != r.Settings || got.Settings.Limit != 2 || !reflect.DeepEqual(got.Figures, r.Figures) {
			t.Errorf("settings %+v, figures %+v", got.Settings, got.Figures)
		}
	}
	if err := NewEntry(r, at, "abc123", "lost").Append(filepath.Join(path, "below")); err == nil || !strings.Contains(err.Error(), "bird_now") {
		t.Errorf("a log that cannot be written: %v", err)
	}
}

// The log in this folder can be read by whoever looks for a selection by test.
func TestEveryLineOfTheLogNamesATestSetItsDateAndItsReason(t *testing.T) {
	text, err := os.ReadFile("runs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if _, err := time.Parse(time.DateOnly, e.Date); err != nil || !slices.Contains(testSets[:], e.Set) || e.Why == "" {
			t.Errorf("date %q, set %q, reason %q", e.Date, e.Set, e.Why)
		}
	}
}
