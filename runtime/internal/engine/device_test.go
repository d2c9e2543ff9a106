package engine_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
)

var addOne = device.NewKernel("addone", device.Map,
	kernel.Add(kernel.Arg(0, device.Float32), kernel.Const(1, device.Float32)), device.Float32, device.Float32)

// chain enqueues n times x = x + 1 on elements float32.
func chain(e *engine.Engine, d device.Device, x *engine.Storage, elements, n int) *engine.Storage {
	for range n {
		y := e.NewStorage(d, int64(elements)*4)
		e.Enqueue(&engine.Op{
			Cmd:      device.Command{Kernel: addOne, N: elements},
			Operands: [device.MaxOperands]*engine.Storage{y, x},
			Cost:     20,
		})
		x = y
	}
	return x
}

// The engine with the devices of this module: values go there and back.
func TestDevicesOfTheModule(t *testing.T) {
	thereAndBack(t, engine.Options{}, sim.Options{Queue: 16})
}

// The same with latencies, in the time of a bubble: several goroutines wait for one device that has no room.
func TestDevicesOfTheModuleInABubble(t *testing.T) {
	costs := sim.Defaults()
	costs.Queue = 16
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { thereAndBack(t, engine.Options{Channels: true}, costs) })
		}
		wg.Wait()
	})
}

// Several goroutines use one engine and one device with latencies, in the time of a bubble.
func TestOneDeviceInABubble(t *testing.T) {
	costs := sim.Defaults()
	costs.Queue = 4
	for _, mode := range []engine.Mode{engine.Async, engine.Naive, engine.Shuffle} {
		synctest.Test(t, func(t *testing.T) {
			e := engine.New(engine.Options{Mode: mode, Ring: 8, MaxBytes: 200, Channels: true})
			b := sim.New(costs)
			d, host := device.Wrap("sim", device.KindSimulated, b), device.Wrap("cpu", device.KindCPU, cpu.New())
			var wg sync.WaitGroup
			for k := range 4 {
				wg.Go(func() {
					data := device.HostBuffer(4)
					device.Slice[float32](data, 0, 1)[0] = float32(k)
					for n := range 6 {
						x := e.Copy(chain(e, d, e.FromHost(d, data), 1, 10*n), 0, 1, device.Float32, host)
						if err := x.Wait(t.Context(), "test"); err != nil {
							t.Error(err)
						}
						if got := device.Slice[float32](x.Buffer(), 0, 1)[0]; got != float32(k+10*n) {
							t.Errorf("mode %v: got %v, want %v", mode, got, k+10*n)
						}
					}
				})
			}
			wg.Wait()
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func thereAndBack(t *testing.T, o engine.Options, costs sim.Options) {
	host := device.Wrap("cpu", device.KindCPU, cpu.New())
	for name, b := range map[string]device.Backend{"cpu": cpu.New(), "sim": sim.New(costs)} {
		for _, mode := range []engine.Mode{engine.Async, engine.Naive, engine.Shuffle} {
			o.Mode = mode
			e := engine.New(o)
			d := device.Wrap(name, device.KindSimulated, b)
			data := device.HostBuffer(3 * 4)
			copy(device.Slice[float32](data, 0, 3), []float32{1, 2, 3})
			x := chain(e, d, e.FromHost(d, data), 3, 1000)
			last := e.Copy(x, 1, 2, device.Float32, host)
			if err := last.Wait(context.Background(), "test"); err != nil {
				t.Fatal(err)
			}
			if got := device.Slice[float32](last.Buffer(), 0, 2); got[0] != 1002 || got[1] != 1003 {
				t.Errorf("%s, mode %v: got %v", name, mode, got)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// BenchmarkCPU measures 10,000 dependent operations on two elements with the kernels of device/cpu, from
// the first call to the end of the last operation.
func BenchmarkCPU(b *testing.B) {
	e := engine.New(engine.Options{})
	defer e.Close()
	d := device.Wrap("cpu", device.KindCPU, cpu.New())
	const ops = 10_000
	b.ReportAllocs()
	for b.Loop() {
		chain(e, d, e.FromHost(d, device.HostBuffer(8)), 2, ops).Wait(context.Background(), "benchmark")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*ops), "ns/done")
}
