package valueshape

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Where a part begins, with as many elements each time, is no size.
func places(xs []*tensor.Tensor, width int) (ys []*tensor.Tensor) {
	for _, x := range xs {
		at := int(x.Sum().ItemInt())
		ys = append(ys, x.Slice(0, at, at+8), x.Slice(0, at, width+at), x.Slice(0, at-1, at))
		end := at + width
		ys = append(ys, x.Slice(0, at, end), x.Slice(0, at, at+1+width))
	}
	for _, x := range xs {
		at := int(x.Sum().ItemInt())
		ys = append(ys, x.Slice(at, 0, 8), x.Transpose(0, at), x.Unsqueeze(at))
		ys = append(ys, tensor.RandInt(0, at, 3, 4))
	}
	return ys
}

func bounds(xs []*tensor.Tensor, width int) (ys []*tensor.Tensor) {
	for _, x := range xs {
		n := int(x.Sum().ItemInt())
		ys = append(ys, x.Slice(0, 0, n))         // want `AT026`
		ys = append(ys, x.Slice(0, n, width))     // want `AT026`
		ys = append(ys, x.Slice(0, n, 2*n))       // want `AT026` `AT026`
		ys = append(ys, tensor.RandInt(0, 10, n)) // want `AT026`
		n++
		ys = append(ys, x.Slice(0, n, n+8))
		end := n + 8
		n++
		ys = append(ys, x.Slice(0, n, end)) // want `AT026` `AT026`
	}
	return ys
}
