// Command graph shows what the library knows about z = x*y + 2: the values,
// and the graph of operations by which it decides what may run at the same
// time. Operations on a path through the graph wait for one another; x and y
// depend on nothing and may be made in any order, or at once.
//
// The graph goes to standard output as text, and as a drawing to the files
// that -svg and -dot name.
//
//	go run ./testdata/programs/graph [-svg FILE] [-dot FILE]
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	svg := flag.String("svg", "", "draw the graph to this file, as SVG")
	dot := flag.String("dot", "", "write the graph to this file, for Graphviz")
	flag.Bool("small", false, "has no effect: the program is small")
	flag.Parse()

	var z *tensor.Tensor
	g := asyncrt.Graph(func() {
		x := tensor.Ones(1, 2)
		y := tensor.Ones(1, 2)
		z = x.Mul(y).AddScalar(2)
	})
	fmt.Println("z =", z)
	fmt.Print(g)

	draw(*svg, g.WriteSVG)
	draw(*dot, g.WriteDOT)
}

// draw creates the file called name, if there is a name, and lets write fill it.
func draw(name string, write func(io.Writer) error) {
	if name == "" {
		return
	}
	f, err := os.Create(name)
	if err == nil {
		err = write(f)
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "graph:", err)
		os.Exit(1)
	}
}
