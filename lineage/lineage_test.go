package lineage_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/lineage"
)

func everything(uint32) bool { return true }

// shop builds a catalog of database "db" from lines: "table: column column", where a star after a column makes it
// the primary key, and "name: table.column -> table.column [word ...]" with words for type, cardinality, "validated"
// and a usage count.
func shop(t testing.TB, lines ...string) *catalog.Snapshot {
	t.Helper()
	column := func(dotted string) catalog.Ref {
		table, name, ok := strings.Cut(dotted, ".")
		if !ok {
			t.Fatalf("%q is no column", dotted)
		}
		return catalog.ColumnRef("db", "", table, name)
	}
	var objects []catalog.Object
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, ":")
		words := strings.Fields(rest)
		if !strings.Contains(rest, "->") {
			table := &catalog.Table{}
			for i, w := range words {
				c, key := strings.CutSuffix(w, "*")
				if key {
					table.PrimaryKey = append(table.PrimaryKey, c)
				}
				objects = append(objects, catalog.Object{Ref: catalog.ColumnRef("db", "", name, c), Column: &catalog.Column{Position: i}})
			}
			objects = append(objects, catalog.Object{Ref: catalog.TableRef("db", "", name), Table: table})
			continue
		}
		r := &catalog.Relationship{From: []catalog.Ref{column(words[0])}, To: []catalog.Ref{column(words[2])}, Type: catalog.ObservedRelationship}
		for _, w := range words[3:] {
			switch w {
			case "foreign_key", "documented", "observed":
				r.Type = catalog.RelationshipType(w)
			case "validated":
				r.Validated = true
			case "many_to_one", "one_to_many", "one_to_one", "many_to_many":
				r.Cardinality = catalog.Cardinality(w)
			default:
				if _, err := fmt.Sscan(w, &r.Usage); err != nil {
					t.Fatalf("%q says nothing about a relationship", w)
				}
			}
		}
		objects = append(objects, catalog.Object{Ref: catalog.RelationshipRef(name), Relationship: r})
	}
	s, err := catalog.Build([]catalog.Database{{Name: "db", Dialect: catalog.SQLite}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func id(t testing.TB, s *catalog.Snapshot, table string) uint32 {
	t.Helper()
	id, ok := s.ID(catalog.TableRef("db", "", table))
	if !ok {
		t.Fatalf("no table %s", table)
	}
	return id
}

func ids(t testing.TB, s *catalog.Snapshot, tables string) []uint32 {
	t.Helper()
	var out []uint32
	for _, name := range strings.Fields(tables) {
		out = append(out, id(t, s, name))
	}
	return out
}

func names(s *catalog.Snapshot, tables []uint32) string {
	var out []string
	for _, t := range tables {
		out = append(out, s.Object(t).Ref.Table)
	}
	return strings.Join(out, " ")
}

// steps writes joins as "from>to", with a star where rows multiply.
func steps(s *catalog.Snapshot, joins []lineage.Join) string {
	var out []string
	for _, j := range joins {
		step := s.Object(j.From).Ref.Table + ">" + s.Object(j.To).Ref.Table
		if j.Multiplies() {
			step += "*"
		}
		out = append(out, step)
	}
	return strings.Join(out, " ")
}

func relationships(s *catalog.Snapshot, joins []lineage.Join) string {
	var out []string
	for _, j := range joins {
		out = append(out, s.Object(j.Relationship).Ref.Name)
	}
	return strings.Join(out, " ")
}

var sales = []string{
	"customers: id* name", "orders: id* customer_id", "items: id* order_id product_id", "products: id* name",
	"stock: id* product_id", "notes: id* text",
	"r1: orders.customer_id -> customers.id", "r2: items.order_id -> orders.id", "r3: items.product_id -> products.id",
	"r4: stock.product_id -> products.id",
}

func TestExpand(t *testing.T) {
	diamond := []string{
		"a: k*", "b1: k* a c", "b2: k* a c", "c: k*", "far: k* c",
		"r1: b1.a -> a.k", "r2: b1.c -> c.k", "r3: b2.a -> a.k", "r4: b2.c -> c.k", "r5: far.c -> c.k",
	}
	for _, tt := range []struct {
		name, tables                string
		catalog                     []string
		hidden                      string
		want, bridges, joins, apart string
	}{
		{name: "tables that join directly need no bridge", catalog: sales, tables: "orders customers",
			want: "customers orders", joins: "r1"},
		{name: "bridge tables come with all their joins", catalog: sales, tables: "customers products",
			want: "customers items orders products", bridges: "items orders", joins: "r1 r2 r3"},
		{name: "every shortest path is kept, and no longer one", catalog: diamond, tables: "a c",
			want: "a b1 b2 c", bridges: "b1 b2", joins: "r1 r2 r3 r4"},
		{name: "parallel relationships are all kept", tables: "a b",
			catalog: []string{"a: k*", "b: k* x y", "r1: b.x -> a.k", "r2: b.y -> a.k"}, want: "a b", joins: "r1 r2"},
		{name: "a given table is no bridge", catalog: sales, tables: "customers items orders",
			want: "customers items orders", joins: "r1 r2"},
		{name: "a table without relationships is unreachable", catalog: sales, tables: "orders notes customers",
			want: "customers notes orders", joins: "r1", apart: "customers-notes notes-orders"},
		{name: "a hidden bridge is not walked through", catalog: sales, tables: "customers products", hidden: "items",
			want: "customers products", apart: "customers-products"},
		{name: "a way around a hidden bridge is found", catalog: diamond, tables: "a c", hidden: "b1",
			want: "a b2 c", bridges: "b2", joins: "r3 r4"},
		{name: "a hidden relationship ties nothing", catalog: sales, tables: "orders customers", hidden: "relationship:r1",
			want: "customers orders", apart: "customers-orders"},
		{name: "a relationship over a hidden column ties nothing", catalog: sales, tables: "orders customers", hidden: "orders.customer_id",
			want: "customers orders", apart: "customers-orders"},
		{name: "a hidden table that is asked for does not exist", catalog: sales, tables: "orders customers", hidden: "customers",
			want: "orders"},
		{name: "one table expands to itself", catalog: sales, tables: "orders orders", want: "orders"},
		{name: "a self-reference is no path", tables: "a",
			catalog: []string{"a: k* parent", "r1: a.parent -> a.k"}, want: "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := shop(t, tt.catalog...)
			visible := func(id uint32) bool {
				r := s.Object(id).Ref
				return tt.hidden != strings.TrimPrefix(r.String(), "db.")
			}
			x := lineage.New(s).Expand(ids(t, s, tt.tables), visible)
			var apart []string
			for _, p := range x.Unreachable {
				apart = append(apart, names(s, p[:1])+"-"+names(s, p[1:]))
			}
			for _, c := range []struct{ what, got, want string }{
				{"tables", names(s, x.Tables), tt.want},
				{"bridges", names(s, x.Bridges), tt.bridges},
				{"joins", relationships(s, x.Joins), tt.joins},
				{"unreachable", strings.Join(apart, " "), tt.apart},
			} {
				if c.got != c.want {
					t.Errorf("%s = %q, want %q", c.what, c.got, c.want)
				}
			}
		})
	}
}

func TestExpandWalksJoinsAwayFromTheSmallestTable(t *testing.T) {
	s := shop(t, sales...)
	x := lineage.New(s).Expand(ids(t, s, "products customers"), everything)
	if got, want := steps(s, x.Joins), "customers>orders* orders>items* items>products"; got != want {
		t.Errorf("joins = %s, want %s", got, want)
	}
}

func TestIdsOutsideTheTablesDoNotExist(t *testing.T) {
	s := shop(t, sales...)
	g := lineage.New(s)
	column := s.OfKind(catalog.KindColumn).From
	if x := g.Expand([]uint32{column, 1 << 30}, everything); len(x.Tables)+len(x.Unreachable) > 0 {
		t.Errorf("Expand = %+v, want nothing", x)
	}
	if _, ok := g.Path(0, 1<<30, everything); ok {
		t.Error("Path leads to an id that is no table")
	}
}

func TestPath(t *testing.T) {
	two := []string{"a: k*", "b: k* x y z"}
	chain := []string{"t0: k*"}
	for i := 1; i <= lineage.MaxJoins+1; i++ {
		chain = append(chain, fmt.Sprintf("t%d: k* p", i), fmt.Sprintf("r%d: t%d.p -> t%d.k", i, i, i-1))
	}
	for _, tt := range []struct {
		name, from, to string
		catalog        []string
		want           string // relationships; "none" if there is no path
	}{
		{"the fewest joins win over stronger evidence", "a", "c", []string{
			"a: k*", "b: k* a", "c: k* a b", "r1: c.a -> a.k observed",
			"r2: b.a -> a.k foreign_key validated", "r3: c.b -> b.k foreign_key validated"}, "r1"},
		{"a key beats a documented join", "b", "a", append(two,
			"r1: b.x -> a.k documented validated", "r2: b.y -> a.k foreign_key validated"), "r2"},
		{"a documented join beats one seen in queries", "b", "a", append(two,
			"r1: b.x -> a.k observed 900", "r2: b.y -> a.k documented"), "r2"},
		{"a validated one beats one that is not", "b", "a", append(two,
			"r1: b.x -> a.k documented 7", "r2: b.y -> a.k documented validated"), "r2"},
		{"among equals the most used wins", "b", "a", append(two,
			"r1: b.x -> a.k observed 3", "r2: b.y -> a.k observed 40", "r3: b.z -> a.k observed 5"), "r2"},
		{"then the first by name", "b", "a", append(two, "r2: b.y -> a.k", "r1: b.x -> a.k"), "r1"},
		{"evidence counts along the whole path", "a", "c", []string{
			"a: k*", "b1: k* a c", "b2: k* a c", "c: k*", "r1: b1.a -> a.k foreign_key validated", "r2: b1.c -> c.k observed",
			"r3: b2.a -> a.k documented validated", "r4: b2.c -> c.k documented validated"}, "r3 r4"},
		{"a path of the greatest length is found", "t0", "t6", chain, "r1 r2 r3 r4 r5 r6"},
		{"a longer one is not", "t0", "t7", chain, "none"},
		{"a table reaches itself without a join", "a", "a", two, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := shop(t, tt.catalog...)
			path, ok := lineage.New(s).Path(id(t, s, tt.from), id(t, s, tt.to), everything)
			got := relationships(s, path)
			if !ok {
				got = "none"
			}
			if got != tt.want {
				t.Errorf("path = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestCardinality(t *testing.T) {
	for _, tt := range []struct {
		name, relationship string
		walked, back       catalog.Cardinality
	}{
		{"what the relationship says counts", "a.x -> b.x one_to_one", catalog.OneToOne, catalog.OneToOne},
		{"what it says is turned when walked backwards", "a.x -> b.x one_to_many", catalog.OneToMany, catalog.ManyToOne},
		{"the key of the far table makes it many to one", "a.x -> b.k", catalog.ManyToOne, catalog.OneToMany},
		{"the key of the near table makes it one to many", "a.k -> b.x", catalog.OneToMany, catalog.ManyToOne},
		{"two keys make it one to one", "a.k -> b.k", catalog.OneToOne, catalog.OneToOne},
		{"no key leaves it unknown", "a.x -> b.x", "", ""},
		{"part of a key is no key", "a.x -> pair.k1", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := shop(t, "a: k* x", "b: k* x", "pair: k1* k2*", "r: "+tt.relationship)
			to := id(t, s, "b")
			if strings.Contains(tt.relationship, "pair") {
				to = id(t, s, "pair")
			}
			g := lineage.New(s)
			forth, _ := g.Path(id(t, s, "a"), to, everything)
			back, _ := g.Path(to, id(t, s, "a"), everything)
			if forth[0].Cardinality != tt.walked || back[0].Cardinality != tt.back {
				t.Errorf("cardinality = %q and %q back, want %q and %q", forth[0].Cardinality, back[0].Cardinality, tt.walked, tt.back)
			}
			safe := tt.walked == catalog.ManyToOne || tt.walked == catalog.OneToOne
			if lineage.FanOut(forth) == safe {
				t.Errorf("FanOut = %t over %q", !safe, tt.walked)
			}
		})
	}
}

func TestUniqueKeyMakesJoinManyToOne(t *testing.T) {
	col := func(table, name string) catalog.Object {
		return catalog.Object{Ref: catalog.ColumnRef("db", "", table, name), Column: &catalog.Column{}}
	}
	s, err := catalog.Build([]catalog.Database{{Name: "db", Dialect: catalog.SQLite}}, []catalog.Object{
		{Ref: catalog.TableRef("db", "", "a"), Table: &catalog.Table{}}, col("a", "code"),
		{Ref: catalog.TableRef("db", "", "b"), Table: &catalog.Table{UniqueKeys: [][]string{{"CODE"}}}}, col("b", "code"),
		{Ref: catalog.RelationshipRef("r"), Relationship: &catalog.Relationship{
			From: []catalog.Ref{catalog.ColumnRef("db", "", "a", "code")}, To: []catalog.Ref{catalog.ColumnRef("db", "", "b", "code")},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path, _ := lineage.New(s).Path(0, 1, everything)
	if len(path) != 1 || path[0].Cardinality != catalog.ManyToOne {
		t.Errorf("path = %+v, want one many_to_one join", path)
	}
}

func TestTree(t *testing.T) {
	star := []string{
		"fact: id* c p s", "customer: id* region", "product: id*", "store: id* region", "region: id*", "island: id*",
		"r1: fact.c -> customer.id", "r2: fact.p -> product.id", "r3: fact.s -> store.id", "r4: customer.region -> region.id",
		"r5: store.region -> region.id",
	}
	for _, tt := range []struct {
		name, root, tables, want string
		fanOut                   bool
	}{
		{"a root alone needs no join", "fact", "fact", "", false},
		{"dimensions hang on the fact", "fact", "product customer", "fact>customer fact>product", false},
		{"a table that is already in is used again", "fact", "customer region", "fact>customer customer>region", false},
		{"a root on the one side fans out", "product", "fact", "product>fact*", true},
		{"a bridge is brought in", "customer", "product", "customer>fact* fact>product", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := shop(t, star...)
			joins, err := lineage.New(s).Tree(id(t, s, tt.root), ids(t, s, tt.tables), everything)
			if err != nil {
				t.Fatal(err)
			}
			if got := steps(s, joins); got != tt.want {
				t.Errorf("tree = %s, want %s", got, tt.want)
			}
			if got := lineage.FanOut(joins); got != tt.fanOut {
				t.Errorf("FanOut = %t, want %t", got, tt.fanOut)
			}
		})
	}
	t.Run("an error names only tables that were given", func(t *testing.T) {
		s := shop(t, star...)
		_, err := lineage.New(s).Tree(id(t, s, "product"), ids(t, s, "store"), func(id uint32) bool { return s.Object(id).Ref.Table != "fact" })
		if err == nil || !strings.Contains(err.Error(), "db.product to db.store") || strings.Contains(err.Error(), "fact") {
			t.Errorf("error = %v", err)
		}
	})
	t.Run("hidden and absent tables read alike", func(t *testing.T) {
		s := shop(t, star...)
		g := lineage.New(s)
		hidden := func(i uint32) bool { return i != id(t, s, "store") }
		_, one := g.Tree(id(t, s, "fact"), ids(t, s, "store"), hidden)
		_, two := g.Tree(id(t, s, "fact"), []uint32{1 << 30}, hidden)
		if one == nil || two == nil || one.Error() != two.Error() {
			t.Errorf("errors differ: %v and %v", one, two)
		}
	})
}

// randomShop draws a small catalog with keys, declared foreign keys and relationships.
func randomShop(t *rapid.T) *catalog.Snapshot {
	n := rapid.IntRange(2, 9).Draw(t, "tables")
	var objects []catalog.Object
	for i := range n {
		table := catalog.TableRef("db", "", fmt.Sprintf("t%d", i))
		o := catalog.Object{Ref: table, Table: &catalog.Table{}}
		for c := range 3 {
			objects = append(objects, catalog.Object{
				Ref: catalog.ColumnRef("db", "", table.Table, fmt.Sprintf("c%d", c)), Column: &catalog.Column{Position: c},
			})
		}
		if rapid.Bool().Draw(t, "key") {
			o.Table.PrimaryKey = []string{"c0"}
		}
		if rapid.Bool().Draw(t, "unique") {
			o.Table.UniqueKeys = [][]string{{"c1", "c2"}}
		}
		if rapid.Bool().Draw(t, "foreign") {
			o.Table.ForeignKeys = []catalog.ForeignKey{{
				Columns: []string{"c1"}, To: catalog.TableRef("db", "", fmt.Sprintf("t%d", rapid.IntRange(0, n-1).Draw(t, "to"))), ToColumns: []string{"c0"},
			}}
		}
		objects = append(objects, o)
	}
	for i := range rapid.IntRange(0, 2*n).Draw(t, "relationships") {
		end := func(what string) []catalog.Ref {
			table := fmt.Sprintf("t%d", rapid.IntRange(0, n-1).Draw(t, what))
			// Two columns, so that none repeats a declared key, whose relationship returns with the key.
			return []catalog.Ref{catalog.ColumnRef("db", "", table, "c1"), catalog.ColumnRef("db", "", table, "c2")}
		}
		objects = append(objects, catalog.Object{Ref: catalog.RelationshipRef(fmt.Sprintf("r%02d", i)), Relationship: &catalog.Relationship{
			From: end("from"), To: end("to"),
			Type:  rapid.SampledFrom([]catalog.RelationshipType{catalog.DocumentedRelationship, catalog.ObservedRelationship}).Draw(t, "type"),
			Usage: rapid.Int64Range(0, 2).Draw(t, "usage"), Validated: rapid.Bool().Draw(t, "validated"),
			Cardinality: rapid.SampledFrom([]catalog.Cardinality{"", catalog.ManyToOne, catalog.ManyToMany}).Draw(t, "cardinality"),
		}})
	}
	s, err := catalog.Build([]catalog.Database{{Name: "db", Dialect: catalog.SQLite}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// named writes everything in a result by name, since ids differ between snapshots.
func named(s *catalog.Snapshot, x lineage.Expansion) string {
	var b strings.Builder
	fmt.Fprintln(&b, "tables", names(s, x.Tables), "bridges", names(s, x.Bridges))
	for _, j := range x.Joins {
		b.WriteString(namedJoin(s, j))
	}
	for _, p := range x.Unreachable {
		fmt.Fprintln(&b, "apart", names(s, p[:]))
	}
	return b.String()
}

func namedJoin(s *catalog.Snapshot, j lineage.Join) string {
	return fmt.Sprintln(s.Object(j.Relationship).Ref, names(s, []uint32{j.From, j.To}), j.Cardinality, j.Type, j.Validated, j.Usage)
}

func TestHiddenObjectsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := randomShop(t)
		hidden := map[catalog.Ref]bool{}
		for _, o := range whole.All() {
			declared := o.Relationship != nil && o.Relationship.Type == catalog.ForeignKeyRelationship
			if hidden[o.Ref.TableRef()] || !declared && rapid.IntRange(0, 6).Draw(t, "hide "+o.Ref.String()) == 0 {
				hidden[o.Ref] = true
			}
		}
		left, err := catalog.Restrict(whole, func(o *catalog.Object) bool { return !hidden[o.Ref] }, nil)
		if err != nil {
			t.Fatal(err)
		}
		full, pruned := lineage.New(whole), lineage.New(left)
		visible := func(id uint32) bool { return !hidden[whole.Object(id).Ref] }
		var here, there []uint32
		for _, o := range left.Objects(catalog.KindTable) {
			if rapid.Bool().Draw(t, "given "+o.Ref.String()) {
				id, _ := whole.ID(o.Ref)
				here, there = append(here, id), append(there, o.ID)
			}
		}
		if got, want := named(whole, full.Expand(here, visible)), named(left, pruned.Expand(there, everything)); got != want {
			t.Errorf("Expand with hidden objects:\n%s\nwithout them:\n%s", got, want)
		}
		if len(here) == 0 {
			return
		}
		write := func(s *catalog.Snapshot, joins []lineage.Join, err error) string {
			out := fmt.Sprintln(err)
			for _, j := range joins {
				out += namedJoin(s, j)
			}
			return out
		}
		a, errA := full.Tree(here[0], here, visible)
		b, errB := pruned.Tree(there[0], there, everything)
		if got, want := write(whole, a, errA), write(left, b, errB); got != want {
			t.Errorf("Tree with hidden objects:\n%s\nwithout them:\n%s", got, want)
		}
	})
}

// TestExpandIsTheUnionOfAllShortestPaths compares with paths enumerated one by one.
func TestExpandIsTheUnionOfAllShortestPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := randomShop(t)
		g := lineage.New(s)
		from, to := uint32(0), uint32(s.OfKind(catalog.KindTable).Len()-1)
		shortest := lineage.MaxJoins + 1
		var found [][]uint32
		var explore func(at uint32, seen []uint32, used []uint32)
		explore = func(at uint32, seen, used []uint32) {
			if at == to {
				if len(used) < shortest {
					shortest, found = len(used), nil
				}
				if len(used) == shortest {
					found = append(found, slices.Clone(used))
				}
				return
			}
			if len(used) >= shortest {
				return
			}
			for _, o := range s.Objects(catalog.KindRelationship) {
				a, _ := s.ID(o.Relationship.From[0].TableRef())
				b, _ := s.ID(o.Relationship.To[0].TableRef())
				for _, next := range [][2]uint32{{a, b}, {b, a}} {
					if next[0] == at && !slices.Contains(seen, next[1]) {
						explore(next[1], append(slices.Clone(seen), next[1]), append(slices.Clone(used), o.ID))
					}
				}
			}
		}
		explore(from, []uint32{from}, nil)
		want := map[uint32]bool{}
		for _, path := range found {
			for _, r := range path {
				want[r] = true
			}
		}
		got := map[uint32]bool{}
		for _, j := range g.Expand([]uint32{from, to}, everything).Joins {
			got[j.Relationship] = true
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("joins = %v, want %v", got, want)
		}
		path, ok := g.Path(from, to, everything)
		if ok != (len(found) > 0) || ok && len(path) != shortest {
			t.Fatalf("Path has %d joins (%t), the shortest has %d", len(path), ok, shortest)
		}
		at := from
		for _, j := range path {
			if j.From != at {
				t.Fatalf("the path breaks at table %d: %+v", at, path)
			}
			at = j.To
		}
	})
}

func BenchmarkGraph(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		random := rand.New(rand.NewPCG(1, uint64(n)))
		var lines []string
		for i := range n {
			lines = append(lines, fmt.Sprintf("t%05d: k* a b", i))
		}
		for i := range 2 * n {
			// A tenth of the tables are hubs that half of the relationships point at.
			to := random.IntN(n)
			if i%2 == 0 {
				to = random.IntN(n/10 + 1)
			}
			lines = append(lines, fmt.Sprintf("r%05d: t%05d.a -> t%05d.k", i, random.IntN(n), to))
		}
		s := shop(b, lines...)
		g := lineage.New(s)
		tables := make([]uint32, 10)
		for i := range tables {
			tables[i] = uint32(random.IntN(n))
		}
		b.Run(fmt.Sprintf("New/tables=%d", n), func(b *testing.B) {
			for b.Loop() {
				lineage.New(s)
			}
		})
		b.Run(fmt.Sprintf("Expand10/tables=%d", n), func(b *testing.B) {
			for b.Loop() {
				g.Expand(tables, everything)
			}
		})
		b.Run(fmt.Sprintf("Path/tables=%d", n), func(b *testing.B) {
			for b.Loop() {
				g.Path(tables[0], tables[1], everything)
			}
		})
		b.Run(fmt.Sprintf("Tree10/tables=%d", n), func(b *testing.B) {
			for b.Loop() {
				_, _ = g.Tree(tables[0], tables, everything)
			}
		})
	}
}
