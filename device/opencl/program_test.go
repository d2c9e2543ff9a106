package opencl

import (
	"sync"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/internal/ffi"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// A slowCompiler is a driver whose compiler, once told so, blocks until it is released.
type slowCompiler struct {
	begun    chan struct{} // receives a value when a compilation begins to block
	released chan struct{}
	once     sync.Once
	isSlow   bool
}

func (s *slowCompiler) Before(f cl.Fn) cl.Code {
	if f == cl.BuildProgram && s.isSlow {
		select {
		case s.begun <- struct{}{}:
		default:
		}
		<-s.released
	}
	return cl.Success
}

func (s *slowCompiler) After(cl.Fn, *[ffi.MaxArgs]uintptr, uintptr) {}

func (s *slowCompiler) release() { s.once.Do(func() { close(s.released) }) }

// While one goroutine waits for the compiler, earlier commands can be waited for and read, and
// memory can be allocated and freed. Commands submitted meanwhile come after. The same holds for
// the kernel that packs reads.
func TestOthersDoNotWaitForTheCompiler(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	tripled := mapKernel("tripled", kernel.Mul(kernel.Arg(0, device.Int64), kernel.Const(3, device.Int64)))
	for name, unknown := range map[string]func(x *device.Buffer) []device.Command{
		"a kernel": func(x *device.Buffer) []device.Command {
			return []device.Command{command(tripled, 1, x, x)}
		},
		"packing": readsOf,
		"and one behind": func(x *device.Buffer) []device.Command {
			return append(readsOf(x), command(tripled, 1, x, x))
		},
	} {
		t.Run(name, func(t *testing.T) {
			driver := &slowCompiler{begun: make(chan struct{}, 1), released: make(chan struct{})}
			f := first(t)
			d := *f.driver
			d.Hook = driver
			f.driver = &d
			b, err := open(f)
			if err != nil {
				t.Fatal(err)
			}
			stuck := time.AfterFunc(time.Minute, func() {
				t.Error("others wait for the compiler")
				driver.release()
			})
			defer stuck.Stop()
			defer func() {
				driver.release()
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			}()
			x, y := alloc(t, b, 1), alloc(t, b, 1)
			mustDo(t, b, command(upload, 1, x, hostOf(5)), command(double, 1, y, x))
			driver.isSlow = true

			known := hostOf(0)
			mine, err := b.Submit([]device.Command{command(double, 1, x, x), command(download, 1, known, x)})
			if err != nil {
				t.Fatal(err)
			}
			var work sync.WaitGroup
			defer work.Wait()
			defer driver.release()
			early := hostOf(0)
			work.Go(func() {
				if _, err := b.Submit(append([]device.Command{command(double, 1, y, x), command(download, 1, early, y)}, unknown(x)...)); err != nil {
					t.Error(err)
				}
			})
			<-driver.begun
			if err := b.Wait(t.Context(), mine); err != nil || b.Failure(mine) != nil || !b.Done(mine) {
				t.Errorf("Wait: %v, %v", err, b.Failure(mine))
			}
			if got := device.Slice[int64](known, 0, 1)[0]; got != 10 {
				t.Errorf("got %d, want 10", got)
			}
			// that is on its way, though its Submit has not returned
			if err := b.Wait(t.Context(), mine+2); err != nil {
				t.Error(err)
			}
			if got := device.Slice[int64](early, 0, 1)[0]; got != 20 {
				t.Errorf("before the new kernel: got %d, want 20", got)
			}
			memory, err := b.Alloc(1 << 20)
			if err != nil {
				t.Error(err)
			}
			b.Free(memory)
			if stuck.Stop() {
				driver.release()
			}
			work.Wait()
			last := hostOf(0)
			mustDo(t, b, command(double, 1, x, x), command(download, 1, last, x))
			want := int64(20)
			if name != "packing" {
				want = 60
			}
			if got := device.Slice[int64](last, 0, 1)[0]; got != want {
				t.Errorf("at last: got %d, want %d", got, want)
			}
		})
	}
}
