package tensor_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Either gives the variables what one side alone computes, whether the condition is known or not. That also holds
// if sides panic, give different shapes, or are tracked.
func TestEither(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		x := tensor.FromOn(on, []float64{1, math.Copysign(0, -1), math.NaN(), math.Inf(-1)})
		sides := map[string][2]func(*tensor.Tensor) *tensor.Tensor{
			"numbers": {func(x *tensor.Tensor) *tensor.Tensor { return x.MulScalar(2) }, func(x *tensor.Tensor) *tensor.Tensor { return x.Neg() }},
			"nothing": {func(x *tensor.Tensor) *tensor.Tensor { return x }, func(x *tensor.Tensor) *tensor.Tensor { return x.Log() }},
			"shapes":  {func(x *tensor.Tensor) *tensor.Tensor { return x.Sum() }, func(x *tensor.Tensor) *tensor.Tensor { return x }},
			"types":   {func(x *tensor.Tensor) *tensor.Tensor { return x.As(tensor.Float32) }, func(x *tensor.Tensor) *tensor.Tensor { return x }},
			"integers": {func(x *tensor.Tensor) *tensor.Tensor { return x.Ne(x).As(tensor.Int64) }, func(x *tensor.Tensor) *tensor.Tensor {
				return x.Eq(x).As(tensor.Int64)
			}},
			"a mistake": {func(x *tensor.Tensor) *tensor.Tensor { return x.Add(x.Slice(0, 0, 2)) }, func(x *tensor.Tensor) *tensor.Tensor { return x }},
			"nil":       {func(x *tensor.Tensor) *tensor.Tensor { return nil }, func(x *tensor.Tensor) *tensor.Tensor { return x }},
			"tracked":   {func(x *tensor.Tensor) *tensor.Tensor { return x.Track() }, func(x *tensor.Tensor) *tensor.Tensor { return x }},
		}
		for name, side := range sides {
			for which, truth := range []bool{true, false} {
				for origin, c := range map[string]tensor.Cond{
					"known":   tensor.Const(1).Gt(tensor.Const(0)),
					"unknown": tensor.FromOn(on, []float64{1, 2}).Sum().F64().Gt(tensor.Const(0)),
				} {
					if !truth {
						c = c.Not()
					}
					want, wantPanic := attempted(func() *tensor.Tensor { return side[which](x) })
					y, n := x, tensor.Const(3)
					got, gotPanic := attempted(func() *tensor.Tensor {
						tensor.Either(c, func() { y, n = side[0](y), n.Add(tensor.Const(1)) }, func() { y = side[1](y) }, &y, &n)
						return y
					})
					if got != want || gotPanic != wantPanic {
						t.Errorf("%s, %v, condition %s: %s%s, want %s%s", name, truth, origin, got, gotPanic, want, wantPanic)
					}
					if wantPanic == "" && n.Item() != 3+float64(1-which) {
						t.Errorf("%s, %v, condition %s: the number is %v", name, truth, origin, n)
					}
				}
			}
		}
	})
}

// attempted returns the result of f as text, or what f panics with.
func attempted(f func() *tensor.Tensor) (text, panicked string) {
	defer func() {
		if v := recover(); v != nil {
			panicked = fmt.Sprint(v)
		}
	}()
	x := f()
	if x == nil {
		return "nil", ""
	}
	return fmt.Sprint(x.Shape(), x.DType(), bitsOf(x)), ""
}

// If the condition has failed, Either does nothing and does not panic.
func TestEitherFails(t *testing.T) {
	e := engine.New(engine.Options{Workers: 2})
	defer e.Close() // returns the failure once more
	defer tensor.SetEngine(e)()
	c := tensor.Ones(2).Take(0, tensor.From([]int64{5})).Sum().F64().Gt(tensor.Const(0))
	x := tensor.Ones(2)
	tensor.Either(c, func() { x = x.Add(x) }, nil, &x) // c may not be known yet
	if x.Wait() == nil && x.Float32s()[0] != 1 {
		t.Errorf("without a condition, %v", x)
	}
	y := tensor.Ones(2)
	tensor.Either(c, func() { y = y.Add(y) }, nil, &y)
	if y.Wait() == nil && y.Float32s()[0] != 1 {
		t.Errorf("with a condition that has failed, %v", y)
	}
}
