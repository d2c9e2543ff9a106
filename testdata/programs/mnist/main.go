// Command mnist learns to read digits, with all that a training has that runs for
// more than a moment: batches that are made ahead, a validation after each epoch
// that says when to stop and which weights were the best, checkpoints from which an
// interrupted run goes on, a progress bar, recorded numbers and a curve.
//
// The digits are those of MNIST, if -data names a folder with its four files, and
// else it draws some. The bar goes to standard error.
//
//	go run ./testdata/programs/mnist [-small] [-data folder] [-run folder]
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"github.com/asyncgen/asyncgen/runtime/curves"
	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/progress"
	"github.com/asyncgen/asyncgen/runtime/scalars"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	small := flag.Bool("small", false, "few digits and epochs")
	source := flag.String("data", "", "the `folder` with the files of MNIST; without it, digits are drawn")
	dir := flag.String("run", "", "the `folder` for checkpoints, weights, numbers and curve, where an earlier run goes on; without it, nothing is kept")
	flag.Parse()
	digits, epochs := 2500, 8
	if *small {
		digits, epochs = 400, 3
	}
	if err := train(*source, *dir, digits, epochs); err != nil {
		log.Fatal("mnist: ", err)
	}
}

// train trains a network and saves the best weights, the recorded numbers and their curve in dir.
func train(source, dir string, digits, epochs int) error {
	if dir == "" {
		temp, err := os.MkdirTemp("", "mnist")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		dir = temp
	}
	all, err := load(source, "train", digits)
	if err != nil {
		return err
	}
	test, err := load(source, "t10k", digits/4)
	if err != nil {
		return err
	}
	learn, check := data.Split(all, 0.9, 1)
	batches := data.NewLoader(learn, 64, data.Options{Shuffle: true, Seed: 1})
	valid := data.NewLoader(check, 256)

	tensor.Seed(1)
	by2 := tensor.Conv{Stride: tensor.Both(2)}
	net := nn.Sequential(
		nn.Conv2D(8, tensor.Both(3), by2), nn.ReLU(),
		nn.Conv2D(16, tensor.Both(3), by2), nn.ReLU(),
		nn.Flatten(), nn.Dropout(0.25), nn.Dense(10),
	)
	opt := optim.AdamW(net.Params(), 0.002)

	best, since := math.Inf(1), 0 // the lowest loss of a validation, and how many there were after it
	weights, numbers := filepath.Join(dir, "best.safetensors"), filepath.Join(dir, "scalars.csv")
	run := files.NewCheckpoints(dir, files.Parts{"net": net, "opt": opt, "batches": batches, "best": &best, "since": &since})
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
		total := 0.0
		for b, err := range batches.All() {
			if err != nil {
				return err
			}
			loss := nn.CrossEntropy(net.Forward(pixels(b)), b.Y)
			opt.Minimize(loss)
			step++
			bar.Step("loss", loss)
			record.Add(step, "training", loss)
			total += loss.Item()
		}
		bar.Close()
		loss, right, err := evaluate(nn.Frozen(net), valid)
		if err != nil {
			return err
		}
		fmt.Printf("epoch %d: loss %.3f, in validation %.3f, %.1f %% right\n", epoch, total/float64(batches.Len()), loss, 100*right)
		record.Add(step, "validation", loss)
		since++
		if loss < best {
			best, since = loss, 0
			if err := files.Save(weights, net); err != nil {
				return err
			}
		}
		if err := run.SaveAsync(step); err != nil {
			return err
		}
	}
	if err := errors.Join(run.Wait(), record.Close(), files.Load(weights, net)); err != nil {
		return err
	}
	_, right, err := evaluate(nn.Frozen(net), data.NewLoader(test, 256))
	if err != nil {
		return err
	}
	fmt.Printf("test with the best weights: %.1f %% right\n", 100*right)
	curve, err := scalars.Read(numbers)
	if err != nil {
		return err
	}
	return curves.Figure{Title: "Digits", Y: "cross entropy", LogY: true}.Save(filepath.Join(dir, "loss.svg"), curve)
}

// load reads the images and labels of a part of MNIST, or draws n of them.
func load(dir, part string, n int) (*data.Pairs[uint8, int64], error) {
	if dir == "" {
		return draw(n, part), nil
	}
	images, err := data.ReadIDXFile[uint8](filepath.Join(dir, part+"-images-idx3-ubyte.gz"))
	if err != nil {
		return nil, err
	}
	labels, err := data.ReadIDXFile[int64](filepath.Join(dir, part+"-labels-idx1-ubyte.gz"))
	if err != nil {
		return nil, err
	}
	return data.Pair(images, labels), nil
}

// pixels returns the images of a batch with one channel, from 0 to 1.
func pixels(b data.Batch) *tensor.Tensor {
	return b.X.As(tensor.Float32).DivScalar(255).Unsqueeze(1)
}

// evaluate returns the mean loss of all samples, and which share of them net gets right.
func evaluate(net nn.Module, batches *data.Loader) (loss, right float64, err error) {
	n := 0.0
	for b, err := range batches.All() {
		if err != nil {
			return 0, 0, err
		}
		scores, size := net.Forward(pixels(b)), float64(b.Y.Size())
		loss += nn.CrossEntropy(scores, b.Y).Item() * size
		right += scores.ArgMax(1).Eq(b.Y).As(tensor.Float32).Sum().Item()
		n += size
	}
	return loss / n, right / n, nil
}
