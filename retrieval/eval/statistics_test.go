package eval

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// tosses are n values, of which the first few are 1 and the others 0.
func tosses(n, ones int) []float64 {
	out := make([]float64, n)
	for i := range ones {
		out[i] = 1
	}
	return out
}

func TestBootstrapIntervalsAreAsByHand(t *testing.T) {
	for _, tt := range []struct {
		what      string
		values    []float64
		low, high float64
	}{
		{"values that are all equal leave no doubt", []float64{0.3, 0.3, 0.3}, 0.3, 0.3},
		{"one value knows no other", []float64{1}, 1, 1},
		// The number of ones in a sample of 10 is binomial with p = 1/2: P(at most 1) = 11/1024 = 1.1%,
		// P(at most 2) = 56/1024 = 5.5%, so the 2.5% point is 2, and 8 by symmetry the 97.5% point.
		{"five of ten", tosses(10, 5), 0.2, 0.8},
		// Binomial with p = 1/10 and n = 10: P(0) = 34.9% is the low end; P(at most 2) = 93.0%, P(at most 3) = 98.7%.
		{"one of ten", tosses(10, 1), 0, 0.3},
	} {
		if got := bootstrap(tt.values); !near(got.Low, tt.low) || !near(got.High, tt.high) {
			t.Errorf("%s: %v, want %v to %v", tt.what, got, tt.low, tt.high)
		}
	}
	// With many values the interval is that of the normal distribution: 0.4 and 1.96 times the root of 0.4 * 0.6 / 1000
	// to either side. 2,000 samples find its ends to about a tenth of its width.
	if got := bootstrap(tosses(1000, 400)); math.Abs(got.Low-(0.4-0.0304)) > 0.004 || math.Abs(got.High-(0.4+0.0304)) > 0.004 {
		t.Errorf("400 of 1,000: %v, want 0.370 to 0.430", got)
	}
	// A mean of shares has the spread of its shares, and not that of coins: here 0.5 and 0.1 / root of 400.
	shares := make([]float64, 400)
	for i := range shares {
		shares[i] = 0.4 + 0.2*float64(i%2)
	}
	if got := bootstrap(shares); math.Abs(got.Low-0.4902) > 0.001 || math.Abs(got.High-0.5098) > 0.001 {
		t.Errorf("shares of 0.4 and 0.6: %v, want 0.490 to 0.510", got)
	}
	if a, b := bootstrap(tosses(50, 20)), bootstrap(tosses(50, 20)); a != b {
		t.Errorf("the same values give %v and then %v", a, b)
	}
}

func TestMcNemarIsExact(t *testing.T) {
	for _, tt := range []struct {
		x, y int
		p    float64
	}{
		{0, 0, 1}, {1, 0, 1},
		{5, 0, 2. / 32},
		{1, 5, 2. * (1 + 6) / 64},
		{8, 2, 2. * (1 + 10 + 45) / 1024},
		{3, 3, 1},               // twice the tail is more than 1
		{700, 500, 8.535366e-9}, // summed in whole numbers,
	} {
		if p := twoSided(tt.x, tt.y); p < tt.p*0.999 || p > tt.p*1.001 {
			t.Errorf("%d to %d: p = %v, want %v", tt.x, tt.y, p, tt.p)
		}
	}
	if few, some := (McNemar{P: 0.0009}).Chance(), (McNemar{P: 0.0314}).Chance(); few != "p < 0.001" || some != "p = 0.031" {
		t.Errorf("chances read %q and %q", few, some)
	}
}

// run is a report of questions with one gold table and one gold column; each letter is one of them: T found the table,
// D found the database only, x found nothing.
func run(questions string) Report {
	r := Report{Set: "letters"}
	for i, c := range questions {
		o := Outcome{ID: fmt.Sprint(i), GoldTables: 1, GoldColumns: 1}
		if c != 'x' {
			o.Localized = 1
		}
		if c == 'T' {
			o.TableRecall = recall(gold(7), []uint32{1, 2, 3, 4, 7}) // from 5 on
			o.ColumnRecall = recall(gold(7), []uint32{7})
			o.ReciprocalRank = 0.2
		}
		r.Outcomes = append(r.Outcomes, o)
	}
	r.Figures = figures(r.Outcomes)
	return r
}

func TestRunsAreComparedQuestionByQuestion(t *testing.T) {
	c, err := Compare(run("TTTTTTTTDx"), run("TTTDDDDDTx"))
	if err != nil {
		t.Fatal(err)
	}
	// Five questions for the first run, one for the second, of ten.
	if want := (McNemar{5, 1, 14. / 64}); c.TablesIn5.OnlyFirst != 5 || c.TablesIn5.OnlySecond != 1 || !near(c.TablesIn5.P, want.P) {
		t.Errorf("tables: %+v, want %+v", c.TablesIn5, want)
	}
	if c.Localized.OnlyFirst+c.Localized.OnlySecond != 0 || c.Localized.P != 1 {
		t.Errorf("databases: %+v", c.Localized)
	}
	for name, want := range map[string]float64{"table_recall_5": 40, "column_recall_10": 40, "mrr": 0.08, "localization": 0} {
		if d := c.Differences[name]; !near(d.Difference, want) || d.Low > want || d.High < want {
			t.Errorf("%s: %+v, want %v", name, d, want)
		}
	}
	if d := c.Differences["localization"]; d.Low != 0 || d.High != 0 {
		t.Errorf("equal runs leave no doubt, but %+v", d)
	}
}

// Pairing makes a steady small difference certain, however much the questions differ among each other.
func TestThePairedIntervalIsThatOfTheDifferences(t *testing.T) {
	a, b := run("TTTTTxxxxx"), run("xxxxxxxxxx")
	for i := range a.Outcomes {
		b.Outcomes[i].ReciprocalRank = a.Outcomes[i].ReciprocalRank + 0.5
	}
	c, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Differences["mrr"]; !near(d.Difference, -0.5) || !near(d.Low, -0.5) || !near(d.High, -0.5) {
		t.Errorf("%+v", d)
	}
	if d := c.Differences["table_recall_5"]; !near(d.Low, 20) || !near(d.High, 80) { // as five of ten
		t.Errorf("%+v", d)
	}
}

func TestRunsOverOtherQuestionsAreNotCompared(t *testing.T) {
	other := run("TT")
	other.Set = "digits"
	renamed := run("TT")
	renamed.Outcomes[1].ID = "9"
	for _, b := range []Report{run("T"), other, renamed} {
		if _, err := Compare(run("TT"), b); !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), "different questions") {
			t.Errorf("%v", err)
		}
	}
}

func TestDifferencesReadWithTheirSign(t *testing.T) {
	share, part := measures[0], measures[2]
	for want, got := range map[string]string{
		"+1.3": share.Signed(1.26), "-1.3": share.Signed(-1.26), "0.0": share.Signed(-0.01), "+0.126": part.Signed(0.1259), "0.000": part.Signed(0),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFiguresAreMeansOverTheQuestionsThatHaveGold(t *testing.T) {
	r := run("TTDx")
	if r.Contexts != nil {
		t.Errorf("no context was built, but %+v", r.Contexts)
	}
	r.Outcomes[3].GoldColumns = 0
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		o.HasContext, o.Strict, o.Columns, o.Tokens = true, float64(i%2), float64(i), float64(10*i)
	}
	r.Outcomes[0].Exact = 1
	f := figures(r.Outcomes)
	if want := (Contexts{ExactMatch: 33.33, StrictRecall: 33.33, MeanColumns: 1.5, MeanTokens: 15}); *f.Contexts != want {
		t.Errorf("contexts %+v, want %+v", *f.Contexts, want)
	}
	if f.TableRecall["3"] != 0 || f.TableRecall["5"] != 50 || f.Localization != 75 || f.MRR != 0.1 {
		t.Errorf("%+v", f)
	}
	if f.ColumnRecall["10"] != 66.67 {
		t.Errorf("column recall@10 is %v; two of the three questions with gold columns find them", f.ColumnRecall["10"])
	}
	if i := f.Intervals["table_recall_5"]; i != (Interval{0, 100}) || len(f.Intervals) != 4 {
		t.Errorf("intervals %v", f.Intervals)
	}
}

func TestGroupsSplitTheQuestions(t *testing.T) {
	r := run("TTDxT")
	for i, n := range []int{1, 2, 3, 4, 7} {
		r.Outcomes[i].GoldTables = n
	}
	r.Outcomes[3].GoldColumns, r.Outcomes[4].GoldColumns = 0, 0
	r.Outcomes[0].Difficulty, r.Outcomes[2].Difficulty = "simple", "simple"
	got := groups(r.Outcomes, byGoldTables)
	if len(got) != 4 || got["1"].Questions != 1 || got["1"].TableRecall5 != 100 || *got["1"].ColumnRecall10 != 100 || got["3"].TableRecall5 != 0 || *got["3"].ColumnRecall10 != 0 {
		t.Errorf("by tables: %+v", got)
	}
	if g := got["4+"]; g.Questions != 2 || g.TableRecall5 != 50 || g.ColumnRecall10 != nil {
		t.Errorf("many tables: %+v", g)
	}
	if got := groups(r.Outcomes, func(o *Outcome) string { return o.Difficulty }); len(got) != 1 || got["simple"].Questions != 2 || got["simple"].TableRecall5 != 50 {
		t.Errorf("by difficulty: %+v", got)
	}
}
