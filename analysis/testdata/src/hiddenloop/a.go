package hiddenloop

import (
	"fmt"
	"iter"
	"slices"
	"sort"
	"sync"

	"batch"
	"lists"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

var w *tensor.Tensor

func step(b Batch) *tensor.Tensor { return batch.Loss(w, b) }

func seq(yield func(Batch) bool) {}

func results(data []Batch) iter.Seq2[int, *tensor.Tensor] { return batch.Steps(w, data) }

func bodies(data []Batch) (total float64) {
	for b := range seq {
		total += step(b).Item() // want `blocking read in hidden loop: step\(b\).Item\(\) waits for the device each time; keep or yield the tensor and read it later \[AT012\]`
	}
	for i, t := range results(data) {
		total += float64(i) * t.Item() // want `AT012`
	}
	for _, b := range slices.Backward(data) {
		total += step(b).Item() // want `AT012`
	}
	return
}

func literals(data []Batch) (total float64) {
	batch.Each(len(data), func(i int) {
		total += step(data[i]).Item() // want `AT012`
	})
	slices.SortFunc(data, func(a, b Batch) int {
		return int(step(a).Item() - step(b).Item()) // want `step\(a\).Item\(\) waits for the device in each comparison; read what is compared before, and sort by that` `step\(b\)`
	})
	sort.Slice(data, func(i, j int) bool {
		x, y := step(data[i]), step(data[j])
		if x.Item() < y.Item() { // want `x.Item\(\) waits for the device in each comparison` `y.Item\(\)`
			return true
		}
		return false
	})
	batch.Visits(data[0], func(t *tensor.Tensor) {
		total += t.Item() // want `AT012`
	})
	batch.Each(len(data), func(i int) {
		asyncrt.Try(func() {
			total += step(data[i]).Item() // want `AT012`
		})
	})
	return
}

func iterator(data []Batch) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		for _, b := range data {
			if !yield(step(b).Item()) { // want `AT012`
				return
			}
		}
	}
}

type set []Batch

func (data set) losses(yield func(int, float64) bool) {
	for i, b := range data {
		loss := step(b)
		v := loss.Item() // want `AT012`
		if !yield(i, v*2) {
			return
		}
	}
}

// Silent.

func others(data []Batch, f func(func(int)), given []*tensor.Tensor, report func(float64), more func(float64) bool, n int) (total float64) {
	for _, b := range data {
		total += step(b).Item() // everybody sees this loop
		asyncrt.Try(func() {
			total += step(b).Item()
		})
		report(step(b).Item()) // no iterator
		more(step(b).Item())
	}
	batch.Once(func() { total += step(data[0]).Item() })
	f(func(i int) { total += step(data[i]).Item() })
	batch.Each(len(data), func(i int) {
		step(data[i])
		if i%100 == 0 || i == 0 || i == len(data)-1 {
			total += step(data[i]).Item()
		}
		total += given[i].Item()
		fmt.Println(step(data[i])) // AT004
		if step(data[i]).Item() > 1 {
			panic("diverged") // AT005
		}
	})
	batch.Each(len(data), func(i int) {
		for range 10 {
			total += step(data[i]).Item() // AT001
		}
	})
	var once sync.Once
	once.Do(func() { total += step(data[0]).Item() })
	return
}

// Of a package without facts, the signatures tell something.
func signatures(data []Batch) (total float64, err error) {
	lists.Map(data, func(b Batch) float64 {
		return step(b).Item() // want `AT012`
	})
	for _, b := range data {
		lists.Later(func() { total += step(b).Item() })
		err = lists.Retry(3, func() error {
			total += step(b).Item() // AT001
			return nil
		})
	}
	lists.Every(10, func(i int) { total += step(data[i]).Item() })
	return
}

// An iterator that trains between two values makes the loop over them one over steps; one that
// passes through data before each makes it one over epochs.

func losses(data []Batch, opt *optim.Optimizer) iter.Seq[*tensor.Tensor] {
	return func(yield func(*tensor.Tensor) bool) {
		for _, b := range data {
			loss := step(b)
			opt.Minimize(loss)
			if !yield(loss) {
				return
			}
		}
	}
}

func epochs(data []Batch, opt *optim.Optimizer) iter.Seq[*tensor.Tensor] {
	return func(yield func(*tensor.Tensor) bool) {
		for range 100 {
			var loss *tensor.Tensor
			for _, b := range data {
				loss = step(b)
				opt.Minimize(loss)
			}
			if !yield(loss) {
				return
			}
		}
	}
}

func trains(data []Batch, opt *optim.Optimizer) (total float64) {
	for loss := range losses(data, opt) {
		total += loss.Item() // want `AT012`
	}
	for loss := range epochs(data, opt) {
		total += loss.Item()
	}
	return total
}

// What is compared need not have been enqueued by anybody near.

type beam struct{ score *tensor.Tensor }

func sorts(beams []beam, ts []*tensor.Tensor) *tensor.Tensor {
	sort.Slice(beams, func(i, j int) bool {
		return beams[i].score.Item() > beams[j].score.Item() // want `beams\[i\].score.Item\(\) waits for the device in each comparison` `beams\[j\]`
	})
	slices.SortFunc(ts, func(a, b *tensor.Tensor) int {
		if a.Item() < b.Item() { // want `AT012` `AT012`
			return -1
		}
		return 1
	})
	host := []*tensor.Tensor{tensor.From([]float64{1}), tensor.From([]float64{2})}
	sort.Slice(host, func(i, j int) bool { return host[i].Item() > host[j].Item() })
	bound := 0.0
	return slices.MaxFunc(ts, func(a, b *tensor.Tensor) int {
		if bound == 0 {
			bound = w.Item() // another thing
		}
		return a.Dim(0) - b.Dim(0)
	})
}
