//go:build !amd64

package main

import "unsafe"

const flopsOfRound = 0 // the peak is not known

func multiplyAdds(rounds int) {}

func triad(x, y, z *float32, n int) {
	for i := range n {
		*at(x, i) = *at(y, i) + 3**at(z, i)
	}
}

func triadPast(x, y, z *float32, n int) { triad(x, y, z, n) }

func at(x *float32, i int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(x), 4*i)) }
