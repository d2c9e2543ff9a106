package loopdata

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Lists in fields that only the function fills which has made the struct.

type schedule struct{ alpha, bar, moved []float64 }

func cosine(n int) schedule {
	s := schedule{make([]float64, n), make([]float64, n), nil}
	for i := range n {
		s.alpha[i] = float64(i)
		s.bar[i] = s.alpha[i] * 2
	}
	return s
}

func linear(n int) *schedule {
	s := new(schedule)
	s.bar = make([]float64, n)
	s.moved = make([]float64, n)
	return s
}

func (s *schedule) move(i int) { s.moved[i]++ }

func diffuse(s schedule, xs []*tensor.Tensor, net interface{ Run(x *tensor.Tensor) }) {
	for _, x := range xs {
		bar := tensor.From(s.bar)     // want `tensor.From\(s.bar\) makes the same tensor`
		moved := tensor.From(s.moved) // move changes it
		net.Run(x.Mul(bar).Mul(moved))
	}
}

func (s *schedule) noise(xs []*tensor.Tensor, net interface{ Run(x *tensor.Tensor) }) {
	for _, x := range xs {
		net.Run(x.Mul(tensor.From(s.alpha))) // want `AT025`
		net.Run(x.Mul(tensor.From(s.moved)))
	}
}
