package op

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/mat"
)

// Linear algebra and Fourier transforms, which package gonum computes on the host.

// A HostFunc is a function of arrays that the CPU computes, whatever device the operands come from.
type HostFunc struct {
	kernel *device.Kernel
	vjp    func(b Builder, c *Call, i int, g Value) Value // nil: there is no gradient
}

// HostArray is the function Attr.Host of one or two operands. Attr.Shared is how many of their last axes an example
// has; the others are those of a batch, and both operands have the same. Attr.Shape is the shape of the result for an
// example, and Attr.Axes are numbers for the function. Operands are float64, without gaps. It runs on the CPU.
var HostArray = define(&Def{
	Name: "HostArray", Types: 1 << device.Float64, Unlisted: true, Fails: true,
	Run: func(p *Plan) {
		shape := p.In[0].Shape
		batch := shape[:len(shape)-p.Attr.Shared]
		p.Shape, p.DType = slices.Concat(batch, p.Attr.Shape), device.Float64
		k := p.Attr.Host.kernel
		ints := []int{batch.Size()}
		for i := range k.In {
			ints = append(ints, p.In[i].Shape[len(batch):].Size())
		}
		p.Cmd = device.Command{Kernel: k, N: p.Shape.Size(), Args: &device.Args{Ints: append(ints, p.Attr.Axes...)}}
		length := 1
		for _, n := range p.Attr.Axes {
			length = max(length, n)
		}
		p.Cost = int64(p.Cmd.N+batch.Size()) * int64(length)
	},
	Saves: 1<<0 | SavesResult,
	Batch: func(b Builder, s *Batch) Value {
		in := make([]Value, len(s.In))
		for i := range in {
			in[i] = b.Structural(Contiguous, Attr{}, s.full(b, i))
		}
		return b.Structural(s.Def, s.Attr, in...)
	},
})

// HasGradient reports whether results of f can be differentiated.
func (f *HostFunc) HasGradient() bool { return f.vjp != nil }

func newHostFunc(name string, inputs int, call func(dst, x, y []float64, ints []int) error) *HostFunc {
	in := slices.Repeat([]device.DType{device.Float64}, inputs)
	return &HostFunc{kernel: device.NewKernel(name, device.Host, &kernel.HostFunc{Name: name, Call: call}, device.Float64, in...)}
}

// ofMatrix is newHostFunc for a first operand that has to be finite.
func ofMatrix(name string, inputs int, call func(dst, a, b []float64, ints []int) error) *HostFunc {
	return newHostFunc(name, inputs, func(dst, a, b []float64, ints []int) error {
		if slices.ContainsFunc(a, func(v float64) bool { return v-v != 0 }) {
			return ErrNotFinite
		}
		return call(dst, a, b, ints)
	})
}

// The functions. Matrices are row-major.
var (
	// Solve is the solution of A·X = B: n equations with k right sides. The numbers are n and k.
	Solve = ofMatrix("Solve", 2, func(dst, a, b []float64, ints []int) error {
		n, k := ints[0], ints[1]
		if len(dst) == 0 {
			return nil
		}
		var lu mat.LU
		lu.Factorize(mat.NewDense(n, n, a))
		err := lu.SolveTo(mat.NewDense(n, k, dst), false, mat.NewDense(n, k, b))
		var condition mat.Condition
		if errors.As(err, &condition) && math.IsInf(float64(condition), 1) {
			return ErrSingular
		}
		return nil // also if the matrix is close to a singular one
	})
	// Det is the determinant of a matrix. The number is n.
	Det = ofMatrix("Det", 1, func(dst, a, _ []float64, ints []int) error {
		dst[0] = 1
		if n := ints[0]; n > 0 {
			dst[0] = mat.Det(mat.NewDense(n, n, a))
		}
		return nil
	})
	// Cholesky is the lower triangular L with L·Lᵀ = A, of which it reads the lower triangle. The number is n.
	Cholesky = ofMatrix("Cholesky", 1, func(dst, a, _ []float64, ints []int) error {
		n := ints[0]
		if n == 0 {
			return nil
		}
		var c mat.Cholesky
		if !c.Factorize(symmetric(n, a)) {
			return ErrNotPositive
		}
		var l mat.TriDense
		c.LTo(&l)
		mat.NewDense(n, n, dst).Copy(&l)
		return nil
	})
	// QR is Q, m×k, and then R, k×n, with k = min(m, n) and Q·R = A. The numbers are m and n.
	QR = ofMatrix("QR", 1, func(dst, a, _ []float64, ints []int) error {
		m, n := ints[0], ints[1]
		k := min(m, n)
		if k == 0 {
			return nil
		}
		whole := mat.NewDense(m, n, a)
		var qr mat.QR
		qr.Factorize(whole.Slice(0, m, 0, k))
		var q mat.Dense
		qr.QTo(&q)
		thin := q.Slice(0, m, 0, k)
		mat.NewDense(m, k, dst[:m*k]).Copy(thin)
		r := mat.NewDense(k, n, dst[m*k:])
		r.Mul(thin.T(), whole)
		for i := range k {
			clear(r.RawRowView(i)[:i])
		}
		return nil
	})
	// SVD is U, m×k, then the k singular values, and then Vᵀ, k×n, with k = min(m, n). The numbers are m and n.
	SVD = ofMatrix("SVD", 1, func(dst, a, _ []float64, ints []int) error {
		m, n := ints[0], ints[1]
		k := min(m, n)
		if k == 0 {
			return nil
		}
		var svd mat.SVD
		if !svd.Factorize(mat.NewDense(m, n, a), mat.SVDThin) {
			return ErrNoConvergence
		}
		var u, v mat.Dense
		svd.UTo(&u)
		svd.VTo(&v)
		mat.NewDense(m, k, dst[:m*k]).Copy(&u)
		svd.Values(dst[m*k : m*k+k])
		mat.NewDense(k, n, dst[m*k+k:]).Copy(v.T())
		return nil
	})
	// Eigh is the eigenvalues of a symmetric matrix, in ascending order, and then a matrix with the eigenvectors in its
	// columns. It reads the lower triangle. The number is n.
	Eigh = ofMatrix("Eigh", 1, func(dst, a, _ []float64, ints []int) error {
		n := ints[0]
		if n == 0 {
			return nil
		}
		var e mat.EigenSym
		if !e.Factorize(symmetric(n, a), true) {
			return ErrNoConvergence
		}
		e.Values(dst[:n])
		var vectors mat.Dense
		e.VectorsTo(&vectors)
		mat.NewDense(n, n, dst[n:]).Copy(&vectors)
		return nil
	})
	// FFT is the discrete Fourier transform of n complex numbers, each a pair. The number is n.
	FFT = newHostFunc("FFT", 1, func(dst, x, _ []float64, ints []int) error { return transform(dst, x, ints[0], false) })
	// InverseFFT is the inverse of FFT. The number is n.
	InverseFFT = newHostFunc("IFFT", 1, func(dst, x, _ []float64, ints []int) error { return transform(dst, x, ints[0], true) })
)

// How these functions fail.
var (
	ErrSingular      = errors.New("the matrix is singular")
	ErrNotPositive   = errors.New("the matrix is not positive definite")
	ErrNotFinite     = errors.New("the matrix has elements that are infinite or NaN")
	ErrNoConvergence = errors.New("the factorization did not converge")
)

// symmetric returns the symmetric matrix with the lower triangle of a.
func symmetric(n int, a []float64) *mat.SymDense {
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, a[i*n+j])
		}
	}
	return s
}

func transform(dst, x []float64, n int, isInverse bool) error {
	if n == 0 {
		return nil
	}
	in := make([]complex128, n)
	for i := range in {
		in[i] = complex(x[2*i], x[2*i+1])
	}
	f := fourier.NewCmplxFFT(n)
	out, scale := in, 1.0
	if isInverse {
		out, scale = f.Sequence(nil, in), 1/float64(n)
	} else {
		out = f.Coefficients(nil, in)
	}
	for i, v := range out {
		dst[2*i], dst[2*i+1] = real(v)*scale, imag(v)*scale
	}
	return nil
}

func init() { // not in the literals: the gradients use the operations
	HostArray.VJP = func(b Builder, c *Call, i int, g Value) Value {
		if c.Attr.Host.vjp == nil {
			panic(fmt.Sprintf("op: %s has no gradient", c.Attr.Host.kernel.Name))
		}
		return c.Attr.Host.vjp(b, c, i, g)
	}
	Solve.vjp = func(b Builder, c *Call, i int, g Value) Value { // gB = A⁻ᵀ·g, gA = -gB·Xᵀ
		gb := solve(b, c.Attr.Axes, turned(b, c.In[0]), g)
		if i == 1 {
			return gb
		}
		return b.Elementwise(Neg, [2]float64{}, b.Structural(MatMul, Attr{}, gb, turned(b, c.Out)))
	}
	Det.vjp = func(b Builder, c *Call, _ int, g Value) Value { // g·det·A⁻ᵀ
		n := c.Attr.Axes[0]
		inverse := solve(b, []int{n, n}, turned(b, c.In[0]), eye(b, c.In[0]))
		factor := b.Elementwise(Mul, [2]float64{}, g, c.Out)
		factor = b.Structural(Reshape, Attr{Shape: append(slices.Clone(factor.Shape()), 1, 1)}, factor)
		return b.Elementwise(Mul, [2]float64{}, factor, inverse)
	}
	Cholesky.vjp = func(b Builder, c *Call, _ int, g Value) Value {
		// L⁻ᵀ·Φ(Lᵀ·g)·L⁻¹, where Φ keeps the lower triangle and halves the diagonal, made symmetric (Murray 2016).
		n := c.Attr.Axes[0]
		lt := turned(b, c.Out)
		product := b.Structural(MatMul, Attr{}, lt, g)
		half := b.Elementwise(MulScalar, [2]float64{0.5}, eye(b, c.Out))
		phi := b.Elementwise(Mul, [2]float64{}, product, b.Elementwise(Sub, [2]float64{}, lower(b, c.Out), half))
		left := solve(b, []int{n, n}, lt, phi)
		s := turned(b, solve(b, []int{n, n}, lt, turned(b, left)))
		both := b.Elementwise(Add, [2]float64{}, s, turned(b, s))
		return b.Elementwise(MulScalar, [2]float64{0.5}, both)
	}
	FFT.vjp = func(b Builder, c *Call, _ int, g Value) Value {
		return b.Elementwise(MulScalar, [2]float64{float64(c.Attr.Axes[0])}, hostArray(b, InverseFFT, c.Attr, g))
	}
	InverseFFT.vjp = func(b Builder, c *Call, _ int, g Value) Value {
		return b.Elementwise(MulScalar, [2]float64{1 / float64(c.Attr.Axes[0])}, hostArray(b, FFT, c.Attr, g))
	}
}

// hostArray is f, with attributes like those of a, of operands that may have gaps.
func hostArray(b Builder, f *HostFunc, a Attr, x ...Value) Value {
	a.Host = f
	for i := range x {
		x[i] = b.Structural(Contiguous, Attr{}, x[i])
	}
	return b.Structural(HostArray, a, x...)
}

func solve(b Builder, ints []int, a, y Value) Value {
	return hostArray(b, Solve, Attr{Axes: ints, Shared: 2, Shape: device.Shape(ints)}, a, y)
}

// turned returns the transposes of the matrices x.
func turned(b Builder, x Value) Value {
	axes := make([]int, len(x.Shape()))
	for i := range axes {
		axes[i] = i
	}
	last := len(axes) - 1
	axes[last-1], axes[last] = last, last-1
	return b.Structural(Transpose, Attr{Axes: axes}, x)
}

// places returns the row and the column of each element of the matrices x.
func places(b Builder, x Value) (row, column Value) {
	ones := b.Elementwise(AddScalar, [2]float64{1}, b.Zeros(x))
	last := len(x.Shape()) - 1
	return b.Structural(CumSum, Attr{Axis: last - 1}, ones), b.Structural(CumSum, Attr{Axis: last}, ones)
}

// eye returns identity matrices like x.
func eye(b Builder, x Value) Value {
	row, column := places(b, x)
	return b.Structural(As, Attr{DType: x.DType()}, b.Elementwise(Eq, [2]float64{}, row, column))
}

// lower returns matrices like x with ones on and below the diagonal.
func lower(b Builder, x Value) Value {
	row, column := places(b, x)
	return b.Structural(As, Attr{DType: x.DType()}, b.Elementwise(Ge, [2]float64{}, row, column))
}
