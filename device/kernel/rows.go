package kernel

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
)

// A RowFunc is the Body of a Rows kernel: a function from a row of floats to a row of the same
// length. See [Row].
type RowFunc uint8

const (
	Softmax    RowFunc = iota // e to the power of each element, divided by the sum of these powers
	LogSoftmax                // the natural logarithm of Softmax
	LayerNorm                 // each element less the mean, divided by the standard deviation
	RMSNorm                   // each element divided by the root of the mean of the squares
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

// Norms reports whether f takes eps, gain and bias; see [Row].
func (f RowFunc) Norms() bool { return f == LayerNorm || f == RMSNorm }

// Row sets dst to f of x. dst may be x. All operations are those of T, each rounded. Sums and maxima
// are combined in the order of [Fold].
//
//   - Softmax and LogSoftmax first subtract the greatest element, or 0 if it is infinite or NaN.
//     Softmax then divides e to the power of each difference by the sum of these powers. LogSoftmax
//     subtracts the logarithm of that sum from each difference.
//   - LayerNorm subtracts the mean: the sum divided by the length. It then multiplies each
//     difference by 1 / sqrt(average + eps), where average is the sum of the squared differences
//     divided by the length. RMSNorm does only the second step, with the elements themselves.
//     The results are then multiplied by gain, unless it is nil, and bias is added, unless it is
//     nil.
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
