//go:build !noasm && !race

package vec

import "golang.org/x/sys/cpu"

var machine = func() ISA {
	x := cpu.X86
	_, _, features, _ := cpuid(1, 0)
	hasF16C := features>>29&1 != 0
	if !(x.HasAVX2 && x.HasFMA && x.HasBMI1 && x.HasBMI2 && hasF16C) {
		return Go
	}
	if !(x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512BW && x.HasAVX512VL) {
		return AVX2
	}
	return AVX512
}()
