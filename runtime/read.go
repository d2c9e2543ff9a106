package asyncrt

import (
	"fmt"
	"log/slog"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
	"gonum.org/v1/gonum/mat"
)

// A Read is a value taken by [Later.Read]. Its methods are those of the Tensor,
// for use in functions of the backlog, where they don't wait; elsewhere they may.
type Read struct {
	t       *tensor.Tensor // detached, in host memory; nil for a known number or a nil tensor
	number  float64
	isKnown bool // the Read is of a number that was known
}

// tensor returns the tensor that the Read is of, or nil if that was nil.
func (r Read) tensor() *tensor.Tensor {
	if r.isKnown {
		return tensor.FromOn(device.CPU(), []float64{r.number}).Reshape()
	}
	return r.t
}

// Item is [tensor.Tensor.Item].
//
//asyncgen:api read
//go:noinline
func (r Read) Item() float64 {
	if r.isKnown {
		return r.number
	}
	return r.t.Item()
}

// ItemInt is [tensor.Tensor.ItemInt].
//
//asyncgen:api read
//go:noinline
func (r Read) ItemInt() int64 { return r.tensor().ItemInt() }

// At is [tensor.Tensor.At].
//
//asyncgen:api read
//go:noinline
func (r Read) At(index ...int) float64 { return r.tensor().At(index...) }

// AtInt is [tensor.Tensor.AtInt].
//
//asyncgen:api read
//go:noinline
func (r Read) AtInt(index ...int) int64 { return r.tensor().AtInt(index...) }

// Float32s is [tensor.Tensor.Float32s].
//
//asyncgen:api read
//go:noinline
func (r Read) Float32s() []float32 { return r.tensor().Float32s() }

// Float64s is [tensor.Tensor.Float64s].
//
//asyncgen:api read
//go:noinline
func (r Read) Float64s() []float64 { return r.tensor().Float64s() }

// Int64s is [tensor.Tensor.Int64s].
//
//asyncgen:api read
//go:noinline
func (r Read) Int64s() []int64 { return r.tensor().Int64s() }

// Bools is [tensor.Tensor.Bools].
//
//asyncgen:api read
//go:noinline
func (r Read) Bools() []bool { return r.tensor().Bools() }

// Matrix is [tensor.Tensor.Matrix].
//
//asyncgen:api read
//go:noinline
func (r Read) Matrix() *mat.Dense { return r.tensor().Matrix() }

// MarshalJSON is [tensor.Tensor.MarshalJSON].
//
//asyncgen:api read
//go:noinline
func (r Read) MarshalJSON() ([]byte, error) {
	t := r.tensor()
	if t == nil {
		return []byte("null"), nil // what package json makes of a nil *Tensor
	}
	return t.MarshalJSON()
}

// String is [tensor.Tensor.String].
//
//asyncgen:api print
//go:noinline
func (r Read) String() string { return r.tensor().String() }

// Format is [tensor.Tensor.Format].
//
//asyncgen:api print
//go:noinline
func (r Read) Format(s fmt.State, verb rune) {
	t := r.tensor()
	if t == nil {
		fmt.Fprint(s, "<nil>") // what fmt prints for a nil *Tensor
		return
	}
	t.Format(s, verb)
}

// LogValue is [tensor.Tensor.LogValue].
//
//asyncgen:api print
//go:noinline
func (r Read) LogValue() slog.Value { return r.tensor().LogValue() }

// Err is [tensor.Tensor.Wait]: the error of the value, or nil.
//
//asyncgen:api wait
//go:noinline
func (r Read) Err() error { return r.tensor().Wait() }

// ItemOf is [tensor.ItemOf] of a Read.
//
//asyncgen:api read 0
//go:noinline
func ItemOf[T device.Element](r Read) T { return tensor.ItemOf[T](r.tensor()) }

// SliceOf is [tensor.SliceOf] of a Read.
//
//asyncgen:api read 0
//go:noinline
func SliceOf[T device.Element](r Read) []T { return tensor.SliceOf[T](r.tensor()) }
