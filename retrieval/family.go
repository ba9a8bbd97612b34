package retrieval

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// families are the groups of tables that one view shows alike: tables of one database and schema whose names differ in
// numbers only, such as dates, and whose visible columns have the same names and types. Members are ordered by the
// numbers in their names, oldest first, and the newest leads. The zero families holds none.
type families struct {
	view    acl.View            // shows one of each family
	visible idSet               // what it lets be queried
	askable *roaring.Bitmap     // what the asker's view lets be queried
	members map[uint32][]uint32 // by table
	leaders map[uint32]uint32   // of tables and columns; who leads, or is alone, is not in it
}

// leader returns the table or column that stands for a table or column, which may be itself.
func (f *families) leader(id uint32) uint32 {
	if l, ok := f.leaders[id]; ok {
		return l
	}
	return id
}

// shown returns the members of a table's family that a question is shown: those that it needs for other reasons or
// names, by the name itself or a date in it, else the newest.
func (f *families) shown(s *catalog.Snapshot, table uint32, question string, needed map[uint32]bool) []uint32 {
	members := f.members[table]
	if members == nil {
		return []uint32{table}
	}
	var out []uint32
	dates := periods(question)
	for _, m := range members {
		name := s.Object(m).Ref.Table
		of := period(name)
		if needed[m] || contains(question, name) || slices.ContainsFunc(dates, func(d []string) bool { return within(of, d) }) {
			out = append(out, m)
		}
	}
	if out == nil {
		out = members[len(members)-1:]
	}
	return out
}

// contains reports whether a name stands in a text as a word.
func contains(text, name string) bool {
	text, name = strings.ToLower(text), strings.ToLower(name)
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		i += at
		end := i + len(name)
		if (i == 0 || !wordByte(text[i-1])) && (end == len(text) || !wordByte(text[end])) {
			return true
		}
		at = i + 1
	}
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80
}

// say tells how many are like a table, and from which to which.
func (f *families) say(s *catalog.Snapshot, table uint32) string {
	m := f.members[table]
	if m == nil {
		return ""
	}
	return fmt.Sprintf("one of %d alike: %s to %s", len(m), s.Object(m[0]).Ref.Table, s.Object(m[len(m)-1]).Ref.Table)
}

// newFamilies finds the families among what is visible.
func newFamilies(s *catalog.Snapshot, visible *roaring.Bitmap) *families {
	type like struct{ database, schema, name string }
	groups := map[like][]uint32{}
	var order []like
	for r := s.OfKind(catalog.KindTable); r.From < r.To; r.From++ {
		ref := s.Object(r.From).Ref
		name, numbered := template(ref.Table)
		if !numbered || !visible.Contains(r.From) {
			continue
		}
		g := like{ref.Database, ref.Schema, name}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], r.From)
	}
	f := &families{}
	for _, g := range order {
		if len(groups[g]) < 2 {
			continue
		}
		byColumns := map[string][]uint32{}
		var kinds []string
		for _, t := range groups[g] {
			k := signature(s, t, visible)
			if byColumns[k] == nil {
				kinds = append(kinds, k)
			}
			byColumns[k] = append(byColumns[k], t)
		}
		for _, k := range kinds {
			if len(byColumns[k]) > 1 {
				f.add(s, byColumns[k], visible)
			}
		}
	}
	return f
}

func (f *families) add(s *catalog.Snapshot, tables []uint32, visible *roaring.Bitmap) {
	if f.members == nil {
		f.members, f.leaders = map[uint32][]uint32{}, map[uint32]uint32{}
	}
	slices.SortFunc(tables, func(a, b uint32) int {
		return cmp.Or(older(s.Object(a).Ref.Table, s.Object(b).Ref.Table), cmp.Compare(a, b))
	})
	newest := tables[len(tables)-1]
	columns := map[string]uint32{}
	for r := s.ColumnIDs(newest); r.From < r.To; r.From++ {
		columns[s.Object(r.From).Ref.Column] = r.From
	}
	for _, t := range tables {
		f.members[t] = tables
		if t == newest {
			continue
		}
		f.leaders[t] = newest
		for r := s.ColumnIDs(t); r.From < r.To; r.From++ {
			if visible.Contains(r.From) {
				f.leaders[r.From] = columns[s.Object(r.From).Ref.Column]
			}
		}
	}
}

// template returns a name with a mark for each of its numbers, and reports whether there is one.
func template(name string) (string, bool) {
	var b strings.Builder
	numbered := false
	for i := 0; i < len(name); i++ {
		switch {
		case !isDigit(name[i]):
			b.WriteByte(name[i])
		case i == 0 || !isDigit(name[i-1]):
			b.WriteByte(0)
			numbered = true
		}
	}
	return b.String(), numbered
}

// signature holds the names and types of a table's visible columns, whatever their order.
func signature(s *catalog.Snapshot, table uint32, visible *roaring.Bitmap) string {
	var lines []string
	for r := s.ColumnIDs(table); r.From < r.To; r.From++ {
		if visible.Contains(r.From) {
			o := s.Object(r.From)
			lines = append(lines, fmt.Sprintf("%q %q", o.Ref.Column, o.Column.Type))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// period returns the numbers of a name in the order in which time runs, each with the letter that it has to itself, as
// in q1: a year stands before what else there is, and digits that hold one come apart as year, month, day.
func period(name string) []string {
	var years, rest []string
	for i := 0; i < len(name); {
		if !isDigit(name[i]) {
			i++
			continue
		}
		from := i
		for i < len(name) && isDigit(name[i]) {
			i++
		}
		n := name[from:i]
		switch {
		case len(n) == 8 && isYear(n[:4]):
			years = append(years, n[:4], n[4:6], n[6:])
		case len(n) == 8 && isYear(n[4:]):
			years = append(years, n[4:], n[2:4], n[:2])
		case len(n) == 6 && isYear(n[:4]):
			years = append(years, n[:4], n[4:])
		case isYear(n):
			years = append(years, n)
		case from > 0 && isLetter(name[from-1]) && (from == 1 || !isLetter(name[from-2])):
			rest = append(rest, strings.ToLower(name[from-1:i]))
		default:
			rest = append(rest, n)
		}
	}
	return append(years, rest...)
}

func isYear(n string) bool { return len(n) == 4 && (n[:2] == "19" || n[:2] == "20") }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// older compares names by the numbers in them.
func older(a, b string) int { return slices.CompareFunc(period(a), period(b), byNumber) }

func byNumber(a, b string) int {
	a, b = strings.TrimLeft(a, "abcdefghijklmnopqrstuvwxyz0"), strings.TrimLeft(b, "abcdefghijklmnopqrstuvwxyz0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

var (
	yearFirst   = regexp.MustCompile(`\b((?:19|20)\d\d)(?:[-/._]?(\d\d)(?:[-/._]?(\d\d))?)?\b`)
	yearLast    = regexp.MustCompile(`\b(\d\d?)\.(\d\d?)\.((?:19|20)\d\d)\b`)
	quarterYear = regexp.MustCompile(`(?i)\b([a-z]\d\d?)[ /_-]*((?:19|20)\d\d)\b`)
	yearQuarter = regexp.MustCompile(`(?i)\b((?:19|20)\d\d)[ /_-]*([a-z]\d\d?)\b`)
)

// periods returns the dates in a question, each from the year down.
func periods(question string) [][]string {
	var out [][]string
	for _, m := range yearFirst.FindAllStringSubmatch(question, -1) {
		out = append(out, slices.DeleteFunc(m[1:], func(n string) bool { return n == "" }))
	}
	for _, m := range yearLast.FindAllStringSubmatch(question, -1) {
		out = append(out, []string{m[3], m[2], m[1]})
	}
	for _, m := range quarterYear.FindAllStringSubmatch(question, -1) {
		out = append(out, []string{m[2], strings.ToLower(m[1])})
	}
	for _, m := range yearQuarter.FindAllStringSubmatch(question, -1) {
		out = append(out, []string{m[1], strings.ToLower(m[2])})
	}
	return out
}

// within reports whether a date lies in a period, each given from the year down.
func within(period []string, date []string) bool {
	return len(period) > 0 && isYear(period[0]) && len(period) <= len(date) && slices.EqualFunc(period, date[:len(period)], func(a, b string) bool {
		return byNumber(a, b) == 0 && isLetter(a[0]) == isLetter(b[0]) && (!isLetter(a[0]) || a[0] == b[0])
	})
}

// kinships remembers the families of views. It is safe for concurrent use, and its zero value is ready.
type kinships struct {
	once  sync.Once
	known *Cache[*families] // by the view's key
}

var kinshipLimits = Limits{Age: 5 * time.Minute, Entries: 256, Bytes: 64 << 20}

// of returns the families of a view.
func (k *kinships) of(ctx context.Context, v acl.View) (*families, error) {
	k.once.Do(func() { k.known = NewCache(kinshipLimits, (*families).bytes) })
	f, err := k.known.Get(ctx, v.Key(), func(context.Context) (*families, error) {
		all := v.Queryables()
		f := newFamilies(v.Snapshot(), all)
		f.askable = all
		var err error
		if f.view, err = v.Without(roaring.BitmapOf(slices.Collect(maps.Keys(f.leaders))...)); err != nil {
			return nil, err
		}
		f.visible = newIDSet(v.Snapshot().Len(), f.view.Queryables())
		return f, nil
	})
	return f, err
}

// bytes is about what families take.
func (f *families) bytes() int {
	return 64 + 32*len(f.leaders) + 64*len(f.members) + 8*len(f.visible) + int(f.askable.GetSizeInBytes())
}

// idSet holds ids, a bit for each object that there is: asking it is quicker than asking a bitmap that is compressed.
type idSet []uint64

func newIDSet(n int, ids *roaring.Bitmap) idSet {
	out := make(idSet, (n+63)/64)
	for it := ids.Iterator(); it.HasNext(); {
		id := it.Next()
		out[id/64] |= 1 << (id % 64)
	}
	return out
}

// Contains reports whether an id is in the set.
func (s idSet) Contains(id uint32) bool { return int(id/64) < len(s) && s[id/64]>>(id%64)&1 == 1 }

// count returns how many ids of a range are in the set.
func (s idSet) count(r catalog.Range) int {
	n := 0
	for ; r.From < r.To && r.From%64 != 0; r.From++ {
		if s.Contains(r.From) {
			n++
		}
	}
	for ; r.From+64 <= r.To; r.From += 64 {
		n += bits.OnesCount64(s[r.From/64])
	}
	for ; r.From < r.To; r.From++ {
		if s.Contains(r.From) {
			n++
		}
	}
	return n
}
