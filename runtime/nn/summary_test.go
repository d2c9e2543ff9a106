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
		"nn: Summary: *nn_test.decoder is no Module, which an input could be given to": func() { nn.Summary(d, x) },
	})
}
