package kernel

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/device"
)

// Work counts what a command costs a device. Models of time use it.
type Work struct {
	Operations int64 // on elements
	Bytes      int64 // of memory, read and written
}

// WorkOf counts the work of c, by rules that are close to the truth on any device:
//
//   - Operations are primitives applied to one element. An addition, exp, a comparison and a conversion
//     count the same. A multiplication and addition in a product of matrices or a convolution count two,
//     in the padding too. A fold counts one for each element, and the operations of its expression.
//     Sorting n elements counts log2 n for each, rounded up. Rows counts the operations of [Row] on each
//     element, not those that are done once for a row. A block of Philox counts 80.
//   - Bytes are those that the command reads and writes. An element that is broadcast is read once. The part
//     of a result that Copy leaves as it was does not count. ScatterAdd clears its result before it adds to
//     it, and so writes it twice. Gather reads as many elements as it writes.
//
// A command that only moves elements has no operations. Those of a Host function are not known, and not counted.
func WorkOf(c *device.Command) Work {
	w := Work{Operations: operations(c), Bytes: int64(c.N) * int64(c.Kernel.Out.Size())}
	if c.Kernel.Code == device.ScatterAdd {
		w.Bytes *= 2
	}
	for i, dt := range c.Kernel.In {
		w.Bytes += elementsRead(c, i+1) * int64(dt.Size())
	}
	if c.Kernel.Code == device.Concat {
		w.Bytes *= 2 // it reads its parts, which are not in Kernel.In
	}
	return w
}

// operations is WorkOf's Operations.
func operations(c *device.Command) int64 {
	n := int64(c.N)
	switch c.Kernel.Code {
	case device.Map:
		return n * applications(c.Kernel.Body)
	case device.Reduce:
		return size(c.Args.Shape) * (1 + applications(c.Kernel.Body))
	case device.ArgReduce, device.Scan, device.ScatterAdd:
		return size(c.Args.Shape)
	case device.ArgSort:
		row := size(c.Args.Shape[c.Args.Kept:])
		return size(c.Args.Shape) * int64(bits.Len64(uint64(max(row, 1)-1)))
	case device.Rows:
		return size(c.Args.Shape) * rowOperations(c.Kernel)
	case device.MatMul:
		return n * (2*int64(c.Args.Ints[2]) + applications(c.Kernel.Body))
	case device.Conv:
		steps := windowed(&c.Args.Window[0], false) * windowed(&c.Args.Window[1], false)
		return 2 * size(c.Args.Shape) * int64(c.Args.Ints[0]) * steps
	case device.Pool, device.ArgPool:
		return size(c.Args.Shape) * windowed(&c.Args.Window[0], true) * windowed(&c.Args.Window[1], true)
	case device.Iota:
		return 2 * n
	case device.Random:
		return n * randomOperations(c.Kernel)
	case device.Math:
		return n
	}
	return 0 // of Host, nobody knows; Gather, Copy, Concat, Fill, Upload and Download only move elements
}

var counted sync.Map // the results of applications, by *Expr

// applications is how many primitives body's expression applies to an element; 0 if body has none.
func applications(body device.Body) (n int64) {
	e, ok := body.(*Expr)
	if f, is := body.(FoldOf); is {
		e, ok = f.Expr, true
	}
	if !ok {
		return 0
	}
	if have, ok := counted.Load(e); ok {
		return have.(int64)
	}
	for _, x := range e.Nodes() {
		if x.Kind() == Application {
			n++
		}
	}
	counted.Store(e, n)
	return n
}

// rowOperations is how many operations a Rows kernel takes for an element.
func rowOperations(k *device.Kernel) int64 {
	var n int64
	switch k.Body.(RowFunc) {
	case Softmax, LogSoftmax:
		n = 5 // the maximum, the difference, its power, their sum, and a quotient or another difference
	case LayerNorm:
		n = 5 // a sum, the difference, its square, their sum, and a product
	case RMSNorm:
		n = 3 // the square, their sum, and a product
	}
	return n + int64(len(k.In)-1)
}

// randomOperations is how many operations a Random kernel takes for an element.
func randomOperations(k *device.Kernel) int64 {
	const block, words = 80, 4 // ten rounds of two products, four exclusive ors and two sums
	n := int64(block / words)
	if k.Out.Size() == 8 {
		n *= 2
	}
	if k.Body.(Distribution) == Normal {
		return n + 5 // half a pair: a logarithm, a root, an angle, its sine or cosine, and a product
	}
	return n + 2 // a shift or half of a product, and the scaling or addition
}

// windowed counts the pairs of a place of the result and a place of its window that are not in a
// hole. If inside, it does not count pairs in the padding.
func windowed(w *device.Window, inside bool) (n int64) {
	for i := range w.Out {
		for k := range w.Size {
			if at, ok := w.At(i, k); ok && (!inside || at >= 0 && at < w.In) {
				n++
			}
		}
	}
	return n
}

// elementsRead is how many elements of operand i, an input, c reads. A broadcast element counts once.
func elementsRead(c *device.Command, i int) int64 {
	a := c.Args
	switch c.Kernel.Code {
	case device.Upload, device.Download, device.Send, device.Receive, device.Math:
		return int64(c.N)
	case device.Host:
		return int64(c.Args.Ints[0]) * int64(c.Args.Ints[i])
	case device.MatMul:
		return matrixRead(a, i)
	case device.Conv, device.Pool, device.ArgPool:
		return distinct(planes(c, i), a.Strides[i])
	case device.Gather:
		if i == 1 {
			return int64(c.N)
		}
	case device.Rows:
		if i > 1 {
			return distinct(a.Shape[a.Kept:], a.Strides[i])
		}
	}
	if a == nil || a.Shape == nil {
		return int64(c.N)
	}
	return distinct(a.Shape, c.Strides(i))
}

// matrixRead is elementsRead of MatMul.
func matrixRead(a *device.Args, i int) int64 {
	rows, columns := a.Ints[0], a.Ints[2]
	switch i {
	case 2:
		rows, columns = a.Ints[2], a.Ints[1]
	case 3:
		return int64(a.Ints[1])
	}
	return distinct(append(slices.Clone(a.Shape), rows, columns), a.Strides[i])
}

// planes is the space over which operand i of a Conv, Pool or ArgPool has its strides.
func planes(c *device.Command, i int) device.Shape {
	a := c.Args
	rows, columns := a.Window[0], a.Window[1]
	switch {
	case c.Kernel.Code != device.Conv:
		return append(slices.Clone(a.Shape), rows.In, columns.In)
	case i == 1:
		return device.Shape{a.Shape[0], a.Shape[1], a.Ints[0], rows.In, columns.In}
	}
	return device.Shape{a.Shape[1], a.Shape[2], a.Ints[0], rows.Size, columns.Size}
}

func size(s device.Shape) int64 { return int64(s.Size()) }

// distinct returns how many different elements an operand with these strides over shape has: an axis with stride 0
// repeats the same ones. nil strides are those of a contiguous operand.
func distinct(shape device.Shape, strides []int) int64 {
	n := int64(1)
	for axis, length := range shape {
		if length == 0 || strides == nil || strides[axis] != 0 {
			n *= int64(length)
		}
	}
	return n
}
