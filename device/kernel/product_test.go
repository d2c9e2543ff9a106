package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestMulAddRoundsOnce compares with exact arithmetic. Many of its sums lie, in float64, in the middle
// between two float32s.
func TestMulAddRoundsOnce(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	some := func() float32 {
		switch rnd.IntN(4) {
		case 0: // few digits: products and sums in the middle
			return float32(math.Ldexp(float64(rnd.IntN(1<<13)-1<<12), rnd.IntN(60)-30))
		case 1: // down to denormal products and sums
			return float32(math.Ldexp(rnd.NormFloat64(), rnd.IntN(160)-150))
		}
		return math.Float32frombits(rnd.Uint32())
	}
	exact := func(x float32) *big.Float { return new(big.Float).SetPrec(1200).SetFloat64(float64(x)) }
	special := func(x float32) bool { return x != x || math.IsInf(float64(x), 0) }
	for range 200_000 {
		x, y, z := some(), some(), some()
		if rnd.IntN(4) == 0 { // nearly cancelled
			z = -x * y
		}
		got := MulAdd(x, y, z)
		if special(x) || special(y) || special(z) {
			if want := float32(math.FMA(float64(x), float64(y), float64(z))); got != want && (got == got || want == want) {
				t.Fatalf("%v*%v + %v is %v, want %v", x, y, z, got, want)
			}
			continue
		}
		sum := exact(x)
		want, _ := sum.Mul(sum, exact(y)).Add(sum, exact(z)).Float32()
		if got != want {
			t.Fatalf("%x*%x + %x is %x, want %x", x, y, z, got, want)
		}
	}
	if negative := math.Float32frombits(1 << 31); !math.Signbit(float64(MulAdd(negative, 1, negative))) || math.Signbit(float64(MulAdd(1, 0, negative))) {
		t.Error("the sign of a sum that is 0 is wrong")
	}
	if MulAdd(int64(1<<62), 4, 5) != 5 || MulAdd(0x1p-600, 0x1p-600, 1.5) != 1.5 {
		t.Error("wrong for int64 or float64")
	}
}
