package severity

import "github.com/asyncgen/asyncgen/runtime/tensor"

type swarm struct{ x, v *tensor.Tensor }

func (s *swarm) step() { s.x = s.x.Add(s.v) }

// rests asks whether a step leaves everything where it was.
func (s *swarm) rests() bool {
	before := s.x
	s.step()
	return s.x == before // want `s.x == before compares two tensors that are never the same one`
}

func (s *swarm) sharesHandle() bool {
	before := s.x
	s.step()
	return s.x == before
}

// What takes one pass over memory of the device is often clearest where it is. A product of matrices takes more.
func bounded(xs []*tensor.Tensor, lo *tensor.Tensor) (ys []*tensor.Tensor) {
	for _, x := range xs {
		y := x.Add(lo.SubScalar(0.1))
		y = y.Add(lo.Add(lo)).Add(lo.T().MatMul(lo)) // want `lo.T\(\).MatMul\(lo\) makes the same tensor`
		ys = append(ys, y)
	}
	return ys
}

// A microphone, or whatever it is, gives samples at its own pace.
type microphone interface {
	Read(samples []float32) (int, error)
}

func listen(m microphone, w *tensor.Tensor, hear func(float64)) error {
	buf := make([]float32, 512)
	for {
		if _, err := m.Read(buf); err != nil {
			return err
		}
		hear(tensor.From(buf).Mul(w).Sum().Item())
	}
}
