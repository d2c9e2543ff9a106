package optim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Split sorts by axes or by what the caller says, and loses no parameter. Those that decay shrink without a gradient to
// speak of, and the others stay.
func TestSplit(t *testing.T) {
	net := nn.Sequential(nn.Conv2D(2, tensor.Both(2), tensor.Conv{}), nn.BatchNorm(), nn.Flatten(), nn.Dense(3))
	for want, f := range map[string]func(){
		"optim: Split: 0.weight has no value yet, and so no axes: layers give theirs a value at their first Forward": func() { optim.Split(net, nil) },
	} {
		func() {
			defer func() {
				if m, ok := recover().(*tensor.Mistake); !ok || m.Error() != want {
					t.Errorf("got %v, want %s", m, want)
				}
			}()
			f()
		}()
	}
	if those, others := optim.Split(net, func(name string, _ *nn.Param) bool { return strings.HasPrefix(name, "3.") }); len(those) != 2 || len(others) != 4 {
		t.Errorf("%d parameters of the last layer, %d others", len(those), len(others))
	}
	x := tensor.Ones(4, 1, 3, 3)
	net.Forward(x)
	weights, others := optim.Split(net, nil)
	named := map[*nn.Param]string{}
	for name, c := range nn.Named(net) {
		if p, ok := c.(*nn.Param); ok {
			named[p] = name
		}
	}
	names := func(params []*nn.Param) (list []string) {
		for _, p := range params {
			list = append(list, named[p])
		}
		return list
	}
	if got, want := names(weights), []string{"0.weight", "3.weight"}; !slices.Equal(got, want) {
		t.Errorf("%v decay, want %v", got, want)
	}
	if got, want := names(others), []string{"0.bias", "1.weight", "1.bias", "3.bias"}; !slices.Equal(got, want) {
		t.Errorf("%v do not decay, want %v", got, want)
	}
	opt := optim.Group(optim.AdamW(weights, 0.5, optim.AdamOptions{Decay: 0.5}), optim.AdamW(others, 0.5, optim.AdamOptions{Decay: optim.None}))
	before := map[*nn.Param][]float32{}
	for p := range named {
		before[p] = p.Value().Float32s()
		p.SetGrad(p.Value().Detach().MulScalar(0))
	}
	opt.Step()
	for p, name := range named {
		for i, got := range p.Value().Float32s() {
			want := before[p][i]
			if slices.Contains(weights, p) {
				want *= 0.75
			}
			if got != want {
				t.Errorf("element %d of %s is %v, want %v", i, name, got, want)
			}
		}
	}
}

// Only weights of two axes or more decay, and each epoch has another order.
func ExampleSplit() {
	const samples, batch = 90, 32
	tensor.Seed(1)
	x := tensor.Randn(samples, 2)
	labels := x.Square().Sum(1).LtScalar(1).As(tensor.Int64)
	net := nn.Sequential(nn.Dense(32), nn.LayerNorm(), nn.ReLU(), nn.Dense(2))
	net.Forward(x)
	weights, others := optim.Split(net, nil)
	opt := optim.Group(
		optim.AdamW(weights, 3e-4, optim.AdamOptions{Decay: 0.1}),
		optim.AdamW(others, 3e-4, optim.AdamOptions{Decay: optim.None}),
	)
	opt.SetRate(0.02)
	for range 40 {
		order := tensor.Permutation(samples)
		for i := 0; i < samples; i += batch {
			rows := order.Slice(0, i, min(i+batch, samples))
			opt.Minimize(nn.CrossEntropy(net.Forward(x.Take(0, rows)), labels.Take(0, rows)))
		}
	}
	right := net.Forward(x).ArgMax(1).Eq(labels).As(tensor.Float32).Mean()
	fmt.Println(nn.Count(net), len(weights), len(others), right.Item() > 0.9)
	// Output: 226 2 4 true
}
