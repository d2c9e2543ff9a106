package severity

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What is outside of the program needs each value at once: nothing is a warning.

type camera interface{ Frame() ([]float32, error) }

type radar interface {
	Scan() []float32
	Point(at float64)
}

type person interface{ Ask(hint int) int }

type opponent interface {
	Observe() []float32
	Play(move int) bool
}

func watch(net nn.Module, c camera, label func(class int64)) error {
	for {
		f, err := c.Frame()
		if err != nil {
			return err
		}
		label(net.Forward(tensor.From(f)).ArgMax(0).ItemInt())
	}
}

func follow(net nn.Module, r radar, n int) {
	for range n {
		z := r.Scan()
		r.Point(net.Forward(tensor.From(z)).Item())
	}
}

func against(net nn.Module, g opponent, p person) {
	for over := false; !over; {
		hint := net.Forward(tensor.From(g.Observe())).ArgMax(0).ItemInt()
		over = g.Play(p.Ask(int(hint)))
	}
}

func animate(net nn.Module, x *tensor.Tensor, draw func([]float32) bool) {
	for draw(x.Float32s()) {
		x = net.Forward(x).Detach()
	}
}

type memo struct{ keys, values []*tensor.Tensor }

func (m *memo) get(key *tensor.Tensor) *tensor.Tensor {
	for i, k := range m.keys {
		if k == key {
			return m.values[i]
		}
	}
	return nil
}

func find(named map[string]*tensor.Tensor, x *tensor.Tensor) (string, bool) {
	for name, v := range named {
		if v == x { // want `AT033`
			return name, true
		}
	}
	return "", false
}
