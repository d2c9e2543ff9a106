package extrawait

import (
	"fmt"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A wait behind the loop is enough for the clock.

func rebuilt(xs []*tensor.Tensor) (*tensor.Tensor, error) {
	start := time.Now()
	var parts []*tensor.Tensor
	for _, x := range xs {
		y := x.AddScalar(1)
		parts = append(parts, y)
		if err := y.Wait(); err != nil { // want `wait in loop: y.Wait\(\) waits for the device in each iteration`
			return nil, fmt.Errorf("part %d: %w", len(parts), err)
		}
	}
	all := tensor.Stack(0, parts...)
	if err := all.Wait(); err != nil {
		return nil, err
	}
	fmt.Println(time.Since(start))
	return all, nil
}

// Without it, the waits are for the clock.

func rebuiltInTime(xs []*tensor.Tensor) error {
	start := time.Now()
	for _, x := range xs {
		if err := x.AddScalar(1).Wait(); err != nil {
			return err
		}
	}
	fmt.Println(time.Since(start))
	return nil
}

func eachTimed(xs []*tensor.Tensor) error {
	for _, x := range xs {
		start := time.Now()
		y := x.AddScalar(1)
		if err := y.Wait(); err != nil {
			return err
		}
		fmt.Println(time.Since(start))
	}
	return tensor.Stack(0, xs...).Wait()
}
