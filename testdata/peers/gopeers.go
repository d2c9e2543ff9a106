package main

import (
	"math/rand/v2"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

func random(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rand.NormFloat64())
	}
	return x
}

// gonumFor multiplies matrices; gonum's other loops are for float64.
func gonumFor(q question) func() {
	general := func(rows, cols int) blas32.General {
		return blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: random(rows * cols)}
	}
	switch q.Work {
	case "matmul":
		m, n, k := q.Sizes[0], q.Sizes[1], q.Sizes[2]
		x, y, out := general(m, k), general(k, n), general(m, n)
		return func() { blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, x, y, 0, out) }
	case "warmup":
		out := general(1000, 1000)
		return func() {
			for range 10 {
				x := general(1000, 1000)
				blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, x, x, 0, out)
			}
		}
	}
	return nil
}

func gomlxVersion() string {
	return moduleVersion("github.com/gomlx/gomlx") + ", backend in Go; its gradients of products are known to be slow"
}

// gomlxFor runs compiled graphs of GoMLX's backend in Go.
func gomlxFor(q question) func() {
	b, err := simplego.New("")
	if err != nil {
		panic(err)
	}
	n := 0
	if len(q.Sizes) > 0 {
		n = q.Sizes[0]
	}
	switch q.Work {
	case "matmul":
		m, n, k := q.Sizes[0], q.Sizes[1], q.Sizes[2]
		return graph(b, MustNewExec(b, func(x, y *Node) *Node { return Dot(x, y) }), [][]int{{m, k}, {k, n}})
	case "map":
		switch q.Op {
		case "add":
			return graph(b, MustNewExec(b, Add), [][]int{{n}, {n}})
		case "muladd":
			return graph(b, MustNewExec(b, func(x, y, z *Node) *Node { return Add(Mul(x, y), z) }), [][]int{{n}, {n}, {n}})
		case "relu":
			return graph(b, MustNewExec(b, func(x *Node) *Node { return MaxScalar(x, float32(0)) }), [][]int{{n}})
		case "exp":
			return graph(b, MustNewExec(b, Exp), [][]int{{n}})
		case "tanh":
			return graph(b, MustNewExec(b, Tanh), [][]int{{n}})
		}
	case "chain":
		return graph(b, MustNewExec(b, func(x, y, z *Node) *Node {
			return Mul(Sub(MaxScalar(Add(Mul(x, y), z), float32(0)), y), z)
		}), [][]int{{n}, {n}, {n}})
	case "step":
		return graph(b, MustNewExec(b, step), [][]int{{1024, 512}, {1024, 1}, {512, 2048}, {2048, 512}, {512, 1}, {2048}, {512}, {1}})
	case "tiny":
		return graph(b, MustNewExec(b, func(x *Node) *Node { return AddScalar(x, float32(1)) }), [][]int{{2}})
	}
	return nil
}

// step returns what the parameters, which follow the batch and its answers, are after a step.
func step(in []*Node) []*Node {
	x, answers, params := in[0], in[1], in[2:]
	for i := range 3 {
		x = Dot(x, params[i])
		x = Add(x, BroadcastToShape(ExpandLeftToRank(params[3+i], 2), x.Shape()))
		if i < 2 {
			x = MaxScalar(x, float32(0))
		}
	}
	loss := ReduceAllMean(Square(Sub(x, answers)))
	next := Gradient(loss, params...)
	for i, p := range params {
		next[i] = Sub(p, MulScalar(next[i], float32(0.005)))
	}
	return next
}

// graph runs a graph on random tensors of these shapes, which are on the device.
func graph(b backends.Backend, exec *Exec, shapes [][]int) func() {
	args := make([]any, len(shapes))
	for i, shape := range shapes {
		n := 1
		for _, d := range shape {
			n *= d
		}
		t := tensors.FromFlatDataAndDimensions(random(n), shape...)
		t.MustMaterializeOnDevice(b, true, 0)
		args[i] = t
	}
	return func() {
		for _, t := range exec.MustExec(args...) {
			t.MustFinalizeAll()
		}
	}
}
