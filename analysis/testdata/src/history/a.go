package history

import (
	"fmt"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type model struct{ w, b *tensor.Param }

func (m *model) forward(x *tensor.Tensor) *tensor.Tensor {
	h := x.MatMul(m.w.Value())
	return h.Add(m.b.Value())
}

func square(x *tensor.Tensor) *tensor.Tensor { return x.Mul(x) }

func (m *model) loss(b batch.Batch) *tensor.Tensor {
	return square(m.forward(b.X).Sub(b.Y)).Mean()
}

func evaluate(m *model, data []batch.Batch) float64 {
	total := tensor.Zeros()
	for _, b := range data {
		total = total.Add(m.loss(b)) // want `total keeps the history of m.loss\(b\) of every iteration, and is only read; add m.loss\(b\).Detach\(\) \[AT023\]`
	}
	fmt.Println(total)
	var worst *tensor.Tensor
	for _, b := range data {
		l := m.loss(b)
		if worst == nil {
			worst = l
			continue
		}
		worst = tensor.Where(worst.Sub(l), worst, l) // want `worst keeps the history of l`
	}
	return total.MulScalar(0.5).Item() + worst.Reshape().Item()
}

func train(m *model, opt *optim.Optimizer, data []batch.Batch) {
	total := tensor.Zeros()
	sum := tensor.Zeros()
	for _, b := range data {
		l := m.loss(b)
		opt.Minimize(l)
		total = total.Add(l) // want `total keeps the history of l`
		k := m.loss(b)
		k.Backward()
		sum = k.Add(sum) // want `sum keeps the history of k`
	}
	fmt.Println(total.Item(), sum)
}

// Silent from here on.

func detached(m *model, frozen *tensor.Tensor, data []batch.Batch) float64 {
	total, right, plain := tensor.Zeros(), tensor.Zeros(), tensor.Zeros()
	for _, b := range data {
		total = total.Add(m.loss(b).Detach())
		right = right.Add(m.forward(b.X).Eq(b.Y).Sum())
		plain = plain.Add(batch.Loss(frozen, b))
		total = total.Add(square(b.X))
	}
	return total.Item() + right.Item() + plain.Item()
}

func (m *model) accumulated(data []batch.Batch, opt *optim.Optimizer) {
	total := tensor.Zeros()
	for _, b := range data {
		total = total.Add(m.loss(b))
	}
	opt.Minimize(total)
	sum := tensor.Zeros()
	for _, b := range data {
		sum = sum.Add(m.loss(b))
	}
	sum.MulScalar(0.1).Backward()
}

func (m *model) unrolled(xs []*tensor.Tensor) *tensor.Tensor {
	h := tensor.Zeros(3)
	for _, x := range xs {
		h = h.Add(m.forward(x))
	}
	return h
}

func (m *model) residual(x *tensor.Tensor, layers []*model) {
	h, g := x.AddScalar(0), x.AddScalar(1)
	for _, l := range layers {
		r := l.forward(h)
		r = square(r)
		h = h.Add(r)
		g = l.forward(g).Add(g)
	}
	fmt.Println(h, g)
}

func (m *model) stored(xs []*tensor.Tensor, keep map[string]*tensor.Tensor) {
	h := tensor.Zeros(3)
	for _, x := range xs {
		h = h.Add(m.forward(x))
		keep["h"] = h
	}
	once := m.forward(xs[0])
	g := tensor.Zeros(3)
	for range xs {
		g = g.Add(once)
		inner := g.Add(m.forward(xs[0]))
		inner = inner.Add(m.forward(xs[1]))
		fmt.Println(inner)
	}
	for range 2 {
		g = g.Add(m.forward(xs[0]))
	}
	fmt.Println(g)
}
