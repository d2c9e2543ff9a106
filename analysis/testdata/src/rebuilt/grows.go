package rebuilt

import "gorgonia.org/gorgonia"

// The graph gets more nodes in each iteration.
func grown(g *gorgonia.ExprGraph, x, y *gorgonia.Node, values []float64) {
	for _, v := range values {
		x, _ = gorgonia.Add(x, y)
		gorgonia.Let(y, v)
		gorgonia.NewTapeMachine(g).RunAll()
	}
}

func again(g *gorgonia.ExprGraph, x *gorgonia.Node, values []float64) {
	for _, v := range values {
		gorgonia.Let(x, v)
		gorgonia.NewTapeMachine(g).RunAll() // want `gorgonia.NewTapeMachine builds the same`
	}
}
