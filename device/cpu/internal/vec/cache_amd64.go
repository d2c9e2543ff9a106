//go:build !noasm && !race

package vec

// Fence orders what Stream has written before what is written later.
func Fence() { fence() }

// askCaches asks the processor: leaf 4 of CPUID, or AMD's leaf 8000001D.
func askCaches() (c Caches) {
	_, _, vendor, _ := cpuid(0, 0)
	leaf := uint32(4)
	if amd := uint32('c' | 'A'<<8 | 'M'<<16 | 'D'<<24); vendor == amd { // the end of "AuthenticAMD"
		leaf = 0x8000001d
		if most, _, _, _ := cpuid(0x80000000, 0); most < leaf {
			return c
		}
	}
	for i := range uint32(8) {
		a, b, sets, _ := cpuid(leaf, i)
		kind, level := a&31, a>>5&7
		if kind == 0 { // no more of them
			break
		}
		if kind != 2 { // instructions
			ways, partitions, line := b>>22+1, b>>12&0x3ff+1, b&0xfff+1
			c.add(int(level), int(ways)*int(partitions)*int(line)*(int(sets)+1))
		}
	}
	return c
}
