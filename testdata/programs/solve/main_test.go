package main

import (
	"math"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/tensor"
	"gonum.org/v1/gonum/mat"
)

// TestSolve holds solutions against those by Cholesky's factors, and steps
// against the method on gonum's vectors.
func TestSolve(t *testing.T) {
	tensor.Seed(3)
	for _, c := range []struct {
		name string
		a    *tensor.Tensor
	}{
		{"springs", springs(24)}, {"one mass", springs(1)}, {"nearly diagonal", nearlyDiagonal(32)}, {"identity", tensor.Eye(5).As(tensor.Float64)},
	} {
		name, a := c.name, c.a
		b := tensor.Randn(a.Dim(0)).As(tensor.Float64)
		x, steps := solve(a, b, 1e-10, 1000)
		got := mat.NewVecDense(a.Dim(0), x.Float64s())
		right := mat.NewVecDense(a.Dim(0), b.Float64s())

		dense := a.Matrix()
		var chol mat.Cholesky
		if !chol.Factorize(symmetric(t, dense)) {
			t.Fatalf("%s: not positive definite", name)
		}
		want := mat.NewVecDense(a.Dim(0), nil)
		if err := chol.SolveVecTo(want, right); err != nil {
			t.Fatal(err)
		}
		if !mat.EqualApprox(got, want, 1e-8) {
			t.Errorf("%s: got\n%v\nwant\n%v", name, mat.Formatted(got.T()), mat.Formatted(want.T()))
		}
		// Sums of another order differ in their last bits, and may need a step more or less.
		if n := gradients(dense, right, 1e-10); steps < n-1 || steps > n+1 {
			t.Errorf("%s: %d steps, want about %d", name, steps, n)
		}
	}
}

// TestLimit: what is not solved after so many steps is as good as it is then.
func TestLimit(t *testing.T) {
	tensor.Seed(3)
	a := springs(24)
	b := tensor.Randn(24).As(tensor.Float64)
	before := b.Norm().Item()
	x, steps := solve(a, b, 1e-10, 5)
	if off := a.MatMul(x).Sub(b).Norm().Item(); steps != 5 || off >= before || off < 1e-10 {
		t.Errorf("%d steps, residual %g of %g", steps, off, before)
	}
	if x, steps := solve(a, b, 1e-10, 0); steps != 0 || x.Norm().Item() != 0 {
		t.Errorf("%d steps, %v", steps, x)
	}
}

func symmetric(t *testing.T, a *mat.Dense) *mat.SymDense {
	n, _ := a.Dims()
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range n {
			if a.At(i, j) != a.At(j, i) {
				t.Fatalf("not symmetric at %d, %d", i, j)
			}
			s.SetSym(i, j, a.At(i, j))
		}
	}
	return s
}

// gradients returns how many steps the method takes.
func gradients(a mat.Matrix, b *mat.VecDense, tol float64) int {
	x, r, p, ap := mat.NewVecDense(b.Len(), nil), mat.VecDenseCopyOf(b), mat.VecDenseCopyOf(b), mat.NewVecDense(b.Len(), nil)
	rs := mat.Dot(r, r)
	for step := 1; ; step++ {
		ap.MulVec(a, p)
		alpha := rs / mat.Dot(p, ap)
		x.AddScaledVec(x, alpha, p)
		r.AddScaledVec(r, -alpha, ap)
		next := mat.Dot(r, r)
		if math.Sqrt(next) < tol {
			return step
		}
		p.AddScaledVec(r, next/rs, p)
		rs = next
	}
}
