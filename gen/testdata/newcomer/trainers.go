package newcomer

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// evaluate returns the mean loss and the share of right guesses over a set.
func evaluate(net nn.Module, set []Batch) (loss, accuracy float64) {
	right, n := 0, 0
	for _, b := range set {
		scores := net.Forward(b.X)
		loss += nn.MSELoss(scores, b.Y).Item()
		right += int(scores.ArgMax(1).Eq(b.Y.ArgMax(1)).As(tensor.Int64).Sum().ItemInt())
		n += b.X.Dim(0)
	}
	return loss / float64(len(set)), float64(right) / float64(n)
}

// Validation trains, and looks after every epoch how good the model is on other data.
//
//asyncgen:kernel
func Validation(out io.Writer, net nn.Module, opt *optim.Optimizer, train, valid []Batch) {
	for epoch := 1; epoch <= 4; epoch++ {
		running := 0.0
		for _, b := range train {
			loss := nn.MSELoss(net.Forward(b.X), b.Y)
			opt.Minimize(loss)
			running += loss.Item()
		}
		loss, accuracy := evaluate(net, valid)
		fmt.Fprintf(out, "epoch %d: train %.4f, valid %.4f, accuracy %.1f %%\n", epoch, running/float64(len(train)), loss, 100*accuracy)
	}
}

// EarlyStopping ends when the validation loss has not become better for two epochs.
//
//asyncgen:kernel
func EarlyStopping(out io.Writer, net nn.Module, opt *optim.Optimizer, train, valid []Batch) int {
	best, bad := math.MaxFloat64, 0
	epoch := 0
	for ; epoch < 20; epoch++ {
		for _, b := range train {
			opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
		}
		var total float64
		for _, b := range valid {
			total += nn.MSELoss(net.Forward(b.X), b.Y).Item()
		}
		fmt.Fprintf(out, "%d: %.5f\n", epoch, total)
		if total < best {
			best, bad = total, 0
			continue
		}
		if bad++; bad >= 2 {
			break
		}
	}
	return epoch
}

// PerClass counts, for every class, how often it was there, guessed, and both.
//
//asyncgen:kernel
func PerClass(out io.Writer, net nn.Module, batches []Batch) {
	const classes = 3
	var there, guessed, both [classes]int
	for _, b := range batches {
		guess := net.Forward(b.X).ArgMax(1).Int64s()
		want := b.Y.ArgMax(1).Int64s()
		for i, g := range guess {
			guessed[g]++
			there[want[i]]++
			if g == want[i] {
				both[g]++
			}
		}
	}
	for c := range classes {
		fmt.Fprintf(out, "class %d: precision %.3f recall %.3f\n", c, float64(both[c])/float64(guessed[c]), float64(both[c])/float64(there[c]))
	}
}

// ClipByNorm scales gradients that are too long, and tells how often.
//
//asyncgen:kernel
func ClipByNorm(out io.Writer, w *tensor.Tensor, batches []Batch, rate float64) (*tensor.Tensor, int) {
	clipped := 0
	for step, b := range batches {
		grad := b.X.T().MatMul(b.X.MatMul(w).Sub(b.Y)).DivScalar(float64(b.X.Dim(0)))
		norm := grad.Norm().Item()
		if norm > 5 {
			grad = grad.MulScalar(5 / norm)
			clipped++
		}
		w = w.Sub(grad.MulScalar(rate))
		if step%2 == 0 {
			fmt.Fprintf(out, "step %d: gradient norm %.3f\n", step, norm)
		}
	}
	return w, clipped
}

// plateau lowers a learning rate when a loss has stopped to fall.
type plateau struct {
	rate, best    float64
	patience, bad int
}

func (p *plateau) step(loss float64) {
	if loss < p.best {
		p.best, p.bad = loss, 0
		return
	}
	if p.bad++; p.bad > p.patience {
		p.rate, p.bad = p.rate/10, 0
	}
}

// OnPlateau is a training loop with a schedule that depends on the loss.
//
//asyncgen:kernel
func OnPlateau(w *tensor.Tensor, batches []Batch) (*tensor.Tensor, float64) {
	schedule := plateau{rate: 0.1, best: math.Inf(1), patience: 2}
	for _, b := range batches {
		diff := b.X.MatMul(w).Sub(b.Y)
		loss := diff.Square().Mean()
		w = w.Sub(b.X.T().MatMul(diff).MulScalar(schedule.rate))
		schedule.step(loss.Item())
	}
	return w, schedule.rate
}

// A Meter keeps a running average.
type Meter struct {
	sum   float64
	count int
}

func (m *Meter) Update(v float64, n int) { m.sum += v * float64(n); m.count += n }

func (m *Meter) Avg() float64 { return m.sum / float64(m.count) }

// RunningAverages keeps two meters and logs every ten steps.
//
//asyncgen:kernel
func RunningAverages(out io.Writer, net nn.Module, opt *optim.Optimizer, batches []Batch) float64 {
	losses, errs := &Meter{}, &Meter{}
	for step, b := range batches {
		pred := net.Forward(b.X)
		loss := nn.MSELoss(pred, b.Y)
		opt.Minimize(loss)
		losses.Update(loss.Item(), b.X.Dim(0))
		errs.Update(pred.Sub(b.Y).Abs().Max().Item(), 1)
		if (step+1)%10 == 0 {
			fmt.Fprintf(out, "[%4d] loss %.4f  worst %.4f\n", step+1, losses.Avg(), errs.Avg())
		}
	}
	return losses.Avg()
}

// LogEachTenth writes structured logs.
//
//asyncgen:kernel
func LogEachTenth(out io.Writer, net nn.Module, opt *optim.Optimizer, batches []Batch) {
	log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: noTime}))
	for step, b := range batches {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		opt.Minimize(loss)
		if step%10 == 0 {
			log.Info("trained", "step", step, slog.Float64("loss", loss.Item()))
		}
	}
}

func noTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// Confusion returns which class was taken for which how often.
//
//asyncgen:kernel
func Confusion(net nn.Module, batches []Batch) [][]int {
	matrix := make([][]int, 3)
	for i := range matrix {
		matrix[i] = make([]int, 3)
	}
	for _, b := range batches {
		scores := net.Forward(b.X)
		for i := 0; i < scores.Dim(0); i++ {
			want := b.Y.Row(i).ArgMax().ItemInt()
			got := scores.Row(i).ArgMax().ItemInt()
			matrix[want][got]++
		}
	}
	return matrix
}

// topK reports whether label is among the k largest of scores.
func topK(scores []float32, label int64, k int) bool {
	better := 0
	for _, s := range scores {
		if s > scores[label] {
			better++
		}
	}
	return better < k
}

// TopK is the share of rows of which the right class is among the best two.
//
//asyncgen:kernel
func TopK(net nn.Module, batches []Batch) float64 {
	hits, rows := 0, 0
	for _, b := range batches {
		scores := net.Forward(b.X)
		labels := b.Y.ArgMax(1).Int64s()
		for i, label := range labels {
			if topK(scores.Row(i).Float32s(), label, 2) {
				hits++
			}
			rows++
		}
	}
	return float64(hits) / float64(rows)
}

// Perplexity is that of the softmax of the scores.
//
//asyncgen:kernel
func Perplexity(net nn.Module, batches []Batch) (perplexity float64) {
	nats, tokens := 0.0, 0
	for _, b := range batches {
		logProb := net.Forward(b.X).LogSoftmax(1)
		picked := logProb.Pick(b.Y.ArgMax(1))
		nats -= picked.Sum().Item()
		tokens += picked.Size()
	}
	return math.Exp(nats / float64(tokens))
}

// LargestEigenvalue iterates until the value stays.
//
//asyncgen:kernel
func LargestEigenvalue(a *tensor.Tensor) (float64, int) {
	v := tensor.Ones(a.Dim(0)).DivScalar(math.Sqrt(float64(a.Dim(0))))
	lambda := 0.0
	for i := 1; i <= 100; i++ {
		av := a.MatMul(v)
		next := v.Dot(av).Item()
		v = av.Div(av.Norm())
		if math.Abs(next-lambda) < 1e-6*math.Abs(next) {
			return next, i
		}
		lambda = next
	}
	return lambda, 100
}

// LineSearch halves the step until the loss falls.
//
//asyncgen:kernel
func LineSearch(w *tensor.Tensor, b Batch) (*tensor.Tensor, error) {
	loss := func(w *tensor.Tensor) *tensor.Tensor { return b.X.MatMul(w).Sub(b.Y).Square().Mean() }
	for range 5 {
		grad := b.X.T().MatMul(b.X.MatMul(w).Sub(b.Y))
		before := loss(w).Item()
		step, found := 1.0, false
		for range 30 {
			next := w.Sub(grad.MulScalar(step))
			if loss(next).Item() < before {
				w, found = next, true
				break
			}
			step /= 2
		}
		if !found {
			return w, errors.New("no step makes it better")
		}
	}
	return w, nil
}

// Sampled trains on random batches, and tells which.
//
//asyncgen:kernel
func Sampled(out io.Writer, net nn.Module, opt *optim.Optimizer, batches []Batch) []float64 {
	rng := rand.New(rand.NewPCG(7, 7))
	var losses []float64
	for step := range 20 {
		k := rng.IntN(len(batches))
		b := batches[k]
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		opt.Minimize(loss)
		losses = append(losses, loss.Item())
		if step%5 == 4 {
			fmt.Fprintf(out, "step %d, batch %d: mean of the last five %.4f\n", step, k, mean(losses[len(losses)-5:]))
		}
	}
	return losses
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// Rows writes a table.
//
//asyncgen:kernel
func Rows(out io.Writer, xs []*tensor.Tensor) error {
	table := csv.NewWriter(out)
	if err := table.Write([]string{"n", "mean", "norm"}); err != nil {
		return err
	}
	for n, x := range xs {
		for i := range x.Dim(0) {
			row := x.Row(i)
			mean := strconv.FormatFloat(row.Mean().Item(), 'g', 5, 64)
			norm := strconv.FormatFloat(row.Norm().Item(), 'g', 5, 64)
			if err := table.Write([]string{strconv.Itoa(n), mean, norm}); err != nil {
				return err
			}
		}
	}
	table.Flush()
	return table.Error()
}

// Checkpoint keeps the weights of the epoch with the lowest loss.
//
//asyncgen:kernel
func Checkpoint(out io.Writer, net nn.Module, opt *optim.Optimizer, train, valid []Batch) float64 {
	best := math.Inf(1)
	state := nn.Snapshot(net)
	for epoch := range 6 {
		for _, b := range train {
			opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
		}
		loss, _ := evaluate(net, valid)
		if loss < best {
			best = loss
			state = nn.Snapshot(net)
			fmt.Fprintf(out, "epoch %d is the best one, loss %.5f\n", epoch, loss)
		}
	}
	state.Restore()
	return best
}
