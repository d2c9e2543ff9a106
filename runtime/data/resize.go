package data

import "math"

// resized returns a plane of h×w pixels as one of toH×toW: along one axis, then along the other, each new pixel is a
// weighted mean. The weights are a triangle, as wide as two pixels of the coarser plane. It takes the memory of the new
// plane, however long the old one is.
func resized(plane []uint8, h, w, toH, toW int) []uint8 {
	if h == toH && w == toW {
		return plane
	}
	columns, rows := taps(w, toW), taps(h, toH)
	narrow := make([]float32, toW) // a row of the old plane
	sums := make([]float32, toH*toW)
	first := 0 // of the new rows that are not complete
	for y := range h {
		row := plane[y*w : (y+1)*w]
		for x, t := range columns {
			var sum float32
			for i, weight := range t.weights {
				sum += weight * float32(row[t.first+i])
			}
			narrow[x] = sum
		}
		for to := first; to < toH && rows[to].first <= y; to++ {
			t := rows[to]
			if y >= t.first+len(t.weights) {
				first = to + 1
				continue
			}
			weight, line := t.weights[y-t.first], sums[to*toW:][:toW]
			for x, v := range narrow {
				line[x] += weight * v
			}
		}
	}
	out := make([]uint8, toH*toW)
	for i, v := range sums {
		out[i] = uint8(min(max(v+0.5, 0), 255))
	}
	return out
}

// taps are the pixels that a new one is the mean of: those from first on, with weights.
type tap struct {
	first   int
	weights []float32
}

// taps returns what each of to pixels is made of, if there were n.
func taps(n, to int) []tap {
	scale := float64(n) / float64(to)
	wide := max(scale, 1)
	list := make([]tap, to)
	for i := range list {
		center := (float64(i) + 0.5) * scale
		lo, hi := max(int(math.Floor(center-wide+0.5)), 0), min(int(math.Floor(center+wide+0.5)), n)
		weights := make([]float32, hi-lo)
		total := 0.0
		for j := range weights {
			total += triangle(lo+j, center, wide)
		}
		for j := range weights {
			weights[j] = float32(triangle(lo+j, center, wide) / total)
		}
		list[i] = tap{lo, weights}
	}
	return list
}

func triangle(pixel int, center, wide float64) float64 {
	return max(1-math.Abs(float64(pixel)+0.5-center)/wide, 0)
}
