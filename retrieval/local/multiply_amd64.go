package local

import "golang.org/x/sys/cpu"

// multiply computes the sums of the products of the rough numbers and the bytes of vectors, the first at from.
func (v *vectors) multiply(q *probe, from int, sums []int32) {
	if !cpu.X86.HasAVX2 || len(sums) == 0 {
		v.multiplyLanes(q, from, sums)
		return
	}
	multiplyBlocks(&sums[0], &v.words[from*v.width], &q.rough[0], len(sums), v.width/blockWords)
}

// multiplyBlocks is multiply for n vectors of so many blocks, which needs AVX2.
//
//go:noescape
func multiplyBlocks(sums *int32, words *uint64, rough *int8, n, blocks int)
