package loopread

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What the host has read a result of has been computed.

func lookedAt(data []Batch) (total float64) {
	for _, b := range data {
		scores := b.X.MatMul(w)
		total += scores.Square().Norm().Item() // want `AT001`
		fmt.Println(scores)
		total += scores.Norm().Item() // want `AT001`
	}
	for _, b := range data {
		scores := b.X.MatMul(w)
		top := scores.Norm()
		total += top.Item() // want `AT001`
		total += scores.Item()
		scores = scores.MatMul(w)
		total += scores.Item() // want `AT001`
	}
	return total
}

// The next tensor is made of what a struct keeps of the value.

type beam struct {
	ids   []int64
	score float64
}

func search(ids []int64, n int) (best beam) {
	best.ids = ids
	for range n {
		v := tensor.From(best.ids).MatMul(w).Float32s() // want `and the next tensor is made of its value; make it of the tensor, and read after the loop`
		next := beam{append(best.ids, 1), best.score + float64(v[0])}
		best = next
	}
	return best
}
