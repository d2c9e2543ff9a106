// Command mnist learns to read digits, with all that a training has that runs for
// more than a moment: batches that are made ahead, a validation after each epoch
// that says when to stop and which weights were the best, checkpoints from which an
// interrupted run goes on, a progress bar, recorded numbers and a curve.
//
// The digits are those of MNIST, if -data names a folder with its four files, and
// else it draws some. The bar goes to standard error.
//
//	go run ./testdata/programs/mnist [-small] [-capture] [-data folder] [-run folder]
package main

import (
	"flag"
	"log"
	"os"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	small := flag.Bool("small", false, "800 digits, 3 epochs")
	capture := flag.Bool("capture", false, "capture the step of training: it is recorded once and then repeated as a whole")
	source := flag.String("data", "", "the `folder` with the files of MNIST; without it, digits are drawn")
	dir := flag.String("run", "", "the `folder` for checkpoints, weights, numbers and the curve; a run that is there goes on; without it, nothing is kept")
	epochs := flag.Int("epochs", 8, "how many epochs there are at most")
	flag.Parse()
	digits := 2500
	if *small {
		digits, *epochs = 800, 3
	}
	if err := run(*source, *dir, digits, *epochs, *capture); err != nil {
		log.Fatal("mnist: ", err)
	}
}

// run is train in a folder that is removed afterwards if dir is empty.
func run(source, dir string, digits, epochs int, capture bool) error {
	set, err := load(source, digits)
	if err != nil {
		return err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "mnist"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	tensor.Seed(1)
	return train(set, dir, epochs, capture)
}
