package retrieval

import "math"

// blockSize is how many vectors are multiplied at once: as many as a word has bytes.
const blockSize = 8

// code is a vector in 127 steps of its greatest part. Cosines of the vectors of texts, which have a hundred parts and
// more, are off by less than 0.01.
// The steps count from -middle, so that none is negative.
type code struct {
	sum  int32   // of the steps
	norm float32 // 1 over the length of the vector in steps; 0 for a vector of zeros
}

const middle = 63

func codeOf(v []float32) (code, []byte) {
	var top float32
	for _, x := range v {
		top = max(top, x, -x)
	}
	steps := make([]byte, len(v))
	var c code
	var square int64
	for i, x := range v {
		n := int64(0)
		if top > 0 {
			n = int64(math.Round(float64(x / top * middle)))
		}
		steps[i] = byte(n + middle)
		c.sum += int32(n + middle)
		square += n * n
	}
	if square > 0 {
		c.norm = float32(1 / math.Sqrt(float64(square)))
	}
	return c, steps
}

// put writes a vector into its block: a word for each dimension holds a byte of each of its vectors.
func (h *History) put(at int, v []float32) {
	code, steps := codeOf(v)
	h.codes[at] = code
	block := h.blocks[at/blockSize*h.dim:][:h.dim]
	for i, n := range steps {
		block[i] |= uint64(n) << (8 * (at % blockSize))
	}
}

// cosines computes the cosines of a vector with those of a block. A word is split into its even and its odd bytes, so
// that each has room for four products of two steps, which are at most 126 each.
func (h *History) cosines(a code, steps []byte, block int, out *[blockSize]float32) {
	const (
		bytes = 0x00ff00ff00ff00ff
		pairs = 0x0000ffff0000ffff
	)
	words := h.blocks[block*h.dim:][:h.dim]
	var sum04, sum26, sum15, sum37 uint64 // two sums of 32 bits each
	add := func(even, odd uint64) {
		sum04 += even & pairs
		sum26 += even >> 16 & pairs
		sum15 += odd & pairs
		sum37 += odd >> 16 & pairs
	}
	for len(words) >= 4 && len(steps) >= 4 {
		w := (*[4]uint64)(words)
		s0, s1, s2, s3 := uint64(steps[0]), uint64(steps[1]), uint64(steps[2]), uint64(steps[3])
		add((w[0]&bytes)*s0+(w[1]&bytes)*s1+(w[2]&bytes)*s2+(w[3]&bytes)*s3,
			(w[0]>>8&bytes)*s0+(w[1]>>8&bytes)*s1+(w[2]>>8&bytes)*s2+(w[3]>>8&bytes)*s3)
		words, steps = words[4:], steps[4:]
	}
	for i, w := range words {
		add((w&bytes)*uint64(steps[i]), (w>>8&bytes)*uint64(steps[i]))
	}
	codes := h.codes[block*blockSize:]
	for i, sum := range [blockSize]uint64{sum04, sum15, sum26, sum37, sum04 >> 32, sum15 >> 32, sum26 >> 32, sum37 >> 32} {
		if i == len(codes) {
			return
		}
		b := codes[i]
		out[i] = float32(int64(uint32(sum))-middle*int64(a.sum+b.sum)+middle*middle*int64(h.dim)) * a.norm * b.norm
	}
}
