// Package ts has some signatures of the package of this name.
package ts

import (
	"fmt"

	"github.com/sugarme/gotch"
)

type (
	Tensor struct{ _ int }
	Iter2  struct{ _ int }

	Iter2Item struct{ Data, Label *Tensor }
)

func MustOfSlice(data any) *Tensor                        { return nil }
func MustZeros(size []int64, device gotch.Device) *Tensor { return nil }
func NoGrad(fn func())                                    {}
func CudaSynchronize(device ...int) error                 { return nil }

func MustNewIter2(xs, ys *Tensor, batchSize int64) *Iter2 { return nil }
func (it *Iter2) Next() (item Iter2Item, ok bool)         { return Iter2Item{}, false }

func (ts *Tensor) MustMatmul(other *Tensor, del bool) *Tensor            { return nil }
func (ts *Tensor) MustMean(del bool) *Tensor                             { return nil }
func (ts *Tensor) MustEqTensor(other *Tensor, del bool) *Tensor          { return nil }
func (ts *Tensor) MustArgmax(dim []int64, keep bool, del bool) *Tensor   { return nil }
func (ts *Tensor) MustAdd_(other *Tensor)                                {}
func (ts *Tensor) MustView(size []int64, del bool) *Tensor               { return nil }
func (ts *Tensor) MustTo(device gotch.Device, del bool) *Tensor          { return nil }
func (ts *Tensor) Int64Value(idx []int64) int64                          { return 0 }
func (ts *Tensor) MustNarrow(dim, start, length int64, del bool) *Tensor { return nil }
func (ts *Tensor) MustSelect(dim, index int64, del bool) *Tensor         { return nil }
func (ts *Tensor) MustSize() []int64                                     { return nil }
func (ts *Tensor) MustBackward()                                         {}
func (ts *Tensor) MustDrop()                                             {}
func (ts *Tensor) MustSave(path string)                                  {}
func (ts *Tensor) Float64Values(delOpt ...bool) []float64                { return nil }
func (ts *Tensor) MustFloat64Value(idx []int64) float64                  { return 0 }
func (ts *Tensor) MustCopyData(dst any, numel uint)                      {}
func (ts *Tensor) Format(s fmt.State, verb rune)                         {}
