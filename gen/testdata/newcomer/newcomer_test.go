package newcomer

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// TestIdentical calls each function as it is written and as it is rewritten. Both print the same, return the same,
// and leave the same weights and random numbers behind.
func TestIdentical(t *testing.T) {
	for _, pair := range [][2]any{
		{Linear, LinearAsync}, {Network, NetworkAsync}, {Epochs, EpochsAsync}, {Accuracy, AccuracyAsync}, {Mistakes, MistakesAsync},
		{Patience, PatienceAsync}, {Until, UntilAsync}, {PowerIteration, PowerIterationAsync}, {Clipped, ClippedAsync}, {Decay, DecayAsync},
		{Histogram, HistogramAsync}, {SquareRoot, SquareRootAsync}, {Table, TableAsync}, {Show, ShowAsync}, {Best, BestAsync},
		{Pi, PiAsync}, {Smoothed, SmoothedAsync}, {Checked, CheckedAsync}, {Distances, DistancesAsync}, {Compare, CompareAsync},
		{Validation, ValidationAsync}, {EarlyStopping, EarlyStoppingAsync}, {PerClass, PerClassAsync}, {ClipByNorm, ClipByNormAsync}, {OnPlateau, OnPlateauAsync},
		{RunningAverages, RunningAveragesAsync}, {LogEachTenth, LogEachTenthAsync}, {Confusion, ConfusionAsync}, {TopK, TopKAsync}, {Perplexity, PerplexityAsync},
		{LargestEigenvalue, LargestEigenvalueAsync}, {LineSearch, LineSearchAsync}, {Sampled, SampledAsync}, {Rows, RowsAsync}, {Checkpoint, CheckpointAsync},
	} {
		for seed := range uint64(12) {
			want, got := run(pair[0], seed), run(pair[1], seed)
			if got != want {
				t.Errorf("%T, seed %d: as written\n%s\nrewritten\n%s", pair[0], seed, want, got)
			}
		}
	}
}

// run calls f with arguments that are chosen by their types, and tells what it has done.
func run(f any, seed uint64) string {
	tensor.Seed(seed)
	newNet := func() nn.Module {
		net := nn.Sequential(nn.Dense(8), nn.ReLU(), nn.Dense(3))
		net.Forward(tensor.Zeros(1, 4)) // gives the weights their shapes
		return net
	}
	w, truth := tensor.Randn(4, 3), tensor.Randn(4, 3)
	half := tensor.Rand(5, 5)
	square := half.MatMul(half.T()).AddScalar(0.1)
	var batches []Batch
	var tensors []*tensor.Tensor
	for range 1 + 3*seed {
		x := tensor.Randn(6, 4)
		batches = append(batches, Batch{x, x.MatMul(truth)})
		tensors = append(tensors, tensor.Randn(4, 3))
	}
	net, rate := newNet(), 0.1
	if seed%4 == 3 {
		rate = 100 // too much
	}

	var out bytes.Buffer
	var args []reflect.Value
	for i := range reflect.TypeOf(f).NumIn() {
		var arg any
		switch reflect.TypeOf(f).In(i) {
		case reflect.TypeFor[io.Writer]():
			arg = &out
		case reflect.TypeFor[*tensor.Tensor]():
			if arg = w; reflect.TypeOf(f).NumIn() == 1 {
				arg = square
			}
		case reflect.TypeFor[[]*tensor.Tensor]():
			arg = tensors
		case reflect.TypeFor[Batch]():
			arg = batches[0]
		case reflect.TypeFor[[]Batch]():
			arg = batches
		case reflect.TypeFor[nn.Module]():
			arg = net
		case reflect.TypeFor[*optim.Optimizer]():
			arg = optim.SGD(net.Params(), rate)
		case reflect.TypeFor[map[string]nn.Module]():
			arg = map[string]nn.Module{"a": newNet(), "b": newNet()}
		case reflect.TypeFor[[]string]():
			arg = []string{"b", "a", "b"}
		case reflect.TypeFor[float64]():
			arg = 0.02
		case reflect.TypeFor[int]():
			arg = len(batches)
		}
		args = append(args, reflect.ValueOf(arg))
	}
	for _, result := range reflect.ValueOf(f).Call(args) {
		show(&out, result.Interface())
	}
	for _, p := range net.Params() {
		show(&out, p.Value())
	}
	show(&out, tensor.Rand(3))
	return out.String()
}

// show prints v with all digits.
func show(out io.Writer, v any) {
	if x, ok := v.(*tensor.Tensor); ok {
		v = x.Float32s()
	}
	fmt.Fprintf(out, "%#v\n", v)
}
