package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/cmd/schemagate/warehouse"
	"github.com/schemagate/schemagate/cmd/schemagate/warehouse/warehousetest"
)

// TestDemo checks the demo against answers written by hand, and that nobody gets a byte of what they may not see.
func TestDemo(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "demo")
	r, err := demo(ctx, dir, io.Discard, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if w := r.Warehouse; w.Schemas < 6 || w.Tables < 60 || w.Columns < 600 || w.Rows < 200_000 || w.Metrics != 12 || w.Queries != 40 {
		t.Errorf("the warehouse is too small: %+v", w)
	}
	if len(r.Principals) != 4 || len(r.Answers) != 24 || r.Audit.Records != 32 || !r.Audit.Verified {
		t.Errorf("%d principals, %d answers, audit %+v; want 4, 24 and 32 verified records", len(r.Principals), len(r.Answers), r.Audit)
	}
	db, err := warehousetest.Open(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, want := range warehousetest.Expectations() {
		t.Run(want.Principal+": "+want.Question, func(t *testing.T) {
			i := slices.IndexFunc(r.Answers, func(a demoAnswer) bool { return a.Principal == want.Principal && a.Question == want.Question })
			got := r.Answers[i]
			rows, err := want.Rows(ctx, db)
			if err != nil {
				t.Fatal(err)
			}
			if want.SQL == "" {
				if got.Rows != nil {
					t.Fatalf("got rows from %s", *got.GuardedSQL)
				}
				return
			}
			if got.Rows == nil {
				t.Fatalf("got no rows: reason %q, refusal %+v", got.Reason, got.Refusal)
			}
			if !sameRows(got.Rows.Rows, rows) {
				t.Fatalf("got  %v\nwant %v\nfrom %s", got.Rows.Rows, rows, *got.GuardedSQL)
			}
		})
	}
	t.Run("nobody gets a byte of what they may not see", func(t *testing.T) { noByte(t, dir, r) })
}

// sameRows compares rows as sets, numbers by value to a millionth.
func sameRows(got, want [][]any) bool {
	text := func(rows [][]any) []string {
		var out []string
		for _, row := range rows {
			var b strings.Builder
			for _, v := range row {
				if s, ok := v.(string); ok {
					b.WriteString("|" + s)
				} else if n, err := json.Number(fmt.Sprint(v)).Float64(); err == nil {
					fmt.Fprintf(&b, "|%.6f", math.Round(n*1e6)/1e6)
				} else {
					fmt.Fprintf(&b, "|%v", v)
				}
			}
			out = append(out, b.String())
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(text(got), text(want))
}

// noByte looks for what is hidden from a principal in everything that they got, save their own words.
func noByte(t *testing.T, dir string, r demoReport) {
	s, err := ingest.Load(context.Background(), []string{"sqlite:" + dir, "yaml:" + filepath.Join(dir, "catalog.yaml")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := acl.ParsePolicy("policy.yaml", warehouse.Policy)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := casbin.New(p, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range r.Principals {
		view, err := engine.View(who)
		if err != nil {
			t.Fatal(err)
		}
		// A text counts as hidden if nothing that they may read holds it: names of hidden objects, samples of rows that
		// they do not all see, questions that were asked about those.
		restricted, err := view.Restricted()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(restricted.All())
		if err != nil {
			t.Fatal(err)
		}
		hidden := map[string]bool{}
		hide := func(s string) {
			if len(s) > 3 && !strings.Contains(string(text), s) {
				hidden[s] = true
			}
		}
		withheld := 0
		for _, o := range s.All() {
			if o.Column != nil && !view.Raw(o.ID) {
				withheld++
				for _, sample := range o.Column.Samples {
					// Short ones and numbers stand in other texts by chance.
					if len(sample) > 5 && strings.ContainsFunc(sample, unicode.IsLetter) {
						hide(sample)
					}
				}
			}
			switch o.Ref.Kind {
			case catalog.KindTable:
				hide(o.Ref.Table)
			case catalog.KindColumn:
				hide(o.Ref.Column)
			default:
				hide(o.Ref.Name)
			}
			if o.Query != nil {
				hide(o.Query.Question)
			}
		}
		if withheld == 0 {
			t.Errorf("no sample is withheld from %s; the test proves little", who)
		}
		if len(hidden) < 20 {
			t.Errorf("only %d texts are hidden from %s; the test proves little", len(hidden), who)
		}
		for _, a := range r.Answers {
			if a.Principal != who {
				continue
			}
			question := a.Question
			a.Rows = nil // what rows hold is for the expectations above
			a.Question, a.Context.Question, a.Context.Principal, a.Principal = "", "", "", ""
			got, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			for name := range hidden {
				if strings.Contains(string(got), name) && !strings.Contains(strings.ToLower(question), strings.ToLower(name)) {
					t.Errorf("%s, asking %q, got the hidden text %q", who, question, name)
				}
			}
		}
	}
}
