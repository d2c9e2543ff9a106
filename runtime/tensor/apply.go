package tensor

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/internal/tape"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Every operation passes through this file: it checks the operands, makes the result, enqueues the command and
// records the node of a tracked result.

type operands = [op.MaxInputs]*Tensor

// elementwise enqueues d on the operands in, with the given constants. If one of them is the row of a VMap, it does
// so for all rows. The result can be tracked only if tracking is set.
func elementwise(d *op.Def, scalars [2]float64, in operands, tracking bool) *Tensor {
	hasRow := false
	for _, x := range in[:d.Tensors] {
		if x == nil {
			wrong(d.Name, op.MistakeNil)
		}
		hasRow = x.isRow(d.Name) || hasRow
	}
	if hasRow {
		return batched(d, op.Attr{Scalars: scalars}, in[:d.Tensors], tracking)
	}
	return mapped(d, scalars, in, tracking)
}

// mapped is elementwise without the check for rows and for handles that the program has declared Dead: the library
// may still use those.
func mapped(d *op.Def, scalars [2]float64, in operands, tracking bool) *Tensor {
	n := d.Tensors
	first, dt := in[0], in[n-1].dtype
	if !d.Types.Has(dt) {
		wrong(d.Name, op.Unsupported(d.Types), in[:n]...)
	}
	shape, dev, plain, tracked, lazy := first.shape, first.storage.Device(), true, false, false
	for i, x := range in[:n] {
		want := dt
		if d.Cond && i == 0 {
			want = device.Bool
		}
		if x.dtype != want {
			if want == device.Bool {
				wrong(d.Name, op.MistakeCondition, in[:n]...)
			}
			wrong(d.Name, op.MistakeDTypes, in[:n]...)
		}
		same := true
		if dev, same = device.Join(dev, x.storage.Device()); !same {
			wrong(d.Name, op.MistakeDevices, in[:n]...)
		}
		tracked = tracked || x.node != nil
		lazy = lazy || x.lazy != isEager
		plain = plain && x.strides == nil
		if i > 0 && !slices.Equal(shape, x.shape) {
			plain = false
			var ok bool
			if shape, ok = op.Broadcast(shape, x.shape); !ok {
				wrong(d.Name, op.MistakeBroadcast, in[:n]...)
			}
			if _, ok = sizeOf(shape); !ok {
				panic(impossible(d.Name, shape))
			}
		}
	}

	var o engine.Op
	for i := range d.Scalars {
		o.Cmd.Imm[i] = immediate(d, scalars[i], in[:n])
	}
	tracked = tracked && tracking
	if lazy {
		if !d.Fails || dt.IsFloat() { // an operation that fails by itself names itself
			out := putOff(d.Kernel(dt), o.Cmd.Imm, d.Scalars, in[:n], dev, d.Elements(dt), shape)
			if tracked {
				record(out, d, op.Attr{Scalars: scalars}, in)
				if out.node != nil && op.IsDear(d.Kernel(dt)) {
					out.now() // for the gradient
				}
			}
			return out
		}
		for i, x := range in[:n] {
			in[i] = x.now()
		}
	}
	out := newResult(dev, d.Elements(dt), shape, tracked)
	o.Cmd.Kernel, o.Cmd.N, o.Cost = d.Kernel(dt), out.size, int64(out.size)
	o.Operands[0], o.Shapes[0] = out.storage, &out.shape
	for i, x := range in[:n] {
		o.Operands[i+1], o.Shapes[i+1], o.Cmd.Off[i+1] = x.storage, &x.shape, x.off
	}
	if !plain {
		o.Cmd.Args = broadcastArgs(out.shape, in[:n])
	}
	eng().Enqueue(&o)
	if tracked {
		record(out, d, op.Attr{Scalars: scalars}, in)
	}
	return out
}

// broadcastArgs returns the Args of a Map command over shape. They have strides for the operands that are broadcast
// or not contiguous.
func broadcastArgs(shape device.Shape, in []*Tensor) *device.Args {
	args := &device.Args{Shape: shape}
	for i, x := range in {
		if x.strides != nil || !slices.Equal(shape, x.shape) {
			args.Strides[i+1] = x.view().BroadcastStrides(shape)
		}
	}
	return args
}

// immediate returns the bits of the constant c as an operand of d. c is converted to the element type
// of the last tensor, and the bits are those of the type that its elements are computed in. For an
// integer type it panics if c is not one of the type's numbers; see notInt.
func immediate(d *op.Def, c float64, in []*Tensor) uint64 {
	switch dt := in[len(in)-1].dtype; dt {
	case device.Float32:
		return uint64(math.Float32bits(float32(c)))
	case device.Float64:
		return math.Float64bits(c)
	case device.Float16, device.BFloat16:
		return kernel.WideBits(kernel.BitsOf(c, dt), dt)
	default:
		text := notInt(c)
		if text == "" {
			text = notSmall(int64(c), dt)
		}
		if text != "" {
			wrong(d.Name, text, in...)
		}
		return kernel.Bits(int64(c))
	}
}

// notInt returns why c can't be an int64 constant, or "" if it can. From 2^53 on, several integers round to one
// float64, so it is unknown which of them the program meant.
func notInt(c float64) string {
	switch {
	case c != math.Trunc(c) || c < math.MinInt64 || c >= -math.MinInt64:
		return op.MistakeScalar
	case math.Abs(c) >= 1<<53:
		return op.MistakeExact + ": FullInt, AddInt and the like take an int64"
	}
	return ""
}

// notSmall returns why c can't be a constant of type dt, of integers, or "" if it can.
func notSmall(c int64, dt DType) string {
	if dt.IsStorage() && int64(kernel.WideBits(uint64(c), dt)) != c {
		return fmt.Sprintf("%s: %d is no %v", op.MistakeRounds, c, dt)
	}
	return ""
}

// structural enqueues d on the operands in, or returns a view if d has one. If one of the operands is the row of a
// VMap, it does so for all rows. The result can be tracked only if tracking is set.
func structural(d *op.Def, a op.Attr, in operands, tracking bool) *Tensor {
	hasRow, n := false, 0
	for ; n < len(in) && in[n] != nil; n++ {
		hasRow = in[n].isRow(d.Name) || hasRow
	}
	if hasRow {
		return batched(d, a, in[:n], tracking)
	}
	return planned(d, a, in, tracking)
}

// planned is structural without the check for rows and for handles that the program has declared Dead: the library
// may still use those.
func planned(d *op.Def, a op.Attr, in operands, tracking bool) *Tensor {
	tracking = tracking && slices.ContainsFunc(in[:], func(x *Tensor) bool { return x != nil && x.node != nil })
	var out *Tensor
	switch {
	case d.View != nil:
		attr := a // a copy, because its address escapes
		out = viewOf(d, &attr, in[0].now())
	case d == op.As && in[0].lazy != isEager:
		x := in[0]
		out = putOff(op.Cast(x.dtype, a.DType), [2]uint64{}, 0, in[:1], x.storage.Device(), a.DType, x.shape)
	case d == op.To:
		out = in[0].move(a.Device)
	case d == op.Scatter:
		out = scatter(a, in[0])
	case d == attention:
		out = a.Local.(*attending).forward(in[0], in[1], in[2])
	case d == op.Put:
		out = putOver(a, in[0], in[1])
	default:
		if d == op.Sum && in[0].lazy != isEager {
			out = in[0].sumLazily(a, tracking)
		}
		if out == nil {
			out = run(d, a, device.Device{}, in, tracking)
		}
	}
	if tracking {
		record(out, d, a, in)
	}
	return out
}

// create enqueues d, which has no operands, on dev.
func create(d *op.Def, a op.Attr, dev device.Device) *Tensor {
	return run(d, a, dev, operands{}, false)
}

// run enqueues the command of d, on the device of the operands, or on dev if there are none. tracked says that the
// caller may record the result for gradients.
func run(d *op.Def, a op.Attr, dev device.Device, in operands, tracked bool) *Tensor {
	p := plans.Get().(*op.Plan)
	p.Attr = a
	n := 0
	for ; n < len(in) && in[n] != nil; n++ {
		in[n] = in[n].now()
		x := in[n]
		p.In[n], p.Types[n] = x.view(), x.dtype
		if want := d.Operand(n, in[0].dtype); x.dtype != want {
			if d.Indexed && n == 1 {
				wrong(d.Name, op.MistakeIndices, in[:n+1]...)
			}
			wrong(d.Name, op.MistakeDTypes, in[:n+1]...)
		}
		on, same := x.storage.Device(), true
		if n > 0 {
			on, same = device.Join(dev, on)
		}
		if dev = on; !same {
			wrong(d.Name, op.MistakeDevices, in[:n+1]...)
		}
	}
	if n > 0 && !d.Types.Has(in[0].dtype) {
		wrong(d.Name, op.Unsupported(d.Types), in[:n]...)
	}
	d.Run(p)
	if _, ok := sizeOf(p.Shape); !ok {
		panic(impossible(d.Name, p.Shape))
	}
	if n > 0 && in[0].dtype.IsStorage() && d.Widens() && !p.Wide {
		dt := p.DType
		*p = op.Plan{}
		plans.Put(p)
		return inWider(d, a, in, dt, tracked)
	}

	out := newResult(dev, p.DType, p.Shape, tracked && !p.Wide)
	o := engine.Op{Cmd: p.Cmd, Cost: p.Cost}
	o.Operands[0], o.Shapes[0] = out.storage, &out.shape
	for i, x := range in[:n] {
		o.Operands[i+1], o.Shapes[i+1], o.Cmd.Off[i+1] = x.storage, &x.shape, x.off
	}
	eng().Enqueue(&o)
	isWide := p.Wide
	*p = op.Plan{}
	plans.Put(p)
	if isWide {
		return out.turnInto(in[0].dtype, tracked)
	}
	return out
}

// inWider runs d on operands of a type for storage: it converts them to the type that they are computed in, and the
// result to dt.
func inWider(d *op.Def, a op.Attr, in operands, dt DType, tracked bool) *Tensor {
	for i, x := range in {
		if x != nil && x.dtype.IsStorage() {
			in[i] = run(op.As, op.Attr{DType: x.dtype.Wide()}, device.Device{}, operands{x}, false)
			defer in[i].letGo()
		}
	}
	out := run(d, a, device.Device{}, in, tracked && !dt.IsStorage())
	if out.dtype == dt {
		return out
	}
	return out.turnInto(dt, tracked)
}

// turnInto returns t converted to dt, and lets go of t. tracked is as in run.
func (t *Tensor) turnInto(dt DType, tracked bool) *Tensor {
	defer t.letGo()
	return run(op.As, op.Attr{DType: dt}, device.Device{}, operands{t}, tracked)
}

// inWide returns f of t, converted back to t's type. If that is a type for storage, f gets t in the type that t is
// computed in, so that the result is rounded once, however many operations f enqueues.
func (t *Tensor) inWide(f func(t *Tensor) *Tensor) *Tensor {
	if !t.dtype.IsStorage() {
		return f(t)
	}
	return inWide([]*Tensor{t}, func(x []*Tensor) *Tensor { return f(x[0]) })
}

// inWide is the method of this name for a function of several tensors, which have one type.
func inWide(in []*Tensor, f func(x []*Tensor) *Tensor) *Tensor {
	dt := in[0].dtype
	if !dt.IsStorage() {
		return f(in)
	}
	wide := make([]*Tensor, len(in))
	for i, x := range in {
		wide[i] = x.widened()
	}
	defer letGo(wide...)
	y := f(wide)
	defer y.letGo()
	return structural(op.As, op.Attr{DType: dt}, operands{y}, true)
}

// widened returns t, of a type for storage, in the type that its elements are computed in.
func (t *Tensor) widened() *Tensor {
	return structural(op.As, op.Attr{DType: t.dtype.Wide()}, operands{t}, true)
}

// plans holds empty Plans, so that run need not allocate one each time. A Plan whose Run panics is not put back.
var plans = sync.Pool{New: func() any { return new(op.Plan) }}

// viewOf returns the view d of x. If d can't be a view of x's strides, it returns a view of a contiguous copy of x.
func viewOf(d *op.Def, a *op.Attr, x *Tensor) *Tensor {
	v, ok := d.View(a, x.view())
	if ok {
		x.hold()
	} else {
		x = contiguous(x, x.storage.Device()) // the view takes over the copy's only holder
		v, _ = d.View(a, x.view())
	}
	for _, step := range v.Strides {
		if step < 0 {
			panic(fmt.Sprintf("op: %s has a view with strides %v, want none below 0: Run can copy instead", d.Name, v.Strides))
		}
	}
	return &Tensor{storage: x.storage, shape: v.Shape, strides: v.Strides, off: v.Off, size: v.Shape.Size(), dtype: x.dtype}
}

// contiguous returns a copy of x in row-major order without gaps. dev is the device of x, perhaps in other scopes.
// The copy belongs to the scopes of dev.
func contiguous(x *Tensor, dev device.Device) *Tensor {
	x = x.now()
	p := plans.Get().(*op.Plan)
	p.In[0], p.Types[0] = x.view(), x.dtype
	op.Contiguous.Run(p)
	out := newResult(dev, p.DType, p.Shape, false)
	o := engine.Op{Cmd: p.Cmd, Cost: p.Cost}
	o.Operands = [device.MaxOperands]*engine.Storage{out.storage, x.storage}
	o.Shapes = [device.MaxOperands]*device.Shape{&out.shape, &x.shape}
	o.Cmd.Off[1] = x.off
	eng().Enqueue(&o)
	*p = op.Plan{}
	plans.Put(p)
	return out
}

// scatter runs op.Scatter as two commands: it fills a tensor, then copies x over a part of it.
func scatter(a op.Attr, x *Tensor) *Tensor {
	shape := x.Shape()
	shape[a.Axis] = a.To
	whole := create(op.Fill, op.Attr{Shape: shape, DType: x.dtype, Key: a.Key}, x.storage.Device())
	put(op.Contiguous, whole, x, a.Axis, a.From, max(a.Step, 1), true)
	return whole
}

// putOver runs op.Put as two commands: it copies x, then y over a part of the copy.
func putOver(a op.Attr, x, y *Tensor) *Tensor {
	if x.dtype != y.dtype {
		wrong("Put", op.MistakeDTypes, x, y)
	}
	dev, same := device.Join(x.storage.Device(), y.storage.Device())
	if !same {
		wrong("Put", op.MistakeDevices, x, y)
	}
	whole := contiguous(x, dev)
	put(op.Contiguous, whole, y, a.Axis, a.From, max(a.Step, 1), true)
	return whole
}

// put copies x into whole, with the command of d, from the given index of an axis on, to every one of step
// places. If keeps is set, whole already has elements or an error: those stay. Otherwise nothing was written to
// whole before.
func put(d *op.Def, whole, x *Tensor, axis, from, step int, keeps bool) {
	x = x.now()
	p := op.Plan{In: [op.MaxInputs]op.View{x.view()}, Types: [op.MaxInputs]device.DType{x.dtype}}
	d.Run(&p)
	o := engine.Op{Cmd: p.Cmd, Cost: p.Cost}
	o.Operands = [device.MaxOperands]*engine.Storage{whole.storage, x.storage}
	o.Shapes = [device.MaxOperands]*device.Shape{&whole.shape, &x.shape}
	if keeps {
		o.Operands[2] = whole.storage
	}
	steps := whole.shape.Strides()
	if x.size > 0 { // an empty part may lie behind the end of whole
		o.Cmd.Off[0], o.Cmd.Off[1] = from*steps[axis], x.off
	}
	if step > 1 || x.shape[:axis].Size() > 1 { // otherwise the part is contiguous in whole
		args := device.Args{Shape: x.shape}
		if o.Cmd.Args != nil {
			args = *o.Cmd.Args
		}
		steps[axis] *= step
		args.Strides[0] = steps
		o.Cmd.Args = &args
	}
	eng().Enqueue(&o)
}

// move returns t's elements on another device, or in more scopes. If t is there already, the result is another
// handle.
func (t *Tensor) move(to device.Device) *Tensor {
	from := t.storage.Device()
	if to = to.Within(from); to == from {
		return t.detached()
	}
	return t.copyTo(to)
}

// copyTo returns a copy of t's elements on a device. The copy belongs to the scopes of to and to no others. So does
// the contiguous copy that it needs in between if t has strides.
func (t *Tensor) copyTo(to device.Device) *Tensor {
	t = t.now()
	x := t
	if t.strides != nil {
		x = contiguous(t, t.storage.Device().Unscoped().Within(to))
	}
	s := eng().Copy(x.storage, x.off, x.size, x.dtype, to)
	if x != t {
		x.letGo()
	}
	return &Tensor{storage: s, shape: x.Shape(), size: x.size, dtype: x.dtype}
}

// record makes out tracked if d has a gradient with respect to a tracked operand. out is the result of d on in.
func record(out *Tensor, d *op.Def, a op.Attr, in operands) {
	call := op.Call{Def: d, Attr: a, Lazy: out.lazy != isEager, Out: out}
	var parents [op.MaxInputs]*tape.Node
	tracked := false
	for i, x := range in {
		if x == nil {
			continue
		}
		call.In[i] = x
		if x.node != nil && d.Differentiable(x.dtype, out.dtype) {
			parents[i] = x.node
			tracked = true
		}
	}
	if tracked {
		out.node = tape.Record(keeper{}, call, parents)
	}
}

// keeper counts the users of tensors. It is never given a Meta, which has no memory.
type keeper struct{}

func (keeper) Hold(v op.Value)  { v.(*Tensor).hold() }
func (keeper) LetGo(v op.Value) { v.(*Tensor).letGo() }

// builder builds gradients. If tracking is set, the gradients of tracked values are tracked, so that they can be
// differentiated again.
type builder struct {
	keeper
	tracking bool
	made     []*Tensor             // since the last Settle
	each     func(params []*Param) // of BackwardEach; nil: there is none
}

var _ tape.Builder = (*builder)(nil)

func (b *builder) Elementwise(d *op.Def, scalars [2]float64, x ...op.Value) op.Value {
	return b.note(mapped(d, scalars, tensors(x), b.tracking))
}

func (b *builder) Structural(d *op.Def, a op.Attr, x ...op.Value) op.Value {
	return b.note(planned(d, a, tensors(x), b.tracking))
}

func (b *builder) Zeros(x op.Value) op.Value { return b.note(zerosLike(x.(*Tensor))) }

func (b *builder) note(t *Tensor) *Tensor {
	b.made = append(b.made, t)
	return t
}

func (b *builder) Settle(v op.Value) {
	isMade := false
	for _, t := range b.made {
		if op.Value(t) == v {
			isMade = true
			continue
		}
		t.letGo()
	}
	if v != nil && !isMade {
		b.Hold(v)
	}
	clear(b.made)
	b.made = b.made[:0]
}

func (b *builder) Like(lazy bool, uses int, v op.Value) op.Value {
	t := v.(*Tensor)
	switch {
	case lazy && t.isWorthStoring(uses):
		defer t.letGo()
		return t.stored()
	case lazy == (t.lazy != isEager):
		return v
	case lazy:
		defer t.letGo()
		return t.leader()
	}
	defer t.letGo()
	return t.eager()
}

func zerosLike(x *Tensor) *Tensor {
	return create(op.Fill, op.Attr{Shape: x.shape, DType: x.dtype}, x.storage.Device())
}

func tensors(values []op.Value) (in operands) {
	for i, v := range values {
		in[i] = v.(*Tensor)
	}
	return in
}
