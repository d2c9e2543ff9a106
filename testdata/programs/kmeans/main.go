// Command kmeans paints a picture with a few shades of grey, found by Lloyd's
// algorithm: each pixel takes the nearest shade, each shade becomes the mean of its pixels, until
// nothing changes. It starts from several random choices of shades and keeps the
// best result.
//
// Results go to standard output, times to standard error.
//
//	go run ./testdata/programs/kmeans [-small]
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	small := flag.Bool("small", false, "a smaller picture with fewer shades")
	flag.Parse()
	height, width, k, starts := 20, 28, 6, 16
	if *small {
		height, width, k, starts = 8, 12, 4, 4
	}

	tensor.Seed(1)
	pixels := picture(height, width)
	start := time.Now()
	best, lowest, total := (*tensor.Tensor)(nil), math.Inf(1), 0
	for i := range starts {
		shades, steps := cluster(pixels, tensor.Rand(k), 1000)
		total += steps
		off := distances(pixels, shades).Min(1).Mean().Item()
		fmt.Printf("start %2d: %3d steps, off by %.5f\n", i, steps, off)
		if off < lowest {
			best, lowest = shades, off
		}
	}
	fmt.Fprintf(os.Stderr, "%d steps in %v\n", total, time.Since(start).Round(time.Microsecond))

	fmt.Printf("%.4f\n", best)
	paint(best.Take(0, distances(pixels, best).ArgMin(1)).Reshape(height, width))
}

// cluster moves the centers until they stay where they are, but at most limit times, and
// returns them and the number of steps.
func cluster(points, centers *tensor.Tensor, limit int) (*tensor.Tensor, int) {
	k, zero := centers.Dim(0), tensor.Scalar(0)
	for step := range limit {
		members := distances(points, centers).ArgMin(1).OneHot(k)
		counts := members.Sum(0)
		means := points.MatMul(members).Div(counts)
		next := tensor.Where(counts.Gt(zero), means, centers) // one without points stays
		moved := next.Ne(centers).Any().Item() != 0
		centers = next
		if !moved {
			return centers, step + 1
		}
	}
	return centers, limit
}

// distances has a row for each point and a column for each center.
func distances(points, centers *tensor.Tensor) *tensor.Tensor {
	return points.Unsqueeze(1).Sub(centers).Abs()
}

// picture is a few hills in the evening sun, as one row of pixels.
func picture(height, width int) *tensor.Tensor {
	y := tensor.Linspace(0, 4, height).Unsqueeze(1)
	x := tensor.Linspace(0, 7, width)
	light := x.Sin().Add(y.Cos()).Mul(y.Mul(x).MulScalar(0.3).Sin()).Add(tensor.Randn(height, width).MulScalar(0.1))
	return light.MulScalar(0.25).AddScalar(0.5).Flatten()
}

// paint prints a picture.
func paint(picture *tensor.Tensor) {
	const scale = " .:-=+*#%@"
	for y := range picture.Dim(0) {
		for x := range picture.Dim(1) {
			shade := int(picture.At(y, x) * float64(len(scale)))
			fmt.Printf("%c", scale[max(0, min(shade, len(scale)-1))])
		}
		fmt.Println()
	}
}
