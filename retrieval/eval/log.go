package eval

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// testSets are for reporting only: nothing may be chosen by what they say.
var testSets = [...]string{"bird_dev", "spider_dev", "spider_syn_dev", "spider_dk", "sede_test", "spider2_snow"}

// TestOnly reports whether nothing may be chosen by a set.
func TestOnly(set string) bool { return slices.Contains(testSets[:], set) }

// learnedSets are what the models that ship learned from, as the recipes of retrieval/embed and retrieval/rank say. The
// ranker did not learn from text2sql_data, but most of its databases are those of spider_train.
var learnedSets = [...]string{"bird_train", "spider_train", "text2sql_data"}

// Entry is a line of the log of runs on test sets, which lets a selection by test show.
type Entry struct {
	Date   string `json:"date"` // of the run, as in 2006-01-02
	Commit string `json:"commit"`
	Why    string `json:"why"` // what the run was for
	Report
}

// NewEntry makes an entry of a run.
func NewEntry(r Report, at time.Time, commit, why string) Entry {
	return Entry{at.UTC().Format(time.DateOnly), commit, why, r}
}

// Append adds the entry to a log, which it makes if there is none.
func (e Entry) Append(path string) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("eval: logging a run on %s: %w", e.Set, err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("eval: logging a run on %s: %w", e.Set, err)
	}
	// One write, so that two runs that end at once do not mix their lines.
	if _, err := f.Write(append(line, '\n')); err != nil {
		f.Close()
		return fmt.Errorf("eval: logging a run on %s: %w", e.Set, err)
	}
	return f.Close()
}
