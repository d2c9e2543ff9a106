package devicetest

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// testInPlace computes each primitive, and random expressions, into the memory of an input. The bits
// must be the same as in memory of their own.
func testInPlace(s *suite) {
	for _, p := range kernel.Prims() {
		for _, dt := range device.DTypes() {
			switch {
			case p == kernel.PrimCast:
				for _, to := range device.DTypes() {
					s.inPlace(kernel.Cast(kernel.Arg(0, dt), to), []device.DType{dt}, nil)
				}
			case p.Func(dt) != nil:
				s.primitiveInPlace(p, dt)
			}
		}
	}
	for range 40 {
		types := make([]device.DType, 1+s.rnd.IntN(device.MaxOperands-1))
		for i := range types {
			types[i] = s.someType()
		}
		out := types[s.rnd.IntN(len(types))]
		var shape device.Shape
		if s.rnd.IntN(2) == 0 {
			shape = device.Shape{1 + s.rnd.IntN(50), 1 + s.rnd.IntN(100)}
		}
		s.inPlace(s.expression(types, out, out, 4), types, shape)
	}
	// Enough elements that a backend may compute parts at the same time.
	for _, dt := range []device.DType{device.Float32, device.Float64} {
		x, y := kernel.Arg(0, dt), kernel.Arg(1, dt)
		for _, e := range []*kernel.Expr{kernel.Add(x, y), kernel.Sub(kernel.Mul(y, y), kernel.Tanh(x))} {
			s.inPlace(e, []device.DType{dt, dt}, device.Shape{300, 1000})
		}
	}
}

// primitiveInPlace computes p of elements of type dt, also with a constant in place of each operand.
func (s *suite) primitiveInPlace(p kernel.Prim, dt device.DType) {
	args := []*kernel.Expr{kernel.Arg(0, dt), kernel.Arg(1, dt), kernel.Arg(2, dt)}[:p.Arity()]
	types := []device.DType{dt, dt, dt}[:p.Arity()]
	if p == kernel.PrimWhere {
		args[0], types[0] = kernel.Arg(0, device.Bool), device.Bool
	}
	s.inPlace(kernel.Apply(p, args...), types, nil)
	if len(args) == 1 {
		return
	}
	for i := range args {
		some := slices.Clone(args)
		some[i] = kernel.Const(1, types[i])
		s.inPlace(kernel.Apply(p, some...), types, nil)
	}
}

func (s *suite) someType() device.DType {
	all := device.DTypes()
	return all[s.rnd.IntN(len(all))]
}

// expression returns a random expression of type dt over inputs of the given types. An immediate has the type imm.
func (s *suite) expression(types []device.DType, imm, dt device.DType, depth int) *kernel.Expr {
	if depth == 0 || s.rnd.IntN(6) == 0 {
		i := s.rnd.IntN(len(types))
		switch r := s.rnd.IntN(8); {
		case r == 0:
			return kernel.Const(1.5, dt)
		case r == 1 && dt == imm:
			return kernel.Imm(0, dt)
		}
		return kernel.Cast(kernel.Arg(i, types[i]), dt)
	}
	prims := kernel.Prims()
	for {
		p, of := prims[s.rnd.IntN(len(prims))], dt
		if p == kernel.PrimCast {
			return kernel.Cast(s.expression(types, imm, s.someType(), depth-1), dt)
		}
		if dt == device.Bool {
			of = s.someType()
		}
		// Div and Pow fail for some integers.
		if p.Func(of) == nil || of == device.Int64 && (p == kernel.PrimDiv || p == kernel.PrimPow) {
			continue
		}
		in := make([]*kernel.Expr, p.Arity())
		for i := range in {
			in[i] = kernel.Const(1, of)
		}
		if p == kernel.PrimWhere {
			in[0] = kernel.Const(1, device.Bool)
		}
		if kernel.Apply(p, in...).DType() != dt {
			continue
		}
		for i := range in {
			in[i] = s.expression(types, imm, in[i].DType(), depth-1)
		}
		return kernel.Apply(p, in...)
	}
}

// inPlace computes e over inputs of the given types, into the memory of each input whose elements have
// the right size, and also into memory that is two inputs at once. If there is a shape, some of the
// other inputs are views.
func (s *suite) inPlace(e *kernel.Expr, types []device.DType, shape device.Shape) {
	s.Helper()
	if s.b.Caps().NoFloat64 && (usesFloat64(e) || slices.Contains(types, device.Float64)) {
		return
	}
	k := device.NewKernel(e.String(), device.Map, e, e.DType(), types...)
	n := 1 + s.rnd.IntN(2000)
	if shape != nil {
		n = shape.Size()
	}
	for i := range types {
		if types[i].Size() != k.Out.Size() {
			continue
		}
		c := device.Command{Kernel: k, N: n, Imm: [2]uint64{kernel.BitsOf(2.5, k.Out)}}
		at := s.rnd.IntN(3)
		var words [device.MaxOperands][]int64
		for j, dt := range types {
			c.Off[j+1] = s.rnd.IntN(3)
			span := n
			if shape != nil && j != i && s.rnd.IntN(2) == 0 {
				if c.Args == nil {
					c.Args = &device.Args{Shape: shape}
				}
				c.Args.Strides[j+1], span = s.view(shape)
			}
			if j == i {
				c.Off[j+1] = at
			}
			words[j+1] = s.words(dt, c.Off[j+1]+span)
			c.Buf[j+1] = put(s, words[j+1])
		}
		c.Off[0] = at
		s.sameInPlace(c, i+1, words[i+1])
		for j := range types {
			if j != i && types[j] == types[i] { // one buffer is both inputs
				c.Buf[j+1], c.Off[j+1] = c.Buf[i+1], at
				if c.Args != nil {
					c.Args.Strides[j+1] = nil
				}
				s.sameInPlace(c, i+1, words[i+1])
				break
			}
		}
	}
}

// sameInPlace runs c, which has no output yet, twice: into memory of its own, and into the memory of input i, whose
// contents are given. The results must be the same.
func (s *suite) sameInPlace(c device.Command, i int, contents []int64) {
	s.Helper()
	var got [2][]int64
	for inPlace := range got {
		before := put(s, contents)
		c.Buf[0] = before // the same contents around both outputs
		if inPlace == 1 {
			for j, b := range c.Buf {
				if j > 0 && b == c.Buf[i] && j != i {
					c.Buf[j] = before
				}
			}
			c.Buf[i] = before
		}
		s.do(c)
		got[inPlace] = get[int64](s, before, len(contents))
	}
	if !slices.Equal(got[0], got[1]) {
		s.Errorf("%s of %d elements of types %v differs where input %d is", c.Kernel.Name, c.N, c.Kernel.In, i)
	}
}

// words are the words of n random elements of a type. The last word may be filled up with zeros.
func (s *suite) words(dt device.DType, n int) []int64 {
	b := device.HostBuffer(int64(n*dt.Size()+7) &^ 7)
	switch dt {
	case device.Float32:
		copy(device.Slice[float32](b, 0, n), ordinary[float32](s, n))
	case device.Float64:
		copy(device.Slice[float64](b, 0, n), ordinary[float64](s, n))
	case device.Int64:
		whole := device.Slice[int64](b, 0, n)
		for i := range whole {
			whole[i] = 1 + s.rnd.Int64N(60) // a divisor, and a power
		}
	case device.Bool:
		copy(device.Slice[bool](b, 0, n), bools(s, n))
	default:
		copy(device.Slice[uint8](b, 0, n*dt.Size()), anyBits[uint8](s, n*dt.Size()))
	}
	return device.Slice[int64](b, 0, int(b.Bytes/8))
}
