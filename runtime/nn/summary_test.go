package nn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func ExampleSummary() {
	net := nn.Sequential(
		nn.Conv2D(8, tensor.Both(3), tensor.Conv{}, nn.Init{NoBias: true}), nn.BatchNorm(), nn.ReLU(), nn.MaxPool2D(tensor.Pool{Window: tensor.Both(2)}), nn.Flatten(),
		newResidual(72), nn.Dropout(0.1), nn.Dense(10),
	)
	fmt.Println(nn.Summary(net, tensor.Zeros(2, 1, 8, 8)))
	// Output:
	// layer                        output     parameters
	// ──────────────────────────────────────────────────
	// Sequential                   [2 10]              0
	// ├─ 0 Conv2D(8, 3x3, NoBias)  [2 8 6 6]          72
	// ├─ 1 BatchNorm()             [2 8 6 6]          16
	// ├─ 2 ReLU()                  [2 8 6 6]           0
	// ├─ 3 MaxPool2D(2x2)          [2 8 3 3]           0
	// ├─ 4 Flatten()               [2 72]              0
	// ├─ 5 nn_test.residual        [2 72]              0
	// │  ├─ norm LayerNorm()       [2 72]            144
	// │  ├─ up Dense(288)          [2 288]        21,024
	// │  └─ down Dense(72)         [2 72]         20,808
	// ├─ 6 Dropout(0.1)            [2 72]              0
	// └─ 7 Dense(10)               [2 10]            730
	// ──────────────────────────────────────────────────
	// total                                       42,794
	// memory: 167.16 KiB of parameters, 64 B of buffers
}

// Without an input there are no shapes. With one, the module and the generators stay as they are, and nothing waits.
func TestSummary(t *testing.T) {
	defer asyncrt.SyncMode(asyncrt.SyncMode(asyncrt.Error))
	net := nn.Sequential(nn.Dense(5), nn.BatchNorm(), nn.Dropout(0.5))
	x := tensor.Ones(4, 3)
	at := tensor.Snapshot(tensor.DefaultGenerator())
	if got := nn.Summary(net); !strings.Contains(got, "?") || !strings.Contains(got, "total") {
		t.Errorf("got:\n%s", got)
	}
	if got := nn.Summary(net, x); !strings.Contains(got, "[4 5]") || strings.Contains(got, "?") {
		t.Errorf("got:\n%s", got)
	}
	for name := range nn.Named(net) {
		_ = name
	}
	for _, p := range net.Params() {
		if p.IsSet() {
			t.Error("the model got weights")
		}
	}
	drawn := tensor.Rand(3)
	at.Restore()
	again := tensor.Rand(3)
	asyncrt.AllowSync(func() {
		if !slices.Equal(drawn.Float32s(), again.Float32s()) {
			t.Error("the generator has gone on")
		}
	})
	// A part that is held by its own type is no Module that could be watched, but its parts are.
	d := newDecoder()
	got := nn.Summary(nn.Sequential(nn.Func("f", func(x *tensor.Tensor) *tensor.Tensor { return x }), d.layers[0]), tensor.Ones(3, 2))
	if !strings.Contains(got, "[3 8]") {
		t.Errorf("got:\n%s", got)
	}
	if got := nn.Summary(d); !strings.Contains(got, "├─ lm_head Dense(3)") {
		t.Errorf("got:\n%s", got)
	}
	mistaken(t, map[string]func(){
		"nn: Summary: *nn_test.decoder has no Forward of 1 tensors": func() { nn.Summary(d, x) },
	})
}

// A translator is a model of two inputs whose layers are held by their own types.
type translator struct {
	encoder *nn.Recurrent
	cross   *nn.Attention
	blocks  []*transformerBlock
	head    nn.Module
}

func (m *translator) Forward(x, memory *tensor.Tensor) (scores, state *tensor.Tensor) {
	seen, end := m.encoder.Run(memory, nn.Hidden{})
	x = m.cross.Attend(x, seen, nil)
	for _, b := range m.blocks {
		x = b.Forward(x)
	}
	return m.head.Forward(x), end.H
}

func ExampleSummary_inputs() {
	m := &translator{nn.GRU(6, 1), nn.MultiHeadAttention(8, 2), []*transformerBlock{newBlock(8, 2)}, nn.Dense(3)}
	fmt.Println(nn.Summary(m, tensor.Ones(2, 4, 8), tensor.Ones(2, 5, 7)))
	// Output:
	// layer                                        output           parameters
	// ────────────────────────────────────────────────────────────────────────
	// nn_test.translator                           [2 4 3] [1 2 6]           0
	// ├─ encoder GRU(6, 1)                         [2 5 6]                 270
	// ├─ cross MultiHeadAttention(8, 2)            [2 4 8]                   0
	// │  ├─ q_proj Dense(8)                        [2 4 8]                  72
	// │  ├─ k_proj Dense(8)                        [2 5 8]                  56
	// │  ├─ v_proj Dense(8)                        [2 5 8]                  56
	// │  └─ out_proj Dense(8)                      [2 4 8]                  72
	// ├─ blocks.0 nn_test.transformerBlock                                   0
	// │  ├─ attn MultiHeadAttention(8, 2, Causal)  [2 4 8]                   0
	// │  │  ├─ q_proj Dense(8)                     [2 4 8]                  72
	// │  │  ├─ k_proj Dense(8)                     [2 4 8]                  72
	// │  │  ├─ v_proj Dense(8)                     [2 4 8]                  72
	// │  │  └─ out_proj Dense(8)                   [2 4 8]                  72
	// │  ├─ mlp Sequential                         [2 4 8]                   0
	// │  │  ├─ 0 Dense(32)                         [2 4 32]                288
	// │  │  ├─ 1 GELU()                            [2 4 32]                  0
	// │  │  ├─ 2 Dense(8)                          [2 4 8]                 264
	// │  │  └─ 3 Dropout(0.1)                      [2 4 8]                   0
	// │  ├─ ln1 LayerNorm()                        [2 4 8]                  16
	// │  └─ ln2 LayerNorm()                        [2 4 8]                  16
	// └─ head Dense(3)                             [2 4 3]                  27
	// ────────────────────────────────────────────────────────────────────────
	// total                                                              1,425
	// memory: 5.57 KiB of parameters
}

// Weights that are shared count once, and buffers not at all.
func TestCount(t *testing.T) {
	shared := nn.Dense(3)
	net := nn.Sequential(shared, nn.BatchNorm(), nn.ReLU(), shared)
	mistaken(t, map[string]func(){
		"nn: Count: 0.weight has no value yet: layers give theirs a value at their first Forward": func() { nn.Count(net) },
	})
	net.Forward(tensor.Ones(2, 3))
	if got := nn.Count(net); got != 3*3+3+3+3 {
		t.Errorf("%d weights", got)
	}
	if got := nn.Count(struct{}{}); got != 0 {
		t.Errorf("nothing has %d weights", got)
	}
}
