package fuzz

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Operations that no program needs, so that there is some program with each
// operation of the library.

// rough are functions whose last places are not promised. Programs round
// what they give to a 64th, so that there is one right answer nearly always.
var rough = map[string]func(x float64) float64{
	"Exp": math.Exp, "Log": math.Log, "Log1p": math.Log1p, "Expm1": math.Expm1, "Tanh": math.Tanh,
	"Sin": math.Sin, "Cos": math.Cos, "Erf": math.Erf,
	"Sigmoid": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	"GELU":    func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) },
	"SiLU":    func(x float64) float64 { return x / (1 + math.Exp(-x)) },
	"Log2":    math.Log2, "Log10": math.Log10, "Asin": math.Asin, "Acos": math.Acos, "Atan": math.Atan,
	"Asinh": math.Asinh, "Acosh": math.Acosh, "Atanh": math.Atanh,
	"Rsqrt":       func(x float64) float64 { return 1 / math.Sqrt(x) },
	"Softplus":    func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) },
	"HardSigmoid": func(x float64) float64 { return min(max(x+3, 0), 6) / 6 },
}

// steep are rough functions that soon are too great to be rounded so.
var steep = map[string]func(x float64) float64{"Exp2": math.Exp2, "Tan": math.Tan, "Sinh": math.Sinh, "Cosh": math.Cosh}

// coarse rounds to a 64th; zeros become positive.
const coarse = ".MulScalar(64).Round().DivScalar(64).AddScalar(0)"

// coarse is what rounding to a 64th makes of the elements of x. As they are only near what the
// library computes, there may be two answers.
func (m *machine) coarse(x *value) *value {
	isShort := x.dtype == f32
	return each(x, func(x float64) float64 {
		if math.IsInf(x, 0) || isShort && math.Abs(x) > 2*math.MaxFloat32 {
			return x
		}
		y := x * 64
		m.inexact = m.inexact || math.Abs(x) > 1024 || math.Abs(math.Abs(y-math.Trunc(y))-0.5) < 1e-3
		return math.RoundToEven(y)/64 + 0
	}, nil)
}

// nearly makes two operations of tensors, what eval computes being near the right answer: one
// that rounds it, and one that doesn't, which leaves the third judge without an answer.
func nearly(source string, weight int, eval func(a []*value) *value, args ...kind) (rounded, whole *operation) {
	rounded = shapedIn(source+coarse, weight, func(m *machine, a []*value) *value { return m.coarse(eval(a)) }, args...)
	whole = shapedIn(source, weight, func(m *machine, a []*value) *value {
		x := eval(a)
		m.inexact = m.inexact || x.failed == ""
		return each(x, func(x float64) float64 { return x }, nil)
	}, args...)
	return rounded, whole
}

// others are the operations that no program needs; unrounded are those that
// leave the third judge without an answer.
var others, unrounded = makeOthers()

func makeOthers() (all, unrounded []*operation) {
	put := func(list ...*operation) { all = append(all, list...) }
	near := func(rounded, whole *operation) {
		put(rounded)
		unrounded = append(unrounded, whole)
	}
	for _, name := range slices.Sorted(maps.Keys(rough)) {
		f := rough[name]
		k := []kind{tMat, tMat, tVec, tOne}[len(all)%4]
		near(nearly("$0."+name+"()", 1, func(a []*value) *value { return wide(a[0], f) }, k, k))
	}
	near(nearly("$0.Pow($1)", 1, func(a []*value) *value {
		return zip(a[0], a[1], math.Pow, nil)
	}, tMat, tMat, tMat))
	for _, name := range slices.Sorted(maps.Keys(steep)) {
		f := steep[name]
		near(nearly("$0.Clamp(-1, 1)."+name+"()", 1, func(a []*value) *value {
			return wide(lesser(greater(a[0], scalar(a[0], -1)), scalar(a[0], 1)), f)
		}, tMat, tMat))
	}
	near(nearly("$0.ELU(0.5)", 1, func(a []*value) *value {
		return wide(a[0], func(x float64) float64 {
			if x > 0 {
				return x
			}
			return 0.5 * math.Expm1(x)
		})
	}, tMat, tMat))
	near(nearly("$0.Lerp($1, 0.25)", 1, func(a []*value) *value {
		return zip(a[0], a[1], func(x, y float64) float64 { return x + 0.25*(y-x) }, nil)
	}, tMat, tMat, tMat))
	near(nearly("$0.Atan2($1)", 1, func(a []*value) *value { return zip(a[0], a[1], math.Atan2, nil) }, tMat, tMat, tMat))
	near(nearly("$0.Hypot($1)", 1, func(a []*value) *value { return zip(a[0], a[1], math.Hypot, nil) }, tMat, tMat, tMat))
	near(nearly("$0.LogAddExp($1)", 1, func(a []*value) *value {
		return zip(a[0], a[1], func(x, y float64) float64 {
			if x == y {
				return x + math.Ln2
			}
			return math.Max(x, y) + math.Log1p(math.Exp(-math.Abs(x-y)))
		}, nil)
	}, tMat, tMat, tMat))
	near(nearly("$0.Remainder($1)", 1, func(a []*value) *value { return zip(a[0], a[1], remainder, nil) }, tMat, tMat, tMat))
	near(nearly("$0.FloorDiv($1)", 1, func(a []*value) *value {
		return zip(a[0], a[1], func(x, y float64) float64 {
			if y == 0 {
				return x / y
			}
			rest := math.Mod(x, y)
			n := (x - rest) / y
			if rest != 0 && (rest < 0) != (y < 0) {
				n--
			}
			return math.RoundToEven(n)
		}, nil)
	}, tMat, tMat, tMat))
	near(nearly("$0.Softmax(1)", 2, func(a []*value) *value { return softmax(a[0], 1) }, tMat, tMat))
	near(nearly("$0.Softmax(0)", 1, func(a []*value) *value { return softmax(a[0], 0) }, tVec, tVec))
	near(nearly("$0.LogSoftmax(0)", 1, func(a []*value) *value { return logSoftmax(a[0], 0) }, tMat, tMat))
	near(nearly("$0.LogSumExp()", 1, func(a []*value) *value { return logSumExp(a[0], -1) }, tOne, tMat))
	near(nearly("$0.LogSumExp(0)", 1, func(a []*value) *value { return logSumExp(a[0], 0) }, tVec, tMat))
	near(nearly("$0.LayerNorm(1, 0.5)", 1, func(a []*value) *value { return normed(a[0], 1, true) }, tMat, tMat))
	near(nearly("$0.LayerNorm(1, 0.5, $1, $2)", 1, func(a []*value) *value {
		x := normed(a[0], 1, true)
		if s := spoiled(x.dtype, x.shape, x, a[1], a[2]); s != nil {
			return s
		}
		for i, y := range x.floats {
			x.floats[i] = y*a[1].floats[i%x.shape[1]] + a[2].floats[i%x.shape[1]]
		}
		return x
	}, tMat, tMat, tVec, tVec))
	near(nearly("$0.RMSNorm(0, 0.5)", 1, func(a []*value) *value { return normed(a[0], 0, false) }, tVec, tVec))
	near(nearly("nn.CrossEntropy($0, $1.ArgMax(1))", 2, func(a []*value) *value {
		return each(mean(pick(logSoftmax(a[0], 1), extreme(a[1], 1, false), true), -1), func(x float64) float64 { return -x }, nil)
	}, tOne, tMat, tMat))
	attention := func(m *machine, a []*value) *value {
		scale := 1 / math.Sqrt(float64(a[0].shape[1]))
		scores := m.product(each(a[0], func(x float64) float64 { return x * scale }, nil), transpose(a[1]))
		return m.coarse(m.product(softmax(scores, 1), a[2]))
	}
	put(shapedIn("tensor.Attention($0, $1, $2, tensor.AttentionOptions{})"+coarse, 1, attention, tMat, tMat, tMat, tMat))
	linear := func(m *machine, a []*value) *value {
		return add(m.product(m.product(a[0], transpose(a[1])), a[0]), a[2])
	}
	put(
		shapedIn("$0.MatMul($1.T()).Linear($0, $2)", 1, linear, tMat, tMat, tMat, tVec),
		shapedIn("$0.MatMul($1.T()).LinearReLU($0, $2)", 1, func(m *machine, a []*value) *value {
			sum := linear(m, a)
			return greater(sum, scalar(sum, 0))
		}, tMat, tMat, tMat, tVec),
		shaped("nn.L1Loss($0, $1)", 1, func(a []*value) *value {
			return mean(each(sub(a[0], a[1]), math.Abs, nil), -1)
		}, tOne, tMat, tMat),
		shaped("nn.MSELoss($0, $1)", 2, func(a []*value) *value {
			d := sub(a[0], a[1])
			return mean(mul(d, d), -1)
		}, tOne, tMat, tMat),
		shapedIn("$0.Reshape(1, {r}, {c}).Conv2D($1.Slice(0, 0, 1).Reshape(1, 1, 1, {c}), tensor.Conv{Padding: tensor.Pair{0, {c} - 1}})"+
			".Slice(2, 0, {c}).Reshape({r}, {c})", 1, func(m *machine, a []*value) *value {
			product := m.product(part(a[1], 0, 1, a[1].shape[1]), unfolded(a[0]))
			return reshape(product, a[0].shape...)
		}, tMat, tMat, tMat),
		shaped("$0.MaxPool2D(tensor.Pool{Window: tensor.Both(2), Stride: tensor.Both(1), Padding: tensor.Both(1)}).Slice(0, 0, {r}).Slice(1, 0, {c})", 1,
			func(a []*value) *value {
				return windows(a[0], func(x []float64) float64 {
					most := x[0]
					for _, v := range x {
						most = max(most, v)
					}
					return most
				})
			}, tMat, tMat),
		shaped("$0.AvgPool2D(tensor.Pool{Window: tensor.Both(2), Stride: tensor.Both(1), Padding: tensor.Both(1)}).Slice(0, 0, {r}).Slice(1, 0, {c})", 1,
			func(a []*value) *value {
				return windows(a[0], func(x []float64) float64 {
					total := 0.0
					for _, v := range x {
						total = round(a[0].dtype, total+v)
					}
					return total / float64(len(x))
				})
			}, tMat, tMat),
		shaped("$0.Trunc()", 1, func(a []*value) *value { return each(a[0], math.Trunc, nil) }, tMat, tMat),
		shaped("$0.Frac()", 1, func(a []*value) *value {
			return each(a[0], func(x float64) float64 { return x - math.Trunc(x) }, nil)
		}, tMat, tMat),
		shaped("$0.Clamp(-1, 2)", 1, func(a []*value) *value {
			return lesser(greater(a[0], scalar(a[0], -1)), scalar(a[0], 2))
		}, tMat, tMat),
		shaped("$0.LeakyReLU(0.25)", 1, func(a []*value) *value {
			return each(a[0], func(x float64) float64 {
				if x > 0 {
					return x
				}
				return 0.25 * x
			}, nil)
		}, tMat, tMat),
		shaped("$0.Fmod($1)", 1, func(a []*value) *value { return zip(a[0], a[1], math.Mod, nil) }, tMat, tMat, tMat),
		shaped("$0.IsNaN()", 1, func(a []*value) *value {
			return compare(a[0], a[0], func(x, _ float64) bool { return x != x })
		}, tBMat, tMat),
		shaped("$0.IsInf()", 1, func(a []*value) *value {
			return compare(a[0], a[0], func(x, _ float64) bool { return math.IsInf(x, 0) })
		}, tBMat, tMat),
		shaped("$0.IsFinite()", 1, func(a []*value) *value {
			return compare(a[0], a[0], func(x, _ float64) bool { return x-x == 0 })
		}, tBMat, tMat),
		shaped("$0.Xor($1)", 1, func(a []*value) *value {
			return zip(a[0], a[1], func(x, y float64) float64 { return math.Abs(x - y) }, nil)
		}, tBMat, tBMat, tBMat),
		shaped("$0.BitAnd($1)", 1, func(a []*value) *value { return zip(a[0], a[1], nil, func(x, y int64) int64 { return x & y }) }, tIMat, tIMat, tIMat),
		shaped("$0.BitOr($1)", 1, func(a []*value) *value { return zip(a[0], a[1], nil, func(x, y int64) int64 { return x | y }) }, tIMat, tIMat, tIMat),
		shaped("$0.BitXor($1)", 1, func(a []*value) *value { return zip(a[0], a[1], nil, func(x, y int64) int64 { return x ^ y }) }, tIMat, tIMat, tIMat),
		shaped("$0.BitNot()", 1, func(a []*value) *value { return zip(a[0], a[0], nil, func(x, _ int64) int64 { return ^x }) }, tIMat, tIMat),
		shaped("$0.ShiftLeft($1)", 1, func(a []*value) *value {
			return zip(a[0], a[1], nil, func(x, n int64) int64 { return x << uint64(n) })
		}, tIMat, tIMat, tIMat),
		shaped("$0.ShiftRight($1)", 1, func(a []*value) *value {
			return zip(a[0], a[1], nil, func(x, n int64) int64 { return x >> uint64(n) })
		}, tIMat, tIMat, tIMat),
		shaped("$0.CumSum(0)", 1, func(a []*value) *value { return cumulated(a[0], 0) }, tMat, tMat),
		shaped("$0.CumSum(-1)", 1, func(a []*value) *value { return cumulated(a[0], 1) }, tMat, tMat),
		shaped("$0.CumSum(0)", 1, func(a []*value) *value { return cumulated(a[0], 0) }, tVec, tVec),
		shaped("$0.Sort(1, tensor.Ascending)", 1, func(a []*value) *value { return chosen(a[0], ordered(a[0], 1, false), 1) }, tMat, tMat),
		shaped("$0.Sort(0, tensor.Descending)", 1, func(a []*value) *value { return chosen(a[0], ordered(a[0], 0, true), 0) }, tMat, tMat),
		shaped("$0.ArgSort(0, tensor.Descending)", 1, func(a []*value) *value { return ordered(a[0], 0, true) }, tIMat, tMat),
		shaped("$0.Take(0, $0.ArgSort(0, tensor.Ascending))", 1, func(a []*value) *value { return chosen(a[0], ordered(a[0], 0, false), 0) }, tVec, tVec),
		shaped("outdone($0)", 1, func(a []*value) *value {
			places := reshape(extremeLast(a[0]), a[0].shape[0], 1)
			return mul(sub(a[0], chosen(a[0], places, 1)), as(places, a[0].dtype))
		}, tMat, tMat),
		shaped("tensor.Concat(0, $0, $1).Slice(0, 1, {r}+1)", 1, func(a []*value) *value {
			x := stacked(a[0], a[1])
			return part(x, a[0].shape[1], a[0].shape...)
		}, tMat, tMat, tMat),
		shaped("tensor.Concat(1, $0, $1).Sum()", 1, func(a []*value) *value {
			return sum(transpose(stacked(transpose(a[0]), transpose(a[1]))), -1)
		}, tOne, tMat, tMat),
		shaped("tensor.Stack(0, $0, $1).Row(1)", 1, func(a []*value) *value { return depends(a[1], a...) }, tMat, tMat, tMat),
		shaped("tensor.Stack(1, $0, $1).Sum(0).Row(0)", 1, func(a []*value) *value { return sum(depends(a[0], a...), -1) }, tOne, tVec, tVec),
		shaped("tensor.AllReduce($0, $1)[1]", 1, func(a []*value) *value { return add(a[0], a[1]) }, tMat, tMat, tMat),
		shaped("$0.ArgMax()", 2, func(a []*value) *value { return extreme(reshape(a[0], size(a[0].shape)), 0, false) }, tIOne, tMat),
		shaped("$0.ArgMin()", 1, func(a []*value) *value { return extreme(a[0], 0, true) }, tIOne, tVec),
		shaped("$0.ArgMin(0).Sum()", 1, func(a []*value) *value { return sum(extreme(a[0], 0, true), -1) }, tIOne, tMat),
		shaped("$0.ArgMaxKeep(1).BroadcastTo({r}, {c})", 1, func(a []*value) *value {
			return full(reshape(extreme(a[0], 1, false), a[0].shape[0], 1), a[0].shape)
		}, tIMat, tMat),
		shaped("$0.ArgMinKeep(0).BroadcastTo({r}, {c})", 1, func(a []*value) *value {
			return full(reshape(extreme(a[0], 0, true), 1, a[0].shape[1]), a[0].shape)
		}, tIMat, tMat),
		// perhaps there is no such row
		shaped("$0.RowAt($1)", 2, func(a []*value) *value { return reshape(taken(a[0], a[1], false), a[0].shape[1]) }, tVec, tMat, tIOne),
		shaped("$0.Take(0, $1.ArgMax(0).Slice(0, 0, 1)).Reshape({c})", 1, func(a []*value) *value {
			return reshape(taken(a[0], part(extreme(a[1], 0, false), 0, 1), false), a[0].shape[1])
		}, tVec, tMat, tMat),
		shaped("$0.Take(1, $0.ArgMin(1)).Max()", 1, func(a []*value) *value {
			return most(taken(transpose(a[0]), extreme(a[0], 1, true), false), -1)
		}, tOne, tMat),
		shaped("$0.Pick($1.ArgMax(1)).Sum()", 2, func(a []*value) *value { return sum(pick(a[0], extreme(a[1], 1, false), false), -1) }, tOne, tMat, tMat),
		shaped("$0.TakeClasses(0, $1.ArgMax(0).Slice(0, 0, 1)).Reshape({c})", 1, func(a []*value) *value {
			return reshape(taken(a[0], part(extreme(a[1], 0, false), 0, 1), true), a[0].shape[1])
		}, tVec, tMat, tMat),
		shaped("$0.PickClasses($1.ArgMax(1)).Sum()", 1, func(a []*value) *value { return sum(pick(a[0], extreme(a[1], 1, false), true), -1) }, tOne, tMat, tMat),
		shapedIn("$0.ArgMin(1).OneHot({c}).As(tensor.{T})", 1, func(m *machine, a []*value) *value {
			return as(oneHot(extreme(a[0], 1, true), a[0].shape[1]), m.p.dtype)
		}, tMat, tMat),
		// fails for what is too big
		shapedIn("$0.OneHot({c}).Sum(0, 1).As(tensor.{T})", 1, func(m *machine, a []*value) *value {
			x := reshape(a[0], size(a[0].shape))
			return as(sum(oneHot(x, a[0].shape[1]), 0), m.p.dtype)
		}, tVec, tIMat),
		shaped("$0.Prod(0)", 1, func(a []*value) *value { return prodAlong(a[0], 0) }, tVec, tMat),
		shaped("$0.Add($0.ProdKeep(1))", 1, func(a []*value) *value { return add(a[0], reshape(prodAlong(a[0], 1), a[0].shape[0], 1)) }, tMat, tMat),
		shaped("$0.Sub($0.MinKeep(0))", 1, func(a []*value) *value { return sub(a[0], reshape(least(a[0], 0), 1, a[0].shape[1])) }, tMat, tMat),
		shaped("$0.AllKeep(1).BroadcastTo({r}, {c})", 1, func(a []*value) *value {
			return full(reshape(least(a[0], 1), a[0].shape[0], 1), a[0].shape)
		}, tBMat, tBMat),
		shaped("$0.AnyKeep(0).BroadcastTo({r}, {c})", 1, func(a []*value) *value {
			return full(reshape(most(a[0], 0), 1, a[0].shape[1]), a[0].shape)
		}, tBMat, tBMat),
		shaped("$0.MulF64($1.F64())", 1, func(a []*value) *value { return mul(a[0], a[1]) }, tMat, tMat, tOne),
		shaped("$0.SubF64($1.ItemF64())", 1, func(a []*value) *value { return sub(a[0], a[1]) }, tMat, tMat, tOne),
		shaped("$0.DivF64($1.F64())", 1, func(a []*value) *value { return div(a[0], a[1]) }, tMat, tMat, tOne),
		shaped("$0.AddScaledF64($1, $2.F64())", 1, func(a []*value) *value { return add(a[0], mul(a[1], a[2])) }, tMat, tMat, tMat, tOne),
		shaped("$0.AddMul($1, $2)", 1, func(a []*value) *value { return add(a[0], mul(a[1], a[2])) }, tMat, tMat, tMat, tMat),
		shaped("$0.AddInt(3)", 1, func(a []*value) *value { return add(a[0], scalar(a[0], 3)) }, tIMat, tIMat),
		shaped("$0.SubInt(2)", 1, func(a []*value) *value { return sub(a[0], scalar(a[0], 2)) }, tIMat, tIMat),
		shaped("$0.MulInt(-2)", 1, func(a []*value) *value { return mul(a[0], scalar(a[0], -2)) }, tIMat, tIMat),
		shaped("$0.DivInt(3)", 1, func(a []*value) *value { return div(a[0], scalar(a[0], 3)) }, tIMat, tIMat),
		&operation{source: "$0.AddF64(tensor.Const($1))", result: tMat, args: []kind{tMat, tFloat}, weight: 1, device: true, eval: func(_ *machine, a []any) any {
			return add(val(a[0]), scalar(val(a[0]), a[1].(float64)))
		}},
		&operation{source: "$0.AddScaled($1, $2)", result: tMat, args: []kind{tMat, tMat, tFloat}, weight: 1, device: true, eval: func(_ *machine, a []any) any {
			return add(val(a[0]), mul(val(a[1]), scalar(val(a[1]), a[2].(float64))))
		}},
		shaped("apart.Of($0, $1)", 1, func(a []*value) *value { return mul(sub(a[0], a[1]), a[1]) }, tMat, tMat, tMat),
		shaped("apart.Of($0, $1)", 1, func(a []*value) *value { return mul(sub(a[0], a[1]), a[1]) }, tVec, tVec, tVec),
		shaped("$0.To($0.Device())", 1, func(a []*value) *value { return a[0] }, tMat, tMat),
		shaped("$0.Track()", 1, func(a []*value) *value { return a[0] }, tMat, tMat),
		shaped("slope($0)", 1, func(a []*value) *value { return add(a[0], a[0]) }, tMat, tMat),
		shaped("perRow($0, $1)", 1, func(a []*value) *value { return most(sum(mul(a[0], a[1]), 1), -1) }, tOne, tMat, tMat),
		shapedIn("tensor.On($0.Device()).Ones({r}, {c}).As(tensor.{T})", 1, func(m *machine, a []*value) *value {
			return full(scalar(&value{dtype: m.p.dtype}, 1), m.p.shape())
		}, tMat, tMat),
		shapedIn("tensor.Ones({r}, {c}).As(tensor.{T})", 1, func(m *machine, _ []*value) *value {
			return full(scalar(&value{dtype: m.p.dtype}, 1), m.p.shape())
		}, tMat),
		shapedIn("tensor.Zeros({r}, {c}).As(tensor.{T})", 1, func(m *machine, _ []*value) *value { return newValue(m.p.dtype, m.p.shape()) }, tMat),
		shapedIn("tensor.Eye({c}).Row(0).As(tensor.{T})", 1, func(m *machine, _ []*value) *value {
			x := newValue(m.p.dtype, []int{m.p.cols})
			x.floats[0] = 1
			return x
		}, tVec),
		shapedIn("tensor.Linspace(-1, 2, {c}).As(tensor.{T})", 1, func(m *machine, _ []*value) *value {
			x := newValue(m.p.dtype, []int{m.p.cols})
			for i := range x.floats {
				x.floats[i] = -1
				if i > 0 {
					x.floats[i] = float64(float32(-1 + float64(i*3)/float64(m.p.cols-1)))
				}
			}
			return x
		}, tVec),
		&operation{source: "tensor.From([]float64{$0, $1}, 2).As(tensor.{T}).Sum()", result: tOne, args: []kind{tFloat, tFloat}, weight: 1, device: true, eval: func(m *machine, a []any) any {
			return add(scalar(&value{dtype: m.p.dtype}, a[0].(float64)), scalar(&value{dtype: m.p.dtype}, a[1].(float64)))
		}},
		&operation{source: "tensor.FromOn($0.Device(), []float64{$1}).As(tensor.{T}).BroadcastTo({r}, {c})", result: tMat, args: []kind{tVec, tFloat}, weight: 1, device: true, eval: func(m *machine, a []any) any {
			return full(scalar(&value{dtype: m.p.dtype}, a[1].(float64)), m.p.shape())
		}},

		// Random numbers.
		cell("m.G.Uniform(-1, 1, {r}, {c}).As(tensor.{T})", tMat, 1, func(m *machine, _ []any) any {
			u := m.generator.uniform(m.p.shape())
			two := mul(u, scalar(u, 2))
			return as(sub(two, scalar(u, 1)), m.p.dtype)
		}),
		cell("tensor.Randn({r}, {c})"+coarse+".As(tensor.{T})", tMat, 1, func(m *machine, _ []any) any {
			return as(m.coarse(m.common.normal(m.p.shape())), m.p.dtype)
		}),
		cell("m.G.Randn({c})"+coarse+".As(tensor.{T})", tVec, 1, func(m *machine, _ []any) any {
			return as(m.coarse(m.generator.normal([]int{m.p.cols})), m.p.dtype)
		}),
		cell("tensor.RandInt(0, 3, {r}, {c})", tIMat, 1, func(m *machine, _ []any) any { return m.common.integers(0, 3, m.p.shape()) }),
		&operation{source: "m.R.Float64()", result: tFloat, weight: 1, cells: true, eval: func(m *machine, _ []any) any { return m.host.Float64() }},
		&operation{source: "m.R.IntN(3)", result: tInt, weight: 1, cells: true, eval: func(m *machine, _ []any) any { return m.host.IntN(3) }},
		&operation{source: "m.O.Rate()", result: tFloat, weight: 1, cells: true, eval: func(m *machine, _ []any) any { return m.rate }},

		// Reads.
		read("float64($0.As(tensor.Float32).Float32s()[0])", tFloat, 1, func(_ *machine, a []any) any { return first(as(ok(a[0]), f32)) }, tVec),
		read("int($0.Int64s()[0] % 5)", tInt, 1, func(_ *machine, a []any) any { return int(ok(a[0]).ints[0] % 5) }, tIMat),
		read("int($0.AtInt(0, {c}-1) % 5)", tInt, 1, func(_ *machine, a []any) any { return int(ok(a[0]).ints[val(a[0]).shape[1]-1] % 5) }, tIMat),
		read("float64(tensor.SliceOf[{t}]($0)[0])", tFloat, 1, func(_ *machine, a []any) any { return first(ok(a[0])) }, tVec),
		read("$0.Matrix().At(0, {c}-1)", tFloat, 1, func(_ *machine, a []any) any { return ok(a[0]).floats[val(a[0]).shape[1]-1] }, tMat),
		read("$0.WaitContext(context.Background())", tError, 1, waited, tOne),
		read("tensor.Wait($0, $1)", tError, 1, func(m *machine, a []any) any {
			if err := waited(m, a[:1]); err != nil {
				return err
			}
			return waited(m, a[1:])
		}, tOne, tVec),
		read("encoded($0)", tString, 1, func(_ *machine, a []any) any { return encoded(val(a[0])) }, tMat),
		read("$0.F64().Mul($1.F64()).Sub(tensor.Const(0.5)).Item()", tFloat, 1, func(_ *machine, a []any) any {
			x, y := first(ok(a[0])), first(ok(a[1]))
			return float64(x*y) - 0.5
		}, tOne, tOne),
		read("tensor.FromDense($0.Matrix()).As(tensor.{T})", tMat, 1, func(_ *machine, a []any) any { return ok(a[0]) }, tMat),
		read("fmt.Sprintf(\"%.3v|%6.1f\", $0, $1)", tString, 1, func(_ *machine, a []any) any { return fmt.Sprintf("%.3v|%6.1f", a...) }, tOne, tVec),

		// What is known without waiting.
		host("$0.Dim(0)", tInt, 1, func(a []any) any { return val(a[0]).shape[0] }, tMat),
		host("$0.Size()", tInt, 1, func(a []any) any { return size(val(a[0]).shape) }, tVec),
		host("$0.Rank()", tInt, 1, func(a []any) any { return len(val(a[0]).shape) }, tOne),
		host("len($0.Shape())", tInt, 1, func(a []any) any { return len(val(a[0]).shape) }, tMat),
		host("$0.DType() == tensor.Float32", tBool, 1, func(a []any) any { return val(a[0]).dtype == f32 }, tMat),
		host("math.Floor($0)", tFloat, 1, func(a []any) any { return math.Floor(a[0].(float64)) }, tFloat),
		host("max($0, $1)", tInt, 1, func(a []any) any { return max(a[0].(int), a[1].(int)) }, tInt, tInt),
		host("strings.ToUpper($0)", tString, 1, func(a []any) any { return strings.ToUpper(a[0].(string)) }, tString),
	)
	for _, c := range []struct {
		name string
		is   func(x, y float64) bool
	}{
		{"Eq", func(x, y float64) bool { return x == y }}, {"Ne", func(x, y float64) bool { return x != y }},
		{"Lt", func(x, y float64) bool { return x < y }}, {"Le", func(x, y float64) bool { return x <= y }},
		{"Gt", func(x, y float64) bool { return x > y }}, {"Ge", func(x, y float64) bool { return x >= y }},
	} {
		put(&operation{source: "$0." + c.name + "Scalar($1)", result: tBMat, args: []kind{tMat, tFloat}, weight: 1, device: true, eval: func(_ *machine, a []any) any {
			return compare(val(a[0]), scalar(val(a[0]), a[1].(float64)), c.is)
		}}, shaped("$0."+c.name+"F64($1.F64())", 1, func(a []*value) *value { return compare(a[0], a[1], c.is) }, tBMat, tMat, tOne))
	}
	put(helped()...)
	put(partOperations()...)
	return all, unrounded
}

// takeTurn begins the last loop of the kernel with a statement that uses o, so that of as many
// programs in a row as there are operations each has another one, however many these are. It comes
// before the loop if that is one that values end, which it might keep from running past its end.
func (g *maker) takeTurn(o *operation) {
	g.scope, g.noCells = g.before, true
	args := make([]*expr, len(o.args))
	for i, k := range o.args {
		if args[i] = g.variable(k); args[i] == nil {
			args[i] = g.expr(k, 1) // without cells: it may be there twice
		}
	}
	s := &stmt{form: sPrint, text: outWriter, rhs: []*expr{apply(o, args...)}}
	if o.result == tMat && g.chance(2) {
		s = assign(of(g.local(tMat)), "=", s.rhs[0])
	}
	for i, loop := range slices.Backward(g.p.body) {
		switch {
		case !loop.isLoop():
			continue
		case g.p.leaves:
			g.p.body = slices.Insert(g.p.body, i, s)
		default:
			loop.body = slices.Insert(loop.body, 0, s)
		}
		return
	}
}

// The operations of certain statements.
var (
	opSeed     = cell("tensor.Seed(11)", none, 0, func(m *machine, _ []any) any { m.common = stream{Key: 11}; return nil })
	opState    = cell("m.G.Set(tensor.From([]int64{5, 8}))", none, 0, func(m *machine, _ []any) any { m.generator = stream{5, 8}; return nil })
	opBackward = cell("m.P.Value().Mul($0.Detach()).Sum().Backward()", none, 0, func(m *machine, a []any) any {
		m.gradient(val(a[0]))
		return nil
	}, tMat)
	opZeroGrad = cell("m.P.ZeroGrad()", none, 0, func(m *machine, _ []any) any { m.grad = nil; return nil })
	opStep     = cell("m.O.Step()", none, 0, func(m *machine, _ []any) any { m.descend(); return nil })
	opMinimize = cell("m.O.Minimize(m.P.Value().Mul($0.Detach()).Sum())", none, 0, func(m *machine, a []any) any {
		m.grad = nil
		m.gradient(val(a[0]))
		m.descend()
		return nil
	}, tMat)
	opSnapshot = cell("tensor.Snapshot(m.P, m.B, m.G)", tState, 0, func(m *machine, _ []any) any { return m.cells })
	opRestore  = cell("$0.Restore()", none, 0, func(m *machine, a []any) any { m.cells = a[0].(cells); return nil }, tState)
	opSetRate  = cell("m.O.SetRate($0)", none, 0, func(m *machine, a []any) any {
		rate := a[0].(float64)
		if !(rate >= 0 && rate <= math.MaxFloat64) {
			panic(raised{"*op.Mistake: SetRate"})
		}
		m.rate = rate
		return nil
	}, tFloat)

	opItemContext = read("$0.ItemContext(context.Background())", tFloat, 0, func(m *machine, a []any) any {
		if err := waited(m, a); err != nil {
			return tuple{0.0, err}
		}
		return tuple{first(val(a[0])), nil}
	}, tOne)
	opLine = &operation{source: "in.ReadString('\\n')", result: tString, eval: func(m *machine, _ []any) any {
		if len(m.lines) == 0 {
			return tuple{m.line(), fmt.Errorf("EOF")}
		}
		return tuple{m.line() + "\n", nil}
	}}
	opScanner = &operation{source: "bufio.NewScanner(in)", result: tScanner, eval: func(m *machine, _ []any) any { return &scanner{m: m} }}
	opScan    = &operation{source: "$0.Scan()", result: tBool, args: []kind{tScanner}, eval: func(_ *machine, a []any) any { return a[0].(*scanner).scan() }}
	opText    = host("$0.Text()", tString, 0, func(a []any) any { return a[0].(*scanner).text }, tScanner)
	opLength  = host("len($0)", tInt, 0, func(a []any) any { return len(a[0].(string)) }, tString)
)

// shapedIn is shaped for what depends on the program, too.
func shapedIn(source string, weight int, eval func(m *machine, a []*value) *value, args ...kind) *operation {
	return &operation{source: source, result: args[0], args: args[1:], weight: weight, device: true, eval: func(m *machine, a []any) any {
		vs := make([]*value, len(a))
		for i := range a {
			vs[i] = val(a[i])
		}
		return eval(m, vs)
	}}
}

// waited is what Wait returns.
func waited(_ *machine, a []any) any {
	if why := val(a[0]).failed; why != "" {
		return errors.New("asyncgen: " + why)
	}
	return nil
}

// encoded is x as JSON, or why that can't be.
func encoded(x *value) string {
	if x.failed != "" {
		return " asyncgen: " + x.failed
	}
	for i, y := range x.floats {
		if y-y != 0 {
			return fmt.Sprintf(" tensor: MarshalJSON: element %d is %v, which JSON can't express", i, y)
		}
	}
	rows := make([][]any, x.shape[0])
	for i := range x.floats {
		rows[i/x.shape[1]] = append(rows[i/x.shape[1]], x.element(i))
	}
	text, err := json.Marshal(rows)
	return fmt.Sprint(string(text), " ", err)
}

// gradient adds x to the gradient of the parameter.
func (m *machine) gradient(x *value) {
	if m.grad != nil {
		x = add(m.grad, x)
	}
	m.grad = x
}

// descend is a step along the gradient of the parameter.
func (m *machine) descend() {
	if m.grad != nil {
		m.param = sub(m.param, mul(m.grad, scalar(m.param, m.rate)))
	}
}

// wide applies a function to every element and does not round.
func wide(x *value, f func(float64) float64) *value {
	if s := spoiled(x.dtype, x.shape, x); s != nil {
		return s
	}
	z := newValue(x.dtype, x.shape)
	for i, y := range x.floats {
		z.floats[i] = f(y)
	}
	return z
}

// lines calls f with the places of the elements along an axis, for each place in the others.
func lines(shape []int, axis int, f func(places []int)) {
	n, inner := shape[axis], size(shape[axis+1:])
	for o := range size(shape[:axis]) {
		for i := range inner {
			places := make([]int, n)
			for k := range n {
				places[k] = (o*n+k)*inner + i
			}
			f(places)
		}
	}
}

// sumExp is the sum of e to the power of some elements of x less the greatest, and that.
func sumExp(x *value, places []int) (total, shift float64) {
	shift = math.Inf(-1)
	for _, at := range places {
		shift = max(shift, x.floats[at])
	}
	if shift-shift != 0 {
		shift = 0
	}
	for _, at := range places {
		total += power(x, at, shift)
	}
	return total, shift
}

// power is e to the power of an element of x less shift: it does not round, but it may be too great for x's type.
func power(x *value, at int, shift float64) float64 {
	y := math.Exp(x.floats[at] - shift)
	if round(x.dtype, y) > math.MaxFloat64 {
		return math.Inf(1)
	}
	return y
}

// softmax does not round.
func softmax(x *value, axis int) *value {
	if s := spoiled(x.dtype, x.shape, x); s != nil {
		return s
	}
	z := newValue(x.dtype, x.shape)
	lines(x.shape, axis, func(places []int) {
		total, shift := sumExp(x, places)
		for _, at := range places {
			z.floats[at] = power(x, at, shift) / total
		}
	})
	return z
}

// remainder is what is left of x after a division by y that is rounded down.
func remainder(x, y float64) float64 {
	r := math.Mod(x, y)
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}

// logSoftmax does not round, nor does it need the softmax, which may be too small for a number.
func logSoftmax(x *value, axis int) *value {
	if s := spoiled(x.dtype, x.shape, x); s != nil {
		return s
	}
	z := newValue(x.dtype, x.shape)
	lines(x.shape, axis, func(places []int) {
		total, shift := sumExp(x, places)
		for _, at := range places {
			z.floats[at] = x.floats[at] - shift - math.Log(total)
		}
	})
	return z
}

// normed divides by the square root of the mean of the squares plus a half, of the differences to
// the mean if centred. It does not round.
func normed(x *value, axis int, centred bool) *value {
	if s := spoiled(x.dtype, x.shape, x); s != nil {
		return s
	}
	z := newValue(x.dtype, x.shape)
	lines(x.shape, axis, func(places []int) {
		mean, variance, n := 0.0, 0.0, float64(len(places))
		if centred {
			for _, at := range places {
				mean += x.floats[at]
			}
			mean /= n
		}
		for _, at := range places {
			z.floats[at] = x.floats[at] - mean
			variance += z.floats[at] * z.floats[at]
		}
		variance = round(x.dtype, variance) // squares of large float32s overflow
		for _, at := range places {
			z.floats[at] /= math.Sqrt(variance/n + 0.5)
		}
	})
	return z
}

// logSumExp does not round, along an axis or, if that is negative, over all elements.
func logSumExp(x *value, axis int) *value {
	if axis < 0 {
		z := logSumExp(reshape(x, size(x.shape)), 0)
		return reshape(z)
	}
	shape := slices.Delete(slices.Clone(x.shape), axis, axis+1)
	if s := spoiled(x.dtype, shape, x); s != nil {
		return s
	}
	z := newValue(x.dtype, shape)
	i := 0
	lines(x.shape, axis, func(places []int) {
		total, shift := sumExp(x, places)
		z.floats[i] = math.Log(total) + shift
		i++
	})
	return z
}

// cumulated adds the elements along an axis one after the other.
func cumulated(x *value, axis int) *value {
	if s := spoiled(x.dtype, x.shape, x); s != nil {
		return s
	}
	z := newValue(x.dtype, x.shape)
	lines(x.shape, axis, func(places []int) {
		total := 0.0
		for _, at := range places {
			total = round(x.dtype, total+x.floats[at])
			z.floats[at] = total
		}
	})
	return z
}

// unfolded is what a kernel of one row, as long as those of x, meets as it moves from beyond the
// left end of x's rows to where it lies on them: a column for each element of x, with zeros
// outside.
func unfolded(x *value) *value {
	rows, cols := x.shape[0], x.shape[1]
	shape := []int{cols, rows * cols}
	if s := spoiled(x.dtype, shape, x); s != nil {
		return s
	}
	z := newValue(x.dtype, shape)
	for k := range cols {
		for i := range rows {
			for j := range cols {
				if at := j - (cols - 1) + k; at >= 0 {
					z.floats[(k*rows+i)*cols+j] = x.floats[i*cols+at]
				}
			}
		}
	}
	return z
}

// windows gives each element of x what f gives of those of x, in order, that are there of itself
// and those to the left, above, and above to the left.
func windows(x *value, f func(x []float64) float64) *value {
	if s := spoiled(x.dtype, x.shape, x); s != nil {
		return s
	}
	z := newValue(x.dtype, x.shape)
	for i := range x.shape[0] {
		for j := range x.shape[1] {
			var in []float64
			for y := max(0, i-1); y <= i; y++ {
				in = append(in, x.floats[y*x.shape[1]+max(0, j-1):y*x.shape[1]+j+1]...)
			}
			z.floats[i*x.shape[1]+j] = round(x.dtype, f(in))
		}
	}
	return z
}

// prodAlong is the product along an axis.
func prodAlong(x *value, axis int) *value {
	return reduce(x, axis, func(a, b float64) float64 { return a * b }, nil, 1)
}

// extreme is where the greatest or the least element along an axis is, or the first NaN.
func extreme(x *value, axis int, isMin bool) *value {
	shape := slices.Delete(slices.Clone(x.shape), axis, axis+1)
	if s := spoiled(i64, shape, x); s != nil {
		return s
	}
	z := newValue(i64, shape)
	i := 0
	lines(x.shape, axis, func(places []int) {
		best := 0
		for k, at := range places {
			y, b := x.floats[at], x.floats[places[best]]
			if b == b && (y != y || !isMin && y > b || isMin && y < b) {
				best = k
			}
		}
		z.ints[i] = int64(best)
		i++
	})
	return z
}

// ordered is where the elements along an axis are, from the least to the greatest or from that to
// the least, and NaNs behind them.
func ordered(x *value, axis int, descending bool) *value {
	if s := spoiled(i64, x.shape, x); s != nil {
		return s
	}
	z := newValue(i64, x.shape)
	lines(x.shape, axis, func(places []int) {
		for k, at := range places {
			before := 0 // how many come before it
			for j, other := range places {
				a, b := x.floats[other], x.floats[at]
				switch {
				case a == a && b != b || a < b && !descending || a > b && descending:
					before++
				case (a == b || a != a && b != b) && j < k:
					before++
				}
			}
			z.ints[places[before]] = int64(k)
		}
	})
	return z
}

// extremeLast is where the greatest element of each row is, a NaN only where there is nothing else.
func extremeLast(x *value) *value {
	order := ordered(x, 1, true)
	if s := spoiled(i64, x.shape[:1], order); s != nil {
		return s
	}
	z := newValue(i64, x.shape[:1])
	for i := range z.ints {
		z.ints[i] = order.ints[i*x.shape[1]]
	}
	return z
}

// chosen is the elements of x with the given indices along an axis.
func chosen(x, index *value, axis int) *value {
	if s := spoiled(x.dtype, index.shape, x, index); s != nil {
		return s
	}
	z := newValue(x.dtype, index.shape)
	var from [][]int
	lines(x.shape, axis, func(places []int) { from = append(from, places) })
	lines(index.shape, axis, func(places []int) {
		for _, at := range places {
			z.floats[at] = x.floats[from[0][index.ints[at]]]
		}
		from = from[1:]
	})
	return z
}

// stacked is the rows of x and then those of y.
func stacked(x, y *value) *value {
	shape := []int{x.shape[0] + y.shape[0], x.shape[1]}
	if s := spoiled(x.dtype, shape, x, y); s != nil {
		return s
	}
	z := newValue(x.dtype, shape)
	copy(z.floats[copy(z.floats, x.floats):], y.floats)
	return z
}

// depends is x, which fails as the first of the operands does that failed.
func depends(x *value, operands ...*value) *value {
	if s := spoiled(x.dtype, x.shape, operands...); s != nil {
		return s
	}
	return x
}

// pointed is where an index points to on an axis, and why it points to nothing. The number of a class is no index that
// counts from the end.
func pointed(index int64, length int, isClass bool) (at int, failed string) {
	at = int(index)
	if at < 0 && !isClass {
		at += length
	}
	switch {
	case 0 <= at && at < length:
		return at, ""
	case isClass:
		return 0, fmt.Sprintf("label or class %d is out of range: there are %d classes, 0 to %d", index, length, length-1)
	}
	return 0, outOfRange(int(index), length)
}

func outOfRange(index, length int) string {
	return fmt.Sprintf("index %d is out of range of an axis of length %d", index, length)
}

// taken is the rows of a matrix with the given indices, or of the given classes.
func taken(x, index *value, isClass bool) *value {
	n := x.shape[1]
	shape := []int{size(index.shape), n}
	if s := spoiled(x.dtype, shape, x, index); s != nil {
		return s
	}
	z := newValue(x.dtype, shape)
	for i, k := range index.ints {
		at, failed := pointed(k, x.shape[0], isClass)
		if failed != "" {
			return &value{dtype: x.dtype, shape: shape, failed: failed}
		}
		copy(z.floats[i*n:][:n], x.floats[at*n:])
	}
	return z
}

// pick is an element of each row of a matrix.
func pick(x, index *value, isClass bool) *value {
	if s := spoiled(x.dtype, index.shape, x, index); s != nil {
		return s
	}
	z := newValue(x.dtype, index.shape)
	for i, k := range index.ints {
		at, failed := pointed(k, x.shape[1], isClass)
		if failed != "" {
			return &value{dtype: x.dtype, shape: index.shape, failed: failed}
		}
		z.floats[i] = x.floats[i*x.shape[1]+at]
	}
	return z
}

// oneHot is a vector of n elements, of which one is 1, for each index.
func oneHot(index *value, n int) *value {
	shape := append(slices.Clone(index.shape), n)
	if s := spoiled(f32, shape, index); s != nil {
		return s
	}
	z := newValue(f32, shape)
	for i, k := range index.ints {
		at, failed := pointed(k, n, true)
		if failed != "" {
			return &value{dtype: f32, shape: shape, failed: failed}
		}
		z.floats[i*n+at] = 1
	}
	return z
}

// normal draws float32 numbers near those of the normal distribution that the library draws.
func (g *stream) normal(shape []int) *value {
	z := newValue(f32, shape)
	for i := range z.floats {
		w := philox(g.Pos/4, g.Key, 2)
		pair := g.Pos % 4 / 2 * 2
		radius := math.Sqrt(-2 * math.Log((float64(w[pair]>>1)+0.5)/(1<<31)))
		y, x := math.Sincos(2 * math.Pi * float64(w[pair+1]) / (1 << 32))
		if z.floats[i] = radius * x; g.Pos%2 == 1 {
			z.floats[i] = radius * y
		}
		g.Pos++
	}
	return z
}
