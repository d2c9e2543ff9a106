package sametensor

import "github.com/asyncgen/asyncgen/runtime/tensor"

type swarm struct{ x, v *tensor.Tensor }

func (s *swarm) step() { s.x = s.x.Add(s.v) }

// rests asks whether a step leaves everything where it was.
func (s *swarm) rests() bool {
	before := s.x
	s.step()
	return s.x == before // want `s.x == before compares two tensors that are never the same one`
}

// settled leaves when a step has changed nothing.
func (s *swarm) settled(n int) bool {
	for range n {
		before := s.x
		s.step()
		if s.x == before { // want `s.x == before compares two tensors that are never the same one`
			return true
		}
	}
	return false
}

func fixed(x *tensor.Tensor, n int) int {
	for i := range n {
		old := x
		x = x.Square()
		if x == old { // want `x == old compares two tensors that are never the same one`
			return i
		}
	}
	return n
}

// A step that may leave the tensor as it is.
func (s *swarm) drift(by *tensor.Tensor) {
	if by != nil {
		s.v = s.v.Add(by)
	}
}

func (s *swarm) drifts(by *tensor.Tensor) bool {
	before := s.v
	s.drift(by)
	if s.v == before { // want `s.v == before compares two tensors by identity, not by value`
		return false
	}
	return true
}

func clipped(x *tensor.Tensor, n int, clip func(*tensor.Tensor) *tensor.Tensor) bool {
	old := x
	x = clip(x)
	return x == old // want `x == old compares two tensors by identity, not by value`
}

func constant(history []*tensor.Tensor) bool {
	for i := 1; i < len(history); i++ {
		if history[i] != history[i-1] { // want `history\[i\] != history\[i - 1\] compares two tensors by identity`
			return false
		}
	}
	return history[0] == history[len(history)-1] // want `compares two tensors by identity`
}

func converge(a, x *tensor.Tensor, n int) *tensor.Tensor {
	prev := x
	for range n {
		x = a.MatMul(x)
		if x == prev { // want `x == prev compares two tensors that are never the same one`
			break
		}
		prev = x
	}
	return x
}

func late(a, x *tensor.Tensor, n int) *tensor.Tensor {
	prev := x
	for range n {
		if x == prev { // want `x == prev compares two tensors by identity, not by value`
			break
		}
		prev = x
		x = a.MatMul(x)
	}
	return x
}

type at struct {
	x *tensor.Tensor
	n int
}

func known(m map[at]float64, x *tensor.Tensor, n int) float64 {
	k := at{x.Reshape(-1), n}
	if v, ok := m[k]; ok { // want `m\[k\] looks for a key with a tensor that was just made`
		return v
	}
	if v, ok := m[at{x, n}]; ok { // somebody may have put it there
		return v
	}
	m[k] = 1
	return 0
}
