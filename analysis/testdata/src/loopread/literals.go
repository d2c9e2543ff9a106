package loopread

import "github.com/asyncgen/asyncgen/runtime/tensor"

var tell func(ids []int64) string

// What a function does with a slice of values is not known, but it is not that they are only kept.
func inLiterals(x *tensor.Tensor, say func(string)) (kept [][]int64) {
	for range 10 {
		x = x.MulScalar(0.5)
		say(tell([]int64{x.ItemInt()})) // want `waits for the device in each iteration; read after the loop, or only every so many iterations`
	}
	for range 10 {
		x = x.MulScalar(0.5)
		kept = append(kept, []int64{x.ItemInt()}) // want `only kept`
	}
	return kept
}
