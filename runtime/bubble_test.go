package asyncrt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A program may use tensors in bubbles and outside of them, in any order, and for the first time in a bubble.
// Computing takes no time there.
func TestBubbles(t *testing.T) {
	defer asyncrt.SetLimit(asyncrt.Limit())
	asyncrt.SetLimit(64)
	var kept *tensor.Tensor
	inBubble := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			kept = useAll(t, kept)
			synctest.Wait()
			if took := time.Since(began); took != time.Millisecond {
				t.Errorf("%v have passed in the bubble", took)
			}
		})
	}
	inBubble(t)
	kept = useAll(t, kept)
	t.Run("at once", func(t *testing.T) {
		for i := range 3 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				var kept *tensor.Tensor
				synctest.Test(t, func(t *testing.T) { kept = useAll(t, kept) })
				useAll(t, kept)
			})
		}
	})
}

// useAll calls everything of the library that may wait or start something. before is a result of an earlier call.
func useAll(t *testing.T, before *tensor.Tensor) *tensor.Tensor {
	on := device.Default()
	x := tensor.FromOn(on, []float32{1, 2, 3, 4}, 2, 2)
	y := x.MatMul(x).Sum()
	if before != nil {
		y = y.Add(before)
	}
	want := 54.0
	if before != nil {
		want += before.Item()
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got := y.Item(); got != want {
				t.Errorf("the sum is %v, want %v", got, want)
			}
		})
	}
	wg.Wait()

	// Contexts.
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if got, err := x.AddScalar(1).Sum().ItemContext(ctx); got != 14 || err != nil {
		t.Errorf("ItemContext gives %v, %v", got, err)
	}
	ended, end := context.WithCancelCause(ctx)
	request := device.WithContext(ended, on)
	of := tensor.FromOn(request, []float32{1, 2})
	if err := of.AddScalar(1).WaitContext(ended); err != nil {
		t.Error(err)
	}
	end(errEnough)
	if err := of.AddScalar(2).Wait(); !errors.Is(err, errEnough) {
		t.Errorf("after the end of the scope: %v", err)
	}
	if err := asyncrt.Synchronize(request); !errors.Is(err, errEnough) {
		t.Errorf("the error of the scope is %v", err)
	}

	// The limit of bytes in flight, and work that nobody waits for.
	z := x
	for range 300 {
		z = z.AddScalar(1)
	}
	for range 10 {
		x.Exp()
	}
	time.Sleep(time.Millisecond)
	if got := z.Float32s(); got[0] != 301 {
		t.Errorf("the chain ends with %v", got)
	}

	// Later and Timer.
	var sum float64
	l := asyncrt.NewLater[struct{}](4)
	for i := range 20 {
		v := l.Read(x.MulScalar(float64(i)).Sum())
		l.Do(func() { sum += v.Item() })
	}
	if l.Close(); sum != 1900 {
		t.Errorf("later, the sum is %v", sum)
	}
	timer := asyncrt.StartTimer()
	x.Exp()
	timer.Stop()
	if took := timer.Wait(); took < 0 || took > time.Hour {
		t.Errorf("the timer says %v", took)
	}
	if err := asyncrt.WaitAll(); err != nil {
		t.Errorf("WaitAll: %v", err)
	}
	return y
}

var errEnough = errors.New("enough")

// The same holds in a process that has not used tensors before, on each kind of device, and in the mode that
// executes each operation at its call.
func TestFirstUseInABubble(t *testing.T) {
	for _, env := range []string{
		"ASYNCGEN_DEVICE=cpu", "ASYNCGEN_DEVICE=sim:0", "ASYNCGEN_DEVICE=sim:0 ASYNCGEN_SIM=clock=virtual",
		"ASYNCGEN_ENGINE=naive", "ASYNCGEN_ENGINE=naive ASYNCGEN_DEVICE=sim:0",
		"ASYNCGEN_ENGINE=shuffle:1", "ASYNCGEN_ENGINE=shuffle:1 ASYNCGEN_DEVICE=sim:0",
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestBubbles$", "-test.timeout=60s")
		cmd.Env = append(os.Environ(), strings.Fields(env)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%.3000s", env, err, out)
		}
	}
}
