package warehouse

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// gen makes the value of a column in row i, counted from 0. Whatever is random in it comes from r.
type gen func(r *rand.Rand, i int) any

// The warehouse's days run from 0, 2023-01-01, to lastDay, 2025-12-31.
const (
	lastDay   = len(calendar) - 1
	firstOf24 = 365
	firstOf25 = 365 + 366
)

// calendar holds every day of the warehouse as 2006-01-02.
var calendar = func() (days [365 + 366 + 365]string) {
	d := time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range days {
		days[i] = d.AddDate(0, 0, i).Format(time.DateOnly)
	}
	return days
}()

// day returns a date, and NULL for one after the warehouse's last day.
func day(d int) any {
	if d > lastDay {
		return nil
	}
	return calendar[d]
}

func clock(r *rand.Rand, d int) string {
	return fmt.Sprintf("%s %02d:%02d:%02d", calendar[d], 6+r.IntN(17), r.IntN(60), r.IntN(60))
}

func serial(_ *rand.Rand, i int) any { return int64(i + 1) }

// each takes the value of row i from rows[i].
func each[T any](rows []T, f func(*T) any) gen {
	return func(_ *rand.Rand, i int) any { return f(&rows[i]) }
}

func at(f func(i int) any) gen { return func(_ *rand.Rand, i int) any { return f(i) } }

func constant(v any) gen { return func(*rand.Rand, int) any { return v } }

func pick(values ...string) gen {
	return func(r *rand.Rand, _ int) any { return values[r.IntN(len(values))] }
}

// nth gives row i the value i, from the start again after the last.
func nth(values ...string) gen { return func(_ *rand.Rand, i int) any { return values[i%len(values)] } }

// odds picks a value as often as its weight says: odds("yes", 9, "no", 1).
func odds(pairs ...any) gen {
	var hat []string
	for i := 0; i < len(pairs); i += 2 {
		for range pairs[i+1].(int) {
			hat = append(hat, pairs[i].(string))
		}
	}
	return pick(hat...)
}

// mostly gives a value in that share of the rows and NULL in the others.
func mostly(share float64, g gen) gen {
	return func(r *rand.Rand, i int) any {
		if r.Float64() < share {
			return g(r, i)
		}
		return nil
	}
}

func flag(share float64) gen {
	return func(r *rand.Rand, _ int) any {
		if r.Float64() < share {
			return int64(1)
		}
		return int64(0)
	}
}

// number is a whole number from lo to hi, both included.
func number(lo, hi int) gen {
	return func(r *rand.Rand, _ int) any { return int64(lo + r.IntN(hi-lo+1)) }
}

// key points at one of n rows numbered from 1.
func key(n int) gen { return number(1, n) }

func date(from, to int) gen {
	return func(r *rand.Rand, _ int) any { return calendar[from+r.IntN(to-from+1)] }
}

func stamp(from, to int) gen {
	return func(r *rand.Rand, _ int) any { return clock(r, from+r.IntN(to-from+1)) }
}

func born(r *rand.Rand, _ int) any {
	return fmt.Sprintf("%d-%02d-%02d", 1948+r.IntN(58), 1+r.IntN(12), 1+r.IntN(28))
}

// numbered writes i, counted from 1, by a format such as "SKU-%05d".
func numbered(format string) gen {
	return func(_ *rand.Rand, i int) any { return fmt.Sprintf(format, i+1) }
}

// digits replaces each # by a digit and each @ by a capital letter.
func digits(mask string) gen {
	return func(r *rand.Rand, _ int) any {
		b := []byte(mask)
		for i := range b {
			switch b[i] {
			case '#':
				b[i] = '0' + byte(r.IntN(10))
			case '@':
				b[i] = 'A' + byte(r.IntN(26))
			}
		}
		return string(b)
	}
}

var (
	phone      = digits("+## ### #######")
	nationalID = digits("##-######-@##")
	iban       = digits("DE## #### #### #### #### ##")
	firstNames = strings.Fields("Anna Ben Clara David Elif Finn Greta Hugo Ines Jonas Katja Lars Mia Noah Olga Paul Quentin Rosa Sven Tara Ugo Vera Wim Xenia Yusuf Zoe Amelie Bruno Chiara Diego Emma Felix Giulia Hana Ivan Julia Kenji Lucia Marco Nora")
	lastNames  = strings.Fields("Andersen Bauer Costa Dubois Eriksen Fischer Garcia Hansen Ito Jensen Keller Lopez Moreau Nowak Olsen Peeters Quinn Rossi Schmidt Tanaka Ulrich Vogel Weber Yilmaz Zimmer Becker Conti Duarte Evans Ferreira Gruber Huber Ivanov Johnson Koch Lindqvist Martin Novak Pereira Silva")
	streets    = strings.Fields("Hauptstrasse Bahnhofstrasse Lindenweg Bergstrasse Storgata RueHaute ViaRoma HighStreet CalleMayor Kerkstraat")
)

func firstName(r *rand.Rand, _ int) any { return firstNames[r.IntN(len(firstNames))] }
func lastName(r *rand.Rand, _ int) any  { return lastNames[r.IntN(len(lastNames))] }

func street(r *rand.Rand, _ int) any {
	return fmt.Sprintf("%s %d", streets[r.IntN(len(streets))], 1+r.IntN(180))
}
