// Command warmup shows that a tensor program runs ahead of its results.
//
// It multiplies ten random matrices with themselves three times: with gonum,
// which computes before it returns; with tensors, only asking for the
// products; and with tensors again, waiting until they are there. The second
// figure is small because the work has only been queued. Then it sums one
// larger product, and times asking for the sum and printing it apart.
//
// Results go to standard output, times to standard error.
//
//	go run ./testdata/programs/warmup [-small] [-device NAME]
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
	"gonum.org/v1/gonum/mat"
)

func main() {
	small := flag.Bool("small", false, "use matrices that slow backends multiply in a moment")
	name := flag.String("device", "", "where to compute: cpu, sim:0 (default: ASYNCGEN_DEVICE, or else cpu)")
	flag.Parse()
	dev, err := device.Open(*name)
	if err != nil {
		fmt.Fprintln(os.Stderr, "warmup:", err)
		os.Exit(2)
	}
	n, large := 1000, 2000
	if *small {
		n, large = 100, 200
	}
	const times = 10

	stop := clock("gonum")
	b := denseProducts(n, times)
	stop()
	rows, cols := b.Dims()
	fmt.Printf("gonum: %d products, %d x %d\n", times, rows, cols)

	on := tensor.On(dev)
	tensor.Seed(1)
	products(on, n, 1).Wait() // the first use of a device starts it

	stop = clock("tensors on %s, queued", dev)
	products(on, n, times)
	stop()
	asyncrt.WaitAll()

	stop = clock("tensors on %s, finished", dev)
	c := products(on, n, times)
	asyncrt.WaitAll()
	stop()
	fmt.Printf("tensors: %d products, %d x %d\n", times, c.Dim(0), c.Dim(1))

	stop = clock("workloads are queued")
	x := on.Uniform(0, 1, large, large)
	y := x.MatMul(x).Sum()
	stop()
	stop = clock("workloads are finished")
	fmt.Printf("sum = %.2e\n", y)
	stop()
}

// products returns the last of several products of random matrices with
// themselves. All of them are enqueued; none has to be finished.
func products(on tensor.Maker, n, times int) *tensor.Tensor {
	var b *tensor.Tensor
	for range times {
		a := on.Randn(n, n)
		b = a.MatMul(a)
	}
	return b
}

// denseProducts is products by gonum, which is finished when it returns.
func denseProducts(n, times int) *mat.Dense {
	rng := rand.New(rand.NewPCG(1, 1))
	var b mat.Dense
	for range times {
		a := mat.NewDense(n, n, nil)
		for i := range n {
			row := a.RawRowView(i)
			for j := range row {
				row[j] = rng.NormFloat64()
			}
		}
		b.Mul(a, a)
	}
	return &b
}

// clock starts timing; the function it returns prints what has passed.
func clock(format string, args ...any) func() {
	start := time.Now()
	return func() {
		elapsed := time.Since(start)
		fmt.Fprintf(os.Stderr, "%s: %.4f s\n", fmt.Sprintf(format, args...), elapsed.Seconds())
	}
}
