package tensor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An intPair is an integer twice: as an I64, and as the host computes it.
type intPair struct {
	later tensor.I64
	now   int64
}

// integers are int64s at which arithmetic has its edge cases.
var integers = []int64{0, 1, -1, 7, math.MaxInt64, math.MinInt64, 1<<53 + 1, -(1<<53 + 1), 1 << 32}

// intTree returns a random expression of the given depth.
func intTree(r *rand.Rand, on []device.Device, depth int) intPair {
	if depth == 0 || r.IntN(8) == 0 {
		v := integers[r.IntN(len(integers))]
		dev := on[r.IntN(len(on))]
		switch r.IntN(4) {
		case 0:
			return intPair{tensor.ConstInt(v), v}
		case 1:
			b := v&1 == 1
			return intPair{tensor.FromOn(dev, []bool{b}).I64(), v & 1}
		case 2:
			return intPair{tensor.FromOn(dev, []int64{7, v, 9}).Row(1).I64(), v}
		}
		return intPair{tensor.FromOn(dev, []int64{v}, 1, 1).I64(), v}
	}
	x, y := intTree(r, on, depth-1), intTree(r, on, depth-1)
	switch r.IntN(3) {
	case 0:
		return intPair{x.later.Add(y.later), x.now + y.now}
	case 1:
		return intPair{x.later.Sub(y.later), x.now - y.now}
	}
	return intPair{x.later.Mul(y.later), x.now * y.now}
}

// Random expressions of integers from all devices give what the host's arithmetic gives, in all ways of reading
// them.
func TestI64Trees(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for i := range 100 {
			x := intTree(r, []device.Device{on, on, device.CPU()}, i%5)
			if got := x.later.ItemInt(); got != x.now {
				t.Fatalf("expression %d is %d, want %d", i, got, x.now)
			}
			text, err := json.Marshal(x.later)
			if want := fmt.Sprint(x.now); err != nil || string(text) != want || fmt.Sprint(x.later) != want || fmt.Sprintf("%5d", x.later) != fmt.Sprintf("%5d", x.now) {
				t.Errorf("%d is printed as %v, and %s as JSON (%v)", x.now, x.later, text, err)
			}
			for _, shape := range [][]int{nil, {1}, {1, 1}, {}} {
				y, want := x.later.Tensor(shape...), tensor.From([]int64{x.now}, shape...)
				if !slices.Equal(y.Shape(), want.Shape()) || y.Device() != want.Device() || y.Int64s()[0] != x.now {
					t.Errorf("Tensor(%v) is %v, want %v", shape, y, want)
				}
			}
			if !x.later.Ready() {
				t.Error("an integer that has been looked at is not ready")
			}
		}
	})
}

// Comparisons of random integers, which may differ by less than a float64 can tell, are those of the host.
func TestI64Comparisons(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for i := range 100 {
			x, y := intTree(r, []device.Device{on, device.CPU()}, i%3), intTree(r, []device.Device{on, device.CPU()}, i%2)
			if i%3 == 0 {
				y = intPair{x.later.Add(tensor.ConstInt(i % 2)), x.now + int64(i%2)}
			}
			for _, c := range []struct {
				text string
				got  tensor.Cond
				want bool
			}{
				{"<", x.later.Lt(y.later), x.now < y.now}, {"<=", x.later.Le(y.later), x.now <= y.now},
				{">", x.later.Gt(y.later), x.now > y.now}, {">=", x.later.Ge(y.later), x.now >= y.now},
				{"==", x.later.Eq(y.later), x.now == y.now}, {"!=", x.later.Ne(y.later), x.now != y.now},
			} {
				if c.got.Item() != c.want || c.got.I64().ItemInt()+c.got.Not().I64().ItemInt() != 1 || (c.got.I64().ItemInt() == 1) != c.want {
					t.Errorf("%d %s %d is %v, and %v as a number", x.now, c.text, y.now, c.got.Item(), c.got.I64())
				}
			}
		}
	})
}

// A tensor of numbers, some of which are known, is that of the numbers that the host computes. One that fails makes it
// fail, once it is computed.
func TestFromI64(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for i := range 60 {
			later, now := tensor.ConstInts([]int{3, -4}[:i%3]), []int64{3, -4}[:i%3]
			for range r.IntN(8) {
				x := intTree(r, []device.Device{on, device.CPU()}, i%3)
				later, now = append(later, x.later), append(now, x.now)
			}
			want := tensor.From(now)
			if got := tensor.FromI64(later); !slices.Equal(got.Int64s(), now) || got.Device() != want.Device() {
				t.Errorf("%v on %v, want %v on %v", got, got.Device(), now, want.Device())
			}
			if got := tensor.FromI64(later, 1, len(later), 1); !slices.Equal(got.Shape(), []int{1, len(now), 1}) || !slices.Equal(got.Int64s(), now) {
				t.Errorf("%v of the shape %v, want %v", got, got.Shape(), now)
			}
		}
		e := engine.New(engine.Options{Workers: 2})
		defer e.Close() // returns the failure once more
		defer tensor.SetEngine(e)()
		failed := tensor.Ones(2, 2).RowI64(tensor.From([]int64{9}).I64()).ArgMax().I64()
		for range 2 { // on its way, and there
			var at *device.IndexError
			if err := tensor.FromI64([]tensor.I64{tensor.ConstInt(1), failed}).Wait(); !errors.As(err, &at) {
				t.Errorf("a list with a number that failed: %v", err)
			}
		}
	})
}

// outcomeOf returns the shape and bits of a tensor as text, or how it fails.
func outcomeOf(f func() *tensor.Tensor) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint("panic: ", v)
		}
	}()
	x := f()
	if err := x.Wait(); err != nil {
		return "error"
	}
	return fmt.Sprint(x.Shape(), x.DType(), bitsOf(x))
}

func bitsOf(x *tensor.Tensor) (bits []uint64) {
	for _, v := range x.As(tensor.Float64).Flatten().Float64s() {
		bits = append(bits, math.Float64bits(v))
	}
	return bits
}

// An I64 index selects what the same index on the host selects. If it is out of range, the host panics, and the
// selection fails once the index has been computed.
func TestI64Selects(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		failing := engine.New(engine.Options{Workers: 2})
		defer failing.Close() // returns the failures once more
		defer tensor.SetEngine(failing)()
		for _, shape := range [][]int{{4}, {3, 2}, {1, 3}, {0, 2}, {}} {
			whole := tensor.On(on).Randn(shape...)
			for _, table := range []*tensor.Tensor{whole, whole.As(tensor.Int64), whole.Track(), whole.Transpose()} {
				for i := int64(-5); i <= 5; i++ {
					index := func() tensor.I64 { return tensor.FromOn(on, []int64{i}).I64() }
					want := outcomeOf(func() *tensor.Tensor { return table.Row(int(i)) })
					known := outcomeOf(func() *tensor.Tensor { return table.RowI64(tensor.ConstInt(i)) })
					got := outcomeOf(func() *tensor.Tensor { return table.RowI64(index()) })
					if known != want {
						t.Errorf("row %d of %v, known, is %s, want %s", i, shape, known, want)
					}
					if strings.HasPrefix(want, "panic") && len(shape) > 0 {
						want = "error"
					}
					if got != want && table.Size() > 0 { // a selection without elements does not fail
						t.Errorf("row %d of %v is %s, want %s", i, shape, got, want)
					}
					for n := range 3 {
						if i < 0 || len(shape) == 0 {
							continue // with a negative index, from and to may count from different ends
						}
						want := outcomeOf(func() *tensor.Tensor { return table.Slice(0, int(i), int(i)+n) })
						if strings.HasPrefix(want, "panic") {
							want = "error"
						}
						got := outcomeOf(func() *tensor.Tensor { return table.SliceI64(0, index(), n) })
						if got != want && n*table.Size() > 0 {
							t.Errorf("%d elements from %d on of %v are %s, want %s", n, i, shape, got, want)
						}
					}
				}
			}
		}
	})
}

// Gradients through an I64 index have the bits of those through the host's index, -0 included.
func TestI64Gradients(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		back := tensor.FromOn(on, []float64{math.Copysign(0, -1), 2}).As(tensor.Float32)
		grad := func(f func(x *tensor.Tensor) *tensor.Tensor) []uint64 {
			x := tensor.On(on).Ones(3, 2).Track()
			return bitsOf(tensor.Grad(f(x).Mul(back).Sum(), x)[0])
		}
		index := tensor.FromOn(on, []int64{1}).I64()
		want := grad(func(x *tensor.Tensor) *tensor.Tensor { return x.Row(1) })
		if got := grad(func(x *tensor.Tensor) *tensor.Tensor { return x.RowI64(index) }); !slices.Equal(got, want) {
			t.Errorf("the gradient of RowI64 is %x, want %x", got, want)
		}
		want = grad(func(x *tensor.Tensor) *tensor.Tensor { return x.Slice(0, 1, 2) })
		if got := grad(func(x *tensor.Tensor) *tensor.Tensor { return x.SliceI64(0, index, 1) }); !slices.Equal(got, want) {
			t.Errorf("the gradient of SliceI64 is %x, want %x", got, want)
		}
	})
}

// Mistakes have the texts of ItemInt, Row and From. Failures travel to results.
func TestI64Mistakes(t *testing.T) {
	for what, f := range map[string][2]func(){
		"type":  {func() { tensor.Ones(1).I64() }, func() { tensor.Ones(1).ItemInt() }},
		"size":  {func() { tensor.From([]int64{1, 2}).I64() }, func() { tensor.From([]int64{1, 2}).ItemInt() }},
		"nil":   {func() { (*tensor.Tensor)(nil).I64() }, func() { (*tensor.Tensor)(nil).ItemInt() }},
		"shape": {func() { tensor.From([]int64{1}).I64().Tensor(2) }, func() { tensor.From([]int64{1}, 2) }},
		"list":  {func() { tensor.FromI64(make([]tensor.I64, 3), 2, 2) }, func() { tensor.From([]int64{0, 0, 0}, 2, 2) }},
		"rank":  {func() { tensor.Scalar(1).RowI64(tensor.From([]int64{1}).I64()) }, func() { tensor.Scalar(1).Row(1) }},
		"axis":  {func() { tensor.Ones(2).SliceI64(1, tensor.From([]int64{1}).I64(), 1) }, func() { tensor.Ones(2).Slice(1, 1, 2) }},
	} {
		panics := func(f func()) (text string) {
			defer func() { text = fmt.Sprint(recover()) }()
			f()
			return ""
		}
		if got, want := panics(f[0]), panics(f[1]); got != want || got == "<nil>" {
			t.Errorf("%s: panics with %q, want %q", what, got, want)
		}
	}
	e := engine.New(engine.Options{Workers: 2})
	defer e.Close() // returns the failure once more
	defer tensor.SetEngine(e)()
	failed := tensor.Ones(2, 2).RowI64(tensor.From([]int64{9}).I64()).ArgMax().I64().Add(tensor.ConstInt(1))
	var at *device.IndexError
	if err := failed.Tensor().Wait(); !errors.As(err, &at) || at.Index != 9 {
		t.Errorf("what is computed of a row that is not there fails with %v", err)
	}
	if text := fmt.Sprint(failed); !strings.Contains(text, "failed") {
		t.Errorf("it is printed as %q", text)
	}
	if _, err := json.Marshal(failed); err == nil {
		t.Error("it is encoded")
	}
	if err := tensor.Ones(2, 2).Track().RowI64(failed).Wait(); !errors.As(err, &at) {
		t.Errorf("a row of a tracked tensor at an index that failed: %v", err)
	}
}
