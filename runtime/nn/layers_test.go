package nn_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A kind is a layer of the package and an input that it takes.
type kind struct {
	make    func() nn.Module
	shape   []int // of the input, whose first axis numbers samples
	classes bool  // the input is of classes 0 to 3
	mixes   bool  // in training a sample's result depends on others, or on chance
}

// kinds are all layers, by the functions that make them.
var kinds = map[string]kind{
	"AdaptiveAvgPool2D": {make: func() nn.Module { return nn.AdaptiveAvgPool2D(2, 3) }, shape: []int{4, 2, 3, 4}},
	"AvgPool1D":         {make: func() nn.Module { return nn.AvgPool1D(tensor.Pool{Window: tensor.Both(2)}) }, shape: []int{4, 2, 4}},
	"AvgPool2D":         {make: func() nn.Module { return nn.AvgPool2D(tensor.Pool{Window: tensor.Both(2)}) }, shape: []int{4, 2, 4, 4}},
	"BatchNorm":         {make: func() nn.Module { return nn.BatchNorm() }, shape: []int{4, 3, 2}, mixes: true},
	"Bidirectional":     {make: func() nn.Module { return nn.Bidirectional(nn.GRU(3, 2)) }, shape: []int{4, 3, 2}},
	"Conv1D":            {make: func() nn.Module { return nn.Conv1D(2, 3, tensor.Conv{}) }, shape: []int{4, 2, 5}},
	"ConvTranspose1D":   {make: func() nn.Module { return nn.ConvTranspose1D(2, 3, tensor.ConvTranspose{Stride: tensor.Both(2)}) }, shape: []int{4, 2, 3}},
	"ConvTranspose2D": {make: func() nn.Module {
		return nn.ConvTranspose2D(3, tensor.Both(2), tensor.ConvTranspose{Stride: tensor.Both(2)})
	},
		shape: []int{4, 2, 2, 3}},
	"Conv2D":       {make: func() nn.Module { return nn.Conv2D(2, tensor.Both(3), tensor.Conv{}) }, shape: []int{4, 2, 4, 4}},
	"Dense":        {make: func() nn.Module { return nn.Dense(3) }, shape: []int{4, 2, 5}},
	"Dropout":      {make: func() nn.Module { return nn.Dropout(0.5) }, shape: []int{4, 9}, mixes: true},
	"Dropout2D":    {make: func() nn.Module { return nn.Dropout2D(0.5) }, shape: []int{4, 9, 2, 2}, mixes: true},
	"ELU":          {make: func() nn.Module { return nn.ELU(1.5) }, shape: []int{4, 5}},
	"Embedding":    {make: func() nn.Module { return nn.Embedding(4, 3) }, shape: []int{4, 5}, classes: true},
	"Flatten":      {make: func() nn.Module { return nn.Flatten() }, shape: []int{4, 2, 3}},
	"Func":         {make: func() nn.Module { return nn.Func("Square()", (*tensor.Tensor).Square) }, shape: []int{4, 3}},
	"GELU":         {make: nn.GELU, shape: []int{4, 5}},
	"GRU":          {make: func() nn.Module { return nn.GRU(3, 2) }, shape: []int{4, 3, 2}},
	"GroupNorm":    {make: func() nn.Module { return nn.GroupNorm(2) }, shape: []int{4, 4, 3}},
	"HardSwish":    {make: nn.HardSwish, shape: []int{4, 5}},
	"Identity":     {make: nn.Identity, shape: []int{4, 5}},
	"InstanceNorm": {make: func() nn.Module { return nn.InstanceNorm() }, shape: []int{4, 2, 3}},
	"LSTM":         {make: func() nn.Module { return nn.LSTM(3, 2) }, shape: []int{4, 3, 2}},
	"LayerNorm":    {make: func() nn.Module { return nn.LayerNorm() }, shape: []int{4, 5}},
	"LeakyReLU":    {make: func() nn.Module { return nn.LeakyReLU(0.1) }, shape: []int{4, 5}},
	"LogSoftmax":   {make: func() nn.Module { return nn.LogSoftmax(-1) }, shape: []int{4, 5}},
	"MaxPool1D":    {make: func() nn.Module { return nn.MaxPool1D(tensor.Pool{Window: tensor.Both(2)}) }, shape: []int{4, 2, 4}},
	"MaxPool2D":    {make: func() nn.Module { return nn.MaxPool2D(tensor.Pool{Window: tensor.Both(2)}) }, shape: []int{4, 2, 4, 4}},
	"MultiHeadAttention": {make: func() nn.Module { return nn.MultiHeadAttention(8, 4, nn.Heads{KV: 2, Causal: true}) },
		shape: []int{4, 3, 5}},
	"PReLU":           {make: func() nn.Module { return nn.PReLU(3) }, shape: []int{4, 3, 2}},
	"Pad2D":           {make: func() nn.Module { return nn.Pad2D(tensor.Replicate, tensor.Pair{1, 2}) }, shape: []int{4, 2, 2, 3}},
	"PixelShuffle":    {make: func() nn.Module { return nn.PixelShuffle(2) }, shape: []int{4, 8, 2, 3}},
	"RNN":             {make: func() nn.Module { return nn.RNN(3, 2) }, shape: []int{4, 3, 2}},
	"PaddedEmbedding": {make: func() nn.Module { return nn.PaddedEmbedding(4, 3, 1) }, shape: []int{4, 5}, classes: true},
	"RMSNorm":         {make: func() nn.Module { return nn.RMSNorm() }, shape: []int{4, 5}},
	"ReLU":            {make: nn.ReLU, shape: []int{4, 5}},
	"Residual": {make: func() nn.Module {
		return nn.Residual(nn.LayerNorm(), nn.MultiHeadAttention(6, 2), nn.ReLU(), nn.Dense(5))
	}, shape: []int{4, 3, 5}},
	"Sequential": {make: func() nn.Module { return nn.Sequential(nn.Dense(7), nn.ReLU(), nn.Dense(2)) }, shape: []int{4, 5}},
	"SiLU":       {make: nn.SiLU, shape: []int{4, 5}},
	"Sigmoid":    {make: nn.Sigmoid, shape: []int{4, 5}},
	"Softmax":    {make: func() nn.Module { return nn.Softmax(-1) }, shape: []int{4, 5}},
	"Softplus":   {make: nn.Softplus, shape: []int{4, 5}},
	"Tanh":       {make: nn.Tanh, shape: []int{4, 5}},
}

func (k kind) input(g *tensor.Generator) *tensor.Tensor {
	if k.classes {
		return g.RandInt(0, 4, k.shape...)
	}
	return g.Randn(k.shape...).As(tensor.Float64)
}

// Every exported function that returns a layer has its row among kinds.
func TestKindsAreComplete(t *testing.T) {
	pkgs, err := parser.ParseDir(token.NewFileSet(), ".", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0)
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, f := range pkgs["nn"].Files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.IsExported() && fn.Type.Results != nil {
				result := fn.Type.Results.List[0].Type
				if star, ok := result.(*ast.StarExpr); ok {
					result = star.X
				}
				if of, ok := result.(*ast.Ident); ok && slices.Contains([]string{"Module", "Recurrent", "Attention"}, of.Name) {
					made = append(made, fn.Name.Name)
				}
			}
		}
	}
	slices.Sort(made)
	if have := slices.Sorted(maps.Keys(kinds)); !slices.Equal(made, have) {
		t.Errorf("the package makes %v, kinds has %v", made, have)
	}
}

// each runs f for every layer, with parameters, and an input.
func each(t *testing.T, f func(t *testing.T, k kind, m nn.Module, x *tensor.Tensor)) {
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t.Run(name, func(t *testing.T) {
			tensor.Seed(3)
			k := kinds[name]
			m, x := k.make(), k.input(tensor.NewGenerator(4))
			m.Forward(x)
			f(t, k, m, x)
		})
	}
}

// again returns the results of f with the same random numbers each time.
func again(f func() *tensor.Tensor) []float64 {
	s := tensor.Snapshot(tensor.DefaultGenerator())
	defer s.Restore()
	return f().As(tensor.Float64).Float64s()
}

// Copies of a layer give what it gives, under the same names. Training one of them changes no other,
// and going back to a Snapshot undoes it.
func TestLayersInCopies(t *testing.T) {
	each(t, func(t *testing.T, k kind, m nn.Module, x *tensor.Tensor) {
		result := func(m nn.Module) []float64 { return again(func() *tensor.Tensor { return m.Forward(x) }) }
		clone, frozen := nn.Clone(m), nn.Frozen(m)
		before := nn.Snapshot(m)
		want, use := result(m), result(frozen)
		before.Restore()
		if got := result(clone); !slices.Equal(got, want) {
			t.Errorf("the clone gives %v, want %v", got, want)
		}
		if !k.mixes && !slices.Equal(use, want) {
			t.Errorf("the frozen layer gives %v, want %v", use, want)
		}
		for _, c := range []nn.Module{clone, frozen, nn.Frozen(clone), nn.Clone(frozen)} {
			if !slices.Equal(namesOf(c), namesOf(m)) {
				t.Errorf("a copy has the names %v, want %v", namesOf(c), namesOf(m))
			}
		}
		if listed, found := m.Params(), nn.Params(m); !slices.Equal(listed, found) {
			t.Errorf("Params lists %v, and fields have %v", listed, found)
		}
		if params := m.Params(); len(params) > 0 {
			optim.SGD(params, 0.1).Minimize(m.Forward(x).Square().Sum())
			if k.mixes || slices.Equal(result(m), want) {
				before.Restore()
				optim.SGD(params, 0.1).Minimize(m.Forward(x).AddScalar(1).Square().Sum())
			}
			if got := result(m); slices.Equal(got, want) {
				t.Error("it learns nothing")
			}
		}
		if got := result(frozen); !slices.Equal(got, use) {
			t.Errorf("the frozen layer gives %v later, want %v", got, use)
		}
		before.Restore()
		if got := result(m); !slices.Equal(got, want) {
			t.Errorf("from the Snapshot on it gives %v, want %v", got, want)
		}
	})
}

// Gradients are slopes: of the sum of squares of the results along random directions of inputs and parameters.
func TestLayersHaveSlopes(t *testing.T) {
	const step = 1e-5
	each(t, func(t *testing.T, k kind, m nn.Module, x *tensor.Tensor) {
		g := tensor.NewGenerator(5)
		for _, p := range m.Params() { // float64, and not at 0, where biases begin
			p.Set(p.Value().As(tensor.Float64).Add(g.Randn(p.Value().Shape()...).As(tensor.Float64).MulScalar(0.3)))
		}
		value := func(x *tensor.Tensor) *tensor.Tensor { return m.Forward(x).AddScalar(0.3).Square().Sum() }
		check := func(what string, gradient, direction *tensor.Tensor, at func(step float64) float64) {
			want := (at(step) - at(-step)) / (2 * step)
			got := 0.0
			if gradient != nil {
				got = gradient.Mul(direction).Sum().Item()
			}
			if math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
				t.Errorf("the gradient of %s is %v along a direction, the slope %v", what, got, want)
			}
		}
		state := nn.Snapshot(m, tensor.DefaultGenerator())
		at := func(x *tensor.Tensor) float64 {
			state.Restore()
			return value(x).Item()
		}
		if !k.classes {
			tracked := x.Track()
			gradient := tensor.Grad(value(tracked), tracked)[0]
			direction := g.Randn(k.shape...).As(tensor.Float64)
			check("the input", gradient, direction, func(step float64) float64 { return at(x.AddScaled(direction, step)) })
		}
		state.Restore()
		if params := m.Params(); len(params) > 0 {
			value(x).Backward()
			gradients := map[*nn.Param]*tensor.Tensor{}
			for _, p := range params {
				gradients[p] = p.Grad()
			}
			for name, c := range nn.Named(m) {
				if p, ok := c.(*nn.Param); ok {
					w, gradient := p.Value().Detach(), gradients[p]
					direction := g.Randn(w.Shape()...).As(tensor.Float64)
					check(name, gradient, direction, func(step float64) float64 {
						state.Restore()
						p.Set(w.AddScaled(direction, step))
						return value(x).Item()
					})
					p.Set(w)
				}
			}
		}
	})
}

// Nothing waits, and a frozen layer gives each sample what it gives it in a batch. Shards of a batch
// give what all of it gives.
func TestLayersByTheSample(t *testing.T) {
	each(t, func(t *testing.T, k kind, m nn.Module, x *tensor.Tensor) {
		frozen := nn.Frozen(m)
		func() {
			defer asyncrt.SyncMode(asyncrt.SyncMode(asyncrt.Error))
			nn.Summary(m, x)
			m.Forward(x).As(tensor.Float64).Sum()
			frozen.Forward(x)
		}()
		batch := frozen.Forward(x)
		for i := range k.shape[0] {
			alone := frozen.Forward(x.Slice(0, i, i+1)).As(tensor.Float64).Flatten().Float64s()
			if want := batch.Row(i).As(tensor.Float64).Flatten().Float64s(); !slices.Equal(alone, want) {
				t.Errorf("sample %d alone gives %v, in a batch %v", i, alone, want)
			}
		}
		mapped := tensor.VMap(func(rows ...*tensor.Tensor) *tensor.Tensor { return frozen.Forward(rows[0].Unsqueeze(0)).Squeeze(0) }, x)
		if !slices.Equal(mapped.As(tensor.Float64).Float64s(), batch.As(tensor.Float64).Float64s()) {
			t.Errorf("VMap gives %v, want %v", mapped, batch)
		}
		if k.mixes {
			return
		}
		y := m.Forward(x)
		par := nn.DataParallel(m, nn.Parallel{Devices: []device.Device{device.CPU(), device.CPU()}, Shards: 2})
		for i, v := range par.Forward(x).As(tensor.Float64).Float64s() {
			if want := y.As(tensor.Float64).Float64s()[i]; math.Abs(v-want) > 1e-12*(1+math.Abs(want)) && !k.classes {
				t.Errorf("element %d is %v in parallel, want %v", i, v, want)
			}
		}
	})
}
