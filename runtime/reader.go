package asyncrt

import "github.com/asyncgen/asyncgen/runtime/tensor"

// A Reader is a [Later] of any state, for functions that read for their callers. Such a function queues entries of
// its own, and returns a function that gives its result. An entry of the caller calls that function: it runs after
// those entries.
//
//	func lossLater(later asyncrt.Reader, net nn.Module, batches []Batch) func() float64 {
//		total := 0.0
//		for _, b := range batches {
//			lossAt := later.Read(nn.MSELoss(net.Forward(b.X), b.Y))
//			later.Do(func() { total += lossAt.Item() })
//		}
//		return func() float64 { return total / float64(len(batches)) }
//	}
type Reader interface {
	// Read is [Later.Read].
	//
	//asyncgen:api meta none
	Read(t *tensor.Tensor) Read

	// ReadF64 is [Later.ReadF64].
	//
	//asyncgen:api meta none
	ReadF64(x F64) Read

	// Rows is [Later.Rows].
	//
	//asyncgen:api call 1 later
	Rows(n int, of func(row RowOf) *tensor.Tensor) *Rows

	// Do is [Later.Do].
	//
	//asyncgen:api call 0 later
	Do(f func())

	// Poll is [Later.Poll].
	//
	//asyncgen:api poll none
	Poll()
}

var _ Reader = (*Later[struct{}])(nil)
