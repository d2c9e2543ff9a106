package opencl

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// leastDevice is the first device, limited to the least that a device must have: no float64, small
// work groups, and little memory.
func leastDevice(t *testing.T) found {
	f := first(t)
	f.groupSize, f.local, f.double, f.units = leastGroup, leastLocal, 0, 1
	f.memory, f.maxBlock = min(f.memory, 1<<30), min(f.maxBlock, 256<<20)
	return f
}

// TestLeastDevice runs the conformance tests on a device with the least capabilities.
func TestLeastDevice(t *testing.T) {
	f := leastDevice(t)
	if f.isCPU() && !*conformance {
		t.Skipf("%s is a CPU: go test ./device/opencl -conformance", f.name)
	}
	b, err := open(f)
	if err != nil {
		t.Fatal(err)
	}
	devicetest.TestBackend(t, b, devicetest.Options{})
}

// Float32 functions that the CPU computes in float64 give the same bits on a device without
// float64.
func TestFunctionsWithoutFloat64(t *testing.T) {
	b, err := open(leastDevice(t))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const n, dt = 1 << 16, device.Float32
	rnd := rand.New(rand.NewPCG(seedOf(t), 0))
	x, y := device.HostBuffer(4*n), device.HostBuffer(4*n)
	xs, ys := device.Slice[float32](x, 0, n), device.Slice[float32](y, 0, n)
	edges := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 2, 0.5, -0.5, 3, -3, 1.5, -7, 0x1p23, 0x1p24 + 2, 0x1p24 - 1, math.MaxFloat32, -math.MaxFloat32, 0x1p-126, 0x1p-149, -0x1p-149,
		0x1.fffffep-127, 1 + 0x1p-23, 1 - 0x1p-24, -1 - 0x1p-23, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 131072, 131072.01, -131073}
	for i := range xs {
		switch i % 4 {
		case 0:
			xs[i], ys[i] = math.Float32frombits(rnd.Uint32()), math.Float32frombits(rnd.Uint32())
		case 1:
			xs[i], ys[i] = float32(rnd.ExpFloat64()*10), float32(rnd.NormFloat64()*20)
		case 2: // results in the whole range of numbers
			xs[i] = float32(math.Exp(rnd.NormFloat64() * 20))
			ys[i] = float32((rnd.Float64()*220 - 110) / math.Log(float64(xs[i])))
		case 3:
			xs[i], ys[i] = edges[rnd.IntN(len(edges))], edges[rnd.IntN(len(edges))]
		}
	}
	bufs := [3]*device.Buffer{}
	for i := range bufs {
		bufs[i] = alloc(t, b, n/2)
	}
	up, down := device.NewKernel("upload", device.Upload, nil, dt, dt), device.NewKernel("download", device.Download, nil, dt, dt)
	mustDo(t, b, command(up, n, bufs[1], x), command(up, n, bufs[2], y))
	out := device.HostBuffer(4 * n)
	for _, p := range []kernel.Prim{kernel.PrimSin, kernel.PrimCos, kernel.PrimPow} {
		args := []*kernel.Expr{kernel.Arg(0, dt), kernel.Arg(1, dt)}[:p.Arity()]
		k := device.NewKernel(p.String(), device.Map, kernel.Apply(p, args...), dt, []device.DType{dt, dt}[:p.Arity()]...)
		mustDo(t, b, command(k, n, bufs[:1+p.Arity()]...), command(down, n, out, bufs[0]))
		for i, got := range device.Slice[float32](out, 0, n) {
			var want float32
			switch f := p.Func(dt).(type) {
			case func(float32) float32:
				want = f(xs[i])
			case func(float32, float32) float32:
				want = f(xs[i], ys[i])
			}
			if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
				t.Fatalf("%v of %v, %v is %v, want %v", p, xs[i], ys[i], got, want)
			}
		}
	}
}
