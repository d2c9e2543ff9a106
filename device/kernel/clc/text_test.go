package clc_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/kernel/clc"
)

var plenty = clc.Limits{FP64: true, GroupSize: 1024, LocalBytes: 48 << 10}

var plain = &device.Buffer{Bytes: 1 << 40}

// command returns a command of k whose operands are all in one buffer.
func command(k *device.Kernel, n int, args *device.Args) device.Command {
	b := plain
	c := device.Command{Kernel: k, N: n, Args: args}
	for i := range len(k.In) + 1 {
		c.Buf[i] = b
	}
	return c
}

var numbers = []device.DType{device.Float32, device.Float64, device.Int64}

// everyCommand lists commands for every text: all codes, types, primitives, reducers, functions and
// distributions, in all forms.
func everyCommand() (all []device.Command) {
	add := func(k *device.Kernel, n int, args *device.Args) { all = append(all, command(k, n, args)) }
	for _, e := range everyPrimitive() {
		in := make([]device.DType, e.Args())
		for _, x := range e.Nodes() {
			if x.Kind() == kernel.Operand {
				in[x.Index()] = x.DType()
			}
		}
		add(device.NewKernel(e.String(), device.Map, e, e.DType(), in...), 100, nil)
	}
	x, y, z := kernel.Arg(0, device.Int64), kernel.Arg(1, device.Float32), kernel.Arg(2, device.Bool)
	e := kernel.Where(z, kernel.Cast(kernel.Div(x, kernel.Imm(1, device.Int64)), device.Float32), y)
	mixed := device.NewKernel(e.String(), device.Map, e, device.Float32, device.Int64, device.Float32, device.Bool)
	many := device.Shape{2, 2, 2, 2, 2, 2}
	odd := []int{64, 2, 16, 1, 8, 4}
	for _, args := range []*device.Args{
		nil,
		{Shape: device.Shape{10, 10}, Strides: [4][]int{1: {0, 1}, 2: {1, 0}}},
		{Shape: many, Strides: [4][]int{3: odd}},
	} {
		add(mixed, 64, args)
		add(mixed, 1<<31, args)
	}
	// Simple expressions of many elements, and one that is not simple.
	for _, dt := range device.DTypes() {
		wide := func(x *kernel.Expr) *kernel.Expr { return kernel.Cast(x, dt.Wide()) }
		x := wide(kernel.Arg(1, dt))
		chosen := kernel.Where(kernel.Arg(0, device.Bool), x, wide(kernel.Imm(0, dt)))
		add(device.NewKernel("chosen", device.Map, kernel.Cast(chosen, dt), dt, device.Bool, dt), 1<<20+1, nil)
		add(device.NewKernel("equal", device.Map, kernel.Eq(x, wide(kernel.Cast(kernel.Arg(0, device.Int64), dt))), device.Bool, device.Int64, dt), 1<<32, nil)
	}
	add(device.NewKernel("exp", device.Map, kernel.Exp(kernel.Arg(0, device.Float32)), device.Float32, device.Float32), 1<<20, nil)
	// Folds of many blocks and of few elements; of rows, columns and other views.
	folds := []*device.Args{
		{Shape: device.Shape{3, 10000}, Kept: 1, Ints: []int{0, 0}},
		{Shape: device.Shape{300, 20}, Kept: 1, Ints: []int{1, 1}, Strides: [4][]int{1: {1, 300}}},
		{Shape: many, Kept: 3, Ints: []int{0, 1}, Strides: [4][]int{1: odd}},
		{Shape: append(many, many...), Kept: 6, Ints: []int{0, 1}, Strides: [4][]int{1: append(odd, odd...)}},
	}
	for _, dt := range device.DTypes() {
		for _, args := range folds {
			kept := args.Shape[:args.Kept].Size()
			if dt == device.Int64 {
				product := kernel.FoldOf{By: kernel.ReduceSum, Expr: kernel.Div(kernel.Mul(x, kernel.Cast(y, dt)), kernel.Const(3, dt))}
				add(device.NewKernel("sum of products", device.Reduce, product, dt, dt, device.Float32), kept, args)
			}
			for _, r := range kernel.Reducers() {
				if r.Prim().Func(dt) == nil {
					continue
				}
				add(device.NewKernel(r.String(), device.Reduce, r, dt, dt), kept, args)
				add(device.NewKernel(r.String(), device.Scan, r, dt, dt), args.Shape.Size(), args)
				if dt != device.Bool && (r == kernel.ReduceMax || r == kernel.ReduceMin) {
					add(device.NewKernel("arg"+r.String(), device.ArgReduce, r, device.Int64, dt), kept, args)
				}
			}
			if dt.IsFloat() && !dt.IsStorage() {
				for _, f := range kernel.RowFuncs() {
					in := []device.DType{dt, dt, dt}
					add(device.NewKernel(f.String(), device.Rows, f, dt, in[:1]...), args.Shape.Size(), args)
					if f.Norms() {
						add(device.NewKernel(f.String(), device.Rows, f, dt, in...), args.Shape.Size(), args)
					}
				}
			}
			if !isNumber(dt) {
				continue
			}
			sorts := *args
			sorts.Ints = []int{2, args.Ints[1]}
			if args.Strides[1] != nil {
				sorts.Strides[0] = append(slices.Clone(args.Strides[1][:args.Kept]), 1)
			}
			add(device.NewKernel("argsort", device.ArgSort, nil, device.Int64, dt), kept*2, &sorts)
		}
		add(device.NewKernel("copy", device.Copy, nil, dt, dt), 100, nil)
		add(device.NewKernel("copy", device.Copy, nil, dt, dt), 64, &device.Args{Shape: many, Strides: [4][]int{odd, odd}})
		add(device.NewKernel("copy", device.Copy, nil, dt, dt), 30000, &device.Args{Shape: device.Shape{3, 100, 100}, Strides: [4][]int{1: {10000, 1, 100}}})
		add(device.NewKernel("concat", device.Concat, nil, dt), 30, &device.Args{Shape: device.Shape{3}, Parts: []device.Part{{Buf: plain, N: 4}, {Buf: plain, N: 0}, {Buf: plain, N: 6}}})
		add(device.NewKernel("fill", device.Fill, nil, dt), 100, nil)
		for _, n := range []int{2, 3000} {
			args := &device.Args{Shape: device.Shape{n, 5}, Ints: []int{7, 5}, Strides: [4][]int{{0, 1}, {0, 1}, {1, 0}}}
			add(device.NewKernel("gather", device.Gather, nil, dt, dt, device.Int64), n*5, args)
			if isNumber(dt) {
				add(device.NewKernel("scatteradd", device.ScatterAdd, nil, dt, dt, device.Int64), 35, args)
			}
		}
	}
	w := device.Window{In: 8, Out: 8, Size: 3, Stride: 1, Pad: 1, Step: 1, Holes: 1}
	for _, dt := range numbers {
		add(device.NewKernel("iota", device.Iota, nil, dt), 100, nil)
		for _, n := range []int{10, 100, 1024} {
			args := &device.Args{Ints: []int{n, n, 50}}
			add(device.NewKernel("matmul", device.MatMul, nil, dt, dt, dt), n*n, args)
			sum, vector := kernel.Arg(0, dt), kernel.Arg(1, dt)
			biased := kernel.Max(kernel.Add(kernel.Div(sum, kernel.Imm(1, dt)), vector), kernel.Const(0, dt))
			add(device.NewKernel("biased", device.MatMul, biased, dt, dt, dt, dt), n*n, args)
			add(device.NewKernel("less", device.MatMul, kernel.Lt(sum, sum), device.Bool, dt, dt), n*n, args)
		}
		for _, o := range []int{1, 10, 100} {
			add(device.NewKernel("conv", device.Conv, nil, dt, dt, dt), 64*o, &device.Args{Shape: device.Shape{1, 1, o}, Ints: []int{1}, Window: &[2]device.Window{w, w}})
		}
		planes := &device.Args{Shape: device.Shape{2}, Window: &[2]device.Window{w, w}}
		add(device.NewKernel("pool", device.Pool, kernel.ReduceMax, dt, dt), 128, planes)
		add(device.NewKernel("pool", device.Pool, kernel.ReduceSum, dt, dt), 128, planes)
		add(device.NewKernel("argpool", device.ArgPool, kernel.ReduceMax, device.Int64, dt), 128, planes)
	}
	for _, dt := range []device.DType{device.Float32, device.Float64} {
		add(device.NewKernel("uniform", device.Random, kernel.Uniform, dt), 100, nil)
		add(device.NewKernel("normal", device.Random, kernel.Normal, dt), 100, nil)
	}
	add(device.NewKernel("ints", device.Random, kernel.Ints, device.Int64), 100, &device.Args{Ints: []int{-3, 5}})
	return all
}

// isNumber reports whether commands compute with numbers of type dt.
func isNumber(dt device.DType) bool { return slices.Contains(numbers, dt) }

// everyPrimitive lists an expression for each primitive and type.
func everyPrimitive() (all []*kernel.Expr) {
	for _, p := range kernel.Prims() {
		for _, dt := range device.DTypes() {
			if p == kernel.PrimCast {
				for _, to := range device.DTypes() {
					all = append(all, kernel.Cast(kernel.Arg(0, dt), to))
				}
				continue
			}
			if p.Func(dt) == nil {
				continue
			}
			args := []*kernel.Expr{kernel.Arg(0, dt), kernel.Arg(1, dt), kernel.Arg(2, dt)}[:p.Arity()]
			if p == kernel.PrimWhere {
				args[0] = kernel.Arg(0, device.Bool)
			}
			all = append(all, kernel.Apply(p, args...))
		}
	}
	return all
}

// least are the least limits that Lower accepts.
var least = clc.Limits{GroupSize: 256, LocalBytes: 32 << 10}

// lowerAll lowers every command, for a device with generous limits and for one with the least,
// which must accept every command that does not compute with float64.
func lowerAll(t *testing.T) {
	t.Helper()
	l := clc.Lowering{Limits: least}
	for _, c := range everyCommand() {
		before := len(l.Launches)
		err := l.Lower(&c, &clc.Place{})
		if err != nil && (!errors.Is(err, device.ErrUnsupported) || !strings.Contains(err.Error(), "float64") || !hasFloat64(c.Kernel)) {
			t.Errorf("%v %s of %v without float64: %v", c.Kernel.Code, c.Kernel.Name, c.Kernel.In, err)
		}
		for _, launch := range l.Launches[before:] {
			if _, own, _ := strings.Cut(launch.Source.Text, headEnd); strings.Contains(own, "double") {
				t.Errorf("%v %s of %v: float64 in the text for a device that has none", c.Kernel.Code, c.Kernel.Name, c.Kernel.In)
			}
		}
	}
	l = clc.Lowering{Limits: plenty}
	for _, c := range everyCommand() {
		before := len(l.Launches)
		if err := l.Lower(&c, &clc.Place{}); err != nil {
			t.Fatalf("%v %s of %v: %v", c.Kernel.Code, c.Kernel.Name, c.Kernel.In, err)
		}
		if len(l.Launches) == before {
			t.Errorf("%v %s: no launch", c.Kernel.Code, c.Kernel.Name)
		}
		checkLaunches(t, &l, fmt.Sprintf("%v %s", c.Kernel.Code, c.Kernel.Name), before)
	}
	before := len(l.Launches)
	l.Pack([]clc.Piece{{From: 5, To: 64, Bytes: 3}})
	checkLaunches(t, &l, "pack", before)
}

// checkLaunches checks the launches of one command: those from index first on.
func checkLaunches(t *testing.T, l *clc.Lowering, what string, first int) {
	t.Helper()
	for _, launch := range l.Launches[first:] {
		if launch.Groups < 1 || launch.Local < 1 || launch.Local > plenty.GroupSize {
			t.Errorf("%s: %d groups of %d", what, launch.Groups, launch.Local)
		}
		if size := 8 * (len(launch.Params) + len(launch.Args)); size > 1024 {
			t.Errorf("%s: %d bytes of arguments, more than what every device takes", what, size)
		}
		if want := fmt.Sprintf("ulong w[%d];", max(len(launch.Params), 1)); !strings.Contains(launch.Source.Text, want) {
			t.Errorf("%s: %d parameters, but the text has other ones", what, len(launch.Params))
		}
		for _, arg := range launch.Args {
			if arg.Kind == clc.Scratch && arg.Index >= len(l.Scratch) || arg.Kind == clc.Fault && !l.CanFail {
				t.Errorf("%s: no memory for operand %v", what, arg)
			}
		}
	}
}

// hasFloat64 reports whether k uses float64.
func hasFloat64(k *device.Kernel) bool {
	return k.Out == device.Float64 || slices.Contains(k.In, device.Float64) || k.Body != nil && strings.Contains(k.Body.Key(), "float64")
}

// Every kernel and library function is used, and clang accepts all texts as OpenCL C and for PTX.
func TestTextsCompile(t *testing.T) {
	lowerAll(t)
	var all strings.Builder
	for _, s := range clc.Sources() {
		all.WriteString(s.Text)
	}
	for _, name := range append(clc.Paragraphs(), clc.Kernels()...) {
		if !strings.Contains(all.String(), strings.TrimPrefix(name, "ag_")+"(") && !strings.Contains(all.String(), name) {
			t.Errorf("nothing uses %s", name)
		}
	}
	clang := lookClang(t)
	file := filepath.Join(t.TempDir(), "all.cl")
	if err := os.WriteFile(file, []byte(together(clc.Sources())), 0o644); err != nil {
		t.Fatal(err)
	}
	common := []string{"-x", "cl", "-cl-std=CL1.2", "-fsyntax-only", "-Werror", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-unused-function", "-Wno-sign-compare", "-Wno-unused-variable"}
	for name, args := range map[string][]string{
		"PTX":    {"--target=nvptx64-nvidia-cuda", "-Wno-unknown-cuda-version"},
		"OpenCL": {"--target=spir64-unknown-unknown", "-Xclang", "-fdeclare-opencl-builtins", "-Xclang", "-finclude-default-header"},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.Command(clang, append(append(slices.Clone(common), args...), file)...)
			if out, err := command.CombinedOutput(); err != nil {
				t.Errorf("%v: %v\n%.4000s", command, err, out)
			}
		})
	}
}

// headEnd is the beginning of the last line that all texts have in common.
const headEnd = "#define AG_GLOBAL_SIZE"

// together returns all sources as one text. Names get the number of their source as a suffix. So
// clang runs once: starting it takes longer than compiling most texts.
func together(sources []*clc.Source) string {
	head, _, _ := strings.Cut(sources[0].Text, headEnd)
	names, macros := regexp.MustCompile(`\b(ag_\w+|I)\b`), regexp.MustCompile(`(?m)^#define (\w+)`)
	var b strings.Builder
	b.WriteString(head)
	for _, s := range sources {
		_, body, _ := strings.Cut(s.Text, headEnd)
		body = headEnd + names.ReplaceAllString(body, fmt.Sprintf("${1}_%d", s.ID))
		b.WriteString(body)
		for _, m := range macros.FindAllStringSubmatch(body, -1) {
			b.WriteString("#undef " + m[1] + "\n")
		}
	}
	return b.String()
}

// lookClang finds clang, with or without a version in its name, or skips the test.
func lookClang(t *testing.T) string {
	t.Helper()
	names := []string{"clang"}
	for version := 25; version >= 14; version-- {
		names = append(names, fmt.Sprintf("clang-%d", version))
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no clang: nothing has compiled the texts")
	return ""
}

// Kernels that compute the same share a source.
func TestSourcesAreShared(t *testing.T) {
	l := clc.Lowering{Limits: plenty}
	x := kernel.Arg(0, device.Float32)
	for range 2 {
		c := command(device.NewKernel("twice", device.Map, kernel.Add(x, x), device.Float32, device.Float32), 10, nil)
		if err := l.Lower(&c, &clc.Place{}); err != nil {
			t.Fatal(err)
		}
	}
	if l.Launches[0].Source != l.Launches[1].Source {
		t.Error("kernels that compute the same have two sources")
	}
	seen := map[string]bool{}
	for i, s := range clc.Sources() {
		if s == nil || s.ID != i || seen[s.Text] {
			t.Errorf("source %d: %v", i, s)
		}
		seen[s.Text] = true
	}
}

// nonsense is an unknown Body.
type nonsense struct{}

func (nonsense) Key() string { return "nonsense" }

func TestUnsupported(t *testing.T) {
	f32, f64, i64, b := device.Float32, device.Float64, device.Int64, device.Bool
	x32, x64 := kernel.Arg(0, f32), kernel.Arg(0, f64)
	few := plenty
	few.FP64 = false
	small := plenty
	small.GroupSize = 128
	rows := &device.Args{Shape: device.Shape{4, 4}, Kept: 1, Ints: []int{0, 0}}
	for _, test := range []struct {
		name   string
		limits clc.Limits
		kernel *device.Kernel
		args   *device.Args
	}{
		{"unknown body", plenty, device.NewKernel("", device.Map, nonsense{}, f32, f32), nil},
		{"other types", plenty, device.NewKernel("", device.Map, x32, f32, f64), nil},
		{"math", plenty, device.NewKernel("", device.Math, kernel.MathExp, f64, f64), nil},
		{"upload", plenty, device.NewKernel("", device.Upload, nil, f32, f32), nil},
		{"code", plenty, device.NewKernel("", device.Code(200), nil, f32, f32), nil},
		{"float64", few, device.NewKernel("", device.Map, kernel.Neg(x64), f64, f64), nil},
		{"small groups", small, device.NewKernel("", device.Map, kernel.Neg(x32), f32, f32), nil},
		{"sum of bools", plenty, device.NewKernel("", device.Reduce, kernel.ReduceSum, b, b), rows},
		{"place of sum", plenty, device.NewKernel("", device.ArgReduce, kernel.ReduceSum, i64, f32), rows},
		{"sum of halves", plenty, device.NewKernel("", device.Reduce, kernel.ReduceSum, device.Float16, device.Float16), rows},
		{"place of the most of bytes", plenty, device.NewKernel("", device.ArgReduce, kernel.ReduceMax, i64, device.Uint8), rows},
		{"softmax of halves", plenty, device.NewKernel("", device.Rows, kernel.Softmax, device.BFloat16, device.BFloat16), rows},
		{"product of halves", plenty, device.NewKernel("", device.MatMul, nil, device.BFloat16, device.BFloat16, device.BFloat16), &device.Args{Ints: []int{2, 2, 2}}},
		{"normal halves", plenty, device.NewKernel("", device.Random, kernel.Normal, device.Float16), nil},
		{"ramp of int32", plenty, device.NewKernel("", device.Iota, nil, device.Int32), nil},
		{"sorted int32", plenty, device.NewKernel("", device.ArgSort, nil, i64, device.Int32), rows},
		{"sorted bools", plenty, device.NewKernel("", device.ArgSort, nil, i64, b), rows},
		{"softmax of ints", plenty, device.NewKernel("", device.Rows, kernel.Softmax, i64, i64), rows},
		{"normal ints", plenty, device.NewKernel("", device.Random, kernel.Normal, i64), nil},
	} {
		l := clc.Lowering{Limits: test.limits}
		c := command(test.kernel, 4, test.args)
		if err := l.Lower(&c, &clc.Place{}); !errors.Is(err, device.ErrUnsupported) || len(l.Launches) > 0 {
			t.Errorf("%s: error %v, %d launches", test.name, err, len(l.Launches))
		}
	}
	l := clc.Lowering{Limits: few}
	c := command(device.NewKernel("", device.Map, kernel.Exp(x32), f32, f32), 4, nil)
	if err := l.Lower(&c, &clc.Place{}); err != nil {
		t.Errorf("exp of float32 without float64: %v", err)
	}
}

// Offsets are parameters, not text, and lowering an element-wise command does not allocate.
func TestPlaces(t *testing.T) {
	x := kernel.Arg(0, device.Float32)
	c := command(device.NewKernel("negative", device.Map, kernel.Neg(x), device.Float32, device.Float32), 1000, nil)
	c.Off = [4]int{5, 7}
	l := &clc.Lowering{Limits: plenty}
	place := &clc.Place{Base: [4]int64{64, 128}}
	if err := l.Lower(&c, place); err != nil {
		t.Fatal(err)
	}
	if got, want := l.Launches[0].Params, []uint64{1000, 0, 0, 64/4 + 5, 128/4 + 7}; !slices.Equal(got, want) {
		t.Errorf("parameters %v, want %v", got, want)
	}
	if n := testing.AllocsPerRun(100, func() {
		l.Reset()
		if err := l.Lower(&c, place); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("an element-wise command costs %v allocations", n)
	}
}

// Simple expressions of many aligned elements are computed by vectors.
func TestVectors(t *testing.T) {
	x, y := kernel.Arg(0, device.Float32), kernel.Arg(1, device.Int64)
	simple := device.NewKernel("simple", device.Map, kernel.Add(x, kernel.Cast(y, device.Float32)), device.Float32, device.Float32, device.Int64)
	slow := device.NewKernel("slow", device.Map, kernel.Add(kernel.Exp(x), kernel.Cast(y, device.Float32)), device.Float32, device.Float32, device.Int64)
	fails := device.NewKernel("fails", device.Map, kernel.Div(y, y), device.Int64, device.Float32, device.Int64)
	shape := &device.Args{Shape: device.Shape{1 << 10, 1 << 10}, Strides: [4][]int{1: {1, 1 << 10}}}
	for _, test := range []struct {
		kernel *device.Kernel
		n      int
		off    [4]int
		base   [4]int64
		args   *device.Args
		want   bool
	}{
		{simple, 1 << 20, [4]int{}, [4]int64{}, nil, true},
		{simple, 1<<20 + 3, [4]int{4, 8, 12}, [4]int64{16, 32, 64}, nil, true},
		{simple, 1 << 20, [4]int{1, 2, 0}, [4]int64{12, 8, 0}, nil, true},
		{simple, 1 << 20, [4]int{1}, [4]int64{}, nil, false},
		{simple, 1 << 20, [4]int{0, 0, 2}, [4]int64{}, nil, false},
		{simple, 1 << 20, [4]int{}, [4]int64{0, 8}, nil, false},
		{simple, 1 << 20, [4]int{}, [4]int64{0, 0, 16}, nil, false},
		{simple, 1 << 15, [4]int{}, [4]int64{}, nil, false},
		{simple, 1 << 20, [4]int{}, [4]int64{}, shape, false},
		{slow, 1 << 20, [4]int{}, [4]int64{}, nil, false},
		{fails, 1 << 20, [4]int{}, [4]int64{}, nil, false},
	} {
		l := clc.Lowering{Limits: plenty}
		c := command(test.kernel, test.n, test.args)
		c.Off = test.off
		if err := l.Lower(&c, &clc.Place{Base: test.base}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(l.Launches[0].Source.Text, "((AG_GLOBAL float4 *)"); got != test.want {
			t.Errorf("%s of %d elements at %v and %v: vectors: %v, want %v", test.kernel.Name, test.n, test.off, test.base, got, test.want)
		}
		per := 1
		if test.want {
			per = 4
		}
		if got, want := l.Launches[0].Groups, (test.n/per+255)/256; got < want || got > want+1 {
			t.Errorf("%s of %d elements: %d groups, want %d", test.kernel.Name, test.n, got, want)
		}
	}
}

func TestFailure(t *testing.T) {
	var index *device.IndexError
	if err := clc.Failure([]int64{0, 5, 6, 7}); err != nil {
		t.Errorf("a command that did not fail: %v", err)
	}
	if err := clc.Failure([]int64{1, 5, -6, 3}); !errors.As(err, &index) || index.Index != -6 || index.Length != 3 {
		t.Errorf("a wrong index: %v", err)
	}
	var goes runtime.Error
	if err := clc.Failure([]int64{2, 0, 0, 0}); !errors.As(err, &goes) || err.Error() != "kernel panicked: runtime error: integer divide by zero" {
		t.Errorf("a division by zero: %v", err)
	}
}

// Lowering fails if an operand reaches outside of its buffer. The tests of backends see that it
// succeeds otherwise.
func TestOutside(t *testing.T) {
	l := clc.Lowering{Limits: plenty}
	for _, c := range everyCommand() {
		for i := range len(c.Kernel.In) + 1 {
			for _, wrong := range []func(*device.Command){
				func(c *device.Command) { c.Buf[i] = new(device.Buffer) },
				func(c *device.Command) { c.Off[i] = -1 },
				func(c *device.Command) { c.Off[i] = 1 << 50 },
			} {
				c := c
				wrong(&c)
				if err := l.Lower(&c, &clc.Place{}); err == nil || len(l.Launches) > 0 {
					t.Fatalf("%v %s of %v: operand %d reaches outside, error %v", c.Kernel.Code, c.Kernel.Name, c.Kernel.In, i, err)
				}
			}
		}
	}
}

// Large tiles are for float32 products that have enough of them and waste little.
func TestTiles(t *testing.T) {
	for _, test := range []struct {
		dt                 device.DType
		batch, m, n, units int
		kernel             string
		tile               int
	}{
		{device.Float32, 1, 1024, 1024, 64, "ag_matmulfloat", 128},
		{device.Float32, 1, 1024, 1024, 65, "ag_matmulfloat", 64},
		{device.Float32, 2, 1024, 1024, 65, "ag_matmulfloat", 128},
		{device.Float32, 1, 128, 128, 1, "ag_matmulfloat", 128},
		{device.Float32, 1, 128, 64, 1, "ag_matmulfloat", 64},
		{device.Float32, 1, 129, 1024, 1, "ag_matmulfloat", 64},
		{device.Float32, 1, 1000, 1000, 0, "ag_matmulfloat", 128},
		{device.Float32, 1, 1000, 16, 1, "ag_matmul", 16},
		{device.Float64, 1, 1024, 1024, 1, "ag_matmul", 64},
		{device.Int64, 1, 1024, 1024, 1, "ag_matmul", 64},
	} {
		l := clc.Lowering{Limits: plenty}
		l.Limits.Units = test.units
		c := command(device.NewKernel("matmul", device.MatMul, nil, test.dt, test.dt, test.dt), test.batch*test.m*test.n,
			&device.Args{Shape: device.Shape{test.batch}, Ints: []int{test.m, test.n, 10}})
		if err := l.Lower(&c, &clc.Place{}); err != nil {
			t.Fatal(err)
		}
		s := l.Launches[0].Source
		if s.Name != test.kernel || !strings.Contains(s.Text, fmt.Sprintf("#define TILE %d\n", test.tile)) {
			t.Errorf("%d products of %dx%d of %v on %d units: %s, want %s with tiles of %d", test.batch, test.m, test.n, test.dt, test.units, s.Name, test.kernel, test.tile)
		}
	}
	for _, test := range []struct{ groups, out, places, units, tile int }{
		{1, 256, 1568, 100, 64},
		{1, 256, 1568, 101, 32},
		{1, 32, 9, 132, 16},
		{1, 64, 288, 18, 32},
		{1, 64, 288, 19, 16},
		{9, 64, 288, 132, 32},
		{1, 33, 33, 1, 64},
		{1, 32, 33, 1, 32},
		{1, 17, 17, 1, 32},
		{1, 16, 1000, 1, 16},
	} {
		l := clc.Lowering{Limits: plenty}
		l.Limits.Units = test.units
		windows := [2]device.Window{{In: test.places, Out: test.places, Size: 1, Stride: 1, Step: 1, Holes: 1}, {In: 1, Out: 1, Size: 1, Stride: 1, Step: 1, Holes: 1}}
		c := command(device.NewKernel("conv", device.Conv, nil, device.Float32, device.Float32, device.Float32), test.groups*test.out*test.places,
			&device.Args{Shape: device.Shape{1, test.groups, test.out}, Ints: []int{1}, Window: &windows})
		if err := l.Lower(&c, &clc.Place{}); err != nil {
			t.Fatal(err)
		}
		s := l.Launches[0].Source
		if s.Name != "ag_convtiles" || !strings.Contains(s.Text, fmt.Sprintf("#define TILE %d\n", test.tile)) {
			t.Errorf("%+v: %s, and the tiles are others:\n%s", test, s.Name, s.Text[len(s.Text)-3000:])
		}
	}
}

// TestArgumentsFit: the arguments of kernels with as many operands, immediates and axes as there can be fit into the
// 1024 bytes that every device has room for.
func TestArgumentsFit(t *testing.T) {
	e := kernel.Arg(0, device.Int64)
	for i := 1; i < device.MaxInputs; i++ {
		e = kernel.Div(e, kernel.Arg(i, device.Int64)) // which may fail, so that there is an argument for that
	}
	for i := range device.MaxImms {
		e = kernel.Add(e, kernel.Imm(i, device.Int64))
	}
	types := slices.Repeat([]device.DType{device.Int64}, device.MaxInputs)
	// command has axes that can't be merged.
	command := func(k *device.Kernel, kept, folded int) *device.Command {
		rank := kept + folded
		c := &device.Command{Kernel: k, N: 1 << kept, Args: &device.Args{Kept: kept, Imm: make([]uint64, device.MaxImms)}}
		strides := make([]int, rank)
		for axis := range rank {
			c.Args.Shape = append(c.Args.Shape, 2)
			strides[axis] = axis * axis
		}
		for i := range len(k.In) + 1 {
			if buf := device.HostBuffer(1 << 20); i < device.MaxOperands {
				c.Buf[i], c.Args.Strides[i] = buf, strides
			} else {
				c.Args.Parts = append(c.Args.Parts, device.Part{Buf: buf, Strides: strides})
			}
		}
		return c
	}
	few := kernel.Add(kernel.Arg(0, device.Int64), kernel.Imm(device.MaxImms-1, device.Int64))
	for i := 1; i < device.MaxOperands-1; i++ {
		few = kernel.Div(few, kernel.Arg(i, device.Int64))
	}
	fold := func(e *kernel.Expr, in int) *device.Kernel {
		return device.NewKernel("fold", device.Reduce, kernel.FoldOf{By: kernel.ReduceSum, Expr: e}, device.Int64, types[:in]...)
	}
	for name, c := range map[string]*device.Command{
		"map":            command(device.NewKernel("map", device.Map, e, device.Int64, types...), 12, 0),
		"fold":           command(fold(e, device.MaxInputs), 0, device.MaxWideAxes),
		"fold with rows": command(fold(e, device.MaxInputs), 2, device.MaxWideAxes-2),
		"narrow fold":    command(fold(few, device.MaxOperands-1), 12, 12),
	} {
		l := clc.Lowering{Limits: clc.Limits{FP64: true, GroupSize: 256, LocalBytes: 32 << 10, Units: 1}}
		if err := l.Lower(c, &clc.Place{}); err != nil {
			t.Fatal(err)
		}
		for _, launch := range l.Launches {
			if bytes := 8 * (len(launch.Args) + len(launch.Params)); bytes > 1024 {
				t.Errorf("the arguments of a %s have %d bytes", name, bytes)
			}
		}
	}
}
