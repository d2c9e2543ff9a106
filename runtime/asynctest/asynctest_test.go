package asynctest_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/asynctest"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type batch struct{ x, y *tensor.Tensor }

func sum(out io.Writer, data []batch, scale float64) (total float64, last *tensor.Tensor) {
	for i, b := range data {
		last = b.x.MatMul(b.y)
		total += last.Sum().Item() * scale
		fmt.Fprintln(out, i, total)
	}
	return total, last
}

func sumAsync(out io.Writer, data []batch, scale float64) (total float64, last *tensor.Tensor) {
	later := asyncrt.NewLater[struct{}](3)
	defer later.Close()
	for i, b := range data {
		last = b.x.MatMul(b.y)
		sumAt := later.Read(last.Sum())
		later.Do(func() {
			total += sumAt.Item() * scale
			fmt.Fprintln(out, i, total)
		})
	}
	later.Flush()
	return total, last
}

func TestSame(t *testing.T) {
	asynctest.Same(t, sum, sumAsync, nil)
	asynctest.Same(t, sum, sumAsync, func(r *rand.Rand) (io.Writer, []batch, float64) {
		var data []batch
		for range 2 + r.IntN(3) {
			data = append(data, batch{tensor.Randn(2, 3), tensor.Randn(3, 2)})
		}
		return nil, data, r.Float64()
	})
}

// A number is what it is, however it was found.
func TestSameNumbers(t *testing.T) {
	twice := func(x *tensor.Tensor) (a, b asyncrt.F64) {
		return x.Sum().F64().Mul(asyncrt.Const(2)), asyncrt.Const(3)
	}
	asynctest.Same(t, twice, func(x *tensor.Tensor) (a, b asyncrt.F64) {
		return x.Sum().MulScalar(2).F64(), tensor.From([]int64{3}).F64()
	}, nil)
	other := func(x *tensor.Tensor) (a, b asyncrt.F64) { return x.Sum().F64(), asyncrt.Const(3) }
	if got := failure(func(t testing.TB) { asynctest.Same(t, twice, other, nil) }); !strings.Contains(got, "outcomes differ") {
		t.Errorf("not found: %q", got)
	}
}

// recorder takes the place of a test that is expected to fail.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}
func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	panic(r)
}

func failure(f func(t testing.TB)) string {
	r := &recorder{}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(r) {
				panic(p)
			}
		}()
		f(r)
	}()
	return r.failure
}

// TestSameSeesDifferences: each way in which two functions can differ is found.
func TestSameSeesDifferences(t *testing.T) {
	base := func(out io.Writer, x *tensor.Tensor, s []float64) float64 {
		fmt.Fprintln(out, x.Sum().Item())
		s[0] = 1
		fmt.Println("done")
		return x.Max().Item()
	}
	for name, other := range map[string]func(out io.Writer, x *tensor.Tensor, s []float64) float64{
		"result": func(out io.Writer, x *tensor.Tensor, s []float64) float64 { base(out, x, s); return 0 },
		"output": func(out io.Writer, x *tensor.Tensor, s []float64) float64 {
			fmt.Fprint(out, "x")
			return base(out, x, s)
		},
		"printed":  func(out io.Writer, x *tensor.Tensor, s []float64) float64 { fmt.Print("x"); return base(out, x, s) },
		"argument": func(out io.Writer, x *tensor.Tensor, s []float64) float64 { r := base(out, x, s); s[1] = 2; return r },
		"panic":    func(out io.Writer, x *tensor.Tensor, s []float64) float64 { panic("no") },
		"output before a panic": func(out io.Writer, x *tensor.Tensor, s []float64) float64 {
			if x.Wait() != nil {
				fmt.Fprint(out, "early")
			}
			return base(out, x, s)
		},
		"cause of a panic": func(out io.Writer, x *tensor.Tensor, s []float64) float64 {
			if x.Wait() != nil {
				panic("another")
			}
			return base(out, x, s)
		},
	} {
		if got := failure(func(t testing.TB) { asynctest.Same(t, base, other, nil) }); !strings.Contains(got, "outcomes differ") {
			t.Errorf("%s: not found: %q", name, got)
		}
	}
}

// TestSameProvesSomething: equal panics alone are a failure, and so is an
// argument that can't be made.
func TestSameProvesSomething(t *testing.T) {
	always := func(x *tensor.Tensor) { panic("always") }
	if got := failure(func(t testing.TB) { asynctest.Same(t, always, always, nil) }); !strings.Contains(got, "no run ended with results") {
		t.Errorf("two functions that always panic: %q", got)
	}
	channel := func(chan int) {}
	if got := failure(func(t testing.TB) { asynctest.Same(t, channel, channel, nil) }); !strings.Contains(got, "can't be made") {
		t.Errorf("a channel: %q", got)
	}
	if got := failure(func(t testing.TB) { asynctest.Same(t, always, channel, nil) }); !strings.Contains(got, "func(*tensor.Tensor)") {
		t.Errorf("functions of different types: %q", got)
	}
	if got := failure(func(t testing.TB) { asynctest.Same(t, always, always, 1) }); !strings.Contains(got, "func(*rand.Rand)") {
		t.Errorf("arguments that are no function: %q", got)
	}
}
