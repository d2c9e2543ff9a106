package nn_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A residual adds to its input what a small network makes of it.
type residual struct{ norm, up, down nn.Module }

func (r *residual) Forward(x *tensor.Tensor) *tensor.Tensor {
	return x.Add(r.down.Forward(r.up.Forward(r.norm.Forward(x)).GELU()))
}

func (r *residual) Params() []*nn.Param { return nn.Params(r) }

func newResidual(width int) nn.Module {
	return &residual{nn.LayerNorm(), nn.Dense(4 * width), nn.Dense(width)}
}

func ExampleModule() {
	net := nn.Sequential(newResidual(8), newResidual(8), nn.Dense(2))
	net.Forward(tensor.Ones(5, 8))
	fmt.Println(net)
	// Output:
	// Sequential
	// ├─ 0 nn_test.residual
	// │  ├─ norm LayerNorm()  [8] [8]
	// │  ├─ up Dense(32)  [8 32] [32]
	// │  └─ down Dense(8)  [32 8] [8]
	// ├─ 1 nn_test.residual
	// │  ├─ norm LayerNorm()  [8] [8]
	// │  ├─ up Dense(32)  [8 32] [32]
	// │  └─ down Dense(8)  [32 8] [8]
	// └─ 2 Dense(2)  [8 2] [2]
	// 1,154 weights
}

func ExampleNamed() {
	net := nn.Sequential(newResidual(8), nn.Dense(2))
	net.Forward(tensor.Ones(5, 8))
	for name, cell := range nn.Named(net) {
		fmt.Println(name, cell.Value().Shape())
	}
	// Output:
	// 0.norm.weight [8]
	// 0.norm.bias [8]
	// 0.up.weight [8 32]
	// 0.up.bias [32]
	// 0.down.weight [32 8]
	// 0.down.bias [8]
	// 1.weight [8 2]
	// 1.bias [2]
}

// Base is embedded by value, and head by a pointer.
type Base struct {
	RunningMean *nn.Buffer
	config      struct{ scale, nothing *nn.Param }
}

type head struct {
	out nn.Module `nn:"lm_head"`
}

// A decoder is no Module, as it takes two tensors, and has a part that is none.
type decoder struct {
	Base
	*head
	MLPHead  nn.Module
	layers   []*residual
	heads    map[string]nn.Module
	pair     [2]nn.Module
	attn     forwarder
	enc      *encoder
	again    nn.Module // the first of layers
	teacher  nn.Module `nn:"-"`
	nothing  nn.Module
	position *tensor.Tensor
	noise    *tensor.Generator
	opt      *optim.Optimizer `nn:"-"`
	width    int
	mode     nn.Mode
}

type forwarder interface {
	Forward(x, y *tensor.Tensor) *tensor.Tensor
}

type attention struct{ qProj nn.Module }

func (a *attention) Forward(x, y *tensor.Tensor) *tensor.Tensor { return a.qProj.Forward(x).Add(y) }

type encoder struct {
	emb   nn.Module
	owner *decoder // points back
}

func (d *decoder) Forward(x, y *tensor.Tensor) *tensor.Tensor {
	for _, l := range d.layers {
		x = l.Forward(x)
	}
	x = d.attn.Forward(d.pair[0].Forward(d.heads["b"].Forward(d.enc.emb.Forward(x))), y)
	return d.out.Forward(d.MLPHead.Forward(x)).Mul(d.config.scale.Value()).Add(d.RunningMean.Value())
}

func newDecoder() *decoder {
	d := &decoder{
		Base: Base{RunningMean: nn.NewBuffer(tensor.Ones(1))}, head: &head{nn.Dense(3)}, MLPHead: nn.Dense(2),
		layers: []*residual{newResidual(2).(*residual), newResidual(2).(*residual)}, pair: [2]nn.Module{nn.RMSNorm()},
		heads: map[string]nn.Module{"b": nn.Dense(2), "a": nn.ReLU(), "c": nil}, attn: &attention{nn.Dense(2)}, enc: &encoder{emb: nn.Dense(2)},
		teacher: nn.Dense(1), position: tensor.Ones(1), noise: tensor.NewGenerator(1), width: 2,
	}
	d.config.scale = nn.NewParam(tensor.Ones(1))
	d.again, d.enc.owner = d.layers[0], d
	d.opt = optim.SGD(nn.Params(d), 0.1)
	return d
}

func namesOf(m any) (list []string) {
	for name := range nn.Named(m) {
		list = append(list, name)
	}
	return list
}

// All kinds of fields are looked into, and what they hold is named once, in one order.
func TestNamed(t *testing.T) {
	d := newDecoder()
	want := []string{
		"running_mean", "config.scale", "lm_head.weight", "lm_head.bias", "mlp_head.weight", "mlp_head.bias",
		"layers.0.norm.weight", "layers.0.norm.bias", "layers.0.up.weight", "layers.0.up.bias", "layers.0.down.weight", "layers.0.down.bias",
		"layers.1.norm.weight", "layers.1.norm.bias", "layers.1.up.weight", "layers.1.up.bias", "layers.1.down.weight", "layers.1.down.bias",
		"heads.b.weight", "heads.b.bias", "pair.0.weight", "attn.q_proj.weight", "attn.q_proj.bias", "enc.emb.weight", "enc.emb.bias",
	}
	for range 3 { // maps have another order each time
		if got := namesOf(d); !slices.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	}
	if got := len(nn.Params(d)); got != len(want)-1 {
		t.Errorf("%d parameters beside a buffer, want %d", got, len(want)-1)
	}
	if cells := nn.Cells(d); len(cells) != len(want)+1 || cells[len(want)] != tensor.Cell(d.noise) {
		t.Errorf("the cells are not those with names and the generator: %v", cells)
	}
	for name := range nn.Named(d) {
		if name != "running_mean" {
			t.Errorf("the iteration begins with %s", name)
		}
		break
	}
	if got := namesOf(nn.Dense(3)); !slices.Equal(got, []string{"weight", "bias"}) {
		t.Errorf("the names of a layer are %v", got)
	}
	if got := namesOf((*decoder)(nil)); got != nil {
		t.Errorf("the names of nothing are %v", got)
	}
}

// A block has no Forward.
type block struct{ scale *nn.Param }

type nested struct {
	inner struct {
		one    block
		blocks []*block
	}
	byName map[string][]*block
}

// Slices, maps and structs whose types have no name hide no parts.
func TestNamedInUnnamedTypes(t *testing.T) {
	b := func() *block { return &block{nn.NewParam(tensor.Ones(1))} }
	m := &nested{byName: map[string][]*block{"x": {b()}}}
	m.inner.one, m.inner.blocks = *b(), []*block{b(), b()}
	want := []string{"inner.one.scale", "inner.blocks.0.scale", "inner.blocks.1.scale", "by_name.x.0.scale"}
	if got := namesOf(m); !slices.Equal(got, want) {
		t.Errorf("the names are %q, want %q", got, want)
	}
	if copied := nn.Frozen(m); copied.inner.blocks[1] == m.inner.blocks[1] || copied.inner.one.scale == m.inner.one.scale {
		t.Error("the frozen model shares its parameters with the model")
	}
}

func TestNamedTwice(t *testing.T) {
	type twice struct{ Scale, scale *nn.Param }
	mistaken(t, map[string]func(){
		"nn: Named: two parts of *nn_test.twice are called scale: give one of them another name by a tag": func() {
			nn.Named(&twice{nn.NewParam(tensor.Ones(1)), nn.NewParam(tensor.Ones(1))})
		},
	})
}

// A copy has the type and the names of the model, and all its links lead to the copy.
func TestCopies(t *testing.T) {
	tensor.Seed(1)
	d := newDecoder()
	x, y := tensor.Randn(3, 2), tensor.Randn(3, 2)
	want := d.Forward(x, y).Float32s()
	for name, copied := range map[string]func(*decoder) *decoder{"clone": nn.Clone[*decoder], "frozen": nn.Frozen[*decoder]} {
		c := copied(d)
		if got := c.Forward(x, y).Float32s(); !slices.Equal(got, want) {
			t.Errorf("%s: gives %v, want %v", name, got, want)
		}
		if got := namesOf(c); !slices.Equal(got, namesOf(d)) {
			t.Errorf("%s: has the names %v", name, got)
		}
		for i, p := range nn.Params(c) {
			if slices.Contains(nn.Params(d), p) {
				t.Errorf("%s: parameter %d is shared", name, i)
			}
		}
		if c.enc.owner != c || c.again != nn.Module(c.layers[0]) || c.head == d.head {
			t.Errorf("%s: points to the model", name)
		}
		if c.teacher != d.teacher || c.noise != d.noise || c.position != d.position || c.width != 2 || c.opt != d.opt {
			t.Errorf("%s: what is no part is another", name)
		}
		if c.mode.IsTraining() != (name == "clone") || !d.mode.IsTraining() {
			t.Errorf("%s: is it in training? %v", name, c.mode.IsTraining())
		}
		if c.heads["b"] == d.heads["b"] || c.pair[0] == d.pair[0] || &c.layers[0] == &d.layers[0] || len(c.heads) != 3 {
			t.Errorf("%s: lists are shared", name)
		}
	}
	if got := d.Forward(x, y).Float32s(); !slices.Equal(got, want) {
		t.Errorf("after copying, the model gives %v, want %v", got, want)
	}
}

// A dense layer takes vectors with any number of axes around them.
func TestDenseOfAnyRank(t *testing.T) {
	tensor.Seed(1)
	layer := nn.Dense(3)
	x := tensor.Randn(2, 4, 5, 6)
	y := layer.Forward(x)
	if !slices.Equal(y.Shape(), []int{2, 4, 5, 3}) {
		t.Errorf("the output has shape %v", y.Shape())
	}
	flat := layer.Forward(x.Reshape(40, 6))
	if !slices.Equal(y.Float32s(), flat.Float32s()) {
		t.Error("the bits differ from those of a matrix")
	}
	row := layer.Forward(x.Row(1).Row(3).Row(4))
	if !slices.Equal(row.Shape(), []int{3}) || !slices.Equal(row.Float32s(), flat.Row(39).Float32s()) {
		t.Errorf("a vector gives %v, want %v", row, flat.Row(39))
	}
	if empty := layer.Forward(tensor.Zeros(2, 0, 6)); !slices.Equal(empty.Shape(), []int{2, 0, 3}) {
		t.Errorf("no vectors give %v", empty.Shape())
	}
}

// A field that would lose parts without a word is a mistake, and so is a module that is nil.
func TestPartsThatAreNotFound(t *testing.T) {
	p := nn.NewParam(tensor.Ones(1))
	layers := []nn.Module{nn.ReLU()}
	mistaken(t, map[string]func(){
		"nn: Named: no parts are found in weight, a tensor.Param: want a pointer, or the tag `nn:\"-\"`": func() {
			nn.Named(&struct{ Weight nn.Param }{})
		},
		"nn: Named: no parts are found in means.0, a tensor.Buffer: want a pointer, or the tag `nn:\"-\"`": func() {
			nn.Params(&struct{ Means []nn.Buffer }{make([]nn.Buffer, 1)})
		},
		"nn: Named: no parts are found in heads, a map[int]nn.Module: want strings as keys, or the tag `nn:\"-\"`": func() {
			nn.Clone(&struct{ Heads map[int]nn.Module }{map[int]nn.Module{0: nn.ReLU()}})
		},
		"nn: Named: no parts are found in layers, a *[]nn.Module: want []nn.Module, or the tag `nn:\"-\"`": func() {
			nn.Cells(&struct{ Layers *[]nn.Module }{&layers})
		},
		"nn: Named: no parts are found in weight, a **tensor.Param: want *tensor.Param, or the tag `nn:\"-\"`": func() {
			nn.Cells(&struct{ Weight **nn.Param }{&p})
		},
		"nn: Sequential: layer 1 is nil":      func() { nn.Sequential(nn.ReLU(), nil) },
		"nn: Residual: layer 0 is nil":        func() { nn.Residual(nil) },
		"nn: Summary: the module is nil":      func() { nn.Summary(nil) },
		"nn: DataParallel: the module is nil": func() { nn.DataParallel(nil, nn.Parallel{}) },
	})
	var nothing *decoder
	mistaken(t, map[string]func(){
		"nn: Clone: the module is nil":  func() { nn.Clone(any(nothing)) },
		"nn: Frozen: the module is nil": func() { nn.Frozen(nothing) },
	})
	if held := nn.Clone(&struct{ Layer nn.Module }{(*residual)(nil)}); held.Layer != nn.Module((*residual)(nil)) {
		t.Errorf("a nil pointer became %v", held.Layer)
	}
	fine := &struct {
		Old   map[int]nn.Module `nn:"-"`
		Value nn.Param          `nn:"-"`
		Names map[int]string
		Next  *int
	}{}
	if got := namesOf(fine); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
