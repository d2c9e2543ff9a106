package descend

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/fault"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/asynctest"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func TestDescend(t *testing.T) {
	var out bytes.Buffer
	least := Descend(&out, tensor.From([]float32{4, 0}), 2)
	if want := "step 0: 9.0000\nstep 1: 5.0625\n"; least != 5.0625 || out.String() != want {
		t.Errorf("Descend returns %v and prints %q, want 5.0625 and %q", least, out.String(), want)
	}
}

// The same on a device that computes while the program goes on.
func TestDevices(t *testing.T) {
	sim, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Linspace(-1, 1, 100)
	if got, want := Descend(io.Discard, x.To(sim), 5), Descend(io.Discard, x, 5); got != want {
		t.Errorf("Descend returns %v on %v, %v on the CPU", got, sim, want)
	}
}

// The generated function does what the one does that it was made from, also where a tensor has failed.
func TestSame(t *testing.T) {
	asynctest.Same(t, Descend, DescendAsync, func(r *rand.Rand) (io.Writer, *tensor.Tensor, int) {
		return new(bytes.Buffer), tensor.Uniform(-2, 2, 10), 1 + r.IntN(8)
	})
}

// Computing takes no time in a bubble, so a deadline does not come before a value.
func TestInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if sum, err := tensor.Ones(1000).Sum().ItemContext(ctx); sum != 1000 || err != nil {
			t.Errorf("the sum is %v, %v", sum, err)
		}
	})
}

// What fails on a device is an error of the read.
func TestFailure(t *testing.T) {
	backend := fault.New(cpu.New())
	x := tensor.On(device.Wrap("faulty", device.KindCPU, backend)).Ones(1000)
	if err := x.Wait(); err != nil {
		t.Fatal(err)
	}
	backend.Arm(fault.Faults{Call: fault.Command, N: 6}) // a step has four
	var out bytes.Buffer
	err := asyncrt.Try(func() { Descend(&out, x, 5) })
	if !errors.Is(err, fault.ErrInjected) || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
		t.Errorf("the error is %v after the output %q", err, &out)
	}
	asyncrt.WaitAll() // nobody else asks for what has failed
}
