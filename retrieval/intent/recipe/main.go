// Command recipe learns the words by which retrieval tells intents apart, from questions whose answers are known: on
// one training set, measured on the other, and the other way round. With --out it learns from both and writes the words.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/retrieval"
)

// sets are what may be learned from; each is measured by what the other taught.
var sets = [...]string{"bird_train", "spider_train"}

var aspects = [...]string{"several tables", "figure", "time", "complex"}

// The settings, chosen by accuracy on the set that was not learned from.
const (
	leastDatabases = 12   // in which a cue must occur, so that what a database is about teaches nothing
	rounds         = 60   // over all questions
	rate           = 0.5  // of each step, falling with the square root of the rounds
	decay          = 3e-4 // of every weight in each step
	leastWeight    = 0.15 // below which a cue is left out
)

// always is the entry that every question has.
const always = "*"

func main() {
	bench := flag.String("bench", os.Getenv("SCHEMAGATE_BENCH"), "folder with the question sets")
	out := flag.String("out", "", "file to write the words to")
	roles := flag.Int("roles", 0, "measure the roles of columns instead, on every so manyth question")
	flag.Parse()
	run := func() error { return measure(*bench, *out) }
	if *roles > 0 {
		run = func() error { return measureRoles(*bench, *roles) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// example is a question as cues, with what its answer says.
type example struct {
	db    string
	cues  []string
	label []bool
}

func examples(bench, set string) ([]example, error) {
	questions, err := ingest.Questions(bench, set)
	if err != nil {
		return nil, err
	}
	var out []example
	for _, q := range questions {
		e := example{db: q.DB, cues: []string{always}, label: gold(q).list()}
		retrieval.Cues(q.Question, func(c string) { e.cues = append(e.cues, c) })
		out = append(out, e)
	}
	return out, nil
}

func measure(bench, out string) error {
	taught := map[string][]example{}
	var all []example
	for _, set := range sets {
		var err error
		if taught[set], err = examples(bench, set); err != nil {
			return err
		}
		all = append(all, taught[set]...)
	}
	fmt.Println("| learned from | measured on | aspect | share | always the more frequent | naive Bayes | logistic | logistic, balanced |\n|---|---|---|---|---|---|---|---|")
	for i, set := range sets {
		other := sets[1-i]
		known := vocabulary(taught[set])
		for a := range aspects {
			logistic, bayes := learn(taught[set], known, a), count(taught[set], known, a)
			l, b := accuracy(taught[other], logistic, a), accuracy(taught[other], bayes, a)
			fmt.Printf("| %s | %s | %s | %.1f | %.1f | %.1f | %.1f | %.1f |\n", set, other, aspects[a], l.share, max(l.share, 100-l.share), b.right, l.right, l.balanced)
		}
	}
	if out == "" {
		return nil
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	known := vocabulary(all)
	var models [len(aspects)]map[string]float64
	for a := range aspects {
		models[a] = learn(all, known, a)
	}
	write(f, models)
	return f.Close()
}

// vocabulary holds the cues that enough databases are asked with.
func vocabulary(list []example) map[string]bool {
	in := map[string]map[string]bool{}
	for _, e := range list {
		for _, c := range e.cues {
			if in[c] == nil {
				in[c] = map[string]bool{}
			}
			in[c][e.db] = true
		}
	}
	out := map[string]bool{}
	for c, databases := range in {
		if len(databases) >= leastDatabases {
			out[c] = true
		}
	}
	return out
}

// learn fits the log-odds of an aspect (logistic regression, by stochastic gradient descent in the given order).
func learn(list []example, known map[string]bool, aspect int) map[string]float64 {
	w := map[string]float64{}
	for round := range rounds {
		step := rate / math.Sqrt(float64(round+1)) / 10
		for i := range list {
			e := list[(i*7919)%len(list)] // not database by database
			sum := 0.0
			for _, c := range e.cues {
				sum += w[c]
			}
			miss := -1 / (1 + math.Exp(-sum))
			if e.label[aspect] {
				miss++
			}
			for _, c := range e.cues {
				if known[c] {
					w[c] += step * (miss - decay*10*w[c])
				}
			}
		}
	}
	maps.DeleteFunc(w, func(_ string, x float64) bool { return math.Abs(x) < leastWeight })
	return w
}

// count fits naive Bayes.
func count(list []example, known map[string]bool, aspect int) map[string]float64 {
	var n [2]float64
	in := map[string]*[2]float64{}
	for _, e := range list {
		k := 0
		if e.label[aspect] {
			k = 1
		}
		n[k]++
		for _, c := range e.cues {
			if known[c] {
				if in[c] == nil {
					in[c] = new([2]float64)
				}
				in[c][k]++
			}
		}
	}
	w := map[string]float64{}
	for c, x := range in {
		w[c] = math.Log((x[1]+1)/(n[1]+2)) - math.Log((x[0]+1)/(n[0]+2))
	}
	w[always] = math.Log(n[1] / n[0])
	return w
}

// figures are in percent. Balanced is the mean over the questions that have the aspect and those that have not.
type figures struct{ share, right, balanced float64 }

func accuracy(list []example, model map[string]float64, aspect int) figures {
	var all, right [2]float64 // without and with the aspect
	for _, e := range list {
		sum := 0.0
		for _, c := range e.cues {
			sum += model[c]
		}
		k := 0
		if e.label[aspect] {
			k = 1
		}
		all[k]++
		if (sum > 0) == e.label[aspect] {
			right[k]++
		}
	}
	n := all[0] + all[1]
	return figures{100 * all[1] / n, 100 * (right[0] + right[1]) / n, 50 * (right[0]/all[0] + right[1]/all[1])}
}

func write(w io.Writer, models [len(aspects)]map[string]float64) {
	cues := map[string]bool{}
	for _, m := range models {
		for c := range m {
			cues[c] = true
		}
	}
	for _, c := range slices.SortedFunc(maps.Keys(cues), cmp.Compare) {
		line := []string{c}
		for _, m := range models {
			line = append(line, fmt.Sprint(math.Round(100*m[c])))
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
}
