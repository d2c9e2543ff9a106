package asyncrt_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func ExampleTry() {
	x, zero := tensor.From([]int64{7}), tensor.From([]int64{0})
	err := asyncrt.Try(func() {
		fmt.Println(x.Div(zero).ItemInt())
	})
	failed, _ := errors.AsType[*asyncrt.OpError](err) // whose text has the file and the line as well
	fmt.Println(failed.Op, failed.Shapes, failed.Err)
	asyncrt.WaitAll() // reports it, too
	// Output: Div [[1] [1] [1]] an integer is divided by zero
}

func ExampleGraph() {
	x, y := tensor.Ones(1, 2), tensor.Ones(1, 2)
	fmt.Print(asyncrt.Graph(func() {
		x.Mul(y).AddScalar(2)
	}))
	// Output:
	// 1  tensor     float32[1 2]
	// 2  tensor     float32[1 2]
	// 3  Mul        float32[1 2]  reads 1 2  asyncrt_test.go:30
	// 4  AddScalar  float32[1 2]  reads 3    asyncrt_test.go:30
}

func ExampleLater() {
	later := asyncrt.NewLater[struct{}](64)
	defer later.Close()
	x := tensor.From([]float64{1, 2})
	total := 0.0
	for i := range 3 {
		x = x.MulScalar(2)
		sumAt := later.Read(x.Sum())
		later.Do(func() {
			total += sumAt.Item()
			fmt.Println(i, sumAt, total)
		})
	}
	later.Flush()
	// Output:
	// 0 6 6
	// 1 12 18
	// 2 24 42
}

// WaitAll returns the failures since the last WaitAll, in program order. Synchronize returns those of one device.
func TestWaiting(t *testing.T) {
	if err := asyncrt.WaitAll(); err != nil {
		t.Fatal(err)
	}
	sim, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	fail := func(on device.Device) {
		tensor.FromOn(on, []int64{1}).Div(tensor.FromOn(on, []int64{0}))
	}
	fail(device.CPU())
	fail(sim)
	fail(device.CPU())
	if err := asyncrt.Synchronize(sim); len(parts(err)) != 1 {
		t.Errorf("Synchronize of sim:0: %v, want one error", err)
	}
	errs := parts(asyncrt.WaitAll())
	if len(errs) != 2 {
		t.Fatalf("WaitAll: %v, want two errors", errs)
	}
	for _, err := range errs {
		var op *asyncrt.OpError
		if !errors.As(err, &op) || op.Op != "Div" || !strings.HasSuffix(op.File, "asyncrt_test.go") {
			t.Errorf("%+v", err)
		}
	}
	if err := errors.Join(asyncrt.WaitAll(), asyncrt.Synchronize(device.Device{})); err != nil {
		t.Errorf("when all was reported: %v", err)
	}
}

// parts returns the errors that are joined in err.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return nil
}

func TestTry(t *testing.T) {
	if err := asyncrt.Try(func() {}); err != nil {
		t.Errorf("Try of nothing: %v", err)
	}
	defer func() {
		if recover() != "other" {
			t.Error("Try keeps a panic that is not its business")
		}
	}()
	_ = asyncrt.Try(func() { panic("other") })
}

// An operation that would exceed the bound waits until others have finished.
func TestSetLimit(t *testing.T) {
	on, g := gated()
	x := tensor.On(on).Ones(1 << 16) // 256 KiB
	if err := x.Wait(); err != nil {
		t.Fatal(err)
	}
	asyncrt.SetLimit(400 << 10)
	defer asyncrt.SetLimit(0)
	blocked := x.Tanh()
	go func() {
		awaitIn(t, "(*Engine).awaitRoom")
		if blocked.Ready() {
			t.Error("what holds up the program has finished")
		}
		g.let(1)
	}()
	before := asyncrt.Stats()
	y := x.AddScalar(1)
	if after := asyncrt.Stats(); after.Stalls-before.Stalls != 1 || !blocked.Ready() {
		t.Errorf("%d stalls, want 1", after.Stalls-before.Stalls)
	}
	if y.At(7) != 2 {
		t.Errorf("the value is %v", y.At(7))
	}
}

// The graph of a diamond, with a view, a buffer that is updated in place and another device, in all three formats.
func TestGraph(t *testing.T) {
	sim, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Ones(2, 2).Track()
	f := func() {
		a, b := x.Exp(), x.T().Neg()
		a.Mul(b).Mul(x).Add(a)
		tensor.Grad(x.Slice(1, 0, 1).Sum(), x)
		x.To(sim).Exp()
		x.Mul(x)
	}
	f()
	g := asyncrt.Graph(f)
	text := g.String()
	for _, want := range []string{
		"1  tensor ", "2  Exp  ", "reads 1 ", "reads 2 3 ", "reads 4 1 ", "on sim:0",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "reads 1 1") {
		t.Errorf("an operand is listed twice in\n%s", text)
	}
	if g.Len() != strings.Count(text, "\n")-strings.Count(text, "tensor") {
		t.Errorf("%d operations in\n%s", g.Len(), text)
	}

	var dot, svg, again bytes.Buffer
	if err := errors.Join(g.WriteDOT(&dot), g.WriteSVG(&svg), g.WriteSVG(&again)); err != nil {
		t.Fatal(err)
	}
	edges := strings.Count(dot.String(), " -> ")
	if !strings.HasPrefix(dot.String(), "digraph ops {") || !strings.Contains(dot.String(), "\tn1 -> n2;\n") {
		t.Errorf("DOT:\n%s", dot.String())
	}
	if boxes, paths := strings.Count(svg.String(), "<rect x="), strings.Count(svg.String(), "marker-end="); boxes != strings.Count(text, "\n") || paths != edges {
		t.Errorf("%d boxes and %d edges for\n%s", boxes, paths, text)
	}
	if !bytes.Equal(svg.Bytes(), again.Bytes()) {
		t.Error("two drawings of one graph differ")
	}
	for _, write := range []func(io.Writer) error{g.WriteDOT, g.WriteSVG} {
		if write(broken{}) == nil {
			t.Error("the error of the writer is lost")
		}
	}
	if err := asyncrt.WaitAll(); err != nil {
		t.Error(err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestEmptyGraph(t *testing.T) {
	g := asyncrt.Graph(func() {})
	var svg bytes.Buffer
	if err := g.WriteSVG(&svg); err != nil || g.Len() != 0 || g.String() != "" {
		t.Errorf("%v, %d operations, %q", err, g.Len(), g.String())
	}
}

func ExampleBulk() {
	x := tensor.Ones(3)
	asyncrt.Bulk(func() {
		for range 100 {
			x = x.AddScalar(1)
		}
	})
	fmt.Println(x.Sum().Item())
	// Output: 303
}

// Who looks at operations sees those of a captured step, one by one, with the lines of the step.
func TestCaptureIsSeen(t *testing.T) {
	f := func(in ...*tensor.Tensor) []*tensor.Tensor {
		y := in[0].MulScalar(2).Exp()
		return []*tensor.Tensor{y, tensor.Concat(0, y, in[0]).Sum()}
	}
	step := asyncrt.Capture(f)
	x := tensor.Ones(3)
	step.Run(x)
	want := asyncrt.Graph(func() { f(x) }).String()
	if got := asyncrt.Graph(func() { step.Run(x) }).String(); got != want {
		t.Errorf("captured:\n%s\nplain:\n%s", got, want)
	}
}
