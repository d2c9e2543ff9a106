// Package boards has gauges that show themselves.
package boards

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A Gauge keeps a tensor.
type Gauge struct{ value *tensor.Tensor }

func (g *Gauge) Set(t *tensor.Tensor)         { g.value = t }
func (g *Gauge) Dim() int                     { return g.value.Dim(0) }
func (g *Gauge) Float() float64               { return g.value.Item() }
func (g *Gauge) String() string               { return fmt.Sprint(g.Float()) }
func (g *Gauge) MarshalJSON() ([]byte, error) { return json.Marshal(g.Float()) }
func (g *Gauge) LogValue() slog.Value         { return slog.Float64Value(g.Float()) }

// A Board has some.
type Board struct{ Gauges []*Gauge }

// Gauge makes one if there is none.
func (b *Board) Gauge() *Gauge {
	if len(b.Gauges) == 0 {
		b.Gauges = append(b.Gauges, new(Gauge))
	}
	return b.Gauges[0]
}

func (b *Board) String() string { return fmt.Sprint(b.Gauges) }
func (b *Board) Brief() string  { return fmt.Sprint(len(b.Gauges)) }

// Write encodes a board.
func Write(e *json.Encoder, b *Board) error { return e.Encode(b) }

// Observe sets a gauge of the board.
func (b *Board) Observe(x *tensor.Tensor) { b.Gauge().Set(x.Mean()) }

// A Report has handles.
type Report struct{ Loss, Norm *tensor.Tensor }

func NewReport(x *tensor.Tensor) Report { return Report{x.Mean(), x.Norm()} }
func (r Report) NormValue() float64     { return r.Norm.Item() }

// A Table has a row for each key.
type Table struct {
	Weight *nn.Param
	fixed  *tensor.Tensor
}

func (t *Table) Vector(key int) []float32  { return t.Weight.Value().Detach().Row(key).Float32s() }
func (t *Table) Entry(i, j int) float64    { return t.fixed.At(i, j) }
func (t *Table) Fix(x *tensor.Tensor)      { t.fixed = x }
func (t *Table) First() float64            { return t.fixed.At(0, 0) }
func (t *Table) Part(i int) []float32      { return t.fixed.Slice(0, i, i+1).Float32s() }
func Cell(x *tensor.Tensor, i int) float64 { return x.At(i) }
func Size(x *tensor.Tensor, dim int) int   { return x.Dim(dim) }

// A Change is the updates of all parameters.
type Change struct{ deltas []*tensor.Tensor }

func (c *Change) Add(params []*nn.Param, old []*tensor.Tensor) {
	for i, p := range params {
		c.deltas = append(c.deltas, p.Value().Detach().Sub(old[i]))
	}
}

// Size goes through the parts of one model.
func (c *Change) Size() float64 {
	sum := tensor.Zeros(1)
	for _, d := range c.deltas {
		sum = sum.Add(d.Square().Sum())
	}
	return sum.Item()
}

// Error goes through data.
func Error(net nn.Module, xs []*tensor.Tensor) float64 {
	sum := tensor.Zeros(1)
	for _, x := range xs {
		sum = sum.Add(net.Forward(x).Sum())
	}
	return sum.Item()
}

// Epochs calls report after each pass.
func Epochs(net nn.Module, xs []*tensor.Tensor, n int) func(report func(loss *tensor.Tensor)) {
	return func(report func(loss *tensor.Tensor)) {
		for range n {
			sum := tensor.Zeros(1)
			for _, x := range xs {
				sum = sum.Add(net.Forward(x).Sum())
			}
			report(sum)
		}
	}
}

// Batches calls report after each batch.
func Batches(net nn.Module, xs []*tensor.Tensor) func(report func(loss *tensor.Tensor)) {
	return func(report func(loss *tensor.Tensor)) {
		for _, x := range xs {
			report(net.Forward(x).Sum())
		}
	}
}
