package rank

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// Trained is a model that learned from a deployment's own questions, with what it learned from: what somebody may not see
// must not change what they get, so it serves only those who may see all of that.
type Trained struct {
	Model *Model
	salt  digest
	// What the lessons showed, and of that the objects whose rows played a part: whose values were searched, or that a
	// question was about. Sorted.
	shown, raw []digest
}

// digest stands for the name of an object, so that a file of them can be read for no list of names.
type digest [16]byte

func (t *Trained) digest(r catalog.Ref) digest {
	name, _ := r.MarshalText() // of an object of a catalog, which has a valid kind
	return hash(t.salt[:], name)
}

func hash(parts ...[]byte) (d digest) {
	sum := sha256.Sum256(bytes.Join(parts, []byte{0}))
	copy(d[:], sum[:])
	return d
}

// NewTrained joins a model with the lessons that it learned from.
func NewTrained(m *Model, lessons []Lesson) *Trained {
	t := &Trained{Model: m}
	for _, l := range lessons {
		t.salt = hash(t.salt[:], []byte(l.View.Snapshot().Version()))
	}
	for _, l := range lessons {
		s := l.View.Snapshot()
		touched := map[uint32]bool{}
		for _, e := range l.Examples {
			for _, ids := range [...]map[uint32]bool{e.Tables, e.Columns} {
				for id := range ids {
					touched[id] = true
				}
			}
		}
		for it := l.View.Queryables().Iterator(); it.HasNext(); {
			id := it.Next()
			d := t.digest(s.Object(id).Ref)
			t.shown = append(t.shown, d)
			if l.View.Raw(id) || touched[id] {
				t.raw = append(t.raw, d)
			}
		}
	}
	t.shown, t.raw = sorted(t.shown), sorted(t.raw)
	return t
}

func sorted(list []digest) []digest {
	slices.SortFunc(list, func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(list)
}

// trainedMagic opens an encoded Trained; its last byte is the version of what follows.
const trainedMagic = "SGRT\x01"

// MarshalBinary encodes the model with the digests of what it learned from.
func (t *Trained) MarshalBinary() ([]byte, error) {
	model, err := t.Model.MarshalBinary()
	if err != nil {
		return nil, err
	}
	out := append([]byte(trainedMagic), t.salt[:]...)
	for _, list := range [...][]digest{t.shown, t.raw} {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(list)))
		for _, d := range list {
			out = append(out, d[:]...)
		}
	}
	out = append(out, model...)
	return binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(out)), nil
}

// UnmarshalBinary decodes what MarshalBinary wrote.
func (t *Trained) UnmarshalBinary(data []byte) error {
	const head = len(trainedMagic) + len(digest{})
	switch {
	case len(data) < head+4 || string(data[:4]) != trainedMagic[:4]:
		return errors.New("rank: decode trained model: this is none; schemagate train writes them")
	case data[4] != trainedMagic[4]:
		return fmt.Errorf("rank: decode trained model: version %d is not known here; train it again", data[4])
	}
	rest := data[:len(data)-4]
	if crc32.ChecksumIEEE(rest) != binary.LittleEndian.Uint32(data[len(rest):]) {
		return errors.New("rank: decode trained model: its checksum is wrong; restore the file or train it again")
	}
	out := Trained{Model: new(Model)}
	copy(out.salt[:], rest[len(trainedMagic):])
	rest = rest[head:]
	for _, list := range [...]*[]digest{&out.shown, &out.raw} {
		if len(rest) < 4 || uint64(len(rest)-4) < uint64(binary.LittleEndian.Uint32(rest))*uint64(len(digest{})) {
			return errors.New("rank: decode trained model: what it learned from is cut short; train it again")
		}
		n := int(binary.LittleEndian.Uint32(rest))
		rest = rest[4:]
		*list = make([]digest, n)
		for i := range *list {
			copy((*list)[i][:], rest)
			rest = rest[len(digest{}):]
		}
	}
	if err := out.Model.UnmarshalBinary(rest); err != nil {
		return err
	}
	*t = out
	return nil
}

// Deployed judges with a trained model where that may serve, and with the one that ships elsewhere. It is for one
// snapshot and safe for concurrent use.
type Deployed struct {
	snapshot   *catalog.Snapshot
	own        *Ranker
	shipped    *Ranker
	shown, raw *roaring.Bitmap
	gone       int                    // objects that it learned from and the snapshot lacks
	serves     *retrieval.Cache[bool] // by view
}

var servesLimits = retrieval.Limits{Age: 5 * time.Minute, Entries: 10_000, Bytes: 4 << 20}

// Deploy puts a trained model to use on a snapshot.
func Deploy(t *Trained, shipped *Model, s *catalog.Snapshot) *Deployed {
	d := &Deployed{
		snapshot: s, shipped: New(shipped, s), shown: roaring.New(), raw: roaring.New(),
		serves: retrieval.NewCache(servesLimits, func(bool) int { return 1 }),
	}
	d.own = &Ranker{d.shipped.shape, t.Model}
	has := func(list []digest, x digest) bool {
		_, ok := slices.BinarySearchFunc(list, x, func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
		return ok
	}
	for i := range s.All() {
		o := s.Object(uint32(i))
		x := t.digest(o.Ref)
		if has(t.shown, x) {
			d.shown.Add(o.ID)
		}
		if has(t.raw, x) {
			d.raw.Add(o.ID)
		}
	}
	d.gone = len(t.shown) - int(d.shown.GetCardinality())
	return d
}

// Serves reports whether a view shows all that the trained model learned from, with its rows where those played a part.
// What no longer exists nobody may see, so after an object has gone the model serves nobody until it is trained again.
func (d *Deployed) Serves(v acl.View) bool {
	if v.Snapshot() != d.snapshot || d.gone > 0 {
		return false
	}
	if d.shown.AndCardinality(v.Queryables()) != d.shown.GetCardinality() {
		return false
	}
	for it := d.raw.Iterator(); it.HasNext(); {
		if !v.Raw(it.Next()) {
			return false
		}
	}
	return true
}

// Gone is how many objects the model learned from that the catalog no longer holds.
func (d *Deployed) Gone() int { return d.gone }

// Judge implements retrieval.Judge.
func (d *Deployed) Judge(b *retrieval.Board) retrieval.Judgement {
	v := b.View()
	serves, err := d.serves.Get(context.Background(), v.Key(), func(context.Context) (bool, error) { return d.Serves(v), nil })
	if serves && err == nil {
		return d.own.Judge(b)
	}
	return d.shipped.Judge(b)
}

// Objects is the number of objects that the model learned from.
func (t *Trained) Objects() int { return len(t.shown) }
