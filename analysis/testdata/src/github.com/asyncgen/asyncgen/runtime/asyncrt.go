// Package asyncrt has the signatures of the real package that the tests need.
package asyncrt

import (
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func WaitAll() error     { return nil }
func AllowSync(f func()) { f() }
func WaitIdle()          {}
func Try(f func()) error { return nil }

type Timer struct{}

func StartTimer(devices ...device.Device) *Timer           { return nil }
func (t *Timer) Elapsed() (d time.Duration, finished bool) { return 0, false }
func (t *Timer) Enqueued() time.Duration                   { return 0 }
func (t *Timer) Stop()                                     {}
func (t *Timer) Wait() time.Duration                       { return 0 }

type Later[S any] struct{ _ S }

func NewLater[S any](window int) *Later[S] { return nil }

func (l *Later[S]) Read(t *tensor.Tensor) Read    { return Read{} }
func (l *Later[S]) Do(f func())                   { f() }
func (l *Later[S]) Flush() (state S, exited bool) { return state, false }

type Read struct{ t *tensor.Tensor }

func (r Read) Item() float64 { return r.t.Item() }
