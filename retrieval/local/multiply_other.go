//go:build !amd64

package local

// multiply computes the sums of the products of the rough numbers and the bytes of vectors, the first at from.
func (v *vectors) multiply(q *probe, from int, sums []int32) { v.multiplyLanes(q, from, sums) }
