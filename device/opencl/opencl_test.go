package opencl

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	_ "github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/kernel"
)

var conformance = flag.Bool("conformance", false, "test all that a backend promises also on a device that is a CPU; its compiler takes minutes")

// TestMain makes PoCL keep its programs in the user's cache. In a program with cgo the driver sees
// the environment: in a test with an XDG_CACHE_HOME of its own, PoCL would use that folder, which
// ends with the test, for the rest of the process.
func TestMain(m *testing.M) {
	if dir, err := os.UserCacheDir(); err == nil && os.Getenv("POCL_CACHE_DIR") == "" {
		os.Setenv("POCL_CACHE_DIR", filepath.Join(dir, "pocl", "kcache"))
	}
	os.Exit(m.Run())
}

// first returns the first device, a GPU if there is one, or skips the test with the reason.
func first(t testing.TB) found {
	t.Helper()
	t.Setenv("ASYNCGEN_OPENCL_CPU", "1")
	all, err := find()
	if err != nil {
		devicetest.NoOpenCL(t, err)
	}
	return all[0]
}

// newTest returns a backend on the first device.
func newTest(t testing.TB) *Backend {
	t.Helper()
	b, err := open(first(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestConformance(t *testing.T) {
	f := first(t)
	if f.isCPU() && !*conformance {
		t.Skipf("%s is a CPU: go test ./device/opencl -conformance", f.name)
	}
	devicetest.TestBackend(t, newTest(t), devicetest.Options{})
}

// Kernels of the tests.
var (
	sum      = mapKernel("sum", kernel.Add(kernel.Arg(0, device.Int64), kernel.Arg(1, device.Int64)))
	double   = mapKernel("double", kernel.Add(kernel.Arg(0, device.Int64), kernel.Arg(0, device.Int64)))
	quotient = mapKernel("quotient", kernel.Div(kernel.Arg(0, device.Int64), kernel.Arg(1, device.Int64)))
	gather   = device.NewKernel("gather", device.Gather, nil, device.Int64, device.Int64, device.Int64)
	fill     = device.NewKernel("fill", device.Fill, nil, device.Int64)
	upload   = device.NewKernel("upload", device.Upload, nil, device.Int64, device.Int64)
	download = device.NewKernel("download", device.Download, nil, device.Int64, device.Int64)
)

func mapKernel(name string, e *kernel.Expr) *device.Kernel {
	in := make([]device.DType, e.Args())
	for i := range in {
		in[i] = device.Int64
	}
	return device.NewKernel(name, device.Map, e, e.DType(), in...)
}

func command(k *device.Kernel, n int, bufs ...*device.Buffer) device.Command {
	c := device.Command{Kernel: k, N: n}
	copy(c.Buf[:], bufs)
	return c
}

func hostOf(values ...int64) *device.Buffer {
	buf := device.HostBuffer(int64(8 * len(values)))
	copy(device.Slice[int64](buf, 0, len(values)), values)
	return buf
}

func alloc(t testing.TB, b *Backend, n int) *device.Buffer {
	t.Helper()
	buf, err := b.Alloc(int64(8 * n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Free(buf) })
	return buf
}

// do submits commands and waits for them. It returns the error of each.
func do(b *Backend, cmds ...device.Command) ([]error, error) {
	last, err := b.Submit(cmds)
	if err != nil {
		return nil, err
	}
	if err := b.Wait(context.Background(), last); err != nil {
		return nil, err
	}
	all := make([]error, len(cmds))
	for i := range cmds {
		all[i] = b.Failure(last - device.Ticket(len(cmds)-1-i))
	}
	return all, nil
}

func mustDo(t testing.TB, b *Backend, cmds ...device.Command) {
	t.Helper()
	failed, err := do(b, cmds...)
	if err = errors.Join(append(failed, err)...); err != nil {
		t.Fatal(err)
	}
}

func TestFailuresStayWithTheirCommand(t *testing.T) {
	b, other := newTest(t), newTest(t)
	x, y, foreign := alloc(t, b, 4), alloc(t, b, 4), alloc(t, other, 4)
	index := alloc(t, b, 4)
	host := hostOf(0, 0, 0, 0)
	pick := command(gather, 4, y, x, index)
	pick.Args = &device.Args{Shape: device.Shape{4}, Strides: [device.MaxOperands][]int{nil, {0}, {1}}, Ints: []int{4, 1}}
	cmds := []device.Command{
		command(upload, 4, x, hostOf(10, 20, 30, 40)),
		command(upload, 4, index, hostOf(3, -5, 9, 1)),
		pick, // -5 is the first index out of range
		command(fill, 4, foreign),
		command(upload, 4, x, x),
		command(download, 4, x, x),
		command(upload, 5, x, hostOf(1, 2, 3, 4)),
		command(sum, 4, y, x, x),
		command(quotient, 4, index, x, alloc(t, b, 4)),
		command(download, 4, host, y),
	}
	zero := command(fill, 4, cmds[8].Buf[2])
	mustDo(t, b, zero)
	failed, err := do(b, cmds...)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "", "index -5 is out of range of an axis of length 4", "opencl: kernel fill: operand 0: not memory of this device",
		"opencl: kernel upload: operand 1: not host memory", "opencl: kernel download: operand 0: not host memory",
		"opencl: kernel upload: operand 0: it reaches outside of its buffer", "", "kernel panicked: runtime error: integer divide by zero", ""} {
		if got := failed[i]; (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("command %d, %s: error %v, want %q", i, cmds[i].Kernel.Name, got, want)
		}
	}
	var wrong *device.IndexError
	if !errors.As(failed[2], &wrong) {
		t.Errorf("%T is no IndexError", failed[2])
	}
	if got := device.Slice[int64](host, 0, 4); !slices.Equal(got, []int64{20, 40, 60, 80}) {
		t.Errorf("got %v", got)
	}
}

// An Upload from memory that a Download fills uploads the result of the Download.
func TestUploadOfWhatIsDownloaded(t *testing.T) {
	b := newTest(t)
	x, y := alloc(t, b, 3), alloc(t, b, 3)
	between, out := hostOf(0, 0, 0), hostOf(0, 0, 0)
	mustDo(t, b,
		command(upload, 3, x, hostOf(1, 2, 3)), command(double, 3, x, x), command(download, 3, between, x),
		command(upload, 3, y, between), command(double, 3, y, y), command(download, 3, out, y))
	if got := device.Slice[int64](out, 0, 3); !slices.Equal(got, []int64{4, 8, 12}) {
		t.Errorf("got %v", got)
	}
}

func TestWaitForATicketThatNobodyHas(t *testing.T) {
	b := newTest(t)
	if err := b.Wait(t.Context(), 7); err == nil || !strings.Contains(err.Error(), "ticket 7 was never given out") {
		t.Errorf("error %v", err)
	}
}

// More commands than fit in the queue, and more to copy than there is pinned memory.
func TestFullQueue(t *testing.T) {
	b := newTest(t)
	const n = 1 << 16 // 512 KiB
	x, y := alloc(t, b, n), alloc(t, b, 1)
	in := device.HostBuffer(8 * n)
	device.Slice[int64](in, 0, n)[n-1] = 5
	var cmds []device.Command
	var outs []*device.Buffer
	for range 40 {
		out := device.HostBuffer(8 * n)
		outs = append(outs, out)
		cmds = append(cmds, command(upload, n, x, in), command(download, n, out, x))
	}
	mustDo(t, b, cmds...)
	for i, out := range outs {
		if got := device.Slice[int64](out, 0, n)[n-1]; got != 5 {
			t.Fatalf("copy %d gives %d", i, got)
		}
	}
	mustDo(t, b, command(upload, 1, y, hostOf(1)))
	cmds = make([]device.Command, maxCommands*(maxGroups+3))
	for i := range cmds {
		cmds[i] = command(sum, 1, y, y, y)
		if i >= 60 {
			cmds[i] = command(fill, 1, x)
		}
	}
	mustDo(t, b, cmds...)
	out := hostOf(0)
	mustDo(t, b, command(download, 1, out, y))
	if got := device.Slice[int64](out, 0, 1)[0]; got != 1<<60 {
		t.Errorf("got %d", got)
	}
}

func TestSettings(t *testing.T) {
	f := first(t)
	if d, err := device.Open("opencl:0"); err != nil || d.Kind() != device.KindGPU || !strings.Contains(d.Caps().Description, f.name) {
		t.Errorf("device %v, error %v", d, err)
	}
	if f.isCPU() {
		if d, err := device.Open("opencl:0"); err == nil && !strings.Contains(d.Caps().Description, "which is a CPU") {
			t.Errorf("%q does not say that it is a CPU", d.Caps().Description)
		}
		t.Setenv("ASYNCGEN_OPENCL_CPU", "")
		if _, err := find(); err == nil || !strings.Contains(err.Error(), "ASYNCGEN_OPENCL_CPU=1") || !strings.Contains(err.Error(), f.name) {
			t.Errorf("a CPU is not taken: error %v", err)
		}
	}
	for _, wrong := range [][2]string{{"ASYNCGEN_OPENCL", "yes"}, {"ASYNCGEN_OPENCL_CPU", "true"}} {
		old := os.Getenv(wrong[0])
		t.Setenv(wrong[0], wrong[1])
		if _, err := device.Open("opencl:0"); err == nil || !strings.Contains(err.Error(), wrong[0]+"="+wrong[1]) {
			t.Errorf("%s=%s: error %v", wrong[0], wrong[1], err)
		}
		t.Setenv(wrong[0], old)
	}
	t.Setenv("ASYNCGEN_OPENCL", "off")
	if _, err := device.Open("opencl:0"); err == nil || !strings.Contains(err.Error(), "ASYNCGEN_OPENCL=off") {
		t.Errorf("turned off: error %v", err)
	}
}

// Without an OpenCL library there are no devices, and the error says what was tried. If the library
// is something else, the error says what it lacks.
func TestLibrariesThatAreNone(t *testing.T) {
	t.Setenv("ASYNCGEN_OPENCL", "")
	missing := filepath.Join(t.TempDir(), "libOpenCL.so.1")
	decoy := filepath.Join(t.TempDir(), "decoy.so")
	if err := os.WriteFile(decoy, []byte("what a library is not"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := [][2]string{{missing, missing}, {decoy, decoy}, {"lib/relative.so", "neither a name that the system knows nor an absolute path"}}
	if runtime.GOOS == "linux" {
		tests = append(tests, [2]string{"libm.so.6", "libm.so.6 is no library of OpenCL 1.2"})
	}
	for _, test := range tests {
		t.Setenv("ASYNCGEN_LIBOPENCL", test[0])
		_, err := device.Open("opencl:0")
		if err == nil || !strings.Contains(err.Error(), test[1]) {
			t.Errorf("ASYNCGEN_LIBOPENCL=%s: error %v does not say %q", test[0], err, test[1])
		}
		if _, err := device.GPU(0); err == nil || !strings.Contains(err.Error(), test[1]) {
			t.Errorf("ASYNCGEN_LIBOPENCL=%s: GPU(0): error %v does not say %q", test[0], err, test[1])
		}
		if d := device.TryGPU(0); d != device.CPU() {
			t.Errorf("ASYNCGEN_LIBOPENCL=%s: TryGPU gives %v", test[0], d)
		}
	}
}

func TestFlaws(t *testing.T) {
	t.Setenv("ASYNCGEN_OPENCL_CPU", "")
	good := found{kind: cl.DeviceTypeGPU, groupSize: 256, local: 32 << 10}
	if err := good.flawOf(true, true, true); err != nil {
		t.Errorf("a good device: %v", err)
	}
	small, tight, cpu := good, good, good
	small.groupSize, tight.local, cpu.kind = 128, 16<<10, cl.DeviceTypeCPU
	for want, err := range map[string]error{
		"not available":         good.flawOf(false, true, true),
		"no compiler":           good.flawOf(true, false, true),
		"big-endian":            good.flawOf(true, true, false),
		"128 items at most":     small.flawOf(true, true, true),
		"16384 bytes of memory": tight.flawOf(true, true, true),
		"ASYNCGEN_OPENCL_CPU=1": cpu.flawOf(true, true, true),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %q", err, want)
		}
	}
}

func TestCPUsLast(t *testing.T) {
	const cpu, gpu, fast = cl.DeviceTypeCPU, cl.DeviceTypeGPU, cl.DeviceTypeAccelerator
	all := []found{{name: "a", kind: cpu}, {name: "b", kind: gpu}, {name: "c", kind: cpu | 1}, {name: "d", kind: fast}, {name: "e", kind: gpu | 1}}
	cpusLast(all)
	var order string
	for _, f := range all {
		order += f.name
	}
	if order != "bdeac" {
		t.Errorf("the order is %s, want GPUs and accelerators, then CPUs, each as they were", order)
	}
}

// BenchmarkLaunch measures the host time of one of 64 launches on an otherwise idle device.
func BenchmarkLaunch(b *testing.B) {
	d := newTest(b)
	x := alloc(b, d, 8)
	cmds := make([]device.Command, 64)
	for i := range cmds {
		cmds[i] = command(double, 8, x, x)
	}
	mustDo(b, d, cmds...)
	b.ReportAllocs()
	var least time.Duration
	for i := 0; i < b.N; i += len(cmds) {
		begin := time.Now()
		last, _ := d.Submit(cmds)
		if took := time.Since(begin); i == 0 || took < least {
			least = took
		}
		d.Wait(context.Background(), last)
	}
	b.ReportMetric(float64(least.Nanoseconds())/float64(len(cmds)), "host-ns/launch")
}

// BenchmarkQueue measures a launch that nobody waits for.
func BenchmarkQueue(b *testing.B) {
	d := newTest(b)
	x := alloc(b, d, 8)
	cmds := make([]device.Command, 64)
	for i := range cmds {
		cmds[i] = command(double, 8, x, x)
	}
	mustDo(b, d, cmds...)
	var last device.Ticket
	for i := 0; i < b.N; i += len(cmds) {
		last, _ = d.Submit(cmds)
	}
	d.Wait(context.Background(), last)
}

// BenchmarkWait measures a launch and the wait for it.
func BenchmarkWait(b *testing.B) {
	d := newTest(b)
	x := alloc(b, d, 8)
	cmds := []device.Command{command(double, 8, x, x)}
	mustDo(b, d, cmds...)
	b.ReportAllocs()
	for b.Loop() {
		last, _ := d.Submit(cmds)
		d.Wait(context.Background(), last)
	}
}
