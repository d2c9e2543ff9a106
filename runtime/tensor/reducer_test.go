package tensor_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// If the copies' parameters differ in shape, Backward panics with a Mistake, and does not add gradients of a wrong
// shape. The Reducer can be used afterwards.
func TestReducerOfParametersThatDiffer(t *testing.T) {
	devs := simulated(2)
	for _, c := range []struct {
		first, second *tensor.Tensor
		bucket        int
		want          string
	}{
		{tensor.On(devs[0]).Ones(2), tensor.On(devs[1]).Ones(3), 0, op.MistakeShapes},
		{tensor.On(devs[0]).Ones(2, 3), tensor.On(devs[1]).Ones(3, 2), 1, op.MistakeShapes},
		{tensor.On(devs[0]).Ones(2), tensor.On(devs[1]).As(tensor.Float64).Ones(2), 0, op.MistakeDTypes},
	} {
		p, q := tensor.NewParam(c.first), tensor.NewParam(c.second)
		r := tensor.NewReducer(2, c.bucket, []*tensor.Param{p}, []*tensor.Param{q})
		loss := func() *tensor.Tensor {
			var a, b *tensor.Tensor
			r.Shard(0, func() { a = p.Value().Sum() })
			r.Shard(1, func() { b = q.Value().MulScalar(2).Sum() })
			return a.Add(b.To(devs[0]).As(tensor.Float32))
		}
		if m := mistake(func() { loss().Backward() }); m == nil || m.Op != "Backward" || m.Text != c.want {
			t.Errorf("%v and %v: got %v, want %s", c.first.Shape(), c.second.Shape(), m, c.want)
		}
		if p.Grad() != nil || q.Grad() != nil {
			t.Errorf("%v and %v: there are gradients: %v, %v", c.first.Shape(), c.second.Shape(), p.Grad(), q.Grad())
		}
		q.Set(tensor.On(devs[1]).Ones(c.first.Shape()...))
		loss().Backward()
		for _, g := range []*tensor.Tensor{p.Grad(), q.Grad()} {
			if got := g.Sub(tensor.On(g.Device()).Full(3, c.first.Shape()...)).Norm().Item(); got != 0 {
				t.Errorf("%v and %v: then %v, want 3", c.first.Shape(), c.second.Shape(), g)
			}
		}
	}
}
