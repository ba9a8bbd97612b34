package rank

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/rank/boost"
)

// Lesson is a set of answered questions about one catalog.
type Lesson struct {
	Ranker   *retrieval.Ranker // without a judge
	View     acl.View
	Examples []Example
}

// Example is a question with what its answer needs.
type Example struct {
	Question string
	Database string
	Tables   map[uint32]bool
	Columns  map[uint32]bool // may be empty if only the tables are known
	// Group names what the example must not be judged by while learning: examples of one group are in one fold.
	Group string
}

// Led is the example with an answer of tables that rank for themselves: of alike ones the leader.
func (e *Example) Led(b *retrieval.Board) *Example {
	out := *e
	out.Tables, out.Columns = map[uint32]bool{}, map[uint32]bool{}
	for id := range e.Tables {
		out.Tables[b.Leader(id)] = true
	}
	for id := range e.Columns {
		out.Columns[b.Leader(id)] = true
	}
	return &out
}

// DefaultConfig learns less from each lesson than boost's: trees that fit their own catalogs closely are worse on others.
var DefaultConfig = boost.Config{
	Trees: 200, Leaves: 8, MinLeaf: 200, Bins: 64, LearningRate: 0.08, Shrink: 30, RowShare: 0.7, FeatureShare: 0.7,
}

// folds is the number of parts that examples fall into. What a part's examples show of databases and tables to the
// stages below is judged by models that learned from the other parts, as questions to come will be.
const folds = 2

// Columns that no word names say little. They are kept with this chance, and count for those that are not.
const blankColumns = 0.3

// Train learns a model. Lessons over catalogs of different sizes make one that holds in all of them.
func Train(ctx context.Context, lessons []Lesson, c boost.Config, seed uint64, progress func(string)) (*Model, error) {
	return newTrainer(ctx, lessons, progress, seed, func(_ stage, r *boost.Rows) (*boost.Model, error) {
		return boost.Train(r, c, seed)
	}).train()
}

func newTrainer(ctx context.Context, lessons []Lesson, progress func(string), seed uint64, learn func(stage, *boost.Rows) (*boost.Model, error)) *trainer {
	t := &trainer{ctx: ctx, lessons: lessons, learn: learn, seed: seed, progress: progress}
	if progress == nil {
		t.progress = func(string) {}
	}
	for _, l := range lessons {
		t.shapes = append(t.shapes, newShape(l.View.Snapshot()))
	}
	return t
}

func (t *trainer) train() (*Model, error) {
	database, err := t.stage(databaseStage, databaseFeatures, t.databaseRows)
	if err != nil {
		return nil, err
	}
	t.set(func(m *Model, fold int) { m.database = database[fold] })
	table, err := t.stage(tableStage, tableFeatures, t.tableRows)
	if err != nil {
		return nil, err
	}
	t.set(func(m *Model, fold int) { m.table = table[fold] })
	column, err := t.stage(columnStage, columnFeatures, t.columnRows)
	if err != nil {
		return nil, err
	}
	t.set(func(m *Model, fold int) { m.column = column[fold] })
	tableAgain, err := t.stage(tableAgainStage, tableAgainFeatures, t.tableAgainRows)
	if err != nil {
		return nil, err
	}
	t.set(func(m *Model, fold int) { m.tableAgain = tableAgain[fold] })
	databaseAgain, err := t.stage(databaseAgainStage, databaseAgainFeatures, t.databaseAgainRows)
	if err != nil {
		return nil, err
	}
	return &Model{database[folds], table[folds], column[folds], tableAgain[folds], databaseAgain[folds]}, nil
}

// stage is a part of a model, named for people.
type stage string

const (
	databaseStage      stage = "databases"
	tableStage         stage = "tables"
	columnStage        stage = "columns"
	tableAgainStage    stage = "tables again"
	databaseAgainStage stage = "databases again"
)

type trainer struct {
	ctx      context.Context
	lessons  []Lesson
	shapes   []*shape
	learn    func(stage, *boost.Rows) (*boost.Model, error)
	seed     uint64
	progress func(string)
	models   [folds]Model // what each fold is judged by: learned without it
}

func (t *trainer) set(f func(m *Model, fold int)) {
	for i := range t.models {
		f(&t.models[i], i)
	}
}

// fold is by the group's name, so that it is the same in every lesson.
func fold(group string) int {
	h := uint32(2166136261)
	for i := range len(group) {
		h = (h ^ uint32(group[i])) * 16777619
	}
	return int(h>>16) % folds
}

// stage learns one part of a model: without each fold, and from all.
func (t *trainer) stage(what stage, features int, rows func(*boost.Rows, *scene, *Example, *Model, *rand.Rand)) ([folds + 1]*boost.Model, error) {
	var out [folds + 1]*boost.Model
	var sets [folds + 1]boost.Rows
	for i := range sets {
		sets[i].Features = features
	}
	for i, l := range t.lessons {
		for j := range l.Examples {
			if err := t.ctx.Err(); err != nil {
				return out, err
			}
			e := &l.Examples[j]
			own := fold(e.Group)
			got := boost.Rows{Features: features}
			b, err := l.Ranker.Board(t.ctx, e.Question, l.View)
			if err != nil {
				return out, err
			}
			rows(&got, newScene(b, t.shapes[i]), e.Led(b), &t.models[own], rand.New(rand.NewPCG(t.seed, uint64(i)<<32|uint64(j))))
			for k := range sets {
				if k != own {
					sets[k].Append(&got)
				}
			}
		}
	}
	t.progress(fmt.Sprintf("learning %s from %d rows", what, sets[folds].Len()))
	for k := range sets {
		m, err := t.learn(what, &sets[k])
		if err != nil {
			return out, fmt.Errorf("rank: train on %s: %w", what, err)
		}
		out[k] = m
	}
	return out, nil
}

func (t *trainer) databaseRows(into *boost.Rows, sc *scene, e *Example, _ *Model, _ *rand.Rand) {
	rows := make([]row, min(judgedDatabases, len(sc.databases)))
	for i := range rows {
		rows[i] = sc.databaseFeatures(i)
	}
	chooseDatabase(into, sc, e, rows)
}

// chooseDatabase adds the choice between the judged databases, if the example's is one of them.
func chooseDatabase(into *boost.Rows, sc *scene, e *Example, features []row) {
	answer := -1
	rows := make([][]float32, len(features))
	for i, r := range features {
		rows[i] = r
		if sc.databases[i].Name == e.Database {
			answer = i
		}
	}
	if answer >= 0 {
		into.Choose(rows, answer)
	}
}

func (t *trainer) tableRows(into *boost.Rows, sc *scene, e *Example, _ *Model, _ *rand.Rand) {
	for i, x := range sc.ranked {
		if sc.s.Object(x.ID).Ref.Database == e.Database {
			into.Add(sc.tableFeatures(i), e.Tables[x.ID], 1)
		}
	}
}

func (t *trainer) columnRows(into *boost.Rows, sc *scene, e *Example, m *Model, r *rand.Rand) {
	if len(e.Columns) == 0 {
		return
	}
	databases := m.databases(sc)
	tables := m.tables(sc, databases)
	list := sc.candidates(databases, tables)
	for i, features := range sc.columnFeatures(list, databases, tables) {
		weight := float32(1)
		if list[i].share == 0 && !e.Columns[list[i].id] {
			if r.Float64() >= blankColumns {
				continue
			}
			weight = 1 / blankColumns
		}
		into.Add(features, e.Columns[list[i].id], weight)
	}
}

func (t *trainer) tableAgainRows(into *boost.Rows, sc *scene, e *Example, m *Model, _ *rand.Rand) {
	databases := m.databases(sc)
	tables := m.tables(sc, databases)
	list, columns := m.columns(sc, databases, tables)
	for i, features := range sc.tableAgainFeatures(list, columns, tables) {
		if x := sc.ranked[i]; sc.s.Object(x.ID).Ref.Database == e.Database {
			into.Add(features, e.Tables[x.ID], 1)
		}
	}
}

func (t *trainer) databaseAgainRows(into *boost.Rows, sc *scene, e *Example, m *Model, _ *rand.Rand) {
	databases := m.databases(sc)
	tables := m.tables(sc, databases)
	list, columns := m.columns(sc, databases, tables)
	tables = m.tablesAgain(sc, tables, list, columns)
	chooseDatabase(into, sc, e, sc.databaseAgainFeatures(databases, tables, list, columns))
}
