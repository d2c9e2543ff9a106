package loopcall

import (
	"slices"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func (m *model) score(b Batch) float64 { return batch.Loss(w, b).Item() }

func (m *model) scaled(b Batch) *tensor.Tensor { return batch.Loss(w, b) }

func visit(data []Batch, f func(b Batch) float64) (total float64) {
	for _, b := range data {
		total += f(b)
	}
	return
}

func score(b Batch) float64 { return batch.Loss(w, b).Item() }

func compare(a, b Batch) int { return int(score(a) - score(b)) }

// Functions by name.
func values(m *model, data []Batch) (total float64) {
	visit(data, m.score) // want `blocking call in loop: m.score waits for the device in each iteration \(batch.Loss\(w, b\).Item\(\) at values.go:11\)`
	visit(data, score)   // want `score waits`
	f := score
	visit(data, f)                 // want `f waits`
	slices.SortFunc(data, compare) // want `compare waits .*\(score at values.go:24, then `
	g := m.score
	read := batch.Value
	for _, b := range data {
		total += g(b)              // want `g waits`
		total += read(m.scaled(b)) // want `read waits`
		total += read(w)
	}
	h := batch.Reader()
	for _, b := range data {
		total += h(batch.Loss(w, b))              // want `h waits`
		total += batch.Reader()(batch.Loss(w, b)) // want `batch.Reader\(\) waits`
	}
	for _, b := range data {
		batch.Visit(b, show) // want `show waits .*\(fmt.Println at a.go:42\)`
		batch.Handed(b)      // want `batch.Handed waits`
	}
	batch.Visits(data[0], show) // outside of any loop of this function // want `show waits`
	return
}

// The callee waits in a loop, but for what this loop enqueues.
func lists(data []Batch, given []*tensor.Tensor) (total float64) {
	for _, b := range data {
		both := []*tensor.Tensor{batch.Loss(w, b), batch.Loss(b.X, b)}
		total += batch.Sum(both) // want `batch.Sum waits`
		total += batch.Sum(given)
	}
	return
}

// Silent.

func once(f func()) { f() }

func quiet(data []Batch) {
	once(func() { score(data[0]) })
	visit(data, func(b Batch) float64 { return float64(b.X.Dim(0)) })
	var f func(Batch) float64
	f = f
	visit(data, f)
	visit(data, func(b Batch) float64 { return 0 })
}

// best waits in a loop of its own, and the loop around it computes with what it returns.
func best(x *tensor.Tensor) (at int) {
	least := 1.0
	for i := range 100 {
		if v := x.MulScalar(float64(i)).Mean().Item(); v < least {
			at, least = i, v
		}
	}
	return at
}

func boosted(x *tensor.Tensor, n int) (all []int) {
	for range n {
		at := best(x) // want `best waits for the device in each iteration`
		all = append(all, at)
		x = x.AddScalar(float64(at))
	}
	for range n {
		all = append(all, best(x.AddScalar(1)))
	}
	return all
}

type world interface{ Step(action int) []float32 }

func rollout(w *tensor.Tensor, env world, n int) (all []float32) {
	obs := env.Step(0)
	for range n {
		obs = env.Step(int(w.Mul(tensor.From(obs)).ArgMax(0).ItemInt()))
		all = append(all, obs...)
	}
	return all
}

// The world waits for each action, and the loop around it for the world.
func episodes(w *tensor.Tensor, env world, n int) *tensor.Tensor {
	for range n {
		w = w.Add(tensor.From(rollout(w, env, 100)))
	}
	return w
}
