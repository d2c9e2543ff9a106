package tape_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/internal/tape"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// A box is a number whose users are counted.
type box struct {
	v     float64
	users int
	name  string
}

func (*box) Shape() device.Shape { return nil }
func (*box) DType() device.DType { return device.Float64 }

// boxes builds gradients of boxes. It reports an error if a box is used that nobody holds.
type boxes struct {
	t         *testing.T
	all, made []*box
}

func (b *boxes) use(v op.Value) *box {
	x := v.(*box)
	if x.users < 1 {
		b.t.Errorf("%s is used and has %d users", x.name, x.users)
	}
	return x
}

func (b *boxes) make(name string, v float64) *box {
	x := &box{v, 1, name}
	b.all = append(b.all, x)
	return x
}

func (b *boxes) Elementwise(d *op.Def, scalars [2]float64, x ...op.Value) op.Value {
	var args []uint64
	for _, v := range x {
		args = append(args, kernel.Bits(b.use(v).v))
	}
	e := d.Kernel(device.Float64).Body.(*kernel.Expr)
	y := b.make(d.Name, kernel.Value[float64](e.Eval(args, []uint64{kernel.Bits(scalars[0]), kernel.Bits(scalars[1])})))
	b.made = append(b.made, y)
	return y
}

func (b *boxes) Structural(*op.Def, op.Attr, ...op.Value) op.Value {
	panic("numbers need no structure")
}
func (b *boxes) Zeros(op.Value) op.Value { panic("nor zeros") }
func (b *boxes) Hold(v op.Value)         { b.use(v).users++ }
func (b *boxes) LetGo(v op.Value)        { b.use(v).users-- }

func (b *boxes) Like(lazy bool, _ int, v op.Value) op.Value {
	if !lazy {
		return v
	}
	x := b.make("lazy", v.(*box).v)
	b.LetGo(v)
	return x
}

func (b *boxes) Settle(v op.Value) {
	kept := v == nil
	for _, x := range b.made {
		if op.Value(x) == v {
			kept = true
		} else {
			b.LetGo(x)
		}
	}
	if !kept {
		b.Hold(v)
	}
	b.made = nil
}

// A keep is a leaf that holds the gradients that it gets.
type keep struct {
	b   *boxes
	got []*box
}

func (k *keep) Accumulate(g op.Value) {
	k.b.Hold(g)
	k.got = append(k.got, g.(*box))
}

// In random graphs, in which values are shared and gradients are passed on unchanged, no value is used
// after its last user has let go, and at the end only leaves and the caller hold values. Backward adds to
// the leaves what Gradients returns.
func TestUsersAreCounted(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := &boxes{t: t}
		leaves := []*keep{{b: b}, {b: b}, {b: b}}
		type tracked struct {
			v    *box
			node *tape.Node
		}
		var values []tracked
		for _, l := range leaves {
			values = append(values, tracked{b.make("leaf", 1+rng.Float64()), tape.NewLeaf(l)})
		}
		values = append(values, tracked{b.make("constant", 2), nil})
		var unused []tracked
		defs := []*op.Def{op.Add, op.Sub, op.Mul, op.Div, op.Square, op.Neg, op.AddScalar, op.Exp}
		for left := 1 + rng.IntN(12); left > 0 || len(unused) > 1; left-- {
			c := op.Call{Def: defs[rng.IntN(len(defs))], Attr: op.Attr{Scalars: [2]float64{1}}, Lazy: rng.IntN(4) == 0}
			if left <= 0 {
				c.Def = op.Mul // what no result depends on would keep what it needs
			}
			var parents [op.MaxInputs]*tape.Node
			var in []op.Value
			isTracked := false
			for i := range c.Def.Tensors {
				x := values[rng.IntN(len(values))]
				if left <= 0 {
					x = unused[0]
				}
				unused = slices.DeleteFunc(unused, func(u tracked) bool { return u == x })
				c.In[i], parents[i] = x.v, x.node
				in = append(in, x.v)
				isTracked = isTracked || x.node != nil
			}
			y := tracked{v: b.Elementwise(c.Def, c.Attr.Scalars, in...).(*box)}
			b.made = nil // the program holds it
			if c.Out = y.v; isTracked {
				y.node = tape.Record(b, c, parents)
			}
			values = append(values, y)
			if y.node != nil {
				unused = append(unused, y)
			}
		}
		root := values[len(values)-1]
		if root.node == nil {
			continue
		}
		for _, v := range values { // the program lets go of all values; those that gradients need stay
			if v != root {
				b.LetGo(v.v)
			}
		}
		g, _ := tape.Trace(root.node)
		var of []*tape.Node
		for _, v := range values[:len(leaves)] {
			of = append(of, v.node)
		}
		want := g.Gradients(b, b.make("seed", 1), append(of, of[0], root.node))
		g.Backward(b, b.make("seed", 1))
		for i, l := range leaves {
			if len(l.got) > 1 || (len(l.got) == 1) != (want[i] != nil) {
				t.Errorf("seed %d: leaf %d got %d gradients, Gradients returns %v", seed, i, len(l.got), want[i])
			} else if want[i] != nil && l.got[0].v != want[i].(*box).v && l.got[0].v == l.got[0].v {
				t.Errorf("seed %d: leaf %d got %v, Gradients returns %v", seed, i, l.got[0].v, want[i].(*box).v)
			}
			for _, x := range l.got {
				b.LetGo(x)
			}
		}
		for _, v := range want {
			if v != nil {
				b.LetGo(v)
			}
		}
		b.LetGo(root.v)
		for _, x := range b.all {
			if x.users != 0 {
				t.Errorf("seed %d: %s has %d users in the end", seed, x.name, x.users)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
