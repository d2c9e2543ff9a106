package regrown

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Other forms of the same.

func byLiteral(xs []*tensor.Tensor) (all, first *tensor.Tensor, list []*tensor.Tensor) {
	all, first = xs[0], xs[0]
	add := func(x *tensor.Tensor) { all = tensor.Concat(0, all, x) } // want `all is copied in each iteration to grow by a piece`
	once := func(x *tensor.Tensor) { first = tensor.Concat(0, first, x) }
	once(xs[0])
	for _, x := range xs {
		add(x)
		last := x
		join := func() { last = tensor.Concat(0, last, x) }
		join()
		list = append(list, last)
	}
	return all, first, list
}

func byPointer(all **tensor.Tensor, xs []*tensor.Tensor) {
	for _, x := range xs {
		*all = tensor.Concat(0, *all, x) // want `\*all is copied in each iteration`
	}
}

func byAppend(xs []*tensor.Tensor) *tensor.Tensor {
	all := xs[0]
	for _, x := range xs[1:] {
		all = tensor.Concat(0, append([]*tensor.Tensor{all}, x)...) // want `all is copied in each iteration`
	}
	return all
}

func byIndex(xs, rows []*tensor.Tensor) *tensor.Tensor {
	all, sum := tensor.Zeros(len(xs), 8), tensor.Zeros(8)
	for i, x := range xs {
		all = all.IndexCopy(0, tensor.From([]int64{int64(i)}), x) // want `all is copied in each iteration to change one part`
		sum = sum.IndexAdd(0, rows[i], x)                         // a batch of rows
	}
	return all.Add(sum)
}
