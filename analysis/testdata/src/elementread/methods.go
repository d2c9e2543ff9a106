package elementread

import "github.com/asyncgen/asyncgen/runtime/tensor"

type grid struct {
	cells *tensor.Tensor
	n     int
}

func (g grid) row(y int) []float32 { return g.cells.Row(y).Float32s() }

func (g grid) named(name string) []float32 { return g.cells.Row(len(name)).Float32s() }

func (g grid) rows(names []string) (all [][]float32) {
	for y := range g.n {
		all = append(all, g.row(y)) // want `g.row reads one part of g.cells in each iteration`
	}
	for _, name := range names {
		all = append(all, g.named(name))
	}
	return all
}
