package tensor

import "github.com/asyncgen/asyncgen/device/kernel"

// What programs that make, convert and define use.

type DType uint8

const (
	Float64 DType = 1
	Int64   DType = 5
)

type Fused struct{}

func Fuse(name string, operands int, f func(x ...*kernel.Expr) *kernel.Expr) *Fused { return nil }
func FuseScalars(name string, operands, scalars int, f func(x ...*kernel.Expr) *kernel.Expr) *Fused {
	return nil
}
func (f *Fused) Of(x ...*Tensor) *Tensor { return nil }

func Eye(n int) *Tensor { return nil }

func (t *Tensor) As(dt DType) *Tensor { return nil }

type Order bool

const Descending Order = true

func (t *Tensor) TopK(k, axis int, order Order) (values, indices *Tensor) { return nil, nil }
