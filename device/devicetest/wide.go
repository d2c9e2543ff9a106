package devicetest

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// testWide computes and folds expressions of more inputs and immediates than a command has places for.
func testWide(s *suite) {
	for range 25 {
		wide[float32](s)
		wide[float64](s)
		wide[int64](s)
	}
	wideAndLong(s)
}

// wideAndLong computes so many elements, one after the other, that a backend may do so by vectors or on several cores.
func wideAndLong(s *suite) {
	const f32, n = device.Float32, 1<<18 + 5
	c := device.Command{N: n, Args: &device.Args{}}
	constants := ordinary[float32](s, device.MaxImms)
	e := kernel.Imm(device.MaxImms-1, f32)
	want := slices.Repeat(constants[device.MaxImms-1:], n)
	for i := range device.MaxInputs {
		x := ordinary[float32](s, n)
		if buf := put(s, x); i+1 < device.MaxOperands {
			c.Buf[i+1] = buf
		} else {
			c.Args.Parts = append(c.Args.Parts, device.Part{Buf: buf})
		}
		e = kernel.Sub(kernel.Mul(kernel.Arg(i, f32), kernel.Imm(i, f32)), e)
		for k := range want {
			want[k] = float32(x[k]*constants[i]) - want[k]
		}
	}
	for i, v := range constants {
		if i < len(c.Imm) {
			c.Imm[i] = kernel.Bits(v)
		} else {
			c.Args.Imm = append(c.Args.Imm, kernel.Bits(v))
		}
	}
	c.Kernel = mapKernel(e)
	for i, got := range compute[float32](s, c) {
		if !same(got, want[i]) {
			s.Fatalf("element %d of a sum of %d products is %v, want %v", i, device.MaxInputs, got, want[i])
		}
	}
}

func wide[T number](s *suite) {
	if lacks[T](s) {
		return
	}
	dt := device.DTypeOf[T]()
	c, elements := reduction(s, ordinary[T])
	inputs, imms := 1+s.rnd.IntN(device.MaxInputs), s.rnd.IntN(device.MaxImms+1)
	isFold := s.rnd.IntN(2) == 0
	if inputs >= device.MaxOperands && len(c.Args.Shape) > device.MaxWideAxes {
		isFold = false
	}
	if !isFold {
		c.Args.Kept = len(c.Args.Shape)
		c.N = c.Args.Shape.Size()
		elements = [][]T{slices.Concat(elements...)}
	}
	in := [][][]T{elements}
	for i := 1; i < inputs; i++ {
		others := over(s, &c, i+1, ordinary[T])
		if !isFold {
			others = [][]T{slices.Concat(others...)}
		}
		in = append(in, others)
	}
	constants := ordinary[T](s, imms)
	for i, v := range constants {
		if i < len(c.Imm) {
			c.Imm[i] = kernel.Bits(v)
		} else {
			c.Args.Imm = append(c.Args.Imm, kernel.Bits(v))
		}
	}

	// Each operand and immediate is combined with the result so far.
	e, terms := kernel.Arg(0, dt), make([]func(so T, row, i int) T, 0, inputs+imms)
	for _, k := range s.rnd.Perm(inputs + imms - 1) {
		x, value := kernel.Imm(max(k-inputs+1, 0), dt), func(row, i int) T { return constants[k-inputs+1] }
		if k < inputs-1 {
			x, value = kernel.Arg(k+1, dt), func(row, i int) T { return in[k+1][row][i] }
		}
		switch s.rnd.IntN(4) {
		case 0:
			e, terms = kernel.Add(e, x), append(terms, func(so T, row, i int) T { return so + value(row, i) })
		case 1:
			e, terms = kernel.Sub(x, e), append(terms, func(so T, row, i int) T { return value(row, i) - so })
		case 2:
			e, terms = kernel.Mul(e, x), append(terms, func(so T, row, i int) T { return so * value(row, i) })
		case 3:
			e, terms = kernel.Max(e, x), append(terms, func(so T, row, i int) T { return max(so, value(row, i)) })
		}
	}
	want := make([][]T, len(elements))
	for row := range want {
		want[row] = make([]T, len(elements[row]))
		for i, so := range elements[row] {
			for _, f := range terms {
				so = f(so, row, i)
			}
			want[row][i] = so
		}
	}

	types := slices.Repeat([]device.DType{dt}, inputs)
	if isFold {
		c.Kernel = device.NewKernel("fold of "+e.String(), device.Reduce, kernel.FoldOf{By: kernel.ReduceSum, Expr: e}, dt, types...)
		for row, got := range compute[T](s, c) {
			if w := kernel.Fold(kernel.ReduceSum, want[row]); !same(got, w) {
				s.Fatalf("%s with %v, of %d elements of shape %v, %d kept, is %v, want %v", c.Kernel.Name, constants, len(want[row]), c.Args.Shape, c.Args.Kept, got, w)
			}
		}
		return
	}
	c.Kernel = device.NewKernel(e.String(), device.Map, e, dt, types...)
	check := func(got []T) {
		s.Helper()
		for i, w := range want[0] {
			if !same(got[i], w) {
				s.Fatalf("%s with %v, of shape %v: element %d is %v, want %v", c.Kernel.Name, constants, c.Args.Shape, i, got[i], w)
			}
		}
	}
	check(compute[T](s, c))
	for i := inputs; i > 0; i-- {
		if c.Strides(i) == nil { // in place
			c.Buf[0], c.Off[0] = c.Operand(i)
			s.do(c)
			check(get[T](s, c.Buf[0], c.Off[0]+c.N)[c.Off[0]:])
			break
		}
	}
}
