package rewritetest

import (
	"os"
	"strconv"
	"testing"
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
