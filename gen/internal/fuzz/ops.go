package fuzz

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

// An operation is something that programs compute: how it is written and, a
// second time, what it gives.
type operation struct {
	// source has $0, $1, ... for the operands, {r} and {c} for the numbers of
	// rows and columns, {T} and {t} for the element type as the library and as
	// Go call it.
	source string
	result kind
	args   []kind
	weight int
	reads  bool // it waits for a value
	device bool // it is work for the device
	cells  bool // it looks at, or changes, what the device's work depends on
	eval   func(m *machine, a []any) any
}

// isInfix reports whether the source needs parentheses as an operand: it has a
// space outside all brackets.
func (o *operation) isInfix() bool {
	depth := 0
	for _, c := range o.source {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ' ':
			if depth == 0 {
				return true
			}
		}
	}
	return o.source[0] == '!'
}

func val(a any) *value { return a.(*value) }

// shaped makes an operation on tensors of like shape.
func shaped(source string, weight int, eval func(a []*value) *value, args ...kind) *operation {
	return &operation{source: source, result: args[0], args: args[1:], weight: weight, device: true, eval: func(_ *machine, a []any) any {
		vs := make([]*value, len(a))
		for i := range a {
			vs[i] = val(a[i])
		}
		return eval(vs)
	}}
}

func host(source string, result kind, weight int, eval func(a []any) any, args ...kind) *operation {
	return &operation{source: source, result: result, args: args, weight: weight, eval: func(_ *machine, a []any) any { return eval(a) }}
}

func read(source string, result kind, weight int, eval func(m *machine, a []any) any, args ...kind) *operation {
	return &operation{source: source, result: result, args: args, weight: weight, reads: true, eval: eval}
}

func cell(source string, result kind, weight int, eval func(m *machine, a []any) any, args ...kind) *operation {
	return &operation{source: source, result: result, args: args, weight: weight, device: true, cells: true, eval: eval}
}

// ok returns x's elements, or panics as a read of a tensor that failed does.
func ok(a any) *value {
	x := val(a)
	switch {
	case x.failed == divideByZero:
		panic(raised{"*engine.OpError: runtime.errorString: runtime error: integer divide by zero"})
	case strings.HasPrefix(x.failed, "index "):
		panic(raised{"*engine.OpError: *device.IndexError: " + x.failed})
	case strings.HasPrefix(x.failed, "label or class "): // what it wraps speaks of an index
		var index, length int
		if _, err := fmt.Sscanf(x.failed, "label or class %d is out of range: there are %d classes", &index, &length); err != nil {
			panic(err)
		}
		panic(raised{"*engine.OpError: *device.IndexError: " + outOfRange(index, length)})
	case x.failed != "":
		panic("fuzz: unknown failure " + x.failed)
	}
	return x
}

func first(x *value) float64 {
	if x.dtype == i64 {
		return float64(x.ints[0])
	}
	return x.floats[0]
}

// operations are what expressions are made of.
var operations = slices.Concat(common, others)

// common are the operations that most programs have some of.
var common = []*operation{
	// Tensors.
	shaped("$0.Add($1)", 6, func(a []*value) *value { return add(a[0], a[1]) }, tMat, tMat, tMat),
	shaped("$0.Sub($1)", 4, func(a []*value) *value { return sub(a[0], a[1]) }, tMat, tMat, tMat),
	shaped("$0.Mul($1)", 4, func(a []*value) *value { return mul(a[0], a[1]) }, tMat, tMat, tMat),
	shaped("$0.Div($1)", 1, func(a []*value) *value { return div(a[0], a[1]) }, tMat, tMat, tMat),
	shaped("$0.Maximum($1)", 2, func(a []*value) *value { return greater(a[0], a[1]) }, tMat, tMat, tMat),
	shaped("$0.Minimum($1)", 2, func(a []*value) *value { return lesser(a[0], a[1]) }, tMat, tMat, tMat),
	shaped("$0.Sub($1)", 2, func(a []*value) *value { return sub(a[0], a[1]) }, tMat, tMat, tVec),
	shaped("$0.Mul($1)", 2, func(a []*value) *value { return mul(a[0], a[1]) }, tMat, tMat, tOne),
	shaped("$0.Add($1)", 2, func(a []*value) *value { return add(a[0], a[1]) }, tVec, tVec, tVec),
	shaped("$0.Add($1)", 2, func(a []*value) *value { return add(a[0], a[1]) }, tOne, tOne, tOne),
	shaped("$0.Sub($1)", 2, func(a []*value) *value { return sub(a[0], a[1]) }, tOne, tOne, tOne),
	shaped("$0.Neg()", 1, func(a []*value) *value {
		return each(a[0], func(x float64) float64 { return -x }, nil)
	}, tMat, tMat),
	shaped("$0.Abs()", 2, func(a []*value) *value { return each(a[0], math.Abs, nil) }, tMat, tMat),
	shaped("$0.Square()", 1, func(a []*value) *value { return mul(a[0], a[0]) }, tMat, tMat),
	shaped("$0.Sqrt()", 1, func(a []*value) *value { return each(a[0], math.Sqrt, nil) }, tOne, tOne),
	shaped("$0.Floor()", 1, func(a []*value) *value { return each(a[0], math.Floor, nil) }, tMat, tMat),
	shaped("$0.Ceil()", 1, func(a []*value) *value { return each(a[0], math.Ceil, nil) }, tMat, tMat),
	shaped("$0.Round()", 2, func(a []*value) *value { return each(a[0], math.RoundToEven, nil) }, tMat, tMat),
	shaped("$0.ReLU()", 2, func(a []*value) *value { return greater(a[0], scalar(a[0], 0)) }, tMat, tMat),
	shaped("$0.Sign()", 1, func(a []*value) *value {
		return each(a[0], func(x float64) float64 {
			switch {
			case x > 0:
				return 1
			case x < 0:
				return -1
			}
			return x
		}, nil)
	}, tMat, tMat),
	shaped("$0.Reciprocal()", 1, func(a []*value) *value { return div(scalar(a[0], 1), a[0]) }, tMat, tMat),
	shaped("$0.T().T()", 1, func(a []*value) *value { return a[0] }, tMat, tMat),
	shaped("$0.Reshape(-1).Reshape({r}, {c})", 1, func(a []*value) *value { return a[0] }, tMat, tMat),
	shaped("tensor.Where($0, $1, $2)", 2, func(a []*value) *value { return where(a[0], a[1], a[2]) }, tMat, tBMat, tMat, tMat),
	{source: "$0.BroadcastTo({r}, {c})", result: tMat, args: []kind{tVec}, weight: 1, device: true, eval: func(m *machine, a []any) any {
		return full(val(a[0]), m.p.shape())
	}},
	{source: "$0.BroadcastTo({r}, {c})", result: tMat, args: []kind{tOne}, weight: 1, device: true, eval: func(m *machine, a []any) any {
		return full(val(a[0]), m.p.shape())
	}},
	shaped("$0.Row(0)", 2, func(a []*value) *value { return part(a[0], 0, a[0].shape[1]) }, tVec, tMat),
	shaped("$0.Row(-1)", 1, func(a []*value) *value {
		return part(a[0], (a[0].shape[0]-1)*a[0].shape[1], a[0].shape[1])
	}, tVec, tMat),
	shaped("$0.Sum(0)", 2, func(a []*value) *value { return sum(a[0], 0) }, tVec, tMat),
	shaped("$0.Max(0)", 1, func(a []*value) *value { return most(a[0], 0) }, tVec, tMat),
	shaped("$0.Mean(-2)", 1, func(a []*value) *value { return mean(a[0], 0) }, tVec, tMat),
	shaped("$0.Sum()", 6, func(a []*value) *value { return sum(a[0], -1) }, tOne, tMat),
	shaped("$0.Sum()", 2, func(a []*value) *value { return sum(a[0], -1) }, tOne, tVec),
	shaped("$0.Mean()", 4, func(a []*value) *value { return mean(a[0], -1) }, tOne, tMat),
	shaped("$0.Max()", 2, func(a []*value) *value { return most(a[0], -1) }, tOne, tMat),
	shaped("$0.Min()", 2, func(a []*value) *value { return least(a[0], -1) }, tOne, tVec),
	shaped("$0.Prod()", 1, func(a []*value) *value { return prod(a[0]) }, tOne, tVec),
	shaped("$0.Dot($1)", 2, func(a []*value) *value { return sum(mul(a[0], a[1]), -1) }, tOne, tVec, tVec),
	shaped("$0.Norm()", 1, func(a []*value) *value { return each(sum(mul(a[0], a[0]), -1), math.Sqrt, nil) }, tOne, tMat),
	shaped("$0.Slice(0, 0, 1).Reshape({c})", 1, func(a []*value) *value { return part(a[0], 0, a[0].shape[1]) }, tVec, tMat),
	shaped("$0.As(tensor.Int64)", 2, func(a []*value) *value { return as(a[0], i64) }, tIMat, tMat),
	shaped("$0.Add($1)", 1, func(a []*value) *value { return add(a[0], a[1]) }, tIMat, tIMat, tIMat),
	shaped("$0.Mul($1)", 1, func(a []*value) *value { return mul(a[0], a[1]) }, tIMat, tIMat, tIMat),
	shaped("$0.Sum()", 1, func(a []*value) *value { return sum(a[0], -1) }, tIOne, tIMat),
	shaped("$0.Gt($1)", 1, func(a []*value) *value { return compare(a[0], a[1], func(x, y float64) bool { return x > y }) }, tBMat, tMat, tMat),
	shaped("$0.Le($1)", 1, func(a []*value) *value { return compare(a[0], a[1], func(x, y float64) bool { return x <= y }) }, tBMat, tMat, tMat),
	shaped("$0.Eq($1)", 1, func(a []*value) *value { return compare(a[0], a[1], func(x, y float64) bool { return x == y }) }, tBMat, tMat, tMat),
	shaped("$0.Not()", 1, func(a []*value) *value { return each(a[0], func(x float64) float64 { return 1 - x }, nil) }, tBMat, tBMat),
	shaped("$0.Lt($1)", 1, func(a []*value) *value { return compare(a[0], a[1], func(x, y float64) bool { return x < y }) }, tBMat, tMat, tMat),
	shaped("$0.Ge($1)", 1, func(a []*value) *value { return compare(a[0], a[1], func(x, y float64) bool { return x >= y }) }, tBMat, tMat, tVec),
	shaped("$0.Ne($1)", 1, func(a []*value) *value { return compare(a[0], a[1], func(x, y float64) bool { return x != y }) }, tBMat, tMat, tOne),
	shaped("$0.And($1)", 1, func(a []*value) *value {
		return zip(a[0], a[1], func(x, y float64) float64 { return x * y }, nil)
	}, tBMat, tBMat, tBMat),
	shaped("$0.Or($1)", 1, func(a []*value) *value {
		return zip(a[0], a[1], func(x, y float64) float64 { return max(x, y) }, nil)
	}, tBMat, tBMat, tBMat),
	shaped("$0.As(tensor.Bool)", 1, func(a []*value) *value { return as(a[0], boolean) }, tBMat, tMat),
	shaped("$0.As(tensor.BFloat16).MulScalar(2).As(tensor.{T})", 1, func(a []*value) *value {
		return each(a[0], func(x float64) float64 { return bfloat16(2 * bfloat16(x)) }, nil)
	}, tMat, tMat),
	shaped("$0.Sub($0.MeanKeep(1))", 1, func(a []*value) *value {
		return sub(a[0], reshape(mean(a[0], 1), a[0].shape[0], 1))
	}, tMat, tMat),
	shaped("$0.Sub($0.MaxKeep(0))", 1, func(a []*value) *value {
		return sub(a[0], reshape(most(a[0], 0), 1, a[0].shape[1]))
	}, tMat, tMat),
	shaped("$0.Mul($0.SumKeep(-1))", 1, func(a []*value) *value {
		return mul(a[0], reshape(sum(a[0], 1), a[0].shape[0], 1))
	}, tMat, tMat),
	shaped("$0.Unsqueeze(0).Squeeze(0)", 1, func(a []*value) *value { return a[0] }, tMat, tMat),
	shaped("$0.Transpose(1, 0).Row(0).Slice(0, 0, 1).Sum()", 1, func(a []*value) *value { return sum(part(a[0], 0, 1), -1) }, tOne, tMat),
	{source: "tensor.Full($0, {r}, {c}).As(tensor.{T})", result: tMat, args: []kind{tFloat}, weight: 1, device: true, eval: func(m *machine, a []any) any {
		return full(as(scalar(&value{dtype: f32}, a[0].(float64)), m.p.dtype), m.p.shape())
	}},
	{source: "tensor.Scalar($0).As(tensor.{T})", result: tOne, args: []kind{tFloat}, weight: 1, device: true, eval: func(m *machine, a []any) any {
		return as(scalar(&value{dtype: f32}, a[0].(float64)), m.p.dtype)
	}},
	{source: "tensor.Arange(0, {r}*{c}, 1).Reshape({r}, {c}).As(tensor.{T})", result: tMat, weight: 1, device: true, eval: func(m *machine, _ []any) any {
		v := newValue(m.p.dtype, m.p.shape())
		for i := range v.floats {
			v.floats[i] = float64(i)
		}
		return v
	}},
	shaped("$0.Detach()", 1, func(a []*value) *value { return a[0] }, tMat, tMat),
	shaped("$0.Lazy()", 1, func(a []*value) *value { return a[0] }, tMat, tMat),
	shaped("$0.Eager()", 1, func(a []*value) *value { return a[0] }, tMat, tMat),
	{source: "$0.AddScalar($1)", result: tMat, args: []kind{tMat, tFloat}, weight: 3, device: true, eval: func(_ *machine, a []any) any {
		return add(val(a[0]), scalar(val(a[0]), a[1].(float64)))
	}},
	{source: "$0.MulScalar($1)", result: tMat, args: []kind{tMat, tFloat}, weight: 3, device: true, eval: func(_ *machine, a []any) any {
		return mul(val(a[0]), scalar(val(a[0]), a[1].(float64)))
	}},
	{source: "$0.DivScalar(4)", result: tMat, args: []kind{tMat}, weight: 2, device: true, eval: func(_ *machine, a []any) any {
		return div(val(a[0]), scalar(val(a[0]), 4))
	}},
	{source: "$0.SubScalar(0.5)", result: tOne, args: []kind{tOne}, weight: 1, device: true, eval: func(_ *machine, a []any) any {
		return sub(val(a[0]), scalar(val(a[0]), 0.5))
	}},
	{source: "$0.AddScaled($1, -0.25)", result: tMat, args: []kind{tMat, tMat}, weight: 3, device: true, eval: func(_ *machine, a []any) any {
		return add(val(a[0]), mul(val(a[1]), scalar(val(a[1]), -0.25)))
	}},
	{source: "$0.MatMul($1.T()).MatMul($0)", result: tMat, args: []kind{tMat, tMat}, weight: 1, device: true, eval: func(m *machine, a []any) any {
		return m.product(m.product(val(a[0]), transpose(val(a[1]))), val(a[0]))
	}},
	{source: "$0.T().MatMul($0.MatMul($1))", result: tVec, args: []kind{tMat, tVec}, weight: 1, device: true, eval: func(m *machine, a []any) any {
		x := val(a[0])
		column := m.product(x, reshape(val(a[1]), x.shape[1], 1))
		return reshape(m.product(transpose(x), column), x.shape[1])
	}},
	// Fails where an element of the divisor rounds to zero.
	{source: "$0.As(tensor.Int64).Div($1.As(tensor.Int64)).As(tensor.{T})", result: tMat, args: []kind{tMat, tMat}, weight: 1, device: true, eval: func(_ *machine, a []any) any {
		return as(div(as(val(a[0]), i64), as(val(a[1]), i64)), val(a[0]).dtype)
	}},
	{source: "$0.As(tensor.Int64).DivScalar(3)", result: tIMat, args: []kind{tMat}, weight: 1, device: true, eval: func(_ *machine, a []any) any {
		x := as(val(a[0]), i64)
		return div(x, scalar(x, 3))
	}},
	{source: "$0.As(tensor.{T})", result: tMat, args: []kind{tIMat}, weight: 1, device: true, eval: func(m *machine, a []any) any {
		return as(val(a[0]), m.p.dtype)
	}},
	{source: "$0.As(tensor.{T})", result: tMat, args: []kind{tBMat}, weight: 1, device: true, eval: func(m *machine, a []any) any {
		return as(val(a[0]), m.p.dtype)
	}},
	{source: "mix($0, $1)", result: tMat, args: []kind{tMat, tMat}, weight: 2, device: true, eval: func(_ *machine, a []any) any {
		x := greater(val(a[0]), val(a[1]))
		return mul(x, scalar(x, 0.5))
	}},
	{source: "$0[$1%len($0)]", result: tMat, args: []kind{tMats, tInt}, weight: 3, eval: func(_ *machine, a []any) any {
		xs, i := a[0].([]*value), a[1].(int)
		if i %= len(xs); i < 0 { // a mistake of the program
			panic(raised{fmt.Sprintf("runtime.boundsError: runtime.boundsError: runtime error: index out of range [%d]", i)})
		}
		return xs[i]
	}},

	// Cells and random numbers.
	cell("m.P.Value()", tMat, 3, func(m *machine, _ []any) any { return m.param }),
	cell("m.B.Value()", tMat, 1, func(m *machine, _ []any) any { return m.buffer }),
	cell("m.G.Rand({r}, {c}).As(tensor.{T})", tMat, 2, func(m *machine, _ []any) any {
		return as(m.generator.uniform(m.p.shape()), m.p.dtype)
	}),
	cell("tensor.Rand({r}, {c}).As(tensor.{T})", tMat, 1, func(m *machine, _ []any) any {
		return as(m.common.uniform(m.p.shape()), m.p.dtype)
	}),
	cell("m.G.RandInt(-2, 7, {r}, {c})", tIMat, 1, func(m *machine, _ []any) any {
		return m.generator.integers(-2, 7, m.p.shape())
	}),

	// Reads.
	read("$0.Item()", tFloat, 12, func(_ *machine, a []any) any { return first(ok(a[0])) }, tOne),
	read("$0.At(0, {c}-1)", tFloat, 3, func(_ *machine, a []any) any {
		return ok(a[0]).floats[val(a[0]).shape[1]-1]
	}, tMat),
	read("float64(tensor.ItemOf[{t}]($0))", tFloat, 2, func(_ *machine, a []any) any { return first(ok(a[0])) }, tOne),
	read("$0.As(tensor.Float64).Flatten().Float64s()", tFloats, 2, func(_ *machine, a []any) any {
		return append([]float64(nil), ok(a[0]).floats...)
	}, tMat),
	read("$0.As(tensor.Float64).Float64s()[0]", tFloat, 1, func(_ *machine, a []any) any { return first(ok(a[0])) }, tVec),
	read("int($0.ItemInt() % 7)", tInt, 2, func(_ *machine, a []any) any { return int(ok(a[0]).ints[0] % 7) }, tIOne),
	read("$0.Any().ItemInt() == 1", tBool, 1, func(_ *machine, a []any) any {
		for _, x := range ok(a[0]).floats {
			if x != 0 {
				return true
			}
		}
		return false
	}, tBMat),
	read("$0.All().ItemInt() == 0", tBool, 1, func(_ *machine, a []any) any {
		for _, x := range ok(a[0]).floats {
			if x == 0 {
				return true
			}
		}
		return false
	}, tBMat),
	read("$0.Bools()[0]", tBool, 1, func(_ *machine, a []any) any { return first(ok(a[0])) != 0 }, tBMat),
	read("fmt.Sprintf(\"%.2f\", $0)", tString, 1, func(_ *machine, a []any) any { return fmt.Sprintf("%.2f", a[0]) }, tVec),
	read("$0.String()", tString, 1, func(_ *machine, a []any) any { return fmt.Sprint(a[0]) }, tOne),
	read("size($0)", tFloat, 7, func(_ *machine, a []any) any { // a helper that waits
		return math.Sqrt(math.Abs(first(ok(sum(val(a[0]), -1)))))
	}, tMat),
	read("$0.Wait()", tError, 2, waited, tOne),

	// The host.
	host("$0 + $1", tFloat, 3, func(a []any) any { return a[0].(float64) + a[1].(float64) }, tFloat, tFloat),
	host("$0 - $1", tFloat, 2, func(a []any) any { return a[0].(float64) - a[1].(float64) }, tFloat, tFloat),
	host("$0 * $1", tFloat, 2, func(a []any) any { return a[0].(float64) * a[1].(float64) }, tFloat, tFloat),
	host("$0 / 2", tFloat, 1, func(a []any) any { return a[0].(float64) / 2 }, tFloat),
	host("float64($0)", tFloat, 3, func(a []any) any { return float64(a[0].(int)) }, tInt),
	host("math.Abs($0)", tFloat, 1, func(a []any) any { return math.Abs(a[0].(float64)) }, tFloat),
	host("math.Max($0, $1)", tFloat, 1, func(a []any) any { return math.Max(a[0].(float64), a[1].(float64)) }, tFloat, tFloat),
	host("choose($0, $1, $2)", tFloat, 1, func(a []any) any {
		if a[0].(bool) {
			return a[1]
		}
		return a[2]
	}, tBool, tFloat, tFloat),
	host("len($0)", tInt, 2, func(a []any) any { return len(a[0].([]float64)) }, tFloats),
	host("len($0)", tInt, 1, func(a []any) any { return len(a[0].(map[int]float64)) }, tMap),
	host("len($0)", tInt, 1, func(a []any) any { return len(a[0].([]*value)) }, tMats),
	host("$0 + $1", tInt, 2, func(a []any) any { return a[0].(int) + a[1].(int) }, tInt, tInt),
	host("$0 % 3", tInt, 2, func(a []any) any { return a[0].(int) % 3 }, tInt),
	host("$0 > $1", tBool, 3, func(a []any) any { return a[0].(float64) > a[1].(float64) }, tFloat, tFloat),
	host("$0 <= 0.5", tBool, 1, func(a []any) any { return a[0].(float64) <= 0.5 }, tFloat),
	host("$0%2 == 0", tBool, 3, func(a []any) any { return a[0].(int)%2 == 0 }, tInt),
	host("$0 > 2", tBool, 3, func(a []any) any { return a[0].(int) > 2 }, tInt),
	host("$0 == $1", tBool, 1, func(a []any) any { return a[0].(int) == a[1].(int) }, tInt, tInt),
	host("$0 < $1", tBool, 1, func(a []any) any { return a[0].(int) < a[1].(int) }, tInt, tInt),
	host("math.IsNaN($0)", tBool, 1, func(a []any) any { return math.IsNaN(a[0].(float64)) }, tFloat),
	host("!$0", tBool, 1, func(a []any) any { return !a[0].(bool) }, tBool),
	host("$0 != nil", tBool, 2, func(a []any) any { return a[0] != nil }, tError),
	host("fmt.Sprint($0, $1)", tString, 1, func(a []any) any { return fmt.Sprint(a...) }, tFloat, tInt),
	host("append([]float64(nil), $0...)", tFloats, 1, func(a []any) any { return append([]float64(nil), a[0].([]float64)...) }, tFloats),
	host("[]float64{$0, $1}", tFloats, 1, func(a []any) any { return []float64{a[0].(float64), a[1].(float64)} }, tFloat, tFloat),
	host("[2]float64{$0, $1}", tPair, 2, func(a []any) any { return [2]float64{a[0].(float64), a[1].(float64)} }, tFloat, tFloat),
	host("stat{Total: $0, Count: $1}", tStat, 2, func(a []any) any { return stat{Total: a[0].(float64), Count: a[1].(int)} }, tFloat, tInt),
	host("stat{Best: $0}", tStat, 1, func(a []any) any { return stat{Best: val(a[0])} }, tMat),
	host("&stat{Count: $0}", tStatPtr, 1, func(a []any) any { return &stat{Count: a[0].(int)} }, tInt),
	{source: "m.S", result: tStatPtr, weight: 1, eval: func(m *machine, _ []any) any { return m.own }},
	host("map[int]float64{$0: 1}", tMap, 1, func(a []any) any { return map[int]float64{a[0].(int): 1} }, tInt),
}

// The operations that evaluate an operand only sometimes; see machine.eval.
var (
	opAnd = &operation{source: "$0 && $1", result: tBool, args: []kind{tBool, tBool}, weight: 2}
	opOr  = &operation{source: "$0 || $1", result: tBool, args: []kind{tBool, tBool}, weight: 1}
)

// The operations of certain statements.
var (
	opAppend  = host("append($0, $1)", tFloats, 0, func(a []any) any { return append(a[0].([]float64), a[1].(float64)) }, tFloats, tFloat)
	opMake    = host("make([]float64, 3)", tFloats, 0, func([]any) any { return make([]float64, 3) })
	opReslice = host("$0[:0]", tFloats, 0, func(a []any) any { return a[0].([]float64)[:0] }, tFloats)

	opAddMethod = host("$0.add($1)", none, 0, func(a []any) any {
		s := a[0].(*stat)
		s.Total += a[1].(float64)
		s.Count++
		return nil
	}, tStatPtr, tFloat)
	opKeepMethod = host("$0.keep($1)", none, 0, func(a []any) any {
		s := a[0].(*stat)
		s.Hist = append(s.Hist, a[1].(float64))
		return nil
	}, tStatPtr, tFloat)
	opSetParam  = cell("m.P.Set($0)", none, 0, func(m *machine, a []any) any { m.param = val(a[0]); return nil }, tMat)
	opSetBuffer = cell("m.B.Set($0)", none, 0, func(m *machine, a []any) any { m.buffer = val(a[0]); return nil }, tMat)
	// The gradient of the sum of the products is x itself.
	opLearn = cell("m.learn($0)", none, 0, func(m *machine, a []any) any {
		m.gradient(val(a[0]))
		m.param, m.grad = sub(m.param, mul(m.grad, scalar(m.param, 0.25))), nil
		return nil
	}, tMat)
	opCopy   = host("copy($0, $1)", none, 0, func(a []any) any { copy(a[0].([]float64), a[1].([]float64)); return nil }, tFloats, tFloats)
	opDelete = host("delete($0, $1)", none, 0, func(a []any) any { delete(a[0].(map[int]float64), a[1].(int)); return nil }, tMap, tInt)
	opClear  = host("clear($0)", none, 0, func(a []any) any { clear(a[0].([]float64)); return nil }, tFloats)
	opSort   = host("sort.Float64s($0)", none, 0, func(a []any) any { sort.Float64s(a[0].([]float64)); return nil }, tFloats)
	opTally  = &operation{source: "tally(errs, $0, $1)", args: []kind{tFloat, tFloat}, eval: func(m *machine, a []any) any {
		for i, v := range a {
			fmt.Fprintln(m.out(logWriter), i, v)
		}
		return nil
	}}
	opReport = &operation{source: "report(out, $0)", args: []kind{tFloat}, eval: func(m *machine, a []any) any {
		fmt.Fprintf(m.out(outWriter), "report %.5f\n", math.Abs(a[0].(float64)))
		return nil
	}}
	opAsk     = &operation{source: "ask(in)", result: tFloat, eval: func(m *machine, _ []any) any { return float64(len(m.line())) }}
	opMistake = &operation{source: "$0.Reshape({r}, {c}+1)", result: tMat, args: []kind{tMat}, device: true, eval: func(_ *machine, a []any) any {
		panic(raised{"*op.Mistake: Reshape"})
	}}
)

func (p *program) shape() []int { return []int{p.rows, p.cols} }
