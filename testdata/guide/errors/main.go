// Command errors shows where failures come out.
package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	// A mistake in the program panics at the call, before anything is enqueued.
	func() {
		defer func() { fmt.Println(recover()) }()
		tensor.Ones(2, 3).Add(tensor.Ones(2, 4))
	}()

	// A failure of a value travels with the results.
	q := tensor.From([]int{6, 7}).Div(tensor.From([]int{2, 0}))
	sum := q.AddInt(1).Sum()
	var failed *asyncrt.OpError
	if err := sum.Wait(); errors.As(err, &failed) {
		fmt.Println(failed.Op, filepath.Base(failed.File), failed.Err)
	}
	if err := asyncrt.Try(func() { sum.Item() }); err != nil {
		fmt.Println("the same from a read:", err == error(failed))
	}
	fmt.Println("the same from WaitAll:", errors.Is(asyncrt.WaitAll(), failed))

	// What belongs to a context that has ended does not run.
	ctx, cancel := context.WithCancelCause(context.Background())
	request := device.WithContext(ctx, device.Default())
	left := errors.New("the client has left")
	cancel(left)
	err := tensor.On(request).Ones(1000).Sum().WaitContext(ctx)
	fmt.Println("no sum:", err != nil, errors.Is(asyncrt.Synchronize(request), left))
}
