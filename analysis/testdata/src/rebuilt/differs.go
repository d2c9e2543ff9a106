package rebuilt

import (
	"math/rand"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// What is built depends on what differs from iteration to iteration.

var depth int

type config struct {
	layers int
	sizes  []int
	names  map[string]int
	next   *config
}

func (c *config) set(name string, n int) { c.names[name] = n }

func (c *config) model(x *graph.Node) *graph.Node {
	for range c.layers {
		x = graph.Add(x, x)
	}
	return x
}

type named struct{ n int }

func (c named) model(x *graph.Node) *graph.Node {
	for range c.n {
		x = graph.Add(x, x)
	}
	return x
}

func (c *config) named(x *graph.Node) *graph.Node {
	for range c.names["depth"] {
		x = graph.Add(x, x)
	}
	return x
}

func deep(x *graph.Node) *graph.Node {
	for range depth {
		x = graph.Add(x, x)
	}
	return x
}

func deeper(x *graph.Node) *graph.Node { return deep(x) }

func random(x *graph.Node) *graph.Node {
	for range rand.Intn(5) {
		x = graph.Add(x, x)
	}
	return x
}

func configure(c *config, i int) { c.sizes[0] = i }

func deepen() { depth++ }

func use(...any) {}

func (t *trainer) variables(backend graph.Backend, xs []*tensors.Tensor) (ys []*tensors.Tensor) {
	n := 0
	repeated := func(x *graph.Node) *graph.Node {
		for range n {
			x = graph.Add(x, x)
		}
		return x
	}
	for i, x := range xs {
		n = i
		ys = append(ys, graph.MustExecOnce(backend, repeated, x))
		ys = append(ys, graph.MustExecOnce(backend, func(x *graph.Node) *graph.Node {
			for range n {
				x = graph.Add(x, x)
			}
			return x
		}, x))
	}
	for _, x := range xs {
		depth++
		ys = append(ys, graph.MustExecOnce(backend, deep, x))
	}
	for _, x := range xs {
		ys = append(ys, graph.MustExecOnce(backend, deeper, x))
		deepen()
	}
	calls := 0
	counting := func(x *graph.Node) *graph.Node {
		calls++
		for range calls {
			x = graph.Add(x, x)
		}
		return x
	}
	for _, x := range xs {
		ys = append(ys, graph.MustExecOnce(backend, counting, x))
		ys = append(ys, graph.MustExecOnce(backend, random, x))
	}
	return ys
}

func (t *trainer) structs(backend graph.Backend, c *config, xs []*tensors.Tensor) (ys []*tensors.Tensor) {
	for i, x := range xs {
		c.layers = i
		ys = append(ys, graph.MustExecOnce(backend, c.model, x))
	}
	for i, x := range xs {
		c.names["depth"] = i
		ys = append(ys, graph.MustExecOnce(backend, c.named, x))
	}
	for i, x := range xs {
		c.set("depth", i)
		ys = append(ys, graph.MustExecOnce(backend, c.named, x))
	}
	sizes := []int{1, 2}
	sized := func(x *graph.Node) *graph.Node {
		for range sizes[0] {
			x = graph.Add(x, x)
		}
		return x
	}
	for i, x := range xs {
		sizes[0] = i
		ys = append(ys, graph.MustExecOnce(backend, sized, x))
	}
	for i, x := range xs {
		configure(c, i)
		ys = append(ys, graph.MustExecOnce(backend, func(x *graph.Node) *graph.Node {
			for range c.sizes[0] {
				x = graph.Add(x, x)
			}
			return x
		}, x))
	}
	p := &n0
	pointed := func(x *graph.Node) *graph.Node {
		for range *p {
			x = graph.Add(x, x)
		}
		return x
	}
	for i, x := range xs {
		*p = i
		ys = append(ys, graph.MustExecOnce(backend, pointed, x))
	}
	for _, x := range xs {
		ys = append(ys, graph.MustExecOnce(backend, c.model, x))
		c = c.next
	}
	for i, x := range xs {
		v := named{n: i}
		ys = append(ys, graph.MustExecOnce(backend, v.model, x))
	}
	return ys
}

var n0 int

func perSize(backend graph.Backend, n int) *graph.Exec {
	return graph.MustNewExec(backend, func(x *graph.Node) *graph.Node {
		for range n + depth {
			x = graph.Add(x, x)
		}
		return x
	})
}

func perIteration(backend graph.Backend, xs []*tensors.Tensor) (ys []*tensors.Tensor) {
	for i, x := range xs {
		depth = i
		ys = append(ys, perSize(backend, 3).MustExec1(x))
	}
	for i, x := range xs {
		sizes := []int{i}
		ys = append(ys, perSize(backend, sizes[0]).MustExec1(x))
		build := func() *graph.Exec { return graph.MustNewExec(backend, func(x *graph.Node) *graph.Node { return x }) }
		ys = append(ys, build().MustExec1(x))
	}
	return ys
}

// Reported: what changes has nothing to do with what is built.

func (t *trainer) same(c *config, xs []*tensors.Tensor) (ys []*tensors.Tensor) {
	steps, total := 0, 0
	for i, x := range xs {
		steps++
		total += i
		t.scale *= 2
		use(x)
		c.layers = i
		ys = append(ys, graph.MustExecOnce(t.backend, model, x))                        // want `builds the same`
		ys = append(ys, graph.MustExecOnce(t.backend, c.named, x))                      // want `builds the same`
		ys = append(ys, graph.MustExecOnce(t.backend, func(x *graph.Node) *graph.Node { // want `builds the same`
			for i := range 3 {
				i++
				x = graph.Add(x, x)
			}
			return x
		}, x))
	}
	return ys
}
