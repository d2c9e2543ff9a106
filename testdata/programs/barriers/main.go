// Command barriers shows which calls make a program wait, and for what.
//
// Before each of them it asks for a product y and then for a longer, unrelated
// one, z. A wait for y returns when y is there, however much else is queued;
// a wait for everything returns when z is there too. Standard output has what
// must be so; standard error has the times, and whether z had been finished
// by then.
//
//	go run ./testdata/programs/barriers [-small] [-device NAME]
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	small := flag.Bool("small", false, "use matrices that slow backends multiply in a moment")
	name := flag.String("device", "", "where to compute: cpu, sim:0 (default: ASYNCGEN_DEVICE, or else cpu)")
	flag.Parse()
	dev, err := device.Open(*name)
	if err != nil {
		fmt.Fprintln(os.Stderr, "barriers:", err)
		os.Exit(2)
	}
	n := 300
	if *small {
		n = 40
	}
	x := tensor.On(dev).Uniform(0, 1, n, n)
	if err := x.Wait(); err != nil { // the first use of a device starts it
		fmt.Fprintln(os.Stderr, "barriers:", err)
		os.Exit(1)
	}

	for _, b := range []barrier{
		{"Wait", "y", (*tensor.Tensor).Wait},
		{"WaitAll", "everything", func(*tensor.Tensor) error { return asyncrt.WaitAll() }},
		{"Synchronize", "everything", func(*tensor.Tensor) error { return asyncrt.Synchronize(dev) }},
		{"Float32s", "y", func(y *tensor.Tensor) error { y.Float32s(); return nil }},
		{"Norm and Item", "y", func(y *tensor.Tensor) error { y.Norm().Item(); return nil }},
		{"a print", "y", func(y *tensor.Tensor) error { _, err := fmt.Fprint(io.Discard, y); return err }},
		{"Shape", "nothing", func(y *tensor.Tensor) error { y.Shape(); return nil }},
	} {
		if err := b.show(x); err != nil {
			fmt.Fprintf(os.Stderr, "barriers: %s: %v\n", b.name, err)
			os.Exit(1)
		}
	}
}

// A barrier is a call that may wait.
type barrier struct {
	name string
	what string // is ready when the call returns: "y", "everything", "nothing"
	call func(y *tensor.Tensor) error
}

// show times the call, and returns an error if something that the call waits
// for is not ready after it.
func (b barrier) show(x *tensor.Tensor) error {
	start := time.Now()
	y := x.MatMul(x)
	z := x.MatMul(x).MatMul(x).MatMul(x).MatMul(x)
	queued := time.Since(start)
	err := b.call(y)
	returned := time.Since(start)
	yReady, zReady := y.Ready(), z.Ready()
	switch {
	case err != nil:
		return err
	case !yReady && b.what != "nothing":
		return errors.New("y is not ready")
	case !zReady && b.what == "everything":
		return errors.New("z is not ready")
	}
	fmt.Printf("%-13s waits for %s\n", b.name, b.what)
	fmt.Fprintf(os.Stderr, "%-13s queued after %8.3f ms, returned after %8.3f ms; ready by then: y %v, z %v\n",
		b.name, milliseconds(queued), milliseconds(returned), yReady, zReady)
	return asyncrt.WaitAll() // so that the next barrier starts with nothing queued
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
