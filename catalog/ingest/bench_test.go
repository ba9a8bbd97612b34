package ingest_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
)

// smallBench is a benchmark of a few columns.
func smallBench(t *testing.T, set string, lines ...string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, set+".schema.jsonl"), strings.Join(lines, "\n")+"\n")
	return dir
}

func read(t *testing.T, b ingest.Bench) *catalog.Snapshot {
	t.Helper()
	c, err := b.Read(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := catalog.Build(c.Databases, c.Objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var birdLines = []string{
	`{"db":"cards","table":"customers","column":"CustID","type":"integer","natural_name":"customer id","is_pk":true,"description":"who bought","sample_values":[3,2.50,null,"a\nb"],"unique_count":9,"null_fraction":0.5,"table_rows":20}`,
	`{"db":"cards","table":"customers","column":"First_Name","natural_name":"first name","natural_table":"people","join_seen":{"orders.Name":4}}`,
	`{"db":"cards","table":"orders","column":"cust","fk_to":["Customers.custid","nowhere.x"]}`,
	`{"db":"cards","table":"orders","column":"Name","join_seen":{"customers.first_name":4,"orders.name":1}}`,
	`{"db":"cards","table":"orders","column":"NAME","description":"the same column in other letters"}`,
	`{"db":"cards","table":"a.b","column":"c.d"}`,
}

func TestBenchReadsAllThatASchemaSays(t *testing.T) {
	s := read(t, ingest.Bench{Dir: smallBench(t, "bird_dev", birdLines...), Set: "bird_dev"})
	id := object(t, s, catalog.ColumnRef("cards", "", "customers", "CustID"))
	if id.Description != "who bought" || !slices.Equal(id.Synonyms, []string{"customer id"}) || id.Column.Type != "integer" || !id.Column.PrimaryKey ||
		!slices.Equal(id.Column.Samples, []string{"3", "2.50", "a b"}) || number(id.Column.Distinct) != int64(9) || number(id.Column.NullShare) != 0.5 {
		t.Errorf("CustID reads %+v %+v", id, id.Column)
	}
	if rows := object(t, s, catalog.TableRef("cards", "", "customers")).Table.Rows; number(rows) != int64(20) {
		t.Errorf("%v rows, want 20", number(rows))
	}
	if got := object(t, s, catalog.ColumnRef("cards", "", "customers", "First_Name")).Synonyms; got != nil {
		t.Errorf("synonyms %q; the same words spelt otherwise are none", got)
	}
	if want := []catalog.ForeignKey{{Columns: []string{"cust"}, To: catalog.TableRef("cards", "", "customers"), ToColumns: []string{"CustID"}}}; !reflect.DeepEqual(object(t, s, catalog.TableRef("cards", "", "orders")).Table.ForeignKeys, want) {
		t.Errorf("foreign keys %v", object(t, s, catalog.TableRef("cards", "", "orders")).Table.ForeignKeys)
	}
	var seen []*catalog.Relationship
	for _, o := range s.Objects(catalog.KindRelationship) {
		if o.Relationship.Type == catalog.ObservedRelationship {
			seen = append(seen, o.Relationship)
		}
	}
	if len(seen) != 1 || seen[0].Usage != 4 || seen[0].From[0].Column != "First_Name" || seen[0].To[0].Column != "Name" {
		t.Errorf("observed joins %+v, want one of four uses", seen)
	}
	if got := object(t, s, catalog.ColumnRef("cards", "", "orders", "name")); got.Description != "" {
		t.Errorf("of two columns that are the same by the dialect's rules the second was kept: %+v", got)
	}
	object(t, s, catalog.ColumnRef("cards", "", "a.b", "c.d"))
}

func TestBenchNamesOnlyKeepsStructure(t *testing.T) {
	s := read(t, ingest.Bench{Dir: smallBench(t, "bird_dev", birdLines...), Set: "bird_dev", NamesOnly: true})
	for _, o := range s.All() {
		if o.Description != "" || o.Synonyms != nil || o.Table != nil && o.Table.Rows != nil || o.Column != nil && (o.Column.Samples != nil || o.Column.Distinct != nil || o.Column.NullShare != nil) {
			t.Errorf("%s keeps more than its name: %+v", o.Ref, o)
		}
	}
	id := object(t, s, catalog.ColumnRef("cards", "", "customers", "CustID")).Column
	if id.Type != "integer" || !id.PrimaryKey || len(object(t, s, catalog.TableRef("cards", "", "orders")).Table.ForeignKeys) != 1 {
		t.Errorf("types and keys are gone: %+v", id)
	}
}

func TestBenchSplitsOnlySnowflakeTableNames(t *testing.T) {
	line := `{"db":"AIR","table":"OPS.FLIGHTS.V2","column":"range"}`
	s := read(t, ingest.Bench{Dir: smallBench(t, "spider2_snow", line), Set: "spider2_snow"})
	object(t, s, catalog.ColumnRef("AIR", "OPS", "FLIGHTS.V2", "range"))
	s = read(t, ingest.Bench{Dir: smallBench(t, "spider", line), Set: "spider_train"})
	object(t, s, catalog.ColumnRef("AIR", "", "OPS.FLIGHTS.V2", "range"))
}

func TestBenchFaultsNameFileAndLine(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"torn JSON", `{"db":`, "bird.schema.jsonl:1: unexpected end"},
		{"a column without a name", `{"db":"a","table":"b"}`, "bird.schema.jsonl:1: a column needs"},
	} {
		_, err := ingest.Bench{Dir: smallBench(t, "bird", c.line), Set: "bird"}.Read(context.Background(), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := (ingest.Bench{Dir: smallBench(t, "mine", `{"db":"a","table":"b","column":"c"}`), Set: "mine"}).Read(context.Background(), nil); err == nil {
		t.Error("a set of unknown dialect was read")
	}
}

// benchDir is the benchmark data, which is not part of the repository.
func benchDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SCHEMAGATE_BENCH")
	if dir == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("SCHEMAGATE_BENCH is not set; it names the directory of the benchmark data")
		}
		t.Skip("SCHEMAGATE_BENCH is not set; it names the directory of the benchmark data")
	}
	return dir
}

func TestBenchSetsAreReadWhole(t *testing.T) {
	dir := benchDir(t)
	for _, c := range []struct {
		set                                  string
		dialect                              catalog.Dialect
		databases, tables, columns, observed int
	}{
		{"bird_dev", catalog.SQLite, 11, 75, 798, 0},
		{"bird_train", catalog.SQLite, 69, 522, 3575, 696},
		{"spider_dev", catalog.SQLite, 166, 876, 4503, 0},
		{"spider_syn_dev", catalog.SQLite, 166, 876, 4503, 0},
		{"spider_dk", catalog.SQLite, 10, 48, 269, 0},
		{"sede_test", catalog.TSQL, 1, 29, 211, 0},
		{"text2sql_data", catalog.MySQL, 8, 104, 471, 0},
		{"spider2_snow", catalog.Snowflake, 53, 1938, 102341, 0},
	} {
		t.Run(c.set, func(t *testing.T) {
			start := time.Now()
			s := load(t, "bench:"+dir+"/"+c.set)
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			observed := 0
			for _, o := range s.Objects(catalog.KindRelationship) {
				if o.Relationship.Type == catalog.ObservedRelationship {
					observed++
				}
			}
			got := [4]int{len(s.Databases()), s.OfKind(catalog.KindTable).Len(), s.OfKind(catalog.KindColumn).Len(), observed}
			if want := [4]int{c.databases, c.tables, c.columns, c.observed}; got != want {
				t.Errorf("databases, tables, columns, observed joins: %v, want %v", got, want)
			}
			if s.Databases()[0].Dialect != c.dialect {
				t.Errorf("dialect %s, want %s", s.Databases()[0].Dialect, c.dialect)
			}
		})
	}
}

func TestBenchDropsAShareOfDescriptions(t *testing.T) {
	dir := benchDir(t)
	described := func(b ingest.Bench) map[catalog.Ref]bool {
		b.Dir, b.Set = dir, "bird_train"
		out := map[catalog.Ref]bool{}
		for _, o := range read(t, b).Objects(catalog.KindColumn) {
			if o.Description != "" {
				out[o.Ref] = true
			}
		}
		return out
	}
	all, one, again, other := described(ingest.Bench{}), described(ingest.Bench{DropDescriptions: 0.5, Seed: 1}), described(ingest.Bench{DropDescriptions: 0.5, Seed: 1}), described(ingest.Bench{DropDescriptions: 0.5, Seed: 2})
	if share := float64(len(one)) / float64(len(all)); share < 0.45 || share > 0.55 {
		t.Errorf("%.2f of the descriptions stay, want about half", share)
	}
	if !reflect.DeepEqual(one, again) || reflect.DeepEqual(one, other) {
		t.Error("the choice must follow the seed and nothing else")
	}
	if left := described(ingest.Bench{DropDescriptions: 1}); len(left) != 0 {
		t.Errorf("%d descriptions stay of none", len(left))
	}
}

func TestBenchQuestions(t *testing.T) {
	dir := benchDir(t)
	for set, want := range map[string]int{"bird_dev": 1534, "bird_train": 9104, "spider_dev": 1034, "spider_train": 8659, "sede_val": 857, "spider2_snow": 120, "spider_ac": 19624, "text2sql_data": 12194} {
		q, err := ingest.Questions(dir, set)
		if err != nil || len(q) != want {
			t.Errorf("%s: %d questions, %v; want %d", set, len(q), err, want)
		}
	}
	bird, err := ingest.Questions(dir, "bird_dev")
	if err != nil {
		t.Fatal(err)
	}
	if q := bird[0]; q.ID != "bird_dev_0" || q.DB != "california_schools" || q.Evidence == "" || q.SQL == "" || q.Difficulty != "simple" ||
		!slices.Equal(q.GoldTables, []string{"frpm"}) || len(q.GoldColumns) != 3 {
		t.Errorf("the first question reads %+v", q)
	}
	sede, err := ingest.Questions(dir, "sede_val")
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2010, 5, 27, 20, 8, 16, 0, time.UTC); !sede[0].Date.Equal(want) {
		t.Errorf("asked at %v, want %v", sede[0].Date, want)
	}
	if _, err := ingest.Questions(dir, "no_such_set"); err == nil {
		t.Error("a missing set was read")
	}
}
