package kernel

import (
	"math"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// foldByRecursion is Fold from the top down: it makes the last combination first.
func foldByRecursion(x []float32) float32 {
	if blocks := (len(x) + Block - 1) / Block; blocks > 1 {
		half := 1
		for 2*half < blocks {
			half *= 2
		}
		return foldByRecursion(x[:half*Block]) + foldByRecursion(x[half*Block:])
	}
	var lane func(first, step int) float32
	lane = func(first, step int) float32 {
		if step < Lanes {
			return lane(first, 2*step) + lane(first+step, 2*step)
		}
		sum := float32(0)
		for i := first; i < len(x); i += Lanes {
			sum += x[i]
		}
		return sum
	}
	return lane(0, 1)
}

func TestFold(t *testing.T) {
	rnd := newRand(t)
	for _, n := range []int{0, 1, 2, 3, 31, 63, 64, 65, 100, Block - 1, Block, Block + 1, 2 * Block, 5*Block + 7, 7*Block + 4000, 8 * Block} {
		x := make([]float32, n)
		exact, size := 0.0, 0.0
		for i := range x {
			x[i] = float32(rnd.NormFloat64())
			exact += float64(x[i])
			size += math.Abs(float64(x[i]))
		}
		got := Fold(ReduceSum, x)
		if want := foldByRecursion(x); got != want {
			t.Errorf("sum of %d: %v, by recursion %v", n, got, want)
		}
		if err := math.Abs(float64(got) - exact); err > size*0x1p-24*(Block/Lanes+20) {
			t.Errorf("sum of %d: %v, exactly %v", n, got, exact)
		}
	}
}

func TestFoldValues(t *testing.T) {
	nan := math.NaN()
	if got := Fold(ReduceMax, []float64{1, nan, 3}); got == got {
		t.Errorf("max of a NaN is %v", got)
	}
	if got := Fold(ReduceMin, []float64{4, -1, 3}); got != -1 {
		t.Errorf("min = %v", got)
	}
	if got := Fold(ReduceProd, []int64{2, 3, 7}); got != 42 {
		t.Errorf("prod = %v", got)
	}
	if Fold(ReduceAll, []bool{true, false}) || !Fold(ReduceAny, []bool{true, false}) {
		t.Error("all or any of true, false is wrong")
	}
	if !Fold[bool](ReduceAll, nil) || Fold[bool](ReduceAny, nil) {
		t.Error("all or any of nothing is wrong")
	}
	if got := Fold[float32](ReduceMax, nil); !math.IsInf(float64(got), -1) {
		t.Errorf("max of nothing = %v", got)
	}
	if got := Fold[int64](ReduceMax, nil); got != math.MinInt64 {
		t.Errorf("max of no int64 = %v", got)
	}
	keys := map[string]bool{}
	for _, r := range Reducers() {
		if keys[r.Key()] {
			t.Errorf("key %q twice", r.Key())
		}
		keys[r.Key()] = true
		for _, dt := range device.DTypes() {
			if f := r.Prim().Func(dt); f == nil {
				continue
			}
			if dt == i64 {
				if got := call[int64](r.Prim().Func(dt), [3]uint64{r.Identity(dt), 5}); got != 5 {
					t.Errorf("the identity of %v with 5 is %d", r, got)
				}
			}
		}
	}
}

func TestLanesFor(t *testing.T) {
	for n := 1; n < 200; n++ {
		got := LanesFor(n)
		if got < min(n, Lanes) || got > Lanes || got > 1 && got/2 >= n {
			t.Errorf("LanesFor(%d) = %d", n, got)
		}
	}
}

func TestArgFold(t *testing.T) {
	nan, zero := math.NaN(), math.Copysign(0, -1)
	for _, c := range []struct {
		x                []float64
		greatest, lowest int
	}{
		{nil, -1, -1}, {[]float64{nan}, 0, 0}, {[]float64{3, 1, 3, 1}, 0, 1}, {[]float64{2, nan, 5, nan}, 1, 1},
		{[]float64{zero, 0}, 0, 0}, {[]float64{math.Inf(-1), math.Inf(-1)}, 0, 0}, {[]float64{1, math.Inf(1), math.Inf(-1)}, 1, 2},
	} {
		if greatest, lowest := ArgFold(ReduceMax, c.x), ArgFold(ReduceMin, c.x); greatest != c.greatest || lowest != c.lowest {
			t.Errorf("%v: max at %d, min at %d, want %d and %d", c.x, greatest, lowest, c.greatest, c.lowest)
		}
	}
}

func TestScan(t *testing.T) {
	x := []int64{1, 2, 3, 4}
	for _, c := range []struct {
		r    Reducer
		back bool
		want [4]int64
	}{
		{ReduceSum, false, [4]int64{1, 3, 6, 10}}, {ReduceSum, true, [4]int64{10, 9, 7, 4}}, {ReduceProd, true, [4]int64{24, 24, 12, 4}}, {ReduceMin, false, [4]int64{1, 1, 1, 1}},
	} {
		var got [4]int64
		Scan(c.r, got[:], x, c.back)
		if got != c.want {
			t.Errorf("%v, back %v: %v, want %v", c.r, c.back, got, c.want)
		}
	}
}
