package devicetest

import (
	"os"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// Names returns the devices that tests for any device run on: cpu, sim:0 and, in a test that imports its backend,
// opencl:0. A CPU with a driver will do for the last. Where there is none it is left out, and the log says why; see
// also [NoOpenCL].
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

// NoOpenCL skips a test for which there is no device of OpenCL, which err is about. With
// ASYNCGEN_TEST_OPENCL in the environment, which says that there has to be one, the test fails.
func NoOpenCL(t testing.TB, err error) {
	t.Helper()
	if isWanted() {
		t.Fatalf("no device of OpenCL, though ASYNCGEN_TEST_OPENCL is set: %v", err)
	}
	t.Skipf("no device of OpenCL: %v", err)
}

func isWanted() bool { return os.Getenv("ASYNCGEN_TEST_OPENCL") != "" }
