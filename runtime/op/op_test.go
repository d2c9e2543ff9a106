package op_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/op"
)

var seed = flag.Uint64("seed", 1, "seed of the randomised tests")

func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	t.Logf("seed %d (go test -run '%s' -seed N)", *seed, t.Name())
	return rand.New(rand.NewPCG(*seed, 0))
}

// Every definition is complete, and no two have the same name.
func TestDefinitions(t *testing.T) {
	names := map[string]bool{}
	for _, d := range op.List() {
		switch {
		case d.Name == "" || names[d.Name]:
			t.Errorf("%q: no name, or one that another has", d.Name)
		case d.Types == 0:
			t.Errorf("%v works on no type", d)
		case d.Expr != nil && (d.View != nil || d.Run != nil || d.VJP != nil):
			t.Errorf("%v is elementwise and structural", d)
		case d.Expr != nil && (d.Ref == nil || d.Tensors < 1 || d.Tensors > op.MaxInputs):
			t.Errorf("%v: an elementwise operation has operands and a reference", d)
		case (d.Grad != nil) != (d.Why != ""):
			t.Errorf("%v: a gradient of its own has a reason, and nothing else does", d)
		case d.Unlisted == (d.Doc != ""):
			t.Errorf("%v: what is a method has a doc comment, and nothing else does", d)
		case d.Doc != "" && !strings.HasSuffix(d.Doc, "."):
			t.Errorf("%v: the doc comment does not end: %s", d, d.Doc)
		case d.Expr == nil && d.View == nil && d.Run == nil && d != op.To && d != op.Scatter && d != op.Put:
			t.Errorf("%v does nothing", d)
		case (d.Expr != nil || !takesTensors(d) || d == op.Concat) == (d.Batch != nil):
			t.Errorf("%v: a structural operation on tensors has a batching rule, and nothing else does", d)
		}
		names[d.Name] = true
	}
}

// takesTensors reports whether an operation has operands, not only a shape.
func takesTensors(d *op.Def) bool {
	switch d {
	case op.Fill, op.Iota, op.Uniform, op.Normal, op.Ints:
		return false
	}
	return true
}

// Expressions, evaluated one by one without a device, give what the references give.
func TestExpressions(t *testing.T) {
	r := newRand(t)
	for _, isStorage := range []bool{false, true} {
		for _, d := range op.List() {
			for _, dt := range device.DTypes() {
				if d.Expr != nil && d.Types.Has(dt) && dt.IsStorage() == isStorage {
					checkExpression(t, r, d, dt)
				}
			}
		}
	}
}

// checkExpression compares the expression of d for elements of type dt with d.Ref.
func checkExpression(t *testing.T, r *rand.Rand, d *op.Def, dt device.DType) {
	t.Helper()
	k := d.Kernel(dt)
	if k != d.Kernel(dt) {
		t.Errorf("%v: another kernel every time", d)
	}
	e := k.Body.(*kernel.Expr)
	for range 200 {
		args, bits := arguments(r, d, dt)
		got := kernel.Value[float64](eval(kernel.Cast(e, device.Float64), bits, d.Tensors))
		want := d.Ref(args...)
		switch dt.Wide() {
		case device.Float32:
			want = float64(float32(want))
		case device.Int64:
			want = math.Trunc(want)
		}
		ulp := math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want)
		allowed := (d.ULP + 0.5) * ulp
		if dt.Wide() == device.Float32 {
			allowed *= 1 << 29
		}
		if out := d.Elements(dt); out.IsFloat() && out.IsStorage() {
			// One rounding more, of numbers with 11 or 8 digits. It may overflow, and small ones have fewer digits.
			if value(kernel.BitsOf(want, out), out) == got {
				continue
			}
			allowed += ulp * map[device.DType]float64{device.Float16: 1 << 41, device.BFloat16: 1 << 44}[out]
		}
		if !(math.Abs(got-want) <= allowed) {
			t.Errorf("%v of %v %v is %v, want %v", d, dt, args, got, want)
			return
		}
	}
}

// eval evaluates e for operands and then constants.
func eval(e *kernel.Expr, bits []uint64, tensors int) uint64 {
	return e.Eval(bits[:tensors], append(slices.Clone(bits[tensors:]), 0, 0))
}

// value returns the value of type dt with these Bits as a float64.
func value(bits uint64, dt device.DType) float64 {
	return kernel.Value[float64](kernel.Cast(kernel.Arg(0, dt), device.Float64).Eval([]uint64{bits}, nil))
}

// arguments draws operands and constants of d from its domain, in the type dt.
func arguments(r *rand.Rand, d *op.Def, dt device.DType) (args []float64, bits []uint64) {
	for i := range d.Tensors + d.Scalars {
		in := op.Interval{Lo: -10, Hi: 10}
		if len(d.Domain) > 0 {
			in = d.Domain[min(i, len(d.Domain)-1)]
		}
		v, of := in.Lo+(in.Hi-in.Lo)*r.Float64(), dt
		if d.Cond && i == 0 {
			of = device.Bool
		}
		switch of.Wide() {
		case device.Int64:
			v = math.Round(v)
		case device.Bool:
			v = float64(r.IntN(2))
		}
		b := kernel.BitsOf(v, of)
		args = append(args, value(b, of))
		if i >= d.Tensors {
			b = kernel.WideBits(b, of)
		}
		bits = append(bits, b)
	}
	return args, bits
}

// The gradient with respect to each operand equals central differences of the expression, times the
// gradient with respect to the result.
func TestGradients(t *testing.T) {
	r := newRand(t)
	for _, d := range op.List() {
		if d.Expr == nil || d.Bool || !d.Types.Has(device.Float64) {
			continue
		}
		e := d.Kernel(device.Float64).Body.(*kernel.Expr)
		for i := range d.Tensors {
			if d.Cond && i == 0 {
				continue
			}
			for range 50 {
				args, bits := arguments(r, d, device.Float64)
				at := func(v float64) float64 {
					moved := slices.Clone(bits)
					moved[i] = kernel.Bits(v)
					return kernel.Value[float64](eval(e, moved, d.Tensors))
				}
				h := 1e-6 * max(1, math.Abs(args[i]))
				want := 3 * (at(args[i]+h) - at(args[i]-h)) / (2 * h)
				got := 0.0
				if g := d.Gradient(i); g.Def != nil {
					var in []uint64
					for _, operand := range g.In {
						switch operand {
						case d.Tensors:
							in = append(in, eval(e, bits, d.Tensors))
						case d.Tensors + 1:
							in = append(in, kernel.Bits(3.0))
						default:
							in = append(in, bits[operand])
						}
					}
					ge := g.Def.Kernel(device.Float64).Body.(*kernel.Expr)
					got = kernel.Value[float64](ge.Eval(in, append(slices.Clone(bits[d.Tensors:]), 0, 0)))
					if g.Times {
						got *= 3
					}
				}
				if !(math.Abs(got-want) <= 1e-4*max(1, math.Abs(want), math.Abs(at(args[i])))) {
					t.Errorf("%v of %v: the derivative by operand %d is %v, differences give %v", d, args, i, got/3, want/3)
					break
				}
			}
		}
	}
}

// Needed returns exactly the values that gradients look at.
func TestNeeded(t *testing.T) {
	for _, c := range []struct {
		d             *op.Def
		tracked, want uint8
	}{
		{op.Add, 3, 0}, {op.Mul, 1, 2}, {op.Mul, 3, 3}, {op.Exp, 1, op.SavesResult}, {op.ReLU, 1, op.SavesResult}, {op.Sigmoid, 1, op.SavesResult}, {op.Log, 1, 1}, {op.Square, 1, 1}, {op.GELU, 1, 1}, {op.Floor, 1, 0}, {op.Where, 6, 1}, {op.AddScalar, 1, 0},
		{op.Sum, 1, 0}, {op.Max, 1, 1 | op.SavesResult}, {op.Reshape, 1, 0},
	} {
		if got := c.d.Needed(c.tracked); got != c.want {
			t.Errorf("%v: needs %b, want %b", c.d, got, c.want)
		}
	}
}

func TestBroadcast(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"[]", "[]", "[]"}, {"[2 3]", "[3]", "[2 3]"}, {"[3]", "[2 1]", "[2 3]"}, {"[0]", "[1]", "[0]"}, {"[1 2]", "[3 1 1]", "[3 1 2]"},
		{"[2]", "[3]", "no"}, {"[0]", "[2]", "no"}, {"[2 3]", "[2]", "no"},
	} {
		got := "no"
		if s, ok := op.Broadcast(parse(c.a), parse(c.b)); ok {
			got = s.String()
		}
		if got != c.want {
			t.Errorf("%s and %s: %s, want %s", c.a, c.b, got, c.want)
		}
	}
}

func parse(s string) device.Shape {
	shape := device.Shape{}
	for word := range strings.FieldsSeq(strings.Trim(s, "[]")) {
		var n int
		fmt.Sscan(word, &n)
		shape = append(shape, n)
	}
	return shape
}

// Views of views have the elements that copies without gaps would have.
func TestViewStrides(t *testing.T) {
	whole := op.View{Shape: device.Shape{2, 3, 4}}
	flip, _ := op.Transpose.View(&op.Attr{Axes: []int{2, 0, 1}}, whole)
	if got := fmt.Sprint(flip); got != "{[4 2 3] [1 12 4] 0}" {
		t.Errorf("Transpose: %s", got)
	}
	back, _ := op.Transpose.View(&op.Attr{Axes: []int{1, 2, 0}}, flip)
	if back.Strides != nil {
		t.Errorf("there and back again: %v", back)
	}
	merged, ok := op.Reshape.View(&op.Attr{Shape: device.Shape{4, 6}}, flip)
	if got := fmt.Sprint(merged, ok); got != "{[4 6] [1 4] 0} true" {
		t.Errorf("Reshape that merges: %s", got)
	}
	if _, ok := op.Reshape.View(&op.Attr{Shape: device.Shape{24}}, flip); ok {
		t.Error("Reshape of what lies in another order")
	}
	part, _ := op.Slice.View(&op.Attr{Axis: 1, From: 1, To: 2}, whole)
	if got := fmt.Sprint(part); got != "{[2 1 4] [12 4 1] 4}" {
		t.Errorf("Slice: %s", got)
	}
	row, _ := op.Row.View(&op.Attr{From: 1}, whole)
	if got := fmt.Sprint(row); got != "{[3 4] [] 12}" {
		t.Errorf("Row: %s", got)
	}
	wide, _ := op.BroadcastTo.View(&op.Attr{Shape: device.Shape{5, 1, 4}}, op.View{Shape: device.Shape{1, 4}})
	if got := fmt.Sprint(wide); got != "{[5 1 4] [0 0 1] 0}" {
		t.Errorf("BroadcastTo: %s", got)
	}
}

// The commands that structural operations plan.
func TestPlans(t *testing.T) {
	p := &op.Plan{
		In:    [op.MaxInputs]op.View{{Shape: device.Shape{2, 3}, Strides: []int{1, 2}}, {Shape: device.Shape{3}}},
		Types: [op.MaxInputs]device.DType{device.Float32, device.Float32},
	}
	op.MatMul.Run(p)
	if got := fmt.Sprint(p.Shape, p.Cmd.N, p.Cmd.Args.Ints, p.Cmd.Args.Strides); got != "[2] 2 [2 1 3] [[] [1 2] [1 0] []]" {
		t.Errorf("MatMul: %s", got)
	}
	p = &op.Plan{
		Attr:  op.Attr{Axes: []int{0}, Keep: true},
		In:    [op.MaxInputs]op.View{{Shape: device.Shape{2, 3}}},
		Types: [op.MaxInputs]device.DType{device.Int64},
	}
	op.Sum.Run(p)
	if got := fmt.Sprint(p.Shape, p.Cmd.N, p.Cmd.Args.Shape, p.Cmd.Args.Kept, p.Cmd.Args.Strides); got != "[1 3] 3 [3 2] 1 [[] [1 3] [] []]" {
		t.Errorf("Sum: %s", got)
	}
	p = &op.Plan{Attr: op.Attr{Shape: device.Shape{4}, DType: device.Int64, From: -1, To: 5, Key: 7, Pos: 9}}
	op.Ints.Run(p)
	if got := fmt.Sprint(p.Cmd.N, p.Cmd.Imm, p.Cmd.Args.Ints); got != "4 [7 9] [-1 5]" {
		t.Errorf("Ints: %s", got)
	}
}

func TestMistake(t *testing.T) {
	defer func() {
		m, ok := recover().(*op.Mistake)
		if want := "tensor: MatMul: " + op.MistakeMatMul + ": float32[2 3], float32[2 3]"; !ok || m.Error() != want {
			t.Errorf("got %v, want %s", m, want)
		}
	}()
	v := op.View{Shape: device.Shape{2, 3}}
	op.MatMul.Run(&op.Plan{In: [op.MaxInputs]op.View{v, v}, Types: [op.MaxInputs]device.DType{device.Float32, device.Float32}})
}

func TestTypes(t *testing.T) {
	for got, want := range map[string]string{
		op.FullFloats.String(): "float32 or float64", op.All.String(): "float32 or float64 or int64 or bool or float16 or bfloat16 or int32 or uint8", op.Types(0).String(): "",
		op.Add.String(): "Add", fmt.Sprint(op.Eq.Elements(device.Int64), op.Add.Elements(device.Int64)): "bool int64",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A definition whose expression has the wrong type is found when it is first used.
func TestWrongType(t *testing.T) {
	defer func() {
		if got, want := recover(), "op: Broken of float32 makes bool"; got != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}()
	d := &op.Def{Name: "Broken", Tensors: 1, Types: op.Floats, Expr: func(x ...*kernel.Expr) *kernel.Expr { return kernel.Eq(x[0], x[0]) }}
	d.Kernel(device.Float32)
}
