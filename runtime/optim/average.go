package optim

import (
	"iter"
	"strconv"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An Average is an average of the weights that a model had during training. It often does better than the last of them.
// It is for one goroutine at a time.
//
//	avg := optim.EMA(net.Params(), 0.999)
//	for _, b := range batches {
//		opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
//		avg.Update()
//	}
//	avg.Swap() // net has the average
//	serving := nn.Frozen(net)
//	avg.Swap() // and its own weights again
//
// Buffers of a model, such as running statistics, are not averaged. An average has the element type of its parameter,
// and in a half type it hardly moves: what an Update adds is rounded away. Keep parameters in float32.
type Average struct {
	params   []*nn.Param
	keep     float64 // by an update; of SWA: below 0
	averages []tensor.Buffer
	counts   []int64 // one number, of updates
}

var _ nn.Stateful = (*Average)(nil)

// EMA returns an exponential moving average of the parameters: each Update makes it keep times the
// average plus (1-keep) times the present value. The first Update takes the value as it is. EMA panics
// with a [tensor.Mistake] unless keep is a number from 0 to 1.
//
//asyncgen:api pure
func EMA(params []*nn.Param, keep float64) *Average {
	if !(keep >= 0 && keep <= 1) {
		wrong("EMA", "the share to keep is %v, want a number from 0 to 1", keep)
	}
	return newAverage("EMA", params, keep)
}

// SWA returns the average of the values that the parameters have at each Update, with equal weights: stochastic weight
// averaging (Izmailov and others 2018).
//
//asyncgen:api pure
func SWA(params []*nn.Param) *Average { return newAverage("SWA", params, -1) }

func newAverage(name string, params []*nn.Param, keep float64) *Average {
	params = distinct(name, params)
	return &Average{params, keep, make([]tensor.Buffer, len(params)), make([]int64, 1)}
}

// Update takes the present values of the parameters into the average, by one command for each. It panics if one has no
// value yet, or another shape than before.
//
//asyncgen:api mutate
//go:noinline
func (a *Average) Update() {
	u := update{now: &numbers{}}
	now := u.now
	inEachRun(counts{&a.counts}, func() {
		tensor.Changing(counts{&a.counts})
		a.counts[0]++
		now.steps = float64(a.counts[0])
	})
	weight := func(n numbers) []float64 {
		if a.keep < 0 {
			return []float64{1 / n.steps}
		}
		return []float64{1 - a.keep}
	}
	for i, p := range a.params {
		v, b := p.Value(), &a.averages[i]
		x := v.Detach()
		if !b.IsSet() {
			b.Set(x)
			tensor.Dead(v, x)
			continue
		}
		old := b.Value()
		mustKeepShape("Update", i, old, x)
		next := u.with(average.keeping(a.keep).plain, weight).Of(old, x)
		b.Set(next)
		tensor.Dead(v, x, old, next)
	}
}

// Swap exchanges the values of the parameters and their averages: it gives a model the averages, and the next
// Swap gives it its own weights back. No element is copied, and Swap enqueues nothing. Train, and Update, only
// with the model's own weights. Swap panics with a [tensor.Mistake] before the first Update.
//
//asyncgen:api mutate
func (a *Average) Swap() {
	if a.counts[0] == 0 {
		wrong("Swap", "there is no average before the first Update")
	}
	for i, p := range a.params {
		v, avg := p.Value(), a.averages[i].Value()
		p.Set(avg)
		a.averages[i].Set(v)
		tensor.Dead(v, avg)
	}
}

// State is the sequence of what Update changes, with names: "updates" counts them, an int64 tensor on the CPU, and
// "average.2" is that of the third parameter, which has no value before the first Update.
//
//asyncgen:api meta
func (a *Average) State() iter.Seq2[string, tensor.Cell] {
	return func(yield func(string, tensor.Cell) bool) {
		if !yield("updates", counts{&a.counts}) {
			return
		}
		for i := range a.averages {
			if !yield("average."+strconv.Itoa(i), &a.averages[i]) {
				return
			}
		}
	}
}

// Cells lists what Update and Swap change: the parameters, and the cells of [Average.State].
//
//asyncgen:api meta
func (a *Average) Cells() []tensor.Cell {
	var cells []tensor.Cell
	for _, p := range a.params {
		cells = append(cells, p)
	}
	for _, c := range a.State() {
		cells = append(cells, c)
	}
	return cells
}
