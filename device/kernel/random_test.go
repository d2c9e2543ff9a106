package kernel

import (
	"math"
	"slices"
	"testing"
)

// The known answers that come with Random123, kat_vectors.
func TestPhiloxKnownAnswers(t *testing.T) {
	const ones = 0xffffffff
	for _, test := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{ones, ones, ones, ones}, [2]uint32{ones, ones}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := Philox(test.counter, test.key); got != test.want {
			t.Errorf("Philox(%x, %x) = %x, want %x", test.counter, test.key, got, test.want)
		}
	}
}

// TestDrawKnownAnswers ties the stream to Philox's first known answer: key 0, position 0.
func TestDrawKnownAnswers(t *testing.T) {
	var u [4]float32
	Draw(Uniform, 0, 0, 0, 0, u[:])
	for i, w := range []uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8} {
		if want := float32(w>>8) / (1 << 24); u[i] != want {
			t.Errorf("element %d is %v, want %v", i, u[i], want)
		}
	}
	const big = 1<<40 + 3
	w := Philox([4]uint32{uint32(big >> 1 & 0xffffffff), uint32(big >> 33), 1, 0}, [2]uint32{7, 9})
	var d [1]float64
	Draw(Uniform, 9<<32|7, big, 0, 0, d[:])
	if want := float64((uint64(w[2])|uint64(w[3])<<32)>>11) / (1 << 53); d[0] != want {
		t.Errorf("uniform float64 at %d is %v, want %v", uint64(big), d[0], want)
	}
}

func TestDrawInPieces(t *testing.T) {
	rnd := newRand(t)
	checkPieces(t, rnd.IntN, Uniform, make([]float32, 1001))
	checkPieces(t, rnd.IntN, Uniform, make([]float64, 1001))
	checkPieces(t, rnd.IntN, Normal, make([]float32, 1001))
	checkPieces(t, rnd.IntN, Normal, make([]float64, 1001))
	checkPieces(t, rnd.IntN, Ints, make([]int64, 1001))
}

func checkPieces[T float32 | float64 | int64](t *testing.T, intn func(int) int, d Distribution, whole []T) {
	key, pos := uint64(intn(1<<60)), uint64(intn(1<<60))
	Draw(d, key, pos, -5, 1000, whole)
	pieces := make([]T, len(whole))
	for i := 0; i < len(pieces); {
		n := min(1+intn(20), len(pieces)-i)
		Draw(d, key, pos+uint64(i), -5, 1000, pieces[i:i+n])
		i += n
	}
	if !slices.Equal(whole, pieces) {
		t.Errorf("%v %T depends on how it is drawn", d, whole)
	}
}

func TestDrawMoments(t *testing.T) {
	const n = 200000
	check := func(name string, x func(int) float64, mean, variance, fourth float64) {
		t.Helper()
		var m1, m2, m4, lag float64
		for i := range n {
			v := x(i) - mean
			m1 += v / n
			m2 += v * v / n
			m4 += v * v * v * v / n
			if i > 0 {
				lag += v * (x(i-1) - mean) / n
			}
		}
		// Five standard deviations; the keys are fixed, so it passes always or never.
		tolerance := 5 * math.Sqrt(variance/n)
		if math.Abs(m1) > tolerance || math.Abs(m2/variance-1) > 0.02 || math.Abs(m4/fourth-1) > 0.05 || math.Abs(lag/variance) > 5/math.Sqrt(n) {
			t.Errorf("%s: mean off by %v, variance %v, fourth moment %v, neighbours' covariance %v", name, m1, m2, m4, lag)
		}
	}
	f := make([]float32, n)
	d := make([]float64, n)
	k := make([]int64, n)
	Draw(Uniform, 1, 0, 0, 0, f)
	check("uniform float32", func(i int) float64 { return float64(f[i]) }, 0.5, 1./12, 1./80)
	Draw(Uniform, 2, 0, 0, 0, d)
	check("uniform float64", func(i int) float64 { return d[i] }, 0.5, 1./12, 1./80)
	Draw(Normal, 3, 0, 0, 0, f)
	check("normal float32", func(i int) float64 { return float64(f[i]) }, 0, 1, 3)
	Draw(Normal, 4, 0, 0, 0, d)
	check("normal float64", func(i int) float64 { return d[i] }, 0, 1, 3)
	Draw(Ints, 5, 0, -3, 4, k)
	check("ints", func(i int) float64 { return float64(k[i]) }, 0, 4, 28)
	if lo, hi := slices.Min(k), slices.Max(k); lo != -3 || hi != 3 {
		t.Errorf("ints from [-3, 4) go from %d to %d", lo, hi)
	}
	Draw(Ints, 6, 0, math.MinInt64, math.MaxInt64, k)
	if lo, hi := slices.Min(k), slices.Max(k); lo > math.MinInt64/2 || hi < math.MaxInt64/2 {
		t.Errorf("ints of the whole range go from %d to %d", lo, hi)
	}
}

// TestNormalAgainstMath computes the same transformation with package math.
func TestNormalAgainstMath(t *testing.T) {
	rnd := newRand(t)
	for range 20000 {
		w := [4]uint32{rnd.Uint32(), rnd.Uint32(), rnd.Uint32(), rnd.Uint32()}
		if rnd.IntN(10) == 0 {
			w[rnd.IntN(4)] = []uint32{0, 1, 0xffffffff, 1 << 29, 3 << 29, 1 << 30, 1 << 31}[rnd.IntN(7)]
		}
		got := normal32(w)
		for j := 0; j < 4; j += 2 {
			u := (float64(w[j]>>1) + 0.5) * 0x1p-31
			r, sin, cos := math.Sqrt(-2*math.Log(u)), math.Sin(2*math.Pi*float64(w[j+1])*0x1p-32), math.Cos(2*math.Pi*float64(w[j+1])*0x1p-32)
			// Near u = 1 the rounding of u to float32 decides.
			tolerance := 1e-6*(1+r) + 2e-7/(r+1e-4)
			if math.Abs(float64(got[j])-r*cos) > tolerance || math.Abs(float64(got[j+1])-r*sin) > tolerance {
				t.Fatalf("%x: normal32 = %v, want %v, %v at %d", w, got, r*cos, r*sin, j)
			}
		}
		got64 := normal64(w)
		u := (float64(wide(w[0], w[1])>>11) + 0.5) * 0x1p-53
		sin, cos := math.Sincos(2 * math.Pi * float64(int64(wide(w[2], w[3]))) * 0x1p-64)
		r := math.Sqrt(-2 * math.Log(u))
		if math.Abs(got64[0]-r*cos) > 4e-15*(1+r) || math.Abs(got64[1]-r*sin) > 4e-15*(1+r) {
			t.Fatalf("%x: normal64 = %v, want %v, %v", w, got64, r*cos, r*sin)
		}
	}
}

func TestDrawOfNothingDefinedPanics(t *testing.T) {
	defer func() {
		if got := recover(); got != "kernel: no normal int64" {
			t.Errorf("got panic %v", got)
		}
	}()
	Draw(Normal, 0, 0, 0, 0, make([]int64, 1))
}

func BenchmarkDraw(b *testing.B) {
	x := make([]float32, 1<<16)
	for _, d := range []Distribution{Uniform, Normal} {
		b.Run(d.String(), func(b *testing.B) {
			b.SetBytes(int64(len(x)) * 4)
			for b.Loop() {
				Draw(d, 1, 0, 0, 0, x)
			}
		})
	}
}
