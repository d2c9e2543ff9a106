package nn_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func ExampleDropout() {
	tensor.Seed(1)
	net := nn.Sequential(nn.Dense(2), nn.Dropout(0.5))
	x := tensor.Ones(100, 3)
	zeros := func(m nn.Module) float64 { return m.Forward(x).EqScalar(0).As(tensor.Float32).Mean().Item() }
	trained := zeros(net)
	fmt.Println(trained > 0.3, trained < 0.7, zeros(nn.Frozen(net)))
	// Output: true true 0
}

func ExampleLoss() {
	scores := tensor.From([]float32{2, 0, 0, 0, 1, 0}, 2, 3)
	labels := tensor.From([]int64{0, -100})
	loss := nn.Loss{Ignore: []int64{-100}, Smoothing: 0.1}.CrossEntropy(scores, labels)
	fmt.Printf("%.4f\n", loss.Item())
	// Output: 0.3729
}

// Dropout keeps means, gives gradients to what it keeps, and draws anew each time, the same after the same seed.
func TestDropout(t *testing.T) {
	for _, p := range []float64{0, 0.25, 1} {
		layer := nn.Dropout(p)
		x := tensor.Full(math.Inf(1), 1).As(tensor.Float64).BroadcastTo(20000).Minimum(tensor.Full(3, 1).As(tensor.Float64)).Track()
		tensor.Seed(7)
		y := layer.Forward(x)
		kept := 0
		gradients := tensor.Grad(y.Sum(), x)[0].Float64s()
		values := y.Float64s()
		for i, v := range values {
			if v != 0 {
				kept++
			}
			if want := gradients[i] * 3; math.Abs(v-want) > 1e-12 || v != 0 && math.Abs(v-3/(1-p)) > 1e-12 {
				t.Fatalf("p %v: element %d is %v, with gradient %v", p, i, v, gradients[i])
			}
		}
		if share := float64(kept) / 20000; math.Abs(share-(1-p)) > 0.02 {
			t.Errorf("p %v: it keeps %v", p, share)
		}
		if second := layer.Forward(x).Float64s(); p == 0.25 && slices.Equal(second, values) {
			t.Error("it draws the same again")
		}
		tensor.Seed(7)
		if same := layer.Forward(x).Float64s(); !slices.Equal(same, values) {
			t.Error("after the same seed it draws others")
		}
	}
	nan := nn.Dropout(1).Forward(tensor.From([]float64{math.NaN(), math.Inf(1)})).Float64s()
	if !slices.Equal(nan, []float64{0, 0}) {
		t.Errorf("what is dropped is %v", nan)
	}
}

// Dropout2D drops whole channels of samples.
func TestDropout2D(t *testing.T) {
	tensor.Seed(7)
	y := nn.Dropout2D(0.5).Forward(tensor.Ones(40, 50, 2, 3)).Reshape(2000, 6)
	sums := y.Sum(1).Float32s()
	kept := 0
	for i, sum := range sums {
		switch sum {
		case 12:
			kept++
		case 0:
		default:
			t.Fatalf("channel %d has the sum %v, want 0 or 12", i, sum)
		}
	}
	if kept < 900 || kept > 1100 {
		t.Errorf("it keeps %d of 2000 channels", kept)
	}
}

// Probabilities of 0 and 1 have finite losses and gradients, and those that are NaN have none.
func TestBCELossOfCertainties(t *testing.T) {
	p, targets := tensor.From([]float32{0, 1, 0, 1, float32(math.NaN())}).Track(), tensor.From([]float32{0, 1, 1, 0, 1})
	each := nn.Loss{Reduction: nn.None}.BCE(p, targets)
	gradient := tensor.Grad(each.Sum(), p)[0].Float32s()
	if got := each.Float32s(); !slices.Equal(got[:4], []float32{0, 0, 100, 100}) || got[4] == got[4] {
		t.Errorf("the losses are %v", got)
	}
	if !slices.Equal(gradient[:4], []float32{1, -1, 0, 0}) || gradient[4] == gradient[4] {
		t.Errorf("the gradients are %v", gradient)
	}
}

// The vector of padding is 0 and stays so.
func TestPaddedEmbedding(t *testing.T) {
	tensor.Seed(1)
	layer := nn.PaddedEmbedding(4, 3, 1)
	x := tensor.From([]int64{1, 0, 1, 3}, 2, 2)
	layer.Forward(x)
	w := layer.Params()[0]
	if got := w.Value().Row(1).Float32s(); !slices.Equal(got, []float32{0, 0, 0}) {
		t.Errorf("the vector of padding is %v", got)
	}
	optim.SGD(layer.Params(), 1).Minimize(layer.Forward(x).AddScalar(1).Square().Sum())
	if got := w.Value().Row(1).Float32s(); !slices.Equal(got, []float32{0, 0, 0}) {
		t.Errorf("after a step the vector of padding is %v", got)
	}
	if got := layer.Forward(x).Row(0).Row(0).Float32s(); !slices.Equal(got, []float32{0, 0, 0}) {
		t.Errorf("padding gives %v", got)
	}
}

// Initialisers have the means, deviations and bounds of their definitions.
func TestInitialisers(t *testing.T) {
	const in, out = 300, 200
	for name, c := range map[string]struct {
		init                   nn.Initialiser
		mean, deviation, bound float64
	}{
		"Zeros":           {nn.Zeros(), 0, 0, 0},
		"Ones":            {nn.Ones(), 1, 0, 1},
		"Constant":        {nn.Constant(-2), -2, 0, 2},
		"Uniform":         {nn.Uniform(1, 3), 2, 1 / math.Sqrt(3), 3},
		"Normal":          {nn.Normal(2, 0.5), 2, 0.5, math.Inf(1)},
		"TruncatedNormal": {nn.TruncatedNormal(1, 0.5), 1, 0.5 * 0.87962566, 2},
		"XavierUniform":   {nn.XavierUniform(), 0, math.Sqrt(2.0 / (in + out)), math.Sqrt(6.0 / (in + out))},
		"XavierNormal":    {nn.XavierNormal(), 0, math.Sqrt(2.0 / (in + out)), math.Inf(1)},
		"KaimingUniform":  {nn.KaimingUniform(), 0, math.Sqrt(2.0 / in), math.Sqrt(6.0 / in)},
		"KaimingNormal":   {nn.KaimingNormal(), 0, math.Sqrt(2.0 / in), math.Inf(1)},
		"Scaled":          {nn.KaimingUniform().Scaled(math.Sqrt(1.0 / 6)), 0, math.Sqrt(1.0 / 3 / in), math.Sqrt(1.0 / in)},
	} {
		tensor.Seed(9)
		layer := nn.Dense(out, nn.Init{Weight: c.init, Bias: nn.Ones()})
		layer.Forward(tensor.Ones(1, in).As(tensor.Float64))
		w := layer.Params()[0].Value().Detach()
		mean := w.Mean().Item()
		deviation := math.Sqrt(w.SubScalar(mean).Square().Mean().Item())
		if tolerance := 0.02 * c.deviation; math.Abs(mean-c.mean) > tolerance || math.Abs(deviation-c.deviation) > tolerance {
			t.Errorf("%s: a mean of %v and a deviation of %v, want %v and %v", name, mean, deviation, c.mean, c.deviation)
		}
		if greatest := w.Abs().Max().Item(); greatest > c.bound*(1+1e-6) || !math.IsInf(c.bound, 1) && greatest < c.bound*0.99 {
			t.Errorf("%s: the greatest number is %v, want up to %v", name, greatest, c.bound)
		}
		if b := layer.Params()[1].Value(); b.Min().Item() != 1 {
			t.Errorf("%s: the biases are %v", name, b)
		}
	}
	// The quantiles of a truncated normal distribution are those of erf, also near its ends.
	tensor.Seed(9)
	x := nn.TruncatedNormal(0, 1)(tensor.On(tensor.Ones(1).Device()).As(tensor.Float64), 1, 1, 1000).Float64s()
	tensor.Seed(9)
	u := tensor.On(tensor.Ones(1).Device()).As(tensor.Float64).Uniform(-math.Erf(math.Sqrt2), math.Erf(math.Sqrt2), 1000).Float64s()
	for i := range x {
		if want := math.Sqrt2 * math.Erfinv(u[i]); math.Abs(x[i]-want) > 2e-6*math.Abs(want) {
			t.Fatalf("the quantile of %v is %v, want %v", u[i], x[i], want)
		}
	}
}

func TestSettings(t *testing.T) {
	if got := nn.Dense(2, nn.Init{NoBias: true}); len(got.Params()) != 1 || fmt.Sprint(got) != "Dense(2, NoBias)" {
		t.Errorf("%v has parameters %v", got, got.Params())
	}
	x := tensor.Ones(2, 3)
	dense := nn.Dense(2, nn.Init{NoBias: true})
	dense.Forward(x)
	if got := nn.Frozen(nn.Sequential(dense, nn.ReLU())); !slices.Equal(got.Forward(x).Float32s(), dense.Forward(x).ReLU().Float32s()) {
		t.Error("a frozen layer without a bias gives something else before a ReLU")
	}
	for _, m := range []nn.Module{nn.LayerNorm(nn.Norm{NoAffine: true}), nn.RMSNorm(nn.Norm{NoAffine: true}), nn.GroupNorm(1, nn.Norm{NoAffine: true}), nn.BatchNorm(nn.Norm{NoAffine: true})} {
		m.Forward(x)
		if len(m.Params()) != 0 {
			t.Errorf("%v has %d parameters", m, len(m.Params()))
		}
	}
	if got := nn.LayerNorm(nn.Norm{NoBias: true}); len(got.Params()) != 1 {
		t.Errorf("%v has %d parameters", got, len(got.Params()))
	}
	l := nn.BatchNorm(nn.Norm{Momentum: 1})
	l.Forward(tensor.From([]float32{1, 3}, 2, 1))
	for name, c := range nn.Named(l) {
		if want := map[string]float64{"running_mean": 2, "running_var": 2}[name]; want != 0 && c.Value().Item() != want {
			t.Errorf("%s is %v, want %v", name, c.Value(), want)
		}
	}
	labels := tensor.From([]int64{0, 1})
	if got := (nn.Loss{Ignore: []int64{0, 1}}).CrossEntropy(x, labels).Item(); !math.IsNaN(got) {
		t.Errorf("the mean loss of no samples is %v", got)
	}
	if got := (nn.Loss{Ignore: []int64{0, 1}, Reduction: nn.Sum}).CrossEntropy(x, labels).Item(); got != 0 {
		t.Errorf("the sum of the losses of no samples is %v", got)
	}
	mistaken(t, map[string]func(){
		"nn: Dense: 2 times nn.Init, want one at most": func() { nn.Dense(1, nn.Init{}, nn.Init{}) },
		"nn: BatchNorm: the input has shape [1 3], want more than one element for each channel in training (BatchNorm())": func() {
			nn.BatchNorm().Forward(tensor.Ones(1, 3))
		},
		"nn: BatchNorm: the input has shape [3], want [N C ...] (BatchNorm())": func() { nn.BatchNorm().Forward(tensor.Ones(3)) },
		"nn: GroupNorm: the input has shape [2 3], want [N C ...] with channels in 2 groups (GroupNorm(2))": func() {
			nn.GroupNorm(2).Forward(x)
		},
		"nn: LayerNorm: an Eps of -1 and a Momentum of 0, want 0 or more, and from 0 to 1":        func() { nn.LayerNorm(nn.Norm{Eps: -1}) },
		"nn: InstanceNorm: the input has shape [2 3], want [N C L] or [N C H W] (InstanceNorm())": func() { nn.InstanceNorm().Forward(x) },
		"nn: Dropout2D: a probability of -1":                                                      func() { nn.Dropout2D(-1) },
		"nn: Dropout2D: the input has shape [3], want [N C ...] (Dropout2D(0.5))":                 func() { nn.Dropout2D(0.5).Forward(x.Row(0)) },
		"nn: PReLU: 0 slopes": func() { nn.PReLU(0) },
		"nn: PReLU: the input has shape [2 3], want [N C ...] with 2 channels (PReLU(2))":   func() { nn.PReLU(2).Forward(x) },
		"nn: BCELoss: predictions have shape [2 3], targets [2]":                            func() { nn.BCELoss(x, labels) },
		"nn: CosineSimilarity: the shapes are [] and [2], want vectors along the last axis": func() { nn.CosineSimilarity(tensor.Scalar(1), labels) },
		"nn: CosineEmbedding: the vectors have shape [2 3] and the targets [3], want a number for each vector along the last axis": func() {
			nn.CosineEmbedding(x, x, tensor.Ones(3))
		},
		"nn: Dropout: a probability of NaN":                                       func() { nn.Dropout(math.NaN()) },
		"nn: PaddedEmbedding: class 4 of 4 for padding":                           func() { nn.PaddedEmbedding(4, 2, 4) },
		"nn: CrossEntropy: a Smoothing of 2, want 0 to 1":                         func() { nn.Loss{Smoothing: 2}.CrossEntropy(x, labels) },
		"nn: NLLLoss: the Weights have shape [2], want one for each of 3 classes": func() { nn.Loss{Weights: tensor.Ones(2)}.NLL(x, labels) },
		"nn: KLDiv: predictions have shape [2 3], targets [2]":                    func() { nn.KLDiv(x, labels) },
		"nn: HuberLoss: a Delta of -1":                                            func() { nn.Loss{Delta: -1}.Huber(x, x) },
		"nn: Init: the Initialiser has made the shape [1], want [3 2] (Dense(2))": func() {
			nn.Dense(2, nn.Init{Weight: func(on tensor.Maker, _, _ int, _ ...int) *tensor.Tensor { return on.Ones(1) }}).Forward(x)
		},
	})
}

// An orthogonal matrix times its transpose is the identity.
func TestOrthogonal(t *testing.T) {
	on := tensor.On(device.CPU()).As(tensor.Float64)
	for _, shape := range [][]int{{5, 3}, {3, 5}, {4, 2, 3}, {1, 1}} {
		w := nn.Orthogonal()(on, 0, 0, shape...)
		if !slices.Equal(w.Shape(), shape) {
			t.Fatalf("shape %v, want %v", w.Shape(), shape)
		}
		m := w.Reshape(shape[0], -1)
		if m.Dim(0) > m.Dim(1) {
			m = m.T()
		}
		if far := m.MatMul(m.T()).Sub(on.Eye(m.Dim(0))).Abs().Max().Item(); far > 1e-12 {
			t.Errorf("%v: %v from orthogonal", shape, far)
		}
	}
}
