package cpu

import (
	"slices"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/pool"
)

// newTransfer copies between buffers of the device and the host, which are the same here.
func newTransfer(k *device.Kernel) (runner, error) {
	if len(k.In) != 1 || k.In[0] != k.Out {
		return nil, unsupported(k)
	}
	size := k.Out.Size()
	return func(c *device.Command) error {
		move(c, size)
		return nil
	}, nil
}

// part is how many bytes are moved at a time where it is done in parts.
const part = 64 << 10

// move copies N contiguous elements, split over the cores if they are many, and past the caches
// if they are as many as that pays for; see large.
func move(c *device.Command, size int) {
	if c.N <= 0 {
		return
	}
	bytes := c.N * size
	dst, src := pointer(c, 0, size, c.N), pointer(c, 1, size, c.N)
	if bytes <= part || c.Buf[0] == c.Buf[1] {
		copy(slice[byte](dst, bytes), slice[byte](src, bytes))
		return
	}
	moveParts(dst, src, bytes)
}

func moveParts(dst, src unsafe.Pointer, bytes int) {
	pool.Run(bytes, 16*part, func(lo, hi int) {
		streams := 2*bytes > large
		if streams {
			defer vec.Fence()
		}
		for ; lo < hi; lo += part {
			to, from, n := unsafe.Add(dst, lo), unsafe.Add(src, lo), min(part, hi-lo)
			if streams {
				vec.Stream(to, from, n)
			} else {
				copy(slice[byte](to, n), slice[byte](from, n))
			}
		}
	})
}

func newFill(k *device.Kernel) (runner, error) {
	size := k.Out.Size()
	return func(c *device.Command) error {
		if c.N > 0 {
			vec.Fill(pointer(c, 0, size, c.N), size, c.Imm[0], c.N)
		}
		return nil
	}, nil
}

func newIota(k *device.Kernel) (runner, error) {
	if k.Out == device.Bool || k.Out.IsStorage() {
		return nil, unsupported(k)
	}
	size := k.Out.Size()
	return func(c *device.Command) error {
		if c.N > 0 {
			vec.Ramp(k.Out, pointer(c, 0, size, c.N), 0, c.Imm[0], c.Imm[1], c.N)
		}
		return nil
	}, nil
}

// drawCost is how many simple operations a random number is worth.
const drawCost = 3

func newRandom(k *device.Kernel) (runner, error) {
	d, ok := k.Body.(kernel.Distribution)
	switch {
	case ok && d == kernel.Ints && k.Out == device.Int64:
		draw := vec.Drawer[int64](d)
		return func(c *device.Command) error {
			if c.N > 0 {
				drawAll(draw, c, int64(c.Args.Ints[0]), int64(c.Args.Ints[1]), operand[int64](c, 0, c.N))
			}
			return nil
		}, nil
	case ok && d != kernel.Ints && k.Out == device.Float32:
		return drawFloats[float32](d), nil
	case ok && d != kernel.Ints && k.Out == device.Float64:
		return drawFloats[float64](d), nil
	}
	return nil, unsupported(k)
}

func drawFloats[T device.Element](d kernel.Distribution) runner {
	draw := vec.Drawer[T](d)
	return func(c *device.Command) error {
		drawAll(draw, c, 0, 0, operand[T](c, 0, c.N))
		return nil
	}
}

// drawAll is kernel.Draw, by draw, split over the cores if there is much to do.
func drawAll[T device.Element](draw func(key, pos uint64, lo, hi int64, dst []T), c *device.Command, lo, hi int64, dst []T) {
	key, pos := c.Imm[0], c.Imm[1]
	if !pool.Worth(len(dst), grainOf(drawCost)) {
		draw(key, pos, lo, hi, dst)
		return
	}
	pool.Run(len(dst), grainOf(drawCost), func(from, to int) {
		draw(key, pos+uint64(from), lo, hi, dst[from:to])
	})
}

func newMath(k *device.Kernel) (runner, error) {
	f, ok := k.Body.(kernel.MathFunc)
	if !ok || k.Out != device.Float64 || len(k.In) != f.Arity() || slices.ContainsFunc(k.In, func(dt device.DType) bool { return dt != device.Float64 }) {
		return nil, unsupported(k)
	}
	last := f.Arity() // a function of one number ignores the second
	return func(c *device.Command) error {
		dst, x, y := operand[float64](c, 0, c.N), operand[float64](c, 1, c.N), operand[float64](c, last, c.N)
		for i := range dst {
			dst[i] = f.Call(x[i], y[i])
		}
		return nil
	}, nil
}

func newHost(k *device.Kernel) (runner, error) {
	f, ok := k.Body.(*kernel.HostFunc)
	inputs := len(k.In)
	if !ok || k.Out != device.Float64 || inputs < 1 || inputs > 2 || slices.ContainsFunc(k.In, func(dt device.DType) bool { return dt != device.Float64 }) {
		return nil, unsupported(k)
	}
	return func(c *device.Command) error {
		examples, ints := c.Args.Ints[0], c.Args.Ints[1:]
		if examples == 0 {
			return nil
		}
		dst, x, y := operand[float64](c, 0, c.N), operand[float64](c, 1, examples*ints[0]), []float64(nil)
		if inputs == 2 {
			y = operand[float64](c, 2, examples*ints[1])
		}
		part := func(all []float64, i int) []float64 {
			n := len(all) / examples
			return all[i*n : (i+1)*n : (i+1)*n]
		}
		for i := range examples {
			if err := f.Call(part(dst, i), part(x, i), part(y, i), ints[inputs:]); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
