// Command progress trains the network of ../train, shows how far it is, and records and draws the losses.
package main

import (
	"flag"
	"fmt"
	"log"
	"path/filepath"

	"github.com/asyncgen/asyncgen/runtime/curves"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/progress"
	"github.com/asyncgen/asyncgen/runtime/scalars"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

const (
	points = 2048
	batch  = 64
	steps  = 640
)

var dir = flag.String("o", "run", "the folder for what is recorded")

func main() {
	flag.Parse()
	if err := run(*dir); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) error {
	tensor.Seed(1)
	x, inside := circle()
	valX, valInside := circle()
	net := nn.Sequential(nn.Dense(32), nn.ReLU(), nn.Dense(2))
	opt := optim.SGD(net.Params(), 0.5)

	w, err := scalars.Open(scalars.Options{CSV: filepath.Join(dir, "scalars.csv"), TensorBoard: dir})
	if err != nil {
		return err
	}
	bar := progress.New(steps, progress.Options{})
	defer bar.Close()
	for step := range steps {
		i := step * batch % points
		loss := nn.CrossEntropy(net.Forward(x.Slice(0, i, i+batch)), inside.Slice(0, i, i+batch))
		opt.Minimize(loss)
		w.Add(step, "loss", loss)
		if step%32 == 31 {
			w.Add(step, "val_loss", nn.CrossEntropy(net.Forward(valX), valInside))
		}
		bar.Step("loss", loss)
	}

	if err := w.Close(); err != nil {
		return err
	}
	list := w.Series("loss", "val_loss")
	for _, s := range list {
		fmt.Printf("%s: %d values, the last is %.2f\n", s.Name, len(s.Values), s.Values[len(s.Values)-1])
	}
	f := curves.Figure{Title: "Points in a circle", Y: "cross entropy", Smooth: 0.9}
	return f.Save(filepath.Join(dir, "loss.svg"), list)
}

// circle returns points of a square, and for each whether it lies within a circle.
func circle() (x, inside *tensor.Tensor) {
	x = tensor.Uniform(-1, 1, points, 2)
	return x, x.Square().Sum(1).LtScalar(0.5).As(tensor.Int64)
}
