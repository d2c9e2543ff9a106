package extrawait

import (
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Waits in variables and fields.
type pace struct{ sync func() error }

func newPace() *pace { return &pace{sync: asyncrt.WaitAll} }

func (p *pace) run(x *tensor.Tensor) error {
	for range 100 {
		x = x.AddScalar(1)
		if err := p.sync(); err != nil { // want `wait in loop`
			return err
		}
	}
	idle := asyncrt.WaitIdle
	for range 100 {
		x = x.AddScalar(1)
		idle() // want `wait in loop`
	}
	return nil
}
