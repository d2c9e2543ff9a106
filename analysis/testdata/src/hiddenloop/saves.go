package hiddenloop

import (
	"trainers"

	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions that another package calls in its loop, and that save a model.
func saved(t *trainers.Trainer, net nn.Module) {
	t.Hook(func(loss *tensor.Tensor) {
		_ = files.Save("last", net) // want `AT012`
	})
	n := 0
	t.Hook(func(loss *tensor.Tensor) {
		if n++; n%1000 == 0 {
			_ = files.Save("last", net)
		}
	})
	t.Last(func(loss *tensor.Tensor) { _ = files.Save("last", net) })
}
