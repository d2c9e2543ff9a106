package loopread

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// The iterations of a loop over batches may have loops of their own.

type descent struct {
	params []*nn.Param
	rate   float64
}

func (d *descent) step() {
	for _, p := range d.params {
		p.Set(p.Value().MulScalar(d.rate))
	}
}

func (d *descent) stepByIndex() {
	for i := range d.params {
		d.update(d.params[i])
	}
}

func (d *descent) update(p *nn.Param) { p.Set(p.Value().MulScalar(d.rate)) }

func byHand(net nn.Module, d *descent, opts []*optim.Optimizer, data []Batch) (total float64) {
	for _, b := range data {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		loss.Backward()
		for _, p := range net.Params() {
			p.Set(p.Value().MulScalar(0.1))
		}
		total += loss.Item() // want `only kept`
	}
	for _, b := range data {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		loss.Backward()
		d.step()
		total += loss.Item() // want `only kept`
	}
	for _, b := range data {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		loss.Backward()
		d.stepByIndex()
		total += loss.Item() // want `only kept`
	}
	for _, b := range data {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		for _, o := range opts {
			o.Minimize(loss)
		}
		total += loss.Item() // want `only kept`
	}
	return total
}

func sequences(cell func(x, h *tensor.Tensor) *tensor.Tensor, opt *optim.Optimizer, data []Batch, docs [][]*tensor.Tensor, weights []*tensor.Tensor, n int) (total float64) {
	for _, b := range data {
		h := b.Y
		for t := range n {
			h = cell(b.X.Row(t), h)
		}
		opt.Minimize(h)
		total += h.Item() // want `only kept`
	}
	for _, words := range docs {
		h := w
		for _, word := range words {
			h = cell(word, h)
		}
		total += h.Item() // want `only kept`
	}
	for _, b := range data {
		x := b.X
		for range 12 {
			x = x.MatMul(w)
		}
		total += x.Item() // want `only kept`
	}
	for _, b := range data {
		x := b.X
		for _, w := range weights {
			x = x.MatMul(w).Add(x)
		}
		total += x.Item() // want `only kept`
	}
	for _, b := range data {
		x := b.X
		for left := n; left > 0; left-- {
			x = x.Sub(x.MulScalar(1 / float64(left)))
		}
		total += x.Item() // want `only kept`
	}
	return total
}

// Weights may be plain tensors.
func plain(data []Batch, ws []*tensor.Tensor) (total float64) {
	for _, b := range data {
		loss := step(b)
		for i := range ws {
			ws[i] = ws[i].Sub(loss)
		}
		total += loss.Item() // want `only kept`
	}
	for _, b := range data {
		loss := step(b)
		for i, w := range ws {
			ws[i] = w.Sub(loss)
		}
		total += loss.Item() // want `only kept`
	}
	for _, b := range data {
		loss := step(b)
		for _, w := range ws {
			loss = loss.Add(w.Norm())
		}
		total += loss.Item() // want `only kept`
	}
	return total
}

func partsOfBatches(net nn.Module, opt, critic *optim.Optimizer, steps [][]Batch, next func() Batch, n int) (total float64) {
	for _, parts := range steps {
		sum := tensor.Zeros()
		for _, b := range parts {
			loss := nn.MSELoss(net.Forward(b.X), b.Y)
			loss.Backward()
			sum = sum.Add(loss)
		}
		opt.Step()
		total += sum.Item() // want `only kept`
	}
	for range n {
		var loss *tensor.Tensor
		for range n {
			b := next()
			loss = nn.MSELoss(net.Forward(b.X), b.Y)
			loss.Backward()
		}
		opt.Step()
		total += loss.Item() // want `only kept`
	}
	for _, parts := range steps {
		b := parts[0]
		for range n {
			critic.Minimize(net.Forward(b.X))
		}
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		opt.Minimize(loss)
		total += loss.Item() // want `only kept`
	}
	return total
}

func (d *descent) trainSequence(net nn.Module, b Batch, n int) float64 {
	h := b.X
	for range n {
		h = h.MatMul(w)
	}
	h.Backward()
	d.step()
	return h.Item()
}

func called(d *descent, net nn.Module, data []Batch) (total float64) {
	for _, b := range data {
		total += d.trainSequence(net, b, 9) // AT010
	}
	return total
}

// In these, a pass over data does the work of an iteration.

type loader struct{ data []Batch }

func (l *loader) size() int           { return len(l.data) }
func (l *loader) batch(i int) Batch   { return l.data[i] }
func (l *loader) next() (Batch, bool) { return l.data[0], len(l.data) > 3 }

func passes(n, size int, net nn.Module, opt *optim.Optimizer, l *loader, x *tensor.Tensor, c chan Batch, folds [][]Batch) (all []float64) {
	for range n {
		sum := tensor.Zeros()
		for i := 0; i < l.size(); i++ {
			sum = sum.Add(step(l.batch(i)))
		}
		all = append(all, sum.Item())
	}
	for range n {
		sum := tensor.Zeros()
		for i := 0; i < n; i += size {
			sum = sum.Add(net.Forward(x.Slice(0, i, i+size)))
		}
		all = append(all, sum.Item())
	}
	for range n {
		sum := tensor.Zeros()
		for {
			b, ok := l.next()
			if !ok {
				break
			}
			sum = sum.Add(step(b))
		}
		all = append(all, sum.Item())
	}
	for range n {
		sum := tensor.Zeros()
		for b := range c {
			sum = sum.Add(step(b))
		}
		all = append(all, sum.Item())
	}
	for i := range folds {
		for j, fold := range folds {
			if i == j {
				continue
			}
			for _, b := range fold {
				opt.Minimize(step(b))
			}
		}
		sum := tensor.Zeros()
		for _, b := range folds[i] {
			sum = sum.Add(step(b))
		}
		all = append(all, sum.Item())
	}
	for _, fold := range folds {
		sum := tensor.Zeros()
		for _, b := range fold {
			sum = sum.Add(step(b))
		}
		all = append(all, sum.Item())
	}
	for i := range n {
		shuffled := append([]Batch(nil), l.data...)
		loss := tensor.Zeros()
		for _, b := range shuffled {
			loss = nn.MSELoss(net.Forward(b.X), b.Y)
			opt.Minimize(loss)
		}
		opt.SetRate(1 / float64(i))
		all = append(all, loss.Item())
	}
	return all
}
