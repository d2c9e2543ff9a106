package devicetest_test

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/sim"
)

// A mutant is a backend with a mistake, and the name of the test that has to find it.
type mutant struct {
	name   string
	caught string
	make   func() device.Backend
}

var mutants = []mutant{
	{"products accumulated in two halves", "MatMulOrder", onCPU(func(c *device.Command, run func(*device.Command)) {
		run(c)
		if c.Kernel.Code != device.MatMul || c.Kernel.Out != device.Float32 || c.Args.Ints[2] < 2 {
			return
		}
		half := *c
		out := device.Slice[float32](c.Buf[0], c.Off[0], c.N)
		clear(out)
		m, n, k := c.Args.Ints[0], c.Args.Ints[1], c.Args.Ints[2]
		for _, part := range [][2]int{{0, k / 2}, {k / 2, k}} {
			half.Buf[0], half.Off[0] = device.HostBuffer(int64(4*c.N)), 0
			args := *c.Args
			args.Ints = []int{m, n, part[1] - part[0]}
			strides := func(i, width int) []int {
				if c.Args.Strides[i] != nil {
					return c.Args.Strides[i]
				}
				return []int{width, 1}
			}
			args.Strides[1], args.Strides[2] = strides(1, k), strides(2, n)
			half.Args = &args
			half.Off[1] = c.Off[1] + part[0]*args.Strides[1][1]
			half.Off[2] = c.Off[2] + part[0]*args.Strides[2][0]
			run(&half)
			for i, v := range device.Slice[float32](half.Buf[0], 0, c.N) {
				out[i] += v
			}
		}
	})},
	{"the fifth operand taken for the fourth", "Wide", onCPU(func(c *device.Command, run func(*device.Command)) {
		changed := *c
		if c.Kernel.Code == device.Map && c.Args != nil && len(c.Args.Parts) > 0 {
			args := *c.Args
			args.Parts = slices.Clone(args.Parts)
			args.Parts[0] = device.Part{Buf: c.Buf[3], Off: c.Off[3], Strides: args.Strides[3]}
			changed.Args = &args
		}
		run(&changed)
	})},
	{"the third immediate is the second", "Wide", onCPU(func(c *device.Command, run func(*device.Command)) {
		changed := *c
		if c.Kernel.Code == device.Reduce && len(c.Args.Imm) > 0 {
			args := *c.Args
			args.Imm = append([]uint64{c.Imm[1]}, args.Imm[1:]...)
			changed.Args = &args
		}
		run(&changed)
	})},
	{"bfloat16 cut off instead of rounded", "Storage", onCPU(func(c *device.Command, run func(*device.Command)) {
		run(c)
		if c.Kernel.Code == device.Map && c.Kernel.Out == device.BFloat16 && len(c.Kernel.In) == 1 && c.Kernel.In[0] == device.Float32 && c.Args == nil {
			for i, v := range device.Slice[float32](c.Buf[1], c.Off[1], c.N) {
				if v == v {
					device.Slice[device.BFloat16Bits](c.Buf[0], c.Off[0], c.N)[i] = device.BFloat16Bits(math.Float32bits(v) >> 16)
				}
			}
		}
	})},
	{"folds of elements of two bytes begin with 1", "Storage", after(func(c *device.Command) {
		if c.Kernel.Code == device.Reduce && c.Kernel.In[0] == device.Float16 && c.Kernel.Body.(kernel.FoldOf).By == kernel.ReduceSum {
			for i := range c.N {
				device.Slice[float32](c.Buf[0], c.Off[0], c.N)[i]++
			}
		}
	})},
	{"elements of two bytes gathered as if all were alike", "Storage", onCPU(func(c *device.Command, run func(*device.Command)) {
		run(c)
		if out := c.Kernel.Out; c.Kernel.Code == device.Gather && out.Size() == 2 && c.N > 1 {
			all := device.Slice[uint8](c.Buf[0], 2*c.Off[0], 2*c.N)
			copy(all[2:], all[:2])
		}
	})},
	{"a single row is multiplied in double precision", "BatchInvariance", onCPU(func(c *device.Command, run func(*device.Command)) {
		run(c)
		if c.Kernel.Code == device.MatMul && c.Kernel.Out == device.Float32 && c.Args.Ints[0] == 1 && c.N > 0 {
			s := c.Args.Strides
			a, b := rest(c, 1), rest(c, 2)
			for j := range c.N {
				sum := 0.0
				for p := range c.Args.Ints[2] {
					sum += float64(a[p*s[1][1]]) * float64(b[p*s[2][0]+j*s[2][1]])
				}
				device.Slice[float32](c.Buf[0], c.Off[0], c.N)[j] = float32(sum)
			}
		}
	})},
	{"sums from left to right", "ReduceTree", onCPU(func(c *device.Command, run func(*device.Command)) {
		run(c)
		if c.Kernel.Code == device.Reduce && c.Kernel.Body == kernel.ReduceSum && c.Kernel.Out == device.Float32 && c.Args.Strides[1] == nil && c.N == 1 {
			sum := float32(0)
			for _, v := range rest(c, 1)[:c.Args.Shape.Size()] {
				sum += v
			}
			device.Slice[float32](c.Buf[0], c.Off[0], 1)[0] = sum
		}
	})},
	{"a sum of products is rounded once", "ReduceOf", onCPU(func(c *device.Command, run func(*device.Command)) {
		run(c)
		f, ok := c.Kernel.Body.(kernel.FoldOf)
		if ok && len(c.Kernel.In) == 2 && c.Kernel.Out == device.Float32 && c.N > 0 && f.Expr.String() == kernel.Mul(kernel.Arg(0, device.Float32), kernel.Arg(1, device.Float32)).String() {
			from, to := places(c.Args.Shape, c.Args.Strides[1]), places(c.Args.Shape, c.Args.Strides[2])
			n := len(from) / c.N
			for i := range out[float32](c) {
				sum := 0.0
				for j := range n {
					sum += float64(rest(c, 1)[from[i*n+j]]) * float64(rest(c, 2)[to[i*n+j]])
				}
				out[float32](c)[i] = float32(sum)
			}
		}
	})},
	{"the last of equals is the greatest", "ArgReduce", after(func(c *device.Command) {
		if c.Kernel.Code == device.ArgReduce && c.Kernel.In[0] == device.Float32 && c.Kernel.Body == kernel.ReduceMax && c.Args.Strides[1] == nil {
			x, n := rest(c, 1), c.Args.Shape[c.Args.Kept:].Size()
			for i, best := range out[int64](c) {
				for j := range n {
					if best >= 0 && x[i*n+j] == x[i*n+int(best)] {
						out[int64](c)[i] = int64(j)
					}
				}
			}
		}
	})},
	{"a running sum begins with the first element twice", "Scan", after(func(c *device.Command) {
		if c.Kernel.Code == device.Scan && c.Kernel.Out == device.Float64 && c.N > 0 && c.Args.Ints[0] == 0 {
			out[float64](c)[0] *= 2
		}
	})},
	{"of equal elements the last comes first", "ArgSort", after(func(c *device.Command) {
		if c.Kernel.Code != device.ArgSort || c.Kernel.In[0] != device.Float32 || c.N == 0 {
			return
		}
		a, x := c.Args, rest(c, 1)
		k, n := a.Ints[0], a.Shape[a.Kept:].Size()
		from, to := places(a.Shape, a.Strides[1]), places(append(a.Shape[:a.Kept:a.Kept], k), a.Strides[0])
		for row := range c.N / k {
			for i := 1; i < k; i++ {
				p, q := &out[int64](c)[to[row*k+i-1]], &out[int64](c)[to[row*k+i]]
				if x[from[row*n+int(*p)]] == x[from[row*n+int(*q)]] {
					*p, *q = *q, *p
				}
			}
		}
	})},
	{"means are of one element less", "Rows", onCPU(func(c *device.Command, run func(*device.Command)) {
		run(c)
		if c.Kernel.Code == device.Rows && c.Kernel.Body == kernel.LayerNorm && c.Kernel.Out == device.Float32 && c.N > 0 {
			for i := range out[float32](c) {
				n := float64(c.Args.Shape[c.Args.Kept:].Size())
				out[float32](c)[i] *= float32(math.Sqrt((n - 1) / n))
			}
		}
	})},
	{"what lies between the rows of an output is cleared", "CopyTo", after(func(c *device.Command) {
		if c.Kernel.Code == device.Copy && c.Args != nil && c.Args.Strides[0] != nil && c.N > 0 && c.Kernel.Out == device.Float32 {
			isWritten := map[int]bool{}
			all := places(c.Args.Shape, c.Args.Strides[0])
			for _, at := range all {
				isWritten[at] = true
			}
			for at := range all[len(all)-1] {
				if !isWritten[at] {
					device.Slice[float32](c.Buf[0], c.Off[0]+at, 1)[0] = 0
				}
			}
		}
	})},
	{"parts are put one after the other, whole", "Concat", onCPU(func(c *device.Command, run func(*device.Command)) {
		if c.Kernel.Code == device.Concat {
			args := *c.Args
			args.Shape, args.Parts = device.Shape{1}, slices.Clone(args.Parts)
			for i := range args.Parts {
				args.Parts[i].N *= c.Args.Shape[0]
			}
			c.Args = &args
		}
		run(c)
	})},
	{"all products of a batch have the same right operand", "BatchedMatMul", onCPU(func(c *device.Command, run func(*device.Command)) {
		if c.Kernel.Code == device.MatMul && len(c.Args.Shape) > 0 && c.Args.Strides[2] != nil {
			args := *c.Args
			args.Strides[2] = append(make([]int, len(args.Shape)), args.Strides[2][len(args.Shape):]...)
			c.Args = &args
		}
		run(c)
	})},
	{"what becomes of a product knows one element of the vector alone", "Epilogues", onCPU(func(c *device.Command, run func(*device.Command)) {
		if c.Kernel.Code == device.MatMul && c.Buf[3] != nil {
			args := *c.Args
			args.Strides[3] = []int{0}
			c.Args = &args
		}
		run(c)
	})},
	{"nothing becomes of a product over nothing", "Epilogues", after(func(c *device.Command) {
		if c.Kernel.Code == device.MatMul && c.Kernel.Body != nil && c.Args.Ints[2] == 0 && c.Kernel.Out == device.Float32 {
			clear(out[float32](c))
		}
	})},
	{"what lies around planes is their edge", "Conv", onCPU(func(c *device.Command, run func(*device.Command)) {
		if c.Kernel.Code == device.Conv && c.N > 0 && c.Args.Window[0].Holes == 1 && c.Args.Window[0].Pad > 0 {
			args, w := *c.Args, *c.Args.Window
			w[0].Pad-- // the first row once more
			args.Window = &w
			c.Args = &args
		}
		run(c)
	})},
	{"planes of a group are those of the first", "Conv", onCPU(func(c *device.Command, run func(*device.Command)) {
		if c.Kernel.Code == device.Conv && c.Args.Strides[1] != nil {
			args := *c.Args
			args.Strides[1] = append([]int{}, args.Strides[1]...)
			args.Strides[1][1] = 0
			c.Args = &args
		}
		run(c)
	})},
	{"the last of equals is the greatest of a window", "Pool", after(func(c *device.Command) {
		if c.Kernel.Code == device.ArgPool && c.Kernel.In[0] == device.Float32 && c.Args.Strides[1] == nil && c.N > 0 && c.Args.Window[1].Holes == 1 {
			x, w := rest(c, 1), c.Args.Window
			for i, place := range out[int64](c) {
				next := int(place) + 1
				from := i / (w[0].Out * w[1].Out) * w[0].In * w[1].In
				if place >= 0 && next%w[1].In != 0 && x[from+next] == x[from+int(place)] {
					out[int64](c)[i] = int64(next)
				}
			}
		}
	})},
	{"negative indices count from the start", "Gather", onCPU(func(c *device.Command, run func(*device.Command)) {
		if c.Kernel.Code == device.Gather {
			indices := device.Slice[int64](c.Buf[2], 0, int(c.Buf[2].Bytes/8))
			for i, v := range indices {
				indices[i] = max(v, -v-1)
			}
		}
		run(c)
	})},
	{"numbers of classes count from the end", "IndexErrors", onCPU(func(c *device.Command, run func(*device.Command)) {
		if c.Kernel.Code == device.Gather {
			args := *c.Args
			args.Ints = args.Ints[:2]
			c.Args = &args
		}
		run(c)
	})},
	{"an element of the output is added to once", "ScatterAdd", onCPU(func(c *device.Command, run func(*device.Command)) {
		if c.Kernel.Code == device.ScatterAdd && len(c.Args.Shape) > 0 {
			args := *c.Args
			args.Shape = append(device.Shape{}, args.Shape...)
			args.Shape[0] = min(args.Shape[0], 1)
			c.Args = &args
		}
		run(c)
	})},
	{"indices are clamped", "IndexErrors", onCPU(func(c *device.Command, run func(*device.Command)) {
		if c.Kernel.Code == device.Gather {
			indices := device.Slice[int64](c.Buf[2], 0, int(c.Buf[2].Bytes/8))
			for i, v := range indices {
				indices[i] = max(-int64(c.Args.Ints[0]), min(v, int64(c.Args.Ints[0])-1))
			}
		}
		run(c)
	})},
	{"cube roots are rounded down", "Math", after(func(c *device.Command) {
		if c.Kernel.Code == device.Math && c.Kernel.Body == kernel.MathCbrt {
			for i, v := range out[float64](c) {
				out[float64](c)[i] = math.Nextafter(v, 0)
			}
		}
	})},
	{"max of float32 overlooks NaN", "Primitives", after(func(c *device.Command) {
		if c.Kernel.Code == device.Map && c.Kernel.Name == "max(x, y)" && c.Kernel.Out == device.Float32 {
			x, y := rest(c, 1), rest(c, 2)
			for i := range out[float32](c) {
				if x[i] != x[i] {
					out[float32](c)[i] = y[i]
				}
			}
		}
	})},
	{"denormals are flushed to zero", "Primitives", after(func(c *device.Command) {
		if c.Kernel.Code == device.Map && c.Kernel.Out == device.Float32 {
			for i, v := range out[float32](c) {
				if math.Abs(float64(v)) < 0x1p-126 {
					out[float32](c)[i] = float32(math.Copysign(0, float64(v)))
				}
			}
		}
	})},
	{"a product and a sum are contracted", "Expressions", after(func(c *device.Command) {
		if c.Kernel.Name == "(x * y) + z" {
			x, y, z := rest(c, 1), rest(c, 2), rest(c, 3)
			for i := range out[float32](c) {
				out[float32](c)[i] = float32(float64(x[i])*float64(y[i]) + float64(z[i]))
			}
		}
	})},
	{"conversions to int64 round down", "Cast", after(func(c *device.Command) {
		if c.Kernel.Name == "int64(x)" && c.Kernel.In[0] == device.Float32 {
			for i, v := range rest(c, 1)[:c.N] {
				if v > -1e6 && v < 1e6 {
					out[int64](c)[i] = int64(math.Floor(float64(v)))
				}
			}
		}
	})},
	{"one element too many is written", "FillIota", after(func(c *device.Command) {
		if c.Kernel.Code == device.Fill && c.Kernel.Out == device.Float32 {
			device.Slice[float32](c.Buf[0], c.Off[0], c.N+1)[c.N] = 42
		}
	})},
	{"an input's offset is forgotten", "Views", onCPU(func(c *device.Command, run func(*device.Command)) {
		if c.Kernel.Code == device.Copy && c.Kernel.Out == device.Bool {
			c.Off[1] = 0
		}
		run(c)
	})},
	{"the last axis counts as broadcast", "Views", onCPU(func(c *device.Command, run func(*device.Command)) {
		if c.Kernel.Code == device.Map && c.Args != nil && len(c.Args.Shape) > 1 && c.Args.Strides[2] != nil {
			args := *c.Args
			args.Strides[2] = append([]int{}, args.Strides[2]...)
			args.Strides[2][len(args.Strides[2])-1] = 0
			c.Args = &args
		}
		run(c)
	})},
	{"every draw begins at the start of the stream", "Random", onCPU(func(c *device.Command, run func(*device.Command)) {
		if c.Kernel.Code == device.Random && c.Kernel.Body == kernel.Normal {
			c.Imm[1] = 0
		}
		run(c)
	})},
	{"nothing to do is too little", "Empty", onCPU(func(c *device.Command, run func(*device.Command)) {
		if c.N == 0 && c.Kernel.Code == device.Copy {
			panic("no elements")
		}
		run(c)
	})},
	{"an input is overwritten", "InPlace", onCPU(func(c *device.Command, run func(*device.Command)) {
		if c.Kernel.Code == device.Map && c.Buf[0] == c.Buf[1] && c.N > 0 && c.Kernel.Out == device.Float64 {
			clear(out[float64](c)[c.N/2:])
		}
		run(c)
	})},
	{"what is computed where the second input was is computed twice", "InPlace", onCPU(func(c *device.Command, run func(*device.Command)) {
		run(c)
		if c.Kernel.Code == device.Map && c.Buf[0] == c.Buf[2] && c.Buf[0] != c.Buf[1] && c.Kernel.Out == device.Float32 {
			run(c)
		}
	})},
	{"commands change places", "Order", onSim(func(b *wrapped) {
		b.submit = func(cmds []device.Command) (device.Ticket, error) {
			if n := len(cmds); n > 2 {
				cmds = append([]device.Command{}, cmds...)
				cmds[1], cmds[2] = cmds[2], cmds[1]
			}
			return b.Backend.Submit(cmds)
		}
	})},
	{"a failure spoils what follows", "Failures", onSim(func(b *wrapped) {
		var err error
		b.failure = func(t device.Ticket) error {
			if now := b.Backend.Failure(t); now != nil {
				err = now
			}
			return err
		}
	})},
	{"failures are forgotten", "Failures", onSim(func(b *wrapped) {
		b.failure = func(device.Ticket) error { return nil }
	})},
	{"Wait gives up", "Wait", onSim(func(b *wrapped) {
		b.wait = errors.New("lost patience")
	})},
	{"the device can't be closed", "Close", onSim(func(b *wrapped) {
		b.submit = func(cmds []device.Command) (device.Ticket, error) {
			last, err := b.Backend.Submit(cmds)
			if errors.Is(err, device.ErrClosed) {
				err = nil
			}
			return last, err
		}
	})},
	{"what a closed device has computed is gone", "Close", onSim(func(b *wrapped) {
		b.submit = func(cmds []device.Command) (device.Ticket, error) {
			fill := device.Command{Kernel: device.NewKernel("fill", device.Fill, nil, device.Int64)}
			if _, err := b.Backend.Submit([]device.Command{fill}); err != nil {
				return 0, err
			}
			return b.Backend.Submit(cmds)
		}
	})},
}

// rest is the contents of a float32 input from its offset on.
func rest(c *device.Command, i int) []float32 {
	return device.Slice[float32](c.Buf[i], c.Off[i], int(c.Buf[i].Bytes/4)-c.Off[i])
}

// places are where the elements of a view are, in row-major order.
func places(shape device.Shape, strides []int) []int {
	if strides == nil {
		strides = shape.Strides()
	}
	all := []int{0}
	for axis, n := range shape {
		var more []int
		for _, at := range all {
			for i := range n {
				more = append(more, at+i*strides[axis])
			}
		}
		all = more
	}
	return all
}

func out[T device.Element](c *device.Command) []T { return device.Slice[T](c.Buf[0], c.Off[0], c.N) }

// A wrapped is a backend with some methods replaced.
type wrapped struct {
	device.Backend
	submit  func([]device.Command) (device.Ticket, error)
	failure func(device.Ticket) error
	wait    error
}

func (b *wrapped) Submit(cmds []device.Command) (device.Ticket, error) {
	if b.submit != nil {
		return b.submit(cmds)
	}
	return b.Backend.Submit(cmds)
}

func (b *wrapped) Failure(t device.Ticket) error {
	if b.failure != nil {
		return b.failure(t)
	}
	return b.Backend.Failure(t)
}

func (b *wrapped) Wait(ctx context.Context, t device.Ticket) error {
	if b.wait != nil && !b.Backend.Done(t) {
		return b.wait
	}
	return b.Backend.Wait(ctx, t)
}

func onSim(change func(*wrapped)) func() device.Backend {
	return func() device.Backend {
		b := &wrapped{Backend: sim.New(sim.Options{})}
		change(b)
		return b
	}
}

// onCPU runs every command through f.
func onCPU(f func(c *device.Command, run func(*device.Command))) func() device.Backend {
	return func() device.Backend {
		b := &wrapped{Backend: cpu.New()}
		b.submit = func(cmds []device.Command) (last device.Ticket, err error) {
			for _, c := range cmds {
				f(&c, func(c *device.Command) {
					if last, err = b.Backend.Submit([]device.Command{*c}); err != nil {
						panic(err)
					}
				})
			}
			return last, nil
		}
		return b
	}
}

// after changes the output of commands that have run.
func after(f func(c *device.Command)) func() device.Backend {
	return onCPU(func(c *device.Command, run func(*device.Command)) {
		run(c)
		f(c)
	})
}

const mutantVariable = "DEVICETEST_MUTANT"

// TestMutants runs each mutant in a process of its own and expects it to fail there.
func TestMutants(t *testing.T) {
	if os.Getenv(mutantVariable) != "" {
		t.Skip("this process runs a mutant")
	}
	if testing.Short() {
		t.Skip("a process for each mutant")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestMutant$/^"+m.caught+"$", "-test.timeout=60s")
			cmd.Env = append(os.Environ(), mutantVariable+"="+m.name)
			output, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(output), "--- FAIL: TestMutant/"+m.caught) {
				t.Errorf("%s has not found it: %v\n%s", m.caught, err, output)
			}
		})
	}
}

// TestMutant runs one mutant, in a process of TestMutants.
func TestMutant(t *testing.T) {
	name := os.Getenv(mutantVariable)
	if name == "" {
		t.Skip("run by TestMutants")
	}
	for _, m := range mutants {
		if m.name == name {
			devicetest.TestBackend(t, m.make(), devicetest.Options{Seed: 1})
			return
		}
	}
	t.Fatalf("no mutant %q", name)
}
