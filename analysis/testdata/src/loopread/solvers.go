package loopread

import (
	"solvers"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions of another package that take as many steps as they are told.
func walks(starts []*tensor.Tensor, all []float64, enough func() bool) []float64 {
	for _, x := range starts {
		all = append(all, solvers.Walk(x, 3).Item()) // want `AT001`
	}
	for _, x := range starts {
		all = append(all, solvers.Search(x, 100, enough).Item()) // want `AT001`
	}
	for _, x := range starts {
		all = append(all, solvers.Walk(x, 100).Item())
	}
	return all
}

// Models of another package, which are fitted one after the other.
func fitted(x *tensor.Tensor, k int) *solvers.Model {
	m := solvers.New(x, k)
	for i := range 300 {
		m.Step(x)
		if i%20 == 0 && m.Moved.Item() < 1e-3 {
			break
		}
	}
	return m
}

func fitDistances(x *tensor.Tensor, k int) *solvers.Model {
	m := solvers.New(x, k)
	for range 300 {
		m.Distance(x)
	}
	return m
}

func ofSizes(x *tensor.Tensor, all []float64) []float64 {
	for k := 2; k < 100; k++ {
		all = append(all, fitted(x, k).Distance(x).Sum().Item())
	}
	for k := 2; k < 100; k++ {
		all = append(all, fitDistances(x, k).Distance(x).Sum().Item()) // want `AT001`
	}
	return all
}

// Loops over epochs whose items go to a function that nobody knows, which may train. Others may be over anything.
func visits(n, epochs, trials int, visit func(i int64)) {
	for range epochs {
		for _, i := range tensor.Randn(n).Int64s() {
			visit(i)
		}
	}
	for range trials {
		for _, i := range tensor.Randn(n).Int64s() { // want `AT001`
			visit(i)
		}
	}
}
