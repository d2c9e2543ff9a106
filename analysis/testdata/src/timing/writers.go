package timing

import (
	"io"
	"net/http"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Neither a header nor a writer knows of tensors, so they wait for none.
func respond(w http.ResponseWriter, net interface {
	Forward(x *tensor.Tensor) *tensor.Tensor
}, x *tensor.Tensor) {
	start := time.Now()
	y := net.Forward(x)
	w.Header().Set("X-Took", time.Since(start).String()) // want `time.Since\(start\) is the time it took to enqueue the work`
	io.WriteString(w, y.String())
}

func written(w io.Writer, x *tensor.Tensor) *tensor.Tensor {
	start := time.Now()
	y := x.MatMul(x)
	io.WriteString(w, "done")
	w.Write([]byte(time.Since(start).String())) // want `AT020`
	return y
}

// A sink of the program's own may wait.
type sink interface{ Put(text string) }

func put(s sink, x *tensor.Tensor) *tensor.Tensor {
	start := time.Now()
	y := x.MatMul(x)
	s.Put("done")
	s.Put(time.Since(start).String())
	return y
}
