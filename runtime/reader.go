package asyncrt

import "github.com/asyncgen/asyncgen/runtime/tensor"

// A Reader is a [Later], whatever its state, as functions see it that read for
// their callers: what they return looks at the values.
//
//	func meanLater(later asyncrt.Reader, x *tensor.Tensor) func() float64 {
//		meanAt := later.Read(x.Mean())
//		return func() float64 { return meanAt.Item() }
//	}
type Reader interface {
	// Read is [Later.Read].
	//
	//asyncgen:api meta none
	Read(t *tensor.Tensor) Read

	// Do is [Later.Do].
	//
	//asyncgen:api call 0 later
	Do(f func())
}

var _ Reader = (*Later[struct{}])(nil)
