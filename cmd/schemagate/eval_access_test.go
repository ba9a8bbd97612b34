package main

import (
	"encoding/json"
	"testing"
)

// TestTheGuardDecidesAsTheGrantsOfADatabaseDo compares it with 19,624 decisions that a database made by grants of columns. What
// differs is what a statement means there and here, never a column that is read without a grant.
func TestTheGuardDecidesAsTheGrantsOfADatabaseDo(t *testing.T) {
	code, stdout, stderr := command(t, "eval", accessSet, "--bench", benchDir(t), "--json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var a agreement
	if err := json.Unmarshal([]byte(stdout), &a); err != nil {
		t.Fatal(err)
	}
	if a.Statements != 19_624 || a.Agreement < 99.6 {
		t.Errorf("%.2f%% of %d statements are decided alike", a.Agreement, a.Statements)
	}
	for _, d := range a.Differences {
		if d.Kind == kindOther || d.Kind == kindRefused && d.Count > 2 {
			t.Errorf("%+v", d)
		}
	}
}
