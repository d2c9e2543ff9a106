package nn_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A fixture is what PyTorch has computed: testdata/pytorch.py writes them.
type fixture struct {
	Name    string
	Tensors map[string]struct {
		Shape []int
		Data  []float64
	}
}

func (f fixture) tensor(name string) *tensor.Tensor {
	t := f.Tensors[name]
	return tensor.From(t.Data, t.Shape...)
}

// A forward computes the results of inputs, with a layer if it has parameters.
type forward struct {
	inputs string // of the fixture, in order
	layer  any
	of     func(in []*tensor.Tensor) []*tensor.Tensor
}

func layer(m nn.Module) forward {
	return forward{"x", m, func(in []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{m.Forward(in[0])} }}
}

func recurrent(r *nn.Recurrent, inputs string) forward {
	return forward{inputs, r, func(in []*tensor.Tensor) []*tensor.Tensor {
		from := nn.Hidden{H: in[1]}
		if len(in) > 2 {
			from.C = in[2]
		}
		y, end := r.Run(in[0], from)
		if end.C == nil {
			return []*tensor.Tensor{y, end.H}
		}
		return []*tensor.Tensor{y, end.H, end.C}
	}}
}

func loss(f func(pred, target *tensor.Tensor) *tensor.Tensor, target *tensor.Tensor) forward {
	return forward{"x", nil, func(in []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{f(in[0], target)} }}
}

func pairs(f func(a, b *tensor.Tensor) *tensor.Tensor) forward {
	return forward{"x other", nil, func(in []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{f(in[0], in[1])} }}
}

// forwards are what is compared with PyTorch, by the names of fixtures.
func forwards() map[string]forward {
	attention, grouped, elsewhere := nn.MultiHeadAttention(8, 4), nn.MultiHeadAttention(8, 4, nn.Heads{KV: 2, Causal: true}), nn.MultiHeadAttention(8, 4)
	all := map[string]forward{
		"Dense":               layer(nn.Dense(4)),
		"Conv2D":              layer(nn.Conv2D(6, tensor.Pair{2, 3}, tensor.Conv{Stride: tensor.Pair{1, 2}, Padding: tensor.Pair{0, 1}, Groups: 2})),
		"BatchNorm [N C]":     layer(nn.BatchNorm()),
		"BatchNorm [N C L]":   layer(nn.BatchNorm()),
		"BatchNorm [N C H W]": layer(nn.BatchNorm()),
		"GroupNorm":           layer(nn.GroupNorm(2)),
		"LayerNorm":           layer(nn.LayerNorm()),
		"LeakyReLU":           layer(nn.LeakyReLU(0.1)),
		"ELU":                 layer(nn.ELU(1.3)),
		"GELU":                layer(nn.GELU()),
		"SiLU":                layer(nn.SiLU()),
		"Sigmoid":             layer(nn.Sigmoid()),
		"Tanh":                layer(nn.Tanh()),
		"Softplus":            layer(nn.Softplus()),
		"Softmax":             layer(nn.Softmax(0)),
		"LogSoftmax":          layer(nn.LogSoftmax(0)),
		"PaddedEmbedding":     layer(nn.PaddedEmbedding(5, 2, 1)),
		"LSTM":                recurrent(nn.LSTM(4, 2), "x h c"),
		"GRU":                 recurrent(nn.GRU(4, 2), "x h"),
		"RNN":                 recurrent(nn.RNN(4, 2), "x h"),
		"LSTM both":           recurrent(nn.Bidirectional(nn.LSTM(4, 2)), "x h c"),
		"GRU both":            recurrent(nn.Bidirectional(nn.GRU(4, 2)), "x h"),
		"Conv1D":              layer(nn.Conv1D(6, 3, tensor.Conv{Stride: tensor.Both(2), Padding: tensor.Both(1), Groups: 2})),
		"ConvTranspose1D": layer(nn.ConvTranspose1D(6, 3,
			tensor.ConvTranspose{Stride: tensor.Both(2), Padding: tensor.Both(1), OutputPadding: tensor.Both(1), Groups: 2})),
		"ConvTranspose2D": layer(nn.ConvTranspose2D(6, tensor.Pair{2, 3}, tensor.ConvTranspose{
			Stride: tensor.Pair{1, 2}, Padding: tensor.Pair{0, 1}, OutputPadding: tensor.Pair{0, 1}, Dilation: tensor.Pair{2, 1}, Groups: 2})),
		"InstanceNorm":                 layer(nn.InstanceNorm()),
		"MaxPool1D":                    layer(nn.MaxPool1D(tensor.Pool{Window: tensor.Both(3), Stride: tensor.Both(2), Padding: tensor.Both(1)})),
		"AvgPool1D":                    layer(nn.AvgPool1D(tensor.Pool{Window: tensor.Both(3), Stride: tensor.Both(2), Padding: tensor.Both(1)})),
		"AdaptiveAvgPool2D":            layer(nn.AdaptiveAvgPool2D(2, 3)),
		"AdaptiveAvgPool2D global":     layer(nn.AdaptiveAvgPool2D(1, 1)),
		"HardSwish":                    layer(nn.HardSwish()),
		"PReLU":                        layer(nn.PReLU(1)),
		"PReLU channels":               layer(nn.PReLU(3)),
		"CosineSimilarity":             pairs(nn.CosineSimilarity),
		"Attention":                    layer(attention),
		"Attention grouped and causal": layer(grouped),
		"Attention elsewhere": {"x memory mask", elsewhere, func(in []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{elsewhere.Attend(in[0], in[1], in[2].NeScalar(0))}
		}},
	}
	targets := tensor.From([]float64{0, 1, 2, 0.3, 1, 0.9}, 2, 3)
	labels := tensor.From([]int64{3, -100, 0, 2, 1})
	weights := tensor.From([]float64{1, 0.5, 2, 3})
	for reduction, name := range []string{"mean", "sum", "none"} {
		with := func(l nn.Loss) nn.Loss {
			l.Reduction = nn.Reduction(reduction)
			return l
		}
		all["L1 "+name] = loss(with(nn.Loss{}).L1, targets)
		all["MSE "+name] = loss(with(nn.Loss{}).MSE, targets)
		all["Huber "+name] = loss(with(nn.Loss{Delta: 0.7}).Huber, targets)
		all["BCEWithLogits "+name] = loss(with(nn.Loss{}).BCEWithLogits, targets)
		all["BCEWithLogits positive "+name] = loss(with(nn.Loss{Positive: tensor.From([]float64{1, 2, 0.5})}).BCEWithLogits, targets)
		ignore := []int64{7, -100}
		all["CrossEntropy ignore "+name] = loss(with(nn.Loss{Ignore: ignore}).CrossEntropy, labels)
		all["CrossEntropy weights "+name] = loss(with(nn.Loss{Ignore: ignore, Weights: weights}).CrossEntropy, labels)
		all["CrossEntropy smoothing "+name] = loss(with(nn.Loss{Ignore: ignore, Smoothing: 0.2}).CrossEntropy, labels)
		all["CrossEntropy all "+name] = loss(with(nn.Loss{Ignore: ignore, Weights: weights, Smoothing: 0.2}).CrossEntropy, labels)
		all["BCE "+name] = loss(with(nn.Loss{}).BCE, tensor.From([]float64{0, 0.2, 1, 0.3, 1, 1}, 2, 3))
		all["CosineEmbedding "+name] = pairs(func(a, b *tensor.Tensor) *tensor.Tensor {
			return with(nn.Loss{Margin: 0.1}).CosineEmbedding(a, b, tensor.From([]float64{1, -1, -1, 1, -1}))
		})
		all["NLL "+name] = loss(with(nn.Loss{Ignore: ignore, Weights: weights}).NLL, labels)
	}
	all["KLDiv mean"] = loss(nn.KLDiv, tensor.From([]float64{0.1, 0.2, 0.3, 0.4, 0, 0.5, 0.5, 0, 1, 0, 0, 0}, 3, 4))
	return all
}

// Layers and losses give the results and gradients of PyTorch's, with parameters of the same names.
func TestAgainstPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/pytorch.json")
	if err != nil {
		t.Fatal(err)
	}
	var fixtures []fixture
	if err := json.Unmarshal(text, &fixtures); err != nil {
		t.Fatal(err)
	}
	all := forwards()
	for _, f := range fixtures {
		t.Run(f.Name, func(t *testing.T) {
			against(t, f, all[f.Name])
		})
		delete(all, f.Name)
	}
	for name := range all {
		t.Errorf("there is no fixture for %s", name)
	}
}

func against(t *testing.T, f fixture, want forward) {
	var in, tracked []*tensor.Tensor
	var names []string
	for name := range strings.FieldsSeq(want.inputs) {
		x := f.tensor(name)
		if strings.HasSuffix(f.Name, "Embedding") {
			x = x.As(tensor.Int64)
		}
		if _, ok := f.Tensors["grad."+name]; ok {
			x = x.Track()
			tracked, names = append(tracked, x), append(names, "grad."+name)
		}
		in = append(in, x)
	}
	compare := func(name string, got *tensor.Tensor) {
		t.Helper()
		w := f.Tensors[name]
		if !slices.Equal(got.Shape(), w.Shape) {
			t.Errorf("%s has shape %v, want %v", name, got.Shape(), w.Shape)
			return
		}
		for i, v := range got.As(tensor.Float64).Float64s() {
			if d := math.Abs(v - w.Data[i]); !(d <= 1e-9*(1+math.Abs(w.Data[i]))) {
				t.Errorf("%s: element %d is %v, want %v", name, i, v, w.Data[i])
			}
		}
	}
	var params []*nn.Param
	if want.layer != nil {
		want.of(in) // so that there are parameters and buffers
		for name, cell := range nn.Named(want.layer) {
			if p, ok := cell.(*nn.Param); ok {
				p.Set(f.tensor("param." + name))
				params = append(params, p)
			} else {
				b, shape := cell.(*nn.Buffer), cell.Value().Shape()
				x := tensor.From(make([]float64, shape.Size()), shape...)
				if name == "running_var" {
					x = x.AddScalar(1)
				}
				b.Set(x)
			}
		}
		if strings.Contains(f.Name, "BatchNorm") { // the fixture has seen another batch before
			ones := tensor.On(in[0].Device()).As(tensor.Float64).Ones(in[0].Shape()...)
			want.of([]*tensor.Tensor{ones.CumSum(0).CumSum(-1)})
		}
	}
	outs := want.of(in)
	var sum *tensor.Tensor
	for i, y := range outs {
		compare("y"+string(rune('0'+i)), y)
		w := tensor.Arange(0, float64(y.Size()), 1).As(tensor.Float64).Cos().Reshape(y.Shape()...)
		part := y.Mul(w).Sum()
		if sum == nil {
			sum = part
		} else {
			sum = sum.Add(part)
		}
	}
	if len(tracked) > 0 {
		for i, g := range tensor.Grad(sum, tracked...) {
			compare(names[i], g)
		}
	}
	if len(params) > 0 {
		sum.Backward()
		for name, cell := range nn.Named(want.layer) {
			if p, ok := cell.(*nn.Param); ok {
				compare("paramgrad."+name, p.Grad())
			} else {
				compare("buffer."+name, cell.Value())
			}
		}
	}
	for name := range f.Tensors {
		if of, ok := strings.CutPrefix(name, "param."); ok && !slices.Contains(namesOf(want.layer), of) {
			t.Errorf("there is no parameter %s", of)
		}
	}
	if _, ok := f.Tensors["frozen"]; ok {
		shape := in[0].Shape()
		x := tensor.On(in[0].Device()).As(tensor.Float64).Linspace(-1, 2, shape.Size()).Reshape(shape...)
		compare("frozen", nn.Frozen(want.layer.(nn.Module)).Forward(x))
	}
}
