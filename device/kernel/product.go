package kernel

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
)

// MulAdd is a step of a product of matrices, x*y + z rounded once: an element of
// the product is MulAdd(a0, b0, 0), then MulAdd(a1, b1, that) and so on. A backend whose
// hardware has no such operation may round the product, too, if it does so everywhere.
// On integers that makes no difference.
func MulAdd[T device.Element](x, y, z T) T {
	switch x := any(x).(type) {
	case float32:
		return any(mulAdd32(x, any(y).(float32), any(z).(float32))).(T)
	case float64:
		return any(math.FMA(x, any(y).(float64), any(z).(float64))).(T)
	case int64:
		return any(x*any(y).(int64) + any(z).(int64)).(T)
	}
	panic("kernel: MulAdd of no numbers")
}

// mulAdd32 adds the product, which is exact in float64, there, rounding to odd, which keeps the second
// rounding from going wrong: see S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums:
// proved algorithms using rounding to odd" (2008).
func mulAdd32(x, y, z float32) float32 {
	product, term := float64(x)*float64(y), float64(z)
	sum := product + term
	// The error of the sum, exactly: D. Knuth's TwoSum.
	back := sum - product
	lost := (product - (sum - back)) + (term - back)
	bits := math.Float64bits(sum)
	if lost != 0 && bits&1 == 0 && !math.IsNaN(lost) {
		if (lost > 0) == (sum > 0) {
			bits++
		} else {
			bits--
		}
	}
	return float32(math.Float64frombits(bits))
}
