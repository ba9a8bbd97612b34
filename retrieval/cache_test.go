package retrieval_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// shelf is a cache of texts that counts what it had to make.
type shelf struct {
	*retrieval.Cache[string]
	made []string
}

func newShelf(l retrieval.Limits) *shelf {
	return &shelf{Cache: retrieval.NewCache(l, func(s string) int { return len(s) })}
}

// get asks for a key whose value is the key.
func (s *shelf) get(t *testing.T, key string) {
	t.Helper()
	got, err := s.Get(t.Context(), key, func(context.Context) (string, error) {
		s.made = append(s.made, key)
		return key, nil
	})
	if got != key || err != nil {
		t.Errorf("%s gives %q, %v", key, got, err)
	}
}

func TestWhatIsKeptIsNotMadeAgainUntilItIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(retrieval.Limits{Age: time.Minute, Entries: 9, Bytes: 99})
		for _, wait := range []time.Duration{0, 59 * time.Second, time.Second} {
			time.Sleep(wait)
			s.get(t, "a") // being asked for does not keep it young
		}
		if got := strings.Join(s.made, " "); got != "a a" {
			t.Errorf("made %s, want one a at the start and one after a minute", got)
		}
	})
}

func TestAgeCountsFromWhenItBeganToBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := retrieval.NewCache(retrieval.Limits{Age: time.Minute, Entries: 9, Bytes: 99}, func(int) int { return 1 })
		n := 0
		slow := func(context.Context) (int, error) { time.Sleep(59 * time.Second); n++; return n, nil }
		for range 2 {
			if _, err := c.Get(t.Context(), "k", slow); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if n != 2 {
			t.Errorf("made %d times: what was read a minute ago was served", n)
		}
	})
}

func TestACacheStaysWithinItsBounds(t *testing.T) {
	for _, c := range []struct {
		name        string
		limits      retrieval.Limits
		asked, made string
	}{
		{"entries", retrieval.Limits{Age: time.Hour, Entries: 2, Bytes: 99}, "a b c a", "a b c a"},
		{"the last used stay", retrieval.Limits{Age: time.Hour, Entries: 2, Bytes: 99}, "a b a c a b", "a b c b"},
		{"bytes, of keys too", retrieval.Limits{Age: time.Hour, Entries: 9, Bytes: 4}, "a b c a", "a b c a"},
		{"what is too large throws nothing out", retrieval.Limits{Age: time.Hour, Entries: 9, Bytes: 4}, "a b large a b large", "a b large large"},
	} {
		s := newShelf(c.limits)
		for _, key := range strings.Fields(c.asked) {
			s.get(t, key)
		}
		if got := strings.Join(s.made, " "); got != c.made {
			t.Errorf("%s: made %s, want %s", c.name, got, c.made)
		}
	}
}

func TestWhatSeveralAskForAtOnceIsMadeOnceAndNobodyElseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := retrieval.NewCache(retrieval.Limits{Age: time.Hour, Entries: 9, Bytes: 99}, func(string) int { return 1 })
		made := 0
		release := make(chan bool)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				got, err := c.Get(t.Context(), "slow", func(context.Context) (string, error) {
					made++
					<-release
					return "value", nil
				})
				if got != "value" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			})
		}
		synctest.Wait()
		if got, err := c.Get(t.Context(), "quick", func(context.Context) (string, error) { return "other", nil }); got != "other" || err != nil {
			t.Errorf("another key gives %q, %v", got, err)
		}
		close(release)
		all.Wait()
		if made != 1 {
			t.Errorf("made %d times", made)
		}
	})
}

func TestFailuresAreNotKept(t *testing.T) {
	c := retrieval.NewCache(retrieval.Limits{Age: time.Hour, Entries: 9, Bytes: 99}, func(string) int { return 1 })
	fault := errors.New("fault")
	if _, err := c.Get(t.Context(), "k", func(context.Context) (string, error) { return "half", fault }); !errors.Is(err, fault) {
		t.Errorf("got %v", err)
	}
	if got, err := c.Get(t.Context(), "k", func(context.Context) (string, error) { return "whole", nil }); got != "whole" || err != nil {
		t.Errorf("after a failure: %q, %v", got, err)
	}
}

func TestOneWhoGoesAwayDoesNotTakeTheOthersAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := retrieval.NewCache(retrieval.Limits{Age: time.Hour, Entries: 9, Bytes: 99}, func(string) int { return 1 })
		first, leave := context.WithCancel(t.Context())
		make := func(ctx context.Context) (string, error) {
			select {
			case <-ctx.Done():
				return "", fmt.Errorf("making: %w", ctx.Err())
			case <-time.After(time.Minute):
				return "value", nil
			}
		}
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := c.Get(first, "k", make); !errors.Is(err, context.Canceled) {
				t.Errorf("the first got %v", err)
			}
		})
		synctest.Wait()
		both.Go(func() {
			if got, err := c.Get(t.Context(), "k", make); got != "value" || err != nil {
				t.Errorf("the second got %q, %v", got, err)
			}
		})
		synctest.Wait()
		leave()
		both.Wait()
	})
}

func TestACachedContextIsTheOneThatItsOwnViewGets(t *testing.T) {
	s := (&draft{}).database("shop", catalog.SQLite).
		table("orders", "", "id*", "amount", "region").
		table("salaries", "", "id*", "amount", "person").build(t)
	y := newSystem(t, s, 5000)
	cached := retrieval.NewCachedLinker(y.linker)
	grant := func(who string) acl.View {
		return compile(t, s, `{"version": 1, "principals": {"p": {"roles": ["r"]}}, "grants": [{"role": "r", "allow": ["`+who+`"], "actions": ["view", "query"]}]}`)
	}
	views := map[string]acl.View{"orders": grant("shop.orders"), "salaries": grant("shop.salaries"), "nobody": {}}
	for range 3 {
		for name, v := range views {
			for _, question := range []string{"amount of orders", "amount by person", "boiling point of tungsten"} {
				want, err := y.linker.Link(t.Context(), question, v)
				if err != nil {
					t.Fatal(err)
				}
				got, err := cached.Link(t.Context(), question, v)
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s asks %q and gets %+v, %v; want %+v", name, question, got, err, want)
				}
				hidden, err := y.linker.Withheld(t.Context(), question, v)
				if err != nil {
					t.Fatal(err)
				}
				if refs, err := cached.Withheld(t.Context(), question, v); err != nil || fmt.Sprint(refs) != fmt.Sprint(hidden) {
					t.Errorf("from %s, %q withholds %v, %v; want %v", name, question, refs, err, hidden)
				}
				// What one asker does to their copy is not seen by the next.
				for i := range got.Items {
					got.Items[i] = retrieval.Item{}
				}
			}
		}
	}
}

// What a view whose parts are known costs a question over a catalog of 100,000 objects.
func BenchmarkViewFilter(b *testing.B) {
	d := &draft{}
	for i := range 1000 {
		if i%20 == 0 {
			d.database(fmt.Sprintf("db%d", i/20), catalog.SQLite)
		}
		columns := make([]string, 99)
		for j := range columns {
			columns[j] = fmt.Sprintf("c%d", j)
		}
		d.table(fmt.Sprintf("t%d", i), "", columns...)
	}
	s := d.build(b)
	if s.Len() < 100_000 {
		b.Fatalf("only %d objects", s.Len())
	}
	v := compile(b, s, `{"version": 1, "principals": {"p": {"roles": ["r"]}}, "grants": [
		{"role": "r", "allow": ["*"], "actions": ["view", "query"]}, {"role": "r", "deny": ["*.*.c7", "db3"], "actions": ["view"]}]}`)
	for b.Loop() {
		if v.Queryables().IsEmpty() {
			b.Fatal("nothing is visible")
		}
	}
}
