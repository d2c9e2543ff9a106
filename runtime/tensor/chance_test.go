package tensor_test

import (
	"math"
	"slices"
	"sort"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Dropout keeps a share of 1-p and scales it, draws the numbers that Rand draws, and its gradient is its mask.
func TestDropout(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		for _, dt := range []device.DType{tensor.Float32, tensor.Float64} {
			for _, p := range []float64{0, 0.25, 0.5, 1} {
				x := tensor.On(on).As(dt).Full(3, 2, 0, 4).Track()
				if y := x.Dropout(p); !slices.Equal(y.Shape(), x.Shape()) || y.DType() != dt {
					t.Errorf("Dropout of %v%v is %v%v", dt, x.Shape(), y.DType(), y.Shape())
				}
				x = tensor.On(on).As(dt).Full(3, 20, 30).T().Track()
				tensor.Seed(5)
				u := tensor.On(on).As(dt).Rand(30, 20).As(tensor.Float64).Float64s()
				tensor.Seed(5)
				y := x.Dropout(p)
				g := tensor.Grad(y.Sum(), x)[0].As(tensor.Float64).Float64s()
				tensor.Seed(5)
				again := tensor.DefaultGenerator().Dropout(x, p).As(tensor.Float64).Float64s()
				for i, got := range y.As(tensor.Float64).Float64s() {
					keep := 0.0
					if u[i] >= p {
						keep = 1 / (1 - p)
					}
					if math.Abs(got-3*keep) > 1e-5 || math.Abs(g[i]-keep) > 1e-5 || got != again[i] {
						t.Fatalf("p = %v, %v drawn: Dropout of 3 is %v, then %v, with gradient %v", p, u[i], got, again[i], g[i])
					}
				}
			}
		}
		nan := tensor.FromOn(on, []float64{math.NaN()}).Dropout(1).Item()
		if !math.IsNaN(nan) {
			t.Errorf("Dropout of NaN is %v", nan)
		}
	})
}

func TestBernoulli(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		g := tensor.NewGenerator(3)
		for _, p := range []float64{0, 0.3, 1} {
			mean := g.Bernoulli(p, 100, 100).Mean().Item()
			if math.Abs(mean-p) > 0.03 {
				t.Errorf("Bernoulli(%v) has mean %v", p, mean)
			}
			tensor.Seed(1)
			numbers := tensor.On(on).As(tensor.Int64).Bernoulli(p, 50).Int64s()
			tensor.Seed(1)
			for i, b := range tensor.On(on).As(tensor.Bool).Bernoulli(p, 50).Bools() {
				if b != (numbers[i] == 1) || !b && numbers[i] != 0 {
					t.Errorf("the same draw as bool and int64: %v and %d", b, numbers[i])
				}
			}
		}
	})
}

func TestPermutation(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		for _, n := range []int{0, 1, 2, 100} {
			got := tensor.On(on).Permutation(n).Int64s()
			sorted := slices.Clone(got)
			slices.Sort(sorted)
			for i, v := range sorted {
				if v != int64(i) {
					t.Fatalf("%v is no permutation", got)
				}
			}
			if n == 100 && slices.Equal(got, sorted) {
				t.Error("a permutation of 100 numbers in order")
			}
		}
	})
}

// Multinomial draws indices as often as their weights say, and without replacement no index twice.
func TestMultinomial(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		tensor.Seed(11)
		weights := []float64{0, 1, 3, 0, 4}
		for _, dt := range []device.DType{tensor.Float32, tensor.Float64} {
			w := tensor.FromOn(on, weights).As(dt)
			counts := make([]float64, 5)
			for _, i := range w.Multinomial(8000, true).Int64s() {
				counts[i]++
			}
			for i, n := range counts {
				if math.Abs(n/8000-weights[i]/8) > 0.03 || weights[i] == 0 && n > 0 {
					t.Errorf("index %d with weight %v was drawn %v times of 8000", i, weights[i], n)
				}
			}
			rows := w.BroadcastTo(4000, 5).Multinomial(5, false)
			first := make([]float64, 5)
			all := rows.Int64s()
			for r := range 4000 {
				row := all[5*r : 5*r+5]
				first[row[0]]++
				if last := []int64{row[3], row[4]}; !slices.Contains(last, 0) || !slices.Contains(last, 3) {
					t.Fatalf("indices with weight 0 don't come last in %v", row)
				}
				if s := slices.Sorted(slices.Values(row)); len(slices.Compact(s)) != 5 {
					t.Fatalf("an index twice in %v", row)
				}
			}
			for i, n := range first {
				if math.Abs(n/4000-weights[i]/8) > 0.04 {
					t.Errorf("index %d with weight %v came first %v times of 4000", i, weights[i], n)
				}
			}
		}
		if got := tensor.On(on).Ones(3, 0).Multinomial(0, true).Shape(); !slices.Equal(got, []int{3, 0}) {
			t.Errorf("nothing drawn has shape %v", got)
		}
		if got := tensor.On(on).Zeros(2).Multinomial(1, true).ItemInt(); got != 2 {
			t.Errorf("weights 0 give %d", got)
		}
	})
}

func TestLike(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		x := tensor.On(on).As(tensor.Int64).Zeros(2, 3)
		for want, y := range []*tensor.Tensor{tensor.ZerosLike(x), tensor.OnesLike(x), tensor.FullLike(x, 2)} {
			if y.DType() != tensor.Int64 || y.Device() != x.Device() || !slices.Equal(y.Int64s(), slices.Repeat([]int64{int64(want)}, 6)) {
				t.Errorf("like x, with %d: %v", want, y)
			}
		}
		x = tensor.On(on).As(tensor.Float64).Zeros(2, 3)
		tensor.Seed(2)
		u, n := tensor.RandLike(x), tensor.RandnLike(x)
		tensor.Seed(2)
		sameBits(t, "RandLike", u, tensor.On(on).As(tensor.Float64).Rand(2, 3))
		sameBits(t, "RandnLike", n, tensor.On(on).As(tensor.Float64).Randn(2, 3))
	})
}

// SearchSorted finds what a binary search in Go finds.
func TestSearchSorted(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		number := func() float64 {
			switch v := r.IntN(12); v {
			case 0:
				return math.NaN()
			case 1:
				return math.Inf(1)
			default:
				return float64(v)
			}
		}
		for _, n := range []int{0, 1, 2, 3, 7, 8, 9, 100} {
			for _, m := range []int{0, 1, 5} {
				rows, values := make([]float64, 3*n), make([]float64, 3*m)
				for i := range rows {
					rows[i] = number()
				}
				for i := range values {
					values[i] = number()
				}
				x, v := tensor.FromOn(on, rows, 3, n).Sort(1, tensor.Ascending), tensor.FromOn(on, values, m, 3).T()
				list, want := x.Float64s(), v.Float64s()
				for _, right := range []bool{false, true} {
					got := x.SearchSorted(v, right)
					if !slices.Equal(got.Shape(), []int{3, m}) {
						t.Errorf("shape %v", got.Shape())
					}
					each := tensor.VMap(func(row ...*tensor.Tensor) *tensor.Tensor { return row[0].SearchSorted(row[1], right) }, x, v)
					sameBits(t, "in VMap", each, got)
					for i, at := range got.Int64s() {
						row := list[i/m*n : i/m*n+n]
						place := sort.Search(n, func(k int) bool {
							a, b := row[k], want[i]
							isNot := !(a < b || b != b && a == a) // a is not before b
							if right {
								return isNot && !(a == b || a != a && b != b)
							}
							return isNot
						})
						if int(at) != place {
							t.Errorf("%v in %v, right %v: %d, want %d", want[i], row, right, at, place)
						}
					}
				}
			}
		}
		if got := tensor.FromOn(on, []int{1, 3, 5}).SearchSorted(tensor.FromOn(on, []int{3, 9, 0, 4}, 2, 2), true).String(); got != "[[2 3]\n [0 2]]" {
			t.Errorf("in a vector: %s", got)
		}
	})
}

func TestChanceMistakes(t *testing.T) {
	x := tensor.Ones(3)
	for what, f := range map[string]func(){
		"Dropout(2)":        func() { x.Dropout(2) },
		"Dropout(NaN)":      func() { x.Dropout(math.NaN()) },
		"Dropout of int64":  func() { x.As(tensor.Int64).Dropout(0.5) },
		"Dropout of nil":    func() { tensor.DefaultGenerator().Dropout(nil, 0.5) },
		"Bernoulli(-1)":     func() { tensor.Bernoulli(-1, 2) },
		"Permutation(-1)":   func() { tensor.Permutation(-1) },
		"Multinomial(4)":    func() { x.Multinomial(4, false) },
		"Multinomial(-1)":   func() { x.Multinomial(-1, true) },
		"of nothing":        func() { tensor.Zeros(0).Multinomial(1, true) },
		"ZerosLike(nil)":    func() { tensor.ZerosLike(nil) },
		"RandLike of int64": func() { tensor.RandLike(x.As(tensor.Int64)) },
		"SearchSorted(nil)": func() { x.SearchSorted(nil, true) },
		"other types":       func() { x.SearchSorted(x.As(tensor.Float64), true) },
		"other rows":        func() { tensor.Ones(2, 3).SearchSorted(tensor.Ones(3, 3), true) },
	} {
		if mistake(f) == nil {
			t.Errorf("%s is no mistake", what)
		}
	}
}
