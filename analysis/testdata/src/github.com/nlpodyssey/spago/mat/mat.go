// Package mat has some signatures of the package of this name.
package mat

type (
	Float interface{ F64() float64 }

	Tensor interface {
		Size() int
		Item() Float
		Value() Tensor
	}
)
