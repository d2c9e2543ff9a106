package severity

import (
	"fmt"
	"io"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A loop that only prints what it receives holds up nobody: whoever sends goes on.

func drained(w io.Writer, losses <-chan *tensor.Tensor, done chan<- struct{}) {
	defer close(done)
	for loss := range losses {
		fmt.Fprintf(w, "%.4f\n", loss)
	}
}

// One that computes what it prints has all of the work to itself.
func printedScores(net nn.Module, w io.Writer, inputs <-chan *tensor.Tensor) {
	for x := range inputs {
		fmt.Fprintf(w, "%.4f\n", net.Forward(x).Mean()) // want `AT004`
	}
}

// A line for each parameter, every so many steps.
func inspected(net nn.Module, step func() *tensor.Tensor, w io.Writer) {
	for i := range 10000 {
		loss := step()
		if i%100 == 0 {
			for _, p := range nn.Params(net) {
				fmt.Fprintln(w, i, p.Value().Norm())
				fmt.Fprintf(w, "%d: %.3f\n", i, p.Value().Max().Item())
			}
		}
		fmt.Fprintln(w, loss) // want `AT004`
	}
}
