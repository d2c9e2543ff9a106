// Package ag has some signatures of the package of this name.
package ag

import "github.com/nlpodyssey/spago/mat"

func Add(x1, x2 mat.Tensor) mat.Tensor { return nil }
func Backward(xs ...mat.Tensor) error  { return nil }
