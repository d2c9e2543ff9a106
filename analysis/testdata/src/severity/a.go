// Package severity has what is a warning beside what is info by default: every finding here is a warning.
package severity

import (
	"context"
	"fmt"
	"net/http"

	"batch"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var w *tensor.Tensor

func remade(xs []*tensor.Tensor, weights []float32, n int) (ys []*tensor.Tensor) {
	for _, x := range xs {
		y := x.Mul(tensor.From(weights))        // want `AT025`
		y = y.Add(tensor.Ones(n))               // filled on the device
		y = y.Add(tensor.From([]float32{1, 2})) // want `AT025`
		y = y.Add(tensor.Zeros())               // it, too
		y = y.Add(tensor.From([]float32{3}))    // want `AT025`
		sum := tensor.Zeros(n)                  // what the sum begins with
		for range 4 {
			sum = sum.Add(y)
		}
		ys = append(ys, sum)
	}
	return ys
}

func summed(p *nn.Param, opt *optim.Optimizer, data []batch.Batch) {
	total := tensor.Zeros()
	for _, b := range data {
		loss := batch.Loss(p.Value(), b)
		opt.Minimize(loss)
		total = total.Add(p.Value().Mul(b.X).Mean()) // want `AT023`
	}
	fmt.Println(total)
}

type server struct{ seen, all []*tensor.Tensor }

func (s *server) grows(ctx context.Context, in chan batch.Batch) (kept []*tensor.Tensor) {
	var dropped []*tensor.Tensor
	for ctx.Err() == nil {
		s.seen = append(s.seen, w.AddScalar(1))   // want `AT022`
		dropped = append(dropped, w.AddScalar(1)) // want `AT022`
	}
	for b := range in {
		s.all = append(s.all, batch.Loss(w, b))
		kept = append(kept, batch.Loss(w, b))
	}
	return kept
}

func handle(rw http.ResponseWriter, r *http.Request, data []batch.Batch) {
	for _, b := range data {
		v := batch.Loss(w, b).Item() // want `AT004`
		rw.Header().Set("Content-Type", "text/plain")
		rw.Write([]byte(fmt.Sprint(v)))
	}
}

func asks(urls []string, x *tensor.Tensor) (total float64) {
	for _, u := range urls {
		if _, err := http.Get(u); err == nil {
			x = x.MulScalar(2)
			total += x.Item() // the network takes longer
		}
	}
	return total
}

func allowed(data []batch.Batch) (total float64) {
	for _, b := range data {
		loss := batch.Loss(w, b)
		asyncrt.AllowSync(func() { total += loss.Item() }) // somebody has said so
	}
	return total
}

type world interface {
	Step(action int) (*tensor.Tensor, float64, bool)
}

func episode(e world, state *tensor.Tensor) (total float64) {
	for {
		action := int(state.MatMul(w).Mean().Item()) // the world answers to it
		next, reward, done := e.Step(action)
		if total += reward; done {
			return total
		}
		state = next
	}
}

type question struct {
	batch.Batch
	answer chan float64
}

func answers(questions chan question) {
	for q := range questions {
		q.answer <- batch.Loss(w, q.Batch).Item() // the client waits
	}
}

func reader(in chan *tensor.Tensor, out chan float64) {
	for t := range in {
		out <- t.Item() // all that it does
	}
}

func stage(in chan batch.Batch, out chan float64) {
	for b := range in {
		out <- batch.Loss(w, b).Item() // want `AT001`
	}
}

func lists(losses []*tensor.Tensor, data []batch.Batch, ack chan float64) (total float64) {
	for _, loss := range losses {
		total += loss.Item() // after all work
	}
	for _, b := range data {
		first, second := batch.Loss(w, b).Item(), batch.Loss(b.X, b).Item() // want `AT001` `AT001`
		total += first + second
		go func() { ack <- batch.Loss(w, b).Item() }()
		total += <-ack // want `AT013`
	}
	return total
}
