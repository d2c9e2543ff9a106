package opencltest

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	_ "github.com/asyncgen/asyncgen/device/opencl"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var (
	tensorPrograms = flag.Int("tensors", 150, "number of random programs of tensors")
	tensorDevice   = flag.String("on", "sim:0", "the devices, with commas between them, of which random programs of tensors run on one, beside the CPU; for a driver, compiling takes minutes")
	atOnce         = flag.Int("at-once", 2, "how many random programs of tensors run at the same time")
	slackFlag      = flag.Float64("slack", 4, "how many units of the last place functions that are not correctly rounded may differ by; 0 on PoCL")
)

// A twin is one tensor on the CPU and what has to be the same on another device.
type twin struct {
	cpu, dev *tensor.Tensor
	by       string // the call
	from     []*twin
	slack    float64 // by how many units of the last place they may differ; 0: not at all
	mayFail  bool    // because of values
}

// A session runs calls on tensors, and the same calls on the same tensors of another device.
type session struct {
	rnd   *rand.Rand
	host  device.Device
	other device.Device
	all   []device.Device // that tensors may come by
	dims  []int           // lengths of axes that tensors have in common
	twins []*twin
	calls int
	trace []string // the calls
}

// A call is what computes tensors from others. It is run once for each device.
type call func(on device.Device, x []*tensor.Tensor) []*tensor.Tensor

// An outcome is what a call gives.
type outcome struct {
	results []*tensor.Tensor
	panics  string // why it panics; "": it does not
}

func run(f call, on device.Device, x []*tensor.Tensor) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			err, isError := p.(error)
			if !isError {
				panic(p)
			}
			o.panics = cause(err)
		}
	}()
	return outcome{results: f(on, x)}
}

var deviceName = regexp.MustCompile(`\b(cpu|sim:\d|opencl:\d)\b`)

// alike takes out of an error's text which device it is about.
func alike(text string) string {
	return deviceName.ReplaceAllString(text, "DEVICE")
}

// do makes the call f on both devices. Results that may differ a little, by slack units of the last
// place, are compared at once, others at the end.
func (s *session) do(name string, f call, slack float64, mayFail bool, from ...*twin) ([]*twin, error) {
	s.calls++
	cpu, dev := make([]*tensor.Tensor, len(from)), make([]*tensor.Tensor, len(from))
	for i, t := range from {
		cpu[i], dev[i] = t.cpu, t.dev
	}
	var operands []string
	for _, t := range from {
		operands = append(operands, fmt.Sprintf("%i", t.cpu))
	}
	name = fmt.Sprintf("%s of %s", name, strings.Join(operands, ", "))
	s.trace = append(s.trace, name)
	want, got := run(f, s.host, cpu), run(f, s.other, dev)
	if got.panics != want.panics {
		return nil, fmt.Errorf("%s panics with %q, on the CPU with %q", name, got.panics, want.panics)
	}
	var results []*twin
	for i, r := range want.results {
		t := &twin{cpu: r, dev: got.results[i], by: name, from: from, slack: slack, mayFail: mayFail}
		if slack > 0 { // what follows begins with the same bits
			if err := s.check(t); err != nil {
				return nil, err
			}
			t.dev = t.cpu.To(s.other)
		}
		results = append(results, t)
	}
	return results, nil
}

// check compares both sides of t.
func (s *session) check(t *twin) error {
	if !slices.Equal(t.cpu.Shape(), t.dev.Shape()) || t.cpu.DType() != t.dev.DType() {
		return fmt.Errorf("%s gives %i, on the CPU %i", t.by, t.dev, t.cpu)
	}
	wantErr, gotErr := t.cpu.Wait(), t.dev.Wait()
	if (wantErr == nil) != (gotErr == nil) {
		return fmt.Errorf("%s fails with %v, on the CPU with %v", t.by, gotErr, wantErr)
	}
	if wantErr != nil {
		if want, got := cause(wantErr), cause(gotErr); want != got {
			return fmt.Errorf("%s fails with %s, on the CPU with %s", t.by, got, want)
		}
		return nil
	}
	switch t.cpu.DType() {
	case tensor.Float32:
		want, got := t.cpu.Float32s(), t.dev.Float32s()
		for i := range want {
			if w, g := want[i], got[i]; !t.near(float64(w), float64(g), ulp32, math.Float32bits(w) == math.Float32bits(g)) {
				return s.differs(t, i, fmt.Sprintf("%v (%#x)", g, math.Float32bits(g)), fmt.Sprintf("%v (%#x)", w, math.Float32bits(w)))
			}
		}
	case tensor.Float64:
		want, got := t.cpu.Float64s(), t.dev.Float64s()
		for i := range want {
			if w, g := want[i], got[i]; !t.near(w, g, ulp64, math.Float64bits(w) == math.Float64bits(g)) {
				return s.differs(t, i, fmt.Sprintf("%v (%#x)", g, math.Float64bits(g)), fmt.Sprintf("%v (%#x)", w, math.Float64bits(w)))
			}
		}
	case tensor.Int64:
		want, got := t.cpu.Int64s(), t.dev.Int64s()
		for i := range want {
			if want[i] != got[i] {
				return s.differs(t, i, got[i], want[i])
			}
		}
	case tensor.Float16, tensor.BFloat16, tensor.Int32, tensor.Uint8:
		// Their values are float64s, and so they are compared without the sign of NaN.
		places := map[tensor.DType]float64{tensor.Float16: 0x1p42, tensor.BFloat16: 0x1p45}[t.cpu.DType()]
		want, got := t.cpu.As(tensor.Float64).Float64s(), t.dev.As(tensor.Float64).To(s.host).Float64s()
		for i := range want {
			ulp := func(x float64) float64 { return ulp64(x) * places }
			if w, g := want[i], got[i]; !t.near(w, g, ulp, math.Float64bits(w) == math.Float64bits(g)) {
				return s.differs(t, i, g, w)
			}
		}
	case tensor.Bool:
		want, got := t.cpu.Bools(), t.dev.Bools()
		for i := range want {
			if want[i] != got[i] {
				return s.differs(t, i, got[i], want[i])
			}
		}
	}
	return nil
}

// near reports whether both are NaN, have the same bits, or differ by so little as is allowed.
func (t *twin) near(want, got float64, ulp func(float64) float64, same bool) bool {
	switch {
	case same || want != want && got != got:
		return true
	case t.slack == 0 || want != want || got != got || math.IsInf(want, 0) || math.IsInf(got, 0):
		return false
	}
	return math.Abs(want-got) <= t.slack*ulp(max(math.Abs(want), math.Abs(got)))
}

func ulp32(x float64) float64 {
	a := float32(x)
	return float64(math.Nextafter32(a, float32(math.Inf(1)))) - float64(a)
}

func ulp64(x float64) float64 { return math.Nextafter(x, math.Inf(1)) - x }

// differs tells of an element, and of what it comes from as far as that is of the same shape or short.
func (s *session) differs(t *twin, i int, got, want any) error {
	var b strings.Builder
	fmt.Fprintf(&b, "element %d of %s is %v, on the CPU %v", i, t.by, got, want)
	for _, f := range t.from {
		if f.cpu.Size() == t.cpu.Size() {
			fmt.Fprintf(&b, "\n\tof %.20v", f.cpu.Flatten().Row(i))
		}
		if f.cpu.Size() <= 64 {
			fmt.Fprintf(&b, "\n\tof %.20v", f.cpu)
		}
	}
	return errors.New(b.String())
}

// cause is the root of an error, without what says where it was.
func cause(err error) string {
	var e *asyncrt.OpError
	if errors.As(err, &e) {
		root := error(e)
		for next := root; next != nil; next = errors.Unwrap(root) {
			root = next
		}
		return alike(fmt.Sprintf("%s of %v %v: %v", e.Op, e.Shapes, e.DTypes, root))
	}
	return alike(err.Error())
}

// run draws a program and runs it.
func (s *session) run() error {
	s.drawDims()
	for range 3 + s.rnd.IntN(4) {
		s.leaf(s.dtype(), s.shape())
	}
	for range 1 << s.rnd.IntN(6) {
		if err := s.step(); err != nil {
			return err
		}
	}
	for _, t := range s.twins {
		if err := s.check(t); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) drawDims() {
	switch s.rnd.IntN(12) {
	case 0, 1, 2:
		s.dims = []int{1 + s.rnd.IntN(40), s.rnd.IntN(40), 1 + s.rnd.IntN(20)}
	case 3:
		edges := []int{31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257}
		s.dims = []int{edges[s.rnd.IntN(len(edges))], edges[s.rnd.IntN(len(edges))]}
	case 4:
		edges := []int{511, 513, 1023, 1024, 1025, 2049, 65535, 65536, 65537, 1<<17 + 1}
		s.dims = []int{edges[s.rnd.IntN(len(edges))], 1 + s.rnd.IntN(3)}
	case 5:
		s.dims = []int{0, 1 + s.rnd.IntN(4)}
	default:
		s.dims = []int{1 + s.rnd.IntN(4), 1 + s.rnd.IntN(5), 1 + s.rnd.IntN(7)}
	}
}

const mostElements = 1 << 18

// shape draws one.
func (s *session) shape() device.Shape {
	rank := []int{0, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5, 6}[s.rnd.IntN(12)]
	shape, n := device.Shape{}, 1
	for range rank {
		d := s.dims[s.rnd.IntN(len(s.dims))]
		if s.rnd.IntN(6) == 0 {
			d = 1
		}
		if n*max(d, 1) > mostElements {
			d = 1
		}
		n *= max(d, 1)
		shape = append(shape, d)
	}
	return shape
}

func (s *session) dtype() tensor.DType {
	if s.rnd.IntN(5) == 0 {
		return []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.BFloat16, tensor.Int32, tensor.Uint8}[s.rnd.IntN(5)]
	}
	return []tensor.DType{tensor.Float32, tensor.Float32, tensor.Float32, tensor.Float64, tensor.Float64, tensor.Int64, tensor.Bool}[s.rnd.IntN(7)]
}

// leaf makes a tensor of the host's data.
func (s *session) leaf(dt tensor.DType, shape device.Shape) *twin {
	style := s.rnd.IntN(5)
	var t *twin
	switch dt {
	case tensor.Float32:
		t = leafOf(s, shape, func() float32 { return float32(s.float(style, float32Specials[s.rnd.IntN(len(float32Specials))])) })
	case tensor.Float64:
		t = leafOf(s, shape, func() float64 { return s.float(style, float64Specials[s.rnd.IntN(len(float64Specials))]) })
	case tensor.Int64:
		t = leafOf(s, shape, func() int64 { return s.int(style) })
	case tensor.Bool:
		t = leafOf(s, shape, func() bool { return s.rnd.IntN(2) == 0 })
	case tensor.Float16:
		t = leafOf(s, shape, func() tensor.Float16Bits { return device.ToFloat16(float32(s.float(style, draw(s, float32Specials)))) })
	case tensor.BFloat16:
		t = leafOf(s, shape, func() tensor.BFloat16Bits {
			return device.ToBFloat16(float32(s.float(style, draw(s, float32Specials))))
		})
	case tensor.Int32:
		t = leafOf(s, shape, func() int32 { return int32(s.int(style)) })
	case tensor.Uint8:
		t = leafOf(s, shape, func() uint8 { return uint8(s.int(style)) })
	}
	s.trace = append(s.trace, fmt.Sprintf("%i in style %d", t.cpu, style))
	s.twins = append(s.twins, t)
	return t
}

func leafOf[T device.Element](s *session, shape device.Shape, draw func() T) *twin {
	data := make([]T, shape.Size())
	for i := range data {
		data[i] = draw()
	}
	if device.DTypeOf[T]().IsStorage() {
		x := tensor.Of(data).Reshape(shape...)
		return &twin{cpu: x.To(s.host), dev: x.To(s.other), by: "data"}
	}
	t := &twin{cpu: tensor.FromOn(s.host, data, shape...), by: "data"}
	t.dev = tensor.FromOn(s.other, data, shape...)
	return t
}

var float32Specials = []float64{
	math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1, -1, 0.5, math.MaxFloat32, -math.MaxFloat32,
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-126, 0x1p-127, 1e-42, 1e10, -3e30, 88.7, 88.8, -103.9, -104, 2.5, -2.5, 3.5, 1 << 24, 1<<24 + 2, 0x1p63, -0x1p63, 0x1p62, 1e-8, 9.1, 355, 710,
}

var float64Specials = append(slices.Clone(float32Specials),
	math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 0x1p-1022, 0x1p-1030, 709.7, 709.8, -745.2, 1e300, -1e22, 1<<53, 1<<53+2, 1e-17, 0x1p-149, 0x1p-150, 0x1.8p-149, 3.4028235677973366e+38)

func (s *session) float(style int, special float64) float64 {
	switch style {
	case 0: // ties, and sums without rounding
		return float64(s.rnd.IntN(9)-4) / 4
	case 1:
		return s.rnd.NormFloat64()
	case 2:
		return math.Ldexp(s.rnd.NormFloat64(), s.rnd.IntN(40)-20)
	case 3:
		if s.rnd.IntN(3) > 0 {
			return s.rnd.NormFloat64() * 3
		}
	}
	return special
}

func (s *session) int(style int) int64 {
	switch style {
	case 0, 1:
		return s.rnd.Int64N(7) - 3
	case 2:
		return s.rnd.Int64() - s.rnd.Int64()
	}
	return []int64{0, 1, -1, 2, -7, 63, 64, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, 1 << 53, 1<<53 + 1, 1 << 62, -1 << 31, 1<<32 + 5}[s.rnd.IntN(15)]
}

// TestTensors runs random programs of the whole API of tensors on the CPU and on another device,
// that of -on. They give the same bits, and fail with the same causes; functions that are not
// rounded correctly may differ by some units of the last place.
func TestTensors(t *testing.T) {
	t.Setenv("ASYNCGEN_OPENCL_CPU", "1")
	all := []device.Device{device.CPU()}
	for name := range strings.SplitSeq(*tensorDevice, ",") {
		d, err := device.Open(name)
		if err != nil {
			devicetest.NoOpenCL(t, err)
		}
		all = append(all, d)
	}
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", first)
	var programs, calls atomic.Int64
	var workers sync.WaitGroup
	begin := time.Now()
	for range *atOnce {
		workers.Go(func() {
			for {
				i := programs.Add(1) - 1
				if i >= int64(*tensorPrograms) {
					return
				}
				rnd := rand.New(rand.NewPCG(first+uint64(i), 5))
				s := &session{rnd: rnd, host: all[0], other: all[1+rnd.IntN(len(all)-1)], all: all}
				again := fmt.Sprintf("to run it alone: go test ./runtime/internal/opencltest -run TestTensors -tensors 1 -on %s -seed %d", *tensorDevice, first+uint64(i))
				hangs := time.AfterFunc(*hang, func() {
					pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
					panic(fmt.Sprintf("program %d hangs; %s", i, again))
				})
				err := s.run()
				hangs.Stop()
				calls.Add(int64(s.calls))
				if err != nil {
					t.Errorf("program %d, on %v: %v\n\t%s\n\t%s", i, s.other, err, again, strings.Join(s.trace, "\n\t"))
				}
				if i%1000 == 999 {
					fmt.Fprintf(os.Stderr, "%d random programs of tensors, %d calls, in %v\n", i+1, calls.Load(), time.Since(begin).Round(time.Second))
				}
			}
		})
	}
	workers.Wait()
	asyncrt.WaitAll() // of the failures that there were
	t.Logf("%d programs, %d calls", *tensorPrograms, calls.Load())
}

// What is copied to a part of a tensor that has no elements may begin behind its end.
func TestGradientOfNothing(t *testing.T) {
	for _, name := range devicetest.Names(t) {
		on, err := device.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		x := tensor.On(on).Zeros(0, 12).Track()
		if g := tensor.Grad(x.Slice(1, 5, 8).Sum(), x)[0]; g.Wait() != nil || !slices.Equal(g.Shape(), x.Shape()) {
			t.Errorf("%s: the gradient is %i, error %v", name, g, g.Wait())
		}
	}
}
