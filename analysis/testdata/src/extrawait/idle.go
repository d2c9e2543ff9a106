package extrawait

import (
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func total(xs []*tensor.Tensor) float64 {
	asyncrt.WaitIdle() // want `asyncrt.WaitIdle\(\) is not needed: what follows waits for the same \[AT009\]`
	sum := tensor.Zeros()
	for _, x := range xs {
		sum = sum.Add(x.Sum())
	}
	return sum.Item()
}

func impatient(xs []*tensor.Tensor) (sum float64) {
	later := asyncrt.NewLater[struct{}](16)
	for _, x := range xs {
		v := later.Read(x.Sum())
		later.Do(func() { sum += v.Item() })
		later.Flush() // want `wait in loop: later.Flush\(\) waits for the device in each iteration; flush once after the loop, as the functions run`
	}
	return sum
}

// Silent from here on.

func patient(xs [][]*tensor.Tensor) (sum float64) {
	later := asyncrt.NewLater[struct{}](16)
	for i, part := range xs {
		for _, x := range part {
			v := later.Read(x.Sum())
			later.Do(func() { sum += v.Item() })
		}
		later.Flush()
		if i%10 == 0 {
			v := later.Read(part[0])
			later.Do(func() { sum += v.Item() })
			later.Flush()
		}
	}
	later.Flush()
	return sum
}

func between(x *tensor.Tensor, report func()) float64 {
	asyncrt.WaitIdle()
	report()
	return x.Item()
}

func perhaps(x *tensor.Tensor, ask bool) float64 {
	asyncrt.WaitIdle()
	if ask {
		return x.Item()
	}
	return 0
}

func retry(f func(n int) *tensor.Tensor, n int) *tensor.Tensor {
	for ; n > 0; n /= 2 {
		y := f(n)
		err := y.Wait()
		if err == nil {
			return y
		}
	}
	return nil
}
