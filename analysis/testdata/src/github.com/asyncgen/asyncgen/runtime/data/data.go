// Package data has the signatures of the real package that the tests need.
package data

import (
	"context"
	"iter"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch struct{ X, Y *tensor.Tensor }

type Alphabet struct{ _ int }

func (a *Alphabet) Decode(ids []int64) string { return "" }

type Loader struct{ _ int }

func (l *Loader) All() iter.Seq2[Batch, error]                           { return nil }
func (l *Loader) AllContext(ctx context.Context) iter.Seq2[Batch, error] { return nil }

type Dataset[X, Y device.Element] interface {
	Len() int
	At(i int, x []X, y []Y) error
}

type Options struct {
	Shuffle bool
	Seed    uint64
}

func NewLoader[X, Y device.Element](set Dataset[X, Y], batch int, options ...Options) *Loader {
	return nil
}
