package lastread

import (
	"errors"
	"fmt"
	"time"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

var w *tensor.Tensor

func simple(data []Batch) {
	var last float64
	for _, b := range data {
		loss := batch.Loss(w, b)
		last = loss.Item() // want `blocking read in loop: loss.Item\(\) waits for the device in each iteration, but only the last value is used; keep the tensor and read it after the loop \[AT002\]`
	}
	fmt.Println(last)
}

func several(data []Batch) (float32, []float32) {
	var last float32
	var all []float32
	n := 0

	// A comment of the loop.
	for i, b := range data { // and another
		y := b.X.MatMul(w)
		// Stays here.
		all = y.Float32s()                       // want `AT002`
		last = float32(y.Sub(b.Y).Mean().Item()) // want `AT002`
		n += i
		if n > 100 {
			break
		}
	} // the end
	fmt.Println(n)
	return last, all
}

func inner(epochs int, data []Batch) {
	for range epochs {
		var last float64
		for i := 0; i < len(data); i++ {
			last = batch.Loss(w, data[i]).Item() // want `AT002`
		}
		fmt.Println(last)
	}
}

func leaves(data []Batch) (float64, error) {
	last := 0.0
	for _, b := range data {
		if b.X == nil {
			return 0, errors.New("no data")
		}
		last = batch.Loss(w, b).Item() // want `AT002`
	}
	return last, nil
}

func twice(data []Batch) {
	var last, lastTensor float64
	for _, b := range data {
		last = batch.Loss(w, b).Item() // want `AT002`
	}
	fmt.Println(last, lastTensor)
	for _, b := range data {
		last = batch.Loss(b.X, b).Item() // want `AT002`
	}
	fmt.Println(last)
}

// The rest is reported, but not fixed.

func named(data []Batch) (last float64, err error) {
	for _, b := range data {
		last = batch.Loss(w, b).Item() // want `AT002`
		if b.Y == nil {
			return last, errors.New("no target")
		}
	}
	return
}

func result(data []Batch) (last float64) {
	for _, b := range data {
		last = batch.Loss(w, b).Item() // want `AT002`
	}
	return
}

func timed(data []Batch) {
	var last float64
	start := time.Now()
	for _, b := range data {
		last = batch.Loss(w, b).Item() // want `AT002`
	}
	fmt.Println(last, time.Since(start))
}

func labelled(data []Batch) {
	var last float64
outer:
	for range 10 {
		for _, b := range data {
			last = batch.Loss(w, b).Item() // want `AT002`
			if b.X == nil {
				continue outer
			}
		}
	}
	fmt.Println(last)
}

func arguments(data []Batch) {
	var last float64
	for i, b := range data {
		last = b.X.MatMul(w).At(i, 0) // want `AT002`
	}
	fmt.Println(last)
}

func local(data []Batch) {
	var last any
	for _, b := range data {
		type number float64
		last = number(batch.Loss(w, b).Item()) // want `AT002`
	}
	fmt.Println(last)
}

// Silent: other rules speak of these.

type trainer struct{ last float64 }

func others(data []Batch, t *trainer) float64 {
	var last, sum, shared, twice, most float64
	show := func() { fmt.Println(shared) }
	for i, b := range data {
		loss := batch.Loss(w, b)
		t.last = loss.Item()
		sum += batch.Loss(w, b).Item()
		twice = batch.Loss(w, b).Item()
		if i > 10 {
			twice = 0
		}
		if v := batch.Loss(w, b).Item(); v > most {
			most = v
		}
		shared = batch.Loss(w, b).Item()
		show()
		last = batch.Loss(w, b).Item()
		sum += last
	}
	return last + sum + shared + twice + most
}
