// Command fixes has what asyncgen vet -fix changes. It prints what it computes
// and how it fails; a test compares that before and after.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	x := tensor.From([]float32{1, 2, 3, 4}, 4)
	good := tensor.From([]int64{1})
	bad := tensor.From([]int64{9}) // fails when it is computed
	for _, index := range []*tensor.Tensor{good, bad} {
		try("dropped", func() { dropped(x.Take(0, index)) })
		try("twice", func() { twice(x.Take(0, index), context.Background()) })
		try("timed", func() { timed(x, index) })
		try("guarded", func() { guarded(x, index) })
		try("last", func() { last(x, index) })
		try("same", func() { same(x, index) })
	}
}

// try runs f and prints how it ends.
func try(name string, f func()) {
	defer func() {
		switch v := recover().(type) {
		case nil:
			fmt.Println(name, "returns")
		case error:
			var index *device.IndexError
			fmt.Printf("%s panics with a %T: %v, %v\n", name, v, v, errors.As(v, &index))
		default:
			fmt.Println(name, "panics with", v)
		}
	}()
	f()
}

func dropped(y *tensor.Tensor) {
	fmt.Println("before")
	_ = y.Item() // a barrier
	fmt.Println("between")
	y.AddScalar(1).Float32s()
	_ = tensor.ItemOf[float32](y)
	fmt.Println("after")
}

func twice(y *tensor.Tensor, ctx context.Context) {
	y.ItemContext(ctx)
	_, err := y.ItemContext(ctx)
	fmt.Println(err)
	if _, err := y.ItemContext(ctx); err != nil {
		fmt.Println(err)
	}
}

func timed(x, index *tensor.Tensor) {
	start := time.Now()
	y := x.Take(0, index)
	// The time goes to standard error.
	fmt.Fprintln(os.Stderr, time.Since(start))
	fmt.Println(y)

	start = time.Now()
	for range 10 {
		x = x.MulScalar(0.5)
	}
	elapsed := time.Since(start)
	fmt.Fprintln(os.Stderr, elapsed)
	fmt.Println(x)
}

func guarded(x, index *tensor.Tensor) {
	for i := range 7 {
		x = x.AddScalar(1)
		y := x.Take(0, tensor.From([]int64{int64(i % 4)}))
		v := y.Item() // in each iteration
		if i%3 == 0 {
			fmt.Println(i, v)
		}
	}
	fmt.Println(x.Take(0, index))
}

func last(x, index *tensor.Tensor) {
	value := 0.0
	for range 5 {
		x = x.AddScalar(1)
		y := x.Take(0, index)
		value = y.Item()
	}
	fmt.Println(value)
}

func same(x, index *tensor.Tensor) {
	scale := x.Take(0, index)
	total := 0.0
	for i := range 10 {
		total += scale.Item() * float64(i)
	}
	fmt.Println(total)
}
