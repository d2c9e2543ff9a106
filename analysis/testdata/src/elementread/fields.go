package elementread

import (
	"fmt"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A field, or a package variable, that the loop does not assign is like a local
// variable.

type picture struct {
	image, temperature, centers *tensor.Tensor
	labels                      *tensor.Tensor
	wide, high                  int
	inner                       *picture
	net                         nn.Module
	last                        *tensor.Tensor
}

func newPicture(labels []float32, image *tensor.Tensor) *picture {
	return &picture{labels: tensor.From(labels), image: image, temperature: image.Norm()}
}

func (p *picture) fields(n int, out []float64) (total float64) {
	for i := range n {
		total += float64(p.image.Float32s()[i]) // want `p.image.Float32s\(\) reads the same`
		out[i] /= p.temperature.Item()          // want `reads the same`
		total += p.inner.centers.Row(i).Item()  // want `reads one part of p.inner.centers`
		total += p.labels.At(i)                 // the program has these anyway
	}
	for i := range p.high {
		for j := range p.wide {
			total += p.image.At(i, j) // want `reads one part`
		}
		for c := range 3 {
			total += p.image.At(i, c) // want `reads one part`
		}
	}
	for _, q := range []*picture{p, p.inner, p, p, p} {
		total += q.temperature.Item() // another one each time
	}
	return total
}

func (p *picture) forward(x *tensor.Tensor) *tensor.Tensor {
	p.last = p.net.Forward(x)
	return p.last
}

func (p *picture) move() { p.centers = p.centers.AddScalar(1) }

func (p *picture) assigned(n int, xs []*tensor.Tensor, f func(int)) (total float64) {
	for i := range n {
		p.move()
		total += p.centers.At(i) // AT001
	}
	for i := range n {
		p.temperature = xs[i]
		total += p.temperature.Item()
	}
	for i, x := range xs {
		p.forward(x)
		total += p.last.At(i) // AT001
	}
	for i := range n {
		f(i) // who knows what it sets of what has ever been set
		total += p.last.At(i)
		total += p.image.At(i) // want `AT006`
	}
	q := p
	for i := range n {
		total += q.image.At(i) // want `AT006`
	}
	for i := range n {
		q = q.inner
		total += q.image.At(i)
	}
	return total
}

var table *tensor.Tensor

func ofThePackage(p *picture) (total float64) {
	for i := range 100 {
		total += table.At(i)          // want `AT006`
		total += p.temperature.Item() // want `AT006`
	}
	for i := range 100 {
		setTable()
		total += table.At(i) // AT001
	}
	return total
}

func setTable() { table = table.AddScalar(1) }

// A struct of another package may be assigned by what that package does.
func ofOthers(data []batch.Batch, m *batch.Model) (total float64) {
	for i := range 9 {
		total += m.Mean.At(i) // want `AT006`
	}
	for i := range 9 {
		m.Update(data[i])
		total += m.Mean.At(i)
	}
	return total
}

func indices(t *tensor.Tensor, n, wide int, at []int) (total float64) {
	for i := range n {
		total += t.At(n-1-i, 2*i)      // want `reads one part`
		total += t.At(i*wide + i%wide) // want `reads one part`
		total += t.Row(-i + n).Item()  // want `reads one part`
		k := wide + i*t.Dim(0)
		total += t.At(k)          // want `reads one part`
		total += t.At(min(i, 30)) // want `reads one part`
		total += t.At(at[i])      // want `reads one part`
		total += t.At(len(fmt.Sprint(i)))
	}
	for i, left := 0, n; left > 0; left-- {
		i = (i + left) % n
		total += t.At(i)
	}
	return total
}

// An unknown function can't set a field of a struct that only those set which make one.

type denoiser interface {
	noise(x *tensor.Tensor) *tensor.Tensor
}

type sampler struct {
	net   denoiser
	rates *tensor.Tensor
	shown *tensor.Tensor
}

func newSampler(net denoiser, n int) *sampler {
	s := &sampler{net: net}
	s.rates = tensor.Randn(n).Square()
	s.shown = s.rates.Norm()
	return s
}

func (s *sampler) show(x *tensor.Tensor) { s.shown = x }

func (s *sampler) sample(x *tensor.Tensor, n int) (*tensor.Tensor, float64) {
	total := 0.0
	for i := range n {
		x = s.net.noise(x).MulScalar(s.rates.At(i)) // want `s.rates.At\(i\) reads one part of s.rates`
		total += s.shown.At(i)
	}
	return x, total
}
