package nn_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// CrossEntropy against the definition in float64, also where probabilities vanish.
func TestCrossEntropy(t *testing.T) {
	for _, name := range devicetest.Names(t) {
		on, err := device.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		rows := [][]float64{{1, 2, 3}, {-1, 0.5, 0}, {0, 0, 0}, {2, -3, 1}}
		labels := []int64{2, 0, 1, 1}
		var flat []float64
		want := 0.0
		for i, row := range rows {
			sum := 0.0
			for _, v := range row {
				sum += math.Exp(v)
			}
			want -= math.Log(math.Exp(row[labels[i]])/sum) / float64(len(rows))
			flat = append(flat, row...)
		}
		scores := tensor.FromOn(on, flat, 4, 3)
		loss := nn.CrossEntropy(scores, tensor.FromOn(on, labels))
		if got := loss.Item(); loss.Rank() != 0 || math.Abs(got-want) > 1e-14 {
			t.Errorf("the loss is %v, want %v", got, want)
		}
		if got := nn.CrossEntropy(tensor.FromOn(on, []float64{0, 2000}), tensor.FromOn(on, []int64{0}).Row(0)).Item(); got != 2000 {
			t.Errorf("the loss of a sample without hope is %v", got)
		}
		for _, label := range []int64{3, -1, -3, math.MinInt64} {
			var at *device.IndexError
			loss := nn.CrossEntropy(scores.Track(), tensor.FromOn(on, []int64{0, label, 0, 0}))
			says := fmt.Sprintf(": label or class %d is out of range: there are 3 classes, 0 to 2", label)
			if err := loss.Wait(); !errors.As(err, &at) || at.Index != label || !strings.HasSuffix(err.Error(), says) {
				t.Errorf("label %d: %v", label, err)
			}
			g := nn.NewParam(scores)
			nn.CrossEntropy(g.Value(), tensor.FromOn(on, []int64{0, label, 0, 0})).Backward()
			if err := g.Grad().Wait(); err == nil || !strings.HasSuffix(err.Error(), says) || !strings.HasPrefix(err.Error(), "asyncgen: PickClasses ") {
				t.Errorf("label %d: the gradient is of %v", label, err)
			}
		}
	}
}

// An Embedding looks vectors up, and learns those that it has looked up alone.
func TestEmbedding(t *testing.T) {
	tensor.Seed(1)
	layer := nn.Embedding(4, 2)
	x := tensor.From([]int64{1, 3, 1, 3}, 2, 2)
	y := layer.Forward(x)
	w := layer.Params()[0].Value().Detach()
	if !slices.Equal(y.Shape(), []int{2, 2, 2}) || !slices.Equal(y.Row(0).Row(1).Float32s(), w.Row(3).Float32s()) || !slices.Equal(y.Row(1).Row(0).Float32s(), w.Row(1).Float32s()) {
		t.Errorf("the vectors of %v among %v are %v", x, w, y)
	}
	frozen := nn.Frozen(layer)
	optim.SGD(layer.Params(), 1).Minimize(y.Sum())
	if got, want := layer.Params()[0].Value().Sub(w).Float32s(), []float32{0, 0, -2, -2, 0, 0, -2, -2}; !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }) {
		t.Errorf("a step changes the vectors by %v, want %v", got, want)
	}
	if !slices.Equal(frozen.Forward(x).Float32s(), y.Float32s()) {
		t.Error("the frozen layer has changed")
	}
	for _, class := range []int64{4, -1} {
		var at *device.IndexError
		if err := layer.Forward(tensor.From([]int64{class})).Wait(); !errors.As(err, &at) || at.Index != class {
			t.Errorf("class %d: %v", class, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic for -1 classes")
		}
	}()
	nn.Embedding(-1, 2)
}

// A loss for each row, as a loop computes it.
func TestLossesInVMap(t *testing.T) {
	x, y := tensor.Randn(3, 4, 5), tensor.RandInt(0, 5, 3, 4)
	loss := func(scores, labels *tensor.Tensor) *tensor.Tensor {
		a, b := scores.Row(0), scores.Row(1)
		return nn.CrossEntropy(scores, labels).Add(nn.MSELoss(a, b)).Add(nn.BCELoss(a.Sigmoid(), b.Sigmoid())).Add(nn.CosineSimilarity(a, b))
	}
	got := tensor.VMap(func(rows ...*tensor.Tensor) *tensor.Tensor { return loss(rows[0], rows[1]) }, x, y).Float32s()
	for i, v := range got {
		if want := loss(x.Row(i), y.Row(i)); v != float32(want.Item()) {
			t.Errorf("row %d: %v, want %v", i, v, want)
		}
	}
}
