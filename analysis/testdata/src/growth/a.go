package growth

import (
	"context"
	"io"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var w *tensor.Tensor

type server struct{ losses, recent []*tensor.Tensor }

func endless(in chan batch.Batch, next func() (batch.Batch, error)) error {
	var losses []*tensor.Tensor
	for b := range in {
		losses = append(losses, batch.Loss(w, b)) // want `losses keeps a tensor of every iteration of a loop without an end; cut it from time to time \[AT022\]`
	}
	for {
		b, err := next()
		if err != nil {
			return err
		}
		losses = append(losses, batch.Loss(w, b)) // want `AT022`
	}
}

func (s *server) serve(ctx context.Context, in chan batch.Batch) {
	for ctx.Err() == nil {
		s.losses = append(s.losses, w.AddScalar(1)) // want `s.losses keeps`
		s.recent = append(s.recent, w.AddScalar(1))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case b := <-in:
			l := batch.Loss(w, b)
			s.losses = append(s.losses, l) // want `s.losses keeps`
		}
	}
}

// Silent from here on.

func (s *server) cut() { s.recent = s.recent[:0] }

func bounded(data []batch.Batch, next func() (batch.Batch, error)) (losses []*tensor.Tensor) {
	for _, b := range data {
		losses = append(losses, batch.Loss(w, b))
	}
	for i := 0; ; i++ {
		losses = append(losses, w.AddScalar(1))
		if i == 100 {
			break
		}
	}
	for {
		l := w.AddScalar(2)
		losses = append(losses, l)
		if l.Item() < 1 {
			break
		}
	}
	for {
		b, err := next()
		if err == io.EOF {
			return losses
		}
		losses = append(losses, batch.Loss(w, b))
	}
}

func kept(in chan batch.Batch, made chan *tensor.Tensor) {
	var losses, given []*tensor.Tensor
	var values []float64
	for b := range in {
		losses = append(losses, batch.Loss(w, b))
		if len(losses) == 100 {
			losses = losses[:0]
		}
		var pair []*tensor.Tensor
		pair = append(pair, w.AddScalar(1))
		values = append(values, pair[0].Item())
	}
	for t := range made {
		given = append(given, t)
	}
	_ = given
}

// Results are for the callers.
func halves(data []*tensor.Tensor) (low, high []*tensor.Tensor) {
	for _, x := range data {
		low = append(low, x.MulScalar(0.5))
		high = append(high, x)
	}
	return
}
