// Package embed turns short texts, such as questions and the names of tables and columns, into vectors whose angle says
// how near their meanings are. The model is part of the binary: it needs no network, no files and no setting up. It
// looks the pieces of a text up in a table of vectors and adds them, so the order of words does not count.
package embed

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // carries the model
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"unicode/utf8"
)

// The folder recipe holds what makes it.
//
//go:embed model.bin
var built []byte

// longestText is the number of bytes of a text that count. What follows is left out, so that no text takes long.
const longestText = 16 << 10

// Model embeds texts. It is safe for concurrent use.
type Model struct {
	name   string
	dim    int
	rows   []byte    // dim signed bytes for each piece
	scales []float32 // by piece: what its row is multiplied by
	pieces pieces
}

// New returns the model that the binary carries. It takes a few milliseconds, so keep the result.
func New() (*Model, error) {
	m, err := parse(built)
	if err != nil {
		return nil, fmt.Errorf("embed: reading the built-in model: %w; build the program anew from a clean checkout", err)
	}
	return m, nil
}

// Open reads a model that the recipe wrote to a file.
func Open(file string) (*Model, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	m, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("embed: reading %s: %w", file, err)
	}
	return m, nil
}

var errShape = errors.New("it is cut short or not a model")

// parse reads a model: a magic word, the numbers of pieces, of dimensions and of bytes of text; then for all pieces
// their log-probabilities, scales, lengths, texts and rows.
func parse(b []byte) (*Model, error) {
	const head = 16
	if len(b) < head || !bytes.HasPrefix(b, []byte("SGE1")) {
		return nil, errShape
	}
	n, dim, text := uint64(binary.LittleEndian.Uint32(b[4:])), uint64(binary.LittleEndian.Uint32(b[8:])), uint64(binary.LittleEndian.Uint32(b[12:]))
	if n == 0 || dim == 0 || head+n*(4+4+1)+text+n*dim != uint64(len(b)) {
		return nil, errShape
	}
	sum := sha256.Sum256(b)
	m := &Model{name: fmt.Sprintf("builtin-%d-%s", dim, hex.EncodeToString(sum[:4])), dim: int(dim)}
	rest := b[head:]
	take := func(size uint64) []byte {
		part := rest[:size]
		rest = rest[size:]
		return part
	}
	scores := floats(take(4 * n))
	m.scales = floats(take(4 * n))
	lengths, texts := take(n), string(take(text))
	m.rows = rest
	m.pieces = newPieces(int(n))
	for i, size := range lengths {
		if int(size) > len(texts) {
			return nil, errShape
		}
		m.pieces.add(texts[:size], piece{int32(i), scores[i]})
		texts = texts[size:]
	}
	return m, nil
}

func floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// Name tells this model from others. Vectors compare only with those of a model of the same name.
func (m *Model) Name() string { return m.name }

// Dim is the length of the vectors.
func (m *Model) Dim() int { return m.dim }

// Embed implements retrieval.Embedder. It fails only if ctx is done.
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	all := make([]float32, len(texts)*m.dim)
	out := make([][]float32, len(texts))
	c := cutter{known: map[string][]int32{}} // texts that come together share words
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("embed: after %d of %d texts: %w", i, len(texts), err)
		}
		out[i] = all[i*m.dim:][:m.dim:m.dim]
		m.embed(&c, out[i], text)
	}
	return out, nil
}

// Vector returns the vector of a text, of length 1, or all zero for a text without a word that the model knows.
func (m *Model) Vector(text string) []float32 {
	out := make([]float32, m.dim)
	m.EmbedInto(out, text)
	return out
}

// EmbedInto is Vector into a slice that the caller has. It panics if the slice is shorter than Dim.
func (m *Model) EmbedInto(out []float32, text string) { m.embed(new(cutter), out[:m.dim], text) }

func (m *Model) embed(c *cutter, out []float32, text string) {
	clear(out)
	if len(text) > longestText {
		end := longestText
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	c.each(&m.pieces, text, func(id int32) {
		row, scale := m.rows[int(id)*m.dim:][:m.dim], m.scales[id]
		for i, x := range row {
			out[i] += float32(int8(x)) * scale
		}
	})
	var square float64
	for _, x := range out {
		square += float64(x) * float64(x)
	}
	if square == 0 {
		return
	}
	norm := float32(1 / math.Sqrt(square))
	for i := range out {
		out[i] *= norm
	}
}

// Cosine is the similarity of two vectors of one model: 1 for texts of the same words, near 0 for unrelated ones, and
// 0 with a vector of zeros. Both must come from a Model, whose vectors have length 1.
func Cosine(a, b []float32) float32 {
	var sum float32
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
