package extrawait

import (
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/scalars"
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
		later.Flush() // want `wait in loop: later.Flush\(\) waits for the device in each iteration; flush once after the loop, as each value is used or written when it has arrived`
	}
	return sum
}

func hasty(w *scalars.Writer, xs []*tensor.Tensor) error {
	for i, x := range xs {
		w.Add(i, "sum", x.Sum())
		if err := w.Flush(); err != nil { // want `wait in loop: w.Flush\(\) waits for the device in each iteration; flush once after the loop`
			return err
		}
	}
	for i, x := range xs {
		x := x.Sum()
		w.Add(i, "norm", x.Norm())
		w.Add(i, "sum", x)
		w.Flush() // want `wait in loop: w.Flush\(\) waits for the device in each iteration; flush once after the loop`
	}
	return w.Flush()
}

// Silent from here on.

func written(w, numbers *scalars.Writer, xs []*tensor.Tensor) {
	for i, x := range xs {
		w.Add(i, "sum", x.Sum())
		if i%100 == 0 {
			w.Flush()
		}
	}
	for i := range xs {
		numbers.Add(i, "size", float64(i))
		numbers.Flush()
	}
	for i, x := range xs {
		w.Add(i, "sum", x.Sum())
		numbers.Flush()
	}
}

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
