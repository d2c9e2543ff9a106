package nn_test

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// centred subtracts the mean of each column: of the batch while it learns, and
// of all batches so far, which it remembers, when it is frozen. It is what a
// module of one's own with a buffer looks like.
type centred struct {
	mean *nn.Buffer
	mode nn.Mode
}

func (c *centred) Forward(x *tensor.Tensor) *tensor.Tensor {
	if !c.mode.IsTraining() {
		return x.Sub(c.mean.Value())
	}
	mean := x.Mean(0)
	if c.mean.IsSet() {
		c.mean.Set(c.mean.Value().MulScalar(0.5).Add(mean.MulScalar(0.5)))
	} else {
		c.mean.Set(mean)
	}
	return x.Sub(mean)
}

func (c *centred) Params() []*nn.Param { return nil }

func ExampleFrozen() {
	layer := nn.Dense(1)
	opt := optim.SGD(layer.Params(), 0.1)
	x, y := tensor.Ones(4, 2), tensor.Zeros(4, 1)
	opt.Minimize(nn.MSELoss(layer.Forward(x), y))

	serving := nn.Frozen(layer)
	was := layer.Forward(x).Float32s()
	opt.Minimize(nn.MSELoss(layer.Forward(x), y))
	fmt.Println(slices.Equal(serving.Forward(x).Float32s(), was), slices.Equal(layer.Forward(x).Float32s(), was))
	// Output: true false
}

func ExampleSnapshot() {
	layer := nn.Dense(1)
	opt := optim.SGD(layer.Params(), 0.1)
	x, y := tensor.Ones(4, 2), tensor.Zeros(4, 1)
	was := layer.Forward(x).Float32s()

	before := nn.Snapshot(layer, opt)
	for range 3 {
		opt.Minimize(nn.MSELoss(layer.Forward(x), y))
		opt.SetRate(opt.Rate() / 2)
	}
	before.Restore()
	fmt.Println(slices.Equal(layer.Forward(x).Float32s(), was), opt.Rate())
	// Output: true 0.1
}

// Going back to a Snapshot and training again gives the same bits: weights,
// gradients, running statistics, learning rate and random numbers are all there.
func TestSnapshotRepeats(t *testing.T) {
	tensor.Seed(5)
	noise := tensor.NewGenerator(1)
	net := nn.Sequential(&centred{mean: nn.NewBuffer(nil)}, nn.Sequential(nn.Dense(4), nn.ReLU()), nn.Dense(1))
	x, y := tensor.Randn(8, 3), tensor.Randn(8, 1)
	net.Forward(x)
	opt := optim.SGD(net.Params(), 0.1)
	run := func() (bits []float32) {
		for range 5 {
			nn.MSELoss(net.Forward(x.Add(noise.Randn(8, 3))), y).Backward() // without ZeroGrad: gradients add up
			opt.Step()
			opt.SetRate(opt.Rate() * 0.9)
		}
		for _, c := range nn.Cells(net) {
			bits = append(bits, c.Value().Float32s()...)
		}
		return append(bits, tensor.Rand(2).Float32s()...)
	}
	run()
	s := nn.Snapshot(net, opt, noise, tensor.DefaultGenerator())
	want := run()
	if again := run(); slices.Equal(again, want) {
		t.Error("nothing changes: the test compares nothing")
	}
	for range 2 {
		s.Restore()
		if got := run(); !slices.Equal(got, want) {
			t.Errorf("from the snapshot on:\n%v\nwant\n%v", got, want)
		}
	}
	if n := len(nn.Cells(net)); n != 1+4 {
		t.Errorf("%d cells", n)
	}
	if cells := opt.Cells(); len(cells) != 6 || cells[4].Value().Item() != opt.Rate() || !cells[4].Value().Ready() {
		t.Errorf("cells of the optimiser: %v", cells)
	}
}

// A frozen model is used by several goroutines while another trains and replaces it.
func TestFrozenWhileTraining(t *testing.T) {
	tensor.Seed(5)
	net := nn.Sequential(&centred{mean: nn.NewBuffer(nil)}, nn.Dense(4), nn.ReLU(), nn.Dense(1))
	x, y := tensor.Randn(8, 3), tensor.Randn(8, 1)
	net.Forward(x)
	opt := optim.SGD(net.Params(), 0.1)
	frozen := nn.Frozen(nn.Frozen(net))
	mean, w, b := x.Mean(0), net.Params()[0].Value().Detach(), net.Params()[1].Value().Detach()
	want := x.Sub(mean).MatMul(w).Add(b).ReLU().MatMul(net.Params()[2].Value()).Add(net.Params()[3].Value()).Float32s()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				if got := frozen.Forward(x).Float32s(); !slices.Equal(got, want) {
					t.Errorf("the frozen model answers %v, want %v", got, want)
				}
			}
		})
	}
	for range 20 {
		opt.Minimize(nn.MSELoss(net.Forward(x), y))
	}
	wg.Wait()
	optim.SGD(frozen.Params(), math.MaxFloat64).Step() // nothing to learn
	if got := frozen.Forward(x).Float32s(); !slices.Equal(got, want) {
		t.Errorf("after training the frozen model answers %v, want %v", got, want)
	}
}

// Goroutines may ask for the parameters of a model while others freeze or clone a part of it.
func TestFrozenWhileNaming(t *testing.T) {
	for range 20 {
		part := nn.Sequential(nn.LSTM(3, 1), nn.Dense(2))
		part.Forward(tensor.Ones(1, 1, 2))
		net := nn.Sequential(nn.Identity(), part)
		var wg sync.WaitGroup
		wg.Go(func() { nn.Frozen(part) })
		wg.Go(func() { nn.Clone(part) })
		wg.Go(func() { nn.Params(net) })
		wg.Wait()
	}
}

func TestFrozenMistakes(t *testing.T) {
	p := nn.NewParam(tensor.Ones(1))
	mistaken(t, map[string]func(){
		"nn: Frozen: parameter 0 of nn.sequential is in none of its fields, nor in those of its parts": func() {
			nn.Frozen(nn.Sequential(nn.ReLU(), hidden(func() *nn.Param { return p })))
		},
		"nn: Frozen: the module is nil":            func() { nn.Frozen[nn.Module](nil) },
		"tensor: Frozen: " + op.MistakeNoParameter: func() { nn.Frozen(nn.Dense(1)) },
	})
}
