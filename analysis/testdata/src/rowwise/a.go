package rowwise

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func each(net nn.Module, x *tensor.Tensor) *tensor.Tensor {
	var ys []*tensor.Tensor
	for i := range x.Dim(0) {
		ys = append(ys, net.Forward(x.Slice(0, i, i+1))) // want `net.Forward takes one row of x in each iteration; give it all rows in one call \[AT037\]`
	}
	return tensor.Concat(0, ys...)
}

func systems(r, v *tensor.Tensor) *tensor.Tensor {
	rows := make([]*tensor.Tensor, r.Dim(0))
	for u := range rows {
		w := r.Row(u)
		a := v.T().Mul(w).MatMul(v)
		rows[u] = a.Solve(v.T().MatMul(w.Unsqueeze(1))) // want `a.Solve takes one row of r`
	}
	return tensor.Stack(0, rows...)
}

func penalty(f func(*tensor.Tensor) *tensor.Tensor, x *tensor.Tensor) *tensor.Tensor {
	total := tensor.Zeros()
	for i := range x.Dim(0) {
		at := x.Slice(0, i, i+1).Track()
		total = total.Add(tensor.Grad(f(at), at)[0].Norm()) // want `tensor.Grad takes one row of x`
	}
	return total
}

// Silent.

func parts(net nn.Module, x *tensor.Tensor) *tensor.Tensor {
	var ys []*tensor.Tensor
	for i := 0; i < x.Dim(0); i += 64 {
		ys = append(ys, net.Forward(x.Slice(0, i, i+64)))
	}
	return tensor.Concat(0, ys...)
}

// Each call gets all rows.
func importance(net nn.Module, x, y, order *tensor.Tensor) *tensor.Tensor {
	losses := make([]*tensor.Tensor, x.Dim(1))
	for j := range losses {
		column := x.Slice(1, j, j+1).Take(0, order)
		mixed := x.SetIndex(column, tensor.All(), tensor.Range(j, j+1))
		losses[j] = nn.MSELoss(net.Forward(mixed), y)
	}
	return tensor.Stack(0, losses...)
}

func recurrent(cell nn.Module, x, h *tensor.Tensor) *tensor.Tensor {
	for t := range x.Dim(0) {
		h = cell.Forward(h.Add(x.Row(t)))
	}
	return h
}

func networks(nets []nn.Module, x *tensor.Tensor) (ys []*tensor.Tensor) {
	for _, net := range nets {
		ys = append(ys, net.Forward(x.Row(0)))
	}
	return ys
}
