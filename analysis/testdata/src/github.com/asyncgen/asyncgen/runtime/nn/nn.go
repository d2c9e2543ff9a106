// Package nn has the signatures of the real package that the tests need.
package nn

import "github.com/asyncgen/asyncgen/runtime/tensor"

type Module interface {
	Forward(x *tensor.Tensor) *tensor.Tensor
	Params() []*Param
}

type Param = tensor.Param

func Dense(out int, init ...Init) Module { return nil }

// An Init says how the parameters of a layer begin.
type Init struct{}

func ReLU() Module                   { return nil }
func Sequential(ms ...Module) Module { return nil }
func Frozen[M any](m M) M            { return m }
func Clone[M any](m M) M             { return m }
func Params(m any) []*Param          { return nil }

type Stateful interface{ Cells() []tensor.Cell }

type State = tensor.State

func Snapshot(m any, more ...Stateful) State { return State{} }

func MSELoss(pred, target *tensor.Tensor) *tensor.Tensor { return nil }

func CrossEntropy(scores, labels *tensor.Tensor) *tensor.Tensor { return nil }

type Replicas struct{ _ int }

func (r *Replicas) Forward(x *tensor.Tensor) *tensor.Tensor { return nil }
func (r *Replicas) Params() []*Param                        { return nil }

func (r *Replicas) Loss(loss func(pred, target *tensor.Tensor) *tensor.Tensor, x, y *tensor.Tensor) *tensor.Tensor {
	return nil
}
