package devicetest

import (
	"os"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// Names returns the devices that tests for any device run on: cpu, sim:0 and, in a test that imports its backend,
// opencl:0. That may be a CPU with a driver. If there is none, Names leaves it out, and the log says why. With
// ASYNCGEN_TEST_OPENCL set, it is an error instead.
func Names(t testing.TB) []string {
	t.Helper()
	names := []string{"cpu", "sim:0"}
	t.Setenv("ASYNCGEN_OPENCL_CPU", "1")
	if _, err := device.Open("opencl:0"); err == nil {
		names = append(names, "opencl:0")
	} else if isWanted() {
		t.Errorf("no device of OpenCL, though ASYNCGEN_TEST_OPENCL is set: %v", err)
	} else {
		t.Logf("not on opencl:0: %v", err)
	}
	return names
}

// NoOpenCL skips a test that has no device of OpenCL; err says why. The test fails instead if
// ASYNCGEN_TEST_OPENCL is set, which says that there has to be one.
func NoOpenCL(t testing.TB, err error) {
	t.Helper()
	if isWanted() {
		t.Fatalf("no device of OpenCL, though ASYNCGEN_TEST_OPENCL is set: %v", err)
	}
	t.Skipf("no device of OpenCL: %v", err)
}

func isWanted() bool { return os.Getenv("ASYNCGEN_TEST_OPENCL") != "" }
