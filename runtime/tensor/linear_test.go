package tensor_test

import (
	"fmt"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A plainBackend can't do anything else in the command of a product.
type plainBackend struct{ device.Backend }

func (b plainBackend) Caps() device.Caps {
	c := b.Backend.Caps()
	c.Epilogues = false
	return c
}

func (b plainBackend) Submit(cmds []device.Command) (device.Ticket, error) {
	for i := range cmds {
		if k := cmds[i].Kernel; k.Code == device.MatMul && k.Body != nil {
			return 0, fmt.Errorf("kernel %s: %w", k.Name, device.ErrUnsupported)
		}
	}
	return b.Backend.Submit(cmds)
}

// Linear, LinearReLU and their gradients have the bits of the operations that their documentation names, even on
// devices without such commands. TestVMapOperations compares their rows, TestStructuralGradients their gradients
// with differences.
func TestLinear(t *testing.T) {
	test := func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, shapes := range [][3][]int{{{5, 7}, {7, 33}, {33}}, {{4}, {4, 3}, {3}}, {{2, 3, 70}, {70, 2}, {2}}, {{3, 2}, {2, 1}, {1}}, {{2, 0}, {0, 3}, {3}}, {{0, 2}, {2, 3}, {3}}} {
			for _, dt := range []device.DType{tensor.Float32, tensor.Float64} {
				make := func(i int) *tensor.Tensor {
					return random(r, dt, shapes[i], op.Interval{Lo: -1, Hi: 1}).tensor(on).Track()
				}
				x, w, b := make(0), make(1), make(2)
				if r.IntN(2) == 0 && len(shapes[0]) == 2 {
					x = random(r, dt, []int{shapes[0][1], shapes[0][0]}, op.Interval{Lo: -1, Hi: 1}).tensor(on).Track().T()
				}
				if r.IntN(2) == 0 {
					b = random(r, dt, []int{shapes[2][0], 2}, op.Interval{Lo: -1, Hi: 1}).tensor(on).Track().T().Row(1)
				}
				sum := x.MatMul(w).Add(b)
				for name, both := range map[string][2]*tensor.Tensor{
					"Linear":     {x.Linear(w, b), sum},
					"LinearReLU": {x.LinearReLU(w, b), sum.ReLU()},
				} {
					name = fmt.Sprintf("%s of %v%v", name, dt, shapes)
					sameBits(t, name, both[0], both[1])
					weights := random(r, dt, both[0].Shape(), op.Interval{Lo: -1, Hi: 1}).tensor(on)
					got := tensor.Grad(both[0].Mul(weights).Sum(), x, w, b)
					for i, want := range tensor.Grad(both[1].Mul(weights).Sum(), x, w, b) {
						sameBits(t, fmt.Sprintf("%s, gradient %d", name, i), got[i], want)
					}
				}
			}
		}
	}
	everywhere(t, test)
	t.Run("without epilogues", func(t *testing.T) {
		test(t, device.Wrap("plain", device.KindCPU, plainBackend{cpu.New()}))
	})
}

func TestMistakesOfLinear(t *testing.T) {
	x, w, b := tensor.Zeros(2, 3), tensor.Zeros(3, 4), tensor.Zeros(4)
	for name, test := range map[string]struct {
		f    func()
		want string
	}{
		"inner lengths": {func() { x.Linear(w.T(), b) }, op.MistakeMatMul},
		"no matrix":     {func() { x.Linear(tensor.Zeros(3), b) }, op.MistakeRank},
		"no rows":       {func() { tensor.Zeros().Linear(w, b) }, op.MistakeRank},
		"length":        {func() { x.LinearReLU(w, tensor.Zeros(1)) }, op.MistakeBias},
		"no vector":     {func() { x.LinearReLU(w, tensor.Zeros(1, 4)) }, op.MistakeBias},
		"nil":           {func() { x.Linear(w, nil) }, op.MistakeNil},
		"types":         {func() { x.Linear(w, b.As(tensor.Float64)) }, op.MistakeDTypes},
	} {
		if m := mistake(test.f); m == nil || len(m.Text) < len(test.want) || m.Text[:len(test.want)] != test.want {
			t.Errorf("%s: %v, want %s", name, m, test.want)
		}
	}
}
