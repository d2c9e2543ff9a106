package opencl

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/opencl/clfault"
)

// Several goroutines use a device with little memory while a driver call fails, and the device is
// closed at any moment. Each result is right or has an error with a cause, nothing hangs, and
// nothing leaks.
func TestManyWhileItFailsAndCloses(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("ASYNCGEN_MEMORY", "1048576")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	codes := []cl.Code{clfault.OutOfMemory, clfault.Invalid, clfault.Lost}
	for round := range 60 {
		c := clfault.New()
		b, err := open(hooked(t, c))
		if err != nil {
			t.Fatal(err)
		}
		code := codes[rnd.IntN(len(codes))]
		if round%4 > 0 {
			c.Fail(1+rnd.IntN(1<<rnd.IntN(11)), code)
		}
		var work sync.WaitGroup
		for worker := range 4 {
			times := 1 + rnd.IntN(30)
			work.Go(func() {
				for i := range times {
					if err := doubleOn(b, int64(100*worker+i)); err != nil && !isExpected(err) {
						t.Errorf("round %d, %v: %v", round, c.Failed(), err)
					}
				}
				if worker == 0 {
					if err := b.Close(); err != nil && !isExpected(err) {
						t.Errorf("round %d, %v: Close: %v", round, c.Failed(), err)
					}
				}
			})
		}
		work.Wait()
		b.attendants.Wait()
		nothingIsLeft(t, c)
		if t.Failed() {
			return
		}
	}
}

// isExpected reports whether err is the injected failure, out of memory, or due to Close.
func isExpected(err error) bool {
	return errors.Is(err, device.ErrOutOfMemory) || errors.Is(err, device.ErrLost) || errors.Is(err, device.ErrClosed) || strings.Contains(err.Error(), "CL_INVALID_VALUE")
}

// doubleOn doubles a number on b. It returns why that failed, or an error that the result is wrong.
func doubleOn(b *Backend, value int64) error {
	x, err := b.Alloc(100 << 10)
	if err != nil {
		return err
	}
	defer b.Free(x)
	out := hostOf(0)
	failed, err := do(b, command(upload, 1, x, hostOf(value)), command(double, 1, x, x), command(download, 1, out, x))
	if err = errors.Join(append(failed, err)...); err != nil {
		return err
	}
	if got := device.Slice[int64](out, 0, 1)[0]; got != 2*value {
		return errors.New("a wrong result")
	}
	return nil
}

// The driver's objects stay as long as a block of a closed device is not freed, so that the block
// can be read, and no longer, in whatever order these things happen and whatever fails.
func TestReadWhenClosed(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	duplicate := device.NewKernel("copy", device.Copy, nil, device.Int64, device.Int64)
	for n := 0; ; n++ {
		c := clfault.New()
		b, err := open(hooked(t, c))
		if err != nil {
			t.Fatal(err)
		}
		x, err := b.Alloc(24)
		if err != nil {
			t.Fatal(err)
		}
		if failed, err := do(b, command(upload, 3, x, hostOf(1, 2, 3)), command(double, 3, x, x)); errors.Join(append(failed, err)...) != nil {
			t.Fatal(failed, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		c.Fail(n, clfault.Lost)
		out := hostOf(0, 0)
		y, err := b.Alloc(16)
		if err == nil {
			strided := command(duplicate, 2, y, x)
			strided.Args = &device.Args{Shape: device.Shape{2}, Strides: [device.MaxOperands][]int{nil, {2}}}
			var failed []error
			failed, err = do(b, strided, command(download, 2, out, y))
			err = errors.Join(append(failed, err)...)
			b.Free(y)
		}
		if got := device.Slice[int64](out, 0, 2); err == nil && (got[0] != 2 || got[1] != 6) || err != nil && !isExpected(err) || n == 0 && err != nil {
			t.Errorf("call %d, %v: read %v, %v", n, c.Failed(), got, err)
		}
		if n == 0 && c.Left() == 0 {
			t.Error("nothing is left of the driver's, though a block is")
		}
		b.Free(x)
		if _, err := b.Alloc(8); !isExpected(err) {
			t.Errorf("call %d: Alloc when all is freed: %v", n, err)
		}
		nothingIsLeft(t, c)
		if t.Failed() || n > 0 && len(c.Failed()) == 0 {
			return
		}
	}
}
