package kernel

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
)

// A RowFunc is the Body of a Rows kernel: it makes of a row of floating-point numbers another one
// of the same length. See [Row].
type RowFunc uint8

const (
	Softmax    RowFunc = iota // e to the power of each element, divided by the sum of these
	LogSoftmax                // the natural logarithm of that
	LayerNorm                 // less the mean, divided by the standard deviation
	RMSNorm                   // divided by the root of the mean of the squares
)

var rowFuncs = [...]string{Softmax: "softmax", LogSoftmax: "logsoftmax", LayerNorm: "layernorm", RMSNorm: "rmsnorm"}

// RowFuncs lists all of them, in order.
func RowFuncs() []RowFunc {
	all := make([]RowFunc, len(rowFuncs))
	for i := range all {
		all[i] = RowFunc(i)
	}
	return all
}

// String is f's name: "softmax".
func (f RowFunc) String() string { return rowFuncs[f] }

// Key implements [device.Body].
func (f RowFunc) Key() string { return "row " + rowFuncs[f] }

// Norms reports whether f takes a number eps, and operands that its result is multiplied by and that are added to it.
func (f RowFunc) Norms() bool { return f == LayerNorm || f == RMSNorm }

// Row sets dst to f of x, which may be dst. All operations are those of T, each rounded, and sums
// and maxima are by the tree of [Fold]:
//
//   - Softmax and LogSoftmax subtract the greatest element first, or 0 where that is infinite or NaN. Softmax then
//     divides the powers of e by their sum; LogSoftmax subtracts the sum's logarithm from what they are the powers of.
//   - LayerNorm subtracts the sum divided by the length, and multiplies the differences by 1
//     divided by the square root of the sum of their squares divided by the length, plus eps.
//     RMSNorm does the second alone. Gain, unless it is nil, then multiplies the results, and bias
//     is added.
func Row[T float32 | float64](f RowFunc, dst, x []T, eps T, gain, bias []T) {
	n := T(len(x))
	switch f {
	case Softmax, LogSoftmax:
		shift := Fold(ReduceMax, x)
		if !(math.Abs(float64(shift)) < math.Inf(1)) {
			shift = 0
		}
		powers := make([]T, len(x))
		exp := PrimExp.Func(device.DTypeOf[T]()).(func(T) T)
		for i, v := range x {
			dst[i] = v - shift
			powers[i] = exp(dst[i])
		}
		sum := Fold(ReduceSum, powers)
		if f == LogSoftmax {
			log := PrimLog.Func(device.DTypeOf[T]()).(func(T) T)(sum)
			for i := range dst {
				dst[i] -= log
			}
			return
		}
		for i, p := range powers {
			dst[i] = p / sum
		}
		return
	case LayerNorm:
		mean := Fold(ReduceSum, x) / n
		for i, v := range x {
			dst[i] = v - mean
		}
	default:
		copy(dst, x)
	}
	squares := make([]T, len(x))
	for i, v := range dst {
		squares[i] = v * v
	}
	scale := 1 / T(math.Sqrt(float64(T(Fold(ReduceSum, squares)/n)+eps)))
	for i := range dst {
		dst[i] *= scale
		if gain != nil {
			dst[i] = T(dst[i] * gain[i])
		}
		if bias != nil {
			dst[i] += bias[i]
		}
	}
}
