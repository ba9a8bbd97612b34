package rank

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/schemagate/schemagate/retrieval/rank/boost"
)

// Model gives probabilities. It is safe for concurrent use.
type Model struct {
	database, table, column   *boost.Model
	tableAgain, databaseAgain *boost.Model // the second round, once columns are judged
}

// How many features each part of a model sees. A model that was trained on other features does not fit.
const (
	databaseFeatures      = 50
	tableFeatures         = 38
	columnFeatures        = 44
	tableAgainFeatures    = 21
	databaseAgainFeatures = 20
)

// The first bytes of an encoded model. The last of them is the version, which changes with the features and with what the
// parts tell.
const magic = "SGRK\x06"

// Name tells the model from others, by what it holds.
func (m *Model) Name() string {
	data, _ := m.MarshalBinary() // fails for no model
	sum := sha256.Sum256(data)
	return "trees-" + hex.EncodeToString(sum[:4])
}

// MarshalBinary encodes the model.
func (m *Model) MarshalBinary() ([]byte, error) {
	out := []byte(magic)
	for _, part := range [...]*boost.Model{m.database, m.table, m.column, m.tableAgain, m.databaseAgain} {
		data, err := part.MarshalBinary()
		if err != nil {
			return nil, err
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(len(data)))
		out = append(out, data...)
	}
	return binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(out)), nil
}

// UnmarshalBinary decodes what MarshalBinary wrote, and refuses what does not fit the features of this version.
func (m *Model) UnmarshalBinary(data []byte) error {
	if len(data) < len(magic)+4 || string(data[:4]) != magic[:4] {
		return errors.New("rank: decode model: this is no model of a ranker")
	}
	if data[4] != magic[4] {
		return fmt.Errorf("rank: decode model: version %d is not known here; train it again", data[4])
	}
	rest := data[:len(data)-4]
	if crc32.ChecksumIEEE(rest) != binary.LittleEndian.Uint32(data[len(rest):]) {
		return errors.New("rank: decode model: its checksum is wrong; restore the file or train it again")
	}
	rest = rest[len(magic):]
	var parts [5]*boost.Model
	for i, want := range [...]int{databaseFeatures, tableFeatures, columnFeatures, tableAgainFeatures, databaseAgainFeatures} {
		if len(rest) < 4 || uint64(len(rest)-4) < uint64(binary.LittleEndian.Uint32(rest)) {
			return errors.New("rank: decode model: a part is missing; restore the file or train it again")
		}
		n := 4 + int(binary.LittleEndian.Uint32(rest))
		parts[i] = new(boost.Model)
		if err := parts[i].UnmarshalBinary(rest[4:n]); err != nil {
			return fmt.Errorf("rank: %w", err)
		}
		if got := parts[i].Features(); got != want {
			return fmt.Errorf("rank: decode model: it was trained on %d features where there are %d; train it again", got, want)
		}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return errors.New("rank: decode model: there is more than a model; restore the file or train it again")
	}
	m.database, m.table, m.column, m.tableAgain, m.databaseAgain = parts[0], parts[1], parts[2], parts[3], parts[4]
	return nil
}

// doubt flattens the probabilities of databases: on catalogs unlike those that it learned from, a model is too sure.
const doubt = 0.7

// databases judges the best databases.
func (m *Model) databases(sc *scene) judged {
	p := make([]float64, min(judgedDatabases, len(sc.databases)))
	features := make([]row, len(p))
	for i := range features {
		features[i] = sc.databaseFeatures(i)
	}
	m.database.PredictAll(p, func(i int) []float32 { return features[i] })
	return exclusive(p)
}

// exclusive is what is thought of things of which one is meant, by what a model of choices says of each: their odds tell
// how much likelier one is than another.
func exclusive(p []float64) judged {
	sum := 0.0
	for i, x := range p {
		p[i] = math.Pow(x/max(1-x, leastChance*leastChance), doubt)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return newJudged(p)
}

// tables judges the best tables: that the answer lies in the database, times that it then needs the table.
func (m *Model) tables(sc *scene, databases judged) judged {
	n := len(sc.ranked)
	p, given := make([]float64, n), make([]float64, n)
	for d, places := range sc.rowsIn {
		at := sc.databaseRow[d]
		if at == 0 || at > len(databases.p) {
			continue
		}
		features, here := make([]row, len(places)), make([]float64, len(places))
		for i, place := range places {
			features[i] = sc.tableFeatures(place)
		}
		m.table.PredictAll(here, func(i int) []float32 { return features[i] })
		for i, place := range places {
			given[place] = here[i]
			p[place] = databases.p[at-1] * here[i]
		}
	}
	out := newJudged(p)
	out.given = given
	return out
}

// columns judges the columns of the tables thought best.
func (m *Model) columns(sc *scene, databases, tables judged) ([]candidate, []float64) {
	list := sc.candidates(databases, tables)
	p := make([]float64, len(list))
	features := sc.columnFeatures(list, databases, tables)
	for from, to := 0, 0; from < len(list); from = to { // table by table
		for to < len(list) && list[to].table == list[from].table {
			to++
		}
		m.column.PredictAll(p[from:to], func(i int) []float32 { return features[from+i] })
	}
	return list, p
}

// tablesAgain judges the tables once more, by what is thought of their columns.
func (m *Model) tablesAgain(sc *scene, tables judged, list []candidate, columns []float64) judged {
	p, given := make([]float64, len(tables.p)), make([]float64, len(tables.p))
	features := sc.tableAgainFeatures(list, columns, tables)
	m.tableAgain.PredictAll(given, func(i int) []float32 { return features[i] })
	for i, before := range tables.given {
		if before > 0 {
			p[i] = given[i] * tables.p[i] / before
		} else {
			given[i] = 0
		}
	}
	out := newJudged(p)
	out.given = given
	return out
}

// databasesAgain judges the databases once more, by what is thought of their tables and columns.
func (m *Model) databasesAgain(sc *scene, databases, tables judged, list []candidate, columns []float64) judged {
	p := make([]float64, len(databases.p))
	features := sc.databaseAgainFeatures(databases, tables, list, columns)
	m.databaseAgain.PredictAll(p, func(i int) []float32 { return features[i] })
	return exclusive(p)
}
