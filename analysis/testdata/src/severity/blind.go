package severity

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func same(x, y *tensor.Tensor) bool { return x == y } // want `AT033`

// aliased asks for the handle, as its name says.
func aliased(x, y *tensor.Tensor) bool { return x == y }

// first compares values if it has to.
func first(x, y *tensor.Tensor) bool {
	if x == y {
		return true
	}
	return x.Sub(y).Norm().Item() < 1e-6
}

// A search that stands alone; one in a loop of steps is a part of a step.
func halve(f func(x *tensor.Tensor) *tensor.Tensor, x *tensor.Tensor, limit float64) float64 {
	t := 1.0
	for f(x.MulScalar(t)).Item() > limit { // want `AT005`
		t /= 2
	}
	for t := 1.0; t > 1e-8; t /= 2 {
		if f(x.MulScalar(t)).Item() < limit { // want `AT005`
			return t
		}
	}
	return t
}

func descended(f func(x *tensor.Tensor) *tensor.Tensor, x, g *tensor.Tensor, limit float64) *tensor.Tensor {
	for range 100 {
		t := 1.0
		for f(x.AddScaled(g, t)).Item() > limit {
			t /= 2
		}
		x = x.AddScaled(g, t)
	}
	return x
}

// Somebody waits for each word.
func chat(logits func(tokens []int64) *tensor.Tensor, tokens []int64, words []string, show func(string)) {
	for {
		t := logits(tokens).ArgMax().ItemInt()
		if t == 0 {
			return
		}
		show(words[t])
		tokens = append(tokens, t)
	}
}

func greedy(next func(x *tensor.Tensor) *tensor.Tensor, tokens []int64, n int) []int64 {
	for range n {
		tokens = append(tokens, next(tensor.From(tokens)).ArgMax().ItemInt()) // want `AT001`
	}
	return tokens
}

// An experiment has to be told what to try.
func explore(x *tensor.Tensor, rounds int, measure func(i int64) float64) *tensor.Tensor {
	for range rounds {
		at := x.Add(tensor.Randn(8)).ArgMax().ItemInt()
		y := measure(at)
		x = x.AddScalar(y * 1e-3)
	}
	return x
}

// Each word is waited for before it is told.
func tell(mic <-chan []float32, say func(int64)) error {
	for chunk := range mic {
		best := tensor.From(chunk).MatMul(w).ArgMax()
		if err := best.Wait(); err != nil {
			return err
		}
		say(best.ItemInt())
	}
	return nil
}

func load(path string) (*tensor.Tensor, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return tensor.From([]float32{float32(len(b))}), nil
}

func save(path string, x *tensor.Tensor) error {
	return os.WriteFile(path, []byte(fmt.Sprint(x.Float32s())), 0o644)
}

// One file in, one file out.
func convert(paths []string) error {
	for _, path := range paths {
		x, err := load(path)
		if err != nil {
			return err
		}
		if err := save(path+".out", x.MulScalar(2)); err != nil {
			return err
		}
	}
	return nil
}

func convertInPlace(paths []string) error {
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		y := w.MulScalar(float64(len(b)))
		if err := os.WriteFile(path, []byte(fmt.Sprint(y)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func has(list []*tensor.Tensor, x *tensor.Tensor) bool {
	return slices.ContainsFunc(list, func(y *tensor.Tensor) bool { return y == x }) // want `AT033`
}

func isLive(list []*tensor.Tensor, x *tensor.Tensor) bool {
	return slices.ContainsFunc(list, func(y *tensor.Tensor) bool { return y == x })
}

func dump(x *tensor.Tensor, n int) error {
	for i := range n {
		x = x.MulScalar(2)
		if err := save(fmt.Sprint(i), x); err != nil { // want `AT010`
			return err
		}
	}
	return nil
}

// Deadlines and steps.
func slow(xs []*tensor.Tensor, budget time.Duration) (n int) {
	start := time.Now()
	for _, x := range xs {
		t0 := time.Now()
		y := x.MatMul(w)
		if time.Since(t0) > time.Millisecond { // want `AT020`
			n++
		}
		t1 := time.Now()
		y = y.MatMul(w)
		took := time.Since(t1) // want `AT020`
		if took > time.Millisecond {
			n++
		}
		if time.Since(start) > budget {
			break
		}
		until := time.Now()
		for time.Since(until) < budget {
			y = y.MatMul(w)
		}
	}
	return n
}
