package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/sqlite"
)

// accessSet is the set of statements that a database decided on by its own grants of columns.
const accessSet = "spider_ac"

// agreement compares the guard's decisions with the labels of a set.
type agreement struct {
	Set         string       `json:"set"`
	Statements  int          `json:"statements"`
	Agree       int          `json:"agree"`
	Agreement   float64      `json:"agreement"` // percent
	Differences []difference `json:"differences"`
	Guard       struct {
		P50, P95 float64
	} `json:"guard_ms"`
}

// difference is one kind of disagreement.
type difference struct {
	Label    string `json:"label"` // PERMIT or DENY
	Decision string `json:"decision"`
	Code     string `json:"code,omitempty"` // of the guard's refusal
	Kind     string `json:"kind"`
	Count    int    `json:"count"`
	Example  string `json:"example"` // id of a statement
	SQL      string `json:"sql"`
	Message  string `json:"message,omitempty"`
}

// The kinds of disagreement that can be told.
const (
	kindStar    = "a star, which the set's database denies where a column is hidden and the guard reads as the visible ones"
	kindOuter   = "the name of a hidden column means one of an outer query, as it does where there is no hidden one"
	kindOther   = "something else"
	kindRefused = "the guard refuses what the set permits"
)

// accessCase is a statement of the set.
type accessCase struct {
	ID       string   `json:"id"`
	Database string   `json:"db"`
	User     string   `json:"user"`
	SQL      string   `json:"sql"`
	Decision string   `json:"decision"`
	Columns  []string `json:"gold_columns"`
}

// grants are columns by table, user and database.
type grants map[string]map[string]map[string][]string

// policy writes the grants as a policy with one role a user of a database, named DATABASE/USER.
func (g grants) policy() (*acl.Policy, error) {
	principals := map[string]any{}
	var rules []any
	for _, db := range slices.Sorted(maps.Keys(g)) {
		for _, user := range slices.Sorted(maps.Keys(g[db])) {
			name := db + "/" + user
			var allow []string
			for _, table := range slices.Sorted(maps.Keys(g[db][user])) {
				for _, column := range g[db][user][table] {
					allow = append(allow, catalog.JoinPath([]string{db, table, column}))
				}
			}
			principals[name] = map[string]any{"roles": []string{name}}
			rules = append(rules, map[string]any{"role": name, "allow": allow, "actions": []acl.Action{acl.ActionView, acl.ActionQuery}})
		}
	}
	data, err := json.Marshal(map[string]any{"version": 1, "principals": principals, "grants": rules})
	if err != nil {
		return nil, err
	}
	return acl.ParsePolicy(accessSet, data)
}

// measureAccess guards the statements of the set under its grants; limit is the most that it tries, 0 for all.
func measureAccess(ctx context.Context, bench string, limit int, progress func(string)) (agreement, error) {
	out := agreement{Set: accessSet, Differences: []difference{}}
	var granted grants
	if err := readBench(filepath.Join(bench, accessSet+".policies.json.gz"), func(r io.Reader) error { return json.NewDecoder(r).Decode(&granted) }); err != nil {
		return out, err
	}
	p, err := granted.policy()
	if err != nil {
		return out, err
	}
	s, err := ingest.Load(ctx, []string{"bench:" + filepath.Join(bench, "spider")}, progress)
	if err != nil {
		return out, err
	}
	policy, err := casbin.New(p, s)
	if err != nil {
		return out, err
	}
	guard := rewrite.NewGuard(sqlite.New(), 0)
	views := map[string]acl.View{}
	kinds := map[difference]int{} // place in out.Differences by what makes a kind
	var took []time.Duration
	err = readBench(filepath.Join(bench, accessSet+".questions.jsonl.gz"), func(r io.Reader) error {
		lines := json.NewDecoder(bufio.NewReader(r))
		for limit == 0 || out.Statements < limit {
			var c accessCase
			if err := lines.Decode(&c); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			who := c.Database + "/" + c.User
			v, ok := views[who]
			if !ok {
				if v, err = policy.View(who); err != nil {
					return err
				}
				views[who] = v
			}
			start := time.Now()
			schema, err := rewrite.NewSchema(v, c.Database)
			if err != nil {
				return err
			}
			_, err = guard.Rewrite(c.SQL, schema)
			took = append(took, time.Since(start))
			if err := out.add(c, err, kinds); err != nil {
				return err
			}
			progress(fmt.Sprintf("%s statements guarded", humanize.Comma(int64(out.Statements))))
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	if out.Statements > 0 {
		out.Agreement = 100 * float64(out.Agree) / float64(out.Statements)
		slices.Sort(took)
		out.Guard.P50, out.Guard.P95 = milliseconds(took[len(took)/2]), milliseconds(took[len(took)*95/100])
	}
	slices.SortStableFunc(out.Differences, func(a, b difference) int { return cmp.Compare(b.Count, a.Count) })
	return out, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// add enters the guard's decision on a case. A fault of the guard ends the measurement.
func (a *agreement) add(c accessCase, decided error, kinds map[difference]int) error {
	a.Statements++
	d := difference{Label: c.Decision, Decision: "PERMIT"}
	var no *acl.Refusal
	switch {
	case errors.As(decided, &no):
		d.Decision, d.Code = "DENY", no.Code
	case decided != nil:
		return fmt.Errorf("%s: %w", c.ID, decided)
	}
	if d.Decision == d.Label {
		a.Agree++
		return nil
	}
	switch {
	case d.Decision == "DENY":
		d.Kind = kindRefused
	case strings.Contains(strings.ReplaceAll(strings.ReplaceAll(c.SQL, "COUNT(*)", ""), "count(*)", ""), "*"):
		d.Kind = kindStar
	case strings.Count(strings.ToLower(c.SQL), "select") > 1:
		d.Kind = kindOuter
	default:
		d.Kind = kindOther
	}
	at, known := kinds[d]
	if !known {
		at = len(a.Differences)
		kinds[d] = at
		d.Example, d.SQL = c.ID, c.SQL
		if no != nil {
			d.Message = no.Public
		}
		a.Differences = append(a.Differences, d)
	}
	a.Differences[at].Count++
	return nil
}

// readBench hands on a file of the benchmark data, unpacked.
func readBench(path string, read func(io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := read(unpacked); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func printAgreement(w io.Writer, a agreement) {
	fmt.Fprintf(w, "%s: the guard decides %s of %s statements as the set does (%.2f%%); p50 %.3f ms, p95 %.3f ms\n",
		a.Set, humanize.Comma(int64(a.Agree)), humanize.Comma(int64(a.Statements)), a.Agreement, a.Guard.P50, a.Guard.P95)
	for _, d := range a.Differences {
		fmt.Fprintf(w, "%6d  %s here, %s there: %s\n        such as %s: %s\n", d.Count, d.Decision, d.Label, d.Kind, d.Example, d.SQL)
	}
}
