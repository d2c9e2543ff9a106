package main

import "golang.org/x/sys/cpu"

var wide = cpu.X86.HasAVX512F

// flopsOfRound is that of one round of multiplyAdds: of 12 vectors of 8 or 16 numbers.
var flopsOfRound = map[bool]float64{false: 2 * 12 * 8, true: 2 * 12 * 16}[wide]

// multiplyAdds does rounds of twelve fused multiply-adds that don't wait for each other.
func multiplyAdds(rounds int) {
	if wide {
		multiplyAdds512(rounds)
	} else {
		multiplyAdds256(rounds)
	}
}

//go:noescape
func multiplyAdds512(rounds int)

//go:noescape
func multiplyAdds256(rounds int)

// triad is x[i] = y[i] + 3*z[i] for n numbers, a multiple of 16; x begins at a multiple of 32 bytes.
//
//go:noescape
func triad(x, y, z *float32, n int)

// triadPast is triad, with stores past the caches.
//
//go:noescape
func triadPast(x, y, z *float32, n int)
