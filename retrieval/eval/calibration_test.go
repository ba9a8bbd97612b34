package eval

import (
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/retrieval"
)

func TestCalibrationIsAsByHand(t *testing.T) {
	var x tally
	x.add(0.05, false)
	x.add(0.15, true)
	x.add(0.12, false)
	x.add(1, true)
	r := x.reliability()
	if r.Judged != 4 || r.Meant != 0.5 || len(r.Bins) != 10 {
		t.Errorf("%+v", r)
	}
	// In the bins 0.05 against 0, 0.27 against 1 and 1 against 1, over 4.
	if !near(r.Error, (0.05+0.73)/4) {
		t.Errorf("calibration error %v", r.Error)
	}
	if want := (0.05*0.05 + 0.85*0.85 + 0.12*0.12) / 4; !near(r.Brier, want) {
		t.Errorf("Brier score %v, want %v", r.Brier, want)
	}
	for i, want := range map[int]Bin{
		0: {0, 0.1, 1, 0.05, 0}, 1: {0.1, 0.2, 2, 0.135, 0.5}, 2: {0.2, 0.3, 0, 0, 0}, 9: {0.9, 1, 1, 1, 1},
	} {
		if r.Bins[i] != want {
			t.Errorf("bin %d: %+v, want %+v", i, r.Bins[i], want)
		}
	}
	// Probabilities too high for some and too low for others do not cancel out between bins, only within one.
	var off, even tally
	off.add(0.95, false)
	off.add(0.05, true)
	even.add(0.95, true)
	even.add(0.95, true)
	if r := off.reliability(); !near(r.Error, 0.95) || !near(r.Brier, 0.9025) {
		t.Errorf("wrong both ways: %+v", r)
	}
	if r := even.reliability(); !near(r.Error, 0.05) {
		t.Errorf("right but unsure: %+v", r)
	}
}

func TestCalibrationsAddUp(t *testing.T) {
	var a, b, both calibration
	a[judgedTables].add(0.3, true)
	b[judgedTables].add(0.4, false)
	b[judgedColumns].add(0.5, true)
	both[judgedTables].add(0.3, true)
	both[judgedTables].add(0.4, false)
	both[judgedColumns].add(0.5, true)
	a.merge(&b)
	if a != both {
		t.Errorf("%v, want %v", a, both)
	}
	if r := a.reliabilities(); len(r) != 2 || r["tables"].Judged != 2 || r["columns"].Judged != 1 {
		t.Errorf("%v", r)
	}
	if r := new(calibration).reliabilities(); r != nil {
		t.Errorf("of nothing: %v", r)
	}
}

func TestTablesAreJudgedGivenTheirDatabase(t *testing.T) {
	s := pond(t)
	m := &material{snapshot: s}
	id := func(database, table string) uint32 {
		id, ok := s.ID(catalog.TableRef(database, "", table))
		if !ok {
			t.Fatalf("there is no table %s", table)
		}
		return id
	}
	boats, birds, cranes := id("pond", "boats"), id("pond", "water_birds"), id("quay", "cranes")
	v := &verdict{names: []string{"quay", "pond"}, Judgement: retrieval.Judgement{
		Databases: []float64{0.65, 0.35},
		Tables:    []retrieval.Judged{{ID: cranes, Probability: 0.6, Given: 0.95}, {ID: boats, Probability: 0.3, Given: 0.85}, {ID: birds, Probability: 0.01, Given: 0.05}},
		Columns:   []retrieval.Judged{{ID: s.ColumnIDs(boats).From, Probability: 0.75}, {ID: s.ColumnIDs(cranes).From, Probability: 0.25}},
	}}
	q := &posed{Question: ingest.Question{DB: "POND"}, tables: gold(boats), columns: gold(s.ColumnIDs(boats).From)}
	var want calibration
	want[judgedDatabases].add(0.65, false)
	want[judgedDatabases].add(0.35, true)
	want[judgedTables].add(0.85, true)
	want[judgedTables].add(0.05, false)
	want[judgedColumns].add(0.75, true)
	want[judgedColumns].add(0.25, false)
	if got := m.calibration(q, v); got != want {
		t.Errorf("%v, want %v", got, want)
	}

	q.columns = nil // nobody knows which are meant
	want[judgedColumns] = tally{}
	if got := m.calibration(q, v); got != want {
		t.Errorf("without gold columns: %v, want %v", got, want)
	}
	v.names, v.Databases = v.names[:1], v.Databases[:1]
	want = calibration{}
	want[judgedDatabases].add(0.65, false)
	if got := m.calibration(q, v); got != want {
		t.Errorf("where the right database was not thought worth judging: %v, want %v", got, want)
	}
	if got := m.calibration(q, nil); got != (calibration{}) {
		t.Errorf("without a judge: %v", got)
	}
}

func TestWhatAJudgeSaysIsKeptByBoardUntilItIsTaken(t *testing.T) {
	m, err := newMaterial(t.Context(), "bird_town", nil, Options{Bench: town(t)}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	x, err := newLinked(t.Context(), m.snapshot, Options{})
	if err != nil {
		t.Fatal(err)
	}
	board := func(question string) *retrieval.Board {
		b, err := x.ranker.Board(t.Context(), question, acl.Everything(m.snapshot))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	poems, cars := board("poems"), board("cars")
	for what, b := range map[string]*retrieval.Board{"poems": poems, "cars": cars} {
		v := x.judge.take(b)
		if v == nil || len(v.names) != 1 || v.names[0] != "town" || len(v.Tables) == 0 {
			t.Fatalf("%s: %+v", what, v)
		}
		best := v.Tables[0]
		for _, j := range v.Tables {
			if j.Probability > best.Probability {
				best = j
			}
		}
		if shortNames(m.snapshot, []uint32{best.ID}) != what {
			t.Errorf("for %s the judge thinks %s best", what, shortNames(m.snapshot, []uint32{best.ID}))
		}
		if x.judge.take(b) != nil {
			t.Errorf("%s: it can be taken twice", what)
		}
	}
	if v := x.judge.take(board("???")); v != nil {
		t.Errorf("nothing was judged, but %+v", v)
	}
}
