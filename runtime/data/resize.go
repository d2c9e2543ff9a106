package data

import "math"

// resized returns a plane of h×w pixels as one of toH×toW: along one axis, then along the other, each new pixel is a
// weighted mean. The weights are a triangle, as wide as two pixels of the coarser plane. Rows become shorter before
// they are added, or longer afterwards. So it takes the memory of the new plane, and the time of both. Each
// product is rounded, so that all machines make the same pixels: some would add it unrounded.
func resized(plane []uint8, h, w, toH, toW int) []uint8 {
	if h == toH && w == toW {
		return plane
	}
	columns, rows := taps(w, toW), taps(h, toH)
	short := min(w, toW)
	line := make([]float32, short) // a row of the old plane
	sums := make([]float32, toH*short)
	first := 0 // of the new rows that are not complete
	for y := range h {
		row := plane[y*w : (y+1)*w]
		if short < w {
			across(line, row, columns)
		} else {
			for x, v := range row {
				line[x] = float32(v)
			}
		}
		for to := first; to < toH && rows[to].first <= y; to++ {
			t := rows[to]
			if y >= t.first+len(t.weights) {
				first = to + 1
				continue
			}
			weight, sum := t.weights[y-t.first], sums[to*short:][:short]
			for x, v := range line {
				sum[x] += float32(weight * v)
			}
		}
	}
	out, long := make([]uint8, toH*toW), make([]float32, toW)
	for y := range toH {
		row := sums[y*short : (y+1)*short]
		if short < toW {
			across(long, row, columns)
			row = long
		}
		for x, v := range row {
			out[y*toW+x] = uint8(min(max(v+0.5, 0), 255))
		}
	}
	return out
}

// across makes each pixel of a row of those in from.
func across[T uint8 | float32](to []float32, from []T, columns []tap) {
	for x, t := range columns {
		var sum float32
		for i, weight := range t.weights {
			sum += float32(weight * float32(from[t.first+i]))
		}
		to[x] = sum
	}
}

// A tap is the pixels that a new one is the mean of: those from first on, with weights.
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
