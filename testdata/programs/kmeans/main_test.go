package main

import (
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// TestCluster holds centers and steps against the algorithm in plain Go: every
// sum is of the points in their order, so they are equal.
func TestCluster(t *testing.T) {
	for seed := range uint64(20) {
		tensor.Seed(seed)
		points, first := picture(6, 7), tensor.Uniform(-0.5, 1.5, 2+int(seed%4))
		for _, limit := range []int{100, 4, 1, 0} {
			centers, steps := cluster(points, first, limit)
			want, wantSteps := lloyd(points.Float32s(), first.Float32s(), limit)
			if got := centers.Float32s(); !slices.Equal(got, want) || steps != wantSteps {
				t.Errorf("seed %d, limit %d: %v after %d steps, want %v after %d", seed, limit, got, steps, want, wantSteps)
			}
		}
	}
}

func lloyd(points, centers []float32, limit int) ([]float32, int) {
	for step := range limit {
		sums, counts := make([]float32, len(centers)), make([]float32, len(centers))
		for _, p := range points {
			nearest := 0
			for j, c := range centers {
				if abs(p-c) < abs(p-centers[nearest]) {
					nearest = j
				}
			}
			sums[nearest] += p
			counts[nearest]++
		}
		next := slices.Clone(centers)
		for j := range next {
			if counts[j] > 0 {
				next[j] = sums[j] / counts[j]
			}
		}
		moved := !slices.Equal(next, centers)
		centers = next
		if !moved {
			return centers, step + 1
		}
	}
	return centers, limit
}

func abs(x float32) float32 { return max(x, -x) }
