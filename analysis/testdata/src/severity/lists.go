package severity

import (
	"fmt"
	"math"
	"time"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A list that is read number by number holds up work only where more is to be enqueued.

func afterAll(data []batch.Batch, opt *optim.Optimizer) (total float64) {
	var losses []*tensor.Tensor
	for _, b := range data {
		loss := batch.Loss(w, b)
		opt.Minimize(loss)
		losses = append(losses, loss.Detach())
	}
	for _, l := range losses {
		total += l.Item()
	}
	return total / float64(len(losses))
}

func eachEpoch(data []batch.Batch, opt *optim.Optimizer, kept []*tensor.Tensor) (total float64) {
	for range 100 {
		for _, b := range data {
			opt.Minimize(batch.Loss(w, b))
		}
		for _, k := range kept {
			total += k.Item()
		}
	}
	return total
}

func eachStep(data []batch.Batch, opt *optim.Optimizer, kept []*tensor.Tensor) (total float64) {
	for i, b := range data {
		opt.Minimize(batch.Loss(w, b))
		for _, k := range kept {
			total += k.Item() // want `AT007`
		}
		if i%100 == 0 {
			for _, k := range kept {
				total += k.Item() // now and then
			}
		}
	}
	return total
}

func everySecond(b batch.Batch, opt *optim.Optimizer, kept []*tensor.Tensor) (total float64) {
	for range time.Tick(time.Second) {
		opt.Minimize(batch.Loss(w, b))
		for _, k := range kept {
			total += k.Item()
		}
	}
	return total
}

// magnitudes is called in each step, lengths after all.

func magnitudes(ps []*tensor.Tensor) (sum float64) {
	var list []*tensor.Tensor
	for _, p := range ps {
		list = append(list, p.Norm())
	}
	for _, n := range list {
		sum += n.Item() // want `AT007`
	}
	return sum
}

func lengths(ps []*tensor.Tensor) (sum float64) {
	var list []*tensor.Tensor
	for _, p := range ps {
		list = append(list, p.Norm())
	}
	for _, n := range list {
		sum += n.Item()
	}
	return sum
}

func calls(data []batch.Batch, opt *optim.Optimizer, ps []*tensor.Tensor) (sum float64) {
	for _, b := range data {
		opt.Minimize(batch.Loss(w, b))
		sum += magnitudes(ps) // want `AT010`
	}
	return sum + lengths(ps)
}

type hook struct{ seen []*tensor.Tensor }

func (h *hook) OnStep(loss *tensor.Tensor) {
	h.seen = append(h.seen, loss)
	sum := 0.0
	for _, s := range h.seen {
		sum += s.Item() // want `AT007`
	}
	fmt.Println(sum / float64(len(h.seen)))
}

func weighed(losses []*tensor.Tensor) (total *tensor.Tensor) {
	sum := 0.0
	for _, l := range losses {
		sum += math.Exp(l.Item()) // want `AT007`
	}
	total = tensor.Zeros()
	for _, l := range losses {
		total = total.Add(l.DivScalar(sum))
	}
	return total
}

func counted(losses []*tensor.Tensor) ([]float64, *tensor.Tensor) {
	var out []float64
	for _, l := range losses {
		out = append(out, l.Item())
	}
	return out, tensor.Ones(len(out))
}

// Statements of several reads.

func moments(x *tensor.Tensor) (mean, least, most float64) {
	return x.Mean().Item(), x.Min().Item(), x.Max().Item()
}

func momentsOfStep(x *tensor.Tensor) (mean, least, most float64) {
	return x.Mean().Item(), x.Min().Item(), x.Max().Item() // want `AT007`
}

func watched(data []batch.Batch, opt *optim.Optimizer, p *tensor.Tensor) (top float64) {
	for _, b := range data {
		opt.Minimize(batch.Loss(w, b))
		_, _, most := momentsOfStep(p) // want `AT010`
		top = max(top, most)
	}
	_, _, most := moments(p)
	return max(top, most)
}
