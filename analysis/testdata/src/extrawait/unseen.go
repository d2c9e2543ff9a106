package extrawait

import (
	"time"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Waits for what nobody has.

func checked(x *tensor.Tensor) float64 {
	x.Sum().Wait() // want `x.Sum\(\).Wait\(\) computes something that nobody has, and waits for it`
	s := x.Sum().Item()
	_ = x.MulScalar(2).Norm().Wait() // want `AT009`
	return s
}

// Waits one after the other.

func drain(ys []*tensor.Tensor) (n int, err error) {
	for _, y := range ys {
		if err = y.Wait(); err != nil { // want `y.Wait\(\) waits for one tensor of ys at a time; tensor.Wait\(ys...\) waits for all`
			return n, err
		}
		n++
	}
	for _, y := range ys {
		if err := y.Wait(); err != nil { // want `AT009`
			return n, err
		}
	}
	return n, nil
}

// Silent.

func warmUp(x *tensor.Tensor) { x.MatMul(x).Wait() }

func measured(x *tensor.Tensor) time.Duration {
	start := time.Now()
	x.MatMul(x).Wait()
	return time.Since(start)
}

func settled(x *tensor.Tensor, net nn.Module) error {
	net.Forward(x).Wait()
	if err := x.Sum().Wait(); err != nil {
		return err
	}
	y := x.MulScalar(2)
	y.Wait()
	return nil
}

func idle(x *tensor.Tensor) error {
	x.Sum().Wait()
	return asyncrt.WaitAll()
}

func failed(ys []*tensor.Tensor, names []string) (list []string) {
	for i, y := range ys {
		if err := y.Wait(); err != nil {
			list = append(list, names[i])
		}
	}
	return list
}

// Waits whose error is dropped, for what is returned.

func solved(a, b *tensor.Tensor) *tensor.Tensor {
	x := a.Solve(b)
	x.Wait() // want `x.Wait\(\) drops the error, and who gets the tensor waits when it is read; return the error, or don't wait`
	return x
}

func inverse(a *tensor.Tensor) (*tensor.Tensor, error) {
	x := a.Inverse()
	if err := x.Wait(); err != nil {
		return nil, err
	}
	y := x.MatMul(a)
	_ = y.Wait() // want `AT009`
	return y, nil
}

func finished(a, b *tensor.Tensor) *tensor.Tensor {
	x := a.Solve(b)
	x.Wait()
	return x
}

func waited(x *tensor.Tensor) *tensor.Tensor {
	x.Wait() // the caller's
	return x
}
