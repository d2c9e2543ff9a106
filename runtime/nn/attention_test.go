package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What a cache gives is what attention to all positions gives, in any steps, also after going back.
func TestKVCache(t *testing.T) {
	tensor.Seed(1)
	for _, how := range []nn.Heads{{Causal: true}, {Causal: true, KV: 2}} {
		layer := nn.MultiHeadAttention(8, 4, how)
		x := tensor.Randn(2, 7, 6).As(tensor.Float64)
		want := layer.Forward(x)
		cache := nn.NewKVCache()
		if cache.Len() != 0 {
			t.Errorf("a new cache has %d positions", cache.Len())
		}
		extend := func(from, to int) {
			t.Helper()
			if cache.Len() != from {
				t.Fatalf("the cache has %d positions, want %d", cache.Len(), from)
			}
			got := layer.Extend(x.Slice(1, from, to), cache)
			if d := got.Sub(want.Slice(1, from, to)).Abs().Max().Item(); !(d < 1e-12) {
				t.Errorf("positions %d to %d differ by %v", from, to, d)
			}
		}
		extend(0, 3)
		extend(3, 4)
		at := nn.Snapshot(nn.Sequential(), cache)
		extend(4, 7)
		cache.Truncate(2)
		extend(2, 5)
		at.Restore()
		extend(4, 5)
		cache.Truncate(cache.Len())
		cache.Truncate(0)
		extend(0, 7)
	}
	// Nobody looks at later positions, also by a mask of the program's.
	layer := nn.MultiHeadAttention(4, 1, nn.Heads{Causal: true})
	x := tensor.Randn(1, 3, 4)
	all := tensor.Full(1, 3, 3).NeScalar(0)
	first := layer.Attend(x, x, all).Slice(1, 0, 1).Float32s()
	changed := tensor.Concat(1, x.Slice(1, 0, 1), tensor.Ones(1, 2, 4))
	for i, v := range layer.Attend(changed, changed, all).Slice(1, 0, 1).Float32s() {
		if math.Abs(float64(v-first[i])) > 1e-6 {
			t.Errorf("element %d is %v, before later positions changed %v", i, v, first[i])
		}
	}
	mistaken(t, map[string]func(){
		"nn: MultiHeadAttention: Extend: earlier positions would look at later ones: set Heads.Causal (MultiHeadAttention(4, 2))": func() {
			nn.MultiHeadAttention(4, 2).Extend(x, nn.NewKVCache())
		},
		"nn: MultiHeadAttention: 4 heads with 3 of keys and values, want a multiple of those": func() {
			nn.MultiHeadAttention(8, 4, nn.Heads{KV: 3})
		},
		"nn: MultiHeadAttention: a width of 4 for 3 heads, want a multiple of the heads": func() {
			nn.MultiHeadAttention(4, 3)
		},
		"nn: MultiHeadAttention: the inputs have shapes [3 4] and [3 4], want [N T C] and [N S D] (MultiHeadAttention(4, 1, Causal))": func() { layer.Forward(x.Row(0)) },
		"nn: KVCache: it is none that NewKVCache has made (MultiHeadAttention(4, 2, Causal))": func() {
			nn.MultiHeadAttention(4, 2, nn.Heads{Causal: true}).Extend(x, new(nn.KVCache))
		},
		"nn: KVCache: Truncate to 1 positions of 0": func() { nn.NewKVCache().Truncate(1) },
	})
}

// Dropout of weights is that of the whole matrix of weights, with the same random numbers, and gradients agree. In use
// there is none.
func TestAttentionDropout(t *testing.T) {
	const p = 0.25
	tensor.Seed(3)
	x := tensor.Randn(2, 5, 8).As(tensor.Float64)
	a := nn.MultiHeadAttention(8, 2, nn.Heads{Causal: true, Dropout: p})
	a.Forward(x)
	parts := map[string]*tensor.Tensor{}
	for name, c := range nn.Named(a) {
		parts[name] = c.Value().Detach()
	}
	plain := func(x *tensor.Tensor) *tensor.Tensor {
		heads := func(name string) *tensor.Tensor {
			return x.MatMul(parts[name+".weight"]).Add(parts[name+".bias"]).Reshape(2, 5, 2, 4).Transpose(0, 2, 1, 3)
		}
		scores := heads("q_proj").MatMul(heads("k_proj").Transpose(0, 1, 3, 2)).MulScalar(0.5)
		hidden := tensor.Full(math.Inf(-1), 5, 5).As(tensor.Float64).Triu(1)
		hidden = tensor.Where(hidden.IsNaN(), tensor.Scalar(0).As(tensor.Float64), hidden)
		weights := scores.Add(hidden).Softmax(-1)
		u := tensor.On(x.Device()).As(tensor.Float64).Rand(2, 2, 5, 5)
		weights = tensor.Where(u.LtScalar(p), tensor.Scalar(0).As(tensor.Float64), weights.DivScalar(1-p))
		found := weights.MatMul(heads("v_proj")).Transpose(0, 2, 1, 3).Reshape(2, 5, 8)
		return found.MatMul(parts["out_proj.weight"]).Add(parts["out_proj.bias"])
	}
	run := func(f func(x *tensor.Tensor) *tensor.Tensor) []float64 {
		tensor.Seed(9)
		in := x.Track()
		y := f(in)
		g := tensor.Grad(y.Sin().Sum(), in)[0]
		return tensor.Concat(0, y, g).Flatten().Float64s()
	}
	got, want := run(a.Forward), run(plain)
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Fatalf("element %d of result and gradient is %v, want %v", i, got[i], want[i])
		}
	}
	if second := run(a.Forward); !slices.Equal(second, got) {
		t.Error("the same seed drops others")
	}
	none := nn.MultiHeadAttention(8, 2, nn.Heads{Causal: true})
	none.Forward(x)
	for name, c := range nn.Named(none) {
		c.Set(parts[name])
	}
	if use := nn.Frozen(a).Forward(x).Flatten().Float64s(); !slices.Equal(use, none.Forward(x).Flatten().Float64s()) {
		t.Error("the frozen layer drops weights")
	}
	for _, all := range nn.MultiHeadAttention(8, 2, nn.Heads{Dropout: 1, Init: nn.Init{NoBias: true}}).Forward(x).Flatten().Float64s() {
		if all != 0 {
			t.Fatalf("%v is left if all is dropped", all)
		}
	}
	mistaken(t, map[string]func(){
		"nn: MultiHeadAttention: a Dropout with probability 1.5": func() { nn.MultiHeadAttention(8, 2, nn.Heads{Dropout: 1.5}) },
	})
}

// A state carries on a sequence where it ended.
func TestRecurrentStates(t *testing.T) {
	tensor.Seed(2)
	for _, layer := range []*nn.Recurrent{nn.LSTM(4, 2), nn.GRU(4, 2), nn.GRU(4, 1, nn.Init{NoBias: true}), nn.RNN(4, 2)} {
		x := tensor.Randn(3, 6, 2).As(tensor.Float64)
		want := layer.Forward(x)
		first, state := layer.Run(x.Slice(1, 0, 4), nn.Hidden{})
		second, end := layer.Run(x.Slice(1, 4, 6), state)
		if d := tensor.Concat(1, first, second).Sub(want).Abs().Max().Item(); !(d < 1e-14) {
			t.Errorf("%v: in two parts it differs by %v", layer, d)
		}
		last := end.H.Row(end.H.Dim(0) - 1)
		if d := last.Sub(want.Slice(1, 5, 6).Squeeze(1)).Abs().Max().Item(); d != 0 {
			t.Errorf("%v: the last output and the state differ by %v", layer, d)
		}
	}
	layer := nn.GRU(4, 2)
	mistaken(t, map[string]func(){
		"nn: GRU: the input has shape [2 3], want [N T C], with a step at least (GRU(4, 2))":   func() { layer.Forward(tensor.Ones(2, 3)) },
		"nn: GRU: the input has shape [2 0 3], want [N T C], with a step at least (GRU(4, 2))": func() { layer.Forward(tensor.Ones(2, 0, 3)) },
		"nn: GRU: the state has shape [1 2 4], want [2 2 4] (GRU(4, 2))": func() {
			layer.Run(tensor.Ones(2, 1, 3), nn.Hidden{H: tensor.Ones(1, 2, 4)})
		},
		"nn: LSTM: 0 elements in each of 1 layers": func() { nn.LSTM(0, 1) },
	})
}
