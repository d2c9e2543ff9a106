package opencltest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/opencl"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
)

// twoDevices returns two devices of OpenCL, which are the same one if there is but one and that will do.
func twoDevices(t testing.TB, canBeSame bool) (devs [2]device.Device) {
	t.Setenv("ASYNCGEN_OPENCL_CPU", "1")
	for i := range devs {
		b, err := opencl.New(i, nil)
		if err != nil && i > 0 {
			if !canBeSame {
				t.Skipf("no second device of OpenCL: %v", err)
			}
			b, err = opencl.New(0, nil)
		}
		if err != nil {
			devicetest.NoOpenCL(t, err)
		}
		t.Cleanup(func() { b.Close() })
		devs[i] = device.Wrap(fmt.Sprintf("opencl:%d", i), device.KindGPU, b)
	}
	return devs
}

// A copy between two devices goes through host memory in parts, and is whole.
func TestBetween(t *testing.T) {
	devs := twoDevices(t, true)
	e := engine.New(engine.Options{})
	defer e.Close()
	const bytes = 5<<20 + 24
	data, want := device.HostBuffer(bytes), make([]int64, bytes/8)
	for i := range want {
		want[i] = int64(i) * 0x0101010101 & 0x0101010101010101
	}
	copy(device.Slice[int64](data, 0, len(want)), want)
	x := e.FromHost(devs[0], data)
	check := func(dt device.DType, off, n int) {
		t.Helper()
		y := e.Copy(x, off, n, dt, devs[1])
		host := e.Copy(y, 0, n, dt, device.CPU())
		if err := host.Wait(context.Background(), "Wait"); err != nil {
			t.Fatal(err)
		}
		at := off * dt.Size()
		if got := device.Slice[bool](host.Buffer(), 0, n*dt.Size()); !slices.Equal(got, device.Slice[bool](data, at, n*dt.Size())) {
			t.Errorf("%d elements of %v from %d differ", n, dt, off)
		}
	}
	check(device.Int64, 0, bytes/8)
	check(device.Float64, 1, bytes/8-2)
	check(device.Float32, 3, bytes/4-10)
	check(device.Bool, 5, bytes-7)
	check(device.Bool, bytes-1, 1)
	check(device.Float32, 4, 0)
}

// BenchmarkBetween copies between two devices of OpenCL: POCL_DEVICES="pthread basic". It reports
// the quickest of them, and of the two ways through host memory.
func BenchmarkBetween(b *testing.B) {
	devs := twoDevices(b, false)
	const n = 64 << 20
	e := engine.New(engine.Options{})
	defer e.Close()
	x := e.FromHost(devs[0], device.HostBuffer(n))
	took := func(s *engine.Storage, to device.Device) (*engine.Storage, time.Duration) {
		begin := time.Now()
		y := e.Copy(s, 0, n/8, device.Int64, to)
		if err := y.Wait(context.Background(), "Wait"); err != nil {
			b.Fatal(err)
		}
		return y, time.Since(begin)
	}
	down, up, across := time.Hour, time.Hour, time.Hour
	took(x, devs[1])
	for b.Loop() {
		host, t := took(x, device.CPU())
		down = min(down, t)
		_, t = took(host, devs[1])
		up = min(up, t)
		_, t = took(x, devs[1])
		across = min(across, t)
	}
	b.ReportMetric(float64(down.Microseconds()), "down-µs")
	b.ReportMetric(float64(up.Microseconds()), "up-µs")
	b.ReportMetric(float64(across.Microseconds()), "across-µs")
}
