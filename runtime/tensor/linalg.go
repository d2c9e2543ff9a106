package tensor

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Linear algebra and Fourier transforms. They are computed in float64 by package gonum, on the CPU: operands of other
// devices are copied there, and the result back, as by To. All of this is enqueued; nothing waits except where such a
// copy makes it wait, see To. If there is no result for some matrix, the result of the batch fails; the error is about
// the first such matrix.
//
// Matrices are the last two axes of a tensor; the others are those of a batch.

// Solve returns X with t·X = y: t holds square matrices, and y matrices with as many rows, one right side in each
// column. Batch axes are broadcast. If a matrix is singular, the result fails.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) Solve(y *Tensor) *Tensor {
	if y == nil {
		wrong("Solve", op.MistakeNil, t)
	}
	n := t.square("Solve")
	y.floats("Solve")
	y.matrix("Solve")
	rank := len(y.shape)
	if t.dtype != y.dtype {
		wrong("Solve", op.MistakeDTypes, t, y)
	}
	if y.shape[rank-2] != n {
		wrong("Solve", op.MistakeMatMul, t, y)
	}
	if _, same := device.Join(t.storage.Device(), y.storage.Device()); !same {
		wrong("Solve", op.MistakeDevices, t, y)
	}
	batch, ok := op.Broadcast(t.shape[:len(t.shape)-2], y.shape[:rank-2])
	if !ok {
		wrong("Solve", op.MistakeBroadcast, t, y)
	}
	k := y.shape[rank-1]
	a := structural(op.BroadcastTo, op.Attr{Shape: append(slices.Clone(batch), n, n)}, operands{t}, true)
	b := structural(op.BroadcastTo, op.Attr{Shape: append(slices.Clone(batch), n, k)}, operands{y}, true)
	defer letGo(a, b)
	return hostArray(op.Solve, 2, []int{n, k}, device.Shape{n, k}, a, b)
}

// Inverse returns the inverses of square matrices. If one is singular, the result fails.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) Inverse() *Tensor {
	n := t.square("Inverse")
	eye := like(t).Eye(n)
	defer eye.letGo()
	return t.Solve(eye)
}

// Det returns the determinants of square matrices. The gradient needs the inverse, so it fails where a matrix is
// singular.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) Det() *Tensor {
	n := t.square("Det")
	return hostArray(op.Det, 2, []int{n}, device.Shape{}, t)
}

// Cholesky returns the lower triangular matrix L with L·Lᵀ = A for each symmetric matrix A of t. It
// reads the lower triangle of A. If a matrix is not positive definite, the result fails. The gradient
// is symmetric.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) Cholesky() *Tensor {
	n := t.square("Cholesky")
	return hostArray(op.Cholesky, 2, []int{n}, device.Shape{n, n}, t)
}

// QR returns, for each m×n matrix A of t, Q with k = min(m, n) orthonormal columns, and an upper triangular R with
// Q·R = A. They have no gradient.
//
//asyncgen:api op
//go:noinline
func (t *Tensor) QR() (q, r *Tensor) {
	t.floats("QR")
	t.matrix("QR")
	m, n := t.shape[len(t.shape)-2], t.shape[len(t.shape)-1]
	k := min(m, n)
	parts := t.packed(op.QR, []int{m, n}, device.Shape{m, k}, device.Shape{k, n})
	return parts[0], parts[1]
}

// SVD returns, for each m×n matrix A of t, U with k = min(m, n) orthonormal columns, the k singular values s in
// descending order, and Vᵀ with k orthonormal rows, so that A = U·diag(s)·Vᵀ. They have no gradient.
//
//asyncgen:api op
//go:noinline
func (t *Tensor) SVD() (u, s, vt *Tensor) {
	t.floats("SVD")
	t.matrix("SVD")
	m, n := t.shape[len(t.shape)-2], t.shape[len(t.shape)-1]
	k := min(m, n)
	parts := t.packed(op.SVD, []int{m, n}, device.Shape{m, k}, device.Shape{k}, device.Shape{k, n})
	return parts[0], parts[1], parts[2]
}

// Eigh returns, for each symmetric matrix of t, its eigenvalues in ascending order, and a matrix with the eigenvectors
// in its columns. It reads the lower triangle. They have no gradient.
//
//asyncgen:api op
//go:noinline
func (t *Tensor) Eigh() (values, vectors *Tensor) {
	n := t.square("Eigh")
	parts := t.packed(op.Eigh, []int{n}, device.Shape{n}, device.Shape{n, n})
	return parts[0], parts[1]
}

// FFT returns the discrete Fourier transform of complex numbers along the last axis but one. The last axis has length
// 2: real and imaginary part. The transform is not normalised.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) FFT() *Tensor { return t.transform("FFT", op.FFT) }

// IFFT is the inverse of [Tensor.FFT]: it divides by the number of elements.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) IFFT() *Tensor { return t.transform("IFFT", op.InverseFFT) }

// RFFT returns the discrete Fourier transform of real numbers along the last axis, of length n: the first n/2+1 of its
// complex numbers, in a new last axis of length 2. The others are the complex conjugates of these. It panics if n is 0.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) RFFT() *Tensor {
	t.floats("RFFT")
	rank := len(t.shape)
	if rank == 0 {
		wrong("RFFT", op.MistakeRank, t)
	}
	if t.shape[rank-1] == 0 {
		wrong("RFFT", op.MistakeEmpty, t)
	}
	zeros := like(t).fill("RFFT", 0, t.shape)
	pairs := Stack(rank, t, zeros)
	all := pairs.transform("RFFT", op.FFT)
	defer letGo(zeros, pairs, all)
	return structural(op.Slice, op.Attr{Axis: rank - 1, To: t.shape[rank-1]/2 + 1}, operands{all}, true)
}

func (t *Tensor) transform(name string, f *op.HostFunc) *Tensor {
	t.floats(name)
	t.matrix(name)
	rank := len(t.shape)
	if t.shape[rank-1] != 2 {
		wrong(name, op.MistakeShape+" (complex numbers are a last axis of length 2)", t)
	}
	n := t.shape[rank-2]
	return hostArray(f, 2, []int{n}, device.Shape{n, 2}, t)
}

// square panics unless t holds square matrices, and returns how many rows they have.
func (t *Tensor) square(name string) int {
	t.floats(name)
	n, m := t.matrix(name)
	if n != m {
		wrong(name, fmt.Sprintf("%s: %d×%d is not square", op.MistakeShape, n, m), t)
	}
	return n
}

// hostArray returns f of xs on the device and in the element type of the first one. See op.HostArray about the rest.
func hostArray(f *op.HostFunc, trailing int, ints []int, shape device.Shape, xs ...*Tensor) *Tensor {
	dev, dt := xs[0].storage.Device(), xs[0].dtype
	var in operands
	for i, x := range xs {
		wide := structural(op.As, op.Attr{DType: Float64}, operands{x}, true)
		here := wide.onDevice(device.CPU())
		in[i] = structural(op.Contiguous, op.Attr{}, operands{here}, true)
		letGo(wide, here)
	}
	y := structural(op.HostArray, op.Attr{Host: f, Shared: trailing, Axes: ints, Shape: shape}, in, f.HasGradient())
	back := y.onDevice(dev)
	defer letGo(in[0], in[1], y, back)
	return structural(op.As, op.Attr{DType: dt}, operands{back}, true)
}

// onDevice is To that returns a handle of t if it is there already.
func (t *Tensor) onDevice(dev device.Device) *Tensor {
	if dev = dev.Within(t.storage.Device()); dev == t.storage.Device() {
		return t.same("To")
	}
	return structural(op.To, op.Attr{Device: dev, Origin: t.storage.Device()}, operands{t}, true)
}

// packed returns the results of f, which have the given shapes for each matrix of t. f puts them one after the other.
func (t *Tensor) packed(f *op.HostFunc, ints []int, shapes ...device.Shape) (parts []*Tensor) {
	size := 0
	for _, s := range shapes {
		size += s.Size()
	}
	all := hostArray(f, 2, ints, device.Shape{size}, t)
	defer all.letGo()
	batch, from := t.shape[:len(t.shape)-2], 0
	for _, s := range shapes {
		a := op.Attr{Axis: len(batch), From: from, To: from + s.Size()}
		part := structural(op.Slice, a, operands{all}, false)
		parts = append(parts, part.reshape(slices.Concat(batch, s)))
		part.letGo()
		from = a.To
	}
	return parts
}
