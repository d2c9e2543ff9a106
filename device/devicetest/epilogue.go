package devicetest

import (
	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// testEpilogues compares products with an expression computed in the same command (epilogues) with the expression
// applied to the products afterwards. All operations round once, so the bits are equal on every device.
func testEpilogues(s *suite) {
	if !s.b.Caps().Epilogues {
		s.Log("the backend does not promise them")
		return
	}
	for range 8 {
		epilogues[float32](s)
		epilogues[float64](s)
		epilogues[int64](s)
	}
}

func epilogues[T number](s *suite) {
	if lacks[T](s) {
		return
	}
	dt := device.DTypeOf[T]()
	x, y := kernel.Arg(0, dt), kernel.Arg(1, dt)
	for _, e := range []*kernel.Expr{
		kernel.Add(x, y),
		kernel.Max(kernel.Add(x, y), kernel.Const(0, dt)),
		kernel.Sub(kernel.Mul(y, kernel.Imm(1, dt)), x),
		kernel.Mul(kernel.Imm(0, dt), x),
	} {
		m, n, k := s.sizes()
		if s.rnd.IntN(6) == 0 {
			k = 0
		}
		p := newProduct(s, m, n, max(k, 1), ordinary[T])
		p.Args.Ints[2] = k
		c := p.Command
		plain := compute[T](s, c)
		step := []int{1, 1, 0, 2}[s.rnd.IntN(4)]
		off := s.rnd.IntN(3)
		vector := ordinary[T](s, off+max(1, step)*n)
		c.Imm = [2]uint64{kernel.Bits(ordinary[T](s, 1)[0]), kernel.Bits(ordinary[T](s, 1)[0])}
		in := []device.DType{dt, dt}
		if e.Args() > 1 {
			in = append(in, dt)
			c.Buf[3], c.Off[3] = put(s, vector), off
			if step != 1 || s.rnd.IntN(2) == 0 {
				args := *c.Args
				args.Strides[3] = []int{step}
				c.Args = &args
			}
		}
		c.Kernel = device.NewKernel(e.String(), device.MatMul, e, dt, in...)
		for i, got := range compute[T](s, c) {
			want := kernel.Value[T](e.Eval([]uint64{kernel.Bits(plain[i]), kernel.Bits(vector[off+i%n*step])}, c.Imm[:]))
			if !same(got, want) {
				s.Fatalf("%v %dx%dx%d, step %d: element %d,%d of %v is %v, want %v for %v", dt, m, n, k, step, i/n, i%n, e, got, want, plain[i])
			}
		}
	}
}
