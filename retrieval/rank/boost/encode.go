package boost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// magic opens an encoded model; its last byte is the version of what follows.
const magic = "SGBT\x01"

// MarshalBinary encodes the model: sizes, then each tree's splits and leaves, then a checksum of it all.
func (m *Model) MarshalBinary() ([]byte, error) {
	out := []byte(magic)
	number := func(n int) { out = binary.LittleEndian.AppendUint16(out, uint16(n)) }
	real := func(x float32) { out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x)) }
	number(m.features)
	number(len(m.trees))
	real(m.base)
	for _, t := range m.trees {
		number(len(t.splits))
		for _, s := range t.splits {
			number(int(s.feature))
			real(s.threshold)
			number(int(s.left))
			number(int(s.right))
		}
		for _, x := range t.leaves {
			real(x)
		}
	}
	return binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(out)), nil
}

// UnmarshalBinary decodes what MarshalBinary wrote, and refuses all else: a tree that it accepts ends in a leaf
// whatever the row.
func (m *Model) UnmarshalBinary(data []byte) error {
	if len(data) < len(magic)+4 || string(data[:4]) != magic[:4] {
		return errors.New("boost: decode model: this is no model")
	}
	if data[4] != magic[4] {
		return fmt.Errorf("boost: decode model: version %d is not known here; train it again", data[4])
	}
	body := data[:len(data)-4]
	if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(data[len(body):]) {
		return errors.New("boost: decode model: its checksum is wrong; restore the file or train it again")
	}
	d := decoder{rest: body[len(magic):]}
	out := Model{features: d.number(), trees: make([]tree, min(d.number(), maxTrees+1))}
	out.base = d.real()
	d.check(out.features >= 1 && out.features <= maxFeatures && len(out.trees) <= maxTrees)
	for i := range out.trees {
		n := d.number()
		d.check(n < maxLeaves)
		if d.bad {
			break
		}
		t := tree{splits: make([]split, n), leaves: make([]float32, n+1)}
		hung := map[int16]bool{} // children: each hangs in one place, or the leaves of a few splits would be countless
		for j := range t.splits {
			s := split{feature: uint16(d.number()), threshold: d.real(), left: int16(d.number()), right: int16(d.number())}
			d.check(int(s.feature) < out.features)
			for _, child := range [...]int16{s.left, s.right} {
				d.check(!hung[child] && (child < 0 && int(-1-child) <= n || int(child) > j && int(child) < n))
				hung[child] = true
			}
			t.splits[j] = s
		}
		for j := range t.leaves {
			t.leaves[j] = d.real()
		}
		out.trees[i] = t
	}
	if d.check(len(d.rest) == 0); d.bad {
		return errors.New("boost: decode model: its parts contradict one another; train it again")
	}
	*m = *newModel(out.features, out.base, out.trees)
	return nil
}

// decoder reads numbers until one is missing or wrong.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) check(ok bool) { d.bad = d.bad || !ok }

func (d *decoder) number() int {
	if d.check(len(d.rest) >= 2); d.bad {
		return 0
	}
	n := binary.LittleEndian.Uint16(d.rest)
	d.rest = d.rest[2:]
	return int(n)
}

func (d *decoder) real() float32 {
	if d.check(len(d.rest) >= 4); d.bad {
		return 0
	}
	x := math.Float32frombits(binary.LittleEndian.Uint32(d.rest))
	d.rest = d.rest[4:]
	d.check(!math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0))
	return x
}
