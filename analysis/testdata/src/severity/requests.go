package severity

import (
	"fmt"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type message struct {
	kind string
	b    batch.Batch
}

// What a message asks for is read for whoever has sent it.
func answer(messages <-chan message) {
	sum := tensor.Zeros()
	for m := range messages {
		switch m.kind {
		case "train":
			loss := batch.Loss(w, m.b)
			sum = sum.Add(loss)
			fmt.Println(loss.Item()) // want `AT004`
		case "report":
			fmt.Println(sum.Item())
		}
	}
}

// The number that a loop begins with stays on the host.
func iterated(x *tensor.Tensor, n int) *tensor.Tensor {
	size := x.Norm().Item()
	for range n {
		x = x.DivScalar(size)
		size = x.Norm().Item() // want `AT003`
	}
	return x
}

// Each file has to be written before the next is read.
func halved(paths []string) error {
	for _, path := range paths {
		x, err := files.ReadNPY(path)
		if err != nil {
			return err
		}
		if err := files.WriteNPY(path+".half", x.MulScalar(0.5)); err != nil {
			return err
		}
	}
	return nil
}
