package droppedresult

import (
	"context"
	"fmt"
	"time"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func dropped(x, y *tensor.Tensor, p *tensor.Param, l *layer) *tensor.Tensor {
	x.AddScalar(1)         // want `result of x.AddScalar is thrown away; a tensor never changes, so assign what the method returns \[AT032\]`
	x.Reshape(2, 3)        // want `result of x.Reshape is thrown away`
	p.Value().MulScalar(2) // want `AT032`
	(x.Add(y))             // want `AT032`
	tensor.Where(x, y, x)  // want `result of tensor.Where is thrown away; assign it \[AT032\]`
	nn.MSELoss(x, y)       // want `AT032`
	func() { y.Mul(x) }()  // want `AT032`
	nn.Snapshot(l)         // want `result of nn.Snapshot is thrown away; assign it`
	nn.Frozen(l)           // want `AT032`
	p.Value()              // want `AT032`
	for range 10 {
		x.MulScalar(0.5) // want `AT032`
	}
	l.Forward(x)   // want `result of l.Forward is thrown away; assign it`
	centred(x)     // want `result of centred is thrown away`
	defer x.Add(y) // want `result of x.Add is thrown away`
	l.noted(x)     // keeps what it computes
	return x
}

func centred(x *tensor.Tensor) *tensor.Tensor {
	m := x.Mean()
	return x.Sub(m)
}

func (l *layer) noted(x *tensor.Tensor) *tensor.Tensor {
	l.last = centred(x)
	return l.last
}

func failures(ctx context.Context, x *tensor.Tensor, data []float32) (float64, error) {
	asyncrt.WaitAll()                  // want `error of asyncrt.WaitAll is thrown away, with which the failures are gone; handle it \[AT032\]`
	asyncrt.Try(func() { x.Item() })   // want `error of asyncrt.Try is thrown away`
	t, _ := tensor.TryFrom(data, 2, 3) // want `error of tensor.TryFrom is thrown away: what has failed looks like a result; handle it`
	v, _ := t.ItemContext(ctx)         // want `error of t.ItemContext is thrown away`
	if w, err := x.ItemContext(ctx); err == nil {
		return v + w, nil
	}
	_, err := t.ItemContext(ctx)
	_ = asyncrt.WaitAll() // want `error of asyncrt.WaitAll is thrown away`
	return v, err
}

func atTheEnd(x *tensor.Tensor) {
	start := time.Now()
	defer asyncrt.WaitAll() // want `error of asyncrt.WaitAll is thrown away, with which the failures are gone; call it in a function that handles it`
	fmt.Println(x.Item(), time.Since(start))
}

func sinceThen(t *asyncrt.Timer) time.Duration {
	asyncrt.StartTimer() // want `result of asyncrt.StartTimer is thrown away; assign it`
	d, _ := t.Elapsed()  // want `t.Elapsed says whether the devices have finished, which is thrown away; ask it, or Wait`
	return d
}

// Silent from here on.

func handled(x *tensor.Tensor) (err error) {
	defer func() { err = asyncrt.WaitAll() }()
	fmt.Println(x.Item())
	return nil
}

func ignored(x *tensor.Tensor) {
	fmt.Println(x.Item())
	_ = asyncrt.WaitAll()
}

func settled(x *tensor.Tensor) *tensor.Tensor {
	y := x.AddScalar(1)
	asyncrt.WaitAll()
	return y
}

type layer struct {
	w    *tensor.Param
	last *tensor.Tensor
}

func (l *layer) Forward(x *tensor.Tensor) *tensor.Tensor { return x.MatMul(l.w.Value()) }
func (l *layer) Params() []*nn.Param                     { return nil }

func used(x, y *tensor.Tensor, m nn.Module, l *layer, opt *optim.Optimizer) *tensor.Tensor {
	_ = x.Add(y)
	x = x.Add(y)
	m.Forward(x) // sets what the first call of a layer sets
	tensor.Randn(3)
	opt.Minimize(x)
	x.Backward()
	x.Wait()
	x.AddScalar(1) //asyncgen:ignore AT032 an example
	return x
}

func warmUp(x *tensor.Tensor) error {
	x.MatMul(x)
	return asyncrt.WaitAll()
}

func timed(x *tensor.Tensor) time.Duration {
	start := time.Now()
	f := func() { x.MatMul(x) }
	f()
	return time.Since(start)
}

func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func measured(x *tensor.Tensor) time.Duration {
	return took(func() { x.MatMul(x) })
}

func panics(x, y *tensor.Tensor) error {
	return asyncrt.Try(func() { x.Add(y) })
}
