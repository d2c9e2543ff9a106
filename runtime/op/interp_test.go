package op_test

import (
	"math"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// An array is a tensor of an interpreter that aims at simplicity, not speed. Elements are float64s,
// whatever the type.
type array struct {
	shape device.Shape
	dtype device.DType
	data  []float64
}

func (a *array) Shape() device.Shape { return a.shape }
func (a *array) DType() device.DType { return a.dtype }

// An interpreter is an op.Builder that carries out operations at once, to compute gradients in tests.
type interpreter struct{}

func (interpreter) Zeros(x op.Value) op.Value {
	a := x.(*array)
	return &array{a.shape, a.dtype, make([]float64, len(a.data))}
}

func (interpreter) Elementwise(d *op.Def, scalars [2]float64, x ...op.Value) op.Value {
	shape := x[0].Shape()
	for _, v := range x[1:] {
		shape, _ = op.Broadcast(shape, v.Shape())
	}
	dt := x[len(x)-1].DType()
	e := d.Kernel(dt).Body.(*kernel.Expr)
	out := &array{shape, d.Elements(dt), nil}
	imms := []uint64{kernel.BitsOf(scalars[0], dt), kernel.BitsOf(scalars[1], dt)}
	var places [][]int
	for _, v := range x {
		places = append(places, placesOf(op.View{Shape: shape, Strides: op.View{Shape: v.Shape()}.BroadcastStrides(shape)}))
	}
	for i := range shape.Size() {
		var args []uint64
		for k, v := range x {
			args = append(args, kernel.BitsOf(v.(*array).data[places[k][i]], v.DType()))
		}
		out.data = append(out.data, toFloat(e.Eval(args, imms), out.dtype))
	}
	return out
}

func toFloat(bits uint64, dt device.DType) float64 {
	if dt == device.Bool {
		return float64(bits)
	}
	return kernel.Value[float64](bits)
}

func (b interpreter) Structural(d *op.Def, a op.Attr, x ...op.Value) op.Value {
	in := x[0].(*array)
	switch {
	case d.View != nil:
		v, ok := d.View(&a, op.View{Shape: in.shape})
		if !ok {
			panic("a tensor without gaps has all views")
		}
		return in.gather(v)
	case d == op.To:
		return in
	case d == op.Scatter:
		out := &array{slices.Clone(in.shape), in.dtype, nil}
		out.shape[a.Axis] = a.To
		out.data = make([]float64, out.shape.Size())
		for i := range out.data {
			out.data[i] = toFloat(a.Key, in.dtype)
		}
		in.putOver(out, a)
		return out
	case d == op.Put:
		out := &array{in.shape, in.dtype, slices.Clone(in.data)}
		x[1].(*array).putOver(out, a)
		return out
	}
	p := &op.Plan{Attr: a}
	for i, v := range x {
		p.In[i], p.Types[i] = op.View{Shape: v.Shape()}, v.DType()
	}
	d.Run(p)
	return interpret(p, x)
}

// putOver writes a's elements over part of whole, as op.Put does.
func (a *array) putOver(whole *array, at op.Attr) {
	for i, index := range indices(a.shape) {
		index[at.Axis] = at.From + index[at.Axis]*max(at.Step, 1)
		whole.data[dot(whole.shape.Strides(), index...)] = a.data[i]
	}
}

// reduced returns the elements that a Reduce kernel folds, in the order of args, and the reducer.
func reduced(k *device.Kernel, args *device.Args, x []op.Value) (by kernel.Reducer, all []float64) {
	var in [][]float64
	for i, v := range x {
		in = append(in, v.(*array).gather(op.View{Shape: args.Shape, Strides: args.Strides[i+1]}).data)
	}
	f, ok := k.Body.(kernel.FoldOf)
	if !ok {
		return k.Body.(kernel.Reducer), in[0]
	}
	for i := range args.Shape.Size() {
		var operands []uint64
		for _, data := range in {
			operands = append(operands, kernel.Bits(data[i]))
		}
		all = append(all, kernel.Value[float64](f.Expr.Eval(operands, nil)))
	}
	return f.By, all
}

// interpret carries out a planned command.
func interpret(p *op.Plan, x []op.Value) op.Value {
	in := x[0].(*array)
	out := &array{p.Shape, p.DType, nil}
	args := p.Cmd.Args
	switch k := p.Cmd.Kernel; k.Code {
	case device.Reduce:
		by, all := reduced(k, args, x)
		n := args.Shape[args.Kept:].Size()
		for i := range p.Cmd.N {
			out.data = append(out.data, kernel.Fold(by, all[i*n:(i+1)*n]))
		}
	case device.MatMul:
		m, n, inner := args.Ints[0], args.Ints[1], args.Ints[2]
		batch := len(args.Shape)
		first := placesOf(op.View{Shape: args.Shape, Strides: args.Strides[1][:batch]})
		second := placesOf(op.View{Shape: args.Shape, Strides: args.Strides[2][:batch]})
		a, b := args.Strides[1][batch:], args.Strides[2][batch:]
		for p := range first {
			for i := range m {
				for j := range n {
					sum := 0.0
					for l := range inner {
						sum += in.data[first[p]+i*a[0]+l*a[1]] * x[1].(*array).data[second[p]+l*b[0]+j*b[1]]
					}
					if e, ok := k.Body.(*kernel.Expr); ok {
						vector := x[2].(*array).data
						sum = kernel.Value[float64](e.Eval([]uint64{kernel.Bits(sum), kernel.Bits(vector[j])}, nil))
					}
					out.data = append(out.data, sum)
				}
			}
		}
	case device.Conv:
		out.data = make([]float64, p.Cmd.N)
		weights, w := x[1].(*array), args.Window
		to := args.Strides[0]
		if to == nil {
			to = append(slices.Clone(args.Shape), w[0].Out*w[1].Out).Strides()
		}
		for _, index := range indices(append(slices.Clone(args.Shape), args.Ints[0])) {
			n, g, o, c := index[0], index[1], index[2], index[3]
			walkWindows(w, func(i, j, k, l, row, column int) {
				out.data[dot(to, n, g, o)+i*w[1].Out+j] += in.data[dot(args.Strides[1], n, g, c, row, column)] * weights.data[dot(args.Strides[2], g, o, c, k, l)]
			})
		}
	case device.Pool, device.ArgPool:
		w := args.Window
		n := args.Shape.Size()
		planes := in.gather(op.View{Shape: append(slices.Clone(args.Shape), w[0].In, w[1].In), Strides: args.Strides[1]}).data
		for p := range n {
			plane := planes[p*w[0].In*w[1].In:][:w[0].In*w[1].In]
			best := make([]float64, w[0].Out*w[1].Out)
			sums, places := slices.Clone(best), slices.Repeat([]float64{-1}, len(best))
			walkWindows(w, func(i, j, _, _, row, column int) {
				at, from := i*w[1].Out+j, row*w[1].In+column
				sums[at] += plane[from]
				if places[at] < 0 || plane[from] > best[at] {
					best[at], places[at] = plane[from], float64(from)
				}
			})
			switch {
			case k.Code == device.ArgPool:
				out.data = append(out.data, places...)
			case k.Body.(kernel.Reducer) == kernel.ReduceMax:
				out.data = append(out.data, best...)
			default:
				out.data = append(out.data, sums...)
			}
		}
	case device.Gather:
		for _, at := range selected(args, 1, x[1].(*array)) {
			out.data = append(out.data, in.data[at])
		}
	case device.ScatterAdd:
		out.data = make([]float64, p.Cmd.N)
		for i, at := range selected(args, 0, x[1].(*array)) {
			out.data[at] += in.data[i]
		}
	case device.Scan:
		out.data = slices.Clone(in.data)
		n := args.Shape[args.Kept]
		eachRow(args, n, func(from, to []int) {
			sums := make([]float64, n)
			kernel.Scan(k.Body.(kernel.Reducer), sums, at(in.data, from), args.Ints[0] == 1)
			for i, v := range sums {
				out.data[to[i]] = v
			}
		})
	case device.Rows:
		n := args.Shape[args.Kept]
		vectors := [2][]float64{}
		for i, v := range x[1:] {
			vectors[i] = v.(*array).data
		}
		out.data = slices.Clone(in.data)
		eachRow(args, n, func(from, to []int) {
			row := make([]float64, n)
			kernel.Row(k.Body.(kernel.RowFunc), row, at(in.data, from), kernel.Value[float64](p.Cmd.Imm[0]), vectors[0], vectors[1])
			for i, v := range row {
				out.data[to[i]] = v
			}
		})
	case device.ArgSort:
		out.data = make([]float64, p.Cmd.N)
		eachRow(args, args.Ints[0], func(from, to []int) {
			order := kernel.ArgSort(at(in.data, from), args.Ints[1] == 1)
			for i, place := range to {
				out.data[place] = float64(order[i])
			}
		})
	case device.Map: // As
		for _, v := range in.data {
			out.data = append(out.data, toFloat(k.Body.(*kernel.Expr).Eval([]uint64{kernel.BitsOf(v, in.dtype)}, nil), out.dtype))
		}
	case device.Copy:
		out.data = in.data
	}
	return out
}

// eachRow calls f for each row, with its places in the operand and in the result, where a row has length n.
func eachRow(args *device.Args, n int, f func(from, to []int)) {
	shape := slices.Clone(args.Shape)
	shape[args.Kept] = n
	from := placesOf(op.View{Shape: args.Shape, Strides: args.Strides[1]})
	to := placesOf(op.View{Shape: shape, Strides: args.Strides[0]})
	for i := range shape[:args.Kept].Size() {
		m := args.Shape[args.Kept]
		f(from[i*m:][:m], to[i*n:][:n])
	}
}

func at(data []float64, places []int) (x []float64) {
	for _, i := range places {
		x = append(x, data[i])
	}
	return x
}

// walkWindows calls f for each place of the result and each place of the window at which there is an
// element of the plane, with these three places.
func walkWindows(w *[2]device.Window, f func(i, j, k, l, row, column int)) {
	for _, index := range indices(device.Shape{w[0].Out, w[1].Out, w[0].Size, w[1].Size}) {
		row, ok := w[0].At(index[0], index[2])
		column, isToo := w[1].At(index[1], index[3])
		if ok && isToo && 0 <= row && row < w[0].In && 0 <= column && column < w[1].In {
			f(index[0], index[1], index[2], index[3], row, column)
		}
	}
}

// indices lists all indices into a shape, in row-major order.
func indices(shape device.Shape) [][]int {
	all := [][]int{{}}
	for _, n := range shape {
		var longer [][]int
		for _, index := range all {
			for i := range n {
				longer = append(longer, append(slices.Clone(index), i))
			}
		}
		all = longer
	}
	return all
}

// dot returns the place of the element with the given index.
func dot(strides []int, index ...int) (at int) {
	for i, k := range index {
		at += k * strides[i]
	}
	return at
}

// selected lists the places that the indices select in the operand with the given number.
func selected(args *device.Args, operand int, index *array) []int {
	places := placesOf(op.View{Shape: args.Shape, Strides: args.Strides[operand]})
	for i, at := range placesOf(op.View{Shape: args.Shape, Strides: args.Strides[2]}) {
		k := int(index.data[at])
		if k < 0 {
			k += args.Ints[0]
		}
		places[i] += k * args.Ints[1]
	}
	return places
}

// gather returns the elements that v sees.
func (a *array) gather(v op.View) *array {
	out := &array{v.Shape, a.dtype, nil}
	for _, at := range placesOf(v) {
		out.data = append(out.data, a.data[at])
	}
	return out
}

// placesOf lists the places of the elements of v, in order.
func placesOf(v op.View) []int {
	strides := v.Strides
	if strides == nil {
		strides = v.Shape.Strides()
	}
	places := []int{v.Off}
	for axis, n := range v.Shape {
		var more []int
		for _, at := range places {
			for i := range n {
				more = append(more, at+i*strides[axis])
			}
		}
		places = more
	}
	return places
}

// The gradient of every structural operation equals central differences. The interpreter carries out both.
func TestStructuralGradients(t *testing.T) {
	r := newRand(t)
	some := func(shape ...int) *array {
		a := &array{shape, device.Float64, nil}
		for range device.Shape(shape).Size() {
			a.data = append(a.data, 4*r.Float64()-2)
		}
		return a
	}
	withZero := some(2, 3)
	withZero.data[1], withZero.data[3], withZero.data[4] = 0, 0, 0
	indices := func(shape device.Shape, data ...float64) *array { return &array{shape, device.Int64, data} }
	one := &op.Window{Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 1}
	strange := &op.Window{Stride: [2]int{2, 2}, Pad: [2]int{1, 1}, Dilation: [2]int{1, 2}, Groups: 2}
	pool := &op.Window{Size: [2]int{3, 2}, Stride: [2]int{2, 1}, Pad: [2]int{1, 0}, Dilation: [2]int{1, 1}}
	tied := &array{device.Shape{2, 2}, device.Float64, []float64{1, 2, 3, 4}}
	for _, c := range []struct {
		d  *op.Def
		a  op.Attr
		in []*array
	}{
		{op.MatMul, op.Attr{}, []*array{some(2, 3), some(3, 2)}},
		{op.MatMul, op.Attr{}, []*array{some(3), some(3, 2)}},
		{op.MatMul, op.Attr{}, []*array{some(2, 3), some(3)}},
		{op.MatMul, op.Attr{}, []*array{some(2, 2, 3), some(2, 3, 2)}},
		{op.MatMul, op.Attr{}, []*array{some(2, 2, 3), some(3, 2)}},
		{op.MatMul, op.Attr{}, []*array{some(2, 3), some(2, 3, 2)}},
		{op.MatMul, op.Attr{}, []*array{some(2, 1, 2, 3), some(3, 3, 1)}},
		{op.MatMul, op.Attr{}, []*array{some(3), some(2, 3, 2)}},
		{op.MatMul, op.Attr{}, []*array{some(2, 2, 3), some(3)}},
		{op.Gather, op.Attr{Axis: 0}, []*array{some(3, 2), indices(device.Shape{2, 2}, 0, -1, 2, 2)}},
		{op.Gather, op.Attr{Axis: 1}, []*array{some(2, 3, 2), indices(device.Shape{}, 1)}},
		{op.Gather, op.Attr{Axis: 1, Shared: 1}, []*array{some(2, 3), indices(device.Shape{2}, 2, 0)}},
		{op.Gather, op.Attr{Axis: 2, Shared: 1}, []*array{some(2, 2, 3), indices(device.Shape{2, 2}, 2, 0, 1, 1)}},
		{op.ScatterAdd, op.Attr{Axis: 0, Shape: device.Shape{3, 2}}, []*array{some(4, 2), indices(device.Shape{4}, 0, 2, -1, 0)}},
		{op.ScatterAdd, op.Attr{Axis: 1, Shared: 1, Shape: device.Shape{2, 4}}, []*array{some(2), indices(device.Shape{2}, 3, 1)}},
		{op.Conv2D, op.Attr{Window: one}, []*array{some(2, 3, 4, 5), some(2, 3, 2, 3)}},
		{op.Conv2D, op.Attr{Window: strange}, []*array{some(4, 6, 5), some(6, 2, 3, 2)}},
		{op.ConvInput, op.Attr{Window: strange, Shape: device.Shape{2, 4, 6, 5}}, []*array{some(2, 6, 3, 3), some(6, 2, 3, 2)}},
		{op.ConvKernel, op.Attr{Window: strange, Shape: device.Shape{6, 2, 3, 2}}, []*array{some(2, 4, 6, 5), some(2, 6, 3, 3)}},
		{op.MaxPool2D, op.Attr{Window: pool}, []*array{some(2, 2, 5, 4)}},
		{op.SumPool2D, op.Attr{Window: pool}, []*array{some(3, 5, 4)}},
		{op.SpreadPool2D, op.Attr{Window: pool, Shape: device.Shape{5, 4}}, []*array{some(3, 3)}},
		{op.CumSum, op.Attr{}, []*array{some(2, 3)}},
		{op.CumSum, op.Attr{Axis: 1}, []*array{some(2, 3)}},
		{op.CumSum, op.Attr{Back: true}, []*array{some(4)}},
		{op.CumSum, op.Attr{Axis: 1, Back: true}, []*array{some(2, 3, 2)}},
		{op.Along, op.Attr{Axis: 1}, []*array{some(2, 3), indices(device.Shape{2, 2}, 2, 0, 1, 1)}},
		{op.Along, op.Attr{Axis: 0}, []*array{some(3, 2), indices(device.Shape{2, 2}, 2, 0, 1, 2)}},
		{op.AlongAdd, op.Attr{Axis: 1, Shape: device.Shape{2, 3}}, []*array{some(2, 2), indices(device.Shape{2, 2}, 2, 0, 1, 1)}},
		{op.TakeAlong, op.Attr{Axis: 1}, []*array{some(2, 3), indices(device.Shape{2, 2}, -1, 0, 1, 1)}},
		{op.AddAlong, op.Attr{Axis: 0, Shape: device.Shape{3, 2}}, []*array{some(2, 2), indices(device.Shape{2, 2}, 2, 0, -1, 1)}},
		{op.Softmax, op.Attr{Axis: 1}, []*array{some(2, 3)}},
		{op.LogSoftmax, op.Attr{Axis: 0}, []*array{some(2, 3)}},
		{op.LayerNorm, op.Attr{Axis: 1, Scalars: [2]float64{0.1}}, []*array{some(2, 3)}},
		{op.LayerNorm, op.Attr{Axis: 0, Scalars: [2]float64{0.1}}, []*array{some(3, 2), some(3)}},
		{op.LayerNorm, op.Attr{Axis: 1, Scalars: [2]float64{0.1}}, []*array{some(2, 3, 2), some(3), some(3)}},
		{op.RMSNorm, op.Attr{Axis: 0, Scalars: [2]float64{0.1}}, []*array{some(3)}},
		{op.RMSNorm, op.Attr{Axis: 1, Scalars: [2]float64{0.1}}, []*array{some(2, 3), some(3)}},
		{op.Linear, op.Attr{}, []*array{some(2, 3), some(3, 2), some(2)}},
		{op.Linear, op.Attr{}, []*array{some(3), some(3, 2), some(2)}},
		{op.LinearReLU, op.Attr{}, []*array{some(2, 2, 3), some(3, 4), some(4)}},
		{op.Concat, op.Attr{Axis: 0}, []*array{some(2, 2)}},
		{op.Sum, op.Attr{Axes: []int{0, 2}}, []*array{some(2, 3, 2)}},
		{op.Sum, op.Attr{Axes: []int{1}, Keep: true}, []*array{some(2, 3)}},
		{op.Prod, op.Attr{Axes: []int{1}}, []*array{some(2, 3)}},
		{op.Prod, op.Attr{Axes: []int{1}}, []*array{withZero}},
		{op.Max, op.Attr{Axes: []int{0}}, []*array{tied}},
		{op.Min, op.Attr{Axes: []int{0, 1}, Keep: true}, []*array{tied}},
		{op.As, op.Attr{DType: device.Float64}, []*array{some(2)}},
		{op.Contiguous, op.Attr{}, []*array{some(2)}},
		{op.Reshape, op.Attr{Shape: device.Shape{3, 2}}, []*array{some(2, 3)}},
		{op.Transpose, op.Attr{Axes: []int{2, 0, 1}}, []*array{some(2, 1, 3)}},
		{op.Slice, op.Attr{Axis: 1, From: 1, To: 3}, []*array{some(2, 4)}},
		{op.Slice, op.Attr{Axis: 1, From: 1, To: 7, Step: 2}, []*array{some(2, 7)}},
		{op.Slice, op.Attr{Axis: 0, From: 2, To: 2, Step: 3}, []*array{some(4)}},
		{op.Scatter, op.Attr{Axis: 0, From: 1, To: 4}, []*array{some(2, 2)}},
		{op.Scatter, op.Attr{Axis: 1, From: 1, To: 9, Step: 3, Key: kernel.Bits(2.5)}, []*array{some(2, 2)}},
		{op.Put, op.Attr{Axis: 1, From: 1}, []*array{some(2, 4), some(2, 2)}},
		{op.Put, op.Attr{Axis: 0, From: 1, Step: 2}, []*array{some(6, 2), some(3, 2)}},
		{op.Put, op.Attr{Axis: 0, From: 1, Step: 2}, []*array{some(3), some(0)}},
		{op.Row, op.Attr{From: 1}, []*array{some(2, 3)}},
		{op.BroadcastTo, op.Attr{Shape: device.Shape{2, 2, 3}}, []*array{some(2, 1)}},
		{op.To, op.Attr{}, []*array{some(2)}},
	} {
		run := func() *array {
			in := make([]op.Value, len(c.in))
			for i, a := range c.in {
				in[i] = a
			}
			return interpreter{}.Structural(c.d, c.a, in...).(*array)
		}
		out := run()
		weights := &array{out.shape, device.Float64, nil}
		for range out.data {
			weights.data = append(weights.data, 1+r.Float64())
		}
		call := op.Call{Def: c.d, Attr: c.a}
		for i, a := range c.in {
			call.In[i] = &op.Meta{Dims: a.shape, Type: a.dtype}
			if c.d.Saves>>i&1 != 0 {
				call.In[i] = a
			}
		}
		if c.d.Saves&op.SavesResult != 0 {
			call.Out = out
		}
		loss := func() (sum float64) {
			for i, v := range run().data {
				sum += v * weights.data[i]
			}
			return sum
		}
		for i, a := range c.in {
			if a.dtype == device.Int64 {
				continue // indices
			}
			if !c.d.Differentiable(a.dtype, out.dtype) {
				t.Errorf("%v has no gradient", c.d)
			}
			got := op.Pull(interpreter{}, &call, i, weights).(*array)
			if !got.shape.Equal(a.shape) {
				t.Errorf("%v: the gradient of operand %d has shape %v, want %v", c.d, i, got.shape, a.shape)
				continue
			}
			for k, v := range a.data {
				const h = 1e-6
				a.data[k] = v + h
				above := loss()
				a.data[k] = v - h
				want := (above - loss()) / (2 * h)
				a.data[k] = v
				if math.Abs(got.data[k]-want) > 1e-6 {
					t.Errorf("%v: operand %d, element %d: the gradient is %v, differences give %v", c.d, i, k, got.data[k], want)
					break
				}
			}
		}
	}
}

// The gradient of an operand that was broadcast is summed. That of an operand on which the result does not
// depend is nil.
func TestPullElementwise(t *testing.T) {
	x := &array{device.Shape{2, 1}, device.Float64, []float64{2, 3}}
	y := &array{device.Shape{3}, device.Float64, []float64{5, 7, 11}}
	g := &array{device.Shape{2, 3}, device.Float64, []float64{1, 1, 1, 1, 1, 1}}
	call := op.Call{Def: op.Mul, In: [op.MaxInputs]op.Value{x, y}}
	if got := op.Pull(interpreter{}, &call, 0, g).(*array); !slices.Equal(got.data, []float64{23, 23}) || !got.shape.Equal(x.shape) {
		t.Errorf("the gradient of x is %v", got)
	}
	if got := op.Pull(interpreter{}, &call, 1, g).(*array); !slices.Equal(got.data, []float64{5, 5, 5}) || !got.shape.Equal(y.shape) {
		t.Errorf("the gradient of y is %v", got)
	}
	call.Def = op.Add
	if got := op.Pull(interpreter{}, &call, 1, g).(*array); !slices.Equal(got.data, []float64{2, 2, 2}) {
		t.Errorf("the gradient of y in a sum is %v", got)
	}
	call = op.Call{Def: op.Floor, In: [op.MaxInputs]op.Value{y}}
	if got := op.Pull(interpreter{}, &call, 0, y); got != nil {
		t.Errorf("the gradient of Floor is %v", got)
	}
	third := op.Call{Def: op.AddMul, In: [op.MaxInputs]op.Value{y, y, &array{y.shape, y.dtype, []float64{1. / 5, 1. / 7, 1. / 11}}}}
	if got := op.Pull(interpreter{}, &third, 1, y).(*array); !slices.Equal(got.data, []float64{1, 1, 1}) {
		t.Errorf("with three operands the product is apart: %v", got)
	}
}

// Batching rules that VMap can't reach: for all examples they give what the operation gives for each.
func TestBatchedGradients(t *testing.T) {
	r := newRand(t)
	some := func(shape ...int) *array {
		a := &array{shape, device.Float64, nil}
		for range device.Shape(shape).Size() {
			a.data = append(a.data, float64(r.IntN(9)-4)) // so that sums are exact
		}
		return a
	}
	window := &op.Window{Stride: [2]int{2, 2}, Pad: [2]int{1, 1}, Dilation: [2]int{1, 2}, Groups: 2}
	pool := &op.Window{Size: [2]int{3, 2}, Stride: [2]int{2, 1}, Pad: [2]int{1, 0}, Dilation: [2]int{1, 1}}
	for _, c := range []struct {
		d      *op.Def
		a      op.Attr
		shapes []device.Shape
	}{
		{op.Conv2D, op.Attr{Window: window}, []device.Shape{{2, 4, 6, 5}, {6, 2, 3, 2}}},
		{op.ConvInput, op.Attr{Window: window, Shape: device.Shape{2, 4, 6, 5}}, []device.Shape{{2, 6, 3, 3}, {6, 2, 3, 2}}},
		{op.ConvInput, op.Attr{Window: window, Shape: device.Shape{4, 6, 5}}, []device.Shape{{6, 3, 3}, {6, 2, 3, 2}}},
		{op.ConvKernel, op.Attr{Window: window, Shape: device.Shape{6, 2, 3, 2}}, []device.Shape{{2, 4, 6, 5}, {2, 6, 3, 3}}},
		{op.ConvKernel, op.Attr{Window: window, Shape: device.Shape{6, 2, 3, 2}}, []device.Shape{{4, 6, 5}, {6, 3, 3}}},
		{op.ArgMaxPool2D, op.Attr{Window: pool}, []device.Shape{{2, 5, 4}}},
		{op.SpreadPool2D, op.Attr{Window: pool, Shape: device.Shape{2, 5, 4}}, []device.Shape{{2, 3, 3}}},
	} {
		const n = 3
		for has := uint8(1); has < 1<<len(c.shapes); has++ {
			batch := &op.Batch{Def: c.d, Attr: c.a, Has: has, N: n}
			for i, shape := range c.shapes {
				if has>>i&1 != 0 {
					shape = append(device.Shape{n}, shape...)
				}
				batch.In = append(batch.In, some(shape...))
			}
			got := op.Batched(interpreter{}, batch).(*array)
			var want array
			for example := range n {
				var in []op.Value
				for i, x := range batch.In {
					if a := x.(*array); has>>i&1 != 0 {
						size := c.shapes[i].Size()
						x = &array{c.shapes[i], a.dtype, a.data[example*size:][:size]}
					}
					in = append(in, x)
				}
				one := interpreter{}.Structural(c.d, c.a, in...).(*array)
				want.shape, want.data = append(device.Shape{n}, one.shape...), append(want.data, one.data...)
			}
			if !got.shape.Equal(want.shape) || !slices.Equal(got.data, want.data) {
				t.Errorf("%v, operands %b of %v: %v %v, want %v %v", c.d, has, c.shapes, got.shape, got.data, want.shape, want.data)
			}
		}
	}
}
