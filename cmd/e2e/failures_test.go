package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	failures = flag.Int("failures", 500, "how many failures TestFailures injects, at least")
	seed     = flag.Uint64("seed", 1, "of what tests draw")
)

// TestFailures injects failures into random programs, and knows by number what each has to lead to.
//
// A program is Go source that is written here: statements with one operation each, on a line of its
// own, whose result has a size that no other has. So an allocation or a command of the device tells
// the statement that it is for; on a device that gets its commands in order the number of the
// command does so, too. The program is built, and run as a process that lets the first, the second,
// the third ... call go wrong, in all modes of the engine, and tells what it saw. Then
//
//   - the error is the statement's: operation, shapes, types, file and line of the program;
//   - every result that depends on it fails with the same error, whichever way it is read, and no other does;
//   - WaitAll returns that error, and no more, and next time nothing;
//   - the other results have the bits that they have without a failure;
//   - no goroutine and no memory of the device is left.
func TestFailures(t *testing.T) {
	injected := 0
	for s := *seed; injected < *failures; s++ {
		injected += injectFailures(t, s, *failures-injected)
		if t.Failed() {
			t.Fatalf("reproduce: go test ./cmd/e2e -run TestFailures -failures 1000 -seed %d", s)
		}
	}
	t.Logf("%d failures", injected)
}

// statements is how many a random program has.
const statements = 48

// A statement is one of a random program.
type statement struct {
	Op     string
	Shapes [][]int // result, operands
	File   string
	Line   int
	size   int   // elements of the result
	uses   []int // statements that it depends on directly; negative: inputs
}

// A writer writes the source of a random program.
type writer struct {
	rng     *rand.Rand
	dir     string // of the program
	files   map[string]*bytes.Buffer
	lines   map[string]int
	table   []statement
	helpers int
}

const (
	inputs    = 3
	inputSize = 2048
)

func writeProgram(dir string, seed uint64) *writer {
	w := &writer{rng: rand.New(rand.NewPCG(seed, 0)), dir: dir, files: map[string]*bytes.Buffer{}, lines: map[string]int{}}
	w.print("program.go", "package main\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\n"+
		"const inputs, inputSize, statements = %d, %d, %d\n\nfunc program(in, t []*tensor.Tensor, one *tensor.Tensor) {\n", inputs, inputSize, statements)
	w.print("helpers.go", "package main\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\n"+
		"func apply(f func(*tensor.Tensor) *tensor.Tensor, x *tensor.Tensor) *tensor.Tensor {\n\treturn f(x)\n}\n")
	for i, size := range w.rng.Perm(inputSize/3 - 5)[:statements] {
		w.statement(i, size+5)
	}
	w.print("program.go", "}\n")
	return w
}

// print appends to a file.
func (w *writer) print(file, format string, args ...any) {
	if w.files[file] == nil {
		w.files[file] = new(bytes.Buffer)
		w.lines[file] = 1
	}
	text := fmt.Sprintf(format, args...)
	w.files[file].WriteString(text)
	w.lines[file] += strings.Count(text, "\n")
}

// operand returns an expression of n elements, made of a result or an input without an operation,
// and what it is made of.
func (w *writer) operand(n int) (expr string, from int) {
	for range 4 {
		if i := w.rng.IntN(len(w.table) + inputs); i >= inputs && w.table[i-inputs].size >= n {
			return fmt.Sprintf("t[%d].Slice(0, 0, %d)", i-inputs, n), i - inputs
		}
	}
	i := w.rng.IntN(inputs)
	off := w.rng.IntN(inputSize - n)
	return fmt.Sprintf("in[%d].Slice(0, %d, %d)", i, off, off+n), i - inputs
}

var (
	binaryOps = []string{"Add", "Sub", "Mul", "Maximum"}
	unaryOps  = []string{"Tanh", "Exp", "Sigmoid", "Square", "Abs", "Neg", "ReLU"}
	scalarOps = []string{"AddScalar", "MulScalar"}
)

// pick returns one of list.
func pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

// statement writes statement i, whose result has the given size.
func (w *writer) statement(i, size int) {
	st := statement{size: size}
	x, from := w.operand(size)
	st.uses = []int{from}
	// The call that enqueues the operation is the last one in call; what is after it is a view.
	var call, after string
	switch w.rng.IntN(6) {
	case 0, 1:
		y, other := w.operand(size)
		st.Op, st.uses = pick(w.rng, binaryOps...), append(st.uses, other)
		call, st.Shapes = st.Op+"("+y+")", [][]int{{size}, {size}, {size}}
	case 2:
		st.Op = pick(w.rng, scalarOps...)
		call, st.Shapes = fmt.Sprintf("%s(%v)", st.Op, w.rng.Float64()), [][]int{{size}, {size}}
	case 3:
		x, from = w.operand(2 * size)
		st.Op, st.uses = pick(w.rng, "Sum", "Max"), []int{from}
		x += fmt.Sprintf(".Reshape(%d, 2)", size)
		call, st.Shapes = st.Op+"(1)", [][]int{{size}, {size, 2}}
	case 4:
		st.Op = "MatMul"
		x += fmt.Sprintf(".Reshape(%d, 1)", size)
		call, after, st.Shapes = "MatMul(one)", fmt.Sprintf(".Reshape(%d)", size), [][]int{{size, 1}, {size, 1}, {1, 1}}
	default:
		st.Op = pick(w.rng, unaryOps...)
		call, st.Shapes = st.Op+"()", [][]int{{size}, {size}}
	}
	st.File = "program.go"
	// here says that the line that is written next is the statement's.
	here := func() { st.Line = w.lines[st.File] }
	switch form := w.rng.IntN(8); {
	case form == 0: // over several lines
		w.print(st.File, "\tt[%d] = %s.\n", i, x)
		here()
		w.print(st.File, "\t\t%s%s\n", call, after)
	case form == 1: // in a function of another file
		w.helpers++
		w.print(st.File, "\tt[%d] = helper%d(in, t, one)\n", i, w.helpers)
		st.File = "helpers.go"
		w.print(st.File, "\nfunc helper%d(in, t []*tensor.Tensor, one *tensor.Tensor) *tensor.Tensor {\n", w.helpers)
		here()
		w.print(st.File, "\treturn %s.%s%s\n}\n", x, call, after)
	case form == 2: // in a closure
		w.print(st.File, "\tfunc() {\n")
		here()
		w.print(st.File, "\t\tt[%d] = %s.%s%s\n\t}()\n", i, x, call, after)
	case form == 3: // deferred
		w.print(st.File, "\tfunc() {\n\t\tdefer func() {\n")
		here()
		w.print(st.File, "\t\t\tt[%d] = %s.%s%s\n\t\t}()\n\t}()\n", i, x, call, after)
	case form == 4: // on another goroutine
		w.print(st.File, "\tdone%d := make(chan bool)\n\tgo func() {\n\t\tdefer close(done%d)\n", i, i)
		here()
		w.print(st.File, "\t\tt[%d] = %s.%s%s\n\t}()\n\t<-done%d\n", i, x, call, after, i)
	case form == 5 && strings.HasSuffix(call, "()"): // by a method expression
		w.print(st.File, "\tt[%d] = apply((*tensor.Tensor).%s, %s)%s\n", i, st.Op, x, after)
		st.File, st.Line = "helpers.go", 6
	case form == 6 && strings.HasSuffix(call, "()"): // by a method value
		w.print(st.File, "\tf%d := %s.%s\n", i, x, st.Op)
		here()
		w.print(st.File, "\tt[%d] = f%d()%s\n", i, i, after)
	default:
		here()
		w.print(st.File, "\tt[%d] = %s.%s%s\n", i, x, call, after)
	}
	st.File = filepath.Join(w.dir, st.File)
	w.table = append(w.table, st)
}

// dependents tells which statements depend on statement s, or are it.
func (w *writer) dependents(s int) []bool {
	depends := make([]bool, len(w.table))
	for i := range w.table {
		depends[i] = i == s || slices.ContainsFunc(w.table[i].uses, func(u int) bool { return u >= 0 && depends[u] })
	}
	return depends
}

// A sighting is what the process saw of one injected failure. Errors are numbers: 0 is none, and
// equal ones are one error.
type sighting struct {
	Call    string
	N       int64
	Struck  bool
	Kernel  string // of what was struck
	Size    int64
	Root    statement // of error 1
	DTypes  []string
	Device  string
	Results []int
	Hashes  []uint64
	WaitAll []int
	Again   int
	Left    string // at the end, "" if nothing is
}

// failuresMain is the main function of random programs.
const failuresMain = `package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"log"
	"os"
	"runtime"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/fault"
	"github.com/asyncgen/asyncgen/device/sim"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type statement struct {
	Op     string
	Shapes []device.Shape
	File   string
	Line   int
}

type sighting struct {
	Call    string
	N       int64
	Struck  bool
	Kernel  string
	Size    int64
	Root    statement
	DTypes  []string
	Device  string
	Results []int
	Hashes  []uint64
	WaitAll []int
	Again   int
	Left    string
}

// errorsSeen numbers errors.
type errorsSeen []error

func (e *errorsSeen) number(err error) int {
	if err == nil {
		return 0
	}
	for i, have := range *e {
		if have == err {
			return i + 1
		}
	}
	*e = append(*e, err)
	return len(*e)
}

func main() {
	simulated := flag.Bool("sim", false, "a device with a queue")
	flag.Parse()
	var inner device.Backend = cpu.New()
	if *simulated {
		inner = sim.New(sim.Options{})
	}
	b := fault.New(inner)
	on := tensor.On(device.Wrap("shaky", device.KindSimulated, b)).As(tensor.Float64)
	in := make([]*tensor.Tensor, inputs)
	for i := range in {
		in[i] = on.Uniform(-1, 1, inputSize)
	}
	one := on.Full(0.75, 1, 1)
	if err := asyncrt.WaitAll(); err != nil {
		log.Fatal(err)
	}
	out := json.NewEncoder(os.Stdout)
	out.Encode(run(b, in, one, fault.Faults{Call: fault.Command}))
	goroutines, live := runtime.NumGoroutine(), inUse(b, 0)
	for _, f := range []fault.Faults{{Call: fault.Command}, {Call: fault.Command, Kind: fault.Panic}, {Call: fault.Alloc}, {Call: fault.Submit, Kind: fault.Panic}} {
		if *simulated && f.Call == fault.Submit {
			continue // it is asked again for each command by itself
		}
		for f.N = 1; f.N <= statements; f.N++ {
			s := run(b, in, one, f)
			if f.N == statements {
				if now := inUse(b, live); now > live {
					s.Left = fmt.Sprintf("%d bytes in use, %d before", now, live)
				}
				for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
					runtime.Gosched() // those of the device and of timers end by themselves
				}
				if now := runtime.NumGoroutine(); now > goroutines {
					s.Left += fmt.Sprintf(" %d goroutines, %d before", now, goroutines)
				}
			}
			out.Encode(s)
		}
	}
}

// inUse is how many bytes nobody gives back, but for base; one collection may not find all.
func inUse(b *fault.Backend, base int64) (live int64) {
	for range 50 {
		device.Collect()
		if live = b.Memory().Stats().Live; live <= base {
			break
		}
	}
	return live
}

// run runs the program with the faults and looks at everything.
func run(b *fault.Backend, in []*tensor.Tensor, one *tensor.Tensor, f fault.Faults) sighting {
	t := make([]*tensor.Tensor, statements)
	b.Arm(f)
	program(in, t, one)
	wait := asyncrt.WaitAll()
	struck := b.Fired() > 0
	b.Arm(fault.Faults{})
	s := sighting{Call: f.Call.String(), N: f.N, Struck: struck}
	var seen errorsSeen
	if joined, ok := wait.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			s.WaitAll = append(s.WaitAll, seen.number(err))
		}
	}
	for i, x := range t {
		err, hash := look(x, i)
		s.Results, s.Hashes = append(s.Results, seen.number(err)), append(s.Hashes, hash)
	}
	s.Again = seen.number(asyncrt.WaitAll())
	if len(seen) > 0 {
		op, ok := errors.AsType[*asyncrt.OpError](seen[0])
		cause, injected := errors.AsType[*fault.Error](seen[0])
		if !ok || !injected || !errors.Is(op, fault.ErrInjected) {
			log.Fatalf("a failure is %T: %+v", seen[0], seen[0])
		}
		s.Kernel, s.Size, s.Device = cause.Kernel, cause.Size, op.Device.Name()
		s.Root = statement{op.Op, op.Shapes, op.File, op.Line}
		for _, dt := range op.DTypes {
			s.DTypes = append(s.DTypes, dt.String())
		}
		want := fmt.Sprintf("%s:%d: ", op.File, op.Line)
		if text := seen[0].Error(); !contains(text, want) || !contains(text, op.Op) || !contains(text, fmt.Sprint(op.Shapes[0])) {
			log.Fatalf("the text is %s", text)
		}
	}
	return s
}

func contains(text, part string) bool {
	for i := range text {
		if len(text)-i >= len(part) && text[i:i+len(part)] == part {
			return true
		}
	}
	return false
}

// look reads x in one of several ways.
func look(x *tensor.Tensor, i int) (err error, hash uint64) {
	values := func() {
		h := fnv.New64a()
		fmt.Fprint(h, x.Float64s())
		hash = h.Sum64()
	}
	switch i % 4 {
	case 0:
		err = asyncrt.Try(values)
		return err, hash
	case 1:
		err = x.Wait()
	case 2:
		err = x.AddScalar(1).WaitContext(context.Background())
	case 3:
		_, err = x.Sum().ItemContext(context.Background())
	}
	if err == nil {
		values()
	}
	return err, hash
}
`

// injectFailures tries the program of a seed in one mode after the other, until it was exposed to most failures or
// to all in all modes. It returns to how many.
func injectFailures(t *testing.T, seed uint64, most int) (injected int) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	w := writeProgram(filepath.Join(root, "testdata", "programs", "random"), seed)
	w.print("main.go", "%s", failuresMain)
	files := map[string][]byte{}
	for name, text := range w.files {
		files[filepath.Join(w.dir, name)] = text.Bytes()
	}
	bin := filepath.Join(t.TempDir(), "program"+exeSuffix())
	buildOverlaid(t, files, bin, "./testdata/programs/random")
	for _, engine := range []string{"async", fmt.Sprintf("shuffle:%d", seed), "naive"} {
		for _, device := range []string{"cpu", "sim"} {
			if injected >= most {
				return injected
			}
			cmd := exec.Command(bin, "-sim="+fmt.Sprint(device == "sim"))
			cmd.Env = append(os.Environ(), "ASYNCGEN_ENGINE="+engine)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("seed %d, %s, %s: %v\n%s", seed, device, engine, err, stderr.Bytes())
			}
			name := fmt.Sprintf("seed %d, %s, %s", seed, device, engine)
			injected += w.judge(t, name, device == "sim" || engine == "naive", out)
		}
	}
	return injected
}

// judge compares what a process saw with what must be so, and returns how many failures that were.
func (w *writer) judge(t *testing.T, name string, inOrder bool, out []byte) (injected int) {
	var clean *sighting
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var s sighting
		if err := d.Decode(&s); errors.Is(err, io.EOF) {
			return injected
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if clean == nil {
			clean = &s
			if s.Struck || slices.Max(s.Results) != 0 || len(s.WaitAll) != 0 {
				t.Fatalf("%s: without a failure: %+v", name, s)
			}
			continue
		}
		injected++
		if problem := w.problem(&s, clean, inOrder); problem != "" {
			t.Errorf("%s: %s %d: %s", name, s.Call, s.N, problem)
		}
	}
}

// problem says what is wrong with s, or "".
func (w *writer) problem(s, clean *sighting, inOrder bool) string {
	if !s.Struck {
		return "nothing was struck"
	}
	// Which statement it is, from what the device was asked to do.
	at := slices.IndexFunc(w.table, func(st statement) bool {
		if s.Call == "Alloc" {
			return int64(st.size)*8 == s.Size
		}
		return int64(st.size) == s.Size && st.Op == s.Kernel
	})
	switch {
	case at < 0:
		return fmt.Sprintf("no statement has %s of %d", s.Kernel, s.Size)
	case inOrder && at != int(s.N)-1:
		return fmt.Sprintf("it struck statement %d, want %d", at, s.N-1)
	}
	want := w.table[at]
	types := slices.Repeat([]string{"float64"}, len(want.Shapes))
	if s.Root.Op != want.Op || fmt.Sprint(s.Root.Shapes) != fmt.Sprint(want.Shapes) || !slices.Equal(s.DTypes, types) || s.Device != "shaky" {
		return fmt.Sprintf("the error is of %s %v %v on %s, want %s %v %v", s.Root.Op, s.DTypes, s.Root.Shapes, s.Device, want.Op, types, want.Shapes)
	}
	if s.Root.File != want.File || s.Root.Line != want.Line {
		return fmt.Sprintf("the error names %s:%d, want %s:%d", s.Root.File, s.Root.Line, want.File, want.Line)
	}
	for i, depends := range w.dependents(at) {
		switch {
		case depends && s.Results[i] != 1:
			return fmt.Sprintf("result %d depends on the failure of %d and has error %d", i, at, s.Results[i])
		case !depends && s.Results[i] != 0:
			return fmt.Sprintf("result %d does not depend on the failure of %d and has error %d", i, at, s.Results[i])
		case !depends && s.Hashes[i] != clean.Hashes[i]:
			return fmt.Sprintf("result %d does not depend on the failure of %d and has another value", i, at)
		}
	}
	if !slices.Equal(s.WaitAll, []int{1}) || s.Again != 0 {
		return fmt.Sprintf("WaitAll returns errors %v, and then %d", s.WaitAll, s.Again)
	}
	return s.Left
}
