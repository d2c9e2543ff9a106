package elementread

import (
	"fmt"
	"time"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

var w *tensor.Tensor

func elements(t *tensor.Tensor, n int) (total float64) {
	for i := range n {
		total += t.At(i) // want `repeated read in loop: t.At\(i\) reads one part of t in each iteration; read it once before the loop \[AT006\]`
	}
	for i := 0; i < n; i++ {
		for j := 0; j < n; j++ {
			total += t.At(i, j) // want `t.At\(i, j\) reads one part`
		}
	}
	for i := range n {
		row := t.Row(i)
		total += row.Item()                      // want `row.Item\(\) reads one part of t`
		total += t.Row(i).Item()                 // want `t.Row\(i\).Item\(\) reads one part of t`
		total += float64(t.Row(i).Float32s()[0]) // want `AT006`
		total += t.Row(n - 1).Reshape(1).Item()  // want `reads the same in each iteration; read it once before the loop \[`
	}
	return
}

func computed(data []Batch) (total float64) {
	for _, b := range data {
		y := batch.Loss(w, b)
		for i := range data {
			total += y.At(i) // want `reads one part of y`
		}
	}
	batch.Each(len(data), func(i int) {
		total += tensor.ItemOf[float64](w) // want `reads the same`
	})
	all := w.MatMul(w)
	batch.Each(len(data), func(i int) {
		total += all.At(i) // want `reads one part of all`
	})
	scale := w.Norm()
	batch.Each(len(data), func(i int) {
		total += scale.Item() // want `reads the same`
	})
	return
}

func fixed(x *tensor.Tensor) (total, other float64) {
	scale, shift := x.Norm(), x.Sum()

	// Comments stay where they are.
	for i := range 100 { // so do these
		total += scale.Item() * float64(i)   // want `reads the same in each iteration`
		other += shift.Item() + scale.Item() // want `AT006` `AT006`
	}
	for i := 0; i < 10; i++ {
		if x.Item() > total { // want `AT006`
			other++
		}
		if i > 5 {
			continue
		}
		other += x.MulScalar(2).Item()
	}
	for range [8]int{} {
		total += x.Item() // want `AT006`
		if total > 100 {
			break
		}
	}
	return
}

// The rest is reported, but not fixed.

func notFixed(x *tensor.Tensor, n int, data []Batch) (total float64) {
	for range n { // may be none
		total += x.Item() // want `AT006`
	}
	for i := range 100 {
		if i > n {
			break // before the read
		}
		total += x.Item() // want `AT006`
	}
	for i := range 100 {
		if i > n {
			continue
		}
		total += x.Item() // want `AT006`
	}
	for i := range 100 {
		found := i > n && x.Item() > 1 // want `AT006`
		if found {
			total++
		}
	}
	for range 100 {
		v := x.Float32s() // want `AT006`
		v[0]++
		total += float64(v[0])
	}
loop:
	for range 100 {
		total += x.Item() // want `AT006`
		for range data {
			if total > 100 {
				continue loop
			}
		}
	}
	for range 100 {
		for range 100 {
			total += x.Item() // want `AT006`
		}
	}
	for {
		total += x.Item() // want `AT006`
		if total > 10 {
			break
		}
	}
	return
}

func timed(x *tensor.Tensor) (total float64) {
	start := time.Now()
	for range 100 {
		total += x.Item() // want `AT006`
	}
	fmt.Println(time.Since(start))
	return
}

func elapsed(from time.Time) time.Duration { return time.Since(from) }

func timedElsewhere(x *tensor.Tensor, from time.Time) (total float64) {
	for range 100 {
		total += x.Item() // want `AT006`
	}
	fmt.Println(elapsed(from))
	return
}

func parts(t *tensor.Tensor, xs []*tensor.Tensor, quantiles []float64, sizes []int) (all [][]float32, total float64) {
	from := 0
	for i := range xs {
		n := xs[i].Dim(0)
		all = append(all, t.Slice(0, from, from+n).Float32s()) // want `reads one part of t`
		from += n
	}
	from = 0
	for _, n := range sizes {
		all = append(all, t.Slice(0, from, from+n).Float32s()) // want `reads one part of t`
		from += n
	}
	for _, q := range quantiles {
		total += t.At(int(q * float64(t.Dim(0)-1))) // want `reads one part of t`
	}
	at := 0
	for i := range xs { // a walk
		at = find(sizes, at+i)
		total += t.At(at)
	}
	for i := range xs {
		at += i
		at = min(at, 10)
		total += t.At(at)
	}
	return all, total
}

func find(list []int, i int) int { return list[i] }

// Silent.

type model struct{ w *tensor.Tensor }

func others(m *model, t *tensor.Tensor, at []int, data []Batch, values []float32) (total float64) {
	for i, k := range at {
		total += t.At(k)           // want `t.At\(k\) reads one part of t`
		total += t.At(at[i])       // want `AT006`
		total += t.At(find(at, i)) // who knows how many there are
		if i%100 == 0 {
			total += t.At(i)
		}
	}
	for i := range 4 {
		total += t.At(i)
	}
	x := tensor.From(values)
	for i := range values {
		total += x.At(i)
	}
	for i := range at {
		t = t.AddScalar(1)
		total += t.At(i)
	}
	for i := range at {
		if total > 10 {
			fmt.Println(t.At(i))
			break
		}
	}
	u := t
	update := func() { u = u.AddScalar(1) }
	for i := range at {
		update()
		total += u.At(i)
	}
	for i, b := range data {
		total += b.X.At(i)
		total += t.MatMul(b.X).At(i)
	}
	return
}
