package op

import (
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// HostMath is the function Attr.Func of Go's package math, with the same bits as on the host. The
// operands are float64, of one shape, and without gaps. It runs on the CPU.
var HostMath = define(&Def{
	Name: "HostMath", Types: 1 << device.Float64, Unlisted: true,
	Run: func(p *Plan) {
		p.Shape, p.DType = p.In[0].Shape, device.Float64
		p.Cmd = device.Command{Kernel: mathKernels()[p.Attr.Func], N: p.Shape.Size()}
		p.Cost = 16 * int64(p.Cmd.N)
	},
	Batch: func(b Builder, s *Batch) Value {
		in := make([]Value, len(s.In))
		for i := range in {
			in[i] = b.Structural(Contiguous, Attr{}, s.full(b, i))
		}
		return b.Structural(s.Def, s.Attr, in...)
	},
})

var mathKernels = sync.OnceValue(func() (all []*device.Kernel) {
	in := []device.DType{device.Float64, device.Float64}
	for _, f := range kernel.MathFuncs() {
		all = append(all, device.NewKernel(f.String(), device.Math, f, device.Float64, in[:f.Arity()]...))
	}
	return all
})
