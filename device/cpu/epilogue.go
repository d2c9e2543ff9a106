package cpu

import (
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// An epilogue applies the Body of a MatMul kernel to the elements of a product, in place. It is a Map
// with the product and a vector as operands.
type epilogue struct {
	kernel *device.Kernel
	run    runner
}

// newEpilogue returns that of k, or nil if k has none.
func newEpilogue(k *device.Kernel) (*epilogue, error) {
	if k.Body == nil {
		return nil, nil
	}
	if e, ok := k.Body.(*kernel.Expr); len(k.In) < 2 || !ok || e.Imms() > len(device.Command{}.Imm) {
		return nil, unsupported(k)
	}
	// the product, and what follows the operands
	as := &device.Kernel{Name: k.Name, Code: device.Map, Body: k.Body, Out: k.Out, In: k.In[1:]}
	run, err := newMap(as)
	if err != nil {
		return nil, err
	}
	return &epilogue{as, run}, nil
}

// of is e for one command, whose products have rows of n elements.
func (e *epilogue) of(c *device.Command, n int) *finish {
	f := finishes.Get().(*finish)
	f.run, f.n, f.step = e.run, n, 1
	f.c = device.Command{Kernel: e.kernel, N: c.N, Imm: c.Imm}
	f.c.Buf[0], f.c.Off[0] = c.Buf[0], c.Off[0]
	f.c.Buf[1], f.c.Off[1] = c.Buf[0], c.Off[0]
	if len(e.kernel.In) > 1 {
		f.c.Buf[2], f.c.Off[2] = c.Buf[3], c.Off[3]
		f.hasVector = true
		if s := c.Args.Strides[3]; s != nil {
			f.step = s[0]
		}
	}
	return f
}

// A finish is an epilogue of one command.
type finish struct {
	run       runner
	c         device.Command // the Map of all elements, without its Args
	n         int            // columns
	hasVector bool
	step      int  // of the vector
	done      bool // by parts

	args    device.Args // of c where it needs any
	shape   [2]int
	strides [2]int
}

var finishes = sync.Pool{New: func() any { return new(finish) }}

// giveBack ends the use of f.
func (f *finish) giveBack() {
	*f = finish{}
	finishes.Put(f)
}

// all does it for all elements.
func (f *finish) all() error {
	if f.hasVector && f.c.N > 0 {
		f.shape, f.strides = [2]int{f.c.N / f.n, f.n}, [2]int{0, f.step}
		f.args.Shape, f.args.Strides[2] = f.shape[:], f.strides[:]
		f.c.Args = &f.args
	}
	return f.run(&f.c)
}

// inParts reports whether part can be called.
func (f *finish) inParts() bool { return f != nil && (!f.hasVector || f.step == 1) }

// part does it for some columns of some rows of a product that is the only one. C is memory for a command.
func (f *finish) part(c *device.Command, row, rows, col, cols int) {
	*c = f.c
	c.N = cols
	for i := range c.Off[:2] {
		c.Off[i] += row*f.n + col
	}
	c.Off[2] += col
	for range rows {
		if err := f.run(c); err != nil {
			panic(err)
		}
		c.Off[0] += f.n
		c.Off[1] += f.n
	}
}
