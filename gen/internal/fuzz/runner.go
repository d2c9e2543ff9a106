package fuzz

// runner is put beside the kernels when they have been rewritten: it runs them
// and writes down what happens, as machine.run does.
const runner = `package p

import (
	"bufio"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	failures "github.com/asyncgen/asyncgen/device/report"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Window is that of all rewritten kernels.
var Window = 64

// An Input is what a kernel is called with.
type Input struct {
	DType, Rows, Cols int
	Recovers          bool
	Seed              uint64
	Mats, Bad         int
	Flag              bool
	N                 int
	Lines             []string
}

type callable = func(m *model, out, errs io.Writer, in *bufio.Reader, s *stat, rates []float64, w *tensor.Tensor, xs []*tensor.Tensor, flag bool, count int) (*tensor.Tensor, float64, []float64)

type journal struct {
	strings.Builder
	written int
}

type writer struct {
	j    *journal
	name string
}

func (w writer) Write(b []byte) (int, error) {
	text := asOnCPU(string(b))
	w.j.written += len(text)
	fmt.Fprintf(w.j, "%s %q\n", w.name, text)
	return len(b), nil
}

// where is what the same failures differ in. Programs make capitals of some.
var where = regexp.MustCompile("(?i)" + failures.Where)

// asOnCPU takes out of a text where something failed, and on which device.
func asOnCPU(text string) string { return where.ReplaceAllString(text, "") }

type peer struct {
	j     *journal
	lines []string
}

func (p *peer) Read(b []byte) (int, error) {
	fmt.Fprintf(p.j, "asked after %d\n", p.j.written)
	if len(p.lines) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.lines[0]+"\n")
	p.lines = p.lines[1:]
	return n, nil
}

type deal struct{ state uint64 }

func (d *deal) number() float64 {
	d.state += 0x9E3779B97F4A7C15
	z := d.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return float64(int64((z^z>>31)%17)-8) / 4
}

func (d *deal) matrix(in Input) *tensor.Tensor {
	xs := make([]float64, in.Rows*in.Cols)
	for i := range xs {
		xs[i] = d.number()
	}
	x := tensor.From(xs, in.Rows, in.Cols)
	if in.DType == 0 {
		x = x.As(tensor.Float32)
	}
	return x
}

// Run calls a kernel and returns what happened, and how often it waited.
func Run(name string, isRewritten bool, in Input) (text string, waits int64) {
	j := &journal{}
	d := &deal{in.Seed}
	tensor.Seed(7)
	s := &stat{Total: 0.5, Hist: []float64{1, 2}}
	m := &model{G: tensor.NewGenerator(in.Seed), S: s}
	m.R = rand.New(rand.NewPCG(in.Seed, 3))
	m.Req, m.Resp = make(chan float64), make(chan float64)
	defer close(m.Req)
	go func() {
		for x := range m.Req {
			fmt.Fprintf(j, "told %s after %d\n", bitsOf(x), j.written)
			m.Resp <- float64(x*0.5) + 1
		}
	}()
	m.P = tensor.NewParam(d.matrix(in))
	m.O = optim.SGD([]*nn.Param{m.P}, 0.25)
	m.B = tensor.NewBuffer(d.matrix(in))
	w := d.matrix(in)
	var xs []*tensor.Tensor
	for i := range in.Mats {
		x := d.matrix(in)
		if i == in.Bad {
			zeros := x.MulScalar(0).As(tensor.Int64)
			x = zeros.Div(zeros).As(x.DType())
		}
		xs = append(xs, x)
	}
	rates := []float64{d.number(), d.number(), d.number()}
	if err := asyncrt.WaitAll(); errors.Is(err, device.ErrOutOfMemory) {
		return "no room for what the kernel gets", 0
	}
	before := asyncrt.Stats().Waits
	failure := ""
	var r0 *tensor.Tensor
	var r1 float64
	var r2 []float64
	func() {
		defer func() {
			if p := recover(); p != nil {
				failure = asOnCPU(panicText(p))
			}
		}()
		k := originals[name]
		if isRewritten {
			k = rewritten[name]
		}
		r0, r1, r2 = k(m, writer{j, "out"}, writer{j, "errs"}, bufio.NewReader(&peer{j, in.Lines}), s, rates, w, xs, in.Flag, in.N)
	}()
	runtime.KeepAlive(w) // the compiler lets go of what no path uses that does not panic, as written more than rewritten
	runtime.KeepAlive(xs)
	waits = asyncrt.Stats().Waits - before
	fmt.Fprintf(j, "panic %q\n", failure)
	if failure == "" {
		dump(j, r0, r1, r2)
		if !hasRecovered(j.String()) {
			dump(j, m.P.Value(), m.P.Grad(), m.B.Value(), m.O.Rate())
			fmt.Fprintf(j, "%d %d %d\n", m.G.Value().Int64s()[1], tensor.DefaultGenerator().Value().Int64s()[1], m.R.Uint64())
		}
	}
	dump(j, *s, rates)
	_ = asyncrt.WaitAll()
	return j.String(), waits
}

// hasRecovered reports whether the kernel said that it recovered from a panic.
func hasRecovered(text string) bool { return strings.Contains(text, "\"recovered ") }

// panicText is the type of a panic and its root cause; of a mistake, the operation.
func panicText(p any) string {
	err, ok := p.(error)
	if !ok {
		return fmt.Sprintf("%T: %v", p, p)
	}
	var mistake *tensor.Mistake
	if errors.As(err, &mistake) {
		return fmt.Sprintf("%T: %s", err, mistake.Op)
	}
	root := err
	for errors.Unwrap(root) != nil {
		root = errors.Unwrap(root)
	}
	return fmt.Sprintf("%T: %T: %v", err, root, root)
}

func dump(j *journal, xs ...any) {
	for _, x := range xs {
		fmt.Fprintln(j, bitsOf(x))
	}
}

func bitsOf(x any) string {
	switch x := x.(type) {
	case float64:
		if math.IsNaN(x) {
			return "NaN"
		}
		return fmt.Sprintf("%x", math.Float64bits(x))
	case []float64:
		if x == nil {
			return "nil"
		}
		if len(x) > 1000 {
			h := fnv.New64()
			for _, y := range x {
				io.WriteString(h, bitsOf(y))
			}
			return fmt.Sprintf("%d numbers, %x", len(x), h.Sum64())
		}
		words := []string{}
		for _, y := range x {
			words = append(words, bitsOf(y))
		}
		return strings.Join(words, " ") + "."
	case stat:
		return fmt.Sprint(bitsOf(x.Total), x.Count, bitsOf(x.Hist), bitsOf(x.Best))
	case *tensor.Tensor:
		if x == nil {
			return "nil"
		}
		if err := x.Wait(); err != nil {
			return "failed"
		}
		return fmt.Sprint([]int(x.Shape()), bitsOf(x.As(tensor.Float64).Float64s()))
	}
	return fmt.Sprint(x)
}
`

// mainFile runs what it is told on standard input, and answers on standard output.
const mainFile = `package main

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"

	all "example.com/fuzz/all"
	some "example.com/fuzz/some"
)

type job struct {
	Name     string
	Variants []string
	Inputs   []all.Input
}

type answer struct {
	Name    string
	Input   int
	Variant string
	Text    string
	Waits   int64
}

var variants = []struct {
	name              string
	some, isOriginal bool
	window            int
}{
	{"as written", false, true, 0},
	{"window 1", false, false, 1},
	{"window 2", false, false, 2},
	{"window 64", false, false, 64},
	{"window 2, some rewrites", true, false, 2},
	{"large, as written", true, true, 0},
	{"large, window 64", true, false, 64},
}

func main() {
	var jobs []job
	if err := json.NewDecoder(os.Stdin).Decode(&jobs); err != nil {
		panic(err)
	}
	w := bufio.NewWriter(os.Stdout)
	e := json.NewEncoder(w)
	for _, j := range jobs {
		for i, in := range j.Inputs {
			for _, v := range variants {
				if !slices.Contains(j.Variants, v.name) {
					continue
				}
				if err := e.Encode(answer{Name: j.Name, Input: i, Variant: v.name}); err != nil { // so that it is known what hangs
					panic(err)
				}
				w.Flush()
				a := answer{Name: j.Name, Input: i, Variant: v.name}
				all.Window, some.Window = v.window, v.window
				if v.some {
					a.Text, a.Waits = some.Run(j.Name, !v.isOriginal, some.Input(in))
				} else {
					a.Text, a.Waits = all.Run(j.Name, !v.isOriginal, in)
				}
				if err := e.Encode(a); err != nil {
					panic(err)
				}
			}
		}
	}
	w.Flush()
}
`
