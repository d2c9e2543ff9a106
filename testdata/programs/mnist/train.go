package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/curves"
	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/progress"
	"github.com/asyncgen/asyncgen/runtime/scalars"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// train trains a network until it gets no better, and leaves in dir its best weights, what was recorded, and a curve.
func train(set digits, dir string, epochs int, capture bool) error {
	learn, check := data.Split(set.train, 0.9, 1)
	batches, valid := data.NewLoader(learn, 64, data.Options{Shuffle: true, Seed: 1}), data.NewLoader(check, 64)
	net := network()
	opt := optim.AdamW(net.Params(), 0.002)
	fit := func(in ...*tensor.Tensor) []*tensor.Tensor { // the loss of images and classes
		loss := nn.CrossEntropy(net.Forward(pixels(in[0])), in[1])
		opt.Minimize(loss)
		return []*tensor.Tensor{loss}
	}
	if capture {
		fit = asyncrt.Capture(fit).Run
	}

	best, since := math.Inf(1), 0 // the lowest loss in validation, and epochs since then
	weights, numbers := filepath.Join(dir, "best.safetensors"), filepath.Join(dir, "scalars.csv")
	parts := files.Parts{"net": net, "opt": opt, "batches": batches, "best": &best, "since": &since}
	run := files.NewCheckpoints(dir, parts, files.CheckpointOptions{Keep: 2})
	step, err := run.Resume()
	if err != nil {
		return err
	}
	record, err := scalars.Open(scalars.Options{CSV: numbers, TensorBoard: dir, Resume: step})
	if err != nil {
		return err
	}
	defer record.Close()

	for epoch := step/batches.Len() + 1; epoch <= epochs && since < 3; epoch++ {
		bar := progress.New(batches.Len(), progress.Options{Label: fmt.Sprint("epoch ", epoch)})
		for b := range batches.All() { // digits are in memory: none can fail to be read
			loss := fit(b.X, b.Y)[0]
			step++
			bar.Step("loss", loss)
			record.Add(step, "training", loss)
		}
		loss, right := evaluate(nn.Frozen(net), valid)
		bar.Close()
		fmt.Printf("epoch %d: loss in validation %.3f, %.1f %% right\n", epoch, loss, 100*right)
		record.Add(step, "validation", loss)
		if since++; loss < best {
			best, since = loss, 0
			err = files.Save(weights, net)
		}
		if err := errors.Join(err, record.Flush(), run.SaveAsync(step)); err != nil {
			return err
		}
	}

	if err := errors.Join(run.Wait(), record.Close(), files.Load(weights, net)); err != nil {
		return err
	}
	_, right := evaluate(nn.Frozen(net), data.NewLoader(set.test, 64))
	fmt.Printf("test with the best weights: %.1f %% right\n", 100*right)
	curve, err := scalars.Read(numbers)
	return errors.Join(err, curves.Figure{Y: "cross entropy", LogY: true}.Save(filepath.Join(dir, "loss.svg"), curve))
}

// evaluate returns the mean loss of all digits in batches, and the share of them that net reads correctly.
func evaluate(net nn.Module, batches *data.Loader) (loss, right float64) {
	n := 0.0
	for b := range batches.All() {
		scores, size := net.Forward(pixels(b.X)), float64(b.Y.Size())
		loss += nn.CrossEntropy(scores, b.Y).Item() * size
		right += scores.ArgMax(1).Eq(b.Y).As(tensor.Float32).Sum().Item()
		n += size
	}
	return loss / n, right / n
}
