package rewritetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// Statements returns how many statements a differential test generates, and where its generator begins: what
// SCHEMAGATE_STATEMENTS and SCHEMAGATE_SEED say, otherwise usual and 1.
func Statements(t *testing.T, usual int) (n int, seed uint64) {
	t.Helper()
	return number(t, "SCHEMAGATE_STATEMENTS", usual), uint64(number(t, "SCHEMAGATE_SEED", 1))
}

func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q; it must be a whole number", variable, text)
	}
	return n
}

// Tally is what a differential test came to.
type Tally struct {
	Engine string `json:"engine"` // with its version
	Seed   uint64 `json:"seed"`
	// Statements were generated; those that the original database runs are Valid, and Refused are the valid ones that the
	// guard did not let through.
	Statements int `json:"statements"`
	Valid      int `json:"valid"`
	Refused    int `json:"refused"`
	// Differences between the guarded statement on all data and the original on the visible data.
	Differences int    `json:"differences"`
	Oracle      string `json:"oracle"`
}

// Enter adds a tally to the ledger that SCHEMAGATE_LEDGER names, if it does: a file of JSON lines.
func (t Tally) Enter() (err error) {
	path := os.Getenv("SCHEMAGATE_LEDGER")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("rewritetest: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return json.NewEncoder(f).Encode(struct {
		Date   string `json:"date"`
		Commit string `json:"commit"`
		Tally
	}{time.Now().UTC().Format(time.DateOnly), os.Getenv("SCHEMAGATE_COMMIT"), t})
}
