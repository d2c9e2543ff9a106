package sametensor

import "github.com/asyncgen/asyncgen/runtime/tensor"

type swarm struct{ x, v *tensor.Tensor }

func (s *swarm) step() { s.x = s.x.Add(s.v) }

// rests asks whether a step leaves everything where it was.
func (s *swarm) rests() bool {
	before := s.x
	s.step()
	return s.x == before // want `s.x == before compares two tensors by identity, not by value`
}
