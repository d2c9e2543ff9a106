package main

import (
	"hash/crc32"
	"math"
	"strings"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A model is what a training step is measured of. peers.py has the same ones, with the same names of parameters.
type model struct {
	net       func() nn.Module
	optimiser func(params []*nn.Param) *optim.Optimizer
	input     []int // shape of a sample; of tokens if symbols is set
	symbols   int   // how many different tokens there are
	classes   int
	clip      float64 // the limit of the gradient's norm; 0: none
	squares   bool    // the loss is half the mean square of what the net lacks to 1, instead of a cross entropy
}

var models = map[string]model{
	"tiny": {net: func() nn.Module { return nn.Sequential(nn.Dense(2)) }, optimiser: momentum, input: []int{2}, classes: 2},
	"mlp": {
		net: func() nn.Module {
			return nn.Sequential(nn.Dense(512), nn.ReLU(), nn.Dense(512), nn.ReLU(), nn.Dense(10))
		},
		optimiser: momentum, input: []int{784}, classes: 10,
	},
	"cnn": {
		net: func() nn.Module {
			pool := tensor.Pool{Window: tensor.Both(2)}
			return nn.Sequential(
				conv3x3(32, 1, nn.Init{}), nn.ReLU(), nn.MaxPool2D(pool),
				conv3x3(64, 1, nn.Init{}), nn.ReLU(), nn.MaxPool2D(pool),
				nn.Flatten(), nn.Dense(128), nn.ReLU(), nn.Dense(10),
			)
		},
		optimiser: func(params []*nn.Param) *optim.Optimizer { return optim.Adam(params, 1e-3) },
		input:     []int{1, 28, 28}, classes: 10,
	},
	"transformer": {
		net: func() nn.Module {
			const width, heads, symbols = 256, 4, 256
			layers := []nn.Module{nn.Embedding(symbols, width)}
			for range 2 {
				layers = append(layers,
					nn.Residual(nn.LayerNorm(), nn.MultiHeadAttention(width, heads, nn.Heads{Causal: true})),
					nn.Residual(nn.LayerNorm(), nn.Dense(4*width), nn.GELU(), nn.Dense(width)))
			}
			return nn.Sequential(append(layers, nn.LayerNorm(), nn.Dense(symbols))...)
		},
		optimiser: func(params []*nn.Param) *optim.Optimizer { return optim.AdamW(params, 1e-3) },
		input:     []int{256}, symbols: 256, classes: 256,
	},
	"resnet": {
		net: func() nn.Module {
			layers := []nn.Module{conv3x3(16, 1, nn.Init{NoBias: true}), nn.BatchNorm(), nn.ReLU()}
			in := 16
			for stage, out := range []int{16, 32, 64} {
				layers = append(layers, newBasicBlock(in, out, min(stage+1, 2)), newBasicBlock(out, out, 1))
				in = out
			}
			return nn.Sequential(append(layers, nn.AdaptiveAvgPool2D(1, 1), nn.Flatten(), nn.Dense(10))...)
		},
		optimiser: momentum, input: []int{3, 32, 32}, classes: 10,
	},
	// Those of the programs mlp, mnist and chargpt; that of mnist without its dropout, which draws other numbers elsewhere.
	"program mlp": {
		net: func() nn.Module {
			return nn.Sequential(nn.Dense(2048), nn.ReLU(), nn.Dense(512), nn.ReLU(), nn.Dense(1))
		},
		optimiser: func(params []*nn.Param) *optim.Optimizer { return optim.SGD(params, 0.0005) },
		input:     []int{512}, classes: 1, squares: true,
	},
	"program mnist": {
		net: func() nn.Module {
			by2 := tensor.Conv{Stride: tensor.Both(2)}
			return nn.Sequential(
				nn.Conv2D(8, tensor.Both(3), by2), nn.ReLU(), nn.Conv2D(16, tensor.Both(3), by2), nn.ReLU(),
				nn.Flatten(), nn.Dense(10),
			)
		},
		optimiser: func(params []*nn.Param) *optim.Optimizer { return optim.AdamW(params, 0.002) },
		input:     []int{1, 28, 28}, classes: 10,
	},
	"program chargpt": {
		net: func() nn.Module {
			const width, heads, symbols, places = 64, 4, 90, 64
			layers := []nn.Module{&placed{nn.Embedding(symbols, width), nn.Embedding(places, width)}}
			for range 2 {
				layers = append(layers,
					nn.Residual(nn.LayerNorm(), nn.MultiHeadAttention(width, heads, nn.Heads{Causal: true})),
					nn.Residual(nn.LayerNorm(), nn.Dense(4*width), nn.GELU(), nn.Dense(width)))
			}
			return nn.Sequential(append(layers, nn.LayerNorm(), nn.Dense(symbols))...)
		},
		optimiser: func(params []*nn.Param) *optim.Optimizer { return optim.AdamW(params, 1e-3) },
		input:     []int{64}, symbols: 90, classes: 90, clip: 1,
	},
}

// placed embeds tokens and their places.
type placed struct{ tokens, places nn.Module }

func (e *placed) Forward(ids *tensor.Tensor) *tensor.Tensor {
	return e.tokens.Forward(ids).Add(e.places.Forward(tensor.ArangeInt(0, int64(ids.Dim(1)), 1)))
}

func (e *placed) Params() []*nn.Param { return nn.Params(e) }

func momentum(params []*nn.Param) *optim.Optimizer {
	return optim.SGD(params, 0.01, optim.SGDOptions{Momentum: 0.9})
}

func conv3x3(out, stride int, init nn.Init) nn.Module {
	return nn.Conv2D(out, tensor.Both(3), tensor.Conv{Stride: tensor.Both(stride), Padding: tensor.Both(1)}, init)
}

// A basicBlock is one of a ResNet: two convolutions beside their input.
type basicBlock struct{ main, shortcut nn.Module }

func newBasicBlock(in, out, stride int) *basicBlock {
	noBias := nn.Init{NoBias: true}
	main := nn.Sequential(conv3x3(out, stride, noBias), nn.BatchNorm(), nn.ReLU(), conv3x3(out, 1, noBias), nn.BatchNorm())
	b := &basicBlock{main, nn.Identity()}
	if in != out || stride != 1 {
		b.shortcut = nn.Sequential(nn.Conv2D(out, tensor.Both(1), tensor.Conv{Stride: tensor.Both(stride)}, noBias), nn.BatchNorm())
	}
	return b
}

func (b *basicBlock) Forward(x *tensor.Tensor) *tensor.Tensor {
	y, z := b.main.Forward(x), b.shortcut.Forward(x)
	sum := y.Add(z)
	defer tensor.Dead(y, z, sum)
	return sum.ReLU()
}

func (b *basicBlock) Params() []*nn.Param { return nn.Params(b) }

// trainer returns a function that takes a step of the model on a batch, which is always the same, and returns
// the loss. Weights and batch are those of peers.py. If isCaptured is set, the step is recorded once and then repeated.
func (m model) trainer(samples int, isCaptured bool) func() *tensor.Tensor {
	shape := append([]int{samples}, m.input...)
	var x, labels *tensor.Tensor
	if m.symbols > 0 {
		x, labels = numbers("tokens", m.symbols, shape...), numbers("labels", m.classes, shape...)
	} else {
		x, labels = drawn("images", 1, shape...), numbers("labels", m.classes, samples)
	}
	net := m.net()
	wait(net.Forward(x.Slice(0, 0, 2))) // the first use finds the shapes of weights
	for name, cell := range nn.Named(net) {
		if p, ok := cell.(*nn.Param); ok {
			p.Set(firstValue(name, p.Value().Shape()))
		}
	}
	opt := m.optimiser(net.Params())
	step := func(in ...*tensor.Tensor) []*tensor.Tensor {
		var loss *tensor.Tensor
		if m.squares {
			loss = nn.MSELoss(net.Forward(in[0]), tensor.Ones(samples, 1)).MulScalar(0.5)
		} else {
			loss = nn.CrossEntropy(net.Forward(in[0]), in[1])
		}
		opt.ZeroGrad()
		loss.Backward()
		if m.clip > 0 {
			optim.ClipNorm(net.Params(), m.clip)
		}
		opt.Step()
		return []*tensor.Tensor{loss}
	}
	if isCaptured {
		step = tensor.Capture(step).Run
	}
	return func() *tensor.Tensor { return step(x, labels)[0] }
}

// firstValue is what a parameter of this name begins with.
func firstValue(name string, shape []int) *tensor.Tensor {
	switch {
	case len(shape) > 2: // of a convolution
		return drawn(name, 2/float64(shape[1]*shape[2]*shape[3]), shape...)
	case len(shape) == 2:
		return drawn(name, 2/float64(shape[0]), shape...)
	case strings.HasSuffix(name, "weight"):
		return tensor.Ones(shape...)
	}
	return tensor.Zeros(shape...)
}

// drawn returns numbers with mean 0 and the given variance, a function of name, uniformly distributed.
func drawn(name string, variance float64, shape ...int) *tensor.Tensor {
	all := make([]float32, product(shape))
	for i := range all {
		all[i] = float32((float64(bits(name, i))/(1<<31) - 1) * math.Sqrt(3*variance))
	}
	return tensor.From(all, shape...)
}

// numbers returns integers from 0 to less than n, a function of name.
func numbers(name string, n int, shape ...int) *tensor.Tensor {
	all := make([]int64, product(shape))
	for i := range all {
		all[i] = int64(bits(name, i)) % int64(n)
	}
	return tensor.From(all, shape...)
}

// bits mixes name and i by the last steps of MurmurHash3.
func bits(name string, i int) uint32 {
	h := uint32(i)*0x9e3779b1 + crc32.ChecksumIEEE([]byte(name))
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
