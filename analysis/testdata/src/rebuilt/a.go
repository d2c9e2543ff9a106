package rebuilt

import (
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

type trainer struct {
	backend graph.Backend
	exec    *graph.Exec
	scale   float64
}

func model(x *graph.Node) *graph.Node { return x }

func build() func(*graph.Node) *graph.Node { return model }

func (t *trainer) rebuilt(xs []*tensors.Tensor) (ys []*tensors.Tensor) {
	rate := 0.5
	for _, x := range xs {
		ys = append(ys, graph.MustExecOnce(t.backend, model, x))               // want `graph.MustExecOnce builds the same in each iteration; build it once, before the loop \[AT034\]`
		exec := graph.MustNewExec(t.backend, func(x *graph.Node) *graph.Node { // want `graph.MustNewExec builds the same`
			y := x
			_ = rate
			return y
		})
		ys = append(ys, exec.MustExec1(x))
	}
	return ys
}

// Silent from here on.

func (t *trainer) once(xs []*tensors.Tensor) (ys []*tensors.Tensor) {
	exec := graph.MustNewExec(t.backend, model)
	for _, x := range xs {
		ys = append(ys, exec.MustExec1(x))
		if t.exec == nil {
			t.exec = graph.MustNewExec(t.backend, model)
		}
	}
	for range 3 {
		ys = append(ys, graph.MustExecOnce(t.backend, model, xs[0]))
	}
	return append(ys, graph.MustExecOnce(t.backend, model, xs[0]))
}

func (t *trainer) others(models []func(*graph.Node) *graph.Node, xs []*tensors.Tensor) (ys []*tensors.Tensor) {
	for i, m := range models {
		ys = append(ys, graph.MustExecOnce(t.backend, m, xs[0]))
		ys = append(ys, graph.MustExecOnce(t.backend, models[i], xs[0]))
		ys = append(ys, graph.MustExecOnce(t.backend, build(), xs[0]))
		t.scale *= 2
		ys = append(ys, graph.MustExecOnce(t.backend, func(x *graph.Node) *graph.Node {
			_ = t.scale
			return x
		}, xs[0]))
		ys = append(ys, graph.MustExecOnce(t.backend, func(x *graph.Node) *graph.Node { return m(x) }, xs[0]))
	}
	for range models {
		exec := graph.MustNewExec(t.backend, model)
		for _, x := range xs {
			ys = append(ys, exec.MustExec1(x))
		}
	}
	return ys
}
