package audit

import (
	"cmp"
	_ "embed"
	"errors"
	"html/template"
	"io"
	"iter"
	"maps"
	"slices"
	"time"
)

// Summary counts the records of a log for people who were not there.
type Summary struct {
	Records     int       `json:"records"`
	Removed     int       `json:"removed"` // of them without content, so counted by day alone
	First, Last time.Time `json:"-"`
	Days        []Day     `json:"days"` // from the first with a record to the last, without gaps
	Outcomes    []Count   `json:"outcomes"`
	Principals  []Count   `json:"principals"`
	Codes       []Count   `json:"codes"`    // of refusals
	Withheld    []Count   `json:"withheld"` // objects, the most often withheld first
}

// Day is what was recorded on a day in UTC.
type Day struct {
	Date    string          `json:"date"`
	Count   int             `json:"count"`
	Removed int             `json:"removed,omitempty"`
	By      map[Outcome]int `json:"by"`
}

// Refused is how many of the day's records are refusals.
func (d Day) Refused() int { return d.By[Refused] }

// Count is how many records have something, and how many of them are refusals.
type Count struct {
	Name    string `json:"name"`
	Count   int    `json:"count"`
	Refused int    `json:"refused"`
}

// Summarize counts records. It leaves out what is damaged, which is for Verify to tell.
func Summarize(records iter.Seq2[Record, error]) (Summary, error) {
	var s Summary
	days := map[string]*Day{}
	outcomes, principals, codes, withheld := tally{}, tally{}, tally{}, tally{}
	for r, err := range records {
		if errors.Is(err, ErrAltered) {
			continue
		}
		if err != nil {
			return Summary{}, err
		}
		s.Records++
		if s.First.IsZero() || r.Time.Before(s.First) {
			s.First = r.Time
		}
		if r.Time.After(s.Last) {
			s.Last = r.Time
		}
		date := r.Time.Format(time.DateOnly)
		day := days[date]
		if day == nil {
			day = &Day{Date: date, By: map[Outcome]int{}}
			days[date] = day
		}
		day.Count++
		if r.Removed != "" {
			s.Removed++
			day.Removed++
			continue
		}
		day.By[r.Outcome]++
		outcomes.add(string(r.Outcome), r)
		principals.add(cmp.Or(r.OnBehalfOf, r.Principal), r)
		if r.Outcome == Refused {
			codes.add(r.Code, r)
		}
		for _, ref := range slices.Compact(slices.Sorted(slices.Values(r.Withheld))) {
			withheld.add(ref, r)
		}
	}
	s.Outcomes, s.Principals, s.Codes, s.Withheld = outcomes.counts(), principals.counts(), codes.counts(), withheld.counts()
	s.Days = calendar(days)
	return s, nil
}

// calendar lists the days in order with those between on which nothing was recorded.
func calendar(days map[string]*Day) []Day {
	out := []Day{}
	dates := slices.Sorted(maps.Keys(days))
	for _, date := range dates {
		for len(out) > 0 && len(out) < maxDays {
			last, err := time.Parse(time.DateOnly, out[len(out)-1].Date)
			next := last.AddDate(0, 0, 1).Format(time.DateOnly)
			if err != nil || next >= date {
				break
			}
			out = append(out, Day{Date: next, By: map[Outcome]int{}})
		}
		out = append(out, *days[date])
	}
	return out
}

// maxDays bounds how many days are filled in: a clock that once stood wrong must not make a page of a million days.
const maxDays = 4000

type tally map[string]*Count

func (t tally) add(name string, r Record) {
	c := t[name]
	if c == nil {
		c = &Count{Name: name}
		t[name] = c
	}
	c.Count++
	if r.Outcome == Refused {
		c.Refused++
	}
}

// counts lists the most frequent first.
func (t tally) counts() []Count {
	out := make([]Count, 0, len(t))
	for _, c := range t {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Count) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
	return out
}

// Page is what an auditor is handed.
type Page struct {
	Summary    Summary
	Report     Report
	Log        string // its file
	Filter     string // which records are counted, in words
	Checkpoint string // signed, the one that the log was verified against; empty if there is none
	Made       time.Time
}

// counts is a table of the page.
type counts struct {
	Title, What string
	Counts      []Count
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"share": func(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) },
	"most": func(days []Day) int {
		return slices.MaxFunc(days, func(a, b Day) int { return cmp.Compare(a.Count, b.Count) }).Count
	},
	"moment": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
	"top":    func(c []Count) []Count { return c[:min(len(c), 25)] },
	"counts": func(title, what string, c []Count) counts { return counts{title, what, c} },
}).Parse(pageText))

// WriteHTML writes the page: one file that asks nothing of any network.
func (p Page) WriteHTML(w io.Writer) error { return page.Execute(w, p) }
