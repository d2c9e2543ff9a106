package goroutineread

import (
	"context"

	"batch"

	"golang.org/x/sync/errgroup"
)

func group(ctx context.Context, data []Batch, values []float64) error {
	g, ctx := errgroup.WithContext(ctx)
	for i, b := range data {
		g.Go(func() (err error) {
			values[i], err = batch.Loss(w, b).ItemContext(ctx) // want `goroutine for each iteration: it waits in batch.Loss\(w, b\).ItemContext\(ctx\)`
			return err
		})
	}
	return g.Wait()
}

// Silent.

func bounded(data []Batch, values []float64) error {
	var g errgroup.Group
	g.SetLimit(4)
	for i, b := range data {
		g.Go(func() error {
			values[i] = batch.Loss(w, b).Item()
			return nil
		})
	}
	return g.Wait()
}
