package severity

import (
	"fmt"
	"stopclock"
	"time"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Waits that somebody wants.

// One read for each name.
func flush(kept map[string][]*tensor.Tensor) map[string][]float32 {
	out := make(map[string][]float32)
	for name, list := range kept {
		out[name] = tensor.Stack(0, list...).Float32s()
	}
	return out
}

// There may be as many lists as batches.
func flushAll(kept [][]*tensor.Tensor) (out [][]float32) {
	for _, list := range kept {
		out = append(out, tensor.Stack(0, list...).Float32s()) // want `AT001`
	}
	return out
}

type query struct {
	x      []float32
	answer chan<- int64
}

// The clients of a batch wait.
func serveAll(net nn.Module, queue chan query) {
	for r := range queue {
		batch := []query{r}
		for len(batch) < cap(queue) && len(queue) > 0 {
			batch = append(batch, <-queue)
		}
		answerAll(net, batch)
	}
}

func answerAll(net nn.Module, batch []query) {
	var rows []*tensor.Tensor
	for _, r := range batch {
		rows = append(rows, tensor.From(r.x))
	}
	classes := net.Forward(tensor.Stack(0, rows...)).ArgMax(1).Int64s()
	for i, r := range batch {
		r.answer <- classes[i]
	}
}

// Nobody has asked for these.
func serveLists(net nn.Module, lists [][]query) {
	for _, batch := range lists {
		answerAll(net, batch) // want `AT010`
	}
}

func predict(net nn.Module, x *tensor.Tensor) float64 { return net.Forward(x).Item() }

// The question is how long one prediction takes.
func latency(net nn.Module, n int) time.Duration {
	x := tensor.Randn(8)
	start := time.Now()
	for range n {
		predict(net, x)
	}
	return time.Since(start) / time.Duration(n)
}

// Here it is how long all of them take.
func throughput(net nn.Module, xs []*tensor.Tensor) (sum float64) {
	start := time.Now()
	for _, x := range xs {
		sum += predict(net, x) // want `AT010`
	}
	fmt.Println(time.Since(start))
	return sum
}

// A world that is asked for all of its parts, whose answers are copied to one list.

type part interface {
	Step(action int) (seen []float32, done bool)
}

func playAll(net nn.Module, parts []part, seen []float32, steps int) {
	width := len(seen) / len(parts)
	for range steps {
		actions := boardActions(net, tensor.From(seen, len(parts), width))
		for i, p := range parts {
			next, _ := p.Step(int(actions[i]))
			copy(seen[i*width:], next)
		}
	}
}

func boardActions(net nn.Module, x *tensor.Tensor) []int64 { return net.Forward(x).ArgMax(1).Int64s() }

// A stopwatch of another package: x has to be there before it starts.
func timesEach(sizes []int) {
	var w stopclock.Watch
	for _, n := range sizes {
		x := tensor.Randn(n, n)
		x.Wait()
		w.Start()
		x.MatMul(x)
		fmt.Println(w.Done())
	}
}

// What logs the time is no stopwatch.
func notesEach(sizes []int) {
	for _, n := range sizes {
		x := tensor.Randn(n, n)
		x.Wait() // want `AT009`
		stopclock.Note(x.MatMul(x))
	}
}
