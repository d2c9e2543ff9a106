package progress_test

import (
	"github.com/asyncgen/asyncgen/runtime/progress"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// The loop gives the bar what it has: tensors and numbers.
func Example() {
	bar := progress.New(1000, progress.Options{Label: "sum"})
	defer bar.Close()
	x := tensor.Ones(100)
	for range 1000 {
		x = x.MulScalar(0.99)
		bar.Step("sum", x.Sum(), "rate", 0.99)
	}
}
