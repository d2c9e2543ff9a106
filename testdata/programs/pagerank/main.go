// Command pagerank ranks the pages of a small made-up web by power iteration:
// again and again, everybody who is somewhere follows one of the links there,
// until the crowd moves no more. How long that takes depends on how many of
// them get bored and start anywhere.
//
// Results go to standard output, times to standard error.
//
//	go run ./testdata/programs/pagerank [-small]
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	small := flag.Bool("small", false, "fewer pages")
	flag.Parse()
	pages := 240
	if *small {
		pages = 40
	}

	links := web(pages)
	follow := transitions(links)
	start := time.Now()
	total := 0
	for _, damping := range []float64{0.5, 0.7, 0.85, 0.95, 0.99} {
		rank, steps := pageRank(follow, damping, 1e-10, 10_000)
		total += steps
		fmt.Printf("damping %.2f, %4d steps:", damping, steps)
		scores := rank.Float64s()
		for _, page := range best(scores, 4) {
			fmt.Printf("  page %d %.4f", page, scores[page])
		}
		fmt.Println()
	}
	fmt.Fprintf(os.Stderr, "%d steps in %v\n", total, time.Since(start).Round(time.Microsecond))
}

// pageRank returns the share of the crowd on each page when it has changed by less
// than tol in a step, or after limit steps, and the number of steps. A share
// damping of them follows a link, the others start anywhere.
func pageRank(follow *tensor.Tensor, damping, tol float64, limit int) (*tensor.Tensor, int) {
	n := follow.Dim(0)
	rank := tensor.Full(1/float64(n), n).As(tensor.Float64)
	anywhere := (1 - damping) / float64(n)
	steps := 0
	for steps < limit {
		next := follow.MatMul(rank).MulScalar(damping).AddScalar(anywhere)
		shift := next.Sub(rank).Abs().Sum().Item()
		rank = next
		steps++
		if shift < tol {
			break
		}
	}
	return rank, steps
}

// web makes up which pages each page links to: mostly to older ones, and never to itself.
// The first page has no links.
func web(pages int) [][]int {
	rng := rand.New(rand.NewPCG(1, 2))
	links := make([][]int, pages)
	for from := 1; from < pages; from++ {
		for range 1 + rng.IntN(6) {
			to := rng.IntN(from)
			if rng.IntN(8) == 0 {
				to = rng.IntN(pages)
			}
			if to != from && !slices.Contains(links[from], to) {
				links[from] = append(links[from], to)
			}
		}
	}
	return links
}

// transitions is the matrix of the chances to get from a page (its column) to
// another one (its row). From a page without links one gets anywhere.
func transitions(links [][]int) *tensor.Tensor {
	n := len(links)
	chances := make([]float64, n*n)
	for from, targets := range links {
		for _, to := range targets {
			chances[to*n+from] = 1 / float64(len(targets))
		}
		if len(targets) == 0 {
			for to := range n {
				chances[to*n+from] = 1 / float64(n)
			}
		}
	}
	return tensor.From(chances, n, n)
}

// best returns the n pages with the highest scores, the best one first.
func best(scores []float64, n int) []int {
	pages := make([]int, len(scores))
	for i := range pages {
		pages[i] = i
	}
	slices.SortStableFunc(pages, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	return pages[:n]
}
