package nn_test

import (
	"math"
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
		"nn: MultiHeadAttention: 4 elements in 3 heads, and 3 of keys and values: each is to be divided by the next": func() {
			nn.MultiHeadAttention(4, 3)
		},
		"nn: MultiHeadAttention: the inputs have shapes [3 4] and [3 4], want [N T C] and [N S D] (MultiHeadAttention(4, 1, Causal))": func() { layer.Forward(x.Row(0)) },
		"nn: KVCache: it is none that NewKVCache has made (MultiHeadAttention(4, 2, Causal))": func() {
			nn.MultiHeadAttention(4, 2, nn.Heads{Causal: true}).Extend(x, new(nn.KVCache))
		},
		"nn: KVCache: Truncate to 1 positions of 0": func() { nn.NewKVCache().Truncate(1) },
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
