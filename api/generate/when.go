package generate

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// period is a half-open span of days; a zero end is open.
type period struct{ from, to time.Time }

func days(year int, month time.Month, day, years, months, n int, at *time.Location) period {
	from := time.Date(year, month, day, 0, 0, 0, 0, at)
	return period{from, from.AddDate(years, months, n)}
}

// grain is a unit of the calendar.
type grain string

// The grains.
const (
	byDay     grain = "day"
	byWeek    grain = "week"
	byMonth   grain = "month"
	byQuarter grain = "quarter"
	byYear    grain = "year"
)

// grains are the words for units, one or several of them, and the adjectives made of them.
var (
	grains = map[string]grain{
		"day": byDay, "days": byDay, "week": byWeek, "weeks": byWeek, "month": byMonth, "months": byMonth,
		"quarter": byQuarter, "quarters": byQuarter, "year": byYear, "years": byYear,
	}
	rhythms = map[string]grain{
		"daily": byDay, "weekly": byWeek, "monthly": byMonth, "quarterly": byQuarter, "yearly": byYear, "annual": byYear, "annually": byYear,
	}
)

// start is the first day of the unit that holds a moment. Weeks begin on Monday.
func (g grain) start(t time.Time) time.Time {
	y, m, d := t.Date()
	switch g {
	case byWeek:
		d -= (int(t.Weekday()) + 6) % 7
	case byMonth:
		d = 1
	case byQuarter:
		m, d = (m-1)/3*3+1, 1
	case byYear:
		m, d = time.January, 1
	}
	return time.Date(y, m, d, 0, 0, 0, 0, t.Location())
}

// add moves the first day of a unit by n units.
func (g grain) add(t time.Time, n int) time.Time {
	switch g {
	case byWeek:
		return t.AddDate(0, 0, 7*n)
	case byMonth:
		return t.AddDate(0, n, 0)
	case byQuarter:
		return t.AddDate(0, 3*n, 0)
	case byYear:
		return t.AddDate(n, 0, 0)
	}
	return t.AddDate(0, 0, n)
}

var (
	months = func() map[string]time.Month {
		out := map[string]time.Month{"sept": time.September}
		for m := time.January; m <= time.December; m++ {
			name := strings.ToLower(m.String())
			out[name], out[name[:3]] = m, m
		}
		return out
	}()
	ordinals = map[string]int{
		"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4,
	}
	isoDay      = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
	isoMonth    = regexp.MustCompile(`^\d{4}-\d{2}$`)
	quarterWord = regexp.MustCompile(`^(?:(\d{4})[-/]?)?q([1-4])$`)
	dayOfMonth  = regexp.MustCompile(`^([0-9]{1,2})(?:st|nd|rd|th)?$`)
)

// clock reads the times that words name, as of now.
type clock struct {
	now  time.Time
	word func(i int) string // what stands at i; "" beyond the end and where a word is taken
}

// point reads a day, month, quarter, year or a time relative to now at i, and returns how many words it takes; 0 if
// there is none.
func (c clock) point(i int) (period, int) {
	if p, n := c.absolute(i); n > 0 {
		return p, n
	}
	return c.relative(i)
}

func (c clock) absolute(i int) (period, int) {
	at, w := c.now.Location(), c.word(i)
	if isoDay.MatchString(w) {
		if t, err := time.ParseInLocation(time.DateOnly, w, at); err == nil {
			return period{t, byDay.add(t, 1)}, 1
		}
		return period{}, 0
	}
	if isoMonth.MatchString(w) {
		if t, err := time.ParseInLocation("2006-01", w, at); err == nil {
			return period{t, byMonth.add(t, 1)}, 1
		}
		return period{}, 0
	}
	quarter := func(year, q int) period { return days(year, time.Month(3*q-2), 1, 0, 3, 0, at) }
	if y := year(w); y > 0 {
		if m := quarterWord.FindStringSubmatch(c.word(i + 1)); m != nil && m[1] == "" {
			return quarter(y, int(m[2][0]-'0')), 2
		}
		if m, ok := months[c.word(i+1)]; ok {
			return days(y, m, 1, 0, 1, 0, at), 2
		}
		return days(y, time.January, 1, 1, 0, 0, at), 1
	}
	if m := quarterWord.FindStringSubmatch(w); m != nil {
		q := int(m[2][0] - '0')
		if m[1] != "" {
			return quarter(number(m[1]), q), 1
		}
		if y, n := c.ofYear(i + 1); y > 0 {
			return quarter(y, q), 1 + n
		}
		return period{}, 0
	}
	if q := ordinals[w]; q > 0 && c.word(i+1) == "quarter" {
		if y, n := c.ofYear(i + 2); y > 0 {
			return quarter(y, q), 2 + n
		}
	}
	if w == "quarter" {
		if q := number(c.word(i + 1)); q >= 1 && q <= 4 {
			if y, n := c.ofYear(i + 2); y > 0 {
				return quarter(y, q), 2 + n
			}
		}
	}
	if m, ok := months[w]; ok {
		if d, y, n := c.dayAndYear(i + 1); n > 0 {
			return day(y, m, d, 1+n, at)
		}
		if y, n := c.ofYear(i + 1); y > 0 {
			return days(y, m, 1, 0, 1, 0, at), 1 + n
		}
	}
	if d := dayOfMonth.FindStringSubmatch(w); d != nil {
		j := i + 1
		if c.word(j) == "of" {
			j++
		}
		if m, ok := months[c.word(j)]; ok {
			if y, n := c.ofYear(j + 1); y > 0 {
				return day(y, m, number(d[1]), j+1-i+n, at)
			}
		}
	}
	if w == "year" {
		if y, n := c.ofYear(i + 1); y > 0 {
			return days(y, time.January, 1, 1, 0, 0, at), 1 + n
		}
	}
	return period{}, 0
}

// day is a single day, unless the month has none of that number.
func day(y int, m time.Month, d, words int, at *time.Location) (period, int) {
	p := days(y, m, d, 0, 0, 1, at)
	if p.from.Month() != m || p.from.Day() != d {
		return period{}, 0
	}
	return p, words
}

// ofYear reads a year with of, in or a comma before it.
func (c clock) ofYear(i int) (y, words int) {
	j := i
	switch c.word(j) {
	case "of", "in", ",":
		j++
	}
	if y := year(c.word(j)); y > 0 {
		return y, j + 1 - i
	}
	return 0, 0
}

// dayAndYear reads the rest of "March 12, 2025".
func (c clock) dayAndYear(i int) (d, y, words int) {
	if m := dayOfMonth.FindStringSubmatch(c.word(i)); m != nil {
		if y, n := c.ofYear(i + 1); y > 0 {
			return number(m[1]), y, 1 + n
		}
	}
	return 0, 0, 0
}

// relative reads today, yesterday, this month and the like. The last N units are the N complete ones before the
// current one, so that last month and last 1 month mean the same, and today is in none of the last 30 days.
func (c clock) relative(i int) (period, int) {
	unit := func(w string) (grain, bool) { g, ok := grains[w]; return g, ok }
	switch w := c.word(i); w {
	case "today":
		t := byDay.start(c.now)
		return period{t, byDay.add(t, 1)}, 1
	case "yesterday":
		t := byDay.start(c.now)
		return period{byDay.add(t, -1), t}, 1
	case "this", "current":
		if g, ok := unit(c.word(i + 1)); ok {
			t := g.start(c.now)
			return period{t, g.add(t, 1)}, 2
		}
	case "last", "previous", "past":
		n, words := 1, 1
		if v, ok := count(c.word(i + 1)); ok {
			n, words = v, 2
		}
		if g, ok := unit(c.word(i + words)); ok && n >= 1 {
			t := g.start(c.now)
			return period{g.add(t, -n), t}, words + 1
		}
	}
	return period{}, 0
}

// span reads a point or a range of time at i. inverted is set for a range that ends before it begins.
func (c clock) span(i int) (p period, words int, inverted bool) {
	word := c.word(i)
	if word == "between" || word == "from" {
		from, n := c.point(i + 1)
		link := c.word(i + 1 + n)
		ties := link == "and"
		if word == "from" {
			ties = link == "to" || link == "until" || link == "till" || link == "through"
		}
		if n > 0 && ties {
			if to, m := c.point(i + 2 + n); m > 0 {
				return period{from.from, to.to}, 2 + n + m, to.from.Before(from.from)
			}
		}
		return period{}, 0, false
	}
	if at, n := c.point(i + 1); n > 0 {
		switch word {
		case "since":
			return period{from: at.from}, 1 + n, false
		case "before":
			return period{to: at.from}, 1 + n, false
		case "after":
			return period{from: at.to}, 1 + n, false
		case "through":
			return period{to: at.to}, 1 + n, false
		}
	}
	p, words = c.point(i)
	return p, words, false
}

// year returns the year that a word is, 0 if it is none of 1900 to 2199.
func year(w string) int {
	if y := number(w); len(w) == 4 && y >= 1900 && y < 2200 {
		return y
	}
	return 0
}

// number returns the whole number that a word of at most nine digits is, -1 if it is none.
func number(w string) int {
	if w == "" || len(w) > 9 || strings.Trim(w, "0123456789") != "" {
		return -1
	}
	n, _ := strconv.Atoi(w)
	return n
}

var numbers = map[string]int{
	"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12, "twenty": 20,
	"zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8, "neun": 9, "zehn": 10, "zwölf": 12, "zwanzig": 20,
}

// count reads a number of things, 1 to 10,000, in digits or as a word.
func count(w string) (int, bool) {
	n := number(w)
	if v, ok := numbers[w]; ok {
		n = v
	}
	return n, n >= 1 && n <= 10_000
}
