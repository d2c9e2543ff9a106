package droppedresult

import (
	"context"
	"log"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Waits that may give up.

func health(ctx context.Context, x *tensor.Tensor, tick <-chan time.Time) {
	for range tick {
		x.Sum().WaitContext(ctx) // want `error of x.Sum\(\).WaitContext is thrown away`
	}
}

func healthy(ctx context.Context, x *tensor.Tensor) error {
	_ = x.Sum().WaitContext(ctx) // want `error of x.Sum\(\).WaitContext is thrown away`
	return x.WaitContext(ctx)
}

func healthLogged(ctx context.Context, x *tensor.Tensor, tick <-chan time.Time) {
	for range tick {
		if err := x.Sum().WaitContext(ctx); err != nil {
			log.Print(err)
		}
	}
	_ = x.WaitContext(ctx) // it is said that nobody cares
}

func computed(ctx context.Context, x *tensor.Tensor) *tensor.Tensor {
	y := x.Sum()
	y.WaitContext(ctx) // y has the failure, too
	return y
}

func latency(ctx context.Context, x *tensor.Tensor) time.Duration {
	start := time.Now()
	x.Sum().WaitContext(ctx)
	return time.Since(start)
}

func best(x *tensor.Tensor) { x.Sum().Wait() }
