package cpu

import (
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/pool"
)

func newCopy(k *device.Kernel) (runner, error) {
	if len(k.In) != 1 || k.In[0] != k.Out {
		return nil, unsupported(k)
	}
	size := k.Out.Size()
	return func(c *device.Command) error {
		switch {
		case c.N <= 0:
			return nil
		case c.Strides(0) == nil && c.Strides(1) == nil:
			move(c, size)
			return nil
		}
		return copyView(c, size)
	}, nil
}

// copyCost is how many simple operations an element is worth that is copied out of order.
const copyCost = 2

func copyView(c *device.Command, size int) error {
	var t transfer
	if err := t.open(c, size); err != nil {
		return err
	}
	if n := t.to.dims[0]; !pool.Worth(n, grainOf(copyCost*c.N/n)) {
		t.run(0, n)
	} else {
		t.split(n, c.N/n)
	}
	return nil
}

// open prepares t for a Copy command of elements of the given size.
func (t *transfer) open(c *device.Command, size int) error {
	shape, to, from := c.Args.Shape, c.Args.Strides[0], c.Args.Strides[1]
	if to == nil {
		to = shape.Strides()
	}
	if from == nil {
		from = shape.Strides()
	}
	t.size, t.past = size, 2*c.N*size > large
	if !makeViews(&t.to, &t.from, shape, to, from) {
		return errRank(shape)
	}
	t.dst, t.src = first(c, 0, size, &t.to), first(c, 1, size, &t.from)
	switch size {
	case 4:
		t.turns = turnsOf[uint32]()
	case 8:
		t.turns = turnsOf[uint64]()
	}
	return nil
}

// makeViews is makeView of two operands over the same shape. Two axes are merged only if both operands
// can walk them as one. At least one axis is left.
func makeViews(v, w *view, shape, vStrides, wStrides []int) bool {
	v.rank, v.dims[0], v.strides[0], w.strides[0] = 0, 1, 1, 1
	for i, d := range shape {
		if d == 1 {
			continue
		}
		last := v.rank - 1
		if last < 0 || v.strides[last] != vStrides[i]*d || w.strides[last] != wStrides[i]*d {
			if v.rank == maxRank {
				return false
			}
			last++
			v.rank, v.dims[last] = last+1, 1
		}
		v.dims[last] *= d
		v.strides[last], w.strides[last] = vStrides[i], wStrides[i]
	}
	v.rank = max(v.rank, 1)
	w.rank, w.dims = v.rank, v.dims
	return true
}

// first is where the first element of operand i of c lies. It panics if v reaches outside of the buffer.
func first(c *device.Command, i, size int, v *view) unsafe.Pointer {
	least, most := v.reach()
	if at := c.Off[i]; at+least < 0 || int64(at+most+1)*int64(size) > c.Buf[i].Bytes {
		outside(c, i, most+1-least)
	}
	return unsafe.Add(c.Buf[i].Ptr, c.Off[i]*size)
}

// A transfer is a Copy command of a view, or to one.
type transfer struct {
	dst, src unsafe.Pointer
	to, from view // of the same dims, one at least
	size     int  // of an element
	turns    *vec.Products
	past     bool // the caches
}

func (t transfer) split(n, each int) { pool.Run(n, grainOf(copyCost*each), t.run) }

// run copies what has an index from lo to hi-1 along the first axis.
func (t *transfer) run(lo, hi int) {
	if t.past {
		defer vec.Fence()
	}
	t.axes(0, t.place(t.dst, &t.to, 0, lo), t.place(t.src, &t.from, 0, lo), hi-lo)
}

// place is i steps along an axis on from p.
func (t *transfer) place(p unsafe.Pointer, v *view, axis, i int) unsafe.Pointer {
	return unsafe.Add(p, i*v.strides[axis]*t.size)
}

// axes copies n parts along an axis, from src to dst. A part is everything that the axes behind it span.
func (t *transfer) axes(axis int, dst, src unsafe.Pointer, n int) {
	last := t.to.rank - 1
	switch {
	case axis == last:
		t.row(dst, src, n)
	case t.from.strides[axis] == 1 && t.to.strides[last] == 1:
		t.planes(axis, axis+1, dst, src, n)
	default:
		for i := range n {
			t.axes(axis+1, t.place(dst, &t.to, axis, i), t.place(src, &t.from, axis, i), t.to.dims[axis+1])
		}
	}
}

// row copies n elements along the last axis.
func (t *transfer) row(dst, src unsafe.Pointer, n int) {
	last := t.to.rank - 1
	to, from := t.to.strides[last], t.from.strides[last]
	switch {
	case to == 1 && from == 1:
		t.neighbours(dst, src, n*t.size)
	case t.size == 2:
		copySteps(slice[uint16](dst, (n-1)*to+1), slice[uint16](src, (n-1)*from+1), n, to, from)
	case t.size == 4:
		copySteps(slice[uint32](dst, (n-1)*to+1), slice[uint32](src, (n-1)*from+1), n, to, from)
	case t.size == 8:
		copySteps(slice[uint64](dst, (n-1)*to+1), slice[uint64](src, (n-1)*from+1), n, to, from)
	default:
		copySteps(slice[uint8](dst, (n-1)*to+1), slice[uint8](src, (n-1)*from+1), n, to, from)
	}
}

func copySteps[T any](dst, src []T, n, to, from int) {
	for i := range n {
		dst[i*to] = src[i*from]
	}
}

// neighbours copies contiguous bytes.
func (t *transfer) neighbours(dst, src unsafe.Pointer, bytes int) { copyPast(dst, src, bytes, t.past) }

// planes copies elements of a view in which src is contiguous along axis, which has n elements. dst is
// contiguous along the last axis. planes walks the axes from next on one by one.
func (t *transfer) planes(axis, next int, dst, src unsafe.Pointer, n int) {
	if last := t.to.rank - 1; next == last {
		t.plane(dst, src, n, t.to.dims[last], t.to.strides[axis]*t.size, t.from.strides[last]*t.size)
		return
	}
	for i := range t.to.dims[next] {
		t.planes(axis, next+1, t.place(dst, &t.to, next, i), t.place(src, &t.from, next, i), n)
	}
}

// block is the length of the sides of the blocks that are transposed one by one, in the innermost cache. It makes use
// of whole cache lines of both operands, even where rows are a power of two apart and share few places of the cache.
const block = 64

var blocks = sync.Pool{New: func() any { return new([block * block]uint64) }}

// plane transposes: element i,j is at dst + i*to + j*size, and at src + i*size + j*from, for i < n and j < m.
func (t *transfer) plane(dst, src unsafe.Pointer, n, m, to, from int) {
	mem := blocks.Get().(*[block * block]uint64)
	defer blocks.Put(mem)
	turned := unsafe.Pointer(mem)
	for i := 0; i < n; i += block {
		for j := 0; j < m; j += block {
			rows, cols := min(block, n-i), min(block, m-j)
			t.turn(turned, unsafe.Add(src, i*t.size+j*from), rows, cols, from)
			for k := range rows {
				t.neighbours(unsafe.Add(dst, (i+k)*to+j*t.size), unsafe.Add(turned, k*block*t.size), cols*t.size)
			}
		}
	}
}

// turn transposes a block of rows and columns to dst, where rows are block elements apart.
func (t *transfer) turn(dst, src unsafe.Pointer, rows, cols, from int) {
	switch {
	case t.turns != nil:
		for j := 0; j < cols; j += vec.TurnRows {
			t.turns.Turn(rows, unsafe.Add(src, j*from), from, min(vec.TurnRows, cols-j), unsafe.Add(dst, j*t.size), block*t.size)
		}
	case t.size == 2:
		turnBlock[uint16](dst, src, rows, cols, from)
	case t.size == 4:
		turnBlock[uint32](dst, src, rows, cols, from)
	case t.size == 8:
		turnBlock[uint64](dst, src, rows, cols, from)
	default:
		turnBlock[uint8](dst, src, rows, cols, from)
	}
}

func turnBlock[T any](dst, src unsafe.Pointer, rows, cols, from int) {
	to := slice[T](dst, block*block)
	for j := range cols {
		for i, v := range slice[T](unsafe.Add(src, j*from), rows) {
			to[i*block+j] = v
		}
	}
}
