package rank

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/schemagate/schemagate/retrieval/rank/boost"
)

// Model gives probabilities. It is safe for concurrent use.
type Model struct {
	database, table, column *boost.Model
}

// How many features each part of a model sees. A model that was trained on other features does not fit.
const (
	databaseFeatures = 33
	tableFeatures    = 31
	columnFeatures   = 34
)

// The first bytes of an encoded model. The last of them is the version, which changes with the features.
const magic = "SGRK\x01"

// MarshalBinary encodes the model.
func (m *Model) MarshalBinary() ([]byte, error) {
	out := []byte(magic)
	for _, part := range [...]*boost.Model{m.database, m.table, m.column} {
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
	var parts [3]*boost.Model
	for i, want := range [...]int{databaseFeatures, tableFeatures, columnFeatures} {
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
	m.database, m.table, m.column = parts[0], parts[1], parts[2]
	return nil
}

// doubt flattens the probabilities of databases: on catalogs unlike those that it learned from, a model is too sure.
const doubt = 0.7

// databases judges the best databases. The answer lies in one of them or in none, so their probabilities are brought
// down to a sum of 1 where they exceed it.
func (m *Model) databases(sc *scene) judged {
	p := make([]float64, min(judgedDatabases, len(sc.base.Databases)))
	sum := 0.0
	for i := range p {
		p[i] = math.Pow(m.database.Predict(sc.databaseFeatures(i)), doubt)
		sum += p[i]
	}
	if sum > 1 {
		for i := range p {
			p[i] /= sum
		}
	}
	return newJudged(p)
}

// tables judges the best tables: that the answer lies in the database, times that it then needs the table.
func (m *Model) tables(sc *scene, databases judged) judged {
	p := make([]float64, min(judgedTables, len(sc.base.Tables)))
	for i := range p {
		if row := sc.databaseRow[sc.databaseOf[sc.base.Tables[i].ID]]; row > 0 && row <= len(databases.p) {
			p[i] = databases.p[row-1] * m.table.Predict(sc.tableFeatures(i))
		}
	}
	return newJudged(p)
}
