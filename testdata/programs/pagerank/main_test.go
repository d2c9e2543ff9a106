package main

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/graph/network"
	"gonum.org/v1/gonum/graph/simple"
)

// TestPageRank holds ranks against those of gonum.
func TestPageRank(t *testing.T) {
	for _, pages := range []int{1, 2, 17, 60} {
		links := web(pages)
		g := simple.NewDirectedGraph()
		for page := range links {
			g.AddNode(simple.Node(page))
		}
		for from, targets := range links {
			for _, to := range targets {
				g.SetEdge(simple.Edge{F: simple.Node(from), T: simple.Node(to)})
			}
		}
		for _, damping := range []float64{0, 0.5, 0.85} {
			rank, steps := pageRank(transitions(links), damping, 1e-12, 1000)
			if steps == 1000 {
				t.Errorf("%d pages, damping %g: no end", pages, damping)
			}
			got, sum := rank.Float64s(), 0.0
			for page, want := range network.PageRank(g, damping, 1e-12) {
				if math.Abs(got[page]-want) > 1e-9 {
					t.Errorf("%d pages, damping %g: page %d has %g, want %g", pages, damping, page, got[page], want)
				}
				sum += got[page]
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("%d pages, damping %g: all have %g", pages, damping, sum)
			}
		}
	}
}

// TestSteps: the last step is the first that changes little, or the one at the limit.
func TestSteps(t *testing.T) {
	follow := transitions(web(30))
	_, steps := pageRank(follow, 0.85, 1e-10, 1000)
	for _, limit := range []int{steps - 1, steps, steps + 1} {
		if _, n := pageRank(follow, 0.85, 1e-10, limit); n != min(steps, limit) {
			t.Errorf("%d steps with a limit of %d, want %d", n, limit, min(steps, limit))
		}
	}
	last, _ := pageRank(follow, 0.85, 0, steps)
	previous, _ := pageRank(follow, 0.85, 0, steps-1)
	before, _ := pageRank(follow, 0.85, 0, steps-2)
	if shift := last.Sub(previous).Abs().Sum().Item(); shift >= 1e-10 {
		t.Errorf("the last step changes %g", shift)
	}
	if shift := previous.Sub(before).Abs().Sum().Item(); shift < 1e-10 {
		t.Errorf("the step before the last changes only %g", shift)
	}
}
