// Package devicetest says what every backend must do, as tests.
//
// The expected values come from plain loops in this package, in float64 and int64, not from package
// kernel. Results that are defined to the last bit (the order of reductions, the random stream) are
// also compared with kernel's definition.
package devicetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// Options change how TestBackend tests.
type Options struct {
	// Seed is the seed of random shapes and values. 0 stands for DEVICETEST_SEED in the environment or,
	// if that is not set, a different seed each time. The seed is logged.
	Seed uint64
	// Wraps says that another backend runs b's commands, one that passes these tests itself: what Codes compute is not
	// tested again.
	Wraps bool
}

// TestBackend checks all that a backend promises. That includes what each Code computes, for every
// type, primitive, reducer and distribution, on views and without elements; tickets, order, failures
// and memory; and, if the backend says so, that results do not depend on what is computed together with
// them. TestBackend needs b for itself and closes it.
//
// A backend passes or it is not one: it can't opt out of a test. -short, which is for runs with the
// race detector, leaves out what Codes compute: those tests run one command after the other, and
// would find no more races.
func TestBackend(t *testing.T, b device.Backend, o Options) {
	if o.Seed == 0 {
		o.Seed, _ = strconv.ParseUint(os.Getenv("DEVICETEST_SEED"), 10, 64)
	}
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: DEVICETEST_SEED=%[1]d tests the same again", o.Seed)
	for _, test := range []struct {
		name  string
		run   func(*suite)
		about subject
	}{
		{"Caps", testCaps, queue},
		{"Memory", testMemory, queue},
		{"Transfer", testTransfer, queue},
		{"FillIota", testFillIota, queue},
		{"Primitives", testPrimitives, values},
		{"Cast", testCast, values},
		{"Storage", testStorage, values},
		{"Expressions", testExpressions, values},
		{"Math", testMath, values},
		{"Host", testHost, values},
		{"Views", testViews, values},
		{"InPlace", testInPlace, values},
		{"Reduce", testReduce, values},
		{"ReduceTree", testReduceTree, values},
		{"ReduceOf", testReduceOf, values},
		{"Wide", testWide, values},
		{"MatMul", testMatMul, values},
		{"MatMulOrder", testMatMulOrder, values},
		{"ArgReduce", testArgReduce, values},
		{"Scan", testScan, values},
		{"ArgSort", testArgSort, values},
		{"Rows", testRows, values},
		{"CopyTo", testCopyTo, queue},
		{"Concat", testConcat, values},
		{"BatchedMatMul", testBatchedMatMul, values},
		{"Epilogues", testEpilogues, values},
		{"Conv", testConv, values},
		{"Pool", testPool, values},
		{"Gather", testGather, values},
		{"ScatterAdd", testScatterAdd, values},
		{"BatchInvariance", testBatchInvariance, queue},
		{"Random", testRandom, values},
		{"Empty", testEmpty, queue},
		{"Tickets", testTickets, queue},
		{"Order", testOrder, queue},
		{"Wait", testWait, queue},
		{"Failures", testFailures, queue},
		{"NoFloat64", testNoFloat64, queue},
		{"IndexErrors", testIndexErrors, queue},
		{"Concurrency", testConcurrency, queue},
		{"Close", testClose, queue},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.about == values && (o.Wraps || testing.Short()) {
				t.Skip("values, one command after the other")
			}
			test.run(&suite{T: t, b: b, rnd: rand.New(rand.NewPCG(o.Seed, 0))})
		})
	}
}

// A subject is what a test is about.
type subject bool

const (
	values subject = true  // what one command computes
	queue  subject = false // memory, copies, order, failures
)

// A suite is one test with the backend that it tests.
type suite struct {
	*testing.T
	b   device.Backend
	rnd *rand.Rand
}

type number interface{ float32 | float64 | int64 }

// kernelFor returns a kernel of a Code that needs nothing but a type.
func kernelFor(code device.Code, dt device.DType) *device.Kernel { return plain[code][dt] }

var plain = map[device.Code]map[device.DType]*device.Kernel{}

func init() {
	for code, inputs := range map[device.Code]int{device.Upload: 1, device.Download: 1, device.Copy: 1, device.Fill: 0, device.Iota: 0, device.MatMul: 2} {
		plain[code] = map[device.DType]*device.Kernel{}
		for _, dt := range device.DTypes() {
			in := []device.DType{dt, dt}[:inputs]
			plain[code][dt] = device.NewKernel(fmt.Sprintf("%v %v", code, dt), code, nil, dt, in...)
		}
	}
}

// mapKernel returns a kernel that computes e for each element.
func mapKernel(e *kernel.Expr) *device.Kernel {
	in := make([]device.DType, e.Args())
	for _, x := range e.Nodes() {
		if x.Kind() == kernel.Operand {
			in[x.Index()] = x.DType()
		}
	}
	return device.NewKernel(e.String(), device.Map, e, e.DType(), in...)
}

// try submits commands and waits for them. It returns the first failure; a
// synchronous backend may panic instead.
func (s *suite) try(cmds ...device.Command) (err error) {
	if s.b.Caps().Synchronous {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
	}
	last, err := s.b.Submit(cmds)
	if err != nil {
		return err
	}
	if err := s.b.Wait(context.Background(), last); err != nil {
		return err
	}
	for i := range cmds {
		if err := s.b.Failure(last - device.Ticket(len(cmds)-1-i)); err != nil {
			return err
		}
	}
	return nil
}

// do is try for commands that must not fail.
func (s *suite) do(cmds ...device.Command) {
	s.Helper()
	if err := s.try(cmds...); err != nil {
		s.Fatalf("%s: %v", cmds[len(cmds)-1].Kernel.Name, err)
	}
}

func (s *suite) alloc(bytes int) *device.Buffer {
	s.Helper()
	buf, err := s.b.Alloc(int64(bytes))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { s.b.Free(buf) })
	return buf
}

// host returns host memory with the given contents.
func host[T device.Element](values []T) *device.Buffer {
	buf := device.HostBuffer(int64(len(values) * device.DTypeOf[T]().Size()))
	copy(device.Slice[T](buf, 0, len(values)), values)
	return buf
}

// put returns memory of the device with the given contents.
func put[T device.Element](s *suite, values []T) *device.Buffer {
	s.Helper()
	dt := device.DTypeOf[T]()
	buf := s.alloc(len(values) * dt.Size())
	s.do(device.Command{Kernel: kernelFor(device.Upload, dt), N: len(values), Buf: [4]*device.Buffer{buf, host(values)}})
	return buf
}

// get returns n elements of buf.
func get[T device.Element](s *suite, buf *device.Buffer, n int) []T {
	s.Helper()
	dt := device.DTypeOf[T]()
	out := device.HostBuffer(int64(n * dt.Size()))
	s.do(device.Command{Kernel: kernelFor(device.Download, dt), N: n, Buf: [4]*device.Buffer{out, buf}})
	return device.Slice[T](out, 0, n)
}

// compute gives c an output, runs it and returns the output. It checks that nothing beside the output
// was written.
func compute[T device.Element](s *suite, c device.Command) []T {
	s.Helper()
	guard := 1 + s.rnd.IntN(20)
	before := make([]T, c.N+2*guard)
	for i := range before {
		before[i] = kernel.Value[T](kernel.BitsOf(float64(i%2), device.DTypeOf[T]()))
	}
	c.Buf[0], c.Off[0] = put(s, before), guard
	s.do(c)
	after := get[T](s, c.Buf[0], len(before))
	for i := range guard {
		if after[i] != before[i] || after[guard+c.N+i] != before[guard+c.N+i] {
			s.Fatalf("%s wrote outside of its output", c.Kernel.Name)
		}
	}
	return after[guard : guard+c.N]
}

// mapOf computes e for n contiguous elements of the buffers.
func mapOf[T device.Element](s *suite, e *kernel.Expr, n int, in ...*device.Buffer) []T {
	s.Helper()
	c := device.Command{Kernel: mapKernel(e), N: n}
	copy(c.Buf[1:], in)
	return compute[T](s, c)
}
