package retrieval

import (
	"strconv"
	"strings"
	"testing"
)

func TestWhatAQuestionWants(t *testing.T) {
	for _, tt := range []struct {
		question string
		want     IntentKind
	}{
		{"What is the average salary of employees?", MetricKind},
		{"How many orders were placed by each customer?", MetricKind},
		{"total revenue by region", MetricKind},
		{"What percentage of the schools is private?", MetricKind},
		{"How many orders were placed in 2024?", MetricKind},
		{"Wie hoch ist der durchschnittliche Umsatz je Region?", MetricKind},
		{"Wie viele Kunden kommen aus Berlin?", MetricKind},
		{"每个地区的平均销售额是多少？", MetricKind},
		{"When was the company founded?", Temporal},
		{"List the orders that were placed in January 2024", Temporal},
		{"Wann wurde das Haus gebaut?", Temporal},
		{"最近几年的销售趋势", Temporal},
		{"revenue trend over time", Temporal},
		{"Show the names of singers and the titles of their songs", MultiTable},
		{"What data do we have about customers?", Exploratory},
		{"Which tables hold invoices?", Exploratory},
		{"Welche Daten gibt es zu Kunden?", Exploratory},
		{"关于客户有哪些数据？", Exploratory},
		{"List the names of all heads", SingleTable},
	} {
		if got := IntentOf(tt.question); got.Kind != tt.want {
			t.Errorf("%q is %s, want %s", tt.question, got.Kind, tt.want)
		}
	}
}

func TestAQuestionForAFigureIsKnownWhateverElseItIsAbout(t *testing.T) {
	for question, want := range map[string]bool{
		"What was the total number of orders in each month of 2024?": true,
		"average price per year":                                     true,
		"List the names of the employees whose city is Berlin":       false,
	} {
		if got := IntentOf(question); got.figure != want {
			t.Errorf("%q: %v", question, got.figure)
		}
	}
}

func TestEveryLineOfTheModelHasAWeightForEachAspect(t *testing.T) {
	known := map[string]bool{}
	for line := range strings.Lines(intentModel) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 1+aspects || known[fields[0]] {
			t.Fatalf("line %q", line)
		}
		known[fields[0]] = true
		for _, f := range fields[1:] {
			if _, err := strconv.Atoi(f); err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
		}
	}
	if !known[always] || len(known) < 500 {
		t.Errorf("%d words", len(known))
	}
}

func TestCuesAreWordsAndPairs(t *testing.T) {
	var got []string
	Cues("How many Heads, aged 56?", func(c string) { got = append(got, c) })
	if want := "how|many|how many|heads|many heads|aged|heads aged|00|aged 00"; strings.Join(got, "|") != want {
		t.Errorf("got %s\nwant %s", strings.Join(got, "|"), want)
	}
}

func BenchmarkIntentOf(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		IntentOf("How many employees of the region have a pay rate above the average, and who owns the account?")
	}
}
