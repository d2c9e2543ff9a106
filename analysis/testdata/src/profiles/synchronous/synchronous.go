// Package synchronous uses libraries in which calls return when the work is
// done, so that a read costs little.
package synchronous

import (
	"fmt"

	"github.com/nlpodyssey/spago/ag"
	"github.com/nlpodyssey/spago/mat"
	"gorgonia.org/gorgonia"
)

func spago(w mat.Tensor, xs []mat.Tensor) (total float64) {
	for _, x := range xs {
		loss := ag.Add(w, x)
		total += loss.Item().F64() // want `blocking read in loop: loss.Item\(\) .*what spago is asked for is done when the call returns.* \[AT001\]`
		fmt.Println(x.Item().F64(), loss.Size())
	}
	return total
}

func gorgonias(cost *gorgonia.Node) (total float64) {
	m := gorgonia.NewTapeMachine(gorgonia.NewGraph())
	for range 1000 {
		if err := m.RunAll(); err != nil {
			return 0
		}
		total += cost.Value().Data().(float64) // want `what Gorgonia is asked for is done .*AT001`
		m.Reset()
	}
	return total
}
