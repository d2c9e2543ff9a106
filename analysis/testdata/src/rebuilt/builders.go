package rebuilt

import (
	"errors"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

func compile(backend graph.Backend) *graph.Exec { return graph.MustNewExec(backend, model) }

func compileFor(backend graph.Backend, n int) *graph.Exec {
	return graph.MustNewExec(backend, func(x *graph.Node) *graph.Node {
		_ = n
		return x
	})
}

func run(backend graph.Backend, x *tensors.Tensor) *tensors.Tensor {
	exec := compile(backend)
	return exec.MustExec1(x)
}

func (t *trainer) run(x *tensors.Tensor) (*tensors.Tensor, error) {
	if err := check(x); err != nil {
		return nil, err
	}
	return graph.MustExecOnce(t.backend, model, x), nil
}

func (t *trainer) cached(x *tensors.Tensor) *tensors.Tensor {
	if t.exec == nil {
		t.exec = graph.MustNewExec(t.backend, model)
	}
	return t.exec.MustExec1(x)
}

func (t *trainer) scaled() *graph.Exec {
	scale := t.scale
	return graph.MustNewExec(t.backend, func(x *graph.Node) *graph.Node {
		_ = scale
		return x
	})
}

func check(x *tensors.Tensor) error { return errors.New("wrong") }

func (t *trainer) builders(xs []*tensors.Tensor) (ys []*tensors.Tensor) {
	for _, x := range xs {
		ys = append(ys, compile(t.backend).MustExec1(x))       // want `compile builds the same in each iteration; build it once, before the loop`
		ys = append(ys, compileFor(t.backend, 3).MustExec1(x)) // want `compileFor builds the same`
		ys = append(ys, run(t.backend, x))                     // want `run builds the same`
		y, _ := t.run(x)                                       // want `t.run builds the same`
		ys = append(ys, y, t.scaled().MustExec1(x))            // want `t.scaled builds the same`
	}
	for i, x := range xs {
		ys = append(ys, compileFor(t.backend, i).MustExec1(x)) // another one each time
		ys = append(ys, t.cached(x))
	}
	return ys
}

func (t *trainer) annealed(xs []*tensors.Tensor) (ys []*tensors.Tensor) {
	for _, x := range xs {
		t.scale *= 0.5
		ys = append(ys, t.scaled().MustExec1(x))
	}
	return ys
}
