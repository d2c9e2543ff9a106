package kernel

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
)

// MulAdd is x*y + z rounded once: a step of a product of matrices. An element of the product is
// s = MulAdd(a0, b0, 0), then s = MulAdd(a1, b1, s), and so on. A backend without a fused
// multiply-add may also round x*y, if it does so everywhere. Its last bits then differ. Its x*y may
// also overflow to an infinity where the sum is in range, and a later infinity of the other sign
// then makes NaN. Integers are the same either way.
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
