package guardedread

import (
	"fmt"
	"time"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

var w *tensor.Tensor

func simple(data []Batch) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		v := loss.Item() // want `blocking read in loop: loss.Item\(\) waits for the device in each iteration, but its value is used in few; read it where it is used \[AT008\]`
		if i%100 == 0 {
			fmt.Println(i, v)
		}
	}
}

func between(data []Batch) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		// This comment stays.
		v := loss.Item() // want `AT008`
		w = w.Sub(loss)

		if i%100 == 0 { // so does this
			// What comes first keeps its comment.
			fmt.Println(i, v)
			fmt.Println(v * 2)
		} else {
			fmt.Println("not now")
		}
	}
}

func slice(data []Batch, out func([]float32)) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		all := loss.Float32s() // want `loss.Float32s\(\) waits`
		if i%100 != 0 {
			continue
		}
		if len(data) > 1 && i > 0 {
			out(all)
		}
	}
}

// The rest is reported, but not fixed.

func reassigned(data []Batch) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		v := loss.Item() // want `AT008`
		loss = loss.AddScalar(1)
		if i%100 == 0 {
			fmt.Println(i, v)
		}
	}
}

func hidden(data []Batch) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		v := loss.Item() // want `AT008`
		if loss := i; i%100 == 0 {
			fmt.Println(loss, v)
		}
	}
}

func timed(data []Batch) {
	for i, b := range data {
		start := time.Now()
		loss := batch.Loss(w, b)
		v := loss.Item() // want `AT008`
		if i%100 == 0 {
			fmt.Println(time.Since(start), v)
		}
	}
}

func twice(data []Batch) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		v := loss.Item() // want `AT008`
		if i%100 == 0 {
			fmt.Println(v)
		}
		if i%10 == 0 {
			fmt.Println(v)
		}
	}
}

func otherForms(data []Batch) {
	for i, b := range data {
		var v float64
		v = batch.Loss(w, b).Item() // want `AT008`
		if i%100 == 0 {
			fmt.Println(v)
		}
		u := batch.Loss(w, b).Item() + 1 // want `AT008`
		if i%100 == 0 {
			fmt.Println(u)
		}
		t, loss := 0, batch.Loss(w, b)
		x, y := loss.Item(), t // want `AT008`
		if i%100 == 0 {
			fmt.Println(x, y)
		}
	}
}

// Silent.

func unguarded(data []Batch) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		v := loss.Item() // AT001
		if i > 100 {
			fmt.Println(v)
		}
		if i%100 == 0 {
			fmt.Println(v)
		}
	}
}
