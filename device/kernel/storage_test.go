package kernel

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

const (
	f16  = device.Float16
	bf16 = device.BFloat16
)

// halfValue is the value of a number of 16 bits with the given number of bits in its mantissa, from the definition of
// the format.
func halfValue(bits uint16, mantissa int) float64 {
	sign, bias := 1.0, 1<<(14-mantissa)-1
	if bits>>15 != 0 {
		sign = -1
	}
	exponent, fraction := int(bits&0x7fff)>>mantissa, float64(bits&(1<<mantissa-1))
	switch {
	case exponent == 2*bias+1 && fraction != 0:
		return math.NaN()
	case exponent == 2*bias+1:
		return sign * math.Inf(1)
	case exponent == 0:
		return sign * math.Ldexp(fraction, 1-bias-mantissa)
	}
	return sign * math.Ldexp(math.Ldexp(1, mantissa)+fraction, exponent-bias-mantissa)
}

// halfFormats are the formats of 16 bits.
var halfFormats = []struct {
	dt       device.DType
	mantissa int
}{{f16, 10}, {bf16, 7}}

// nearest returns the bits of the number of a format that is nearest to x, ties to even. It looks among all of them,
// and computes exactly. A number behind the greatest one stands for the infinity.
func nearest(x *big.Float, negative bool, mantissa int) uint16 {
	magnitude := new(big.Float).Abs(x)
	infinity := uint16(0x7fff) &^ (1<<mantissa - 1)
	value := func(bits uint16) *big.Float {
		if bits == infinity { // the number that would follow
			return new(big.Float).SetFloat64(2*halfValue(bits-1, mantissa) - halfValue(bits-2, mantissa))
		}
		return new(big.Float).SetFloat64(halfValue(bits, mantissa))
	}
	least, most := uint16(0), infinity
	for least < most { // the greatest that is not above x
		middle := least + (most-least+1)/2
		if value(middle).Cmp(magnitude) <= 0 {
			least = middle
		} else {
			most = middle - 1
		}
	}
	best := least
	if least < infinity {
		exactly := func() *big.Float { return new(big.Float).SetPrec(4000) }
		below, above := exactly().Sub(magnitude, value(least)), exactly().Sub(value(least+1), magnitude)
		if c := below.Cmp(above); c > 0 || c == 0 && least&1 == 1 {
			best++
		}
	}
	if negative {
		best |= 0x8000
	}
	return best
}

// TestHalfValues compares every number of 16 bits with its definition, to float32 and float64 and back.
func TestHalfValues(t *testing.T) {
	for _, h := range halfFormats {
		for i := range 1 << 16 {
			bits := uint64(i)
			want := halfValue(uint16(i), h.mantissa)
			single := castBits(bits, h.dt, f32)
			if got := Value[float32](single); float64(got) != want && want == want || (got != got) != (want != want) || math.Signbit(float64(got)) != (i>>15 != 0) {
				t.Fatalf("%v %#x is %v as float32, want %v", h.dt, i, got, want)
			}
			back := bits
			if want != want {
				back |= 1 << (h.mantissa - 1) // quiet
			}
			if got := castBits(single, f32, h.dt); got != back {
				t.Fatalf("%v %#x to float32 and back is %#x", h.dt, i, got)
			}
			if i%32 != 0 && i%1024 < 992 { // this one is made of two, and slow
				continue
			}
			if got := Value[float64](castBits(bits, h.dt, f64)); got != want && want == want || (got != got) != (want != want) {
				t.Fatalf("%v %#x is %v as float64, want %v", h.dt, i, got, want)
			}
		}
	}
}

// TestHalfRounding compares conversions to 16 bits with the search for the nearest number.
func TestHalfRounding(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for _, h := range halfFormats {
		check := func(from device.DType, bits uint64, x *big.Float, negative bool) {
			t.Helper()
			if got, want := castBits(bits, from, h.dt), nearest(x, negative, h.mantissa); got != uint64(want) {
				t.Fatalf("%v %v (%#x) is %#x as %v, want %#x", from, x, bits, got, h.dt, want)
			}
		}
		number := func(x float64) {
			t.Helper()
			if math.IsInf(x, 0) || x != x {
				return
			}
			check(f64, Bits(x), new(big.Float).SetFloat64(x), math.Signbit(x))
			if y := float32(x); !math.IsInf(float64(y), 0) {
				check(f32, Bits(y), new(big.Float).SetFloat64(float64(y)), math.Signbit(float64(y)))
			}
			if math.Abs(x) < 1<<62 {
				check(i64, Bits(int64(x)), new(big.Float).SetInt64(int64(x)), int64(x) < 0)
			}
		}
		for range 3000 {
			value := halfValue(uint16(rnd.Uint32()), h.mantissa)
			next := halfValue(uint16(castBits(Bits(value), f64, h.dt))+1, h.mantissa)
			halfway := (value + next) / 2
			for _, x := range []float64{value, halfway} {
				number(x)
				number(math.Nextafter(x, math.Inf(1))) // a float32 would not tell it from x
				number(math.Nextafter(x, math.Inf(-1)))
				number(float64(math.Nextafter32(float32(x), math.MaxFloat32)))
				number(float64(math.Nextafter32(float32(x), -math.MaxFloat32)))
			}
			number(math.Float64frombits(rnd.Uint64()))
			number(float64(math.Float32frombits(rnd.Uint32())))
			n := rnd.Int64() >> rnd.IntN(60)
			check(i64, Bits(n), new(big.Float).SetInt64(n), n < 0)
		}
		for _, x := range []float64{0, math.Copysign(0, -1), 65504, 65519.999, 65520, 65536, math.MaxFloat32, math.MaxFloat64, 1e300, 0x1p-24, 0x1p-25, 0x1.8p-25,
			math.SmallestNonzeroFloat32, math.SmallestNonzeroFloat64, 0x1p-133, 0x1p-134, 0x1.00001p-134} {
			number(x)
			number(-x)
		}
		for _, n := range []int64{1<<40 + 1<<32, 1<<40 + 1<<32 + 1, 1<<40 + 1<<32 - 1, 1<<60 + 1<<52 + 1, -1<<60 - 1<<52 - 1, math.MaxInt64, math.MinInt64} {
			check(i64, Bits(n), new(big.Float).SetInt64(n), n < 0)
		}
		for from, infinity := range map[device.DType][2]uint64{
			f32: {Bits(float32(math.Inf(1))), Bits(float32(math.Inf(-1)))}, f64: {Bits(math.Inf(1)), Bits(math.Inf(-1))},
		} {
			for i, want := range []float64{math.Inf(1), math.Inf(-1)} {
				if got := halfValue(uint16(castBits(infinity[i], from, h.dt)), h.mantissa); got != want {
					t.Errorf("%v %v is %v as %v", from, want, got, h.dt)
				}
			}
			if got := halfValue(uint16(castBits(BitsOf(math.NaN(), from), from, h.dt)), h.mantissa); got == got {
				t.Errorf("NaN of %v is %v as %v", from, got, h.dt)
			}
		}
	}
}

// TestHalfOfTorch compares conversions of every number of 16 bits, and of those halfway between them and near them,
// with PyTorch's: see testdata/half.py.
func TestHalfOfTorch(t *testing.T) {
	file, err := os.Open("testdata/half.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	want := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		text := lines.Text()
		at := len(text) - 64
		want[text[:at-1]] = text[at:]
	}
	compare := func(name string, n int, sum []byte) {
		name = fmt.Sprintf("%s %d", name, n)
		if got := fmt.Sprintf("%x", sum); got != want[name] {
			t.Errorf("%s: the checksum is %s, that of PyTorch %s", name, got, want[name])
		}
		delete(want, name)
	}
	for _, h := range halfFormats {
		values := make([]float32, 1<<16)
		var words []byte
		for i := range values {
			values[i] = Value[float32](castBits(uint64(i), h.dt, f32))
			bits := math.Float32bits(values[i])
			if values[i] != values[i] {
				bits = 0x7fc00000
			}
			words = binary.LittleEndian.AppendUint32(words, bits)
		}
		sum := sha256.Sum256(words)
		compare(h.dt.String()+" float32", len(values), sum[:])
		halfway := make([]float32, len(values))
		for i, v := range values {
			halfway[i] = float32((float64(v) + float64(values[i&0x8000|(i+1)&0x7fff])) / 2)
		}
		for k, base := range [][]float32{values, halfway} {
			for step := -1; step <= 1; step++ {
				words = words[:0]
				for _, v := range base {
					bits := math.Float32bits(v) + uint32(step)
					half := castBits(uint64(bits), f32, h.dt)
					if x := math.Float32frombits(bits); x != x {
						half = 0x7fc0
						if h.dt == f16 {
							half = 0x7e00
						}
					}
					words = binary.LittleEndian.AppendUint16(words, uint16(half))
				}
				sum := sha256.Sum256(words)
				compare(fmt.Sprintf("float32 %v %s %+d", h.dt, [...]string{"value", "halfway"}[k], step), len(base), sum[:])
			}
		}
	}
	for name := range want {
		t.Errorf("%s: nothing was compared with it", name)
	}
}

// TestCastPairs compares conversions between all pairs of types on their edges with what Go converts.
func TestCastPairs(t *testing.T) {
	edges := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, 2.5, 127, 128, 255, 255.5, 256, 257, -128, -129, 1 << 31, 1<<31 - 1, -1 << 31, -1<<31 - 1,
		1 << 32, 1<<33 + 3, 65504, 65520, 1 << 53, 1e19, -1e19, 1e38, 1e300, -1e300, math.NaN(), math.Inf(1), math.Inf(-1), 0x1p-24, 0x1p-30}
	for _, from := range device.DTypes() {
		for _, v := range edges {
			bits := BitsOf(v, from)
			x := asFloat64(bits, from)
			whole, n := from.Wide() == i64, int64(castBits(bits, from, i64))
			for _, to := range device.DTypes() {
				var want uint64
				switch {
				case to == from:
					want = bits
				case to == boolean:
					want = Bits(x != 0)
				case to == f64:
					want = Bits(x)
				case to == f32:
					want = Bits(float32(x))
				case to == f16 || to == bf16:
					want = castBits(Bits(x), f64, to) // x is exact
				case to == device.Int32 && whole:
					want = Bits(int32(n))
				case to == device.Uint8 && whole:
					want = Bits(uint8(n))
				case to == device.Int32:
					want = Bits(int32(saturated(x, math.MinInt32, math.MaxInt32)))
				case to == device.Uint8:
					want = Bits(uint8(saturated(x, 0, math.MaxUint8)))
				case whole:
					want = Bits(n)
				default:
					want = Bits(toInt(x))
				}
				got := Cast(Arg(0, from), to).Eval([]uint64{bits}, nil)
				if got != want && !(x != x && to.IsFloat() && asFloat64(got, to) != asFloat64(got, to)) {
					t.Errorf("%v %v is %#x as %v, want %#x", from, x, got, to, want)
				}
				if slices.Contains([]device.DType{f32, f64, i64}, to) && to == from.Wide() && to != from && castBits(got, to, from) != bits && x == x {
					t.Errorf("%v %v does not survive the way to %v and back", from, x, to)
				}
			}
		}
	}
}

// asFloat64 is a value of any type. None of those in TestCastPairs is rounded.
func asFloat64(bits uint64, dt device.DType) float64 {
	switch dt {
	case f32:
		return float64(Value[float32](bits))
	case f64:
		return Value[float64](bits)
	case i64:
		return float64(int64(bits))
	case f16:
		return halfValue(uint16(bits), 10)
	case bf16:
		return halfValue(uint16(bits), 7)
	case device.Int32:
		return float64(int32(uint32(bits)))
	}
	return float64(bits)
}

func saturated(x, least, most float64) int64 {
	if x != x {
		return 0
	}
	return int64(math.Trunc(min(max(x, least), most)))
}
