package ports

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A fixture is what PyTorch computes with an original, see testdata/ports.py.
type fixture struct {
	Shape  []int
	Output []float64 // a sketch
	Loss   float64
	After  []float64 // of a step or several: the loss, or what the port says
	Params []struct {
		Name  string
		Shape []int
		Grad  []float64 // a sketch; nil if the loss does not depend on it
	}
}

// A port is a model, what it makes of the fixture's inputs, and if they are others than usual: the loss, and
// the training after the first backward pass.
type port struct {
	model  any
	output func() *tensor.Tensor
	loss   func(y *tensor.Tensor) *tensor.Tensor
	after  func() []float64
}

var small = Encoder{Width: 12, Depth: 2, Heads: 2, HeadWidth: 4, Hidden: 20}

// of is the port of a module.
func of(m nn.Module, x *tensor.Tensor) port {
	return port{model: m, output: func() *tensor.Tensor { return m.Forward(x) }}
}

var ports = map[string]func() port{
	"simple_uvit": func() port {
		e := small
		e.Depth = 3 // a skip, a layer without one, and its end
		return of(NewSimpleUViT(e, 4, 5, 3), fill(7, 2, 3, 8, 12))
	},
	"vit_detpool": func() port {
		m := NewDetPool(DetPoolConfig{Encoder: small, Size: 12, Patch: 4, Classes: 5})
		return port{model: m, output: func() *tensor.Tensor {
			x := fill(7, 2, 3, 12, 12)
			m.find = nil
			elements, patches, none := m.Forward(x, fill(8, 2, 12, 12).GtScalar(0.45)), m.Forward(x, fill(9, 2, 9).GtScalar(0)), m.Forward(x, nil)
			m.find = func(x *tensor.Tensor) *tensor.Tensor { return x.Row(0).Slice(0, 0, 2).GtScalar(0.45) }
			return tensor.Concat(0, elements, patches, none, m.Forward(x, nil))
		}}
	},
	"mnist": func() port {
		m := NewMNIST(0, 0)
		x, labels := fill(7, 3, 1, 28, 28), tensor.From([]int{4, 0, 9})
		p := of(m, x)
		p.loss = func(y *tensor.Tensor) *tensor.Tensor { return nn.NLLLoss(y, labels) }
		p.after = func() []float64 { // a second step of AdaDelta, which knows the first
			opt := optim.AdaDelta(m.Params(), 1)
			opt.Schedule = optim.StepDecay(1, 0.7) // epochs of one batch
			opt.Step()
			m.Train(opt, []*tensor.Tensor{x}, []*tensor.Tensor{labels})
			loss, right := m.Test([]*tensor.Tensor{x, x}, []*tensor.Tensor{labels, labels})
			return []float64{loss.Item(), right.Item()}
		}
		return p
	},
	"look_vit": func() port {
		return of(NewLookViT(LookViTConfig{
			Encoder: Encoder{Width: 12, Depth: 2, Heads: 2, HeadWidth: 4, Hidden: 24},
			Size:    12, Patch: 4, Classes: 5, HighresPatch: 2, HighresHidden: 36, CrossHeads: 3, CrossHeadWidth: 5, Kernel: 3,
		}), fill(7, 2, 3, 12, 12))
	},
	"na_vit_nested_tensor_3d": func() port {
		m := NewNaViT(NaViTConfig{Encoder: small, Frames: 4, Size: 12, FramePatch: 2, Patch: 4, Classes: 5, Registers: 3})
		volumes := []*tensor.Tensor{fill(7, 3, 4, 8, 8), fill(8, 3, 2, 12, 4), fill(9, 3, 4, 4, 12)}
		return port{model: m, output: func() *tensor.Tensor { return m.Forward(volumes) }}
	},
	"vit_nd_pope": func() port {
		m := NewViTND(ViTNDConfig{Encoder: small, Patches: []int{2, 2, 4, 3}, Classes: 5, ZeroFreqs: 0.3})
		x := fill(7, 2, 3, 4, 2, 8, 6)
		return port{model: m, output: func() *tensor.Tensor { return tensor.Concat(1, m.Forward(x), m.Embed(x).Reshape(2, -1)) }}
	},
	"cct": func() port {
		e := small
		e.Heads, e.HeadWidth = 3, 4
		return of(NewCCT(CCTConfig{Encoder: e, Convs: 2, Planes: 64, Conv: [3]int{3, 1, 1}, Pool: [3]int{3, 2, 1}, Classes: 5}), fill(7, 2, 3, 10, 12))
	},
	"cvt": func() port {
		return of(NewCvT(5, 0,
			Stage{Width: 6, Kernel: 5, Stride: 2, ProjectionKernel: 3, KeyStride: 2, Heads: 1, HeadWidth: 64, Depth: 1, Widening: 2},
			Stage{Width: 8, Kernel: 3, Stride: 2, ProjectionKernel: 3, KeyStride: 2, Heads: 2, HeadWidth: 64, Depth: 2, Widening: 3},
			Stage{Width: 10, Kernel: 3, Stride: 1, ProjectionKernel: 1, KeyStride: 1, Heads: 1, HeadWidth: 64, Depth: 1, Widening: 1},
		), fill(7, 2, 3, 14, 12))
	},
	"cct_learnable": func() port {
		e := small
		e.Heads, e.HeadWidth, e.Hidden = 3, 4, 24
		return of(NewCCT(CCTConfig{
			Encoder: e, Size: [2]int{17, 20}, Convs: 1, Conv: [3]int{5, 2, 2}, Pool: [3]int{3, 2, 0}, Positions: Learned, Classes: 5,
		}), fill(7, 2, 3, 17, 20))
	},
	"simmim": func() port {
		c := ViTConfig{Encoder: small, Sizes: []int{8, 12}, Patches: []int{4, 4}, Classes: 5}
		m := NewSimMIM(NewEncoder(c), c, 3, 0.5)
		x, noise := fill(7, 2, 3, 8, 12), fill(8, 2, 6)
		return port{
			model: m, output: func() *tensor.Tensor { return m.lossOf(x, noise) },
			loss: func(y *tensor.Tensor) *tensor.Tensor { return y },
		}
	},
	"simple_flash_attn_vit": func() port { return of(NewSimpleViT(small, 4, 5), fill(7, 2, 3, 8, 12)) },
	"vit_detpool_tokens": func() port {
		m := NewDetPool(DetPoolConfig{Encoder: small, Size: 12, Patch: 4, NoClassToken: true})
		return port{model: m, output: func() *tensor.Tensor { return m.Forward(fill(7, 2, 3, 12, 12), fill(9, 2, 9).GtScalar(0)) }}
	},
	"vit_1d": func() port {
		m := NewViT(ViTConfig{Encoder: small, Sizes: []int{24}, Patches: []int{4}, Classes: 5})
		m.clsToken = weights(1, small.Width)
		return of(m, fill(7, 2, 3, 24))
	},
	"vit_3d": func() port {
		return of(NewViT(ViTConfig{Encoder: small, Sizes: []int{4, 8, 8}, Patches: []int{2, 4, 4}, Classes: 5, Mean: true}), fill(7, 2, 3, 4, 8, 8))
	},
}

// Ports have the results, losses and gradients of their originals, and the same loss after a step.
func TestPorts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) != len(ports) {
		t.Fatalf("%d fixtures of %d ports, %v", len(files), len(ports), err)
	}
	for name, start := range ports {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("testdata/" + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var f fixture
			if err := json.Unmarshal(text, &f); err != nil {
				t.Fatal(err)
			}
			against(t, start(), f)
		})
	}
}

func against(t *testing.T, p port, f fixture) {
	params := load(t, p, f)
	if p.loss == nil {
		p.loss = func(y *tensor.Tensor) *tensor.Tensor { return y.Mul(fill(2, y.Shape()...)).Sum() }
	}
	if p.after == nil {
		p.after = func() []float64 {
			optim.SGD(params, 0.01).Step()
			return p.loss(p.output()).Float64s()
		}
	}
	y := p.output()
	if !slices.Equal(y.Shape(), f.Shape) {
		t.Fatalf("the output has shape %v, want %v", y.Shape(), f.Shape)
	}
	loss := p.loss(y)
	worst := compare(t, "output", sketch(y), f.Output)
	worst = max(worst, compare(t, "loss", loss.Float64s(), []float64{f.Loss}))
	loss.Backward()
	for i, p := range f.Params {
		var got []float64
		if g := params[i].Grad(); g != nil {
			got = sketch(turned(p.Name, g))
		}
		worst = max(worst, compare(t, "gradient of "+p.Name, got, p.Grad))
	}
	worst = max(worst, compare(t, "after a step", p.after(), f.After))
	t.Logf("greatest difference %.1e", worst)
}

// load gives the parameters of p the fixture's values, and returns them in its order.
func load(t *testing.T, p port, f fixture) []*nn.Param {
	t.Helper()
	byName := map[string]*nn.Param{}
	for name, cell := range nn.Named(p.model) {
		if param, ok := cell.(*nn.Param); ok {
			byName[name] = param
			if param.IsSet() { // in float32
				param.Set(param.Value().Detach().As(tensor.Float64))
			}
		}
	}
	p.output() // so that all have values
	var params []*nn.Param
	for k, want := range f.Params {
		param := byName[want.Name]
		if param == nil {
			t.Fatalf("there is no parameter %s", want.Name)
		}
		delete(byName, want.Name)
		value := fill(k, want.Shape...)
		if strings.HasSuffix(want.Name, "weight") && len(want.Shape) > 1 {
			value = value.MulScalar(math.Sqrt(12 / float64(value.Size()/want.Shape[0])))
		}
		value = turned(want.Name, value)
		if param.IsSet() && !slices.Equal(param.Value().Shape(), value.Shape()) {
			t.Errorf("%s has shape %v, want %v", want.Name, param.Value().Shape(), value.Shape())
		}
		param.Set(value)
		params = append(params, param)
	}
	for name := range byName {
		t.Errorf("the original has no parameter %s", name)
	}
	return params
}

// turned transposes the weight of a dense layer, which PyTorch keeps as (out, in).
func turned(name string, x *tensor.Tensor) *tensor.Tensor {
	if x.Rank() == 2 && strings.HasSuffix(name, "weight") {
		return x.T()
	}
	return x
}

// compare returns the greatest difference relative to the greatest number. It has to be less than 1e-9.
func compare(t *testing.T, name string, got, want []float64) (worst float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %v, want %v", name, got, want)
		return 0
	}
	greatest := 1e-6 // gradients that are 0 but for rounding
	for _, w := range want {
		greatest = max(greatest, math.Abs(w))
	}
	for i, w := range want {
		d := math.Abs(got[i]-w) / greatest
		if !(d < 1e-9) {
			t.Errorf("%s: number %d is %v, want %v", name, i, got[i], w)
		}
		worst = max(worst, d)
	}
	return worst
}

// fill returns numbers from -0.5 to 0.5 that look random: the k-th tensor of a shape.
func fill(k int, shape ...int) *tensor.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	data := make([]float64, n)
	for i := range data {
		data[i] = float64((i*i*7919+i*k*1049+k*31)%65537)/65537 - 0.5
	}
	return tensor.From(data, shape...)
}

// sketch is 8 sums, the j-th of every eighth element from j on, each multiplied by a weight of its own.
func sketch(x *tensor.Tensor) []float64 {
	terms := x.Mul(fill(1, x.Shape()...)).Float64s()
	sums := make([]float64, min(8, len(terms)))
	for i, v := range terms {
		sums[i%8] += v
	}
	return sums
}

// What is drawn at random is so in training only: it differs each time, and a frozen model has none of it.
func TestRandomPartsAreOfTraining(t *testing.T) {
	e := small
	e.Dropout = 0.4
	x, volumes := fill(7, 8, 3, 10, 12).As(tensor.Float32), []*tensor.Tensor{fill(7, 3, 4, 8, 8).As(tensor.Float32)}
	for name, run := range map[string]func(isFrozen bool) *tensor.Tensor{
		"dropPath": once(
			NewCCT(CCTConfig{Encoder: small, Convs: 1, Conv: [3]int{3, 1, 1}, Pool: [3]int{3, 2, 1}, Classes: 5, StochasticDepth: 0.5}),
			func(m *CCT) *tensor.Tensor { return m.Forward(x) }),
		"tokens": once(
			NewNaViT(NaViTConfig{Encoder: small, Frames: 4, Size: 8, FramePatch: 2, Patch: 4, Classes: 5, Registers: 3, TokenDropout: 0.4}),
			func(m *NaViT) *tensor.Tensor { return m.Forward(volumes) }),
		"dropout": once(
			NewViT(ViTConfig{Encoder: e, Sizes: []int{10, 12}, Patches: []int{5, 4}, Classes: 5, EmbeddingDropout: 0.1}),
			func(m *ViT) *tensor.Tensor { return m.Forward(x) }),
	} {
		if slices.Equal(run(false).Float32s(), run(false).Float32s()) {
			t.Errorf("%s: the model computes the same twice in training", name)
		}
		if !slices.Equal(run(true).Float32s(), run(true).Float32s()) {
			t.Errorf("%s: the frozen model computes something else the second time", name)
		}
	}
}

func once[M any](m M, of func(M) *tensor.Tensor) func(isFrozen bool) *tensor.Tensor {
	return func(isFrozen bool) *tensor.Tensor {
		if isFrozen {
			return of(nn.Frozen(m))
		}
		return of(m)
	}
}

// A dropped path is 0 for all of a sample, and those that are left make up for it.
func TestDropPath(t *testing.T) {
	y := (&dropPath{p: 0.25}).Forward(tensor.Ones(4000, 2))
	for i, v := range y.Float32s() {
		if v != 0 && math.Abs(float64(v)-1/0.75) > 1e-6 {
			t.Fatalf("element %d is %v, want 0 or 4/3", i, v)
		}
	}
	if y.Slice(1, 0, 1).Ne(y.Slice(1, 1, 2)).Any().ItemInt() != 0 {
		t.Error("a sample is left out in part")
	}
	if mean := y.Mean().Item(); math.Abs(mean-1) > 0.1 {
		t.Errorf("the mean is %v, want 1", mean)
	}
}

// The loss of random patches has gradients, and is another one each time.
func TestSimMIMDrawsPatches(t *testing.T) {
	c := ViTConfig{Encoder: small, Sizes: []int{8, 12}, Patches: []int{4, 4}, Classes: 5}
	m := NewSimMIM(NewEncoder(c), c, 3, 0.5)
	x := fill(7, 2, 3, 8, 12).As(tensor.Float32)
	a, b := m.Loss(x), m.Loss(x)
	a.Backward()
	if a.Item() == b.Item() || !(m.maskToken.Grad().Norm().Item() > 0) {
		t.Errorf("losses %v and %v, and a gradient of norm %v", a.Item(), b.Item(), m.maskToken.Grad().Norm().Item())
	}
}
