// Package data reads data sets and gives them to a training loop in batches, which are prepared while the program and
// its device do other work.
//
//	images, err := data.ReadIDXFile[uint8]("train-images-idx3-ubyte.gz")
//	…
//	labels, err := data.ReadIDXFile[int64]("train-labels-idx1-ubyte.gz")
//	…
//	train, valid := data.Split(data.Pair(images, labels), 0.9, 1)
//	loader := data.NewLoader(train, 64, data.Options{Shuffle: true, Seed: 1})
//	for range epochs {
//		for b, err := range loader.All() {
//			if err != nil {
//				return err
//			}
//			x := b.X.As(tensor.Float32).DivScalar(255)
//			opt.Minimize(nn.CrossEntropy(net.Forward(x), b.Y))
//		}
//	}
//
// A [Dataset] has samples that are known by their number. There are some of arrays in memory ([Pair]), of sequences
// ([Collect]), of folders of images ([ImageFolder]) and of text ([Windows]), and a type of one's own needs three
// methods. A [Loader] makes batches of it, on goroutines of its own, in an order that depends on nothing but its seed.
// Arrays come from files in the format IDX, from CSV, from slices and from tensors.
//
// Files are read with care: a file that is cut off, too large or no such file at all gives an error that names it,
// before more memory is taken than its size warrants.
//
// The package doesn't change samples: normalise and augment a batch with operations of package tensor, which the device
// runs. It neither downloads data nor keeps any on disk.
package data

import (
	"fmt"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A Dataset has samples that are known by their number. Each consists of an input, with elements of type X, and a
// target, with elements of type Y. All inputs have one shape, and so have all targets: sequences of several lengths are
// padded by At.
//
// A Loader calls At from several goroutines at once, and the other methods when it is made.
type Dataset[X, Y device.Element] interface {
	// Len returns the number of samples.
	//
	//asyncgen:api pure
	Len() int
	// Shapes returns the shapes of one input and of one target. A target that is a single number has the shape [].
	// One without elements, such as [0], says that there are no targets.
	//
	//asyncgen:api pure
	Shapes() (x, y []int)
	// At writes the input and the target of sample i to x and y, in row-major order. They are as long as the shapes
	// say, filled with zeros, and At must not keep them.
	//
	//asyncgen:api control
	At(i int, x []X, y []Y) error
}

// A Batch is some samples of a [Dataset]. The first axis of X and of Y counts the samples, the others are those of one
// input and of one target.
type Batch struct {
	X, Y *tensor.Tensor
}

// wrong panics with a [tensor.Mistake] about the function with the given name.
func wrong(name, format string, args ...any) {
	panic(&tensor.Mistake{Package: "data", Op: name, Text: fmt.Sprintf(format, args...)})
}
