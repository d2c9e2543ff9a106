package loopprint

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A terms formats itself by a method that reads.
type terms struct{ loss, kl *tensor.Tensor }

func (t terms) String() string { return fmt.Sprintf("loss %v kl %v", t.loss, t.kl) }

type failure struct{ loss *tensor.Tensor }

func (e *failure) Error() string { return "loss " + e.loss.String() }

type point struct{ X *tensor.Tensor }

func (p point) MarshalJSON() ([]byte, error) { return json.Marshal(p.X.Float32s()) }

type all struct{ list []*tensor.Tensor }

func (a *all) Format(f fmt.State, verb rune) {
	for _, t := range a.list {
		fmt.Fprint(f, t.Item())
	}
}

// The outlets log by functions that nobody knows.
type outlets struct {
	logf   func(format string, args ...any)
	debugf func(format string, args ...any)
	count  func(args ...any) int
}

type leveled interface {
	Info(msg string, args ...any)
	Debug(msg string, args ...any)
}

func logged(data []Batch, p outlets, l leveled, print func(...any)) {
	for i, b := range data {
		p.logf("%d: %v", i, step(b))    // want `p.logf waits for step\(b\)`
		l.Info("step", "loss", step(b)) // want `l.Info waits for step\(b\)`
		print(i, step(b))               // want `print waits for step\(b\)`
		p.logf("%d: %T", i, step(b))
		p.debugf("%d: %v", i, step(b))
		l.Debug("step", "loss", step(b))
		_ = p.count(step(b))
	}
}

// Of these, the methods need no value.

type named struct {
	name string
	Loss *tensor.Tensor
}

func (n named) String() string { return n.name }

type shaped struct{ Loss *tensor.Tensor }

func (s shaped) String() string { return fmt.Sprint(s.Loss.Dim(0)) }

type detailed struct {
	verbose bool
	Loss    *tensor.Tensor
}

func (d detailed) String() string {
	if d.verbose {
		return d.Loss.String()
	}
	return "loss"
}

func formatted(data []Batch, w io.Writer) error {
	for i, b := range data {
		log.Println(i, terms{step(b), step(b)})                           // want `log.Println waits for terms`
		fmt.Printf("%d %s\n", i, []terms{{step(b), step(b)}})             // want `fmt.Printf waits for`
		slog.Info("step", "i", i, "terms", &terms{loss: step(b)})         // want `slog.Info waits for`
		log.Print(&failure{step(b)})                                      // want `log.Print waits for`
		fmt.Println(&all{[]*tensor.Tensor{step(b)}})                      // want `fmt.Println waits for`
		if err := json.NewEncoder(w).Encode(point{step(b)}); err != nil { // want `waits for point`
			return err
		}
		log.Println(i, named{"a", step(b)}, shaped{step(b)}, detailed{false, step(b)})
		fmt.Println(failure{step(b)}) // fmt prints an address
		if os.Getenv("DEBUG") != "" {
			fmt.Println(step(b))
		}
		if os.Getenv("HOME") != "" {
			fmt.Println(step(b)) // want `fmt.Println waits`
		}
	}
	return nil
}

// What formats itself by tensors that the loop has set.

type trainer struct{ loss *tensor.Tensor }

func (t *trainer) step(b Batch) { t.loss = step(b) }

func (t *trainer) String() string { return fmt.Sprint("loss ", t.loss.Item()) }

type slogged struct{ loss *tensor.Tensor }

func (l *slogged) step(b Batch) { l.loss = step(b) }

func (l *slogged) LogValue() slog.Value { return slog.Float64Value(l.loss.Item()) }

type titled struct{ name string }

func (n *titled) LogValue() slog.Value { return slog.StringValue(n.name) }

func (t *trainer) train(data []Batch, l *slogged, n *titled) {
	for _, b := range data {
		t.step(b)
		fmt.Println(t) // want `fmt.Println waits for t in each iteration`
		l.step(b)
		slog.Info("step", "state", l, "name", n) // want `slog.Info waits for l in each iteration`
	}
}

// The attributes of a LogValue are formatted by the logger that asks for them.

type parts struct{ content, style *tensor.Tensor }

func (p parts) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("content", p.content), slog.Any("style", p.style))
}

type cell struct{ x *tensor.Tensor }

func (c cell) LogValue() slog.Value { return slog.AnyValue(c.x) }

type shapedCell struct{ x *tensor.Tensor }

func (c shapedCell) LogValue() slog.Value { return slog.GroupValue(slog.Any("shape", c.x.Dim(0))) }

func attributes(data []Batch, l *slog.Logger) {
	for i, b := range data {
		l.Info("step", "n", i, "parts", parts{step(b), step(b)}) // want `l.Info waits for parts`
		slog.Warn("step", slog.Any("cell", cell{step(b)}))       // want `slog.Warn waits for cell`
		l.Info("step", "shape", shapedCell{step(b)})
		l.Debug("step", "parts", parts{step(b), step(b)})
	}
}
