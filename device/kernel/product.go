package kernel

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
)

// MulAdd is a step of a product of matrices, x*y + z rounded once: an element of the product is
// MulAdd(a0, b0, 0), then MulAdd(a1, b1, that) and so on. A backend whose hardware has no such
// operation may round the product, too, if it does so everywhere: the last bits are then others,
// and a product x*y that is out of range is an infinity although the sum would be in range, so that
// one of the other sign later makes NaN. On integers that makes no difference.
func MulAdd[T device.Element](x, y, z T) T {
	switch x := any(x).(type) {
	case float32:
		return any(fma32(x, any(y).(float32), any(z).(float32))).(T)
	case float64:
		return any(math.FMA(x, any(y).(float64), any(z).(float64))).(T)
	case int64:
		return any(x*any(y).(int64) + any(z).(int64)).(T)
	}
	panic("kernel: MulAdd of no numbers")
}
