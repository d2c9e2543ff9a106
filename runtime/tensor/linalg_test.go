package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Factors multiply to what was factorized, solutions solve, and inverses undo: for matrices of all sizes, none
// included, in batches, as views, on every device.
func TestLinearAlgebra(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		mt := func(x *tensor.Tensor) *tensor.Tensor { // the transposes
			axes := make([]int, x.Rank())
			for i := range axes {
				axes[i] = i
			}
			slices.Reverse(axes[len(axes)-2:])
			return x.Transpose(axes...)
		}
		is := func(what string, got, want *tensor.Tensor) {
			t.Helper()
			limit := 1e-10
			if got.DType() == tensor.Float32 {
				limit = 1e-4
			}
			if !slices.Equal(got.Shape(), want.Shape()) || got.DType() != want.DType() {
				t.Fatalf("%s: %i, want %i", what, got, want)
			}
			if got.Size() > 0 && got.Sub(want).Abs().Max().Item() > limit {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		for _, dt := range []device.DType{tensor.Float32, tensor.Float64} {
			for _, batch := range [][]int{{}, {2}, {0}, {2, 1}} {
				for _, n := range []int{0, 1, 2, 5} {
					what := fmt.Sprintf("%v %v %d", dt, batch, n)
					shape := append(slices.Clone(batch), n, n)
					a := maker(r, on, dt, op.Interval{Lo: -1, Hi: 1}, shape...)().Add(tensor.On(on).As(dt).Eye(n).MulScalar(4))
					eye := tensor.On(on).As(dt).Eye(n).BroadcastTo(shape...)
					b := maker(r, on, dt, op.Interval{Lo: -1, Hi: 1}, n, 3)()
					is("Solve "+what, a.MatMul(a.Solve(b)), b.BroadcastTo(append(slices.Clone(batch), n, 3)...))
					is("Inverse "+what, a.Inverse().MatMul(a), eye)
					s := a.MatMul(mt(a))
					l := s.Cholesky()
					is("Cholesky "+what, l.MatMul(mt(l)), s)
					is("Det "+what, s.Det().Div(a.Det().Square()), tensor.On(on).As(dt).Ones(batch...))
					values, vectors := s.Eigh()
					is("Eigh "+what, s.MatMul(vectors), vectors.Mul(values.Unsqueeze(-2)))
					is("Eigh vectors "+what, mt(vectors).MatMul(vectors), eye)
					for _, m := range []int{0, 1, 3, 7} {
						what := fmt.Sprintf("%s by %d", what, m)
						x := maker(r, on, dt, op.Interval{Lo: -1, Hi: 1}, append(slices.Clone(batch), m, n)...)()
						k := min(m, n)
						one := tensor.On(on).As(dt).Eye(k).BroadcastTo(append(slices.Clone(batch), k, k)...)
						q, r := x.QR()
						is("QR "+what, q.MatMul(r), x)
						is("Q "+what, mt(q).MatMul(q), one)
						u, s, vt := x.SVD()
						is("SVD "+what, u.Mul(s.Unsqueeze(-2)).MatMul(vt), x)
						is("U "+what, mt(u).MatMul(u), one)
						is("V "+what, vt.MatMul(mt(vt)), one)
					}
				}
			}
		}
	})
}

// Transforms are the sums that define them.
func TestFFT(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, n := range []int{1, 2, 3, 8, 15} {
			x := maker(r, on, tensor.Float64, op.Interval{Lo: -1, Hi: 1}, 3, n, 2)()
			data := x.Float64s()
			y := x.FFT()
			for i, got := range y.Float64s() {
				var want complex128
				for j := range n {
					at := 2 * (i/2/n*n + j)
					want += complex(data[at], data[at+1]) * cmplx.Exp(complex(0, -2*math.Pi*float64(i/2%n*j)/float64(n)))
				}
				if w := []float64{real(want), imag(want)}[i%2]; math.Abs(got-w) > 1e-12 {
					t.Errorf("FFT of %d: element %d is %v, want %v", n, i, got, w)
				}
			}
			if !y.IFFT().AllClose(x, 0, 1e-12).Bools()[0] {
				t.Errorf("IFFT of FFT of %v is %v", x, y.IFFT())
			}
			real := x.Slice(-1, 0, 1)
			whole := tensor.Concat(-1, real, tensor.ZerosLike(real)).FFT().Slice(1, 0, n/2+1)
			if !real.Squeeze(-1).RFFT().AllClose(whole, 0, 1e-12).Bools()[0] {
				t.Errorf("RFFT of %v is %v", real, real.Squeeze(-1).RFFT())
			}
		}
		if got := tensor.On(on).Zeros(2, 0, 2).FFT().Shape(); !slices.Equal(got, []int{2, 0, 2}) {
			t.Errorf("FFT of nothing has shape %v", got)
		}
	})
}

// Gradients are those that differences give.
func TestLinearAlgebraGradients(t *testing.T) {
	r := newRand(t)
	weighted := func(y *tensor.Tensor) *tensor.Tensor {
		return y.Mul(tensor.On(device.CPU()).As(tensor.Float64).Arange(1, float64(y.Size())+1, 1).Reshape(y.Shape()...)).Sum()
	}
	regular := func(x *tensor.Tensor) *tensor.Tensor {
		return x.Add(tensor.On(device.CPU()).As(tensor.Float64).Eye(3).MulScalar(4))
	}
	for what, f := range map[string]function{
		"Solve":   func(x ...*tensor.Tensor) *tensor.Tensor { return weighted(regular(x[0]).Solve(x[1])) },
		"Inverse": func(x ...*tensor.Tensor) *tensor.Tensor { return weighted(regular(x[0]).Inverse()) },
		"Det":     func(x ...*tensor.Tensor) *tensor.Tensor { return weighted(regular(x[0]).Det()) },
		"Cholesky": func(x ...*tensor.Tensor) *tensor.Tensor {
			return weighted(regular(x[0].MatMul(x[0].Transpose(0, 2, 1))).Cholesky())
		},
		"FFT":  func(x ...*tensor.Tensor) *tensor.Tensor { return weighted(x[0].Slice(2, 0, 2).FFT()) },
		"IFFT": func(x ...*tensor.Tensor) *tensor.Tensor { return weighted(x[0].Slice(2, 0, 2).IFFT()) },
		"RFFT": func(x ...*tensor.Tensor) *tensor.Tensor { return weighted(x[0].RFFT()) },
	} {
		in := []array{random(r, tensor.Float64, []int{2, 3, 3}, op.Interval{Lo: -1, Hi: 1})}
		if what == "Solve" {
			in = append(in, random(r, tensor.Float64, []int{3, 2}, op.Interval{Lo: -1, Hi: 1}))
		}
		if wrong := wrongGradient(r, device.CPU(), f, in); wrong != "" {
			t.Errorf("%s: %s", what, wrong)
		}
	}
}

// A matrix without a result makes the result fail, and the operations after it are not affected.
func TestLinearAlgebraFailures(t *testing.T) {
	e := engine.New(engine.Options{Workers: 2})
	defer tensor.SetEngine(e)()
	defer e.Close()
	singular, nan := tensor.Ones(2, 2), tensor.Full(math.NaN(), 2, 2)
	_, s, _ := nan.SVD()
	for what, c := range map[string]struct {
		x    *tensor.Tensor
		want error
	}{
		"Solve":           {singular.Solve(singular), op.ErrSingular},
		"Inverse":         {tensor.Zeros(1, 1).Inverse(), op.ErrSingular},
		"Cholesky":        {singular.Neg().Cholesky(), op.ErrNotPositive},
		"Cholesky of NaN": {nan.Cholesky(), op.ErrNotFinite},
		"SVD of NaN":      {s, op.ErrNotFinite},
		"Det of NaN":      {nan.Det(), op.ErrNotFinite},
	} {
		if err := c.x.Wait(); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", what, err, c.want)
		}
	}
	if got := singular.Det().Item(); got != 0 {
		t.Errorf("the determinant of a singular matrix is %v", got)
	}
}

func TestLinearAlgebraMistakes(t *testing.T) {
	x := tensor.Ones(2, 3)
	for what, f := range map[string]func(){
		"Solve of 2×3":        func() { x.Solve(x) },
		"Solve(nil)":          func() { tensor.Eye(2).Solve(nil) },
		"Solve of other rows": func() { tensor.Eye(3).Solve(x) },
		"Solve of types":      func() { tensor.Eye(2).Solve(x.As(tensor.Float64)) },
		"Det of a vector":     func() { x.Row(0).Det() },
		"Eigh of integers":    func() { tensor.Eye(2).As(tensor.Int64).Eigh() },
		"QR of a vector":      func() { x.Row(0).QR() },
		"FFT of reals":        func() { x.FFT() },
		"RFFT of nothing":     func() { tensor.Zeros(0).RFFT() },
	} {
		if mistake(f) == nil {
			t.Errorf("%s is no mistake", what)
		}
	}
}
