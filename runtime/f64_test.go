package asyncrt_test

import (
	"fmt"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A chain of operations with numbers is enqueued while its first operation is held up.
func TestF64NeverWaits(t *testing.T) {
	on, g := gated()
	x := tensor.FromOn(on, []float32{0.5, 2})
	alpha := x.Tanh().Sum().F64()
	later := asyncrt.NewLater[struct{}](8)
	for range 100 {
		alpha = alpha.Add(asyncrt.Const(1)).Div(x.MulF64(alpha).Dot(x).F64()).Max(asyncrt.Const(0.5))
		x = alpha.Gt(asyncrt.Const(0.25)).Choose(x.AddF64(alpha), x)
	}
	read := later.ReadF64(alpha)
	ran := false
	later.Do(func() { ran = true })
	if alpha.Ready() || ran {
		t.Error("something ran ahead of what it depends on")
	}
	g.let(1)
	later.Flush()
	if got, want := read.Item(), alpha.Item(); got != want || !ran {
		t.Errorf("read %v, want %v; entry ran: %v", got, want, ran)
	}
}

// A Read of a number has the number's value at the time of ReadF64, and prints as a float64.
func TestReadF64(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		later := asyncrt.NewLater[struct{}](4)
		defer later.Close()
		var got, want []string
		for i, x := range []asyncrt.F64{asyncrt.Const(0.1), {}, tensor.FromOn(on, []float32{0.1}).F64(), tensor.FromOn(on, []int64{1 << 60}).F64().Sqrt()} {
			read := later.ReadF64(x)
			later.Do(func() { got = append(got, fmt.Sprint(i, read.Item(), read.At())) })
			want = append(want, fmt.Sprint(i, x.Item(), x.Item()))
		}
		later.Flush()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
