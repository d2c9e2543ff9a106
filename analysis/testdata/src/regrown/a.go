package regrown

import "github.com/asyncgen/asyncgen/runtime/tensor"

type batch struct{ x *tensor.Tensor }

func collect(in <-chan batch) *tensor.Tensor {
	all := (<-in).x
	for b := range in {
		all = tensor.Concat(0, all, b.x) // want `all is copied in each iteration to grow by a piece; collect the pieces in a list and concatenate once after the loop \[AT035\]`
	}
	return all
}

func rows(data [][][]float32) (all []*tensor.Tensor) {
	for _, part := range data {
		x := tensor.From(part[0])
		for _, row := range part[1:] {
			if x.Dim(0) > 1000 {
				break
			}
			x = tensor.Concat(0, x, tensor.From(row)) // want `x is copied`
		}
		all = append(all, x)
	}
	return all
}

func decode(next func(*tensor.Tensor) *tensor.Tensor, x *tensor.Tensor, n int) *tensor.Tensor {
	for x.Dim(0) < n {
		x = tensor.Concat(0, x, next(x)) // there is a bound
	}
	for range n {
		x = tensor.Concat(0, x, next(x))
	}
	for next(x).Item() > 0 {
		x = tensor.Concat(0, x, next(x)) // want `x is copied in each iteration to grow by a piece; that takes longer each time; bound it, or add many pieces at once`
	}
	return x
}

func joined(a, b *tensor.Tensor) *tensor.Tensor { return tensor.Concat(0, a, b) }

func forms(xs []*tensor.Tensor, named map[string]*tensor.Tensor) *tensor.Tensor {
	a, b, c := xs[0], xs[0], xs[0]
	for _, x := range xs {
		a = joined(a, x)               // want `a is copied in each iteration to grow by a piece; collect the pieces`
		next := tensor.Concat(0, b, x) // want `b is copied in each iteration`
		b = next
		c = tensor.Concat(0, []*tensor.Tensor{c, x}...)  // want `c is copied in each iteration`
		named["all"] = tensor.Concat(0, named["all"], x) // want `named\["all"\] is copied in each iteration`
	}
	for name, x := range named {
		named[name] = tensor.Concat(0, named[name], x)
	}
	return a.Add(b).Add(c)
}

// Silent from here on.

func pairs(xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	for i, x := range xs {
		y := tensor.Concat(0, x, xs[0])
		if i%100 == 0 {
			y = tensor.Concat(0, y, x)
		}
		ys = append(ys, y)
	}
	last := xs[0]
	for range 3 {
		last = tensor.Concat(0, last, xs[1])
	}
	window := xs[0]
	for _, x := range xs {
		window = tensor.Concat(0, window, x)
		ys = append(ys, window)
	}
	rest := xs[0]
	for i, x := range xs {
		rest = tensor.Concat(0, rest, x)
		if rest.Dim(0) > i {
			rest = xs[0]
		}
	}
	return append(ys, last, rest)
}
