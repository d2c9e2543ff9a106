package severity

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Loops whose next iteration waits for the world, or whose values somebody waits for, have to wait; the last one
// needn't.

// A plant has a state that it measures, and takes a force.
type plant interface {
	State() []float32
	Apply(force float64)
}

type planner struct{ net nn.Module }

func (p *planner) cost(state []float32) *tensor.Tensor { return p.net.Forward(tensor.From(state)) }

func control(p plant, by *planner) {
	for range 500 {
		u := by.cost(p.State()).Item()
		p.Apply(u)
	}
}

func speak(net nn.Module, w io.Writer, x *tensor.Tensor, words []string) error {
	out := bufio.NewWriter(w)
	for range 100 {
		token := net.Forward(x).ArgMax()
		out.WriteString(words[token.ItemInt()])
		if err := out.Flush(); err != nil {
			return err
		}
		x = token
	}
	return nil
}

func spell(net nn.Module, x *tensor.Tensor, words []string) {
	for range 100 {
		x = net.Forward(x).ArgMax()
		word := words[x.ItemInt()]
		fmt.Fprint(os.Stdout, word)
	}
}

func compose(net nn.Module, x *tensor.Tensor, words []string) string {
	var b strings.Builder
	for range 100 {
		x = net.Forward(x).ArgMax()
		b.WriteString(words[x.ItemInt()]) // want `AT001`
	}
	return b.String()
}
