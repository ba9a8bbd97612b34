package retrieval

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

// Strategy is the way in which a context is chosen. The empty one lets the size of the visible catalog decide.
type Strategy string

// The strategies, for catalogs of growing size.
const (
	// Whole gives the database that answers with all of its tables and columns. The others do so too if it is small.
	Whole Strategy = "whole"
	// Tables chooses tables, and gives each with all of its columns.
	Tables Strategy = "tables"
	// Retrieval chooses tables and columns.
	Retrieval Strategy = "retrieval"
)

var strategies = [...]Strategy{Whole, Tables, Retrieval}

// Up to these sizes of the visible catalog a strategy is the right one (AskTable). Beyond the last, exploration is.
const (
	wholeTables, wholeColumns   = 3, 100
	chosenTables, chosenColumns = 7, 300
	retrievalTables             = 10_000
)

// ErrStrategy is wrapped by the error of a strategy that does not exist.
var ErrStrategy = errors.New("there is no such strategy")

// ParseStrategy reads a strategy. No text is the empty strategy.
func ParseStrategy(text string) (Strategy, error) {
	if text == "" {
		return "", nil
	}
	names := make([]string, len(strategies))
	for i, s := range strategies {
		if names[i] = string(s); names[i] == text {
			return s, nil
		}
	}
	return "", fmt.Errorf("%w as %q; name one of %s", ErrStrategy, text, strings.Join(names, ", "))
}

// strategyFor returns the strategy for a visible catalog of some size, or the one that was asked for, and says why.
func strategyFor(asked Strategy, tables, columns int) (Strategy, string) {
	s, why := Retrieval, "are too many to give whole tables"
	switch {
	case tables <= wholeTables && columns <= wholeColumns:
		s, why = Whole, "are few enough to give whole"
	case tables <= chosenTables && columns <= chosenColumns:
		s, why = Tables, "are few enough to give whole tables"
	case tables > retrievalTables:
		why = "call for exploration, which does not exist yet; retrieval ran"
	}
	because := fmt.Sprintf("%s and %s %s", plural(tables, "table"), plural(columns, "column"), why)
	if asked == "" || asked == s {
		return s, because
	}
	return asked, "it was asked for; " + because
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return humanize.Comma(int64(n)) + " " + what + "s"
}
