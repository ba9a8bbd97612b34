package api_test

import (
	"slices"
	"testing"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/sqlite"
)

// TestAHiddenNameTakesNoOtherTimeThanAnAbsentOne asks a thousand pairs, by turns in either order. The middle difference must lie
// within the noise: half of the span in which the middle half of all differences lies.
func TestAHiddenNameTakesNoOtherTimeThanAnAbsentOne(t *testing.T) {
	e := api.NewEngine(edition(t, policy), []*rewrite.Guard{rewrite.NewGuard(sqlite.New(), 0)}, writer{}, &log{}, nil)
	ask := func(sql string) time.Duration {
		start := time.Now()
		v, err := e.Guard(t.Context(), api.Request{Face: "test", Principal: "alice"}, "shop", sql)
		took := time.Since(start)
		if err != nil || v.Code != acl.CodeNotAvailable {
			t.Fatalf("%s: %+v, %v", sql, v, err)
		}
		return took
	}
	for _, c := range []struct{ what, hidden, absent string }{
		{"a table", "SELECT pay FROM salaries", "SELECT pay FROM salariez"},
		{"a table beside a visible one", "SELECT * FROM orders JOIN salaries USING (id)", "SELECT * FROM orders JOIN salariez USING (id)"},
	} {
		var differences []time.Duration
		for i := range 1000 {
			var hidden, absent time.Duration
			if i%2 == 0 {
				hidden, absent = ask(c.hidden), ask(c.absent)
			} else {
				absent, hidden = ask(c.absent), ask(c.hidden)
			}
			differences = append(differences, hidden-absent)
		}
		slices.Sort(differences)
		middle, noise := differences[500], (differences[750]-differences[250])/2
		t.Logf("%s: %v apart, the noise is %v", c.what, middle, noise)
		if middle.Abs() > noise {
			t.Errorf("%s: a hidden name takes %v longer than an absent one, and the noise is %v", c.what, middle, noise)
		}
	}
}
