package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
)

// use is what a text is for: what is measured by is not learned from.
type use int

const (
	learning use = iota
	measuring
)

// notes are what dictionaries of data say of many a column, by use.
var notes = [...][2]string{
	{"Empty if the value was not reported in the period.", "Total number counted since the first day of the month."},
	{"Average over all records of the group, rounded to two decimal places.", "Date and time at which the record was first created, in UTC."},
	{"Date on which the record was last changed by a user.", "Share of the total, as a percentage between 0 and 100."},
	{"Name of the country, state or city of the address.", "Identifier of the customer or user who made the change."},
	{"Type or category that the item belongs to.", "Rank by the highest value within each year."},
	{"Calculated as the difference between the start and the end of the time range.", "Whether the event is included in the results of the latest release."},
	{"Code of the product, as given by the source of the data.", "Price or amount in US dollars, for each unit sold."},
	{"Population of the area at the time, by age and sex.", "Median income of households in the past twelve months."},
	{"Distance in miles from the previous location to the next one.", "Title and description of the page, project or publication."},
	{"Language of the text, or its most common one.", "Status of the order or application when it was filed."},
	{"Number of distinct visitors per session and day.", "Maximum and minimum of the measured values at the station."},
	{"Version of the file or package, with its most recent date.", "Organization, company or team that is responsible."},
}

// wishes are what long questions say beside what they are about, by use.
var wishes = [...][2]string{
	{"Please list the results in descending order.", "Round the values to two decimal places."},
	{"Consider only records from the past year.", "For each group, calculate the average and the total number."},
	{"Report the percentage difference between the first and the last month.", "Include only the top 10 with the highest count."},
	{"Exclude entries without a valid value.", "Show the name, the type and the date of each."},
	{"How does this compare to the previous period?", "Rank them by the total amount per category."},
	{"Give the most recent version only.", "Return the id along with the corresponding time range."},
	{"Which of these has the largest increase over time?", "Use the median where there are several values at the same time."},
}

// many is the number of databases from which on one that is made of them is very large.
const many = 12

// spread draws how many databases make up one: mostly one, at times many.
func spread(dice *rand.Rand) int {
	switch x := dice.Float64(); {
	case x < 0.12:
		return many + dice.IntN(2*many)
	case x < 0.4:
		return 2 + dice.IntN(3)
	}
	return 1
}

// large makes some databases very large: of many schemas, with further tables much like theirs. Some of all have long
// descriptions and some none, and some of those that are not large have near-twins.
func large(c ingest.Content, dice *rand.Rand, home homes, texts use) ingest.Content {
	members := map[string]int{}
	c = merge(c, dice, home, func() int { return spread(dice) })
	for _, at := range home {
		members[at[0].database]++
	}
	var out ingest.Content
	twins := map[string]bool{}
	for _, d := range c.Databases {
		own := only(c, []catalog.Database{d})
		huge := members[d.Name] >= many
		if huge {
			own = copied(own, 2+dice.IntN(5), dice)
		}
		switch x := dice.Float64(); {
		case x < 0.35 || huge && x < 0.75:
			own = wordy(own, 1+dice.IntN(4), dice, texts)
		case x > 0.85:
			own = wordless(own)
		}
		if !huge && dice.Float64() < 0.3 {
			twins[d.Name] = true
		}
		out.Databases = append(out.Databases, own.Databases...)
		out.Objects = append(out.Objects, own.Objects...)
	}
	some := slices.DeleteFunc(slices.Clone(out.Databases), func(d catalog.Database) bool { return !twins[d.Name] })
	rest := slices.DeleteFunc(slices.Clone(out.Databases), func(d catalog.Database) bool { return twins[d.Name] })
	twinned := editions(only(out, some), dice.Uint64(), home)
	out = only(out, rest)
	return ingest.Content{Databases: append(out.Databases, twinned.Databases...), Objects: append(out.Objects, twinned.Objects...)}
}

// copied adds to each table up to so many that have most of its columns.
func copied(c ingest.Content, most int, dice *rand.Rand) ingest.Content {
	columns := map[catalog.Ref][]catalog.Object{}
	var tables []catalog.Object
	for _, o := range c.Objects {
		switch o.Ref.Kind {
		case catalog.KindTable:
			tables = append(tables, o)
		case catalog.KindColumn:
			columns[o.Ref.TableRef()] = append(columns[o.Ref.TableRef()], o)
		}
	}
	for _, t := range tables {
		for n := range dice.IntN(most + 1) {
			mark := fmt.Sprintf("_%s_%d", [...]string{"archive", "by_region", "summary", "v", "history", "staging"}[dice.IntN(6)], 2010+n)
			to := t
			to.Ref.Table += mark
			to.Table = &catalog.Table{Rows: t.Table.Rows}
			c.Objects = append(c.Objects, to)
			kept := 0.5 + 0.4*dice.Float64()
			for i, o := range columns[t.Ref] {
				if i > 0 && dice.Float64() > kept {
					continue
				}
				column := *o.Column
				column.ForeignKeys = nil
				o.Column = &column
				o.Ref.Table += mark
				c.Objects = append(c.Objects, o)
			}
		}
	}
	return c
}

// wordy makes descriptions long: with what other columns of the table's database are and hold, and what dictionaries say.
func wordy(c ingest.Content, most int, dice *rand.Rand, texts use) ingest.Content {
	var said []string
	for _, o := range c.Objects {
		if o.Ref.Kind != catalog.KindColumn {
			continue
		}
		text := strings.Join(append([]string{o.Description}, o.Synonyms...), " ")
		if len(o.Column.Samples) > 0 {
			text += ", such as " + fmt.Sprint(o.Column.Samples[0])
		}
		if strings.TrimSpace(text) != "" {
			said = append(said, text)
		}
	}
	for i, o := range c.Objects {
		if o.Ref.Kind != catalog.KindColumn && o.Ref.Kind != catalog.KindTable {
			continue
		}
		parts := []string{o.Description}
		for range dice.IntN(most + 1) {
			if dice.IntN(2) == 0 && len(said) > 0 {
				// A neighbour, most likely: they stand in order.
				parts = append(parts, said[min(len(said)-1, max(0, i*len(said)/len(c.Objects)+dice.IntN(21)-10))])
			} else {
				parts = append(parts, notes[dice.IntN(len(notes))][texts])
			}
		}
		c.Objects[i].Description = strings.TrimSpace(strings.Join(parts, ". "))
	}
	return c
}

// wordless leaves descriptions out.
func wordless(c ingest.Content) ingest.Content {
	for i := range c.Objects {
		c.Objects[i].Description = ""
	}
	return c
}

// longer makes a question one of several sentences: with its hint, another one about the same tables, and wishes.
func longer(q ingest.Question, others []ingest.Question, dice *rand.Rand, texts use) ingest.Question {
	if q.Evidence != "" && dice.IntN(2) == 0 {
		q.Question += " " + q.Evidence
	}
	if dice.Float64() < 0.6 {
		var near []ingest.Question
		for _, o := range others {
			if o.ID != q.ID && slices.ContainsFunc(o.GoldTables, func(t string) bool { return slices.Contains(q.GoldTables, t) }) {
				near = append(near, o)
			}
		}
		if len(near) > 0 {
			o := near[dice.IntN(len(near))]
			q.Question += " " + o.Question
			q.GoldTables, q.GoldColumns = union(q.GoldTables, o.GoldTables), union(q.GoldColumns, o.GoldColumns)
		}
	}
	for range dice.IntN(4) {
		q.Question += " " + wishes[dice.IntN(len(wishes))][texts]
	}
	return q
}

func union(a, b []string) []string {
	in := map[string]bool{}
	for _, x := range slices.Concat(a, b) {
		in[x] = true
	}
	return slices.Sorted(maps.Keys(in))
}
