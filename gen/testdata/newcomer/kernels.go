// Package newcomer has functions as people write them who have read README and
// nothing else.
package newcomer

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch struct {
	X, Y *tensor.Tensor
}

//asyncgen:kernel
func Linear(out io.Writer, w *tensor.Tensor, batches []Batch, rate float64) (*tensor.Tensor, float64) {
	sum := 0.0
	for i, b := range batches {
		diff := b.X.MatMul(w).Sub(b.Y)
		loss := diff.Square().Mean()
		w = w.Sub(b.X.T().MatMul(diff).MulScalar(rate))
		sum += loss.Item()
		if i%3 == 0 {
			fmt.Fprintf(out, "step %d: loss %.5f\n", i, loss.Item())
		}
	}
	return w, sum / float64(len(batches))
}

//asyncgen:kernel
func Network(net nn.Module, opt *optim.Optimizer, batches []Batch) []float64 {
	var losses []float64
	for _, b := range batches {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		opt.Minimize(loss)
		losses = append(losses, loss.Item())
	}
	return losses
}

//asyncgen:kernel
func Epochs(out io.Writer, net nn.Module, opt *optim.Optimizer, train, test []Batch) {
	for epoch := range 3 {
		trainLoss := 0.0
		for _, b := range train {
			loss := nn.MSELoss(net.Forward(b.X), b.Y)
			opt.Minimize(loss)
			trainLoss += loss.Item()
		}
		testLoss := 0.0
		for _, b := range test {
			testLoss += nn.MSELoss(net.Forward(b.X), b.Y).Item()
		}
		fmt.Fprintf(out, "epoch %d train %.4f test %.4f\n", epoch+1, trainLoss/float64(len(train)), testLoss/float64(len(test)))
	}
}

//asyncgen:kernel
func Accuracy(net nn.Module, batches []Batch) float64 {
	correct, total := 0, 0
	for _, b := range batches {
		guesses := net.Forward(b.X).ArgMax(1)
		wanted := b.Y.ArgMax(1)
		correct += int(guesses.Eq(wanted).As(tensor.Int64).Sum().ItemInt())
		total += b.X.Dim(0)
	}
	return float64(correct) / float64(total)
}

//asyncgen:kernel
func Mistakes(out io.Writer, net nn.Module, batches []Batch) int {
	mistakes := 0
	for k, b := range batches {
		scores := net.Forward(b.X)
		for i := range b.X.Dim(0) {
			guess := scores.Row(i).ArgMax().ItemInt()
			want := b.Y.Row(i).ArgMax().ItemInt()
			if guess != want {
				mistakes++
				fmt.Fprintf(out, "batch %d, row %d: %d instead of %d\n", k, i, guess, want)
			}
		}
	}
	return mistakes
}

//asyncgen:kernel
func Patience(out io.Writer, net nn.Module, opt *optim.Optimizer, b Batch) (float64, int) {
	best, waited := math.Inf(1), 0
	for step := range 60 {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		opt.Minimize(loss)
		l := loss.Item()
		if l < best-0.01 {
			best, waited = l, 0
		} else {
			waited++
		}
		if waited == 3 {
			fmt.Fprintln(out, "no better since step", step-3)
			return best, step
		}
	}
	return best, 60
}

//asyncgen:kernel
func Until(w *tensor.Tensor, b Batch, tolerance float64) (*tensor.Tensor, int) {
	steps := 0
	for loss := math.Inf(1); loss > tolerance && steps < 200; steps++ {
		diff := b.X.MatMul(w).Sub(b.Y)
		w = w.Sub(b.X.T().MatMul(diff).MulScalar(0.05))
		loss = diff.Square().Mean().Item()
	}
	return w, steps
}

//asyncgen:kernel
func PowerIteration(a *tensor.Tensor) float64 {
	v := tensor.Ones(a.Dim(0))
	lambda := 0.0
	for range 20 {
		v = a.MatMul(v)
		lambda = v.Norm().Item()
		v = v.DivScalar(lambda)
	}
	return lambda
}

//asyncgen:kernel
func Clipped(w *tensor.Tensor, batches []Batch) *tensor.Tensor {
	for _, b := range batches {
		grad := b.X.T().MatMul(b.X.MatMul(w).Sub(b.Y))
		if norm := grad.Norm().Item(); norm > 1 {
			grad = grad.MulScalar(1 / norm)
		}
		w = w.Sub(grad.MulScalar(0.1))
	}
	return w
}

//asyncgen:kernel
func Decay(out io.Writer, w *tensor.Tensor, batches []Batch) *tensor.Tensor {
	rate, previous := 0.2, math.Inf(1)
	for i, b := range batches {
		diff := b.X.MatMul(w).Sub(b.Y)
		loss := diff.Square().Mean().Item()
		if loss > previous {
			rate /= 2
			fmt.Fprintf(out, "step %d: rate is now %g\n", i, rate)
		}
		previous = loss
		w = w.Sub(b.X.T().MatMul(diff).MulScalar(rate))
	}
	return w
}

//asyncgen:kernel
func Histogram(xs []*tensor.Tensor) map[int64]int {
	counts := map[int64]int{}
	for _, x := range xs {
		counts[x.Flatten().ArgMax().ItemInt()]++
	}
	return counts
}

//asyncgen:kernel
func SquareRoot(a *tensor.Tensor) (*tensor.Tensor, int) {
	x := a
	for i := 1; ; i++ {
		next := x.Add(a.Div(x)).MulScalar(0.5)
		change := next.Sub(x).Abs().Max().Item()
		x = next
		if change < 1e-4 || i == 40 {
			return x, i
		}
	}
}

//asyncgen:kernel
func Table(out io.Writer, xs []*tensor.Tensor) {
	fmt.Fprintln(out, "n,mean,low,high")
	for i, x := range xs {
		fmt.Fprintf(out, "%d,%.4f,%.4f,%.4f\n", i, x.Mean().Item(), x.Min().Item(), x.Max().Item())
	}
}

//asyncgen:kernel
func Show(out io.Writer, xs []*tensor.Tensor) {
	for i, x := range xs {
		y := x.Softmax(1)
		fmt.Fprintln(out, "input", i, "has shape", x.Shape(), "and sum", x.Sum())
		fmt.Fprintln(out, y)
	}
}

//asyncgen:kernel
func Best(candidates []*tensor.Tensor, b Batch) (int, float64) {
	best, lowest := -1, math.Inf(1)
	for i, w := range candidates {
		loss := b.X.MatMul(w).Sub(b.Y).Square().Mean().Item()
		if loss < lowest {
			best, lowest = i, loss
		}
	}
	return best, lowest
}

//asyncgen:kernel
func Pi(samples int) float64 {
	inside := int64(0)
	for range samples {
		p := tensor.Rand(100, 2)
		hits := p.Square().Sum(1).Le(tensor.Ones(100))
		inside += hits.As(tensor.Int64).Sum().ItemInt()
	}
	return 4 * float64(inside) / float64(100*samples)
}

//asyncgen:kernel
func Smoothed(out io.Writer, net nn.Module, opt *optim.Optimizer, batches []Batch) float64 {
	average := 0.0
	for i, b := range batches {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		opt.Minimize(loss)
		if i == 0 {
			average = loss.Item()
		} else {
			average = 0.9*average + 0.1*loss.Item()
		}
		fmt.Fprintf(out, "%3d %s %.4f\n", i, strings.Repeat("*", i), average)
	}
	return average
}

//asyncgen:kernel
func Checked(net nn.Module, opt *optim.Optimizer, batches []Batch) error {
	for i, b := range batches {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		if l := loss.Item(); math.IsNaN(l) || l > 1e6 {
			return fmt.Errorf("batch %d: loss is %v", i, l)
		}
		opt.Minimize(loss)
	}
	return nil
}

//asyncgen:kernel
func Distances(points *tensor.Tensor) [][]float64 {
	n := points.Dim(0)
	all := make([][]float64, n)
	for i := range n {
		all[i] = make([]float64, n)
		for j := range n {
			all[i][j] = points.Row(i).Sub(points.Row(j)).Norm().Item()
		}
	}
	return all
}

type Result struct {
	Name  string
	Loss  float64
	Worst float64
}

// report tells how good a model is.
func report(net nn.Module, b Batch) Result {
	off := net.Forward(b.X).Sub(b.Y)
	return Result{Loss: off.Square().Mean().Item(), Worst: off.Abs().Max().Item()}
}

//asyncgen:kernel
func Compare(nets map[string]nn.Module, names []string, b Batch) []Result {
	var results []Result
	for _, name := range names {
		r := report(nets[name], b)
		r.Name = name
		results = append(results, r)
	}
	return results
}
