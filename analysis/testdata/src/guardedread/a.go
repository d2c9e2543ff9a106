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

func several(data []Batch) {
	for i, b := range data {
		loss, other := batch.Loss(w, b), batch.Loss(b.X, b)
		v := loss.Item() // want `AT008`
		u := float64(i)
		all := other.Float32s() // want `AT008`
		if i%100 == 0 {
			// One fix for both.
			fmt.Println(i, v, u, all)
		}
	}
}

func parameter(t *tensor.Tensor, data []Batch) {
	for i, b := range data {
		t = batch.Loss(t, b)
		v := t.Item() // want `AT008`
		if i%100 == 0 {
			fmt.Println(v)
		}
	}
}

// The rest is reported, but not fixed.

var latest *tensor.Tensor

func publish(b Batch) { latest = batch.Loss(w, b) }

func elsewhere(data []Batch) {
	var loss *tensor.Tensor
	renew := func(b Batch) { loss = batch.Loss(w, b) }
	for i, b := range data {
		publish(b)
		v := latest.Item() // want `AT008`
		publish(b)
		if i%100 == 0 {
			fmt.Println(v)
		}
		loss = batch.Loss(b.X, b)
		u := loss.Item() // want `AT008`
		renew(b)
		if i%100 == 0 {
			fmt.Println(u)
		}
	}
}

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
