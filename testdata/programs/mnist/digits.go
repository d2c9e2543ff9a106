package main

import (
	"math"
	"math/rand/v2"
	"path/filepath"

	"github.com/asyncgen/asyncgen/runtime/data"
)

const side = 28 // of an image, in pixels

// A digits is images of digits, of which the second set is for a test.
type digits struct {
	train, test *data.Pairs[uint8, int64]
}

// load reads the digits in a folder, the four files of MNIST, or draws n of them if it has no name.
func load(dir string, n int) (set digits, err error) {
	if dir == "" {
		return digits{draw(n, 1), draw(n/4, 2)}, nil
	}
	if set.train, err = pairs(dir, "train"); err == nil {
		set.test, err = pairs(dir, "t10k")
	}
	return set, err
}

func pairs(dir, part string) (*data.Pairs[uint8, int64], error) {
	images, err := data.ReadIDXFile[uint8](filepath.Join(dir, part+"-images-idx3-ubyte.gz"))
	if err != nil {
		return nil, err
	}
	labels, err := data.ReadIDXFile[int64](filepath.Join(dir, part+"-labels-idx1-ubyte.gz"))
	if err != nil {
		return nil, err
	}
	return data.Pair(images, labels), nil
}

// strokes are the lines of each digit, as points x, y in a square of 4 by 6 whose first corner is at the top.
var strokes = [10][][]float64{
	{{1, 0, 3, 0, 4, 1, 4, 5, 3, 6, 1, 6, 0, 5, 0, 1, 1, 0}},
	{{1, 1, 2, 0, 2, 6}},
	{{0, 1, 1, 0, 3, 0, 4, 1, 4, 2, 0, 6, 4, 6}},
	{{0, 0, 4, 0, 2, 2, 3, 2, 4, 3, 4, 5, 3, 6, 1, 6, 0, 5}},
	{{3, 6, 3, 0, 0, 4, 4, 4}},
	{{4, 0, 0, 0, 0, 3, 3, 3, 4, 4, 4, 5, 3, 6, 0, 6}},
	{{3, 0, 1, 2, 0, 4, 0, 5, 1, 6, 3, 6, 4, 5, 4, 4, 3, 3, 1, 3}},
	{{0, 0, 4, 0, 1, 6}, {1, 3, 3, 3}},
	{{1, 3, 0, 2, 0, 1, 1, 0, 3, 0, 4, 1, 4, 2, 3, 3, 1, 3, 0, 4, 0, 5, 1, 6, 3, 6, 4, 5, 4, 4, 3, 3}},
	{{4, 2, 3, 3, 1, 3, 0, 2, 0, 1, 1, 0, 3, 0, 4, 1, 4, 3, 2, 6}},
}

// draw draws n digits by a pen of varying width, turned, slanted, squeezed and moved at random, on paper that isn't clean.
// They depend on n and seed only.
func draw(n int, seed uint64) *data.Pairs[uint8, int64] {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	between := func(lo, hi float64) float64 { return lo + (hi-lo)*r.Float64() }
	images := data.Array[uint8]{Data: make([]uint8, n*side*side), Shape: []int{n, side, side}}
	labels := data.Array[int64]{Data: make([]int64, n), Shape: []int{n}}
	for i := range n {
		digit := r.IntN(len(strokes))
		labels.Data[i] = int64(digit)
		width, height, slant := between(2.2, 3.6), between(2.4, 3.4), between(-0.3, 0.3)
		sin, cos := math.Sincos(between(-0.3, 0.3))
		right, down, pen := between(11, 17), between(11, 17), between(0.8, 1.7)

		image := images.Row(i)
		for _, points := range strokes[digit] {
			var xs, ys []float64 // the points on the paper, each a little off
			for p := 0; p < len(points); p += 2 {
				y := (points[p+1] - 3 + between(-0.3, 0.3)) * height
				x := (points[p]-2+between(-0.3, 0.3))*width - slant*y
				xs, ys = append(xs, right+cos*x-sin*y), append(ys, down+sin*x+cos*y)
			}
			for at := range image {
				away := math.Inf(1)
				for p := range len(xs) - 1 {
					away = min(away, distance(float64(at%side), float64(at/side), xs[p], ys[p], xs[p+1], ys[p+1]))
				}
				image[at] = max(image[at], uint8(255*min(max(pen+0.5-away, 0), 1)))
			}
		}
		for at := range image {
			image[at] = uint8(min(float64(image[at])*between(0.7, 1)+between(0, 60), 255))
		}
	}
	return data.Pair(images, labels)
}

// distance is that of the point x, y from the line from x0, y0 to x1, y1.
func distance(x, y, x0, y0, x1, y1 float64) float64 {
	dx, dy := x1-x0, y1-y0
	along := min(max(((x-x0)*dx+(y-y0)*dy)/(dx*dx+dy*dy+1e-9), 0), 1)
	return math.Hypot(x-x0-along*dx, y-y0-along*dy)
}
