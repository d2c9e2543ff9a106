package elementread

import (
	"boards"
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions of another package that read one part.

func vectorsOf(t *boards.Table, x *tensor.Tensor, n int) (sum float32) {
	for i := range n {
		sum += t.Vector(i)[0] // want `t.Vector reads one part of t in each iteration`
	}
	for i := range n {
		fmt.Println(t.Entry(i, 2)) // want `t.Entry reads one part of t in each iteration`
	}
	for i := range n {
		sum += t.Part(i)[0] // want `t.Part reads one part of t in each iteration`
	}
	for i := range n {
		sum += float32(boards.Cell(x, i)) // want `boards.Cell reads one part of x in each iteration`
	}
	return sum
}

type cachedTable struct {
	*boards.Table
	rows map[int][]float32
}

func (c *cachedTable) fill(n int) {
	for i := range n {
		c.rows[i] = c.Vector(i) // want `c.Vector reads one part of c in each iteration`
	}
}

// Silent: another tensor each time, no part, or parameters that are trained.

func vectorsNot(t *boards.Table, all []*boards.Table, xs []*tensor.Tensor, opt *optim.Optimizer, n int) (sum float64) {
	for i, x := range xs {
		t.Fix(x)
		sum += t.Entry(i, 0)
	}
	for i := range n {
		sum += float64(all[i].Vector(i)[0])
	}
	for i, x := range xs {
		sum += boards.Cell(x, i)
		sum += float64(boards.Size(x, 0))
	}
	for i := range n {
		opt.Step()
		sum += float64(t.Vector(i)[0])
	}
	return sum + t.First()
}
