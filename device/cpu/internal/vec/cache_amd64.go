//go:build !noasm && !race

package vec

import "sync"

// Fence orders what Stream has written before what is written later.
func Fence() { fence() }

// LastCache is how many bytes the largest cache has that a core uses.
var LastCache = sync.OnceValue(func() int {
	_, _, vendor, _ := cpuid(0, 0)
	leaf := uint32(4)
	if amd := uint32('c' | 'A'<<8 | 'M'<<16 | 'D'<<24); vendor == amd { // the end of "AuthenticAMD"
		leaf = 0x8000001d
		if most, _, _, _ := cpuid(0x80000000, 0); most < leaf {
			return someCache
		}
	}
	largest := 0
	for i := range uint32(8) {
		a, b, c, _ := cpuid(leaf, i)
		if a&31 == 0 { // no more of them
			break
		}
		ways, partitions, line, sets := b>>22+1, b>>12&0x3ff+1, b&0xfff+1, c+1
		largest = max(largest, int(ways)*int(partitions)*int(line)*int(sets))
	}
	if largest == 0 {
		return someCache
	}
	return largest
})
