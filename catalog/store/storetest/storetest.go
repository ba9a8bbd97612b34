// Package storetest specifies a catalog store: every implementation passes Run.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/store"
)

// Store is what Run tests.
type Store interface {
	Put(ctx context.Context, snapshot *catalog.Snapshot, specs []string, by string) (store.Edition, error)
	Latest(ctx context.Context) (*catalog.Snapshot, store.Edition, error)
	At(ctx context.Context, version string) (*catalog.Snapshot, error)
	History(ctx context.Context) ([]store.Edition, error)
	Edit(ctx context.Context, edits ...catalog.Edit) error
	Edits(ctx context.Context) ([]catalog.Edit, error)
	AsOf(ctx context.Context, at time.Time) (*catalog.Snapshot, store.Edition, error)
	PutPolicy(ctx context.Context, body, by, why, expect string) (store.Policy, error)
	Policy(ctx context.Context, version string) (store.Policy, error)
	Policies(ctx context.Context) ([]store.Policy, error)
	Close() error
}

// Run tests an implementation. fresh makes an empty place for a store; each call of the function that it returns opens
// another Store on that place. The Stores are closed by Run.
func Run(t *testing.T, fresh func(t *testing.T) (open func() (Store, error))) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, open func() Store)
	}{
		{"an empty store says so", empty},
		{"a snapshot reads back equal, by another opening too", roundTrip},
		{"storing a version again adds a line of history only", again},
		{"history is newest first and keeps every line", history},
		{"older snapshots stay readable, unknown versions are told apart", versions},
		{"edits lie over the newest snapshot and not over the source", edits},
		{"an edit survives an ingest that changes or drops its object", survival},
		{"faulty edits are refused as a whole", refusedEdits},
		{"text that is not UTF-8 is refused, not altered", notUTF8},
		{"the catalog as of a moment is the one that was the latest", asOf},
		{"every policy stays readable, with who put it and why", policies},
		{"a policy is not put over another than the one expected", expectedPolicy},
		{"what one opening writes another reads at once", shared},
		{"several openings write at the same time", concurrent},
		{"a cancelled context stops everything and stores nothing", cancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			open := fresh(t)
			c.test(t, func() Store {
				t.Helper()
				s, err := open()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
				return s
			})
		})
	}
}

// Catalog is a small catalog with an object of every kind, every field set and awkward names. Its content depends on
// revision in one table's description.
func Catalog(t testing.TB, revision int) *catalog.Snapshot {
	t.Helper()
	return build(t, revision, "orders", "customers")
}

func build(t testing.TB, revision int, tables ...string) *catalog.Snapshot {
	t.Helper()
	rows, distinct, null := int64(7), int64(3), 0.1
	var objects []catalog.Object
	for _, name := range tables {
		ref := catalog.TableRef("shop", "sales", name)
		column := func(i int, n, typ string) catalog.Object {
			return catalog.Object{
				Ref:         catalog.ColumnRef("shop", "sales", name, n),
				Description: "Column " + n,
				Column: &catalog.Column{Type: typ, Position: i, NotNull: i == 0, Samples: []string{"<a>", "☃", "\x01", ""}, Dictionary: []string{"", "<a>", "é"},
					NullShare: &null, Distinct: &distinct},
			}
		}
		table := catalog.Object{
			Ref: ref, Description: fmt.Sprintf("Table %s", name), Tags: []string{"a", "b"}, Owner: "ops",
			Table: &catalog.Table{Rows: &rows, PrimaryKey: []string{"id"}, UniqueKeys: [][]string{{"id", `odd "na.me"`}},
				UpdateFrequency: "daily", Partitions: []catalog.Ref{catalog.TableRef("shop", "sales", name+"_2024")}},
		}
		if name == "orders" {
			table.Description = fmt.Sprintf("Orders, revision %d", revision)
			if slices.Contains(tables, "customers") {
				table.Table.ForeignKeys = []catalog.ForeignKey{{Columns: []string{"customer"},
					To: catalog.TableRef("shop", "sales", "customers"), ToColumns: []string{"id"}}}
			}
		}
		objects = append(objects, table, column(0, "id", "bigint"), column(1, "customer", "bigint"), column(2, `odd "na.me"`, "text"))
	}
	if slices.Contains(tables, "orders") {
		orders := catalog.TableRef("shop", "sales", "orders")
		objects = append(objects,
			catalog.Object{Ref: catalog.MetricRef("order count: all"), Synonyms: []string{"注文数"}, Metric: &catalog.Metric{
				Formula: "COUNT(id)", Sources: []catalog.Ref{orders}, Unit: "orders", Aggregation: "count",
				Dimensions: []catalog.Ref{catalog.ColumnRef("shop", "sales", "orders", "customer")}, Filters: []string{"id > 0"}}},
			catalog.Object{Ref: catalog.QueryRef("q1"), Query: &catalog.Query{Question: "How many?", SQL: "SELECT COUNT(*) FROM orders",
				Tables: []catalog.Ref{orders}, Count: 4, LastRun: time.Date(2024, 2, 29, 12, 0, 0, 5, time.FixedZone("", 3600))}},
		)
	}
	s, err := catalog.Build([]catalog.Database{{Name: "shop", Dialect: catalog.MySQL, DefaultSchema: "sales"}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s Store, c *catalog.Snapshot) store.Edition {
	t.Helper()
	e, err := s.Put(t.Context(), c, []string{"sqlite:shop.db"}, "ingest")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func latest(t *testing.T, s Store) *catalog.Snapshot {
	t.Helper()
	c, _, err := s.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func describe(ref catalog.Ref, text string) catalog.Edit {
	return catalog.Edit{Ref: ref, Field: catalog.FieldDescription, Values: []string{text}, Author: "ann",
		At: time.Date(2024, 5, 1, 8, 0, 0, 1, time.UTC)}
}

var (
	orders    = catalog.TableRef("shop", "sales", "orders")
	customers = catalog.TableRef("shop", "sales", "customers")
)

func description(t *testing.T, s *catalog.Snapshot, r catalog.Ref) string {
	t.Helper()
	o, ok := s.Lookup(r)
	if !ok {
		t.Fatalf("%s is not there", r)
	}
	return o.Description
}

func empty(t *testing.T, open func() Store) {
	s := open()
	if _, _, err := s.Latest(t.Context()); !errors.Is(err, store.ErrEmpty) {
		t.Errorf("Latest: %v, want ErrEmpty", err)
	}
	if err := s.Edit(t.Context(), describe(orders, "x")); !errors.Is(err, store.ErrEmpty) {
		t.Errorf("Edit: %v, want ErrEmpty", err)
	}
	if h, err := s.History(t.Context()); err != nil || len(h) != 0 {
		t.Errorf("History: %v, %v", h, err)
	}
	if e, err := s.Edits(t.Context()); err != nil || len(e) != 0 {
		t.Errorf("Edits: %v, %v", e, err)
	}
	nothing, err := catalog.Build(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, nothing)
	if c, err := open().At(t.Context(), nothing.Version()); err != nil || c.Len() != 0 {
		t.Errorf("a catalog without objects reads back as %v, %v", c, err)
	}
}

func roundTrip(t *testing.T, open func() Store) {
	c := Catalog(t, 1)
	e := put(t, open(), c)
	other := open() // has nothing in memory
	got, edition, err := other.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Version() != c.Version() || edition.Version != c.Version() {
		t.Errorf("stored %s, got %s of edition %s", c.Version(), got.Version(), edition.Version)
	}
	if !reflect.DeepEqual(got.Databases(), c.Databases()) {
		t.Errorf("databases are %v, want %v", got.Databases(), c.Databases())
	}
	if got.Len() != c.Len() {
		t.Fatalf("%d objects, want %d", got.Len(), c.Len())
	}
	for i := range uint32(c.Len()) {
		if got.Object(i).Ref != c.Object(i).Ref {
			t.Errorf("object %d is %s, want %s", i, got.Object(i).Ref, c.Object(i).Ref)
		}
	}
	if d := catalog.Diff(c, got); !d.Empty() {
		t.Errorf("what was read differs from what was stored: %+v", d)
	}
	if !reflect.DeepEqual(edition, e) {
		t.Errorf("Latest's edition is %+v, Put's was %+v", edition, e)
	}
}

func again(t *testing.T, open func() Store) {
	s, c := open(), Catalog(t, 1)
	first := put(t, s, c)
	second := put(t, open(), c)
	if second.Number <= first.Number || second.Version != first.Version {
		t.Errorf("editions %+v and %+v", first, second)
	}
	h, err := s.History(t.Context())
	if err != nil || len(h) != 2 {
		t.Fatalf("%d lines of history, %v; want 2", len(h), err)
	}
	if latest(t, open()).Version() != c.Version() {
		t.Error("the newest edition is another snapshot")
	}
}

func history(t *testing.T, open func() Store) {
	s := open()
	start := time.Now().Add(-time.Second)
	want := []string{}
	for i, revision := range []int{1, 2, 1} { // going back is a step forward in history
		c := Catalog(t, revision)
		if _, err := s.Put(t.Context(), c, []string{"a", fmt.Sprint(i)}, fmt.Sprintf("user %d", i)); err != nil {
			t.Fatal(err)
		}
		want = append(want, c.Version())
	}
	h, err := open().History(t.Context())
	if err != nil || len(h) != 3 {
		t.Fatalf("%d lines of history, %v; want 3", len(h), err)
	}
	for i, e := range h {
		put := len(h) - 1 - i
		if e.Version != want[put] || e.By != fmt.Sprintf("user %d", put) || !slices.Equal(e.Specs, []string{"a", fmt.Sprint(put)}) {
			t.Errorf("line %d is %+v, want what was put as number %d", i, e, put)
		}
		if e.At.Before(start) || e.At.After(time.Now()) || e.At.Location() != time.UTC {
			t.Errorf("line %d was at %s", i, e.At)
		}
		counts := map[catalog.Kind]int{catalog.KindTable: 2, catalog.KindColumn: 6, catalog.KindMetric: 1,
			catalog.KindRelationship: 1, catalog.KindQuery: 1}
		if !reflect.DeepEqual(e.Counts, counts) {
			t.Errorf("line %d counts %v, want %v", i, e.Counts, counts)
		}
		if i > 0 && (h[i-1].Number <= e.Number || h[i-1].At.Before(e.At)) {
			t.Errorf("line %d is newer than the one before it", i)
		}
	}
	if latest(t, open()).Version() != want[2] {
		t.Error("the newest edition is not the one put last")
	}
}

func versions(t *testing.T, open func() Store) {
	s := open()
	one, two := Catalog(t, 1), Catalog(t, 2)
	put(t, s, one)
	put(t, s, two)
	for _, c := range []*catalog.Snapshot{one, two, one} {
		got, err := s.At(t.Context(), c.Version())
		if err != nil || got.Version() != c.Version() {
			t.Errorf("At(%s): %v", c.Version(), err)
		}
	}
	for _, v := range []string{"", "nonsense", one.Version()[:10]} {
		if _, err := s.At(t.Context(), v); !errors.Is(err, store.ErrUnknownVersion) {
			t.Errorf("At(%q): %v, want ErrUnknownVersion", v, err)
		}
	}
}

func edits(t *testing.T, open func() Store) {
	s, c := open(), Catalog(t, 1)
	put(t, s, c)
	shouted := catalog.ColumnRef("shop", "sales", "orders", "CUSTOMER") // MySQL ignores the case of columns
	column := catalog.ColumnRef("shop", "sales", "orders", "customer")
	metric := catalog.MetricRef("order count: all")
	given := []catalog.Edit{
		describe(orders, "first"),
		describe(orders, "second"),
		{Ref: shouted, Field: catalog.FieldTags, Values: []string{"pii", "key"}, Author: "ann", At: time.Date(2024, 5, 1, 8, 0, 0, 0, time.FixedZone("", 7200))},
		{Ref: metric, Field: catalog.FieldSynonyms, Values: []string{}, Author: "bob", At: time.Unix(1, 0)},
		{Ref: metric, Field: catalog.FieldOwner, Values: []string{`"o" <ö>`}, Author: "bob"},
	}
	before := time.Now().Add(-time.Second)
	if err := s.Edit(t.Context(), given[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.Edit(t.Context(), given[1:]...); err != nil {
		t.Fatal(err)
	}
	other := open()
	got := latest(t, other)
	want, dangling, err := catalog.Apply(c, given)
	if err != nil || len(dangling) != 0 {
		t.Fatal(err, dangling)
	}
	if got.Version() != want.Version() || got.Version() == c.Version() {
		t.Errorf("Latest differs from the source with its edits: %+v", catalog.Diff(want, got))
	}
	if d := description(t, got, orders); d != "second" {
		t.Errorf("the last edit of a field must win, got %q", d)
	}
	if source, err := other.At(t.Context(), c.Version()); err != nil || source.Version() != c.Version() {
		t.Errorf("an edit changed the source snapshot: %v", err)
	}
	kept, err := other.Edits(t.Context())
	if err != nil || len(kept) != len(given) {
		t.Fatalf("%d edits, %v; want %d", len(kept), err, len(given))
	}
	for i, e := range kept {
		w := given[i]
		if w.Ref == shouted {
			w.Ref = column
		}
		if e.Ref != w.Ref || e.Field != w.Field || !slices.Equal(e.Values, w.Values) || e.Author != w.Author {
			t.Errorf("edit %d is %+v, want %+v", i, e, w)
		}
		if w.At.IsZero() && e.At.Before(before) || !w.At.IsZero() && !e.At.Equal(w.At) {
			t.Errorf("edit %d was at %s, want %s", i, e.At, w.At)
		}
	}
}

func survival(t *testing.T, open func() Store) {
	s := open()
	put(t, s, Catalog(t, 1))
	if err := s.Edit(t.Context(), describe(orders, "ours"), describe(customers, "theirs")); err != nil {
		t.Fatal(err)
	}
	put(t, s, Catalog(t, 2))
	if d := description(t, latest(t, s), orders); d != "ours" {
		t.Errorf("after an ingest the description is %q", d)
	}

	put(t, s, build(t, 3, "customers")) // orders vanish
	gone := latest(t, open())
	if _, ok := gone.Lookup(orders); ok {
		t.Error("an edit brought its object back")
	}
	if d := description(t, gone, customers); d != "theirs" {
		t.Errorf("a dangling edit kept another one from applying: %q", d)
	}
	if kept, err := s.Edits(t.Context()); err != nil || len(kept) != 2 {
		t.Errorf("%d edits kept, %v; want 2", len(kept), err)
	}
	if err := s.Edit(t.Context(), describe(orders, "later")); !errors.Is(err, store.ErrUnknownObject) {
		t.Errorf("edit of an object that vanished: %v, want ErrUnknownObject", err)
	}

	put(t, s, Catalog(t, 4))
	if d := description(t, latest(t, open()), orders); d != "ours" {
		t.Errorf("when the object came back its description was %q", d)
	}
}

func refusedEdits(t *testing.T, open func() Store) {
	s := open()
	put(t, s, Catalog(t, 1))
	good := describe(orders, "never")
	for name, bad := range map[string]catalog.Edit{
		"an unknown table":    describe(catalog.TableRef("shop", "sales", "nowhere"), "x"),
		"another table case":  describe(catalog.TableRef("shop", "sales", "ORDERS"), "x"),
		"no object":           {Field: catalog.FieldOwner, Author: "ann"},
		"an unknown field":    {Ref: orders, Field: "rows", Author: "ann"},
		"two descriptions":    {Ref: orders, Field: catalog.FieldDescription, Values: []string{"a", "b"}, Author: "ann"},
		"no author":           {Ref: orders, Field: catalog.FieldDescription, Values: []string{"a"}},
		"a table as a metric": describe(catalog.MetricRef("orders"), "x"),
	} {
		if err := s.Edit(t.Context(), good, bad); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	err := s.Edit(t.Context(), describe(catalog.MetricRef("none"), "x"))
	if !errors.Is(err, store.ErrUnknownObject) {
		t.Errorf("unknown metric: %v, want ErrUnknownObject", err)
	}
	if kept, err := s.Edits(t.Context()); err != nil || len(kept) != 0 {
		t.Errorf("refused edits left %v, %v", kept, err)
	}
}

func notUTF8(t *testing.T, open func() Store) {
	with := func(sample string) *catalog.Snapshot {
		c, err := catalog.Build([]catalog.Database{{Name: "d", Dialect: catalog.SQLite}}, []catalog.Object{
			{Ref: catalog.TableRef("d", "", "t"), Table: &catalog.Table{}},
			{Ref: catalog.ColumnRef("d", "", "t", "c"), Column: &catalog.Column{Samples: []string{sample}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	s := open()
	if _, err := s.Put(t.Context(), with("caf\xe9"), nil, "ann"); err == nil {
		t.Error("Latin-1 was accepted")
	}
	if h, err := s.History(t.Context()); err != nil || len(h) != 0 {
		t.Errorf("a refused snapshot left %v, %v", h, err)
	}
	for _, fine := range []string{`\ufffd`, "\ufffd"} {
		c := with(fine)
		put(t, s, c)
		if got := latest(t, open()); got.Version() != c.Version() {
			t.Errorf("%q does not read back", fine)
		}
	}
}

func shared(t *testing.T, open func() Store) {
	a, b := open(), open()
	put(t, a, Catalog(t, 1))
	latest(t, b)
	put(t, a, Catalog(t, 2))
	if got := latest(t, b).Version(); got != Catalog(t, 2).Version() {
		t.Error("an older edition was served")
	}
	if err := b.Edit(t.Context(), describe(orders, "b")); err != nil {
		t.Fatal(err)
	}
	if d := description(t, latest(t, a), orders); d != "b" {
		t.Errorf("the edit of the other opening is missing: %q", d)
	}
}

func concurrent(t *testing.T, open func() Store) {
	const rounds = 5
	stores := []Store{open(), open()}
	put(t, stores[0], Catalog(t, 0))
	var wg sync.WaitGroup
	for i := range 6 {
		s := stores[i%len(stores)]
		wg.Go(func() {
			for j := range rounds {
				var err error
				switch i % 3 {
				case 0:
					_, err = s.Put(t.Context(), Catalog(t, i*rounds+j), []string{"x"}, fmt.Sprint(i))
				case 1:
					err = s.Edit(t.Context(), describe(customers, fmt.Sprint(i, j)), describe(orders, fmt.Sprint(i, j)))
				case 2:
					var c *catalog.Snapshot
					if c, _, err = s.Latest(t.Context()); err == nil {
						o, _ := c.Lookup(orders)
						k, _ := c.Lookup(customers)
						// The two are edited together, so one may never be seen without the other.
						if k.Description != "Table customers" && k.Description != o.Description {
							err = fmt.Errorf("half an edit was seen: %q and %q", k.Description, o.Description)
						}
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	h, err := open().History(t.Context())
	if err != nil || len(h) != 1+2*rounds {
		t.Errorf("%d lines of history, %v; want %d", len(h), err, 1+2*rounds)
	}
	kept, err := open().Edits(t.Context())
	if err != nil || len(kept) != 2*2*rounds {
		t.Errorf("%d edits, %v; want %d", len(kept), err, 2*2*rounds)
	}
	for _, e := range h {
		if _, err := stores[1].At(t.Context(), e.Version); err != nil {
			t.Error(err)
		}
	}
}

func cancelled(t *testing.T, open func() Store) {
	s := open()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Put(ctx, Catalog(t, 1), nil, "ann"); !errors.Is(err, context.Canceled) {
		t.Errorf("Put: %v, want context.Canceled", err)
	}
	if _, _, err := s.Latest(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Latest: %v, want context.Canceled", err)
	}
	if h, err := s.History(t.Context()); err != nil || len(h) != 0 {
		t.Errorf("a cancelled Put left %v, %v", h, err)
	}
}

func asOf(t *testing.T, open func() Store) {
	s := open()
	moment := func() time.Time {
		time.Sleep(time.Millisecond)
		now := time.Now()
		time.Sleep(time.Millisecond)
		return now
	}
	before := moment()
	put(t, s, Catalog(t, 1))
	first := moment()
	now := describe(orders, "ours")
	now.At = time.Time{}
	if err := s.Edit(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	second := moment()
	put(t, s, Catalog(t, 2))
	third := moment()
	if _, _, err := s.AsOf(t.Context(), before); !errors.Is(err, store.ErrEmpty) {
		t.Errorf("before there was anything: %v", err)
	}
	for _, c := range []struct {
		at     time.Time
		number int64
		edited bool
	}{{first, 1, false}, {second, 1, true}, {third, 2, true}} {
		got, e, err := open().AsOf(t.Context(), c.at)
		if err != nil {
			t.Fatal(err)
		}
		if e.Number != c.number || (description(t, got, orders) == "ours") != c.edited {
			t.Errorf("as of then it is edition %d with %q, want %d", e.Number, description(t, got, orders), c.number)
		}
		if c.at.Equal(third) && got.Version() != latest(t, s).Version() {
			t.Error("as of now it is not the latest")
		}
	}
}

func policies(t *testing.T, open func() Store) {
	s := open()
	if _, err := s.Policy(t.Context(), ""); !errors.Is(err, store.ErrNoPolicy) {
		t.Errorf("without a policy: %v", err)
	}
	bodies := []string{"version: 1\n", "version: 1\n# \u00f6\n", "version: 1\n"}
	for i, body := range bodies {
		p, err := s.PutPolicy(t.Context(), body, "ann", fmt.Sprintf("reason %d", i), "")
		if err != nil || p.Number != int64(i+1) {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	other := open()
	for i, version := range []string{"", ""} {
		p, err := other.Policy(t.Context(), version)
		if err != nil || p.Body != bodies[2] || p.Number != 3 || p.By != "ann" || p.Why != "reason 2" || time.Since(p.At) > time.Minute {
			t.Errorf("%d: %+v, %v", i, p, err)
		}
	}
	all, err := other.Policies(t.Context())
	if err != nil || len(all) != 3 || all[0].Number != 3 || all[2].Why != "reason 0" || all[0].Version != all[2].Version || all[0].Version == all[1].Version {
		t.Fatalf("%+v, %v", all, err)
	}
	if p, err := other.Policy(t.Context(), all[1].Version); err != nil || p.Body != bodies[1] {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := s.Policy(t.Context(), "0"); !errors.Is(err, store.ErrUnknownVersion) {
		t.Errorf("an unknown version: %v", err)
	}
	for name, put := range map[string][3]string{"nobody": {"version: 1", "", "why"}, "no reason": {"version: 1", "ann", ""}, "no UTF-8": {"\xff", "ann", "why"}} {
		if _, err := s.PutPolicy(t.Context(), put[0], put[1], put[2], ""); err == nil {
			t.Errorf("%s: it was put", name)
		}
	}
}

func expectedPolicy(t *testing.T, open func() Store) {
	s := open()
	if _, err := s.PutPolicy(t.Context(), "a", "ann", "first", "something"); !errors.Is(err, store.ErrNoPolicy) {
		t.Errorf("over none: %v", err)
	}
	first, err := s.PutPolicy(t.Context(), "a", "ann", "first", "")
	if err != nil {
		t.Fatal(err)
	}
	const writers = 8
	var done sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		done.Go(func() {
			_, errs[i] = s.PutPolicy(t.Context(), fmt.Sprintf("b%d", i), "bob", "second", first.Version)
		})
	}
	done.Wait()
	put := 0
	for _, err := range errs {
		if err == nil {
			put++
		} else if !errors.Is(err, store.ErrPolicyChanged) {
			t.Error(err)
		}
	}
	if all, err := s.Policies(t.Context()); put != 1 || err != nil || len(all) != 2 {
		t.Errorf("%d of %d writers put theirs over the same policy; %d policies, %v", put, writers, len(all), err)
	}
}
