package roundtrip

import (
	"net/http"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// The network takes longer than the device: an info.
func asked(urls []string, b Batch, x *tensor.Tensor) *tensor.Tensor {
	for _, u := range urls {
		if _, err := http.Get(u); err == nil {
			x = x.MulScalar(batch.Loss(x, b).Item()) // want `AT003`
		}
	}
	return x
}
