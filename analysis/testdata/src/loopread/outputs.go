package loopread

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/progress"
	"github.com/asyncgen/asyncgen/runtime/scalars"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Outputs take tensors, and wait for none.
func recorded(data []Batch) error {
	w, err := scalars.Open(scalars.Options{CSV: "loss.csv"})
	if err != nil {
		return err
	}
	bar := progress.New(len(data), progress.Options{})
	defer bar.Close()
	for i, b := range data {
		loss := step(b)
		w.Add(i, "loss", loss)
		bar.Step("loss", loss)
	}
	return w.Close()
}

func recordedNumbers(w *scalars.Writer, bar *progress.Bar, data []Batch) {
	for i, b := range data {
		loss := step(b)
		w.Add(i, "loss", loss.Item()) // want `blocking read in loop: loss.Item\(\) waits for the device in each iteration; give the tensor itself to what records it, which waits for nothing \[AT001\]`
		norm := b.X.Norm().Item()     // want `give the tensor itself`
		bar.Step("norm", norm, "half", norm/2)
	}
}

func recordedAndKept(w *scalars.Writer, data []Batch) (total float64) {
	for i, b := range data {
		v := step(b).Item() // want `read after the loop, or only every so many iterations`
		w.Add(i, "loss", v)
		total += v
	}
	return total
}

func recordedAndPrinted(w *scalars.Writer, data []Batch) {
	for i, b := range data {
		v := step(b).Item() // want `read after the loop`
		w.Add(i, "loss", v)
		fmt.Println(v)
	}
}

func recordedAtEnd(w *scalars.Writer, epochs int, data []Batch) {
	for epoch := range epochs {
		var last *tensor.Tensor
		for _, b := range data {
			last = step(b)
		}
		w.Add(epoch, "last", last.Item()) // the epoch is over
		w.Add(epoch, "last", last)
	}
}
