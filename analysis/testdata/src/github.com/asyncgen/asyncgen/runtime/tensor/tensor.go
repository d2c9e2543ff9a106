// Package tensor has the signatures of the real package that the tests of the
// rules need. TestStubs compares the two.
package tensor

import (
	"context"
	"fmt"
	"io"

	"github.com/asyncgen/asyncgen/device"
)

type Tensor struct{ _ int }

type Cell interface{ Value() *Tensor }

type Param struct{ _ int }

func (p *Param) Value() *Tensor { return nil }
func (p *Param) Set(t *Tensor)  {}

type Source interface{ device.Element | int }

func TryFrom[T Source](data []T, shape ...int) (*Tensor, error)          { return nil, nil }
func From[T Source](data []T, shape ...int) *Tensor                      { return nil }
func FromOn[T Source](dev device.Device, data []T, shape ...int) *Tensor { return nil }
func Zeros(shape ...int) *Tensor                                         { return nil }
func Ones(shape ...int) *Tensor                                          { return nil }
func Randn(shape ...int) *Tensor                                         { return nil }
func Where(cond, x, y *Tensor) *Tensor                                   { return nil }
func VMap(f func(rows ...*Tensor) *Tensor, xs ...*Tensor) *Tensor        { return nil }
func Wait(ts ...*Tensor) error                                           { return nil }
func ItemOf[T device.Element](t *Tensor) T                               { var zero T; return zero }
func SliceOf[T device.Element](t *Tensor) []T                            { return nil }
func RandInt(lo, hi int, shape ...int) *Tensor                           { return nil }

func (t *Tensor) Transpose(axes ...int) *Tensor { return nil }
func (t *Tensor) Unsqueeze(axis int) *Tensor    { return nil }

func (t *Tensor) Add(u *Tensor) *Tensor                        { return nil }
func (t *Tensor) Sub(u *Tensor) *Tensor                        { return nil }
func (t *Tensor) Mul(u *Tensor) *Tensor                        { return nil }
func (t *Tensor) MatMul(u *Tensor) *Tensor                     { return nil }
func (t *Tensor) Dot(u *Tensor) *Tensor                        { return nil }
func (t *Tensor) AddScalar(c float64) *Tensor                  { return nil }
func (t *Tensor) MulScalar(c float64) *Tensor                  { return nil }
func (t *Tensor) Norm() *Tensor                                { return nil }
func (t *Tensor) Sum(axes ...int) *Tensor                      { return nil }
func (t *Tensor) Mean(axes ...int) *Tensor                     { return nil }
func (t *Tensor) Row(i int) *Tensor                            { return nil }
func (t *Tensor) Unbind(axis int) []*Tensor                    { return nil }
func (t *Tensor) Slice(axis, from, to int) *Tensor             { return nil }
func (t *Tensor) Reshape(shape ...int) *Tensor                 { return nil }
func (t *Tensor) Dim(i int) int                                { return 0 }
func (t *Tensor) Shape() device.Shape                          { return nil }
func (t *Tensor) Ready() bool                                  { return false }
func (t *Tensor) Item() float64                                { return 0 }
func (t *Tensor) ItemInt() int64                               { return 0 }
func (t *Tensor) At(i ...int) float64                          { return 0 }
func (t *Tensor) AtInt(index ...int) int64                     { return 0 }
func (t *Tensor) Float32s() []float32                          { return nil }
func (t *Tensor) ItemContext(context.Context) (float64, error) { return 0, nil }
func (t *Tensor) Wait() error                                  { return nil }
func (t *Tensor) String() string                               { return "" }
func (t *Tensor) Format(f fmt.State, verb rune)                { io.WriteString(f, "") }
func (t *Tensor) MarshalJSON() ([]byte, error)                 { return nil, nil }
func (t *Tensor) Backward()                                    {}
func (t *Tensor) WaitContext(context.Context) error            { return nil }
func (t *Tensor) Detach() *Tensor                              { return nil }
func (t *Tensor) To(dev device.Device) *Tensor                 { return nil }
func (t *Tensor) Device() device.Device                        { return device.Device{} }
func (t *Tensor) Eq(u *Tensor) *Tensor                         { return nil }

type State struct{ _ int }
