package tape_test

import (
	"fmt"
	"slices"
	"strings"
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

// Users of numbers need not be counted.
func (b *numbers) Hold(op.Value)   {}
func (b *numbers) LetGo(op.Value)  {}
func (b *numbers) Settle(op.Value) {}

func (b *numbers) Like(_ bool, _ int, v op.Value) op.Value { return v }

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

// Gradients of inner nodes are kept when asked for.
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

// The gradient of a value that is used often is passed on once: the work is linear in the graph's size.
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

// An eager leaf logs the calls of its methods.
type eager struct {
	name string
	log  *[]string
}

func (l eager) Expect()               { *l.log = append(*l.log, "expect "+l.name) }
func (l eager) Share()                { *l.log = append(*l.log, "share "+l.name) }
func (l eager) Accumulate(g op.Value) { *l.log = append(*l.log, fmt.Sprintf("%s %v", l.name, g)) }
func (l eager) Finish(tape.Builder)   { *l.log = append(*l.log, "finish "+l.name) }

// Eager leaves get Expect before everything else and Finish at the end. In between they get their
// gradients: those of the last operations first, and those of similar parts side by side. A leaf without a
// gradient gets nil.
func TestEagerLeaves(t *testing.T) {
	var log []string
	leaf := func(name string, v number) tracked { return tracked{v, tape.NewLeaf(eager{name, &log})} }
	chain := func(name string) tracked {
		x := call(op.Mul, 0, leaf(name+"1", 3), tracked{v: 2})
		x = call(op.Mul, 0, x, leaf(name+"2", 5))
		return call(op.Mul, 0, x, leaf(name+"3", 7))
	}
	plain := &sum{}
	y := call(op.Add, 0, chain("a"), chain("b"))
	y = call(op.Add, 0, y, call(op.Floor, 0, leaf("none", 1)))
	y = call(op.Add, 0, y, tracked{1, tape.NewLeaf(plain)})
	g, ok := tape.Trace(y.node)
	if !ok {
		t.Fatal("the graph was released")
	}
	g.Backward(new(numbers), number(1))
	for _, gradient := range []string{"a1 70", "a2 42", "a3 30", "b1 70", "b2 42", "b3 30", "none <nil>"} {
		name, _, _ := strings.Cut(gradient, " ")
		share, is := slices.Index(log, "share "+name), name != "none"
		if share >= 0 != is || share > slices.Index(log, gradient) {
			t.Errorf("%s: a share of it: %t, want %t, and before it: %q", gradient, share >= 0, is, log)
		}
	}
	log = slices.DeleteFunc(log, func(s string) bool { return strings.HasPrefix(s, "share ") })
	slices.Sort(log[:7])
	slices.Sort(log[14:])
	want := []string{
		"expect a1", "expect a2", "expect a3", "expect b1", "expect b2", "expect b3", "expect none",
		"none <nil>", "b3 30", "a3 30", "b2 42", "a2 42", "b1 70", "a1 70",
		"finish a1", "finish a2", "finish a3", "finish b1", "finish b2", "finish b3", "finish none",
	}
	if !slices.Equal(log, want) {
		t.Errorf("got  %q\nwant %q", log, want)
	}
}
