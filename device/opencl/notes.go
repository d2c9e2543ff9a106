package opencl

import (
	"fmt"
	"strings"

	"github.com/asyncgen/asyncgen/device/internal/cl"
)

// notes describes, for people, what find looks for and what it has found.
func notes() []string {
	lines := []string{"this backend has been run on an NVIDIA H200 and with drivers for CPUs: PoCL, Intel's CPU runtime, rusticl on llvmpipe and, in parts, Oclgrind; never on a GPU of another maker"}
	if checkSettings() != nil {
		return lines
	}
	lines = append(lines, "library looked for: "+strings.Join(cl.Libraries(), ", then ")+"; ASYNCGEN_LIBOPENCL names another")
	all, err := findAll()
	if err != nil {
		return lines
	}
	lines = append(lines, "library used: "+all[0].driver.Name)
	for _, f := range all {
		use := "used"
		if f.flaw != nil {
			use = "not used: " + f.flaw.Error()
		}
		lines = append(lines, fmt.Sprintf("%s: %s", f.description(), use))
		if f.flaw == nil {
			lines = append(lines, f.shortcomings()...)
			if c := cacheFor(&f); c.folder != "" {
				if err := usable(c.folder); err != nil {
					lines = append(lines, "kernels are not kept from one run to the next: "+err.Error())
				}
			}
		}
	}
	return lines
}

// shortcomings lists, for people, where results of f, a usable device, may differ from the CPU's.
func (f *found) shortcomings() (lines []string) {
	if f.double == 0 {
		lines = append(lines, f.name+" has no float64: operations on it fail")
	}
	if f.single&cl.FPCorrectDivideSqrt == 0 {
		lines = append(lines, f.name+" does not round quotients and square roots of float32 as IEEE 754 says: their last bits may differ from the CPU's")
	}
	if f.single&cl.FPDenorm == 0 {
		lines = append(lines, f.name+" may take float32 numbers below 1.2e-38 for 0")
	}
	if f.single&cl.FPFMA == 0 {
		lines = append(lines, f.name+" may be slow at products of matrices: it has no fused multiply-add for float32")
	}
	return lines
}
