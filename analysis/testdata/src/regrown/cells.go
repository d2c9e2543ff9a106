package regrown

import "github.com/asyncgen/asyncgen/runtime/tensor"

func walk(x, y *tensor.Tensor, n int) *tensor.Tensor {
	for i := range n {
		x = x.SetIndex(y, tensor.At(i), tensor.At(2*i)) // want `x is copied in each iteration to change one element; change the elements on the host, or all at once with ScatterAdd \[AT035\]`
	}
	for i := range n {
		z := x.SetIndex(y, tensor.At(i), tensor.At(i)) // each from the same x
		y = y.Add(z)
	}
	for i := range n {
		x = x.SetIndex(y, tensor.At(i)) // want `x is copied in each iteration to change one part; collect the parts in a list and Stack them after the loop, or set all at once with IndexCopy`
	}
	return x.Add(y)
}

type ranks struct{ of *tensor.Tensor }

func (r *ranks) set(at []int64, errs *tensor.Tensor) {
	for i, j := range at {
		r.of = r.of.SetIndex(errs.Row(i), tensor.At(int(j))) // want `r.of is copied in each iteration to change one part`
	}
}

func windows(xs []*tensor.Tensor, width int) *tensor.Tensor {
	all, columns := tensor.Zeros(len(xs)*width, 4), tensor.Zeros(4, len(xs))
	for i, x := range xs {
		all = all.SetIndex(x, tensor.Range(i*width, (i+1)*width)) // want `all is copied in each iteration to change one part`
		columns = columns.SetIndex(x, tensor.All(), tensor.At(i)) // want `columns is copied`
	}
	return all.MatMul(columns)
}

// Silent from here on.

// bounded sets the same part in each step, as boundary conditions do.
func bounded(u, edge *tensor.Tensor, n int) *tensor.Tensor {
	for range n {
		u = u.Add(u.MulScalar(0.1)).SetIndex(edge, tensor.At(0))
		u = u.SetIndex(edge, tensor.At(-1))
	}
	return u
}

// recursion needs the rows before to compute the next.
func recursion(x *tensor.Tensor, n int) *tensor.Tensor {
	for i := 1; i < n; i++ {
		x = x.SetIndex(x.Row(i-1).MulScalar(2), tensor.At(i))
	}
	return x
}

func changed(x, y *tensor.Tensor, n int) (list []*tensor.Tensor) {
	for i := range n {
		x = x.SetIndex(y, tensor.At(i))
		list = append(list, x)
	}
	return list
}

// overlap adds to one part after the other.
func overlap(frames *tensor.Tensor, size, hop, n int) *tensor.Tensor {
	out := tensor.Zeros(n*hop + size)
	for i := range n {
		part := tensor.Range(i*hop, i*hop+size)
		out = out.SetIndex(out.Index(part).Add(frames.Row(i)), part) // want `out is copied in each iteration to change one part, to which it adds; add all at once with IndexAdd or ScatterAdd`
	}
	for i := range n {
		out = out.SetIndex(out.Row(i).Add(frames.Row(i)), tensor.At(i)) // want `part, to which it adds`
	}
	for i := range n {
		before := out.Row(i)
		out = out.SetIndex(before.Add(frames.Row(i)), tensor.At(i)) // want `part, to which it adds`
	}
	return out
}

// shifted takes another part than it sets, and follows uses the part for something else.
func shifted(x *tensor.Tensor, n int) *tensor.Tensor {
	for i := range n {
		part := tensor.Range(i, i+2)
		x = x.SetIndex(x.Index(tensor.Range(i+1, i+3)).Square(), part)
	}
	return x
}

func follows(x, y *tensor.Tensor, n int) *tensor.Tensor {
	for i := range n {
		before := x.Row(i)
		x = x.SetIndex(before.Add(y), tensor.At(i))
		y = y.Add(before)
	}
	return x
}

func join(a, b *tensor.Tensor) *tensor.Tensor {
	if a == nil {
		return b
	}
	return tensor.Concat(0, a, b)
}

func joinedAll(xs []*tensor.Tensor) (all *tensor.Tensor) {
	for _, x := range xs {
		all = join(all, x) // want `all is copied in each iteration to grow by a piece`
	}
	return all
}

func paired(a, b *tensor.Tensor) *tensor.Tensor {
	if a == nil {
		return b.Add(b)
	}
	return tensor.Concat(0, a, b)
}

func pairedAll(xs []*tensor.Tensor) (all *tensor.Tensor) {
	for _, x := range xs {
		all = paired(all, x) // it does more than join
	}
	return all
}
