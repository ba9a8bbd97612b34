package generate_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// What a principal may not see cannot change a draft: it is the one that the catalog without it gives, under a policy
// that hides nothing.
func TestHiddenObjectsAndWithheldValuesDoNotChangeDrafts(t *testing.T) {
	shop := newShop(t, openShop(t), catalog.SQLite)
	var asked, words []string
	for _, r := range specification(t) {
		if r.question != "" {
			asked = append(asked, r.question)
			words = append(words, strings.Fields(r.question)...)
		}
	}
	written := 0
	rapid.Check(t, func(t *rapid.T) {
		pick := func(name string, shares ...float64) func(*catalog.Object) bool {
			share := rapid.SampledFrom(shares).Draw(t, "share "+name)
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, name), 0))
			chosen := map[uint32]bool{}
			for i := range shop.All() {
				chosen[uint32(i)] = random.Float64() < share
			}
			return func(o *catalog.Object) bool { return chosen[o.ID] }
		}
		v := view(shop, pick("hidden", 0, 0.02, 0.1), pick("withheld", 0, 0.05, 0.5))
		restricted, err := v.Restricted()
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			question := rapid.SampledFrom(asked).Draw(t, "question")
			if rapid.Bool().Draw(t, "mixed") {
				question = "net revenue " + strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 6).Draw(t, "words"), " ")
			}
			got, want := draft(t, question, v), draft(t, question, acl.Everything(restricted))
			if got != want {
				t.Fatalf("%q\nview:       %+v\nrestricted: %+v", question, got, want)
			}
			if got.SQL != "" {
				written++
			}
		}
	})
	if written == 0 {
		t.Error("no question was answered, so nothing was compared")
	}
}

// Whatever is asked, the compiler answers the same twice and writes nothing but SQL that SQLite accepts.
func FuzzDraft(f *testing.F) {
	for _, r := range specification(f) {
		if r.question != "" {
			f.Add(r.question)
		}
	}
	for _, q := range []string{"net revenue by \"", "net revenue 'x", "net revenue in 9999-99", "net revenue -5", "\xff net revenue", "net revenue 1\xff", "net revenue ①②？ ＝５", "净收入 net revenue 2025年", "net revenue by by by and , ,"} {
		f.Add(q)
	}
	db := openShop(f)
	v := acl.Everything(newShop(f, db, catalog.SQLite))
	f.Fuzz(func(t *testing.T, question string) {
		d := draft(t, question, v)
		if again := draft(t, question, v); again != d {
			t.Fatalf("%+v, then %+v", d, again)
		}
		if d.SQL != "" {
			if _, err := db.Exec("EXPLAIN " + d.SQL); err != nil {
				t.Fatalf("%v\n%s", err, d.SQL)
			}
		}
	})
}
