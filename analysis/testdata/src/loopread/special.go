package loopread

import (
	"fmt"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Operations that wait for a number.

func special(p *nn.Param, table, scores *tensor.Tensor, n int) *tensor.Tensor {
	counts := scores.As(tensor.Int64)
	for range n {
		scores = p.Value().RowI64(scores.ArgMax().I64()) // want `p.Value\(\).RowI64 waits for the device in each iteration; of a tracked tensor it does; RowAt takes the index`
		counts = counts.MulF64(scores.Norm().F64())      // want `counts.MulF64 waits for the device in each iteration; with integers it does; compute with floats`
		table = table.Detach().RowI64(table.ArgMax().I64())
		scores = scores.MulF64(scores.Norm().F64())
	}
	return counts.Add(table)
}

func behind(data []Batch, emit func(float64)) {
	later := asyncrt.NewLater[struct{}](8)
	for _, b := range data {
		loss := step(b)
		at := later.Read(loss)
		later.Do(func() {
			emit(at.Item())
			emit(loss.Norm().Item()) // want `loss.Norm\(\).Item\(\) waits for the device in each iteration; the backlog doesn't know of it`
		})
	}
}

// Rarely, once per so many steps.

func every(n int) func(func()) {
	calls := 0
	return func(f func()) {
		if calls%n == 0 {
			f()
		}
		calls++
	}
}

func flow(u *tensor.Tensor, n int, frame func([]float32) bool) {
	sometimes := every(50)
	for range n {
		v := u.Norm()
		sometimes(func() { fmt.Println(v.Item()) })
	}
	for {
		for range 20 {
			u = u.AddScaled(u.Square(), 0.1)
		}
		if !frame(u.Float32s()) {
			return
		}
	}
}

func restarted(xs []*tensor.Tensor, n int) (sum float64) {
	for _, x := range xs {
		for range 20 {
			x = x.AddScaled(x.Square(), 0.1)
		}
		sum += x.Norm().Item() // want `AT001`
	}
	return sum
}

// Whether it fails is what Try tells, and each iteration waits for that.
func failures(data []Batch) (failed int) {
	for _, b := range data {
		if err := asyncrt.Try(func() { step(b).Item() }); err != nil { // want `blocking read in loop`
			failed++
		}
	}
	return failed
}

type ring struct {
	buf []*tensor.Tensor
	at  int
}

func (r *ring) push(t *tensor.Tensor) (old *tensor.Tensor) {
	old, r.buf[r.at] = r.buf[r.at], t
	r.at = (r.at + 1) % len(r.buf)
	return old
}

func lagging(data []Batch, r *ring) (sum float64) {
	for _, b := range data {
		if old := r.push(step(b)); old != nil {
			sum += old.Item() // from an earlier iteration
		}
	}
	return sum
}
