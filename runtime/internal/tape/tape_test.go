package tape_test

import (
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/internal/tape"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// A number is a tensor without axes.
type number float64

func (number) Shape() device.Shape { return nil }
func (number) DType() device.DType { return device.Float64 }

// numbers builds gradients of numbers, and counts the operations.
type numbers struct{ ops int }

func (b *numbers) Elementwise(d *op.Def, scalars [2]float64, x ...op.Value) op.Value {
	b.ops++
	var args []uint64
	for _, v := range x {
		args = append(args, kernel.Bits(float64(v.(number))))
	}
	e := d.Kernel(device.Float64).Body.(*kernel.Expr)
	return number(kernel.Value[float64](e.Eval(args, []uint64{kernel.Bits(scalars[0]), kernel.Bits(scalars[1])})))
}

func (b *numbers) Structural(*op.Def, op.Attr, ...op.Value) op.Value {
	panic("numbers need no structure")
}
func (b *numbers) Zeros(op.Value) op.Value { return number(0) }

// Of numbers, who uses them does not matter.
func (b *numbers) Hold(op.Value)   {}
func (b *numbers) LetGo(op.Value)  {}
func (b *numbers) Settle(op.Value) {}

// A tracked is a number with its origin.
type tracked struct {
	v    number
	node *tape.Node
}

// call applies d to xs, whose nodes may be nil.
func call(d *op.Def, scalar float64, xs ...tracked) tracked {
	c := op.Call{Def: d, Attr: op.Attr{Scalars: [2]float64{scalar}}}
	var parents [op.MaxInputs]*tape.Node
	var in []op.Value
	for i, x := range xs {
		c.In[i], parents[i] = x.v, x.node
		in = append(in, x.v)
	}
	out := new(numbers).Elementwise(d, c.Attr.Scalars, in...).(number)
	c.Out = out
	return tracked{out, tape.Record(new(numbers), c, parents)}
}

// A sum is a leaf.
type sum struct{ got []float64 }

func (s *sum) Accumulate(g op.Value) { s.got = append(s.got, float64(g.(number))) }

func TestBackward(t *testing.T) {
	var sx, sy sum
	x, y := tracked{3, tape.NewLeaf(&sx)}, tracked{5, tape.NewLeaf(&sy)}
	// (x*y + x) * x, in which x is used three times and z is not tracked.
	z := tracked{v: 2}
	f := call(op.Mul, 0, call(op.Add, 0, call(op.Mul, 0, x, y), x), call(op.Mul, 0, x, z))
	g, ok := tape.Trace(f.node)
	if !ok {
		t.Fatal("a graph that was never released")
	}
	if got := g.Gradients(new(numbers), number(1), []*tape.Node{x.node, y.node, tape.NewLeaf(nil)}); got[0] != number(72) || got[1] != number(18) || got[2] != nil {
		t.Errorf("the gradients are %v, want 72, 18 and none", got)
	}
	g.Backward(new(numbers), number(1))
	g2, ok := tape.Trace(f.node)
	if ok {
		t.Errorf("%v was not released", g2)
	}
	if !slices.Equal(sx.got, []float64{72}) || !slices.Equal(sy.got, []float64{18}) {
		t.Errorf("the leaves got %v and %v", sx.got, sy.got)
	}
	if _, ok := tape.Trace(x.node); !ok {
		t.Error("a leaf was released")
	}
}

// Gradients of nodes in the middle are kept when asked for.
func TestGradientsInTheMiddle(t *testing.T) {
	x := tracked{2, tape.NewLeaf(nil)}
	y := call(op.MulScalar, 3, x)
	z := call(op.Square, 0, y)
	g, _ := tape.Trace(z.node)
	got := g.Gradients(new(numbers), number(1), []*tape.Node{z.node, y.node, x.node})
	if !slices.Equal(got, []op.Value{number(1), number(12), number(36)}) {
		t.Errorf("got %v", got)
	}
}

// A value that is used often is passed on once: the work is linear in the graph.
func TestSharedWork(t *testing.T) {
	x := tracked{1, tape.NewLeaf(nil)}
	y := x
	for range 40 {
		y = call(op.Mul, 0, y, y) // 2^40 paths
	}
	g, _ := tape.Trace(y.node)
	b := &numbers{}
	if got := g.Gradients(b, number(1), []*tape.Node{x.node}); got[0] != number(1<<40) || b.ops > 4*40 {
		t.Errorf("the gradient is %v, after %d operations", got[0], b.ops)
	}
}
