package engine

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/device"
)

// The model of random programs (random_test.go) is a few arrays. Each operation on them is computed at
// once, in program order. The model knows nothing of queues, and shares no code with the engine.

// The kinds of operation. Their arithmetic is written twice: here for the model, and in the kernels below.
const (
	kFill    = iota // out = c
	kMix            // out = a/2 + b + c, elements of shorter operands repeating
	kInPlace        // out = out*3/4 + a
	kTwo            // out, out2 = a+c, a-c
	kSum            // out[i] = i + all elements of a, b and d
	kShift          // out[i] = a[i] + b[i+1], where b is read with an offset, and its first element comes last
	kTurn           // out[i] = a[i] + b[-i], where b is read with a stride, and its first element comes first
	kMany           // out[i] = i + all elements of any number of inputs, which stand in Op.Reads
	kFail           // fails, having written rubbish
	kPanic          // panics, having written rubbish
	kFailIf         // out = a, or fails if the first element of a is positive
	kinds
)

// A modelVar is a variable as the model sees it. An overwritten variable gets a new modelVar and the old
// one stays unchanged: a program that has guessed wrong goes back to it.
type modelVar struct {
	dev    int       // where it lives
	vals   []float64 // undefined while cause != nil
	cause  *origin   // of the failure that spoiled it, or nil
	made   *modelScope
	by     *modelScope // of the operation that wrote it last
	lacks  bool        // there was no memory for it
	shared bool        // several variables share this one
	tiny   bool        // its memory is part of the Storage, and never given back
	chance
}

// A chance says that a result may not have been computed: a scope ended while operations were pending.
// Only a look at the result tells.
type chance struct {
	maybe bool   // the result may be missing already
	later uint64 // contexts whose end may still make it missing
	named uint64 // contexts whose end may be the reason
}

// ends notes that a context ends, or has ended just now.
func (c *chance) ends(context uint64) {
	if c.later&context != 0 {
		c.maybe = true
		c.later &^= context
	}
}

// An origin is the operation of a program with which a failure began.
type origin struct {
	number int // of the operation, by which its shapes name it
	kind   int
	dev    int
	line   int
	scope  *modelScope
	lacked bool // there was no memory for its result
	chance      // that the operation never ran, and so did not fail
}

// Causes that are no failures of operations.
var (
	ended    = &origin{kind: -1} // a scope had ended
	released = &origin{kind: -2} // the memory was given back
)

// A modelScope is a set of contexts. An operation belongs to it if it belongs to all of them. The empty
// set is no scope.
type modelScope struct {
	contexts uint64
	on       []device.Device // each device of the world in the scope
}

// has reports whether the operations of other belong to s as well.
func (s *modelScope) has(other *modelScope) bool {
	return s.contexts != 0 && other.contexts&s.contexts == s.contexts
}

// compute is the model of one operation. It reports false if that fails.
func compute(kind int, out, out2 *modelVar, in []*modelVar, c float64) bool {
	at := func(v []float64, i int) float64 { return v[i%len(v)] }
	n := len(out.vals)
	res, res2 := make([]float64, n), []float64(nil)
	switch kind {
	case kFill:
		for i := range res {
			res[i] = c
		}
	case kMix:
		for i := range res {
			res[i] = at(in[0].vals, i)/2 + at(in[1].vals, i)
			res[i] += c
		}
	case kInPlace:
		for i := range res {
			res[i] = float64(in[0].vals[i]*0.75) + at(in[1].vals, i)
		}
	case kTwo:
		res2 = make([]float64, len(out2.vals))
		for i := range res {
			res[i] = at(in[0].vals, i) + c
		}
		for i := range res2 {
			res2[i] = at(in[0].vals, i) - c
		}
	case kSum, kMany:
		var sum float64
		for _, v := range in {
			for _, x := range v.vals {
				sum += x
			}
		}
		sum = math.Mod(sum, 1000)
		for i := range res {
			res[i] = sum + float64(i)
		}
	case kShift:
		for i := range res {
			res[i] = at(in[0].vals, i) + at(in[1].vals, i+1)
		}
	case kTurn:
		for i, k := 0, 0; i < n; i++ {
			res[i] = at(in[0].vals, i) + in[1].vals[k]
			if k--; k < 0 {
				k = len(in[1].vals) - 1
			}
		}
	case kFailIf:
		if in[0].vals[0] > 0 {
			return false
		}
		for i := range res {
			res[i] = at(in[0].vals, i)
		}
	case kFail, kPanic:
		return false
	}
	out.vals = res
	if res2 != nil {
		out2.vals = res2
	}
	return true
}

var errPlanned = errors.New("planned failure")

// Bits of a command's second immediate. The bits below them say how often it yields to others first.
const (
	forbidden = 1 << 8 // the command must not begin
	overlaps  = 1 << 9 // the command writes what it reads, as the program says
)

// begun is set when a command has begun that must not. The command's panic alone might go unnoticed.
var begun atomic.Bool

// kernelOf makes the kernel of a kind with a number of inputs.
func kernelOf(kind, inputs int) *device.Kernel {
	at := func(v []float64, i int) float64 { return v[i%len(v)] }
	outputs := 1
	if kind == kTwo {
		outputs = 2
	}
	name := fmt.Sprint("kind", kind)
	if kind == kFail {
		name = failing.Name // some devices refuse that
	}
	kernel := fakeKernel(name, inputs, func(c *device.Command) error {
		k := math.Float64frombits(c.Imm[0])
		if c.Imm[1]&forbidden != 0 {
			begun.Store(true)
			panic("begun although that was forbidden")
		}
		for range c.Imm[1] & (forbidden - 1) {
			runtime.Gosched()
		}
		out := vals(c, 0)
		in := make([][]float64, inputs)
		for i := range in {
			in[i] = vals(c, outputs+i)
			if c.Imm[1]&overlaps != 0 {
				in[i] = slices.Clone(in[i])
			}
		}
		switch kind {
		case kFill:
			for i := range out {
				out[i] = k
			}
		case kMix:
			for i := range out {
				out[i] = at(in[0], i)*0.5 + at(in[1], i) + k
			}
		case kInPlace:
			for i := range out {
				out[i] = float64(out[i]*0.75) + at(in[1], i)
			}
		case kTwo:
			out2 := vals(c, 1)
			for i := range out {
				out[i] = at(in[0], i) + k
			}
			for i := range out2 {
				out2[i] = at(in[0], i) - k
			}
		case kSum, kMany:
			out[0] = math.NaN() // which nobody is to read
			if kind == kMany {
				for _, part := range c.Args.Parts {
					in = append(in, valsOf(part.Buf))
				}
			}
			sum := 0.0
			for _, v := range in {
				for _, x := range v {
					sum += x
				}
			}
			sum = math.Mod(sum, 1000)
			for i := range out {
				out[i] = float64(i) + sum
			}
		case kShift:
			for i := range out {
				out[i] = at(in[0], i) + in[1][(i+c.Off[2])%len(in[1])]
			}
		case kTurn:
			n := len(in[1])
			for i := range out {
				out[i] = at(in[0], i) + in[1][(n+i*c.Args.Strides[2][0]%n)%n]
			}
		case kFailIf:
			if in[0][0] > 0 {
				out[0] = math.NaN()
				return errPlanned
			}
			for i := range out {
				out[i] = at(in[0], i)
			}
		case kFail:
			out[0] = math.NaN()
			return errPlanned
		case kPanic:
			out[len(out)-1] = math.NaN()
			panic(errPlanned)
		}
		return nil
	})
	if kind == kSum || kind == kMany {
		kernel.Code = device.Reduce
	}
	return kernel
}

var kernelsOf = func() (k [kinds]*device.Kernel) {
	for kind, inputs := range []int{kFill: 0, kMix: 2, kInPlace: 2, kTwo: 1, kSum: 3, kMany: 0, kShift: 2, kTurn: 2, kFail: 1, kPanic: 1, kFailIf: 1} {
		k[kind] = kernelOf(kind, inputs)
	}
	return k
}()

// world holds the devices of random programs, some of each kind. The first is the host; the host also
// reaches the memory of numa.
type world struct {
	devs []device.Device
	cpus []*fakeCPU // what allocates for each
	gpus []*fakeGPU
	stop []func() error

	flowInPlace, queueInPlace uint64 // operations that took over the memory of an input
	byCalls                   uint64 // operations that calls have computed
}

const numa = 2 // in world.devs

func newWorld() *world {
	w := &world{}
	add := func(name string, kind device.Kind, b device.Backend, alloc *fakeCPU) {
		alloc.poison = true
		w.devs = append(w.devs, device.Wrap(name, kind, b))
		w.cpus = append(w.cpus, alloc)
		w.stop = append(w.stop, b.Close)
	}
	cpu, cpu2, hidden := &fakeCPU{}, &fakeCPU{}, &fakeCPU{noHost: true}
	links := newFakeLinks()
	for i := range fakeDevices {
		g := newFakeGPU()
		g.links, g.number = links, i
		w.gpus = append(w.gpus, g)
	}
	gpu, gpu2, gpu3 := w.gpus[0], w.gpus[1], w.gpus[2]
	gpu2.refuse, gpu2.room = true, 5
	add("cpu", device.KindCPU, cpu, cpu)
	add("gpu:0", device.KindGPU, gpu, &gpu.fakeCPU)
	add("numa", device.KindCPU, cpu2, cpu2)
	add("gpu:1", device.KindGPU, gpu2, &gpu2.fakeCPU)
	add("dsp", device.KindCPU, hidden, hidden)
	add("gpu:2", device.KindGPU, gpu3, &gpu3.fakeCPU)
	return w
}

func (w *world) close() {
	for _, stop := range w.stop {
		stop()
	}
}

// open makes a world that was closed usable again.
func (w *world) open() {
	for _, g := range w.gpus {
		g.open()
	}
}

// onHost reports whether the host reaches the memory of a device.
func onHost(dev int) bool { return dev == 0 || dev == numa }

// inUse returns how many buffers were not given back. Buffers of programs that have ended come back
// once the collector has run.
func (w *world) inUse() (n int) {
	for _, c := range w.cpus {
		made, freed, twice := c.counts()
		n += made - freed
		if twice > 0 {
			panic(fmt.Sprintf("%d buffers were given back twice", twice))
		}
	}
	return n
}

// sameError compares the engine's error for a result of a program with what the model expects.
func (w *world) sameError(err error, cause *origin, c chance) error {
	if err == nil && cause == nil || cause != nil && cause.isAs(w, err) || c.maybe && isEnd(err, c.named) {
		return nil
	}
	return fmt.Errorf("error %+v, want %v, perhaps the end of %b: %v", err, cause, c.named, c.maybe)
}

// isAs reports whether err is an error of a failure that began with o.
func (o *origin) isAs(w *world, err error) bool {
	if o == released {
		return err == error(errReleased)
	}
	var e *OpError
	if !errors.As(err, &e) || !strings.HasSuffix(e.File, "program_test.go") {
		return false
	}
	if o == ended {
		return isEnd(err, math.MaxUint64)
	}
	k := kernelsOf[o.kind]
	if e.Op != k.Name || e.Line != o.line || e.Device != w.devs[o.dev] || len(e.Shapes) != 1 || e.Shapes[0][0] != o.number || len(e.DTypes) != 1+len(k.In) {
		return false
	}
	var p *PanicError
	switch {
	case o.lacked:
		return errors.Is(err, device.ErrOutOfMemory)
	case o.kind == kPanic:
		return errors.As(err, &p) && errors.Is(err, errPlanned)
	}
	return errors.Is(err, errPlanned) || errors.Is(err, errBoom) // the device's own, or its refusal
}

func (o *origin) String() string {
	switch o {
	case nil:
		return "none"
	case ended:
		return "the end of a scope"
	case released:
		return "the use of what was released"
	}
	return fmt.Sprintf("the failure of operation %d", o.number)
}

// An endOf is the cause of a context's end.
type endOf struct{ context uint64 }

func (e endOf) Error() string { return fmt.Sprintf("context %b has ended", e.context) }

// isEnd reports whether err is the cause of the end of one of these contexts.
func isEnd(err error, contexts uint64) bool {
	e, ok := errors.AsType[endOf](err)
	return ok && e.context&contexts != 0
}
