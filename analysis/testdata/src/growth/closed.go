package growth

import (
	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// closed ends when the channel is closed, as a range over it does.
func closed(in chan batch.Batch, more func() (batch.Batch, bool)) (losses []*tensor.Tensor) {
	for {
		b, ok := <-in
		if !ok {
			break
		}
		losses = append(losses, b.X.Norm()) // want `AT022`
	}
	for {
		b, ok := <-in
		if ok {
			return losses
		}
		losses = append(losses, b.X.Norm())
	}
}

func other(more func() (batch.Batch, bool)) (losses []*tensor.Tensor) {
	for {
		b, ok := more()
		if !ok {
			return losses
		}
		losses = append(losses, b.X.Norm())
	}
}
