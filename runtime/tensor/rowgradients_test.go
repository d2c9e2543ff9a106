package tensor_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// rowGradients has functions of rows. Their gradients have the bits of grad, which is one operation after the
// other.
var rowGradients = map[string]struct {
	f    func(x *tensor.Tensor, axis int) *tensor.Tensor
	grad func(x, y, g *tensor.Tensor, axis int) *tensor.Tensor // y is f(x)
}{
	"Softmax": {(*tensor.Tensor).Softmax, func(x, y, g *tensor.Tensor, axis int) *tensor.Tensor {
		product := g.Mul(y)
		sum := product.SumKeep(axis)
		share := y.Mul(sum)
		defer tensor.Dead(product, sum, share)
		return product.Sub(share)
	}},
	"LogSoftmax": {(*tensor.Tensor).LogSoftmax, func(x, y, g *tensor.Tensor, axis int) *tensor.Tensor {
		sum, power := g.SumKeep(axis), y.Exp()
		share := power.Mul(sum)
		defer tensor.Dead(sum, power, share)
		return g.Sub(share)
	}},
	"LayerNorm": {func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.LayerNorm(axis, 0.25) }, func(x, y, g *tensor.Tensor, axis int) *tensor.Tensor {
		mean := x.MeanKeep(axis)
		x = x.Sub(mean)
		defer tensor.Dead(mean, x)
		gradient := normGradient(x, g, axis)
		defer tensor.Dead(gradient)
		square := x.Square()
		variance := square.MeanKeep(axis)
		least, deviation := gradient.MeanKeep(axis), variance.AddScalar(0.25).Sqrt()
		less := gradient.Sub(least)
		defer tensor.Dead(square, variance, least, deviation, less)
		return less.Div(deviation)
	}},
	"RMSNorm": {func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.RMSNorm(axis, 0.25) }, func(x, y, g *tensor.Tensor, axis int) *tensor.Tensor {
		return normGradient(x, g, axis).Div(x.Square().MeanKeep(axis).AddScalar(0.25).Sqrt())
	}},
}

// normGradient returns g less its share in the direction of y, which is x divided by its deviation.
func normGradient(x, g *tensor.Tensor, axis int) *tensor.Tensor {
	square := x.Square()
	variance := square.MeanKeep(axis)
	deviation := variance.AddScalar(0.25).Sqrt()
	y := x.Div(deviation)
	product := g.Mul(y)
	mean := product.MeanKeep(axis)
	share := y.Mul(mean)
	defer tensor.Dead(square, variance, deviation, y, product, mean, share)
	return g.Sub(share)
}

func TestRowGradientsHaveTheBitsOfTheirSteps(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	for name, r := range rowGradients {
		for _, shape := range [][]int{{5}, {0, 3}, {3, 1}, {7, 600}, {4, 5, 6}} {
			for axis := range shape {
				for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64} {
					x, g := randomOperand(rnd, dt, shape, false, false), randomOperand(rnd, dt, shape, false, rnd.IntN(4) == 0)
					tracked := x.Track()
					got := tensor.Grad(r.f(tracked, axis).Mul(g).Sum(), tracked)[0]
					sameElements(t, fmt.Sprintf("seed %d: %s of %v%v along %d", seed, name, dt, shape, axis), got, r.grad(x, r.f(x, axis), g, axis))
				}
			}
		}
	}
}

// BenchmarkRowGradients compares the gradients with their separate operations, in turns in one process.
func BenchmarkRowGradients(b *testing.B) {
	for name, r := range rowGradients {
		for _, shape := range [][]int{{64, 64}, {1024, 1024}} {
			b.Run(fmt.Sprint(name, shape), func(b *testing.B) {
				x, g := tensor.Randn(shape...), tensor.Randn(shape...)
				tracked := x.Track()
				y := r.f(tracked, 1)
				loss := y.Mul(g).Sum()
				plain := y.Detach()
				got, want := 0.0, 0.0
				for b.Loop() {
					for _, side := range []struct {
						best *float64
						f    func() *tensor.Tensor
					}{
						{&got, func() *tensor.Tensor { return tensor.Grad(loss, tracked)[0] }},
						{&want, func() *tensor.Tensor {
							product := g.MulScalar(1) // as the gradient of the loss
							defer tensor.Dead(product)
							return r.grad(x, plain, product, 1)
						}},
					} {
						begin := time.Now()
						result := side.f()
						result.Wait()
						if s := time.Since(begin).Seconds(); *side.best == 0 || s < *side.best {
							*side.best = s
						}
						tensor.Dead(result)
					}
				}
				b.ReportMetric(got*1e6, "µs/gradient")
				b.ReportMetric(got/want, "x")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// logSumExp is LogSumExp in separate operations.
func logSumExp(x *tensor.Tensor, axis int) *tensor.Tensor {
	greatest := x.Detach().MaxKeep(axis)
	shifted := x.Sub(greatest)
	powers := shifted.Exp()
	sums := powers.Sum(axis)
	logs, flat := sums.Log(), greatest.Reshape(sums.Shape()...)
	defer tensor.Dead(greatest, shifted, powers, sums, logs, flat)
	return logs.Add(flat)
}

func TestLogSumExpHasTheBitsOfItsSteps(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	for _, shape := range [][]int{{5}, {3, 1}, {7, 600}, {4, 5, 6}} {
		for axis := range shape {
			for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64} {
				what := fmt.Sprintf("seed %d: of %v%v along %d", seed, dt, shape, axis)
				x := randomOperand(rnd, dt, shape, false, false).Track()
				got, want := x.LogSumExp(axis), logSumExp(x, axis)
				sameElements(t, what, got, want)
				sameElements(t, what+" without gradients", x.Detach().LogSumExp(axis), want)
				g := randomOperand(rnd, dt, got.Shape(), false, false)
				sameElements(t, what+": gradient", tensor.Grad(got.Mul(g).Sum(), x)[0], tensor.Grad(want.Mul(g).Sum(), x)[0])
			}
		}
	}
}

// BenchmarkLogSumExp compares LogSumExp with its separate operations, in turns in one process.
func BenchmarkLogSumExp(b *testing.B) {
	for _, n := range []int{64, 1024} {
		b.Run(fmt.Sprint(n, " rows of ", n), func(b *testing.B) {
			x := tensor.Randn(n, n)
			var best [2]float64
			for b.Loop() {
				for i, f := range []func(*tensor.Tensor, int) *tensor.Tensor{func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.LogSumExp(axis) }, logSumExp} {
					begin := time.Now()
					y := f(x, 1)
					y.Wait()
					if s := time.Since(begin).Seconds(); best[i] == 0 || s < best[i] {
						best[i] = s
					}
					tensor.Dead(y)
				}
			}
			b.ReportMetric(best[0]*1e6, "µs")
			b.ReportMetric(best[0]/best[1], "x")
			b.ReportMetric(0, "ns/op")
		})
	}
}
