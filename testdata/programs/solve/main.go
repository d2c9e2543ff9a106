// Command solve solves systems of linear equations by the method of conjugate
// gradients, which ends as soon as the residual is small. Each step reads two
// numbers, divides them on the host and goes on with the quotients.
//
// Some of the systems need many steps, most of them few.
//
// Results go to standard output, times to standard error.
//
//	go run ./testdata/programs/solve [-small] [-easy]
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	small := flag.Bool("small", false, "few systems")
	easy := flag.Bool("easy", false, "only systems that are solved in a few steps")
	flag.Parse()
	hard, many := 20, 60
	if *small {
		hard, many = 2, 10
	}
	if *easy {
		hard = 0
	}

	tensor.Seed(1)
	if hard > 0 {
		solveAll("springs", systems(hard, func() *tensor.Tensor { return springs(64) }))
	}
	solveAll("nearly diagonal", systems(many, func() *tensor.Tensor { return nearlyDiagonal(48) }))
}

// A system is one of linear equations: a·x = b.
type system struct{ a, b *tensor.Tensor }

// systems makes n systems with random right sides.
func systems(n int, matrix func() *tensor.Tensor) []system {
	all := make([]system, n)
	for i := range all {
		a := matrix()
		all[i] = system{a, tensor.Randn(a.Dim(0)).As(tensor.Float64)}
	}
	return all
}

// solveAll solves the systems, and prints how that went.
func solveAll(name string, systems []system) {
	start := time.Now()
	steps, worst := 0, 0.0
	for _, s := range systems {
		x, n := solve(s.a, s.b, 1e-8, 10*s.b.Size())
		steps += n
		worst = max(worst, s.a.MatMul(x).Sub(s.b).Norm().Item())
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, time.Since(start).Round(time.Microsecond))
	fmt.Printf("%s: %d systems, %.1f steps each, residuals below 1e-7: %t\n", name, len(systems), float64(steps)/float64(len(systems)), worst < 1e-7)
}

// solve returns x with a·x = b, for a symmetric and positive definite a, and the
// number of steps that it took to get the norm of the residual below tol, or
// what it has after limit steps.
func solve(a, b *tensor.Tensor, tol float64, limit int) (*tensor.Tensor, int) {
	x := b.MulScalar(0)
	r := b
	p := r
	rs := r.Dot(r).Item()
	for k := range limit {
		ap := a.MatMul(p)
		alpha := rs / p.Dot(ap).Item()
		x = x.Add(p.MulScalar(alpha))
		r = r.Sub(ap.MulScalar(alpha))
		next := r.Dot(r).Item()
		if math.Sqrt(next) < tol {
			return x, k + 1
		}
		p = r.Add(p.MulScalar(next / rs))
		rs = next
	}
	return x, limit
}

// springs is the stiffness of a chain of n masses, with springs of random
// strength between them and to the walls at both ends.
func springs(n int) *tensor.Tensor {
	k := tensor.Uniform(0.5, 2, n+1).As(tensor.Float64)
	left, right := k.Slice(0, 0, n), k.Slice(0, 1, n+1)
	eye := tensor.Eye(n + 1).As(tensor.Float64)
	above := eye.Slice(0, 1, n+1).Slice(1, 0, n).Mul(left) // row i has something in column i+1
	return diagonal(left.Add(right)).Sub(above).Sub(above.T())
}

// nearlyDiagonal is a matrix in which little is off the diagonal.
func nearlyDiagonal(n int) *tensor.Tensor {
	noise := tensor.Uniform(-0.01, 0.01, n, n).As(tensor.Float64)
	d := tensor.Uniform(1, 1.5, n).As(tensor.Float64)
	return diagonal(d).Add(noise).Add(noise.T())
}

// diagonal is the matrix with d on its diagonal.
func diagonal(d *tensor.Tensor) *tensor.Tensor {
	return tensor.Eye(d.Dim(0)).As(tensor.Float64).Mul(d)
}
